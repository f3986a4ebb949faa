/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - weight formats as data, and the matrix that every product reads.
 *
 * A format is a record: name, block, bytes, planes, order class, and the scalar reference that
 * defines what its bytes mean. Kernels may unpack faster, never differently: the f32 value of a
 * weight is defined here to the last bit, so every ISA and every layout sees the same weights.
 *
 *   block formats  w = d * q (exact in f32), or fmaf(d, q, m) where there is an offset m
 *   K formats      w = fmaf(d * sc, q, -(dmin * m)); without offset w = (d * sc) * q
 *   affine         w = fmaf(scale, q, bias), scale and bias widened from their own type
 *
 * Source: GGUF block layouts as published with the format; MLX affine layout, rows as a
 * little-endian bit stream of b-bit codes, groups along the input axis.
 *
 * Thread: any; everything here is constant or pure.
 */
#ifndef QN_TENSOR_FORMAT_H
#define QN_TENSOR_FORMAT_H
#include "base/status.h"

typedef enum qn_fmt {
#define X(id, name, block, bytes, planes, order) QN_FMT_##id,
#include "tensor/formats.def"
#undef X
    QN_FMT_COUNT
} qn_fmt;

typedef enum qn_order { /* which order of sums rule R1 asks of a product with this format */
                        QN_ORDER_WIDEN, /* f32 lanes: column mod 16, ascending FMA, fixed tree */
                        QN_ORDER_BLOCK32 /* integer rows: exact sum per 32 or 16 columns, one f32 FMA each, ascending */
} qn_order;

/* A weight matrix [rows, cols]: `rows` outputs, `cols` inputs (K), row-major, borrowed from a
 * mapped file or an image. A row starts every `ld_bytes` bytes of `data`. Affine formats have
 * `scales` and `biases` [rows, cols / group] of type `scale_fmt` (F32, F16 or BF16), rows
 * `ld_scale` ELEMENTS apart. Zeroed for all else. A vector is a matrix with rows = 1. */
typedef struct qn_matrix {
    qn_fmt fmt, scale_fmt;
    uint32_t rows, cols;
    size_t ld_bytes, ld_scale;
    const void *data, *scales, *biases;
    const uint8_t *panels; /* the same weights in the order of tensor/panel.h, or NULL */
} qn_matrix;

/* Writes columns [begin, begin + n) of row `row` as f32. begin and n are multiples of the block. */
typedef void qn_unpack_fn(float *out, const qn_matrix *w, uint32_t row, uint32_t begin, uint32_t n);

typedef struct qn_format {
    const char *name;
    uint16_t block, bytes, planes, bits; /* bits: of one affine code; 0 for the others */
    qn_order order;
    qn_unpack_fn *unpack; /* the scalar reference; never NULL */
    /* Which products a layout of this format supplies: forward x * W^T and transposed y * W. The
     * kernels look here before they promise a backward pass. */
    bool forward, transposed;
} qn_format;

/* The record of a format; fmt < QN_FMT_COUNT. */
const qn_format *qn_format_get(qn_fmt fmt);
/* By its name as in formats.def, or QN_FMT_COUNT. */
qn_fmt qn_format_find(const char *name);
/* The affine format with these parameters, or QN_FMT_COUNT. */
qn_fmt qn_format_affine(uint32_t bits, uint32_t group);
/* Main-plane bytes of `cols` weights; false when cols is no multiple of the block or overflows. */
QN_NODISCARD bool qn_format_row_bytes(size_t *out, qn_fmt fmt, size_t cols);

/* IEEE half and bfloat16, to f32 (exact) and back (round to nearest even; NaN stays NaN). */
float qn_f16_to_f32(uint16_t h);
uint16_t qn_f32_to_f16(float f);
float qn_bf16_to_f32(uint16_t h);
uint16_t qn_f32_to_bf16(float f);

/* Encode n f32 values (a multiple of the block) into format `fmt`'s main plane, and into scales and
 * biases (f32, n / group each) for affine. For tests, conversion and KV. UNSUPPORTED for formats
 * that have no encoder yet. */
qn_code qn_format_pack(void *out, float *scales, float *biases, qn_fmt fmt, const float *in,
                       size_t n, qn_err *err);

#endif
