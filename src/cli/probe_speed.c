/* SPDX-License-Identifier: Apache-2.0 */
/* probe_speed.c - how fast memory is read: decoding a token reads every weight once, so this is what
 * bounds it. */
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lanes.h"
#include "cli/probe.h"

enum { ENOUGH_NS = 150000000, LEAST_BYTES = 16 << 20, WIDTH = 8 };
static const uint64_t small_bytes = 64u << 20, large_bytes = 512u << 20;

typedef uint64_t word2 __attribute__((vector_size(16)));

typedef struct stream {
    word2 *words;
    size_t n;          /* a multiple of WIDTH */
    unsigned lanes;    /* that read */
    bool touch;        /* write once instead, so that each page exists */
    atomic_ullong sum; /* keeps the reads from being left out */
} stream;

static word2 read_slice(const word2 *p, size_t n)
{
    word2 sum[WIDTH] = {{0, 0}};
    for (size_t i = 0; i + WIDTH <= n; i += WIDTH)
        for (size_t k = 0; k < WIDTH; k++) sum[k] += p[i + k];
    for (size_t k = 1; k < WIDTH; k++) sum[0] += sum[k];
    return sum[0];
}

static void pass(void *ctx, qn_lane *lane)
{
    stream *s = ctx;
    const unsigned i = qn_lane_index(lane);
    if (i >= s->lanes) return;
    const size_t each = s->n / s->lanes / WIDTH * WIDTH;
    word2 *p = s->words + each * i;
    if (s->touch) {
        for (size_t k = 0; k < each; k++) p[k] = (word2){k, i};
    } else {
        const word2 sum = read_slice(p, each);
        atomic_fetch_add(&s->sum, sum[0] ^ sum[1]);
    }
}

static double measure(qn_pool *pool, stream *s, unsigned lanes)
{
    uint64_t spent = 0, bytes = 0;
    s->lanes = lanes;
    while (spent < ENOUGH_NS) {
        const uint64_t begin = qn_clock_ns();
        qn_pool_run(pool, pass, s);
        spent += qn_clock_ns() - begin;
        bytes += s->n / lanes / WIDTH * WIDTH * lanes * sizeof(word2);
    }
    return (double)bytes / ((double)spent / 1e9);
}

qn_code qn_probe_bandwidth(qn_bandwidth *b, const qn_machine *m, unsigned threads, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_pool *pool = NULL;
    stream s = {.touch = true};
    uint64_t want = 4 * m->l3_bytes > small_bytes ? 4 * m->l3_bytes : small_bytes;
    *b = (qn_bandwidth){0};
    if (want > large_bytes) want = large_bytes;
    if (want > m->available_bytes / 4) want = m->available_bytes / 4;
    want &= ~(uint64_t)4095;
    if (want < LEAST_BYTES)
        return qn_fail(err, QN_E_NOMEM,
                       "measuring needs 64 MiB of available memory, there are %llu",
                       (unsigned long long)m->available_bytes >> 20);
    s.words = qn_pages_alloc((size_t)want);
    if (!s.words) return qn_fail(err, QN_E_NOMEM, "a buffer to measure with");
    s.n = (size_t)want / sizeof(word2);
    QN_TRY_OUT(qn_pool_open(&pool, threads, err));
    s.lanes = threads;
    qn_pool_run(pool, pass, &s);
    s.touch = false;
    b->buffer_bytes = want;
    b->threads = threads;
    b->one = measure(pool, &s, 1);
    b->all = threads > 1 ? measure(pool, &s, threads) : b->one;
out:
    qn_pool_close(pool);
    qn_pages_free(s.words, (size_t)want);
    return rc;
}
