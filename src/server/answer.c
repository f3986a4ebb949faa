/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - from the engine's events to bytes for the client.
 *
 * On the engine's thread an event is copied behind the others and the loop is woken; nothing else happens
 * there. The loop swaps the filled buffer for the emptied one, so no event costs an allocation once the
 * buffers have grown. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/server_int.h"

enum { MAX_FRAMES = 64 << 20, MS = 1000000 };

typedef struct record { /* then `tops` of quern_top, then text or message, padded to 8 */
    quern_event e;      /* its pointers are not meant */
    uint32_t part;
    uint32_t bytes; /* of the record */
} record;

/* -- the engine's thread ------------------------------------------------------------------------ */

static bool keep(qn_task *j, uint32_t part, const quern_event *e)
{
    const size_t tops = e->n_top * sizeof *e->top;
    const size_t n = e->kind == QUERN_EVENT_ERROR ? strlen(e->msg) : e->text_n;
    const size_t bytes = (sizeof(record) + tops + n + 7) & ~(size_t)7;
    size_t at = 0;
    if (bytes > UINT32_MAX || qn_buf_append_zero(&j->events, bytes, &at, NULL) != QN_OK)
        return false;
    record r = {*e, part, (uint32_t)bytes};
    r.e.text_n = n;
    memcpy(j->events.data + at, &r, sizeof r);
    if (tops) memcpy(j->events.data + at + sizeof r, e->top, tops);
    const char *text = e->kind == QUERN_EVENT_ERROR ? e->msg : e->text;
    if (n) memcpy(j->events.data + at + sizeof r + tops, text, n);
    return true;
}

void qn_task_event(void *ctx, const quern_event *e)
{
    qn_part *part = ctx;
    qn_task *j = part->job;
    qn_http *http = j->server->http;
    pthread_mutex_lock(&j->lock);
    if (!atomic_load(&j->gone) && !j->lost && !keep(j, (uint32_t)(part - j->parts), e)) {
        j->lost = true;
        atomic_store(&j->gone, true); /* the loop tells the client, and cancels */
    }
    if (e->kind == QUERN_EVENT_ERROR) part->open_choices = 0;
    if (e->kind == QUERN_EVENT_DONE && part->open_choices) part->open_choices--;
    if (e->kind != QUERN_EVENT_TOKEN && part->open_choices == 0) j->open_parts--;
    atomic_store(&j->dirty, true);
    pthread_mutex_unlock(&j->lock); /* the job may be freed from here on */
    qn_http_wake(http);
}

/* -- the end ------------------------------------------------------------------------------------ */

void qn_task_leave(qn_task *j)
{
    if (j->call) qn_http_set_user(j->call, NULL);
    j->call = NULL;
    atomic_store(&j->gone, true);
    if (!j->prepared) return; /* the worker cancels what it opens */
    for (uint32_t i = 0; i < j->n_parts; i++)
        if (j->parts[i].request) quern_request_cancel(j->parts[i].request);
}

bool qn_task_finished(qn_task *j)
{
    if (j->call || !j->prepared) return false;
    pthread_mutex_lock(&j->lock);
    const bool finished = j->open_parts == 0;
    pthread_mutex_unlock(&j->lock);
    return finished;
}

void qn_task_fail(qn_task *j, const qn_api_error *error)
{
    qn_buf b;
    if (!j->call) return;
    j->server->requests[1]++;
    if (j->streaming) {
        qn_buf_init(&b, MAX_FRAMES);
        if (qn_openai_stream_error(&b, error, NULL) == QN_OK)
            qn_http_send(j->call, qn_str_make(qn_buf_text(&b), b.len));
        qn_buf_fini(&b);
        qn_http_end(j->call);
    } else {
        qn_reply_error(j->call, error);
    }
    qn_task_leave(j);
}

static void fail_lib(qn_task *j, const qn_err *err)
{
    qn_api_error e = {0};
    (void)qn_api_fail_lib(&e, err);
    qn_task_fail(j, &e);
}

static void say(qn_task *j, const qn_buf *b)
{
    if (!b->len || !j->call) return;
    j->spoke_ns = qn_clock_ns();
    qn_http_send(j->call, qn_str_make(qn_buf_text(b), b->len));
}

static qn_openai_usage usage_of(const qn_task *j)
{
    qn_openai_usage u = {0, 0, j->completion};
    for (uint32_t i = 0; i < j->n_parts; i++) {
        u.prompt += j->parts[i].prompt;
        u.cached += j->parts[i].cached;
    }
    return u;
}

qn_openai_reply qn_task_reply(const qn_task *j)
{
    return (qn_openai_reply){j->endpoint,
                             qn_str_z(j->id),
                             j->created,
                             qn_str_z(j->server->m.id),
                             qn_str_z(j->server->fingerprint),
                             j->warnings};
}

static qn_code write_whole(qn_buf *b, qn_task *j, qn_err *err)
{
    const qn_openai_usage usage = usage_of(j);
    const qn_openai_reply reply = qn_task_reply(j);
    qn_openai_choice *all = QN_ARENA_NEW(&j->answers, qn_openai_choice, j->n_choices);
    qn_openai_logprobs *probs = QN_ARENA_NEW(&j->answers, qn_openai_logprobs, j->n_choices);
    if (!all || !probs) return qn_fail(err, QN_E_NOMEM, "no memory for the answer");
    for (uint32_t i = 0; i < j->n_choices; i++) {
        qn_choice *c = &j->choices[i];
        probs[i].tokens = (const qn_openai_token *)(const void *)c->tokens.data;
        probs[i].n = c->tokens.len / sizeof(qn_openai_token);
        all[i] = (qn_openai_choice){i, qn_str_make(qn_buf_text(&c->text), c->text.len), c->finish,
                                    c->seed, j->params->logprobs >= 0 ? &probs[i] : NULL};
    }
    return qn_openai_write_completion(b, &reply, all, j->n_choices, &usage, err);
}

static void end_well(qn_task *j)
{
    qn_buf b;
    qn_err err = {0};
    const qn_openai_usage usage = usage_of(j);
    qn_buf_init(&b, (size_t)1 << 30);
    if (j->streaming) {
        qn_code rc = qn_openai_stream_usage(&j->stream, &b, &usage, &err);
        if (rc == QN_OK) rc = qn_openai_stream_done(&b, &err);
        if (rc == QN_OK) say(j, &b);
        qn_http_end(j->call);
    } else if (write_whole(&b, j, &err) == QN_OK) {
        qn_reply_json(j->call, 200, &b);
    } else {
        qn_buf_fini(&b);
        fail_lib(j, &err);
        return;
    }
    j->server->requests[0]++;
    qn_buf_fini(&b);
    qn_task_leave(j);
}

/* -- events -------------------------------------------------------------------------------------- */

qn_code qn_task_piece(qn_str *out, qn_arena *arena, const quern_model *m, uint32_t id, qn_err *err)
{
    size_t n = 0;
    QN_TRY(quern_token_bytes(&n, m, id, NULL, 0, err));
    char *p = qn_arena_push(arena, n + 1, 1);
    if (!p) return qn_fail(err, QN_E_NOMEM, "no memory for a token's text");
    *out = qn_str_make(p, n);
    return quern_token_bytes(&n, m, id, p, n, err);
}

static qn_code token_of(qn_openai_token *out, qn_task *j, const quern_event *e, qn_err *err)
{
    const quern_model *m = j->server->m.model;
    qn_openai_top *top = QN_ARENA_NEW(&j->answers, qn_openai_top, e->n_top + 1u);
    if (!top) return qn_fail(err, QN_E_NOMEM, "no memory for logprobs");
    memset(out, 0, sizeof *out);
    QN_TRY(qn_task_piece(&out->text, &j->answers, m, e->token, err));
    for (uint32_t i = 0; i < e->n_top; i++) {
        QN_TRY(qn_task_piece(&top[i].text, &j->answers, m, e->top[i].token, err));
        top[i].logprob = e->top[i].logprob;
    }
    out->logprob = e->logprob;
    out->unknown = e->is_prompt && e->index == 0;
    out->top = top;
    out->n_top = e->n_top;
    return QN_OK;
}

static qn_code add_text(qn_task *j, qn_buf *b, uint32_t at, qn_str text,
                        const qn_openai_token *token, qn_err *err)
{
    qn_choice *c = &j->choices[at];
    const qn_openai_logprobs probs = {token, 1, c->chars};
    if (j->params->logprobs >= 0) c->chars += qn_openai_chars(text);
    if (j->streaming)
        return text.n || token
                   ? qn_openai_stream_text(&j->stream, b, at, text, token ? &probs : NULL, err)
                   : QN_OK;
    if (token) QN_TRY(qn_buf_append(&c->tokens, token, sizeof *token, err));
    return qn_buf_append(&c->text, text.p, text.n, err);
}

static qn_code take_done(qn_task *j, qn_buf *b, qn_part *part, uint32_t at, const quern_event *e,
                         qn_err *err)
{
    qn_choice *c = &j->choices[at];
    if (e->finish == QUERN_FINISH_CANCELLED)
        return qn_fail(err, QN_E_CANCELLED, "the request was cancelled");
    c->finish = e->finish;
    c->seed = e->seed;
    part->prompt = e->prompt_tokens;
    part->cached = e->cached_tokens;
    j->completion += e->completion_tokens;
    j->n_ended++;
    return j->streaming ? qn_openai_stream_finish(&j->stream, b, at, e->finish, e->seed, err)
                        : QN_OK;
}

static qn_code take(qn_task *j, qn_buf *b, uint32_t from, const quern_event *e, qn_err *err)
{
    qn_part *part = &j->parts[from];
    const uint32_t at = part->first_choice + e->choice;
    const bool probs = j->params->logprobs >= 0 && e->kind == QUERN_EVENT_TOKEN && !e->is_stop;
    const qn_arena_mark mark = qn_arena_save(&j->answers);
    qn_openai_token token;
    /* A request that ran has no say in the bytes of the model: its fault is the server's. */
    if (e->kind == QUERN_EVENT_ERROR)
        return qn_fail(err, e->code == QN_E_FORMAT ? QN_E_INTERNAL : e->code, "%s", e->msg);
    if (probs) QN_TRY(token_of(&token, j, e, err));
    QN_TRY(add_text(j, b, at, qn_str_make(e->text, e->text_n), probs ? &token : NULL, err));
    if (j->streaming) qn_arena_rewind(&j->answers, mark);
    return e->kind == QUERN_EVENT_DONE ? take_done(j, b, part, at, e, err) : QN_OK;
}

static qn_code take_all(qn_task *j, qn_buf *b, qn_err *err)
{
    for (size_t at = 0; at + sizeof(record) <= j->taken.len;) {
        record r;
        const uint8_t *p = j->taken.data + at;
        memcpy(&r, p, sizeof r);
        r.e.top = (const quern_top *)(const void *)(p + sizeof r);
        r.e.text = (const char *)(p + sizeof r + r.e.n_top * sizeof *r.e.top);
        char message[240];
        if (r.e.kind == QUERN_EVENT_ERROR) {
            snprintf(message, sizeof message, "%.*s", (int)r.e.text_n, r.e.text);
            r.e.msg = message;
        }
        QN_TRY(take(j, b, r.part, &r.e, err));
        at += r.bytes;
    }
    return QN_OK;
}

void qn_task_pump(qn_task *j)
{
    qn_err err = {0};
    if (!j->call || !j->prepared || !atomic_load(&j->dirty)) return;
    atomic_store(&j->dirty, false);
    pthread_mutex_lock(&j->lock);
    const qn_buf full = j->events;
    const bool lost = j->lost;
    j->events = j->taken;
    pthread_mutex_unlock(&j->lock);
    j->taken = full;
    qn_code rc = take_all(j, &j->frames, &err);
    if (rc == QN_OK && lost) rc = qn_fail(&err, QN_E_NOMEM, "no memory for the answer's events");
    qn_buf_truncate(&j->taken, 0);
    if (j->streaming) say(j, &j->frames);
    qn_buf_truncate(&j->frames, 0);
    if (rc != QN_OK)
        fail_lib(j, &err);
    else if (j->n_ended == j->n_choices)
        end_well(j);
}

/* What comes before the first event: the role of a chat, the prompt that is echoed. */
static qn_code begin(qn_task *j, qn_buf *b, qn_err *err)
{
    for (uint32_t i = 0; i < j->n_choices; i++) {
        if (j->streaming && j->endpoint == QN_API_CHAT)
            QN_TRY(qn_openai_stream_role(&j->stream, b, i, err));
        if (!j->echoes) continue;
        const qn_str text = j->echoes[i / j->params->n];
        if (j->streaming)
            QN_TRY(qn_openai_stream_text(&j->stream, b, i, text, NULL, err));
        else
            QN_TRY(qn_buf_append(&j->choices[i].text, text.p, text.n, err));
    }
    return QN_OK;
}

void qn_task_prepared(qn_task *j)
{
    qn_buf b;
    qn_err err = {0};
    j->prepared = true;
    if (!j->call) {
        qn_task_leave(j);
        return;
    }
    if (j->error.status) {
        qn_task_fail(j, &j->error);
        return;
    }
    if (!j->params) {
        qn_reply_json(j->call, 200, &j->reply);
        j->server->requests[0]++;
        qn_task_leave(j);
        return;
    }
    j->streaming = j->params->stream;
    if (j->streaming)
        qn_http_begin(j->call, 200, "text/event-stream; charset=utf-8",
                      "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
    qn_buf_init(&b, MAX_FRAMES);
    if (begin(j, &b, &err) != QN_OK)
        fail_lib(j, &err);
    else
        say(j, &b);
    qn_buf_fini(&b);
    qn_task_pump(j);
}

void qn_task_keep_alive(qn_task *j, uint64_t now_ns)
{
    qn_buf b;
    if (!j->call || !j->streaming ||
        now_ns - j->spoke_ns < (uint64_t)j->server->o.keep_alive_ms * MS)
        return;
    qn_buf_init(&b, 256);
    if (qn_openai_stream_keep_alive(&b, NULL) == QN_OK) say(j, &b);
    qn_buf_fini(&b);
}
