/* SPDX-License-Identifier: Apache-2.0 */
/* cache_int.h - pools, tree nodes and sequences, as the files of this layer share them.
 *
 *     pool   one a group: blocks in one run of memory, a free list, an eviction list
 *     node   one full block of a token timeline: its 64 ids, its key, and the block of each group
 *     root   node 0: the empty timeline of this numerics id
 *
 *     free ──take──► private (refs 1) ──commit of a full block──► in the tree (node set)
 *      ▲                  │ let go                                  │ refs 0: on the eviction list
 *      └──────────────────┴───────────────── evict ◄────────────────┘ refs > 0: in use, shared
 *
 * A block is released from the end of a timeline to its start, so on the eviction list a child always
 * comes before its parent, and taking the oldest never cuts a chain that is still whole.
 *
 * A child is found by its key, then compared: parent, 64 ids, digest of extras. By induction from the
 * root a hit is exact; two keys that collide cost a comparison and nothing else.
 */
#ifndef QN_CACHE_CACHE_INT_H
#define QN_CACHE_CACHE_INT_H
#include "cache/cache.h"

#define QN_NO_NODE UINT32_MAX

typedef struct qn_cblock {
    uint32_t refs;       /* sequences that hold it */
    uint32_t node;       /* whose block it is, or QN_NO_NODE */
    uint32_t prev, next; /* eviction list; the free list uses next */
    bool dirty;          /* was handed out before: zeroed when taken again */
} qn_cblock;

typedef struct qn_cpool {
    qn_group_desc desc;
    uint8_t *mem;
    size_t bytes, block_bytes;
    qn_cblock *block; /* [n] */
    uint32_t n, n_free, n_evictable;
    uint32_t free_head, oldest, newest;
} qn_cpool;

typedef struct qn_cnode {
    uint64_t key[2], extra[2];
    uint32_t parent, first_child, prev_sibling, next_sibling;
    uint32_t next_in_bucket;       /* the free list uses it too */
    uint32_t refs;                 /* children, and sequences whose chain ends here */
    uint32_t tokens[QN_KV_BLOCK];  /* of this block */
    uint32_t block[QN_MAX_GROUPS]; /* or QN_NO_BLOCK */
} qn_cnode;

struct qn_cache {
    qn_device *dev;
    qn_cpool pool[QN_MAX_GROUPS];
    uint32_t n_groups, n_layers, max_positions;
    qn_kv_layer *layers;
    qn_cnode *node; /* [n_nodes] */
    uint32_t *bucket;
    uint32_t n_nodes, bucket_mask, free_node, n_seqs;
    uint64_t key_mask[2];
    uint64_t hits, hit_tokens, misses, evictions;
};

struct qn_seq {
    qn_cache *c;
    uint32_t len, reserved;
    uint32_t n_blocks;      /* entries in each table */
    uint32_t tail, n_chain; /* last node of the chain, and how many blocks the chain has */
    bool is_private,
        off_chain; /* off_chain: a full block has no node, later ones get none either */
    uint32_t open[QN_KV_BLOCK]; /* ids of the open block, len % QN_KV_BLOCK of them */
    uint32_t cap;               /* entries a table has room for */
    uint32_t *table[QN_MAX_GROUPS];
};

/* blocks.c: one pool. */
qn_code qn_cpool_open(qn_cpool *p, qn_device *dev, const qn_group_desc *desc, uint32_t n,
                      qn_err *err);
void qn_cpool_close(qn_cpool *p, qn_device *dev);
size_t qn_cpool_block_bytes(const qn_group_desc *d); /* 0: overflow or an empty shape */
/* A free block, zeroed, with one reference; there must be one. */
uint32_t qn_cpool_take(qn_cpool *p);
void qn_cpool_hold(qn_cpool *p, uint32_t id);
/* The last one to let go frees it, or makes it evictable when it has a node. */
void qn_cpool_release(qn_cpool *p, uint32_t id);
void qn_cpool_free(qn_cpool *p, uint32_t id);   /* refs is 0, node is gone */
void qn_cpool_unlist(qn_cpool *p, uint32_t id); /* off the eviction list */
/* Positions [0, n) of src to dst / zero positions [begin, end). */
void qn_cpool_copy(qn_cpool *p, uint32_t dst, uint32_t src, uint32_t n);
void qn_cpool_zero(qn_cpool *p, uint32_t id, uint32_t begin, uint32_t end);

/* tree.c */
qn_code qn_tree_open(qn_cache *c, uint32_t n_nodes, const uint64_t numerics[2], uint32_t key_bits,
                     qn_err *err);
void qn_tree_close(qn_cache *c);
/* Digest of what `extra` says about block `index`; zeros when nothing. */
void qn_tree_extra(uint64_t out[2], const qn_key_extra *extra, uint32_t n, uint32_t index);
uint32_t qn_tree_find(const qn_cache *c, uint32_t parent, const uint32_t *tokens,
                      const uint64_t extra[2]);
/* The child with all its full-group blocks that shares most of tokens[0, n), n <= QN_KV_BLOCK;
 * *same is how many. */
uint32_t qn_tree_nearest(const qn_cache *c, uint32_t parent, const uint32_t *tokens, uint32_t n,
                         const uint64_t extra[2], uint32_t *same);
/* QN_NO_NODE: no room. The node has no blocks yet. */
uint32_t qn_tree_add(qn_cache *c, uint32_t parent, const uint32_t *tokens, const uint64_t extra[2]);
bool qn_tree_whole(const qn_cache *c, uint32_t node); /* has its block in every full group */
void qn_tree_hold(qn_cache *c, uint32_t node);
void qn_tree_release(qn_cache *c, uint32_t node);
/* Frees the group's oldest unused block; false when there is none. */
bool qn_tree_evict(qn_cache *c, uint32_t group);
/* Takes the blocks off a node: those in use become private, the others free. */
void qn_tree_detach(qn_cache *c, uint32_t node);

#endif
