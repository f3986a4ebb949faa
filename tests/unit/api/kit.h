/* SPDX-License-Identifier: Apache-2.0 */
/* kit.h - a request read in one line, for the tests of api. */
#ifndef API_KIT_H
#define API_KIT_H
#include <string.h>

#include "api/openai.h"
#include "base/alloc.h"
#include "qt.h"

typedef struct bodied { /* one body and what became of it */
    qn_arena arena;
    qn_api_error error;
    qn_code rc;
    qn_api_chat chat;
    qn_api_text text;
    qn_api_tokenize tokenize;
    qn_api_detokenize detokenize;
    const qn_api_warnings *warnings;
} bodied;

static inline void read_body(bodied *b, qn_api_endpoint endpoint, const char *body,
                             const qn_api_limits *limits)
{
    const qn_str s = qn_str_z(body);
    *b = (bodied){.rc = QN_OK};
    qn_arena_init(&b->arena, 64u << 20);
    switch (endpoint) {
    case QN_API_CHAT:
        b->rc = qn_openai_read_chat(&b->chat, s, limits, &b->arena, &b->error);
        b->warnings = &b->chat.params.warnings;
        break;
    case QN_API_TEXT:
        b->rc = qn_openai_read_text(&b->text, s, limits, &b->arena, &b->error);
        b->warnings = &b->text.params.warnings;
        break;
    case QN_API_TOKENIZE:
        b->rc = qn_openai_read_tokenize(&b->tokenize, s, limits, &b->arena, &b->error);
        b->warnings = &b->tokenize.warnings;
        break;
    case QN_API_DETOKENIZE:
        b->rc = qn_openai_read_detokenize(&b->detokenize, s, limits, &b->arena, &b->error);
        b->warnings = &b->detokenize.warnings;
        break;
    }
}

static inline void drop_body(bodied *b) { qn_arena_fini(&b->arena); }

/* The body is refused with this status, field and message (a part of it). */
static inline void refused(qt *t, qn_api_endpoint endpoint, const char *body, qn_api_kind kind,
                           const char *param, const char *say)
{
    bodied b;
    const size_t live = qn_alloc_live();
    read_body(&b, endpoint, body, NULL);
    QT_OKF(t, b.rc != QN_OK, "%.200s", body);
    QT_OKF(t, b.error.kind == kind && b.error.status >= 400, "%.200s: %s", body, b.error.message);
    QT_OKF(t, strcmp(b.error.param, param) == 0, "%.200s: '%s' not '%s'", body, b.error.param,
           param);
    QT_OKF(t, strstr(b.error.message, say) != NULL, "%.200s: '%s' lacks '%s'", body,
           b.error.message, say);
    drop_body(&b);
    QT_EQ(t, qn_alloc_live(), live);
}

#endif
