/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.c - from what was said to what holds: sampling values and template variables.
 *
 * Thread: any; pure but for the arena.
 */
#include <string.h>

#include "api/api_int.h"

static const float built_in_temperature = 0.7f;

/* The first of three sources that has the bit, else the fourth. */
static const qn_request_sampling *pick(const qn_request_sampling *const from[4], uint32_t bit)
{
    for (size_t i = 0; i < 3; i++)
        if (from[i] && (from[i]->set & bit)) return from[i];
    return from[3];
}

void qn_api_resolve(qn_request_sampling *out, const qn_request_sampling *request,
                    const qn_request_sampling *flags, const qn_request_sampling *model,
                    qn_api_tristate thinking)
{
    const qn_request_sampling built_in = {
        .temperature = built_in_temperature,
        .repetition_context = 20,
        .presence_context = 20,
        .frequency_context = 20,
        .xtc_threshold = 0.1f,
    };
    const qn_request_sampling *const from[4] = {request, flags, model, &built_in};
    qn_request_sampling s = {.set = QN_SET_ALL & ~(uint32_t)QN_SET_MAX_TOKENS};
    s.temperature = pick(from, QN_SET_TEMPERATURE)->temperature;
    s.top_p = pick(from, QN_SET_TOP_P)->top_p;
    s.top_k = pick(from, QN_SET_TOP_K)->top_k;
    s.min_p = pick(from, QN_SET_MIN_P)->min_p;
    s.repetition_penalty = pick(from, QN_SET_REPETITION)->repetition_penalty;
    s.presence_penalty = pick(from, QN_SET_PRESENCE)->presence_penalty;
    s.frequency_penalty = pick(from, QN_SET_FREQUENCY)->frequency_penalty;
    s.repetition_context = pick(from, QN_SET_REPETITION_CONTEXT)->repetition_context;
    s.presence_context = pick(from, QN_SET_PRESENCE_CONTEXT)->presence_context;
    s.frequency_context = pick(from, QN_SET_FREQUENCY_CONTEXT)->frequency_context;
    s.xtc_probability = pick(from, QN_SET_XTC)->xtc_probability;
    s.xtc_threshold = pick(from, QN_SET_XTC)->xtc_threshold;
    const qn_request_sampling *seeded = request && request->has_seed ? request : flags;
    s.has_seed = seeded && seeded->has_seed;
    s.seed = s.has_seed ? seeded->seed : 0;
    const bool said = (request && (request->set & QN_SET_TEMPERATURE)) ||
                      (flags && (flags->set & QN_SET_TEMPERATURE));
    if (thinking == QN_API_OFF && !said && s.temperature > built_in_temperature)
        s.temperature = built_in_temperature; /* recipes made for thinking are too hot without it */
    *out = s;
}

qn_api_tristate qn_api_thinking(const qn_api_prompt *p, qn_api_tristate server)
{
    if (p->thinking != QN_API_UNSAID) return p->thinking;
    if (p->effort == QN_API_EFFORT_NONE) return QN_API_OFF;
    if (p->effort != QN_API_EFFORT_UNSAID) return QN_API_ON;
    return server;
}

static bool has_name(const qn_api_prompt *p, const char *name)
{
    for (size_t i = 0; i < p->n_names; i++)
        if (strcmp(p->names[i], name) == 0) return true;
    return false;
}

static qn_code warn_unread(const qn_api_prompt *p, qn_api_mentions *mentions, const void *ctx,
                           qn_api_warnings *w, qn_arena *arena, qn_api_error *error)
{
    const bool reads_thinking = mentions(ctx, "enable_thinking");
    for (size_t i = 0; i < p->n_names; i++)
        if (!mentions(ctx, p->names[i]))
            QN_TRY(qn_api_warn(w, arena, error,
                               "'chat_template_kwargs.%.64s' was ignored: the template does not "
                               "read it",
                               p->names[i]));
    if ((p->thinking == QN_API_ON || p->thinking == QN_API_OFF) && !reads_thinking)
        QN_TRY(qn_api_warn(w, arena, error,
                           "'chat_template_kwargs.enable_thinking' was ignored: the template does "
                           "not read it"));
    const bool to_thinking = reads_thinking && p->thinking == QN_API_UNSAID;
    const bool to_effort = mentions(ctx, "reasoning_effort") && p->effort != QN_API_EFFORT_NONE &&
                           !has_name(p, "reasoning_effort");
    if (p->effort != QN_API_EFFORT_UNSAID && !to_thinking && !to_effort)
        QN_TRY(qn_api_warn(w, arena, error,
                           "'reasoning_effort' was ignored: the template does not read it"));
    return QN_OK;
}

qn_code qn_api_variables(qn_str *out, const qn_api_prompt *p, qn_api_tristate server,
                         qn_api_mentions *mentions, const void *ctx, qn_api_warnings *w,
                         qn_arena *arena, qn_api_error *error)
{
    static const char *const words[] = {
        [QN_API_EFFORT_MINIMAL] = "low",   [QN_API_EFFORT_LOW] = "low",
        [QN_API_EFFORT_MEDIUM] = "medium", [QN_API_EFFORT_HIGH] = "xhigh",
        [QN_API_EFFORT_XHIGH] = "xhigh",
    };
    const qn_api_tristate thinking = qn_api_thinking(p, server);
    const bool passes_effort = p->effort > QN_API_EFFORT_NONE &&
                               mentions(ctx, "reasoning_effort") &&
                               !has_name(p, "reasoning_effort");
    char more[96] = "";
    size_t n = 0;
    *out = (qn_str){NULL, 0};
    QN_TRY(warn_unread(p, mentions, ctx, w, arena, error));
    const char *pieces[] = {
        thinking == QN_API_ON    ? ",\"enable_thinking\":true"
        : thinking == QN_API_OFF ? ",\"enable_thinking\":false"
                                 : "",
        passes_effort ? ",\"reasoning_effort\":\"" : "",
        passes_effort ? words[p->effort] : "",
        passes_effort ? "\"" : "",
    };
    for (size_t i = 0; i < QN_LEN(pieces); i++) {
        memcpy(more + n, pieces[i], strlen(pieces[i]));
        n += strlen(pieces[i]);
    }
    const size_t front = p->variables.n ? p->variables.n - 1 : 0; /* without the closing brace */
    const size_t skip = n && !p->n_names; /* no comma behind the opening brace */
    char *text = qn_arena_push(arena, front + n + 3, 1);
    if (!text) return qn_api_fail(error, QN_API_NOMEM, NULL, "not enough memory for this request");
    memcpy(text, front ? p->variables.p : "{", front ? front : 1);
    size_t at = front ? front : 1;
    memcpy(text + at, more + skip, n - skip);
    at += n - skip;
    text[at++] = '}';
    text[at] = '\0';
    *out = qn_str_make(text, at);
    return QN_OK;
}
