/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_write.h - writing one safetensors file: names and shapes first, then the data.
 *
 * Order of calls: put metadata and add tensors in any mix, write every tensor's bytes in the order
 * of adding, finish. The file appears under its name at finish only (temporary file, fsync, rename).
 * The header is padded with spaces so that data begins at a multiple of 8; add tensors of wider
 * elements first and each is aligned.
 *
 * A first failed call makes every later one fail with the same code.
 *
 * Owner:  the writer owns what it was told (copies). Thread: one at a time.
 */
#ifndef QN_FORMAT_SAFETENSORS_WRITE_H
#define QN_FORMAT_SAFETENSORS_WRITE_H
#include "format/safetensors.h"

typedef struct qn_st_writer qn_st_writer;

/* Errors: IO (the temporary file beside path), NOMEM. */
qn_code qn_st_writer_open(qn_st_writer **out, const char *path, qn_err *err);
void qn_st_writer_close(qn_st_writer *w); /* drops an unfinished file; NULL is fine */

/* Errors of put and add: INVAL (repeated, no UTF-8, too late), LIMIT, NOMEM. */
qn_code qn_st_put_meta(qn_st_writer *w, const char *key, qn_str value, qn_err *err);
/* dims[n_dims - 1] is contiguous. */
qn_code qn_st_add_tensor(qn_st_writer *w, const char *name, qn_st_dtype dtype, const uint64_t *dims,
                         uint32_t n_dims, qn_err *err);
/* The next bytes of the data, in pieces of any size; they may cross tensors. INVAL past the end. */
qn_code qn_st_write(qn_st_writer *w, const void *bytes, size_t n, qn_err *err);
/* Publishes the file. INVAL when bytes are missing. The writer is then good for close only. */
qn_code qn_st_writer_finish(qn_st_writer *w, qn_err *err);

#endif
