/* SPDX-License-Identifier: Apache-2.0 */
/* openai.h - OpenAI's dialect: request bodies to structs, answers to bytes.
 *
 *     body ─► qn_openai_read_*  ─► structs of api.h
 *     answer ─► qn_openai_write_* (one JSON text)  or  qn_openai_stream_* (frames of an event stream)
 *
 * Reading is strict: types, ranges and counts are checked against fields.def, null counts as absent,
 * unknown fields become warnings. Writing appends to a buffer without a tree in between and leaves the
 * buffer as it was when it fails. Text that is not UTF-8 comes out with U+FFFD in its place.
 *
 * Where our additions stand, which OpenAI's clients pass by: `warnings` (array of strings, absent when
 * there are none) beside `choices` of a whole answer, and of the first frame of a stream; `seed` in a
 * choice that has ended.
 *
 * Thread: any, on separate arenas and buffers.
 */
#ifndef QN_API_OPENAI_H
#define QN_API_OPENAI_H
#include "api/api.h"
#include "base/buf.h"

/* -- reading ----------------------------------------------------------------------------------- */

/* limits may be NULL (the defaults). On failure *error tells the client what to mend and *out is
 * zeroed. The body is not needed afterwards. Errors: what qn_api_fail gives; NOMEM. */
qn_code qn_openai_read_chat(qn_api_chat *out, qn_str body, const qn_api_limits *limits,
                            qn_arena *arena, qn_api_error *error);
qn_code qn_openai_read_text(qn_api_text *out, qn_str body, const qn_api_limits *limits,
                            qn_arena *arena, qn_api_error *error);
qn_code qn_openai_read_tokenize(qn_api_tokenize *out, qn_str body, const qn_api_limits *limits,
                                qn_arena *arena, qn_api_error *error);
qn_code qn_openai_read_detokenize(qn_api_detokenize *out, qn_str body, const qn_api_limits *limits,
                                  qn_arena *arena, qn_api_error *error);

/* -- what both kinds of answer need ------------------------------------------------------------ */

typedef struct qn_openai_reply {     /* borrowed while it is in use */
    qn_api_endpoint endpoint;        /* CHAT or TEXT */
    qn_str id;                       /* qn_openai_make_id; one for the whole stream */
    int64_t created;                 /* unix seconds */
    qn_str model;                    /* the id of the model that answers */
    qn_str fingerprint;              /* numerics id as text */
    const qn_api_warnings *warnings; /* NULL: none */
} qn_openai_reply;

enum { QN_OPENAI_ID_BYTES = 48 };
/* "chatcmpl-" or "cmpl-" and 32 hexadecimal digits of two random numbers. */
void qn_openai_make_id(char out[QN_OPENAI_ID_BYTES], qn_api_endpoint endpoint,
                       const uint64_t random[2]);

typedef struct qn_openai_top { /* one of the k best */
    qn_str text;               /* the token's bytes, which need not be whole characters */
    float logprob;
} qn_openai_top;

typedef struct qn_openai_token { /* one generated token with its logprob */
    qn_str text;                 /* its bytes */
    float logprob;               /* natural log; -inf is written as -9999 */
    bool unknown;                /* no logprob: the first token of an echoed prompt; null */
    const qn_openai_top *top;    /* most likely first */
    size_t n_top;
} qn_openai_token;

typedef struct qn_openai_logprobs { /* of one frame or one choice */
    const qn_openai_token *tokens;
    size_t n;
    size_t text_offset; /* TEXT: characters of the choice's text before the first of them */
} qn_openai_logprobs;

typedef struct qn_openai_usage { /* tokens */
    uint64_t prompt, cached, completion;
} qn_openai_usage;

/* Characters (code points) of text, as text_offset counts them; a malformed part counts one. */
size_t qn_openai_chars(qn_str text);

/* -- whole answers ----------------------------------------------------------------------------- */

typedef struct qn_openai_choice {
    uint32_t index;
    qn_str text;
    quern_finish finish;                /* STOP or LENGTH */
    uint64_t seed;                      /* see qn_openai_stream_finish */
    const qn_openai_logprobs *logprobs; /* NULL: not asked for */
} qn_openai_choice;

qn_code qn_openai_write_completion(qn_buf *out, const qn_openai_reply *reply,
                                   const qn_openai_choice *choices, size_t n,
                                   const qn_openai_usage *usage, qn_err *err);

/* -- streams ----------------------------------------------------------------------------------- */

/* Chat:  role (each choice) ─► text* ─► finish (each choice) ─► [usage] ─► done
 * Text:                        text* ─► finish (each choice) ─► [usage] ─► done
 * After an error frame the stream ends without done. Each call appends whole frames. */
typedef struct qn_openai_stream { /* private, embedded by the caller */
    qn_api_endpoint endpoint;
    bool include_usage, started;
    qn_str head;     /* the constant front of every frame, in the arena */
    qn_str warnings; /* what the first frame carries besides, in the arena */
} qn_openai_stream;

/* reply is not needed afterwards. Errors: NOMEM. */
qn_code qn_openai_stream_init(qn_openai_stream *s, const qn_openai_reply *reply, bool include_usage,
                              qn_arena *arena, qn_err *err);
/* CHAT: the first frame of a choice. */
qn_code qn_openai_stream_role(qn_openai_stream *s, qn_buf *out, uint32_t choice, qn_err *err);
/* A piece of text; logprobs NULL: not asked for. */
qn_code qn_openai_stream_text(qn_openai_stream *s, qn_buf *out, uint32_t choice, qn_str text,
                              const qn_openai_logprobs *logprobs, qn_err *err);
/* The end of a choice. seed: what the draws were keyed with. JSON numbers are exact up to 2^53 in many
 * clients and up to 2^63 here, so a seed nobody asked for should be drawn below 2^53. */
qn_code qn_openai_stream_finish(qn_openai_stream *s, qn_buf *out, uint32_t choice,
                                quern_finish finish, uint64_t seed, qn_err *err);
/* The one frame with choices [] and the usage of all choices; appends nothing unless include_usage. */
qn_code qn_openai_stream_usage(qn_openai_stream *s, qn_buf *out, const qn_openai_usage *usage,
                               qn_err *err);
qn_code qn_openai_stream_done(qn_buf *out, qn_err *err); /* data: [DONE] */
qn_code qn_openai_stream_error(qn_buf *out, const qn_api_error *error, qn_err *err);
qn_code qn_openai_stream_keep_alive(qn_buf *out, qn_err *err); /* a comment: ": keep-alive" */

/* -- the other bodies -------------------------------------------------------------------------- */

qn_code qn_openai_write_error(qn_buf *out, const qn_api_error *error, qn_err *err);

typedef struct qn_openai_piece { /* with_pieces */
    qn_str text;                 /* bytes; not UTF-8: written as an array of numbers */
} qn_openai_piece;
/* {"tokens":[...],"count":n}; pieces [n] or NULL. */
qn_code qn_openai_write_tokens(qn_buf *out, const uint32_t *tokens, size_t n,
                               const qn_openai_piece *pieces, const qn_api_warnings *warnings,
                               qn_err *err);
/* {"content":"..."} */
qn_code qn_openai_write_content(qn_buf *out, qn_str content, const qn_api_warnings *warnings,
                                qn_err *err);

typedef struct qn_openai_model {
    qn_str id, owned_by;
    int64_t created; /* unix seconds */
    uint32_t context_window;
    bool has_template; /* chat works */
    bool resident, current;
    uint32_t set; /* QN_SET_ bits that hold below: the server's flag over the model's value */
    float temperature, top_p;
    uint32_t top_k;
} qn_openai_model;
/* GET /v1/models; the served one first. */
qn_code qn_openai_write_models(qn_buf *out, const qn_openai_model *models, size_t n, qn_err *err);
/* GET /v1/models/ID: that model as one object. */
qn_code qn_openai_write_model(qn_buf *out, const qn_openai_model *model, qn_err *err);
/* GET /v1: {"name":"quern","version","model","endpoints":["POST /v1/...", ...]}. */
qn_code qn_openai_write_index(qn_buf *out, const char *version, qn_str model,
                              const char *const *endpoints, size_t n, qn_err *err);
/* GET /health: exactly {"status": "ok"}, the space included. */
qn_code qn_openai_write_health(qn_buf *out, qn_err *err);

#endif
