/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.h - a pull reader for the two huge members of a tokenizer.json.
 *
 * A vocabulary of 262,144 entries and 514,906 merges make two million small values; a document tree of
 * them takes seconds and hundreds of megabytes. This reader hands out strings and numbers in place.
 * Everything else in the file goes through dep/json.
 *
 * Owner:  the caller embeds the struct; the text is borrowed.
 * Thread: one thread at a time.
 */
#ifndef QN_TEXT_JSON_SCAN_H
#define QN_TEXT_JSON_SCAN_H
#include "base/buf.h"
#include "base/str.h"

typedef struct qn_jscan {
    const char *start, *p, *end;
    qn_buf scratch[2]; /* decoded strings take turns */
    unsigned turn;
    qn_err *err;
} qn_jscan;

/* text must be valid UTF-8. Allocates nothing. */
void qn_jscan_init(qn_jscan *s, qn_str text, qn_err *err);
void qn_jscan_fini(qn_jscan *s);

/* Skip white space; the next byte, or '\0' at the end. */
char qn_jscan_peek(qn_jscan *s);
/* Take this one byte of punctuation. Errors: FORMAT with place, found and expected. */
qn_code qn_jscan_expect(qn_jscan *s, char c);
/* A string, escapes decoded; borrowed until the second next string. */
qn_code qn_jscan_string(qn_jscan *s, qn_str *out);
/* A whole number from 0 to 2^32 - 1. */
qn_code qn_jscan_u32(qn_jscan *s, uint32_t *out);
/* Step over any value without looking inside: only strings and brackets are told apart. */
qn_code qn_jscan_skip(qn_jscan *s);
/* After an element: true when another follows (the comma is taken), false at `close` (taken). */
qn_code qn_jscan_more(qn_jscan *s, char close, bool *more);

#endif
