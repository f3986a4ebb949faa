/* SPDX-License-Identifier: Apache-2.0 */
/* cases_linear.c - cases of the products with weights. */
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct product {
    uint32_t n, outs, cols;
    bool bias, add, alias;
} product;

static void visit_linear(op_visit *visit, void *ctx, qn_fmt fmt, product p)
{
    const qn_matrix w = op_matrix(fmt, p.outs, p.cols);
    const size_t ld = p.outs + p.cols % 3, ld_x = p.cols + p.outs % 3;
    const size_t ld_add = p.alias ? ld : ld + 5;
    float *y = op_fill(p.n * ld, OP_PAD);
    float *add = op_rand(p.n * ld_add);
    if (p.alias)
        for (uint32_t r = 0; r < p.n; r++) memcpy(y + r * ld, add + r * ld, p.outs * sizeof *y);
    const qn_linear_args args = {
        y,
        ld,
        op_rand(p.n * ld_x),
        ld_x,
        &w,
        p.bias ? op_rand(p.outs) : NULL,
        p.alias ? y
        : p.add ? add
                : NULL,
        ld_add,
        &p.n,
    };
    op_case c = {
        .id = QN_K_linear, .args = &args, .out = y, .out_bytes = p.n * ld * 4, .tol = 4e-6};
    snprintf(c.what, sizeof c.what, "%s rows %u outputs %u cols %u%s%s%s", qn_format_get(fmt)->name,
             p.n, p.outs, p.cols, p.bias ? " bias" : "", p.add ? " add" : "",
             p.alias ? " in place" : "");
    visit(ctx, &c);
}

void op_each_linear(op_visit *visit, void *ctx)
{
    uint32_t edge[64];
    const size_t n = op_edges(edge, 64, 1025);
    for (int f = 0; f < QN_FMT_COUNT; f++) { /* every format, K by its block */
        const uint32_t block = qn_format_get((qn_fmt)f)->block;
        for (uint32_t i = 1; i <= 3; i++)
            visit_linear(
                visit, ctx, (qn_fmt)f,
                (product){1 + 2 * i, 5 + i, (block > 1 ? block : 19) * i, i == 1, i == 2, i == 3});
        visit_linear(visit, ctx, (qn_fmt)f, (product){7, 21, 512, true, true, false});
    }
    for (size_t i = 0; i < n; i++) { /* edges of K, of outputs and of rows */
        const qn_fmt plain[3] = {QN_FMT_F32, QN_FMT_F16, QN_FMT_BF16};
        visit_linear(visit, ctx, plain[i % 3], (product){3, 6, edge[i], i & 1, i & 2, false});
        visit_linear(visit, ctx, QN_FMT_Q4_1, (product){2, edge[i], 64, i & 1, false, i & 2});
        if (edge[i] <= 257)
            visit_linear(visit, ctx, QN_FMT_Q8_0, (product){edge[i], 9, 96, false, i & 2, i & 1});
    }
    visit_linear(visit, ctx, QN_FMT_F32, (product){1, 11, 20000, false, false, false});
}

void op_each_quant_rows(op_visit *visit, void *ctx)
{
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t block = i % 2 ? 256 : 32, n = 1 + i % 4, cols = block * (1 + i);
        const size_t ld_q = cols + 4 * (i % 3), ld_d = cols / block + i % 2,
                     ld_s = cols / 16 + i % 3;
        const size_t bytes = n * (ld_q + 4 * ld_d + 4 * ld_s);
        float *x = op_rand(n * cols);
        int8_t *q = (int8_t *)memset(op_bytes(bytes), 0x5A, bytes);
        float *d = (float *)(void *)(q + n * ld_q);
        int32_t *sums = (int32_t *)(void *)(d + n * ld_d);
        for (uint32_t c = 0; c < block && i > 4; c++) x[c] = 0; /* a block of zeros */
        if (i == 3) x[5] = 1e-44f;                              /* and subnormal scales */
        if (i == 7)
            for (uint32_t c = 0; c < block; c++) x[c] *= 1e-43f;
        const qn_quant_rows_args args = {q, ld_q, d, ld_d, sums, ld_s, x, cols, &n, cols, block};
        op_case c = {.id = QN_K_quant_rows, .args = &args, .out = q, .out_bytes = bytes};
        snprintf(c.what, sizeof c.what, "rows %u cols %u block %u", n, cols, block);
        visit(ctx, &c);
    }
}

static void visit_i8(op_visit *visit, void *ctx, qn_fmt fmt, product p)
{
    const uint32_t block = qn_format_get(fmt)->order == QN_ORDER_BLOCK256 ? 256 : 32;
    const qn_matrix w = op_matrix(fmt, p.outs, p.cols);
    const size_t ld = p.outs + p.cols % 3;
    int8_t *q = op_bytes(p.n * p.cols);
    float *d = op_rand(p.n * p.cols / block);
    int32_t *sums = op_bytes(p.n * p.cols / 16 * 4);
    const float *x = op_rand(p.n * p.cols);
    const qn_quant_rows_args rows = {q, p.cols, d,    p.cols / block, sums, p.cols / 16,
                                     x, p.cols, &p.n, p.cols,         block};
    qn_kern_table generic = qn_kern_select(0);
    generic.quant_rows(&rows, (qn_span){0, p.n}, NULL);
    for (size_t i = 0; i < p.n * p.cols && p.bias; i++)
        q[i] = i & 1 ? 127 : -127; /* the extremes */
    for (size_t i = 0; i < p.n * p.cols && p.bias; i += 16) sums[i / 16] = 0;
    const size_t ld_add = p.alias ? ld : ld + 5;
    float *y = op_fill(p.n * ld, OP_PAD), *add = op_rand(p.n * ld_add);
    if (p.alias)
        for (uint32_t r = 0; r < p.n; r++) memcpy(y + r * ld, add + r * ld, p.outs * sizeof *y);
    const qn_linear_i8_args args = {y,
                                    ld,
                                    q,
                                    p.cols,
                                    d,
                                    p.cols / block,
                                    sums,
                                    p.cols / 16,
                                    &w,
                                    p.bias ? op_rand(p.outs) : NULL,
                                    p.alias ? y
                                    : p.add ? add
                                            : NULL,
                                    ld_add,
                                    &p.n};
    op_case c = {
        .id = QN_K_linear_i8, .args = &args, .out = y, .out_bytes = p.n * ld * 4, .tol = 1e-5};
    snprintf(c.what, sizeof c.what, "%s rows %u outputs %u cols %u%s", qn_format_get(fmt)->name,
             p.n, p.outs, p.cols, p.bias ? " extremes" : "");
    visit(ctx, &c);
}

void op_each_linear_i8(op_visit *visit, void *ctx)
{
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        const qn_format *fmt = qn_format_get((qn_fmt)f);
        if (fmt->order == QN_ORDER_WIDEN) continue;
        for (uint32_t i = 1; i <= 3; i++)
            visit_i8(visit, ctx, (qn_fmt)f,
                     (product){i, 15 + i, fmt->block * i, i == 1, i == 2, i == 3});
        visit_i8(visit, ctx, (qn_fmt)f, (product){9, 33, 512, false, false, false});
    }
    uint32_t edge[64];
    const size_t n = op_edges(edge, 64, 257);
    for (size_t i = 0; i < n; i++)
        visit_i8(visit, ctx, i % 2 ? QN_FMT_Q4_1 : QN_FMT_Q6_K,
                 (product){2, edge[i], 256, false, i & 2, i & 1});
}
