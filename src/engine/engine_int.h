/* SPDX-License-Identifier: Apache-2.0 */
/* engine_int.h - jobs, streams and the engine's own state.
 *
 *     job     one submitted request; dies with its last event
 *     stream  one of its n choices: ids, a sequence in the cache, what was sent of it
 *
 *     waiting ──admit──► running ──last token──► done
 *        ▲                  │
 *        └───── preempt ────┘   blocks let go; the ids stay, so it starts again behind what is cached
 *
 * A stream needs (ids so far) - (positions in the cache) more rows before it can draw: one when it
 * decodes, many when it is new or was preempted. There is no other difference between the two.
 *
 * Age orders streams: priority, then arrival, then choice. The oldest running stream can always get
 * its blocks, by taking them from younger ones, so something always advances.
 */
#ifndef QN_ENGINE_ENGINE_INT_H
#define QN_ENGINE_ENGINE_INT_H
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mailbox.h"
#include "engine/engine.h"
#include "engine/stops.h"
#include "sample/sample.h"
#include "text/detok.h"
#include "wire/codec.h"

typedef struct qn_job qn_job;

typedef struct qn_stream {
    qn_job *job;
    struct qn_stream *next, *prev; /* in the waiting list */
    uint32_t choice;
    bool done, waits; /* waits: in that list */
    /* From the first admission on: */
    qn_seq *seq;   /* NULL while waiting */
    uint32_t *ids; /* [n_ids of cap_ids]: prompt, then what was generated */
    uint32_t n_ids, cap_ids;
    uint32_t n_new; /* generated, a resumed part included */
    bool prompt_sent;
    /* Of the step being made: */
    uint32_t n_rows;      /* 0: takes no part */
    uint32_t n_scored;    /* the first rows of it, whose logits tell of the next prompt token */
    uint32_t n_draws;     /* for itself, then for siblings that start with it */
    uint32_t n_edits;     /* at most, of its draw */
    uint32_t passed_over; /* times without room for its edits since it last drew */
    uint32_t first_logit;
    /* Only with stop strings: */
    qn_detok *detok;
    uint32_t *matched;   /* [stops] */
    uint64_t text_bytes; /* of the completion so far */
    qn_buf held;         /* token events that may hold the start of a stop string */
} qn_stream;

typedef struct qn_prompt_logprob { /* of one prompt token, the first excepted */
    float logprob;
    uint32_t n_top;
    qn_event_top top[QN_REQUEST_MAX_LOGPROBS];
} qn_prompt_logprob;

typedef struct qn_penalty {
    float by;         /* 1 (repetition) or 0 (the others): off */
    uint32_t context; /* tokens that it looks back; 0: all */
} qn_penalty;

struct qn_job {
    uint64_t id; /* the engine's */
    void *block; /* owned copy of the request */
    const qn_request *req;
    qn_event_fn *fn;
    void *ctx;
    uint64_t seed;
    qn_sampler sampler;
    qn_penalty repetition, presence, frequency;
    uint32_t max_new;   /* tokens, a resumed part included */
    qn_stops *stops;    /* NULL: none */
    uint32_t *stop_ids; /* end-of-text ids and the request's */
    uint32_t n_stop_ids;
    qn_key_extra extra;
    uint32_t n_extra, cached;
    qn_prompt_logprob *prompt; /* [n_prompt] when asked for */
    bool prompt_known;         /* all of `prompt` is filled */
    qn_stream *leader; /* goes through the prompt for all choices; NULL: nobody (any more) */
    bool cancelled, queued,
        matched;     /* queued: counts against the queue; matched: cached is known */
    uint32_t n_open; /* streams not done */
    uint32_t n_streams;
    qn_stream stream[];
};

typedef struct qn_mail {
    qn_job *job; /* a new one, or NULL: cancel `id` */
    uint64_t id;
} qn_mail;

struct qn_engine {
    qn_engine_options opt; /* with every default filled in */
    qn_model *model;
    qn_device *dev;
    qn_cache *cache;
    qn_plans *plans;
    uint32_t *registers; /* [max_seqs]: last drawn token of a slot */
    uint32_t vocab, max_logits, max_edits;
    uint32_t *spared; /* [n_spared] ids that XTC leaves: ends of text and newlines; ascending */
    uint32_t n_spared;
    uint32_t *edit_at; /* [vocab]: see adjust.c */
    uint64_t numerics[2];
    qn_mailbox *box;
    pthread_t thread;
    bool started;
    atomic_uint n_queued; /* jobs submitted and not yet running */
    atomic_uint_fast64_t next_id;
    qn_step_probe_fn *probe;
    void *probe_ctx;
    const char *tap_name;
    qn_step_tap_fn *tap;
    void *tap_ctx;
    pthread_mutex_t lock; /* stats */
    qn_engine_stats stats;
    /* The engine thread's own: */
    bool full; /* the oldest waiting stream did not fit, and nobody has left since */
    qn_stream *waiting, *waiting_last; /* the oldest first */
    uint32_t n_waiting;
    qn_stream **running; /* [n_running of max_seqs] in age order */
    uint32_t n_running;
    qn_buf out;            /* the event being built */
    uint64_t *row_request; /* [max_rows] */
    qn_stream **sched;     /* [max_seqs]: who takes part in the step */
    uint32_t n_sched;
    struct qn_draw_of { /* [max_logits]: whose token a logit row draws */
        qn_stream *s;
        uint32_t logit;
    } * draws;
    uint32_t n_draws;
    qn_top *tops; /* [QN_REQUEST_MAX_LOGPROBS] */
    qn_engine_stats now;
    bool looked_for_nan; /* among the weights, after logits came out so */
    char nan_weight[96]; /* what was found, or empty */
};

/* engine.c: moves mail to the waiting list; false once the mailbox is shut and empty. */
bool qn_take_mail(qn_engine *e, bool wait);

/* job.c: any thread. The block is copied. */
qn_code qn_job_new(qn_job **out, const qn_engine *e, const void *request, size_t n, qn_event_fn *fn,
                   void *ctx, qn_err *err);
void qn_job_free(qn_job *j); /* NULL is fine */
/* What a stream needs from its first admission on. */
qn_code qn_stream_init(const qn_engine *e, qn_stream *s, qn_err *err);
void qn_stream_fini(qn_stream *s);
bool qn_job_stops_at(const qn_job *j, uint32_t token);

/* queue.c: engine thread. */
bool qn_older(const qn_stream *a, const qn_stream *b);
void qn_queue_job(qn_engine *e, qn_job *j);
void qn_unqueue(qn_engine *e, qn_job *j); /* it no longer counts against the queue */
/* Waiting streams to running ones, while there are slots and room. */
void qn_admit(qn_engine *e);
/* Room for n more positions of s, taken from younger streams when it must be. False: s itself had to
 * go back to wait, or has ended. */
bool qn_make_room(qn_engine *e, qn_stream *s, uint32_t n);
/* Choices of s's job that could start with it now: at most as many as there are free slots. */
uint32_t qn_count_siblings(const qn_engine *e, const qn_stream *s);
/* The next waiting choice of s's job, running on what s holds; NULL: none, or no memory. */
qn_stream *qn_fork_sibling(qn_engine *e, qn_stream *s);
void qn_leave_running(qn_engine *e, qn_stream *s);
void qn_leave_waiting(qn_engine *e, qn_stream *s);
void qn_cancel_job(qn_engine *e, uint64_t id);
/* Ends the streams of cancelled jobs, or of all. */
void qn_end_cancelled(qn_engine *e, bool all);

/* adjust.c: engine thread. Edits that the next draw of s needs, at most; 0: its logits stay as they are. */
uint32_t qn_adjust_most(const qn_engine *e, const qn_stream *s);
/* Appends them to the step, which has room for so many. */
qn_adjust qn_adjust_fill(qn_engine *e, qn_step *p, const qn_stream *s);

/* turn.c: engine thread. One step of everything that runs. */
void qn_turn(qn_engine *e);

/* output.c: engine thread. */
/* What was drawn for s; logits is its row, or NULL when nobody asked. Sends, and ends s when it is
 * over. */
void qn_take_token(qn_engine *e, qn_stream *s, const qn_drawn *drawn, const float *logits);
bool qn_send_prompt(qn_engine *e, qn_stream *s); /* echo, once; false: that failed, s is gone */
/* A resumed stream has said its tokens already: stop strings must know them. */
void qn_replay_text(qn_stream *s);
/* Ends s: its done event sent, slot and blocks given back, the job freed with its last stream. */
void qn_end_stream(qn_engine *e, qn_stream *s, qn_finish why, uint32_t stop_text);
/* Ends the whole request of s with one error event. */
void qn_fail_stream(qn_engine *e, qn_stream *s, const qn_err *why);

#endif
