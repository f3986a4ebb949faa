/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_int.h - tokens, tree and values of the template language; shared by the jinja files only.
 *
 * Failures are sticky: the parser and a rendering keep the first one, every function afterwards does
 * nothing, and the caller at the top reports it. This keeps an evaluator readable in which nearly
 * every expression can fail.
 *
 * Owner:  tokens and tree lie in the program's arena, values in the rendering's.
 * Thread: a program is read only once it is compiled; a rendering belongs to one thread.
 */
#ifndef QN_TEXT_JINJA_INT_H
#define QN_TEXT_JINJA_INT_H
#include "base/arena.h"
#include "text/jinja.h"

typedef enum qn_jtok_kind {
    QN_JT_END,
    QN_JT_DATA,
    QN_JT_VAR_BEGIN,
    QN_JT_VAR_END,
    QN_JT_BLOCK_BEGIN,
    QN_JT_BLOCK_END,
    QN_JT_NAME,
    QN_JT_STRING, /* s, n: escapes are decoded */
    QN_JT_INT,
    QN_JT_REAL,
    QN_JT_OP /* op: its character; 'p' **, 'f' //, 'e' ==, 'n' !=, 'g' >=, 'l' <= */
} qn_jtok_kind;

typedef struct qn_jtok {
    qn_jtok_kind kind;
    char op;
    uint32_t line;
    const char *s;
    size_t n;
    int64_t i;
    double d;
} qn_jtok;

typedef struct qn_jlex { /* the tokens of a whole source */
    qn_arena *arena;
    const char *src;
    size_t n, at;
    uint32_t line;
    bool line_start; /* what was read last ended in a newline */
    qn_jtok *tok;
    size_t n_tok, cap_tok;
} qn_jlex;

/* Reads lex->src[0, n), newlines already normal, into lex->tok. Errors: FORMAT, LIMIT, NOMEM. */
qn_code qn_jinja_lex(qn_jlex *lex, qn_err *err);

typedef enum qn_jkind {
    /* expressions */
    QN_JN_NONE,
    QN_JN_BOOL,
    QN_JN_INT,
    QN_JN_REAL,
    QN_JN_STR,
    QN_JN_NAME,
    QN_JN_TUPLE,   /* a: items */
    QN_JN_LIST,    /* a: items */
    QN_JN_DICT,    /* a: key, value, key, value ... */
    QN_JN_ATTR,    /* a . s */
    QN_JN_ITEM,    /* a [ b ] */
    QN_JN_SLICE,   /* a [ b : c : d ], each may be NULL */
    QN_JN_CALL,    /* a ( b ) */
    QN_JN_FILTER,  /* a | s ( b ); a is NULL in a filter block */
    QN_JN_TEST,    /* a is s ( b ); i: negated */
    QN_JN_UNARY,   /* op: '-', '+', '!' */
    QN_JN_BINARY,  /* op: a token's op, '&' and, '|' or */
    QN_JN_COMPARE, /* a, then b: links of op and a */
    QN_JN_LINK,    /* op: as the token, 'i' in, 'o' not in */
    QN_JN_COND,    /* a if b else c (NULL: undefined) */
    QN_JN_ARG,     /* a, or s = a; op: '*' and 'p' unpack */
    /* statements */
    QN_JN_TEXT,
    QN_JN_OUTPUT,
    QN_JN_IF,           /* a: condition, b: body, c: else */
    QN_JN_FOR,          /* a: target, b: iterable, c: condition, d: body, e: else; i: recursive */
    QN_JN_SET,          /* a: target, b: value */
    QN_JN_SET_BLOCK,    /* a: target, b: filter, c: body */
    QN_JN_NSREF,        /* s . s2 as a target of set */
    QN_JN_WITH,         /* a: target, value, target, value ...; b: body */
    QN_JN_MACRO,        /* s, a: parameters (ARG: s, a default or NULL), b: body */
    QN_JN_CALL_BLOCK,   /* d: call; a, b as MACRO */
    QN_JN_FILTER_BLOCK, /* a: filter, b: body */
    QN_JN_DO,           /* a */
    QN_JN_SCOPE,        /* b: body; generation, autoescape */
    QN_JN_BREAK,
    QN_JN_CONTINUE
} qn_jkind;

typedef struct qn_jnode {
    uint8_t kind; /* qn_jkind */
    char op;
    uint32_t line;
    const char *s, *s2; /* s: NUL behind [n] */
    size_t n;
    int64_t i;
    double real;
    struct qn_jnode *a, *b, *c, *d, *e;
    struct qn_jnode *next; /* in the list it belongs to */
} qn_jnode;

typedef struct qn_jname { /* a name of the source and whether its first mention reads it */
    const char *s;
    bool read;
    struct qn_jname *next;
} qn_jname;

typedef struct qn_jparse {
    qn_arena *arena;
    const qn_jtok *t; /* the present token; the last one is QN_JT_END */
    uint32_t depth, loops;
    qn_jname *names;
    qn_code rc;
    qn_err *err;
} qn_jparse;

enum {
    QN_JINJA_MAX_NESTING = 200, /* of the source */
    QN_JINJA_MAX_FRAMES = 3000, /* of the evaluator: bounds its C stack */
    QN_JINJA_MAX_SOURCE = 4 << 20
};

/* All parsing functions give NULL once p->rc is set. */
qn_jnode *qn_jinja_node(qn_jparse *p, qn_jkind kind);
qn_jnode *qn_jinja_expected(qn_jparse *p, const char *what);
bool qn_jinja_at_op(const qn_jparse *p, char op);
bool qn_jinja_at_name(const qn_jparse *p, const char *name);
bool qn_jinja_skip_op(qn_jparse *p, char op);
bool qn_jinja_skip_name(qn_jparse *p, const char *name);
bool qn_jinja_want_op(qn_jparse *p, char op);
void qn_jinja_note(qn_jparse *p, const char *s, bool read);
qn_jnode *qn_jinja_expr(qn_jparse *p, bool with_cond);
qn_jnode *qn_jinja_tuple(qn_jparse *p, bool with_cond);
qn_jnode *qn_jinja_target(qn_jparse *p, bool with_namespace);
qn_jnode *qn_jinja_filters(qn_jparse *p, qn_jnode *a, bool first_without_bar);
qn_jnode *qn_jinja_unary(qn_jparse *p, bool with_filter);
/* Statements up to one whose name is in stop ("endif else elif"; NULL: the end of the source); the
 * parser then stands on that name. *out is NULL for an empty body. */
void qn_jinja_body(qn_jnode **out, qn_jparse *p, const char *stop);

struct qn_jinja {
    qn_arena arena;
    qn_jnode *body;
    qn_jname *names;
};

/* ---- values ---- */
typedef enum qn_jtype {
    QN_JV_UNDEF, /* s: what was looked up, or NULL */
    QN_JV_NONE,
    QN_JV_BOOL,
    QN_JV_INT,
    QN_JV_REAL,
    QN_JV_STR,
    QN_JV_LIST,
    QN_JV_TUPLE,
    QN_JV_DICT,
    QN_JV_SPACE, /* a namespace: a dict whose members templates may set */
    QN_JV_MACRO,
    QN_JV_GLOBAL, /* s: the function's name */
    QN_JV_METHOD, /* bound: of a value */
    QN_JV_LOOP,
    QN_JV_CYCLER,
    QN_JV_JOINER
} qn_jtype;

typedef struct qn_jv {
    uint8_t type; /* qn_jtype */
    size_t n;     /* STR: bytes */
    union {
        int64_t i; /* BOOL too */
        double d;
        const char *s;
        struct qn_jlist *list;
        struct qn_jdict *dict;
        struct qn_jmacro *macro;
        struct qn_jbound *bound;
        struct qn_jloop *loop;
        struct qn_jcycle *cycle;
    } u;
} qn_jv;

typedef struct qn_jlist {
    qn_jv *v;
    size_t n, cap;
} qn_jlist;

typedef struct qn_jdict {
    qn_jv *kv; /* key, value, key, value ... */
    size_t n, cap;
} qn_jdict;

typedef struct qn_jvar {
    const char *name;
    qn_jv v;
    struct qn_jvar *next;
} qn_jvar;

typedef struct qn_jscope {
    struct qn_jscope *up;
    qn_jvar *vars;
} qn_jscope;

typedef struct qn_jmacro {
    const qn_jnode *node;
    qn_jscope *scope;
} qn_jmacro;

typedef struct qn_jbound {
    qn_jv self;
    const char *name;
} qn_jbound;

typedef struct qn_jloop {
    const qn_jnode *node;
    qn_jscope *scope; /* around the loop */
    qn_jlist *items;
    size_t at;
    uint32_t depth;
    qn_jv last; /* of changed() */
    bool has_last;
} qn_jloop;

typedef struct qn_jcycle {
    qn_jlist *items;
    size_t at;
    qn_jv sep;
} qn_jcycle;

typedef struct qn_jargs {
    qn_jv *v; /* [n] by position */
    size_t n;
    const char **name; /* [n_named] */
    qn_jv *named;
    size_t n_named;
} qn_jargs;

typedef enum qn_jflow { QN_JF_ON, QN_JF_BREAK, QN_JF_CONTINUE } qn_jflow;

typedef struct qn_jrun {
    qn_arena arena;
    const qn_jinja_input *in;
    qn_buf *out;
    qn_jscope *scope;
    uint64_t steps, max_steps;
    size_t max_output;
    uint32_t line, frames, calls, max_calls, loop_depth;
    qn_jflow flow;
    qn_code rc;
    qn_err *err;
} qn_jrun;

/* Keeps the first failure with the present line; gives the undefined value. */
qn_jv qn_jinja_fail(qn_jrun *r, qn_code code, const char *fmt, ...) QN_PRINTF(3, 4);
bool qn_jinja_step(qn_jrun *r, uint64_t n); /* false once something failed */

qn_jv qn_jv_undef(const char *name);
qn_jv qn_jv_none(void);
qn_jv qn_jv_bool(bool b);
qn_jv qn_jv_int(int64_t i);
qn_jv qn_jv_real(double d);
qn_jv qn_jv_z(const char *s);                         /* borrowed, up to its NUL */
qn_jv qn_jv_borrow(const char *s, size_t n);          /* borrowed */
qn_jv qn_jv_str(qn_jrun *r, const char *s, size_t n); /* copied */
qn_jv qn_jv_take(qn_jrun *r, qn_buf *b);              /* copied; b is finished */
qn_jv qn_jv_list(qn_jrun *r, qn_jtype type, size_t room);
qn_jv qn_jv_dict(qn_jrun *r, qn_jtype type);
void qn_jv_push(qn_jrun *r, qn_jv list, qn_jv v);
void qn_jv_put(qn_jrun *r, qn_jv dict, qn_jv key, qn_jv v);
const qn_jv *qn_jv_find(qn_jrun *r, qn_jv dict, qn_jv key); /* or NULL */
qn_jv qn_jv_from_json(qn_jrun *r, const qn_json *j, uint32_t depth);

bool qn_jv_is_str(qn_jv v);
bool qn_jv_is_num(qn_jv v); /* bool, int, real */
bool qn_jv_is_seq(qn_jv v); /* list, tuple */
double qn_jv_num(qn_jv v);
const char *qn_jv_type(qn_jv v);
bool qn_jv_true(qn_jv v);
bool qn_jv_equal(qn_jrun *r, qn_jv a, qn_jv b);
int qn_jv_order(qn_jrun *r, qn_jv a, qn_jv b); /* fails where Python would */
bool qn_jv_in(qn_jrun *r, qn_jv item, qn_jv in);
/* The elements that a for loop sees: keys of a dict, characters of a string. */
qn_jlist *qn_jv_iter(qn_jrun *r, qn_jv v);
size_t qn_jv_chars(qn_jv v);
int64_t qn_jv_len(qn_jrun *r, qn_jv v);
void qn_jv_write(qn_jrun *r, qn_buf *b, qn_jv v, bool repr);
qn_jv qn_jv_text(qn_jrun *r, qn_jv v); /* str(v) */
void qn_jv_write_real(qn_jrun *r, qn_buf *b, double d);
qn_jv qn_jv_slice(qn_jrun *r, qn_jv v, const qn_jv at[3]);

void qn_jinja_bytes(qn_jrun *r, qn_buf *b, const char *s, size_t n);
/* An argument by place or name; `other` where it was not given. */
qn_jv qn_jinja_arg(const qn_jargs *a, size_t i, const char *name, qn_jv other);
int64_t qn_jinja_int_arg(qn_jrun *r, const qn_jargs *a, size_t i, const char *name, int64_t other);

qn_jv qn_jinja_eval(qn_jrun *r, const qn_jnode *n);
qn_jargs qn_jinja_args(qn_jrun *r, const qn_jnode *list);
qn_jv qn_jinja_attr(qn_jrun *r, qn_jv v, const char *name);
qn_jv qn_jinja_item(qn_jrun *r, qn_jv v, qn_jv key);
qn_jv qn_jinja_call(qn_jrun *r, qn_jv f, const qn_jargs *a);
qn_jv qn_jinja_binary(qn_jrun *r, char op, qn_jv a, qn_jv b);
qn_jv qn_jinja_filter(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a);
bool qn_jinja_test(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a);
bool qn_jinja_has_method(qn_jv v, const char *name);
qn_jv qn_jinja_method(qn_jrun *r, qn_jv v, const char *name, const qn_jargs *a);
qn_jv qn_jinja_global(qn_jrun *r, const char *name, const qn_jargs *a);
bool qn_jinja_is_global(const char *name);
qn_jv qn_jinja_format(qn_jrun *r, qn_jv fmt, qn_jv args); /* fmt % args */
qn_jv qn_jinja_tojson(qn_jrun *r, qn_jv v, const qn_jargs *a);
qn_jv qn_jinja_replace(qn_jrun *r, qn_jv s, qn_jv old, qn_jv new_text, int64_t most);
qn_jv qn_jinja_strip(qn_jrun *r, qn_jv s, qn_jv chars, int sides);
qn_jv qn_jinja_case(qn_jrun *r, qn_jv s, char how); /* u, l, t(itle of str), c(apitalize) */

qn_jscope *qn_jinja_scope(qn_jrun *r, qn_jscope *up);
void qn_jinja_define(qn_jrun *r, qn_jscope *s, const char *name, qn_jv v);
void qn_jinja_exec(qn_jrun *r, const qn_jnode *body);
void qn_jinja_assign(qn_jrun *r, const qn_jnode *target, qn_jv v);
qn_jv qn_jinja_call_macro(qn_jrun *r, const qn_jmacro *m, const qn_jargs *a);
void qn_jinja_loop(qn_jrun *r, const qn_jnode *n, qn_jv over, qn_jscope *around, uint32_t depth);

#endif
