/* SPDX-License-Identifier: Apache-2.0 */
/* fpenv.h - the floating-point environment of our arithmetic (rule R8): round to nearest, keep
 * denormals (no FTZ, no DAZ), exceptions masked. A host program or a library may have changed it, so
 * every lane sets it for itself.
 *
 * Thread: acts on the calling thread only.
 */
#ifndef QN_BASE_FPENV_H
#define QN_BASE_FPENV_H
#include "base/status.h"

typedef struct qn_fpenv {
    uint64_t control; /* x86: MXCSR, x87 control word << 32; ARM: FPCR */
} qn_fpenv;

qn_fpenv qn_fpenv_get(void);
/* Returns what was set before, for restore. */
qn_fpenv qn_fpenv_set_plain(void);
void qn_fpenv_restore(qn_fpenv env);
/* True if this thread rounds to nearest and keeps denormals. */
bool qn_fpenv_is_plain(void);

#endif
