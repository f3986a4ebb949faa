/* SPDX-License-Identifier: Apache-2.0 */
#include "mlx_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "dep/hash.h"
#include "format/gguf.h"
#include "format/safetensors_write.h"

enum { GROUP = 64, NAME_BYTES = 96, PATH_BYTES = 1024 };

typedef struct item { /* one tensor of the source and the module it becomes */
    qn_gguf_tensor t;
    char module[NAME_BYTES]; /* without ".weight" */
    uint32_t heads;          /* whose rows must be put back in order; 0: none */
} item;

typedef struct copier {
    qn_gguf *src;
    qn_st_writer *out;
    qn_sha256_stream *sha;
    item *items; /* sorted by module */
    size_t n_items;
    uint32_t bits, heads, kv_heads;
    qn_fmt small; /* of scales, biases and norms */
} copier;

static const struct {
    const char *gguf, *hf;
} names[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},       {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},       {"output", "lm_head"},
};

/* blk.3.ffn_up.weight -> model.layers.3.mlp.up_proj */
static qn_code name_item(copier *c, item *it, qn_err *err)
{
    char rest[NAME_BYTES] = "";
    unsigned layer = 0;
    const qn_str name = it->t.name;
    const qn_str block = QN_STR("blk."), tail = QN_STR(".weight");
    qn_str short_name = qn_str_slice(name, 0, name.n - (name.n > tail.n ? tail.n : name.n));
    const bool in_block = qn_str_has_prefix(name, block);
    if (in_block) {
        const size_t dot = qn_str_find(name, QN_STR("."), block.n);
        uint64_t n = 0;
        if (dot == SIZE_MAX || !qn_str_parse_u64(&n, qn_str_slice(name, block.n, dot)) || n > 9999)
            return qn_fail(err, QN_E_UNSUPPORTED, "tensor %.*s", QN_STR_ARG(name));
        layer = (unsigned)n;
        short_name = qn_str_slice(short_name, dot + 1, short_name.n);
    }
    for (size_t i = 0; i < QN_LEN(names); i++)
        if (qn_str_eq_z(short_name, names[i].gguf)) snprintf(rest, sizeof rest, "%s", names[i].hf);
    if (!rest[0] || !qn_str_has_suffix(name, tail))
        return qn_fail(err, QN_E_UNSUPPORTED, "tensor %.*s", QN_STR_ARG(name));
    if (in_block)
        snprintf(it->module, sizeof it->module, "model.layers.%u.%.64s", layer, rest);
    else
        snprintf(it->module, sizeof it->module, "%.64s", rest);
    if (strstr(rest, ".q_proj")) it->heads = c->heads;
    if (strstr(rest, ".k_proj")) it->heads = c->kv_heads;
    return QN_OK;
}

static int by_module(const void *a, const void *b)
{
    return strcmp(((const item *)a)->module, ((const item *)b)->module);
}

static qn_code list_items(copier *c, qn_err *err)
{
    c->n_items = qn_gguf_n_tensors(c->src);
    c->items = qn_calloc(c->n_items, sizeof *c->items);
    if (!c->items) return qn_fail(err, QN_E_NOMEM, "list of tensors");
    for (size_t i = 0; i < c->n_items; i++) {
        qn_gguf_tensor_at(c->src, i, &c->items[i].t);
        QN_TRY(name_item(c, &c->items[i], err));
    }
    qsort(c->items, c->n_items, sizeof *c->items, by_module);
    return QN_OK;
}

static qn_st_dtype dtype_of(qn_fmt fmt) { return fmt == QN_FMT_BF16 ? QN_ST_BF16 : QN_ST_F16; }

static uint16_t narrow(const copier *c, float v)
{
    return c->small == QN_FMT_BF16 ? qn_f32_to_bf16(v) : qn_f32_to_f16(v);
}

static float widen(const copier *c, uint16_t v)
{
    return c->small == QN_FMT_BF16 ? qn_bf16_to_f32(v) : qn_f16_to_f32(v);
}

/* Names and shapes, in the order in which write_item gives the bytes: by name. */
static qn_code add_item(copier *c, const item *it, qn_err *err)
{
    char name[NAME_BYTES + 16];
    const uint64_t cols = it->t.dims[0], rows = it->t.dims[1];
    if (it->t.n_dims == 1) {
        snprintf(name, sizeof name, "%s.weight", it->module);
        return qn_st_add_tensor(c->out, name, dtype_of(c->small), &cols, 1, err);
    }
    const uint64_t groups[2] = {rows, cols / GROUP}, words[2] = {rows, cols * c->bits / 32};
    snprintf(name, sizeof name, "%s.biases", it->module);
    QN_TRY(qn_st_add_tensor(c->out, name, dtype_of(c->small), groups, 2, err));
    snprintf(name, sizeof name, "%s.scales", it->module);
    QN_TRY(qn_st_add_tensor(c->out, name, dtype_of(c->small), groups, 2, err));
    snprintf(name, sizeof name, "%s.weight", it->module);
    return qn_st_add_tensor(c->out, name, QN_ST_U32, words, 2, err);
}

/* The bytes of one tensor, to the file and to the digest. */
static qn_code emit(copier *c, const char *module, const char *part, const void *bytes, size_t n,
                    qn_err *err)
{
    char name[NAME_BYTES + 16];
    const int len = snprintf(name, sizeof name, "%s.%s", module, part);
    QN_TRY(qn_sha256_update(c->sha, name, (size_t)len + 1, err)); /* its NUL is the separator */
    QN_TRY(qn_sha256_update(c->sha, bytes, n, err));
    return qn_st_write(c->out, bytes, n, err);
}

/* Where row r of the copy stands in the GGUF: there component i and i + D/2 are neighbours. */
static uint32_t source_row(uint32_t r, uint32_t rows, uint32_t heads)
{
    if (!heads) return r;
    const uint32_t dim = rows / heads, half = dim / 2, i = r % dim;
    return r - i + (i < half ? 2 * i : 2 * (i - half) + 1);
}

static qn_code write_matrix(copier *c, const item *it, const qn_matrix *w, qn_err *err)
{
    qn_code rc = QN_OK;
    const qn_fmt fmt = qn_format_affine(c->bits, GROUP);
    const size_t groups = w->cols / GROUP, row_bytes = (size_t)w->cols * c->bits / 8;
    float *x = qn_calloc(w->cols, sizeof *x), *sb = qn_calloc(2 * groups, sizeof *sb);
    uint16_t *scales = qn_calloc(w->rows * groups, sizeof *scales);
    uint16_t *biases = qn_calloc(w->rows * groups, sizeof *biases);
    uint8_t *codes = qn_calloc(w->rows, row_bytes);
    if (!x || !sb || !scales || !biases || !codes) {
        rc = qn_fail(err, QN_E_NOMEM, "%s", it->module);
        goto out;
    }
    for (uint32_t r = 0; r < w->rows; r++) {
        const uint32_t from = source_row(r, w->rows, it->heads);
        qn_format_get(w->fmt)->unpack(x, w, from, 0, w->cols);
        for (uint32_t i = 0; i < w->cols; i++) x[i] = widen(c, narrow(c, x[i]));
        QN_TRY_OUT(qn_format_pack(codes + r * row_bytes, sb, sb + groups, fmt, x, w->cols, err));
        for (size_t g = 0; g < groups; g++) {
            scales[r * groups + g] = narrow(c, sb[g]);
            biases[r * groups + g] = narrow(c, sb[groups + g]);
        }
    }
    QN_TRY_OUT(emit(c, it->module, "biases", biases, 2 * w->rows * groups, err));
    QN_TRY_OUT(emit(c, it->module, "scales", scales, 2 * w->rows * groups, err));
    QN_TRY_OUT(emit(c, it->module, "weight", codes, w->rows * row_bytes, err));
out:
    qn_free(codes);
    qn_free(biases);
    qn_free(scales);
    qn_free(sb);
    qn_free(x);
    return rc;
}

static qn_code write_item(copier *c, const item *it, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_matrix w;
    float *x = NULL;
    QN_TRY(qn_gguf_tensor_matrix(&w, &it->t, err));
    if (it->t.n_dims != 1) return write_matrix(c, it, &w, err);
    x = qn_calloc(w.cols, sizeof *x);
    uint16_t *v = qn_calloc(w.cols, sizeof *v);
    if (!x || !v) {
        rc = qn_fail(err, QN_E_NOMEM, "%s", it->module);
        goto out;
    }
    qn_format_get(w.fmt)->unpack(x, &w, 0, 0, w.cols);
    for (uint32_t i = 0; i < w.cols; i++) v[i] = narrow(c, x[i]);
    QN_TRY_OUT(emit(c, it->module, "weight", v, 2 * (size_t)w.cols, err));
out:
    qn_free(v);
    qn_free(x);
    return rc;
}

static qn_code write_config(const copier *c, const char *dir, qn_err *err)
{
    static const struct {
        const char *gguf, *hf;
    } counts[] = {
        {"llama.embedding_length", "hidden_size"},
        {"llama.feed_forward_length", "intermediate_size"},
        {"llama.block_count", "num_hidden_layers"},
        {"llama.attention.head_count", "num_attention_heads"},
        {"llama.attention.head_count_kv", "num_key_value_heads"},
        {"llama.context_length", "max_position_embeddings"},
        {"llama.vocab_size", "vocab_size"},
        {"tokenizer.ggml.bos_token_id", "bos_token_id"},
        {"tokenizer.ggml.eos_token_id", "eos_token_id"},
    };
    qn_code rc = QN_OK;
    qn_buf b;
    char path[PATH_BYTES];
    float eps = 0, theta = 0;
    qn_gguf_tensor head;
    qn_buf_init(&b, 1 << 16);
    QN_TRY_OUT(qn_buf_append_z(&b,
                               "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": "
                               "\"llama\", \"hidden_act\": \"silu\"",
                               err));
    for (size_t i = 0; i < QN_LEN(counts); i++) {
        uint32_t v = 0;
        QN_TRY_OUT(qn_gguf_get_u32(&v, c->src, counts[i].gguf, err));
        QN_TRY_OUT(qn_buf_printf(&b, err, ", \"%s\": %u", counts[i].hf, v));
    }
    QN_TRY_OUT(qn_gguf_get_f32(&eps, c->src, "llama.attention.layer_norm_rms_epsilon", err));
    QN_TRY_OUT(qn_gguf_get_f32(&theta, c->src, "llama.rope.freq_base", err));
    const bool tied = !qn_gguf_find_tensor(c->src, "output.weight", &head);
    QN_TRY_OUT(qn_buf_printf(&b, err,
                             ", \"rms_norm_eps\": %.9g, \"rope_theta\": %.9g, "
                             "\"tie_word_embeddings\": %s, \"quantization\": {\"group_size\": %d, "
                             "\"bits\": %u}}\n",
                             (double)eps, (double)theta, tied ? "true" : "false", GROUP, c->bits));
    snprintf(path, sizeof path, "%s/config.json", dir);
    QN_TRY_OUT(qn_file_write(path, b.data, b.len, err));
out:
    qn_buf_fini(&b);
    return rc;
}

qn_code mlx_copy(const char *gguf, uint32_t bits, const char *dir, char digest[65], qn_err *err)
{
    qn_code rc = QN_OK;
    copier c = {.bits = bits, .small = bits == 4 ? QN_FMT_BF16 : QN_FMT_F16};
    qn_sha256_digest sum;
    char path[PATH_BYTES];
    digest[0] = '\0';
    if (bits != 4 && bits != 8) return qn_fail(err, QN_E_INVAL, "bits %u, expected 4 or 8", bits);
    QN_TRY_OUT(qn_gguf_open(&c.src, gguf, err));
    QN_TRY_OUT(qn_gguf_get_u32(&c.heads, c.src, "llama.attention.head_count", err));
    QN_TRY_OUT(qn_gguf_get_u32(&c.kv_heads, c.src, "llama.attention.head_count_kv", err));
    QN_TRY_OUT(list_items(&c, err));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    QN_TRY_OUT(qn_st_writer_open(&c.out, path, err));
    QN_TRY_OUT(qn_sha256_new(&c.sha, err));
    QN_TRY_OUT(qn_st_put_meta(c.out, "format", QN_STR("mlx"), err));
    for (size_t i = 0; i < c.n_items; i++) QN_TRY_OUT(add_item(&c, &c.items[i], err));
    for (size_t i = 0; i < c.n_items; i++) QN_TRY_OUT(write_item(&c, &c.items[i], err));
    QN_TRY_OUT(qn_st_writer_finish(c.out, err));
    QN_TRY_OUT(write_config(&c, dir, err));
    QN_TRY_OUT(qn_sha256_finish(c.sha, &sum, err));
    qn_sha256_hex(digest, &sum);
out:
    qn_free(c.items);
    qn_sha256_free(c.sha);
    qn_st_writer_close(c.out);
    qn_gguf_close(c.src);
    return rc;
}
