/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.h - how tokens are drawn: one table of options for every verb that generates. Each option
 * tells whether it was given, so that what counts otherwise (the model's recipe in a chat, greedy in
 * generate) is left to the verb. Names and bounds are those of the request fields (api/fields.def), and
 * a test holds the two together; whole numbers end at 32 bits, where those of requests are cut.
 *
 * Thread: main.
 */
#ifndef QN_CLI_SAMPLING_H
#define QN_CLI_SAMPLING_H
#include "cli/cli.h"
#include "server/server.h"

typedef struct qn_sampling {
    float temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty,
        xtc_probability, xtc_threshold;
    uint32_t top_k, repetition_context, presence_context, frequency_context, max_tokens, min_tokens;
    uint64_t seed;
    bool has_temperature, has_top_p, has_min_p, has_repetition_penalty, has_presence_penalty,
        has_frequency_penalty, has_xtc_probability, has_xtc_threshold, has_top_k,
        has_repetition_context, has_presence_context, has_frequency_context, has_max_tokens,
        has_min_tokens, has_seed;
} qn_sampling;

/* clang-format off */
/* Rows of the option table for member `sampling` of `type`, which may not be its first. The words in
 * brackets tell what counts when the option is not given: `temperature` and `max_tokens` are literals,
 * `model` is "the model's, else " or "". */
#define QN_SAMPLING_OPTION(type, name, kind, member, arg, help, lo, hi)                             \
    {                                                                                               \
        name, QN_OPT_##kind, offsetof(type, sampling.member), arg, help, lo, hi,                    \
            offsetof(type, sampling.has_##member)                                                   \
    }
#define QN_SAMPLING_OPTIONS(type, model, temperature_default, max_tokens_default) \
    QN_SAMPLING_OPTION(type, "temperature", F32, temperature, "T", "0 takes the likeliest token (" model temperature_default ")", 0, 1e6), \
    QN_SAMPLING_OPTION(type, "temp", F32, temperature, "T", NULL, 0, 1e6), \
    QN_SAMPLING_OPTION(type, "top-p", F32, top_p, "P", "keep the likeliest tokens that sum to P; 0 and 1 are off (" model "off)", 0, 1), \
    QN_SAMPLING_OPTION(type, "top-k", U32, top_k, "K", "keep the K likeliest tokens; 0 is off (" model "off)", 0, UINT32_MAX), \
    QN_SAMPLING_OPTION(type, "min-p", F32, min_p, "P", "drop tokens below P times the likeliest (" model "off)", 0, 1), \
    QN_SAMPLING_OPTION(type, "repetition-penalty", F32, repetition_penalty, "X", "divide logits of seen tokens by X, multiply those below 0; 0 and 1 are off (" model "off)", 0, 1e6), \
    QN_SAMPLING_OPTION(type, "repetition-context", U32, repetition_context, "N", "tokens that it looks back; 0: all (20)", 0, UINT32_MAX), \
    QN_SAMPLING_OPTION(type, "presence-penalty", F32, presence_penalty, "X", "take X off the logits of seen tokens (0)", -1e6, 1e6), \
    QN_SAMPLING_OPTION(type, "presence-context", U32, presence_context, "N", "tokens that it looks back; 0: all (20)", 0, UINT32_MAX), \
    QN_SAMPLING_OPTION(type, "frequency-penalty", F32, frequency_penalty, "X", "take X off for each time that a token was seen (0)", -1e6, 1e6), \
    QN_SAMPLING_OPTION(type, "frequency-context", U32, frequency_context, "N", "tokens that it looks back; 0: all (20)", 0, UINT32_MAX), \
    QN_SAMPLING_OPTION(type, "xtc-probability", F32, xtc_probability, "P", "chance that all tokens above the threshold but the least likely go (0)", 0, 1), \
    QN_SAMPLING_OPTION(type, "xtc-threshold", F32, xtc_threshold, "P", "probability that XTC looks for (0.1)", 0, 0.5), \
    QN_SAMPLING_OPTION(type, "seed", U64, seed, "N", "seed of the draws (a random one)", 0, 0x1p64), \
    QN_SAMPLING_OPTION(type, "max-tokens", U32, max_tokens, "N", "end after so many tokens (" max_tokens_default ")", 0, UINT32_MAX)
/* A server has no such flag: there it is a matter of each request. */
#define QN_SAMPLING_MIN_TOKENS(type) \
    QN_SAMPLING_OPTION(type, "min-tokens", U32, min_tokens, "N", "do not end before so many tokens (0)", 0, UINT32_MAX)
/* clang-format on */

/* What was given goes over what *ro holds. */
void qn_sampling_apply(quern_request_options *ro, const qn_sampling *s);
/* What was given as the flags of a server, all but max_tokens. */
void qn_sampling_flags(qn_request_sampling *out, const qn_sampling *s);

#endif
