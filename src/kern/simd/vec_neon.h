/* SPDX-License-Identifier: Apache-2.0 */
/* vec_neon.h - the vocabulary of vec_generic.h in NEON: a vf is four registers. Same names, same bits;
 * what each means stands in vec_generic.h. Files built with dotprod or i8mm get those dot products. */
#ifndef QN_KERN_SIMD_VEC_H
#define QN_KERN_SIMD_VEC_H
#include <arm_neon.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF_LEN = 16 };
enum { VF_TILE_ROWS = 3 };
#define VF_PANEL_ROWS 4 /* 16 registers of sums, 8 of codes, a row's word: 25 of 32 */
#define VF_TILE_OUTS 2  /* 24 of sums; a quarter of the weights and of a row: 27 of 32 */

typedef struct vf {
    float32x4_t a, b, c, d;
} vf;
typedef struct vi {
    uint32x4_t a, b, c, d;
} vi;
typedef struct vm { /* all bits of a lane */
    uint32x4_t a, b, c, d;
} vm;
typedef float32x4_t v4;

#define EACH_1(type, op, x) \
    return (type) { op((x).a), op((x).b), op((x).c), op((x).d) }
#define EACH_2(type, op, x, y) \
    return (type) { op((x).a, (y).a), op((x).b, (y).b), op((x).c, (y).c), op((x).d, (y).d) }
#define EACH_3(type, op, x, y, z)                                                  \
    return (type)                                                                  \
    {                                                                              \
        op((x).a, (y).a, (z).a), op((x).b, (y).b, (z).b), op((x).c, (y).c, (z).c), \
            op((x).d, (y).d, (z).d)                                                \
    }
#define ALL_4(type, x) \
    return (type) { x, x, x, x }

static inline float vf_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline vf vf_set(float x) { ALL_4(vf, vdupq_n_f32(x)); }
static inline vf vf_zero(void) { ALL_4(vf, vdupq_n_f32(0)); }
static inline vf vf_load(const float *p)
{
    return (vf){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
static inline void vf_store(float *p, vf v)
{
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
    vst1q_f32(p + 8, v.c);
    vst1q_f32(p + 12, v.d);
}
static inline vf vf_load_n(const float *p, size_t n)
{
    if (n >= VF_LEN) return vf_load(p);
    float all[VF_LEN] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load(all);
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    if (n >= VF_LEN) {
        vf_store(p, v);
        return;
    }
    float all[VF_LEN];
    vf_store(all, v);
    memcpy(p, all, n * sizeof *p);
}

static inline vi vi_set(uint32_t x) { ALL_4(vi, vdupq_n_u32(x)); }
static inline vi vi_load(const void *p)
{
    const uint8_t *q = p; /* no alignment is promised */
    return (vi){vreinterpretq_u32_u8(vld1q_u8(q)), vreinterpretq_u32_u8(vld1q_u8(q + 16)),
                vreinterpretq_u32_u8(vld1q_u8(q + 32)), vreinterpretq_u32_u8(vld1q_u8(q + 48))};
}
static inline void vi_store(void *p, vi v)
{
    uint8_t *q = p;
    vst1q_u8(q, vreinterpretq_u8_u32(v.a));
    vst1q_u8(q + 16, vreinterpretq_u8_u32(v.b));
    vst1q_u8(q + 32, vreinterpretq_u8_u32(v.c));
    vst1q_u8(q + 48, vreinterpretq_u8_u32(v.d));
}
static inline vi vi_iota(void)
{
    static const uint32_t lanes[VF_LEN] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vi_load(lanes);
}
static inline vf vi_as_vf(vi a) { EACH_1(vf, vreinterpretq_f32_u32, a); }
static inline vi vf_as_vi(vf a) { EACH_1(vi, vreinterpretq_u32_f32, a); }

static inline vm vm_first(size_t n)
{
    const uint32x4_t k = vdupq_n_u32(n >= VF_LEN ? VF_LEN : (uint32_t)n);
    const vi i = vi_iota();
    return (vm){vcgtq_u32(k, i.a), vcgtq_u32(k, i.b), vcgtq_u32(k, i.c), vcgtq_u32(k, i.d)};
}
static inline vi lane_bits(void) /* lane i: 1 << i */
{
    static const uint32_t bits[VF_LEN] = {1,      2,      4,      8,     0x10,  0x20,
                                          0x40,   0x80,   0x100,  0x200, 0x400, 0x800,
                                          0x1000, 0x2000, 0x4000, 0x8000};
    return vi_load(bits);
}
static inline vm vm_from_bits(uint32_t bits)
{
    const uint32x4_t b = vdupq_n_u32(bits);
    const vi w = lane_bits();
    return (vm){vtstq_u32(b, w.a), vtstq_u32(b, w.b), vtstq_u32(b, w.c), vtstq_u32(b, w.d)};
}
static inline vm vm_and(vm a, vm b) { EACH_2(vm, vandq_u32, a, b); }
static inline vm vm_or(vm a, vm b) { EACH_2(vm, vorrq_u32, a, b); }
static inline vm vm_not(vm a) { EACH_1(vm, vmvnq_u32, a); }
static inline uint32_t vm_bits(vm a)
{
    const vi w = lane_bits();
    const uint32x4_t x = vorrq_u32(vandq_u32(a.a, w.a), vandq_u32(a.b, w.b));
    const uint32x4_t y = vorrq_u32(vandq_u32(a.c, w.c), vandq_u32(a.d, w.d));
    return vaddvq_u32(vorrq_u32(x, y));
}

/* As the x86 instructions: the second where the two do not compare or are equal. */
static inline float32x4_t max_4(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
static inline float32x4_t min_4(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
static inline vf vf_add(vf a, vf b) { EACH_2(vf, vaddq_f32, a, b); }
static inline vf vf_sub(vf a, vf b) { EACH_2(vf, vsubq_f32, a, b); }
static inline vf vf_mul(vf a, vf b) { EACH_2(vf, vmulq_f32, a, b); }
static inline vf vf_div(vf a, vf b) { EACH_2(vf, vdivq_f32, a, b); }
static inline vf vf_max(vf a, vf b) { EACH_2(vf, max_4, a, b); }
static inline vf vf_min(vf a, vf b) { EACH_2(vf, min_4, a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { EACH_3(vf, vfmaq_f32, c, a, b); }
static inline vf vf_fnma(vf a, vf b, vf c) { EACH_3(vf, vfmsq_f32, c, a, b); }
static inline vf vf_sqrt(vf a) { EACH_1(vf, vsqrtq_f32, a); }
static inline vm vf_lt(vf a, vf b) { EACH_2(vm, vcltq_f32, a, b); }
static inline vm vf_le(vf a, vf b) { EACH_2(vm, vcleq_f32, a, b); }
static inline vm vf_gt(vf a, vf b) { EACH_2(vm, vcgtq_f32, a, b); }
static inline vm vf_ge(vf a, vf b) { EACH_2(vm, vcgeq_f32, a, b); }
static inline vm vf_eq(vf a, vf b) { EACH_2(vm, vceqq_f32, a, b); }
static inline vf vf_sel(vm m, vf a, vf b) { EACH_3(vf, vbslq_f32, m, a, b); }

#define SIGNED_2(name, op)                                                                    \
    static inline uint32x4_t name(uint32x4_t a, uint32x4_t b)                                 \
    {                                                                                         \
        return vreinterpretq_u32_s32(op(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b))); \
    }
SIGNED_2(smax_4, vmaxq_s32)
SIGNED_2(smin_4, vminq_s32)
static inline uint32x4_t sgt_4(uint32x4_t a, uint32x4_t b)
{
    return vcgtq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b));
}
static inline uint32x4_t mulhi_4(uint32x4_t a, uint32x4_t b)
{
    const uint64x2_t lo = vmull_u32(vget_low_u32(a), vget_low_u32(b)), hi = vmull_high_u32(a, b);
    return vuzp2q_u32(vreinterpretq_u32_u64(lo), vreinterpretq_u32_u64(hi));
}
static inline uint32x4_t shrv_4(uint32x4_t a, uint32x4_t n)
{
    return vshlq_u32(a, vnegq_s32(vreinterpretq_s32_u32(n)));
}
static inline vi vi_add(vi a, vi b) { EACH_2(vi, vaddq_u32, a, b); }
static inline vi vi_sub(vi a, vi b) { EACH_2(vi, vsubq_u32, a, b); }
static inline vi vi_and(vi a, vi b) { EACH_2(vi, vandq_u32, a, b); }
static inline vi vi_or(vi a, vi b) { EACH_2(vi, vorrq_u32, a, b); }
static inline vi vi_xor(vi a, vi b) { EACH_2(vi, veorq_u32, a, b); }
static inline vi vi_mul(vi a, vi b) { EACH_2(vi, vmulq_u32, a, b); }
static inline vi vi_mulhi(vi a, vi b) { EACH_2(vi, mulhi_4, a, b); }
static inline vi vi_max(vi a, vi b) { EACH_2(vi, smax_4, a, b); }
static inline vi vi_min(vi a, vi b) { EACH_2(vi, smin_4, a, b); }
static inline vi vi_shrv(vi a, vi b) { EACH_2(vi, shrv_4, a, b); }
static inline vm vi_eq(vi a, vi b) { EACH_2(vm, vceqq_u32, a, b); }
static inline vm vi_gt(vi a, vi b) { EACH_2(vm, sgt_4, a, b); }
static inline vi vi_sel(vm m, vi a, vi b) { EACH_3(vi, vbslq_u32, m, a, b); }
static inline vi vi_shl(vi a, int n)
{
    const int32x4_t by = vdupq_n_s32(n);
    return (vi){vshlq_u32(a.a, by), vshlq_u32(a.b, by), vshlq_u32(a.c, by), vshlq_u32(a.d, by)};
}
static inline vi vi_shr(vi a, int n) { return vi_shl(a, -n); }
static inline uint32x4_t sar_4(uint32x4_t a, int32x4_t by)
{
    return vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(a), by));
}
static inline vi vi_sar(vi a, int n)
{
    const int32x4_t by = vdupq_n_s32(-n);
    return (vi){sar_4(a.a, by), sar_4(a.b, by), sar_4(a.c, by), sar_4(a.d, by)};
}
static inline float32x4_t from_int_4(uint32x4_t a)
{
    return vcvtq_f32_s32(vreinterpretq_s32_u32(a));
}
static inline vf vf_from_vi(vi a) { EACH_1(vf, from_int_4, a); }
/* The instruction would give the nearest end of the range. */
static inline uint32x4_t round_4(float32x4_t a)
{
    const uint32x4_t in =
        vandq_u32(vcgeq_f32(a, vdupq_n_f32(-0x1p31f)), vcltq_f32(a, vdupq_n_f32(0x1p31f)));
    return vbslq_u32(in, vreinterpretq_u32_s32(vcvtnq_s32_f32(a)), vdupq_n_u32(0x80000000u));
}
static inline vi vf_round(vf a) { EACH_1(vi, round_4, a); }

static inline vf vf_lookup(vf table, vi index)
{
    const uint8x16x4_t t = {{vreinterpretq_u8_f32(table.a), vreinterpretq_u8_f32(table.b),
                             vreinterpretq_u8_f32(table.c), vreinterpretq_u8_f32(table.d)}};
    const vi at = vi_add(vi_mul(vi_and(index, vi_set(15)), vi_set(0x04040404)),
                         vi_set(0x03020100)); /* of the four bytes */
    return (vf){vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(at.a))),
                vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(at.b))),
                vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(at.c))),
                vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(at.d)))};
}
static inline vi widen_u16(uint16x8_t lo, uint16x8_t hi)
{
    return (vi){vmovl_u16(vget_low_u16(lo)), vmovl_high_u16(lo), vmovl_u16(vget_low_u16(hi)),
                vmovl_high_u16(hi)};
}
static inline vi vi_load_u8(const uint8_t *p)
{
    const uint8x16_t v = vld1q_u8(p);
    return widen_u16(vmovl_u8(vget_low_u8(v)), vmovl_high_u8(v));
}
static inline vi vi_load_i8(const int8_t *p)
{
    const int8x16_t v = vld1q_s8(p);
    const int16x8_t lo = vmovl_s8(vget_low_s8(v)), hi = vmovl_high_s8(v);
    return (vi){vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(lo))),
                vreinterpretq_u32_s32(vmovl_high_s16(lo)),
                vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(hi))),
                vreinterpretq_u32_s32(vmovl_high_s16(hi))};
}
static inline uint16x8_t load_8h(const void *p) { return vreinterpretq_u16_u8(vld1q_u8(p)); }
static inline vi vi_load_u16(const void *p)
{
    return widen_u16(load_8h(p), load_8h((const uint8_t *)p + 16));
}
static inline uint16x8_t low_halves(uint32x4_t a, uint32x4_t b)
{
    return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}
static inline void vi_store_8(void *p, vi v)
{
    const uint8x16_t lo = vreinterpretq_u8_u16(low_halves(v.a, v.b));
    const uint8x16_t hi = vreinterpretq_u8_u16(low_halves(v.c, v.d));
    vst1q_u8(p, vuzp1q_u8(lo, hi));
}
static inline void vi_store_16(void *p, vi v)
{
    uint8_t *q = p;
    vst1q_u8(q, vreinterpretq_u8_u16(low_halves(v.a, v.b)));
    vst1q_u8(q + 16, vreinterpretq_u8_u16(low_halves(v.c, v.d)));
}
static inline vi vi_spread(uint64_t a, uint64_t b, int shift)
{
    return (vi){vdupq_n_u32((uint32_t)a), vdupq_n_u32((uint32_t)(a >> shift)),
                vdupq_n_u32((uint32_t)b), vdupq_n_u32((uint32_t)(b >> shift))};
}
static inline uint32x4_t bit_bytes_16(uint32_t bits, uint8x16_t v)
{
    const uint8x16_t which = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t spread =
        vcombine_u8(vdup_n_u8((uint8_t)bits), vdup_n_u8((uint8_t)(bits >> 8)));
    return vreinterpretq_u32_u8(vandq_u8(vtstq_u8(spread, which), v));
}
static inline vi vi_bit_bytes(uint64_t bits, uint8_t v)
{
    const uint8x16_t all = vdupq_n_u8(v);
    return (vi){bit_bytes_16((uint32_t)bits, all), bit_bytes_16((uint32_t)(bits >> 16), all),
                bit_bytes_16((uint32_t)(bits >> 32), all),
                bit_bytes_16((uint32_t)(bits >> 48), all)};
}

/* -- dot products of unsigned bytes a and signed bytes b ------------------------------------------- */

static inline int8x16_t as_s8(uint32x4_t v) { return vreinterpretq_s8_u32(v); }
#if defined(__ARM_FEATURE_MATMUL_INT8)
static inline uint32x4_t dot4_4(uint32x4_t acc, uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_s32(
        vusdotq_s32(vreinterpretq_s32_u32(acc), vreinterpretq_u8_u32(a), as_s8(b)));
}
static inline uint32x4_t dot4_low_4(uint32x4_t acc, uint32x4_t a, uint32x4_t b)
{
    return dot4_4(acc, a, b);
}
#elif defined(__ARM_FEATURE_DOTPROD)
static inline uint32x4_t dot4_low_4(uint32x4_t acc, uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_s32(vdotq_s32(vreinterpretq_s32_u32(acc), as_s8(a), as_s8(b)));
}
/* a b = (a - 128) b - (-128) b, both factors signed now. */
static inline uint32x4_t dot4_4(uint32x4_t acc, uint32x4_t a, uint32x4_t b)
{
    const uint32x4_t least = vdupq_n_u32(0x80808080u);
    const uint32x4_t raised = dot4_low_4(vdupq_n_u32(0), least, b);
    return vsubq_u32(dot4_low_4(acc, veorq_u32(a, least), b), raised);
}
#else
/* Pairs stay below 2 * 127 * 128, which 16 bits hold. */
static inline uint32x4_t dot4_low_4(uint32x4_t acc, uint32x4_t a, uint32x4_t b)
{
    const int8x16_t x = as_s8(a), y = as_s8(b);
    const int16x8_t lo = vmull_s8(vget_low_s8(x), vget_low_s8(y)), hi = vmull_high_s8(x, y);
    return vreinterpretq_u32_s32(vpadalq_s16(vreinterpretq_s32_u32(acc), vpaddq_s16(lo, hi)));
}
/* a b = (a mod 128) b + (128 where a has its top bit) b. */
static inline uint32x4_t dot4_4(uint32x4_t acc, uint32x4_t a, uint32x4_t b)
{
    const uint32x4_t top = vreinterpretq_u32_s8(vshrq_n_s8(as_s8(a), 7));
    const int32x4_t some = vpaddlq_s16(vpaddlq_s8(as_s8(vandq_u32(b, top))));
    const uint32x4_t low = vandq_u32(a, vdupq_n_u32(0x7F7F7F7Fu));
    return dot4_low_4(vaddq_u32(acc, vreinterpretq_u32_s32(vshlq_n_s32(some, 7))), low, b);
}
#endif
static inline vi vi_dot4(vi acc, vi a, vi b) { EACH_3(vi, dot4_4, acc, a, b); }
static inline vi vi_dot4_low(vi acc, vi a, vi b) { EACH_3(vi, dot4_low_4, acc, a, b); }

/* -- halves ------------------------------------------------------------------------------------------ */

static inline float32x4_t f16_low(uint16x8_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(h)));
}
static inline float32x4_t f16_high(uint16x8_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(h)));
}
static inline float f16_widen(uint16_t h) { return vgetq_lane_f32(f16_low(vdupq_n_u16(h)), 0); }
static inline void vf_set2_f16(vf *a, vf *b, const void *p)
{
    uint32_t two;
    memcpy(&two, p, sizeof two);
    const float32x4_t v = f16_low(vreinterpretq_u16_u32(vdupq_n_u32(two)));
    const float32x4_t x = vdupq_laneq_f32(v, 0), y = vdupq_laneq_f32(v, 1);
    *a = (vf){x, x, x, x};
    *b = (vf){y, y, y, y};
}
static inline vf vf_load_f16(const void *p)
{
    const uint16x8_t lo = load_8h(p), hi = load_8h((const uint8_t *)p + 16);
    return (vf){f16_low(lo), f16_high(lo), f16_low(hi), f16_high(hi)};
}
static inline void vf_store_f16(void *p, vf v)
{
    uint8_t *q = p;
    const float16x8_t lo = vcvt_high_f16_f32(vcvt_f16_f32(v.a), v.b);
    const float16x8_t hi = vcvt_high_f16_f32(vcvt_f16_f32(v.c), v.d);
    vst1q_u8(q, vreinterpretq_u8_f16(lo));
    vst1q_u8(q + 16, vreinterpretq_u8_f16(hi));
}

/* -- sums over lanes ----------------------------------------------------------------------------------- */

/* The steps +8 and +4 of the tree. */
static inline float32x4_t sum_to_4(vf a)
{
    return vaddq_f32(vaddq_f32(a.a, a.c), vaddq_f32(a.b, a.d));
}
static inline float vf_sum(vf a)
{
    const float32x4_t q = sum_to_4(a);
    const float32x2_t d = vadd_f32(vget_low_f32(q), vget_high_f32(q));
    return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
/* The steps +2 and +1 for four sums. */
static inline float32x4_t sum_4(vf a, vf b, vf c, vf d)
{
    const float64x2_t x = vreinterpretq_f64_f32(sum_to_4(a)),
                      y = vreinterpretq_f64_f32(sum_to_4(b));
    const float64x2_t z = vreinterpretq_f64_f32(sum_to_4(c)),
                      w = vreinterpretq_f64_f32(sum_to_4(d));
    const float32x4_t xy =
        vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)), vreinterpretq_f32_f64(vzip2q_f64(x, y)));
    const float32x4_t zw =
        vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(z, w)), vreinterpretq_f32_f64(vzip2q_f64(z, w)));
    return vpaddq_f32(xy, zw);
}
static inline void vf_sum8(float *out, vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h)
{
    vst1q_f32(out, sum_4(a, b, c, d));
    vst1q_f32(out + 4, sum_4(e, f, g, h));
}
static inline vf vf_sum16(const vf *a)
{
    return (vf){sum_4(a[0], a[1], a[2], a[3]), sum_4(a[4], a[5], a[6], a[7]),
                sum_4(a[8], a[9], a[10], a[11]), sum_4(a[12], a[13], a[14], a[15])};
}
static inline float vf_top(vf a)
{
    const float32x4_t q = max_4(max_4(a.a, a.c), max_4(a.b, a.d));
    const float32x4_t d = max_4(q, vextq_f32(q, q, 2));
    const float x = vgetq_lane_f32(d, 0), y = vgetq_lane_f32(d, 1);
    return x > y ? x : y;
}
static inline int32_t vi_sum(vi a)
{
    const uint32x4_t s = vaddq_u32(vaddq_u32(a.a, a.b), vaddq_u32(a.c, a.d));
    return (int32_t)vaddvq_u32(s);
}

/* Weights of 4-bit codes: a look-up takes a table of four registers, so they are computed. */
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

static inline v4 v4_load(const float *p) { return vld1q_f32(p); }
static inline void v4_store(float *p, v4 v) { vst1q_f32(p, v); }
static inline v4 v4_add(v4 a, v4 b) { return vaddq_f32(a, b); }

/* Macros: gcc takes a function that only prefetches for one without effect and drops its calls. */
#define vf_prefetch(p) __builtin_prefetch((p), 0, 3)
#define vf_prefetch_far(p) __builtin_prefetch((p), 0, 2) /* into the second level */

#undef EACH_1
#undef EACH_2
#undef EACH_3
#undef ALL_4
#undef SIGNED_2
#endif
