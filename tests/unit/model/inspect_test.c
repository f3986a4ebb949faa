/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_test.c - reports on sound, unsupported and broken files. */
#include <string.h>

#include "base/alloc.h"
#include "dep/json.h"
#include "model/inspect.h"
#include "tiny.h"

static qn_json *report(qt *t, const char *path, qn_inspect_options opt)
{
    char *text = NULL;
    size_t n = 0;
    qn_json *root = NULL;
    qn_err err = {0};
    QT_OKF(t, qn_model_inspect(&text, &n, path, &opt, &err) == QN_OK, "%s", err.msg);
    if (text) QT_OKF(t, qn_json_parse(&root, text, n, SIZE_MAX, &err) == QN_OK, "%s", err.msg);
    qn_free(text);
    return root;
}

static bool says(const qn_json *root, const char *key, const char *text)
{
    size_t n = 0;
    const char *s = qn_json_str(qn_json_get(root, key), &n);
    return s && strstr(s, text) != NULL;
}

static void a_sound_file_is_described(qt *t)
{
    qn_json *r = report(t, tiny_gguf(t, &(tiny){.tokenizer = true}), (qn_inspect_options){0});
    QT_OK(t, says(r, "source", "gguf") && says(r, "type", "llama"));
    QT_OK(t, !qn_json_get(r, "problem") && !qn_json_get(r, "tensors"));
    const qn_json *m = qn_json_get(r, "model"), *meta = qn_json_get(r, "metadata");
    QT_EQ(t, qn_json_int(qn_json_get(m, "layers"), 0), 2);
    QT_EQ(t, qn_json_int(qn_json_get(m, "head_dim"), 0), TINY_DIM);
    QT_EQ(t, qn_json_int(qn_json_get(meta, "llama.block_count"), 0), 2);
    const qn_json *tokens = qn_json_get(meta, "tokenizer.ggml.tokens");
    QT_EQ(t, qn_json_int(qn_json_get(tokens, "n"), 0), TINY_VOCAB);
    QT_EQ(t, qn_json_len(qn_json_get(tokens, "first")), 8);
    const qn_json *row = qn_json_at(qn_json_get(r, "census"), 0);
    QT_OK(t, says(row, "format", "F32"));
    QT_EQ(t, qn_json_int(qn_json_get(row, "tensors"), 0), 20);
    qn_json_free(r);
}

static void tensors_and_arrays_are_listed_on_demand(qt *t)
{
    qn_json *r = report(t, tiny_gguf(t, &(tiny){.tokenizer = true}),
                        (qn_inspect_options){.tensors = true, .arrays = true});
    const qn_json *list = qn_json_get(r, "tensors");
    QT_EQ(t, qn_json_len(list), 20);
    QT_OK(t, says(qn_json_at(list, 0), "name", "token_embd.weight"));
    const qn_json *shape = qn_json_get(qn_json_at(list, 0), "shape");
    QT_EQ(t, qn_json_int(qn_json_at(shape, 0), 0), TINY_VOCAB);
    QT_EQ(t, qn_json_int(qn_json_at(shape, 1), 0), TINY_WIDTH);
    QT_EQ(t, qn_json_len(qn_json_get(qn_json_get(r, "metadata"), "tokenizer.ggml.tokens")),
          TINY_VOCAB);
    qn_json_free(r);
}

static void an_unsupported_type_is_a_problem_not_a_failure(qt *t)
{
    qn_json *r = report(t, tiny_gguf(t, &(tiny){.arch = "rwkv"}), (qn_inspect_options){0});
    QT_OK(t, says(r, "type", "rwkv") && says(r, "problem", "not supported"));
    QT_OK(t, qn_json_len(qn_json_get(r, "census")) == 1 && !qn_json_get(r, "model"));
    qn_json_free(r);
}

static void a_missing_tensor_is_a_problem_not_a_failure(qt *t)
{
    qn_json *r = report(t, tiny_gguf(t, &(tiny){.no_tensor = "output_norm.weight"}),
                        (qn_inspect_options){0});
    QT_OK(t, says(r, "problem", "output_norm.weight"));
    qn_json_free(r);
}

static void a_number_that_json_cannot_hold_becomes_a_text(qt *t)
{
    const tiny how = {
        .key = "attention.layer_norm_rms_epsilon", .value = 1e300, .as_float = true}; /* +inf */
    qn_json *r = report(t, tiny_gguf(t, &how), (qn_inspect_options){0});
    QT_OK(t, says(qn_json_get(r, "metadata"), "llama.attention.layer_norm_rms_epsilon", "inf"));
    QT_OK(t, says(r, "problem", "layer_norm_rms_epsilon"));
    qn_json_free(r);
}

static void a_directory_shows_its_config(qt *t)
{
    const char *dir = tiny_hf(t, "inspect", tiny_config("\"model_type\": \"llama\","), "", true);
    qn_json *r = report(t, dir, (qn_inspect_options){0});
    QT_OK(t, says(r, "source", "safetensors") && says(r, "type", "llama"));
    QT_EQ(t, qn_json_int(qn_json_get(qn_json_get(r, "metadata"), "hidden_size"), 0), TINY_WIDTH);
    qn_json_free(r);
}

static void a_file_without_a_header_fails(qt *t)
{
    char *text = NULL;
    size_t n = 0;
    qn_err err = {0};
    const qn_inspect_options opt = {0};
    QT_EQ(t, qn_model_inspect(&text, &n, qt_file("x.gguf", "GGUF\3\0\0\0", 8), &opt, &err),
          QN_E_FORMAT);
    QT_OK(t, text == NULL && strstr(err.msg, "x.gguf"));
}

static void a_report_survives_every_failed_allocation(qt *t)
{
    const char *path = tiny_gguf(t, &(tiny){.tokenizer = true});
    const qn_inspect_options opt = {.tensors = true};
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 20000; n++) {
        char *text = NULL;
        size_t len = 0;
        qn_alloc_fail_after(n);
        rc = qn_model_inspect(&text, &len, path, &opt, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && text == NULL));
        qn_free(text);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(a_sound_file_is_described), QT(tensors_and_arrays_are_listed_on_demand),
        QT(an_unsupported_type_is_a_problem_not_a_failure),
        QT(a_missing_tensor_is_a_problem_not_a_failure),
        QT(a_number_that_json_cannot_hold_becomes_a_text), QT(a_directory_shows_its_config),
        QT(a_file_without_a_header_fails), QT(a_report_survives_every_failed_allocation))
