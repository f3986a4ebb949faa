/* SPDX-License-Identifier: Apache-2.0 */
/* transcript.h - commands and their output as a page of docs shows them, compared with what happens.
 *
 * A block that begins with ```console holds commands behind "$ " and under each what it prints. A
 * command goes on to the next line behind a backslash or inside single quotes. In the output a line is
 * text, JSON (from { or [ on, over as many lines as it takes), or an event ("data: " and either). What
 * changes from run to run is written as …: in text any characters, in a JSON string any characters, a
 * string of just … any value, as last element or as a key any more of them, and as a line any lines.
 *
 * Thread: any; nothing is shared.
 */
#ifndef TRANSCRIPT_H
#define TRANSCRIPT_H
#include "base/str.h"

typedef struct transcript {
    qn_str rest;
    bool inside;          /* a console block */
    qn_str command, want; /* borrowed from the page */
    size_t line;          /* of the command, from 1 */
} transcript;

/* page is borrowed while t is in use. */
void transcript_init(transcript *t, qn_str page);
/* The next command and its output; false at the end of the page. */
bool transcript_next(transcript *t);
/* Does `got` have the form of `want`? If not, why[why_n] tells the first difference. */
bool transcript_matches(qn_str want, qn_str got, char *why, size_t why_n);

#endif
