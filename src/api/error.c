/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - what went wrong, as the client sees it, and warnings: api/errors.def as functions.
 *
 * Thread: any, on separate errors and arenas.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/utf8.h"

static const struct {
    int status;
    const char *type, *code;
} kinds[QN_API_KIND_COUNT] = {
#define X(name, status, type, code) [QN_API_##name] = {status, type, code},
#include "api/errors.def"
#undef X
};

/* Texts from outside are cut to the room there is, at a whole character. */
static void put_text(char *to, size_t room, const char *text)
{
    size_t n = strnlen(text, room - 1);
    if (text[n]) n -= qn_utf8_partial_tail(text, n);
    memcpy(to, text, n);
    to[n] = '\0';
}

static qn_code code_of(qn_api_kind kind)
{
    switch (kind) {
    case QN_API_UNSUPPORTED:
    case QN_API_NOT_IMPLEMENTED:
        return QN_E_UNSUPPORTED;
    case QN_API_TOO_MANY:
    case QN_API_TOO_LARGE:
    case QN_API_CONTEXT:
    case QN_API_MEMORY:
        return QN_E_LIMIT;
    case QN_API_NOT_FOUND:
    case QN_API_NO_MODEL:
    case QN_API_NO_TEMPLATE:
        return QN_E_NOTFOUND;
    case QN_API_QUEUE_FULL:
    case QN_API_CLOSING:
        return QN_E_AGAIN;
    case QN_API_CANCELLED:
        return QN_E_CANCELLED;
    case QN_API_NOMEM:
        return QN_E_NOMEM;
    case QN_API_FAILED:
    case QN_API_LOAD_FAILED:
        return QN_E_INTERNAL;
    case QN_API_DENIED:
        return QN_E_DENIED;
    default:
        return QN_E_INVAL;
    }
}

qn_code qn_api_fail(qn_api_error *error, qn_api_kind kind, const char *param, const char *fmt, ...)
{
    char message[1024];
    va_list ap;
    if (!error) return code_of(kind);
    va_start(ap, fmt);
    const int n = vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    *error = (qn_api_error){.kind = kind,
                            .status = kinds[kind].status,
                            .type = kinds[kind].type,
                            .code = kinds[kind].code};
    put_text(error->param, sizeof error->param, param ? param : "");
    put_text(error->message, sizeof error->message, n < 0 ? "" : message);
    return code_of(kind);
}

qn_code qn_api_fail_context(qn_api_error *error, uint64_t prompt_tokens, uint64_t context_tokens)
{
    /* The first words are what clients look for when they have no eye for `code`. */
    const qn_code rc =
        qn_api_fail(error, QN_API_CONTEXT, NULL,
                    "This model's maximum context length is %llu tokens, but the "
                    "prompt has %llu tokens.",
                    (unsigned long long)context_tokens, (unsigned long long)prompt_tokens);
    if (error) {
        error->limit[0] = prompt_tokens;
        error->limit[1] = context_tokens;
    }
    return rc;
}

qn_code qn_api_fail_lib(qn_api_error *error, const qn_err *err)
{
    static const qn_api_kind kind_of[QN_CODE_COUNT] = {
        [QN_OK] = QN_API_FAILED,
        [QN_E_NOMEM] = QN_API_NOMEM,
        [QN_E_INVAL] = QN_API_BAD_VALUE,
        [QN_E_FORMAT] = QN_API_BAD_REQUEST,
        [QN_E_NOTFOUND] = QN_API_NOT_FOUND,
        [QN_E_AGAIN] = QN_API_QUEUE_FULL,
        [QN_E_IO] = QN_API_FAILED,
        [QN_E_UNSUPPORTED] = QN_API_NOT_IMPLEMENTED,
        [QN_E_LIMIT] = QN_API_BAD_REQUEST,
        [QN_E_CANCELLED] = QN_API_CANCELLED,
        [QN_E_INTERNAL] = QN_API_FAILED,
        [QN_E_DENIED] = QN_API_DENIED,
    };
    const bool known = err->code > QN_OK && err->code < QN_CODE_COUNT;
    (void)qn_api_fail(error, known ? kind_of[err->code] : QN_API_FAILED, NULL, "%s",
                      err->msg[0] ? err->msg : quern_code_text(err->code));
    return known ? err->code : QN_E_INTERNAL;
}

qn_code qn_api_warn(qn_api_warnings *w, qn_arena *arena, qn_api_error *error, const char *fmt, ...)
{
    char whole[1024], line[201];
    va_list ap;
    if (w->n == QN_API_MAX_WARNINGS) {
        w->more++;
        return QN_OK;
    }
    va_start(ap, fmt);
    const int n = vsnprintf(whole, sizeof whole, fmt, ap);
    va_end(ap);
    put_text(line, sizeof line, n < 0 ? "" : whole);
    char *text = qn_arena_push_bytes(arena, line, strlen(line));
    if (!text) return qn_api_fail(error, QN_API_NOMEM, NULL, "no memory for a warning");
    w->text[w->n++] = text;
    return QN_OK;
}
