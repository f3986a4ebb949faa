/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_eval.c - expressions are evaluated. */
#include <math.h>
#include <string.h>

#include "text/jinja_int.h"

qn_jv qn_jinja_arg(const qn_jargs *a, size_t i, const char *name, qn_jv other)
{
    if (i < a->n) return a->v[i];
    for (size_t k = 0; k < a->n_named; k++)
        if (!strcmp(a->name[k], name)) return a->named[k];
    return other;
}

int64_t qn_jinja_int_arg(qn_jrun *r, const qn_jargs *a, size_t i, const char *name, int64_t other)
{
    const qn_jv v = qn_jinja_arg(a, i, name, qn_jv_int(other));
    if (v.type == QN_JV_INT || v.type == QN_JV_BOOL) return v.u.i;
    if (v.type == QN_JV_NONE) return other;
    qn_jinja_fail(r, QN_E_FORMAT, "%s is an integer, found %s", name, qn_jv_type(v));
    return other;
}

static void name_arg(qn_jrun *r, qn_jv dict, qn_jv key, qn_jv v)
{
    if (key.type == QN_JV_STR)
        qn_jv_put(r, dict, key, v);
    else
        qn_jinja_fail(r, QN_E_FORMAT, "the name of an argument is a %s", qn_jv_type(key));
}

qn_jargs qn_jinja_args(qn_jrun *r, const qn_jnode *list)
{
    qn_jargs a = {0};
    if (!list) return a;
    const qn_jv pos = qn_jv_list(r, QN_JV_LIST, 0), named = qn_jv_dict(r, QN_JV_DICT);
    for (const qn_jnode *x = list; x && r->rc == QN_OK; x = x->next) {
        const qn_jv v = qn_jinja_eval(r, x->a);
        if (r->rc != QN_OK) break;
        if (x->s) {
            name_arg(r, named, qn_jv_z(x->s), v);
        } else if (x->op == '*') {
            const qn_jlist *l = qn_jv_iter(r, v);
            for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++) qn_jv_push(r, pos, l->v[i]);
        } else if (x->op == 'p') {
            if (v.type != QN_JV_DICT) qn_jinja_fail(r, QN_E_FORMAT, "** takes a dict");
            for (size_t i = 0; r->rc == QN_OK && i < v.u.dict->n; i++)
                name_arg(r, named, v.u.dict->kv[2 * i], v.u.dict->kv[2 * i + 1]);
        } else {
            qn_jv_push(r, pos, v);
        }
    }
    if (r->rc != QN_OK) return a;
    const qn_jdict *d = named.u.dict;
    a.name = QN_ARENA_NEW(&r->arena, const char *, d->n + 1);
    a.named = QN_ARENA_NEW(&r->arena, qn_jv, d->n + 1);
    if (!a.name || !a.named) {
        qn_jinja_fail(r, QN_E_NOMEM, "arguments of a template");
        return a;
    }
    a.v = pos.u.list->v;
    a.n = pos.u.list->n;
    for (a.n_named = 0; a.n_named < d->n; a.n_named++) {
        a.name[a.n_named] = d->kv[2 * a.n_named].u.s;
        a.named[a.n_named] = d->kv[2 * a.n_named + 1];
    }
    return a;
}

static qn_jv lookup(qn_jrun *r, const char *name)
{
    for (const qn_jscope *s = r->scope; s; s = s->up)
        for (const qn_jvar *x = s->vars; x; x = x->next)
            if (!strcmp(x->name, name)) return x->v;
    if (qn_jinja_is_global(name)) return (qn_jv){.type = QN_JV_GLOBAL, .u.s = name};
    return qn_jv_undef(name);
}

static qn_jv loop_attr(const qn_jloop *l, const char *name)
{
    const size_t n = l->items->n, at = l->at;
    if (!strcmp(name, "index")) return qn_jv_int((int64_t)at + 1);
    if (!strcmp(name, "index0")) return qn_jv_int((int64_t)at);
    if (!strcmp(name, "revindex")) return qn_jv_int((int64_t)(n - at));
    if (!strcmp(name, "revindex0")) return qn_jv_int((int64_t)(n - at) - 1);
    if (!strcmp(name, "first")) return qn_jv_bool(at == 0);
    if (!strcmp(name, "last")) return qn_jv_bool(at + 1 == n);
    if (!strcmp(name, "length")) return qn_jv_int((int64_t)n);
    if (!strcmp(name, "depth")) return qn_jv_int(l->depth);
    if (!strcmp(name, "depth0")) return qn_jv_int(l->depth - 1);
    if (!strcmp(name, "previtem")) return at ? l->items->v[at - 1] : qn_jv_undef("previtem");
    if (!strcmp(name, "nextitem"))
        return at + 1 < n ? l->items->v[at + 1] : qn_jv_undef("nextitem");
    return qn_jv_undef(name);
}

static qn_jv undefined_in(qn_jrun *r, qn_jv v)
{
    return qn_jinja_fail(r, QN_E_FORMAT, "%s is undefined", v.u.s ? v.u.s : "a value");
}

qn_jv qn_jinja_attr(qn_jrun *r, qn_jv v, const char *name)
{
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_UNDEF) return undefined_in(r, v);
    if (qn_jinja_has_method(v, name)) {
        qn_jbound *b = QN_ARENA_NEW(&r->arena, qn_jbound, 1);
        if (!b) return qn_jinja_fail(r, QN_E_NOMEM, "values of a template");
        *b = (qn_jbound){.self = v, .name = name};
        return (qn_jv){.type = QN_JV_METHOD, .u.bound = b};
    }
    if (v.type == QN_JV_DICT || v.type == QN_JV_SPACE) {
        const qn_jv *x = qn_jv_find(r, v, qn_jv_z(name));
        return x ? *x : qn_jv_undef(name);
    }
    if (v.type == QN_JV_LOOP) return loop_attr(v.u.loop, name);
    if (v.type == QN_JV_MACRO && !strcmp(name, "name")) return qn_jv_z(v.u.macro->node->s);
    if (v.type == QN_JV_CYCLER && !strcmp(name, "current")) {
        const qn_jcycle *c = v.u.cycle;
        return c->items->v[c->at % c->items->n];
    }
    return qn_jv_undef(name);
}

qn_jv qn_jinja_item(qn_jrun *r, qn_jv v, qn_jv key)
{
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_UNDEF) return undefined_in(r, v);
    if (v.type == QN_JV_DICT) {
        const qn_jv *x = qn_jv_find(r, v, key);
        if (x) return *x;
        return key.type == QN_JV_STR ? qn_jinja_attr(r, v, key.u.s) : qn_jv_undef("a key");
    }
    if ((key.type == QN_JV_INT || key.type == QN_JV_BOOL) &&
        (v.type == QN_JV_STR || qn_jv_is_seq(v))) {
        const int64_t n = qn_jv_len(r, v), i = key.u.i < 0 ? key.u.i + n : key.u.i;
        if (i < 0 || i >= n) return qn_jv_undef("an element");
        if (v.type != QN_JV_STR) return v.u.list->v[i];
        const qn_jlist *l = qn_jv_iter(r, v);
        return l ? l->v[i] : qn_jv_undef(NULL);
    }
    return key.type == QN_JV_STR ? qn_jinja_attr(r, v, key.u.s) : qn_jv_undef("an element");
}

static qn_jv call_loop(qn_jrun *r, const qn_jloop *l, const qn_jargs *a)
{
    if (!l->node->i || a->n != 1)
        return qn_jinja_fail(r, QN_E_FORMAT, "this loop is not recursive");
    if (r->calls >= r->max_calls)
        return qn_jinja_fail(r, QN_E_LIMIT, "more than %u calls inside each other", r->max_calls);
    qn_buf b, *out = r->out;
    qn_buf_init(&b, r->max_output);
    r->out = &b;
    r->calls++;
    qn_jinja_loop(r, l->node, a->v[0], l->scope, l->depth + 1);
    r->calls--;
    r->out = out;
    return qn_jv_take(r, &b);
}

qn_jv qn_jinja_call(qn_jrun *r, qn_jv f, const qn_jargs *a)
{
    if (!qn_jinja_step(r, 1)) return qn_jv_undef(NULL);
    switch (f.type) {
    case QN_JV_UNDEF:
        return undefined_in(r, f);
    case QN_JV_MACRO:
        return qn_jinja_call_macro(r, f.u.macro, a);
    case QN_JV_GLOBAL:
        return qn_jinja_global(r, f.u.s, a);
    case QN_JV_LOOP:
        return call_loop(r, f.u.loop, a);
    case QN_JV_JOINER:
        return f.u.cycle->at++ ? f.u.cycle->sep : qn_jv_z("");
    case QN_JV_METHOD: {
        const qn_jbound *b = f.u.bound;
        if (b->self.type == QN_JV_LOOP) {
            qn_jloop *l = b->self.u.loop;
            if (!strcmp(b->name, "cycle") && a->n) return a->v[l->at % a->n];
            const qn_jv now = a->n ? a->v[0] : qn_jv_none();
            const bool same = l->has_last && qn_jv_equal(r, l->last, now);
            l->last = now;
            l->has_last = true;
            return qn_jv_bool(!same);
        }
        if (b->self.type == QN_JV_CYCLER) {
            qn_jcycle *c = b->self.u.cycle;
            const size_t at = c->at;
            c->at = strcmp(b->name, "reset") ? (at + 1) % c->items->n : 0;
            return strcmp(b->name, "reset") ? c->items->v[at] : qn_jv_none();
        }
        return qn_jinja_method(r, b->self, b->name, a);
    }
    default:
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be called", qn_jv_type(f));
    }
}

static qn_jv int_op(qn_jrun *r, char op, int64_t a, int64_t b)
{
    int64_t v = 0;
    bool over = false;
    switch (op) {
    case '+':
        over = __builtin_add_overflow(a, b, &v);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &v);
        break;
    case '*':
        over = __builtin_mul_overflow(a, b, &v);
        break;
    case 'f':
    case '%':
        if (!b) return qn_jinja_fail(r, QN_E_FORMAT, "division by zero");
        if (b == -1) {
            over = op == 'f' && __builtin_sub_overflow((int64_t)0, a, &v);
            break;
        }
        v = op == 'f' ? a / b - (a % b != 0 && (a < 0) != (b < 0))
                      : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        break;
    default: /* a power */
        if (b < 0)
            return a ? qn_jv_real(pow((double)a, (double)b))
                     : qn_jinja_fail(r, QN_E_FORMAT, "division by zero");
        for (v = 1; b && !over; b--) {
            if (a == 1 || a == 0 || a == -1) {
                v = a == -1 ? (b % 2 ? -1 : 1) : a;
                break;
            }
            over = __builtin_mul_overflow(v, a, &v);
        }
    }
    if (over) return qn_jinja_fail(r, QN_E_LIMIT, "an integer leaves 64 bits");
    return qn_jv_int(v);
}

static qn_jv repeat(qn_jrun *r, qn_jv v, int64_t times)
{
    if (v.type == QN_JV_STR) {
        qn_buf b;
        qn_buf_init(&b, r->max_output);
        for (int64_t i = 0; i < times && v.n && qn_jinja_step(r, 1); i++)
            qn_jinja_bytes(r, &b, v.u.s, v.n);
        return qn_jv_take(r, &b);
    }
    const qn_jv out = qn_jv_list(r, (qn_jtype)v.type, 0);
    for (int64_t i = 0; i < times && v.u.list->n && r->rc == QN_OK; i++)
        for (size_t k = 0; k < v.u.list->n && r->rc == QN_OK; k++)
            qn_jv_push(r, out, v.u.list->v[k]);
    return out;
}

static qn_jv add(qn_jrun *r, qn_jv a, qn_jv b)
{
    if (a.type == QN_JV_STR) {
        qn_buf out;
        qn_buf_init(&out, r->max_output);
        qn_jinja_bytes(r, &out, a.u.s, a.n);
        qn_jinja_bytes(r, &out, b.u.s, b.n);
        return qn_jv_take(r, &out);
    }
    const qn_jv out = qn_jv_list(r, (qn_jtype)a.type, a.u.list->n + b.u.list->n);
    for (size_t i = 0; i < a.u.list->n && r->rc == QN_OK; i++) qn_jv_push(r, out, a.u.list->v[i]);
    for (size_t i = 0; i < b.u.list->n && r->rc == QN_OK; i++) qn_jv_push(r, out, b.u.list->v[i]);
    return out;
}

qn_jv qn_jinja_binary(qn_jrun *r, char op, qn_jv a, qn_jv b)
{
    if (r->rc != QN_OK) return a;
    if (op == '~') {
        const qn_jv left = qn_jv_text(r, a), right = qn_jv_text(r, b);
        return r->rc == QN_OK ? add(r, left, right) : left;
    }
    if (qn_jv_is_num(a) && qn_jv_is_num(b)) {
        if (a.type != QN_JV_REAL && b.type != QN_JV_REAL && op != '/')
            return int_op(r, op, a.u.i, b.u.i);
        const double x = qn_jv_num(a), y = qn_jv_num(b);
        if (y == 0.0 && strchr("/f%", op)) return qn_jinja_fail(r, QN_E_FORMAT, "division by zero");
        switch (op) {
        case '+':
            return qn_jv_real(x + y);
        case '-':
            return qn_jv_real(x - y);
        case '*':
            return qn_jv_real(x * y);
        case '/':
            return qn_jv_real(x / y);
        case 'f':
            return qn_jv_real(floor(x / y));
        case '%':
            return qn_jv_real(x - y * floor(x / y));
        default:
            return qn_jv_real(pow(x, y));
        }
    }
    const bool text = a.type == QN_JV_STR || qn_jv_is_seq(a);
    if (op == '+' && text && a.type == b.type) return add(r, a, b);
    if (op == '*' && text && (b.type == QN_JV_INT || b.type == QN_JV_BOOL))
        return repeat(r, a, b.u.i);
    if (op == '*' && (b.type == QN_JV_STR || qn_jv_is_seq(b)) && a.type == QN_JV_INT)
        return repeat(r, b, a.u.i);
    if (op == '%' && a.type == QN_JV_STR) return qn_jinja_format(r, a, b);
    if (a.type == QN_JV_UNDEF) return undefined_in(r, a);
    if (b.type == QN_JV_UNDEF) return undefined_in(r, b);
    return qn_jinja_fail(r, QN_E_FORMAT, "'%s' does not fit %s and %s",
                         op == 'p'   ? "**"
                         : op == 'f' ? "//"
                                     : (const char[]){op, 0},
                         qn_jv_type(a), qn_jv_type(b));
}

static qn_jv compare(qn_jrun *r, const qn_jnode *n)
{
    qn_jv a = qn_jinja_eval(r, n->a);
    for (const qn_jnode *x = n->b; x && r->rc == QN_OK; x = x->next) {
        const qn_jv b = qn_jinja_eval(r, x->a);
        bool ok = false;
        if (r->rc != QN_OK) break;
        switch (x->op) {
        case 'e':
            ok = qn_jv_equal(r, a, b);
            break;
        case 'n':
            ok = !qn_jv_equal(r, a, b);
            break;
        case 'i':
            ok = qn_jv_in(r, a, b);
            break;
        case 'o':
            ok = !qn_jv_in(r, a, b);
            break;
        case '<':
            ok = qn_jv_order(r, a, b) < 0;
            break;
        case '>':
            ok = qn_jv_order(r, a, b) > 0;
            break;
        case 'l':
            ok = qn_jv_order(r, a, b) <= 0;
            break;
        default:
            ok = qn_jv_order(r, a, b) >= 0;
            break;
        }
        if (!ok) return qn_jv_bool(false);
        a = b;
    }
    return qn_jv_bool(true);
}

static qn_jv unary(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv v = qn_jinja_eval(r, n->a);
    if (n->op == '!') return qn_jv_bool(!qn_jv_true(v));
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_REAL) return n->op == '-' ? qn_jv_real(-v.u.d) : v;
    if (v.type == QN_JV_INT || v.type == QN_JV_BOOL) return int_op(r, n->op, 0, v.u.i);
    return v.type == QN_JV_UNDEF ? undefined_in(r, v)
                                 : qn_jinja_fail(r, QN_E_FORMAT, "a %s has no sign", qn_jv_type(v));
}

static qn_jv container(qn_jrun *r, const qn_jnode *n)
{
    const bool dict = n->kind == QN_JN_DICT;
    const qn_jv out = dict ? qn_jv_dict(r, QN_JV_DICT)
                           : qn_jv_list(r, n->kind == QN_JN_LIST ? QN_JV_LIST : QN_JV_TUPLE, 0);
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next) {
        const qn_jv v = qn_jinja_eval(r, x);
        if (!dict) {
            qn_jv_push(r, out, v);
            continue;
        }
        x = x->next;
        qn_jv_put(r, out, v, qn_jinja_eval(r, x));
    }
    return out;
}

static qn_jv slice(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv v = qn_jinja_eval(r, n->a);
    const qn_jv at[3] = {n->b ? qn_jinja_eval(r, n->b) : qn_jv_none(),
                         n->c ? qn_jinja_eval(r, n->c) : qn_jv_none(),
                         n->d ? qn_jinja_eval(r, n->d) : qn_jv_none()};
    return r->rc == QN_OK ? qn_jv_slice(r, v, at) : v;
}

static qn_jv eval(qn_jrun *r, const qn_jnode *n)
{
    qn_jv v;
    switch ((qn_jkind)n->kind) {
    case QN_JN_NONE:
        return qn_jv_none();
    case QN_JN_BOOL:
        return qn_jv_bool(n->i);
    case QN_JN_INT:
        return qn_jv_int(n->i);
    case QN_JN_REAL:
        return qn_jv_real(n->real);
    case QN_JN_STR:
        return qn_jv_borrow(n->s, n->n);
    case QN_JN_NAME:
        return lookup(r, n->s);
    case QN_JN_TUPLE:
    case QN_JN_LIST:
    case QN_JN_DICT:
        return container(r, n);
    case QN_JN_ATTR:
        return qn_jinja_attr(r, qn_jinja_eval(r, n->a), n->s);
    case QN_JN_ITEM:
        v = qn_jinja_eval(r, n->a);
        return qn_jinja_item(r, v, qn_jinja_eval(r, n->b));
    case QN_JN_SLICE:
        return slice(r, n);
    case QN_JN_CALL: {
        v = qn_jinja_eval(r, n->a);
        const qn_jargs a = qn_jinja_args(r, n->b);
        return qn_jinja_call(r, v, &a);
    }
    case QN_JN_FILTER: {
        v = n->a ? qn_jinja_eval(r, n->a) : lookup(r, "");
        const qn_jargs a = qn_jinja_args(r, n->b);
        return r->rc == QN_OK ? qn_jinja_filter(r, n->s, v, &a) : v;
    }
    case QN_JN_TEST: {
        v = qn_jinja_eval(r, n->a);
        const qn_jargs a = qn_jinja_args(r, n->b);
        return r->rc == QN_OK ? qn_jv_bool(qn_jinja_test(r, n->s, v, &a) != (n->i != 0)) : v;
    }
    case QN_JN_UNARY:
        return unary(r, n);
    case QN_JN_BINARY:
        v = qn_jinja_eval(r, n->a);
        if (n->op == '&' || n->op == '|')
            return qn_jv_true(v) == (n->op == '|') ? v : qn_jinja_eval(r, n->b);
        return qn_jinja_binary(r, n->op, v, qn_jinja_eval(r, n->b));
    case QN_JN_COMPARE:
        return compare(r, n);
    case QN_JN_COND:
        if (qn_jv_true(qn_jinja_eval(r, n->b))) return qn_jinja_eval(r, n->a);
        return n->c ? qn_jinja_eval(r, n->c) : qn_jv_undef("the other side of an inline if");
    default:
        return qn_jinja_fail(r, QN_E_INTERNAL, "expression of kind %d", n->kind);
    }
}

qn_jv qn_jinja_eval(qn_jrun *r, const qn_jnode *n)
{
    if (r->rc == QN_OK && r->frames >= QN_JINJA_MAX_FRAMES)
        qn_jinja_fail(r, QN_E_LIMIT, "nested too deeply");
    if (!qn_jinja_step(r, 1)) return qn_jv_undef(NULL);
    r->frames++;
    r->line = n->line;
    const qn_jv v = eval(r, n);
    r->frames--;
    return v;
}
