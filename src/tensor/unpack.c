/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - the scalar reference: what the bytes of each weight format mean, to the last bit.
 *
 * Written for the eye and for being right; kernels have their own ways to the same values. Loads are
 * bytewise, so no alignment is assumed.
 */
#include <math.h>
#include <string.h>

#include "tensor/format_int.h"

static const uint8_t *first_block(const qn_matrix *w, uint32_t row, uint32_t begin)
{
    const qn_format *f = qn_format_get(w->fmt);
    return (const uint8_t *)w->data + row * w->ld_bytes + (size_t)(begin / f->block) * f->bytes;
}

/* -- plain ------------------------------------------------------------------------------------- */

void qn_unpack_F32(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    memcpy(out, first_block(w, row, begin), (size_t)n * sizeof *out);
}

void qn_unpack_F16(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *p = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i++, p += 2) out[i] = load_f16(p);
}

void qn_unpack_BF16(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *p = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i++, p += 2) out[i] = qn_bf16_to_f32(load_u16(p));
}

/* -- blocks of 32: weight l in the low nibble of byte l, weight l + 16 in its high nibble ------ */

static int nibble(const uint8_t *qs, uint32_t l) { return l < 16 ? qs[l] & 15 : qs[l - 16] >> 4; }
static int fifth_bit(const uint8_t *qh, uint32_t l) { return (qh[l / 8] >> (l % 8) & 1) << 4; }

/* Q4_0: f16 d | 16 bytes of nibbles, w = d (q - 8) */
void qn_unpack_Q4_0(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += 32, b += 18) {
        const float d = load_f16(b);
        for (uint32_t l = 0; l < 32; l++) out[i + l] = d * (float)(nibble(b + 2, l) - 8);
    }
}

/* Q4_1: f16 d | f16 m | nibbles, w = d q + m */
void qn_unpack_Q4_1(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += 32, b += 20) {
        const float d = load_f16(b), m = load_f16(b + 2);
        for (uint32_t l = 0; l < 32; l++) out[i + l] = fmaf(d, (float)nibble(b + 4, l), m);
    }
}

/* Q5_0: f16 d | 32 fifth bits | nibbles, w = d (q - 16) */
void qn_unpack_Q5_0(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += 32, b += 22) {
        const float d = load_f16(b);
        for (uint32_t l = 0; l < 32; l++)
            out[i + l] = d * (float)((nibble(b + 6, l) | fifth_bit(b + 2, l)) - 16);
    }
}

/* Q5_1: f16 d | f16 m | 32 fifth bits | nibbles, w = d q + m */
void qn_unpack_Q5_1(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += 32, b += 24) {
        const float d = load_f16(b), m = load_f16(b + 2);
        for (uint32_t l = 0; l < 32; l++)
            out[i + l] = fmaf(d, (float)(nibble(b + 8, l) | fifth_bit(b + 4, l)), m);
    }
}

/* Q8_0: f16 d | 32 int8, w = d q */
void qn_unpack_Q8_0(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += 32, b += 34) {
        const float d = load_f16(b);
        for (uint32_t l = 0; l < 32; l++) out[i + l] = d * (float)(int8_t)b[2 + l];
    }
}

/* -- K blocks of 256 --------------------------------------------------------------------------- */

/* Two bits of weight e: bytes hold four planes of 32 weights, one half block (128) after the other. */
static int two_bits(const uint8_t *qs, uint32_t e)
{
    return qs[e / 128 * 32 + e % 32] >> (e % 128 / 32 * 2) & 3;
}

/* Four bits of weight e: bytes hold two planes of 32 weights, 64 after 64. */
static int four_bits(const uint8_t *qs, uint32_t e)
{
    return qs[e / 64 * 32 + e % 32] >> (e % 64 / 32 * 4) & 15;
}

/* One bit of weight e: 32 bytes hold eight planes of 32 weights. */
static int one_bit(const uint8_t *qh, uint32_t e) { return qh[e % 32] >> (e / 32) & 1; }

/* Q4_K and Q5_K: the 6-bit scale and 6-bit minimum of sub-block j out of 12 bytes. The upper two
 * bits of entries 4 to 7 sit on top of entries 0 to 3. */
static void scale_and_min(const uint8_t *s, uint32_t j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *min = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

/* Q3_K: the 6-bit scale of sub-block j out of 12 bytes: low nibbles of 0 to 7, high nibbles for 8 to
 * 15, then two bits each. */
static int scale_q3(const uint8_t *s, uint32_t j)
{
    const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return (low | (s[8 + j % 4] >> (j / 4 * 2) & 3) << 4) - 32;
}

void qn_unpack_Q2_K(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += QN_KQ, b += 84) {
        const float d = load_f16(b + QN_Q2K_D), dmin = load_f16(b + QN_Q2K_DMIN);
        for (uint32_t e = 0; e < QN_KQ; e++) {
            const int s = b[QN_Q2K_SCALES + e / 16];
            out[i + e] = fmaf(d * (float)(s & 15), (float)two_bits(b + QN_Q2K_QS, e),
                              -(dmin * (float)(s >> 4)));
        }
    }
}

void qn_unpack_Q3_K(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += QN_KQ, b += 110) {
        const float d = load_f16(b + QN_Q3K_D);
        for (uint32_t e = 0; e < QN_KQ; e++) {
            const int q = two_bits(b + QN_Q3K_QS, e) - (one_bit(b + QN_Q3K_HMASK, e) ? 0 : 4);
            out[i + e] = d * (float)scale_q3(b + QN_Q3K_SCALES, e / 16) * (float)q;
        }
    }
}

void qn_unpack_Q4_K(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += QN_KQ, b += 144) {
        const float d = load_f16(b + QN_Q45K_D), dmin = load_f16(b + QN_Q45K_DMIN);
        for (uint32_t e = 0; e < QN_KQ; e++) {
            int sc = 0, m = 0;
            scale_and_min(b + QN_Q45K_SCALES, e / 32, &sc, &m);
            out[i + e] =
                fmaf(d * (float)sc, (float)four_bits(b + QN_Q4K_QS, e), -(dmin * (float)m));
        }
    }
}

void qn_unpack_Q5_K(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += QN_KQ, b += 176) {
        const float d = load_f16(b + QN_Q45K_D), dmin = load_f16(b + QN_Q45K_DMIN);
        for (uint32_t e = 0; e < QN_KQ; e++) {
            int sc = 0, m = 0;
            scale_and_min(b + QN_Q45K_SCALES, e / 32, &sc, &m);
            const int q = four_bits(b + QN_Q5K_QS, e) | one_bit(b + QN_Q5K_QH, e) << 4;
            out[i + e] = fmaf(d * (float)sc, (float)q, -(dmin * (float)m));
        }
    }
}

/* Low nibbles: per half block 64 bytes, weights 0 to 63 low, 64 to 127 high. */
void qn_unpack_Q6_K(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const uint8_t *b = first_block(w, row, begin);
    for (uint32_t i = 0; i < n; i += QN_KQ, b += 210) {
        const float d = load_f16(b + QN_Q6K_D);
        for (uint32_t e = 0; e < QN_KQ; e++) {
            const int low = b[QN_Q6K_QL + e / 128 * 64 + e % 64] >> (e % 128 / 64 * 4) & 15;
            const int q = (low | two_bits(b + QN_Q6K_QH, e) << 4) - 32;
            out[i + e] = d * (float)(int8_t)b[QN_Q6K_SCALES + e / 16] * (float)q;
        }
    }
}

/* -- affine ------------------------------------------------------------------------------------ */

static float load_scale(const void *plane, qn_fmt fmt, size_t i)
{
    const uint8_t *p = plane;
    float f = 0;
    if (fmt == QN_FMT_F16) return load_f16(p + 2 * i);
    if (fmt == QN_FMT_BF16) return qn_bf16_to_f32(load_u16(p + 2 * i));
    memcpy(&f, p + 4 * i, sizeof f);
    return f;
}

/* Code i of a row: bits [i b, (i + 1) b) of a little-endian bit stream; at most two bytes. */
static int code_at(const uint8_t *row, size_t i, unsigned bits)
{
    const size_t at = i * bits;
    const unsigned shift = at % 8;
    unsigned v = row[at / 8];
    if (shift + bits > 8) v |= (unsigned)row[at / 8 + 1] << 8;
    return (int)(v >> shift & ((1u << bits) - 1));
}

void qn_unpack_affine(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n)
{
    const qn_format *f = qn_format_get(w->fmt);
    const uint8_t *codes = (const uint8_t *)w->data + row * w->ld_bytes;
    for (uint32_t i = 0; i < n; i += f->block) {
        const size_t group = row * w->ld_scale + (begin + i) / f->block;
        const float scale = load_scale(w->scales, w->scale_fmt, group);
        const float bias = load_scale(w->biases, w->scale_fmt, group);
        for (uint32_t l = 0; l < f->block; l++)
            out[i + l] = fmaf(scale, (float)code_at(codes, (size_t)begin + i + l, f->bits), bias);
    }
}
