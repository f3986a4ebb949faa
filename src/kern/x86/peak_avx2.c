/* SPDX-License-Identifier: Apache-2.0 */
/* peak_avx2.c - loops of peak.h with 256-bit vectors. */
#include <immintrin.h>

#include "base/cpu.h"
#include "kern/peak_int.h"

#define FMA(a, x, y) _mm256_fmadd_ps(x, y, a)
QN_PEAK_LOOP12(f32_avx2, __m256, _mm256_setzero_ps(), _mm256_set1_ps(1.0f), FMA)

/* Without a dot product of bytes: pairs to int16, pairs of those to int32, one addition. The factors are
 * touched each time, else the compiler would do the first two once. */
#define MADDUBS(a, x, y)                                                       \
    __extension__({                                                            \
        QN_PEAK_TOUCH(x, y);                                                   \
        _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), y)); \
    })
QN_PEAK_LOOP12(int8_avx2, __m256i, _mm256_setzero_si256(), _mm256_set1_epi8(1), MADDUBS)

#define DPBUSD(a, x, y) _mm256_dpbusd_avx_epi32(a, x, y)
QN_PEAK_LOOP12(int8_vnni, __m256i, _mm256_setzero_si256(), _mm256_set1_epi8(1), DPBUSD)

const qn_peak qn_peaks_avx2[] = {
    {"vfmadd of 256 bit", QN_PEAK_F32, QN_CPU_AVX2 | QN_CPU_FMA, QN_PEAK_OPS(12, 8), f32_avx2},
    {"vpmaddubsw, vpmaddwd of 256 bit", QN_PEAK_INT8, QN_CPU_AVX2, QN_PEAK_OPS(12, 32), int8_avx2},
    {"vpdpbusd of 256 bit, AVX", QN_PEAK_INT8, QN_CPU_AVX2 | QN_CPU_AVX_VNNI, QN_PEAK_OPS(12, 32),
     int8_vnni},
    {0},
};

uint64_t qn_peak_read_avx2(const void *p, size_t n)
{
    const __m256i *v = p;
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (size_t i = 0; i < n / sizeof *v; i += 8) {
        a = _mm256_xor_si256(a, _mm256_load_si256(v + i));
        b = _mm256_xor_si256(b, _mm256_load_si256(v + i + 1));
        c = _mm256_xor_si256(c, _mm256_load_si256(v + i + 2));
        d = _mm256_xor_si256(d, _mm256_load_si256(v + i + 3));
        a = _mm256_xor_si256(a, _mm256_load_si256(v + i + 4));
        b = _mm256_xor_si256(b, _mm256_load_si256(v + i + 5));
        c = _mm256_xor_si256(c, _mm256_load_si256(v + i + 6));
        d = _mm256_xor_si256(d, _mm256_load_si256(v + i + 7));
    }
    a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
    const __m128i h = _mm_xor_si128(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return (uint64_t)_mm_extract_epi64(h, 0) ^ (uint64_t)_mm_extract_epi64(h, 1);
}
