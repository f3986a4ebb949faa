/* SPDX-License-Identifier: Apache-2.0 */
/* roofline.h - the two rates that bound a model on this machine, measured: bytes read and arithmetic.
 *
 * Decoding reads every weight once a token, so bytes bound it; a long prompt multiplies, so arithmetic
 * does. Each rate is the best of several short slices: other programs can only lower it. How much of
 * the machine they had meanwhile is told, so that a figure from a busy machine is known as one.
 *
 * Thread: any; two at once measure each other.
 */
#ifndef QUERN_ROOFLINE_H
#define QUERN_ROOFLINE_H
#include "quern/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_rate { /* of one thread, and of all together; 0: this machine cannot */
    double one, all;
    const char *how; /* instruction and width, or what was read; for ever */
    uint64_t bytes;  /* of the buffer of one thread, 0 for arithmetic */
} quern_rate;

typedef struct quern_roofline_report {
    size_t size;               /* sizeof(quern_roofline_report), set by the caller */
    uint32_t threads;          /* of "all" */
    uint32_t quiet;            /* 1: others had at most 8 % of one core and nothing was stolen */
    double others, stolen;     /* cores that other programs, and the hypervisor, had meanwhile */
    quern_rate l2, l3, memory; /* bytes read a second */
    quern_rate f32, f16, bf16, int8; /* operations a second; f16 sums in f16 */
} quern_roofline_report;

/* Takes about slice_ms * 120 (0: 20 ms, so some 2.5 s) on one thread and all of rt's. At most a quarter
 * of the memory that is available is taken as a buffer. Errors: INVAL; NOMEM (less than 64 MiB may be
 * taken); IO (a thread could not start). */
QUERN_API quern_code quern_roofline(quern_roofline_report *report, quern_runtime *rt,
                                    uint32_t slice_ms, quern_error *err);

typedef struct quern_traffic { /* of a model; what its rates are a share of */
    size_t size;               /* sizeof(quern_traffic), set by the caller */
    uint64_t weight_bytes;     /* that one decoded token reads */
    uint64_t kv_bytes;         /* that it reads behind `depth` positions */
    uint64_t row_ops; /* operations of one prompt token in the layers' matrices, attention apart */
} quern_traffic;
/* Errors: INVAL. */
QUERN_API quern_code quern_model_traffic(quern_traffic *out, const quern_model *m, quern_kv kv,
                                         uint32_t depth, quern_error *err);

#ifdef __cplusplus
}
#endif
#endif
