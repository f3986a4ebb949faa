/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_write.h - writing GGUF v3: keys, then the tensor directory, then the data as a stream.
 *
 * Order of calls: put keys and add tensors in any mix, then write every tensor's bytes in the order
 * of adding, then finish. The file appears under its name at finish only (temporary file, fsync,
 * rename); closing before that leaves nothing behind. Data begins and every tensor starts at a
 * multiple of 32 bytes.
 *
 * A first failed call makes every later one fail with the same code, so a caller may check finish
 * alone.
 *
 * Owner:  the writer owns what it was told (copies). Thread: one at a time.
 */
#ifndef QN_FORMAT_GGUF_WRITE_H
#define QN_FORMAT_GGUF_WRITE_H
#include "format/gguf.h"

typedef struct qn_gguf_writer qn_gguf_writer;

/* Errors: IO (the temporary file beside path), NOMEM. */
qn_code qn_gguf_writer_open(qn_gguf_writer **out, const char *path, qn_err *err);
/* Drops an unfinished file. NULL is fine. */
void qn_gguf_writer_close(qn_gguf_writer *w);

/* Errors of put and add: INVAL (empty, repeated or too late), LIMIT, NOMEM. */
qn_code qn_gguf_put_u32(qn_gguf_writer *w, const char *key, uint32_t v, qn_err *err);
qn_code qn_gguf_put_u64(qn_gguf_writer *w, const char *key, uint64_t v, qn_err *err);
qn_code qn_gguf_put_i32(qn_gguf_writer *w, const char *key, int32_t v, qn_err *err);
qn_code qn_gguf_put_i64(qn_gguf_writer *w, const char *key, int64_t v, qn_err *err);
qn_code qn_gguf_put_f32(qn_gguf_writer *w, const char *key, float v, qn_err *err);
qn_code qn_gguf_put_f64(qn_gguf_writer *w, const char *key, double v, qn_err *err);
qn_code qn_gguf_put_bool(qn_gguf_writer *w, const char *key, bool v, qn_err *err);
qn_code qn_gguf_put_str(qn_gguf_writer *w, const char *key, qn_str v, qn_err *err);
/* A scalar or an array of scalars as it lies in memory: n items of `type`; not for strings. */
qn_code qn_gguf_put_scalar(qn_gguf_writer *w, const char *key, qn_gguf_type type, const void *item,
                           qn_err *err);
qn_code qn_gguf_put_array(qn_gguf_writer *w, const char *key, qn_gguf_type type, const void *items,
                          uint64_t n, qn_err *err);
qn_code qn_gguf_put_strs(qn_gguf_writer *w, const char *key, const qn_str *items, uint64_t n,
                         qn_err *err);
/* A value of a reader, as it stands there (nested arrays too). */
qn_code qn_gguf_put_value(qn_gguf_writer *w, qn_str key, const qn_gguf_value *v, qn_err *err);

/* Announce a tensor: dims[0] is contiguous, a multiple of the block. UNSUPPORTED for affine. */
qn_code qn_gguf_add_tensor(qn_gguf_writer *w, const char *name, qn_fmt fmt, const uint64_t *dims,
                           uint32_t n_dims, qn_err *err);
/* The next bytes of the data, in pieces of any size; they may cross tensors. INVAL past the end. */
qn_code qn_gguf_write(qn_gguf_writer *w, const void *bytes, size_t n, qn_err *err);
/* Publishes the file. INVAL when bytes are missing. The writer is then good for close only. */
qn_code qn_gguf_writer_finish(qn_gguf_writer *w, qn_err *err);

#endif
