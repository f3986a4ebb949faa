/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - building a plan from a graph, and what may be asked of it. The plan copies the graph's
 * lists into an arena of its own and rewrites them there. */
#include "base/alloc.h"
#include "graph/plan_int.h"

#include <string.h>

enum { ARENA_LIMIT = 1 << 30, SELECTABLE_TAPS = 64 };

static void *copy(qn_plan *p, const void *from, size_t n, size_t size)
{
    void *to = qn_arena_push_zero(&p->mem, n + 1, size, 64);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

static qn_code take_graph(qn_plan *p, const qn_graph *g, qn_err *err)
{
    p->n_values = g->n_values ? g->n_values : 1;
    p->n_ops = g->n_nodes;
    p->n_taps = g->n_taps;
    p->n_segments = g->n_borders + 1;
    p->nodes = copy(p, g->nodes, g->n_nodes, sizeof *g->nodes);
    p->values = copy(p, g->values, g->n_values, sizeof *g->values);
    p->taps = copy(p, g->taps, g->n_taps, sizeof *g->taps);
    p->places = QN_ARENA_NEW(&p->mem, qn_place, p->n_values);
    p->segments = QN_ARENA_NEW(&p->mem, qn_plan_segment, p->n_segments);
    if (!p->nodes || !p->values || !p->taps || !p->places || !p->segments)
        return qn_fail(err, QN_E_NOMEM, "plan: %u ops", g->n_nodes);
    for (uint32_t i = 1; i < p->n_segments; i++) p->segments[i].before = g->borders[i - 1];
    return QN_OK;
}

/* Which values outlive the step. */
static void mark_exports(qn_plan *p, const qn_graph *g)
{
    const uint32_t f = p->key.features;
    if (p->key.logits && (f & (QN_PLAN_KEEP_LOGITS | QN_PLAN_NO_DRAW))) p->logits = g->logits;
    if (p->key.logits && !(f & QN_PLAN_NO_DRAW)) p->drawn = g->drawn;
    if (p->logits) p->places[p->logits].exported = true;
    if (p->drawn) p->places[p->drawn].exported = true;
    for (uint32_t i = 0; i < p->n_taps && i < SELECTABLE_TAPS; i++)
        if (p->key.taps >> i & 1) p->places[p->taps[i].value].exported = true;
}

static qn_code run_passes(qn_plan *p, qn_err *err)
{
    bool *live = QN_ARENA_NEW(&p->mem, bool, p->n_values);
    uint32_t *uses = QN_ARENA_NEW(&p->mem, uint32_t, p->n_values),
             *maker = QN_ARENA_NEW(&p->mem, uint32_t, p->n_values);
    if (!live || !uses || !maker) return qn_fail(err, QN_E_NOMEM, "plan: %u values", p->n_values);
    qn_plan_prune(p, live);
    if (!(p->key.features & QN_PLAN_NO_FUSE)) qn_plan_fuse(p, uses, maker);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (!qn_op_get(p->nodes[i].kern)->on[p->dev->kind])
            return qn_fail(err, QN_E_UNSUPPORTED, "plan: op %u, %s, cannot run on %s", i,
                           qn_kern_name(p->nodes[i].kern), p->dev->ops->name);
    p->ops = QN_ARENA_NEW(&p->mem, qn_plan_op, (size_t)p->n_ops + 1);
    p->loads = QN_ARENA_NEW(&p->mem, qn_plan_load, (size_t)p->n_ops + 1);
    p->next = qn_arena_push_zero(&p->mem, (size_t)p->n_ops + 1, sizeof *p->next, 64);
    if (!p->ops || !p->loads || !p->next) return qn_fail(err, QN_E_NOMEM, "plan: %u ops", p->n_ops);
    return qn_plan_place(p, err);
}

static qn_code take_memory(qn_plan *p, qn_err *err)
{
    if (p->slab_bytes == 0) p->slab_bytes = 64; /* a graph without values still has a plan */
    p->slab = p->dev->ops->alloc(p->dev, p->slab_bytes);
    if (!p->slab) return qn_fail(err, QN_E_NOMEM, "plan: %zu bytes of activations", p->slab_bytes);
    p->step_bytes = qn_step_bytes(&p->opt.caps);
    void *step = p->dev->ops->alloc(p->dev, p->step_bytes);
    if (!step) return qn_fail(err, QN_E_NOMEM, "plan: %zu bytes of step", p->step_bytes);
    p->step = qn_step_init(step, &p->opt.caps);
    return QN_OK;
}

/* Segments take their ops; a border behind the last op leaves empty ones. */
static void cut_segments(qn_plan *p)
{
    uint32_t at = 0;
    for (uint32_t s = 0; s < p->n_segments; s++) {
        p->segments[s].begin = at;
        while (at < p->n_ops && p->nodes[at].segment == s) at++;
        p->segments[s].end = at;
    }
}

qn_code qn_plan_build(qn_plan **out, qn_device *dev, const qn_graph *g, const qn_plan_key *key,
                      qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    if (g->err.code != QN_OK) return qn_fail(err, g->err.code, "%s", g->err.msg);
    if (!dev->pool)
        return qn_fail(err, QN_E_UNSUPPORTED, "plan: %s has no executor", dev->ops->name);
    qn_plan *p = qn_zalloc(sizeof *p);
    if (!p) return qn_fail(err, QN_E_NOMEM, "plan");
    qn_arena_init(&p->mem, ARENA_LIMIT);
    p->dev = dev;
    p->opt = g->opt;
    p->key = *key;
    p->kern = qn_kern_select(dev->isa);
    QN_TRY_OUT(take_graph(p, g, err));
    mark_exports(p, g);
    QN_TRY_OUT(run_passes(p, err));
    cut_segments(p);
    QN_TRY_OUT(take_memory(p, err));
    QN_TRY_OUT(qn_plan_bind(p, err));
    *out = p;
    p = NULL;
out:
    qn_plan_free(p);
    return rc;
}

void qn_plan_free(qn_plan *p)
{
    if (!p) return;
    if (p->slab) p->dev->ops->free(p->dev, p->slab, p->slab_bytes);
    if (p->step) p->dev->ops->free(p->dev, p->step, p->step_bytes);
    qn_arena_fini(&p->mem);
    qn_free(p);
}

qn_step *qn_plan_step(qn_plan *p) { return p->step; }

static const void *kept(const qn_plan *p, uint32_t v)
{
    return v && p->places[v].used ? p->slab + p->places[v].offset : NULL;
}

const float *qn_plan_logits(const qn_plan *p, size_t *ld)
{
    if (ld) *ld = p->logits ? p->places[p->logits].ld : 0;
    return kept(p, p->logits);
}

const qn_drawn *qn_plan_drawn(const qn_plan *p) { return kept(p, p->drawn); }

const float *qn_plan_tap(const qn_plan *p, const char *name, uint32_t *cols, size_t *ld)
{
    for (uint32_t i = 0; i < p->n_taps && i < SELECTABLE_TAPS; i++) {
        const uint32_t v = p->taps[i].value;
        if (!(p->key.taps >> i & 1) || strcmp(p->taps[i].name, name) != 0) continue;
        if (cols) *cols = p->values[v].cols;
        if (ld) *ld = p->places[v].ld;
        return kept(p, v);
    }
    return NULL;
}

void qn_plan_get_stats(const qn_plan *p, qn_plan_stats *out)
{
    *out = (qn_plan_stats){.n_ops = p->n_ops,
                           .n_fused = p->n_fused,
                           .n_segments = p->n_segments,
                           .n_barriers = p->n_barriers,
                           .slab_bytes = p->slab_bytes,
                           .unshared_bytes = p->unshared_bytes};
}
