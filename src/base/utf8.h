/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - strict UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF.
 *
 * A malformed sequence is one "maximal subpart" (Unicode 15, section 3.9), so that replacing each by
 * U+FFFD gives what Python, Rust and browsers give.
 *
 * Thread: values only.
 */
#ifndef QN_BASE_UTF8_H
#define QN_BASE_UTF8_H
#include "base/status.h"

#define QN_UTF8_BAD UINT32_MAX

/* Reads one character of p[0, n), n > 0: its code point to *cp and its length (1 to 4) returned.
 * Malformed: *cp = QN_UTF8_BAD and the length of the maximal subpart (1 to 3). */
size_t qn_utf8_step(const char *p, size_t n, uint32_t *cp);
/* Writes cp to out[4]; returns 1 to 4, or 0 when cp is a surrogate or above U+10FFFF. */
size_t qn_utf8_encode(char *out, uint32_t cp);
/* True if p[0, n) is well-formed; else *bad (NULL allowed) is the offset of the first fault. */
bool qn_utf8_valid(const char *p, size_t n, size_t *bad);
/* How many trailing bytes of p[0, n) are the start of a character that may still be completed: 0 to
 * 3. A stream holds them back. */
size_t qn_utf8_partial_tail(const char *p, size_t n);

#endif
