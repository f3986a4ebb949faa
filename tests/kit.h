/* SPDX-License-Identifier: Apache-2.0 */
/* kit.h - what tests of whole requests share: tiny models made from the goldens, and a caller that
 * submits a request, collects its events and waits.
 *
 * Thread: kit_call is safe between the engine's thread and the one that waits.
 */
#ifndef KIT_H
#define KIT_H
#include <pthread.h>

#include "engine/engine.h"
#include "qt.h"

typedef struct kit_change { /* how the copy of a golden model differs from it */
    uint32_t context;       /* 0: as it is */
    uint32_t window; /* 0: as it is; else of the sliding layers, which are all of a llama model */
    uint32_t poison; /* not 0: the embedding of this id is NaN (GGUF with F32 embeddings) */
} kit_change;

/* Opens a copy of tests/golden/<name> (llama/<name> where it has no slash) with these changes; NULL after a failed check. Release with
 * qn_model_unref. */
qn_model *kit_model(qt *t, const char *name, kit_change change, qn_act_mode activations);

enum { KIT_NEW = 160, KIT_CHOICES = 6, KIT_TOP = 5, KIT_PROMPT = 1200 };

typedef struct kit_token {
    uint32_t id, flags, cut_bytes, n_top;
    uint64_t text_offset;
    float logprob;
    qn_event_top top[KIT_TOP];
} kit_token;

typedef struct kit_choice {
    kit_token token[KIT_NEW];
    uint32_t n;
    bool done;
    qn_event_done end;
} kit_choice;

typedef struct kit_call {
    qn_engine *engine;
    uint64_t id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    kit_choice choice[KIT_CHOICES];
    kit_token prompt[KIT_PROMPT]; /* echoed, of choice 0 */
    uint32_t n_prompt, n_open, n_events;
    uint32_t cancel_after; /* tokens, then the call cancels itself from the event; 0: never */
    uint32_t order_faults; /* an index that did not follow, an event after the end */
    bool failed;
    qn_event_error error;
    char message[256];
} kit_call;

kit_call *kit_call_new(void); /* free with kit_call_free, after the end */
void kit_call_free(kit_call *c);
qn_code kit_submit(kit_call *c, qn_engine *e, const qn_request_in *in, qn_err *err);
void kit_wait(kit_call *c); /* until all choices are done or the request failed */
void kit_wait_tokens(kit_call *c, uint32_t n); /* until choice 0 has n, or the end */
/* Submit and wait; a refused submit is a failed check. */
void kit_run(qt *t, kit_call *c, qn_engine *e, const qn_request_in *in);

/* A request of these tokens: greedy, max_tokens. Change what you like. */
qn_request_in kit_ask(const uint32_t *tokens, uint32_t n, uint32_t max_tokens);
/* Sets a field and its bit. */
void kit_heat(qn_request_in *in, float temperature, uint64_t seed);
/* n ids in [2, vocab) that depend on `seed` only. */
void kit_prompt(uint32_t *ids, uint32_t n, uint32_t vocab, uint64_t seed);

/* Same tokens, logprobs, tops and ends, to the last bit. */
bool kit_same(qt *t, const kit_call *a, const kit_call *b, const char *what);
/* What a receiver shows of choice i: detokenised, cut as the events say. Owned (qn_free). */
char *kit_text(const kit_call *c, uint32_t i, const qn_tokenizer *t);

#endif
