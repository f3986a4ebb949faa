/* SPDX-License-Identifier: Apache-2.0 */
/* seq.c - one token timeline: its tables, its place in the tree, the room for the next step.
 *
 *     positions  [0 ........ len)[len ... len + reserved)
 *     blocks     [full][full][open]                        open: the last one while len is no multiple
 *                                                          of QN_KV_BLOCK
 *     chain      nodes of the first n_chain full blocks; `tail` is the last of them
 *
 * A hit that ends inside a block, a fork and a trim all leave an open block that somebody else uses
 * too. Nothing is copied then: reserve makes it private, since only a step that is about to write
 * needs that.
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "cache/cache_int.h"

enum { BLOCK = QN_KV_BLOCK };

static uint32_t blocks_for(uint32_t positions) { return (positions + BLOCK - 1) / BLOCK; }

qn_code qn_seq_open(qn_seq **out, qn_cache *c, qn_err *err)
{
    const uint32_t cap = blocks_for(c->max_positions);
    size_t bytes = 0;
    *out = NULL;
    if (!qn_mul_size(&bytes, cap, c->n_groups * sizeof(uint32_t)) ||
        !qn_add_size(&bytes, bytes, sizeof(qn_seq)))
        return qn_fail(err, QN_E_NOMEM, "sequence of %u blocks", cap);
    qn_seq *s = qn_alloc(bytes); /* tables are written before they are read */
    if (!s) return qn_fail(err, QN_E_NOMEM, "sequence of %u blocks", cap);
    memset(s, 0, sizeof *s);
    s->c = c;
    s->cap = cap;
    for (uint32_t g = 0; g < c->n_groups; g++) s->table[g] = (uint32_t *)(s + 1) + (size_t)g * cap;
    qn_tree_hold(c, s->tail);
    c->n_seqs++;
    *out = s;
    return QN_OK;
}

void qn_seq_set_private(qn_seq *s) { s->is_private = true; }
uint32_t qn_seq_len(const qn_seq *s) { return s->len; }

const uint32_t *qn_seq_table(const qn_seq *s, uint32_t group, uint32_t *n)
{
    *n = s->n_blocks;
    return s->table[group];
}

static void let_go(qn_seq *s, uint32_t group, uint32_t index)
{
    const uint32_t id = s->table[group][index];
    if (id != QN_NO_BLOCK) qn_cpool_release(&s->c->pool[group], id);
    s->table[group][index] = QN_NO_BLOCK;
}

/* From the end, so that children become evictable before their parents. */
static void shorten(qn_seq *s, uint32_t n_blocks)
{
    while (s->n_blocks > n_blocks) {
        s->n_blocks--;
        for (uint32_t g = 0; g < s->c->n_groups; g++) let_go(s, g, s->n_blocks);
    }
}

void qn_seq_close(qn_seq *s)
{
    if (!s) return;
    shorten(s, 0);
    qn_tree_release(s->c, s->tail);
    s->c->n_seqs--;
    qn_free(s);
}

/* May the open block be written? Its window groups have it too: it holds the last position. */
static bool open_is_mine(const qn_seq *s, uint32_t group)
{
    if (s->len % BLOCK == 0) return true;
    const qn_cblock *b = &s->c->pool[group].block[s->table[group][s->len / BLOCK]];
    return b->refs == 1 && b->node == QN_NO_NODE;
}

static void stand_on(qn_seq *s, uint32_t node)
{
    const uint32_t old = s->tail;
    qn_tree_hold(s->c, node);
    s->tail = node;
    qn_tree_release(s->c, old);
}

/* --- match ------------------------------------------------------------------------------------ */

typedef struct hit {
    uint32_t len;  /* positions */
    uint32_t node; /* of the block that holds position len - 1 */
} hit;

static void cut(qn_cache *c, hit *h, uint32_t len)
{
    for (uint32_t have = blocks_for(h->len); have > blocks_for(len); have--)
        h->node = c->node[h->node].parent;
    h->len = len;
}

/* First block that a window group still needs before position `len`. */
static uint32_t window_from(const qn_cpool *p, uint32_t len)
{
    return p->desc.kind != QN_GROUP_WINDOW || len < p->desc.window
               ? 0
               : (len - p->desc.window + 1) / BLOCK;
}

/* Shortens the hit to what every window group can serve; false when it already fits. */
static bool cut_to_windows(qn_cache *c, hit *h)
{
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const qn_cpool *p = &c->pool[g];
        if (p->desc.kind != QN_GROUP_WINDOW || h->len == 0) continue;
        uint32_t node = h->node, i = blocks_for(h->len);
        for (const uint32_t from = window_from(p, h->len); i-- > from;
             node = c->node[node].parent) {
            if (c->node[node].block[g] != QN_NO_BLOCK) continue;
            cut(c, h, i * BLOCK);
            return true;
        }
    }
    return false;
}

static bool cut_to_spans(qn_cache *c, hit *h, const qn_key_extra *extra, uint32_t n_extra)
{
    for (uint32_t i = 0; i < n_extra; i++) {
        if (extra[i].end == UINT32_MAX || h->len <= extra[i].begin || h->len >= extra[i].end)
            continue;
        cut(c, h, extra[i].begin);
        return true;
    }
    return false;
}

static hit longest(qn_cache *c, const uint32_t *tokens, uint32_t most, const qn_key_extra *extra,
                   uint32_t n_extra)
{
    hit h = {0, 0};
    uint64_t digest[2];
    for (;;) {
        const uint32_t left = most - h.len;
        qn_tree_extra(digest, extra, n_extra, h.len / BLOCK);
        const uint32_t next =
            left < BLOCK ? QN_NO_NODE : qn_tree_find(c, h.node, tokens + h.len, digest);
        if (next == QN_NO_NODE || !qn_tree_whole(c, next)) break;
        h = (hit){h.len + BLOCK, next};
    }
    uint32_t same = 0;
    const uint32_t left = most - h.len, n = left < BLOCK ? left : BLOCK;
    const uint32_t part = qn_tree_nearest(c, h.node, tokens + h.len, n, digest, &same);
    if (part != QN_NO_NODE) h = (hit){h.len + same, part};
    while (cut_to_windows(c, &h) || cut_to_spans(c, &h, extra, n_extra)) {
    }
    return h;
}

static void adopt(qn_seq *s, hit h, const uint32_t *tokens)
{
    qn_cache *c = s->c;
    uint32_t node = h.node;
    s->len = h.len;
    s->n_blocks = blocks_for(h.len);
    s->n_chain = h.len / BLOCK;
    if (h.len % BLOCK) {
        memcpy(s->open, tokens + s->n_chain * BLOCK, h.len % BLOCK * sizeof *tokens);
        stand_on(s, c->node[node].parent);
    } else {
        stand_on(s, node);
    }
    for (uint32_t i = s->n_blocks; i-- > 0; node = c->node[node].parent) {
        for (uint32_t g = 0; g < c->n_groups; g++) {
            const bool needed = i >= window_from(&c->pool[g], h.len);
            s->table[g][i] = needed ? c->node[node].block[g] : QN_NO_BLOCK;
            if (needed) qn_cpool_hold(&c->pool[g], s->table[g][i]);
        }
    }
}

uint32_t qn_seq_match(qn_seq *s, const uint32_t *tokens, uint32_t n, const qn_key_extra *extra,
                      uint32_t n_extra)
{
    qn_cache *c = s->c;
    QN_ASSERT(s->len == 0 && s->reserved == 0);
    if (s->is_private || n == 0) return 0;
    const uint32_t most = n - 1 < c->max_positions ? n - 1 : c->max_positions;
    const hit h = longest(c, tokens, most, extra, n_extra);
    if (h.len == 0) {
        c->misses++;
        return 0;
    }
    adopt(s, h, tokens);
    c->hits++;
    c->hit_tokens += h.len;
    return h.len;
}

/* --- reserve ---------------------------------------------------------------------------------- */

/* Blocks to add at the end for n more positions. */
static uint32_t more_blocks(const qn_seq *s, uint32_t n)
{
    const uint32_t all = blocks_for(s->len + n);
    return all > s->n_blocks ? all - s->n_blocks : 0;
}

static bool has_room(const qn_seq *s, uint32_t more, bool copy)
{
    for (uint32_t g = 0; g < s->c->n_groups; g++) {
        const qn_cpool *p = &s->c->pool[g];
        const uint32_t need = more + (copy && !open_is_mine(s, g));
        if (need > p->n_free + p->n_evictable) return false;
    }
    return true;
}

/* The node of the open block when this sequence alone uses it: then it can be taken out of the tree
 * instead of being copied. */
static uint32_t open_node_of_mine(const qn_seq *s)
{
    uint32_t node = QN_NO_NODE;
    if (s->len % BLOCK == 0) return node;
    for (uint32_t g = 0; g < s->c->n_groups; g++) {
        const qn_cblock *b = &s->c->pool[g].block[s->table[g][s->len / BLOCK]];
        if (b->refs > 1) return QN_NO_NODE;
        if (b->node != QN_NO_NODE) node = b->node;
    }
    return node;
}

bool qn_seq_fits(const qn_seq *s, uint32_t n)
{
    if (n > s->c->max_positions - s->len) return false;
    const uint32_t more = more_blocks(s, n);
    return has_room(s, more, true) ||
           (open_node_of_mine(s) != QN_NO_NODE && has_room(s, more, false));
}

static uint32_t take(qn_cache *c, uint32_t group)
{
    while (c->pool[group].n_free == 0) QN_ASSERT(qn_tree_evict(c, group));
    return qn_cpool_take(&c->pool[group]);
}

static void own_open_block(qn_seq *s)
{
    qn_cache *c = s->c;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        if (open_is_mine(s, g)) continue;
        uint32_t *at = &s->table[g][s->len / BLOCK];
        const uint32_t id = take(c, g);
        qn_cpool_copy(&c->pool[g], id, *at, s->len % BLOCK);
        qn_cpool_release(&c->pool[g], *at);
        *at = id;
    }
}

qn_code qn_seq_reserve(qn_seq *s, uint32_t n, qn_err *err)
{
    qn_cache *c = s->c;
    if (n > c->max_positions - s->len)
        return qn_fail(err, QN_E_LIMIT, "sequence of %u positions and %u more, expected at most %u",
                       s->len, n, c->max_positions);
    if (n == 0) return QN_OK;
    if (!qn_seq_fits(s, n))
        return qn_fail(err, QN_E_AGAIN, "cache: no room for %u positions behind %u", n, s->len);
    const uint32_t more = more_blocks(s, n);
    if (!has_room(s, more, true)) qn_tree_detach(c, open_node_of_mine(s));
    own_open_block(s);
    for (uint32_t i = 0; i < more; i++, s->n_blocks++)
        for (uint32_t g = 0; g < c->n_groups; g++) s->table[g][s->n_blocks] = take(c, g);
    if (n > s->reserved) s->reserved = n;
    return QN_OK;
}

/* --- commit, trim, fork ----------------------------------------------------------------------- */

/* The block that just became full gets its node. Where the tree has the same block already, equal keys
 * mean equal bytes: ours is given back and theirs used. */
static void enter_tree(qn_seq *s, const qn_key_extra *extra, uint32_t n_extra)
{
    qn_cache *c = s->c;
    const uint32_t index = s->len / BLOCK - 1;
    uint64_t digest[2];
    if (s->is_private || s->off_chain) return;
    qn_tree_extra(digest, extra, n_extra, index);
    uint32_t node = qn_tree_find(c, s->tail, s->open, digest);
    if (node == QN_NO_NODE) node = qn_tree_add(c, s->tail, s->open, digest);
    s->off_chain = node == QN_NO_NODE;
    if (s->off_chain) return;
    stand_on(s, node);
    s->n_chain++;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        uint32_t *mine = &s->table[g][index], *theirs = &c->node[node].block[g];
        if (*theirs == QN_NO_BLOCK) {
            *theirs = *mine;
            c->pool[g].block[*mine].node = node;
        } else {
            qn_cpool_hold(&c->pool[g], *theirs);
            qn_cpool_release(&c->pool[g], *mine);
            *mine = *theirs;
        }
    }
}

static void leave_windows(qn_seq *s)
{
    for (uint32_t g = 0; g < s->c->n_groups; g++) {
        uint32_t i = window_from(&s->c->pool[g], s->len);
        while (i > 0 && s->table[g][i - 1] != QN_NO_BLOCK) i--;
        for (; i < window_from(&s->c->pool[g], s->len); i++) let_go(s, g, i);
    }
}

/* Gives back what lies behind len. A later reader must find zeros there (rule R2), so what an abandoned
 * step wrote into the open block is wiped. */
static void drop_reserved(qn_seq *s, bool wrote)
{
    shorten(s, blocks_for(s->len));
    s->reserved = 0;
    if (!wrote || s->len % BLOCK == 0) return;
    for (uint32_t g = 0; g < s->c->n_groups; g++)
        if (open_is_mine(s, g))
            qn_cpool_zero(&s->c->pool[g], s->table[g][s->len / BLOCK], s->len % BLOCK, BLOCK);
}

qn_code qn_seq_commit(qn_seq *s, const uint32_t *tokens, uint32_t kept, const qn_key_extra *extra,
                      uint32_t n_extra, qn_err *err)
{
    if (kept > s->reserved)
        return qn_fail(err, QN_E_INVAL, "sequence: %u positions kept, %u reserved", kept,
                       s->reserved);
    const bool wrote = kept < s->reserved;
    for (uint32_t i = 0; i < kept; i++) {
        s->open[s->len % BLOCK] = tokens[i];
        s->len++;
        if (s->len % BLOCK == 0) enter_tree(s, extra, n_extra);
    }
    drop_reserved(s, wrote);
    leave_windows(s);
    return QN_OK;
}

uint32_t qn_seq_trim(qn_seq *s, uint32_t len)
{
    if (len >= s->len) {
        drop_reserved(s, s->reserved > 0);
        return s->len;
    }
    for (uint32_t g = 0; g < s->c->n_groups && len > 0; g++)
        if (s->table[g][window_from(&s->c->pool[g], len)] == QN_NO_BLOCK) len = 0;
    const uint32_t index = len / BLOCK;
    bool known = index == s->len / BLOCK || len % BLOCK == 0; /* the open block's ids */
    uint32_t tail = s->tail;
    for (; s->n_chain > index; s->n_chain--) {
        if (s->n_chain - 1 == index && len % BLOCK) {
            memcpy(s->open, s->c->node[tail].tokens, sizeof s->open);
            known = true;
        }
        tail = s->c->node[tail].parent;
    }
    s->len = len;
    drop_reserved(s, true);
    stand_on(s, tail);
    s->off_chain = s->n_chain != index || !known;
    return len;
}

qn_code qn_seq_fork(qn_seq **out, qn_seq *s, qn_err *err)
{
    *out = NULL;
    if (s->reserved > 0)
        return qn_fail(err, QN_E_INVAL, "sequence: fork with %u positions reserved", s->reserved);
    QN_TRY(qn_seq_open(out, s->c, err));
    qn_seq *f = *out;
    stand_on(f, s->tail);
    f->len = s->len;
    f->n_blocks = s->n_blocks;
    f->n_chain = s->n_chain;
    f->is_private = s->is_private;
    f->off_chain = s->off_chain;
    memcpy(f->open, s->open, sizeof f->open);
    for (uint32_t g = 0; g < s->c->n_groups; g++) {
        memcpy(f->table[g], s->table[g], s->n_blocks * sizeof *s->table[g]);
        for (uint32_t i = 0; i < s->n_blocks; i++)
            if (f->table[g][i] != QN_NO_BLOCK) qn_cpool_hold(&s->c->pool[g], f->table[g][i]);
    }
    return QN_OK;
}
