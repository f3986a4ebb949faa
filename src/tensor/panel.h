/* SPDX-License-Identifier: Apache-2.0 */
/* panel.h - weights laid out for products with int8 rows: 16 outputs side by side.
 *
 * A panel holds all columns of 16 outputs. A vector register then has an output a lane and four columns
 * a lane, as the dot products of bytes want it; no sum over lanes is left, and weights stream through the
 * cache in the order in which they are used.
 *
 *     panel:  [codes | high bits | d | m | sub-scales | sub-minimums], each part from a multiple of 64 bytes on
 *     codes   of 32 columns, 4 to 6 bits: 4 x 64 bytes; byte 4 o + c of vector v holds column 8 v + c of
 *             output o in its low half, and column 8 v + 4 + c in its high half
 *             8 bits: 8 x 64 bytes; byte 4 o + c of vector v holds column 4 v + c of output o
 *             2, 3 bits: 2 x 64 bytes; bits 2 i of byte 4 o + c of vector v hold column 16 v + 4 i + c
 *     high    of 32 columns. 3, 5 bits: 8 words of 64 bits; bit 4 o + c of word v is the highest bit of
 *             column 4 v + c of output o. 6 bits: 2 x 64 bytes as of 2 bits, the two highest of each code
 *     d, m    plain: of 32 columns 16 scales as the file stores them (16 or 32 bits), 16 offsets likewise;
 *             K formats: of 256 columns 16 scales f16, and those of the minimums
 *     sub-    K formats only: of 32 (K32) or 16 (K16) columns 16 integer scales, and 16 minimums, a byte each;
 *             the scale is then f32(d * sub), the offset -f32(m * minimum)
 *
 * Codes are unsigned (kern/tmpl/codes.inc: a signed one is raised by its offset). A last panel that is not
 * full repeats its last output. Nothing is rounded: a panel gives the bits that the file gives.
 *
 * Thread: any; pure.
 */
#ifndef QN_TENSOR_PANEL_H
#define QN_TENSOR_PANEL_H
#include "tensor/format.h"

/* Raised with any change of what a panel looks like: images of another version are made anew. */
enum { QN_PANEL_VERSION = 2 };
enum { QN_PANEL_OUTS = 16, QN_PANEL_BLOCK = 32, QN_PANEL_ALIGN = 64 };

typedef enum qn_panel_scales { QN_PANEL_PLAIN, QN_PANEL_K32, QN_PANEL_K16 } qn_panel_scales;

typedef struct qn_panel_layout {
    uint32_t bits; /* stored bits a code: 2, 3, 4, 5, 6 or 8 */
    qn_panel_scales scales;
    uint32_t blocks;                 /* of 32 columns */
    uint32_t scale_bytes;            /* of one scale: 2 or 4 */
    uint32_t code_bytes, high_bytes; /* of a block's codes, and of their high bits */
    size_t high, d, m, sub, submin;  /* where these parts begin in a panel; 0: there is none */
    size_t bytes;                    /* of a panel, a multiple of QN_PANEL_ALIGN */
    uint32_t panels;
} qn_panel_layout;

/* false: this format (or this number of columns) has no panels. */
QN_NODISCARD bool qn_panel_layout_of(qn_panel_layout *out, const qn_matrix *w);
/* Writes panels [begin, end) to out + begin * layout.bytes; out is 64-aligned. */
void qn_panel_pack(uint8_t *out, const qn_panel_layout *l, const qn_matrix *w, uint32_t begin,
                   uint32_t end);

#endif
