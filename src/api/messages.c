/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - a conversation as templates want it: one JSON text, written while it is checked.
 *
 * developer becomes system; parts that are all text become one string, since templates that only know
 * strings would show an empty turn; arguments of replayed tool calls become objects, since as strings
 * their quotes would be escaped twice; reasoning has one name. Members that we do not know go to the
 * template as they are.
 *
 * Thread: one reader, one thread.
 */
#include <stdio.h>
#include <string.h>

#include "api/api_int.h"

typedef struct writer {
    qn_reader *r;
    qn_out out;
    size_t index; /* of the message */
    bool is_assistant;
} writer;

/* "messages[INDEX]MEMBER" in a buffer of the caller's. */
typedef struct place {
    char text[96];
} place;

static place place_of(const writer *w, const char *member)
{
    place p;
    snprintf(p.text, sizeof p.text, "messages[%zu]%s%.60s", w->index, member[0] ? "." : "", member);
    return p;
}

static qn_code fail(const writer *w, qn_api_kind kind, const char *member, const char *why)
{
    const place p = place_of(w, member);
    return qn_api_fail(w->r->error, kind, p.text, "%s %s", p.text, why);
}

static qn_str text_of(const qn_json *v)
{
    size_t n = 0;
    const char *p = qn_json_str(v, &n);
    return qn_str_make(p, n);
}

/* -- content ----------------------------------------------------------------------------------- */

static qn_code refuse_part(const writer *w, size_t part, qn_str type)
{
    char member[64];
    const char *const image[] = {"image_url", "image", "input_image"};
    snprintf(member, sizeof member, "content[%zu]", part);
    const place p = place_of(w, member);
    for (size_t i = 0; i < QN_LEN(image); i++)
        if (qn_str_eq_z(type, image[i]))
            return qn_api_fail(w->r->error, QN_API_UNSUPPORTED, p.text,
                               "model has no vision sidecar");
    return qn_api_fail(w->r->error, QN_API_UNSUPPORTED, p.text,
                       "%s: parts of type '%.40s' are not supported, only 'text'", p.text,
                       type.p ? type.p : "");
}

static qn_code put_part(writer *w, size_t i, const qn_json *part)
{
    char member[64];
    const qn_str type = text_of(qn_json_get(part, "type"));
    const bool refusal = qn_str_eq_z(type, "refusal");
    snprintf(member, sizeof member, "content[%zu]", i);
    if (qn_json_type_of(part) != QN_JSON_OBJECT || !type.p)
        return fail(w, QN_API_BAD_TYPE, member, "must be an object with a type");
    if (!refusal && !qn_str_eq_z(type, "text") && !qn_str_eq_z(type, "input_text") &&
        !qn_str_eq_z(type, "output_text"))
        return refuse_part(w, i, type);
    const qn_str text = text_of(qn_json_get(part, refusal ? "refusal" : "text"));
    if (!text.p) return fail(w, QN_API_BAD_TYPE, member, "must have a text of type string");
    qn_out_escaped(&w->out, text);
    return QN_OK;
}

static qn_code put_content(writer *w, const qn_json *message)
{
    const qn_json *content = qn_json_get(message, "content");
    QN_OUT(&w->out, ",\"content\":\"");
    switch (qn_json_type_of(content)) {
    case QN_JSON_STRING:
        qn_out_escaped(&w->out, text_of(content));
        break;
    case QN_JSON_ARRAY:
        for (size_t i = 0; i < qn_json_len(content); i++)
            QN_TRY(put_part(w, i, qn_json_at(content, i)));
        break;
    case QN_JSON_NULL: /* "" and not null: templates would print "None" */
        if (!w->is_assistant) return fail(w, QN_API_MISSING, "content", "is required");
        break;
    default:
        return fail(w, QN_API_BAD_TYPE, "content", "must be of type string or array");
    }
    QN_OUT(&w->out, "\"");
    return QN_OK;
}

/* -- tool calls, reasoning --------------------------------------------------------------------- */

static qn_code put_arguments(writer *w, size_t call, const qn_json *arguments)
{
    char member[64];
    const qn_str text = text_of(arguments);
    qn_json *parsed = NULL;
    qn_err err = {.code = QN_OK};
    snprintf(member, sizeof member, "tool_calls[%zu].function.arguments", call);
    QN_OUT(&w->out, ",\"arguments\":");
    if (qn_json_type_of(arguments) == QN_JSON_OBJECT) {
        qn_out_json(&w->out, arguments);
        return QN_OK;
    }
    if (qn_json_type_of(arguments) == QN_JSON_NULL || (text.p && !qn_str_trim(text).n)) {
        QN_OUT(&w->out, "{}"); /* a call without arguments, as some clients write it */
        return QN_OK;
    }
    if (!text.p) return fail(w, QN_API_BAD_TYPE, member, "must be of type string");
    if (!qn_json_is_shallow(text.p, text.n, w->r->limits->depth))
        return fail(w, QN_API_BAD_VALUE, member, "is nested too deep");
    const qn_code rc = qn_json_parse(&parsed, text.p, text.n, w->r->limits->body_bytes, &err);
    if (rc == QN_E_NOMEM) return qn_reader_nomem(w->r);
    const bool is_object = rc == QN_OK && qn_json_type_of(parsed) == QN_JSON_OBJECT;
    if (is_object) qn_out_json(&w->out, parsed);
    qn_json_free(parsed);
    if (is_object) return QN_OK;
    const qn_code failed = fail(w, QN_API_BAD_VALUE, member, "must hold a JSON object");
    if (w->r->error) snprintf(w->r->error->detail, sizeof w->r->error->detail, "%.150s", err.msg);
    return failed;
}

static qn_code put_call(writer *w, size_t i, const qn_json *call)
{
    char member[64];
    const qn_json *function = qn_json_get(call, "function");
    const qn_json *type = qn_json_get(call, "type"), *id = qn_json_get(call, "id");
    const qn_str name = text_of(qn_json_get(function, "name"));
    snprintf(member, sizeof member, "tool_calls[%zu]", i);
    if (!name.p) return fail(w, QN_API_MISSING, member, "must have a function with a name");
    if (type && !qn_str_eq_z(text_of(type), "function"))
        return fail(w, QN_API_UNSUPPORTED, member, "must be of type 'function'");
    if (qn_json_type_of(id) != QN_JSON_NULL && qn_json_type_of(id) != QN_JSON_STRING)
        return fail(w, QN_API_BAD_TYPE, member, "must have an id of type string");
    if (i) QN_OUT(&w->out, ",");
    QN_OUT(&w->out, "{");
    if (qn_json_type_of(id) == QN_JSON_STRING) {
        QN_OUT(&w->out, "\"id\":");
        qn_out_str(&w->out, text_of(id));
        QN_OUT(&w->out, ",");
    }
    QN_OUT(&w->out, "\"type\":\"function\",\"function\":{\"name\":");
    qn_out_str(&w->out, name);
    QN_TRY(put_arguments(w, i, qn_json_get(function, "arguments")));
    QN_OUT(&w->out, "}}");
    return QN_OK;
}

static qn_code put_calls(writer *w, const qn_json *calls)
{
    if (qn_json_type_of(calls) == QN_JSON_NULL) return QN_OK;
    if (qn_json_type_of(calls) != QN_JSON_ARRAY)
        return fail(w, QN_API_BAD_TYPE, "tool_calls", "must be of type array");
    if (!qn_json_len(calls)) return QN_OK;
    if (!w->is_assistant)
        return fail(w, QN_API_BAD_VALUE, "tool_calls", "belong to an assistant's message");
    QN_OUT(&w->out, ",\"tool_calls\":[");
    for (size_t i = 0; i < qn_json_len(calls); i++) QN_TRY(put_call(w, i, qn_json_at(calls, i)));
    QN_OUT(&w->out, "]");
    return QN_OK;
}

/* reasoning_content goes first if it is a string, an empty one too; templates read that name. */
static qn_code put_reasoning(writer *w, const qn_json *message)
{
    const char *const names[] = {"reasoning_content", "reasoning"};
    bool done = false;
    for (size_t i = 0; i < QN_LEN(names); i++) {
        const qn_json *v = qn_json_get(message, names[i]);
        if (qn_json_type_of(v) == QN_JSON_NULL) continue;
        if (qn_json_type_of(v) != QN_JSON_STRING)
            return fail(w, QN_API_BAD_TYPE, names[i], "must be of type string");
        if (done) continue;
        QN_OUT(&w->out, ",\"reasoning_content\":");
        qn_out_str(&w->out, text_of(v));
        done = true;
    }
    return QN_OK;
}

static qn_code put_others(writer *w, const qn_json *message)
{
    static const char *const done[] = {"role",      "content",           "tool_calls",
                                       "reasoning", "reasoning_content", NULL};
    static const char *const refused[] = {"function_call", "audio", NULL};
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    while (qn_json_next(message, &it, &key, &value)) {
        bool skip = qn_json_type_of(value) == QN_JSON_NULL;
        for (size_t i = 0; done[i]; i++) skip = skip || strcmp(key, done[i]) == 0;
        if (skip) continue;
        for (size_t i = 0; refused[i]; i++)
            if (strcmp(key, refused[i]) == 0)
                return fail(w, QN_API_UNSUPPORTED, key, "is not supported");
        if ((strcmp(key, "name") == 0 || strcmp(key, "tool_call_id") == 0) &&
            qn_json_type_of(value) != QN_JSON_STRING)
            return fail(w, QN_API_BAD_TYPE, key, "must be of type string");
        QN_OUT(&w->out, ",");
        qn_out_str_z(&w->out, key);
        QN_OUT(&w->out, ":");
        qn_out_json(&w->out, value);
    }
    return QN_OK;
}

/* -- one message, all of them ------------------------------------------------------------------ */

static qn_code put_message(writer *w, const qn_json *message)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool", "developer"};
    const qn_str role = text_of(qn_json_get(message, "role"));
    size_t i = 0;
    if (qn_json_type_of(message) != QN_JSON_OBJECT)
        return fail(w, QN_API_BAD_TYPE, "", "must be of type object");
    if (!role.p) return fail(w, QN_API_MISSING, "role", "is required");
    while (i < QN_LEN(roles) && !qn_str_eq_z(role, roles[i])) i++;
    if (i == QN_LEN(roles))
        return fail(w, QN_API_BAD_VALUE, "role",
                    "must be one of 'system', 'developer', 'user', 'assistant', 'tool'");
    w->is_assistant = i == 2;
    QN_OUT(&w->out, "{\"role\":");
    qn_out_str_z(&w->out, roles[i == 4 ? 0 : i]);
    QN_TRY(put_content(w, message));
    QN_TRY(put_reasoning(w, message));
    QN_TRY(put_calls(w, qn_json_get(message, "tool_calls")));
    QN_TRY(put_others(w, message));
    QN_OUT(&w->out, "}");
    return QN_OK;
}

static qn_code put_messages(writer *w, const qn_json *messages)
{
    QN_OUT(&w->out, "[");
    for (w->index = 0; w->index < qn_json_len(messages); w->index++) {
        if (w->index) QN_OUT(&w->out, ",");
        QN_TRY(put_message(w, qn_json_at(messages, w->index)));
    }
    QN_OUT(&w->out, "]");
    return w->out.rc == QN_OK ? QN_OK : qn_reader_nomem(w->r);
}

static qn_code read_messages(qn_reader *r, qn_api_prompt *out)
{
    const qn_json *messages = qn_reader_get(r, "messages");
    const size_t n = qn_json_len(messages);
    qn_buf text;
    if (!n) return qn_api_fail(r->error, QN_API_MISSING, "messages", "messages required");
    if (n > r->limits->messages)
        return qn_api_fail(r->error, QN_API_TOO_MANY, "messages", "messages: %zu, at most %zu", n,
                           r->limits->messages);
    /* Longer than the body where a number or a character takes more digits: 8 times at most. */
    qn_buf_init(&text, r->limits->body_bytes * 8);
    writer w = {.r = r, .out = qn_out_begin(&text, NULL)};
    qn_code rc = put_messages(&w, messages);
    if (rc == QN_OK) rc = qn_reader_copy(r, &out->messages, qn_buf_text(&text), text.len);
    if (rc == QN_OK) out->n_messages = n;
    qn_buf_fini(&text);
    if (rc == QN_OK && out->continue_final && !w.is_assistant)
        rc = qn_api_fail(r->error, QN_API_BAD_VALUE, "continue_final_message",
                         "continue_final_message: the last message is not an assistant's");
    return rc;
}

/* -- variables --------------------------------------------------------------------------------- */

static qn_code read_effort(qn_reader *r, qn_api_prompt *out)
{
    static const char *const names[] = {
        [QN_API_EFFORT_NONE] = "none", [QN_API_EFFORT_MINIMAL] = "minimal",
        [QN_API_EFFORT_LOW] = "low",   [QN_API_EFFORT_MEDIUM] = "medium",
        [QN_API_EFFORT_HIGH] = "high", [QN_API_EFFORT_XHIGH] = "xhigh",
    };
    const qn_json *v = qn_reader_get(r, "reasoning_effort");
    if (!v) return QN_OK;
    for (size_t i = QN_API_EFFORT_NONE; i < QN_LEN(names); i++)
        if (qn_str_eq_z(text_of(v), names[i])) out->effort = (qn_api_effort)i;
    if (out->effort == QN_API_EFFORT_UNSAID)
        return qn_api_fail(r->error, QN_API_BAD_VALUE, "reasoning_effort",
                           "reasoning_effort must be one of 'none', 'minimal', 'low', 'medium', "
                           "'high', 'xhigh'");
    return QN_OK;
}

static qn_code read_thinking(qn_reader *r, qn_api_prompt *out, const qn_json *value)
{
    const qn_json_type type = qn_json_type_of(value);
    if (type == QN_JSON_NULL)
        out->thinking = QN_API_LEAVE;
    else if (type == QN_JSON_BOOL)
        out->thinking = qn_json_bool(value, false) ? QN_API_ON : QN_API_OFF;
    else
        return qn_api_fail(r->error, QN_API_BAD_TYPE, "chat_template_kwargs.enable_thinking",
                           "chat_template_kwargs.enable_thinking must be of type bool");
    return QN_OK;
}

static qn_code put_variables(qn_reader *r, qn_out *o, qn_api_prompt *out, const char **names)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    QN_OUT(o, "{");
    while (qn_json_next(qn_reader_get(r, "chat_template_kwargs"), &it, &key, &value)) {
        qn_str name;
        if (strcmp(key, "enable_thinking") == 0) {
            QN_TRY(read_thinking(r, out, value));
            continue;
        }
        if (strcmp(key, "messages") == 0) /* it would hide those that were read and checked */
            return qn_api_fail(r->error, QN_API_BAD_VALUE, "chat_template_kwargs.messages",
                               "chat_template_kwargs.messages: the conversation is the request's "
                               "own messages");
        if (out->n_names) QN_OUT(o, ",");
        qn_out_str_z(o, key);
        QN_OUT(o, ":");
        qn_out_json(o, value);
        QN_TRY(qn_reader_copy(r, &name, key, strlen(key)));
        names[out->n_names++] = name.p;
    }
    QN_OUT(o, "}");
    return o->rc == QN_OK ? QN_OK : qn_reader_nomem(r);
}

static qn_code read_variables(qn_reader *r, qn_api_prompt *out)
{
    const size_t n = qn_json_len(qn_reader_get(r, "chat_template_kwargs"));
    const char **names = QN_ARENA_NEW(r->arena, const char *, n + 1);
    qn_buf text;
    if (!names) return qn_reader_nomem(r);
    qn_buf_init(&text, r->limits->body_bytes * 8);
    qn_out o = qn_out_begin(&text, NULL);
    qn_code rc = put_variables(r, &o, out, names);
    if (rc == QN_OK) rc = qn_reader_copy(r, &out->variables, qn_buf_text(&text), text.len);
    qn_buf_fini(&text);
    out->names = names;
    return rc;
}

qn_code qn_reader_prompt(qn_reader *r, qn_api_prompt *out)
{
    out->continue_final = qn_reader_bool(r, "continue_final_message", false);
    out->add_generation_prompt = qn_reader_bool(r, "add_generation_prompt", !out->continue_final);
    if (out->continue_final && out->add_generation_prompt)
        return qn_api_fail(r->error, QN_API_BAD_VALUE, "continue_final_message",
                           "continue_final_message and add_generation_prompt exclude each other");
    QN_TRY(read_messages(r, out));
    QN_TRY(read_effort(r, out));
    return read_variables(r, out);
}
