/* SPDX-License-Identifier: Apache-2.0 */
/* chat_turn.c - one answer: messages to text by the template, text to tokens, tokens to stdout.
 *
 * Every turn hands the engine the whole conversation; what it has computed before it finds in its
 * prefix cache, so only the new turn is worked on. */
#include <string.h>

#include "base/alloc.h"
#include "cli/chat.h"

enum { LOOK_MS = 50 };

/* The conversation as the model wants it, owned (quern_text_free). */
static qn_code render(char **text, size_t *n, const qn_chat *c, qn_err *err)
{
    qn_buf messages;
    quern_template_options o = QUERN_TEMPLATE_OPTIONS_INIT;
    *text = NULL;
    qn_buf_init(&messages, SIZE_MAX / 2);
    qn_code rc = qn_chat_log_messages(&messages, &c->log, err);
    o.messages = qn_buf_text(&messages);
    o.messages_n = messages.len;
    o.flags = QUERN_TEMPLATE_ADD_GENERATION_PROMPT;
    if (rc == QN_OK) rc = quern_template_render(text, n, c->template, &o, err);
    qn_buf_fini(&messages);
    return rc;
}

/* Never cut silently: what does not fit is refused with the numbers. */
static qn_code check_room(const qn_chat *c, const char *text, size_t n, uint32_t flags, qn_err *err)
{
    size_t tokens = 0;
    QN_TRY(quern_tokenize(&tokens, c->run.model, text, n, flags, NULL, 0, err));
    if (tokens < c->context) return QN_OK;
    return qn_fail(err, QN_E_LIMIT,
                   "the conversation has %zu tokens and leaves no room in a context of %u; nothing "
                   "was cut.%s",
                   tokens, c->context,
                   c->talks ? " /save FILE keeps it, /undo takes back a turn, /reset starts anew"
                            : "");
}

static void tell_end(const qn_chat *c, const quern_event *e)
{
    const uint32_t filled = e->prompt_tokens + e->completion_tokens;
    if (e->finish == QUERN_FINISH_LENGTH && filled >= c->context)
        fprintf(c->io->err,
                "[the context of %u tokens is full: %u of the conversation, %u of this answer]\n",
                c->context, e->prompt_tokens, e->completion_tokens);
    else if (e->finish == QUERN_FINISH_LENGTH)
        fprintf(c->io->err, "[ended after %u tokens, as max-tokens says]\n", e->completion_tokens);
    if (c->opts.stats)
        fprintf(c->io->err, "[prompt %u tokens (%u cached), answer %u tokens, seed %llu]\n",
                e->prompt_tokens, e->cached_tokens, e->completion_tokens,
                (unsigned long long)e->seed);
}

/* Events until the last one; the text goes to stdout and to *answer. */
static qn_code stream(quern_request *r, qn_chat *c, qn_buf *answer, bool *interrupted, qn_err *err)
{
    for (;;) {
        const quern_event *e = NULL;
        const qn_code rc = quern_request_next(&e, r, LOOK_MS, err);
        if (!*interrupted && qn_interrupt_take()) {
            quern_request_cancel(r);
            *interrupted = true;
        }
        if (rc == QN_E_AGAIN) continue;
        if (rc != QN_OK) return rc;
        if (e->kind == QUERN_EVENT_ERROR) return qn_fail(err, e->code, "%s", e->msg);
        if (e->text_n) {
            qn_io_text(c->io, e->text, e->text_n);
            QN_TRY(qn_buf_append(answer, e->text, e->text_n, err));
        }
        if (e->kind == QUERN_EVENT_DONE) {
            qn_io_print(c->io, "\n");
            QN_TRY(qn_io_flush(c->io, err));
            if (*interrupted && c->talks) fprintf(c->io->err, "[stopped]\n");
            tell_end(c, e);
            return QN_OK;
        }
        if (e->text_n) QN_TRY(qn_io_flush(c->io, err));
    }
}

qn_code qn_chat_answer(qn_chat *c, bool *interrupted, qn_err *err)
{
    qn_code rc = QN_OK;
    char *text = NULL;
    size_t n = 0;
    quern_request *r = NULL;
    qn_buf answer;
    quern_request_options ro = QUERN_REQUEST_OPTIONS_INIT;
    *interrupted = false;
    qn_buf_init(&answer, QN_CHAT_BYTES);
    (void)qn_interrupt_take(); /* one that came before belongs to no answer */
    QN_TRY_OUT(render(&text, &n, c, err));
    QN_TRY_OUT(quern_request_recipe(&ro, c->run.model, err));
    qn_sampling_apply(&ro, &c->opts.sampling);
    ro.seed += c->redone; /* asked for again, a fixed seed must not give the same answer again */
    ro.text = text;
    ro.text_n = n;
    ro.text_flags = quern_template_tokenize_flags(c->template, text, n);
    ro.stop_texts = c->opts.stop.v;
    ro.n_stop_texts = c->opts.stop.n;
    QN_TRY_OUT(check_room(c, text, n, ro.text_flags, err));
    QN_TRY_OUT(quern_request_open(&r, c->run.engine, &ro, err));
    QN_TRY_OUT(stream(r, c, &answer, interrupted, err));
    QN_TRY_OUT(qn_chat_log_add(&c->log, QN_CHAT_ASSISTANT,
                               qn_str_make(qn_buf_text(&answer), answer.len), err));
out:
    quern_request_free(r);
    quern_text_free(text);
    qn_buf_fini(&answer);
    return rc;
}

qn_code qn_chat_ask(qn_chat *c, qn_str text, bool *interrupted, qn_err *err)
{
    const size_t before = c->log.n_turns;
    *interrupted = false;
    QN_TRY(qn_chat_log_add(&c->log, QN_CHAT_USER, text, err));
    c->redone = 0;
    const qn_code rc = qn_chat_answer(c, interrupted, err);
    if (rc != QN_OK) qn_chat_log_cut(&c->log, before);
    return rc;
}
