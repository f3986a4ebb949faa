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

typedef struct quern_top { /* one of the likeliest tokens at a place */
    uint32_t token;
    float logprob;
} quern_top;

#define QUERN_NO_STOP_TEXT UINT32_MAX

typedef struct quern_event {
    quern_event_kind kind;
    uint32_t choice, index; /* index: of the token within its completion */
    uint32_t token;         /* TOKEN: its id */
    float logprob;          /* TOKEN: natural log, after biases and penalties, before temperature
                               and filters; 0 unless asked for */
    uint32_t is_stop;       /* TOKEN: 1 when it ended the completion; such a token shows no text */
    const char *text;    /* TOKEN, DONE: the text that became certain with this event, whole UTF-8
                               characters, maybe empty. Borrowed until the next event */
    size_t text_n;       /* bytes */
    quern_finish finish; /* DONE */
    uint32_t prompt_tokens, cached_tokens, completion_tokens; /* DONE, ERROR */
    uint64_t seed;        /* DONE: what the draws were keyed with */
    uint64_t time_ns;     /* monotonic clock, when the engine gave the event */
    quern_code code;      /* ERROR */
    const char *msg;      /* ERROR: borrowed until the next event */
    const quern_top *top; /* TOKEN: the n_top likeliest, first one first; borrowed until the next */
    uint32_t n_top;       /* top_logprobs of them, fewer where fewer are possible */
    uint32_t is_prompt;   /* TOKEN: 1: an echoed token of the prompt, index counts in the prompt, no
                             text; its logprob and top tell what was expected there (0 and none at
                             index 0) */
    uint32_t stop_text;   /* DONE: which of stop_texts ended it, or QUERN_NO_STOP_TEXT */
} quern_event;

/* event is borrowed for the call. On the engine's thread, maybe before quern_request_open has returned:
 * must be quick; may call quern_request_cancel and nothing else of this library. The DONE of the last
 * choice, or an ERROR, is the last call. */
typedef void quern_event_fn(void *ctx, const quern_event *event);

enum {                                /* quern_request_options.flags */
       QUERN_REQUEST_IGNORE_EOS = 1u, /* end-of-text ids do not stop */
       QUERN_REQUEST_NO_CACHE = 2u,   /* neither use nor leave a prefix */
       QUERN_REQUEST_SEED = 4u,       /* `seed` is meant; else a random one is drawn and told */
       QUERN_REQUEST_ECHO = 8u,       /* each choice begins with events of the prompt's tokens */
       QUERN_REQUEST_NO_TOKENS = 16u  /* nothing is generated: max_tokens is 0 and means it */
};

typedef struct quern_bias { /* added to the logit of one token */
    uint32_t token;
    float bias; /* finite */
} quern_bias;

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
    uint32_t logprobs;           /* 1: events carry the token's logprob */
    int32_t priority;            /* larger goes first, within +-1000 */
    const uint32_t *stop_tokens; /* [n_stop_tokens]; borrowed for the call */
    size_t n_stop_tokens;
    const char *const *stop_texts; /* [n_stop_texts] NUL-terminated; borrowed for the call */
    size_t n_stop_texts;
    quern_event_fn *on_event; /* NULL: quern_request_next */
    void *ctx;
    /* Order: biases, repetition, presence, frequency; the filters are top-p, min-p, XTC, top-k. A
     * penalty looks at the last *_context tokens of prompt and completion; there 0 means all. */
    float repetition_penalty; /* logits of seen tokens / it, or * it below 0; 0 and 1: off */
    float presence_penalty;   /* taken off the logits of seen tokens */
    float frequency_penalty;  /* taken off once for each time that a token was seen */
    uint32_t repetition_context, presence_context, frequency_context;
    float xtc_probability; /* chance that all above the threshold but the least likely go */
    float xtc_threshold;   /* 0 to 0.5 */
    uint32_t min_tokens;   /* so many come before the first that may end it; at most max_tokens */
    uint32_t top_logprobs; /* so many of the likeliest tokens with each event, at most 64; needs
                              logprobs */
    const quern_bias *biases; /* [n_biases], each token once; borrowed for the call */
    size_t n_biases;
} quern_request_options;
#define QUERN_REQUEST_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(quern_request_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0, 0, 0, 20, 20, 20, 0, 0.1f, 0, 0, 0, 0                                            \
    }

/* Sets temperature, top_p, top_k, min_p and repetition_penalty to what counts when nobody says
 * anything: the model's own recipe (quern_model_info.defaults), else temperature 0.7 and the rest off.
 * Errors: INVAL. */
QUERN_API quern_code quern_request_recipe(quern_request_options *opt, const quern_model *m,
                                          quern_error *err);
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
