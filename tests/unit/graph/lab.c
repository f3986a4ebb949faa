/* SPDX-License-Identifier: Apache-2.0 */
/* lab.c - parts, steps and random graphs for the graph tests. */
#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/panel.h"

static uint64_t mix(uint64_t *s)
{
    uint64_t z = *s += 0x9E3779B97F4A7C15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)(mix(s) >> 33) % n; }

static float *floats(uint64_t *s, size_t n, float size)
{
    float *f = malloc(n * sizeof *f);
    for (size_t i = 0; f && i < n; i++)
        f[i] = size * ((float)(mix(s) >> 40) / (float)(1 << 23) - 1.0f);
    return f;
}

static void set_matrix(lab *l, uint64_t *s, int i, qn_fmt fmt, uint32_t rows, uint32_t cols)
{
    qn_matrix *w = &l->w[i];
    size_t row_bytes = 0;
    const size_t n = (size_t)rows * cols;
    l->plain[i] = floats(s, n, 1.5f / sqrtf((float)cols));
    if (!qn_format_row_bytes(&row_bytes, fmt, cols)) abort();
    l->packed[i] = malloc(row_bytes * rows);
    if (qn_format_pack(l->packed[i], NULL, NULL, fmt, l->plain[i], n, NULL) != QN_OK) abort();
    *w = (qn_matrix){
        .fmt = fmt, .rows = rows, .cols = cols, .ld_bytes = row_bytes, .data = l->packed[i]};
}

lab *lab_open(qn_act_mode mode)
{
    lab *l = calloc(1, sizeof *l);
    uint64_t s = 20;
    if (!l) abort();
    set_matrix(l, &s, LAB_TABLE, QN_FMT_F32, LAB_VOCAB, LAB_MAIN);
    set_matrix(l, &s, LAB_HEAD, QN_FMT_F16, LAB_VOCAB, LAB_MAIN);
    set_matrix(l, &s, LAB_MM, QN_FMT_F32, LAB_MAIN, LAB_MAIN);
    set_matrix(l, &s, LAB_MM_Q, QN_FMT_Q8_0, LAB_MAIN, LAB_MAIN);
    set_matrix(l, &s, LAB_MI, QN_FMT_BF16, LAB_INNER, LAB_MAIN);
    set_matrix(l, &s, LAB_MI_Q, QN_FMT_Q4_0, LAB_INNER, LAB_MAIN);
    set_matrix(l, &s, LAB_IM, QN_FMT_F32, LAB_MAIN, LAB_INNER);
    set_matrix(l, &s, LAB_IM_Q, QN_FMT_Q4_1, LAB_MAIN, LAB_INNER);
    set_matrix(l, &s, LAB_MK, QN_FMT_F32, LAB_KV, LAB_MAIN);
    set_matrix(l, &s, LAB_MK_Q, QN_FMT_Q8_0, LAB_KV, LAB_MAIN);
    l->gain = floats(&s, LAB_INNER, 1.0f);
    l->bias = floats(&s, LAB_INNER, 0.5f);
    l->inv_freq = floats(&s, LAB_DIM / 2, 0.5f);
    l->embed_rows = floats(&s, (size_t)4 * LAB_MAIN, 1.0f);
    l->rope = (qn_rope){.inv_freq = l->inv_freq, .half = LAB_DIM / 2, .mscale = 1.0f};
    l->rope2 = (qn_rope){
        .inv_freq = l->inv_freq, .half = LAB_DIM / 4, .mscale = 0.5f, .interleaved = true};
    const size_t half = (size_t)LAB_KV * QN_KV_BLOCK * 4; /* K or V of a layer in a block, f32 */
    const size_t block = half * 2 * LAB_LAYERS;
    l->pool_bytes = block * LAB_BLOCKS;
    l->pool = malloc(l->pool_bytes);
    for (uint32_t i = 0; i < LAB_LAYERS; i++)
        l->kv[i] = (qn_kv_layer){.pool = l->pool,
                                 .block_bytes = block,
                                 .k_bytes = i * 2 * half,
                                 .v_bytes = i * 2 * half + half,
                                 .fmt = i ? QN_KV_F16 : QN_KV_F32,
                                 .n_kv_heads = LAB_KV / LAB_DIM,
                                 .head_dim = LAB_DIM,
                                 .window = i ? 5 : 0};
    l->opt = (qn_graph_options){
        .caps = {.rows = LAB_ROWS, .logits = 4, .seqs = LAB_SEQS, .groups = 1, .table = LAB_BLOCKS},
        .kv = l->kv,
        .n_layers = LAB_LAYERS,
        .registers = l->registers,
        .embed_rows = l->embed_rows,
        .ld_embed_rows = LAB_MAIN,
        .activations = mode};
    for (int i = 0; i < LAB_MATRICES && mode != QN_ACTIVATIONS_F32; i++) {
        qn_panel_layout p;
        if (!qn_panel_layout_of(&p, &l->w[i])) continue;
        l->panels[i] = aligned_alloc(QN_PANEL_ALIGN, p.bytes * p.panels);
        qn_panel_pack(l->panels[i], &p, &l->w[i], 0, p.panels);
        l->w[i].panels = l->panels[i];
    }
    lab_reset(l);
    return l;
}

void lab_close(lab *l)
{
    for (int i = 0; i < LAB_MATRICES; i++) {
        free(l->plain[i]);
        free(l->packed[i]);
        free(l->panels[i]);
    }
    free(l->gain);
    free(l->bias);
    free(l->inv_freq);
    free(l->embed_rows);
    free(l->pool);
    free(l);
}

void lab_reset(lab *l)
{
    uint64_t s = 3;
    memset(l->pool, 0, l->pool_bytes);
    for (uint32_t b = 0; b < LAB_BLOCKS; b++) /* a past for both layers */
        for (size_t i = 0; i < l->kv[0].block_bytes / 2; i += 4) {
            const float f = (float)(mix(&s) >> 40) / (float)(1 << 23) - 1.0f;
            memcpy(l->pool + b * l->kv[0].block_bytes + i, &f, sizeof f);
        }
    for (uint32_t i = 0; i < QT_LEN(l->registers); i++) l->registers[i] = (i * 7) % LAB_VOCAB;
}

void lab_fill(qn_step *s, uint32_t n_rows, uint32_t n_logits, uint32_t past)
{
    uint64_t seed = 9;
    s->n_rows = n_rows;
    s->n_logits = n_logits;
    s->n_seqs = n_rows < LAB_SEQS ? n_rows : LAB_SEQS;
    for (uint32_t r = 0; r < n_rows; r++) {
        const uint32_t pos = past + r / LAB_SEQS;
        qn_step_source(s)[r] = QN_ROW_TOKEN;
        qn_step_value(s)[r] = below(&seed, LAB_VOCAB);
        for (uint32_t k = 0; k < 3; k++) qn_step_pos(s)[k * s->caps.rows + r] = (int32_t)(pos + k);
        qn_step_kv_pos(s)[r] = pos;
        qn_step_seq(s)[r] = r % LAB_SEQS;
        qn_step_keys(s)[r] = (qn_keys){0, pos + 1, 0, 0};
        qn_step_parent(s)[r] = qn_step_adapter(s)[r] = QN_STEP_NONE;
    }
    if (n_rows > 1) {
        qn_step_source(s)[1] = QN_ROW_REGISTER;
        qn_step_value(s)[1] = 2;
    }
    if (n_rows > 2) {
        qn_step_source(s)[2] = QN_ROW_EMBED;
        qn_step_value(s)[2] = 3;
    }
    for (uint32_t i = 0; i < n_logits; i++) {
        qn_step_logit_row(s)[i] = n_rows - 1 - i % n_rows;
        qn_step_sampler(s)[i] = (qn_sampler){.seed = 5,
                                             .index = i,
                                             .temperature = i % 2 ? 0.8f : 0.0f,
                                             .top_p = i % 2 ? 0.9f : 0.0f};
        qn_step_register(s)[i] = i % 2 ? QN_STEP_NONE : 2 + i;
    }
    for (uint32_t q = 0; q < LAB_SEQS; q++) qn_step_table_off(s)[q] = q * (LAB_BLOCKS / LAB_SEQS);
    for (uint32_t b = 0; b < LAB_BLOCKS; b++) qn_step_table(s)[b] = (b * 3 + 1) % LAB_BLOCKS;
}

qn_device *lab_device(qt *t, unsigned lanes)
{
    qn_device *d = NULL;
    QT_EQ(t, qn_device_open_cpu(&d, lanes, UINT32_MAX, NULL), QN_OK);
    return d;
}

/* -- random graphs ------------------------------------------------------------------------------ */

enum { KEEP = 256 };

typedef struct maker {
    const lab_random *r;
    const lab *l;
    qn_graph *g;
    uint64_t s;
    qn_val of[3][KEEP]; /* main, kv, inner */
    uint32_t n[3];
    bool written[LAB_LAYERS];
    uint32_t n_taps;
} maker;

static const uint32_t widths[3] = {LAB_MAIN, LAB_KV, LAB_INNER};

static void keep(maker *m, int w, qn_val v)
{
    if (v.id && m->n[w] < KEEP) m->of[w][m->n[w]++] = v;
}

/* One of the values of this width, the recent ones more often. */
static qn_val pick(maker *m, int w)
{
    const uint32_t n = m->n[w], recent = n < 4 ? n : 4;
    if (n == 0) return (qn_val){0};
    return below(&m->s, 3) ? m->of[w][n - 1 - below(&m->s, recent)] : m->of[w][below(&m->s, n)];
}

static void product(maker *m)
{
    static const struct {
        int from, to, w;
    } shapes[] = {{0, 0, LAB_MM}, {0, 2, LAB_MI}, {2, 0, LAB_IM}, {0, 1, LAB_MK}};
    const uint32_t i = below(&m->s, 4);
    const qn_val x = pick(m, shapes[i].from);
    if (!x.id) return;
    const qn_matrix *w = &m->l->w[shapes[i].w + (int)below(&m->s, 2)];
    keep(m, shapes[i].to, qn_g_linear(m->g, x, w, below(&m->s, 2) ? m->l->bias : NULL));
}

static void caches(maker *m)
{
    const uint32_t layer = below(&m->s, LAB_LAYERS);
    if (below(&m->s, 2) && m->n[1]) {
        qn_g_kv_write(m->g, layer, pick(m, 1), pick(m, 1));
        m->written[layer] = true;
    } else if (m->written[layer]) {
        const qn_attention_spec a = {.layer = layer, .n_heads = LAB_HEADS, .scale = 0.25f};
        keep(m, 0, qn_g_attention(m->g, pick(m, 0), &a));
    }
}

static void elementwise(maker *m, int w)
{
    const qn_val x = pick(m, w), y = pick(m, w);
    switch (below(&m->s, 5)) {
    case 0:
        keep(m, w, qn_g_scale(m->g, x, 0.5f));
        break;
    case 1:
        keep(m, w, qn_g_softcap(m->g, x, 3.0f));
        break;
    case 2: {
        const qn_val gate = qn_g_rmsnorm(m->g, x, NULL, 1, 1e-5f);
        keep(m, w, qn_g_act_mul(m->g, gate, below(&m->s, 3) ? y : (qn_val){0}, QN_ACT_SILU));
        break;
    }
    default:
        keep(m, w, qn_g_add(m->g, x, y));
        break;
    }
}

static void rotate(maker *m)
{
    const int w = below(&m->s, 2) && m->n[1] ? 1 : 0;
    const qn_rope *rope = below(&m->s, 3) ? &m->l->rope : &m->l->rope2;
    keep(m, w, qn_g_rope(m->g, pick(m, w), rope, widths[w] / LAB_DIM, LAB_DIM));
}

static void one_op(maker *m)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    int w = (int)below(&m->s, 3);
    if (!m->n[w]) w = 0;
    switch (below(&m->s, 14)) {
    case 0:
    case 1:
    case 2:
    case 3:
        product(m);
        break;
    case 4:
    case 5:
        caches(m);
        break;
    case 6:
    case 7:
        keep(m, w,
             qn_g_rmsnorm(m->g, pick(m, w), m->l->gain, w == 0 && below(&m->s, 2) ? 4 : 1, 1e-5f));
        break;
    case 8:
        rotate(m);
        break;
    case 9:
        if (m->n_taps < QT_LEN(names)) qn_g_tap(m->g, pick(m, w), names[m->n_taps++]);
        break;
    case 10:
        if (below(&m->s, 4) == 0) qn_g_segment(m->g, m->r->hook, m->r->ctx);
        break;
    default:
        elementwise(m, w);
        break;
    }
}

void lab_record(const void *random, qn_graph *g, const qn_plan_key *key)
{
    const lab_random *r = random;
    maker m = {.r = r, .l = r->l, .g = g, .s = r->seed};
    (void)key; /* the plan leaves out what the key does not need */
    keep(&m, 0, qn_g_embed(g, &r->l->w[LAB_TABLE], 2.0f));
    for (uint32_t i = 0; i < r->n_ops; i++) one_op(&m);
    qn_val x = qn_g_logit_rows(g, pick(&m, 0));
    x = qn_g_add(g, x, qn_g_logit_rows(g, pick(&m, 0)));
    x = qn_g_rmsnorm(g, x, r->l->gain, 1, 1e-5f);
    const qn_val logits = qn_g_linear(g, x, &r->l->w[LAB_HEAD], NULL);
    qn_g_logits(g, logits);
    qn_g_draw(g, logits);
}

qn_plan *lab_plan(qt *t, lab *l, qn_device *d, qn_record_fn *record, const void *model,
                  const qn_plan_key *key)
{
    qn_graph *g = NULL;
    qn_plan *p = NULL;
    qn_err err = {0};
    if (!QT_EQ(t, qn_graph_new(&g, &l->opt, &err), QN_OK)) return NULL;
    record(model, g, key);
    QT_OKF(t, qn_plan_build(&p, d, g, key, &err) == QN_OK, "%s", err.msg);
    qn_graph_free(g);
    return p;
}

/* -- what ops touch ----------------------------------------------------------------------------- */

typedef struct list {
    lab_access *a;
    uint32_t n;
} list;

static void touch(list *l, const void *p, size_t bytes, bool write)
{
    if (!p) return;
    l->a[l->n++] = (lab_access){(uintptr_t)p, (uintptr_t)p + bytes, write};
}

/* [rows, cols] of `size` bytes an element, rows ld apart: everything from first to last. */
static void block(list *l, const void *data, size_t ld, size_t cols, size_t size, size_t rows,
                  bool write)
{
    touch(l, data, ((rows - 1) * ld + cols) * size, write);
}

static void touch_kv(list *l, const qn_kv_view *kv, bool write)
{
    touch(l, kv->pool + kv->k_bytes, 1, write);
}

#define ROWS(a) ((a)->n == &p->step->n_rows ? p->opt.caps.rows : p->opt.caps.logits)
#define F32(ptr, ld, cols, write) block(&l, ptr, ld, cols, 4, ROWS(a), write)

uint32_t lab_accesses(lab_access out[LAB_ACCESSES], const qn_plan *p, uint32_t op)
{
    list l = {out, 0};
    const void *args = p->ops[op].args;
    switch (p->ops[op].kern) {
    case QN_K_embed: {
        const qn_embed_args *a = args;
        F32(a->y, a->ld_y, a->table->cols, true);
        touch(&l, a->registers, 1, false);
        break;
    }
    case QN_K_rmsnorm: {
        const qn_rmsnorm_args *a = args;
        F32(a->y, a->ld_y, (size_t)a->cols * a->sub, true);
        F32(a->x, a->ld_x, (size_t)a->cols * a->sub, false);
        break;
    }
    case QN_K_add: {
        const qn_add_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        F32(a->a, a->ld_a, a->cols, false);
        F32(a->b, a->ld_b, a->cols, false);
        break;
    }
    case QN_K_add_rmsnorm: {
        const qn_add_rmsnorm_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        F32(a->h, a->ld_h, a->cols, true);
        F32(a->a, a->ld_a, a->cols, false);
        F32(a->b, a->ld_b, a->cols, false);
        break;
    }
    case QN_K_linear: {
        const qn_linear_args *a = args;
        F32(a->y, a->ld_y, a->w->rows, true);
        F32(a->x, a->ld_x, a->w->cols, false);
        F32(a->add, a->ld_add, a->w->rows, false);
        break;
    }
    case QN_K_quant_rows: {
        const qn_quant_rows_args *a = args;
        block(&l, a->q, a->ld_q, qn_q_row_bytes(a->cols, a->kind), 1, ROWS(a), true);
        F32(a->x, a->ld_x, a->cols, false);
        break;
    }
    case QN_K_linear_i8:
    case QN_K_linear_i16: {
        const qn_linear_i8_args *a = args;
        F32(a->y, a->ld_y, a->w->rows, true);
        const bool wide = p->ops[op].kern == QN_K_linear_i16;
        block(&l, a->q, a->ld_q, qn_q_row_bytes(a->w->cols, wide ? QN_W32 : QN_Q32), 1, ROWS(a),
              false);
        F32(a->add, a->ld_add, a->w->rows, false);
        break;
    }
    case QN_K_rope_table: {
        const qn_rope_table_args *a = args;
        F32(a->cs, a->ld_cs, (size_t)2 * a->half, true);
        break;
    }
    case QN_K_rope: {
        const qn_rope_args *a = args;
        F32(a->y, a->ld_y, (size_t)a->heads * a->dim, true);
        F32(a->x, a->ld_x, (size_t)a->heads * a->dim, false);
        F32(a->cs, a->ld_cs, (size_t)2 * a->half, false);
        break;
    }
    case QN_K_kv_write: {
        const qn_kv_write_args *a = args;
        touch_kv(&l, &a->kv, true);
        F32(a->k, a->ld_k, (size_t)a->kv.n_kv_heads * a->kv.head_dim, false);
        F32(a->v, a->ld_v, (size_t)a->kv.n_kv_heads * a->kv.head_dim, false);
        break;
    }
    case QN_K_attention: {
        const qn_attention_args *a = args;
        touch_kv(&l, &a->kv, false);
        F32(a->out, a->ld_out, (size_t)a->n_heads * a->kv.head_dim, true);
        F32(a->q, a->ld_q, (size_t)a->n_heads * a->kv.head_dim, false);
        break;
    }
    case QN_K_act_mul: {
        const qn_act_mul_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        F32(a->gate, a->ld_gate, a->cols, false);
        F32(a->up, a->ld_up, a->cols, false);
        break;
    }
    case QN_K_scale: {
        const qn_scale_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        F32(a->x, a->ld_x, a->cols, false);
        break;
    }
    case QN_K_softcap: {
        const qn_softcap_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        F32(a->x, a->ld_x, a->cols, false);
        break;
    }
    case QN_K_gather: {
        const qn_gather_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        block(&l, a->x, a->ld_x, a->cols, 4, p->opt.caps.rows, false);
        break;
    }
    case QN_K_adjust: {
        const qn_adjust_args *a = args;
        F32(a->y, a->ld_y, a->cols, true);
        F32(a->x, a->ld_x, a->cols, false);
        break;
    }
    case QN_K_draw: {
        const qn_draw_args *a = args;
        touch(&l, a->out, ROWS(a) * sizeof *a->out, true);
        F32(a->logits, a->ld_logits, a->vocab, false);
        touch(&l, a->registers, 1, true);
        break;
    }
    case QN_K_COUNT:
        break;
    }
    return l.n;
}

bool lab_conflict(const qn_plan *p, uint32_t a, uint32_t b)
{
    lab_access x[LAB_ACCESSES], y[LAB_ACCESSES];
    const uint32_t nx = lab_accesses(x, p, a), ny = lab_accesses(y, p, b);
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t j = 0; j < ny; j++)
            if ((x[i].write || y[j].write) && x[i].begin < y[j].end && y[j].begin < x[i].end)
                return true;
    return false;
}
