/* SPDX-License-Identifier: Apache-2.0 */
/* http_int.h - what http.c (connections and the loop), http_answer.c (framing) and http_listen.c share.
 *
 * A connection:
 *
 *     IDLE ─ first byte ─► READING ─ whole ─► ANSWERING ─ ended, kept ─► IDLE (or READING: sent ahead)
 *                             └─ bad ────────────┴─ ended, not kept ─► LINGERING ─► gone
 *
 * Its bytes to send outlive the calls they come from, so that many small answers go out in one send.
 */
#ifndef QN_SERVER_HTTP_INT_H
#define QN_SERVER_HTTP_INT_H
#include <stdatomic.h>

#include "base/buf.h"
#include "server/http.h"
#include "server/http_read.h"

enum {
    QN_HTTP_PIECE = 1 << 16, /* bytes read at once; sent-ahead requests wait past as many to send */
    QN_HTTP_MAX_UNREAD = 16 << 20, /* a client that leaves more of a stream unread is let go */
    QN_HTTP_MAX_LISTENERS = 4
};

typedef enum qn_http_state {
    QN_HTTP_IDLE,
    QN_HTTP_READING,
    QN_HTTP_ANSWERING,
    QN_HTTP_LINGERING,
    QN_HTTP_GONE
} qn_http_state;

typedef enum qn_http_source { /* of an event; the first member of what epoll hands back */
                              QN_HTTP_FROM_CONN,
                              QN_HTTP_FROM_LISTENER,
                              QN_HTTP_FROM_WAKE
} qn_http_source;

typedef struct qn_http_conn {
    qn_http_source source;
    int fd;
    qn_http *http;
    struct qn_http_conn *next, *prev;  /* all of a server */
    struct qn_http_conn *next_touched; /* to settle at the end of this turn */
    qn_http_call *call;                /* NULL: IDLE, LINGERING */
    qn_buf out, ahead;                 /* to send, from `sent` on; read, but not looked at */
    size_t sent, looked_at;
    uint64_t since_ns; /* when the state, or an answer's last progress, began */
    uint32_t armed;    /* what epoll watches */
    qn_http_state state;
    bool touched, broken;  /* broken: dropped when it is settled */
    bool close, shut;      /* nothing more is answered; nothing more is sent */
    bool peer_done, ended; /* it sends no more; all it sent was read */
    bool waits, full;      /* input lies unread; the socket takes no more now */
} qn_http_conn;

struct qn_http_call {
    qn_http_conn *conn;
    qn_http_reader *reader;
    void *user;
    bool whole, answered, ended, chunked, head_only; /* whole: the request was read */
};

typedef struct qn_http_listener {
    qn_http_source source;
    int fd;
} qn_http_listener;

struct qn_http {
    qn_http_source source; /* of a wake */
    int epoll, event;
    qn_http_handler handler;
    qn_http_options o;
    qn_http_listener listeners[QN_HTTP_MAX_LISTENERS];
    size_t n_listeners;
    qn_http_conn *conns, *touched, *gone;
    size_t n_conns;
    atomic_bool woken;
    bool draining,
        deaf; /* deaf: no descriptor was left, so nobody is accepted before the next tick */
    uint64_t now_ns, tick_ns;
    time_t date_s;
    char date[40]; /* of answers, made once a second */
    uint8_t *read; /* [QN_HTTP_PIECE] */
};

/* http.c: to be settled at the end of this turn. */
void qn_http_touch(qn_http_conn *k);
/* http_answer.c: bytes to send; without memory the connection is broken. */
void qn_http_put(qn_http_conn *k, const void *bytes, size_t n);
/* http_listen.c: fills listeners, non-blocking. Errors: INVAL, IO. */
qn_code qn_http_listen(qn_http *h, qn_err *err);

#endif
