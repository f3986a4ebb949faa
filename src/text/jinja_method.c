/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_method.c - attributes and methods of values other than strings, and how arguments bind. What
 * would change a list or dict is there, as in the sandbox, but may not be used. */
#include <math.h>
#include <string.h>

#include "text/jinja_int.h"

static bool bind_name(const char **sig, const char **name, size_t *n, bool *optional, char *mark)
{
    const char *s = *sig;
    while (*s == ' ') s++;
    *name = s;
    *mark = *s == '/' || *s == '!' ? *s : 0;
    while (*s && *s != ' ') s++;
    *optional = s > *name && s[-1] == '=';
    *n = (size_t)(s - *name) - (*optional ? 1 : 0);
    *sig = s;
    return *n > 0;
}

bool qn_jinja_bind(qn_jrun *r, const char *who, const char *sig, const qn_jargs *a, qn_jv *x)
{
    const bool by_place_only = strchr(sig, '/') != NULL;
    const char *name = NULL;
    size_t n = 0, i = 0, used = 0;
    bool optional = false;
    char mark = 0;
    if (r->rc != QN_OK) return false;
    while (bind_name(&sig, &name, &n, &optional, &mark)) {
        if (mark) continue;
        x[i] = i < a->n ? a->v[i] : qn_jv_given();
        for (size_t k = 0; k < a->n_named && !by_place_only; k++) {
            if (strlen(a->name[k]) != n || memcmp(a->name[k], name, n)) continue;
            if (i < a->n)
                qn_jinja_fail(r, QN_E_FORMAT, "%s got multiple values for argument '%s'", who,
                              a->name[k]);
            x[i] = a->named[k];
            used++;
        }
        if (!optional && !qn_jv_is_given(x[i]))
            qn_jinja_fail(r, QN_E_FORMAT, "%s misses the argument '%.*s'", who, (int)n, name);
        i++;
    }
    if (a->n > i)
        qn_jinja_fail(r, QN_E_FORMAT, "%s takes at most %zu arguments, found %zu", who, i, a->n);
    if (used < a->n_named)
        qn_jinja_fail(r, QN_E_FORMAT, "%s got an argument by a name that it does not take", who);
    return r->rc == QN_OK;
}

int64_t qn_jinja_int_of(qn_jrun *r, qn_jv v, int64_t other)
{
    if (!qn_jv_is_given(v)) return other;
    if (qn_jv_is_int(v)) return v.u.i;
    if (v.type == QN_JV_UNDEF)
        qn_jinja_undefined(r, v);
    else
        qn_jinja_fail(r, QN_E_FORMAT, "an argument is an integer, found %s", qn_jv_type(v));
    return other;
}

bool qn_jinja_true_of(qn_jv v, bool other) { return qn_jv_is_given(v) ? qn_jv_true(v) : other; }

static qn_jv bound(qn_jrun *r, qn_jv v, const char *name)
{
    qn_jbound *b = QN_JNEW(r, qn_jbound, 1);
    if (!b) return qn_jv_undef(NULL);
    const qn_jv copy = qn_jv_str(r, name, strlen(name));
    *b = (qn_jbound){.self = v, .name = copy.type == QN_JV_STR ? copy.u.s : ""};
    return (qn_jv){.type = QN_JV_METHOD, .u.bound = b};
}

static qn_jv unsafe(qn_jv v, const char *name)
{
    return (qn_jv){.type = QN_JV_UNDEF, .flag = QN_JU_UNSAFE, .n = v.type, .u.s = name};
}

/* Numbers have a few parts that are values. */
static qn_jv number_part(qn_jv v, const char *name, bool *found)
{
    const bool real = v.type == QN_JV_REAL;
    *found = true;
    if (!strcmp(name, "real") || (!real && !strcmp(name, "numerator")))
        return real ? v : qn_jv_int(v.u.i);
    if (!strcmp(name, "imag")) return real ? qn_jv_real(0) : qn_jv_int(0);
    if (!real && !strcmp(name, "denominator")) return qn_jv_int(1);
    *found = false;
    return v;
}

static const char *methods_of(qn_jv v)
{
    switch (v.type) {
    case QN_JV_DICT:
        return "items keys values get copy";
    case QN_JV_LIST:
        return "index count copy";
    case QN_JV_TUPLE:
    case QN_JV_RANGE:
        return "index count";
    case QN_JV_BOOL:
    case QN_JV_INT:
        return "bit_length bit_count conjugate";
    case QN_JV_REAL:
        return "is_integer conjugate";
    case QN_JV_LOOP:
        return "cycle changed";
    case QN_JV_CYCLER:
        return "next reset";
    default:
        return "";
    }
}

static qn_jv macro_part(qn_jrun *r, const qn_jnode *n, const char *name, bool *found)
{
    *found = true;
    if (!strcmp(name, "name")) return n->s ? qn_jv_z(n->s) : qn_jv_none();
    if (!strcmp(name, "catch_kwargs")) return qn_jv_bool(n->kwargs);
    if (!strcmp(name, "catch_varargs")) return qn_jv_bool(n->varargs);
    if (!strcmp(name, "caller")) return qn_jv_bool(n->caller);
    if (strcmp(name, "arguments") && strcmp(name, "explicit_caller")) {
        *found = false;
        return qn_jv_none();
    }
    const qn_jv all = qn_jv_list(r, QN_JV_TUPLE, 0);
    bool caller = false;
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next) {
        qn_jv_push(r, all, qn_jv_z(x->s));
        caller |= !strcmp(x->s, "caller");
    }
    return *name == 'a' ? all : qn_jv_bool(caller);
}

qn_jv qn_jinja_member(qn_jrun *r, qn_jv v, const char *name, bool *found)
{
    static const char changes_list[] = "append clear pop reverse insert sort extend remove";
    static const char changes_dict[] = "clear pop popitem setdefault update";
    *found = true;
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_STR && (!strcmp(name, "striptags") || !strcmp(name, "escape")) && !v.flag) {
        *found = false;
        return v;
    }
    if (v.type == QN_JV_STR ? qn_jinja_has_str_method(name)
                            : qn_jinja_is_one_of(name, methods_of(v)))
        return bound(r, v, name);
    if ((v.type == QN_JV_LIST && qn_jinja_is_one_of(name, changes_list)) ||
        (v.type == QN_JV_DICT && qn_jinja_is_one_of(name, changes_dict)) ||
        (name[0] == '_' && name[1] == '_' &&
         qn_jinja_is_one_of(name,
                            "__class__ __init__ __doc__ __eq__ __dict__ __repr__ __str__ __hash__ "
                            "__new__ __reduce__ __getattribute__ __subclasshook__ __dir__")))
        return unsafe(v, name);
    if (v.type == QN_JV_TUPLE && v.flag == 'g' &&
        (!strcmp(name, "grouper") || !strcmp(name, "list")))
        return v.u.list->v[*name == 'l'];
    if (qn_jv_is_num(v)) return number_part(v, name, found);
    if (v.type == QN_JV_LOOP) return qn_jloop_attr(r, v.u.loop, name, found);
    if (v.type == QN_JV_MACRO) return macro_part(r, v.u.macro->node, name, found);
    if (v.type == QN_JV_RANGE && qn_jinja_is_one_of(name, "start stop step"))
        return qn_jv_int(name[2] == 'a'   ? v.u.range->start
                         : name[2] == 'o' ? v.u.range->stop
                                          : v.u.range->step);
    if (v.type == QN_JV_CYCLER && !strcmp(name, "current"))
        return v.u.cycle->items->v[v.u.cycle->at % v.u.cycle->items->n];
    if (v.type == QN_JV_CYCLER && !strcmp(name, "pos")) return qn_jv_int((int64_t)v.u.cycle->at);
    if (v.type == QN_JV_CYCLER && !strcmp(name, "items"))
        return (qn_jv){.type = QN_JV_TUPLE, .u.list = v.u.cycle->items};
    if (v.type == QN_JV_JOINER && !strcmp(name, "sep")) return v.u.cycle->sep;
    if (v.type == QN_JV_JOINER && !strcmp(name, "used")) return qn_jv_bool(v.u.cycle->at != 0);
    *found = false;
    return v;
}

static qn_jv dict_method(qn_jrun *r, qn_jv v, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    if (!strcmp(name, "get")) {
        if (!qn_jinja_bind(r, name, "key default= /", a, x)) return v;
        const qn_jv *at = qn_jv_find(r, v, x[0]);
        return at ? *at : qn_jv_is_given(x[1]) ? x[1] : qn_jv_none();
    }
    if (!qn_jinja_bind(r, name, "", a, x)) return v;
    if (*name == 'c') {
        const qn_jv out = qn_jv_dict(r, QN_JV_DICT);
        for (size_t i = 0; i < v.u.dict->n && r->rc == QN_OK; i++)
            qn_jv_put(r, out, v.u.dict->kv[2 * i], v.u.dict->kv[2 * i + 1]);
        return out;
    }
    v.type = QN_JV_VIEW;
    v.flag = (uint8_t)*name;
    return v;
}

static qn_jv seq_method(qn_jrun *r, qn_jv v, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS], e;
    qn_jit it;
    if (!strcmp(name, "copy"))
        return qn_jinja_bind(r, name, "", a, x)
                   ? (qn_jv){.type = QN_JV_LIST, .u.list = qn_jv_all(r, v)}
                   : v;
    const bool index = *name == 'i';
    if (!qn_jinja_bind(r, name, index && v.type != QN_JV_RANGE ? "value start= stop= /" : "value /",
                       a, x))
        return v;
    int64_t n = 0, at = 0, begin = 0, end = INT64_MAX;
    const int64_t len = qn_jv_len(r, v);
    if (index && v.type != QN_JV_RANGE) {
        begin = qn_jinja_int_of(r, x[1], 0);
        end = qn_jinja_int_of(r, x[2], INT64_MAX);
        begin = begin < 0 ? (begin + len < 0 ? 0 : begin + len) : begin;
        end = end < 0 ? end + len : end;
    }
    if (!qn_jit_begin(r, &it, v)) return v;
    for (; qn_jit_next(r, &it, &e); at++) {
        if (at < begin || at >= end || !(qn_jv_same(e, x[0]) || qn_jv_equal(r, e, x[0]))) continue;
        if (index) return qn_jv_int(at);
        n++;
    }
    if (r->rc != QN_OK || !index) return qn_jv_int(n);
    return qn_jinja_fail(r, QN_E_FORMAT, "the value is not in the %s", qn_jv_type(v));
}

static qn_jv number_method(qn_jrun *r, qn_jv v, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    if (!qn_jinja_bind(r, name, "", a, x)) return v;
    if (!strcmp(name, "is_integer")) return qn_jv_bool(isfinite(v.u.d) && floor(v.u.d) == v.u.d);
    if (!strcmp(name, "conjugate")) return v.type == QN_JV_REAL ? v : qn_jv_int(v.u.i);
    const uint64_t u = v.u.i < 0 ? 0 - (uint64_t)v.u.i : (uint64_t)v.u.i;
    if (!strcmp(name, "bit_count")) return qn_jv_int(__builtin_popcountll(u));
    return qn_jv_int(u ? 64 - __builtin_clzll(u) : 0);
}

static qn_jv loop_method(qn_jrun *r, qn_jloop *l, const char *name, const qn_jargs *a)
{
    if (a->n_named) return qn_jinja_fail(r, QN_E_FORMAT, "%s takes no named arguments", name);
    if (!strcmp(name, "cycle")) {
        if (!a->n) return qn_jinja_fail(r, QN_E_FORMAT, "no items for cycling given");
        return a->v[(uint64_t)l->at % a->n];
    }
    const qn_jv now = qn_jv_list(r, QN_JV_TUPLE, a->n);
    for (size_t i = 0; i < a->n && r->rc == QN_OK; i++) qn_jv_push(r, now, a->v[i]);
    if (r->rc == QN_OK && l->has_last && qn_jv_equal(r, l->last, now)) return qn_jv_bool(false);
    l->last = now;
    l->has_last = true;
    return qn_jv_bool(true);
}

static qn_jv cycler_method(qn_jrun *r, qn_jcycle *c, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    if (!qn_jinja_bind(r, name, "", a, x)) return qn_jv_none();
    const size_t at = c->at;
    c->at = *name == 'n' ? (at + 1) % c->items->n : 0;
    return *name == 'n' ? c->items->v[at] : qn_jv_none();
}

qn_jv qn_jinja_method(qn_jrun *r, const qn_jbound *m, const qn_jargs *a)
{
    const qn_jv v = m->self;
    if (r->rc != QN_OK) return v;
    switch (v.type) {
    case QN_JV_STR:
        return qn_jinja_str_method(r, v, m->name, a);
    case QN_JV_DICT:
        return dict_method(r, v, m->name, a);
    case QN_JV_LOOP:
        return loop_method(r, v.u.loop, m->name, a);
    case QN_JV_CYCLER:
        return cycler_method(r, v.u.cycle, m->name, a);
    case QN_JV_BOOL:
    case QN_JV_INT:
    case QN_JV_REAL:
        return number_method(r, v, m->name, a);
    default:
        return seq_method(r, v, m->name, a);
    }
}
