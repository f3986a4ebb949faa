/* SPDX-License-Identifier: Apache-2.0 */
/* st_matrix.c - matrices out of safetensors: plain float tensors and MLX's affine triples.
 *
 *     <path>.weight  U32  [..., out, words]    cols * bits = words * 32
 *     <path>.scales  F    [..., out, groups]   cols = groups * group
 *     <path>.biases  as scales
 */
#include <stdio.h>
#include <string.h>

#include "format/st_int.h"

typedef unsigned long long ull;

static qn_code check_aligned(const qn_st_tensor *t, qn_err *err)
{
    const unsigned size = st_dtype_bits(t->dtype) / 8;
    if ((uintptr_t)t->data % size == 0) return QN_OK;
    return qn_fail(err, QN_E_FORMAT,
                   "tensor '%s': data at byte %llu of its file, expected a multiple of %u",
                   qn_show(t->name).text, (ull)t->offset, size);
}

static uint64_t last_dim(const qn_st_tensor *t)
{
    return t->n_dims > 0 ? t->dims[t->n_dims - 1] : 1;
}

static qn_code find_matrix(qn_matrix *out, const qn_st *s, const char *name, bool anywhere,
                           qn_err *err)
{
    qn_st_tensor t;
    qn_code rc = QN_OK;
    if (!qn_st_find(s, name, &t))
        return qn_fail(err, QN_E_NOTFOUND, "%s: no tensor '%s'",
                       qn_show_path(qn_st_shard_path(s, 0)), name);
    if (t.fmt == QN_FMT_COUNT) {
        rc = qn_fail(err, QN_E_UNSUPPORTED, "tensor '%s' has dtype %s, expected F32, F16 or BF16",
                     name, qn_st_dtype_name(t.dtype));
        goto out;
    }
    if (!anywhere) QN_TRY_OUT(check_aligned(&t, err));
    const uint64_t cols = last_dim(&t);
    rc = qn_plain_matrix(out, t.fmt, cols != 0 ? t.elements / cols : 0, cols, t.data, err);
    if (rc != QN_OK) (void)qn_wrap(err, rc, "tensor '%s'", name);
out:
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", qn_show_path(qn_st_shard_path(s, t.shard)));
}

typedef struct triple {
    qn_st_tensor weight, scales, biases;
} triple;

static bool same_dims(const qn_st_tensor *a, const qn_st_tensor *b, uint32_t n)
{
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, n * sizeof a->dims[0]) == 0;
}

static qn_code check_triple(const triple *t, bool anywhere, qn_err *err)
{
    if (t->weight.dtype != QN_ST_U32)
        return qn_fail(err, QN_E_FORMAT, "weight has dtype %s, expected U32 beside scales",
                       qn_st_dtype_name(t->weight.dtype));
    if (t->scales.fmt == QN_FMT_COUNT)
        return qn_fail(err, QN_E_UNSUPPORTED, "scales have dtype %s, expected F32, F16 or BF16",
                       qn_st_dtype_name(t->scales.dtype));
    if (t->biases.dtype != t->scales.dtype || !same_dims(&t->biases, &t->scales, QN_ST_MAX_DIMS))
        return qn_fail(err, QN_E_FORMAT, "biases (%s) differ from scales (%s) in dtype or shape",
                       qn_st_dtype_name(t->biases.dtype), qn_st_dtype_name(t->scales.dtype));
    if (t->weight.n_dims < 2 || !same_dims(&t->weight, &t->scales, t->weight.n_dims - 1))
        return qn_fail(
            err, QN_E_FORMAT, "weight has %u dims and %llu rows, scales have %u dims and %llu rows",
            t->weight.n_dims, (ull)t->weight.dims[0], t->scales.n_dims, (ull)t->scales.dims[0]);
    if (anywhere) return QN_OK;
    QN_TRY(check_aligned(&t->weight, err));
    QN_TRY(check_aligned(&t->scales, err));
    return check_aligned(&t->biases, err);
}

/* What is not given follows from the shapes; what is given must agree. words, groups > 0. */
static qn_code infer(uint64_t *bits, uint64_t *group, uint64_t *cols, uint64_t words,
                     uint64_t groups, qn_err *err)
{
    const uint64_t row_bits = words * 32, given_bits = *bits, given_cols = *cols;
    if (*group != 0)
        *cols = groups * *group;
    else if (*cols == 0 && *bits != 0)
        *cols = row_bits / *bits;
    if (*cols == 0)
        return qn_fail(err, QN_E_INVAL, "neither group size nor bits nor columns are known");
    *group = *cols / groups;
    *bits = row_bits / *cols;
    if ((given_bits != 0 && given_bits != *bits) || (given_cols != 0 && given_cols != *cols) ||
        *bits * *cols != row_bits || *group * groups != *cols)
        return qn_fail(
            err, QN_E_FORMAT,
            "%llu words and %llu groups a row are no %llu columns of %llu bits in groups "
            "of %llu",
            (ull)words, (ull)groups, (ull)(given_cols != 0 ? given_cols : *cols),
            (ull)(given_bits != 0 ? given_bits : *bits), (ull)*group);
    return QN_OK;
}

static qn_code affine_matrix(qn_matrix *out, const triple *t, uint64_t bits, uint64_t group,
                             uint64_t cols, bool anywhere, qn_err *err)
{
    QN_TRY(check_triple(t, anywhere, err));
    const uint64_t words = last_dim(&t->weight), groups = last_dim(&t->scales);
    if (t->weight.elements == 0 || groups == 0) return qn_fail(err, QN_E_FORMAT, "weight is empty");
    const uint64_t rows = t->weight.elements / words;
    if (rows > UINT32_MAX || words > UINT32_MAX / 16 || groups > UINT32_MAX)
        return qn_fail(err, QN_E_LIMIT,
                       "%llu rows of %llu words, at most 2^32 - 1 columns and rows", (ull)rows,
                       (ull)words);
    QN_TRY(infer(&bits, &group, &cols, words, groups, err));
    const qn_fmt fmt = qn_format_affine((uint32_t)bits, (uint32_t)group);
    if (fmt == QN_FMT_COUNT)
        return qn_fail(err, QN_E_UNSUPPORTED,
                       "%llu bits in groups of %llu, expected 2, 3, 4, 5, 6, 8 in 32, 64, 128",
                       (ull)bits, (ull)group);
    *out = (qn_matrix){
        .fmt = fmt,
        .scale_fmt = t->scales.fmt,
        .rows = (uint32_t)rows,
        .cols = (uint32_t)cols,
        .ld_bytes = (size_t)words * 4,
        .ld_scale = (size_t)groups,
        .data = t->weight.data,
        .scales = t->scales.data,
        .biases = t->biases.data,
    };
    return QN_OK;
}

static qn_code find_module(qn_matrix *out, const qn_st *s, const char *path, uint32_t bits,
                           uint32_t group, uint32_t cols, bool anywhere, qn_err *err)
{
    char weight[1100], scales[1100], biases[1100];
    triple t;
    if (strlen(path) > 1024)
        return qn_fail(err, QN_E_LIMIT, "module path of %zu bytes, at most 1024", strlen(path));
    (void)snprintf(weight, sizeof weight, "%s.weight", path);
    (void)snprintf(scales, sizeof scales, "%s.scales", path);
    (void)snprintf(biases, sizeof biases, "%s.biases", path);
    if (!qn_st_find(s, scales, &t.scales)) return find_matrix(out, s, weight, anywhere, err);
    const char *file = qn_show_path(qn_st_shard_path(s, t.scales.shard));
    if (!qn_st_find(s, weight, &t.weight))
        return qn_fail(err, QN_E_NOTFOUND, "%s: '%s' without its weight", file, scales);
    if (!qn_st_find(s, biases, &t.biases)) {
        if (t.scales.fmt == QN_FMT_COUNT) /* formats that scale without an offset */
            return qn_fail(err, QN_E_UNSUPPORTED, "%s: '%s' has dtype %s and no biases", file,
                           scales, qn_st_dtype_name(t.scales.dtype));
        return qn_fail(err, QN_E_NOTFOUND, "%s: '%s' without its biases", file, scales);
    }
    const qn_code rc = affine_matrix(out, &t, bits, group, cols, anywhere, err);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s: module '%s'", file, path);
}

qn_code qn_st_matrix(qn_matrix *out, const qn_st *s, const char *name, qn_err *err)
{
    return find_matrix(out, s, name, false, err);
}

qn_code qn_st_module(qn_matrix *out, const qn_st *s, const char *path, uint32_t bits,
                     uint32_t group, uint32_t cols, qn_err *err)
{
    return find_module(out, s, path, bits, group, cols, false, err);
}

qn_code qn_st_matrix_anywhere(qn_matrix *out, const qn_st *s, const char *name, qn_err *err)
{
    return find_matrix(out, s, name, true, err);
}

qn_code qn_st_module_anywhere(qn_matrix *out, const qn_st *s, const char *path, uint32_t bits,
                              uint32_t group, uint32_t cols, qn_err *err)
{
    return find_module(out, s, path, bits, group, cols, true, err);
}
