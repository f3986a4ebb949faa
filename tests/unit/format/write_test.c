/* SPDX-License-Identifier: Apache-2.0 */
/* write_test.c - what the writers of GGUF and safetensors write, the readers read. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "format/gguf_write.h"
#include "format/safetensors_write.h"
#include "format/stream.h"
#include "qt.h"

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", qt_tmp(), name);
    return path;
}

/* Files in the test's folder whose names hold `part`. */
static size_t count_files(const char *part)
{
    size_t n = 0;
    DIR *dir = opendir(qt_tmp());
    if (!dir) abort();
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += strstr(e->d_name, part) != NULL;
    closedir(dir);
    return n;
}

/* -- streams ----------------------------------------------------------------------------------- */

static void a_stream_appears_at_commit_only(qt *t)
{
    enum { N = 600000 };
    qn_stream s;
    uint8_t *data = malloc(N);
    if (!data) abort();
    for (size_t i = 0; i < N; i++) data[i] = (uint8_t)(i * 7);
    QT_EQ(t, qn_stream_open(&s, path_of("stream.bin"), NULL), QN_OK);
    QT_EQ(t, qn_stream_put(&s, data, 3, NULL), QN_OK); /* small, large, small */
    QT_EQ(t, qn_stream_put(&s, data + 3, N - 10, NULL), QN_OK);
    QT_EQ(t, qn_stream_put(&s, data + N - 7, 7, NULL), QN_OK);
    QT_EQ(t, qn_stream_pad(&s, 4096, NULL), QN_OK);
    QT_OK(t, s.total % 4096 == 0 && s.total >= N);
    QT_OK(t, count_files("stream.bin.tmp-") == 1);
    const uint64_t total = s.total;
    QT_EQ(t, qn_stream_commit(&s, NULL), QN_OK);
    qn_stream_drop(&s);
    QT_OK(t, count_files("stream.bin") == 1 && count_files(".tmp-") == 0);
    FILE *f = fopen(path_of("stream.bin"), "rb");
    uint8_t *back = calloc(1, N + 4097);
    if (f && back) {
        QT_EQ(t, fread(back, 1, N + 4097, f), (long long)total);
        QT_OK(t, memcmp(back, data, N) == 0 && back[total - 1] == 0);
    }
    if (f) fclose(f);
    free(back);
    free(data);
}

static void a_dropped_stream_leaves_nothing(qt *t)
{
    qn_stream s;
    qn_err err;
    QT_EQ(t, qn_stream_open(&s, path_of("dropped.bin"), NULL), QN_OK);
    QT_EQ(t, qn_stream_put(&s, "x", 1, NULL), QN_OK);
    qn_stream_drop(&s);
    qn_stream_drop(&s);
    QT_EQ(t, count_files("dropped.bin"), 0);
    QT_EQ(t, qn_stream_open(&s, path_of("no/such/folder/x"), &err), QN_E_IO);
    QT_OK(t, strstr(err.msg, "no/such/folder") != NULL);
    qn_stream_drop(&s);
}

static void a_full_disk_is_told(qt *t)
{
    enum { N = 1 << 20 };
    struct stat st;
    qn_stream s;
    QT_EQ(t, qn_stream_open(&s, path_of("full.bin"), NULL), QN_OK);
    if (stat("/dev/full", &st) != 0) return; /* not on every system */
    FILE *full = fopen("/dev/full", "wb");
    const int own = s.fd;
    uint8_t *data = calloc(1, N);
    qn_err err;
    if (QT_OK(t, full && data)) {
        s.fd = fileno(full);
        QT_EQ(t, qn_stream_put(&s, data, N, &err), QN_E_IO);
        QT_OK(t, strstr(err.msg, "full.bin.tmp-") && err.sys != 0);
        s.fd = own;
        fclose(full);
    }
    free(data);
    qn_stream_drop(&s);
}

/* -- gguf -------------------------------------------------------------------------------------- */

static void put_keys(qt *t, qn_gguf_writer *w)
{
    const int8_t i8 = -5;
    const uint16_t u16 = 65535;
    const int32_t ints[3] = {1, -2, 3};
    const double reals[2] = {0.5, -1e300};
    const qn_str words[3] = {QN_STR("one"), QN_STR(""), QN_STR("a\0b")};
    QT_EQ(t, qn_gguf_put_str(w, "general.architecture", QN_STR("llama"), NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_u32(w, "u32", 7, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_u64(w, "u64", UINT64_MAX, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_i32(w, "i32", -7, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_i64(w, "i64", INT64_MIN, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_f32(w, "f32", 0.1f, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_f64(w, "f64", 0.1, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_bool(w, "bool", true, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_scalar(w, "i8", QN_GGUF_I8, &i8, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_scalar(w, "u16", QN_GGUF_U16, &u16, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_array(w, "ints", QN_GGUF_I32, ints, 3, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_array(w, "reals", QN_GGUF_F64, reals, 2, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_array(w, "none", QN_GGUF_U8, NULL, 0, NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_strs(w, "words", words, 3, NULL), QN_OK);
}

static void check_keys(qt *t, const qn_gguf *g)
{
    uint64_t u64 = 0;
    int64_t i64 = 0;
    float f = 0;
    double d = 0;
    bool flag = false;
    qn_str s;
    qn_gguf_value v;
    QT_EQ(t, qn_gguf_n_keys(g), 14);
    QT_OK(t, qn_gguf_get_u64(&u64, g, "u32", NULL) == QN_OK && u64 == 7);
    QT_OK(t, qn_gguf_get_u64(&u64, g, "u64", NULL) == QN_OK && u64 == UINT64_MAX);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i32", NULL) == QN_OK && i64 == -7);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i64", NULL) == QN_OK && i64 == INT64_MIN);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "i8", NULL) == QN_OK && i64 == -5);
    QT_OK(t, qn_gguf_get_i64(&i64, g, "u16", NULL) == QN_OK && i64 == 65535);
    QT_OK(t, qn_gguf_get_f32(&f, g, "f32", NULL) == QN_OK && f == 0.1f);
    QT_OK(t, qn_gguf_get_f64(&d, g, "f64", NULL) == QN_OK && d == 0.1);
    QT_OK(t, qn_gguf_get_bool(&flag, g, "bool", NULL) == QN_OK && flag);
    QT_OK(t, qn_gguf_get_array(&v, g, "ints", QN_GGUF_I32, NULL) == QN_OK && v.n == 3);
    QT_OK(t, qn_gguf_item_i64(&i64, &v, 1) && i64 == -2);
    QT_OK(t, qn_gguf_get_array(&v, g, "reals", QN_GGUF_F64, NULL) == QN_OK && v.n == 2);
    QT_OK(t, qn_gguf_item_f64(&d, &v, 1) && d == -1e300);
    QT_OK(t, qn_gguf_get_array(&v, g, "none", QN_GGUF_U8, NULL) == QN_OK && v.n == 0);
    QT_OK(t, qn_gguf_get_array(&v, g, "words", QN_GGUF_STRING, NULL) == QN_OK && v.n == 3);
    qn_gguf_iter it = qn_gguf_items(&v);
    QT_OK(t, qn_gguf_next_str(&it, &s) && qn_str_eq_z(s, "one"));
    QT_OK(t, qn_gguf_next_str(&it, &s) && s.n == 0);
    QT_OK(t, qn_gguf_next_str(&it, &s) && s.n == 3 && memcmp(s.p, "a\0b", 3) == 0);
}

static void gguf_keys_of_every_type_come_back(qt *t)
{
    qn_gguf_writer *w = NULL;
    qn_gguf *g = NULL;
    qn_err err = {.code = QN_OK};
    QT_EQ(t, qn_gguf_writer_open(&w, path_of("keys.gguf"), NULL), QN_OK);
    put_keys(t, w);
    QT_OK(t, count_files("keys.gguf") == count_files("keys.gguf.tmp-"));
    QT_OKF(t, qn_gguf_writer_finish(w, &err) == QN_OK, "%s", err.msg);
    QT_EQ(t, qn_gguf_writer_finish(w, &err), QN_E_INVAL);
    qn_gguf_writer_close(w);
    QT_OKF(t, qn_gguf_open(&g, path_of("keys.gguf"), &err) == QN_OK, "%s", err.msg);
    check_keys(t, g);

    /* copied through values, nothing is lost */
    qn_gguf *copy = NULL;
    QT_EQ(t, qn_gguf_writer_open(&w, path_of("copy.gguf"), NULL), QN_OK);
    for (size_t i = 0; i < qn_gguf_n_keys(g); i++) {
        qn_gguf_value v;
        const qn_str key = qn_gguf_key(g, i, &v);
        QT_EQ(t, qn_gguf_put_value(w, key, &v, NULL), QN_OK);
    }
    QT_EQ(t, qn_gguf_writer_finish(w, NULL), QN_OK);
    qn_gguf_writer_close(w);
    QT_EQ(t, qn_gguf_open(&copy, path_of("copy.gguf"), NULL), QN_OK);
    check_keys(t, copy);
    QT_EQ(t, qn_gguf_file_bytes(copy), (long long)qn_gguf_file_bytes(g));
    qn_gguf_close(copy);
    qn_gguf_close(g);
}

/* One tensor a format, rows of three blocks, in the order of the table. */
static size_t packed_row(uint8_t *out, qn_fmt fmt, uint32_t n, float *scales, float *biases)
{
    float *in = qt_rand_f32(n);
    size_t bytes = 0;
    if (qn_format_pack(out, scales, biases, fmt, in, n, NULL) != QN_OK ||
        !qn_format_row_bytes(&bytes, fmt, n))
        abort();
    free(in);
    return bytes;
}

static void gguf_tensors_of_every_format_come_back(qt *t)
{
    static uint8_t rows[QN_FMT_COUNT][4096];
    size_t bytes[QN_FMT_COUNT] = {0};
    qn_gguf_writer *w = NULL;
    qn_gguf *g = NULL;
    qn_err err = {.code = QN_OK};
    QT_EQ(t, qn_gguf_writer_open(&w, path_of("all.gguf"), NULL), QN_OK);
    for (int i = 0; i < QN_FMT_COUNT; i++) {
        const qn_format *f = qn_format_get((qn_fmt)i);
        const uint64_t dims[3] = {3u * f->block, 1, 1};
        if (f->planes != 1) continue;
        bytes[i] = packed_row(rows[i], (qn_fmt)i, 3u * f->block, NULL, NULL);
        QT_EQ(t, qn_gguf_add_tensor(w, f->name, (qn_fmt)i, dims, 1 + (uint32_t)i % 3, NULL), QN_OK);
    }
    const uint64_t none[2] = {32, 0};
    QT_EQ(t, qn_gguf_add_tensor(w, "empty", QN_FMT_F32, none, 2, NULL), QN_OK);
    for (int i = 0; i < QN_FMT_COUNT; i++) { /* in two pieces */
        QT_EQ(t, qn_gguf_write(w, rows[i], bytes[i] / 3, NULL), QN_OK);
        QT_EQ(t, qn_gguf_write(w, rows[i] + bytes[i] / 3, bytes[i] - bytes[i] / 3, NULL), QN_OK);
    }
    QT_OKF(t, qn_gguf_writer_finish(w, &err) == QN_OK, "%s", err.msg);
    qn_gguf_writer_close(w);
    QT_OKF(t, qn_gguf_open(&g, path_of("all.gguf"), &err) == QN_OK, "%s", err.msg);
    for (int i = 0; g && i < QN_FMT_COUNT; i++) {
        qn_matrix m;
        const qn_format *f = qn_format_get((qn_fmt)i);
        if (f->planes != 1) continue;
        QT_EQ(t, qn_gguf_matrix(&m, g, f->name, NULL), QN_OK);
        QT_OK(t, m.fmt == (qn_fmt)i && m.rows == 1 && m.cols == 3u * f->block &&
                     m.ld_bytes == bytes[i]);
        QT_OK(t, memcmp(m.data, rows[i], bytes[i]) == 0 && (uintptr_t)m.data % 32 == 0);
    }
    qn_gguf_close(g);
}

static void gguf_alignment_is_obeyed(qt *t)
{
    const uint64_t dims[1] = {1};
    const float v[2] = {1, 2};
    qn_gguf_writer *w = NULL;
    qn_gguf *g = NULL;
    qn_gguf_tensor x;
    QT_EQ(t, qn_gguf_writer_open(&w, path_of("aligned.gguf"), NULL), QN_OK);
    QT_EQ(t, qn_gguf_put_u32(w, "general.alignment", 256, NULL), QN_OK);
    QT_EQ(t, qn_gguf_add_tensor(w, "a", QN_FMT_F32, dims, 1, NULL), QN_OK);
    QT_EQ(t, qn_gguf_add_tensor(w, "b", QN_FMT_F32, dims, 1, NULL), QN_OK);
    QT_EQ(t, qn_gguf_write(w, v, sizeof v, NULL), QN_OK); /* one piece over both */
    QT_EQ(t, qn_gguf_writer_finish(w, NULL), QN_OK);
    qn_gguf_writer_close(w);
    QT_EQ(t, qn_gguf_open(&g, path_of("aligned.gguf"), NULL), QN_OK);
    QT_OK(t, qn_gguf_find_tensor(g, "b", &x) && x.offset % 256 == 0);
    QT_OK(t, memcmp(x.data, v + 1, 4) == 0);
    qn_gguf_close(g);
}

static void bad_gguf_calls_are_refused(qt *t)
{
    const uint64_t dims[5] = {32, 1, 1, 1, 1}, huge[2] = {(uint64_t)1 << 62, 4};
    const float v[33] = {0};
    qn_err err;
    for (int i = 0; i < 13; i++) { /* each on a fresh writer, for the first error sticks */
        qn_gguf_writer *w = NULL;
        qn_code rc = QN_OK, want = QN_E_INVAL;
        QT_EQ(t, qn_gguf_writer_open(&w, path_of("bad.gguf"), NULL), QN_OK);
        QT_EQ(t, qn_gguf_put_u32(w, "k", 1, NULL), QN_OK);
        QT_EQ(t, qn_gguf_add_tensor(w, "k", QN_FMT_F32, dims, 1, NULL), QN_OK);
        switch (i) {
        case 0:
            rc = qn_gguf_put_u32(w, "k", 2, &err);
            break;
        case 1:
            rc = qn_gguf_put_u32(w, "", 2, &err);
            break;
        case 2:
            rc = qn_gguf_add_tensor(w, "k", QN_FMT_F32, dims, 1, &err);
            break;
        case 3:
            rc = qn_gguf_add_tensor(w, "x", QN_FMT_F32, dims, 0, &err);
            break;
        case 4:
            rc = qn_gguf_add_tensor(w, "x", QN_FMT_F32, dims, 5, &err);
            break;
        case 5:
            rc = qn_gguf_add_tensor(w, "x", QN_FMT_Q4_K, dims, 1, &err);
            break;
        case 6:
            rc = qn_gguf_add_tensor(w, "x", QN_FMT_F32, huge, 2, &err);
            break;
        case 7:
            rc = qn_gguf_add_tensor(w, "x", QN_FMT_A4G64, dims, 1, &err);
            want = QN_E_UNSUPPORTED;
            break;
        case 8:
            rc = qn_gguf_put_scalar(w, "s", QN_GGUF_STRING, v, &err);
            break;
        case 9:
            rc = qn_gguf_put_u32(w, "general.alignment", 24, &err);
            break;
        case 10:
            rc = qn_gguf_write(w, v, sizeof v, &err);
            break; /* one weight too many */
        case 11:
            QT_EQ(t, qn_gguf_write(w, v, 4, NULL), QN_OK);
            rc = qn_gguf_put_u32(w, "late", 1, &err);
            break;
        default:
            QT_EQ(t, qn_gguf_write(w, v, 4, NULL), QN_OK);
            rc = qn_gguf_writer_finish(w, &err);
            QT_OK(t, strstr(err.msg, "4 of 128 bytes") != NULL);
            break;
        }
        QT_OKF(t, rc == want && err.code == want && err.msg[0], "case %d: %d", i, (int)rc);
        qn_err again;
        QT_EQ(t, qn_gguf_writer_finish(w, &again), want);
        QT_STR(t, again.msg, err.msg);
        QT_EQ(t, qn_gguf_put_str(w, "z", QN_STR(""), NULL), want);
        QT_EQ(t, qn_gguf_put_strs(w, "z", NULL, 0, NULL), want);
        QT_EQ(t, qn_gguf_put_array(w, "z", QN_GGUF_U8, NULL, 0, NULL), want);
        QT_EQ(t, qn_gguf_write(w, v, 4, NULL), want);
        qn_gguf_writer_close(w);
    }
    QT_EQ(t, count_files("bad.gguf"), 0);
    qn_gguf_writer_close(NULL);
}

static qn_code write_one_gguf(void)
{
    const uint64_t dims[1] = {2};
    const float v[2] = {1, 2};
    qn_gguf_writer *w = NULL;
    qn_code rc = qn_gguf_writer_open(&w, path_of("sweep.gguf"), NULL);
    if (rc != QN_OK) return rc;
    (void)qn_gguf_put_str(w, "general.architecture", QN_STR("llama"), NULL);
    (void)qn_gguf_add_tensor(w, "x", QN_FMT_F32, dims, 1, NULL);
    (void)qn_gguf_write(w, v, sizeof v, NULL);
    rc = qn_gguf_writer_finish(w, NULL);
    qn_gguf_writer_close(w);
    return rc;
}

/* -- safetensors ------------------------------------------------------------------------------- */

static qn_code write_one_st(void)
{
    const uint64_t dims[1] = {2};
    const float v[2] = {1, 2};
    qn_st_writer *w = NULL;
    qn_code rc = qn_st_writer_open(&w, path_of("sweep.safetensors"), NULL);
    if (rc != QN_OK) return rc;
    (void)qn_st_put_meta(w, "format", QN_STR("pt"), NULL);
    (void)qn_st_add_tensor(w, "x", QN_ST_F32, dims, 1, NULL);
    (void)qn_st_write(w, v, sizeof v, NULL);
    rc = qn_st_writer_finish(w, NULL);
    qn_st_writer_close(w);
    return rc;
}

static void sweep(qt *t, qn_code (*write)(void), const char *name)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t n = 0;
    for (; rc != QN_OK && n < 200; n++) {
        qn_alloc_fail_after(n);
        rc = write();
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QN_OK || rc == QN_E_NOMEM, "allocation %zu: %d", n, (int)rc);
        QT_EQ(t, qn_alloc_live(), before);
        QT_EQ(t, count_files(".tmp-"), 0);
        /* the very last allocation is made behind the rename, to sync the folder */
        QT_OK(t, rc == QN_OK || count_files(name) <= 1);
    }
    QT_OK(t, rc == QN_OK && n > 8);
    QT_EQ(t, count_files(name), 1);
}

static void writers_survive_every_failed_allocation(qt *t)
{
    sweep(t, write_one_gguf, "sweep.gguf");
    sweep(t, write_one_st, "sweep.safetensors");
}

static void safetensors_of_every_dtype_come_back(qt *t)
{
    qn_st_writer *w = NULL;
    qn_st *s = NULL;
    qn_err err = {.code = QN_OK};
    qn_str value;
    uint8_t data[1024];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 13);
    QT_EQ(t, qn_st_writer_open(&w, path_of("all.safetensors"), NULL), QN_OK);
    QT_EQ(t, qn_st_put_meta(w, "format", QN_STR("pt"), NULL), QN_OK);
    size_t total = 0;
    for (int i = QN_ST_DTYPE_COUNT; i-- > 0;) { /* widest first */
        const uint64_t dims[2] = {2, 4};
        uint64_t n_bytes = 8;
        QT_EQ(t,
              qn_st_add_tensor(w, qn_st_dtype_name((qn_st_dtype)i), (qn_st_dtype)i, dims, 2, NULL),
              QN_OK);
        n_bytes *= i >= QN_ST_U64 ? 8 : i >= QN_ST_U32 ? 4 : i >= QN_ST_U16 ? 2 : 1;
        if (i == QN_ST_F4) n_bytes = 4;
        if (i == QN_ST_F6_E2M3 || i == QN_ST_F6_E3M2) n_bytes = 6;
        total += n_bytes;
    }
    QT_EQ(t, qn_st_put_meta(w, "quote\"\n", QN_STR("\\ \xc3\xa9"), NULL), QN_OK);
    QT_EQ(t, qn_st_add_tensor(w, "scalar", QN_ST_U8, NULL, 0, NULL), QN_OK);
    QT_EQ(t, qn_st_write(w, data, 5, NULL), QN_OK);
    QT_EQ(t, qn_st_write(w, data + 5, total + 1 - 5, NULL), QN_OK);
    QT_OKF(t, qn_st_writer_finish(w, &err) == QN_OK, "%s", err.msg);
    QT_EQ(t, qn_st_writer_finish(w, &err), QN_E_INVAL);
    qn_st_writer_close(w);
    QT_OKF(t, qn_st_open(&s, path_of("all.safetensors"), &err) == QN_OK, "%s", err.msg);
    QT_EQ(t, qn_st_n_tensors(s), QN_ST_DTYPE_COUNT + 1);
    size_t at = 0;
    for (int i = QN_ST_DTYPE_COUNT; s && i-- > 0;) {
        qn_st_tensor x;
        QT_OK(t, qn_st_find(s, qn_st_dtype_name((qn_st_dtype)i), &x) && (int)x.dtype == i);
        QT_OK(t, x.n_dims == 2 && x.dims[0] == 2 && x.dims[1] == 4 && x.elements == 8);
        QT_OK(t, memcmp(x.data, data + at, x.bytes) == 0);
        QT_OK(t, (x.fmt != QN_FMT_COUNT) == (i == QN_ST_F32 || i == QN_ST_F16 || i == QN_ST_BF16));
        at += x.bytes;
    }
    QT_EQ(t, at, (long long)total);
    QT_OK(t, qn_st_meta(s, "format", &value) && qn_str_eq_z(value, "pt"));
    QT_OK(t, qn_st_meta(s, "quote\"\n", &value) && qn_str_eq_z(value, "\\ \xc3\xa9"));
    qn_st_close(s);
}

static void bad_safetensors_calls_are_refused(qt *t)
{
    const uint64_t dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, odd[1] = {3},
                   huge[2] = {(uint64_t)1 << 61, 8}, wide[2] = {UINT64_MAX, 0};
    const float v[4] = {0};
    qn_err err;
    for (int i = 0; i < 13; i++) {
        qn_st_writer *w = NULL;
        qn_code rc = QN_OK;
        QT_EQ(t, qn_st_writer_open(&w, path_of("bad.safetensors"), NULL), QN_OK);
        QT_EQ(t, qn_st_put_meta(w, "k", QN_STR("v"), NULL), QN_OK);
        QT_EQ(t, qn_st_add_tensor(w, "x", QN_ST_F32, dims, 2, NULL), QN_OK);
        switch (i) {
        case 0:
            rc = qn_st_put_meta(w, "k", QN_STR("v"), &err);
            break;
        case 1:
            rc = qn_st_put_meta(w, "\xff", QN_STR("v"), &err);
            break;
        case 2:
            rc = qn_st_put_meta(w, "m", QN_STR("\xff"), &err);
            break;
        case 3:
            rc = qn_st_add_tensor(w, "x", QN_ST_F32, dims, 2, &err);
            break;
        case 4:
            rc = qn_st_add_tensor(w, "\xff", QN_ST_F32, dims, 2, &err);
            break;
        case 5:
            rc = qn_st_add_tensor(w, "y", QN_ST_F32, dims, 9, &err);
            break;
        case 6:
            rc = qn_st_add_tensor(w, "y", QN_ST_F4, odd, 1, &err);
            break;
        case 7:
            rc = qn_st_add_tensor(w, "y", QN_ST_F32, huge, 2, &err);
            break;
        case 8:
            rc = qn_st_add_tensor(w, "y", QN_ST_DTYPE_COUNT, dims, 1, &err);
            break;
        case 9:
            rc = qn_st_add_tensor(w, "y", QN_ST_U8, wide, 2, &err);
            break;
        case 10:
            rc = qn_st_write(w, v, 5, &err);
            break;
        case 11:
            QT_EQ(t, qn_st_write(w, v, 1, NULL), QN_OK);
            rc = qn_st_put_meta(w, "late", QN_STR(""), &err);
            break;
        default:
            rc = qn_st_writer_finish(w, &err);
            break;
        }
        QT_OKF(t, rc == QN_E_INVAL && err.code == rc && err.msg[0], "case %d: %d", i, (int)rc);
        QT_EQ(t, qn_st_writer_finish(w, NULL), QN_E_INVAL);
        QT_EQ(t, qn_st_write(w, v, 1, NULL), QN_E_INVAL);
        QT_EQ(t, qn_st_add_tensor(w, "z", QN_ST_F32, dims, 1, NULL), QN_E_INVAL);
        QT_EQ(t, qn_st_put_meta(w, "z", QN_STR(""), NULL), QN_E_INVAL);
        qn_st_writer_close(w);
    }
    QT_EQ(t, count_files("bad.safetensors"), 0);
    qn_st_writer *w = NULL;
    QT_EQ(t, qn_st_writer_open(&w, path_of("meta.safetensors"), NULL), QN_OK);
    QT_EQ(t, qn_st_add_tensor(w, "__metadata__", QN_ST_F32, dims, 1, NULL), QN_E_INVAL);
    qn_st_writer_close(w);
    qn_st_writer_close(NULL);
}

QT_MAIN(QT(a_stream_appears_at_commit_only), QT(a_dropped_stream_leaves_nothing),
        QT(a_full_disk_is_told), QT(gguf_keys_of_every_type_come_back),
        QT(gguf_tensors_of_every_format_come_back), QT(gguf_alignment_is_obeyed),
        QT(bad_gguf_calls_are_refused), QT(writers_survive_every_failed_allocation),
        QT(safetensors_of_every_dtype_come_back), QT(bad_safetensors_calls_are_refused))
