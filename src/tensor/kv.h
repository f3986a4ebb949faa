/* SPDX-License-Identifier: Apache-2.0 */
/* kv.h - how keys and values lie in blocks, and the view that one layer's attention reads.
 *
 * A block holds QN_KV_BLOCK positions of every layer in its layer group:
 *
 *     block:  [layer][K|V][kv head][position in block][head dim]
 *
 * A sequence's cache in a group is a list of block ids, its table; position p lies in block
 * table[p / QN_KV_BLOCK] at row p % QN_KV_BLOCK. Keys and values are encoded once, when written
 * (rule R3). Blocks are zero-filled when taken (rule R2).
 */
#ifndef QN_TENSOR_KV_H
#define QN_TENSOR_KV_H
#include "base/status.h"

enum {
    QN_KV_BLOCK = 64,  /* positions a block */
    QN_KV_SPAN = 128,  /* keys an attention span, counted from position 0 (rule R2) */
    QN_MAX_GROUPS = 8, /* layer groups a model may have */
};

typedef enum qn_kv_fmt { /* append only: part of the numerics id and of cache files */
                         QN_KV_F32,
                         QN_KV_F16, /* values beyond the range saturate to +-65504 */
                         QN_KV_BF16,
                         QN_KV_FMT_COUNT
} qn_kv_fmt;

/* One layer's keys and values of all sequences in a step, borrowed for the step. */
typedef struct qn_kv_view {
    uint8_t *pool;           /* block 0 */
    size_t block_bytes;      /* from a block to the next */
    size_t k_bytes, v_bytes; /* where this layer's K and V begin inside a block */
    qn_kv_fmt fmt;
    uint32_t n_kv_heads, head_dim;
    const uint32_t *table;     /* block ids of all sequences, one after the other */
    const uint32_t *table_off; /* [sequence]: where its ids begin in table */
} qn_kv_view;

/* Where one layer's cache lies, fixed while the cache lives: what a plan is built with. */
typedef struct qn_kv_layer {
    uint8_t *pool;
    size_t block_bytes, k_bytes, v_bytes;
    qn_kv_fmt fmt;
    uint32_t n_kv_heads, head_dim;
    uint32_t group;  /* layer group: which of the step's tables */
    uint32_t window; /* keys a row sees, its own included; 0: all */
} qn_kv_layer;

/* Bytes of one value; 0 for an unknown format. */
static inline size_t qn_kv_value_bytes(qn_kv_fmt fmt)
{
    return fmt == QN_KV_F32 ? 4 : fmt < QN_KV_FMT_COUNT ? 2 : 0;
}

/* Address of position `pos`, kv head `head` of sequence `seq`: head_dim values. v: values, not keys. */
static inline void *qn_kv_at(const qn_kv_view *kv, uint32_t seq, uint32_t pos, uint32_t head,
                             bool v)
{
    const uint32_t id = kv->table[kv->table_off[seq] + pos / QN_KV_BLOCK];
    const size_t row = (size_t)head * QN_KV_BLOCK + pos % QN_KV_BLOCK;
    return kv->pool + (size_t)id * kv->block_bytes + (v ? kv->v_bytes : kv->k_bytes) +
           row * kv->head_dim * qn_kv_value_bytes(kv->fmt);
}

#endif
