/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_lex.c - the tokens of a template, with its rules about white space already applied. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
           (unsigned char)c >= 0x80;
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

static void advance(qn_jlex *l, size_t to)
{
    for (; l->at < to; l->at++) l->line += l->src[l->at] == '\n';
}

/* What stands behind the end of a tag: "-" eats white space, a block also the newline. */
static void after_tag(qn_jlex *l, bool eat_all, bool eat_newline)
{
    size_t to = l->at;
    if (eat_all)
        while (to < l->n && is_space(l->src[to])) to++;
    else if (eat_newline && to < l->n && l->src[to] == '\n')
        to++;
    l->line_start = to > l->at && l->src[to - 1] == '\n';
    advance(l, to);
}

/* The text [at, end) before a tag whose sign follows; lstrip: the tag is a block or comment. */
static qn_code data(qn_jlex *l, size_t end, char sign, bool lstrip, qn_err *err)
{
    const size_t begin = l->at;
    size_t stop = end;
    if (sign == '-') {
        while (stop > begin && is_space(l->src[stop - 1])) stop--;
    } else if (lstrip && sign != '+') {
        size_t p = end;
        while (p > begin && is_space(l->src[p - 1]) && l->src[p - 1] != '\n') p--;
        if (p > begin ? l->src[p - 1] == '\n' : l->line_start) stop = p;
    }
    if (stop > begin)
        QN_TRY(push(l, (qn_jtok){.kind = QN_JT_DATA, .s = l->src + begin, .n = stop - begin}, err));
    advance(l, end);
    return QN_OK;
}

static int hex(const char *s, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        const char c = s[i];
        const int d = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static size_t escape(char *out, size_t *w, const char *s, size_t left)
{
    static const char from[] = "nrtbfav0\\'\"", to[] = "\n\r\t\b\f\a\v\0\\'\"";
    const char *at = memchr(from, s[1], sizeof from - 1);
    if (at) {
        out[(*w)++] = to[at - from];
        return 2;
    }
    if (s[1] == '\n') return 2;
    const int digits = s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : 0;
    const int cp = digits && left >= (size_t)digits + 2 ? hex(s + 2, digits) : -1;
    const size_t n = cp < 0 ? 0 : qn_utf8_encode(out + *w, (uint32_t)cp);
    if (!n) {
        out[(*w)++] = '\\';
        return 1;
    }
    *w += n;
    return (size_t)digits + 2;
}

static qn_code string(qn_jlex *l, qn_err *err)
{
    const char quote = l->src[l->at];
    size_t end = l->at + 1, w = 0;
    while (end < l->n && l->src[end] != quote) end += l->src[end] == '\\' ? 2 : 1;
    if (end >= l->n) return qn_fail(err, QN_E_FORMAT, "line %u: a string has no end", l->line);
    char *s = qn_arena_push_bytes(l->arena, l->src + l->at, end - l->at);
    if (!s) return qn_fail(err, QN_E_NOMEM, "string of a template");
    for (size_t i = l->at + 1; i < end;) {
        if (l->src[i] == '\\')
            i += escape(s, &w, l->src + i, end - i);
        else
            s[w++] = l->src[i++];
    }
    s[w] = 0;
    QN_TRY(push(l, (qn_jtok){.kind = QN_JT_STRING, .s = s, .n = w}, err));
    advance(l, end + 1);
    return QN_OK;
}

static qn_code number(qn_jlex *l, qn_err *err)
{
    char text[64];
    size_t end = l->at, n = 0;
    const bool after_dot =
        l->n_tok && l->tok[l->n_tok - 1].kind == QN_JT_OP && l->tok[l->n_tok - 1].op == '.';
    bool real = false;
    for (; end < l->n; end++) {
        const char c = l->src[end];
        const bool digit_next = end + 1 < l->n && is_digit(l->src[end + 1]);
        const bool exponent = (c == 'e' || c == 'E') && !after_dot && end + 1 < l->n &&
                              (digit_next || ((l->src[end + 1] == '-' || l->src[end + 1] == '+') &&
                                              end + 2 < l->n && is_digit(l->src[end + 2])));
        if (c == '_') continue;
        if (!is_digit(c) && !exponent && !(c == '.' && !real && !after_dot && digit_next)) break;
        if (n + 3 > sizeof text)
            return qn_fail(err, QN_E_LIMIT, "line %u: a number is too long", l->line);
        real |= !is_digit(c);
        text[n++] = c;
        if (exponent) text[n++] = l->src[++end];
    }
    text[n] = 0;
    qn_jtok t = {.kind = real ? QN_JT_REAL : QN_JT_INT};
    if (real) {
        t.d = strtod(text, NULL);
    } else {
        for (size_t i = 0; i < n; i++)
            if (__builtin_mul_overflow(t.i, (int64_t)10, &t.i) ||
                __builtin_add_overflow(t.i, (int64_t)(text[i] - '0'), &t.i))
                return qn_fail(err, QN_E_LIMIT, "line %u: the number %s is too large", l->line,
                               text);
    }
    l->at = end;
    return push(l, t, err);
}

static qn_code name(qn_jlex *l, qn_err *err)
{
    size_t end = l->at;
    while (end < l->n && is_word(l->src[end])) end++;
    const char *s = qn_arena_push_bytes(l->arena, l->src + l->at, end - l->at);
    if (!s) return qn_fail(err, QN_E_NOMEM, "name of a template");
    const size_t n = end - l->at;
    l->at = end;
    return push(l, (qn_jtok){.kind = QN_JT_NAME, .s = s, .n = n}, err);
}

static qn_code op(qn_jlex *l, qn_err *err)
{
    static const char two[][3] = {"**", "//", "==", "!=", ">=", "<="}, as[] = "pfengl";
    const char c = l->src[l->at];
    for (size_t i = 0; i < 6; i++)
        if (l->at + 1 < l->n && c == two[i][0] && l->src[l->at + 1] == two[i][1]) {
            l->at += 2;
            return push(l, (qn_jtok){.kind = QN_JT_OP, .op = as[i]}, err);
        }
    if (!c || !strchr("+-*/%~<>=.:|,;()[]{}", c))
        return qn_fail(err, QN_E_FORMAT, "line %u: unexpected character '%c'", l->line,
                       c >= ' ' && c < 127 ? c : '?');
    l->at++;
    return push(l, (qn_jtok){.kind = QN_JT_OP, .op = c}, err);
}

/* The inside of a tag up to and with its end. */
static qn_code inside(qn_jlex *l, bool block, qn_err *err)
{
    const char *end = block ? "%}" : "}}";
    uint32_t open = 0;
    for (;;) {
        while (l->at < l->n && is_space(l->src[l->at])) advance(l, l->at + 1);
        if (l->at >= l->n) return qn_fail(err, QN_E_FORMAT, "line %u: a tag has no end", l->line);
        const char *s = l->src + l->at;
        const size_t left = l->n - l->at;
        const size_t sign = left >= 3 && (*s == '-' || (*s == '+' && block)) ? 1 : 0;
        if (!open && left >= sign + 2 && !memcmp(s + sign, end, 2)) {
            QN_TRY(push(l, (qn_jtok){.kind = block ? QN_JT_BLOCK_END : QN_JT_VAR_END}, err));
            l->at += sign + 2;
            after_tag(l, sign && *s == '-', block && !sign);
            return QN_OK;
        }
        if (strchr("([{", *s) && *s) open++;
        if (strchr(")]}", *s) && *s && open) open--;
        if (*s == '"' || *s == '\'')
            QN_TRY(string(l, err));
        else if (is_digit(*s))
            QN_TRY(number(l, err));
        else if (is_word(*s))
            QN_TRY(name(l, err));
        else
            QN_TRY(op(l, err));
    }
}

static qn_code comment(qn_jlex *l, qn_err *err)
{
    size_t end = l->at + 2;
    while (end + 1 < l->n && !(l->src[end] == '#' && l->src[end + 1] == '}')) end++;
    if (end + 1 >= l->n) return qn_fail(err, QN_E_FORMAT, "line %u: a comment has no end", l->line);
    const char sign = end > l->at + 2 ? l->src[end - 1] : 0;
    advance(l, end + 2);
    after_tag(l, sign == '-', sign != '+');
    return QN_OK;
}

/* At a block: the length of "{% word %}" or 0. */
static size_t word_tag(const qn_jlex *l, size_t at, const char *word, char *first, char *last)
{
    size_t i = at + 2;
    const size_t n = strlen(word);
    *first = i < l->n && (l->src[i] == '-' || l->src[i] == '+') ? l->src[i++] : 0;
    while (i < l->n && is_space(l->src[i])) i++;
    if (l->n - i < n || memcmp(l->src + i, word, n)) return 0;
    i += n;
    while (i < l->n && is_space(l->src[i])) i++;
    *last = i < l->n && (l->src[i] == '-' || l->src[i] == '+') ? l->src[i++] : 0;
    return l->n - i >= 2 && l->src[i] == '%' && l->src[i + 1] == '}' ? i + 2 - at : 0;
}

static qn_code raw(qn_jlex *l, size_t tag, char last, qn_err *err)
{
    char sign = 0, end_last = 0;
    advance(l, l->at + tag);
    after_tag(l, last == '-', last != '+');
    for (size_t i = l->at; i + 1 < l->n; i++) {
        if (l->src[i] != '{' || l->src[i + 1] != '%') continue;
        const size_t n = word_tag(l, i, "endraw", &sign, &end_last);
        if (!n) continue;
        QN_TRY(data(l, i, sign, true, err));
        advance(l, i + n);
        after_tag(l, end_last == '-', end_last != '+');
        return QN_OK;
    }
    return qn_fail(err, QN_E_FORMAT, "line %u: raw has no endraw", l->line);
}

qn_code qn_jinja_lex(qn_jlex *l, qn_err *err)
{
    l->line = 1;
    l->line_start = true;
    while (l->at < l->n) {
        size_t i = l->at;
        while (i + 1 < l->n && !(l->src[i] == '{' && strchr("{%#", l->src[i + 1]) && l->src[i + 1]))
            i++;
        if (i + 1 >= l->n) {
            QN_TRY(data(l, l->n, 0, false, err));
            break;
        }
        const char kind = l->src[i + 1];
        char first = i + 2 < l->n ? l->src[i + 2] : 0, last = 0;
        if (first != '-' && (first != '+' || kind == '{')) first = 0;
        QN_TRY(data(l, i, first, kind != '{', err));
        if (kind == '#') {
            QN_TRY(comment(l, err));
            continue;
        }
        const size_t tag = kind == '%' ? word_tag(l, i, "raw", &first, &last) : 0;
        if (tag) {
            QN_TRY(raw(l, tag, last, err));
            continue;
        }
        l->at += first ? 3 : 2;
        QN_TRY(push(l, (qn_jtok){.kind = kind == '%' ? QN_JT_BLOCK_BEGIN : QN_JT_VAR_BEGIN}, err));
        QN_TRY(inside(l, kind == '%', err));
    }
    return push(l, (qn_jtok){.kind = QN_JT_END}, err);
}
