/* SPDX-License-Identifier: Apache-2.0 */
/* neon_dot.c - every template compiled for NEON with dot products of bytes (dotprod); the bits are those of generic.c. */
#include "kern/simd/vec_neon.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_neon_dot = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
