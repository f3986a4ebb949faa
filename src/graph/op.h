/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - what there is to know about each kind of op, as one table.
 *
 * Adding an op is one kernel contract, one recorder function and one line here. Device slots say who
 * can run it; the planner sends an op only to a device whose slot is filled. The backward rule turns
 * an op into ops of the transposed graph (training); NULL: no gradient passes.
 */
#ifndef QN_GRAPH_OP_H
#define QN_GRAPH_OP_H
#include "device/device.h"
#include "graph/graph.h"
#include "kern/kern.h"

struct qn_node; /* graph_int.h */

/* Appends to `g` the ops that carry the gradient `dy` of node `n` to its inputs: dx[i] for input i. */
typedef void qn_backward_fn(qn_graph *g, const struct qn_node *n, qn_val dy, qn_val *dx);

typedef struct qn_op_info {
    qn_kern_id kern;
    uint32_t n_inputs;
    bool on[QN_DEVICE_KINDS]; /* has a device slot */
    uint8_t in_place;         /* bit i: the result may take input i's buffer */
    uint8_t in_place_out;     /* which result that is */
    uint32_t grain;           /* units a lane claims at once, at most */
    uint32_t work;            /* elements or products a lane should claim at once, at least */
    qn_backward_fn *backward;
} qn_op_info;

/* By kernel: every op is one kernel call. */
const qn_op_info *qn_op_get(qn_kern_id kern);

#endif
