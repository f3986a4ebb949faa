/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - what all dialects share: the error a client sees, warnings, and a request as plain structs.
 *
 * A dialect (openai.h) turns bytes into these structs and answers into bytes; there are no sockets and
 * no models here. Every field of a request is honoured, refused with 400 and its name in `param`, or
 * listed in `warnings` (fields.def is the table of all of them).
 *
 * Values that only somebody with a model can judge (token ids below the vocabulary, the length of a
 * prompt, whether a template reads a variable) are left to the caller.
 *
 * Owner:  the structs point into the arena given to the reader and live as long as it does.
 * Thread: values only; any thread, on separate arenas.
 */
#ifndef QN_API_API_H
#define QN_API_API_H
#include "base/arena.h"
#include "base/str.h"
#include "quern/request.h"
#include "wire/request.h"

/* -- errors ------------------------------------------------------------------------------------ */

typedef enum qn_api_kind { /* a row of errors.def: HTTP status, type and code */
#define X(name, status, type, code) QN_API_##name,
#include "api/errors.def"
#undef X
                           QN_API_KIND_COUNT
} qn_api_kind;

typedef struct qn_api_error { /* told once; zeroed: none */
    qn_api_kind kind;
    int status;        /* HTTP; 0: no error */
    const char *type;  /* a constant */
    const char *code;  /* a constant or NULL */
    char param[96];    /* the field, as "messages[2].role"; "" when no field is at fault */
    char message[384]; /* UTF-8 */
    char detail[160];  /* more for a person, such as line and column; mostly "" */
    uint64_t limit[2]; /* CONTEXT: tokens of the prompt, tokens the context holds */
} qn_api_error;

/* Fill *error (NULL allowed). param may be NULL. Returns the qn_code nearest in meaning, never OK, so
 * that a site reads `return qn_api_fail(...)`. */
qn_code qn_api_fail(qn_api_error *error, qn_api_kind kind, const char *param, const char *fmt, ...)
    QN_PRINTF(4, 5);
/* The prompt leaves no room: 400 context_length_exceeded with both numbers. */
qn_code qn_api_fail_context(qn_api_error *error, uint64_t prompt_tokens, uint64_t context_tokens);
/* What the library reported: the status of errors.def, message and all; INVAL and LIMIT become 400,
 * since what a client sent cannot be served. Returns err->code. */
qn_code qn_api_fail_lib(qn_api_error *error, const qn_err *err);

/* -- warnings ---------------------------------------------------------------------------------- */

enum { QN_API_MAX_WARNINGS = 32 };

typedef struct qn_api_warnings { /* texts for the client, borrowed from the request's arena */
    const char *text[QN_API_MAX_WARNINGS];
    size_t n;
    size_t more; /* beyond the ceiling: counted, told as one line */
} qn_api_warnings;

/* Adds one line, at most 200 bytes of it. Errors: NOMEM. */
qn_code qn_api_warn(qn_api_warnings *w, qn_arena *arena, qn_api_error *error, const char *fmt, ...)
    QN_PRINTF(4, 5);

/* -- requests ---------------------------------------------------------------------------------- */

typedef enum qn_api_endpoint {                       /* bits, for the table of fields */
                               QN_API_CHAT = 1,      /* POST /v1/chat/completions */
                               QN_API_TEXT = 2,      /* POST /v1/completions */
                               QN_API_TOKENIZE = 4,  /* POST /tokenize */
                               QN_API_DETOKENIZE = 8 /* POST /detokenize */
} qn_api_endpoint;

typedef struct qn_api_limits {
    size_t body_bytes;    /* of the JSON text */
    size_t depth;         /* of nested arrays and objects */
    size_t messages;      /* in one chat */
    size_t prompts;       /* in one completion request */
    size_t prompt_tokens; /* ids in one request, all prompts together */
} qn_api_limits;
/* 32 MiB, 64, 16,384, 128, 4 Mi. An arena of 8 times the body's bytes plus 1 MiB always suffices. */
extern const qn_api_limits qn_api_default_limits;

enum { /* choices of one request: prompts times n */
       QN_API_MAX_CHOICES = 1024
};

typedef struct qn_api_params { /* what every generating endpoint has */
    qn_str model;              /* as sent; empty: the current one */
    bool stream;
    bool include_usage;           /* stream_options.include_usage */
    uint32_t n;                   /* choices a prompt, 1 to 128 */
    qn_request_sampling sampling; /* as far as sent: see `set`; qn_api_resolve fills the rest */
    uint32_t max_tokens; /* meaningful when set has QN_SET_MAX_TOKENS; may be 0: generate none */
    uint32_t min_tokens;
    int32_t logprobs; /* -1: none; k >= 0: the chosen token's and the k best */
    bool ignore_eos;
    bool no_cache;            /* cache_prompt false: neither use nor leave a prefix */
    const quern_bias *biases; /* each token once */
    size_t n_biases;
    const char *const *stops; /* stop texts, NUL-terminated, none empty */
    size_t n_stops;
    const uint32_t *stop_ids;
    size_t n_stop_ids;
    qn_api_warnings warnings;
} qn_api_params;

typedef enum qn_api_tristate { /* what was said about thinking */
                               QN_API_UNSAID = 0,
                               QN_API_OFF,
                               QN_API_ON,
                               QN_API_LEAVE /* null on purpose: the template decides, whatever the server's default is */
} qn_api_tristate;

typedef enum qn_api_effort {
    QN_API_EFFORT_UNSAID = 0,
    QN_API_EFFORT_NONE,
    QN_API_EFFORT_MINIMAL,
    QN_API_EFFORT_LOW,
    QN_API_EFFORT_MEDIUM,
    QN_API_EFFORT_HIGH,
    QN_API_EFFORT_XHIGH
} qn_api_effort;

typedef struct qn_api_prompt { /* messages, ready for the template */
    qn_str messages; /* JSON array text, normalised; for quern_template_options.messages */
    size_t n_messages;
    qn_str variables;         /* JSON object text of chat_template_kwargs without enable_thinking */
    qn_api_tristate thinking; /* chat_template_kwargs.enable_thinking */
    qn_api_effort effort;     /* reasoning_effort */
    const char *const *names; /* the keys of `variables` */
    size_t n_names;
    bool add_generation_prompt; /* default true */
    bool continue_final;        /* the last message, an assistant's, is continued */
} qn_api_prompt;

typedef struct qn_api_chat {
    qn_api_params params;
    qn_api_prompt prompt;
} qn_api_chat;

typedef struct qn_api_text_prompt { /* text, or ids when n_tokens is not 0 */
    qn_str text;
    const uint32_t *tokens;
    size_t n_tokens;
} qn_api_text_prompt;

typedef struct qn_api_text {
    qn_api_params params;
    const qn_api_text_prompt *prompts; /* choice index = prompt index * n + choice */
    size_t n_prompts;                  /* at least one */
    bool echo;                         /* the prompt's text comes first in each choice */
} qn_api_text;

typedef struct qn_api_tokenize {
    qn_str model;
    bool is_chat;         /* prompt is meant, else text */
    qn_str text;          /* content */
    qn_api_prompt prompt; /* rendered and tokenised exactly as a chat would be */
    bool add_special;     /* text: BOS and the like where the model expects them; default false */
    bool parse_special;   /* text: "<|im_end|>" means that token; default true */
    bool with_pieces;     /* tokens as {"id", "piece"} */
    qn_api_warnings warnings;
} qn_api_tokenize;

typedef struct qn_api_detokenize {
    qn_str model;
    const uint32_t *tokens;
    size_t n_tokens;
    qn_api_warnings warnings;
} qn_api_detokenize;

/* -- from what was said to what holds ---------------------------------------------------------- */

/* Each value from the first that has it: request, flags (the server's), model (generation_config);
 * then the built-in: temperature 0.7, filters off, penalties off over 20 tokens, XTC off. Any of the
 * three may be NULL. thinking: the effective one; QN_API_OFF caps a temperature that neither request nor
 * flag gave at 0.7. All bits of out->set but MAX_TOKENS are set. Pure. */
void qn_api_resolve(qn_request_sampling *out, const qn_request_sampling *request,
                    const qn_request_sampling *flags, const qn_request_sampling *model,
                    qn_api_tristate thinking);

/* What enable_thinking is in effect: the request's, else (LEAVE ends the search) its effort ("none" is
 * off, any other on), else the server's flag. UNSAID and LEAVE: not passed to the template. */
qn_api_tristate qn_api_thinking(const qn_api_prompt *p, qn_api_tristate server);

/* Whether the template reads a variable of this name (quern_template_mentions). */
typedef bool qn_api_mentions(const void *ctx, const char *name);

/* The JSON object for quern_template_options.variables: chat_template_kwargs, enable_thinking when it is
 * in effect, reasoning_effort in the templates' words (low, medium, xhigh) when the template reads it.
 * Adds to *w whatever the client asked for that this template does not read. Errors: NOMEM. */
qn_code qn_api_variables(qn_str *out, const qn_api_prompt *p, qn_api_tristate server,
                         qn_api_mentions *mentions, const void *ctx, qn_api_warnings *w,
                         qn_arena *arena, qn_api_error *error);

#endif
