/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - entry of the quern program: the only place that reads the environment, prints an error and
 * chooses an exit status. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { PLACE = 4096 };

static const char *text_of(const char *name)
{
    const char *v = getenv(name);
    return v && v[0] ? v : NULL;
}

typedef struct places { /* texts that io borrows */
    char home[PLACE], hub_home[PLACE], hub_cache[PLACE], token_file[PLACE];
} places;

/* *out is what `name` says, else dir/rest, else NULL. */
static qn_code place_of(const char **out, char to[PLACE], const char *name, const char *dir,
                        const char *rest, qn_err *err)
{
    *out = name ? text_of(name) : NULL;
    if (*out || !dir) return QN_OK;
    if (snprintf(to, PLACE, "%s/%s", dir, rest) >= PLACE)
        return qn_fail(err, QN_E_LIMIT, "%s has more than %d bytes", name ? "HOME" : "HF_HOME",
                       PLACE - 64);
    *out = to;
    return QN_OK;
}

static qn_code read_places(qn_io *io, places *p, qn_err *err)
{
    const char *user = text_of("HOME"), *hub = NULL;
    QN_TRY(place_of(&io->home, p->home, "QUERN_HOME", user, ".quern", err));
    QN_TRY(place_of(&hub, p->hub_home, "HF_HOME", user, ".cache/huggingface", err));
    QN_TRY(place_of(&io->hub_cache, p->hub_cache, "HF_HUB_CACHE", hub, "hub", err));
    QN_TRY(place_of(&io->hub_token_file, p->token_file, NULL, hub, "token", err));
    io->hub_endpoint = text_of("HF_ENDPOINT");
    io->hub_token = text_of("HF_TOKEN");
    return QN_OK;
}

static qn_code read_environment(qn_io *io, places *p, qn_err *err)
{
    uint64_t threads = 0;
    const char *said = text_of("QUERN_THREADS");
    if (said && (!qn_str_parse_u64(&threads, qn_str_z(said)) || threads == 0 || threads > 1024))
        return qn_fail(err, QN_E_INVAL, "QUERN_THREADS is \"%s\", expected 1 to 1024", said);
    io->threads = (uint32_t)threads;
    io->isa = text_of("QUERN_ISA");
    return read_places(io, p, err);
}

/* Messages name files, and those may be called anything. */
static void tell(const qn_io *io, const char *msg)
{
    fputs("quern: ", stderr);
    if (io->err_is_terminal)
        qn_text_shown(stderr, msg, strlen(msg));
    else
        fputs(msg, stderr);
    fputc('\n', stderr);
}

/* A standard stream that the caller closed would be the number of the next file opened, and results
 * would end in it. Each gets a descriptor of the wrong direction, so that its use fails as it should. */
static qn_code fill_closed_streams(qn_err *err)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return qn_fail_sys(err, QN_E_IO, errno, "descriptor %d is closed, /dev/null", fd);
    }
    return QN_OK;
}

int main(int argc, char **argv)
{
    places p;
    qn_err err = {0};
    qn_io io = {.in = stdin, .out = stdout, .err = stderr};
    qn_code rc = fill_closed_streams(&err);
    io.out_is_terminal = isatty(STDOUT_FILENO) == 1;
    io.err_is_terminal = isatty(STDERR_FILENO) == 1;
    if (rc == QN_OK) rc = read_environment(&io, &p, &err);
    if (rc == QN_OK) rc = qn_cli_run(argc, argv, &io, &err);
    if (rc != QN_OK) tell(&io, err.msg[0] ? err.msg : quern_code_text(rc));
    return quern_code_exit(rc);
}
