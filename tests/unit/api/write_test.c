/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "api/api_int.h"
#include "kit.h"

static const qn_api_warnings told = {.text = {"one \"1\"", "two"}, .n = 2, .more = 3};

static qn_openai_reply reply_of(qn_api_endpoint endpoint)
{
    return (qn_openai_reply){.endpoint = endpoint,
                             .id = QN_STR("chatcmpl-1"),
                             .created = 1700000000,
                             .model = QN_STR("m\"\\1"),
                             .fingerprint = QN_STR("q1-cpu")};
}

static qn_json *parsed(qt *t, const char *text, size_t n)
{
    qn_json *v = NULL;
    qn_err err = {.code = QN_OK};
    QT_OKF(t, qn_json_parse(&v, text, n, 1 << 20, &err) == QN_OK, "%s: %.*s", err.msg, (int)n,
           text);
    return v;
}

static const qn_json *path(const qn_json *v, const char *keys)
{
    qn_str rest = qn_str_z(keys), key;
    while (qn_str_split(&key, &rest, '.')) {
        char name[64];
        uint64_t i = 0;
        snprintf(name, sizeof name, "%.*s", QN_STR_ARG(key));
        v = qn_str_parse_u64(&i, key) ? qn_json_at(v, i) : qn_json_get(v, name);
    }
    return v;
}

static const char *text_at(const qn_json *v, const char *keys)
{
    size_t n = 0;
    const char *s = qn_json_str(path(v, keys), &n);
    return s ? s : "(no text)";
}

static void any_text_is_escaped_and_comes_back(qt *t)
{
    char all[300];
    qn_buf out;
    size_t n = 0;
    for (int c = 0; c < 0x80; c++) all[n++] = (char)c;
    n += (size_t)snprintf(all + n, 64,
                          "\xc3\xa9\xe2\x80\xa8\xe2\x80\xa9\xf0\x9f\x98\x80\xef\xbf\xbd");
    qn_buf_init(&out, 1 << 16);
    qn_out o = qn_out_begin(&out, NULL);
    qn_out_str(&o, qn_str_make(all, n));
    QT_EQ(t, qn_out_end(&o), QN_OK);
    qn_json *v = parsed(t, qn_buf_text(&out), out.len);
    size_t got = 0;
    const char *back = qn_json_str(v, &got);
    QT_OK(t, got == n && back && memcmp(back, all, n) == 0);
    QT_OK(t, !strstr(qn_buf_text(&out), "\xe2\x80\xa8") &&
                 strstr(qn_buf_text(&out), "\\u2028\\u2029"));
    qn_json_free(v);
    qn_buf_fini(&out);
}

static void malformed_text_cannot_break_a_body(qt *t)
{
    static const char *const broken[] = {"a\xff", "\xe2\x82", "\xed\xa0\x80", "\xc0\x80",
                                         "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < QT_LEN(broken); i++) {
        qn_buf out;
        qn_buf_init(&out, 1 << 16);
        QT_EQ(t, qn_openai_write_content(&out, qn_str_z(broken[i]), NULL, NULL), QN_OK);
        qn_json *v = parsed(t, qn_buf_text(&out), out.len);
        QT_OK(t, strstr(text_at(v, "content"), "\xef\xbf\xbd") != NULL);
        qn_json_free(v);
        qn_buf_fini(&out);
    }
}

static void numbers_read_back_as_the_same(qt *t)
{
    static const double doubles[] = {0.0,   1.0,    -1.5,    0.1,
                                     1e300, 5e-324, 1.0 / 3, 123456789012345.0};
    qn_buf out;
    qn_buf_init(&out, 1 << 20);
    for (size_t i = 0; i < 2000; i++) {
        uint32_t bits = (uint32_t)qt_rand();
        float f = 0;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) continue;
        qn_buf_truncate(&out, 0);
        qn_out o = qn_out_begin(&out, NULL);
        qn_out_f32(&o, f);
        qn_json *v = parsed(t, qn_buf_text(&out), out.len);
        QT_OKF(t, (float)qn_json_num(v, (double)NAN) == f, "%a: %s", (double)f, qn_buf_text(&out));
        qn_json_free(v);
    }
    for (size_t i = 0; i < QT_LEN(doubles); i++) {
        qn_buf_truncate(&out, 0);
        qn_out o = qn_out_begin(&out, NULL);
        qn_out_f64(&o, doubles[i]);
        qn_json *v = parsed(t, qn_buf_text(&out), out.len);
        QT_OKF(t, qn_json_type_of(v) == QN_JSON_REAL && qn_json_num(v, (double)NAN) == doubles[i],
               "%s", qn_buf_text(&out));
        qn_json_free(v);
    }
    qn_buf_truncate(&out, 0);
    qn_out o = qn_out_begin(&out, NULL);
    qn_out_i64(&o, INT64_MIN);
    QN_OUT(&o, " ");
    qn_out_u64(&o, UINT64_MAX);
    QT_STR(t, qn_buf_text(&out), "-9223372036854775808 18446744073709551615");
    qn_buf_fini(&out);
}

static void a_whole_chat_answer_has_openais_shape(qt *t)
{
    const qn_openai_top top[] = {{QN_STR(" a"), -0.5f}, {QN_STR("\xe2\x82"), -INFINITY}};
    const qn_openai_token tokens[] = {{QN_STR(" a"), -0.5f, false, top, 2}};
    const qn_openai_logprobs l = {tokens, 1, 0};
    const qn_openai_choice choices[] = {
        {0, QN_STR(" a\n"), QUERN_FINISH_STOP, 7, &l},
        {1, QN_STR(""), QUERN_FINISH_LENGTH, 8, NULL},
    };
    const qn_openai_usage usage = {10, 4, 3};
    qn_openai_reply reply = reply_of(QN_API_CHAT);
    qn_buf out;
    reply.warnings = &told;
    qn_buf_init(&out, 1 << 16);
    QT_EQ(t, qn_openai_write_completion(&out, &reply, choices, 2, &usage, NULL), QN_OK);
    qn_json *v = parsed(t, qn_buf_text(&out), out.len);
    QT_STR(t, text_at(v, "id"), "chatcmpl-1");
    QT_STR(t, text_at(v, "object"), "chat.completion");
    QT_STR(t, text_at(v, "model"), "m\"\\1");
    QT_STR(t, text_at(v, "system_fingerprint"), "q1-cpu");
    QT_EQ(t, qn_json_int(path(v, "created"), 0), 1700000000);
    QT_STR(t, text_at(v, "choices.0.message.role"), "assistant");
    QT_STR(t, text_at(v, "choices.0.message.content"), " a\n");
    QT_STR(t, text_at(v, "choices.0.finish_reason"), "stop");
    QT_STR(t, text_at(v, "choices.1.finish_reason"), "length");
    QT_EQ(t, qn_json_int(path(v, "choices.1.seed"), 0), 8);
    QT_STR(t, text_at(v, "choices.0.logprobs.content.0.token"), " a");
    QT_OK(t, qn_json_num(path(v, "choices.0.logprobs.content.0.logprob"), 0) == -0.5);
    QT_EQ(t, qn_json_int(path(v, "choices.0.logprobs.content.0.bytes.1"), 0), 'a');
    QT_OK(t,
          qn_json_num(path(v, "choices.0.logprobs.content.0.top_logprobs.1.logprob"), 0) == -9999);
    QT_EQ(t, qn_json_len(path(v, "choices.0.logprobs.content.0.top_logprobs.1.bytes")), 2);
    QT_OK(t, qn_json_get(path(v, "choices.1"), "logprobs") &&
                 qn_json_type_of(path(v, "choices.1.logprobs")) == QN_JSON_NULL);
    QT_EQ(t, qn_json_int(path(v, "usage.prompt_tokens"), 0), 10);
    QT_EQ(t, qn_json_int(path(v, "usage.completion_tokens"), 0), 3);
    QT_EQ(t, qn_json_int(path(v, "usage.total_tokens"), 0), 13);
    QT_EQ(t, qn_json_int(path(v, "usage.prompt_tokens_details.cached_tokens"), 0), 4);
    QT_EQ(t, qn_json_len(path(v, "warnings")), 3);
    QT_STR(t, text_at(v, "warnings.0"), "one \"1\"");
    QT_STR(t, text_at(v, "warnings.2"), "and 3 more");
    qn_json_free(v);
    qn_buf_fini(&out);
}

static void a_text_answer_has_the_older_logprobs(qt *t)
{
    const qn_openai_top top[] = {
        {QN_STR("b"), -0.5f}, {QN_STR("b"), -1}, {QN_STR("\xff"), -2}, {QN_STR("c"), -3}};
    const qn_openai_token tokens[] = {{.text = QN_STR("\xc3\xa9"), .unknown = true},
                                      {QN_STR("b"), -0.5f, false, top, 4}};
    const qn_openai_logprobs l = {tokens, 2, 5};
    const qn_openai_choice choice = {0,
                                     QN_STR("\xc3\xa9"
                                            "b"),
                                     QUERN_FINISH_LENGTH, 1, &l};
    const qn_openai_usage usage = {1, 0, 1};
    qn_openai_reply reply = reply_of(QN_API_TEXT);
    qn_buf out;
    qn_buf_init(&out, 1 << 16);
    reply.fingerprint = (qn_str){NULL, 0};
    QT_EQ(t, qn_openai_write_completion(&out, &reply, &choice, 1, &usage, NULL), QN_OK);
    qn_json *v = parsed(t, qn_buf_text(&out), out.len);
    QT_STR(t, text_at(v, "object"), "text_completion");
    QT_STR(t, text_at(v, "choices.0.text"),
           "\xc3\xa9"
           "b");
    QT_STR(t, text_at(v, "choices.0.logprobs.tokens.1"), "b");
    QT_OK(t, qn_json_type_of(path(v, "choices.0.logprobs.token_logprobs.0")) == QN_JSON_NULL);
    QT_OK(t, qn_json_num(path(v, "choices.0.logprobs.token_logprobs.1"), 0) == -0.5);
    QT_OK(t, qn_json_type_of(path(v, "choices.0.logprobs.top_logprobs.0")) == QN_JSON_NULL);
    QT_EQ(t, qn_json_len(path(v, "choices.0.logprobs.top_logprobs.1")), 2);
    QT_OK(t, qn_json_num(path(v, "choices.0.logprobs.top_logprobs.1.b"), 0) == -0.5);
    QT_EQ(t, qn_json_int(path(v, "choices.0.logprobs.text_offset.0"), 0), 5);
    QT_EQ(t, qn_json_int(path(v, "choices.0.logprobs.text_offset.1"), 0), 6);
    QT_OK(t, !path(v, "warnings"));
    QT_OK(t, qn_json_type_of(path(v, "system_fingerprint")) == QN_JSON_NULL);
    qn_json_free(v);
    qn_buf_fini(&out);
}

#define HEAD                                                                                    \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000," \
    "\"model\":\"m\\\"\\\\1\",\"system_fingerprint\":\"q1-cpu\","

static void a_stream_reads_so_to_the_byte(qt *t)
{
    static const char *const want = HEAD
        "\"warnings\":[\"one \\\"1\\\"\",\"two\",\"and 3 more\"],\"choices\":[{\"index\":0,"
        "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
        "\"finish_reason\":null}],\"usage\":null}\n\n"
        ": keep-alive\n\n" HEAD
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi \\\"\xc3\xa9\\\"\\n\"},"
        "\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n" HEAD
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"},\"logprobs\":{\"content\":["
        "{\"token\":\"!\",\"logprob\":-0.25,\"bytes\":[33],\"top_logprobs\":[]}],\"refusal\":null},"
        "\"finish_reason\":null}],\"usage\":null}\n\n" HEAD
        "\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\","
        "\"seed\":42}],\"usage\":null}\n\n" HEAD
        "\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7,"
        "\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n"
        "data: [DONE]\n\n";
    const qn_openai_token token = {QN_STR("!"), -0.25f, false, NULL, 0};
    const qn_openai_logprobs l = {&token, 1, 0};
    const qn_openai_usage usage = {5, 1, 2};
    qn_openai_reply reply = reply_of(QN_API_CHAT);
    qn_openai_stream s;
    qn_arena arena;
    qn_buf out;
    reply.warnings = &told;
    qn_arena_init(&arena, 1 << 20);
    qn_buf_init(&out, 1 << 20);
    QT_EQ(t, qn_openai_stream_init(&s, &reply, true, &arena, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_role(&s, &out, 0, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_keep_alive(&out, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_text(&s, &out, 0, QN_STR("Hi \"\xc3\xa9\"\n"), NULL, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_text(&s, &out, 0, QN_STR("!"), &l, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_finish(&s, &out, 0, QUERN_FINISH_STOP, 42, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_usage(&s, &out, &usage, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_done(&out, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out), want);
    qn_buf_fini(&out);
    qn_arena_fini(&arena);
}

static void without_include_usage_there_is_none(qt *t)
{
    const qn_openai_usage usage = {5, 1, 2};
    const qn_openai_reply reply = reply_of(QN_API_TEXT);
    qn_openai_stream s;
    qn_arena arena;
    qn_buf out;
    qn_arena_init(&arena, 1 << 20);
    qn_buf_init(&out, 1 << 20);
    QT_EQ(t, qn_openai_stream_init(&s, &reply, false, &arena, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_text(&s, &out, 1, QN_STR("a"), NULL, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_finish(&s, &out, 1, QUERN_FINISH_LENGTH, 1, NULL), QN_OK);
    QT_EQ(t, qn_openai_stream_usage(&s, &out, &usage, NULL), QN_OK);
    QT_OK(t, !strstr(qn_buf_text(&out), "usage") && !strstr(qn_buf_text(&out), "warnings"));
    QT_OK(t, strstr(qn_buf_text(&out), "{\"index\":1,\"text\":\"a\",\"logprobs\":null,"
                                       "\"finish_reason\":null}]}\n\n") != NULL);
    QT_OK(t, strstr(qn_buf_text(&out), "{\"index\":1,\"text\":\"\",\"logprobs\":null,"
                                       "\"finish_reason\":\"length\",\"seed\":1}]}\n\n") != NULL);
    qn_buf_fini(&out);
    qn_arena_fini(&arena);
}

static void a_failure_in_a_stream_is_one_frame(qt *t)
{
    qn_api_error e;
    qn_buf out;
    (void)qn_api_fail(&e, QN_API_FAILED, NULL, "it broke");
    qn_buf_init(&out, 1 << 16);
    QT_EQ(t, qn_openai_stream_error(&out, &e, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out),
           "data: {\"error\":{\"message\":\"it broke\",\"type\":\"server_error\","
           "\"param\":null,\"code\":null}}\n\n");
    qn_buf_fini(&out);
}

static void small_bodies_have_their_shapes(qt *t)
{
    static const char *const endpoints[] = {"GET /health", "POST /tokenize"};
    const uint32_t ids[] = {1, 22};
    const qn_openai_piece pieces[] = {{QN_STR("a")}, {QN_STR("\xff\x01")}};
    const qn_openai_model models[] = {
        {.id = QN_STR("org/m"),
         .owned_by = QN_STR("org"),
         .created = 5,
         .context_window = 2048,
         .has_template = true,
         .resident = true,
         .current = true,
         .set = QN_SET_TEMPERATURE | QN_SET_TOP_P | QN_SET_TOP_K,
         .temperature = 0.6f,
         .top_p = 0.95f,
         .top_k = 20},
        {.id = QN_STR("n"), .owned_by = QN_STR("local")},
    };
    qn_buf out;
    qn_json *v = NULL;
    qn_buf_init(&out, 1 << 16);
    QT_EQ(t, qn_openai_write_tokens(&out, ids, 2, NULL, NULL, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out), "{\"tokens\":[1,22],\"count\":2}");
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_tokens(&out, ids, 2, pieces, &told, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out),
           "{\"tokens\":[{\"id\":1,\"piece\":\"a\"},{\"id\":22,\"piece\":[255,1]}],"
           "\"warnings\":[\"one \\\"1\\\"\",\"two\",\"and 3 more\"],\"count\":2}");
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_content(&out, QN_STR("x"), NULL, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out), "{\"content\":\"x\"}");
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_health(&out, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out), "{\"status\": \"ok\"}");
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_index(&out, "0.1", QN_STR("m"), endpoints, 2, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&out),
           "{\"name\":\"quern\",\"version\":\"0.1\",\"model\":\"m\",\"endpoints\":"
           "[\"GET /health\",\"POST /tokenize\"]}");
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_index(&out, "0.1", (qn_str){NULL, 0}, NULL, 0, NULL), QN_OK);
    QT_OK(t, strstr(qn_buf_text(&out), "\"model\":null,\"endpoints\":[]") != NULL);
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_models(&out, models, 2, NULL), QN_OK);
    v = parsed(t, qn_buf_text(&out), out.len);
    QT_STR(t, text_at(v, "object"), "list");
    QT_STR(t, text_at(v, "data.0.id"), "org/m");
    QT_STR(t, text_at(v, "data.0.object"), "model");
    QT_STR(t, text_at(v, "data.0.owned_by"), "org");
    QT_EQ(t, qn_json_int(path(v, "data.0.context_window"), 0), 2048);
    QT_OK(t, qn_json_bool(path(v, "data.0.capabilities.chat_completions"), false));
    QT_OK(t, !qn_json_bool(path(v, "data.0.capabilities.tools"), true));
    QT_OK(t, (float)qn_json_num(path(v, "data.0.gen_defaults.temperature"), 0) == 0.6f);
    QT_EQ(t, qn_json_int(path(v, "data.0.gen_defaults.top_k"), 0), 20);
    QT_OK(t, qn_json_bool(path(v, "data.0.current"), false));
    QT_OK(t, !qn_json_bool(path(v, "data.1.resident"), true));
    QT_OK(t, qn_json_type_of(path(v, "data.1.gen_defaults.top_p")) == QN_JSON_NULL);
    qn_json_free(v);
    qn_buf_truncate(&out, 0);
    QT_EQ(t, qn_openai_write_model(&out, models, NULL), QN_OK);
    v = parsed(t, qn_buf_text(&out), out.len);
    QT_STR(t, text_at(v, "id"), "org/m");
    qn_json_free(v);
    qn_buf_fini(&out);
}

static void ids_tell_the_endpoint(qt *t)
{
    char id[QN_OPENAI_ID_BYTES];
    const uint64_t random[2] = {1, UINT64_MAX};
    qn_openai_make_id(id, QN_API_CHAT, random);
    QT_STR(t, id, "chatcmpl-0000000000000001ffffffffffffffff");
    qn_openai_make_id(id, QN_API_TEXT, random);
    QT_STR(t, id, "cmpl-0000000000000001ffffffffffffffff");
}

/* Each writer into a buffer that is too small, and with allocations that fail. */
static qn_code write_one(size_t which, qn_buf *out, qn_arena *arena)
{
    const qn_openai_choice choice = {.text = QN_STR("t"), .finish = QUERN_FINISH_STOP};
    const qn_openai_model model = {.id = QN_STR("m")};
    const qn_openai_usage usage = {1, 0, 1};
    const uint32_t id = 3;
    qn_openai_reply reply = reply_of(QN_API_CHAT);
    qn_openai_stream s;
    qn_api_error e;
    reply.warnings = &told;
    (void)qn_api_fail(&e, QN_API_FAILED, NULL, "x");
    if (which < 4) QN_TRY(qn_openai_stream_init(&s, &reply, true, arena, NULL));
    switch (which) {
    case 0:
        return qn_openai_stream_role(&s, out, 0, NULL);
    case 1:
        return qn_openai_stream_text(&s, out, 0, QN_STR("t"), NULL, NULL);
    case 2:
        return qn_openai_stream_finish(&s, out, 0, QUERN_FINISH_STOP, 1, NULL);
    case 3:
        return qn_openai_stream_usage(&s, out, &usage, NULL);
    case 4:
        return qn_openai_write_completion(out, &reply, &choice, 1, &usage, NULL);
    case 5:
        return qn_openai_write_error(out, &e, NULL);
    case 6:
        return qn_openai_write_tokens(out, &id, 1, NULL, NULL, NULL);
    case 7:
        return qn_openai_write_models(out, &model, 1, NULL);
    case 8:
        return qn_openai_stream_done(out, NULL);
    default:
        return qn_openai_stream_error(out, &e, NULL);
    }
}

static void writers_leave_the_buffer_when_they_fail(qt *t)
{
    for (size_t which = 0; which < 10; which++) {
        qn_code rc = QN_E_NOMEM;
        const size_t live = qn_alloc_live();
        for (size_t n = 0; rc != QN_OK && n < 64; n++) {
            qn_arena arena;
            qn_buf out;
            qn_arena_init(&arena, 1 << 20);
            qn_buf_init(&out, 1 << 16);
            QT_EQ(t, qn_buf_append_z(&out, "before", NULL), QN_OK);
            qn_alloc_fail_after(n);
            rc = write_one(which, &out, &arena);
            qn_alloc_fail_after(SIZE_MAX);
            QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && strcmp(qn_buf_text(&out), "before") == 0));
            qn_buf_fini(&out);
            qn_arena_fini(&arena);
            QT_EQ(t, qn_alloc_live(), live);
        }
        QT_EQ(t, rc, QN_OK);
        for (size_t max = 6; max < 18; max++) {
            qn_arena arena;
            qn_buf out;
            qn_arena_init(&arena, 1 << 20);
            qn_buf_init(&out, max);
            QT_EQ(t, qn_buf_append_z(&out, "before", NULL), QN_OK);
            rc = write_one(which, &out, &arena);
            QT_OK(t, rc == QN_E_LIMIT && strcmp(qn_buf_text(&out), "before") == 0);
            qn_buf_fini(&out);
            qn_arena_fini(&arena);
        }
    }
}

QT_MAIN(QT(any_text_is_escaped_and_comes_back), QT(malformed_text_cannot_break_a_body),
        QT(numbers_read_back_as_the_same), QT(a_whole_chat_answer_has_openais_shape),
        QT(a_text_answer_has_the_older_logprobs), QT(a_stream_reads_so_to_the_byte),
        QT(without_include_usage_there_is_none), QT(a_failure_in_a_stream_is_one_frame),
        QT(small_bodies_have_their_shapes), QT(ids_tell_the_endpoint),
        QT(writers_leave_the_buffer_when_they_fail))
