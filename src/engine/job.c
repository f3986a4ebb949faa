/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - a request block made into a job: checked against the model, every default filled in.
 *
 * Whatever can be refused is refused here, on the caller's thread and before anything is queued; what
 * the engine cannot do yet is named, never ignored.
 *
 * Thread: qn_job_new by any; the rest by the engine thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "engine/engine_int.h"

static qn_code not_yet(qn_err *err, const char *field)
{
    return qn_fail(err, QN_E_UNSUPPORTED, "%s: not supported by this engine", field);
}

static qn_code check_supported(const qn_request *r, qn_err *err)
{
    if (r->adapters.n) return not_yet(err, "adapters");
    if (r->media.n) return not_yet(err, "media");
    if (r->state.n) return not_yet(err, "sampler state");
    if (r->credits)
        return not_yet(err, "credits"); /* nobody could grant more: it would park for good */
    return QN_OK;
}

static qn_code check_tokens(const qn_engine *e, const qn_request *r, qn_err *err)
{
    const uint32_t *id = qn_request_tokens(r), *stop = qn_request_stop_ids(r);
    const bool draws = !(qn_request_is_set(r, QN_SET_MAX_TOKENS) && r->max_tokens == 0);
    if (r->tokens.n > e->opt.context || (draws && r->tokens.n == e->opt.context))
        return qn_fail(err, QN_E_LIMIT, "tokens: %u of them, the context holds %u", r->tokens.n,
                       e->opt.context);
    for (uint32_t i = 0; i < r->tokens.n; i++)
        if (id[i] >= e->vocab)
            return qn_fail(err, QN_E_INVAL, "tokens: id %u at %u, expected below %u", id[i], i,
                           e->vocab);
    for (uint32_t i = 0; i < r->stop_ids.n; i++)
        if (stop[i] >= e->vocab)
            return qn_fail(err, QN_E_INVAL, "stop_ids: id %u at %u, expected below %u", stop[i], i,
                           e->vocab);
    for (uint32_t i = 0; i < r->biases.n; i++)
        if (qn_request_biases(r)[i].token >= e->vocab)
            return qn_fail(err, QN_E_INVAL, "logit_bias: id %u, expected below %u",
                           qn_request_biases(r)[i].token, e->vocab);
    return QN_OK;
}

/* How far a penalty looks back when nobody says: mlx-lm's number. */
enum { USUAL_CONTEXT = 20 };

static qn_penalty penalty(float by, uint32_t context, bool has_context)
{
    return (qn_penalty){by, has_context ? context : USUAL_CONTEXT};
}

/* A repetition penalty of 0 is off, as 1 is. */
static void fill_penalties(qn_job *j, const qn_recipe *recipe)
{
    const qn_request_sampling *in = &j->req->sampling;
    const uint32_t set = in->set;
    float repetition = 1.0f;
    if (recipe->set & QN_RECIPE_REPETITION) repetition = recipe->repetition_penalty;
    if (set & QN_SET_REPETITION) repetition = in->repetition_penalty;
    j->repetition = penalty(repetition == 0.0f ? 1.0f : repetition, in->repetition_context,
                            set & QN_SET_REPETITION_CONTEXT);
    j->presence = penalty(set & QN_SET_PRESENCE ? in->presence_penalty : 0.0f, in->presence_context,
                          set & QN_SET_PRESENCE_CONTEXT);
    j->frequency = penalty(set & QN_SET_FREQUENCY ? in->frequency_penalty : 0.0f,
                           in->frequency_context, set & QN_SET_FREQUENCY_CONTEXT);
}

static qn_code fill_sampler(qn_job *j, const qn_engine *e, qn_err *err)
{
    const qn_request_sampling *in = &j->req->sampling;
    qn_sampler *s = &j->sampler;
    const qn_recipe *r = qn_model_recipe(e->model);
    *s = qn_sample_default();
    if (r->set & QN_RECIPE_TEMPERATURE) s->temperature = r->temperature;
    if (r->set & QN_RECIPE_TOP_P) s->top_p = r->top_p;
    if (r->set & QN_RECIPE_MIN_P) s->min_p = r->min_p;
    if (r->set & QN_RECIPE_TOP_K) s->top_k = r->top_k;
    if (in->set & QN_SET_TEMPERATURE) s->temperature = in->temperature;
    if (in->set & QN_SET_TOP_P) s->top_p = in->top_p;
    if (in->set & QN_SET_MIN_P) s->min_p = in->min_p;
    if (in->set & QN_SET_TOP_K) s->top_k = in->top_k;
    if (in->set & QN_SET_XTC) {
        s->xtc_probability = in->xtc_probability;
        s->xtc_threshold = in->xtc_threshold;
    }
    fill_penalties(j, r);
    QN_TRY(qn_sample_check(s, err));
    j->seed = in->seed;
    if (!in->has_seed) QN_TRY(qn_rng_fresh_seed(&j->seed, err));
    s->seed = j->seed;
    return QN_OK;
}

/* Ids that end the text: the model's, unless the request ignores them, then the request's own, then
 * stop strings that are the spelling of one special token (its text is never seen by the matcher). */
static qn_code fill_stop_ids(qn_job *j, const qn_engine *e, qn_err *err)
{
    const qn_request *r = j->req;
    const qn_tokenizer *tok = qn_model_tokenizer(e->model);
    uint32_t n = 0, n_ends = 0;
    const uint32_t *ends = qn_model_ends(e->model, &n_ends);
    const size_t most = (size_t)n_ends + r->stop_ids.n + r->stop_text.n;
    j->stop_ids = qn_calloc(most + 1, sizeof *j->stop_ids);
    if (!j->stop_ids) return qn_fail(err, QN_E_NOMEM, "stop ids of a request");
    if (!(r->flags & QN_REQUEST_IGNORE_EOS)) {
        for (uint32_t i = 0; i < n_ends; i++) j->stop_ids[n++] = ends[i];
    }
    for (uint32_t i = 0; i < r->stop_ids.n; i++) j->stop_ids[n++] = qn_request_stop_ids(r)[i];
    for (uint32_t i = 0; tok && i < r->stop_text.n; i++) {
        const qn_str text = qn_request_stop_text(r, i);
        const uint32_t id = qn_token_id(tok, text.p, text.n);
        if (id != QN_TOKEN_NONE && qn_token_kind_of(tok, id) == QN_TOKEN_CONTROL)
            j->stop_ids[n++] = id;
    }
    j->n_stop_ids = n;
    return QN_OK;
}

bool qn_job_stops_at(const qn_job *j, uint32_t token)
{
    for (uint32_t i = 0; i < j->n_stop_ids; i++)
        if (j->stop_ids[i] == token) return true;
    return false;
}

static qn_code fill_stop_text(qn_job *j, const qn_engine *e, qn_err *err)
{
    const qn_request *r = j->req;
    qn_code rc = QN_OK;
    if (r->stop_text.n == 0) return QN_OK;
    if (!qn_model_tokenizer(e->model))
        return not_yet(err, "stop: the model has no tokenizer, so this");
    qn_str *text = qn_calloc(r->stop_text.n, sizeof *text);
    if (!text) return qn_fail(err, QN_E_NOMEM, "stop strings of a request");
    for (uint32_t i = 0; i < r->stop_text.n; i++) text[i] = qn_request_stop_text(r, i);
    rc = qn_stops_new(&j->stops, text, r->stop_text.n, err);
    qn_free(text);
    return rc;
}

static qn_code fill(qn_job *j, const qn_engine *e, qn_err *err)
{
    const qn_request *r = j->req;
    QN_TRY(check_supported(r, err));
    QN_TRY(check_tokens(e, r, err));
    QN_TRY(fill_sampler(j, e, err));
    QN_TRY(fill_stop_ids(j, e, err));
    QN_TRY(fill_stop_text(j, e, err));
    j->max_new = e->opt.context - r->n_prompt;
    if (qn_request_is_set(r, QN_SET_MAX_TOKENS) && r->max_tokens < j->max_new)
        j->max_new = r->max_tokens;
    if (r->cache_space) {
        j->extra = (qn_key_extra){0, UINT32_MAX, {r->cache_space, 0x65636170 /* "pace" */}};
        j->n_extra = 1;
    }
    if (r->flags & QN_REQUEST_PROMPT_LOGPROBS) {
        j->prompt = qn_calloc(r->n_prompt, sizeof *j->prompt);
        if (!j->prompt)
            return qn_fail(err, QN_E_NOMEM, "logprobs of %u prompt tokens", r->n_prompt);
    }
    for (uint32_t i = 0; i < j->n_streams; i++) {
        j->stream[i].job = j;
        j->stream[i].choice = i;
    }
    return QN_OK;
}

qn_code qn_job_new(qn_job **out, const qn_engine *e, const void *request, size_t n, qn_event_fn *fn,
                   void *ctx, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_job *j = NULL;
    const qn_request *r = NULL;
    *out = NULL;
    void *block = qn_alloc(n); /* aligned as the reader wants it */
    if (!block) return qn_fail(err, QN_E_NOMEM, "request of %zu bytes", n);
    memcpy(block, request, n);
    QN_TRY_OUT(qn_request_read(&r, block, n, err));
    j = qn_zalloc(sizeof *j + r->n_choices * sizeof *j->stream);
    if (!j) {
        rc = qn_fail(err, QN_E_NOMEM, "request of %u choices", r->n_choices);
        goto out;
    }
    j->block = block;
    block = NULL;
    j->req = r;
    j->fn = fn;
    j->ctx = ctx;
    j->n_streams = j->n_open = r->n_choices;
    QN_TRY_OUT(fill(j, e, err));
    *out = j;
    j = NULL;
out:
    qn_free(block);
    qn_job_free(j);
    return rc;
}

void qn_job_free(qn_job *j)
{
    if (!j) return;
    for (uint32_t i = 0; i < j->n_streams; i++) qn_stream_fini(&j->stream[i]);
    qn_stops_free(j->stops);
    qn_free(j->stop_ids);
    qn_free(j->prompt);
    qn_free(j->block);
    qn_free(j);
}

static qn_code init_text(const qn_engine *e, qn_stream *s, qn_err *err)
{
    const qn_detok_options opt = {.skip_special = true, .lead = QN_LEAD_KEEP};
    QN_TRY(qn_detok_open(&s->detok, qn_model_tokenizer(e->model), opt, err));
    s->matched = qn_calloc(qn_stops_count(s->job->stops), sizeof *s->matched);
    if (!s->matched) return qn_fail(err, QN_E_NOMEM, "state of stop strings");
    /* What is held is bounded by the longest stop string, if not by a run of tokens without text. */
    qn_buf_init(&s->held, QN_EVENT_MAX_BYTES);
    return QN_OK;
}

qn_code qn_stream_init(const qn_engine *e, qn_stream *s, qn_err *err)
{
    const qn_job *j = s->job;
    const qn_request *r = j->req;
    s->cap_ids = r->n_prompt + j->max_new;
    if (s->cap_ids < r->tokens.n) s->cap_ids = r->tokens.n;
    s->ids = qn_calloc(s->cap_ids, sizeof *s->ids);
    if (!s->ids) return qn_fail(err, QN_E_NOMEM, "ids of a request: %u", s->cap_ids);
    memcpy(s->ids, qn_request_tokens(r), r->tokens.n * sizeof *s->ids);
    s->n_ids = r->tokens.n;
    s->n_new = r->tokens.n - r->n_prompt;
    if (!j->stops) return QN_OK;
    QN_TRY(init_text(e, s, err));
    qn_replay_text(s);
    return QN_OK;
}

void qn_stream_fini(qn_stream *s)
{
    qn_seq_close(s->seq);
    qn_free(s->ids);
    qn_detok_free(s->detok);
    qn_free(s->matched);
    qn_buf_fini(&s->held);
    s->seq = NULL;
    s->ids = NULL;
    s->detok = NULL;
    s->matched = NULL;
}
