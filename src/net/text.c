/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - what is read and written of HTTP without a library: Content-Range, escaped paths. */
#include <string.h>

#include "base/alloc.h"
#include "net/net.h"

bool qn_net_parse_range(qn_net_range *out, qn_str value)
{
    const qn_str unit = QN_STR("bytes ");
    qn_net_range r = {.given = true};
    qn_str v = qn_str_trim(value);
    *out = r;
    if (!qn_str_has_prefix(v, unit)) return false;
    v = qn_str_slice(v, unit.n, v.n);
    const size_t slash = qn_str_find(v, QN_STR("/"), 0), dash = qn_str_find(v, QN_STR("-"), 0);
    if (slash == SIZE_MAX || dash == SIZE_MAX || dash > slash) return false;
    const qn_str total = qn_str_slice(v, slash + 1, v.n);
    if (!qn_str_parse_u64(&r.first, qn_str_slice(v, 0, dash)) ||
        !qn_str_parse_u64(&r.last, qn_str_slice(v, dash + 1, slash)))
        return false;
    if (qn_str_eq(total, QN_STR("*")))
        r.total = UINT64_MAX;
    else if (!qn_str_parse_u64(&r.total, total))
        return false;
    if (r.last < r.first || r.last >= r.total) return false;
    r.good = true;
    *out = r;
    return true;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~/", c) != NULL);
}

char *qn_net_escape_path(const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t room = 0, n = 0;
    if (!qn_mul_size(&room, strlen(text), 3) || !qn_add_size(&room, room, 1)) return NULL;
    char *out = qn_alloc(room);
    for (; out && *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (is_plain(*text)) {
            out[n++] = *text;
            continue;
        }
        out[n++] = '%';
        out[n++] = hex[c >> 4];
        out[n++] = hex[c & 15];
    }
    if (out) out[n] = '\0';
    return out;
}
