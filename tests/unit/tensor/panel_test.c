/* SPDX-License-Identifier: Apache-2.0 */
/* panel_test.c - the layout of 16 outputs side by side, read back weight by weight. */
#include "tensor/panel.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "op.h"
#include "qt.h"

enum { ROWS = 21, COLS = 512 };

/* Bits of column c of a plane of two bits a code. */
static uint32_t two_at(const uint8_t *plane, uint32_t lane, uint32_t c)
{
    return plane[c / 16 * 64 + lane * 4 + c % 4] >> (c % 16 / 4 * 2) & 3u;
}

/* Code of column k of output o, from a panel. */
static uint32_t code_at(const uint8_t *panel, const qn_panel_layout *l, uint32_t lane, uint32_t k)
{
    const uint8_t *b = panel + (size_t)(k / 32) * l->code_bytes;
    const uint8_t *high = panel + l->high + (size_t)(k / 32) * l->high_bytes;
    const uint32_t c = k % 32, bit = lane * 4 + c % 4;
    const uint32_t top = high[c / 4 * 8 + bit / 8] >> bit % 8 & 1u;
    if (l->bits == 8) return b[c / 4 * 64 + lane * 4 + c % 4];
    if (l->bits == 2) return two_at(b, lane, c);
    if (l->bits == 3) return two_at(b, lane, c) | top << 2;
    const uint8_t both = b[c / 8 * 64 + lane * 4 + c % 4];
    const uint32_t code = c % 8 < 4 ? both & 15u : (uint32_t)both >> 4;
    if (l->bits == 6) return code | two_at(high, lane, c) << 4;
    return l->bits == 5 ? code | top << 4 : code;
}

static float value_at(const uint8_t *part, qn_fmt fmt, size_t i)
{
    uint16_t h;
    float f;
    memcpy(&h, part + i * 2, sizeof h);
    if (fmt == QN_FMT_F16) return qn_f16_to_f32(h);
    if (fmt == QN_FMT_BF16) return qn_bf16_to_f32(h);
    memcpy(&f, part + i * 4, sizeof f);
    return f;
}

/* Scale (or offset) of column k; at, sub: where its parts begin. */
static float scale_at(const uint8_t *p, const qn_panel_layout *l, size_t at, size_t sub, qn_fmt fmt,
                      uint32_t lane, uint32_t k)
{
    if (l->scales == QN_PANEL_PLAIN) return value_at(p + at, fmt, (size_t)k / 32 * 16 + lane);
    const uint32_t each = l->scales == QN_PANEL_K16 ? 16 : 32;
    return value_at(p + at, QN_FMT_F16, (size_t)k / 256 * 16 + lane) *
           (float)(int8_t)p[sub + (size_t)k / each * 16 + lane];
}

static int offset_of(qn_fmt fmt)
{
    return fmt == QN_FMT_Q4_0   ? 8
           : fmt == QN_FMT_Q5_0 ? 16
           : fmt == QN_FMT_Q8_0 ? 128
           : fmt == QN_FMT_Q3_K ? 4
           : fmt == QN_FMT_Q6_K ? 32
                                : 0;
}

static size_t wrong_weights(const uint8_t *panels, const qn_panel_layout *l, const qn_matrix *w)
{
    const qn_fmt fmt = qn_format_get(w->fmt)->planes == 3 ? w->scale_fmt : QN_FMT_F16;
    size_t wrong = 0;
    for (uint32_t o = 0; o < l->panels * 16; o++) {
        float want[COLS];
        const uint8_t *p = panels + o / 16 * l->bytes;
        qn_format_get(w->fmt)->unpack(want, w, o < w->rows ? o : w->rows - 1, 0, COLS);
        for (uint32_t k = 0; k < COLS; k++) {
            const float code = (float)((int)code_at(p, l, o % 16, k) - offset_of(w->fmt));
            const float d = scale_at(p, l, l->d, l->sub, fmt, o % 16, k);
            float m = l->m ? scale_at(p, l, l->m, l->submin, fmt, o % 16, k) : 0;
            if (l->scales != QN_PANEL_PLAIN) m = -m;
            wrong += (l->m ? fmaf(d, code, m) : d * code) != want[k];
        }
    }
    return wrong;
}

/* Every weight, put together from its code and scale, is what the format's own reader says. */
static void every_weight_is_found_again(qt *t)
{
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        qn_panel_layout l;
        if (qn_format_get((qn_fmt)f)->order == QN_ORDER_WIDEN) continue;
        const qn_matrix w = op_matrix((qn_fmt)f, ROWS, COLS);
        if (!QT_OKF(t, qn_panel_layout_of(&l, &w), "%s", qn_format_get(w.fmt)->name)) continue;
        QT_OK(t, l.panels == 2 && l.blocks == COLS / 32 && l.bytes % 64 == 0);
        uint8_t *panels = qn_pages_alloc(l.bytes * l.panels);
        qn_panel_pack(panels, &l, &w, 0, 1); /* in two calls: any cut gives the same */
        qn_panel_pack(panels, &l, &w, 1, 2);
        const size_t wrong = wrong_weights(panels, &l, &w);
        QT_OKF(t, wrong == 0, "%s: %zu weights differ", qn_format_get(w.fmt)->name, wrong);
        qn_pages_free(panels, l.bytes * l.panels);
        op_end();
    }
}

static void formats_without_panels_are_told(qt *t)
{
    static const qn_fmt none[] = {QN_FMT_F32, QN_FMT_F16, QN_FMT_BF16};
    qn_panel_layout l;
    for (size_t i = 0; i < QT_LEN(none); i++) {
        const qn_matrix w = {.fmt = none[i], .scale_fmt = QN_FMT_F16, .rows = 16, .cols = 256};
        QT_OKF(t, !qn_panel_layout_of(&l, &w), "%s", qn_format_get(none[i])->name);
    }
    const qn_matrix ragged = {.fmt = QN_FMT_Q4_0, .rows = 16, .cols = 48};
    const qn_matrix empty = {.fmt = QN_FMT_Q4_0, .rows = 0, .cols = 64};
    QT_OK(t, !qn_panel_layout_of(&l, &ragged) && !qn_panel_layout_of(&l, &empty));
    const qn_matrix wide = {.fmt = QN_FMT_A4G64, .scale_fmt = QN_FMT_F32, .rows = 3, .cols = 128};
    QT_OK(t, qn_panel_layout_of(&l, &wide) && l.scale_bytes == 4 && l.m > l.d);
}

QT_MAIN(QT(every_weight_is_found_again), QT(formats_without_panels_are_told))
