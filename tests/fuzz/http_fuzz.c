/* SPDX-License-Identifier: Apache-2.0 */
/* http_fuzz.c - bytes of a client through the server's real HTTP layer, over a socket.
 *
 * The first byte says how they come (whole or in small pieces, over TCP or a socketpair, with an end of
 * sending or not, to a hasty server), the rest is what the client sends. However the bytes are cut, the
 * handlers see the same requests; every call ends once; nothing stays behind. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "server/http.h"

enum {
    MAX_IN = 1 << 15,
    LOG = 1 << 12,
    HELD = 8,
    PIECES = 8,
    OVER_TCP = 16,
    HASTY = 32,
    HALF = 64,
    CROWD = 128
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct guest {
    qn_http *http;
    qn_http_call *held[HELD];
    size_t n_held, opened, closed, n_log;
    uint64_t log[LOG]; /* what the handlers saw, as digests */
} guest;

static void must(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "http_fuzz: %s\n", what);
    abort();
}

static void note(guest *g, uint64_t what)
{
    if (g->n_log < LOG) g->log[g->n_log++] = what;
}

/* FNV-1a. */
static uint64_t digest(const qn_http_request *q)
{
    const qn_str all[] = {q->method,  q->path,          q->body,        q->host,
                          q->origin,  q->fetch_site,    q->fetch_mode,  q->authorization,
                          q->api_key, q->if_none_match, q->content_type};
    uint64_t sum = UINT64_C(14695981039346656037) + q->length + q->has_body;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (size_t k = 0; k < all[i].n; k++)
            sum = (sum ^ (unsigned char)all[i].p[k]) * UINT64_C(1099511628211);
        sum = (sum ^ 256) * UINT64_C(1099511628211);
    }
    return sum;
}

static void on_headers(void *ctx, qn_http_call *c, const qn_http_request *q)
{
    guest *g = ctx;
    g->opened++;
    note(g, digest(q));
    if (qn_str_has_prefix(q->path, QN_STR("/early")))
        qn_http_reply(c, 403, "text/plain", "", QN_STR("no"));
}

static void on_request(void *ctx, qn_http_call *c, const qn_http_request *q)
{
    guest *g = ctx;
    note(g, digest(q));
    if (qn_str_has_prefix(q->path, QN_STR("/hold")) && g->n_held < HELD)
        g->held[g->n_held++] = c;
    else if (qn_str_has_prefix(q->path, QN_STR("/same")))
        qn_http_reply(c, 304, NULL, "", (qn_str){0});
    else
        qn_http_reply(c, 200, "text/plain", "", q->body.n ? q->body : q->path);
}

static void on_bad(void *ctx, qn_http_call *c, int status)
{
    guest *g = ctx;
    note(g, 1); /* which status depends on what was seen first */
    if (status != 431) qn_http_reply(c, status, NULL, "", QN_STR("bad"));
}

static void on_closed(void *ctx, qn_http_call *c)
{
    guest *g = ctx;
    g->closed++;
    for (size_t i = 0; i < g->n_held; i++)
        if (g->held[i] == c) g->held[i] = NULL;
}

static void turn(guest *g)
{
    qn_http_wake(g->http);
    must(qn_http_run(g->http), "the loop broke");
}

static void answer_held(guest *g)
{
    const size_t n = g->n_held;
    for (size_t i = 0; i < n; i++) {
        qn_http_call *c = g->held[i];
        if (!c) continue;
        qn_http_begin(c, 200, "text/event-stream", "");
        qn_http_send(c, QN_STR("data: a\n\n"));
        turn(g);
        if (g->held[i]) qn_http_send(c, QN_STR("data: b\n\n"));
        if (g->held[i]) qn_http_end(c);
    }
    g->n_held = 0;
}

static void hear(int fd)
{
    static char sink[1 << 16];
    while (recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
}

static int client(guest *g, bool over_tcp)
{
    const int on = 1;
    int pair[2];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(qn_http_port(g->http))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (over_tcp) {
        const struct linger reset = {1, 0}; /* no port is kept waiting */
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        must(fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0, "no connection");
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        turn(g);
        return fd;
    }
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "no pair of sockets");
    must(qn_http_adopt(g->http, pair[1], NULL) == QN_OK, "a socket is not taken");
    return pair[0];
}

static void visit(guest *g, const uint8_t *data, size_t n, size_t piece, unsigned how)
{
    int crowd[3] = {-1, -1, -1};
    for (size_t i = 0; (how & CROWD) && i < 3; i++) {
        static const char busy[] = "GET /hold HTTP/1.1\r\n\r\n";
        crowd[i] = client(g, true);
        if (how & HALF) (void)!send(crowd[i], busy, sizeof busy - 1, MSG_NOSIGNAL);
        turn(g);
    }
    const int fd = client(g, (how & OVER_TCP) != 0);
    for (size_t at = 0; at < n;) {
        const size_t size = n - at < piece ? n - at : piece;
        const ssize_t sent = send(fd, data + at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) break; /* it was closed */
        if (sent > 0) at += (size_t)sent;
        if (sent < 0) { /* no more is taken before there are answers, and they are read */
            answer_held(g);
            hear(fd);
        }
        turn(g);
    }
    if (how & HALF) shutdown(fd, SHUT_WR);
    for (int quiet = 0; quiet < 3; quiet++) {
        const size_t before = g->n_log + g->closed;
        turn(g);
        answer_held(g);
        hear(fd);
        if (g->n_log + g->closed != before) quiet = 0;
    }
    close(fd);
    for (size_t i = 0; i < 3; i++)
        if (crowd[i] >= 0) close(crowd[i]);
    for (int i = 0; i < 50 && g->closed < g->opened; i++) turn(g);
}

static void begin(guest *g, bool hasty)
{
    const qn_http_options o = {.host = "127.0.0.1",
                               .max_connections = 3,
                               .max_body = 2000,
                               .max_header = 4000,
                               .timeout_ms = hasty ? 0 : 1000000,
                               .tick_ms = hasty ? 1 : 1000000};
    const qn_http_handler handler = {g, on_headers, on_request, on_bad, on_closed, NULL, NULL};
    memset(g, 0, sizeof *g);
    must(qn_http_open(&g->http, &o, NULL) == QN_OK, "no server");
    qn_http_set_handler(g->http, &handler);
}

/* Bad ones are seen without headers, so calls are counted as they close. */
static void end(guest *g, size_t live)
{
    qn_http_close(g->http);
    must(g->closed >= g->opened, "a call did not end");
    must(qn_alloc_live() == live, "something stays behind");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static guest whole, cut;
    if (n < 1 || n > MAX_IN) return 0;
    const unsigned how = data[0];
    const bool compare = !(how & (HASTY | CROWD));
    const size_t live = qn_alloc_live();
    begin(&whole, (how & HASTY) != 0);
    if (how & CROWD) qn_http_drain(whole.http);
    visit(&whole, data + 1, n - 1, MAX_IN, how);
    end(&whole, live);
    begin(&cut, (how & HASTY) != 0);
    visit(&cut, data + 1, n - 1, 1 + (how % PIECES) * (how % PIECES), how);
    end(&cut, live);
    if (!compare) return 0;
    const size_t both = whole.n_log < cut.n_log ? whole.n_log : cut.n_log;
    must(memcmp(whole.log, cut.log, both * sizeof whole.log[0]) == 0, "other requests if cut");
    must(whole.n_log == cut.n_log, "more or fewer requests if cut");
    return 0;
}
