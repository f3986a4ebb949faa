/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - the sums of fit.h. Descriptors are checked when a model is read, so nothing here overflows 64
 * bits. */
#include "model/fit.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "model/model_int.h"

/* An id: 47 and 90 measured with vocabularies of 262,144 and 49,152, half as much again while opening. */
enum { TOKENIZER_BYTES = 128 };

uint64_t qn_fit_kv(const qn_model *m, qn_kv_fmt fmt, uint32_t positions)
{
    qn_group_desc g[QN_MAX_GROUPS];
    uint32_t map[QN_MAX_LAYERS];
    uint64_t bytes = 0;
    const uint32_t n = qn_model_groups(m, fmt, g, map);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t keep =
            g[i].kind == QN_GROUP_WINDOW ? (uint64_t)g[i].window + QN_KV_BLOCK : UINT64_MAX;
        const uint64_t held = positions < keep ? positions : keep;
        const uint64_t blocks = (held + QN_KV_BLOCK - 1) / QN_KV_BLOCK;
        bytes += blocks * QN_KV_BLOCK * 2 * g[i].n_layers * g[i].n_kv_heads * g[i].head_dim *
                 qn_kv_value_bytes(fmt);
    }
    return bytes;
}

void qn_fit_traffic(qn_traffic *out, const qn_model *m, qn_kv_fmt fmt, uint32_t depth)
{
    qn_group_desc g[QN_MAX_GROUPS];
    uint32_t map[QN_MAX_LAYERS];
    const qn_model_desc *d = qn_model_get_desc(m);
    const qn_matrix *embed = &m->weights.top.embed;
    const uint64_t heads = (uint64_t)d->n_heads + d->n_kv_heads;
    size_t row = 0;
    *out = (qn_traffic){.weight_bytes = m->weights.bytes};
    if (!d->tied && qn_format_row_bytes(&row, embed->fmt, embed->cols))
        out->weight_bytes -= (uint64_t)row * embed->rows;
    const uint32_t n = qn_model_groups(m, fmt, g, map);
    for (uint32_t i = 0; i < n; i++) {
        const bool cut = g[i].kind == QN_GROUP_WINDOW && depth > g[i].window;
        out->kv_bytes += 2ull * (cut ? g[i].window : depth) * g[i].n_layers * g[i].n_kv_heads *
                         g[i].head_dim * qn_kv_value_bytes(fmt);
    }
    out->multiply_adds =
        (2 * heads * d->head_dim + 3ull * d->ffn) * (uint64_t)d->width * d->n_layers;
}

/* Widest moment of a layer: the stream, what attention reads and gives, or both halves of the feed-
 * forward; then a row of logits for each draw. */
static uint64_t plans(const qn_model_desc *d, const qn_fit_ask *ask)
{
    const uint64_t q = (uint64_t)d->n_heads * d->head_dim,
                   kv = (uint64_t)d->n_kv_heads * d->head_dim;
    const uint64_t attention = 2 * q + 2 * kv, ffn = 2ull * d->ffn;
    const uint64_t row = 2ull * d->width + (attention > ffn ? attention : ffn);
    return 2 * 4 * (ask->max_rows * row + (uint64_t)ask->max_logits * d->vocab);
}

void qn_fit_estimate(qn_fit *out, const qn_model *m, const qn_fit_ask *ask)
{
    const qn_model_desc *d = qn_model_get_desc(m);
    out->weights = qn_model_weight_bytes(m);
    out->tokenizer = (uint64_t)TOKENIZER_BYTES * d->vocab;
    out->plans = plans(d, ask);
    out->kv = qn_fit_kv(m, ask->kv_fmt, ask->context);
    out->needed = out->weights + out->tokenizer + out->plans + out->kv;
}

uint32_t qn_fit_context(const qn_model *m, const qn_fit_ask *ask, uint64_t available)
{
    qn_fit fit;
    const uint32_t most = qn_model_get_desc(m)->context;
    uint32_t lo = 0, hi = most / QN_KV_BLOCK + 1; /* blocks: lo fits, hi does not */
    qn_fit_estimate(&fit, m, ask);
    const uint64_t rest = fit.needed - fit.kv;
    if (rest >= available) return 0;
    if (qn_fit_kv(m, ask->kv_fmt, most) <= available - rest) return most;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (qn_fit_kv(m, ask->kv_fmt, mid * QN_KV_BLOCK) <= available - rest)
            lo = mid;
        else
            hi = mid;
    }
    return lo * QN_KV_BLOCK;
}

qn_code qn_fit_read(qn_fit *out, uint32_t *context_fits, uint32_t *n_layers, qn_fit_ask *ask,
                    uint64_t available, const char *path, qn_err *err)
{
    qn_model *m = NULL;
    QN_TRY(qn_model_open_bare(&m, path, err));
    const qn_model_desc *d = qn_model_get_desc(m);
    if (ask->context == 0) ask->context = d->context;
    *n_layers = d->n_layers;
    qn_fit_estimate(out, m, ask);
    *context_fits = qn_fit_context(m, ask, available);
    const uint32_t made_for = d->context;
    qn_model_unref(m);
    if (ask->context <= made_for) return QN_OK;
    return qn_fail(err, QN_E_LIMIT, "context is %u, the model was made for %u", ask->context,
                   made_for);
}

qn_memory_room qn_fit_room(uint64_t ceiling)
{
    qn_memory_room room = qn_memory_look();
    const uint64_t live = qn_alloc_live_bytes();
    const uint64_t left = ceiling > live ? ceiling - live : 0;
    if (!ceiling || left >= room.available) return room;
    room.available = left;
    room.limit = "ceiling";
    if (ceiling < room.total) room.total = ceiling;
    return room;
}

static double mib(uint64_t bytes) { return (double)bytes / 1048576.0; }

qn_code qn_fit_check(uint64_t needed, const qn_memory_room *room, const char *what,
                     uint32_t context_fits, qn_err *err)
{
    if (needed <= room->available) return QN_OK;
    if (context_fits == UINT32_MAX)
        return qn_fail(err, QN_E_NOMEM, "%s: %.1f MiB needed, %.1f MiB available (%s)", what,
                       mib(needed), mib(room->available), room->limit);
    return qn_fail(err, QN_E_NOMEM,
                   "%s: %.1f MiB needed, %.1f MiB available (%s); the largest context that would "
                   "fit is %u",
                   what, mib(needed), mib(room->available), room->limit, context_fits);
}
