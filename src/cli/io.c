/* SPDX-License-Identifier: Apache-2.0 */
/* io.c - results to stdout. */
#include <errno.h>
#include <stdarg.h>

#include "base/alloc.h"
#include "cli/cli.h"

void qn_io_print(qn_io *io, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(io->out, fmt, ap);
    va_end(ap);
}

void qn_io_write(qn_io *io, const char *bytes, size_t n)
{
    if (n) fwrite(bytes, 1, n, io->out);
}

qn_code qn_io_flush(qn_io *io, qn_err *err)
{
    errno = 0;
    if (fflush(io->out) != 0 || ferror(io->out))
        return qn_fail_sys(err, QN_E_IO, errno ? errno : EIO, "writing the result");
    return QN_OK;
}

qn_code qn_io_json(qn_io *io, qn_json *value, qn_err *err)
{
    char *text = NULL;
    size_t n = 0;
    const qn_code rc =
        value ? qn_json_dump(&text, &n, value, err) : qn_fail(err, QN_E_NOMEM, "a line of JSON");
    qn_json_free(value);
    if (rc != QN_OK) return rc;
    qn_io_write(io, text, n);
    qn_io_print(io, "\n");
    qn_free(text);
    return qn_io_flush(io, err);
}
