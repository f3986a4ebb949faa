/* SPDX-License-Identifier: Apache-2.0 */
/* gguf.c - opening GGUF files and their tensor directory.
 *
 *     file       "GGUF" | u32 version | u64 tensors | u64 keys | keys | directory | pad | data
 *     directory  name | u32 dims | u64 dim each | u32 type | u64 offset into data
 *
 * Invariants once a part is open: every directory entry was read to its end; every tensor lies inside
 * its file, aligned, and overlaps no other; all names of keys and of tensors are unique.
 */
#include "format/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "format/gguf_int.h"

typedef unsigned long long ull;

enum {
    MIN_KEY = 8 + 1 + 4 + 1,        /* bytes: name of one letter, type, one byte */
    MIN_TENSOR = 8 + 1 + 4 + 4 + 8, /* name of one letter, no dims, type, offset */
    MAX_NAME = 1024,                /* of a tensor */
    MAX_ALIGNMENT = 1 << 20,
    PART_SHIFT = 48, /* in tensor_at */
};

static const struct {
    const char *name;
    uint32_t number, block, bytes;
    qn_fmt fmt;
} types[] = {
#define X(number, name, block, bytes, fmt) {#name, number, block, bytes, QN_FMT_##fmt},
#include "format/gguf_types.def"
#undef X
};

static size_t type_index(uint32_t number)
{
    for (size_t i = 0; i < QN_LEN(types); i++)
        if (types[i].number == number) return i;
    return SIZE_MAX;
}

uint32_t qn_gguf_type_of(qn_fmt fmt)
{
    for (size_t i = 0; i < QN_LEN(types) && fmt != QN_FMT_COUNT; i++)
        if (types[i].fmt == fmt) return types[i].number;
    return UINT32_MAX;
}

/* -- header and keys --------------------------------------------------------------------------- */

static qn_code read_version(gguf_part *p, gguf_cursor *c, qn_err *err)
{
    if (gguf_left(c) < 4 || memcmp(c->p, "GGUF", 4) != 0)
        return qn_fail(err, QN_E_FORMAT, "%zu bytes that do not begin with 'GGUF'", p->len);
    c->p += 4;
    if (!gguf_u32(c, &p->version))
        return qn_fail(err, QN_E_FORMAT, "version cut short, the file has %zu bytes", p->len);
    if (p->version != 0 && (p->version & 0xffff) == 0)
        return qn_fail(err, QN_E_UNSUPPORTED, "big-endian GGUF (version field 0x%08x)", p->version);
    if (p->version != 2 && p->version != 3)
        return qn_fail(err, QN_E_UNSUPPORTED, "GGUF version %u, expected 2 or 3", p->version);
    return QN_OK;
}

/* A count is believed only if the least that many entries take is there. */
static qn_code check_count(uint64_t n, size_t least, size_t left, uint64_t most, const char *what,
                           qn_err *err)
{
    if (n > left / least)
        return qn_fail(err, QN_E_FORMAT,
                       "%s count is %llu, but %zu bytes remain and each takes %zu", what, (ull)n,
                       left, least);
    if (n > most)
        return qn_fail(err, QN_E_LIMIT, "%s count is %llu, at most %llu allowed", what, (ull)n,
                       (ull)most);
    return QN_OK;
}

static qn_code read_counts(gguf_part *p, gguf_cursor *c, qn_err *err)
{
    if (!gguf_u64(c, &p->n_tensors) || !gguf_u64(c, &p->n_keys))
        return qn_fail(err, QN_E_FORMAT, "counts cut short, the file has %zu bytes", p->len);
    const size_t left = gguf_left(c);
    QN_TRY(check_count(p->n_tensors, MIN_TENSOR, left, QN_GGUF_MAX_TENSORS, "tensor", err));
    return check_count(p->n_keys, MIN_KEY, left - (size_t)p->n_tensors * MIN_TENSOR,
                       QN_GGUF_MAX_KEYS, "key", err);
}

/* The keys that the container itself obeys. */
static qn_code obey_key(gguf_part *p, qn_str key, const qn_gguf_value *v, qn_err *err)
{
    const struct {
        const char *key;
        uint64_t *to, least, most;
    } known[] = {
        {"general.alignment", &p->alignment, 8, MAX_ALIGNMENT},
        {"split.no", &p->split_no, 0, QN_GGUF_MAX_PARTS - 1},
        {"split.count", &p->split_count, 0, QN_GGUF_MAX_PARTS},
        {"split.tensors.count", &p->split_tensors, 0, QN_GGUF_MAX_TENSORS},
    };
    for (size_t i = 0; i < QN_LEN(known); i++) {
        if (!qn_str_eq_z(key, known[i].key)) continue;
        uint64_t x = 0;
        if (v->type == QN_GGUF_ARRAY || !qn_gguf_item_u64(&x, v, 0))
            return qn_fail(err, QN_E_FORMAT, "key '%s' has type %s, expected an integer",
                           known[i].key, qn_gguf_type_name(v->type));
        if (x < known[i].least || x > known[i].most)
            return qn_fail(err, QN_E_FORMAT, "key '%s' is %llu, expected %llu to %llu",
                           known[i].key, (ull)x, (ull)known[i].least, (ull)known[i].most);
        *known[i].to = x;
    }
    if ((p->alignment & (p->alignment - 1)) != 0)
        return qn_fail(err, QN_E_FORMAT, "key 'general.alignment' is %llu, expected a power of two",
                       (ull)p->alignment);
    return QN_OK;
}

static qn_str key_name(const void *ctx, size_t i) { return qn_gguf_key(ctx, i, NULL); }

/* Checks all keys of a part; those of the first part are indexed. */
static qn_code read_keys(qn_gguf *g, gguf_part *p, gguf_cursor *c, qn_err *err)
{
    const bool first = p == g->parts;
    if (first) {
        g->n_keys = (size_t)p->n_keys;
        g->key_at = qn_calloc(g->n_keys + 1, sizeof *g->key_at);
        if (!g->key_at) return qn_fail(err, QN_E_NOMEM, "index of %zu keys", g->n_keys);
        QN_TRY(qn_names_init(&g->keys, g->n_keys, err));
    }
    for (uint64_t i = 0; i < p->n_keys; i++) {
        qn_str key;
        qn_gguf_value v;
        if (first) g->key_at[i] = (uint64_t)(c->p - p->data);
        const qn_code rc = gguf_next_key(c, &key, &v, err);
        if (rc != QN_OK) return qn_wrap(err, rc, "key %llu of %llu", (ull)(i + 1), (ull)p->n_keys);
        QN_TRY(obey_key(p, key, &v, err));
        if (!first) continue;
        g->key_at[i + 1] = (uint64_t)(c->p - p->data);
        if (qn_names_put(&g->keys, i, g, key_name) != SIZE_MAX)
            return qn_fail(err, QN_E_FORMAT, "key '%s' occurs twice", qn_show(key).text);
    }
    return QN_OK;
}

/* -- directory --------------------------------------------------------------------------------- */

/* Bytes that a tensor of these dims takes; false on overflow or a row that is no whole blocks. */
static bool tensor_bytes(qn_gguf_tensor *t, size_t type)
{
    t->elements = 1;
    for (size_t d = 0; d < 4; d++)
        if (__builtin_mul_overflow(t->elements, t->dims[d], &t->elements)) return false;
    return t->dims[0] % types[type].block == 0 &&
           !__builtin_mul_overflow(t->elements / types[type].block, types[type].bytes, &t->bytes);
}

/* Reads one entry. Offsets stay relative to the data section; data is not set. */
static qn_code next_tensor(gguf_cursor *c, qn_gguf_tensor *t, qn_err *err)
{
    *t = (qn_gguf_tensor){.dims = {1, 1, 1, 1}};
    if (!gguf_text(c, &t->name) || t->name.n == 0 || t->name.n > MAX_NAME)
        return qn_fail(err, QN_E_FORMAT, "name has %zu bytes (%zu remain), expected 1 to %d",
                       t->name.n, gguf_left(c), MAX_NAME);
    if (!gguf_u32(c, &t->n_dims) || t->n_dims > 4)
        return qn_fail(err, QN_E_FORMAT, "'%s' has %u dims (%zu bytes remain), expected 0 to 4",
                       qn_show(t->name).text, t->n_dims, gguf_left(c));
    bool whole = true;
    for (uint32_t d = 0; d < t->n_dims; d++) whole = whole && gguf_u64(c, &t->dims[d]);
    if (!whole || !gguf_u32(c, &t->type) || !gguf_u64(c, &t->offset))
        return qn_fail(err, QN_E_FORMAT, "'%s' cut short, %zu bytes remain", qn_show(t->name).text,
                       gguf_left(c));
    const size_t type = type_index(t->type);
    if (type == SIZE_MAX)
        return qn_fail(err, QN_E_UNSUPPORTED, "'%s' has type %u, which GGUF does not name",
                       qn_show(t->name).text, t->type);
    t->type_name = types[type].name;
    t->fmt = types[type].fmt;
    if (!tensor_bytes(t, type))
        return qn_fail(err, QN_E_FORMAT,
                       "'%s' is %llu x %llu x %llu x %llu of %s: not whole blocks of %u, or beyond "
                       "2^64",
                       qn_show(t->name).text, (ull)t->dims[0], (ull)t->dims[1], (ull)t->dims[2],
                       (ull)t->dims[3], t->type_name, types[type].block);
    return QN_OK;
}

static void read_entry(const qn_gguf *g, size_t i, qn_gguf_tensor *t)
{
    const uint32_t part = (uint32_t)(g->tensor_at[i] >> PART_SHIFT);
    const gguf_part *p = &g->parts[part];
    const uint64_t at = g->tensor_at[i] & (((uint64_t)1 << PART_SHIFT) - 1);
    gguf_cursor c = {p->data + at, p->data + p->len};
    (void)next_tensor(&c, t, NULL); /* it was read before */
    t->part = part;
}

static qn_str tensor_name(const void *ctx, size_t i)
{
    qn_gguf_tensor t;
    read_entry(ctx, i, &t);
    return t.name;
}

static qn_range offset_range(const void *ctx, size_t i)
{
    return (qn_range){((const uint64_t *)ctx)[i], 0};
}

static qn_code check_place(const gguf_part *p, const qn_gguf_tensor *t, qn_err *err)
{
    const uint64_t room = p->len > p->data_at ? p->len - p->data_at : 0;
    if (t->offset % p->alignment != 0)
        return qn_fail(err, QN_E_FORMAT, "'%s' has offset %llu, expected a multiple of %llu",
                       qn_show(t->name).text, (ull)t->offset, (ull)p->alignment);
    if (t->offset > room || t->bytes > room - t->offset)
        return qn_fail(err, QN_E_FORMAT,
                       "'%s' takes %llu bytes at %llu of the data, which has %llu bytes",
                       qn_show(t->name).text, (ull)t->bytes, (ull)t->offset, (ull)room);
    return QN_OK;
}

/* Places and overlaps of the tensors that read_directory has just indexed. */
static qn_code check_tensors(const qn_gguf *g, const gguf_part *p, size_t first, qn_err *err)
{
    const size_t n = g->n_tensors - first;
    qn_code rc = QN_OK;
    qn_gguf_tensor t, last = {.bytes = 0};
    uint64_t *offsets = qn_calloc(n, sizeof *offsets); /* a sort looks at each some forty times */
    uint32_t *order = qn_calloc(n, sizeof *order);
    if (!offsets || !order) {
        rc = qn_fail(err, QN_E_NOMEM, "order of %zu tensors", n);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        read_entry(g, first + i, &t);
        offsets[i] = t.offset;
    }
    qn_ranges_sort(order, n, offsets, offset_range);
    for (size_t i = 0; i < n; i++) {
        read_entry(g, first + order[i], &t);
        QN_TRY_OUT(check_place(p, &t, err));
        if (t.bytes == 0) continue;
        if (last.bytes != 0 && last.offset + last.bytes > t.offset) {
            rc = qn_fail(err, QN_E_FORMAT, "'%s' at %llu overlaps '%s', which ends at %llu",
                         qn_show(t.name).text, (ull)t.offset, qn_show(last.name).text,
                         (ull)(last.offset + last.bytes));
            goto out;
        }
        last = t;
    }
out:
    qn_free(offsets);
    qn_free(order);
    return rc;
}

static qn_code read_directory(qn_gguf *g, gguf_part *p, gguf_cursor *c, qn_err *err)
{
    const size_t first = g->n_tensors, n = (size_t)p->n_tensors;
    const uint64_t part = (uint64_t)(p - g->parts);
    if (first + n > QN_GGUF_MAX_TENSORS)
        return qn_fail(err, QN_E_LIMIT, "%zu tensors in all parts, at most %d allowed", first + n,
                       QN_GGUF_MAX_TENSORS);
    uint64_t *at = qn_realloc(g->tensor_at, (first + n) * sizeof *at);
    if (!at) return qn_fail(err, QN_E_NOMEM, "index of %zu tensors", first + n);
    g->tensor_at = at;
    for (size_t i = 0; i < n; i++) {
        qn_gguf_tensor t;
        at[first + i] = part << PART_SHIFT | (uint64_t)(c->p - p->data);
        const qn_code rc = next_tensor(c, &t, err);
        if (rc != QN_OK) return qn_wrap(err, rc, "tensor %zu of %zu", i + 1, n);
    }
    g->n_tensors = first + n;
    const size_t end = (size_t)(c->p - p->data);
    p->data_at = (end + (size_t)p->alignment - 1) & ~((size_t)p->alignment - 1);
    return n > 0 ? check_tensors(g, p, first, err) : QN_OK;
}

static qn_code index_names(qn_gguf *g, qn_err *err)
{
    const char *path = qn_show_path(g->parts[0].path);
    const qn_code rc = qn_names_init(&g->tensors, g->n_tensors, err);
    if (rc != QN_OK) return qn_wrap(err, rc, "%s", path);
    for (size_t i = 0; i < g->n_tensors; i++)
        if (qn_names_put(&g->tensors, i, g, tensor_name) != SIZE_MAX)
            return qn_fail(err, QN_E_FORMAT, "%s: tensor '%s' occurs twice", path,
                           qn_show(tensor_name(g, i)).text);
    return QN_OK;
}

/* -- parts ------------------------------------------------------------------------------------- */

/* p has data, len and path; the rest is filled. Messages begin with the path. */
static qn_code read_part(qn_gguf *g, gguf_part *p, qn_err *err)
{
    qn_code rc = QN_OK;
    gguf_cursor c = {p->data, p->data + p->len};
    p->alignment = 32;
    p->split_tensors = UINT64_MAX;
    QN_TRY_OUT(read_version(p, &c, err));
    QN_TRY_OUT(read_counts(p, &c, err));
    QN_TRY_OUT(read_keys(g, p, &c, err));
    QN_TRY_OUT(read_directory(g, p, &c, err));
out:
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", qn_show_path(p->path));
}

static char *copy_text(const char *text, size_t n)
{
    char *copy = qn_alloc(n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

/* Adds room for one more part, zeroed; NULL without memory. */
static gguf_part *new_part(qn_gguf *g, const char *path, qn_err *err)
{
    gguf_part *parts = qn_realloc(g->parts, (g->n_parts + 1) * sizeof *parts);
    if (parts) {
        g->parts = parts;
        gguf_part *p = &parts[g->n_parts];
        *p = (gguf_part){.path = copy_text(path, strlen(path))};
        if (p->path) {
            g->n_parts++;
            return p;
        }
    }
    (void)qn_fail(err, QN_E_NOMEM, "%s", qn_show_path(path));
    return NULL;
}

static qn_code open_part(qn_gguf *g, const char *path, qn_err *err)
{
    gguf_part *p = new_part(g, path, err);
    if (!p) return QN_E_NOMEM;
    QN_TRY(qn_map_open(&p->map, path, err));
    p->data = p->map.data;
    p->len = p->map.len;
    return read_part(g, p, err);
}

static void forget_all(qn_gguf *g)
{
    for (size_t i = 0; i < g->n_parts; i++) {
        qn_map_close(&g->parts[i].map);
        qn_free(g->parts[i].path);
    }
    qn_free(g->parts);
    qn_free(g->key_at);
    qn_free(g->tensor_at);
    qn_names_fini(&g->keys);
    qn_names_fini(&g->tensors);
    *g = (qn_gguf){.n_parts = 0};
}

enum { SUFFIX = sizeof "-00001-of-00001.gguf" - 1 };

bool qn_gguf_part_name(size_t *stem, uint32_t *no, qn_str name)
{
    enum { DIGITS = 5, AT_TOTAL = 1 + DIGITS + 4 };
    uint64_t part = 0, total = 0;
    if (name.n <= SUFFIX) return false;
    const qn_str suffix = qn_str_slice(name, name.n - SUFFIX, name.n);
    if (suffix.p[0] != '-' || memcmp(suffix.p + 1 + DIGITS, "-of-", 4) != 0 ||
        !qn_str_has_suffix(suffix, QN_STR(".gguf")) ||
        !qn_str_parse_u64(&part, qn_str_slice(suffix, 1, 1 + DIGITS)) ||
        !qn_str_parse_u64(&total, qn_str_slice(suffix, AT_TOTAL, AT_TOTAL + DIGITS)))
        return false;
    *stem = name.n - SUFFIX;
    *no = (uint32_t)part;
    return true;
}

static void put_suffix(char *to, uint64_t no, uint64_t count)
{
    (void)snprintf(to, SUFFIX + 1, "-%05u-of-%05u.gguf", (unsigned)((no + 1) % 100000),
                   (unsigned)(count % 100000));
}

/* g holds one part of several: opens all of them anew, in order. `path` becomes each one's in turn. */
static qn_code open_all_parts(qn_gguf *g, char *path, qn_err *err)
{
    const gguf_part *opened = &g->parts[0];
    const uint64_t no = opened->split_no, count = opened->split_count,
                   n_tensors = opened->split_tensors;
    char suffix[SUFFIX + 1];
    const size_t len = strlen(path);
    put_suffix(suffix, no, count);
    if (no >= count)
        return qn_fail(err, QN_E_FORMAT, "%s: split.no is %llu, expected below split.count %llu",
                       qn_show_path(path), (ull)no, (ull)count);
    if (len < SUFFIX || memcmp(path + len - SUFFIX, suffix, SUFFIX) != 0)
        return qn_fail(err, QN_E_FORMAT, "%s: part %llu of %llu, so its name must end in %s",
                       qn_show_path(path), (ull)(no + 1), (ull)count, suffix);
    forget_all(g);
    for (uint64_t i = 0; i < count; i++) {
        put_suffix(path + len - SUFFIX, i, count);
        QN_TRY(open_part(g, path, err));
        const gguf_part *p = &g->parts[i];
        if (p->split_no != i || p->split_count != count)
            return qn_fail(err, QN_E_FORMAT, "%s: part %llu of %llu inside, expected %llu of %llu",
                           qn_show_path(path), (ull)(p->split_no + 1), (ull)p->split_count,
                           (ull)(i + 1), (ull)count);
    }
    if (n_tensors != UINT64_MAX && n_tensors != g->n_tensors)
        return qn_fail(err, QN_E_FORMAT,
                       "%s: %zu tensors in all parts, split.tensors.count is %llu",
                       qn_show_path(path), g->n_tensors, (ull)n_tensors);
    return QN_OK;
}

qn_code qn_gguf_open(qn_gguf **out, const char *path, qn_err *err)
{
    qn_code rc = QN_OK;
    char *each = NULL;
    *out = NULL;
    qn_gguf *g = qn_zalloc(sizeof *g); /* all empty, so one label frees any stage of it */
    if (!g) return qn_fail(err, QN_E_NOMEM, "gguf handle");

    QN_TRY_OUT(open_part(g, path, err));
    if (g->parts[0].split_count > 1) {
        each = copy_text(path, strlen(path));
        if (!each) {
            rc = qn_fail(err, QN_E_NOMEM, "%s", qn_show_path(path));
            goto out;
        }
        QN_TRY_OUT(open_all_parts(g, each, err));
    }
    QN_TRY_OUT(index_names(g, err));
    *out = g; /* ownership moves to the caller; out: sees NULL */
    g = NULL;
out:
    qn_free(each);
    qn_gguf_close(g);
    return rc;
}

qn_code qn_gguf_open_bytes(qn_gguf **out, const char *name, const void *data, size_t len,
                           qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    if ((uintptr_t)data % 16 != 0)
        return qn_fail(err, QN_E_INVAL, "%s: data at %p, expected a multiple of 16", name, data);
    qn_gguf *g = qn_zalloc(sizeof *g);
    if (!g) return qn_fail(err, QN_E_NOMEM, "gguf handle");

    gguf_part *p = new_part(g, name, err);
    if (!p) {
        rc = QN_E_NOMEM;
        goto out;
    }
    p->data = data;
    p->len = len;
    QN_TRY_OUT(read_part(g, p, err));
    if (p->split_count > 1) {
        rc = qn_fail(err, QN_E_UNSUPPORTED, "%s: one part of %llu, open it by its path", name,
                     (ull)p->split_count);
        goto out;
    }
    QN_TRY_OUT(index_names(g, err));
    *out = g;
    g = NULL;
out:
    qn_gguf_close(g);
    return rc;
}

void qn_gguf_close(qn_gguf *g)
{
    if (!g) return;
    forget_all(g);
    qn_free(g);
}

uint32_t qn_gguf_version(const qn_gguf *g) { return g->parts[0].version; }
size_t qn_gguf_n_parts(const qn_gguf *g) { return g->n_parts; }
const char *qn_gguf_part_path(const qn_gguf *g, size_t part) { return g->parts[part].path; }

uint64_t qn_gguf_file_bytes(const qn_gguf *g)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < g->n_parts; i++) sum += g->parts[i].len;
    return sum;
}

/* -- tensors ----------------------------------------------------------------------------------- */

size_t qn_gguf_n_tensors(const qn_gguf *g) { return g->n_tensors; }

void qn_gguf_tensor_at(const qn_gguf *g, size_t i, qn_gguf_tensor *out)
{
    read_entry(g, i, out);
    const gguf_part *p = &g->parts[out->part];
    out->offset += p->data_at;
    out->data = p->data + out->offset;
}

bool qn_gguf_find_tensor(const qn_gguf *g, const char *name, qn_gguf_tensor *out)
{
    const size_t i = qn_names_find(&g->tensors, qn_str_z(name), g, tensor_name);
    if (i == SIZE_MAX) return false;
    qn_gguf_tensor_at(g, i, out);
    return true;
}

qn_code qn_gguf_tensor_matrix(qn_matrix *out, const qn_gguf_tensor *t, qn_err *err)
{
    if (t->fmt == QN_FMT_COUNT)
        return qn_fail(err, QN_E_UNSUPPORTED, "tensor '%s' has type %s, which is not supported",
                       qn_show(t->name).text, t->type_name);
    const uint64_t rows = t->dims[0] != 0 ? t->elements / t->dims[0] : 0;
    const qn_code rc = qn_plain_matrix(out, t->fmt, rows, t->dims[0], t->data, err);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "tensor '%s'", qn_show(t->name).text);
}

qn_code qn_gguf_matrix(qn_matrix *out, const qn_gguf *g, const char *name, qn_err *err)
{
    qn_gguf_tensor t;
    if (!qn_gguf_find_tensor(g, name, &t))
        return qn_fail(err, QN_E_NOTFOUND, "%s: no tensor '%s'", qn_show_path(g->parts[0].path),
                       name);
    const qn_code rc = qn_gguf_tensor_matrix(out, &t, err);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", qn_show_path(g->parts[t.part].path));
}

bool qn_gguf_census_next(const qn_gguf *g, size_t *it, qn_gguf_census *out)
{
    for (; *it < QN_LEN(types); (*it)++) {
        qn_gguf_census row = {types[*it].name, types[*it].fmt != QN_FMT_COUNT, 0, 0, 0};
        for (size_t i = 0; i < g->n_tensors; i++) {
            qn_gguf_tensor t;
            read_entry(g, i, &t);
            if (t.type != types[*it].number) continue;
            row.tensors++;
            row.elements += t.elements;
            row.bytes += t.bytes;
        }
        if (row.tensors == 0) continue;
        (*it)++;
        *out = row;
        return true;
    }
    return false;
}
