/* SPDX-License-Identifier: Apache-2.0 */
/* record_test.c - what the recorder refuses, and what it shares. */
#include "base/alloc.h"
#include "lab.h"

#include <math.h>
#include <string.h>

typedef struct scene { /* a fresh graph with some values */
    lab *l;
    qn_graph *g;
    qn_val x, kv, inner, logit; /* 64, 32, 96 wide; 64 with logit rows */
} scene;

static scene open_scene(qt *t, qn_act_mode mode)
{
    scene s = {.l = lab_open(mode)};
    QT_EQ(t, qn_graph_new(&s.g, &s.l->opt, NULL), QN_OK);
    s.x = qn_g_embed(s.g, &s.l->w[LAB_TABLE], 1.0f);
    s.kv = qn_g_linear(s.g, s.x, &s.l->w[LAB_MK], NULL);
    s.inner = qn_g_linear(s.g, s.x, &s.l->w[LAB_MI], NULL);
    s.logit = qn_g_logit_rows(s.g, s.x);
    QT_EQ(t, qn_g_error(s.g), QN_OK);
    return s;
}

static void close_scene(scene *s)
{
    qn_graph_free(s->g);
    lab_close(s->l);
}

/* The graph is in error, the message is this one, and building says the same. */
static void refused(qt *t, scene *s, qn_code code, const char *msg)
{
    qn_device *d = lab_device(t, 1);
    qn_plan *p = NULL;
    qn_err err = {0};
    const qn_plan_key key = {.rows = 1, .logits = 1};
    QT_EQ(t, qn_g_error(s->g), code);
    QT_EQ(t, qn_plan_build(&p, d, s->g, &key, &err), code);
    QT_OK(t, p == NULL);
    const char *after = strstr(err.msg, ", ");
    QT_OKF(t, strncmp(err.msg, "op ", 3) == 0 && after != NULL, "%s", err.msg);
    QT_STR(t, after ? after + 2 : NULL, msg);
    qn_device_close(d);
    close_scene(s);
}

static void widths_follow_the_ops(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    QT_EQ(t, qn_g_cols(s.g, s.x), LAB_MAIN);
    QT_EQ(t, qn_g_cols(s.g, s.kv), LAB_KV);
    QT_EQ(t, qn_g_cols(s.g, s.inner), LAB_INNER);
    QT_EQ(t, qn_g_cols(s.g, qn_g_act_mul(s.g, s.inner, s.inner, QN_ACT_SILU)), LAB_INNER);
    QT_EQ(t, qn_g_cols(s.g, (qn_val){0}), 0);
    QT_EQ(t, qn_g_cols(s.g, (qn_val){9999}), 0);
    close_scene(&s);
}

static void embed_refuses_no_matrix(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    QT_EQ(t, qn_g_embed(s.g, NULL, 1.0f).id, 0);
    refused(t, &s, QN_E_INVAL, "embed: table has no matrix");
}

static void embed_refuses_narrow_embedding_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    s.g->opt.ld_embed_rows = 63;
    (void)qn_g_embed(s.g, &s.l->w[LAB_TABLE], 1.0f);
    refused(t, &s, QN_E_INVAL, "embed: embedding rows are 63 apart, expected at least 64");
}

static void rmsnorm_refuses_sub_rows_that_do_not_fit(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_rmsnorm(s.g, s.x, NULL, 3, 1e-5f);
    refused(t, &s, QN_E_INVAL, "rmsnorm: x is 64 wide, expected a multiple of sub 3");
}

static void rmsnorm_refuses_zero_sub_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_rmsnorm(s.g, s.x, NULL, 0, 1e-5f);
    refused(t, &s, QN_E_INVAL, "rmsnorm: x is 64 wide, expected a multiple of sub 0");
}

static void rmsnorm_refuses_a_negative_eps(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_rmsnorm(s.g, s.x, NULL, 1, -1.0f);
    refused(t, &s, QN_E_INVAL, "rmsnorm: eps is -1, expected at least 0");
}

static void linear_refuses_a_wrong_width(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_linear(s.g, s.inner, &s.l->w[LAB_MM], NULL);
    refused(t, &s, QN_E_INVAL, "linear: x is 96 wide, expected 64 as the weight");
}

static void linear_refuses_a_matrix_without_data(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_matrix w = s.l->w[LAB_MM];
    w.data = NULL;
    (void)qn_g_linear(s.g, s.x, &w, NULL);
    refused(t, &s, QN_E_INVAL, "linear: weight has no matrix");
}

static void linear_refuses_overlapping_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_matrix w = s.l->w[LAB_MM];
    w.ld_bytes = 255;
    (void)qn_g_linear(s.g, s.x, &w, NULL);
    refused(t, &s, QN_E_INVAL, "linear: weight has rows that overlap");
}

static void linear_refuses_an_unknown_format(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_matrix w = s.l->w[LAB_MM];
    w.fmt = QN_FMT_COUNT;
    (void)qn_g_linear(s.g, s.x, &w, NULL);
    refused(t, &s, QN_E_INVAL, "linear: weight has an unknown format");
}

static void linear_refuses_affine_without_scales(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_matrix w = s.l->w[LAB_MM];
    w.fmt = QN_FMT_A4G32;
    (void)qn_g_linear(s.g, s.x, &w, NULL);
    refused(t, &s, QN_E_INVAL, "linear: weight has no scales or biases");
}

static void add_refuses_two_widths(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_add(s.g, s.x, s.kv);
    refused(t, &s, QN_E_INVAL, "add: b is 32 wide, expected 64 as a");
}

static void add_refuses_two_kinds_of_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_add(s.g, s.x, s.logit);
    refused(t, &s, QN_E_INVAL, "add: b has logit rows, expected step rows as a");
}

static void rope_refuses_a_wrong_width(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_rope(s.g, s.x, &s.l->rope, 3, 16);
    refused(t, &s, QN_E_INVAL, "rope: x is 64 wide, expected 3 heads of 16");
}

static void rope_refuses_more_pairs_than_the_head_has(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    s.l->rope.half = 9;
    (void)qn_g_rope(s.g, s.x, &s.l->rope, 4, 16);
    refused(t, &s, QN_E_INVAL, "rope: 9 rotated pairs, expected at most 8");
}

static void rope_refuses_logit_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_rope(s.g, s.logit, &s.l->rope, 4, 16);
    refused(t, &s, QN_E_INVAL, "rope: x has logit rows, expected step rows");
}

static void rope_refuses_no_frequencies(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    const qn_rope empty = {.half = 4};
    (void)qn_g_rope(s.g, s.x, &empty, 4, 16);
    refused(t, &s, QN_E_INVAL, "rope: no frequencies");
}

static void kv_write_refuses_a_wrong_width(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_kv_write(s.g, 0, s.x, s.x);
    refused(t, &s, QN_E_INVAL, "kv_write: k is 64 wide, expected 2 heads of 16");
}

static void kv_write_refuses_keys_unlike_values(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_kv_write(s.g, 0, s.kv, s.x);
    refused(t, &s, QN_E_INVAL, "kv_write: v is 64 wide, expected 32 as k");
}

static void kv_write_refuses_an_unknown_layer(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_kv_write(s.g, 2, s.kv, s.kv);
    refused(t, &s, QN_E_INVAL, "kv_write: layer is 2, expected below 2");
}

static qn_attention_spec spec(void)
{
    return (qn_attention_spec){.layer = 1, .n_heads = 4, .scale = 0.25f};
}

static void attention_refuses_a_wrong_width(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    const qn_attention_spec a = spec();
    (void)qn_g_attention(s.g, s.kv, &a);
    refused(t, &s, QN_E_INVAL, "attention: q is 32 wide, expected 4 heads of 16");
}

static void attention_refuses_heads_that_do_not_divide(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_attention_spec a = spec();
    a.n_heads = 3;
    (void)qn_g_attention(s.g, s.x, &a);
    refused(t, &s, QN_E_INVAL, "attention: 3 heads, expected a multiple of 2");
}

static void attention_refuses_an_unknown_layer(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_attention_spec a = spec();
    a.layer = 7;
    (void)qn_g_attention(s.g, s.x, &a);
    refused(t, &s, QN_E_INVAL, "attention: layer is 7, expected below 2");
}

static void attention_refuses_an_infinite_scale(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_attention_spec a = spec();
    a.scale = INFINITY;
    (void)qn_g_attention(s.g, s.x, &a);
    refused(t, &s, QN_E_INVAL, "attention: scale is inf, expected a finite one");
}

static void attention_refuses_a_negative_softcap(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_attention_spec a = spec();
    a.softcap = -2.0f;
    (void)qn_g_attention(s.g, s.x, &a);
    refused(t, &s, QN_E_INVAL, "attention: softcap is -2, expected at least 0");
}

static void act_mul_refuses_two_widths(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_act_mul(s.g, s.inner, s.x, QN_ACT_SILU);
    refused(t, &s, QN_E_INVAL, "act_mul: up is 64 wide, expected 96 as gate");
}

static void act_mul_refuses_an_unknown_activation(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_act_mul(s.g, s.inner, s.inner, (qn_act)3);
    refused(t, &s, QN_E_INVAL, "act_mul: activation is 3, expected at most 2");
}

static void softcap_refuses_zero(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_softcap(s.g, s.x, 0.0f);
    refused(t, &s, QN_E_INVAL, "softcap: cap is 0, expected above 0");
}

static void scale_refuses_an_unknown_value(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_scale(s.g, (qn_val){77}, 1.0f);
    refused(t, &s, QN_E_INVAL, "scale: x is value 77, expected one of this graph's 4");
}

static void logit_rows_refuses_logit_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_logit_rows(s.g, s.logit);
    refused(t, &s, QN_E_INVAL, "gather: x has logit rows, expected step rows");
}

static void logits_refuses_step_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_logits(s.g, s.x);
    refused(t, &s, QN_E_INVAL, "logits: x has step rows, expected logit rows");
}

static void logits_refuses_a_second_time(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_logits(s.g, s.logit);
    QT_EQ(t, qn_g_error(s.g), QN_OK);
    qn_g_logits(s.g, s.logit);
    refused(t, &s, QN_E_INVAL, "logits: recorded twice, expected once");
}

static void draw_refuses_step_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_draw(s.g, s.x);
    refused(t, &s, QN_E_INVAL, "draw: logits have step rows, expected logit rows");
}

static void draw_refuses_a_second_time(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_draw(s.g, s.logit);
    qn_g_draw(s.g, s.logit);
    refused(t, &s, QN_E_INVAL, "draw: recorded twice, expected once");
}

static void tap_refuses_a_name_twice(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_tap(s.g, s.x, "hidden");
    qn_g_tap(s.g, s.kv, "hidden");
    refused(t, &s, QN_E_INVAL, "tap: hidden is recorded twice, expected once");
}

static void tap_refuses_no_name(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_g_tap(s.g, s.x, "");
    refused(t, &s, QN_E_INVAL, "tap: no name");
}

static void the_first_error_sticks_and_later_calls_do_nothing(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    const qn_val bad = qn_g_add(s.g, s.x, s.kv);
    const uint32_t n = s.g->n_nodes;
    (void)qn_g_softcap(s.g, s.x, 0.0f);
    QT_EQ(t, qn_g_scale(s.g, bad, 2.0f).id, 0);
    QT_EQ(t, qn_g_scale(s.g, s.x, 2.0f).id, 0);
    qn_g_kv_write(s.g, 0, s.kv, s.kv);
    qn_g_segment(s.g, NULL, NULL);
    qn_g_draw(s.g, s.logit);
    QT_EQ(t, s.g->n_nodes, n);
    refused(t, &s, QN_E_INVAL, "add: b is 32 wide, expected 64 as a");
}

static uint32_t count(const qn_graph *g, qn_kern_id kern)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) n += g->nodes[i].kern == kern;
    return n;
}

static void rope_tables_are_shared_by_struct(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_rope(s.g, s.x, &s.l->rope, 4, 16);
    (void)qn_g_rope(s.g, s.kv, &s.l->rope, 2, 16);
    (void)qn_g_rope(s.g, s.x, &s.l->rope2, 4, 16);
    (void)qn_g_rope(s.g, s.x, &s.l->rope, 4, 16);
    QT_EQ(t, count(s.g, QN_K_rope_table), 2);
    QT_EQ(t, count(s.g, QN_K_rope), 4);
    close_scene(&s);
}

static void int8_rows_are_made_once_a_value(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_I8);
    const qn_val y = qn_g_linear(s.g, s.x, &s.l->w[LAB_MM_Q], NULL);
    (void)qn_g_linear(s.g, s.x, &s.l->w[LAB_MI_Q], NULL);
    (void)qn_g_linear(s.g, s.x, &s.l->w[LAB_MK_Q], NULL);
    QT_EQ(t, count(s.g, QN_K_quant_rows), 1);
    QT_EQ(t, count(s.g, QN_K_linear_i8), 3);
    (void)qn_g_linear(s.g, y, &s.l->w[LAB_MM_Q], NULL);
    QT_EQ(t, count(s.g, QN_K_quant_rows), 2);
    close_scene(&s);
}

static void formats_share_integer_rows(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_I8);
    static const char bytes[256 * 210];
    static const uint8_t panels[1];
    const qn_matrix up = {
        .fmt = QN_FMT_F32, .rows = 32, .cols = 32, .ld_bytes = 128, .data = bytes};
    qn_matrix wide = {.fmt = QN_FMT_Q8_0,
                      .rows = 256,
                      .cols = 64,
                      .ld_bytes = 68,
                      .data = bytes,
                      .panels = panels};
    const qn_matrix k = {.fmt = QN_FMT_Q6_K,
                         .rows = 8,
                         .cols = 256,
                         .ld_bytes = 210,
                         .data = bytes,
                         .panels = panels};
    const qn_matrix b = {.fmt = QN_FMT_Q8_0,
                         .rows = 8,
                         .cols = 256,
                         .ld_bytes = 272,
                         .data = bytes,
                         .panels = panels};
    const qn_val x = qn_g_linear(s.g, s.x, &wide, NULL);
    (void)qn_g_linear(s.g, x, &k, NULL);
    (void)qn_g_linear(s.g, x, &b, NULL);
    (void)qn_g_linear(s.g, x, &k, NULL);
    (void)qn_g_linear(s.g, s.kv, &up, NULL);
    QT_EQ(t, qn_g_error(s.g), QN_OK);
    QT_EQ(t, count(s.g, QN_K_quant_rows), 2);
    close_scene(&s);
}

static void int8_mode_keeps_f32_for_widening_formats(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_I8);
    (void)qn_g_linear(s.g, s.x, &s.l->w[LAB_MM], NULL);
    (void)qn_g_linear(s.g, s.x, &s.l->w[LAB_MI], NULL);
    QT_EQ(t, count(s.g, QN_K_quant_rows), 0);
    QT_EQ(t, count(s.g, QN_K_linear_i8), 0);
    close_scene(&s);
}

static void f32_mode_never_quantises(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    (void)qn_g_linear(s.g, s.x, &s.l->w[LAB_MM_Q], NULL);
    QT_EQ(t, count(s.g, QN_K_quant_rows), 0);
    close_scene(&s);
}

static void a_long_graph_keeps_its_nodes(qt *t)
{
    scene s = open_scene(t, QN_ACTIVATIONS_F32);
    qn_val x = s.x;
    for (int i = 0; i < 5000; i++) x = qn_g_scale(s.g, x, 0.5f);
    QT_EQ(t, qn_g_error(s.g), QN_OK);
    QT_EQ(t, count(s.g, QN_K_scale), 5000);
    bool chained = true;
    for (uint32_t i = s.g->n_nodes - 4999; i < s.g->n_nodes; i++)
        chained = chained && s.g->nodes[i].in[0] == s.g->nodes[i - 1].out[0];
    QT_OK(t, chained);
    close_scene(&s);
}

static void new_refuses_bad_options(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_F32);
    qn_graph *g = NULL;
    qn_err err = {0};
    qn_graph_options o = l->opt;
    o.caps.rows = 0;
    QT_EQ(t, qn_graph_new(&g, &o, &err), QN_E_INVAL);
    o = l->opt;
    o.kv = NULL;
    QT_EQ(t, qn_graph_new(&g, &o, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "graph: 2 layers without kv records");
    l->kv[1].group = 1;
    QT_EQ(t, qn_graph_new(&g, &l->opt, &err), QN_E_INVAL);
    QT_STR(t, err.msg, "graph: layer 1 is in group 1, expected below 1");
    l->kv[1].group = 0;
    l->kv[1].head_dim = 0;
    QT_EQ(t, qn_graph_new(&g, &l->opt, &err), QN_E_INVAL);
    l->kv[1].head_dim = 16;
    l->kv[0].fmt = QN_KV_FMT_COUNT;
    QT_EQ(t, qn_graph_new(&g, &l->opt, &err), QN_E_INVAL);
    QT_OK(t, g == NULL);
    lab_close(l);
}

static void recording_survives_every_failed_allocation(qt *t)
{
    lab *l = lab_open(QN_ACTIVATIONS_I8);
    const lab_random r = {.l = l, .seed = 1, .n_ops = 120};
    const qn_plan_key key = {.rows = 1, .logits = 1};
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_graph *g = NULL;
        qn_alloc_fail_after(n);
        rc = qn_graph_new(&g, &l->opt, NULL);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && g == NULL));
        if (rc == QN_OK) {
            lab_record(&r, g, &key);
            rc = qn_g_error(g);
            QT_OK(t, rc == QN_OK || rc == QN_E_NOMEM);
        }
        qn_alloc_fail_after(SIZE_MAX);
        qn_graph_free(g);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    lab_close(l);
}

QT_MAIN(QT(widths_follow_the_ops), QT(embed_refuses_no_matrix),
        QT(embed_refuses_narrow_embedding_rows), QT(rmsnorm_refuses_sub_rows_that_do_not_fit),
        QT(rmsnorm_refuses_zero_sub_rows), QT(rmsnorm_refuses_a_negative_eps),
        QT(linear_refuses_a_wrong_width), QT(linear_refuses_a_matrix_without_data),
        QT(linear_refuses_overlapping_rows), QT(linear_refuses_an_unknown_format),
        QT(linear_refuses_affine_without_scales), QT(add_refuses_two_widths),
        QT(add_refuses_two_kinds_of_rows), QT(rope_refuses_a_wrong_width),
        QT(rope_refuses_more_pairs_than_the_head_has), QT(rope_refuses_logit_rows),
        QT(rope_refuses_no_frequencies), QT(kv_write_refuses_a_wrong_width),
        QT(kv_write_refuses_keys_unlike_values), QT(kv_write_refuses_an_unknown_layer),
        QT(attention_refuses_a_wrong_width), QT(attention_refuses_heads_that_do_not_divide),
        QT(attention_refuses_an_unknown_layer), QT(attention_refuses_an_infinite_scale),
        QT(attention_refuses_a_negative_softcap), QT(act_mul_refuses_two_widths),
        QT(act_mul_refuses_an_unknown_activation), QT(softcap_refuses_zero),
        QT(scale_refuses_an_unknown_value), QT(logit_rows_refuses_logit_rows),
        QT(logits_refuses_step_rows), QT(logits_refuses_a_second_time), QT(draw_refuses_step_rows),
        QT(draw_refuses_a_second_time), QT(tap_refuses_a_name_twice), QT(tap_refuses_no_name),
        QT(the_first_error_sticks_and_later_calls_do_nothing), QT(rope_tables_are_shared_by_struct),
        QT(int8_rows_are_made_once_a_value), QT(formats_share_integer_rows),
        QT(int8_mode_keeps_f32_for_widening_formats), QT(f32_mode_never_quantises),
        QT(a_long_graph_keeps_its_nodes), QT(new_refuses_bad_options),
        QT(recording_survives_every_failed_allocation))
