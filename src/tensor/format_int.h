/* SPDX-License-Identifier: Apache-2.0 */
/* format_int.h - what the files of the weight formats share: little-endian loads and stores, the
 * 6-bit scale tables of K blocks, and the unpack functions that the table in format.c names. */
#ifndef QN_TENSOR_FORMAT_INT_H
#define QN_TENSOR_FORMAT_INT_H
#include "tensor/format.h"

static inline uint16_t load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline float load_f16(const uint8_t *p) { return qn_f16_to_f32(load_u16(p)); }
static inline void store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

enum {
    QN_KQ = 256, /* weights a K block */

    /* Where the parts of a K block begin, in bytes. */
    QN_Q2K_SCALES = 0,
    QN_Q2K_QS = 16,
    QN_Q2K_D = 80,
    QN_Q2K_DMIN = 82,
    QN_Q3K_HMASK = 0,
    QN_Q3K_QS = 32,
    QN_Q3K_SCALES = 96,
    QN_Q3K_D = 108,
    QN_Q45K_D = 0,
    QN_Q45K_DMIN = 2,
    QN_Q45K_SCALES = 4,
    QN_Q4K_QS = 16,
    QN_Q5K_QH = 16,
    QN_Q5K_QS = 48,
    QN_Q6K_QL = 0,
    QN_Q6K_QH = 128,
    QN_Q6K_SCALES = 192,
    QN_Q6K_D = 208,
};

/* qn_unpack_<id> for formats of one plane, one function for all affine ones. */
#define QN_UNPACK_1(id) qn_unpack_##id
#define QN_UNPACK_3(id) qn_unpack_affine
#define X(id, name, block, bytes, planes, order) qn_unpack_fn QN_UNPACK_##planes(id);
#include "tensor/formats.def"
#undef X

/* One encoder a format: n weights, a multiple of the block. False when a scale does not fit f16. */
bool qn_pack_q4_0(uint8_t *out, const float *in, size_t n);
bool qn_pack_q4_1(uint8_t *out, const float *in, size_t n);
bool qn_pack_q5_0(uint8_t *out, const float *in, size_t n);
bool qn_pack_q5_1(uint8_t *out, const float *in, size_t n);
bool qn_pack_q8_0(uint8_t *out, const float *in, size_t n);
bool qn_pack_q2_k(uint8_t *out, const float *in, size_t n);
bool qn_pack_q3_k(uint8_t *out, const float *in, size_t n);
bool qn_pack_q4_k(uint8_t *out, const float *in, size_t n);
bool qn_pack_q5_k(uint8_t *out, const float *in, size_t n);
bool qn_pack_q6_k(uint8_t *out, const float *in, size_t n);
void qn_pack_affine(uint8_t *out, float *scales, float *biases, unsigned bits, size_t group,
                    const float *in, size_t n);

/* Stores a scale as f16 and gives it back as a decoder sees it; clears *ok when it is not finite. */
float qn_store_scale(uint8_t *p, float scale, bool *ok);

/* v, which is already rounded or is to be cut, as an integer in [lo, hi]; NaN gives lo. */
static inline int qn_clip(float v, int lo, int hi)
{
    if (!(v > (float)lo)) return lo;
    return v >= (float)hi ? hi : (int)v;
}

#endif
