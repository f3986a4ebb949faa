/* SPDX-License-Identifier: Apache-2.0 */
/* pairs_test.c - everything composes: every two features that can meet.
 *
 * A pair that WORKS gives a setup with both; its answer must have the bits of the same request alone,
 * cold, on one lane and in one chunk, and every feature must show that it took part. A pair without a
 * feature of scheduling meets all of them. A REFUSED pair must be refused as its line says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kit.h"
#include "promise/tape.h"

typedef enum feature {
#define X(id, kind, text) F_##id,
#include "features.def"
#undef X
    F_COUNT
} feature;

static const struct {
    const char *id, *kind;
} features[F_COUNT] = {
#define X(id, kind, text) {#id, #kind},
#include "features.def"
#undef X
};

typedef enum how { WORKS, REFUSED } how;

typedef struct pair {
    feature a, b;
    how how;
    const char *reason;
} pair;

static const pair pairs[] = {
#define X(a, b, how, reason) {F_##a, F_##b, how, reason},
#include "pairs.def"
#undef X
};

/* --- the table -------------------------------------------------------------------------------- */

static bool can_meet(int a, int b) { return strcmp(features[a].kind, features[b].kind) != 0; }

static bool is_pair(const pair *p, int a, int b)
{
    return ((int)p->a == a && (int)p->b == b) || ((int)p->a == b && (int)p->b == a);
}

/* What is wrong with a table: pairs that are missing, listed twice, of one kind, or refused without a
 * reason. The first fault is told in `text`. */
static uint32_t faults(const pair *table, size_t n, char text[160])
{
    uint32_t bad = 0;
    text[0] = 0;
    for (int a = 0; a < F_COUNT; a++)
        for (int b = a + 1; b < F_COUNT; b++) {
            uint32_t listed = 0;
            for (size_t i = 0; i < n; i++) listed += is_pair(&table[i], a, b);
            if (listed == can_meet(a, b)) continue;
            if (bad++ == 0)
                snprintf(text, 160, "%s and %s are listed %u times", features[a].id, features[b].id,
                         listed);
        }
    for (size_t i = 0; i < n; i++) {
        if (table[i].how == WORKS || strlen(table[i].reason) > 5) continue;
        if (bad++ == 0)
            snprintf(text, 160, "%s is refused without a reason", features[table[i].a].id);
    }
    return bad;
}

static void every_pair_is_listed_once_and_refusals_have_reasons(qt *t)
{
    char text[160];
    uint32_t refused = 0;
    QT_OKF(t, faults(pairs, QT_LEN(pairs), text) == 0, "%s", text);
    for (size_t i = 0; i < QT_LEN(pairs); i++) refused += pairs[i].how == REFUSED;
    printf("pairs of features: %zu, refused (debt): %u\n", QT_LEN(pairs), refused);
}

static void a_table_with_a_hole_or_a_bare_refusal_is_caught(qt *t)
{
    char text[160];
    pair *copy = malloc(sizeof pairs);
    memcpy(copy, pairs, sizeof pairs);
    QT_EQ(t, faults(copy, QT_LEN(pairs) - 1, text), 1);
    QT_OK(t, strstr(text, "listed 0 times") != NULL);
    copy[3].how = REFUSED;
    copy[3].reason = "";
    QT_EQ(t, faults(copy, QT_LEN(pairs), text), 1);
    QT_OK(t, strstr(text, "without a reason") != NULL);
    copy[3] = copy[4];
    QT_EQ(t, faults(copy, QT_LEN(pairs), text), 2);
    free(copy);
}

/* --- setups ----------------------------------------------------------------------------------- */

typedef struct setup {
    bool on[F_COUNT];
    const char *stop; /* a stop string, or NULL */
    uint32_t stop_id;
} setup;

enum { MIN_TOKENS = 3, BIASED = 50 };

/* Even ids hardly ever come. */
static const qn_request_bias *even_ids(void)
{
    static qn_request_bias b[BIASED];
    for (uint32_t i = 0; i < BIASED; i++) b[i] = (qn_request_bias){2 * i, -100.0f};
    return b;
}

static void shape_logits(qn_request_in *in, const setup *s)
{
    if (s->on[F_penalties]) { /* no token like one of the two before it */
        in->sampling.set |= QN_SET_REPETITION | QN_SET_PRESENCE | QN_SET_FREQUENCY |
                            QN_SET_REPETITION_CONTEXT | QN_SET_PRESENCE_CONTEXT;
        in->sampling.repetition_penalty = 1.2f;
        in->sampling.presence_penalty = 1000;
        in->sampling.frequency_penalty = 0.3f;
        in->sampling.repetition_context = 0;
        in->sampling.presence_context = 2;
    }
    if (s->on[F_bias]) {
        in->biases = even_ids();
        in->n_biases = BIASED;
    }
    if (s->on[F_min_tokens]) in->min_tokens = MIN_TOKENS;
    if (s->on[F_xtc]) {
        in->sampling.set |= QN_SET_XTC;
        in->sampling.xtc_probability = 0.7f;
        in->sampling.xtc_threshold = 0.02f;
    }
}

static const feature scheduling[] = {F_batch, F_chunks, F_threads, F_prefix};

static const char *model_name(const setup *s)
{
    if (s->on[F_mixed])
        return s->on[F_fmt_wide]     ? "gemma3/gguf-bf16"
               : s->on[F_fmt_k]      ? "gemma3/gguf-q4_k"
               : s->on[F_fmt_affine] ? "gemma3/mlx-b4-g32"
                                     : "gemma3/gguf-q4_0";
    return s->on[F_fmt_wide]     ? "gguf-f16"
           : s->on[F_fmt_k]      ? "gguf-q4_k"
           : s->on[F_fmt_affine] ? "mlx-b4-g32"
                                 : "gguf-q4_0";
}

static qn_kv_fmt kv_format(const setup *s)
{
    return s->on[F_kv_f32] ? QN_KV_F32 : s->on[F_kv_bf16] ? QN_KV_BF16 : QN_KV_F16;
}

enum { PROMPT = 150, NEW = 24, GIVEN = 5, WINDOW = 70, OTHERS = 5 };

typedef struct run { /* one setup, run; large */
    qn_model *model;
    qn_engine *engine;
    tape tape;
    tape_view seen;
    kit_call *call, *warm, *other[OTHERS];
} run;

static void end_run(run *r)
{
    qn_engine_close(r->engine);
    qn_model_unref(r->model);
    kit_call_free(r->call);
    kit_call_free(r->warm);
    for (int i = 0; i < OTHERS; i++) kit_call_free(r->other[i]);
    tape_fini(&r->tape);
    memset(r, 0, sizeof *r);
}

static qn_request_in subject(const setup *s, uint32_t ids[PROMPT + GIVEN], const qn_str *stop)
{
    kit_prompt(ids, PROMPT + GIVEN, 101, 1);
    qn_request_in in = kit_ask(ids, PROMPT, NEW);
    in.flags |= QN_REQUEST_IGNORE_EOS;
    if (s->on[F_sampled]) {
        kit_heat(&in, 0.9f, 99);
        in.sampling.set |= QN_SET_TOP_P | QN_SET_TOP_K | QN_SET_MIN_P;
        in.sampling.top_p = 0.95f;
        in.sampling.top_k = 50;
        in.sampling.min_p = 0.001f;
    }
    shape_logits(&in, s);
    if (s->on[F_choices]) in.n_choices = 3;
    if (s->on[F_logprobs]) in.logprobs = KIT_TOP;
    if (s->on[F_echo]) in.flags |= QN_REQUEST_ECHO | QN_REQUEST_PROMPT_LOGPROBS;
    if (s->on[F_resume]) {
        in.n_prompt = PROMPT;
        in.n_tokens = PROMPT + GIVEN;
    }
    if (s->on[F_stop] && s->stop) {
        in.stop_text = stop;
        in.n_stop_text = 1;
        in.stop_ids = &s->stop_id;
        in.n_stop_ids = 1;
    }
    return in;
}

static qn_code open_run(qt *t, run *r, const setup *s, qn_err *err)
{
    const kit_change change = {.window = s->on[F_window] ? WINDOW : 0};
    r->model = kit_model(t, model_name(s), change,
                         s->on[F_act_i8] ? QN_ACTIVATIONS_I8 : QN_ACTIVATIONS_F32);
    if (!r->model) return qn_fail(err, QN_E_NOTFOUND, "no model");
    const qn_engine_options o = {.lanes = s->on[F_threads] ? 2 : 1,
                                 .max_rows = s->on[F_chunks] ? 16 : 512,
                                 .max_seqs = 8,
                                 .kv_fmt = kv_format(s)};
    QN_TRY(qn_engine_open(&r->engine, r->model, &o, err));
    tape_follow(&r->tape, r->engine, 101, s->on[F_taps]);
    return QN_OK;
}

static void submit_others(qt *t, run *r)
{
    for (uint32_t i = 0; i < OTHERS; i++) {
        uint32_t ids[300];
        kit_prompt(ids, 40 + i * 50, 101, 50 + i);
        qn_request_in in = kit_ask(ids, 40 + i * 50, 60);
        kit_heat(&in, 1.0f, i);
        r->other[i] = kit_call_new();
        QT_EQ(t, kit_submit(r->other[i], r->engine, &in, NULL), QN_OK);
    }
}

static qn_code run_setup(qt *t, run *r, const setup *s, qn_err *err)
{
    uint32_t ids[PROMPT + GIVEN];
    const qn_str stop = {s->stop, s->stop ? strlen(s->stop) : 0};
    qn_request_in in = subject(s, ids, &stop);
    QN_TRY(open_run(t, r, s, err));
    if (s->on[F_prefix]) { /* leaves a prefix that ends inside a block */
        qn_request_in before = kit_ask(ids, 100, 40);
        r->warm = kit_call_new();
        kit_run(t, r->warm, r->engine, &before);
    }
    r->call = kit_call_new();
    if (s->on[F_batch]) submit_others(t, r);
    QN_TRY(kit_submit(r->call, r->engine, &in, err));
    kit_wait(r->call);
    for (int i = 0; s->on[F_batch] && i < OTHERS; i++) kit_wait(r->other[i]);
    tape_look(&r->seen, &r->tape, r->call->id);
    return r->call->failed ? qn_fail(err, (qn_code)r->call->error.code, "%s", r->call->message)
                           : QN_OK;
}

/* --- a pair that works ------------------------------------------------------------------------ */

static bool has_both_kinds(const qn_model *m)
{
    qn_group_desc g[QN_MAX_GROUPS];
    uint32_t map[QN_MAX_LAYERS];
    const uint32_t n = qn_model_groups(m, QN_KV_F16, g, map);
    return n == 2 && g[0].window < PROMPT && g[1].window < PROMPT && g[0].window != g[1].window;
}

static bool no_even_ids(const kit_choice *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->token[i].id % 2 == 0 && c->token[i].id < 2 * BIASED) return false;
    return c->n > 0;
}

static bool no_repeats(const kit_choice *c)
{
    for (uint32_t i = 1; i < c->n; i++)
        if (c->token[i].id == c->token[i - 1].id || (i > 1 && c->token[i].id == c->token[i - 2].id))
            return false;
    return c->n > 0;
}

static bool took_part(const run *r, const setup *s, feature f)
{
    const kit_choice *c = &r->call->choice[0];
    switch (f) {
    case F_batch:
        return r->seen.shared > 0;
    case F_chunks:
        return r->seen.widest <= 16 && r->seen.steps > 2 &&
               r->seen.steps * 16 >= PROMPT - c->end.usage.cached;
    case F_prefix:
        return s->on[F_echo] || c->end.usage.cached > 0;
    case F_stop:
        return c->end.finish == QN_FINISH_STOP;
    case F_choices:
        return r->call->choice[2].done && !r->call->choice[3].done;
    case F_logprobs:
        return c->token[0].n_top == KIT_TOP;
    case F_echo:
        return r->call->n_prompt == PROMPT && r->call->prompt[9].logprob < 0;
    case F_resume:
        return c->n > 0 && c->end.usage.completion == GIVEN + c->n;
    case F_taps:
        return r->seen.tap[PROMPT - 1] != 0;
    case F_window:
        return qn_model_get_desc(r->model)->window == WINDOW;
    case F_mixed:
        return has_both_kinds(r->model);
    case F_act_i8:
        return qn_model_activations(r->model) == QN_ACTIVATIONS_I8;
    case F_sampled:
        return c->end.seed == 99;
    case F_penalties:
        return no_repeats(c);
    case F_bias:
        return no_even_ids(c);
    case F_min_tokens:
        return c->end.usage.completion >= MIN_TOKENS;
    default:
        return c->n > 0;
    }
}

/* Choices have different tokens at one position, so they share the prompt's rows only. */
static void same_rows(qt *t, const tape_view *a, const tape_view *b, uint32_t positions,
                      const char *what)
{
    uint32_t both = 0;
    for (uint32_t i = 0; i < positions; i++) {
        if (a->logits[i] && b->logits[i]) {
            both++;
            if (!QT_OKF(t, a->logits[i] == b->logits[i], "%s: logits at %u differ", what, i))
                return;
        }
        if (a->tap[i] && b->tap[i])
            if (!QT_OKF(t, a->tap[i] == b->tap[i], "%s: hidden state at %u differs", what, i))
                return;
    }
    QT_OKF(t, both > 0, "%s: no rows to compare", what);
}

/* A stop string and id that the plain answer has in its middle; static text. */
static void choose_stop(qt *t, setup *s, char text[16])
{
    setup open = *s;
    static run r;
    qn_err err = {0};
    for (size_t i = 0; i < QT_LEN(scheduling); i++) open.on[scheduling[i]] = false;
    open.on[F_stop] = false;
    QT_OKF(t, run_setup(t, &r, &open, &err) == QN_OK, "%s", err.msg);
    if (r.call && r.call->choice[0].n > 12) {
        char *all = kit_text(r.call, 0, qn_model_tokenizer(r.model));
        size_t at = strlen(all) / 2, n = 1;
        while (at > 0 && ((unsigned char)all[at] & 0xC0) == 0x80) at--;
        while (((unsigned char)all[at + n] & 0xC0) == 0x80) n++;
        snprintf(text, 16, "%.*s", (int)n, all + at);
        s->stop = text;
        s->stop_id = r.call->choice[0].token[NEW - GIVEN - 2].id;
        qn_free(all);
    }
    end_run(&r);
}

static void check_works(qt *t, const pair *p)
{
    char what[96], text[16] = {0};
    setup s = {{false}, NULL, 0};
    static run solo, full; /* large; empty between pairs */
    qn_err err = {0};
    snprintf(what, sizeof what, "%s and %s", features[p->a].id, features[p->b].id);
    s.on[p->a] = s.on[p->b] = true;
    if (s.on[F_stop]) choose_stop(t, &s, text);
    setup alone = s;
    bool any = false;
    for (size_t i = 0; i < QT_LEN(scheduling); i++) {
        any |= s.on[scheduling[i]];
        alone.on[scheduling[i]] = false;
    }
    for (size_t i = 0; i < QT_LEN(scheduling) && !any; i++) s.on[scheduling[i]] = true;
    const qn_code a = run_setup(t, &solo, &alone, &err);
    QT_OKF(t, a == QN_OK, "%s, alone: %s", what, err.msg);
    const qn_code b = run_setup(t, &full, &s, &err);
    QT_OKF(t, b == QN_OK, "%s: %s", what, err.msg);
    const uint32_t shared = PROMPT + (s.on[F_resume] ? GIVEN : 0);
    if (a == QN_OK && b == QN_OK) {
        kit_same(t, solo.call, full.call, what);
        same_rows(t, &solo.seen, &full.seen, s.on[F_choices] ? shared : TAPE_POSITIONS, what);
        for (int f = 0; f < F_COUNT; f++)
            if (s.on[f])
                QT_OKF(t, took_part(&full, &s, (feature)f), "%s: no sign of %s", what,
                       features[f].id);
    }
    end_run(&solo);
    end_run(&full);
}

static void check_refused(qt *t, const pair *p)
{
    setup s = {{false}, NULL, 0};
    static run r;
    qn_err err = {0};
    s.on[p->a] = s.on[p->b] = true;
    const qn_code rc = run_setup(t, &r, &s, &err);
    QT_OKF(t, rc == QN_E_UNSUPPORTED && strstr(err.msg, p->reason),
           "%s and %s: '%s', expected a refusal: %s", features[p->a].id, features[p->b].id, err.msg,
           p->reason);
    end_run(&r);
}

/* One test a feature: its pairs with all that come later, so that a failure names its place. */
static void pairs_of(qt *t, feature f)
{
    uint32_t n = 0;
    for (size_t i = 0; i < QT_LEN(pairs); i++) {
        if (pairs[i].a != f) continue;
        n++;
        if (pairs[i].how == WORKS)
            check_works(t, &pairs[i]);
        else
            check_refused(t, &pairs[i]);
    }
    QT_OK(t, n > 0 || f == F_COUNT - 1);
}

#define X(id, kind, text) \
    static void pairs_of_##id(qt *t) { pairs_of(t, F_##id); }
#include "features.def"
#undef X

int main(int argc, char **argv)
{
    static const qt_case cases[] = {
        QT(every_pair_is_listed_once_and_refusals_have_reasons),
        QT(a_table_with_a_hole_or_a_bare_refusal_is_caught),
#define X(id, kind, text) QT(pairs_of_##id),
#include "features.def"
#undef X
    };
    return qt_run(cases, QT_LEN(cases), argc, argv);
}
