/* SPDX-License-Identifier: Apache-2.0 */
/* dense.c - settings and forward of the dense families. */
#include "model/families/dense.h"

#include "model/model_int.h"

/* -- settings ---------------------------------------------------------------------------------- */

#define FIELD(member) offsetof(qn_model_desc, member)
static const qn_field fields[] = {
    {FIELD(n_layers), QN_FIELD_U32, QN_FIELD_IN_BOTH, "block_count", "num_hidden_layers", 1,
     QN_MAX_LAYERS},
    {FIELD(width), QN_FIELD_U32, QN_FIELD_IN_BOTH, "embedding_length", "hidden_size", 1, 1 << 20},
    {FIELD(n_heads), QN_FIELD_U32, QN_FIELD_IN_BOTH, "attention.head_count", "num_attention_heads",
     1, 4096},
    {FIELD(n_kv_heads), QN_FIELD_U32, QN_FIELD_OPTIONAL, "attention.head_count_kv",
     "num_key_value_heads", 1, 4096},
    {FIELD(head_dim), QN_FIELD_U32, QN_FIELD_OPTIONAL, "attention.key_length", "head_dim", 1, 4096},
    {FIELD(ffn), QN_FIELD_U32, QN_FIELD_IN_BOTH, "feed_forward_length", "intermediate_size", 1,
     1 << 22},
    {FIELD(vocab), QN_FIELD_U32, QN_FIELD_IN_HF, "vocab_size", "vocab_size", 1, 1 << 24},
    {FIELD(context), QN_FIELD_U32, QN_FIELD_IN_GGUF, "context_length", "max_position_embeddings", 1,
     1 << 27},
    {FIELD(norm_eps), QN_FIELD_F32, QN_FIELD_IN_GGUF, "attention.layer_norm_rms_epsilon",
     "rms_norm_eps", 1e-12, 0.5},
    {FIELD(rope_dims), QN_FIELD_U32, QN_FIELD_OPTIONAL, "rope.dimension_count", NULL, 2, 1024},
    {FIELD(window), QN_FIELD_U32, QN_FIELD_OPTIONAL, "attention.sliding_window", "sliding_window",
     0, 1 << 27},
    {FIELD(rope_interleaved), QN_FIELD_BOOL, QN_FIELD_OPTIONAL, NULL, "rope_traditional", 0, 1},
};

/* Keys of the same architecture name that mean another forward. */
static qn_code refuse_other_shapes(const qn_source *s, qn_err *err)
{
    bool found = false;
    double experts = 0;
    QN_TRY(qn_source_num(&found, &experts, s, "expert_count", "num_local_experts", err));
    if (found && experts != 0)
        return qn_fail(err, QN_E_UNSUPPORTED, "a %.*s model with %g experts",
                       (int)(s->type.n < 48 ? s->type.n : 48), s->type.p, experts);
    double key = 0, value = 0;
    bool has_key = false, has_value = false;
    QN_TRY(qn_source_num(&has_key, &key, s, "attention.key_length", NULL, err));
    QN_TRY(qn_source_num(&has_value, &value, s, "attention.value_length", NULL, err));
    if (has_key && has_value && key != value)
        return qn_fail(err, QN_E_UNSUPPORTED, "heads whose keys have %g values and whose values %g",
                       key, value);
    return QN_OK;
}

/* A head of its own is there unless the settings say that it is the embedding table. The two
 * libraries that read these files disagree on what silence means, so presence decides then. */
static qn_code read_tied(qn_model_desc *d, const qn_source *s, qn_err *err)
{
    bool found = false;
    d->tied = !qn_source_has(s, "output.weight", "lm_head");
    return qn_source_bool(&found, &d->tied, s, NULL, "tie_word_embeddings", err);
}

static qn_code read_head_size(qn_model_desc *d, const qn_source *s, qn_err *err)
{
    if (d->n_kv_heads == 0) d->n_kv_heads = d->n_heads;
    if (d->head_dim == 0) {
        if (d->width % d->n_heads != 0)
            return qn_fail(err, QN_E_FORMAT, "width %u over %u heads is not whole", d->width,
                           d->n_heads);
        d->head_dim = d->width / d->n_heads;
    }
    if (d->rope_dims != 0) return QN_OK;
    bool found = false;
    double part = 1;
    QN_TRY(qn_source_num(&found, &part, s, NULL, "partial_rotary_factor", err));
    if (!found)
        QN_TRY(qn_source_num(&found, &part, s, NULL, "rope_parameters.partial_rotary_factor", err));
    if (!(part > 0 && part <= 1))
        return qn_fail(err, QN_E_LIMIT, "config.json: partial_rotary_factor is %g", part);
    d->rope_dims = (uint32_t)(d->head_dim * part);
    return QN_OK;
}

qn_code qn_dense_read(qn_model_desc *d, const qn_source *s, qn_err *err)
{
    QN_TRY(refuse_other_shapes(s, err));
    QN_TRY(qn_desc_read(d, fields, QN_LEN(fields), s, err));
    QN_TRY(read_head_size(d, s, err));
    return read_tied(d, s, err);
}

/* -- forward ----------------------------------------------------------------------------------- */

static qn_val rotate(qn_graph *g, const qn_model *m, qn_val x, uint32_t layer, const float *gain,
                     uint32_t heads)
{
    const qn_model_desc *d = &m->desc;
    const bool local = m->has_local_rope && qn_layer_bit(d->sliding, layer);
    if (gain) x = qn_g_rmsnorm(g, x, gain, heads, d->norm_eps);
    if (qn_layer_bit(d->no_rope, layer)) return x;
    return qn_g_rope(g, x, &m->rope[local], heads, d->head_dim);
}

/* Keys and values of a layer go to the cache; its attention comes back. */
static qn_val attend(qn_graph *g, const qn_model *m, qn_val x, uint32_t layer, bool keys_only)
{
    const qn_model_desc *d = &m->desc;
    const qn_layer_weights *w = &m->weights.layers[layer];
    const qn_val k = qn_g_linear(g, x, &w->k, w->k_bias), v = qn_g_linear(g, x, &w->v, w->v_bias);
    qn_g_kv_write(g, layer, rotate(g, m, k, layer, w->k_norm, d->n_kv_heads), v);
    if (keys_only) return (qn_val){0};
    const qn_val q = qn_g_linear(g, x, &w->q, w->q_bias);
    const qn_attention_spec spec = {.layer = layer,
                                    .n_heads = d->n_heads,
                                    .scale = d->attention_scale,
                                    .softcap = d->attention_softcap};
    return qn_g_attention(g, rotate(g, m, q, layer, w->q_norm, d->n_heads), &spec);
}

static qn_val mlp(qn_graph *g, const qn_model *m, qn_val x, uint32_t layer)
{
    const qn_layer_weights *w = &m->weights.layers[layer];
    const qn_val gate = qn_g_linear(g, x, &w->gate, w->gate_bias),
                 up = qn_g_linear(g, x, &w->up, w->up_bias);
    return qn_g_linear(g, qn_g_act_mul(g, gate, up, m->desc.act), &w->down, w->down_bias);
}

/* h plus what a sublayer gives, normed where the family has a gain for that. */
static qn_val residual(qn_graph *g, const qn_model *m, qn_val h, qn_val y, const float *gain)
{
    const float s = m->desc.residual_scale;
    if (gain) y = qn_g_rmsnorm(g, y, gain, 1, m->desc.norm_eps);
    return qn_g_add(g, h, s == 1.0f ? y : qn_g_scale(g, y, s));
}

static void head(qn_graph *g, const qn_model *m, qn_val h, const qn_plan_key *key)
{
    const qn_model_desc *d = &m->desc;
    const qn_matrix *table = d->tied ? &m->weights.top.embed : &m->weights.top.head;
    h = qn_g_rmsnorm(g, h, m->weights.top.norm, 1, d->norm_eps);
    qn_g_tap(g, h, "final");
    qn_val logits = qn_g_linear(g, h, table, NULL);
    if (d->logit_scale != 1.0f) logits = qn_g_scale(g, logits, d->logit_scale);
    if (d->logit_softcap > 0) logits = qn_g_softcap(g, logits, d->logit_softcap);
    logits = qn_g_adjust(g, logits);
    qn_g_logits(g, logits);
    if (!(key->features & QN_PLAN_NO_DRAW)) qn_g_draw(g, logits);
}

/* Behind the last layer's attention only logit rows matter, and without any only the keys and values
 * do: unless somebody taps hidden states, the rest is left out. Rows do not depend on each other
 * (rule R4), so this changes no bit. */
void qn_dense_record(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const qn_model *m = model;
    const qn_model_desc *d = &m->desc;
    bool picked = false;
    qn_val h = qn_g_embed(g, &m->weights.top.embed, d->embed_scale);
    qn_g_tap(g, h, "embed");
    for (uint32_t l = 0; l < d->n_layers; l++) {
        const qn_layer_weights *w = &m->weights.layers[l];
        const bool trim = l + 1 == d->n_layers && key->taps == 0 && key->logits < key->rows;
        const qn_val x = qn_g_rmsnorm(g, h, w->attn_norm, 1, d->norm_eps);
        qn_val a = attend(g, m, x, l, trim && key->logits == 0);
        if (trim && key->logits == 0) return;
        if (trim) {
            a = qn_g_logit_rows(g, a);
            h = qn_g_logit_rows(g, h);
            picked = true;
        }
        h = residual(g, m, h, qn_g_linear(g, a, &w->o, w->o_bias), w->post_attn_norm);
        const qn_val y = mlp(g, m, qn_g_rmsnorm(g, h, w->ffn_norm, 1, d->norm_eps), l);
        h = residual(g, m, h, y, w->post_ffn_norm);
        qn_g_tap(g, h, m->tap_names[l]);
    }
    if (key->logits == 0) return;
    head(g, m, picked ? h : qn_g_logit_rows(g, h), key);
}
