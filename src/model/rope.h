/* SPDX-License-Identifier: Apache-2.0 */
/* rope.h - inverse frequencies of rotary embeddings and their long-context variants.
 *
 * One table per model, computed once, in float32 and in the order of operations that transformers
 * uses, so that angles agree with the oracle to the last bits.
 *
 *     default  f_i = 1 / theta^(2i / dims)
 *     linear   f_i / factor
 *     llama3   long waves divided by factor, middle ones blended
 *     yarn     interpolated and extrapolated frequencies blended by a ramp over i; magnitude scale
 *     longrope f_i / long_factor_i; magnitude scale. The long list always, so that a position's
 *              angle does not depend on how long the text will be
 *
 * Source: engine specification 1.1; Peng et al. 2023, arXiv 2309.00071 (yarn); Ding et al. 2024,
 *         arXiv 2402.13753 (longrope).
 * Thread: values only.
 */
#ifndef QN_MODEL_ROPE_H
#define QN_MODEL_ROPE_H
#include "model/source.h"

typedef enum qn_rope_kind {
    QN_ROPE_DEFAULT,
    QN_ROPE_LINEAR,
    QN_ROPE_LLAMA3,
    QN_ROPE_YARN,
    QN_ROPE_LONG
} qn_rope_kind;

typedef enum qn_rope_layers { /* whose settings: files may hold two sets */
                              QN_ROPE_OF_ALL,
                              QN_ROPE_OF_FULL,
                              QN_ROPE_OF_SLIDING
} qn_rope_layers;

enum { QN_ROPE_MAX_PAIRS = 512 };

typedef struct qn_rope_spec {
    qn_rope_layers layers;
    qn_rope_kind kind;
    float theta;   /* before reading: the default where not 0 */
    uint32_t dims; /* rotated per head: pairs are dims / 2 */
    float factor, low, high, beta_fast, beta_slow;
    float magnitude; /* of yarn and longrope where the file names it; 0: computed */
    float mscale, mscale_all, magnify; /* what it is computed from (yarn); a factor on top (GGUF) */
    uint32_t original;                 /* positions before stretching */
    uint32_t context;
    uint32_t n_factors; /* divisors per pair: longrope's list, or the rope_freqs tensor */
    float factors[QN_ROPE_MAX_PAIRS];
} qn_rope_spec;

/* Reads theta and scaling; dims and context must be set. Errors: UNSUPPORTED names a variant that is
 * not done; FORMAT and LIMIT for values out of range. */
qn_code qn_rope_read(qn_rope_spec *r, const qn_source *s, qn_err *err);
/* inv_freq [dims / 2] and the magnitude scale of cos and sin. Errors: FORMAT when a frequency comes
 * out not finite. */
qn_code qn_rope_frequencies(float *inv_freq, float *mscale, const qn_rope_spec *r, qn_err *err);

#endif
