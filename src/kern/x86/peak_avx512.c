/* SPDX-License-Identifier: Apache-2.0 */
/* peak_avx512.c - loops of peak.h with 512-bit vectors, and VNNI of 256 bit. */
#include <immintrin.h>

#include "base/cpu.h"
#include "kern/peak_int.h"

#define FMA(a, x, y) _mm512_fmadd_ps(x, y, a)
QN_PEAK_LOOP24(f32_avx512, __m512, _mm512_setzero_ps(), _mm512_set1_ps(1.0f), FMA)

#define DPBUSD(a, x, y) _mm512_dpbusd_epi32(a, x, y)
QN_PEAK_LOOP24(int8_avx512, __m512i, _mm512_setzero_si512(), _mm512_set1_epi8(1), DPBUSD)

#define DPBUSD_256(a, x, y) _mm256_dpbusd_epi32(a, x, y)
QN_PEAK_LOOP24(int8_vnni_256, __m256i, _mm256_setzero_si256(), _mm256_set1_epi8(1), DPBUSD_256)

#define DPBF16(a, x, y) _mm512_dpbf16_ps(a, (__m512bh)(x), (__m512bh)(y))
QN_PEAK_LOOP24(bf16_avx512, __m512, _mm512_setzero_ps(), _mm512_set1_ps(1.0f), DPBF16)

#define FMA_F16(a, x, y) _mm512_fmadd_ph(x, y, a)
QN_PEAK_LOOP24(f16_avx512, __m512h, _mm512_setzero_ph(),
               _mm512_castsi512_ph(_mm512_set1_epi16(0x3c00)), FMA_F16)

const qn_peak qn_peaks_avx512[] = {
    {"vfmadd of 512 bit", QN_PEAK_F32, QN_CPU_AVX512F, QN_PEAK_OPS(24, 16), f32_avx512},
    {"vfmadd ph of 512 bit", QN_PEAK_F16, QN_CPU_AVX512FP16, QN_PEAK_OPS(24, 32), f16_avx512},
    {"vdpbf16ps of 512 bit", QN_PEAK_BF16, QN_CPU_AVX512BF16, QN_PEAK_OPS(24, 32), bf16_avx512},
    {"vpdpbusd of 256 bit", QN_PEAK_INT8, QN_CPU_AVX512VNNI | QN_CPU_AVX512VL, QN_PEAK_OPS(24, 32),
     int8_vnni_256},
    {"vpdpbusd of 512 bit", QN_PEAK_INT8, QN_CPU_AVX512VNNI, QN_PEAK_OPS(24, 64), int8_avx512},
    {0},
};

uint64_t qn_peak_read_avx512(const void *p, size_t n)
{
    const __m512i *v = p;
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (size_t i = 0; i < n / sizeof *v; i += 8) {
        a = _mm512_xor_si512(a, _mm512_load_si512(v + i));
        b = _mm512_xor_si512(b, _mm512_load_si512(v + i + 1));
        c = _mm512_xor_si512(c, _mm512_load_si512(v + i + 2));
        d = _mm512_xor_si512(d, _mm512_load_si512(v + i + 3));
        a = _mm512_xor_si512(a, _mm512_load_si512(v + i + 4));
        b = _mm512_xor_si512(b, _mm512_load_si512(v + i + 5));
        c = _mm512_xor_si512(c, _mm512_load_si512(v + i + 6));
        d = _mm512_xor_si512(d, _mm512_load_si512(v + i + 7));
    }
    uint64_t words[8], sum = 0;
    a = _mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d));
    _mm512_storeu_si512(words, a);
    for (int i = 0; i < 8; i++) sum ^= words[i];
    return sum;
}
