/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_global.c - tests ("x is name") and functions that every template has. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "text/jinja_int.h"

static const struct test {
    const char *name;
    char how; /* as a comparison's op, or one of the letters below */
    uint8_t args;
} tests[] = {
    {"defined", 'D', 0}, {"undefined", 'U', 0},   {"none", 'N', 0},     {"string", 'S', 0},
    {"mapping", 'M', 0}, {"sequence", 'Q', 0},    {"iterable", 'I', 0}, {"boolean", 'B', 0},
    {"true", 'T', 0},    {"false", 'F', 0},       {"integer", 'J', 0},  {"float", 'R', 0},
    {"number", '#', 0},  {"callable", 'C', 0},    {"escaped", 'E', 0},  {"odd", 'o', 0},
    {"even", 'v', 0},    {"divisibleby", 'd', 1}, {"lower", 'w', 0},    {"upper", 'p', 0},
    {"sameas", 's', 1},  {"filter", '|', 0},      {"test", '?', 0},     {"in", 'i', 1},
    {"eq", 'e', 1},      {"equalto", 'e', 1},     {"==", 'e', 1},       {"ne", 'n', 1},
    {"!=", 'n', 1},      {"lt", '<', 1},          {"lessthan", '<', 1}, {"<", '<', 1},
    {"gt", '>', 1},      {"greaterthan", '>', 1}, {">", '>', 1},        {"le", 'l', 1},
    {"<=", 'l', 1},      {"ge", 'g', 1},          {">=", 'g', 1},
};

static const struct test *find_test(const char *name)
{
    for (size_t i = 0; i < QN_LEN(tests); i++)
        if (!strcmp(name, tests[i].name)) return &tests[i];
    return NULL;
}

bool qn_jinja_has_test(const char *name) { return find_test(name) != NULL; }

static bool is_callable(qn_jv v)
{
    return v.type == QN_JV_UNDEF || (v.type >= QN_JV_MACRO && v.type <= QN_JV_LOOP) ||
           v.type == QN_JV_JOINER || v.type == QN_JV_BLOCK;
}

static bool is_kind(char how, qn_jv v)
{
    const qn_jtype t = (qn_jtype)v.type;
    switch (how) {
    case 'D':
        return t != QN_JV_UNDEF;
    case 'U':
        return t == QN_JV_UNDEF;
    case 'N':
        return t == QN_JV_NONE;
    case 'S':
        return t == QN_JV_STR;
    case 'M':
        return t == QN_JV_DICT;
    case 'Q':
        return t == QN_JV_STR || qn_jv_is_seq(v) || t == QN_JV_DICT || t == QN_JV_UNDEF ||
               t == QN_JV_RANGE;
    case 'I':
        return qn_jit_can(v);
    case 'B':
        return t == QN_JV_BOOL;
    case 'T':
        return t == QN_JV_BOOL && v.u.i;
    case 'F':
        return t == QN_JV_BOOL && !v.u.i;
    case 'J':
        return t == QN_JV_INT;
    case 'R':
        return t == QN_JV_REAL;
    case '#':
        return qn_jv_is_num(v);
    case 'C':
        return is_callable(v);
    default:
        return t == QN_JV_STR && v.flag; /* E: escaped */
    }
}

static bool divides(qn_jrun *r, qn_jv v, qn_jv by, int64_t rest)
{
    const qn_jv left = qn_jinja_binary(r, '%', v, by);
    return r->rc == QN_OK && qn_jv_equal(r, left, qn_jv_int(rest));
}

static bool is_registered(qn_jrun *r, qn_jv v, bool filter)
{
    if (!qn_jv_hashable(r, v) || v.type != QN_JV_STR) return false;
    const char *name = qn_jv_c(r, v);
    return filter ? qn_jinja_has_filter(name) : qn_jinja_has_test(name);
}

bool qn_jinja_test(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS] = {qn_jv_given()};
    const struct test *t = find_test(name);
    if (!qn_jinja_step(r, 1)) return false;
    if (!t) {
        qn_jinja_fail(r, QN_E_FORMAT, "no test is named '%s'", name);
        return false;
    }
    const bool named = t->how == 'd' || t->how == 's' || (t->how == 'i' && *name == 'i');
    const char *sig = !t->args        ? ""
                      : t->how == 'd' ? "num"
                      : t->how == 's' ? "other"
                      : named         ? "seq"
                                      : "other /";
    if (!qn_jinja_bind(r, name, sig, a, x)) return false;
    switch (t->how) {
    case 'o':
    case 'v':
        return divides(r, v, qn_jv_int(2), t->how == 'o');
    case 'd':
        return divides(r, v, x[0], 0);
    case 'w':
    case 'p':
        v = qn_jv_text(r, v);
        return r->rc == QN_OK && qn_jinja_all_are(v, t->how == 'w' ? "islower" : "isupper");
    case 's':
        return qn_jv_same(v, x[0]);
    case '|':
    case '?':
        return is_registered(r, v, t->how == '|');
    case 'e':
        return qn_jv_equal(r, v, x[0]);
    case 'n':
        return !qn_jv_equal(r, v, x[0]);
    case 'i':
        return qn_jv_in(r, v, x[0]);
    case '<':
    case '>':
    case 'l':
    case 'g':
        return qn_jv_compare(r, t->how, v, x[0]);
    default:
        return is_kind(t->how, v);
    }
}

static qn_jv range(qn_jrun *r, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    qn_jrange *g = QN_JNEW(r, qn_jrange, 1);
    if (!g || !qn_jinja_bind(r, "range", "start stop= step= /", a, x)) return qn_jv_undef(NULL);
    const int64_t first = qn_jinja_int_of(r, x[0], 0), step = qn_jinja_int_of(r, x[2], 1);
    *g = (qn_jrange){
        .start = a->n > 1 ? first : 0, .stop = qn_jinja_int_of(r, x[1], first), .step = step};
    if (r->rc != QN_OK) return qn_jv_undef(NULL);
    if (!step) return qn_jinja_fail(r, QN_E_FORMAT, "range() arg 3 must not be zero");
    if (step > 0 ? g->start < g->stop : g->start > g->stop) {
        const uint64_t span = step > 0 ? (uint64_t)g->stop - (uint64_t)g->start
                                       : (uint64_t)g->start - (uint64_t)g->stop;
        const uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step, n = (span - 1) / by + 1;
        if (n > 100000)
            return qn_jinja_fail(r, QN_E_FORMAT, "a range has more than 100000 numbers");
        g->n = (int64_t)n;
    }
    return (qn_jv){.type = QN_JV_RANGE, .u.range = g};
}

static qn_jv time_text(qn_jrun *r, qn_jv format)
{
    char text[1024];
    struct tm tm;
    const time_t now =
        r->in->now_s ? (time_t)r->in->now_s : (time_t)(qn_clock_wall_ns() / 1000000000u);
    if (format.type != QN_JV_STR || format.n > 200 || !localtime_r(&now, &tm))
        return qn_jinja_fail(r, QN_E_FORMAT, "strftime_now takes a short format");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const size_t n = strftime(text, sizeof text, qn_jv_c(r, format), &tm);
#pragma GCC diagnostic pop
    return qn_jv_str(r, text, n);
}

/* dict(...) and namespace(...): pairs or a mapping, then names. */
static qn_jv dict_of(qn_jrun *r, const qn_jargs *a, qn_jtype type)
{
    const qn_jv d = qn_jv_dict(r, type);
    if (a->n > 1)
        return qn_jinja_fail(r, QN_E_FORMAT, "dict expected at most 1 argument, got %zu", a->n);
    if (a->n && r->rc == QN_OK && a->v[0].type == QN_JV_DICT) {
        for (size_t i = 0; i < a->v[0].u.dict->n && r->rc == QN_OK; i++)
            qn_jv_put(r, d, a->v[0].u.dict->kv[2 * i], a->v[0].u.dict->kv[2 * i + 1]);
    } else if (a->n && a->v[0].type == QN_JV_UNDEF) {
        qn_jinja_undefined(r, a->v[0]); /* it is asked for its keys */
    } else if (a->n) {
        qn_jlist *all = qn_jv_all(r, a->v[0]);
        for (size_t i = 0; all && i < all->n && r->rc == QN_OK; i++) {
            const qn_jlist *two = qn_jv_all(r, all->v[i]);
            if (two && two->n != 2)
                qn_jinja_fail(r, QN_E_FORMAT, "an element of a dict has %zu parts", two->n);
            if (two && r->rc == QN_OK) qn_jv_put(r, d, two->v[0], two->v[1]);
        }
    }
    for (size_t i = 0; i < a->n_named && r->rc == QN_OK; i++)
        qn_jv_put(r, d, qn_jv_z(a->name[i]), a->named[i]);
    for (size_t i = 0; type == QN_JV_SPACE && r->rc == QN_OK && i < d.u.dict->n; i++) {
        const qn_jv key = d.u.dict->kv[2 * i];
        if (key.type == QN_JV_STR && key.n && *key.u.s == '_')
            qn_jinja_fail(r, QN_E_FORMAT, "a namespace cannot store names that begin with _");
    }
    return d;
}

bool qn_jinja_is_global(const char *name)
{
    static const char *const names[] = {"range",  "dict",         "namespace", "raise_exception",
                                        "lipsum", "strftime_now", "cycler",    "joiner"};
    for (size_t i = 0; i < QN_LEN(names); i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static qn_jv cycle(qn_jrun *r, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS] = {qn_jv_given()};
    const bool cycler = *name == 'c';
    qn_jcycle *c = QN_JNEW(r, qn_jcycle, 1);
    const qn_jv items = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; cycler && i < a->n && r->rc == QN_OK; i++) qn_jv_push(r, items, a->v[i]);
    if (!c || r->rc != QN_OK) return qn_jv_undef(NULL);
    if (cycler && (!a->n || a->n_named))
        return qn_jinja_fail(r, QN_E_FORMAT, "cycler takes items, at least one");
    if (!cycler && !qn_jinja_bind(r, name, "sep=", a, x)) return qn_jv_undef(NULL);
    *c = (qn_jcycle){.items = items.u.list, .sep = qn_jv_is_given(x[0]) ? x[0] : qn_jv_z(", ")};
    return (qn_jv){.type = cycler ? QN_JV_CYCLER : QN_JV_JOINER, .u.cycle = c};
}

qn_jv qn_jinja_global(qn_jrun *r, const char *name, const qn_jargs *a)
{
    qn_jv x[QN_JINJA_MAX_ARGS];
    if (!strcmp(name, "range")) return range(r, a);
    if (!strcmp(name, "dict")) return dict_of(r, a, QN_JV_DICT);
    if (!strcmp(name, "namespace")) return dict_of(r, a, QN_JV_SPACE);
    if (!strcmp(name, "lipsum")) return qn_jinja_fail(r, QN_E_FORMAT, "lipsum gives random text");
    if (!strcmp(name, "cycler") || !strcmp(name, "joiner")) return cycle(r, name, a);
    if (!strcmp(name, "strftime_now"))
        return qn_jinja_bind(r, name, "format", a, x) ? time_text(r, x[0]) : qn_jv_undef(NULL);
    if (!qn_jinja_bind(r, name, "message", a, x)) return qn_jv_undef(NULL);
    const qn_jv text = qn_jv_text(r, x[0]);
    return r->rc == QN_OK ? qn_jinja_fail(r, QN_E_FORMAT, "%s", qn_jv_c(r, text)) : text;
}
