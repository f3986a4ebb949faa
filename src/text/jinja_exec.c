/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_exec.c - statements are carried out; scopes; a rendering as a whole. */
#include <string.h>

#include "text/jinja_int.h"

static void define(qn_jrun *r, qn_jscope *s, const char *name, qn_jv v, bool hidden)
{
    size_t n = 0;
    for (qn_jvar *x = s->vars; x && r->rc == QN_OK; x = x->next, n++)
        if (!strcmp(x->name, name)) {
            x->v = v;
            x->hidden = hidden;
            return;
        }
    if (!qn_jinja_step(r, n / 16)) return;
    qn_jvar *x = QN_JNEW(r, qn_jvar, 1);
    if (!x) return;
    *x = (qn_jvar){.name = name, .v = v, .hidden = hidden, .next = s->vars};
    s->vars = x;
}

void qn_jinja_define(qn_jrun *r, qn_jscope *s, const char *name, qn_jv v)
{
    define(r, s, name, v, false);
}

qn_jscope *qn_jinja_scope(qn_jrun *r, qn_jscope *up, const qn_jname *hidden)
{
    qn_jscope *s = QN_JNEW(r, qn_jscope, 1);
    if (!s) return up;
    s->up = up;
    for (; hidden && r->rc == QN_OK; hidden = hidden->next)
        define(r, s, hidden->s, qn_jv_undef(hidden->s), true);
    return s;
}

static void assign_member(qn_jrun *r, const qn_jnode *t, qn_jv v)
{
    const qn_jnode name = {.kind = QN_JN_NAME, .line = t->line, .s = t->s};
    const qn_jv space = qn_jinja_eval(r, &name);
    if (r->rc == QN_OK && space.type != QN_JV_SPACE)
        qn_jinja_fail(r, QN_E_FORMAT, "cannot assign attribute on non-namespace object");
    else if (r->rc == QN_OK && *t->s2 == '_')
        qn_jinja_fail(r, QN_E_FORMAT, "a namespace cannot store names that begin with _");
    else if (r->rc == QN_OK)
        qn_jv_put(r, space, qn_jv_z(t->s2), v);
}

void qn_jinja_assign(qn_jrun *r, const qn_jnode *t, qn_jv v)
{
    if (r->rc != QN_OK) return;
    if (t->kind == QN_JN_NAME) {
        qn_jinja_define(r, r->scope, t->s, v);
    } else if (t->kind == QN_JN_NSREF) {
        assign_member(r, t, v);
    } else {
        const qn_jlist *l = qn_jv_all(r, v);
        size_t n = 0, i = 0;
        for (const qn_jnode *x = t->a; x; x = x->next) n++;
        if (l && l->n != n)
            qn_jinja_fail(r, QN_E_FORMAT, "%zu values to unpack into %zu names", l->n, n);
        for (const qn_jnode *x = t->a; x && r->rc == QN_OK; x = x->next)
            qn_jinja_assign(r, x, l->v[i++]);
    }
}

/* Namespaces in a target are looked at before the value is. */
static void check_spaces(qn_jrun *r, const qn_jnode *t)
{
    if (t->kind == QN_JN_TUPLE)
        for (const qn_jnode *x = t->a; x; x = x->next) check_spaces(r, x);
    if (t->kind != QN_JN_NSREF) return;
    const qn_jnode name = {.kind = QN_JN_NAME, .line = t->line, .s = t->s};
    if (qn_jinja_eval(r, &name).type != QN_JV_SPACE)
        qn_jinja_fail(r, QN_E_FORMAT, "cannot assign attribute on non-namespace object");
}

/* What a filter or call puts out must be text by itself: jinja2 joins it as it is, and finds that out
 * when the whole around it has run. */
static void write_text(qn_jrun *r, qn_jv v)
{
    if (v.type == QN_JV_STR)
        qn_jv_write(r, r->out, v, false);
    else
        r->no_text = true;
}

static void joined(qn_jrun *r, bool before)
{
    if (r->no_text)
        qn_jinja_fail(r, QN_E_FORMAT, "a filter or call gave no text where text stands");
    r->no_text = before;
}

/* The body's text as a value; markup where escaping is on. */
static qn_jv capture(qn_jrun *r, const qn_jnode *body, qn_jscope *inner)
{
    qn_buf b, *out = r->out;
    qn_jscope *scope = r->scope;
    const bool no_text = r->no_text;
    qn_buf_init(&b, r->max_output);
    r->out = &b;
    r->scope = inner;
    r->no_text = false;
    qn_jinja_exec(r, body);
    if (r->flow != QN_JF_ON) r->no_text = false; /* the loop goes on without this text */
    joined(r, no_text);
    r->scope = scope;
    r->out = out;
    return qn_jv_take(r, &b);
}

static qn_jv loop_over(qn_jrun *r, const qn_jnode *n, qn_jv over, qn_jscope *around)
{
    qn_jv out;
    if (!n->c) return over;
    if (!qn_jit_can(over))
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be iterated", qn_jv_type(over));
    qn_jgen *g = qn_jv_gen(r, &out, 'c', over);
    if (!g) return out;
    g->node = n;
    g->scope = around;
    return out;
}

static void loop(qn_jrun *r, const qn_jnode *n, qn_jv over, qn_jscope *around, uint32_t depth)
{
    qn_jscope *scope = r->scope;
    qn_jloop *l = QN_JNEW(r, qn_jloop, 1);
    bool any = false;
    if (!l) return;
    *l = (qn_jloop){.node = n, .scope = around, .at = -1, .length = -1, .depth = depth};
    l->over = loop_over(r, n, over, around);
    qn_jit_begin(r, &l->it, l->over);
    const qn_jv lv = {.type = QN_JV_LOOP, .u.loop = l};
    for (qn_jv x; r->rc == QN_OK && qn_jloop_next(r, l, &x) && qn_jinja_step(r, 1);) {
        r->scope = qn_jinja_scope(r, around, n->hidden);
        if (n->caller) qn_jinja_define(r, r->scope, "loop", lv);
        qn_jinja_assign(r, n->a, x);
        qn_jinja_exec(r, n->d);
        const qn_jflow flow = r->flow;
        r->flow = QN_JF_ON;
        r->line = n->line;
        any |= flow == QN_JF_ON; /* else: no round came to its end, odd as that is */
        if (flow == QN_JF_BREAK) break;
    }
    if (r->rc == QN_OK && !any && n->e) {
        r->scope = qn_jinja_scope(r, around, n->hidden_else);
        qn_jinja_exec(r, n->e);
    }
    r->scope = scope;
}

/* A recursive loop's text is a value of its own. */
static qn_jv loop_text(qn_jrun *r, const qn_jnode *n, qn_jv over, qn_jscope *around, uint32_t depth)
{
    qn_buf b, *out = r->out;
    if (r->rc == QN_OK && r->calls >= r->max_calls)
        return qn_jinja_fail(r, QN_E_LIMIT, "more than %u calls inside each other", r->max_calls);
    const bool no_text = r->no_text;
    qn_buf_init(&b, r->max_output);
    r->out = &b;
    r->calls++;
    r->no_text = false;
    loop(r, n, over, around, depth);
    joined(r, no_text);
    r->calls--;
    r->out = out;
    return qn_jv_marked(qn_jv_take(r, &b), r->escapes);
}

qn_jv qn_jinja_call_loop(qn_jrun *r, const qn_jloop *l, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    if (!qn_jinja_bind(r, "loop", "iterable", a, x)) return qn_jv_undef(NULL);
    if (!l->node->i)
        return qn_jinja_fail(r, QN_E_FORMAT,
                             "the loop must have the 'recursive' marker to be called");
    return loop_text(r, l->node, x[0], l->scope, l->depth + 1);
}

static void exec_for(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv over = qn_jinja_eval(r, n->b);
    if (r->rc != QN_OK) return;
    if (n->i)
        qn_jinja_write_out(r, qn_jv_marked(loop_text(r, n, over, r->scope, 1), true));
    else
        loop(r, n, over, r->scope, 1);
}

static void exec_with(qn_jrun *r, const qn_jnode *n)
{
    qn_jscope *scope = r->scope, *inner = qn_jinja_scope(r, scope, n->hidden);
    for (const qn_jnode *t = n->a; t && r->rc == QN_OK; t = t->next->next) {
        r->scope = scope;
        const qn_jv v = qn_jinja_eval(r, t->next);
        r->scope = inner;
        qn_jinja_assign(r, t, v);
    }
    r->scope = inner;
    qn_jinja_exec(r, n->b);
    r->scope = scope;
}

static qn_jv macro_of(qn_jrun *r, const qn_jnode *n)
{
    qn_jmacro *m = QN_JNEW(r, qn_jmacro, 1);
    if (!m) return qn_jv_undef(NULL);
    *m = (qn_jmacro){.node = n, .scope = r->scope, .escapes = r->escapes};
    return (qn_jv){.type = QN_JV_MACRO, .u.macro = m};
}

static void exec_call(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv caller = macro_of(r, n);
    const qn_jargs none = {0};
    if (!n->d) { /* generation: the body as it is */
        write_text(r, r->rc == QN_OK ? qn_jinja_call(r, caller, &none) : caller);
        return;
    }
    const qn_jv f = qn_jinja_eval(r, n->d->a);
    qn_jargs a = qn_jinja_args(r, n->d->b);
    const char **names = QN_JNEW(r, const char *, a.n_named + 1);
    qn_jv *named = QN_JNEW(r, qn_jv, a.n_named + 1);
    if (r->rc != QN_OK) return;
    for (size_t i = 0; i < a.n_named; i++) {
        if (!strcmp(a.name[i], "caller")) qn_jinja_fail(r, QN_E_FORMAT, "caller is given twice");
        names[i] = a.name[i];
        named[i] = a.named[i];
    }
    names[a.n_named] = "caller";
    named[a.n_named++] = caller;
    a.name = names;
    a.named = named;
    write_text(r, qn_jinja_call(r, f, &a));
}

static void exec_if(qn_jrun *r, const qn_jnode *n)
{
    while (r->rc == QN_OK) {
        r->line = n->line;
        const bool is = qn_jv_true(qn_jinja_eval(r, n->a));
        if (r->rc != QN_OK) return;
        if (is || !n->i) {
            qn_jinja_exec(r, is ? n->b : n->c);
            return;
        }
        n = n->c;
    }
}

/* A block whose text goes through filters: into a variable or out. */
static void exec_captured(qn_jrun *r, const qn_jnode *n)
{
    const bool set = n->kind == QN_JN_SET_BLOCK;
    const qn_jnode *filters = set ? n->b : n->a;
    qn_jscope *scope = r->scope, *inner = qn_jinja_scope(r, scope, n->hidden);
    qn_jv v = qn_jv_marked(capture(r, set ? n->c : n->b, inner), r->escapes);
    if (r->flow != QN_JF_ON) return; /* the loop goes on without the text */
    r->line = n->line;
    if (filters && r->rc == QN_OK) {
        r->scope = qn_jinja_scope(r, inner, NULL);
        qn_jinja_define(r, r->scope, "", v); /* what the filters are applied to */
        v = qn_jinja_eval(r, filters);
        r->scope = scope;
    }
    if (set && r->escapes) v = qn_jv_marked(qn_jv_soft(r, v), true);
    if (set)
        qn_jinja_assign(r, n->a, v);
    else
        write_text(r, v);
}

static void exec_scope(qn_jrun *r, const qn_jnode *n)
{
    qn_jscope *scope = r->scope;
    const bool escapes = r->escapes;
    r->scope = qn_jinja_scope(r, scope, n->hidden);
    if (n->kind == QN_JN_AUTOESCAPE) r->escapes = qn_jv_true(qn_jinja_eval(r, n->a));
    qn_jinja_exec(r, n->b);
    r->escapes = escapes;
    r->scope = scope;
}

static void exec_block(qn_jrun *r, const qn_jnode *n)
{
    qn_jscope *scope = r->scope;
    if (n->i & 2) {
        qn_jinja_fail(r, QN_E_FORMAT, "required block '%s' not found", n->s);
        return;
    }
    if (r->calls >= r->max_calls) {
        qn_jinja_fail(r, QN_E_LIMIT, "more than %u calls inside each other", r->max_calls);
        return;
    }
    r->calls++;
    r->scope = qn_jinja_scope(r, n->i & 1 ? scope : r->root, n->hidden);
    qn_jinja_exec(r, n->b);
    r->scope = scope;
    r->calls--;
}

qn_jv qn_jinja_call_block(qn_jrun *r, const qn_jnode *n)
{
    qn_buf b, *out = r->out;
    qn_buf_init(&b, r->max_output);
    r->out = &b;
    if (r->calls >= r->max_calls)
        qn_jinja_fail(r, QN_E_LIMIT, "more than %u calls inside each other", r->max_calls);
    r->calls++;
    const qn_jv v =
        r->rc == QN_OK ? capture(r, n->b, qn_jinja_scope(r, r->root, n->hidden)) : qn_jv_none();
    r->calls--;
    r->out = out;
    qn_buf_fini(&b);
    return qn_jv_marked(v, r->escapes);
}

static void exec_output(qn_jrun *r, const qn_jnode *n)
{
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next) {
        r->line = x->line;
        r->lenient = x->constant;
        const qn_jv v = qn_jinja_eval(r, x);
        r->lenient = false;
        if (r->rc == QN_OK) qn_jinja_write_out(r, v);
    }
}

static void exec_one(qn_jrun *r, const qn_jnode *n)
{
    switch ((qn_jkind)n->kind) {
    case QN_JN_TEXT:
        qn_jinja_bytes(r, r->out, n->s, n->n);
        break;
    case QN_JN_OUTPUT:
        exec_output(r, n);
        break;
    case QN_JN_IF:
        exec_if(r, n);
        break;
    case QN_JN_FOR:
        exec_for(r, n);
        break;
    case QN_JN_SET:
        check_spaces(r, n->a);
        qn_jinja_assign(r, n->a, r->rc == QN_OK ? qn_jinja_eval(r, n->b) : qn_jv_none());
        break;
    case QN_JN_SET_BLOCK:
    case QN_JN_FILTER_BLOCK:
        exec_captured(r, n);
        break;
    case QN_JN_WITH:
        exec_with(r, n);
        break;
    case QN_JN_MACRO:
        qn_jinja_define(r, r->scope, n->s, macro_of(r, n));
        break;
    case QN_JN_CALL_BLOCK:
        exec_call(r, n);
        break;
    case QN_JN_AUTOESCAPE:
        exec_scope(r, n);
        break;
    case QN_JN_BLOCK:
        exec_block(r, n);
        break;
    case QN_JN_LOAD:
        if (n->a) qn_jinja_eval(r, n->a);
        qn_jinja_fail(r, QN_E_UNSUPPORTED, "%s: chat templates have no loader", n->s);
        break;
    case QN_JN_BREAK:
        r->flow = QN_JF_BREAK;
        break;
    case QN_JN_CONTINUE:
        r->flow = QN_JF_CONTINUE;
        break;
    default:
        qn_jinja_fail(r, QN_E_INTERNAL, "statement of kind %d", n->kind);
    }
}

void qn_jinja_exec(qn_jrun *r, const qn_jnode *body)
{
    if (!qn_jinja_enter(r)) return;
    for (; body && r->flow == QN_JF_ON && qn_jinja_step(r, 1); body = body->next) {
        if (body->kind != QN_JN_TEXT) r->line = body->line;
        exec_one(r, body);
    }
    qn_jinja_leave(r);
}

/* The value of one parameter: by place, by name, its default, or undefined. */
static qn_jv parameter(const qn_jnode *x, const qn_jargs *a, size_t i, bool *used)
{
    if (i < a->n) return a->v[i];
    for (size_t k = 0; k < a->n_named; k++)
        if (!strcmp(a->name[k], x->s)) {
            used[k] = true;
            return a->named[k];
        }
    return qn_jv_given();
}

static void caller_of(qn_jrun *r, const qn_jnode *n, const qn_jargs *a, bool found, bool *used)
{
    if (!n->caller || found) return;
    qn_jv v = qn_jv_hint("No caller defined");
    for (size_t k = 0; k < a->n_named; k++)
        if (!strcmp(a->name[k], "caller")) {
            used[k] = true;
            if (a->named[k].type != QN_JV_NONE) v = a->named[k];
        }
    qn_jinja_define(r, r->scope, "caller", v);
}

static void rest_of(qn_jrun *r, const qn_jnode *n, const qn_jargs *a, size_t n_params,
                    const bool *used)
{
    const qn_jv kwargs = qn_jv_dict(r, QN_JV_DICT), varargs = qn_jv_list(r, QN_JV_TUPLE, 0);
    for (size_t k = 0; k < a->n_named && r->rc == QN_OK; k++) {
        if (used[k]) continue;
        if (!n->kwargs)
            qn_jinja_fail(r, QN_E_FORMAT, "macro '%s' takes no keyword argument '%s'",
                          n->s ? n->s : "caller", a->name[k]);
        else
            qn_jv_put(r, kwargs, qn_jv_z(a->name[k]), a->named[k]);
    }
    for (size_t k = n_params; k < a->n && r->rc == QN_OK; k++) qn_jv_push(r, varargs, a->v[k]);
    if (r->rc == QN_OK && a->n > n_params && !n->varargs)
        qn_jinja_fail(r, QN_E_FORMAT, "macro '%s' takes not more than %zu arguments",
                      n->s ? n->s : "caller", n_params);
    if (n->kwargs) qn_jinja_define(r, r->scope, "kwargs", kwargs);
    if (n->varargs) qn_jinja_define(r, r->scope, "varargs", varargs);
}

static void bind_macro(qn_jrun *r, const qn_jnode *n, const qn_jargs *a)
{
    const uint32_t line = r->line;
    size_t i = 0, n_params = 0;
    bool found = false, *used = QN_JNEW(r, bool, a->n_named + 1);
    for (const qn_jnode *x = n->a; x; x = x->next) n_params++;
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next, i++) {
        found |= !strcmp(x->s, "caller");
        define(r, r->scope, x->s, parameter(x, a, i, used), false);
    }
    if (r->rc == QN_OK) caller_of(r, n, a, found, used);
    if (r->rc == QN_OK) rest_of(r, n, a, n_params, used);
    r->line = r->rc == QN_OK ? n->line : line;
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next)
        for (qn_jvar *v = r->scope->vars; v; v = v->next)
            if (!strcmp(v->name, x->s) && !qn_jv_is_given(v->v)) {
                v->v = qn_jv_undef(x->s);
                if (x->a) v->v = qn_jinja_eval(r, x->a);
            }
}

qn_jv qn_jinja_call_macro(qn_jrun *r, const qn_jmacro *m, const qn_jargs *a)
{
    qn_jscope *scope = r->scope;
    const bool escapes = r->escapes;
    if (r->rc == QN_OK && r->calls >= r->max_calls)
        return qn_jinja_fail(r, QN_E_LIMIT, "more than %u calls inside each other", r->max_calls);
    r->calls++;
    r->scope = qn_jinja_scope(r, m->scope, m->node->hidden);
    bind_macro(r, m->node, a);
    const qn_jv v = r->rc == QN_OK ? capture(r, m->node->b, r->scope) : qn_jv_undef(NULL);
    r->scope = scope;
    r->escapes = escapes;
    r->calls--;
    return qn_jv_marked(v, escapes);
}

static void variables(qn_jrun *r, qn_jscope *s, const qn_json *object)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *v = NULL;
    while (r->rc == QN_OK && qn_json_next(object, &it, &key, &v))
        qn_jinja_define(r, s, key, qn_jv_from_json(r, v, 0));
}

qn_code qn_jinja_render(qn_buf *text, const qn_jinja *t, const qn_jinja_input *in, qn_err *err)
{
    const qn_jinja_limits *l = &in->limits;
    const size_t before = text->len;
    qn_jrun r = {.in = in,
                 .program = t,
                 .out = text,
                 .max_steps = l->steps ? l->steps : 20000000,
                 .max_output = l->output_bytes ? l->output_bytes : (size_t)64 << 20,
                 .max_calls = l->depth ? l->depth : 100,
                 .line = 1,
                 .err = err};
    qn_arena_init(&r.arena, l->memory_bytes ? l->memory_bytes : (size_t)512 << 20);
    qn_jscope *globals = qn_jinja_scope(&r, NULL, NULL);
    for (size_t i = 0; i < in->n_variables && r.rc == QN_OK; i++)
        variables(&r, globals, in->variables[i]);
    r.scope = r.root = qn_jinja_scope(&r, globals, t->root->hidden);
    if (r.rc == QN_OK) qn_jinja_exec(&r, t->root->b);
    joined(&r, false);
    qn_arena_fini(&r.arena);
    if (r.rc != QN_OK) qn_buf_truncate(text, before);
    return r.rc;
}
