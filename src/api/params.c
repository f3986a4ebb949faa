/* SPDX-License-Identifier: Apache-2.0 */
/* params.c - the fields that every generating endpoint has: sampling, ceilings, stops.
 *
 * Types and ranges were checked by body.c; numbers that are ceilings are cut to 32 bits.
 *
 * Thread: one reader, one thread.
 */
#include <math.h>
#include <string.h>

#include "api/api_int.h"

static uint32_t clamp_u32(int64_t v)
{
    return v < 0 ? 0 : v > (int64_t)UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static uint32_t get_u32(const qn_reader *r, const char *name, uint32_t fallback)
{
    return clamp_u32(qn_json_int(qn_json_get(r->body, name), fallback));
}

static void get_sampling(const qn_reader *r, qn_request_sampling *s)
{
    const struct {
        const char *name;
        uint32_t bit;
        float *number;
        uint32_t *count;
    } fields[] = {
        {"temperature", QN_SET_TEMPERATURE, &s->temperature, NULL},
        {"top_p", QN_SET_TOP_P, &s->top_p, NULL},
        {"top_k", QN_SET_TOP_K, NULL, &s->top_k},
        {"min_p", QN_SET_MIN_P, &s->min_p, NULL},
        {"repetition_penalty", QN_SET_REPETITION, &s->repetition_penalty, NULL},
        {"presence_penalty", QN_SET_PRESENCE, &s->presence_penalty, NULL},
        {"frequency_penalty", QN_SET_FREQUENCY, &s->frequency_penalty, NULL},
        {"repetition_context_size", QN_SET_REPETITION_CONTEXT, NULL, &s->repetition_context},
        {"presence_context_size", QN_SET_PRESENCE_CONTEXT, NULL, &s->presence_context},
        {"frequency_context_size", QN_SET_FREQUENCY_CONTEXT, NULL, &s->frequency_context},
        {"xtc_probability", QN_SET_XTC, &s->xtc_probability, NULL},
        {"xtc_threshold", QN_SET_XTC, &s->xtc_threshold, NULL},
    };
    s->xtc_threshold = 0.1f; /* the bit stands for both values */
    for (size_t i = 0; i < QN_LEN(fields); i++) {
        const qn_json *v = qn_reader_get(r, fields[i].name);
        if (!v) continue;
        s->set |= fields[i].bit;
        if (fields[i].number) *fields[i].number = (float)qn_json_num(v, 0);
        if (fields[i].count) *fields[i].count = clamp_u32(qn_json_int(v, 0));
    }
    const qn_json *seed = qn_reader_get(r, "seed");
    s->has_seed = seed != NULL;
    s->seed = (uint64_t)qn_json_int(seed, 0);
}

static qn_code get_ceilings(qn_reader *r, qn_api_params *p)
{
    const qn_json *first = qn_reader_get(r, "max_completion_tokens");
    const qn_json *second = qn_reader_get(r, "max_tokens");
    const qn_json *best_of = qn_reader_get(r, "best_of");
    if (first || second) {
        p->sampling.set |= QN_SET_MAX_TOKENS;
        p->max_tokens = clamp_u32(qn_json_int(first ? first : second, 0));
    }
    if (first && second && qn_json_int(first, 0) != qn_json_int(second, 0))
        QN_TRY(qn_api_warn(r->warnings, r->arena, r->error,
                           "'max_tokens' was ignored: max_completion_tokens goes first"));
    p->min_tokens = get_u32(r, "min_tokens", 0);
    if ((first || second) && p->min_tokens > p->max_tokens)
        return qn_api_fail(r->error, QN_API_BAD_VALUE, "min_tokens",
                           "min_tokens must be at most %u, which max_tokens is", p->max_tokens);
    p->n = get_u32(r, "n", 1);
    if (best_of && qn_json_int(best_of, 0) != p->n)
        return qn_api_fail(r->error, QN_API_UNSUPPORTED, "best_of",
                           "best_of is not supported, except as many as n");
    return QN_OK;
}

static qn_code get_logprobs(qn_reader *r, qn_api_params *p, qn_api_endpoint endpoint)
{
    p->logprobs = -1;
    if (endpoint == QN_API_TEXT) {
        p->logprobs = (int32_t)qn_json_int(qn_reader_get(r, "logprobs"), -1);
        return QN_OK;
    }
    const qn_json *on = qn_reader_get(r, "logprobs");
    const int64_t top = qn_json_int(qn_reader_get(r, "top_logprobs"), -1);
    if (on && !qn_json_bool(on, false) && top > 0)
        return qn_api_fail(r->error, QN_API_BAD_VALUE, "top_logprobs",
                           "top_logprobs needs logprobs to be true");
    if (qn_json_bool(on, false)) p->logprobs = 0;
    if (top > 0) p->logprobs = (int32_t)top;
    return QN_OK;
}

static qn_code bad_bias(qn_reader *r, qn_api_kind kind)
{
    return qn_api_fail(r->error, kind, "logit_bias", "logit_bias must be a dict of int to float");
}

static qn_code get_biases(qn_reader *r, qn_api_params *p)
{
    const qn_json *object = qn_reader_get(r, "logit_bias"), *value = NULL;
    const size_t n = qn_json_len(object);
    const void *it = NULL;
    const char *key = NULL;
    size_t i = 0;
    if (!n) return QN_OK;
    if (n > QN_REQUEST_MAX_BIASES)
        return qn_api_fail(r->error, QN_API_TOO_MANY, "logit_bias",
                           "logit_bias: %zu entries, at most %d", n, QN_REQUEST_MAX_BIASES);
    quern_bias *biases = QN_ARENA_NEW(r->arena, quern_bias, n);
    if (!biases) return qn_reader_nomem(r);
    for (; qn_json_next(object, &it, &key, &value); i++) {
        const qn_str digits = qn_str_z(key);
        uint64_t id = 0;
        /* One spelling a number, so that keys which differ are tokens which differ. */
        const bool plain = digits.n == 1 || key[0] != '0';
        if (!qn_str_parse_u64(&id, digits) || !plain || id > UINT32_MAX)
            return bad_bias(r, QN_API_BAD_VALUE);
        if (qn_json_type_of(value) != QN_JSON_INT && qn_json_type_of(value) != QN_JSON_REAL)
            return bad_bias(r, QN_API_BAD_TYPE);
        biases[i] = (quern_bias){(uint32_t)id, (float)qn_json_num(value, 0)};
        if (!isfinite(biases[i].bias)) return bad_bias(r, QN_API_BAD_VALUE);
    }
    p->biases = biases;
    p->n_biases = n;
    return QN_OK;
}

/* One stop text behind those that are there; empty ones are dropped. */
static qn_code add_stop(qn_reader *r, const char **stops, size_t *n, const qn_json *value)
{
    size_t bytes = 0;
    qn_str copy;
    const char *text = qn_json_str(value, &bytes);
    if (!text)
        return qn_api_fail(r->error, QN_API_BAD_TYPE, "stop",
                           "stop must be of type string or array of strings");
    if (memchr(text, '\0', bytes))
        return qn_api_fail(r->error, QN_API_BAD_VALUE, "stop", "stop may not hold a NUL");
    if (!bytes) return QN_OK;
    QN_TRY(qn_reader_copy(r, &copy, text, bytes));
    stops[(*n)++] = copy.p;
    return QN_OK;
}

static qn_code get_stops(qn_reader *r, qn_api_params *p)
{
    const qn_json *stop = qn_reader_get(r, "stop"), *ids = qn_reader_get(r, "stop_token_ids");
    const bool many = qn_json_type_of(stop) == QN_JSON_ARRAY;
    const size_t len = many ? qn_json_len(stop) : 1;
    if (ids)
        QN_TRY(qn_reader_tokens(r, &p->stop_ids, &p->n_stop_ids, ids, "stop_token_ids",
                                QN_REQUEST_MAX_STOPS));
    if (!stop || !len) return QN_OK;
    if (len > QN_REQUEST_MAX_STOPS)
        return qn_api_fail(r->error, QN_API_TOO_MANY, "stop", "stop: %zu texts, at most %d", len,
                           QN_REQUEST_MAX_STOPS);
    const char **stops = QN_ARENA_NEW(r->arena, const char *, len);
    if (!stops) return qn_reader_nomem(r);
    for (size_t i = 0; i < len; i++)
        QN_TRY(add_stop(r, stops, &p->n_stops, many ? qn_json_at(stop, i) : stop));
    p->stops = stops;
    return QN_OK;
}

static qn_code get_stream(qn_reader *r, qn_api_params *p)
{
    const qn_json *options = qn_reader_get(r, "stream_options"), *value = NULL;
    const void *it = NULL;
    const char *key = NULL;
    p->stream = qn_reader_bool(r, "stream", false);
    if (options && !p->stream)
        return qn_api_warn(r->warnings, r->arena, r->error,
                           "'stream_options' was ignored: this is no stream");
    while (qn_json_next(options, &it, &key, &value)) {
        const qn_json_type type = qn_json_type_of(value);
        if (strcmp(key, "include_usage") == 0 && type == QN_JSON_BOOL)
            p->include_usage = qn_json_bool(value, false);
        else if (strcmp(key, "include_usage") == 0 && type != QN_JSON_NULL)
            return qn_api_fail(r->error, QN_API_BAD_TYPE, "stream_options.include_usage",
                               "stream_options.include_usage must be of type bool");
        else if (type != QN_JSON_NULL && type != QN_JSON_BOOL)
            QN_TRY(qn_api_warn(r->warnings, r->arena, r->error,
                               "'stream_options.%.64s' is not a known field: ignored", key));
        else if (type == QN_JSON_BOOL && qn_json_bool(value, false))
            QN_TRY(qn_api_warn(r->warnings, r->arena, r->error,
                               "'stream_options.%.64s' was ignored: no effect", key));
    }
    return QN_OK;
}

qn_code qn_reader_params(qn_reader *r, qn_api_params *out, qn_api_endpoint endpoint)
{
    QN_TRY(qn_reader_str(r, &out->model, "model"));
    QN_TRY(get_stream(r, out));
    get_sampling(r, &out->sampling);
    QN_TRY(get_ceilings(r, out));
    QN_TRY(get_logprobs(r, out, endpoint));
    QN_TRY(get_biases(r, out));
    QN_TRY(get_stops(r, out));
    out->ignore_eos = qn_reader_bool(r, "ignore_eos", false);
    out->no_cache = !qn_reader_bool(r, "cache_prompt", true);
    return QN_OK;
}
