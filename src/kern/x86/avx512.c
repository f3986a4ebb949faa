/* SPDX-License-Identifier: Apache-2.0 */
/* avx512.c - every template compiled for AVX-512; the bits are those of generic.c. */
#include "kern/simd/vec_avx512.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_avx512 = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
