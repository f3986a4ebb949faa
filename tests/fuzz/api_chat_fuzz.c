/* SPDX-License-Identifier: Apache-2.0 */
/* api_chat_fuzz.c - any bytes as the body of every endpoint. What is refused has a status, a message and
 * a body that is JSON; what is taken gives messages and variables that are JSON, answers that are JSON
 * whatever the texts hold, and leaves no memory. */
#include <stdlib.h>
#include <string.h>

#include "api/openai.h"
#include "base/alloc.h"
#include "dep/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

static void want_json(qn_str text, qn_json_type type, size_t len)
{
    qn_json *v = NULL;
    want(qn_json_parse(&v, text.p, text.n, SIZE_MAX, NULL) == QN_OK);
    want(qn_json_type_of(v) == type && (len == SIZE_MAX || qn_json_len(v) == len));
    qn_json_free(v);
}

static void want_buf(qn_buf *out)
{
    want_json(qn_str_make(qn_buf_text(out), out->len), QN_JSON_OBJECT, SIZE_MAX);
    qn_buf_truncate(out, 0);
}

/* One event of a stream: JSON behind "data: ", on one line, an empty line behind it. */
static void want_frame(qn_buf *out)
{
    want(out->len > 8 && memcmp(out->data, "data: ", 6) == 0);
    want(memchr(out->data, '\n', out->len) == out->data + out->len - 2);
    want_json(qn_str_make((const char *)out->data + 6, out->len - 8), QN_JSON_OBJECT, SIZE_MAX);
    qn_buf_truncate(out, 0);
}

static bool reads_some(const void *ctx, const char *name)
{
    return ctx && strcmp(name, "reasoning_effort") == 0;
}

/* The refusal as the client sees it, whole and in a stream. */
static void check_refusal(qn_code rc, const qn_api_error *error, qn_buf *out)
{
    want(rc == QN_E_INVAL || rc == QN_E_LIMIT || rc == QN_E_UNSUPPORTED);
    want(error->status == 400 || error->status == 413);
    want(error->message[0] && error->type);
    want(qn_openai_write_error(out, error, NULL) == QN_OK);
    want_buf(out);
}

static void check_prompt(const qn_api_prompt *p, qn_arena *arena)
{
    qn_api_warnings w = {.n = 0};
    qn_api_error error;
    qn_str text;
    want_json(p->messages, QN_JSON_ARRAY, p->n_messages);
    want_json(p->variables, QN_JSON_OBJECT, p->n_names);
    for (int some = 0; some < 2; some++) {
        want(qn_api_variables(&text, p, QN_API_ON, reads_some, some ? "" : NULL, &w, arena,
                              &error) == QN_OK);
        want_json(text, QN_JSON_OBJECT, SIZE_MAX);
    }
}

static void check_params(const qn_api_params *p)
{
    qn_request_sampling s;
    want(p->n >= 1 && p->n <= 128 && p->logprobs >= -1 && p->logprobs <= 20);
    want(!(p->sampling.set & QN_SET_MAX_TOKENS) || p->min_tokens <= p->max_tokens);
    want(p->sampling.temperature >= 0 && p->sampling.top_p >= 0 && p->sampling.top_p <= 1);
    for (size_t i = 0; i < p->n_stops; i++) want(p->stops[i][0] != '\0');
    qn_api_resolve(&s, &p->sampling, NULL, NULL, QN_API_OFF);
    want(s.temperature >= 0 && s.top_p <= 1);
}

/* The raw input as the text of an answer: it need not be UTF-8. */
static void check_answers(qn_api_endpoint endpoint, const qn_api_params *p, qn_str raw, qn_buf *out,
                          qn_arena *arena)
{
    const qn_openai_top top = {raw, -1};
    const qn_openai_token token = {raw, -0.5f, false, &top, 1};
    const qn_openai_logprobs l = {&token, 1, 0};
    const qn_openai_choice choice = {0, raw, QUERN_FINISH_STOP, 1, &l};
    const qn_openai_usage usage = {1, 0, 1};
    const qn_openai_reply reply = {endpoint, raw, 1, p->model, raw, &p->warnings};
    qn_openai_stream s;
    want(qn_openai_write_completion(out, &reply, &choice, 1, &usage, NULL) == QN_OK);
    want_buf(out);
    if (qn_openai_stream_init(&s, &reply, p->include_usage, arena, NULL) != QN_OK) return;
    want(qn_openai_stream_role(&s, out, 0, NULL) == QN_OK);
    want_frame(out);
    want(qn_openai_stream_text(&s, out, 0, raw, &l, NULL) == QN_OK);
    want_frame(out);
    want(qn_openai_stream_finish(&s, out, 0, QUERN_FINISH_LENGTH, raw.n, NULL) == QN_OK);
    want_frame(out);
    want(qn_openai_stream_usage(&s, out, &usage, NULL) == QN_OK);
    if (p->include_usage)
        want_frame(out);
    else
        want(out->len == 0);
}

/* Names and messages that hold anything. */
static void check_info(qn_str raw, qn_buf *out)
{
    const qn_openai_model model = {.id = raw, .owned_by = raw, .set = QN_SET_ALL, .top_k = 1};
    const qn_openai_piece piece = {raw};
    const uint32_t id = 1;
    qn_api_error error;
    qn_err err = {.code = (qn_code)(raw.n % QN_CODE_COUNT)};
    memcpy(err.msg, raw.p, raw.n < sizeof err.msg - 1 ? raw.n : sizeof err.msg - 1);
    want(qn_openai_write_models(out, &model, 1, NULL) == QN_OK);
    want_buf(out);
    want(qn_openai_write_tokens(out, &id, 1, &piece, NULL, NULL) == QN_OK);
    want_buf(out);
    want(qn_openai_write_content(out, raw, NULL, NULL) == QN_OK);
    want_buf(out);
    want(qn_api_fail_lib(&error, &err) != QN_OK);
    want(qn_openai_stream_error(out, &error, NULL) == QN_OK);
    want_frame(out);
    want(qn_api_fail_context(&error, raw.n, 1) == QN_E_LIMIT);
    want(qn_openai_write_error(out, &error, NULL) == QN_OK);
    want_buf(out);
}

static void try_chat(qn_str body, qn_arena *arena, qn_buf *out)
{
    qn_api_chat chat;
    qn_api_error error;
    const qn_code rc = qn_openai_read_chat(&chat, body, NULL, arena, &error);
    if (rc != QN_OK) {
        check_refusal(rc, &error, out);
        return;
    }
    check_prompt(&chat.prompt, arena);
    check_params(&chat.params);
    check_answers(QN_API_CHAT, &chat.params, body, out, arena);
}

static void try_text(qn_str body, qn_arena *arena, qn_buf *out)
{
    qn_api_text text;
    qn_api_error error;
    const qn_code rc = qn_openai_read_text(&text, body, NULL, arena, &error);
    if (rc != QN_OK) {
        check_refusal(rc, &error, out);
        return;
    }
    check_params(&text.params);
    want(text.n_prompts >= 1 && text.n_prompts * text.params.n <= QN_API_MAX_CHOICES);
    for (size_t i = 0; i < text.n_prompts; i++)
        want((text.prompts[i].n_tokens == 0) == (text.prompts[i].text.n != 0));
    check_answers(QN_API_TEXT, &text.params, body, out, arena);
}

static void try_tokens(qn_str body, qn_arena *arena, qn_buf *out)
{
    qn_api_tokenize tokenize;
    qn_api_detokenize detokenize;
    qn_api_error error;
    qn_code rc = qn_openai_read_tokenize(&tokenize, body, NULL, arena, &error);
    if (rc != QN_OK)
        check_refusal(rc, &error, out);
    else if (tokenize.is_chat)
        check_prompt(&tokenize.prompt, arena);
    rc = qn_openai_read_detokenize(&detokenize, body, NULL, arena, &error);
    if (rc != QN_OK) {
        check_refusal(rc, &error, out);
        return;
    }
    want(qn_openai_write_tokens(out, detokenize.tokens, detokenize.n_tokens, NULL,
                                &detokenize.warnings, NULL) == QN_OK);
    want_buf(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    void (*const tries[])(qn_str, qn_arena *, qn_buf *) = {try_chat, try_text, try_tokens};
    const size_t live = qn_alloc_live();
    qn_buf out;
    qn_buf_init(&out, 64u << 20);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        qn_arena arena; /* what api.h promises to suffice; twice, since variables are made twice */
        qn_arena_init(&arena, 16 * n + (2u << 20));
        tries[i](qn_str_make((const char *)data, n), &arena, &out);
        qn_arena_fini(&arena);
    }
    if (n) check_info(qn_str_make((const char *)data, n), &out);
    qn_buf_fini(&out);
    want(qn_alloc_live() == live);
    return 0;
}
