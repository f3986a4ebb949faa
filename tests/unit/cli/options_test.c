/* SPDX-License-Identifier: Apache-2.0 */
/* options_test.c - options as data: what each kind takes, what it refuses, what help says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "qt.h"

typedef struct opts {
    bool flag, has_big;
    uint32_t small;
    uint64_t big;
    float real;
    const char *text;
    qn_texts texts;
    int choice;
} opts;

static const opts defaults = {.small = 7, .real = 0.5f, .choice = 1};

static const qn_opt table[] = {
    {"flag", QN_OPT_FLAG, offsetof(opts, flag), NULL, "a flag", 0, 0, 0},
    {"small", QN_OPT_U32, offsetof(opts, small), "N", "a small number", 1, 100, 0},
    {"big", QN_OPT_U64, offsetof(opts, big), "N", "a big number", 0, 0x1p64,
     offsetof(opts, has_big)},
    {"real", QN_OPT_F32, offsetof(opts, real), "X", "a real number", 0, 1, 0},
    {"text", QN_OPT_TEXT, offsetof(opts, text), "TEXT", "a text", 0, 0, 0},
    {"also", QN_OPT_TEXTS, offsetof(opts, texts), "TEXT", "one of many texts", 0, 0, 0},
    {"choice", QN_OPT_CHOICE, offsetof(opts, choice), "one|two|three", "a word", 0, 0, 0},
    {"other", QN_OPT_U32, offsetof(opts, small), "N", NULL, 1, 100, 0},
    QN_OPT_END,
};

static const qn_verb verb = {"try", "[A]", "tries options", NULL, table, &defaults, sizeof(opts), 0,
                             1,     NULL};

/* Parses words separated by spaces. */
static qn_code parse(opts *o, qn_args *args, bool *help, const char *words, qn_err *err)
{
    static char text[512];
    static char *v[64];
    int n = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *at = text, *word; (word = strsep(&at, " ")) != NULL;)
        if (word[0]) v[n++] = word;
    *o = defaults;
    memset(err, 0, sizeof *err);
    return qn_opts_parse(o, args, help, &verb, n, v, err);
}

static void each_kind_takes_its_value(qt *t)
{
    opts o;
    qn_args args;
    bool help = false;
    qn_err err;
    QT_EQ(t,
          parse(&o, &args, &help,
                "--flag --small 9 --big=18446744073709551615 --real 0.25 --text - --choice three x",
                &err),
          QN_OK);
    QT_OK(t, o.flag && o.small == 9 && o.big == UINT64_MAX && o.has_big && o.real == 0.25f);
    QT_STR(t, o.text, "-");
    QT_EQ(t, o.choice, 2);
    QT_EQ(t, args.n, 1);
    QT_STR(t, args.v[0], "x");
    QT_OK(t, !help);
}

static void a_list_keeps_every_text_up_to_its_ceiling(qt *t)
{
    opts o;
    qn_args args;
    bool help = false;
    qn_err err;
    char words[512] = "";
    QT_EQ(t, parse(&o, &args, &help, "--also a --also=b --also c", &err), QN_OK);
    QT_EQ(t, o.texts.n, 3);
    QT_STR(t, o.texts.v[0], "a");
    QT_STR(t, o.texts.v[2], "c");
    for (size_t i = 0, n = 0; i <= QN_MAX_TEXTS; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "--also t ");
    QT_EQ(t, parse(&o, &args, &help, words, &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "--also") != NULL);
}

static void what_is_not_given_keeps_its_default(qt *t)
{
    opts o;
    qn_args args;
    bool help = false;
    qn_err err;
    QT_EQ(t, parse(&o, &args, &help, "", &err), QN_OK);
    QT_OK(t, !o.flag && o.small == 7 && o.real == 0.5f && o.choice == 1 && !o.has_big && !o.text);
}

static void two_dashes_end_the_options(qt *t)
{
    opts o;
    qn_args args;
    bool help = false;
    qn_err err;
    QT_EQ(t, parse(&o, &args, &help, "-- --flag", &err), QN_OK);
    QT_OK(t, !o.flag && args.n == 1);
    QT_STR(t, args.v[0], "--flag");
}

static void another_spelling_is_the_same_option(qt *t)
{
    opts o;
    qn_args args;
    bool help = false;
    qn_err err;
    QT_EQ(t, parse(&o, &args, &help, "--other 3", &err), QN_OK);
    QT_EQ(t, o.small, 3);
}

static void what_is_wrong_is_named(qt *t)
{
    static const struct {
        const char *words, *said;
    } rows[] = {
        {"--flog", "unknown option --flog of try; did you mean --flag?"},
        {"--quite-different", "unknown option --quite-different; \"quern help try\" lists them"},
        {"--small", "--small needs N"},
        {"--small --flag", "--small needs N"},
        {"--small 0", "--small is \"0\", expected a whole number from 1 to 100"},
        {"--small 101", "--small is \"101\""},
        {"--small -1", "--small is \"-1\""},
        {"--small 1.5", "--small is \"1.5\""},
        {"--small 0x10", "--small is \"0x10\""},
        {"--small=", "--small is \"\""},
        {"--big 18446744073709551616", "--big is \"18446744073709551616\", expected a whole number "
                                       "from 0 to 18446744073709551615"},
        {"--real nan", "--real is \"nan\", expected a number from 0 to 1"},
        {"--real 1.01", "--real is \"1.01\""},
        {"--choice four", "--choice is \"four\", expected one|two|three"},
        {"--choice on", "--choice is \"on\""},
        {"--flag=yes", "--flag takes no value, got \"yes\""},
        {"-f", "unknown option -f; options begin with --"},
        {"a b", "try takes [A], got 2 arguments"},
    };
    for (size_t i = 0; i < QT_LEN(rows); i++) {
        opts o;
        qn_args args;
        bool help = false;
        qn_err err;
        QT_OKF(t, parse(&o, &args, &help, rows[i].words, &err) == QN_E_INVAL, "%s", rows[i].words);
        QT_OKF(t, strstr(err.msg, rows[i].said) != NULL, "\"%s\" does not say \"%s\"", err.msg,
               rows[i].said);
    }
}

static void help_is_asked_for_anywhere(qt *t)
{
    opts o;
    qn_args args;
    bool help = false;
    qn_err err;
    QT_EQ(t, parse(&o, &args, &help, "--flag --help", &err), QN_OK);
    QT_OK(t, help);
    QT_EQ(t, parse(&o, &args, &help, "-h", &err), QN_OK);
    QT_OK(t, help);
}

static char *help_of(const qn_verb *v)
{
    char *text = NULL;
    size_t n = 0;
    qn_io io = {.out = open_memstream(&text, &n)};
    qn_help_verb(&io, v);
    fclose(io.out);
    return text;
}

static void help_tells_options_and_defaults(qt *t)
{
    char *text = help_of(&verb);
    QT_OK(t, strstr(text, "quern try [options] [A]") && strstr(text, "tries options"));
    QT_OK(t, strstr(text, "--small N") && strstr(text, "a small number (7)"));
    QT_OK(t, strstr(text, "a real number (0.5)") && strstr(text, "a word (two)"));
    QT_OK(t, !strstr(text, "--other"));
    free(text);
}

/* The real tables: offsets inside the struct, ranges that make sense, help for each verb. */
static void every_verb_has_a_sound_table(qt *t)
{
    for (const qn_verb *const *v = qn_verbs; *v; v++) {
        char *text = help_of(*v);
        QT_OKF(t, strstr(text, (*v)->summary) != NULL, "%s", (*v)->name);
        QT_OK(t, (*v)->opts_size <= QN_OPTS_MAX && (*v)->min_args <= (*v)->max_args);
        for (const qn_opt *o = (*v)->options; o->name; o++) {
            QT_OKF(t, o->at < (*v)->opts_size && o->given < (*v)->opts_size, "%s", o->name);
            QT_OKF(t, (o->arg == NULL) == (o->kind == QN_OPT_FLAG), "%s", o->name);
            const bool number =
                o->kind == QN_OPT_U32 || o->kind == QN_OPT_U64 || o->kind == QN_OPT_F32;
            QT_OKF(t, !number || o->lo < o->hi, "%s", o->name);
            for (const qn_opt *p = o + 1; p->name; p++)
                QT_OKF(t, strcmp(o->name, p->name) != 0, "%s twice", o->name);
        }
        free(text);
    }
}

QT_MAIN(QT(each_kind_takes_its_value), QT(a_list_keeps_every_text_up_to_its_ceiling),
        QT(what_is_not_given_keeps_its_default), QT(two_dashes_end_the_options),
        QT(another_spelling_is_the_same_option), QT(what_is_wrong_is_named),
        QT(help_is_asked_for_anywhere), QT(help_tells_options_and_defaults),
        QT(every_verb_has_a_sound_table))
