/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "kit.h"

static bool has(qn_str text, const char *part)
{
    return qn_str_find(text, qn_str_z(part), 0) != SIZE_MAX;
}

static void each_value_comes_from_the_first_that_has_it(qt *t)
{
    const qn_request_sampling request = {.set = QN_SET_TOP_K, .top_k = 1, .temperature = 9};
    const qn_request_sampling flags = {
        .set = QN_SET_TOP_K | QN_SET_TOP_P, .top_k = 2, .top_p = 0.2f};
    const qn_request_sampling model = {.set = QN_SET_TOP_K | QN_SET_TOP_P | QN_SET_MIN_P |
                                              QN_SET_TEMPERATURE | QN_SET_REPETITION,
                                       .top_k = 3,
                                       .top_p = 0.3f,
                                       .min_p = 0.4f,
                                       .temperature = 1.5f,
                                       .repetition_penalty = 1.25f};
    qn_request_sampling s;
    qn_api_resolve(&s, &request, &flags, &model, QN_API_UNSAID);
    QT_EQ(t, s.top_k, 1);
    QT_OK(t, s.top_p == 0.2f);
    QT_OK(t, s.min_p == 0.4f);
    QT_OK(t, s.temperature == 1.5f);
    QT_OK(t, s.repetition_penalty == 1.25f);
    QT_EQ(t, s.set, QN_SET_ALL & ~QN_SET_MAX_TOKENS);
    QT_EQ(t, s.has_seed, 0);
}

static void nobody_saying_anything_gives_the_built_in(qt *t)
{
    qn_request_sampling s;
    qn_api_resolve(&s, NULL, NULL, NULL, QN_API_UNSAID);
    QT_OK(t, s.temperature == 0.7f);
    QT_OK(t, s.top_p == 0 && s.top_k == 0 && s.min_p == 0);
    QT_OK(t, s.repetition_penalty == 0 && s.presence_penalty == 0 && s.frequency_penalty == 0);
    QT_EQ(t, s.repetition_context, 20);
    QT_EQ(t, s.presence_context, 20);
    QT_EQ(t, s.frequency_context, 20);
    QT_OK(t, s.xtc_probability == 0 && s.xtc_threshold == 0.1f);
}

static void a_request_says_each_of_them(qt *t)
{
    const qn_request_sampling request = {.set = QN_SET_ALL,
                                         .has_seed = 1,
                                         .seed = 0,
                                         .temperature = 1,
                                         .top_p = 2,
                                         .min_p = 3,
                                         .top_k = 4,
                                         .repetition_penalty = 5,
                                         .presence_penalty = 6,
                                         .frequency_penalty = 7,
                                         .repetition_context = 8,
                                         .presence_context = 9,
                                         .frequency_context = 10,
                                         .xtc_probability = 11,
                                         .xtc_threshold = 12};
    qn_request_sampling want = request, s;
    want.set &= ~(uint32_t)QN_SET_MAX_TOKENS;
    qn_api_resolve(&s, &request, NULL, NULL, QN_API_OFF);
    QT_OK(t, memcmp(&s, &want, sizeof s) == 0);
}

static void without_thinking_a_recipe_is_cooled(qt *t)
{
    const qn_request_sampling hot = {.set = QN_SET_TEMPERATURE, .temperature = 1.0f};
    const qn_request_sampling cold = {.set = QN_SET_TEMPERATURE, .temperature = 0.25f};
    qn_request_sampling s;
    qn_api_resolve(&s, NULL, NULL, &hot, QN_API_OFF);
    QT_OK(t, s.temperature == 0.7f);
    qn_api_resolve(&s, NULL, NULL, &cold, QN_API_OFF);
    QT_OK(t, s.temperature == 0.25f);
    qn_api_resolve(&s, NULL, NULL, &hot, QN_API_ON);
    QT_OK(t, s.temperature == 1.0f);
    qn_api_resolve(&s, NULL, NULL, &hot, QN_API_LEAVE);
    QT_OK(t, s.temperature == 1.0f);
    qn_api_resolve(&s, &hot, NULL, NULL, QN_API_OFF);
    QT_OK(t, s.temperature == 1.0f);
    qn_api_resolve(&s, NULL, &hot, NULL, QN_API_OFF);
    QT_OK(t, s.temperature == 1.0f);
}

static void a_seed_comes_from_the_request_or_the_flags(qt *t)
{
    const qn_request_sampling none = {.set = 0}, zero = {.has_seed = 1, .seed = 0};
    const qn_request_sampling nine = {.has_seed = 1, .seed = 9};
    qn_request_sampling s;
    qn_api_resolve(&s, &zero, &nine, NULL, QN_API_UNSAID);
    QT_OK(t, s.has_seed && s.seed == 0);
    qn_api_resolve(&s, &none, &nine, NULL, QN_API_UNSAID);
    QT_OK(t, s.has_seed && s.seed == 9);
    qn_api_resolve(&s, &none, NULL, &nine, QN_API_UNSAID);
    QT_OK(t, !s.has_seed);
}

static void thinking_has_an_order_of_its_own(qt *t)
{
    static const struct {
        qn_api_tristate said;
        qn_api_effort effort;
        qn_api_tristate server, want;
    } cases[] = {
        {QN_API_UNSAID, QN_API_EFFORT_UNSAID, QN_API_UNSAID, QN_API_UNSAID},
        {QN_API_UNSAID, QN_API_EFFORT_UNSAID, QN_API_OFF, QN_API_OFF},
        {QN_API_UNSAID, QN_API_EFFORT_NONE, QN_API_ON, QN_API_OFF},
        {QN_API_UNSAID, QN_API_EFFORT_MINIMAL, QN_API_OFF, QN_API_ON},
        {QN_API_UNSAID, QN_API_EFFORT_XHIGH, QN_API_OFF, QN_API_ON},
        {QN_API_OFF, QN_API_EFFORT_HIGH, QN_API_ON, QN_API_OFF},
        {QN_API_ON, QN_API_EFFORT_NONE, QN_API_OFF, QN_API_ON},
        {QN_API_LEAVE, QN_API_EFFORT_HIGH, QN_API_ON, QN_API_LEAVE},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        const qn_api_prompt p = {.thinking = cases[i].said, .effort = cases[i].effort};
        QT_EQ(t, qn_api_thinking(&p, cases[i].server), cases[i].want);
    }
}

/* ctx: names with a space before and behind each */
static bool mentions(const void *ctx, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(ctx, word) != NULL;
}

static const char *const chat_body = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],%s}";

static void variables(qt *t, const char *fields, qn_api_tristate server, const char *reads,
                      const char *want, size_t n_warnings)
{
    char body[512];
    bodied b;
    qn_str got = {NULL, 0};
    snprintf(body, sizeof body, chat_body, fields);
    read_body(&b, QN_API_CHAT, body, NULL);
    QT_OKF(t, b.rc == QN_OK, "%s: %s", body, b.error.message);
    QT_EQ(t,
          qn_api_variables(&got, &b.chat.prompt, server, mentions, reads, &b.chat.params.warnings,
                           &b.arena, &b.error),
          QN_OK);
    QT_OKF(t, qn_str_eq_z(got, want), "%s: %.*s, not %s", fields, QN_STR_ARG(got), want);
    QT_OKF(t, b.warnings->n == n_warnings, "%s: %zu warnings, not %zu: %s", fields, b.warnings->n,
           n_warnings, b.warnings->n ? b.warnings->text[0] : "");
    drop_body(&b);
}

static void variables_are_what_the_template_reads(qt *t)
{
    const char *const all = " enable_thinking reasoning_effort a b ";
    variables(t, "\"n\":1", QN_API_UNSAID, "", "{}", 0);
    variables(t, "\"n\":1", QN_API_OFF, all, "{\"enable_thinking\":false}", 0);
    variables(t, "\"chat_template_kwargs\":{\"a\":1}", QN_API_UNSAID, all, "{\"a\":1}", 0);
    variables(t, "\"chat_template_kwargs\":{\"a\":1,\"enable_thinking\":true,\"b\":[0.5]}",
              QN_API_OFF, all, "{\"a\":1,\"b\":[0.5],\"enable_thinking\":true}", 0);
    variables(t, "\"chat_template_kwargs\":{\"enable_thinking\":null}", QN_API_ON, all, "{}", 0);
    variables(t, "\"reasoning_effort\":\"none\"", QN_API_ON, all, "{\"enable_thinking\":false}", 0);
    variables(t, "\"reasoning_effort\":\"minimal\"", QN_API_UNSAID, all,
              "{\"enable_thinking\":true,\"reasoning_effort\":\"low\"}", 0);
    variables(t, "\"reasoning_effort\":\"medium\"", QN_API_UNSAID, " reasoning_effort ",
              "{\"enable_thinking\":true,\"reasoning_effort\":\"medium\"}", 0);
    variables(t, "\"reasoning_effort\":\"high\"", QN_API_UNSAID, all,
              "{\"enable_thinking\":true,\"reasoning_effort\":\"xhigh\"}", 0);
    variables(t, "\"reasoning_effort\":\"high\"", QN_API_UNSAID, " enable_thinking ",
              "{\"enable_thinking\":true}", 0);
    variables(t,
              "\"reasoning_effort\":\"low\",\"chat_template_kwargs\":{\"reasoning_effort\":\"x\"}",
              QN_API_UNSAID, all, "{\"reasoning_effort\":\"x\",\"enable_thinking\":true}", 0);
}

static void variables_that_nobody_reads_are_told(qt *t)
{
    variables(t, "\"reasoning_effort\":\"high\"", QN_API_UNSAID, "", "{\"enable_thinking\":true}",
              1);
    variables(t, "\"chat_template_kwargs\":{\"enable_thinking\":false}", QN_API_UNSAID, "",
              "{\"enable_thinking\":false}", 1);
    variables(t, "\"chat_template_kwargs\":{\"a\":1,\"z\":2}", QN_API_UNSAID, " a ",
              "{\"a\":1,\"z\":2}", 1);
    variables(t,
              "\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"enable_thinking\":true}",
              QN_API_UNSAID, " enable_thinking reasoning_effort ", "{\"enable_thinking\":true}", 1);
}

static void variables_survive_every_failed_allocation(qt *t)
{
    bodied b;
    qn_code rc = QN_E_NOMEM;
    read_body(&b, QN_API_CHAT,
              "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
              "\"chat_template_kwargs\":{\"a\":1}}",
              NULL);
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_arena arena;
        qn_str got;
        qn_api_warnings w = {.n = 0};
        qn_arena_init(&arena, 1u << 20);
        const size_t live = qn_alloc_live();
        qn_alloc_fail_after(n);
        rc = qn_api_variables(&got, &b.chat.prompt, QN_API_ON, mentions, "", &w, &arena, &b.error);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !got.n && b.error.status == 503));
        if (rc == QN_OK) QT_OK(t, has(got, "\"a\":1"));
        qn_arena_fini(&arena);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
    drop_body(&b);
}

QT_MAIN(QT(each_value_comes_from_the_first_that_has_it),
        QT(nobody_saying_anything_gives_the_built_in), QT(a_request_says_each_of_them),
        QT(without_thinking_a_recipe_is_cooled), QT(a_seed_comes_from_the_request_or_the_flags),
        QT(thinking_has_an_order_of_its_own), QT(variables_are_what_the_template_reads),
        QT(variables_that_nobody_reads_are_told), QT(variables_survive_every_failed_allocation))
