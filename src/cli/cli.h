/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the command line: verbs are a table, options are data, a verb returns a code.
 *
 * stdout carries results only; everything said to people goes to stderr. main() reads the environment
 * and turns codes into exit statuses; nothing else does either.
 *
 * Thread: main.
 */
#ifndef QN_CLI_CLI_H
#define QN_CLI_CLI_H
#include <stdio.h>

#include "base/str.h"
#include "dep/json.h"
#include "quern/quern.h"

typedef struct qn_args { /* what is left once options are taken out */
    int n;
    char *const *v;
} qn_args;

typedef struct qn_io { /* where a verb reads and writes, and what the environment said */
    FILE *in, *out, *err;
    const char *isa;  /* QUERN_ISA or NULL */
    const char *home; /* QUERN_HOME, or its place below HOME; NULL: neither is set */
    const char *hub_cache, *hub_endpoint, *hub_token; /* as HF_* say; each may be NULL */
    const char *hub_token_file; /* read where hub_token is NULL; it need not be there */
    uint32_t threads;           /* QUERN_THREADS, 0: not said */
    bool out_is_terminal, err_is_terminal;
} qn_io;

/* printf to out. A failure (a full disk) is told by qn_io_flush. */
void qn_io_print(qn_io *io, const char *fmt, ...) QN_PRINTF(2, 3);
void qn_io_write(qn_io *io, const char *bytes, size_t n);
/* Text that a model or a file wrote, whole UTF-8 characters: as it is, but on a terminal control
 * characters are shown (\x1b), not obeyed; line ends and tabs are. */
void qn_io_text(qn_io *io, const char *bytes, size_t n);
/* The same to any stream. */
void qn_text_shown(FILE *f, const char *bytes, size_t n);
/* A cell of one line: control characters, line ends and tabs are shown, whatever reads it. NUL-terminated;
 * what does not fit is cut between characters. Returns the characters. */
size_t qn_text_cell(char *out, size_t cap, const char *text);
/* "92.1 MB": decimal units, as shops and hubs count. */
void qn_bytes_text(char out[16], uint64_t bytes);
/* Errors: IO when anything written so far did not arrive. */
qn_code qn_io_flush(qn_io *io, qn_err *err);
/* One line of compact JSON; takes `value`, which may be NULL (no memory). */
qn_code qn_io_json(qn_io *io, qn_json *value, qn_err *err);

typedef enum qn_opt_kind {
    QN_OPT_FLAG, /* bool */
    QN_OPT_U32,
    QN_OPT_U64,
    QN_OPT_F32,
    QN_OPT_TEXT,  /* const char * */
    QN_OPT_TEXTS, /* qn_texts: may be given several times */
    QN_OPT_CHOICE /* int: index of the word in `arg`, "f32|f16|bf16" */
} qn_opt_kind;

enum { QN_MAX_TEXTS = 16 };
typedef struct qn_texts { /* borrowed from the command line */
    const char *v[QN_MAX_TEXTS];
    size_t n;
} qn_texts;

typedef struct qn_opt {
    const char *name;
    qn_opt_kind kind;
    size_t at;        /* in the verb's option struct */
    const char *arg;  /* what its value is called; NULL for flags */
    const char *help; /* NULL: another spelling, not listed */
    double lo, hi;    /* of numbers, inclusive */
    size_t given;     /* offset of a bool that tells whether it was given, or 0 */
} qn_opt;
#define QN_OPT_END                                \
    {                                             \
        NULL, QN_OPT_FLAG, 0, NULL, NULL, 0, 0, 0 \
    }

typedef struct qn_verb {
    const char *name, *args, *summary;
    const char *notes;      /* more for `help VERB`, or NULL */
    const qn_opt *options;  /* ends with QN_OPT_END */
    const void *defaults;   /* opts_size bytes, or NULL: zeros */
    size_t opts_size;       /* at most QN_OPTS_MAX */
    int min_args, max_args; /* positionals */
    qn_code (*run)(const void *opts, qn_args args, qn_io *io, qn_err *err);
} qn_verb;

enum { QN_OPTS_MAX = 1024 };

extern const qn_verb *const qn_verbs[]; /* NULL-terminated */
extern const qn_verb qn_verb_chat, qn_verb_serve, qn_verb_generate, qn_verb_get, qn_verb_ls,
    qn_verb_inspect, qn_verb_bench, qn_verb_doctor, qn_verb_completion, qn_verb_version,
    qn_verb_help;

const qn_verb *qn_verb_find(const char *name); /* NULL: none */
/* The whole command: argv[0] is the program. Errors: the verb's; INVAL for an unknown verb or option,
 * naming the nearest. */
qn_code qn_cli_run(int argc, char **argv, qn_io *io, qn_err *err);
/* Takes options out of v[0, n) into *opts, which holds the defaults; positionals are moved to the
 * front of v. *help is set when --help or -h occurs. Errors: INVAL names option, found, expected. */
qn_code qn_opts_parse(void *opts, qn_args *args, bool *help, const qn_verb *verb, int n, char **v,
                      qn_err *err);

typedef struct qn_named { /* a row of text about a name */
    const char *name, *text;
} qn_named;
/* What main() reads from the environment; ends with a NULL name. */
extern const qn_named qn_environment[];

/* " (0.7)": what the option is without being given, or "". */
void qn_opt_default(char text[64], const qn_verb *verb, const qn_opt *o);
/* Sets one option as if it had been given as --name=value. Errors: INVAL as qn_opts_parse. */
qn_code qn_opts_set(void *opts, const qn_verb *verb, qn_str name, const char *value, qn_err *err);
void qn_help_verb(qn_io *io, const qn_verb *verb);
void qn_help_all(qn_io *io);
/* Walks the codes in the order of their exit statuses; starts and ends with QUERN_OK. */
quern_code qn_exit_next(quern_code code);
/* The same tables as a man page and as docs/cli.md. */
void qn_help_man(qn_io *io);
void qn_help_markdown(qn_io *io);

#endif
