/* SPDX-License-Identifier: Apache-2.0 */
/* panel.c - what panel.h says, a byte at a time: it runs once, when a model is opened. */
#include "tensor/panel.h"

#include <string.h>

static size_t aligned(size_t n)
{
    return (n + QN_PANEL_ALIGN - 1) / QN_PANEL_ALIGN * QN_PANEL_ALIGN;
}

static uint32_t stored_bits(const qn_matrix *w, const qn_format *f)
{
    switch (w->fmt) {
    case QN_FMT_Q4_0:
    case QN_FMT_Q4_1:
        return 4;
    case QN_FMT_Q5_0:
    case QN_FMT_Q5_1:
        return 5;
    case QN_FMT_Q8_0:
        return 8;
    default:
        return f->planes == 3 && (f->bits == 4 || f->bits == 5 || f->bits == 8) ? f->bits : 0;
    }
}

static bool has_offset(const qn_matrix *w, const qn_format *f)
{
    return f->planes == 3 || w->fmt == QN_FMT_Q4_1 || w->fmt == QN_FMT_Q5_1;
}

bool qn_panel_layout_of(qn_panel_layout *out, const qn_matrix *w)
{
    const qn_format *f = qn_format_get(w->fmt);
    qn_panel_layout l = {.bits = stored_bits(w, f), .blocks = w->cols / QN_PANEL_BLOCK};
    if (l.bits == 0 || l.blocks == 0 || w->cols % f->block != 0 || w->rows == 0) return false;
    l.scale_bytes = f->planes == 3 ? qn_format_get(w->scale_fmt)->bytes : 2;
    l.code_bytes = l.bits == 8 ? 512 : 256;
    l.panels = (w->rows + QN_PANEL_OUTS - 1) / QN_PANEL_OUTS;
    l.bytes = (size_t)l.blocks * l.code_bytes;
    if (l.bits == 5) {
        l.high = l.bytes;
        l.bytes += (size_t)l.blocks * 64;
    }
    const size_t scales = aligned((size_t)l.blocks * QN_PANEL_OUTS * l.scale_bytes);
    l.d = l.bytes;
    l.bytes += scales;
    if (has_offset(w, f)) {
        l.m = l.bytes;
        l.bytes += scales;
    }
    *out = l;
    return true;
}

/* -- codes of 32 columns, unsigned --------------------------------------------------------------- */

static void nibbles(uint8_t *out, const uint8_t *p)
{
    for (int i = 0; i < 16; i++) {
        out[i] = p[i] & 15;
        out[i + 16] = p[i] >> 4;
    }
}

static void fifth_bits(uint8_t *out, const uint8_t *p)
{
    for (int i = 0; i < 32; i++) out[i] |= (uint8_t)((p[i / 8] >> (i % 8) & 1) << 4);
}

/* 32 codes of `bits` bits from a byte edge on, little-endian. */
static void stream(uint8_t *out, const uint8_t *p, uint32_t bits)
{
    uint32_t have = 0, word = 0;
    for (int i = 0; i < 32; i++) {
        if (have < bits) {
            word |= (uint32_t)*p++ << have;
            have += 8;
        }
        out[i] = (uint8_t)(word & ((1u << bits) - 1));
        word >>= bits;
        have -= bits;
    }
}

/* Codes of columns [k, k + 32) of output o. */
static void codes(uint8_t *out, const qn_matrix *w, const qn_format *f, uint32_t o, uint32_t k)
{
    const uint8_t *b =
        (const uint8_t *)w->data + o * w->ld_bytes + (size_t)(k / f->block) * f->bytes;
    switch (w->fmt) {
    case QN_FMT_Q4_0:
        nibbles(out, b + 2);
        break;
    case QN_FMT_Q4_1:
        nibbles(out, b + 4);
        break;
    case QN_FMT_Q5_0:
        nibbles(out, b + 6);
        fifth_bits(out, b + 2);
        break;
    case QN_FMT_Q5_1:
        nibbles(out, b + 8);
        fifth_bits(out, b + 4);
        break;
    case QN_FMT_Q8_0:
        for (int i = 0; i < 32; i++) out[i] = b[2 + i] ^ 128;
        break;
    default:
        stream(out, b + (size_t)(k % f->block) / 8 * f->bits, f->bits);
    }
}

/* -- a panel ----------------------------------------------------------------------------------- */

static void put_codes(uint8_t *panel, const qn_panel_layout *l, uint32_t block, uint32_t o,
                      const uint8_t c[32])
{
    uint8_t *to = panel + (size_t)block * l->code_bytes + 4 * o;
    if (l->bits == 8) {
        for (int v = 0; v < 8; v++) memcpy(to + 64 * v, c + 4 * v, 4);
        return;
    }
    for (int v = 0; v < 4; v++)
        for (int i = 0; i < 4; i++)
            to[64 * v + i] = (uint8_t)((c[8 * v + i] & 15) | c[8 * v + 4 + i] << 4);
    if (l->bits == 4) return;
    uint8_t *high = panel + l->high + (size_t)block * 64;
    for (int v = 0; v < 8; v++) {
        uint8_t four = 0;
        for (int i = 0; i < 4; i++) four |= (uint8_t)((c[4 * v + i] >> 4 & 1) << i);
        high[8u * (uint32_t)v + o / 2] |= (uint8_t)(four << (o % 2 * 4));
    }
}

static void put_scales(uint8_t *panel, const qn_panel_layout *l, const qn_matrix *w,
                       const qn_format *f, uint32_t block, uint32_t row, uint32_t o)
{
    const size_t at = ((size_t)block * QN_PANEL_OUTS + o) * l->scale_bytes;
    const uint32_t k = block * QN_PANEL_BLOCK;
    if (f->planes == 3) {
        const size_t from = (row * w->ld_scale + k / f->block) * l->scale_bytes;
        memcpy(panel + l->d + at, (const uint8_t *)w->scales + from, l->scale_bytes);
        memcpy(panel + l->m + at, (const uint8_t *)w->biases + from, l->scale_bytes);
        return;
    }
    const uint8_t *b =
        (const uint8_t *)w->data + row * w->ld_bytes + (size_t)(k / f->block) * f->bytes;
    memcpy(panel + l->d + at, b, 2);
    if (l->m) memcpy(panel + l->m + at, b + 2, 2);
}

void qn_panel_pack(uint8_t *out, const qn_panel_layout *l, const qn_matrix *w, uint32_t begin,
                   uint32_t end)
{
    const qn_format *f = qn_format_get(w->fmt);
    uint8_t c[32];
    for (uint32_t p = begin; p < end; p++) {
        uint8_t *panel = out + p * l->bytes;
        memset(panel, 0, l->bytes);
        for (uint32_t o = 0; o < QN_PANEL_OUTS; o++) {
            const uint32_t at = p * QN_PANEL_OUTS + o, row = at < w->rows ? at : w->rows - 1;
            for (uint32_t b = 0; b < l->blocks; b++) {
                codes(c, w, f, row, b * QN_PANEL_BLOCK);
                put_codes(panel, l, b, o, c);
                put_scales(panel, l, w, f, b, row, o);
            }
        }
    }
}
