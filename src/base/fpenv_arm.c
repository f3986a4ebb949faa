/* SPDX-License-Identifier: Apache-2.0 */
/* fpenv_arm.c - FPCR: bits 8-15 trap enables, 19 FZ16, 22-23 rounding, 24 FZ, 25 default NaN, 26
 * alternative halves. Default NaN must be off too: payloads would differ from x86. */
#include "base/fpenv.h"

#define FPCR_NOT_PLAIN ((uint64_t)0x7C8FF00)

static uint64_t get(void)
{
    uint64_t v = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
}

static void set(uint64_t v) { __asm__ volatile("msr fpcr, %0" ::"r"(v)); }

qn_fpenv qn_fpenv_get(void) { return (qn_fpenv){get()}; }

qn_fpenv qn_fpenv_set_plain(void)
{
    const uint64_t old = get();
    set(old & ~FPCR_NOT_PLAIN);
    return (qn_fpenv){old};
}

void qn_fpenv_restore(qn_fpenv env) { set(env.control); }
bool qn_fpenv_is_plain(void) { return (get() & FPCR_NOT_PLAIN) == 0; }
