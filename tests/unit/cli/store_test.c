/* SPDX-License-Identifier: Apache-2.0 */
/* store_test.c - `quern get` and `quern ls`, and what --model finds, with a store of the test's own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dep/json.h"
#include "program.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"
#define FOLDER "tests/golden/llama/st-f32"
#define TALK "--temp 0 --max-tokens 4 --ignore-eos abc"

static void says(qt *t, const char *command, quern_code code, const char *word)
{
    const program_result *r = program_shell(command);
    QT_OKF(t, r->status == quern_code_exit(code), "%s: status %d (%s)", command, r->status, r->err);
    QT_OKF(t, strstr(r->err, word) != NULL, "%s: \"%s\" does not say \"%s\"", command, r->err,
           word);
    QT_OKF(t, r->out[0] == '\0', "%s: stdout has \"%s\"", command, r->out);
}

static void home(const char *name)
{
    char path[600];
    (void)program_run("version"); /* the user's own is left first */
    snprintf(path, sizeof path, "%s/%s", qt_tmp(), name);
    setenv("QUERN_HOME", path, 1);
}

/* The program with stderr, and stdout if `all`, on a terminal of so many columns. */
static int on_terminal(char *seen, size_t cap, unsigned short columns, bool all,
                       const char *const *args)
{
    size_t n = 0;
    int status = 0;
    const struct winsize w = {.ws_row = 24, .ws_col = columns};
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    seen[0] = '\0';
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return -1;
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0 || ioctl(slave, TIOCSWINSZ, &w) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        char *v[16] = {NULL};
        for (int i = 0; args[i]; i++) v[i] = strdup(args[i]);
        const int out = all ? slave : open("/dev/null", O_WRONLY);
        if (dup2(slave, STDERR_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
            execv(QUERN_PROGRAM, v);
        _exit(127);
    }
    close(slave);
    for (ssize_t got = 1; got > 0 && n + 1 < cap; n += got > 0 ? (size_t)got : 0)
        got = read(master, seen + n, cap - 1 - n);
    seen[n] = '\0';
    close(master);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* -- get --------------------------------------------------------------------------------------- */

static void a_file_gets_a_name_and_runs_by_it(qt *t)
{
    char want[700], first[200];
    home("named");
    const program_result *r = program_run("get tiny --from " MODEL);
    snprintf(want, sizeof want, "%s/named/models/tiny.gguf\n", qt_tmp());
    QT_EQ(t, r->status, 0);
    QT_STR(t, r->out, want);
    QT_OKF(t,
           strstr(r->err, "quern: copying tiny.gguf (file 1 of 1, all ") &&
               strstr(r->err, "quern: tiny.gguf is complete ("),
           "%s", r->err);
    r = program_run("get tiny --from " MODEL);
    QT_OKF(t, strstr(r->err, "quern: tiny.gguf is here already\n") && !strstr(r->err, "copying"),
           "%s", r->err);
    r = program_run("get tiny --from " MODEL " --quiet"); /* it is there: nothing to say */
    QT_STR(t, r->out, want);
    QT_STR(t, r->err, "");
    snprintf(first, sizeof first, "%.100s", program_run("generate --model " MODEL " " TALK)->out);
    r = program_run("generate --model TINY " TALK);
    QT_STR(t, r->out, first);
    QT_STR(t, r->err, "");
    r = program_run("generate " TALK); /* the only one; it is told */
    QT_STR(t, r->out, first);
    snprintf(want, sizeof want, "quern: no --model; taking tiny\n");
    QT_STR(t, r->err, want);
    QT_OK(t, strstr(program_run("inspect tiny")->out, "/named/models/tiny.gguf\n"));
    says(t, "\"$QUERN\" generate --model tinny abc", QUERN_E_NOTFOUND, "the nearest is \"tiny\"");
    QT_EQ(t, program_run("get other --from " MODEL)->status, 0);
    says(t, "\"$QUERN\" generate abc", QUERN_E_INVAL, "other");
}

static void a_terminal_sees_a_line_that_goes(qt *t)
{
    static const char *const args[] = {"quern", "get", "seen", "--from", MODEL, NULL};
    char seen[8192];
    home("seen");
    QT_EQ(t, on_terminal(seen, sizeof seen, 100, false, args), 0);
    QT_OKF(t, strncmp(seen, "\rcopying seen.gguf  ", 20) == 0, "%s", seen);
    const size_t n = strlen(seen);
    QT_OKF(t, n > 4 && strcmp(seen + n - 4, "\r\x1b[K") == 0 && !strchr(seen, '\n'), "%s", seen);
}

static void ctrl_c_says_how_to_go_on(qt *t)
{
    static const char *const args[] = {"quern", "get", "tiny", "--from", MODEL, "--quiet", NULL};
    home("interrupted");
    const program_result *r = program_interrupted(args);
    QT_EQ(t, r->status, quern_code_exit(QUERN_E_CANCELLED));
    QT_STR(t, r->err, "quern: cancelled; run the same command again to go on\n");
    QT_STR(t, r->out, "");
    r = program_shell("find \"$QUERN_HOME\" -type f");
    QT_STR(t, r->out, ""); /* nothing half done */
}

static void get_refuses_with_a_reason(qt *t)
{
    home("refused");
    says(t, "\"$QUERN\" get startr", QUERN_E_NOTFOUND, "the nearest is \"starter\"");
    says(t, "\"$QUERN\" get starter --from /no/such.gguf", QUERN_E_NOTFOUND, "/no/such.gguf");
    says(t, "\"$QUERN\" get starter --from " MODEL, QUERN_E_FORMAT, "expected 98362432 of");
    says(t, "\"$QUERN\" get starter --from tests", QUERN_E_INVAL, "a folder, expected a file");
    says(t, "\"$QUERN\" get starter --from ''", QUERN_E_INVAL, "empty");
    says(t, "\"$QUERN\" get a/b:", QUERN_E_INVAL, "names no file behind the colon");
    says(t, "\"$QUERN\" get a/b:c --include d", QUERN_E_INVAL, "the file is given twice: \"c\"");
    says(t, "\"$QUERN\" get", QUERN_E_INVAL, "get takes NAME");
    says(t, "HF_TOKEN=$'a\\nb' \"$QUERN\" get a/b", QUERN_E_INVAL, "HF_TOKEN: byte 1 of the token");
    says(t, "QUERN_HOME=/dev/null/home \"$QUERN\" get tiny --from " MODEL, QUERN_E_IO, "/dev/null");
    says(t, "unset HOME QUERN_HOME; \"$QUERN\" get starter", QUERN_E_INVAL,
         "neither QUERN_HOME nor HOME is set");
    says(t,
         "truncate -s 98362432 \"$HOME.zeros\"; \"$QUERN\" get starter --from \"$HOME.zeros\"; "
         "s=$?\n"
         "rm \"$HOME.zeros\"; exit $s",
         QUERN_E_FORMAT, "expected b179c9523d0e6a0f");
    QT_STR(t, program_shell("ls -A \"$QUERN_HOME/models\"")->out, ""); /* nothing half done */
}

/* -- ls ---------------------------------------------------------------------------------------- */

static void an_empty_store_gives_a_hint(qt *t)
{
    home("empty");
    says(t, "\"$QUERN\" ls", QUERN_OK, "\"quern get starter\" brings one");
    says(t, "\"$QUERN\" ls abc", QUERN_OK, "no model here has \"abc\"");
    says(t, "\"$QUERN\" serve --port 0", QUERN_E_NOTFOUND, "\"quern get starter\"");
    says(t, "\"$QUERN\" generate --model starter abc", QUERN_E_NOTFOUND,
         "\"quern get starter\" brings it");
    says(t, "\"$QUERN\" generate --model org/name abc", QUERN_E_NOTFOUND,
         "\"quern get org/name\" brings it");
    QT_STR(t, program_run("ls --json")->out, "[]\n");
    says(t, "unset HOME QUERN_HOME; \"$QUERN\" generate abc", QUERN_E_INVAL,
         "neither QUERN_HOME nor HOME is set");
    QT_EQ(
        t,
        program_shell("unset HOME QUERN_HOME; \"$QUERN\" generate --model " MODEL " " TALK)->status,
        0);
}

/* Two revisions in the shared cache and a file of our own. */
static const char two_places[] =
    "set -e; root=$HF_HUB_CACHE/models--org--tiny\n"
    "mkdir -p \"$root/refs\" \"$root/snapshots\"\n"
    "old=1111111111111111111111111111111111111111 new=2222222222222222222222222222222222222222\n"
    "cp -r " FOLDER " \"$root/snapshots/$old\"; cp -r " FOLDER " \"$root/snapshots/$new\"\n"
    "printf %s $new >\"$root/refs/main\"\n"
    "\"$QUERN\" get mine --from " MODEL " --quiet\n";

static bool fill(qt *t)
{
    char path[600];
    home("filled");
    snprintf(path, sizeof path, "%s/cache", qt_tmp());
    setenv("HF_HUB_CACHE", path, 1);
    if (access(path, F_OK) == 0) return true;
    const program_result *r = program_shell(two_places);
    return QT_OKF(t, r->status == 0, "%s", r->err);
}

static void a_table_lists_both_places(qt *t)
{
    if (!fill(t)) return;
    const program_result *r = program_run("ls");
    QT_EQ(t, r->status, 0);
    QT_OKF(t,
           strncmp(r->out, "NAME", 4) == 0 && strstr(r->out, "\nmine ") &&
               strstr(r->out, "\norg/tiny ") && strstr(r->out, "Q4_1") && strstr(r->out, " kB"),
           "%s", r->out);
    QT_OK(t, strstr(r->out, "REVISION") == NULL);
    const char *first = strstr(r->out, "org/tiny");
    QT_OK(t, first && !strstr(first + 1, "org/tiny")); /* not the old revision */
    r = program_run("ls TINY --all-revisions");
    QT_OKF(t,
           strstr(r->out, " 22222222* ") && strstr(r->out, " 11111111 ") && !strstr(r->out, "mine"),
           "%s", r->out);
    QT_EQ(t, program_run("ls >/dev/full")->status, quern_code_exit(QUERN_E_IO));
}

static void json_lists_what_the_table_lists(qt *t)
{
    qn_json *root = NULL;
    if (!fill(t)) return;
    const program_result *r = program_run("ls --json --all-revisions");
    QT_EQ(t, qn_json_parse(&root, r->out, strlen(r->out), SIZE_MAX, NULL), QN_OK);
    QT_EQ(t, qn_json_len(root), 3);
    for (size_t i = 0; i < qn_json_len(root); i++) {
        size_t n = 0;
        const qn_json *m = qn_json_at(root, i);
        QT_OK(t, qn_json_str(qn_json_get(m, "name"), &n) && n > 3);
        QT_OK(t, qn_json_int(qn_json_get(m, "bytes"), 0) > 1000);
        QT_OK(t, qn_json_int(qn_json_get(m, "parameters"), 0) > 1000);
        QT_OK(t, qn_json_bool(qn_json_get(m, "supported"), false));
    }
    qn_json_free(root);
}

/* Characters of the longest line. */
static size_t widest(const char *text)
{
    size_t most = 0, n = 0;
    for (; *text; text++) {
        if (*text == '\n' || *text == '\r')
            n = 0;
        else
            n += ((unsigned char)*text & 0xc0) != 0x80;
        if (n > most) most = n;
    }
    return most;
}

static void a_table_is_as_wide_as_its_terminal(qt *t)
{
    static const char *const args[] = {"quern", "ls", "--all-revisions", NULL};
    char seen[8192];
    if (!fill(t)) return;
    for (unsigned short columns = 20; columns <= 120; columns = (unsigned short)(columns + 5)) {
        QT_EQ(t, on_terminal(seen, sizeof seen, columns, true, args), 0);
        QT_OKF(t, widest(seen) <= columns && strstr(seen, "kB"), "%u: %s", columns, seen);
    }
    QT_OKF(t, strstr(seen, "CONTEXT") && strstr(seen, "QUANT"), "%s", seen);
}

static void names_of_files_cannot_move_the_cursor(qt *t)
{
    static const char *const args[] = {"quern", "ls", NULL};
    static char seen[8192];
    home("hostile");
    setenv("HF_HUB_CACHE", "/nowhere", 1);
    (void)program_shell("mkdir -p \"$QUERN_HOME/models\"\n"
                        "cp " MODEL " \"$QUERN_HOME/models/\"$'a\\e[2Jb.gguf'\n"
                        "cp " MODEL " \"$QUERN_HOME/models/\"$'c\\nd.gguf'");
    QT_EQ(t, on_terminal(seen, sizeof seen, 80, true, args), 0);
    QT_OKF(t, !strchr(seen, '\x1b') && !strstr(seen, "\nd"), "%s", seen);
    QT_OK(t, !strchr(program_run("ls")->out, '\x1b'));
    unsetenv("HF_HUB_CACHE");
}

/* Without QUERN_HOME below HOME; the cache of other tools where HF_HUB_CACHE, else HF_HOME, else HOME says. */
static void places_follow_the_environment(qt *t)
{
    char want[700];
    (void)program_run("version");
    unsetenv("QUERN_HOME");
    unsetenv("HF_HUB_CACHE");
    const program_result *r = program_run("get tiny --quiet --from " MODEL);
    snprintf(want, sizeof want, "%s/home/.quern/models/tiny.gguf\n", qt_tmp());
    QT_STR(t, r->out, want);
    for (int i = 0; i < 3; i++) {
        static const char *const says[] = {"", "HF_HOME=$HOME/hf", "HF_HUB_CACHE=$HOME/cache"};
        static const char *const cache[] = {".cache/huggingface/hub", "hf/hub", "cache"};
        char command[800];
        snprintf(command, sizeof command,
                 "d=$HOME/%s/models--org--tiny%d; mkdir -p \"$d/snapshots\" \"$d/refs\"\n"
                 "printf %%040d 1 >\"$d/refs/main\"; cp -r " FOLDER
                 " \"$d/snapshots/$(printf %%040d 1)\"\n"
                 "%s \"$QUERN\" ls org/",
                 cache[i], i, says[i]);
        r = program_shell(command);
        snprintf(want, sizeof want, "\norg/tiny%d ", i);
        QT_OKF(t, strstr(r->out, want) && !strchr(strstr(r->out, want) + 5, '/'), "%s%s", r->out,
               r->err);
    }
}

/* -- names elsewhere --------------------------------------------------------------------------- */

static void shells_complete_names(qt *t)
{
    if (!fill(t)) return;
    const program_result *r = program_run("completion words -- chat --model o");
    QT_OKF(t, strncmp(r->out, "org/tiny\t", 9) == 0 && strstr(r->out, "\n:files\n"), "%s", r->out);
    QT_OK(t, strncmp(program_run("completion words -- serve --model=mi")->out, "--model=mine\t",
                     13) == 0);
    QT_OK(t, strncmp(program_run("completion words -- ls mi")->out, "mine\t", 5) == 0);
    QT_OK(t, strncmp(program_run("completion words -- inspect mi")->out, "mine\t", 5) == 0);
    QT_OK(t, strncmp(program_run("completion words -- get st")->out, "starter\t", 8) == 0);
}

static void doctor_counts_them(qt *t)
{
    if (!fill(t)) return;
    const program_result *r = program_run("doctor --quick");
    QT_OKF(t, strstr(r->out, "\n            2 models, ") && strstr(r->out, ": writable, "), "%s",
           r->out);
    QT_OK(t, strstr(program_run("doctor --quick --json")->out, "\"models\":2,"));
}

/* A snapshot is served under its name; its port is found busy before another model is looked for. */
static void a_snapshot_is_served_under_its_name(qt *t)
{
    if (!fill(t)) return;
    const program_result *r = program_shell(
        "\"$QUERN\" serve --model org/tiny --port 0 >\"$HOME.out\" & pid=$!\n"
        "for i in $(seq 600); do grep -q ready \"$HOME.out\" && break; sleep 0.05; done\n"
        "port=$(grep -o '127.0.0.1:[0-9]*' \"$HOME.out\" | head -n 1)\n"
        "\"$QUERN\" serve --model nothing --port ${port#*:}; echo \"status $?\"\n"
        "kill -INT $pid; wait $pid; cat \"$HOME.out\"");
    QT_OKF(t, strstr(r->out, "quern: ready, serving org/tiny\n") != NULL, "%s", r->out);
    QT_OKF(t, strstr(r->out, "status 74\n") && strstr(r->err, "in use"), "%s%s", r->out, r->err);
}

QT_MAIN(QT(a_file_gets_a_name_and_runs_by_it), QT(a_terminal_sees_a_line_that_goes),
        QT(ctrl_c_says_how_to_go_on), QT(get_refuses_with_a_reason),
        QT(an_empty_store_gives_a_hint), QT(a_table_lists_both_places),
        QT(json_lists_what_the_table_lists), QT(a_table_is_as_wide_as_its_terminal),
        QT(names_of_files_cannot_move_the_cursor), QT(places_follow_the_environment),
        QT(shells_complete_names), QT(doctor_counts_them), QT(a_snapshot_is_served_under_its_name))
