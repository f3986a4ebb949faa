/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - the blocks of one group: who holds them, which are free, which may be evicted.
 *
 * Memory is written here only to zero a block or to copy the start of one. A block that was never
 * handed out is zero already, so a large pool costs no memory before it is used.
 *
 * Owner:  the cache. Thread: the engine thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "cache/cache_int.h"

/* Bytes of the positions of one head: [position in block][head dim]. */
static size_t head_bytes(const qn_group_desc *d)
{
    return (size_t)QN_KV_BLOCK * d->head_dim * qn_kv_value_bytes(d->fmt);
}

size_t qn_cpool_block_bytes(const qn_group_desc *d)
{
    size_t bytes = 0;
    if (!qn_mul_size(&bytes, QN_KV_BLOCK * qn_kv_value_bytes(d->fmt), d->head_dim)) return 0;
    if (!qn_mul_size(&bytes, bytes, d->n_kv_heads)) return 0;
    if (!qn_mul_size(&bytes, bytes, 2)) return 0;
    return qn_mul_size(&bytes, bytes, d->n_layers) ? bytes : 0;
}

qn_code qn_cpool_open(qn_cpool *p, qn_device *dev, const qn_group_desc *desc, uint32_t n,
                      qn_err *err)
{
    p->desc = *desc;
    p->block_bytes = qn_cpool_block_bytes(desc);
    p->free_head = p->oldest = p->newest = QN_NO_BLOCK;
    p->block = qn_calloc(n, sizeof *p->block);
    if (!p->block || !qn_mul_size(&p->bytes, p->block_bytes, n))
        return qn_fail(err, QN_E_NOMEM, "cache: records of %u blocks", n);
    p->mem = dev->ops->alloc(dev, p->bytes);
    if (!p->mem)
        return qn_fail(err, QN_E_NOMEM,
                       "cache: the system has no %.1f MiB for keys and values; a smaller context "
                       "needs less",
                       (double)p->bytes / 1048576.0);
    p->n = n;
    for (uint32_t id = n; id-- > 0;) {
        p->block[id].node = QN_NO_NODE;
        qn_cpool_free(p, id);
    }
    return QN_OK;
}

void qn_cpool_close(qn_cpool *p, qn_device *dev)
{
    if (p->mem) dev->ops->free(dev, p->mem, p->bytes);
    qn_free(p->block);
    *p = (qn_cpool){0};
}

uint32_t qn_cpool_take(qn_cpool *p)
{
    QN_ASSERT(p->n_free > 0);
    const uint32_t id = p->free_head;
    qn_cblock *b = &p->block[id];
    p->free_head = b->next;
    p->n_free--;
    if (b->dirty) memset(p->mem + (size_t)id * p->block_bytes, 0, p->block_bytes); /* rule R2 */
    b->dirty = true;
    b->refs = 1;
    return id;
}

void qn_cpool_free(qn_cpool *p, uint32_t id)
{
    qn_cblock *b = &p->block[id];
    QN_ASSERT(b->refs == 0 && b->node == QN_NO_NODE);
    b->next = p->free_head;
    p->free_head = id;
    p->n_free++;
}

void qn_cpool_unlist(qn_cpool *p, uint32_t id)
{
    const qn_cblock *b = &p->block[id];
    *(b->prev == QN_NO_BLOCK ? &p->oldest : &p->block[b->prev].next) = b->next;
    *(b->next == QN_NO_BLOCK ? &p->newest : &p->block[b->next].prev) = b->prev;
    p->n_evictable--;
}

static void list_newest(qn_cpool *p, uint32_t id)
{
    qn_cblock *b = &p->block[id];
    b->prev = p->newest;
    b->next = QN_NO_BLOCK;
    *(p->newest == QN_NO_BLOCK ? &p->oldest : &p->block[p->newest].next) = id;
    p->newest = id;
    p->n_evictable++;
}

void qn_cpool_hold(qn_cpool *p, uint32_t id)
{
    if (p->block[id].refs++ == 0) qn_cpool_unlist(p, id);
}

void qn_cpool_release(qn_cpool *p, uint32_t id)
{
    qn_cblock *b = &p->block[id];
    QN_ASSERT(b->refs > 0);
    if (--b->refs > 0) return;
    if (b->node == QN_NO_NODE)
        qn_cpool_free(p, id);
    else
        list_newest(p, id);
}

void qn_cpool_copy(qn_cpool *p, uint32_t dst, uint32_t src, uint32_t n)
{
    const size_t row = head_bytes(&p->desc), part = row / QN_KV_BLOCK * n;
    uint8_t *to = p->mem + (size_t)dst * p->block_bytes;
    const uint8_t *from = p->mem + (size_t)src * p->block_bytes;
    for (size_t at = 0; at < p->block_bytes; at += row) memcpy(to + at, from + at, part);
}

void qn_cpool_zero(qn_cpool *p, uint32_t id, uint32_t begin, uint32_t end)
{
    const size_t row = head_bytes(&p->desc), pos = row / QN_KV_BLOCK;
    uint8_t *to = p->mem + (size_t)id * p->block_bytes + begin * pos;
    for (size_t at = 0; at < p->block_bytes; at += row) memset(to + at, 0, (end - begin) * pos);
}
