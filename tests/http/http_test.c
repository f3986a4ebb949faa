/* SPDX-License-Identifier: Apache-2.0 */
/* http_test.c - what is a request and what is none: framing, ceilings, order, the statuses of what is
 * refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "rig.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(path, head, body) "POST " path " HTTP/1.1\r\nHost: a\r\n" head "\r\n" body
#define CHUNKED "Transfer-Encoding: chunked\r\n"

/* One exchange on a connection of its own, read to its end. */
static const char *ask_once(rig *r, qt *t, const char *text)
{
    static char kept[1 << 16];
    const int fd = rig_connect(r);
    if (!QT_OK(t, fd >= 0)) return "";
    rig_say(t, fd, text);
    shutdown(fd, SHUT_WR);
    snprintf(kept, sizeof kept, "%s", rig_hear(r, fd, NULL));
    close(fd);
    return kept;
}

static int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static void a_connection_is_kept(qt *t)
{
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    const int fd = rig_connect(&r);
    for (int i = 0; i < 3; i++) {
        const char *a = rig_ask(&r, t, fd, GET("/a%20b?q=1"), "GET /a b ");
        QT_OKF(t, status_of(a) == 200 && strstr(a, "Connection: keep-alive"), "%s", a);
        a = rig_ask(&r, t, fd, POST("/p", "Content-Length: 4\r\n", "body"), "POST /p body");
        QT_OKF(t, status_of(a) == 200, "%s", a);
        a = rig_ask(&r, t, fd, GET("/stream"), "0\r\n\r\n");
        QT_OKF(t, strstr(a, "3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n") != NULL, "%s", a);
    }
    QT_EQ(t, r.closed, 9);
    close(fd);
    rig_close(&r);
}

static void who_wants_it_closed_has_it_closed(qt *t)
{
    static const struct {
        const char *ask;
        bool kept;
    } cases[] = {
        {"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
        {"GET /x HTTP/1.0\r\n\r\n", false},
        {"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false}, /* ends as it closes */
        {"GET /early HTTP/1.1\r\n\r\n", true},
        {"POST /early HTTP/1.1\r\nContent-Length: 5\r\n\r\n", false},
        {"GET /x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", true},
    };
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        const int fd = rig_connect(&r);
        const char *a = rig_ask(&r, t, fd, cases[i].ask, cases[i].kept ? "\r\n\r\n" : NULL);
        QT_OKF(t, strstr(a, cases[i].kept ? "Connection: keep-alive" : "Connection: close") != NULL,
               "%zu: %s", i, a);
        if (i == 3) QT_OKF(t, strstr(a, "\r\n\r\nonetwothree") && !strstr(a, "chunked"), "%s", a);
        close(fd);
    }
    qn_http_drain(r.http);
    const char *a = ask_once(&r, t, GET("/x"));
    QT_OKF(t, strstr(a, "Connection: close") != NULL, "%s", a);
    rig_close(&r);
}

/* A thousand requests in one piece, among them some that are answered later. */
static void a_thousand_sent_ahead_are_answered_in_order(qt *t)
{
    enum { N = 1000, ROOM = 64 };
    static char ask[N * ROOM];
    rig r;
    size_t n = 0;
    char want[32];
    if (!rig_open(&r, t, NULL)) return;
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(ask + n, sizeof ask - n, "%s /%04d HTTP/1.1\r\n%s\r\n%s",
                              i % 7 ? "GET" : "POST", i, i % 7 ? "" : "Content-Length: 3\r\n",
                              i % 7 ? "" : "abc");
    const int fd = rig_connect(&r);
    rig_say(t, fd, ask);
    const char *a = rig_hear(&r, fd, "/0999 ");
    const char *at = a;
    for (int i = 0; i < N && at; i++) {
        snprintf(want, sizeof want, "%s /%04d %s", i % 7 ? "GET" : "POST", i, i % 7 ? "" : "abc");
        at = strstr(at, want);
    }
    QT_OK(t, at != NULL);
    QT_EQ(t, rig_count(a, "HTTP/1.1 200"), N);
    close(fd);
    rig_close(&r);
}

static void the_next_waits_for_the_answer(qt *t)
{
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    const int fd = rig_connect(&r);
    rig_say(t, fd, GET("/hold") GET("/second"));
    QT_OK(t, rig_wait(&r, &r.requests, 1));
    for (int i = 0; i < 5; i++) rig_turn(&r);
    QT_EQ(t, r.requests, 1);
    qn_http_reply(r.held[0], 200, NULL, "", QN_STR("first"));
    const char *a = rig_hear(&r, fd, "/second");
    QT_OKF(t, strstr(a, "first") && strstr(a, "first") < strstr(a, "/second"), "%s", a);
    close(fd);
    rig_close(&r);
}

/* What a client sends while it is owed an answer stays with the system but for one read. */
static void input_while_answering_is_bounded(qt *t)
{
    static char flood[1 << 20];
    rig r;
    size_t sent = 0;
    if (!rig_open(&r, t, NULL)) return;
    memset(flood, 'x', sizeof flood);
    const int fd = rig_pair(&r, SOCK_STREAM);
    rig_say(t, fd, GET("/hold"));
    QT_OK(t, rig_wait(&r, &r.requests, 1));
    const size_t before = qn_alloc_live_bytes();
    for (int i = 0; i < 200; i++) {
        const ssize_t n = send(fd, flood, sizeof flood, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) sent += (size_t)n;
        rig_turn(&r);
    }
    QT_OK(t, sent < (8u << 20));
    QT_OK(t, qn_alloc_live_bytes() < before + (128u << 10));
    QT_EQ(t, r.closed, 0);
    close(fd);
    rig_close(&r);
}

static void bodies_come_whole_or_in_chunks(qt *t)
{
    static const struct {
        const char *ask, *want;
    } cases[] = {
        {POST("/a", "Content-Length: 5\r\n", "hello"), "POST /a hello"},
        {POST("/b", CHUNKED, "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"), "POST /b hello"},
        {POST("/c", CHUNKED, "5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"), "POST /c hello"},
        {POST("/d", CHUNKED, "0\r\n\r\n"), "POST /d "},
        {POST("/e", "", ""), "POST /e "},
        {POST("/f", "Content-Length: 0\r\n", ""), "POST /f "},
        {"\r\n\r\n" GET("/g"), "GET /g "},
        {"GET http://host:80/h?x HTTP/1.1\r\n\r\n", "GET /h "},
        {"GET http://host HTTP/1.1\r\n\r\n", "GET / "},
        {"OPTIONS * HTTP/1.1\r\n\r\n", "OPTIONS * "},
    };
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        const char *a = ask_once(&r, t, cases[i].ask);
        QT_OKF(t, status_of(a) == 200 && strstr(a, cases[i].want), "%zu: %s", i, a);
    }
    rig_close(&r);
}

static void answers_without_a_body_have_none(qt *t)
{
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    const char *a = ask_once(&r, t, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
    QT_OKF(t, status_of(a) == 200 && strstr(a, "Content-Length: 8") && !strstr(a, "HEAD /x"), "%s",
           a);
    a = ask_once(&r, t, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    QT_OKF(t, status_of(a) == 200 && !strstr(a, "one") && !strstr(a, "0\r\n\r\n"), "%s", a);
    a = ask_once(&r, t, GET("/same"));
    QT_OKF(t, status_of(a) == 304 && !strstr(a, "Content-Length") && !strstr(a, "GET /same"), "%s",
           a);
    rig_close(&r);
}

/* Each of these is answered with its status, and is the last that its connection hears. */
static void what_is_no_request_gets_its_status(qt *t)
{
    static const struct {
        const char *ask;
        int status;
    } cases[] = {
        {"\001\002garbage\r\n\r\n", 400},
        {"\x16\x03\x01\x02\x01\x01\x01\xfc\x03\x03", 400},
        {"FETCH / HTTP/1.1\r\n\r\n", 400},
        {"GET\r\n\r\n", 400},
        {"GET / HTTP\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\n\r\n", 400},
        {"GET /%zz HTTP/1.1\r\n\r\n", 400},
        {"GET /a%00b HTTP/1.1\r\n\r\n", 400},
        {"GET /%4 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT a:1 HTTP/1.1\r\n\r\n", 400},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nBroken header\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nSpaced : x\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nX: \001\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", 400},
        {"GET / HTTP/1.1\nX: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nX: a\n\r\n", 400},
        {"GET / HTTP/1.1\r\nX: a\r\n\n", 400},
        {"GET / HTTP/1.1\r\nX: \rTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.1\rX: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n X: a\r\n\r\n", 400},
        {POST("/", "Transfer-Encoding: chunked\r\n , gzip\r\n", "0\r\n\r\n"), 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nOrigin: a\r\nHost: a\r\nOrigin: b\r\n\r\n", 400},
        {POST("/", "Content-Length: -5\r\n", "12345"), 400},
        {POST("/", "Content-Length: 5x\r\n", "12345"), 400},
        {POST("/", "Content-Length: 5, 5\r\n", "12345"), 400},
        {POST("/", "Content-Length: 99999999999999999999\r\n", "1"), 400},
        {POST("/", "Content-Length: 5\r\nContent-Length: 6\r\n", "123456"), 400},
        {POST("/", "Content-Length: 5\r\n" CHUNKED, "0\r\n\r\n" GET("/smuggled")), 400},
        {POST("/", CHUNKED "Content-Length: 5\r\n", "0\r\n\r\n" GET("/smuggled")), 400},
        {POST("/", "Transfer-Encoding: gzip\r\n", "x"), 400},
        {POST("/", "Transfer-Encoding: chunked, gzip\r\n", "x"), 400},
        {"POST / HTTP/1.0\r\n" CHUNKED "\r\n0\r\n\r\n", 400},
        {POST("/", CHUNKED, "x\r\n"), 400},
        {POST("/", CHUNKED, "fffffffffffffffff\r\n"), 400},
        {POST("/", CHUNKED, "2\r\nabc\r\n"), 400},
        {POST("/", CHUNKED, "2\r\nabXY0\r\n\r\n"), 400},
        {POST("/", CHUNKED, "2\r\nab\rY0\r\n\r\n"), 400},
        {POST("/", CHUNKED, "2\rXab\r\n0\r\n\r\n"), 400},
        {POST("/", CHUNKED, "2\nab\r\n0\r\n\r\n"), 400},
        {POST("/", CHUNKED, "0\r\n\rX"), 400},
        {POST("/", CHUNKED, "0\r\nBad name: x\r\n\r\n"), 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n\rX", 400},
        {"GET /a\tb HTTP/1.1\r\n\r\n", 400},
        {POST("/", "Content-Length: 1001\r\n", ""), 413},
        {POST("/", CHUNKED, "3e9\r\n"), 413},
        {POST("/", CHUNKED, "1\r\na\r\n3e8\r\n"), 413},
        {"GET / HTTP/2.0\r\n\r\n", 505},
        {"GET / HTTP/0.9\r\n\r\n", 505},
        {"GET /\r\n\r\n", 505},
    };
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        const size_t requests = r.requests;
        const char *a = ask_once(&r, t, cases[i].ask);
        QT_OKF(t, status_of(a) == cases[i].status && strstr(a, "Connection: close"),
               "%zu: %s -> %s", i, cases[i].ask, a);
        QT_EQ(t, rig_count(a, "HTTP/1.1 "), 1);
        QT_EQ(t, r.requests, requests);
    }
    QT_EQ(t, r.bad, QT_LEN(cases));
    QT_EQ(t, r.closed, r.bad);
    r.wordless = true; /* nothing is said at all */
    QT_STR(t, ask_once(&r, t, cases[0].ask), "");
    rig_close(&r);
}

/* lines headers of some bytes each behind a target of some bytes. */
static const char *make_head(size_t target, size_t lines, size_t bytes)
{
    static char text[1 << 16];
    size_t n = (size_t)snprintf(text, sizeof text, "GET /");
    memset(text + n, 'a', target - 1);
    n += target - 1;
    n += (size_t)snprintf(text + n, sizeof text - n, " HTTP/1.1\r\n");
    for (size_t i = 0; i < lines; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "X-%zu: %0*d\r\n", i, (int)bytes, 0);
    snprintf(text + n, sizeof text - n, "\r\n");
    return text;
}

/* The ceilings hold at the byte, whole or one byte at a time. */
static void heads_have_ceilings(qt *t)
{
    const size_t max = rig_options.max_header;
    const char *one = make_head(1, 1, 1);
    const size_t least = strlen(one);
    const struct {
        size_t target, lines, bytes;
        int status;
    } cases[] = {{1, 100, 1, 200},
                 {1, 101, 1, 431},
                 {1, 1, max - least + 1, 200},
                 {1, 1, max - least + 2, 431},
                 {8192, 1, 1, 200},
                 {8193, 1, 1, 414},
                 {1, 1, 40000, 431}};
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        const char *head = make_head(cases[i].target, cases[i].lines, cases[i].bytes);
        QT_EQ(t, status_of(ask_once(&r, t, head)), cases[i].status);
        const int fd = rig_pair(&r, SOCK_STREAM);
        const size_t bad = r.bad, requests = r.requests;
        for (const char *p = head; *p && r.bad == bad && r.requests == requests; p += 7) {
            QT_OK(t, send(fd, p, strnlen(p, 7), MSG_NOSIGNAL) > 0);
            rig_turn(&r);
            if (strnlen(p, 7) < 7) break;
        }
        QT_EQ(t, status_of(rig_hear(&r, fd, "\r\n\r\n")), cases[i].status);
        close(fd);
    }
    rig_close(&r);
}

static void who_asks_first_is_told_to_go_on(qt *t)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    rig r;
    if (!rig_open(&r, t, NULL)) return;
    int fd = rig_connect(&r);
    const char *a = rig_ask(
        &r, t, fd, POST("/x", "Expect: 100-continue\r\nContent-Length: 3\r\n", ""), "\r\n\r\n");
    QT_STR(t, a, go_on);
    a = rig_ask(&r, t, fd, "abc", "POST /x abc");
    QT_OKF(t, status_of(a) == 200 && !strstr(a, "100 Continue"), "%s", a);
    close(fd);
    fd = rig_connect(&r); /* too large: refused instead, so the body is never sent */
    a = rig_ask(&r, t, fd, POST("/x", "Expect: 100-continue\r\nContent-Length: 3000\r\n", ""),
                NULL);
    QT_OKF(t, status_of(a) == 413 && !strstr(a, "100 Continue"), "%s", a);
    close(fd);
    rig_close(&r);
}

static void serving_survives_each_refused_allocation(qt *t)
{
    static const char ask[] =
        GET("/stream") POST("/a", CHUNKED, "5\r\nhello\r\n0\r\n\r\n") GET("/b");
    size_t n = 0;
    const size_t before = qn_alloc_live();
    for (bool done = false; n < 200 && !done; n++) {
        rig r;
        if (!rig_open(&r, t, NULL)) return;
        const int fd = rig_pair(&r, SOCK_STREAM);
        rig_say(t, fd, ask);
        qn_alloc_fail_after(n);
        for (int i = 0; i < 4; i++) rig_turn(&r);
        qn_alloc_fail_after(SIZE_MAX);
        const char *a = rig_hear(&r, fd, "/b");
        done = rig_count(a, " 200 OK") == 3;
        QT_OKF(t, done || *a == '\0' || strstr(a, "HTTP/1.1 "), "%s", a);
        close(fd);
        rig_close(&r);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, n > 5 && n < 200);
}

QT_MAIN(QT(a_connection_is_kept), QT(who_wants_it_closed_has_it_closed),
        QT(a_thousand_sent_ahead_are_answered_in_order), QT(the_next_waits_for_the_answer),
        QT(input_while_answering_is_bounded), QT(bodies_come_whole_or_in_chunks),
        QT(answers_without_a_body_have_none), QT(what_is_no_request_gets_its_status),
        QT(heads_have_ceilings), QT(who_asks_first_is_told_to_go_on),
        QT(serving_survives_each_refused_allocation))
