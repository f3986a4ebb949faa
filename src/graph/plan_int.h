/* SPDX-License-Identifier: Apache-2.0 */
/* plan_int.h - a plan while it is built and run. The passes run in this order, each in one file:
 *
 *     fuse.c   drop what nothing needs; fuse           nodes -> fewer nodes
 *     place.c  phases, in-place choices, offsets       values -> places, ops -> barrier bits
 *     bind.c   kernel args that point into slab, step, weights and KV
 *     exec.c   run
 *
 * A phase is a run of ops without a barrier inside: lanes may be anywhere in it at once. Lifetimes
 * are counted in phases, not ops, so that sharing memory never asks for another barrier.
 *
 * Owner:  the plan. Thread: the engine thread; lanes read it inside a region.
 */
#ifndef QN_GRAPH_PLAN_INT_H
#define QN_GRAPH_PLAN_INT_H
#include "graph/graph_int.h"
#include "graph/plan.h"

typedef struct qn_place { /* where a value lies in the slab */
    size_t offset, bytes;
    size_t ld;            /* elements from row to row; ROWS_INT: bytes */
    uint32_t root;        /* the value whose memory it took in place, or itself */
    uint32_t first, last; /* phases in which it is written and last read; of a root: of all in it */
    bool used, exported;
} qn_place;

typedef struct qn_plan_op {
    const void *args;
    qn_kern_id kern;
    bool barrier;  /* lanes meet before it */
    bool per_row;  /* a unit's work grows with the rows */
    uint32_t work; /* elements or products of a unit (of a row of it) */
    const uint32_t *n;
} qn_plan_op;

typedef struct qn_plan_load { /* of an op in the present step */
    uint32_t units, grain;
} qn_plan_load;

typedef struct qn_plan_segment {
    uint32_t begin, end; /* ops */
    qn_border before;    /* hook that runs first; none before segment 0 */
} qn_plan_segment;

struct qn_plan {
    qn_device *dev;
    qn_arena mem; /* all arrays below */
    qn_graph_options opt;
    qn_plan_key key;
    qn_kern_table kern;
    qn_node *nodes; /* [n_ops], after fusion */
    qn_plan_op *ops;
    qn_plan_load *loads;
    atomic_uint *next; /* [n_ops] first unclaimed unit; dense: lanes work on neighbours anyway */
    qn_value *values;  /* [n_values] */
    qn_place *places;
    qn_plan_segment *segments;
    qn_tap *taps;
    uint32_t n_ops, n_values, n_segments, n_taps, n_fused, n_barriers;
    uint32_t logits, drawn; /* values kept, or 0 */
    uint32_t loaded_rows, loaded_logits;
    bool loaded; /* loads hold for the two counts above */
    uint8_t *slab;
    size_t slab_bytes, unshared_bytes;
    qn_step *step;
    size_t step_bytes;
};

void qn_plan_prune(qn_plan *p, bool *live);                     /* live: [n_values], scratch */
void qn_plan_fuse(qn_plan *p, uint32_t *uses, uint32_t *maker); /* [n_values] each, scratch */
/* Places, offsets, barriers, slab size. NOMEM, LIMIT when sizes overflow. */
qn_code qn_plan_place(qn_plan *p, qn_err *err);
/* Args of all ops; the slab and the step are there. */
qn_code qn_plan_bind(qn_plan *p, qn_err *err);

/* Rows that a value has room for. */
static inline uint32_t qn_plan_rows(const qn_plan *p, const qn_value *v)
{
    return v->space == QN_SPACE_STEP ? p->opt.caps.rows : p->opt.caps.logits;
}

#endif
