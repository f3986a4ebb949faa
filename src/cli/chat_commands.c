/* SPDX-License-Identifier: Apache-2.0 */
/* chat_commands.c - what may be typed instead of a message. */
#include <string.h>

#include "base/nearest.h"
#include "cli/chat.h"

typedef struct command {
    const char *name, *arg, *help;
    qn_code (*run)(qn_chat *c, qn_str arg, qn_err *err);
} command;

static const command *all_commands(void); /* ends with a NULL name */

static qn_code help(qn_chat *c, qn_str arg, qn_err *err)
{
    (void)arg, (void)err;
    for (const command *k = all_commands(); k->name; k++) {
        char left[40];
        snprintf(left, sizeof left, "/%s%s%s", k->name, k->arg ? " " : "", k->arg ? k->arg : "");
        fprintf(c->io->err, "  %-20s %s\n", left, k->help);
    }
    fprintf(c->io->err, "  %-20s %s\n  %-20s %s\n  %-20s %s\n", "\"\"\"",
            "begins and ends a text of many lines; a "
            "\\ at a line's end goes on too",
            "//text", "a message that begins with one /", "Ctrl-C",
            "stops an answer, clears a line; on an empty line twice, or Ctrl-D, quits");
    return QN_OK;
}

static qn_code reset(qn_chat *c, qn_str arg, qn_err *err)
{
    (void)arg, (void)err;
    qn_chat_log_cut(&c->log, 0);
    fprintf(c->io->err, "[a new conversation%s]\n", c->log.system ? ", the same system text" : "");
    return QN_OK;
}

static qn_code set_system(qn_chat *c, qn_str arg, qn_err *err)
{
    QN_TRY(qn_chat_log_set_system(&c->log, arg, err));
    fprintf(c->io->err, arg.n ? "[system text set]\n" : "[no system text]\n");
    return QN_OK;
}

static qn_code path_of(char path[4096], qn_str arg, const char *name, qn_err *err)
{
    if (!arg.n) return qn_fail(err, QN_E_INVAL, "/%s needs FILE", name);
    if (arg.n >= 4096 || memchr(arg.p, '\0', arg.n))
        return qn_fail(err, QN_E_INVAL, "/%s: the name is too long", name);
    memcpy(path, arg.p, arg.n);
    path[arg.n] = '\0';
    return QN_OK;
}

static qn_code save(qn_chat *c, qn_str arg, qn_err *err)
{
    char path[4096];
    QN_TRY(path_of(path, arg, "save", err));
    QN_TRY(qn_chat_log_save(&c->log, path, c->run.path, err));
    fprintf(c->io->err, "[%zu turns in %s]\n", c->log.n_turns, path);
    return QN_OK;
}

static qn_code load(qn_chat *c, qn_str arg, qn_err *err)
{
    char path[4096];
    QN_TRY(path_of(path, arg, "load", err));
    QN_TRY(qn_chat_log_load(&c->log, path, err));
    fprintf(c->io->err, "[%zu turns from %s]\n", c->log.n_turns, path);
    return QN_OK;
}

static qn_code undo(qn_chat *c, qn_str arg, qn_err *err)
{
    (void)arg;
    size_t n = c->log.n_turns;
    if (!n) return qn_fail(err, QN_E_INVAL, "/undo: the conversation is empty");
    while (n && c->log.turns[n - 1].role != QN_CHAT_USER) n--;
    qn_chat_log_cut(&c->log, n ? n - 1 : 0);
    fprintf(c->io->err, "[%zu turns left]\n", c->log.n_turns);
    return QN_OK;
}

static qn_code regenerate(qn_chat *c, qn_str arg, qn_err *err)
{
    qn_code rc = QN_OK;
    bool interrupted = false;
    size_t n = c->log.n_turns;
    (void)arg;
    while (n && c->log.turns[n - 1].role != QN_CHAT_USER) n--;
    if (!n) return qn_fail(err, QN_E_INVAL, "/regenerate: there is nothing to answer");
    qn_chat_log_cut(&c->log, n);
    c->redone++;
    rc = qn_chat_answer(c, &interrupted, err);
    return rc;
}

static qn_code quit(qn_chat *c, qn_str arg, qn_err *err)
{
    (void)arg, (void)err;
    c->over = true;
    return QN_OK;
}

static const command *all_commands(void)
{
    static const command commands[] = {
        {"help", NULL, "this list", help},
        {"reset", NULL, "forget the conversation", reset},
        {"system", "TEXT", "what the model is told first; without TEXT nothing", set_system},
        {"save", "FILE", "write the conversation", save},
        {"load", "FILE", "go on with a saved one", load},
        {"set", "NAME VALUE", "how tokens are drawn; alone it lists all", qn_chat_set},
        {"undo", NULL, "take back the last message and its answer", undo},
        {"regenerate", NULL, "another answer to the last message", regenerate},
        {"quit", NULL, "end", quit},
        {"exit", NULL, "end", quit},
        {NULL, NULL, NULL, NULL},
    };
    return commands;
}

qn_code qn_chat_command(qn_chat *c, qn_str line, qn_err *err)
{
    qn_str rest = qn_str_slice(line, 1, line.n), word = {0};
    const char *best = "help";
    size_t least = SIZE_MAX;
    (void)qn_str_split(&word, &rest, ' ');
    for (const command *k = all_commands(); k->name; k++) {
        if (qn_str_eq_z(word, k->name)) return k->run(c, qn_str_trim(rest), err);
        const size_t distance = qn_str_distance(word, qn_str_z(k->name));
        if (distance < least) {
            least = distance;
            best = k->name;
        }
    }
    if (qn_str_is_near(least, word.n))
        return qn_fail(err, QN_E_INVAL, "no command /%.*s; did you mean /%s?", QN_STR_ARG(word),
                       best);
    return qn_fail(err, QN_E_INVAL,
                   "no command /%.*s; /help lists them, // begins a message with /",
                   QN_STR_ARG(word));
}
