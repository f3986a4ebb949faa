/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_chars.c - characters as Python's strings see them: properties, cases, ends of lines.
 *
 * The tables are Python's own (jinja_chars.inc), since the tokenizers' Unicode is of another age. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct char_run {
    uint32_t first;
    uint16_t flags;
} char_run;

typedef struct case_run {
    uint32_t first, last, step;
    int32_t to[3]; /* lower, upper, title */
} case_run;

typedef struct case_many {
    uint32_t from;
    uint32_t to[3][3]; /* 0: no more */
} case_many;

typedef struct fold_many {
    uint32_t from, to[3];
} fold_many;

#include "text/jinja_chars.inc"

uint32_t qn_jinja_char(uint32_t cp)
{
    size_t lo = 0, hi = QN_LEN(char_runs);
    if (cp > 0x10FFFF) return 0;
    while (hi - lo > 1) {
        const size_t mid = (lo + hi) / 2;
        if (char_runs[mid].first <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return char_runs[lo].flags;
}

/* which: 0 lower, 1 upper, 2 title. */
static size_t cased(uint32_t out[3], uint32_t cp, int which)
{
    size_t n = 0;
    out[0] = cp;
    if (cp < 128) {
        const bool low = cp >= 'a' && cp <= 'z', up = cp >= 'A' && cp <= 'Z';
        out[0] = up && !which ? cp + 32 : low && which ? cp - 32 : cp;
        return 1;
    }
    for (size_t i = 0; i < QN_LEN(case_long); i++) {
        if (case_long[i].from != cp) continue;
        for (; n < 3 && case_long[i].to[which][n]; n++) out[n] = case_long[i].to[which][n];
        return n;
    }
    size_t lo = 0, hi = QN_LEN(case_runs);
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (case_runs[mid].last < cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < QN_LEN(case_runs) && case_runs[lo].first <= cp &&
        (cp - case_runs[lo].first) % case_runs[lo].step == 0)
        out[0] = (uint32_t)((int32_t)cp + case_runs[lo].to[which]);
    return 1;
}

static bool is_cased(uint32_t f) { return f & (QN_JC_LOWER | QN_JC_UPPER | QN_JC_TITLE); }

/* A sigma at i ends a word: a cased letter before it and none after, ignorable ones aside. */
static bool final_sigma(qn_jv s, size_t i)
{
    uint32_t cp = 0, f = 0;
    size_t k = i;
    bool before = false;
    while (k > 0) {
        size_t n = 1;
        while (n < k && ((unsigned char)s.u.s[k - n] & 0xC0) == 0x80) n++;
        qn_utf8_step(s.u.s + k - n, n, &cp);
        f = qn_jinja_char(cp);
        k -= n;
        if (f & QN_JC_IGNORABLE) continue;
        before = is_cased(f);
        break;
    }
    if (!before) return false;
    for (k = i + 2; k < s.n;) { /* a sigma has two bytes */
        k += qn_utf8_step(s.u.s + k, s.n - k, &cp);
        f = qn_jinja_char(cp);
        if (!(f & QN_JC_IGNORABLE)) return !is_cased(f);
    }
    return true;
}

static size_t lower(uint32_t out[3], qn_jv s, size_t i, uint32_t cp)
{
    if (cp == 0x3A3) {
        out[0] = final_sigma(s, i) ? 0x3C2 : 0x3C3;
        return 1;
    }
    return cased(out, cp, 0);
}

static size_t folded(uint32_t out[3], uint32_t cp)
{
    size_t n = 0;
    for (size_t i = 0; i < QN_LEN(case_fold); i++) {
        if (case_fold[i].from != cp) continue;
        for (; n < 3 && case_fold[i].to[n]; n++) out[n] = case_fold[i].to[n];
        return n;
    }
    return cased(out, cp, 0);
}

qn_jv qn_jinja_case(qn_jrun *r, qn_jv s, char how)
{
    qn_buf b;
    bool begin = true;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0, len = 0; i < s.n && r->rc == QN_OK; i += len) {
        uint32_t cp = 0, out[3];
        char text[12];
        size_t w = 0;
        len = qn_utf8_step(s.u.s + i, s.n - i, &cp);
        const uint32_t f = qn_jinja_char(cp);
        size_t n = 1;
        if (how == 'u' || (how == 's' && (f & QN_JC_LOWER)) || (how == 'w' && begin))
            n = cased(out, cp, 1);
        else if (begin && (how == 't' || how == 'c'))
            n = cased(out, cp, 2);
        else if (how == 's' && !(f & QN_JC_UPPER))
            out[0] = cp;
        else
            n = lower(out, s, i, cp);
        begin = how == 't'   ? !is_cased(f)
                : how == 'w' ? (f & QN_JC_SPACE) || (cp < 128 && strchr("-([{<", (int)cp))
                             : false;
        if (how == 'f' && cp >= 128) n = folded(out, cp);
        for (size_t k = 0; k < n; k++) w += qn_utf8_encode(text + w, out[k]);
        qn_jinja_bytes(r, &b, text, w);
    }
    return qn_jv_marked(qn_jv_take(r, &b), s.flag);
}

/* Cased letters agree with the test: upper case only, lower case only, title case words. */
static bool case_test(qn_jv s, const char *test)
{
    bool any = false, in_word = false;
    for (size_t i = 0, len = 0; i < s.n; i += len) {
        uint32_t cp = 0;
        len = qn_utf8_step(s.u.s + i, s.n - i, &cp);
        const uint32_t f = qn_jinja_char(cp), up = f & (QN_JC_UPPER | QN_JC_TITLE),
                       low = f & QN_JC_LOWER;
        if (!strcmp(test, "istitle")) {
            if ((up && in_word) || (low && !up && !in_word)) return false;
            in_word = up || low;
            any |= in_word;
            continue;
        }
        if (!strcmp(test, "isupper") ? low || (f & QN_JC_TITLE) : up) return false;
        any |= up || low;
    }
    return any;
}

bool qn_jinja_all_are(qn_jv s, const char *test)
{
    static const struct {
        const char *name;
        uint32_t flags;
        bool empty;
    } tests[] = {{"isalpha", QN_JC_ALPHA, false},
                 {"isdecimal", QN_JC_DECIMAL, false},
                 {"isdigit", QN_JC_DIGIT, false},
                 {"isnumeric", QN_JC_NUMERIC, false},
                 {"isalnum", QN_JC_ALPHA | QN_JC_DECIMAL | QN_JC_DIGIT | QN_JC_NUMERIC, false},
                 {"isspace", QN_JC_SPACE, false},
                 {"isprintable", QN_JC_PRINTABLE, true},
                 {"isidentifier", QN_JC_NAME, false}};
    if (!strcmp(test, "isascii")) {
        for (size_t i = 0; i < s.n; i++)
            if ((unsigned char)s.u.s[i] >= 128) return false;
        return true;
    }
    for (size_t t = 0; t < QN_LEN(tests); t++) {
        if (strcmp(test, tests[t].name)) continue;
        for (size_t i = 0, len = 0; i < s.n; i += len) {
            uint32_t cp = 0;
            len = qn_utf8_step(s.u.s + i, s.n - i, &cp);
            const bool first_of_name = !i && tests[t].flags == QN_JC_NAME;
            if (!(qn_jinja_char(cp) & (first_of_name ? QN_JC_NAME_FIRST : tests[t].flags)))
                return false;
        }
        return s.n || tests[t].empty;
    }
    return case_test(s, test);
}

size_t qn_jinja_line_end(const char *s, size_t n, size_t i)
{
    uint32_t cp = 0;
    if (s[i] == '\r') return i + 1 < n && s[i + 1] == '\n' ? 2 : 1;
    if ((s[i] >= '\n' && s[i] <= '\f') || (s[i] >= 0x1C && s[i] <= 0x1E)) return 1;
    if ((unsigned char)s[i] < 0xC2) return 0;
    const size_t len = qn_utf8_step(s + i, n - i, &cp);
    return cp == 0x85 || cp == 0x2028 || cp == 0x2029 ? len : 0;
}
