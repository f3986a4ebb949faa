/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_global.c - tests ("x is name") and functions that every template has. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "text/jinja_int.h"

static bool same_case(qn_jrun *r, qn_jv v, char how)
{
    const qn_jv s = qn_jv_text(r, v);
    bool letter = false, right = true;
    for (size_t i = 0; i < s.n && r->rc == QN_OK; i++) {
        const bool up = s.u.s[i] >= 'A' && s.u.s[i] <= 'Z',
                   low = s.u.s[i] >= 'a' && s.u.s[i] <= 'z';
        letter |= up || low;
        right = right && !(how == 'u' ? low : up);
    }
    return letter && right;
}

static bool type_test(const char *name, qn_jv v, bool *is)
{
    const qn_jtype t = (qn_jtype)v.type;
    const bool dict = t == QN_JV_DICT, seq = qn_jv_is_seq(v), str = t == QN_JV_STR;
    if (!strcmp(name, "defined"))
        *is = t != QN_JV_UNDEF;
    else if (!strcmp(name, "undefined"))
        *is = t == QN_JV_UNDEF;
    else if (!strcmp(name, "none"))
        *is = t == QN_JV_NONE;
    else if (!strcmp(name, "string"))
        *is = str;
    else if (!strcmp(name, "mapping"))
        *is = dict;
    else if (!strcmp(name, "sequence"))
        *is = str || seq || dict || t == QN_JV_UNDEF;
    else if (!strcmp(name, "iterable"))
        *is = str || seq || dict || t == QN_JV_UNDEF || t == QN_JV_LOOP;
    else if (!strcmp(name, "boolean"))
        *is = t == QN_JV_BOOL;
    else if (!strcmp(name, "true"))
        *is = t == QN_JV_BOOL && v.u.i;
    else if (!strcmp(name, "false"))
        *is = t == QN_JV_BOOL && !v.u.i;
    else if (!strcmp(name, "integer"))
        *is = t == QN_JV_INT;
    else if (!strcmp(name, "float"))
        *is = t == QN_JV_REAL;
    else if (!strcmp(name, "number"))
        *is = qn_jv_is_num(v);
    else if (!strcmp(name, "callable"))
        *is = t >= QN_JV_MACRO || t == QN_JV_UNDEF;
    else if (!strcmp(name, "escaped"))
        *is = false;
    else
        return false;
    return true;
}

bool qn_jinja_test(qn_jrun *r, const char *name, qn_jv v, const qn_jargs *a)
{
    static const char names[][2][12] = {
        {"eq", "e"}, {"equalto", "e"},     {"==", "e"},       {"ne", "n"},
        {"!=", "n"}, {"lt", "<"},          {"lessthan", "<"}, {"<", "<"},
        {"gt", ">"}, {"greaterthan", ">"}, {">", ">"},        {"le", "l"},
        {"<=", "l"}, {"ge", "g"},          {">=", "g"},       {"in", "i"}};
    bool is = false;
    const qn_jv x = qn_jinja_arg(a, 0, "other", qn_jv_none());
    if (!qn_jinja_step(r, 1) || type_test(name, v, &is)) return is;
    if (!strcmp(name, "upper") || !strcmp(name, "lower")) return same_case(r, v, *name);
    if (!strcmp(name, "odd") || !strcmp(name, "even") || !strcmp(name, "divisibleby")) {
        const qn_jv by = *name == 'd' ? x : qn_jv_int(2), rest = qn_jinja_binary(r, '%', v, by);
        return r->rc == QN_OK && qn_jv_true(rest) == (*name == 'o');
    }
    if (!strcmp(name, "sameas"))
        return v.type == x.type && (v.type == QN_JV_NONE || v.u.i == x.u.i) && v.n == x.n;
    for (size_t i = 0; i < QN_LEN(names); i++) {
        if (strcmp(name, names[i][0])) continue;
        switch (names[i][1][0]) {
        case 'e':
            return qn_jv_equal(r, v, x);
        case 'n':
            return !qn_jv_equal(r, v, x);
        case '<':
            return qn_jv_order(r, v, x) < 0;
        case '>':
            return qn_jv_order(r, v, x) > 0;
        case 'l':
            return qn_jv_order(r, v, x) <= 0;
        case 'g':
            return qn_jv_order(r, v, x) >= 0;
        default:
            return qn_jv_in(r, v, x);
        }
    }
    qn_jinja_fail(r, QN_E_FORMAT, "no test is named '%s'", name);
    return false;
}

static qn_jv range(qn_jrun *r, const qn_jargs *a)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    const int64_t first = qn_jinja_int_arg(r, a, 0, "start", 0);
    const int64_t begin = a->n > 1 ? first : 0, end = qn_jinja_int_arg(r, a, a->n > 1, "stop", 0);
    const int64_t step = qn_jinja_int_arg(r, a, 2, "step", 1);
    if (!step) return qn_jinja_fail(r, QN_E_FORMAT, "the step of a range is 0");
    for (int64_t i = begin; (step > 0 ? i < end : i > end) && r->rc == QN_OK;) {
        if (out.u.list->n >= 100000)
            return qn_jinja_fail(r, QN_E_LIMIT, "a range has more than 100000 numbers");
        qn_jv_push(r, out, qn_jv_int(i));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    return out;
}

static qn_jv time_text(qn_jrun *r, qn_jv format)
{
    char text[512];
    struct tm tm;
    const time_t now =
        r->in->now_s ? (time_t)r->in->now_s : (time_t)(qn_clock_wall_ns() / 1000000000u);
    if (format.type != QN_JV_STR || format.n > 200 || !localtime_r(&now, &tm))
        return qn_jinja_fail(r, QN_E_FORMAT, "strftime_now takes a short format");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const size_t n = strftime(text, sizeof text, format.u.s, &tm);
#pragma GCC diagnostic pop
    return qn_jv_str(r, text, n);
}

static qn_jv dict_of(qn_jrun *r, const qn_jargs *a, qn_jtype type)
{
    const qn_jv d = qn_jv_dict(r, type);
    if (a->n && r->rc == QN_OK && a->v[0].type == QN_JV_DICT)
        for (size_t i = 0; i < a->v[0].u.dict->n && r->rc == QN_OK; i++)
            qn_jv_put(r, d, a->v[0].u.dict->kv[2 * i], a->v[0].u.dict->kv[2 * i + 1]);
    for (size_t i = 0; i < a->n_named && r->rc == QN_OK; i++)
        qn_jv_put(r, d, qn_jv_z(a->name[i]), a->named[i]);
    return d;
}

bool qn_jinja_is_global(const char *name)
{
    static const char *const names[] = {"range",        "dict",   "namespace", "raise_exception",
                                        "strftime_now", "cycler", "joiner"};
    for (size_t i = 0; i < QN_LEN(names); i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

qn_jv qn_jinja_global(qn_jrun *r, const char *name, const qn_jargs *a)
{
    const qn_jv x = qn_jinja_arg(a, 0, "message", qn_jv_none());
    if (!strcmp(name, "range")) return range(r, a);
    if (!strcmp(name, "dict")) return dict_of(r, a, QN_JV_DICT);
    if (!strcmp(name, "namespace")) return dict_of(r, a, QN_JV_SPACE);
    if (!strcmp(name, "strftime_now")) return time_text(r, qn_jinja_arg(a, 0, "format", x));
    if (!strcmp(name, "raise_exception")) {
        const qn_jv text = qn_jv_text(r, x);
        return r->rc == QN_OK ? qn_jinja_fail(r, QN_E_FORMAT, "%s", text.u.s) : text;
    }
    qn_jcycle *c = QN_ARENA_NEW(&r->arena, qn_jcycle, 1);
    const qn_jv items = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; i < a->n && r->rc == QN_OK; i++) qn_jv_push(r, items, a->v[i]);
    if (!c || r->rc != QN_OK) return qn_jinja_fail(r, QN_E_NOMEM, "values of a template");
    const bool cycler = *name == 'c';
    if (cycler && !a->n) return qn_jinja_fail(r, QN_E_FORMAT, "cycler takes values");
    *c = (qn_jcycle){.items = items.u.list, .sep = qn_jinja_arg(a, 0, "sep", qn_jv_z(", "))};
    return (qn_jv){.type = cycler ? QN_JV_CYCLER : QN_JV_JOINER, .u.cycle = c};
}
