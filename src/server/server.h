/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - one model behind OpenAI's dialect over HTTP, and the chat page.
 *
 *     open (listens) ─► serve (until stop) ─► close
 *
 *     loop thread ── body ──► worker: parse, template, tokenise, submit
 *          ▲                                       │
 *          └── queue of each call ◄── events ── engine's thread
 *
 * The loop never waits: what takes time runs on the worker, what the engine tells is copied into the
 * call's queue and the loop is woken, once for many events.
 *
 * Owner:  the caller, as it owns model and engine, which must outlive serve.
 * Thread: open, serve, close from one; stop and port from any.
 */
#ifndef QN_SERVER_SERVER_H
#define QN_SERVER_SERVER_H
#include "api/api.h"
#include "quern/quern.h"

typedef struct qn_server qn_server;

typedef struct qn_server_options { /* texts are borrowed until close */
    const char *host;              /* NULL: 127.0.0.1 */
    uint16_t port;                 /* 0: a free one */
    const char *api_key;           /* NULL: none is asked for */
    uint32_t max_connections;      /* 0: 2048 */
    size_t max_body;               /* bytes; 0: 32 MiB */
    uint32_t timeout_ms;           /* for a request to arrive; 0: 60,000 */
    uint32_t keep_alive_ms;        /* a stream that says nothing says so; 0: 15,000 */
    uint32_t drain_s;              /* how long stop waits for what runs; 0: not at all */
    bool no_web;                   /* the chat page is not served */
} qn_server_options;

typedef struct qn_server_model { /* what is served; borrowed while it is */
    quern_model *model;
    quern_engine *engine;
    const char *id;            /* as clients see it */
    uint32_t context;          /* positions of a text; 0: the model's */
    qn_request_sampling flags; /* the server's own values, where `set` says so */
    const char *template_text; /* [template_n] a chat template; NULL: the model's own */
    size_t template_n;
    qn_api_tristate thinking; /* where a request does not say */
    uint32_t max_tokens;      /* what a request gets that names none; 0: to the context's end, but
                                 with QN_SET_MAX_TOKENS in flags.set none at all */
} qn_server_model;

/* *out is owned (qn_server_close). Errors: INVAL, IO (the port is in use), NOMEM. */
qn_code qn_server_open(qn_server **out, const qn_server_options *o, qn_err *err);
/* Answers until qn_server_stop; then new requests get 503 while running ones end, for at most drain_s.
 * A second stop ends the wait. All requests are freed when it returns. Errors: NOMEM, IO. */
qn_code qn_server_serve(qn_server *s, const qn_server_model *m, qn_err *err);
void qn_server_stop(qn_server *s);
uint16_t qn_server_port(const qn_server *s);
void qn_server_close(qn_server *s); /* NULL is fine */

#endif
