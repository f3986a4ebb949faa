/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_world.h"

#include <string.h>

#include "base/alloc.h"

enum { HEADS = 2, DIM = 4, LAYERS = 4 };

static void *host_alloc(qn_device *d, size_t bytes)
{
    (void)d;
    return qn_pages_alloc(bytes);
}
static void host_free(qn_device *d, void *p, size_t bytes)
{
    (void)d;
    qn_pages_free(p, bytes);
}
static const qn_device_ops host_ops = {.name = "host", .alloc = host_alloc, .free = host_free};

qn_device *world_device(void)
{
    static qn_device dev = {.ops = &host_ops, .kind = QN_DEVICE_CPU};
    return &dev;
}

/* Layers go to the groups in turn. */
static uint32_t layers_of(const char *groups, uint32_t g, uint32_t map[LAYERS])
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < LAYERS; l++) {
        map[l] = l % (uint32_t)strlen(groups);
        n += map[l] == g;
    }
    return n;
}

size_t world_block_bytes(const char *groups)
{
    (void)groups; /* every shape has LAYERS layers in all */
    return (size_t)LAYERS * 2 * HEADS * DIM * QN_KV_BLOCK * sizeof(float);
}

qn_code world_open(qn_cache **out, const char *groups, uint32_t n, uint32_t window,
                   uint32_t key_bits, qn_err *err)
{
    qn_group_desc desc[QN_MAX_GROUPS] = {0};
    uint32_t map[LAYERS];
    const uint32_t n_groups = (uint32_t)strlen(groups);
    for (uint32_t g = 0; g < n_groups; g++)
        desc[g] = (qn_group_desc){.kind = groups[g] == 'w' ? QN_GROUP_WINDOW : QN_GROUP_FULL,
                                  .fmt = QN_KV_F32,
                                  .n_kv_heads = HEADS,
                                  .head_dim = DIM,
                                  .window = groups[g] == 'w' ? window : 0,
                                  .n_layers = layers_of(groups, g, map)};
    const qn_cache_options opt = {.groups = desc,
                                  .n_groups = n_groups,
                                  .n_layers = LAYERS,
                                  .layer_group = map,
                                  .budget_bytes = n * world_block_bytes(groups),
                                  .max_positions = WORLD_MAX,
                                  .numerics = {1, 2},
                                  .key_bits = key_bits};
    return qn_cache_open(out, world_device(), &opt, err);
}

static uint64_t stir(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

void timeline_tokens(timeline *l, const uint32_t *tokens, uint32_t n)
{
    memcpy(l->token + l->len, tokens, n * sizeof *tokens);
    for (uint32_t i = l->len; i < l->len + n; i++) {
        l->at[i + 1] = stir(l->at[i], l->token[i] + 1);
        for (uint32_t x = 0; x < l->n_extra; x++)
            if (i >= l->extra[x].begin && i < l->extra[x].end)
                l->at[i + 1] = stir(l->at[i + 1], l->extra[x].digest[0] + l->extra[x].begin);
    }
}

/* One of 2^24 values, exact in f32, never 0. */
static float value(uint64_t at, uint32_t layer, uint32_t head, uint32_t dim, bool v)
{
    const uint64_t h = stir(stir(at, layer * 64 + head * 8 + dim), v);
    return (float)(h >> 41 | 1);
}

static float *place(const qn_cache *c, const timeline *l, uint32_t layer, uint32_t pos,
                    uint32_t head, bool v)
{
    const qn_kv_layer *k = &qn_cache_layers(c)[layer];
    uint32_t n = 0;
    const uint32_t off = 0, *table = qn_seq_table(l->seq, k->group, &n);
    if (pos / QN_KV_BLOCK >= n || table[pos / QN_KV_BLOCK] == QN_NO_BLOCK) return NULL;
    const qn_kv_view view = {k->pool,       k->block_bytes, k->k_bytes, k->v_bytes, k->fmt,
                             k->n_kv_heads, k->head_dim,    table,      &off};
    return qn_kv_at(&view, 0, pos, head, v);
}

qn_code timeline_step(const qn_cache *c, timeline *l, uint32_t n, uint32_t kept, qn_err *err)
{
    QN_TRY(qn_seq_reserve(l->seq, n, err));
    for (uint32_t i = 0; i < n * LAYERS * HEADS * DIM * 2; i++) {
        const uint32_t pos = l->len + i / (LAYERS * HEADS * DIM * 2),
                       layer = i / 2 / DIM / HEADS % LAYERS;
        const uint32_t head = i / 2 / DIM % HEADS, dim = i / 2 % DIM;
        place(c, l, layer, pos, head, i % 2)[dim] =
            pos - l->len < kept ? value(l->at[pos + 1], layer, head, dim, i % 2) : -1.0f;
    }
    QN_TRY(qn_seq_commit(l->seq, l->token + l->len, kept, l->extra, l->n_extra, err));
    l->len += kept;
    return QN_OK;
}

static bool position_holds(const qn_cache *c, const timeline *l, uint32_t layer, uint32_t pos)
{
    for (uint32_t i = 0; i < HEADS * 2; i++) {
        const float *at = place(c, l, layer, pos, i / 2, i % 2);
        if (!at) return pos >= l->len;
        for (uint32_t d = 0; d < DIM; d++)
            if (at[d] != (pos < l->len ? value(l->at[pos + 1], layer, i / 2, d, i % 2) : 0.0f))
                return false;
    }
    return true;
}

bool timeline_holds(const qn_cache *c, const timeline *l)
{
    if (qn_seq_len(l->seq) != l->len) return false;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        const uint32_t w = qn_cache_layers(c)[layer].window;
        const uint32_t from = w && l->len >= w ? l->len - w + 1 : 0;
        for (uint32_t pos = from; pos < l->len; pos++)
            if (!position_holds(c, l, layer, pos)) return false;
    }
    return true;
}

bool timeline_clean_behind(const qn_cache *c, const timeline *l)
{
    const uint32_t end = (l->len + QN_KV_BLOCK - 1) / QN_KV_BLOCK * QN_KV_BLOCK;
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        for (uint32_t pos = l->len; pos < end; pos++)
            if (!position_holds(c, l, layer, pos)) return false;
    return true;
}
