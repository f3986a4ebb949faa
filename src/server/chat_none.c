/* SPDX-License-Identifier: Apache-2.0 */
/* chat_none.c - what chat_prompt.c is in a build without a template engine: chat is refused with a pointer
 * to what works. */
#include "server/server_int.h"

qn_code qn_chat_open(struct qn_server *s, qn_err *err)
{
    if (s->m.template_text)
        return qn_fail(err, QN_E_UNSUPPORTED, "this build renders no chat templates");
    return QN_OK;
}

void qn_chat_close(struct qn_server *s) { (void)s; }

bool qn_chat_available(const struct qn_server *s)
{
    (void)s;
    return false;
}

qn_code qn_chat_prompt(const uint32_t **ids, size_t *n, qn_task *j, const qn_api_prompt *p,
                       qn_api_tristate *thinking)
{
    (void)p, (void)thinking;
    *ids = NULL;
    *n = 0;
    return qn_api_fail(&j->error, QN_API_NOT_IMPLEMENTED, NULL,
                       "this build renders no chat templates; /v1/completions takes a prompt");
}
