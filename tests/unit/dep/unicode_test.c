/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/utf8.h"
#include "dep/unicode.h"
#include "qt.h"

#include <stdlib.h>
#include <string.h>

static void normalizes(qt *t, qn_unorm form, const char *text, const char *want)
{
    char *got = NULL;
    size_t n = 0;
    QT_OK(t, qn_unicode_normalize(&got, &n, text, strlen(text), form, NULL) == QN_OK);
    QT_OKF(t, got && n == strlen(want) && memcmp(got, want, n) == 0, "form %d of \"%s\": \"%.*s\"",
           (int)form, text, (int)n, got ? got : "");
    qn_free(got);
}

static void categories_come_from_both_tables(qt *t)
{
    QT_EQ(t, qn_unicode_category('A'), QN_UCAT_LU);
    QT_EQ(t, qn_unicode_category(' '), QN_UCAT_ZS);
    QT_EQ(t, qn_unicode_category(0x31350), QN_UCAT_LO); /* Unicode 15 */
    QT_EQ(t, qn_unicode_category(0x1C89), QN_UCAT_LU);  /* Unicode 16 */
    QT_EQ(t, qn_unicode_category(0x1171E), QN_UCAT_MC); /* recategorised */
    QT_EQ(t, qn_unicode_category(0x378), QN_UCAT_CN);
    QT_EQ(t, qn_unicode_category(0xD800), QN_UCAT_CS);
    QT_EQ(t, qn_unicode_category(0x110000), QN_UCAT_CN);
}

static void classes_are_those_of_the_oracle(qt *t)
{
    QT_OK(t, qn_unicode_is_number('7') && qn_unicode_is_number(0xBD) && !qn_unicode_is_number('x'));
    QT_OK(t, qn_unicode_is_number(0x11DE0)); /* Unicode 17 */
    QT_OK(t,
          qn_unicode_is_punct('$') && qn_unicode_is_punct(0x2014) && !qn_unicode_is_punct(0x2E52));
    QT_OK(t, qn_unicode_is_mark(0x301) && !qn_unicode_is_mark('a'));
    QT_OK(t, qn_unicode_is_space(0x3000) && !qn_unicode_is_space(0x180E) &&
                 !qn_unicode_is_space(0x1C));
    QT_OK(t, qn_unicode_is_word('_') && qn_unicode_is_word(0x24B6) && qn_unicode_is_word(0x200D));
    QT_OK(t, !qn_unicode_is_word('-') && !qn_unicode_is_word(0x2460));
}

static void lower_case_may_be_two_code_points(qt *t)
{
    uint32_t c[3];
    QT_OK(t, qn_unicode_lower(c, 'Q') == 1 && c[0] == 'q');
    QT_OK(t, qn_unicode_lower(c, 0x130) == 2 && c[0] == 'i' && c[1] == 0x307);
    QT_OK(t, qn_unicode_lower(c, 0x1C89) == 1 && c[0] == 0x1C8A);
    QT_OK(t, qn_unicode_lower(c, 0x110000) == 1 && c[0] == 0x110000);
}

static void forms_compose_and_decompose(qt *t)
{
    normalizes(t, QN_UNORM_NFC, "", "");
    normalizes(t, QN_UNORM_NFC, "plain", "plain");
    normalizes(t, QN_UNORM_NFC, "xe\xCC\x81y", "x\xC3\xA9y");
    normalizes(t, QN_UNORM_NFD, "x\xC3\xA9y", "xe\xCC\x81y");
    normalizes(t, QN_UNORM_NFC, "\xEF\xAC\x81", "\xEF\xAC\x81");
    normalizes(t, QN_UNORM_NFKC, "\xEF\xAC\x81", "fi");
    normalizes(t, QN_UNORM_NFKD, "\xE2\x91\xA0\xC3\xA9", "1e\xCC\x81");
    normalizes(t, QN_UNORM_NFC, "\xE1\x84\x80\xE1\x85\xA1", "\xEA\xB0\x80"); /* Hangul */
    normalizes(t, QN_UNORM_NFC, "q\xCC\x87\xCC\xA3", "q\xCC\xA3\xCC\x87");   /* marks by class */
}

static void newer_marks_stay_where_they_are(qt *t)
{
    /* U+0898 has class 220 since Unicode 14: a normaliser that knew it would move it before U+0301 */
    normalizes(t, QN_UNORM_NFC, "q\xCC\x81\xE0\xA2\x98", "q\xCC\x81\xE0\xA2\x98");
}

static void refuses_what_is_no_utf8(qt *t)
{
    char *out = NULL;
    size_t n = 0;
    qn_err err = {0};
    QT_EQ(t, qn_unicode_normalize(&out, &n, "a\xFF", 2, QN_UNORM_NFC, &err), QN_E_FORMAT);
    QT_OK(t, !out && strstr(err.msg, "byte 1"));
}

/* Long runs: the chunks join seamlessly, and marks in the worst order are sorted. */
static void long_texts_normalize_as_short_ones(qt *t)
{
    const size_t n = 200000;
    char *text = malloc(n * 2 + 1), *got = NULL;
    size_t len = 0, low = 0;
    text[0] = 'a';
    for (size_t k = 0; k < n; k++) memcpy(text + 1 + 2 * k, k % 2 ? "\xCC\xA3" : "\xCC\x87", 2);
    QT_OK(t, qn_unicode_normalize(&got, &len, text, n * 2 + 1, QN_UNORM_NFD, NULL) == QN_OK);
    for (size_t k = 1; k + 1 < len && memcmp(got + k, "\xCC\xA3", 2) == 0; k += 2) low++;
    QT_OK(t, len == n * 2 + 1 && low == n / 2);
    qn_free(got);
    for (size_t k = 0; k < n / 2; k++) memcpy(text + 4 * k, "\xC3\xA9\xC3\xA8", 4);
    QT_OK(t, qn_unicode_normalize(&got, &len, text, n * 2, QN_UNORM_NFC, NULL) == QN_OK);
    QT_OK(t, len == n * 2 && memcmp(got, text, len) == 0);
    qn_free(got);
    free(text);
}

static void normalizing_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t k = 0; rc != QN_OK && k < 50; k++) {
        char *out = NULL;
        size_t n = 0;
        qn_alloc_fail_after(k);
        rc = qn_unicode_normalize(&out, &n, "\xC3\xA9", 2, QN_UNORM_NFKD, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !out));
        qn_free(out);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
}

QT_MAIN(QT(categories_come_from_both_tables), QT(classes_are_those_of_the_oracle),
        QT(lower_case_may_be_two_code_points), QT(forms_compose_and_decompose),
        QT(newer_marks_stay_where_they_are), QT(refuses_what_is_no_utf8),
        QT(long_texts_normalize_as_short_ones), QT(normalizing_survives_every_failed_allocation))
