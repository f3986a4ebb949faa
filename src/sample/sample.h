/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - the host's side of the sampler: what counts when nothing is said, which values are
 * refused, and the most likely tokens of a row. Drawing itself is an op (graph/graph.h, qn_g_draw).
 *
 * Thread: values only.
 */
#ifndef QN_SAMPLE_SAMPLE_H
#define QN_SAMPLE_SAMPLE_H
#include "base/status.h"
#include "tensor/sampler.h"

/* The built-in: temperature 0.7, no filter; seed, choice and index 0. */
qn_sampler qn_sample_default(void);
/* Errors: INVAL names the field, what was found and what was expected. */
qn_code qn_sample_check(const qn_sampler *s, qn_err *err);

typedef struct qn_top {
    uint32_t token;
    float logprob;
} qn_top;

/* The k most likely tokens of a row, most likely first, the lower id first on ties; fewer when fewer
 * are above -inf. `drawn` is what came of the same row: it carries the row's log-sum, so the drawn
 * token's own logprob comes out as drawn->logprob to the last bit. out [k]; returns how many. */
uint32_t qn_sample_top(qn_top *out, uint32_t k, const float *logits, uint32_t vocab,
                       const qn_drawn *drawn);
/* The logprob of one token of that row. */
float qn_sample_logprob(float logit, const qn_drawn *drawn);

#endif
