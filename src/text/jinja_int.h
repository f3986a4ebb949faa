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
    QN_JT_OP,    /* op: its character; 'p' **, 'f' //, 'e' ==, 'n' !=, 'g' >=, 'l' <= */
    QN_JT_FAULT, /* reading ended here; s: why. Told when the parser gets there, as jinja2 does */
    QN_JT_KINDS
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
    char open[200]; /* the closing brackets that are due */
    size_t n_open;
    bool fault;
} qn_jlex;

/* Reads lex->src[0, n), newlines already normal, into lex->tok. Errors: LIMIT, NOMEM. */
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
    QN_JN_SLICE,   /* a [ b : c : d ], each may be NULL; a too, inside of a subscript of several */
    QN_JN_CALL,    /* a ( b ) */
    QN_JN_FILTER,  /* a | s ( b ); a is NULL in a filter block */
    QN_JN_TEST,    /* a is s ( b ); i: negated */
    QN_JN_UNARY,   /* op: '-', '+', '!' */
    QN_JN_BINARY,  /* op: a token's op, '&' and, '|' or */
    QN_JN_CONCAT,  /* a: operands of ~ */
    QN_JN_COMPARE, /* a, then b: links of op and a */
    QN_JN_LINK,    /* op: as the token, 'i' in, 'o' not in */
    QN_JN_COND,    /* a if b else c (NULL: undefined) */
    QN_JN_ARG,     /* a, or s = a; op: '*' and 'p' unpack */
    /* statements */
    QN_JN_TEXT,
    QN_JN_OUTPUT,       /* a: expressions */
    QN_JN_IF,           /* a: condition, b: body, c: else */
    QN_JN_FOR,          /* a: target, b: iterable, c: condition, d: body, e: else; i: recursive */
    QN_JN_SET,          /* a: target, b: value */
    QN_JN_SET_BLOCK,    /* a: target, b: filter, c: body */
    QN_JN_NSREF,        /* s . s2 as a target of set */
    QN_JN_WITH,         /* a: target, value, target, value ...; b: body */
    QN_JN_MACRO,        /* s, a: parameters (ARG: s, a default or NULL), b: body */
    QN_JN_CALL_BLOCK,   /* d: call (NULL: generation); a, b as MACRO */
    QN_JN_FILTER_BLOCK, /* a: filter, b: body */
    QN_JN_AUTOESCAPE,   /* a: condition, b: body */
    QN_JN_BLOCK,        /* s, b: body; i: 1 scoped, 2 required */
    QN_JN_LOAD,         /* s: include, import ...; a: the template; s2: what it defines */
    QN_JN_BREAK,
    QN_JN_CONTINUE
} qn_jkind;

typedef struct qn_jnode {
    uint8_t kind; /* qn_jkind */
    char op;
    bool caller, kwargs, varargs; /* of a macro: its body reads them */
    bool constant;                /* of what is put out: jinja2 evaluates it when it compiles */
    uint32_t line;
    const char *s, *s2; /* s: NUL behind [n] */
    size_t n;
    int64_t i;
    double real;
    struct qn_jnode *a, *b, *c, *d, *e;
    struct qn_jnode *next;   /* in the list it belongs to */
    struct qn_jname *hidden; /* variables that its scope hides until they are set */
    struct qn_jname *hidden_else;
} qn_jnode;

typedef struct qn_jname { /* a name of the source and whether its first mention reads it */
    const char *s;
    bool read;
    struct qn_jname *next;
} qn_jname;

typedef struct qn_jparse {
    qn_arena *arena;
    const qn_jtok *t; /* the present token; the last one is QN_JT_END */
    uint32_t depth;
    uint32_t chain; /* links over each other in this expression */
    uint32_t elifs; /* over each other, of all ifs around */
    uint32_t blocks;
    uint64_t work; /* names compared */
    uint32_t said; /* the line that jinja2's own program was last marked with */
    qn_jname *names;
    qn_code rc;
    qn_err *err;
} qn_jparse;

enum {
    QN_JINJA_MAX_NESTING = 200, /* of the source */
    QN_JINJA_MAX_FRAMES = 1500, /* of the evaluator: bounds its C stack to about 1 MiB */
    QN_JINJA_MAX_CHAIN = 1500,  /* "a.b.c", "1 + 2 + 3", elif: trees as deep as they are long */
    QN_JINJA_MAX_SOURCE = 4 << 20,
    QN_JINJA_MAX_WORK = 200000000, /* names compared while compiling */
    QN_JINJA_MAX_BLOCKS = 500
};

/* All parsing functions give NULL once p->rc is set. */
qn_jnode *qn_jinja_node(qn_jparse *p, qn_jkind kind);
qn_jnode *qn_jinja_expected(qn_jparse *p, const char *what);
qn_jnode *qn_jinja_wrong(qn_jparse *p, uint32_t line, const char *fmt, ...) QN_PRINTF(3, 4);
bool qn_jinja_at_op(const qn_jparse *p, char op);
bool qn_jinja_at_name(const qn_jparse *p, const char *name);
bool qn_jinja_skip_op(qn_jparse *p, char op);
bool qn_jinja_skip_name(qn_jparse *p, const char *name);
bool qn_jinja_want_op(qn_jparse *p, char op);
void qn_jinja_note(qn_jparse *p, const char *s, bool read);
/* One more link of a chain whose tree is as deep as it is long; false: too many. */
bool qn_jinja_link(qn_jparse *p, uint32_t *chain);
qn_jnode *qn_jinja_expr(qn_jparse *p, bool with_cond);
typedef enum qn_jends {
    QN_JE_PLAIN,
    QN_JE_IN,
    QN_JE_RECURSIVE
} qn_jends; /* what else ends a tuple */
qn_jnode *qn_jinja_tuple(qn_jparse *p, bool with_cond, bool in_brackets, qn_jends ends);
/* A target of an assignment: names and tuples of names; with_namespace: also a.b. */
qn_jnode *qn_jinja_target(qn_jparse *p, bool with_namespace, qn_jends ends);
qn_jnode *qn_jinja_filters(qn_jparse *p, qn_jnode *a, bool first_without_bar);
bool qn_jinja_is_one_of(const char *name, const char *names);
/* Statements up to one whose name is in stop ("endif else elif"; NULL: the end of the source); the
 * parser then stands on that name. *out is NULL for an empty body. */
void qn_jinja_body(qn_jnode **out, qn_jparse *p, const char *stop);
/* What a whole program must be: known filters, breaks in loops ...; fills hidden, caller ... */
void qn_jinja_frames(qn_jparse *p, qn_jnode *root);

struct qn_jinja {
    qn_arena arena;
    qn_jnode *root; /* b: body */
    qn_jname *names;
};

/* ---- values ---- */
typedef enum qn_jtype {
    QN_JV_UNDEF, /* flag: qn_junknown; s: a name or a sentence; n: the type it was looked up in */
    QN_JV_NONE,
    QN_JV_BOOL,
    QN_JV_INT,
    QN_JV_REAL,
    QN_JV_STR, /* flag: it is markup */
    QN_JV_LIST,
    QN_JV_TUPLE,
    QN_JV_DICT,
    QN_JV_SPACE, /* a namespace: a dict whose members templates may set */
    QN_JV_RANGE,
    QN_JV_VIEW, /* of dict; flag: 'k' keys, 'v' values, 'i' items */
    QN_JV_GEN,  /* gives each element once */
    QN_JV_MACRO,
    QN_JV_GLOBAL, /* s: the function's name */
    QN_JV_METHOD, /* bound: of a value */
    QN_JV_LOOP,
    QN_JV_CYCLER,
    QN_JV_JOINER,
    QN_JV_SELF,  /* the template's blocks */
    QN_JV_BLOCK, /* node: one of them */
    QN_JV_GIVEN, /* no value: an argument that was not given */
    QN_JV_TYPES
} qn_jtype;

typedef enum qn_junknown {
    QN_JU_NAME,
    QN_JU_ATTR,
    QN_JU_ITEM,
    QN_JU_HINT,
    QN_JU_UNSAFE
} qn_junknown;

typedef struct qn_jv {
    uint8_t type; /* qn_jtype */
    uint8_t flag;
    size_t n; /* STR: bytes */
    union {
        int64_t i; /* BOOL too */
        double d;
        const char *s;
        struct qn_jlist *list;
        struct qn_jdict *dict;
        struct qn_jrange *range;
        struct qn_jgen *gen;
        struct qn_jmacro *macro;
        struct qn_jbound *bound;
        struct qn_jloop *loop;
        struct qn_jcycle *cycle;
        const qn_jnode *node;
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

typedef struct qn_jrange {
    int64_t start, stop, step;
    int64_t n;
} qn_jrange;

typedef struct qn_jvar {
    const char *name;
    qn_jv v;
    bool hidden; /* not set yet: as if nothing of this name were anywhere */
    struct qn_jvar *next;
} qn_jvar;

typedef struct qn_jscope {
    struct qn_jscope *up;
    qn_jvar *vars;
} qn_jscope;

typedef struct qn_jmacro {
    const qn_jnode *node;
    qn_jscope *scope;
    bool escapes;
} qn_jmacro;

typedef struct qn_jbound {
    qn_jv self;
    const char *name;
} qn_jbound;

typedef struct qn_jargs {
    qn_jv *v; /* [n] by position */
    size_t n;
    const char **name; /* [n_named] */
    qn_jv *named;
    size_t n_named;
} qn_jargs;

typedef struct qn_jit { /* a walk over a value's elements */
    qn_jv over;
    size_t at; /* bytes of a string, else elements */
} qn_jit;

typedef struct qn_jgen { /* how a lazy filter makes its elements */
    char kind; /* m map, s select, b batch, l slice, u unique, i items, r reversed, c cond */
    bool begun, busy, done, attr, want, sensitive;
    qn_jv value;
    qn_jit it;
    qn_jargs args;
    qn_jv path, fill, seen;
    int64_t count, at;
    const qn_jnode *node; /* of a loop with a condition */
    qn_jscope *scope;
} qn_jgen;

typedef struct qn_jloop {
    const qn_jnode *node;
    qn_jscope *scope; /* around the loop */
    qn_jv over;
    qn_jit it;
    int64_t at, length; /* -1: not begun; not known */
    uint32_t depth;
    qn_jv after, now, before;
    bool has_after, ended;
    qn_jv last; /* of changed() */
    bool has_last;
} qn_jloop;

typedef struct qn_jcycle {
    qn_jlist *items;
    size_t at;
    qn_jv sep;
} qn_jcycle;

typedef enum qn_jflow { QN_JF_ON, QN_JF_BREAK, QN_JF_CONTINUE } qn_jflow;

typedef struct qn_jrun {
    qn_arena arena;
    const qn_jinja *program;
    const qn_jinja_input *in;
    qn_buf *out;
    qn_jscope *scope, *root; /* the present one; the template's own */
    uint64_t steps, max_steps;
    size_t max_output;
    uint32_t line, frames, calls, max_calls;
    bool escapes; /* inside of autoescape */
    bool no_text; /* something that is no text was put out as it is */
    bool lenient; /* a constant is evaluated: what cannot be sliced is undefined */
    qn_jflow flow;
    qn_code rc;
    qn_err *err;
} qn_jrun;

/* Keeps the first failure with the present line; gives the undefined value. */
qn_jv qn_jinja_fail(qn_jrun *r, qn_code code, const char *fmt, ...) QN_PRINTF(3, 4);
bool qn_jinja_step(qn_jrun *r, uint64_t n); /* false once something failed */
/* As step, and one frame deeper; undone by leave. */
bool qn_jinja_enter(qn_jrun *r);
void qn_jinja_leave(qn_jrun *r);
/* n zeroed objects of the rendering, or NULL and a failure. */
void *qn_jinja_room(qn_jrun *r, size_t n, size_t size);
#define QN_JNEW(r, type, n) ((type *)qn_jinja_room((r), (n), sizeof(type)))

/* jinja_value.c */
qn_jv qn_jv_undef(const char *name);
qn_jv qn_jv_hint(const char *sentence);
qn_jv qn_jv_none(void);
qn_jv qn_jv_bool(bool b);
qn_jv qn_jv_int(int64_t i);
qn_jv qn_jv_real(double d);
qn_jv qn_jv_given(void);                              /* the value of an argument not given */
qn_jv qn_jv_z(const char *s);                         /* borrowed, up to its NUL */
qn_jv qn_jv_borrow(const char *s, size_t n);          /* borrowed */
qn_jv qn_jv_str(qn_jrun *r, const char *s, size_t n); /* copied */
const char *qn_jv_c(qn_jrun *r, qn_jv s);             /* a string up to its NUL */
qn_jv qn_jv_take(qn_jrun *r, qn_buf *b);              /* copied; b is finished */
qn_jv qn_jv_marked(qn_jv s, bool markup);
qn_jv qn_jv_list(qn_jrun *r, qn_jtype type, size_t room);
qn_jv qn_jv_dict(qn_jrun *r, qn_jtype type);
void qn_jv_push(qn_jrun *r, qn_jv list, qn_jv v);
void qn_jv_put(qn_jrun *r, qn_jv dict, qn_jv key, qn_jv v);
const qn_jv *qn_jv_find(qn_jrun *r, qn_jv dict, qn_jv key); /* or NULL */
qn_jv qn_jv_pair(qn_jrun *r, qn_jv a, qn_jv b);
qn_jv qn_jv_from_json(qn_jrun *r, const qn_json *j, uint32_t depth);
bool qn_jv_is_given(qn_jv v); /* not the mark of an argument that was not given */
bool qn_jv_is_str(qn_jv v);
bool qn_jv_is_num(qn_jv v); /* bool, int, real */
bool qn_jv_is_int(qn_jv v); /* bool, int */
bool qn_jv_is_seq(qn_jv v); /* list, tuple */
bool qn_jv_is_map(qn_jv v); /* dict, namespace's members */
double qn_jv_num(qn_jv v);
const char *qn_jv_type(qn_jv v);
bool qn_jv_true(qn_jv v);
bool qn_jv_hashable(qn_jrun *r, qn_jv v); /* or fails */
bool qn_jv_same(qn_jv a, qn_jv b);        /* the very same object */
bool qn_jv_equal(qn_jrun *r, qn_jv a, qn_jv b);
int qn_jv_order(qn_jrun *r, qn_jv a, qn_jv b, const char *op); /* fails where Python would */
bool qn_jv_compare(qn_jrun *r, char op, qn_jv a, qn_jv b);     /* < > l g, with NaN */
bool qn_jv_in(qn_jrun *r, qn_jv item, qn_jv in);
qn_jv qn_jinja_undefined(qn_jrun *r, qn_jv v); /* fails: it was used */

/* jinja_iter.c */
bool qn_jit_can(qn_jv v);
bool qn_jit_begin(qn_jrun *r, qn_jit *it, qn_jv v); /* fails where v has no elements */
bool qn_jit_next(qn_jrun *r, qn_jit *it, qn_jv *v); /* false at the end and after failures */
qn_jlist *qn_jv_all(qn_jrun *r, qn_jv v);           /* a list of its own with all elements */
qn_jgen *qn_jv_gen(qn_jrun *r, qn_jv *out, char kind, qn_jv value);
size_t qn_jv_chars(qn_jv v);
int64_t qn_jv_len(qn_jrun *r, qn_jv v);
bool qn_jv_has_len(qn_jv v);
qn_jv qn_jv_element(qn_jrun *r, qn_jv v, int64_t i, bool *found); /* by place, negative too */
qn_jv qn_jv_slice(qn_jrun *r, qn_jv v, const qn_jv at[3]);
qn_jv qn_jv_part(qn_jrun *r, qn_jv s, int64_t from, int64_t to); /* characters [from, to) */
size_t qn_jv_byte_of(qn_jv s, int64_t ch);                       /* where a character begins */
bool qn_jloop_next(qn_jrun *r, qn_jloop *l, qn_jv *v);
qn_jv qn_jloop_attr(qn_jrun *r, qn_jloop *l, const char *name, bool *found);

/* jinja_text.c */
void qn_jinja_bytes(qn_jrun *r, qn_buf *b, const char *s, size_t n);
void qn_jinja_put(qn_jrun *r, qn_buf *b, const char *z);
void qn_jinja_fill(qn_jrun *r, qn_buf *b, qn_jv s, int64_t times);
void qn_jv_write(qn_jrun *r, qn_buf *b, qn_jv v, bool repr);
void qn_jinja_write_out(qn_jrun *r, qn_jv v); /* {{ v }} */
qn_jv qn_jv_text(qn_jrun *r, qn_jv v);        /* str(v): never markup */
qn_jv qn_jv_soft(qn_jrun *r, qn_jv v);        /* as text, but markup stays markup */
qn_jv qn_jv_repr(qn_jrun *r, qn_jv v);
qn_jv qn_jv_escape(qn_jrun *r, qn_jv v); /* markup; markup stays as it is */
void qn_jv_write_real(qn_jrun *r, qn_buf *b, double d);
qn_jv qn_jinja_join(qn_jrun *r, qn_jv sep, qn_jv over, char how); /* how: s str each, m method */

qn_jv qn_jinja_tojson(qn_jrun *r, qn_jv v, const qn_jv *x);
qn_jv qn_jinja_pprint(qn_jrun *r, qn_jv v);
qn_jv qn_jinja_percent(qn_jrun *r, qn_jv fmt, qn_jv args);                 /* fmt % args */
qn_jv qn_jinja_braces(qn_jrun *r, qn_jv fmt, const qn_jargs *a, bool map); /* fmt.format(...) */
/* One value by a format specification, as Python's format(). */
void qn_jinja_spec(qn_jrun *r, qn_buf *b, qn_jv v, qn_jv spec);

/* Arguments by a signature: "a b=? /" - names, "=" may be left out, "/" before it only by position,
 * "!" before it only by name. x[] gets a value each, QN_JV_GIVEN where there was none. */
enum { QN_JINJA_MAX_ARGS = 8 };
bool qn_jinja_bind(qn_jrun *r, const char *who, const char *sig, const qn_jargs *a, qn_jv *x);
int64_t qn_jinja_int_of(qn_jrun *r, qn_jv v, int64_t other); /* other: not given */
bool qn_jinja_true_of(qn_jv v, bool other);

/* jinja_chars.c */
enum {
    QN_JC_ALPHA = 1,
    QN_JC_DECIMAL = 2,
    QN_JC_DIGIT = 4,
    QN_JC_NUMERIC = 8,
    QN_JC_LOWER = 16,
    QN_JC_UPPER = 32,
    QN_JC_TITLE = 64,
    QN_JC_PRINTABLE = 128,
    QN_JC_SPACE = 256,
    QN_JC_IGNORABLE = 512,
    QN_JC_NAME_FIRST = 1024,
    QN_JC_NAME = 2048
};
uint32_t qn_jinja_char(uint32_t cp);
qn_jv qn_jinja_case(qn_jrun *r, qn_jv s, char how); /* u l c t(itle) s(wap) f(old) w(ord filter) */
bool qn_jinja_all_are(qn_jv s, const char *test);   /* isalpha ... */
size_t qn_jinja_line_end(const char *s, size_t n, size_t i); /* length of a line break at i, or 0 */

qn_jv qn_jinja_eval(qn_jrun *r, const qn_jnode *n);
qn_jargs qn_jinja_args(qn_jrun *r, const qn_jnode *list);
qn_jv qn_jinja_attr(qn_jrun *r, qn_jv v, const char *name);
qn_jv qn_jinja_item(qn_jrun *r, qn_jv v, qn_jv key);
qn_jv qn_jinja_call(qn_jrun *r, qn_jv f, const qn_jargs *a);
qn_jv qn_jinja_binary(qn_jrun *r, char op, qn_jv a, qn_jv b);
bool qn_jinja_has_filter(const char *name);
bool qn_jinja_has_test(const char *name);
qn_jv qn_jinja_filter(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a);
bool qn_jinja_test(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a);
qn_jv qn_jinja_path(qn_jrun *r, qn_jv v, qn_jv path, qn_jv other); /* attribute= of filters */

/* A dict's pairs by key, [2 n]; safe: keys of different types do not fail. NULL after a failure. */
const qn_jv *qn_jinja_sorted_pairs(qn_jrun *r, qn_jv dict, bool safe);

typedef struct qn_jfilter {
    const char *name, *sig; /* sig NULL: a takes what it likes */
    qn_jv (*fn)(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a);
} qn_jfilter;
qn_jv qn_jinja_wordwrap(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a);
qn_jv qn_jinja_urlize(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a);
const qn_jfilter *qn_jinja_text_filters(size_t *n); /* those that work on text */

/* The attribute of a value, without the members of dicts; *found false: there is none. */
qn_jv qn_jinja_member(qn_jrun *r, qn_jv v, const char *name, bool *found);
bool qn_jinja_has_str_method(const char *name);
qn_jv qn_jinja_str_method(qn_jrun *r, qn_jv s, const char *name, const qn_jargs *a);
qn_jv qn_jinja_method(qn_jrun *r, const qn_jbound *m, const qn_jargs *a);
qn_jv qn_jinja_global(qn_jrun *r, const char *name, const qn_jargs *a);
bool qn_jinja_is_global(const char *name);
qn_jv qn_jinja_replace(qn_jrun *r, qn_jv s, qn_jv old, qn_jv by, int64_t most);
qn_jv qn_jinja_strip(qn_jrun *r, qn_jv s, qn_jv chars, int sides);
qn_jv qn_jinja_split(qn_jrun *r, qn_jv s, qn_jv sep, int64_t most, bool right);
qn_jv qn_jinja_lines(qn_jrun *r, qn_jv s, bool keep);
qn_jv qn_jinja_to_int(qn_jrun *r, qn_jv v, int64_t base, bool *ok);
bool qn_jinja_to_real(qn_jv s, double *d); /* float(str) */

qn_jscope *qn_jinja_scope(qn_jrun *r, qn_jscope *up, const qn_jname *hidden);
void qn_jinja_define(qn_jrun *r, qn_jscope *s, const char *name, qn_jv v);
void qn_jinja_exec(qn_jrun *r, const qn_jnode *body);
void qn_jinja_assign(qn_jrun *r, const qn_jnode *target, qn_jv v);
qn_jv qn_jinja_call_macro(qn_jrun *r, const qn_jmacro *m, const qn_jargs *a);
qn_jv qn_jinja_call_loop(qn_jrun *r, const qn_jloop *l, const qn_jargs *a);
qn_jv qn_jinja_call_block(qn_jrun *r, const qn_jnode *n);
const qn_jnode *qn_jinja_find_block(const qn_jnode *body, const char *name);

#endif
