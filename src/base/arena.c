/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - blocks that double from 1 KiB to 1 MiB, newest first; a push larger than that gets a block
 * of its own size. A block never holds more than the limit still allows, so what the heap gives stays
 * below twice the limit. */
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"

enum { FIRST = 1024, LARGEST = 1 << 20, MAX_ALIGN = 64 };

typedef struct qn_arena_block {
    struct qn_arena_block *next; /* older */
    size_t cap, used;            /* bytes of data */
    _Alignas(MAX_ALIGN) unsigned char data[];
} qn_arena_block;

void qn_arena_init(qn_arena *a, size_t limit) { *a = (qn_arena){NULL, 0, limit}; }

static void drop_until(qn_arena *a, const qn_arena_block *keep)
{
    while (a->head != keep) {
        qn_arena_block *b = a->head;
        QN_ASSERT(b != NULL); /* the mark belongs to another arena or lies behind a rewind */
        a->head = b->next;
        qn_free(b);
    }
}

void qn_arena_fini(qn_arena *a)
{
    drop_until(a, NULL);
    a->used = 0;
}

static bool grow(qn_arena *a, size_t bytes)
{
    size_t cap = FIRST, total = 0;
    if (a->head) cap = a->head->cap < LARGEST / 2 ? a->head->cap * 2 : LARGEST;
    if (cap > a->limit - a->used) cap = a->limit - a->used;
    if (cap < bytes) cap = bytes;
    if (!qn_add_size(&total, sizeof(qn_arena_block), cap)) return false;
    qn_arena_block *b = qn_alloc(total);
    if (!b) return false;
    b->next = a->head;
    b->cap = cap;
    b->used = 0;
    a->head = b;
    return true;
}

void *qn_arena_push(qn_arena *a, size_t bytes, size_t align)
{
    QN_ASSERT(align > 0 && align <= MAX_ALIGN && (align & (align - 1)) == 0);
    size_t pad = a->head ? ((size_t)0 - a->head->used) & (align - 1) : 0;
    if (!a->head || pad > a->head->cap - a->head->used ||
        bytes > a->head->cap - a->head->used - pad) {
        pad = 0; /* a new block begins aligned */
        if (a->used > a->limit || bytes > a->limit - a->used || !grow(a, bytes)) return NULL;
    } else if (a->used > a->limit || pad > a->limit - a->used || bytes > a->limit - a->used - pad) {
        return NULL;
    }
    void *p = a->head->data + a->head->used + pad;
    a->head->used += pad + bytes;
    a->used += pad + bytes;
    return p;
}

void *qn_arena_push_zero(qn_arena *a, size_t n, size_t size, size_t align)
{
    size_t bytes = 0;
    if (!qn_mul_size(&bytes, n, size)) return NULL;
    void *p = qn_arena_push(a, bytes, align);
    if (p) memset(p, 0, bytes);
    return p;
}

char *qn_arena_push_bytes(qn_arena *a, const void *bytes, size_t n)
{
    size_t total = 0;
    if (!qn_add_size(&total, n, 1)) return NULL;
    char *p = qn_arena_push(a, total, 1);
    if (!p) return NULL;
    if (n) memcpy(p, bytes, n);
    p[n] = '\0';
    return p;
}

qn_arena_mark qn_arena_save(const qn_arena *a)
{
    return (qn_arena_mark){a->head, a->head ? a->head->used : 0, a->used};
}

void qn_arena_rewind(qn_arena *a, qn_arena_mark mark)
{
    drop_until(a, mark.head);
    if (a->head) a->head->used = mark.head_used;
    a->used = mark.used;
}
