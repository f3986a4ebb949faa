/* SPDX-License-Identifier: Apache-2.0 */
/* avx2_vnni.c - integer products with AVX-VNNI, beside avx2.c; the bits are those of generic.c. */
#include "kern/simd/vec_avx2.h"

#include "kern/tmpl/products.inc"

const qn_kern_table qn_kern_avx2_vnni = {.linear_i8 = linear_i8, .linear_i16 = linear_i16};
