/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far a download is, for a person.
 *
 * On a terminal one line is drawn over and over, at most five times a second, and gone at the end; its
 * rate is of the last five seconds, so that it follows the line's state. Elsewhere a file has one line
 * when it begins and one when it is complete.
 *
 * Thread: one; the caller says what time it is.
 */
#ifndef QN_CLI_PROGRESS_H
#define QN_CLI_PROGRESS_H
#include <stdio.h>

#include "quern/store.h"

enum { QN_PROGRESS_SAMPLES = 25 }; /* five seconds of five a second */

typedef struct qn_progress {
    FILE *f;
    bool terminal, quiet;
    bool begun, drawn; /* a file is at work; a line stands there */
    bool moved;        /* bytes of the file at work came, not only were checked */
    bool part_kept;    /* bytes of a hub are there, and are found again */
    char file[256];    /* as it is shown */
    const char *step;
    uint32_t index;
    uint64_t drawn_ns, begin; /* when the line was drawn; bytes done when this file began */
    uint64_t done;
    struct {
        uint64_t ns, done;
    } sample[QN_PROGRESS_SAMPLES]; /* a ring; the next one goes to n mod its size */
    uint32_t n;
} qn_progress;

/* quiet: nothing is ever written. */
void qn_progress_init(qn_progress *p, FILE *f, bool terminal, bool quiet);
void qn_progress_tell(qn_progress *p, const quern_get_progress *now, uint64_t ns);
/* complete: the file at work is there. The line is taken away. */
void qn_progress_end(qn_progress *p, bool complete);

/* The line itself, of at most `columns` characters, all of them ASCII; rate in bytes a second, 0: not known. */
void qn_progress_line(char *out, size_t cap, const quern_get_progress *now, double rate,
                      size_t columns);

#endif
