/* SPDX-License-Identifier: Apache-2.0 */
/* exec_test.c - running plans: a small graph against plain C, tiles, hooks, cancel, errors. Some tests
 * put kernels of their own into the plan's table to see who is called, and when. */
#include "base/alloc.h"
#include "base/fpenv.h"
#include "lab.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench { /* a plan and what it needs */
    lab *l;
    qn_device *d;
    qn_plan *p;
} bench;

static bench open_bench(qt *t, unsigned lanes, qn_record_fn *record, const qn_plan_key *key)
{
    bench b = {.l = lab_open(QN_ACTIVATIONS_F32), .d = lab_device(t, lanes)};
    b.p = lab_plan(t, b.l, b.d, record, b.l, key);
    return b;
}

static void close_bench(bench *b)
{
    qn_plan_free(b->p);
    qn_device_close(b->d);
    lab_close(b->l);
}

/* -- against plain C ---------------------------------------------------------------------------- */

static void small(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 2.0f);
    qn_g_tap(g, x, "embedded");
    const qn_val n = qn_g_rmsnorm(g, x, l->gain, 1, 1e-5f);
    const qn_val h = qn_g_add(g, x, qn_g_linear(g, n, &l->w[LAB_MM], l->bias));
    qn_g_tap(g, h, "hidden");
    const qn_val y = qn_g_softcap(g, qn_g_scale(g, qn_g_logit_rows(g, h), 0.5f), 4.0f);
    const qn_val logits = qn_g_linear(g, y, &l->w[LAB_TABLE], NULL);
    qn_g_logits(g, logits);
    qn_g_draw(g, logits);
}

static void product(double *y, const double *x, const float *w, const float *bias, size_t rows,
                    size_t cols)
{
    for (size_t o = 0; o < rows; o++) {
        y[o] = bias ? (double)bias[o] : 0.0;
        for (size_t k = 0; k < cols; k++) y[o] += (double)w[o * cols + k] * x[k];
    }
}

/* What `small` makes of row r: the embedding, the hidden row, the logits. */
static void plain_c(const lab *l, const qn_step *s, uint32_t r, double *x, double *h,
                    double *logits)
{
    const uint32_t src = qn_step_source(s)[r], value = qn_step_value(s)[r];
    const uint32_t token = src == QN_ROW_REGISTER ? l->registers[value] : value;
    double n[LAB_MAIN], y[LAB_MAIN], sum = 0.0;
    for (int c = 0; c < LAB_MAIN; c++) {
        x[c] = src == QN_ROW_EMBED
                   ? (double)l->embed_rows[value * LAB_MAIN + (uint32_t)c]
                   : 2.0 * (double)l->plain[LAB_TABLE][token * LAB_MAIN + (uint32_t)c];
        sum += x[c] * x[c];
    }
    for (int c = 0; c < LAB_MAIN; c++)
        n[c] = x[c] / sqrt(sum / LAB_MAIN + 1e-5) * (double)l->gain[c];
    product(h, n, l->plain[LAB_MM], l->bias, LAB_MAIN, LAB_MAIN);
    for (int c = 0; c < LAB_MAIN; c++) {
        h[c] += x[c];
        y[c] = 4.0 * tanh(0.5 * h[c] / 4.0);
    }
    product(logits, y, l->plain[LAB_TABLE], NULL, LAB_VOCAB, LAB_MAIN);
}

static void near(qt *t, const float *got, const double *want, size_t n)
{
    double top = 0.0, worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        top = fmax(top, fabs(want[i]));
        worst = fmax(worst, fabs((double)got[i] - want[i]));
    }
    QT_OKF(t, worst <= 1e-5 * top, "off by %g of %g", worst, top);
}

static const qn_plan_key everything = {
    .rows = LAB_ROWS, .logits = 4, .features = QN_PLAN_KEEP_LOGITS, .taps = 3};

static void check_small(qt *t, unsigned lanes)
{
    bench b = open_bench(t, lanes, small, &everything);
    qn_step *s = qn_plan_step(b.p);
    uint32_t cols = 0;
    size_t ld_x = 0, ld_h = 0, ld = 0;
    const float *x = qn_plan_tap(b.p, "embedded", &cols, &ld_x),
                *h = qn_plan_tap(b.p, "hidden", NULL, &ld_h), *logits = qn_plan_logits(b.p, &ld);
    lab_fill(s, 7, 3, 0);
    double want_x[LAB_MAIN], want_h[LAB_MAIN], want[LAB_VOCAB];
    double all[3][LAB_VOCAB];
    uint32_t before[8];
    memcpy(before, b.l->registers, sizeof before);
    for (uint32_t i = 0; i < 3; i++) /* registers change with the draw: look first */
        plain_c(b.l, s, qn_step_logit_row(s)[i], want_x, want_h, all[i]);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    for (uint32_t i = 0; i < 3; i++) near(t, logits + i * ld, all[i], LAB_VOCAB);
    memcpy(b.l->registers, before, sizeof before);
    for (uint32_t r = 0; r < 7; r++) {
        plain_c(b.l, s, r, want_x, want_h, want);
        near(t, x + r * ld_x, want_x, LAB_MAIN);
        near(t, h + r * ld_h, want_h, LAB_MAIN);
    }
    QT_EQ(t, cols, LAB_MAIN);
    close_bench(&b);
}

static void one_lane_computes_what_plain_c_does(qt *t) { check_small(t, 1); }
static void two_lanes_compute_what_plain_c_does(qt *t) { check_small(t, 2); }
static void four_lanes_compute_what_plain_c_does(qt *t) { check_small(t, 4); }

static void draws_land_in_their_registers(qt *t)
{
    bench b = open_bench(t, 2, small, &everything);
    lab_fill(qn_plan_step(b.p), 5, 4, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    const qn_drawn *d = qn_plan_drawn(b.p);
    size_t ld = 0;
    const float *logits = qn_plan_logits(b.p, &ld);
    uint32_t best = 0;
    for (uint32_t v = 1; v < LAB_VOCAB; v++)
        if (logits[v] > logits[best]) best = v;
    QT_EQ(t, d[0].token, best);
    QT_EQ(t, b.l->registers[2], d[0].token); /* as lab_fill asked */
    QT_EQ(t, b.l->registers[4], d[2].token);
    QT_EQ(t, b.l->registers[3], 21 % LAB_VOCAB); /* nobody's */
    close_bench(&b);
}

static void a_step_may_hold_any_number_of_rows(qt *t)
{
    static const uint32_t sizes[][2] = {{1, 1},        {7, 1}, {7, 4}, {2, 2},
                                        {LAB_ROWS, 4}, {3, 0}, {3, 3}};
    bench b = open_bench(t, 2, small, &everything);
    qn_step *s = qn_plan_step(b.p);
    for (size_t i = 0; i < QT_LEN(sizes); i++) {
        const uint32_t rows = sizes[i][0], n = sizes[i][1];
        double x[LAB_MAIN], h[LAB_MAIN], want[4][LAB_VOCAB];
        lab_fill(s, rows, n, 0);
        for (uint32_t k = 0; k < n; k++) plain_c(b.l, s, qn_step_logit_row(s)[k], x, h, want[k]);
        plain_c(b.l, s, rows / 2, x, h, want[3]);
        QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
        size_t ld = 0, ld_h = 0;
        const float *hidden = qn_plan_tap(b.p, "hidden", NULL, &ld_h);
        const float *logits = qn_plan_logits(b.p, &ld);
        near(t, hidden + rows / 2 * ld_h, h, LAB_MAIN);
        for (uint32_t k = 0; k < n && k < 3; k++) near(t, logits + k * ld, want[k], LAB_VOCAB);
    }
    close_bench(&b);
}

static void a_step_without_rows_does_nothing(qt *t)
{
    bench b = open_bench(t, 2, small, &everything);
    lab_fill(qn_plan_step(b.p), 0, 0, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    QT_OK(t, qn_plan_tap(b.p, "hidden", NULL, NULL)[0] == 0.0f);
    close_bench(&b);
}

static void a_step_beyond_its_capacities_is_refused(qt *t)
{
    bench b = open_bench(t, 1, small, &everything);
    qn_err err = {0};
    qn_step *s = qn_plan_step(b.p);
    lab_fill(s, 1, 1, 0);
    s->n_rows = LAB_ROWS + 1;
    QT_EQ(t, qn_plan_exec(b.p, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "step: 25 rows, expected at most 24");
    s->n_rows = 1;
    s->n_logits = 5;
    QT_EQ(t, qn_plan_exec(b.p, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "step: 5 logit rows, expected at most 4");
    s->n_logits = 1;
    s->n_seqs = 3;
    QT_EQ(t, qn_plan_exec(b.p, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "step: 3 sequences, expected at most 2");
    close_bench(&b);
}

static void the_step_block_has_the_graphs_capacities(qt *t)
{
    bench b = open_bench(t, 1, small, &everything);
    const qn_step *s = qn_plan_step(b.p);
    QT_EQ(t, s->caps.rows, LAB_ROWS);
    QT_EQ(t, s->caps.logits, 4);
    QT_EQ(t, s->n_rows, 0);
    QT_EQ(t, s->n_logits, 0);
    QT_EQ(t, (uintptr_t)s % 64, 0);
    QT_EQ(t, qn_step_check(s, s->bytes, NULL), QN_OK);
    close_bench(&b);
}

static void a_step_allocates_nothing(qt *t)
{
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        bench b = open_bench(t, lanes, small, &everything);
        lab_fill(qn_plan_step(b.p), 7, 3, 0);
        const size_t blocks = qn_alloc_live(), bytes = qn_alloc_live_bytes();
        qn_alloc_fail_after(0); /* and debug builds trip over any attempt */
        QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
        QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
        qn_alloc_fail_after(SIZE_MAX);
        QT_EQ(t, qn_alloc_live(), blocks);
        QT_EQ(t, qn_alloc_live_bytes(), bytes);
        close_bench(&b);
    }
}

/* -- tiles -------------------------------------------------------------------------------------- */

/* Kernels get no context: these are the tests' own instruments. */
static _Atomic(qn_pool *) to_cancel;
static atomic_uint units_done[4096], n_tiles, n_adds;
static atomic_bool environment_was_plain;

static void count_linear(const qn_linear_args *a, qn_span units, void *scratch)
{
    (void)a;
    (void)scratch;
    atomic_fetch_add(&n_tiles, 1);
    if (!qn_fpenv_is_plain()) atomic_store(&environment_was_plain, false);
    for (uint32_t u = units.begin; u < units.end; u++) atomic_fetch_add(&units_done[u], 1);
}

static void wide(const void *model, qn_graph *g, const qn_plan_key *key)
{
    (void)key;
    const lab *l = model;
    static const float data[4096 * LAB_MAIN];
    static const qn_matrix w = {
        .fmt = QN_FMT_F32, .rows = 4096, .cols = LAB_MAIN, .ld_bytes = 4 * LAB_MAIN, .data = data};
    qn_g_tap(g, qn_g_linear(g, qn_g_embed(g, &l->w[LAB_TABLE], 1.0f), &w, NULL), "y");
}

static void every_unit_runs_once(qt *t)
{
    for (unsigned lanes = 1; lanes <= 4; lanes++) {
        const qn_plan_key key = {.rows = LAB_ROWS, .taps = 1};
        bench b = open_bench(t, lanes, wide, &key);
        b.p->kern.linear = count_linear;
        lab_fill(qn_plan_step(b.p), 3, 0, 0);
        for (uint32_t round = 1; round <= 3; round++) { /* counters start anew each step */
            for (uint32_t u = 0; u < 4096; u++) atomic_store(&units_done[u], 0);
            QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
            bool once = true;
            for (uint32_t u = 0; u < 4096; u++) once = once && atomic_load(&units_done[u]) == 1;
            QT_OK(t, once);
        }
        close_bench(&b);
    }
}

static void large_products_split_and_small_ones_do_not(qt *t)
{
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 1};
    bench b = open_bench(t, 2, wide, &key);
    b.p->kern.linear = count_linear;
    lab_fill(qn_plan_step(b.p), 1, 0, 0);
    atomic_store(&n_tiles, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    QT_EQ(t, atomic_load(&n_tiles), 4096 / 256);
    QT_EQ(t, b.p->loads[0].units, 1); /* the embedding of one row: one tile */
    close_bench(&b);

    b = open_bench(t, 2, small, &everything);
    b.p->kern.linear = count_linear;
    lab_fill(qn_plan_step(b.p), 1, 0, 0);
    atomic_store(&n_tiles, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK); /* 64 x 64 products: less than a claim's worth */
    QT_EQ(t, atomic_load(&n_tiles), 1);
    close_bench(&b);
}

static void one_lane_takes_each_op_whole(qt *t)
{
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 1};
    bench b = open_bench(t, 1, wide, &key);
    b.p->kern.linear = count_linear;
    lab_fill(qn_plan_step(b.p), 9, 0, 0);
    atomic_store(&n_tiles, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    QT_EQ(t, atomic_load(&n_tiles), 1);
    close_bench(&b);
}

static void lanes_compute_in_the_plain_environment(qt *t)
{
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 1};
    bench b = open_bench(t, 3, wide, &key);
    b.p->kern.linear = count_linear;
    atomic_store(&environment_was_plain, true);
    lab_fill(qn_plan_step(b.p), 3, 0, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    QT_OK(t, atomic_load(&environment_was_plain));
    close_bench(&b);
}

/* -- hooks and cancel --------------------------------------------------------------------------- */

typedef struct diary {
    char text[64];
    const float *tap;
    uint32_t rows;
    qn_code answer;
    qn_pool *cancel;
} diary;

static qn_code note(diary *d, const char *word, const qn_step *step, qn_err *err)
{
    strncat(d->text, word, sizeof d->text - strlen(d->text) - 1);
    d->rows = step->n_rows;
    if (d->cancel) qn_pool_cancel(d->cancel);
    return d->answer ? qn_fail(err, d->answer, "no expert %s", word) : QN_OK;
}

static qn_code hook_a(void *ctx, const qn_step *step, qn_err *err)
{
    return note(ctx, "a", step, err);
}
static qn_code hook_b(void *ctx, const qn_step *step, qn_err *err)
{
    diary *d = ctx;
    return note(d, d->tap && d->tap[0] != 0.0f ? "B" : "b", step, err);
}
static qn_code hook_c(void *ctx, const qn_step *step, qn_err *err)
{
    return note(ctx, "c", step, err);
}

typedef struct hooked {
    const lab *l;
    diary *d;
} hooked;

static void with_hooks(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const hooked *h = model;
    (void)key;
    qn_g_segment(g, hook_a, h->d);
    const qn_val x = qn_g_embed(g, &h->l->w[LAB_TABLE], 1.0f);
    qn_g_tap(g, x, "x");
    qn_g_segment(g, NULL, NULL);
    const qn_val y = qn_g_scale(g, x, 2.0f);
    qn_g_tap(g, y, "y");
    qn_g_segment(g, hook_b, h->d);
    qn_g_tap(g, qn_g_add(g, x, y), "z");
    qn_g_segment(g, hook_c, h->d);
}

static const qn_plan_key three_taps = {.rows = LAB_ROWS, .taps = 7};

/* Runs with_hooks once on a new plan and leaves the diary to be read. */
static qn_code run_hooks(qt *t, unsigned lanes, diary *d, bool cancel, float *z, qn_err *err)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *dev = lab_device(t, lanes);
    const hooked h = {l, d};
    qn_plan *p = lab_plan(t, l, dev, with_hooks, &h, &three_taps);
    lab_fill(qn_plan_step(p), 2, 0, 0);
    d->tap = qn_plan_tap(p, "y", NULL, NULL);
    d->cancel = cancel ? dev->pool : NULL;
    const qn_code rc = qn_plan_exec(p, err);
    *z = qn_plan_tap(p, "z", NULL, NULL)[0];
    qn_plan_stats stats;
    qn_plan_get_stats(p, &stats);
    QT_EQ(t, stats.n_segments, 5);
    qn_plan_free(p);
    qn_device_close(dev);
    lab_close(l);
    return rc;
}

static void hooks_run_in_order_between_their_segments(qt *t)
{
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        diary d = {.text = ""};
        float z = 0.0f;
        QT_EQ(t, run_hooks(t, lanes, &d, false, &z, NULL), QN_OK);
        QT_STR(t, d.text, "aBc"); /* B: what came before was done */
        QT_EQ(t, d.rows, 2);
        QT_OK(t, z != 0.0f);
    }
}

static void a_hooks_error_ends_the_step(qt *t)
{
    diary d = {.text = "", .answer = QN_E_IO};
    qn_err err = {0};
    float z = 0.0f;
    QT_EQ(t, run_hooks(t, 2, &d, false, &z, &err), QN_E_IO);
    QT_STR(t, d.text, "a");
    QT_STR(t, err.msg, "no expert a");
    QT_OK(t, z == 0.0f);
}

static void a_cancel_during_a_hook_ends_the_step(qt *t)
{
    diary d = {.text = ""};
    qn_err err = {0};
    float z = 0.0f;
    QT_EQ(t, run_hooks(t, 2, &d, true, &z, &err), QN_E_CANCELLED);
    QT_STR(t, d.text, "aB"); /* hook a's came before anything ran: the first run clears it */
    QT_OK(t, z == 0.0f);
}

static void cancelling_scale(const qn_scale_args *a, qn_span units, void *scratch)
{
    (void)a;
    (void)units;
    (void)scratch;
    qn_pool_cancel(atomic_load(&to_cancel));
}

static void counting_add(const qn_add_args *a, qn_span units, void *scratch)
{
    (void)a;
    (void)units;
    (void)scratch;
    atomic_fetch_add(&n_adds, 1);
}

static void cancel_here(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_scale(g, x, 2.0f);
    qn_g_tap(g, qn_g_add(g, y, x), "y");
    qn_g_tap(g, qn_g_add(g, x, y), "z"); /* in the same phase: no barrier before it */
}

static void a_cancel_is_seen_at_the_next_barrier(qt *t)
{
    for (unsigned lanes = 1; lanes <= 3; lanes++) {
        const qn_plan_key key = {.rows = LAB_ROWS, .taps = 3};
        bench b = open_bench(t, lanes, cancel_here, &key);
        b.p->kern.scale = cancelling_scale;
        b.p->kern.add = counting_add;
        atomic_store(&to_cancel, b.d->pool);
        atomic_store(&n_adds, 0);
        lab_fill(qn_plan_step(b.p), 3, 0, 0);
        QT_EQ(t, qn_plan_exec(b.p, NULL), QN_E_CANCELLED);
        QT_EQ(t, atomic_load(&n_adds), 0);
        b.p->kern.scale = qn_kern_select(0).scale;
        QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK); /* and the next step is whole */
        QT_OK(t, atomic_load(&n_adds) > 0);
        close_bench(&b);
    }
}

static void plans_of_two_sizes_run_on_one_device(qt *t)
{
    bench b = open_bench(t, 2, small, &everything);
    lab *l = b.l;
    l->opt.caps.rows = 2;
    qn_plan *p = lab_plan(t, l, b.d, small, l, &everything);
    size_t ld = 0, ld2 = 0;
    lab_fill(qn_plan_step(b.p), 2, 2, 0);
    lab_fill(qn_plan_step(p), 2, 2, 0);
    QT_EQ(t, qn_plan_exec(b.p, NULL), QN_OK);
    lab_reset(l);
    QT_EQ(t, qn_plan_exec(p, NULL), QN_OK);
    const float *x = qn_plan_logits(b.p, &ld), *y = qn_plan_logits(p, &ld2);
    for (uint32_t i = 0; i < 2; i++) qt_same(t, x + i * ld, y + i * ld2, LAB_VOCAB);
    qn_plan_free(p);
    close_bench(&b);
}

QT_MAIN(QT(one_lane_computes_what_plain_c_does), QT(two_lanes_compute_what_plain_c_does),
        QT(four_lanes_compute_what_plain_c_does), QT(draws_land_in_their_registers),
        QT(a_step_may_hold_any_number_of_rows), QT(a_step_without_rows_does_nothing),
        QT(a_step_beyond_its_capacities_is_refused), QT(the_step_block_has_the_graphs_capacities),
        QT(a_step_allocates_nothing), QT(every_unit_runs_once),
        QT(large_products_split_and_small_ones_do_not), QT(one_lane_takes_each_op_whole),
        QT(lanes_compute_in_the_plain_environment), QT(hooks_run_in_order_between_their_segments),
        QT(a_hooks_error_ends_the_step), QT(a_cancel_during_a_hook_ends_the_step),
        QT(a_cancel_is_seen_at_the_next_barrier), QT(plans_of_two_sizes_run_on_one_device))
