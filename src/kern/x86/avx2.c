/* SPDX-License-Identifier: Apache-2.0 */
/* avx2.c - every template compiled for AVX2; the bits are those of generic.c. */
#include "kern/simd/vec_avx2.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_avx2 = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
