/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_stmt.c - statements of a template, and the program as a whole. */
#include <string.h>

#include "base/alloc.h"
#include "text/jinja_int.h"

static bool block_end(qn_jparse *p)
{
    if (p->rc == QN_OK && p->t->kind == QN_JT_BLOCK_END) {
        p->t++;
        return true;
    }
    qn_jinja_expected(p, "%}");
    return false;
}

static bool is_one_of(const char *name, const char *names)
{
    const size_t n = strlen(name);
    for (const char *s = names; (s = strstr(s, name)) != NULL; s += n)
        if ((s == names || s[-1] == ' ') && (s[n] == ' ' || !s[n])) return true;
    return false;
}

static const char *name_of(qn_jparse *p)
{
    if (p->rc == QN_OK && p->t->kind == QN_JT_NAME) return p->t++->s;
    qn_jinja_expected(p, "a name");
    return NULL;
}

static qn_jnode *one_target(qn_jparse *p, bool with_namespace)
{
    if (qn_jinja_skip_op(p, '(')) {
        qn_jnode *n = qn_jinja_target(p, false);
        return n && qn_jinja_want_op(p, ')') ? n : NULL;
    }
    qn_jnode *n = qn_jinja_node(p, QN_JN_NAME);
    if (!n || !(n->s = name_of(p))) return NULL;
    if (with_namespace && qn_jinja_skip_op(p, '.')) {
        n->kind = QN_JN_NSREF;
        n->s2 = name_of(p);
        qn_jinja_note(p, n->s, true);
    }
    return p->rc == QN_OK ? n : NULL;
}

qn_jnode *qn_jinja_target(qn_jparse *p, bool with_namespace)
{
    if (p->depth >= QN_JINJA_MAX_NESTING) return qn_jinja_expected(p, "less nesting");
    p->depth++;
    qn_jnode *first = one_target(p, with_namespace);
    p->depth--;
    if (!first || !qn_jinja_at_op(p, ',')) return first;
    qn_jnode *n = qn_jinja_node(p, QN_JN_TUPLE), **tail = &first->next;
    if (!n) return NULL;
    n->a = first;
    while (qn_jinja_skip_op(p, ',') && (p->t->kind == QN_JT_NAME || qn_jinja_at_op(p, '(')) &&
           !qn_jinja_at_name(p, "in")) {
        if (!(*tail = one_target(p, false))) return NULL;
        tail = &(*tail)->next;
    }
    return p->rc == QN_OK ? n : NULL;
}

static void note_target(qn_jparse *p, const qn_jnode *t)
{
    if (!t) return;
    if (t->kind == QN_JN_NAME) qn_jinja_note(p, t->s, false);
    if (t->kind == QN_JN_TUPLE)
        for (const qn_jnode *x = t->a; x; x = x->next) note_target(p, x);
}

/* The body up to its end word, which is eaten with its tag. */
static void body_to(qn_jnode **out, qn_jparse *p, const char *end)
{
    qn_jinja_body(out, p, end);
    if (p->rc != QN_OK) return;
    p->t++;
    if (!strcmp(end, "endset") || !strcmp(end, "endmacro") || p->t->kind == QN_JT_NAME)
        while (p->t->kind == QN_JT_NAME) p->t++;
    block_end(p);
}

/* What may stand between a body and its end word, which is eaten with its tag. */
static void else_to(qn_jnode **out, qn_jparse *p, const char *end)
{
    if (p->rc != QN_OK) return;
    if (qn_jinja_skip_name(p, "else")) {
        if (block_end(p)) body_to(out, p, end);
        return;
    }
    p->t++;
    block_end(p);
}

static void parse_if(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_IF;
    n->a = qn_jinja_tuple(p, false);
    if (!block_end(p)) return;
    qn_jinja_body(&n->b, p, "elif else endif");
    while (p->rc == QN_OK && qn_jinja_skip_name(p, "elif")) {
        qn_jnode *next = qn_jinja_node(p, QN_JN_IF);
        if (!next) return;
        n->c = next;
        n = next;
        n->a = qn_jinja_tuple(p, false);
        if (!block_end(p)) return;
        qn_jinja_body(&n->b, p, "elif else endif");
    }
    else_to(&n->c, p, "endif");
}

static void parse_for(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_FOR;
    n->a = qn_jinja_target(p, false);
    if (p->rc == QN_OK && !qn_jinja_skip_name(p, "in")) qn_jinja_expected(p, "in");
    n->b = qn_jinja_tuple(p, false);
    note_target(p, n->a);
    qn_jinja_note(p, "loop", false);
    if (qn_jinja_skip_name(p, "if")) n->c = qn_jinja_expr(p, true);
    n->i = qn_jinja_skip_name(p, "recursive");
    if (!block_end(p)) return;
    p->loops++;
    qn_jinja_body(&n->d, p, "else endfor");
    p->loops--;
    else_to(&n->e, p, "endfor");
}

static void parse_set(qn_jnode *n, qn_jparse *p)
{
    n->a = qn_jinja_target(p, true);
    if (!n->a) return;
    if (qn_jinja_skip_op(p, '=')) {
        n->kind = QN_JN_SET;
        n->b = qn_jinja_tuple(p, true);
        note_target(p, n->a);
        block_end(p);
        return;
    }
    n->kind = QN_JN_SET_BLOCK;
    n->b = qn_jinja_filters(p, NULL, false);
    note_target(p, n->a);
    if (block_end(p)) body_to(&n->c, p, "endset");
}

static void parse_with(qn_jnode *n, qn_jparse *p)
{
    qn_jnode **tail = &n->a;
    n->kind = QN_JN_WITH;
    while (p->rc == QN_OK && p->t->kind != QN_JT_BLOCK_END) {
        if (n->a && !qn_jinja_want_op(p, ',')) return;
        qn_jnode *t = one_target(p, false);
        if (!t || !qn_jinja_want_op(p, '=')) return;
        *tail = t;
        t->next = qn_jinja_expr(p, true);
        if (!t->next) return;
        tail = &t->next->next;
        note_target(p, t);
    }
    if (block_end(p)) body_to(&n->b, p, "endwith");
}

/* Parameters behind their '('. */
static qn_jnode *parameters(qn_jparse *p)
{
    qn_jnode *head = NULL, **tail = &head;
    while (p->rc == QN_OK && !qn_jinja_skip_op(p, ')')) {
        if (head && !qn_jinja_want_op(p, ',')) return NULL;
        if (qn_jinja_skip_op(p, ')')) break;
        qn_jnode *n = qn_jinja_node(p, QN_JN_ARG);
        if (!n || !(n->s = name_of(p))) return NULL;
        if (qn_jinja_skip_op(p, '=')) n->a = qn_jinja_expr(p, true);
        qn_jinja_note(p, n->s, false);
        *tail = n;
        tail = &n->next;
    }
    return head;
}

static void parse_macro(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_MACRO;
    if (!(n->s = name_of(p)) || !qn_jinja_want_op(p, '(')) return;
    qn_jinja_note(p, n->s, false);
    n->a = parameters(p);
    const uint32_t loops = p->loops;
    p->loops = 0;
    if (block_end(p)) body_to(&n->b, p, "endmacro");
    p->loops = loops;
}

static void parse_call(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_CALL_BLOCK;
    n->s = "caller";
    qn_jinja_note(p, "caller", false);
    if (qn_jinja_skip_op(p, '(')) n->a = parameters(p);
    n->d = qn_jinja_expr(p, true);
    if (n->d && n->d->kind != QN_JN_CALL) {
        qn_jinja_expected(p, "a call");
        return;
    }
    const uint32_t loops = p->loops;
    p->loops = 0;
    if (block_end(p)) body_to(&n->b, p, "endcall");
    p->loops = loops;
}

static void jump(qn_jnode *n, qn_jparse *p, qn_jkind kind)
{
    n->kind = (uint8_t)kind;
    if (!p->loops && p->rc == QN_OK)
        p->rc =
            qn_fail(p->err, QN_E_FORMAT, "line %u: break or continue outside of a loop", n->line);
    block_end(p);
}

static qn_jnode *statement(qn_jparse *p)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_SCOPE);
    const char *word = n ? name_of(p) : NULL;
    if (!word) return NULL;
    if (!strcmp(word, "if")) {
        parse_if(n, p);
    } else if (!strcmp(word, "for")) {
        parse_for(n, p);
    } else if (!strcmp(word, "set")) {
        parse_set(n, p);
    } else if (!strcmp(word, "with")) {
        parse_with(n, p);
    } else if (!strcmp(word, "macro")) {
        parse_macro(n, p);
    } else if (!strcmp(word, "call")) {
        parse_call(n, p);
    } else if (!strcmp(word, "filter")) {
        n->kind = QN_JN_FILTER_BLOCK;
        n->a = qn_jinja_filters(p, NULL, true);
        if (block_end(p)) body_to(&n->b, p, "endfilter");
    } else if (!strcmp(word, "do")) {
        n->kind = QN_JN_DO;
        n->a = qn_jinja_tuple(p, true);
        block_end(p);
    } else if (!strcmp(word, "generation")) {
        if (block_end(p)) body_to(&n->b, p, "endgeneration");
    } else if (!strcmp(word, "break")) {
        jump(n, p, QN_JN_BREAK);
    } else if (!strcmp(word, "continue")) {
        jump(n, p, QN_JN_CONTINUE);
    } else {
        const bool known = is_one_of(word, "include import from extends block autoescape");
        p->rc =
            qn_fail(p->err, known ? QN_E_UNSUPPORTED : QN_E_FORMAT, "line %u: %s statement '%s'",
                    n->line, known ? "chat templates have no" : "unknown", word);
    }
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *output(qn_jparse *p)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_OUTPUT);
    if (!n) return NULL;
    n->a = qn_jinja_tuple(p, true);
    if (p->rc == QN_OK && p->t->kind != QN_JT_VAR_END) return qn_jinja_expected(p, "}}");
    p->t++;
    return p->rc == QN_OK ? n : NULL;
}

void qn_jinja_body(qn_jnode **out, qn_jparse *p, const char *stop)
{
    qn_jnode **tail = out;
    *out = NULL;
    if (p->rc == QN_OK && p->depth >= QN_JINJA_MAX_NESTING)
        p->rc = qn_fail(p->err, QN_E_LIMIT, "line %u: nested deeper than %d", p->t->line,
                        QN_JINJA_MAX_NESTING);
    p->depth++;
    while (p->rc == QN_OK) {
        qn_jnode *n = NULL;
        if (p->t->kind == QN_JT_END) {
            if (stop) qn_jinja_expected(p, stop);
            break;
        }
        if (p->t->kind == QN_JT_DATA) {
            if (!(n = qn_jinja_node(p, QN_JN_TEXT))) break;
            n->s = p->t->s;
            n->n = p->t->n;
            p->t++;
        } else if (p->t->kind == QN_JT_VAR_BEGIN) {
            p->t++;
            n = output(p);
        } else {
            p->t++;
            if (stop && p->t->kind == QN_JT_NAME && is_one_of(p->t->s, stop)) break;
            n = statement(p);
        }
        if (!n) break;
        *tail = n;
        tail = &n->next;
    }
    p->depth--;
}

/* The source with plain newlines and without one at its end. */
static char *normal(qn_arena *arena, const char *source, size_t n, size_t *n_out)
{
    char *s = qn_arena_push(arena, n + 1, 1);
    size_t w = 0;
    if (!s) return NULL;
    for (size_t i = 0; i < n; i++) {
        s[w++] = source[i] == '\r' ? '\n' : source[i];
        if (source[i] == '\r' && i + 1 < n && source[i + 1] == '\n') i++;
    }
    if (w && s[w - 1] == '\n') w--;
    s[w] = 0;
    *n_out = w;
    return s;
}

qn_code qn_jinja_new(qn_jinja **out, const char *source, size_t n, qn_err *err)
{
    *out = NULL;
    if (n > QN_JINJA_MAX_SOURCE)
        return qn_fail(err, QN_E_LIMIT, "template: %zu bytes, at most %d", n, QN_JINJA_MAX_SOURCE);
    qn_jinja *t = qn_zalloc(sizeof *t);
    if (!t) return qn_fail(err, QN_E_NOMEM, "template");
    qn_arena_init(&t->arena, (size_t)1 << 30);
    qn_jlex lex = {.arena = &t->arena};
    qn_jparse p = {.arena = &t->arena, .err = err};
    lex.src = normal(&t->arena, source, n, &lex.n);
    p.rc = lex.src ? qn_jinja_lex(&lex, err) : qn_fail(err, QN_E_NOMEM, "source of a template");
    p.t = lex.tok;
    if (p.rc == QN_OK) qn_jinja_body(&t->body, &p, NULL);
    t->names = p.names;
    if (p.rc != QN_OK) {
        qn_jinja_free(t);
        return p.rc;
    }
    *out = t;
    return QN_OK;
}

void qn_jinja_free(qn_jinja *t)
{
    if (!t) return;
    qn_arena_fini(&t->arena);
    qn_free(t);
}

bool qn_jinja_mentions(const qn_jinja *t, const char *name)
{
    for (const qn_jname *x = t->names; x; x = x->next)
        if (!strcmp(x->s, name)) return x->read;
    return false;
}
