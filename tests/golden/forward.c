/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - one sequence through device, cache and plan. */
#include "forward.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"

typedef struct world {
    qn_device *dev;
    qn_cache *cache;
    qn_seq *seq;
    qn_plans *plans;
    uint32_t n_groups, rows;
    uint32_t layer_group[QN_MAX_LAYERS];
    qn_group_desc groups[QN_MAX_GROUPS];
} world;

static qn_code open_world(world *w, const qn_model *m, uint32_t n, forward_how how, qn_err *err)
{
    const qn_model_desc *d = qn_model_get_desc(m);
    const uint32_t blocks = n / QN_KV_BLOCK + 2;
    w->rows = how.chunk ? how.chunk : n;
    QN_TRY(qn_device_open_cpu(&w->dev, how.lanes ? how.lanes : 1, how.isa ? how.isa : isa_allowed(),
                              err));
    w->n_groups = qn_model_groups(m, how.kv, w->groups, w->layer_group);
    qn_cache_options co = {.groups = w->groups,
                           .n_groups = w->n_groups,
                           .n_layers = d->n_layers,
                           .layer_group = w->layer_group,
                           .budget_bytes = (size_t)blocks * 2 * d->n_layers * 2 * d->n_kv_heads *
                                           QN_KV_BLOCK * d->head_dim * 4};
    qn_model_numerics(m, how.kv, co.numerics);
    QN_TRY(qn_cache_open(&w->cache, w->dev, &co, err));
    QN_TRY(qn_seq_open(&w->seq, w->cache, err));
    const qn_plans_options po = {
        .dev = w->dev,
        .graph = {.caps = {.rows = w->rows,
                           .logits = w->rows,
                           .seqs = 1,
                           .groups = w->n_groups,
                           .table = blocks},
                  .kv = qn_cache_layers(w->cache),
                  .n_layers = d->n_layers,
                  .activations = qn_model_activations(m)},
        .record = qn_model_record(m),
        .model = m,
    };
    return qn_plans_open(&w->plans, &po, err);
}

static void close_world(world *w)
{
    qn_plans_close(w->plans);
    qn_seq_close(w->seq);
    qn_cache_close(w->cache);
    qn_device_close(w->dev);
}

/* The last n_logits of the n rows have a logit row. */
static void fill_step(qn_step *s, const world *w, const uint32_t *tokens, uint32_t begin,
                      uint32_t n, uint32_t n_logits)
{
    s->n_rows = n;
    s->n_logits = n_logits;
    s->n_seqs = 1;
    for (uint32_t r = 0; r < n; r++) {
        const uint32_t pos = begin + r;
        qn_step_source(s)[r] = QN_ROW_TOKEN;
        qn_step_value(s)[r] = tokens[pos];
        for (uint32_t k = 0; k < 3; k++) qn_step_pos(s)[k * s->caps.rows + r] = (int32_t)pos;
        qn_step_kv_pos(s)[r] = pos;
        qn_step_seq(s)[r] = 0;
        qn_step_keys(s)[r] = (qn_keys){0, pos + 1, pos + 1, pos + 1};
        qn_step_parent(s)[r] = QN_STEP_NONE;
        qn_step_adapter(s)[r] = QN_STEP_NONE;
    }
    for (uint32_t i = 0; i < n_logits; i++) {
        qn_step_logit_row(s)[i] = n - n_logits + i;
        qn_step_sampler(s)[i] = (qn_sampler){0};
        qn_step_register(s)[i] = QN_STEP_NONE;
    }
    for (uint32_t g = 0; g < w->n_groups; g++) {
        uint32_t n_blocks = 0;
        const uint32_t *table = qn_seq_table(w->seq, g, &n_blocks);
        qn_step_table_off(s)[g * s->caps.seqs] = 0;
        memcpy(qn_step_table(s) + (size_t)g * s->caps.table, table, n_blocks * sizeof *table);
    }
}

/* out[0] is the row of position `first`. */
static qn_code run_chunk(float *out, uint32_t first, world *w, const qn_model *m,
                         const uint32_t *tokens, uint32_t begin, uint32_t n, uint32_t n_logits,
                         forward_how how, qn_err *err)
{
    const uint32_t vocab = qn_model_get_desc(m)->vocab;
    const qn_plan_key key = {.rows = n,
                             .logits = n_logits,
                             .features = how.features | QN_PLAN_NO_DRAW | QN_PLAN_KEEP_LOGITS};
    qn_plan *p = NULL;
    size_t ld = 0;
    QN_TRY(qn_plans_get(&p, w->plans, &key, err));
    QN_TRY(qn_seq_reserve(w->seq, n, err));
    fill_step(qn_plan_step(p), w, tokens, begin, n, n_logits);
    QN_TRY(qn_plan_exec(p, err));
    const float *logits = qn_plan_logits(p, &ld);
    if (!logits && n_logits) return qn_fail(err, QN_E_INTERNAL, "the plan kept no logits");
    for (uint32_t r = 0; r < n_logits; r++)
        memcpy(out + (size_t)(begin + n - n_logits + r - first) * vocab, logits + r * ld,
               vocab * sizeof *out);
    return qn_seq_commit(w->seq, tokens + begin, n, NULL, 0, err);
}

float *forward_logits(qt *t, const qn_model *m, const uint32_t *tokens, uint32_t n, forward_how how)
{
    world w = {0};
    qn_err err = {0};
    const uint32_t first = how.n_last && how.n_last < n ? n - how.n_last : 0;
    float *out = qt_fill_f32((size_t)(n - first) * qn_model_get_desc(m)->vocab, -1e30f);
    qn_code rc = open_world(&w, m, n, how, &err);
    for (uint32_t at = 0; rc == QN_OK && at < n; at += w.rows) {
        const uint32_t rows = w.rows < n - at ? w.rows : n - at;
        uint32_t n_logits = !how.last_only ? rows : at + rows == n ? 1 : 0;
        if (at < first && !how.last_only) n_logits = at + rows > first ? at + rows - first : 0;
        rc = run_chunk(out, first, &w, m, tokens, at, rows, n_logits, how, &err);
    }
    close_world(&w);
    if (QT_OKF(t, rc == QN_OK, "%s: %s", qn_model_path(m), err.msg)) return out;
    qt_release(1, out);
    return NULL;
}
