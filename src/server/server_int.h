/* SPDX-License-Identifier: Apache-2.0 */
/* server_int.h - what the files of this layer share.
 *
 * Life of a call with a body (qn_task):
 *
 *     loop: made ─► worker: opened ─► loop: prepared, answers ─► (all events came) ─► worker: freed
 *
 * `call` is the loop's alone and NULL once client or answer is gone. Events go under `lock` from the
 * engine's thread to the loop. A job is freed when the worker is done with it and each of its requests
 * gave its last event, so freeing never waits for the engine.
 */
#ifndef QN_SERVER_SERVER_INT_H
#define QN_SERVER_SERVER_INT_H
#include <pthread.h>
#include <stdatomic.h>

#include "api/openai.h"
#include "server/http.h"
#include "server/server.h"

typedef struct qn_task qn_task;

typedef struct qn_part { /* one prompt of a job: a request of the engine */
    qn_task *job;
    quern_request *request;
    uint32_t first_choice, n_choices;
    uint32_t open_choices;   /* whose last event has not come; under the job's lock */
    uint64_t prompt, cached; /* tokens; the loop's */
} qn_part;

typedef struct qn_choice { /* the loop's */
    qn_buf text;           /* of a whole answer */
    qn_buf tokens;         /* qn_openai_token[], of a whole answer with logprobs */
    size_t chars;          /* characters so far, where logprobs want them */
    quern_finish finish;
    uint64_t seed;
} qn_choice;

struct qn_task {
    struct qn_server *server;
    qn_http_call *call;   /* the loop's */
    qn_task *next, *prev; /* in the list of all, the loop's */
    qn_task *queued;      /* in a queue, under the server's lock */
    qn_api_endpoint endpoint;
    qn_buf body;
    qn_arena arena, answers; /* of the request: worker; of the answer: loop */
    qn_api_error error;
    const qn_api_params *params;
    qn_api_warnings *warnings;
    qn_str *echoes; /* [n_parts] what comes before the first text, or NULL */
    qn_buf reply;   /* of tokenize and detokenize */
    qn_buf frames;  /* the loop's: of one turn; emptied, kept */
    qn_part *parts;
    qn_choice *choices;
    uint32_t n_parts, n_choices, n_ended;
    uint64_t completion; /* tokens */
    char id[QN_OPENAI_ID_BYTES];
    int64_t created;
    qn_openai_stream stream;
    uint64_t spoke_ns; /* when bytes went out last */
    bool prepared, streaming, counted;
    atomic_bool gone, retire;

    pthread_mutex_t lock;
    qn_buf events, taken; /* records of answer.c: being filled; being read */
    uint32_t open_parts;
    bool lost; /* an event could not be kept */
    atomic_bool dirty;
};

typedef struct qn_access { /* who may ask */
    const char *host, *key;
    bool any_host; /* bound to all addresses */
} qn_access;

struct qn_server {
    qn_server_options o;
    qn_server_model m;
    quern_model_info info;
    char fingerprint[64];       /* version and numerics id: equal ones give equal bits */
    qn_request_sampling recipe; /* the model's own values, where `set` says so */
    uint32_t context;
    int64_t created;
    qn_access access;
    qn_api_limits limits;
    qn_http *http;
    void *chat;    /* of chat_prompt.c */
    qn_task *jobs; /* the loop's */
    size_t n_jobs;
    bool draining;
    uint64_t drain_end_ns;
    atomic_uint stops;
    uint64_t requests[3]; /* answered, refused or failed, left by the client */

    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t work;
    qn_task *todo, *todo_last, *ready; /* for the worker; for the loop */
    bool closing;
};

/* access.c. Errors: what qn_api_fail gives. */
qn_code qn_access_check(const qn_access *a, const qn_http_request *r, qn_api_error *error);

/* routes.c: everything but the generating endpoints. */
void qn_route_headers(void *ctx, qn_http_call *call, const qn_http_request *r);
void qn_route_request(void *ctx, qn_http_call *call, const qn_http_request *r);
void qn_route_bad(void *ctx, qn_http_call *call, int status);
void qn_reply_error(qn_http_call *call, const qn_api_error *error);
void qn_reply_json(qn_http_call *call, int status, const qn_buf *b);

/* job.c */
qn_code qn_worker_start(struct qn_server *s, qn_err *err);
void qn_worker_stop(struct qn_server *s); /* after all that is queued */
void qn_task_start(struct qn_server *s, qn_http_call *call, qn_api_endpoint endpoint, qn_str body);
void qn_task_free(qn_task *j);
void qn_task_queue(qn_task *j); /* to the worker */

/* prepare.c: on the worker. */
qn_code qn_task_prepare(qn_task *j);
/* chat_prompt.c: the ids of a conversation, in the job's arena. */
qn_code qn_chat_open(struct qn_server *s, qn_err *err);
void qn_chat_close(struct qn_server *s);
bool qn_chat_available(const struct qn_server *s);
qn_code qn_chat_prompt(const uint32_t **ids, size_t *n, qn_task *j, const qn_api_prompt *p,
                       qn_api_tristate *thinking);
/* Ids of a text, in the job's arena. */
qn_code qn_task_tokenize(const uint32_t **ids, size_t *n, qn_task *j, qn_str text, uint32_t flags);

/* answer.c */
qn_openai_reply qn_task_reply(const qn_task *j); /* what every body of this answer begins with */
/* The bytes of a token, in the arena. Errors: those of quern_token_bytes, NOMEM. */
qn_code qn_task_piece(qn_str *out, qn_arena *arena, const quern_model *m, uint32_t id, qn_err *err);
void qn_task_event(void *part, const quern_event *e); /* the engine's thread */
void qn_task_prepared(qn_task *j);                    /* the loop's, from here on */
void qn_task_pump(qn_task *j);
void qn_task_keep_alive(qn_task *j, uint64_t now_ns);
void qn_task_leave(qn_task *j); /* the client is gone, or has its answer */
void qn_task_fail(qn_task *j, const qn_api_error *error);
bool qn_task_finished(qn_task *j); /* nothing more comes: it may be freed */

#endif
