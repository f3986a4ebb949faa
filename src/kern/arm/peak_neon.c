/* SPDX-License-Identifier: Apache-2.0 */
/* peak_neon.c - loops of peak.h with vectors of 128 bit; each asks for what it uses. */
#include <arm_neon.h>

#include "base/cpu.h"
#include "kern/peak_int.h"

#define FMA(a, x, y) vfmaq_f32(a, x, y)
QN_PEAK_LOOP24(f32_neon, float32x4_t, vdupq_n_f32(0), vdupq_n_f32(1), FMA)

#define FMA_F16(a, x, y) vfmaq_f16(a, x, y)
QN_PEAK_LOOP24(f16_neon, float16x8_t, vdupq_n_f16(0), vdupq_n_f16(1), FMA_F16)

#define BFDOT(a, x, y) vbfdotq_f32(a, vreinterpretq_bf16_f32(x), vreinterpretq_bf16_f32(y))
QN_PEAK_LOOP24(bf16_neon, float32x4_t, vdupq_n_f32(0), vdupq_n_f32(1), BFDOT)

/* Without a dot product of bytes: eight products of 16 bits, added in pairs. The factors are touched
 * each time, else the compiler would multiply once. */
#define BYTES(v) vreinterpretq_s8_s32(v)
#define LOW(v) vget_low_s8(BYTES(v))
#define SMULL(a, x, y)                            \
    __extension__({                               \
        QN_PEAK_TOUCH(x, y);                      \
        vpadalq_s16(a, vmull_s8(LOW(x), LOW(y))); \
    })
QN_PEAK_LOOP12(int8_neon, int32x4_t, vdupq_n_s32(0), vdupq_n_s32(1), SMULL)

#define SDOT(a, x, y) vdotq_s32(a, BYTES(x), BYTES(y))
QN_PEAK_LOOP24(int8_dot, int32x4_t, vdupq_n_s32(0), vdupq_n_s32(1), SDOT)

#define SMMLA(a, x, y) vmmlaq_s32(a, BYTES(x), BYTES(y))
QN_PEAK_LOOP24(int8_mmla, int32x4_t, vdupq_n_s32(0), vdupq_n_s32(1), SMMLA)

const qn_peak qn_peaks_neon[] = {
    {"fmla of 128 bit", QN_PEAK_F32, QN_CPU_NEON, QN_PEAK_OPS(24, 4), f32_neon},
    {"fmla of halves", QN_PEAK_F16, QN_CPU_FP16, QN_PEAK_OPS(24, 8), f16_neon},
    {"bfdot", QN_PEAK_BF16, QN_CPU_BF16, QN_PEAK_OPS(24, 8), bf16_neon},
    {"smull, sadalp", QN_PEAK_INT8, QN_CPU_NEON, QN_PEAK_OPS(12, 8), int8_neon},
    {"sdot", QN_PEAK_INT8, QN_CPU_DOTPROD, QN_PEAK_OPS(24, 16), int8_dot},
    {"smmla", QN_PEAK_INT8, QN_CPU_I8MM, QN_PEAK_OPS(24, 32), int8_mmla},
    {0},
};
