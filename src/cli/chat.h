/* SPDX-License-Identifier: Apache-2.0 */
/* chat.h - what the files of `quern chat` share: one conversation with one model.
 *
 * Thread: main.
 */
#ifndef QN_CLI_CHAT_H
#define QN_CLI_CHAT_H
#include "cli/chat_log.h"
#include "cli/open.h"
#include "cli/sampling.h"
#include "dep/line_edit.h"
#include "quern/template.h"

typedef struct qn_chat_opts {
    qn_run_opts run; /* first, as in every verb that runs a model */
    qn_sampling sampling;
    const char *system, *template_file, *load, *message;
    qn_texts stop;
    bool stats;
} qn_chat_opts;

typedef struct qn_chat {
    qn_io *io;
    qn_chat_opts opts; /* a copy: /set changes it */
    qn_running run;
    quern_template *template;
    uint32_t context; /* positions one conversation may fill */
    uint32_t redone;  /* times that the last answer was asked for again */
    bool talks;       /* a person is at the terminal: notes go there, a fault ends a turn only */
    bool over;        /* /quit */
    qn_line_edit *editor;
    qn_chat_log log;
} qn_chat;

extern const qn_verb qn_verb_chat;

/* The next answer to the log: written to stdout as it comes and added. SIGINT ends the answer; what
 * came so far is added and *interrupted set. Errors: those of the library; LIMIT when the
 * conversation and the context do not fit, with both numbers. Nothing is added then. */
qn_code qn_chat_answer(qn_chat *c, bool *interrupted, qn_err *err);
/* Adds a turn of the user and answers it; after an error the turn is gone again. */
qn_code qn_chat_ask(qn_chat *c, qn_str text, bool *interrupted, qn_err *err);
/* A line that begins with "/". Errors: INVAL (no such command, bad value), those of what it does. */
qn_code qn_chat_command(qn_chat *c, qn_str line, qn_err *err);
/* chat_set.c: what follows "/set". Errors: INVAL (no such setting, bad value). */
qn_code qn_chat_set(qn_chat *c, qn_str arg, qn_err *err);

#endif
