/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.c - the shared options as fields of a request, and as the flags of a server.
 *
 * Thread: main.
 */
#include "cli/sampling.h"

void qn_sampling_apply(quern_request_options *ro, const qn_sampling *s)
{
    if (s->has_temperature) ro->temperature = s->temperature;
    if (s->has_top_p) ro->top_p = s->top_p;
    if (s->has_min_p) ro->min_p = s->min_p;
    if (s->has_repetition_penalty) ro->repetition_penalty = s->repetition_penalty;
    if (s->has_presence_penalty) ro->presence_penalty = s->presence_penalty;
    if (s->has_frequency_penalty) ro->frequency_penalty = s->frequency_penalty;
    if (s->has_repetition_context) ro->repetition_context = s->repetition_context;
    if (s->has_presence_context) ro->presence_context = s->presence_context;
    if (s->has_frequency_context) ro->frequency_context = s->frequency_context;
    if (s->has_xtc_probability) ro->xtc_probability = s->xtc_probability;
    if (s->has_xtc_threshold) ro->xtc_threshold = s->xtc_threshold;
    if (s->has_top_k) ro->top_k = s->top_k;
    if (s->has_max_tokens) ro->max_tokens = s->max_tokens;
    if (s->has_max_tokens && s->max_tokens == 0) ro->flags |= QUERN_REQUEST_NO_TOKENS;
    if (s->has_min_tokens) ro->min_tokens = s->min_tokens;
    if (s->has_seed) ro->seed = s->seed;
    if (s->has_seed) ro->flags |= QUERN_REQUEST_SEED;
}

void qn_sampling_flags(qn_request_sampling *out, const qn_sampling *s)
{
    *out = (qn_request_sampling){
        .temperature = s->temperature,
        .top_p = s->top_p,
        .top_k = s->top_k,
        .min_p = s->min_p,
        .repetition_penalty = s->repetition_penalty,
        .presence_penalty = s->presence_penalty,
        .frequency_penalty = s->frequency_penalty,
        .repetition_context = s->repetition_context,
        .presence_context = s->presence_context,
        .frequency_context = s->frequency_context,
        .xtc_probability = s->xtc_probability,
        .xtc_threshold = s->has_xtc_threshold ? s->xtc_threshold : 0.1f, /* one bit for both */
        .seed = s->seed,
        .has_seed = s->has_seed,
    };
    out->set = (s->has_temperature ? QN_SET_TEMPERATURE : 0u) | (s->has_top_p ? QN_SET_TOP_P : 0u) |
               (s->has_top_k ? QN_SET_TOP_K : 0u) | (s->has_min_p ? QN_SET_MIN_P : 0u) |
               (s->has_repetition_penalty ? QN_SET_REPETITION : 0u) |
               (s->has_presence_penalty ? QN_SET_PRESENCE : 0u) |
               (s->has_frequency_penalty ? QN_SET_FREQUENCY : 0u) |
               (s->has_repetition_context ? QN_SET_REPETITION_CONTEXT : 0u) |
               (s->has_presence_context ? QN_SET_PRESENCE_CONTEXT : 0u) |
               (s->has_frequency_context ? QN_SET_FREQUENCY_CONTEXT : 0u) |
               (s->has_xtc_probability || s->has_xtc_threshold ? QN_SET_XTC : 0u);
}
