/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - a pool of persistent threads that walk one parallel region together.
 *
 * A region is entered once a step, not once an op. Inside it lanes claim tiles by counter and meet
 * at barriers; a waiting lane spins briefly and then parks, so idle lanes cost nothing. The caller is
 * lane 0; a pool of one lane starts no thread and takes no lock.
 *
 * Measured with two lanes on two hardware threads of a Xeon (Sapphire Rapids), medians of 9: an empty
 * region 0.6 us, a barrier 0.2 to 1 us while both have a core of their own; 15 to 30 us and 10 to 15
 * us when other programs want the cores; a region that finds its lanes parked 15 us more. One lane: a
 * region 9 ns, a barrier 1 ns.
 *
 * Invariants:
 *  1 Every lane of a region passes the same barriers in the same order.
 *  2 qn_lane_cancelled changes only at barriers, for all lanes at once: lanes that leave on it leave
 *    together, so a cancel cannot strand a lane at a barrier.
 *  3 Inside a region every lane rounds to nearest and keeps denormals; the caller's own floating-point
 *    environment comes back at the end.
 *
 * Owner:  open/close by one thread; that thread runs regions, one at a time, not nested.
 * Thread: qn_pool_cancel by any; qn_lane_* by the lane it was handed to.
 */
#ifndef QN_BASE_LANES_H
#define QN_BASE_LANES_H
#include <stdatomic.h>

#include "base/span.h"
#include "base/status.h"

enum { QN_LANES_MAX = 1024 };

typedef struct qn_pool qn_pool;
typedef struct qn_lane qn_lane;

/* lanes in [1, QN_LANES_MAX]. Errors: INVAL, NOMEM, IO (a thread could not start). */
qn_code qn_pool_open(qn_pool **out, unsigned lanes, qn_err *err);
void qn_pool_close(qn_pool *pool); /* joins the threads; NULL is fine; not inside a region */
unsigned qn_pool_lanes(const qn_pool *pool);

/* One parallel region: fn runs once on every lane; returns when all have returned. Everything that
 * the caller wrote before is visible to the lanes, and theirs to the caller afterwards. */
void qn_pool_run(qn_pool *pool, void (*fn)(void *ctx, qn_lane *lane), void *ctx);

/* Ask the running region to stop at its next barrier. A run clears the word when it starts, so a
 * cancel between two runs is the owner's to remember. */
void qn_pool_cancel(qn_pool *pool);
bool qn_pool_cancelled(const qn_pool *pool); /* since the last run began */

/* At least `bytes` of scratch for every lane, 64-aligned, kept until close; grows only. Not inside a
 * region. Errors: NOMEM (the old scratch stays). */
qn_code qn_pool_reserve_scratch(qn_pool *pool, size_t bytes, qn_err *err);

unsigned qn_lane_index(const qn_lane *lane);       /* 0 is the caller */
unsigned qn_lane_count(const qn_lane *lane);       /* lanes of the region */
void *qn_lane_scratch(const qn_lane *lane);        /* borrowed; NULL before any reserve */
size_t qn_lane_scratch_bytes(const qn_lane *lane); /* what was reserved */
bool qn_lane_cancelled(const qn_lane *lane);       /* as of the last barrier, or of the start */

/* The next tile of [0, total): at most grain (> 0) items, each given exactly once among all lanes
 * that use this counter; false when none is left. *next starts at 0; the owner resets it. */
bool qn_lane_claim(qn_lane *lane, atomic_uint *next, uint32_t total, uint32_t grain, qn_span *out);
/* Wait for all lanes; what they wrote before is visible after. */
void qn_lane_barrier(qn_lane *lane);
/* The same; the last lane to arrive runs fn(ctx) before any lane goes on. Every lane passes the same
 * fn and ctx. */
void qn_lane_barrier_then(qn_lane *lane, void (*fn)(void *ctx), void *ctx);

#endif
