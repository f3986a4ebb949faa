/* SPDX-License-Identifier: Apache-2.0 */
/* engine_test.c - requests from their first check to their last event, on a tiny model. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/stops.h"
#include "kit.h"

enum { VOCAB = 101 };

typedef struct rig {
    qn_model *model;
    qn_engine *engine;
} rig;

static qn_engine_options plain(void)
{
    return (qn_engine_options){.lanes = 1, .max_rows = 64, .max_seqs = 8, .kv_fmt = QN_KV_F16};
}

static rig open_rig(qt *t, qn_engine_options opt)
{
    rig r = {.model = kit_model(t, "gguf-f32", (kit_change){.context = 512, .poison = 7},
                                QN_ACTIVATIONS_F32)};
    qn_err err = {0};
    const qn_code rc = r.model ? qn_engine_open(&r.engine, r.model, &opt, &err) : QN_E_NOTFOUND;
    QT_OKF(t, rc == QN_OK, "%s", err.msg);
    return r;
}

static void close_rig(rig *r)
{
    qn_engine_close(r->engine);
    qn_model_unref(r->model);
    *r = (rig){0};
}

/* Id 7 is poisoned: no prompt has it but those that want to fail. */
static void prompt(uint32_t *ids, uint32_t n, uint64_t seed)
{
    kit_prompt(ids, n, VOCAB, seed);
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == 7) ids[i] = 8;
}

static qn_request_in ask(const uint32_t *ids, uint32_t n, uint32_t max_tokens)
{
    qn_request_in in = kit_ask(ids, n, max_tokens);
    in.flags |= QN_REQUEST_IGNORE_EOS;
    return in;
}

/* --- one request ------------------------------------------------------------------------------ */

static void a_greedy_request_counts_what_it_did(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[100];
    prompt(ids, 100, 1);
    qn_request_in in = ask(ids, 100, 40);
    in.id = 4711;
    kit_call *a = kit_call_new(), *b = kit_call_new();
    kit_run(t, a, r.engine, &in);
    const qn_event_done *d = &a->choice[0].end;
    QT_OK(t, a->choice[0].done && d->finish == QN_FINISH_LENGTH && d->stop_text == QN_NO_STOP);
    QT_OK(t, d->head.request == 4711 && d->head.index == 40 && a->choice[0].n == 40);
    QT_OK(t, d->usage.prompt == 100 && d->usage.cached == 0 && d->usage.completion == 40);
    for (int i = 0; i < 40; i++)
        QT_OK(t, a->choice[0].token[i].id < VOCAB && a->choice[0].token[i].flags == 0);
    kit_run(t, b, r.engine, &in);
    QT_EQ(t, b->choice[0].end.usage.cached, 99);
    QT_OK(t, b->choice[0].end.numerics == d->numerics);
    kit_same(t, a, b, "cold and cached");
    qn_engine_stats s;
    do qn_engine_get_stats(r.engine, &s);
    while (s.running > 0 || s.completion_tokens < 80);
    QT_OK(t, s.completion_tokens == 80 && s.prompt_tokens == 101 && s.cached_tokens == 99 &&
                 s.waiting == 0);
    QT_EQ(t, s.cache.in_use, 0);
    kit_call_free(a);
    kit_call_free(b);
    close_rig(&r);
}

static void a_seed_names_the_completion_and_is_returned(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[10];
    prompt(ids, 10, 2);
    qn_request_in in = ask(ids, 10, 40);
    kit_call *c[4];
    for (int i = 0; i < 4; i++) c[i] = kit_call_new();
    kit_heat(&in, 1.0f, 77);
    kit_run(t, c[0], r.engine, &in);
    kit_run(t, c[1], r.engine, &in);
    kit_same(t, c[0], c[1], "same seed");
    QT_EQ(t, c[0]->choice[0].end.seed, 77);
    in.sampling.has_seed = 0;
    in.sampling.seed = 0;
    kit_run(t, c[2], r.engine, &in);
    kit_heat(&in, 1.0f, c[2]->choice[0].end.seed);
    kit_run(t, c[3], r.engine, &in);
    kit_same(t, c[2], c[3], "seed that was drawn");
    QT_OK(t, c[2]->choice[0].end.seed != 77);
    uint32_t equal = 0;
    for (int i = 0; i < 40; i++)
        equal += c[0]->choice[0].token[i].id == c[2]->choice[0].token[i].id;
    QT_OK(t, equal < 40);
    for (int i = 0; i < 4; i++) kit_call_free(c[i]);
    close_rig(&r);
}

static void the_context_is_the_end(qt *t)
{
    qn_engine_options o = plain();
    o.context = 100;
    rig r = open_rig(t, o);
    uint32_t ids[101];
    prompt(ids, 101, 3);
    qn_request_in in = ask(ids, 90, 50);
    kit_call *c = kit_call_new();
    kit_run(t, c, r.engine, &in);
    QT_OK(t, c->choice[0].n == 10 && c->choice[0].end.finish == QN_FINISH_LENGTH);
    qn_err err = {0};
    in = ask(ids, 100, 1);
    kit_call *d = kit_call_new();
    QT_EQ(t, kit_submit(d, r.engine, &in, &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "tokens") && strstr(err.msg, "100"));
    in = ask(ids, 100, 0); /* nothing to generate: the prompt alone may fill it */
    kit_run(t, d, r.engine, &in);
    QT_OK(t, d->choice[0].n == 0 && d->choice[0].end.finish == QN_FINISH_LENGTH);
    kit_call_free(c);
    kit_call_free(d);
    close_rig(&r);
}

static void a_stop_id_ends_and_is_marked(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[10];
    prompt(ids, 10, 4);
    qn_request_in in = ask(ids, 10, 30);
    kit_heat(&in, 1.0f, 5);
    kit_call *c[3];
    for (int i = 0; i < 3; i++) c[i] = kit_call_new();
    kit_run(t, c[0], r.engine, &in);
    const uint32_t stop = c[0]->choice[0].token[12].id;
    uint32_t first = 0;
    while (c[0]->choice[0].token[first].id != stop) first++;
    in.stop_ids = &stop;
    in.n_stop_ids = 1;
    kit_run(t, c[1], r.engine, &in);
    QT_OK(t, c[1]->choice[0].n == first + 1 && c[1]->choice[0].end.finish == QN_FINISH_STOP);
    QT_OK(t, c[1]->choice[0].token[first].flags == QN_EVENT_IS_STOP);
    QT_EQ(t, c[1]->choice[0].end.usage.completion, first + 1);
    in.min_tokens = first + 2; /* not before: the id is not drawn at all */
    kit_run(t, c[2], r.engine, &in);
    QT_OK(t, c[2]->choice[0].n > first + 2 || c[2]->choice[0].n == 30);
    for (uint32_t i = 0; i < first + 2; i++) QT_OK(t, c[2]->choice[0].token[i].id != stop);
    for (int i = 0; i < 3; i++) kit_call_free(c[i]);
    close_rig(&r);
}

/* Every stop string that the text offers: nothing of it is shown, all before it is. */
static void a_stop_string_never_shows(qt *t)
{
    rig r = open_rig(t, plain());
    const qn_tokenizer *tok = qn_model_tokenizer(r.model);
    uint32_t ids[10];
    prompt(ids, 10, 5);
    qn_request_in in = ask(ids, 10, 24);
    kit_heat(&in, 1.0f, 6);
    kit_call *whole = kit_call_new();
    kit_run(t, whole, r.engine, &in);
    char *text = kit_text(whole, 0, tok);
    const size_t len = strlen(text);
    for (size_t begin = 0; begin < len; begin++) {
        for (size_t n = 1; n <= 5 && begin + n <= len; n += 2) {
            if (((unsigned char)text[begin] & 0xC0) == 0x80 ||
                ((unsigned char)text[begin + n] & 0xC0) == 0x80)
                continue; /* stop strings are UTF-8 */
            const qn_str stops[] = {{"\x01never", 6}, {text + begin, n}};
            in.stop_text = stops;
            in.n_stop_text = 2;
            kit_call *c = kit_call_new();
            kit_run(t, c, r.engine, &in);
            char *shown = kit_text(c, 0, tok);
            char stop[8] = {0};
            memcpy(stop, text + begin, n);
            const size_t want = (size_t)(strstr(text, stop) - text);
            QT_OKF(t, strlen(shown) == want && memcmp(shown, text, want) == 0,
                   "stop '%s' in '%s': '%s'", stop, text, shown);
            QT_OK(t, c->choice[0].end.finish == QN_FINISH_STOP && c->choice[0].end.stop_text == 1);
            QT_EQ(t, c->choice[0].end.usage.completion, c->choice[0].n);
            qn_free(shown);
            kit_call_free(c);
        }
    }
    qn_free(text);
    kit_call_free(whole);
    close_rig(&r);
}

static void held_text_is_released_at_the_end(qt *t)
{
    rig r = open_rig(t, plain());
    const qn_tokenizer *tok = qn_model_tokenizer(r.model);
    uint32_t ids[10];
    prompt(ids, 10, 5);
    qn_request_in in = ask(ids, 10, 24);
    kit_heat(&in, 1.0f, 6);
    kit_call *a = kit_call_new(), *b = kit_call_new();
    kit_run(t, a, r.engine, &in);
    char *text = kit_text(a, 0, tok), stop[256];
    const size_t from = strlen(text) - 3;
    size_t begin = from;
    while (((unsigned char)text[begin] & 0xC0) == 0x80) begin--;
    snprintf(stop, sizeof stop, "%s~", text + begin); /* its last letter never comes */
    const qn_str stops[] = {{stop, strlen(stop)}};
    in.stop_text = stops;
    in.n_stop_text = 1;
    kit_run(t, b, r.engine, &in);
    char *shown = kit_text(b, 0, tok);
    QT_STR(t, shown, text);
    QT_OK(t, b->choice[0].n == 24 && b->choice[0].end.finish == QN_FINISH_LENGTH);
    qn_free(text);
    qn_free(shown);
    kit_call_free(a);
    kit_call_free(b);
    close_rig(&r);
}

static void end_of_text_ends_unless_ignored(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[10], ended = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        prompt(ids, 10, 6);
        qn_request_in in = kit_ask(ids, 10, 100);
        kit_heat(&in, 3.0f, seed);
        kit_call *a = kit_call_new(), *b = kit_call_new();
        kit_run(t, a, r.engine, &in);
        in.flags |= QN_REQUEST_IGNORE_EOS;
        kit_run(t, b, r.engine, &in);
        QT_EQ(t, b->choice[0].n, 100);
        if (a->choice[0].end.finish == QN_FINISH_STOP) {
            const uint32_t n = a->choice[0].n;
            ended++;
            QT_OK(t, a->choice[0].token[n - 1].id == 1 &&
                         a->choice[0].token[n - 1].flags == QN_EVENT_IS_STOP);
            QT_OK(t, b->choice[0].token[n - 1].id == 1 && b->choice[0].token[n - 1].flags == 0);
        }
        kit_call_free(a);
        kit_call_free(b);
    }
    QT_OK(t, ended > 0);
    close_rig(&r);
}

static void logprobs_add_up(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[10];
    prompt(ids, 10, 8);
    qn_request_in in = ask(ids, 10, 30);
    in.logprobs = KIT_TOP;
    kit_call *c = kit_call_new();
    kit_run(t, c, r.engine, &in);
    for (uint32_t i = 0; i < 30; i++) {
        const kit_token *k = &c->choice[0].token[i];
        QT_OK(t, k->flags == QN_EVENT_HAS_LOGPROB && k->n_top == KIT_TOP);
        QT_OK(t, k->top[0].token == k->id && k->top[0].logprob == k->logprob); /* greedy */
        double mass = 0;
        for (uint32_t j = 0; j < KIT_TOP; j++) {
            mass += exp((double)k->top[j].logprob);
            QT_OK(t, j == 0 || k->top[j].logprob <= k->top[j - 1].logprob);
        }
        QT_OK(t, mass > 0 && mass < 1.0 + 1e-5);
    }
    kit_call_free(c);
    close_rig(&r);
}

/* The prompt's logprobs are those that the same tokens have when they are generated. */
static void prompt_logprobs_are_those_of_a_completion(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[60];
    prompt(ids, 10, 9);
    qn_request_in in = ask(ids, 10, 50);
    in.logprobs = KIT_TOP;
    kit_call *a = kit_call_new(), *b = kit_call_new();
    kit_run(t, a, r.engine, &in);
    for (uint32_t i = 0; i < 50; i++) ids[10 + i] = a->choice[0].token[i].id;
    in = ask(ids, 60, 0);
    in.logprobs = KIT_TOP;
    in.flags |= QN_REQUEST_PROMPT_LOGPROBS | QN_REQUEST_ECHO;
    kit_run(t, b, r.engine, &in);
    QT_OK(t, b->n_prompt == 60 && b->choice[0].n == 0);
    QT_OK(t, b->prompt[0].flags == QN_EVENT_OF_PROMPT && b->prompt[0].n_top == 0);
    for (uint32_t i = 0; i < 50 && b->n_prompt == 60; i++) {
        const kit_token *x = &a->choice[0].token[i], *y = &b->prompt[10 + i];
        QT_OK(t, x->id == y->id && x->logprob == y->logprob && x->n_top == y->n_top);
        QT_OK(t, memcmp(x->top, y->top, sizeof x->top) == 0);
        QT_EQ(t, y->flags, QN_EVENT_OF_PROMPT | QN_EVENT_HAS_LOGPROB);
    }
    kit_call_free(a);
    kit_call_free(b);
    close_rig(&r);
}

static void a_resumed_request_goes_on_with_the_same_tokens(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[60];
    prompt(ids, 20, 10);
    qn_request_in in = ask(ids, 20, 40);
    kit_heat(&in, 1.0f, 11);
    kit_call *a = kit_call_new(), *b = kit_call_new();
    kit_run(t, a, r.engine, &in);
    for (uint32_t i = 0; i < 15; i++) ids[20 + i] = a->choice[0].token[i].id;
    in.n_tokens = 35;
    in.n_prompt = 20;
    kit_run(t, b, r.engine, &in);
    QT_EQ(t, b->choice[0].n, 25);
    for (uint32_t i = 0; i < 25; i++)
        QT_EQ(t, b->choice[0].token[i].id, a->choice[0].token[15 + i].id);
    QT_OK(t, b->choice[0].end.usage.completion == 40 && b->choice[0].end.usage.prompt == 20);
    kit_call_free(a);
    kit_call_free(b);
    close_rig(&r);
}

/* --- choices ---------------------------------------------------------------------------------- */

static void choices_are_the_same_forked_or_in_turn(qt *t)
{
    uint32_t ids[90];
    prompt(ids, 90, 12);
    kit_call *c[3];
    for (int k = 0; k < 3; k++) {
        qn_engine_options o = plain();
        o.max_seqs = k == 0 ? 8 : k == 1 ? 1 : 3;
        rig r = open_rig(t, o);
        qn_request_in in = ask(ids, 90, 30);
        in.n_choices = 5;
        kit_heat(&in, 1.0f, 13);
        c[k] = kit_call_new();
        kit_run(t, c[k], r.engine, &in);
        close_rig(&r);
    }
    kit_same(t, c[0], c[1], "forked and one by one");
    kit_same(t, c[0], c[2], "forked and by threes");
    uint32_t equal = 0;
    for (uint32_t i = 0; i < 30; i++)
        equal += c[0]->choice[0].token[i].id == c[0]->choice[1].token[i].id;
    QT_OK(t, equal < 30);
    for (int k = 0; k < 3; k++) kit_call_free(c[k]);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void refusals_name_the_field(qt *t)
{
    rig r = open_rig(t, plain());
    const uint32_t ids[] = {5, 6}, bad_id[] = {5, VOCAB};
    const qn_request_bias bias = {VOCAB, 1.0f};
    const qn_str adapter = {"x", 1};
    const qn_request_media medium = {.begin = 0, .end = 1};
    struct {
        qn_request_in in;
        qn_code code;
        const char *word;
    } bad[7];
    for (size_t i = 0; i < QT_LEN(bad); i++)
        bad[i].in = ask(ids, 2, 4), bad[i].code = QN_E_UNSUPPORTED;
    bad[0].in.tokens = bad_id, bad[0].code = QN_E_INVAL, bad[0].word = "tokens";
    bad[1].in.biases = &bias, bad[1].in.n_biases = 1, bad[1].word = "logit_bias";
    bad[1].code = QN_E_INVAL;
    bad[2].in.adapters = &adapter, bad[2].in.n_adapters = 1, bad[2].word = "adapters";
    bad[3].in.media = &medium, bad[3].in.n_media = 1, bad[3].word = "media";
    bad[4].in.sampling.set |= QN_SET_XTC, bad[4].in.sampling.xtc_threshold = 0.6f;
    bad[4].code = QN_E_INVAL, bad[4].word = "xtc_threshold";
    bad[5].in.stop_ids = bad_id + 1, bad[5].in.n_stop_ids = 1, bad[5].code = QN_E_INVAL;
    bad[5].word = "stop_ids";
    bad[6].in.credits = 8, bad[6].word = "credits";
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        kit_call *c = kit_call_new();
        qn_err err = {0};
        QT_EQ(t, kit_submit(c, r.engine, &bad[i].in, &err), bad[i].code);
        QT_OKF(t, strstr(err.msg, bad[i].word) != NULL, "'%s' does not name %s", err.msg,
               bad[i].word);
        QT_EQ(t, c->n_events, 0);
        kit_call_free(c);
    }
    uint64_t id = 9;
    QT_EQ(t, qn_engine_submit(&id, r.engine, "nonsense", 8, NULL, NULL, NULL), QN_E_FORMAT);
    QT_EQ(t, id, 0);
    close_rig(&r);
}

static void neutral_values_are_nothing_to_refuse(qt *t)
{
    rig r = open_rig(t, plain());
    const uint32_t ids[] = {5, 6};
    qn_request_in in = ask(ids, 2, 4);
    in.sampling.set |= QN_SET_REPETITION | QN_SET_PRESENCE | QN_SET_FREQUENCY | QN_SET_XTC;
    in.sampling.repetition_penalty = 1.0f;
    kit_call *c = kit_call_new();
    kit_run(t, c, r.engine, &in);
    QT_EQ(t, c->choice[0].n, 4);
    kit_call_free(c);
    close_rig(&r);
}

static void open_refuses_what_it_cannot_hold(qt *t)
{
    rig r = open_rig(t, plain());
    qn_engine *e = NULL;
    qn_err err = {0};
    qn_engine_options o = plain();
    o.context = 513;
    QT_EQ(t, qn_engine_open(&e, r.model, &o, &err), QN_E_LIMIT);
    QT_OK(t, e == NULL && strstr(err.msg, "context"));
    o = plain();
    o.kv_budget = 10;
    QT_EQ(t, qn_engine_open(&e, r.model, &o, &err), QN_E_LIMIT);
    o.kv_budget = 100 << 10;
    o.context = 512;
    QT_EQ(t, qn_engine_open(&e, r.model, &o, &err), QN_E_LIMIT);
    QT_OKF(t, e == NULL && strstr(err.msg, "KV budget"), "%s", err.msg);
    o = plain();
    o.max_seqs = 1 << 20;
    QT_EQ(t, qn_engine_open(&e, r.model, &o, &err), QN_E_LIMIT);
    o = plain();
    o.max_rows = 1 << 30;
    QT_EQ(t, qn_engine_open(&e, r.model, &o, &err), QN_E_LIMIT);
    close_rig(&r);
}

static void open_survives_every_failed_allocation(qt *t)
{
    rig r = open_rig(t, plain());
    const qn_engine_options o = plain();
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 256; n++) {
        qn_engine *e = NULL;
        qn_alloc_fail_after(n);
        rc = qn_engine_open(&e, r.model, &o, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && e == NULL));
        qn_engine_close(e);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    close_rig(&r);
}

static void submit_survives_every_failed_allocation(qt *t)
{
    rig r = open_rig(t, plain());
    const uint32_t ids[] = {5, 6, 9};
    const qn_str stop = {"zz", 2};
    qn_request_in in = ask(ids, 3, 4);
    in.stop_text = &stop;
    in.n_stop_text = 1;
    in.flags |= QN_REQUEST_PROMPT_LOGPROBS;
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        kit_call *c = kit_call_new();
        const size_t before = qn_alloc_live();
        qn_alloc_fail_after(n);
        rc = kit_submit(c, r.engine, &in, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || rc == QN_E_NOMEM);
        if (rc == QN_OK)
            kit_wait(c);
        else
            QT_EQ(t, qn_alloc_live(), before);
        kit_call_free(c);
    }
    QT_EQ(t, rc, QN_OK);
    close_rig(&r);
}

/* --- many ------------------------------------------------------------------------------------- */

static void one_row_without_numbers_fails_alone(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[40], bad[40];
    prompt(ids, 40, 14);
    prompt(bad, 40, 15);
    bad[20] = 7;
    qn_request_in good = ask(ids, 40, 30), ill = ask(bad, 40, 30);
    kit_call *alone = kit_call_new(), *a = kit_call_new(), *b = kit_call_new();
    kit_run(t, alone, r.engine, &good);
    QT_EQ(t, kit_submit(b, r.engine, &ill, NULL), QN_OK);
    QT_EQ(t, kit_submit(a, r.engine, &good, NULL), QN_OK);
    kit_wait(a);
    kit_wait(b);
    QT_OK(t, b->failed && b->error.code == QN_E_FORMAT && strstr(b->message, "logit"));
    QT_OKF(t, strstr(b->message, "the model's token_embd.weight holds values"), "%s", b->message);
    kit_same(t, alone, a, "beside a failure");
    kit_call_free(alone);
    kit_call_free(a);
    kit_call_free(b);
    close_rig(&r);
}

static void a_small_store_makes_all_wait_and_none_differ(qt *t)
{
    enum { N = 6 };
    rig roomy = open_rig(t, plain());
    qn_engine_options o = plain();
    /* 9 blocks: one request may reach the context, six of five blocks each cannot stay. */
    o.context = 512;
    o.kv_budget = 9u * QN_KV_BLOCK * 2 * 2 * 2 * 16 * 2; /* layers, K and V, heads, dim, bytes */
    rig tight = open_rig(t, o);
    kit_call *want[N], *got[N];
    uint32_t ids[N][200];
    for (uint32_t i = 0; i < N; i++) {
        want[i] = kit_call_new();
        got[i] = kit_call_new();
        prompt(ids[i], 150 + i * 10, 20 + i);
        qn_request_in in = ask(ids[i], 150 + i * 10, 150);
        kit_heat(&in, 1.0f, i);
        kit_run(t, want[i], roomy.engine, &in);
        QT_EQ(t, kit_submit(got[i], tight.engine, &in, NULL), QN_OK);
    }
    for (uint32_t i = 0; i < N; i++) {
        kit_wait(got[i]);
        QT_EQ(t, got[i]->order_faults, 0);
        kit_same(t, want[i], got[i], "tight store");
        kit_call_free(want[i]);
        kit_call_free(got[i]);
    }
    qn_engine_stats s;
    qn_engine_get_stats(tight.engine, &s);
    QT_OK(t, s.cache.evictions > 0);
    close_rig(&roomy);
    close_rig(&tight);
}

static void the_higher_priority_goes_first(qt *t)
{
    qn_engine_options o = plain();
    o.max_seqs = 1;
    rig r = open_rig(t, o);
    uint32_t ids[3][30];
    kit_call *c[3];
    for (int i = 0; i < 3; i++) {
        prompt(ids[i], 30, 30 + (uint64_t)i);
        c[i] = kit_call_new();
    }
    qn_request_in first = ask(ids[0], 30, 150), low = ask(ids[1], 30, 30),
                  high = ask(ids[2], 30, 150);
    high.priority = 5;
    QT_EQ(t, kit_submit(c[0], r.engine, &first, NULL), QN_OK);
    QT_EQ(t, kit_submit(c[1], r.engine, &low, NULL), QN_OK);
    QT_EQ(t, kit_submit(c[2], r.engine, &high, NULL), QN_OK);
    kit_wait_tokens(c[1], 1);
    QT_OK(t, c[2]->choice[0].done || c[0]->choice[0].n < 150);
    for (int i = 0; i < 3; i++) {
        kit_wait(c[i]);
        kit_call_free(c[i]);
    }
    close_rig(&r);
}

static void a_full_queue_says_again(qt *t)
{
    qn_engine_options o = plain();
    o.max_seqs = 1;
    o.queue = 2;
    rig r = open_rig(t, o);
    uint32_t ids[400];
    prompt(ids, 400, 40);
    qn_request_in in = ask(ids, 400, 100);
    kit_call *c[40];
    uint32_t taken = 0, refused = 0;
    for (int i = 0; i < 40; i++) {
        qn_err err = {0};
        c[i] = kit_call_new();
        const qn_code rc = kit_submit(c[i], r.engine, &in, &err);
        taken += rc == QN_OK;
        refused += rc == QN_E_AGAIN;
        if (rc == QN_E_AGAIN) QT_OK(t, strstr(err.msg, "queue") != NULL);
    }
    QT_OK(t, taken >= 2 && refused > 0 && taken + refused == 40);
    for (int i = 0; i < 40; i++) {
        if (i > 3) qn_engine_cancel(r.engine, c[i]->id);
        kit_wait(c[i]);
        kit_call_free(c[i]);
    }
    close_rig(&r);
}

/* --- cancel ----------------------------------------------------------------------------------- */

static void cancel_ends_a_running_and_a_waiting_request(qt *t)
{
    qn_engine_options o = plain();
    o.max_seqs = 1;
    rig r = open_rig(t, o);
    uint32_t ids[30];
    prompt(ids, 30, 50);
    qn_request_in in = ask(ids, 30, 150);
    kit_call *a = kit_call_new(), *b = kit_call_new(), *c = kit_call_new();
    a->cancel_after = 5; /* from inside an event */
    in.n_choices = 3;
    QT_EQ(t, kit_submit(a, r.engine, &in, NULL), QN_OK);
    QT_EQ(t, kit_submit(b, r.engine, &in, NULL), QN_OK);
    qn_engine_cancel(r.engine, b->id);
    qn_engine_cancel(r.engine, 999999);
    kit_wait(a);
    kit_wait(b);
    for (int i = 0; i < 3; i++) {
        QT_OK(t, a->choice[i].end.finish == QN_FINISH_CANCELLED && a->choice[i].n <= 6);
        QT_EQ(t, b->choice[i].end.finish, QN_FINISH_CANCELLED);
    }
    QT_EQ(t, a->choice[0].n, 5);
    QT_OK(t, a->order_faults == 0 && b->order_faults == 0);
    in.n_choices = 1;
    kit_run(t, c, r.engine, &in);
    QT_EQ(t, c->choice[0].n, 150);
    kit_call_free(a);
    kit_call_free(b);
    kit_call_free(c);
    close_rig(&r);
}

static void close_ends_everything_that_runs(qt *t)
{
    rig r = open_rig(t, plain());
    uint32_t ids[300];
    prompt(ids, 300, 60);
    qn_request_in in = ask(ids, 300, 150);
    kit_call *c[12];
    for (int i = 0; i < 12; i++) {
        c[i] = kit_call_new();
        QT_EQ(t, kit_submit(c[i], r.engine, &in, NULL), QN_OK);
    }
    kit_wait_tokens(c[0], 1);
    qn_engine_close(r.engine);
    r.engine = NULL;
    for (int i = 0; i < 12; i++) {
        QT_OK(t, c[i]->choice[0].done && c[i]->order_faults == 0);
        kit_call_free(c[i]);
    }
    close_rig(&r);
}

/* --- threads ---------------------------------------------------------------------------------- */

typedef struct caller {
    pthread_t thread;
    qn_engine *engine;
    kit_call *call[6];
    uint32_t seed, ended;
} caller;

static void *submit_some(void *arg)
{
    caller *c = arg;
    uint32_t ids[64];
    for (uint32_t i = 0; i < 6; i++) {
        prompt(ids, 20 + i * 8, c->seed + i % 3);
        qn_request_in in = ask(ids, 20 + i * 8, 10 + i);
        in.n_choices = 1 + i % 2;
        c->call[i] = kit_call_new();
        if (kit_submit(c->call[i], c->engine, &in, NULL) != QN_OK) continue;
        if (i % 3 == 2) qn_engine_cancel(c->engine, c->call[i]->id);
        qn_engine_stats s;
        qn_engine_get_stats(c->engine, &s);
    }
    for (uint32_t i = 0; i < 6; i++) {
        kit_wait(c->call[i]);
        c->ended += c->call[i]->choice[0].done && c->call[i]->order_faults == 0;
        kit_call_free(c->call[i]);
    }
    return NULL;
}

static void many_threads_submit_and_cancel(qt *t)
{
    qn_engine_options o = plain();
    o.lanes = 2;
    rig r = open_rig(t, o);
    caller c[4];
    for (uint32_t i = 0; i < 4; i++) {
        c[i] = (caller){.engine = r.engine, .seed = 70 + i};
        QT_EQ(t, pthread_create(&c[i].thread, NULL, submit_some, &c[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(c[i].thread, NULL);
        QT_EQ(t, c[i].ended, 6);
    }
    close_rig(&r);
}

QT_MAIN(QT(a_greedy_request_counts_what_it_did), QT(a_seed_names_the_completion_and_is_returned),
        QT(the_context_is_the_end), QT(a_stop_id_ends_and_is_marked), QT(a_stop_string_never_shows),
        QT(held_text_is_released_at_the_end), QT(end_of_text_ends_unless_ignored),
        QT(logprobs_add_up), QT(prompt_logprobs_are_those_of_a_completion),
        QT(a_resumed_request_goes_on_with_the_same_tokens),
        QT(choices_are_the_same_forked_or_in_turn), QT(refusals_name_the_field),
        QT(neutral_values_are_nothing_to_refuse), QT(open_refuses_what_it_cannot_hold),
        QT(open_survives_every_failed_allocation), QT(submit_survives_every_failed_allocation),
        QT(one_row_without_numbers_fails_alone), QT(a_small_store_makes_all_wait_and_none_differ),
        QT(the_higher_priority_goes_first), QT(a_full_queue_says_again),
        QT(cancel_ends_a_running_and_a_waiting_request), QT(close_ends_everything_that_runs),
        QT(many_threads_submit_and_cancel))
