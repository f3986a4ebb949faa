/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_textfilter.c - filters that work on text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

/* int(text, base): digits with single underscores, a sign, and for base 0 or its own a prefix. */
qn_jv qn_jinja_to_int(qn_jrun *r, qn_jv v, int64_t base, bool *ok)
{
    const qn_jv s = qn_jinja_strip(r, qn_jv_marked(v, false), qn_jv_none(), 3);
    size_t i = 0;
    int64_t out = 0;
    *ok = false;
    if (r->rc != QN_OK || (base && (base < 2 || base > 36))) return v;
    const bool minus = s.n && *s.u.s == '-';
    if (s.n && strchr("+-", *s.u.s)) i++;
    const char x = i + 1 < s.n && s.u.s[i] == '0' ? (char)(s.u.s[i + 1] | 32) : 0;
    const int64_t own = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 0;
    bool under = false, any = false, zeros = true;
    if (own && (base == 0 || base == own)) {
        base = own;
        i += 2;
        under = false;
        any = i < s.n && s.u.s[i] == '_'; /* 0x_f is fine */
        if (any) i++;
        any = false;
    }
    const bool free_base = !base;
    if (!base) base = 10;
    for (; i < s.n; i++) {
        const char c = s.u.s[i];
        if (c == '_' && any && !under) {
            under = true;
            continue;
        }
        const int64_t d = c >= '0' && c <= '9'                 ? c - '0'
                          : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10
                                                               : 99;
        if (d >= base) return v;
        if (free_base && any && zeros && d) return v; /* 010 */
        zeros = zeros && !d;
        any = true;
        under = false;
        if (__builtin_mul_overflow(out, base, &out) || __builtin_add_overflow(out, d, &out))
            return qn_jinja_fail(r, QN_E_LIMIT, "an integer leaves 64 bits");
    }
    *ok = any && !under;
    return qn_jv_int(minus ? -out : out);
}

/* float(text) without the white space around it. */
bool qn_jinja_to_real(qn_jv s, double *d)
{
    char text[400];
    size_t n = 0;
    if (s.type != QN_JV_STR || !s.n || s.n >= sizeof text) return false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.u.s[i];
        const bool between = i && i + 1 < s.n && s.u.s[i - 1] >= '0' && s.u.s[i - 1] <= '9' &&
                             s.u.s[i + 1] >= '0' && s.u.s[i + 1] <= '9';
        if (c == '_' && between) continue;
        if (c == 'x' || c == 'X' || c == '(' || !c) return false; /* strtod's, not Python's */
        text[n++] = c;
    }
    text[n] = 0;
    char *end = NULL;
    if (qn_jinja_char((unsigned char)*text) & QN_JC_SPACE) return false;
    *d = strtod(text, &end);
    return end == text + n;
}

static qn_jv f_string(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return qn_jv_soft(r, v);
}

static qn_jv cased(qn_jrun *r, qn_jv v, char how)
{
    v = qn_jv_soft(r, v);
    return r->rc == QN_OK ? qn_jinja_case(r, v, how) : v;
}
static qn_jv f_upper(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return cased(r, v, 'u');
}
static qn_jv f_lower(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return cased(r, v, 'l');
}
static qn_jv f_capitalize(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return cased(r, v, 'c');
}
static qn_jv f_title(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return qn_jv_marked(cased(r, v, 'w'), false); /* its parts are joined as plain text */
}

static qn_jv f_trim(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)a;
    v = qn_jv_soft(r, v);
    return r->rc == QN_OK ? qn_jinja_strip(r, v, x[0], 3) : v;
}

static qn_jv f_escape(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return qn_jv_escape(r, v);
}
static qn_jv f_forceescape(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    v = qn_jv_text(r, v);
    return r->rc == QN_OK ? qn_jv_escape(r, v) : v;
}
static qn_jv f_safe(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return qn_jv_marked(qn_jv_text(r, v), true);
}

static qn_jv f_replace(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const int64_t most = x[2].type == QN_JV_NONE ? -1 : qn_jinja_int_of(r, x[2], -1);
    qn_jv s = qn_jv_text(r, v), old = qn_jv_text(r, x[0]), by = qn_jv_text(r, x[1]);
    (void)a;
    if (r->rc != QN_OK) return v;
    if (!r->escapes) return qn_jinja_replace(r, s, old, by, most);
    const bool old_marked = x[0].type == QN_JV_STR && x[0].flag,
               by_marked = x[1].type == QN_JV_STR && x[1].flag;
    const bool marked = v.type == QN_JV_STR && v.flag;
    if (old_marked || (by_marked && !marked))
        s = qn_jv_escape(r, v);
    else
        s = qn_jv_soft(r, v);
    if (s.type == QN_JV_STR && s.flag) by = qn_jv_escape(r, qn_jv_marked(by, by_marked));
    return r->rc == QN_OK ? qn_jinja_replace(r, s, old, by, most) : v;
}

static qn_jv f_center(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jv width = qn_jv_is_given(x[0]) ? x[0] : qn_jv_int(80);
    const qn_jargs one = {.v = &width, .n = 1};
    (void)a;
    v = qn_jv_soft(r, v);
    return r->rc == QN_OK ? qn_jinja_str_method(r, v, "center", &one) : v;
}

static bool want_text(qn_jrun *r, qn_jv v, const char *who)
{
    if (v.type == QN_JV_STR) return true;
    if (v.type == QN_JV_UNDEF)
        qn_jinja_undefined(r, v);
    else
        qn_jinja_fail(r, QN_E_FORMAT, "%s takes text, found %s", who, qn_jv_type(v));
    return false;
}

static qn_jv f_indent(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const bool first = qn_jinja_true_of(x[1], false), blank = qn_jinja_true_of(x[2], false);
    qn_jv by = qn_jv_is_given(x[0]) ? x[0] : qn_jv_int(4);
    (void)a;
    if (by.type != QN_JV_STR) by = qn_jinja_binary(r, '*', qn_jv_z(" "), by);
    if (r->rc != QN_OK || !want_text(r, v, "indent")) return v;
    if (by.type != QN_JV_STR) return qn_jinja_fail(r, QN_E_FORMAT, "indent takes a number or text");
    const qn_jv s = qn_jinja_binary(r, '+', v, qn_jv_marked(qn_jv_z("\n"), v.flag));
    const qn_jv lines = r->rc == QN_OK ? qn_jinja_lines(r, s, false) : v;
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; r->rc == QN_OK && i < lines.u.list->n; i++) {
        const qn_jv l = lines.u.list->v[i];
        if (i) qn_jinja_put(r, &b, "\n");
        if (i ? blank || l.n : first) qn_jinja_bytes(r, &b, by.u.s, by.n);
        qn_jinja_bytes(r, &b, l.u.s, l.n);
    }
    return qn_jv_marked(qn_jv_take(r, &b), v.flag || by.flag);
}

static qn_jv f_truncate(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const int64_t n = qn_jinja_int_of(r, x[0], 255);
    const qn_jv end = qn_jv_is_given(x[2]) ? x[2] : qn_jv_z("...");
    const int64_t leeway = x[3].type == QN_JV_NONE ? 5 : qn_jinja_int_of(r, x[3], 5);
    (void)a;
    const int64_t n_end = qn_jv_len(r, end), n_text = qn_jv_len(r, v);
    if (r->rc != QN_OK) return v;
    if (n < n_end || leeway < 0)
        return qn_jinja_fail(r, QN_E_FORMAT, "truncate to %lld", (long long)n);
    if (n_text <= n + leeway) return v;
    const qn_jv at[3] = {qn_jv_none(), qn_jv_int(n - n_end), qn_jv_none()};
    qn_jv head = qn_jv_slice(r, v, at);
    if (!qn_jinja_true_of(x[1], false)) {
        if (r->rc != QN_OK || !want_text(r, head, "truncate")) return v;
        const qn_jv parts = qn_jinja_split(r, head, qn_jv_z(" "), 1, true);
        if (r->rc == QN_OK) head = parts.u.list->v[0];
    }
    return qn_jinja_binary(r, '+', head, end);
}

static qn_jv f_wordcount(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    int64_t n = 0;
    bool in_word = false;
    (void)x;
    (void)a;
    v = qn_jv_soft(r, v);
    if (r->rc != QN_OK || !qn_jinja_step(r, v.n / 8)) return v;
    for (size_t i = 0, len = 0; i < v.n; i += len) {
        uint32_t cp = 0;
        len = qn_utf8_step(v.u.s + i, v.n - i, &cp);
        const uint32_t word = QN_JC_ALPHA | QN_JC_DECIMAL | QN_JC_DIGIT | QN_JC_NUMERIC;
        const bool is = cp == '_' || (qn_jinja_char(cp) & word);
        n += is && !in_word;
        in_word = is;
    }
    return qn_jv_int(n);
}

static qn_jv f_format(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    if (a->n && a->n_named)
        return qn_jinja_fail(r, QN_E_FORMAT,
                             "format takes arguments by place or by name, not both");
    qn_jv args = qn_jv_list(r, QN_JV_TUPLE, a->n);
    for (size_t i = 0; i < a->n && r->rc == QN_OK; i++) qn_jv_push(r, args, a->v[i]);
    if (a->n_named) args = qn_jv_dict(r, QN_JV_DICT);
    for (size_t i = 0; i < a->n_named && r->rc == QN_OK; i++)
        qn_jv_put(r, args, qn_jv_z(a->name[i]), a->named[i]);
    v = qn_jv_soft(r, v);
    return r->rc == QN_OK ? qn_jinja_percent(r, v, args) : v;
}

static void quote(qn_jrun *r, qn_buf *b, qn_jv v, bool query)
{
    static const char hex[] = "0123456789ABCDEF";
    v = qn_jv_text(r, v);
    for (size_t i = 0; r->rc == QN_OK && i < v.n; i++) {
        const char c = v.u.s[i];
        const bool plain = (c >= '0' && c <= '9') ||
                           ((c | 32) >= 'a' && (c | 32) <= 'z' && (unsigned char)c < 128) ||
                           (c && strchr("_.-~", c)) || (c == '/' && !query);
        const char code[3] = {'%', hex[(unsigned char)c >> 4], hex[c & 15]};
        if (plain || (query && c == ' '))
            qn_jinja_bytes(r, b, plain ? &c : "+", 1);
        else
            qn_jinja_bytes(r, b, code, 3);
    }
}

static qn_jv f_urlencode(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_buf b;
    qn_jit it;
    qn_jv e;
    bool first = true;
    (void)x;
    (void)a;
    qn_buf_init(&b, r->max_output);
    if (v.type == QN_JV_STR || !qn_jit_can(v)) {
        quote(r, &b, v, false);
        return qn_jv_take(r, &b);
    }
    if (v.type == QN_JV_DICT) {
        v.type = QN_JV_VIEW;
        v.flag = 'i';
    }
    qn_jit_begin(r, &it, v);
    for (; qn_jit_next(r, &it, &e); first = false) {
        const qn_jlist *two = qn_jv_all(r, e);
        if (two && two->n != 2) qn_jinja_fail(r, QN_E_FORMAT, "urlencode takes pairs");
        if (!two || r->rc != QN_OK) break;
        if (!first) qn_jinja_put(r, &b, "&");
        quote(r, &b, two->v[0], true);
        qn_jinja_put(r, &b, "=");
        quote(r, &b, two->v[1], true);
    }
    return qn_jv_take(r, &b);
}

static qn_jv f_xmlattr(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_buf b;
    (void)a;
    if (v.type != QN_JV_DICT)
        return v.type == QN_JV_UNDEF
                   ? qn_jinja_undefined(r, v)
                   : qn_jinja_fail(r, QN_E_FORMAT, "a %s has no items", qn_jv_type(v));
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; i < v.u.dict->n && qn_jinja_step(r, 1); i++) {
        const qn_jv key = v.u.dict->kv[2 * i], value = v.u.dict->kv[2 * i + 1];
        if (value.type == QN_JV_NONE || value.type == QN_JV_UNDEF) continue;
        if (!want_text(r, key, "xmlattr")) break;
        for (size_t k = 0; k < key.n; k++)
            if (strchr(" \t\n\r\f\v/>=", key.u.s[k]) && key.u.s[k])
                qn_jinja_fail(r, QN_E_FORMAT, "invalid character in attribute name");
        if (b.len || qn_jinja_true_of(x[0], true)) qn_jinja_put(r, &b, " ");
        qn_jv_write(r, &b, qn_jv_escape(r, key), false);
        qn_jinja_put(r, &b, "=\"");
        qn_jv_write(r, &b, qn_jv_escape(r, value), false);
        qn_jinja_put(r, &b, "\"");
    }
    return qn_jv_marked(qn_jv_take(r, &b), r->escapes);
}

/* A character reference of HTML at s: what it stands for into b, its length returned; 0: none. */
static size_t reference(qn_jrun *r, qn_buf *b, const char *s, size_t n)
{
    static const struct {
        const char *name, *text;
    } known[] = {{"amp", "&"},
                 {"lt", "<"},
                 {"gt", ">"},
                 {"quot", "\""},
                 {"apos;", "'"},
                 {"nbsp", "\xC2\xA0"},
                 {"copy", "\xC2\xA9"},
                 {"reg", "\xC2\xAE"},
                 {"hellip;", "\xE2\x80\xA6"},
                 {"mdash;", "\xE2\x80\x94"},
                 {"ndash;", "\xE2\x80\x93"},
                 {"raquo", "\xC2\xBB"},
                 {"laquo", "\xC2\xAB"},
                 {"euro;", "\xE2\x82\xAC"}};
    char text[4];
    size_t i = 2;
    if (n > 2 && s[1] == '#') {
        const bool hex = (s[2] | 32) == 'x';
        uint64_t cp = 0;
        const size_t begin = i += hex;
        for (; i < n && i < begin + 9; i++) {
            const char c = s[i];
            const bool letter = hex && (c | 32) >= 'a' && (c | 32) <= 'f';
            if (!letter && !(c >= '0' && c <= '9')) break;
            cp = cp * (hex ? 16 : 10) + (uint64_t)(letter ? (c | 32) - 'a' + 10 : c - '0');
        }
        if (i == begin) return 0;
        const size_t w = cp && cp <= 0x10FFFF ? qn_utf8_encode(text, (uint32_t)cp) : 0;
        if (w)
            qn_jinja_bytes(r, b, text, w);
        else
            qn_jinja_put(r, b, "\xEF\xBF\xBD");
        return i < n && s[i] == ';' ? i + 1 : i;
    }
    for (size_t k = 0; k < QN_LEN(known); k++) {
        const size_t len = strlen(known[k].name);
        if (n <= len || memcmp(s + 1, known[k].name, len)) continue;
        qn_jinja_put(r, b, known[k].text);
        return 1 + len < n && s[1 + len] == ';' && known[k].name[len - 1] != ';' ? len + 2
                                                                                 : len + 1;
    }
    return 0;
}

static const char *find(qn_jv v, size_t from, const char *what)
{
    return from < v.n ? memmem(v.u.s + from, v.n - from, what, strlen(what)) : NULL;
}

static qn_jv f_striptags(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_buf b;
    size_t pos = 0;
    (void)x;
    (void)a;
    v = qn_jv_text(r, v);
    if (r->rc != QN_OK) return v;
    qn_buf_init(&b, r->max_output);
    for (const char *s; (s = find(v, pos, "<")) != NULL && qn_jinja_step(r, 1);) {
        const size_t start = (size_t)(s - v.u.s);
        const bool comment = v.n - start >= 4 && !memcmp(s, "<!--", 4);
        const char *end = comment ? find(v, start + 4, "-->") : find(v, start, ">");
        if (!end) break;
        qn_jinja_bytes(r, &b, v.u.s + pos, start - pos);
        pos = (size_t)(end - v.u.s) + (comment ? 3 : 1);
    }
    qn_jinja_bytes(r, &b, v.u.s + pos, v.n - pos);
    v = qn_jv_take(r, &b);
    const qn_jv words = r->rc == QN_OK ? qn_jinja_split(r, v, qn_jv_none(), -1, false) : v;
    v = r->rc == QN_OK ? qn_jinja_join(r, qn_jv_z(" "), words, 's') : v;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; r->rc == QN_OK && i < v.n;) {
        const size_t n = v.u.s[i] == '&' ? reference(r, &b, v.u.s + i, v.n - i) : 0;
        if (!n) qn_jinja_bytes(r, &b, v.u.s + i, 1);
        i += n ? n : 1;
    }
    return qn_jv_take(r, &b);
}

static qn_jv f_filesize(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    static const char letters[] = "kMGTPEZY";
    const bool binary = qn_jinja_true_of(x[0], false);
    const double base = binary ? 1024 : 1000;
    double d = 0;
    char text[400];
    (void)a;
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (qn_jv_is_num(v))
        d = qn_jv_num(v);
    else if (v.type != QN_JV_STR || !qn_jinja_to_real(qn_jinja_strip(r, v, qn_jv_none(), 3), &d))
        return qn_jinja_fail(r, QN_E_FORMAT, "could not convert a %s to float", qn_jv_type(v));
    if (d == 1) return qn_jv_z("1 Byte");
    if (d < base) {
        if (!isfinite(d))
            return qn_jinja_fail(r, QN_E_FORMAT, "cannot convert float infinity to integer");
        snprintf(text, sizeof text, "%.0f Bytes", trunc(d) == 0 ? 0.0 : trunc(d));
        return qn_jv_str(r, text, strlen(text));
    }
    if (isnan(d)) return qn_jv_z(binary ? "nan YiB" : "nan YB");
    double unit = base;
    size_t i = 0;
    for (; i < 8; i++) {
        unit *= base;
        if (d < unit || i == 7) break;
    }
    const char letter = binary && !i ? 'K' : letters[i];
    snprintf(text, sizeof text, binary ? "%.1f %ciB" : "%.1f %cB", base * d / unit, letter);
    return qn_jv_str(r, text, strlen(text));
}

static const qn_jfilter filters[] = {
    {"string", "", f_string},
    {"upper", "", f_upper},
    {"lower", "", f_lower},
    {"capitalize", "", f_capitalize},
    {"title", "", f_title},
    {"trim", "chars=", f_trim},
    {"escape", "", f_escape},
    {"e", "", f_escape},
    {"forceescape", "", f_forceescape},
    {"safe", "", f_safe},
    {"replace", "old new count=", f_replace},
    {"center", "width=", f_center},
    {"indent", "width= first= blank=", f_indent},
    {"truncate", "length= killwords= end= leeway=", f_truncate},
    {"wordcount", "", f_wordcount},
    {"wordwrap", "width= break_long_words= wrapstring= break_on_hyphens=", qn_jinja_wordwrap},
    {"urlize", NULL, qn_jinja_urlize},
    {"format", NULL, f_format},
    {"urlencode", "", f_urlencode},
    {"xmlattr", "autospace=", f_xmlattr},
    {"striptags", "", f_striptags},
    {"filesizeformat", "binary=", f_filesize},
};

const qn_jfilter *qn_jinja_text_filters(size_t *n)
{
    *n = QN_LEN(filters);
    return filters;
}
