/* SPDX-License-Identifier: Apache-2.0 */
/* vec_avx2.h - the vocabulary of vec_generic.h in AVX2, FMA and F16C: a vf is two registers. Same
 * names, same bits; what each means stands in vec_generic.h. Files built with AVX-VNNI use its dot product. */
#ifndef QN_KERN_SIMD_VEC_H
#define QN_KERN_SIMD_VEC_H
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF_LEN = 16 };
enum { VF_TILE_ROWS = 3 };
#define VF_PANEL_ROWS 4
#define VF_TILE_OUTS 2 /* 12 accumulators of 16 registers */

typedef struct vf {
    __m256 lo, hi;
} vf;
typedef struct vi {
    __m256i lo, hi;
} vi;
typedef struct vm { /* all bits of a lane */
    __m256 lo, hi;
} vm;
typedef __m128 v4;

#define PER_HALF(type, call_lo, call_hi) \
    return (type) { call_lo, call_hi }

static inline float vf_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline vf vf_set(float x) { PER_HALF(vf, _mm256_set1_ps(x), _mm256_set1_ps(x)); }
static inline vf vf_zero(void) { PER_HALF(vf, _mm256_setzero_ps(), _mm256_setzero_ps()); }
static inline vf vf_load(const float *p)
{
    PER_HALF(vf, _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
static inline void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
}

static inline vi vi_set(uint32_t x)
{
    PER_HALF(vi, _mm256_set1_epi32((int)x), _mm256_set1_epi32((int)x));
}
static inline vi vi_iota(void)
{
    PER_HALF(vi, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
             _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15));
}
static inline vf vi_as_vf(vi a)
{
    PER_HALF(vf, _mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi));
}
static inline vi vf_as_vi(vf a)
{
    PER_HALF(vi, _mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi));
}

static inline vm vm_first(size_t n)
{
    const __m256i k = _mm256_set1_epi32(n >= VF_LEN ? VF_LEN : (int)n);
    const vi i = vi_iota();
    PER_HALF(vm, _mm256_castsi256_ps(_mm256_cmpgt_epi32(k, i.lo)),
             _mm256_castsi256_ps(_mm256_cmpgt_epi32(k, i.hi)));
}
static inline vm vm_from_bits(uint32_t bits)
{
    const __m256i b = _mm256_set1_epi32((int)bits), one = _mm256_set1_epi32(1);
    const vi i = vi_iota();
    const __m256i lo = _mm256_sllv_epi32(one, i.lo), hi = _mm256_sllv_epi32(one, i.hi);
    PER_HALF(vm, _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(b, lo), lo)),
             _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(b, hi), hi)));
}
static inline vm vm_and(vm a, vm b)
{
    PER_HALF(vm, _mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi));
}
static inline vm vm_or(vm a, vm b)
{
    PER_HALF(vm, _mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi));
}
static inline vm vm_not(vm a)
{
    const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    PER_HALF(vm, _mm256_xor_ps(a.lo, all), _mm256_xor_ps(a.hi, all));
}
static inline uint32_t vm_bits(vm a)
{
    return (uint32_t)_mm256_movemask_ps(a.lo) | (uint32_t)_mm256_movemask_ps(a.hi) << 8;
}

static inline vf vf_load_n(const float *p, size_t n)
{
    if (n >= VF_LEN) return vf_load(p);
    const vm m = vm_first(n);
    vf r;
    r.lo = _mm256_maskload_ps(p, _mm256_castps_si256(m.lo));
    r.hi = _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi));
    return r;
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    if (n >= VF_LEN) {
        vf_store(p, v);
        return;
    }
    const vm m = vm_first(n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), v.lo);
    _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), v.hi);
}

#define VF_BINARY(name, op) \
    static inline vf name(vf a, vf b) { PER_HALF(vf, op(a.lo, b.lo), op(a.hi, b.hi)); }
#define VI_BINARY(name, op) \
    static inline vi name(vi a, vi b) { PER_HALF(vi, op(a.lo, b.lo), op(a.hi, b.hi)); }
#define VF_TEST(name, op)                                                           \
    static inline vm name(vf a, vf b)                                               \
    {                                                                               \
        PER_HALF(vm, _mm256_cmp_ps(a.lo, b.lo, op), _mm256_cmp_ps(a.hi, b.hi, op)); \
    }
VF_BINARY(vf_add, _mm256_add_ps)
VF_BINARY(vf_sub, _mm256_sub_ps)
VF_BINARY(vf_mul, _mm256_mul_ps)
VF_BINARY(vf_div, _mm256_div_ps)
VF_BINARY(vf_max, _mm256_max_ps)
VF_BINARY(vf_min, _mm256_min_ps)
VF_TEST(vf_lt, _CMP_LT_OQ)
VF_TEST(vf_le, _CMP_LE_OQ)
VF_TEST(vf_gt, _CMP_GT_OQ)
VF_TEST(vf_ge, _CMP_GE_OQ)
VF_TEST(vf_eq, _CMP_EQ_OQ)
VI_BINARY(vi_add, _mm256_add_epi32)
VI_BINARY(vi_sub, _mm256_sub_epi32)
VI_BINARY(vi_and, _mm256_and_si256)
VI_BINARY(vi_or, _mm256_or_si256)
VI_BINARY(vi_xor, _mm256_xor_si256)
VI_BINARY(vi_mul, _mm256_mullo_epi32)
VI_BINARY(vi_max, _mm256_max_epi32)
VI_BINARY(vi_min, _mm256_min_epi32)
VI_BINARY(vi_shrv, _mm256_srlv_epi32)
static inline vf vf_fma(vf a, vf b, vf c)
{
    PER_HALF(vf, _mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi));
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    PER_HALF(vf, _mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi));
}
static inline vf vf_sqrt(vf a) { PER_HALF(vf, _mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)); }
static inline vf vf_sel(vm m, vf a, vf b)
{
    PER_HALF(vf, _mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi));
}

static inline vi vi_load(const void *p)
{
    const __m256i *q = p;
    PER_HALF(vi, _mm256_loadu_si256(q), _mm256_loadu_si256(q + 1));
}
static inline void vi_store(void *p, vi v)
{
    __m256i *q = p;
    _mm256_storeu_si256(q, v.lo);
    _mm256_storeu_si256(q + 1, v.hi);
}
static inline __m256i mulhi_8(__m256i a, __m256i b)
{
    const __m256i even = _mm256_mul_epu32(a, b);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}
VI_BINARY(vi_mulhi, mulhi_8)
static inline vi vi_shl(vi a, int n)
{
    PER_HALF(vi, _mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n));
}
static inline vi vi_shr(vi a, int n)
{
    PER_HALF(vi, _mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n));
}
static inline vi vi_sar(vi a, int n)
{
    PER_HALF(vi, _mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n));
}
static inline vm vi_eq(vi a, vi b)
{
    PER_HALF(vm, _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)),
             _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi)));
}
static inline vm vi_gt(vi a, vi b)
{
    PER_HALF(vm, _mm256_castsi256_ps(_mm256_cmpgt_epi32(a.lo, b.lo)),
             _mm256_castsi256_ps(_mm256_cmpgt_epi32(a.hi, b.hi)));
}
static inline vi vi_sel(vm m, vi a, vi b) { return vf_as_vi(vf_sel(m, vi_as_vf(a), vi_as_vf(b))); }
static inline vf vf_from_vi(vi a)
{
    PER_HALF(vf, _mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi));
}
static inline vi vf_round(vf a)
{
    PER_HALF(vi, _mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi));
}

/* Weights of 4-bit codes: a table look-up costs six instructions here, so they are computed. */
typedef struct vf_q4 {
    vf d, m;
} vf_q4;
static inline vf_q4 vf_q4_sym(vf d) { return (vf_q4){d, d}; }
static inline vf_q4 vf_q4_min(vf d, vf m) { return (vf_q4){d, m}; }
static inline vf vf_q4_sym_at(vf_q4 t, vi q)
{
    return vf_mul(t.d, vf_from_vi(vi_sub(vi_and(q, vi_set(15)), vi_set(8))));
}
static inline vf vf_q4_min_at(vf_q4 t, vi q)
{
    return vf_fma(t.d, vf_from_vi(vi_and(q, vi_set(15))), t.m);
}
static inline vi vi_load_u8(const uint8_t *p)
{
    const __m128i b = _mm_loadu_si128((const void *)p);
    PER_HALF(vi, _mm256_cvtepu8_epi32(b), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(b, b)));
}
static inline vi vi_load_i8(const int8_t *p)
{
    const __m128i b = _mm_loadu_si128((const void *)p);
    PER_HALF(vi, _mm256_cvtepi8_epi32(b), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(b, b)));
}
static inline vi vi_load_u16(const void *p)
{
    const __m128i *q = p;
    PER_HALF(vi, _mm256_cvtepu16_epi32(_mm_loadu_si128(q)),
             _mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1)));
}
static inline __m256i pack_16(vi v) /* the low halves, in order */
{
    const __m256i m = _mm256_set1_epi32(0xFFFF);
    const __m256i p = _mm256_packus_epi32(_mm256_and_si256(v.lo, m), _mm256_and_si256(v.hi, m));
    return _mm256_permute4x64_epi64(p, _MM_SHUFFLE(3, 1, 2, 0));
}
static inline void vi_store_8(void *p, vi v)
{
    const __m256i h = pack_16((vi){_mm256_and_si256(v.lo, _mm256_set1_epi32(0xFF)),
                                   _mm256_and_si256(v.hi, _mm256_set1_epi32(0xFF))});
    const __m256i b = _mm256_permute4x64_epi64(_mm256_packus_epi16(h, h), _MM_SHUFFLE(3, 1, 2, 0));
    _mm_storeu_si128(p, _mm256_castsi256_si128(b));
}
static inline void vi_store_16(void *p, vi v) { _mm256_storeu_si256(p, pack_16(v)); }
static inline vi vi_spread(uint64_t a, uint64_t b, int shift)
{
    const __m128i v = _mm_set_epi64x((long long)b, (long long)a);
    const __m256i w = _mm256_set_m128i(_mm_srli_epi64(v, shift), v);
    PER_HALF(vi, _mm256_permutevar8x32_epi32(w, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)),
             _mm256_permutevar8x32_epi32(w, _mm256_setr_epi32(2, 2, 2, 2, 6, 6, 6, 6)));
}
static inline __m256i bit_bytes_8(uint32_t bits, uint8_t v)
{
    const __m256i which = _mm256_set1_epi64x((long long)0x8040201008040201u);
    const __m256i byte = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                          2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, which), which),
                            _mm256_set1_epi8((char)v));
}
static inline vi vi_bit_bytes(uint64_t bits, uint8_t v)
{
    return (vi){bit_bytes_8((uint32_t)bits, v), bit_bytes_8((uint32_t)(bits >> 32), v)};
}
#ifdef __AVXVNNI__
static inline vi vi_dot4(vi acc, vi a, vi b)
{
    PER_HALF(vi, _mm256_dpbusd_avx_epi32(acc.lo, a.lo, b.lo),
             _mm256_dpbusd_avx_epi32(acc.hi, a.hi, b.hi));
}
static inline vi vi_dot4_low(vi acc, vi a, vi b) { return vi_dot4(acc, a, b); }
#else
/* maddubs would saturate at 16 bits, so even and odd bytes are widened and multiplied apart. */
static inline __m256i dot4_8(__m256i acc, __m256i a, __m256i b)
{
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(0xFF)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}
static inline vi vi_dot4(vi acc, vi a, vi b)
{
    PER_HALF(vi, dot4_8(acc.lo, a.lo, b.lo), dot4_8(acc.hi, a.hi, b.hi));
}
/* Pairs stay below 2 * 63 * 128, which 16 bits hold. */
static inline __m256i dot4_low_8(__m256i acc, __m256i a, __m256i b)
{
    return _mm256_add_epi32(acc,
                            _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}
static inline vi vi_dot4_low(vi acc, vi a, vi b)
{
    PER_HALF(vi, dot4_low_8(acc.lo, a.lo, b.lo), dot4_low_8(acc.hi, a.hi, b.hi));
}
#endif

static inline float f16_widen(uint16_t h) { return _cvtsh_ss(h); }
static inline void vf_set2_f16(vf *a, vf *b, const void *p)
{
    int two;
    memcpy(&two, p, sizeof two);
    const __m128 v = _mm_cvtph_ps(_mm_cvtsi32_si128(two));
    const __m256 x = _mm256_broadcastss_ps(v), y = _mm256_broadcastss_ps(_mm_movehdup_ps(v));
    a->lo = a->hi = x;
    b->lo = b->hi = y;
}
static inline vf vf_load_f16(const void *p)
{
    const __m128i *q = p;
    PER_HALF(vf, _mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1)));
}
static inline void vf_store_f16(void *p, vf v)
{
    __m128i *q = p;
    _mm_storeu_si128(q, _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128(q + 1, _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline float vf_sum(vf a)
{
    const __m256 e = _mm256_add_ps(a.lo, a.hi);
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}

/* The tree for many sums at once: each step adds the halves of two vectors into one. */
static inline __m256 sum_step4(vf a, vf b) /* [a, b], 4 lanes each, after the first step */
{
    const __m256 x = _mm256_add_ps(a.lo, a.hi), y = _mm256_add_ps(b.lo, b.hi);
    return _mm256_add_ps(_mm256_blend_ps(x, y, 0xF0), _mm256_permute2f128_ps(x, y, 0x21));
}
static inline __m256 sum_step2(__m256 a, __m256 b) /* in each 4: a, a, b, b */
{
    const __m256 moved = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xCC), moved);
}
static inline __m256 sum_8(vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h)
{
    const __m256 x = sum_step2(sum_step4(a, e), sum_step4(b, f));
    const __m256 y = sum_step2(sum_step4(c, g), sum_step4(d, h));
    return _mm256_add_ps(_mm256_shuffle_ps(x, y, _MM_SHUFFLE(2, 0, 2, 0)),
                         _mm256_shuffle_ps(x, y, _MM_SHUFFLE(3, 1, 3, 1)));
}
static inline void vf_sum8(float *out, vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h)
{
    _mm256_storeu_ps(out, sum_8(a, b, c, d, e, f, g, h));
}
static inline vf vf_sum16(const vf *a)
{
    PER_HALF(vf, sum_8(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]),
             sum_8(a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]));
}

static inline float vf_top(vf a)
{
    const __m256 e = _mm256_max_ps(a.lo, a.hi);
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
static inline int32_t vi_sum(vi a)
{
    const __m256i e = _mm256_add_epi32(a.lo, a.hi);
    const __m128i q = _mm_add_epi32(_mm256_castsi256_si128(e), _mm256_extracti128_si256(e, 1));
    const __m128i d = _mm_add_epi32(q, _mm_shuffle_epi32(q, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, _MM_SHUFFLE(2, 3, 0, 1))));
}

static inline v4 v4_load(const float *p) { return _mm_loadu_ps(p); }
static inline void v4_store(float *p, v4 v) { _mm_storeu_ps(p, v); }
static inline v4 v4_add(v4 a, v4 b) { return _mm_add_ps(a, b); }

/* Macros: gcc takes a function that only prefetches for one without effect and drops its calls. */
#define vf_prefetch(p) _mm_prefetch((p), _MM_HINT_T0)
#define vf_prefetch_far(p) _mm_prefetch((p), _MM_HINT_T1) /* into the second level */

#undef PER_HALF
#undef VF_BINARY
#undef VI_BINARY
#undef VF_TEST
#endif
