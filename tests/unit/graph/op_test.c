/* SPDX-License-Identifier: Apache-2.0 */
/* op_test.c - the table of ops: complete, slots filled, backward rules that exist are right. */
#include "lab.h"

#include <string.h>

static void every_kernel_is_an_op(qt *t)
{
    for (uint32_t k = 0; k < QN_K_COUNT; k++) {
        const qn_op_info *o = qn_op_get((qn_kern_id)k);
        QT_OKF(t, o->kern == (qn_kern_id)k, "%s has no entry", qn_kern_name((qn_kern_id)k));
        QT_OKF(t, o->grain > 0, "%s has no grain", qn_kern_name((qn_kern_id)k));
        QT_OK(t, o->n_inputs <= QN_NODE_INS);
        QT_OK(t, o->in_place >> o->n_inputs == 0);
        QT_OK(t, o->in_place_out < QN_NODE_OUTS);
    }
}

static void every_op_runs_on_the_cpu_and_none_on_cuda(qt *t)
{
    for (uint32_t k = 0; k < QN_K_COUNT; k++) {
        const qn_op_info *o = qn_op_get((qn_kern_id)k);
        QT_OK(t, o->on[QN_DEVICE_CPU]);
        QT_OK(t, !o->on[QN_DEVICE_CUDA]);
    }
}

static void an_op_without_a_slot_on_the_device_is_refused(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_device *d = lab_device(t, 1);
    qn_device_ops named = *d->ops;
    const qn_device_ops *cpu = d->ops;
    qn_graph *g = NULL;
    qn_plan *p = NULL;
    qn_err err = {0};
    const qn_plan_key key = {.rows = 1, .taps = 1};
    QT_EQ(t, qn_graph_new(&g, &l->opt, NULL), QN_OK);
    qn_g_tap(g, qn_g_embed(g, &l->w[LAB_TABLE], 1.0f), "x");
    named.name = "cuda";
    d->ops = &named;
    d->kind = QN_DEVICE_CUDA;
    QT_EQ(t, qn_plan_build(&p, d, g, &key, &err), QN_E_UNSUPPORTED);
    QT_STR(t, err.msg, "plan: op 0, embed, cannot run on cuda");
    QT_OK(t, p == NULL);
    d->ops = cpu;
    d->kind = QN_DEVICE_CPU;
    qn_graph_free(g);
    qn_device_close(d);
    lab_close(l);
}

static void the_gradient_of_an_add_goes_to_both(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_graph *g = NULL;
    QT_EQ(t, qn_graph_new(&g, &l->opt, NULL), QN_OK);
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_add(g, x, x);
    qn_val dx[QN_NODE_INS] = {{0}, {0}};
    const uint32_t n = g->n_nodes;
    qn_op_get(QN_K_add)->backward(g, &g->nodes[n - 1], y, dx);
    QT_EQ(t, dx[0].id, y.id);
    QT_EQ(t, dx[1].id, y.id);
    QT_EQ(t, g->n_nodes, n);
    qn_graph_free(g);
    lab_close(l);
}

static void the_gradient_of_a_scale_is_scaled(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_graph *g = NULL;
    QT_EQ(t, qn_graph_new(&g, &l->opt, NULL), QN_OK);
    const qn_val x = qn_g_embed(g, &l->w[LAB_TABLE], 1.0f);
    const qn_val y = qn_g_scale(g, x, 0.25f);
    qn_val dx[QN_NODE_INS] = {{0}, {0}};
    const qn_node scale = g->nodes[g->n_nodes - 1];
    qn_op_get(QN_K_scale)->backward(g, &scale, y, dx);
    const qn_node *made = &g->nodes[g->n_nodes - 1];
    QT_EQ(t, made->kern, QN_K_scale);
    QT_EQ(t, made->in[0], y.id);
    QT_EQ(t, made->out[0], dx[0].id);
    QT_OK(t, made->u.scale == 0.25f);
    qn_graph_free(g);
    lab_close(l);
}

QT_MAIN(QT(every_kernel_is_an_op), QT(every_op_runs_on_the_cpu_and_none_on_cuda),
        QT(an_op_without_a_slot_on_the_device_is_refused), QT(the_gradient_of_an_add_goes_to_both),
        QT(the_gradient_of_a_scale_is_scaled))
