/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qt.h"

static void compares_and_finds(qt *t)
{
    const qn_str s = QN_STR("hello world"), none = {NULL, 0};
    QT_OK(t, qn_str_eq(none, QN_STR("")) && qn_str_eq_z(s, "hello world"));
    QT_OK(t,
          !qn_str_eq_z(s, "hello") && !qn_str_eq(qn_str_make("a\0b", 3), qn_str_make("a\0c", 3)));
    QT_OK(t, qn_str_has_prefix(s, QN_STR("hello")) && !qn_str_has_prefix(QN_STR("he"), s));
    QT_OK(t, qn_str_has_suffix(s, QN_STR("world")) && qn_str_has_suffix(s, none));
    QT_EQ(t, qn_str_find(s, QN_STR("o"), 0), 4);
    QT_EQ(t, qn_str_find(s, QN_STR("o"), 5), 7);
    QT_EQ(t, qn_str_find(s, QN_STR("o"), 8), SIZE_MAX);
    QT_EQ(t, qn_str_find(s, none, 11), 11);
    QT_EQ(t, qn_str_find(s, none, 12), SIZE_MAX);
    QT_OK(t,
          qn_str_cmp(QN_STR("a"), QN_STR("ab")) < 0 && qn_str_cmp(QN_STR("b"), QN_STR("ab")) > 0);
    QT_EQ(t, qn_str_cmp(none, QN_STR("")), 0);
    QT_OK(t, qn_str_eq_z(qn_str_trim(QN_STR(" \t a b\r\n")), "a b"));
    QT_EQ(t, qn_str_trim(QN_STR(" \n ")).n, 0);
    QT_OK(t, qn_str_eq_z(qn_str_slice(s, 6, 99), "world") && qn_str_slice(s, 9, 3).n == 0);
    QT_OK(t, qn_str_slice(none, 1, 2).n == 0 && qn_str_z(NULL).n == 0);
}

static void splits_into_every_piece(qt *t)
{
    static const struct {
        const char *text, *joined;
    } cases[] = {
        {"a,,b", "[a][][b]"}, {"", "[]"}, {",", "[][]"}, {"abc", "[abc]"}, {"a,", "[a][]"}};
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char got[64] = "";
        qn_str rest = qn_str_z(cases[i].text), piece;
        while (qn_str_split(&piece, &rest, ','))
            snprintf(got + strlen(got), sizeof got - strlen(got), "[%.*s]", QN_STR_ARG(piece));
        QT_STR(t, got, cases[i].joined);
    }
}

static void integers_use_the_whole_text(qt *t)
{
    int64_t i = 7;
    uint64_t u = 7;
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1x",
                                      "0x10",
                                      "--1",
                                      "1.",
                                      "1e3",
                                      "9223372036854775808",
                                      "-9223372036854775809"};
    for (size_t k = 0; k < QT_LEN(bad); k++)
        QT_OKF(t, !qn_str_parse_i64(&i, qn_str_z(bad[k])) && i == 7, "\"%s\" parsed", bad[k]);
    QT_OK(t, qn_str_parse_i64(&i, QN_STR("9223372036854775807")) && i == INT64_MAX);
    QT_OK(t, qn_str_parse_i64(&i, QN_STR("-9223372036854775808")) && i == INT64_MIN);
    QT_OK(t, qn_str_parse_i64(&i, QN_STR("-0")) && i == 0);
    QT_OK(t, qn_str_parse_u64(&u, QN_STR("18446744073709551615")) && u == UINT64_MAX);
    u = 7;
    QT_OK(t, !qn_str_parse_u64(&u, QN_STR("18446744073709551616")) && u == 7);
    QT_OK(t, !qn_str_parse_u64(&u, QN_STR("-1")) && !qn_str_parse_u64(&u, qn_str_make("1\0", 2)));
    QT_OK(t, qn_str_parse_u64(&u, qn_str_make("42abc", 2)) && u == 42);
}

static void reals_follow_the_json_grammar(qt *t)
{
    double d = 7;
    static const char *const bad[] = {"",   ".5",  "5.",  "+1",    "01",    "-",
                                      "1e", "1e+", "nan", "inf",   "0x1",   "1,5",
                                      " 1", "1 ",  "--1", "1e999", "-1e999"};
    for (size_t k = 0; k < QT_LEN(bad); k++)
        QT_OKF(t, !qn_str_parse_f64(&d, qn_str_z(bad[k])) && d == 7, "\"%s\" parsed", bad[k]);
    QT_OK(t, qn_str_parse_f64(&d, QN_STR("-1.5e+3")) && d == -1500.0);
    QT_OK(t, qn_str_parse_f64(&d, QN_STR("0")) && d == 0.0);
    QT_OK(t, qn_str_parse_f64(&d, QN_STR("5e-324")) && d > 0 && d < DBL_MIN);
    QT_OK(t, qn_str_parse_f64(&d, QN_STR("1e-999")) && d == 0.0);
    QT_OK(t, qn_str_parse_f64(&d, QN_STR("0.1")) && d == 0.1);
    QT_OK(t, !qn_str_parse_f64(&d, qn_str_make("1\0", 2)));
}

static void random_reals_round_trip(qt *t)
{
    size_t bad = 0;
    for (int i = 0; i < 2000; i++) {
        const uint64_t bits = qt_rand();
        double v = 0, back = 0;
        char s[64];
        memcpy(&v, &bits, sizeof v);
        if (v != v || v > DBL_MAX || v < -DBL_MAX) continue;
        snprintf(s, sizeof s, "%.17g", v);
        if (!qn_str_parse_f64(&back, qn_str_z(s)) || memcmp(&back, &v, sizeof v) != 0) bad++;
    }
    QT_EQ(t, bad, 0);
}

static void a_locale_with_a_decimal_comma_changes_nothing(qt *t)
{
    double d = 0;
    const char *set = setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* where it is installed */
    QT_OKF(t, qn_str_parse_f64(&d, QN_STR("1.5")) && d == 1.5, "locale %s", set ? set : "C");
    QT_OK(t, !qn_str_parse_f64(&d, QN_STR("1,5")));
    setlocale(LC_NUMERIC, "C");
}

QT_MAIN(QT(compares_and_finds), QT(splits_into_every_piece), QT(integers_use_the_whole_text),
        QT(reals_follow_the_json_grammar), QT(random_reals_round_trip),
        QT(a_locale_with_a_decimal_comma_changes_nothing))
