/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - all threading of the CPU path. One parallel region a segment: lanes walk the same ops,
 * claim tiles by counter and meet only where place.c found that a later op reads another tile. The
 * order of sums never depends on who computes a tile (rule R1).
 *
 * Tiles: a lane should get about four tiles of an op, so that a preempted lane delays the others by
 * little, but no tile smaller than what a claim costs, so that small ops stay on one lane. */
#include "base/alloc.h"
#include "graph/plan_int.h"

enum { TILES_A_LANE = 4, OUTPUTS_A_STEP = 16 /* products pack outputs in such strips */ };

static uint32_t at_most(uint64_t n, uint32_t limit) { return n < limit ? (uint32_t)n : limit; }

static uint32_t grain_of(const qn_plan_op *op, uint32_t units, unsigned lanes)
{
    const qn_op_info *info = qn_op_get(op->kern);
    const uint64_t work = (uint64_t)op->work * (op->per_row ? *op->n : 1);
    const uint32_t least = work ? at_most((info->work + work - 1) / work, units) : 1;
    uint32_t grain = units / (lanes * TILES_A_LANE) + 1;
    if (grain > info->grain) grain = info->grain;
    if (grain < least) grain = least;
    if (op->per_row) grain = (grain + OUTPUTS_A_STEP - 1) / OUTPUTS_A_STEP * OUTPUTS_A_STEP;
    return grain;
}

/* Units and grains depend on the two row counts alone: decode computes them once. */
static void load(qn_plan *p)
{
    const qn_step *s = p->step;
    if (!p->loaded || p->loaded_rows != s->n_rows || p->loaded_logits != s->n_logits) {
        const unsigned lanes = qn_pool_lanes(p->dev->pool);
        for (uint32_t i = 0; i < p->n_ops; i++) {
            const uint32_t units = qn_kern_units(p->ops[i].kern, p->ops[i].args);
            p->loads[i] = (qn_plan_load){units, grain_of(&p->ops[i], units, lanes)};
        }
        p->loaded_rows = s->n_rows;
        p->loaded_logits = s->n_logits;
        p->loaded = true;
    }
    for (uint32_t i = 0; i < p->n_ops; i++) /* no lane runs: the region's start publishes it */
        atomic_store_explicit(&p->next[i], 0, memory_order_relaxed);
}

typedef struct work {
    const qn_plan *plan;
    const qn_plan_segment *segment;
} work;

static void walk_ops(const qn_plan *p, const qn_plan_segment *seg, qn_lane *lane)
{
    void *scratch = qn_lane_scratch(lane);
    const bool alone = qn_lane_count(lane) == 1;
    for (uint32_t i = seg->begin; i < seg->end; i++) {
        const qn_plan_op *op = &p->ops[i];
        const qn_plan_load ld = p->loads[i];
        if (op->barrier) {
            qn_lane_barrier(lane);
            if (qn_lane_cancelled(lane)) return; /* all lanes see the same answer */
        }
        if (ld.units == 0) continue;
        if (alone) {
            qn_kern_call(&p->kern, op->kern, op->args, (qn_span){0, ld.units}, scratch);
            continue;
        }
        qn_span tile;
        while (qn_lane_claim(lane, &p->next[i], ld.units, ld.grain, &tile))
            qn_kern_call(&p->kern, op->kern, op->args, tile, scratch);
    }
}

static void walk(void *ctx, qn_lane *lane)
{
    const work *w = ctx;
    qn_alloc_forbid(true); /* a step allocates nothing, on no lane */
    walk_ops(w->plan, w->segment, lane);
    qn_alloc_forbid(false);
}

static qn_code check(const qn_plan *p, qn_err *err)
{
    const qn_step *s = p->step;
    if (s->n_rows > p->opt.caps.rows)
        return qn_fail(err, QN_E_INVAL, "step: %u rows, expected at most %u", s->n_rows,
                       p->opt.caps.rows);
    if (s->n_logits > p->opt.caps.logits)
        return qn_fail(err, QN_E_INVAL, "step: %u logit rows, expected at most %u", s->n_logits,
                       p->opt.caps.logits);
    if (s->n_edits > p->opt.caps.edits)
        return qn_fail(err, QN_E_INVAL, "step: %u edits, expected at most %u", s->n_edits,
                       p->opt.caps.edits);
    if (s->n_seqs > p->opt.caps.seqs)
        return qn_fail(err, QN_E_INVAL, "step: %u sequences, expected at most %u", s->n_seqs,
                       p->opt.caps.seqs);
    return QN_OK;
}

qn_code qn_plan_exec(qn_plan *p, qn_err *err)
{
    qn_pool *pool = p->dev->pool;
    bool ran = false;
    QN_TRY(check(p, err));
    load(p);
    for (uint32_t s = 0; s < p->n_segments; s++) {
        const qn_plan_segment *seg = &p->segments[s];
        work w = {p, seg};
        if (seg->before.hook) QN_TRY(seg->before.hook(seg->before.ctx, p->step, err));
        /* a run clears the word: what came while the hook ran is seen here */
        if (ran && qn_pool_cancelled(pool)) return qn_fail(err, QN_E_CANCELLED, "step cancelled");
        if (seg->begin == seg->end) continue;
        qn_pool_run(pool, walk, &w);
        ran = true;
        if (qn_pool_cancelled(pool)) return qn_fail(err, QN_E_CANCELLED, "step cancelled");
    }
    return QN_OK;
}
