/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - requests, for the public: built and submitted here; events wait in a ring that grows
 * until somebody takes them, and become text on the side of whoever takes them.
 *
 * The ring's lock is held for a copy of one record only, so a slow reader never holds up the engine. */
#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "lib/lib_int.h"
#include "sample/sample.h"
#include "text/detok.h"
#include "wire/codec.h"

enum { FIRST_RECORDS = 64, MOST_FIRST_RECORDS = 256 };

typedef struct record { /* an event as it waits; text is made later */
    quern_event_kind kind;
    uint32_t choice, index, token, flags, cut_bytes;
    float logprob;
    uint32_t finish, stop_text, n_top;
    uint32_t prompt, cached, completion;
    quern_code code;
    uint64_t seed, time_ns;
} record;

struct quern_request {
    quern_engine *engine;
    uint64_t id;
    uint32_t n_choices;
    qn_detok **detok; /* [n_choices]; NULL: the model has no tokenizer, there is no text */
    quern_event_fn *fn;
    void *ctx;
    quern_event event; /* what was given last */
    quern_top *top;    /* [top_cap] of the same */
    uint32_t top_cap;  /* likeliest tokens an event may carry */
    bool told_loss;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    record *ring;
    quern_top *tops; /* [cap][top_cap], beside the ring */
    size_t head, n, cap;
    uint32_t n_ended; /* choices whose last event came; all of them after an error */
    bool lost;        /* no memory for a record: the rest is not kept */
    char msg[240];
};

/* -- events ------------------------------------------------------------------------------------ */

static record record_of(const qn_event_head *e, char msg[240])
{
    record r = {.choice = e->choice,
                .index = e->index,
                .stop_text = QUERN_NO_STOP_TEXT,
                .time_ns = qn_clock_ns()};
    if (e->head.kind == QN_EVENT_TOKEN) {
        const qn_event_token *t = (const void *)e;
        r.kind = QUERN_EVENT_TOKEN;
        r.token = t->token;
        r.flags = t->flags;
        r.cut_bytes = t->cut_bytes;
        r.logprob = t->flags & QN_EVENT_HAS_LOGPROB ? t->logprob : 0.0f;
        r.n_top = t->top.n;
    } else if (e->head.kind == QN_EVENT_DONE) {
        const qn_event_done *d = (const void *)e;
        r.kind = QUERN_EVENT_DONE;
        r.finish = d->finish;
        r.stop_text = d->stop_text; /* UINT32_MAX in both when none matched */
        r.seed = d->seed;
        r.prompt = d->usage.prompt;
        r.cached = d->usage.cached;
        r.completion = d->usage.completion;
    } else {
        const qn_event_error *x = (const void *)e;
        const qn_str text = qn_event_msg(x);
        r.kind = QUERN_EVENT_ERROR;
        r.code = (quern_code)x->code;
        r.prompt = x->usage.prompt;
        r.cached = x->usage.cached;
        r.completion = x->usage.completion;
        snprintf(msg, 240, "%.*s", QN_STR_ARG(text));
    }
    return r;
}

/* The likeliest tokens that come with an event of this request. */
static void copy_tops(quern_top *to, const quern_request *r, const qn_event_head *e)
{
    if (e->head.kind != QN_EVENT_TOKEN) return;
    const qn_event_token *t = (const void *)e;
    const qn_event_top *from = qn_event_tops(t);
    QN_ASSERT(t->top.n <= r->top_cap);
    for (uint32_t i = 0; i < t->top.n; i++) to[i] = (quern_top){from[i].token, from[i].logprob};
}

/* The text that an event makes certain; the engine has held back tokens for as long as they might
 * have been part of a stop string. */
static qn_str text_of(quern_request *r, const record *k)
{
    qn_str text = {"", 0};
    qn_detok *d = r->detok[k->choice];
    if (!d) return text;
    if (k->kind == QUERN_EVENT_TOKEN && !(k->flags & (QN_EVENT_IS_STOP | QN_EVENT_OF_PROMPT))) {
        text = qn_detok_push(d, k->token);
        text.n -= k->cut_bytes < text.n ? k->cut_bytes : text.n;
    }
    if (k->kind == QUERN_EVENT_DONE && k->stop_text == QUERN_NO_STOP_TEXT)
        text = qn_detok_flush(d, k->finish == QN_FINISH_STOP);
    return text;
}

static const quern_event *event_of(quern_request *r, const record *k)
{
    QN_ASSERT(k->choice < r->n_choices);
    const qn_str text = text_of(r, k);
    r->event = (quern_event){
        .kind = k->kind,
        .choice = k->choice,
        .index = k->index,
        .token = k->token,
        .logprob = k->logprob,
        .is_stop = (k->flags & QN_EVENT_IS_STOP) != 0,
        .text = text.n ? text.p : "",
        .text_n = text.n,
        .finish = (quern_finish)k->finish,
        .prompt_tokens = k->prompt,
        .cached_tokens = k->cached,
        .completion_tokens = k->completion,
        .seed = k->seed,
        .time_ns = k->time_ns,
        .code = k->code,
        .msg = k->kind == QUERN_EVENT_ERROR ? r->msg : NULL,
        .top = k->n_top ? r->top : NULL,
        .n_top = k->n_top,
        .is_prompt = (k->flags & QN_EVENT_OF_PROMPT) != 0,
        .stop_text = k->stop_text,
    };
    return &r->event;
}

/* Twice the room. Under the lock. */
static bool grow(quern_request *r)
{
    record *ring = qn_calloc(2 * r->cap, sizeof *ring);
    quern_top *tops = qn_calloc(2 * r->cap * r->top_cap + 1, sizeof *tops);
    if (!ring || !tops) {
        qn_free(ring);
        qn_free(tops);
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        const size_t from = (r->head + i) % r->cap;
        ring[i] = r->ring[from];
        memcpy(tops + i * r->top_cap, r->tops + from * r->top_cap, r->top_cap * sizeof *tops);
    }
    qn_free(r->ring);
    qn_free(r->tops);
    r->ring = ring;
    r->tops = tops;
    r->head = 0;
    r->cap *= 2;
    return true;
}

/* Under the lock. */
static bool keep(quern_request *r, const record *k, const qn_event_head *e)
{
    if (r->n == r->cap && !grow(r)) return false;
    const size_t at = (r->head + r->n++) % r->cap;
    r->ring[at] = *k;
    copy_tops(r->tops + at * r->top_cap, r, e);
    return true;
}

/* On the engine's thread. */
static void on_event(void *ctx, const qn_event_head *e)
{
    quern_request *r = ctx;
    const record k = record_of(e, r->msg);
    if (r->fn) {
        copy_tops(r->top, r, e);
        r->fn(r->ctx, event_of(r, &k));
    }
    pthread_mutex_lock(&r->lock);
    if (!r->fn && !r->lost && !keep(r, &k, e)) r->lost = true;
    if (k.kind == QUERN_EVENT_DONE) r->n_ended++;
    if (k.kind == QUERN_EVENT_ERROR) r->n_ended = r->n_choices;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* -- opening ----------------------------------------------------------------------------------- */

static qn_code within(const char *field, float v, float lo, float hi, qn_err *err)
{
    if (v >= lo && v <= hi) return QN_OK; /* NaN fails */
    return qn_fail(err, QN_E_INVAL, "%s is %g, expected %g to %g", field, (double)v, (double)lo,
                   (double)hi);
}

static qn_code check_sampling(const quern_request_options *o, qn_err *err)
{
    QN_TRY(within("temperature", o->temperature, 0, FLT_MAX, err));
    QN_TRY(within("top_p", o->top_p, 0, 1, err));
    QN_TRY(within("min_p", o->min_p, 0, 1, err));
    QN_TRY(within("repetition_penalty", o->repetition_penalty, 0, FLT_MAX, err));
    QN_TRY(within("presence_penalty", o->presence_penalty, -FLT_MAX, FLT_MAX, err));
    QN_TRY(within("frequency_penalty", o->frequency_penalty, -FLT_MAX, FLT_MAX, err));
    QN_TRY(within("xtc_probability", o->xtc_probability, 0, 1, err));
    return within("xtc_threshold", o->xtc_threshold, 0, 0.5f, err);
}

static qn_code check_counts(const quern_request_options *o, qn_err *err)
{
    if (o->logprobs > 1)
        return qn_fail(err, QN_E_INVAL, "logprobs is %u, expected 0 or 1", o->logprobs);
    if (o->top_logprobs > QN_REQUEST_MAX_LOGPROBS)
        return qn_fail(err, QN_E_LIMIT, "top_logprobs is %u, expected at most %d", o->top_logprobs,
                       QN_REQUEST_MAX_LOGPROBS);
    if (o->top_logprobs && !o->logprobs)
        return qn_fail(err, QN_E_INVAL, "top_logprobs is %u, but logprobs is 0", o->top_logprobs);
    if (o->n_choices > QN_REQUEST_MAX_CHOICES)
        return qn_fail(err, QN_E_LIMIT, "n_choices is %u, expected at most %d", o->n_choices,
                       QN_REQUEST_MAX_CHOICES);
    if ((o->flags & QUERN_REQUEST_NO_TOKENS) && o->max_tokens)
        return qn_fail(err, QN_E_INVAL, "max_tokens is %u, but nothing is to be generated",
                       o->max_tokens);
    const bool bounded = o->max_tokens || (o->flags & QUERN_REQUEST_NO_TOKENS);
    if (bounded && o->min_tokens > o->max_tokens)
        return qn_fail(err, QN_E_INVAL, "min_tokens is %u, expected at most max_tokens, %u",
                       o->min_tokens, o->max_tokens);
    if (o->n_biases > QN_REQUEST_MAX_BIASES)
        return qn_fail(err, QN_E_LIMIT, "%zu biases, expected at most %d", o->n_biases,
                       QN_REQUEST_MAX_BIASES);
    return QN_OK;
}

static qn_code check(const quern_request_options *o, qn_err *err)
{
    const uint32_t known = QUERN_REQUEST_IGNORE_EOS | QUERN_REQUEST_NO_CACHE | QUERN_REQUEST_SEED |
                           QUERN_REQUEST_ECHO | QUERN_REQUEST_NO_TOKENS;
    if (o->flags & ~known)
        return qn_fail(err, QN_E_INVAL, "flags are %#x, known: %#x", o->flags, known);
    const uint32_t text_known = QUERN_TOKENIZE_SPECIAL | QUERN_TOKENIZE_MARKERS;
    if (o->text_flags & ~text_known)
        return qn_fail(err, QN_E_INVAL, "text_flags are %#x, known: %#x", o->text_flags,
                       text_known);
    if (o->n_tokens) QN_TRY(qn_lib_given(o->tokens, "tokens", err));
    if (o->text_n) QN_TRY(qn_lib_given(o->text, "text", err));
    if (o->n_stop_tokens) QN_TRY(qn_lib_given(o->stop_tokens, "stop_tokens", err));
    if (o->n_stop_texts) QN_TRY(qn_lib_given(o->stop_texts, "stop_texts", err));
    if (o->n_biases) QN_TRY(qn_lib_given(o->biases, "biases", err));
    if (o->n_tokens && o->text_n)
        return qn_fail(err, QN_E_INVAL, "the prompt is given as tokens and as text");
    QN_TRY(check_counts(o, err));
    QN_TRY(check_sampling(o, err));
    for (size_t i = 0; i < o->n_biases; i++)
        QN_TRY(within("a bias", o->biases[i].bias, -FLT_MAX, FLT_MAX, err));
    return QN_OK;
}

static void describe_sampling(qn_request_sampling *s, const quern_request_options *o)
{
    *s = (qn_request_sampling){.set = QN_SET_ALL,
                               .has_seed = (o->flags & QUERN_REQUEST_SEED) != 0,
                               .temperature = o->temperature,
                               .top_p = o->top_p,
                               .min_p = o->min_p,
                               .top_k = o->top_k,
                               .repetition_penalty = o->repetition_penalty,
                               .presence_penalty = o->presence_penalty,
                               .frequency_penalty = o->frequency_penalty,
                               .repetition_context = o->repetition_context,
                               .presence_context = o->presence_context,
                               .frequency_context = o->frequency_context,
                               .xtc_probability = o->xtc_probability,
                               .xtc_threshold = o->xtc_threshold};
    s->seed = s->has_seed ? o->seed : 0;
}

static qn_request_in describe(const quern_request *r, const quern_request_options *o,
                              const qn_ids *ids, const qn_str *stops, const qn_request_bias *biases)
{
    qn_request_in in;
    qn_request_in_init(&in);
    in.tokens = o->n_tokens ? o->tokens : ids->id;
    in.n_tokens = o->n_tokens ? o->n_tokens : ids->n;
    in.flags = (o->flags & QUERN_REQUEST_IGNORE_EOS ? QN_REQUEST_IGNORE_EOS : 0u) |
               (o->flags & QUERN_REQUEST_NO_CACHE ? QN_REQUEST_NO_CACHE : 0u) |
               (o->flags & QUERN_REQUEST_ECHO ? QN_REQUEST_ECHO : 0u);
    if ((o->flags & QUERN_REQUEST_ECHO) && o->logprobs) in.flags |= QN_REQUEST_PROMPT_LOGPROBS;
    in.priority = o->priority;
    in.n_choices = r->n_choices;
    in.max_tokens = o->max_tokens                        ? o->max_tokens
                    : o->flags & QUERN_REQUEST_NO_TOKENS ? 0
                                                         : r->engine->context;
    in.min_tokens = o->min_tokens < in.max_tokens ? o->min_tokens : in.max_tokens;
    in.logprobs = o->logprobs ? (int32_t)o->top_logprobs : -1;
    in.stop_ids = o->stop_tokens;
    in.n_stop_ids = o->n_stop_tokens;
    in.stop_text = stops;
    in.n_stop_text = o->n_stop_texts;
    in.biases = biases;
    in.n_biases = o->n_biases;
    describe_sampling(&in.sampling, o);
    return in;
}

static qn_code read_biases(qn_request_bias **out, const quern_request_options *o, qn_err *err)
{
    if (o->n_biases == 0) return QN_OK;
    *out = qn_calloc(o->n_biases, sizeof **out);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "%zu biases", o->n_biases);
    for (size_t i = 0; i < o->n_biases; i++)
        (*out)[i] = (qn_request_bias){o->biases[i].token, o->biases[i].bias};
    return QN_OK;
}

static qn_code read_stops(qn_str **out, const quern_request_options *o, qn_err *err)
{
    if (o->n_stop_texts == 0) return QN_OK;
    if (o->n_stop_texts > QN_REQUEST_MAX_STOPS)
        return qn_fail(err, QN_E_LIMIT, "%zu stop texts, expected at most %d", o->n_stop_texts,
                       QN_REQUEST_MAX_STOPS);
    *out = qn_calloc(o->n_stop_texts, sizeof **out);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "%zu stop texts", o->n_stop_texts);
    for (size_t i = 0; i < o->n_stop_texts; i++) {
        QN_TRY(qn_lib_given(o->stop_texts[i], "a stop text", err));
        if (!o->stop_texts[i][0])
            return qn_fail(err, QN_E_INVAL, "stop text %zu is empty, expected at least one byte",
                           i);
        (*out)[i] = qn_str_z(o->stop_texts[i]);
    }
    return QN_OK;
}

static qn_code tokenize(qn_ids *ids, const quern_request *r, const quern_request_options *o,
                        qn_err *err)
{
    const qn_model *m = r->engine->model->model;
    const qn_tokenizer *t = qn_model_tokenizer(m);
    if (o->n_tokens) return QN_OK;
    if (!t) return qn_fail(err, QN_E_UNSUPPORTED, "%s holds no tokenizer", qn_model_path(m));
    const qn_encode_options opt = {.add_special = (o->text_flags & QUERN_TOKENIZE_SPECIAL) != 0,
                                   .parse_special = (o->text_flags & QUERN_TOKENIZE_MARKERS) != 0};
    return qn_tokenizer_encode(t, ids, o->text_n ? o->text : "", o->text_n, opt, err);
}

/* Everything that the events will need is there before the first can come. */
static qn_code prepare(quern_request *r, const quern_request_options *o, qn_err *err)
{
    const qn_tokenizer *t = qn_model_tokenizer(r->engine->model->model);
    const uint64_t expected = (uint64_t)r->n_choices * ((uint64_t)o->max_tokens + 1);
    r->cap = o->max_tokens == 0              ? FIRST_RECORDS
             : expected < MOST_FIRST_RECORDS ? (size_t)expected
                                             : (size_t)MOST_FIRST_RECORDS;
    r->detok = qn_calloc(r->n_choices, sizeof *r->detok);
    r->top_cap = o->top_logprobs;
    if (r->fn) r->cap = 1;
    r->ring = qn_calloc(r->cap, sizeof *r->ring);
    r->tops = qn_calloc(r->cap * r->top_cap + 1, sizeof *r->tops);
    r->top = qn_calloc((size_t)r->top_cap + 1, sizeof *r->top);
    if (!r->detok || !r->ring || !r->tops || !r->top)
        return qn_fail(err, QN_E_NOMEM, "a request of %u", r->n_choices);
    const qn_detok_options opt = {.skip_special = true, .lead = QN_LEAD_KEEP};
    for (uint32_t i = 0; t && i < r->n_choices; i++)
        QN_TRY(qn_detok_open(&r->detok[i], t, opt, err));
    return QN_OK;
}

static qn_code submit(quern_request *r, const quern_request_options *o, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_ids ids = {0};
    qn_str *stops = NULL;
    qn_request_bias *biases = NULL;
    qn_buf block;
    qn_buf_init(&block, QN_REQUEST_MAX_BYTES);
    QN_TRY_OUT(read_stops(&stops, o, err));
    QN_TRY_OUT(read_biases(&biases, o, err));
    QN_TRY_OUT(tokenize(&ids, r, o, err));
    const qn_request_in in = describe(r, o, &ids, stops, biases);
    if (in.n_tokens == 0) {
        rc = o->text_n ? qn_fail(err, QN_E_INVAL, "the prompt's %zu bytes make no token", o->text_n)
                       : qn_fail(err, QN_E_INVAL, "the prompt is empty");
        goto out;
    }
    QN_TRY_OUT(qn_request_build(&block, &in, err));
    QN_TRY_OUT(qn_engine_submit(&r->id, atomic_load(&r->engine->engine), block.data, block.len,
                                on_event, r, err));
out:
    qn_buf_fini(&block);
    qn_ids_fini(&ids);
    qn_free(stops);
    qn_free(biases);
    return rc;
}

static void destroy(quern_request *r)
{
    for (uint32_t i = 0; r->detok && i < r->n_choices; i++) qn_detok_free(r->detok[i]);
    qn_free(r->detok);
    qn_free(r->ring);
    qn_free(r->tops);
    qn_free(r->top);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    qn_lib_engine_unref(r->engine);
    qn_free(r);
}

static void make_lock(quern_request *r)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&r->lock, NULL); /* cannot fail on Linux: nothing is allocated */
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
}

quern_code quern_request_recipe(quern_request_options *opt, const quern_model *m, quern_error *err)
{
    QN_TRY(qn_lib_given(opt, "options", err));
    QN_TRY(qn_lib_given(m, "model", err));
    if (opt->size < offsetof(quern_request_options, presence_penalty))
        return qn_fail(err, QN_E_INVAL, "request options: size is %zu, expected at least %zu",
                       opt->size, offsetof(quern_request_options, presence_penalty));
    const qn_sampler base = qn_sample_default();
    const quern_sampling_defaults *d = &m->defaults; /* what is unset is 0 */
    opt->temperature = d->set & QUERN_DEFAULT_TEMPERATURE ? d->temperature : base.temperature;
    opt->top_p = d->top_p;
    opt->top_k = d->top_k;
    opt->min_p = d->min_p;
    opt->repetition_penalty = d->repetition_penalty;
    return QN_OK;
}

quern_code quern_request_open(quern_request **out, quern_engine *e,
                              const quern_request_options *opt, quern_error *err)
{
    quern_request_options o;
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_given(e, "engine", err));
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "request", err));
    QN_TRY(check(&o, err));
    quern_request *r = qn_zalloc(sizeof *r);
    if (!r) return qn_fail(err, QN_E_NOMEM, "request handle");
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    r->engine = e;
    r->n_choices = o.n_choices ? o.n_choices : 1;
    r->fn = o.on_event;
    r->ctx = o.ctx;
    make_lock(r);
    qn_code rc = prepare(r, &o, err);
    if (rc == QN_OK) rc = submit(r, &o, err);
    if (rc == QN_OK)
        *out = r;
    else
        destroy(r);
    return rc;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* With the lock held, waits for a change; false when the time is over. */
static bool wait_change(quern_request *r, int timeout_ms, const struct timespec *until)
{
    if (timeout_ms == 0) return false;
    if (timeout_ms < 0) return pthread_cond_wait(&r->changed, &r->lock) == 0;
    return pthread_cond_timedwait(&r->changed, &r->lock, until) == 0;
}

static struct timespec deadline(int timeout_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const long long ns = t.tv_nsec + (timeout_ms > 0 ? timeout_ms : 0) * 1000000LL;
    t.tv_sec += (time_t)(ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

quern_code quern_request_next(const quern_event **out, quern_request *r, int timeout_ms,
                              quern_error *err)
{
    record k = {0};
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_given(r, "request", err));
    if (r->fn) return qn_fail(err, QN_E_INVAL, "this request gives its events to a callback");
    const struct timespec until = deadline(timeout_ms);
    pthread_mutex_lock(&r->lock);
    bool more = true;
    while (r->n == 0 && r->n_ended < r->n_choices && more)
        more = wait_change(r, timeout_ms, &until);
    const bool some = r->n != 0, ended = r->n_ended >= r->n_choices, lost = r->lost;
    if (some) {
        k = r->ring[r->head];
        memcpy(r->top, r->tops + r->head * r->top_cap, k.n_top * sizeof *r->top);
        r->head = (r->head + 1) % r->cap;
        r->n--;
    }
    pthread_mutex_unlock(&r->lock);
    if (lost && !ended) quern_request_cancel(r);
    if (!some && ended && lost && !r->told_loss) {
        r->told_loss = true;
        k = (record){.kind = QUERN_EVENT_ERROR,
                     .stop_text = QUERN_NO_STOP_TEXT,
                     .code = QN_E_NOMEM,
                     .time_ns = qn_clock_ns()};
        snprintf(r->msg, sizeof r->msg, "no memory for the events of this request");
    } else if (!some) {
        return ended ? qn_fail(err, QN_E_NOTFOUND, "the last event was given already")
                     : qn_fail(err, QN_E_AGAIN, "no event within %d ms", timeout_ms);
    }
    *out = event_of(r, &k);
    return QN_OK;
}

quern_code quern_request_wait(quern_request *r, int timeout_ms, quern_error *err)
{
    QN_TRY(qn_lib_given(r, "request", err));
    const struct timespec until = deadline(timeout_ms);
    pthread_mutex_lock(&r->lock);
    bool more = true;
    while (r->n_ended < r->n_choices && more) more = wait_change(r, timeout_ms, &until);
    const bool ended = r->n_ended >= r->n_choices;
    pthread_mutex_unlock(&r->lock);
    return ended ? QN_OK : qn_fail(err, QN_E_AGAIN, "not done within %d ms", timeout_ms);
}

void quern_request_cancel(quern_request *r)
{
    qn_engine *e = r ? atomic_load(&r->engine->engine) : NULL;
    if (e) qn_engine_cancel(e, r->id);
}

void quern_request_free(quern_request *r)
{
    if (!r) return;
    quern_request_cancel(r);
    if (atomic_load(&r->engine->engine)) (void)quern_request_wait(r, -1, NULL);
    destroy(r);
}
