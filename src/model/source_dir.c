/* SPDX-License-Identifier: Apache-2.0 */
/* source_dir.c - the one GGUF model of a directory. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/source.h"

enum { SHOWN = 80 }; /* bytes of a name in a message */

/* "-00002-of-00003.gguf" at the end: a part that its first part stands for. */
static bool is_later_part(qn_str name)
{
    enum { DIGITS = 5, AT_OF = 1 + DIGITS, AT_TOTAL = AT_OF + 4, LEN = AT_TOTAL + DIGITS + 5 };
    if (name.n <= LEN) return false;
    const char *p = name.p + name.n - LEN;
    if (p[0] != '-' || memcmp(p + AT_OF, "-of-", 4) != 0) return false;
    for (int i = 0; i < DIGITS; i++)
        if (p[1 + i] < '0' || p[1 + i] > '9' || p[AT_TOTAL + i] < '0' || p[AT_TOTAL + i] > '9')
            return false;
    return memcmp(p + 1, "00001", DIGITS) != 0;
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
