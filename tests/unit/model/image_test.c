/* SPDX-License-Identifier: Apache-2.0 */
/* image_test.c - images of weights laid out anew: the same panels, and never a torn or a foreign one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_int.h"
#include "tensor/panel.h"
#include "tiny.h"

static const char *const sources[] = {"tests/golden/llama/gguf-q4_1/model.gguf",
                                      "tests/golden/llama/gguf-q8_0/model.gguf",
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
    const qn_model_options opt = {
        .activations = QN_ACTIVATIONS_I16, .image_dir = dir, .lanes = 2, .log = log};
    QT_OKF(t, qn_model_open(&m, path, &opt, &err) == QN_OK, "%s", err.msg);
    qn_logger_free(log);
    return m;
}

static void same_panels(qt *t, qn_model *a, qn_model *b)
{
    qn_matrix *x = NULL, *y = NULL;
    size_t i = 0, k = 0, n = 0;
    qn_panel_layout l;
    while ((x = qn_weights_next(&a->weights, &i)) && (y = qn_weights_next(&b->weights, &k))) {
        if (!QT_OK(t, !x->panels == !y->panels) || !x->panels) continue;
        if (!QT_OK(t, qn_panel_layout_of(&l, x))) continue;
        QT_OK(t, memcmp(x->panels, y->panels, l.bytes * l.panels) == 0);
        QT_OK(t, (uintptr_t)y->panels % QN_PANEL_ALIGN == 0);
        n++;
    }
    QT_OKF(t, n > 6 && !qn_weights_next(&b->weights, &k), "%zu matrices", n);
}

static void an_image_holds_the_same_panels_as_memory(qt *t)
{
    for (size_t i = 0; i < QT_LEN(sources); i++) {
        qn_model *memory = open_with(t, sources[i], NULL, NULL);
        qn_model *image = open_with(t, sources[i], fresh_dir(), NULL);
        if (memory && image && QT_OK(t, image->panels.image && !memory->panels.image))
            same_panels(t, memory, image);
        qn_model_unref(memory);
        qn_model_unref(image);
    }
}

static void f32_activations_need_no_image(qt *t)
{
    const char *dir = fresh_dir();
    char command[600];
    qn_model *m = NULL;
    qn_err err = {0};
    const qn_model_options opt = {.activations = QN_ACTIVATIONS_F32, .image_dir = dir};
    QT_OKF(t, qn_model_open(&m, sources[0], &opt, &err) == QN_OK, "%s", err.msg);
    qn_model_unref(m);
    snprintf(command, sizeof command, "test -z \"$(ls '%s')\"", dir);
    QT_EQ(t, system(command), 0);
}

static void a_second_open_finds_the_image(qt *t)
{
    const char *dir = fresh_dir();
    qn_model *a = open_with(t, sources[0], dir, NULL), *b = open_with(t, sources[0], dir, NULL);
    if (a && b) {
        QT_OK(t, qn_image_was_built(a->panels.image) && !qn_image_was_built(b->panels.image));
        same_panels(t, a, b);
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
    if (a) snprintf(path, sizeof path, "%s", qn_image_path(a->panels.image));
    qn_model_unref(a);
    if (!QT_EQ(t, qn_file_read(&bytes, &n, path, 1 << 28, NULL), QN_OK)) return;
    damage(bytes, &n);
    QT_EQ(t, qn_file_write(path, bytes, n, NULL), QN_OK);
    qn_free(bytes);
    qn_model *mapped = open_with(t, sources[0], NULL, NULL);
    qn_model *b = open_with(t, sources[0], dir, &said);
    if (b && mapped) {
        QT_OK(t, qn_image_was_built(b->panels.image));
        QT_OKF(t, strstr(said.text, "rebuild=") && strstr(said.text, why), "\"%s\" without \"%s\"",
               said.text, why);
        same_panels(t, mapped, b);
    }
    qn_model_unref(b);
    qn_model_unref(mapped);
}

static void flip_table(uint8_t *b, size_t *n) { (void)n, b[128 + 8] ^= 1; }
static void flip_header(uint8_t *b, size_t *n) { (void)n, b[40] ^= 1; }
static void other_magic(uint8_t *b, size_t *n) { (void)n, b[0] ^= 1; }
static void cut_in_half(uint8_t *b, size_t *n) { (void)b, *n /= 2; }
static void cut_to_nothing(uint8_t *b, size_t *n) { (void)b, *n = 0; }

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
        snprintf(ours, sizeof ours, "%s", qn_image_path(a->panels.image));
        snprintf(theirs, sizeof theirs, "%s", qn_image_path(b->panels.image));
    }
    qn_model_unref(a);
    qn_model_unref(b);
    QT_EQ(t, rename(theirs, ours), 0);
    qn_model *c = open_with(t, sources[0], dir, &said);
    if (c)
        QT_OK(t,
              qn_image_was_built(c->panels.image) && strstr(said.text, "made from other weights"));
    qn_model_unref(c);
}

static void a_directory_that_refuses_leaves_panels_in_memory(qt *t)
{
    lines said;
    qn_model *m = open_with(t, sources[0], "/nowhere/at/all", &said);
    if (m) QT_OK(t, m->panels.image == NULL && m->panels.data);
    QT_OKF(t, strstr(said.text, "unused=/nowhere/at/all") != NULL, "%s", said.text);
    qn_model_unref(m);
}

/* What a killed builder left: gone once it is old, left alone while it may be at work. */
static void old_temporary_files_go(qt *t)
{
    const char *dir = fresh_dir();
    char command[4200], path[1024] = "";
    qn_model *m = open_with(t, sources[0], dir, NULL);
    if (m) snprintf(path, sizeof path, "%s", qn_image_path(m->panels.image));
    qn_model_unref(m);
    snprintf(command, sizeof command,
             "touch -d '2 hours ago' '%s.aaaaaa' && touch '%s.bbbbbb' '%s0' && rm '%s'", path, path,
             path, path); /* the third: a later version of the layout */
    QT_EQ(t, system(command), 0);
    m = open_with(t, sources[0], dir, NULL);
    qn_model_unref(m);
    snprintf(command, sizeof command,
             "test ! -e '%s.aaaaaa' && test ! -e '%s0' && test -e '%s.bbbbbb' && test -e '%s'",
             path, path, path, path);
    QT_EQ(t, system(command), 0);
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

QT_MAIN(QT(an_image_holds_the_same_panels_as_memory), QT(f32_activations_need_no_image),
        QT(a_second_open_finds_the_image), QT(a_damaged_table_is_rebuilt),
        QT(a_damaged_header_is_rebuilt), QT(a_torn_image_is_rebuilt), QT(a_stale_image_is_rebuilt),
        QT(a_directory_that_refuses_leaves_panels_in_memory), QT(no_temporary_file_is_left),
        QT(old_temporary_files_go))
