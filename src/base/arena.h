/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - bump allocation with one lifetime and a ceiling.
 *
 * Everything pushed dies together, at fini or at a rewind; there is no single free. The ceiling
 * turns hostile input into QN_E_NOMEM for one request instead of for the process.
 *
 * Owner:  the caller embeds the struct; the arena owns the blocks behind it.
 * Thread: one thread at a time, never shared.
 */
#ifndef QN_BASE_ARENA_H
#define QN_BASE_ARENA_H
#include "base/status.h"

typedef struct qn_arena {
    struct qn_arena_block *head; /* newest first */
    size_t used, limit;          /* bytes handed out, padding included; the most allowed */
} qn_arena;

typedef struct qn_arena_mark { /* a point to rewind to; values only */
    struct qn_arena_block *head;
    size_t head_used, used; /* bytes */
} qn_arena_mark;

/* Allocates nothing and cannot fail. limit in bytes, > 0. */
void qn_arena_init(qn_arena *a, size_t limit);
/* Frees every block; a zeroed or already finished arena is fine. */
void qn_arena_fini(qn_arena *a);
/* bytes of uninitialised memory, aligned to align (a power of two, at most 64), borrowed until
 * fini or a rewind past it. NULL: the limit or the heap is reached. */
QN_NODISCARD void *qn_arena_push(qn_arena *a, size_t bytes, size_t align);
/* n * size zeroed bytes with an overflow check; otherwise as push. */
QN_NODISCARD void *qn_arena_push_zero(qn_arena *a, size_t n, size_t size, size_t align);
/* A copy of bytes[0, n) with a NUL behind it; lifetime and NULL as push. bytes may be NULL if n is 0. */
QN_NODISCARD char *qn_arena_push_bytes(qn_arena *a, const void *bytes, size_t n);

/* Remember this point; rewind gives back all that was pushed after it. Marks nest: a rewind makes
 * every later mark invalid. */
qn_arena_mark qn_arena_save(const qn_arena *a);
void qn_arena_rewind(qn_arena *a, qn_arena_mark mark);

/* n zeroed objects of a type, or NULL. */
#define QN_ARENA_NEW(arena, type, n) \
    ((type *)qn_arena_push_zero((arena), (n), sizeof(type), _Alignof(type)))

#endif
