/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_exec.c - statements are carried out; scopes; a rendering as a whole. */
#include <string.h>

#include "text/jinja_int.h"

qn_jscope *qn_jinja_scope(qn_jrun *r, qn_jscope *up)
{
    qn_jscope *s = r->rc == QN_OK ? QN_ARENA_NEW(&r->arena, qn_jscope, 1) : NULL;
    if (s) {
        s->up = up;
        return s;
    }
    qn_jinja_fail(r, r->arena.used + 256 > r->arena.limit ? QN_E_LIMIT : QN_E_NOMEM,
                  "no memory for the template's variables");
    return up;
}

void qn_jinja_define(qn_jrun *r, qn_jscope *s, const char *name, qn_jv v)
{
    if (r->rc != QN_OK) return;
    for (qn_jvar *x = s->vars; x; x = x->next)
        if (!strcmp(x->name, name)) {
            x->v = v;
            return;
        }
    qn_jvar *x = QN_ARENA_NEW(&r->arena, qn_jvar, 1);
    if (!x) {
        qn_jinja_fail(r, r->arena.used + 256 > r->arena.limit ? QN_E_LIMIT : QN_E_NOMEM,
                      "no memory for the template's variables");
        return;
    }
    *x = (qn_jvar){.name = name, .v = v, .next = s->vars};
    s->vars = x;
}

void qn_jinja_assign(qn_jrun *r, const qn_jnode *t, qn_jv v)
{
    if (r->rc != QN_OK) return;
    if (t->kind == QN_JN_NAME) {
        qn_jinja_define(r, r->scope, t->s, v);
    } else if (t->kind == QN_JN_NSREF) {
        const qn_jnode name = {.kind = QN_JN_NAME, .line = t->line, .s = t->s};
        const qn_jv space = qn_jinja_eval(r, &name);
        if (r->rc == QN_OK && space.type != QN_JV_SPACE)
            qn_jinja_fail(r, QN_E_FORMAT, "%s is no namespace", t->s);
        else
            qn_jv_put(r, space, qn_jv_z(t->s2), v);
    } else {
        const qn_jlist *l = qn_jv_iter(r, v);
        size_t n = 0, i = 0;
        for (const qn_jnode *x = t->a; x; x = x->next) n++;
        if (l && l->n != n) qn_jinja_fail(r, QN_E_FORMAT, "%zu values for %zu names", l->n, n);
        for (const qn_jnode *x = t->a; x && r->rc == QN_OK; x = x->next)
            qn_jinja_assign(r, x, l->v[i++]);
    }
}

/* The body's text as a value. */
static qn_jv capture(qn_jrun *r, const qn_jnode *body)
{
    qn_buf b, *out = r->out;
    qn_jscope *scope = r->scope;
    qn_buf_init(&b, r->max_output);
    r->out = &b;
    r->scope = qn_jinja_scope(r, scope);
    qn_jinja_exec(r, body);
    r->scope = scope;
    r->out = out;
    return qn_jv_take(r, &b);
}

static qn_jlist *filtered(qn_jrun *r, const qn_jnode *n, qn_jlist *items)
{
    const qn_jv kept = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; items && i < items->n && r->rc == QN_OK; i++) {
        qn_jscope *scope = r->scope;
        const qn_jv item = items->v[i];
        r->scope = qn_jinja_scope(r, scope);
        qn_jinja_assign(r, n->a, item);
        if (qn_jv_true(qn_jinja_eval(r, n->c))) qn_jv_push(r, kept, item);
        r->scope = scope;
    }
    return r->rc == QN_OK ? kept.u.list : NULL;
}

void qn_jinja_loop(qn_jrun *r, const qn_jnode *n, qn_jv over, qn_jscope *around, uint32_t depth)
{
    qn_jscope *scope = r->scope;
    r->scope = around;
    qn_jlist *items = qn_jv_iter(r, over);
    if (n->c) items = filtered(r, n, items);
    qn_jloop *loop = items ? QN_ARENA_NEW(&r->arena, qn_jloop, 1) : NULL;
    if (items && !loop) qn_jinja_fail(r, QN_E_LIMIT, "no memory for a loop of the template");
    if (loop) {
        *loop = (qn_jloop){.node = n, .scope = around, .items = items, .depth = depth};
        const qn_jv lv = {.type = QN_JV_LOOP, .u.loop = loop};
        const size_t count = items->n;
        for (size_t i = 0; i < count && qn_jinja_step(r, 1); i++) {
            loop->at = i;
            r->scope = qn_jinja_scope(r, around);
            qn_jinja_define(r, r->scope, "loop", lv);
            qn_jinja_assign(r, n->a, items->v[i]);
            qn_jinja_exec(r, n->d);
            const qn_jflow flow = r->flow;
            r->flow = QN_JF_ON;
            if (flow == QN_JF_BREAK) break;
        }
        if (!count && n->e) {
            r->scope = qn_jinja_scope(r, around);
            qn_jinja_exec(r, n->e);
        }
    }
    r->scope = scope;
}

static void exec_with(qn_jrun *r, const qn_jnode *n)
{
    qn_jscope *scope = r->scope, *inner = qn_jinja_scope(r, scope);
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
    qn_jmacro *m = r->rc == QN_OK ? QN_ARENA_NEW(&r->arena, qn_jmacro, 1) : NULL;
    if (!m) return qn_jinja_fail(r, QN_E_LIMIT, "no memory for a macro of the template");
    *m = (qn_jmacro){.node = n, .scope = r->scope};
    return (qn_jv){.type = QN_JV_MACRO, .u.macro = m};
}

static void exec_call(qn_jrun *r, const qn_jnode *n)
{
    const qn_jv f = qn_jinja_eval(r, n->d->a);
    qn_jargs a = qn_jinja_args(r, n->d->b);
    const qn_jv caller = macro_of(r, n);
    const char **names =
        r->rc == QN_OK ? QN_ARENA_NEW(&r->arena, const char *, a.n_named + 1) : NULL;
    qn_jv *named = r->rc == QN_OK ? QN_ARENA_NEW(&r->arena, qn_jv, a.n_named + 1) : NULL;
    if (!names || !named) {
        qn_jinja_fail(r, QN_E_LIMIT, "no memory for a call of the template");
        return;
    }
    for (size_t i = 0; i < a.n_named; i++) {
        names[i] = a.name[i];
        named[i] = a.named[i];
    }
    names[a.n_named] = "caller";
    named[a.n_named++] = caller;
    a.name = names;
    a.named = named;
    const qn_jv v = qn_jinja_call(r, f, &a);
    if (r->rc == QN_OK) qn_jv_write(r, r->out, v, false);
}

static void exec_if(qn_jrun *r, const qn_jnode *n)
{
    while (!qn_jv_true(qn_jinja_eval(r, n->a)) && r->rc == QN_OK) {
        const bool is_elif = n->c && n->c->kind == QN_JN_IF && !n->c->next;
        if (!is_elif) {
            qn_jinja_exec(r, n->c);
            return;
        }
        n = n->c;
    }
    if (r->rc == QN_OK) qn_jinja_exec(r, n->b);
}

/* A block whose text goes through filters: into a variable or out. */
static void exec_captured(qn_jrun *r, const qn_jnode *n)
{
    const bool set = n->kind == QN_JN_SET_BLOCK;
    const qn_jnode *filters = set ? n->b : n->a;
    qn_jv v = capture(r, set ? n->c : n->b);
    if (filters) {
        qn_jscope *scope = r->scope;
        r->scope = qn_jinja_scope(r, scope);
        qn_jinja_define(r, r->scope, "", v); /* what the filters are applied to */
        v = qn_jinja_eval(r, filters);
        r->scope = scope;
    }
    if (set)
        qn_jinja_assign(r, n->a, v);
    else if (r->rc == QN_OK)
        qn_jv_write(r, r->out, v, false);
}

static void exec_one(qn_jrun *r, const qn_jnode *n)
{
    qn_jv v;
    switch ((qn_jkind)n->kind) {
    case QN_JN_TEXT:
        qn_jinja_bytes(r, r->out, n->s, n->n);
        break;
    case QN_JN_OUTPUT:
        v = qn_jinja_eval(r, n->a);
        if (r->rc == QN_OK) qn_jv_write(r, r->out, v, false);
        break;
    case QN_JN_IF:
        exec_if(r, n);
        break;
    case QN_JN_FOR:
        v = qn_jinja_eval(r, n->b);
        if (r->rc == QN_OK) qn_jinja_loop(r, n, v, r->scope, 1);
        break;
    case QN_JN_SET:
        qn_jinja_assign(r, n->a, qn_jinja_eval(r, n->b));
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
    case QN_JN_DO:
        qn_jinja_eval(r, n->a);
        break;
    case QN_JN_SCOPE: {
        qn_jscope *scope = r->scope;
        r->scope = qn_jinja_scope(r, scope);
        qn_jinja_exec(r, n->b);
        r->scope = scope;
        break;
    }
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
    if (r->rc == QN_OK && r->frames >= QN_JINJA_MAX_FRAMES)
        qn_jinja_fail(r, QN_E_LIMIT, "nested too deeply");
    r->frames++;
    for (; body && r->flow == QN_JF_ON && qn_jinja_step(r, 1); body = body->next) {
        r->line = body->line;
        exec_one(r, body);
    }
    r->frames--;
}

qn_jv qn_jinja_call_macro(qn_jrun *r, const qn_jmacro *m, const qn_jargs *a)
{
    qn_jscope *scope = r->scope;
    const qn_jnode *n = m->node;
    size_t i = 0, used = 0;
    if (r->rc == QN_OK && r->calls >= r->max_calls)
        return qn_jinja_fail(r, QN_E_LIMIT, "more than %u calls inside each other", r->max_calls);
    r->calls++;
    r->scope = qn_jinja_scope(r, m->scope);
    qn_jinja_define(r, r->scope, "caller",
                    qn_jinja_arg(a, SIZE_MAX, "caller", qn_jv_undef("caller")));
    for (const qn_jnode *x = n->a; x && r->rc == QN_OK; x = x->next, i++) {
        bool given = i < a->n;
        qn_jv v = given ? a->v[i] : qn_jv_undef(x->s);
        for (size_t k = 0; k < a->n_named; k++)
            if (!strcmp(a->name[k], x->s)) {
                if (given) qn_jinja_fail(r, QN_E_FORMAT, "%s got two values for %s", n->s, x->s);
                given = true;
                v = a->named[k];
                used++;
            }
        if (!given && x->a) v = qn_jinja_eval(r, x->a);
        qn_jinja_define(r, r->scope, x->s, v);
    }
    for (size_t k = 0; k < a->n_named; k++) used += !strcmp(a->name[k], "caller");
    if (a->n > i) qn_jinja_fail(r, QN_E_FORMAT, "%s takes %zu arguments, found %zu", n->s, i, a->n);
    if (used < a->n_named)
        qn_jinja_fail(r, QN_E_FORMAT, "%s got an argument that it does not take", n->s);
    const qn_jv v = r->rc == QN_OK ? capture(r, n->b) : qn_jv_undef(NULL);
    r->scope = scope;
    r->calls--;
    return v;
}

qn_code qn_jinja_render(qn_buf *text, const qn_jinja *t, const qn_jinja_input *in, qn_err *err)
{
    const qn_jinja_limits *l = &in->limits;
    const size_t before = text->len;
    qn_jrun r = {.in = in,
                 .out = text,
                 .max_steps = l->steps ? l->steps : 20000000,
                 .max_output = l->output_bytes ? l->output_bytes : (size_t)64 << 20,
                 .max_calls = l->depth ? l->depth : 100,
                 .line = 1,
                 .err = err};
    qn_arena_init(&r.arena, l->memory_bytes ? l->memory_bytes : (size_t)512 << 20);
    qn_jscope *globals = qn_jinja_scope(&r, NULL);
    for (size_t i = 0; i < in->n_variables; i++) {
        const void *it = NULL;
        const char *key = NULL;
        const qn_json *v = NULL;
        while (r.rc == QN_OK && qn_json_next(in->variables[i], &it, &key, &v))
            qn_jinja_define(&r, globals, key, qn_jv_from_json(&r, v, 0));
    }
    r.scope = qn_jinja_scope(&r, globals);
    qn_jinja_exec(&r, t->body);
    qn_arena_fini(&r.arena);
    if (r.rc != QN_OK) qn_buf_truncate(text, before);
    return r.rc;
}
