/* SPDX-License-Identifier: Apache-2.0 */
/* neon_dot.c - integer products with dot products of bytes, beside neon.c; the bits are those of generic.c. */
#include "kern/simd/vec_neon.h"

#include "kern/tmpl/products.inc"

const qn_kern_table qn_kern_neon_dot = {.linear_i8 = linear_i8, .linear_i16 = linear_i16};
