/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - doubling growth up to the buffer's own maximum. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST = 64 };

void qn_buf_init(qn_buf *b, size_t max) { *b = (qn_buf){.max = max}; }

void qn_buf_fini(qn_buf *b)
{
    qn_free(b->data);
    *b = (qn_buf){.max = b->max};
}

qn_code qn_buf_reserve(qn_buf *b, size_t more, qn_err *err)
{
    size_t need = 0, with_nul = 0;
    if (!qn_add_size(&need, b->len, more) || need > b->max || !qn_add_size(&with_nul, need, 1))
        return qn_fail(err, QN_E_LIMIT, "buffer of %zu bytes cannot take %zu more, limit %zu",
                       b->len, more, b->max);
    if (with_nul <= b->cap) return QN_OK;
    size_t cap = b->cap < FIRST / 2 ? FIRST : b->cap;
    if (b->cap >= FIRST / 2 && !qn_mul_size(&cap, cap, 2)) cap = with_nul;
    if (cap - 1 > b->max) cap = b->max + 1;
    if (cap < with_nul) cap = with_nul;
    uint8_t *data = qn_realloc(b->data, cap);
    if (!data) return qn_fail(err, QN_E_NOMEM, "buffer of %zu bytes", cap);
    data[b->len] = 0;
    b->data = data;
    b->cap = cap;
    return QN_OK;
}

qn_code qn_buf_append(qn_buf *b, const void *bytes, size_t n, qn_err *err)
{
    QN_TRY(qn_buf_reserve(b, n, err));
    if (n) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
    return QN_OK;
}

qn_code qn_buf_append_z(qn_buf *b, const char *text, qn_err *err)
{
    return qn_buf_append(b, text, strlen(text), err);
}

qn_code qn_buf_append_byte(qn_buf *b, uint8_t byte, qn_err *err)
{
    return qn_buf_append(b, &byte, 1, err);
}

qn_code qn_buf_append_zero(qn_buf *b, size_t n, size_t *at, qn_err *err)
{
    QN_TRY(qn_buf_reserve(b, n, err));
    if (at) *at = b->len;
    memset(b->data + b->len, 0, n + 1);
    b->len += n;
    return QN_OK;
}

qn_code qn_buf_printf(qn_buf *b, qn_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) return qn_fail(err, QN_E_INVAL, "text that cannot be formatted");
    QN_TRY(qn_buf_reserve(b, (size_t)n, err));
    va_start(ap, fmt);
    vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return QN_OK;
}

void qn_buf_truncate(qn_buf *b, size_t len)
{
    QN_ASSERT(len <= b->len);
    b->len = len;
    if (b->data) b->data[len] = 0;
}

uint8_t *qn_buf_take(qn_buf *b, size_t *n)
{
    uint8_t *data = b->data;
    if (n) *n = b->len;
    *b = (qn_buf){.max = b->max};
    return data;
}

const char *qn_buf_text(const qn_buf *b) { return b->data ? (const char *)b->data : ""; }
