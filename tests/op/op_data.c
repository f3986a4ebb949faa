/* SPDX-License-Identifier: Apache-2.0 */
/* op_data.c - memory, random data and calls, for test cases and benchmarks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "isa.h"
#include "kern/kern_int.h"
#include "op.h"
#include "tensor/panel.h"

static void *blocks[4096];
static size_t n_blocks;

void *op_keep(size_t n)
{
    void *p = NULL;
    if (n_blocks == QT_LEN(blocks) || posix_memalign(&p, 64, n ? n : 1) != 0) abort();
    blocks[n_blocks++] = p;
    return p;
}

void op_end(void)
{
    while (n_blocks) free(blocks[--n_blocks]);
}

void *op_bytes(size_t n)
{
    uint8_t *p = op_keep(n);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(qt_rand() >> 24);
    return p;
}

float *op_rand(size_t n)
{
    float *p = op_keep(n * sizeof *p);
    for (size_t i = 0; i < n; i++) { /* sum of four uniforms: cheap and near enough to normal */
        const uint64_t r = qt_rand();
        const double sum = (double)(r & 0xFFFF) + (double)(r >> 16 & 0xFFFF) +
                           (double)(r >> 32 & 0xFFFF) + (double)(r >> 48);
        p[i] = (float)((sum / 65536.0 - 2.0) * 1.7320508);
    }
    return p;
}

float *op_fill(size_t n, float v)
{
    float *p = op_keep(n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = v;
    return p;
}

uint32_t *op_u32(size_t n, uint32_t below)
{
    uint32_t *p = op_keep(n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = (uint32_t)(qt_rand() % below);
    return p;
}

/* Random halves in +-[2^-7, 2^-3), so that no block is a NaN and products stay small. */
static void put_half(uint8_t *p)
{
    const uint32_t r = (uint32_t)qt_rand();
    const uint16_t h = (uint16_t)((r & 0x8000u) | (8u + (r >> 16 & 3u)) << 10 | (r & 0x3FFu));
    memcpy(p, &h, sizeof h);
}

static void fix_scales(uint8_t *b, qn_fmt fmt)
{
    switch (fmt) {
    case QN_FMT_Q4_1:
    case QN_FMT_Q5_1:
        put_half(b + 2); /* fall through */
    case QN_FMT_Q4_0:
    case QN_FMT_Q5_0:
    case QN_FMT_Q8_0:
        put_half(b);
        break;
    case QN_FMT_Q2_K:
        put_half(b + 80), put_half(b + 82);
        break;
    case QN_FMT_Q3_K:
        put_half(b + 108);
        break;
    case QN_FMT_Q4_K:
    case QN_FMT_Q5_K:
        put_half(b), put_half(b + 2);
        break;
    case QN_FMT_Q6_K:
        put_half(b + 208);
        break;
    default:
        break;
    }
}

qn_matrix op_matrix(qn_fmt fmt, uint32_t rows, uint32_t cols)
{
    const qn_format *f = qn_format_get(fmt);
    qn_matrix w = {.fmt = fmt, .rows = rows, .cols = cols};
    const size_t n = (size_t)rows * cols, blocks_row = cols / f->block;
    const size_t used = blocks_row * f->bytes;
    w.ld_bytes = used + (rows > 1 ? 4 * (rows % 3) : 0); /* padded rows now and then */
    uint8_t *p = op_bytes(w.ld_bytes * rows);
    w.data = p;
    if (fmt == QN_FMT_F32 || fmt == QN_FMT_F16 || fmt == QN_FMT_BF16) {
        const float *x = op_rand(n);
        for (size_t i = 0; i < n; i++) {
            uint8_t *at = p + i / cols * w.ld_bytes + i % cols * f->bytes;
            const uint16_t h = fmt == QN_FMT_F16 ? qn_f32_to_f16(x[i]) : qn_f32_to_bf16(x[i]);
            memcpy(at, fmt == QN_FMT_F32 ? (const void *)&x[i] : (const void *)&h, f->bytes);
        }
        return w;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t b = 0; b < blocks_row; b++) fix_scales(p + r * w.ld_bytes + b * f->bytes, fmt);
    if (f->planes != 3) return w;
    static const qn_fmt kinds[3] = {QN_FMT_F32, QN_FMT_F16, QN_FMT_BF16};
    w.scale_fmt = kinds[(rows + cols / f->block) % 3];
    w.ld_scale = blocks_row + rows % 2;
    const size_t bytes = qn_format_get(w.scale_fmt)->bytes;
    uint8_t *plane[2];
    for (int i = 0; i < 2; i++) {
        plane[i] = op_bytes(rows * w.ld_scale * bytes);
        for (size_t k = 0; k < rows * w.ld_scale; k++) {
            const float v = (float)((double)(qt_rand() >> 40) * 0x1p-24 - 0.5) * 0.1f;
            const uint16_t h = w.scale_fmt == QN_FMT_F16 ? qn_f32_to_f16(v) : qn_f32_to_bf16(v);
            memcpy(plane[i] + k * bytes, bytes == 4 ? (const void *)&v : (const void *)&h, bytes);
        }
    }
    w.scales = plane[0];
    w.biases = plane[1];
    return w;
}

bool op_panels(qn_matrix *w)
{
    qn_panel_layout l;
    if (!qn_panel_layout_of(&l, w)) return false;
    uint8_t *to = op_bytes(l.bytes * l.panels);
    qn_panel_pack(to, &l, w, 0, l.panels);
    w->panels = to;
    return true;
}

uint8_t *op_q_rows(const qn_matrix *w, qn_q_kind kind, const float *x, uint32_t n)
{
    const qn_kern_table generic = qn_kern_select(0);
    const size_t ld = qn_q_row_bytes(w->cols, kind);
    uint8_t *q = op_bytes(n * ld);
    const qn_quant_rows_args a = {q, ld, x, w->cols, &n, w->cols, kind};
    generic.quant_rows(&a, (qn_span){0, n}, NULL);
    return q;
}

size_t op_edges(uint32_t *out, size_t room, uint32_t most)
{
    static const uint32_t at[] = {1, 2, 3, 4, 8, 16, 32, 48, 64, 80, 96, 128, 256, 384, 512, 1024};
    size_t n = 0;
    for (size_t i = 0; i < QT_LEN(at); i++)
        for (uint32_t v = at[i] - 1; v <= at[i] + 1; v++)
            if (v > 0 && v <= most && n < room && (n == 0 || v > out[n - 1])) out[n++] = v;
    return n;
}

/* -- running -------------------------------------------------------------------------------------- */

qn_span op_all(qn_kern_id id, const void *args) { return (qn_span){0, qn_kern_units(id, args)}; }

void op_run(const qn_kern_table *k, qn_kern_id id, const void *args, qn_span units)
{
    enum { GUARD = 64 };
    const size_t n = qn_kern_scratch(id, args);
    uint8_t *p = NULL;
    if (posix_memalign((void **)(void *)&p, 64, n + GUARD) != 0) abort();
    memset(p, 0xA5, n + GUARD); /* scratch holds nothing useful: as floats, a small negative */
    qn_kern_call(k, id, args, units, p);
    for (size_t i = n; i < n + GUARD; i++)
        if (p[i] != 0xA5) {
            fprintf(stderr, "%s writes past its scratch of %zu bytes\n", qn_kern_name(id), n);
            abort();
        }
    free(p);
}

bool op_variant(qt *t, qn_kern_table *out, const char *name)
{
    const uint32_t there = qn_cpu_features() & isa_allowed();
    for (size_t i = 0; i < qn_kern_n_variants; i++) {
        const qn_kern_variant *v = &qn_kern_variants[i];
        if (strcmp(v->name, name) != 0) continue;
        if ((v->needs & there) != v->needs) break;
        *out = i == 0 ? *v->table : qn_kern_select(v->needs);
        return true;
    }
    qt_skip(t, name);
    return false;
}
