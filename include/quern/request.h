/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - one generation: opened (and with that submitted), read as events, cancelled, freed.
 *
 *     open ─► token* ─► (done | error)
 *
 * Events come by callback on the engine's thread, or are taken one by one with quern_request_next;
 * which of both is fixed by `on_event` when the request is opened.
 *
 * Owner:  the caller; a request that still runs is cancelled by free.
 * Thread: cancel from any; the rest from one thread at a time.
 */
#ifndef QUERN_REQUEST_H
#define QUERN_REQUEST_H
#include "quern/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_request quern_request;

typedef enum quern_event_kind {
    QUERN_EVENT_NONE = 0,
    QUERN_EVENT_TOKEN = 1,
    QUERN_EVENT_DONE = 2, /* the end of one choice */
    QUERN_EVENT_ERROR = 3
} quern_event_kind;

typedef enum quern_finish {
    QUERN_FINISH_NONE = 0,
    QUERN_FINISH_STOP = 1,     /* an end-of-text id, a stop id or a stop string */
    QUERN_FINISH_LENGTH = 2,   /* max_tokens, or the end of the context */
    QUERN_FINISH_CANCELLED = 3 /* quern_request_cancel, or the engine was closed */
} quern_finish;

typedef struct quern_event {
    quern_event_kind kind;
    uint32_t choice, index; /* index: of the token within its completion */
    uint32_t token;         /* TOKEN: its id */
    float logprob;          /* TOKEN: natural log before any filter; 0 unless asked for */
    uint32_t is_stop;       /* TOKEN: 1 when it ended the completion; such a token shows no text */
    const char *text;    /* TOKEN, DONE: the text that became certain with this event, whole UTF-8
                               characters, maybe empty. Borrowed until the next event */
    size_t text_n;       /* bytes */
    quern_finish finish; /* DONE */
    uint32_t prompt_tokens, cached_tokens, completion_tokens; /* DONE, ERROR */
    uint64_t seed;    /* DONE: what the draws were keyed with */
    uint64_t time_ns; /* monotonic clock, when the engine gave the event */
    quern_code code;  /* ERROR */
    const char *msg;  /* ERROR: borrowed until the next event */
} quern_event;

/* event is borrowed for the call. On the engine's thread, maybe before quern_request_open has returned:
 * must be quick; may call quern_request_cancel and nothing else of this library. The DONE of the last
 * choice, or an ERROR, is the last call. */
typedef void quern_event_fn(void *ctx, const quern_event *event);

enum {                                /* quern_request_options.flags */
       QUERN_REQUEST_IGNORE_EOS = 1u, /* end-of-text ids do not stop */
       QUERN_REQUEST_NO_CACHE = 2u,   /* neither use nor leave a prefix */
       QUERN_REQUEST_SEED = 4u        /* `seed` is meant; else a random one is drawn and told */
};

typedef struct quern_request_options {
    size_t size;            /* sizeof(quern_request_options) */
    const uint32_t *tokens; /* the prompt as ids [n_tokens]; borrowed for the call */
    size_t n_tokens;
    const char *text; /* or as text [text_n], when n_tokens is 0; borrowed for the call */
    size_t text_n;
    uint32_t text_flags;         /* QUERN_TOKENIZE_ */
    uint32_t flags;              /* QUERN_REQUEST_ */
    uint32_t max_tokens;         /* of each completion; 0: to the end of the context */
    uint32_t n_choices;          /* 0: 1 */
    float temperature;           /* 0: greedy */
    float top_p;                 /* active in (0, 1) */
    float min_p;                 /* active in (0, 1] */
    uint32_t top_k;              /* 0: off */
    uint64_t seed;               /* with QUERN_REQUEST_SEED */
    uint32_t logprobs;           /* 1: events carry the chosen token's logprob */
    int32_t priority;            /* larger goes first, within +-1000 */
    const uint32_t *stop_tokens; /* [n_stop_tokens]; borrowed for the call */
    size_t n_stop_tokens;
    const char *const *stop_texts; /* [n_stop_texts] NUL-terminated; borrowed for the call */
    size_t n_stop_texts;
    quern_event_fn *on_event; /* NULL: quern_request_next */
    void *ctx;
} quern_request_options;
#define QUERN_REQUEST_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(quern_request_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0                                                                                      \
    }

/* Checks, tokenises and submits. *out is owned (quern_request_free). Errors: INVAL and LIMIT with the
 * field, UNSUPPORTED (text, but the model has no tokenizer), AGAIN (queue full), NOMEM. */
QUERN_API quern_code quern_request_open(quern_request **out, quern_engine *e,
                                        const quern_request_options *opt, quern_error *err);
/* Waits at most timeout_ms (< 0: for ever, 0: only looks) for the next event; *out is borrowed until
 * the next call on r, and NULL when there is none. After an ERROR, or the DONE of every choice, there is
 * none any more. Errors: AGAIN (none yet), NOTFOUND (the last was already given), INVAL (opened with a
 * callback). */
QUERN_API quern_code quern_request_next(const quern_event **out, quern_request *r, int timeout_ms,
                                        quern_error *err);
/* Waits until the last event was given to the callback, or came into the queue. Errors: AGAIN. */
QUERN_API quern_code quern_request_wait(quern_request *r, int timeout_ms, quern_error *err);
/* Stops it at the next step border; its last event says so. Cancelling twice is fine. */
QUERN_API void quern_request_cancel(quern_request *r);
/* Cancels it if it still runs, waits for its last event, frees it. NULL is fine. Not from a
 * callback. */
QUERN_API void quern_request_free(quern_request *r);

#ifdef __cplusplus
}
#endif
#endif
