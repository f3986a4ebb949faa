/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - defaults, checks and the top of a row. Thread: values only. */
#include "sample/sample.h"

#include <math.h>

qn_sampler qn_sample_default(void) { return (qn_sampler){.temperature = 0.7f}; }

static qn_code in_unit(const char *field, float v, qn_err *err)
{
    if (v >= 0.0f && v <= 1.0f) return QN_OK;
    return qn_fail(err, QN_E_INVAL, "%s is %g, expected 0 to 1", field, (double)v);
}

qn_code qn_sample_check(const qn_sampler *s, qn_err *err)
{
    if (!(s->temperature >= 0.0f && s->temperature < INFINITY))
        return qn_fail(err, QN_E_INVAL, "temperature is %g, expected at least 0",
                       (double)s->temperature);
    QN_TRY(in_unit("top_p", s->top_p, err));
    QN_TRY(in_unit("min_p", s->min_p, err));
    QN_TRY(in_unit("xtc_probability", s->xtc_probability, err));
    if (s->xtc_threshold >= 0.0f && s->xtc_threshold <= 0.5f) return QN_OK;
    return qn_fail(err, QN_E_INVAL, "xtc_threshold is %g, expected 0 to 0.5",
                   (double)s->xtc_threshold);
}

float qn_sample_logprob(float logit, const qn_drawn *drawn)
{
    return (logit - drawn->logit) + drawn->logprob;
}

uint32_t qn_sample_top(qn_top *out, uint32_t k, const float *logits, uint32_t vocab,
                       const qn_drawn *drawn)
{
    uint32_t n = 0;
    float least = -INFINITY; /* what a token must exceed; NaN never does */
    for (uint32_t id = 0; id < vocab && k > 0; id++) {
        if (!(logits[id] > least)) continue;
        uint32_t at = n < k ? n++ : k - 1;
        for (; at > 0 && out[at - 1].logprob < logits[id]; at--) out[at] = out[at - 1];
        out[at] = (qn_top){id, logits[id]};
        if (n == k) least = out[k - 1].logprob;
    }
    for (uint32_t i = 0; i < n; i++) out[i].logprob = qn_sample_logprob(out[i].logprob, drawn);
    return n;
}
