/* SPDX-License-Identifier: Apache-2.0 */
/* chat_log_test.c - a conversation in memory and in its file. */
#include "cli/chat_log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "qt.h"

static void fill(qt *t, qn_chat_log *log)
{
    qn_chat_log_init(log);
    QT_EQ(t, qn_chat_log_set_system(log, QN_STR("be \"brief\""), NULL), QN_OK);
    QT_EQ(t, qn_chat_log_add(log, QN_CHAT_USER, QN_STR("h\xC3\xB6i\n"), NULL), QN_OK);
    QT_EQ(t, qn_chat_log_add(log, QN_CHAT_ASSISTANT, QN_STR(""), NULL), QN_OK);
}

static void a_saved_conversation_comes_back(qt *t)
{
    qn_chat_log a, b;
    qn_buf first, second;
    struct stat st;
    char path[600];
    fill(t, &a);
    qn_chat_log_init(&b);
    qn_buf_init(&first, 1 << 20);
    qn_buf_init(&second, 1 << 20);
    snprintf(path, sizeof path, "%s/chat.json", qt_tmp());
    QT_EQ(t, qn_chat_log_save(&a, path, "model.gguf", NULL), QN_OK);
    QT_OK(t, stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    QT_EQ(t, qn_chat_log_load(&b, path, NULL), QN_OK);
    QT_EQ(t, qn_chat_log_messages(&first, &a, NULL), QN_OK);
    QT_EQ(t, qn_chat_log_messages(&second, &b, NULL), QN_OK);
    QT_STR(t, qn_buf_text(&first), qn_buf_text(&second));
    QT_STR(t, qn_buf_text(&first),
           "[{\"role\":\"system\",\"content\":\"be \\\"brief\\\"\"},{\"role\":\"user\",\"content\":"
           "\"h\xC3\xB6i\\n\"},{\"role\":\"assistant\",\"content\":\"\"}]");
    QT_EQ(t, b.bytes, a.bytes);
    qn_chat_log_cut(&b, 1);
    QT_OK(t, b.n_turns == 1 && b.bytes == a.bytes);
    qn_buf_fini(&first);
    qn_buf_fini(&second);
    qn_chat_log_fini(&a);
    qn_chat_log_fini(&b);
}

static void what_is_no_saved_chat_is_refused_and_changes_nothing(qt *t)
{
    static const struct {
        const char *text, *said;
        qn_code code;
    } rows[] = {
        {"", "", QN_E_FORMAT},
        {"[]", "expected an object", QN_E_FORMAT},
        {"{\"messages\":[]}", "\"quern_chat\" is missing", QN_E_FORMAT},
        {"{\"quern_chat\":2,\"messages\":[]}", "version 2", QN_E_UNSUPPORTED},
        {"{\"quern_chat\":1}", "\"messages\" is no list", QN_E_FORMAT},
        {"{\"quern_chat\":1,\"messages\":[],\"x\":0}", "key \"x\"", QN_E_FORMAT},
        {"{\"quern_chat\":1,\"system\":3,\"messages\":[]}", "\"system\"", QN_E_FORMAT},
        {"{\"quern_chat\":1,\"messages\":[1]}", "message 0", QN_E_FORMAT},
        {"{\"quern_chat\":1,\"messages\":[{\"role\":\"user\"}]}", "message 0", QN_E_FORMAT},
        {"{\"quern_chat\":1,\"messages\":[{\"role\":\"tool\",\"content\":\"\"}]}",
         "role \"tool\", expected user or assistant", QN_E_FORMAT},
    };
    qn_chat_log log;
    fill(t, &log);
    for (size_t i = 0; i < QT_LEN(rows); i++) {
        qn_err err = {0};
        QT_OKF(t, qn_chat_log_parse(&log, rows[i].text, strlen(rows[i].text), &err) == rows[i].code,
               "%s", rows[i].text);
        QT_OKF(t, strstr(err.msg, rows[i].said) != NULL, "\"%s\" does not say \"%s\"", err.msg,
               rows[i].said);
        QT_OK(t, log.n_turns == 2 && log.system_n == 10);
    }
    qn_err err = {0};
    QT_EQ(t, qn_chat_log_add(&log, QN_CHAT_USER, QN_STR("\xFF"), &err), QN_E_FORMAT);
    QT_EQ(t, qn_chat_log_load(&log, "/nowhere/chat.json", &err), QN_E_NOTFOUND);
    QT_EQ(t, qn_chat_log_save(&log, "/nowhere/chat.json", NULL, &err), QN_E_NOTFOUND);
    QT_EQ(t, log.n_turns, 2);
    qn_chat_log_fini(&log);
}

static void reading_survives_every_failed_allocation(qt *t)
{
    static const char text[] =
        "{\"quern_chat\":1,\"model\":null,\"system\":\"s\",\"messages\":[{\"role\":\"user\","
        "\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]}";
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 200; n++) {
        qn_chat_log log;
        qn_chat_log_init(&log);
        qn_alloc_fail_after(n);
        rc = qn_chat_log_parse(&log, text, sizeof text - 1, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && log.n_turns == 0));
        qn_chat_log_fini(&log);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
}

QT_MAIN(QT(a_saved_conversation_comes_back),
        QT(what_is_no_saved_chat_is_refused_and_changes_nothing),
        QT(reading_survives_every_failed_allocation))
