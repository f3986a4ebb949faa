/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - how one row's next token is drawn, as data: the same structs travel in steps and into
 * the kernels.
 *
 * Order (mlx-lm's): logits are adjusted first, by bias, repetition, presence and frequency; what comes
 * of it is what logprobs are of. Temperature 0 takes the largest logit, first index on ties. Otherwise
 * filters at temperature 1, each only when active: top-p, min-p, XTC, top-k; then the draw at the
 * temperature as Gumbel-max over the survivors, one counter-generator value per (seed, choice, index,
 * token id), so that a draw depends on nothing but these (rule R6). At least one token survives.
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
    /* XTC, when its own draw (purpose QN_RNG_XTC, id 0) is at most the probability: of the tokens with a
     * probability above the threshold, renormalised over what the filters before left, only those as
     * unlikely as the least stay; ids that are spared stay anyway. */
    float xtc_probability; /* active in (0, 1] */
    float xtc_threshold;
} qn_sampler;

enum {                             /* qn_edit.flags */
       QN_EDIT_REPEATED = 1u << 0, /* seen in the window of the repetition penalty */
       QN_EDIT_PRESENT = 1u << 1   /* seen in that of the presence penalty */
};
typedef struct qn_edit { /* what happens to the logit of one token of a row */
    uint32_t token;
    float bias;    /* added first; -inf: cannot be drawn */
    uint32_t seen; /* how often in the window of the frequency penalty */
    uint32_t flags;
} qn_edit;

typedef struct qn_adjust { /* of a logit row */
    uint32_t at, n;        /* its edits: a slice of the step's, each token once */
    float repetition;      /* > 0 where an edit is REPEATED */
    float presence, frequency;
} qn_adjust;

typedef struct qn_drawn { /* what came of it */
    uint32_t token;
    float logit;     /* of the token, adjusted */
    float logprob;   /* log-softmax of the adjusted row at the token, before any filter */
    uint32_t n_kept; /* tokens that survived the filters; 1 when greedy */
} qn_drawn;

#endif
