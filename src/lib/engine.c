/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - engines, for the public. */
#include <string.h>

#include "base/alloc.h"
#include "lib/lib_int.h"

static qn_code check(const quern_engine_options *o, qn_err *err)
{
    const uint32_t known = QUERN_ENGINE_NO_PREFIX_CACHE | QUERN_ENGINE_NO_FUSE;
    if (o->threads > QN_LANES_MAX)
        return qn_fail(err, QN_E_INVAL, "threads is %u, expected at most %d", o->threads,
                       QN_LANES_MAX);
    if ((unsigned)o->kv > QUERN_KV_BF16)
        return qn_fail(err, QN_E_INVAL, "kv is %d, expected 0 to %d", (int)o->kv, QUERN_KV_BF16);
    if (o->flags & ~known)
        return qn_fail(err, QN_E_INVAL, "flags are %#x, known: %#x", o->flags, known);
    if (o->kv_budget > SIZE_MAX)
        return qn_fail(err, QN_E_LIMIT, "kv_budget is %llu", (unsigned long long)o->kv_budget);
    return QN_OK;
}

static const qn_kv_fmt kv_formats[] = {QN_KV_F16, QN_KV_F32, QN_KV_F16, QN_KV_BF16};

qn_code qn_lib_fit_ask(qn_fit_ask *out, const quern_engine_options *o, qn_err *err)
{
    QN_TRY(check(o, err));
    *out = (qn_fit_ask){.context = o->context,
                        .max_rows = o->max_rows ? o->max_rows : QN_ENGINE_ROWS,
                        .max_seqs = o->max_seqs ? o->max_seqs : QN_ENGINE_SEQS,
                        .kv_fmt = kv_formats[o->kv]};
    out->max_logits = out->max_seqs > QN_ENGINE_LOGITS ? out->max_seqs : QN_ENGINE_LOGITS;
    return QN_OK;
}

/* Positions that must fit where nobody asks for a context: enough to say something. */
enum { LEAST_CONTEXT = 128 };

/* Weights, plans and one sequence must fit; what is left is told for the budget. The tokenizer is there
 * already, and weights are pages of a file, which count as available even when they are. */
static qn_code check_room(size_t *kv_room, const quern_model *m, const quern_engine_options *o,
                          qn_err *err)
{
    qn_fit_ask ask;
    qn_fit fit;
    const uint32_t made_for = qn_model_get_desc(m->model)->context;
    const qn_memory_room room = qn_fit_room(m->rt->memory_ceiling);
    QN_TRY(qn_lib_fit_ask(&ask, o, err));
    if (ask.context > made_for) /* no memory would help */
        return qn_fail(err, QN_E_LIMIT, "context is %u, the model was made for %u", ask.context,
                       made_for);
    if (!ask.context) ask.context = made_for < LEAST_CONTEXT ? made_for : LEAST_CONTEXT;
    qn_fit_estimate(&fit, m->model, &ask);
    const uint64_t rest = fit.weights + fit.plans;
    QN_TRY(qn_fit_check(rest + fit.kv, &room,
                        o->context ? "weights and a sequence of the context"
                                   : "weights and a short sequence",
                        qn_fit_context(m->model, &ask, room.available), err));
    const uint64_t left = room.available - rest;
    *kv_room = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
    return QN_OK;
}

quern_code quern_engine_open(quern_engine **out, quern_model *model,
                             const quern_engine_options *opt, quern_error *err)
{
    quern_engine_options o;
    qn_engine *inner = NULL;
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_given(model, "model", err));
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "engine", err));
    QN_TRY(check(&o, err));
    size_t kv_room = 0;
    const qn_code fits = check_room(&kv_room, model, &o, err);
    if (fits != QN_OK) return qn_runtime_tell_memory(model->rt, fits, err);
    const qn_engine_options e = {
        .lanes = o.threads ? o.threads : model->rt->threads,
        .isa_mask = model->rt->isa_mask,
        .max_rows = o.max_rows,
        .max_seqs = o.max_seqs,
        .context = o.context,
        .kv_fmt = kv_formats[o.kv],
        .kv_room = kv_room,
        .kv_budget = (size_t)o.kv_budget,
        .queue = o.queue,
        .no_prefix_cache = (o.flags & QUERN_ENGINE_NO_PREFIX_CACHE) != 0,
        .no_fuse = (o.flags & QUERN_ENGINE_NO_FUSE) != 0,
    };
    quern_engine *shell = qn_zalloc(sizeof *shell);
    if (!shell) return qn_fail(err, QN_E_NOMEM, "engine handle");
    const qn_code rc = qn_engine_open(&inner, model->model, &e, err);
    if (rc != QN_OK) {
        qn_free(shell);
        return qn_runtime_tell_memory(model->rt, rc, err);
    }
    atomic_init(&shell->refs, 1);
    atomic_init(&shell->engine, inner);
    shell->context = o.context ? o.context : qn_model_get_desc(model->model)->context;
    shell->model = quern_model_ref(model);
    *out = shell;
    return QN_OK;
}

void qn_lib_engine_unref(quern_engine *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
    quern_model_unref(e->model);
    qn_free(e);
}

void quern_engine_close(quern_engine *e)
{
    if (!e) return;
    qn_engine_close(atomic_load(&e->engine));
    atomic_store(&e->engine, NULL);
    qn_lib_engine_unref(e);
}

quern_code quern_engine_get_stats(quern_engine *e, quern_engine_stats *stats, quern_error *err)
{
    qn_engine_stats s;
    QN_TRY(qn_lib_given(e, "engine", err));
    QN_TRY(qn_lib_given(stats, "stats", err));
    if (stats->size < sizeof stats->size || stats->size > 1 << 16)
        return qn_fail(err, QN_E_INVAL, "stats: size is %zu, expected %zu", stats->size,
                       sizeof *stats);
    qn_engine_get_stats(atomic_load(&e->engine), &s);
    const quern_engine_stats all = {
        .size = stats->size,
        .steps = s.steps,
        .prompt_tokens = s.prompt_tokens,
        .cached_tokens = s.cached_tokens,
        .completion_tokens = s.completion_tokens,
        .kv_bytes = s.cache.pool_bytes,
        .kv_used_bytes = s.cache.used_bytes,
        .plan_bytes = s.plan_bytes,
        .busy_s = s.busy_s,
        .running = s.running,
        .waiting = s.waiting,
        .numerics = {s.numerics[0], s.numerics[1]},
    };
    const size_t size = stats->size;
    memset(stats, 0, size);
    memcpy(stats, &all, size < sizeof all ? size : sizeof all);
    return QN_OK;
}
