/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "kit.h"

static void normal(qt *t, const char *messages, const char *want)
{
    char body[4096];
    bodied b;
    snprintf(body, sizeof body, "{\"messages\":%s}", messages);
    read_body(&b, QN_API_CHAT, body, NULL);
    QT_OKF(t, b.rc == QN_OK, "%s: %s", body, b.error.message);
    QT_OKF(t, qn_str_eq_z(b.chat.prompt.messages, want), "%s\n  became %.*s\n  not    %s", messages,
           QN_STR_ARG(b.chat.prompt.messages), want);
    QT_EQ(t, b.warnings->n, 0);
    drop_body(&b);
}

static void bad(qt *t, const char *messages, qn_api_kind kind, const char *param, const char *say)
{
    char body[4096];
    snprintf(body, sizeof body, "{\"messages\":%s}", messages);
    refused(t, QN_API_CHAT, body, kind, param, say);
}

static void plain_messages_stay_as_they_are(qt *t)
{
    normal(t,
           "[{\"role\":\"system\",\"content\":\"s\"},{\"content\":\"u\",\"role\":\"user\"},"
           "{\"role\":\"assistant\",\"content\":\"a \\u00e9\\n\\\"\"}]",
           "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"},"
           "{\"role\":\"assistant\",\"content\":\"a \xc3\xa9\\n\\\"\"}]");
}

static void developer_becomes_system(qt *t)
{
    normal(t, "[{\"role\":\"developer\",\"content\":\"d\"}]",
           "[{\"role\":\"system\",\"content\":\"d\"}]");
}

static void parts_of_text_become_one_text(qt *t)
{
    normal(t,
           "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
           "{\"type\":\"input_text\",\"text\":\" b\"}]},"
           "{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"},"
           "{\"type\":\"output_text\",\"text\":\"!\"}]},{\"role\":\"user\",\"content\":[]}]",
           "[{\"role\":\"user\",\"content\":\"a b\"},{\"role\":\"assistant\",\"content\":\"no!\"},"
           "{\"role\":\"user\",\"content\":\"\"}]");
}

static void replayed_calls_have_objects_as_arguments(qt *t)
{
    normal(t,
           "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"call_1\","
           "\"type\":\"function\",\"function\":{\"name\":\"f\","
           "\"arguments\":\"{\\\"a\\\": 0.1, \\\"b\\\": [1, 2.0, null, true]}\"}},"
           "{\"function\":{\"name\":\"g\",\"arguments\":\" \"}},"
           "{\"function\":{\"name\":\"h\",\"arguments\":{\"k\":{}}}},"
           "{\"function\":{\"name\":\"i\"}}]},"
           "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"r\"}]",
           "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_1\","
           "\"type\":\"function\",\"function\":{\"name\":\"f\","
           "\"arguments\":{\"a\":0.1,\"b\":[1,2.0,null,true]}}},"
           "{\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":{}}},"
           "{\"type\":\"function\",\"function\":{\"name\":\"h\",\"arguments\":{\"k\":{}}}},"
           "{\"type\":\"function\",\"function\":{\"name\":\"i\",\"arguments\":{}}}]},"
           "{\"role\":\"tool\",\"content\":\"r\",\"tool_call_id\":\"call_1\"}]");
}

static void broken_arguments_name_the_message(qt *t)
{
    static const char *const broken[] = {"{",         "[1]",  "3",
                                         "\\\"a\\\"", "{} x", "{\\\"a\\\":1,\\\"a\\\":2}"};
    for (size_t i = 0; i < QT_LEN(broken); i++) {
        char messages[512];
        snprintf(messages, sizeof messages,
                 "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"tool_calls\":["
                 "{\"function\":{\"name\":\"f\",\"arguments\":\"%s\"}}]}]",
                 broken[i]);
        bad(t, messages, QN_API_BAD_VALUE, "messages[1].tool_calls[0].function.arguments",
            "messages[1]");
    }
    char deep[512] = "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
                     "\"arguments\":\"{\\\"a\\\":";
    memset(deep + strlen(deep), '[', 70);
    snprintf(deep + strlen(deep), 16, "\"}}]}]");
    bad(t, deep, QN_API_BAD_VALUE, "messages[0].tool_calls[0].function.arguments", "too deep");
}

static void reasoning_has_one_name(qt *t)
{
    normal(t,
           "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"r\"},"
           "{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"\",\"reasoning\":"
           "\"r\"},{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":null,"
           "\"reasoning\":\"s\"}]",
           "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"r\"},"
           "{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"\"},"
           "{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"s\"}]");
}

static void other_members_reach_the_template(qt *t)
{
    normal(t,
           "[{\"role\":\"user\",\"content\":\"a\",\"name\":\"n\",\"x\":{\"y\":[1,{\"z\":-2}]},"
           "\"refusal\":null,\"tool_calls\":[],\"function_call\":null}]",
           "[{\"role\":\"user\",\"content\":\"a\",\"name\":\"n\",\"x\":{\"y\":[1,{\"z\":-2}]}}]");
}

static void faults_are_told_with_their_place(qt *t)
{
    static const struct {
        const char *messages;
        qn_api_kind kind;
        const char *param, *say;
    } cases[] = {
        {"[]", QN_API_MISSING, "messages", "messages required"},
        {"null", QN_API_MISSING, "messages", "messages required"},
        {"\"a\"", QN_API_BAD_TYPE, "messages", "messages required"},
        {"[1]", QN_API_BAD_TYPE, "messages[0]", "must be of type object"},
        {"[{}]", QN_API_MISSING, "messages[0].role", "is required"},
        {"[{\"role\":\"function\",\"content\":\"a\"}]", QN_API_BAD_VALUE, "messages[0].role",
         "must be one of 'system', 'developer', 'user', 'assistant', 'tool'"},
        {"[{\"role\":\"user\"}]", QN_API_MISSING, "messages[0].content", "is required"},
        {"[{\"role\":\"user\",\"content\":3}]", QN_API_BAD_TYPE, "messages[0].content",
         "must be of type string or array"},
        {"[{\"role\":\"user\",\"content\":[3]}]", QN_API_BAD_TYPE, "messages[0].content[0]",
         "must be an object with a type"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", QN_API_BAD_TYPE,
         "messages[0].content[0]", "must have a text"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}}]}"
         "]",
         QN_API_UNSUPPORTED, "messages[0].content[0]", "model has no vision sidecar"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}]", QN_API_UNSUPPORTED,
         "messages[0].content[0]", "'input_audio'"},
        {"[{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[{}]}]", QN_API_BAD_VALUE,
         "messages[0].tool_calls", "belong to an assistant's message"},
        {"[{\"role\":\"assistant\",\"tool_calls\":3}]", QN_API_BAD_TYPE, "messages[0].tool_calls",
         "must be of type array"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{}]}]", QN_API_MISSING,
         "messages[0].tool_calls[0]", "must have a function with a name"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"custom\",\"function\":{\"name\":"
         "\"f\"}}]}]",
         QN_API_UNSUPPORTED, "messages[0].tool_calls[0]", "'function'"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":3,\"function\":{\"name\":\"f\"}}]}]",
         QN_API_BAD_TYPE, "messages[0].tool_calls[0]", "id of type string"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":3}}]"
         "}]",
         QN_API_BAD_TYPE, "messages[0].tool_calls[0].function.arguments", "must be of type string"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":3}]", QN_API_BAD_TYPE,
         "messages[0].reasoning", "must be of type string"},
        {"[{\"role\":\"assistant\",\"function_call\":{\"name\":\"f\"}}]", QN_API_UNSUPPORTED,
         "messages[0].function_call", "is not supported"},
        {"[{\"role\":\"assistant\",\"audio\":{\"id\":\"a\"}}]", QN_API_UNSUPPORTED,
         "messages[0].audio", "is not supported"},
        {"[{\"role\":\"tool\",\"content\":\"a\",\"tool_call_id\":3}]", QN_API_BAD_TYPE,
         "messages[0].tool_call_id", "must be of type string"},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++)
        bad(t, cases[i].messages, cases[i].kind, cases[i].param, cases[i].say);
}

static void the_last_message_can_be_continued(qt *t)
{
    static const char *const user = "[{\"role\":\"user\",\"content\":\"a\"}]";
    char body[512];
    bodied b;
    read_body(&b, QN_API_CHAT,
              "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"}],"
              "\"continue_final_message\":true}",
              NULL);
    QT_EQ(t, b.rc, QN_OK);
    QT_OK(t, b.chat.prompt.continue_final && !b.chat.prompt.add_generation_prompt);
    drop_body(&b);
    snprintf(body, sizeof body, "{\"messages\":%s,\"continue_final_message\":true}", user);
    refused(t, QN_API_CHAT, body, QN_API_BAD_VALUE, "continue_final_message", "not an assistant's");
    snprintf(body, sizeof body,
             "{\"messages\":%s,\"continue_final_message\":true,\"add_generation_prompt\":true}",
             user);
    refused(t, QN_API_CHAT, body, QN_API_BAD_VALUE, "continue_final_message", "exclude each other");
}

static void there_is_a_most_of_messages(qt *t)
{
    qn_api_limits limits = qn_api_default_limits;
    const char *two = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                      "{\"role\":\"user\",\"content\":\"b\"}]}";
    bodied b;
    limits.messages = 2;
    read_body(&b, QN_API_CHAT, two, &limits);
    QT_EQ(t, b.rc, QN_OK);
    QT_EQ(t, b.chat.prompt.n_messages, 2);
    drop_body(&b);
    limits.messages = 1;
    read_body(&b, QN_API_CHAT, two, &limits);
    QT_EQ(t, b.error.kind, QN_API_TOO_MANY);
    drop_body(&b);
}

QT_MAIN(QT(plain_messages_stay_as_they_are), QT(developer_becomes_system),
        QT(parts_of_text_become_one_text), QT(replayed_calls_have_objects_as_arguments),
        QT(broken_arguments_name_the_message), QT(reasoning_has_one_name),
        QT(other_members_reach_the_template), QT(faults_are_told_with_their_place),
        QT(the_last_message_can_be_continued), QT(there_is_a_most_of_messages))
