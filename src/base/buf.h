/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - a growable byte buffer with a maximum of its own.
 *
 * Behind the last byte there is always a NUL that len does not count, so text needs no copy. A
 * failed call leaves the contents as they were.
 *
 * Owner:  the caller embeds the struct; the buffer owns data until fini or take.
 * Thread: one thread at a time.
 */
#ifndef QN_BASE_BUF_H
#define QN_BASE_BUF_H
#include "base/status.h"

typedef struct qn_buf {
    uint8_t *data;   /* NULL until the first append */
    size_t len, cap; /* bytes in use; bytes allocated, the NUL included */
    size_t max;      /* the most len may become */
} qn_buf;

/* Allocates nothing. max in bytes. */
void qn_buf_init(qn_buf *b, size_t max);
/* A zeroed or finished buffer is fine. */
void qn_buf_fini(qn_buf *b);

/* Room for `more` bytes behind len. Errors: LIMIT past max, NOMEM. */
qn_code qn_buf_reserve(qn_buf *b, size_t more, qn_err *err);
/* Append bytes[0, n); bytes may be NULL if n is 0, and may not lie inside the buffer. Errors as
 * reserve. */
qn_code qn_buf_append(qn_buf *b, const void *bytes, size_t n, qn_err *err);
qn_code qn_buf_append_z(qn_buf *b, const char *text, qn_err *err); /* up to its NUL */
qn_code qn_buf_append_byte(qn_buf *b, uint8_t byte, qn_err *err);
/* Append n zero bytes and set *at to the offset of the first (NULL allowed). */
qn_code qn_buf_append_zero(qn_buf *b, size_t n, size_t *at, qn_err *err);
/* Append formatted text. err stands before fmt because of the variable arguments. */
qn_code qn_buf_printf(qn_buf *b, qn_err *err, const char *fmt, ...) QN_PRINTF(3, 4);

/* Forget the bytes past len (at most the present one); keeps the memory. */
void qn_buf_truncate(qn_buf *b, size_t len);
/* The bytes, owned by the caller (free with qn_free), NUL-terminated, their number in *n (NULL
 * allowed); the buffer is empty again. NULL when nothing was ever allocated: append first. */
QN_NODISCARD uint8_t *qn_buf_take(qn_buf *b, size_t *n);
/* The contents as text; "" when empty; borrowed until the next change. */
const char *qn_buf_text(const qn_buf *b);

#endif
