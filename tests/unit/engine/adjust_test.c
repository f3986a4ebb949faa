/* SPDX-License-Identifier: Apache-2.0 */
/* adjust_test.c - biases, penalties and barred ends, against the plain logits of the same history changed
 * by hand: the row that is drawn from must have these very bits, at every token. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

enum { VOCAB = 101, PROMPT = 40, NEW = 24 };

typedef struct rows { /* the last logit row of each step */
    float x[NEW + 1][VOCAB];
    uint32_t n;
} rows;

static void look(void *ctx, const qn_step *step, const uint64_t *request, const float *logits,
                 size_t ld)
{
    rows *r = ctx;
    (void)request;
    if (step->n_logits == 0 || r->n > NEW) return;
    memcpy(r->x[r->n++], logits + (step->n_logits - 1) * ld, sizeof r->x[0]);
}

typedef struct rig {
    qn_model *model;
    qn_engine *engine;
    rows rows;
} rig;

static rig *open_rig(qt *t, uint32_t chunk)
{
    rig *r = calloc(1, sizeof *r);
    qn_err err = {0};
    r->model = kit_model(t, "gguf-f16", (kit_change){0}, QN_ACTIVATIONS_F32);
    const qn_engine_options o = {.lanes = 1, .max_rows = chunk, .max_seqs = 8};
    QT_OKF(t, qn_engine_open(&r->engine, r->model, &o, &err) == QN_OK, "%s", err.msg);
    qn_engine_set_probe(r->engine, look, &r->rows);
    return r;
}

static void close_rig(rig *r)
{
    qn_engine_close(r->engine);
    qn_model_unref(r->model);
    free(r);
}

static uint32_t times(const uint32_t *ids, uint32_t n, uint32_t context, uint32_t token)
{
    uint32_t seen = 0;
    for (uint32_t i = context && context < n ? n - context : 0; i < n; i++) seen += ids[i] == token;
    return seen;
}

/* The rules, token by token, in the order bias, repetition, presence, frequency. */
static float changed(float x, uint32_t token, const uint32_t *ids, uint32_t n,
                     const qn_request_in *in)
{
    const qn_request_sampling *s = &in->sampling;
    for (size_t i = 0; i < in->n_biases; i++)
        if (in->biases[i].token == token) x = x + in->biases[i].bias;
    if (s->repetition_penalty > 0 && times(ids, n, s->repetition_context, token))
        x = x < 0 ? x * s->repetition_penalty : x / s->repetition_penalty;
    if (times(ids, n, s->presence_context, token)) x = x - s->presence_penalty;
    const float often = s->frequency_penalty * (float)times(ids, n, s->frequency_context, token);
    return times(ids, n, s->frequency_context, token) ? x - often : x;
}

static void penalise(qn_request_in *in, float repetition, float presence, float frequency,
                     const uint32_t context[3])
{
    in->sampling.set |= QN_SET_REPETITION | QN_SET_PRESENCE | QN_SET_FREQUENCY |
                        QN_SET_REPETITION_CONTEXT | QN_SET_PRESENCE_CONTEXT |
                        QN_SET_FREQUENCY_CONTEXT;
    in->sampling.repetition_penalty = repetition;
    in->sampling.presence_penalty = presence;
    in->sampling.frequency_penalty = frequency;
    in->sampling.repetition_context = context[0];
    in->sampling.presence_context = context[1];
    in->sampling.frequency_context = context[2];
}

/* Runs `in`, then each of its histories alone and plain, and compares rows. */
static void follows_the_rules(qt *t, uint32_t chunk, qn_request_in in, const char *what)
{
    rig *r = open_rig(t, chunk);
    kit_call *c = kit_call_new();
    uint32_t ids[PROMPT + NEW];
    memcpy(ids, in.tokens, PROMPT * sizeof *ids);
    kit_run(t, c, r->engine, &in);
    rows *got = malloc(sizeof *got);
    *got = r->rows;
    /* a prompt cut in chunks has steps without a draw, and these give no row */
    QT_EQ(t, got->n, NEW);
    for (uint32_t k = 0; k < NEW && k < c->choice[0].n; k++) {
        const uint32_t n = PROMPT + k;
        qn_request_in plain = kit_ask(ids, n, 1);
        kit_call *d = kit_call_new();
        r->rows.n = 0;
        kit_run(t, d, r->engine, &plain);
        uint32_t wrong = 0;
        for (uint32_t v = 0; v < VOCAB; v++) {
            const float want = changed(r->rows.x[0][v], v, ids, n, &in);
            wrong += memcmp(&want, &got->x[k][v], sizeof want) != 0;
        }
        QT_OKF(t, wrong == 0, "%s, token %u: %u logits differ", what, k, wrong);
        ids[n] = c->choice[0].token[k].id;
        kit_call_free(d);
    }
    free(got);
    kit_call_free(c);
    close_rig(r);
}

static void every_penalty_and_bias_follows_its_rule(qt *t)
{
    static const qn_request_bias biases[] = {{3, 4.5f}, {17, -100.0f}, {40, 2.0f}, {90, 0.25f}};
    static const uint32_t all[3] = {0, 0, 0}, short_[3] = {1, 7, 3}, usual[3] = {20, 20, 20},
                          mixed[3] = {0, 1000, 5};
    const struct {
        float repetition, presence, frequency;
        const uint32_t *context;
        size_t n_biases;
        float temperature;
        const char *what;
    } cases[] = {
        {1.3f, 0, 0, all, 0, 0, "repetition"},
        {0, 0.8f, 0, short_, 0, 0, "presence"},
        {0, 0, 0.4f, usual, 0, 1, "frequency"},
        {0.7f, -0.5f, -0.2f, usual, 0, 1, "rewards"},
        {0, 0, 0, usual, 4, 0, "biases"},
        {1.2f, 0.3f, 0.2f, mixed, 4, 0.8f, "all"},
        {1.1f, 0.1f, 0.1f, short_, 2, 0, "small windows"},
    };
    uint32_t ids[PROMPT];
    kit_prompt(ids, PROMPT, VOCAB, 3);
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        qn_request_in in = kit_ask(ids, PROMPT, NEW);
        in.flags |= QN_REQUEST_IGNORE_EOS;
        kit_heat(&in, cases[i].temperature, 5);
        penalise(&in, cases[i].repetition, cases[i].presence, cases[i].frequency, cases[i].context);
        in.biases = biases;
        in.n_biases = cases[i].n_biases;
        follows_the_rules(t, i % 2 ? 16 : 512, in, cases[i].what);
    }
}

/* A strong penalty over all leaves no token twice; without it greedy repeats itself. */
static void a_strong_penalty_forbids_repeats(qt *t)
{
    rig *r = open_rig(t, 64);
    uint32_t ids[PROMPT];
    kit_prompt(ids, PROMPT, VOCAB, 8);
    qn_request_in in = kit_ask(ids, PROMPT, NEW);
    in.flags |= QN_REQUEST_IGNORE_EOS;
    kit_call *plain = kit_call_new(), *strict = kit_call_new();
    kit_run(t, plain, r->engine, &in);
    penalise(&in, 0, 1000, 0, (const uint32_t[3]){0, 0, 0});
    kit_run(t, strict, r->engine, &in);
    uint32_t twice = 0, before = 0;
    for (uint32_t i = 0; i < NEW; i++)
        for (uint32_t k = 0; k < i; k++) {
            before += plain->choice[0].token[i].id == plain->choice[0].token[k].id;
            twice += strict->choice[0].token[i].id == strict->choice[0].token[k].id;
        }
    QT_OK(t, before > 0 && twice == 0);
    kit_call_free(plain);
    kit_call_free(strict);
    close_rig(r);
}

static void ends_cannot_come_before_min_tokens(qt *t)
{
    rig *r = open_rig(t, 64);
    uint32_t ids[PROMPT], n_ends = 0;
    const uint32_t *ends = qn_model_ends(r->model, &n_ends);
    kit_prompt(ids, PROMPT, VOCAB, 2);
    const uint32_t stop = 50;
    const qn_request_bias push[] = {{n_ends ? ends[0] : stop, 80.0f}, {stop, 60.0f}};
    qn_request_in in = kit_ask(ids, PROMPT, NEW);
    in.stop_ids = &stop;
    in.n_stop_ids = 1;
    in.biases = push;
    in.n_biases = n_ends && ends[0] != stop ? 2 : 1;
    kit_call *c[3];
    for (int i = 0; i < 3; i++) c[i] = kit_call_new();
    kit_run(t, c[0], r->engine, &in);
    QT_EQ(t, c[0]->choice[0].n, 1); /* the push makes it the first */
    in.min_tokens = 7;
    kit_run(t, c[1], r->engine, &in);
    QT_EQ(t, c[1]->choice[0].n, 8);
    QT_EQ(t, c[1]->choice[0].end.finish, QN_FINISH_STOP);
    for (uint32_t i = 0; i < 7; i++) {
        const uint32_t id = c[1]->choice[0].token[i].id;
        QT_OK(t, id != stop && (n_ends == 0 || id != ends[0]));
    }
    in.flags |= QN_REQUEST_IGNORE_EOS; /* then only the request's own id is barred */
    in.n_biases = 1;
    kit_run(t, c[2], r->engine, &in);
    QT_EQ(t, c[2]->choice[0].token[0].id, push[0].token);
    for (int i = 0; i < 3; i++) kit_call_free(c[i]);
    close_rig(r);
}

static void rows_with_other_windows_beside_them_do_not_differ(qt *t)
{
    rig *r = open_rig(t, 512);
    uint32_t ids[8][PROMPT];
    kit_call *alone[8], *together[8];
    for (uint32_t i = 0; i < 8; i++) {
        alone[i] = kit_call_new();
        together[i] = kit_call_new();
        kit_prompt(ids[i], PROMPT, VOCAB, 30 + i);
    }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < 8; i++) {
            qn_request_in in = kit_ask(ids[i], PROMPT, NEW);
            kit_heat(&in, 1.0f, i);
            penalise(&in, 1.2f, 0.1f, 0.1f, (const uint32_t[3]){0, i, 3 * i});
            in.min_tokens = i;
            in.sampling.set |= QN_SET_XTC;
            in.sampling.xtc_probability = 0.5f;
            in.sampling.xtc_threshold = 0.02f;
            if (pass == 0)
                kit_run(t, alone[i], r->engine, &in);
            else
                QT_EQ(t, kit_submit(together[i], r->engine, &in, NULL), QN_OK);
        }
    for (uint32_t i = 0; i < 8; i++) {
        kit_wait(together[i]);
        kit_same(t, alone[i], together[i], "together");
        kit_call_free(alone[i]);
        kit_call_free(together[i]);
    }
    close_rig(r);
}

enum { N = 6 };
typedef struct
    turns {         /* of each request: its last step and the longest wait between two of its own */
    uint64_t first; /* id of the first request that counts */
    uint32_t step, last[N], longest[N], widest;
} turns;

static void count_turns(void *ctx, const qn_step *step, const uint64_t *request,
                        const float *logits, size_t ld)
{
    turns *w = ctx;
    (void)logits, (void)ld;
    w->step++;
    if (step->n_logits > w->widest) w->widest = step->n_logits;
    for (uint32_t r = 0; r < step->n_rows; r++) {
        if (request[r] < w->first || request[r] >= w->first + N) continue;
        const uint64_t i = request[r] - w->first;
        if (w->last[i] && w->step - w->last[i] > w->longest[i])
            w->longest[i] = w->step - w->last[i];
        w->last[i] = w->step;
    }
}

/* A step holds the edits of two such rows: the others wait for the next one, and nobody for long. */
static void rows_without_room_for_their_edits_wait_in_turn(qt *t)
{
    qn_err err = {0};
    qn_model *m = kit_model(t, "gguf-f16", (kit_change){0}, QN_ACTIVATIONS_F32);
    qn_engine *e = NULL;
    const qn_engine_options o = {.lanes = 1, .max_rows = 512, .max_seqs = N, .edits = 1};
    uint32_t ids[PROMPT];
    turns w = {.first = 2};
    kit_call *alone = kit_call_new(), *c[N];
    QT_OKF(t, qn_engine_open(&e, m, &o, &err) == QN_OK, "%s", err.msg);
    qn_engine_set_probe(e, count_turns, &w);
    kit_prompt(ids, PROMPT, VOCAB, 77);
    qn_request_in in = kit_ask(ids, PROMPT, NEW);
    in.flags |= QN_REQUEST_IGNORE_EOS;
    penalise(&in, 1.2f, 0.1f, 0.1f, (const uint32_t[3]){0, 0, 0});
    kit_run(t, alone, e, &in);
    for (int i = 0; i < N; i++) {
        c[i] = kit_call_new();
        QT_EQ(t, kit_submit(c[i], e, &in, NULL), QN_OK);
    }
    for (int i = 0; i < N; i++) {
        kit_wait(c[i]);
        kit_same(t, alone, c[i], "in turn");
    }
    for (int i = 0; i < N; i++) {
        QT_OKF(t, w.longest[i] > 0 && w.longest[i] <= N, "request %d waited %u steps", i,
               w.longest[i]);
        kit_call_free(c[i]);
    }
    QT_OKF(t, w.widest <= 2, "%u rows in a step", w.widest);
    qn_engine_close(e);
    kit_call_free(alone);
    qn_model_unref(m);
}

QT_MAIN(QT(every_penalty_and_bias_follows_its_rule), QT(a_strong_penalty_forbids_repeats),
        QT(ends_cannot_come_before_min_tokens),
        QT(rows_with_other_windows_beside_them_do_not_differ),
        QT(rows_without_room_for_their_edits_wait_in_turn))
