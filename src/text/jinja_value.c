/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_value.c - values of a rendering: making, comparing, walking; as Python does it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

qn_jv qn_jinja_fail(qn_jrun *r, qn_code code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    if (r->rc != QN_OK) return qn_jv_undef(NULL);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->rc = qn_fail(r->err, code, "line %u: %s", r->line, text);
    return qn_jv_undef(NULL);
}

bool qn_jinja_step(qn_jrun *r, uint64_t n)
{
    if (r->rc != QN_OK) return false;
    if (n > r->max_steps - r->steps) {
        qn_jinja_fail(r, QN_E_LIMIT, "the template takes more than %llu steps",
                      (unsigned long long)r->max_steps);
        return false;
    }
    r->steps += n;
    return true;
}

static void *room(qn_jrun *r, size_t n, size_t size)
{
    void *p = r->rc == QN_OK ? qn_arena_push_zero(&r->arena, n, size, 16) : NULL;
    if (p || r->rc != QN_OK) return p;
    size_t bytes = n * size;
    if (bytes > r->arena.limit || r->arena.used > r->arena.limit - bytes - 64)
        qn_jinja_fail(r, QN_E_LIMIT, "the template takes more than %zu bytes", r->arena.limit);
    else
        qn_jinja_fail(r, QN_E_NOMEM, "values of a template");
    return NULL;
}

qn_jv qn_jv_undef(const char *name) { return (qn_jv){.type = QN_JV_UNDEF, .u.s = name}; }
qn_jv qn_jv_none(void) { return (qn_jv){.type = QN_JV_NONE}; }
qn_jv qn_jv_bool(bool b) { return (qn_jv){.type = QN_JV_BOOL, .u.i = b}; }
qn_jv qn_jv_int(int64_t i) { return (qn_jv){.type = QN_JV_INT, .u.i = i}; }
qn_jv qn_jv_real(double d) { return (qn_jv){.type = QN_JV_REAL, .u.d = d}; }
qn_jv qn_jv_z(const char *s) { return qn_jv_borrow(s, strlen(s)); }
qn_jv qn_jv_borrow(const char *s, size_t n)
{
    return (qn_jv){.type = QN_JV_STR, .n = n, .u.s = n ? s : ""};
}

qn_jv qn_jv_str(qn_jrun *r, const char *s, size_t n)
{
    char *p = room(r, n + 1, 1);
    if (!p) return qn_jv_undef(NULL);
    if (n) memcpy(p, s, n);
    return qn_jv_borrow(p, n);
}

qn_jv qn_jv_take(qn_jrun *r, qn_buf *b)
{
    const qn_jv v = qn_jv_str(r, (const char *)b->data, b->len);
    qn_buf_fini(b);
    return v;
}

qn_jv qn_jv_list(qn_jrun *r, qn_jtype type, size_t cap)
{
    qn_jlist *l = room(r, 1, sizeof *l);
    if (!l) return qn_jv_undef(NULL);
    l->v = cap ? room(r, cap, sizeof *l->v) : NULL;
    l->cap = l->v ? cap : 0;
    return (qn_jv){.type = (uint8_t)type, .u.list = l};
}

qn_jv qn_jv_dict(qn_jrun *r, qn_jtype type)
{
    qn_jdict *d = room(r, 1, sizeof *d);
    return d ? (qn_jv){.type = (uint8_t)type, .u.dict = d} : qn_jv_undef(NULL);
}

void qn_jv_push(qn_jrun *r, qn_jv list, qn_jv v)
{
    if (!qn_jinja_step(r, 1)) return;
    qn_jlist *l = list.u.list;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 8;
        qn_jv *more = room(r, cap, sizeof *more);
        if (!more) return;
        if (l->n) memcpy(more, l->v, l->n * sizeof *more);
        l->v = more;
        l->cap = cap;
    }
    l->v[l->n++] = v;
}

static qn_jv *find(qn_jrun *r, qn_jv dict, qn_jv key)
{
    qn_jdict *d = dict.u.dict;
    if (!qn_jinja_step(r, d->n / 16)) return NULL;
    for (size_t i = 0; i < d->n; i++) {
        const qn_jv k = d->kv[2 * i];
        if (k.type == QN_JV_STR && key.type == QN_JV_STR
                ? k.n == key.n && !memcmp(k.u.s, key.u.s, k.n)
                : qn_jv_equal(r, k, key))
            return &d->kv[2 * i + 1];
    }
    return NULL;
}

const qn_jv *qn_jv_find(qn_jrun *r, qn_jv dict, qn_jv key) { return find(r, dict, key); }

void qn_jv_put(qn_jrun *r, qn_jv dict, qn_jv key, qn_jv v)
{
    if (!qn_jinja_step(r, 1)) return;
    if (key.type == QN_JV_LIST || key.type == QN_JV_DICT) {
        qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be a key", qn_jv_type(key));
        return;
    }
    qn_jdict *d = dict.u.dict;
    qn_jv *at = find(r, dict, key);
    if (at) {
        *at = v;
        return;
    }
    if (d->n == d->cap) {
        const size_t cap = d->cap ? 2 * d->cap : 4;
        qn_jv *more = room(r, 2 * cap, sizeof *more);
        if (!more) return;
        if (d->n) memcpy(more, d->kv, 2 * d->n * sizeof *more);
        d->kv = more;
        d->cap = cap;
    }
    d->kv[2 * d->n] = key;
    d->kv[2 * d->n++ + 1] = v;
}

qn_jv qn_jv_from_json(qn_jrun *r, const qn_json *j, uint32_t depth)
{
    size_t n = 0;
    if (!qn_jinja_step(r, 1)) return qn_jv_undef(NULL);
    if (depth > 500) return qn_jinja_fail(r, QN_E_LIMIT, "values are nested deeper than 500");
    switch (qn_json_type_of(j)) {
    case QN_JSON_NULL:
        return qn_jv_none();
    case QN_JSON_BOOL:
        return qn_jv_bool(qn_json_bool(j, false));
    case QN_JSON_INT:
        return qn_jv_int(qn_json_int(j, 0));
    case QN_JSON_REAL:
        return qn_jv_real(qn_json_num(j, 0));
    case QN_JSON_STRING: {
        const char *s = qn_json_str(j, &n);
        return qn_jv_borrow(s, n);
    }
    case QN_JSON_ARRAY: {
        const qn_jv list = qn_jv_list(r, QN_JV_LIST, qn_json_len(j));
        for (size_t i = 0; i < qn_json_len(j) && r->rc == QN_OK; i++)
            qn_jv_push(r, list, qn_jv_from_json(r, qn_json_at(j, i), depth + 1));
        return list;
    }
    case QN_JSON_OBJECT:
        break;
    }
    const qn_jv dict = qn_jv_dict(r, QN_JV_DICT);
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *v = NULL;
    while (r->rc == QN_OK && qn_json_next(j, &it, &key, &v))
        qn_jv_put(r, dict, qn_jv_z(key), qn_jv_from_json(r, v, depth + 1));
    return dict;
}

bool qn_jv_is_str(qn_jv v) { return v.type == QN_JV_STR; }
bool qn_jv_is_num(qn_jv v) { return v.type >= QN_JV_BOOL && v.type <= QN_JV_REAL; }
bool qn_jv_is_seq(qn_jv v) { return v.type == QN_JV_LIST || v.type == QN_JV_TUPLE; }
double qn_jv_num(qn_jv v) { return v.type == QN_JV_REAL ? v.u.d : (double)v.u.i; }

const char *qn_jv_type(qn_jv v)
{
    static const char *const names[] = {
        "undefined", "none",      "bool",  "int",      "float",  "string", "list",   "tuple",
        "dict",      "namespace", "macro", "function", "method", "loop",   "cycler", "joiner"};
    return names[v.type];
}

bool qn_jv_true(qn_jv v)
{
    switch (v.type) {
    case QN_JV_UNDEF:
    case QN_JV_NONE:
        return false;
    case QN_JV_BOOL:
    case QN_JV_INT:
        return v.u.i != 0;
    case QN_JV_REAL:
        return v.u.d != 0;
    case QN_JV_STR:
        return v.n != 0;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
        return v.u.list->n != 0;
    case QN_JV_DICT:
        return v.u.dict->n != 0;
    default:
        return true;
    }
}

static bool enter(qn_jrun *r)
{
    if (r->rc == QN_OK && r->frames >= QN_JINJA_MAX_FRAMES)
        qn_jinja_fail(r, QN_E_LIMIT, "nested too deeply");
    if (!qn_jinja_step(r, 1)) return false;
    r->frames++;
    return true;
}

static bool same_items(qn_jrun *r, qn_jv a, qn_jv b)
{
    bool same = true;
    if (!enter(r)) return false;
    if (a.type == QN_JV_DICT) {
        same = a.u.dict->n == b.u.dict->n;
        for (size_t i = 0; same && i < a.u.dict->n; i++) {
            const qn_jv *v = find(r, b, a.u.dict->kv[2 * i]);
            same = v && qn_jv_equal(r, a.u.dict->kv[2 * i + 1], *v);
        }
    } else {
        same = a.u.list->n == b.u.list->n;
        for (size_t i = 0; same && i < a.u.list->n; i++)
            same = qn_jv_equal(r, a.u.list->v[i], b.u.list->v[i]);
    }
    r->frames--;
    return same && r->rc == QN_OK;
}

bool qn_jv_equal(qn_jrun *r, qn_jv a, qn_jv b)
{
    if (qn_jv_is_num(a) && qn_jv_is_num(b))
        return a.type != QN_JV_REAL && b.type != QN_JV_REAL ? a.u.i == b.u.i
                                                            : qn_jv_num(a) == qn_jv_num(b);
    if (a.type != b.type) return false;
    switch (a.type) {
    case QN_JV_UNDEF:
    case QN_JV_NONE:
        return true;
    case QN_JV_STR:
        return a.n == b.n && !memcmp(a.u.s, b.u.s, a.n);
    case QN_JV_LIST:
    case QN_JV_TUPLE:
    case QN_JV_DICT:
        return same_items(r, a, b);
    default:
        return a.u.s == b.u.s;
    }
}

int qn_jv_order(qn_jrun *r, qn_jv a, qn_jv b)
{
    int order = 0;
    if (qn_jv_is_num(a) && qn_jv_is_num(b)) {
        if (a.type != QN_JV_REAL && b.type != QN_JV_REAL) return (a.u.i > b.u.i) - (a.u.i < b.u.i);
        return (qn_jv_num(a) > qn_jv_num(b)) - (qn_jv_num(a) < qn_jv_num(b));
    }
    if (qn_jv_is_str(a) && qn_jv_is_str(b)) {
        order = memcmp(a.u.s, b.u.s, a.n < b.n ? a.n : b.n);
        return order ? order : (a.n > b.n) - (a.n < b.n);
    }
    if (a.type == b.type && qn_jv_is_seq(a)) {
        if (!enter(r)) return 0;
        for (size_t i = 0; !order && i < a.u.list->n && i < b.u.list->n && r->rc == QN_OK; i++)
            if (!qn_jv_equal(r, a.u.list->v[i], b.u.list->v[i]))
                order = qn_jv_order(r, a.u.list->v[i], b.u.list->v[i]);
        r->frames--;
        return order ? order : (a.u.list->n > b.u.list->n) - (a.u.list->n < b.u.list->n);
    }
    qn_jinja_fail(r, QN_E_FORMAT, "%s and %s have no order", qn_jv_type(a), qn_jv_type(b));
    return 0;
}

bool qn_jv_in(qn_jrun *r, qn_jv item, qn_jv in)
{
    if (in.type == QN_JV_STR) {
        if (item.type != QN_JV_STR) {
            qn_jinja_fail(r, QN_E_FORMAT, "'in' of a string takes a string, found %s",
                          qn_jv_type(item));
            return false;
        }
        return qn_jinja_step(r, in.n / 64) && memmem(in.u.s, in.n, item.u.s, item.n) != NULL;
    }
    if (in.type == QN_JV_DICT || in.type == QN_JV_SPACE) return find(r, in, item) != NULL;
    const qn_jlist *l = qn_jv_iter(r, in);
    for (size_t i = 0; l && i < l->n && qn_jinja_step(r, 1); i++)
        if (qn_jv_equal(r, l->v[i], item)) return true;
    return false;
}

qn_jlist *qn_jv_iter(qn_jrun *r, qn_jv v)
{
    if (qn_jv_is_seq(v)) return v.u.list;
    if (v.type != QN_JV_UNDEF && v.type != QN_JV_DICT && v.type != QN_JV_STR) {
        if (v.type == QN_JV_LOOP) return v.u.loop->items;
        qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be iterated", qn_jv_type(v));
        return NULL;
    }
    const qn_jv list = qn_jv_list(r, QN_JV_LIST, 0);
    if (v.type == QN_JV_DICT)
        for (size_t i = 0; i < v.u.dict->n && r->rc == QN_OK; i++)
            qn_jv_push(r, list, v.u.dict->kv[2 * i]);
    uint32_t cp = 0;
    if (v.type == QN_JV_STR)
        for (size_t i = 0, n = 0; i < v.n && r->rc == QN_OK; i += n) {
            n = qn_utf8_step(v.u.s + i, v.n - i, &cp);
            qn_jv_push(r, list, qn_jv_borrow(v.u.s + i, n));
        }
    return r->rc == QN_OK ? list.u.list : NULL;
}

size_t qn_jv_chars(qn_jv v)
{
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) n += ((unsigned char)v.u.s[i] & 0xC0) != 0x80;
    return n;
}

int64_t qn_jv_len(qn_jrun *r, qn_jv v)
{
    switch (v.type) {
    case QN_JV_UNDEF:
        return 0;
    case QN_JV_STR:
        return (int64_t)qn_jv_chars(v);
    case QN_JV_LIST:
    case QN_JV_TUPLE:
        return (int64_t)v.u.list->n;
    case QN_JV_DICT:
        return (int64_t)v.u.dict->n;
    case QN_JV_LOOP:
        return (int64_t)v.u.loop->items->n;
    default:
        qn_jinja_fail(r, QN_E_FORMAT, "a %s has no length", qn_jv_type(v));
        return 0;
    }
}

static int64_t clamp(qn_jrun *r, qn_jv v, int64_t other, int64_t n, bool back)
{
    if (v.type == QN_JV_NONE || v.type == QN_JV_UNDEF) return other;
    if (v.type != QN_JV_INT && v.type != QN_JV_BOOL) {
        qn_jinja_fail(r, QN_E_FORMAT, "a slice takes integers, found %s", qn_jv_type(v));
        return 0;
    }
    int64_t i = v.u.i < 0 ? (v.u.i < -n ? -1 : v.u.i + n) : v.u.i;
    if (v.u.i < -n) return back ? -1 : 0;
    if (i >= n) i = back ? n - 1 : n;
    return i;
}

qn_jv qn_jv_slice(qn_jrun *r, qn_jv v, const qn_jv at[3])
{
    if (v.type != QN_JV_STR && !qn_jv_is_seq(v))
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be sliced", qn_jv_type(v));
    const qn_jlist *l = qn_jv_iter(r, v);
    const qn_jv out = qn_jv_list(r, v.type == QN_JV_STR ? QN_JV_LIST : (qn_jtype)v.type, 0);
    if (r->rc != QN_OK) return out;
    const int64_t n = (int64_t)l->n;
    int64_t step = at[2].type == QN_JV_INT ? at[2].u.i : 1;
    if (!step) return qn_jinja_fail(r, QN_E_FORMAT, "the step of a slice is 0");
    step = step > n + 1 ? n + 1 : step < -n - 1 ? -n - 1 : step;
    const bool back = step < 0;
    const int64_t begin = clamp(r, at[0], back ? n - 1 : 0, n, back);
    const int64_t end = clamp(r, at[1], back ? -1 : n, n, back);
    for (int64_t i = begin; r->rc == QN_OK && (back ? i > end : i < end); i += step)
        qn_jv_push(r, out, l->v[i]);
    if (v.type != QN_JV_STR || r->rc != QN_OK) return out;
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; i < out.u.list->n; i++)
        qn_jinja_bytes(r, &b, out.u.list->v[i].u.s, out.u.list->v[i].n);
    return qn_jv_take(r, &b);
}
