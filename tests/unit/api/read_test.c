/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "api/api_int.h"
#include "kit.h"

#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]"

static void a_bare_chat_has_the_defaults(qt *t)
{
    bodied b;
    read_body(&b, QN_API_CHAT, "{" USER "}", NULL);
    const qn_api_params *p = &b.chat.params;
    QT_EQ(t, b.rc, QN_OK);
    QT_EQ(t, p->n, 1);
    QT_EQ(t, p->logprobs, -1);
    QT_EQ(t, p->sampling.set, 0);
    QT_EQ(t, p->sampling.has_seed, 0);
    QT_OK(t, !p->stream && !p->include_usage && !p->ignore_eos && !p->no_cache);
    QT_EQ(t, p->model.n, 0);
    QT_EQ(t, p->n_stops + p->n_stop_ids + p->n_biases + p->warnings.n, 0);
    QT_OK(t, b.chat.prompt.add_generation_prompt && !b.chat.prompt.continue_final);
    QT_OK(t, qn_str_eq_z(b.chat.prompt.variables, "{}"));
    drop_body(&b);
}

static void every_value_arrives(qt *t)
{
    bodied b;
    read_body(&b, QN_API_CHAT,
              "{" USER ",\"model\":\"m/1\",\"stream\":true,\"stream_options\":{\"include_usage\":"
              "true,\"include_obfuscation\":false},\"n\":3,\"max_tokens\":10,\"min_tokens\":4,"
              "\"temperature\":0.5,\"top_p\":1,\"top_k\":40,\"min_p\":0.25,\"xtc_probability\":0.5,"
              "\"repetition_penalty\":1.5,\"presence_penalty\":-2,\"frequency_penalty\":0.125,"
              "\"repetition_context_size\":1,\"presence_context_size\":2,"
              "\"frequency_context_size\":3,\"seed\":-1,\"stop\":[\"x\",\"\",\"yz\"],"
              "\"stop_token_ids\":[0,4294967295],\"ignore_eos\":true,\"logprobs\":true,"
              "\"top_logprobs\":5,\"cache_prompt\":false,\"logit_bias\":{\"0\":-100,\"17\":1.5}}",
              NULL);
    const qn_api_params *p = &b.chat.params;
    const qn_request_sampling *s = &p->sampling;
    if (!QT_OKF(t, b.rc == QN_OK, "%s", b.error.message)) return;
    QT_OK(t, qn_str_eq_z(p->model, "m/1") && p->stream && p->include_usage);
    QT_OK(t, p->n == 3 && p->max_tokens == 10 && p->min_tokens == 4);
    QT_OK(t, s->temperature == 0.5f && s->top_p == 1 && s->top_k == 40 && s->min_p == 0.25f);
    QT_OK(t, s->xtc_probability == 0.5f && s->xtc_threshold == 0.1f);
    QT_OK(t, s->repetition_penalty == 1.5f && s->presence_penalty == -2);
    QT_OK(t, s->frequency_penalty == 0.125f && s->repetition_context == 1);
    QT_OK(t, s->presence_context == 2 && s->frequency_context == 3);
    QT_OK(t, s->has_seed && s->seed == UINT64_MAX && s->set == QN_SET_ALL);
    QT_EQ(t, p->n_stops, 2);
    QT_STR(t, p->stops[0], "x");
    QT_STR(t, p->stops[1], "yz");
    QT_OK(t, p->n_stop_ids == 2 && p->stop_ids[0] == 0 && p->stop_ids[1] == UINT32_MAX);
    QT_OK(t, p->ignore_eos && p->no_cache && p->logprobs == 5 && p->n_biases == 2);
    QT_OK(t, p->biases[0].token == 0 && p->biases[0].bias == -100);
    QT_OK(t, p->biases[1].token == 17 && p->biases[1].bias == 1.5f);
    QT_EQ(t, p->warnings.n, 0);
    drop_body(&b);
}

static void ceilings_are_ceilings(qt *t)
{
    bodied b;
    read_body(&b, QN_API_CHAT, "{" USER ",\"max_tokens\":99999999999,\"top_k\":99999999999}", NULL);
    QT_OK(t, b.rc == QN_OK && b.chat.params.max_tokens == UINT32_MAX);
    QT_EQ(t, b.chat.params.sampling.top_k, UINT32_MAX);
    drop_body(&b);
    read_body(&b, QN_API_CHAT, "{" USER ",\"max_tokens\":9,\"max_completion_tokens\":0}", NULL);
    QT_OK(t, b.rc == QN_OK && b.chat.params.max_tokens == 0);
    QT_OK(t, (b.chat.params.sampling.set & QN_SET_MAX_TOKENS) != 0);
    QT_EQ(t, b.warnings->n, 1);
    drop_body(&b);
    read_body(&b, QN_API_CHAT, "{" USER ",\"max_tokens\":9,\"max_completion_tokens\":9}", NULL);
    QT_EQ(t, b.warnings->n, 0);
    drop_body(&b);
    refused(t, QN_API_CHAT, "{" USER ",\"max_tokens\":9,\"min_tokens\":10}", QN_API_BAD_VALUE,
            "min_tokens", "at most 9");
    refused(t, QN_API_TEXT, "{\"prompt\":\"a\",\"best_of\":2}", QN_API_UNSUPPORTED, "best_of",
            "as many as n");
    read_body(&b, QN_API_TEXT, "{\"prompt\":\"a\",\"best_of\":2,\"n\":2}", NULL);
    QT_EQ(t, b.rc, QN_OK);
    drop_body(&b);
}

static void messages_are_those_that_clients_know(qt *t)
{
    static const struct {
        const char *field, *param, *message;
        qn_api_kind kind;
    } cases[] = {
        {"\"logprobs\":1", "logprobs", "logprobs must be of type bool", QN_API_BAD_TYPE},
        {"\"top_logprobs\":1.5", "top_logprobs", "top_logprobs must be of type int",
         QN_API_BAD_TYPE},
        {"\"top_logprobs\":\"5\"", "top_logprobs", "top_logprobs must be of type int",
         QN_API_BAD_TYPE},
        {"\"top_logprobs\":-2", "top_logprobs", "top_logprobs must be at least 0",
         QN_API_BAD_VALUE},
        {"\"top_logprobs\":21", "top_logprobs", "top_logprobs must be at most 20",
         QN_API_BAD_VALUE},
        {"\"logit_bias\":[1]", "logit_bias", "logit_bias must be a dict of int to float",
         QN_API_BAD_TYPE},
        {"\"logit_bias\":{\"x\":1}", "logit_bias", "logit_bias must be a dict of int to float",
         QN_API_BAD_VALUE},
        {"\"logit_bias\":{\"1\":\"x\"}", "logit_bias", "logit_bias must be a dict of int to float",
         QN_API_BAD_TYPE},
        {"\"logit_bias\":{\"01\":1}", "logit_bias", "logit_bias must be a dict of int to float",
         QN_API_BAD_VALUE},
        {"\"logit_bias\":{\"-1\":1}", "logit_bias", "logit_bias must be a dict of int to float",
         QN_API_BAD_VALUE},
        {"\"logit_bias\":{\"1\":1e200}", "logit_bias", "logit_bias must be a dict of int to float",
         QN_API_BAD_VALUE},
        {"\"temperature\":-0.5", "temperature", "temperature must be at least 0", QN_API_BAD_VALUE},
        {"\"top_p\":1.5", "top_p", "top_p must be at most 1", QN_API_BAD_VALUE},
        {"\"stream\":\"true\"", "stream", "stream must be of type bool", QN_API_BAD_TYPE},
        {"\"n\":0", "n", "n must be at least 1", QN_API_BAD_VALUE},
        {"\"n\":129", "n", "n must be at most 128", QN_API_BAD_VALUE},
        {"\"seed\":1.5", "seed", "seed must be of type int", QN_API_BAD_TYPE},
        {"\"reasoning_effort\":\"maximal\"", "reasoning_effort",
         "reasoning_effort must be one of 'none', 'minimal', 'low', 'medium', 'high', 'xhigh'",
         QN_API_BAD_VALUE},
        {"\"chat_template_kwargs\":{\"enable_thinking\":1}", "chat_template_kwargs.enable_thinking",
         "chat_template_kwargs.enable_thinking must be of type bool", QN_API_BAD_TYPE},
        {"\"chat_template_kwargs\":{\"k\":1,\"messages\":[]}", "chat_template_kwargs.messages",
         "chat_template_kwargs.messages: the conversation is the request's own messages",
         QN_API_BAD_VALUE},
        {"\"stream\":true,\"stream_options\":{\"include_usage\":1}", "stream_options.include_usage",
         "stream_options.include_usage must be of type bool", QN_API_BAD_TYPE},
        {"\"stop\":[1]", "stop", "stop must be of type string or array of strings",
         QN_API_BAD_TYPE},
        {"\"stop\":\"a\\u0000b\"", "stop", "stop may not hold a NUL", QN_API_BAD_VALUE},
        {"\"stop_token_ids\":[1.5]", "stop_token_ids", "stop_token_ids[0] must be of type int",
         QN_API_BAD_TYPE},
        {"\"stop_token_ids\":[-1]", "stop_token_ids", "stop_token_ids[0]: -1 is no token id",
         QN_API_BAD_VALUE},
        {"\"logprobs\":false,\"top_logprobs\":2", "top_logprobs",
         "top_logprobs needs logprobs to be true", QN_API_BAD_VALUE},
        {"\"tools\":[{\"type\":\"function\"}]", "tools", "tools is not supported",
         QN_API_UNSUPPORTED},
        {"\"response_format\":{\"type\":\"json_object\"}", "response_format",
         "response_format is not supported", QN_API_UNSUPPORTED},
        {"\"store\":true", "store", "store is not supported", QN_API_UNSUPPORTED},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char body[512];
        snprintf(body, sizeof body, "{" USER ",%s}", cases[i].field);
        refused(t, QN_API_CHAT, body, cases[i].kind, cases[i].param, cases[i].message);
    }
}

static void tools_may_be_put_aside(qt *t)
{
    bodied b;
    read_body(&b, QN_API_CHAT, "{" USER ",\"tools\":[{\"x\":1}],\"tool_choice\":\"none\"}", NULL);
    QT_OKF(t, b.rc == QN_OK && b.warnings->n == 0, "%s", b.error.message);
    drop_body(&b);
    read_body(&b, QN_API_CHAT, "{" USER ",\"tools\":[],\"tool_choice\":\"auto\"}", NULL);
    QT_OKF(t, b.rc == QN_OK && b.warnings->n == 1, "%s", b.error.message);
    drop_body(&b);
}

static void logprobs_are_a_number_for_text(qt *t)
{
    static const struct {
        qn_api_endpoint endpoint;
        const char *field;
        int want;
    } cases[] = {
        {QN_API_CHAT, "\"logprobs\":true", 0},
        {QN_API_CHAT, "\"logprobs\":true,\"top_logprobs\":0", 0},
        {QN_API_CHAT, "\"logprobs\":false,\"top_logprobs\":-1", -1},
        {QN_API_CHAT, "\"top_logprobs\":3", 3},
        {QN_API_TEXT, "\"logprobs\":0", 0},
        {QN_API_TEXT, "\"logprobs\":20", 20},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char body[256];
        bodied b;
        snprintf(body, sizeof body, "{%s,%s}",
                 cases[i].endpoint == QN_API_CHAT ? USER : "\"prompt\":\"a\"", cases[i].field);
        read_body(&b, cases[i].endpoint, body, NULL);
        QT_OKF(t, b.rc == QN_OK, "%s: %s", body, b.error.message);
        QT_EQ(t, cases[i].endpoint == QN_API_CHAT ? b.chat.params.logprobs : b.text.params.logprobs,
              cases[i].want);
        drop_body(&b);
    }
}

static void a_prompt_has_four_forms(qt *t)
{
    bodied b;
    read_body(&b, QN_API_TEXT, "{\"prompt\":\"one\",\"echo\":true}", NULL);
    QT_OK(t, b.rc == QN_OK && b.text.n_prompts == 1 && b.text.echo);
    QT_OK(t, qn_str_eq_z(b.text.prompts[0].text, "one") && !b.text.prompts[0].n_tokens);
    drop_body(&b);
    read_body(&b, QN_API_TEXT, "{\"prompt\":[\"one\",\"two\"]}", NULL);
    QT_OK(t, b.rc == QN_OK && b.text.n_prompts == 2);
    QT_OK(t, qn_str_eq_z(b.text.prompts[1].text, "two"));
    drop_body(&b);
    read_body(&b, QN_API_TEXT, "{\"prompt\":[5,6,7]}", NULL);
    QT_OK(t, b.rc == QN_OK && b.text.n_prompts == 1 && b.text.prompts[0].n_tokens == 3);
    QT_EQ(t, b.text.prompts[0].tokens[2], 7);
    drop_body(&b);
    read_body(&b, QN_API_TEXT, "{\"prompt\":[[5],[6,7]]}", NULL);
    QT_OK(t, b.rc == QN_OK && b.text.n_prompts == 2 && b.text.prompts[1].n_tokens == 2);
    drop_body(&b);
}

static void other_prompts_are_refused(qt *t)
{
    static const struct {
        const char *prompt;
        qn_api_kind kind;
    } cases[] = {
        {"null", QN_API_MISSING},       {"\"\"", QN_API_BAD_VALUE},
        {"[]", QN_API_BAD_VALUE},       {"[\"\"]", QN_API_BAD_VALUE},
        {"[[]]", QN_API_BAD_TYPE},      {"[\"a\",1]", QN_API_BAD_TYPE},
        {"[1,\"a\"]", QN_API_BAD_TYPE}, {"[[1],\"a\"]", QN_API_BAD_TYPE},
        {"{}", QN_API_BAD_TYPE},        {"3", QN_API_BAD_TYPE},
        {"[[[1]]]", QN_API_BAD_TYPE},   {"[1.5]", QN_API_BAD_TYPE},
        {"[-1]", QN_API_BAD_VALUE},     {"[4294967296]", QN_API_BAD_VALUE},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"prompt\":%s}", cases[i].prompt);
        refused(t, QN_API_TEXT, body, cases[i].kind, "prompt", "prompt");
    }
}

static void counts_have_ceilings(qt *t)
{
    qn_api_limits limits = qn_api_default_limits;
    static char body[1 << 17];
    bodied b;
    limits.prompts = 2;
    read_body(&b, QN_API_TEXT, "{\"prompt\":[\"a\",\"b\",\"c\"]}", &limits);
    QT_EQ(t, b.error.kind, QN_API_TOO_MANY);
    drop_body(&b);
    limits.prompt_tokens = 3;
    read_body(&b, QN_API_TEXT, "{\"prompt\":[[1,2],[3,4]]}", &limits);
    QT_EQ(t, b.error.kind, QN_API_TOO_MANY);
    drop_body(&b);
    read_body(&b, QN_API_DETOKENIZE, "{\"tokens\":[1,2,3,4]}", &limits);
    QT_EQ(t, b.error.kind, QN_API_TOO_MANY);
    drop_body(&b);
    size_t n = (size_t)snprintf(body, sizeof body, "{\"n\":128,\"prompt\":[\"a\"");
    for (int i = 0; i < 8; i++) n += (size_t)snprintf(body + n, 8, ",\"a\"");
    snprintf(body + n, 4, "]}");
    refused(t, QN_API_TEXT, body, QN_API_TOO_MANY, "n", "9 prompts");
    n = (size_t)snprintf(body, sizeof body, "{\"prompt\":\"a\",\"stop\":[\"a\"");
    for (int i = 0; i < 1024; i++) n += (size_t)snprintf(body + n, 8, ",\"a\"");
    snprintf(body + n, 4, "]}");
    refused(t, QN_API_TEXT, body, QN_API_TOO_MANY, "stop", "1025 texts");
    n = (size_t)snprintf(body, sizeof body, "{\"prompt\":\"a\",\"stop_token_ids\":[1");
    for (int i = 0; i < 1024; i++) n += (size_t)snprintf(body + n, 8, ",1");
    snprintf(body + n, 4, "]}");
    refused(t, QN_API_TEXT, body, QN_API_TOO_MANY, "stop_token_ids", "1025 token ids");
}

static void broken_bodies_are_refused_as_such(qt *t)
{
    static const char *const broken[] = {
        "",
        "{",
        "[]",
        "3",
        "null",
        "\"a\"",
        "{\"a\":1,\"a\":2}",
        "{\"a\":\"\xff\"}",
        "{} {}",
        "{\"a\":\"\\ud800\"}",
    };
    bodied b;
    for (size_t i = 0; i < QT_LEN(broken); i++) {
        for (unsigned e = 1; e <= 8; e <<= 1)
            refused(t, (qn_api_endpoint)e, broken[i], QN_API_BAD_JSON, "", "invalid JSON body");
        read_body(&b, QN_API_CHAT, broken[i], NULL);
        QT_STR(t, b.error.message, "invalid JSON body");
        QT_OK(t, b.error.detail[0] != '\0');
        drop_body(&b);
    }
    char deep[256] = "{\"x\":";
    memset(deep + 5, '[', 64);
    refused(t, QN_API_CHAT, deep, QN_API_BAD_JSON, "", "invalid JSON body");
    qn_api_limits limits = qn_api_default_limits;
    limits.body_bytes = 8;
    read_body(&b, QN_API_CHAT, "{" USER "}", &limits);
    QT_OK(t, b.error.kind == QN_API_TOO_LARGE && b.error.status == 413);
    drop_body(&b);
}

static void depth_is_counted_outside_of_texts(qt *t)
{
    QT_OK(t, qn_json_is_shallow("[[1]]", 5, 2));
    QT_OK(t, !qn_json_is_shallow("[[1]]", 5, 1));
    QT_OK(t, qn_json_is_shallow("[\"[[\\\"[\"]", 9, 1));
    QT_OK(t, qn_json_is_shallow("[],[],{}", 8, 1));
    QT_OK(t, qn_json_is_shallow("]]]", 3, 0));
    QT_OK(t, qn_json_is_shallow("\"\\", 2, 0));
}

static void tokenize_takes_a_text_or_a_chat(qt *t)
{
    bodied b;
    read_body(&b, QN_API_TOKENIZE, "{\"content\":\"a\"}", NULL);
    QT_OK(t, b.rc == QN_OK && !b.tokenize.is_chat && qn_str_eq_z(b.tokenize.text, "a"));
    QT_OK(t, !b.tokenize.add_special && b.tokenize.parse_special && !b.tokenize.with_pieces);
    drop_body(&b);
    read_body(&b, QN_API_TOKENIZE, "{" USER ",\"reasoning_effort\":\"low\",\"add_special\":true}",
              NULL);
    QT_OK(t, b.rc == QN_OK && b.tokenize.is_chat && b.tokenize.prompt.n_messages == 1);
    QT_EQ(t, b.warnings->n, 1);
    drop_body(&b);
    read_body(&b, QN_API_TOKENIZE, "{\"content\":\"\",\"add_generation_prompt\":true}", NULL);
    QT_OK(t, b.rc == QN_OK && b.warnings->n == 1 && b.tokenize.text.n == 0);
    drop_body(&b);
    refused(t, QN_API_TOKENIZE, "{}", QN_API_MISSING, "content", "content or messages required");
    refused(t, QN_API_TOKENIZE, "{\"content\":\"a\"," USER "}", QN_API_BAD_VALUE, "content",
            "exclude each other");
}

static void detokenize_takes_ids(qt *t)
{
    bodied b;
    read_body(&b, QN_API_DETOKENIZE, "{\"tokens\":[1,2],\"model\":\"m\"}", NULL);
    QT_OK(t, b.rc == QN_OK && b.detokenize.n_tokens == 2 && b.detokenize.tokens[1] == 2);
    QT_OK(t, qn_str_eq_z(b.detokenize.model, "m"));
    drop_body(&b);
    read_body(&b, QN_API_DETOKENIZE, "{\"tokens\":[]}", NULL);
    QT_OK(t, b.rc == QN_OK && b.detokenize.n_tokens == 0);
    drop_body(&b);
    refused(t, QN_API_DETOKENIZE, "{}", QN_API_MISSING, "tokens", "tokens required");
    refused(t, QN_API_DETOKENIZE, "{\"tokens\":[\"a\"]}", QN_API_BAD_TYPE, "tokens",
            "tokens[0] must be of type int");
}

static void readers_survive_every_failed_allocation(qt *t)
{
    static const struct {
        qn_api_endpoint endpoint;
        const char *body;
    } cases[] = {
        {QN_API_CHAT,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
         "\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}"
         "\"}}]}],\"stop\":[\"a\",\"b\"],\"logit_bias\":{\"1\":2},\"x\":1,\"store\":false,"
         "\"chat_template_kwargs\":{\"k\":[1]},\"model\":\"m\",\"stop_token_ids\":[1]}"},
        {QN_API_TEXT, "{\"prompt\":[\"a\",\"b\"],\"user\":\"u\",\"max_tokens\":1}"},
        {QN_API_TOKENIZE, "{\"content\":\"a\",\"add_generation_prompt\":true}"},
        {QN_API_DETOKENIZE, "{\"tokens\":[1,2,3],\"y\":0}"},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        qn_code rc = QN_E_NOMEM;
        const size_t live = qn_alloc_live();
        size_t n = 0;
        for (; rc != QN_OK && n < 512; n++) {
            bodied b;
            qn_alloc_fail_after(n);
            read_body(&b, cases[i].endpoint, cases[i].body, NULL);
            qn_alloc_fail_after(SIZE_MAX);
            rc = b.rc;
            QT_OKF(t, rc == QN_OK || (rc == QN_E_NOMEM && b.error.status == 503), "%zu: %s", n,
                   b.error.message);
            QT_OK(t, rc == QN_OK || !b.warnings->n);
            drop_body(&b);
            QT_EQ(t, qn_alloc_live(), live);
        }
        QT_OK(t, rc == QN_OK && n > 3);
    }
}

static void an_arena_of_eight_times_the_body_suffices(qt *t)
{
    enum { N = 20000 };
    char *body = qn_alloc(N * 8);
    qn_api_error error;
    qn_api_chat chat;
    qn_arena arena;
    size_t n = 0;
    n += (size_t)snprintf(body + n, 200,
                          "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":["
                          "{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[0.1");
    for (int i = 0; i < N; i++) n += (size_t)snprintf(body + n, 8, ",1e9");
    n += (size_t)snprintf(body + n, 16, "]}}}]}]}");
    qn_arena_init(&arena, n * 8 + (1u << 20));
    const qn_code rc = qn_openai_read_chat(&chat, qn_str_make(body, n), NULL, &arena, &error);
    QT_OKF(t, rc == QN_OK, "%s", error.message);
    qn_arena_fini(&arena);
    qn_free(body);
}

QT_MAIN(QT(a_bare_chat_has_the_defaults), QT(every_value_arrives), QT(ceilings_are_ceilings),
        QT(messages_are_those_that_clients_know), QT(tools_may_be_put_aside),
        QT(logprobs_are_a_number_for_text), QT(a_prompt_has_four_forms),
        QT(other_prompts_are_refused), QT(counts_have_ceilings),
        QT(broken_bodies_are_refused_as_such), QT(depth_is_counted_outside_of_texts),
        QT(tokenize_takes_a_text_or_a_chat), QT(detokenize_takes_ids),
        QT(readers_survive_every_failed_allocation), QT(an_arena_of_eight_times_the_body_suffices))
