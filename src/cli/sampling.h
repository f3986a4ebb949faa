/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.h - how tokens are drawn: options that verbs share. Each tells whether it was given, so
 * that the model's own recipe counts where nothing was said. */
#ifndef QN_CLI_SAMPLING_H
#define QN_CLI_SAMPLING_H
#include "cli/cli.h"

typedef struct qn_sampling {
    float temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty,
        xtc_probability, xtc_threshold;
    uint32_t top_k, max_tokens, min_tokens;
    uint64_t seed;
    bool has_temperature, has_top_p, has_min_p, has_repetition_penalty, has_presence_penalty,
        has_frequency_penalty, has_xtc_probability, has_xtc_threshold, has_top_k, has_max_tokens,
        has_min_tokens, has_seed;
} qn_sampling;

/* clang-format off */
/* Rows of the option table for member `sampling` of `type`, which may not be its first. */
#define QN_SAMPLING_OPTION(type, name, kind, member, arg, help, lo, hi)                             \
    {                                                                                               \
        name, QN_OPT_##kind, offsetof(type, sampling.member), arg, help, lo, hi,                    \
            offsetof(type, sampling.has_##member)                                                   \
    }
#define QN_SAMPLING_OPTIONS(type) \
    QN_SAMPLING_OPTION(type, "temperature", F32, temperature, "T", "0 takes the likeliest token (the model's recipe, else 0.7)", 0, 100), \
    QN_SAMPLING_OPTION(type, "temp", F32, temperature, "T", NULL, 0, 100), \
    QN_SAMPLING_OPTION(type, "top-p", F32, top_p, "P", "keep the likeliest tokens that sum to P (the model's, else 1)", 0, 1), \
    QN_SAMPLING_OPTION(type, "top-k", U32, top_k, "K", "keep the K likeliest tokens (the model's, else all)", 0, 1 << 24), \
    QN_SAMPLING_OPTION(type, "min-p", F32, min_p, "P", "drop tokens below P times the likeliest (the model's, else 0)", 0, 1), \
    QN_SAMPLING_OPTION(type, "repetition-penalty", F32, repetition_penalty, "X", "divide logits of tokens seen lately by X (the model's, else 1)", 0, 100), \
    QN_SAMPLING_OPTION(type, "presence-penalty", F32, presence_penalty, "X", "take X off the logits of tokens seen lately (0)", -100, 100), \
    QN_SAMPLING_OPTION(type, "frequency-penalty", F32, frequency_penalty, "X", "the same once for each time it was seen (0)", -100, 100), \
    QN_SAMPLING_OPTION(type, "xtc-probability", F32, xtc_probability, "P", "chance that the likeliest tokens are left out but one (0)", 0, 1), \
    QN_SAMPLING_OPTION(type, "xtc-threshold", F32, xtc_threshold, "P", "how likely such tokens must be (0.1)", 0, 0.5), \
    QN_SAMPLING_OPTION(type, "min-tokens", U32, min_tokens, "N", "no end before so many tokens (0)", 0, 1 << 24), \
    QN_SAMPLING_OPTION(type, "max-tokens", U32, max_tokens, "N", "end after so many tokens (what the context holds)", 1, 1 << 24), \
    QN_SAMPLING_OPTION(type, "seed", U64, seed, "N", "seed of the draws (a random one)", 0, 0x1p64)
/* clang-format on */

/* What was given goes over what *ro holds. */
void qn_sampling_apply(quern_request_options *ro, const qn_sampling *s);

#endif
