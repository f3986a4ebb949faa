/* SPDX-License-Identifier: Apache-2.0 */
/* kern_bench.c - speed of each kernel at the shapes of a real model (SmolLM2-135M unless told
 * otherwise), beside what this machine can do: f32 fused multiply-adds and bytes read.
 *
 * kern_bench [variant] [part of a kernel's name]. One thread, its processor time (so that a busy machine
 * does not count), the best of several runs (other work only ever slows a run down). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "op.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench {
    qn_kern_table k;
    const char *only;
    double peak, read; /* FLOP/s and bytes/s of this machine */
} bench;

/* Seconds of one call, the best of at least 5 and about a third of a second. */
static double best_of(const bench *b, qn_kern_id id, const void *args)
{
    void *scratch = NULL;
    if (posix_memalign(&scratch, 64, qn_kern_scratch(id, args) + 64) != 0) abort();
    const qn_span all = {0, qn_kern_units(id, args)};
    double best = 1e9, total = 0;
    for (int i = 0; i < 5 || (total < 0.3 && i < 2000); i++) {
        const double t = now();
        qn_kern_call(&b->k, id, args, all, scratch);
        const double s = now() - t;
        total += s;
        if (s < best) best = s;
    }
    free(scratch);
    return best;
}

static bool wanted(const bench *b, const char *name)
{
    return !b->only || strstr(name, b->only) != NULL;
}

/* flop and bytes of one call; 0 where a figure says nothing. */
static void tell(const bench *b, const char *what, double s, double flop, double bytes)
{
    printf("%-44s %10.1f us", what, s * 1e6);
    if (flop > 0) printf("  %7.1f GFLOP/s %3.0f%%", flop / s * 1e-9, 100 * flop / s / b->peak);
    if (bytes > 0) printf("  %6.2f GB/s %3.0f%%", bytes / s * 1e-9, 100 * bytes / s / b->read);
    printf("\n");
    fflush(stdout);
}

static void bench_linear(const bench *b, qn_fmt fmt, uint32_t n, uint32_t outs, uint32_t cols)
{
    char what[96];
    snprintf(what, sizeof what, "linear %s rows %u [%u, %u]", qn_format_get(fmt)->name, n, outs,
             cols);
    if (!wanted(b, what)) return;
    const qn_matrix w = op_matrix(fmt, outs, cols);
    const qn_linear_args a = {
        op_fill((size_t)n * outs, 0), outs, op_rand((size_t)n * cols), cols, &w, NULL, NULL, 0, &n};
    tell(b, what, best_of(b, QN_K_linear, &a), 2.0 * n * outs * cols, (double)w.ld_bytes * outs);
    op_end();
}

static void bench_i8(const bench *b, qn_fmt fmt, uint32_t n, uint32_t outs, uint32_t cols,
                     bool wide)
{
    char what[96];
    snprintf(what, sizeof what, "linear_%s %s rows %u [%u, %u]", wide ? "i16" : "i8",
             qn_format_get(fmt)->name, n, outs, cols);
    if (!wanted(b, what)) return;
    qn_matrix w = op_matrix(fmt, outs, cols);
    const qn_q_kind kind = wide ? QN_W32 : QN_Q32;
    if (op_panels(&w)) {
        const qn_linear_i8_args a = {op_fill((size_t)n * outs, 0),
                                     outs,
                                     op_q_rows(&w, kind, op_rand((size_t)n * cols), n),
                                     qn_q_row_bytes(cols, kind),
                                     &w,
                                     NULL,
                                     NULL,
                                     0,
                                     &n};
        tell(b, what, best_of(b, wide ? QN_K_linear_i16 : QN_K_linear_i8, &a),
             2.0 * n * outs * cols, (double)w.ld_bytes * outs);
    }
    op_end();
}

static void bench_attention(const bench *b, qn_kv_fmt fmt, uint32_t n, uint32_t depth)
{
    enum { H = 9, K = 3, D = 64 };
    char what[96];
    const size_t half = (size_t)K * QN_KV_BLOCK * D * qn_kv_value_bytes(fmt);
    const uint32_t blocks = (depth + QN_KV_BLOCK - 1) / QN_KV_BLOCK;
    uint32_t *table = op_u32(blocks, 1), *off = op_u32(1, 1);
    uint32_t *seq = op_u32(n, 1), *pos = op_u32(n, 1), *keys = op_u32((size_t)n * 4, 1);
    for (uint32_t i = 0; i < blocks; i++) table[i] = i;
    double seen = 0;
    for (uint32_t r = 0; r < n; r++) {
        pos[r] = depth - n + r;
        keys[4 * r + 1] = pos[r] + 1;
        seen += pos[r] + 1;
    }
    const qn_attention_args a = {
        .kv = {.pool = memset(op_bytes(2 * half * blocks), 0x11, 2 * half * blocks),
               .block_bytes = 2 * half,
               .v_bytes = half,
               .fmt = fmt,
               .n_kv_heads = K,
               .head_dim = D,
               .table = table,
               .table_off = off},
        .out = op_fill((size_t)n * H * D, 0),
        .ld_out = H * D,
        .q = op_rand((size_t)n * H * D),
        .ld_q = H * D,
        .n = &n,
        .seq = seq,
        .kv_pos = pos,
        .keys = keys,
        .n_heads = H,
        .scale = 0.125f};
    snprintf(what, sizeof what, "attention fmt %d rows %u depth %u", (int)fmt, n, depth);
    if (wanted(b, what)) tell(b, what, best_of(b, QN_K_attention, &a), 4.0 * H * D * seen, 0);
    op_end();
}

static void bench_draw(const bench *b, uint32_t vocab, qn_sampler s, const char *name)
{
    char what[96];
    const uint32_t n = 1, slot = 0x7FFFFFFFu;
    qn_drawn out;
    float *x = op_rand(vocab);
    for (uint32_t t = 0; t < vocab; t++) x[t] *= 3;
    const qn_draw_args a = {&out, NULL, &slot, x, vocab, &s, &n, vocab, 0, NULL};
    snprintf(what, sizeof what, "draw %s [%u]", name, vocab);
    if (wanted(b, what)) tell(b, what, best_of(b, QN_K_draw, &a), 0, 4.0 * vocab);
    op_end();
}

static void bench_rows(const bench *b, uint32_t n)
{
    enum { C = 576, F = 1536 };
    char what[96];
    float *x = op_rand((size_t)n * F), *y = op_rand((size_t)n * F), *z = op_rand((size_t)n * F);
    const qn_rmsnorm_args norm = {y, C, x, C, z, &n, 1, C, 1e-5f};
    snprintf(what, sizeof what, "rmsnorm rows %u [%d]", n, C);
    if (wanted(b, what)) tell(b, what, best_of(b, QN_K_rmsnorm, &norm), 0, 4.0 * n * C);
    for (int act = 0; act < 3; act++) {
        const qn_act_mul_args mul = {y, F, x, F, z, F, &n, F, (qn_act)act};
        snprintf(what, sizeof what, "act_mul %d rows %u [%d]", act, n, F);
        if (wanted(b, what)) tell(b, what, best_of(b, QN_K_act_mul, &mul), 0, 8.0 * n * F);
    }
    op_end();
}

/* Peak of fused multiply-adds: enough independent chains to hide the latency. */
#if defined(__x86_64__)
#include <immintrin.h>
#define EACH_12(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)
#define PEAK(name, target_flags, lanes)                                    \
    __attribute__((target(target_flags))) static double name(size_t turns) \
    {                                                                      \
        const VECTOR x = SET(0.999f), y = SET(1e-3f);                      \
        float out[16];                                                     \
        volatile float sink = 0;                                           \
        EACH_12(START)                                                     \
        const double t = now();                                            \
        for (size_t k = 0; k < turns; k++) {                               \
            EACH_12(TURN)                                                  \
        }                                                                  \
        const double s = now() - t;                                        \
        EACH_12(END)                                                       \
        return 2.0 * 12 * (lanes) * (double)turns / s;                     \
    }
#define VECTOR __m512
#define START(i) VECTOR a##i = SET(i + 0.5f); /* unlike, or they would become one chain */
#define TURN(i) a##i = FMA(a##i, x, y);
#define END(i) STORE(out, a##i), sink = sink + out[0];
#define SET _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define STORE _mm512_storeu_ps
PEAK(peak_avx512, "avx512f", 16)
#undef VECTOR
#undef SET
#undef FMA
#undef STORE
#define VECTOR __m256
#define SET _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#define STORE _mm256_storeu_ps
PEAK(peak_avx2, "avx2,fma", 8)
static double measure_peak(const char *variant)
{
    double best = 0;
    for (int i = 0; i < 5; i++) {
        const double p = strcmp(variant, "avx512") == 0 ? peak_avx512(4000000)
                         : strcmp(variant, "avx2") == 0 ? peak_avx2(4000000)
                                                        : 0;
        if (p > best) best = p;
    }
    return best;
}
#else
static double measure_peak(const char *variant)
{
    (void)variant;
    return 0;
}
#endif

/* What one core reads when the data is far larger than its caches. */
static double measure_read(void)
{
    const size_t n = (size_t)512 << 20;
    uint64_t *p = malloc(n), sum = 0;
    double best = 0;
    if (!p) abort();
    memset(p, 1, n);
    for (int i = 0; i < 3; i++) {
        const double t = now();
        for (size_t k = 0; k < n / 8; k += 8) /* a word a line is as much traffic as all */
            sum += p[k];
        const double rate = (double)n / (now() - t);
        if (rate > best) best = rate;
    }
    free(p);
    return sum == 42 ? 0 : best;
}

int main(int argc, char **argv)
{
    bench b = {.only = argc > 2 ? argv[2] : NULL};
    const char *name = argc > 1 ? argv[1] : qn_kern_best(qn_cpu_features());
    const qn_kern_variant *v = NULL;
    for (size_t i = 0; i < qn_kern_n_variants; i++)
        if (strcmp(qn_kern_variants[i].name, name) == 0) v = &qn_kern_variants[i];
    if (!v || (v->needs & qn_cpu_features()) != v->needs) {
        fprintf(stderr, "no variant %s here\n", name);
        return 1;
    }
    b.k = v == qn_kern_variants ? *v->table : qn_kern_select(v->needs);
    b.peak = measure_peak(v->name);
    b.read = measure_read();
    printf("%s: peak %.0f GFLOP/s f32, read %.1f GB/s\n", v->name, b.peak * 1e-9, b.read * 1e-9);
    static const uint32_t rows[] = {1, 2, 4, 8, 64, 512};
    static const uint32_t shapes[][2] = {{576, 576}, {192, 576}, {1536, 576}, {576, 1536}};
    for (size_t r = 0; r < QT_LEN(rows); r++)
        for (size_t i = 0; i < QT_LEN(shapes); i++)
            bench_linear(&b, QN_FMT_Q4_1, rows[r], shapes[i][0], shapes[i][1]);
    bench_linear(&b, QN_FMT_Q8_0, 1, 49152, 576);
    bench_linear(&b, QN_FMT_Q8_0, 4, 49152, 576);
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        bench_linear(&b, (qn_fmt)f, 1, 1536, 1536);
        bench_linear(&b, (qn_fmt)f, 128, 1536, 1536);
    }
    for (int f = 0; f < QN_FMT_COUNT; f++)
        if (qn_format_get((qn_fmt)f)->order != QN_ORDER_WIDEN) {
            for (int wide = 0; wide < 2; wide++) {
                static const uint32_t n[] = {1, 8, 128};
                for (size_t i = 0; i < QT_LEN(n); i++)
                    bench_i8(&b, (qn_fmt)f, n[i], 1536, 1536, wide);
                bench_i8(&b, (qn_fmt)f, 1, 65536, 2048, wide); /* from memory */
            }
        }
    for (int f = 0; f < QN_KV_FMT_COUNT; f++) {
        bench_attention(&b, (qn_kv_fmt)f, 1, 512);
        bench_attention(&b, (qn_kv_fmt)f, 512, 512);
    }
    bench_attention(&b, QN_KV_F16, 1, 8192);
    bench_draw(&b, 49152, (qn_sampler){.temperature = 0}, "greedy");
    bench_draw(&b, 49152, (qn_sampler){.temperature = 1}, "plain");
    bench_draw(&b, 49152, (qn_sampler){.temperature = 0.8f, .top_p = 0.95f}, "top-p");
    bench_draw(&b, 262144, (qn_sampler){.temperature = 0.8f, .top_p = 0.95f, .top_k = 64},
               "top-p top-k");
    bench_rows(&b, 1);
    bench_rows(&b, 512);
    return 0;
}
