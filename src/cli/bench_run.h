/* SPDX-License-Identifier: Apache-2.0 */
/* bench_run.h - greedy requests that decode together, and when their tokens came. */
#ifndef QN_CLI_BENCH_RUN_H
#define QN_CLI_BENCH_RUN_H
#include "cli/cli.h"

enum { QN_BENCH_FIRST_IDS = 8, QN_BENCH_MAX_BATCH = 64 };

typedef struct qn_bench_ask {
    const uint32_t *ids; /* [n] the prompt of each, borrowed */
    uint32_t n, gen;     /* prompt tokens; tokens behind the first */
    uint32_t batch;      /* requests, 1 to QN_BENCH_MAX_BATCH */
    uint32_t chunk;      /* prompt tokens a step */
} qn_bench_ask;

typedef struct qn_bench_times { /* nanoseconds */
    uint64_t begin;             /* all were submitted */
    uint64_t first;             /* each has its first token */
    uint64_t last;              /* and each has gen more */
    uint32_t ids[QN_BENCH_FIRST_IDS];
    uint32_t n; /* tokens of the last request */
} qn_bench_times;

/* Tokens that a request may have beside its prompt while the others' prompts are read. */
uint32_t qn_bench_room(const qn_bench_ask *a);
/* Errors: those of requests; LIMIT (the context ended before gen tokens); CANCELLED (SIGINT). */
qn_code qn_bench_requests(qn_bench_times *out, quern_engine *e, const qn_bench_ask *a, qn_err *err);

#endif
