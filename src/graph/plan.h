/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a graph made executable once: fused, placed in memory, cut into segments, with barriers
 * just where a later op reads another lane's work. Cached per key and run with nothing but a step.
 *
 *     graph ─► fusion pass ─► liveness, offsets in one slab ─► barriers ─► segments ─► plan
 *     step  ─► qn_plan_exec: one parallel region a segment, lanes claim tiles by counter
 *
 * Ops write state provisionally: nothing of a step is visible to others until the caller commits it
 * in the cache after QN_OK. A cancelled or failed step is simply not committed.
 *
 * Owner:  qn_plans (the cache) owns plans; a plan owns its slab and its step block.
 * Thread: the engine thread.
 */
#ifndef QN_GRAPH_PLAN_H
#define QN_GRAPH_PLAN_H
#include "graph/op.h"

typedef struct qn_plan qn_plan;

typedef struct qn_plan_key { /* two steps with equal keys use the same plan */
    uint32_t rows;           /* row bucket: capacity for rows */
    uint32_t logits;   /* logit-row bucket; 0: a forward without logits (all but the last chunk) */
    uint32_t features; /* QN_PLAN_* */
    uint64_t taps;     /* bit i: export tap i */
} qn_plan_key;

enum {
    QN_PLAN_NO_FUSE = 1,     /* keep every primitive op: training, tests of the fusion pass */
    QN_PLAN_NO_DRAW = 2,     /* logits only */
    QN_PLAN_KEEP_LOGITS = 4, /* readable after the step; NO_DRAW implies it */
    QN_PLAN_NO_SHARE = 8,    /* every value has memory of its own: tests of the memory plan */
    QN_PLAN_ADJUST = 16      /* the step has room for edits of logits */
};

/* The family's description: records its forward for `key` into `g`. */
typedef void qn_record_fn(const void *model, qn_graph *g, const qn_plan_key *key);

/* Builds one plan. Capacities are the graph's; ops that nothing kept depends on are left out: all
 * logit rows when key->logits is 0, the draw under NO_DRAW, what leads to a tap not asked for.
 * Errors: what the recorder got wrong (INVAL), an op without a slot on the device (UNSUPPORTED),
 * NOMEM. The plan is owned (qn_plan_free). */
qn_code qn_plan_build(qn_plan **out, qn_device *dev, const qn_graph *g, const qn_plan_key *key,
                      qn_err *err);
void qn_plan_free(qn_plan *p); /* NULL is fine */

/* The step block that the plan reads; fill it (capacities are the graph's), then exec. Borrowed. */
qn_step *qn_plan_step(qn_plan *p);
/* Runs the step. CANCELLED when the pool's cancel word was set; the error of a hook. */
qn_code qn_plan_exec(qn_plan *p, qn_err *err);

/* After exec, borrowed until the next: logits [n_logits, vocab] with *ld elements a row, draws
 * [n_logits], a tap [rows, *cols]. NULL where the plan does not keep them. */
const float *qn_plan_logits(const qn_plan *p, size_t *ld);
const qn_drawn *qn_plan_drawn(const qn_plan *p);
const float *qn_plan_tap(const qn_plan *p, const char *name, uint32_t *cols, size_t *ld);

typedef struct qn_plan_stats { /* for tests, `inspect` and tuning */
    uint32_t n_ops, n_fused, n_segments, n_barriers;
    size_t slab_bytes, unshared_bytes; /* with and without buffers sharing memory */
} qn_plan_stats;
void qn_plan_get_stats(const qn_plan *p, qn_plan_stats *out);
/* One line an op: kernel, shapes, offsets, barrier; owned text (qn_free) or NULL. */
QN_NODISCARD char *qn_plan_dump(const qn_plan *p);

/* The cache of plans of one model on one device. */
typedef struct qn_plans qn_plans;
typedef struct qn_plans_options {
    qn_device *dev;
    qn_graph_options graph; /* caps.rows and caps.logits are set from the key's buckets, caps.edits
                               counts under ADJUST only */
    qn_record_fn *record;
    const void *model;
} qn_plans_options;
qn_code qn_plans_open(qn_plans **out, const qn_plans_options *opt, qn_err *err);
void qn_plans_close(qn_plans *c);
/* The plan of a key, built on first use; borrowed. Rows and logits round up to a bucket
 * (1, 2, 4, 8 ... powers of two, ceiling the graph's caps). */
qn_code qn_plans_get(qn_plan **out, qn_plans *c, const qn_plan_key *key, qn_err *err);
size_t qn_plans_bytes(const qn_plans *c);

#endif
