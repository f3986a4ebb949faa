/* SPDX-License-Identifier: Apache-2.0 */
/* gemma3.c - Gemma 3, text: the dense forward with four norms a block, normed heads and two ropes.
 *
 * Five of six layers slide: they see a window and rotate with a base of their own, unscaled; the
 * others see all and take rope_scaling. The embedding is scaled by sqrt(width) as the model's own
 * type holds it: bf16 unless config.json names another. Gains lie in safetensors as the difference
 * from one, in GGUF as they are. Vision tensors of a multimodal checkpoint are left out.
 *
 * Source: Gemma Team 2025, arXiv 2503.19786; engine specification 1.5.
 */
#include <math.h>

#include "model/families/dense.h"
#include "tensor/format.h"

enum { LAYERS_27B = 62, MEDIA_IDS = 64 };

static const char *const types[] = {"gemma3", "gemma3_text", NULL};

static const qn_slot slots[] = {
    QN_DENSE_SLOTS,
    QN_DENSE_LAST_NORM(true),
    QN_DENSE_GAIN(attn_norm, QN_NEED_ALWAYS, QN_DIM_WIDTH, "attn_norm", "input_layernorm", true),
    QN_DENSE_GAIN(q_norm, QN_NEED_ALWAYS, QN_DIM_HEAD, "attn_q_norm", "self_attn.q_norm", true),
    QN_DENSE_GAIN(k_norm, QN_NEED_ALWAYS, QN_DIM_HEAD, "attn_k_norm", "self_attn.k_norm", true),
    QN_DENSE_GAIN(post_attn_norm, QN_NEED_ALWAYS, QN_DIM_WIDTH, "post_attention_norm",
                  "post_attention_layernorm", true),
    QN_DENSE_GAIN(ffn_norm, QN_NEED_ALWAYS, QN_DIM_WIDTH, "ffn_norm", "pre_feedforward_layernorm",
                  true),
    QN_DENSE_GAIN(post_ffn_norm, QN_NEED_ALWAYS, QN_DIM_WIDTH, "post_ffw_norm",
                  "post_feedforward_layernorm", true),
};

static const char *const drop[] = {"*rotary_emb.inv_freq",          "vision_tower.*",
                                   "multi_modal_projector.*",       "model.vision_tower.*",
                                   "model.multi_modal_projector.*", NULL};
static const char *const tied_drop[] = {"lm_head.*", "language_model.lm_head.*", NULL};

static const qn_field fields[] = {
    {offsetof(qn_model_desc, attention_softcap), QN_FIELD_F32, QN_FIELD_OPTIONAL,
     "attn_logit_softcapping", "attn_logit_softcapping", 0, 1e6},
    {offsetof(qn_model_desc, logit_softcap), QN_FIELD_F32, QN_FIELD_OPTIONAL,
     "final_logit_softcapping", "final_logit_softcapping", 0, 1e6},
};

/* What transformers takes where config.json is silent; published ones leave some of them out. */
static void set_defaults(qn_model_desc *d)
{
    d->n_heads = 8;
    d->n_kv_heads = 4;
    d->head_dim = 256;
    d->vocab = 262208;
    d->norm_eps = 1e-6f;
    d->context = 131072;
}

static qn_code refuse_other_shapes(const qn_source *s, qn_err *err)
{
    bool found = false, both = false;
    QN_TRY(qn_source_bool(&found, &both, s, NULL, "use_bidirectional_attention", err));
    if (both)
        return qn_fail(err, QN_E_UNSUPPORTED,
                       "config.json: use_bidirectional_attention (an embedding model)");
    return QN_OK;
}

/* sqrt(width) rounded to the type that the model was made in, as its own code multiplies. */
static qn_code read_embed_scale(qn_model_desc *d, const qn_source *s, qn_err *err)
{
    bool found = false;
    qn_str dtype = QN_STR("bfloat16");
    const float root = sqrtf((float)d->width);
    QN_TRY(qn_source_str(&found, &dtype, s, NULL, "dtype", err));
    if (!found) QN_TRY(qn_source_str(&found, &dtype, s, NULL, "torch_dtype", err));
    if (qn_str_eq_z(dtype, "float32"))
        d->embed_scale = root;
    else if (qn_str_eq_z(dtype, "float16"))
        d->embed_scale = qn_f16_to_f32(qn_f32_to_f16(root));
    else
        d->embed_scale = qn_bf16_to_f32(qn_f32_to_bf16(root));
    return QN_OK;
}

/* 1 / sqrt(query_pre_attn_scalar). GGUF files leave that number out: it is the head size in all models
 * but that of 27B, where it is the width over the heads. */
static qn_code read_attention_scale(qn_model_desc *d, const qn_source *s, qn_err *err)
{
    bool found = false;
    double scalar = s->gguf ? d->n_layers == LAYERS_27B ? d->width / d->n_heads : d->head_dim : 256;
    QN_TRY(qn_source_num(&found, &scalar, s, NULL, "query_pre_attn_scalar", err));
    if (!(scalar > 0 && scalar <= 1 << 20))
        return qn_fail(err, QN_E_LIMIT,
                       "config.json: query_pre_attn_scalar is %g, expected above 0 and at most %d",
                       scalar, 1 << 20);
    d->attention_scale = (float)(1.0 / sqrt(scalar));
    return QN_OK;
}

static qn_code read_windows(qn_model_desc *d, const qn_source *s, qn_err *err)
{
    bool found = false;
    double period = 6;
    QN_TRY(qn_source_num(&found, &period, s, "attention.sliding_window_pattern",
                         "sliding_window_pattern", err));
    if (!(period >= 1 && period <= QN_MAX_LAYERS && period == floor(period)))
        return qn_fail(err, QN_E_LIMIT, "sliding_window_pattern is %g, expected 1 to %d", period,
                       QN_MAX_LAYERS);
    return qn_desc_read_windows(d, s, (uint32_t)period, err);
}

static qn_code read_ropes(const qn_model_desc *d, qn_rope_spec rope[2], const qn_source *s,
                          qn_err *err)
{
    rope[0] = (qn_rope_spec){.layers = QN_ROPE_OF_FULL, .theta = 1e6f};
    rope[1] = (qn_rope_spec){.layers = QN_ROPE_OF_SLIDING, .theta = 1e4f};
    for (int i = 0; i < 2; i++) {
        rope[i].dims = d->rope_dims;
        rope[i].context = d->context;
        QN_TRY(qn_rope_read(&rope[i], s, err));
    }
    return QN_OK;
}

static qn_code read(qn_model_desc *d, qn_rope_spec rope[2], const qn_source *s, qn_err *err)
{
    if (!s->gguf) set_defaults(d);
    d->act = QN_ACT_GELU_TANH;
    d->qk_norm = true;
    QN_TRY(refuse_other_shapes(s, err));
    QN_TRY(qn_dense_read(d, s, err));
    QN_TRY(qn_desc_read(d, fields, QN_LEN(fields), s, err));
    QN_TRY(qn_desc_read_act(d, s, "hidden_activation", err));
    QN_TRY(read_embed_scale(d, s, err));
    QN_TRY(read_attention_scale(d, s, err));
    QN_TRY(read_windows(d, s, err));
    return read_ropes(d, rope, s, err);
}

const qn_family qn_family_gemma3 = {
    .name = "gemma3",
    .types = types,
    .read = read,
    .map = {slots, QN_LEN(slots), drop, tied_drop},
    .record = qn_dense_record,
    .ids_beyond = MEDIA_IDS,
};
