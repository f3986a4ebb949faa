/* SPDX-License-Identifier: Apache-2.0 */
/* fpenv_x86.c - MXCSR: bits 0-5 sticky flags, 6 DAZ, 7-12 masks, 13-14 rounding, 15 FTZ. Our arithmetic
 * is SSE or wider, but the C library's number parser asks the x87 control word for the rounding mode
 * (bits 10-11), so both are set: MXCSR in the low half of `control`, the control word above it. */
#include <xmmintrin.h>

#include "base/fpenv.h"

enum { FLAGS = 0x3F, DAZ = 0x40, MASKS = 0x1F80, ROUNDING = 0x6000, FTZ = 0x8000 };
enum { X87_PLAIN = 0x37F /* as at process start */, X87_ROUNDING = 0xC00 };

static uint16_t x87_get(void)
{
    uint16_t cw = 0;
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    return cw;
}

static void x87_set(uint16_t cw) { __asm__ volatile("fldcw %0" ::"m"(cw)); }

qn_fpenv qn_fpenv_get(void) { return (qn_fpenv){(uint64_t)x87_get() << 32 | _mm_getcsr()}; }

qn_fpenv qn_fpenv_set_plain(void)
{
    const qn_fpenv old = qn_fpenv_get();
    _mm_setcsr(((unsigned)old.control & FLAGS) | MASKS);
    x87_set(X87_PLAIN);
    return old;
}

void qn_fpenv_restore(qn_fpenv env)
{
    _mm_setcsr((unsigned)env.control);
    x87_set((uint16_t)(env.control >> 32));
}

bool qn_fpenv_is_plain(void)
{
    return (_mm_getcsr() & (DAZ | ROUNDING | FTZ)) == 0 && (x87_get() & X87_ROUNDING) == 0;
}
