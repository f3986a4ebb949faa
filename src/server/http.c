/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - connections and the loop (docs/decisions/0010-http-library.md). One epoll; per connection at
 * most one read a turn, and one send of all that the turn put together, tried before anything is
 * registered. A wake is an edge of an eventfd that nobody reads, so a token costs one wait and one send.
 *
 * That a client has gone shows in three ways: a reset, at once; its end of sending, which may as well
 * mean that it waits for the answer, so bytes that say nothing are sent and a dead socket answers them
 * with a reset; and a connection that takes no bytes.
 *
 * Owner:  qn_http owns all; what is closed in a turn is freed at its end, since events may name it yet.
 * Thread: the loop's; qn_http_wake from any.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/http_int.h"

enum { EVENTS = 128, ACCEPTS = 64, MS = 1000000 };

static const uint64_t linger_ns = UINT64_C(10000000000);

/* -- a connection's end ------------------------------------------------------------------------- */

void qn_http_touch(qn_http_conn *k)
{
    if (k->touched || k->state == QN_HTTP_GONE) return;
    k->touched = true;
    k->next_touched = k->http->touched;
    k->http->touched = k;
}

static void end_call(qn_http_conn *k)
{
    qn_http_call *c = k->call;
    if (!c) return;
    k->http->handler.closed(k->http->handler.ctx, c);
    k->call = NULL;
    qn_http_reader_free(c->reader);
    qn_free(c);
}

static void drop(qn_http_conn *k)
{
    qn_http *h = k->http;
    if (k->state == QN_HTTP_GONE) return;
    end_call(k);
    close(k->fd);
    k->state = QN_HTTP_GONE;
    if (k->prev)
        k->prev->next = k->next;
    else
        h->conns = k->next;
    if (k->next) k->next->prev = k->prev;
    h->n_conns--;
    qn_buf_fini(&k->out);
    qn_buf_fini(&k->ahead);
    k->next = h->gone;
    h->gone = k;
}

static void free_gone(qn_http *h)
{
    while (h->gone) {
        qn_http_conn *k = h->gone;
        h->gone = k->next;
        qn_free(k);
    }
}

static void enter(qn_http_conn *k, qn_http_state state)
{
    k->state = state;
    k->since_ns = k->http->now_ns;
}

/* -- what is watched ---------------------------------------------------------------------------- */

static size_t unsent(const qn_http_conn *k) { return k->out.len - k->sent; }
static size_t ahead(const qn_http_conn *k) { return k->ahead.len - k->looked_at; }

/* While an answer is made, input stays watched until some comes: most clients send none, and then
 * nothing need be changed twice a request. */
static uint32_t wanted(const qn_http_conn *k)
{
    uint32_t events = k->full ? EPOLLOUT : 0u;
    const bool answering = k->state == QN_HTTP_ANSWERING;
    if (!k->peer_done) events |= EPOLLRDHUP;
    if (answering ? !k->waits && !k->peer_done : !k->ended && !ahead(k)) events |= EPOLLIN;
    return events;
}

static void watch(qn_http_conn *k)
{
    struct epoll_event e = {.events = wanted(k), .data.ptr = k};
    if (k->state == QN_HTTP_GONE || e.events == k->armed) return;
    if (epoll_ctl(k->http->epoll, EPOLL_CTL_MOD, k->fd, &e) != 0) {
        k->broken = true;
        qn_http_touch(k);
    }
    k->armed = e.events;
}

/* -- input -------------------------------------------------------------------------------------- */

static bool begin_call(qn_http_conn *k)
{
    qn_http *h = k->http;
    qn_http_call *c = qn_zalloc(sizeof *c);
    if (!c || qn_http_reader_new(&c->reader, h->o.max_header, h->o.max_body, NULL) != QN_OK) {
        qn_free(c);
        return false;
    }
    c->conn = k;
    k->call = c;
    enter(k, QN_HTTP_READING);
    return true;
}

static void on_bad(qn_http_conn *k, int status)
{
    qn_http *h = k->http;
    qn_http_call *c = k->call;
    k->close = true;
    if (!c->answered) h->handler.bad(h->handler.ctx, c, status);
    if (!c->answered) k->broken = true;
    qn_http_touch(k);
}

static void on_head(qn_http_conn *k)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    qn_http *h = k->http;
    qn_http_call *c = k->call;
    const qn_http_request *req = qn_http_reader_request(c->reader);
    c->head_only = qn_str_eq_z(req->method, "HEAD");
    enter(k, req->has_body ? QN_HTTP_READING : QN_HTTP_ANSWERING);
    h->handler.headers(h->handler.ctx, c, req);
    if (c->answered) return;
    if (req->length > h->o.max_body)
        on_bad(k, 413);
    else if (qn_http_reader_expects(c->reader))
        qn_http_put(k, go_on, sizeof go_on - 1);
}

static void on_whole(qn_http_conn *k)
{
    qn_http *h = k->http;
    qn_http_call *c = k->call;
    c->whole = true;
    enter(k, QN_HTTP_ANSWERING);
    if (!c->answered) h->handler.request(h->handler.ctx, c, qn_http_reader_request(c->reader));
}

/* Behind an answer that is the connection's last, whatever comes is not looked at. */
static bool is_last(const qn_http_conn *k)
{
    return k->state == QN_HTTP_LINGERING || (k->close && (!k->call || k->call->answered));
}

/* Bytes as far as they can be looked at: to the end of the request that is now to be answered. */
static size_t consume(qn_http_conn *k, const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    while (at < n && !k->broken && !is_last(k)) {
        size_t used = 0;
        if (!k->call) {
            if (bytes[at] == '\r' || bytes[at] == '\n') {
                at++; /* some clients end a body with an empty line more */
                continue;
            }
            k->broken = !begin_call(k);
            continue;
        }
        if (k->call->whole) break;
        const qn_http_step step = qn_http_reader_feed(k->call->reader, &used, bytes + at, n - at);
        at += used;
        if (step == QN_HTTP_HEAD) on_head(k);
        if (step == QN_HTTP_DONE) on_whole(k);
        if (step == QN_HTTP_BAD) on_bad(k, qn_http_reader_status(k->call->reader));
    }
    if (k->broken) qn_http_touch(k);
    return k->broken || is_last(k) ? n : at;
}

static void on_input(qn_http_conn *k)
{
    qn_http *h = k->http;
    const ssize_t got = recv(k->fd, h->read, QN_HTTP_PIECE, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0 || (got == 0 && k->call)) {
        drop(k);
        return;
    }
    qn_http_touch(k);
    if (got == 0) {
        k->ended = k->peer_done = true;
        return;
    }
    const size_t n = (size_t)got, used = consume(k, h->read, n);
    if (used < n && qn_buf_append(&k->ahead, h->read + used, n - used, NULL) != QN_OK)
        k->broken = true;
}

/* The other side sends no more. If it only waits for its answer it passes by one more "100 Continue", or
 * a leading zero of the next chunk's size; if it is gone, its system answers with a reset. HTTP/1.0
 * has nothing of the kind. */
static void on_half_closed(qn_http_conn *k)
{
    static const char still_there[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const qn_http_call *c = k->call;
    k->peer_done = true;
    if (c->ended || unsent(k) || qn_http_reader_old(c->reader)) return;
    if (!c->answered)
        qn_http_put(k, still_there, sizeof still_there - 1);
    else if (c->chunked && !c->head_only)
        qn_http_put(k, "0", 1);
}

static void on_event(qn_http_conn *k, uint32_t events)
{
    if (k->state == QN_HTTP_GONE) return;
    if (events & (EPOLLERR | EPOLLHUP)) {
        drop(k);
        return;
    }
    if (events & EPOLLOUT) {
        k->full = false;
        qn_http_touch(k);
    }
    if (k->state != QN_HTTP_ANSWERING) {
        if (ahead(k))
            k->peer_done = k->peer_done || (events & EPOLLRDHUP);
        else if (events & (EPOLLIN | EPOLLRDHUP))
            on_input(k);
    } else {
        if (events & EPOLLIN) k->waits = true;
        if ((events & EPOLLRDHUP) && !k->peer_done) on_half_closed(k);
    }
    watch(k);
}

/* -- output, once a turn ------------------------------------------------------------------------ */

static void flush(qn_http_conn *k)
{
    const size_t n = unsent(k);
    if (!n || k->full) return;
    const ssize_t sent = send(k->fd, k->out.data + k->sent, n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        k->broken = true;
        return;
    }
    if (sent > 0) {
        k->sent += (size_t)sent;
        k->since_ns = k->http->now_ns;
    }
    k->full = unsent(k) > 0;
    if (!k->full || (k->sent >= QN_HTTP_PIECE && k->sent >= unsent(k))) {
        memmove(k->out.data, k->out.data + k->sent, unsent(k));
        qn_buf_truncate(&k->out, unsent(k));
        k->sent = 0;
    }
}

/* Answers that are over end their calls, and requests that came ahead begin theirs. */
static void advance(qn_http_conn *k)
{
    for (;;) {
        if (k->call && k->call->ended) {
            end_call(k);
            k->waits = false;
            enter(k, k->close ? QN_HTTP_LINGERING : QN_HTTP_IDLE);
        }
        if (k->broken || k->call || !ahead(k) || unsent(k) >= QN_HTTP_PIECE) return;
        k->looked_at += consume(k, k->ahead.data + k->looked_at, ahead(k));
        if (ahead(k)) continue;
        qn_buf_fini(&k->ahead);
        k->looked_at = 0;
    }
}

/* Nothing is left to do or to send. What was sent would be lost if a socket with unread input were
 * closed, so the other side is let finish. */
static void rest(qn_http_conn *k)
{
    if (k->ended) {
        k->broken = true;
    } else if (k->state == QN_HTTP_LINGERING && !k->shut) {
        k->shut = true;
        k->since_ns = k->http->now_ns;
        if (shutdown(k->fd, SHUT_WR) != 0) k->broken = true;
    } else if (k->state == QN_HTTP_IDLE) {
        qn_buf_fini(&k->out);
    }
}

static void settle(qn_http_conn *k)
{
    do {
        advance(k);
        if (!k->broken) flush(k);
    } while (!k->broken && !k->call && !k->full && ahead(k));
    if (!k->broken && !k->call && !unsent(k)) rest(k);
    watch(k);
    if (k->broken) drop(k);
    k->touched = false;
}

static void settle_all(qn_http *h)
{
    while (h->touched) {
        qn_http_conn *k = h->touched;
        h->touched = k->next_touched;
        if (k->state != QN_HTTP_GONE) settle(k);
    }
    free_gone(h);
}

/* -- new connections ---------------------------------------------------------------------------- */

/* The one that nobody used for longest; what is only waiting for its other side to close counts too. */
static bool evict(qn_http *h)
{
    qn_http_conn *oldest = NULL;
    for (qn_http_conn *k = h->conns; k; k = k->next) {
        const bool unused = (k->state == QN_HTTP_IDLE && !unsent(k)) || k->shut;
        if (unused && (!oldest || k->since_ns < oldest->since_ns)) oldest = k;
    }
    if (oldest) drop(oldest);
    return oldest != NULL;
}

static qn_code add(qn_http *h, int fd, qn_err *err)
{
    qn_http_conn *k = qn_zalloc(sizeof *k);
    struct epoll_event e = {.data.ptr = k};
    if (!k) {
        close(fd);
        return qn_fail(err, QN_E_NOMEM, "no memory for a connection");
    }
    k->source = QN_HTTP_FROM_CONN;
    k->fd = fd;
    k->http = h;
    qn_buf_init(&k->out, SIZE_MAX / 2);
    qn_buf_init(&k->ahead, QN_HTTP_PIECE);
    enter(k, QN_HTTP_IDLE);
    e.events = k->armed = wanted(k);
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        const int why = errno;
        close(fd);
        qn_free(k);
        return qn_fail_sys(err, QN_E_IO, why, "watching a connection");
    }
    k->next = h->conns;
    if (k->next) k->next->prev = k;
    h->conns = k;
    h->n_conns++;
    return QN_OK;
}

qn_code qn_http_adopt(qn_http *h, int fd, qn_err *err)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        const int why = errno;
        close(fd);
        return qn_fail_sys(err, QN_E_IO, why, "a connection");
    }
    return add(h, fd, err);
}

static void refuse(int fd)
{
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";
    (void)!send(fd, full, sizeof full - 1, MSG_NOSIGNAL);
    close(fd);
}

static void listen_for(qn_http *h, uint32_t events)
{
    for (size_t i = 0; i < h->n_listeners; i++) {
        struct epoll_event e = {.events = events, .data.ptr = &h->listeners[i]};
        (void)epoll_ctl(h->epoll, EPOLL_CTL_MOD, h->listeners[i].fd, &e);
    }
    h->deaf = events == 0;
}

/* Without a descriptor the one who knocks stays in the queue, and would wake the loop for ever. */
static void on_no_descriptor(qn_http *h)
{
    if (!evict(h)) listen_for(h, 0);
}

static void on_knock(qn_http *h, const qn_http_listener *l)
{
    for (int i = 0; i < ACCEPTS && !h->deaf; i++) {
        const int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (h->n_conns >= h->o.max_connections && !evict(h))
                refuse(fd);
            else
                (void)add(h, fd, NULL);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            on_no_descriptor(h);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* -- the loop ----------------------------------------------------------------------------------- */

static void check_deadline(qn_http_conn *k)
{
    const uint64_t spent = k->http->now_ns - k->since_ns;
    const uint64_t limit = (uint64_t)k->http->o.timeout_ms * MS;
    if (k->shut ? spent >= linger_ns : !k->call && unsent(k) && spent >= limit) {
        k->broken = true; /* it neither reads nor closes */
        qn_http_touch(k);
    } else if (k->state == QN_HTTP_READING && !k->call->answered && spent >= limit) {
        on_bad(k, 408);
    }
}

static void on_tick(qn_http *h)
{
    h->tick_ns = h->now_ns + (uint64_t)h->o.tick_ms * MS;
    if (h->deaf) listen_for(h, EPOLLIN);
    for (qn_http_conn *k = h->conns; k; k = k->next) check_deadline(k);
    h->handler.tick(h->handler.ctx);
}

static int ms_to_tick(const qn_http *h)
{
    const uint64_t now = qn_clock_ns();
    return now >= h->tick_ns ? 0 : (int)((h->tick_ns - now + MS - 1) / MS);
}

bool qn_http_run(qn_http *h)
{
    struct epoll_event events[EVENTS];
    const int n = epoll_wait(h->epoll, events, EVENTS, ms_to_tick(h));
    if (n < 0 && errno != EINTR) return false;
    h->now_ns = qn_clock_ns();
    for (int i = 0; i < n; i++) {
        void *from = events[i].data.ptr;
        const qn_http_source source = *(const qn_http_source *)from;
        if (source == QN_HTTP_FROM_CONN)
            on_event(from, events[i].events);
        else if (source == QN_HTTP_FROM_LISTENER)
            on_knock(h, from);
        else if (atomic_exchange(&h->woken, false))
            h->handler.woken(h->handler.ctx);
    }
    if (h->now_ns >= h->tick_ns) on_tick(h);
    settle_all(h);
    return true;
}

void qn_http_wake(qn_http *h)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&h->woken, true)) (void)!write(h->event, &one, sizeof one);
}

void qn_http_drain(qn_http *h) { h->draining = true; }

/* -- open and close ----------------------------------------------------------------------------- */

static void ignore(void *ctx) { (void)ctx; }
static void ignore_call(void *ctx, qn_http_call *c) { (void)ctx, (void)c; }

void qn_http_set_handler(qn_http *h, const qn_http_handler *handler)
{
    h->handler = *handler;
    if (!h->handler.woken) h->handler.woken = ignore;
    if (!h->handler.tick) h->handler.tick = ignore;
}

static qn_code open_loop(qn_http *h, qn_err *err)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = h};
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->epoll < 0 || h->event < 0 || epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->event, &e) != 0)
        return qn_fail_sys(err, QN_E_IO, errno, "the server's loop");
    for (size_t i = 0; i < h->n_listeners; i++) {
        e = (struct epoll_event){.events = EPOLLIN, .data.ptr = &h->listeners[i]};
        if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->listeners[i].fd, &e) != 0)
            return qn_fail_sys(err, QN_E_IO, errno, "the server's loop");
    }
    return QN_OK;
}

qn_code qn_http_open(qn_http **out, const qn_http_options *o, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    qn_http *h = qn_zalloc(sizeof *h);
    if (!h) return qn_fail(err, QN_E_NOMEM, "no memory for a server");
    h->source = QN_HTTP_FROM_WAKE;
    h->epoll = h->event = -1;
    h->o = *o;
    if (!h->o.tick_ms) h->o.tick_ms = 1000;
    h->handler = (qn_http_handler){.closed = ignore_call, .woken = ignore, .tick = ignore};
    h->now_ns = qn_clock_ns();
    h->read = qn_alloc(QN_HTTP_PIECE);
    if (!h->read) rc = qn_fail(err, QN_E_NOMEM, "no memory for a server");
    if (rc == QN_OK) rc = qn_http_listen(h, err);
    if (rc == QN_OK) rc = open_loop(h, err);
    if (rc == QN_OK)
        *out = h;
    else
        qn_http_close(h);
    return rc;
}

void qn_http_close(qn_http *h)
{
    if (!h) return;
    while (h->conns) drop(h->conns);
    free_gone(h);
    for (size_t i = 0; i < h->n_listeners; i++) close(h->listeners[i].fd);
    if (h->event >= 0) close(h->event);
    if (h->epoll >= 0) close(h->epoll);
    qn_free(h->read);
    qn_free(h);
}
