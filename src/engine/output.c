/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - from drawn tokens to events: stop ids, stop strings, logprobs, ends.
 *
 * Without stop strings a token is sent at once. With them a token waits while its text may hold the
 * start of one, so nothing of a stop string ever leaves:
 *
 *     text    "Hello wor" "ld. E" "ND an"           stop "END"
 *     events   sent        held    found: sent with cut 1, then IS_STOP
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/engine_int.h"

static qn_usage usage_of(const qn_stream *s)
{
    const qn_job *j = s->job;
    return (qn_usage){.prompt = j->req->n_prompt, .cached = j->cached, .completion = s->n_new};
}

static qn_event_head head_of(const qn_stream *s, uint32_t index)
{
    return (qn_event_head){.request = s->job->req->id, .choice = s->choice, .index = index};
}

static void send(const qn_job *j, const void *block) { j->fn(j->ctx, block); }

/* --- ends ------------------------------------------------------------------------------------- */

/* Off every list; nothing of it is sent any more. */
static void retire(qn_engine *e, qn_stream *s)
{
    if (s->done) return;
    s->done = true;
    s->job->n_open--;
    if (s->job->leader == s) s->job->leader = NULL;
    qn_leave_running(e, s);
    qn_leave_waiting(e, s);
    for (uint32_t i = 0; i < e->n_draws; i++)
        if (e->draws[i].s == s) e->draws[i].s = NULL;
    for (uint32_t i = 0; i < e->n_sched; i++)
        if (e->sched[i] == s) e->sched[i] = NULL;
    qn_stream_fini(s);
}

static void drop_job(qn_engine *e, qn_job *j)
{
    if (j->n_open > 0) return;
    qn_unqueue(e, j);
    qn_job_free(j);
}

static bool send_error(qn_engine *e, const qn_stream *s, const qn_err *why)
{
    const qn_event_error ev = {
        .head = head_of(s, s->n_new), .code = why->code, .usage = usage_of(s)};
    qn_buf_truncate(&e->out, 0);
    if (qn_event_build_error(&e->out, &ev, qn_str_z(why->msg), NULL) != QN_OK) return false;
    send(s->job, e->out.data);
    return true;
}

/* One failure ends the request with all its choices. The buffer has room for any error event. */
void qn_fail_stream(qn_engine *e, qn_stream *s, const qn_err *why)
{
    qn_job *j = s->job;
    const bool sent = send_error(e, s, why);
    QN_ASSERT(sent);
    for (uint32_t i = 0; i < j->n_streams; i++) retire(e, &j->stream[i]);
    drop_job(e, j);
}

static bool send_held(qn_stream *s, uint64_t shown);

void qn_end_stream(qn_engine *e, qn_stream *s, qn_finish why, uint32_t stop_text)
{
    qn_job *j = s->job;
    send_held(s, UINT64_MAX);
    const qn_event_done ev = {.head = head_of(s, s->n_new),
                              .finish = why,
                              .stop_text = stop_text,
                              .seed = j->seed,
                              .numerics = e->numerics[0],
                              .usage = usage_of(s)};
    qn_buf_truncate(&e->out, 0);
    const qn_code rc = qn_event_build_done(&e->out, &ev, NULL);
    QN_ASSERT(rc == QN_OK);
    send(j, e->out.data);
    retire(e, s);
    drop_job(e, j);
}

/* --- stop strings ----------------------------------------------------------------------------- */

static uint64_t held_end(const qn_stream *s, size_t next)
{
    return next < s->held.len
               ? ((const qn_event_token *)(const void *)(s->held.data + next))->text_offset
               : s->text_bytes;
}

/* Sends held events whose text ends at or before `shown`; true when none is left. */
static bool send_held(qn_stream *s, uint64_t shown)
{
    size_t at = 0;
    while (at < s->held.len) {
        const qn_event_token *ev = (const void *)(s->held.data + at);
        const size_t next = at + ev->head.head.bytes;
        if (held_end(s, next) > shown) break;
        send(s->job, ev);
        at = next;
    }
    const size_t left = s->held.len - at;
    if (at > 0 && left > 0) memmove(s->held.data, s->held.data + at, left);
    qn_buf_truncate(&s->held, left);
    return left == 0;
}

/* The text ends at `begin`, where a stop string starts. */
static void mark_stop(qn_stream *s, uint64_t begin)
{
    for (size_t at = 0; at < s->held.len;) {
        qn_event_token *ev = (void *)(s->held.data + at);
        at += ev->head.head.bytes;
        const uint64_t end = held_end(s, at);
        if (end <= begin) continue;
        if (ev->text_offset >= begin)
            ev->flags |= QN_EVENT_IS_STOP;
        else
            ev->cut_bytes = (uint32_t)(end - begin);
    }
}

void qn_replay_text(qn_stream *s)
{
    for (uint32_t i = s->n_ids - s->n_new; i < s->n_ids; i++) {
        const qn_str p = qn_detok_push(s->detok, s->ids[i]);
        (void)qn_stops_push(s->job->stops, s->matched, p.p, p.n, false);
        s->text_bytes += p.n;
    }
}

/* --- tokens ----------------------------------------------------------------------------------- */

static uint32_t top_of(qn_engine *e, qn_event_top *out, uint32_t k, const float *logits,
                       const qn_drawn *drawn)
{
    const uint32_t n = qn_sample_top(e->tops, k, logits, e->vocab, drawn);
    for (uint32_t i = 0; i < n; i++) out[i] = (qn_event_top){e->tops[i].token, e->tops[i].logprob};
    return n;
}

static qn_code build(qn_engine *e, qn_buf *to, const qn_stream *s, qn_event_token *ev,
                     const qn_drawn *drawn, const float *logits, qn_err *err)
{
    qn_event_top top[QN_REQUEST_MAX_LOGPROBS];
    const int32_t k = s->job->req->logprobs;
    uint32_t n_top = 0;
    if (k >= 0) {
        ev->flags |= QN_EVENT_HAS_LOGPROB;
        ev->logprob = drawn->logprob;
        if (k > 0 && logits) n_top = top_of(e, top, (uint32_t)k, logits, drawn);
    }
    return qn_event_build_token(to, ev, top, n_top, NULL, 0, err);
}

/* Sends the token, or holds it; true when a stop string ended, then *stop is which. */
static qn_code put_token(qn_engine *e, qn_stream *s, qn_event_token *ev, const qn_drawn *drawn,
                         const float *logits, uint32_t *stop, qn_err *err)
{
    *stop = QN_NO_STOP;
    if (!s->detok) {
        qn_buf_truncate(&e->out, 0);
        QN_TRY(build(e, &e->out, s, ev, drawn, logits, err));
        send(s->job, e->out.data);
        return QN_OK;
    }
    ev->text_offset = s->text_bytes;
    QN_TRY(build(e, &s->held, s, ev, drawn, logits, err));
    const bool armed = s->n_new >= s->job->req->min_tokens;
    const qn_str p = qn_detok_push(s->detok, drawn->token);
    const qn_stop_hit hit = qn_stops_push(s->job->stops, s->matched, p.p, p.n, armed);
    const uint64_t before = s->text_bytes;
    s->text_bytes += p.n;
    *stop = hit.stop;
    if (hit.stop != QN_NO_STOP)
        mark_stop(s, before + hit.after - hit.len);
    else
        send_held(s, s->text_bytes - qn_stops_held(s->job->stops, s->matched));
    return QN_OK;
}

/* Weights that are not finite are the usual reason: looked for once, for half a second or so. */
static qn_code no_finite_logit(qn_engine *e, const qn_stream *s, qn_err *err)
{
    enum { MAX_VALUES = 1 << 29 };
    if (!e->looked_for_nan)
        qn_model_find_nan(e->nan_weight, sizeof e->nan_weight, e->model, MAX_VALUES);
    e->looked_for_nan = true;
    const qn_code code = e->nan_weight[0] ? QN_E_FORMAT : QN_E_INTERNAL;
    return qn_fail(err, code, "no finite logit for token %u of choice %u%s%s%s", s->n_new,
                   s->choice, e->nan_weight[0] ? ": the model's " : "", e->nan_weight,
                   e->nan_weight[0] ? " holds values that are not finite" : "");
}

/* The model ended by itself: the token counts and is told, but its text is not shown. */
static qn_code put_end(qn_engine *e, qn_stream *s, qn_event_token *ev, const qn_drawn *drawn,
                       const float *logits, qn_err *err)
{
    if (s->detok) send_held(s, UINT64_MAX);
    ev->flags |= QN_EVENT_IS_STOP;
    qn_buf_truncate(&e->out, 0);
    QN_TRY(build(e, &e->out, s, ev, drawn, logits, err));
    send(s->job, e->out.data);
    return QN_OK;
}

void qn_take_token(qn_engine *e, qn_stream *s, const qn_drawn *drawn, const float *logits)
{
    qn_err err = {0};
    qn_event_token ev = {
        .head = head_of(s, s->n_new), .token = drawn->token, .text_offset = QN_EVENT_NO_OFFSET};
    uint32_t stop = QN_NO_STOP;
    qn_code rc = QN_OK;
    if (!(drawn->logprob > -INFINITY)) rc = no_finite_logit(e, s, &err);
    const bool ends =
        s->n_new + 1 >= s->job->req->min_tokens && qn_job_stops_at(s->job, drawn->token);
    if (rc == QN_OK) {
        s->ids[s->n_ids++] = drawn->token;
        s->n_new++;
        e->now.completion_tokens++;
        rc = ends ? put_end(e, s, &ev, drawn, logits, &err)
                  : put_token(e, s, &ev, drawn, logits, &stop, &err);
    }
    if (rc != QN_OK)
        qn_fail_stream(e, s, &err);
    else if (ends || stop != QN_NO_STOP)
        qn_end_stream(e, s, QN_FINISH_STOP, stop);
    else if (s->n_new >= s->job->max_new)
        qn_end_stream(e, s, QN_FINISH_LENGTH, QN_NO_STOP);
}

/* --- echo ------------------------------------------------------------------------------------- */

static qn_code send_prompt_token(qn_engine *e, const qn_stream *s, uint32_t index, qn_err *err)
{
    const qn_job *j = s->job;
    qn_event_token ev = {.head = head_of(s, index),
                         .token = s->ids[index],
                         .flags = QN_EVENT_OF_PROMPT,
                         .text_offset = QN_EVENT_NO_OFFSET};
    const qn_prompt_logprob *p = j->prompt && index > 0 ? &j->prompt[index] : NULL;
    if (p) {
        ev.flags |= QN_EVENT_HAS_LOGPROB;
        ev.logprob = p->logprob;
    }
    qn_buf_truncate(&e->out, 0);
    QN_TRY(qn_event_build_token(&e->out, &ev, p ? p->top : NULL, p ? p->n_top : 0, NULL, 0, err));
    send(j, e->out.data);
    return QN_OK;
}

bool qn_send_prompt(qn_engine *e, qn_stream *s)
{
    const uint32_t wanted = QN_REQUEST_ECHO | QN_REQUEST_PROMPT_LOGPROBS;
    qn_err err = {0};
    if (s->prompt_sent) return true;
    s->prompt_sent = true;
    if (!(s->job->req->flags & wanted)) return true;
    for (uint32_t i = 0; i < s->job->req->n_prompt; i++) {
        if (send_prompt_token(e, s, i, &err) == QN_OK) continue;
        qn_fail_stream(e, s, &err);
        return false;
    }
    return true;
}
