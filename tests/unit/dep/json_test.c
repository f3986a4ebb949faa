/* SPDX-License-Identifier: Apache-2.0 */
#include "dep/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "qt.h"

enum { MAX = 1 << 20 };

static qn_json *parse(qt *t, const char *text)
{
    qn_json *v = NULL;
    qn_err err = {.code = QN_OK};
    QT_OKF(t, qn_json_parse(&v, text, strlen(text), MAX, &err) == QN_OK, "%s: %s", text, err.msg);
    return v;
}

static void refuses(qt *t, const char *text, size_t n, qn_code want, const char *say)
{
    qn_json *v = NULL;
    qn_err err = {.code = QN_OK};
    const size_t live = qn_alloc_live();
    QT_OKF(t, qn_json_parse(&v, text, n, MAX, &err) == want, "%.20s: %d %s", text, (int)err.code,
           err.msg);
    QT_OK(t, v == NULL);
    QT_OKF(t, strstr(err.msg, say) != NULL, "\"%s\" lacks \"%s\"", err.msg, say);
    QT_EQ(t, qn_alloc_live(), live);
}

static void reads_every_type(qt *t)
{
    qn_json *v = parse(t, " {\"n\":null,\"b\":true,\"i\":-7,\"r\":2.5,\"s\":\"h\\u00e9\","
                          "\"a\":[1,2,3],\"o\":{\"x\":0}} ");
    size_t n = 0;
    QT_EQ(t, qn_json_type_of(v), QN_JSON_OBJECT);
    QT_EQ(t, qn_json_len(v), 7);
    QT_EQ(t, qn_json_type_of(qn_json_get(v, "n")), QN_JSON_NULL);
    QT_EQ(t, qn_json_type_of(qn_json_get(v, "b")), QN_JSON_BOOL);
    QT_OK(t, qn_json_bool(qn_json_get(v, "b"), false));
    QT_EQ(t, qn_json_int(qn_json_get(v, "i"), 0), -7);
    QT_OK(t, qn_json_num(qn_json_get(v, "i"), 0) == -7.0);
    QT_OK(t, qn_json_num(qn_json_get(v, "r"), 0) == 2.5);
    QT_STR(t, qn_json_str(qn_json_get(v, "s"), &n), "h\xc3\xa9");
    QT_EQ(t, n, 3);
    QT_EQ(t, qn_json_len(qn_json_get(v, "a")), 3);
    QT_EQ(t, qn_json_int(qn_json_at(qn_json_get(v, "a"), 2), 0), 3);
    QT_EQ(t, qn_json_int(qn_json_get(qn_json_get(v, "o"), "x"), 9), 0);
    qn_json_free(v);
}

static void gives_fallbacks_for_other_types(qt *t)
{
    qn_json *v = parse(t, "{\"s\":\"1\",\"r\":1.0,\"a\":[]}");
    size_t n = 9;
    QT_EQ(t, qn_json_int(qn_json_get(v, "s"), 5), 5);
    QT_EQ(t, qn_json_int(qn_json_get(v, "r"), 5), 5);
    QT_OK(t, qn_json_num(qn_json_get(v, "s"), 5) == 5.0);
    QT_OK(t, qn_json_bool(qn_json_get(v, "none"), true));
    QT_OK(t, qn_json_str(qn_json_get(v, "r"), &n) == NULL && n == 0);
    QT_OK(t, qn_json_at(v, 0) == NULL && qn_json_at(qn_json_get(v, "a"), 0) == NULL);
    QT_OK(t, qn_json_get(NULL, "x") == NULL && qn_json_at(NULL, 0) == NULL);
    QT_EQ(t, qn_json_type_of(NULL), QN_JSON_NULL);
    QT_EQ(t, qn_json_len(NULL), 0);
    QT_EQ(t, qn_json_len(qn_json_get(v, "s")), 0);
    qn_json_free(v);
    qn_json_free(NULL);
}

static void walks_members_in_file_order(qt *t)
{
    qn_json *v = parse(t, "{\"z\":0,\"a\":1,\"m\":2,\"b\":3}");
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    char keys[8] = "";
    int64_t i = 0;
    while (qn_json_next(v, &it, &key, &value)) {
        QT_EQ(t, qn_json_int(value, -1), i);
        keys[i++] = key[0];
    }
    QT_STR(t, keys, "zamb");
    it = NULL; /* neither has to be asked for */
    QT_OK(t, qn_json_next(v, &it, NULL, NULL) && qn_json_next(v, &it, NULL, &value));
    QT_EQ(t, qn_json_int(value, -1), 1);
    qn_json_free(v);
    it = NULL;
    v = parse(t, "[1]");
    QT_OK(t, !qn_json_next(v, &it, &key, &value));
    qn_json_free(v);
}

static void keeps_nul_in_strings(qt *t)
{
    qn_json *v = parse(t, "\"a\\u0000b\"");
    size_t n = 0;
    const char *s = qn_json_str(v, &n);
    QT_OK(t, n == 3 && s && memcmp(s, "a\0b", 4) == 0);
    char *text = NULL;
    QT_EQ(t, qn_json_dump(&text, &n, v, NULL), QN_OK);
    QT_STR(t, text, "\"a\\u0000b\"");
    qn_free(text);
    qn_json_free(v);
}

static void refuses_what_is_not_json(qt *t)
{
    static const char *const bad[] = {
        "",
        "{",
        "{\"a\":1,}",
        "[1,]",
        "nul",
        "01",
        "1.",
        "\"a",
        "'a'",
        "{a:1}",
        "NaN",
        "+1",
        "[1] x",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\x01\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "1e999",
        "-",
        "\xef\xbb\xbf{}",
        "{\"\\u0000\":1}",
    };
    for (size_t i = 0; i < QT_LEN(bad); i++)
        refuses(t, bad[i], strlen(bad[i]), QN_E_FORMAT, "json: line");
    refuses(t, "[1\0]", 4, QN_E_FORMAT, "NUL at byte 2 of 4");
    refuses(t, NULL, 0, QN_E_FORMAT, "json:");
}

static void tells_line_and_column(qt *t)
{
    refuses(t, "{\n  \"a\": ?\n}", 12, QN_E_FORMAT, "line 2, column 8");
}

static void refuses_duplicate_keys(qt *t)
{
    refuses(t, "{\"a\":1,\"b\":2,\"a\":1}", 19, QN_E_FORMAT, "duplicate");
}

static void refuses_above_the_size_ceiling(qt *t)
{
    qn_json *v = NULL;
    qn_err err;
    QT_EQ(t, qn_json_parse(&v, "[12]", 4, 3, &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "4 bytes, at most 3") != NULL);
    QT_EQ(t, qn_json_parse(&v, "[12]", 4, 4, &err), QN_OK);
    qn_json_free(v);
}

static void refuses_above_the_depth_ceiling(qt *t)
{
    enum { N = 100000 };
    char *deep = malloc(N);
    QT_OK(t, deep != NULL);
    memset(deep, '[', N);
    refuses(t, deep, N, QN_E_LIMIT, "depth");
    memset(deep + 500, ']', 500);
    qn_json *v = NULL;
    QT_EQ(t, qn_json_parse(&v, deep, 1000, MAX, NULL), QN_OK);
    qn_json_free(v);
    free(deep);
}

static void reads_the_extreme_integers(qt *t)
{
    qn_json *v = parse(t, "[9223372036854775807,-9223372036854775808]");
    QT_OK(t, qn_json_int(qn_json_at(v, 0), 0) == INT64_MAX);
    QT_OK(t, qn_json_int(qn_json_at(v, 1), 0) == INT64_MIN);
    qn_json_free(v);
}

static void reads_larger_integers_as_reals(qt *t)
{
    qn_json *v = parse(t, "{\"max\":1000000000000000019884624838656,"
                          "\"s\":\"9223372036854775808 \\\"9223372036854775808\","
                          "\"edge\":[9223372036854775807,9223372036854775808,"
                          "-9223372036854775808,-9223372036854775809],\"i\":12,\"r\":-1.5e-3}");
    const qn_json *edge = qn_json_get(v, "edge");
    size_t n = 0;
    QT_OK(t, qn_json_num(qn_json_get(v, "max"), 0) == 1000000000000000019884624838656.0);
    QT_EQ(t, qn_json_int(qn_json_get(v, "max"), -1), -1);
    QT_STR(t, qn_json_str(qn_json_get(v, "s"), &n), "9223372036854775808 \"9223372036854775808");
    QT_OK(t, qn_json_int(qn_json_at(edge, 0), 0) == INT64_MAX);
    QT_OK(t, qn_json_num(qn_json_at(edge, 1), 0) == 0x1p63);
    QT_OK(t, qn_json_int(qn_json_at(edge, 2), 0) == INT64_MIN);
    QT_OK(t, qn_json_num(qn_json_at(edge, 3), 0) == -0x1p63);
    QT_EQ(t, qn_json_int(qn_json_get(v, "i"), 0), 12);
    QT_OK(t, qn_json_num(qn_json_get(v, "r"), 0) == -1.5e-3);
    qn_json_free(v);
}

/* The reader takes the rewritten text in pieces: a large number at every offset of a piece. */
static void reads_larger_integers_at_every_offset(qt *t)
{
    char text[1200];
    for (size_t pad = 980; pad < 1060; pad++) {
        const int n = snprintf(text, sizeof text, "[\"%0*d\",98765432109876543210,5]", (int)pad, 0);
        qn_json *v = NULL;
        QT_EQ(t, qn_json_parse(&v, text, (size_t)n, MAX, NULL), QN_OK);
        QT_OK(t, qn_json_num(qn_json_at(v, 1), 0) == 98765432109876543210.0);
        QT_EQ(t, qn_json_int(qn_json_at(v, 2), 0), 5);
        qn_json_free(v);
    }
}

static void prints_what_it_read(qt *t)
{
    static const char text[] = "{\"b\":[1,-2,3.5,true,false,null],\"a\":{\"\":\"\\\"\\\\\\n\"},"
                               "\"u\":\"\xf0\x9f\x98\x80\"}";
    qn_json *v = parse(t, text);
    char *again = NULL;
    size_t n = 0;
    QT_EQ(t, qn_json_dump(&again, &n, v, NULL), QN_OK);
    QT_STR(t, again, text);
    QT_EQ(t, n, strlen(text));
    qn_free(again);
    qn_json_free(v);
    QT_EQ(t, qn_json_dump(&again, &n, NULL, NULL), QN_E_INVAL);
}

static qn_json *build(void)
{
    qn_json *o = qn_json_new_object(), *a = qn_json_new_array();
    bool ok = o && a;
    ok = ok && qn_json_push(a, qn_json_new_int(1)) && qn_json_push(a, qn_json_new_num(0.5)) &&
         qn_json_push(a, qn_json_new_bool(true)) && qn_json_push(a, qn_json_new_null());
    ok = ok && qn_json_set(o, "k", qn_json_new_str("v\0w", 3));
    if (!o || !a || !qn_json_set(o, "list", a)) {
        if (!o) qn_json_free(a);
        ok = false;
    }
    if (ok) return o;
    qn_json_free(o);
    return NULL;
}

static void builds_documents(qt *t)
{
    const size_t live = qn_alloc_live();
    qn_json *v = build();
    char *text = NULL;
    size_t n = 0;
    QT_EQ(t, qn_json_dump(&text, &n, v, NULL), QN_OK);
    QT_STR(t, text, "{\"k\":\"v\\u0000w\",\"list\":[1,0.5,true,null]}");
    qn_free(text);
    qn_json_free(v);
    QT_OK(t, qn_json_new_str("\xff", 1) == NULL);
    QT_OK(t, qn_json_new_num((double)NAN) == NULL);
    qn_json *o = qn_json_new_object();
    QT_OK(t, !qn_json_set(o, "x", NULL) && !qn_json_set(o, "\xff", qn_json_new_int(1)));
    QT_OK(t, !qn_json_push(o, qn_json_new_int(1)));
    qn_json_free(o);
    QT_EQ(t, qn_alloc_live(), live);
}

static void memory_is_counted(qt *t)
{
    const size_t bytes = qn_alloc_live_bytes();
    qn_json *v = parse(t, "[1,2,3]");
    QT_OK(t, qn_alloc_live_bytes() > bytes);
    qn_json_free(v);
    QT_EQ(t, qn_alloc_live_bytes(), bytes);
}

/* Long strings and many members make the lexer and the tables grow: a growth that fails must not
 * give a document that lacks bytes. */
static void parse_survives_every_failed_allocation(qt *t)
{
    char text[900];
    const int n = snprintf(text, sizeof text,
                           "{\"long\":\"%0400d\",\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,"
                           "\"g\":7,\"h\":8,\"i\":9,\"list\":[1,2,3,4,5,6,7,8,9,1.5],"
                           "\"big\":98765432109876543210}",
                           0);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t k = 0;
    for (; rc != QN_OK && k < 400; k++) {
        qn_json *v = NULL;
        qn_alloc_fail_after(k);
        rc = qn_json_parse(&v, text, (size_t)n, MAX, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, (rc == QN_OK && v) || (rc == QN_E_NOMEM && !v));
        qn_json_free(v);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, rc == QN_OK && k > 20);
}

static void dump_survives_every_failed_allocation(qt *t)
{
    char text[900];
    const int n = snprintf(text, sizeof text, "[\"%0400d\",{\"a\":[1.5,2,null]}]", 0);
    qn_json *v = NULL;
    QT_EQ(t, qn_json_parse(&v, text, (size_t)n, MAX, NULL), QN_OK);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t k = 0; rc != QN_OK && k < 64; k++) {
        char *again = NULL;
        size_t len = 0;
        qn_alloc_fail_after(k);
        rc = qn_json_dump(&again, &len, v, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK ? strcmp(again, text) == 0 : rc == QN_E_NOMEM && !again);
        qn_free(again);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
    qn_json_free(v);
}

static void build_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_json *v = NULL;
    for (size_t k = 0; !v && k < 64; k++) {
        qn_alloc_fail_after(k);
        v = build();
        qn_alloc_fail_after(SIZE_MAX);
        if (!v) QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, v != NULL);
    qn_json_free(v);
    QT_EQ(t, qn_alloc_live(), before);
}

QT_MAIN(QT(reads_every_type), QT(gives_fallbacks_for_other_types), QT(walks_members_in_file_order),
        QT(keeps_nul_in_strings), QT(refuses_what_is_not_json), QT(tells_line_and_column),
        QT(refuses_duplicate_keys), QT(refuses_above_the_size_ceiling),
        QT(refuses_above_the_depth_ceiling), QT(reads_the_extreme_integers),
        QT(reads_larger_integers_as_reals), QT(reads_larger_integers_at_every_offset),
        QT(prints_what_it_read), QT(builds_documents), QT(memory_is_counted),
        QT(parse_survives_every_failed_allocation), QT(dump_survives_every_failed_allocation),
        QT(build_survives_every_failed_allocation))
