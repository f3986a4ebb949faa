/* SPDX-License-Identifier: Apache-2.0 */
/* bind_test.c - each op, recorded and run, against its formula in plain C doubles: a wrong pointer,
 * stride, table or parameter in the args shows here. */
#include "lab.h"

#include <math.h>
#include <string.h>

enum { N = 9, PAST = 60 }; /* rows of a step; cached positions before it: spans two blocks */

typedef struct scene {
    lab *l;
    qn_device *d;
    qn_plan *p;
    const qn_step *s;
} scene;

/* Two layer groups with tables of their own; three streams of positions. */
static scene run(qt *t, qn_record_fn *record, qn_act_mode mode)
{
    scene s = {.l = lab_open(mode), .d = lab_device(t, 2)};
    s.l->opt.caps.groups = 2;
    s.l->kv[1].group = 1;
    const qn_plan_key key = {
        .rows = LAB_ROWS, .logits = 4, .features = QN_PLAN_KEEP_LOGITS, .taps = 0xFF};
    s.p = lab_plan(t, s.l, s.d, record, s.l, &key);
    qn_step *step = qn_plan_step(s.p);
    lab_fill(step, N, 3, PAST);
    for (uint32_t b = 0; b < LAB_BLOCKS; b++)
        qn_step_table(step)[step->caps.table + b] = (b * 5 + 2) % LAB_BLOCKS;
    qn_step_table_off(step)[step->caps.seqs] = 5; /* the other way round than in group 0 */
    qn_step_table_off(step)[step->caps.seqs + 1] = 1;
    QT_EQ(t, qn_step_check(step, step->bytes, NULL), QN_OK);
    QT_EQ(t, qn_plan_exec(s.p, NULL), QN_OK);
    s.s = step;
    return s;
}

static void close_scene(scene *s)
{
    qn_plan_free(s->p);
    qn_device_close(s->d);
    lab_close(s->l);
}

static const float *row(const scene *s, const char *tap, uint32_t r)
{
    size_t ld = 0;
    const float *x = qn_plan_tap(s->p, tap, NULL, &ld);
    return x + r * ld;
}

static void near(qt *t, const float *got, const double *want, size_t n, double tol)
{
    double top = 1e-6, worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        top = fmax(top, fabs(want[i]));
        worst = fmax(worst, fabs((double)got[i] - want[i]));
    }
    QT_OKF(t, worst <= tol * top, "off by %g of %g", worst, top);
}

static qn_val start(qn_graph *g, const lab *l)
{
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.5f);
    qn_g_tap(g, x, "x");
    return x;
}

static void record_start(const void *model, qn_graph *g, const qn_plan_key *key)
{
    (void)key;
    (void)start(g, model);
}

static void embed_reads_tokens_registers_and_rows(qt *t)
{
    scene s = run(t, record_start, QN_ACTIVATIONS_F32);
    double want[LAB_MAIN];
    for (uint32_t r = 0; r < N; r++) {
        const uint32_t v = qn_step_value(s.s)[r], src = qn_step_source(s.s)[r];
        for (uint32_t c = 0; c < LAB_MAIN; c++)
            want[c] =
                src == QN_ROW_EMBED
                    ? (double)s.l->embed_rows[v * LAB_MAIN + c]
                    : 1.5 * (double)
                                s.l->plain[LAB_TABLE][(src ? s.l->registers[v] : v) * LAB_MAIN + c];
        near(t, row(&s, "x", r), want, LAB_MAIN, 1e-6);
    }
    close_scene(&s);
}

static void record_norms(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = start(g, l);
    qn_g_tap(g, qn_g_rmsnorm(g, x, l->gain, 4, 0.01f), "heads");
    qn_g_tap(g, qn_g_rmsnorm(g, x, NULL, 1, 0.5f), "plain");
    const qn_val h = qn_g_add(g, x, x);
    qn_g_tap(g, h, "sum");
    qn_g_tap(g, qn_g_rmsnorm(g, h, l->gain, 1, 0.5f), "fused");
}

static void norm(double *y, const double *x, const float *g, uint32_t n, double eps)
{
    double sum = 0.0;
    for (uint32_t c = 0; c < n; c++) sum += x[c] * x[c];
    for (uint32_t c = 0; c < n; c++) y[c] = x[c] / sqrt(sum / n + eps) * (g ? (double)g[c] : 1.0);
}

static void norms_follow_the_formula(qt *t)
{
    scene s = run(t, record_norms, QN_ACTIVATIONS_F32);
    for (uint32_t r = 0; r < N; r++) {
        double x[LAB_MAIN], y[LAB_MAIN], h[LAB_MAIN];
        for (uint32_t c = 0; c < LAB_MAIN; c++) {
            x[c] = (double)row(&s, "x", r)[c];
            h[c] = x[c] + x[c];
        }
        for (uint32_t q = 0; q < 4; q++) norm(y + q * 16, x + q * 16, s.l->gain, 16, (double)0.01f);
        near(t, row(&s, "heads", r), y, LAB_MAIN, 1e-5);
        norm(y, x, NULL, LAB_MAIN, 0.5);
        near(t, row(&s, "plain", r), y, LAB_MAIN, 1e-5);
        near(t, row(&s, "sum", r), h, LAB_MAIN, 1e-6);
        norm(y, h, s.l->gain, LAB_MAIN, 0.5);
        near(t, row(&s, "fused", r), y, LAB_MAIN, 1e-5);
    }
    QT_EQ(t, s.p->n_fused, 1);
    close_scene(&s);
}

static void record_elementwise(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = start(g, l);
    const qn_val u = qn_g_scale(g, x, -0.75f);
    qn_g_tap(g, u, "scale");
    qn_g_tap(g, qn_g_softcap(g, x, 0.7f), "softcap");
    qn_g_tap(g, qn_g_act_mul(g, x, u, QN_ACT_SILU), "silu");
    qn_g_tap(g, qn_g_act_mul(g, x, (qn_val){0}, QN_ACT_GELU_ERF), "gelu");
    qn_g_tap(g, qn_g_add(g, x, u), "add");
}

static void elementwise_ops_follow_their_formulas(qt *t)
{
    scene s = run(t, record_elementwise, QN_ACTIVATIONS_F32);
    for (uint32_t r = 0; r < N; r++) {
        double y[5][LAB_MAIN];
        for (uint32_t c = 0; c < LAB_MAIN; c++) {
            const double x = (double)row(&s, "x", r)[c], u = x * -0.75, cap = (double)0.7f;
            y[0][c] = u;
            y[1][c] = cap * tanh(x / cap);
            y[2][c] = x / (1.0 + exp(-x)) * u;
            y[3][c] = 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
            y[4][c] = x + u;
        }
        near(t, row(&s, "scale", r), y[0], LAB_MAIN, 1e-6);
        near(t, row(&s, "softcap", r), y[1], LAB_MAIN, 1e-5);
        near(t, row(&s, "silu", r), y[2], LAB_MAIN, 1e-5);
        near(t, row(&s, "gelu", r), y[3], LAB_MAIN, 1e-5);
        near(t, row(&s, "add", r), y[4], LAB_MAIN, 1e-6);
    }
    close_scene(&s);
}

static void record_products(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = start(g, l);
    qn_g_tap(g, qn_g_linear(g, x, &l->w[LAB_MI_Q], l->bias), "q4");
    qn_g_tap(g, qn_g_linear(g, x, &l->w[LAB_MK], NULL), "f32");
    qn_g_tap(g, qn_g_add(g, x, qn_g_linear(g, x, &l->w[LAB_MM_Q], l->bias)), "residual");
}

/* y = W x + bias + plus, with the weights that the format means. */
static void product(double *y, const qn_matrix *w, const float *x, const float *bias, bool plus)
{
    float wide[LAB_INNER];
    for (uint32_t o = 0; o < w->rows; o++) {
        qn_format_get(w->fmt)->unpack(wide, w, o, 0, w->cols);
        y[o] = (bias ? (double)bias[o] : 0.0) + (plus ? (double)x[o] : 0.0);
        for (uint32_t k = 0; k < w->cols; k++) y[o] += (double)wide[k] * (double)x[k];
    }
}

static void check_products(qt *t, qn_act_mode mode, double tol)
{
    scene s = run(t, record_products, mode);
    for (uint32_t r = 0; r < N; r++) {
        const float *x = row(&s, "x", r);
        double y[LAB_INNER];
        product(y, &s.l->w[LAB_MI_Q], x, s.l->bias, false);
        near(t, row(&s, "q4", r), y, LAB_INNER, tol);
        product(y, &s.l->w[LAB_MK], x, NULL, false);
        near(t, row(&s, "f32", r), y, LAB_KV, 1e-5);
        product(y, &s.l->w[LAB_MM_Q], x, s.l->bias, true);
        near(t, row(&s, "residual", r), y, LAB_MAIN, tol);
    }
    QT_EQ(t, s.p->n_fused, 1);
    close_scene(&s);
}

static void products_follow_the_formula(qt *t) { check_products(t, QN_ACTIVATIONS_F32, 1e-5); }
static void int8_products_come_close(qt *t) { check_products(t, QN_ACTIVATIONS_I8, 0.02); }
static void products_of_16_bits_come_closer(qt *t) { check_products(t, QN_ACTIVATIONS_I16, 1e-4); }

static const uint8_t streams[LAB_DIM / 2] = {0, 1, 2, 0, 1, 2, 0, 2};

static void record_ropes(const void *model, qn_graph *g, const qn_plan_key *key)
{
    lab *l = (lab *)(uintptr_t)model; /* the ropes are the lab's own and outlive the plan */
    (void)key;
    l->rope.stream = streams;
    const qn_val x = start(g, l);
    qn_g_tap(g, qn_g_rope(g, x, &l->rope, LAB_HEADS, LAB_DIM), "halves");
    qn_g_tap(g, qn_g_rope(g, x, &l->rope2, LAB_HEADS, LAB_DIM), "pairs");
}

static void rotate(double *y, const scene *s, const qn_rope *rope, uint32_t r)
{
    const float *x = row(s, "x", r);
    for (uint32_t c = 0; c < LAB_MAIN; c++) y[c] = (double)x[c];
    for (uint32_t i = 0; i < LAB_HEADS * rope->half; i++) {
        const uint32_t p = i % rope->half, head = i / rope->half * LAB_DIM;
        const uint32_t a = head + (rope->interleaved ? 2 * p : p),
                       b = rope->interleaved ? a + 1 : a + rope->half;
        const uint32_t stream = rope->stream ? rope->stream[p] : 0;
        const int32_t pos = qn_step_pos(s->s)[stream * s->s->caps.rows + r];
        const float angle = (float)pos * rope->inv_freq[p];
        const double c = cos((double)angle) * (double)rope->mscale,
                     sn = sin((double)angle) * (double)rope->mscale;
        y[a] = (double)x[a] * c - (double)x[b] * sn;
        y[b] = (double)x[a] * sn + (double)x[b] * c;
    }
}

static void ropes_turn_by_their_streams(qt *t)
{
    scene s = run(t, record_ropes, QN_ACTIVATIONS_F32);
    double y[LAB_MAIN];
    for (uint32_t r = 0; r < N; r++) {
        rotate(y, &s, &s.l->rope, r);
        near(t, row(&s, "halves", r), y, LAB_MAIN, 1e-5);
        rotate(y, &s, &s.l->rope2, r);
        near(t, row(&s, "pairs", r), y, LAB_MAIN, 1e-5);
    }
    close_scene(&s);
}

static const float sinks[LAB_HEADS] = {0.5f, -1.0f, 2.0f, 0.0f};

static void record_caches(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    const qn_attention_spec a = {.layer = 0, .n_heads = LAB_HEADS, .scale = 0.25f};
    const qn_attention_spec b = {
        .layer = 1, .n_heads = LAB_HEADS, .scale = 0.5f, .softcap = 1.5f, .sinks = sinks};
    (void)key;
    const qn_val x = start(g, l);
    const qn_val k = qn_g_linear(g, x, &l->w[LAB_MK], NULL);
    const qn_val v = qn_g_linear(g, x, &l->w[LAB_MK_Q], NULL);
    qn_g_tap(g, k, "k");
    qn_g_tap(g, v, "v");
    qn_g_kv_write(g, 0, k, v);
    qn_g_tap(g, qn_g_attention(g, x, &a), "full");
    qn_g_kv_write(g, 1, k, v);
    qn_g_tap(g, qn_g_attention(g, x, &b), "window");
}

/* Where layer `layer` keeps a position, found through the step by the layout's own words. */
static double cached(const scene *s, uint32_t layer, uint32_t seq, uint32_t pos, uint32_t c, bool v)
{
    const qn_kv_layer *l = &s->l->kv[layer];
    const uint32_t *table = qn_step_table(s->s) + l->group * LAB_BLOCKS;
    const uint32_t off = qn_step_table_off(s->s)[l->group * LAB_SEQS + seq];
    const uint8_t *part =
        s->l->pool + table[off + pos / 64] * l->block_bytes + (v ? l->v_bytes : l->k_bytes);
    const size_t at = ((size_t)(c / LAB_DIM) * 64 + pos % 64) * LAB_DIM + c % LAB_DIM;
    float f = 0.0f;
    uint16_t h = 0;
    memcpy(&h, part + at * 2, sizeof h);
    if (l->fmt == QN_KV_F16) return (double)qn_f16_to_f32(h);
    memcpy(&f, part + at * 4, sizeof f);
    return (double)f;
}

static void writes_land_where_the_tables_say(qt *t)
{
    scene s = run(t, record_caches, QN_ACTIVATIONS_F32);
    for (uint32_t r = 0; r < N; r++)
        for (uint32_t layer = 0; layer < LAB_LAYERS; layer++) {
            const uint32_t seq = qn_step_seq(s.s)[r], pos = qn_step_kv_pos(s.s)[r];
            double k[LAB_KV], v[LAB_KV];
            for (uint32_t c = 0; c < LAB_KV; c++) {
                k[c] = cached(&s, layer, seq, pos, c, false);
                v[c] = cached(&s, layer, seq, pos, c, true);
            }
            near(t, row(&s, "k", r), k, LAB_KV, layer ? 1e-3 : 0.0);
            near(t, row(&s, "v", r), v, LAB_KV, layer ? 1e-3 : 0.0);
        }
    close_scene(&s);
}

/* One head of one row over the cache as it is now. */
static void attend(double *y, const scene *s, uint32_t layer, uint32_t r, uint32_t head,
                   double scale, double cap, const float *sink)
{
    const uint32_t seq = qn_step_seq(s->s)[r], pos = qn_step_kv_pos(s->s)[r],
                   window = s->l->kv[layer].window, kv_head = head / 2;
    const uint32_t first = window && pos + 1 > window ? pos + 1 - window : 0;
    const float *q = row(s, "x", r) + head * LAB_DIM;
    double sum = sink ? exp((double)sink[head]) : 0.0;
    memset(y, 0, LAB_DIM * sizeof *y);
    for (uint32_t j = first; j <= pos; j++) {
        double score = 0.0;
        for (uint32_t c = 0; c < LAB_DIM; c++)
            score += (double)q[c] * cached(s, layer, seq, j, kv_head * LAB_DIM + c, false);
        score *= scale;
        if (cap > 0.0) score = cap * tanh(score / cap);
        sum += exp(score);
        for (uint32_t c = 0; c < LAB_DIM; c++)
            y[c] += exp(score) * cached(s, layer, seq, j, kv_head * LAB_DIM + c, true);
    }
    for (uint32_t c = 0; c < LAB_DIM; c++) y[c] /= sum;
}

static void attention_reads_its_own_layer_group_and_window(qt *t)
{
    scene s = run(t, record_caches, QN_ACTIVATIONS_F32);
    double y[LAB_DIM];
    for (uint32_t r = 0; r < N; r++)
        for (uint32_t h = 0; h < LAB_HEADS; h++) {
            attend(y, &s, 0, r, h, 0.25, 0.0, NULL);
            near(t, row(&s, "full", r) + h * LAB_DIM, y, LAB_DIM, 1e-4);
            attend(y, &s, 1, r, h, 0.5, 1.5, sinks);
            near(t, row(&s, "window", r) + h * LAB_DIM, y, LAB_DIM, 1e-4);
        }
    close_scene(&s);
}

static void record_end(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_logit_rows(g, start(g, l));
    qn_g_tap(g, x, "picked");
    const qn_val logits = qn_g_linear(g, x, &l->w[LAB_HEAD], NULL);
    qn_g_logits(g, logits);
    qn_g_draw(g, logits);
}

static void logit_rows_are_the_ones_asked_for(qt *t)
{
    scene s = run(t, record_end, QN_ACTIVATIONS_F32);
    size_t ld = 0;
    const float *logits = qn_plan_logits(s.p, &ld);
    double y[LAB_VOCAB];
    for (uint32_t i = 0; i < 3; i++) {
        const float *x = row(&s, "x", qn_step_logit_row(s.s)[i]);
        qt_same(t, row(&s, "picked", i), x, LAB_MAIN);
        product(y, &s.l->w[LAB_HEAD], x, NULL, false);
        near(t, logits + i * ld, y, LAB_VOCAB, 1e-5);
        const qn_drawn *d = &qn_plan_drawn(s.p)[i];
        if (QT_OK(t, d->token < LAB_VOCAB)) QT_OK(t, d->logit == logits[i * ld + d->token]);
    }
    close_scene(&s);
}

QT_MAIN(QT(embed_reads_tokens_registers_and_rows), QT(norms_follow_the_formula),
        QT(elementwise_ops_follow_their_formulas), QT(products_follow_the_formula),
        QT(int8_products_come_close), QT(products_of_16_bits_come_closer),
        QT(ropes_turn_by_their_streams), QT(writes_land_where_the_tables_say),
        QT(attention_reads_its_own_layer_group_and_window), QT(logit_rows_are_the_ones_asked_for))
