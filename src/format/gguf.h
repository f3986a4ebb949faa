/* SPDX-License-Identifier: Apache-2.0 */
/* gguf.h - reading GGUF v2 and v3 (little-endian): metadata, tensor directory, tensors in place.
 *
 * The file is mapped; nothing of it is copied. What the handle allocates is an index of at most a few
 * words a key and a tensor, so a hostile file costs no more than its own size and a constant. Every
 * count is checked against the bytes that remain before anything is believed.
 *
 * A model in several files (NAME-00001-of-00003.gguf) opens as one from any of its parts: keys come
 * from the first part, tensors from all.
 *
 * Names and texts are views of the file: bytes as they stand there, with no NUL behind them and no
 * promise of UTF-8.
 *
 * Source: the GGUF specification as published with the format.
 * Owner:  the handle owns the mappings; every view is borrowed until close.
 * Thread: immutable once open; any thread may read.
 */
#ifndef QN_FORMAT_GGUF_H
#define QN_FORMAT_GGUF_H
#include "base/str.h"
#include "tensor/format.h"

typedef struct qn_gguf qn_gguf;

enum {
    QN_GGUF_MAX_KEYS = 1 << 16,
    QN_GGUF_MAX_TENSORS = 1 << 18,
    QN_GGUF_MAX_PARTS = 4096,
    QN_GGUF_MAX_NEST = 4, /* arrays in arrays */
};

/* Errors: NOTFOUND, IO; FORMAT (not GGUF, truncated, a field that lies) naming file, field, found and
 * expected; UNSUPPORTED (version 1, big-endian, an unknown tensor type); LIMIT; NOMEM. */
qn_code qn_gguf_open(qn_gguf **out, const char *path, qn_err *err);
/* One file already in memory; data is borrowed until close and aligned to 16. `name` stands for the
 * file in messages. A part of a split model is UNSUPPORTED: its other parts cannot be found. */
qn_code qn_gguf_open_bytes(qn_gguf **out, const char *name, const void *data, size_t len,
                           qn_err *err);
void qn_gguf_close(qn_gguf *g); /* NULL is fine */

uint32_t qn_gguf_version(const qn_gguf *g);    /* of the first part: 2 or 3 */
size_t qn_gguf_n_parts(const qn_gguf *g);      /* files */
uint64_t qn_gguf_file_bytes(const qn_gguf *g); /* all parts together */
/* A name "STEM-00002-of-00003.gguf" of one part of several: *stem is the length of STEM, *no counts from
 * 1. False for other names, both untouched. */
bool qn_gguf_part_name(size_t *stem, uint32_t *no, qn_str name);
/* The path a part was opened by; borrowed. */
const char *qn_gguf_part_path(const qn_gguf *g, size_t part);

/* -- metadata ---------------------------------------------------------------------------------- */

typedef enum qn_gguf_type { /* numbers of the format */
                            QN_GGUF_U8,
                            QN_GGUF_I8,
                            QN_GGUF_U16,
                            QN_GGUF_I16,
                            QN_GGUF_U32,
                            QN_GGUF_I32,
                            QN_GGUF_F32,
                            QN_GGUF_BOOL,
                            QN_GGUF_STRING,
                            QN_GGUF_ARRAY,
                            QN_GGUF_U64,
                            QN_GGUF_I64,
                            QN_GGUF_F64,
                            QN_GGUF_TYPE_COUNT
} qn_gguf_type;

const char *qn_gguf_type_name(qn_gguf_type type); /* "u8" ... "f64"; "?" for no type */

typedef struct qn_gguf_value { /* a view of an encoded value */
    qn_gguf_type type, item;   /* item: type of the elements where type is ARRAY */
    uint64_t n;                /* elements of an array; 1 for all else */
    const uint8_t *data;       /* the value, or the first element; unaligned */
    size_t bytes;              /* of the value, or of all elements */
} qn_gguf_value;

size_t qn_gguf_n_keys(const qn_gguf *g);
/* The i-th key in file order, i < n_keys. value may be NULL. */
qn_str qn_gguf_key(const qn_gguf *g, size_t i, qn_gguf_value *value);
/* False when absent, *out untouched. */
bool qn_gguf_find(const qn_gguf *g, const char *key, qn_gguf_value *out);

/* Typed reads. Integers come from any integer type when the value fits, f64 from any number. Errors:
 * NOTFOUND when absent, FORMAT for another type or a value out of range; *out is untouched then. The
 * opt form gives `fallback` when absent and is otherwise the same. */
qn_code qn_gguf_get_u32(uint32_t *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_get_u64(uint64_t *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_get_i64(int64_t *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_get_f32(float *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_get_f64(double *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_get_bool(bool *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_get_str(qn_str *out, const qn_gguf *g, const char *key, qn_err *err);
qn_code qn_gguf_opt_u32(uint32_t *out, const qn_gguf *g, const char *key, uint32_t fallback,
                        qn_err *err);
qn_code qn_gguf_opt_i64(int64_t *out, const qn_gguf *g, const char *key, int64_t fallback,
                        qn_err *err);
qn_code qn_gguf_opt_f32(float *out, const qn_gguf *g, const char *key, float fallback, qn_err *err);
qn_code qn_gguf_opt_bool(bool *out, const qn_gguf *g, const char *key, bool fallback, qn_err *err);
qn_code qn_gguf_opt_str(qn_str *out, const qn_gguf *g, const char *key, qn_str fallback,
                        qn_err *err);
/* An array whose elements have type `item` (QN_GGUF_TYPE_COUNT: any). Errors as above. */
qn_code qn_gguf_get_array(qn_gguf_value *out, const qn_gguf *g, const char *key, qn_gguf_type item,
                          qn_err *err);

/* Scalars of a value, or element i of an array of scalars; false where type, range or index forbid
 * it, *out untouched. A scalar has element 0. */
bool qn_gguf_item_i64(int64_t *out, const qn_gguf_value *v, uint64_t i);
bool qn_gguf_item_u64(uint64_t *out, const qn_gguf_value *v, uint64_t i);
bool qn_gguf_item_f64(double *out, const qn_gguf_value *v, uint64_t i);
bool qn_gguf_item_bool(bool *out, const qn_gguf_value *v, uint64_t i);

/* Walk an array of any type, in order; a scalar is walked as one element. */
typedef struct qn_gguf_iter { /* private */
    qn_gguf_type item;
    uint64_t left;
    const uint8_t *at, *end;
} qn_gguf_iter;

qn_gguf_iter qn_gguf_items(const qn_gguf_value *v);
/* The next element as a value; false at the end. */
bool qn_gguf_next(qn_gguf_iter *it, qn_gguf_value *out);
/* The next element of an array of strings; false at the end and for other arrays. */
bool qn_gguf_next_str(qn_gguf_iter *it, qn_str *out);

/* -- tensors ----------------------------------------------------------------------------------- */

typedef struct qn_gguf_tensor { /* values; name and data are views */
    qn_str name;
    uint32_t type;         /* number of the format */
    const char *type_name; /* "Q4_0", "IQ2_XS" ... */
    qn_fmt fmt;            /* QN_FMT_COUNT: can be listed, not computed with */
    uint32_t part, n_dims;
    uint64_t dims[4]; /* dims[0] is contiguous; dims past n_dims are 1 */
    uint64_t offset;  /* of the data in its file, bytes */
    uint64_t bytes, elements;
    const uint8_t *data; /* aligned to 8 at least */
} qn_gguf_tensor;

size_t qn_gguf_n_tensors(const qn_gguf *g);
/* The i-th tensor, i < n_tensors: part by part, in file order. */
void qn_gguf_tensor_at(const qn_gguf *g, size_t i, qn_gguf_tensor *out);
/* False when absent, *out untouched. */
bool qn_gguf_find_tensor(const qn_gguf *g, const char *name, qn_gguf_tensor *out);

/* The tensor as a matrix of dims[0] columns and all other dims as rows, borrowed. Errors: NOTFOUND;
 * UNSUPPORTED for a type Quern cannot compute with; FORMAT for an empty tensor; LIMIT past 2^32-1. */
qn_code qn_gguf_matrix(qn_matrix *out, const qn_gguf *g, const char *name, qn_err *err);
qn_code qn_gguf_tensor_matrix(qn_matrix *out, const qn_gguf_tensor *t, qn_err *err);

/* How much of each type the model holds. Start with *it = 0; false at the end; types that do not
 * occur are left out. */
typedef struct qn_gguf_census {
    const char *type_name;
    bool supported;
    uint64_t tensors, elements, bytes;
} qn_gguf_census;

bool qn_gguf_census_next(const qn_gguf *g, size_t *it, qn_gguf_census *out);

/* The format's number of a weight format, UINT32_MAX for those GGUF cannot hold. */
uint32_t qn_gguf_type_of(qn_fmt fmt);

#endif
