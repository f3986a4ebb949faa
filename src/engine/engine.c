/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - opens an engine, runs its thread, and is the door through which other threads reach it.
 *
 * Requests and cancels come by mailbox; statistics leave as a copy under a lock. Nothing else is shared
 * between the engine thread and the rest.
 *
 * Owner and thread: see engine.h.
 */
#include "engine/engine.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "engine/engine_int.h"

enum {
    MAX_SEQS = 4096,
    MAX_ROWS = 1 << 16,
    MAX_QUEUE = 1 << 20,
    SPARE_MAIL = 64,
    EVENT_ROOM = 4096,
    EDITS_A_ROW = 256
};

/* --- open ------------------------------------------------------------------------------------- */

static uint32_t blocks_for(uint32_t positions)
{
    return (positions + QN_KV_BLOCK - 1) / QN_KV_BLOCK;
}

static qn_code fill_options(qn_engine *e, const qn_engine_options *opt, qn_err *err)
{
    qn_engine_options *o = &e->opt;
    const uint32_t made_for = qn_model_get_desc(e->model)->context;
    *o = *opt;
    if (o->max_seqs == 0) o->max_seqs = QN_ENGINE_SEQS;
    if (o->max_rows == 0) o->max_rows = QN_ENGINE_ROWS;
    if (o->queue == 0) o->queue = QN_ENGINE_QUEUE;
    if (o->max_seqs > MAX_SEQS)
        return qn_fail(err, QN_E_LIMIT, "max_seqs is %u, expected at most %d", o->max_seqs,
                       MAX_SEQS);
    if (o->max_rows > MAX_ROWS)
        return qn_fail(err, QN_E_LIMIT, "max_rows is %u, expected at most %d", o->max_rows,
                       MAX_ROWS);
    if (o->queue > MAX_QUEUE)
        return qn_fail(err, QN_E_LIMIT, "queue is %u, expected at most %d", o->queue, MAX_QUEUE);
    if (o->context > made_for)
        return qn_fail(err, QN_E_LIMIT, "context is %u, the model was made for %u", o->context,
                       made_for);
    if (o->max_rows < o->max_seqs)
        o->max_rows = o->max_seqs; /* every completion advances each step */
    e->max_logits = o->max_seqs > QN_ENGINE_LOGITS ? o->max_seqs : QN_ENGINE_LOGITS;
    return QN_OK;
}

/* Every sequence to its end, but no more than a quarter of the memory there is and no more than the
 * room; yet one sequence of a context that was asked for. Memory is taken as blocks are used. */
static size_t default_budget(const qn_engine_options *o, uint32_t context, const qn_group_desc *g,
                             uint32_t n_groups)
{
    size_t block = 0, all = 0, one = 0;
    for (uint32_t i = 0; i < n_groups; i++)
        block += 2ull * QN_KV_BLOCK * g[i].n_layers * g[i].n_kv_heads * g[i].head_dim *
                 qn_kv_value_bytes(g[i].fmt);
    const uint64_t total = qn_memory_look().total;
    size_t most = total / 4 < SIZE_MAX ? (size_t)(total / 4) : SIZE_MAX;
    if (total == UINT64_MAX) most = (size_t)1 << 30;
    if (o->kv_room && o->kv_room < most) most = o->kv_room;
    /* One block more a sequence: the open one of a fork or of a hit is copied. */
    if (!qn_mul_size(&one, block, blocks_for(o->context ? context : 1) + 1)) return most;
    if (most < one) most = one;
    if (!qn_mul_size(&all, block, (size_t)o->max_seqs * (blocks_for(context) + 1))) return most;
    return all < most ? all : most;
}

static qn_code open_cache(qn_engine *e, qn_err *err)
{
    const qn_model_desc *d = qn_model_get_desc(e->model);
    qn_group_desc groups[QN_MAX_GROUPS];
    qn_code rc = QN_OK;
    uint32_t *layer_group = qn_calloc(d->n_layers, sizeof *layer_group);
    if (!layer_group) return qn_fail(err, QN_E_NOMEM, "layer groups");
    const uint32_t context = e->opt.context ? e->opt.context : d->context;
    qn_cache_options o = {.groups = groups,
                          .n_groups = qn_model_groups(e->model, e->opt.kv_fmt, groups, layer_group),
                          .n_layers = d->n_layers,
                          .layer_group = layer_group,
                          .max_positions = context};
    o.budget_bytes =
        e->opt.kv_budget ? e->opt.kv_budget : default_budget(&e->opt, context, groups, o.n_groups);
    memcpy(o.numerics, e->numerics, sizeof o.numerics);
    QN_TRY_OUT(qn_cache_open(&e->cache, e->dev, &o, err));
    if (e->opt.context > qn_cache_capacity(e->cache)) {
        rc = qn_fail(err, QN_E_LIMIT, "context is %u, the KV budget of %zu bytes holds %u",
                     e->opt.context, o.budget_bytes, qn_cache_capacity(e->cache));
        goto out;
    }
    e->opt.context = qn_cache_capacity(e->cache);
out:
    qn_free(layer_group);
    return rc;
}

static int by_id(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* What XTC must not take away: the ends of a text and the ids of a bare newline. */
static qn_code find_spared(qn_engine *e, qn_err *err)
{
    qn_code rc = QN_OK;
    uint32_t n_ends = 0;
    const uint32_t *ends = qn_model_ends(e->model, &n_ends);
    const qn_tokenizer *tok = qn_model_tokenizer(e->model);
    qn_ids ids = {0};
    if (tok) QN_TRY_OUT(qn_tokenizer_encode(tok, &ids, "\n", 1, (qn_encode_options){0}, err));
    e->spared = qn_calloc(n_ends + ids.n + 1, sizeof *e->spared);
    if (!e->spared) {
        rc = qn_fail(err, QN_E_NOMEM, "ids that are spared");
        goto out;
    }
    for (uint32_t i = 0; i < n_ends; i++) e->spared[e->n_spared++] = ends[i];
    for (size_t i = 0; i < ids.n; i++) e->spared[e->n_spared++] = ids.id[i];
    qsort(e->spared, e->n_spared, sizeof *e->spared, by_id);
out:
    qn_ids_fini(&ids);
    return rc;
}

/* Room for one row with every edit that a request can ask for, and for as much again in all others.
 * Behind open_cache: the context is known. */
static void size_edits(qn_engine *e)
{
    const uint64_t one = (uint64_t)e->opt.context + QN_REQUEST_MAX_BIASES + QN_REQUEST_MAX_STOPS;
    const uint32_t least = one < e->vocab ? (uint32_t)one : e->vocab;
    e->max_edits = e->opt.edits > least ? e->opt.edits : least;
    if (!e->opt.edits) e->max_edits += EDITS_A_ROW * e->max_logits;
}

static qn_code open_plans(qn_engine *e, qn_err *err)
{
    const qn_engine_options *o = &e->opt;
    const uint64_t table = (uint64_t)o->max_seqs * blocks_for(o->context);
    if (table > UINT32_MAX)
        return qn_fail(err, QN_E_LIMIT, "max_seqs is %u, too many for a context of %u", o->max_seqs,
                       o->context);
    const qn_plans_options p = {.dev = e->dev,
                                .graph = {.caps = {.rows = o->max_rows,
                                                   .logits = e->max_logits,
                                                   .seqs = o->max_seqs,
                                                   .groups = qn_cache_groups(e->cache),
                                                   .table = (uint32_t)table,
                                                   .edits = e->max_edits},
                                          .kv = qn_cache_layers(e->cache),
                                          .n_layers = qn_model_get_desc(e->model)->n_layers,
                                          .registers = e->registers,
                                          .activations = qn_model_activations(e->model),
                                          .spared = e->spared,
                                          .n_spared = e->n_spared},
                                .record = qn_model_record(e->model),
                                .model = e->model};
    return qn_plans_open(&e->plans, &p, err);
}

static qn_code alloc_lists(qn_engine *e, qn_err *err)
{
    e->edit_at = qn_pages_alloc(e->vocab * sizeof *e->edit_at); /* touched as tokens are */
    e->registers = qn_calloc(e->opt.max_seqs, sizeof *e->registers);
    e->running = qn_calloc(e->opt.max_seqs, sizeof(qn_stream *));
    e->sched = qn_calloc(e->opt.max_seqs, sizeof(qn_stream *));
    e->draws = qn_calloc((size_t)e->max_logits + e->opt.max_seqs, sizeof *e->draws);
    e->row_request = qn_calloc(e->opt.max_rows, sizeof *e->row_request);
    e->tops = qn_calloc(QN_REQUEST_MAX_LOGPROBS, sizeof *e->tops);
    qn_buf_init(&e->out, QN_EVENT_MAX_BYTES);
    if (!e->edit_at || !e->registers || !e->running || !e->sched || !e->draws || !e->row_request ||
        !e->tops)
        return qn_fail(err, QN_E_NOMEM, "lists of an engine");
    return qn_buf_reserve(&e->out, EVENT_ROOM, err); /* no event of ours is larger */
}

/* --- the thread ------------------------------------------------------------------------------- */

bool qn_take_mail(qn_engine *e, bool wait)
{
    qn_mail mail;
    if (wait) (void)qn_mailbox_wait(e->box, -1, NULL);
    for (;;) {
        const qn_code rc = qn_mailbox_pop(e->box, &mail, NULL);
        if (rc != QN_OK) return rc != QN_E_CANCELLED;
        if (mail.job)
            qn_queue_job(e, mail.job);
        else
            qn_cancel_job(e, mail.id);
    }
}

static void publish(qn_engine *e)
{
    e->now.running = e->n_running;
    e->now.waiting = e->n_waiting;
    qn_cache_get_stats(e->cache, &e->now.cache);
    e->now.plan_bytes = qn_plans_bytes(e->plans);
    pthread_mutex_lock(&e->lock);
    e->stats = e->now;
    pthread_mutex_unlock(&e->lock);
}

static void *engine_thread(void *arg)
{
    qn_engine *e = arg;
    while (qn_take_mail(e, !e->waiting && e->n_running == 0)) {
        qn_end_cancelled(e, false);
        qn_admit(e);
        qn_turn(e);
        publish(e);
    }
    qn_end_cancelled(e, true);
    return NULL;
}

/* Signals are the business of whoever owns the process. */
static qn_code start(qn_engine *e, qn_err *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int sys = pthread_create(&e->thread, NULL, engine_thread, e);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (sys != 0) return qn_fail_sys(err, QN_E_IO, sys, "engine thread");
    e->started = true;
    return QN_OK;
}

/* --- the door --------------------------------------------------------------------------------- */

qn_code qn_engine_open(qn_engine **out, qn_model *model, const qn_engine_options *opt, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    qn_engine *e = qn_zalloc(sizeof *e);
    if (!e) return qn_fail(err, QN_E_NOMEM, "engine handle");
    pthread_mutex_init(&e->lock, NULL);
    e->model = qn_model_ref(model);
    e->vocab = qn_model_get_desc(model)->vocab;
    qn_model_numerics(model, opt->kv_fmt, e->numerics);
    QN_TRY_OUT(fill_options(e, opt, err));
    QN_TRY_OUT(alloc_lists(e, err));
    QN_TRY_OUT(
        qn_device_open_cpu(&e->dev, opt->lanes, opt->isa_mask ? opt->isa_mask : UINT32_MAX, err));
    QN_TRY_OUT(open_cache(e, err));
    QN_TRY_OUT(find_spared(e, err));
    size_edits(e);
    QN_TRY_OUT(open_plans(e, err));
    QN_TRY_OUT(qn_mailbox_open(&e->box, sizeof(qn_mail), e->opt.queue + SPARE_MAIL, err));
    QN_TRY_OUT(start(e, err));
    *out = e;
    e = NULL;
out:
    qn_engine_close(e);
    return rc;
}

void qn_engine_close(qn_engine *e)
{
    if (!e) return;
    if (e->started) {
        qn_mailbox_shut(e->box);
        pthread_join(e->thread, NULL);
    }
    qn_mailbox_close(e->box);
    qn_plans_close(e->plans);
    qn_cache_close(e->cache);
    qn_device_close(e->dev);
    qn_buf_fini(&e->out);
    qn_free(e->registers);
    qn_free(e->spared);
    qn_pages_free(e->edit_at, e->vocab * sizeof *e->edit_at);
    qn_free(e->running);
    qn_free(e->sched);
    qn_free(e->draws);
    qn_free(e->row_request);
    qn_free(e->tops);
    qn_model_unref(e->model);
    pthread_mutex_destroy(&e->lock);
    qn_free(e);
}

qn_code qn_engine_submit(uint64_t *id, qn_engine *e, const void *request, size_t n, qn_event_fn *fn,
                         void *ctx, qn_err *err)
{
    qn_job *j = NULL;
    *id = 0;
    QN_TRY(qn_job_new(&j, e, request, n, fn, ctx, err));
    j->id = *id = atomic_fetch_add(&e->next_id, 1) + 1;
    j->queued = true;
    qn_code rc = QN_E_AGAIN;
    if (atomic_fetch_add(&e->n_queued, 1) < e->opt.queue) {
        const qn_mail mail = {.job = j};
        rc = qn_mailbox_push(e->box, &mail, err);
    } else {
        qn_fail(err, rc, "queue holds %u requests, all it takes", e->opt.queue);
    }
    if (rc == QN_OK) return rc; /* the engine thread owns the job */
    atomic_fetch_sub(&e->n_queued, 1);
    qn_job_free(j);
    *id = 0;
    return rc;
}

void qn_engine_cancel(qn_engine *e, uint64_t id)
{
    const qn_mail mail = {.id = id};
    if (pthread_equal(pthread_self(), e->thread)) { /* from an event: nobody else would make room */
        (void)qn_take_mail(e, false);
        qn_cancel_job(e, id);
        return;
    }
    /* The mailbox empties at every step border, so this ends. */
    while (qn_mailbox_push(e->box, &mail, NULL) == QN_E_AGAIN) sched_yield();
}

void qn_engine_set_probe(qn_engine *e, qn_step_probe_fn *fn, void *ctx)
{
    e->probe = fn;
    e->probe_ctx = ctx;
}

void qn_engine_set_tap(qn_engine *e, const char *name, qn_step_tap_fn *fn, void *ctx)
{
    e->tap_name = name;
    e->tap = fn;
    e->tap_ctx = ctx;
}

void qn_engine_get_stats(qn_engine *e, qn_engine_stats *out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->stats;
    pthread_mutex_unlock(&e->lock);
    memcpy(out->numerics, e->numerics, sizeof out->numerics); /* since it was opened */
}
