/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - option structs of any age, and arguments that must be there. */
#include <string.h>

#include "lib/lib_int.h"

qn_code qn_lib_options(void *dst, size_t full, size_t first, const void *src, const char *name,
                       qn_err *err)
{
    size_t size = 0;
    memset(dst, 0, full);
    if (!src) return QN_OK;
    memcpy(&size, src, sizeof size);
    if (size < first)
        return qn_fail(err, QN_E_INVAL, "%s options: size is %zu, expected at least %zu", name,
                       size, first);
    if (size > full && size > 1 << 16)
        return qn_fail(err, QN_E_INVAL, "%s options: size is %zu", name, size);
    for (size_t i = full; i < size; i++)
        if (((const unsigned char *)src)[i] != 0)
            return qn_fail(err, QN_E_UNSUPPORTED,
                           "%s options: byte %zu is set, this library knows %zu bytes", name, i,
                           full);
    memcpy(dst, src, size < full ? size : full);
    return QN_OK;
}

qn_code qn_lib_given(const void *p, const char *name, qn_err *err)
{
    return p ? QN_OK : qn_fail(err, QN_E_INVAL, "%s is missing", name);
}

qn_code qn_lib_path(const char *path, qn_err *err)
{
    QN_TRY(qn_lib_given(path, "path", err));
    return path[0] ? QN_OK : qn_fail(err, QN_E_INVAL, "path is empty");
}
