/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_spec.c - Python's format(): one value laid out by a specification such as ">10,.2f". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct spec {
    qn_jv fill;
    char align, sign, group, type;
    bool alt, zero, minus_zero;
    int64_t width, precision; /* precision -1: none */
} spec;

static int64_t number(const char *s, size_t n, size_t *i)
{
    int64_t v = 0;
    while (*i < n && s[*i] >= '0' && s[*i] <= '9' && v < 1000000000) v = v * 10 + (s[(*i)++] - '0');
    return v;
}

static bool read_spec(qn_jrun *r, spec *out, qn_jv text)
{
    const char *s = text.u.s;
    const size_t n = text.n;
    size_t i = 0;
    uint32_t cp = 0;
    *out = (spec){.fill = qn_jv_z(" "), .precision = -1};
    const size_t first = n ? qn_utf8_step(s, n, &cp) : 0;
    if (first && first < n && strchr("<>=^", s[first])) {
        out->fill = qn_jv_borrow(s, first);
        out->align = s[first];
        i = first + 1;
    } else if (n && strchr("<>=^", *s)) {
        out->align = *s;
        i = 1;
    }
    if (i < n && strchr("+- ", s[i])) out->sign = s[i++];
    if (i < n && s[i] == 'z') {
        out->minus_zero = true;
        i++;
    }
    if (i < n && s[i] == '#') {
        out->alt = true;
        i++;
    }
    if (i < n && s[i] == '0') {
        out->zero = true;
        if (!out->align) out->fill = qn_jv_z("0");
        i++;
    }
    out->width = number(s, n, &i);
    if (i < n && (s[i] == ',' || s[i] == '_')) out->group = s[i++];
    if (i < n && (s[i] == ',' || s[i] == '_'))
        qn_jinja_fail(r, QN_E_FORMAT, "cannot specify both , and _");
    if (i < n && s[i] == '.') {
        const size_t at = ++i;
        out->precision = number(s, n, &i);
        if (at == i) qn_jinja_fail(r, QN_E_FORMAT, "format specifier missing precision");
    }
    if (i < n) out->type = s[i++];
    if (i < n) qn_jinja_fail(r, QN_E_FORMAT, "invalid format specifier");
    return r->rc == QN_OK;
}

static void padded(qn_jrun *r, qn_buf *b, const spec *s, char align, qn_jv text)
{
    const int64_t more = s->width - (int64_t)qn_jv_chars(text);
    const int64_t left = more <= 0 ? 0 : align == '<' ? 0 : align == '^' ? more / 2 : more;
    qn_jinja_fill(r, b, s->fill, left);
    qn_jinja_bytes(r, b, text.u.s, text.n);
    qn_jinja_fill(r, b, s->fill, more - left);
}

static void spec_str(qn_jrun *r, qn_buf *b, const spec *s, qn_jv v)
{
    if ((s->type && s->type != 's') || s->sign || s->alt || s->group || s->minus_zero ||
        s->align == '=') {
        qn_jinja_fail(r, QN_E_FORMAT, "this format specifier does not fit a string");
        return;
    }
    if (s->precision >= 0) v = qn_jv_part(r, v, 0, s->precision);
    padded(r, b, s, s->align ? s->align : '<', v);
}

/* sign, prefix, digits with groups and zeros, rest (fraction, exponent, %). */
static void layout(qn_jrun *r, qn_buf *b, const spec *s, bool negative, const char *prefix,
                   const char *digits, size_t n_digits, const char *rest)
{
    char head[4];
    const char align = s->align ? s->align : s->zero ? '=' : '>';
    const size_t each = s->type && strchr("boxX", s->type) ? 4 : 3;
    const bool sign = negative || s->sign == '+' || s->sign == ' ';
    snprintf(head, sizeof head, "%.*s%.2s", sign,
             negative         ? "-"
             : s->sign == '+' ? "+"
                              : " ",
             prefix);
    const bool zeros = align == '=' && s->fill.n == 1 && *s->fill.u.s == '0' && s->fill.u.s != NULL;
    const int64_t fixed = (int64_t)(strlen(head) + strlen(rest));
    int64_t n = (int64_t)n_digits;
    qn_buf body;
    qn_buf_init(&body, r->max_output);
    if (zeros && s->width > fixed) { /* zeros are digits: they are grouped too */
        int64_t room = s->width - fixed;
        if (s->group) room = room - room / (int64_t)(each + 1) + (room % (int64_t)(each + 1) == 0);
        if (room > n) n = room;
        if (n > (int64_t)r->max_output) qn_jinja_fail(r, QN_E_LIMIT, "a format is too wide");
    }
    qn_jinja_put(r, &body, head);
    if (zeros || align != '=') {
        for (int64_t i = 0; i < n && qn_jinja_step(r, 1); i++) {
            const int64_t left = n - i, at = i - (n - (int64_t)n_digits);
            if (i && s->group && left % (int64_t)each == 0) qn_jinja_bytes(r, &body, &s->group, 1);
            qn_jinja_bytes(r, &body, at < 0 ? "0" : digits + at, 1);
        }
    } else {
        const spec plain = {.fill = qn_jv_z(" "), .align = '>', .group = s->group, .type = s->type};
        qn_buf inner;
        qn_buf_init(&inner, r->max_output);
        layout(r, &inner, &plain, false, "", digits, n_digits, rest);
        const qn_jv t = qn_jv_take(r, &inner);
        if (r->rc == QN_OK) {
            qn_jinja_fill(r, &body, s->fill, s->width - (int64_t)strlen(head) - (int64_t)t.n);
            qn_jinja_bytes(r, &body, t.u.s, t.n);
        }
        rest = "";
    }
    qn_jinja_put(r, &body, rest);
    const qn_jv text = qn_jv_take(r, &body);
    if (r->rc == QN_OK) padded(r, b, s, align, text);
}

static void spec_int(qn_jrun *r, qn_buf *b, const spec *s, int64_t v)
{
    char digits[72];
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    const unsigned base = s->type == 'b'                     ? 2
                          : s->type == 'o'                   ? 8
                          : s->type && strchr("xX", s->type) ? 16
                                                             : 10;
    const char *set = s->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char prefix[3] = {'0', s->type, 0};
    size_t at = sizeof digits;
    if (s->precision >= 0) {
        qn_jinja_fail(r, QN_E_FORMAT, "precision not allowed in integer format specifier");
        return;
    }
    if (s->type == 'c') {
        char text[4];
        const size_t n = v < 0 || v > 0x10FFFF ? 0 : qn_utf8_encode(text, (uint32_t)v);
        if (s->sign || s->alt || !n)
            qn_jinja_fail(r, QN_E_FORMAT, "%%c arg not in range(0x110000)");
        else
            padded(r, b, s, s->align && s->align != '=' ? s->align : '<', qn_jv_str(r, text, n));
        return;
    }
    do digits[--at] = set[left % base];
    while (left /= base);
    layout(r, b, s, v < 0, s->alt && base != 10 ? prefix : "", digits + at, sizeof digits - at, "");
}

/* A real without type: as many digits as asked, but always one behind the point. */
static void short_real(char *text, size_t n, double d, int precision)
{
    char e[64];
    if (!precision) precision = 1;
    snprintf(e, sizeof e, "%.*e", precision - 1, d);
    const int exponent = (int)strtol(strchr(e, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent + 1 >= precision) {
        char *point = strchr(e, 'e'), *end = point;
        if (memchr(e, '.', (size_t)(point - e))) {
            while (end[-1] == '0') end--;
            if (end[-1] == '.') end--;
        }
        snprintf(text, n, "%.*s%s", (int)(end - e), e, point);
        return;
    }
    snprintf(text, n, "%.*g", precision, d);
    const size_t used = strlen(text);
    if (!strchr(text, '.')) snprintf(text + used, n - used, ".0");
}

static void spec_real(qn_jrun *r, qn_buf *b, const spec *s, double d)
{
    char text[800], fmt[8] = "%#.*f", type = s->type;
    bool negative = signbit(d) && !isnan(d);
    const int64_t precision = s->precision < 0 ? 6 : s->precision;
    if (precision > 300) {
        qn_jinja_fail(r, QN_E_LIMIT, "a precision of more than 300");
        return;
    }
    if (type == '%') d *= 100;
    d = fabs(d);
    if (!isfinite(d)) {
        snprintf(text, sizeof text,
                 type && strchr("EFG", type) ? (isnan(d) ? "NAN" : "INF")
                 : isnan(d)                  ? "nan"
                                             : "inf");
    } else if (!type && s->precision < 0) {
        qn_buf one;
        qn_buf_init(&one, 64);
        qn_jv_write_real(r, &one, d);
        snprintf(text, sizeof text, "%s", qn_buf_text(&one));
        qn_buf_fini(&one);
    } else if (!type && precision < 40) {
        short_real(text, sizeof text, d, (int)precision);
    } else {
        const char how = type == '%' ? 'f' : type == 'n' || !type ? 'g' : type;
        snprintf(fmt, sizeof fmt, s->alt ? "%%#.*%c" : "%%.*%c", how);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text - 2, fmt, (int)precision, d);
#pragma GCC diagnostic pop
    }
    if (s->minus_zero && negative && strspn(text, "0.e+") == strlen(text)) negative = false;
    const size_t used = strlen(text);
    if (type == '%') snprintf(text + used, sizeof text - used, "%%");
    const size_t n = strspn(text, "0123456789"), all = isfinite(d) ? n : strlen(text);
    spec one = *s;
    if (!isfinite(d)) one.group = 0;
    if (type && strchr("bcoxX", type)) one.type = 0;
    layout(r, b, &one, negative, "", text, isfinite(d) ? n : (type == '%' ? all - 1 : all),
           isfinite(d)   ? text + n
           : type == '%' ? "%"
                         : "");
}

void qn_jinja_spec(qn_jrun *r, qn_buf *b, qn_jv v, qn_jv text)
{
    spec s;
    if (r->rc != QN_OK) return;
    if (!text.n) {
        qn_jv_write(r, b, v, false);
        return;
    }
    if (!qn_jv_is_num(v) && v.type != QN_JV_STR) {
        qn_jinja_fail(r, QN_E_FORMAT, "unsupported format string for a %s", qn_jv_type(v));
        return;
    }
    if (!read_spec(r, &s, text)) return;
    if (s.width > (int64_t)r->max_output) {
        qn_jinja_fail(r, QN_E_LIMIT, "a width of more than %zu", r->max_output);
        return;
    }
    if (v.type == QN_JV_STR) {
        spec_str(r, b, &s, v);
        return;
    }
    const bool real = v.type == QN_JV_REAL || (s.type && strchr("eEfFgG%", s.type));
    const char *types = v.type == QN_JV_REAL ? "eEfFgG%n" : "bcdoxXneEfFgG%";
    if (s.type && !strchr(types, s.type))
        qn_jinja_fail(r, QN_E_FORMAT, "unknown format code '%c'", s.type);
    else if (s.group && s.type &&
             (strchr("cn", s.type) || (s.group == ',' && strchr("boxX", s.type))))
        qn_jinja_fail(r, QN_E_FORMAT, "cannot specify '%c' with '%c'", s.group, s.type);
    else if (s.minus_zero && !real)
        qn_jinja_fail(r, QN_E_FORMAT, "negative zero coercion not allowed");
    else if (real)
        spec_real(r, b, &s, qn_jv_num(v));
    else
        spec_int(r, b, &s, v.u.i);
}
