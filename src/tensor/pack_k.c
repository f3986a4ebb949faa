/* SPDX-License-Identifier: Apache-2.0 */
/* pack_k.c - encoders of the K formats: each sub-block is fitted by its range, the fits are rounded
 * to the super-block's scales, and the codes are chosen against the rounded fit.
 *
 * Simple and correct, not the best: the published encoders search for the scales of least error.
 *
 * Thread: pure.
 */
#include <math.h>
#include <string.h>

#include "tensor/format_int.h"

/* A super-block with offsets: w = scale[j] q - min[j], q in [0, top]. */
typedef struct fit_min {
    int scale[16], min[16]; /* as stored */
    float d, dmin;          /* as stored */
    int q[QN_KQ];
} fit_min;

static bool finite_block(const float *x)
{
    for (size_t i = 0; i < QN_KQ; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* n_sub sub-blocks; scales and minima are stored as integers up to `most` times d and dmin. */
static bool fit_with_min(fit_min *f, uint8_t *d_out, uint8_t *dmin_out, const float *x,
                         size_t n_sub, int most, int top)
{
    const size_t len = QN_KQ / n_sub;
    float scale[16] = {0}, min[16] = {0}, max_scale = 0, max_min = 0;
    bool ok = finite_block(x);
    for (size_t j = 0; j < n_sub; j++) {
        float lo = 0, hi = 0; /* the range includes 0, so the offset never has the other sign */
        for (size_t l = 0; l < len; l++) {
            lo = fminf(lo, x[j * len + l]);
            hi = fmaxf(hi, x[j * len + l]);
        }
        scale[j] = (hi - lo) / (float)top;
        min[j] = -lo;
        max_scale = fmaxf(max_scale, scale[j]);
        max_min = fmaxf(max_min, min[j]);
    }
    f->d = qn_store_scale(d_out, max_scale / (float)most, &ok);
    f->dmin = qn_store_scale(dmin_out, max_min / (float)most, &ok);
    for (size_t j = 0; j < n_sub; j++) {
        f->scale[j] = f->d > 0 ? qn_clip(rintf(scale[j] / f->d), 0, most) : 0;
        f->min[j] = f->dmin > 0 ? qn_clip(rintf(min[j] / f->dmin), 0, most) : 0;
        const float s = f->d * (float)f->scale[j], m = f->dmin * (float)f->min[j];
        for (size_t i = j * len; i < (j + 1) * len; i++)
            f->q[i] = s > 0 ? qn_clip(rintf((x[i] + m) / s), 0, top) : 0;
    }
    return ok;
}

/* A super-block without offsets: w = d scale[j] q, q in [-half, half - 1]. */
typedef struct fit_signed {
    int scale[16]; /* in [-most, most - 1] */
    int q[QN_KQ];
} fit_signed;

static bool fit_without_min(fit_signed *f, uint8_t *d_out, const float *x, int most, int half)
{
    float scale[16], top = 0;
    bool ok = finite_block(x);
    for (size_t j = 0; j < 16; j++) {
        float far = 0;
        for (size_t i = j * 16; i < j * 16 + 16; i++)
            if (fabsf(x[i]) > fabsf(far)) far = x[i];
        scale[j] =
            far / (float)-half; /* the farthest weight takes the code with the longer reach */
        if (fabsf(scale[j]) > fabsf(top)) top = scale[j];
    }
    const float d = qn_store_scale(d_out, top / (float)-most, &ok);
    for (size_t j = 0; j < 16; j++) {
        f->scale[j] = d != 0 ? qn_clip(rintf(scale[j] / d), -most, most - 1) : 0;
        const float s = d * (float)f->scale[j];
        for (size_t i = j * 16; i < j * 16 + 16; i++)
            f->q[i] = s != 0 ? qn_clip(rintf(x[i] / s), -half, half - 1) : 0;
    }
    return ok;
}

/* -- the bit planes, as unpack.c reads them ---------------------------------------------------- */

static void or_bits(uint8_t *p, int v, size_t shift) { *p = (uint8_t)(*p | v << shift); }

static void put_two_bits(uint8_t *qs, size_t e, int v)
{
    or_bits(qs + e / 128 * 32 + e % 32, v & 3, e % 128 / 32 * 2);
}

static void put_four_bits(uint8_t *qs, size_t e, int v)
{
    or_bits(qs + e / 64 * 32 + e % 32, v & 15, e % 64 / 32 * 4);
}

static void put_one_bit(uint8_t *qh, size_t e, int v) { or_bits(qh + e % 32, v & 1, e / 32); }

static void put_scales_and_mins(uint8_t *s, const int *scale, const int *min)
{
    for (size_t j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        s[j + 4] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}

bool qn_pack_q2_k(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    fit_min f;
    for (size_t i = 0; i < n; i += QN_KQ, out += 84) {
        memset(out, 0, 84);
        ok = fit_with_min(&f, out + QN_Q2K_D, out + QN_Q2K_DMIN, in + i, 16, 15, 3) && ok;
        for (size_t j = 0; j < 16; j++)
            out[QN_Q2K_SCALES + j] = (uint8_t)(f.scale[j] | f.min[j] << 4);
        for (size_t e = 0; e < QN_KQ; e++) put_two_bits(out + QN_Q2K_QS, e, f.q[e]);
    }
    return ok;
}

bool qn_pack_q3_k(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    fit_signed f;
    for (size_t i = 0; i < n; i += QN_KQ, out += 110) {
        memset(out, 0, 110);
        ok = fit_without_min(&f, out + QN_Q3K_D, in + i, 32, 4) && ok;
        uint8_t *s = out + QN_Q3K_SCALES;
        for (size_t j = 0; j < 16; j++) {
            const int v = f.scale[j] + 32;
            or_bits(s + j % 8, v & 15, j / 8 * 4);
            or_bits(s + 8 + j % 4, v >> 4, j / 4 * 2);
        }
        for (size_t e = 0; e < QN_KQ; e++) {
            put_two_bits(out + QN_Q3K_QS, e, f.q[e] + 4);
            put_one_bit(out + QN_Q3K_HMASK, e, f.q[e] >= 0);
        }
    }
    return ok;
}

bool qn_pack_q4_k(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    fit_min f;
    for (size_t i = 0; i < n; i += QN_KQ, out += 144) {
        memset(out, 0, 144);
        ok = fit_with_min(&f, out + QN_Q45K_D, out + QN_Q45K_DMIN, in + i, 8, 63, 15) && ok;
        put_scales_and_mins(out + QN_Q45K_SCALES, f.scale, f.min);
        for (size_t e = 0; e < QN_KQ; e++) put_four_bits(out + QN_Q4K_QS, e, f.q[e]);
    }
    return ok;
}

bool qn_pack_q5_k(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    fit_min f;
    for (size_t i = 0; i < n; i += QN_KQ, out += 176) {
        memset(out, 0, 176);
        ok = fit_with_min(&f, out + QN_Q45K_D, out + QN_Q45K_DMIN, in + i, 8, 63, 31) && ok;
        put_scales_and_mins(out + QN_Q45K_SCALES, f.scale, f.min);
        for (size_t e = 0; e < QN_KQ; e++) {
            put_four_bits(out + QN_Q5K_QS, e, f.q[e]);
            put_one_bit(out + QN_Q5K_QH, e, f.q[e] >> 4);
        }
    }
    return ok;
}

bool qn_pack_q6_k(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    fit_signed f;
    for (size_t i = 0; i < n; i += QN_KQ, out += 210) {
        memset(out, 0, 210);
        ok = fit_without_min(&f, out + QN_Q6K_D, in + i, 128, 32) && ok;
        for (size_t j = 0; j < 16; j++) out[QN_Q6K_SCALES + j] = (uint8_t)f.scale[j];
        for (size_t e = 0; e < QN_KQ; e++) {
            const int q = f.q[e] + 32;
            or_bits(out + QN_Q6K_QL + e / 128 * 64 + e % 64, q & 15, e % 128 / 64 * 4);
            put_two_bits(out + QN_Q6K_QH, e, q >> 4);
        }
    }
    return ok;
}
