/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h. */
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qt.h"

static void read_file(char *to, size_t cap, const char *path)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, cap - 1, f) : 0;
    to[n] = '\0';
    if (f) fclose(f);
}

static const program_result *ended(int status, const char *out, const char *err)
{
    static program_result r;
    r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    read_file(r.out, sizeof r.out, out);
    read_file(r.err, sizeof r.err, err);
    return &r;
}

/* The user's own models and tokens have no part in a test, and no hub is asked. Said once: a test may then
 * say otherwise. */
static void leave_home(void)
{
    static bool left;
    char path[600];
    if (left) return;
    left = true;
    snprintf(path, sizeof path, "%s/home", qt_tmp());
    setenv("HOME", path, 1);
    setenv("HF_ENDPOINT", "http://127.0.0.1:9", 1);
    unsetenv("QUERN_HOME");
    unsetenv("HF_HOME");
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_TOKEN");
    setenv("QUERN", QUERN_PROGRAM, 1);
}

const program_result *program_shell(const char *command)
{
    char line[2000], out[600], err[600], script[600];
    snprintf(out, sizeof out, "%s/shell.out", qt_tmp());
    snprintf(err, sizeof err, "%s/shell.err", qt_tmp());
    snprintf(script, sizeof script, "%s/shell.sh", qt_tmp());
    FILE *f = fopen(script, "wb");
    if (f) fprintf(f, "%s\n", command);
    if (f) fclose(f);
    leave_home();
    snprintf(line, sizeof line, "bash '%s' >'%s' 2>'%s'", script, out, err);
    return ended(system(line), out, err);
}

const program_result *program_run(const char *args)
{
    char command[4096];
    snprintf(command, sizeof command, "exec \"$QUERN\" %s", args);
    return program_shell(command);
}

const program_result *program_interrupted(const char *const *args)
{
    char out[600], err[600];
    int status = 0;
    leave_home();
    snprintf(out, sizeof out, "%s/interrupted.out", qt_tmp());
    snprintf(err, sizeof err, "%s/interrupted.err", qt_tmp());
    const pid_t pid = fork();
    if (pid == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGINT);
        char *v[16] = {NULL};
        for (int i = 0; args[i]; i++) v[i] = strdup(args[i]);
        if (freopen(out, "wb", stdout) && freopen(err, "wb", stderr)) execv(QUERN_PROGRAM, v);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    return ended(status, out, err);
}
