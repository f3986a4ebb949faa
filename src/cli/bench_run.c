/* SPDX-License-Identifier: Apache-2.0 */
/* bench_run.c - the requests of `quern bench`.
 *
 * The last one submitted has its first token last. From there on every step has a row of each, so its
 * next gen tokens tell the time of gen full steps; the others get room to go on until then, and are
 * cancelled. */
#include "cli/bench_run.h"

#include <string.h>

#include "base/clock.h"
#include "cli/open.h"

enum { WAIT_MS = 50, DEFAULT_CHUNK = 512 };

uint32_t qn_bench_room(const qn_bench_ask *a)
{
    if (a->batch == 1) return a->gen + 1;
    const uint32_t chunk = a->chunk ? a->chunk : DEFAULT_CHUNK;
    const uint32_t rows = chunk > a->batch ? chunk - a->batch : 1; /* of prompts, in a step */
    const uint64_t steps = ((uint64_t)a->n * a->batch + rows - 1) / rows + a->batch;
    const uint64_t room = a->gen + 1 + 2 * steps;
    return room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
}

/* Takes what request r has, waiting for at most wait_ms; *open false: it has ended. */
static qn_code take(bool *open, qn_bench_times *times, quern_request *r, uint32_t gen, int wait_ms,
                    qn_err *err)
{
    const quern_event *ev = NULL;
    qn_code rc = QN_OK;
    while ((rc = quern_request_next(&ev, r, wait_ms, err)) == QN_OK) {
        if (ev->kind == QUERN_EVENT_ERROR) return qn_fail(err, ev->code, "%s", ev->msg);
        if (ev->kind == QUERN_EVENT_DONE) *open = false;
        if (ev->kind == QUERN_EVENT_DONE) return QN_OK;
        if (ev->kind != QUERN_EVENT_TOKEN || !times) continue;
        times->n = ev->index + 1;
        if (ev->index == 0) times->first = ev->time_ns;
        if (ev->index == gen) times->last = ev->time_ns;
        if (ev->index < QN_BENCH_FIRST_IDS) times->ids[ev->index] = ev->token;
    }
    return rc == QN_E_AGAIN ? QN_OK : rc;
}

/* Reads all of them until the last has its tokens. */
static qn_code follow(qn_bench_times *times, quern_request **r, const qn_bench_ask *a, qn_err *err)
{
    bool open[QN_BENCH_MAX_BATCH];
    const uint32_t pace = a->batch - 1;
    for (uint32_t i = 0; i < a->batch; i++) open[i] = true;
    while (times->last == 0) {
        if (qn_interrupt_pending()) return qn_fail(err, QN_E_CANCELLED, "cancelled");
        QN_TRY(take(&open[pace], times, r[pace], a->gen, WAIT_MS, err));
        for (uint32_t i = 0; i < pace; i++)
            if (open[i]) QN_TRY(take(&open[i], NULL, r[i], a->gen, 0, err));
        for (uint32_t i = 0; i < a->batch && times->last == 0; i++)
            if (!open[i])
                return qn_fail(err, QN_E_LIMIT,
                               "the context ended after %u tokens behind %u, expected %u", times->n,
                               a->n, a->gen + 1);
    }
    return QN_OK;
}

qn_code qn_bench_requests(qn_bench_times *out, quern_engine *e, const qn_bench_ask *a, qn_err *err)
{
    qn_code rc = QN_OK;
    quern_request *r[QN_BENCH_MAX_BATCH] = {NULL};
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    o.tokens = a->ids;
    o.n_tokens = a->n;
    o.flags = QUERN_REQUEST_IGNORE_EOS | QUERN_REQUEST_NO_CACHE;
    memset(out, 0, sizeof *out);
    out->begin = qn_clock_ns();
    for (uint32_t i = 0; i < a->batch; i++) {
        o.max_tokens = i + 1 == a->batch ? a->gen + 1 : qn_bench_room(a);
        QN_TRY_OUT(quern_request_open(&r[i], e, &o, err));
    }
    QN_TRY_OUT(follow(out, r, a, err));
out:
    for (uint32_t i = 0; i < a->batch; i++)
        if (r[i]) quern_request_cancel(r[i]);
    for (uint32_t i = 0; i < a->batch; i++) quern_request_free(r[i]);
    return rc;
}
