/* SPDX-License-Identifier: Apache-2.0 */
/* regex_onig.c - Oniguruma patterns (Ruby syntax, as tokenizer files carry them) in PCRE2's words.
 *
 * The dialects share most spellings; this pass walks the pattern once, copies what means the same and
 * rewrites the rest:
 *
 *     \s \S            PCRE2 counts U+180E as space, Unicode's White_Space does not: spelled out
 *     \p{L} ... \w \d  the category plus what was assigned since PCRE2's tables (unicode_new.inc)
 *     \p{Han} ...      the script itself, not PCRE2's script extensions
 *     \h \v            a hex digit and a vertical tab here, space classes there
 *     {,n}             a quantifier here, text there
 *
 * A construct that would silently mean something else (class intersection, nested classes, POSIX
 * brackets, {n,m}+, \b, an inline (?i) in the middle ...) is refused by name.
 *
 * Thread: any; no state.
 */
#include "base/utf8.h"
#include "dep/regex_int.h"
#include "dep/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

typedef struct rewrite {
    const char *p;
    size_t n, i; /* pattern and the place in it */
    qn_buf *out;
    qn_err *err;
    unsigned depth;            /* open groups */
    bool icase[DEPTH_MAX + 1]; /* caseless, by depth */
} rewrite;

#define WHITE_SPACE                                                                         \
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
    "\\x{205f}\\x{3000}"
#define CIRCLED "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

static qn_code refuse(const rewrite *r, const char *what)
{
    return qn_fail(r->err, QN_E_UNSUPPORTED, "pattern: %s at byte %zu", what, r->i);
}

static char at(const rewrite *r, size_t k) { return r->i + k < r->n ? r->p[r->i + k] : '\0'; }

static qn_code put(rewrite *r, const char *text) { return qn_buf_append_z(r->out, text, r->err); }

/* Copy k bytes of the pattern. */
static qn_code copy(rewrite *r, size_t k)
{
    QN_TRY(qn_buf_append(r->out, r->p + r->i, k, r->err));
    r->i += k;
    return QN_OK;
}

static qn_code put_range(rewrite *r, uint32_t first, uint32_t last)
{
    if (first == last) return qn_buf_printf(r->out, r->err, "\\x{%x}", first);
    return qn_buf_printf(r->out, r->err, "\\x{%x}-\\x{%x}", first, last);
}

static const char category_names[][3] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co",
};

/* The members of a class for one category ("Lu") or group ("L"): the library's and the later ones. */
static qn_code put_category(rewrite *r, const char *name)
{
    QN_TRY(qn_buf_printf(r->out, r->err, "\\p{%s}", name));
    size_t n = 0;
    const qn_category_range *c = qn_unicode_new_categories(&n);
    for (size_t k = 0; k < n; k++)
        if (strncmp(category_names[c[k].category], name, strlen(name)) == 0)
            QN_TRY(put_range(r, c[k].first, c[k].last));
    return QN_OK;
}

static qn_code put_script(rewrite *r, const char *name)
{
    QN_TRY(qn_buf_printf(r->out, r->err, "\\p{sc:%s}", name));
    size_t n = 0;
    const qn_script_range *s = qn_unicode_new_scripts(&n);
    for (size_t k = 0; k < n; k++)
        if (strcmp(s[k].script, name) == 0) QN_TRY(put_range(r, s[k].first, s[k].last));
    return QN_OK;
}

static bool is_category(const char *name)
{
    if (strlen(name) == 1) return strchr("LMNPSZ", name[0]) != NULL;
    for (size_t k = 1; k < QN_LEN(category_names); k++)
        if (strcmp(category_names[k], name) == 0) return true;
    return false;
}

static bool is_script(const char *name)
{
    static const char known[][9] = {"Han", "Hangul", "Hiragana", "Katakana"};
    for (size_t k = 0; k < QN_LEN(known); k++)
        if (strcmp(known[k], name) == 0) return true;
    return false;
}

/* \p{..} or \P{..} at r->i; leaves the name in name[16] and the place behind it. */
static qn_code read_property(rewrite *r, char name[16], bool *negated)
{
    *negated = at(r, 1) == 'P';
    if (at(r, 2) != '{') return refuse(r, "\\p without braces");
    size_t k = 3, len = 0;
    if (at(r, k) == '^') {
        *negated = !*negated;
        k++;
    }
    for (; r->i + k < r->n && at(r, k) != '}'; k++) {
        if (len == 15) return refuse(r, "unknown property");
        name[len++] = at(r, k);
    }
    name[len] = '\0';
    if (at(r, k) != '}') return qn_fail(r->err, QN_E_FORMAT, "pattern: \\p{ is not closed");
    if (!is_category(name) && !is_script(name))
        return qn_fail(r->err, QN_E_UNSUPPORTED, "pattern: property \\p{%s} at byte %zu", name,
                       r->i);
    if (r->icase[r->depth] && (!strcmp(name, "Lu") || !strcmp(name, "Ll") || !strcmp(name, "Lt")))
        return refuse(r, "a case category under (?i)");
    r->i += k + 1;
    return QN_OK;
}

static qn_code put_property(rewrite *r, bool in_class)
{
    char name[16];
    bool negated = false;
    QN_TRY(read_property(r, name, &negated));
    if (in_class && negated) return refuse(r, "a negated property inside a class");
    if (!in_class) QN_TRY(put(r, negated ? "[^" : "["));
    QN_TRY(is_script(name) ? put_script(r, name) : put_category(r, name));
    return in_class ? QN_OK : put(r, "]");
}

/* \s \S \d \D \w \W \h \H: the lower-case ones anywhere, their complements outside classes. */
static qn_code put_shorthand(rewrite *r, char c, bool in_class)
{
    const bool negated = c < 'a';
    r->i += 2;
    if (negated && in_class)
        return c == 'S' ? put(r, "\\P{White_Space}")
                        : refuse(r, "a negated shorthand inside a class");
    if (!in_class) QN_TRY(put(r, negated ? "[^" : "["));
    switch (c) {
    case 's':
    case 'S':
        QN_TRY(put(r, WHITE_SPACE));
        break;
    case 'd':
    case 'D':
        QN_TRY(put_category(r, "Nd"));
        break;
    case 'h':
    case 'H':
        QN_TRY(put(r, "0-9A-Fa-f"));
        break;
    default:
        QN_TRY(put_category(r, "L"));
        QN_TRY(put_category(r, "M"));
        QN_TRY(put_category(r, "Nd"));
        QN_TRY(put_category(r, "Nl"));
        QN_TRY(put_category(r, "Pc"));
        QN_TRY(put(r, CIRCLED));
    }
    return in_class ? QN_OK : put(r, "]");
}

/* \xHH, \x{H...}, \uHHHH at r->i. */
static qn_code put_code_point(rewrite *r)
{
    const bool braced = at(r, 1) == 'x' && at(r, 2) == '{';
    const size_t begin = braced ? 3 : 2, most = braced ? 6 : at(r, 1) == 'u' ? 4 : 2;
    char digits[8] = {0};
    size_t k = 0;
    while (k < most && at(r, begin + k) != '\0' &&
           strchr("0123456789abcdefABCDEF", at(r, begin + k))) {
        digits[k] = at(r, begin + k);
        k++;
    }
    const unsigned long c = strtoul(digits, NULL, 16);
    if (k == 0 || (braced && at(r, begin + k) != '}') || (!braced && k != most))
        return refuse(r, "an incomplete \\x or \\u");
    if (!braced && most == 2 && c >= 0x80) return refuse(r, "\\x of a raw byte");
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return refuse(r, "\\x of no character");
    r->i += begin + k + braced;
    return put_range(r, (uint32_t)c, (uint32_t)c);
}

/* One escape at r->i, inside or outside a class. */
static qn_code put_escape(rewrite *r, bool in_class)
{
    const char c = at(r, 1);
    if (r->i + 1 >= r->n) return qn_fail(r->err, QN_E_FORMAT, "pattern ends in a backslash");
    if (c == 'p' || c == 'P') return put_property(r, in_class);
    if (strchr("sSdDwWhH", c)) return put_shorthand(r, c, in_class);
    if (c == 'x' || c == 'u') return put_code_point(r);
    if (strchr("nrtfae", c)) return copy(r, 2);
    if (c == 'v') {
        r->i += 2;
        return put(r, "\\x0b");
    }
    if (!in_class && strchr("AzZ", c)) return copy(r, 2);
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
        return qn_fail(r->err, QN_E_UNSUPPORTED, "pattern: \\%c at byte %zu", c, r->i);
    if ((unsigned char)c >= 0x80 || c < ' ') { /* an escaped letter of no meaning is itself */
        r->i++;
        return copy(r, 1);
    }
    return copy(r, 2);
}

static qn_code put_class(rewrite *r)
{
    QN_TRY(copy(r, 1));
    if (at(r, 0) == '^') QN_TRY(copy(r, 1));
    if (at(r, 0) == ']') return refuse(r, "an empty class");
    while (at(r, 0) != ']') {
        if (r->i >= r->n) return qn_fail(r->err, QN_E_FORMAT, "pattern: a class is not closed");
        if (at(r, 0) == '[')
            return refuse(r, at(r, 1) == ':' ? "a POSIX bracket" : "a class inside a class");
        if (at(r, 0) == '&' && at(r, 1) == '&') return refuse(r, "a class intersection");
        QN_TRY(at(r, 0) == '\\' ? put_escape(r, true) : copy(r, 1));
    }
    return copy(r, 1);
}

/* "(" and what follows it up to the group's first atom. */
static qn_code put_group(rewrite *r)
{
    static const char plain[][5] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    if (r->depth == DEPTH_MAX) return refuse(r, "too many nested groups");
    r->icase[r->depth + 1] = r->icase[r->depth];
    if (at(r, 1) != '?') {
        r->depth++;
        return copy(r, 1);
    }
    for (size_t k = 0; k < QN_LEN(plain); k++) {
        const size_t len = strlen(plain[k]);
        if (r->n - r->i >= len && memcmp(r->p + r->i, plain[k], len) == 0) {
            r->depth++;
            return copy(r, len);
        }
    }
    if (at(r, 2) == 'i' && at(r, 3) == ')') { /* reaches over later | in Ruby, not in Perl */
        if (r->i != 0) return refuse(r, "(?i) that is not at the start");
        r->icase[0] = true;
        return copy(r, 4);
    }
    const bool off = at(r, 2) == '-';
    if (at(r, 2 + off) != 'i' || at(r, 3 + off) != ':') return refuse(r, "this kind of group");
    r->depth++;
    r->icase[r->depth] = !off;
    return copy(r, 4 + (size_t)off);
}

/* "{": a quantifier with its suffix, or text. */
static qn_code put_brace(rewrite *r)
{
    size_t k = 1, low = 0, high = 0;
    while (at(r, k) >= '0' && at(r, k) <= '9') k++, low++;
    const bool comma = at(r, k) == ',';
    if (comma) k++;
    while (comma && at(r, k) >= '0' && at(r, k) <= '9') k++, high++;
    if (at(r, k) != '}' || low + high == 0) {
        r->i++;
        return put(r, "\\{");
    }
    if (at(r, k + 1) == '+') return refuse(r, "{n,m}+"); /* repeats here, possessive there */
    if (!comma && at(r, k + 1) == '?') return refuse(r, "{n}?");
    if (low == 0) {
        r->i++;
        QN_TRY(put(r, "{0"));
        k--;
    }
    return copy(r, k + 1);
}

qn_code qn_regex_from_onig(qn_buf *out, const char *pattern, size_t n, qn_err *err)
{
    rewrite r = {.p = pattern, .n = n, .out = out, .err = err};
    if (!qn_utf8_valid(pattern, n, NULL)) return qn_fail(err, QN_E_FORMAT, "pattern is no UTF-8");
    while (r.i < r.n) {
        switch (at(&r, 0)) {
        case '\\':
            QN_TRY(put_escape(&r, false));
            break;
        case '[':
            QN_TRY(put_class(&r));
            break;
        case '(':
            QN_TRY(put_group(&r));
            break;
        case '{':
            QN_TRY(put_brace(&r));
            break;
        case ')':
            if (r.depth == 0) return qn_fail(err, QN_E_FORMAT, "pattern: ) without (");
            r.depth--;
            QN_TRY(copy(&r, 1));
            break;
        case '\0':
            return refuse(&r, "a NUL");
        default:
            QN_TRY(copy(&r, 1));
        }
    }
    if (r.depth != 0) return qn_fail(err, QN_E_FORMAT, "pattern: ( is not closed");
    return QN_OK;
}
