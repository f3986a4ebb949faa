/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - who runs: admission by age, preemption from the youngest, choices forked off a prompt.
 *
 * A stream is admitted when the store has room for all it still has to compute, for all that the
 * running ones have, and for a block more each; so preemption is for long completions, not for prompts.
 * Nobody overtakes: while the oldest waiting stream does not fit, none behind it is tried.
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#include "base/alloc.h"
#include "engine/engine_int.h"

bool qn_older(const qn_stream *a, const qn_stream *b)
{
    const qn_job *x = a->job, *y = b->job;
    if (x->req->priority != y->req->priority) return x->req->priority > y->req->priority;
    if (x->id != y->id) return x->id < y->id;
    return a->choice < b->choice;
}

static void wait_by_age(qn_engine *e, qn_stream *s)
{
    qn_stream *before = e->waiting_last; /* who comes is the youngest as a rule */
    while (before && !qn_older(before, s)) before = before->prev;
    s->prev = before;
    s->next = before ? before->next : e->waiting;
    *(before ? &before->next : &e->waiting) = s;
    *(s->next ? &s->next->prev : &e->waiting_last) = s;
    s->waits = true;
    e->n_waiting++;
}

void qn_leave_waiting(qn_engine *e, qn_stream *s)
{
    if (!s->waits) return;
    *(s->prev ? &s->prev->next : &e->waiting) = s->next;
    *(s->next ? &s->next->prev : &e->waiting_last) = s->prev;
    s->next = s->prev = NULL;
    s->waits = false;
    e->n_waiting--;
}

void qn_unqueue(qn_engine *e, qn_job *j)
{
    if (j->queued) atomic_fetch_sub(&e->n_queued, 1);
    j->queued = false;
}

void qn_queue_job(qn_engine *e, qn_job *j)
{
    e->full = false; /* it may be older than the one that did not fit */
    for (uint32_t i = 0; i < j->n_streams; i++) wait_by_age(e, &j->stream[i]);
}

static void run_by_age(qn_engine *e, qn_stream *s)
{
    uint32_t at = e->n_running++;
    for (; at > 0 && qn_older(s, e->running[at - 1]); at--) e->running[at] = e->running[at - 1];
    e->running[at] = s;
}

void qn_leave_running(qn_engine *e, qn_stream *s)
{
    uint32_t at = 0;
    while (at < e->n_running && e->running[at] != s) at++;
    if (at == e->n_running) return;
    e->full = false;
    e->n_running--;
    for (; at < e->n_running; at++) e->running[at] = e->running[at + 1];
}

/* Its blocks stay in the tree as long as there is room for them; its ids and what was sent stay. */
static void preempt(qn_engine *e, qn_stream *s)
{
    qn_leave_running(e, s);
    qn_seq_close(s->seq);
    s->seq = NULL;
    s->n_rows = s->n_scored = s->n_draws = s->n_edits = 0;
    wait_by_age(e, s);
}

bool qn_make_room(qn_engine *e, qn_stream *s, uint32_t n)
{
    qn_err err = {0};
    for (;;) {
        const qn_code rc = qn_seq_reserve(s->seq, n, &err);
        if (rc == QN_OK) return true;
        if (rc != QN_E_AGAIN || e->n_running == 1) {
            qn_fail_stream(e, s, &err);
            return false;
        }
        qn_stream *youngest = e->running[e->n_running - 1];
        preempt(e, youngest);
        if (youngest == s) return false;
    }
}

/* --- admission -------------------------------------------------------------------------------- */

static uint64_t rounded(uint32_t positions)
{
    return ((uint64_t)positions + QN_KV_BLOCK - 1) / QN_KV_BLOCK * QN_KV_BLOCK;
}

/* Positions that those who run have yet to compute, and a block more each. */
static uint64_t promised(const qn_engine *e)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++) {
        const qn_stream *s = e->running[i];
        n += rounded(s->n_ids - qn_seq_len(s->seq)) + QN_KV_BLOCK;
    }
    return n;
}

static qn_code take_seq(qn_engine *e, qn_stream *s, qn_err *err)
{
    qn_job *j = s->job;
    QN_TRY(qn_seq_open(&s->seq, e->cache, err));
    if (e->opt.no_prefix_cache || (j->req->flags & QN_REQUEST_NO_CACHE)) qn_seq_set_private(s->seq);
    /* Logprobs of the prompt need every one of its rows. */
    if (j->prompt && !j->prompt_known) return QN_OK;
    const uint32_t hit = qn_seq_match(s->seq, s->ids, s->n_ids, &j->extra, j->n_extra);
    if (!j->matched) j->cached = hit < j->req->n_prompt ? hit : j->req->n_prompt;
    return QN_OK;
}

static bool has_unstarted_sibling(const qn_stream *s)
{
    for (uint32_t i = 0; i < s->job->n_streams; i++) {
        const qn_stream *o = &s->job->stream[i];
        if (o != s && !o->done && !o->ids) return true;
    }
    return false;
}

/* False: s does not fit now, nothing changed. Ends s when it fails. */
static bool admit_one(qn_engine *e, qn_stream *s)
{
    qn_err err = {0};
    if ((!s->ids && qn_stream_init(e, s, &err) != QN_OK) || take_seq(e, s, &err) != QN_OK) {
        qn_fail_stream(e, s, &err);
        return true;
    }
    const uint64_t need = rounded(s->n_ids - qn_seq_len(s->seq)) + QN_KV_BLOCK + promised(e);
    if (e->n_running > 0 && need > qn_cache_room(e->cache)) {
        qn_seq_close(s->seq);
        s->seq = NULL;
        e->full = true;
        return false;
    }
    qn_leave_waiting(e, s);
    run_by_age(e, s);
    qn_unqueue(e, s->job);
    if (!s->job->matched) e->now.cached_tokens += s->job->cached;
    s->job->matched = true;
    const bool drew = s->n_new > s->job->req->tokens.n - s->job->req->n_prompt;
    if (!drew && !s->job->leader && has_unstarted_sibling(s)) s->job->leader = s;
    return true;
}

/* The oldest waiting stream that need not wait for a sibling's prompt. */
static qn_stream *next_waiting(const qn_engine *e)
{
    qn_stream *s = e->waiting;
    while (s && s->job->leader && s->job->leader != s && !s->ids) s = s->next;
    return s;
}

void qn_admit(qn_engine *e)
{
    while (e->n_running < e->opt.max_seqs && !(e->full && e->n_running > 0)) {
        qn_stream *s = next_waiting(e);
        if (!s || !admit_one(e, s)) return;
    }
}

/* --- choices ---------------------------------------------------------------------------------- */

static bool can_join(const qn_stream *s, const qn_stream *leader)
{
    return s != leader && !s->done && !s->ids;
}

uint32_t qn_count_siblings(const qn_engine *e, const qn_stream *s)
{
    uint32_t n = 0;
    if (s->job->leader != s) return 0;
    for (uint32_t i = 0; i < s->job->n_streams; i++) n += can_join(&s->job->stream[i], s);
    const uint32_t slots = e->opt.max_seqs - e->n_running;
    return n < slots ? n : slots;
}

qn_stream *qn_fork_sibling(qn_engine *e, qn_stream *s)
{
    qn_job *j = s->job;
    qn_stream *f = NULL;
    for (uint32_t i = 0; i < j->n_streams && !f; i++)
        if (can_join(&j->stream[i], s)) f = &j->stream[i];
    if (!f || e->n_running >= e->opt.max_seqs) return NULL;
    if (qn_stream_init(e, f, NULL) != QN_OK || qn_seq_fork(&f->seq, s->seq, NULL) != QN_OK) {
        qn_stream_fini(f); /* it stays in the queue and goes through the prompt by itself */
        return NULL;
    }
    qn_leave_waiting(e, f);
    run_by_age(e, f);
    return f;
}

/* --- cancel ----------------------------------------------------------------------------------- */

void qn_cancel_job(qn_engine *e, uint64_t id)
{
    for (qn_stream *s = e->waiting; s; s = s->next)
        if (s->job->id == id) s->job->cancelled = true;
    for (uint32_t i = 0; i < e->n_running; i++)
        if (e->running[i]->job->id == id) e->running[i]->job->cancelled = true;
}

/* From the start after each one: an event's receiver may have cancelled more. */
void qn_end_cancelled(qn_engine *e, bool all)
{
    for (qn_stream *s = e->waiting; s;) {
        const bool end = all || s->job->cancelled;
        if (end) qn_end_stream(e, s, QN_FINISH_CANCELLED, QN_NO_STOP);
        s = end ? e->waiting : s->next;
    }
    for (uint32_t i = 0; i < e->n_running;) {
        const bool end = all || e->running[i]->job->cancelled;
        if (end) qn_end_stream(e, e->running[i], QN_FINISH_CANCELLED, QN_NO_STOP);
        i = end ? 0 : i + 1;
    }
}
