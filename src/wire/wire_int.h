/* SPDX-License-Identifier: Apache-2.0 */
/* wire_int.h - the walker over a hostile block and the helpers that build one.
 *
 * A block has exactly one valid form: arrays follow the fixed struct in the order of its fields, each
 * padded with zeros to 8 bytes, nothing between and nothing behind. The walker holds the place where
 * the next array must lie, so bounds, overlap and order are one comparison.
 */
#ifndef QN_WIRE_INT_H
#define QN_WIRE_INT_H
#include "base/alloc.h"
#include "base/buf.h"
#include "wire/request.h"

enum { QN_WIRE_ALIGN = 8 };

typedef struct qn_walk {
    const char *what; /* "request", "event": begins every message */
    const uint8_t *base;
    uint32_t bytes, pos; /* of the block; where the next array must begin */
    qn_err *err;
} qn_walk;

/* Checks the head and the length; sets base and bytes. The caller then sets pos. */
qn_code qn_wire_open(qn_walk *w, const void *bytes, size_t n, uint32_t magic, uint32_t version,
                     uint32_t max_bytes);
/* The next array: at most max elements of `size` bytes (max * size below 2^32 is not needed). */
qn_code qn_wire_take(qn_walk *w, const char *field, qn_wire_ref ref, size_t size, uint32_t max);
qn_code qn_wire_take_text(qn_walk *w, const char *field, qn_wire_ref ref, uint32_t max);
/* Nothing may be left. */
qn_code qn_wire_done(const qn_walk *w);

/* FORMAT: field, found, expected. */
qn_code qn_wire_bad(const qn_walk *w, const char *field, uint64_t found, uint64_t expected);
/* OK, or FORMAT when found is outside [lo, hi]; number refuses NaN too. */
qn_code qn_wire_range(const qn_walk *w, const char *field, int64_t found, int64_t lo, int64_t hi);
qn_code qn_wire_number(const qn_walk *w, const char *field, float found, float lo, float hi);

/* Building a block at `start` of out: the fixed part, arrays, then its length. */
qn_code qn_wire_start(qn_buf *out, const void *fixed, size_t n, qn_err *err);
qn_code qn_wire_put(qn_buf *out, size_t start, qn_wire_ref *ref, const void *items, size_t n,
                    size_t size, qn_err *err);
qn_code qn_wire_seal(qn_buf *out, size_t start, uint32_t max_bytes, qn_err *err);
/* On failure cuts the block off again and turns the reader's FORMAT into INVAL. */
qn_code qn_wire_verdict(qn_buf *out, size_t start, qn_code rc, qn_err *err);

#endif
