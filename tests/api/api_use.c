/* SPDX-License-Identifier: Apache-2.0 */
/* api_use.c - the public interface used as a program of others would: public headers only, linked with
 * the shared library. Compiled as C, and as C++ by api_use.cpp. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/quern.h>

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"

static int passed, failed, bad_checks;

static void check(int ok, const char *what, int line)
{
    if (ok) return;
    bad_checks++;
    fprintf(stderr, "api_use.c:%d: %s\n", line, what);
}
#define CHECK(cond) check((cond) ? 1 : 0, #cond, __LINE__)

typedef struct fixture {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
} fixture;

static int open_all(fixture *f)
{
    quern_error err;
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    eo.context = 256;
    eo.threads = 1;
    if (quern_runtime_open(&f->rt, NULL, &err) ||
        quern_model_open(&f->model, f->rt, MODEL, NULL, &err) ||
        quern_engine_open(&f->engine, f->model, &eo, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 0;
    }
    return 1;
}

static void close_all(fixture *f)
{
    quern_engine_close(f->engine);
    quern_model_unref(f->model);
    quern_runtime_close(f->rt);
}

static void a_model_tells_what_it_is(void)
{
    fixture f;
    quern_model_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    CHECK(open_all(&f));
    CHECK(quern_model_get_info(f.model, &info, NULL) == QUERN_OK);
    CHECK(strcmp(info.family, "llama") == 0 && strcmp(info.path, MODEL) == 0);
    CHECK(info.vocab == 101 && info.n_layers > 0 && info.weight_bytes > 0 &&
          info.has_tokenizer == 1);
    close_all(&f);
}

static void text_goes_to_ids_and_back(void)
{
    fixture f;
    uint32_t ids[32];
    char text[64];
    size_t n = 0, n_text = 0;
    CHECK(open_all(&f));
    CHECK(quern_tokenize(&n, f.model, "abc", 3, 0, ids, 32, NULL) == QUERN_OK && n > 0 && n <= 3);
    CHECK(quern_detokenize(&n_text, f.model, ids, n, text, sizeof text, NULL) == QUERN_OK);
    CHECK(n_text == 3 && memcmp(text, "abc", 3) == 0);
    CHECK(quern_tokenize(&n, f.model, "abc", 3, 0, NULL, 0, NULL) == QUERN_OK && n > 0);
    CHECK(quern_tokenize(&n, f.model, "abc", 3, 64, NULL, 0, NULL) == QUERN_E_INVAL);
    close_all(&f);
}

typedef struct seen {
    char text[512];
    size_t n;
    uint32_t tokens, done, completion, ids[64];
} seen;

static void on_event(void *ctx, const quern_event *e)
{
    seen *s = (seen *)ctx;
    if (s->n + e->text_n < sizeof s->text) memcpy(s->text + s->n, e->text, e->text_n);
    s->n += e->text_n;
    if (e->kind == QUERN_EVENT_TOKEN && s->tokens < 64) s->ids[s->tokens++] = e->token;
    if (e->kind == QUERN_EVENT_DONE) s->done++, s->completion = e->completion_tokens;
}

static quern_request_options prompt_abc(void)
{
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    o.text = "abc";
    o.text_n = 3;
    o.max_tokens = 12;
    o.flags = QUERN_REQUEST_IGNORE_EOS;
    return o;
}

static void callback_and_next_give_the_same_events(void)
{
    fixture f;
    seen a, b;
    quern_request *r = NULL;
    const quern_event *e = NULL;
    quern_request_options o = prompt_abc();
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    CHECK(open_all(&f));
    o.on_event = on_event;
    o.ctx = &a;
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    CHECK(quern_request_next(&e, r, 0, NULL) == QUERN_E_INVAL && !e);
    CHECK(quern_request_wait(r, -1, NULL) == QUERN_OK);
    quern_request_free(r);
    o.on_event = NULL;
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    while (quern_request_next(&e, r, -1, NULL) == QUERN_OK) on_event(&b, e);
    CHECK(quern_request_next(&e, r, -1, NULL) == QUERN_E_NOTFOUND);
    quern_request_free(r);
    CHECK(a.tokens == 12 && a.done == 1 && a.completion == 12);
    CHECK(b.tokens == 12 && memcmp(a.ids, b.ids, sizeof a.ids) == 0);
    CHECK(a.n == b.n && a.n > 0 && memcmp(a.text, b.text, a.n) == 0);
    close_all(&f);
}

static void choices_share_a_prompt_and_differ(void)
{
    fixture f;
    quern_request *r = NULL;
    const quern_event *e = NULL;
    uint32_t ids[3][12], n[3] = {0, 0, 0}, done = 0;
    quern_request_options o = prompt_abc();
    o.n_choices = 3;
    o.temperature = 1.0f;
    o.seed = 5;
    o.flags |= QUERN_REQUEST_SEED;
    o.logprobs = 1;
    CHECK(open_all(&f));
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    while (quern_request_next(&e, r, -1, NULL) == QUERN_OK) {
        CHECK(e->kind != QUERN_EVENT_ERROR && e->choice < 3);
        if (e->kind == QUERN_EVENT_DONE)
            CHECK(e->seed == 5 && e->finish == QUERN_FINISH_LENGTH), done++;
        if (e->kind == QUERN_EVENT_TOKEN && e->index < 12) {
            CHECK(e->logprob < 0);
            ids[e->choice][e->index] = e->token;
            n[e->choice]++;
        }
    }
    quern_request_free(r);
    CHECK(done == 3 && n[0] == 12 && n[1] == 12 && n[2] == 12);
    CHECK(memcmp(ids[0], ids[1], sizeof ids[0]) != 0);
    close_all(&f);
}

static void a_cancelled_request_says_so(void)
{
    fixture f;
    quern_request *r = NULL;
    const quern_event *e = NULL;
    quern_finish finish = QUERN_FINISH_NONE;
    quern_request_options o = prompt_abc();
    o.max_tokens = 200;
    CHECK(open_all(&f));
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    CHECK(quern_request_next(&e, r, -1, NULL) == QUERN_OK);
    quern_request_cancel(r);
    while (quern_request_next(&e, r, -1, NULL) == QUERN_OK)
        if (e->kind == QUERN_EVENT_DONE) finish = e->finish;
    CHECK(finish == QUERN_FINISH_CANCELLED || finish == QUERN_FINISH_LENGTH);
    quern_request_cancel(r); /* again is fine */
    quern_request_free(r);
    close_all(&f);
}

static void a_request_outlives_its_engine(void)
{
    fixture f;
    quern_request *r = NULL;
    const quern_event *e = NULL;
    quern_code rc = QUERN_OK;
    quern_request_options o = prompt_abc();
    CHECK(open_all(&f));
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    quern_engine_close(f.engine);
    f.engine = NULL;
    while ((rc = quern_request_next(&e, r, 1000, NULL)) == QUERN_OK) continue;
    CHECK(rc == QUERN_E_NOTFOUND);
    quern_request_free(r);
    close_all(&f);
}

static void stop_texts_and_ids_end_a_request(void)
{
    fixture f;
    quern_request *r = NULL;
    const quern_event *e = NULL;
    seen all, cut;
    quern_finish finish = QUERN_FINISH_NONE;
    quern_request_options o = prompt_abc();
    memset(&all, 0, sizeof all);
    memset(&cut, 0, sizeof cut);
    CHECK(open_all(&f));
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    while (quern_request_next(&e, r, -1, NULL) == QUERN_OK) on_event(&all, e);
    quern_request_free(r);
    o.stop_tokens = &all.ids[4];
    o.n_stop_tokens = 1;
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    while (quern_request_next(&e, r, -1, NULL) == QUERN_OK) {
        if (e->kind == QUERN_EVENT_TOKEN && e->is_stop)
            CHECK(e->token == all.ids[4] && e->text_n == 0);
        if (e->kind == QUERN_EVENT_DONE) finish = e->finish;
        on_event(&cut, e);
    }
    quern_request_free(r);
    CHECK(finish == QUERN_FINISH_STOP && cut.n < all.n && memcmp(cut.text, all.text, cut.n) == 0);
    close_all(&f);
}

static void arguments_are_checked(void)
{
    fixture f;
    quern_error err;
    quern_request *r = (quern_request *)&f;
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    quern_runtime_options ro = QUERN_RUNTIME_OPTIONS_INIT;
    quern_runtime *rt = NULL;
    CHECK(open_all(&f));
    CHECK(quern_request_open(&r, f.engine, &o, &err) == QUERN_E_INVAL && !r);
    CHECK(strcmp(err.msg, "the prompt is empty") == 0);
    o.size = 3;
    CHECK(quern_request_open(&r, f.engine, &o, &err) == QUERN_E_INVAL &&
          strstr(err.msg, "size is 3"));
    o = prompt_abc();
    o.flags = 1u << 30;
    CHECK(quern_request_open(&r, f.engine, &o, &err) == QUERN_E_INVAL && strstr(err.msg, "flags"));
    o = prompt_abc();
    o.temperature = -1;
    CHECK(quern_request_open(&r, f.engine, &o, &err) == QUERN_E_INVAL);
    CHECK(quern_request_open(NULL, f.engine, &o, &err) == QUERN_E_INVAL);
    CHECK(quern_request_open(&r, NULL, &o, &err) == QUERN_E_INVAL &&
          strstr(err.msg, "engine is missing"));
    ro.isa = "mmx";
    CHECK(quern_runtime_open(&rt, &ro, &err) == QUERN_E_INVAL && !rt && strstr(err.msg, "mmx"));
    close_all(&f);
    quern_engine_close(NULL);
    quern_model_unref(NULL);
    quern_runtime_close(NULL);
    quern_request_free(NULL);
    quern_request_cancel(NULL);
    quern_report_free(NULL);
}

/* A program of tomorrow: its struct is longer. What we do not know must be zero. */
static void newer_option_structs_are_taken_when_their_new_fields_are_zero(void)
{
    struct {
        quern_model_options known;
        uint64_t later;
    } o = {QUERN_MODEL_OPTIONS_INIT, 0};
    quern_runtime *rt = NULL;
    quern_model *m = NULL;
    quern_error err;
    o.known.size = sizeof o;
    CHECK(quern_runtime_open(&rt, NULL, &err) == QUERN_OK);
    CHECK(quern_model_open(&m, rt, MODEL, &o.known, &err) == QUERN_OK);
    quern_model_unref(m);
    o.later = 1;
    CHECK(quern_model_open(&m, rt, MODEL, &o.known, &err) == QUERN_E_UNSUPPORTED && !m);
    quern_runtime_close(rt);
}

static void two_runtimes_live_side_by_side(void)
{
    fixture a, b;
    CHECK(open_all(&a) && open_all(&b));
    CHECK(a.rt != b.rt && strncmp(quern_runtime_describe(a.rt), "cpu ", 4) == 0);
    close_all(&a);
    quern_request *r = NULL;
    quern_request_options o = prompt_abc();
    CHECK(quern_request_open(&r, b.engine, &o, NULL) == QUERN_OK);
    CHECK(quern_request_wait(r, -1, NULL) == QUERN_OK);
    quern_request_free(r);
    close_all(&b);
}

static void a_report_is_json(void)
{
    quern_report *r = NULL;
    quern_error err;
    size_t n = 0;
    CHECK(quern_inspect(&r, MODEL, NULL, &err) == QUERN_OK);
    const char *text = quern_report_json(r, &n);
    CHECK(n > 2 && text[0] == '{' && text[n - 1] == '}' && strlen(text) == n);
    quern_report_free(r);
    CHECK(quern_inspect(&r, "/nowhere", NULL, &err) == QUERN_E_NOTFOUND && !r);
}

static void stats_count(void)
{
    fixture f;
    quern_request *r = NULL;
    quern_engine_stats s;
    quern_request_options o = prompt_abc();
    memset(&s, 0, sizeof s);
    s.size = sizeof s;
    CHECK(open_all(&f));
    CHECK(quern_request_open(&r, f.engine, &o, NULL) == QUERN_OK);
    CHECK(quern_request_wait(r, -1, NULL) == QUERN_OK);
    quern_request_free(r);
    do /* the counters of a step follow its events */
        CHECK(quern_engine_get_stats(f.engine, &s, NULL) == QUERN_OK);
    while (s.completion_tokens < 12);
    CHECK(s.completion_tokens == 12 && s.prompt_tokens > 0 && s.steps >= 12 && s.kv_bytes > 0);
    CHECK(s.numerics[0] != 0 && s.numerics[1] != 0);
    CHECK(quern_memory_now().live_bytes > 0);
    close_all(&f);
}

static void codes_have_names(void)
{
    CHECK(strcmp(quern_code_name(QUERN_E_NOMEM), "NOMEM") == 0);
    CHECK(quern_code_exit(QUERN_OK) == 0 && quern_code_http(QUERN_E_AGAIN) == 429);
    CHECK(quern_code_retryable(QUERN_E_AGAIN) && quern_version()[0]);
}

static void run(const char *name, void (*fn)(void))
{
    bad_checks = 0;
    fn();
    if (bad_checks) fprintf(stderr, "FAILED %s\n", name);
    if (bad_checks)
        failed++;
    else
        passed++;
}
#define RUN(fn) run(#fn, fn)

int main(void)
{
    RUN(a_model_tells_what_it_is);
    RUN(text_goes_to_ids_and_back);
    RUN(callback_and_next_give_the_same_events);
    RUN(choices_share_a_prompt_and_differ);
    RUN(a_cancelled_request_says_so);
    RUN(a_request_outlives_its_engine);
    RUN(stop_texts_and_ids_end_a_request);
    RUN(arguments_are_checked);
    RUN(newer_option_structs_are_taken_when_their_new_fields_are_zero);
    RUN(two_runtimes_live_side_by_side);
    RUN(a_report_is_json);
    RUN(stats_count);
    RUN(codes_have_names);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
