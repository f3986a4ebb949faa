/* SPDX-License-Identifier: Apache-2.0 */
/* rig.c - see rig.h. */
#include "rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEARD = 1 << 20, PATIENCE = 6000 }; /* turns of at most a tick */

static char heard[HEARD];

const qn_http_options rig_options = {.host = "127.0.0.1",
                                     .max_connections = 32,
                                     .max_body = 1000,
                                     .max_header = 16 << 10,
                                     .timeout_ms = 60000,
                                     .tick_ms = 10};

static void on_headers(void *ctx, qn_http_call *c, const qn_http_request *q)
{
    (void)ctx;
    if (qn_str_has_prefix(q->path, QN_STR("/early")))
        qn_http_reply(c, 403, "text/plain", "", QN_STR("early"));
}

static void on_request(void *ctx, qn_http_call *c, const qn_http_request *q)
{
    rig *r = ctx;
    static char text[3 * 4096 + 8]; /* as much as QN_STR_ARG shows of three */
    r->requests++;
    if (qn_str_has_prefix(q->path, QN_STR("/hold"))) {
        if (r->n_held < RIG_HELD) r->held[r->n_held++] = c;
        return;
    }
    if (qn_str_has_prefix(q->path, QN_STR("/stream"))) {
        qn_http_begin(c, 200, "text/plain", "");
        qn_http_send(c, QN_STR("one"));
        qn_http_send(c, QN_STR("two"));
        qn_http_send(c, QN_STR("three"));
        qn_http_end(c);
        return;
    }
    const int n = snprintf(text, sizeof text, "%.*s %.*s %.*s", QN_STR_ARG(q->method),
                           QN_STR_ARG(q->path), QN_STR_ARG(q->body));
    qn_http_reply(c, qn_str_eq_z(q->path, "/same") ? 304 : 200, "text/plain", "",
                  qn_str_make(text, (size_t)n));
}

static void on_bad(void *ctx, qn_http_call *c, int status)
{
    rig *r = ctx;
    r->bad++;
    r->status = status;
    if (!r->wordless) qn_http_reply(c, status, "text/plain", "", QN_STR("bad"));
}

static void on_closed(void *ctx, qn_http_call *c)
{
    rig *r = ctx;
    r->closed++;
    for (size_t i = 0; i < r->n_held; i++)
        if (r->held[i] == c) r->held[i] = NULL;
}

static void on_woken(void *ctx) { ((rig *)ctx)->woken++; }
static void on_tick(void *ctx) { ((rig *)ctx)->ticks++; }

bool rig_open(rig *r, qt *t, const qn_http_options *o)
{
    qn_err err = {0};
    *r = (rig){0};
    const qn_http_handler handler = {r,         on_headers, on_request, on_bad,
                                     on_closed, on_woken,   on_tick};
    const qn_code rc = qn_http_open(&r->http, o ? o : &rig_options, &err);
    if (!QT_OKF(t, rc == QN_OK, "%s", err.msg)) return false;
    qn_http_set_handler(r->http, &handler);
    return true;
}

void rig_close(rig *r) { qn_http_close(r->http); }

static void run(rig *r)
{
    r->runs++;
    (void)qn_http_run(r->http);
}

void rig_turn(rig *r)
{
    qn_http_wake(r->http);
    run(r);
}

int rig_connect(const rig *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(qn_http_port(r->http))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

int rig_pair(rig *r, int type)
{
    int pair[2];
    if (socketpair(AF_UNIX, type, 0, pair) != 0) return -1;
    if (qn_http_adopt(r->http, pair[1], NULL) == QN_OK) return pair[0];
    close(pair[0]);
    return -1;
}

void rig_say(qt *t, int fd, const char *text)
{
    QT_EQ(t, send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

const char *rig_hear(rig *r, int fd, const char *mark)
{
    size_t n = 0;
    heard[0] = '\0';
    for (int i = 0; i < PATIENCE && n + 1 < HEARD; i++) {
        const ssize_t got = recv(fd, heard + n, HEARD - 1 - n, MSG_DONTWAIT);
        if (got == 0) break;
        if (got > 0) n += (size_t)got;
        heard[n] = '\0';
        if (mark && strstr(heard, mark)) break;
        if (got < 0) run(r);
    }
    return heard;
}

const char *rig_ask(rig *r, qt *t, int fd, const char *text, const char *mark)
{
    rig_say(t, fd, text);
    return rig_hear(r, fd, mark);
}

bool rig_wait(rig *r, const size_t *count, size_t n)
{
    for (int i = 0; i < PATIENCE && *count < n; i++) run(r);
    return *count >= n;
}

size_t rig_count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}
