/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_test.c - reading safetensors: headers of every shape, shards, matrices, affine triples,
 * and files that lie. */
#include "format/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "bytes.h"
#include "qt.h"

static bytes *st_file(const char *header, size_t data_bytes)
{
    bytes *b = calloc(1, sizeof *b);
    if (!b) abort();
    put_u64(b, strlen(header));
    put(b, header, strlen(header));
    for (size_t i = 0; i < data_bytes; i++) put_u(b, i % 251, 1);
    return b;
}

/* The same with spaces behind the header, so that data begins at a multiple of 16. */
static bytes *st_padded(const char *header, size_t data_bytes)
{
    char padded[1024];
    size_t n = strlen(header);
    if (n + 17 > sizeof padded) abort();
    memcpy(padded, header, n);
    while ((n + 8) % 16 != 0) padded[n++] = ' ';
    padded[n] = '\0';
    return st_file(padded, data_bytes);
}

/* Opens under a ceiling of the file's size and 1 MiB; the ceiling must not be what stops it. */
static qn_code open_bounded(qt *t, qn_st **out, const uint8_t *p, size_t n, qn_err *err)
{
    const size_t refused = qn_alloc_refused();
    *err = (qn_err){.code = QN_OK};
    qn_alloc_set_ceiling(qn_alloc_live_bytes() + n + (1 << 20));
    const qn_code rc = qn_st_open_bytes(out, "hostile.safetensors", p, n, err);
    qn_alloc_set_ceiling(SIZE_MAX);
    QT_OK(t, (rc == QN_OK) == (*out != NULL));
    QT_EQ(t, qn_alloc_refused(), refused);
    return rc;
}

static qn_st *open_ok(qt *t, const bytes *b)
{
    qn_st *s = NULL;
    qn_err err;
    QT_OKF(t, open_bounded(t, &s, b->p, b->n, &err) == QN_OK, "%s", err.msg);
    return s;
}

static void refuses(qt *t, const char *header, size_t data_bytes, qn_code want, const char *say)
{
    bytes *b = st_file(header, data_bytes);
    qn_st *s = NULL;
    qn_err err;
    const size_t live = qn_alloc_live();
    const qn_code rc = open_bounded(t, &s, b->p, b->n, &err);
    QT_OKF(t, rc == want, "%.60s: %d %s", header, (int)rc, err.msg);
    QT_OKF(t, strstr(err.msg, "hostile.safetensors") && strstr(err.msg, say),
           "%.60s: \"%s\" lacks \"%s\"", header, err.msg, say);
    qn_st_close(s);
    QT_EQ(t, qn_alloc_live(), live);
    free(b);
}

/* -- reading ----------------------------------------------------------------------------------- */

static void reads_tensors_and_metadata(qt *t)
{
    bytes *b = st_file(" {\"__metadata__\":{\"format\":\"pt\",\"k\":\"\"}, \"b\" : "
                       "{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},\n"
                       "\"a\":{\"data_offsets\":[0,8],\"shape\":[ 2 ],\"dtype\":\"F32\"},"
                       "\"s\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[20,21]},"
                       "\"z\":{\"dtype\":\"F64\",\"shape\":[4,0],\"data_offsets\":[8,8]}}   ",
                       21);
    qn_st *s = open_ok(t, b);
    qn_st_tensor x;
    qn_str key, value;
    const uint8_t *data = b->p + b->n - 21;
    QT_OK(t, qn_st_n_tensors(s) == 4 && qn_st_n_meta(s) == 2 && qn_st_n_shards(s) == 1);
    qn_st_tensor_at(s, 0, &x);
    QT_OK(t, qn_str_eq_z(x.name, "b") && x.dtype == QN_ST_BF16 && x.fmt == QN_FMT_BF16);
    QT_OK(t, x.n_dims == 2 && x.dims[0] == 2 && x.dims[1] == 3 && x.dims[2] == 1);
    QT_OK(t, x.bytes == 12 && x.elements == 6 && x.data == data + 8);
    QT_EQ(t, x.offset, (long long)(b->n - 21 + 8));
    QT_OK(t, qn_st_find(s, "s", &x) && x.n_dims == 0 && x.elements == 1 && x.bytes == 1);
    QT_OK(t, qn_st_find(s, "z", &x) && x.elements == 0 && x.bytes == 0);
    QT_OK(t, qn_st_find(s, "a", &x) && x.data == data && x.fmt == QN_FMT_F32);
    QT_OK(t, !qn_st_find(s, "c", &x));
    QT_OK(t, qn_st_meta(s, "format", &value) && qn_str_eq_z(value, "pt"));
    QT_OK(t, !qn_st_meta(s, "a", &value));
    qn_st_meta_at(s, 1, &key, &value);
    QT_OK(t, qn_str_eq_z(key, "k") && value.n == 0);
    QT_STR(t, qn_st_shard_path(s, 0), "hostile.safetensors");
    QT_EQ(t, qn_st_file_bytes(s), (long long)b->n);
    QT_STR(t, qn_st_dtype_name(QN_ST_F8_E4M3), "F8_E4M3");
    QT_STR(t, qn_st_dtype_name(QN_ST_DTYPE_COUNT), "?");
    qn_st_close(s);
    free(b);
}

static void empty_files_are_read(qt *t)
{
    static const char *const headers[] = {"{}", " { } ", "{\"__metadata__\":{}}"};
    for (size_t i = 0; i < QT_LEN(headers); i++) {
        bytes *b = st_file(headers[i], 0);
        qn_st *s = open_ok(t, b);
        QT_OK(t, qn_st_n_tensors(s) == 0 && qn_st_n_meta(s) == 0);
        qn_st_close(s);
        free(b);
    }
}

static void escapes_are_resolved(qt *t)
{
    bytes *b =
        st_file("{\"a\\u002eb\\n\\\"\\\\\\/\\b\\f\\r\\t\\u00e9\\uD83D\\ude00\":{\"d\\u0074ype\":"
                "\"F\\u0033\\u0032\",\"shape\":[],\"data_offsets\":[0,4]},"
                "\"__meta\\u0064ata__\":{\"\\u006b\":\"\\u0000v\"}}",
                4);
    qn_st *s = open_ok(t, b);
    qn_st_tensor x;
    qn_str value;
    QT_OK(t,
          qn_st_find(s, "a.b\n\"\\/\b\f\r\t\xc3\xa9\xf0\x9f\x98\x80", &x) && x.dtype == QN_ST_F32);
    QT_OK(t, qn_st_meta(s, "k", &value) && value.n == 2 && memcmp(value.p, "\0v", 2) == 0);
    qn_st_close(s);
    free(b);
}

static void gives_matrices_in_place(qt *t)
{
    bytes *b = st_padded("{\"m\":{\"dtype\":\"F16\",\"shape\":[2,3,4],\"data_offsets\":[0,48]},"
                         "\"v\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[48,68]},"
                         "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[68,72]},"
                         "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[72,76]},"
                         "\"e\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[76,76]}}",
                         76);
    qn_st *s = open_ok(t, b);
    qn_matrix m;
    qn_err err;
    QT_EQ(t, qn_st_matrix(&m, s, "m", NULL), QN_OK);
    QT_OK(t, m.fmt == QN_FMT_F16 && m.rows == 6 && m.cols == 4 && m.ld_bytes == 8);
    QT_OK(t, m.data == b->p + b->n - 76 && !m.scales);
    QT_OK(t, qn_st_matrix(&m, s, "v", NULL) == QN_OK && m.rows == 1 && m.cols == 5);
    QT_OK(t, qn_st_matrix(&m, s, "s", NULL) == QN_OK && m.rows == 1 && m.cols == 1);
    QT_EQ(t, qn_st_matrix(&m, s, "i", &err), QN_E_UNSUPPORTED);
    QT_OK(t, strstr(err.msg, "'i' has dtype I32") != NULL);
    QT_EQ(t, qn_st_matrix(&m, s, "e", &err), QN_E_FORMAT);
    QT_EQ(t, qn_st_matrix(&m, s, "none", &err), QN_E_NOTFOUND);
    qn_st_close(s);
    free(b);
}

static void misaligned_tensors_are_listed_but_give_no_matrix(qt *t)
{
    bytes *b = st_padded("{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                         "\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},"
                         "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[5,9]}}",
                         9);
    qn_st *s = open_ok(t, b);
    qn_st_tensor x;
    qn_matrix m;
    qn_err err;
    QT_OK(t, qn_st_find(s, "v", &x) && x.bytes == 4);
    QT_EQ(t, qn_st_matrix(&m, s, "v", &err), QN_E_FORMAT);
    QT_OK(t, strstr(err.msg, "'v': data at byte ") && strstr(err.msg, "expected a multiple of 4"));
    QT_OK(t, qn_st_find(s, "w", &x) && qn_st_matrix(&m, s, "w", &err) == QN_E_FORMAT);
    QT_OK(t, qn_st_matrix_anywhere(&m, s, "v", &err) == QN_OK && (uintptr_t)m.data % 4 == 1);
    qn_st_close(s);
    free(b);
}

/* -- affine modules ---------------------------------------------------------------------------- */

/* weight [rows, words], scales and biases [rows, groups] of `dtype`. */
static bytes *affine_file(unsigned rows, unsigned words, unsigned groups, const char *dtype,
                          const char *biases)
{
    char header[600];
    const unsigned size = dtype[0] == 'F' && dtype[1] == '3' ? 4 : dtype[0] == 'U' ? 1 : 2;
    const unsigned w = rows * words * 4, s = rows * groups * size;
    snprintf(header, sizeof header,
             "{\"p.weight\":{\"dtype\":\"U32\",\"shape\":[%u,%u],\"data_offsets\":[0,%u]},"
             "\"p.scales\":{\"dtype\":\"%s\",\"shape\":[%u,%u],\"data_offsets\":[%u,%u]},"
             "\"p.%s\":{\"dtype\":\"%s\",\"shape\":[%u,%u],\"data_offsets\":[%u,%u]}}",
             rows, words, w, dtype, rows, groups, w, w + s, biases, dtype, rows, groups, w + s,
             w + 2 * s);
    return st_padded(header, w + 2 * s);
}

static void affine_modules_are_inferred_and_checked(qt *t)
{
    static const struct {
        unsigned rows, words, groups, bits, group, cols; /* what is told; 0: nothing */
        qn_fmt want;
    } cases[] = {
        {3, 8, 1, 4, 64, 0, QN_FMT_A4G64},         {3, 8, 1, 4, 0, 0, QN_FMT_A4G64},
        {3, 8, 1, 0, 64, 0, QN_FMT_A4G64},         {3, 8, 1, 0, 0, 64, QN_FMT_A4G64},
        {2, 24, 4, 3, 64, 256, QN_FMT_A3G64},      {2, 24, 4, 0, 64, 0, QN_FMT_A3G64},
        {1, 64, 8, 0, 32, 0, QN_FMT_A8G32},        {1, 40, 2, 5, 128, 0, QN_FMT_A5G128},
        {1, 8, 1, 0, 0, 0, QN_FMT_COUNT}, /* 4 bits of 64 or 8 of 32 or 2 of 128: not known */
        {3, 8, 1, 8, 64, 0, QN_FMT_COUNT},         {3, 8, 1, 4, 64, 128, QN_FMT_COUNT},
        {3, 8, 1, 0, 16, 0, QN_FMT_COUNT},         {3, 7, 1, 0, 64, 0, QN_FMT_COUNT},
        {3, 14, 1, 7, 64, 0, QN_FMT_COUNT},        {3, 8, 3, 4, 0, 0, QN_FMT_COUNT},
        {3, 8, 1, 0, 0xffffffff, 0, QN_FMT_COUNT}, {3, 8, 1, 0xffffffff, 0, 0, QN_FMT_COUNT},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        bytes *b = affine_file(cases[i].rows, cases[i].words, cases[i].groups, "BF16", "biases");
        qn_st *s = open_ok(t, b);
        qn_matrix m = {.rows = 0};
        qn_err err = {.code = QN_OK};
        const qn_code rc =
            qn_st_module(&m, s, "p", cases[i].bits, cases[i].group, cases[i].cols, &err);
        if (cases[i].want == QN_FMT_COUNT) {
            QT_OKF(t, rc != QN_OK && m.rows == 0 && err.msg[0], "case %zu", i);
        } else {
            const qn_format *f = qn_format_get(cases[i].want);
            QT_OKF(t, rc == QN_OK && m.fmt == cases[i].want, "case %zu: %s", i, err.msg);
            QT_OK(t, m.rows == cases[i].rows && m.cols == cases[i].words * 32 / f->bits);
            QT_OK(t, m.ld_bytes == 4 * cases[i].words && m.ld_scale == cases[i].groups);
            QT_OK(t, m.scale_fmt == QN_FMT_BF16 && m.scales && m.biases && m.data);
        }
        qn_st_close(s);
        free(b);
    }
}

static void broken_affine_modules_are_refused(qt *t)
{
    qn_matrix m;
    qn_err err;
    bytes *b = affine_file(2, 8, 1, "F32", "biases");
    qn_st *s = open_ok(t, b);
    QT_EQ(t, qn_st_module(&m, s, "p", 4, 64, 0, NULL), QN_OK);
    QT_EQ(t, m.scale_fmt, QN_FMT_F32);
    QT_EQ(t, qn_st_module(&m, s, "q", 4, 64, 0, &err), QN_E_NOTFOUND);
    char deep[1100];
    memset(deep, 'p', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    QT_EQ(t, qn_st_module(&m, s, deep, 4, 64, 0, &err), QN_E_LIMIT);
    qn_st_close(s);
    free(b);

    b = affine_file(2, 8, 1, "F32", "other");
    s = open_ok(t, b);
    QT_EQ(t, qn_st_module(&m, s, "p", 4, 64, 0, &err), QN_E_NOTFOUND);
    QT_OK(t, strstr(err.msg, "without its biases") != NULL);
    qn_st_close(s);
    free(b);

    b = affine_file(2, 8, 2, "U8", "other"); /* as MXFP4 lies in safetensors */
    s = open_ok(t, b);
    QT_EQ(t, qn_st_module(&m, s, "p", 4, 32, 0, &err), QN_E_UNSUPPORTED);
    QT_OK(t, strstr(err.msg, "U8") != NULL);
    qn_st_close(s);
    free(b);

    b = affine_file(2, 8, 2, "U8", "biases");
    s = open_ok(t, b);
    QT_EQ(t, qn_st_module(&m, s, "p", 4, 32, 0, &err), QN_E_UNSUPPORTED);
    qn_st_close(s);
    free(b);

    static const struct {
        const char *header, *say;
    } rows[] = {
        {"{\"p.weight\":{\"dtype\":\"I32\",\"shape\":[1,8],\"data_offsets\":[0,32]},"
         "\"p.scales\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[32,36]},"
         "\"p.biases\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[36,40]}}",
         "weight has dtype I32, expected U32"},
        {"{\"p.weight\":{\"dtype\":\"U32\",\"shape\":[1,8],\"data_offsets\":[0,32]},"
         "\"p.scales\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[32,36]},"
         "\"p.biases\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[36,40]}}",
         "biases (F16) differ from scales (F32)"},
        {"{\"p.weight\":{\"dtype\":\"U32\",\"shape\":[2,4],\"data_offsets\":[0,32]},"
         "\"p.scales\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[32,36]},"
         "\"p.biases\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[36,40]}}",
         "weight has 2 dims and 2 rows, scales have 2 dims and 1 rows"},
        {"{\"p.weight\":{\"dtype\":\"U32\",\"shape\":[8],\"data_offsets\":[0,32]},"
         "\"p.scales\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[32,36]},"
         "\"p.biases\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[36,40]}}",
         "weight has 1 dims"},
        {"{\"p.scales\":{\"dtype\":\"F32\",\"shape\":[10],\"data_offsets\":[0,40]}}",
         "without its weight"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[10],\"data_offsets\":[0,40]},"
         "\"p.weight\":{\"dtype\":\"U32\",\"shape\":[0,8],\"data_offsets\":[40,40]},"
         "\"p.scales\":{\"dtype\":\"F32\",\"shape\":[0,1],\"data_offsets\":[40,40]},"
         "\"p.biases\":{\"dtype\":\"F32\",\"shape\":[0,1],\"data_offsets\":[40,40]}}",
         "empty"},
    };
    for (size_t i = 0; i < QT_LEN(rows); i++) {
        b = st_padded(rows[i].header, 40);
        s = open_ok(t, b);
        QT_OK(t, qn_st_module(&m, s, "p", 4, 64, 0, &err) != QN_OK);
        QT_OKF(t, strstr(err.msg, rows[i].say) && strstr(err.msg, "hostile.safetensors"), "%s",
               err.msg);
        qn_st_close(s);
        free(b);
    }
}

static void modules_without_scales_are_plain(qt *t)
{
    bytes *b =
        st_padded("{\"p.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", 8);
    qn_st *s = open_ok(t, b);
    qn_matrix m;
    QT_EQ(t, qn_st_module(&m, s, "p", 4, 64, 0, NULL), QN_OK);
    QT_OK(t, m.fmt == QN_FMT_F32 && m.rows == 1 && m.cols == 2);
    qn_st_close(s);
    free(b);
}

/* -- shards ------------------------------------------------------------------------------------ */

/* Files in a folder of their own; returns its path, borrowed until the next call. */
static const char *folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", qt_tmp(), name);
    (void)mkdir(path, 0777);
    return path;
}

static void put_shard(const char *dir, const char *file, const char *tensor, uint8_t v)
{
    char header[200], name[300];
    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"format\":\"%s\"},\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
             "\"data_offsets\":[0,1]}}",
             file, tensor);
    bytes *b = st_file(header, 1);
    b->p[b->n - 1] = v;
    snprintf(name, sizeof name, "%s/%s", strrchr(dir, '/') + 1, file);
    qt_file(name, b->p, b->n);
    free(b);
}

static void put_index(const char *dir, const char *text)
{
    char name[300];
    snprintf(name, sizeof name, "%s/model.safetensors.index.json", strrchr(dir, '/') + 1);
    qt_file(name, text, strlen(text));
}

static const char two_shards[] = "{\"metadata\":{\"total_size\":2},\"weight_map\":"
                                 "{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}";

static void shards_open_from_folder_and_index(qt *t)
{
    const char *dir = folder("sharded");
    char index[600];
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", dir);
    put_shard(dir, "one.safetensors", "a", 11);
    put_shard(dir, "two.safetensors", "b", 22);
    put_index(dir, two_shards);
    const char *const paths[] = {dir, index};
    for (size_t i = 0; i < 2; i++) {
        qn_st *s = NULL;
        qn_st_tensor x;
        qn_str value;
        qn_err err = {.code = QN_OK};
        QT_OKF(t, qn_st_open(&s, paths[i], &err) == QN_OK, "%s", err.msg);
        if (!s) continue;
        QT_OK(t, qn_st_n_shards(s) == 2 && qn_st_n_tensors(s) == 2);
        QT_OK(t, qn_st_find(s, "b", &x) && x.shard == 1 && x.data[0] == 22);
        QT_OK(t, qn_st_find(s, "a", &x) && x.shard == 0 && x.data[0] == 11);
        QT_OK(t, qn_st_n_meta(s) == 1 && qn_st_meta(s, "format", &value) &&
                     qn_str_eq_z(value, "one.safetensors"));
        qn_st_close(s);
    }
}

static void a_folder_with_one_file_opens(qt *t)
{
    const char *dir = folder("single");
    qn_st *s = NULL;
    put_shard(dir, "model.safetensors", "a", 1);
    QT_EQ(t, qn_st_open(&s, dir, NULL), QN_OK);
    QT_EQ(t, qn_st_n_tensors(s), 1);
    qn_st_close(s);
}

static void index_fails(qt *t, const char *dir, const char *index, qn_code want, const char *say)
{
    qn_st *s = NULL;
    qn_err err = {.code = QN_OK};
    const size_t live = qn_alloc_live();
    if (index) put_index(dir, index);
    QT_OKF(t, qn_st_open(&s, dir, &err) == want, "%s: %s", say, err.msg);
    QT_OKF(t, !s && strstr(err.msg, say), "\"%s\" lacks \"%s\"", err.msg, say);
    QT_EQ(t, qn_alloc_live(), live);
    qn_st_close(s);
}

static void indexes_that_lie_or_reach_out_are_refused(qt *t)
{
    const char *dir = folder("lying");
    put_shard(dir, "one.safetensors", "a", 1);
    put_shard(dir, "two.safetensors", "b", 2);
    put_shard(dir, "same.safetensors", "a", 3);
    index_fails(t, dir, "{", QN_E_FORMAT, "index.json: json: line 1");
    index_fails(t, dir, "{}", QN_E_FORMAT, "weight_map is missing");
    index_fails(t, dir, "{\"weight_map\":[]}", QN_E_FORMAT, "weight_map");
    index_fails(t, dir, "{\"weight_map\":{}}", QN_E_FORMAT, "weight_map");
    static const char *const names[] = {"\"../one.safetensors\"",
                                        "\"/etc/passwd\"",
                                        "\"\"",
                                        "\"..\"",
                                        "\".\"",
                                        "\"x/../one.safetensors\"",
                                        "7",
                                        "\"one\\u0000.safetensors\""};
    for (size_t i = 0; i < QT_LEN(names); i++) {
        char index[200];
        snprintf(index, sizeof index, "{\"weight_map\":{\"a\":%s}}", names[i]);
        index_fails(t, dir, index, QN_E_FORMAT, "expected a file name");
    }
    index_fails(t, dir, "{\"weight_map\":{\"a\":\"gone.safetensors\"}}", QN_E_NOTFOUND,
                "gone.safetensors");
    index_fails(t, dir, "{\"weight_map\":{\"b\":\"one.safetensors\"}}", QN_E_FORMAT,
                "no tensor 'b' in 'one.safetensors'");
    index_fails(t, dir, "{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}",
                QN_E_FORMAT, "no tensor 'a' in 'two.safetensors'");
    index_fails(t, dir, "{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"same.safetensors\"}}",
                QN_E_FORMAT, "tensor 'a' occurs twice");
    index_fails(t, folder("nothing"), NULL, QN_E_NOTFOUND, "neither model.safetensors nor");
}

static void missing_files_are_named(qt *t)
{
    char path[600];
    qn_st *s = NULL;
    qn_err err;
    snprintf(path, sizeof path, "%s/gone.safetensors", qt_tmp());
    QT_EQ(t, qn_st_open(&s, path, &err), QN_E_NOTFOUND);
    QT_OK(t, strstr(err.msg, "gone.safetensors") != NULL);
    snprintf(path, sizeof path, "%s/gone.index.json", qt_tmp());
    QT_EQ(t, qn_st_open(&s, path, &err), QN_E_NOTFOUND);
}

/* -- headers that lie -------------------------------------------------------------------------- */

#define TENSOR(shape, offsets) \
    "{\"w\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void lying_shapes_and_offsets_are_refused(qt *t)
{
    refuses(t, TENSOR("[2]", "[0,4]"), 8, QN_E_FORMAT,
            "tensor 'w': data_offsets are 0 to 4, shape and F32 need 8 bytes");
    refuses(t, TENSOR("[1]", "[4,0]"), 8, QN_E_FORMAT, "data_offsets are 4 to 0");
    refuses(t, TENSOR("[1]", "[4,8]"), 8, QN_E_FORMAT, "begin at 4, expected 0");
    refuses(t, TENSOR("[2]", "[0,8]"), 4, QN_E_FORMAT, "end at 8, the data has 4 bytes");
    refuses(t, TENSOR("[1]", "[0,4]"), 5, QN_E_FORMAT, "tensors end at 4, the data has 5 bytes");
    refuses(t, TENSOR("[9223372036854775808,2]", "[0,4]"), 4, QN_E_FORMAT, "below 2^61");
    refuses(t, TENSOR("[4611686018427387904]", "[0,4]"), 4, QN_E_FORMAT, "below 2^61");
    refuses(t, TENSOR("[18446744073709551616]", "[0,4]"), 4, QN_E_FORMAT, "a number below 2^64");
    refuses(t, TENSOR("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, QN_E_LIMIT, "more than 8 dims");
    refuses(t, "{\"f\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, QN_E_FORMAT,
            "whole number of bytes");
    refuses(t,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
            6, QN_E_FORMAT, "tensor 'b': data_offsets begin at 2, expected 4");
    refuses(t,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
            2, QN_E_FORMAT, "tensor 'a' occurs twice");
    refuses(t,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
            2, QN_E_FORMAT, "tensor 'a' occurs twice");
}

static void headers_that_are_not_the_format_are_refused(qt *t)
{
    static const struct {
        const char *header, *say;
    } rows[] = {
        {"", "byte 0 is the end, expected '{'"},
        {"[]", "byte 0 is '[', expected '{'"},
        {"{", "byte 1 is the end, expected a string"},
        {"{}x", "byte 2 is 'x', expected the end"},
        {"{\"a\"}", "is '}', expected ':'"},
        {"{\"a\":1}", "tensor 'a': header byte 5 is '1', expected '{'"},
        {"{\"a\":{}}", "expected a string"},
        {"{\"a\":{\"dtype\":\"F32\"}}", "field shape is missing"},
        {"{\"a\":{\"shape\":[],\"data_offsets\":[0,0]}}", "field dtype is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", "field data_offsets is missing"},
        {"{\"a\":{\"dtype\":\"F33\"}}", "dtype is 'F33', which the format does not name"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "field 'dtype' is given twice"},
        {"{\"a\":{\"extra\":1}}", "field 'extra' is unknown"},
        {"{\"a\":{\"dtype\" \"F32\"}}", "expected ':'"},
        {"{\"a\":{\"dtype\":7}}", "dtype: header byte 14 is '7', expected a string"},
        {"{\"a\":{\"shape\":7}}", "shape: header byte 14 is '7', expected '['"},
        {"{\"a\":{\"shape\":[-1]}}", "is '-', expected a whole number"},
        {"{\"a\":{\"shape\":[01]}}", "expected no leading zero"},
        {"{\"a\":{\"shape\":[1.5]}}", "is '.', expected ',' or ']'"},
        {"{\"a\":{\"shape\":[1,]}}", "expected a whole number"},
        {"{\"a\":{\"data_offsets\":0}}", "expected '['"},
        {"{\"a\":{\"data_offsets\":[0]}}", "expected ','"},
        {"{\"a\":{\"data_offsets\":[0,0,0]}}", "expected ']'"},
        {"{\"a\":{\"dtype\":\"F32\" \"shape\"}}", "expected ',' or '}'"},
        {"{\"a", "expected the end of a string"},
        {"{\"a\x01\"", "byte 0x01, expected no control character"},
        {"{\"\xff\"", "byte 0xff, expected UTF-8"},
        {"{\"\\x\"", "expected a whole escape"},
        {"{\"\\u12\"", "expected a whole escape"},
        {"{\"\\ud800\":", "expected a whole escape"},
        {"{\"\\udc00\":", "expected a whole escape"},
        {"{\"\\ud800\\u0041\":", "expected a whole escape"},
        {"{\"\\u0000\":", "a tensor name holds a NUL"},
        {"{\"__metadata__\":1}", "expected '{'"},
        {"{\"__metadata__\":{\"a\":1}}", "expected a string"},
        {"{\"__metadata__\":{\"a\" \"b\"}}", "expected ':'"},
        {"{\"__metadata__\":{\"a\":\"b\" 1}}", "expected ',' or '}'"},
        {"{\"__metadata__\":{\"\\u0000\":\"\"}}", "a key holds a NUL"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", "key 'a' occurs twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", "__metadata__ occurs twice"},
    };
    for (size_t i = 0; i < QT_LEN(rows); i++)
        refuses(t, rows[i].header, 0, QN_E_FORMAT, rows[i].say);
}

static void lying_lengths_are_refused(qt *t)
{
    static const uint64_t lengths[] = {(uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7, 36,
                                       100000000};
    bytes *b = st_file("{}", 33);
    qn_st *s = NULL;
    qn_err err;
    QT_EQ(t, b->n, 43);
    for (size_t i = 0; i < QT_LEN(lengths); i++) {
        set_u(b, 0, lengths[i], 8);
        const qn_code rc = open_bounded(t, &s, b->p, b->n, &err);
        QT_EQ(t, rc, lengths[i] > QN_ST_MAX_HEADER ? QN_E_LIMIT : QN_E_FORMAT);
        QT_OK(t, strstr(err.msg, "hostile.safetensors: header length is ") != NULL);
    }
    free(b);
}

static const char mixed[] = "{\"__metadata__\":{\"k\\u0065\":\"v\"},"
                            "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[4,8]},"
                            "\"a\\n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static void every_truncation_is_refused(qt *t)
{
    bytes *b = st_file(mixed, 8);
    qn_st *s = open_ok(t, b);
    qn_err err;
    qn_st_close(s);
    for (size_t n = 0; n < b->n; n++) {
        uint8_t *exact = NULL;
        if (posix_memalign((void **)&exact, 16, n ? n : 1) != 0) abort();
        memcpy(exact, b->p, n);
        QT_EQ(t, open_bounded(t, &s, exact, n, &err), QN_E_FORMAT);
        QT_OKF(t, strncmp(err.msg, "hostile.safetensors: ", 21) == 0, "%s", err.msg);
        free(exact);
    }
    free(b);
}

static void every_changed_byte_is_survived(qt *t)
{
    static const uint8_t values[] = {0, 1, '"', '{', '9', '\\', 0x80, 0xff};
    bytes *b = st_file(mixed, 8);
    qn_err err;
    for (size_t i = 0; i < b->n; i++) {
        const uint8_t old = b->p[i];
        for (size_t k = 0; k < QT_LEN(values); k++) {
            qn_st *s = NULL;
            b->p[i] = values[k];
            const qn_code rc = open_bounded(t, &s, b->p, b->n, &err);
            QT_OK(t, rc == QN_OK || (rc == err.code && err.msg[0] != '\0'));
            qn_st_close(s);
        }
        b->p[i] = old;
    }
    free(b);
}

/* As many members as fit: the index itself stays inside the bound. */
static void the_densest_header_stays_inside_the_bound(qt *t)
{
    const size_t n = 60000, n_meta = 16384, room = n * 64 + n_meta * 16 + 100;
    char *p = NULL;
    qn_st *s = NULL;
    qn_err err;
    if (posix_memalign((void **)&p, 16, room) != 0) abort();
    size_t at = 8 + (size_t)snprintf(p + 8, 32, "{\"__metadata__\":{");
    for (size_t i = 0; i < n_meta; i++)
        at += (size_t)snprintf(p + at, 16, "%s\"%zx\":\"\"", i ? "," : "", i);
    p[at++] = '}';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(
            p + at, 80, ",\"%zx\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i);
    p[at++] = '}';
    const uint64_t header = at - 8;
    memcpy(p, &header, 8);
    QT_OKF(t, open_bounded(t, &s, (uint8_t *)p, at, &err) == QN_OK, "%s", err.msg);
    QT_OK(t, s && qn_st_n_tensors(s) == n && qn_st_n_meta(s) == n_meta);
    qn_st_close(s);
    free(p);
}

static void too_much_metadata_is_refused(qt *t)
{
    char *text = malloc(16385 * 16 + 64);
    if (!text) abort();
    size_t at = (size_t)snprintf(text, 32, "{\"__metadata__\":{");
    for (size_t i = 0; i < 16385; i++)
        at += (size_t)snprintf(text + at, 16, "%s\"%zx\":\"\"", i ? "," : "", i);
    snprintf(text + at, 4, "}}");
    uint8_t *p = NULL;
    qn_st *s = NULL;
    qn_err err;
    const uint64_t n = strlen(text);
    if (posix_memalign((void **)&p, 16, n + 8) != 0) abort();
    memcpy(p, &n, 8);
    memcpy(p + 8, text, n);
    QT_EQ(t, open_bounded(t, &s, p, n + 8, &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "more than 16384 metadata entries") != NULL);
    free(p);
    free(text);
}

static void open_survives_every_failed_allocation(qt *t)
{
    const char *dir = folder("sweep");
    put_shard(dir, "one.safetensors", "\\u0061", 1);
    put_shard(dir, "two.safetensors", "b", 2);
    put_index(dir, two_shards);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t n = 0;
    for (; rc != QN_OK && n < 200; n++) {
        qn_st *s = NULL;
        qn_alloc_fail_after(n);
        rc = qn_st_open(&s, dir, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, (rc == QN_OK) == (s != NULL) && (rc == QN_OK || rc == QN_E_NOMEM), "%zu: %d", n,
               (int)rc);
        qn_st_close(s);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, rc == QN_OK && n > 20);
}

static void open_bytes_survives_every_failed_allocation(qt *t)
{
    bytes *b = st_file(mixed, 8);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_st *s = NULL;
        qn_alloc_fail_after(n);
        rc = qn_st_open_bytes(&s, "m", b->p, b->n, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, (rc == QN_OK) == (s != NULL) && (rc == QN_OK || rc == QN_E_NOMEM));
        qn_st_close(s);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    QT_EQ(t, qn_st_open_bytes(&(qn_st *){NULL}, "m", b->p + 1, b->n - 1, NULL), QN_E_INVAL);
    free(b);
}

QT_MAIN(QT(reads_tensors_and_metadata), QT(empty_files_are_read), QT(escapes_are_resolved),
        QT(gives_matrices_in_place), QT(misaligned_tensors_are_listed_but_give_no_matrix),
        QT(affine_modules_are_inferred_and_checked), QT(broken_affine_modules_are_refused),
        QT(modules_without_scales_are_plain), QT(shards_open_from_folder_and_index),
        QT(a_folder_with_one_file_opens), QT(indexes_that_lie_or_reach_out_are_refused),
        QT(missing_files_are_named), QT(lying_shapes_and_offsets_are_refused),
        QT(headers_that_are_not_the_format_are_refused), QT(lying_lengths_are_refused),
        QT(every_truncation_is_refused), QT(every_changed_byte_is_survived),
        QT(the_densest_header_stays_inside_the_bound), QT(too_much_metadata_is_refused),
        QT(open_survives_every_failed_allocation), QT(open_bytes_survives_every_failed_allocation))
