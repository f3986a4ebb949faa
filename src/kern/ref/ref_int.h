/* SPDX-License-Identifier: Apache-2.0 */
/* ref_int.h - the reference kernels, one file a kind, for the table in ref.c. */
#ifndef QN_KERN_REF_INT_H
#define QN_KERN_REF_INT_H
#include "kern/kern_int.h"

#define X(name, tol, unit) \
    void qn_ref_##name(const qn_##name##_args *a, qn_span units, void *scratch);
#include "kern/kern.def"
#undef X

#endif
