/* SPDX-License-Identifier: Apache-2.0 */
/* io.c - results to stdout. */
#include <errno.h>
#include <stdarg.h>

#include <string.h>

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

/* Control characters of C0 and C1, DEL, and those that reorder or hide what follows (bidirectional
 * controls): a terminal would act on them. */
static bool is_control(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == QN_UTF8_BAD;
}

/* What stands for such a character. */
static void show(char out[8], uint32_t c)
{
    if (c == QN_UTF8_BAD)
        snprintf(out, 8, "\xEF\xBF\xBD");
    else
        snprintf(out, 8, c < 0x100 ? "\\x%02x" : "\\u%04x", c & 0xffff);
}

void qn_text_shown(FILE *f, const char *bytes, size_t n)
{
    size_t begin = 0, at = 0;
    while (at < n) {
        uint32_t c = 0;
        const size_t len = qn_utf8_step(bytes + at, n - at, &c);
        if (is_control(c)) {
            char shown[8];
            if (at > begin) fwrite(bytes + begin, 1, at - begin, f);
            show(shown, c);
            fputs(shown, f);
            begin = at + len;
        }
        at += len;
    }
    if (at > begin) fwrite(bytes + begin, 1, at - begin, f);
}

size_t qn_text_cell(char *out, size_t cap, const char *text)
{
    size_t used = 0, characters = 0;
    for (size_t at = 0, left = strlen(text); left > 0;) {
        char shown[8];
        uint32_t c = 0;
        const size_t len = qn_utf8_step(text + at, left, &c);
        const bool as_it_is = !is_control(c) && c != '\n' && c != '\t';
        if (!as_it_is) show(shown, c);
        const size_t n = as_it_is ? len : strlen(shown);
        if (used + n >= cap) break;
        memcpy(out + used, as_it_is ? text + at : shown, n);
        used += n;
        characters += as_it_is || c == QN_UTF8_BAD ? 1 : n;
        at += len;
        left -= len;
    }
    out[used] = '\0';
    return characters;
}

void qn_bytes_text(char out[16], uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes / 1000;
    size_t i = 0;
    if (bytes < 1000) {
        snprintf(out, 16, "%u B", (unsigned)bytes);
        return;
    }
    for (; v >= 999.95 && i + 1 < QN_LEN(units); i++) v /= 1000;
    snprintf(out, 16, "%.1f %s", v, units[i]);
}

void qn_io_text(qn_io *io, const char *bytes, size_t n)
{
    if (io->out_is_terminal)
        qn_text_shown(io->out, bytes, n);
    else
        qn_io_write(io, bytes, n);
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
