/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_write.c - keys and directory are gathered in memory; the first byte of data writes them out.
 *
 * The layout is gguf.c's. A failed call is kept in `failed` and answers all later ones.
 */
#include "format/gguf_write.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "format/format_int.h"
#include "format/stream.h"

typedef unsigned long long ull;

enum { MAX_META = 1 << 30, MAX_TEXTS = 1 << 28, GGUF_VERSION = 3 };

typedef struct planned { /* a tensor that was announced */
    qn_str name;
    uint64_t dims[4], bytes;
    uint32_t type, n_dims;
} planned;

struct qn_gguf_writer {
    qn_stream to;
    qn_buf keys; /* encoded */
    uint64_t n_keys, alignment;
    planned *tensors;
    size_t n_tensors, cap_tensors;
    qn_strmap names; /* "k" or "t" before each */
    qn_arena texts;
    size_t at;     /* tensor whose data is being written */
    uint64_t done; /* bytes of it */
    bool begun, finished;
    qn_err failed; /* code is QN_OK while all went well */
};

qn_code qn_gguf_writer_open(qn_gguf_writer **out, const char *path, qn_err *err)
{
    *out = NULL;
    qn_gguf_writer *w = qn_zalloc(sizeof *w);
    if (!w) return qn_fail(err, QN_E_NOMEM, "gguf writer");
    const qn_code rc = qn_stream_open(&w->to, path, err);
    if (rc != QN_OK) {
        qn_free(w);
        return rc;
    }
    w->alignment = 32;
    qn_buf_init(&w->keys, MAX_META);
    qn_strmap_init(&w->names, 0); /* names come from us */
    qn_arena_init(&w->texts, MAX_TEXTS);
    *out = w;
    return QN_OK;
}

void qn_gguf_writer_close(qn_gguf_writer *w)
{
    if (!w) return;
    qn_stream_drop(&w->to);
    qn_buf_fini(&w->keys);
    qn_strmap_fini(&w->names);
    qn_arena_fini(&w->texts);
    qn_free(w->tensors);
    qn_free(w);
}

/* Keeps the first failure and hands it out again. */
static qn_code ended(qn_gguf_writer *w, qn_code rc, qn_err *err)
{
    if (w->failed.code == QN_OK && rc == QN_OK) return QN_OK;
    if (w->failed.code == QN_OK) w->failed.code = rc;
    if (err) *err = w->failed;
    return w->failed.code;
}

/* Takes a name of its kind; it must be new. Work that follows reports into w->failed. */
static qn_code claim(qn_gguf_writer *w, char kind, qn_str name, qn_err *err)
{
    if (w->begun) return qn_fail(err, QN_E_INVAL, "'%s' comes after data", qn_show(name).text);
    if (name.n == 0 || name.n > UINT16_MAX)
        return qn_fail(err, QN_E_INVAL, "a name of %zu bytes, expected 1 to 65535", name.n);
    char *tagged = qn_arena_push(&w->texts, name.n + 1, 1);
    if (!tagged) return qn_fail(err, QN_E_NOMEM, "'%s'", qn_show(name).text);
    tagged[0] = kind;
    memcpy(tagged + 1, name.p, name.n);
    const qn_str key = qn_str_make(tagged, name.n + 1);
    if (qn_strmap_get(&w->names, key, NULL))
        return qn_fail(err, QN_E_INVAL, "'%s' is given twice", qn_show(name).text);
    return qn_strmap_put(&w->names, key, 0, err);
}

/* -- encoding ---------------------------------------------------------------------------------- */

static qn_code put_uint(qn_buf *b, uint64_t v, unsigned bytes, qn_err *err)
{
    uint8_t le[8];
    for (unsigned i = 0; i < 8; i++) le[i] = (uint8_t)(v >> (8 * i));
    return qn_buf_append(b, le, bytes, err);
}

static qn_code put_text(qn_buf *b, qn_str text, qn_err *err)
{
    QN_TRY(put_uint(b, text.n, 8, err));
    return qn_buf_append(b, text.p, text.n, err);
}

static qn_code begin_key(qn_gguf_writer *w, qn_str key, qn_gguf_type type, qn_err *err)
{
    QN_TRY(claim(w, 'k', key, err));
    QN_TRY(put_text(&w->keys, key, err));
    return put_uint(&w->keys, type, 4, err);
}

/* Bytes of a scalar, 0 for strings and arrays. */
static unsigned scalar_bytes(qn_gguf_type type)
{
    switch (type) {
    case QN_GGUF_U8:
    case QN_GGUF_I8:
    case QN_GGUF_BOOL:
        return 1;
    case QN_GGUF_U16:
    case QN_GGUF_I16:
        return 2;
    case QN_GGUF_U32:
    case QN_GGUF_I32:
    case QN_GGUF_F32:
        return 4;
    case QN_GGUF_U64:
    case QN_GGUF_I64:
    case QN_GGUF_F64:
        return 8;
    default:
        return 0;
    }
}

static qn_code put_items(qn_gguf_writer *w, qn_gguf_type type, const uint8_t *items, uint64_t n,
                         qn_err *err)
{
    const unsigned bytes = scalar_bytes(type);
    if (bytes == 0) return qn_fail(err, QN_E_INVAL, "%s is no scalar", qn_gguf_type_name(type));
    for (uint64_t i = 0; i < n; i++, items += bytes) { /* from this machine's byte order */
        uint64_t v = 0;
        uint32_t v32 = 0;
        uint16_t v16 = 0;
        if (bytes == 8) memcpy(&v, items, 8);
        if (bytes == 4) memcpy(&v32, items, 4);
        if (bytes == 2) memcpy(&v16, items, 2);
        const uint64_t raw = bytes == 8 ? v : bytes == 4 ? v32 : bytes == 2 ? v16 : items[0];
        QN_TRY(put_uint(&w->keys, raw, bytes, err));
    }
    return QN_OK;
}

/* -- keys -------------------------------------------------------------------------------------- */

/* The one key that the writer itself obeys. */
static qn_code obey_alignment(qn_gguf_writer *w, qn_str key, uint64_t v, bool integer, qn_err *err)
{
    if (!qn_str_eq_z(key, "general.alignment")) return QN_OK;
    if (!integer || v < 8 || v > 1 << 20 || (v & (v - 1)) != 0)
        return qn_fail(err, QN_E_INVAL, "general.alignment is %llu, expected a power of two from 8",
                       (ull)v);
    w->alignment = v;
    return QN_OK;
}

static qn_code scalar_key(qn_gguf_writer *w, const char *key, qn_gguf_type type, const void *item,
                          qn_err *err)
{
    const qn_str name = qn_str_z(key);
    QN_TRY(begin_key(w, name, type, err));
    QN_TRY(put_items(w, type, item, 1, err));
    uint32_t v = 0;
    if (type == QN_GGUF_U32) memcpy(&v, item, sizeof v);
    QN_TRY(obey_alignment(w, name, v, type == QN_GGUF_U32, err));
    w->n_keys++;
    return QN_OK;
}

static qn_code array_key(qn_gguf_writer *w, const char *key, qn_gguf_type type, const void *items,
                         uint64_t n, qn_err *err)
{
    QN_TRY(begin_key(w, qn_str_z(key), QN_GGUF_ARRAY, err));
    QN_TRY(put_uint(&w->keys, type, 4, err));
    QN_TRY(put_uint(&w->keys, n, 8, err));
    QN_TRY(put_items(w, type, items, n, err));
    w->n_keys++;
    return QN_OK;
}

static qn_code text_key(qn_gguf_writer *w, const char *key, qn_str text, qn_err *err)
{
    QN_TRY(begin_key(w, qn_str_z(key), QN_GGUF_STRING, err));
    QN_TRY(put_text(&w->keys, text, err));
    w->n_keys++;
    return QN_OK;
}

static qn_code texts_key(qn_gguf_writer *w, const char *key, const qn_str *items, uint64_t n,
                         qn_err *err)
{
    QN_TRY(begin_key(w, qn_str_z(key), QN_GGUF_ARRAY, err));
    QN_TRY(put_uint(&w->keys, QN_GGUF_STRING, 4, err));
    QN_TRY(put_uint(&w->keys, n, 8, err));
    for (uint64_t i = 0; i < n; i++) QN_TRY(put_text(&w->keys, items[i], err));
    w->n_keys++;
    return QN_OK;
}

static qn_code value_key(qn_gguf_writer *w, qn_str key, const qn_gguf_value *v, qn_err *err)
{
    uint64_t u = 0;
    const bool integer = v->type != QN_GGUF_ARRAY && qn_gguf_item_u64(&u, v, 0);
    QN_TRY(begin_key(w, key, v->type, err));
    if (v->type == QN_GGUF_ARRAY) {
        QN_TRY(put_uint(&w->keys, v->item, 4, err));
        QN_TRY(put_uint(&w->keys, v->n, 8, err));
    }
    QN_TRY(qn_buf_append(&w->keys, v->data, v->bytes, err));
    QN_TRY(obey_alignment(w, key, u, integer, err));
    w->n_keys++;
    return QN_OK;
}

qn_code qn_gguf_put_scalar(qn_gguf_writer *w, const char *key, qn_gguf_type type, const void *item,
                           qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, scalar_key(w, key, type, item, &w->failed), err);
}

qn_code qn_gguf_put_array(qn_gguf_writer *w, const char *key, qn_gguf_type type, const void *items,
                          uint64_t n, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, array_key(w, key, type, items, n, &w->failed), err);
}

qn_code qn_gguf_put_str(qn_gguf_writer *w, const char *key, qn_str v, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, text_key(w, key, v, &w->failed), err);
}

qn_code qn_gguf_put_strs(qn_gguf_writer *w, const char *key, const qn_str *items, uint64_t n,
                         qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, texts_key(w, key, items, n, &w->failed), err);
}

qn_code qn_gguf_put_value(qn_gguf_writer *w, qn_str key, const qn_gguf_value *v, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, value_key(w, key, v, &w->failed), err);
}

#define PUT(name, type, id)                                                             \
    qn_code qn_gguf_put_##name(qn_gguf_writer *w, const char *key, type v, qn_err *err) \
    {                                                                                   \
        return qn_gguf_put_scalar(w, key, id, &v, err);                                 \
    }
PUT(u32, uint32_t, QN_GGUF_U32)
PUT(u64, uint64_t, QN_GGUF_U64)
PUT(i32, int32_t, QN_GGUF_I32)
PUT(i64, int64_t, QN_GGUF_I64)
PUT(f32, float, QN_GGUF_F32)
PUT(f64, double, QN_GGUF_F64)
PUT(bool, bool, QN_GGUF_BOOL)

/* -- tensors ----------------------------------------------------------------------------------- */

static qn_code plan_tensor(qn_gguf_writer *w, const char *name, qn_fmt fmt, const uint64_t *dims,
                           uint32_t n_dims, qn_err *err)
{
    planned t = {.dims = {1, 1, 1, 1}, .type = qn_gguf_type_of(fmt), .n_dims = n_dims};
    size_t row = 0;
    if (t.type == UINT32_MAX)
        return qn_fail(err, QN_E_UNSUPPORTED, "tensor '%s': GGUF has no %s", name,
                       fmt < QN_FMT_COUNT ? qn_format_get(fmt)->name : "such format");
    if (n_dims < 1 || n_dims > 4)
        return qn_fail(err, QN_E_INVAL, "tensor '%s' has %u dims, expected 1 to 4", name, n_dims);
    memcpy(t.dims, dims, n_dims * sizeof *dims);
    bool fits = qn_format_row_bytes(&row, fmt, t.dims[0]);
    t.bytes = row;
    for (size_t d = 1; d < 4; d++)
        fits = fits && !__builtin_mul_overflow(t.bytes, t.dims[d], &t.bytes);
    if (!fits || t.bytes > INT64_MAX)
        return qn_fail(err, QN_E_INVAL, "tensor '%s': %llu columns, expected a multiple of %u",
                       name, (ull)t.dims[0], (unsigned)qn_format_get(fmt)->block);
    QN_TRY(claim(w, 't', qn_str_z(name), err));
    t.name.n = strlen(name);
    t.name.p = qn_arena_push_bytes(&w->texts, name, t.name.n);
    if (!t.name.p) return qn_fail(err, QN_E_NOMEM, "tensor '%s'", name);
    if (w->n_tensors == w->cap_tensors) {
        const size_t cap = w->cap_tensors ? 2 * w->cap_tensors : 64;
        planned *more = qn_realloc(w->tensors, cap * sizeof *more);
        if (!more) return qn_fail(err, QN_E_NOMEM, "%zu tensors", cap);
        w->tensors = more;
        w->cap_tensors = cap;
    }
    w->tensors[w->n_tensors++] = t;
    return QN_OK;
}

qn_code qn_gguf_add_tensor(qn_gguf_writer *w, const char *name, qn_fmt fmt, const uint64_t *dims,
                           uint32_t n_dims, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, plan_tensor(w, name, fmt, dims, n_dims, &w->failed), err);
}

static qn_code put_entry(qn_buf *b, const planned *t, uint64_t offset, qn_err *err)
{
    QN_TRY(put_text(b, t->name, err));
    QN_TRY(put_uint(b, t->n_dims, 4, err));
    for (uint32_t d = 0; d < t->n_dims; d++) QN_TRY(put_uint(b, t->dims[d], 8, err));
    QN_TRY(put_uint(b, t->type, 4, err));
    return put_uint(b, offset, 8, err);
}

/* Header, keys, directory and the padding before the data. */
static qn_code begin(qn_gguf_writer *w, qn_err *err)
{
    qn_buf b;
    qn_code rc = QN_OK;
    uint64_t offset = 0;
    if (w->begun) return QN_OK;
    w->begun = true;
    qn_buf_init(&b, MAX_META);
    QN_TRY_OUT(qn_buf_append(&b, "GGUF", 4, err));
    QN_TRY_OUT(put_uint(&b, GGUF_VERSION, 4, err));
    QN_TRY_OUT(put_uint(&b, w->n_tensors, 8, err));
    QN_TRY_OUT(put_uint(&b, w->n_keys, 8, err));
    QN_TRY_OUT(qn_stream_put(&w->to, b.data, b.len, err));
    QN_TRY_OUT(qn_stream_put(&w->to, w->keys.data, w->keys.len, err));
    qn_buf_truncate(&b, 0);
    for (size_t i = 0; i < w->n_tensors; i++) {
        QN_TRY_OUT(put_entry(&b, &w->tensors[i], offset, err));
        offset += (w->tensors[i].bytes + w->alignment - 1) & ~(w->alignment - 1);
    }
    QN_TRY_OUT(qn_stream_put(&w->to, b.data, b.len, err));
    rc = qn_stream_pad(&w->to, w->alignment, err);
out:
    qn_buf_fini(&b);
    return rc;
}

static qn_code write_data(qn_gguf_writer *w, const uint8_t *bytes, size_t n, qn_err *err)
{
    QN_TRY(begin(w, err));
    while (n > 0) {
        while (w->at < w->n_tensors && w->tensors[w->at].bytes == 0) w->at++;
        if (w->at == w->n_tensors)
            return qn_fail(err, QN_E_INVAL, "%zu bytes past the last of %zu tensors", n,
                           w->n_tensors);
        const uint64_t left = w->tensors[w->at].bytes - w->done;
        const size_t piece = n < left ? n : (size_t)left;
        QN_TRY(qn_stream_put(&w->to, bytes, piece, err));
        w->done += piece;
        bytes += piece;
        n -= piece;
        if (piece < left) continue;
        QN_TRY(qn_stream_pad(&w->to, w->alignment, err));
        w->at++;
        w->done = 0;
    }
    return QN_OK;
}

qn_code qn_gguf_write(qn_gguf_writer *w, const void *bytes, size_t n, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, write_data(w, bytes, n, &w->failed), err);
}

static qn_code finish(qn_gguf_writer *w, qn_err *err)
{
    if (w->finished) return qn_fail(err, QN_E_INVAL, "the file is finished already");
    QN_TRY(begin(w, err));
    while (w->at < w->n_tensors && w->tensors[w->at].bytes == 0) w->at++;
    if (w->at < w->n_tensors)
        return qn_fail(err, QN_E_INVAL, "tensor '%s' has %llu of %llu bytes",
                       qn_show(w->tensors[w->at].name).text, (ull)w->done,
                       (ull)w->tensors[w->at].bytes);
    w->finished = true;
    return qn_stream_commit(&w->to, err);
}

qn_code qn_gguf_writer_finish(qn_gguf_writer *w, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, finish(w, &w->failed), err);
}
