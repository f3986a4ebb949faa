/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - one GET at a time over HTTPS, with the rules that a download needs; libcurl is named in net.c
 * only.
 *
 * Certificates are checked. Plain http goes to this machine only, and never on from https. Redirects are
 * followed here, at most QN_NET_MAX_HOPS, so that each hop meets the same rules: the bearer token goes to
 * the origin (scheme, host, port) of the first URL and to nobody else, the range goes along. Bytes arrive
 * in pieces through a callback; nothing is kept whole. Neither the token nor a URL's query is ever part
 * of a message. Proxies come from the environment as libcurl reads it.
 *
 * Owner:  the client keeps connections open between calls.
 * Thread: one at a time a client.
 */
#ifndef QN_NET_NET_H
#define QN_NET_NET_H
#include <sys/socket.h>

#include "base/str.h"

enum { QN_NET_MAX_HOPS = 5, QN_NET_CONNECT_MS = 15000, QN_NET_STALL_MS = 60000 };

typedef struct qn_net qn_net;

typedef struct qn_net_options {
    const char *agent;   /* User-Agent; copied */
    uint32_t connect_ms; /* 0: QN_NET_CONNECT_MS */
    uint32_t stall_ms;   /* without a byte; 0: QN_NET_STALL_MS */
    /* Asked before each connect, with the address that the socket would go to, so no name can hide
     * another one; false refuses. Not NULL: no proxy is used, which would connect on its own. */
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *ctx;
} qn_net_options;
/* Owned (qn_net_close). Errors: NOMEM. */
qn_code qn_net_open(qn_net **out, const qn_net_options *opt, qn_err *err);
void qn_net_close(qn_net *net); /* NULL is fine */

typedef struct qn_net_range { /* Content-Range */
    bool given, good;         /* there was one; it could be read */
    uint64_t first, last;
    uint64_t total; /* UINT64_MAX: "*" */
} qn_net_range;

typedef struct qn_net_answer {
    int status;             /* of the last hop; 0: there was none */
    uint64_t bytes;         /* Content-Length; UINT64_MAX: not said */
    uint32_t retry_after_s; /* 0: not said */
    qn_net_range range;
    bool passing; /* after a failure: the connection was lost, asking again may help */
} qn_net_answer;

typedef struct qn_net_request {
    const char *url;
    const char *bearer; /* token, or NULL */
    uint64_t from;      /* not 0: "Range: bytes=FROM-" */
    /* Of a status from 200 to 299, once, before its bytes; then its bytes. What they return ends the
     * call with that code. Both needed. */
    qn_code (*head)(void *ctx, const qn_net_answer *a, qn_err *err);
    qn_code (*body)(void *ctx, const void *bytes, size_t n, qn_err *err);
    /* About once a second and between pieces; not QN_OK ends the call with that. NULL: none. */
    qn_code (*tick)(void *ctx, qn_err *err);
    void *ctx;
} qn_net_request;
/* OK means that an answer came whole, whatever its status: the caller judges it; bodies of other statuses
 * are thrown away. Errors: INVAL (no URL for this), IO (no connection, certificate, cut off, stalled:
 * a->passing tells the ones that may pass), FORMAT (redirects that break a rule, no HTTP), NOMEM, and
 * what the callbacks return. */
qn_code qn_net_get(qn_net *net, const qn_net_request *r, qn_net_answer *a, qn_err *err);

/* "bytes 5-9/10", and nothing else. */
bool qn_net_parse_range(qn_net_range *out, qn_str value);
/* The text with all but letters, digits and "-._~/" as %XX: for a path; owned (qn_free). NULL: memory. */
char *qn_net_escape_path(const char *text);
/* Is this an endpoint that qn_net_get would take: https, or http to this machine; no user, no query?
 * Errors: INVAL, NOMEM. */
qn_code qn_net_check_endpoint(const char *url, qn_err *err);

#endif
