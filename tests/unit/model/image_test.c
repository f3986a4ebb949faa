/* SPDX-License-Identifier: Apache-2.0 */
/* image_test.c - packed weight images: the same weights, and never a damaged one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_int.h"
#include "tiny.h"

static const char *const sources[] = {"tests/golden/llama/gguf-q4_1/model.gguf",
                                      "tests/golden/llama/gguf-q6_k/model.gguf",
                                      "tests/golden/llama/mlx-mixed"};

static const char *fresh_dir(void)
{
    static char dir[512];
    static int n;
    snprintf(dir, sizeof dir, "%s/images%d", qt_tmp(), n++);
    (void)mkdir(dir, 0777);
    return dir;
}

typedef struct lines {
    char text[2048];
} lines;

static void keep_line(void *ctx, qn_log_level level, const char *line, size_t n)
{
    lines *l = ctx;
    (void)level, (void)n;
    const size_t used = strlen(l->text);
    snprintf(l->text + used, sizeof l->text - used, "%s", line);
}

static qn_model *open_with(qt *t, const char *path, const char *dir, lines *said)
{
    qn_model *m = NULL;
    qn_err err = {0};
    qn_logger *log = NULL;
    if (said) memset(said, 0, sizeof *said);
    if (said) QT_EQ(t, qn_logger_new(&log, "info", keep_line, said, &err), QN_OK);
    const qn_model_options opt = {.image_dir = dir, .log = log};
    QT_OKF(t, qn_model_open(&m, path, &opt, &err) == QN_OK, "%s", err.msg);
    qn_logger_free(log);
    return m;
}

static void same_weights(qt *t, qn_model *a, qn_model *b)
{
    qn_matrix *x = NULL, *y = NULL;
    size_t i = 0, k = 0, n = 0;
    while ((x = qn_weights_next(&a->weights, &i)) && (y = qn_weights_next(&b->weights, &k))) {
        float *u = qt_fill_f32(x->cols, 1), *v = qt_fill_f32(x->cols, 2);
        const uint32_t rows[] = {0, x->rows / 2, x->rows - 1};
        for (size_t r = 0; r < QT_LEN(rows); r++) {
            qn_format_get(x->fmt)->unpack(u, x, rows[r], 0, x->cols);
            qn_format_get(y->fmt)->unpack(v, y, rows[r], 0, y->cols);
            qt_same(t, v, u, x->cols);
        }
        QT_OK(t, (uintptr_t)y->data % 64 == 0 && y->ld_bytes % 64 == 0);
        qt_release(2, u, v);
        n++;
    }
    QT_OK(t, n > 7 && !qn_weights_next(&b->weights, &k));
}

static void an_image_holds_the_same_weights_in_aligned_rows(qt *t)
{
    for (size_t i = 0; i < QT_LEN(sources); i++) {
        qn_model *mapped = open_with(t, sources[i], NULL, NULL);
        qn_model *packed = open_with(t, sources[i], fresh_dir(), NULL);
        if (mapped && packed && QT_OK(t, packed->image && !mapped->image))
            same_weights(t, mapped, packed);
        qn_model_unref(mapped);
        qn_model_unref(packed);
    }
}

static void a_second_open_finds_the_image(qt *t)
{
    const char *dir = fresh_dir();
    qn_model *a = open_with(t, sources[0], dir, NULL), *b = open_with(t, sources[0], dir, NULL);
    if (a && b) {
        QT_OK(t, qn_image_was_built(a->image) && !qn_image_was_built(b->image));
        same_weights(t, a, b);
    }
    qn_model_unref(a);
    qn_model_unref(b);
}

/* Builds an image, lets `damage` change its bytes, and opens again: the log must say why. */
static void rebuilt_after(qt *t, void (*damage)(uint8_t *bytes, size_t *n), const char *why)
{
    const char *dir = fresh_dir();
    char path[1024] = "";
    uint8_t *bytes = NULL;
    size_t n = 0;
    lines said;
    qn_model *a = open_with(t, sources[0], dir, NULL);
    if (a) snprintf(path, sizeof path, "%s", qn_image_path(a->image));
    qn_model_unref(a);
    if (!QT_EQ(t, qn_file_read(&bytes, &n, path, 1 << 28, NULL), QN_OK)) return;
    damage(bytes, &n);
    QT_EQ(t, qn_file_write(path, bytes, n, NULL), QN_OK);
    qn_free(bytes);
    qn_model *mapped = open_with(t, sources[0], NULL, NULL);
    qn_model *b = open_with(t, sources[0], dir, &said);
    if (b && mapped) {
        QT_OK(t, qn_image_was_built(b->image));
        QT_OKF(t, strstr(said.text, "rebuild=") && strstr(said.text, why), "\"%s\" without \"%s\"",
               said.text, why);
        same_weights(t, mapped, b);
    }
    qn_model_unref(b);
    qn_model_unref(mapped);
}

static void flip_last(uint8_t *b, size_t *n) { b[*n - 100] ^= 1; }
static void flip_row(uint8_t *b, size_t *n) { (void)n, b[4096 + 3] ^= 0x80; }
static void flip_table(uint8_t *b, size_t *n) { (void)n, b[128 + 8] ^= 1; }
static void flip_header(uint8_t *b, size_t *n) { (void)n, b[40] ^= 1; }
static void other_magic(uint8_t *b, size_t *n) { (void)n, b[0] ^= 1; }
static void cut_in_half(uint8_t *b, size_t *n) { (void)b, *n /= 2; }
static void cut_to_nothing(uint8_t *b, size_t *n) { (void)b, *n = 0; }

static void a_flipped_bit_of_a_weight_is_found_and_rebuilt(qt *t)
{
    rebuilt_after(t, flip_row, "checksum of matrix 0");
    rebuilt_after(t, flip_last, "checksum of matrix");
}
static void a_damaged_table_is_rebuilt(qt *t) { rebuilt_after(t, flip_table, "table checksum"); }
static void a_damaged_header_is_rebuilt(qt *t)
{
    rebuilt_after(t, flip_header, "header checksum");
    rebuilt_after(t, other_magic, "magic");
}
static void a_torn_image_is_rebuilt(qt *t)
{
    rebuilt_after(t, cut_in_half, "bytes, expected");
    rebuilt_after(t, cut_to_nothing, "no header");
}

/* The image of other weights under our name: a stale cache. */
static void a_stale_image_is_rebuilt(qt *t)
{
    const char *dir = fresh_dir();
    char ours[1024] = "", theirs[1024] = "";
    lines said;
    qn_model *a = open_with(t, sources[0], dir, NULL), *b = open_with(t, sources[1], dir, NULL);
    if (a && b) {
        snprintf(ours, sizeof ours, "%s", qn_image_path(a->image));
        snprintf(theirs, sizeof theirs, "%s", qn_image_path(b->image));
    }
    qn_model_unref(a);
    qn_model_unref(b);
    QT_EQ(t, rename(theirs, ours), 0);
    qn_model *c = open_with(t, sources[0], dir, &said);
    if (c) QT_OK(t, qn_image_was_built(c->image) && strstr(said.text, "made from other weights"));
    qn_model_unref(c);
}

static void a_directory_that_refuses_leaves_the_weights_mapped(qt *t)
{
    lines said;
    qn_model *m = open_with(t, sources[0], "/nowhere/at/all", &said);
    if (m) QT_OK(t, m->image == NULL);
    QT_OKF(t, strstr(said.text, "unused=/nowhere/at/all") != NULL, "%s", said.text);
    qn_model_unref(m);
}

static void no_temporary_file_is_left(qt *t)
{
    const char *dir = fresh_dir();
    char command[600];
    qn_model *m = open_with(t, sources[0], dir, NULL);
    qn_model_unref(m);
    snprintf(command, sizeof command, "test \"$(ls '%s' | wc -l)\" = 1", dir);
    QT_EQ(t, system(command), 0);
}

QT_MAIN(QT(an_image_holds_the_same_weights_in_aligned_rows), QT(a_second_open_finds_the_image),
        QT(a_flipped_bit_of_a_weight_is_found_and_rebuilt), QT(a_damaged_table_is_rebuilt),
        QT(a_damaged_header_is_rebuilt), QT(a_torn_image_is_rebuilt), QT(a_stale_image_is_rebuilt),
        QT(a_directory_that_refuses_leaves_the_weights_mapped), QT(no_temporary_file_is_left))
