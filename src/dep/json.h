/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - reading and writing JSON; the library behind it is named in json.c only.
 *
 * Parsing is strict (RFC 8259, valid UTF-8, no duplicate keys, no trailing bytes) and has a depth
 * and a size ceiling. Values are borrowed from the document until it is freed.
 *
 * Owner:  the document owns every value read from it.
 * Thread: a document may be read by many threads once parsed.
 */
#ifndef QN_DEP_JSON_H
#define QN_DEP_JSON_H
#include "base/status.h"

typedef struct qn_json qn_json; /* any value; const qn_json * is borrowed from its document */

typedef enum qn_json_type {
    QN_JSON_NULL,
    QN_JSON_BOOL,
    QN_JSON_INT,
    QN_JSON_REAL,
    QN_JSON_STRING,
    QN_JSON_ARRAY,
    QN_JSON_OBJECT
} qn_json_type;

/* Parse text[0, n). The root value is owned (free with qn_json_free). Errors: FORMAT with line,
 * column and what was wrong; LIMIT past max_bytes; NOMEM. */
qn_code qn_json_parse(qn_json **out, const char *text, size_t n, size_t max_bytes, qn_err *err);
void qn_json_free(qn_json *root); /* roots only; NULL is fine */

qn_json_type qn_json_type_of(const qn_json *v); /* NULL counts as QN_JSON_NULL */
/* A member by key / an element by index; NULL when v is no such container or has none. */
const qn_json *qn_json_get(const qn_json *v, const char *key);
const qn_json *qn_json_at(const qn_json *v, size_t i);
size_t qn_json_len(const qn_json *v); /* elements or members; 0 for scalars */
/* Walk an object in file order: start with *it = NULL; false at the end. key and value may be NULL. */
bool qn_json_next(const qn_json *object, const void **it, const char **key, const qn_json **value);
/* UTF-8 bytes, borrowed, length in *n (may hold NULs); NULL when v is no string. */
const char *qn_json_str(const qn_json *v, size_t *n);
/* The value or `fallback` when v is NULL or of another type. num accepts ints and reals. */
int64_t qn_json_int(const qn_json *v, int64_t fallback);
double qn_json_num(const qn_json *v, double fallback);
bool qn_json_bool(const qn_json *v, bool fallback);

/* The text of v, compact, keys in order; owned (free with qn_free). */
qn_code qn_json_dump(char **out, size_t *n, const qn_json *v, qn_err *err);

/* Building: each returns an owned value or NULL (no memory). set/push take `value` (also on failure)
 * and return false without memory or when value is NULL. */
QN_NODISCARD qn_json *qn_json_new_object(void);
QN_NODISCARD qn_json *qn_json_new_array(void);
QN_NODISCARD qn_json *qn_json_new_str(const char *s, size_t n); /* NULL too when s is not UTF-8 */
QN_NODISCARD qn_json *qn_json_new_int(int64_t v);
QN_NODISCARD qn_json *qn_json_new_num(double v);
QN_NODISCARD qn_json *qn_json_new_bool(bool v);
QN_NODISCARD qn_json *qn_json_new_null(void);
QN_NODISCARD bool qn_json_set(qn_json *object, const char *key, qn_json *value);
QN_NODISCARD bool qn_json_push(qn_json *array, qn_json *value);

#endif
