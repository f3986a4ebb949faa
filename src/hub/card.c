/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - what the README of a repository says in its front matter: of YAML no more than one key at the
 * beginning of a line with one value, or the first of a list.
 */
#include "hub/hub.h"

qn_str qn_hub_card_license(qn_str text)
{
    qn_str line = {0}, key = QN_STR("license:");
    bool wanted = false; /* the value is a list: its first element is on the next line */
    if (!qn_str_split(&line, &text, '\n') || !qn_str_eq_z(qn_str_trim(line), "---"))
        return (qn_str){0};
    while (qn_str_split(&line, &text, '\n') &&
           text.p) { /* a last line that was cut does not count */
        qn_str value = qn_str_trim(line);
        if (qn_str_eq_z(value, "---")) break;
        if (!wanted && !qn_str_has_prefix(line, key)) continue;
        value = wanted ? value : qn_str_trim(qn_str_slice(line, key.n, line.n));
        if (wanted && value.n && value.p[0] == '-')
            value = qn_str_trim(qn_str_slice(value, 1, value.n));
        if (value.n > 1 && (value.p[0] == '"' || value.p[0] == '\'') &&
            value.p[value.n - 1] == value.p[0])
            value = qn_str_slice(value, 1, value.n - 1);
        if (value.n || wanted) return value;
        wanted = true;
    }
    return (qn_str){0};
}
