/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.h - reading safetensors: one file, or shards with their index; tensors in place.
 *
 *     u64 n | header: n bytes of JSON | data: every tensor, back to back, no holes, no overlap
 *
 * Files are mapped and never copied. The header is a fixed shape of JSON and is read by a scanner of
 * its own that allocates one index entry a tensor; a general document would cost many times the
 * file's size. What the scanner accepts, the JSON library accepts too (fuzzed).
 *
 * Alignment: the format promises none, and MLX writes headers of any length. A tensor whose data is
 * not aligned to its element size is listed, and refused when a matrix of it is asked for, unless
 * the caller takes it as it lies (qn_st_module_anywhere).
 *
 * Source: the safetensors format description published with the reference implementation.
 * Owner:  the handle owns mappings and names; every view is borrowed until close.
 * Thread: immutable once open; any thread may read.
 */
#ifndef QN_FORMAT_SAFETENSORS_H
#define QN_FORMAT_SAFETENSORS_H
#include "base/str.h"
#include "tensor/format.h"

typedef struct qn_st qn_st;

enum {
    QN_ST_MAX_HEADER = 100000000, /* bytes; the reference implementation's ceiling */
    QN_ST_MAX_INDEX = 64 << 20,   /* bytes of model.safetensors.index.json */
    QN_ST_MAX_TENSORS = 1 << 18,  /* all shards together */
    QN_ST_MAX_SHARDS = 4096,
    QN_ST_MAX_DIMS = 8,
};

typedef enum qn_st_dtype {
#define X(name, bits) QN_ST_##name,
#include "format/st_dtypes.def"
#undef X
    QN_ST_DTYPE_COUNT
} qn_st_dtype;

const char *qn_st_dtype_name(qn_st_dtype dtype); /* "BF16" ...; "?" for none */

/* path: a .safetensors file, an index (*.index.json), or a directory that holds model.safetensors or
 * model.safetensors.index.json. Shard names are plain file names inside the index's directory.
 * Errors: NOTFOUND, IO; FORMAT naming file, field, found and expected; LIMIT; NOMEM. */
qn_code qn_st_open(qn_st **out, const char *path, qn_err *err);
/* One file already in memory; data is borrowed until close and aligned to 16. */
qn_code qn_st_open_bytes(qn_st **out, const char *name, const void *data, size_t len, qn_err *err);
void qn_st_close(qn_st *s); /* NULL is fine */

size_t qn_st_n_shards(const qn_st *s);
const char *qn_st_shard_path(const qn_st *s, size_t shard); /* borrowed */
uint64_t qn_st_file_bytes(const qn_st *s);                  /* all shards together */

/* __metadata__ of all shards, in file order; keys of later shards that repeat are left out. */
size_t qn_st_n_meta(const qn_st *s);
void qn_st_meta_at(const qn_st *s, size_t i, qn_str *key, qn_str *value);
bool qn_st_meta(const qn_st *s, const char *key, qn_str *value); /* false when absent */

typedef struct qn_st_tensor { /* values; name and data are views */
    qn_str name;
    qn_st_dtype dtype;
    qn_fmt fmt; /* F32, F16, BF16, else QN_FMT_COUNT: can be listed, not computed with */
    uint32_t shard, n_dims;
    uint64_t dims[QN_ST_MAX_DIMS]; /* dims[n_dims - 1] is contiguous; dims past n_dims are 1 */
    uint64_t offset;               /* of the data in its file, bytes */
    uint64_t bytes, elements;
    const uint8_t *data;
} qn_st_tensor;

size_t qn_st_n_tensors(const qn_st *s);
void qn_st_tensor_at(const qn_st *s, size_t i, qn_st_tensor *out); /* i < n_tensors */
bool qn_st_find(const qn_st *s, const char *name, qn_st_tensor *out);

/* A float tensor as a matrix: the last dim is columns, all others rows, borrowed. Errors: NOTFOUND;
 * UNSUPPORTED for another dtype; FORMAT for an empty or misaligned tensor; LIMIT past 2^32-1. */
qn_code qn_st_matrix(qn_matrix *out, const qn_st *s, const char *name, qn_err *err);

/* The matrix of module `path`: the affine triple <path>.weight (U32), .scales, .biases where
 * <path>.scales exists, else the plain <path>.weight. group and bits are the model's configuration
 * for this module, 0 where it says nothing: what is missing is inferred from the shapes (cols must
 * then be known from `cols`, 0: unknown), and what is given must agree with them. Leading dims
 * (experts) are flattened into rows. Errors: as qn_st_matrix; FORMAT where shapes, types, group or
 * bits disagree; UNSUPPORTED for bits and groups that affine does not have. */
qn_code qn_st_module(qn_matrix *out, const qn_st *s, const char *path, uint32_t bits,
                     uint32_t group, uint32_t cols, qn_err *err);

/* The same for tensors wherever they lie: a plane that is not aligned to its elements is given as it
 * lies, and must be copied before anything computes with it. MLX writes such files. */
qn_code qn_st_matrix_anywhere(qn_matrix *out, const qn_st *s, const char *name, qn_err *err);
qn_code qn_st_module_anywhere(qn_matrix *out, const qn_st *s, const char *path, uint32_t bits,
                              uint32_t group, uint32_t cols, qn_err *err);

#endif
