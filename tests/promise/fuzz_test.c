/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_test.c - promise 1, drawn: batch mix, arrival, chunk size, lanes, instruction set, fusion, size of
 * the store and cancels by chance; each answer must be that of the request alone in a roomy, cold
 * engine. A cancelled one must be a prefix of it.
 *
 *     test_promise_fuzz [--draws N] [--seed S]      200 draws, seed 1
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/str.h"
#include "kit.h"

enum { VOCAB = 101, MODELS = 8, MAX_REQUESTS = 7, MAX_PROMPT = 260 };

static uint64_t n_draws = 200, first_seed = 1;

/* A small generator of our own, so that a draw can be repeated by its number. */
typedef struct dice {
    uint64_t s;
} dice;

static uint32_t roll(dice *d, uint32_t n)
{
    d->s += 0x9E3779B97F4A7C15u;
    uint64_t z = (d->s ^ d->s >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) % n);
}

typedef struct wish { /* one request of a draw */
    uint32_t ids[MAX_PROMPT], n, max_tokens, n_choices, cancel_after;
    float temperature;
    uint64_t seed;
    bool private_, logprobs, xtc;
    float repetition, presence, frequency;
    uint32_t context[3], min_tokens;
    qn_request_bias bias;
    int32_t priority;
} wish;

static const struct {
    const char *name;
    qn_act_mode act;
    uint32_t window;
} models[MODELS] = {
    {"gguf-f16", QN_ACTIVATIONS_F32, 0},          {"gguf-q4_0", QN_ACTIVATIONS_I8, 0},
    {"gguf-q4_k", QN_ACTIVATIONS_F32, 0},         {"mlx-b4-g64", QN_ACTIVATIONS_I16, 0},
    {"gguf-q8_0", QN_ACTIVATIONS_I8, 100},        {"gemma3/gguf-q4_0", QN_ACTIVATIONS_I8, 24},
    {"gemma3/gguf-bf16", QN_ACTIVATIONS_F32, 70}, {"gemma3/gguf-q8_0", QN_ACTIVATIONS_I16, 40},
};

/* Prompts share beginnings: one of three texts up to a random place, then their own. */
static void draw_wish(dice *d, wish *w)
{
    uint32_t own[MAX_PROMPT];
    w->n = 1 + roll(d, MAX_PROMPT);
    const uint32_t shared = roll(d, w->n + 1);
    kit_prompt(w->ids, w->n, VOCAB, 100 + roll(d, 3));
    kit_prompt(own, w->n, VOCAB, roll(d, 1u << 30));
    memcpy(w->ids + shared, own, (w->n - shared) * sizeof *own);
    w->max_tokens = roll(d, 40);
    w->n_choices = roll(d, 4) ? 1 : 1 + roll(d, 3);
    w->cancel_after = roll(d, 6) ? 0 : 1 + roll(d, 20);
    w->temperature = roll(d, 2) ? 0.0f : 0.3f + (float)roll(d, 10) / 8.0f;
    w->seed = roll(d, 1u << 30);
    w->private_ = roll(d, 8) == 0;
    w->logprobs = roll(d, 2);
    w->priority = (int32_t)roll(d, 3) - 1;
    w->xtc = roll(d, 4) == 0;
    w->repetition = roll(d, 3) ? 0.0f : 0.8f + (float)roll(d, 8) / 10.0f;
    w->presence = roll(d, 3) ? 0.0f : (float)roll(d, 9) / 4.0f - 1.0f;
    w->frequency = roll(d, 3) ? 0.0f : (float)roll(d, 9) / 8.0f - 0.5f;
    for (int i = 0; i < 3; i++) w->context[i] = roll(d, 2) ? roll(d, 100) : 0;
    w->min_tokens = roll(d, 4) ? 0 : roll(d, w->max_tokens + 1);
    w->bias = (qn_request_bias){roll(d, VOCAB), (float)roll(d, 7) - 3.0f};
}

static qn_request_in request_of(const wish *w)
{
    qn_request_in in = kit_ask(w->ids, w->n, w->max_tokens);
    kit_heat(&in, w->temperature, w->seed);
    in.n_choices = w->n_choices;
    in.logprobs = w->logprobs ? KIT_TOP : 0;
    in.priority = w->priority;
    in.sampling.set |= QN_SET_REPETITION | QN_SET_PRESENCE | QN_SET_FREQUENCY |
                       QN_SET_REPETITION_CONTEXT | QN_SET_PRESENCE_CONTEXT |
                       QN_SET_FREQUENCY_CONTEXT;
    in.sampling.repetition_penalty = w->repetition;
    in.sampling.presence_penalty = w->presence;
    in.sampling.frequency_penalty = w->frequency;
    in.sampling.repetition_context = w->context[0];
    in.sampling.presence_context = w->context[1];
    in.sampling.frequency_context = w->context[2];
    in.min_tokens = w->min_tokens;
    in.biases = &w->bias;
    in.n_biases = w->bias.bias != 0.0f;
    if (w->xtc) {
        in.sampling.set |= QN_SET_XTC;
        in.sampling.xtc_probability = 0.5f;
        in.sampling.xtc_threshold = 0.03f;
    }
    if (w->private_) in.flags |= QN_REQUEST_NO_CACHE;
    return in;
}

static qn_engine *open_engine(qt *t, qn_model *m, const qn_engine_options *o)
{
    qn_engine *e = NULL;
    qn_err err = {0};
    QT_OKF(t, qn_engine_open(&e, m, o, &err) == QN_OK, "%s", err.msg);
    return e;
}

/* Alone: what it gives without cancel, one lane, one chunk, no prefix. */
static kit_call *alone(qt *t, qn_engine *solo, const wish *w)
{
    qn_request_in in = request_of(w);
    kit_call *c = kit_call_new();
    in.flags |= QN_REQUEST_NO_CACHE;
    kit_run(t, c, solo, &in);
    return c;
}

static bool is_prefix(qt *t, const kit_call *whole, const kit_call *part, const char *what)
{
    for (uint32_t i = 0; i < KIT_CHOICES; i++) {
        const kit_choice *a = &whole->choice[i], *b = &part->choice[i];
        if (!QT_OKF(t, b->n <= a->n && b->done == a->done, "%s: cancelled after more than there is",
                    what))
            return false;
        for (uint32_t k = 0; k < b->n; k++)
            if (!QT_OKF(t,
                        a->token[k].id == b->token[k].id &&
                            a->token[k].logprob == b->token[k].logprob,
                        "%s: choice %u, token %u before a cancel", what, i, k))
                return false;
    }
    return true;
}

static qn_engine_options draw_options(dice *d)
{
    static const uint32_t isa[] = {0, 0, QN_CPU_NONE, QN_CPU_AVX2 | QN_CPU_FMA | QN_CPU_F16C};
    qn_engine_options o = {.lanes = 1 + roll(d, 3),
                           .isa_mask = isa[roll(d, 4)],
                           .max_rows = roll(d, 3) ? 1 + roll(d, 90) : 512,
                           .max_seqs = 1 + roll(d, 8),
                           .context = 320,
                           .kv_fmt = QN_KV_F16,
                           .no_fuse = roll(d, 4) == 0};
    return o;
}

/* Just enough for one sequence of the whole context, or a little more: the rest must wait or give way. */
static size_t tight_budget(dice *d, const qn_model *m)
{
    qn_group_desc g[QN_MAX_GROUPS];
    uint32_t map[QN_MAX_LAYERS];
    size_t block = 0;
    const uint32_t n = qn_model_groups(m, QN_KV_F16, g, map);
    for (uint32_t i = 0; i < n; i++)
        block += (size_t)2 * QN_KV_BLOCK * g[i].n_layers * g[i].n_kv_heads * g[i].head_dim * 2;
    return block * (5 + roll(d, 6));
}

static bool draw_once(qt *t, qn_model *m, qn_engine *solo, dice *d, uint64_t number,
                      uint64_t *tight)
{
    static wish w[MAX_REQUESTS];
    kit_call *call[MAX_REQUESTS], *want[MAX_REQUESTS];
    qn_engine_options o = draw_options(d);
    char what[96];
    bool ok = true;
    if (roll(d, 2)) o.kv_budget = tight_budget(d, m);
    const uint32_t n = 1 + roll(d, MAX_REQUESTS);
    qn_engine *e = open_engine(t, m, &o);
    if (!e) return false;
    for (uint32_t i = 0; i < n; i++) {
        draw_wish(d, &w[i]);
        want[i] = alone(t, solo, &w[i]);
        call[i] = kit_call_new();
        call[i]->cancel_after = w[i].cancel_after;
    }
    for (uint32_t i = 0; i < n; i++) {
        qn_request_in in = request_of(&w[i]);
        QT_EQ(t, kit_submit(call[i], e, &in, NULL), QN_OK);
        if (roll(d, 3) == 0) kit_wait_tokens(call[i], 1 + roll(d, 10)); /* arrivals */
    }
    for (uint32_t i = 0; i < n; i++) {
        kit_wait(call[i]);
        snprintf(what, sizeof what, "draw %" PRIu64 ", request %u", number, i);
        ok = QT_OKF(t, call[i]->order_faults == 0 && !call[i]->failed, "%s: %s", what,
                    call[i]->message) &&
             ok;
        ok = ok && (w[i].cancel_after ? is_prefix(t, want[i], call[i], what)
                                      : kit_same(t, want[i], call[i], what));
        kit_call_free(want[i]);
        kit_call_free(call[i]);
    }
    qn_engine_close(e);
    *tight += o.kv_budget != 0;
    return ok;
}

static void mixed_company_changes_nothing(qt *t)
{
    qn_model *m[MODELS];
    qn_engine *solo[MODELS];
    const qn_engine_options o = {
        .lanes = 1, .max_rows = 512, .max_seqs = 8, .context = 320, .kv_fmt = QN_KV_F16};
    uint64_t tight = 0;
    for (int i = 0; i < MODELS; i++) {
        m[i] =
            kit_model(t, models[i].name, (kit_change){.window = models[i].window}, models[i].act);
        solo[i] = m[i] ? open_engine(t, m[i], &o) : NULL;
        if (!solo[i]) return;
    }
    for (uint64_t k = 0; k < n_draws; k++) {
        dice d = {(first_seed + k) * 0xD1B54A32D192ED03u};
        const uint32_t i = roll(&d, MODELS);
        if (!draw_once(t, m[i], solo[i], &d, first_seed + k, &tight)) break;
    }
    QT_OK(t, n_draws < 10 || tight > 0);
    for (int i = 0; i < MODELS; i++) {
        qn_engine_close(solo[i]);
        qn_model_unref(m[i]);
    }
}

int main(int argc, char **argv)
{
    static const qt_case cases[] = {QT(mixed_company_changes_nothing)};
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t *at = strcmp(argv[i], "--draws") == 0  ? &n_draws
                       : strcmp(argv[i], "--seed") == 0 ? &first_seed
                                                        : NULL;
        if (!at || !qn_str_parse_u64(at, qn_str_z(argv[i + 1]))) {
            fprintf(stderr, "usage: test_promise_fuzz [--draws N] [--seed S]\n");
            return 2;
        }
    }
    return qt_run(cases, QT_LEN(cases), 1, argv);
}
