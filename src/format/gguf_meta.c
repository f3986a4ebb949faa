/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_meta.c - GGUF metadata: checking values, finding keys, typed reads, walking arrays.
 *
 *     key    u64 length | bytes
 *     value  u32 type | payload
 *     array  u32 type of elements | u64 count | elements without types of their own
 *
 * Values are checked once, when the file is opened (gguf_next_key); the reads below trust bounds they
 * can recompute and nothing else.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "format/gguf_int.h"

static const struct {
    const char *name;
    unsigned bytes; /* 0: not of fixed size */
} types[QN_GGUF_TYPE_COUNT] = {
    [QN_GGUF_U8] = {"u8", 1},       [QN_GGUF_I8] = {"i8", 1},     [QN_GGUF_U16] = {"u16", 2},
    [QN_GGUF_I16] = {"i16", 2},     [QN_GGUF_U32] = {"u32", 4},   [QN_GGUF_I32] = {"i32", 4},
    [QN_GGUF_F32] = {"f32", 4},     [QN_GGUF_BOOL] = {"bool", 1}, [QN_GGUF_STRING] = {"string", 0},
    [QN_GGUF_ARRAY] = {"array", 0}, [QN_GGUF_U64] = {"u64", 8},   [QN_GGUF_I64] = {"i64", 8},
    [QN_GGUF_F64] = {"f64", 8},
};

const char *qn_gguf_type_name(qn_gguf_type type)
{
    return (unsigned)type < QN_GGUF_TYPE_COUNT ? types[type].name : "?";
}

/* -- bytes ------------------------------------------------------------------------------------- */

static uint64_t load(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

bool gguf_u32(gguf_cursor *c, uint32_t *out)
{
    if (gguf_left(c) < 4) return false;
    *out = (uint32_t)load(c->p, 4);
    c->p += 4;
    return true;
}

bool gguf_u64(gguf_cursor *c, uint64_t *out)
{
    if (gguf_left(c) < 8) return false;
    *out = load(c->p, 8);
    c->p += 8;
    return true;
}

bool gguf_text(gguf_cursor *c, qn_str *out)
{
    gguf_cursor at = *c;
    uint64_t n = 0;
    if (!gguf_u64(&at, &n) || n > gguf_left(&at)) return false;
    *out = qn_str_make((const char *)at.p, (size_t)n);
    c->p = at.p + n;
    return true;
}

/* -- checking ---------------------------------------------------------------------------------- */

static qn_code short_of(qn_err *err, const char *what, uint64_t found, uint64_t least, size_t left)
{
    return qn_fail(err, QN_E_FORMAT, "%s %llu needs %llu bytes or more, %zu remain", what,
                   (unsigned long long)found, (unsigned long long)least, left);
}

/* Moves past the payload of a value of `type` and describes it in *v. */
static qn_code pass_value(gguf_cursor *c, uint32_t type, unsigned depth, qn_gguf_value *v,
                          qn_err *err);

static qn_code pass_array(gguf_cursor *c, unsigned depth, qn_gguf_value *v, qn_err *err)
{
    uint32_t item = 0;
    if (!gguf_u32(c, &item) || !gguf_u64(c, &v->n))
        return qn_fail(err, QN_E_FORMAT, "array header cut short, %zu bytes remain", gguf_left(c));
    if (item >= QN_GGUF_TYPE_COUNT)
        return qn_fail(err, QN_E_FORMAT, "array element type is %u, expected below %d", item,
                       QN_GGUF_TYPE_COUNT);
    if (depth == QN_GGUF_MAX_NEST)
        return qn_fail(err, QN_E_LIMIT, "arrays nest deeper than %d", QN_GGUF_MAX_NEST);
    v->item = (qn_gguf_type)item;
    v->data = c->p;
    /* the least an element takes: its bytes, a string's length, an array's header */
    const unsigned least = item == QN_GGUF_STRING  ? 8
                           : item == QN_GGUF_ARRAY ? 12
                                                   : types[item].bytes;
    if (v->n > gguf_left(c) / least)
        return qn_fail(err, QN_E_FORMAT, "array count is %llu, but %zu bytes remain",
                       (unsigned long long)v->n, gguf_left(c));
    if (types[item].bytes != 0 && item != QN_GGUF_BOOL) {
        c->p += v->n * types[item].bytes;
    } else {
        qn_gguf_value inner;
        for (uint64_t i = 0; i < v->n; i++) QN_TRY(pass_value(c, item, depth + 1, &inner, err));
    }
    v->bytes = (size_t)(c->p - v->data);
    return QN_OK;
}

static qn_code pass_value(gguf_cursor *c, uint32_t type, unsigned depth, qn_gguf_value *v,
                          qn_err *err)
{
    if (type >= QN_GGUF_TYPE_COUNT)
        return qn_fail(err, QN_E_FORMAT, "value type is %u, expected below %d", type,
                       QN_GGUF_TYPE_COUNT);
    *v = (qn_gguf_value){.type = (qn_gguf_type)type, .item = (qn_gguf_type)type, .n = 1};
    v->data = c->p;
    v->bytes = types[type].bytes;
    if (type == QN_GGUF_ARRAY) return pass_array(c, depth, v, err);
    if (type == QN_GGUF_STRING) {
        qn_str text;
        uint64_t n = 0;
        if (!gguf_text(c, &text)) {
            const size_t left = gguf_left(c);
            return gguf_u64(c, &n) ? short_of(err, "string length", n, n, left - 8)
                                   : short_of(err, "string", 0, 8, left);
        }
        v->bytes = (size_t)(c->p - v->data);
        return QN_OK;
    }
    if (gguf_left(c) < v->bytes)
        return qn_fail(err, QN_E_FORMAT, "%s value cut short, %zu bytes remain", types[type].name,
                       gguf_left(c));
    if (type == QN_GGUF_BOOL && c->p[0] > 1)
        return qn_fail(err, QN_E_FORMAT, "bool value is %u, expected 0 or 1", (unsigned)c->p[0]);
    c->p += v->bytes;
    return QN_OK;
}

qn_code gguf_next_key(gguf_cursor *c, qn_str *key, qn_gguf_value *value, qn_err *err)
{
    uint32_t type = 0;
    if (!gguf_text(c, key))
        return qn_fail(err, QN_E_FORMAT, "key name cut short, %zu bytes remain", gguf_left(c));
    if (key->n == 0 || key->n > UINT16_MAX)
        return qn_fail(err, QN_E_FORMAT, "key name has %zu bytes, expected 1 to 65535", key->n);
    if (!gguf_u32(c, &type))
        return qn_fail(err, QN_E_FORMAT, "key '%s': no type, %zu bytes remain", qn_show(*key).text,
                       gguf_left(c));
    const qn_code rc = pass_value(c, type, 0, value, err);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "key '%s'", qn_show(*key).text);
}

/* -- finding ----------------------------------------------------------------------------------- */

size_t qn_gguf_n_keys(const qn_gguf *g) { return g->n_keys; }

qn_str qn_gguf_key(const qn_gguf *g, size_t i, qn_gguf_value *value)
{
    const gguf_part *p = &g->parts[0];
    gguf_cursor c = {p->data + g->key_at[i], p->data + g->key_at[i + 1]};
    qn_gguf_value v = {.n = 1};
    qn_str key = {NULL, 0};
    uint32_t type = 0, item = 0;
    if (!gguf_text(&c, &key)) return key;
    if (!value || !gguf_u32(&c, &type)) return key;
    v.type = v.item = (qn_gguf_type)type;
    if (type == QN_GGUF_ARRAY && gguf_u32(&c, &item) && gguf_u64(&c, &v.n))
        v.item = (qn_gguf_type)item;
    v.data = c.p;
    v.bytes = gguf_left(&c);
    *value = v;
    return key;
}

static qn_str key_name(const void *ctx, size_t i) { return qn_gguf_key(ctx, i, NULL); }

bool qn_gguf_find(const qn_gguf *g, const char *key, qn_gguf_value *out)
{
    const size_t i = qn_names_find(&g->keys, qn_str_z(key), g, key_name);
    if (i == SIZE_MAX) return false;
    (void)qn_gguf_key(g, i, out);
    return true;
}

/* -- elements ---------------------------------------------------------------------------------- */

/* Element i as one of three: a non-negative integer, a negative one, a float. */
typedef struct number {
    enum { NOT_NEGATIVE, NEGATIVE, REAL } kind;
    uint64_t u;
    int64_t i;
    double f;
} number;

static bool number_at(number *out, const qn_gguf_value *v, uint64_t i)
{
    if ((unsigned)v->item >= QN_GGUF_TYPE_COUNT || i >= v->n) return false;
    const unsigned bytes = types[v->item].bytes;
    if (bytes == 0 || v->item == QN_GGUF_BOOL || i >= v->bytes / bytes) return false;
    const uint64_t raw = load(v->data + i * bytes, bytes);
    const uint32_t low = (uint32_t)raw;
    float f = 0;
    *out = (number){.kind = NOT_NEGATIVE, .u = raw};
    switch (v->item) {
    case QN_GGUF_I8:
        out->i = (int8_t)raw;
        break;
    case QN_GGUF_I16:
        out->i = (int16_t)raw;
        break;
    case QN_GGUF_I32:
        out->i = (int32_t)raw;
        break;
    case QN_GGUF_I64:
        out->i = (int64_t)raw;
        break;
    case QN_GGUF_F32:
        memcpy(&f, &low, sizeof f);
        out->f = (double)f;
        out->kind = REAL;
        break;
    case QN_GGUF_F64:
        memcpy(&out->f, &raw, sizeof out->f);
        out->kind = REAL;
        break;
    default:
        break;
    }
    if (out->i < 0) out->kind = NEGATIVE;
    return true;
}

bool qn_gguf_item_u64(uint64_t *out, const qn_gguf_value *v, uint64_t i)
{
    number x;
    if (!number_at(&x, v, i) || x.kind != NOT_NEGATIVE) return false;
    *out = x.u;
    return true;
}

bool qn_gguf_item_i64(int64_t *out, const qn_gguf_value *v, uint64_t i)
{
    number x;
    if (!number_at(&x, v, i) || x.kind == REAL || (x.kind == NOT_NEGATIVE && x.u > INT64_MAX))
        return false;
    *out = x.kind == NEGATIVE ? x.i : (int64_t)x.u;
    return true;
}

bool qn_gguf_item_f64(double *out, const qn_gguf_value *v, uint64_t i)
{
    number x;
    if (!number_at(&x, v, i)) return false;
    *out = x.kind == REAL ? x.f : x.kind == NEGATIVE ? (double)x.i : (double)x.u;
    return true;
}

bool qn_gguf_item_bool(bool *out, const qn_gguf_value *v, uint64_t i)
{
    if (v->item != QN_GGUF_BOOL || i >= v->n || i >= v->bytes) return false;
    *out = v->data[i] != 0;
    return true;
}

qn_gguf_iter qn_gguf_items(const qn_gguf_value *v)
{
    return (qn_gguf_iter){v->item, v->n, v->data, v->data + v->bytes};
}

bool qn_gguf_next(qn_gguf_iter *it, qn_gguf_value *out)
{
    gguf_cursor c = {it->at, it->end};
    qn_gguf_value v;
    if (it->left == 0 || pass_value(&c, it->item, 0, &v, NULL) != QN_OK) return false;
    it->left--;
    it->at = c.p;
    *out = v;
    return true;
}

bool qn_gguf_next_str(qn_gguf_iter *it, qn_str *out)
{
    gguf_cursor c = {it->at, it->end};
    if (it->left == 0 || it->item != QN_GGUF_STRING || !gguf_text(&c, out)) return false;
    it->left--;
    it->at = c.p;
    return true;
}

/* -- typed reads ------------------------------------------------------------------------------- */

static qn_code required(qn_gguf_value *v, const qn_gguf *g, const char *key, qn_err *err)
{
    if (qn_gguf_find(g, key, v)) return QN_OK;
    return qn_fail(err, QN_E_NOTFOUND, "%s: no key '%s'", qn_show_path(g->parts[0].path), key);
}

/* Says what stands there instead of what was asked for. */
static qn_code mismatch(const qn_gguf *g, const char *key, const qn_gguf_value *v, const char *want,
                        qn_err *err)
{
    number x = {.kind = REAL};
    const char *path = qn_show_path(g->parts[0].path), *type = types[v->type].name;
    if (v->type == QN_GGUF_ARRAY)
        return qn_fail(err, QN_E_FORMAT, "%s: key '%s' is an array of %llu %s, expected %s", path,
                       key, (unsigned long long)v->n, types[v->item].name, want);
    if (!number_at(&x, v, 0))
        return qn_fail(err, QN_E_FORMAT, "%s: key '%s' is a %s, expected %s", path, key, type,
                       want);
    double f = 0;
    (void)qn_gguf_item_f64(&f, v, 0);
    return qn_fail(err, QN_E_FORMAT, "%s: key '%s' is %s %.17g, expected %s", path, key, type, f,
                   want);
}

/* A scalar is what the typed reads want; an array of one is not. */
static bool is_scalar(const qn_gguf_value *v) { return v->type != QN_GGUF_ARRAY; }

qn_code qn_gguf_get_u64(uint64_t *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    QN_TRY(required(&v, g, key, err));
    if (is_scalar(&v) && qn_gguf_item_u64(out, &v, 0)) return QN_OK;
    return mismatch(g, key, &v, "an integer from 0", err);
}

qn_code qn_gguf_get_u32(uint32_t *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    uint64_t x = 0;
    QN_TRY(required(&v, g, key, err));
    if (!is_scalar(&v) || !qn_gguf_item_u64(&x, &v, 0) || x > UINT32_MAX)
        return mismatch(g, key, &v, "an integer from 0 to 4294967295", err);
    *out = (uint32_t)x;
    return QN_OK;
}

qn_code qn_gguf_get_i64(int64_t *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    QN_TRY(required(&v, g, key, err));
    if (is_scalar(&v) && qn_gguf_item_i64(out, &v, 0)) return QN_OK;
    return mismatch(g, key, &v, "a signed 64-bit integer", err);
}

qn_code qn_gguf_get_f64(double *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    QN_TRY(required(&v, g, key, err));
    if (is_scalar(&v) && qn_gguf_item_f64(out, &v, 0)) return QN_OK;
    return mismatch(g, key, &v, "a number", err);
}

qn_code qn_gguf_get_f32(float *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    double x = 0;
    QN_TRY(required(&v, g, key, err));
    if (!is_scalar(&v) || !qn_gguf_item_f64(&x, &v, 0) ||
        (isfinite(x) && fabs(x) > (double)FLT_MAX))
        return mismatch(g, key, &v, "a number in the range of f32", err);
    *out = (float)x;
    return QN_OK;
}

qn_code qn_gguf_get_bool(bool *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    QN_TRY(required(&v, g, key, err));
    if (is_scalar(&v) && qn_gguf_item_bool(out, &v, 0)) return QN_OK;
    return mismatch(g, key, &v, "a bool", err);
}

qn_code qn_gguf_get_str(qn_str *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    QN_TRY(required(&v, g, key, err));
    qn_gguf_iter it = qn_gguf_items(&v);
    if (v.type == QN_GGUF_STRING && qn_gguf_next_str(&it, out)) return QN_OK;
    return mismatch(g, key, &v, "a string", err);
}

qn_code qn_gguf_get_array(qn_gguf_value *out, const qn_gguf *g, const char *key, qn_gguf_type item,
                          qn_err *err)
{
    qn_gguf_value v;
    QN_TRY(required(&v, g, key, err));
    if (v.type != QN_GGUF_ARRAY || (item != QN_GGUF_TYPE_COUNT && v.item != item))
        return mismatch(g, key, &v, "an array of the right type", err);
    *out = v;
    return QN_OK;
}

#define OPTIONAL(name, type)                                                                \
    qn_code qn_gguf_opt_##name(type *out, const qn_gguf *g, const char *key, type fallback, \
                               qn_err *err)                                                 \
    {                                                                                       \
        if (qn_gguf_find(g, key, NULL)) return qn_gguf_get_##name(out, g, key, err);        \
        *out = fallback;                                                                    \
        return QN_OK;                                                                       \
    }
OPTIONAL(u32, uint32_t)
OPTIONAL(i64, int64_t)
OPTIONAL(f32, float)
OPTIONAL(bool, bool)
OPTIONAL(str, qn_str)
