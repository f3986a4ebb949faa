/* SPDX-License-Identifier: Apache-2.0 */
/* roofline.h - `quern bench roofline`, and what share of it a measured model has. */
#ifndef QN_CLI_ROOFLINE_H
#define QN_CLI_ROOFLINE_H
#include "cli/cli.h"

/* Measures and prints, as one JSON line or as a table. */
qn_code qn_roofline_verb(uint32_t threads, uint32_t memory_mib, bool json, qn_io *io, qn_err *err);
/* The report as JSON, owned; NULL: no memory. */
qn_json *qn_roofline_json(const quern_roofline_report *r);
/* A model's rates as shares of what bounds them: decoding, of the bytes that memory gives (of L3, where
 * weights and cache would fit there and are faster read); a prompt's matrices, of int8 and f32 arithmetic. */
typedef struct qn_shares {
    double decode_bytes;                                   /* a second */
    double of_memory, of_l3, prefill_ops, of_int8, of_f32; /* of_: 0 to 1, or 0: no such rate */
} qn_shares;
qn_shares qn_roofline_shares(const quern_roofline_report *r, const quern_traffic *t,
                             uint32_t threads, double prefill_tps, double decode_tps);

/* "" or why the figures are not to be trusted. */
const char *qn_roofline_noise(char text[96], const quern_roofline_report *r);

#endif
