/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - structs to wire blocks and back, where "back" trusts nothing.
 *
 * Reading does not copy: a block is checked in place and then used as the struct that it begins with.
 * Checked are magic, version, length, alignment, order and bounds of every array (each lies at one
 * place only, so two arrays can never overlap), every count against its ceiling, every number's range,
 * every reserved byte, UTF-8 of every text. Both ends run on one machine or on machines of one byte
 * order; the magic tells the other order apart.
 *
 * Thread: any, on separate buffers.
 */
#ifndef QN_WIRE_CODEC_H
#define QN_WIRE_CODEC_H
#include "base/buf.h"
#include "wire/event.h"
#include "wire/request.h"

/* Append one block to `out`, padded to 8 bytes; on failure out is as it was. What does not pass the
 * reader's checks is refused here already. Errors: INVAL (names the field, found, expected), LIMIT,
 * NOMEM. */
qn_code qn_request_build(qn_buf *out, const qn_request_in *in, qn_err *err);

/* Check bytes[0, n) as exactly one block; *out is that memory, borrowed. bytes must be 8-byte
 * aligned. Errors: FORMAT (names the field, found, expected), UNSUPPORTED (another version), LIMIT. */
qn_code qn_request_read(const qn_request **out, const void *bytes, size_t n, qn_err *err);
qn_code qn_event_read(const qn_event_head **out, const void *bytes, size_t n, qn_err *err);

/* Events: the fixed part as a struct whose wire head and refs the builder fills; arrays beside it,
 * borrowed for the call. Errors as qn_request_build. */
qn_code qn_event_build_token(qn_buf *out, const qn_event_token *e, const qn_event_top *top,
                             size_t n_top, const void *state, size_t state_bytes, qn_err *err);
qn_code qn_event_build_done(qn_buf *out, const qn_event_done *e, qn_err *err);
qn_code qn_event_build_error(qn_buf *out, const qn_event_error *e, qn_str msg, qn_err *err);

/* Streams: how long the block that starts at bytes[0, n) is, once its head is there. OK with
 * *block_bytes 0 while more than n bytes are needed to know. Errors: FORMAT, UNSUPPORTED, LIMIT. */
qn_code qn_wire_block_bytes(size_t *block_bytes, const void *bytes, size_t n, qn_err *err);

#endif
