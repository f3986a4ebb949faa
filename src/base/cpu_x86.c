/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_x86.c - CPUID leaves 1 and 7, and XCR0: whether the system saves ymm (bits 1, 2) and zmm with
 * mask registers (bits 5, 6, 7). Source: Intel SDM volume 1, sections 14.3 and 15.2. */
#include <cpuid.h>

#include "base/cpu.h"

typedef struct leaf {
    unsigned a, b, c, d;
} leaf;

static leaf ask(unsigned id, unsigned sub)
{
    leaf l = {0, 0, 0, 0};
    if (!__get_cpuid_count(id, sub, &l.a, &l.b, &l.c, &l.d)) l = (leaf){0, 0, 0, 0};
    return l;
}

static uint32_t xcr0(void)
{
    uint32_t lo = 0, hi = 0;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    (void)hi;
    return lo;
}

static uint32_t bit(unsigned reg, unsigned n, uint32_t feature)
{
    return reg >> n & 1u ? feature : 0;
}

uint32_t qn_cpu_features(void)
{
    const leaf one = ask(1, 0), seven = ask(7, 0);
    const leaf seven_one = seven.a >= 1 ? ask(7, 1) : (leaf){0, 0, 0, 0};
    if (!bit(one.c, 27, 1)) return 0; /* OSXSAVE: without it xgetbv does not exist */
    const uint32_t saved = xcr0();
    uint32_t f = 0;
    if ((saved & 0x06) != 0x06) return 0;
    f |= bit(one.c, 12, QN_CPU_FMA) | bit(one.c, 29, QN_CPU_F16C) | bit(seven.b, 5, QN_CPU_AVX2) |
         bit(seven_one.a, 4, QN_CPU_AVX_VNNI);
    if ((saved & 0xE6) != 0xE6) return f;
    return f | bit(seven.b, 16, QN_CPU_AVX512F) | bit(seven.b, 17, QN_CPU_AVX512DQ) |
           bit(seven.b, 30, QN_CPU_AVX512BW) | bit(seven.b, 31, QN_CPU_AVX512VL) |
           bit(seven.c, 11, QN_CPU_AVX512VNNI) | bit(seven_one.a, 5, QN_CPU_AVX512BF16) |
           bit(seven.d, 23, QN_CPU_AVX512FP16);
}
