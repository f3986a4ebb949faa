/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - a borrowed piece of text: pointer and length, no NUL needed, never owned.
 *
 * Thread: values only.
 */
#ifndef QN_BASE_STR_H
#define QN_BASE_STR_H
#include "base/status.h"
#include "base/utf8.h"

typedef struct qn_str {
    const char *p; /* may be NULL when n is 0; may hold NULs */
    size_t n;      /* bytes */
} qn_str;

/* A string literal; an expression, not a constant. */
#define QN_STR(literal) ((qn_str){"" literal, sizeof(literal) - 1})
/* For "%.*s". */
#define QN_STR_ARG(s) (int)((s).n < 4096 ? (s).n : 4096), (s).n ? (s).p : ""

qn_str qn_str_z(const char *text); /* up to its NUL; NULL gives the empty string */
static inline qn_str qn_str_make(const char *p, size_t n) { return (qn_str){p, n}; }

bool qn_str_eq(qn_str a, qn_str b);
bool qn_str_eq_z(qn_str a, const char *b);
int qn_str_cmp(qn_str a, qn_str b); /* bytewise order: <0, 0, >0 */
bool qn_str_has_prefix(qn_str s, qn_str prefix);
bool qn_str_has_suffix(qn_str s, qn_str suffix);
/* Offset of the first `needle` at or behind `from`, or SIZE_MAX. An empty needle is found at from. */
size_t qn_str_find(qn_str s, qn_str needle, size_t from);
/* s[begin, end), both clamped to the length. */
qn_str qn_str_slice(qn_str s, size_t begin, size_t end);
/* Without space, tab, CR, LF at both ends. */
qn_str qn_str_trim(qn_str s);

/* Walk the pieces between separators: *rest starts as the whole text; false at the end. "a,,b" gives
 * a, "", b; the empty text gives one empty piece; rest->p is NULL once all is given. */
bool qn_str_split(qn_str *piece, qn_str *rest, char separator);

/* Strict numbers: the whole text must be used, no spaces, no locale, no overflow; *out is untouched
 * on false. Integers: optional '-' (i64 only), then digits. f64: JSON's number grammar, finite. */
bool qn_str_parse_i64(int64_t *out, qn_str s);
bool qn_str_parse_u64(uint64_t *out, qn_str s);
bool qn_str_parse_f64(double *out, qn_str s);

#endif
