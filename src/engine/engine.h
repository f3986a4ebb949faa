/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - one model's engine: many requests stepped together on one thread of their own.
 *
 *     submit ─► queue ─► admission ─► prefill in chunks ─► decode ─► events ─► done
 *
 * Each turn the engine makes one step out of all live rows: decode rows first, then as many prompt
 * rows as the row budget allows. What a request gets depends on nothing but the request (promise 1).
 *
 * Owner:  whoever opened it; it holds a reference to the model.
 * Thread: open and close from one thread; submit, cancel and stats from any. Events are called on the
 *         engine thread: they must not block, and may not call back into the engine but for cancel.
 */
#ifndef QN_ENGINE_ENGINE_H
#define QN_ENGINE_ENGINE_H
#include "model/model.h"
#include "wire/event.h"
#include "wire/request.h"

typedef struct qn_engine qn_engine;

enum { QN_ENGINE_SEQS = 8, QN_ENGINE_ROWS = 512, QN_ENGINE_QUEUE = 256, QN_ENGINE_LOGITS = 16 };

typedef struct qn_engine_options {
    unsigned lanes;    /* 0: one per physical core */
    uint32_t isa_mask; /* CPU features kernels may use; 0: all there are */
    uint32_t max_rows; /* row budget of a step (prefill chunk); 0: 512 */
    uint32_t max_seqs; /* requests stepped together; 0: 8 */
    uint32_t context;  /* positions a sequence may reach; 0: the model's */
    qn_kv_fmt kv_fmt;
    size_t kv_budget; /* bytes; 0: max_seqs times the context, at most a quarter of memory */
    size_t kv_room;   /* what a budget that is chosen must not pass; 0: the system alone decides */
    uint32_t queue;   /* waiting requests before AGAIN; 0: 256 */
    uint32_t edits;   /* of logits in one step, at least those of one row; 0: chosen. For tests */
    bool no_prefix_cache;
    bool no_fuse;
} qn_engine_options;

qn_code qn_engine_open(qn_engine **out, qn_model *model, const qn_engine_options *opt, qn_err *err);
/* Cancels what runs, joins the thread. NULL is fine. */
void qn_engine_close(qn_engine *e);

/* Called for every event of a request, in order; every choice ends with a done event, or the whole
 * request with one error event. After the last of these ctx is not used again. `event` is a checked
 * block, borrowed for the call. */
typedef void qn_event_fn(void *ctx, const qn_event_head *event);

/* Checks the request block (wire/request.h) and queues it; *id names it from now on. Errors: INVAL
 * and LIMIT with the field, AGAIN when the queue is full, FORMAT for a bad block. */
qn_code qn_engine_submit(uint64_t *id, qn_engine *e, const void *request, size_t n, qn_event_fn *fn,
                         void *ctx, qn_err *err);
/* Stops a request at the next step border; its last event is done with reason cancelled. Unknown ids
 * are fine. */
void qn_engine_cancel(qn_engine *e, uint64_t id);

/* For tests and tools: called on the engine thread after each step with the step and its logits. */
typedef void qn_step_probe_fn(void *ctx, const qn_step *step, const uint64_t *row_request,
                              const float *logits, size_t ld);
void qn_engine_set_probe(qn_engine *e, qn_step_probe_fn *fn, void *ctx); /* before any submit */

/* The same for hidden states that the model's forward names (qn_g_tap): a row each step row, NULL when
 * the model has no tap of that name. */
typedef void qn_step_tap_fn(void *ctx, const qn_step *step, const uint64_t *row_request,
                            const float *tap, uint32_t cols, size_t ld);
/* Before any submit; name is borrowed while the engine lives. */
void qn_engine_set_tap(qn_engine *e, const char *name, qn_step_tap_fn *fn, void *ctx);

typedef struct qn_engine_stats {
    uint64_t steps, prompt_tokens, cached_tokens, completion_tokens;
    uint32_t running, waiting;
    double busy_s;
    qn_cache_stats cache;
    size_t plan_bytes;
    uint64_t numerics[2];
} qn_engine_stats;
void qn_engine_get_stats(qn_engine *e, qn_engine_stats *out);

#endif
