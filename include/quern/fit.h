/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - whether a model fits the memory there is, told before a weight is read.
 *
 * Weights are mapped files: their pages can be given up and read again, but a model runs at the speed
 * of memory only while all of them are there, so they count in full. What counts as available takes
 * that into account: pages of files in the cache are available.
 *
 * Thread: any.
 */
#ifndef QUERN_FIT_H
#define QUERN_FIT_H
#include "quern/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_fit_report { /* bytes unless said otherwise */
    size_t size;                  /* sizeof(quern_fit_report), set by the caller */
    uint64_t weight_bytes;        /* mapped, packed images included */
    uint64_t tokenizer_bytes;     /* estimate */
    uint64_t plan_bytes;          /* estimate: activations of all batches */
    uint64_t kv_bytes;            /* keys and values of one sequence of `context` positions */
    uint64_t kv_all_bytes;        /* of max_seqs such sequences; taken as they grow */
    uint64_t needed_bytes;        /* the first four: what opening is checked against */
    uint64_t available_bytes;     /* the least of the limits below */
    const char *limit;            /* which: "memory", "cgroup" or "ceiling"; for ever */
    uint32_t context;             /* positions counted: those asked for, else the model's */
    uint32_t context_fits;        /* largest context that would fit; 0: not even the weights do */
    uint32_t fits;                /* 1: needed_bytes <= available_bytes */
    uint32_t layers;
} quern_fit_report;

/* Reads headers only. model_opt and engine_opt as for opening, each may be NULL. That something does
 * not fit is in the report, no error. Errors: as quern_model_open, INVAL and LIMIT of the options. */
QUERN_API quern_code quern_fit(quern_fit_report *report, quern_runtime *rt, const char *path,
                               const quern_model_options *model_opt,
                               const quern_engine_options *engine_opt, quern_error *err);

#ifdef __cplusplus
}
#endif
#endif
