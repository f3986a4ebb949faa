/* SPDX-License-Identifier: Apache-2.0 */
/* ref.c - the definition of every kernel in double precision: never tuned, no blocking. For tests.
 * Here: the table and the kernels that walk rows. */
#include "kern/ref/ref_int.h"

#include <math.h>
#include <string.h>

void qn_ref_embed(const qn_embed_args *a, qn_span units, void *scratch)
{
    const uint32_t cols = a->table->cols;
    const qn_format *f = qn_format_get(a->table->fmt);
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++) {
        float *y = a->y + r * a->ld_y;
        const uint32_t value = a->value[r];
        if (a->source[r] == 2) {
            for (size_t c = 0; c < cols; c++) y[c] = a->rows[value * a->ld_rows + c];
            continue;
        }
        f->unpack(y, a->table, a->source[r] == 1 ? a->registers[value] : value, 0, cols);
        for (size_t c = 0; c < cols; c++) y[c] = (float)((double)y[c] * (double)a->scale);
    }
}

static void norm(float *y, const float *x, const float *g, size_t cols, float eps)
{
    double sum = 0.0;
    for (size_t c = 0; c < cols; c++) sum += (double)x[c] * (double)x[c];
    const double k = 1.0 / sqrt(sum / (double)cols + (double)eps);
    for (size_t c = 0; c < cols; c++) y[c] = (float)((double)x[c] * k * (g ? (double)g[c] : 1.0));
}

void qn_ref_rmsnorm(const qn_rmsnorm_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (uint32_t u = units.begin; u < units.end; u++) {
        const size_t r = u / a->sub, at = (size_t)(u % a->sub) * a->cols;
        norm(a->y + r * a->ld_y + at, a->x + r * a->ld_x + at, a->g, a->cols, a->eps);
    }
}

void qn_ref_add_rmsnorm(const qn_add_rmsnorm_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++) {
        float *h = a->h + r * a->ld_h;
        for (size_t c = 0; c < a->cols; c++) h[c] = a->a[r * a->ld_a + c] + a->b[r * a->ld_b + c];
        norm(a->y + r * a->ld_y, h, a->g, a->cols, a->eps);
    }
}

typedef struct chunk {
    size_t r, begin, end;
} chunk;

static chunk chunk_at(uint32_t unit, uint32_t cols)
{
    const uint32_t per = (cols + QN_CHUNK - 1) / QN_CHUNK;
    const size_t begin = (size_t)(unit % per) * QN_CHUNK;
    return (chunk){unit / per, begin, begin + QN_CHUNK < cols ? begin + QN_CHUNK : cols};
}

void qn_ref_add(const qn_add_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (uint32_t u = units.begin; u < units.end; u++) {
        const chunk k = chunk_at(u, a->cols);
        for (size_t c = k.begin; c < k.end; c++)
            a->y[k.r * a->ld_y + c] = a->a[k.r * a->ld_a + c] + a->b[k.r * a->ld_b + c];
    }
}

void qn_ref_scale(const qn_scale_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (uint32_t u = units.begin; u < units.end; u++) {
        const chunk k = chunk_at(u, a->cols);
        for (size_t c = k.begin; c < k.end; c++)
            a->y[k.r * a->ld_y + c] = (float)((double)a->x[k.r * a->ld_x + c] * (double)a->s);
    }
}

void qn_ref_adjust(const qn_adjust_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t i = units.begin; i < units.end; i++) {
        float *y = a->y + i * a->ld_y;
        for (size_t c = 0; c < a->cols; c++) y[c] = a->x[i * a->ld_x + c];
        for (uint32_t k = a->adjust[i].at; k < a->adjust[i].at + a->adjust[i].n; k++) {
            const qn_edit *e = &a->edit[k];
            if (e->token >= a->cols) continue;
            float v = y[e->token] + e->bias; /* each step rounded to f32 */
            if (e->flags & QN_EDIT_REPEATED)
                v = v < 0 ? v * a->adjust[i].repetition : v / a->adjust[i].repetition;
            if (e->flags & QN_EDIT_PRESENT) v = v - a->adjust[i].presence;
            const float all = a->adjust[i].frequency * (float)e->seen;
            if (e->seen) v = v - all;
            y[e->token] = v;
        }
    }
}

void qn_ref_softcap(const qn_softcap_args *a, qn_span units, void *scratch)
{
    const double cap = (double)a->cap;
    (void)scratch;
    for (uint32_t u = units.begin; u < units.end; u++) {
        const chunk k = chunk_at(u, a->cols);
        for (size_t c = k.begin; c < k.end; c++)
            a->y[k.r * a->ld_y + c] = (float)(cap * tanh((double)a->x[k.r * a->ld_x + c] / cap));
    }
}

static double activate(double x, qn_act act)
{
    if (isinf(x) && x < 0) return 0;
    if (act == QN_ACT_SILU) return x / (1.0 + exp(-x));
    if (act == QN_ACT_GELU_ERF) return 0.5 * x * erfc(-x * sqrt(0.5));
    /* x/2 (1 + tanh u) = x / (1 + exp(-2u)), without cancellation for u < 0 */
    return x / (1.0 + exp(-2.0 * sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

void qn_ref_act_mul(const qn_act_mul_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (uint32_t u = units.begin; u < units.end; u++) {
        const chunk k = chunk_at(u, a->cols);
        for (size_t c = k.begin; c < k.end; c++) {
            const double up = a->up ? (double)a->up[k.r * a->ld_up + c] : 1.0;
            a->y[k.r * a->ld_y + c] =
                (float)(activate((double)a->gate[k.r * a->ld_gate + c], a->act) * up);
        }
    }
}

void qn_ref_gather(const qn_gather_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t i = units.begin; i < units.end; i++)
        for (size_t c = 0; c < a->cols; c++)
            a->y[i * a->ld_y + c] = a->x[a->index[i] * a->ld_x + c];
}

void qn_ref_rope_table(const qn_rope_table_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++)
        for (size_t i = 0; i < a->half; i++) {
            const size_t stream = a->stream ? a->stream[i] : 0;
            const float angle = (float)a->pos[stream * a->ld_pos + r] * a->inv_freq[i];
            float *cs = a->cs + r * a->ld_cs;
            cs[i] = (float)(cos((double)angle) * (double)a->mscale);
            cs[a->half + i] = (float)(sin((double)angle) * (double)a->mscale);
        }
}

void qn_ref_rope(const qn_rope_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++)
        for (size_t h = 0; h < a->heads; h++) {
            const float *cs = a->cs + r * a->ld_cs, *x = a->x + r * a->ld_x + h * a->dim;
            float *y = a->y + r * a->ld_y + h * a->dim;
            for (size_t i = 0; i < a->half; i++) {
                const size_t p = a->interleaved ? 2 * i : i,
                             q = a->interleaved ? p + 1 : p + a->half;
                const double u = (double)x[p], v = (double)x[q];
                const double c = (double)cs[i], s = (double)cs[a->half + i];
                y[p] = (float)(u * c - v * s);
                y[q] = (float)(u * s + v * c);
            }
            for (size_t i = 2 * (size_t)a->half; i < a->dim; i++) y[i] = x[i];
        }
}

const qn_kern_table qn_kern_ref = {
#define X(name, tol, unit) .name = qn_ref_##name,
#include "kern/kern.def"
#undef X
};
