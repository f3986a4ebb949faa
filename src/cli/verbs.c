/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.c - the table of verbs, `help` and `version`, and the run of a command. */
#include <stdalign.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

const qn_verb *const qn_verbs[] = {
    &qn_verb_chat,       &qn_verb_serve,   &qn_verb_generate, &qn_verb_get,
    &qn_verb_ls,         &qn_verb_inspect, &qn_verb_bench,    &qn_verb_doctor,
    &qn_verb_completion, &qn_verb_version, &qn_verb_help,     NULL,
};

static const qn_opt no_options[] = {QN_OPT_END};

static qn_code version(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    (void)opts, (void)args;
    qn_io_print(io, "quern %s\n", quern_version());
    return qn_io_flush(io, err);
}

const qn_verb qn_verb_version = {
    "version", "", "print the version", NULL, no_options, NULL, 0, 0, 0, version};

static qn_code unknown_verb(const char *name, qn_err *err)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (const qn_verb *const *v = qn_verbs; *v; v++) {
        const size_t distance = qn_str_distance(qn_str_z(name), qn_str_z((*v)->name));
        if (distance < least) {
            least = distance;
            best = (*v)->name;
        }
    }
    if (best && qn_str_is_near(least, strlen(name)))
        return qn_fail(err, QN_E_INVAL, "unknown verb \"%s\"; did you mean %s?", name, best);
    return qn_fail(err, QN_E_INVAL, "unknown verb \"%s\"; \"quern help\" lists them", name);
}

typedef struct help_opts {
    bool man, markdown;
} help_opts;

static const qn_opt help_options[] = {
    {"man", QN_OPT_FLAG, offsetof(help_opts, man), NULL, "everything as a man page, quern(1)", 0, 0,
     0},
    {"markdown", QN_OPT_FLAG, offsetof(help_opts, markdown), NULL, "everything as Markdown", 0, 0,
     0},
    QN_OPT_END,
};

static qn_code help(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    const help_opts *o = opts;
    if (o->man + o->markdown + args.n > 1)
        return qn_fail(err, QN_E_INVAL, "help takes one of VERB, --man and --markdown");
    const qn_verb *verb = args.n ? qn_verb_find(args.v[0]) : NULL;
    if (args.n && !verb) return unknown_verb(args.v[0], err);
    if (o->man)
        qn_help_man(io);
    else if (o->markdown)
        qn_help_markdown(io);
    else if (verb)
        qn_help_verb(io, verb);
    else
        qn_help_all(io);
    return qn_io_flush(io, err);
}

const qn_verb qn_verb_help = {"help",
                              "[VERB]",
                              "list the verbs, or tell one verb's options",
                              NULL,
                              help_options,
                              NULL,
                              sizeof(help_opts),
                              0,
                              1,
                              help};

const qn_verb *qn_verb_find(const char *name)
{
    for (const qn_verb *const *v = qn_verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0) return *v;
    return NULL;
}

/* --help and --version stand for their verbs. */
static const char *verb_name(const char *first)
{
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) return "help";
    if (strcmp(first, "--version") == 0 || strcmp(first, "-v") == 0) return "version";
    return first;
}

qn_code qn_cli_run(int argc, char **argv, qn_io *io, qn_err *err)
{
    alignas(16) unsigned char opts[QN_OPTS_MAX] = {0};
    qn_args args = {0};
    bool wants_help = false;
    if (argc < 2) return help(&(help_opts){0}, args, io, err);
    const qn_verb *verb = qn_verb_find(verb_name(argv[1]));
    if (!verb) return unknown_verb(argv[1], err);
    QN_ASSERT(verb->opts_size <= sizeof opts);
    if (verb->defaults) memcpy(opts, verb->defaults, verb->opts_size);
    QN_TRY(qn_opts_parse(opts, &args, &wants_help, verb, argc - 2, argv + 2, err));
    if (wants_help) {
        qn_help_verb(io, verb);
        return qn_io_flush(io, err);
    }
    return verb->run(opts, args, io, err);
}
