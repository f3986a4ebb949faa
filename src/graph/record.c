/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - one function an op: check the shapes, append a node. After this file nothing checks a
 * shape again: kernels cannot fail. A message names the op, what was found and what was expected. */
#include "graph/graph_int.h"

#include <math.h>

static const qn_val none = {0};

/* Appends `n` with one f32 result [rows of `space`, cols]. */
static qn_val emit(qn_graph *g, const qn_node *n, qn_space space, uint32_t cols)
{
    const qn_val y = qn_graph_value(g, QN_VAL_F32, space, cols, 0);
    qn_node *node = y.id ? qn_graph_node(g, n->kern) : NULL;
    if (!node) return none;
    const uint32_t segment = node->segment;
    *node = *n;
    node->segment = segment;
    node->out[0] = y.id;
    return y;
}

/* What is wrong with a matrix that a kernel is to read, or NULL. */
static const char *matrix_fault(const qn_matrix *w)
{
    if (!w || !w->data) return "no matrix";
    if (w->fmt >= QN_FMT_COUNT) return "an unknown format";
    if (!w->rows || !w->cols) return "an empty matrix";
    const qn_format *f = qn_format_get(w->fmt);
    size_t bytes = 0;
    if (!qn_format_row_bytes(&bytes, w->fmt, w->cols)) return "columns that split a block";
    if (w->ld_bytes < bytes && w->rows > 1) return "rows that overlap";
    if (f->planes > 1 && (!w->scales || !w->biases)) return "no scales or biases";
    if (f->planes > 1 && w->scale_fmt != QN_FMT_F32 && w->scale_fmt != QN_FMT_F16 &&
        w->scale_fmt != QN_FMT_BF16)
        return "scales that are neither F32, F16 nor BF16";
    return NULL;
}

qn_val qn_g_embed(qn_graph *g, const qn_matrix *table, float scale)
{
    if (g->err.code != QN_OK) return none;
    const char *fault = matrix_fault(table);
    if (fault) return qn_graph_fail(g, QN_E_INVAL, "embed: table has %s", fault);
    if (g->opt.embed_rows && g->opt.ld_embed_rows < table->cols)
        return qn_graph_fail(g, QN_E_INVAL,
                             "embed: embedding rows are %zu apart, expected at least %u",
                             g->opt.ld_embed_rows, table->cols);
    const qn_node n = {.kern = QN_K_embed, .u.embed = {table, scale}};
    return emit(g, &n, QN_SPACE_STEP, table->cols);
}

qn_val qn_g_rmsnorm(qn_graph *g, qn_val x, const float *gain, uint32_t sub, float eps)
{
    const qn_value *v = qn_graph_use(g, "rmsnorm", "x", x);
    if (!v) return none;
    if (sub == 0 || v->cols % sub)
        return qn_graph_fail(g, QN_E_INVAL, "rmsnorm: x is %u wide, expected a multiple of sub %u",
                             v->cols, sub);
    if (!(eps >= 0.0f) || !isfinite(eps))
        return qn_graph_fail(g, QN_E_INVAL, "rmsnorm: eps is %g, expected at least 0", (double)eps);
    const qn_node n = {.kern = QN_K_rmsnorm, .in = {x.id}, .u.norm = {gain, sub, eps}};
    return emit(g, &n, v->space, v->cols);
}

/* The integer rows of x, made on first use and shared by all products that read them. */
static qn_val quantised(qn_graph *g, qn_val x, qn_q_kind rows)
{
    const qn_value v = g->values[x.id];
    if (v.quant[rows]) return (qn_val){v.quant[rows]};
    const qn_val q = qn_graph_value(g, QN_VAL_ROWS_INT, v.space, v.cols, rows);
    qn_node *n = q.id ? qn_graph_node(g, QN_K_quant_rows) : NULL;
    if (!n) return none;
    n->in[0] = x.id;
    n->out[0] = q.id;
    g->values[x.id].quant[rows] = q.id;
    return q;
}

/* The product for these weights in the graph's mode, and the rows it reads. */
static qn_kern_id product_of(qn_q_kind *rows, const qn_graph *g, const qn_matrix *w)
{
    const qn_format *f = qn_format_get(w->fmt);
    if (g->opt.activations == QN_ACTIVATIONS_F32 || f->order == QN_ORDER_WIDEN) return QN_K_linear;
    if (!w->panels) return QN_K_linear;
    *rows = g->opt.activations == QN_ACTIVATIONS_I16 ? QN_W32 : QN_Q32;
    return *rows == QN_W32 ? QN_K_linear_i16 : QN_K_linear_i8;
}

qn_val qn_g_linear(qn_graph *g, qn_val x, const qn_matrix *w, const float *bias)
{
    const qn_value *v = qn_graph_use(g, "linear", "x", x);
    if (!v) return none;
    const char *fault = matrix_fault(w);
    if (fault) return qn_graph_fail(g, QN_E_INVAL, "linear: weight has %s", fault);
    const qn_format *f = qn_format_get(w->fmt);
    if (!f->forward)
        return qn_graph_fail(g, QN_E_UNSUPPORTED, "linear: format %s has no forward product",
                             f->name);
    if (v->cols != w->cols)
        return qn_graph_fail(g, QN_E_INVAL, "linear: x is %u wide, expected %u as the weight",
                             v->cols, w->cols);
    const qn_space space = v->space;
    qn_q_kind rows = QN_Q32;
    qn_node n = {.kern = product_of(&rows, g, w), .in = {x.id}, .u.linear = {w, bias}};
    if (n.kern != QN_K_linear) {
        n.in[0] = quantised(g, x, rows).id;
        if (!n.in[0]) return none;
    }
    return emit(g, &n, space, w->rows);
}

/* Two values that are to have one shape; NULL with the error recorded when they have not. */
static const qn_value *alike(qn_graph *g, const char *op, qn_val a, const char *a_name, qn_val b,
                             const char *b_name)
{
    const qn_value *va = qn_graph_use(g, op, a_name, a);
    const qn_value *vb = va ? qn_graph_use(g, op, b_name, b) : NULL;
    if (!vb) return NULL;
    if (va->cols != vb->cols) {
        (void)qn_graph_fail(g, QN_E_INVAL, "%s: %s is %u wide, expected %u as %s", op, b_name,
                            vb->cols, va->cols, a_name);
        return NULL;
    }
    if (va->space != vb->space) {
        (void)qn_graph_fail(g, QN_E_INVAL, "%s: %s has %s rows, expected %s rows as %s", op, b_name,
                            vb->space == QN_SPACE_LOGIT ? "logit" : "step",
                            va->space == QN_SPACE_LOGIT ? "logit" : "step", a_name);
        return NULL;
    }
    return va;
}

qn_val qn_g_add(qn_graph *g, qn_val a, qn_val b)
{
    const qn_value *v = alike(g, "add", a, "a", b, "b");
    if (!v) return none;
    const qn_node n = {.kern = QN_K_add, .in = {a.id, b.id}};
    return emit(g, &n, v->space, v->cols);
}

/* False, with the error recorded, unless x has step rows: positions and caches belong to these. */
static bool step_rows(qn_graph *g, const char *op, const char *name, const qn_value *v)
{
    if (v->space == QN_SPACE_STEP) return true;
    (void)qn_graph_fail(g, QN_E_INVAL, "%s: %s has logit rows, expected step rows", op, name);
    return false;
}

static qn_val rope_table(qn_graph *g, const qn_rope *rope)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].kern == QN_K_rope_table && g->nodes[i].u.rope.rope == rope)
            return (qn_val){g->nodes[i].out[0]};
    const qn_node n = {.kern = QN_K_rope_table, .u.rope = {.rope = rope}};
    return emit(g, &n, QN_SPACE_STEP, 2 * rope->half);
}

qn_val qn_g_rope(qn_graph *g, qn_val x, const qn_rope *rope, uint32_t heads, uint32_t dim)
{
    const qn_value *v = qn_graph_use(g, "rope", "x", x);
    if (!v || !step_rows(g, "rope", "x", v)) return none;
    if (!rope || !rope->inv_freq || !rope->half)
        return qn_graph_fail(g, QN_E_INVAL, "rope: no frequencies");
    if (!heads || !dim || (uint64_t)heads * dim != v->cols)
        return qn_graph_fail(g, QN_E_INVAL, "rope: x is %u wide, expected %u heads of %u", v->cols,
                             heads, dim);
    if (rope->half > dim / 2)
        return qn_graph_fail(g, QN_E_INVAL, "rope: %u rotated pairs, expected at most %u",
                             rope->half, dim / 2);
    const uint32_t cols = v->cols;
    const qn_val table = rope_table(g, rope);
    if (!table.id) return none;
    const qn_node n = {.kern = QN_K_rope, .in = {x.id, table.id}, .u.rope = {rope, heads, dim}};
    return emit(g, &n, QN_SPACE_STEP, cols);
}

/* The kv record of a layer; NULL with the error recorded. */
static const qn_kv_layer *kv_of(qn_graph *g, const char *op, uint32_t layer)
{
    if (layer < g->opt.n_layers) return &g->opt.kv[layer];
    (void)qn_graph_fail(g, QN_E_INVAL, "%s: layer is %u, expected below %u", op, layer,
                        g->opt.n_layers);
    return NULL;
}

void qn_g_kv_write(qn_graph *g, uint32_t layer, qn_val k, qn_val v)
{
    const qn_value *vk = alike(g, "kv_write", k, "k", v, "v");
    const qn_kv_layer *l = vk ? kv_of(g, "kv_write", layer) : NULL;
    if (!l || !step_rows(g, "kv_write", "k", vk)) return;
    if (vk->cols != (uint64_t)l->n_kv_heads * l->head_dim) {
        (void)qn_graph_fail(g, QN_E_INVAL, "kv_write: k is %u wide, expected %u heads of %u",
                            vk->cols, l->n_kv_heads, l->head_dim);
        return;
    }
    qn_node *n = qn_graph_node(g, QN_K_kv_write);
    if (!n) return;
    n->in[0] = k.id;
    n->in[1] = v.id;
    n->u.layer = layer;
}

qn_val qn_g_attention(qn_graph *g, qn_val q, const qn_attention_spec *spec)
{
    const qn_value *v = qn_graph_use(g, "attention", "q", q);
    const qn_kv_layer *l = v ? kv_of(g, "attention", spec->layer) : NULL;
    if (!l || !step_rows(g, "attention", "q", v)) return none;
    if (!spec->n_heads || spec->n_heads % l->n_kv_heads)
        return qn_graph_fail(g, QN_E_INVAL, "attention: %u heads, expected a multiple of %u",
                             spec->n_heads, l->n_kv_heads);
    if (v->cols != (uint64_t)spec->n_heads * l->head_dim)
        return qn_graph_fail(g, QN_E_INVAL, "attention: q is %u wide, expected %u heads of %u",
                             v->cols, spec->n_heads, l->head_dim);
    if (!isfinite(spec->scale))
        return qn_graph_fail(g, QN_E_INVAL, "attention: scale is %g, expected a finite one",
                             (double)spec->scale);
    if (!(spec->softcap >= 0.0f) || !isfinite(spec->softcap))
        return qn_graph_fail(g, QN_E_INVAL, "attention: softcap is %g, expected at least 0",
                             (double)spec->softcap);
    const qn_node n = {.kern = QN_K_attention, .in = {q.id}, .u.attention = *spec};
    return emit(g, &n, QN_SPACE_STEP, v->cols);
}

qn_val qn_g_act_mul(qn_graph *g, qn_val gate, qn_val up, qn_act act)
{
    const qn_value *v = up.id ? alike(g, "act_mul", gate, "gate", up, "up")
                              : qn_graph_use(g, "act_mul", "gate", gate);
    if (!v) return none;
    if (act > QN_ACT_GELU_ERF)
        return qn_graph_fail(g, QN_E_INVAL, "act_mul: activation is %u, expected at most %u",
                             (unsigned)act, (unsigned)QN_ACT_GELU_ERF);
    const qn_node n = {.kern = QN_K_act_mul, .in = {gate.id, up.id}, .u.act = act};
    return emit(g, &n, v->space, v->cols);
}

qn_val qn_g_scale(qn_graph *g, qn_val x, float s)
{
    const qn_value *v = qn_graph_use(g, "scale", "x", x);
    if (!v) return none;
    const qn_node n = {.kern = QN_K_scale, .in = {x.id}, .u.scale = s};
    return emit(g, &n, v->space, v->cols);
}

qn_val qn_g_softcap(qn_graph *g, qn_val x, float cap)
{
    const qn_value *v = qn_graph_use(g, "softcap", "x", x);
    if (!v) return none;
    if (!(cap > 0.0f) || !isfinite(cap))
        return qn_graph_fail(g, QN_E_INVAL, "softcap: cap is %g, expected above 0", (double)cap);
    const qn_node n = {.kern = QN_K_softcap, .in = {x.id}, .u.cap = cap};
    return emit(g, &n, v->space, v->cols);
}

qn_val qn_g_logit_rows(qn_graph *g, qn_val x)
{
    const qn_value *v = qn_graph_use(g, "gather", "x", x);
    if (!v || !step_rows(g, "gather", "x", v)) return none;
    const qn_node n = {.kern = QN_K_gather, .in = {x.id}};
    return emit(g, &n, QN_SPACE_LOGIT, v->cols);
}

qn_val qn_g_adjust(qn_graph *g, qn_val logits)
{
    const qn_value *v = qn_graph_use(g, "adjust", "logits", logits);
    if (!v) return none;
    if (v->space != QN_SPACE_LOGIT)
        return qn_graph_fail(g, QN_E_INVAL, "adjust: logits have step rows, expected logit rows");
    if (g->opt.caps.edits == 0) return logits;
    const qn_node n = {.kern = QN_K_adjust, .in = {logits.id}};
    return emit(g, &n, QN_SPACE_LOGIT, v->cols);
}

void qn_g_draw(qn_graph *g, qn_val logits)
{
    const qn_value *v = qn_graph_use(g, "draw", "logits", logits);
    if (!v) return;
    if (v->space != QN_SPACE_LOGIT) {
        (void)qn_graph_fail(g, QN_E_INVAL, "draw: logits have step rows, expected logit rows");
        return;
    }
    if (g->drawn) {
        (void)qn_graph_fail(g, QN_E_INVAL, "draw: recorded twice, expected once");
        return;
    }
    const qn_val d = qn_graph_value(g, QN_VAL_DRAWN, QN_SPACE_LOGIT, 1, 0);
    qn_node *n = d.id ? qn_graph_node(g, QN_K_draw) : NULL;
    if (!n) return;
    n->in[0] = logits.id;
    n->out[0] = d.id;
    g->drawn = d.id;
}
