/* SPDX-License-Identifier: Apache-2.0 */
/* verb_bench.c - `quern bench`: prefill and decode of one request, measured.
 *
 * Token ids follow the formula of bench/peer.c, so both sides compute the same:
 * id(0) = 1, id(i) = 3 + (i - 1) * 7919 mod min(200, V - 8).
 * Prefill is the time to the first token, decode the time of the N tokens after it. One pass runs
 * unmeasured first, so that pages are in and plans are built. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/open.h"

enum { MAX_REPS = 1000, FIRST_IDS = 8 };

typedef struct bench_opts {
    qn_run_opts run;
    uint32_t prompt, gen, depth, reps;
    bool json;
} bench_opts;

static const bench_opts defaults = {.prompt = 512, .gen = 64, .reps = 1};

#define AT(member) offsetof(bench_opts, member)
static const qn_opt options[] = {
    QN_RUN_OPTIONS(bench_opts),
    {"prompt", QN_OPT_U32, AT(prompt), "N", "prompt tokens", 1, 1 << 20, 0},
    {"gen", QN_OPT_U32, AT(gen), "N", "decoded tokens", 1, 1 << 20, 0},
    {"depth", QN_OPT_U32, AT(depth), "N", "positions before decoding starts (the prompt's)", 1,
     1 << 20, 0},
    {"reps", QN_OPT_U32, AT(reps), "N", "measured repetitions; medians are told", 1, MAX_REPS, 0},
    {"json", QN_OPT_FLAG, AT(json), NULL, "one JSON line on stdout", 0, 0, 0},
    QN_OPT_END,
};

typedef struct pass {
    double prefill_tps, decode_tps;
    uint32_t first[FIRST_IDS];
} pass;

static void make_ids(uint32_t *ids, uint32_t n, uint32_t vocab)
{
    const uint32_t range = vocab > 210 ? 200 : vocab > 8 ? vocab - 8 : 1;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i == 0 ? 1 % vocab : 3 + (uint32_t)((uint64_t)(i - 1) * 7919 % range);
    for (uint32_t i = 0; i < n && vocab < 12; i++) ids[i] %= vocab;
}

/* Times of the first and of the last token of one greedy request. */
static qn_code one_request(uint64_t ns[3], uint32_t first[FIRST_IDS], quern_engine *e,
                           const uint32_t *ids, uint32_t n, uint32_t gen, qn_err *err)
{
    qn_code rc = QN_OK;
    quern_request *r = NULL;
    const quern_event *ev = NULL;
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    o.tokens = ids;
    o.n_tokens = n;
    o.max_tokens = gen;
    o.flags = QUERN_REQUEST_IGNORE_EOS | QUERN_REQUEST_NO_CACHE;
    ns[0] = qn_clock_ns();
    QN_TRY(quern_request_open(&r, e, &o, err));
    do {
        while ((rc = quern_request_next(&ev, r, 100, err)) == QN_E_AGAIN)
            if (qn_interrupt_pending()) quern_request_cancel(r);
        if (rc != QN_OK) goto out;
        if (ev->kind == QUERN_EVENT_ERROR) rc = qn_fail(err, ev->code, "%s", ev->msg);
        if (ev->kind == QUERN_EVENT_DONE && qn_interrupt_pending())
            rc = qn_fail(err, QN_E_CANCELLED, "cancelled");
        else if (ev->kind == QUERN_EVENT_DONE && ev->completion_tokens != gen)
            rc =
                qn_fail(err, QN_E_LIMIT, "the context ended after %u tokens behind %u, expected %u",
                        ev->completion_tokens, n, gen);
        if (ev->kind != QUERN_EVENT_TOKEN) continue;
        if (ev->index == 0) ns[1] = ev->time_ns;
        if (ev->index < FIRST_IDS) first[ev->index] = ev->token;
        ns[2] = ev->time_ns;
    } while (ev->kind == QUERN_EVENT_TOKEN);
out:
    quern_request_free(r);
    return rc;
}

static qn_code one_pass(pass *p, const qn_running *run, const bench_opts *o, const uint32_t *ids,
                        qn_err *err)
{
    uint64_t ns[3] = {0};
    const uint32_t depth = o->depth ? o->depth : o->prompt;
    memset(p, 0, sizeof *p);
    if (depth != o->prompt) {
        QN_TRY(one_request(ns, p->first, run->engine, ids, o->prompt, 1, err));
        p->prefill_tps = o->prompt / ((double)(ns[1] - ns[0]) / 1e9);
    }
    QN_TRY(one_request(ns, p->first, run->engine, ids, depth, o->gen + 1, err));
    if (depth == o->prompt) p->prefill_tps = depth / ((double)(ns[1] - ns[0]) / 1e9);
    p->decode_tps = o->gen / ((double)(ns[2] - ns[1]) / 1e9);
    return QN_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, uint32_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static qn_json *report(const qn_running *run, const pass *passes, const bench_opts *o,
                       const double median_of[2])
{
    bool ok = true;
    qn_json *root = qn_json_new_object(), *reps = qn_json_new_array(), *ids = qn_json_new_array();
    for (uint32_t i = 0; i < o->reps; i++) {
        qn_json *one = qn_json_new_object();
        ok = ok && qn_json_set(one, "prefill_tps", qn_json_new_num(passes[i].prefill_tps));
        ok = ok && qn_json_set(one, "decode_tps", qn_json_new_num(passes[i].decode_tps));
        ok = qn_json_push(reps, one) && ok;
    }
    for (uint32_t i = 0; i < FIRST_IDS && i <= o->gen; i++)
        ok = ok && qn_json_push(ids, qn_json_new_int(passes[0].first[i]));
    const char *machine = quern_runtime_describe(run->rt);
    ok = ok && qn_json_set(root, "prefill_tps", qn_json_new_num(median_of[0]));
    ok = ok && qn_json_set(root, "decode_tps", qn_json_new_num(median_of[1]));
    ok = ok && qn_json_set(root, "load_ms", qn_json_new_num(run->load_ms));
    ok = ok && qn_json_set(root, "prompt", qn_json_new_int(o->prompt));
    ok = ok && qn_json_set(root, "gen", qn_json_new_int(o->gen));
    ok = ok && qn_json_set(root, "depth", qn_json_new_int(o->depth ? o->depth : o->prompt));
    ok = ok && qn_json_set(root, "machine", qn_json_new_str(machine, strlen(machine)));
    ok = qn_json_set(root, "ids", ids) && ok;
    ok = qn_json_set(root, "reps", reps) && ok;
    if (ok) return root;
    qn_json_free(root);
    return NULL;
}

static qn_code measure(pass *passes, uint32_t *ids, double *sorted, const qn_running *run,
                       const bench_opts *o, qn_io *io, qn_err *err)
{
    pass unmeasured;
    double median_of[2];
    QN_TRY(one_pass(&unmeasured, run, o, ids, err));
    for (uint32_t i = 0; i < o->reps; i++) QN_TRY(one_pass(&passes[i], run, o, ids, err));
    for (uint32_t i = 0; i < o->reps; i++) sorted[i] = passes[i].prefill_tps;
    median_of[0] = median(sorted, o->reps);
    for (uint32_t i = 0; i < o->reps; i++) sorted[i] = passes[i].decode_tps;
    median_of[1] = median(sorted, o->reps);
    if (o->json) return qn_io_json(io, report(run, passes, o, median_of), err);
    qn_io_print(
        io, "%s\nload %.0f ms\nprefill %u tokens: %.1f/s\ndecode %u tokens at depth %u: %.2f/s\n",
        quern_runtime_describe(run->rt), run->load_ms, o->prompt, median_of[0], o->gen,
        o->depth ? o->depth : o->prompt, median_of[1]);
    return qn_io_flush(io, err);
}

static qn_code bench(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const bench_opts *o = opts;
    qn_run_opts run_opts = o->run;
    qn_running run = {0};
    const uint32_t most = o->depth > o->prompt ? o->depth : o->prompt;
    pass *passes = NULL;
    uint32_t *ids = NULL;
    double *sorted = NULL;
    quern_model_info info = {.size = sizeof info};
    (void)args;
    if (!run_opts.context) run_opts.context = most + o->gen + 16; /* as the peer's driver */
    qn_interrupt_block();
    QN_TRY_OUT(qn_run_open(&run, &run_opts, 1, io, err));
    QN_TRY_OUT(quern_model_get_info(run.model, &info, err));
    passes = qn_calloc(o->reps, sizeof *passes);
    sorted = qn_calloc(o->reps, sizeof *sorted);
    ids = qn_calloc(most, sizeof *ids);
    if (!passes || !sorted || !ids) {
        rc = qn_fail(err, QN_E_NOMEM, "%u repetitions", o->reps);
        goto out;
    }
    make_ids(ids, most, info.vocab);
    QN_TRY_OUT(measure(passes, ids, sorted, &run, o, io, err));
out:
    qn_free(passes);
    qn_free(sorted);
    qn_free(ids);
    qn_run_close(&run);
    return rc;
}

const qn_verb qn_verb_bench = {
    "bench",
    "",
    "measure prefill and decode of one request",
    "Made-up token ids are decoded greedily; one pass runs unmeasured first.",
    options,
    &defaults,
    sizeof(bench_opts),
    0,
    0,
    bench};
