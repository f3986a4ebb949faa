/* SPDX-License-Identifier: Apache-2.0 */
/* panel_test.c - the layout of 16 outputs side by side, read back weight by weight. */
#include "tensor/panel.h"

#include <string.h>

#include "base/alloc.h"
#include "qt.h"

enum { ROWS = 21, COLS = 256 };

/* Code of column k of output o, from a panel. */
static uint32_t code_at(const uint8_t *panels, const qn_panel_layout *l, uint32_t o, uint32_t k)
{
    const uint8_t *p = panels + o / 16 * l->bytes, *b = p + (size_t)(k / 32) * l->code_bytes;
    const uint32_t lane = o % 16, c = k % 32;
    if (l->bits == 8) return b[c / 4 * 64 + lane * 4 + c % 4];
    const uint8_t both = b[c / 8 * 64 + lane * 4 + c % 4];
    uint32_t code = c % 8 < 4 ? both & 15u : (uint32_t)both >> 4;
    if (l->bits == 4) return code;
    const uint8_t *high = p + l->high + (size_t)(k / 32) * 64 + c / 4 * 8;
    const uint32_t bit = lane * 4 + c % 4;
    return code | (high[bit / 8] >> bit % 8 & 1u) << 4;
}

static float half_at(const uint8_t *p, size_t part, uint32_t lane, uint32_t block)
{
    uint16_t h;
    memcpy(&h, p + part + ((size_t)block * 16 + lane) * 2, sizeof h);
    return qn_f16_to_f32(h);
}

/* Every weight, put together from its code and scale, is what the format's own reader says. */
static void every_weight_is_found_again(qt *t)
{
    static const struct {
        qn_fmt fmt;
        int offset;
        bool min;
    } of[] = {{QN_FMT_Q4_0, 8, false},
              {QN_FMT_Q4_1, 0, true},
              {QN_FMT_Q5_0, 16, false},
              {QN_FMT_Q5_1, 0, true},
              {QN_FMT_Q8_0, 128, false}};
    float *x = qn_calloc(ROWS * COLS, sizeof *x);
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = (float)((int)(qt_rand() % 2001) - 1000) / 500;
    for (size_t f = 0; f < QT_LEN(of); f++) {
        size_t row = 0;
        QT_OK(t, qn_format_row_bytes(&row, of[f].fmt, COLS));
        uint8_t *data = qn_calloc(ROWS, row);
        QT_EQ(t, qn_format_pack(data, NULL, NULL, of[f].fmt, x, ROWS * COLS, NULL), QN_OK);
        const qn_matrix w = {
            .fmt = of[f].fmt, .rows = ROWS, .cols = COLS, .ld_bytes = row, .data = data};
        qn_panel_layout l;
        if (!QT_OK(t, qn_panel_layout_of(&l, &w))) return;
        QT_OK(t, l.panels == 2 && l.blocks == 8 && l.bytes % 64 == 0 && (l.m != 0) == of[f].min);
        uint8_t *panels = qn_pages_alloc(l.bytes * l.panels);
        qn_panel_pack(panels, &l, &w, 0, 1); /* in two calls: any cut gives the same */
        qn_panel_pack(panels, &l, &w, 1, 2);
        size_t wrong = 0;
        for (uint32_t o = 0; o < 32; o++) {
            float want[COLS];
            qn_format_get(w.fmt)->unpack(want, &w, o < ROWS ? o : ROWS - 1, 0, COLS);
            for (uint32_t k = 0; k < COLS; k++) {
                const uint8_t *p = panels + o / 16 * l.bytes;
                const float code = (float)((int)code_at(panels, &l, o, k) - of[f].offset);
                float got = half_at(p, l.d, o % 16, k / 32) * code;
                if (of[f].min) got += half_at(p, l.m, o % 16, k / 32);
                const float off = got > want[k] ? got - want[k] : want[k] - got;
                wrong += off > (of[f].min ? 1e-6f : 0.0f);
            }
        }
        QT_OKF(t, wrong == 0, "%s: %zu weights differ", qn_format_get(w.fmt)->name, wrong);
        qn_pages_free(panels, l.bytes * l.panels);
        qn_free(data);
    }
    qn_free(x);
}

static void formats_without_panels_are_told(qt *t)
{
    static const qn_fmt none[] = {QN_FMT_F32,  QN_FMT_F16,  QN_FMT_BF16,
                                  QN_FMT_Q4_K, QN_FMT_Q6_K, QN_FMT_A3G64};
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
