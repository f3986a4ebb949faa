/* SPDX-License-Identifier: Apache-2.0 */
/* stops.h - finds stop strings in text that comes in pieces, and says how much of it must wait.
 *
 * Each string has a Knuth-Morris-Pratt table; the state of a text is, per string, how many of its bytes
 * the text now ends with. The largest of these is what may still become a stop and must not be shown.
 *
 * Owner:  the patterns belong to a request, a state to one of its choices.
 * Thread: patterns are immutable and may be shared; a state one thread at a time.
 */
#ifndef QN_ENGINE_STOPS_H
#define QN_ENGINE_STOPS_H
#include "base/str.h"

enum { QN_STOPS_MAX_BYTES = 1 << 20 }; /* of all strings together */
#define QN_NO_STOP UINT32_MAX

typedef struct qn_stops qn_stops;

/* n strings, copied, each at least one byte. Owned (qn_stops_free). Errors: INVAL, LIMIT, NOMEM. */
qn_code qn_stops_new(qn_stops **out, const qn_str *text, uint32_t n, qn_err *err);
void qn_stops_free(qn_stops *s); /* NULL is fine */
uint32_t qn_stops_count(const qn_stops *s);
uint32_t qn_stops_longest(const qn_stops *s); /* bytes */

typedef struct qn_stop_hit {
    uint32_t stop;  /* which string ended in this piece, or QN_NO_STOP */
    uint32_t after; /* bytes of the piece up to the end of the string */
    uint32_t len;   /* bytes of the string; it may have begun in an earlier piece */
} qn_stop_hit;

/* Feeds a piece; state [count] starts as zeros. The first string to end wins, the longest if several
 * end at the same byte. With `armed` false nothing wins. */
qn_stop_hit qn_stops_push(const qn_stops *s, uint32_t *state, const char *text, size_t n,
                          bool armed);
/* Bytes at the end of the text so far that a stop may begin with. */
uint32_t qn_stops_held(const qn_stops *s, const uint32_t *state);

#endif
