/* SPDX-License-Identifier: Apache-2.0 */
/* avx2_vnni.c - every template compiled for AVX2 with AVX-VNNI; the bits are those of generic.c. */
#include "kern/simd/vec_avx2.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_avx2_vnni = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
