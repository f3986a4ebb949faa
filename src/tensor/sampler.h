/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - how one row's next token is drawn, as data: the same struct travels in requests, in
 * steps and into the draw kernel.
 *
 * Order (mlx-lm's): temperature 0 takes the largest logit, first index on ties. Otherwise filters at
 * temperature 1, each only when active: top-p, min-p, top-k; then the draw at the temperature as
 * Gumbel-max over the survivors, one counter-generator value per (seed, choice, index, token id), so
 * that a draw depends on nothing but these (rule R6). At least the most likely token survives.
 */
#ifndef QN_TENSOR_SAMPLER_H
#define QN_TENSOR_SAMPLER_H
#include <stdint.h>

typedef struct qn_sampler {
    uint64_t seed;
    uint32_t choice;   /* which of the request's n choices */
    uint32_t index;    /* of the token within the completion, from 0 */
    float temperature; /* >= 0; 0 is greedy */
    float top_p;       /* active in (0, 1) */
    float min_p;       /* active in (0, 1] */
    uint32_t top_k;    /* 0: off */
} qn_sampler;

typedef struct qn_drawn { /* what came of it */
    uint32_t token;
    float logit;     /* of the token, as the model gave it */
    float logprob;   /* log-softmax of the row at the token, before any filter */
    uint32_t n_kept; /* tokens that survived the filters; 1 when greedy */
} qn_drawn;

#endif
