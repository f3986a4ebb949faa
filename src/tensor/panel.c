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
    case QN_FMT_Q2_K:
        return 2;
    case QN_FMT_Q3_K:
        return 3;
    case QN_FMT_Q4_K:
        return 4;
    case QN_FMT_Q5_K:
        return 5;
    case QN_FMT_Q6_K:
        return 6;
    default:
        return f->bits; /* affine; 0: values that are no codes */
    }
}

static bool has_offset(const qn_matrix *w, const qn_format *f)
{
    switch (w->fmt) {
    case QN_FMT_Q4_1:
    case QN_FMT_Q5_1:
    case QN_FMT_Q2_K:
    case QN_FMT_Q4_K:
    case QN_FMT_Q5_K:
        return true;
    default:
        return f->planes == 3;
    }
}

static qn_panel_scales scales_of(qn_fmt fmt)
{
    if (fmt == QN_FMT_Q4_K || fmt == QN_FMT_Q5_K) return QN_PANEL_K32;
    return fmt == QN_FMT_Q2_K || fmt == QN_FMT_Q3_K || fmt == QN_FMT_Q6_K ? QN_PANEL_K16
                                                                          : QN_PANEL_PLAIN;
}

/* The next part of a panel, from a multiple of 64 bytes on. */
static size_t part(qn_panel_layout *l, size_t bytes)
{
    const size_t at = l->bytes;
    l->bytes += aligned(bytes);
    return at;
}

bool qn_panel_layout_of(qn_panel_layout *out, const qn_matrix *w)
{
    const qn_format *f = qn_format_get(w->fmt);
    qn_panel_layout l = {
        .bits = stored_bits(w, f), .scales = scales_of(w->fmt), .blocks = w->cols / QN_PANEL_BLOCK};
    if (l.bits == 0 || l.blocks == 0 || w->cols % f->block != 0 || w->rows == 0) return false;
    l.scale_bytes = f->planes == 3 ? qn_format_get(w->scale_fmt)->bytes : 2;
    l.code_bytes = l.bits == 8 ? 512 : l.bits < 4 ? 128 : 256;
    l.high_bytes = l.bits == 6 ? 128 : l.bits % 2 ? 64 : 0;
    l.panels = (w->rows + QN_PANEL_OUTS - 1) / QN_PANEL_OUTS;
    (void)part(&l, (size_t)l.blocks * l.code_bytes);
    if (l.high_bytes) l.high = part(&l, (size_t)l.blocks * l.high_bytes);
    const uint32_t groups = l.scales == QN_PANEL_PLAIN ? l.blocks : l.blocks / 8;
    const size_t scales = (size_t)groups * QN_PANEL_OUTS * l.scale_bytes;
    l.d = part(&l, scales);
    if (has_offset(w, f)) l.m = part(&l, scales);
    if (l.scales != QN_PANEL_PLAIN) {
        const size_t sub = (size_t)l.blocks * (l.scales == QN_PANEL_K16 ? 2 : 1) * QN_PANEL_OUTS;
        l.sub = part(&l, sub);
        if (l.m) l.submin = part(&l, sub);
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

/* Bits `shift` to `shift + 1` of 32 bytes, to bits `to` and above of the codes. */
static void pairs(uint8_t *out, const uint8_t *p, uint32_t shift, uint32_t to)
{
    for (int i = 0; i < 32; i++) out[i] |= (uint8_t)((p[i] >> shift & 3) << to);
}

static void bits_of(uint8_t *out, const uint8_t *p, uint32_t shift, uint32_t to)
{
    for (int i = 0; i < 32; i++) out[i] |= (uint8_t)((p[i] >> shift & 1) << to);
}

/* Columns [e, e + 32) of a K block (layouts: unpack.c). */
static void k_codes(uint8_t *out, const uint8_t *b, qn_fmt fmt, uint32_t e)
{
    const uint32_t two = e % 128 / 32 * 2, four = e % 64 / 32 * 4, quarter = e / 128 * 32;
    memset(out, 0, 32);
    switch (fmt) {
    case QN_FMT_Q2_K:
        pairs(out, b + 16 + quarter, two, 0);
        break;
    case QN_FMT_Q3_K:
        pairs(out, b + 32 + quarter, two, 0);
        bits_of(out, b, e / 32, 2);
        break;
    case QN_FMT_Q4_K:
        for (int i = 0; i < 32; i++) out[i] = b[16 + e / 64 * 32 + (uint32_t)i] >> four & 15;
        break;
    case QN_FMT_Q5_K:
        for (int i = 0; i < 32; i++) out[i] = b[48 + e / 64 * 32 + (uint32_t)i] >> four & 15;
        bits_of(out, b + 16, e / 32, 4);
        break;
    default: /* Q6_K */
        for (int i = 0; i < 32; i++)
            out[i] = b[e / 128 * 64 + e % 64 + (uint32_t)i] >> (e % 128 / 64 * 4) & 15;
        pairs(out, b + 128 + quarter, two, 4);
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
        if (f->planes == 3)
            stream(out, b + (size_t)(k % f->block) / 8 * f->bits, f->bits);
        else
            k_codes(out, b, w->fmt, k % 256);
    }
}

/* -- a panel ----------------------------------------------------------------------------------- */

/* One bit of each code, from bit `bit` on. */
static void put_bits(uint8_t *high, const uint8_t c[32], uint32_t o, uint32_t bit)
{
    for (uint32_t v = 0; v < 8; v++) {
        uint8_t four = 0;
        for (uint32_t i = 0; i < 4; i++) four |= (uint8_t)((c[4 * v + i] >> bit & 1) << i);
        high[8 * v + o / 2] |= (uint8_t)(four << (o % 2 * 4));
    }
}

static void put_pairs(uint8_t *to, const uint8_t c[32], uint32_t o, uint32_t bit)
{
    for (uint32_t v = 0; v < 2; v++)
        for (uint32_t i = 0; i < 4; i++) {
            const uint8_t *from = c + 16 * v + i;
            to[64 * v + 4 * o + i] =
                (uint8_t)((from[0] >> bit & 3) | (from[4] >> bit & 3) << 2 |
                          (from[8] >> bit & 3) << 4 | (from[12] >> bit & 3) << 6);
        }
}

static void put_codes(uint8_t *panel, const qn_panel_layout *l, uint32_t block, uint32_t o,
                      const uint8_t c[32])
{
    uint8_t *codes = panel + (size_t)block * l->code_bytes, *to = codes + 4 * o;
    uint8_t *high = panel + l->high + (size_t)block * l->high_bytes;
    if (l->bits == 8) {
        for (int v = 0; v < 8; v++) memcpy(to + 64 * v, c + 4 * v, 4);
    } else if (l->bits < 4) {
        put_pairs(codes, c, o, 0);
        if (l->bits == 3) put_bits(high, c, o, 2);
    } else {
        for (int v = 0; v < 4; v++)
            for (int i = 0; i < 4; i++)
                to[64 * v + i] = (uint8_t)((c[8 * v + i] & 15) | (c[8 * v + 4 + i] & 15) << 4);
        if (l->bits == 5) put_bits(high, c, o, 4);
        if (l->bits == 6) put_pairs(high, c, o, 4);
    }
}

/* Scales and minimums of a K block of 256 columns (layouts: unpack.c): d and dmin f16, and a byte each of 16
 * or 32 columns. */
typedef struct k_block {
    const uint8_t *d, *dmin;
    int8_t scale[16], min[16];
} k_block;

static void k_6bit(k_block *k, const uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        k->scale[j] = s[j] & 63;
        k->min[j] = s[j + 4] & 63;
        k->scale[j + 4] = (int8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        k->min[j + 4] = (int8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
}

static void k_read(k_block *k, const uint8_t *b, qn_fmt fmt)
{
    switch (fmt) {
    case QN_FMT_Q2_K:
        k->d = b + 80;
        k->dmin = b + 82;
        for (int j = 0; j < 16; j++) {
            k->scale[j] = b[j] & 15;
            k->min[j] = (int8_t)(b[j] >> 4);
        }
        break;
    case QN_FMT_Q3_K:
        k->d = b + 108;
        for (int j = 0; j < 16; j++) {
            const int low = j < 8 ? b[96 + j] & 15 : b[88 + j] >> 4;
            k->scale[j] = (int8_t)((low | (b[104 + j % 4] >> (j / 4 * 2) & 3) << 4) - 32);
        }
        break;
    case QN_FMT_Q6_K:
        k->d = b + 208;
        memcpy(k->scale, b + 192, 16);
        break;
    default: /* Q4_K, Q5_K */
        k->d = b;
        k->dmin = b + 2;
        k_6bit(k, b + 4);
    }
}

static void put_k_scales(uint8_t *panel, const qn_panel_layout *l, const uint8_t *b, qn_fmt fmt,
                         uint32_t super, uint32_t o)
{
    k_block k = {0};
    const size_t at = ((size_t)super * QN_PANEL_OUTS + o) * 2;
    const uint32_t n = l->scales == QN_PANEL_K16 ? 16 : 8;
    k_read(&k, b, fmt);
    memcpy(panel + l->d + at, k.d, 2);
    if (l->m) memcpy(panel + l->m + at, k.dmin, 2);
    for (uint32_t j = 0; j < n; j++) {
        const size_t sub = ((size_t)super * n + j) * QN_PANEL_OUTS + o;
        panel[l->sub + sub] = (uint8_t)k.scale[j];
        if (l->m) panel[l->submin + sub] = (uint8_t)k.min[j];
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
    if (l->scales != QN_PANEL_PLAIN) {
        if (k % 256 == 0) put_k_scales(panel, l, b, w->fmt, k / 256, o);
        return;
    }
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
