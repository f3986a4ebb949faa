/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_filter.c - filters that work on sequences and scalars. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja_int.h"

/* A path such as "function.name" or an index; v itself where path is no string or number. */
static qn_jv path_of(qn_jrun *r, qn_jv v, qn_jv path)
{
    if (path.type == QN_JV_INT) return qn_jinja_item(r, v, path);
    if (path.type != QN_JV_STR) return v;
    for (const char *s = path.u.s, *end = s + path.n; s < end && r->rc == QN_OK;) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        const size_t n = dot ? (size_t)(dot - s) : (size_t)(end - s);
        if (n && n < 10 && strspn(s, "0123456789") >= n)
            v = qn_jinja_item(r, v, qn_jv_int(strtol(s, NULL, 10)));
        else
            v = qn_jinja_item(r, v, qn_jv_str(r, s, n));
        s += n + 1;
    }
    return v;
}

static qn_jv folded(qn_jrun *r, qn_jv v, bool sensitive)
{
    return v.type == QN_JV_STR && !sensitive ? qn_jinja_case(r, v, 'l') : v;
}

/* A stable merge sort of pairs key, value. */
static void sort_pairs(qn_jrun *r, qn_jv *p, qn_jv *spare, size_t n, bool reverse)
{
    for (size_t w = 1; w < n && r->rc == QN_OK; w *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * w) {
            const size_t mid = lo + w < n ? lo + w : n, hi = lo + 2 * w < n ? lo + 2 * w : n;
            size_t i = lo, j = mid;
            for (size_t k = lo; k < hi; k++) {
                int order = 0;
                if (i < mid && j < hi && qn_jinja_step(r, 1))
                    order = qn_jv_order(r, p[2 * i], p[2 * j]);
                const bool left = j >= hi || (i < mid && (reverse ? order >= 0 : order <= 0));
                memcpy(spare + 2 * k, p + 2 * (left ? i++ : j++), 2 * sizeof *p);
            }
        }
        memcpy(p, spare, 2 * n * sizeof *p);
    }
}

static qn_jv sorted(qn_jrun *r, const qn_jlist *l, qn_jv path, bool sensitive, bool reverse)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    const size_t n = l ? l->n : 0;
    if (!n || r->rc != QN_OK) return out;
    qn_jv *p = QN_ARENA_NEW(&r->arena, qn_jv, 2 * n),
          *spare = QN_ARENA_NEW(&r->arena, qn_jv, 2 * n);
    if (!p || !spare) return qn_jinja_fail(r, QN_E_LIMIT, "no memory to sort in");
    for (size_t i = 0; i < n && r->rc == QN_OK; i++) {
        p[2 * i] = folded(r, path_of(r, l->v[i], path), sensitive);
        p[2 * i + 1] = l->v[i];
    }
    sort_pairs(r, p, spare, n, reverse);
    for (size_t i = 0; i < n && r->rc == QN_OK; i++) qn_jv_push(r, out, p[2 * i + 1]);
    return out;
}

static qn_jv f_sort(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const bool reverse = qn_jv_true(qn_jinja_arg(a, 0, "reverse", qn_jv_bool(false)));
    const bool sensitive = qn_jv_true(qn_jinja_arg(a, 1, "case_sensitive", qn_jv_bool(false)));
    return sorted(r, qn_jv_iter(r, v), qn_jinja_arg(a, 2, "attribute", qn_jv_none()), sensitive,
                  reverse);
}

static qn_jv pair(qn_jrun *r, qn_jv key, qn_jv v)
{
    const qn_jv p = qn_jv_list(r, QN_JV_TUPLE, 2);
    qn_jv_push(r, p, key);
    qn_jv_push(r, p, v);
    return p;
}

static qn_jv f_items(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    if (v.type == QN_JV_UNDEF) return out;
    if (v.type != QN_JV_DICT)
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s has no items", qn_jv_type(v));
    for (size_t i = 0; i < v.u.dict->n && r->rc == QN_OK; i++)
        qn_jv_push(r, out, pair(r, v.u.dict->kv[2 * i], v.u.dict->kv[2 * i + 1]));
    return out;
}

static qn_jv f_dictsort(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const bool sensitive = qn_jv_true(qn_jinja_arg(a, 0, "case_sensitive", qn_jv_bool(false)));
    const qn_jv by = qn_jinja_arg(a, 1, "by", qn_jv_z("key"));
    const bool reverse = qn_jv_true(qn_jinja_arg(a, 2, "reverse", qn_jv_bool(false)));
    const qn_jv items = f_items(r, v, a);
    const bool value = by.type == QN_JV_STR && !strcmp(by.u.s, "value");
    return r->rc == QN_OK ? sorted(r, items.u.list, qn_jv_int(value), sensitive, reverse) : v;
}

static qn_jv f_unique(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const bool sensitive = qn_jv_true(qn_jinja_arg(a, 0, "case_sensitive", qn_jv_bool(false)));
    const qn_jv path = qn_jinja_arg(a, 1, "attribute", qn_jv_none());
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0), seen = qn_jv_list(r, QN_JV_LIST, 0);
    const qn_jlist *l = qn_jv_iter(r, v);
    for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++) {
        const qn_jv key = folded(r, path_of(r, l->v[i], path), sensitive);
        if (qn_jv_in(r, key, seen)) continue;
        qn_jv_push(r, seen, key);
        qn_jv_push(r, out, l->v[i]);
    }
    return out;
}

static qn_jv f_groupby(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv path = qn_jinja_arg(a, 0, "attribute", qn_jv_none());
    const qn_jv all = sorted(r, qn_jv_iter(r, v), path, false, false);
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    qn_jv group = qn_jv_undef(NULL), last = group;
    for (size_t i = 0; r->rc == QN_OK && i < all.u.list->n; i++) {
        const qn_jv item = all.u.list->v[i], name = path_of(r, item, path);
        const qn_jv key = folded(r, name, false);
        if (!i || !qn_jv_equal(r, key, last)) {
            group = qn_jv_list(r, QN_JV_LIST, 0);
            qn_jv_push(r, out, pair(r, name, group));
        }
        last = key;
        qn_jv_push(r, group, item);
    }
    return out;
}

static qn_jv f_map(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    const qn_jv path = qn_jinja_arg(a, SIZE_MAX, "attribute", qn_jv_none());
    const qn_jv other = qn_jinja_arg(a, SIZE_MAX, "default", qn_jv_undef(NULL));
    const qn_jlist *l = qn_jv_true(v) ? qn_jv_iter(r, v) : NULL;
    if (!a->n && path.type == QN_JV_NONE)
        return qn_jinja_fail(r, QN_E_FORMAT, "map takes a filter or attribute");
    if (a->n && a->v[0].type != QN_JV_STR)
        return qn_jinja_fail(r, QN_E_FORMAT, "map takes the name of a filter");
    qn_jargs rest = *a;
    if (a->n) {
        rest.v++;
        rest.n--;
    }
    for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++) {
        qn_jv x =
            a->n ? qn_jinja_filter(r, a->v[0].u.s, l->v[i], &rest) : path_of(r, l->v[i], path);
        if (!a->n && x.type == QN_JV_UNDEF && other.type != QN_JV_UNDEF) x = other;
        qn_jv_push(r, out, x);
    }
    return out;
}

static qn_jv picked(qn_jrun *r, qn_jv v, const qn_jargs *a, bool attr, bool want)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    const qn_jlist *l = qn_jv_true(v) ? qn_jv_iter(r, v) : NULL; /* none is like nothing here */
    const size_t skip = attr ? 1 : 0;
    if (a->n < skip) return qn_jinja_fail(r, QN_E_FORMAT, "selectattr takes an attribute");
    const bool test = a->n > skip;
    if (test && a->v[skip].type != QN_JV_STR)
        return qn_jinja_fail(r, QN_E_FORMAT, "select takes the name of a test");
    const qn_jargs rest = {.v = test ? a->v + skip + 1 : NULL, .n = test ? a->n - skip - 1 : 0};
    for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++) {
        const qn_jv x = attr ? path_of(r, l->v[i], a->v[0]) : l->v[i];
        const bool is = test ? qn_jinja_test(r, a->v[skip].u.s, x, &rest) : qn_jv_true(x);
        if (is == want) qn_jv_push(r, out, l->v[i]);
    }
    return out;
}

static qn_jv f_select(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    return picked(r, v, a, false, true);
}
static qn_jv f_reject(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    return picked(r, v, a, false, false);
}
static qn_jv f_selectattr(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    return picked(r, v, a, true, true);
}
static qn_jv f_rejectattr(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    return picked(r, v, a, true, false);
}

static qn_jv f_default(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)r;
    const bool falsy = qn_jv_true(qn_jinja_arg(a, 1, "boolean", qn_jv_bool(false)));
    return v.type == QN_JV_UNDEF || (falsy && !qn_jv_true(v))
               ? qn_jinja_arg(a, 0, "default_value", qn_jv_z(""))
               : v;
}

static qn_jv f_join(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv sep = qn_jv_text(r, qn_jinja_arg(a, 0, "d", qn_jv_z("")));
    const qn_jv path = qn_jinja_arg(a, 1, "attribute", qn_jv_none());
    const qn_jlist *l = qn_jv_iter(r, v);
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; l && i < l->n && qn_jinja_step(r, 1); i++) {
        if (i) qn_jinja_bytes(r, &b, sep.u.s, sep.n);
        const qn_jv x = path_of(r, l->v[i], path);
        if (r->rc == QN_OK) qn_jv_write(r, &b, x, false);
    }
    return qn_jv_take(r, &b);
}

static qn_jv f_length(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    return qn_jv_int(qn_jv_len(r, v));
}
static qn_jv f_first(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    const qn_jlist *l = qn_jv_iter(r, v);
    return l && l->n ? l->v[0] : qn_jv_undef("the first element");
}
static qn_jv f_last(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    const qn_jlist *l = qn_jv_iter(r, v);
    return l && l->n ? l->v[l->n - 1] : qn_jv_undef("the last element");
}
static qn_jv f_list(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    const qn_jlist *l = qn_jv_iter(r, v);
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++) qn_jv_push(r, out, l->v[i]);
    return out;
}
static qn_jv f_reverse(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv at[3] = {qn_jv_none(), qn_jv_none(), qn_jv_int(-1)};
    return qn_jv_slice(r, v.type == QN_JV_STR ? v : f_list(r, v, a), at);
}
static qn_jv f_string(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    return qn_jv_text(r, v);
}

static qn_jv f_int(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv other = qn_jinja_arg(a, 0, "default", qn_jv_int(0));
    if (v.type == QN_JV_INT || v.type == QN_JV_BOOL) return qn_jv_int(v.u.i);
    if (v.type == QN_JV_STR) {
        char *end = NULL;
        const int64_t base = qn_jinja_int_arg(r, a, 1, "base", 10);
        const qn_jv s = qn_jinja_strip(r, v, qn_jv_none(), 3);
        const long long i = r->rc == QN_OK && s.n && s.n < 19 && base >= 2 && base <= 36
                                ? strtoll(s.u.s, &end, (int)base)
                                : 0;
        if (end && end == s.u.s + s.n) return qn_jv_int(i);
        v = qn_jv_real(r->rc == QN_OK && s.n ? strtod(s.u.s, &end) : 0.0);
        if (!end || end != s.u.s + s.n) return other;
    }
    return v.type == QN_JV_REAL && fabs(v.u.d) < 9e18 ? qn_jv_int((int64_t)v.u.d) : other;
}

static qn_jv f_float(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv other = qn_jinja_arg(a, 0, "default", qn_jv_real(0));
    if (qn_jv_is_num(v)) return qn_jv_real(qn_jv_num(v));
    if (v.type != QN_JV_STR) return other;
    char *end = NULL;
    const qn_jv s = qn_jinja_strip(r, v, qn_jv_none(), 3);
    const double d = r->rc == QN_OK ? strtod(s.u.s, &end) : 0;
    return s.n && end == s.u.s + s.n ? qn_jv_real(d) : other;
}

static qn_jv f_abs(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    (void)a;
    if (v.type == QN_JV_REAL) return qn_jv_real(fabs(v.u.d));
    if (!qn_jv_is_num(v)) return qn_jinja_fail(r, QN_E_FORMAT, "abs of a %s", qn_jv_type(v));
    return v.u.i < 0 ? qn_jinja_binary(r, '-', qn_jv_int(0), v) : qn_jv_int(v.u.i);
}

static qn_jv f_round(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const int64_t digits = qn_jinja_int_arg(r, a, 0, "precision", 0);
    const qn_jv how = qn_jinja_arg(a, 1, "method", qn_jv_z("common"));
    if (!qn_jv_is_num(v) || how.type != QN_JV_STR || digits > 15 || digits < -15)
        return qn_jinja_fail(r, QN_E_FORMAT, "round of a %s", qn_jv_type(v));
    const double scale = pow(10, (double)digits), x = qn_jv_num(v) * scale;
    const char m = how.u.s[0] == 'c' ? how.u.s[1] : how.u.s[0];
    return qn_jv_real((m == 'e' ? ceil(x) : m == 'f' ? floor(x) : nearbyint(x)) / scale);
}

static qn_jv extreme(qn_jrun *r, qn_jv v, const qn_jargs *a, int sign)
{
    const bool sensitive = qn_jv_true(qn_jinja_arg(a, 0, "case_sensitive", qn_jv_bool(false)));
    const qn_jv path = qn_jinja_arg(a, 1, "attribute", qn_jv_none());
    const qn_jlist *l = qn_jv_iter(r, v);
    qn_jv best = qn_jv_undef("the extreme of nothing"), best_key = best;
    for (size_t i = 0; l && i < l->n && qn_jinja_step(r, 1); i++) {
        const qn_jv key = folded(r, path_of(r, l->v[i], path), sensitive);
        if (i && r->rc == QN_OK && qn_jv_order(r, key, best_key) * sign <= 0) continue;
        best = l->v[i];
        best_key = key;
    }
    return best;
}
static qn_jv f_min(qn_jrun *r, qn_jv v, const qn_jargs *a) { return extreme(r, v, a, -1); }
static qn_jv f_max(qn_jrun *r, qn_jv v, const qn_jargs *a) { return extreme(r, v, a, 1); }

static qn_jv f_sum(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv path = qn_jinja_arg(a, 0, "attribute", qn_jv_none());
    qn_jv sum = qn_jinja_arg(a, 1, "start", qn_jv_int(0));
    const qn_jlist *l = qn_jv_iter(r, v);
    for (size_t i = 0; l && i < l->n && qn_jinja_step(r, 1); i++)
        sum = qn_jinja_binary(r, '+', sum, path_of(r, l->v[i], path));
    return sum;
}

static qn_jv f_batch(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const int64_t n = qn_jinja_int_arg(r, a, 0, "linecount", 1);
    const qn_jv fill = qn_jinja_arg(a, 1, "fill_with", qn_jv_none());
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    const qn_jlist *l = qn_jv_iter(r, v);
    qn_jv row = out;
    for (size_t i = 0; l && n > 0 && i < l->n && r->rc == QN_OK; i++) {
        if (i % (size_t)n == 0) qn_jv_push(r, out, row = qn_jv_list(r, QN_JV_LIST, 0));
        if (r->rc == QN_OK) qn_jv_push(r, row, l->v[i]);
    }
    while (l && l->n && n > 0 && fill.type != QN_JV_NONE && r->rc == QN_OK &&
           row.u.list->n < (size_t)n)
        qn_jv_push(r, row, fill);
    return out;
}

static qn_jv f_attr(qn_jrun *r, qn_jv v, const qn_jargs *a)
{
    const qn_jv name = qn_jinja_arg(a, 0, "name", qn_jv_none());
    if (name.type != QN_JV_STR) return qn_jinja_fail(r, QN_E_FORMAT, "attr takes a name");
    return v.type == QN_JV_DICT && !qn_jinja_has_method(v, name.u.s)
               ? qn_jv_undef(name.u.s)
               : qn_jinja_attr(r, v, name.u.s);
}

typedef qn_jv filter_fn(qn_jrun *r, qn_jv v, const qn_jargs *a);

qn_jv qn_jinja_filter(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a)
{
    static const struct {
        const char *name;
        filter_fn *fn;
    } filters[] = {
        {"default", f_default},
        {"d", f_default},
        {"join", f_join},
        {"length", f_length},
        {"count", f_length},
        {"first", f_first},
        {"last", f_last},
        {"list", f_list},
        {"reverse", f_reverse},
        {"string", f_string},
        {"int", f_int},
        {"float", f_float},
        {"abs", f_abs},
        {"round", f_round},
        {"min", f_min},
        {"max", f_max},
        {"sum", f_sum},
        {"batch", f_batch},
        {"attr", f_attr},
        {"map", f_map},
        {"select", f_select},
        {"reject", f_reject},
        {"sort", f_sort},
        {"selectattr", f_selectattr},
        {"rejectattr", f_rejectattr},
        {"unique", f_unique},
        {"groupby", f_groupby},
        {"dictsort", f_dictsort},
        {"items", f_items},
        {"tojson", qn_jinja_tojson},
    };
    static const char *const texts[] = {"trim",    "upper",  "lower",     "title",    "capitalize",
                                        "replace", "indent", "wordcount", "escape",   "e",
                                        "safe",    "format", "center",    "truncate", "urlencode"};
    char method[32] = "|"; /* filters of text live among the methods of strings */
    if (!qn_jinja_step(r, 1)) return v;
    for (size_t i = 0; i < QN_LEN(filters); i++)
        if (!strcmp(name, filters[i].name)) return filters[i].fn(r, v, a);
    for (size_t i = 0; i < QN_LEN(texts); i++)
        if (!strcmp(name, texts[i])) {
            memcpy(method + 1, name, strlen(name) + 1);
            const qn_jv text = qn_jv_text(r, v);
            if (!strcmp(name, "format")) {
                const qn_jv t = {.type = QN_JV_TUPLE, .u.list = &(qn_jlist){.v = a->v, .n = a->n}};
                return r->rc == QN_OK ? qn_jinja_format(r, text, t) : v;
            }
            return r->rc == QN_OK ? qn_jinja_method(r, text, method, a) : v;
        }
    return qn_jinja_fail(r, QN_E_FORMAT, "no filter is named '%s'", name);
}
