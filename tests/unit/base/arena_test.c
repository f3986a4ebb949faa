/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"
#include "qt.h"

static void pushes_are_aligned_and_do_not_overlap(qt *t)
{
    qn_arena a;
    qn_arena_init(&a, 1 << 20);
    unsigned char *seen[200];
    size_t size[200];
    for (size_t i = 0; i < 200; i++) {
        const size_t align = (size_t)1 << (i % 7);
        size[i] = (i * 37) % 300;
        seen[i] = qn_arena_push(&a, size[i], align);
        if (!QT_OK(t, seen[i] && (uintptr_t)seen[i] % align == 0)) break;
        memset(seen[i], (int)i, size[i]);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < size[i]; k++)
            if (seen[i][k] != (unsigned char)i) QT_OKF(t, false, "push %zu, byte %zu", i, k);
    qn_arena_fini(&a);
}

static void refuses_one_byte_past_the_limit(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_arena a;
    qn_arena_init(&a, 100);
    QT_OK(t, !qn_arena_push(&a, 101, 1));
    QT_OK(t, qn_arena_push(&a, 60, 1) != NULL);
    QT_OK(t, !qn_arena_push(&a, 41, 1));
    QT_OK(t, qn_arena_push(&a, 40, 1) != NULL);
    QT_EQ(t, a.used, 100);
    QT_OK(t, !qn_arena_push(&a, 1, 1));
    QT_OK(t, qn_arena_push(&a, 0, 1) != NULL);
    qn_arena_fini(&a);
    qn_arena_fini(&a);
    QT_EQ(t, qn_alloc_live(), before);
}

static void padding_counts_against_the_limit(qt *t)
{
    qn_arena a;
    qn_arena_init(&a, 100);
    QT_OK(t, qn_arena_push(&a, 1, 1) != NULL);
    QT_OK(t, qn_arena_push(&a, 36, 64) != NULL); /* 1 + 63 + 36 */
    QT_EQ(t, a.used, 100);
    QT_OK(t, !qn_arena_push(&a, 1, 1));
    qn_arena_fini(&a);
}

static void heap_stays_below_twice_the_limit(qt *t)
{
    const size_t before = qn_alloc_live_bytes(), limit = 8u << 20;
    qn_arena a;
    qn_arena_init(&a, limit);
    for (size_t i = 0;; i++) /* the worst order: one byte, then more than a block's rest */
        if (!qn_arena_push(&a, i % 2 ? (1u << 20) : 1, 1)) break;
    QT_OK(t, a.used > limit / 2);
    QT_OK(t, qn_alloc_live_bytes() - before < 2 * limit + (1u << 20));
    qn_arena_fini(&a);
}

static void overflowing_sizes_give_null(qt *t)
{
    qn_arena a;
    qn_arena_init(&a, SIZE_MAX);
    QT_OK(t, !qn_arena_push(&a, SIZE_MAX, 1));
    QT_OK(t, !qn_arena_push(&a, SIZE_MAX - 70, 64));
    QT_OK(t, !qn_arena_push_zero(&a, SIZE_MAX / 2, 3, 8));
    QT_OK(t, !qn_arena_push_bytes(&a, "", SIZE_MAX));
    qn_arena_fini(&a);
}

static void rewind_gives_back_what_came_after(qt *t)
{
    qn_arena a;
    qn_arena_init(&a, 1 << 20);
    const size_t empty = qn_alloc_live();
    const qn_arena_mark start = qn_arena_save(&a);
    char *keep = qn_arena_push_bytes(&a, "keep", 4);
    const qn_arena_mark mark = qn_arena_save(&a);
    const size_t blocks = qn_alloc_live(), used = a.used;
    for (int i = 0; i < 100; i++) QT_OK(t, qn_arena_push(&a, 5000, 8) != NULL);
    qn_arena_rewind(&a, mark);
    QT_EQ(t, qn_alloc_live(), blocks);
    QT_EQ(t, a.used, used);
    QT_STR(t, keep, "keep");
    const char *again = qn_arena_push_bytes(&a, "next", 4);
    QT_OK(t, again == keep + 5);
    qn_arena_rewind(&a, start);
    QT_EQ(t, qn_alloc_live(), empty);
    QT_EQ(t, a.used, 0);
    qn_arena_fini(&a);
}

static void copies_bytes_with_a_nul(qt *t)
{
    qn_arena a;
    qn_arena_init(&a, 100);
    const char *p = qn_arena_push_bytes(&a, "a\0b", 3), *e = qn_arena_push_bytes(&a, NULL, 0);
    QT_OK(t, p && memcmp(p, "a\0b", 4) == 0);
    QT_STR(t, e, "");
    int *n = QN_ARENA_NEW(&a, int, 4);
    QT_OK(t, n && n[0] == 0 && n[3] == 0);
    qn_arena_fini(&a);
}

static void push_survives_failed_allocations(qt *t)
{
    qn_arena a;
    qn_arena_init(&a, 1 << 20);
    qn_alloc_fail_after(0);
    QT_OK(t, !qn_arena_push(&a, 10, 1) && a.used == 0);
    qn_alloc_fail_after(SIZE_MAX);
    QT_OK(t, qn_arena_push(&a, 10, 1) != NULL);
    qn_alloc_fail_after(0);
    QT_OK(t, qn_arena_push(&a, 10, 1) != NULL); /* fits the block that is there */
    QT_OK(t, !qn_arena_push(&a, 10000, 1));
    qn_alloc_fail_after(SIZE_MAX);
    QT_EQ(t, a.used, 20);
    qn_arena_fini(&a);
}

QT_MAIN(QT(pushes_are_aligned_and_do_not_overlap), QT(refuses_one_byte_past_the_limit),
        QT(padding_counts_against_the_limit), QT(heap_stays_below_twice_the_limit),
        QT(overflowing_sizes_give_null), QT(rewind_gives_back_what_came_after),
        QT(copies_bytes_with_a_nul), QT(push_survives_failed_allocations))
