/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - random bits as a pure function of their name: Philox-4x32-10.
 *
 *     counter = (id / 4, index, choice, purpose)    key = (seed low, seed high)
 *     bits(seed, choice, index, purpose, id) = philox(counter, key)[id % 4]
 *
 * No state, so a draw depends neither on the batch nor on what was drawn before. One block gives the
 * bits of four neighbouring ids; everything works on uint32_t, so a kernel may run one block a lane.
 *
 * Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"; the
 *         tests hold the known-answer vectors that the authors publish with Random123.
 * Thread: values only.
 */
#ifndef QN_BASE_RNG_H
#define QN_BASE_RNG_H
#include "base/status.h"

/* What the bits are for. Append only: the numbers are part of every seeded result. */
typedef enum qn_rng_purpose {
    QN_RNG_DRAW = 0, /* the Gumbel noise of the token draw */
    QN_RNG_XTC = 1,
    QN_RNG_DRAFT = 2, /* a draft model's own draws */
    QN_RNG_INIT = 3,  /* weights of new adapters and test models */
    QN_RNG_DATA = 4   /* order and dropout in training */
} qn_rng_purpose;

static inline uint32_t qn_philox_hi(uint32_t a, uint32_t b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* Ten rounds over counter c[4] in place, key (k0, k1). */
static inline void qn_philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        const uint32_t hi0 = qn_philox_hi(0xD2511F53u, c[0]), lo0 = 0xD2511F53u * c[0];
        const uint32_t hi1 = qn_philox_hi(0xCD9E8D57u, c[2]), lo1 = 0xCD9E8D57u * c[2];
        c[0] = hi1 ^ c[1] ^ k0;
        c[1] = lo1;
        c[2] = hi0 ^ c[3] ^ k1;
        c[3] = lo0;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
}

/* The bits of ids 4*quad .. 4*quad+3. */
static inline void qn_rng_quad(uint32_t out[4], uint64_t seed, uint32_t choice, uint32_t index,
                               uint32_t purpose, uint32_t quad)
{
    out[0] = quad;
    out[1] = index;
    out[2] = choice;
    out[3] = purpose;
    qn_philox(out, (uint32_t)seed, (uint32_t)(seed >> 32));
}

static inline uint32_t qn_rng_u32(uint64_t seed, uint32_t choice, uint32_t index, uint32_t purpose,
                                  uint32_t id)
{
    uint32_t out[4];
    qn_rng_quad(out, seed, choice, index, purpose, id / 4);
    return out[id % 4];
}

/* Bits to a float in the open interval (0, 1): (bits + 1/2) / 2^32, rounded, at most 1 - 2^-24. The
 * steps are finest near 0 (2^-33), so write the tail that decides on that side: an exponential is
 * -log1p(-u), Gumbel noise is -log(-log1p(-u)), and its maximum over 2^18 ids has no visible steps.
 * Exact in any vector form that converts 32-bit integers with one rounding. */
static inline float qn_rng_unit(uint32_t bits)
{
    const float u = ((float)bits + 0.5f) * 0x1p-32f;
    return u < 0x1.fffffep-1f ? u : 0x1.fffffep-1f;
}

/* A seed from the system's entropy. Errors: IO. */
qn_code qn_rng_fresh_seed(uint64_t *out, qn_err *err);

#endif
