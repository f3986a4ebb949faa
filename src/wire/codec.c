/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - heads, streams and events; the walker that both readers share is in wire_int.h. */
#include "wire/codec.h"

#include <math.h>
#include <string.h>

#include "wire/wire_int.h"

_Static_assert(sizeof(qn_wire_head) == 16 && sizeof(qn_request) == 184, "no hidden padding");
_Static_assert(sizeof(qn_event_head) == 32 && sizeof(qn_event_token) == 72, "no hidden padding");
_Static_assert(sizeof(qn_event_done) == 72 && sizeof(qn_event_error) == 64, "no hidden padding");

qn_code qn_wire_bad(const qn_walk *w, const char *field, uint64_t found, uint64_t expected)
{
    return qn_fail(w->err, QN_E_FORMAT, "%s: %s is %llu, expected %llu", w->what, field,
                   (unsigned long long)found, (unsigned long long)expected);
}

qn_code qn_wire_range(const qn_walk *w, const char *field, int64_t found, int64_t lo, int64_t hi)
{
    if (found >= lo && found <= hi) return QN_OK;
    return qn_fail(w->err, QN_E_FORMAT, "%s: %s is %lld, expected %lld to %lld", w->what, field,
                   (long long)found, (long long)lo, (long long)hi);
}

qn_code qn_wire_number(const qn_walk *w, const char *field, float found, float lo, float hi)
{
    if (found >= lo && found <= hi) return QN_OK; /* NaN fails both */
    return qn_fail(w->err, QN_E_FORMAT, "%s: %s is %g, expected %g to %g", w->what, field,
                   (double)found, (double)lo, (double)hi);
}

static qn_code check_head(const qn_walk *w, const qn_wire_head *h, uint32_t magic, uint32_t version,
                          uint32_t max_bytes)
{
    if (h->magic != magic) return qn_wire_bad(w, "magic", h->magic, magic);
    if (h->version != version)
        return qn_fail(w->err, QN_E_UNSUPPORTED, "%s: version is %u, expected %u", w->what,
                       h->version, version);
    if (h->bytes > max_bytes)
        return qn_fail(w->err, QN_E_LIMIT, "%s: %u bytes, limit %u", w->what, h->bytes, max_bytes);
    if (h->bytes % QN_WIRE_ALIGN)
        return qn_wire_bad(w, "bytes modulo 8", h->bytes % QN_WIRE_ALIGN, 0);
    if (h->bytes < sizeof *h) return qn_wire_bad(w, "bytes", h->bytes, sizeof *h);
    return QN_OK;
}

qn_code qn_wire_open(qn_walk *w, const void *bytes, size_t n, uint32_t magic, uint32_t version,
                     uint32_t max_bytes)
{
    qn_wire_head h;
    if (n < sizeof h) return qn_wire_bad(w, "length", n, sizeof h);
    if ((uintptr_t)bytes % QN_WIRE_ALIGN)
        return qn_wire_bad(w, "address modulo 8", (uintptr_t)bytes % QN_WIRE_ALIGN, 0);
    memcpy(&h, bytes, sizeof h);
    QN_TRY(check_head(w, &h, magic, version, max_bytes));
    if (h.bytes != n) return qn_wire_bad(w, "bytes", h.bytes, n);
    w->base = bytes;
    w->bytes = h.bytes;
    return QN_OK;
}

qn_code qn_wire_take(qn_walk *w, const char *field, qn_wire_ref ref, size_t size, uint32_t max)
{
    if (ref.n > max)
        return qn_fail(w->err, QN_E_LIMIT, "%s: %u %s, limit %u", w->what, ref.n, field, max);
    if (ref.n == 0) return ref.at == 0 ? QN_OK : qn_wire_bad(w, field, ref.at, 0);
    if (ref.at != w->pos) return qn_wire_bad(w, field, ref.at, w->pos);
    const uint64_t bytes = (uint64_t)ref.n * size; /* both below 2^32 */
    if (bytes > w->bytes - w->pos)
        return qn_fail(w->err, QN_E_FORMAT, "%s: %s of %llu bytes at %u, block of %u", w->what,
                       field, (unsigned long long)bytes, ref.at, w->bytes);
    const uint32_t end = w->pos + (uint32_t)bytes;
    w->pos =
        (end + QN_WIRE_ALIGN - 1) / QN_WIRE_ALIGN * QN_WIRE_ALIGN; /* <= bytes, a multiple of 8 */
    for (uint32_t i = end; i < w->pos; i++)
        if (w->base[i]) return qn_wire_bad(w, "padding", w->base[i], 0);
    return QN_OK;
}

qn_code qn_wire_take_text(qn_walk *w, const char *field, qn_wire_ref ref, uint32_t max)
{
    size_t at = 0;
    QN_TRY(qn_wire_take(w, field, ref, 1, max));
    if (ref.n && !qn_utf8_valid((const char *)w->base + ref.at, ref.n, &at))
        return qn_fail(w->err, QN_E_FORMAT, "%s: %s is not UTF-8 at byte %zu", w->what, field, at);
    return QN_OK;
}

qn_code qn_wire_done(const qn_walk *w)
{
    return w->pos == w->bytes ? QN_OK : qn_wire_bad(w, "bytes", w->bytes, w->pos);
}

qn_code qn_wire_block_bytes(size_t *block_bytes, const void *bytes, size_t n, qn_err *err)
{
    qn_walk w = {.what = "block", .err = err};
    qn_wire_head h;
    *block_bytes = 0;
    if (n < sizeof h) return QN_OK;
    memcpy(&h, bytes, sizeof h);
    if (h.magic == QN_REQUEST_MAGIC)
        QN_TRY(check_head(&w, &h, QN_REQUEST_MAGIC, QN_REQUEST_VERSION, QN_REQUEST_MAX_BYTES));
    else
        QN_TRY(check_head(&w, &h, QN_EVENT_MAGIC, QN_EVENT_VERSION, QN_EVENT_MAX_BYTES));
    *block_bytes = h.bytes;
    return QN_OK;
}

/* Building: a block begins at out->len, which is a multiple of 8, so that its arrays are aligned. */
qn_code qn_wire_start(qn_buf *out, const void *fixed, size_t n, qn_err *err)
{
    if (out->len % QN_WIRE_ALIGN)
        return qn_fail(err, QN_E_INVAL, "wire buffer of %zu bytes, expected a multiple of 8",
                       out->len);
    return qn_buf_append(out, fixed, n, err);
}

qn_code qn_wire_put(qn_buf *out, size_t start, qn_wire_ref *ref, const void *items, size_t n,
                    size_t size, qn_err *err)
{
    size_t bytes = 0;
    *ref = (qn_wire_ref){0, 0};
    if (n == 0) return QN_OK;
    if (n > UINT32_MAX || !qn_mul_size(&bytes, n, size) || out->len - start > UINT32_MAX)
        return qn_fail(err, QN_E_LIMIT, "wire block with an array of %zu items", n);
    *ref = (qn_wire_ref){(uint32_t)(out->len - start), (uint32_t)n};
    QN_TRY(qn_buf_append(out, items, bytes, err));
    return qn_buf_append_zero(out, ((size_t)0 - bytes) & (QN_WIRE_ALIGN - 1), NULL, err);
}

qn_code qn_wire_seal(qn_buf *out, size_t start, uint32_t max_bytes, qn_err *err)
{
    const size_t bytes = out->len - start;
    if (bytes > max_bytes)
        return qn_fail(err, QN_E_LIMIT, "wire block of %zu bytes, limit %u", bytes, max_bytes);
    const uint32_t b = (uint32_t)bytes;
    memcpy(out->data + start + offsetof(qn_wire_head, bytes), &b, sizeof b);
    return QN_OK;
}

qn_code qn_wire_verdict(qn_buf *out, size_t start, qn_code rc, qn_err *err)
{
    if (rc == QN_OK) return rc;
    qn_buf_truncate(out, start);
    if (rc != QN_E_FORMAT) return rc;
    if (err) err->code = QN_E_INVAL; /* the reader's words, but the fault is the caller's */
    return QN_E_INVAL;
}
