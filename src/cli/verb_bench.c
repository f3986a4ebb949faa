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
#include "cli/roofline.h"

enum { MAX_REPS = 1000, FIRST_IDS = 8 };

typedef struct bench_opts {
    qn_run_opts run;
    uint32_t prompt, gen, depth, reps;
    bool json, roofline;
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
    {"roofline", QN_OPT_FLAG, AT(roofline), NULL,
     "measure the machine's limits too, and tell the share of them", 0, 0, 0},
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

/* What the machine could, measured behind the model's own runs. */
typedef struct limits {
    quern_roofline_report roof;
    quern_traffic traffic;
    qn_shares shares;
} limits;

static qn_code find_limits(limits *l, const qn_running *run, const bench_opts *o,
                           const double median_of[2], qn_err *err)
{
    static const quern_kv kv[] = {QUERN_KV_F16, QUERN_KV_F32, QUERN_KV_BF16};
    const uint32_t depth = (o->depth ? o->depth : o->prompt) + o->gen / 2;
    *l = (limits){.roof = {.size = sizeof l->roof}, .traffic = {.size = sizeof l->traffic}};
    QN_TRY(quern_model_traffic(&l->traffic, run->model, kv[o->run.kv], depth, err));
    QN_TRY(quern_roofline(&l->roof, run->rt, 0, err));
    l->shares =
        qn_roofline_shares(&l->roof, &l->traffic, l->roof.threads, median_of[0], median_of[1]);
    return QN_OK;
}

static bool add_limits(qn_json *root, const limits *l)
{
    const qn_shares *s = &l->shares;
    qn_json *o = qn_json_new_object();
    bool ok = qn_json_set(root, "roofline", qn_roofline_json(&l->roof));
    ok = qn_json_set(o, "weight_bytes", qn_json_new_int((int64_t)l->traffic.weight_bytes)) && ok;
    ok = qn_json_set(o, "kv_bytes", qn_json_new_int((int64_t)l->traffic.kv_bytes)) && ok;
    ok = qn_json_set(o, "decode_bytes_per_s", qn_json_new_num(s->decode_bytes)) && ok;
    ok = qn_json_set(o, "decode_of_memory", qn_json_new_num(s->of_memory)) && ok;
    ok = qn_json_set(o, "decode_of_l3", qn_json_new_num(s->of_l3)) && ok;
    ok = qn_json_set(o, "prefill_ops_per_s", qn_json_new_num(s->prefill_ops)) && ok;
    ok = qn_json_set(o, "prefill_of_int8", qn_json_new_num(s->of_int8)) && ok;
    ok = qn_json_set(o, "prefill_of_f32", qn_json_new_num(s->of_f32)) && ok;
    return qn_json_set(root, "share", o) && ok;
}

static void print_limits(qn_io *io, const limits *l)
{
    char noise[96];
    const qn_shares *s = &l->shares;
    qn_io_print(io, "decode reads %.1f GB/s: %.0f%% of memory", s->decode_bytes / 1e9,
                100 * s->of_memory);
    if (s->of_l3 > 0) qn_io_print(io, ", %.0f%% of L3", 100 * s->of_l3);
    qn_io_print(io, "\nprefill's matrices %.1f GOP/s: %.0f%% of f32", s->prefill_ops / 1e9,
                100 * s->of_f32);
    if (s->of_int8 > 0) qn_io_print(io, ", %.0f%% of int8", 100 * s->of_int8);
    qn_io_print(io, "\n");
    if (!l->roof.quiet) fprintf(io->err, "quern: %s\n", qn_roofline_noise(noise, &l->roof));
}

static qn_json *report(const qn_running *run, const pass *passes, const bench_opts *o,
                       const double median_of[2], const limits *l)
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
    if (l) ok = add_limits(root, l) && ok;
    if (ok) return root;
    qn_json_free(root);
    return NULL;
}

static qn_code measure(pass *passes, uint32_t *ids, double *sorted, const qn_running *run,
                       const bench_opts *o, qn_io *io, qn_err *err)
{
    pass unmeasured;
    double median_of[2];
    limits found;
    QN_TRY(one_pass(&unmeasured, run, o, ids, err));
    for (uint32_t i = 0; i < o->reps; i++) QN_TRY(one_pass(&passes[i], run, o, ids, err));
    for (uint32_t i = 0; i < o->reps; i++) sorted[i] = passes[i].prefill_tps;
    median_of[0] = median(sorted, o->reps);
    for (uint32_t i = 0; i < o->reps; i++) sorted[i] = passes[i].decode_tps;
    median_of[1] = median(sorted, o->reps);
    if (o->roofline) QN_TRY(find_limits(&found, run, o, median_of, err));
    const limits *l = o->roofline ? &found : NULL;
    if (o->json) return qn_io_json(io, report(run, passes, o, median_of, l), err);
    qn_io_print(
        io, "%s\nload %.0f ms\nprefill %u tokens: %.1f/s\ndecode %u tokens at depth %u: %.2f/s\n",
        quern_runtime_describe(run->rt), run->load_ms, o->prompt, median_of[0], o->gen,
        o->depth ? o->depth : o->prompt, median_of[1]);
    if (l) print_limits(io, l);
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
    if (args.n == 1 && strcmp(args.v[0], "roofline") == 0)
        return qn_roofline_verb(run_opts.threads, run_opts.memory_mib, o->json, io, err);
    if (args.n == 1)
        return qn_fail(err, QN_E_INVAL, "bench \"%s\", expected roofline or nothing", args.v[0]);
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

const qn_verb qn_verb_bench = {"bench",
                               "[roofline]",
                               "measure prefill and decode of one request, or the machine itself",
                               "Made-up token ids are decoded greedily; one pass runs unmeasured "
                               "first. `bench roofline` measures\n"
                               "how fast this machine reads its caches and memory and how much it "
                               "computes in registers; no model\n"
                               "is faster.",
                               options,
                               &defaults,
                               sizeof(bench_opts),
                               0,
                               1,
                               bench};
