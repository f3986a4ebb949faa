/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

#include "qt.h"

/* Every scalar value comes back from its encoding, in the shortest form. */
static void every_character_round_trips(qt *t)
{
    size_t bad = 0;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        uint32_t back = 0;
        const size_t n = qn_utf8_encode(s, cp);
        const bool surrogate = cp >= 0xD800 && cp <= 0xDFFF;
        const size_t want = surrogate ? 0 : cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        if (n != want) bad++;
        if (n && (qn_utf8_step(s, n, &back) != n || back != cp)) bad++;
    }
    QT_EQ(t, bad, 0);
    QT_EQ(t, qn_utf8_encode((char[4]){0}, 0x110000), 0);
}

typedef struct bad_case {
    const char *bytes;
    size_t n, step; /* length of the first maximal subpart */
} bad_case;

static void malformed_sequences_step_by_maximal_subparts(qt *t)
{
    static const bad_case cases[] = {{"\x80", 1, 1},
                                     {"\xC0\x80", 2, 1},
                                     {"\xC1\xBF", 2, 1},
                                     {"\xC3", 1, 1},
                                     {"\xC3(", 2, 1},
                                     {"\xE0\x80\x80", 3, 1},
                                     {"\xE0\xA0", 2, 2},
                                     {"\xE2\x82", 2, 2},
                                     {"\xE2\x82(", 3, 2},
                                     {"\xED\xA0\x80", 3, 1},
                                     {"\xF0\x80\x80\x80", 4, 1},
                                     {"\xF0\x9F\x98", 3, 3},
                                     {"\xF4\x90\x80", 3, 1},
                                     {"\xF5\x80", 2, 1},
                                     {"\xFF", 1, 1},
                                     {"\xF1\x80\x80(", 4, 3}};
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        uint32_t cp = 0;
        QT_EQ(t, qn_utf8_step(cases[i].bytes, cases[i].n, &cp), cases[i].step);
        QT_EQ(t, cp, QN_UTF8_BAD);
        QT_OK(t, !qn_utf8_valid(cases[i].bytes, cases[i].n, NULL));
    }
}

static void tells_where_the_first_fault_is(qt *t)
{
    size_t bad = 99;
    QT_OK(t, qn_utf8_valid("", 0, &bad) && bad == 99);
    QT_OK(t, qn_utf8_valid("a\0\xC3\xA9\xF0\x9F\x98\x80", 8, &bad));
    QT_OK(t, !qn_utf8_valid("ab\xE2\x82", 4, &bad) && bad == 2);
}

/* A cut anywhere inside a character is held back; whole characters and hopeless bytes are not. */
static void partial_tails_are_what_may_still_be_completed(qt *t)
{
    static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
    static const size_t tail[] = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0};
    for (size_t n = 0; n < sizeof text; n++) QT_EQ(t, qn_utf8_partial_tail(text, n), tail[n]);
    QT_EQ(t, qn_utf8_partial_tail("\x80\x80\x80\x80", 4), 0);
    QT_EQ(t, qn_utf8_partial_tail("\xE0\x80", 2), 0);
    QT_EQ(t, qn_utf8_partial_tail("\xC3(", 2), 0);
    QT_EQ(t, qn_utf8_partial_tail("\xFF", 1), 0);
}

QT_MAIN(QT(every_character_round_trips), QT(malformed_sequences_step_by_maximal_subparts),
        QT(tells_where_the_first_fault_is), QT(partial_tails_are_what_may_still_be_completed))
