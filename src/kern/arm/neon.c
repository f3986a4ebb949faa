/* SPDX-License-Identifier: Apache-2.0 */
/* neon.c - every template compiled for NEON as every aarch64 has it; the bits are those of generic.c. */
#include "kern/simd/vec_neon.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_neon = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
