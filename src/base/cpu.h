/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h - what this processor and this process may use.
 *
 * A vector feature counts only if the system saves its registers too (XCR0 on x86), so a bit that is
 * set can be used. Kernel variants name the bits they need; QUERN_ISA masks them.
 *
 * Thread: any.
 */
#ifndef QN_BASE_CPU_H
#define QN_BASE_CPU_H
#include "base/status.h"

enum {
    QN_CPU_AVX2 = 1u << 0,
    QN_CPU_FMA = 1u << 1,
    QN_CPU_F16C = 1u << 2,
    QN_CPU_AVX512F = 1u << 3,
    QN_CPU_AVX512BW = 1u << 4,
    QN_CPU_AVX512VL = 1u << 5,
    QN_CPU_AVX512VNNI = 1u << 6,
    QN_CPU_AVX512BF16 = 1u << 7,
    QN_CPU_AVX512FP16 = 1u << 8,
    QN_CPU_AVX_VNNI = 1u << 9, /* dpbusd on ymm without AVX-512 */
    QN_CPU_AVX512DQ = 1u << 10,
    QN_CPU_NEON = 1u << 16,
    QN_CPU_DOTPROD = 1u << 17, /* sdot, udot */
    QN_CPU_I8MM = 1u << 18,    /* usdot, smmla */
    QN_CPU_FP16 = 1u << 19,    /* arithmetic on halves */
    QN_CPU_BF16 = 1u << 20,    /* bfdot, bfmmla */
    QN_CPU_NONE = 1u << 30     /* no processor's: a mask that allows nothing and is not 0 */
};

/* The bits of this machine. Asks the processor on each call (about a microsecond): keep the answer. */
uint32_t qn_cpu_features(void);
/* "generic" or "ref": QN_CPU_NONE; "avx2": AVX2 FMA F16C; "avx2_vnni": AVX_VNNI too; "avx512_base": AVX2 and
 * AVX-512 F BW VL DQ; "avx512": all of x86; "neon": what every aarch64 has; "neon_dot": DOTPROD too;
 * "neon_i8mm": all of ARM; "auto", "" or NULL: all. The mask says what is allowed, not what is there.
 * Errors: INVAL. */
qn_code qn_cpu_parse_isa(uint32_t *out, const char *name, qn_err *err);
/* Physical cores that this process may keep busy: its affinity mask, hardware threads of one core
 * counted once, then the cgroup's quota rounded up. At least 1. */
unsigned qn_cpu_cores(void);
/* Hardware threads in the affinity mask, quota or not. At least 1. */
unsigned qn_cpu_threads(void);

#endif
