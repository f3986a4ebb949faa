/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_text.c - values as text: Python's str and repr, JSON, and the two ways of formatting. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

void qn_jinja_bytes(qn_jrun *r, qn_buf *b, const char *s, size_t n)
{
    qn_err err;
    if (r->rc != QN_OK) return;
    if (n > r->max_output || b->len > r->max_output - n) {
        qn_jinja_fail(r, QN_E_LIMIT, "the text becomes longer than %zu bytes", r->max_output);
        return;
    }
    const qn_code rc = qn_buf_append(b, s, n, &err);
    if (rc != QN_OK) qn_jinja_fail(r, rc, "the text has no room");
}

static void put(qn_jrun *r, qn_buf *b, const char *z) { qn_jinja_bytes(r, b, z, strlen(z)); }

void qn_jv_write_real(qn_jrun *r, qn_buf *b, double d)
{
    char digits[40], text[64];
    int precision = 1;
    if (!isfinite(d)) {
        put(r, b, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    for (; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, d);
        if (strtod(digits, NULL) == d) break;
    }
    snprintf(digits, sizeof digits, "%.*e", precision - 1, d);
    const int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) {
        put(r, b, digits); /* two digits of exponent at least, as Python */
        return;
    }
    const int places = precision - 1 - exponent;
    snprintf(text, sizeof text, "%.*f", places > 1 ? places : 1, d);
    put(r, b, text);
}

static void repr_str(qn_jrun *r, qn_buf *b, qn_jv v)
{
    const bool twice = memchr(v.u.s, '\'', v.n) && !memchr(v.u.s, '"', v.n);
    const char quote = twice ? '"' : '\'';
    char text[8];
    qn_jinja_bytes(r, b, &quote, 1);
    for (size_t i = 0; i < v.n; i++) {
        const char c = v.u.s[i];
        if (c == '\n' || c == '\r' || c == '\t')
            put(r, b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if ((unsigned char)c < ' ' || c == 127) {
            snprintf(text, sizeof text, "\\x%02x", (unsigned)c);
            put(r, b, text);
        } else {
            if (c == '\\' || c == quote) put(r, b, "\\");
            qn_jinja_bytes(r, b, &c, 1);
        }
    }
    qn_jinja_bytes(r, b, &quote, 1);
}

static void write_items(qn_jrun *r, qn_buf *b, qn_jv v)
{
    if (r->frames >= QN_JINJA_MAX_FRAMES) {
        qn_jinja_fail(r, QN_E_LIMIT, "nested too deeply");
        return;
    }
    r->frames++;
    if (v.type == QN_JV_DICT) {
        put(r, b, "{");
        for (size_t i = 0; i < v.u.dict->n && qn_jinja_step(r, 1); i++) {
            if (i) put(r, b, ", ");
            qn_jv_write(r, b, v.u.dict->kv[2 * i], true);
            put(r, b, ": ");
            qn_jv_write(r, b, v.u.dict->kv[2 * i + 1], true);
        }
        put(r, b, "}");
    } else {
        put(r, b, v.type == QN_JV_LIST ? "[" : "(");
        for (size_t i = 0; i < v.u.list->n && qn_jinja_step(r, 1); i++) {
            if (i) put(r, b, ", ");
            qn_jv_write(r, b, v.u.list->v[i], true);
        }
        put(r, b, v.type == QN_JV_LIST ? "]" : v.u.list->n == 1 ? ",)" : ")");
    }
    r->frames--;
}

void qn_jv_write(qn_jrun *r, qn_buf *b, qn_jv v, bool repr)
{
    char text[48];
    switch (v.type) {
    case QN_JV_UNDEF:
        put(r, b, repr ? "Undefined" : "");
        break;
    case QN_JV_NONE:
        put(r, b, "None");
        break;
    case QN_JV_BOOL:
        put(r, b, v.u.i ? "True" : "False");
        break;
    case QN_JV_INT:
        snprintf(text, sizeof text, "%lld", (long long)v.u.i);
        put(r, b, text);
        break;
    case QN_JV_REAL:
        qn_jv_write_real(r, b, v.u.d);
        break;
    case QN_JV_STR:
        if (repr)
            repr_str(r, b, v);
        else
            qn_jinja_bytes(r, b, v.u.s, v.n);
        break;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
    case QN_JV_DICT:
        write_items(r, b, v);
        break;
    default:
        qn_jinja_fail(r, QN_E_FORMAT, "a %s is no text", qn_jv_type(v));
    }
}

qn_jv qn_jv_text(qn_jrun *r, qn_jv v)
{
    qn_buf b;
    if (v.type == QN_JV_STR) return v;
    qn_buf_init(&b, r->max_output);
    qn_jv_write(r, &b, v, false);
    return qn_jv_take(r, &b);
}

typedef struct json_style {
    const char *item, *key;
    size_t n_item, n_key;
    int64_t indent; /* -1: on one line */
    bool ascii, sorted;
} json_style;

static void json_str(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s)
{
    char text[32];
    put(r, b, "\"");
    for (size_t i = 0, n = 0; i < v.n && r->rc == QN_OK; i += n) {
        static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
        uint32_t cp = 0;
        n = qn_utf8_step(v.u.s + i, v.n - i, &cp);
        const char *at = cp && cp < 128 ? strchr(from, (int)cp) : NULL;
        if (at)
            snprintf(text, sizeof text, "\\%c", to[at - from]);
        else if (cp < ' ' || (s->ascii && cp > 126 && cp < 0x10000))
            snprintf(text, sizeof text, "\\u%04x", (unsigned)cp);
        else if (s->ascii && cp >= 0x10000 && cp != QN_UTF8_BAD)
            snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD7C0 + (cp >> 10)),
                     (unsigned)(0xDC00 + (cp & 0x3FF)));
        else {
            qn_jinja_bytes(r, b, v.u.s + i, n);
            continue;
        }
        put(r, b, text);
    }
    put(r, b, "\"");
}

static void line(qn_jrun *r, qn_buf *b, const json_style *s, int64_t level)
{
    if (s->indent < 0) return;
    put(r, b, "\n");
    for (int64_t i = 0; i < level * s->indent && r->rc == QN_OK; i++) put(r, b, " ");
}

static void json(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s, int64_t level);

static void json_dict(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s, int64_t level)
{
    qn_jargs none = {0};
    const qn_jv pairs = s->sorted ? qn_jinja_filter(r, "dictsort", v, &none) : v;
    const size_t n = v.u.dict->n;
    put(r, b, "{");
    for (size_t i = 0; i < n && r->rc == QN_OK; i++) {
        const qn_jv *kv = s->sorted ? pairs.u.list->v[i].u.list->v : v.u.dict->kv + 2 * i;
        if (i) qn_jinja_bytes(r, b, s->item, s->n_item);
        line(r, b, s, level + 1);
        if (kv[0].type == QN_JV_STR) {
            json_str(r, b, kv[0], s);
        } else {
            put(r, b, "\"");
            json(r, b, kv[0], s, level);
            put(r, b, "\"");
        }
        qn_jinja_bytes(r, b, s->key, s->n_key);
        json(r, b, kv[1], s, level + 1);
    }
    if (n) line(r, b, s, level);
    put(r, b, "}");
}

static void json(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s, int64_t level)
{
    if (r->frames >= QN_JINJA_MAX_FRAMES) qn_jinja_fail(r, QN_E_LIMIT, "nested too deeply");
    if (!qn_jinja_step(r, 1)) return;
    r->frames++;
    switch (v.type) {
    case QN_JV_NONE:
        put(r, b, "null");
        break;
    case QN_JV_BOOL:
        put(r, b, v.u.i ? "true" : "false");
        break;
    case QN_JV_INT:
        qn_jv_write(r, b, v, false);
        break;
    case QN_JV_REAL:
        if (isfinite(v.u.d))
            qn_jv_write_real(r, b, v.u.d);
        else
            put(r, b, isnan(v.u.d) ? "NaN" : v.u.d < 0 ? "-Infinity" : "Infinity");
        break;
    case QN_JV_STR:
        json_str(r, b, v, s);
        break;
    case QN_JV_DICT:
        json_dict(r, b, v, s, level);
        break;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
        put(r, b, "[");
        for (size_t i = 0; i < v.u.list->n && r->rc == QN_OK; i++) {
            if (i) qn_jinja_bytes(r, b, s->item, s->n_item);
            line(r, b, s, level + 1);
            json(r, b, v.u.list->v[i], s, level + 1);
        }
        if (v.u.list->n) line(r, b, s, level);
        put(r, b, "]");
        break;
    default:
        qn_jinja_fail(r, QN_E_FORMAT, "a %s is no JSON", qn_jv_type(v));
    }
    r->frames--;
}

qn_jv qn_jinja_tojson(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv indent = qn_jinja_arg(a, 1, "indent", qn_jv_none());
    const qn_jv seps = qn_jinja_arg(a, 2, "separators", qn_jv_none());
    json_style s = {.item = ", ", .n_item = 2, .key = ": ", .n_key = 2, .indent = -1};
    if (indent.type == QN_JV_INT) {
        s.indent = indent.u.i < 0 ? 0 : indent.u.i > 64 ? 64 : indent.u.i;
        s.n_item = 1;
    }
    s.ascii = qn_jv_true(qn_jinja_arg(a, 0, "ensure_ascii", qn_jv_bool(false)));
    s.sorted = qn_jv_true(qn_jinja_arg(a, 3, "sort_keys", qn_jv_bool(false)));
    if (qn_jv_is_seq(seps)) {
        const qn_jlist *l = seps.u.list;
        if (l->n != 2 || l->v[0].type != QN_JV_STR || l->v[1].type != QN_JV_STR)
            return qn_jinja_fail(r, QN_E_FORMAT, "separators are two strings");
        s.item = l->v[0].u.s;
        s.n_item = l->v[0].n;
        s.key = l->v[1].u.s;
        s.n_key = l->v[1].n;
    }
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    json(r, &b, v, &s, 0);
    return qn_jv_take(r, &b);
}

/* One conversion; spec is flags, width and precision of at most 16 bytes. */
static void convert(qn_jrun *r, qn_buf *b, const char *spec, size_t n, char how, qn_jv v)
{
    char fmt[32] = "%", text[512];
    if (n > 16 || memchr(spec, '*', n)) {
        qn_jinja_fail(r, QN_E_FORMAT, "a conversion is too long");
        return;
    }
    memcpy(fmt + 1, spec, n);
    const char *digits = fmt + 1 + strspn(fmt + 1, "-+ #0"), *dot = strchr(digits, '.');
    if (strtol(digits, NULL, 10) > 200 || (dot && strtol(dot + 1, NULL, 10) > 100)) {
        qn_jinja_fail(r, QN_E_LIMIT, "a conversion is wider than 200");
        return;
    }
    if (how == 's' || how == 'r') {
        qn_buf s;
        qn_buf_init(&s, r->max_output);
        qn_jv_write(r, &s, v, how == 'r');
        const qn_jv t = qn_jv_take(r, &s);
        const long width = strtol(digits, NULL, 10), more = width - (long)qn_jv_chars(t);
        const bool left = memchr(spec, '-', n) != NULL;
        for (long i = 0; !left && i < more; i++) put(r, b, " ");
        qn_jinja_bytes(r, b, t.u.s, t.n);
        for (long i = 0; left && i < more; i++) put(r, b, " ");
        return;
    }
    if (!qn_jv_is_num(v) || !strchr("dixXoeEfFgG", how)) {
        qn_jinja_fail(r, QN_E_FORMAT, "%%%c does not fit a %s", how, qn_jv_type(v));
        return;
    }
    if (strchr("dixXo", how)) {
        const long long i =
            v.type == QN_JV_REAL ? (fabs(v.u.d) < 9e18 ? (long long)v.u.d : 0) : v.u.i;
        snprintf(fmt + 1 + n, sizeof fmt - 1 - n, "ll%c", how);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, fmt, i);
    } else {
        snprintf(fmt + 1 + n, sizeof fmt - 1 - n, "%c", how);
        snprintf(text, sizeof text, fmt, qn_jv_num(v));
#pragma GCC diagnostic pop
    }
    put(r, b, text);
}

qn_jv qn_jinja_format(qn_jrun *r, qn_jv f, qn_jv args)
{
    qn_buf b;
    size_t next = 0;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; i < f.n && r->rc == QN_OK; i++) {
        if (f.u.s[i] != '%') {
            qn_jinja_bytes(r, &b, f.u.s + i, 1);
            continue;
        }
        qn_jv v = args;
        const char *s = f.u.s + ++i;
        if (i < f.n && *s == '%') {
            put(r, &b, "%");
            continue;
        }
        if (i < f.n && *s == '(') {
            const char *end = memchr(s, ')', f.n - i);
            if (!end || args.type != QN_JV_DICT) {
                qn_jinja_fail(r, QN_E_FORMAT, "this format takes a dict");
                break;
            }
            v = qn_jinja_item(r, args, qn_jv_str(r, s + 1, (size_t)(end - s) - 1));
            i += (size_t)(end - s) + 1;
        } else if (args.type == QN_JV_TUPLE ? next >= args.u.list->n : next > 0) {
            qn_jinja_fail(r, QN_E_FORMAT, "too few values for the format");
            break;
        } else if (args.type == QN_JV_TUPLE) {
            v = args.u.list->v[next];
        }
        next++;
        const size_t begin = i;
        while (i < f.n && strchr("-+ #0123456789.", f.u.s[i]) && f.u.s[i]) i++;
        if (i >= f.n)
            qn_jinja_fail(r, QN_E_FORMAT, "the format ends within a conversion");
        else
            convert(r, &b, f.u.s + begin, i - begin, f.u.s[i], v);
    }
    return qn_jv_take(r, &b);
}
