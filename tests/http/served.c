/* SPDX-License-Identifier: Apache-2.0 */
/* served.c - see served.h. */
#include "served.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"

static void *run(void *ctx)
{
    served *s = ctx;
    qn_server_model m = {0};
    m.model = s->model;
    m.engine = s->engine;
    m.id = "tiny";
    s->rc = qn_server_serve(s->server, &m, NULL);
    return NULL;
}

bool served_start(served *s, qt *t, void (*change)(served_setup *o))
{
    quern_error err = {0};
    quern_runtime_options ro = QUERN_RUNTIME_OPTIONS_INIT;
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    served_setup setup = {.server = {.drain_s = 20}, .max_seqs = 8, .model = MODEL};
    memset(s, 0, sizeof *s);
    ro.threads = 1;
    eo.max_rows = 64;
    if (change) change(&setup);
    eo.max_seqs = setup.max_seqs;
    eo.kv = setup.kv;
    const bool up = quern_runtime_open(&s->rt, &ro, &err) == QUERN_OK &&
                    quern_model_open(&s->model, s->rt, setup.model, NULL, &err) == QUERN_OK &&
                    quern_engine_open(&s->engine, s->model, &eo, &err) == QUERN_OK &&
                    qn_server_open(&s->server, &setup.server, &err) == QN_OK;
    if (!QT_OKF(t, up, "%s", err.msg)) return false;
    s->port = qn_server_port(s->server);
    return QT_OK(t, pthread_create(&s->thread, NULL, run, s) == 0);
}

void served_join(served *s, qt *t)
{
    pthread_join(s->thread, NULL);
    QT_EQ(t, s->rc, QN_OK);
    qn_server_close(s->server);
    quern_engine_close(s->engine);
    quern_model_unref(s->model);
    quern_runtime_close(s->rt);
}

void served_stop(served *s, qt *t)
{
    qn_server_stop(s->server);
    served_join(s, t);
}

int served_connect(const served *s)
{
    const struct timeval patience = {60, 0};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0) return fd;
    close(fd);
    return -1;
}

bool served_send(int fd, const char *text, size_t n)
{
    while (n) {
        const ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        text += sent;
        n -= (size_t)sent;
    }
    return true;
}

size_t served_read_until(int fd, char *to, size_t cap, const char *mark)
{
    size_t n = 0;
    to[0] = '\0';
    while (n + 1 < cap) {
        const ssize_t got = recv(fd, to + n, cap - 1 - n, 0);
        if (got <= 0) break;
        n += (size_t)got;
        to[n] = '\0';
        if (mark && strstr(to, mark)) break;
    }
    return n;
}

size_t served_read(int fd, char *to, size_t cap) { return served_read_until(fd, to, cap, NULL); }

int served_ask(const served *s, const char *method, const char *path, const char *head,
               const char *body, char *answer, size_t cap)
{
    char text[4096];
    int status = 0;
    const int fd = served_connect(s);
    answer[0] = '\0';
    if (fd < 0) return 0;
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s",
                     method, path, strstr(head, "Host:") ? "" : "127.0.0.1", head);
    if (strstr(head, "Host:"))
        n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nConnection: close\r\n%s", method, path,
                     head);
    if (body)
        n += snprintf(text + n, sizeof text - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n");
    if (served_send(fd, text, (size_t)n) && (!body || served_send(fd, body, strlen(body)))) {
        served_read(fd, answer, cap);
        if (strncmp(answer, "HTTP/1.1 ", 9) == 0) status = (int)strtol(answer + 9, NULL, 10);
    }
    close(fd);
    return status;
}

double served_metric(const served *s, const char *name)
{
    char answer[1 << 14], line[128];
    served_ask(s, "GET", "/metrics", "", NULL, answer, sizeof answer);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(answer, line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

bool served_idle(const served *s)
{
    for (int i = 0; i < 600; i++) {
        if (served_metric(s, "quern_requests_running") == 0 &&
            served_metric(s, "quern_requests_waiting") == 0 &&
            served_metric(s, "quern_calls_open") == 0)
            return true;
        usleep(20000);
    }
    return false;
}
