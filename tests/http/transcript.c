/* SPDX-License-Identifier: Apache-2.0 */
/* transcript.c - see transcript.h. Lines are compared one by one; … as a line tries every rest. */
#include "transcript.h"

#include <stdio.h>

#include "dep/json.h"

#define ANY "\xE2\x80\xA6" /* … */
#define MAX_JSON (1u << 20)

static bool take_line(qn_str *line, qn_str *rest)
{
    return rest->n > 0 && qn_str_split(line, rest, '\n');
}

void transcript_init(transcript *t, qn_str page) { *t = (transcript){.rest = page}; }

static bool goes_on(qn_str command)
{
    size_t quotes = 0;
    for (size_t i = 0; i < command.n; i++) quotes += command.p[i] == '\'';
    return quotes % 2 == 1 || qn_str_has_suffix(command, QN_STR("\\"));
}

/* Puts the lines up to the next command or the end of the block into t->want. */
static void take_output(transcript *t)
{
    const char *begin = t->rest.p, *end = begin;
    qn_str line, rest = t->rest;
    while (take_line(&line, &rest)) {
        if (qn_str_has_prefix(line, QN_STR("$ ")) || qn_str_has_prefix(line, QN_STR("```"))) break;
        end = line.p + line.n;
        t->rest = rest;
        t->line++;
    }
    t->want = end > begin ? qn_str_make(begin, (size_t)(end - begin)) : qn_str_make(begin, 0);
}

bool transcript_next(transcript *t)
{
    qn_str line;
    while (take_line(&line, &t->rest)) {
        t->line++;
        if (qn_str_has_prefix(line, QN_STR("```"))) t->inside = qn_str_eq_z(line, "```console");
        if (!t->inside || !qn_str_has_prefix(line, QN_STR("$ "))) continue;
        t->command = qn_str_slice(line, 2, line.n);
        while (goes_on(t->command) && take_line(&line, &t->rest)) {
            t->command.n = (size_t)(line.p + line.n - t->command.p);
            t->line++;
        }
        take_output(t);
        return true;
    }
    return false;
}

/* -- matching ---------------------------------------------------------------------------------- */

static bool differ(char *why, size_t n, const char *what, qn_str want, qn_str got)
{
    snprintf(why, n, "%s: expected %.*s, found %.*s", what, QN_STR_ARG(qn_str_slice(want, 0, 200)),
             QN_STR_ARG(qn_str_slice(got, 0, 200)));
    return false;
}

static bool text_matches(qn_str want, qn_str got)
{
    const size_t at = qn_str_find(want, QN_STR(ANY), 0);
    if (at == SIZE_MAX) return qn_str_eq(want, got);
    if (got.n < at || !qn_str_eq(qn_str_slice(want, 0, at), qn_str_slice(got, 0, at))) return false;
    want = qn_str_slice(want, at + 3, want.n);
    if (want.n == 0) return true;
    for (size_t from = at; from <= got.n; from++)
        if (text_matches(want, qn_str_slice(got, from, got.n))) return true;
    return false;
}

static qn_str json_text(const qn_json *v)
{
    size_t n = 0;
    const char *p = qn_json_str(v, &n);
    return qn_str_make(p, p ? n : 0);
}

static bool is_any(const qn_json *v)
{
    return qn_json_type_of(v) == QN_JSON_STRING && qn_str_eq_z(json_text(v), ANY);
}

static bool json_matches(const qn_json *want, const qn_json *got, const char *name, char *why,
                         size_t n);

static bool object_matches(const qn_json *want, const qn_json *got, char *why, size_t n)
{
    const void *it = NULL;
    const char *key;
    const qn_json *v;
    while (qn_json_next(want, &it, &key, &v)) {
        if (qn_str_eq_z(qn_str_z(key), ANY)) continue;
        if (!qn_json_get(got, key))
            return differ(why, n, key, QN_STR("the member"), QN_STR("none"));
        if (!json_matches(v, qn_json_get(got, key), key, why, n)) return false;
    }
    it = NULL;
    while (!qn_json_get(want, ANY) && qn_json_next(got, &it, &key, &v))
        if (!qn_json_get(want, key))
            return differ(why, n, key, QN_STR("no such member"), QN_STR("one"));
    return true;
}

static bool array_matches(const qn_json *want, const qn_json *got, const char *name, char *why,
                          size_t n)
{
    size_t fixed = qn_json_len(want);
    const bool open = fixed > 0 && is_any(qn_json_at(want, fixed - 1));
    fixed -= open;
    if (qn_json_len(got) < fixed || (!open && qn_json_len(got) > fixed))
        return differ(why, n, name, QN_STR("another number of elements"), QN_STR("this one"));
    for (size_t i = 0; i < fixed; i++)
        if (!json_matches(qn_json_at(want, i), qn_json_at(got, i), name, why, n)) return false;
    return true;
}

static bool json_matches(const qn_json *want, const qn_json *got, const char *name, char *why,
                         size_t n)
{
    const qn_json_type type = qn_json_type_of(want);
    if (is_any(want)) return true;
    if (type != qn_json_type_of(got))
        return differ(why, n, name, QN_STR("another type"), QN_STR("this"));
    switch (type) {
    case QN_JSON_OBJECT:
        return object_matches(want, got, why, n);
    case QN_JSON_ARRAY:
        return array_matches(want, got, name, why, n);
    case QN_JSON_STRING:
        return text_matches(json_text(want), json_text(got)) ||
               differ(why, n, name, json_text(want), json_text(got));
    case QN_JSON_BOOL:
        return qn_json_bool(want, false) == qn_json_bool(got, false) ||
               differ(why, n, name, QN_STR("the other bool"), QN_STR("this"));
    case QN_JSON_INT:
    case QN_JSON_REAL: {
        char a[40], b[40];
        snprintf(a, sizeof a, "%.17g", qn_json_num(want, 0));
        snprintf(b, sizeof b, "%.17g", qn_json_num(got, 0));
        return qn_str_eq(qn_str_z(a), qn_str_z(b)) ||
               differ(why, n, name, qn_str_z(a), qn_str_z(b));
    }
    case QN_JSON_NULL:
        break;
    }
    return true;
}

/* The JSON value that starts *rest, over as many lines as it needs; NULL when none ends. */
static qn_json *take_json(qn_str *rest)
{
    qn_str after = *rest, line;
    while (take_line(&line, &after)) {
        qn_json *v = NULL;
        const size_t n = (size_t)(line.p + line.n - rest->p);
        if (qn_json_parse(&v, rest->p, n, MAX_JSON, NULL) != QN_OK) continue;
        *rest = after;
        return v;
    }
    return NULL;
}

static bool starts_json(qn_str s)
{
    return s.n > 0 && (s.p[0] == '{' || s.p[0] == '[') && !qn_str_has_prefix(s, QN_STR("[DONE]"));
}

bool transcript_matches(qn_str want, qn_str got, char *why, size_t why_n)
{
    qn_str line, found;
    want = qn_str_trim(want);
    got = qn_str_trim(got);
    while (want.n > 0) {
        const bool event =
            qn_str_has_prefix(want, QN_STR("data: ")) && starts_json(qn_str_slice(want, 6, want.n));
        if (event || starts_json(want)) {
            if (event && !qn_str_has_prefix(got, QN_STR("data: ")))
                return differ(why, why_n, "an event", want, got);
            if (event) want = qn_str_slice(want, 6, want.n), got = qn_str_slice(got, 6, got.n);
            qn_json *a = take_json(&want), *b = take_json(&got);
            const bool same = (a && b) ? json_matches(a, b, "the value", why, why_n)
                                       : differ(why, why_n, "json", want, got);
            qn_json_free(a);
            qn_json_free(b);
            if (!same) return false;
            continue;
        }
        (void)take_line(&line, &want);
        if (qn_str_eq_z(qn_str_trim(line), ANY)) {
            while (!transcript_matches(want, got, why, why_n))
                if (!take_line(&found, &got)) return false;
            return true;
        }
        if (!take_line(&found, &got)) found = (qn_str){0};
        if (!text_matches(qn_str_trim(line), qn_str_trim(found)))
            return differ(why, why_n, "a line", line, found);
    }
    return got.n == 0 || differ(why, why_n, "the end", QN_STR("nothing more"), got);
}
