/* SPDX-License-Identifier: Apache-2.0 */
#include "format/gguf.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bytes.h"
#include "qt.h"

enum { F32 = 0, Q4_0 = 2, IQ2_XS = 17, I32 = 26 };

static qn_gguf *open_ok(qt *t, const bytes *b)
{
    qn_gguf *g = NULL;
    qn_err err = {.code = QN_OK};
    QT_OKF(t, qn_gguf_open_bytes(&g, "mem.gguf", b->p, b->n, &err) == QN_OK, "%s", err.msg);
    return g;
}

/* One key of every type, with values at the edges. */
static void put_all_keys(bytes *b)
{
    const float f = 0.1f;
    const double d = -1e300;
    put_key_text(b, "general.architecture", "llama");
    static const struct {
        const char *key;
        uint32_t type;
        uint64_t v;
        unsigned n;
    } rows[] = {{"u8", 0, 255, 1},          {"i8", 1, 0x80, 1},
                {"u16", 2, 65535, 2},       {"i16", 3, 0x8000, 2},
                {"u32", 4, 0xffffffff, 4},  {"i32", 5, 0x80000000, 4},
                {"true", 7, 1, 1},          {"false", 7, 0, 1},
                {"u64", 10, UINT64_MAX, 8}, {"i64", 11, (uint64_t)1 << 63, 8},
                {"small", 11, 7, 8}};
    for (size_t i = 0; i < QT_LEN(rows); i++) {
        put_text(b, rows[i].key);
        put_u32(b, rows[i].type);
        put_u(b, rows[i].v, rows[i].n);
    }
    put_text(b, "f32");
    put_u32(b, 6);
    put(b, &f, 4);
    put_text(b, "f64");
    put_u32(b, 12);
    put(b, &d, 8);
    put_text(b, "words");
    put_u32(b, 9);
    put_u32(b, 8);
    put_u64(b, 3);
    put_text(b, "one");
    put_text(b, "");
    put_text(b, "three");
    put_text(b, "ints");
    put_u32(b, 9);
    put_u32(b, 5);
    put_u64(b, 3);
    put_u32(b, 1);
    put_u32(b, (uint32_t)-2);
    put_u32(b, 3);
    put_text(b, "flags");
    put_u32(b, 9);
    put_u32(b, 7);
    put_u64(b, 2);
    put_u(b, 1, 1);
    put_u(b, 0, 1);
    put_text(b, "nested");
    put_u32(b, 9);
    put_u32(b, 9);
    put_u64(b, 2);
    put_u32(b, 4);
    put_u64(b, 1);
    put_u32(b, 5);
    put_u32(b, 8);
    put_u64(b, 2);
    put_text(b, "x");
    put_text(b, "y");
}

enum { N_KEYS = 18 };

static bytes *fixture(void)
{
    bytes *b = calloc(1, sizeof *b);
    if (!b) abort();
    put_gguf_header(b, 3, 4, N_KEYS);
    put_all_keys(b);
    put_tensor(b, "b.weight", Q4_0, 64, 3, 64);
    put_tensor(b, "a.weight", F32, 5, 2, 0);
    put_tensor(b, "c.weight", IQ2_XS, 256, 2, 192);
    put_tensor(b, "d.ids", I32, 2, 1, 352);
    pad_to(b, 32);
    for (size_t i = 0; i < 360; i++) put_u(b, i % 251, 1);
    return b;
}

static void reads_scalars_of_every_type(qt *t)
{
    bytes *b = fixture();
    qn_gguf *g = open_ok(t, b);
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    int64_t i64 = 0;
    float f = 0;
    double d = 0;
    bool flag = false;
    qn_str s = {NULL, 0};
    QT_EQ(t, qn_gguf_version(g), 3);
    QT_EQ(t, qn_gguf_n_keys(g), N_KEYS);
    QT_OK(t, qn_gguf_get_u32(&u32, g, "u8", NULL) == QN_OK && u32 == 255);
    QT_OK(t, qn_gguf_get_u32(&u32, g, "u16", NULL) == QN_OK && u32 == 65535);
    QT_OK(t, qn_gguf_get_u32(&u32, g, "u32", NULL) == QN_OK && u32 == UINT32_MAX);
    QT_OK(t, qn_gguf_get_u32(&u32, g, "small", NULL) == QN_OK && u32 == 7);
    QT_OK(t, qn_gguf_get_u64(&u64, g, "u64", NULL) == QN_OK && u64 == UINT64_MAX);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i8", NULL) == QN_OK && i64 == -128);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i16", NULL) == QN_OK && i64 == -32768);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i32", NULL) == QN_OK && i64 == INT32_MIN);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i64", NULL) == QN_OK && i64 == INT64_MIN);
    QT_OK(t, qn_gguf_get_f32(&f, g, "f32", NULL) == QN_OK && f == 0.1f);
    QT_OK(t, qn_gguf_get_f64(&d, g, "f64", NULL) == QN_OK && d == -1e300);
    QT_OK(t, qn_gguf_get_f64(&d, g, "u64", NULL) == QN_OK && d == 0x1p64);
    QT_OK(t, qn_gguf_get_f64(&d, g, "i8", NULL) == QN_OK && d == -128);
    QT_OK(t, qn_gguf_get_bool(&flag, g, "true", NULL) == QN_OK && flag);
    QT_OK(t, qn_gguf_get_bool(&flag, g, "false", NULL) == QN_OK && !flag);
    QT_OK(t,
          qn_gguf_get_str(&s, g, "general.architecture", NULL) == QN_OK && qn_str_eq_z(s, "llama"));
    qn_gguf_close(g);
    free(b);
}

static void typed_reads_refuse_other_types_and_ranges(qt *t)
{
    bytes *b = fixture();
    qn_gguf *g = open_ok(t, b);
    qn_err err;
    uint32_t u32 = 77;
    uint64_t u64 = 77;
    int64_t i64 = 77;
    float f = 77;
    double d = 77;
    bool flag = true;
    qn_str s = QN_STR("kept");
    qn_gguf_value v = {.n = 77};
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "nothing", &err), QN_E_NOTFOUND);
    QT_OK(t, strstr(err.msg, "mem.gguf") && strstr(err.msg, "nothing"));
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "u64", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "i8", &err), QN_E_FORMAT);
    QT_OK(t, strstr(err.msg, "-128") && strstr(err.msg, "4294967295"));
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "f32", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "true", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "ints", &err), QN_E_FORMAT);
    QT_OK(t, strstr(err.msg, "array of 3 i32") != NULL);
    QT_EQ(t, qn_gguf_get_u64(&u64, g, "i32", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_i64(&i64, g, "u64", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_f32(&f, g, "f64", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_f64(&d, g, "words", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_bool(&flag, g, "u8", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_str(&s, g, "words", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_str(&s, g, "u8", &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_u32(&u32, g, "general.architecture", &err), QN_E_FORMAT);
    QT_OK(t, strstr(err.msg, "string") != NULL);
    QT_EQ(t, qn_gguf_get_array(&v, g, "words", QN_GGUF_F32, &err), QN_E_FORMAT);
    QT_EQ(t, qn_gguf_get_array(&v, g, "u8", QN_GGUF_TYPE_COUNT, &err), QN_E_FORMAT);
    QT_OK(t, u32 == 77 && u64 == 77 && i64 == 77 && f == 77 && d == 77 && flag && v.n == 77 &&
                 qn_str_eq_z(s, "kept"));
    qn_gguf_close(g);
    free(b);
}

static void optional_reads_fall_back_only_when_absent(qt *t)
{
    bytes *b = fixture();
    qn_gguf *g = open_ok(t, b);
    uint32_t u32 = 0;
    int64_t i64 = 0;
    float f = 0;
    bool flag = false;
    qn_str s = {NULL, 0};
    QT_OK(t, qn_gguf_opt_u32(&u32, g, "no", 5, NULL) == QN_OK && u32 == 5);
    QT_OK(t, qn_gguf_opt_u32(&u32, g, "u8", 5, NULL) == QN_OK && u32 == 255);
    QT_EQ(t, qn_gguf_opt_u32(&u32, g, "words", 5, NULL), QN_E_FORMAT);
    QT_OK(t, qn_gguf_opt_i64(&i64, g, "no", -5, NULL) == QN_OK && i64 == -5);
    QT_OK(t, qn_gguf_opt_f32(&f, g, "no", 0.5f, NULL) == QN_OK && f == 0.5f);
    QT_OK(t, qn_gguf_opt_bool(&flag, g, "no", true, NULL) == QN_OK && flag);
    QT_OK(t, qn_gguf_opt_bool(&flag, g, "false", true, NULL) == QN_OK && !flag);
    QT_OK(t, qn_gguf_opt_str(&s, g, "no", QN_STR("x"), NULL) == QN_OK && qn_str_eq_z(s, "x"));
    qn_gguf_close(g);
    free(b);
}

static void walks_arrays(qt *t)
{
    bytes *b = fixture();
    qn_gguf *g = open_ok(t, b);
    qn_gguf_value v, inner;
    qn_str s;
    int64_t i64 = 0;
    uint64_t u64 = 9;
    bool flag = false;
    QT_EQ(t, qn_gguf_get_array(&v, g, "words", QN_GGUF_STRING, NULL), QN_OK);
    qn_gguf_iter it = qn_gguf_items(&v);
    QT_OK(t, qn_gguf_next_str(&it, &s) && qn_str_eq_z(s, "one"));
    QT_OK(t, qn_gguf_next_str(&it, &s) && s.n == 0);
    QT_OK(t, qn_gguf_next_str(&it, &s) && qn_str_eq_z(s, "three"));
    QT_OK(t, !qn_gguf_next_str(&it, &s) && !qn_gguf_next(&it, &inner));
    QT_OK(t, !qn_gguf_item_i64(&i64, &v, 0));

    QT_EQ(t, qn_gguf_get_array(&v, g, "ints", QN_GGUF_I32, NULL), QN_OK);
    QT_OK(t, v.n == 3 && qn_gguf_item_i64(&i64, &v, 1) && i64 == -2);
    QT_OK(t, !qn_gguf_item_u64(&u64, &v, 1) && !qn_gguf_item_i64(&i64, &v, 3) && u64 == 9);
    it = qn_gguf_items(&v);
    QT_OK(t, !qn_gguf_next_str(&it, &s));
    int64_t sum = 0;
    while (qn_gguf_next(&it, &inner))
        if (QT_OK(t, qn_gguf_item_i64(&i64, &inner, 0))) sum += i64;
    QT_EQ(t, sum, 2);

    QT_EQ(t, qn_gguf_get_array(&v, g, "flags", QN_GGUF_TYPE_COUNT, NULL), QN_OK);
    QT_OK(t, qn_gguf_item_bool(&flag, &v, 0) && flag && qn_gguf_item_bool(&flag, &v, 1) && !flag);
    QT_OK(t, !qn_gguf_item_bool(&flag, &v, 2));

    QT_EQ(t, qn_gguf_get_array(&v, g, "nested", QN_GGUF_ARRAY, NULL), QN_OK);
    it = qn_gguf_items(&v);
    QT_OK(t, qn_gguf_next(&it, &inner) && inner.item == QN_GGUF_U32 && inner.n == 1);
    QT_OK(t, qn_gguf_item_i64(&i64, &inner, 0) && i64 == 5);
    QT_OK(t, qn_gguf_next(&it, &inner) && inner.item == QN_GGUF_STRING && inner.n == 2);
    qn_gguf_iter words = qn_gguf_items(&inner);
    QT_OK(t, qn_gguf_next_str(&words, &s) && qn_str_eq_z(s, "x"));
    QT_OK(t, qn_gguf_next_str(&words, &s) && qn_str_eq_z(s, "y") && !qn_gguf_next_str(&words, &s));
    QT_OK(t, !qn_gguf_next(&it, &inner));
    qn_gguf_close(g);
    free(b);
}

static void keys_come_in_file_order(qt *t)
{
    bytes *b = fixture();
    qn_gguf *g = open_ok(t, b);
    qn_gguf_value v;
    QT_OK(t, qn_str_eq_z(qn_gguf_key(g, 0, &v), "general.architecture"));
    QT_OK(t, v.type == QN_GGUF_STRING && v.n == 1 && v.bytes == 13);
    QT_OK(t, qn_str_eq_z(qn_gguf_key(g, N_KEYS - 1, &v), "nested") && v.type == QN_GGUF_ARRAY);
    QT_OK(t, v.item == QN_GGUF_ARRAY && v.n == 2);
    QT_STR(t, qn_gguf_type_name(QN_GGUF_F64), "f64");
    QT_STR(t, qn_gguf_type_name(QN_GGUF_TYPE_COUNT), "?");
    for (size_t i = 0; i < qn_gguf_n_keys(g); i++) {
        char key[64] = "";
        const qn_str s = qn_gguf_key(g, i, NULL);
        memcpy(key, s.p, s.n < 63 ? s.n : 63);
        QT_OKF(t, qn_gguf_find(g, key, &v), "%s", key);
    }
    QT_OK(t, !qn_gguf_find(g, "", &v) && !qn_gguf_find(g, "u88", &v));
    qn_gguf_close(g);
    free(b);
}

static void lists_tensors_where_they_lie(qt *t)
{
    bytes *b = fixture();
    const size_t data = b->n - 360;
    qn_gguf *g = open_ok(t, b);
    qn_gguf_tensor x;
    QT_EQ(t, qn_gguf_n_tensors(g), 4);
    qn_gguf_tensor_at(g, 0, &x);
    QT_OK(t, qn_str_eq_z(x.name, "b.weight") && x.fmt == QN_FMT_Q4_0 && x.n_dims == 2);
    QT_STR(t, x.type_name, "Q4_0");
    QT_OK(t, x.dims[0] == 64 && x.dims[1] == 3 && x.dims[2] == 1 && x.dims[3] == 1);
    QT_OK(t, x.bytes == 108 && x.elements == 192 && x.offset == data + 64);
    QT_OK(t, x.data == b->p + data + 64 && x.part == 0);
    QT_OK(t, qn_gguf_find_tensor(g, "c.weight", &x) && x.fmt == QN_FMT_COUNT && x.bytes == 148);
    QT_STR(t, x.type_name, "IQ2_XS");
    QT_OK(t, !qn_gguf_find_tensor(g, "e", &x));
    QT_EQ(t, qn_gguf_file_bytes(g), b->n);
    QT_EQ(t, qn_gguf_n_parts(g), 1);
    QT_STR(t, qn_gguf_part_path(g, 0), "mem.gguf");
    qn_gguf_close(g);
    free(b);
}

static void gives_matrices_in_place(qt *t)
{
    bytes *b = fixture();
    const size_t data = b->n - 360;
    qn_gguf *g = open_ok(t, b);
    qn_matrix m;
    qn_err err;
    QT_EQ(t, qn_gguf_matrix(&m, g, "b.weight", NULL), QN_OK);
    QT_OK(t, m.fmt == QN_FMT_Q4_0 && m.rows == 3 && m.cols == 64 && m.ld_bytes == 36);
    QT_OK(t, m.data == b->p + data + 64 && !m.scales && !m.biases);
    QT_EQ(t, qn_gguf_matrix(&m, g, "a.weight", NULL), QN_OK);
    QT_OK(t, m.fmt == QN_FMT_F32 && m.rows == 2 && m.cols == 5 && m.ld_bytes == 20);
    QT_EQ(t, qn_gguf_matrix(&m, g, "c.weight", &err), QN_E_UNSUPPORTED);
    QT_OK(t,
          strstr(err.msg, "mem.gguf") && strstr(err.msg, "c.weight") && strstr(err.msg, "IQ2_XS"));
    QT_EQ(t, qn_gguf_matrix(&m, g, "d.ids", &err), QN_E_UNSUPPORTED);
    QT_EQ(t, qn_gguf_matrix(&m, g, "e", &err), QN_E_NOTFOUND);
    qn_gguf_close(g);
    free(b);
}

static void takes_census_by_type(qt *t)
{
    bytes *b = fixture();
    qn_gguf *g = open_ok(t, b);
    qn_gguf_census row;
    size_t it = 0, n = 0;
    uint64_t bytes_seen = 0, tensors = 0;
    while (qn_gguf_census_next(g, &it, &row)) {
        n++;
        tensors += row.tensors;
        bytes_seen += row.bytes;
        if (strcmp(row.type_name, "IQ2_XS") == 0)
            QT_OK(t, !row.supported && row.elements == 512 && row.bytes == 148);
        if (strcmp(row.type_name, "Q4_0") == 0) QT_OK(t, row.supported && row.elements == 192);
    }
    QT_OK(t, n == 4 && tensors == 4 && bytes_seen == 40 + 108 + 148 + 8);
    qn_gguf_close(g);
    free(b);
}

static void version_two_and_other_alignments_are_read(qt *t)
{
    bytes *b = calloc(1, sizeof *b);
    qn_gguf_tensor x;
    put_gguf_header(b, 2, 2, 1);
    put_key_u32(b, "general.alignment", 64);
    put_tensor(b, "a", F32, 1, 1, 0);
    put_tensor(b, "b", F32, 1, 1, 64);
    pad_to(b, 64);
    put_zero(b, 68);
    qn_gguf *g = open_ok(t, b);
    QT_EQ(t, qn_gguf_version(g), 2);
    QT_OK(t, qn_gguf_find_tensor(g, "b", &x) && x.offset == b->n - 4);
    qn_gguf_close(g);
    free(b);
}

static void empty_models_and_empty_tensors_are_read(qt *t)
{
    bytes *b = calloc(1, sizeof *b);
    qn_matrix m;
    qn_err err;
    put_gguf_header(b, 3, 0, 0);
    qn_gguf *g = open_ok(t, b);
    QT_OK(t, qn_gguf_n_keys(g) == 0 && qn_gguf_n_tensors(g) == 0);
    qn_gguf_close(g);
    put_gguf_header(b, 3, 2, 0);
    put_tensor(b, "none", F32, 4, 0, 0);
    put_text(b, "scalar");
    put_u32(b, 0);
    put_u32(b, F32);
    put_u64(b, 0);
    pad_to(b, 32);
    put_zero(b, 4);
    g = open_ok(t, b);
    QT_EQ(t, qn_gguf_matrix(&m, g, "none", &err), QN_E_FORMAT);
    QT_OK(t, strstr(err.msg, "empty") != NULL);
    QT_EQ(t, qn_gguf_matrix(&m, g, "scalar", NULL), QN_OK);
    QT_OK(t, m.rows == 1 && m.cols == 1);
    qn_gguf_close(g);
    free(b);
}

/* -- files and parts --------------------------------------------------------------------------- */

enum { SPLIT_KEYS = 4 };

/* Part `no` of `count`: one tensor called tN that holds the number N. */
static void put_part(bytes *b, uint32_t no, uint32_t count, uint32_t all, const char *name)
{
    const float v = (float)no;
    put_gguf_header(b, 3, 1, SPLIT_KEYS);
    put_key_u32(b, "split.no", no);
    put_key_u32(b, "split.count", count);
    put_key_u32(b, "split.tensors.count", all);
    put_key_u32(b, "mine", no);
    put_tensor(b, name, F32, 1, 1, 0);
    pad_to(b, 32);
    put(b, &v, 4);
}

/* Writes three parts; `path` becomes that of part `pick`. */
static void write_parts(char *path, size_t room, const char *stem, uint32_t pick)
{
    bytes *b = calloc(1, sizeof *b);
    for (uint32_t i = 0; i < 3; i++) {
        char name[64], tensor[8];
        snprintf(name, sizeof name, "%s-%05u-of-00003.gguf", stem, i + 1);
        snprintf(tensor, sizeof tensor, "t%u", i);
        put_part(b, i, 3, 3, tensor);
        const char *p = qt_file(name, b->p, b->n);
        if (i == pick) snprintf(path, room, "%s", p);
    }
    free(b);
}

static void any_part_opens_all(qt *t)
{
    for (uint32_t pick = 0; pick < 3; pick++) {
        char path[512];
        qn_gguf *g = NULL;
        qn_err err = {.code = QN_OK};
        write_parts(path, sizeof path, "whole", pick);
        QT_OKF(t, qn_gguf_open(&g, path, &err) == QN_OK, "%s", err.msg);
        if (!g) continue;
        QT_OK(t, qn_gguf_n_parts(g) == 3 && qn_gguf_n_tensors(g) == 3);
        uint32_t mine = 9;
        QT_OK(t, qn_gguf_get_u32(&mine, g, "mine", NULL) == QN_OK && mine == 0);
        for (uint32_t i = 0; i < 3; i++) {
            char name[8];
            float v = -1;
            qn_matrix m;
            snprintf(name, sizeof name, "t%u", i);
            QT_EQ(t, qn_gguf_matrix(&m, g, name, NULL), QN_OK);
            memcpy(&v, m.data, sizeof v);
            QT_OK(t, v == (float)i);
            char end[32];
            snprintf(end, sizeof end, "-%05u-of-00003.gguf", i + 1);
            QT_OK(t, strstr(qn_gguf_part_path(g, i), end) != NULL);
        }
        qn_gguf_close(g);
    }
}

static void parts_fail(qt *t, const char *path, qn_code want, const char *say)
{
    qn_gguf *g = NULL;
    qn_err err = {.code = QN_OK};
    const size_t live = qn_alloc_live();
    QT_EQ(t, qn_gguf_open(&g, path, &err), want);
    QT_OKF(t, !g && strstr(err.msg, say), "\"%s\" lacks \"%s\"", err.msg, say);
    QT_EQ(t, qn_alloc_live(), live);
    qn_gguf_close(g);
}

static void parts_that_disagree_are_refused(qt *t)
{
    bytes *b = calloc(1, sizeof *b);
    char path[512];
    put_part(b, 0, 2, 2, "t0");
    parts_fail(t, qt_file("wrongname.gguf", b->p, b->n), QN_E_FORMAT, "-00001-of-00002.gguf");
    parts_fail(t, qt_file("lost-00001-of-00002.gguf", b->p, b->n), QN_E_NOTFOUND,
               "lost-00002-of-00002.gguf");
    put_part(b, 5, 2, 2, "t0");
    parts_fail(t, qt_file("far-00006-of-00002.gguf", b->p, b->n), QN_E_FORMAT, "split.no is 5");

    write_parts(path, sizeof path, "mixed", 0);
    put_part(b, 2, 3, 3, "t1");
    qt_file("mixed-00002-of-00003.gguf", b->p, b->n);
    parts_fail(t, path, QN_E_FORMAT, "part 3 of 3 inside, expected 2 of 3");

    write_parts(path, sizeof path, "twice", 0);
    put_part(b, 1, 3, 3, "t0");
    qt_file("twice-00002-of-00003.gguf", b->p, b->n);
    parts_fail(t, path, QN_E_FORMAT, "'t0' occurs twice");

    write_parts(path, sizeof path, "count", 0);
    put_part(b, 0, 3, 7, "t0");
    qt_file("count-00001-of-00003.gguf", b->p, b->n);
    parts_fail(t, path, QN_E_FORMAT, "split.tensors.count is 7");

    qn_gguf *g = NULL;
    QT_EQ(t, qn_gguf_open_bytes(&g, "m", b->p, b->n, NULL), QN_E_UNSUPPORTED);
    free(b);
}

static void missing_and_irregular_files_are_named(qt *t)
{
    char path[512];
    snprintf(path, sizeof path, "%s/nothing.gguf", qt_tmp());
    parts_fail(t, path, QN_E_NOTFOUND, "nothing.gguf");
    parts_fail(t, qt_tmp(), QN_E_INVAL, qt_tmp());
    parts_fail(t, qt_file("empty.gguf", "", 0), QN_E_FORMAT, "empty.gguf");
}

static void open_survives_every_failed_allocation(qt *t)
{
    char path[512];
    write_parts(path, sizeof path, "sweep", 1);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t n = 0;
    for (; rc != QN_OK && n < 64; n++) {
        qn_gguf *g = NULL;
        qn_alloc_fail_after(n);
        rc = qn_gguf_open(&g, path, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, (rc == QN_OK) == (g != NULL) && (rc == QN_OK || rc == QN_E_NOMEM));
        qn_gguf_close(g);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, rc == QN_OK && n > 10);
}

static void open_bytes_survives_every_failed_allocation(qt *t)
{
    bytes *b = fixture();
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_gguf *g = NULL;
        qn_alloc_fail_after(n);
        rc = qn_gguf_open_bytes(&g, "m", b->p, b->n, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, (rc == QN_OK) == (g != NULL) && (rc == QN_OK || rc == QN_E_NOMEM));
        qn_gguf_close(g);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    QT_EQ(t, qn_gguf_open_bytes(&(qn_gguf *){NULL}, "m", b->p + 1, b->n - 1, NULL), QN_E_INVAL);
    free(b);
}

static void the_name_of_a_part_is_told_from_others(qt *t)
{
    static const struct {
        const char *name;
        size_t stem;
        uint32_t no; /* 0: no part */
    } cases[] = {
        {"m-00001-of-00003.gguf", 1, 1},
        {"a/m-x-00012-of-00099.gguf", 5, 12},
        {"-00001-of-00003.gguf", 0, 0},
        {"m-0001-of-00003.gguf", 0, 0},
        {"m-00001-of-00003.bin", 0, 0},
        {"m-00001-of-0000x.gguf", 0, 0},
        {"m-00001_of-00003.gguf", 0, 0},
        {"m_00001-of-00003.gguf", 0, 0},
        {"m-00001-of-00003.gguf.x", 0, 0},
        {"m.gguf", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        size_t stem = 99;
        uint32_t no = 99;
        const bool part = qn_gguf_part_name(&stem, &no, qn_str_z(cases[i].name));
        QT_EQ(t, part, cases[i].no != 0);
        QT_EQ(t, stem, part ? cases[i].stem : 99);
        QT_EQ(t, no, part ? cases[i].no : 99);
    }
}

QT_MAIN(QT(the_name_of_a_part_is_told_from_others), QT(reads_scalars_of_every_type),
        QT(typed_reads_refuse_other_types_and_ranges),
        QT(optional_reads_fall_back_only_when_absent), QT(walks_arrays),
        QT(keys_come_in_file_order), QT(lists_tensors_where_they_lie), QT(gives_matrices_in_place),
        QT(takes_census_by_type), QT(version_two_and_other_alignments_are_read),
        QT(empty_models_and_empty_tensors_are_read), QT(any_part_opens_all),
        QT(parts_that_disagree_are_refused), QT(missing_and_irregular_files_are_named),
        QT(open_survives_every_failed_allocation), QT(open_bytes_survives_every_failed_allocation))
