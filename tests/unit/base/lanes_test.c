/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lanes.h"

#include <fenv.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fpenv.h"
#include "qt.h"

static const unsigned widths[] = {1, 2, 3, 4, 7, 16}; /* more lanes than cores as well */

typedef struct tiles {
    atomic_uint next;
    uint32_t total, grain;
    atomic_uint given[1000]; /* how often each item came */
    atomic_uint faults;
} tiles;

static void take_tiles(void *ctx, qn_lane *lane)
{
    tiles *x = ctx;
    qn_span s;
    while (qn_lane_claim(lane, &x->next, x->total, x->grain, &s)) {
        if (qn_span_len(s) == 0 || qn_span_len(s) > x->grain || s.end > x->total ||
            s.begin % x->grain)
            atomic_fetch_add(&x->faults, 1);
        for (uint32_t i = s.begin; i < s.end; i++) atomic_fetch_add(&x->given[i], 1);
    }
}

static void every_tile_is_claimed_exactly_once(qt *t)
{
    static const uint32_t totals[] = {0, 1, 15, 16, 17, 1000}, grains[] = {1, 7, 16, 2000};
    for (size_t w = 0; w < QT_LEN(widths); w++) {
        qn_pool *pool = NULL;
        QT_EQ(t, qn_pool_open(&pool, widths[w], NULL), QN_OK);
        for (size_t i = 0; pool && i < QT_LEN(totals) * QT_LEN(grains); i++) {
            static tiles x;
            memset(&x, 0, sizeof x);
            x.total = totals[i % QT_LEN(totals)];
            x.grain = grains[i / QT_LEN(totals)];
            qn_pool_run(pool, take_tiles, &x);
            unsigned wrong = 0;
            for (uint32_t k = 0; k < QT_LEN(x.given); k++)
                wrong += atomic_load(&x.given[k]) != (k < x.total);
            QT_OKF(t, !wrong && !atomic_load(&x.faults), "%u lanes, %u of %u: %u wrong", widths[w],
                   x.total, x.grain, wrong);
        }
        qn_pool_close(pool);
    }
}

static void claims_do_not_wrap_near_the_top(qt *t)
{
    qn_pool *pool = NULL;
    qn_span s;
    atomic_uint next = UINT32_MAX - 5;
    QT_EQ(t, qn_pool_open(&pool, 1, NULL), QN_OK);
    QT_OK(t, qn_lane_claim(NULL, &next, UINT32_MAX, 100, &s));
    QT_OK(t, s.begin == UINT32_MAX - 5 && s.end == UINT32_MAX);
    QT_OK(t, !qn_lane_claim(NULL, &next, UINT32_MAX, 100, &s));
    qn_pool_close(pool);
}

enum { ROUNDS = 300 };

typedef struct relay {
    uint32_t value[16][16]; /* plain memory, a cache line a lane: the barrier alone orders it */
    uint32_t thens;         /* plain as well: written by the callback only */
    atomic_uint faults;
} relay;

static void count_then(void *ctx) { ((relay *)ctx)->thens++; }

/* Each round every lane writes its own cell and reads all the others' after the barrier. */
static void pass_on(void *ctx, qn_lane *lane)
{
    relay *x = ctx;
    const unsigned me = qn_lane_index(lane), n = qn_lane_count(lane);
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        x->value[me][0] = r;
        qn_lane_barrier(lane);
        for (unsigned i = 0; i < n; i++)
            if (x->value[i][0] != r) atomic_fetch_add(&x->faults, 1);
        qn_lane_barrier_then(lane, count_then, x);
        if (x->thens != r) atomic_fetch_add(&x->faults, 1);
    }
}

static void barriers_order_plain_memory(qt *t)
{
    for (size_t w = 0; w < QT_LEN(widths); w++) {
        static relay x;
        memset(&x, 0, sizeof x);
        qn_pool *pool = NULL;
        QT_EQ(t, qn_pool_open(&pool, widths[w], NULL), QN_OK);
        qn_pool_run(pool, pass_on, &x);
        QT_EQ(t, atomic_load(&x.faults), 0);
        QT_EQ(t, x.thens, ROUNDS);
        qn_pool_close(pool);
    }
}

static void add_index(void *ctx, qn_lane *lane)
{
    uint32_t *sum = ctx;
    sum[qn_lane_index(lane)] += qn_lane_index(lane) + 1;
}

static void regions_run_on_every_lane_and_hand_over_memory(qt *t)
{
    for (size_t w = 0; w < QT_LEN(widths); w++) {
        qn_pool *pool = NULL;
        uint32_t sum[16] = {0};
        QT_EQ(t, qn_pool_open(&pool, widths[w], NULL), QN_OK);
        QT_EQ(t, qn_pool_lanes(pool), widths[w]);
        for (int i = 0; i < 200; i++) qn_pool_run(pool, add_index, sum);
        for (unsigned i = 0; i < 16; i++) QT_EQ(t, sum[i], i < widths[w] ? 200 * (i + 1) : 0);
        qn_pool_close(pool);
    }
}

typedef struct stopper {
    qn_pool *pool;
    uint32_t left_at[16]; /* the round in which a lane left */
    unsigned who;         /* cancels in round 5 */
} stopper;

static void run_until_cancelled(void *ctx, qn_lane *lane)
{
    stopper *x = ctx;
    const unsigned me = qn_lane_index(lane);
    uint32_t r = 0;
    while (r < 1000 && !qn_lane_cancelled(lane)) {
        if (++r == 5 && me == x->who) qn_pool_cancel(x->pool);
        qn_lane_barrier(lane);
    }
    x->left_at[me] = r;
}

static void a_cancel_stops_all_lanes_at_the_same_barrier(qt *t)
{
    for (size_t w = 0; w < QT_LEN(widths); w++) {
        stopper x = {.who = widths[w] - 1};
        QT_EQ(t, qn_pool_open(&x.pool, widths[w], NULL), QN_OK);
        for (int again = 0; again < 20; again++) { /* a run clears the word */
            qn_pool_run(x.pool, run_until_cancelled, &x);
            QT_OK(t, qn_pool_cancelled(x.pool));
            for (unsigned i = 0; i < widths[w]; i++) QT_EQ(t, x.left_at[i], 5);
        }
        qn_pool_run(x.pool, add_index, (uint32_t[16]){0});
        QT_OK(t, !qn_pool_cancelled(x.pool));
        qn_pool_close(x.pool);
    }
}

static void *cancel_from_outside(void *arg)
{
    for (int i = 0; i < 1000; i++) qn_pool_cancel(arg);
    return NULL;
}

/* Whenever the cancel lands, all lanes leave together: nobody hangs and all agree. */
static void a_cancel_from_another_thread_strands_nobody(qt *t)
{
    stopper x = {.who = 99};
    QT_EQ(t, qn_pool_open(&x.pool, 4, NULL), QN_OK);
    for (int again = 0; again < 20; again++) {
        pthread_t th;
        QT_EQ(t, pthread_create(&th, NULL, cancel_from_outside, x.pool), 0);
        qn_pool_run(x.pool, run_until_cancelled, &x);
        pthread_join(th, NULL);
        for (unsigned i = 1; i < 4; i++) QT_EQ(t, x.left_at[i], x.left_at[0]);
    }
    qn_pool_close(x.pool);
}

static void look_at_fpenv(void *ctx, qn_lane *lane)
{
    atomic_uint *plain = ctx;
    (void)lane;
    if (qn_fpenv_is_plain()) atomic_fetch_add(plain, 1);
    (void)fesetround(FE_DOWNWARD); /* a careless region must not spoil the next */
}

static void every_lane_rounds_to_nearest(qt *t)
{
    for (size_t w = 0; w < QT_LEN(widths); w++) {
        qn_pool *pool = NULL;
        QT_EQ(t, qn_pool_open(&pool, widths[w], NULL), QN_OK);
        QT_EQ(t, fesetround(FE_UPWARD), 0);
        for (int again = 0; again < 3; again++) {
            atomic_uint plain = 0;
            qn_pool_run(pool, look_at_fpenv, &plain);
            QT_EQ(t, atomic_load(&plain), widths[w]);
            QT_EQ(t, fegetround(), FE_UPWARD); /* the caller's own comes back */
        }
        QT_EQ(t, fesetround(FE_TONEAREST), 0);
        qn_pool_close(pool);
    }
}

static void fill_scratch(void *ctx, qn_lane *lane)
{
    const size_t n = qn_lane_scratch_bytes(lane);
    unsigned char *p = qn_lane_scratch(lane);
    atomic_uint *faults = ctx;
    memset(p, (int)qn_lane_index(lane), n);
    qn_lane_barrier(lane);
    for (size_t i = 0; i < n; i++)
        if (p[i] != qn_lane_index(lane)) atomic_fetch_add(faults, 1);
    if ((uintptr_t)p % 64) atomic_fetch_add(faults, 1);
}

static void scratch_belongs_to_one_lane_and_grows(qt *t)
{
    const size_t before = qn_alloc_live(), bytes = qn_alloc_live_bytes();
    qn_pool *pool = NULL;
    atomic_uint faults = 0;
    QT_EQ(t, qn_pool_open(&pool, 3, NULL), QN_OK);
    static const size_t sizes[] = {1, 5000, 100, 70000};
    for (size_t i = 0; i < QT_LEN(sizes); i++) {
        QT_EQ(t, qn_pool_reserve_scratch(pool, sizes[i], NULL), QN_OK);
        qn_pool_run(pool, fill_scratch, &faults);
    }
    for (size_t n = 0; n < 3; n++) { /* a failure keeps what was there */
        qn_alloc_fail_after(n);
        QT_EQ(t, qn_pool_reserve_scratch(pool, 1 << 20, NULL), QN_E_NOMEM);
        qn_alloc_fail_after(SIZE_MAX);
        qn_pool_run(pool, fill_scratch, &faults);
    }
    QT_EQ(t, atomic_load(&faults), 0);
    qn_pool_close(pool);
    QT_EQ(t, qn_alloc_live(), before);
    QT_EQ(t, qn_alloc_live_bytes(), bytes);
}

static void refuses_impossible_lane_counts(qt *t)
{
    qn_pool *pool = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_pool_open(&pool, 0, &err), QN_E_INVAL);
    QT_OK(t, !pool && strstr(err.msg, "0 lanes") != NULL);
    QT_EQ(t, qn_pool_open(&pool, QN_LANES_MAX + 1, NULL), QN_E_INVAL);
    qn_pool_close(NULL);
}

static void open_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_pool *pool = NULL;
        qn_alloc_fail_after(n);
        rc = qn_pool_open(&pool, 3, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && pool == NULL));
        qn_pool_close(pool);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
}

static void pools_live_side_by_side(qt *t)
{
    qn_pool *a = NULL, *b = NULL;
    uint32_t sum[16] = {0};
    QT_EQ(t, qn_pool_open(&a, 2, NULL), QN_OK);
    QT_EQ(t, qn_pool_open(&b, 3, NULL), QN_OK);
    for (int i = 0; i < 50; i++) {
        qn_pool_run(a, add_index, sum);
        qn_pool_run(b, add_index, sum);
    }
    QT_OK(t, sum[0] == 100 && sum[1] == 200 && sum[2] == 150);
    qn_pool_close(a);
    qn_pool_close(b);
}

QT_MAIN(QT(every_tile_is_claimed_exactly_once), QT(claims_do_not_wrap_near_the_top),
        QT(barriers_order_plain_memory), QT(regions_run_on_every_lane_and_hand_over_memory),
        QT(a_cancel_stops_all_lanes_at_the_same_barrier),
        QT(a_cancel_from_another_thread_strands_nobody), QT(every_lane_rounds_to_nearest),
        QT(scratch_belongs_to_one_lane_and_grows), QT(refuses_impossible_lane_counts),
        QT(open_survives_every_failed_allocation), QT(pools_live_side_by_side))
