/* SPDX-License-Identifier: Apache-2.0 */
/* api_int.h - what the files of api share: JSON as bytes, and a body while it is read.
 *
 * Owner:  embedded by the caller. Thread: one at a time.
 */
#ifndef QN_API_API_INT_H
#define QN_API_API_INT_H
#include "api/openai.h"
#include "dep/json.h"

/* -- JSON out (json_out.c) --------------------------------------------------------------------- */

/* Appends to a buffer; the first failure sticks and end() takes all back that came since begin(). */
typedef struct qn_out {
    qn_buf *buf;
    size_t start;
    qn_code rc;
    qn_err *err;
} qn_out;

qn_out qn_out_begin(qn_buf *buf, qn_err *err);
qn_code qn_out_end(qn_out *o);
void qn_out_bytes(qn_out *o, const void *bytes, size_t n);
static inline void qn_out_raw(qn_out *o, qn_str s) { qn_out_bytes(o, s.p, s.n); }
#define QN_OUT(o, literal) qn_out_bytes((o), "" literal, sizeof(literal) - 1)
/* Inside of a string literal: quotes, backslashes, controls, U+2028 and U+2029 escaped, U+FFFD for each
 * malformed part. */
void qn_out_escaped(qn_out *o, qn_str text);
void qn_out_str(qn_out *o, qn_str text); /* the same in quotes */
void qn_out_str_z(qn_out *o, const char *text);
void qn_out_u64(qn_out *o, uint64_t v);
void qn_out_i64(qn_out *o, int64_t v);
/* The shortest digits that read back as the same float / double; the locale has no say. Finite. */
void qn_out_f32(qn_out *o, float v);
void qn_out_f64(qn_out *o, double v); /* always with a point or an exponent */
void qn_out_bool(qn_out *o, bool v);
void qn_out_json(qn_out *o, const qn_json *v); /* any value; its depth is bounded by the reader */
/* `"warnings":[...]`, then a comma; nothing when there are none. */
void qn_out_warnings(qn_out *o, const qn_api_warnings *w);
/* {"message":...,"type":...,"param":...,"code":...} */
void qn_out_error(qn_out *o, const qn_api_error *error);

/* -- a body (body.c) --------------------------------------------------------------------------- */

typedef struct qn_reader {
    const qn_api_limits *limits;
    qn_arena *arena;
    qn_api_error *error;
    qn_api_warnings *warnings;
    qn_json *body; /* an object; owned */
} qn_reader;

/* Parses the body and checks every field against the table: type, range, endpoint, treatment. Whatever
 * happens, qn_reader_fini follows. */
qn_code qn_reader_init(qn_reader *r, qn_str body, qn_api_endpoint endpoint);
void qn_reader_fini(qn_reader *r);
/* A field; NULL when it is absent or null. */
const qn_json *qn_reader_get(const qn_reader *r, const char *name);
/* A string field as a copy in the arena (a NUL behind it); empty when absent. */
qn_code qn_reader_str(qn_reader *r, qn_str *out, const char *name);
bool qn_reader_bool(const qn_reader *r, const char *name, bool fallback);
/* A copy in the arena. */
qn_code qn_reader_copy(qn_reader *r, qn_str *out, const char *text, size_t n);
qn_code qn_reader_nomem(qn_reader *r);
/* An array of token ids; `name` is for messages. Errors: BAD_TYPE, BAD_VALUE, TOO_MANY, NOMEM. */
qn_code qn_reader_tokens(qn_reader *r, const uint32_t **out, size_t *n, const qn_json *array,
                         const char *name, size_t most);
/* True if no array or object of text[0, n) lies deeper than `depth`. */
bool qn_json_is_shallow(const char *text, size_t n, size_t depth);

/* params.c, messages.c: the parts of a body */
qn_code qn_reader_params(qn_reader *r, qn_api_params *out, qn_api_endpoint endpoint);
qn_code qn_reader_prompt(qn_reader *r, qn_api_prompt *out);

#endif
