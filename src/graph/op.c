/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - the table of ops. The in-place bits repeat the alias lines of kern/args.h.
 *
 * work: below about half a microsecond a tile costs more to claim than to compute. Elementwise ops
 * move some 8 elements a nanosecond, products some 30, attention tiles are never small. */
#include "graph/graph_int.h"

enum { A = 1, B = 2 };                      /* in-place bits */
enum { ELEMENTS = 4096, PRODUCTS = 16384 }; /* least work a claim */

/* d(a + b) = da + db: the gradient goes to both. */
static void add_backward(qn_graph *g, const qn_node *n, qn_val dy, qn_val *dx)
{
    (void)g;
    (void)n;
    dx[0] = dy;
    dx[1] = dy;
}

static void scale_backward(qn_graph *g, const qn_node *n, qn_val dy, qn_val *dx)
{
    dx[0] = qn_g_scale(g, dy, n->u.scale);
}

#define CPU                    \
    {                          \
        [QN_DEVICE_CPU] = true \
    }
static const qn_op_info ops[QN_K_COUNT] = {
    [QN_K_embed] = {QN_K_embed, 0, CPU, 0, 0, 16, ELEMENTS, NULL},
    [QN_K_rmsnorm] = {QN_K_rmsnorm, 1, CPU, A, 0, 64, ELEMENTS, NULL},
    [QN_K_add] = {QN_K_add, 2, CPU, A | B, 0, 256, ELEMENTS, add_backward},
    [QN_K_add_rmsnorm] = {QN_K_add_rmsnorm, 2, CPU, A | B, 1, 64, ELEMENTS, NULL},
    [QN_K_linear] = {QN_K_linear, 2, CPU, B, 0, 256, PRODUCTS, NULL},
    [QN_K_quant_rows] = {QN_K_quant_rows, 1, CPU, 0, 0, 64, ELEMENTS, NULL},
    [QN_K_linear_i8] = {QN_K_linear_i8, 2, CPU, B, 0, 256, PRODUCTS, NULL},
    [QN_K_linear_i16] = {QN_K_linear_i16, 2, CPU, B, 0, 256, PRODUCTS, NULL},
    [QN_K_rope_table] = {QN_K_rope_table, 0, CPU, 0, 0, 64, ELEMENTS / 16, NULL},
    [QN_K_rope] = {QN_K_rope, 2, CPU, A, 0, 64, ELEMENTS, NULL},
    [QN_K_kv_write] = {QN_K_kv_write, 2, CPU, 0, 0, 64, ELEMENTS, NULL},
    [QN_K_attention] = {QN_K_attention, 1, CPU, 0, 0, 1, 0, NULL},
    [QN_K_act_mul] = {QN_K_act_mul, 2, CPU, A | B, 0, 256, ELEMENTS / 4, NULL},
    [QN_K_scale] = {QN_K_scale, 1, CPU, A, 0, 256, ELEMENTS, scale_backward},
    [QN_K_softcap] = {QN_K_softcap, 1, CPU, A, 0, 256, ELEMENTS / 4, NULL},
    [QN_K_gather] = {QN_K_gather, 1, CPU, 0, 0, 16, ELEMENTS, NULL},
    [QN_K_adjust] = {QN_K_adjust, 1, CPU, A, 0, 1, 0, NULL},
    [QN_K_draw] = {QN_K_draw, 1, CPU, 0, 0, 1, 0, NULL},
};
#undef CPU

const qn_op_info *qn_op_get(qn_kern_id kern)
{
    QN_ASSERT(kern < QN_K_COUNT);
    return &ops[kern];
}
