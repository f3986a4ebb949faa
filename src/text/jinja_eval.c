/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_eval.c - expressions are evaluated. */
#include <math.h>
#include <string.h>

#include "text/jinja_int.h"

static void name_arg(qn_jrun *r, qn_jv dict, qn_jv key, qn_jv v)
{
    if (key.type != QN_JV_STR)
        qn_jinja_fail(r, QN_E_FORMAT, "the name of an argument is a %s", qn_jv_type(key));
    else if (qn_jv_find(r, dict, key))
        qn_jinja_fail(r, QN_E_FORMAT, "got multiple values for argument '%s'", qn_jv_c(r, key));
    else
        qn_jv_put(r, dict, key, v);
}

static void unpack(qn_jrun *r, const qn_jnode *x, qn_jv v, qn_jv pos, qn_jv named)
{
    if (x->op == '*') {
        const qn_jlist *l = qn_jv_all(r, v);
        for (size_t i = 0; l && i < l->n && r->rc == QN_OK; i++) qn_jv_push(r, pos, l->v[i]);
        return;
    }
    if (v.type != QN_JV_DICT)
        qn_jinja_fail(r, QN_E_FORMAT, "argument after ** must be a mapping, not %s", qn_jv_type(v));
    for (size_t i = 0; r->rc == QN_OK && i < v.u.dict->n; i++)
        name_arg(r, named, v.u.dict->kv[2 * i], v.u.dict->kv[2 * i + 1]);
}

qn_jargs qn_jinja_args(qn_jrun *r, const qn_jnode *list)
{
    qn_jargs a = {0};
    if (!list || r->rc != QN_OK) return a;
    const qn_jv pos = qn_jv_list(r, QN_JV_LIST, 0), named = qn_jv_dict(r, QN_JV_DICT);
    for (int names = 0; names < 2;
         names++) /* values by place come first, also those of a * behind names */
        for (const qn_jnode *x = list; x && r->rc == QN_OK; x = x->next) {
            if ((x->s || x->op == 'p') != (names == 1)) continue;
            const qn_jv v = qn_jinja_eval(r, x->a);
            if (r->rc != QN_OK) break;
            if (x->s)
                name_arg(r, named, qn_jv_z(x->s), v);
            else if (x->op)
                unpack(r, x, v, pos, named);
            else
                qn_jv_push(r, pos, v);
        }
    if (r->rc != QN_OK) return a;
    const qn_jdict *d = named.u.dict;
    a.name = QN_JNEW(r, const char *, d->n + 1);
    a.named = QN_JNEW(r, qn_jv, d->n + 1);
    if (r->rc != QN_OK) return (qn_jargs){0};
    a.v = pos.u.list->v;
    a.n = pos.u.list->n;
    for (a.n_named = 0; a.n_named < d->n; a.n_named++) {
        a.name[a.n_named] = qn_jv_c(r, d->kv[2 * a.n_named]);
        a.named[a.n_named] = d->kv[2 * a.n_named + 1];
    }
    return a;
}

static qn_jv lookup(qn_jrun *r, const char *name)
{
    size_t n = 0;
    for (const qn_jscope *s = r->scope; s; s = s->up)
        for (const qn_jvar *x = s->vars; x; x = x->next, n++)
            if (!strcmp(x->name, name)) {
                qn_jinja_step(r, n / 16);
                return x->hidden || !qn_jv_is_given(x->v) ? qn_jv_undef(name) : x->v;
            }
    qn_jinja_step(r, n / 16);
    if (qn_jinja_is_global(name)) return (qn_jv){.type = QN_JV_GLOBAL, .u.s = name};
    if (!strcmp(name, "self")) return (qn_jv){.type = QN_JV_SELF};
    return qn_jv_undef(name);
}

static qn_jv missing(qn_jv v, const char *name, qn_junknown how)
{
    return (qn_jv){.type = QN_JV_UNDEF, .flag = (uint8_t)how, .n = v.type, .u.s = name};
}

qn_jv qn_jinja_attr(qn_jrun *r, qn_jv v, const char *name)
{
    bool found = false;
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_UNDEF && (strncmp(name, "__", 2) || strcmp(name + strlen(name) - 2, "__")))
        return qn_jinja_undefined(r, v);
    if (v.type == QN_JV_SPACE || v.type == QN_JV_SELF) return qn_jinja_item(r, v, qn_jv_z(name));
    const qn_jv m = qn_jinja_member(r, v, name, &found);
    if (found) return m;
    if (v.type == QN_JV_DICT) {
        const qn_jv *x = qn_jv_find(r, v, qn_jv_z(name));
        if (x) return *x;
    }
    return missing(v, name, QN_JU_ATTR);
}

qn_jv qn_jinja_item(qn_jrun *r, qn_jv v, qn_jv key)
{
    bool found = false;
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if ((v.type == QN_JV_DICT || v.type == QN_JV_SPACE) && key.type != QN_JV_LIST &&
        key.type != QN_JV_DICT) {
        const qn_jv *x = qn_jv_find(r, v, key);
        if (x) return *x;
    }
    if (v.type == QN_JV_SELF && key.type == QN_JV_STR) {
        const qn_jnode *b = qn_jinja_find_block(r->program->root->b, qn_jv_c(r, key));
        if (b) return (qn_jv){.type = QN_JV_BLOCK, .u.node = b};
    }
    if (qn_jv_is_int(key)) {
        const qn_jv x = qn_jv_element(r, v, key.u.i, &found);
        if (found || r->rc != QN_OK) return x;
    }
    if (key.type != QN_JV_STR || v.type == QN_JV_SPACE) return missing(v, "an element", QN_JU_ITEM);
    const char *name = qn_jv_c(r, key);
    const qn_jv m = qn_jinja_member(r, v, name, &found);
    return found ? m : missing(v, name, QN_JU_ATTR);
}

qn_jv qn_jinja_call(qn_jrun *r, qn_jv f, const qn_jargs *a)
{
    const uint32_t line = r->line;
    qn_jv v = f, x[QN_JINJA_MAX_ARGS];
    if (!qn_jinja_enter(r)) return qn_jv_undef(NULL);
    switch (f.type) {
    case QN_JV_UNDEF:
        v = qn_jinja_undefined(r, f);
        break;
    case QN_JV_MACRO:
        v = qn_jinja_call_macro(r, f.u.macro, a);
        break;
    case QN_JV_GLOBAL:
        v = qn_jinja_global(r, f.u.s, a);
        break;
    case QN_JV_LOOP:
        v = qn_jinja_call_loop(r, f.u.loop, a);
        break;
    case QN_JV_JOINER:
        if (qn_jinja_bind(r, "joiner", "", a, x))
            v = f.u.cycle->at++ ? f.u.cycle->sep : qn_jv_z("");
        break;
    case QN_JV_BLOCK:
        if (qn_jinja_bind(r, "block", "", a, x)) v = qn_jinja_call_block(r, f.u.node);
        break;
    case QN_JV_METHOD:
        v = qn_jinja_method(r, f.u.bound, a);
        break;
    default:
        v = qn_jinja_fail(r, QN_E_FORMAT, "a %s is not callable", qn_jv_type(f));
    }
    if (r->rc == QN_OK) r->line = line;
    qn_jinja_leave(r);
    return v;
}

static qn_jv int_power(qn_jrun *r, int64_t a, int64_t b)
{
    int64_t v = 1;
    bool over = false;
    if (b < 0)
        return a ? qn_jv_real(pow((double)a, (double)b))
                 : qn_jinja_fail(r, QN_E_FORMAT, "0 to a negative power");
    if (a == 0 || a == 1 || a == -1)
        return qn_jv_int(a == 0 ? b == 0 : a == 1 || b % 2 == 0 ? 1 : -1);
    for (; b && !over; b--) over = __builtin_mul_overflow(v, a, &v);
    return over ? qn_jinja_fail(r, QN_E_LIMIT, "an integer leaves 64 bits") : qn_jv_int(v);
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
        if (!b) return qn_jinja_fail(r, QN_E_FORMAT, "integer division or modulo by zero");
        if (b == -1) {
            over = op == 'f' && __builtin_sub_overflow((int64_t)0, a, &v);
            break;
        }
        v = op == 'f' ? a / b - (a % b != 0 && (a < 0) != (b < 0))
                      : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        break;
    default:
        return int_power(r, a, b);
    }
    return over ? qn_jinja_fail(r, QN_E_LIMIT, "an integer leaves 64 bits") : qn_jv_int(v);
}

static qn_jv real_op(qn_jrun *r, char op, double x, double y)
{
    double m = 0;
    if (y == 0.0 && strchr("/f%", op))
        return qn_jinja_fail(r, QN_E_FORMAT, "float division by zero");
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
    case '%': /* the remainder has the sign of the divisor, and the quotient agrees with it */
        m = fmod(x, y);
        if (m != 0.0 && (y < 0) != (m < 0)) m += y;
        if (m == 0.0) m = copysign(0.0, y);
        if (op == '%') return qn_jv_real(m);
        {
            double div = (x - fmod(x, y)) / y;
            const double rest = fmod(x, y);
            if (rest != 0.0 && (y < 0) != (rest < 0)) div -= 1.0;
            const double floored = floor(div);
            return qn_jv_real(div == 0.0            ? copysign(0.0, x / y)
                              : div - floored > 0.5 ? floored + 1.0
                                                    : floored);
        }
    default:
        if (x == 0.0 && y < 0) return qn_jinja_fail(r, QN_E_FORMAT, "0.0 to a negative power");
        m = pow(x, y);
        if (isnan(m) && !isnan(x) && !isnan(y))
            return qn_jinja_fail(r, QN_E_UNSUPPORTED, "a power that is no real number");
        if (isinf(m) && isfinite(x) && isfinite(y))
            return qn_jinja_fail(r, QN_E_FORMAT, "the result is too large");
        return qn_jv_real(m);
    }
}

static qn_jv repeat(qn_jrun *r, qn_jv v, int64_t times)
{
    if (v.type == QN_JV_STR) {
        qn_buf b;
        qn_buf_init(&b, r->max_output);
        qn_jinja_fill(r, &b, v, times);
        return qn_jv_marked(qn_jv_take(r, &b), v.flag);
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
        const bool markup = a.flag || b.flag;
        qn_buf out;
        if (markup) {
            a = qn_jv_escape(r, a);
            b = qn_jv_escape(r, b);
        }
        qn_buf_init(&out, r->max_output);
        if (r->rc == QN_OK) {
            qn_jinja_bytes(r, &out, a.u.s, a.n);
            qn_jinja_bytes(r, &out, b.u.s, b.n);
        }
        return qn_jv_marked(qn_jv_take(r, &out), markup);
    }
    const qn_jv out = qn_jv_list(r, (qn_jtype)a.type, a.u.list->n + b.u.list->n);
    for (size_t i = 0; i < a.u.list->n && r->rc == QN_OK; i++) qn_jv_push(r, out, a.u.list->v[i]);
    for (size_t i = 0; i < b.u.list->n && r->rc == QN_OK; i++) qn_jv_push(r, out, b.u.list->v[i]);
    return out;
}

qn_jv qn_jinja_binary(qn_jrun *r, char op, qn_jv a, qn_jv b)
{
    if (r->rc != QN_OK) return a;
    if (qn_jv_is_num(a) && qn_jv_is_num(b)) {
        if (a.type != QN_JV_REAL && b.type != QN_JV_REAL && op != '/')
            return int_op(r, op, a.u.i, b.u.i);
        return real_op(r, op, qn_jv_num(a), qn_jv_num(b));
    }
    const bool text = a.type == QN_JV_STR || qn_jv_is_seq(a);
    if (op == '+' && text && a.type == b.type) return add(r, a, b);
    if (op == '*' && text && qn_jv_is_int(b)) return repeat(r, a, b.u.i);
    if (op == '*' && (b.type == QN_JV_STR || qn_jv_is_seq(b)) && qn_jv_is_int(a))
        return repeat(r, b, a.u.i);
    if (op == '%' && a.type == QN_JV_STR) return qn_jinja_percent(r, a, b);
    if (a.type == QN_JV_UNDEF) return qn_jinja_undefined(r, a);
    if (b.type == QN_JV_UNDEF) return qn_jinja_undefined(r, b);
    if (op == '-' && (a.type == QN_JV_VIEW || b.type == QN_JV_VIEW))
        return qn_jinja_fail(r, QN_E_UNSUPPORTED, "arithmetic of sets");
    return qn_jinja_fail(r, QN_E_FORMAT, "unsupported operand types for %s: %s and %s",
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
        default:
            ok = qn_jv_compare(r, x->op, a, b);
        }
        if (!ok) return qn_jv_bool(false);
        a = b;
    }
    return qn_jv_bool(true);
}

static qn_jv unary(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv v = qn_jinja_eval(r, n->a);
    if (r->rc != QN_OK) return v;
    if (n->op == '!') return qn_jv_bool(!qn_jv_true(v));
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (!qn_jv_is_num(v))
        return qn_jinja_fail(r, QN_E_FORMAT, "bad operand type for unary %c: %s", n->op,
                             qn_jv_type(v));
    if (v.type == QN_JV_REAL) return qn_jv_real(n->op == '-' ? -v.u.d : v.u.d);
    return n->op == '-' ? int_op(r, '-', 0, v.u.i) : qn_jv_int(v.u.i);
}

static qn_jv container(qn_jrun *r, const qn_jnode *n)
{
    const bool dict = n->kind == QN_JN_DICT;
    const qn_jv out = dict ? qn_jv_dict(r, QN_JV_DICT)
                           : qn_jv_list(r, n->kind == QN_JN_LIST ? QN_JV_LIST : QN_JV_TUPLE, 0);
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next) {
        const qn_jv v = qn_jinja_eval(r, x);
        if (dict) {
            x = x->next;
            qn_jv_put(r, out, v, qn_jinja_eval(r, x));
        } else {
            qn_jv_push(r, out, v);
        }
    }
    return out;
}

static qn_jv concat(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv parts = qn_jv_list(r, QN_JV_LIST, 0);
    bool markup = false;
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next) {
        const qn_jv v = qn_jinja_eval(r, x);
        markup |= r->escapes && v.type == QN_JV_STR && v.flag;
        qn_jv_push(r, parts, v);
    }
    if (r->rc != QN_OK) return parts;
    for (size_t i = 0; markup && i < parts.u.list->n; i++)
        parts.u.list->v[i] = qn_jv_soft(r, parts.u.list->v[i]);
    return qn_jinja_join(r, qn_jv_marked(qn_jv_z(""), markup), parts, markup ? 'm' : 's');
}

static qn_jv slice(qn_jrun *r, const qn_jnode *n)
{
    if (!n->a)
        return qn_jinja_fail(r, QN_E_FORMAT, "a slice cannot stand in a tuple of subscripts");
    const qn_jv v = qn_jinja_eval(r, n->a);
    const qn_jv at[3] = {n->b ? qn_jinja_eval(r, n->b) : qn_jv_none(),
                         n->c ? qn_jinja_eval(r, n->c) : qn_jv_none(),
                         n->d ? qn_jinja_eval(r, n->d) : qn_jv_none()};
    if (r->rc == QN_OK && r->lenient && v.type != QN_JV_STR && !qn_jv_is_seq(v) &&
        v.type != QN_JV_UNDEF)
        return missing(v, "an element", QN_JU_ITEM);
    return r->rc == QN_OK ? qn_jv_slice(r, v, at) : v;
}

static qn_jv condition(qn_jrun *r, const qn_jnode *n)
{
    if (qn_jv_true(qn_jinja_eval(r, n->b))) return qn_jinja_eval(r, n->a);
    if (n->c) return qn_jinja_eval(r, n->c);
    return qn_jv_hint(
        "the inline if-expression evaluated to false and no else section was defined.");
}

static qn_jv applied(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv v = n->a ? qn_jinja_eval(r, n->a) : lookup(r, "");
    const qn_jargs a = qn_jinja_args(r, n->b);
    if (r->rc != QN_OK) return v;
    if (n->kind == QN_JN_FILTER) return qn_jinja_filter(r, n->s, v, &a);
    return qn_jv_bool(qn_jinja_test(r, n->s, v, &a) != (n->i != 0));
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
        v = qn_jinja_eval(r, n->a);
        return qn_jinja_attr(r, v, n->s);
    case QN_JN_ITEM:
        v = qn_jinja_eval(r, n->a);
        return qn_jinja_item(r, v, qn_jinja_eval(r, n->b));
    case QN_JN_SLICE:
        return slice(r, n);
    case QN_JN_CALL: {
        v = qn_jinja_eval(r, n->a);
        const qn_jargs a = qn_jinja_args(r, n->b);
        return r->rc == QN_OK ? qn_jinja_call(r, v, &a) : v;
    }
    case QN_JN_FILTER:
    case QN_JN_TEST:
        return applied(r, n);
    case QN_JN_UNARY:
        return unary(r, n);
    case QN_JN_BINARY:
        v = qn_jinja_eval(r, n->a);
        if (n->op == '&' || n->op == '|')
            return qn_jv_true(v) == (n->op == '|') ? v : qn_jinja_eval(r, n->b);
        return qn_jinja_binary(r, n->op, v, qn_jinja_eval(r, n->b));
    case QN_JN_CONCAT:
        return concat(r, n);
    case QN_JN_COMPARE:
        return compare(r, n);
    case QN_JN_COND:
        return condition(r, n);
    default:
        return qn_jinja_fail(r, QN_E_INTERNAL, "expression of kind %d", n->kind);
    }
}

qn_jv qn_jinja_eval(qn_jrun *r, const qn_jnode *n)
{
    if (!qn_jinja_enter(r)) return qn_jv_undef(NULL);
    const qn_jv v = eval(r, n);
    qn_jinja_leave(r);
    return v;
}
