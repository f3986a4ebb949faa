/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "qt.h"

static float from_bits(uint32_t bits)
{
    float f = 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* -- halves ------------------------------------------------------------------------------------ */

static void f16_comes_back_for_every_pattern(qt *t)
{
    bool same = true, value = true;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint32_t exp = h >> 10 & 31, man = h & 0x3ff;
        const float f = qn_f16_to_f32((uint16_t)h);
        const double want =
            (h & 0x8000 ? -1.0 : 1.0) * (exp ? ldexp(1024 + man, (int)exp - 25) : ldexp(man, -24));
        if (exp == 31 && man) {
            value = value && isnan(f) && isnan(qn_f16_to_f32(qn_f32_to_f16(f)));
            continue;
        }
        value = value && (exp == 31 ? isinf(f) && (f < 0) == (h >> 15) : (double)f == want);
        same = same && qn_f32_to_f16(f) == h;
    }
    QT_OK(t, value);
    QT_OK(t, same);
}

static void bf16_comes_back_for_every_pattern(qt *t)
{
    bool same = true;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = qn_bf16_to_f32((uint16_t)h);
        same =
            same && (isnan(f) ? isnan(qn_bf16_to_f32(qn_f32_to_bf16(f))) : qn_f32_to_bf16(f) == h);
    }
    QT_OK(t, same);
    QT_OK(t, isnan(qn_bf16_to_f32(qn_f32_to_bf16(from_bits(0x7f800001)))));
    QT_OK(t, isnan(qn_f16_to_f32(qn_f32_to_f16(from_bits(0x7f800001)))));
}

/* Between two neighbours: below, at and above the middle; the middle goes to the even one. */
static void halves_round_to_nearest_even(qt *t)
{
    bool f16 = true, bf16 = true;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const float a = qn_f16_to_f32((uint16_t)h);
        const float b = h == 0x7bff ? 65536.0f : qn_f16_to_f32((uint16_t)(h + 1));
        const float mid = a + (b - a) / 2;
        f16 = f16 && qn_f32_to_f16(nextafterf(mid, a)) == h &&
              qn_f32_to_f16(nextafterf(mid, b)) == h + 1;
        f16 = f16 && qn_f32_to_f16(mid) == h + (h & 1) &&
              qn_f32_to_f16(-mid) == (0x8000 | (h + (h & 1)));
    }
    for (uint32_t h = 0; h < 0x7f80; h++) {
        const uint32_t mid = h << 16 | 0x8000;
        bf16 = bf16 && qn_f32_to_bf16(from_bits(mid - 1)) == h &&
               qn_f32_to_bf16(from_bits(mid + 1)) == h + 1;
        bf16 = bf16 && qn_f32_to_bf16(from_bits(mid)) == h + (h & 1);
    }
    QT_OK(t, f16);
    QT_OK(t, bf16);
    QT_EQ(t, qn_f32_to_f16(1e30f), 0x7c00);
    QT_EQ(t, qn_f32_to_f16(-INFINITY), 0xfc00);
    QT_EQ(t, qn_f32_to_f16(1e-30f), 0);
}

/* -- the table --------------------------------------------------------------------------------- */

static void records_are_whole_and_found_by_name(qt *t)
{
    for (int i = 0; i < QN_FMT_COUNT; i++) {
        const qn_format *f = qn_format_get((qn_fmt)i);
        QT_OKF(t, f->name && f->block && f->bytes && f->unpack, "record %d", i);
        QT_OK(t, f->forward && f->transposed);
        QT_EQ(t, qn_format_find(f->name), i);
        QT_EQ(t, f->planes == 3, f->bits != 0);
        if (f->planes == 3) QT_EQ(t, qn_format_affine(f->bits, f->block), i);
    }
    QT_EQ(t, qn_format_find("Q9_9"), QN_FMT_COUNT);
    QT_EQ(t, qn_format_find(NULL), QN_FMT_COUNT);
    QT_EQ(t, qn_format_affine(7, 64), QN_FMT_COUNT);
    QT_EQ(t, qn_format_affine(4, 16), QN_FMT_COUNT);
    QT_EQ(t, qn_format_affine(0, 1), QN_FMT_COUNT);
}

static void row_bytes_checks_blocks_and_overflow(qt *t)
{
    size_t n = 0;
    QT_OK(t, qn_format_row_bytes(&n, QN_FMT_Q4_K, 512) && n == 288);
    QT_OK(t, qn_format_row_bytes(&n, QN_FMT_A3G64, 128) && n == 48);
    QT_OK(t, qn_format_row_bytes(&n, QN_FMT_F32, 0) && n == 0);
    QT_OK(t, !qn_format_row_bytes(&n, QN_FMT_Q4_0, 33));
    QT_OK(t,
          !qn_format_row_bytes(&n, QN_FMT_Q4_K, 255) && !qn_format_row_bytes(&n, QN_FMT_Q4_K, 257));
    QT_OK(t, !qn_format_row_bytes(&n, QN_FMT_F32, SIZE_MAX / 2));
}

/* -- against the packages that define the formats ---------------------------------------------- */

typedef struct vectors {
    uint8_t bytes[200000];
    size_t n, at;
} vectors;

static vectors *load(qt *t, const char *path)
{
    vectors *v = calloc(1, sizeof *v);
    FILE *f = fopen(path, "rb");
    if (QT_OKF(t, v && f, "%s", path)) v->n = fread(v->bytes, 1, sizeof v->bytes, f);
    if (f) fclose(f);
    return v;
}

static const uint8_t *take(vectors *v, size_t n)
{
    const uint8_t *p = v->bytes + v->at;
    v->at += n;
    return p;
}

static uint32_t take_u32(vectors *v)
{
    uint32_t x = 0;
    memcpy(&x, take(v, 4), 4);
    return x;
}

static const float *take_f32(vectors *v, size_t n)
{
    float *p = calloc(n ? n : 1, sizeof *p);
    if (!p) abort();
    memcpy(p, take(v, n * sizeof *p), n * sizeof *p);
    return p;
}

static qn_matrix row_matrix(qn_fmt fmt, const void *data, uint32_t n)
{
    return (qn_matrix){.fmt = fmt, .rows = 1, .cols = n, .data = data};
}

/* Offsets make our FMA differ from the package's two roundings by an ulp; the others are exact. */
static void check_decoded(qt *t, qn_fmt fmt, const float *got, const float *want, uint32_t n)
{
    const char *offset[] = {"Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"};
    for (size_t i = 0; i < QT_LEN(offset); i++)
        if (fmt == qn_format_find(offset[i])) {
            qt_near(t, got, want, n, 2e-7);
            return;
        }
    qt_same(t, got, want, n);
}

static void gguf_formats_mean_what_the_package_says(qt *t)
{
    vectors *v = load(t, "tests/unit/tensor/data/gguf.bin");
    unsigned seen = 0;
    while (v->at < v->n) {
        char name[17] = "";
        memcpy(name, take(v, 16), 16);
        const uint32_t n = take_u32(v), n_bytes = take_u32(v), encodes = take_u32(v);
        const uint8_t *bytes = take(v, n_bytes);
        const float *want = take_f32(v, n), *in = take_f32(v, n);
        float *got = qt_fill_f32(n, 777);
        uint8_t *packed = malloc(n_bytes);
        const qn_fmt fmt = qn_format_find(name);
        size_t row = 0;
        if (QT_OKF(t,
                   packed && fmt != QN_FMT_COUNT && qn_format_row_bytes(&row, fmt, n) &&
                       row == n_bytes,
                   "%s", name)) {
            const qn_matrix m = row_matrix(fmt, bytes, n);
            qn_format_get(fmt)->unpack(got, &m, 0, 0, n);
            check_decoded(t, fmt, got, want, n);
            if (encodes) {
                QT_EQ(t, qn_format_pack(packed, NULL, NULL, fmt, in, n, NULL), QN_OK);
                QT_OKF(t, memcmp(packed, bytes, n_bytes) == 0, "%s: encoded bytes", name);
            }
            seen |= 1u << fmt;
        }
        qt_release(4, want, in, got, packed);
    }
    QT_EQ(t, v->at, v->n);
    QT_EQ(t, seen, ((1u << (QN_FMT_Q6_K + 1)) - 1) & ~(1u << QN_FMT_F32)); /* each one but F32 */
    free(v);
}

static void affine_formats_mean_what_the_package_says(qt *t)
{
    vectors *v = load(t, "tests/unit/tensor/data/affine.bin");
    const uint32_t rows = take_u32(v), cols = take_u32(v);
    const size_t n = (size_t)rows * cols;
    const float *in = take_f32(v, n);
    unsigned seen = 0;
    for (; v->at < v->n; seen++) {
        const uint32_t bits = take_u32(v), group = take_u32(v), words = take_u32(v);
        const uint8_t *codes = take(v, 4 * (size_t)words);
        const size_t n_groups = n / group;
        const float *scales = take_f32(v, n_groups), *biases = take_f32(v, n_groups);
        const float *want = take_f32(v, n);
        float *got = qt_fill_f32(n, 777), *s = qt_fill_f32(n_groups, 0),
              *b = qt_fill_f32(n_groups, 0);
        const qn_fmt fmt = qn_format_affine(bits, group);
        uint8_t *packed = malloc(4 * (size_t)words);
        if (QT_OKF(t, packed && fmt != QN_FMT_COUNT, "bits %u group %u", bits, group)) {
            const qn_matrix m = {.fmt = fmt,
                                 .scale_fmt = QN_FMT_F32,
                                 .rows = rows,
                                 .cols = cols,
                                 .ld_bytes = 4 * (size_t)words / rows,
                                 .ld_scale = cols / group,
                                 .data = codes,
                                 .scales = scales,
                                 .biases = biases};
            for (uint32_t r = 0; r < rows; r++)
                qn_format_get(fmt)->unpack(got + (size_t)r * cols, &m, r, 0, cols);
            qt_near(t, got, want, n, 2e-7);
            QT_EQ(t, qn_format_pack(packed, s, b, fmt, in, n, NULL), QN_OK);
            QT_OKF(t, memcmp(packed, codes, 4 * (size_t)words) == 0, "%ub g%u codes", bits, group);
            qt_same(t, s, scales, n_groups);
            qt_same(t, b, biases, n_groups);
        }
        qt_release(7, scales, biases, want, got, s, b, packed);
    }
    QT_EQ(t, v->at, v->n);
    QT_EQ(t, seen, 18);
    qt_release(1, in);
    free(v);
}

/* -- what holds for every format --------------------------------------------------------------- */

typedef struct packed { /* rows of one format in memory, with padding behind each row */
    qn_matrix m;
    uint8_t *data;
    float *in, *scales, *biases;
} packed;

static packed pack_rows(qt *t, qn_fmt fmt, uint32_t rows, uint32_t cols)
{
    const qn_format *f = qn_format_get(fmt);
    packed p = {.in = qt_rand_f32((size_t)rows * cols)};
    size_t row = 0;
    QT_OK(t, qn_format_row_bytes(&row, fmt, cols));
    const size_t ld = row + 24, ld_scale = cols / f->block + 3;
    p.data = calloc(rows, ld);
    p.scales = qt_fill_f32(rows * ld_scale, NAN);
    p.biases = qt_fill_f32(rows * ld_scale, NAN);
    p.m = (qn_matrix){.fmt = fmt, .rows = rows, .cols = cols, .ld_bytes = ld, .data = p.data};
    if (f->planes == 3) {
        p.m.scale_fmt = QN_FMT_F32;
        p.m.ld_scale = ld_scale;
        p.m.scales = p.scales;
        p.m.biases = p.biases;
    }
    for (uint32_t r = 0; p.data && r < rows; r++)
        QT_EQ(t,
              qn_format_pack(p.data + r * ld, p.scales + r * ld_scale, p.biases + r * ld_scale, fmt,
                             p.in + (size_t)r * cols, cols, NULL),
              QN_OK);
    return p;
}

static void packed_fini(packed *p) { qt_release(4, p->data, p->in, p->scales, p->biases); }

/* Root mean square of the error over that of the weights, for normal data: about 2^-bits. */
static double allowed_error(qn_fmt fmt)
{
    const qn_format *f = qn_format_get(fmt);
    static const struct {
        qn_fmt fmt;
        double error;
    } table[] = {{QN_FMT_F32, 0},      {QN_FMT_F16, 3e-4},  {QN_FMT_BF16, 2.5e-3},
                 {QN_FMT_Q4_0, 0.1},   {QN_FMT_Q4_1, 0.09}, {QN_FMT_Q5_0, 0.05},
                 {QN_FMT_Q5_1, 0.045}, {QN_FMT_Q8_0, 6e-3}, {QN_FMT_Q2_K, 0.4},
                 {QN_FMT_Q3_K, 0.2},   {QN_FMT_Q4_K, 0.09}, {QN_FMT_Q5_K, 0.045},
                 {QN_FMT_Q6_K, 0.025}};
    for (size_t i = 0; i < QT_LEN(table); i++)
        if (table[i].fmt == fmt) return table[i].error;
    return 1.8 / ((1 << f->bits) - 1);
}

static void encoding_stays_within_the_step(qt *t)
{
    for (int i = 0; i < QN_FMT_COUNT; i++) {
        const uint32_t cols = 1024;
        packed p = pack_rows(t, (qn_fmt)i, 2, cols);
        float *got = qt_fill_f32(cols, 0);
        double error = 0, power = 0;
        for (uint32_t r = 0; r < 2; r++) {
            qn_format_get((qn_fmt)i)->unpack(got, &p.m, r, 0, cols);
            for (uint32_t c = 0; c < cols; c++) {
                const double e = (double)got[c] - (double)p.in[r * cols + c];
                error += e * e;
                power += (double)p.in[r * cols + c] * (double)p.in[r * cols + c];
            }
        }
        QT_OKF(t, sqrt(error / power) <= allowed_error((qn_fmt)i), "%s: %.4g, allowed %.4g",
               qn_format_get((qn_fmt)i)->name, sqrt(error / power), allowed_error((qn_fmt)i));
        qt_release(1, got);
        packed_fini(&p);
    }
}

/* Any aligned piece of a row equals that piece of the whole row, and nothing else is written. */
static void pieces_equal_the_whole_row(qt *t)
{
    for (int i = 0; i < QN_FMT_COUNT; i++) {
        const qn_format *f = qn_format_get((qn_fmt)i);
        const uint32_t block = f->block, cols = 4 * (block > 1 ? block : 5);
        packed p = pack_rows(t, (qn_fmt)i, 3, cols);
        float *whole = qt_fill_f32(cols, 0), *piece = qt_fill_f32(cols + 1, 777);
        f->unpack(whole, &p.m, 2, 0, cols);
        for (uint32_t begin = 0; begin < cols; begin += block)
            for (uint32_t n = 0; begin + n <= cols; n += block) {
                for (uint32_t c = 0; c <= cols; c++) piece[c] = 777;
                f->unpack(piece, &p.m, 2, begin, n);
                qt_same(t, piece, whole + begin, n);
                qt_all(t, piece + n, cols + 1 - n, 777);
            }
        qt_release(2, whole, piece);
        packed_fini(&p);
    }
}

static void unaligned_data_is_read(qt *t)
{
    for (int i = 0; i < QN_FMT_COUNT; i++) {
        const uint32_t cols = 256;
        packed p = pack_rows(t, (qn_fmt)i, 2, cols);
        uint8_t *moved = malloc(2 * p.m.ld_bytes + 1);
        float *a = qt_fill_f32(cols, 0), *b = qt_fill_f32(cols, 1);
        if (QT_OK(t, moved != NULL)) {
            memcpy(moved + 1, p.data, 2 * p.m.ld_bytes);
            qn_matrix m = p.m;
            m.data = moved + 1;
            qn_format_get((qn_fmt)i)->unpack(a, &p.m, 1, 0, cols);
            qn_format_get((qn_fmt)i)->unpack(b, &m, 1, 0, cols);
            qt_same(t, b, a, cols);
        }
        qt_release(3, moved, a, b);
        packed_fini(&p);
    }
}

static void zero_weights_stay_zero(qt *t)
{
    for (int i = 0; i < QN_FMT_COUNT; i++) {
        float *zero = qt_fill_f32(256, 0), *got = qt_fill_f32(256, 1);
        uint8_t bytes[1024];
        float s[8], b[8];
        QT_EQ(t, qn_format_pack(bytes, s, b, (qn_fmt)i, zero, 256, NULL), QN_OK);
        const qn_matrix m = {.fmt = (qn_fmt)i,
                             .scale_fmt = QN_FMT_F32,
                             .rows = 1,
                             .cols = 256,
                             .data = bytes,
                             .scales = s,
                             .biases = b};
        qn_format_get((qn_fmt)i)->unpack(got, &m, 0, 0, 256);
        for (int c = 0; c < 256; c++) QT_OK(t, got[c] == 0);
        qt_release(2, zero, got);
    }
}

static void affine_scales_may_be_halves(qt *t)
{
    packed p = pack_rows(t, QN_FMT_A4G64, 2, 256);
    uint16_t s[2][8], b[2][8];
    float *got = qt_fill_f32(256, 0), *want = qt_fill_f32(256, 0);
    const qn_fmt types[] = {QN_FMT_F16, QN_FMT_BF16};
    for (size_t k = 0; k < 2; k++) {
        float *ws = qt_fill_f32(2 * p.m.ld_scale, 0), *wb = qt_fill_f32(2 * p.m.ld_scale, 0);
        for (size_t r = 0; r < 2; r++)
            for (size_t g = 0; g < 4; g++) {
                const size_t at = r * p.m.ld_scale + g;
                uint16_t (*narrow)(float) = k == 0 ? qn_f32_to_f16 : qn_f32_to_bf16;
                float (*widen)(uint16_t) = k == 0 ? qn_f16_to_f32 : qn_bf16_to_f32;
                s[r][g] = narrow(p.scales[at]);
                b[r][g] = narrow(p.biases[at]);
                ws[at] = widen(s[r][g]);
                wb[at] = widen(b[r][g]);
            }
        qn_matrix full = p.m, half = p.m;
        full.scales = ws;
        full.biases = wb;
        half.scale_fmt = types[k];
        half.ld_scale = 8;
        half.scales = s;
        half.biases = b;
        qn_format_get(QN_FMT_A4G64)->unpack(want, &full, 1, 0, 256);
        qn_format_get(QN_FMT_A4G64)->unpack(got, &half, 1, 0, 256);
        qt_same(t, got, want, 256);
        qt_release(2, ws, wb);
    }
    qt_release(2, got, want);
    packed_fini(&p);
}

static void pack_refuses_what_it_cannot_hold(qt *t)
{
    float x[256] = {0}, s[8], b[8];
    uint8_t bytes[1024];
    qn_err err;
    QT_EQ(t, qn_format_pack(bytes, NULL, NULL, QN_FMT_Q4_0, x, 31, &err), QN_E_INVAL);
    QT_OK(t, strstr(err.msg, "31") != NULL);
    QT_EQ(t, qn_format_pack(bytes, s, NULL, QN_FMT_A4G32, x, 32, &err), QN_E_INVAL);
    QT_EQ(t, qn_format_pack(bytes, s, b, QN_FMT_A4G32, x, 0, &err), QN_OK);
    const qn_fmt scaled[] = {QN_FMT_Q4_0, QN_FMT_Q4_1, QN_FMT_Q5_0, QN_FMT_Q5_1, QN_FMT_Q8_0,
                             QN_FMT_Q2_K, QN_FMT_Q3_K, QN_FMT_Q4_K, QN_FMT_Q5_K, QN_FMT_Q6_K};
    const float bad[] = {1e38f, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < QT_LEN(scaled); i++)
        for (size_t k = 0; k < QT_LEN(bad); k++) {
            x[9] = bad[k];
            QT_EQ(t, qn_format_pack(bytes, NULL, NULL, scaled[i], x, 256, &err), QN_E_INVAL);
            x[9] = 0;
            QT_EQ(t, qn_format_pack(bytes, NULL, NULL, scaled[i], x, 256, &err), QN_OK);
        }
}

QT_MAIN(QT(f16_comes_back_for_every_pattern), QT(bf16_comes_back_for_every_pattern),
        QT(halves_round_to_nearest_even), QT(records_are_whole_and_found_by_name),
        QT(row_bytes_checks_blocks_and_overflow), QT(gguf_formats_mean_what_the_package_says),
        QT(affine_formats_mean_what_the_package_says), QT(encoding_stays_within_the_step),
        QT(pieces_equal_the_whole_row), QT(unaligned_data_is_read), QT(zero_weights_stay_zero),
        QT(affine_scales_may_be_halves), QT(pack_refuses_what_it_cannot_hold))
