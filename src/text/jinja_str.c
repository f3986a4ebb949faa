/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_str.c - methods of strings, as Python has them; those of markup escape what they are given. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

static bool space_at(qn_jv s, size_t i, size_t *n)
{
    uint32_t cp = 0;
    *n = qn_utf8_step(s.u.s + i, s.n - i, &cp);
    return qn_jinja_char(cp) & QN_JC_SPACE;
}

static size_t char_before(qn_jv s, size_t end)
{
    size_t n = 1;
    while (n < end && n < 4 && ((unsigned char)s.u.s[end - n] & 0xC0) == 0x80) n++;
    return n;
}

static qn_jv part(qn_jrun *r, qn_jv s, size_t b, size_t e)
{
    return qn_jv_marked(qn_jv_str(r, s.u.s + b, e - b), s.flag);
}

static bool want_str(qn_jrun *r, qn_jv v, const char *who)
{
    if (v.type == QN_JV_STR) return r->rc == QN_OK;
    qn_jinja_fail(r, QN_E_FORMAT, "%s takes a string, found %s", who, qn_jv_type(v));
    return false;
}

static bool in_set(qn_jv chars, const char *c, size_t n)
{
    uint32_t cp = 0;
    for (size_t i = 0, len = 0; i < chars.n; i += len) {
        len = qn_utf8_step(chars.u.s + i, chars.n - i, &cp);
        if (len == n && !memcmp(chars.u.s + i, c, n)) return true;
    }
    return false;
}

/* sides: 1 left, 2 right. */
qn_jv qn_jinja_strip(qn_jrun *r, qn_jv s, qn_jv chars, int sides)
{
    size_t b = 0, e = s.n, n = 0;
    const bool given = qn_jv_is_given(chars) && chars.type != QN_JV_NONE;
    if (given && !want_str(r, chars, "strip")) return s;
    while (b < e && (sides & 1) && qn_jinja_step(r, given ? 1 + chars.n / 64 : 0)) {
        const bool space = space_at(s, b, &n);
        if (given ? !in_set(chars, s.u.s + b, n) : !space) break;
        b += n;
    }
    while (b < e && (sides & 2) && qn_jinja_step(r, given ? 1 + chars.n / 64 : 0)) {
        n = char_before(s, e);
        size_t same = 0;
        const bool space = space_at(s, e - n, &same);
        if (given ? !in_set(chars, s.u.s + e - n, n) : !space) break;
        e -= n;
    }
    qn_jinja_step(r, (b + s.n - e) / 8);
    return part(r, s, b, e);
}

qn_jv qn_jinja_replace(qn_jrun *r, qn_jv s, qn_jv old, qn_jv by, int64_t most)
{
    qn_buf b;
    size_t i = 0;
    qn_buf_init(&b, r->max_output);
    while (i <= s.n && most != 0 && qn_jinja_step(r, 1)) {
        const char *at = old.n ? memmem(s.u.s + i, s.n - i, old.u.s, old.n) : s.u.s + i;
        if (!at) break;
        qn_jinja_bytes(r, &b, s.u.s + i, (size_t)(at - s.u.s) - i);
        qn_jinja_bytes(r, &b, by.u.s, by.n);
        i = (size_t)(at - s.u.s) + old.n;
        most -= most > 0;
        if (old.n) continue;
        if (i == s.n) return qn_jv_marked(qn_jv_take(r, &b), s.flag);
        uint32_t cp = 0;
        const size_t n = qn_utf8_step(s.u.s + i, s.n - i, &cp);
        qn_jinja_bytes(r, &b, s.u.s + i, n);
        i += n;
    }
    if (i < s.n) qn_jinja_bytes(r, &b, s.u.s + i, s.n - i);
    return qn_jv_marked(qn_jv_take(r, &b), s.flag);
}

static qn_jv split_space(qn_jrun *r, qn_jv s, int64_t most, bool right)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    size_t i = 0, end = s.n, n = 0;
    qn_jinja_step(r, s.n / 8);
    while (r->rc == QN_OK) {
        if (right)
            while (end > i && space_at(s, end - char_before(s, end), &n)) end -= n;
        else
            while (i < end && space_at(s, i, &n)) i += n;
        if (i >= end) break;
        size_t b = i, e = end;
        if (most == 0) { /* the rest, without the space on its far side */
            if (right)
                while (b < e && space_at(s, b, &n)) b += n;
            else
                while (e > b && space_at(s, e - char_before(s, e), &n)) e -= n;
            if (b < e) qn_jv_push(r, out, part(r, s, b, e));
            break;
        }
        if (right)
            for (b = end; b > i && !space_at(s, b - char_before(s, b), &n);) b -= char_before(s, b);
        else
            for (e = i; e < end && !space_at(s, e, &n);) e += n;
        qn_jv_push(r, out, part(r, s, b, e));
        if (right)
            end = b;
        else
            i = e;
        most -= most > 0;
    }
    return out;
}

/* The last place of `what` in s[0, end). Each place that could be it costs its comparison. */
static const char *rfind(qn_jrun *r, qn_jv s, size_t end, qn_jv what)
{
    if (what.n > end || !qn_jinja_step(r, 1)) return NULL;
    if (!what.n) return s.u.s + end;
    for (size_t i = end - what.n + 1; i-- > 0;) {
        const char *at = memrchr(s.u.s, *what.u.s, i + 1);
        if (!at) return NULL;
        i = (size_t)(at - s.u.s);
        if (!qn_jinja_step(r, 1 + what.n / 256)) return NULL;
        if (!memcmp(at, what.u.s, what.n)) return at;
    }
    return NULL;
}

static void turn(qn_jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const qn_jv v = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = v;
    }
}

qn_jv qn_jinja_split(qn_jrun *r, qn_jv s, qn_jv sep, int64_t most, bool right)
{
    qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    size_t i = 0, end = s.n;
    if (r->rc != QN_OK) return s;
    if (!qn_jv_is_given(sep) || sep.type == QN_JV_NONE) {
        out = split_space(r, s, most, right);
    } else {
        if (!want_str(r, sep, "split")) return s;
        if (!sep.n) return qn_jinja_fail(r, QN_E_FORMAT, "empty separator");
        while (most != 0 && qn_jinja_step(r, 1)) {
            const char *at =
                right ? rfind(r, s, end, sep) : memmem(s.u.s + i, s.n - i, sep.u.s, sep.n);
            if (!at) break;
            const size_t p = (size_t)(at - s.u.s);
            qn_jv_push(r, out, right ? part(r, s, p + sep.n, end) : part(r, s, i, p));
            if (right)
                end = p;
            else
                i = p + sep.n;
            most -= most > 0;
        }
        qn_jv_push(r, out, part(r, s, i, end));
    }
    if (right && r->rc == QN_OK) turn(out.u.list);
    return out;
}

qn_jv qn_jinja_lines(qn_jrun *r, qn_jv s, bool keep)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    qn_jinja_step(r, s.n / 8);
    for (size_t i = 0; i < s.n && r->rc == QN_OK;) {
        size_t e = i, n = 0;
        while (e < s.n && !(n = qn_jinja_line_end(s.u.s, s.n, e))) e++;
        qn_jv_push(r, out, part(r, s, i, keep ? e + n : e));
        i = e + n;
    }
    return out;
}

/* The bytes [b, e) of s that arguments start and end mean; false: they lie apart. */
static bool window(qn_jrun *r, qn_jv s, const qn_jv *x, size_t *b, size_t *e)
{
    *b = 0;
    *e = s.n;
    if (!qn_jv_is_given(x[0]) && !qn_jv_is_given(x[1])) return true;
    const int64_t n = qn_jv_len(r, s);
    int64_t at[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        if (!qn_jv_is_given(x[i]) || x[i].type == QN_JV_NONE) continue;
        if (!qn_jv_is_int(x[i])) {
            qn_jinja_fail(r, QN_E_FORMAT, "slice indices must be integers or None");
            return false;
        }
        at[i] = x[i].u.i < 0 ? (x[i].u.i + n < 0 ? 0 : x[i].u.i + n) : x[i].u.i;
    }
    if (at[1] > n) at[1] = n;
    if (at[0] > at[1]) return false;
    *b = qn_jv_byte_of(s, at[0]);
    *e = qn_jv_byte_of(s, at[1]);
    return r->rc == QN_OK;
}

static qn_jv affix(qn_jrun *r, qn_jv s, const qn_jv *x, bool end)
{
    size_t b = 0, e = 0;
    const qn_jlist one = {.v = (qn_jv[]){x[0]}, .n = 1};
    const qn_jlist *all = x[0].type == QN_JV_TUPLE ? x[0].u.list : &one;
    const bool inside = window(r, s, x + 1, &b, &e);
    for (size_t i = 0; i < all->n && r->rc == QN_OK; i++) {
        const qn_jv w = all->v[i];
        if (!want_str(r, w, end ? "endswith" : "startswith")) break;
        if (inside && w.n <= e - b && !memcmp(s.u.s + (end ? e - w.n : b), w.u.s, w.n))
            return qn_jv_bool(true);
    }
    return qn_jv_bool(false);
}

static qn_jv search(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    size_t b = 0, e = 0;
    if (!want_str(r, x[0], name)) return s;
    const bool inside = window(r, s, x + 1, &b, &e), count = !strcmp(name, "count");
    const qn_jv w = x[0];
    if (r->rc != QN_OK || !qn_jinja_step(r, s.n / 64)) return s;
    if (count) {
        int64_t n = 0;
        if (!inside) return qn_jv_int(0);
        if (!w.n) return qn_jv_int((int64_t)qn_jv_chars(qn_jv_borrow(s.u.s + b, e - b)) + 1);
        for (const char *p = s.u.s + b;
             (p = memmem(p, (size_t)(s.u.s + e - p), w.u.s, w.n)) != NULL; n++)
            p += w.n;
        return qn_jv_int(n);
    }
    const char *at = NULL;
    if (inside && *name == 'r') {
        at = rfind(r, qn_jv_borrow(s.u.s + b, e - b), e - b, w);
    } else if (inside) {
        at = memmem(s.u.s + b, e - b, w.u.s, w.n);
    }
    if (!at && strstr(name, "index")) return qn_jinja_fail(r, QN_E_FORMAT, "substring not found");
    if (at && at < s.u.s) at = s.u.s; /* an empty string's own bytes */
    return qn_jv_int(at ? (int64_t)qn_jv_chars(qn_jv_borrow(s.u.s, (size_t)(at - s.u.s))) : -1);
}

static qn_jv partition(qn_jrun *r, qn_jv s, qn_jv sep, bool right)
{
    const qn_jv out = qn_jv_list(r, QN_JV_TUPLE, 3);
    if (!want_str(r, sep, "partition")) return s;
    if (!sep.n) return qn_jinja_fail(r, QN_E_FORMAT, "empty separator");
    const char *at = right ? rfind(r, s, s.n, sep) : memmem(s.u.s, s.n, sep.u.s, sep.n);
    const size_t p = at ? (size_t)(at - s.u.s) : right ? 0 : s.n, q = at ? p + sep.n : p;
    qn_jv_push(r, out, part(r, s, 0, p));
    qn_jv_push(r, out, part(r, s, p, q));
    qn_jv_push(r, out, part(r, s, q, s.n));
    return out;
}

/* center, ljust, rjust, zfill. */
static qn_jv pad(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    const bool zeros = *name == 'z';
    qn_jv with = zeros ? qn_jv_z("0") : qn_jv_is_given(x[1]) ? x[1] : qn_jv_z(" ");
    if (!qn_jv_is_int(x[0])) return qn_jinja_fail(r, QN_E_FORMAT, "%s takes an integer", name);
    if (s.flag) with = qn_jv_escape(r, with);
    if (!want_str(r, with, name)) return s;
    if (qn_jv_chars(with) != 1)
        return qn_jinja_fail(r, QN_E_FORMAT,
                             "the fill character must be exactly one character long");
    const int64_t width = x[0].u.i, n = qn_jv_len(r, s), more = width > n ? width - n : 0;
    const int64_t left = *name == 'l' ? 0 : *name == 'c' ? more / 2 + (more & width & 1) : more;
    const size_t sign = zeros && s.n && (*s.u.s == '-' || *s.u.s == '+') ? 1 : 0;
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    qn_jinja_bytes(r, &b, s.u.s, sign);
    qn_jinja_fill(r, &b, with, left);
    qn_jinja_bytes(r, &b, s.u.s + sign, s.n - sign);
    qn_jinja_fill(r, &b, with, more - left);
    return qn_jv_marked(qn_jv_take(r, &b), s.flag);
}

static qn_jv expandtabs(qn_jrun *r, qn_jv s, int64_t size)
{
    qn_buf b;
    int64_t column = 0;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; i < s.n && r->rc == QN_OK; i++) {
        const char c = s.u.s[i];
        if (c == '\t') {
            const int64_t n = size > 0 ? size - column % size : 0;
            qn_jinja_fill(r, &b, qn_jv_z(" "), n);
            column += n;
            continue;
        }
        column += ((unsigned char)c & 0xC0) != 0x80;
        if (c == '\n' || c == '\r') column = 0;
        qn_jinja_bytes(r, &b, &c, 1);
    }
    return qn_jv_marked(qn_jv_take(r, &b), s.flag);
}

static qn_jv m_case(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    (void)x;
    return qn_jinja_case(r, s,
                         !strcmp(name, "swapcase")   ? 's'
                         : !strcmp(name, "casefold") ? 'f'
                                                     : *name);
}
static qn_jv m_is(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    (void)x;
    return qn_jinja_step(r, s.n / 8) ? qn_jv_bool(qn_jinja_all_are(s, name)) : s;
}
static qn_jv m_strip(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    return qn_jinja_strip(r, s, x[0], *name == 'l' ? 1 : *name == 'r' ? 2 : 3);
}
static qn_jv m_split(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    return qn_jinja_split(r, s, x[0], qn_jinja_int_of(r, x[1], -1), *name == 'r');
}
static qn_jv m_lines(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    (void)name;
    return qn_jinja_lines(r, s, qn_jinja_int_of(r, x[0], 0) != 0);
}
static qn_jv m_affix(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    return affix(r, s, x, *name == 'e');
}
static qn_jv m_partition(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    return partition(r, s, x[0], *name == 'r');
}
static qn_jv m_join(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    (void)name;
    return qn_jinja_join(r, s, x[0], 'm');
}
static qn_jv m_replace(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    const qn_jv by = s.flag ? qn_jv_escape(r, x[1]) : x[1];
    if (!want_str(r, x[0], name) || !want_str(r, by, name)) return s;
    return qn_jinja_replace(r, s, x[0], by, qn_jinja_int_of(r, x[2], -1));
}
static qn_jv m_remove(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    const qn_jv args[3] = {x[0], qn_jv_given(), qn_jv_given()};
    const bool end = !strcmp(name, "removesuffix");
    if (!want_str(r, x[0], name)) return s;
    const bool has = affix(r, s, args, end).u.i;
    return has ? part(r, s, end ? 0 : x[0].n, end ? s.n - x[0].n : s.n) : s;
}
static qn_jv m_tabs(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    (void)name;
    return expandtabs(r, s, qn_jinja_int_of(r, x[0], 8));
}
static qn_jv m_html(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x)
{
    const qn_jargs none = {0};
    (void)x;
    return !strcmp(name, "striptags") ? qn_jinja_filter(r, "striptags", s, &none)
                                      : qn_jv_escape(r, x[0]);
}

static const struct str_method {
    const char *name, *sig;
    qn_jv (*fn)(qn_jrun *r, qn_jv s, const char *name, const qn_jv *x);
} methods[] = {
    {"upper", "", m_case},
    {"lower", "", m_case},
    {"title", "", m_case},
    {"capitalize", "", m_case},
    {"swapcase", "", m_case},
    {"casefold", "", m_case},
    {"strip", "chars= /", m_strip},
    {"lstrip", "chars= /", m_strip},
    {"rstrip", "chars= /", m_strip},
    {"split", "sep= maxsplit=", m_split},
    {"rsplit", "sep= maxsplit=", m_split},
    {"splitlines", "keepends=", m_lines},
    {"startswith", "prefix start= end= /", m_affix},
    {"endswith", "suffix start= end= /", m_affix},
    {"find", "sub start= end= /", search},
    {"rfind", "sub start= end= /", search},
    {"index", "sub start= end= /", search},
    {"rindex", "sub start= end= /", search},
    {"count", "sub start= end= /", search},
    {"replace", "old new count= /", m_replace},
    {"join", "iterable /", m_join},
    {"partition", "sep /", m_partition},
    {"rpartition", "sep /", m_partition},
    {"removeprefix", "prefix /", m_remove},
    {"removesuffix", "suffix /", m_remove},
    {"center", "width fillchar= /", pad},
    {"ljust", "width fillchar= /", pad},
    {"rjust", "width fillchar= /", pad},
    {"zfill", "width /", pad},
    {"expandtabs", "tabsize=", m_tabs},
    {"isalpha", "", m_is},
    {"isalnum", "", m_is},
    {"isascii", "", m_is},
    {"isdecimal", "", m_is},
    {"isdigit", "", m_is},
    {"isidentifier", "", m_is},
    {"islower", "", m_is},
    {"isnumeric", "", m_is},
    {"isprintable", "", m_is},
    {"isspace", "", m_is},
    {"istitle", "", m_is},
    {"isupper", "", m_is},
    {"striptags", "", m_html}, /* of markup only */
    {"escape", "s /", m_html},
};

bool qn_jinja_has_str_method(const char *name)
{
    if (!strcmp(name, "format") || !strcmp(name, "format_map")) return true;
    for (size_t i = 0; i < QN_LEN(methods); i++)
        if (!strcmp(name, methods[i].name)) return true;
    return false;
}

qn_jv qn_jinja_str_method(qn_jrun *r, qn_jv s, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    if (!strncmp(name, "format", 6)) return qn_jinja_braces(r, s, a, name[6] != 0);
    for (size_t i = 0; i < QN_LEN(methods); i++) {
        if (strcmp(name, methods[i].name)) continue;
        return qn_jinja_bind(r, name, methods[i].sig, a, x) ? methods[i].fn(r, s, name, x) : s;
    }
    return qn_jinja_fail(r, QN_E_FORMAT, "strings have no %s", name);
}
