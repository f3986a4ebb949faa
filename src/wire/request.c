/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - building and checking requests. The builder ends by reading what it built, so the rules
 * stand in one place: the reader. */
#include "wire/request.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/wire_int.h"

enum { MAX_TEXT = 1 << 16, MAX_NAME = 4096, MAX_STATE = 1 << 16 };

void qn_request_in_init(qn_request_in *in)
{
    *in = (qn_request_in){.n_choices = 1, .logprobs = -1};
}

static qn_wire_ref ref_at(const qn_request *r, qn_wire_ref list, uint32_t i)
{
    return ((const qn_wire_ref *)qn_wire_at(r, list))[i];
}

static const qn_request_adapter *adapter_at(const qn_request *r, uint32_t i)
{
    return (const qn_request_adapter *)qn_wire_at(r, r->adapters) + i;
}

qn_str qn_request_stop_text(const qn_request *r, uint32_t i)
{
    QN_ASSERT(i < r->stop_text.n);
    const qn_wire_ref ref = ref_at(r, r->stop_text, i);
    return (qn_str){qn_wire_at(r, ref), ref.n};
}

qn_str qn_request_adapter_name(const qn_request *r, uint32_t i)
{
    QN_ASSERT(i < r->adapters.n);
    const qn_wire_ref ref = adapter_at(r, i)->name;
    return (qn_str){qn_wire_at(r, ref), ref.n};
}

float qn_request_adapter_scale(const qn_request *r, uint32_t i)
{
    QN_ASSERT(i < r->adapters.n);
    return adapter_at(r, i)->scale;
}

/* A field that is not set must be zero: equal requests are equal bytes. */
static qn_code number(const qn_walk *w, const char *field, float v, float lo, float hi, bool set)
{
    return set ? qn_wire_number(w, field, v, lo, hi) : qn_wire_number(w, field, v, 0, 0);
}

static qn_code check_sampling(const qn_walk *w, const qn_request_sampling *s)
{
    const uint32_t b = s->set;
    QN_TRY(qn_wire_range(w, "sampling.set", b, 0, QN_SET_ALL));
    QN_TRY(qn_wire_range(w, "has_seed", s->has_seed, 0, 1));
    if (!s->has_seed && s->seed) return qn_wire_bad(w, "seed without has_seed", s->seed, 0);
    QN_TRY(number(w, "temperature", s->temperature, 0, FLT_MAX, b & QN_SET_TEMPERATURE));
    QN_TRY(number(w, "top_p", s->top_p, 0, 1, b & QN_SET_TOP_P));
    QN_TRY(number(w, "min_p", s->min_p, 0, 1, b & QN_SET_MIN_P));
    QN_TRY(
        number(w, "repetition_penalty", s->repetition_penalty, 0, FLT_MAX, b & QN_SET_REPETITION));
    QN_TRY(
        number(w, "presence_penalty", s->presence_penalty, -FLT_MAX, FLT_MAX, b & QN_SET_PRESENCE));
    QN_TRY(number(w, "frequency_penalty", s->frequency_penalty, -FLT_MAX, FLT_MAX,
                  b & QN_SET_FREQUENCY));
    QN_TRY(number(w, "xtc_probability", s->xtc_probability, 0, 1, b & QN_SET_XTC));
    QN_TRY(number(w, "xtc_threshold", s->xtc_threshold, 0, 1, b & QN_SET_XTC));
    if (!(b & QN_SET_TOP_K) && s->top_k) return qn_wire_bad(w, "unset top_k", s->top_k, 0);
    if (!(b & QN_SET_REPETITION_CONTEXT) && s->repetition_context)
        return qn_wire_bad(w, "unset repetition_context", s->repetition_context, 0);
    if (!(b & QN_SET_PRESENCE_CONTEXT) && s->presence_context)
        return qn_wire_bad(w, "unset presence_context", s->presence_context, 0);
    if (!(b & QN_SET_FREQUENCY_CONTEXT) && s->frequency_context)
        return qn_wire_bad(w, "unset frequency_context", s->frequency_context, 0);
    return QN_OK;
}

static qn_code check_fields(const qn_walk *w, const qn_request *r)
{
    if (r->head.kind) return qn_wire_bad(w, "kind", r->head.kind, 0);
    QN_TRY(qn_wire_range(w, "flags", r->flags, 0, QN_REQUEST_FLAGS));
    QN_TRY(qn_wire_range(w, "priority", r->priority, -QN_REQUEST_MAX_PRIORITY,
                         QN_REQUEST_MAX_PRIORITY));
    QN_TRY(qn_wire_range(w, "n_choices", r->n_choices, 1, QN_REQUEST_MAX_CHOICES));
    QN_TRY(qn_wire_range(w, "logprobs", r->logprobs, -1, QN_REQUEST_MAX_LOGPROBS));
    QN_TRY(check_sampling(w, &r->sampling));
    if (!qn_request_is_set(r, QN_SET_MAX_TOKENS))
        return r->max_tokens ? qn_wire_bad(w, "unset max_tokens", r->max_tokens, 0) : QN_OK;
    return qn_wire_range(w, "min_tokens", r->min_tokens, 0, r->max_tokens);
}

static qn_code take_biases(qn_walk *w, const qn_request *r)
{
    QN_TRY(qn_wire_take(w, "biases", r->biases, sizeof(qn_request_bias), QN_REQUEST_MAX_BIASES));
    for (uint32_t i = 0; i < r->biases.n; i++) {
        const qn_request_bias *b = qn_request_biases(r) + i;
        QN_TRY(qn_wire_number(w, "bias", b->bias, -FLT_MAX, FLT_MAX));
        if (i && b->token <= b[-1].token)
            return qn_fail(w->err, QN_E_FORMAT, "%s: bias %u is for token %u, expected above %u",
                           w->what, i, b->token, b[-1].token);
    }
    return QN_OK;
}

static qn_code take_stop_text(qn_walk *w, const qn_request *r)
{
    QN_TRY(
        qn_wire_take(w, "stop strings", r->stop_text, sizeof(qn_wire_ref), QN_REQUEST_MAX_STOPS));
    for (uint32_t i = 0; i < r->stop_text.n; i++) {
        const qn_wire_ref ref = ref_at(r, r->stop_text, i);
        if (ref.n == 0) return qn_wire_bad(w, "bytes of a stop string", 0, 1);
        QN_TRY(qn_wire_take_text(w, "stop string", ref, MAX_TEXT));
    }
    return QN_OK;
}

static qn_code take_adapters(qn_walk *w, const qn_request *r)
{
    QN_TRY(qn_wire_take(w, "adapters", r->adapters, sizeof(qn_request_adapter),
                        QN_REQUEST_MAX_ADAPTERS));
    for (uint32_t i = 0; i < r->adapters.n; i++) {
        const qn_request_adapter *a = adapter_at(r, i);
        if (a->name.n == 0) return qn_wire_bad(w, "bytes of an adapter name", 0, 1);
        if (a->reserved) return qn_wire_bad(w, "reserved", a->reserved, 0);
        QN_TRY(qn_wire_number(w, "adapter scale", a->scale, -FLT_MAX, FLT_MAX));
        QN_TRY(qn_wire_take_text(w, "adapter name", a->name, MAX_NAME));
    }
    return QN_OK;
}

static qn_code take_media(qn_walk *w, const qn_request *r)
{
    QN_TRY(qn_wire_take(w, "media", r->media, sizeof(qn_request_media), QN_REQUEST_MAX_MEDIA));
    uint32_t last = 0;
    for (uint32_t i = 0; i < r->media.n; i++) {
        const qn_request_media *m = qn_request_medias(r) + i;
        if (m->begin < last || m->end <= m->begin || m->end > r->n_prompt)
            return qn_fail(w->err, QN_E_FORMAT,
                           "%s: media %u is tokens %u to %u, expected within %u to %u", w->what, i,
                           m->begin, m->end, last, r->n_prompt);
        last = m->end;
    }
    return QN_OK;
}

qn_code qn_request_read(const qn_request **out, const void *bytes, size_t n, qn_err *err)
{
    qn_walk w = {.what = "request", .err = err};
    *out = NULL;
    QN_TRY(qn_wire_open(&w, bytes, n, QN_REQUEST_MAGIC, QN_REQUEST_VERSION, QN_REQUEST_MAX_BYTES));
    if (n < sizeof(qn_request)) return qn_wire_bad(&w, "bytes", n, sizeof(qn_request));
    const qn_request *r = bytes;
    w.pos = sizeof *r;
    QN_TRY(check_fields(&w, r));
    QN_TRY(qn_wire_take(&w, "tokens", r->tokens, sizeof(uint32_t), QN_REQUEST_MAX_TOKENS));
    QN_TRY(qn_wire_range(&w, "n_prompt", r->n_prompt, 1, r->tokens.n));
    QN_TRY(take_biases(&w, r));
    QN_TRY(qn_wire_take(&w, "stop ids", r->stop_ids, sizeof(uint32_t), QN_REQUEST_MAX_STOPS));
    QN_TRY(take_stop_text(&w, r));
    QN_TRY(take_adapters(&w, r));
    QN_TRY(take_media(&w, r));
    QN_TRY(qn_wire_take(&w, "state", r->state, 1, MAX_STATE));
    QN_TRY(qn_wire_done(&w));
    *out = r;
    return QN_OK;
}

static int by_token(const void *a, const void *b)
{
    const uint32_t x = ((const qn_request_bias *)a)->token, y = ((const qn_request_bias *)b)->token;
    return (x > y) - (x < y);
}

/* Writes `record` over element i of a list that is in the buffer already. */
static void patch(qn_buf *out, size_t start, qn_wire_ref list, size_t i, const void *record,
                  size_t size)
{
    memcpy(out->data + start + list.at + i * size, record, size);
}

static qn_code put_stop_text(qn_buf *out, size_t start, qn_request *r, const qn_request_in *in,
                             qn_err *err)
{
    qn_wire_ref ref = {0, 0};
    const qn_wire_ref none[QN_REQUEST_MAX_STOPS] = {{0, 0}};
    QN_TRY(qn_wire_put(out, start, &r->stop_text, none, in->n_stop_text, sizeof ref, err));
    for (size_t i = 0; i < in->n_stop_text; i++) {
        QN_TRY(qn_wire_put(out, start, &ref, in->stop_text[i].p, in->stop_text[i].n, 1, err));
        patch(out, start, r->stop_text, i, &ref, sizeof ref);
    }
    return QN_OK;
}

static qn_code put_adapters(qn_buf *out, size_t start, qn_request *r, const qn_request_in *in,
                            qn_err *err)
{
    const qn_request_adapter none[QN_REQUEST_MAX_ADAPTERS] = {{.scale = 0}};
    QN_TRY(qn_wire_put(out, start, &r->adapters, none, in->n_adapters, sizeof none[0], err));
    for (size_t i = 0; i < in->n_adapters; i++) {
        qn_request_adapter a = {.scale = in->adapter_scales ? in->adapter_scales[i] : 1.0f};
        QN_TRY(qn_wire_put(out, start, &a.name, in->adapters[i].p, in->adapters[i].n, 1, err));
        patch(out, start, r->adapters, i, &a, sizeof a);
    }
    return QN_OK;
}

static qn_request fixed_part(const qn_request_in *in)
{
    qn_request r;
    memset(&r, 0, sizeof r);
    r.head = (qn_wire_head){.magic = QN_REQUEST_MAGIC, .version = QN_REQUEST_VERSION};
    r.id = in->id;
    r.cache_space = in->cache_space;
    r.flags = in->flags;
    r.priority = in->priority;
    r.credits = in->credits;
    r.n_choices = in->n_choices;
    r.max_tokens = in->max_tokens;
    r.min_tokens = in->min_tokens;
    r.logprobs = in->logprobs;
    r.n_prompt = in->n_prompt;
    if (r.n_prompt == 0 && in->n_tokens <= UINT32_MAX) r.n_prompt = (uint32_t)in->n_tokens;
    r.sampling = in->sampling;
    return r;
}

/* Refused before a byte of an array is read: a wild count must not be followed. */
static qn_code check_counts(const qn_request_in *in, qn_err *err)
{
    const struct {
        const char *field;
        size_t n, most;
    } lists[] = {
        {"tokens", in->n_tokens, QN_REQUEST_MAX_TOKENS},
        {"biases", in->n_biases, QN_REQUEST_MAX_BIASES},
        {"stop ids", in->n_stop_ids, QN_REQUEST_MAX_STOPS},
        {"stop strings", in->n_stop_text, QN_REQUEST_MAX_STOPS},
        {"adapters", in->n_adapters, QN_REQUEST_MAX_ADAPTERS},
        {"media", in->n_media, QN_REQUEST_MAX_MEDIA},
        {"bytes of sampler state", in->state_bytes, MAX_STATE},
    };
    for (size_t i = 0; i < QN_LEN(lists); i++)
        if (lists[i].n > lists[i].most)
            return qn_fail(err, QN_E_LIMIT, "request: %zu %s, limit %zu", lists[i].n,
                           lists[i].field, lists[i].most);
    return QN_OK;
}

static qn_code put_all(qn_buf *out, size_t start, const qn_request_in *in, qn_err *err)
{
    qn_request r = fixed_part(in);
    const qn_request *checked = NULL;
    QN_TRY(check_counts(in, err));
    QN_TRY(qn_wire_start(out, &r, sizeof r, err));
    QN_TRY(qn_wire_put(out, start, &r.tokens, in->tokens, in->n_tokens, sizeof(uint32_t), err));
    QN_TRY(
        qn_wire_put(out, start, &r.biases, in->biases, in->n_biases, sizeof(qn_request_bias), err));
    if (r.biases.n)
        qsort(out->data + start + r.biases.at, r.biases.n, sizeof(qn_request_bias), by_token);
    QN_TRY(
        qn_wire_put(out, start, &r.stop_ids, in->stop_ids, in->n_stop_ids, sizeof(uint32_t), err));
    QN_TRY(put_stop_text(out, start, &r, in, err));
    QN_TRY(put_adapters(out, start, &r, in, err));
    QN_TRY(
        qn_wire_put(out, start, &r.media, in->media, in->n_media, sizeof(qn_request_media), err));
    QN_TRY(qn_wire_put(out, start, &r.state, in->state, in->state_bytes, 1, err));
    memcpy(out->data + start, &r, sizeof r);
    QN_TRY(qn_wire_seal(out, start, QN_REQUEST_MAX_BYTES, err));
    return qn_request_read(&checked, out->data + start, out->len - start, err);
}

qn_code qn_request_build(qn_buf *out, const qn_request_in *in, qn_err *err)
{
    const size_t start = out->len;
    return qn_wire_verdict(out, start, put_all(out, start, in, err), err);
}
