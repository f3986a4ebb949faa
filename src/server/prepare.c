/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - from a body to requests of the engine: read, template, tokenise, check against the model,
 * submit. On the worker's thread, one call after the other, so that a prompt of megabytes holds up no
 * stream. */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "server/server_int.h"

static qn_code no_memory(qn_api_error *e)
{
    return qn_api_fail(e, QN_API_NOMEM, NULL, "no memory for this request");
}

qn_code qn_task_tokenize(const uint32_t **ids, size_t *n, qn_task *j, qn_str text, uint32_t flags)
{
    qn_err err = {0};
    size_t cap = text.n + 8, count = 0;
    const quern_model *m = j->server->m.model;
    for (int pass = 0; pass < 2; pass++) {
        const qn_arena_mark mark = qn_arena_save(&j->arena);
        uint32_t *to = qn_arena_push(&j->arena, cap * sizeof *to, _Alignof(uint32_t));
        if (!to) return no_memory(&j->error);
        if (quern_tokenize(&count, m, text.n ? text.p : "", text.n, flags, to, cap, &err) != QN_OK)
            return qn_api_fail_lib(&j->error, &err);
        *ids = to;
        *n = count;
        if (count <= cap) return QN_OK;
        qn_arena_rewind(&j->arena, mark);
        cap = count;
    }
    return qn_api_fail(&j->error, QN_API_FAILED, NULL, "the tokenizer disagrees with itself");
}

static qn_code check_ids(qn_task *j, const uint32_t *ids, size_t n, const char *param)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= j->server->info.vocab)
            return qn_api_fail(&j->error, QN_API_BAD_VALUE, param,
                               "%s: token %u, expected below %u", param, ids[i],
                               j->server->info.vocab);
    return QN_OK;
}

/* -- sampling ---------------------------------------------------------------------------------- */

/* The request's seed or a fresh one below 2^53: JSON numbers of many clients end there. */
static qn_code seed_of(uint64_t *out, qn_task *j)
{
    qn_err err = {0};
    *out = j->params->sampling.seed;
    if (j->params->sampling.has_seed) return QN_OK;
    if (qn_rng_fresh_seed(out, &err) != QN_OK) return qn_api_fail_lib(&j->error, &err);
    *out &= (UINT64_C(1) << 53) - 1;
    return QN_OK;
}

static qn_code fill(quern_request_options *o, qn_task *j, qn_api_tristate thinking)
{
    const qn_api_params *p = j->params;
    qn_request_sampling s;
    qn_api_resolve(&s, &p->sampling, &j->server->m.flags, &j->server->recipe, thinking);
    o->temperature = s.temperature;
    o->top_p = s.top_p;
    o->top_k = s.top_k;
    o->min_p = s.min_p;
    o->repetition_penalty = s.repetition_penalty;
    o->presence_penalty = s.presence_penalty;
    o->frequency_penalty = s.frequency_penalty;
    o->repetition_context = s.repetition_context;
    o->presence_context = s.presence_context;
    o->frequency_context = s.frequency_context;
    o->xtc_probability = s.xtc_probability;
    o->xtc_threshold = s.xtc_threshold;
    o->flags = QUERN_REQUEST_SEED | (p->ignore_eos ? QUERN_REQUEST_IGNORE_EOS : 0u) |
               (p->no_cache ? QUERN_REQUEST_NO_CACHE : 0u);
    const bool said = (p->sampling.set & QN_SET_MAX_TOKENS) != 0;
    o->max_tokens = said ? p->max_tokens : j->server->m.max_tokens;
    if (o->max_tokens == 0 && (said || (j->server->m.flags.set & QN_SET_MAX_TOKENS)))
        o->flags |= QUERN_REQUEST_NO_TOKENS;
    o->min_tokens = p->min_tokens;
    o->logprobs = p->logprobs >= 0;
    o->top_logprobs = p->logprobs > 0 ? (uint32_t)p->logprobs : 0;
    o->n_choices = p->n;
    o->biases = p->biases;
    o->n_biases = p->n_biases;
    o->stop_texts = p->stops;
    o->n_stop_texts = p->n_stops;
    o->stop_tokens = p->stop_ids;
    o->n_stop_tokens = p->n_stop_ids;
    return seed_of(&o->seed, j);
}

static qn_code submit(qn_task *j, uint32_t at, quern_request_options *o, const uint32_t *ids,
                      size_t n)
{
    qn_err err = {0};
    qn_part *part = &j->parts[at];
    if (n == 0)
        return qn_api_fail(&j->error, QN_API_BAD_VALUE, "prompt",
                           "prompt: no tokens, expected at least one");
    if (n >= j->server->context) return qn_api_fail_context(&j->error, n, j->server->context);
    o->tokens = ids;
    o->n_tokens = n;
    o->on_event = qn_task_event;
    o->ctx = part;
    pthread_mutex_lock(&j->lock);
    part->open_choices = part->n_choices;
    j->open_parts++;
    pthread_mutex_unlock(&j->lock);
    if (quern_request_open(&part->request, j->server->m.engine, o, &err) == QN_OK) return QN_OK;
    pthread_mutex_lock(&j->lock);
    part->open_choices = 0;
    j->open_parts--;
    pthread_mutex_unlock(&j->lock);
    if (err.code == QN_E_AGAIN)
        return qn_api_fail(&j->error, QN_API_QUEUE_FULL, NULL, "too many requests wait");
    return qn_api_fail_lib(&j->error, &err);
}

static qn_code make_parts(qn_task *j, size_t n_parts)
{
    const uint32_t each = j->params->n;
    j->parts = qn_calloc(n_parts, sizeof *j->parts);
    j->choices = qn_calloc(n_parts * each, sizeof *j->choices);
    if (!j->parts || !j->choices) return no_memory(&j->error);
    for (uint32_t i = 0; i < n_parts; i++) {
        j->parts[i].job = j;
        j->parts[i].first_choice = i * each;
        j->parts[i].n_choices = each;
    }
    j->n_parts = (uint32_t)n_parts;
    j->n_choices = (uint32_t)n_parts * each;
    for (uint32_t i = 0; i < j->n_choices; i++) {
        qn_buf_init(&j->choices[i].text, (size_t)512 << 20);
        qn_buf_init(&j->choices[i].tokens, (size_t)512 << 20);
    }
    return QN_OK;
}

/* The frames' constant front, made last: it carries the warnings. */
static qn_code make_reply(qn_task *j)
{
    qn_err err = {0};
    uint64_t random[2] = {0, 0};
    for (size_t i = 0; i < 2; i++)
        if (qn_rng_fresh_seed(&random[i], &err) != QN_OK) return qn_api_fail_lib(&j->error, &err);
    qn_openai_make_id(j->id, j->endpoint, random);
    const qn_openai_reply reply = qn_task_reply(j);
    if (!j->params->stream) return QN_OK;
    if (qn_openai_stream_init(&j->stream, &reply, j->params->include_usage, &j->arena, &err) !=
        QN_OK)
        return qn_api_fail_lib(&j->error, &err);
    return QN_OK;
}

/* -- endpoints --------------------------------------------------------------------------------- */

static qn_code check_params(qn_task *j)
{
    const qn_api_params *p = j->params;
    QN_TRY(check_ids(j, p->stop_ids, p->n_stop_ids, "stop_token_ids"));
    for (size_t i = 0; i < p->n_biases; i++)
        QN_TRY(check_ids(j, &p->biases[i].token, 1, "logit_bias"));
    return QN_OK;
}

static qn_code detokenize(qn_str *out, qn_task *j, const uint32_t *ids, size_t n)
{
    qn_err err = {0};
    size_t size = 0;
    const quern_model *m = j->server->m.model;
    QN_TRY(check_ids(j, ids, n, j->endpoint == QN_API_DETOKENIZE ? "tokens" : "prompt"));
    if (quern_detokenize(&size, m, ids, n, NULL, 0, &err) != QN_OK)
        return qn_api_fail_lib(&j->error, &err);
    char *text = qn_arena_push(&j->arena, size + 1, 1);
    if (!text) return no_memory(&j->error);
    if (quern_detokenize(&size, m, ids, n, text, size, &err) != QN_OK)
        return qn_api_fail_lib(&j->error, &err);
    *out = qn_str_make(text, size);
    return QN_OK;
}

static qn_code prepare_text(qn_task *j, qn_str body)
{
    qn_api_text *in = QN_ARENA_NEW(&j->arena, qn_api_text, 1);
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    if (!in) return no_memory(&j->error);
    QN_TRY(qn_openai_read_text(in, body, &j->server->limits, &j->arena, &j->error));
    j->params = &in->params;
    j->warnings = &in->params.warnings;
    QN_TRY(check_params(j));
    QN_TRY(make_parts(j, in->n_prompts));
    QN_TRY(make_reply(j));
    QN_TRY(fill(&o, j, QN_API_UNSAID));
    if (in->echo && in->params.logprobs >= 0) o.flags |= QUERN_REQUEST_ECHO;
    if (in->echo && !(j->echoes = QN_ARENA_NEW(&j->arena, qn_str, in->n_prompts)))
        return no_memory(&j->error);
    for (uint32_t i = 0; i < in->n_prompts; i++) {
        const qn_api_text_prompt *p = &in->prompts[i];
        const uint32_t *ids = p->tokens;
        size_t n = p->n_tokens;
        if (n)
            QN_TRY(check_ids(j, ids, n, "prompt"));
        else
            QN_TRY(qn_task_tokenize(&ids, &n, j, p->text,
                                    QUERN_TOKENIZE_SPECIAL | QUERN_TOKENIZE_MARKERS));
        if (in->echo) {
            j->echoes[i] = p->text;
            if (p->n_tokens) QN_TRY(detokenize(&j->echoes[i], j, ids, n));
        }
        QN_TRY(submit(j, i, &o, ids, n));
    }
    return QN_OK;
}

static qn_code prepare_chat(qn_task *j, qn_str body)
{
    qn_api_chat *in = QN_ARENA_NEW(&j->arena, qn_api_chat, 1);
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    qn_api_tristate thinking = QN_API_UNSAID;
    const uint32_t *ids = NULL;
    size_t n = 0;
    if (!in) return no_memory(&j->error);
    QN_TRY(qn_openai_read_chat(in, body, &j->server->limits, &j->arena, &j->error));
    j->params = &in->params;
    j->warnings = &in->params.warnings;
    QN_TRY(check_params(j));
    QN_TRY(qn_chat_prompt(&ids, &n, j, &in->prompt, &thinking));
    QN_TRY(make_parts(j, 1));
    QN_TRY(make_reply(j));
    QN_TRY(fill(&o, j, thinking));
    return submit(j, 0, &o, ids, n);
}

static qn_code add_pieces(qn_openai_piece **out, qn_task *j, const uint32_t *ids, size_t n)
{
    qn_err err = {0};
    qn_openai_piece *p = QN_ARENA_NEW(&j->arena, qn_openai_piece, n + 1);
    if (!p) return no_memory(&j->error);
    for (size_t i = 0; i < n; i++) {
        if (qn_task_piece(&p[i].text, &j->arena, j->server->m.model, ids[i], &err) != QN_OK)
            return qn_api_fail_lib(&j->error, &err);
    }
    *out = p;
    return QN_OK;
}

static qn_code prepare_tokenize(qn_task *j, qn_str body)
{
    qn_err err = {0};
    qn_api_tokenize in;
    qn_api_tristate thinking = QN_API_UNSAID;
    const uint32_t *ids = NULL;
    size_t n = 0;
    qn_openai_piece *pieces = NULL;
    QN_TRY(qn_openai_read_tokenize(&in, body, &j->server->limits, &j->arena, &j->error));
    j->warnings = &in.warnings;
    if (in.is_chat)
        QN_TRY(qn_chat_prompt(&ids, &n, j, &in.prompt, &thinking));
    else
        QN_TRY(qn_task_tokenize(&ids, &n, j, in.text,
                                (in.add_special ? QUERN_TOKENIZE_SPECIAL : 0u) |
                                    (in.parse_special ? QUERN_TOKENIZE_MARKERS : 0u)));
    if (in.with_pieces) QN_TRY(add_pieces(&pieces, j, ids, n));
    if (qn_openai_write_tokens(&j->reply, ids, n, pieces, &in.warnings, &err) != QN_OK)
        return qn_api_fail_lib(&j->error, &err);
    return QN_OK;
}

static qn_code prepare_detokenize(qn_task *j, qn_str body)
{
    qn_err err = {0};
    qn_api_detokenize in;
    qn_str text = {0};
    QN_TRY(qn_openai_read_detokenize(&in, body, &j->server->limits, &j->arena, &j->error));
    QN_TRY(detokenize(&text, j, in.tokens, in.n_tokens));
    if (qn_openai_write_content(&j->reply, text, &in.warnings, &err) != QN_OK)
        return qn_api_fail_lib(&j->error, &err);
    return QN_OK;
}

qn_code qn_task_prepare(qn_task *j)
{
    qn_code rc;
    const qn_str body = qn_str_make(qn_buf_text(&j->body), j->body.len);
    if (j->endpoint == QN_API_CHAT)
        rc = prepare_chat(j, body);
    else if (j->endpoint == QN_API_TEXT)
        rc = prepare_text(j, body);
    else if (j->endpoint == QN_API_TOKENIZE)
        rc = prepare_tokenize(j, body);
    else
        rc = prepare_detokenize(j, body);
    if (rc != QN_OK || atomic_load(&j->gone))
        for (uint32_t i = 0; i < j->n_parts; i++)
            if (j->parts[i].request) quern_request_cancel(j->parts[i].request);
    if (rc != QN_OK && !j->error.status) (void)no_memory(&j->error);
    qn_buf_fini(&j->body);
    return rc;
}
