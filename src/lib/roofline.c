/* SPDX-License-Identifier: Apache-2.0 */
/* roofline.c - the rates of roofline.h. Each lane works until its own clock says that the slice is over
 * and tells bytes (or operations) and time; what all do together is the sum of their rates. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/lanes.h"
#include "kern/peak.h"
#include "lib/lib_int.h"
#include "quern/roofline.h"

enum { SLICES = 8, SLICE_MS = 20, MAX_SLICE_MS = 10000, ROUNDS = 20000, PIECE = 1 << 20 };
static const uint64_t least_buffer = 64u << 20, most_buffer = 2ull << 30, l3_share = 32u << 20;
static const double quiet_share = 0.08;

typedef struct share { /* of one lane, on a cache line of its own */
    _Alignas(64) double done;
    uint64_t ns, at, sum;
} share;

typedef struct bench {
    const qn_peak *peak; /* NULL: reads */
    uint8_t *bytes;
    uint64_t stride, n; /* lane i reads n bytes from i * stride on */
    uint64_t slice_ns;
    uint32_t features, lanes; /* lanes that work; the others wait */
    share *of;
    bool touch; /* each lane writes its part once, so that pages exist, near its core */
} bench;

static void read_part(bench *b, share *s, const uint8_t *from, uint64_t begin)
{
    const uint64_t piece = b->n < PIECE ? b->n : PIECE;
    do {
        s->sum ^= qn_peak_read(from + s->at, (size_t)piece, b->features);
        s->done += (double)piece;
        s->at = s->at + 2 * piece > b->n ? 0 : s->at + piece;
        s->ns = qn_clock_ns() - begin;
    } while (s->ns < b->slice_ns);
}

static void work(void *ctx, qn_lane *lane)
{
    bench *b = ctx;
    const unsigned i = qn_lane_index(lane);
    if (i >= b->lanes) return;
    share *s = &b->of[i];
    s->done = 0;
    if (b->touch) {
        memset(b->bytes + b->stride * i, (int)i + 1, (size_t)b->stride);
        return;
    }
    const uint64_t begin = qn_clock_ns();
    if (!b->peak) {
        read_part(b, s, b->bytes + b->stride * i, begin);
        return;
    }
    do {
        b->peak->run(ROUNDS);
        s->done += ROUNDS * b->peak->ops;
        s->ns = qn_clock_ns() - begin;
    } while (s->ns < b->slice_ns);
}

/* The best slice, after one that is not counted (caches fill, clocks rise). */
static double best(bench *b, qn_pool *pool, uint32_t lanes)
{
    double most = 0;
    b->lanes = lanes;
    for (uint32_t i = 0; i < lanes; i++) b->of[i].at = 0;
    for (int k = -1; k < SLICES; k++) {
        double rate = 0;
        qn_pool_run(pool, work, b);
        for (uint32_t i = 0; i < lanes; i++) rate += b->of[i].done / (double)b->of[i].ns * 1e9;
        if (k >= 0 && rate > most) most = rate;
    }
    return most;
}

static void measure_reads(quern_rate *r, bench *b, qn_pool *pool, uint64_t n, const char *what)
{
    b->peak = NULL;
    b->n = n / QN_PEAK_READ_STEP * QN_PEAK_READ_STEP;
    r->how = what;
    r->bytes = b->n;
    r->one = best(b, pool, 1);
    r->all = qn_pool_lanes(pool) > 1 ? best(b, pool, qn_pool_lanes(pool)) : r->one;
}

/* The fastest loop of a kind; which one is fastest is decided by one thread. */
static void measure_peak(quern_rate *r, bench *b, qn_pool *pool, qn_peak_kind kind)
{
    const qn_peak *fastest = NULL, *p = NULL;
    for (size_t i = 0; (p = qn_peak_at(i)) != NULL; i++) {
        if (p->kind != kind || (p->needs & b->features) != p->needs) continue;
        b->peak = p;
        const double rate = best(b, pool, 1);
        if (rate <= r->one) continue;
        r->one = rate;
        fastest = p;
    }
    if (!fastest) return;
    b->peak = fastest;
    r->how = fastest->how;
    r->all = qn_pool_lanes(pool) > 1 ? best(b, pool, qn_pool_lanes(pool)) : r->one;
}

/* -- who else had the machine ------------------------------------------------------------------ */

typedef struct
    usage { /* seconds: of all programs, taken by the hypervisor, of this process, wall */
    double busy, stolen, own, wall;
} usage;

static usage look(void)
{
    usage u = {.wall = (double)qn_clock_ns() / 1e9};
    struct rusage own = {0};
    uint8_t *text = NULL;
    size_t n = 0;
    unsigned long long v[8] = {0};
    const double tick = (double)sysconf(_SC_CLK_TCK);
    getrusage(RUSAGE_SELF, &own);
    u.own = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
            (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e6;
    if (qn_file_read(&text, &n, "/proc/stat", 1 << 20, NULL) == QN_OK) {
        qn_str rest = qn_str_make((const char *)text, n), line, word;
        uint64_t all[8] = {0};
        size_t k = 0;
        if (qn_str_split(&line, &rest, '\n') && qn_str_split(&word, &line, ' '))
            while (k < QN_LEN(all) && qn_str_split(&word, &line, ' '))
                if (word.n && qn_str_parse_u64(&all[k], word)) v[k] = all[k], k++;
        qn_free(text);
    }
    u.busy = (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / tick; /* user nice system irq softirq */
    u.stolen = (double)v[7] / tick;
    return u;
}

static void tell_usage(quern_roofline_report *r, const usage *a)
{
    const usage b = look();
    const double wall = b.wall - a->wall, others = b.busy - a->busy - (b.own - a->own);
    r->others = others > 0 ? others / wall : 0;
    r->stolen = (b.stolen - a->stolen) / wall;
    r->quiet = r->others <= quiet_share && r->stolen <= quiet_share;
}

/* -- all of it --------------------------------------------------------------------------------- */

static uint64_t cache_bytes(int name, uint64_t otherwise)
{
    const long said = sysconf(name);
    return said > 0 ? (uint64_t)said : otherwise;
}

static qn_code measure(quern_roofline_report *r, bench *b, uint32_t threads, uint64_t room,
                       qn_err *err)
{
    qn_code rc = QN_OK;
    qn_pool *pool = NULL;
    const uint64_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
    const uint64_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
    uint64_t want = 4 * l3 > 4 * least_buffer ? 4 * l3 : 4 * least_buffer;
    if (want > most_buffer) want = most_buffer;
    if (want > room / 4) want = room / 4;
    b->stride = want / threads / PIECE * PIECE;
    want = b->stride * threads;
    if (want < least_buffer)
        return qn_fail(err, QN_E_NOMEM,
                       "measuring needs 256 MiB of available memory, there are %llu",
                       (unsigned long long)room >> 20);
    b->bytes = qn_pages_alloc((size_t)want);
    b->of = qn_calloc(threads, sizeof *b->of);
    if (!b->bytes || !b->of) {
        rc = qn_fail(err, QN_E_NOMEM, "a buffer of %llu MiB", (unsigned long long)want >> 20);
        goto out;
    }
    QN_TRY_OUT(qn_pool_open(&pool, threads, err));
    b->lanes = threads;
    b->touch = true;
    qn_pool_run(pool, work, b);
    b->touch = false;
    const usage before = look();
    const uint64_t middle = l3 / 2 / threads < l3_share ? l3 / 2 / threads : l3_share;
    measure_reads(&r->l2, b, pool, l2 / 2 < b->stride ? l2 / 2 : b->stride, "half of L2");
    if (middle > 2 * l2) measure_reads(&r->l3, b, pool, middle, "a share of L3");
    measure_reads(&r->memory, b, pool, b->stride, "memory");
    measure_peak(&r->f32, b, pool, QN_PEAK_F32);
    measure_peak(&r->f16, b, pool, QN_PEAK_F16);
    measure_peak(&r->bf16, b, pool, QN_PEAK_BF16);
    measure_peak(&r->int8, b, pool, QN_PEAK_INT8);
    tell_usage(r, &before);
out:
    qn_pool_close(pool);
    qn_free(b->of);
    if (b->bytes) qn_pages_free(b->bytes, (size_t)want);
    return rc;
}

quern_code quern_roofline(quern_roofline_report *report, quern_runtime *rt, uint32_t slice_ms,
                          quern_error *err)
{
    quern_roofline_report all = {0};
    bench b = {0};
    QN_TRY(qn_lib_given(report, "report", err));
    QN_TRY(qn_lib_given(rt, "runtime", err));
    if (report->size < sizeof report->size || report->size > 1 << 16)
        return qn_fail(err, QN_E_INVAL, "report: size is %zu, expected %zu", report->size,
                       sizeof all);
    if (slice_ms > MAX_SLICE_MS)
        return qn_fail(err, QN_E_INVAL, "slice_ms is %u, expected at most %d", slice_ms,
                       MAX_SLICE_MS);
    b.slice_ns = (uint64_t)(slice_ms ? slice_ms : SLICE_MS) * 1000000;
    b.features = qn_cpu_features() & rt->isa_mask;
    all.threads = rt->threads;
    QN_TRY(measure(&all, &b, rt->threads, qn_fit_room(rt->memory_ceiling).available, err));
    const size_t size = report->size;
    all.size = size;
    memset(report, 0, size);
    memcpy(report, &all, size < sizeof all ? size : sizeof all);
    return QN_OK;
}

quern_code quern_model_traffic(quern_traffic *out, const quern_model *m, quern_kv kv,
                               uint32_t depth, quern_error *err)
{
    qn_traffic t;
    QN_TRY(qn_lib_given(out, "out", err));
    QN_TRY(qn_lib_given(m, "model", err));
    if (out->size < sizeof out->size || out->size > 1 << 16)
        return qn_fail(err, QN_E_INVAL, "out: size is %zu, expected %zu", out->size,
                       sizeof(quern_traffic));
    const quern_engine_options o = {.size = sizeof o, .kv = kv};
    qn_fit_ask ask;
    QN_TRY(qn_lib_fit_ask(&ask, &o, err));
    qn_fit_traffic(&t, m->model, ask.kv_fmt, depth);
    const quern_traffic all = {.size = out->size,
                               .weight_bytes = t.weight_bytes,
                               .kv_bytes = t.kv_bytes,
                               .row_ops = 2 * t.multiply_adds};
    const size_t size = out->size;
    memset(out, 0, size);
    memcpy(out, &all, size < sizeof all ? size : sizeof all);
    return QN_OK;
}
