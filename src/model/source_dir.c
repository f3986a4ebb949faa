/* SPDX-License-Identifier: Apache-2.0 */
/* source_dir.c - the one GGUF model of a directory. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/source.h"

enum { SHOWN = 80 }; /* bytes of a name in a message */

/* A part that its first part stands for. */
static bool is_later_part(qn_str name)
{
    size_t stem = 0;
    uint32_t no = 1;
    return qn_gguf_part_name(&stem, &no, name) && no != 1;
}

/* The projector beside a multimodal model is no model. */
static bool is_model(qn_str name)
{
    return qn_str_has_suffix(name, QN_STR(".gguf")) && name.p[0] != '.' &&
           !qn_str_has_prefix(name, QN_STR("mmproj")) && !is_later_part(name);
}

static bool comes_before(const char *a, const char *b) { return !b[0] || strcmp(a, b) < 0; }

qn_code qn_source_find_gguf(bool *found, char *out, size_t cap, const char *dir, qn_err *err)
{
    char first[256] = "", second[256] = "";
    uint32_t n = 0;
    *found = false;
    DIR *d = opendir(dir);
    if (!d) return qn_fail_sys(err, QN_E_IO, errno, "%s", dir);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!is_model(qn_str_z(e->d_name))) continue;
        n++;
        if (comes_before(e->d_name, first)) {
            memcpy(second, first, sizeof second);
            snprintf(first, sizeof first, "%s", e->d_name);
        } else if (comes_before(e->d_name, second)) {
            snprintf(second, sizeof second, "%s", e->d_name);
        }
    }
    closedir(d);
    if (n == 0) return QN_OK;
    if (n > 1)
        return qn_fail(err, QN_E_INVAL,
                       "%s: %u GGUF models, expected one or the name of one: %.*s, %.*s%s", dir, n,
                       SHOWN, first, SHOWN, second, n > 2 ? " ..." : "");
    const int used = snprintf(out, cap, "%s/%s", dir, first);
    if (used < 0 || (size_t)used >= cap)
        return qn_fail(err, QN_E_LIMIT, "path of %s is longer than %zu bytes", first, cap);
    *found = true;
    return QN_OK;
}
