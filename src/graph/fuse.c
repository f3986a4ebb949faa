/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - the passes over the node list. Each rewrite leaves every kept value with the same bits: the
 * fused kernels' contracts say so (kern/args.h), and the tests compare with QN_PLAN_NO_FUSE. What is
 * fused depends on the graph and on what is exported, never on row counts. No rewrite crosses a
 * segment border, since a hook may rely on what was done before it. */
#include "graph/plan_int.h"

enum { GONE = QN_K_COUNT }; /* kern of a node that a pass has removed */

static void compact(qn_plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if ((uint32_t)p->nodes[i].kern != GONE) p->nodes[n++] = p->nodes[i];
    p->n_ops = n;
}

/* Keeps cache writes, what is exported, and what these need. */
void qn_plan_prune(qn_plan *p, bool *live)
{
    for (uint32_t v = 0; v < p->n_values; v++) live[v] = p->places[v].exported;
    for (uint32_t i = p->n_ops; i-- > 0;) {
        qn_node *n = &p->nodes[i];
        if (n->kern != QN_K_kv_write && !live[n->out[0]]) {
            n->kern = (qn_kern_id)GONE;
            continue;
        }
        for (int k = 0; k < QN_NODE_INS; k++)
            if (n->in[k]) live[n->in[k]] = true;
    }
    compact(p);
}

static bool is_linear(const qn_node *n) { return qn_graph_is_product(n->kern); }

/* The node that makes `v` if only node `at` reads it and both lie in one segment. */
static qn_node *sole_maker(const qn_plan *p, const uint32_t *uses, const uint32_t *maker,
                           uint32_t v, const qn_node *at)
{
    if (uses[v] != 1 || p->places[v].exported || maker[v] == UINT32_MAX) return NULL;
    qn_node *m = &p->nodes[maker[v]];
    return m->segment == at->segment ? m : NULL;
}

/* add(a, linear(x)) -> linear(x) with a as `add`: sum, bias, add, each rounded once, in both forms;
 * f32 addition commutes. Takes the later product when both operands are one. */
static bool fuse_linear_add(qn_plan *p, const uint32_t *uses, const uint32_t *maker, qn_node *add)
{
    qn_node *best = NULL;
    uint32_t other = 0;
    for (int k = 0; k < 2; k++) {
        qn_node *m = sole_maker(p, uses, maker, add->in[k], add);
        if (!m || !is_linear(m) || m->in[1] || m < best) continue;
        best = m;
        other = add->in[1 - k];
    }
    if (!best) return false;
    const uint32_t out = add->out[0];
    *add = *best; /* at the add's place: both operands are there */
    add->in[1] = other;
    add->out[0] = out;
    best->kern = (qn_kern_id)GONE;
    return true;
}

/* rmsnorm(add(a, b)) -> add_rmsnorm, which keeps the sum as its second result. */
static bool fuse_add_norm(qn_plan *p, const uint32_t *maker, qn_node *norm)
{
    const uint32_t sum = norm->in[0];
    if (norm->u.norm.sub != 1 || maker[sum] == UINT32_MAX) return false;
    qn_node *add = &p->nodes[maker[sum]];
    if (add->kern != QN_K_add || add->segment != norm->segment) return false;
    add->kern = QN_K_add_rmsnorm;
    add->u = norm->u;
    add->out[0] = norm->out[0];
    add->out[1] = sum;
    norm->kern = (qn_kern_id)GONE;
    return true;
}

static void count(const qn_plan *p, uint32_t *uses, uint32_t *maker)
{
    for (uint32_t v = 0; v < p->n_values; v++) {
        uses[v] = 0;
        maker[v] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const qn_node *n = &p->nodes[i];
        for (int k = 0; k < QN_NODE_INS; k++) uses[n->in[k]]++;
        for (int k = 0; k < QN_NODE_OUTS; k++) maker[n->out[k]] = i;
    }
    maker[0] = UINT32_MAX;
}

void qn_plan_fuse(qn_plan *p, uint32_t *uses, uint32_t *maker)
{
    count(p, uses, maker);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->nodes[i].kern == QN_K_add && fuse_linear_add(p, uses, maker, &p->nodes[i]))
            p->n_fused++;
    compact(p);
    count(p, uses, maker);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->nodes[i].kern == QN_K_rmsnorm && fuse_add_norm(p, maker, &p->nodes[i])) p->n_fused++;
    compact(p);
}
