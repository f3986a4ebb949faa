/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - encoders of the 32-blocks and of affine groups: plain round-to-nearest, one pass.
 *
 * The rules are those published with the formats (so other tools' files can be reproduced bit for
 * bit); better encoders search, these do not.
 *
 * Thread: pure.
 */
#include <math.h>
#include <string.h>

#include "tensor/format_int.h"

float qn_store_scale(uint8_t *p, float scale, bool *ok)
{
    store_u16(p, qn_f32_to_f16(scale));
    const float seen = load_f16(p);
    if (!isfinite(seen)) *ok = false;
    return seen;
}

/* The element that is farthest from 0, with its sign; the first of equals. */
static float farthest(const float *x, size_t n)
{
    float top = 0, v = 0;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > top) {
            top = fabsf(x[i]);
            v = x[i];
        }
    return v;
}

static bool all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static void range(const float *x, size_t n, float *min, float *max)
{
    *min = *max = x[0];
    for (size_t i = 1; i < n; i++) {
        if (x[i] < *min) *min = x[i];
        if (x[i] > *max) *max = x[i];
    }
}

static void put_nibbles(uint8_t *qs, const int *q)
{
    for (size_t l = 0; l < 16; l++) qs[l] = (uint8_t)((q[l] & 15) | (q[l + 16] & 15) << 4);
}

static void put_fifth_bits(uint8_t *qh, const int *q)
{
    for (size_t l = 0; l < 4; l++) qh[l] = 0;
    for (size_t l = 0; l < 32; l++) qh[l / 8] = (uint8_t)(qh[l / 8] | (q[l] >> 4 & 1) << (l % 8));
}

/* Codes of a symmetric block: 0 to 2 half, with the farthest weight at code 0 exactly. */
static bool codes_symmetric(uint8_t *d_out, int *q, const float *x, int half)
{
    bool ok = all_finite(x, 32);
    const float d = farthest(x, 32) / (float)-half, inv = d != 0 ? 1 / d : 0;
    qn_store_scale(d_out, d, &ok);
    for (size_t l = 0; l < 32; l++)
        q[l] = qn_clip(x[l] * inv + ((float)half + 0.5f), 0, 2 * half - 1);
    return ok;
}

/* Codes 0 to top over the block's range. */
static bool codes_ranged(uint8_t *d_out, uint8_t *m_out, int *q, const float *x, int top)
{
    float min = 0, max = 0;
    bool ok = all_finite(x, 32);
    range(x, 32, &min, &max);
    const float d = (max - min) / (float)top, inv = d != 0 ? 1 / d : 0;
    qn_store_scale(d_out, d, &ok);
    qn_store_scale(m_out, min, &ok);
    for (size_t l = 0; l < 32; l++) q[l] = qn_clip((x[l] - min) * inv + 0.5f, 0, top);
    return ok;
}

bool qn_pack_q4_0(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    int q[32];
    for (size_t i = 0; i < n; i += 32, out += 18) {
        ok = codes_symmetric(out, q, in + i, 8) && ok;
        put_nibbles(out + 2, q);
    }
    return ok;
}

bool qn_pack_q4_1(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    int q[32];
    for (size_t i = 0; i < n; i += 32, out += 20) {
        ok = codes_ranged(out, out + 2, q, in + i, 15) && ok;
        put_nibbles(out + 4, q);
    }
    return ok;
}

bool qn_pack_q5_0(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    int q[32];
    for (size_t i = 0; i < n; i += 32, out += 22) {
        ok = codes_symmetric(out, q, in + i, 16) && ok;
        put_fifth_bits(out + 2, q);
        put_nibbles(out + 6, q);
    }
    return ok;
}

bool qn_pack_q5_1(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    int q[32];
    for (size_t i = 0; i < n; i += 32, out += 24) {
        ok = codes_ranged(out, out + 2, q, in + i, 31) && ok;
        put_fifth_bits(out + 4, q);
        put_nibbles(out + 8, q);
    }
    return ok;
}

bool qn_pack_q8_0(uint8_t *out, const float *in, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n; i += 32, out += 34) {
        const float d = fabsf(farthest(in + i, 32)) / 127, inv = d != 0 ? 1 / d : 0;
        ok = all_finite(in + i, 32) && ok;
        qn_store_scale(out, d, &ok);
        for (size_t l = 0; l < 32; l++)
            out[2 + l] = (uint8_t)qn_clip(roundf(in[i + l] * inv), -127, 127);
    }
    return ok;
}

/* -- affine ------------------------------------------------------------------------------------ */

static void put_code(uint8_t *row, size_t i, unsigned bits, unsigned code)
{
    const size_t at = i * bits;
    const unsigned v = code << (at % 8);
    row[at / 8] = (uint8_t)(row[at / 8] | (v & 255));
    if (v > 255) row[at / 8 + 1] = (uint8_t)(row[at / 8 + 1] | v >> 8);
}

/* The edge of larger magnitude becomes exact and 0 nearly so:
 *     scale = max((max - min) / n, 1e-7), negated where max is that edge
 *     q0 = round(edge / scale); scale = edge / q0, bias = edge; q0 = 0: bias = 0
 *     q = clip(round((w - bias) / scale), 0, n) */
void qn_pack_affine(uint8_t *out, float *scales, float *biases, unsigned bits, size_t group,
                    const float *in, size_t n)
{
    const int top = (1 << bits) - 1;
    memset(out, 0, n * bits / 8);
    for (size_t g = 0; g < n / group; g++) {
        const float *x = in + g * group;
        float min = 0, max = 0, bias = 0;
        range(x, group, &min, &max);
        const bool at_min = fabsf(min) > fabsf(max);
        float scale = fmaxf((max - min) / (float)top, 1e-7f);
        if (!at_min) scale = -scale;
        const float edge = at_min ? min : max, q0 = rintf(edge / scale);
        if (q0 != 0) {
            scale = edge / q0;
            bias = edge;
        }
        scales[g] = scale;
        biases[g] = bias;
        for (size_t l = 0; l < group; l++)
            put_code(out, g * group + l, bits,
                     (unsigned)qn_clip(rintf((x[l] - bias) / scale), 0, top));
    }
}
