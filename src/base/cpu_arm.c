/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_arm.c - the kernel's list of usable features (AT_HWCAP); it has asked the registers already. */
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "base/cpu.h"

uint32_t qn_cpu_features(void)
{
    const unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
    return (cap & HWCAP_ASIMD ? (uint32_t)QN_CPU_NEON : 0) |
           (cap & HWCAP_ASIMDDP ? (uint32_t)QN_CPU_DOTPROD : 0) |
           (cap & HWCAP_ASIMDHP ? (uint32_t)QN_CPU_FP16 : 0) |
           (cap2 & HWCAP2_I8MM ? (uint32_t)QN_CPU_I8MM : 0) |
           (cap2 & HWCAP2_BF16 ? (uint32_t)QN_CPU_BF16 : 0);
}
