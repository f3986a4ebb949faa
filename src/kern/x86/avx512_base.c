/* SPDX-License-Identifier: Apache-2.0 */
/* avx512_base.c - every template compiled for AVX-512 without VNNI; the bits are those of generic.c. */
#include "kern/simd/vec_avx512.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_avx512_base = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
