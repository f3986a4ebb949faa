/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_test.c - what a request may ask of the draw and what its events then tell, through the public
 * interface. */
#include <math.h>
#include <string.h>

#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"
enum { MAX = 64, TOP = 4 };

typedef struct world {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
} world;

typedef struct heard { /* of one choice */
    uint32_t id[MAX], n, n_prompt, prompt_id[MAX], stop_text, tops;
    float logprob[MAX], top[MAX][TOP], prompt_logprob[MAX];
    quern_finish finish;
    char text[1024];
    size_t n_text;
} heard;

static world open_world(qt *t)
{
    world w = {0};
    quern_error err = {0};
    QT_EQ(t, quern_runtime_open(&w.rt, NULL, &err), QUERN_OK);
    QT_OKF(t, quern_model_open(&w.model, w.rt, MODEL, NULL, &err) == QUERN_OK, "%s", err.msg);
    QT_OKF(t, quern_engine_open(&w.engine, w.model, NULL, &err) == QUERN_OK, "%s", err.msg);
    return w;
}

static void close_world(world *w)
{
    quern_engine_close(w->engine);
    quern_model_unref(w->model);
    quern_runtime_close(w->rt);
}

static quern_request_options abc(void)
{
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    o.text = "abcab";
    o.text_n = 5;
    o.max_tokens = 12;
    o.flags = QUERN_REQUEST_IGNORE_EOS;
    return o;
}

static void hear(void *ctx, const quern_event *e)
{
    heard *h = ctx;
    if (e->choice != 0) return;
    if (e->kind == QUERN_EVENT_DONE) {
        h->finish = e->finish;
        h->stop_text = e->stop_text;
    }
    if (h->n_text + e->text_n <= sizeof h->text)
        memcpy(h->text + h->n_text, e->text, e->text_n), h->n_text += e->text_n;
    if (e->kind != QUERN_EVENT_TOKEN) return;
    if (e->is_prompt) {
        h->prompt_id[h->n_prompt] = e->token;
        h->prompt_logprob[h->n_prompt++] = e->logprob;
        return;
    }
    h->id[h->n] = e->token;
    h->logprob[h->n] = e->logprob;
    for (uint32_t i = 0; i < e->n_top && i < TOP; i++) h->top[h->n][i] = e->top[i].logprob;
    h->tops = e->n_top;
    h->n++;
}

static heard ask(qt *t, const world *w, quern_request_options o, bool callback)
{
    heard h = {0};
    quern_request *r = NULL;
    quern_error err = {0};
    const quern_event *e = NULL;
    if (callback) o.on_event = hear, o.ctx = &h;
    QT_OKF(t, quern_request_open(&r, w->engine, &o, &err) == QUERN_OK, "%s", err.msg);
    if (callback)
        QT_EQ(t, quern_request_wait(r, -1, NULL), QUERN_OK);
    else
        while (r && quern_request_next(&e, r, -1, NULL) == QUERN_OK) hear(&h, e);
    quern_request_free(r);
    return h;
}

static void the_likeliest_tokens_come_with_each_event(qt *t)
{
    world w = open_world(t);
    quern_request_options o = abc();
    o.logprobs = 1;
    o.top_logprobs = TOP;
    o.max_tokens = 40;
    const heard a = ask(t, &w, o, true), b = ask(t, &w, o, false);
    QT_EQ(t, a.n, 40);
    QT_EQ(t, a.tops, TOP);
    QT_OK(t, memcmp(&a, &b, sizeof a) == 0);
    for (uint32_t i = 0; i < a.n; i++) {
        QT_OK(t, a.logprob[i] == a.top[i][0]); /* greedy */
        for (uint32_t k = 1; k < TOP; k++) QT_OK(t, a.top[i][k] <= a.top[i][k - 1]);
    }
    close_world(&w);
}

static void a_prompt_is_echoed_and_scored(qt *t)
{
    world w = open_world(t);
    quern_request_options o = abc();
    o.logprobs = 1;
    o.flags |= QUERN_REQUEST_ECHO | QUERN_REQUEST_NO_TOKENS;
    o.max_tokens = 0;
    const heard a = ask(t, &w, o, false);
    uint32_t ids[16];
    size_t n = 0;
    QT_EQ(t, quern_tokenize(&n, w.model, "abcab", 5, 0, ids, 16, NULL), QUERN_OK);
    QT_OK(t, a.n == 0 && a.n_prompt == n && a.n_text == 0 && a.finish == QUERN_FINISH_LENGTH);
    for (uint32_t i = 0; i < n; i++)
        QT_OK(t,
              a.prompt_id[i] == ids[i] && (i ? a.prompt_logprob[i] < 0 : a.prompt_logprob[i] == 0));
    close_world(&w);
}

static void biases_penalties_and_min_tokens_are_honoured(qt *t)
{
    world w = open_world(t);
    quern_request_options o = abc();
    const heard plain = ask(t, &w, o, true);
    const quern_bias never = {plain.id[0], -100.0f};
    o.biases = &never;
    o.n_biases = 1;
    const heard other = ask(t, &w, o, true);
    for (uint32_t i = 0; i < other.n; i++) QT_OK(t, other.id[i] != plain.id[0]);
    o.n_biases = 0;
    o.presence_penalty = 1000;
    o.presence_context = 0;
    const heard fresh = ask(t, &w, o, true);
    for (uint32_t i = 0; i < fresh.n; i++)
        for (uint32_t k = 0; k < i; k++) QT_OK(t, fresh.id[i] != fresh.id[k]);
    o.presence_penalty = 0;
    o.stop_tokens = plain.id;
    o.n_stop_tokens = 1;
    QT_EQ(t, ask(t, &w, o, true).n, 1);
    o.min_tokens = 5;
    const heard later = ask(t, &w, o, true);
    QT_OK(t, later.n > 5 || later.finish == QUERN_FINISH_LENGTH);
    close_world(&w);
}

static void the_end_tells_which_stop_text_it_was(qt *t)
{
    world w = open_world(t);
    quern_request_options o = abc();
    const heard plain = ask(t, &w, o, true);
    char third[8] = {0};
    for (size_t i = plain.n_text / 2, k = 0; i < plain.n_text && k < 1; i++)
        if ((unsigned char)plain.text[i] < 0x80) third[k++] = plain.text[i];
    const char *const stops[] = {"not there at all", "nor this", third};
    QT_EQ(t, plain.stop_text, QUERN_NO_STOP_TEXT);
    if (!QT_OK(t, third[0] != 0)) return;
    o.stop_texts = stops;
    o.n_stop_texts = 3;
    const heard h = ask(t, &w, o, false);
    QT_OK(t, h.finish == QUERN_FINISH_STOP && h.stop_text == 2);
    close_world(&w);
}

static void an_empty_stop_text_is_named(qt *t)
{
    world w = open_world(t);
    static const char *const stops[] = {"x", ""};
    quern_request_options o = abc();
    quern_request *r = NULL;
    quern_error err = {0};
    o.stop_texts = stops;
    o.n_stop_texts = 2;
    QT_EQ(t, quern_request_open(&r, w.engine, &o, &err), QUERN_E_INVAL);
    QT_OKF(t, !r && strstr(err.msg, "stop text 1 is empty"), "%s", err.msg);
    close_world(&w);
}

static void wrong_values_are_named(qt *t)
{
    world w = open_world(t);
    static const quern_bias wild = {3, INFINITY}, beyond = {101, 1.0f};
    struct {
        quern_request_options o;
        quern_code code;
        const char *word;
    } bad[13];
    for (size_t i = 0; i < QT_LEN(bad); i++) bad[i].o = abc(), bad[i].code = QUERN_E_INVAL;
    bad[0].o.temperature = -1, bad[0].word = "temperature";
    bad[1].o.top_p = 1.5f, bad[1].word = "top_p";
    bad[2].o.min_p = NAN, bad[2].word = "min_p";
    bad[3].o.repetition_penalty = -0.1f, bad[3].word = "repetition_penalty";
    bad[4].o.presence_penalty = INFINITY, bad[4].word = "presence_penalty";
    bad[5].o.frequency_penalty = NAN, bad[5].word = "frequency_penalty";
    bad[6].o.xtc_probability = 2, bad[6].word = "xtc_probability";
    bad[7].o.xtc_threshold = 0.51f, bad[7].word = "xtc_threshold";
    bad[8].o.min_tokens = 13, bad[8].word = "min_tokens";
    bad[9].o.top_logprobs = 2, bad[9].word = "top_logprobs";
    bad[10].o.logprobs = 1, bad[10].o.top_logprobs = 65, bad[10].word = "top_logprobs";
    bad[10].code = QUERN_E_LIMIT;
    bad[11].o.biases = &wild, bad[11].o.n_biases = 1, bad[11].word = "bias";
    bad[12].o.biases = &beyond, bad[12].o.n_biases = 1, bad[12].word = "101";
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        quern_request *r = NULL;
        quern_error err = {0};
        const quern_code rc = quern_request_open(&r, w.engine, &bad[i].o, &err);
        QT_OKF(t, rc == bad[i].code && !r && strstr(err.msg, bad[i].word), "case %zu: %s %s", i,
               quern_code_name(rc), err.msg);
    }
    close_world(&w);
}

static void tokens_have_bytes_and_a_spelling(qt *t)
{
    world w = open_world(t);
    uint32_t id = 0;
    size_t n = 0, length = 0;
    char bytes[16];
    QT_EQ(t, quern_tokenize(&n, w.model, "a", 1, 0, &id, 1, NULL), QUERN_OK);
    QT_EQ(t, quern_token_bytes(&n, w.model, id, bytes, sizeof bytes, NULL), QUERN_OK);
    QT_OK(t, n == 1 && bytes[0] == 'a');
    const char *text = quern_token_text(&length, w.model, id);
    QT_OK(t, length == 1 && text[0] == 'a');
    QT_EQ(t, quern_token_bytes(&n, w.model, 101, NULL, 0, NULL), QUERN_E_INVAL);
    QT_OK(t, quern_token_text(&length, w.model, 4000) && length == 0);
    close_world(&w);
}

static void a_model_without_a_recipe_gets_the_built_in(qt *t)
{
    world w = open_world(t);
    quern_model_info info = {.size = sizeof info};
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    QT_EQ(t, quern_model_get_info(w.model, &info, NULL), QUERN_OK);
    QT_OK(t, info.defaults && info.defaults->set == 0);
    QT_OK(t, info.n_eos_ids > 0 && info.eos_ids[0] < info.vocab);
    QT_EQ(t, quern_request_recipe(&o, w.model, NULL), QUERN_OK);
    QT_OK(t, o.temperature == 0.7f && o.top_p == 0 && o.top_k == 0 && o.repetition_penalty == 0);
    o.size = 8;
    QT_EQ(t, quern_request_recipe(&o, w.model, NULL), QUERN_E_INVAL);
    close_world(&w);
}

QT_MAIN(QT(the_likeliest_tokens_come_with_each_event), QT(a_prompt_is_echoed_and_scored),
        QT(biases_penalties_and_min_tokens_are_honoured), QT(the_end_tells_which_stop_text_it_was),
        QT(an_empty_stop_text_is_named), QT(wrong_values_are_named),
        QT(tokens_have_bytes_and_a_spelling), QT(a_model_without_a_recipe_gets_the_built_in))
