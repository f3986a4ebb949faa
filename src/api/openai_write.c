/* SPDX-License-Identifier: Apache-2.0 */
/* openai_write.c - whole answers and frames of a stream in OpenAI's shapes.
 *
 * All that is the same in every frame of a stream is written once, when it is opened; a frame is that
 * front, a few constant pieces and the escaped text.
 *
 * Thread: one stream and one buffer, one thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api_int.h"
#include "base/utf8.h"

void qn_openai_make_id(char out[QN_OPENAI_ID_BYTES], qn_api_endpoint endpoint,
                       const uint64_t random[2])
{
    snprintf(out, QN_OPENAI_ID_BYTES, "%s%016llx%016llx",
             endpoint == QN_API_CHAT ? "chatcmpl-" : "cmpl-", (unsigned long long)random[0],
             (unsigned long long)random[1]);
}

size_t qn_openai_chars(qn_str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; n++) {
        uint32_t cp = 0;
        i += qn_utf8_step(text.p + i, text.n - i, &cp);
    }
    return n;
}

/* -- pieces that all answers share ------------------------------------------------------------- */

static void put_head(qn_out *o, const qn_openai_reply *reply, bool is_stream)
{
    QN_OUT(o, "{\"id\":");
    qn_out_str(o, reply->id);
    if (reply->endpoint == QN_API_TEXT)
        QN_OUT(o, ",\"object\":\"text_completion\",\"created\":");
    else if (is_stream)
        QN_OUT(o, ",\"object\":\"chat.completion.chunk\",\"created\":");
    else
        QN_OUT(o, ",\"object\":\"chat.completion\",\"created\":");
    qn_out_i64(o, reply->created);
    QN_OUT(o, ",\"model\":");
    qn_out_str(o, reply->model);
    QN_OUT(o, ",\"system_fingerprint\":");
    if (reply->fingerprint.n)
        qn_out_str(o, reply->fingerprint);
    else
        QN_OUT(o, "null");
    QN_OUT(o, ",");
}

static void put_usage(qn_out *o, const qn_openai_usage *u)
{
    QN_OUT(o, "{\"prompt_tokens\":");
    qn_out_u64(o, u->prompt);
    QN_OUT(o, ",\"completion_tokens\":");
    qn_out_u64(o, u->completion);
    QN_OUT(o, ",\"total_tokens\":");
    qn_out_u64(o, u->prompt + u->completion);
    QN_OUT(o, ",\"prompt_tokens_details\":{\"cached_tokens\":");
    qn_out_u64(o, u->cached);
    QN_OUT(o, "}}");
}

static void put_finish(qn_out *o, quern_finish finish)
{
    if (finish == QUERN_FINISH_STOP)
        QN_OUT(o, ",\"finish_reason\":\"stop\"");
    else if (finish == QUERN_FINISH_LENGTH)
        QN_OUT(o, ",\"finish_reason\":\"length\"");
    else
        QN_OUT(o, ",\"finish_reason\":null");
}

/* -- log-probabilities ------------------------------------------------------------------------- */

static void put_logprob(qn_out *o, float logprob)
{
    if (isfinite(logprob))
        qn_out_f32(o, logprob);
    else
        QN_OUT(o, "-9999.0"); /* JSON has no infinity */
}

/* "token":...,"logprob":...,"bytes":[...] */
static void put_entry(qn_out *o, qn_str text, float logprob)
{
    QN_OUT(o, "{\"token\":");
    qn_out_str(o, text);
    QN_OUT(o, ",\"logprob\":");
    put_logprob(o, logprob);
    QN_OUT(o, ",\"bytes\":[");
    for (size_t i = 0; i < text.n; i++) {
        if (i) QN_OUT(o, ",");
        qn_out_u64(o, (unsigned char)text.p[i]);
    }
    QN_OUT(o, "]");
}

static void put_chat_logprobs(qn_out *o, const qn_openai_logprobs *l)
{
    QN_OUT(o, "{\"content\":[");
    for (size_t i = 0; i < l->n; i++) {
        const qn_openai_token *t = &l->tokens[i];
        if (i) QN_OUT(o, ",");
        put_entry(o, t->text, t->logprob);
        QN_OUT(o, ",\"top_logprobs\":[");
        for (size_t k = 0; k < t->n_top; k++) {
            if (k) QN_OUT(o, ",");
            put_entry(o, t->top[k].text, t->top[k].logprob);
            QN_OUT(o, "}");
        }
        QN_OUT(o, "]}");
    }
    QN_OUT(o, "],\"refusal\":null}");
}

/* Object keys must differ, yet two ids may show the same text: the likelier one is kept. */
static bool shown_before(const qn_openai_token *t, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (qn_str_eq(t->top[i].text, t->top[k].text)) return true;
    return false;
}

static void put_top_object(qn_out *o, const qn_openai_token *t)
{
    bool first = true;
    if (t->unknown) {
        QN_OUT(o, "null");
        return;
    }
    QN_OUT(o, "{");
    for (size_t k = 0; k < t->n_top; k++) {
        if (shown_before(t, k) || !qn_utf8_valid(t->top[k].text.p, t->top[k].text.n, NULL))
            continue; /* a part of a character has no name of its own */
        if (!first) QN_OUT(o, ",");
        first = false;
        qn_out_str(o, t->top[k].text);
        QN_OUT(o, ":");
        put_logprob(o, t->top[k].logprob);
    }
    QN_OUT(o, "}");
}

static void put_text_logprobs(qn_out *o, const qn_openai_logprobs *l)
{
    size_t offset = l->text_offset;
    bool any_top = false;
    QN_OUT(o, "{\"tokens\":[");
    for (size_t i = 0; i < l->n; i++) {
        if (i) QN_OUT(o, ",");
        qn_out_str(o, l->tokens[i].text);
        any_top = any_top || l->tokens[i].n_top;
    }
    QN_OUT(o, "],\"token_logprobs\":[");
    for (size_t i = 0; i < l->n; i++) {
        if (i) QN_OUT(o, ",");
        if (l->tokens[i].unknown)
            QN_OUT(o, "null");
        else
            put_logprob(o, l->tokens[i].logprob);
    }
    QN_OUT(o, "],\"top_logprobs\":");
    if (any_top) QN_OUT(o, "[");
    for (size_t i = 0; any_top && i < l->n; i++) {
        if (i) QN_OUT(o, ",");
        put_top_object(o, &l->tokens[i]);
    }
    if (any_top)
        QN_OUT(o, "]");
    else
        QN_OUT(o, "null");
    QN_OUT(o, ",\"text_offset\":[");
    for (size_t i = 0; i < l->n; i++) {
        if (i) QN_OUT(o, ",");
        qn_out_u64(o, offset);
        offset += qn_openai_chars(l->tokens[i].text);
    }
    QN_OUT(o, "]}");
}

static void put_logprobs(qn_out *o, qn_api_endpoint endpoint, const qn_openai_logprobs *l)
{
    QN_OUT(o, ",\"logprobs\":");
    if (!l)
        QN_OUT(o, "null");
    else if (endpoint == QN_API_TEXT)
        put_text_logprobs(o, l);
    else
        put_chat_logprobs(o, l);
}

/* -- whole answers ----------------------------------------------------------------------------- */

static void put_choice(qn_out *o, qn_api_endpoint endpoint, const qn_openai_choice *c)
{
    QN_OUT(o, "{\"index\":");
    qn_out_u64(o, c->index);
    if (endpoint == QN_API_TEXT) {
        QN_OUT(o, ",\"text\":");
        qn_out_str(o, c->text);
    } else {
        QN_OUT(o, ",\"message\":{\"role\":\"assistant\",\"content\":");
        qn_out_str(o, c->text);
        QN_OUT(o, ",\"refusal\":null}");
    }
    put_logprobs(o, endpoint, c->logprobs);
    put_finish(o, c->finish);
    QN_OUT(o, ",\"seed\":");
    qn_out_u64(o, c->seed);
    QN_OUT(o, "}");
}

qn_code qn_openai_write_completion(qn_buf *out, const qn_openai_reply *reply,
                                   const qn_openai_choice *choices, size_t n,
                                   const qn_openai_usage *usage, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    put_head(&o, reply, false);
    QN_OUT(&o, "\"choices\":[");
    for (size_t i = 0; i < n; i++) {
        if (i) QN_OUT(&o, ",");
        put_choice(&o, reply->endpoint, &choices[i]);
    }
    QN_OUT(&o, "],");
    qn_out_warnings(&o, reply->warnings);
    QN_OUT(&o, "\"usage\":");
    put_usage(&o, usage);
    QN_OUT(&o, "}");
    return qn_out_end(&o);
}

/* -- streams ----------------------------------------------------------------------------------- */

static qn_code keep(qn_str *out, const qn_buf *text, qn_arena *arena, qn_err *err)
{
    const char *copy = qn_arena_push_bytes(arena, text->data, text->len);
    if (!copy) return qn_fail(err, QN_E_NOMEM, "front of a stream's frames");
    *out = qn_str_make(copy, text->len);
    return QN_OK;
}

qn_code qn_openai_stream_init(qn_openai_stream *s, const qn_openai_reply *reply, bool include_usage,
                              qn_arena *arena, qn_err *err)
{
    qn_buf text;
    qn_code rc = QN_OK;
    *s = (qn_openai_stream){.endpoint = reply->endpoint, .include_usage = include_usage};
    qn_buf_init(&text, 1u << 20);
    qn_out o = qn_out_begin(&text, err);
    QN_OUT(&o, "data: ");
    put_head(&o, reply, true);
    QN_TRY_OUT(qn_out_end(&o));
    QN_TRY_OUT(keep(&s->head, &text, arena, err));
    qn_buf_truncate(&text, 0);
    qn_out_warnings(&o, reply->warnings);
    QN_TRY_OUT(qn_out_end(&o));
    QN_TRY_OUT(keep(&s->warnings, &text, arena, err));
out:
    qn_buf_fini(&text);
    return rc;
}

static void open_frame(const qn_openai_stream *s, qn_out *o, uint32_t choice)
{
    qn_out_raw(o, s->head);
    if (!s->started) qn_out_raw(o, s->warnings);
    QN_OUT(o, "\"choices\":[{\"index\":");
    qn_out_u64(o, choice);
}

/* Behind the last member of the choice. */
static qn_code close_frame(qn_openai_stream *s, qn_out *o)
{
    if (s->include_usage)
        QN_OUT(o, "}],\"usage\":null}\n\n");
    else
        QN_OUT(o, "}]}\n\n");
    QN_TRY(qn_out_end(o));
    s->started = true;
    return QN_OK;
}

qn_code qn_openai_stream_role(qn_openai_stream *s, qn_buf *out, uint32_t choice, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    open_frame(s, &o, choice);
    QN_OUT(&o, ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
               "\"finish_reason\":null");
    return close_frame(s, &o);
}

qn_code qn_openai_stream_text(qn_openai_stream *s, qn_buf *out, uint32_t choice, qn_str text,
                              const qn_openai_logprobs *logprobs, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    open_frame(s, &o, choice);
    if (s->endpoint == QN_API_TEXT)
        QN_OUT(&o, ",\"text\":\"");
    else
        QN_OUT(&o, ",\"delta\":{\"content\":\"");
    qn_out_escaped(&o, text);
    if (s->endpoint == QN_API_TEXT)
        QN_OUT(&o, "\"");
    else
        QN_OUT(&o, "\"}");
    put_logprobs(&o, s->endpoint, logprobs);
    QN_OUT(&o, ",\"finish_reason\":null");
    return close_frame(s, &o);
}

qn_code qn_openai_stream_finish(qn_openai_stream *s, qn_buf *out, uint32_t choice,
                                quern_finish finish, uint64_t seed, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    open_frame(s, &o, choice);
    if (s->endpoint == QN_API_TEXT)
        QN_OUT(&o, ",\"text\":\"\",\"logprobs\":null");
    else
        QN_OUT(&o, ",\"delta\":{},\"logprobs\":null");
    put_finish(&o, finish);
    QN_OUT(&o, ",\"seed\":");
    qn_out_u64(&o, seed);
    return close_frame(s, &o);
}

qn_code qn_openai_stream_usage(qn_openai_stream *s, qn_buf *out, const qn_openai_usage *usage,
                               qn_err *err)
{
    if (!s->include_usage) return QN_OK;
    qn_out o = qn_out_begin(out, err);
    qn_out_raw(&o, s->head);
    QN_OUT(&o, "\"choices\":[],\"usage\":");
    put_usage(&o, usage);
    QN_OUT(&o, "}\n\n");
    return qn_out_end(&o);
}

qn_code qn_openai_stream_done(qn_buf *out, qn_err *err)
{
    return qn_buf_append_z(out, "data: [DONE]\n\n", err);
}

qn_code qn_openai_stream_error(qn_buf *out, const qn_api_error *error, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    QN_OUT(&o, "data: ");
    qn_out_error(&o, error);
    QN_OUT(&o, "\n\n");
    return qn_out_end(&o);
}

qn_code qn_openai_stream_keep_alive(qn_buf *out, qn_err *err)
{
    return qn_buf_append_z(out, ": keep-alive\n\n", err);
}
