/* SPDX-License-Identifier: Apache-2.0 */
/* avx512.c - integer products with AVX-512 VNNI, beside avx512_base.c; the bits are those of generic.c. */
#include "kern/simd/vec_avx512.h"

#include "kern/tmpl/products.inc"

const qn_kern_table qn_kern_avx512 = {.linear_i8 = linear_i8, .linear_i16 = linear_i16};
