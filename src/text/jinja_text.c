/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_text.c - values as text: Python's str and repr, and the escapes of HTML. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

void qn_jinja_bytes(qn_jrun *r, qn_buf *b, const char *s, size_t n)
{
    qn_err err;
    if (!qn_jinja_step(r, 1 + n / 256)) return; /* 1: text also comes character by character */
    if (n > r->max_output || b->len > r->max_output - n) {
        qn_jinja_fail(r, QN_E_LIMIT, "the text becomes longer than %zu bytes", r->max_output);
        return;
    }
    const qn_code rc = qn_buf_append(b, s, n, &err);
    if (rc != QN_OK) qn_jinja_fail(r, rc, "the text has no room");
}

void qn_jinja_put(qn_jrun *r, qn_buf *b, const char *z) { qn_jinja_bytes(r, b, z, strlen(z)); }

void qn_jinja_fill(qn_jrun *r, qn_buf *b, qn_jv s, int64_t times)
{
    char block[256];
    if (times <= 0 || !s.n) return;
    if ((uint64_t)times > r->max_output / s.n) {
        qn_jinja_fail(r, QN_E_LIMIT, "the text becomes longer than %zu bytes", r->max_output);
        return;
    }
    size_t in = 0, n = 0;
    while (in + s.n <= sizeof block && n < (size_t)times) {
        memcpy(block + in, s.u.s, s.n);
        in += s.n;
        n++;
    }
    for (int64_t left = times; left > 0 && r->rc == QN_OK;) {
        const int64_t now = n && left >= (int64_t)n ? (int64_t)n : 1;
        if (!qn_jinja_step(r, 1)) return;
        qn_jinja_bytes(r, b, now == (int64_t)n ? block : s.u.s, now == (int64_t)n ? in : s.n);
        left -= now;
    }
}

void qn_jv_write_real(qn_jrun *r, qn_buf *b, double d)
{
    char digits[40], text[64];
    int precision = 1;
    if (!isfinite(d)) {
        qn_jinja_put(r, b, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    for (; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, d);
        if (strtod(digits, NULL) == d) break;
    }
    snprintf(digits, sizeof digits, "%.*e", precision - 1, d);
    const int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) {
        qn_jinja_put(r, b, digits); /* two digits of exponent at least, as Python */
        return;
    }
    const int places = precision - 1 - exponent;
    snprintf(text, sizeof text, "%.*f", places > 1 ? places : 1, d);
    qn_jinja_put(r, b, text);
}

static void repr_str(qn_jrun *r, qn_buf *b, qn_jv v)
{
    const bool twice = v.n && memchr(v.u.s, '\'', v.n) && !memchr(v.u.s, '"', v.n);
    const char quote = twice ? '"' : '\'';
    char text[16];
    qn_jinja_bytes(r, b, &quote, 1);
    for (size_t i = 0, len = 0; i < v.n && r->rc == QN_OK; i += len) {
        uint32_t cp = 0;
        len = qn_utf8_step(v.u.s + i, v.n - i, &cp);
        const char c = v.u.s[i];
        if (c == '\n' || c == '\r' || c == '\t') {
            qn_jinja_put(r, b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (!(qn_jinja_char(cp) & QN_JC_PRINTABLE) && cp != QN_UTF8_BAD) {
            snprintf(text, sizeof text,
                     cp < 256       ? "\\x%02x"
                     : cp < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                     cp);
            qn_jinja_put(r, b, text);
        } else {
            if (c == '\\' || c == quote) qn_jinja_put(r, b, "\\");
            qn_jinja_bytes(r, b, v.u.s + i, len);
        }
    }
    qn_jinja_bytes(r, b, &quote, 1);
}

static void write_dict(qn_jrun *r, qn_buf *b, const qn_jdict *d)
{
    qn_jinja_put(r, b, "{");
    for (size_t i = 0; i < d->n && qn_jinja_step(r, 1); i++) {
        if (i) qn_jinja_put(r, b, ", ");
        qn_jv_write(r, b, d->kv[2 * i], true);
        qn_jinja_put(r, b, ": ");
        qn_jv_write(r, b, d->kv[2 * i + 1], true);
    }
    qn_jinja_put(r, b, "}");
}

static void write_items(qn_jrun *r, qn_buf *b, qn_jv v)
{
    qn_jit it;
    qn_jv x;
    if (!qn_jinja_enter(r)) return;
    if (v.type == QN_JV_DICT || v.type == QN_JV_SPACE) {
        if (v.type == QN_JV_SPACE) qn_jinja_put(r, b, "<Namespace ");
        write_dict(r, b, v.u.dict);
        if (v.type == QN_JV_SPACE) qn_jinja_put(r, b, ">");
    } else {
        const bool view = v.type == QN_JV_VIEW, tuple = v.type == QN_JV_TUPLE;
        bool first = true;
        if (view)
            qn_jinja_put(r, b,
                         v.flag == 'k'   ? "dict_keys("
                         : v.flag == 'v' ? "dict_values("
                                         : "dict_items(");
        qn_jinja_put(r, b, tuple ? "(" : "[");
        qn_jit_begin(r, &it, v);
        for (; qn_jit_next(r, &it, &x); first = false) {
            if (!first) qn_jinja_put(r, b, ", ");
            qn_jv_write(r, b, x, true);
        }
        qn_jinja_put(r, b, !tuple ? "]" : v.u.list->n == 1 ? ",)" : ")");
        if (view) qn_jinja_put(r, b, ")");
    }
    qn_jinja_leave(r);
}

static void write_other(qn_jrun *r, qn_buf *b, qn_jv v)
{
    char text[96];
    const qn_jrange *g = v.u.range;
    if (v.type == QN_JV_RANGE) {
        snprintf(text, sizeof text, g->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
                 (long long)g->start, (long long)g->stop, (long long)g->step);
        qn_jinja_put(r, b, text);
    } else if (v.type == QN_JV_MACRO) {
        qn_jinja_put(r, b, v.u.macro->node->s ? "<Macro " : "<Macro anonymous");
        if (v.u.macro->node->s) qn_jv_write(r, b, qn_jv_z(v.u.macro->node->s), true);
        qn_jinja_put(r, b, ">");
    } else if (v.type == QN_JV_LOOP) {
        const long long n = (long long)qn_jv_len(r, v);
        snprintf(text, sizeof text, "<LoopContext %lld/%lld>", (long long)v.u.loop->at + 1, n);
        qn_jinja_put(r, b, text);
    } else if (v.type == QN_JV_SELF) {
        qn_jinja_put(r, b, "<TemplateReference None>");
    } else {
        /* Python would print an address: no two renderings would be alike. */
        qn_jinja_fail(r, QN_E_FORMAT, "a %s is no text", qn_jv_type(v));
    }
}

void qn_jv_write(qn_jrun *r, qn_buf *b, qn_jv v, bool repr)
{
    char text[48];
    if (r->rc != QN_OK) return;
    switch (v.type) {
    case QN_JV_UNDEF:
        qn_jinja_put(r, b, repr ? "Undefined" : "");
        break;
    case QN_JV_NONE:
        qn_jinja_put(r, b, "None");
        break;
    case QN_JV_BOOL:
        qn_jinja_put(r, b, v.u.i ? "True" : "False");
        break;
    case QN_JV_INT:
        snprintf(text, sizeof text, "%lld", (long long)v.u.i);
        qn_jinja_put(r, b, text);
        break;
    case QN_JV_REAL:
        qn_jv_write_real(r, b, v.u.d);
        break;
    case QN_JV_STR:
        if (repr && v.flag) qn_jinja_put(r, b, "Markup(");
        if (repr)
            repr_str(r, b, v);
        else
            qn_jinja_bytes(r, b, v.u.s, v.n);
        if (repr && v.flag) qn_jinja_put(r, b, ")");
        break;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
    case QN_JV_DICT:
    case QN_JV_SPACE:
    case QN_JV_VIEW:
        write_items(r, b, v);
        break;
    default:
        write_other(r, b, v);
    }
}

void qn_jinja_write_out(qn_jrun *r, qn_jv v)
{
    if (r->escapes) v = qn_jv_escape(r, v);
    qn_jv_write(r, r->out, v, false);
}

static qn_jv written(qn_jrun *r, qn_jv v, bool repr)
{
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    qn_jv_write(r, &b, v, repr);
    return qn_jv_take(r, &b);
}

qn_jv qn_jv_text(qn_jrun *r, qn_jv v)
{
    return v.type == QN_JV_STR ? qn_jv_marked(v, false) : written(r, v, false);
}
qn_jv qn_jv_soft(qn_jrun *r, qn_jv v) { return v.type == QN_JV_STR ? v : written(r, v, false); }
qn_jv qn_jv_repr(qn_jrun *r, qn_jv v) { return written(r, v, true); }

qn_jv qn_jv_escape(qn_jrun *r, qn_jv v)
{
    qn_buf b;
    if (r->rc != QN_OK || (v.type == QN_JV_STR && v.flag)) return v;
    const qn_jv s = qn_jv_text(r, v);
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0, from = 0; i <= s.n && r->rc == QN_OK; i++) {
        const char c = i < s.n ? s.u.s[i] : 0;
        const char *as = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : NULL;
        if (!as && i < s.n) continue;
        qn_jinja_bytes(r, &b, s.u.s + from, i - from);
        if (as) qn_jinja_put(r, &b, as);
        from = i + 1;
    }
    return qn_jv_marked(qn_jv_take(r, &b), true);
}

qn_jv qn_jinja_join(qn_jrun *r, qn_jv sep, qn_jv over, char how)
{
    qn_jit it;
    qn_jv x;
    qn_buf b;
    bool first = true;
    const bool markup = how == 'm' && sep.flag;
    qn_buf_init(&b, r->max_output);
    qn_jit_begin(r, &it, over);
    for (; qn_jit_next(r, &it, &x); first = false) {
        if (!first) qn_jinja_bytes(r, &b, sep.u.s, sep.n);
        if (how == 'm' && x.type != QN_JV_STR && !markup) {
            qn_jinja_fail(r, QN_E_FORMAT, "join takes strings, found %s", qn_jv_type(x));
            break;
        }
        if (markup) x = qn_jv_escape(r, x);
        qn_jv_write(r, &b, x, false);
    }
    return qn_jv_marked(qn_jv_take(r, &b), markup);
}
