/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "dep/json.h"
#include "kit.h"

static const char *str(const qn_json *v, const char *key)
{
    size_t n = 0;
    return qn_json_str(qn_json_get(v, key), &n);
}

static qn_json *written(qt *t, const qn_api_error *error)
{
    qn_buf out;
    qn_json *root = NULL;
    qn_buf_init(&out, 1 << 16);
    QT_EQ(t, qn_openai_write_error(&out, error, NULL), QN_OK);
    QT_EQ(t, qn_json_parse(&root, qn_buf_text(&out), out.len, 1 << 16, NULL), QN_OK);
    qn_buf_fini(&out);
    return root;
}

static void every_kind_has_status_type_and_body(qt *t)
{
    for (int k = 0; k < QN_API_KIND_COUNT; k++) {
        qn_api_error e;
        QT_OK(t, qn_api_fail(&e, (qn_api_kind)k, k % 2 ? "a.b" : NULL, "why %d", k) != QN_OK);
        QT_OK(t, e.status >= 400 && e.status < 600 && e.type && e.type[0]);
        qn_json *root = written(t, &e);
        const qn_json *body = qn_json_get(root, "error");
        char want[32];
        snprintf(want, sizeof want, "why %d", k);
        QT_STR(t, str(body, "message"), want);
        QT_STR(t, str(body, "type"), e.type);
        QT_OK(t, qn_json_get(body, "param") && qn_json_get(body, "code"));
        if (k % 2) QT_STR(t, str(body, "param"), "a.b");
        if (e.code) QT_STR(t, str(body, "code"), e.code);
        qn_json_free(root);
        QT_OK(t, qn_api_fail(NULL, (qn_api_kind)k, NULL, "why") != QN_OK);
    }
}

static void a_full_context_tells_both_numbers(qt *t)
{
    qn_api_error e;
    QT_EQ(t, qn_api_fail_context(&e, 9000, 8192), QN_E_LIMIT);
    QT_EQ(t, e.status, 400);
    QT_OK(t, strstr(e.message, "9000") && strstr(e.message, "8192"));
    qn_json *root = written(t, &e);
    const qn_json *body = qn_json_get(root, "error");
    QT_STR(t, str(body, "code"), "context_length_exceeded");
    QT_EQ(t, qn_json_int(qn_json_get(body, "prompt_tokens"), 0), 9000);
    QT_EQ(t, qn_json_int(qn_json_get(body, "context_window"), 0), 8192);
    qn_json_free(root);
}

static void codes_of_the_library_become_statuses(qt *t)
{
    static const int want[QN_CODE_COUNT] = {
        [QN_OK] = 500,          [QN_E_NOMEM] = 503,       [QN_E_INVAL] = 400,
        [QN_E_FORMAT] = 400,    [QN_E_NOTFOUND] = 404,    [QN_E_AGAIN] = 429,
        [QN_E_IO] = 500,        [QN_E_UNSUPPORTED] = 501, [QN_E_LIMIT] = 400,
        [QN_E_CANCELLED] = 499, [QN_E_INTERNAL] = 500,    [QN_E_DENIED] = 403,
    };
    for (int c = 0; c < QN_CODE_COUNT; c++) {
        qn_api_error e;
        const qn_err err = {.code = (qn_code)c, .msg = "said so"};
        QT_OK(t, qn_api_fail_lib(&e, &err) != QN_OK);
        QT_EQ(t, e.status, want[c]);
        QT_STR(t, e.message, "said so");
    }
    qn_api_error e;
    const qn_err odd = {.code = (qn_code)99}, mute = {.code = QN_E_NOMEM};
    QT_EQ(t, qn_api_fail_lib(&e, &odd), QN_E_INTERNAL);
    QT_EQ(t, e.status, 500);
    QT_EQ(t, qn_api_fail_lib(&e, &mute), QN_E_NOMEM);
    QT_OK(t, e.message[0] != '\0');
}

static void long_texts_are_cut_between_characters(qt *t)
{
    char text[1201];
    qn_api_error e;
    for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xc3\xa9", 2);
    text[1200] = '\0';
    for (int lead = 0; lead < 2; lead++) {
        (void)qn_api_fail(&e, QN_API_FAILED, text + lead * 1200, "%s%s", lead ? "x" : "", text);
        QT_OK(t, qn_utf8_valid(e.message, strlen(e.message), NULL));
        QT_OK(t, qn_utf8_valid(e.param, strlen(e.param), NULL));
        QT_OK(t, strlen(e.message) > 380);
    }
}

static void warnings_survive_every_failed_allocation(qt *t)
{
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_arena arena;
        qn_api_error e;
        qn_api_warnings w = {.n = 0};
        qn_arena_init(&arena, 4096);
        const size_t live = qn_alloc_live();
        qn_alloc_fail_after(n);
        rc = qn_api_warn(&w, &arena, &e, "%s", "w");
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK ? w.n == 1 : rc == QN_E_NOMEM && !w.n);
        qn_arena_fini(&arena);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(every_kind_has_status_type_and_body), QT(a_full_context_tells_both_numbers),
        QT(codes_of_the_library_become_statuses), QT(long_texts_are_cut_between_characters),
        QT(warnings_survive_every_failed_allocation))
