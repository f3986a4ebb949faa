/* SPDX-License-Identifier: Apache-2.0 */
/* ref_linear.c - products with weights, and rows to int8, as their formulas read. */
#include "kern/ref/ref_int.h"

#include <math.h>

enum { STEP = 256 }; /* columns unpacked at once: a multiple of every block */

void qn_ref_linear(const qn_linear_args *a, qn_span units, void *scratch)
{
    const qn_format *f = qn_format_get(a->w->fmt);
    const uint32_t cols = a->w->cols;
    (void)scratch;
    for (uint32_t o = units.begin; o < units.end; o++)
        for (size_t r = 0; r < *a->n; r++) {
            double sum = 0;
            for (uint32_t k = 0; k < cols; k += STEP) {
                float w[STEP];
                const uint32_t n = cols - k < STEP ? cols - k : STEP;
                f->unpack(w, a->w, o, k, n);
                for (uint32_t i = 0; i < n; i++)
                    sum += (double)a->x[r * a->ld_x + k + i] * (double)w[i];
            }
            if (a->bias) sum += (double)a->bias[o];
            if (a->add) sum += (double)a->add[r * a->ld_add + o];
            a->y[r * a->ld_y + o] = (float)sum;
        }
}

static float quant_block(int32_t q[32], int32_t half[2], const float *x, float most)
{
    float top = 0;
    for (size_t i = 0; i < 32; i++) top = fmaxf(top, fabsf(x[i]));
    const float d = top / most;
    half[0] = half[1] = 0;
    for (size_t i = 0; i < 32; i++) {
        const float v = d > 0 ? rintf(x[i] / d) : 0.0f;
        q[i] = (int32_t)(v > most ? most : v < -most ? -most : v);
        half[i / 16] += q[i];
    }
    return d;
}

static void quant_32(qn_q32 *to, const float *x)
{
    int32_t q[32], half[2];
    to->d = quant_block(q, half, x, 127.0f);
    to->sum = (float)(half[0] + half[1]);
    for (size_t i = 0; i < 2; i++) to->half[i] = (float)half[i];
    for (size_t i = 0; i < 32; i++) to->q[i] = (int8_t)q[i];
}

static void quant_wide(qn_w32 *to, const float *x)
{
    int32_t q[32], half[2];
    to->d = quant_block(q, half, x, 127.0f * 256);
    to->sum = (float)(half[0] + half[1]);
    for (size_t i = 0; i < 2; i++) to->half[i] = (float)half[i];
    for (size_t i = 0; i < 32; i++) {
        const int32_t high = (q[i] + 128 + 65536) / 256 - 256; /* rounded down */
        to->high[i] = (int8_t)high;
        to->low[i] = (int8_t)(q[i] - 256 * high);
    }
}

void qn_ref_quant_rows(const qn_quant_rows_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++)
        for (size_t b = 0; b < a->cols / QN_Q_BLOCK; b++) {
            void *row = (uint8_t *)a->q + r * a->ld_q;
            const float *x = a->x + r * a->ld_x + b * QN_Q_BLOCK;
            if (a->kind == QN_Q32) quant_32((qn_q32 *)row + b, x);
            if (a->kind == QN_W32) quant_wide((qn_w32 *)row + b, x);
        }
}

/* Column k of a row, as the number it stands for. */
static double quant_at(const void *row, qn_q_kind kind, uint32_t k)
{
    const qn_q32 *q = (const qn_q32 *)row + k / 32;
    const qn_w32 *w = (const qn_w32 *)row + k / 32;
    if (kind == QN_Q32) return (double)q->d * q->q[k % 32];
    return (double)w->d * (256 * w->high[k % 32] + w->low[k % 32]);
}

static void products(const qn_linear_i8_args *a, qn_span units, qn_q_kind kind)
{
    const qn_format *f = qn_format_get(a->w->fmt);
    const uint32_t cols = a->w->cols;
    for (uint32_t o = units.begin; o < units.end; o++)
        for (size_t r = 0; r < *a->n; r++) {
            const void *row = (const uint8_t *)a->q + r * a->ld_q;
            double sum = 0;
            for (uint32_t k = 0; k < cols; k += f->block) {
                float w[STEP];
                f->unpack(w, a->w, o, k, f->block);
                for (uint32_t i = 0; i < f->block; i++)
                    sum += quant_at(row, kind, k + i) * (double)w[i];
            }
            if (a->bias) sum += (double)a->bias[o];
            if (a->add) sum += (double)a->add[r * a->ld_add + o];
            a->y[r * a->ld_y + o] = (float)sum;
        }
}

void qn_ref_linear_i8(const qn_linear_i8_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    products(a, units, QN_Q32);
}

void qn_ref_linear_i16(const qn_linear_i16_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    products(a, units, QN_W32);
}
