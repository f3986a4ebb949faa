/* SPDX-License-Identifier: Apache-2.0 */
/* dense.h - what decoders of pre-norm attention and a gated MLP share: settings, tensors, forward.
 *
 *     h <- h + [post_attn_norm] o(attention(rope([q_norm] q), rope([k_norm] k), v))   on attn_norm(h)
 *     h <- h + [post_ffn_norm] down(act(gate) * up)                                   on ffn_norm(h)
 *     logits = head(norm(h))
 *
 * What stands in brackets happens where the tensor is there; all else that differs between families is
 * data in the descriptor. A family of this shape is its names, its slots and a reader.
 *
 * Thread: constant.
 */
#ifndef QN_MODEL_FAMILIES_DENSE_H
#define QN_MODEL_FAMILIES_DENSE_H
#include "model/family.h"

/* Sizes, head size, rope dims and whether the head is tied; a member that the family has set before is
 * the default of a setting that the files leave out. Refuses what would be another forward: experts,
 * values of another width than keys. Errors: FORMAT, LIMIT, UNSUPPORTED naming the key. */
qn_code qn_dense_read(qn_model_desc *d, const qn_source *s, qn_err *err);
/* The forward; model is the qn_model. */
void qn_dense_record(const void *model, qn_graph *g, const qn_plan_key *key);

/* -- slots, for the families' weight maps ------------------------------------------------------ */

#define QN_AT_LAYER(member) offsetof(qn_layer_weights, member)
#define QN_AT_TOP(member) offsetof(qn_top_weights, member)
#define QN_HF_LAYER "model.layers.#."

#define QN_DENSE_MATRIX(member, rows, cols, gguf, hf)                                          \
    {                                                                                          \
        true, false, QN_NEED_ALWAYS, rows, cols, QN_AT_LAYER(member), "blk.#." gguf ".weight", \
            QN_HF_LAYER hf, false                                                              \
    }
#define QN_DENSE_BIAS(member, size, gguf, hf)                                                    \
    {                                                                                            \
        true, true, QN_NEED_NEVER, QN_DIM_ONE, size, QN_AT_LAYER(member), "blk.#." gguf ".bias", \
            QN_HF_LAYER hf ".bias", false                                                        \
    }
/* less_one: safetensors hold the gain minus one. */
#define QN_DENSE_GAIN(member, need, size, gguf, hf, less_one)                             \
    {                                                                                     \
        true, true, need, QN_DIM_ONE, size, QN_AT_LAYER(member), "blk.#." gguf ".weight", \
            QN_HF_LAYER hf ".weight", less_one                                            \
    }

#define QN_DENSE_TABLE(member, need, gguf, hf)                                                 \
    {                                                                                          \
        false, false, need, QN_DIM_VOCAB, QN_DIM_WIDTH, QN_AT_TOP(member), gguf ".weight", hf, \
            false                                                                              \
    }
#define QN_DENSE_LAST_NORM(less_one)                                            \
    {                                                                           \
        false, true, QN_NEED_ALWAYS, QN_DIM_ONE, QN_DIM_WIDTH, QN_AT_TOP(norm), \
            "output_norm.weight", "model.norm.weight", less_one                 \
    }

/* Everything but the norms and what only GGUF files know. */
#define QN_DENSE_SLOTS                                                                 \
    QN_DENSE_TABLE(embed, QN_NEED_ALWAYS, "token_embd", "model.embed_tokens"),         \
        QN_DENSE_TABLE(head, QN_NEED_UNTIED, "output", "lm_head"),                     \
        QN_DENSE_MATRIX(q, QN_DIM_Q, QN_DIM_WIDTH, "attn_q", "self_attn.q_proj"),      \
        QN_DENSE_MATRIX(k, QN_DIM_KV, QN_DIM_WIDTH, "attn_k", "self_attn.k_proj"),     \
        QN_DENSE_MATRIX(v, QN_DIM_KV, QN_DIM_WIDTH, "attn_v", "self_attn.v_proj"),     \
        QN_DENSE_MATRIX(o, QN_DIM_WIDTH, QN_DIM_Q, "attn_output", "self_attn.o_proj"), \
        QN_DENSE_MATRIX(gate, QN_DIM_FFN, QN_DIM_WIDTH, "ffn_gate", "mlp.gate_proj"),  \
        QN_DENSE_MATRIX(up, QN_DIM_FFN, QN_DIM_WIDTH, "ffn_up", "mlp.up_proj"),        \
        QN_DENSE_MATRIX(down, QN_DIM_WIDTH, QN_DIM_FFN, "ffn_down", "mlp.down_proj"),  \
        QN_DENSE_BIAS(q_bias, QN_DIM_Q, "attn_q", "self_attn.q_proj"),                 \
        QN_DENSE_BIAS(k_bias, QN_DIM_KV, "attn_k", "self_attn.k_proj"),                \
        QN_DENSE_BIAS(v_bias, QN_DIM_KV, "attn_v", "self_attn.v_proj"),                \
        QN_DENSE_BIAS(o_bias, QN_DIM_WIDTH, "attn_output", "self_attn.o_proj"),        \
        QN_DENSE_BIAS(gate_bias, QN_DIM_FFN, "ffn_gate", "mlp.gate_proj"),             \
        QN_DENSE_BIAS(up_bias, QN_DIM_FFN, "ffn_up", "mlp.up_proj"),                   \
        QN_DENSE_BIAS(down_bias, QN_DIM_WIDTH, "ffn_down", "mlp.down_proj")

#endif
