/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_filter.c - filters that work on sequences and numbers, and the table of all filters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja_int.h"

/* A path such as "function.name", an index or any key; v itself where path is None or not given. */
qn_jv qn_jinja_path(qn_jrun *r, qn_jv v, qn_jv path, qn_jv other)
{
    if (!qn_jv_is_given(path) || path.type == QN_JV_NONE) return v;
    if (path.type != QN_JV_STR) {
        v = qn_jinja_item(r, v, path);
        return v.type == QN_JV_UNDEF && other.type != QN_JV_NONE && r->rc == QN_OK ? other : v;
    }
    for (size_t i = 0; i <= path.n && r->rc == QN_OK;) {
        const char *dot = i < path.n ? memchr(path.u.s + i, '.', path.n - i) : NULL;
        const size_t n = dot ? (size_t)(dot - path.u.s) - i : path.n - i;
        const qn_jv part = qn_jv_str(r, path.u.s + i, n);
        const bool number = r->rc == QN_OK && n && n < 18 && qn_jinja_all_are(part, "isdigit");
        if (r->rc == QN_OK)
            v = qn_jinja_item(r, v, number ? qn_jv_int(strtoll(part.u.s, NULL, 10)) : part);
        if (v.type == QN_JV_UNDEF && other.type != QN_JV_NONE && r->rc == QN_OK) v = other;
        i += n + 1;
    }
    return v;
}

static qn_jv folded(qn_jrun *r, qn_jv v, bool sensitive)
{
    return v.type == QN_JV_STR && !sensitive ? qn_jinja_case(r, v, 'l') : v;
}

/* Types that cannot be ordered go by their names, as pprint's keys do. */
static int safe_order(qn_jrun *r, qn_jv a, qn_jv b)
{
    const bool fits = (qn_jv_is_num(a) && qn_jv_is_num(b)) ||
                      (a.type == b.type && (a.type == QN_JV_STR || a.type == QN_JV_TUPLE));
    if (fits) return qn_jv_order(r, a, b, "<");
    return strcmp(a.type == QN_JV_NONE ? "NoneType" : qn_jv_type(a),
                  b.type == QN_JV_NONE ? "NoneType" : qn_jv_type(b));
}

/* A stable merge sort of pairs key, value. */
static void sort_pairs(qn_jrun *r, qn_jv *p, qn_jv *spare, size_t n, bool reverse, bool safe)
{
    for (size_t w = 1; w < n && r->rc == QN_OK; w *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * w) {
            const size_t mid = lo + w < n ? lo + w : n, hi = lo + 2 * w < n ? lo + 2 * w : n;
            size_t i = lo, j = mid;
            for (size_t k = lo; k < hi; k++) {
                bool left = j >= hi;
                if (i < mid && j < hi && qn_jinja_step(r, 1)) {
                    const qn_jv a = reverse ? p[2 * i] : p[2 * j],
                                b = reverse ? p[2 * j] : p[2 * i];
                    const int o = safe ? safe_order(r, a, b) : qn_jv_order(r, a, b, "<");
                    left = o >= 0; /* not (a < b); 2, no order, too */
                }
                memcpy(spare + 2 * k, p + 2 * (left && i < mid ? i++ : j++), 2 * sizeof *p);
            }
        }
        memcpy(p, spare, 2 * n * sizeof *p);
    }
}

const qn_jv *qn_jinja_sorted_pairs(qn_jrun *r, qn_jv dict, bool safe)
{
    const size_t n = dict.u.dict->n;
    qn_jv *p = QN_JNEW(r, qn_jv, 2 * n), *spare = p ? QN_JNEW(r, qn_jv, 2 * n) : NULL;
    if (!spare) return NULL;
    if (n) memcpy(p, dict.u.dict->kv, 2 * n * sizeof *p);
    sort_pairs(r, p, spare, n, false, safe);
    return p;
}

/* The key that sort compares: what each of "a,b.c" leads to. */
static qn_jv sort_key(qn_jrun *r, qn_jv v, qn_jv paths, bool sensitive)
{
    if (paths.type != QN_JV_STR)
        return folded(r, qn_jinja_path(r, v, paths, qn_jv_none()), sensitive);
    const qn_jlist *all =
        qn_jinja_split(r, qn_jv_marked(paths, false), qn_jv_z(","), -1, false).u.list;
    const qn_jv key = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; r->rc == QN_OK && i < all->n; i++)
        qn_jv_push(r, key, folded(r, qn_jinja_path(r, v, all->v[i], qn_jv_none()), sensitive));
    return key;
}

typedef struct order {
    qn_jv path, other;
    bool sensitive, reverse, multi;
} order;

static qn_jv key_of(qn_jrun *r, const order *o, qn_jv v)
{
    return o->multi ? sort_key(r, v, o->path, o->sensitive)
                    : folded(r, qn_jinja_path(r, v, o->path, o->other), o->sensitive);
}

/* Pairs of key and element, in order; *n of them. */
static qn_jv *keyed(qn_jrun *r, qn_jv v, const order *o, size_t *n)
{
    qn_jlist *l = qn_jv_all(r, v);
    *n = l ? l->n : 0;
    qn_jv *p = QN_JNEW(r, qn_jv, 2 * *n), *spare = p ? QN_JNEW(r, qn_jv, 2 * *n) : NULL;
    if (!spare) return NULL;
    for (size_t i = 0; i < *n && r->rc == QN_OK; i++) {
        p[2 * i] = key_of(r, o, l->v[i]);
        p[2 * i + 1] = l->v[i];
    }
    sort_pairs(r, p, spare, *n, o->reverse, false);
    return r->rc == QN_OK ? p : NULL;
}

static qn_jv sorted(qn_jrun *r, qn_jv v, const order *o)
{
    size_t n = 0;
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0), *p = keyed(r, v, o, &n);
    for (size_t i = 0; p && i < n && r->rc == QN_OK; i++) qn_jv_push(r, out, p[2 * i + 1]);
    return out;
}

static qn_jv f_sort(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)a;
    const order o = {.path = x[2],
                     .other = qn_jv_none(),
                     .multi = true,
                     .sensitive = qn_jinja_true_of(x[1], false),
                     .reverse = qn_jinja_true_of(x[0], false)};
    return sorted(r, v, &o);
}

static qn_jv f_items(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jv out;
    (void)x;
    (void)a;
    if (v.type == QN_JV_UNDEF) v = qn_jv_dict(r, QN_JV_DICT);
    qn_jv_gen(r, &out, 'i', v);
    return out;
}

static qn_jv f_dictsort(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const char *by = !qn_jv_is_given(x[1]) ? "key" : qn_jv_c(r, x[1]);
    const bool value = !strcmp(by, "value");
    (void)a;
    if (!value && strcmp(by, "key"))
        return qn_jinja_fail(r, QN_E_FORMAT, "dictsort sorts by either 'key' or 'value'");
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (v.type != QN_JV_DICT)
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s has no items", qn_jv_type(v));
    v.type = QN_JV_VIEW;
    v.flag = 'i';
    const order o = {.path = qn_jv_int(value),
                     .other = qn_jv_none(),
                     .sensitive = qn_jinja_true_of(x[0], false),
                     .reverse = qn_jinja_true_of(x[2], false)};
    return sorted(r, v, &o);
}

static qn_jv f_unique(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jv out;
    qn_jgen *g = qn_jv_gen(r, &out, 'u', v);
    (void)a;
    if (!g) return out;
    g->sensitive = qn_jinja_true_of(x[0], false);
    g->path = x[1];
    return out;
}

static qn_jv f_groupby(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const bool sensitive = qn_jinja_true_of(x[2], false);
    const order o = {
        .path = x[0], .other = qn_jv_is_given(x[1]) ? x[1] : qn_jv_none(), .sensitive = sensitive};
    size_t n = 0;
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0), *p = keyed(r, v, &o, &n);
    qn_jv group = qn_jv_undef(NULL);
    (void)a;
    for (size_t i = 0; p && i < n && r->rc == QN_OK; i++) {
        if (!i || !(qn_jv_same(p[2 * i], p[2 * i - 2]) || qn_jv_equal(r, p[2 * i], p[2 * i - 2]))) {
            group = qn_jv_list(r, QN_JV_LIST, 0);
            const qn_jv name = sensitive ? p[2 * i] : qn_jinja_path(r, p[2 * i + 1], x[0], o.other);
            qn_jv row = qn_jv_pair(r, name, group);
            row.flag = 'g'; /* its parts have names: grouper, list */
            qn_jv_push(r, out, row);
        }
        if (r->rc == QN_OK) qn_jv_push(r, group, p[2 * i + 1]);
    }
    return out;
}

static qn_jv lazy(qn_jrun *r, char kind, qn_jv v, const qn_jargs *a, bool attr, bool want)
{
    qn_jv out;
    qn_jgen *g = qn_jv_gen(r, &out, kind, v);
    if (!g) return out;
    g->args = *a;
    g->attr = attr;
    g->want = want;
    return out;
}
static qn_jv f_map(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    return lazy(r, 'm', v, a, false, false);
}
static qn_jv f_select(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    return lazy(r, 's', v, a, false, true);
}
static qn_jv f_reject(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    return lazy(r, 's', v, a, false, false);
}
static qn_jv f_selectattr(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    return lazy(r, 's', v, a, true, true);
}
static qn_jv f_rejectattr(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    return lazy(r, 's', v, a, true, false);
}

static qn_jv f_batch(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jv out;
    qn_jgen *g = qn_jv_gen(r, &out, 'b', v);
    (void)a;
    if (!g) return out;
    g->path = x[0];
    g->want = qn_jv_is_int(x[0]);
    g->attr = qn_jv_is_num(x[0]);
    g->count = g->want ? x[0].u.i : -1;
    if (!g->want && g->attr && fabs(x[0].u.d) < 1e15) g->count = (int64_t)ceil(x[0].u.d);
    if (!g->want && g->attr && (double)g->count != x[0].u.d) g->count = -1;
    if (qn_jv_is_given(x[1])) g->fill = x[1];
    return out;
}

static qn_jv f_slice(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jv out;
    qn_jgen *g = qn_jv_gen(r, &out, 'l', v);
    (void)a;
    if (!g) return out;
    g->path = x[0];
    if (qn_jv_is_given(x[1])) g->fill = x[1];
    return out;
}

static qn_jv f_default(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)r;
    (void)a;
    if (v.type != QN_JV_UNDEF && !(qn_jinja_true_of(x[1], false) && !qn_jv_true(v))) return v;
    return qn_jv_is_given(x[0]) ? x[0] : qn_jv_z("");
}

static qn_jv f_join(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jv sep = qn_jv_is_given(x[0]) ? x[0] : qn_jv_z("");
    (void)a;
    if (qn_jv_is_given(x[1]) && x[1].type != QN_JV_NONE) {
        const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
        const qn_jlist *l = qn_jv_all(r, v);
        for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++)
            qn_jv_push(r, out, qn_jinja_path(r, l->v[i], x[1], qn_jv_none()));
        v = out;
    }
    if (r->rc != QN_OK) return v;
    if (!r->escapes) return qn_jinja_join(r, qn_jv_text(r, sep), v, 's');
    /* Once one part is markup, all are escaped to be it. */
    qn_jlist *l = qn_jv_all(r, v);
    bool markup = sep.type == QN_JV_STR && sep.flag;
    for (size_t i = 0; l && i < l->n && !markup; i++)
        markup = l->v[i].type == QN_JV_STR && l->v[i].flag;
    if (!l) return v;
    sep = markup ? qn_jv_escape(r, sep) : qn_jv_text(r, sep);
    for (size_t i = 0; i < l->n && r->rc == QN_OK; i++) l->v[i] = qn_jv_soft(r, l->v[i]);
    return qn_jinja_join(r, sep, (qn_jv){.type = QN_JV_LIST, .u.list = l}, 'm');
}

static qn_jv f_length(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return qn_jv_int(qn_jv_len(r, v));
}

static qn_jv f_first(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jit it;
    qn_jv first;
    (void)x;
    (void)a;
    qn_jit_begin(r, &it, v);
    return qn_jit_next(r, &it, &first) ? first : qn_jv_hint("No first item, sequence was empty.");
}

/* What can be walked from its end. */
static bool reversible(qn_jv v)
{
    return v.type == QN_JV_STR || qn_jv_is_seq(v) || v.type == QN_JV_DICT || v.type == QN_JV_VIEW ||
           v.type == QN_JV_RANGE || v.type == QN_JV_UNDEF;
}

static qn_jv reversed(qn_jrun *r, qn_jv v)
{
    qn_jv out;
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (v.type == QN_JV_DICT) {
        v.type = QN_JV_VIEW;
        v.flag = 'k';
    }
    qn_jv_gen(r, &out, 'r', v);
    return out;
}

static qn_jv f_last(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    if (v.type != QN_JV_UNDEF && !reversible(v))
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s is not reversible", qn_jv_type(v));
    if (v.type == QN_JV_UNDEF) return qn_jv_hint("No last item, sequence was empty.");
    const qn_jv last = f_first(r, reversed(r, v), x, a);
    return last.type == QN_JV_UNDEF && last.flag == QN_JU_HINT
               ? qn_jv_hint("No last item, sequence was empty.")
               : last;
}

static qn_jv f_list(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jlist *l = qn_jv_all(r, v);
    (void)x;
    (void)a;
    return l ? (qn_jv){.type = QN_JV_LIST, .u.list = l} : qn_jv_undef(NULL);
}

static qn_jv f_reverse(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const qn_jv at[3] = {qn_jv_none(), qn_jv_none(), qn_jv_int(-1)};
    if (v.type == QN_JV_STR) return qn_jv_slice(r, v, at);
    if (reversible(v) && v.type != QN_JV_UNDEF) return reversed(r, v);
    const qn_jv all = f_list(r, v, x, a);
    if (r->rc != QN_OK) return v;
    return qn_jv_slice(r, all, at);
}

static qn_jv f_int(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const qn_jv other = qn_jv_is_given(x[0]) ? x[0] : qn_jv_int(0);
    const int64_t base = qn_jinja_int_of(r, x[1], 10);
    bool ok = false;
    (void)a;
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (qn_jv_is_int(v)) return qn_jv_int(v.u.i);
    if (v.type == QN_JV_STR) {
        const qn_jv i = qn_jinja_to_int(r, v, base, &ok);
        double d = 0;
        if (ok || r->rc != QN_OK) return i;
        if (!qn_jinja_to_real(qn_jinja_strip(r, v, qn_jv_none(), 3), &d)) return other;
        v = qn_jv_real(d);
    }
    if (v.type != QN_JV_REAL || !isfinite(v.u.d)) {
        if (v.type == QN_JV_REAL && isinf(v.u.d) && x[0].type == QN_JV_GIVEN) return other;
        return other;
    }
    if (fabs(v.u.d) >= 9.2e18) return qn_jinja_fail(r, QN_E_LIMIT, "an integer leaves 64 bits");
    return qn_jv_int((int64_t)v.u.d);
}

static qn_jv f_float(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    double d = 0;
    (void)a;
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (qn_jv_is_num(v)) return qn_jv_real(qn_jv_num(v));
    if (v.type == QN_JV_STR && qn_jinja_to_real(qn_jinja_strip(r, v, qn_jv_none(), 3), &d))
        return qn_jv_real(d);
    return qn_jv_is_given(x[0]) ? x[0] : qn_jv_real(0);
}

static qn_jv f_abs(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    if (v.type == QN_JV_REAL) return qn_jv_real(fabs(v.u.d));
    if (!qn_jv_is_num(v))
        return qn_jinja_fail(r, QN_E_FORMAT, "bad operand type for abs(): %s", qn_jv_type(v));
    return v.u.i < 0 ? qn_jinja_binary(r, '-', qn_jv_int(0), v) : qn_jv_int(v.u.i);
}

/* Half to even on the decimal digits, as Python rounds. */
static qn_jv rounded(qn_jrun *r, double d, int64_t digits)
{
    char text[800];
    if (!isfinite(d) || digits > 323 || d == 0.0) return qn_jv_real(d);
    if (digits < -308) return qn_jv_real(copysign(0.0, d));
    (void)r;
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, d);
        return qn_jv_real(strtod(text, NULL));
    }
    /* Left of the point: an exact tie needs a whole number, which %.*e rounds to even as well. */
    const double scale = pow(10, (double)-digits), x = d / scale;
    double y = nearbyint(x);
    if (fabs(x - y) == 0.5) y = 2.0 * nearbyint(x / 2.0);
    return qn_jv_real(y * scale);
}

static qn_jv f_round(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    const int64_t digits = qn_jinja_int_of(r, x[0], 0);
    const char *how = qn_jv_is_given(x[1]) ? qn_jv_c(r, x[1]) : "common";
    (void)a;
    if (strcmp(how, "common") && strcmp(how, "ceil") && strcmp(how, "floor"))
        return qn_jinja_fail(r, QN_E_FORMAT, "method must be common, ceil or floor");
    if (v.type == QN_JV_UNDEF && *how != 'c') return qn_jinja_undefined(r, v);
    if (!qn_jv_is_num(v) || r->rc != QN_OK)
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be rounded", qn_jv_type(v));
    if (!strcmp(how, "common")) {
        if (v.type == QN_JV_REAL) return rounded(r, v.u.d, digits);
        if (digits >= 0) return qn_jv_int(v.u.i);
        if (digits < -18) return qn_jv_int(0);
        int64_t scale = 1;
        for (int64_t i = digits; i < 0; i++) scale *= 10;
        const int64_t rest = v.u.i % scale, down = v.u.i - rest, twice = rest < 0 ? -rest : rest;
        const bool away = twice > scale / 2 || (twice == scale / 2 && (down / scale) % 2 != 0);
        return qn_jinja_binary(r, rest < 0 ? '-' : '+', qn_jv_int(down),
                               qn_jv_int(away ? scale : 0));
    }
    const qn_jv scale = qn_jinja_binary(r, 'p', qn_jv_int(10), qn_jv_int(digits));
    qn_jv scaled = qn_jinja_binary(r, '*', v, scale);
    if (r->rc != QN_OK) return v;
    if (scaled.type == QN_JV_REAL) {
        const double d = *how == 'c' ? ceil(scaled.u.d) : floor(scaled.u.d);
        if (!isfinite(d)) return qn_jinja_fail(r, QN_E_FORMAT, "cannot convert float to integer");
        scaled = fabs(d) < 9e18 ? qn_jv_int((int64_t)d) : qn_jv_real(d);
    }
    return qn_jinja_binary(r, '/', scaled, scale);
}

static qn_jv extreme(qn_jrun *r, qn_jv v, const qn_jv *x, bool largest)
{
    qn_jit it;
    qn_jv e, best = qn_jv_hint("No aggregated item, sequence was empty."), best_key = best;
    const order o = {
        .path = x[1], .other = qn_jv_none(), .sensitive = qn_jinja_true_of(x[0], false)};
    bool first = true;
    qn_jit_begin(r, &it, v);
    for (; qn_jit_next(r, &it, &e); first = false) {
        const qn_jv key = key_of(r, &o, e);
        if (!first && r->rc == QN_OK && !qn_jv_compare(r, largest ? '>' : '<', key, best_key))
            continue;
        best = e;
        best_key = key;
    }
    return best;
}
static qn_jv f_min(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)a;
    return extreme(r, v, x, false);
}
static qn_jv f_max(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)a;
    return extreme(r, v, x, true);
}

static qn_jv f_sum(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    qn_jit it;
    qn_jv e, sum = qn_jv_is_given(x[1]) ? x[1] : qn_jv_int(0);
    (void)a;
    if (sum.type == QN_JV_STR) return qn_jinja_fail(r, QN_E_FORMAT, "sum() can't sum strings");
    qn_jit_begin(r, &it, v);
    while (qn_jit_next(r, &it, &e))
        sum = qn_jinja_binary(r, '+', sum, qn_jinja_path(r, e, x[0], qn_jv_none()));
    return sum;
}

static qn_jv f_attr(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    bool found = false;
    (void)a;
    if (x[0].type != QN_JV_STR)
        return qn_jinja_fail(r, QN_E_FORMAT, "attribute name must be string");
    const char *name = qn_jv_c(r, x[0]);
    if (v.type == QN_JV_UNDEF && strncmp(name, "__", 2)) return qn_jinja_undefined(r, v);
    if (v.type == QN_JV_SPACE) return qn_jinja_attr(r, v, name);
    const qn_jv m = qn_jinja_member(r, v, name, &found);
    return found ? m : (qn_jv){.type = QN_JV_UNDEF, .flag = QN_JU_ATTR, .n = v.type, .u.s = name};
}

static qn_jv f_pprint(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)x;
    (void)a;
    return qn_jinja_pprint(r, v);
}
static qn_jv f_tojson(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)a;
    return qn_jinja_tojson(r, v, x);
}
static qn_jv f_random(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)v;
    (void)x;
    (void)a;
    return qn_jinja_fail(r, QN_E_FORMAT, "random gives another text each time");
}

static const qn_jfilter filters[] = {
    {"default", "default_value= boolean=", f_default},
    {"d", "default_value= boolean=", f_default},
    {"join", "d= attribute=", f_join},
    {"length", "", f_length},
    {"count", "", f_length},
    {"first", "", f_first},
    {"last", "", f_last},
    {"list", "", f_list},
    {"reverse", "", f_reverse},
    {"int", "default= base=", f_int},
    {"float", "default=", f_float},
    {"abs", "", f_abs},
    {"round", "precision= method=", f_round},
    {"min", "case_sensitive= attribute=", f_min},
    {"max", "case_sensitive= attribute=", f_max},
    {"sum", "attribute= start=", f_sum},
    {"batch", "linecount fill_with=", f_batch},
    {"slice", "slices fill_with=", f_slice},
    {"attr", "name", f_attr},
    {"map", NULL, f_map},
    {"select", NULL, f_select},
    {"reject", NULL, f_reject},
    {"selectattr", NULL, f_selectattr},
    {"rejectattr", NULL, f_rejectattr},
    {"sort", "reverse= case_sensitive= attribute=", f_sort},
    {"unique", "case_sensitive= attribute=", f_unique},
    {"groupby", "attribute default= case_sensitive=", f_groupby},
    {"dictsort", "case_sensitive= by= reverse=", f_dictsort},
    {"items", "", f_items},
    {"tojson", "ensure_ascii= indent= separators= sort_keys=", f_tojson},
    {"pprint", "", f_pprint},
    {"random", "", f_random},
};

static const qn_jfilter *find_filter(const char *name)
{
    size_t n = 0;
    const qn_jfilter *more = qn_jinja_text_filters(&n);
    for (size_t i = 0; i < QN_LEN(filters); i++)
        if (!strcmp(name, filters[i].name)) return &filters[i];
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, more[i].name)) return &more[i];
    return NULL;
}

bool qn_jinja_has_filter(const char *name) { return find_filter(name) != NULL; }

qn_jv qn_jinja_filter(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS] = {qn_jv_given()};
    const qn_jfilter *f = find_filter(name);
    if (!qn_jinja_enter(r)) return v;
    if (!f)
        v = qn_jinja_fail(r, QN_E_FORMAT, "no filter is named '%s'", name);
    else if (!f->sig || qn_jinja_bind(r, name, f->sig, a, x))
        v = f->fn(r, v, x, a);
    qn_jinja_leave(r);
    return v;
}
