/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - opens and closes the store and counts what is in it.
 *
 * The budget is shared out by positions: each group gets as many blocks as any other, so that a prefix
 * which fits into one group fits into all.
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "cache/cache_int.h"

enum { MAX_BLOCKS = 1 << 26, MAX_POSITIONS = 1 << 30 };

static qn_code check_group(const qn_group_desc *d, uint32_t index, qn_err *err)
{
    if (d->kind == QN_GROUP_STATE)
        return qn_fail(err, QN_E_UNSUPPORTED, "cache: group %u holds recurrent state", index);
    if (d->kind != QN_GROUP_FULL && d->kind != QN_GROUP_WINDOW)
        return qn_fail(err, QN_E_INVAL, "cache: group %u has kind %d", index, (int)d->kind);
    if (d->kind == QN_GROUP_WINDOW && d->window == 0)
        return qn_fail(err, QN_E_INVAL, "cache: group %u has a window of 0, expected at least 1",
                       index);
    if (qn_cpool_block_bytes(d) == 0)
        return qn_fail(err, QN_E_INVAL, "cache: group %u has %u layers, %u heads of %u, format %d",
                       index, d->n_layers, d->n_kv_heads, d->head_dim, (int)d->fmt);
    return QN_OK;
}

/* Blocks that each group gets. */
static qn_code share_out(uint32_t *n, const qn_cache_options *o, qn_err *err)
{
    size_t all = 0;
    if (o->n_groups == 0 || o->n_groups > QN_MAX_GROUPS)
        return qn_fail(err, QN_E_INVAL, "cache: %u layer groups, expected 1 to %d", o->n_groups,
                       QN_MAX_GROUPS);
    for (uint32_t g = 0; g < o->n_groups; g++) {
        QN_TRY(check_group(&o->groups[g], g, err));
        if (!qn_add_size(&all, all, qn_cpool_block_bytes(&o->groups[g])))
            return qn_fail(err, QN_E_LIMIT, "cache: a block of all groups overflows");
    }
    if (o->budget_bytes < all)
        return qn_fail(err, QN_E_LIMIT,
                       "cache: budget of %zu bytes, a block of each group takes %zu",
                       o->budget_bytes, all);
    const size_t fit = o->budget_bytes / all;
    *n = fit < MAX_BLOCKS ? (uint32_t)fit : MAX_BLOCKS;
    return QN_OK;
}

/* Layers of a group lie one behind the other in its blocks, in layer order. */
static qn_code place_layers(qn_cache *c, const qn_cache_options *o, qn_err *err)
{
    uint32_t seen[QN_MAX_GROUPS] = {0};
    c->layers = qn_calloc(o->n_layers, sizeof *c->layers);
    if (!c->layers) return qn_fail(err, QN_E_NOMEM, "cache: %u layers", o->n_layers);
    c->n_layers = o->n_layers;
    for (uint32_t l = 0; l < o->n_layers; l++) {
        const uint32_t g = o->layer_group[l];
        if (g >= o->n_groups)
            return qn_fail(err, QN_E_INVAL, "cache: layer %u is in group %u of %u", l, g,
                           o->n_groups);
        const qn_cpool *p = &c->pool[g];
        const size_t half = p->block_bytes / p->desc.n_layers / 2;
        c->layers[l] =
            (qn_kv_layer){.pool = p->mem,
                          .block_bytes = p->block_bytes,
                          .k_bytes = 2 * half * seen[g],
                          .v_bytes = 2 * half * seen[g] + half,
                          .fmt = p->desc.fmt,
                          .n_kv_heads = p->desc.n_kv_heads,
                          .head_dim = p->desc.head_dim,
                          .group = g,
                          .window = p->desc.kind == QN_GROUP_WINDOW ? p->desc.window : 0};
        seen[g]++;
    }
    for (uint32_t g = 0; g < o->n_groups; g++)
        if (seen[g] != o->groups[g].n_layers)
            return qn_fail(err, QN_E_INVAL, "cache: group %u has %u layers, its record says %u", g,
                           seen[g], o->groups[g].n_layers);
    return QN_OK;
}

qn_code qn_cache_open(qn_cache **out, qn_device *dev, const qn_cache_options *opt, qn_err *err)
{
    qn_code rc = QN_OK;
    uint32_t n = 0;
    *out = NULL;
    if (dev->kind != QN_DEVICE_CPU) /* zeroing and copying blocks is done by the host */
        return qn_fail(err, QN_E_UNSUPPORTED, "cache: blocks on %s", dev->ops->name);
    qn_cache *c = qn_zalloc(sizeof *c);
    if (!c) return qn_fail(err, QN_E_NOMEM, "cache handle");
    c->dev = dev;
    QN_TRY_OUT(share_out(&n, opt, err));
    c->n_groups = opt->n_groups;
    for (uint32_t g = 0; g < opt->n_groups; g++)
        QN_TRY_OUT(qn_cpool_open(&c->pool[g], dev, &opt->groups[g], n, err));
    QN_TRY_OUT(place_layers(c, opt, err));
    /* A node of a model with a full group has a block there; the others are few. */
    QN_TRY_OUT(qn_tree_open(c, 2 * n + 1, opt->numerics, opt->key_bits, err));
    const uint32_t held = n < MAX_POSITIONS / QN_KV_BLOCK ? n * QN_KV_BLOCK : MAX_POSITIONS;
    c->max_positions =
        opt->max_positions && opt->max_positions < MAX_POSITIONS ? opt->max_positions : held;
    *out = c;
    c = NULL;
out:
    qn_cache_close(c);
    return rc;
}

void qn_cache_close(qn_cache *c)
{
    if (!c) return;
    QN_ASSERT(c->n_seqs == 0);
    qn_tree_close(c);
    for (uint32_t g = 0; g < c->n_groups; g++) qn_cpool_close(&c->pool[g], c->dev);
    qn_free(c->layers);
    qn_free(c);
}

const qn_kv_layer *qn_cache_layers(const qn_cache *c) { return c->layers; }
uint32_t qn_cache_groups(const qn_cache *c) { return c->n_groups; }

uint32_t qn_cache_capacity(const qn_cache *c)
{
    uint64_t most = c->max_positions;
    for (uint32_t g = 0; g < c->n_groups; g++)
        if (c->pool[g].desc.kind == QN_GROUP_FULL && (uint64_t)c->pool[g].n * QN_KV_BLOCK < most)
            most = (uint64_t)c->pool[g].n * QN_KV_BLOCK;
    return (uint32_t)most;
}

uint64_t qn_cache_room(const qn_cache *c)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const uint64_t n = ((uint64_t)c->pool[g].n_free + c->pool[g].n_evictable) * QN_KV_BLOCK;
        if (n < least) least = n;
    }
    return least;
}

void qn_cache_get_stats(const qn_cache *c, qn_cache_stats *out)
{
    *out = (qn_cache_stats){.hits = c->hits,
                            .hit_tokens = c->hit_tokens,
                            .misses = c->misses,
                            .evictions = c->evictions};
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const qn_cpool *p = &c->pool[g];
        out->pool_bytes += p->bytes;
        out->used_bytes += (size_t)(p->n - p->n_free) * p->block_bytes;
        out->blocks += p->n;
        out->free += p->n_free;
        out->evictable += p->n_evictable;
    }
    out->in_use = out->blocks - out->free - out->evictable;
}
