/* SPDX-License-Identifier: Apache-2.0 */
/* openai_read.c - bodies of OpenAI's endpoints, and of /tokenize and /detokenize, as structs.
 *
 * Thread: any, on separate arenas.
 */
#include <string.h>

#include "api/api_int.h"

static qn_reader reader(const qn_api_limits *limits, qn_arena *arena, qn_api_error *error,
                        qn_api_warnings *warnings)
{
    if (error) *error = (qn_api_error){.status = 0};
    return (qn_reader){.limits = limits ? limits : &qn_api_default_limits,
                       .arena = arena,
                       .error = error,
                       .warnings = warnings};
}

qn_code qn_openai_read_chat(qn_api_chat *out, qn_str body, const qn_api_limits *limits,
                            qn_arena *arena, qn_api_error *error)
{
    qn_code rc = QN_OK;
    *out = (qn_api_chat){.prompt.n_messages = 0};
    qn_reader r = reader(limits, arena, error, &out->params.warnings);
    QN_TRY_OUT(qn_reader_init(&r, body, QN_API_CHAT));
    QN_TRY_OUT(qn_reader_prompt(&r, &out->prompt));
    QN_TRY_OUT(qn_reader_params(&r, &out->params, QN_API_CHAT));
out:
    qn_reader_fini(&r);
    if (rc != QN_OK) *out = (qn_api_chat){.prompt.n_messages = 0};
    return rc;
}

/* -- text -------------------------------------------------------------------------------------- */

static qn_code bad_prompt(qn_reader *r, qn_api_kind kind, const char *why)
{
    return qn_api_fail(r->error, kind, "prompt", "prompt %s", why);
}

static qn_code read_prompt(qn_reader *r, qn_api_text_prompt *out, const qn_json *v, size_t *left)
{
    size_t n = 0;
    const char *text = qn_json_str(v, &n);
    if (text) {
        if (!n) return bad_prompt(r, QN_API_BAD_VALUE, "must not be empty");
        return qn_reader_copy(r, &out->text, text, n);
    }
    if (qn_json_type_of(v) != QN_JSON_ARRAY || qn_json_type_of(qn_json_at(v, 0)) != QN_JSON_INT)
        return bad_prompt(r, QN_API_BAD_TYPE,
                          "must be text, an array of texts, token ids or arrays of token ids");
    QN_TRY(qn_reader_tokens(r, &out->tokens, &out->n_tokens, v, "prompt", *left));
    *left -= out->n_tokens;
    return QN_OK;
}

static qn_code read_prompts(qn_reader *r, qn_api_text *out)
{
    const qn_json *prompt = qn_reader_get(r, "prompt");
    const qn_json_type first = qn_json_type_of(qn_json_at(prompt, 0));
    const bool many = first == QN_JSON_STRING || first == QN_JSON_ARRAY;
    const size_t n = many ? qn_json_len(prompt) : 1;
    size_t left = r->limits->prompt_tokens;
    if (!prompt) return qn_api_fail(r->error, QN_API_MISSING, "prompt", "prompt required");
    if (qn_json_type_of(prompt) == QN_JSON_ARRAY && !qn_json_len(prompt))
        return bad_prompt(r, QN_API_BAD_VALUE, "must not be empty");
    if (n > r->limits->prompts)
        return qn_api_fail(r->error, QN_API_TOO_MANY, "prompt", "prompt: %zu prompts, at most %zu",
                           n, r->limits->prompts);
    if (n * out->params.n > QN_API_MAX_CHOICES)
        return qn_api_fail(r->error, QN_API_TOO_MANY, "n",
                           "n: %zu prompts of %u choices each are more than %d", n, out->params.n,
                           QN_API_MAX_CHOICES);
    qn_api_text_prompt *prompts = QN_ARENA_NEW(r->arena, qn_api_text_prompt, n);
    if (!prompts) return qn_reader_nomem(r);
    for (size_t i = 0; i < n; i++) {
        const qn_json *v = many ? qn_json_at(prompt, i) : prompt;
        if (many && qn_json_type_of(v) != first)
            return bad_prompt(r, QN_API_BAD_TYPE, "must not mix texts and token ids");
        QN_TRY(read_prompt(r, &prompts[i], v, &left));
    }
    out->prompts = prompts;
    out->n_prompts = n;
    return QN_OK;
}

qn_code qn_openai_read_text(qn_api_text *out, qn_str body, const qn_api_limits *limits,
                            qn_arena *arena, qn_api_error *error)
{
    qn_code rc = QN_OK;
    *out = (qn_api_text){.n_prompts = 0};
    qn_reader r = reader(limits, arena, error, &out->params.warnings);
    QN_TRY_OUT(qn_reader_init(&r, body, QN_API_TEXT));
    QN_TRY_OUT(qn_reader_params(&r, &out->params, QN_API_TEXT));
    QN_TRY_OUT(read_prompts(&r, out));
    out->echo = qn_reader_bool(&r, "echo", false);
out:
    qn_reader_fini(&r);
    if (rc != QN_OK) *out = (qn_api_text){.n_prompts = 0};
    return rc;
}

/* -- tokens ------------------------------------------------------------------------------------ */

static qn_code read_tokenize(qn_reader *r, qn_api_tokenize *out)
{
    const char *const of_text[] = {"add_special", "parse_special"};
    const char *const of_chat[] = {"chat_template_kwargs", "reasoning_effort",
                                   "add_generation_prompt", "continue_final_message"};
    const bool has_text = qn_reader_get(r, "content") != NULL;
    const char *const *idle = has_text ? of_chat : of_text;
    out->is_chat = qn_reader_get(r, "messages") != NULL;
    if (has_text == out->is_chat)
        return qn_api_fail(r->error, has_text ? QN_API_BAD_VALUE : QN_API_MISSING, "content",
                           has_text ? "content and messages exclude each other"
                                    : "content or messages required");
    for (size_t i = 0; i < (has_text ? QN_LEN(of_chat) : QN_LEN(of_text)); i++)
        if (qn_reader_get(r, idle[i]))
            QN_TRY(qn_api_warn(r->warnings, r->arena, r->error,
                               "'%s' was ignored: it belongs to %s", idle[i],
                               has_text ? "messages" : "content"));
    out->add_special = qn_reader_bool(r, "add_special", false);
    out->parse_special = qn_reader_bool(r, "parse_special", true);
    out->with_pieces = qn_reader_bool(r, "with_pieces", false);
    return out->is_chat ? qn_reader_prompt(r, &out->prompt)
                        : qn_reader_str(r, &out->text, "content");
}

qn_code qn_openai_read_tokenize(qn_api_tokenize *out, qn_str body, const qn_api_limits *limits,
                                qn_arena *arena, qn_api_error *error)
{
    qn_code rc = QN_OK;
    *out = (qn_api_tokenize){.is_chat = false};
    qn_reader r = reader(limits, arena, error, &out->warnings);
    QN_TRY_OUT(qn_reader_init(&r, body, QN_API_TOKENIZE));
    QN_TRY_OUT(qn_reader_str(&r, &out->model, "model"));
    QN_TRY_OUT(read_tokenize(&r, out));
out:
    qn_reader_fini(&r);
    if (rc != QN_OK) *out = (qn_api_tokenize){.is_chat = false};
    return rc;
}

qn_code qn_openai_read_detokenize(qn_api_detokenize *out, qn_str body, const qn_api_limits *limits,
                                  qn_arena *arena, qn_api_error *error)
{
    qn_code rc = QN_OK;
    *out = (qn_api_detokenize){.n_tokens = 0};
    qn_reader r = reader(limits, arena, error, &out->warnings);
    QN_TRY_OUT(qn_reader_init(&r, body, QN_API_DETOKENIZE));
    QN_TRY_OUT(qn_reader_str(&r, &out->model, "model"));
    if (!qn_reader_get(&r, "tokens")) {
        rc = qn_api_fail(error, QN_API_MISSING, "tokens", "tokens required");
        goto out;
    }
    QN_TRY_OUT(qn_reader_tokens(&r, &out->tokens, &out->n_tokens, qn_reader_get(&r, "tokens"),
                                "tokens", r.limits->prompt_tokens));
out:
    qn_reader_fini(&r);
    if (rc != QN_OK) *out = (qn_api_detokenize){.n_tokens = 0};
    return rc;
}
