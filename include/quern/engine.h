/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - an engine steps many requests of one model together, on a thread of its own.
 *
 * What a request gets depends on the request alone: not on its neighbours, not on how its prompt was
 * cut, not on how many lanes there are.
 *
 * Owner:  the caller; it holds a reference to the model.
 * Thread: open and close from one thread; all else from any.
 */
#ifndef QUERN_ENGINE_H
#define QUERN_ENGINE_H
#include "quern/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_engine quern_engine;

typedef enum quern_kv {                       /* how keys and values are stored */
                        QUERN_KV_DEFAULT = 0, /* f16 */
                        QUERN_KV_F32 = 1,
                        QUERN_KV_F16 = 2,
                        QUERN_KV_BF16 = 3
} quern_kv;

enum {                                    /* quern_engine_options.flags */
       QUERN_ENGINE_NO_PREFIX_CACHE = 1u, /* no request uses or leaves a prefix */
       QUERN_ENGINE_NO_FUSE = 2u          /* every primitive op runs alone; for comparison */
};

typedef struct quern_engine_options {
    size_t size;       /* sizeof(quern_engine_options) */
    uint32_t threads;  /* lanes; 0: the runtime's */
    uint32_t max_rows; /* token rows of one step: the prefill chunk; 0: 512 */
    uint32_t max_seqs; /* requests stepped together; 0: 8 */
    uint32_t context;  /* positions a sequence may reach; 0: the model's */
    quern_kv kv;
    uint32_t queue;     /* waiting requests before AGAIN; 0: 256 */
    uint32_t flags;     /* QUERN_ENGINE_ */
    uint64_t kv_budget; /* bytes of keys and values; 0: chosen from the above and the memory */
} quern_engine_options;
#define QUERN_ENGINE_OPTIONS_INIT                                           \
    {                                                                       \
        sizeof(quern_engine_options), 0, 0, 0, 0, QUERN_KV_DEFAULT, 0, 0, 0 \
    }

/* *out is owned (quern_engine_close). Errors: INVAL (an option, named), LIMIT, IO; NOMEM when weights,
 * plans and the keys and values of one sequence do not fit, with the numbers
 * (quern_fit tells them before). */
QUERN_API quern_code quern_engine_open(quern_engine **out, quern_model *model,
                                       const quern_engine_options *opt, quern_error *err);
/* Cancels what runs: every open request gets its last event. Requests must not be used during the
 * call; afterwards they may only be read (quern_request_next) and freed. NULL is fine. */
QUERN_API void quern_engine_close(quern_engine *e);

typedef struct quern_engine_stats {
    size_t size; /* sizeof(quern_engine_stats), set by the caller */
    uint64_t steps, prompt_tokens, cached_tokens, completion_tokens;
    uint64_t kv_bytes, plan_bytes;
    double busy_s; /* seconds spent in steps */
    uint32_t running, waiting;
    uint64_t kv_used_bytes; /* of kv_bytes, which is the most: what runs and what prefixes hold */
    uint64_t
        numerics[2]; /* identity of the arithmetic: equal ids give equal bits (kernels, weights,
                               activations, format of keys and values) */
} quern_engine_stats;
/* Errors: INVAL. */
QUERN_API quern_code quern_engine_get_stats(quern_engine *e, quern_engine_stats *stats,
                                            quern_error *err);

#ifdef __cplusplus
}
#endif
#endif
