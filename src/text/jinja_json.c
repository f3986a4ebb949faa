/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_json.c - tojson as chat templates know it (Python's json.dumps), and pprint. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct json_style {
    qn_jv item, key, indent; /* indent: text of one level */
    bool lines, ascii, sorted;
} json_style;

static void json_str(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char text[32];
    qn_jinja_put(r, b, "\"");
    size_t done = 0;
    for (size_t i = 0, n = 0; i < v.n && r->rc == QN_OK; i += n) {
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
        else
            continue;
        qn_jinja_bytes(r, b, v.u.s + done, i - done);
        qn_jinja_put(r, b, text);
        done = i + n;
    }
    qn_jinja_bytes(r, b, v.u.s + done, v.n - done);
    qn_jinja_put(r, b, "\"");
}

static void line(qn_jrun *r, qn_buf *b, const json_style *s, int64_t level)
{
    if (!s->lines) return;
    qn_jinja_put(r, b, "\n");
    qn_jinja_fill(r, b, s->indent, level);
}

static void json(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s, int64_t level);

static void json_key(qn_jrun *r, qn_buf *b, qn_jv key, const json_style *s)
{
    if (key.type == QN_JV_STR) {
        json_str(r, b, key, s);
    } else if (key.type == QN_JV_NONE || qn_jv_is_num(key)) {
        qn_jinja_put(r, b, "\"");
        json(r, b, key, s, 0);
        qn_jinja_put(r, b, "\"");
    } else {
        qn_jinja_fail(r, QN_E_FORMAT, "keys of JSON are text or numbers, found %s",
                      qn_jv_type(key));
    }
}

static void json_dict(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s, int64_t level)
{
    const size_t n = v.u.dict->n;
    const qn_jv *kv = s->sorted ? qn_jinja_sorted_pairs(r, v, false) : v.u.dict->kv;
    qn_jinja_put(r, b, "{");
    for (size_t i = 0; i < n && r->rc == QN_OK; i++) {
        if (i) qn_jinja_bytes(r, b, s->item.u.s, s->item.n);
        line(r, b, s, level + 1);
        json_key(r, b, kv[2 * i], s);
        qn_jinja_bytes(r, b, s->key.u.s, s->key.n);
        json(r, b, kv[2 * i + 1], s, level + 1);
    }
    if (n) line(r, b, s, level);
    qn_jinja_put(r, b, "}");
}

static void json(qn_jrun *r, qn_buf *b, qn_jv v, const json_style *s, int64_t level)
{
    if (!qn_jinja_enter(r)) return;
    switch (v.type) {
    case QN_JV_NONE:
        qn_jinja_put(r, b, "null");
        break;
    case QN_JV_BOOL:
        qn_jinja_put(r, b, v.u.i ? "true" : "false");
        break;
    case QN_JV_INT:
        qn_jv_write(r, b, v, false);
        break;
    case QN_JV_REAL:
        if (isfinite(v.u.d))
            qn_jv_write_real(r, b, v.u.d);
        else
            qn_jinja_put(r, b, isnan(v.u.d) ? "NaN" : v.u.d < 0 ? "-Infinity" : "Infinity");
        break;
    case QN_JV_STR:
        json_str(r, b, v, s);
        break;
    case QN_JV_DICT:
        json_dict(r, b, v, s, level);
        break;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
        qn_jinja_put(r, b, "[");
        for (size_t i = 0; i < v.u.list->n && r->rc == QN_OK; i++) {
            if (i) qn_jinja_bytes(r, b, s->item.u.s, s->item.n);
            line(r, b, s, level + 1);
            json(r, b, v.u.list->v[i], s, level + 1);
        }
        if (v.u.list->n) line(r, b, s, level);
        qn_jinja_put(r, b, "]");
        break;
    default:
        qn_jinja_fail(r, QN_E_FORMAT, "a %s is not JSON serializable", qn_jv_type(v));
    }
    qn_jinja_leave(r);
}

/* x: ensure_ascii, indent, separators, sort_keys. */
qn_jv qn_jinja_tojson(qn_jrun *r, qn_jv v, const qn_jv *x)
{
    json_style s = {.item = qn_jv_z(", "), .key = qn_jv_z(": "), .indent = qn_jv_z("")};
    qn_buf b;
    if (qn_jv_is_given(x[1]) && x[1].type != QN_JV_NONE) {
        s.lines = true;
        s.item = qn_jv_z(",");
        s.indent = qn_jv_is_int(x[1]) ? qn_jinja_binary(r, '*', qn_jv_z(" "), x[1]) : x[1];
        if (r->rc == QN_OK && s.indent.type != QN_JV_STR)
            qn_jinja_fail(r, QN_E_FORMAT, "indent is a number or text, found %s", qn_jv_type(x[1]));
    }
    s.ascii = qn_jinja_true_of(x[0], false);
    s.sorted = qn_jinja_true_of(x[3], false);
    if (qn_jv_is_given(x[2]) && x[2].type != QN_JV_NONE) {
        const qn_jlist *l = qn_jv_all(r, x[2]);
        if (l && (l->n != 2 || l->v[0].type != QN_JV_STR || l->v[1].type != QN_JV_STR))
            qn_jinja_fail(r, QN_E_FORMAT, "separators are two strings");
        if (r->rc == QN_OK && l) {
            s.item = l->v[0];
            s.key = l->v[1];
        }
    }
    if (r->rc != QN_OK) return v;
    qn_buf_init(&b, r->max_output);
    json(r, &b, v, &s, 0);
    return qn_jv_take(r, &b);
}

enum { PPRINT_WIDTH = 80 };

/* Long strings of pprint are broken between words. */
static void pretty_str(qn_jrun *r, qn_buf *b, qn_jv v, int64_t indent, int64_t allowance,
                       bool nested)
{
    const bool brackets = !nested && v.n;
    const qn_jlist *lines = qn_jinja_lines(r, v, true).u.list;
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    if (brackets) indent++, allowance++;
    for (size_t i = 0; r->rc == QN_OK && i < lines->n; i++) {
        const qn_jv one = lines->v[i], whole = qn_jv_repr(r, one);
        int64_t room = PPRINT_WIDTH - indent - (i + 1 == lines->n ? allowance : 0);
        if (r->rc != QN_OK) break;
        if ((int64_t)qn_jv_chars(whole) <= room) {
            qn_jv_push(r, out, whole);
            continue;
        }
        room = PPRINT_WIDTH - indent;
        size_t from = 0, at = 0, good = 0;
        while (at < one.n && r->rc == QN_OK) { /* \S*\s* */
            uint32_t cp = 0;
            bool space = false;
            size_t to = at;
            while (to < one.n) {
                const size_t n = qn_utf8_step(one.u.s + to, one.n - to, &cp);
                const bool is = qn_jinja_char(cp) & QN_JC_SPACE;
                if (space && !is) break;
                space |= is;
                to += n;
            }
            const bool last = i + 1 == lines->n && to == one.n;
            const qn_jv more = qn_jv_repr(r, qn_jv_borrow(one.u.s + from, to - from));
            if (r->rc == QN_OK && (int64_t)qn_jv_chars(more) > room - (last ? allowance : 0)) {
                if (good > from)
                    qn_jv_push(r, out, qn_jv_repr(r, qn_jv_borrow(one.u.s + from, good - from)));
                from = good;
            }
            at = good = to;
        }
        if (from < one.n)
            qn_jv_push(r, out, qn_jv_repr(r, qn_jv_borrow(one.u.s + from, one.n - from)));
    }
    if (r->rc != QN_OK) return;
    if (out.u.list->n <= 1) {
        qn_jv_write(r, b, v, true);
        return;
    }
    if (brackets) qn_jinja_put(r, b, "(");
    for (size_t i = 0; i < out.u.list->n && r->rc == QN_OK; i++) {
        if (i) {
            qn_jinja_put(r, b, "\n");
            qn_jinja_fill(r, b, qn_jv_z(" "), indent);
        }
        qn_jv_write(r, b, out.u.list->v[i], false);
    }
    if (brackets) qn_jinja_put(r, b, ")");
}

static void pretty(qn_jrun *r, qn_buf *b, qn_jv v, int64_t indent, int64_t allowance,
                   uint32_t level);

static void pretty_items(qn_jrun *r, qn_buf *b, qn_jv v, int64_t indent, int64_t allowance,
                         uint32_t level)
{
    const bool dict = v.type == QN_JV_DICT;
    const size_t n = dict ? v.u.dict->n : v.u.list->n;
    const char *close = dict ? "}" : v.type == QN_JV_LIST ? "]" : n == 1 ? ",)" : ")";
    qn_jinja_put(r, b, dict ? "{" : v.type == QN_JV_LIST ? "[" : "(");
    for (size_t i = 0; i < n && r->rc == QN_OK; i++) {
        const int64_t end = i + 1 == n ? allowance + (int64_t)strlen(close) : 1;
        if (i) {
            qn_jinja_put(r, b, ",\n");
            qn_jinja_fill(r, b, qn_jv_z(" "), indent + 1);
        }
        if (!dict) {
            pretty(r, b, v.u.list->v[i], indent + 1, end, level);
            continue;
        }
        const qn_jv *kv = v.u.dict->kv + 2 * i, key = qn_jv_repr(r, kv[0]);
        qn_jv_write(r, b, key, false);
        qn_jinja_put(r, b, ": ");
        pretty(r, b, kv[1], indent + 3 + (int64_t)qn_jv_chars(key), end, level);
    }
    qn_jinja_put(r, b, close);
}

static void pretty(qn_jrun *r, qn_buf *b, qn_jv v, int64_t indent, int64_t allowance,
                   uint32_t level)
{
    if (!qn_jinja_enter(r)) return;
    const qn_jv line_of = qn_jv_repr(r, v);
    if (r->rc == QN_OK) {
        const bool fits = (int64_t)qn_jv_chars(line_of) <= PPRINT_WIDTH - indent - allowance;
        const bool some = v.type == QN_JV_DICT ? v.u.dict->n : qn_jv_is_seq(v) ? v.u.list->n : 0;
        if (!fits && some)
            pretty_items(r, b, v, indent, allowance, level + 1);
        else if (!fits && v.type == QN_JV_STR && !v.flag)
            pretty_str(r, b, v, indent, allowance, level > 0);
        else
            qn_jv_write(r, b, line_of, false);
    }
    qn_jinja_leave(r);
}

/* A copy in which the keys of every dict are in order. */
static qn_jv ordered(qn_jrun *r, qn_jv v)
{
    if ((v.type != QN_JV_DICT && !qn_jv_is_seq(v)) || !qn_jinja_enter(r)) return v;
    const bool dict = v.type == QN_JV_DICT;
    const qn_jv out = dict ? qn_jv_dict(r, QN_JV_DICT) : qn_jv_list(r, (qn_jtype)v.type, 0);
    const qn_jv *kv = dict ? qn_jinja_sorted_pairs(r, v, true) : NULL;
    for (size_t i = 0; dict && i < v.u.dict->n && r->rc == QN_OK; i++)
        qn_jv_put(r, out, kv[2 * i], ordered(r, kv[2 * i + 1]));
    for (size_t i = 0; !dict && i < v.u.list->n && r->rc == QN_OK; i++)
        qn_jv_push(r, out, ordered(r, v.u.list->v[i]));
    qn_jinja_leave(r);
    return out;
}

qn_jv qn_jinja_pprint(qn_jrun *r, qn_jv v)
{
    qn_buf b;
    v = ordered(r, v);
    qn_buf_init(&b, r->max_output);
    pretty(r, &b, v, 0, 0, 0);
    return qn_jv_take(r, &b);
}
