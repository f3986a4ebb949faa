/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - the error record; texts come from errors.def. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return code;
}

qn_code qn_fail_sys(qn_err *err, qn_code code, int sys, const char *fmt, ...)
{
    if (!err) return code;
    va_list ap;
    char text[128] = "";
    va_start(ap, fmt);
    err->code = code;
    err->sys = sys;
    const int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    const char *what = strerror_r(sys, text, sizeof text); /* GNU's: may leave text alone */
    if (n >= 0 && (size_t)n + 3 < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", what);
    return code;
}

qn_code qn_wrap(qn_err *err, qn_code code, const char *fmt, ...)
{
    if (!err) return code;
    char old[sizeof err->msg];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    if (n < 0)
        memcpy(err->msg, old, sizeof old);
    else if ((size_t)n + 3 < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %.*s",
                 (int)(sizeof err->msg - (size_t)n - 3), old);
    err->code = code;
    return code;
}

void qn_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "quern: %s:%d: fault: %s\n", file, line, expr);
    abort();
}
