/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_frames.c - what jinja2 decides when it compiles: which variables a scope hides until it has
 * set them, which filters must exist, where break may stand, what a macro is called with.
 *
 * A scope (the template, the body of a loop or macro ...) knows its variables before it runs. One that
 * it sets without having read it first, and that no scope around it knows, is undefined until then,
 * even where the caller gave a variable of that name. */
#include <string.h>

#include "text/jinja_int.h"

typedef struct frame {
    struct frame *up;
    qn_jname *refs, *stores; /* known; set here (read: without a value until then) */
    bool soft, in_loop, top;
} frame;

/* Lists are short in any template that means well; the others must not cost minutes. */
static qn_jname *named(qn_jparse *p, qn_jname *list, const char *s)
{
    for (; list && p->rc == QN_OK; list = list->next) {
        if (!strcmp(list->s, s)) return list;
        if (++p->work > QN_JINJA_MAX_WORK)
            p->rc = qn_fail(p->err, QN_E_LIMIT, "a template of too many names");
    }
    return NULL;
}

static void add(qn_jparse *p, qn_jname **list, const char *s, bool read)
{
    if (p->rc != QN_OK) return;
    qn_jname *x = QN_ARENA_NEW(p->arena, qn_jname, 1);
    if (!x) {
        p->rc = qn_fail(p->err, QN_E_NOMEM, "names of a template");
        return;
    }
    *x = (qn_jname){.s = s, .read = read, .next = *list};
    *list = x;
}

static bool known(qn_jparse *p, const frame *f, const char *s)
{
    for (; f; f = f->up)
        if (named(p, f->refs, s)) return true;
    return false;
}

static void load(qn_jparse *p, frame *f, const char *s)
{
    if (!known(p, f, s)) add(p, &f->refs, s, false);
}

static void store(qn_jparse *p, frame *f, const char *s)
{
    const bool hides = !known(p, f, s);
    if (!named(p, f->refs, s)) add(p, &f->refs, s, hides);
    if (!named(p, f->stores, s)) add(p, &f->stores, s, false);
}

static void parameter(qn_jparse *p, frame *f, const char *s)
{
    qn_jname *x = named(p, f->refs, s);
    if (x)
        x->read = false;
    else
        add(p, &f->refs, s, false);
    if (!named(p, f->stores, s)) add(p, &f->stores, s, false);
}

/* Each expression hanging on a node, in the order in which jinja2 walks them. */
static void loads(qn_jparse *p, frame *f, const qn_jnode *n)
{
    for (; n && p->rc == QN_OK; n = n->next) {
        if (n->kind == QN_JN_NAME || n->kind == QN_JN_NSREF) load(p, f, n->s);
        loads(p, f, n->a);
        loads(p, f, n->b);
        loads(p, f, n->c);
        loads(p, f, n->d);
    }
}

static void one_load(qn_jparse *p, frame *f, qn_jnode *n)
{
    if (!n) return;
    qn_jnode *next = n->next;
    n->next = NULL;
    loads(p, f, n);
    n->next = next;
}

static void targets(qn_jparse *p, frame *f, const qn_jnode *t, bool as_parameter)
{
    if (t->kind == QN_JN_TUPLE)
        for (const qn_jnode *x = t->a; x; x = x->next) targets(p, f, x, as_parameter);
    else if (t->kind == QN_JN_NSREF)
        load(p, f, t->s);
    else if (as_parameter)
        parameter(p, f, t->s);
    else
        store(p, f, t->s);
}

static void symbols(qn_jparse *p, frame *f, qn_jnode *body);

/* Names set in a branch may be set or not: they are looked up outside until then. */
static void branches(qn_jparse *p, frame *f, qn_jnode *n)
{
    one_load(p, f, n->a);
    frame one = *f, two = *f;
    symbols(p, &one, n->b);
    if (n->i)
        branches(p, &two, n->c);
    else
        symbols(p, &two, n->c);
    const qn_jname *end = f->stores;
    const frame *both[] = {&one, &two};
    qn_jname *old = f->refs;
    for (size_t i = 0; i < 2; i++) {
        for (const qn_jname *x = both[i]->refs; x != old && p->rc == QN_OK; x = x->next)
            if (!named(p, f->refs, x->s)) add(p, &f->refs, x->s, false);
        for (const qn_jname *x = both[i]->stores; x != end && p->rc == QN_OK; x = x->next)
            if (!named(p, f->stores, x->s)) add(p, &f->stores, x->s, false);
    }
}

static void symbols(qn_jparse *p, frame *f, qn_jnode *n)
{
    for (; n && p->rc == QN_OK; n = n->next) {
        switch ((qn_jkind)n->kind) {
        case QN_JN_OUTPUT:
            loads(p, f, n->a);
            break;
        case QN_JN_IF:
            branches(p, f, n);
            break;
        case QN_JN_FOR:
            one_load(p, f, n->b);
            break;
        case QN_JN_SET:
            one_load(p, f, n->b);
            targets(p, f, n->a, false);
            break;
        case QN_JN_SET_BLOCK:
            targets(p, f, n->a, false);
            break;
        case QN_JN_WITH:
            for (qn_jnode *t = n->a; t; t = t->next->next) one_load(p, f, t->next);
            break;
        case QN_JN_MACRO:
            store(p, f, n->s);
            break;
        case QN_JN_CALL_BLOCK:
            one_load(p, f, n->d);
            break;
        case QN_JN_FILTER_BLOCK:
            one_load(p, f, n->a);
            break;
        case QN_JN_LOAD:
            one_load(p, f, n->a);
            if (n->s2) store(p, f, n->s2);
            break;
        default:
            break;
        }
    }
}

/* Whether an expression or body reads a name that it does not set first. */
static bool reads(const qn_jnode *n, const char *s)
{
    for (; n; n = n->next) {
        if (n->kind == QN_JN_BLOCK) continue;
        if (n->kind == QN_JN_NAME && !strcmp(n->s, s)) return true;
        const bool target =
            n->kind == QN_JN_FOR || n->kind == QN_JN_SET || n->kind == QN_JN_SET_BLOCK;
        if (n->kind == QN_JN_WITH) {
            for (const qn_jnode *t = n->a; t; t = t->next->next) {
                const qn_jnode value = {.kind = QN_JN_ARG, .a = t->next->a, .b = t->next->b};
                if (reads(&value, s) || (t->next->kind == QN_JN_NAME && !strcmp(t->next->s, s)))
                    return true;
            }
        } else if (!target && reads(n->a, s)) {
            return true;
        }
        if (reads(n->b, s) || reads(n->c, s) || reads(n->d, s) || reads(n->e, s)) return true;
    }
    return false;
}

static void expressions(qn_jparse *p, frame *f, const qn_jnode *n);

static void one_expression(qn_jparse *p, frame *f, const qn_jnode *n)
{
    if (!n || p->rc != QN_OK) return;
    frame soft = *f;
    if (n->kind == QN_JN_COND) soft.soft = true;
    frame *in = n->kind == QN_JN_COND ? &soft : f;
    expressions(p, in, n->a);
    expressions(p, in, n->b);
    expressions(p, in, n->c);
    expressions(p, in, n->d);
    if (f->soft) return;
    if (n->kind == QN_JN_FILTER && !qn_jinja_has_filter(n->s))
        qn_jinja_wrong(p, n->line, "no filter is named '%s'", n->s);
    if (n->kind == QN_JN_TEST && !qn_jinja_has_test(n->s))
        qn_jinja_wrong(p, n->line, "no test is named '%s'", n->s);
}

/* Filters and tests must exist where the code is sure to run. */
static void expressions(qn_jparse *p, frame *f, const qn_jnode *n)
{
    for (; n && p->rc == QN_OK; n = n->next) one_expression(p, f, n);
}

/* Whether jinja2 can evaluate an expression when it compiles. */
static bool constant(const qn_jnode *n)
{
    for (; n; n = n->next) {
        if (n->kind == QN_JN_NAME || n->kind == QN_JN_CALL || (n->kind == QN_JN_COND && !n->c) ||
            (n->kind == QN_JN_ARG && n->op))
            return false;
        if (n->kind == QN_JN_FILTER &&
            qn_jinja_is_one_of(n->s, "map select reject selectattr rejectattr random"))
            return false;
        if (!constant(n->a) || !constant(n->b) || !constant(n->c) || !constant(n->d)) return false;
    }
    return true;
}

static void output(qn_jparse *p, frame *f, qn_jnode *n)
{
    for (qn_jnode *x = n->a; x; x = x->next) {
        const qn_jnode one = {
            .kind = x->kind, .op = x->op, .s = x->s, .a = x->a, .b = x->b, .c = x->c, .d = x->d};
        x->constant = constant(&one);
        if (!x->constant) p->said = x->line;
    }
    expressions(p, f, n->a);
}

static void body(qn_jparse *p, frame *f, qn_jnode *n);

static qn_jname *hidden(qn_jparse *p, const frame *f)
{
    qn_jname *out = NULL;
    for (const qn_jname *x = f->refs; x; x = x->next)
        if (x->read) add(p, &out, x->s, true);
    return out;
}

static frame inner(frame *f, bool in_loop) { return (frame){.up = f, .in_loop = in_loop}; }

static bool sets_loop(const qn_jnode *n, bool target)
{
    for (; n; n = n->next) {
        if (target && n->kind == QN_JN_NAME && !strcmp(n->s, "loop")) return true;
        if (target && sets_loop(n->a, true)) return true;
        if (target) continue;
        if (n->kind == QN_JN_SET || n->kind == QN_JN_SET_BLOCK || n->kind == QN_JN_FOR) {
            const qn_jnode one = {.kind = n->a->kind, .s = n->a->s, .a = n->a->a};
            if (sets_loop(&one, true)) return true;
        }
        if (sets_loop(n->b, false) || sets_loop(n->c, false) || sets_loop(n->d, false) ||
            sets_loop(n->e, false))
            return true;
    }
    return false;
}

static void for_body(qn_jparse *p, frame *f, qn_jnode *n)
{
    frame in = inner(f, true), other = inner(f, f->in_loop && !n->i), test = inner(f, false);
    const qn_jnode one = {.kind = QN_JN_FOR, .a = n->a, .d = n->d, .e = n->e};
    if (sets_loop(&one, false)) qn_jinja_wrong(p, n->line, "loop cannot be assigned to in a loop");
    /* A loop that does not speak of `loop` leaves the outer one visible. */
    n->caller = n->i || reads(n->d, "loop");
    if (n->caller) parameter(p, &in, "loop");
    targets(p, &in, n->a, true);
    symbols(p, &in, n->d);
    one_expression(p, f, n->b);
    p->said = n->line;
    if (n->c) {
        targets(p, &test, n->a, true);
        one_load(p, &test, n->c);
        one_expression(p, &test, n->c);
    }
    n->hidden = hidden(p, &in);
    body(p, &in, n->d);
    symbols(p, &other, n->e);
    n->hidden_else = hidden(p, &other);
    body(p, &other, n->e);
}

static void macro_body(qn_jparse *p, frame *f, qn_jnode *n)
{
    frame in = inner(f, false);
    p->said = n->line;
    bool own_caller = false, own_kwargs = false, own_varargs = false;
    for (qn_jnode *x = n->a; x; x = x->next) {
        own_kwargs |= !strcmp(x->s, "kwargs");
        own_varargs |= !strcmp(x->s, "varargs");
        if (strcmp(x->s, "caller")) continue;
        own_caller = true;
        if (!x->a && reads(n->b, "caller"))
            qn_jinja_wrong(p, n->line, "a parameter named caller needs a default");
    }
    for (qn_jnode *x = n->a; x; x = x->next) parameter(p, &in, x->s);
    for (qn_jnode *x = n->a; x; x = x->next) one_load(p, &in, x->a);
    n->caller = reads(n->b, "caller");
    n->kwargs = !own_kwargs && reads(n->b, "kwargs");
    n->varargs = !own_varargs && reads(n->b, "varargs");
    if (n->caller && !own_caller) parameter(p, &in, "caller");
    if (n->kwargs) parameter(p, &in, "kwargs");
    if (n->varargs) parameter(p, &in, "varargs");
    symbols(p, &in, n->b);
    n->hidden = hidden(p, &in);
    for (qn_jnode *x = n->a; x; x = x->next) one_expression(p, &in, x->a);
    body(p, &in, n->b);
}

/* A scope without parameters around a body. */
static void scope_body(qn_jparse *p, qn_jnode *n, qn_jnode *inside, frame *in)
{
    symbols(p, in, inside);
    n->hidden = hidden(p, in);
    body(p, in, inside);
}

static void with_body(qn_jparse *p, frame *f, qn_jnode *n)
{
    frame in = inner(f, f->in_loop);
    n->line = p->said; /* jinja2 marks no line for it */
    for (qn_jnode *t = n->a; t; t = t->next->next) {
        one_expression(p, f, t->next);
        targets(p, &in, t, true);
    }
    scope_body(p, n, n->b, &in);
}

static void statement(qn_jparse *p, frame *f, qn_jnode *n)
{
    frame in = inner(f, f->in_loop), soft = *f;
    soft.soft = true;
    switch ((qn_jkind)n->kind) {
    case QN_JN_OUTPUT:
        output(p, f, n);
        break;
    case QN_JN_IF:
        p->said = n->line;
        one_expression(p, &soft, n->a);
        body(p, &soft, n->b);
        body(p, &soft, n->c);
        break;
    case QN_JN_FOR:
        for_body(p, f, n);
        break;
    case QN_JN_SET:
        p->said = n->line;
        one_expression(p, f, n->b);
        break;
    case QN_JN_SET_BLOCK:
        scope_body(p, n, n->c, &in);
        p->said = n->line;
        one_expression(p, &in, n->b);
        break;
    case QN_JN_FILTER_BLOCK:
        one_load(p, &in, n->a);
        scope_body(p, n, n->b, &in);
        p->said = n->line;
        one_expression(p, &in, n->a);
        break;
    case QN_JN_AUTOESCAPE:
        one_load(p, &in, n->a);
        one_expression(p, &in, n->a);
        scope_body(p, n, n->b, &in);
        break;
    case QN_JN_WITH:
        with_body(p, f, n);
        break;
    case QN_JN_MACRO:
        macro_body(p, f, n);
        break;
    case QN_JN_CALL_BLOCK:
        macro_body(p, f, n);
        p->said = n->line;
        one_expression(p, f, n->d);
        break;
    case QN_JN_BREAK:
    case QN_JN_CONTINUE:
        if (!f->in_loop) qn_jinja_wrong(p, n->line, "break or continue outside of a loop");
        break;
    case QN_JN_LOAD:
        one_expression(p, f, n->a);
        if (!strcmp(n->s, "extends") && !f->top)
            qn_jinja_wrong(p, n->line, "extends stands at the top only");
        break;
    default:
        break;
    }
}

static void body(qn_jparse *p, frame *f, qn_jnode *n)
{
    for (; n && p->rc == QN_OK; n = n->next) statement(p, f, n);
}

/* Blocks are programs of their own, seen from the template's scope. */
static void blocks(qn_jparse *p, qn_jnode *root, qn_jnode *n)
{
    for (; n && p->rc == QN_OK; n = n->next) {
        if (n->kind == QN_JN_BLOCK) {
            frame f = {.top = false};
            if (++p->blocks > QN_JINJA_MAX_BLOCKS) {
                p->rc = qn_fail(p->err, QN_E_LIMIT, "more than %d blocks", QN_JINJA_MAX_BLOCKS);
                return;
            }
            if (qn_jinja_find_block(root->b, n->s) != n)
                qn_jinja_wrong(p, n->line, "block %s is there twice", n->s);
            scope_body(p, n, n->b, &f);
        }
        if (n->kind < QN_JN_TEXT) continue;
        blocks(p, root, n->b);
        blocks(p, root, n->c);
        blocks(p, root, n->d);
        blocks(p, root, n->e);
    }
}

const qn_jnode *qn_jinja_find_block(const qn_jnode *n, const char *name)
{
    for (; n; n = n->next) {
        if (n->kind == QN_JN_BLOCK && !strcmp(n->s, name)) return n;
        if (n->kind < QN_JN_TEXT) continue;
        const qn_jnode *parts[] = {n->b, n->c, n->d, n->e};
        for (size_t i = 0; i < 4; i++) {
            const qn_jnode *found = qn_jinja_find_block(parts[i], name);
            if (found) return found;
        }
    }
    return NULL;
}

void qn_jinja_frames(qn_jparse *p, qn_jnode *root)
{
    frame f = {.top = true};
    p->said = 1;
    symbols(p, &f, root->b);
    root->hidden = hidden(p, &f);
    body(p, &f, root->b);
    blocks(p, root, root->b);
}
