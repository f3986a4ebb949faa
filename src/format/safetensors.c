/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c - opening safetensors files, their shards, and finding what is in them.
 *
 * A header is scanned twice: once to check and to count, once to fill an index of exactly that size.
 *
 * Invariants once a shard is open: its tensors cover its data from the first to the last byte, each
 * byte once; every shape agrees with its bytes; all names of all shards are unique.
 */
#include "format/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "dep/json.h"
#include "format/st_int.h"

typedef unsigned long long ull;

enum {
    MAX_TEXTS = 1 << 30
}; /* bytes of names that had escapes; the files' sizes bound it before */

/* -- one shard --------------------------------------------------------------------------------- */

static qn_code count_member(void *ctx, const st_info *info, qn_err *err)
{
    qn_st *s = ctx;
    if (info->is_meta && ++s->cap_meta > QN_ST_MAX_META)
        return qn_fail(err, QN_E_LIMIT, "more than %d metadata entries", QN_ST_MAX_META);
    if (!info->is_meta && ++s->cap_entries > QN_ST_MAX_TENSORS)
        return qn_fail(err, QN_E_LIMIT, "more than %d tensors", QN_ST_MAX_TENSORS);
    return QN_OK;
}

static qn_code store_tensor(qn_st *s, const st_info *info, qn_err *err)
{
    const st_shard *shard = &s->shards[s->n_shards - 1];
    uint64_t dims[QN_ST_MAX_DIMS], elements = 0, bytes = 0;
    qn_str name;
    st_read_shape(dims, info->shape);
    if (!st_extent(&elements, &bytes, info->dtype, dims, info->n_dims))
        return qn_fail(err, QN_E_FORMAT, "shape and %s give no whole number of bytes below 2^61",
                       qn_st_dtype_name(info->dtype));
    if (info->begin > info->end || info->end - info->begin != bytes)
        return qn_fail(err, QN_E_FORMAT,
                       "data_offsets are %llu to %llu, shape and %s need %llu bytes",
                       (ull)info->begin, (ull)info->end, qn_st_dtype_name(info->dtype), (ull)bytes);
    QN_TRY(st_unescape(&name, info->name, &s->texts, err));
    s->entries[s->n_entries++] = (st_entry){
        .name = name.p,
        .name_len = (uint32_t)name.n,
        .begin = info->begin,
        .bytes = bytes,
        .shape_at = (uint32_t)(info->shape - (const char *)shard->data),
        .shard = (uint16_t)(s->n_shards - 1),
        .dtype = (uint8_t)info->dtype,
        .n_dims = (uint8_t)info->n_dims,
    };
    return QN_OK;
}

static qn_code store_member(void *ctx, const st_info *info, qn_err *err)
{
    qn_st *s = ctx;
    if (!info->is_meta) return store_tensor(s, info, err);
    st_meta *m = &s->meta[s->n_meta];
    QN_TRY(st_unescape(&m->key, info->name, &s->texts, err));
    QN_TRY(st_unescape(&m->value, info->value, &s->texts, err));
    s->n_meta++;
    return QN_OK;
}

static qn_str meta_name(const void *ctx, size_t i) { return ((const qn_st *)ctx)->meta[i].key; }

/* Drops keys that an earlier shard has; a key twice in one shard is an error. first: this shard's. */
static qn_code unique_meta(qn_st *s, size_t first, qn_err *err)
{
    qn_names names = {NULL, 0, 0};
    const size_t n = s->n_meta;
    qn_code rc = QN_OK;
    if (n == first) return QN_OK;
    QN_TRY(qn_names_init(&names, n, err));
    s->n_meta = 0;
    for (size_t i = 0; i < n; i++) {
        s->meta[s->n_meta] = s->meta[i];
        const size_t same = qn_names_put(&names, s->n_meta, s, meta_name);
        if (same != SIZE_MAX && same >= first && i >= first) {
            rc = qn_fail(err, QN_E_FORMAT, "__metadata__: key '%s' occurs twice",
                         qn_show(s->meta[i].key).text);
            goto out;
        }
        if (same == SIZE_MAX) s->n_meta++;
    }
out:
    qn_names_fini(&names);
    return rc;
}

static qn_code grow_index(qn_st *s, qn_err *err)
{
    st_entry *entries = qn_realloc(s->entries, s->cap_entries * sizeof *entries);
    if (!entries) return qn_fail(err, QN_E_NOMEM, "index of %zu tensors", s->cap_entries);
    s->entries = entries;
    st_meta *meta = qn_realloc(s->meta, s->cap_meta * sizeof *meta);
    if (!meta) return qn_fail(err, QN_E_NOMEM, "%zu metadata entries", s->cap_meta);
    s->meta = meta;
    return QN_OK;
}

typedef struct shard_entries { /* for the sort of one shard's tensors */
    const st_entry *first;
} shard_entries;

static qn_range entry_range(const void *ctx, size_t i)
{
    const st_entry *e = ((const shard_entries *)ctx)->first + i;
    return (qn_range){e->begin, e->bytes};
}

static qn_shown entry_shown(const st_entry *e)
{
    return qn_show(qn_str_make(e->name, e->name_len));
}

/* The data, from its first byte to its last, is the tensors one after the other. */
static qn_code check_cover(const qn_st *s, size_t first, qn_err *err)
{
    const st_shard *shard = &s->shards[s->n_shards - 1];
    const shard_entries se = {s->entries + first};
    const uint64_t room = shard->len - shard->data_at;
    const size_t n = s->n_entries - first;
    uint64_t at = 0;
    qn_code rc = QN_OK;
    uint32_t *order = qn_calloc(n, sizeof *order);
    if (!order) return qn_fail(err, QN_E_NOMEM, "order of %zu tensors", n);
    qn_ranges_sort(order, n, &se, entry_range);
    for (size_t i = 0; i < n && rc == QN_OK; i++) {
        const st_entry *e = se.first + order[i];
        if (e->begin != at)
            rc = qn_fail(err, QN_E_FORMAT, "tensor '%s': data_offsets begin at %llu, expected %llu",
                         entry_shown(e).text, (ull)e->begin, (ull)at);
        else if (e->bytes > room - at)
            rc = qn_fail(err, QN_E_FORMAT,
                         "tensor '%s': data_offsets end at %llu, the data has %llu bytes",
                         entry_shown(e).text, (ull)(e->begin + e->bytes), (ull)room);
        else
            at += e->bytes;
    }
    qn_free(order);
    if (rc == QN_OK && at != room)
        rc = qn_fail(err, QN_E_FORMAT, "tensors end at %llu, the data has %llu bytes", (ull)at,
                     (ull)room);
    return rc;
}

static qn_code read_header(qn_st *s, qn_err *err)
{
    st_shard *shard = &s->shards[s->n_shards - 1];
    const size_t first = s->n_entries, first_meta = s->n_meta;
    uint64_t n = 0;
    if (shard->len < 8)
        return qn_fail(err, QN_E_FORMAT, "%zu bytes, expected 8 for the header's length",
                       shard->len);
    for (size_t i = 0; i < 8; i++) n |= (uint64_t)shard->data[i] << (8 * i);
    if (n > QN_ST_MAX_HEADER)
        return qn_fail(err, QN_E_LIMIT, "header length is %llu, at most %d allowed", (ull)n,
                       QN_ST_MAX_HEADER);
    if (n > shard->len - 8)
        return qn_fail(err, QN_E_FORMAT, "header length is %llu, but %zu bytes remain", (ull)n,
                       shard->len - 8);
    const char *text = (const char *)shard->data + 8;
    shard->data_at = 8 + (size_t)n;
    s->cap_entries = s->n_entries;
    s->cap_meta = s->n_meta;
    QN_TRY(st_scan(text, (size_t)n, count_member, s, err));
    QN_TRY(grow_index(s, err));
    QN_TRY(st_scan(text, (size_t)n, store_member, s, err));
    QN_TRY(unique_meta(s, first_meta, err));
    return check_cover(s, first, err);
}

static char *copy_text(const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = qn_alloc(n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

static st_shard *new_shard(qn_st *s, const char *path, qn_err *err)
{
    st_shard *shards = qn_realloc(s->shards, (s->n_shards + 1) * sizeof *shards);
    if (shards) {
        s->shards = shards;
        shards[s->n_shards] = (st_shard){.path = copy_text(path)};
        if (shards[s->n_shards].path) return &shards[s->n_shards++];
    }
    (void)qn_fail(err, QN_E_NOMEM, "%s", qn_show_path(path));
    return NULL;
}

static qn_code open_shard(qn_st *s, const char *path, qn_err *err)
{
    st_shard *shard = new_shard(s, path, err);
    if (!shard) return QN_E_NOMEM;
    QN_TRY(qn_map_open(&shard->map, path, err));
    shard->data = shard->map.data;
    shard->len = shard->map.len;
    const qn_code rc = read_header(s, err);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", qn_show_path(path));
}

static qn_str entry_name(const void *ctx, size_t i)
{
    const st_entry *e = &((const qn_st *)ctx)->entries[i];
    return qn_str_make(e->name, e->name_len);
}

static qn_code index_names(qn_st *s, qn_err *err)
{
    QN_TRY(qn_names_init(&s->names, s->n_entries, err));
    for (size_t i = 0; i < s->n_entries; i++) {
        if (qn_names_put(&s->names, i, s, entry_name) == SIZE_MAX) continue;
        return qn_fail(err, QN_E_FORMAT, "%s: tensor '%s' occurs twice",
                       qn_show_path(s->shards[s->entries[i].shard].path),
                       entry_shown(&s->entries[i]).text);
    }
    return QN_OK;
}

/* -- several shards ---------------------------------------------------------------------------- */

/* A shard is a plain file name beside the index, so that no index reaches out of its folder. */
static bool is_plain_name(const char *name, size_t n)
{
    return name && n > 0 && n <= 255 && strlen(name) == n && !memchr(name, '/', n) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* folder of path, '/' included, then name; owned. */
static char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0, n = strlen(name) + 1;
    char *out = qn_alloc(folder + n);
    if (!out) return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, name, n);
    return out;
}

/* The shard with this file name, opened if it is new. */
static qn_code shard_named(uint16_t *out, qn_st *s, const char *index, const char *name,
                           qn_err *err)
{
    char *path = beside(index, name);
    if (!path) return qn_fail(err, QN_E_NOMEM, "path of %s", name);
    qn_code rc = QN_OK;
    size_t i = s->n_shards; /* neighbours in the map mostly share a shard: look from the end */
    while (i > 0 && strcmp(s->shards[i - 1].path, path) != 0) i--;
    if (i == 0 && s->n_shards == QN_ST_MAX_SHARDS) {
        rc = qn_fail(err, QN_E_LIMIT, "more than %d shards", QN_ST_MAX_SHARDS);
        goto out;
    }
    if (i == 0) {
        QN_TRY_OUT(open_shard(s, path, err));
        i = s->n_shards;
    }
    *out = (uint16_t)(i - 1);
out:
    qn_free(path);
    return rc;
}

/* Opens every shard of the weight map, then checks that each tensor is where the map says. */
static qn_code open_shards(qn_st *s, const char *index, const qn_json *map, qn_err *err)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    uint16_t shard = 0;
    if (qn_json_type_of(map) != QN_JSON_OBJECT || qn_json_len(map) == 0)
        return qn_fail(err, QN_E_FORMAT, "weight_map is missing, empty or no object");
    while (qn_json_next(map, &it, &key, &value)) {
        size_t n = 0;
        const char *name = qn_json_str(value, &n);
        if (!is_plain_name(name, n))
            return qn_fail(err, QN_E_FORMAT, "weight_map: '%s' lies in '%s', expected a file name",
                           qn_show(qn_str_z(key)).text, qn_show(qn_str_make(name, n)).text);
        QN_TRY(shard_named(&shard, s, index, name, err));
    }
    QN_TRY(index_names(s, err));
    while (qn_json_next(map, &it, &key, &value)) {
        size_t n = 0;
        const char *name = qn_json_str(value, &n);
        QN_TRY(shard_named(&shard, s, index, name, err));
        const size_t i = qn_names_find(&s->names, qn_str_z(key), s, entry_name);
        if (i == SIZE_MAX || s->entries[i].shard != shard)
            return qn_fail(err, QN_E_FORMAT, "weight_map: no tensor '%s' in '%s'",
                           qn_show(qn_str_z(key)).text, name);
    }
    return QN_OK;
}

static qn_code open_index(qn_st *s, const char *path, qn_err *err)
{
    uint8_t *text = NULL;
    qn_json *doc = NULL;
    size_t n = 0;
    qn_code rc = QN_OK;
    QN_TRY(qn_file_read(&text, &n, path, QN_ST_MAX_INDEX, err));
    rc = qn_json_parse(&doc, (const char *)text, n, QN_ST_MAX_INDEX, err);
    if (rc == QN_OK) rc = open_shards(s, path, qn_json_get(doc, "weight_map"), err);
    if (rc != QN_OK) (void)qn_wrap(err, rc, "%s", qn_show_path(path));
    qn_json_free(doc);
    qn_free(text);
    return rc;
}

/* -- the handle -------------------------------------------------------------------------------- */

/* The file a directory stands for; owned. */
static qn_code file_in(char **out, const char *dir, qn_err *err)
{
    static const char *const names[] = {"/model.safetensors", "/model.safetensors.index.json"};
    const size_t len = strlen(dir);
    *out = NULL;
    for (size_t i = 0; i < QN_LEN(names); i++) {
        char *path = qn_alloc(len + strlen(names[i]) + 1);
        if (!path) return qn_fail(err, QN_E_NOMEM, "%s", qn_show_path(dir));
        memcpy(path, dir, len);
        memcpy(path + len, names[i], strlen(names[i]) + 1);
        if (qn_file_exists(path)) {
            *out = path;
            return QN_OK;
        }
        qn_free(path);
    }
    return qn_fail(err, QN_E_NOTFOUND,
                   "%s: neither model.safetensors nor model.safetensors.index.json is there",
                   qn_show_path(dir));
}

static qn_st *new_handle(qn_err *err)
{
    qn_st *s = qn_zalloc(sizeof *s);
    if (s)
        qn_arena_init(&s->texts, MAX_TEXTS);
    else
        (void)qn_fail(err, QN_E_NOMEM, "safetensors handle");
    return s;
}

qn_code qn_st_open(qn_st **out, const char *path, qn_err *err)
{
    struct stat st;
    qn_code rc = QN_OK;
    char *file = NULL;
    *out = NULL;
    qn_st *s = new_handle(err);
    if (!s) return QN_E_NOMEM;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        QN_TRY_OUT(file_in(&file, path, err));
        path = file;
    }
    if (qn_str_has_suffix(qn_str_z(path), QN_STR(".json"))) {
        QN_TRY_OUT(open_index(s, path, err));
    } else {
        QN_TRY_OUT(open_shard(s, path, err));
        QN_TRY_OUT(index_names(s, err));
    }
    *out = s; /* ownership moves to the caller; out: sees NULL */
    s = NULL;
out:
    qn_free(file);
    qn_st_close(s);
    return rc;
}

qn_code qn_st_open_bytes(qn_st **out, const char *name, const void *data, size_t len, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    if ((uintptr_t)data % 16 != 0)
        return qn_fail(err, QN_E_INVAL, "%s: data at %p, expected a multiple of 16", name, data);
    qn_st *s = new_handle(err);
    if (!s) return QN_E_NOMEM;
    st_shard *shard = new_shard(s, name, err);
    if (!shard) {
        rc = QN_E_NOMEM;
        goto out;
    }
    shard->data = data;
    shard->len = len;
    rc = read_header(s, err);
    if (rc != QN_OK) {
        (void)qn_wrap(err, rc, "%s", name);
        goto out;
    }
    QN_TRY_OUT(index_names(s, err));
    *out = s;
    s = NULL;
out:
    qn_st_close(s);
    return rc;
}

void qn_st_close(qn_st *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_shards; i++) {
        qn_map_close(&s->shards[i].map);
        qn_free(s->shards[i].path);
    }
    qn_free(s->shards);
    qn_free(s->entries);
    qn_free(s->meta);
    qn_arena_fini(&s->texts);
    qn_names_fini(&s->names);
    qn_free(s);
}

size_t qn_st_n_shards(const qn_st *s) { return s->n_shards; }
const char *qn_st_shard_path(const qn_st *s, size_t shard) { return s->shards[shard].path; }

uint64_t qn_st_file_bytes(const qn_st *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_shards; i++) sum += s->shards[i].len;
    return sum;
}

size_t qn_st_n_meta(const qn_st *s) { return s->n_meta; }

void qn_st_meta_at(const qn_st *s, size_t i, qn_str *key, qn_str *value)
{
    *key = s->meta[i].key;
    *value = s->meta[i].value;
}

bool qn_st_meta(const qn_st *s, const char *key, qn_str *value)
{
    for (size_t i = 0; i < s->n_meta; i++)
        if (qn_str_eq_z(s->meta[i].key, key)) {
            *value = s->meta[i].value;
            return true;
        }
    return false;
}

/* -- tensors ----------------------------------------------------------------------------------- */

size_t qn_st_n_tensors(const qn_st *s) { return s->n_entries; }

void qn_st_tensor_at(const qn_st *s, size_t i, qn_st_tensor *out)
{
    const st_entry *e = &s->entries[i];
    const st_shard *shard = &s->shards[e->shard];
    *out = (qn_st_tensor){
        .name = entry_name(s, i),
        .dtype = (qn_st_dtype)e->dtype,
        .fmt = e->dtype == QN_ST_F32    ? QN_FMT_F32
               : e->dtype == QN_ST_F16  ? QN_FMT_F16
               : e->dtype == QN_ST_BF16 ? QN_FMT_BF16
                                        : QN_FMT_COUNT,
        .shard = e->shard,
        .n_dims = e->n_dims,
        .offset = shard->data_at + e->begin,
        .bytes = e->bytes,
        .data = shard->data + shard->data_at + e->begin,
    };
    st_read_shape(out->dims, (const char *)shard->data + e->shape_at);
    uint64_t bytes = 0;
    (void)st_extent(&out->elements, &bytes, out->dtype, out->dims, out->n_dims);
}

bool qn_st_find(const qn_st *s, const char *name, qn_st_tensor *out)
{
    const size_t i = qn_names_find(&s->names, qn_str_z(name), s, entry_name);
    if (i == SIZE_MAX) return false;
    qn_st_tensor_at(s, i, out);
    return true;
}
