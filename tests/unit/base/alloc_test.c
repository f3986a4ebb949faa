/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "qt.h"

#include <string.h>

static void counts_blocks_and_bytes(qt *t)
{
    const size_t blocks = qn_alloc_live(), bytes = qn_alloc_live_bytes();
    void *a = qn_zalloc(100), *b = qn_alloc(0);
    QT_OK(t, a && b && a != b);
    QT_EQ(t, (uintptr_t)a % 64, 0);
    QT_EQ(t, qn_alloc_live() - blocks, 2);
    QT_EQ(t, qn_alloc_live_bytes() - bytes, 100);
    a = qn_realloc(a, 1000);
    QT_OK(t, a && memcmp(a, (char[100]){0}, 100) == 0);
    QT_EQ(t, qn_alloc_live_bytes() - bytes, 1000);
    qn_free(a);
    qn_free(b);
    qn_free(NULL);
    QT_EQ(t, qn_alloc_live(), blocks);
    QT_EQ(t, qn_alloc_live_bytes(), bytes);
}

static void refuses_above_the_ceiling(qt *t)
{
    const size_t bytes = qn_alloc_live_bytes();
    qn_alloc_set_ceiling(bytes + 1000);
    void *a = qn_alloc(600), *b = qn_alloc(600), *c = qn_pages_alloc(4096);
    QT_OK(t, a && !b && !c);
    qn_alloc_set_ceiling(SIZE_MAX);
    qn_free(a);
    QT_OK(t, !qn_alloc(SIZE_MAX) && !qn_calloc(SIZE_MAX / 2, 3));
    QT_EQ(t, qn_alloc_live_bytes(), bytes);
}

static void fails_on_demand(qt *t)
{
    qn_alloc_fail_after(1);
    void *a = qn_alloc(1), *b = qn_alloc(1), *c = qn_alloc(1);
    qn_alloc_fail_after(SIZE_MAX);
    QT_OK(t, a && !b && !c);
    qn_free(a);
}

static void checks_size_arithmetic(qt *t)
{
    size_t r = 7;
    QT_OK(t, !qn_mul_size(&r, SIZE_MAX, 2) && r == 7);
    QT_OK(t, !qn_add_size(&r, SIZE_MAX, 1) && r == 7);
    QT_OK(t, qn_mul_size(&r, 6, 7) && r == 42);
    QT_OK(t, qn_add_size(&r, 6, 7) && r == 13);
}

static void plain_blocks_are_counted_refused_and_malloc_s(qt *t)
{
    const size_t blocks = qn_alloc_live(), bytes = qn_alloc_live_bytes();
    void *a = qn_plain_alloc(100), *b = qn_plain_alloc(0);
    QT_OK(t, a && b);
    QT_EQ(t, qn_alloc_live() - blocks, 2);
    QT_OK(t, qn_alloc_live_bytes() - bytes >= 100);
    qn_plain_free(a);
    qn_plain_free(b);
    qn_plain_free(NULL);
    QT_EQ(t, qn_alloc_live_bytes(), bytes);
    const size_t refused = qn_alloc_refused();
    qn_alloc_fail_after(0);
    a = qn_plain_alloc(1);
    b = qn_alloc(1);
    qn_alloc_fail_after(SIZE_MAX);
    QT_OK(t, !a && !b && qn_alloc_refused() == refused + 2);
    qn_alloc_set_ceiling(bytes + 1000);
    QT_OK(t, !qn_plain_alloc(2000));
    qn_alloc_set_ceiling(SIZE_MAX);
    QT_EQ(t, qn_alloc_live(), blocks);
}

QT_MAIN(QT(counts_blocks_and_bytes), QT(refuses_above_the_ceiling), QT(fails_on_demand),
        QT(checks_size_arithmetic), QT(plain_blocks_are_counted_refused_and_malloc_s))
