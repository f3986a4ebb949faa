/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - names of feature sets. The probes are per platform: cpu_x86.c, cpu_arm.c, cpu_linux.c. */
#include "base/cpu.h"

#include <string.h>

enum {
    BITS_AVX2 = QN_CPU_AVX2 | QN_CPU_FMA | QN_CPU_F16C,
    BITS_AVX512_BASE =
        BITS_AVX2 | QN_CPU_AVX512F | QN_CPU_AVX512BW | QN_CPU_AVX512VL | QN_CPU_AVX512DQ,
    BITS_AVX512 = BITS_AVX512_BASE | QN_CPU_AVX_VNNI | QN_CPU_AVX512VNNI | QN_CPU_AVX512BF16 |
                  QN_CPU_AVX512FP16,
    BITS_NEON_DOT = QN_CPU_NEON | QN_CPU_DOTPROD
};

static const struct {
    const char *name;
    uint32_t mask;
} levels[] = {
    {"generic", QN_CPU_NONE},
    {"ref", QN_CPU_NONE},
    {"avx2", BITS_AVX2},
    {"avx2_vnni", BITS_AVX2 | QN_CPU_AVX_VNNI},
    {"avx512_base", BITS_AVX512_BASE},
    {"avx512", BITS_AVX512},
    {"neon", QN_CPU_NEON},
    {"neon_dot", BITS_NEON_DOT},
    {"neon_i8mm", BITS_NEON_DOT | QN_CPU_I8MM},
    {"auto", UINT32_MAX},
    {"", UINT32_MAX},
};

qn_code qn_cpu_parse_isa(uint32_t *out, const char *name, qn_err *err)
{
    *out = 0;
    for (size_t i = 0; i < QN_LEN(levels); i++)
        if (strcmp(name ? name : "", levels[i].name) == 0) {
            *out = levels[i].mask;
            return QN_OK;
        }
    return qn_fail(
        err, QN_E_INVAL,
        "instruction set \"%s\", expected auto, generic, avx2, avx2_vnni, avx512_base, avx512, "
        "neon, neon_dot or neon_i8mm",
        name);
}
