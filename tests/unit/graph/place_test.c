/* SPDX-License-Identifier: Apache-2.0 */
/* place_test.c - the memory plan and the barriers of many random graphs, against checkers that know
 * nothing of lifetimes: one replays who owns each cache line, one recomputes every hazard from the
 * kernels' args. */
#include "base/alloc.h"
#include "lab.h"

#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 60 };

typedef void look_fn(qt *t, const qn_plan *p);

/* Calls `look` on plans of random graphs, fused and not, with both kinds of activations. */
static void many(qt *t, look_fn *look, uint32_t features)
{
    qn_device *d = lab_device(t, 1);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        lab *l = lab_open((qn_act_mode)(i % 3));
        const lab_random r = {.l = l, .seed = i + 1, .n_ops = 10 + i * 2};
        const qn_plan_key key = {.rows = LAB_ROWS,
                                 .logits = i % 5 ? 4 : 0,
                                 .features = features | (i % 3 ? 0u : QN_PLAN_NO_FUSE) |
                                             (i % 4 ? 0u : QN_PLAN_KEEP_LOGITS),
                                 .taps = i % 7};
        qn_plan *p = lab_plan(t, l, d, lab_record, &r, &key);
        if (p) look(t, p);
        qn_plan_free(p);
        lab_close(l);
    }
    qn_device_close(d);
}

static size_t lines(const qn_place *pl, size_t i) { return (pl->offset + i) / 64; }

/* Lets every op stamp the lines of its results, after its inputs were seen to be whole. */
static void every_input_is_whole(qt *t, const qn_plan *p)
{
    uint32_t *owner = calloc(p->slab_bytes / 64 + 1, sizeof *owner);
    bool ok = owner != NULL;
    for (uint32_t i = 0; ok && i < p->n_ops; i++) {
        const qn_node *n = &p->nodes[i];
        for (int k = 0; k < QN_NODE_INS; k++) {
            const qn_place *pl = &p->places[n->in[k]];
            for (size_t b = 0; n->in[k] && b < pl->bytes; b += 64)
                ok = ok && owner[lines(pl, b)] == n->in[k];
        }
        for (int k = 0; k < QN_NODE_OUTS; k++) {
            const qn_place *pl = &p->places[n->out[k]];
            ok = ok && pl->offset % 64 == 0 && pl->offset + pl->bytes <= p->slab_bytes;
            for (size_t b = 0; ok && n->out[k] && b < pl->bytes; b += 64)
                owner[lines(pl, b)] = n->out[k];
        }
        QT_OKF(t, ok, "op %u of %u reads what another op has overwritten", i, p->n_ops);
    }
    for (uint32_t v = 1; ok && v < p->n_values; v++) /* what is kept is whole at the end */
        for (size_t b = 0; p->places[v].exported && p->places[v].used && b < p->places[v].bytes;
             b += 64)
            ok = ok && owner[lines(&p->places[v], b)] == v;
    QT_OK(t, ok);
    free(owner);
}

static void no_live_value_is_overwritten(qt *t) { many(t, every_input_is_whole, 0); }
static void nor_without_sharing(qt *t) { many(t, every_input_is_whole, QN_PLAN_NO_SHARE); }

/* Within one op, a result overlaps an input only where the kernel's contract allows: exactly. */
static void aliases_are_exact(qt *t, const qn_plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        lab_access a[LAB_ACCESSES];
        const uint32_t n = lab_accesses(a, p, i);
        bool ok = true;
        for (uint32_t x = 0; x < n; x++)
            for (uint32_t y = 0; y < n; y++) {
                if (x == y || !a[x].write || a[x].begin >= a[y].end || a[y].begin >= a[x].end)
                    continue;
                ok = ok && !a[y].write && a[x].begin == a[y].begin && a[x].end == a[y].end &&
                     qn_op_get(p->ops[i].kern)->in_place;
            }
        QT_OKF(t, ok, "op %u overlaps itself", i);
        if (p->ops[i].kern == QN_K_linear) {
            const qn_linear_args *l = p->ops[i].args;
            QT_OK(t, l->y != l->x);
        }
        if (p->ops[i].kern == QN_K_add_rmsnorm) {
            const qn_add_rmsnorm_args *l = p->ops[i].args;
            QT_OK(t, l->y != l->a && l->y != l->b && l->y != l->h);
        }
    }
}

static void results_alias_inputs_only_as_contracts_allow(qt *t) { many(t, aliases_are_exact, 0); }

static void kept_values_lie_alone(qt *t, const qn_plan *p)
{
    uint32_t n = 0;
    for (uint32_t v = 1; v < p->n_values; v++) {
        const qn_place *a = &p->places[v];
        if (!a->exported || !a->used) continue;
        n++;
        for (uint32_t w = 1; w < p->n_values; w++) {
            const qn_place *b = &p->places[w];
            if (w == v || !b->used) continue;
            QT_OK(t, a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
        }
    }
    QT_OK(t, n <= 64 + 2);
}

static void kept_values_share_with_nobody(qt *t) { many(t, kept_values_lie_alone, 0); }

static bool first_of_segment(const qn_plan *p, uint32_t op)
{
    for (uint32_t s = 0; s < p->n_segments; s++)
        if (p->segments[s].begin == op) return true;
    return false;
}

static void hazards_are_guarded(qt *t, const qn_plan *p)
{
    uint32_t begin = 0, n_barriers = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        if (first_of_segment(p, i)) begin = i;
        if (p->ops[i].barrier) {
            bool due = false;
            for (uint32_t j = begin; j < i; j++) due = due || lab_conflict(p, j, i);
            QT_OKF(t, due, "the barrier before op %u guards nothing", i);
            begin = i;
            n_barriers++;
        }
        for (uint32_t j = begin; j < i; j++)
            QT_OKF(t, !lab_conflict(p, j, i), "op %u (%s) needs a barrier against op %u (%s)", i,
                   qn_kern_name(p->ops[i].kern), j, qn_kern_name(p->ops[j].kern));
    }
    QT_EQ(t, n_barriers, p->n_barriers);
}

static void barriers_stand_where_needed_and_nowhere_else(qt *t) { many(t, hazards_are_guarded, 0); }
static void barriers_hold_without_sharing_too(qt *t)
{
    many(t, hazards_are_guarded, QN_PLAN_NO_SHARE);
}

static void sharing_saves_memory_and_costs_no_barrier(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    const lab_random r = {.l = l, .seed = 7, .n_ops = 150};
    const qn_plan_key shared = {.rows = 1, .logits = 1},
                      alone = {.rows = 1, .logits = 1, .features = QN_PLAN_NO_SHARE};
    qn_plan *a = lab_plan(t, l, d, lab_record, &r, &shared),
            *b = lab_plan(t, l, d, lab_record, &r, &alone);
    if (a && b) {
        qn_plan_stats sa, sb;
        qn_plan_get_stats(a, &sa);
        qn_plan_get_stats(b, &sb);
        QT_EQ(t, sa.n_barriers, sb.n_barriers);
        QT_EQ(t, sb.slab_bytes, sb.unshared_bytes);
        QT_EQ(t, sa.unshared_bytes, sb.unshared_bytes);
        QT_OKF(t, sa.slab_bytes * 2 < sb.slab_bytes, "%zu of %zu", sa.slab_bytes, sb.slab_bytes);
    }
    qn_plan_free(a);
    qn_plan_free(b);
    qn_device_close(d);
    lab_close(l);
}

static void chain(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    for (int i = 0; i < 6; i++) x = qn_g_scale(g, qn_g_softcap(g, x, 9.0f), 0.5f);
    qn_g_tap(g, x, "end");
}

static void a_chain_of_elementwise_ops_runs_in_place(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 1};
    qn_plan *p = lab_plan(t, l, d, chain, l, &key);
    if (p) {
        const size_t one = (size_t)LAB_ROWS * LAB_MAIN * 4;
        QT_EQ(t, p->n_ops, 13);
        QT_EQ(t, p->n_barriers, 12);
        QT_EQ(t, p->slab_bytes, 2 * one); /* the chain's and the kept one */
        QT_EQ(t, p->unshared_bytes, 13 * one);
    }
    qn_plan_free(p);
    qn_device_close(d);
    lab_close(l);
}

static void branches(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    qn_g_tap(g, qn_g_linear(g, x, &l->w[LAB_MM], NULL), "q");
    qn_g_tap(g, qn_g_linear(g, x, &l->w[LAB_MK], NULL), "k");
    qn_g_tap(g, qn_g_linear(g, x, &l->w[LAB_MK_Q], NULL), "v");
}

static void independent_products_share_a_phase(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 7};
    qn_plan *p = lab_plan(t, l, d, branches, l, &key);
    if (p) {
        QT_EQ(t, p->n_barriers, 1);
        QT_OK(t, p->ops[1].barrier && !p->ops[2].barrier && !p->ops[3].barrier);
    }
    qn_plan_free(p);
    qn_device_close(d);
    lab_close(l);
}

static void two_layers(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    const qn_attention_spec a = {.layer = 0, .n_heads = 4, .scale = 0.25f};
    const qn_attention_spec b = {.layer = 1, .n_heads = 4, .scale = 0.25f};
    (void)key;
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val k = qn_g_linear(g, x, &l->w[LAB_MK], NULL);
    qn_g_kv_write(g, 0, k, k);
    qn_g_tap(g, qn_g_attention(g, x, &b), "other"); /* of the other layer: no wait */
    qn_g_tap(g, qn_g_attention(g, x, &a), "same");
}

static void attention_waits_for_its_own_layer_only(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 3};
    qn_plan *p = lab_plan(t, l, d, two_layers, l, &key);
    if (p && QT_EQ(t, p->n_ops, 5)) {
        QT_EQ(t, p->ops[2].kern, QN_K_kv_write);
        QT_OK(t, p->ops[2].barrier && !p->ops[3].barrier && p->ops[4].barrier);
    }
    qn_plan_free(p);
    qn_device_close(d);
    lab_close(l);
}

static void layers_that_share_a_cache_wait_for_each_other(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    l->kv[1] = l->kv[0];
    const qn_plan_key key = {.rows = LAB_ROWS, .taps = 3};
    qn_plan *p = lab_plan(t, l, d, two_layers, l, &key);
    if (p && QT_EQ(t, p->n_ops, 5)) QT_OK(t, p->ops[3].barrier && !p->ops[4].barrier);
    qn_plan_free(p);
    qn_device_close(d);
    lab_close(l);
}

static void draws_first(const void *model, qn_graph *g, const qn_plan_key *key)
{
    const lab *l = model;
    (void)key;
    const qn_val x = qn_g_logit_rows(g, qn_g_embed(g, &l->w[LAB_TABLE], 1.0f));
    qn_g_draw(g, qn_g_linear(g, x, &l->w[LAB_HEAD], NULL));
    qn_g_tap(g, qn_g_embed(g, &l->w[LAB_TABLE], 3.0f), "next");
}

static void an_embedding_waits_for_a_draw_into_registers(qt *t)
{
    qn_device *d = lab_device(t, 1);
    for (int with = 0; with < 2; with++) {
        lab *l = lab_open(QN_ACTIVATIONS_F32);
        if (!with) l->opt.registers = NULL;
        const qn_plan_key key = {.rows = LAB_ROWS, .logits = 1, .taps = 1};
        qn_plan *p = lab_plan(t, l, d, draws_first, l, &key);
        if (p && QT_EQ(t, p->n_ops, 5)) {
            QT_EQ(t, p->ops[4].kern, QN_K_embed);
            QT_EQ(t, p->ops[4].barrier, with);
        }
        qn_plan_free(p);
        lab_close(l);
    }
    qn_device_close(d);
}

QT_MAIN(QT(no_live_value_is_overwritten), QT(nor_without_sharing),
        QT(results_alias_inputs_only_as_contracts_allow), QT(kept_values_share_with_nobody),
        QT(barriers_stand_where_needed_and_nowhere_else), QT(barriers_hold_without_sharing_too),
        QT(sharing_saves_memory_and_costs_no_barrier), QT(a_chain_of_elementwise_ops_runs_in_place),
        QT(independent_products_share_a_phase), QT(attention_waits_for_its_own_layer_only),
        QT(layers_that_share_a_cache_wait_for_each_other),
        QT(an_embedding_waits_for_a_draw_into_registers))
