/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "dep/regex.h"
#include "qt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All matches of `pattern` in `text` as "begin-end ...", or the error's message. */
static void matches(qt *t, qn_regex_dialect dialect, const char *pattern, const char *text,
                    const char *want)
{
    qn_regex *re = NULL;
    qn_regex_scan *scan = NULL;
    qn_err err = {0};
    char got[512] = "";
    size_t at = 0, from = 0, n = strlen(text);
    bool found = true;
    if (qn_regex_new(&re, pattern, strlen(pattern), dialect, &err) != QN_OK ||
        qn_regex_scan_new(&scan, &err) != QN_OK)
        snprintf(got, sizeof got, "%s", err.msg);
    while (scan && from <= n) {
        qn_regex_match m = {0, 0};
        if (qn_regex_find(&found, &m, scan, re, text, n, from, &err) != QN_OK || !found) break;
        at += (size_t)snprintf(got + at, sizeof got - at, at ? " %zu-%zu" : "%zu-%zu", m.begin,
                               m.end);
        from = m.end > m.begin ? m.end : m.end + 1;
    }
    QT_OKF(t, strcmp(got, want) == 0, "/%s/ in \"%s\": %s, expected %s", pattern, text, got, want);
    qn_regex_scan_free(scan);
    qn_regex_free(re);
}

static void onig(qt *t, const char *pattern, const char *text, const char *want)
{
    matches(t, QN_REGEX_ONIG, pattern, text, want);
}

static void refused(qt *t, const char *pattern, qn_code code, const char *word)
{
    qn_regex *re = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_regex_new(&re, pattern, strlen(pattern), QN_REGEX_ONIG, &err), code);
    QT_OKF(t, !re && strstr(err.msg, word), "/%s/: \"%s\" does not name \"%s\"", pattern, err.msg,
           word);
    qn_regex_free(re);
}

static void finds_leftmost_matches_from_a_place(qt *t)
{
    matches(t, QN_REGEX_PERL, "b+", "abbab", "1-3 4-5");
    matches(t, QN_REGEX_PERL, "(?<=a)b", "ab", "1-2");
    matches(t, QN_REGEX_PERL, "x*", "ab", "0-0 1-1 2-2");
    matches(t, QN_REGEX_PERL, "(", "", "regular expression, byte 1: missing closing parenthesis");
}

static void lines_begin_and_end_everywhere(qt *t)
{
    onig(t, "^b$", "a\nb\nc", "2-3");
    onig(t, "\\Ab\\z", "a\nb", "");
    onig(t, ".+", "a\nb", "0-1 2-3");
}

static void space_is_white_space_and_nothing_else(qt *t)
{
    onig(t, "\\s", "a\xE1\xA0\x8E\xC2\x85\xE3\x80\x80\t\x1C",
         "4-6 6-9 9-10"); /* not U+180E, U+001C */
    onig(t, "[^\\s]+", " \xE1\xA0\x8E ", "1-4");
    onig(t, "[\\S]+", " \xE1\xA0\x8E ", "1-4");
    onig(t, "\\s+(?!\\S)|\\s+", "  a ", "0-1 1-2 3-4");
}

static void categories_know_code_points_newer_than_the_library(qt *t)
{
    onig(t, "\\p{L}", "\xF0\xB1\x8D\x90", "0-4"); /* U+31350, Unicode 15 */
    onig(t, "\\p{Nd}\\p{N}",
         "\xF0\x91\xAF\xB0"
         "1",
         "0-5"); /* U+11BF0, Unicode 16 */
    onig(t, "\\P{L}|[^\\p{L}]", "\xF0\xB1\x8D\x90", "");
    onig(t, "\\p{Lu}", "\xE1\xB2\x89", "0-3"); /* U+1C89 */
    onig(t, "\\w+", "a_1\xE2\x92\xB6\xF0\xB1\x8D\x90-", "0-10");
    onig(t, "\\W+|\\D", "-1", "0-1");
    onig(t, "\\p{Han}+", "\xE4\xB8\x80\xF0\xB1\x8D\x90\xE3\x80\x81", "0-7"); /* not U+3001 */
}

static void shorthands_of_the_dialect_are_rewritten(qt *t)
{
    onig(t, "\\h+", "xAf0g", "1-4");
    onig(t, "\\H", "ag", "1-2");
    onig(t, "\\v", "\n\x0B", "1-2");
    onig(t, "a{,2}b", "aaab", "1-4");
    onig(t, "a{2}|b{1,}|c{x}|{", "aabbc{x}{", "0-2 2-4 4-8 8-9");
    onig(t, "\\u00e9|\\x{1F600}|\\x41",
         "\xC3\xA9\xF0\x9F\x98\x80"
         "A",
         "0-2 2-6 6-7");
    onig(t, "\\-\\[[\\]\\-\\\\a]+", "-[]-\\a", "0-6");
    onig(t, "\\p{^L}", "a1", "1-2");
    onig(t, "(?>a+)b|(?:c|(d))(?=e)|(?<!f)g", "aab ce de g fg", "0-3 4-5 7-8 10-11");
}

static void case_is_ignored_where_asked(qt *t)
{
    onig(t, "(?i:'s|'ll)x", "'Sx'LLx'sX", "0-3 3-7");
    onig(t, "(?i)ab", "AB", "0-2");
    onig(t, "(?i:a(?-i:b))", "Ab AB", "0-2");
}

static void what_would_change_its_meaning_is_refused(qt *t)
{
    const qn_code no = QN_E_UNSUPPORTED;
    static const char *const patterns[][2] = {
        {"[a&&b]", "intersection"}, {"[a[b]]", "class inside"},
        {"[[:alpha:]]", "POSIX"},   {"a{1,2}+", "{n,m}+"},
        {"a{2}?", "{n}?"},          {"a\\b", "\\b"},
        {"(a)\\1", "\\1"},          {"a(?i)b", "(?i)"},
        {"(?m:a)", "group"},        {"(?<n>a)", "group"},
        {"\\p{Greek}", "Greek"},    {"\\pL", "braces"},
        {"[\\P{L}]", "negated"},    {"[\\W]", "negated"},
        {"\\xff", "raw byte"},      {"\\x{110000}", "no character"},
        {"\\u12", "incomplete"},    {"(?i:\\p{Lu})", "case category"},
        {"[]a]", "empty class"},    {"\\R", "\\R"},
        {"\\p{Cn}", "Cn"},          {"\\p{aaaaaaaaaaaaaaaaaaa}", "unknown property"},
    };
    for (size_t k = 0; k < QT_LEN(patterns); k++) refused(t, patterns[k][0], no, patterns[k][1]);
    char deep[71] = "";
    memset(deep, '(', 70);
    refused(t, deep, no, "nested");
}

static void wrong_patterns_are_refused(qt *t)
{
    static const char *const patterns[] = {"(a", "a)", "[a", "a\\", "\\p{L", "\xFF", "*a", "[b-a]"};
    for (size_t k = 0; k < QT_LEN(patterns); k++) {
        qn_regex *re = NULL;
        qn_err err = {0};
        QT_EQ(t, qn_regex_new(&re, patterns[k], strlen(patterns[k]), QN_REGEX_ONIG, &err),
              QN_E_FORMAT);
        QT_OK(t, !re && err.msg[0]);
    }
    char *huge = malloc(70000);
    memset(huge, 'a', 70000);
    qn_regex *re = NULL;
    QT_EQ(t, qn_regex_new(&re, huge, 70000, QN_REGEX_PERL, NULL), QN_E_LIMIT);
    free(huge);
}

static void a_pattern_that_explodes_gives_up_with_an_error(qt *t)
{
    qn_regex *re = NULL;
    qn_regex_scan *scan = NULL;
    qn_regex_match m;
    qn_err err = {0};
    bool found = false;
    char text[64];
    memset(text, 'a', sizeof text);
    text[63] = '!';
    QT_OK(t, qn_regex_new(&re, "(?:(?:a+)+)+$", 13, QN_REGEX_PERL, NULL) == QN_OK);
    QT_OK(t, qn_regex_scan_new(&scan, NULL) == QN_OK);
    if (re && scan)
        QT_EQ(t, qn_regex_find(&found, &m, scan, re, text, sizeof text, 0, &err), QN_E_LIMIT);
    QT_OK(t, !found && strstr(err.msg, "gave up"));
    qn_regex_scan_free(scan);
    qn_regex_free(re);
}

static void a_long_run_needs_no_stack(qt *t)
{
    const char *pattern = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    const size_t n = 1u << 22;
    char *text = malloc(n);
    qn_regex *re = NULL;
    qn_regex_scan *scan = NULL;
    qn_regex_match m = {0, 0};
    bool found = false;
    memset(text, ' ', n);
    text[n - 1] = 'x';
    QT_OK(t, qn_regex_new(&re, pattern, strlen(pattern), QN_REGEX_ONIG, NULL) == QN_OK);
    QT_OK(t, qn_regex_scan_new(&scan, NULL) == QN_OK);
    if (re && scan) QT_OK(t, qn_regex_find(&found, &m, scan, re, text, n, 0, NULL) == QN_OK);
    QT_OK(t, found && m.begin == 0 && m.end == n - 2);
    qn_regex_scan_free(scan);
    qn_regex_free(re);
    free(text);
}

static void making_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 200; n++) {
        qn_regex *re = NULL;
        qn_regex_scan *scan = NULL;
        qn_alloc_fail_after(n);
        rc = qn_regex_new(&re, "\\p{L}+|\\s", 9, QN_REGEX_ONIG, NULL);
        if (rc == QN_OK) rc = qn_regex_scan_new(&scan, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !scan));
        qn_regex_scan_free(scan);
        qn_regex_free(re);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
}

QT_MAIN(QT(finds_leftmost_matches_from_a_place), QT(lines_begin_and_end_everywhere),
        QT(space_is_white_space_and_nothing_else),
        QT(categories_know_code_points_newer_than_the_library),
        QT(shorthands_of_the_dialect_are_rewritten), QT(case_is_ignored_where_asked),
        QT(what_would_change_its_meaning_is_refused), QT(wrong_patterns_are_refused),
        QT(a_pattern_that_explodes_gives_up_with_an_error), QT(a_long_run_needs_no_stack),
        QT(making_survives_every_failed_allocation))
