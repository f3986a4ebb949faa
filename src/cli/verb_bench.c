/* SPDX-License-Identifier: Apache-2.0 */
/* verb_bench.c - `quern bench`: prefill and decode of one request, measured.
 *
 * Token ids follow the formula of bench/peer.c, so both sides compute the same:
 * id(0) = 1, id(i) = 3 + (i - 1) * 7919 mod min(200, V - 8).
 * Prefill is the time to the first token, decode the time of the N tokens after it; of several requests,
 * until each has its first token, and of the steps that decode one of each. One pass runs unmeasured
 * first, so that pages are in and plans are built. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/bench_run.h"
#include "cli/open.h"
#include "cli/roofline.h"

enum { MAX_REPS = 1000 };

typedef struct bench_opts {
    qn_run_opts run;
    uint32_t prompt, gen, depth, batch, reps, warm;
    bool json, roofline;
} bench_opts;

static const bench_opts defaults = {.prompt = 512, .gen = 64, .batch = 1, .reps = 1};

#define AT(member) offsetof(bench_opts, member)
static const qn_opt options[] = {
    QN_RUN_OPTIONS(bench_opts),
    {"prompt", QN_OPT_U32, AT(prompt), "N", "prompt tokens", 1, 1 << 20, 0},
    {"gen", QN_OPT_U32, AT(gen), "N", "decoded tokens", 1, 1 << 20, 0},
    {"depth", QN_OPT_U32, AT(depth), "N", "positions before decoding starts (the prompt's)", 1,
     1 << 20, 0},
    {"batch", QN_OPT_U32, AT(batch), "R", "requests that decode together; rates are of all of them",
     1, QN_BENCH_MAX_BATCH, 0},
    {"reps", QN_OPT_U32, AT(reps), "N", "measured repetitions; medians are told", 1, MAX_REPS, 0},
    {"warm", QN_OPT_U32, AT(warm), "N", "prompt tokens of the pass that is not measured (all)", 1,
     1 << 20, 0},
    {"roofline", QN_OPT_FLAG, AT(roofline), NULL,
     "measure the machine's limits too, and tell the share of them", 0, 0, 0},
    {"json", QN_OPT_FLAG, AT(json), NULL, "one JSON line on stdout", 0, 0, 0},
    QN_OPT_END,
};

typedef struct pass {
    double prefill_tps, decode_tps;
    uint32_t first[QN_BENCH_FIRST_IDS];
} pass;

static void make_ids(uint32_t *ids, uint32_t n, uint32_t vocab)
{
    const uint32_t range = vocab > 210 ? 200 : vocab > 8 ? vocab - 8 : 1;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i == 0 ? 1 % vocab : 3 + (uint32_t)((uint64_t)(i - 1) * 7919 % range);
    for (uint32_t i = 0; i < n && vocab < 12; i++) ids[i] %= vocab;
}

static qn_code one_pass(pass *p, const qn_running *run, const bench_opts *o, const uint32_t *ids,
                        qn_err *err)
{
    qn_bench_times t;
    const uint32_t depth = o->depth ? o->depth : o->prompt;
    const qn_bench_ask decode = {ids, depth, o->gen, o->batch, o->run.chunk};
    const qn_bench_ask prefill = {ids, o->prompt, 0, 1, o->run.chunk};
    memset(p, 0, sizeof *p);
    if (depth != o->prompt) {
        QN_TRY(qn_bench_requests(&t, run->engine, &prefill, err));
        p->prefill_tps = o->prompt / ((double)(t.first - t.begin) / 1e9);
    }
    QN_TRY(qn_bench_requests(&t, run->engine, &decode, err));
    if (depth == o->prompt)
        p->prefill_tps = (double)depth * o->batch / ((double)(t.first - t.begin) / 1e9);
    p->decode_tps = (double)o->gen * o->batch / ((double)(t.last - t.first) / 1e9);
    memcpy(p->first, t.ids, sizeof p->first);
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

/* A step reads the weights once, and keys and values of each request. */
static qn_code find_limits(limits *l, const qn_running *run, const bench_opts *o,
                           const double median_of[2], qn_err *err)
{
    static const quern_kv kv[] = {QUERN_KV_F16, QUERN_KV_F32, QUERN_KV_BF16};
    const uint32_t depth = (o->depth ? o->depth : o->prompt) + o->gen / 2;
    *l = (limits){.roof = {.size = sizeof l->roof}, .traffic = {.size = sizeof l->traffic}};
    QN_TRY(quern_model_traffic(&l->traffic, run->model, kv[o->run.kv], depth, err));
    if (!o->roofline) return QN_OK;
    quern_traffic step = l->traffic;
    step.kv_bytes *= o->batch;
    QN_TRY(quern_roofline(&l->roof, run->rt, 0, err));
    l->shares =
        qn_roofline_shares(&l->roof, &step, l->roof.threads, median_of[0], median_of[1] / o->batch);
    return QN_OK;
}

/* What one token costs by count: bytes read by a decoding step of one request, operations of a prompt. */
static bool add_cost(qn_json *root, const quern_traffic *t)
{
    qn_json *o = qn_json_new_object();
    bool ok = qn_json_set(o, "weight_bytes", qn_json_new_int((int64_t)t->weight_bytes));
    ok = qn_json_set(o, "kv_bytes", qn_json_new_int((int64_t)t->kv_bytes)) && ok;
    ok = qn_json_set(o, "prefill_ops", qn_json_new_int((int64_t)t->row_ops)) && ok;
    return qn_json_set(root, "token", o) && ok;
}

static bool add_limits(qn_json *root, const limits *l)
{
    const qn_shares *s = &l->shares;
    qn_json *o = qn_json_new_object();
    bool ok = qn_json_set(root, "roofline", qn_roofline_json(&l->roof));
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

/* The chosen word of the option's list. */
static qn_str activations_of(const bench_opts *o)
{
    qn_str rest = {"", 0}, word = {"", 0};
    for (const qn_opt *p = options; p->name; p++)
        if (strcmp(p->name, "activations") == 0) rest = qn_str_z(p->arg);
    for (int i = 0; i <= o->run.activations; i++)
        if (!qn_str_split(&word, &rest, '|')) break;
    return word;
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
    for (uint32_t i = 0; i < QN_BENCH_FIRST_IDS && i <= o->gen; i++)
        ok = ok && qn_json_push(ids, qn_json_new_int(passes[0].first[i]));
    const char *machine = quern_runtime_describe(run->rt);
    ok = ok && qn_json_set(root, "prefill_tps", qn_json_new_num(median_of[0]));
    ok = ok && qn_json_set(root, "decode_tps", qn_json_new_num(median_of[1]));
    ok = ok && qn_json_set(root, "load_ms", qn_json_new_num(run->load_ms));
    ok = ok && qn_json_set(root, "prompt", qn_json_new_int(o->prompt));
    ok = ok && qn_json_set(root, "gen", qn_json_new_int(o->gen));
    ok = ok && qn_json_set(root, "depth", qn_json_new_int(o->depth ? o->depth : o->prompt));
    ok = ok && qn_json_set(root, "machine", qn_json_new_str(machine, strlen(machine)));
    const qn_str mode = activations_of(o);
    ok = ok && qn_json_set(root, "activations", qn_json_new_str(mode.p, mode.n));
    ok = ok && qn_json_set(root, "batch", qn_json_new_int(o->batch));
    ok = qn_json_set(root, "ids", ids) && ok;
    ok = qn_json_set(root, "reps", reps) && ok;
    ok = add_cost(root, &l->traffic) && ok;
    if (o->roofline) ok = add_limits(root, l) && ok;
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
    bench_opts first = *o;
    if (o->warm && o->warm < o->prompt) first.prompt = o->warm;
    if (o->warm && o->warm < first.depth) first.depth = first.prompt;
    QN_TRY(one_pass(&unmeasured, run, &first, ids, err));
    for (uint32_t i = 0; i < o->reps; i++) QN_TRY(one_pass(&passes[i], run, o, ids, err));
    for (uint32_t i = 0; i < o->reps; i++) sorted[i] = passes[i].prefill_tps;
    median_of[0] = median(sorted, o->reps);
    for (uint32_t i = 0; i < o->reps; i++) sorted[i] = passes[i].decode_tps;
    median_of[1] = median(sorted, o->reps);
    QN_TRY(find_limits(&found, run, o, median_of, err));
    if (o->json) return qn_io_json(io, report(run, passes, o, median_of, &found), err);
    qn_io_print(io, "%s\nload %.0f ms\nprefill %u tokens: %.1f/s\ndecode %u tokens at depth %u",
                quern_runtime_describe(run->rt), run->load_ms, o->prompt, median_of[0], o->gen,
                o->depth ? o->depth : o->prompt);
    if (o->batch > 1) qn_io_print(io, ", %u requests", o->batch);
    qn_io_print(io, ": %.2f/s\n", median_of[1]);
    if (o->roofline) print_limits(io, &found);
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
    const qn_bench_ask ask = {.n = most, .gen = o->gen, .batch = o->batch, .chunk = o->run.chunk};
    const uint64_t positions = (uint64_t)most + qn_bench_room(&ask) + 15; /* as the peer's driver */
    if (!run_opts.context)
        run_opts.context = positions < UINT32_MAX ? (uint32_t)positions : UINT32_MAX;
    qn_interrupt_block();
    QN_TRY_OUT(qn_run_open(&run, &run_opts, o->batch, io, err));
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
                               "measure prefill and decode, or the machine itself",
                               "Made-up token ids are decoded greedily; one pass runs unmeasured "
                               "first. With --batch, requests\n"
                               "of the same prompt decode together, a row of each in every step. "
                               "`bench roofline` measures\n"
                               "how fast this machine reads its caches and memory and how much it "
                               "computes in registers; no model\n"
                               "is faster.",
                               options,
                               &defaults,
                               sizeof(bench_opts),
                               0,
                               1,
                               bench};
