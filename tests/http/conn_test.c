/* SPDX-License-Identifier: Apache-2.0 */
/* conn_test.c - connections: deadlines, ceilings, clients that leave, wait, stall or flood, addresses, and
 * how few sends and allocations a stream takes. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "rig.h"
#include "server/server_int.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static bool rig_like(rig *r, qt *t, void (*change)(qn_http_options *o))
{
    qn_http_options o = rig_options;
    change(&o);
    return rig_open(r, t, &o);
}

/* A connection with a request that is being answered. */
static int hold(rig *r, qt *t, int fd)
{
    const size_t n = r->n_held;
    rig_say(t, fd, GET("/hold"));
    QT_OK(t, rig_wait(r, &r->n_held, n + 1));
    return fd;
}

/* -- deadlines ---------------------------------------------------------------------------------- */

static void soon(qn_http_options *o)
{
    o->timeout_ms = 30;
    o->tick_ms = 3;
}

/* One byte at a time does not put the end off. */
static void drip(qt *t, const char *head, char byte)
{
    rig r;
    char answer[512] = "";
    size_t n = 0;
    if (!rig_like(&r, t, soon)) return;
    const int fd = rig_connect(&r);
    rig_say(t, fd, head);
    for (int i = 0; i < 6000 && !n; i++) {
        (void)!send(fd, &byte, 1, MSG_NOSIGNAL);
        rig_turn(&r);
        usleep(1000);
        const ssize_t got = recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT);
        if (got > 0) n = (size_t)got;
    }
    QT_OKF(t, strstr(answer, "HTTP/1.1 408 "), "%s", answer);
    QT_EQ(t, r.status, 408);
    QT_EQ(t, r.requests, 0);
    close(fd);
    rig_close(&r);
}

static void headers_that_drip_in_time_out(qt *t) { drip(t, "GET / HTTP/1.1\r\nX: ", 'a'); }

static void a_body_that_drips_in_times_out(qt *t)
{
    drip(t, "POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n", 'b');
}

static void an_idle_connection_waits_for_ever(qt *t)
{
    rig r;
    if (!rig_like(&r, t, soon)) return;
    const int fresh = rig_connect(&r), used = rig_connect(&r);
    rig_ask(&r, t, used, GET("/x"), "GET /x");
    const size_t ticks = r.ticks;
    QT_OK(t, rig_wait(&r, &r.ticks, ticks + 40));
    QT_OK(t, strstr(rig_ask(&r, t, used, GET("/y"), "GET /y"), " 200 "));
    QT_OK(t, strstr(rig_ask(&r, t, fresh, GET("/z"), "GET /z"), " 200 "));
    hold(&r, t, used); /* and so does one whose answer takes its time */
    QT_OK(t, rig_wait(&r, &r.ticks, r.ticks + 40));
    qn_http_reply(r.held[0], 200, NULL, "", QN_STR("at last"));
    QT_OK(t, strstr(rig_hear(&r, used, "at last"), " 200 "));
    close(fresh);
    close(used);
    rig_close(&r);
}

/* -- ceilings ----------------------------------------------------------------------------------- */

static void three(qn_http_options *o) { o->max_connections = 3; }

static void the_oldest_idle_connection_makes_room(qt *t)
{
    rig r;
    char byte;
    int fd[5];
    if (!rig_like(&r, t, three)) return;
    for (int i = 0; i < 3; i++) {
        fd[i] = rig_connect(&r);
        rig_ask(&r, t, fd[i], GET("/x"), "GET /x");
        usleep(2000);
    }
    rig_ask(&r, t, fd[0], GET("/x"), "GET /x"); /* now the second is the oldest */
    fd[3] = rig_connect(&r);
    QT_OK(t, strstr(rig_ask(&r, t, fd[3], GET("/x"), "GET /x"), " 200 "));
    QT_EQ(t, recv(fd[1], &byte, 1, 0), 0);
    for (int i = 0; i < 4; i++)
        if (i != 1) hold(&r, t, fd[i]);
    fd[4] = rig_connect(&r); /* nobody is idle */
    const char *a = rig_hear(&r, fd[4], "\r\n\r\n");
    QT_OKF(t, strstr(a, "HTTP/1.1 503 "), "%s", a);
    for (int i = 0; i < 5; i++) close(fd[i]);
    rig_close(&r);
}

/* Without a descriptor to take a connection with, the loop sleeps, and takes it when there is one. */
static void no_descriptors_do_not_spin(qt *t)
{
    rig r;
    struct rlimit old, low;
    if (!rig_open(&r, t, NULL) || getrlimit(RLIMIT_NOFILE, &old) != 0) return;
    const int held = hold(&r, t, rig_connect(&r)), fd = rig_connect(&r);
    low = (struct rlimit){(rlim_t)fd + 1, old.rlim_max};
    QT_EQ(t, setrlimit(RLIMIT_NOFILE, &low), 0);
    rig_say(t, fd, GET("/x"));
    rig_turn(&r);
    const size_t ticks = r.ticks, runs = r.runs;
    QT_OK(t, rig_wait(&r, &r.ticks, ticks + 5));
    QT_OKF(t, r.runs - runs <= 3 * (r.ticks - ticks), "%zu turns", r.runs - runs);
    QT_EQ(t, setrlimit(RLIMIT_NOFILE, &old), 0);
    QT_OK(t, strstr(rig_hear(&r, fd, "GET /x"), " 200 "));
    close(held);
    close(fd);
    rig_close(&r);
}

/* -- clients that leave ------------------------------------------------------------------------- */

enum { LEAVE_BEFORE, LEAVE_IN_STREAM, LEAVE_WITH_RESET, LEAVE_KINDS };

/* The loop neither reads nor writes then: nothing but the other side tells. */
static void leaving_shows_while_nothing_is_said(qt *t)
{
    for (int how = 0; how < LEAVE_KINDS; how++) {
        rig r;
        if (!rig_open(&r, t, NULL)) return;
        const int fd = hold(&r, t, rig_connect(&r));
        const struct linger reset = {1, 0};
        if (how == LEAVE_IN_STREAM) {
            qn_http_begin(r.held[0], 200, "text/plain", "");
            qn_http_send(r.held[0], QN_STR("x"));
            rig_hear(&r, fd, "x\r\n");
        }
        if (how == LEAVE_WITH_RESET) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
        QT_OK(t, rig_wait(&r, &r.closed, 1));
        QT_EQ(t, r.closed, 1);
        rig_close(&r);
        QT_EQ(t, r.closed, 1);
    }
}

/* A client may end its own side and wait: what tells it from one that left must not hurt it. */
static void who_only_stops_sending_is_answered(qt *t)
{
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    for (int stream = 0; stream < 2; stream++) {
        const int fd = hold(&r, t, rig_connect(&r));
        qn_http_call *c = r.held[r.n_held - 1];
        if (stream) {
            qn_http_begin(c, 200, "text/plain", "");
            rig_hear(&r, fd, "\r\n\r\n");
        }
        shutdown(fd, SHUT_WR);
        for (int i = 0; i < 20; i++) rig_turn(&r);
        QT_EQ(t, r.closed, stream);
        if (stream) {
            qn_http_send(c, QN_STR("late"));
            qn_http_end(c);
            QT_STR(t, rig_hear(&r, fd, NULL), "04\r\nlate\r\n0\r\n\r\n");
        } else {
            qn_http_reply(c, 200, NULL, "", QN_STR("late"));
            const char *a = rig_hear(&r, fd, NULL);
            QT_OKF(t,
                   strncmp(a, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", 42) == 0 &&
                       strstr(a, "late"),
                   "%s", a);
        }
        close(fd);
    }
    rig_close(&r);
}

static void who_does_not_read_is_let_go(qt *t)
{
    static char much[1 << 20];
    rig r;
    int i = 0;
    if (!rig_open(&r, t, NULL)) return;
    memset(much, 'x', sizeof much);
    const int fd = hold(&r, t, rig_pair(&r, SOCK_STREAM));
    const size_t before = qn_alloc_live_bytes();
    qn_http_begin(r.held[0], 200, "text/plain", "");
    for (; i < 40 && !r.closed; i++) {
        qn_http_send(r.held[0], qn_str_make(much, sizeof much));
        rig_turn(&r);
        QT_OK(t, qn_alloc_live_bytes() < before + (70u << 20));
    }
    QT_OKF(t, i > 10 && r.closed == 1, "%d", i);
    QT_OK(t, qn_alloc_live_bytes() <= before);
    close(fd);
    rig_close(&r);
}

/* It reads slowly all the time: memory follows what is unread, not what was ever sent. */
static void a_slow_reader_costs_what_it_owes(qt *t)
{
    static char much[1 << 16], sink[1 << 16];
    rig r;
    size_t sent = 0, got = 0;
    if (!rig_open(&r, t, NULL)) return;
    const int fd = hold(&r, t, rig_pair(&r, SOCK_STREAM));
    const size_t before = qn_alloc_live_bytes();
    qn_http_begin(r.held[0], 200, "text/plain", "");
    for (int i = 0; i < 1000; i++) {
        qn_http_send(r.held[0], qn_str_make(much, sizeof much));
        sent += sizeof much;
        rig_turn(&r);
        while (sent > got + (1u << 20)) {
            const ssize_t n = recv(fd, sink, sizeof sink, MSG_DONTWAIT);
            if (n > 0) got += (size_t)n;
            rig_turn(&r);
        }
        QT_OK(t, qn_alloc_live_bytes() < before + (8u << 20));
    }
    QT_EQ(t, r.closed, 0);
    close(fd);
    rig_close(&r);
}

/* The client sends all of a body that was refused at its headers, then reads the answer. */
static void the_answer_outlives_a_body_nobody_wants(qt *t)
{
    static char body[5 << 20];
    static const char head[] = "POST /early HTTP/1.1\r\nContent-Length: 5242880\r\n\r\n";
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    memset(body, 'x', sizeof body);
    const int fd = rig_connect(&r);
    rig_say(t, fd, head);
    for (size_t at = 0; at < sizeof body;) {
        const ssize_t n = send(fd, body + at, sizeof body - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (!QT_OKF(t, n > 0 || errno == EAGAIN, "%s", strerror(errno))) break;
        if (n > 0) at += (size_t)n;
        rig_turn(&r);
    }
    const char *a = rig_hear(&r, fd, NULL);
    QT_OKF(t, strstr(a, "HTTP/1.1 403 ") && strstr(a, "early"), "%s", a);
    close(fd);
    rig_close(&r);
}

static size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* Everywhere in a request or an answer. */
static void leaving_anywhere_leaves_nothing_behind(qt *t)
{
    static const char ask[] = "POST /stream HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "4\r\nbody\r\n0\r\n\r\n" GET("/x") GET("/hold");
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    const size_t files = open_files(), live = qn_alloc_live();
    for (int i = 0; i < 600; i++) {
        const struct linger reset = {1, 0};
        const int fd = i % 2 ? rig_connect(&r) : rig_pair(&r, SOCK_STREAM);
        const size_t n = qt_rand() % sizeof ask;
        if (!QT_OK(t, fd >= 0)) break;
        QT_EQ(t, send(fd, ask, n, MSG_NOSIGNAL), n);
        for (uint64_t k = qt_rand() % 4; k > 0; k--) rig_turn(&r);
        if (qt_rand() % 4 == 0) shutdown(fd, SHUT_WR);
        if (qt_rand() % 4 == 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        if (qt_rand() % 2) rig_turn(&r);
        close(fd);
        r.n_held = 0;
    }
    for (int i = 0; i < 6000 && (open_files() > files || qn_alloc_live() > live); i++)
        (void)qn_http_run(r.http);
    QT_EQ(t, open_files(), files);
    QT_EQ(t, qn_alloc_live(), live);
    rig_close(&r);
}

/* -- few calls ---------------------------------------------------------------------------------- */

/* A socket that keeps messages apart shows each send. */
static void a_turn_is_one_send(qt *t)
{
    rig r;
    char got[2048];
    if (!rig_open(&r, t, NULL)) return;
    const int fd = hold(&r, t, rig_pair(&r, SOCK_SEQPACKET));
    qn_http_begin(r.held[0], 200, "text/plain", "");
    for (int i = 0; i < 3; i++) qn_http_send(r.held[0], QN_STR("abc"));
    rig_turn(&r);
    const ssize_t n = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);
    got[n > 0 ? n : 0] = '\0';
    QT_EQ(t, rig_count(got, "3\r\nabc\r\n"), 3);
    QT_OK(t, recv(fd, got, sizeof got, MSG_DONTWAIT) < 0);
    close(fd);
    rig_close(&r);
}

static void a_piece_allocates_nothing_once_it_flows(qt *t)
{
    rig r;
    char got[1 << 12];
    if (!rig_open(&r, t, NULL)) return;
    const int fd = hold(&r, t, rig_pair(&r, SOCK_STREAM));
    qn_http_begin(r.held[0], 200, "text/plain", "");
    for (int i = 0; i < 50; i++) {
        if (i == 10) qn_alloc_fail_after(0);
        qn_http_send(r.held[0], QN_STR("a piece of a stream"));
        rig_turn(&r);
        QT_OK(t, recv(fd, got, sizeof got, MSG_DONTWAIT) > 0);
    }
    qn_alloc_fail_after(SIZE_MAX);
    QT_EQ(t, r.closed, 0);
    close(fd);
    rig_close(&r);
}

static void many_wakes_are_one(qt *t)
{
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    for (int turn = 1; turn <= 3; turn++) {
        for (int i = 0; i < 100; i++) qn_http_wake(r.http);
        QT_OK(t, qn_http_run(r.http));
        QT_EQ(t, r.woken, turn);
    }
    rig_close(&r);
}

/* -- addresses ---------------------------------------------------------------------------------- */

static bool has_v6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_STREAM, 0);
    const bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof a) == 0;
    if (fd >= 0) close(fd);
    return has;
}

static bool reaches(rig *r, qt *t, bool v6)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(qn_http_port(r->http))};
    struct sockaddr_in6 b = {.sin6_family = AF_INET6,
                             .sin6_port = htons(qn_http_port(r->http)),
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    const int rc = v6 ? connect(fd, (const struct sockaddr *)&b, sizeof b)
                      : connect(fd, (const struct sockaddr *)&a, sizeof a);
    const bool ok = rc == 0 && strstr(rig_ask(r, t, fd, GET("/x"), "GET /x"), " 200 ");
    close(fd);
    return ok;
}

static void hosts_are_addresses_or_names(qt *t)
{
    const bool v6 = has_v6();
    static const struct {
        const char *host;
        bool v4, v6;
    } cases[] = {{"127.0.0.1", true, false},
                 {"0.0.0.0", true, false},
                 {"localhost", true, true},
                 {"::1", false, true},
                 {"::", true, true}};
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        rig r;
        qn_http_options o = rig_options;
        o.host = cases[i].host;
        if (!v6 && !cases[i].v4) continue;
        if (!v6 && strcmp(o.host, "::") == 0) continue;
        if (!rig_open(&r, t, &o)) continue;
        QT_OKF(t, reaches(&r, t, false) == cases[i].v4, "%s", o.host);
        /* "localhost" may name no IPv6 address here */
        if (v6 && i != 2) QT_OKF(t, reaches(&r, t, true) == cases[i].v6, "%s", o.host);
        rig_close(&r);
    }
}

static void what_cannot_be_listened_on_is_told(qt *t)
{
    rig r;
    qn_err err = {0};
    qn_http *second = NULL;
    qn_http_options o = rig_options;
    if (!rig_open(&r, t, NULL)) return;
    o.port = qn_http_port(r.http);
    QT_EQ(t, qn_http_open(&second, &o, &err), QN_E_IO);
    QT_OKF(t, !second && strstr(err.msg, "in use") && strstr(err.msg, "127.0.0.1"), "%s", err.msg);
    o.port = 0;
    o.host = "no such host";
    QT_EQ(t, qn_http_open(&second, &o, &err), QN_E_INVAL);
    QT_OKF(t, !second && strstr(err.msg, "no such host"), "%s", err.msg);
    o.host = "192.0.2.1"; /* for documentation: nobody's */
    QT_EQ(t, qn_http_open(&second, &o, &err), QN_E_IO);
    QT_OKF(t, !second && strstr(err.msg, "192.0.2.1"), "%s", err.msg);
    rig_close(&r);
}

static void opening_survives_each_refused_allocation(qt *t)
{
    const size_t before = qn_alloc_live(), files = open_files();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 50; n++) {
        qn_err err = {0};
        qn_http *h = NULL;
        qn_alloc_fail_after(n);
        rc = qn_http_open(&h, &rig_options, &err);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK ? h != NULL : rc == QN_E_NOMEM && !h && err.msg[0]);
        qn_http_close(h);
        QT_EQ(t, qn_alloc_live(), before);
        QT_EQ(t, open_files(), files);
    }
    QT_EQ(t, rc, QN_OK);
}

/* -- streams that say nothing ------------------------------------------------------------------- */

static void a_silent_stream_gets_a_comment_in_time(qt *t)
{
    static const uint64_t s = 1000000000;
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    const int fd = hold(&r, t, rig_pair(&r, SOCK_STREAM));
    struct qn_server server = {.o = {.keep_alive_ms = 15000}, .http = r.http};
    qn_task task = {.server = &server, .call = r.held[0], .streaming = true};
    qn_http_begin(r.held[0], 200, "text/event-stream", "");
    rig_hear(&r, fd, "\r\n\r\n");
    task.spoke_ns = qn_clock_ns();
    qn_task_keep_alive(&task, task.spoke_ns + 15 * s - 1);
    rig_turn(&r);
    char byte;
    QT_OK(t, recv(fd, &byte, 1, MSG_DONTWAIT) < 0);
    qn_task_keep_alive(&task, task.spoke_ns + 15 * s);
    QT_STR(t, rig_hear(&r, fd, "\n\n\r\n"), "e\r\n: keep-alive\n\n\r\n");
    qn_task_keep_alive(&task, task.spoke_ns + s); /* it has spoken */
    rig_turn(&r);
    QT_OK(t, recv(fd, &byte, 1, MSG_DONTWAIT) < 0);
    close(fd);
    rig_close(&r);
}

QT_MAIN(QT(headers_that_drip_in_time_out), QT(a_body_that_drips_in_times_out),
        QT(an_idle_connection_waits_for_ever), QT(the_oldest_idle_connection_makes_room),
        QT(no_descriptors_do_not_spin), QT(leaving_shows_while_nothing_is_said),
        QT(who_only_stops_sending_is_answered), QT(who_does_not_read_is_let_go),
        QT(a_slow_reader_costs_what_it_owes), QT(the_answer_outlives_a_body_nobody_wants),
        QT(leaving_anywhere_leaves_nothing_behind), QT(a_turn_is_one_send),
        QT(a_piece_allocates_nothing_once_it_flows), QT(many_wakes_are_one),
        QT(hosts_are_addresses_or_names), QT(what_cannot_be_listened_on_is_told),
        QT(opening_survives_each_refused_allocation), QT(a_silent_stream_gets_a_comment_in_time))
