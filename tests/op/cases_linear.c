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
    for (uint32_t i = 0; i < 12; i++) {
        const qn_q_kind kind = (qn_q_kind)(i % QN_Q_KINDS);
        const uint32_t block = QN_Q_BLOCK, n = 1 + i % 4, cols = block * (1 + i);
        const size_t ld_q = qn_q_row_bytes(cols, kind) + 4 * (i % 5), bytes = n * ld_q;
        float *x = op_rand(n * cols);
        uint8_t *q = memset(op_bytes(bytes), 0x5A, bytes);
        for (uint32_t c = 0; c < block && i > 5; c++) x[c] = 0; /* a block of zeros */
        if (i == 4 || i == 5) x[5] = 1e-44f;                    /* and subnormal scales */
        if (i > 8)
            for (uint32_t c = 0; c < block; c++) x[c] = x[c + block] * 1e-43f;
        const qn_quant_rows_args args = {q, ld_q, x, cols, &n, cols, kind};
        op_case c = {.id = QN_K_quant_rows, .args = &args, .out = q, .out_bytes = bytes};
        snprintf(c.what, sizeof c.what, "rows %u cols %u kind %d", n, cols, (int)kind);
        visit(ctx, &c);
    }
}

/* Alternating ends of the range, which sum to nothing: the largest integer sums there are. */
static void put_extremes(uint8_t *q, size_t bytes, qn_q_kind kind)
{
    const size_t each = qn_q_row_bytes(QN_Q_BLOCK, kind);
    for (size_t b = 0; b < bytes; b += each) {
        const size_t n = QN_Q_BLOCK;
        for (size_t i = 0; i < n; i++) q[b + i] = i & 1 ? 127 : 129; /* +-127 */
        if (kind == QN_Q32) {
            qn_q32 *x = (void *)(q + b);
            x->sum = x->half[0] = x->half[1] = 0;
        } else {
            qn_w32 *x = (void *)(q + b);
            memset(x->low, 0, n);
            x->sum = x->half[0] = x->half[1] = 0;
        }
    }
}

static void visit_int(op_visit *visit, void *ctx, qn_fmt fmt, product p, bool wide)
{
    qn_matrix w = op_matrix(fmt, p.outs, p.cols);
    if (!op_panels(&w)) return;
    const qn_q_kind kind = wide ? QN_W32 : QN_Q32;
    const size_t ld = p.outs + p.cols % 3, ld_q = qn_q_row_bytes(p.cols, kind);
    uint8_t *q = op_q_rows(&w, kind, op_rand(p.n * p.cols), p.n);
    if (p.bias) put_extremes(q, p.n * ld_q, kind);
    const size_t ld_add = p.alias ? ld : ld + 5;
    float *y = op_fill(p.n * ld, OP_PAD), *add = op_rand(p.n * ld_add);
    if (p.alias)
        for (uint32_t r = 0; r < p.n; r++) memcpy(y + r * ld, add + r * ld, p.outs * sizeof *y);
    const float *plus = p.alias ? y : p.add ? add : NULL;
    const float *bias = p.bias ? op_rand(p.outs) : NULL;
    const qn_linear_i8_args args = {y, ld, q, ld_q, &w, bias, plus, ld_add, &p.n};
    op_case c = {.id = wide ? QN_K_linear_i16 : QN_K_linear_i8,
                 .args = &args,
                 .out = y,
                 .out_bytes = p.n * ld * 4,
                 .tol = 1e-5};
    snprintf(c.what, sizeof c.what, "%s rows %u outputs %u cols %u%s", qn_format_get(fmt)->name,
             p.n, p.outs, p.cols, p.bias ? " extremes" : "");
    visit(ctx, &c);
}

static void all_heights(op_visit *visit, void *ctx, qn_fmt fmt, bool wide)
{
    for (uint32_t rows = 1; rows <= 40; rows += rows < 16 ? 1 : 5)
        visit_int(visit, ctx, fmt, (product){rows, 16 + rows % 3, 256, false, rows & 1, false},
                  wide);
}

void op_each_linear_i16(op_visit *visit, void *ctx)
{
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        const qn_format *fmt = qn_format_get((qn_fmt)f);
        if (fmt->order != QN_ORDER_BLOCK32) continue;
        for (uint32_t i = 1; i <= 3; i++)
            visit_int(visit, ctx, (qn_fmt)f,
                      (product){i, 15 + i, fmt->block * i, i == 1, i == 2, i == 3}, true);
        all_heights(visit, ctx, (qn_fmt)f, true);
    }
}

void op_each_linear_i8(op_visit *visit, void *ctx)
{
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        const qn_format *fmt = qn_format_get((qn_fmt)f);
        if (fmt->order == QN_ORDER_WIDEN) continue;
        for (uint32_t i = 1; i <= 6; i++)
            visit_int(visit, ctx, (qn_fmt)f,
                      (product){i, 15 + i, fmt->block * i, i == 1, i == 2, i == 3}, false);
        visit_int(visit, ctx, (qn_fmt)f, (product){9, 33, 512, false, false, false}, false);
        all_heights(visit, ctx, (qn_fmt)f, false);
    }
    uint32_t edge[64];
    const size_t n = op_edges(edge, 64, 257);
    for (size_t i = 0; i < n; i++)
        visit_int(visit, ctx, i % 2 ? QN_FMT_Q4_1 : QN_FMT_Q6_K,
                  (product){2, edge[i], 256, false, i & 2, i & 1}, false);
}
