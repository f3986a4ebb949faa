/* SPDX-License-Identifier: Apache-2.0 */
/* panel.h - weights laid out for products with int8 rows: 16 outputs side by side.
 *
 * A panel holds all columns of 16 outputs. A vector register then has an output a lane and four columns
 * a lane, as the dot products of bytes want it; no sum over lanes is left, and weights stream through the
 * cache in the order in which they are used.
 *
 *     panel:  [codes | high bits | d | m], each part from a multiple of 64 bytes on
 *     codes   of 32 columns, 4 bits: 4 x 64 bytes; byte 4 o + c of vector v holds column 8 v + c of
 *             output o in its low half, and column 8 v + 4 + c in its high half
 *             8 bits: 8 x 64 bytes; byte 4 o + c of vector v holds column 4 v + c of output o
 *     high    5 bits only, of 32 columns: 8 words of 64 bits; bit 4 o + c of word v is the fifth bit of
 *             column 4 v + c of output o
 *     d, m    of 32 columns: 16 scales as the file stores them (16 or 32 bits), 16 offsets likewise
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
enum { QN_PANEL_VERSION = 1 };
enum { QN_PANEL_OUTS = 16, QN_PANEL_BLOCK = 32, QN_PANEL_ALIGN = 64 };

typedef struct qn_panel_layout {
    uint32_t bits;        /* 4, 5 or 8 stored bits a code */
    uint32_t blocks;      /* of 32 columns */
    uint32_t scale_bytes; /* of one scale: 2 or 4 */
    uint32_t code_bytes;  /* of a block's codes */
    size_t high, d, m;    /* where these parts begin in a panel; 0: there is none */
    size_t bytes;         /* of a panel, a multiple of QN_PANEL_ALIGN */
    uint32_t panels;
} qn_panel_layout;

/* false: this format (or this number of columns) has no panels. */
QN_NODISCARD bool qn_panel_layout_of(qn_panel_layout *out, const qn_matrix *w);
/* Writes panels [begin, end) to out + begin * layout.bytes; out is 64-aligned. */
void qn_panel_pack(uint8_t *out, const qn_panel_layout *l, const qn_matrix *w, uint32_t begin,
                   uint32_t end);

#endif
