/* SPDX-License-Identifier: Apache-2.0 */
/* format_int.h - what the readers share: a table of names, a check of ranges, names in messages. */
#ifndef QN_FORMAT_FORMAT_INT_H
#define QN_FORMAT_FORMAT_INT_H
#include "base/str.h"
#include "tensor/format.h"

/* A hash table of indices 0 .. n-1 whose names the caller can tell; 4 bytes a slot, at most 3/4
 * full. The names stay where they are. */
typedef qn_str qn_name_fn(const void *ctx, size_t i);

typedef struct qn_names {
    uint32_t *slots; /* index + 1; 0 is empty */
    size_t mask;
    uint64_t seed;
} qn_names;

qn_code qn_names_init(qn_names *t, size_t n, qn_err *err); /* for up to n < 2^32 - 1 names */
void qn_names_fini(qn_names *t);                           /* zeroed is fine */
/* Adds index i. SIZE_MAX when its name is new, else the index that has it already. */
size_t qn_names_put(qn_names *t, size_t i, const void *ctx, qn_name_fn *name);
/* SIZE_MAX when absent. */
size_t qn_names_find(const qn_names *t, qn_str key, const void *ctx, qn_name_fn *name);

typedef struct qn_range { /* bytes of a file */
    uint64_t begin, bytes;
} qn_range;
typedef qn_range qn_range_fn(const void *ctx, size_t i);

/* Sorts the indices 0 .. n-1 in order[n] by where their ranges begin, shorter ones first; in place
 * and without recursion, so that hostile orders cost no more than others. */
void qn_ranges_sort(uint32_t *order, size_t n, const void *ctx, qn_range_fn *range);

/* A name out of a file as it may stand in a message: at most 60 bytes, valid UTF-8, no control
 * characters. Use within one expression: qn_show(name).text. */
typedef struct qn_shown {
    char text[72];
} qn_shown;

qn_shown qn_show(qn_str name);
/* A path for the front of a message: all of it when short, else its last component. */
const char *qn_show_path(const char *path);

/* out = rows x cols of fmt at data, after checks of size; see qn_gguf_matrix. */
qn_code qn_plain_matrix(qn_matrix *out, qn_fmt fmt, uint64_t rows, uint64_t cols, const void *data,
                        qn_err *err);

#endif
