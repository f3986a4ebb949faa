/* SPDX-License-Identifier: Apache-2.0 */
/* tiny.c - writing tiny models. */
#include "tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "format/gguf_write.h"
#include "format/safetensors_write.h"

typedef struct shape {
    const char *gguf, *hf; /* '#': layer */
    uint32_t rows, cols;   /* rows 0: a vector */
} shape;

static const shape shapes[] = {
    {"token_embd.weight", "model.embed_tokens.weight", TINY_VOCAB, TINY_WIDTH},
    {"output_norm.weight", "model.norm.weight", 0, TINY_WIDTH},
    {"blk.#.attn_norm.weight", "model.layers.#.input_layernorm.weight", 0, TINY_WIDTH},
    {"blk.#.attn_q.weight", "model.layers.#.self_attn.q_proj.weight", TINY_HEADS *TINY_DIM,
     TINY_WIDTH},
    {"blk.#.attn_k.weight", "model.layers.#.self_attn.k_proj.weight", TINY_KV *TINY_DIM,
     TINY_WIDTH},
    {"blk.#.attn_v.weight", "model.layers.#.self_attn.v_proj.weight", TINY_KV *TINY_DIM,
     TINY_WIDTH},
    {"blk.#.attn_output.weight", "model.layers.#.self_attn.o_proj.weight", TINY_WIDTH,
     TINY_HEADS *TINY_DIM},
    {"blk.#.ffn_norm.weight", "model.layers.#.post_attention_layernorm.weight", 0, TINY_WIDTH},
    {"blk.#.ffn_gate.weight", "model.layers.#.mlp.gate_proj.weight", TINY_FFN, TINY_WIDTH},
    {"blk.#.ffn_up.weight", "model.layers.#.mlp.up_proj.weight", TINY_FFN, TINY_WIDTH},
    {"blk.#.ffn_down.weight", "model.layers.#.mlp.down_proj.weight", TINY_WIDTH, TINY_FFN},
};

static void spell(char out[96], const char *prefix, const char *pattern, unsigned layer)
{
    const char *hash = strchr(pattern, '#');
    if (hash)
        snprintf(out, 96, "%s%.*s%u%s", prefix, (int)(hash - pattern), pattern, layer, hash + 1);
    else
        snprintf(out, 96, "%s%s", prefix, pattern);
}

/* -- GGUF -------------------------------------------------------------------------------------- */

static void put_number(qn_gguf_writer *w, const tiny *how, const char *name, double value,
                       bool is_float)
{
    char key[96];
    const char *arch = how->arch ? how->arch : "llama";
    if (how->key && strcmp(how->key, name) == 0) {
        if (how->without) return;
        value = how->value;
        is_float = how->as_float;
    }
    snprintf(key, sizeof key, "%s.%s", arch, name);
    if (is_float)
        (void)qn_gguf_put_f32(w, key, (float)value, NULL);
    else
        (void)qn_gguf_put_u32(w, key, (uint32_t)value, NULL);
}

static void put_keys(qn_gguf_writer *w, const tiny *how)
{
    static const struct {
        const char *name;
        double value;
        bool is_float;
    } keys[] = {
        {"block_count", 2, false},
        {"embedding_length", TINY_WIDTH, false},
        {"attention.head_count", TINY_HEADS, false},
        {"attention.head_count_kv", TINY_KV, false},
        {"feed_forward_length", TINY_FFN, false},
        {"context_length", 128, false},
        {"attention.layer_norm_rms_epsilon", 1e-5, true},
        {"rope.freq_base", 10000, true},
        {"rope.dimension_count", TINY_DIM, false},
        {"vocab_size", TINY_VOCAB, false},
    };
    bool known = false;
    (void)qn_gguf_put_str(w, "general.architecture", qn_str_z(how->arch ? how->arch : "llama"),
                          NULL);
    for (size_t i = 0; i < QT_LEN(keys); i++) {
        put_number(w, how, keys[i].name, keys[i].value, keys[i].is_float);
        known = known || (how->key && strcmp(how->key, keys[i].name) == 0);
    }
    if (how->key && !known) put_number(w, how, how->key, how->value, how->as_float);
    if (how->general) (void)qn_gguf_put_f32(w, how->general, (float)how->value, NULL);
}

/* The byte-level letters of GPT-2's table that stand for themselves. */
static void put_tokenizer(qn_gguf_writer *w, const tiny *how)
{
    static char text[512][16];
    static qn_str tokens[512];
    static int32_t types[512];
    const uint32_t n = TINY_VOCAB + how->extra_ids;
    for (uint32_t i = 0; i < n; i++) {
        if (i == TINY_VOCAB - 1)
            snprintf(text[i], sizeof text[i], "#$");
        else if (i < 2)
            snprintf(text[i], sizeof text[i], "<%u>", i);
        else if (i < 2 + 90)
            snprintf(text[i], sizeof text[i], "%c", (char)('!' + (i - 2)));
        else
            snprintf(text[i], sizeof text[i], "x%u", i);
        tokens[i] = qn_str_z(text[i]);
        types[i] = i < 2 ? 3 : 1;
    }
    (void)qn_gguf_put_str(w, "tokenizer.ggml.model", QN_STR("gpt2"), NULL);
    (void)qn_gguf_put_str(w, "tokenizer.ggml.pre", QN_STR("gpt-2"), NULL);
    (void)qn_gguf_put_strs(w, "tokenizer.ggml.tokens", tokens, n, NULL);
    (void)qn_gguf_put_array(w, "tokenizer.ggml.token_type", QN_GGUF_I32, types, n, NULL);
    const qn_str merge = QN_STR("# $");
    (void)qn_gguf_put_strs(w, "tokenizer.ggml.merges", &merge, 1, NULL);
    (void)qn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 0, NULL);
    (void)qn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 1, NULL);
}

static void write_values(qn_gguf_writer *w, size_t n, bool half, float value)
{
    for (size_t i = 0; i < n; i++) {
        const float f = value != 0 ? value : (float)((int)(qt_rand() % 2001) - 1000) / 4000.0f;
        const uint16_t h = qn_f32_to_f16(f);
        (void)qn_gguf_write(w, half ? (const void *)&h : &f, half ? sizeof h : sizeof f, NULL);
    }
}

typedef struct plan {
    size_t n;
    bool half;
    float value;
} plan;

const char *tiny_gguf(qt *t, const tiny *how)
{
    static char path[512];
    qn_gguf_writer *w = NULL;
    qn_err err = {0};
    plan tensors[64];
    size_t n_tensors = 0;
    snprintf(path, sizeof path, "%s/tiny.gguf", qt_tmp());
    QT_OKF(t, qn_gguf_writer_open(&w, path, &err) == QN_OK, "%s", err.msg);
    if (!w) return path;
    put_keys(w, how);
    if (how->tokenizer) put_tokenizer(w, how);
    for (size_t i = 0; i < QT_LEN(shapes); i++)
        for (unsigned l = 0; l < (strchr(shapes[i].gguf, '#') ? 2u : 1u); l++) {
            char name[96];
            spell(name, "", shapes[i].gguf, l);
            if (how->no_tensor && strcmp(how->no_tensor, name) == 0) continue;
            const bool bad = how->bad_tensor && strcmp(how->bad_tensor, name) == 0;
            const bool half = how->half_gains && shapes[i].rows == 0;
            const uint64_t dims[2] = {shapes[i].cols + bad, shapes[i].rows};
            (void)qn_gguf_add_tensor(w, name, half ? QN_FMT_F16 : QN_FMT_F32, dims,
                                     shapes[i].rows ? 2 : 1, NULL);
            tensors[n_tensors++] =
                (plan){(size_t)dims[0] * (shapes[i].rows ? shapes[i].rows : 1), half, 0};
        }
    const uint64_t four = 4;
    if (how->extra_tensor) {
        (void)qn_gguf_add_tensor(w, how->extra_tensor, QN_FMT_F32, &four, 1, NULL);
        tensors[n_tensors++] = (plan){4, false, 0};
    }
    if (how->rope_factor != 0) {
        (void)qn_gguf_add_tensor(w, "rope_freqs.weight", QN_FMT_F32, &four, 1, NULL);
        tensors[n_tensors++] = (plan){4, false, how->rope_factor};
    }
    for (size_t i = 0; i < n_tensors; i++)
        write_values(w, tensors[i].n, tensors[i].half, tensors[i].value);
    QT_OKF(t, qn_gguf_writer_finish(w, &err) == QN_OK, "%s", err.msg);
    qn_gguf_writer_close(w);
    return path;
}

/* -- safetensors ------------------------------------------------------------------------------- */

const char *tiny_config(const char *extra)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "{%s \"hidden_size\": %d, \"intermediate_size\": %d, \"num_hidden_layers\": 2, "
             "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"vocab_size\": %d, "
             "\"rms_norm_eps\": 1e-5, \"max_position_embeddings\": 128}",
             extra, TINY_WIDTH, TINY_FFN, TINY_HEADS, TINY_KV, TINY_VOCAB);
    return text;
}

static size_t add(qn_st_writer *w, const char *name, uint32_t rows, uint32_t cols)
{
    const uint64_t two[2] = {rows, cols}, one = cols;
    (void)qn_st_add_tensor(w, name, QN_ST_F32, rows ? two : &one, rows ? 2 : 1, NULL);
    return (size_t)(rows ? rows : 1) * cols;
}

const char *tiny_hf(qt *t, const char *folder, const char *config, const char *names_prefix,
                    bool head)
{
    static char dir[512];
    char path[600], name[96];
    qn_st_writer *w = NULL;
    qn_err err = {0};
    size_t total = 0;
    snprintf(dir, sizeof dir, "%s/%s", qt_tmp(), folder);
    (void)mkdir(dir, 0777);
    snprintf(name, sizeof name, "%s/config.json", folder);
    (void)qt_file(name, config, strlen(config));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    QT_OKF(t, qn_st_writer_open(&w, path, &err) == QN_OK, "%s", err.msg);
    if (!w) return dir;
    for (size_t i = 0; i < QT_LEN(shapes); i++)
        for (unsigned l = 0; l < (strchr(shapes[i].hf, '#') ? 2u : 1u); l++) {
            spell(name, names_prefix, shapes[i].hf, l);
            total += add(w, name, shapes[i].rows, shapes[i].cols);
        }
    snprintf(name, sizeof name, "%slm_head.weight", names_prefix);
    if (head) total += add(w, name, TINY_VOCAB, TINY_WIDTH);
    for (size_t i = 0; i < total; i++) {
        const float f = (float)((int)(qt_rand() % 2001) - 1000) / 4000.0f;
        (void)qn_st_write(w, &f, sizeof f, NULL);
    }
    QT_OKF(t, qn_st_writer_finish(w, &err) == QN_OK, "%s", err.msg);
    qn_st_writer_close(w);
    return dir;
}

void tiny_refused(qt *t, const char *path, qn_code code, const char *word)
{
    qn_model *m = NULL;
    qn_err err = {0};
    const size_t before = qn_alloc_live();
    const qn_code rc = qn_model_open(&m, path, NULL, &err);
    QT_OKF(t, rc == code && m == NULL, "%s: %s instead of %s", word, quern_code_name(rc),
           quern_code_name(code));
    QT_OKF(t, strstr(err.msg, word) != NULL, "\"%s\" does not say \"%s\"", err.msg, word);
    QT_EQ(t, qn_alloc_live(), before);
    qn_model_unref(m);
}

qn_model *tiny_opened(qt *t, const char *path)
{
    qn_model *m = NULL;
    qn_err err = {0};
    QT_OKF(t, qn_model_open(&m, path, NULL, &err) == QN_OK, "%s", err.msg);
    return m;
}
