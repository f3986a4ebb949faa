/* SPDX-License-Identifier: Apache-2.0 */
/* bits_test.c - the bits of products, against those recorded in bits.txt: a hash for each op and format.
 * variants_test.c compares variants on one machine; this compares machines, ARM with x86 above all.
 *
 * A change of bits that is meant raises QN_KERN_ORDER; then, and for a new format, make the record anew:
 *     build/release/bin/test_op_bits --write > tests/op/bits.txt
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op.h"

enum { MAX_LINES = 256, ROWS = 5, OUTS = 21, COLS = 512 };

typedef struct record {
    char line[MAX_LINES][64];
    size_t n;
} record;

/* FNV-1a: short, and the record does not hang on a hash that may change. */
static uint64_t fnv(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001B3u;
    return h;
}

static void put(record *r, const char *op, const char *fmt, uint64_t hash)
{
    if (r->n < MAX_LINES)
        snprintf(r->line[r->n++], sizeof r->line[0], "%s %s %016" PRIx64, op, fmt, hash);
}

static void put_linear(record *r, const qn_kern_table *k, qn_fmt fmt)
{
    const uint32_t n = ROWS;
    const qn_matrix w = op_matrix(fmt, OUTS, COLS);
    float *y = op_fill(ROWS * OUTS, OP_PAD);
    const qn_linear_args a = {.y = y,
                              .ld_y = OUTS,
                              .x = op_rand(ROWS * COLS),
                              .ld_x = COLS,
                              .w = &w,
                              .bias = op_rand(OUTS),
                              .n = &n};
    op_run(k, QN_K_linear, &a, (qn_span){0, OUTS});
    put(r, "linear", qn_format_get(fmt)->name, fnv(y, ROWS * OUTS * sizeof *y));
}

/* Rows by `k` itself, hashed too, so that quantising is part of the record. */
static void put_integer(record *r, const qn_kern_table *k, qn_fmt fmt, bool wide)
{
    const uint32_t n = ROWS;
    qn_matrix w = op_matrix(fmt, OUTS, COLS);
    if (!op_panels(&w)) return;
    const qn_q_kind kind = wide ? QN_W32 : QN_Q32;
    const size_t ld_q = qn_q_row_bytes(COLS, kind);
    uint8_t *q = op_bytes(ROWS * ld_q);
    const qn_quant_rows_args rows = {q, ld_q, op_rand(ROWS * COLS), COLS, &n, COLS, kind};
    op_run(k, QN_K_quant_rows, &rows, (qn_span){0, ROWS});
    float *y = op_fill(ROWS * OUTS, OP_PAD);
    const qn_linear_i8_args a = {
        .y = y, .ld_y = OUTS, .q = q, .ld_q = ld_q, .w = &w, .bias = op_rand(OUTS), .n = &n};
    op_run(k, wide ? QN_K_linear_i16 : QN_K_linear_i8, &a, (qn_span){0, OUTS});
    put(r, wide ? "rows_i16" : "rows_i8", qn_format_get(fmt)->name, fnv(q, ROWS * ld_q));
    put(r, wide ? "linear_i16" : "linear_i8", qn_format_get(fmt)->name,
        fnv(y, ROWS * OUTS * sizeof *y));
}

static void make(record *r, const qn_kern_table *k)
{
    r->n = 0;
    snprintf(r->line[r->n++], sizeof r->line[0], "order %d", (int)QN_KERN_ORDER);
    for (int f = 0; f < QN_FMT_COUNT; f++) {
        qt_seed(1); /* a format's data do not depend on the formats before it */
        put_linear(r, k, (qn_fmt)f);
        put_integer(r, k, (qn_fmt)f, false);
        put_integer(r, k, (qn_fmt)f, true);
        op_end();
    }
}

static bool is_recorded(char all[MAX_LINES][64], size_t n, const char *line)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i], line) == 0) return true;
    return false;
}

static void products_have_the_recorded_bits(qt *t, const qn_kern_table *k)
{
    static record mine, theirs;
    FILE *f = fopen("tests/op/bits.txt", "r");
    if (!QT_OKF(t, f != NULL, "no tests/op/bits.txt")) return;
    theirs.n = 0;
    while (theirs.n < MAX_LINES && fgets(theirs.line[theirs.n], sizeof theirs.line[0], f)) {
        theirs.line[theirs.n][strcspn(theirs.line[theirs.n], "\n")] = '\0';
        theirs.n++;
    }
    fclose(f);
    make(&mine, k);
    QT_EQ(t, mine.n, theirs.n);
    for (size_t i = 0; i < mine.n; i++)
        QT_OKF(t, is_recorded(theirs.line, theirs.n, mine.line[i]), "not in bits.txt: %s",
               mine.line[i]);
}

#define TEST(variant, unused)                                                    \
    static void products_have_the_recorded_bits_on_##variant(qt *t)              \
    {                                                                            \
        qn_kern_table k;                                                         \
        if (op_variant(t, &k, #variant)) products_have_the_recorded_bits(t, &k); \
    }
TEST(generic, )
OP_EACH_FASTER(TEST, )
#define LIST(variant, unused) QT(products_have_the_recorded_bits_on_##variant),

static const qt_case cases[] = {LIST(generic, ) OP_EACH_FASTER(LIST, )};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--write") == 0) {
        static record r;
        const qn_kern_table generic = qn_kern_select(0);
        make(&r, &generic);
        for (size_t i = 0; i < r.n; i++) puts(r.line[i]);
        return 0;
    }
    return qt_run(cases, QT_LEN(cases), argc, argv);
}
