/* SPDX-License-Identifier: Apache-2.0 */
/* verb_chat.c - `quern chat`: a conversation in a terminal, by lines from a pipe, or one question.
 *
 * From a pipe each line is a message, as it stands: no commands, so that lines of others cannot write
 * files. At a terminal the editor talks on stderr and answers go to stdout. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/chat.h"

enum { MAX_MESSAGE_BYTES = 16 << 20, MAX_TEMPLATE_BYTES = 1 << 20 };

#define AT(member) offsetof(qn_chat_opts, member)
static const qn_opt options[] = {
    QN_RUN_OPTIONS(qn_chat_opts),
    QN_SAMPLING_OPTIONS(qn_chat_opts, "the model's, else ", "0.7", "what the context holds"),
    QN_SAMPLING_MIN_TOKENS(qn_chat_opts),
    {"system", QN_OPT_TEXT, AT(system), "TEXT", "what the model is told first", 0, 0, 0},
    {"template", QN_OPT_TEXT, AT(template_file), "FILE",
     "a chat template (Jinja) in place of the model's", 0, 0, 0},
    {"load", QN_OPT_TEXT, AT(load), "FILE", "go on with a saved conversation", 0, 0, 0},
    {"message", QN_OPT_TEXT, AT(message), "TEXT", "the one message, where it is no argument", 0, 0,
     0},
    {"stop", QN_OPT_TEXTS, AT(stop), "TEXT", "end an answer before this text; may be repeated", 0,
     0, 0},
    {"stats", QN_OPT_FLAG, AT(stats), NULL, "tell counts after each answer on stderr", 0, 0, 0},
    QN_OPT_END,
};

/* -- opening ----------------------------------------------------------------------------------- */

static qn_code open_template(qn_chat *c, qn_err *err)
{
    uint8_t *source = NULL;
    size_t n = 0;
    const char *path = c->opts.template_file;
    if (path) QN_TRY(qn_file_read(&source, &n, path, MAX_TEMPLATE_BYTES, err));
    qn_code rc = quern_template_open(&c->template, c->run.model, (const char *)source, n, err);
    qn_free(source);
    if (rc != QN_OK && path) return qn_wrap(err, rc, "%s", path);
    if (rc != QN_E_NOTFOUND) return rc;
    return qn_fail(err, rc,
                   "%s has no chat template; give one with --template FILE, or continue text with "
                   "\"quern generate\"",
                   c->run.path);
}

static qn_code open_chat(qn_chat *c, qn_err *err)
{
    quern_model_info info = {.size = sizeof info};
    QN_TRY(qn_run_open(&c->run, &c->opts.run, 1, c->io, err));
    QN_TRY(quern_model_get_info(c->run.model, &info, err));
    c->context = c->opts.run.context ? c->opts.run.context : info.context;
    QN_TRY(open_template(c, err));
    if (c->opts.load) QN_TRY(qn_chat_log_load(&c->log, c->opts.load, err));
    if (c->opts.system) QN_TRY(qn_chat_log_set_system(&c->log, qn_str_z(c->opts.system), err));
    return QN_OK;
}

static void close_chat(qn_chat *c)
{
    qn_line_edit_close(c->editor);
    quern_template_free(c->template);
    qn_run_close(&c->run);
    qn_chat_log_fini(&c->log);
}

/* -- one message, and lines from a pipe -------------------------------------------------------- */

static qn_code ask_once(qn_chat *c, qn_str text, qn_err *err)
{
    bool interrupted = false;
    if (!text.n) return qn_fail(err, QN_E_INVAL, "the message is empty");
    QN_TRY(qn_chat_ask(c, text, &interrupted, err));
    return interrupted ? qn_fail(err, QN_E_CANCELLED, "cancelled") : QN_OK;
}

/* Appends a line without its end, or with end 0 all there is. *more is false at the end of input. */
static qn_code read_until(qn_buf *b, FILE *f, int end, bool *more, qn_err *err)
{
    char piece[4096];
    size_t n = 0;
    int ch = 0;
    for (;;) {
        ch = getc_unlocked(f);
        if (ch != EOF && (end == 0 || ch != end)) piece[n++] = (char)ch;
        if (n && (n == sizeof piece || ch == EOF || (end && ch == end))) {
            const qn_code rc = qn_buf_append(b, piece, n, err);
            if (rc != QN_OK) return qn_wrap(err, rc, "reading a message");
            n = 0;
        }
        if (ch == EOF || (end && ch == end)) break;
    }
    *more = ch != EOF;
    return ferror(f) ? qn_fail_sys(err, QN_E_IO, errno ? errno : EIO, "reading a message") : QN_OK;
}

static qn_code ask_all_of_stdin(qn_chat *c, qn_err *err)
{
    qn_buf b;
    bool more = false;
    qn_buf_init(&b, MAX_MESSAGE_BYTES);
    qn_code rc = read_until(&b, c->io->in, 0, &more, err);
    if (rc == QN_OK) rc = ask_once(c, qn_str_trim(qn_str_make(qn_buf_text(&b), b.len)), err);
    qn_buf_fini(&b);
    return rc;
}

static qn_code ask_lines(qn_chat *c, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_buf b;
    bool more = true;
    qn_buf_init(&b, MAX_MESSAGE_BYTES);
    while (more) {
        qn_buf_truncate(&b, 0);
        QN_TRY_OUT(read_until(&b, c->io->in, '\n', &more, err));
        const qn_str line = qn_str_trim(qn_str_make(qn_buf_text(&b), b.len));
        if (line.n) QN_TRY_OUT(ask_once(c, line, err));
    }
out:
    qn_buf_fini(&b);
    return rc;
}

/* -- a terminal -------------------------------------------------------------------------------- */

/* QUERN_HOME/chat_history; "" without a home. */
static void history_path(char path[1200], const char *home)
{
    path[0] = '\0';
    if (!home) return;
    if (mkdir(home, 0777) != 0 && errno != EEXIST) return;
    const int n = snprintf(path, 1200, "%s/chat_history", home);
    if (n < 0 || n >= 1200) path[0] = '\0';
}

/* A message: one line, or more where a \ ends it or """ begins it. */
static qn_code read_message(qn_line_kind *kind, qn_buf *b, qn_chat *c, qn_err *err)
{
    static const qn_str fence = {"\"\"\"", 3};
    bool fenced = false;
    qn_buf_truncate(b, 0);
    QN_TRY(qn_line_edit_read(kind, b, c->editor, "> ", err));
    if (*kind == QN_LINE_TEXT && qn_str_has_prefix(qn_str_make(qn_buf_text(b), b->len), fence)) {
        fenced = true;
        memmove(b->data, b->data + fence.n, b->len - fence.n);
        qn_buf_truncate(b, b->len - fence.n);
    }
    while (*kind == QN_LINE_TEXT) {
        const qn_str all = qn_str_make(qn_buf_text(b), b->len);
        if (fenced && qn_str_has_suffix(all, fence)) {
            qn_buf_truncate(b, b->len - fence.n);
            return QN_OK;
        }
        if (!fenced && !qn_str_has_suffix(all, QN_STR("\\"))) return QN_OK;
        if (!fenced) qn_buf_truncate(b, b->len - 1);
        QN_TRY(qn_buf_append_byte(b, '\n', err));
        QN_TRY(qn_line_edit_read(kind, b, c->editor, ". ", err));
    }
    return QN_OK;
}

/* One message or command. Its fault is told and the conversation goes on. */
static qn_code take(qn_chat *c, qn_str text, qn_err *err)
{
    bool interrupted = false;
    qn_code rc = QN_OK;
    if (!text.n) return QN_OK;
    qn_line_edit_remember(c->editor, text.p, text.n);
    if (text.p[0] == '/' && (text.n < 2 || text.p[1] != '/'))
        rc = qn_chat_command(c, text, err);
    else
        rc = qn_chat_ask(c, text.p[0] == '/' ? qn_str_slice(text, 1, text.n) : text, &interrupted,
                         err);
    if (rc == QN_OK || ferror(c->io->out)) return rc;
    fprintf(c->io->err, "quern: ");
    qn_text_shown(c->io->err, err->msg, strlen(err->msg));
    fprintf(c->io->err, "\n");
    *err = (qn_err){0};
    return QN_OK;
}

static qn_code talk(qn_chat *c, qn_err *err)
{
    qn_code rc = QN_OK;
    char path[1200];
    bool warned = false; /* Ctrl-C on an empty line came just before */
    qn_buf b;
    qn_buf_init(&b, MAX_MESSAGE_BYTES);
    history_path(path, c->io->home);
    QN_TRY_OUT(qn_line_edit_open(&c->editor, c->io->in, c->io->err, path[0] ? path : NULL, err));
    fprintf(c->io->err, "%s, a context of %u tokens. /help lists commands, Ctrl-D quits.\n",
            quern_runtime_describe(c->run.rt), c->context);
    while (!c->over) {
        qn_line_kind kind = QN_LINE_END;
        QN_TRY_OUT(read_message(&kind, &b, c, err));
        if (kind == QN_LINE_END || (kind == QN_LINE_CANCEL && warned)) break;
        if (kind == QN_LINE_CANCEL) fprintf(c->io->err, "[Ctrl-C again or Ctrl-D quits]\n");
        warned = kind == QN_LINE_CANCEL;
        if (kind != QN_LINE_TEXT) continue;
        QN_TRY_OUT(take(c, qn_str_trim(qn_str_make(qn_buf_text(&b), b.len)), err));
    }
    if (!c->over) fprintf(c->io->err, "\n");
out:
    qn_buf_fini(&b);
    return rc;
}

/* -- verb -------------------------------------------------------------------------------------- */

static qn_code chat(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_chat c = {.io = io, .opts = *(const qn_chat_opts *)opts};
    qn_chat_log_init(&c.log);
    if (c.opts.message && args.n)
        return qn_fail(err, QN_E_INVAL, "the message is given twice: --message and \"%s\"",
                       args.v[0]);
    const char *message = c.opts.message ? c.opts.message : args.n ? args.v[0] : NULL;
    c.talks = !message && isatty(fileno(io->in)) == 1 && io->err_is_terminal;
    qn_interrupt_block();
    QN_TRY_OUT(open_chat(&c, err));
    if (qn_interrupt_take()) {
        rc = qn_fail(err, QN_E_CANCELLED, "cancelled");
        goto out;
    }
    if (message && strcmp(message, "-") == 0)
        rc = ask_all_of_stdin(&c, err);
    else if (message)
        rc = ask_once(&c, qn_str_z(message), err);
    else
        rc = c.talks ? talk(&c, err) : ask_lines(&c, err);
out:
    close_chat(&c);
    return rc;
}

const qn_verb qn_verb_chat = {
    "chat",
    "[MESSAGE | -]",
    "talk with a model",
    "Without MESSAGE a conversation: typed at a terminal (/help lists commands), or from a pipe, "
    "where\n"
    "each line is a message. With MESSAGE one answer; \"-\" reads it from stdin as a whole. "
    "Answers "
    "go\n"
    "to stdout. What is not said about sampling is as the model's makers recommend, where they "
    "do.\n\n"
    "  quern chat\n"
    "  quern chat --model ORG/NAME --system \"Answer in one word.\" \"The capital of France?\"\n"
    "  quern chat --model model.gguf --temperature 0 < questions.txt",
    options,
    NULL,
    sizeof(qn_chat_opts),
    0,
    1,
    chat};
