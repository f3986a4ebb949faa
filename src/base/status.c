/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - the error record; texts come from errors.def. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const struct {
    const char *name, *text;
    int http, exit;
    bool retry;
} rows[QUERN_CODE_COUNT] = {
    {"OK", "success", 200, 0, false},
#define X(name, http, exit, retry, text) {#name, text, http, exit, retry},
#include "quern/errors.def"
#undef X
};

static bool known(quern_code code) { return (unsigned)code < (unsigned)QUERN_CODE_COUNT; }

const char *quern_code_name(quern_code code) { return known(code) ? rows[code].name : "?"; }
const char *quern_code_text(quern_code code) { return known(code) ? rows[code].text : "?"; }
int quern_code_http(quern_code code) { return known(code) ? rows[code].http : 500; }
int quern_code_exit(quern_code code) { return known(code) ? rows[code].exit : 70; }
bool quern_code_retryable(quern_code code) { return known(code) && rows[code].retry; }

/* Messages quote files and requests, and end in terminals and logs: what is no printable character
 * becomes '?', and a character that the end of the record cut goes. */
static void clean(char *msg)
{
    size_t n = strlen(msg), step = 0;
    msg[n - qn_utf8_partial_tail(msg, n)] = '\0';
    n = strlen(msg);
    for (size_t i = 0; i < n; i += step) {
        uint32_t cp = 0;
        step = qn_utf8_step(msg + i, n - i, &cp);
        if (cp == QN_UTF8_BAD || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) memset(msg + i, '?', step);
    }
}

/* "first: second" into the record. Where both do not fit, the first gives way down to half of it. */
static void join(qn_err *err, const char *first, const char *second)
{
    const size_t whole = sizeof err->msg - 1, n = strlen(second) + 2;
    const size_t most = n < whole / 2 ? whole - n : whole - whole / 2;
    const size_t keep = strlen(first) < most ? strlen(first) : most;
    const size_t rest = n - 2 < whole - keep - 2 ? n - 2 : whole - keep - 2;
    memcpy(err->msg, first, keep);
    memcpy(err->msg + keep, ": ", 2);
    memcpy(err->msg + keep + 2, second, rest);
    err->msg[keep + 2 + rest] = '\0';
    clean(err->msg);
}

qn_code qn_fail(qn_err *err, qn_code code, const char *fmt, ...)
{
    if (!err) return code;
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    err->sys = 0;
    if (vsnprintf(err->msg, sizeof err->msg, fmt, ap) <= 0)
        snprintf(err->msg, sizeof err->msg, "%s", quern_code_text(code));
    va_end(ap);
    clean(err->msg);
    return code;
}

qn_code qn_fail_sys(qn_err *err, qn_code code, int sys, const char *fmt, ...)
{
    if (!err) return code;
    va_list ap;
    char text[128] = "", first[sizeof err->msg] = "";
    va_start(ap, fmt);
    err->code = code;
    err->sys = sys;
    (void)vsnprintf(first, sizeof first, fmt, ap);
    va_end(ap);
    join(err, first, strerror_r(sys, text, sizeof text)); /* GNU's: may leave text alone */
    return code;
}

qn_code qn_wrap(qn_err *err, qn_code code, const char *fmt, ...)
{
    if (!err) return code;
    char old[sizeof err->msg], first[sizeof err->msg] = "";
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(first, sizeof first, fmt, ap);
    va_end(ap);
    join(err, first, old);
    err->code = code;
    return code;
}

void qn_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "quern: %s:%d: fault: %s\n", file, line, expr);
    abort();
}
