/* SPDX-License-Identifier: Apache-2.0 */
/* random_test.c - random graphs give the same bits however they are planned and run: fused or not,
 * sharing memory or not, on one lane or several, alone or among other rows. */
#include "base/alloc.h"
#include "lab.h"

#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 40, MAX_TAPS = 8 };

typedef struct outcome { /* all that a step leaves behind */
    float logits[4 * LAB_VOCAB];
    float taps[MAX_TAPS][LAB_ROWS * LAB_INNER];
    qn_drawn drawn[4];
    uint32_t registers[8];
    uint8_t *pool;
} outcome;

static const qn_plan_key everything = {
    .rows = LAB_ROWS, .logits = 4, .features = QN_PLAN_KEEP_LOGITS, .taps = (1 << MAX_TAPS) - 1};

static outcome *run(qt *t, lab *l, qn_device *d, const lab_random *r, uint32_t features,
                    uint32_t rows)
{
    static const char *const names[MAX_TAPS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    outcome *o = calloc(1, sizeof *o);
    qn_plan_key key = everything;
    key.features |= features;
    qn_plan *p = lab_plan(t, l, d, lab_record, r, &key);
    if (!o || !p) abort();
    lab_reset(l);
    lab_fill(qn_plan_step(p), rows, rows < 4 ? rows : 4, 50); /* crosses a block at 64 */
    QT_EQ(t, qn_plan_exec(p, NULL), QN_OK);
    size_t ld = 0;
    const float *logits = qn_plan_logits(p, &ld);
    const uint32_t n_logits = rows < 4 ? rows : 4;
    for (uint32_t i = 0; i < n_logits; i++)
        memcpy(o->logits + i * LAB_VOCAB, logits + i * ld, sizeof(float) * LAB_VOCAB);
    for (int k = 0; k < MAX_TAPS; k++) {
        uint32_t cols = 0;
        const float *x = qn_plan_tap(p, names[k], &cols, &ld);
        for (uint32_t i = 0; x && i < rows; i++)
            memcpy(o->taps[k] + i * LAB_INNER, x + i * ld, sizeof(float) * cols);
    }
    memcpy(o->drawn, qn_plan_drawn(p), n_logits * sizeof *o->drawn);
    memcpy(o->registers, l->registers, sizeof o->registers);
    o->pool = malloc(l->pool_bytes);
    memcpy(o->pool, l->pool, l->pool_bytes);
    qn_plan_free(p);
    return o;
}

static void drop(outcome *o)
{
    free(o->pool);
    free(o);
}

static void equal(qt *t, const lab *l, const outcome *a, const outcome *b)
{
    qt_same(t, a->logits, b->logits, QT_LEN(a->logits));
    for (int k = 0; k < MAX_TAPS; k++) qt_same(t, a->taps[k], b->taps[k], QT_LEN(a->taps[k]));
    QT_OK(t, memcmp(a->drawn, b->drawn, sizeof a->drawn) == 0);
    QT_OK(t, memcmp(a->registers, b->registers, sizeof a->registers) == 0);
    QT_OK(t, memcmp(a->pool, b->pool, l->pool_bytes) == 0);
}

/* Compares random graphs on `lanes` lanes with `features` to the plainest way of running them. */
static void compare(qt *t, uint32_t features, unsigned lanes)
{
    qn_device *plain = lab_device(t, 1), *d = lab_device(t, lanes);
    uint32_t moved = 0;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        lab *l = lab_open((qn_act_mode)(i % 3));
        const lab_random r = {.l = l, .seed = 1000 + i, .n_ops = 12 + i * 2};
        const uint32_t rows = 1 + i * 5 % LAB_ROWS;
        outcome *want = run(t, l, plain, &r, QN_PLAN_NO_FUSE | QN_PLAN_NO_SHARE, rows),
                *got = run(t, l, d, &r, features, rows);
        equal(t, l, want, got);
        for (size_t k = 0; k < LAB_VOCAB; k++) moved += want->logits[k] != 0.0f;
        drop(want);
        drop(got);
        lab_close(l);
    }
    QT_OK(t, moved > GRAPHS * 20); /* the graphs compute something */
    qn_device_close(plain);
    qn_device_close(d);
}

static void fusion_changes_no_bit(qt *t) { compare(t, QN_PLAN_NO_SHARE, 1); }
static void sharing_memory_changes_no_bit(qt *t) { compare(t, QN_PLAN_NO_FUSE, 1); }
static void both_change_no_bit(qt *t) { compare(t, 0, 1); }
static void two_lanes_change_no_bit(qt *t) { compare(t, 0, 2); }
static void three_lanes_change_no_bit(qt *t) { compare(t, 0, 3); }
static void four_lanes_without_fusion_change_no_bit(qt *t) { compare(t, QN_PLAN_NO_FUSE, 4); }

static void lanes_in_turn_change_no_bit(qt *t)
{
    qn_device *one = lab_device(t, 1), *four = lab_device(t, 4);
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    const lab_random r = {.l = l, .seed = 5, .n_ops = 60};
    outcome *want = run(t, l, one, &r, 0, LAB_ROWS);
    for (int i = 0; i < 30; i++) { /* whoever claims what, in whichever order */
        outcome *got = run(t, l, four, &r, 0, LAB_ROWS);
        equal(t, l, want, got);
        drop(got);
    }
    drop(want);
    lab_close(l);
    qn_device_close(one);
    qn_device_close(four);
}

/* A row's logits do not depend on the other rows (rule R4). Rows of the two sequences attend to their
 * own caches only, so the first row alone is the first row of many. */
static void rows_do_not_depend_on_each_other(qt *t)
{
    qn_device *d = lab_device(t, 2);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        lab *l = lab_open((qn_act_mode)(i % 3));
        const lab_random r = {.l = l, .seed = 2000 + i, .n_ops = 40};
        outcome *many = run(t, l, d, &r, 0, LAB_ROWS), *one = run(t, l, d, &r, 0, 1);
        for (int k = 0; k < MAX_TAPS; k++) qt_same(t, many->taps[k], one->taps[k], LAB_INNER);
        drop(many);
        drop(one);
        lab_close(l);
    }
    qn_device_close(d);
}

static void every_isa_gives_the_same_bits(qt *t)
{
    qn_device *plain = NULL, *best = lab_device(t, 2);
    QT_EQ(t, qn_device_open_cpu(&plain, 1, 0, NULL), QN_OK);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        lab *l = lab_open((qn_act_mode)(i % 3));
        const lab_random r = {.l = l, .seed = 3000 + i, .n_ops = 40};
        outcome *want = run(t, l, plain, &r, 0, 9), *got = run(t, l, best, &r, 0, 9);
        equal(t, l, want, got);
        drop(want);
        drop(got);
        lab_close(l);
    }
    qn_device_close(plain);
    qn_device_close(best);
}

static void build_survives_every_failed_allocation(qt *t)
{
    qn_device *d = lab_device(t, 1);
    lab *l = lab_open(QN_ACTIVATIONS_I8);
    const lab_random r = {.l = l, .seed = 11, .n_ops = 80};
    qn_graph *g = NULL;
    QT_EQ(t, qn_graph_new(&g, &l->opt, NULL), QN_OK);
    lab_record(&r, g, &everything);
    qn_plan *first = NULL; /* the pool's scratch stays: reserve it before counting */
    QT_EQ(t, qn_plan_build(&first, d, g, &everything, NULL), QN_OK);
    qn_plan_free(first);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_plan *p = NULL;
        qn_alloc_fail_after(n);
        rc = qn_plan_build(&p, d, g, &everything, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && p == NULL));
        qn_plan_free(p);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    qn_graph_free(g);
    lab_close(l);
    qn_device_close(d);
}

QT_MAIN(QT(fusion_changes_no_bit), QT(sharing_memory_changes_no_bit), QT(both_change_no_bit),
        QT(two_lanes_change_no_bit), QT(three_lanes_change_no_bit),
        QT(four_lanes_without_fusion_change_no_bit), QT(lanes_in_turn_change_no_bit),
        QT(rows_do_not_depend_on_each_other), QT(every_isa_gives_the_same_bits),
        QT(build_survives_every_failed_allocation))
