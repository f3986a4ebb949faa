/* SPDX-License-Identifier: Apache-2.0 */
/* st_header.c - the header of safetensors, read without building a document.
 *
 *     header  { member, ... }
 *     member  "__metadata__": { "key": "value", ... }
 *             "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }
 *
 * The three fields stand in any order, each once, and no other. Numbers are integers without sign,
 * fraction or exponent. Strings are JSON's: valid UTF-8, no raw control characters, whole escapes,
 * paired surrogates; a name holds no NUL.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "format/st_int.h"

static const struct {
    const char *name;
    unsigned bits;
} dtypes[QN_ST_DTYPE_COUNT] = {
#define X(name, bits) {#name, bits},
#include "format/st_dtypes.def"
#undef X
};

const char *qn_st_dtype_name(qn_st_dtype dtype)
{
    return (unsigned)dtype < QN_ST_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

unsigned st_dtype_bits(qn_st_dtype dtype) { return dtypes[dtype].bits; }

bool st_extent(uint64_t *elements, uint64_t *bytes, qn_st_dtype dtype, const uint64_t *dims,
               uint32_t n_dims)
{
    uint64_t n = 1, bits = 0;
    for (uint32_t d = 0; d < n_dims; d++)
        if (__builtin_mul_overflow(n, dims[d], &n)) return false;
    if (__builtin_mul_overflow(n, st_dtype_bits(dtype), &bits) || bits % 8 != 0) return false;
    *elements = n;
    *bytes = bits / 8;
    return true;
}

/* -- tokens ------------------------------------------------------------------------------------ */

static qn_code expected(const st_cursor *c, const char *what, qn_err *err)
{
    char found[24] = "the end";
    if (c->p < c->end) {
        const unsigned char b = (unsigned char)*c->p;
        const char *digits = "0123456789abcdef";
        if (b >= 0x20 && b < 0x7f) {
            memcpy(found, "'.'", 4);
            found[1] = (char)b;
        } else {
            memcpy(found, "byte 0x..", 10);
            found[7] = digits[b >> 4];
            found[8] = digits[b & 15];
        }
    }
    return qn_fail(err, QN_E_FORMAT, "header byte %zu is %s, expected %s",
                   (size_t)(c->p - c->start), found, what);
}

static void skip_space(st_cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool take(st_cursor *c, char wanted)
{
    skip_space(c);
    if (c->p == c->end || *c->p != wanted) return false;
    c->p++;
    return true;
}

/* After a member: ',' goes on, `close` ends; anything else is an error. */
static qn_code more(bool *out, st_cursor *c, char close, qn_err *err)
{
    *out = take(c, ',');
    if (*out || take(c, close)) return QN_OK;
    return expected(c, close == ']' ? "',' or ']'" : "',' or '}'", err);
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* The escape at p (a backslash): its length and code point, 0 when it is broken. */
static size_t escape_at(const char *p, size_t n, uint32_t *cp)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (n < 2) return 0;
    const char *simple = p[1] != '\0' ? strchr(from, p[1]) : NULL;
    if (simple) {
        *cp = (unsigned char)to[simple - from];
        return 2;
    }
    const int high = p[1] == 'u' && n >= 6 ? hex4(p + 2) : -1;
    if (high < 0 || (high >= 0xdc00 && high < 0xe000)) return 0;
    *cp = (uint32_t)high;
    if (high < 0xd800 || high >= 0xe000) return 6;
    const int low = n >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
    if (low < 0xdc00 || low >= 0xe000) return 0;
    *cp = 0x10000 + (((uint32_t)high & 0x3ff) << 10) + ((uint32_t)low & 0x3ff);
    return 12;
}

static qn_code read_string(st_cursor *c, qn_str *raw, qn_err *err)
{
    if (!take(c, '"')) return expected(c, "a string", err);
    const char *start = c->p;
    while (c->p < c->end && *c->p != '"') {
        if ((unsigned char)*c->p < 0x20) return expected(c, "no control character", err);
        uint32_t cp = 0;
        const size_t n = *c->p == '\\' ? escape_at(c->p, (size_t)(c->end - c->p), &cp) : 1;
        if (n == 0) return expected(c, "a whole escape", err);
        c->p += n;
    }
    if (c->p == c->end) return expected(c, "the end of a string", err);
    *raw = qn_str_make(start, (size_t)(c->p - start));
    size_t bad = 0;
    if (!qn_utf8_valid(raw->p, raw->n, &bad)) {
        c->p = start + bad;
        return expected(c, "UTF-8", err);
    }
    c->p++;
    return QN_OK;
}

static qn_code read_uint(st_cursor *c, uint64_t *out, qn_err *err)
{
    uint64_t v = 0;
    skip_space(c);
    const char *start = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*c->p - '0'), &v))
            return expected(c, "a number below 2^64", err);
        c->p++;
    }
    if (c->p == start) return expected(c, "a whole number", err);
    if (*start == '0' && c->p > start + 1) {
        c->p = start;
        return expected(c, "no leading zero", err);
    }
    *out = v;
    return QN_OK;
}

/* -- strings with escapes ---------------------------------------------------------------------- */

qn_code st_unescape(qn_str *out, qn_str raw, qn_arena *arena, qn_err *err)
{
    *out = raw;
    if (raw.n == 0 || !memchr(raw.p, '\\', raw.n)) return QN_OK;
    char *to = qn_arena_push(arena, raw.n, 1); /* an escape is longer than what it stands for */
    if (!to) return qn_fail(err, QN_E_NOMEM, "name of %zu bytes", raw.n);
    size_t n = 0;
    for (size_t at = 0; at < raw.n;) {
        uint32_t cp = 0;
        if (raw.p[at] != '\\') {
            to[n++] = raw.p[at++];
            continue;
        }
        char utf8[4];
        at += escape_at(raw.p + at, raw.n - at, &cp);
        const size_t len = qn_utf8_encode(utf8, cp);
        memcpy(to + n, utf8, len);
        n += len;
    }
    *out = qn_str_make(to, n);
    return QN_OK;
}

/* Does the raw string spell `word`? Escapes may hide it; the words asked for are short. */
static bool spells(qn_str raw, const char *word)
{
    const size_t len = strlen(word);
    size_t n = 0;
    for (size_t at = 0; at < raw.n; n++) {
        uint32_t cp = (unsigned char)raw.p[at];
        at += cp == '\\' ? escape_at(raw.p + at, raw.n - at, &cp) : 1;
        if (n == len || cp != (unsigned char)word[n]) return false;
    }
    return n == len;
}

static bool has_nul(qn_str raw)
{
    for (size_t at = 0; at < raw.n;) {
        uint32_t cp = 1;
        at += raw.p[at] == '\\' ? escape_at(raw.p + at, raw.n - at, &cp) : 1;
        if (cp == 0) return true;
    }
    return false;
}

/* -- members ----------------------------------------------------------------------------------- */

static qn_code read_shape(st_cursor *c, st_info *info, qn_err *err)
{
    if (!take(c, '[')) return expected(c, "'['", err);
    info->shape = c->p - 1;
    info->n_dims = 0;
    bool again = !take(c, ']');
    while (again) {
        uint64_t dim = 0;
        if (info->n_dims == QN_ST_MAX_DIMS)
            return qn_fail(err, QN_E_LIMIT, "shape has more than %d dims", QN_ST_MAX_DIMS);
        QN_TRY(read_uint(c, &dim, err));
        info->n_dims++;
        QN_TRY(more(&again, c, ']', err));
    }
    return QN_OK;
}

void st_read_shape(uint64_t dims[QN_ST_MAX_DIMS], const char *shape)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < QN_ST_MAX_DIMS; d++) dims[d] = 1;
    for (const char *p = shape + 1; *p != ']';) {
        uint64_t v = 0;
        const char *start = p;
        for (; *p >= '0' && *p <= '9'; p++) v = v * 10 + (uint64_t)(*p - '0');
        if (p == start)
            p++; /* space or comma */
        else if (n < QN_ST_MAX_DIMS)
            dims[n++] = v;
    }
}

static qn_code read_offsets(st_cursor *c, st_info *info, qn_err *err)
{
    if (!take(c, '[')) return expected(c, "'['", err);
    QN_TRY(read_uint(c, &info->begin, err));
    if (!take(c, ',')) return expected(c, "','", err);
    QN_TRY(read_uint(c, &info->end, err));
    return take(c, ']') ? QN_OK : expected(c, "']'", err);
}

static qn_code read_dtype(st_cursor *c, st_info *info, qn_err *err)
{
    qn_str raw;
    QN_TRY(read_string(c, &raw, err));
    for (info->dtype = 0; info->dtype < QN_ST_DTYPE_COUNT; info->dtype++)
        if (spells(raw, dtypes[info->dtype].name)) return QN_OK;
    return qn_fail(err, QN_E_FORMAT, "dtype is '%s', which the format does not name",
                   qn_show(raw).text);
}

static qn_code read_tensor(st_cursor *c, st_info *info, qn_err *err)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    qn_code (*const readers[])(st_cursor *, st_info *, qn_err *) = {read_dtype, read_shape,
                                                                    read_offsets};
    unsigned seen = 0;
    bool again = true;
    if (!take(c, '{')) return expected(c, "'{'", err);
    while (again) {
        qn_str key;
        size_t f = 0;
        QN_TRY(read_string(c, &key, err));
        while (f < QN_LEN(fields) && !spells(key, fields[f])) f++;
        if (f == QN_LEN(fields) || (seen & 1u << f) != 0)
            return qn_fail(err, QN_E_FORMAT,
                           "field '%s' is %s; dtype, shape, data_offsets are expected",
                           qn_show(key).text, f == QN_LEN(fields) ? "unknown" : "given twice");
        seen |= 1u << f;
        if (!take(c, ':')) return expected(c, "':'", err);
        const qn_code rc = readers[f](c, info, err);
        if (rc != QN_OK) return qn_wrap(err, rc, "%s", fields[f]);
        QN_TRY(more(&again, c, '}', err));
    }
    for (size_t f = 0; f < QN_LEN(fields); f++)
        if ((seen & 1u << f) == 0)
            return qn_fail(err, QN_E_FORMAT, "field %s is missing", fields[f]);
    return QN_OK;
}

static qn_code read_metadata(st_cursor *c, st_visit_fn *visit, void *ctx, qn_err *err)
{
    if (!take(c, '{')) return expected(c, "'{'", err);
    bool again = !take(c, '}');
    while (again) {
        st_info info = {.is_meta = true};
        QN_TRY(read_string(c, &info.name, err));
        if (has_nul(info.name)) return qn_fail(err, QN_E_FORMAT, "a key holds a NUL");
        if (!take(c, ':')) return expected(c, "':'", err);
        QN_TRY(read_string(c, &info.value, err));
        QN_TRY(visit(ctx, &info, err));
        QN_TRY(more(&again, c, '}', err));
    }
    return QN_OK;
}

qn_code st_scan(const char *text, size_t n, st_visit_fn *visit, void *ctx, qn_err *err)
{
    st_cursor c = {text, text + n, text};
    bool metadata = false;
    if (!take(&c, '{')) return expected(&c, "'{'", err);
    bool again = !take(&c, '}');
    while (again) {
        st_info info = {.is_meta = false};
        QN_TRY(read_string(&c, &info.name, err));
        if (has_nul(info.name)) return qn_fail(err, QN_E_FORMAT, "a tensor name holds a NUL");
        if (!take(&c, ':')) return expected(&c, "':'", err);
        const bool meta = spells(info.name, "__metadata__");
        if (meta && metadata) return qn_fail(err, QN_E_FORMAT, "__metadata__ occurs twice");
        metadata = metadata || meta;
        qn_code rc = meta ? read_metadata(&c, visit, ctx, err) : read_tensor(&c, &info, err);
        if (rc == QN_OK && !meta) rc = visit(ctx, &info, err);
        if (rc != QN_OK)
            return qn_wrap(err, rc, meta ? "%s" : "tensor '%s'", qn_show(info.name).text);
        QN_TRY(more(&again, &c, '}', err));
    }
    skip_space(&c);
    return c.p == c.end ? QN_OK : expected(&c, "the end", err);
}
