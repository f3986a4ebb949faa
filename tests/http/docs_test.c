/* SPDX-License-Identifier: Apache-2.0 */
/* docs_test.c - docs/api.md tells the truth: every transcript in it is executed against a server with the
 * starter model, and every endpoint that the server names is described. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dep/json.h"
#include "qt.h"
#include "transcript.h"

#define PAGE "docs/api.md"
#define SHOWN "http://127.0.0.1:8080" /* the address in the page */

typedef struct served {
    pid_t pid;
    char url[64], log[600];
} served;

static size_t read_all(char *to, size_t cap, FILE *f)
{
    const size_t n = f ? fread(to, 1, cap - 1, f) : 0;
    to[n] = '\0';
    return n;
}

/* The address that the server prints when it is ready; false when it ends or stays silent. */
static bool wait_for_url(served *s)
{
    static char text[1 << 14];
    for (int i = 0; i < 1200 && waitpid(s->pid, NULL, WNOHANG) == 0; i++) {
        FILE *f = fopen(s->log, "rb");
        read_all(text, sizeof text, f);
        if (f) fclose(f);
        const char *at = strstr(text, "http://127.0.0.1:");
        if (at && strpbrk(at + 17, " /\r\n")) {
            snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", (int)strtol(at + 17, NULL, 10));
            return true;
        }
        usleep(50000);
    }
    fprintf(stderr, "%s\n", text);
    return false;
}

static bool serve(served *s)
{
    snprintf(s->log, sizeof s->log, "%s/serve", qt_tmp());
    s->pid = fork();
    if (s->pid == 0) {
        FILE *f = freopen(s->log, "wb", stdout);
        if (f) dup2(STDOUT_FILENO, STDERR_FILENO);
        execl(QUERN_PROGRAM, "quern", "serve", "--model", QUERN_STARTER, "--port", "0",
              (char *)NULL);
        _exit(127);
    }
    return s->pid > 0 && wait_for_url(s);
}

/* Runs a command of the page with the server's address in place of the page's. */
static qn_str run(const served *s, qn_str command, char *out, size_t cap)
{
    static char text[1 << 14];
    size_t n = 0;
    for (size_t i = 0; i < command.n && n + 80 < sizeof text;) {
        if (qn_str_has_prefix(qn_str_slice(command, i, command.n), QN_STR(SHOWN))) {
            n += (size_t)snprintf(text + n, 64, "%s", s->url);
            i += sizeof SHOWN - 1;
        } else {
            text[n++] = command.p[i++];
        }
    }
    text[n] = '\0';
    FILE *f = popen(text, "r");
    const size_t got = read_all(out, cap, f);
    if (f) pclose(f);
    return qn_str_make(out, got);
}

static char page[1 << 18], out[1 << 18];

static void every_transcript_holds(qt *t, const served *s)
{
    transcript all;
    size_t n = 0;
    transcript_init(&all, qn_str_z(page));
    for (; transcript_next(&all); n++) {
        char why[600] = "";
        const qn_str got = run(s, all.command, out, sizeof out);
        QT_OKF(t, transcript_matches(all.want, got, why, sizeof why),
               PAGE ":%zu: %.*s\n%s\nwhole: %.*s", all.line, QN_STR_ARG(all.command), why,
               QN_STR_ARG(got));
    }
    QT_OK(t, n >= 10);
}

static void every_endpoint_is_described(qt *t, const served *s)
{
    qn_json *index = NULL;
    const qn_str got = run(s, QN_STR("curl -s " SHOWN "/v1"), out, sizeof out);
    QT_OK(t, qn_json_parse(&index, got.p, got.n, got.n, NULL) == QN_OK);
    const qn_json *endpoints = qn_json_get(index, "endpoints");
    QT_OK(t, qn_json_len(endpoints) > 4);
    for (size_t i = 0; i < qn_json_len(endpoints); i++) {
        size_t name_n = 0;
        const char *name = qn_json_str(qn_json_at(endpoints, i), &name_n);
        QT_OKF(t, name && strstr(page, name), PAGE " does not tell of %s", name ? name : "?");
    }
    qn_json_free(index);
}

/* The screenshot is taken by tests/clients/run.sh (QUERN_SHOT); a page that shows none is no page. */
static void the_pictures_are_there(qt *t)
{
    static const char *const pictures[] = {"docs/img/chat.png", "docs/img/request-path.svg"};
    for (size_t i = 0; i < QT_LEN(pictures); i++) {
        FILE *f = fopen(pictures[i], "rb");
        const size_t n = read_all(out, sizeof out, f);
        QT_OKF(t, n > 1000 && n < 150000, "%s: %zu bytes", pictures[i], n);
        if (f) fclose(f);
    }
}

static void the_page_is_true(qt *t)
{
    served s = {0};
    FILE *f = fopen(PAGE, "rb");
    QT_OK(t, read_all(page, sizeof page, f) > 0);
    if (f) fclose(f);
    const bool up = serve(&s);
    if (QT_OK(t, up)) {
        every_transcript_holds(t, &s);
        every_endpoint_is_described(t, &s);
    }
    if (s.pid > 0) {
        kill(s.pid, SIGINT);
        if (up) waitpid(s.pid, NULL, 0);
    }
}

QT_MAIN(QT(the_pictures_are_there), QT(the_page_is_true))
