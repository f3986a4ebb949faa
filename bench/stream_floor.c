/* SPDX-License-Identifier: Apache-2.0 */
/* stream_floor.c - what the kernel alone asks for a streamed token: one thread wakes another through an
 * eventfd, that one sends as many bytes as a frame has over loopback to a process that reads them. No
 * HTTP, no JSON; a server's loop cannot be cheaper. Between two tokens the waking thread reads through
 * memory, as a model does, so that the kernel's code is no warmer here than there. Prints microseconds of
 * CPU a token of the loop thread, and those of its sends.
 *
 *     stream_floor TOKENS GAP_US FRAME_BYTES
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct floor_run {
    int event, socket, tokens, bytes;
    double total_us, send_us;
    int failed;
} floor_run;

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *loop(void *ctx)
{
    static char frame[1 << 16];
    floor_run *r = ctx;
    struct epoll_event e = {.events = EPOLLIN | EPOLLET};
    const int ep = epoll_create1(0);
    r->failed = epoll_ctl(ep, EPOLL_CTL_ADD, r->event, &e) != 0;
    const double start = cpu_us();
    for (int i = 0; i < r->tokens && !r->failed; i++) {
        if (epoll_wait(ep, &e, 1, -1) != 1) r->failed = 1;
        const double before = cpu_us();
        if (send(r->socket, frame, (size_t)r->bytes, MSG_NOSIGNAL) != r->bytes) r->failed = 1;
        r->send_us += cpu_us() - before;
    }
    r->total_us = cpu_us() - start;
    close(ep);
    return NULL;
}

static int connect_pair(int pair[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;
    const int on = 1, l = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(l, (const struct sockaddr *)&a, n) != 0 || listen(l, 1) != 0 ||
        getsockname(l, (struct sockaddr *)&a, &n) != 0)
        return -1;
    pair[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(pair[1], (const struct sockaddr *)&a, n) != 0) return -1;
    pair[0] = accept(l, NULL, NULL);
    close(l);
    return setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

enum { WEIGHTS = 96 << 20 };

/* What a model does between two tokens. */
static uint64_t think(const uint64_t *weights, double us)
{
    static size_t at;
    struct timespec a, b;
    uint64_t sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (int i = 0; i < 4096; i++) sum += weights[at = (at + 8) % (WEIGHTS / 8)];
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3 < us);
    return sum;
}

int main(int argc, char **argv)
{
    char sink[4096];
    volatile uint64_t sum = 0;
    uint64_t *weights = malloc(WEIGHTS);
    if (!weights) return 1;
    memset(weights, 1, WEIGHTS);
    int pair[2];
    pthread_t thread;
    if (argc != 4 || connect_pair(pair) != 0) {
        fprintf(stderr, "usage: stream_floor TOKENS GAP_US FRAME_BYTES\n");
        return 64;
    }
    const pid_t reader = fork();
    if (reader == 0) {
        close(pair[0]);
        while (read(pair[1], sink, sizeof sink) > 0) continue;
        _exit(0);
    }
    close(pair[1]);
    floor_run r = {eventfd(0, 0), pair[0], atoi(argv[1]), atoi(argv[3]), 0, 0, 0};
    if (r.bytes < 1 || r.bytes > (1 << 16) || pthread_create(&thread, NULL, loop, &r) != 0)
        return 1;
    for (int i = 0; i < r.tokens; i++) {
        const uint64_t one = 1;
        sum = sum + think(weights, atof(argv[2]));
        if (write(r.event, &one, sizeof one) < 0) return 1;
    }
    /* A wake that met an awake loop was merged with another, so some may be owed. */
    struct timespec pause = {0, 1000000};
    while (r.total_us == 0 && !r.failed) {
        const uint64_t one = 1;
        nanosleep(&pause, NULL);
        if (pthread_tryjoin_np(thread, NULL) == 0) break;
        if (write(r.event, &one, sizeof one) < 0) return 1;
    }
    close(pair[0]);
    waitpid(reader, NULL, 0);
    printf("%.1f %.1f\n", r.total_us / r.tokens, r.send_us / r.tokens);
    return r.failed;
}
