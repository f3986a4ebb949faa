/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - the pool is one barrier. Between regions the workers wait at it, and a region is what lies
 * between two of its phases:
 *
 *     caller  -- set fn --|start|-- fn --|barrier|-- ... --|end|-- return
 *     worker  ------------|start|-- fn --|barrier|-- ... --|end|-- wait at start
 *
 * The last lane to arrive runs the callback, latches the cancel word and moves the phase on; the
 * others spin on the phase, then park on a condition variable. Parking is a Dekker handshake: a lane
 * counts itself as parked before it looks at the phase again, the releaser moves the phase before it
 * looks at the count, both sequentially consistent, so one of them sees the other. */
#include "base/lanes.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/fpenv.h"

/* A lane spins, then offers its core between short spins, then parks. Yielding is what keeps a lane that
 * shares its core with the one it waits for from burning the whole spin: a barrier then takes 15 us
 * instead of 40 to 140 us on a loaded machine, and the unloaded one does not notice. */
enum { SPINS = 256, YIELDS = 60, SPINS_A_YIELD = 16, SPINS_CROWDED = 64 };

struct qn_lane {
    _Alignas(64) qn_pool *pool; /* a cache line each */
    void *scratch;
    unsigned index;
    pthread_t thread; /* not of lane 0 */
};

struct qn_pool {
    qn_lane *lanes;
    size_t scratch_bytes;
    unsigned n_lanes, spins, yields;
    void (*fn)(void *ctx, qn_lane *lane); /* NULL: leave */
    void *ctx;
    pthread_mutex_t lock; /* parking only */
    pthread_cond_t moved;
    _Alignas(64) atomic_uint arrived;
    atomic_uint width; /* lanes that the barrier waits for; n_lanes but for a failed start */
    _Alignas(64) atomic_uint phase;
    atomic_uint parked;
    atomic_bool latched; /* the cancel word as of the last barrier */
    _Alignas(64) atomic_bool cancel;
};

#if defined(__x86_64__) || defined(__i386__)
static void relax(void) { __builtin_ia32_pause(); }
#elif defined(__aarch64__)
static void relax(void)
{
    __asm__ volatile("isb" ::: "memory");
} /* yield is a no-op on most cores */
#else
static void relax(void) { atomic_signal_fence(memory_order_seq_cst); }
#endif

static void wait_past(qn_pool *p, unsigned phase)
{
    for (unsigned y = 0; y <= p->yields; y++) {
        for (unsigned i = 0; i < (y ? SPINS_A_YIELD : p->spins); i++) {
            if (atomic_load_explicit(&p->phase, memory_order_acquire) != phase) return;
            relax();
        }
        if (y < p->yields) sched_yield();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->parked, 1);
    while (atomic_load(&p->phase) == phase) pthread_cond_wait(&p->moved, &p->lock);
    atomic_fetch_sub(&p->parked, 1);
    pthread_mutex_unlock(&p->lock);
}

static void latch(qn_pool *p)
{
    const bool cancelled = atomic_load_explicit(&p->cancel, memory_order_relaxed);
    atomic_store_explicit(&p->latched, cancelled, memory_order_relaxed);
}

static void barrier(qn_pool *p, void (*then)(void *ctx), void *ctx)
{
    /* the phase cannot move before this lane has arrived, so this reads the present one */
    const unsigned phase = atomic_load_explicit(&p->phase, memory_order_relaxed);
    const unsigned before = atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel);
    if (before + 1 != atomic_load_explicit(&p->width, memory_order_relaxed)) {
        wait_past(p, phase);
        return;
    }
    atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
    if (then) then(ctx);
    latch(p);
    atomic_store(&p->phase, phase + 1);
    if (atomic_load(&p->parked) == 0) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg)
{
    qn_lane *lane = arg;
    qn_pool *p = lane->pool;
    for (;;) {
        barrier(p, NULL, NULL);
        if (!p->fn) return NULL;
        (void)qn_fpenv_set_plain(); /* each time: what ran before may have changed it */
        p->fn(p->ctx, lane);
        barrier(p, NULL, NULL);
    }
}

/* Starts lanes 1..n-1 with all signals blocked: signals belong to the program's own threads. */
static qn_code start(qn_pool *p, qn_err *err)
{
    sigset_t all, old;
    unsigned i = 1;
    int sys = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; i < p->n_lanes && sys == 0; i++)
        sys = pthread_create(&p->lanes[i].thread, NULL, work, &p->lanes[i]);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (sys == 0) return QN_OK;
    const unsigned wanted = p->n_lanes;
    p->n_lanes = i - 1; /* those that run, lane 0 included; close joins them */
    atomic_store_explicit(&p->width, p->n_lanes, memory_order_relaxed);
    return qn_fail_sys(err, QN_E_IO, sys, "start of lane %u of %u", i - 1, wanted);
}

qn_code qn_pool_open(qn_pool **out, unsigned lanes, qn_err *err)
{
    *out = NULL;
    if (lanes < 1 || lanes > QN_LANES_MAX)
        return qn_fail(err, QN_E_INVAL, "%u lanes, expected 1 to %d", lanes, QN_LANES_MAX);
    qn_pool *p = qn_zalloc(sizeof *p);
    qn_lane *l = qn_calloc(lanes, sizeof *l);
    if (!p || !l) {
        qn_free(p);
        qn_free(l);
        return qn_fail(err, QN_E_NOMEM, "pool of %u lanes", lanes);
    }
    p->lanes = l;
    p->n_lanes = lanes;
    const bool crowded = lanes > qn_cpu_threads(); /* the lane waited for needs this core */
    p->spins = crowded ? SPINS_CROWDED : SPINS;
    p->yields = crowded ? 0 : YIELDS;
    atomic_init(&p->width, lanes);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->moved, NULL);
    for (unsigned i = 0; i < lanes; i++) {
        l[i].pool = p;
        l[i].index = i;
    }
    const qn_code rc = start(p, err);
    if (rc == QN_OK)
        *out = p;
    else
        qn_pool_close(p);
    return rc;
}

void qn_pool_close(qn_pool *p)
{
    if (!p) return;
    p->fn = NULL;
    if (p->n_lanes > 1) barrier(p, NULL, NULL);
    for (unsigned i = 1; i < p->n_lanes; i++) pthread_join(p->lanes[i].thread, NULL);
    for (unsigned i = 0; i < p->n_lanes; i++) qn_pages_free(p->lanes[i].scratch, p->scratch_bytes);
    pthread_cond_destroy(&p->moved);
    pthread_mutex_destroy(&p->lock);
    qn_free(p->lanes);
    qn_free(p);
}

unsigned qn_pool_lanes(const qn_pool *p) { return p->n_lanes; }

void qn_pool_run(qn_pool *p, void (*fn)(void *ctx, qn_lane *lane), void *ctx)
{
    const qn_fpenv mine = qn_fpenv_set_plain();
    p->fn = fn;
    p->ctx = ctx;
    atomic_store_explicit(&p->cancel, false, memory_order_relaxed);
    if (p->n_lanes == 1) {
        latch(p);
        fn(ctx, &p->lanes[0]);
    } else {
        barrier(p, NULL, NULL);
        fn(ctx, &p->lanes[0]);
        barrier(p, NULL, NULL);
    }
    qn_fpenv_restore(mine);
}

void qn_pool_cancel(qn_pool *p) { atomic_store_explicit(&p->cancel, true, memory_order_relaxed); }

bool qn_pool_cancelled(const qn_pool *p)
{
    return atomic_load_explicit(&p->cancel, memory_order_relaxed);
}

qn_code qn_pool_reserve_scratch(qn_pool *p, size_t bytes, qn_err *err)
{
    void *fresh[QN_LANES_MAX];
    if (bytes <= p->scratch_bytes) return QN_OK;
    for (unsigned i = 0; i < p->n_lanes;
         i++) { /* untouched pages: each lane touches its own first */
        fresh[i] = qn_pages_alloc(bytes);
        if (fresh[i]) continue;
        while (i > 0) qn_pages_free(fresh[--i], bytes);
        return qn_fail(err, QN_E_NOMEM, "scratch of %zu bytes for each of %u lanes", bytes,
                       p->n_lanes);
    }
    for (unsigned i = 0; i < p->n_lanes; i++) {
        qn_pages_free(p->lanes[i].scratch, p->scratch_bytes);
        p->lanes[i].scratch = fresh[i];
    }
    p->scratch_bytes = bytes;
    return QN_OK;
}

unsigned qn_lane_index(const qn_lane *lane) { return lane->index; }
unsigned qn_lane_count(const qn_lane *lane) { return lane->pool->n_lanes; }
void *qn_lane_scratch(const qn_lane *lane) { return lane->scratch; }
size_t qn_lane_scratch_bytes(const qn_lane *lane) { return lane->pool->scratch_bytes; }

bool qn_lane_cancelled(const qn_lane *lane)
{
    return atomic_load_explicit(&lane->pool->latched, memory_order_relaxed);
}

/* Compare-and-swap, not fetch-and-add: the counter stays at or below total, so it cannot wrap. */
bool qn_lane_claim(qn_lane *lane, atomic_uint *next, uint32_t total, uint32_t grain, qn_span *out)
{
    (void)lane;
    QN_ASSERT(grain > 0);
    uint32_t begin = atomic_load_explicit(next, memory_order_relaxed), end = 0;
    do {
        if (begin >= total) return false;
        end = grain < total - begin ? begin + grain : total;
    } while (!atomic_compare_exchange_weak_explicit(next, &begin, end, memory_order_relaxed,
                                                    memory_order_relaxed));
    *out = (qn_span){begin, end};
    return true;
}

void qn_lane_barrier(qn_lane *lane) { qn_lane_barrier_then(lane, NULL, NULL); }

void qn_lane_barrier_then(qn_lane *lane, void (*fn)(void *ctx), void *ctx)
{
    qn_pool *p = lane->pool;
    if (p->n_lanes > 1) {
        barrier(p, fn, ctx);
        return;
    }
    if (fn) fn(ctx);
    latch(p);
}
