/* SPDX-License-Identifier: Apache-2.0 */
/* generic.c - every template on the plain C vocabulary: runs anywhere, slow, and has the bits that
 * every faster variant must have. */
#include "kern/simd/vec_generic.h"

#include "kern/tmpl/all.inc"

const qn_kern_table qn_kern_generic = {
#define X(name, tol, unit) .name = name,
#include "kern/kern.def"
#undef X
};
