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

static const char *text_of(const char *name)
{
    const char *v = getenv(name);
    return v && v[0] ? v : NULL;
}

static qn_code read_environment(qn_io *io, char *home, size_t cap, qn_err *err)
{
    uint64_t threads = 0;
    const char *said = text_of("QUERN_THREADS"), *user = text_of("HOME");
    if (said && (!qn_str_parse_u64(&threads, qn_str_z(said)) || threads == 0 || threads > 1024))
        return qn_fail(err, QN_E_INVAL, "QUERN_THREADS is \"%s\", expected 1 to 1024", said);
    io->threads = (uint32_t)threads;
    io->isa = text_of("QUERN_ISA");
    io->home = text_of("QUERN_HOME");
    if (io->home || !user) return QN_OK;
    snprintf(home, cap, "%s/.cache/quern", user);
    io->home = home;
    return QN_OK;
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
    char home[1024];
    qn_err err = {0};
    qn_io io = {.in = stdin, .out = stdout, .err = stderr};
    qn_code rc = fill_closed_streams(&err);
    io.out_is_terminal = isatty(STDOUT_FILENO) == 1;
    io.err_is_terminal = isatty(STDERR_FILENO) == 1;
    if (rc == QN_OK) rc = read_environment(&io, home, sizeof home, &err);
    if (rc == QN_OK) rc = qn_cli_run(argc, argv, &io, &err);
    if (rc != QN_OK) fprintf(stderr, "quern: %s\n", err.msg[0] ? err.msg : quern_code_text(rc));
    return quern_code_exit(rc);
}
