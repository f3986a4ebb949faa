/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_format.c - the two ways of formatting text: "%s" % x and "{}".format(x). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct percent { /* fmt % args, on its way */
    qn_jv fmt, args;
    size_t at, next;
    bool tuple, mapped, markup;
} percent;

typedef struct conv {
    bool left, plus, space, alt, zero;
    int64_t width, precision; /* -1: none */
    char how;
} conv;

static qn_jv next_value(qn_jrun *r, percent *p)
{
    const size_t n = p->tuple ? p->args.u.list->n : 1;
    if (p->next >= n)
        return qn_jinja_fail(r, QN_E_FORMAT, "not enough arguments for format string");
    const qn_jv v = p->tuple ? p->args.u.list->v[p->next] : p->args;
    p->next++;
    return v;
}

static int64_t star_or_number(qn_jrun *r, percent *p)
{
    int64_t v = 0;
    if (p->at < p->fmt.n && p->fmt.u.s[p->at] == '*') {
        p->at++;
        const qn_jv x = next_value(r, p);
        if (r->rc == QN_OK && !qn_jv_is_int(x)) qn_jinja_fail(r, QN_E_FORMAT, "* wants int");
        return r->rc == QN_OK ? x.u.i : 0;
    }
    while (p->at < p->fmt.n && p->fmt.u.s[p->at] >= '0' && p->fmt.u.s[p->at] <= '9') {
        v = v * 10 + (p->fmt.u.s[p->at++] - '0');
        if (v > (int64_t)r->max_output) qn_jinja_fail(r, QN_E_LIMIT, "a format is too wide");
        if (r->rc != QN_OK) return 0;
    }
    return v;
}

static conv read_conv(qn_jrun *r, percent *p)
{
    conv c = {.precision = -1};
    for (; p->at < p->fmt.n; p->at++) {
        const char f = p->fmt.u.s[p->at];
        if (f == '-')
            c.left = true;
        else if (f == '+')
            c.plus = true;
        else if (f == ' ')
            c.space = true;
        else if (f == '#')
            c.alt = true;
        else if (f == '0')
            c.zero = true;
        else
            break;
    }
    c.width = star_or_number(r, p);
    if (c.width < 0) {
        c.left = true;
        c.width = c.width == INT64_MIN ? INT64_MAX : -c.width;
    }
    if (p->at < p->fmt.n && p->fmt.u.s[p->at] == '.') {
        p->at++;
        c.precision = star_or_number(r, p);
        if (c.precision < 0) c.precision = 0;
    }
    if (p->at < p->fmt.n && strchr("hlL", p->fmt.u.s[p->at])) p->at++;
    if (r->rc == QN_OK && p->at >= p->fmt.n) qn_jinja_fail(r, QN_E_FORMAT, "incomplete format");
    c.how = r->rc == QN_OK ? p->fmt.u.s[p->at++] : 's';
    return c;
}

static void put_padded(qn_jrun *r, qn_buf *b, const conv *c, const char *head, qn_jv body,
                       bool number)
{
    const int64_t more = c->width - (int64_t)strlen(head) - (int64_t)qn_jv_chars(body);
    const bool zeros = number && c->zero && !c->left;
    if (!c->left && !zeros) qn_jinja_fill(r, b, qn_jv_z(" "), more);
    qn_jinja_put(r, b, head);
    if (zeros) qn_jinja_fill(r, b, qn_jv_z("0"), more);
    qn_jinja_bytes(r, b, body.u.s, body.n);
    if (c->left) qn_jinja_fill(r, b, qn_jv_z(" "), more);
}

static const char *sign(const conv *c, bool negative)
{
    return negative ? "-" : c->plus ? "+" : c->space ? " " : "";
}

static void put_int(qn_jrun *r, qn_buf *b, const conv *c, qn_jv v, bool markup)
{
    char digits[32], head[8];
    int64_t i = v.u.i;
    const bool hex = strchr("oxX", c->how) != NULL;
    if (v.type == QN_JV_REAL && !hex && isfinite(v.u.d)) {
        if (fabs(v.u.d) >= 9.2e18) {
            qn_jinja_fail(r, QN_E_LIMIT, "an integer leaves 64 bits");
            return;
        }
        i = (int64_t)v.u.d;
    } else if (!qn_jv_is_int(v) || (markup && hex)) {
        if (v.type == QN_JV_UNDEF && !hex && markup)
            qn_jinja_undefined(r, v);
        else
            qn_jinja_fail(r, QN_E_FORMAT, "%%%c format: a number is required, not %s", c->how,
                          qn_jv_type(v));
        return;
    }
    const unsigned long long u = i < 0 ? 0 - (unsigned long long)i : (unsigned long long)i;
    snprintf(digits, sizeof digits,
             c->how == 'o'   ? "%llo"
             : c->how == 'x' ? "%llx"
             : c->how == 'X' ? "%llX"
                             : "%llu",
             u);
    snprintf(head, sizeof head, "%s%s", sign(c, i < 0),
             !c->alt || !hex ? ""
             : c->how == 'o' ? "0o"
             : c->how == 'x' ? "0x"
                             : "0X");
    qn_buf body;
    qn_buf_init(&body, r->max_output);
    qn_jinja_fill(r, &body, qn_jv_z("0"), c->precision - (int64_t)strlen(digits));
    qn_jinja_put(r, &body, digits);
    put_padded(r, b, c, head, qn_jv_take(r, &body), true);
}

static void put_real(qn_jrun *r, qn_buf *b, const conv *c, qn_jv v)
{
    char text[800], fmt[8];
    if (v.type == QN_JV_UNDEF) {
        qn_jinja_undefined(r, v);
        return;
    }
    if (!qn_jv_is_num(v) || c->precision > 300) {
        qn_jinja_fail(r, c->precision > 300 ? QN_E_LIMIT : QN_E_FORMAT,
                      "must be real number, not %s", qn_jv_type(v));
        return;
    }
    const double d = qn_jv_num(v);
    snprintf(fmt, sizeof fmt, c->alt ? "%%#.*%c" : "%%.*%c", c->how);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, fmt, (int)(c->precision < 0 ? 6 : c->precision), fabs(d));
#pragma GCC diagnostic pop
    put_padded(r, b, c, sign(c, signbit(d) && !isnan(d)), qn_jv_str(r, text, strlen(text)), true);
}

static qn_jv ascii_repr(qn_jrun *r, qn_jv v)
{
    const qn_jv s = qn_jv_repr(r, v);
    char text[16];
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0, n = 0; i < s.n && r->rc == QN_OK; i += n) {
        uint32_t cp = 0;
        n = qn_utf8_step(s.u.s + i, s.n - i, &cp);
        snprintf(text, sizeof text,
                 cp < 256       ? "\\x%02x"
                 : cp < 0x10000 ? "\\u%04x"
                                : "\\U%08x",
                 cp);
        if (cp < 128)
            qn_jinja_bytes(r, &b, s.u.s + i, n);
        else
            qn_jinja_put(r, &b, text);
    }
    return qn_jv_take(r, &b);
}

static void put_char(qn_jrun *r, qn_buf *b, const conv *c, qn_jv v)
{
    char text[4];
    if (v.type == QN_JV_STR && qn_jv_chars(v) == 1) {
        put_padded(r, b, c, "", v, false);
        return;
    }
    const size_t n = qn_jv_is_int(v) && v.u.i >= 0 && v.u.i <= 0x10FFFF
                         ? qn_utf8_encode(text, (uint32_t)v.u.i)
                         : 0;
    if (!n)
        qn_jinja_fail(r, QN_E_FORMAT, "%%c requires int or char");
    else
        put_padded(r, b, c, "", qn_jv_str(r, text, n), false);
}

static void convert(qn_jrun *r, qn_buf *b, const conv *c, qn_jv v, bool markup)
{
    if (r->rc != QN_OK) return;
    if (strchr("sra", c->how)) {
        qn_jv t = c->how == 's'   ? qn_jv_soft(r, v)
                  : c->how == 'r' ? qn_jv_repr(r, v)
                                  : ascii_repr(r, v);
        if (markup) t = qn_jv_escape(r, t);
        if (r->rc == QN_OK && c->precision >= 0) t = qn_jv_part(r, t, 0, c->precision);
        if (r->rc == QN_OK) put_padded(r, b, c, "", t, false);
    } else if (strchr("diuoxX", c->how)) {
        put_int(r, b, c, v, markup);
    } else if (strchr("eEfFgG", c->how)) {
        put_real(r, b, c, v);
    } else if (c->how == 'c') {
        put_char(r, b, c, v);
    } else {
        qn_jinja_fail(r, QN_E_FORMAT, "unsupported format character '%c'", c->how);
    }
}

/* The value that "%(key)s" names. */
static qn_jv keyed(qn_jrun *r, percent *p)
{
    int depth = 1;
    const size_t begin = ++p->at;
    if (!p->mapped) return qn_jinja_fail(r, QN_E_FORMAT, "format requires a mapping");
    for (; p->at < p->fmt.n && depth; p->at++)
        depth += p->fmt.u.s[p->at] == '(' ? 1 : p->fmt.u.s[p->at] == ')' ? -1 : 0;
    if (depth) return qn_jinja_fail(r, QN_E_FORMAT, "incomplete format key");
    if (p->args.type == QN_JV_UNDEF) return qn_jinja_undefined(r, p->args);
    const qn_jv key = qn_jv_str(r, p->fmt.u.s + begin, p->at - begin - 1);
    const qn_jv *v = p->args.type == QN_JV_DICT ? qn_jv_find(r, p->args, key) : NULL;
    p->next = 1;
    return v ? *v
             : qn_jinja_fail(r, QN_E_FORMAT, "the format names an unknown key %s", qn_jv_c(r, key));
}

qn_jv qn_jinja_percent(qn_jrun *r, qn_jv f, qn_jv args)
{
    percent p = {.fmt = f, .args = args, .tuple = args.type == QN_JV_TUPLE, .markup = f.flag};
    qn_buf b;
    p.mapped = !p.tuple && (args.type == QN_JV_DICT || args.type == QN_JV_LIST ||
                            args.type == QN_JV_UNDEF || args.type == QN_JV_RANGE);
    qn_buf_init(&b, r->max_output);
    while (p.at < f.n && r->rc == QN_OK) {
        const char *next = memchr(f.u.s + p.at, '%', f.n - p.at);
        const size_t to = next ? (size_t)(next - f.u.s) : f.n;
        qn_jinja_bytes(r, &b, f.u.s + p.at, to - p.at);
        if (!next) break;
        p.at = to + 1;
        qn_jv v = qn_jv_given();
        if (p.at < f.n && f.u.s[p.at] == '(') v = keyed(r, &p);
        const conv c = r->rc == QN_OK ? read_conv(r, &p) : (conv){.how = '%'};
        if (c.how == '%') {
            qn_jinja_put(r, &b, "%");
            continue;
        }
        if (!qn_jv_is_given(v)) v = next_value(r, &p);
        convert(r, &b, &c, v, p.markup);
    }
    const size_t n = p.tuple ? args.u.list->n : 1;
    if (r->rc == QN_OK && !p.mapped && p.next < n)
        qn_jinja_fail(r, QN_E_FORMAT, "not all arguments converted during string formatting");
    return qn_jv_marked(qn_jv_take(r, &b), f.flag);
}

typedef struct braces { /* fmt.format(...), on its way */
    const qn_jargs *args;
    qn_jv map;         /* of format_map, or not given */
    int64_t automatic; /* -1: numbered by hand */
    bool markup;
} braces;

static qn_jv first_of(qn_jrun *r, braces *f, qn_jv name)
{
    const bool number = name.n && strspn(qn_jv_c(r, name), "0123456789") >= name.n;
    if (!name.n || number) {
        if (!name.n ? f->automatic < 0 : f->automatic > 0)
            return qn_jinja_fail(r, QN_E_FORMAT, "cannot mix automatic and manual field numbering");
        const int64_t at = !name.n ? f->automatic++ : strtoll(qn_jv_c(r, name), NULL, 10);
        if (number) f->automatic = -1;
        if (qn_jv_is_given(f->map) || at >= (int64_t)f->args->n)
            return qn_jinja_fail(r, QN_E_FORMAT, "replacement index %lld out of range",
                                 (long long)at);
        return f->args->v[at];
    }
    if (qn_jv_is_given(f->map)) {
        const qn_jv *v = f->map.type == QN_JV_DICT ? qn_jv_find(r, f->map, name) : NULL;
        if (v) return *v;
    } else {
        for (size_t i = 0; i < f->args->n_named; i++)
            if (strlen(f->args->name[i]) == name.n && !memcmp(f->args->name[i], name.u.s, name.n))
                return f->args->named[i];
    }
    return qn_jinja_fail(r, QN_E_FORMAT, "format has no value for '%s'", qn_jv_c(r, name));
}

/* "0.name[key]" */
static qn_jv field(qn_jrun *r, braces *f, qn_jv path)
{
    size_t i = 0;
    while (i < path.n && path.u.s[i] != '.' && path.u.s[i] != '[') i++;
    qn_jv v = first_of(r, f, qn_jv_str(r, path.u.s, i));
    while (i < path.n && r->rc == QN_OK) {
        const bool attr = path.u.s[i] == '.';
        size_t to = ++i;
        if (!attr && path.u.s[i - 1] != '[')
            return qn_jinja_fail(r, QN_E_FORMAT,
                                 "only '.' or '[' may follow ']' in format field specifier");
        while (to < path.n &&
               (attr ? path.u.s[to] != '.' && path.u.s[to] != '[' : path.u.s[to] != ']'))
            to++;
        if (to == i || (!attr && to >= path.n))
            return qn_jinja_fail(r, QN_E_FORMAT, "empty attribute in format string");
        const qn_jv name = qn_jv_str(r, path.u.s + i, to - i);
        if (r->rc != QN_OK) break;
        const bool number = strspn(name.u.s, "0123456789") == name.n && name.n < 18;
        v = attr     ? qn_jinja_attr(r, v, name.u.s)
            : number ? qn_jinja_item(r, v, qn_jv_int(strtoll(name.u.s, NULL, 10)))
                     : qn_jinja_item(r, v, name);
        i = attr ? to : to + 1;
    }
    return v;
}

static qn_jv fill_in(qn_jrun *r, braces *f, qn_jv s, int depth);

/* What stands between braces: path, conversion, specification. */
static void replace_field(qn_jrun *r, qn_buf *b, braces *f, qn_jv inside, int depth)
{
    size_t i = 0;
    char how = 0;
    bool bracket = false;
    for (; i < inside.n; i++) {
        const char c = inside.u.s[i];
        if (c == '[') bracket = true;
        if (c == ']') bracket = false;
        if (c == '{') qn_jinja_fail(r, QN_E_FORMAT, "unexpected '{' in field name");
        if (!bracket && (c == '!' || c == ':')) break;
    }
    qn_jv v = r->rc == QN_OK ? field(r, f, qn_jv_borrow(inside.u.s, i)) : qn_jv_none();
    if (i < inside.n && inside.u.s[i] == '!') {
        how = i + 1 < inside.n ? inside.u.s[i + 1] : 0;
        i += 2;
        if (r->rc == QN_OK &&
            (!how || !strchr("sra", how) || (i < inside.n && inside.u.s[i] != ':')))
            qn_jinja_fail(r, QN_E_FORMAT, "bad conversion in format string");
    }
    if (r->rc != QN_OK) return;
    if (how) v = how == 's' ? qn_jv_text(r, v) : how == 'r' ? qn_jv_repr(r, v) : ascii_repr(r, v);
    qn_jv spec = qn_jv_z("");
    if (i < inside.n)
        spec = fill_in(r, f, qn_jv_borrow(inside.u.s + i + 1, inside.n - i - 1), depth - 1);
    if (r->rc != QN_OK) return;
    if (!f->markup) {
        qn_jinja_spec(r, b, v, spec);
        return;
    }
    if (v.type == QN_JV_STR && v.flag && spec.n)
        qn_jinja_fail(r, QN_E_FORMAT, "unsupported format specification for Markup");
    qn_buf one;
    qn_buf_init(&one, r->max_output);
    qn_jinja_spec(r, &one, v, spec);
    const bool safe = v.type == QN_JV_STR && v.flag;
    const qn_jv t = qn_jv_escape(r, qn_jv_marked(qn_jv_take(r, &one), safe));
    qn_jinja_bytes(r, b, t.u.s, r->rc == QN_OK ? t.n : 0);
}

static qn_jv fill_in(qn_jrun *r, braces *f, qn_jv s, int depth)
{
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    if (depth < 0) qn_jinja_fail(r, QN_E_FORMAT, "max string recursion exceeded");
    for (size_t i = 0; i < s.n && r->rc == QN_OK; i++) {
        const char c = s.u.s[i];
        if (c != '{' && c != '}') {
            qn_jinja_bytes(r, &b, &c, 1);
            continue;
        }
        if (i + 1 < s.n && s.u.s[i + 1] == c) {
            qn_jinja_bytes(r, &b, &c, 1);
            i++;
            continue;
        }
        int open = 1;
        size_t to = i + 1;
        bool bracket = false;
        for (; c == '{' && to < s.n && open; to++) {
            if (s.u.s[to] == '[' && open == 1) bracket = true;
            if (s.u.s[to] == ']') bracket = false;
            if (bracket) continue;
            open += s.u.s[to] == '{' ? 1 : s.u.s[to] == '}' ? -1 : 0;
        }
        if (c == '}' || open) {
            qn_jinja_fail(r, QN_E_FORMAT, "single '%c' encountered in format string", c);
            break;
        }
        replace_field(r, &b, f, qn_jv_str(r, s.u.s + i + 1, to - i - 2), depth);
        i = to - 1;
    }
    return qn_jv_take(r, &b);
}

qn_jv qn_jinja_braces(qn_jrun *r, qn_jv s, const qn_jargs *a, bool map)
{
    braces f = {.args = a, .map = qn_jv_given(), .markup = s.flag};
    if (map && (a->n != 1 || a->n_named))
        return qn_jinja_fail(r, QN_E_FORMAT, "format_map() takes exactly one argument");
    if (map) f.map = a->v[0];
    return qn_jv_marked(fill_in(r, &f, s, 1), s.flag);
}
