/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stops.h"

#include <string.h>

#include "base/alloc.h"
#include "qt.h"

static qn_stops *make(qt *t, const char *const *text, uint32_t n)
{
    qn_str s[8];
    qn_stops *out = NULL;
    for (uint32_t i = 0; i < n; i++) s[i] = (qn_str){text[i], strlen(text[i])};
    QT_EQ(t, qn_stops_new(&out, s, n, NULL), QN_OK);
    return out;
}

static void finds_a_string_across_pieces_and_holds_its_start(qt *t)
{
    static const char *const stop[] = {"END"};
    qn_stops *s = make(t, stop, 1);
    uint32_t state[1] = {0};
    QT_EQ(t, qn_stops_push(s, state, "Hello E", 7, true).stop, QN_NO_STOP);
    QT_EQ(t, qn_stops_held(s, state), 1);
    QT_EQ(t, qn_stops_push(s, state, "EN", 2, true).stop, QN_NO_STOP);
    QT_EQ(t, qn_stops_held(s, state), 2);
    const qn_stop_hit hit = qn_stops_push(s, state, "D and more", 10, true);
    QT_OK(t, hit.stop == 0 && hit.after == 1 && hit.len == 3);
    qn_stops_free(s);
}

static void the_first_to_end_wins_then_the_longest(qt *t)
{
    static const char *const stop[] = {"bcd", "c", "abc", "zz"};
    qn_stops *s = make(t, stop, 4);
    uint32_t state[4] = {0};
    const qn_stop_hit hit = qn_stops_push(s, state, "xabcd", 5, true);
    QT_OK(t, hit.stop == 2 && hit.after == 4 && hit.len == 3);
    QT_EQ(t, qn_stops_longest(s), 3);
    qn_stops_free(s);
}

static void an_unarmed_hit_is_text_and_its_border_still_counts(qt *t)
{
    static const char *const stop[] = {"abab"};
    qn_stops *s = make(t, stop, 1);
    uint32_t state[1] = {0};
    QT_EQ(t, qn_stops_push(s, state, "abab", 4, false).stop, QN_NO_STOP);
    QT_EQ(t, qn_stops_held(s, state), 2);
    const qn_stop_hit hit = qn_stops_push(s, state, "ab", 2, true);
    QT_OK(t, hit.stop == 0 && hit.after == 2 && hit.len == 4);
    qn_stops_free(s);
}

typedef struct found {
    size_t begin, end, shown; /* 99: nothing found */
} found;

/* The definition: look at every end in turn. */
static found plain_search(const char *text, const char *const stop[2])
{
    found f = {99, 99, 0};
    for (size_t e = 1; e <= strlen(text) && f.end == 99; e++)
        for (int i = 0; i < 2; i++) {
            const size_t n = strlen(stop[i]);
            if (e < n || memcmp(text + e - n, stop[i], n) != 0) continue;
            f.end = e;
            if (e - n < f.begin) f.begin = e - n;
        }
    return f;
}

static found in_pieces(const qn_stops *s, const char *text, size_t step)
{
    found f = {99, 99, 0};
    uint32_t state[2] = {0};
    const size_t len = strlen(text);
    for (size_t at = 0; at < len && f.end == 99; at += step) {
        const size_t n = at + step < len ? step : len - at;
        const qn_stop_hit hit = qn_stops_push(s, state, text + at, n, true);
        if (hit.stop == QN_NO_STOP) {
            f.shown = at + n - qn_stops_held(s, state);
        } else {
            f.end = at + hit.after;
            f.begin = f.end - hit.len;
        }
    }
    return f;
}

static void agrees_with_a_plain_search_over_all_short_texts(qt *t)
{
    static const char *const sets[][2] = {
        {"aa", "aba"}, {"abab", "bb"}, {"aab", "b"}, {"aaaa", "abba"}};
    for (size_t k = 0; k < QT_LEN(sets); k++) {
        qn_stops *s = make(t, sets[k], 2);
        for (uint32_t bits = 0; bits < 1u << 10; bits++) {
            char text[11] = {0};
            for (int i = 0; i < 10; i++) text[i] = bits >> i & 1 ? 'a' : 'b';
            const found want = plain_search(text, sets[k]), got = in_pieces(s, text, 1 + bits % 4);
            QT_OKF(t, got.end == want.end && got.begin == want.begin, "%s", text);
            QT_OKF(t, want.end == 99 || got.shown <= want.begin, "%s shows %zu", text, got.shown);
        }
        qn_stops_free(s);
    }
}

static void refuses_empty_and_endless_strings(qt *t)
{
    qn_stops *s = NULL;
    qn_err err = {0};
    const qn_str empty = {"", 0};
    QT_EQ(t, qn_stops_new(&s, &empty, 1, &err), QN_E_INVAL);
    QT_OK(t, s == NULL && strstr(err.msg, "empty"));
    const qn_str huge = {"x", QN_STOPS_MAX_BYTES + 1};
    QT_EQ(t, qn_stops_new(&s, &huge, 1, &err), QN_E_LIMIT);
    QT_OK(t, s == NULL);
}

static void new_survives_every_failed_allocation(qt *t)
{
    const qn_str text[] = {{"stop", 4}, {"END", 3}};
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_stops *s = NULL;
        qn_alloc_fail_after(n);
        rc = qn_stops_new(&s, text, 2, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && s == NULL));
        qn_stops_free(s);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(finds_a_string_across_pieces_and_holds_its_start),
        QT(the_first_to_end_wins_then_the_longest),
        QT(an_unarmed_hit_is_text_and_its_border_still_counts),
        QT(agrees_with_a_plain_search_over_all_short_texts), QT(refuses_empty_and_endless_strings),
        QT(new_survives_every_failed_allocation))
