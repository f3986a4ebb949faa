/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - see terminal.h. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEADLINE_S = 300, TAIL = 600 };

static void become(const char *const *args, const char *name)
{
    char *v[32] = {NULL};
    setsid();
    const int fd = open(name, O_RDWR); /* the first terminal of a session is its own */
    if (fd < 0) _exit(126);
    for (int i = 0; i < 3; i++) dup2(fd, i);
    if (fd > 2) close(fd);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1); /* the program reads UTF-8 whatever this says */
    for (int i = 0; args[i] && i < 31; i++) v[i] = strdup(args[i]);
    execv(v[0], v);
    _exit(127);
}

terminal *terminal_start(qt *t, const char *const *args)
{
    const struct winsize size = {.ws_row = 50, .ws_col = 200};
    int alive[2] = {-1, -1};
    terminal *m = calloc(1, sizeof *m);
    char *name = NULL;
    m->t = t;
    m->cap = 1 << 16;
    m->seen = calloc(1, m->cap);
    m->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (!QT_OK(t, m->fd >= 0 && grantpt(m->fd) == 0 && unlockpt(m->fd) == 0)) abort();
    name = ptsname(m->fd);
    m->line = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    QT_OK(t, m->line >= 0 && ioctl(m->line, TIOCSWINSZ, &size) == 0);
    QT_OK(t, tcgetattr(m->line, &m->before) == 0);
    QT_OK(t, pipe(alive) == 0 && fcntl(alive[0], F_SETFD, FD_CLOEXEC) == 0);
    QT_OK(t, fcntl(m->fd, F_SETFL, O_NONBLOCK) == 0);
    m->pid = fork();
    if (m->pid == 0) become(args, name);
    close(alive[1]);
    m->alive = alive[0];
    return m;
}

/* Reads what there is. */
static void take(terminal *m)
{
    for (;;) {
        if (m->n + 8192 > m->cap) m->seen = realloc(m->seen, m->cap *= 2);
        const ssize_t got = read(m->fd, m->seen + m->n, 8191);
        if (got <= 0) return;
        m->n += (size_t)got;
        m->seen[m->n] = '\0';
    }
}

/* Waits for something to happen; false once the program is gone or hangs. */
static bool turn(terminal *m, short events)
{
    struct pollfd p[2] = {{m->fd, events, 0}, {m->alive, POLLIN, 0}};
    const int n = poll(p, 2, DEADLINE_S * 1000);
    take(m);
    return n > 0 && !p[1].revents;
}

void terminal_send(terminal *m, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        const ssize_t put = write(m->fd, p, n > 512 ? 512 : n);
        if (put > 0) {
            p += put;
            n -= (size_t)put;
        } else if (!QT_OKF(m->t, errno == EAGAIN && turn(m, POLLIN | POLLOUT),
                           "nobody reads what is typed")) {
            return;
        }
    }
}

void terminal_type(terminal *m, const char *text) { terminal_send(m, text, strlen(text)); }

/* The end of what came, with what a terminal would obey made visible. */
static void tell(const terminal *m, const char *missing)
{
    fprintf(stderr, "waited for \"%s\"; the terminal shows:\n", missing);
    for (size_t i = m->n > TAIL ? m->n - TAIL : 0; i < m->n; i++) {
        const unsigned char c = (unsigned char)m->seen[i];
        if (c < 0x20 && c != '\n')
            fprintf(stderr, "\\x%02x", c);
        else
            fputc(c, stderr);
    }
    fputc('\n', stderr);
}

static const char *find(const terminal *m, const char *text)
{
    return memmem(m->seen + m->from, m->n - m->from, text, strlen(text));
}

bool terminal_wait(terminal *m, const char *text)
{
    const char *at = NULL;
    bool more = true;
    take(m);
    while (!(at = find(m, text)) && more) more = turn(m, POLLIN);
    if (!at) tell(m, text);
    if (!QT_OKF(m->t, at != NULL, "\"%s\" never came", text)) return false;
    m->from = (size_t)(at - m->seen) + strlen(text);
    return true;
}

bool terminal_wait_any(terminal *m)
{
    bool more = true;
    take(m);
    for (;;) {
        for (size_t i = m->from; i < m->n; i++)
            if ((unsigned char)m->seen[i] > ' ') return true;
        if (!more) return QT_OKF(m->t, false, "nothing came");
        more = turn(m, POLLIN);
    }
}

int terminal_status(terminal *m)
{
    int status = 0;
    while (turn(m, POLLIN)) {
    }
    if (m->pid > 0) {
        struct pollfd p = {m->alive, POLLIN, 0};
        if (!QT_OKF(m->t, poll(&p, 1, 0) == 1, "the program does not end")) {
            tell(m, "the end");
            kill(m->pid, SIGKILL);
        }
        waitpid(m->pid, &status, 0);
        m->pid = 0;
    }
    take(m);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool terminal_as_before(const terminal *m)
{
    struct termios now;
    if (tcgetattr(m->line, &now) != 0) return false;
    return now.c_iflag == m->before.c_iflag && now.c_oflag == m->before.c_oflag &&
           now.c_cflag == m->before.c_cflag && now.c_lflag == m->before.c_lflag &&
           memcmp(now.c_cc, m->before.c_cc, sizeof now.c_cc) == 0;
}

void terminal_end(terminal *m)
{
    if (m->pid > 0) {
        kill(m->pid, SIGKILL);
        waitpid(m->pid, NULL, 0);
    }
    close(m->fd);
    close(m->line);
    close(m->alive);
    free(m->seen);
    free(m);
}
