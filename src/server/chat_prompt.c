/* SPDX-License-Identifier: Apache-2.0 */
/* chat_prompt.c - a conversation as token ids: the model's template renders it, the tokenizer reads its
 * markers. The same for /v1/chat/completions and /tokenize. */
#include "quern/template.h"

#include "server/server_int.h"

qn_code qn_chat_open(struct qn_server *s, qn_err *err)
{
    quern_template *t = NULL;
    const qn_code rc =
        quern_template_open(&t, s->m.model, s->m.template_text, s->m.template_n, err);
    s->chat = t;
    if (rc == QN_E_NOTFOUND && !s->m.template_text) return QN_OK; /* chats are refused one by one */
    return rc;
}

void qn_chat_close(struct qn_server *s)
{
    quern_template_free(s->chat);
    s->chat = NULL;
}

bool qn_chat_available(const struct qn_server *s) { return s->chat != NULL; }

static bool mentions(const void *ctx, const char *name)
{
    return quern_template_mentions(ctx, name) != 0;
}

qn_code qn_chat_prompt(const uint32_t **ids, size_t *n, qn_task *j, const qn_api_prompt *p,
                       qn_api_tristate *thinking)
{
    qn_err err = {0};
    qn_str variables = {0};
    char *text = NULL;
    size_t bytes = 0;
    const struct qn_server *s = j->server;
    quern_template *t = s->chat;
    *ids = NULL;
    *n = 0;
    if (!t)
        return qn_api_fail(
            &j->error, QN_API_NO_TEMPLATE, NULL,
            "the model brings no chat template; quern serve --template FILE gives it "
            "one, /v1/completions needs none");
    *thinking = qn_api_thinking(p, s->m.thinking);
    QN_TRY(qn_api_variables(&variables, p, s->m.thinking, mentions, t, j->warnings, &j->arena,
                            &j->error));
    quern_template_options o = QUERN_TEMPLATE_OPTIONS_INIT;
    o.messages = p->messages.p;
    o.messages_n = p->messages.n;
    o.variables = variables.n ? variables.p : NULL;
    o.variables_n = variables.n;
    o.flags = (p->add_generation_prompt ? QUERN_TEMPLATE_ADD_GENERATION_PROMPT : 0u) |
              (p->continue_final ? QUERN_TEMPLATE_CONTINUE_FINAL : 0u);
    qn_code rc = quern_template_render(&text, &bytes, t, &o, &err);
    if (rc == QN_E_NOMEM)
        rc = qn_api_fail_lib(&j->error, &err);
    else if (rc != QN_OK)
        rc = qn_api_fail(&j->error, QN_API_PROMPT, "messages", "messages: %s", err.msg);
    else
        rc = qn_task_tokenize(ids, n, j, qn_str_make(text, bytes),
                              quern_template_tokenize_flags(t, text, bytes));
    quern_text_free(text);
    return rc;
}
