/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - options as data: parsing. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

static const qn_opt *find(const qn_verb *verb, qn_str name)
{
    for (const qn_opt *o = verb->options; o->name; o++)
        if (qn_str_eq_z(name, o->name)) return o;
    return NULL;
}

static qn_code unknown(const qn_verb *verb, qn_str name, qn_err *err)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (const qn_opt *o = verb->options; o->name; o++) {
        const size_t distance = qn_str_distance(name, qn_str_z(o->name));
        if (distance < least) {
            least = distance;
            best = o->name;
        }
    }
    if (best && qn_str_is_near(least, name.n))
        return qn_fail(err, QN_E_INVAL, "unknown option --%.*s of %s; did you mean --%s?",
                       QN_STR_ARG(name), verb->name, best);
    return qn_fail(err, QN_E_INVAL, "unknown option --%.*s; \"quern help %s\" lists them",
                   QN_STR_ARG(name), verb->name);
}

/* The index of text among "a|b|c", or -1. */
static int choice_of(const char *words, qn_str text)
{
    qn_str rest = qn_str_z(words), word;
    for (int i = 0; qn_str_split(&word, &rest, '|'); i++)
        if (qn_str_eq(word, text)) return i;
    return -1;
}

static qn_code bad_value(const qn_opt *o, qn_str text, qn_err *err)
{
    if (o->kind == QN_OPT_CHOICE)
        return qn_fail(err, QN_E_INVAL, "--%s is \"%.*s\", expected %s", o->name, QN_STR_ARG(text),
                       o->arg);
    if (o->kind == QN_OPT_F32)
        return qn_fail(err, QN_E_INVAL, "--%s is \"%.*s\", expected a number from %g to %g",
                       o->name, QN_STR_ARG(text), o->lo, o->hi);
    const uint64_t most = o->hi < 0x1p64 ? (uint64_t)o->hi : UINT64_MAX;
    return qn_fail(err, QN_E_INVAL, "--%s is \"%.*s\", expected a whole number from %llu to %llu",
                   o->name, QN_STR_ARG(text), (unsigned long long)o->lo, (unsigned long long)most);
}

static qn_code add_text(qn_texts *list, const qn_opt *o, const char *value, qn_err *err)
{
    if (list->n == QN_MAX_TEXTS)
        return qn_fail(err, QN_E_LIMIT, "--%s is given more than %d times", o->name, QN_MAX_TEXTS);
    list->v[list->n++] = value;
    return QN_OK;
}

static qn_code store(void *opts, const qn_opt *o, const char *value, qn_err *err)
{
    char *at = (char *)opts + o->at;
    const qn_str text = qn_str_z(value);
    uint64_t whole = 0;
    double real = 0;
    int choice = 0;
    switch (o->kind) {
    case QN_OPT_FLAG:
        *(bool *)(void *)at = true;
        break;
    case QN_OPT_TEXT:
        *(const char **)(void *)at = value;
        break;
    case QN_OPT_TEXTS:
        QN_TRY(add_text((qn_texts *)(void *)at, o, value, err));
        break;
    case QN_OPT_CHOICE:
        choice = choice_of(o->arg, text);
        if (choice < 0) return bad_value(o, text, err);
        *(int *)(void *)at = choice;
        break;
    case QN_OPT_F32:
        if (!qn_str_parse_f64(&real, text) || !(real >= o->lo && real <= o->hi))
            return bad_value(o, text, err);
        *(float *)(void *)at = (float)real;
        break;
    case QN_OPT_U32:
    case QN_OPT_U64:
        if (!qn_str_parse_u64(&whole, text) || (double)whole < o->lo || (double)whole > o->hi)
            return bad_value(o, text, err);
        if (o->kind == QN_OPT_U64)
            *(uint64_t *)(void *)at = whole;
        else
            *(uint32_t *)(void *)at = (uint32_t)whole;
        break;
    }
    if (o->given) *(bool *)(void *)((char *)opts + o->given) = true;
    return QN_OK;
}

qn_code qn_opts_set(void *opts, const qn_verb *verb, qn_str name, const char *value, qn_err *err)
{
    const qn_opt *o = find(verb, name);
    if (!o) return unknown(verb, name, err);
    return store(opts, o, value, err);
}

/* v[*i] is "--name" or "--name=value"; takes the value behind it where one is needed. */
static qn_code take(void *opts, const qn_verb *verb, int n, char **v, int *i, qn_err *err)
{
    const qn_str whole = qn_str_z(v[*i] + 2);
    const size_t equals = qn_str_find(whole, QN_STR("="), 0);
    const qn_str name = qn_str_slice(whole, 0, equals);
    const qn_opt *o = find(verb, name);
    if (!o) return unknown(verb, name, err);
    if (o->kind == QN_OPT_FLAG) {
        if (equals != SIZE_MAX)
            return qn_fail(err, QN_E_INVAL, "--%s takes no value, got \"%s\"", o->name,
                           whole.p + equals + 1);
        return store(opts, o, "", err);
    }
    if (equals != SIZE_MAX) return store(opts, o, whole.p + equals + 1, err);
    if (*i + 1 >= n || strncmp(v[*i + 1], "--", 2) == 0)
        return qn_fail(err, QN_E_INVAL, "--%s needs %s", o->name, o->arg);
    return store(opts, o, v[++*i], err);
}

qn_code qn_opts_parse(void *opts, qn_args *args, bool *help, const qn_verb *verb, int n, char **v,
                      qn_err *err)
{
    int kept = 0;
    bool open = true; /* until "--" */
    *help = false;
    for (int i = 0; i < n; i++) {
        if (open && strcmp(v[i], "--") == 0) {
            open = false;
        } else if (open && (strcmp(v[i], "--help") == 0 || strcmp(v[i], "-h") == 0)) {
            *help = true;
            return QN_OK;
        } else if (open && strncmp(v[i], "--", 2) == 0) {
            QN_TRY(take(opts, verb, n, v, &i, err));
        } else if (open && v[i][0] == '-' && v[i][1] != '\0') {
            return qn_fail(err, QN_E_INVAL, "unknown option %s; options begin with --", v[i]);
        } else {
            v[kept++] = v[i];
        }
    }
    *args = (qn_args){kept, v};
    if (kept < verb->min_args || kept > verb->max_args)
        return qn_fail(err, QN_E_INVAL, "%s takes %s, got %d argument%s", verb->name,
                       verb->args[0] ? verb->args : "no arguments", kept, kept == 1 ? "" : "s");
    return QN_OK;
}
