/* SPDX-License-Identifier: Apache-2.0 */
/* fpenv_none.c - the rounding mode through the C library; other switches are not known here. */
#include <fenv.h>

#include "base/fpenv.h"

qn_fpenv qn_fpenv_get(void) { return (qn_fpenv){(uint64_t)fegetround()}; }

qn_fpenv qn_fpenv_set_plain(void)
{
    const qn_fpenv old = qn_fpenv_get();
    (void)fesetround(FE_TONEAREST);
    return old;
}

void qn_fpenv_restore(qn_fpenv env) { (void)fesetround((int)env.control); }
bool qn_fpenv_is_plain(void) { return fegetround() == FE_TONEAREST; }
