/* SPDX-License-Identifier: Apache-2.0 */
/* plans_test.c - the cache of plans: buckets, keys, bytes; the dump. */
#include "base/alloc.h"
#include "lab.h"

#include <string.h>

typedef struct counted {
    lab_random r;
    uint32_t n_records;
    qn_plan_key last;
} counted;

static void record(const void *model, qn_graph *g, const qn_plan_key *key)
{
    counted *c = (counted *)(uintptr_t)model; /* the recorder's model is const; the count is not */
    c->n_records++;
    c->last = *key;
    lab_record(&c->r, g, key);
}

typedef struct scene {
    lab *l;
    qn_device *d;
    counted c;
    qn_plans *plans;
} scene;

static void open_scene(qt *t, scene *s)
{
    memset(s, 0, sizeof *s);
    s->l = lab_open(QN_ACTIVATIONS_F32);
    s->d = lab_device(t, 1);
    s->c.r = (lab_random){.l = s->l, .seed = 4, .n_ops = 20};
    const qn_plans_options o = {.dev = s->d, .graph = s->l->opt, .record = record, .model = &s->c};
    QT_EQ(t, qn_plans_open(&s->plans, &o, NULL), QN_OK);
}

static void close_scene(scene *s)
{
    qn_plans_close(s->plans);
    qn_device_close(s->d);
    lab_close(s->l);
}

static qn_plan *get(qt *t, scene *s, uint32_t rows, uint32_t logits, uint32_t features)
{
    qn_plan *p = NULL;
    const qn_plan_key key = {.rows = rows, .logits = logits, .features = features};
    QT_EQ(t, qn_plans_get(&p, s->plans, &key, NULL), QN_OK);
    return p;
}

static void rows_round_up_to_powers_of_two_below_the_cap(qt *t)
{
    static const uint32_t want[LAB_ROWS + 1] = {0,  1,  2,  4,  4,  8,  8,  8,  8,  16, 16, 16, 16,
                                                16, 16, 16, 16, 24, 24, 24, 24, 24, 24, 24, 24};
    scene s;
    open_scene(t, &s);
    for (uint32_t n = 1; n <= LAB_ROWS; n++)
        QT_EQ(t, qn_plan_step(get(t, &s, n, 1, 0))->caps.rows, want[n]);
    QT_EQ(t, s.c.n_records, 6); /* 1 2 4 8 16 24 */
    close_scene(&s);
}

static void logits_round_up_and_none_stays_none(qt *t)
{
    scene s;
    open_scene(t, &s);
    QT_EQ(t, qn_plan_step(get(t, &s, 4, 3, 0))->caps.logits, 4);
    QT_EQ(t, qn_plan_step(get(t, &s, 4, 4, 0))->caps.logits, 4);
    QT_EQ(t, s.c.n_records, 1);
    qn_plan *p = get(t, &s, 4, 0, 0);
    QT_EQ(t, s.c.last.logits, 0);
    QT_EQ(t, qn_plan_step(p)->caps.logits, 1); /* room that stays empty */
    QT_OK(t, qn_plan_drawn(p) == NULL);
    close_scene(&s);
}

static void equal_keys_give_the_same_plan(qt *t)
{
    scene s;
    open_scene(t, &s);
    qn_plan *p = get(t, &s, 3, 1, 0);
    QT_OK(t, p == get(t, &s, 4, 1, 0));
    QT_OK(t, p != get(t, &s, 4, 2, 0));
    QT_OK(t, p != get(t, &s, 5, 1, 0));
    QT_OK(t, p != get(t, &s, 3, 1, QN_PLAN_NO_FUSE));
    qn_plan *tapped = NULL;
    const qn_plan_key key = {.rows = 3, .logits = 1, .taps = 1};
    QT_EQ(t, qn_plans_get(&tapped, s.plans, &key, NULL), QN_OK);
    QT_OK(t, p != tapped);
    QT_OK(t, p == get(t, &s, 3, 1, 0));
    QT_EQ(t, s.c.n_records, 5);
    close_scene(&s);
}

static void many_keys_live_side_by_side(qt *t)
{
    scene s;
    qn_plan *p[128];
    open_scene(t, &s);
    s.c.r.n_ops = 2;
    for (uint32_t i = 0; i < QT_LEN(p); i++) {
        const qn_plan_key key = {.rows = 1, .logits = 1, .taps = i};
        QT_EQ(t, qn_plans_get(&p[i], s.plans, &key, NULL), QN_OK);
    }
    for (uint32_t i = 0; i < QT_LEN(p); i++) {
        const qn_plan_key key = {.rows = 1, .logits = 1, .taps = i};
        qn_plan *again = NULL;
        QT_EQ(t, qn_plans_get(&again, s.plans, &key, NULL), QN_OK);
        QT_OK(t, again == p[i]);
        for (uint32_t j = 0; j < i; j++) QT_OK(t, p[i] != p[j]);
    }
    close_scene(&s);
}

static void refuses_what_the_caps_do_not_hold(qt *t)
{
    scene s;
    qn_plan *p = NULL;
    qn_err err = {0};
    open_scene(t, &s);
    qn_plan_key key = {.rows = LAB_ROWS + 1, .logits = 1};
    QT_EQ(t, qn_plans_get(&p, s.plans, &key, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "plan: 25 rows, expected 1 to 24");
    key = (qn_plan_key){.rows = 0, .logits = 1};
    QT_EQ(t, qn_plans_get(&p, s.plans, &key, &err), QN_E_INVAL);
    key = (qn_plan_key){.rows = 1, .logits = 5};
    QT_EQ(t, qn_plans_get(&p, s.plans, &key, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "plan: 5 logit rows, expected at most 4");
    QT_OK(t, p == NULL);
    close_scene(&s);
}

static void a_recorders_error_comes_through_and_is_not_cached(qt *t)
{
    scene s;
    qn_plan *p = NULL;
    qn_err err = {0};
    open_scene(t, &s);
    const qn_plan_key key = {.rows = 1, .logits = 1};
    s.l->w[LAB_HEAD].cols = 63;
    QT_EQ(t, qn_plans_get(&p, s.plans, &key, &err), QN_E_INVAL);
    QT_OK(t, p == NULL && strstr(err.msg, "linear: x is 64 wide, expected 63") != NULL);
    s.l->w[LAB_HEAD].cols = 64;
    QT_EQ(t, qn_plans_get(&p, s.plans, &key, &err), QN_OK);
    QT_OK(t, p != NULL);
    close_scene(&s);
}

static void bytes_grow_with_each_plan_only(qt *t)
{
    scene s;
    open_scene(t, &s);
    const size_t empty = qn_plans_bytes(s.plans);
    qn_plan_stats stats;
    qn_plan_get_stats(get(t, &s, 1, 1, 0), &stats);
    const size_t one = qn_plans_bytes(s.plans);
    QT_OK(t, one >= empty + stats.slab_bytes);
    (void)get(t, &s, 1, 1, 0);
    QT_EQ(t, qn_plans_bytes(s.plans), one);
    (void)get(t, &s, 16, 1, 0);
    QT_OK(t, qn_plans_bytes(s.plans) > one);
    close_scene(&s);
}

static void open_refuses_no_device_and_no_recorder(qt *t)
{
    scene s;
    qn_plans *c = NULL;
    qn_err err = {0};
    open_scene(t, &s);
    qn_plans_options o = {.graph = s.l->opt, .record = record};
    QT_EQ(t, qn_plans_open(&c, &o, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "plans: no device");
    o.dev = s.d;
    o.record = NULL;
    QT_EQ(t, qn_plans_open(&c, &o, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "plans: no recorder");
    o.record = record;
    o.graph.caps.rows = 0;
    QT_EQ(t, qn_plans_open(&c, &o, &err), QN_E_INVAL);
    QT_OK(t, c == NULL);
    close_scene(&s);
}

static void open_and_get_survive_every_failed_allocation(qt *t)
{
    scene s;
    open_scene(t, &s);
    (void)get(t, &s, 2, 1, 0); /* the pool's scratch stays */
    const qn_plans_options o = {.dev = s.d, .graph = s.l->opt, .record = record, .model = &s.c};
    const qn_plan_key key = {.rows = 2, .logits = 1};
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 128; n++) {
        qn_plans *c = NULL;
        qn_plan *p = NULL;
        qn_alloc_fail_after(n);
        rc = qn_plans_open(&c, &o, NULL);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && c == NULL));
        if (rc == QN_OK) rc = qn_plans_get(&p, c, &key, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && p == NULL));
        qn_plans_close(c);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    close_scene(&s);
}

static void the_dump_names_every_op(qt *t)
{
    scene s;
    open_scene(t, &s);
    qn_plan *p = get(t, &s, 2, 1, 0);
    char *text = qn_plan_dump(p);
    if (QT_OK(t, text != NULL)) {
        uint32_t lines = 0;
        for (const char *c = text; *c; c++) lines += *c == '\n';
        QT_EQ(t, lines, p->n_ops + p->n_segments + 1);
        QT_OK(t, strstr(text, "embed") && strstr(text, "linear") && strstr(text, "draw"));
        QT_OK(t, strstr(text, "W[37 x 64] F16") != NULL);
    }
    qn_free(text);
    close_scene(&s);
}

static void a_dump_that_finds_no_memory_is_null(qt *t)
{
    scene s;
    open_scene(t, &s);
    qn_plan *p = get(t, &s, 2, 1, 0);
    qn_alloc_fail_after(0);
    char *text = qn_plan_dump(p);
    qn_alloc_fail_after(SIZE_MAX);
    QT_OK(t, text == NULL);
    qn_free(text);
    close_scene(&s);
}

QT_MAIN(QT(rows_round_up_to_powers_of_two_below_the_cap), QT(logits_round_up_and_none_stays_none),
        QT(equal_keys_give_the_same_plan), QT(many_keys_live_side_by_side),
        QT(refuses_what_the_caps_do_not_hold),
        QT(a_recorders_error_comes_through_and_is_not_cached), QT(bytes_grow_with_each_plan_only),
        QT(open_refuses_no_device_and_no_recorder),
        QT(open_and_get_survive_every_failed_allocation), QT(the_dump_names_every_op),
        QT(a_dump_that_finds_no_memory_is_null))
