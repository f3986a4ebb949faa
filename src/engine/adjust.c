/* SPDX-License-Identifier: Apache-2.0 */
/* adjust.c - which logits of a row are to change before its draw: biases, penalties, tokens that may
 * not end the text yet.
 *
 *     history  prompt, then what was generated: [ ...................... | next ]
 *     windows  repetition                                 [<-------------]
 *              presence                       [<-------------------------]
 *              frequency  [<---------------------------------------------]
 *
 * All of it follows from the request and its tokens, so the same holds in any batch, chunk or resume.
 * The work is that of the largest window, not of the vocabulary: tokens find their edit by a table
 * that is never cleared, because an entry counts only where the edit that it names agrees.
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#include <math.h>

#include "engine/engine_int.h"

static bool penalises(const qn_penalty *p, float neutral) { return p->by != neutral; }

/* The last `context` of n tokens; 0: all. */
static uint32_t window(const qn_penalty *p, bool on, uint32_t n)
{
    if (!on) return 0;
    return p->context && p->context < n ? p->context : n;
}

static uint32_t longest(uint32_t a, uint32_t b) { return a > b ? a : b; }

typedef struct windows {
    uint32_t repetition, presence, frequency, all;
} windows;

static windows windows_of(const qn_stream *s)
{
    const qn_job *j = s->job;
    windows w = {window(&j->repetition, penalises(&j->repetition, 1.0f), s->n_ids),
                 window(&j->presence, penalises(&j->presence, 0.0f), s->n_ids),
                 window(&j->frequency, penalises(&j->frequency, 0.0f), s->n_ids), 0};
    w.all = longest(w.repetition, longest(w.presence, w.frequency));
    return w;
}

static bool bars_ends(const qn_stream *s)
{
    return s->n_new < s->job->req->min_tokens && s->job->n_stop_ids > 0;
}

uint32_t qn_adjust_most(const qn_engine *e, const qn_stream *s)
{
    const uint64_t n = (uint64_t)windows_of(s).all + s->job->req->biases.n +
                       (bars_ends(s) ? s->job->n_stop_ids : 0);
    return n < e->vocab ? (uint32_t)n : e->vocab; /* an edit a token */
}

/* The edit of a token, a new one when it has none yet. */
static qn_edit *edit_of(qn_engine *e, qn_step *p, const qn_adjust *row, uint32_t token)
{
    qn_edit *edit = qn_step_edit(p);
    const uint32_t at = e->edit_at[token];
    if (at >= row->at && at < p->n_edits && edit[at].token == token) return &edit[at];
    QN_ASSERT(p->n_edits < p->caps.edits);
    e->edit_at[token] = p->n_edits;
    edit[p->n_edits] = (qn_edit){.token = token};
    return &edit[p->n_edits++];
}

static void see_history(qn_engine *e, qn_step *p, const qn_adjust *row, const qn_stream *s)
{
    const windows w = windows_of(s);
    for (uint32_t back = 1; back <= w.all; back++) {
        qn_edit *x = edit_of(e, p, row, s->ids[s->n_ids - back]);
        if (back <= w.repetition) x->flags |= QN_EDIT_REPEATED;
        if (back <= w.presence) x->flags |= QN_EDIT_PRESENT;
        if (back <= w.frequency) x->seen++;
    }
}

qn_adjust qn_adjust_fill(qn_engine *e, qn_step *p, const qn_stream *s)
{
    const qn_job *j = s->job;
    qn_adjust row = {.at = p->n_edits,
                     .repetition = j->repetition.by,
                     .presence = j->presence.by,
                     .frequency = j->frequency.by};
    const qn_request_bias *b = qn_request_biases(j->req);
    for (uint32_t i = 0; i < j->req->biases.n; i++)
        edit_of(e, p, &row, b[i].token)->bias = b[i].bias;
    if (bars_ends(s))
        for (uint32_t i = 0; i < j->n_stop_ids; i++)
            edit_of(e, p, &row, j->stop_ids[i])->bias = -INFINITY;
    see_history(e, p, &row, s);
    row.n = p->n_edits - row.at;
    return row;
}
