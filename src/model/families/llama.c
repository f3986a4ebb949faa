/* SPDX-License-Identifier: Apache-2.0 */
/* llama.c - the Llama shape: the dense forward with two norms a block.
 *
 * Source: Touvron et al. 2023, arXiv 2302.13971; engine specification 1.4. GGUF files of this
 * architecture hold the rows of q and k reordered, so that rope pairs are neighbours (2i, 2i + 1);
 * safetensors hold them as trained, pairs (i, i + half).
 */
#include "model/families/dense.h"

static const char *const types[] = {"llama", "mistral", "iquestcoder", NULL};

static const qn_slot slots[] = {
    QN_DENSE_SLOTS,
    QN_DENSE_LAST_NORM(false),
    {false, true, QN_NEED_NEVER, QN_DIM_ONE, QN_DIM_PAIRS, QN_AT_TOP(rope_factors),
     "rope_freqs.weight", NULL, false},
    QN_DENSE_GAIN(attn_norm, QN_NEED_ALWAYS, QN_DIM_WIDTH, "attn_norm", "input_layernorm", false),
    QN_DENSE_GAIN(ffn_norm, QN_NEED_ALWAYS, QN_DIM_WIDTH, "ffn_norm", "post_attention_layernorm",
                  false),
};

static const char *const drop[] = {"*rotary_emb.inv_freq", "*attn_rot_embd.weight", NULL};
static const char *const tied_drop[] = {"lm_head.*", "language_model.lm_head.*", NULL};

static qn_code read(qn_model_desc *d, qn_rope_spec rope[2], const qn_source *s, qn_err *err)
{
    if (!s->gguf) { /* what transformers takes where config.json is silent */
        d->norm_eps = 1e-6f;
        d->context = 2048;
    }
    d->rope_interleaved = s->gguf != NULL;
    d->act = QN_ACT_SILU;
    QN_TRY(qn_dense_read(d, s, err));
    QN_TRY(qn_desc_read_act(d, s, "hidden_act", err));
    QN_TRY(qn_desc_read_windows(d, s, s->gguf || qn_str_eq_z(s->type, "mistral") ? 0 : 1, err));
    rope[0].dims = d->rope_dims;
    rope[0].context = d->context;
    return qn_rope_read(&rope[0], s, err);
}

const qn_family qn_family_llama = {
    .name = "llama",
    .types = types,
    .read = read,
    .map = {slots, QN_LEN(slots), drop, tied_drop},
    .record = qn_dense_record,
};
