/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c - the portable loops of peak.h, and the choice among all. */
#include "base/cpu.h"
#include "base/str.h"
#include "kern/peak_int.h"

typedef float float4 __attribute__((vector_size(16)));
typedef uint64_t word2 __attribute__((vector_size(16)));

#define MUL_ADD(a, x, y) ((a) * (x) + (y))
QN_PEAK_LOOP12(f32_portable, float4, (float4){0}, ((float4){1, 1, 1, 1}), MUL_ADD)

static const qn_peak portable[] = {
    {"multiply, add of 128 bit", QN_PEAK_F32, 0, QN_PEAK_OPS(12, 4), f32_portable},
    {0},
};

static const qn_peak *const lists[] = {
    portable,
#if defined(__x86_64__)
    qn_peaks_avx2,
    qn_peaks_avx512,
#elif defined(__aarch64__)
    qn_peaks_neon,
#endif
};

const qn_peak *qn_peak_at(size_t i)
{
    for (size_t l = 0; l < QN_LEN(lists); l++)
        for (const qn_peak *p = lists[l]; p->how; p++)
            if (i-- == 0) return p;
    return NULL;
}

static uint64_t read_portable(const void *p, size_t n)
{
    enum { WIDTH = 8 };
    const word2 *w = p;
    word2 sum[WIDTH] = {{0, 0}};
    for (size_t i = 0; i < n / sizeof *w; i += WIDTH)
        for (size_t k = 0; k < WIDTH; k++) sum[k] ^= w[i + k];
    for (size_t k = 1; k < WIDTH; k++) sum[0] ^= sum[k];
    return sum[0][0] ^ sum[0][1];
}

uint64_t qn_peak_read(const void *p, size_t n, uint32_t features)
{
#if defined(__x86_64__)
    if (features & QN_CPU_AVX512F) return qn_peak_read_avx512(p, n);
    if (features & QN_CPU_AVX2) return qn_peak_read_avx2(p, n);
#endif
    (void)features;
    return read_portable(p, n);
}
