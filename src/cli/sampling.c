/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.c - the shared options as fields of a request. */
#include "cli/sampling.h"

void qn_sampling_apply(quern_request_options *ro, const qn_sampling *s)
{
    if (s->has_temperature) ro->temperature = s->temperature;
    if (s->has_top_p) ro->top_p = s->top_p;
    if (s->has_min_p) ro->min_p = s->min_p;
    if (s->has_repetition_penalty) ro->repetition_penalty = s->repetition_penalty;
    if (s->has_presence_penalty) ro->presence_penalty = s->presence_penalty;
    if (s->has_frequency_penalty) ro->frequency_penalty = s->frequency_penalty;
    if (s->has_xtc_probability) ro->xtc_probability = s->xtc_probability;
    if (s->has_xtc_threshold) ro->xtc_threshold = s->xtc_threshold;
    if (s->has_top_k) ro->top_k = s->top_k;
    if (s->has_max_tokens) ro->max_tokens = s->max_tokens;
    if (s->has_min_tokens) ro->min_tokens = s->min_tokens;
    if (s->has_seed) ro->seed = s->seed;
    if (s->has_seed) ro->flags |= QUERN_REQUEST_SEED;
}
