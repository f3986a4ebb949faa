/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - nodes become kernel args: every pointer is fixed here, once. Row counts, tokens, positions
 * and tables are pointers into the plan's step block, so no step binds anything again. */
#include "graph/plan_int.h"

#define NEW(p, name) QN_ARENA_NEW(&(p)->mem, qn_##name##_args, 1)

/* An f32 value as a kernel sees it. */
typedef struct view {
    float *data;
    size_t ld;
    uint32_t cols;
    const uint32_t *n;
} view;

static const uint32_t *rows_of(const qn_plan *p, uint32_t v)
{
    return p->values[v].space == QN_SPACE_STEP ? &p->step->n_rows : &p->step->n_logits;
}

static void *at(const qn_plan *p, uint32_t v) { return p->slab + p->places[v].offset; }

static view see(const qn_plan *p, uint32_t v)
{
    if (!v) return (view){0};
    return (view){at(p, v), p->places[v].ld, p->values[v].cols, rows_of(p, v)};
}

static qn_kv_view kv_of(const qn_plan *p, uint32_t layer)
{
    const qn_kv_layer *l = &p->opt.kv[layer];
    const qn_step *s = p->step;
    return (qn_kv_view){.pool = l->pool,
                        .block_bytes = l->block_bytes,
                        .k_bytes = l->k_bytes,
                        .v_bytes = l->v_bytes,
                        .fmt = l->fmt,
                        .n_kv_heads = l->n_kv_heads,
                        .head_dim = l->head_dim,
                        .table = qn_step_table(s) + (size_t)l->group * s->caps.table,
                        .table_off = qn_step_table_off(s) + (size_t)l->group * s->caps.seqs};
}

static const void *embed(qn_plan *p, const qn_node *n, view y)
{
    qn_embed_args *a = NEW(p, embed);
    if (!a) return NULL;
    *a = (qn_embed_args){.y = y.data,
                         .ld_y = y.ld,
                         .table = n->u.embed.table,
                         .n = y.n,
                         .source = qn_step_source(p->step),
                         .value = qn_step_value(p->step),
                         .registers = p->opt.registers,
                         .rows = p->opt.embed_rows,
                         .ld_rows = p->opt.ld_embed_rows,
                         .scale = n->u.embed.scale};
    return a;
}

static const void *rmsnorm(qn_plan *p, const qn_node *n, view y, view x)
{
    qn_rmsnorm_args *a = NEW(p, rmsnorm);
    if (!a) return NULL;
    *a = (qn_rmsnorm_args){y.data,         y.ld, x.data,        x.ld,
                           n->u.norm.gain, y.n,  n->u.norm.sub, y.cols / n->u.norm.sub,
                           n->u.norm.eps};
    return a;
}

static const void *add(qn_plan *p, view y, view x, view b)
{
    qn_add_args *a = NEW(p, add);
    if (!a) return NULL;
    *a = (qn_add_args){y.data, y.ld, x.data, x.ld, b.data, b.ld, y.n, y.cols};
    return a;
}

static const void *add_rmsnorm(qn_plan *p, const qn_node *n, view y, view x, view b)
{
    const view h = see(p, n->out[1]);
    qn_add_rmsnorm_args *a = NEW(p, add_rmsnorm);
    if (!a) return NULL;
    *a = (qn_add_rmsnorm_args){.y = y.data,
                               .h = h.data,
                               .ld_y = y.ld,
                               .ld_h = h.ld,
                               .a = x.data,
                               .ld_a = x.ld,
                               .b = b.data,
                               .ld_b = b.ld,
                               .g = n->u.norm.gain,
                               .n = y.n,
                               .cols = y.cols,
                               .eps = n->u.norm.eps};
    return a;
}

static const void *linear(qn_plan *p, const qn_node *n, view y, view x, view b)
{
    qn_linear_args *a = NEW(p, linear);
    if (!a) return NULL;
    *a = (qn_linear_args){y.data,           y.ld,   x.data, x.ld, n->u.linear.w,
                          n->u.linear.bias, b.data, b.ld,   y.n};
    return a;
}

static const void *quant_rows(qn_plan *p, const qn_node *n, view x)
{
    const qn_place *q = &p->places[n->out[0]];
    const qn_value *v = &p->values[n->out[0]];
    qn_quant_rows_args *a = NEW(p, quant_rows);
    if (!a) return NULL;
    *a = (qn_quant_rows_args){.q = at(p, n->out[0]),
                              .ld_q = q->ld,
                              .x = x.data,
                              .ld_x = x.ld,
                              .n = x.n,
                              .cols = v->cols,
                              .kind = v->rows};
    return a;
}

static const void *linear_int(qn_plan *p, const qn_node *n, view y, view b)
{
    const qn_place *q = &p->places[n->in[0]];
    qn_linear_i8_args *a = NEW(p, linear_i8);
    if (!a) return NULL;
    *a = (qn_linear_i8_args){.y = y.data,
                             .ld_y = y.ld,
                             .q = at(p, n->in[0]),
                             .ld_q = q->ld,
                             .w = n->u.linear.w,
                             .bias = n->u.linear.bias,
                             .add = b.data,
                             .ld_add = b.ld,
                             .n = y.n};
    return a;
}

static const void *rope_table(qn_plan *p, const qn_node *n, view y)
{
    const qn_rope *r = n->u.rope.rope;
    qn_rope_table_args *a = NEW(p, rope_table);
    if (!a) return NULL;
    *a = (qn_rope_table_args){
        y.data,  y.ld,     qn_step_pos(p->step), p->opt.caps.rows, r->inv_freq, r->stream, y.n,
        r->half, r->mscale};
    return a;
}

static const void *rope(qn_plan *p, const qn_node *n, view y, view x, view cs)
{
    const qn_rope *r = n->u.rope.rope;
    qn_rope_args *a = NEW(p, rope);
    if (!a) return NULL;
    *a = (qn_rope_args){y.data,          y.ld,          x.data,  x.ld,          cs.data, cs.ld, y.n,
                        n->u.rope.heads, n->u.rope.dim, r->half, r->interleaved};
    return a;
}

static const void *kv_write(qn_plan *p, const qn_node *n, view k, view v)
{
    qn_kv_write_args *a = NEW(p, kv_write);
    if (!a) return NULL;
    *a = (qn_kv_write_args){
        kv_of(p, n->u.layer),   k.data, k.ld, v.data, v.ld, k.n, qn_step_seq(p->step),
        qn_step_kv_pos(p->step)};
    return a;
}

static const void *attention(qn_plan *p, const qn_node *n, view y, view q)
{
    const qn_attention_spec *spec = &n->u.attention;
    qn_attention_args *a = NEW(p, attention);
    if (!a) return NULL;
    *a = (qn_attention_args){.kv = kv_of(p, spec->layer),
                             .out = y.data,
                             .ld_out = y.ld,
                             .q = q.data,
                             .ld_q = q.ld,
                             .n = y.n,
                             .seq = qn_step_seq(p->step),
                             .kv_pos = qn_step_kv_pos(p->step),
                             .keys = &qn_step_keys(p->step)->lo0,
                             .sinks = spec->sinks,
                             .n_heads = spec->n_heads,
                             .window = p->opt.kv[spec->layer].window,
                             .scale = spec->scale,
                             .softcap = spec->softcap};
    return a;
}

static const void *act_mul(qn_plan *p, const qn_node *n, view y, view gate, view up)
{
    qn_act_mul_args *a = NEW(p, act_mul);
    if (!a) return NULL;
    *a = (qn_act_mul_args){y.data, y.ld, gate.data, gate.ld, up.data, up.ld, y.n, y.cols, n->u.act};
    return a;
}

static const void *scale(qn_plan *p, const qn_node *n, view y, view x)
{
    qn_scale_args *a = NEW(p, scale);
    if (!a) return NULL;
    *a = (qn_scale_args){y.data, y.ld, x.data, x.ld, y.n, y.cols, n->u.scale};
    return a;
}

static const void *softcap(qn_plan *p, const qn_node *n, view y, view x)
{
    qn_softcap_args *a = NEW(p, softcap);
    if (!a) return NULL;
    *a = (qn_softcap_args){y.data, y.ld, x.data, x.ld, y.n, y.cols, n->u.cap};
    return a;
}

static const void *gather(qn_plan *p, view y, view x)
{
    qn_gather_args *a = NEW(p, gather);
    if (!a) return NULL;
    *a = (qn_gather_args){y.data, y.ld, x.data, x.ld, qn_step_logit_row(p->step), y.n, y.cols};
    return a;
}

static const void *adjust(qn_plan *p, view y, view x)
{
    qn_adjust_args *a = NEW(p, adjust);
    if (!a) return NULL;
    *a = (qn_adjust_args){.y = y.data,
                          .ld_y = y.ld,
                          .x = x.data,
                          .ld_x = x.ld,
                          .adjust = qn_step_adjust(p->step),
                          .edit = qn_step_edit(p->step),
                          .n = y.n,
                          .cols = y.cols};
    return a;
}

static const void *draw(qn_plan *p, const qn_node *n, view logits)
{
    qn_draw_args *a = NEW(p, draw);
    if (!a) return NULL;
    *a = (qn_draw_args){.out = at(p, n->out[0]),
                        .registers = p->opt.registers,
                        .slot = qn_step_register(p->step),
                        .logits = logits.data,
                        .ld_logits = logits.ld,
                        .sampler = qn_step_sampler(p->step),
                        .n = logits.n,
                        .vocab = logits.cols,
                        .n_spared = p->opt.n_spared,
                        .spared = p->opt.spared};
    return a;
}

static const void *bind(qn_plan *p, const qn_node *n)
{
    const view x = see(p, n->in[0]), b = see(p, n->in[1]), y = see(p, n->out[0]);
    switch (n->kern) {
    case QN_K_embed:
        return embed(p, n, y);
    case QN_K_rmsnorm:
        return rmsnorm(p, n, y, x);
    case QN_K_add:
        return add(p, y, x, b);
    case QN_K_add_rmsnorm:
        return add_rmsnorm(p, n, y, x, b);
    case QN_K_linear:
        return linear(p, n, y, x, b);
    case QN_K_quant_rows:
        return quant_rows(p, n, x);
    case QN_K_linear_i8:
    case QN_K_linear_i16:
        return linear_int(p, n, y, b);
    case QN_K_rope_table:
        return rope_table(p, n, y);
    case QN_K_rope:
        return rope(p, n, y, x, b);
    case QN_K_kv_write:
        return kv_write(p, n, x, b);
    case QN_K_attention:
        return attention(p, n, y, x);
    case QN_K_act_mul:
        return act_mul(p, n, y, x, b);
    case QN_K_scale:
        return scale(p, n, y, x);
    case QN_K_softcap:
        return softcap(p, n, y, x);
    case QN_K_gather:
        return gather(p, y, x);
    case QN_K_adjust:
        return adjust(p, y, x);
    case QN_K_draw:
        return draw(p, n, x);
    case QN_K_COUNT:
        break;
    }
    return NULL;
}

/* Elements or products of one unit. A product's unit is an output of every row. */
static void weigh(const qn_plan *p, const qn_node *n, qn_plan_op *op)
{
    const uint32_t cols = p->values[n->in[0] ? n->in[0] : n->out[0]].cols;
    op->n = rows_of(p, n->out[0] ? n->out[0] : n->in[0]);
    op->per_row = qn_graph_is_product(n->kern);
    op->work = cols;
    switch (n->kern) {
    case QN_K_rmsnorm:
        op->work = cols / n->u.norm.sub;
        break;
    case QN_K_add:
    case QN_K_act_mul:
    case QN_K_scale:
    case QN_K_softcap:
        op->work = cols < QN_CHUNK ? cols : QN_CHUNK;
        break;
    default:
        break;
    }
}

qn_code qn_plan_bind(qn_plan *p, qn_err *err)
{
    size_t scratch = 0;
    /* scratch may grow with the rows: ask at full capacity */
    p->step->n_rows = p->opt.caps.rows;
    p->step->n_logits = p->opt.caps.logits;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        qn_plan_op *op = &p->ops[i];
        op->kern = p->nodes[i].kern;
        op->args = bind(p, &p->nodes[i]);
        if (!op->args) return qn_fail(err, QN_E_NOMEM, "plan: args of op %u", i);
        weigh(p, &p->nodes[i], op);
        const size_t need = qn_kern_scratch(op->kern, op->args);
        if (need > scratch) scratch = need;
    }
    p->step->n_rows = p->step->n_logits = 0;
    return scratch ? qn_pool_reserve_scratch(p->dev->pool, scratch, err) : QN_OK;
}
