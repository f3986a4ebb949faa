/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - the one KV store: blocks by layer group, per-sequence tables, a prefix tree of keys.
 *
 *     group     layers with the same format and lifetime: full attention, a window, recurrent state
 *     block     QN_KV_BLOCK positions of every layer in its group (tensor/kv.h)
 *     key       of a full block: hash(parent key, its token ids, media digests and adapters at these
 *               positions, numerics id); equal keys hold equal bytes
 *     sequence  a token timeline: one table of block ids a group, and a length
 *
 * Invariants
 *  1. A block is free, private to one sequence, or shared; a shared block is never written.
 *  2. A sequence's committed positions never change; what a step writes past its length is
 *     provisional until qn_seq_commit moves the length. An abandoned step costs nothing.
 *  3. A full block gets its key at commit and enters the tree; with no user left it stays, evictable,
 *     least recently used first.
 *  4. A hit is the longest prefix for which every group has what it needs; at least the last prompt
 *     token runs again.
 *  5. Blocks are zero-filled when taken (rule R2).
 *
 * Owner:  the engine. Thread: the engine thread.
 */
#ifndef QN_CACHE_CACHE_H
#define QN_CACHE_CACHE_H
#include "device/device.h"
#include "tensor/kv.h"

#define QN_NO_BLOCK UINT32_MAX /* in a table: a block that fell out of the window */

typedef enum qn_group_kind {                /* lifetime of a group's blocks */
                             QN_GROUP_FULL, /* every position stays */
                             QN_GROUP_WINDOW, /* positions below length - window fall out, back to the tree */
                             QN_GROUP_STATE /* recurrent state: snapshots, no positions; needs a family that has it */
} qn_group_kind;

typedef struct qn_group_desc {
    qn_group_kind kind;
    qn_kv_fmt fmt;
    uint32_t n_kv_heads, head_dim;
    uint32_t window; /* QN_GROUP_WINDOW only */
    uint32_t n_layers;
} qn_group_desc;

typedef struct qn_cache_options {
    const qn_group_desc *groups; /* [n_groups], copied */
    uint32_t n_groups, n_layers;
    const uint32_t *layer_group; /* [n_layers]: group of each layer, in layer order; copied */
    size_t budget_bytes;         /* ceiling of all pools together; at least one block a group */
    uint32_t max_positions;      /* a sequence may reach; 0: what one pool holds */
    uint64_t numerics[2];        /* numerics id: enters every key */
    uint32_t key_bits;           /* of a key that count; 0: all. For tests: few make keys collide */
} qn_cache_options;

typedef struct qn_cache qn_cache;
typedef struct qn_seq qn_seq;

/* Every group gets the same number of blocks: as many as the budget holds. Errors: INVAL, LIMIT (the
 * budget holds no block), UNSUPPORTED (a kind of group or device without a store yet), NOMEM. */
qn_code qn_cache_open(qn_cache **out, qn_device *dev, const qn_cache_options *opt, qn_err *err);
/* All sequences must be gone. NULL is fine. */
void qn_cache_close(qn_cache *c);
/* [n_layers], fixed while the cache lives: what plans are built with. */
const qn_kv_layer *qn_cache_layers(const qn_cache *c);
uint32_t qn_cache_groups(const qn_cache *c);
/* Positions that one sequence can reach with all blocks its own, at most max_positions. */
uint32_t qn_cache_capacity(const qn_cache *c);
/* Positions that new blocks could hold now, unused ones evicted. */
uint64_t qn_cache_room(const qn_cache *c);

/* What is particular to a span of positions beside its tokens: enters the keys there. A span with an
 * end is a medium, which a hit takes whole or not at all; one that never ends (UINT32_MAX) is an
 * adapter set or a cache space. Every call of one sequence gets the same list, ascending by begin. */
typedef struct qn_key_extra {
    uint32_t begin, end; /* positions [begin, end) */
    uint64_t digest[2];  /* of the medium, adapter set or space */
} qn_key_extra;

/* All memory that the sequence will need, its blocks apart: no later call allocates, but fork. */
qn_code qn_seq_open(qn_seq **out, qn_cache *c, qn_err *err);
/* Before match and the first commit: neither use nor leave a prefix. */
void qn_seq_set_private(qn_seq *s);
/* Lets go of its blocks; those with a key stay in the tree. NULL is fine. */
void qn_seq_close(qn_seq *s);
/* For an empty sequence: takes the longest cached prefix of tokens[0, n), at most n - 1 of them, and
 * returns how many positions it now holds. Non-consuming: others keep theirs. */
uint32_t qn_seq_match(qn_seq *s, const uint32_t *tokens, uint32_t n, const qn_key_extra *extra,
                      uint32_t n_extra);
/* Makes room for `n` more positions, evicting unused blocks where needed; an open block that others
 * use too, or that a hit ended in, is copied here. AGAIN: the budget is in use by others; nothing
 * changed. LIMIT: beyond max_positions. */
qn_code qn_seq_reserve(qn_seq *s, uint32_t n, qn_err *err);
/* Would reserve(n) succeed now? */
bool qn_seq_fits(const qn_seq *s, uint32_t n);
/* After a step: the next `kept` reserved positions hold `tokens`; the other reserved ones are let go.
 * INVAL: kept is more than was reserved. */
qn_code qn_seq_commit(qn_seq *s, const uint32_t *tokens, uint32_t kept, const qn_key_extra *extra,
                      uint32_t n_extra, qn_err *err);
/* Forgets positions from `len` on and what is reserved; returns the length left: `len`, or 0 when a
 * window group no longer has the positions before `len`. */
uint32_t qn_seq_trim(qn_seq *s, uint32_t len);
/* A second sequence with the same history: blocks shared, the open one copied as soon as one of the
 * two reserves. INVAL: something is reserved. */
qn_code qn_seq_fork(qn_seq **out, qn_seq *s, qn_err *err);

uint32_t qn_seq_len(const qn_seq *s); /* committed positions */
/* Block ids of a group in position order (window blocks that fell out are QN_NO_BLOCK and are never
 * read); borrowed until the next call that changes the sequence. */
const uint32_t *qn_seq_table(const qn_seq *s, uint32_t group, uint32_t *n);

typedef struct qn_cache_stats {
    size_t pool_bytes, used_bytes;            /* used: of blocks that somebody or the tree holds */
    uint32_t blocks, free, in_use, evictable; /* over all groups */
    uint64_t hits, hit_tokens, misses, evictions;
} qn_cache_stats;
void qn_cache_get_stats(const qn_cache *c, qn_cache_stats *out);

#endif
