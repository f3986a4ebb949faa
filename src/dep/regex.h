/* SPDX-License-Identifier: Apache-2.0 */
/* regex.h - regular expressions over UTF-8; the library behind it is named in regex.c only.
 *
 * A compiled pattern is immutable. Work memory of a search lives in a scan object, so threads share
 * patterns and own scans. Limits are set on backtracking steps, stack and heap: a pattern that gives
 * up says QN_E_LIMIT, it never recurses into the C stack.
 *
 * Thread: qn_regex any; qn_regex_scan one at a time.
 */
#ifndef QN_DEP_REGEX_H
#define QN_DEP_REGEX_H
#include "base/status.h"

typedef struct qn_regex qn_regex;
typedef struct qn_regex_scan qn_regex_scan;

typedef enum qn_regex_dialect {
    QN_REGEX_PERL, /* the library's own: Perl syntax with Unicode properties */
    QN_REGEX_ONIG  /* Oniguruma's Ruby syntax as tokenizer files use it, rewritten; what would mean
                      something else is refused by name */
} qn_regex_dialect;

/* *out is owned (free with qn_regex_free). Errors: FORMAT (no such pattern, with the place),
 * UNSUPPORTED (ONIG: a construct outside the rewritten subset), LIMIT (longer than 64 KiB), NOMEM. */
qn_code qn_regex_new(qn_regex **out, const char *pattern, size_t n, qn_regex_dialect dialect,
                     qn_err *err);
void qn_regex_free(qn_regex *re); /* NULL is fine */

/* *out is owned (free with qn_regex_scan_free); serves any pattern. Errors: NOMEM. */
qn_code qn_regex_scan_new(qn_regex_scan **out, qn_err *err);
void qn_regex_scan_free(qn_regex_scan *s); /* NULL is fine */

typedef struct qn_regex_match {
    size_t begin, end; /* bytes; begin == end is possible */
} qn_regex_match;

/* The leftmost match in text[0, n) that starts at or after `from`. text must be valid UTF-8 and
 * `from` a character border; neither is checked. *found tells. Lookbehind sees text before `from`.
 * Errors: LIMIT (gave up), NOMEM. */
qn_code qn_regex_find(bool *found, qn_regex_match *m, qn_regex_scan *s, const qn_regex *re,
                      const char *text, size_t n, size_t from, qn_err *err);

#endif
