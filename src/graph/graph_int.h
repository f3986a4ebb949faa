/* SPDX-License-Identifier: Apache-2.0 */
/* graph_int.h - values and nodes: what the recorder writes, the fusion pass rewrites and the planner
 * places. Value ids index `values`; id 0 is no value.
 *
 * Owner:  the arena of the graph or of the plan that holds the list.
 * Thread: one at a time.
 */
#ifndef QN_GRAPH_GRAPH_INT_H
#define QN_GRAPH_GRAPH_INT_H
#include "base/arena.h"
#include "graph/op.h"

enum { QN_NODE_INS = 2, QN_NODE_OUTS = 2, QN_GRAPH_NODES_MAX = 1 << 20, QN_TAPS_MAX = 1024 };

typedef enum qn_space { QN_SPACE_STEP, QN_SPACE_LOGIT } qn_space; /* what a value's rows are */

typedef enum qn_val_kind {
    QN_VAL_F32,      /* [rows, cols] f32 */
    QN_VAL_ROWS_INT, /* what quant_rows makes: blocks of codes, scale and sums */
    QN_VAL_DRAWN     /* [rows] qn_drawn */
} qn_val_kind;

typedef struct qn_value {
    qn_val_kind kind;
    qn_space space;
    uint32_t cols;
    qn_q_kind rows;             /* of ROWS_INT */
    uint32_t quant[QN_Q_KINDS]; /* its integer rows of each kind, once they exist */
} qn_value;

/* One kernel call. Inputs in the order of the kernel's contract:
 *   embed -          rmsnorm x        add, add_rmsnorm a b   linear, linear_i8, linear_i16 x [add]
 *   quant_rows x     rope_table -     rope x table           kv_write k v
 *   attention q      act_mul gate [up]      scale, softcap, gather, adjust, draw x
 * Outputs: one, except kv_write none and add_rmsnorm two (the norm, the sum). */
typedef struct qn_node {
    qn_kern_id kern;
    uint32_t segment;
    uint32_t in[QN_NODE_INS], out[QN_NODE_OUTS];
    union {
        struct {
            const qn_matrix *table;
            float scale;
        } embed;
        struct {
            const float *gain;
            uint32_t sub;
            float eps;
        } norm; /* rmsnorm, add_rmsnorm */
        struct {
            const qn_matrix *w;
            const float *bias;
        } linear; /* linear, linear_i8, linear_i16 */
        struct {
            const qn_rope *rope;
            uint32_t heads, dim;
        } rope; /* rope_table, rope */
        qn_attention_spec attention;
        uint32_t layer; /* kv_write */
        qn_act act;
        float scale, cap;
    } u;
} qn_node;

typedef struct qn_border { /* between segment i and i + 1 */
    qn_hook_fn *hook;
    void *ctx;
} qn_border;

typedef struct qn_tap {
    const char *name;
    uint32_t value;
} qn_tap;

struct qn_graph {
    qn_arena arena;
    qn_graph_options opt;
    qn_value *values; /* [n_values], 0 unused */
    qn_node *nodes;
    qn_border *borders; /* [n_borders]; segments: one more */
    qn_tap *taps;
    uint32_t n_values, cap_values, n_nodes, cap_nodes, n_borders, cap_borders, n_taps, cap_taps;
    uint32_t logits; /* value kept by qn_g_logits, or 0 */
    uint32_t drawn;  /* value of the draw, or 0 */
    qn_err err;      /* the first error; sticks */
};

/* A new value, or none after an error. */
static inline bool qn_graph_is_product(qn_kern_id kern)
{
    return kern == QN_K_linear || kern == QN_K_linear_i8 || kern == QN_K_linear_i16;
}
qn_val qn_graph_value(qn_graph *g, qn_val_kind kind, qn_space space, uint32_t cols, qn_q_kind rows);
/* A new zeroed node at the end, in the present segment; NULL after an error. */
qn_node *qn_graph_node(qn_graph *g, qn_kern_id kern);
/* Records the error if it is the first; gives no value. */
qn_val qn_graph_fail(qn_graph *g, qn_code code, const char *fmt, ...) QN_PRINTF(3, 4);
/* The record of a value that `op` reads as `name`; NULL, with the error recorded, if there is none. */
const qn_value *qn_graph_use(qn_graph *g, const char *op, const char *name, qn_val x);

/* Which KV memory a node touches: equal for layers that share it. NULL: none. */
const uint8_t *qn_node_kv(const qn_node *n, const qn_graph_options *opt);

#endif
