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

void qn_ref_quant_rows(const qn_quant_rows_args *a, qn_span units, void *scratch)
{
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++)
        for (size_t b = 0; b < a->cols / a->block; b++) {
            const float *x = a->x + r * a->ld_x + b * a->block;
            float top = 0;
            for (size_t i = 0; i < a->block; i++) top = fmaxf(top, fabsf(x[i]));
            const float d = top / 127.0f;
            a->d[r * a->ld_d + b] = d;
            for (size_t i = 0; i < a->block; i++) {
                const float q = d > 0 ? rintf(x[i] / d) : 0.0f;
                const float in = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
                a->q[r * a->ld_q + b * a->block + i] = (int8_t)in;
            }
            for (size_t i = 0; i < a->block; i += 16) {
                int32_t sum = 0;
                for (size_t k = 0; k < 16; k++) sum += a->q[r * a->ld_q + b * a->block + i + k];
                a->sums[r * a->ld_sums + (b * a->block + i) / 16] = sum;
            }
        }
}

void qn_ref_linear_i8(const qn_linear_i8_args *a, qn_span units, void *scratch)
{
    const qn_format *f = qn_format_get(a->w->fmt);
    const uint32_t cols = a->w->cols, block = f->order == QN_ORDER_BLOCK256 ? 256 : 32;
    (void)scratch;
    for (uint32_t o = units.begin; o < units.end; o++)
        for (size_t r = 0; r < *a->n; r++) {
            double sum = 0;
            for (uint32_t k = 0; k < cols; k += f->block) {
                float w[STEP];
                f->unpack(w, a->w, o, k, f->block);
                for (uint32_t i = 0; i < f->block; i++)
                    sum += (double)a->d[r * a->ld_d + (k + i) / block] *
                           (double)a->q[r * a->ld_q + k + i] * (double)w[i];
            }
            if (a->bias) sum += (double)a->bias[o];
            if (a->add) sum += (double)a->add[r * a->ld_add + o];
            a->y[r * a->ld_y + o] = (float)sum;
        }
}
