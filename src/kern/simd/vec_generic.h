/* SPDX-License-Identifier: Apache-2.0 */
/* vec_generic.h - the vector vocabulary in plain C: what every vec_*.h must mean, lane by lane.
 *
 * A vf is 16 f32 lanes, a vi 16 lanes of 32 bits, a vm 16 truth values, a v4 four f32, on every
 * instruction set, so a sum has one order everywhere. Only operations that IEEE 754 rounds once are
 * here (add, mul, div, sqrt, fused multiply-add, conversions): no estimates, no libm but fmaf and
 * sqrtf, which are exact. The vec_*.h files define the same names with the same bits; templates
 * include one of them first.
 *
 * Thread: values only.
 */
#ifndef QN_KERN_SIMD_VEC_H
#define QN_KERN_SIMD_VEC_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF_LEN = 16 };
/* The register tile of a product: rows x outputs accumulators. */
enum { VF_TILE_ROWS = 2 };
#define VF_PANEL_ROWS \
    1 /* of a product over panels: taller tiles cost minutes of compiling and gain nothing */
#define VF_TILE_OUTS 4

typedef struct vf {
    float f[VF_LEN];
} vf;
typedef struct vi {
    uint32_t u[VF_LEN];
} vi;
typedef struct vm {
    uint32_t bits; /* lane i is bit i */
} vm;
typedef struct v4 {
    float f[4];
} v4;

#define VF_EACH for (int i = 0; i < VF_LEN; i++)
#define VF_BINARY(name, expr)         \
    static inline vf name(vf a, vf b) \
    {                                 \
        vf r;                         \
        VF_EACH r.f[i] = (expr);      \
        return r;                     \
    }
#define VI_BINARY(name, expr)         \
    static inline vi name(vi a, vi b) \
    {                                 \
        vi r;                         \
        VF_EACH r.u[i] = (expr);      \
        return r;                     \
    }
#define VF_TEST(name, op)                                    \
    static inline vm name(vf a, vf b)                        \
    {                                                        \
        vm r = {0};                                          \
        VF_EACH r.bits |= (uint32_t)(a.f[i] op b.f[i]) << i; \
        return r;                                            \
    }

static inline float vf_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t vf_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline vf vf_set(float x)
{
    vf r;
    VF_EACH r.f[i] = x;
    return r;
}
static inline vf vf_zero(void) { return vf_set(0.0f); }
static inline vf vf_load(const float *p)
{
    vf r;
    memcpy(r.f, p, sizeof r.f);
    return r;
}
static inline void vf_store(float *p, vf v) { memcpy(p, v.f, sizeof v.f); }
/* The first n lanes (n may exceed 16); the others are 0. */
static inline vf vf_load_n(const float *p, size_t n)
{
    vf r = vf_zero();
    VF_EACH if ((size_t)i < n) r.f[i] = p[i];
    return r;
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    VF_EACH if ((size_t)i < n) p[i] = v.f[i];
}
VF_BINARY(vf_add, a.f[i] + b.f[i])
VF_BINARY(vf_sub, a.f[i] - b.f[i])
VF_BINARY(vf_mul, a.f[i] * b.f[i])
VF_BINARY(vf_div, a.f[i] / b.f[i])
/* As the x86 instructions: b when a and b do not compare, so a NaN in b passes through. */
VF_BINARY(vf_max, a.f[i] > b.f[i] ? a.f[i] : b.f[i])
VF_BINARY(vf_min, a.f[i] < b.f[i] ? a.f[i] : b.f[i])
static inline vf vf_fma(vf a, vf b, vf c)
{
    vf r;
    VF_EACH r.f[i] = fmaf(a.f[i], b.f[i], c.f[i]);
    return r;
}
/* c - a * b, rounded once. */
static inline vf vf_fnma(vf a, vf b, vf c)
{
    vf r;
    VF_EACH r.f[i] = fmaf(-a.f[i], b.f[i], c.f[i]);
    return r;
}
static inline vf vf_sqrt(vf a)
{
    vf r;
    VF_EACH r.f[i] = sqrtf(a.f[i]);
    return r;
}
VF_TEST(vf_lt, <)
VF_TEST(vf_le, <=)
VF_TEST(vf_gt, >)
VF_TEST(vf_ge, >=)
VF_TEST(vf_eq, ==)

static inline vm vm_first(size_t n) { return (vm){n >= VF_LEN ? 0xFFFFu : (1u << n) - 1}; }
static inline vm vm_from_bits(uint32_t bits) { return (vm){bits}; }
static inline vm vm_and(vm a, vm b) { return (vm){a.bits & b.bits}; }
static inline vm vm_or(vm a, vm b) { return (vm){a.bits | b.bits}; }
static inline vm vm_not(vm a) { return (vm){a.bits ^ 0xFFFFu}; }
static inline uint32_t vm_bits(vm a) { return a.bits; }
/* m ? a : b */
static inline vf vf_sel(vm m, vf a, vf b)
{
    vf r;
    VF_EACH r.f[i] = (m.bits >> i & 1) ? a.f[i] : b.f[i];
    return r;
}

static inline vi vi_set(uint32_t x)
{
    vi r;
    VF_EACH r.u[i] = x;
    return r;
}
static inline vi vi_iota(void) /* 0, 1, ... 15 */
{
    vi r;
    VF_EACH r.u[i] = (uint32_t)i;
    return r;
}
static inline vi vi_load(const void *p)
{
    vi r;
    memcpy(r.u, p, sizeof r.u);
    return r;
}
static inline void vi_store(void *p, vi v) { memcpy(p, v.u, sizeof v.u); }
VI_BINARY(vi_add, a.u[i] + b.u[i])
VI_BINARY(vi_sub, a.u[i] - b.u[i])
VI_BINARY(vi_and, a.u[i] & b.u[i])
VI_BINARY(vi_or, a.u[i] | b.u[i])
VI_BINARY(vi_xor, a.u[i] ^ b.u[i])
VI_BINARY(vi_mul, a.u[i] * b.u[i])
/* The high 32 bits of the unsigned product. */
VI_BINARY(vi_mulhi, (uint32_t)(((uint64_t)a.u[i] * b.u[i]) >> 32))
VI_BINARY(vi_max, (int32_t)a.u[i] > (int32_t)b.u[i] ? a.u[i] : b.u[i]) /* signed */
VI_BINARY(vi_min, (int32_t)a.u[i] < (int32_t)b.u[i] ? a.u[i] : b.u[i])
static inline vi vi_shl(vi a, int n)
{
    VF_EACH a.u[i] <<= n;
    return a;
}
static inline vi vi_shr(vi a, int n) /* logical */
{
    VF_EACH a.u[i] >>= n;
    return a;
}
static inline vi vi_sar(vi a, int n) /* arithmetic */
{
    VF_EACH a.u[i] = (a.u[i] >> n) | ((a.u[i] >> 31) ? ~(0xFFFFFFFFu >> n) : 0);
    return a;
}
/* lane i: a[i] >> n[i], n below 32 */
VI_BINARY(vi_shrv, a.u[i] >> b.u[i])
static inline vm vi_eq(vi a, vi b)
{
    vm r = {0};
    VF_EACH r.bits |= (uint32_t)(a.u[i] == b.u[i]) << i;
    return r;
}
static inline vm vi_gt(vi a, vi b) /* signed */
{
    vm r = {0};
    VF_EACH r.bits |= (uint32_t)((int32_t)a.u[i] > (int32_t)b.u[i]) << i;
    return r;
}
static inline vi vi_sel(vm m, vi a, vi b)
{
    vi r;
    VF_EACH r.u[i] = (m.bits >> i & 1) ? a.u[i] : b.u[i];
    return r;
}
static inline vi vf_as_vi(vf a)
{
    vi r;
    memcpy(&r, &a, sizeof r);
    return r;
}
static inline vf vi_as_vf(vi a)
{
    vf r;
    memcpy(&r, &a, sizeof r);
    return r;
}
/* Signed integers to f32, round to nearest even. */
static inline vf vf_from_vi(vi a)
{
    vf r;
    VF_EACH r.f[i] = (float)(int32_t)a.u[i];
    return r;
}
/* Round to nearest even; |a| < 2^31, else 0x80000000. */
static inline vi vf_round(vf a)
{
    vi r;
    VF_EACH r.u[i] =
        a.f[i] >= -0x1p31f && a.f[i] < 0x1p31f ? (uint32_t)(int32_t)rintf(a.f[i]) : 0x80000000u;
    return r;
}

/* table[index mod 16] in each lane. */
static inline vf vf_lookup(vf table, vi index)
{
    vf r;
    VF_EACH r.f[i] = table.f[index.u[i] & 15];
    return r;
}
/* 16 bytes / halves to 32-bit lanes. */
static inline vi vi_load_u8(const uint8_t *p)
{
    vi r;
    VF_EACH r.u[i] = p[i];
    return r;
}
static inline vi vi_load_i8(const int8_t *p)
{
    vi r;
    VF_EACH r.u[i] = (uint32_t)(int32_t)p[i];
    return r;
}
static inline vi vi_load_u16(const void *p)
{
    uint16_t h[VF_LEN];
    vi r;
    memcpy(h, p, sizeof h);
    VF_EACH r.u[i] = h[i];
    return r;
}
/* The low byte / half of each lane. */
static inline void vi_store_8(void *p, vi v)
{
    uint8_t b[VF_LEN];
    VF_EACH b[i] = (uint8_t)v.u[i];
    memcpy(p, b, sizeof b);
}
static inline void vi_store_16(void *p, vi v)
{
    uint16_t h[VF_LEN];
    VF_EACH h[i] = (uint16_t)v.u[i];
    memcpy(p, h, sizeof h);
}

/* The low 32 bits of a, a >> shift, b, b >> shift: four lanes each. */
static inline vi vi_spread(uint64_t a, uint64_t b, int shift)
{
    const uint64_t w[4] = {a, a >> shift, b, b >> shift};
    vi r;
    VF_EACH r.u[i] = (uint32_t)w[i / 4];
    return r;
}
/* 64 bytes, each v where its bit is set, else 0. */
static inline vi vi_bit_bytes(uint64_t bits, uint8_t v)
{
    uint8_t b[4 * VF_LEN];
    for (int i = 0; i < 4 * VF_LEN; i++) b[i] = bits >> i & 1 ? v : 0;
    return vi_load(b);
}
/* Per lane: acc + the four products of unsigned bytes of a and signed bytes of b. */
static inline vi vi_dot4(vi acc, vi a, vi b)
{
    VF_EACH for (int k = 0; k < 32; k += 8) acc.u[i] +=
        (uint32_t)((int32_t)(a.u[i] >> k & 255) * (int8_t)(b.u[i] >> k & 255));
    return acc;
}
/* The same where the bytes of a are below 64. */
static inline vi vi_dot4_low(vi acc, vi a, vi b) { return vi_dot4(acc, a, b); }

/* One half to f32, exact; a NaN stays one, made quiet. */
static inline float f16_widen(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, low = h & 0x7FFFu;
    if (low >= 0x7C00u)
        return vf_bits_f32(sign | 0x7F800000u | (low << 13 & 0x7FFFFFu) |
                           (low > 0x7C00u ? 0x400000u : 0));
    const float m = vf_bits_f32(low << 13) * 0x1p112f; /* also right for subnormals */
    return vf_bits_f32(vf_f32_bits(m) | sign);
}
/* Round to nearest even; a NaN stays one, made quiet. */
static inline uint16_t f16_narrow(float f)
{
    const uint32_t u = vf_f32_bits(f), sign = u >> 16 & 0x8000u, low = u & 0x7FFFFFFFu;
    if (low > 0x7F800000u) return (uint16_t)(sign | 0x7E00u | (low >> 13 & 0x1FFu));
    if (low >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u);
    if (low < 0x38800000u) { /* subnormal: adding 1/2 lets the hardware round at bit 24 */
        const float half = vf_bits_f32(low) + 0.5f;
        return (uint16_t)(sign | (vf_f32_bits(half) - 0x3F000000u));
    }
    return (uint16_t)(sign | ((low - 0x38000000u + 0xFFFu + (low >> 13 & 1)) >> 13));
}
/* Two halves at p, each to all lanes. */
static inline void vf_set2_f16(vf *a, vf *b, const void *p)
{
    uint16_t h[2];
    memcpy(h, p, sizeof h);
    *a = vf_set(f16_widen(h[0]));
    *b = vf_set(f16_widen(h[1]));
}
static inline vf vf_load_f16(const void *p)
{
    uint16_t h[VF_LEN];
    vf r;
    memcpy(h, p, sizeof h);
    VF_EACH r.f[i] = f16_widen(h[i]);
    return r;
}
static inline void vf_store_f16(void *p, vf v)
{
    uint16_t h[VF_LEN];
    VF_EACH h[i] = f16_narrow(v.f[i]);
    memcpy(p, h, sizeof h);
}

/* ((lane i + lane i+8), then +4, +2, +1): the tree of every sum over lanes. */
static inline float vf_sum(vf a)
{
    for (int half = VF_LEN / 2; half; half /= 2)
        for (int i = 0; i < half; i++) a.f[i] = a.f[i] + a.f[i + half];
    return a.f[0];
}
/* Eight sums: out[0] = vf_sum(a) and so on; and sixteen. */
static inline void vf_sum8(float *out, vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h)
{
    const vf all[8] = {a, b, c, d, e, f, g, h};
    for (int j = 0; j < 8; j++) out[j] = vf_sum(all[j]);
}
static inline vf vf_sum16(const vf *a)
{
    vf r;
    VF_EACH r.f[i] = vf_sum(a[i]);
    return r;
}
/* The largest lane; no lane is NaN. */
static inline float vf_top(vf a)
{
    for (int half = VF_LEN / 2; half; half /= 2)
        for (int i = 0; i < half; i++) a.f[i] = a.f[i] > a.f[i + half] ? a.f[i] : a.f[i + half];
    return a.f[0];
}
static inline int32_t vi_sum(vi a)
{
    uint32_t s = 0;
    VF_EACH s += a.u[i];
    return (int32_t)s;
}

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

static inline v4 v4_load(const float *p)
{
    v4 r;
    memcpy(r.f, p, sizeof r.f);
    return r;
}
static inline void v4_store(float *p, v4 v) { memcpy(p, v.f, sizeof v.f); }
static inline v4 v4_add(v4 a, v4 b)
{
    for (int i = 0; i < 4; i++) a.f[i] = a.f[i] + b.f[i];
    return a;
}

/* Macros: gcc takes a function that only prefetches for one without effect and drops its calls. */
#define vf_prefetch(p) __builtin_prefetch((p), 0, 3)
#define vf_prefetch_far(p) __builtin_prefetch((p), 0, 2) /* into the second level */

#undef VF_EACH
#undef VF_BINARY
#undef VI_BINARY
#undef VF_TEST
#endif
