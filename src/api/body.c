/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - a request body: parsed under ceilings, then every field held against the table.
 *
 * What a field's row says about type and range is checked here once, so that the readers of single
 * fields (params.c, messages.c, openai_read.c) only fetch values.
 *
 * Thread: one reader, one thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api_int.h"
#include "api/fields.h"
#include "base/alloc.h"

const qn_api_limits qn_api_default_limits = {
    .body_bytes = 32u << 20,
    .depth = 64,
    .messages = 16384,
    .prompts = 128,
    .prompt_tokens = 4u << 20,
};

bool qn_json_is_shallow(const char *text, size_t n, size_t depth)
{
    size_t deep = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++deep > depth) return false;
        } else if ((c == ']' || c == '}') && deep) {
            deep--;
        }
    }
    return true;
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct {
    const char *name;     /* in messages */
    qn_json_type json[2]; /* what counts as it */
} types[] = {
    [QN_API_BOOL] = {"bool", {QN_JSON_BOOL, QN_JSON_BOOL}},
    [QN_API_INT] = {"int", {QN_JSON_INT, QN_JSON_INT}},
    [QN_API_NUMBER] = {"float", {QN_JSON_INT, QN_JSON_REAL}},
    [QN_API_STRING] = {"string", {QN_JSON_STRING, QN_JSON_STRING}},
    [QN_API_ARRAY] = {"array", {QN_JSON_ARRAY, QN_JSON_ARRAY}},
    [QN_API_OBJECT] = {"object", {QN_JSON_OBJECT, QN_JSON_OBJECT}},
};

static qn_code check_value(qn_reader *r, const qn_api_field *f, const qn_json *value)
{
    const qn_json_type type = qn_json_type_of(value);
    if (f->type == QN_API_ANY) return QN_OK;
    if (strcmp(f->name, "logit_bias") == 0 && type != QN_JSON_OBJECT)
        return qn_api_fail(r->error, QN_API_BAD_TYPE, f->name,
                           "logit_bias must be a dict of int to float");
    if (strcmp(f->name, "messages") == 0 && type != QN_JSON_ARRAY)
        return qn_api_fail(r->error, QN_API_BAD_TYPE, f->name, "messages required");
    if (type != types[f->type].json[0] && type != types[f->type].json[1])
        return qn_api_fail(r->error, QN_API_BAD_TYPE, f->name, "%s must be of type %s", f->name,
                           types[f->type].name);
    if (f->type != QN_API_INT && f->type != QN_API_NUMBER) return QN_OK;
    const double v = qn_json_num(value, 0);
    if (v < f->lo && f->lo == -1 && f->type == QN_API_INT) /* -1 stands for unset, 0 is the least */
        return qn_api_fail(r->error, QN_API_BAD_VALUE, f->name, "%s must be at least 0", f->name);
    if (v < f->lo)
        return qn_api_fail(r->error, QN_API_BAD_VALUE, f->name, "%s must be at least %.15g",
                           f->name, f->lo);
    if (v > f->hi)
        return qn_api_fail(r->error, QN_API_BAD_VALUE, f->name, "%s must be at most %.15g", f->name,
                           f->hi);
    return QN_OK;
}

/* Whether the value is one of those that the row lets pass without a word. */
static qn_code passes(qn_reader *r, bool *out, const qn_api_field *f, const qn_json *value)
{
    qn_str rest = qn_str_z(f->pass), piece;
    char *text = NULL;
    size_t n = 0;
    *out = false;
    if (!f->pass[0]) return QN_OK;
    if (qn_json_dump(&text, &n, value, NULL) != QN_OK) return qn_reader_nomem(r);
    while (qn_str_split(&piece, &rest, ' ')) *out = *out || qn_str_eq(piece, qn_str_make(text, n));
    qn_free(text);
    return QN_OK;
}

static bool puts_tools_aside(const qn_reader *r)
{
    size_t n = 0;
    const char *text = qn_json_str(qn_json_get(r->body, "tool_choice"), &n);
    return text && qn_str_eq_z(qn_str_make(text, n), "none");
}

static qn_code check_field(qn_reader *r, qn_api_endpoint endpoint, const char *key,
                           const qn_json *value)
{
    const qn_api_field *f = qn_api_field_find(key, endpoint);
    bool pass = false;
    if (qn_json_type_of(value) == QN_JSON_NULL) return QN_OK;
    if (!f)
        return qn_api_warn(r->warnings, r->arena, r->error, "'%.64s' is not a known field: ignored",
                           key);
    if (f->treatment == QN_API_HONOURED) return check_value(r, f, value);
    QN_TRY(passes(r, &pass, f, value));
    if (pass) return QN_OK;
    if (f->treatment == QN_API_LISTED)
        return qn_api_warn(r->warnings, r->arena, r->error, "'%s' was ignored: %s", f->name,
                           f->note);
    if (strcmp(f->name, "tools") == 0 && puts_tools_aside(r)) return QN_OK;
    return qn_api_fail(r->error, QN_API_UNSUPPORTED, f->name, "%s is not supported: %s", f->name,
                       strcmp(f->note, "not supported") == 0 ? "leave it out" : f->note);
}

/* -- the body ---------------------------------------------------------------------------------- */

static qn_code bad_json(qn_reader *r, const qn_err *err)
{
    const qn_code rc = qn_api_fail(r->error, QN_API_BAD_JSON, NULL, "invalid JSON body");
    if (r->error) snprintf(r->error->detail, sizeof r->error->detail, "%.150s", err->msg);
    return rc;
}

qn_code qn_reader_init(qn_reader *r, qn_str body, qn_api_endpoint endpoint)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    qn_err err = {.code = QN_OK};
    if (body.n > r->limits->body_bytes)
        return qn_api_fail(r->error, QN_API_TOO_LARGE, NULL, "%zu bytes of body, at most %zu",
                           body.n, r->limits->body_bytes);
    if (!qn_json_is_shallow(body.p, body.n, r->limits->depth)) {
        (void)qn_fail(&err, QN_E_LIMIT, "json: nested deeper than %zu levels", r->limits->depth);
        return bad_json(r, &err);
    }
    const qn_code rc = qn_json_parse(&r->body, body.p, body.n, r->limits->body_bytes, &err);
    if (rc == QN_E_NOMEM) return qn_reader_nomem(r);
    if (rc != QN_OK) return bad_json(r, &err);
    if (qn_json_type_of(r->body) != QN_JSON_OBJECT) {
        (void)qn_fail(&err, QN_E_FORMAT, "json: the outermost value is no object");
        return bad_json(r, &err);
    }
    while (qn_json_next(r->body, &it, &key, &value)) QN_TRY(check_field(r, endpoint, key, value));
    return QN_OK;
}

void qn_reader_fini(qn_reader *r)
{
    qn_json_free(r->body);
    r->body = NULL;
}

qn_code qn_reader_nomem(qn_reader *r)
{
    return qn_api_fail(r->error, QN_API_NOMEM, NULL, "not enough memory for this request");
}

const qn_json *qn_reader_get(const qn_reader *r, const char *name)
{
    const qn_json *v = qn_json_get(r->body, name);
    return qn_json_type_of(v) == QN_JSON_NULL ? NULL : v;
}

qn_code qn_reader_copy(qn_reader *r, qn_str *out, const char *text, size_t n)
{
    const char *copy = qn_arena_push_bytes(r->arena, text, n);
    *out = qn_str_make(copy, copy ? n : 0);
    return copy ? QN_OK : qn_reader_nomem(r);
}

qn_code qn_reader_str(qn_reader *r, qn_str *out, const char *name)
{
    size_t n = 0;
    const char *text = qn_json_str(qn_reader_get(r, name), &n);
    return qn_reader_copy(r, out, text ? text : "", n);
}

bool qn_reader_bool(const qn_reader *r, const char *name, bool fallback)
{
    return qn_json_bool(qn_json_get(r->body, name), fallback);
}

qn_code qn_reader_tokens(qn_reader *r, const uint32_t **out, size_t *n, const qn_json *array,
                         const char *name, size_t most)
{
    const size_t len = qn_json_len(array);
    *out = NULL;
    *n = 0;
    if (len > most)
        return qn_api_fail(r->error, QN_API_TOO_MANY, name, "%s: %zu token ids, at most %zu", name,
                           len, most);
    uint32_t *ids = QN_ARENA_NEW(r->arena, uint32_t, len ? len : 1);
    if (!ids) return qn_reader_nomem(r);
    for (size_t i = 0; i < len; i++) {
        const qn_json *v = qn_json_at(array, i);
        const int64_t id = qn_json_int(v, -1);
        if (qn_json_type_of(v) != QN_JSON_INT)
            return qn_api_fail(r->error, QN_API_BAD_TYPE, name, "%s[%zu] must be of type int", name,
                               i);
        if (id < 0 || id > UINT32_MAX)
            return qn_api_fail(r->error, QN_API_BAD_VALUE, name, "%s[%zu]: %lld is no token id",
                               name, i, (long long)id);
        ids[i] = (uint32_t)id;
    }
    *out = ids;
    *n = len;
    return QN_OK;
}
