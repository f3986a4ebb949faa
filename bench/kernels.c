/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - products alone: one thread, one format and size after the other.
 *
 *     kernels [FORMAT [ROWS [COLS [MIB]]]]     all formats; outputs and columns of a matrix; bytes cycled through
 *
 * Several matrices of random bytes are multiplied in turn, so that weights come from memory where MIB says
 * so, with 1 to 128 rows. Best of many calls: GFLOP/s (two a weight and row, whatever a mode does inside) and
 * the GB/s at which weights were read. QUERN_ISA does not count here; --isa NAME before the rest does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "kern/kern.h"
#include "tensor/panel.h"

typedef struct set {
    qn_matrix *w;
    uint8_t *bytes, *panels;
    size_t n, weight_bytes; /* matrices; bytes a product reads */
} set;

static uint32_t seed = 1;
static uint32_t next_bits(void) { return seed = seed * 1664525u + 1013904223u; }

static uint32_t features(const char *isa)
{
    const uint32_t have = qn_cpu_features();
    for (size_t i = 1; isa && i < qn_kern_n_variants; i++)
        if (strcmp(qn_kern_variants[i].name, isa) == 0) return have & qn_kern_variants[i].needs;
    return have;
}

/* Scales stay finite whatever the random bytes say: their top exponent bit is cleared. */
static void fill(uint8_t *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(next_bits() >> 24) & 0xBF;
}

static int make(set *s, qn_fmt fmt, uint32_t rows, uint32_t cols, size_t budget)
{
    size_t row = 0;
    qn_panel_layout l;
    if (!qn_format_row_bytes(&row, fmt, cols) || qn_format_get(fmt)->planes != 1) return 0;
    qn_matrix one = {.fmt = fmt, .rows = rows, .cols = cols, .ld_bytes = row};
    const int panels = qn_panel_layout_of(&l, &one);
    s->weight_bytes = panels ? l.bytes * l.panels : row * rows;
    s->n = budget / s->weight_bytes + 1;
    s->w = qn_calloc(s->n, sizeof *s->w);
    s->bytes = qn_pages_alloc(row * rows);
    s->panels = qn_pages_alloc(s->weight_bytes * s->n);
    if (!s->w || !s->bytes || !s->panels) return 0;
    fill(s->bytes, row * rows);
    one.data = s->bytes;
    for (size_t i = 0; i < s->n; i++) {
        uint8_t *to = s->panels + i * s->weight_bytes;
        s->w[i] = one;
        if (panels && i == 0)
            qn_panel_pack(to, &l, &one, 0, l.panels);
        else
            memcpy(to, i ? s->panels : s->bytes, s->weight_bytes);
        if (panels)
            s->w[i].panels = to;
        else
            s->w[i].data = to;
    }
    return 1;
}

static void drop(set *s, size_t row_bytes)
{
    qn_pages_free(s->panels, s->weight_bytes * s->n);
    qn_pages_free(s->bytes, row_bytes);
    qn_free(s->w);
}

typedef struct call {
    qn_kern_id id;
    const qn_kern_table *table;
    uint32_t n, rows, cols;
    float *x, *y;
    void *q;
    size_t ld_q;
    void *scratch;
} call;

static void product(const call *c, const qn_matrix *w)
{
    const qn_linear_args f = {
        .y = c->y, .ld_y = c->rows, .x = c->x, .ld_x = c->cols, .w = w, .n = &c->n};
    const qn_linear_i8_args q = {
        .y = c->y, .ld_y = c->rows, .q = c->q, .ld_q = c->ld_q, .w = w, .n = &c->n};
    const void *args = c->id == QN_K_linear ? (const void *)&f : (const void *)&q;
    qn_kern_call(c->table, c->id, args, (qn_span){0, c->rows}, c->scratch);
}

static void measure(const set *s, call *c, const char *mode)
{
    const double ops = 2.0 * c->n * c->rows * c->cols;
    double best = 1e30;
    const uint64_t until = qn_clock_ns() + 400000000u;
    for (size_t i = 0; qn_clock_ns() < until;) { /* a run of calls is long against the clock */
        const uint64_t begin = qn_clock_ns();
        size_t calls = 0;
        do product(c, &s->w[i++ % s->n]), calls++;
        while (qn_clock_ns() - begin < 2000000u);
        const double ns = (double)(qn_clock_ns() - begin) / (double)calls;
        if (ns < best) best = ns;
    }
    printf("%-5s %3u rows  %7.1f GFLOP/s  %6.2f GB/s\n", mode, c->n, ops / best,
           (double)s->weight_bytes / best);
}

static void format(qn_fmt fmt, uint32_t rows, uint32_t cols, size_t budget, const qn_kern_table *t)
{
    static const uint32_t counts[] = {1, 2, 4, 8, 12, 16, 128, 512};
    static const qn_q_kind kinds[] = {QN_Q32, QN_W32};
    set s = {0};
    size_t row_bytes = 0;
    enum { MOST = 512 };
    if (!qn_format_row_bytes(&row_bytes, fmt, cols) || !make(&s, fmt, rows, cols, budget)) return;
    call c = {.table = t, .rows = rows, .cols = cols};
    c.x = qn_pages_alloc((size_t)MOST * cols * sizeof *c.x);
    c.y = qn_pages_alloc((size_t)MOST * rows * sizeof *c.y);
    c.q = qn_pages_alloc(MOST * qn_q_row_bytes(cols, QN_W32));
    c.scratch = qn_pages_alloc((size_t)64 << 20);
    for (size_t i = 0; i < (size_t)MOST * cols; i++)
        c.x[i] = (float)(next_bits() >> 8) * 0x1p-24f - 0.5f;
    printf("%s [%u x %u], %zu matrices of %.1f MB\n", qn_format_get(fmt)->name, rows, cols, s.n,
           (double)s.weight_bytes / 1e6);
    for (int mode = 0; mode < (s.w[0].panels ? 3 : 1); mode++)
        for (size_t i = 0; i < QN_LEN(counts); i++) {
            c.n = counts[i];
            c.id = mode == 0 ? QN_K_linear : mode == 1 ? QN_K_linear_i8 : QN_K_linear_i16;
            if (mode) {
                c.ld_q = qn_q_row_bytes(cols, kinds[mode - 1]);
                const qn_quant_rows_args q = {.q = c.q,
                                              .ld_q = c.ld_q,
                                              .x = c.x,
                                              .ld_x = cols,
                                              .n = &c.n,
                                              .cols = cols,
                                              .kind = kinds[mode - 1]};
                qn_kern_call(t, QN_K_quant_rows, &q, (qn_span){0, c.n}, c.scratch);
            }
            measure(&s, &c, mode == 0 ? "f32" : mode == 1 ? "i8" : "i16");
        }
    qn_pages_free(c.x, (size_t)MOST * cols * sizeof *c.x);
    qn_pages_free(c.y, (size_t)MOST * rows * sizeof *c.y);
    qn_pages_free(c.q, MOST * qn_q_row_bytes(cols, QN_W32));
    qn_pages_free(c.scratch, (size_t)64 << 20);
    drop(&s, row_bytes * rows);
}

int main(int argc, char **argv)
{
    const char *isa = NULL;
    if (argc > 2 && strcmp(argv[1], "--isa") == 0) {
        isa = argv[2];
        argv += 2;
        argc -= 2;
    }
    const uint32_t rows = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2048;
    const uint32_t cols = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 2048;
    const size_t mib = argc > 4 ? strtoul(argv[4], NULL, 10) : 400;
    const qn_kern_table t = qn_kern_select(features(isa));
    printf("%s\n", qn_kern_best(features(isa)));
    for (int f = 0; f < QN_FMT_COUNT; f++)
        if (argc < 2 || strcmp(argv[1], qn_format_get((qn_fmt)f)->name) == 0)
            format((qn_fmt)f, rows, cols, mib << 20, &t);
    return 0;
}
