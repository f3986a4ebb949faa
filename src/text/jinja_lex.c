/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_lex.c - the tokens of a template, with its rules about white space already applied.
 *
 * Where the source cannot be read, the tokens end in a fault: what stands before it may be wrong too,
 * and the first fault in the source is the one to tell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The length of a white-space character at p, or 0. */
static size_t space_at(const char *p, size_t n)
{
    uint32_t cp = 0;
    if (!n) return 0;
    if ((unsigned char)*p < 128) return qn_jinja_char((unsigned char)*p) & QN_JC_SPACE ? 1 : 0;
    const size_t len = qn_utf8_step(p, n, &cp);
    return qn_jinja_char(cp) & QN_JC_SPACE ? len : 0;
}

/* The length of a white-space character that ends at `end`, or 0. */
static size_t space_before(const char *s, size_t begin, size_t end)
{
    size_t n = 1;
    if (begin >= end) return 0;
    while (n < 4 && n < end - begin && ((unsigned char)s[end - n] & 0xC0) == 0x80) n++;
    return space_at(s + end - n, n) == n ? n : 0;
}

static qn_code push(qn_jlex *l, qn_jtok t, qn_err *err)
{
    if (l->n_tok == l->cap_tok) {
        const size_t cap = l->cap_tok ? 2 * l->cap_tok : 64;
        qn_jtok *more = QN_ARENA_NEW(l->arena, qn_jtok, cap);
        if (!more) return qn_fail(err, QN_E_NOMEM, "tokens of a template");
        if (l->n_tok) memcpy(more, l->tok, l->n_tok * sizeof *more);
        l->tok = more;
        l->cap_tok = cap;
    }
    if (!t.line) t.line = l->line;
    l->tok[l->n_tok++] = t;
    return QN_OK;
}

static qn_code fault(qn_jlex *l, const char *why, qn_err *err)
{
    const char *s = qn_arena_push_bytes(l->arena, why, strlen(why));
    if (!s) return qn_fail(err, QN_E_NOMEM, "tokens of a template");
    l->fault = true;
    return push(l, (qn_jtok){.kind = QN_JT_FAULT, .s = s}, err);
}

static void advance(qn_jlex *l, size_t to)
{
    for (; l->at < to; l->at++) l->line += l->src[l->at] == '\n';
}

/* What stands behind the end of a tag: "-" eats white space, a block also the newline. */
static void after_tag(qn_jlex *l, bool eat_all, bool eat_newline)
{
    size_t to = l->at, n = 0;
    if (eat_all)
        while ((n = space_at(l->src + to, l->n - to)) > 0) to += n;
    else if (eat_newline && to < l->n && l->src[to] == '\n')
        to++;
    l->line_start = to > l->at && l->src[to - 1] == '\n';
    advance(l, to);
}

/* The text [at, end) before a tag whose sign follows; lstrip: the tag is a block or comment. */
static qn_code data(qn_jlex *l, size_t end, char sign, bool lstrip, qn_err *err)
{
    const size_t begin = l->at;
    size_t stop = end, n = 0;
    if (sign == '-') {
        while ((n = space_before(l->src, begin, stop)) > 0) stop -= n;
    } else if (lstrip && sign != '+') {
        size_t p = end;
        while (p > begin && l->src[p - 1] != '\n' && (n = space_before(l->src, begin, p)) > 0)
            p -= n;
        if (p > begin ? l->src[p - 1] == '\n' : l->line_start) stop = p;
    }
    if (stop > begin)
        QN_TRY(push(l, (qn_jtok){.kind = QN_JT_DATA, .s = l->src + begin, .n = stop - begin}, err));
    advance(l, end);
    return QN_OK;
}

static int64_t hex(const char *s, size_t n, size_t left)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = i < left ? s[i] : 0;
        const int d = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* One escape at s[0, left), which begins with a backslash: bytes read, or 0 where it is broken. Six
 * bytes of source never give more than ten of text. */
static size_t escape(char *out, size_t *w, const char *s, size_t left)
{
    static const char from[] = "nrtbfav\\'\"", to[] = "\n\r\t\b\f\a\v\\'\"";
    const char *at = s[1] ? strchr(from, s[1]) : NULL;
    uint32_t cp = 0;
    if (at) {
        out[(*w)++] = to[at - from];
        return 2;
    }
    if (s[1] == '\n') return 2;
    if (s[1] >= '0' && s[1] <= '7') {
        size_t n = 1;
        for (; n < 4 && n < left && s[n] >= '0' && s[n] <= '7'; n++)
            cp = cp * 8 + (uint32_t)(s[n] - '0');
        *w += qn_utf8_encode(out + *w, cp);
        return n;
    }
    const size_t digits = s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
    if (digits || s[1] == 'N') {
        const int64_t v = digits ? hex(s + 2, digits, left - 2) : -1;
        const size_t n = v < 0 || v > 0x10FFFF ? 0 : qn_utf8_encode(out + *w, (uint32_t)v);
        *w += n;
        return n ? digits + 2 : 0;
    }
    out[(*w)++] = '\\';
    if ((unsigned char)s[1] < 128) return 1;
    /* Python spells what is not ASCII as escapes first, and the backslash here disarms that. */
    const size_t n = qn_utf8_step(s + 1, left - 1, &cp);
    *w += (size_t)snprintf(out + *w, 12, cp < 256 ? "x%02x" : cp < 0x10000 ? "u%04x" : "U%08x", cp);
    return n + 1;
}

static qn_code string(qn_jlex *l, qn_err *err)
{
    const char quote = l->src[l->at];
    size_t end = l->at + 1, w = 0, more = 0;
    while (end < l->n && l->src[end] != quote) {
        more += l->src[end] == '\\';
        end += l->src[end] == '\\' ? 2 : 1;
    }
    if (end >= l->n) return fault(l, quote == '"' ? "unexpected '\"'" : "unexpected \"'\"", err);
    char *s = qn_arena_push(l->arena, end - l->at + 12 * more + 1, 1);
    if (!s) return qn_fail(err, QN_E_NOMEM, "string of a template");
    for (size_t i = l->at + 1; i < end;) {
        if (l->src[i] != '\\') {
            s[w++] = l->src[i++];
            continue;
        }
        const size_t n = escape(s, &w, l->src + i, end - i);
        if (!n) return fault(l, "an escape in a string is broken", err);
        i += n;
    }
    s[w] = 0;
    QN_TRY(push(l, (qn_jtok){.kind = QN_JT_STRING, .s = s, .n = w}, err));
    advance(l, end + 1);
    return QN_OK;
}

/* Digits with single underscores between them, from i on: where they end. */
static size_t digits(const qn_jlex *l, size_t i)
{
    while (i < l->n &&
           (is_digit(l->src[i]) || (l->src[i] == '_' && i + 1 < l->n && is_digit(l->src[i + 1]))))
        i++;
    return i;
}

/* Where a real number that begins here ends; 0: there is none. */
static size_t real_end(const qn_jlex *l)
{
    size_t end = digits(l, l->at), e = 0;
    bool real = false;
    if (l->at && l->src[l->at - 1] == '.') return 0;
    if (end + 1 < l->n && l->src[end] == '.' && is_digit(l->src[end + 1])) {
        end = digits(l, end + 1);
        real = true;
    }
    if (end < l->n && (l->src[end] == 'e' || l->src[end] == 'E')) {
        e = end + 1;
        if (e < l->n && (l->src[e] == '+' || l->src[e] == '-')) e++;
        if (e < l->n && is_digit(l->src[e])) return digits(l, e);
    }
    return real ? end : 0;
}

static int digit_of(char c, int base)
{
    const int64_t v = hex(&c, 1, 1);
    return v >= 0 && v < base ? (int)v : -1;
}

static qn_code number(qn_jlex *l, qn_err *err)
{
    char text[400];
    size_t end = real_end(l), n = 0;
    qn_jtok t = {.kind = end ? QN_JT_REAL : QN_JT_INT};
    if (end) {
        for (size_t i = l->at; i < end; i++)
            if (l->src[i] != '_') {
                if (n + 1 >= sizeof text)
                    return qn_fail(err, QN_E_LIMIT, "line %u: a number is too long", l->line);
                text[n++] = l->src[i];
            }
        text[n] = 0;
        t.d = strtod(text, NULL);
        l->at = end;
        return push(l, t, err);
    }
    const char *s = l->src + l->at, x = l->n - l->at > 2 ? (char)(s[1] | 32) : 0;
    const size_t under = x && s[2] == '_' ? 3 : 2;
    int base = *s == '0' ? (x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 0) : 10;
    if (base && base != 10 && !(l->n - l->at > under && digit_of(s[under], base) >= 0)) base = 0;
    size_t i = base && base != 10 ? under : 0;
    for (const size_t left = l->n - l->at; i < left; i++) {
        if (s[i] == '_' && i + 1 < left && (base ? digit_of(s[i + 1], base) >= 0 : s[i + 1] == '0'))
            continue;
        const int d = base ? digit_of(s[i], base) : s[i] == '0' ? 0 : -1;
        if (d < 0) break;
        if (__builtin_mul_overflow(t.i, (int64_t)base, &t.i) ||
            __builtin_add_overflow(t.i, (int64_t)d, &t.i))
            return qn_fail(err, QN_E_LIMIT, "line %u: an integer leaves 64 bits", l->line);
    }
    l->at += i;
    return push(l, t, err);
}

/* The bytes of a name at the present place, or 0; *good: Python takes it for one. */
static size_t name_bytes(const qn_jlex *l, bool *good)
{
    size_t end = l->at;
    *good = true;
    while (end < l->n) {
        uint32_t cp = 0;
        const size_t n = qn_utf8_step(l->src + end, l->n - end, &cp);
        const uint32_t f = qn_jinja_char(cp);
        if (!(f & (QN_JC_ALPHA | QN_JC_DECIMAL | QN_JC_DIGIT | QN_JC_NUMERIC | QN_JC_NAME))) break;
        *good = *good && (f & (end == l->at ? QN_JC_NAME_FIRST : QN_JC_NAME));
        end += n;
    }
    return end - l->at;
}

static qn_code name(qn_jlex *l, size_t n, bool good, qn_err *err)
{
    if (!good) return fault(l, "invalid character in identifier", err);
    const char *s = qn_arena_push_bytes(l->arena, l->src + l->at, n);
    if (!s) return qn_fail(err, QN_E_NOMEM, "name of a template");
    l->at += n;
    return push(l, (qn_jtok){.kind = QN_JT_NAME, .s = s, .n = n}, err);
}

static qn_code op(qn_jlex *l, qn_err *err)
{
    static const char two[][3] = {"**", "//", "==", "!=", ">=", "<="}, as[] = "pfengl";
    static const char opens[] = "([{", closes[] = ")]}";
    const char c = l->src[l->at];
    char why[32] = "unexpected character";
    for (size_t i = 0; i < 6; i++)
        if (l->at + 1 < l->n && c == two[i][0] && l->src[l->at + 1] == two[i][1]) {
            l->at += 2;
            return push(l, (qn_jtok){.kind = QN_JT_OP, .op = as[i]}, err);
        }
    if (c > ' ' && c < 127) snprintf(why, sizeof why, "unexpected '%c'", c);
    if (!c || !strchr("+-*/%~<>=.:|,;()[]{}", c)) return fault(l, why, err);
    if (strchr(opens, c)) {
        if (l->n_open == sizeof l->open)
            return qn_fail(err, QN_E_LIMIT, "line %u: nested deeper than %zu", l->line, l->n_open);
        l->open[l->n_open++] = closes[strchr(opens, c) - opens];
    } else if (strchr(closes, c) && (!l->n_open || l->open[--l->n_open] != c)) {
        return fault(l, why, err);
    }
    l->at++;
    return push(l, (qn_jtok){.kind = QN_JT_OP, .op = c}, err);
}

/* The inside of a tag up to and with its end. */
static qn_code inside(qn_jlex *l, bool block, qn_err *err)
{
    const char *end = block ? "%}" : "}}";
    while (!l->fault) {
        size_t n = 0;
        bool good = true;
        while ((n = space_at(l->src + l->at, l->n - l->at)) > 0) advance(l, l->at + n);
        if (l->at >= l->n) break; /* jinja2 leaves it to the parser */
        const char *s = l->src + l->at;
        const size_t left = l->n - l->at,
                     sign = left >= 3 && (*s == '-' || (*s == '+' && block)) ? 1 : 0;
        if (!l->n_open && left >= sign + 2 && !memcmp(s + sign, end, 2)) {
            QN_TRY(push(l, (qn_jtok){.kind = block ? QN_JT_BLOCK_END : QN_JT_VAR_END}, err));
            l->at += sign + 2;
            after_tag(l, sign && *s == '-', block && !sign);
            return QN_OK;
        }
        if (*s == '"' || *s == '\'')
            QN_TRY(string(l, err));
        else if (is_digit(*s))
            QN_TRY(number(l, err));
        else if ((n = name_bytes(l, &good)) > 0)
            QN_TRY(name(l, n, good, err));
        else
            QN_TRY(op(l, err));
    }
    return QN_OK;
}

/* A comment that begins with the last bytes: jinja2 takes the source for ended. */
static qn_code at_end(qn_jlex *l)
{
    l->at = l->n;
    return QN_OK;
}

static qn_code comment(qn_jlex *l, size_t begin, qn_err *err)
{
    size_t end = l->at + begin;
    while (end + 1 < l->n && !(l->src[end] == '#' && l->src[end + 1] == '}')) end++;
    if (end + 1 >= l->n)
        return l->at + begin < l->n ? fault(l, "missing end of comment tag", err) : at_end(l);
    const char sign = end > l->at + begin ? l->src[end - 1] : 0;
    advance(l, end + 2);
    after_tag(l, sign == '-', sign != '+' && sign != '-');
    return QN_OK;
}

/* At a block: the length of "{% word %}" or 0. */
static size_t word_tag(const qn_jlex *l, size_t at, const char *word, char *first, char *last)
{
    size_t i = at + 2, sp = 0;
    const size_t n = strlen(word);
    *first = i < l->n && (l->src[i] == '-' || l->src[i] == '+') ? l->src[i++] : 0;
    while ((sp = space_at(l->src + i, l->n - i)) > 0) i += sp;
    if (l->n - i < n || memcmp(l->src + i, word, n)) return 0;
    i += n;
    while ((sp = space_at(l->src + i, l->n - i)) > 0) i += sp;
    *last = i < l->n && (l->src[i] == '-' || (l->src[i] == '+' && *word == 'e')) ? l->src[i++] : 0;
    return l->n - i >= 2 && l->src[i] == '%' && l->src[i + 1] == '}' ? i + 2 - at : 0;
}

static qn_code raw(qn_jlex *l, size_t tag, char last, qn_err *err)
{
    char sign = 0, end_last = 0;
    advance(l, l->at + tag);
    after_tag(l, last == '-', false);
    for (size_t i = l->at; i + 1 < l->n; i++) {
        if (l->src[i] != '{' || l->src[i + 1] != '%') continue;
        const size_t n = word_tag(l, i, "endraw", &sign, &end_last);
        if (!n) continue;
        QN_TRY(data(l, i, sign, true, err));
        advance(l, i + n);
        after_tag(l, end_last == '-', !end_last);
        return QN_OK;
    }
    return l->at < l->n ? fault(l, "missing end of raw directive", err) : QN_OK;
}

qn_code qn_jinja_lex(qn_jlex *l, qn_err *err)
{
    l->line = 1;
    l->line_start = true;
    while (l->at < l->n && !l->fault) {
        size_t i = l->at;
        while (i + 1 < l->n && !(l->src[i] == '{' && l->src[i + 1] && strchr("{%#", l->src[i + 1])))
            i++;
        if (i + 1 >= l->n) {
            const size_t rest = l->n - l->at;
            QN_TRY(push(l, (qn_jtok){.kind = QN_JT_DATA, .s = l->src + l->at, .n = rest}, err));
            break;
        }
        const char kind = l->src[i + 1];
        char first = i + 2 < l->n ? l->src[i + 2] : 0, last = 0, raw_first = 0;
        if (first != '-' && first != '+') first = 0;
        const size_t tag = kind == '%' ? word_tag(l, i, "raw", &raw_first, &last) : 0;
        QN_TRY(data(l, i, first, kind != '{', err));
        if (kind == '#') {
            QN_TRY(comment(l, first ? 3 : 2, err));
            continue;
        }
        if (tag) {
            QN_TRY(raw(l, tag, last, err));
            continue;
        }
        QN_TRY(push(l, (qn_jtok){.kind = kind == '%' ? QN_JT_BLOCK_BEGIN : QN_JT_VAR_BEGIN}, err));
        l->at += first ? 3 : 2;
        l->n_open = 0;
        QN_TRY(inside(l, kind == '%', err));
    }
    QN_TRY(push(l, (qn_jtok){.kind = QN_JT_END}, err));
    return push(l, (qn_jtok){.kind = QN_JT_END}, err); /* the parser looks one further */
}
