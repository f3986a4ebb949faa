/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_test.c - which ops are fused or left out, and which must not be. That the bits stay the same is
 * random_test.c's to show. */
#include "lab.h"

#include <string.h>

static uint32_t count(const qn_plan *p, qn_kern_id kern)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) n += p->ops[i].kern == kern;
    return n;
}

/* Builds the plan of `record` and looks at it. */
static void look(qt *t, qn_record_fn *record, const qn_plan_key *key,
                 void (*at)(qt *t, const qn_plan *p))
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    qn_plan *p = lab_plan(t, l, d, record, l, key);
    if (p) at(t, p);
    qn_plan_free(p);
    qn_device_close(d);
    lab_close(l);
}

static const qn_plan_key plain = {.rows = 4, .logits = 1, .features = QN_PLAN_KEEP_LOGITS};

static void finish(qn_graph *g, const lab *l, qn_val x)
{
    const qn_val logits = qn_g_linear(g, qn_g_logit_rows(g, x), &l->w[LAB_HEAD], NULL);
    qn_g_logits(g, logits);
    qn_g_draw(g, logits);
}

static void residual(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    finish(g, l, qn_g_add(g, x, qn_g_linear(g, x, &l->w[LAB_MM], l->bias)));
}

static void residual_became_one(qt *t, const qn_plan *p)
{
    QT_EQ(t, count(p, QN_K_add), 0);
    QT_EQ(t, count(p, QN_K_linear), 2);
    QT_EQ(t, p->n_fused, 1);
    const qn_linear_args *a = p->ops[1].args;
    const qn_embed_args *e = p->ops[0].args;
    QT_OK(t, a->add == e->y && a->x == e->y && a->bias != NULL);
    QT_OK(t, a->y != a->x); /* x is also the operand of the product: no in-place */
}

static void a_product_takes_the_add_behind_it(qt *t)
{
    look(t, residual, &plain, residual_became_one);
}

static void no_fuse_was_heeded(qt *t, const qn_plan *p)
{
    QT_EQ(t, count(p, QN_K_add), 1);
    QT_EQ(t, p->n_fused, 0);
}

static void no_fuse_keeps_every_op(qt *t)
{
    qn_plan_key key = plain;
    key.features |= QN_PLAN_NO_FUSE;
    look(t, residual, &key, no_fuse_was_heeded);
}

static void residual_in_use(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_linear(g, x, &l->w[LAB_MM], NULL);
    finish(g, l, qn_g_add(g, qn_g_add(g, x, y), qn_g_scale(g, y, 0.5f)));
}

static void nothing_was_fused(qt *t, const qn_plan *p)
{
    QT_EQ(t, p->n_fused, 0);
    QT_OK(t, count(p, QN_K_add) > 0);
}

static void a_product_read_twice_is_not_fused(qt *t)
{
    look(t, residual_in_use, &plain, nothing_was_fused);
}

static void residual_tapped(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_linear(g, x, &l->w[LAB_MM], NULL);
    qn_g_tap(g, y, "branch");
    finish(g, l, qn_g_add(g, x, y));
}

static void a_tapped_product_is_not_fused(qt *t)
{
    qn_plan_key key = plain;
    key.taps = 1;
    look(t, residual_tapped, &key, nothing_was_fused);
}

static void one_was_fused(qt *t, const qn_plan *p) { QT_EQ(t, p->n_fused, 1); }

static void a_tap_not_asked_for_hinders_nothing(qt *t)
{
    look(t, residual_tapped, &plain, one_was_fused);
}

static void residual_over_border(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_linear(g, x, &l->w[LAB_MM], NULL);
    qn_g_segment(g, NULL, NULL);
    const qn_val h = qn_g_add(g, x, y);
    qn_g_segment(g, NULL, NULL);
    finish(g, l, qn_g_rmsnorm(g, h, NULL, 1, 1e-5f));
}

static void no_fusion_crosses_a_segment_border(qt *t)
{
    look(t, residual_over_border, &plain, nothing_was_fused);
}

static void two_products(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_linear(g, x, &l->w[LAB_MM], NULL);
    finish(g, l, qn_g_add(g, qn_g_linear(g, x, &l->w[LAB_MM_Q], NULL), y));
}

static void the_later_product_took_it(qt *t, const qn_plan *p)
{
    QT_EQ(t, p->n_fused, 1);
    QT_EQ(t, count(p, QN_K_linear), 3);
    const qn_linear_args *first = p->ops[1].args, *second = p->ops[2].args;
    QT_OK(t, first->add == NULL && second->add == first->y);
    QT_OK(t, second->y == first->y); /* its last reader: in place */
    QT_EQ(t, second->w->fmt, QN_FMT_Q8_0);
}

static void of_two_products_the_later_takes_the_add(qt *t)
{
    look(t, two_products, &plain, the_later_product_took_it);
}

static void norms(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val h = qn_g_add(g, x, qn_g_scale(g, x, 0.5f));
    const qn_val n = qn_g_rmsnorm(g, h, l->gain, 1, 1e-5f);
    finish(g, l, qn_g_act_mul(g, h, n, QN_ACT_SILU));
}

static void norm_took_the_add(qt *t, const qn_plan *p)
{
    QT_EQ(t, count(p, QN_K_add_rmsnorm), 1);
    QT_EQ(t, count(p, QN_K_add) + count(p, QN_K_rmsnorm), 0);
    QT_EQ(t, p->n_fused, 1);
}

static void an_add_takes_the_norm_behind_it_and_keeps_the_sum(qt *t)
{
    look(t, norms, &plain, norm_took_the_add);
}

static void head_norms(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val h = qn_g_add(g, x, qn_g_scale(g, x, 0.5f));
    finish(g, l, qn_g_rmsnorm(g, h, l->gain, 4, 1e-5f));
}

static void norms_of_heads_are_not_fused(qt *t) { look(t, head_norms, &plain, nothing_was_fused); }

/* -- what is left out --------------------------------------------------------------------------- */

static void layer(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val k = qn_g_linear(g, x, &l->w[LAB_MK], NULL);
    qn_g_kv_write(g, 0, k, k);
    const qn_attention_spec a = {.layer = 0, .n_heads = 4, .scale = 0.25f};
    const qn_val y = qn_g_attention(g, x, &a);
    qn_g_tap(g, qn_g_scale(g, y, 3.0f), "extra");
    finish(g, l, y);
}

static void only_the_cache_was_written(qt *t, const qn_plan *p)
{
    QT_EQ(t, p->n_ops, 3);
    QT_EQ(t, p->ops[2].kern, QN_K_kv_write);
    QT_OK(t, qn_plan_logits(p, NULL) == NULL && qn_plan_drawn(p) == NULL);
}

static void without_logits_only_the_cache_is_written(qt *t)
{
    const qn_plan_key key = {.rows = 4, .logits = 0};
    look(t, layer, &key, only_the_cache_was_written);
}

static void draw_was_left_out(qt *t, const qn_plan *p)
{
    size_t ld = 0;
    QT_EQ(t, count(p, QN_K_draw), 0);
    QT_OK(t, qn_plan_drawn(p) == NULL);
    QT_OK(t, qn_plan_logits(p, &ld) != NULL);
    QT_OK(t, ld >= LAB_VOCAB);
}

static void no_draw_keeps_logits_and_leaves_out_the_draw(qt *t)
{
    const qn_plan_key key = {.rows = 4, .logits = 1, .features = QN_PLAN_NO_DRAW};
    look(t, layer, &key, draw_was_left_out);
}

static void drawn_only(qt *t, const qn_plan *p)
{
    QT_EQ(t, count(p, QN_K_draw), 1);
    QT_OK(t, qn_plan_drawn(p) != NULL);
    QT_OK(t, qn_plan_logits(p, NULL) == NULL);
    QT_EQ(t, count(p, QN_K_scale), 0);
    QT_OK(t, qn_plan_tap(p, "extra", NULL, NULL) == NULL);
}

static void logits_and_taps_are_kept_only_when_asked_for(qt *t)
{
    const qn_plan_key key = {.rows = 4, .logits = 1};
    look(t, layer, &key, drawn_only);
}

static void tap_is_there(qt *t, const qn_plan *p)
{
    uint32_t cols = 0;
    size_t ld = 0;
    QT_EQ(t, count(p, QN_K_scale), 1);
    QT_OK(t, qn_plan_tap(p, "extra", &cols, &ld) != NULL);
    QT_EQ(t, cols, LAB_MAIN);
    QT_EQ(t, ld, LAB_MAIN);
    QT_OK(t, qn_plan_tap(p, "other", NULL, NULL) == NULL);
}

static void a_tap_asked_for_is_computed(qt *t)
{
    const qn_plan_key key = {.rows = 4, .logits = 0, .taps = 1};
    look(t, layer, &key, tap_is_there);
}

QT_MAIN(QT(a_product_takes_the_add_behind_it), QT(no_fuse_keeps_every_op),
        QT(a_product_read_twice_is_not_fused), QT(a_tapped_product_is_not_fused),
        QT(a_tap_not_asked_for_hinders_nothing), QT(no_fusion_crosses_a_segment_border),
        QT(of_two_products_the_later_takes_the_add),
        QT(an_add_takes_the_norm_behind_it_and_keeps_the_sum), QT(norms_of_heads_are_not_fused),
        QT(without_logits_only_the_cache_is_written),
        QT(no_draw_keeps_logits_and_leaves_out_the_draw),
        QT(logits_and_taps_are_kept_only_when_asked_for), QT(a_tap_asked_for_is_computed))
