/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - the prefix tree: full blocks by what stands in them and before them.
 *
 * A node outlives its blocks while it has children or a sequence stands on it: with window groups only,
 * early blocks leave while later ones are still worth a hit. All nodes are allocated at open.
 *
 * Owner:  the cache. Thread: the engine thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cache/cache_int.h"

enum { ROOT = 0 };

/* 128 bits as two chains of folded products with different constants. Collisions are answered by
 * comparing, so the hash need not be cryptographic. */
static void mix(uint64_t h[2], uint64_t a, uint64_t b)
{
    h[0] = qn_maphash_fold(h[0] ^ a ^ 0xA0761D6478BD642Fu, b ^ 0xE7037ED1A0B428DBu) + h[0];
    h[1] = qn_maphash_fold(h[1] ^ b ^ 0x8EBC6AF09C88C6E3u, a ^ 0x589965CC75374CC3u) + h[1];
}

static void child_key(uint64_t out[2], const qn_cache *c, uint32_t parent, const uint32_t *tokens,
                      const uint64_t extra[2])
{
    uint64_t h[2] = {c->node[parent].key[0], c->node[parent].key[1]};
    for (uint32_t i = 0; i < QN_KV_BLOCK; i += 4)
        mix(h, tokens[i] | (uint64_t)tokens[i + 1] << 32,
            tokens[i + 2] | (uint64_t)tokens[i + 3] << 32);
    mix(h, extra[0], extra[1]);
    for (int i = 0; i < 2; i++) out[i] = h[i] & c->key_mask[i];
}

void qn_tree_extra(uint64_t out[2], const qn_key_extra *extra, uint32_t n, uint32_t index)
{
    const uint64_t b0 = (uint64_t)index * QN_KV_BLOCK, b1 = b0 + QN_KV_BLOCK;
    out[0] = out[1] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const qn_key_extra *x = &extra[i];
        if (x->end <= b0 || x->begin >= b1) continue;
        /* Where the span lies in this block, and whether it goes on before and behind: one span of two
         * blocks is not two spans of one block. */
        const uint64_t lo = x->begin > b0 ? x->begin - b0 : 0,
                       hi = x->end < b1 ? x->end - b0 : QN_KV_BLOCK;
        const uint64_t ends = (uint64_t)(x->begin < b0) | (uint64_t)(x->end > b1) << 1;
        mix(out, lo | hi << 16 | ends << 32 | 1ull << 40, x->digest[0]);
        mix(out, x->digest[1], 0);
    }
}

qn_code qn_tree_open(qn_cache *c, uint32_t n_nodes, const uint64_t numerics[2], uint32_t key_bits,
                     qn_err *err)
{
    uint32_t n_buckets = 1;
    while (n_buckets < n_nodes) n_buckets *= 2;
    c->node = qn_calloc(n_nodes, sizeof *c->node);
    c->bucket = qn_calloc(n_buckets, sizeof *c->bucket);
    if (!c->node || !c->bucket) return qn_fail(err, QN_E_NOMEM, "cache: tree of %u nodes", n_nodes);
    memset(c->bucket, 0xFF, n_buckets * sizeof *c->bucket);
    c->n_nodes = n_nodes;
    c->bucket_mask = n_buckets - 1;
    const uint32_t low = key_bits ? key_bits : 64;
    c->key_mask[0] = low < 64 ? (1ull << low) - 1 : UINT64_MAX;
    c->key_mask[1] = key_bits ? 0 : UINT64_MAX;
    c->free_node = QN_NO_NODE;
    for (uint32_t i = n_nodes; i-- > 1;) {
        c->node[i].next_in_bucket = c->free_node;
        c->free_node = i;
    }
    qn_cnode *root = &c->node[ROOT];
    mix(root->key, numerics[0], numerics[1]);
    root->parent = root->first_child = root->prev_sibling = root->next_sibling = QN_NO_NODE;
    for (uint32_t g = 0; g < QN_MAX_GROUPS; g++) root->block[g] = QN_NO_BLOCK;
    root->refs = 1; /* never freed */
    return QN_OK;
}

void qn_tree_close(qn_cache *c)
{
    qn_free(c->node);
    qn_free(c->bucket);
    c->node = NULL;
    c->bucket = NULL;
}

uint32_t qn_tree_find(const qn_cache *c, uint32_t parent, const uint32_t *tokens,
                      const uint64_t extra[2])
{
    uint64_t key[2];
    child_key(key, c, parent, tokens, extra);
    uint32_t id = c->bucket[key[0] & c->bucket_mask];
    for (; id != QN_NO_NODE; id = c->node[id].next_in_bucket) {
        const qn_cnode *n = &c->node[id];
        if (n->key[0] == key[0] && n->key[1] == key[1] && n->parent == parent &&
            n->extra[0] == extra[0] && n->extra[1] == extra[1] &&
            memcmp(n->tokens, tokens, sizeof n->tokens) == 0)
            break;
    }
    return id;
}

bool qn_tree_whole(const qn_cache *c, uint32_t node)
{
    for (uint32_t g = 0; g < c->n_groups; g++)
        if (c->pool[g].desc.kind == QN_GROUP_FULL && c->node[node].block[g] == QN_NO_BLOCK)
            return false;
    return true;
}

uint32_t qn_tree_nearest(const qn_cache *c, uint32_t parent, const uint32_t *tokens, uint32_t n,
                         const uint64_t extra[2], uint32_t *same)
{
    uint32_t best = QN_NO_NODE;
    *same = 0;
    for (uint32_t id = c->node[parent].first_child; id != QN_NO_NODE;
         id = c->node[id].next_sibling) {
        const qn_cnode *k = &c->node[id];
        uint32_t i = 0;
        while (i < n && k->tokens[i] == tokens[i]) i++;
        if (i <= *same || k->extra[0] != extra[0] || k->extra[1] != extra[1]) continue;
        if (!qn_tree_whole(c, id)) continue;
        best = id;
        *same = i;
    }
    return best;
}

/* Frees nodes that nothing needs any more, from `id` up to the root. */
static void prune(qn_cache *c, uint32_t id)
{
    while (id != ROOT && c->node[id].refs == 0) {
        qn_cnode *n = &c->node[id];
        for (uint32_t g = 0; g < c->n_groups; g++)
            if (n->block[g] != QN_NO_BLOCK) return;
        uint32_t *at = &c->bucket[n->key[0] & c->bucket_mask];
        while (*at != id) at = &c->node[*at].next_in_bucket;
        *at = n->next_in_bucket;
        const uint32_t parent = n->parent;
        if (n->next_sibling != QN_NO_NODE) c->node[n->next_sibling].prev_sibling = n->prev_sibling;
        *(n->prev_sibling == QN_NO_NODE ? &c->node[parent].first_child
                                        : &c->node[n->prev_sibling].next_sibling) = n->next_sibling;
        n->next_in_bucket = c->free_node;
        c->free_node = id;
        c->node[parent].refs--;
        id = parent;
    }
}

void qn_tree_hold(qn_cache *c, uint32_t node) { c->node[node].refs++; }

void qn_tree_release(qn_cache *c, uint32_t node)
{
    c->node[node].refs--;
    prune(c, node);
}

/* A free node; unused blocks give theirs up when all are taken. */
static bool make_room(qn_cache *c)
{
    bool any = true;
    while (c->free_node == QN_NO_NODE && any) {
        any = false;
        for (uint32_t g = 0; g < c->n_groups && c->free_node == QN_NO_NODE; g++)
            any |= qn_tree_evict(c, g);
    }
    return c->free_node != QN_NO_NODE;
}

uint32_t qn_tree_add(qn_cache *c, uint32_t parent, const uint32_t *tokens, const uint64_t extra[2])
{
    if (!make_room(c)) return QN_NO_NODE;
    const uint32_t id = c->free_node;
    qn_cnode *n = &c->node[id], *up = &c->node[parent];
    c->free_node = n->next_in_bucket;
    child_key(n->key, c, parent, tokens, extra);
    memcpy(n->extra, extra, sizeof n->extra);
    memcpy(n->tokens, tokens, sizeof n->tokens);
    for (uint32_t g = 0; g < QN_MAX_GROUPS; g++) n->block[g] = QN_NO_BLOCK;
    n->refs = 0;
    n->parent = parent;
    n->first_child = n->prev_sibling = QN_NO_NODE;
    n->next_sibling = up->first_child;
    if (up->first_child != QN_NO_NODE) c->node[up->first_child].prev_sibling = id;
    up->first_child = id;
    up->refs++;
    uint32_t *head = &c->bucket[n->key[0] & c->bucket_mask];
    n->next_in_bucket = *head;
    *head = id;
    return id;
}

/* Off the node; free when nobody holds it. */
static void drop(qn_cache *c, uint32_t node, uint32_t group)
{
    qn_cpool *p = &c->pool[group];
    const uint32_t id = c->node[node].block[group];
    if (id == QN_NO_BLOCK) return;
    c->node[node].block[group] = QN_NO_BLOCK;
    p->block[id].node = QN_NO_NODE;
    if (p->block[id].refs > 0) return;
    qn_cpool_unlist(p, id);
    qn_cpool_free(p, id);
}

bool qn_tree_evict(qn_cache *c, uint32_t group)
{
    const qn_cpool *p = &c->pool[group];
    if (p->oldest == QN_NO_BLOCK) return false;
    const uint32_t node = p->block[p->oldest].node;
    c->evictions++;
    if (p->desc.kind == QN_GROUP_FULL) {
        qn_tree_detach(c, node); /* no hit can pass here any more */
    } else {
        drop(c, node, group);
        prune(c, node);
    }
    return true;
}

void qn_tree_detach(qn_cache *c, uint32_t node)
{
    for (uint32_t g = 0; g < c->n_groups; g++) drop(c, node, g);
    prune(c, node);
}
