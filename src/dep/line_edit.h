/* SPDX-License-Identifier: Apache-2.0 */
/* line_edit.h - a line read from a terminal: editing, history, pasted text; the library behind it is
 * named in line_edit.c only.
 *
 * While a line is being typed Ctrl-C is a key, not a signal; between two lines the terminal is as it
 * was found, also where SIGTERM, SIGHUP or SIGQUIT ends the program meanwhile. Text is UTF-8 whatever the locale says. Only the program links this file.
 *
 * Owner:  the caller.
 * Thread: one.
 */
#ifndef QN_DEP_LINE_EDIT_H
#define QN_DEP_LINE_EDIT_H
#include <stdio.h>

#include "base/buf.h"

typedef struct qn_line_edit qn_line_edit;

typedef enum qn_line_kind {
    QN_LINE_TEXT,    /* a line */
    QN_LINE_CLEARED, /* Ctrl-C on a line that had text */
    QN_LINE_CANCEL,  /* Ctrl-C on an empty line */
    QN_LINE_END      /* Ctrl-D, or the terminal is gone */
} qn_line_kind;

/* in and screen are a terminal and borrowed. history: a file of one JSON list with one text a line, read now and
 * appended to; made with mode 0600. NULL: none. A history that cannot be read or written is done
 * without. Errors: NOMEM, IO. */
qn_code qn_line_edit_open(qn_line_edit **out, FILE *in, FILE *screen, const char *history,
                          qn_err *err);
void qn_line_edit_close(qn_line_edit *e); /* NULL is fine */
/* Appends the line, without its end, to *line; what was pasted may hold line ends of its own. Errors:
 * LIMIT past line->max, NOMEM. */
qn_code qn_line_edit_read(qn_line_kind *kind, qn_buf *line, qn_line_edit *e, const char *prompt,
                          qn_err *err);
/* Up and Ctrl-R find text[0, n) from now on, in later sessions too. */
void qn_line_edit_remember(qn_line_edit *e, const char *text, size_t n);

#endif
