/* SPDX-License-Identifier: Apache-2.0 */
/* kern_int.h - what the variants and the selection share: tables, and sizes of scratch.
 * Static inline only: files built for an instruction set include it. */
#ifndef QN_KERN_KERN_INT_H
#define QN_KERN_KERN_INT_H
#include "kern/kern.h"

extern const qn_kern_table qn_kern_ref, qn_kern_generic;
extern const qn_kern_table qn_kern_avx2, qn_kern_avx2_vnni, qn_kern_avx512_base, qn_kern_avx512;
extern const qn_kern_table qn_kern_neon, qn_kern_neon_dot, qn_kern_neon_i8mm;

/* Outputs of a product whose weights are widened at once: half a megabyte, so that they stay in the
 * second-level cache while all rows pass, but at least one tile. A multiple of 4. */
enum { QN_PANEL_BYTES = 512 * 1024, QN_PANEL_MAX = 64, QN_PANEL_MIN = 8 };
static inline size_t qn_linear_panel(uint32_t cols)
{
    const size_t padded = ((size_t)cols + 15) / 16 * 16, fit = QN_PANEL_BYTES / (padded * 4);
    return fit > QN_PANEL_MAX ? QN_PANEL_MAX : fit < QN_PANEL_MIN ? QN_PANEL_MIN : fit / 4 * 4;
}

#endif
