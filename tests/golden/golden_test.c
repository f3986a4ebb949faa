/* SPDX-License-Identifier: Apache-2.0 */
/* golden_test.c - every tiny model against its oracle: logits within 1e-4 of the largest, at every
 * position, and panels from a file beside panels in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forward.h"
#include "golden.h"

#define TOLERANCE 1e-4
#define TOLERANCE_16 5e-4 /* rows of 16 bits; the largest seen is 2.3e-4, of 8 bits 1e-3 to 1e-1 */

static qn_model *open_in(qt *t, const char *path, const char *image_dir, qn_act_mode mode)
{
    qn_model *m = NULL;
    qn_err err = {0};
    const qn_model_options opt = {.image_dir = image_dir, .activations = mode};
    QT_OKF(t, qn_model_open(&m, path, &opt, &err) == QN_OK, "%s", err.msg);
    return m;
}

static qn_model *open_model(qt *t, const char *path, const char *image_dir)
{
    return open_in(t, path, image_dir, QN_ACTIVATIONS_I16);
}

static void check_plan(qt *t, const char *name, qn_act_mode mode)
{
    golden g;
    qn_model *m = NULL;
    if (golden_open(t, &g, name) && (m = open_in(t, g.model, NULL, mode)) != NULL &&
        QT_EQ(t, qn_model_get_desc(m)->vocab, g.vocab)) {
        float *ours = forward_logits(t, m, g.tokens, g.n_tokens, (forward_how){.kv = QN_KV_F32});
        if (ours) {
            const double off = golden_distance(ours, g.logits, (size_t)g.n_tokens * g.vocab);
            const double most = mode == QN_ACTIVATIONS_I16 ? TOLERANCE_16 : TOLERANCE;
            QT_OKF(t, off <= most, "%s: off by %.3g, expected at most %g (float32 itself: %.3g)",
                   name, off, most, g.noise);
        }
        qt_release(1, ours);
    }
    qn_model_unref(m);
    golden_close(&g);
}

/* -- images ------------------------------------------------------------------------------------ */

/* Panels in a file are the panels in memory: not a bit of the logits moves. */
static void check_image(qt *t, const char *name)
{
    golden g;
    if (golden_open(t, &g, name)) {
        qn_model *mapped = open_model(t, g.model, NULL), *packed = open_model(t, g.model, qt_tmp());
        if (mapped && packed) {
            const forward_how how = {.kv = QN_KV_F16};
            const uint32_t n = 16;
            float *a = forward_logits(t, mapped, g.tokens, n, how);
            float *b = forward_logits(t, packed, g.tokens, n, how);
            if (a && b) qt_same(t, b, a, (size_t)n * g.vocab);
            qt_release(2, a, b);
        }
        qn_model_unref(mapped);
        qn_model_unref(packed);
    }
    golden_close(&g);
}

#define X(id, name)                                                                             \
    static void id##_plan_equals_the_oracle(qt *t) { check_plan(t, name, QN_ACTIVATIONS_F32); } \
    static void id##_in_16_bits_equals_the_oracle(qt *t)                                        \
    {                                                                                           \
        check_plan(t, name, QN_ACTIVATIONS_I16);                                                \
    }                                                                                           \
    static void id##_packed_weights_change_no_bit(qt *t) { check_image(t, name); }
#include "gemma3.def"
#include "llama.def"
#undef X

/* A prompt computes less behind the last layer's attention; its one row of logits stays the same. */
static void check_last_row(qt *t, const char *name, uint32_t n, uint32_t chunk)
{
    golden g;
    qn_model *m = NULL;
    if (golden_open(t, &g, name) && (m = open_model(t, g.model, NULL)) != NULL) {
        const size_t at = (size_t)(n - 1) * g.vocab;
        float *all = forward_logits(t, m, g.tokens, n, (forward_how){.kv = QN_KV_F16});
        float *last = forward_logits(
            t, m, g.tokens, n, (forward_how){.kv = QN_KV_F16, .chunk = chunk, .last_only = true});
        if (all && last) qt_same(t, last + at, all + at, g.vocab);
        qt_release(2, all, last);
    }
    qn_model_unref(m);
    golden_close(&g);
}

static void a_prompt_gives_the_last_row_of_all_rows(qt *t)
{
    static const uint32_t chunks[] = {0, 1, 7, 32, 64, 131};
    for (size_t i = 0; i < QT_LEN(chunks); i++) check_last_row(t, "gguf-q4_1", 132, chunks[i]);
    check_last_row(t, "st-f16-bias", 33, 32);
    check_last_row(t, "mlx-mixed", 20, 0);
    for (size_t i = 0; i < QT_LEN(chunks); i++)
        check_last_row(t, "gemma3/gguf-bf16", 132, chunks[i]);
}

static void check_list(qt *t, const char *family, const char *const *listed, size_t n_listed)
{
    char path[128];
    snprintf(path, sizeof path, GOLDEN_ROOT "/%s/index.json", family);
    qn_json *root = golden_json(t, path);
    const qn_json *models = qn_json_get(root, "models");
    QT_EQ(t, qn_json_len(models), n_listed);
    for (size_t i = 0; i < qn_json_len(models); i++) {
        size_t n = 0, k = 0;
        const char *name = qn_json_str(qn_json_at(models, i), &n);
        snprintf(path, sizeof path, "%s/%s", family, name ? name : "?");
        while (k < n_listed && strcmp(listed[k], path) != 0) k++;
        QT_OKF(t, k < n_listed, "%s is not in %s.def", path, family);
    }
    qn_json_free(root);
}

static void no_golden_is_left_out(qt *t)
{
#define X(id, name) name,
    static const char *const llama[] = {
#include "llama.def"
    };
    static const char *const gemma3[] = {
#include "gemma3.def"
    };
#undef X
    check_list(t, "llama", llama, QT_LEN(llama));
    check_list(t, "gemma3", gemma3, QT_LEN(gemma3));
}

static const qt_case cases[] = {
#define X(id, name)                                                         \
    QT(id##_plan_equals_the_oracle), QT(id##_in_16_bits_equals_the_oracle), \
        QT(id##_packed_weights_change_no_bit),
#include "gemma3.def"
#include "llama.def"
#undef X
    QT(a_prompt_gives_the_last_row_of_all_rows),
    QT(no_golden_is_left_out),
};

int main(int argc, char **argv) { return qt_run(cases, QT_LEN(cases), argc, argv); }
