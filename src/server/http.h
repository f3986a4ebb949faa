/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - the little of HTTP/1.1 that the server needs: whole requests come in, answers go out whole or
 * piece by piece, one after another on a connection that stays open.
 *
 *     headers ─► (answered at once | body) ─► request ─► answer ─► closed ─► next request
 *         └── what is no request, too large or too late ─► bad ─► answer ─► closed
 *
 * Owner:  the caller owns qn_http; a call belongs to it and ends with `closed`.
 * Thread: the one that runs qn_http_run, for everything but qn_http_wake.
 */
#ifndef QN_SERVER_HTTP_H
#define QN_SERVER_HTTP_H
#include "base/str.h"

typedef struct qn_http qn_http;
typedef struct qn_http_call qn_http_call;

typedef struct qn_http_request { /* lives as long as its call */
    qn_str method, path;         /* path decoded, without the query */
    bool has_length, has_body, chunked;
    uint64_t length; /* of the body as announced */
    qn_str body;     /* whole, in `request` */
    qn_str host, origin, fetch_site, fetch_mode, authorization, api_key, if_none_match,
        content_type;
} qn_http_request;

typedef struct qn_http_handler {
    void *ctx;
    /* The headers are there. May answer; if a body was to come, that closes the connection. */
    void (*headers)(void *ctx, qn_http_call *call, const qn_http_request *request);
    /* The body too, unless `headers` answered. */
    void (*request)(void *ctx, qn_http_call *call, const qn_http_request *request);
    /* Not a request: 400, 408 (too late), 413, 414, 431, 505; 503: no memory. What is answered here, with whatever status,
     * is the connection's last; unanswered it closes at once. Of the request nothing is known. */
    void (*bad)(void *ctx, qn_http_call *call, int status);
    /* Last word about a call, answered or left by its client. */
    void (*closed)(void *ctx, qn_http_call *call);
    void (*woken)(void *ctx); /* after qn_http_wake, once for several */
    void (*tick)(void *ctx);  /* each tick_ms */
} qn_http_handler;

typedef struct qn_http_options { /* 0 where a default is named */
    const char *host; /* an address or a name, whose addresses are all taken; "::" means all */
    uint16_t port;    /* 0: a free one */
    uint32_t
        max_connections; /* past them the one idle for longest goes; is none idle, the new one */
    size_t max_body, max_header; /* bytes; of request line and headers together */
    uint32_t
        timeout_ms; /* for the headers to arrive, then for the body; also for an answer's last bytes */
    uint32_t tick_ms; /* 0: 1000 */
} qn_http_options;

/* Listens already; nothing is accepted before qn_http_run. Errors: INVAL (no such host), IO (the port is
 * in use), NOMEM. */
qn_code qn_http_open(qn_http **out, const qn_http_options *o, qn_err *err);
/* Ends every call (`closed`). NULL is fine. */
void qn_http_close(qn_http *h);
uint16_t qn_http_port(const qn_http *h);
void qn_http_set_handler(qn_http *h, const qn_http_handler *handler);
/* From now on each answer closes its connection. */
void qn_http_drain(qn_http *h);
/* fd, a connected stream socket, is taken and served like an accepted one. Errors: NOMEM, IO. */
qn_code qn_http_adopt(qn_http *h, int fd, qn_err *err);
/* One wait for something to happen, and its handling; what was answered in it is sent at its end, one
 * send a connection. false: the loop is broken. */
bool qn_http_run(qn_http *h);
/* Any thread: `woken` is called soon. */
void qn_http_wake(qn_http *h);

void qn_http_set_user(qn_http_call *c, void *user);
void *qn_http_user(const qn_http_call *c);
/* extra: whole header lines with CR LF each, or "". head_only answers (304, HEAD) send no body. Without
 * memory the connection is closed instead. */
void qn_http_reply(qn_http_call *c, int status, const char *mime, const char *extra, qn_str body);
/* An answer of unknown length: begin, pieces as they come, end. A piece that cannot be kept (no memory, a
 * client that does not read) closes the connection. */
void qn_http_begin(qn_http_call *c, int status, const char *mime, const char *extra);
void qn_http_send(qn_http_call *c, qn_str piece);
void qn_http_end(qn_http_call *c);

#endif
