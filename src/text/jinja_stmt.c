/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_stmt.c - statements of a template, and the program as a whole. */
#include <string.h>

#include "base/alloc.h"
#include "text/jinja_int.h"

bool qn_jinja_is_one_of(const char *name, const char *names)
{
    const size_t n = strlen(name);
    for (const char *s = names; n && (s = strstr(s, name)) != NULL; s += n)
        if ((s == names || s[-1] == ' ') && (s[n] == ' ' || !s[n])) return true;
    return false;
}

static bool block_end(qn_jparse *p)
{
    if (p->rc == QN_OK && p->t->kind == QN_JT_BLOCK_END) {
        p->t++;
        return true;
    }
    qn_jinja_expected(p, "%}");
    return false;
}

/* The head of a statement ends, a body begins. */
static bool head_end(qn_jparse *p)
{
    qn_jinja_skip_op(p, ':');
    return block_end(p);
}

static const char *name_of(qn_jparse *p)
{
    if (p->rc == QN_OK && p->t->kind == QN_JT_NAME) return p->t++->s;
    qn_jinja_expected(p, "a name");
    return NULL;
}

/* A name that may be assigned to. */
static const char *own_name(qn_jparse *p)
{
    const uint32_t line = p->t->line;
    const char *s = name_of(p);
    if (s && qn_jinja_is_one_of(s, "true True false False none None")) {
        qn_jinja_wrong(p, line, "%s cannot be assigned to", s);
        return NULL;
    }
    return s;
}

static void note_target(qn_jparse *p, const qn_jnode *t)
{
    if (!t) return;
    if (t->kind == QN_JN_NAME) qn_jinja_note(p, t->s, false);
    if (t->kind == QN_JN_TUPLE)
        for (const qn_jnode *x = t->a; x; x = x->next) note_target(p, x);
}

/* The body up to its end word, which is eaten. What follows it in its tag is the caller's. */
static void body_to(qn_jnode **out, qn_jparse *p, const char *end)
{
    if (!head_end(p)) return;
    qn_jinja_body(out, p, end);
    if (p->rc == QN_OK) p->t++;
}

static void parse_if(qn_jnode *n, qn_jparse *p)
{
    const uint32_t around = p->elifs;
    n->kind = QN_JN_IF;
    n->a = qn_jinja_tuple(p, false, false, QN_JE_PLAIN);
    if (!head_end(p)) return;
    qn_jinja_body(&n->b, p, "elif else endif");
    while (p->rc == QN_OK && qn_jinja_skip_name(p, "elif")) {
        qn_jnode *next = qn_jinja_node(p, QN_JN_IF);
        if (!next || !qn_jinja_link(p, &p->elifs)) return;
        n->c = next;
        n->i = 1; /* c is an elif, no body */
        n = next;
        n->a = qn_jinja_tuple(p, false, false, QN_JE_PLAIN);
        if (!head_end(p)) return;
        qn_jinja_body(&n->b, p, "elif else endif");
    }
    if (qn_jinja_skip_name(p, "else"))
        body_to(&n->c, p, "endif");
    else if (p->rc == QN_OK)
        p->t++;
    p->elifs = around;
}

static void parse_for(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_FOR;
    n->a = qn_jinja_target(p, false, QN_JE_IN);
    if (p->rc == QN_OK && !qn_jinja_skip_name(p, "in")) qn_jinja_expected(p, "in");
    n->b = p->rc == QN_OK ? qn_jinja_tuple(p, false, false, QN_JE_RECURSIVE) : NULL;
    note_target(p, n->a);
    qn_jinja_note(p, "loop", false);
    if (qn_jinja_skip_name(p, "if")) n->c = qn_jinja_expr(p, true);
    n->i = qn_jinja_skip_name(p, "recursive");
    if (!head_end(p)) return;
    qn_jinja_body(&n->d, p, "else endfor");
    if (qn_jinja_skip_name(p, "else"))
        body_to(&n->e, p, "endfor");
    else if (p->rc == QN_OK)
        p->t++;
}

static void parse_set(qn_jnode *n, qn_jparse *p)
{
    n->a = qn_jinja_target(p, true, QN_JE_PLAIN);
    if (!n->a) return;
    if (qn_jinja_skip_op(p, '=')) {
        n->kind = QN_JN_SET;
        n->b = qn_jinja_tuple(p, true, false, QN_JE_PLAIN);
        note_target(p, n->a);
        return;
    }
    n->kind = QN_JN_SET_BLOCK;
    n->b = qn_jinja_filters(p, NULL, false);
    note_target(p, n->a);
    body_to(&n->c, p, "endset");
}

static void parse_with(qn_jnode *n, qn_jparse *p)
{
    qn_jnode **tail = &n->a;
    n->kind = QN_JN_WITH;
    while (p->rc == QN_OK && p->t->kind != QN_JT_BLOCK_END) {
        if (n->a && !qn_jinja_want_op(p, ',')) return;
        qn_jnode *t = qn_jinja_target(p, false, QN_JE_PLAIN);
        if (!t || !qn_jinja_want_op(p, '=')) return;
        *tail = t;
        t->next = qn_jinja_expr(p, true);
        if (!t->next) return;
        tail = &t->next->next;
        note_target(p, t);
    }
    body_to(&n->b, p, "endwith");
}

/* Parameters at their '('. */
static void parameters(qn_jnode **out, qn_jparse *p)
{
    bool defaults = false;
    const qn_jnode *const *head = (const qn_jnode *const *)out;
    if (!qn_jinja_want_op(p, '(')) return;
    for (qn_jnode **tail = out; p->rc == QN_OK && !qn_jinja_skip_op(p, ')');) {
        if (*head && !qn_jinja_want_op(p, ',')) return;
        qn_jnode *n = qn_jinja_node(p, QN_JN_ARG);
        if (!n || !(n->s = own_name(p))) return;
        for (const qn_jnode *x = *head; x; x = x->next)
            if (!strcmp(x->s, n->s))
                qn_jinja_wrong(p, n->line, "the parameter %s is there twice", n->s);
        if (qn_jinja_skip_op(p, '=')) {
            n->a = qn_jinja_expr(p, true);
            defaults = true;
        } else if (defaults) {
            qn_jinja_wrong(p, p->t->line,
                           "a parameter without a default follows one with a default");
        }
        qn_jinja_note(p, n->s, false);
        *tail = n;
        tail = &n->next;
    }
}

static void parse_macro(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_MACRO;
    if (!(n->s = own_name(p))) return;
    qn_jinja_note(p, n->s, false);
    parameters(&n->a, p);
    body_to(&n->b, p, "endmacro");
}

static void parse_call(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_CALL_BLOCK;
    qn_jinja_note(p, "caller", false);
    if (qn_jinja_at_op(p, '(')) parameters(&n->a, p);
    n->d = p->rc == QN_OK ? qn_jinja_expr(p, true) : NULL;
    if (n->d && n->d->kind != QN_JN_CALL) qn_jinja_wrong(p, n->line, "expected a call");
    body_to(&n->b, p, "endcall");
}

static bool is_blank(const qn_jnode *body)
{
    for (; body; body = body->next) {
        if (body->kind != QN_JN_TEXT) return false;
        for (size_t i = 0; i < body->n; i++)
            if (!(qn_jinja_char((unsigned char)body->s[i]) & QN_JC_SPACE)) return false;
    }
    return true;
}

static void parse_block(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_BLOCK;
    if (!(n->s = name_of(p))) return;
    n->i |= qn_jinja_skip_name(p, "scoped") ? 1 : 0;
    n->i |= qn_jinja_skip_name(p, "required") ? 2 : 0;
    body_to(&n->b, p, "endblock");
    if (p->rc == QN_OK && (n->i & 2) && !is_blank(n->b))
        qn_jinja_wrong(p, p->t->line, "required blocks hold white space only");
    qn_jinja_skip_name(p, n->s);
}

static void with_context(qn_jparse *p)
{
    if ((qn_jinja_at_name(p, "with") || qn_jinja_at_name(p, "without")) &&
        p->t[1].kind == QN_JT_NAME && !strcmp(p->t[1].s, "context"))
        p->t += 2;
}

/* include, import, from and extends are read; they fail when they are reached: there is no loader. */
static void parse_load(qn_jnode *n, qn_jparse *p, const char *word)
{
    n->kind = QN_JN_LOAD;
    n->s = word;
    n->a = qn_jinja_expr(p, true);
    if (p->rc != QN_OK) return;
    if (!strcmp(word, "include") && qn_jinja_at_name(p, "ignore") && p->t[1].kind == QN_JT_NAME &&
        !strcmp(p->t[1].s, "missing"))
        p->t += 2;
    if (!strcmp(word, "import")) {
        if (!qn_jinja_skip_name(p, "as")) qn_jinja_expected(p, "as");
        n->s2 = p->rc == QN_OK ? own_name(p) : NULL;
        if (n->s2) qn_jinja_note(p, n->s2, false);
    }
    if (strcmp(word, "from")) {
        if (strcmp(word, "extends")) with_context(p);
        return;
    }
    if (!qn_jinja_skip_name(p, "import")) qn_jinja_expected(p, "import");
    for (bool first = true; p->rc == QN_OK; first = false) {
        if (!first && !qn_jinja_skip_op(p, ',')) return;
        const qn_jtok *before = p->t;
        with_context(p);
        if (p->t != before) return;
        const uint32_t line = p->t->line;
        const char *s = own_name(p);
        if (s && *s == '_') qn_jinja_wrong(p, line, "names that begin with _ are not imported");
        if (qn_jinja_skip_name(p, "as")) s = own_name(p);
        if (s) qn_jinja_note(p, s, false);
        with_context(p);
    }
}

static void parse_print(qn_jnode *n, qn_jparse *p)
{
    n->kind = QN_JN_OUTPUT;
    for (qn_jnode **tail = &n->a; p->rc == QN_OK && p->t->kind != QN_JT_BLOCK_END;) {
        if (n->a && !qn_jinja_want_op(p, ',')) return;
        if (!(*tail = qn_jinja_expr(p, true))) return;
        tail = &(*tail)->next;
    }
}

static qn_jnode *statement(qn_jparse *p)
{
    static const struct {
        const char *word;
        void (*parse)(qn_jnode *n, qn_jparse *p);
    } words[] = {{"if", parse_if},       {"for", parse_for},     {"set", parse_set},
                 {"with", parse_with},   {"macro", parse_macro}, {"call", parse_call},
                 {"block", parse_block}, {"print", parse_print}};
    qn_jnode *n = qn_jinja_node(p, QN_JN_OUTPUT);
    const char *word = n ? name_of(p) : NULL;
    if (!word) return NULL;
    for (size_t i = 0; i < QN_LEN(words); i++)
        if (!strcmp(word, words[i].word)) {
            words[i].parse(n, p);
            return p->rc == QN_OK ? n : NULL;
        }
    if (!strcmp(word, "filter")) {
        n->kind = QN_JN_FILTER_BLOCK;
        n->a = qn_jinja_filters(p, NULL, true);
        body_to(&n->b, p, "endfilter");
    } else if (!strcmp(word, "autoescape")) {
        n->kind = QN_JN_AUTOESCAPE;
        n->a = qn_jinja_expr(p, true);
        body_to(&n->b, p, "endautoescape");
    } else if (!strcmp(word, "generation")) {
        n->kind = QN_JN_CALL_BLOCK;
        body_to(&n->b, p, "endgeneration");
    } else if (!strcmp(word, "break") || !strcmp(word, "continue")) {
        n->kind = *word == 'b' ? QN_JN_BREAK : QN_JN_CONTINUE;
    } else if (qn_jinja_is_one_of(word, "include import from extends")) {
        parse_load(n, p, word);
    } else {
        qn_jinja_wrong(p, n->line, "unknown statement '%s'", word);
    }
    return p->rc == QN_OK ? n : NULL;
}

static qn_jnode *output(qn_jparse *p)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_OUTPUT);
    p->t++;
    if (!n || !(n->a = qn_jinja_tuple(p, true, false, QN_JE_PLAIN))) return NULL;
    if (p->t->kind != QN_JT_VAR_END) return qn_jinja_expected(p, "}}");
    p->t++;
    return n;
}

static qn_jnode *text(qn_jparse *p)
{
    qn_jnode *n = qn_jinja_node(p, QN_JN_TEXT);
    if (!n) return NULL;
    n->s = p->t->s;
    n->n = p->t->n;
    p->t++;
    return n;
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
        p->chain = 0;
        if (p->t->kind == QN_JT_END) {
            if (stop) qn_jinja_expected(p, stop);
            break;
        }
        if (p->t->kind == QN_JT_DATA) {
            n = text(p);
        } else if (p->t->kind == QN_JT_VAR_BEGIN) {
            n = output(p);
        } else if (p->t->kind == QN_JT_BLOCK_BEGIN) {
            p->t++;
            if (stop && p->t->kind == QN_JT_NAME && qn_jinja_is_one_of(p->t->s, stop)) break;
            n = statement(p);
            if (n) block_end(p);
        } else {
            qn_jinja_expected(p, "text");
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
    if (p.rc == QN_OK) {
        p.t = lex.tok;
        t->root = qn_jinja_node(&p, QN_JN_BLOCK);
        if (t->root) t->root->line = 1;
        if (t->root) qn_jinja_body(&t->root->b, &p, NULL);
        if (p.rc == QN_OK) qn_jinja_frames(&p, t->root);
    }
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
