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

static float quant_block(int8_t *q, const float *x, size_t n)
{
    float top = 0;
    for (size_t i = 0; i < n; i++) top = fmaxf(top, fabsf(x[i]));
    const float d = top / 127.0f;
    for (size_t i = 0; i < n; i++) {
        const float v = d > 0 ? rintf(x[i] / d) : 0.0f;
        q[i] = (int8_t)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v);
    }
    return d;
}

static int32_t sum_of(const int8_t *q, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += q[i];
    return sum;
}

void qn_ref_quant_rows(const qn_quant_rows_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++)
        for (size_t b = 0; b < a->cols / a->block; b++) {
            uint8_t *row = (uint8_t *)a->q + r * a->ld_q;
            const float *x = a->x + r * a->ld_x + b * a->block;
            if (a->block == 32) {
                qn_q32 *to = (qn_q32 *)(void *)row + b;
                to->d = quant_block(to->q, x, 32);
                to->sum = (float)sum_of(to->q, 32);
                continue;
            }
            qn_q256 *to = (qn_q256 *)(void *)row + b;
            to->d = quant_block(to->q, x, 256);
            for (size_t i = 0; i < 16; i++) to->sums[i] = sum_of(to->q + 16 * i, 16);
        }
}

/* Column k of a row, as the number it stands for. */
static double quant_at(const void *row, uint32_t block, uint32_t k)
{
    if (block == 32) {
        const qn_q32 *b = (const qn_q32 *)row + k / 32;
        return (double)b->d * b->q[k % 32];
    }
    const qn_q256 *b = (const qn_q256 *)row + k / 256;
    return (double)b->d * b->q[k % 256];
}

void qn_ref_linear_i8(const qn_linear_i8_args *a, qn_span units, void *scratch)
{
    const qn_format *f = qn_format_get(a->w->fmt);
    const uint32_t cols = a->w->cols, block = f->order == QN_ORDER_BLOCK256 ? 256 : 32;
    (void)scratch;
    for (uint32_t o = units.begin; o < units.end; o++)
        for (size_t r = 0; r < *a->n; r++) {
            const void *row = (const uint8_t *)a->q + r * a->ld_q;
            double sum = 0;
            for (uint32_t k = 0; k < cols; k += f->block) {
                float w[STEP];
                f->unpack(w, a->w, o, k, f->block);
                for (uint32_t i = 0; i < f->block; i++)
                    sum += quant_at(row, block, k + i) * (double)w[i];
            }
            if (a->bias) sum += (double)a->bias[o];
            if (a->add) sum += (double)a->add[r * a->ld_add + o];
            a->y[r * a->ld_y + o] = (float)sum;
        }
}
