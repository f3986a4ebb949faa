/* SPDX-License-Identifier: Apache-2.0 */
/* cases_rows.c - cases of the kernels that walk rows. */
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_EDGES = 64 };

/* Columns around the edges with a few rows, padded rows and both alias choices. */
typedef struct shape {
    uint32_t n, cols;
    size_t ld, ld_in;
    bool alias;
} shape;

static size_t shapes(shape *out, size_t room)
{
    uint32_t edge[MAX_EDGES];
    const size_t n = op_edges(edge, MAX_EDGES, 1025);
    size_t k = 0;
    for (size_t i = 0; i < n && k + 2 <= room; i++) {
        const uint32_t rows = (uint32_t)(1 + i % 3);
        out[k++] = (shape){rows, edge[i], edge[i] + i % 4, edge[i] + i % 5, false};
        out[k++] = (shape){rows, edge[i], edge[i] + i % 4, edge[i] + i % 4, true};
    }
    return k;
}
#define EACH_SHAPE(s)                                    \
    shape list_[2 * MAX_EDGES];                          \
    const size_t n_list_ = shapes(list_, 2 * MAX_EDGES); \
    for (const shape *s = list_; s < list_ + n_list_; s++)

static op_case make(qn_kern_id id, const void *args, void *out, size_t floats, double tol)
{
    op_case c = {.id = id, .args = args, .out = out, .out_bytes = floats * 4, .tol = tol};
    return c;
}
static void name_shape(op_case *c, const shape *s, const char *more)
{
    snprintf(c->what, sizeof c->what, "[%u, %u] ld %zu%s%s", s->n, s->cols, s->ld,
             s->alias ? " in place " : " ", more);
}

/* Rows of values in padded memory; the padding holds OP_PAD. */
static float *padded(uint32_t n, uint32_t cols, size_t ld)
{
    float *p = op_fill(n * ld, OP_PAD), *x = op_rand((size_t)n * cols);
    for (uint32_t r = 0; r < n; r++) memcpy(p + r * ld, x + (size_t)r * cols, cols * sizeof *p);
    return p;
}

void op_each_add(op_visit *visit, void *ctx)
{
    EACH_SHAPE(s)
    {
        float *y = s->alias ? padded(s->n, s->cols, s->ld) : op_fill(s->n * s->ld, OP_PAD);
        float *a = s->alias ? y : padded(s->n, s->cols, s->ld_in),
              *b = padded(s->n, s->cols, s->ld);
        const qn_add_args args = {y, s->ld, a, s->ld_in, b, s->ld, &s->n, s->cols};
        op_case c = make(QN_K_add, &args, y, s->n * s->ld, 0);
        name_shape(&c, s, "");
        visit(ctx, &c);
    }
}

void op_each_scale(op_visit *visit, void *ctx)
{
    EACH_SHAPE(s)
    {
        float *y = s->alias ? padded(s->n, s->cols, s->ld) : op_fill(s->n * s->ld, OP_PAD);
        float *x = s->alias ? y : padded(s->n, s->cols, s->ld_in);
        const qn_scale_args args = {y, s->ld, x, s->ld_in, &s->n, s->cols, 0.37f};
        op_case c = make(QN_K_scale, &args, y, s->n * s->ld, 0.5);
        name_shape(&c, s, "");
        visit(ctx, &c);
    }
}

void op_each_softcap(op_visit *visit, void *ctx)
{
    EACH_SHAPE(s)
    {
        float *y = s->alias ? padded(s->n, s->cols, s->ld) : op_fill(s->n * s->ld, OP_PAD);
        float *x = s->alias ? y : padded(s->n, s->cols, s->ld_in);
        for (uint32_t c = 0; c < s->cols; c++)
            x[c] *= c % 7 == 0 ? 1000.0f : c % 7 == 1 ? 1e-6f : 5.0f;
        const qn_softcap_args args = {y, s->ld, x, s->ld_in, &s->n, s->cols, 30.0f};
        op_case c = make(QN_K_softcap, &args, y, s->n * s->ld, 5);
        name_shape(&c, s, "");
        visit(ctx, &c);
    }
}

/* Gates over the whole range: tiny, ordinary, far out, infinite. */
static void spread(float *x, size_t n)
{
    static const float times[] = {1, 1e-5f, 4, 12, 1e-30f, 30, 3, 0};
    for (size_t i = 0; i < n; i++) {
        x[i] *= times[i % 8];
        if (i % 97 == 50) x[i] = INFINITY;
        if (i % 97 == 51) x[i] = -INFINITY;
    }
}

void op_each_act_mul(op_visit *visit, void *ctx)
{
    static const char *const names[] = {"silu", "gelu_tanh", "gelu_erf"};
    for (int act = 0; act < 3; act++)
        for (int with_up = 0; with_up < 2; with_up++) {
            EACH_SHAPE(s)
            {
                float *y = s->alias ? padded(s->n, s->cols, s->ld) : op_fill(s->n * s->ld, OP_PAD);
                float *g = s->alias ? y : padded(s->n, s->cols, s->ld_in);
                const float *up = with_up ? padded(s->n, s->cols, s->ld) : NULL;
                for (uint32_t r = 0; r < s->n; r++) spread(g + r * s->ld_in, s->cols);
                const qn_act_mul_args args = {y,     s->ld, g,       s->ld_in,   up,
                                              s->ld, &s->n, s->cols, (qn_act)act};
                /* the angle of gelu_tanh is rounded, and exp multiplies that error by it */
                op_case c = make(QN_K_act_mul, &args, y, s->n * s->ld, act == 1 ? 200 : 16);
                name_shape(&c, s, names[act]);
                visit(ctx, &c);
            }
        }
}

void op_each_rmsnorm(op_visit *visit, void *ctx)
{
    EACH_SHAPE(s)
    {
        const uint32_t sub = s->cols < 200 ? 3 : 1;
        const size_t ld = sub * s->cols + s->ld - s->cols, ld_in = s->alias ? ld : ld + 5;
        float *y = op_fill(s->n * ld, OP_PAD);
        if (s->alias) y = padded(s->n, sub * s->cols, ld);
        const float *x = s->alias ? y : padded(s->n, sub * s->cols, ld_in);
        const float *g = s->cols % 3 ? op_rand(s->cols) : NULL;
        const qn_rmsnorm_args args = {y, ld, x, ld_in, g, &s->n, sub, s->cols, 1e-5f};
        op_case c = make(QN_K_rmsnorm, &args, y, s->n * ld, 1e-6);
        name_shape(&c, s, g ? "" : "no gain");
        visit(ctx, &c);
    }
}

void op_each_add_rmsnorm(op_visit *visit, void *ctx)
{
    EACH_SHAPE(s)
    {
        const size_t half = s->n * s->ld;
        float *y = op_fill(2 * half, OP_PAD), *h = y + half; /* one block: y, then h */
        if (s->alias) memcpy(h, padded(s->n, s->cols, s->ld), half * sizeof *h);
        const float *a = s->alias ? h : padded(s->n, s->cols, s->ld_in);
        const float *b = padded(s->n, s->cols, s->ld), *g = op_rand(s->cols);
        const qn_add_rmsnorm_args args = {y, h,     s->ld, s->ld, a,       s->ld_in,
                                          b, s->ld, g,     &s->n, s->cols, 1e-6f};
        op_case c = make(QN_K_add_rmsnorm, &args, y, 2 * half, 1e-6);
        name_shape(&c, s, "");
        visit(ctx, &c);
    }
}

void op_each_gather(op_visit *visit, void *ctx)
{
    EACH_SHAPE(s)
    {
        float *y = op_fill(s->n * s->ld, OP_PAD);
        const float *x = padded(9, s->cols, s->ld_in);
        const qn_gather_args args = {y, s->ld, x, s->ld_in, op_u32(s->n, 9), &s->n, s->cols};
        op_case c = make(QN_K_gather, &args, y, s->n * s->ld, 0);
        name_shape(&c, s, "");
        visit(ctx, &c);
    }
}

void op_each_embed(op_visit *visit, void *ctx)
{
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        const qn_format *fmt = qn_format_get((qn_fmt)f);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t cols = fmt->block == 1 ? 61 + i * 3 : fmt->block * (1 + i), n = 7;
            const qn_matrix w = op_matrix((qn_fmt)f, 11, cols);
            const size_t ld = cols + i;
            float *y = op_fill(n * ld, OP_PAD);
            const qn_embed_args args = {y,
                                        ld,
                                        &w,
                                        &n,
                                        op_u32(n, 3),
                                        op_u32(n, 5),
                                        op_u32(5, 11),
                                        op_rand(5 * (size_t)cols),
                                        cols,
                                        i == 1 ? 24.0f : 1.0f};
            op_case c = make(QN_K_embed, &args, y, n * ld, 0.5);
            snprintf(c.what, sizeof c.what, "%s cols %u", fmt->name, cols);
            visit(ctx, &c);
        }
    }
}

void op_each_rope_table(op_visit *visit, void *ctx)
{
    static const uint32_t halves[] = {1, 7, 8, 16, 31, 32, 33, 64};
    for (size_t i = 0; i < QT_LEN(halves); i++) {
        const uint32_t half = halves[i], n = 40;
        const size_t ld = 2 * half + i % 3;
        int32_t pos[3 * 40];
        for (int k = 0; k < 3 * 40; k++) pos[k] = (int32_t)(qt_rand() % 1000000) >> k % 20;
        float *cs = op_fill(n * ld, OP_PAD), *freq = op_fill(half, 1.0f);
        uint8_t *stream = op_bytes(half);
        for (uint32_t k = 0; k < half; k++) {
            freq[k] = (float)pow(10000.0, -(double)k / half);
            stream[k] %= 3;
        }
        const qn_rope_table_args args = {
            cs, ld, pos, 40, freq, i % 2 ? stream : NULL, &n, half, i % 3 ? 1.0f : 1.2f};
        op_case c = make(QN_K_rope_table, &args, cs, n * ld, i % 3 ? 0.51 : 1.5);
        snprintf(c.what, sizeof c.what, "half %u", half);
        visit(ctx, &c);
    }
}

/* Rotation loses bits where a c and b s cancel, so what counts is the size of the pair. */
static void compare_rope(qt *t, const op_case *c, const void *got, const void *want)
{
    const float *a = got, *b = want;
    for (size_t i = 0; i < c->out_bytes / 4; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= 6e-7 * 6)) {
            QT_OKF(t, false, "rope %s: element %zu: %.9g, expected %.9g", c->what, i, (double)a[i],
                   (double)b[i]);
            return;
        }
    QT_OK(t, true);
}

void op_each_rope(op_visit *visit, void *ctx)
{
    static const struct {
        uint32_t dim, half;
    } heads[] = {{2, 1}, {16, 8}, {64, 32}, {80, 40}, {80, 16}, {128, 64}, {34, 17}, {256, 33}};
    for (size_t i = 0; i < QT_LEN(heads); i++)
        for (int kind = 0; kind < 4; kind++) {
            const uint32_t n = 5, h = 3, dim = heads[i].dim, half = heads[i].half;
            const bool alias = kind & 1;
            const size_t ld = h * dim + i % 3, ld_cs = 2 * half + i % 2;
            float *y = alias ? padded(n, h * dim, ld) : op_fill(n * ld, OP_PAD);
            const float *x = alias ? y : padded(n, h * dim, ld);
            float *cs = op_fill(n * ld_cs, OP_PAD);
            for (uint32_t r = 0; r < n; r++)
                for (uint32_t k = 0; k < half; k++) {
                    cs[r * ld_cs + k] = cosf((float)(r * 31 + k));
                    cs[r * ld_cs + half + k] = sinf((float)(r * 31 + k));
                }
            const qn_rope_args args = {y, ld, x, ld, cs, ld_cs, &n, h, dim, half, kind >= 2};
            op_case c = make(QN_K_rope, &args, y, n * ld, 2);
            c.compare = compare_rope;
            snprintf(c.what, sizeof c.what, "dim %u half %u kind %d", dim, half, kind);
            visit(ctx, &c);
        }
}
