/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - result codes, the error record and the two macros that hide control flow.
 *
 * Three classes of failure: bad input or environment gives a code; a bug of ours trips QN_ASSERT;
 * a kernel cannot fail, because the op layer has checked. `out` parameters come first, `qn_err
 * *err` comes last and may be NULL.
 */
#ifndef QN_BASE_STATUS_H
#define QN_BASE_STATUS_H
#include <stddef.h>
#include <stdint.h>

#include "quern/error.h"

#define QN_NODISCARD __attribute__((warn_unused_result))
#define QN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define QN_NORETURN __attribute__((noreturn))
#define QN_LEN(array) (sizeof(array) / sizeof((array)[0]))

typedef quern_code qn_code; /* by their public names; the short ones are for inside */
typedef quern_error qn_err;

/* A row of errors.def needs a line here; a macro, since an enum of its own would not convert. */
#define QN_OK QUERN_OK
#define QN_E_NOMEM QUERN_E_NOMEM
#define QN_E_INVAL QUERN_E_INVAL
#define QN_E_FORMAT QUERN_E_FORMAT
#define QN_E_NOTFOUND QUERN_E_NOTFOUND
#define QN_E_AGAIN QUERN_E_AGAIN
#define QN_E_IO QUERN_E_IO
#define QN_E_UNSUPPORTED QUERN_E_UNSUPPORTED
#define QN_E_LIMIT QUERN_E_LIMIT
#define QN_E_CANCELLED QUERN_E_CANCELLED
#define QN_E_INTERNAL QUERN_E_INTERNAL
#define QN_E_DENIED QUERN_E_DENIED
#define QN_CODE_COUNT QUERN_CODE_COUNT

/* Fill *err (NULL allowed) and return code, so that a site reads `return qn_fail(...)`. */
qn_code qn_fail(qn_err *err, qn_code code, const char *fmt, ...) QN_PRINTF(3, 4);
/* The same for a failed system call: keeps errno value `sys` and appends its text. */
qn_code qn_fail_sys(qn_err *err, qn_code code, int sys, const char *fmt, ...) QN_PRINTF(4, 5);
/* Put what the caller was doing in front of err->msg; returns code unchanged. */
qn_code qn_wrap(qn_err *err, qn_code code, const char *fmt, ...) QN_PRINTF(3, 4);

/* Prints the expression and its place to stderr and aborts: a fault of ours, never of the input. */
QN_NORETURN void qn_assert_failed(const char *expr, const char *file, int line);
#define QN_ASSERT(cond) ((cond) ? (void)0 : qn_assert_failed(#cond, __FILE__, __LINE__))

#define QN_TRY(call)                          \
    do {                                      \
        const qn_code try_rc_ = (call);       \
        if (try_rc_ != QN_OK) return try_rc_; \
    } while (0)
/* For functions with resources: needs a local `qn_code rc` and a label `out`. */
#define QN_TRY_OUT(call)           \
    do {                           \
        rc = (call);               \
        if (rc != QN_OK) goto out; \
    } while (0)

#endif
