/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_value.c - values of a rendering: making, comparing; as Python does it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

bool qn_jinja_enter(qn_jrun *r)
{
    if (r->rc == QN_OK && r->frames >= QN_JINJA_MAX_FRAMES)
        qn_jinja_fail(r, QN_E_LIMIT, "nested too deeply");
    if (!qn_jinja_step(r, 1)) return false;
    r->frames++;
    return true;
}

void qn_jinja_leave(qn_jrun *r) { r->frames--; }

void *qn_jinja_room(qn_jrun *r, size_t n, size_t size)
{
    size_t bytes = 0;
    void *p = r->rc == QN_OK ? qn_arena_push_zero(&r->arena, n ? n : 1, size, 16) : NULL;
    if (p || r->rc != QN_OK) return p;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > r->arena.limit ||
        r->arena.used > r->arena.limit - bytes || r->arena.limit - bytes - r->arena.used < 64)
        qn_jinja_fail(r, QN_E_LIMIT, "the template takes more than %zu bytes", r->arena.limit);
    else
        qn_jinja_fail(r, QN_E_NOMEM, "values of a template");
    return NULL;
}

qn_jv qn_jv_undef(const char *name) { return (qn_jv){.type = QN_JV_UNDEF, .u.s = name}; }
qn_jv qn_jv_hint(const char *sentence)
{
    return (qn_jv){.type = QN_JV_UNDEF, .flag = QN_JU_HINT, .u.s = sentence};
}
qn_jv qn_jv_none(void) { return (qn_jv){.type = QN_JV_NONE}; }
qn_jv qn_jv_bool(bool b) { return (qn_jv){.type = QN_JV_BOOL, .u.i = b}; }
qn_jv qn_jv_int(int64_t i) { return (qn_jv){.type = QN_JV_INT, .u.i = i}; }
qn_jv qn_jv_real(double d) { return (qn_jv){.type = QN_JV_REAL, .u.d = d}; }
qn_jv qn_jv_given(void) { return (qn_jv){.type = QN_JV_GIVEN}; }
qn_jv qn_jv_z(const char *s) { return qn_jv_borrow(s, strlen(s)); }
qn_jv qn_jv_borrow(const char *s, size_t n)
{
    return (qn_jv){.type = QN_JV_STR, .n = n, .u.s = n ? s : ""};
}
qn_jv qn_jv_marked(qn_jv s, bool markup)
{
    if (s.type == QN_JV_STR) s.flag = markup;
    return s;
}

qn_jv qn_jv_str(qn_jrun *r, const char *s, size_t n)
{
    char *p = qn_jinja_step(r, n / 256) ? qn_jinja_room(r, n + 1, 1) : NULL;
    if (!p) return qn_jv_undef(NULL);
    if (n) memcpy(p, s, n);
    return qn_jv_borrow(p, n);
}

/* Every string lies inside of one that ends in NUL, so the byte behind it can be read. */
const char *qn_jv_c(qn_jrun *r, qn_jv s)
{
    if (s.type != QN_JV_STR) return "";
    if (!s.n || !s.u.s[s.n]) return s.u.s;
    const qn_jv copy = qn_jv_str(r, s.u.s, s.n);
    return copy.type == QN_JV_STR ? copy.u.s : "";
}

qn_jv qn_jv_take(qn_jrun *r, qn_buf *b)
{
    const qn_jv v = qn_jv_str(r, (const char *)b->data, b->len);
    qn_buf_fini(b);
    return v;
}

qn_jv qn_jv_list(qn_jrun *r, qn_jtype type, size_t cap)
{
    qn_jlist *l = QN_JNEW(r, qn_jlist, 1);
    if (!l) return qn_jv_undef(NULL);
    l->v = cap ? QN_JNEW(r, qn_jv, cap) : NULL;
    l->cap = l->v ? cap : 0;
    return (qn_jv){.type = (uint8_t)type, .u.list = l};
}

qn_jv qn_jv_dict(qn_jrun *r, qn_jtype type)
{
    qn_jdict *d = QN_JNEW(r, qn_jdict, 1);
    return d ? (qn_jv){.type = (uint8_t)type, .u.dict = d} : qn_jv_undef(NULL);
}

void qn_jv_push(qn_jrun *r, qn_jv list, qn_jv v)
{
    if (!qn_jinja_step(r, 1)) return;
    qn_jlist *l = list.u.list;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 8;
        qn_jv *more = QN_JNEW(r, qn_jv, cap);
        if (!more) return;
        if (l->n) memcpy(more, l->v, l->n * sizeof *more);
        l->v = more;
        l->cap = cap;
    }
    l->v[l->n++] = v;
}

qn_jv qn_jv_pair(qn_jrun *r, qn_jv a, qn_jv b)
{
    const qn_jv p = qn_jv_list(r, QN_JV_TUPLE, 2);
    qn_jv_push(r, p, a);
    qn_jv_push(r, p, b);
    return p;
}

bool qn_jv_hashable(qn_jrun *r, qn_jv v)
{
    if (v.type == QN_JV_LIST || v.type == QN_JV_DICT || (v.type == QN_JV_VIEW && v.flag != 'v')) {
        qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be a key", qn_jv_type(v));
        return false;
    }
    if (v.type != QN_JV_TUPLE) return r->rc == QN_OK;
    if (!qn_jinja_enter(r)) return false;
    for (size_t i = 0; i < v.u.list->n && r->rc == QN_OK; i++) qn_jv_hashable(r, v.u.list->v[i]);
    qn_jinja_leave(r);
    return r->rc == QN_OK;
}

static qn_jv *find(qn_jrun *r, qn_jv dict, qn_jv key)
{
    qn_jdict *d = dict.u.dict;
    if (!qn_jinja_step(r, d->n / 16)) return NULL;
    for (size_t i = 0; i < d->n; i++) {
        const qn_jv k = d->kv[2 * i];
        if (k.type == QN_JV_STR && key.type == QN_JV_STR
                ? k.n == key.n && !memcmp(k.u.s, key.u.s, k.n)
                : qn_jv_same(k, key) || qn_jv_equal(r, k, key))
            return &d->kv[2 * i + 1];
    }
    return NULL;
}

const qn_jv *qn_jv_find(qn_jrun *r, qn_jv dict, qn_jv key)
{
    return qn_jv_hashable(r, key) ? find(r, dict, key) : NULL;
}

static void append(qn_jrun *r, qn_jdict *d, qn_jv key, qn_jv v)
{
    if (d->n == d->cap) {
        const size_t cap = d->cap ? 2 * d->cap : 4;
        qn_jv *more = QN_JNEW(r, qn_jv, 2 * cap);
        if (!more) return;
        if (d->n) memcpy(more, d->kv, 2 * d->n * sizeof *more);
        d->kv = more;
        d->cap = cap;
    }
    d->kv[2 * d->n] = key;
    d->kv[2 * d->n++ + 1] = v;
}

void qn_jv_put(qn_jrun *r, qn_jv dict, qn_jv key, qn_jv v)
{
    if (!qn_jinja_step(r, 1) || !qn_jv_hashable(r, key)) return;
    qn_jv *at = find(r, dict, key);
    if (at)
        *at = v;
    else if (r->rc == QN_OK)
        append(r, dict.u.dict, key, v);
}

static qn_jv from_object(qn_jrun *r, const qn_json *j, uint32_t depth)
{
    const qn_jv dict = qn_jv_dict(r, QN_JV_DICT);
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *v = NULL;
    while (r->rc == QN_OK && qn_json_next(j, &it, &key, &v)) {
        const qn_jv x = qn_jv_from_json(r, v, depth + 1);
        if (r->rc == QN_OK)
            append(r, dict.u.dict, qn_jv_z(key), x); /* keys differ: JSON was read strictly */
    }
    return dict;
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
    return from_object(r, j, depth);
}

bool qn_jv_is_given(qn_jv v) { return v.type != QN_JV_GIVEN; }
bool qn_jv_is_str(qn_jv v) { return v.type == QN_JV_STR; }
bool qn_jv_is_num(qn_jv v) { return v.type >= QN_JV_BOOL && v.type <= QN_JV_REAL; }
bool qn_jv_is_int(qn_jv v) { return v.type == QN_JV_BOOL || v.type == QN_JV_INT; }
bool qn_jv_is_seq(qn_jv v) { return v.type == QN_JV_LIST || v.type == QN_JV_TUPLE; }
bool qn_jv_is_map(qn_jv v) { return v.type == QN_JV_DICT; }
double qn_jv_num(qn_jv v) { return v.type == QN_JV_REAL ? v.u.d : (double)v.u.i; }

const char *qn_jv_type(qn_jv v)
{
    static const char *const names[QN_JV_TYPES + 1] = {
        "undefined value", "None",   "bool",      "int",    "float",     "str",       "list",
        "tuple",           "dict",   "namespace", "range",  "dict view", "generator", "macro",
        "function",        "method", "loop",      "cycler", "joiner",    "template",  "block",
        "missing argument"};
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
    case QN_JV_VIEW:
        return v.u.dict->n != 0;
    case QN_JV_RANGE:
        return v.u.range->n != 0;
    default:
        return true; /* a loop has at least the element that it stands on */
    }
}

bool qn_jv_same(qn_jv a, qn_jv b)
{
    if (a.type != b.type) return false;
    switch (a.type) {
    case QN_JV_NONE:
        return true;
    case QN_JV_UNDEF:
        return false;
    case QN_JV_BOOL:
    case QN_JV_INT:
        return a.u.i == b.u.i;
    case QN_JV_REAL:
        return false;
    case QN_JV_STR:
        return a.flag == b.flag && a.n == b.n && (a.u.s == b.u.s || !a.n);
    case QN_JV_VIEW:
    case QN_JV_METHOD:
        return false;
    case QN_JV_TUPLE:
        return a.u.list == b.u.list || (!a.u.list->n && !b.u.list->n);
    default:
        return a.u.s == b.u.s;
    }
}

/* Keys and items of dicts compare like sets. */
static bool same_view(qn_jrun *r, qn_jv a, qn_jv b)
{
    if (a.flag == 'v' || b.flag == 'v' || a.u.dict->n != b.u.dict->n) return false;
    if (a.flag != b.flag) return !a.u.dict->n;
    for (size_t i = 0; i < a.u.dict->n && r->rc == QN_OK; i++) {
        const qn_jv *v = find(r, b, a.u.dict->kv[2 * i]);
        if (!v || (a.flag == 'i' && !qn_jv_equal(r, a.u.dict->kv[2 * i + 1], *v))) return false;
    }
    return r->rc == QN_OK;
}

static bool same_items(qn_jrun *r, qn_jv a, qn_jv b)
{
    bool same = true;
    if (!qn_jinja_enter(r)) return false;
    if (a.type == QN_JV_VIEW) {
        same = same_view(r, a, b);
    } else if (a.type == QN_JV_DICT) {
        same = a.u.dict->n == b.u.dict->n;
        for (size_t i = 0; same && i < a.u.dict->n; i++) {
            const qn_jv *v = find(r, b, a.u.dict->kv[2 * i]);
            same = v && (qn_jv_same(a.u.dict->kv[2 * i + 1], *v) ||
                         qn_jv_equal(r, a.u.dict->kv[2 * i + 1], *v));
        }
    } else {
        same = a.u.list->n == b.u.list->n;
        for (size_t i = 0; same && i < a.u.list->n; i++)
            same = qn_jv_same(a.u.list->v[i], b.u.list->v[i]) ||
                   qn_jv_equal(r, a.u.list->v[i], b.u.list->v[i]);
    }
    qn_jinja_leave(r);
    return same && r->rc == QN_OK;
}

/* An integer against a real without rounding either: -1, 0, 1; 2: no order (NaN). */
static int int_real(int64_t i, double d)
{
    if (isnan(d)) return 2;
    if (d >= 9223372036854775808.0) return -1;
    if (d < -9223372036854775808.0) return 1;
    const int64_t t = (int64_t)d;
    const double rest = d - (double)t;
    return i != t ? (i > t) - (i < t) : (rest < 0) - (rest > 0);
}

static int num_order(qn_jv a, qn_jv b)
{
    if (a.type != QN_JV_REAL && b.type != QN_JV_REAL) return (a.u.i > b.u.i) - (a.u.i < b.u.i);
    if (a.type != QN_JV_REAL) return int_real(a.u.i, b.u.d);
    if (b.type != QN_JV_REAL) {
        const int o = int_real(b.u.i, a.u.d);
        return o == 2 ? 2 : -o;
    }
    return isnan(a.u.d) || isnan(b.u.d) ? 2 : (a.u.d > b.u.d) - (a.u.d < b.u.d);
}

bool qn_jv_equal(qn_jrun *r, qn_jv a, qn_jv b)
{
    if (qn_jv_is_num(a) && qn_jv_is_num(b)) return num_order(a, b) == 0;
    if (a.type != b.type) return false;
    switch (a.type) {
    case QN_JV_UNDEF:
    case QN_JV_NONE:
        return true;
    case QN_JV_STR:
        return qn_jinja_step(r, a.n == b.n ? a.n / 256 : 0) && a.n == b.n &&
               !memcmp(a.u.s, b.u.s, a.n);
    case QN_JV_LIST:
    case QN_JV_TUPLE:
    case QN_JV_DICT:
    case QN_JV_VIEW:
        return same_items(r, a, b);
    case QN_JV_RANGE: {
        const qn_jrange *x = a.u.range, *y = b.u.range;
        return x->n == y->n &&
               (!x->n || (x->start == y->start && (x->n == 1 || x->step == y->step)));
    }
    case QN_JV_METHOD:
        return !strcmp(a.u.bound->name, b.u.bound->name) &&
               qn_jv_same(a.u.bound->self, b.u.bound->self);
    default:
        return a.u.s == b.u.s;
    }
}

static int seq_order(qn_jrun *r, qn_jv a, qn_jv b, const char *op)
{
    int order = 0;
    if (!qn_jinja_enter(r)) return 0;
    const qn_jlist *x = a.u.list, *y = b.u.list;
    size_t i = 0;
    while (i < x->n && i < y->n && r->rc == QN_OK &&
           (qn_jv_same(x->v[i], y->v[i]) || qn_jv_equal(r, x->v[i], y->v[i])))
        i++;
    if (r->rc == QN_OK)
        order = i < x->n && i < y->n ? qn_jv_order(r, x->v[i], y->v[i], op)
                                     : (x->n > y->n) - (x->n < y->n);
    qn_jinja_leave(r);
    return order;
}

int qn_jv_order(qn_jrun *r, qn_jv a, qn_jv b, const char *op)
{
    if (!qn_jinja_step(r, 1)) return 0;
    if (qn_jv_is_num(a) && qn_jv_is_num(b)) return num_order(a, b);
    if (qn_jv_is_str(a) && qn_jv_is_str(b)) {
        const size_t n = a.n < b.n ? a.n : b.n;
        if (!qn_jinja_step(r, n / 256)) return 0;
        const int order = memcmp(a.u.s, b.u.s, n);
        return order ? (order > 0) - (order < 0) : (a.n > b.n) - (a.n < b.n);
    }
    if (a.type == b.type && qn_jv_is_seq(a)) return seq_order(r, a, b, op);
    if (a.type == QN_JV_UNDEF)
        qn_jinja_undefined(r, a);
    else if (b.type == QN_JV_UNDEF)
        qn_jinja_undefined(r, b);
    else
        qn_jinja_fail(r, QN_E_FORMAT, "'%s' not supported between %s and %s", op, qn_jv_type(a),
                      qn_jv_type(b));
    return 0;
}

/* One set is part of another: what <= and < of keys mean. */
static bool view_within(qn_jrun *r, qn_jv a, qn_jv b)
{
    for (size_t i = 0; i < a.u.dict->n && r->rc == QN_OK; i++) {
        const qn_jv *v = find(r, b, a.u.dict->kv[2 * i]);
        if (!v || (a.flag == 'i' && !qn_jv_equal(r, a.u.dict->kv[2 * i + 1], *v))) return false;
    }
    return r->rc == QN_OK;
}

bool qn_jv_compare(qn_jrun *r, char op, qn_jv a, qn_jv b)
{
    const char *name = op == 'l' ? "<=" : op == 'g' ? ">=" : op == '<' ? "<" : ">";
    if (a.type == QN_JV_VIEW && b.type == QN_JV_VIEW && a.flag != 'v' && a.flag == b.flag) {
        if (op == '>' || op == 'g') return qn_jv_compare(r, op == '>' ? '<' : 'l', b, a);
        const bool fits = op == '<' ? a.u.dict->n < b.u.dict->n : a.u.dict->n <= b.u.dict->n;
        return fits && view_within(r, a, b);
    }
    const int o = qn_jv_order(r, a, b, name);
    if (r->rc != QN_OK || o == 2) return false;
    return op == '<' ? o < 0 : op == '>' ? o > 0 : op == 'l' ? o <= 0 : o >= 0;
}

static bool in_elements(qn_jrun *r, qn_jv item, qn_jv in)
{
    qn_jit it;
    qn_jv x;
    if (!qn_jit_begin(r, &it, in)) return false;
    while (qn_jit_next(r, &it, &x))
        if (qn_jv_same(x, item) || qn_jv_equal(r, x, item)) return r->rc == QN_OK;
    return false;
}

bool qn_jv_in(qn_jrun *r, qn_jv item, qn_jv in)
{
    if (r->rc != QN_OK) return false;
    if (in.type == QN_JV_STR) {
        if (item.type == QN_JV_STR)
            return qn_jinja_step(r, in.n / 64) && memmem(in.u.s, in.n, item.u.s, item.n) != NULL;
        qn_jinja_fail(r, QN_E_FORMAT, "'in <string>' requires a string, found %s",
                      qn_jv_type(item));
        return false;
    }
    if (in.type == QN_JV_DICT || (in.type == QN_JV_VIEW && in.flag == 'k'))
        return qn_jv_find(r, in, item) != NULL;
    if (in.type == QN_JV_VIEW && in.flag == 'i') {
        if (item.type != QN_JV_TUPLE || item.u.list->n != 2) return false;
        const qn_jv *v = qn_jv_find(r, in, item.u.list->v[0]);
        return v && qn_jv_equal(r, *v, item.u.list->v[1]);
    }
    if (in.type == QN_JV_RANGE && qn_jv_is_int(item)) {
        const qn_jrange *g = in.u.range;
        const int64_t at =
            g->n ? item.u.i - g->start : 1; /* both are small: ranges hold at most 100000 */
        return g->n && at % g->step == 0 && at / g->step >= 0 && at / g->step < g->n;
    }
    return in_elements(r, item, in);
}

qn_jv qn_jinja_undefined(qn_jrun *r, qn_jv v)
{
    const char *s = v.u.s ? v.u.s : "a value";
    switch ((qn_junknown)v.flag) {
    case QN_JU_ATTR:
        return qn_jinja_fail(r, QN_E_FORMAT, "'%s object' has no attribute '%s' (undefined)",
                             qn_jv_type((qn_jv){.type = (uint8_t)v.n}), s);
    case QN_JU_ITEM:
        return qn_jinja_fail(r, QN_E_FORMAT, "%s object has no such element (undefined)",
                             qn_jv_type((qn_jv){.type = (uint8_t)v.n}));
    case QN_JU_HINT:
        return qn_jinja_fail(r, QN_E_FORMAT, "%s (undefined)", s);
    case QN_JU_UNSAFE:
        return qn_jinja_fail(r, QN_E_FORMAT, "access to attribute '%s' of a %s is unsafe", s,
                             qn_jv_type((qn_jv){.type = (uint8_t)v.n}));
    case QN_JU_NAME:
        break;
    }
    return qn_jinja_fail(r, QN_E_FORMAT, "'%s' is undefined", s);
}
