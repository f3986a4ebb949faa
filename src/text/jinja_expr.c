/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_expr.c - expressions of a template, by recursive descent; what binds how, and which line an
 * expression is on, is jinja2's. */
#include <stdarg.h>
#include <stdio.h>
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

qn_jnode *qn_jinja_wrong(qn_jparse *p, uint32_t line, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (p->rc != QN_OK) return NULL;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->rc = qn_fail(p->err, QN_E_FORMAT, "line %u: %s", line, text);
    return NULL;
}

qn_jnode *qn_jinja_expected(qn_jparse *p, const char *what)
{
    static const char *const kinds[QN_JT_KINDS] = {
        "the end of the template", "text", "{{", "}}", "{%", "%}", "", "", "a number", "a number"};
    const qn_jtok *t = p->t;
    if (p->rc != QN_OK) return NULL;
    if (t->kind == QN_JT_FAULT) return qn_jinja_wrong(p, t->line, "%s", t->s);
    if (t->kind == QN_JT_OP)
        return qn_jinja_wrong(p, t->line, "expected %s, found '%c'", what, t->op);
    if (t->kind == QN_JT_NAME || t->kind == QN_JT_STRING)
        return qn_jinja_wrong(p, t->line, "expected %s, found '%.*s'", what,
                              (int)(t->n < 40 ? t->n : 40), t->s);
    return qn_jinja_wrong(p, t->line, "expected %s, found %s", what, kinds[t->kind]);
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

static qn_jnode *too_many_names(qn_jparse *p)
{
    p->rc = qn_fail(p->err, QN_E_LIMIT, "line %u: a template of too many names", p->t->line);
    return NULL;
}

void qn_jinja_note(qn_jparse *p, const char *s, bool read)
{
    for (qn_jname *x = p->names; x && p->rc == QN_OK; x = x->next) {
        if (!strcmp(x->s, s)) return;
        if (++p->work > QN_JINJA_MAX_WORK) too_many_names(p);
    }
    qn_jname *x = p->rc == QN_OK ? QN_ARENA_NEW(p->arena, qn_jname, 1) : NULL;
    if (!x) {
        if (p->rc == QN_OK) p->rc = qn_fail(p->err, QN_E_NOMEM, "names of a template");
        return;
    }
    *x = (qn_jname){.s = s, .read = read, .next = p->names};
    p->names = x;
}

bool qn_jinja_link(qn_jparse *p, uint32_t *chain)
{
    if (p->rc == QN_OK && ++*chain > QN_JINJA_MAX_CHAIN)
        p->rc = qn_fail(p->err, QN_E_LIMIT, "line %u: more than %d links in one chain", p->t->line,
                        QN_JINJA_MAX_CHAIN);
    return p->rc == QN_OK;
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

static qn_jnode *line_of(qn_jnode *n, uint32_t line)
{
    if (n) n->line = line;
    return n;
}

/* An argument in its order: by position, by name, *, **. */
static qn_jnode *arg(qn_jparse *p, int *stage, const qn_jnode *before)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_ARG);
    if (!n) return NULL;
    int now = 0;
    if (qn_jinja_skip_op(p, '*')) {
        n->op = '*';
        now = 2;
    } else if (qn_jinja_skip_op(p, 'p')) {
        n->op = 'p';
        now = 3;
    } else if (p->t->kind == QN_JT_NAME && p->t[1].kind == QN_JT_OP && p->t[1].op == '=') {
        n->s = p->t->s;
        p->t += 2;
        now = 1;
    }
    /* Names may follow *; everything else keeps the order, and * and ** come once. */
    const bool fits = now == 1   ? *stage < 3
                      : now == 0 ? *stage == 0
                      : now == 2 ? *stage < 2
                                 : *stage < 3;
    if (!fits) return qn_jinja_wrong(p, n->line, "arguments of a call are out of order");
    for (; n->s && before; before = before->next) {
        if (before->s && !strcmp(before->s, n->s))
            return qn_jinja_wrong(p, n->line, "the argument %s is given twice", n->s);
        if (++p->work > QN_JINJA_MAX_WORK) break;
    }
    if (p->work > QN_JINJA_MAX_WORK) return too_many_names(p);
    *stage = now > *stage ? now : *stage;
    n->a = qn_jinja_expr(p, true);
    return p->rc == QN_OK ? n : NULL;
}

/* A list of arguments behind its '('. */
static qn_jnode *args(qn_jparse *p)
{
    qn_jnode *head = NULL, **tail = &head;
    int stage = 0;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, ')')) {
        if (head && !qn_jinja_want_op(p, ',')) return NULL;
        if (head && qn_jinja_skip_op(p, ')')) break;
        qn_jnode *n = arg(p, &stage, head);
        if (!n) return NULL;
        *tail = n;
        tail = &n->next;
    }
    return head;
}

static qn_jnode *items(qn_jparse *p, qn_jkind kind, char end)
{
    qn_jnode *n = qn_jinja_node(p, kind);
    qn_jnode **tail = n ? &n->a : NULL;
    p->t++;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, end)) {
        if (n->a && !qn_jinja_want_op(p, ',')) return NULL;
        if (n->a && qn_jinja_skip_op(p, end)) break;
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
    const qn_jtok *end = ++p->t;
    for (; end->kind == QN_JT_STRING; end++) n->n += end->n; /* neighbours are one string */
    if (end == p->t) return n;
    char *all = qn_arena_push(p->arena, n->n + 1, 1), *to = all;
    if (!all) {
        p->rc = qn_fail(p->err, QN_E_NOMEM, "string of a template");
        return NULL;
    }
    n->s = all;
    for (p->t--; p->t < end; to += p->t++->n) memcpy(to, p->t->s, p->t->n);
    *to = '\0';
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
    if (qn_jinja_at_op(p, '[')) return items(p, QN_JN_LIST, ']');
    if (qn_jinja_at_op(p, '{')) return items(p, QN_JN_DICT, '}');
    if (qn_jinja_skip_op(p, '(')) {
        qn_jnode *n = qn_jinja_tuple(p, true, true, QN_JE_PLAIN);
        return n && qn_jinja_want_op(p, ')') ? n : NULL;
    }
    return qn_jinja_expected(p, "an expression");
}

/* One subscript: an expression, or a slice with a empty. */
static qn_jnode *subscribed(qn_jparse *p)
{
    const uint32_t line = p->t->line;
    qn_jnode *first = NULL;
    if (!qn_jinja_at_op(p, ':')) {
        first = qn_jinja_expr(p, true);
        if (!first || !qn_jinja_at_op(p, ':')) return first;
    }
    qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_SLICE), line);
    if (!n) return NULL;
    p->t++;
    n->b = first;
    if (!qn_jinja_at_op(p, ':') && !qn_jinja_at_op(p, ']') && !qn_jinja_at_op(p, ','))
        n->c = qn_jinja_expr(p, true);
    if (qn_jinja_skip_op(p, ':') && !qn_jinja_at_op(p, ']') && !qn_jinja_at_op(p, ','))
        n->d = qn_jinja_expr(p, true);
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *subscript(qn_jparse *p, qn_jnode *a)
{
    const uint32_t line = p->t++->line;
    qn_jnode *head = NULL, **tail = &head;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, ']')) {
        if (head && !qn_jinja_want_op(p, ',')) return NULL;
        if (!(*tail = subscribed(p))) return NULL;
        tail = &(*tail)->next;
    }
    if (p->rc != QN_OK) return NULL;
    if (head && !head->next && head->kind == QN_JN_SLICE && !head->a) {
        head->a = a;
        return line_of(head, line);
    }
    qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_ITEM), line);
    if (!n) return NULL;
    n->a = a;
    n->b = head;
    if (head && !head->next) return n;
    n->b = qn_jinja_node(p, QN_JN_TUPLE);
    if (n->b) n->b->a = head;
    return n->b ? n : NULL;
}

static qn_jnode *call(qn_jparse *p, qn_jnode *a)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_CALL);
    if (!n) return NULL;
    p->t++;
    n->a = a;
    n->b = args(p);
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *member(qn_jparse *p, qn_jnode *a)
{
    const uint32_t line = p->t++->line;
    const bool is_name = p->t->kind == QN_JT_NAME;
    if (!is_name && p->t->kind != QN_JT_INT) return qn_jinja_expected(p, "a name or number");
    qn_jnode *n = line_of(qn_jinja_node(p, is_name ? QN_JN_ATTR : QN_JN_ITEM), line);
    if (!n) return NULL;
    n->a = a;
    n->s = p->t->s;
    if (is_name)
        p->t++;
    else
        n->b = primary(p);
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *postfix(qn_jparse *p, qn_jnode *a)
{
    for (; a && p->rc == QN_OK; (void)qn_jinja_link(p, &p->chain)) {
        if (qn_jinja_at_op(p, '.'))
            a = member(p, a);
        else if (qn_jinja_at_op(p, '['))
            a = subscript(p, a);
        else if (qn_jinja_at_op(p, '('))
            a = call(p, a);
        else
            return a;
    }
    return NULL;
}

/* A name with dots in it, as filters and tests may have. */
static const char *dotted(qn_jparse *p, const char *what)
{
    if (p->rc != QN_OK || p->t->kind != QN_JT_NAME) {
        qn_jinja_expected(p, what);
        return NULL;
    }
    const char *s = p->t++->s;
    while (qn_jinja_skip_op(p, '.')) {
        if (p->t->kind != QN_JT_NAME) {
            qn_jinja_expected(p, "a name");
            return NULL;
        }
        s = ""; /* no filter or test of ours has a dot */
        p->t++;
    }
    return s;
}

static qn_jnode *test(qn_jparse *p, qn_jnode *a)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_TEST);
    if (!n) return NULL;
    p->t++;
    n->i = qn_jinja_skip_name(p, "not");
    n->a = a;
    if (!(n->s = dotted(p, "the name of a test"))) return NULL;
    if (qn_jinja_skip_op(p, '(')) {
        n->b = args(p);
        return p->rc == QN_OK ? n : NULL;
    }
    const bool takes = (p->t->kind >= QN_JT_NAME && p->t->kind <= QN_JT_REAL) ||
                       qn_jinja_at_op(p, '[') || qn_jinja_at_op(p, '{');
    if (!takes || qn_jinja_at_name(p, "else") || qn_jinja_at_name(p, "or") ||
        qn_jinja_at_name(p, "and"))
        return n;
    if (qn_jinja_at_name(p, "is"))
        return qn_jinja_wrong(p, p->t->line, "tests with is cannot be chained");
    n->b = qn_jinja_node(p, QN_JN_ARG);
    if (n->b) n->b->a = postfix(p, primary(p));
    return p->rc == QN_OK ? n : NULL;
}

/* `| name(args)` as often as it stands here; only filters. */
qn_jnode *qn_jinja_filters(qn_jparse *p, qn_jnode *a, bool first_without_bar)
{
    while (p->rc == QN_OK && (first_without_bar || qn_jinja_skip_op(p, '|'))) {
        first_without_bar = false;
        qn_jnode *n = qn_jinja_node(p, QN_JN_FILTER);
        if (!n || !(n->s = dotted(p, "the name of a filter"))) return NULL;
        n->a = a;
        if (qn_jinja_skip_op(p, '(')) n->b = args(p);
        a = n;
        (void)qn_jinja_link(p, &p->chain);
    }
    return p->rc == QN_OK ? a : NULL;
}

static qn_jnode *unary(qn_jparse *p, bool with_filter)
{
    qn_jnode *n = NULL;
    if (!deeper(p)) return NULL;
    if (qn_jinja_at_op(p, '-') || qn_jinja_at_op(p, '+')) {
        n = qn_jinja_node(p, QN_JN_UNARY);
        if (n) {
            n->op = p->t->op;
            p->t++;
            n->a = unary(p, false);
        }
    } else {
        n = primary(p);
    }
    n = postfix(p, n);
    for (; n && with_filter && p->rc == QN_OK; (void)qn_jinja_link(p, &p->chain)) {
        if (qn_jinja_at_op(p, '|'))
            n = qn_jinja_filters(p, n, false);
        else if (qn_jinja_at_name(p, "is"))
            n = test(p, n);
        else if (qn_jinja_at_op(p, '('))
            n = call(p, n);
        else
            break;
    }
    p->depth--;
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *binary(qn_jparse *p, int level);

static qn_jnode *concat(qn_jparse *p, qn_jnode *first, uint32_t line)
{
    qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_CONCAT), line);
    if (!n) return NULL;
    n->a = first;
    for (qn_jnode **tail = &first->next; qn_jinja_skip_op(p, '~'); tail = &(*tail)->next)
        if (!(*tail = binary(p, 2))) return NULL;
    return p->rc == QN_OK ? n : NULL;
}

/* The levels of binary operators, the loosest first. */
static qn_jnode *binary(qn_jparse *p, int level)
{
    static const char *const ops[] = {"+-", "~", "*/f%", "p"};
    if (level == 4) return unary(p, true);
    uint32_t line = p->t->line;
    qn_jnode *a = binary(p, level + 1);
    if (level == 1) return a && qn_jinja_at_op(p, '~') ? concat(p, a, line) : a;
    while (a && p->t->kind == QN_JT_OP && strchr(ops[level], p->t->op)) {
        qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_BINARY), line);
        if (!n || !qn_jinja_link(p, &p->chain)) return NULL;
        n->op = p->t->op;
        p->t++;
        n->a = a;
        n->b = binary(p, level + 1);
        a = n;
        line = p->t->line;
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
        n->line = p->t->line;
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
    uint32_t line = p->t->line;
    qn_jnode *a = is_or ? logic(p, false) : negation(p);
    while (a && qn_jinja_skip_name(p, is_or ? "or" : "and")) {
        qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_BINARY), line);
        if (!n || !qn_jinja_link(p, &p->chain)) return NULL;
        n->op = is_or ? '|' : '&';
        n->a = a;
        n->b = is_or ? logic(p, false) : negation(p);
        a = n;
        line = p->t->line;
    }
    return p->rc == QN_OK ? a : NULL;
}

qn_jnode *qn_jinja_expr(qn_jparse *p, bool with_cond)
{
    const uint32_t around = p->chain;
    if (!deeper(p)) return NULL;
    uint32_t line = p->t->line;
    p->chain = 0; /* this one's own; then the longer of the two is below what follows */
    qn_jnode *a = logic(p, true);
    while (a && with_cond && qn_jinja_skip_name(p, "if")) {
        qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_COND), line);
        if (!n || !qn_jinja_link(p, &p->chain)) return NULL;
        n->a = a;
        n->b = logic(p, true);
        if (qn_jinja_skip_name(p, "else")) n->c = qn_jinja_expr(p, true);
        a = n;
        line = p->t->line;
    }
    p->depth--;
    if (p->chain < around) p->chain = around;
    return p->rc == QN_OK ? a : NULL;
}

static bool ends_tuple(const qn_jparse *p, qn_jends ends)
{
    return p->t->kind == QN_JT_VAR_END || p->t->kind == QN_JT_BLOCK_END || qn_jinja_at_op(p, ')') ||
           (ends == QN_JE_IN && qn_jinja_at_name(p, "in")) ||
           (ends == QN_JE_RECURSIVE && qn_jinja_at_name(p, "recursive"));
}

/* One part of a target, without its names checked: "(a, b)", "a", "a.b". */
static qn_jnode *target_part(qn_jparse *p, bool with_namespace)
{
    if (with_namespace && p->t->kind == QN_JT_NAME && p->t[1].kind == QN_JT_OP &&
        p->t[1].op == '.' && !qn_jinja_is_one_of(p->t->s, "true True false False none None")) {
        qn_jnode *n = qn_jinja_node(p, QN_JN_NSREF);
        if (!n) return NULL;
        n->s = p->t->s;
        qn_jinja_note(p, n->s, true);
        p->t += 2;
        if (p->t->kind != QN_JT_NAME) return qn_jinja_expected(p, "a name");
        n->s2 = p->t++->s;
        return n;
    }
    if (p->t->kind != QN_JT_NAME) return primary(p);
    qn_jnode *n = qn_jinja_node(p, QN_JN_NAME);
    if (!n) return NULL;
    if (qn_jinja_is_one_of(p->t->s, "true True false False none None"))
        n->kind = QN_JN_NONE; /* a constant: no target, told once the whole is read */
    n->s = p->t++->s;
    return n;
}

static qn_jnode *tuple(qn_jparse *p, bool in_brackets, qn_jends ends, bool target, bool with_cond,
                       bool with_namespace)
{
    qn_jnode *head = NULL, **tail = &head;
    uint32_t line = p->t->line;
    bool is_tuple = false;
    while (p->rc == QN_OK) {
        if (head && !qn_jinja_want_op(p, ',')) return NULL;
        if (ends_tuple(p, ends)) break;
        *tail = target ? target_part(p, with_namespace) : qn_jinja_expr(p, with_cond);
        if (!*tail) return NULL;
        tail = &(*tail)->next;
        if (!qn_jinja_at_op(p, ',')) break;
        is_tuple = true;
        line = p->t->line;
    }
    if (p->rc != QN_OK) return NULL;
    if (!is_tuple && head) return head;
    if (!is_tuple && !in_brackets) return qn_jinja_expected(p, "an expression");
    qn_jnode *n = line_of(qn_jinja_node(p, QN_JN_TUPLE), line);
    if (n) n->a = head;
    return n;
}

qn_jnode *qn_jinja_tuple(qn_jparse *p, bool with_cond, bool in_brackets, qn_jends ends)
{
    return tuple(p, in_brackets, ends, false, with_cond, false);
}

static bool assignable(qn_jparse *p, const qn_jnode *t, const qn_jnode *whole)
{
    bool good = t->kind == QN_JN_NAME || t->kind == QN_JN_NSREF ||
                (t->kind == QN_JN_TUPLE && p->rc == QN_OK);
    if (good && t->kind == QN_JN_TUPLE)
        for (const qn_jnode *x = t->a; x && good; x = x->next) good = assignable(p, x, whole);
    if (!good) qn_jinja_wrong(p, whole->line, "this cannot be assigned to");
    return good;
}

qn_jnode *qn_jinja_target(qn_jparse *p, bool with_namespace, qn_jends ends)
{
    qn_jnode *n = tuple(p, false, ends, true, false, with_namespace);
    return n && assignable(p, n, n) ? n : NULL;
}
