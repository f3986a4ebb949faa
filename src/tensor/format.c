/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - the table of weight formats and the front of the encoders. */
#include "tensor/format.h"

#include <string.h>

#include "base/alloc.h"
#include "tensor/format_int.h"

/* An affine group of `block` codes fills `bytes` bytes; for the others the figure means nothing. */
#define CODE_BITS(block, bytes, planes) ((planes) == 3 ? (bytes)*8 / (block) : 0)

static const qn_format formats[QN_FMT_COUNT] = {
#define X(id, fname, b, y, p, o)  \
    {.name = fname,               \
     .block = b,                  \
     .bytes = y,                  \
     .planes = p,                 \
     .bits = CODE_BITS(b, y, p),  \
     .order = QN_ORDER_##o,       \
     .unpack = QN_UNPACK_##p(id), \
     .forward = true,             \
     .transposed = true},
#include "tensor/formats.def"
#undef X
};

const qn_format *qn_format_get(qn_fmt fmt)
{
    QN_ASSERT((unsigned)fmt < QN_FMT_COUNT);
    return &formats[fmt];
}

qn_fmt qn_format_find(const char *name)
{
    for (size_t i = 0; name && i < QN_FMT_COUNT; i++)
        if (strcmp(formats[i].name, name) == 0) return (qn_fmt)i;
    return QN_FMT_COUNT;
}

qn_fmt qn_format_affine(uint32_t bits, uint32_t group)
{
    for (size_t i = 0; i < QN_FMT_COUNT; i++)
        if (formats[i].planes == 3 && formats[i].bits == bits && formats[i].block == group)
            return (qn_fmt)i;
    return QN_FMT_COUNT;
}

bool qn_format_row_bytes(size_t *out, qn_fmt fmt, size_t cols)
{
    const qn_format *f = qn_format_get(fmt);
    return cols % f->block == 0 && qn_mul_size(out, cols / f->block, f->bytes);
}

static void pack_16(uint8_t *out, const float *in, size_t n, uint16_t (*narrow)(float))
{
    for (size_t i = 0; i < n; i++) store_u16(out + 2 * i, narrow(in[i]));
}

qn_code qn_format_pack(void *out, float *scales, float *biases, qn_fmt fmt, const float *in,
                       size_t n, qn_err *err)
{
    const qn_format *f = qn_format_get(fmt);
    bool ok = true;
    if (n % f->block != 0)
        return qn_fail(err, QN_E_INVAL, "%s: %zu weights, expected a multiple of %u", f->name, n,
                       (unsigned)f->block);
    if (f->planes == 3) {
        if (!scales || !biases)
            return qn_fail(err, QN_E_INVAL, "%s: no room for scales and biases", f->name);
        qn_pack_affine(out, scales, biases, f->bits, f->block, in, n);
        return QN_OK;
    }
    switch (fmt) {
    case QN_FMT_F32:
        memcpy(out, in, n * sizeof *in);
        break;
    case QN_FMT_F16:
        pack_16(out, in, n, qn_f32_to_f16);
        break;
    case QN_FMT_BF16:
        pack_16(out, in, n, qn_f32_to_bf16);
        break;
    case QN_FMT_Q4_0:
        ok = qn_pack_q4_0(out, in, n);
        break;
    case QN_FMT_Q4_1:
        ok = qn_pack_q4_1(out, in, n);
        break;
    case QN_FMT_Q5_0:
        ok = qn_pack_q5_0(out, in, n);
        break;
    case QN_FMT_Q5_1:
        ok = qn_pack_q5_1(out, in, n);
        break;
    case QN_FMT_Q8_0:
        ok = qn_pack_q8_0(out, in, n);
        break;
    case QN_FMT_Q2_K:
        ok = qn_pack_q2_k(out, in, n);
        break;
    case QN_FMT_Q3_K:
        ok = qn_pack_q3_k(out, in, n);
        break;
    case QN_FMT_Q4_K:
        ok = qn_pack_q4_k(out, in, n);
        break;
    case QN_FMT_Q5_K:
        ok = qn_pack_q5_k(out, in, n);
        break;
    case QN_FMT_Q6_K:
        ok = qn_pack_q6_k(out, in, n);
        break;
    default:
        return qn_fail(err, QN_E_UNSUPPORTED, "%s: no encoder", f->name);
    }
    if (!ok)
        return qn_fail(err, QN_E_INVAL, "%s: a weight is not finite or its scale is beyond f16",
                       f->name);
    return QN_OK;
}
