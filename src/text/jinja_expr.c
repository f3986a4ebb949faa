/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_expr.c - expressions of a template, by recursive descent; what binds how is jinja2's. */
#include <string.h>

#include "text/jinja_int.h"

qn_jnode *qn_jinja_node(qn_jparse *p, qn_jkind kind)
{
    if (p->rc != QN_OK) return NULL;
    qn_jnode *n = QN_ARENA_NEW(p->arena, qn_jnode, 1);
    if (!n) {
        p->rc = qn_fail(p->err, QN_E_NOMEM, "tree of a template");
        return NULL;
    }
    n->kind = (uint8_t)kind;
    n->line = p->t->line;
    return n;
}

qn_jnode *qn_jinja_expected(qn_jparse *p, const char *what)
{
    static const char *const kinds[] = {"the end of the template", "text", "{{", "}}", "{%", "%}"};
    if (p->rc != QN_OK) return NULL;
    const qn_jtok *t = p->t;
    if (t->kind <= QN_JT_BLOCK_END)
        p->rc = qn_fail(p->err, QN_E_FORMAT, "line %u: expected %s, found %s", t->line, what,
                        kinds[t->kind]);
    else if (t->kind == QN_JT_OP)
        p->rc =
            qn_fail(p->err, QN_E_FORMAT, "line %u: expected %s, found '%c'", t->line, what, t->op);
    else
        p->rc = qn_fail(p->err, QN_E_FORMAT, "line %u: expected %s, found '%.*s'", t->line, what,
                        (int)(t->n < 40 ? t->n : 40), t->s ? t->s : "a number");
    return NULL;
}

bool qn_jinja_at_op(const qn_jparse *p, char op)
{
    return p->t->kind == QN_JT_OP && p->t->op == op;
}
bool qn_jinja_at_name(const qn_jparse *p, const char *name)
{
    return p->t->kind == QN_JT_NAME && !strcmp(p->t->s, name);
}
bool qn_jinja_skip_op(qn_jparse *p, char op)
{
    if (p->rc != QN_OK || !qn_jinja_at_op(p, op)) return false;
    p->t++;
    return true;
}
bool qn_jinja_skip_name(qn_jparse *p, const char *name)
{
    if (p->rc != QN_OK || !qn_jinja_at_name(p, name)) return false;
    p->t++;
    return true;
}
bool qn_jinja_want_op(qn_jparse *p, char op)
{
    const char what[] = {'\'', op, '\'', 0};
    if (qn_jinja_skip_op(p, op)) return true;
    qn_jinja_expected(p, what);
    return false;
}

void qn_jinja_note(qn_jparse *p, const char *s, bool read)
{
    for (qn_jname *x = p->names; x; x = x->next)
        if (!strcmp(x->s, s)) return;
    qn_jname *x = p->rc == QN_OK ? QN_ARENA_NEW(p->arena, qn_jname, 1) : NULL;
    if (!x) {
        if (p->rc == QN_OK) p->rc = qn_fail(p->err, QN_E_NOMEM, "names of a template");
        return;
    }
    *x = (qn_jname){.s = s, .read = read, .next = p->names};
    p->names = x;
}

static bool deeper(qn_jparse *p)
{
    if (p->rc == QN_OK && p->depth >= QN_JINJA_MAX_NESTING)
        p->rc = qn_fail(p->err, QN_E_LIMIT, "line %u: nested deeper than %d", p->t->line,
                        QN_JINJA_MAX_NESTING);
    if (p->rc != QN_OK) return false;
    p->depth++;
    return true;
}

/* A list of arguments behind its '('. */
static qn_jnode *args(qn_jparse *p)
{
    qn_jnode *head = NULL, **tail = &head;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, ')')) {
        if (head && !qn_jinja_want_op(p, ',')) return NULL;
        if (qn_jinja_skip_op(p, ')')) break;
        qn_jnode *n = qn_jinja_node(p, QN_JN_ARG);
        if (!n) return NULL;
        if (qn_jinja_skip_op(p, '*'))
            n->op = '*';
        else if (qn_jinja_skip_op(p, 'p'))
            n->op = 'p';
        else if (p->t->kind == QN_JT_NAME && p->t[1].kind == QN_JT_OP && p->t[1].op == '=') {
            n->s = p->t->s;
            p->t += 2;
        }
        n->a = qn_jinja_expr(p, true);
        *tail = n;
        tail = &n->next;
    }
    return head;
}

static qn_jnode *items(qn_jparse *p, qn_jkind kind, char end)
{
    qn_jnode *n = qn_jinja_node(p, kind);
    qn_jnode **tail = n ? &n->a : NULL;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, end)) {
        if (n->a && !qn_jinja_want_op(p, ',')) return NULL;
        if (qn_jinja_skip_op(p, end)) break;
        qn_jnode *x = qn_jinja_expr(p, true);
        if (!x) return NULL;
        *tail = x;
        tail = &x->next;
        if (kind != QN_JN_DICT) continue;
        if (!qn_jinja_want_op(p, ':')) return NULL;
        x = qn_jinja_expr(p, true);
        if (!x) return NULL;
        *tail = x;
        tail = &x->next;
    }
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *named(qn_jparse *p)
{
    static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < 6; i++)
        if (qn_jinja_at_name(p, words[i])) {
            qn_jnode *n = qn_jinja_node(p, i < 4 ? QN_JN_BOOL : QN_JN_NONE);
            if (n) n->i = i < 2;
            p->t++;
            return n;
        }
    qn_jnode *n = qn_jinja_node(p, QN_JN_NAME);
    if (!n) return NULL;
    n->s = p->t->s;
    n->n = p->t->n;
    qn_jinja_note(p, n->s, true);
    p->t++;
    return n;
}

static qn_jnode *strings(qn_jparse *p)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_STR);
    if (!n) return NULL;
    n->s = p->t->s;
    n->n = p->t->n;
    for (p->t++; p->t->kind == QN_JT_STRING; p->t++) { /* neighbours are one string */
        char *both = qn_arena_push(p->arena, n->n + p->t->n + 1, 1);
        if (!both) {
            p->rc = qn_fail(p->err, QN_E_NOMEM, "string of a template");
            return NULL;
        }
        memcpy(both, n->s, n->n);
        memcpy(both + n->n, p->t->s, p->t->n + 1);
        n->s = both;
        n->n += p->t->n;
    }
    return n;
}

static qn_jnode *primary(qn_jparse *p)
{
    const qn_jtok *t = p->t;
    if (p->rc != QN_OK) return NULL;
    if (t->kind == QN_JT_NAME) return named(p);
    if (t->kind == QN_JT_STRING) return strings(p);
    if (t->kind == QN_JT_INT || t->kind == QN_JT_REAL) {
        qn_jnode *n = qn_jinja_node(p, t->kind == QN_JT_INT ? QN_JN_INT : QN_JN_REAL);
        if (!n) return NULL;
        n->i = t->i;
        n->real = t->d;
        p->t++;
        return n;
    }
    if (qn_jinja_skip_op(p, '[')) return items(p, QN_JN_LIST, ']');
    if (qn_jinja_skip_op(p, '{')) return items(p, QN_JN_DICT, '}');
    if (qn_jinja_skip_op(p, '(')) {
        if (qn_jinja_skip_op(p, ')')) return qn_jinja_node(p, QN_JN_TUPLE);
        qn_jnode *n = qn_jinja_tuple(p, true);
        return n && qn_jinja_want_op(p, ')') ? n : NULL;
    }
    return qn_jinja_expected(p, "an expression");
}

static qn_jnode *subscript(qn_jparse *p, qn_jnode *a)
{
    qn_jnode *part[3] = {0};
    int at = 0;
    qn_jnode *n = qn_jinja_node(p, QN_JN_ITEM);
    if (!n) return NULL;
    n->a = a;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, ']')) {
        if (at < 2 && qn_jinja_skip_op(p, ':')) {
            at++;
            continue;
        }
        if (part[at]) return qn_jinja_expected(p, "']'");
        part[at] = at ? qn_jinja_expr(p, true) : qn_jinja_tuple(p, true);
    }
    if (!at && !part[0]) return qn_jinja_expected(p, "a subscript");
    if (at) n->kind = QN_JN_SLICE;
    n->b = part[0];
    n->c = part[1];
    n->d = part[2];
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *call(qn_jparse *p, qn_jnode *a)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_CALL);
    if (!n) return NULL;
    n->a = a;
    n->b = args(p);
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *postfix(qn_jparse *p, qn_jnode *a)
{
    while (a && p->rc == QN_OK) {
        if (qn_jinja_skip_op(p, '.')) {
            const bool is_name = p->t->kind == QN_JT_NAME;
            if (!is_name && p->t->kind != QN_JT_INT) return qn_jinja_expected(p, "a name");
            qn_jnode *n = qn_jinja_node(p, is_name ? QN_JN_ATTR : QN_JN_ITEM);
            if (!n) return NULL;
            n->a = a;
            n->s = p->t->s;
            if (!is_name && !(n->b = primary(p))) return NULL;
            if (is_name) p->t++;
            a = n;
        } else if (qn_jinja_skip_op(p, '[')) {
            a = subscript(p, a);
        } else if (qn_jinja_skip_op(p, '(')) {
            a = call(p, a);
        } else {
            return a;
        }
    }
    return NULL;
}

static qn_jnode *test(qn_jparse *p, qn_jnode *a)
{
    static const char *const no_arg[] = {"else", "or", "and", "is", "if", "not", "in"};
    const bool negated = qn_jinja_skip_name(p, "not");
    if (p->t->kind != QN_JT_NAME) return qn_jinja_expected(p, "the name of a test");
    qn_jnode *n = qn_jinja_node(p, QN_JN_TEST);
    if (!n) return NULL;
    n->a = a;
    n->s = p->t->s;
    n->i = negated;
    p->t++;
    if (qn_jinja_skip_op(p, '(')) {
        n->b = args(p);
        return p->rc == QN_OK ? n : NULL;
    }
    bool takes = (p->t->kind >= QN_JT_NAME && p->t->kind <= QN_JT_REAL) || qn_jinja_at_op(p, '[') ||
                 qn_jinja_at_op(p, '{');
    for (size_t i = 0; i < 7; i++) takes = takes && !qn_jinja_at_name(p, no_arg[i]);
    if (!takes) return n;
    n->b = qn_jinja_node(p, QN_JN_ARG);
    if (n->b) n->b->a = postfix(p, primary(p));
    return p->rc == QN_OK ? n : NULL;
}

qn_jnode *qn_jinja_filters(qn_jparse *p, qn_jnode *a, bool first_without_bar)
{
    while (p->rc == QN_OK) {
        if (first_without_bar || qn_jinja_skip_op(p, '|')) {
            first_without_bar = false;
            if (p->t->kind != QN_JT_NAME) return qn_jinja_expected(p, "the name of a filter");
            qn_jnode *n = qn_jinja_node(p, QN_JN_FILTER);
            if (!n) return NULL;
            n->a = a;
            n->s = p->t->s;
            p->t++;
            if (qn_jinja_skip_op(p, '(')) n->b = args(p);
            a = n;
        } else if (qn_jinja_skip_name(p, "is")) {
            a = test(p, a);
        } else if (a && qn_jinja_skip_op(p, '(')) {
            a = call(p, a);
        } else {
            return a;
        }
    }
    return NULL;
}

qn_jnode *qn_jinja_unary(qn_jparse *p, bool with_filter)
{
    qn_jnode *n = NULL;
    if (!deeper(p)) return NULL;
    if (qn_jinja_at_op(p, '-') || qn_jinja_at_op(p, '+')) {
        n = qn_jinja_node(p, QN_JN_UNARY);
        if (n) {
            n->op = p->t->op;
            p->t++;
            n->a = qn_jinja_unary(p, false);
        }
    } else {
        n = primary(p);
    }
    n = postfix(p, n);
    if (n && with_filter) n = qn_jinja_filters(p, n, false);
    p->depth--;
    return p->rc == QN_OK ? n : NULL;
}

/* The levels of binary operators, the loosest first. */
static qn_jnode *binary(qn_jparse *p, int level)
{
    static const char *const ops[] = {"+-", "~", "*/f%", "p"};
    if (level == 4) return qn_jinja_unary(p, true);
    qn_jnode *a = binary(p, level + 1);
    while (a && p->t->kind == QN_JT_OP && strchr(ops[level], p->t->op)) {
        qn_jnode *n = qn_jinja_node(p, QN_JN_BINARY);
        if (!n) return NULL;
        n->op = p->t->op;
        p->t++;
        n->a = a;
        n->b = binary(p, level + 1);
        a = n;
    }
    return p->rc == QN_OK ? a : NULL;
}

static qn_jnode *compare(qn_jparse *p)
{
    qn_jnode *a = binary(p, 0), *n = NULL, **tail = NULL;
    while (a && p->rc == QN_OK) {
        char op = 0;
        if (p->t->kind == QN_JT_OP && strchr("en<>gl", p->t->op))
            op = p->t->op;
        else if (qn_jinja_at_name(p, "in"))
            op = 'i';
        else if (qn_jinja_at_name(p, "not") && p->t[1].kind == QN_JT_NAME &&
                 !strcmp(p->t[1].s, "in"))
            op = 'o';
        if (!op) break;
        p->t += op == 'o' ? 2 : 1;
        if (!n) {
            n = qn_jinja_node(p, QN_JN_COMPARE);
            if (!n) return NULL;
            n->a = a;
            tail = &n->b;
        }
        qn_jnode *link = qn_jinja_node(p, QN_JN_LINK);
        if (!link) return NULL;
        link->op = op;
        link->a = binary(p, 0);
        *tail = link;
        tail = &link->next;
    }
    return p->rc != QN_OK ? NULL : n ? n : a;
}

static qn_jnode *negation(qn_jparse *p)
{
    if (!qn_jinja_at_name(p, "not")) return compare(p);
    qn_jnode *n = qn_jinja_node(p, QN_JN_UNARY);
    if (!n || !deeper(p)) return NULL;
    p->t++;
    n->op = '!';
    n->a = negation(p);
    p->depth--;
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *logic(qn_jparse *p, bool is_or)
{
    qn_jnode *a = is_or ? logic(p, false) : negation(p);
    while (a && qn_jinja_skip_name(p, is_or ? "or" : "and")) {
        qn_jnode *n = qn_jinja_node(p, QN_JN_BINARY);
        if (!n) return NULL;
        n->op = is_or ? '|' : '&';
        n->a = a;
        n->b = is_or ? logic(p, false) : negation(p);
        a = n;
    }
    return p->rc == QN_OK ? a : NULL;
}

qn_jnode *qn_jinja_expr(qn_jparse *p, bool with_cond)
{
    if (!deeper(p)) return NULL;
    qn_jnode *a = logic(p, true);
    while (a && with_cond && qn_jinja_skip_name(p, "if")) {
        qn_jnode *n = qn_jinja_node(p, QN_JN_COND);
        if (!n) return NULL;
        n->a = a;
        n->b = logic(p, true);
        if (qn_jinja_skip_name(p, "else")) n->c = qn_jinja_expr(p, true);
        a = n;
    }
    p->depth--;
    return p->rc == QN_OK ? a : NULL;
}

static bool ends_tuple(const qn_jparse *p)
{
    return p->t->kind == QN_JT_VAR_END || p->t->kind == QN_JT_BLOCK_END ||
           (p->t->kind == QN_JT_OP && strchr(")]=", p->t->op)) || qn_jinja_at_name(p, "in");
}

qn_jnode *qn_jinja_tuple(qn_jparse *p, bool with_cond)
{
    qn_jnode *first = qn_jinja_expr(p, with_cond);
    if (!first || !qn_jinja_at_op(p, ',')) return first;
    qn_jnode *n = qn_jinja_node(p, QN_JN_TUPLE);
    if (!n) return NULL;
    n->a = first;
    for (qn_jnode *last = first; qn_jinja_skip_op(p, ',') && !ends_tuple(p); last = last->next)
        if (!(last->next = qn_jinja_expr(p, with_cond))) return NULL;
    return p->rc == QN_OK ? n : NULL;
}
