/* SPDX-License-Identifier: Apache-2.0 */
/* vec_avx512.h - the vocabulary of vec_generic.h in AVX-512: a vf is one register. Same names, same
 * bits; what each means stands in vec_generic.h. Files built without VNNI do its dot product in steps. */
#ifndef QN_KERN_SIMD_VEC_H
#define QN_KERN_SIMD_VEC_H
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF_LEN = 16 };
enum { VF_TILE_ROWS = 6 };
#define VF_PANEL_ROWS 12 /* with 8 registers of codes: 25 of 32 */
#define VF_TILE_OUTS 4   /* 24 accumulators, 4 weights and a row's vector: 29 of 32 registers */

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
typedef __m128 v4;

static inline float vf_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline vm vm_first(size_t n) { return (vm)(n >= VF_LEN ? 0xFFFFu : (1u << n) - 1); }
static inline vm vm_from_bits(uint32_t bits) { return (vm)bits; }
static inline vm vm_and(vm a, vm b) { return (vm)(a & b); }
static inline vm vm_or(vm a, vm b) { return (vm)(a | b); }
static inline vm vm_not(vm a) { return (vm)(a ^ 0xFFFFu); }
static inline uint32_t vm_bits(vm a) { return a; }

static inline vf vf_set(float x) { return _mm512_set1_ps(x); }
static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
static inline vf vf_load_n(const float *p, size_t n)
{
    return n >= VF_LEN ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(vm_first(n), p);
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    if (n >= VF_LEN)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, vm_first(n), v);
}
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vf vf_sel(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }

static inline vi vi_set(uint32_t x) { return _mm512_set1_epi32((int)x); }
static inline vi vi_iota(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(void *p, vi v) { _mm512_storeu_si512(p, v); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
static inline vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
static inline vi vi_mulhi(vi a, vi b)
{
    const vi even = _mm512_mul_epu32(a, b);
    const vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
}
static inline vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
static inline vi vi_min(vi a, vi b) { return _mm512_min_epi32(a, b); }
static inline vi vi_shl(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
static inline vi vi_shr(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
static inline vi vi_sar(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
static inline vi vi_shrv(vi a, vi b) { return _mm512_srlv_epi32(a, b); }
static inline vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
static inline vm vi_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
static inline vi vi_sel(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }
static inline vi vf_as_vi(vf a) { return _mm512_castps_si512(a); }
static inline vf vi_as_vf(vi a) { return _mm512_castsi512_ps(a); }
static inline vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vf_round(vf a) { return _mm512_cvtps_epi32(a); }

static inline vf vf_lookup(vf table, vi index) { return _mm512_permutexvar_ps(index, table); }
static inline __m128i load_16(const void *p) { return _mm_loadu_si128(p); }
static inline vi vi_load_u8(const uint8_t *p) { return _mm512_cvtepu8_epi32(load_16(p)); }
static inline vi vi_load_i8(const int8_t *p) { return _mm512_cvtepi8_epi32(load_16(p)); }
static inline vi vi_load_u16(const void *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p)); }
static inline void vi_store_8(void *p, vi v) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8(v)); }
static inline void vi_store_16(void *p, vi v) { _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(v)); }
static inline vi vi_spread(uint64_t a, uint64_t b, int shift)
{
    const vi index = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 2, 2, 2, 2, 6, 6, 6, 6);
    const __m128i v = _mm_set_epi64x((long long)b, (long long)a);
    const __m256i w = _mm256_set_m128i(_mm_srli_epi64(v, shift), v);
    return _mm512_permutexvar_epi32(index, _mm512_castsi256_si512(w));
}
static inline vi vi_bit_bytes(uint64_t bits, uint8_t v)
{
    return _mm512_maskz_set1_epi8(bits, (char)v);
}
#ifdef __AVX512VNNI__
static inline vi vi_dot4(vi acc, vi a, vi b) { return _mm512_dpbusd_epi32(acc, a, b); }
static inline vi vi_dot4_low(vi acc, vi a, vi b) { return vi_dot4(acc, a, b); }
#else
/* maddubs would saturate at 16 bits, so even and odd bytes are widened and multiplied apart. */
static inline vi vi_dot4(vi acc, vi a, vi b)
{
    const vi even = _mm512_madd_epi16(_mm512_and_si512(a, _mm512_set1_epi16(0xFF)),
                                      _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8));
    const vi odd = _mm512_madd_epi16(_mm512_srli_epi16(a, 8), _mm512_srai_epi16(b, 8));
    return vi_add(acc, vi_add(even, odd));
}
/* Pairs stay below 2 * 63 * 128, which 16 bits hold. */
static inline vi vi_dot4_low(vi acc, vi a, vi b)
{
    const vi pairs = _mm512_maddubs_epi16(a, b);
    return vi_add(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

static inline float f16_widen(uint16_t h) { return _cvtsh_ss(h); }
static inline void vf_set2_f16(vf *a, vf *b, const void *p)
{
    int two;
    memcpy(&two, p, sizeof two);
    const __m128 v = _mm_cvtph_ps(_mm_cvtsi32_si128(two));
    *a = _mm512_broadcastss_ps(v);
    *b = _mm512_permutexvar_ps(_mm512_set1_epi32(1), _mm512_castps128_ps512(v));
}
static inline vf vf_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
static inline void vf_store_f16(void *p, vf v)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline float vf_sum(vf a)
{
    const __m256 e = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}

/* The tree for many sums at once: each step adds the halves of two vectors into one. Addition
 * commutes, so a blend can keep half of each in place and one shuffle moves the rest. */
static inline vf sum_step8(vf a, vf b) /* [a, b], 8 lanes each */
{
    const vf moved = _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm512_add_ps(_mm512_mask_blend_ps(0xFF00, a, b), moved);
}
static inline vf sum_step4(vf a, vf b) /* [a0, b0, a1, b1], 4 lanes each */
{
    const vi index = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
    return _mm512_add_ps(_mm512_mask_blend_ps(0xF0F0, a, b), _mm512_permutex2var_ps(a, index, b));
}
static inline vf sum_step2(vf a, vf b) /* in each 4: a, a, b, b */
{
    const vf moved = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm512_add_ps(_mm512_mask_blend_ps(0xCCCC, a, b), moved);
}
static inline void vf_sum8(float *out, vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h)
{
    const vf x = sum_step4(sum_step8(a, e), sum_step8(c, g));
    const vf y = sum_step4(sum_step8(b, f), sum_step8(d, h));
    const vf p = sum_step2(x, y);
    const vf s = _mm512_add_ps(p, _mm512_permute_ps(p, _MM_SHUFFLE(2, 3, 0, 1)));
    _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi64_epi32(_mm512_castps_si512(s)));
}
static inline vf vf_sum16(const vf *a)
{
    const vf x = sum_step4(sum_step8(a[0], a[8]), sum_step8(a[4], a[12]));
    const vf y = sum_step4(sum_step8(a[1], a[9]), sum_step8(a[5], a[13]));
    const vf z = sum_step4(sum_step8(a[2], a[10]), sum_step8(a[6], a[14]));
    const vf w = sum_step4(sum_step8(a[3], a[11]), sum_step8(a[7], a[15]));
    const vf xy = sum_step2(x, y), zw = sum_step2(z, w);
    return _mm512_add_ps(_mm512_shuffle_ps(xy, zw, _MM_SHUFFLE(2, 0, 2, 0)),
                         _mm512_shuffle_ps(xy, zw, _MM_SHUFFLE(3, 1, 3, 1)));
}

static inline float vf_top(vf a)
{
    const __m256 e = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
static inline int32_t vi_sum(vi a) { return _mm512_reduce_add_epi32(a); }

/* Weights of 4-bit codes: all sixteen in a table, then a code (the low bits of a lane) picks one. */
typedef vf vf_q4;
static inline vf_q4 vf_q4_sym(vf d) /* d (q - 8) */
{
    return vf_mul(d, vf_sub(vf_from_vi(vi_iota()), vf_set(8.0f)));
}
static inline vf_q4 vf_q4_min(vf d, vf m)
{
    return vf_fma(d, vf_from_vi(vi_iota()), m);
} /* d q + m */
static inline vf vf_q4_sym_at(vf_q4 t, vi q) { return vf_lookup(t, q); }
static inline vf vf_q4_min_at(vf_q4 t, vi q) { return vf_lookup(t, q); }

static inline v4 v4_load(const float *p) { return _mm_loadu_ps(p); }
static inline void v4_store(float *p, v4 v) { _mm_storeu_ps(p, v); }
static inline v4 v4_add(v4 a, v4 b) { return _mm_add_ps(a, b); }

/* Macros: gcc takes a function that only prefetches for one without effect and drops its calls. */
#define vf_prefetch(p) _mm_prefetch((p), _MM_HINT_T0)
#define vf_prefetch_far(p) _mm_prefetch((p), _MM_HINT_T1) /* into the second level */

#endif
