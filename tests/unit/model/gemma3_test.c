/* SPDX-License-Identifier: Apache-2.0 */
/* gemma3_test.c - what the family reads out of either kind of files, and what it refuses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_int.h"
#include "tiny.h"

#define GOLDEN "tests/golden/gemma3/"

static void five_of_six_layers_of_a_gguf_slide(qt *t)
{
    qn_group_desc groups[QN_MAX_GROUPS];
    uint32_t of[QN_MAX_LAYERS];
    qn_model *m = tiny_opened(t, GOLDEN "gguf-bf16/model.gguf");
    if (!m) return;
    const qn_model_desc *d = qn_model_get_desc(m);
    QT_STR(t, d->family, "gemma3");
    QT_EQ(t, d->window, 24);
    for (uint32_t l = 0; l < 7; l++) QT_EQ(t, qn_layer_bit(d->sliding, l), l != 5);
    QT_EQ(t, qn_model_groups(m, QN_KV_F16, groups, of), 2);
    QT_OK(t,
          groups[0].kind == QN_GROUP_WINDOW && groups[0].window == 24 && groups[0].n_layers == 6);
    QT_OK(t, groups[1].kind == QN_GROUP_FULL && groups[1].n_layers == 1 && of[5] == 1);
    QT_OK(t, d->rope_theta == 1e6f && d->rope_theta_local == 1e4f && !d->rope_interleaved);
    QT_OK(t, fabs((double)m->inv_freq[0][1] - pow(1e6, -2.0 / 16) / 8) < 1e-9); /* stretched */
    QT_OK(t, fabs((double)m->inv_freq[1][1] - pow(1e4, -2.0 / 16)) < 1e-7);     /* not */
    QT_OK(t, d->embed_scale == 6.9375f); /* sqrt(48) = 6.9282 in bf16 */
    QT_OK(t, d->attention_scale == 0.25f && d->act == QN_ACT_GELU_TANH && d->tied);
    qn_model_unref(m);
}

static void a_gguf_without_a_window_has_full_layers_only(qt *t)
{
    qn_model *m = tiny_opened(t, GOLDEN "gguf-f16-full/model.gguf");
    if (!m) return;
    QT_EQ(t, qn_model_get_desc(m)->window, 0);
    for (uint32_t l = 0; l < 2; l++) QT_OK(t, !qn_layer_bit(qn_model_get_desc(m)->sliding, l));
    qn_model_unref(m);
}

static void the_largest_gguf_scales_by_width_over_heads(qt *t)
{
    qn_model *m = tiny_opened(t, GOLDEN "gguf-f16-deep/model.gguf");
    if (!m) return;
    QT_OK(t, qn_model_get_desc(m)->attention_scale == 0.5f); /* 1 / sqrt(16 / 4) */
    qn_model_unref(m);
}

static void gains_are_one_more_than_safetensors_say(qt *t)
{
    qn_model *a = tiny_opened(t, GOLDEN "gguf-bf16/model.gguf"),
             *b = tiny_opened(t, GOLDEN "st-bf16");
    if (a && b) {
        const qn_layer_weights *x = &a->weights.layers[3], *y = &b->weights.layers[3];
        qt_same(t, x->attn_norm, y->attn_norm, 48);
        qt_same(t, x->post_attn_norm, y->post_attn_norm, 48);
        qt_same(t, x->ffn_norm, y->ffn_norm, 48);
        qt_same(t, x->post_ffn_norm, y->post_ffn_norm, 48);
        qt_same(t, x->q_norm, y->q_norm, 16);
        qt_same(t, x->k_norm, y->k_norm, 16);
        qt_same(t, a->weights.top.norm, b->weights.top.norm, 48);
    }
    qn_model_unref(a);
    qn_model_unref(b);
}

static void vision_is_left_out_and_counted(qt *t)
{
    static const char *const names[] = {GOLDEN "st-f16-inside", GOLDEN "st-f16-inside-new"};
    for (size_t i = 0; i < QT_LEN(names); i++) {
        qn_model *m = tiny_opened(t, names[i]);
        if (!m) continue;
        const qn_model_desc *d = qn_model_get_desc(m);
        QT_EQ(t, m->weights.n_dropped, 3);
        QT_OK(t, d->n_heads == 8 && d->n_kv_heads == 4); /* what its config leaves out */
        QT_OK(t, d->n_eos == 2 && d->eos[0] == 1 && d->eos[1] == 7);
        QT_OK(t, d->embed_scale == qn_f16_to_f32(qn_f32_to_f16(sqrtf(48))));
        qn_model_unref(m);
    }
}

/* Ids of media lie behind the table; more than those are a mistake. */
static void write_tokenizer(const char *dir, uint32_t n)
{
    char path[600];
    uint8_t *bytes = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, GOLDEN "st-f32/tokenizer.json");
    if (qn_file_read(&bytes, &size, path, 1 << 20, NULL) != QN_OK) return;
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    FILE *f = fopen(path, "wb");
    const char *text = (const char *)bytes, *vocab = strstr(text, "\"vocab\": {");
    if (f && vocab) {
        const size_t at = (size_t)(vocab - text) + strlen("\"vocab\": {");
        fwrite(text, 1, at, f);
        for (uint32_t i = 0; i < n; i++) fprintf(f, "\"more%u\": %u,", i, 101 + i);
        fwrite(text + at, 1, size - at, f);
    }
    if (f) fclose(f);
    qn_free(bytes);
}

static void ids_of_media_may_lie_behind_the_table(qt *t)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char dir[512], path[600];
    snprintf(dir, sizeof dir, "%s/media", qt_tmp());
    QT_EQ(t, mkdir(dir, 0777), 0);
    for (size_t i = 0; i < QT_LEN(files); i++) {
        uint8_t *bytes = NULL;
        size_t n = 0;
        snprintf(path, sizeof path, GOLDEN "st-f32/%s", files[i]);
        QT_EQ(t, qn_file_read(&bytes, &n, path, 1 << 20, NULL), QN_OK);
        snprintf(path, sizeof path, "media/%s", files[i]);
        (void)qt_file(path, bytes, n);
        qn_free(bytes);
    }
    write_tokenizer(dir, 64);
    qn_model *m = tiny_opened(t, dir);
    if (m) QT_EQ(t, qn_tokenizer_size(qn_model_tokenizer(m)), 165);
    qn_model_unref(m);
    write_tokenizer(dir, 65);
    tiny_refused(t, dir, QN_E_FORMAT, "the tokenizer has 166 ids, the embedding table 101 rows");
}

#define GEMMA "\"model_type\": \"gemma3_text\", \"head_dim\": 8, "
#define SLIDES GEMMA "\"sliding_window\": 8, "

static void hostile_configs_are_refused_by_key(qt *t)
{
    static const struct {
        const char *extra;
        qn_code code;
        const char *word;
    } rows[] = {
        {GEMMA, QN_E_FORMAT, "sliding_window is missing"},
        {SLIDES "\"sliding_window_pattern\": 0,", QN_E_LIMIT, "sliding_window_pattern is 0"},
        {SLIDES "\"sliding_window_pattern\": 2.5,", QN_E_LIMIT, "sliding_window_pattern is 2.5"},
        {SLIDES "\"sliding_window_pattern\": 1e99,", QN_E_LIMIT, "sliding_window_pattern"},
        {SLIDES "\"query_pre_attn_scalar\": 0,", QN_E_LIMIT, "query_pre_attn_scalar is 0"},
        {SLIDES "\"query_pre_attn_scalar\": -4,", QN_E_LIMIT, "query_pre_attn_scalar is -4"},
        {SLIDES "\"query_pre_attn_scalar\": 1e300,", QN_E_LIMIT, "query_pre_attn_scalar"},
        {SLIDES "\"use_bidirectional_attention\": true,", QN_E_UNSUPPORTED,
         "use_bidirectional_attention"},
        {SLIDES "\"final_logit_softcapping\": -1,", QN_E_LIMIT, "final_logit_softcapping is -1"},
        {SLIDES "\"rope_local_base_freq\": 0,", QN_E_LIMIT, "rope_local_base_freq"},
        {SLIDES "\"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": -1}},", QN_E_LIMIT,
         "rope_theta is -1"},
        {SLIDES "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"ntk\"}},",
         QN_E_UNSUPPORTED, "\"ntk\""},
        {SLIDES "\"hidden_activation\": \"mish\",", QN_E_UNSUPPORTED, "hidden_activation \"mish\""},
        {SLIDES "\"torch_dtype\": 16,", QN_E_FORMAT, "torch_dtype is no text"},
        {SLIDES "\"layer_types\": [\"full_attention\", \"chunked_attention\"],", QN_E_UNSUPPORTED,
         "chunked_attention"},
        {SLIDES "\"text_config\": {\"hidden_size\": \"wide\"},", QN_E_FORMAT,
         "hidden_size is no number"},
        {SLIDES "\"text_config\": {\"eos_token_id\": 4000},", QN_E_FORMAT, "missing"},
        {SLIDES, QN_E_FORMAT, "self_attn.q_norm.weight"}, /* the tensors are llama's */
    };
    for (size_t i = 0; i < QT_LEN(rows); i++)
        tiny_refused(t, tiny_hf(t, "hostile", tiny_config(rows[i].extra), "", false), rows[i].code,
                     rows[i].word);
}

static void a_weight_that_is_not_finite_is_found_by_name(qt *t)
{
    static float gain[16];
    static uint16_t up[64 * 48]; /* bf16 */
    char name[96] = "";
    qn_model *m = tiny_opened(t, GOLDEN "st-bf16");
    if (!m) return;
    QT_OK(t, !qn_model_find_nan(name, sizeof name, m, UINT64_MAX));
    qn_matrix *x = &m->weights.layers[2].up;
    QT_OK(t, x->rows == 64 && x->cols == 48 && x->fmt == QN_FMT_BF16);
    for (uint32_t r = 0; r < x->rows; r++)
        memcpy(up + (size_t)r * 48, (const char *)x->data + r * x->ld_bytes, 48 * sizeof *up);
    up[64 * 48 - 1] = 0x7F80; /* infinity, the last of all */
    x->data = up;
    x->ld_bytes = 48 * sizeof *up;
    QT_OK(t, qn_model_find_nan(name, sizeof name, m, UINT64_MAX));
    QT_STR(t, name, "model.layers.2.mlp.up_proj");
    QT_OK(t, !qn_model_find_nan(name, sizeof name, m, 1000)); /* not as far as that */
    gain[15] = NAN;
    m->weights.layers[1].k_norm = gain;
    QT_OK(t, qn_model_find_nan(name, sizeof name, m, 0));
    QT_STR(t, name, "model.layers.1.self_attn.k_norm.weight");
    qn_model_unref(m);
}

static void opening_survives_every_failed_allocation(qt *t)
{
    static const char *const paths[] = {GOLDEN "st-f16-inside", GOLDEN "gguf-q4_0/model.gguf"};
    for (size_t i = 0; i < QT_LEN(paths); i++) {
        const size_t before = qn_alloc_live();
        qn_code rc = QN_E_NOMEM;
        size_t n = 0;
        for (; rc != QN_OK && n < 4096; n++) {
            qn_model *m = NULL;
            qn_alloc_fail_after(n);
            rc = qn_model_open(&m, paths[i], NULL, NULL);
            qn_alloc_fail_after(SIZE_MAX);
            QT_OKF(t, rc == QN_OK || (rc == QN_E_NOMEM && m == NULL), "allocation %zu: %s", n,
                   quern_code_name(rc));
            qn_model_unref(m);
            QT_EQ(t, qn_alloc_live(), before);
        }
        QT_OK(t, rc == QN_OK && n > 5);
    }
}

QT_MAIN(QT(five_of_six_layers_of_a_gguf_slide), QT(a_gguf_without_a_window_has_full_layers_only),
        QT(the_largest_gguf_scales_by_width_over_heads),
        QT(gains_are_one_more_than_safetensors_say), QT(vision_is_left_out_and_counted),
        QT(ids_of_media_may_lie_behind_the_table), QT(hostile_configs_are_refused_by_key),
        QT(a_weight_that_is_not_finite_is_found_by_name),
        QT(opening_survives_every_failed_allocation))
