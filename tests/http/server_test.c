/* SPDX-License-Identifier: Apache-2.0 */
/* server_test.c - the server as its clients see it: routes, answers whole and streamed, who may ask,
 * ceilings, clients that leave, the end. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "served.h"

enum { ANSWER = 1 << 18, STREAMS = 200, LEAVERS = 100 };

#define COMPLETION "/v1/completions"
#define ASK "{\"prompt\": [1, 5, 9], \"max_tokens\": 6, \"temperature\": 0, \"ignore_eos\": true"
/* It leaves no prefix behind, so that bytes can be compared. */
#define LONG_STREAM                                                                          \
    "{\"prompt\": [1, 5, 9], \"max_tokens\": 100000, \"temperature\": 0, \"stream\": true, " \
    "\"ignore_eos\": true, \"cache_prompt\": false}"

static char answer[ANSWER];

static int get(const served *s, const char *path, const char *head)
{
    return served_ask(s, "GET", path, head, NULL, answer, sizeof answer);
}

static int post(const served *s, const char *path, const char *head, const char *body)
{
    return served_ask(s, "POST", path, head, body, answer, sizeof answer);
}

static const char *body(void)
{
    const char *at = strstr(answer, "\r\n\r\n");
    return at ? at + 4 : "";
}

static void routes_answer(qt *t)
{
    served s;
    if (!served_start(&s, t, NULL)) return;
    QT_EQ(t, get(&s, "/health", ""), 200);
    QT_STR(t, body(), "{\"status\": \"ok\"}");
    QT_EQ(t, get(&s, "/v1/models", ""), 200);
    QT_OK(t, strstr(body(), "\"tiny\""));
    QT_EQ(t, get(&s, "/v1/models/tiny", ""), 200);
    QT_EQ(t, get(&s, "/v1/models/other", ""), 404);
    QT_EQ(t, get(&s, "/v1", ""), 200);
    QT_OK(t, strstr(body(), "POST /v1/completions"));
    QT_EQ(t, get(&s, "/metrics", ""), 200);
    QT_OK(t, strstr(body(), "quern_requests_running 0\n"));
    QT_EQ(t, get(&s, "/nowhere", ""), 404);
    QT_OK(t, strstr(body(), "\"not_found\""));
    QT_EQ(t, get(&s, COMPLETION, ""), 405);
    QT_EQ(t, post(&s, "/health", "", "{}"), 405);
    QT_EQ(t, post(&s, "/detokenize", "", "{\"tokens\": [5, 6]}"), 200);
    QT_EQ(t, post(&s, "/tokenize", "", "{\"content\": \"abc\"}"), 200);
    QT_OK(t, strstr(body(), "\"count\""));
    served_stop(&s, t);
}

static void a_completion_is_whole_or_streamed(qt *t)
{
    static char whole[ANSWER];
    served s;
    if (!served_start(&s, t, NULL)) return;
    QT_EQ(t, post(&s, COMPLETION, "", ASK "}"), 200);
    QT_OKF(t,
           strstr(body(), "\"completion_tokens\":6") || strstr(body(), "\"completion_tokens\": 6"),
           "%s", answer);
    QT_EQ(t, post(&s, COMPLETION, "", ASK ", \"n\": 2, \"logprobs\": 2, \"echo\": true}"), 200);
    memcpy(whole, answer, sizeof whole);
    QT_EQ(t, post(&s, COMPLETION, "", ASK ", \"n\": 2, \"logprobs\": 2, \"echo\": true}"), 200);
    QT_OK(t, strstr(whole, "top_logprobs"));
    QT_EQ(t,
          post(&s, COMPLETION, "",
               ASK ", \"stream\": true, "
                   "\"stream_options\": {\"include_usage\": true}}"),
          200);
    QT_OK(t, strstr(answer, "text/event-stream"));
    QT_OK(t, strstr(body(), "data: {"));
    QT_OK(t, strstr(body(), "\"finish_reason\":\"length\"") ||
                 strstr(body(), "\"finish_reason\": \"length\""));
    QT_OK(t, strstr(body(), "\"usage\""));
    QT_OK(t, strstr(body(), "data: [DONE]\n\n"));
    served_stop(&s, t);
}

/* The fingerprint of the last answer. */
static void fingerprint(char out[80])
{
    const char *at = strstr(body(), "\"system_fingerprint\":\"");
    snprintf(out, 80, "%.*s", at ? (int)strcspn(at + 22, "\"") : 0, at ? at + 22 : "");
}

static void f32_kv(served_setup *o) { o->kv = QUERN_KV_F32; }

static void the_fingerprint_names_version_and_arithmetic(qt *t)
{
    char first[80], again[80], other[80];
    served s;
    if (!served_start(&s, t, NULL)) return;
    QT_EQ(t, post(&s, COMPLETION, "", ASK "}"), 200);
    fingerprint(first);
    served_stop(&s, t);
    if (!served_start(&s, t, NULL)) return;
    QT_EQ(t, post(&s, COMPLETION, "", ASK ", \"stream\": true}"), 200);
    fingerprint(again);
    served_stop(&s, t);
    if (!served_start(&s, t, f32_kv)) return;
    QT_EQ(t, post(&s, COMPLETION, "", ASK "}"), 200);
    fingerprint(other);
    served_stop(&s, t);
    QT_OKF(t, strncmp(first, quern_version(), strlen(quern_version())) == 0, "%s", first);
    QT_EQ(t, strlen(first), strlen(quern_version()) + 17);
    QT_STR(t, again, first);
    QT_OKF(t, strcmp(other, first) != 0, "%s with other keys and values", other);
}

enum { ADDED = 3008 }; /* bytes; a multiple of the file's alignment, so that only this moves */

/* A copy of a model whose token "~" has ADDED more of them. */
static void long_piece(served_setup *o)
{
    static char path[600];
    static uint8_t in[1 << 20], out[(1 << 20) + ADDED];
    static const char piece[] = "\1\0\0\0\0\0\0\0~";
    const uint64_t length = 1 + ADDED;
    FILE *f = fopen("tests/golden/llama/gguf-f32/model.gguf", "rb");
    const size_t n = f ? fread(in, 1, sizeof in, f) : 0;
    if (f) fclose(f);
    const uint8_t *at = n ? memmem(in, n, piece, 9) : NULL;
    if (!at) return;
    const size_t front = (size_t)(at - in);
    memcpy(out, in, front);
    memcpy(out + front, &length, 8);
    memset(out + front + 8, '~', length);
    memcpy(out + front + 8 + length, at + 9, n - front - 9);
    snprintf(path, sizeof path, "%s", qt_file("long.gguf", out, n + ADDED));
    o->model = path;
}

static void the_text_of_a_token_is_whole_whatever_its_length(qt *t)
{
    served s;
    if (!served_start(&s, t, long_piece)) return;
    QT_EQ(t,
          post(&s, COMPLETION, "",
               "{\"prompt\": [2, 5, 9], \"max_tokens\": 1, \"temperature\": 0, \"logprobs\": 1, "
               "\"logit_bias\": {\"95\": 1000}}"),
          200);
    const char *tokens = strstr(body(), "\"tokens\":[\"~");
    QT_OKF(t, tokens && strspn(tokens + 11, "~") == 1 + ADDED, "%.200s", body());
    const char *tops = strstr(body(), "\"top_logprobs\":[{\"~");
    QT_OKF(t, tops && strspn(tops + 18, "~") == 1 + ADDED, "%.200s", tops ? tops : "no tops");
    served_stop(&s, t);
}

static void what_is_wrong_is_named(qt *t)
{
    served s;
    static char deep[3000];
    if (!served_start(&s, t, NULL)) return;
    memset(deep, '[', sizeof deep - 1);
    QT_EQ(t, post(&s, COMPLETION, "", deep), 400);
    QT_EQ(t, post(&s, COMPLETION, "", "{\"prompt\": "), 400);
    QT_OK(t, strstr(body(), "invalid_json"));
    QT_EQ(t, post(&s, COMPLETION, "", "{\"prompt\": [1], \"temperature\": -1}"), 400);
    QT_OK(t, strstr(body(), "\"temperature\""));
    QT_EQ(t, post(&s, COMPLETION, "", "{\"prompt\": [99999999]}"), 400);
    QT_EQ(t, post(&s, COMPLETION, "", "{}"), 400);
    QT_EQ(t, post(&s, COMPLETION, "", ""), 400);
    QT_EQ(t, post(&s, "/tokenize", "", "[]"), 400);
    QT_EQ(t, post(&s, "/v1/chat/completions", "", "{\"messages\": 3}"), 400);
    QT_EQ(t, get(&s, "/health", ""), 200);
    served_stop(&s, t);
}

/* The tiny model has no template of its own. */
static void a_chat_needs_a_template(qt *t)
{
    served s;
    if (!served_start(&s, t, NULL)) return;
    const int status = post(&s, "/v1/chat/completions", "",
                            "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}");
    QT_EQ(t, status, 400);
    QT_OK(t, strstr(body(), "no_chat_template"));
    served_stop(&s, t);
}

static void pages_of_others_are_refused(qt *t)
{
    served s;
    char own[128];
    if (!served_start(&s, t, NULL)) return;
    QT_EQ(t, get(&s, "/health", "Host: evil.example\r\n"), 403);
    QT_OK(t, strstr(body(), "invalid_host"));
    QT_EQ(t, get(&s, "/health", "Host: localhost:1\r\n"), 200);
    QT_EQ(t, get(&s, "/health", "Host: [::1]:80\r\n"), 200);
    QT_EQ(t, get(&s, "/health", "Origin: http://evil.example\r\n"), 403);
    QT_OK(t, strstr(body(), "cross_origin"));
    snprintf(own, sizeof own, "Host: localhost:%u\r\nOrigin: http://localhost:%u\r\n", s.port,
             s.port);
    QT_EQ(t, get(&s, "/health", own), 200);
    QT_EQ(t, get(&s, "/health", "Sec-Fetch-Site: cross-site\r\n"), 403);
    QT_OK(t, strstr(body(), "cross_site"));
    QT_EQ(t, get(&s, "/health", "Sec-Fetch-Site: same-origin\r\n"), 200);
    served_stop(&s, t);
}

static void with_key(served_setup *o)
{
    o->server.api_key = "secret";
    o->server.max_body = 1000;
}

static void key_and_ceilings_hold(qt *t)
{
    served s;
    static char big[20000];
    if (!served_start(&s, t, with_key)) return;
    QT_EQ(t, get(&s, "/health", ""), 200);
    QT_EQ(t, get(&s, "/v1/models", ""), 401);
    QT_EQ(t, get(&s, "/v1/models", "Authorization: Bearer secre\r\n"), 401);
    QT_EQ(t, get(&s, "/v1/models", "Authorization: Bearer secretsecret\r\n"), 401);
    QT_EQ(t, get(&s, "/v1/models", "Authorization: Bearer secret\r\n"), 200);
    QT_EQ(t, get(&s, "/v1/models", "X-Api-Key: secret\r\n"), 200);
    memset(big, ' ', sizeof big - 1);
    QT_EQ(t, post(&s, COMPLETION, "X-Api-Key: secret\r\n", big), 413);
    QT_OK(t, strstr(body(), "request_too_large"));
    QT_EQ(t, get(&s, "/health", ""), 200);
    served_stop(&s, t);
}

/* Bytes that are no request, or one that is too large, get a status and the shape that every error has. */
static void malformed_requests_are_told_why(qt *t)
{
    static const struct {
        const char *bytes;
        int status;
        const char *type;
    } bad[] = {
        {"GET\r\n\r\n", 400, "invalid_request_error"},
        {"\x16\x03\x01\x02\x01\x01", 400, "invalid_request_error"},
        {"GET / HTTP/9.9\r\n\r\n", 505, "http_version_not_supported"},
        {"POST /tokenize HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400, "invalid_request_error"},
        {"POST /tokenize HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
         "invalid_request_error"},
        {"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3000000\r\n",
         413, "request_too_large"},
    };
    served s;
    static char headers[40000];
    if (!served_start(&s, t, NULL)) return;
    for (size_t i = 0; i < QT_LEN(bad) + 2; i++) {
        const int fd = served_connect(&s);
        if (!QT_OK(t, fd >= 0)) break;
        if (i < QT_LEN(bad)) {
            served_send(fd, bad[i].bytes, strlen(bad[i].bytes));
        } else {
            const bool path = i > QT_LEN(bad);
            const size_t n = (size_t)snprintf(headers, sizeof headers, "GET /%s",
                                              path ? "" : " HTTP/1.1\r\nX: ");
            memset(headers + n, 'a', sizeof headers - n);
            served_send(fd, headers, sizeof headers);
        }
        served_read(fd, answer, sizeof answer);
        const int want = i < QT_LEN(bad) ? bad[i].status : i == QT_LEN(bad) ? 431 : 414;
        QT_EQ(t, strtol(answer + 9, NULL, 10), want);
        QT_OKF(t,
               strstr(answer, "{\"error\":{\"message\":") &&
                   strstr(answer, i < QT_LEN(bad) ? bad[i].type
                                  : want == 431   ? "headers_too_large"
                                                  : "uri_too_long") &&
                   strstr(answer, "Connection: close"),
               "%s", answer);
        close(fd);
    }
    QT_EQ(t, get(&s, "/health", ""), 200);
    served_stop(&s, t);
}

#define GET_ONE "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define POST_ONE \
    "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"tokens\": [5]}"
#define LAST_ONE "GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

/* Some are answered by the loop at once, some by the worker later; the order is the clients'. */
static void requests_sent_ahead_are_answered_in_order(qt *t)
{
    static const struct {
        const char *ask;
        size_t answers;
    } ahead[] = {{GET_ONE GET_ONE GET_ONE LAST_ONE, 4},
                 {GET_ONE POST_ONE LAST_ONE, 3},
                 {POST_ONE POST_ONE LAST_ONE, 3},
                 {POST_ONE GET_ONE LAST_ONE GET_ONE, 3}};
    served s;
    if (!served_start(&s, t, NULL)) return;
    for (size_t i = 0; i < QT_LEN(ahead); i++) {
        const int fd = served_connect(&s);
        QT_OK(t, fd >= 0 && served_send(fd, ahead[i].ask, strlen(ahead[i].ask)));
        served_read(fd, answer, sizeof answer);
        QT_EQ(t, count(answer, "HTTP/1.1 200 OK"), ahead[i].answers);
        const char *health = strstr(answer, "\"status\""), *text = strstr(answer, "\"content\"");
        if (i == 1) QT_OK(t, health && text && health < text);
        if (i == 3) QT_OK(t, health && text && text < health);
        close(fd);
    }
    served_stop(&s, t);
}

static void a_body_may_come_in_chunks(qt *t)
{
    static const char ask[] = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n"
                              "9\r\n{\"content\r\n9\r\n\": \"abc\"}\r\n0\r\n\r\n" LAST_ONE;
    served s;
    if (!served_start(&s, t, NULL)) return;
    const int fd = served_connect(&s);
    QT_OK(t, fd >= 0 && served_send(fd, ask, sizeof ask - 1));
    served_read(fd, answer, sizeof answer);
    QT_OKF(t,
           strstr(answer, " 200 OK") && strstr(answer, "\"count\"") &&
               count(answer, "HTTP/1.1 200 OK") == 2,
           "%s", answer);
    close(fd);
    served_stop(&s, t);
}

static void in_a_hurry(served_setup *o)
{
    o->server.timeout_ms = 1;
    o->server.keep_alive_ms = 5; /* and so the loop looks at deadlines that often */
}

static void what_never_arrives_is_told(qt *t)
{
    served s;
    if (!served_start(&s, t, in_a_hurry)) return;
    const int fd = served_connect(&s);
    QT_OK(t, fd >= 0 && served_send(fd, "GET /he", 7));
    served_read(fd, answer, sizeof answer);
    QT_OKF(t, strstr(answer, "HTTP/1.1 408 ") && strstr(answer, "request_timeout"), "%s", answer);
    close(fd);
    served_stop(&s, t);
}

/* A stream that would go on for long; the client reads its beginning. */
static int begin_stream(const served *s)
{
    char text[1024];
    const int fd = served_connect(s);
    const int n = snprintf(text, sizeof text,
                           "POST " COMPLETION " HTTP/1.1\r\nHost: localhost\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           strlen(LONG_STREAM), LONG_STREAM);
    if (fd >= 0) served_send(fd, text, (size_t)n);
    return fd;
}

static size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* One at a time: how many run together decides which plans the engine keeps. */
static void one_sequence(served_setup *o) { o->max_seqs = 1; }

static void one_that_speaks(served_setup *o)
{
    o->max_seqs = 1;
    o->server.keep_alive_ms = 1;
}

/* A stream that waits for its turn says nothing but comments. How long that takes is the machine's; it is
 * asked again until one was seen. */
static void a_stream_that_waits_gets_comments(qt *t)
{
    served s;
    bool seen = false;
    int fd[8];
    if (!served_start(&s, t, one_that_speaks)) return;
    for (int i = 0; i < 200 && !seen; i++) {
        for (int k = 0; k < 8; k++) fd[k] = begin_stream(&s);
        served_read_until(fd[7], answer, sizeof answer, "data: ");
        seen = strstr(answer, "\r\n: keep-alive\n\n\r\n") != NULL;
        for (int k = 0; k < 8; k++) close(fd[k]);
    }
    QT_OK(t, seen);
    QT_OK(t, served_idle(&s));
    served_stop(&s, t);
}

static void leaving_ends_the_work(qt *t)
{
    served s;
    if (!served_start(&s, t, one_sequence)) return;
    size_t files = 0, bytes = 0;
    for (int i = 0; i < LEAVERS + 20; i++) {
        const int fd = begin_stream(&s);
        if (!QT_OK(t, fd >= 0)) break;
        if (qt_rand() % 3 == 0) served_read_until(fd, answer, 600, "data: ");
        if (qt_rand() % 3 == 0) usleep((unsigned)(qt_rand() % 3000));
        close(fd);
        if (i != 19) continue;
        QT_OK(t, served_idle(&s));
        files = open_files();
        bytes = qn_alloc_live_bytes();
    }
    QT_OK(t, served_idle(&s));
    usleep(50000);
    QT_OKF(t, open_files() <= files + 1, "%zu files, then %zu", files, open_files());
    const size_t now = qn_alloc_live_bytes();
    QT_OKF(t, now <= bytes + 4096, "%zu bytes, then %zu", bytes, now);
    served_stop(&s, t);
}

typedef struct one {
    const served *s;
    bool ok;
} one;

static void *stream_one(void *ctx)
{
    one *o = ctx;
    char *mine = malloc(1 << 16);
    o->ok =
        mine &&
        served_ask(o->s, "POST", COMPLETION, "", ASK ", \"stream\": true}", mine, 1 << 16) == 200 &&
        strstr(mine, "data: [DONE]\n\n");
    free(mine);
    return NULL;
}

static void two_hundred_streams_at_once(qt *t)
{
    served s;
    static pthread_t threads[STREAMS];
    static one all[STREAMS];
    size_t good = 0;
    if (!served_start(&s, t, NULL)) return;
    for (int i = 0; i < STREAMS; i++) {
        all[i] = (one){&s, false};
        QT_OK(t, pthread_create(&threads[i], NULL, stream_one, &all[i]) == 0);
    }
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
        good += all[i].ok;
    }
    QT_EQ(t, good, STREAMS);
    QT_OK(t, served_idle(&s));
    served_stop(&s, t);
}

static void stopping_lets_running_ones_end(qt *t)
{
    served s;
    one o = {&s, false};
    pthread_t thread;
    if (!served_start(&s, t, NULL)) return;
    QT_OK(t, pthread_create(&thread, NULL, stream_one, &o) == 0);
    while (served_metric(&s, "quern_calls_open") < 1 &&
           served_metric(&s, "quern_completion_tokens_total") < 6)
        usleep(500);
    qn_server_stop(s.server);
    pthread_join(thread, NULL);
    QT_OK(t, o.ok);
    served_join(&s, t);
}

static void stopping_twice_ends_at_once(qt *t)
{
    served s;
    if (!served_start(&s, t, NULL)) return;
    const int fd = begin_stream(&s);
    served_read_until(fd, answer, sizeof answer, "data: ");
    qn_server_stop(s.server);
    qn_server_stop(s.server);
    served_read_until(fd, answer, sizeof answer, "server_closing");
    QT_OK(t, strstr(answer, "server_closing") && !strstr(answer, "[DONE]"));
    close(fd);
    served_join(&s, t);
}

static void a_port_in_use_is_told(qt *t)
{
    served s;
    qn_err err = {0};
    qn_server *second = NULL;
    if (!served_start(&s, t, NULL)) return;
    const qn_server_options o = {.port = s.port};
    QT_EQ(t, qn_server_open(&second, &o, &err), QN_E_IO);
    QT_OK(t, second == NULL && strstr(err.msg, "in use"));
    served_stop(&s, t);
}

static void opening_survives_each_refused_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    for (size_t n = 0; n < 50; n++) {
        qn_err err = {0};
        qn_server *s = NULL;
        const qn_server_options o = {0};
        qn_alloc_fail_after(n);
        const qn_code rc = qn_server_open(&s, &o, &err);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK ? s != NULL : rc == QN_E_NOMEM && s == NULL && err.msg[0]);
        qn_server_close(s);
        QT_EQ(t, qn_alloc_live(), before);
        if (rc == QN_OK) return;
    }
    QT_OK(t, false);
}

QT_MAIN(QT(opening_survives_each_refused_allocation), QT(routes_answer),
        QT(a_completion_is_whole_or_streamed), QT(the_fingerprint_names_version_and_arithmetic),
        QT(the_text_of_a_token_is_whole_whatever_its_length), QT(what_is_wrong_is_named),
        QT(a_chat_needs_a_template), QT(pages_of_others_are_refused), QT(key_and_ceilings_hold),
        QT(malformed_requests_are_told_why), QT(requests_sent_ahead_are_answered_in_order),
        QT(a_body_may_come_in_chunks), QT(what_never_arrives_is_told),
        QT(a_stream_that_waits_gets_comments), QT(leaving_ends_the_work),
        QT(two_hundred_streams_at_once), QT(stopping_lets_running_ones_end),
        QT(stopping_twice_ends_at_once), QT(a_port_in_use_is_told))
