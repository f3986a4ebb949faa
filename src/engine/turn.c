/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - one step of everything that runs.
 *
 *     choose rows ─► plan of that size ─► fill its step block ─► exec ─► commit ─► tokens out
 *
 * Streams that need one row come first, so that no completion waits for a prompt; what is left of the
 * row budget goes to prompts, oldest first. Which rows share a step changes no bit of any of them
 * (promise 1), so this choice is about time only.
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/engine_int.h"

static uint32_t pending(const qn_stream *s) { return s->n_ids - qn_seq_len(s->seq); }

static uint32_t rows_so_far(const qn_engine *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++) n += e->running[i]->n_rows;
    return n;
}

static uint32_t logits_so_far(const qn_engine *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++)
        n += e->running[i]->n_scored + e->running[i]->n_draws;
    return n;
}

/* Rows of [len, len + n) whose logits are the logprobs of a prompt token. */
static uint32_t scored(const qn_stream *s, uint32_t n)
{
    const qn_job *j = s->job;
    const uint32_t len = qn_seq_len(s->seq), last = j->req->n_prompt - 1;
    if (!j->prompt || j->prompt_known || len >= last) return 0;
    return last - len < n ? last - len : n;
}

static bool draws_after(const qn_stream *s, uint32_t n)
{
    return n > 0 && n == pending(s) && s->n_new < s->job->max_new;
}

static uint32_t edits_so_far(const qn_engine *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++) n += e->running[i]->n_edits;
    return n;
}

/* Gives s up to n rows, fewer when logit rows or edits run out; false when s left the running ones. */
static bool give_rows(qn_engine *e, qn_stream *s, uint32_t n)
{
    const uint32_t room = e->max_logits - logits_so_far(e);
    if (scored(s, n) >= room && scored(s, n) > 0) n = room > 1 ? room - 1 : 0;
    const uint32_t edits = draws_after(s, n) ? qn_adjust_most(e, s) : 0;
    const bool crowded = edits > e->max_edits - edits_so_far(e);
    s->passed_over = crowded ? s->passed_over + 1 : 0;
    if (draws_after(s, n) && (scored(s, n) == room || crowded)) n--;
    if (n == 0) return true;
    if (!qn_make_room(e, s, n)) return false;
    s->n_rows = n;
    s->n_scored = scored(s, n);
    if (draws_after(s, n)) {
        s->n_edits = edits;
        const uint32_t left = room - s->n_scored - 1, more = qn_count_siblings(e, s);
        s->n_draws = 1 + (more < left ? more : left);
    }
    return true;
}

/* Whose edits found no room before comes first, the longest waiting at the head: with windows that fill
 * a step every stream has its turn. One that is passed over again counts more, and is not met here twice. */
static void serve_passed_over(qn_engine *e)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < e->n_running; i++)
        if (e->running[i]->passed_over > most) most = e->running[i]->passed_over;
    for (uint32_t k = most; k > 0; k--)
        for (uint32_t i = 0; i < e->n_running;) {
            qn_stream *s = e->running[i];
            if (s->passed_over != k || s->n_rows > 0 || pending(s) != 1 ||
                rows_so_far(e) == e->opt.max_rows || give_rows(e, s, 1))
                i++;
        }
}

/* Younger streams may lose their place while an older one gets room, so indices move. */
static void choose_rows(qn_engine *e)
{
    e->n_sched = 0;
    for (uint32_t i = 0; i < e->n_running; i++) {
        qn_stream *s = e->running[i];
        s->n_rows = s->n_scored = s->n_draws = s->n_edits = 0;
    }
    serve_passed_over(e);
    for (uint32_t i = 0; i < e->n_running;) {
        qn_stream *s = e->running[i];
        if (s->n_rows > 0 || pending(s) != 1 || rows_so_far(e) == e->opt.max_rows ||
            give_rows(e, s, 1))
            i++;
    }
    for (uint32_t i = 0; i < e->n_running;) {
        qn_stream *s = e->running[i];
        const uint32_t room = e->opt.max_rows - rows_so_far(e), want = pending(s);
        if (s->n_rows > 0 || room == 0 || give_rows(e, s, want < room ? want : room)) i++;
    }
    for (uint32_t i = 0; i < e->n_running; i++)
        if (e->running[i]->n_rows > 0) e->sched[e->n_sched++] = e->running[i];
}

static bool wants_logits(const qn_engine *e)
{
    if (e->probe) return true;
    for (uint32_t i = 0; i < e->n_sched; i++)
        if (e->sched[i]->n_scored > 0 || e->sched[i]->job->req->logprobs > 0) return true;
    return false;
}

static qn_code get_plan(qn_plan **out, const qn_engine *e, qn_err *err)
{
    const qn_plan_key key = {.rows = rows_so_far(e),
                             .logits = logits_so_far(e),
                             .features = (e->opt.no_fuse ? QN_PLAN_NO_FUSE : 0u) |
                                         (wants_logits(e) ? QN_PLAN_KEEP_LOGITS : 0u) |
                                         (edits_so_far(e) ? QN_PLAN_ADJUST : 0u),
                             .taps = e->tap ? UINT64_MAX : 0};
    return qn_plans_get(out, e->plans, &key, err);
}

/* --- the step block --------------------------------------------------------------------------- */

static void fill_rows(qn_step *p, const qn_stream *s, uint32_t seq, uint32_t first)
{
    const uint32_t len = qn_seq_len(s->seq);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const uint32_t r = first + i, at = len + i;
        qn_step_source(p)[r] = QN_ROW_TOKEN;
        qn_step_value(p)[r] = s->ids[at];
        for (uint32_t k = 0; k < 3; k++) qn_step_pos(p)[k * p->caps.rows + r] = (int32_t)at;
        qn_step_kv_pos(p)[r] = at;
        qn_step_seq(p)[r] = seq;
        qn_step_keys(p)[r] = (qn_keys){0, at + 1, 0, 0};
        qn_step_parent(p)[r] = QN_STEP_NONE;
        qn_step_adapter(p)[r] = QN_STEP_NONE;
    }
}

static void fill_logit(qn_step *p, uint32_t row, qn_sampler sampler, qn_adjust adjust, uint32_t reg)
{
    const uint32_t i = p->n_logits++;
    qn_step_adjust(p)[i] = adjust;
    qn_step_logit_row(p)[i] = row;
    qn_step_sampler(p)[i] = sampler;
    qn_step_register(p)[i] = reg;
}

/* Choices in the order in which qn_fork_sibling will take them. */
static uint32_t next_choice(const qn_stream *s, uint32_t from)
{
    const qn_job *j = s->job;
    while (from < j->n_streams &&
           (&j->stream[from] == s || j->stream[from].done || j->stream[from].ids))
        from++;
    return from;
}

static void fill_logits(qn_engine *e, qn_step *p, qn_stream *s, uint32_t seq, uint32_t first)
{
    qn_sampler sampler = s->job->sampler;
    s->first_logit = p->n_logits;
    for (uint32_t i = 0; i < s->n_scored; i++)
        fill_logit(p, first + i, (qn_sampler){0}, (qn_adjust){0}, QN_STEP_NONE);
    sampler.index = s->n_new;
    const qn_adjust adjust = s->n_edits ? qn_adjust_fill(e, p, s) : (qn_adjust){0};
    for (uint32_t i = 0, next = 0; i < s->n_draws; i++) {
        if (i > 0) next = next_choice(s, i > 1 ? next + 1 : 0);
        sampler.choice = i > 0 ? next : s->choice;
        fill_logit(p, first + s->n_rows - 1, sampler, adjust, i > 0 ? QN_STEP_NONE : seq);
    }
}

static void fill_tables(qn_step *p, const qn_stream *s, uint32_t seq, uint32_t at[QN_MAX_GROUPS])
{
    for (uint32_t g = 0; g < p->caps.groups; g++) {
        uint32_t n = 0;
        const uint32_t *ids = qn_seq_table(s->seq, g, &n);
        QN_ASSERT(n <= p->caps.table - at[g]);
        memcpy(qn_step_table(p) + (size_t)g * p->caps.table + at[g], ids, n * sizeof *ids);
        qn_step_table_off(p)[g * p->caps.seqs + seq] = at[g];
        at[g] += n;
    }
}

static void fill_step(qn_engine *e, qn_step *p)
{
    uint32_t at[QN_MAX_GROUPS] = {0};
    p->n_rows = p->n_logits = p->n_edits = 0;
    p->n_seqs = e->n_sched;
    for (uint32_t i = 0; i < e->n_sched; i++) {
        qn_stream *s = e->sched[i];
        fill_rows(p, s, i, p->n_rows);
        fill_logits(e, p, s, i, p->n_rows);
        fill_tables(p, s, i, at);
        for (uint32_t r = 0; r < s->n_rows; r++) e->row_request[p->n_rows + r] = s->job->id;
        p->n_rows += s->n_rows;
    }
}

/* --- after the step --------------------------------------------------------------------------- */

static qn_code commit_all(qn_engine *e, qn_err *err)
{
    for (uint32_t i = 0; i < e->n_sched; i++) {
        const qn_stream *s = e->sched[i];
        QN_TRY(qn_seq_commit(s->seq, s->ids + qn_seq_len(s->seq), s->n_rows, &s->job->extra,
                             s->job->n_extra, err));
    }
    return QN_OK;
}

static void keep_scores(qn_engine *e, qn_stream *s, const qn_drawn *drawn, const float *logits,
                        size_t ld)
{
    qn_job *j = s->job;
    const uint32_t first = qn_seq_len(s->seq) - s->n_rows; /* the step is committed */
    for (uint32_t i = 0; i < s->n_scored; i++) {
        const uint32_t row = s->first_logit + i,
                       k = j->req->logprobs > 0 ? (uint32_t)j->req->logprobs : 0;
        const float *x = logits + row * ld;
        qn_prompt_logprob *p = &j->prompt[first + i + 1];
        p->logprob = qn_sample_logprob(x[s->ids[first + i + 1]], &drawn[row]);
        p->n_top = qn_sample_top(e->tops, k, x, e->vocab, &drawn[row]);
        for (uint32_t t = 0; t < p->n_top; t++)
            p->top[t] = (qn_event_top){e->tops[t].token, e->tops[t].logprob};
    }
}

static void add_draw(qn_engine *e, qn_stream *s, uint32_t logit)
{
    e->draws[e->n_draws].s = s;
    e->draws[e->n_draws++].logit = logit;
}

/* Who gets which logit row; siblings of a finished prompt begin here. */
static void hand_out(qn_engine *e, qn_stream *s)
{
    const uint32_t first = s->first_logit + s->n_scored;
    if (s->n_draws > 0) add_draw(e, s, first);
    for (uint32_t i = 1; i < s->n_draws; i++) {
        qn_stream *f = qn_fork_sibling(e, s);
        if (!f) break; /* the rest stays in the queue */
        add_draw(e, f, first + i);
    }
    if (s->job->leader == s) s->job->leader = NULL;
}

static void finish_prompts(qn_engine *e, const qn_drawn *drawn, const float *logits, size_t ld)
{
    e->n_draws = 0;
    for (uint32_t i = 0; i < e->n_sched; i++) {
        qn_stream *s = e->sched[i];
        keep_scores(e, s, drawn, logits, ld);
        if (pending(s) > 0) continue;
        s->job->prompt_known = true;
        hand_out(e, s);
        if (s->n_draws == 0) add_draw(e, s, UINT32_MAX); /* nothing to draw: over */
    }
}

static void send_all(qn_engine *e, const qn_drawn *drawn, const float *logits, size_t ld)
{
    for (uint32_t i = 0; i < e->n_draws; i++) {
        qn_stream *s = e->draws[i].s;
        const uint32_t row = e->draws[i].logit;
        if (!s || !qn_send_prompt(e, s)) continue;
        if (row == UINT32_MAX)
            qn_end_stream(e, s, QN_FINISH_LENGTH, QN_NO_STOP);
        else
            qn_take_token(e, s, &drawn[row], logits ? logits + row * ld : NULL);
    }
    e->n_draws = 0;
}

static void fail_all(qn_engine *e, const qn_err *why)
{
    for (uint32_t i = 0; i < e->n_sched; i++)
        if (e->sched[i]) qn_fail_stream(e, e->sched[i], why);
}

static bool only_decodes(const qn_engine *e)
{
    for (uint32_t i = 0; i < e->n_sched; i++)
        if (e->sched[i]->n_rows > 1 || e->sched[i]->n_draws > 1) return false;
    return true;
}

static qn_code run_step(qn_engine *e, qn_plan *plan, qn_err *err)
{
    qn_step *step = qn_plan_step(plan);
    const bool decode = only_decodes(e);
    if (decode) qn_alloc_forbid(true);
    fill_step(e, step);
    qn_code rc = qn_plan_exec(plan, err);
    if (rc == QN_OK) rc = commit_all(e, err);
    if (decode) qn_alloc_forbid(false);
    return rc;
}

static void show_tap(const qn_engine *e, qn_plan *plan)
{
    uint32_t cols = 0;
    size_t ld = 0;
    const float *x = qn_plan_tap(plan, e->tap_name, &cols, &ld);
    e->tap(e->tap_ctx, qn_plan_step(plan), e->row_request, x, cols, ld);
}

static void count(qn_engine *e, uint64_t began)
{
    e->now.steps++;
    for (uint32_t i = 0; i < e->n_sched; i++) {
        const qn_stream *s = e->sched[i];
        const uint32_t end = qn_seq_len(s->seq), begin = end - s->n_rows, n = s->job->req->n_prompt;
        if (begin < n) e->now.prompt_tokens += (end < n ? end : n) - begin;
    }
    e->now.busy_s += (double)(qn_clock_ns() - began) * 1e-9;
}

void qn_turn(qn_engine *e)
{
    const uint64_t began = qn_clock_ns();
    qn_err err = {0};
    qn_plan *plan = NULL;
    size_t ld = 0;
    choose_rows(e);
    if (e->n_sched == 0) return;
    if (get_plan(&plan, e, &err) != QN_OK || run_step(e, plan, &err) != QN_OK) {
        fail_all(e, &err);
        return;
    }
    const float *logits = qn_plan_logits(plan, &ld);
    const qn_drawn *drawn = qn_plan_drawn(plan);
    if (e->probe) e->probe(e->probe_ctx, qn_plan_step(plan), e->row_request, logits, ld);
    if (e->tap) show_tap(e, plan);
    count(e, began);
    finish_prompts(e, drawn, logits, ld);
    send_all(e, drawn, logits, ld);
    e->n_sched = 0;
}
