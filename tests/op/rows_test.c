/* SPDX-License-Identifier: Apache-2.0 */
/* rows_test.c - a row's result does not depend on the rows beside it (rule R4): products, attention
 * and draws of a row alone have the bits of the same row in a batch, at every batch size. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op.h"

/* -- products ------------------------------------------------------------------------------------- */

/* 1 to 70 rows: every one has the bits that it has alone. */
static void product_rows(qt *t, const qn_kern_table *k, qn_fmt fmt, uint32_t outs, uint32_t cols)
{
    enum { MOST = 70 };
    const qn_matrix w = op_matrix(fmt, outs, cols);
    const float *x = op_rand((size_t)MOST * cols), *add = op_rand((size_t)MOST * outs);
    float *alone = op_fill((size_t)MOST * outs, OP_PAD), *y = op_fill((size_t)MOST * outs, OP_PAD);
    const float *bias = op_rand(outs);
    const uint32_t one = 1;
    for (uint32_t r = 0; r < MOST; r++) {
        const qn_linear_args a = {alone + (size_t)r * outs,
                                  outs,
                                  x + (size_t)r * cols,
                                  cols,
                                  &w,
                                  bias,
                                  add + (size_t)r * outs,
                                  outs,
                                  &one};
        op_run(k, QN_K_linear, &a, (qn_span){0, outs});
    }
    for (uint32_t n = 1; n <= MOST; n++) {
        const qn_linear_args a = {y, outs, x, cols, &w, bias, add, outs, &n};
        memset(y, 0xFF, (size_t)MOST * outs * sizeof *y);
        op_run(k, QN_K_linear, &a, (qn_span){0, outs});
        if (memcmp(y, alone, (size_t)n * outs * sizeof *y) != 0) {
            QT_OKF(t, false, "%s [%u, %u]: %u rows are not the rows alone",
                   qn_format_get(fmt)->name, outs, cols, n);
            break;
        }
    }
    QT_OK(t, true);
    op_end();
}

static void int_rows(qt *t, const qn_kern_table *k, qn_fmt fmt, uint32_t outs, uint32_t cols,
                     bool wide)
{
    enum { MOST = 30 };
    const uint32_t one = 1, most = MOST;
    qn_matrix w = op_matrix(fmt, outs, cols);
    if (!QT_OKF(t, op_panels(&w), "%s has no panels", qn_format_get(fmt)->name)) return;
    const qn_kern_id id = wide ? QN_K_linear_i16 : QN_K_linear_i8;
    const qn_q_kind kind = wide ? QN_W32 : QN_Q32;
    const size_t ld_q = qn_q_row_bytes(cols, kind);
    uint8_t *q = op_q_rows(&w, kind, op_rand((size_t)MOST * cols), most);
    float *alone = op_fill((size_t)MOST * outs, 0), *y = op_fill((size_t)MOST * outs, 0);
    for (uint32_t r = 0; r < MOST; r++) {
        const qn_linear_i8_args a = {
            alone + (size_t)r * outs, outs, q + r * ld_q, ld_q, &w, NULL, NULL, 0, &one};
        op_run(k, id, &a, (qn_span){0, outs});
    }
    for (uint32_t n = 1; n <= MOST; n++) {
        const qn_linear_i8_args a = {y, outs, q, ld_q, &w, NULL, NULL, 0, &n};
        op_run(k, id, &a, (qn_span){0, outs});
        QT_OKF(t, memcmp(y, alone, (size_t)n * outs * sizeof *y) == 0, "%s: %u rows",
               qn_format_get(fmt)->name, n);
    }
    op_end();
}

static void all_products(qt *t, const qn_kern_table *k)
{
    for (int f = 0; f < QN_FMT_COUNT; f++) product_rows(t, k, (qn_fmt)f, 21, 256);
}
static void edge_products(qt *t, const qn_kern_table *k)
{
    static const uint32_t cols[] = {1, 15, 16, 17, 31, 33, 63, 65, 127, 129, 577};
    for (size_t i = 0; i < QT_LEN(cols); i++) product_rows(t, k, QN_FMT_F16, 7, cols[i]);
    product_rows(t, k, QN_FMT_Q4_1, 70,
                 576); /* more than a panel; x of more than a block of rows */
    product_rows(t, k, QN_FMT_F32, 10, 1536);
    product_rows(t, k, QN_FMT_Q8_0, 5, 4096);
}
static void all_i8(qt *t, const qn_kern_table *k)
{
    for (int f = 0; f < QN_FMT_COUNT; f++)
        for (int wide = 0; wide < 2; wide++)
            if (qn_format_get((qn_fmt)f)->order != QN_ORDER_WIDEN)
                int_rows(t, k, (qn_fmt)f, 19, 512, wide);
}

/* -- attention ------------------------------------------------------------------------------------ */

typedef struct ctx {
    qn_kv_view kv;
    const float *q, *sinks;
    uint32_t *seq, *pos, *keys;
    uint32_t n, heads, window;
} ctx;

static void attend(const qn_kern_table *k, const ctx *c, float *out, uint32_t first, uint32_t n)
{
    const size_t ld = (size_t)c->heads * c->kv.head_dim;
    const qn_attention_args a = {.kv = c->kv,
                                 .out = out + first * ld,
                                 .ld_out = ld,
                                 .q = c->q + first * ld,
                                 .ld_q = ld,
                                 .n = &n,
                                 .seq = c->seq + first,
                                 .kv_pos = c->pos + first,
                                 .keys = c->keys + (size_t)first * 4,
                                 .sinks = c->sinks,
                                 .n_heads = c->heads,
                                 .window = c->window,
                                 .scale = 0.2f};
    op_run(k, QN_K_attention, &a, op_all(QN_K_attention, &a));
}

/* Rows of three sequences at odd places: alone, in every chunk size up to 64, all the same bits. */
static void attention_rows(qt *t, const qn_kern_table *k, uint32_t heads, uint32_t kv_heads,
                           uint32_t dim, uint32_t window)
{
    enum { N = 64, BLOCKS = 7 };
    const size_t ld = (size_t)heads * dim, half = (size_t)kv_heads * QN_KV_BLOCK * dim * 4;
    ctx c = {.n = N, .heads = heads, .window = window};
    uint32_t *table = op_u32(3 * BLOCKS, 1), *off = op_u32(3, 1);
    for (uint32_t i = 0; i < 3 * BLOCKS; i++) table[i] = 3 * BLOCKS - 1 - i;
    for (uint32_t i = 0; i < 3; i++) off[i] = i * BLOCKS;
    c.kv = (qn_kv_view){(uint8_t *)op_rand(3 * BLOCKS * half / 2),
                        2 * half,
                        0,
                        half,
                        QN_KV_F32,
                        kv_heads,
                        dim,
                        table,
                        off};
    c.q = op_rand(N * ld);
    c.sinks = kv_heads > 1 ? op_rand(heads) : NULL;
    c.seq = op_u32(N, 1), c.pos = op_u32(N, 1), c.keys = op_u32(4 * (size_t)N, 1);
    for (uint32_t r = 0; r < N; r++) {
        c.seq[r] = r < 20 ? 0 : r < 23 ? 1 : r % 11 == 0 ? 1 : 2;
        c.pos[r] = r < 20 ? 118 + r : r * 37 % (BLOCKS * QN_KV_BLOCK);
        c.keys[4 * r + 1] = c.pos[r] + 1;
        if (r % 9 == 4) c.keys[4 * r] = c.pos[r] / 2;
    }
    float *alone = op_fill(N * ld, OP_PAD), *out = op_fill(N * ld, OP_PAD);
    for (uint32_t r = 0; r < N; r++) attend(k, &c, alone, r, 1);
    for (uint32_t chunk = 2; chunk <= N; chunk += chunk < 10 ? 1 : 9) {
        memset(out, 0xFF, N * ld * sizeof *out);
        for (uint32_t r = 0; r < N; r += chunk)
            attend(k, &c, out, r, N - r < chunk ? N - r : chunk);
        QT_OKF(t, memcmp(out, alone, N * ld * sizeof *out) == 0, "heads %u/%u dim %u chunks of %u",
               heads, kv_heads, dim, chunk);
    }
    op_end();
}

static void all_attention(qt *t, const qn_kern_table *k)
{
    attention_rows(t, k, 3, 3, 16, 0);
    attention_rows(t, k, 9, 3, 64, 0);
    attention_rows(t, k, 4, 1, 80, 0);
    attention_rows(t, k, 6, 2, 128, 100);
}

#define TESTS(variant, unused)                                  \
    static void product_rows_are_alike_on_##variant(qt *t)      \
    {                                                           \
        qn_kern_table k;                                        \
        if (op_variant(t, &k, #variant)) all_products(t, &k);   \
    }                                                           \
    static void product_edges_are_alike_on_##variant(qt *t)     \
    {                                                           \
        qn_kern_table k;                                        \
        if (op_variant(t, &k, #variant)) edge_products(t, &k);  \
    }                                                           \
    static void int8_product_rows_are_alike_on_##variant(qt *t) \
    {                                                           \
        qn_kern_table k;                                        \
        if (op_variant(t, &k, #variant)) all_i8(t, &k);         \
    }                                                           \
    static void attention_rows_are_alike_on_##variant(qt *t)    \
    {                                                           \
        qn_kern_table k;                                        \
        if (op_variant(t, &k, #variant)) all_attention(t, &k);  \
    }
TESTS(generic, )
OP_EACH_FASTER(TESTS, )
#define LIST(variant, unused)                                                          \
    QT(product_rows_are_alike_on_##variant), QT(product_edges_are_alike_on_##variant), \
        QT(int8_product_rows_are_alike_on_##variant), QT(attention_rows_are_alike_on_##variant),

QT_MAIN(LIST(generic, ) OP_EACH_FASTER(LIST, ))
