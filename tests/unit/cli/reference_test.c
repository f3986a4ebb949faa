/* SPDX-License-Identifier: Apache-2.0 */
/* reference_test.c - what is printed from the option tables: the page of docs/, the man page, and what
 * shells complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "qt.h"

static void the_committed_reference_is_what_the_program_prints(qt *t)
{
    const program_result *r = program_shell("\"$QUERN\" help --markdown | diff docs/cli.md -");
    QT_OKF(t, r->status == 0, "run `quern help --markdown > docs/cli.md`:\n%.2000s", r->out);
}

static void the_man_page_is_plain_roff(qt *t)
{
    const program_result *r = program_run("help --man");
    QT_EQ(t, r->status, 0);
    QT_OK(t, strstr(r->out, ".TH QUERN 1 ") && strstr(r->out, ".SH NAME\nquern \\- "));
    QT_OK(t, strstr(r->out, "\n\\fB\\-\\-max\\-tokens\\fR \\fIN\\fR\n"));
    QT_OK(t, strstr(r->out, ".SH \"EXIT STATUS\"") && strstr(r->out, "\\fB130\\fR\ncancelled"));
    for (const char *p = r->out; *p; p++)
        if (!QT_OKF(t, *p == '\n' || (*p >= ' ' && *p < 0x7f), "byte %#x", (unsigned char)*p))
            break;
    for (const char *p = r->out; (p = strchr(p, '\n')) != NULL; p++) /* nothing begins by chance */
        if (p[1] == '.') QT_OKF(t, strchr("TSPRnf\\", p[2]) != NULL, "request %.8s", p + 1);
}

static void help_takes_one_thing(qt *t)
{
    QT_EQ(t, program_run("help --man generate")->status, 64);
    QT_EQ(t, program_run("help --man --markdown")->status, 64);
}

/* Asks the bash function what it would offer behind these words, the last one being typed. */
static const char *offered(const char *words, int n)
{
    char command[1200];
    snprintf(command, sizeof command,
             "source <(\"$QUERN\" completion bash) || exit 1\n"
             "COMP_WORDS=(\"$QUERN\" %s) COMP_CWORD=%d\n"
             "_quern && printf '%%s\\n' \"${COMPREPLY[@]}\"",
             words, n);
    const program_result *r = program_shell(command);
    return r->status == 0 ? r->out : r->err;
}

static void bash_completes_verbs_options_and_values(qt *t)
{
    QT_STR(t, offered("gen", 1), "generate\n");
    QT_OK(t, strstr(offered("''", 1), "inspect\n") && strstr(offered("''", 1), "doctor\n"));
    QT_STR(t, offered("generate --max", 2), "--max-tokens\n");
    QT_OK(t, strstr(offered("generate --", 2), "--seed\n"));
    QT_STR(t, offered("generate --kv ''", 3), "f16\nf32\nbf16\n");
    QT_STR(t, offered("generate --kv = f3", 4), "f32\n"); /* as bash cuts --kv=f3 */
    QT_STR(t, offered("generate --kv =", 3), "f16\nf32\nbf16\n");
    QT_STR(t, offered("help insp", 2), "inspect\n");
    QT_STR(t, offered("completion z", 2), "zsh\n");
    QT_STR(t, offered("inspect layers.t", 2), "layers.txt\n");
    QT_STR(t, offered("generate --model layers.t", 3), "layers.txt\n");
    QT_STR(t, offered("nothing --x", 2), "\n");
    QT_STR(t, offered("generate -- --se", 3), "\n");
}

static void scripts_are_sound(qt *t)
{
    QT_EQ(t, program_shell("bash -n <(\"$QUERN\" completion bash)")->status, 0);
    QT_EQ(t, program_run("completion zsh")->status, 0);
    QT_EQ(t, program_run("completion fish")->status, 0);
    QT_OK(t, strstr(program_run("completion tcsh")->err, "expected bash, zsh or fish"));
    QT_EQ(t, program_run("completion bash more")->status, 64);
    QT_EQ(t, program_run("completion")->status, 64);
}

/* zsh and fish read the same lines. */
static void candidates_carry_what_they_are(qt *t)
{
    const program_result *r = program_run("completion words -- generate --see");
    QT_EQ(t, r->status, 0);
    QT_OKF(t, strncmp(r->out, "--seed\tseed of the draws", 24) == 0, "%s", r->out);
    QT_STR(t, program_run("completion words -- inspect ''")->out, ":files\n");
    QT_STR(t, program_run("completion words -- generate --seed ''")->out, "");
}

QT_MAIN(QT(the_committed_reference_is_what_the_program_prints), QT(the_man_page_is_plain_roff),
        QT(help_takes_one_thing), QT(bash_completes_verbs_options_and_values),
        QT(scripts_are_sound), QT(candidates_carry_what_they_are))
