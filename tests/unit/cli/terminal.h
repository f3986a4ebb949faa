/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - a program at a pseudo terminal, and somebody who types and reads there.
 *
 * Nothing here sleeps: a wait ends with the text it is for, with the end of the program, or after a
 * deadline so long that only a program which hangs meets it.
 *
 * Owner:  terminal_end frees. Thread: one.
 */
#ifndef TERMINAL_H
#define TERMINAL_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

#include "qt.h"

typedef struct terminal {
    qt *t;
    pid_t pid;
    int fd, line, alive; /* ours; the program's; a pipe that ends with the program */
    struct termios before;
    char *seen;          /* all that came, a NUL behind it */
    size_t n, cap, from; /* from: what waits have not looked at */
} terminal;

/* args: NULL-terminated, the first is the program. 200 columns, 50 lines. */
terminal *terminal_start(qt *t, const char *const *args);
/* Types bytes as a person does, reading what comes meanwhile. */
void terminal_send(terminal *m, const void *bytes, size_t n);
void terminal_type(terminal *m, const char *text);
/* Until text comes behind all that was waited for; that is behind us then. */
bool terminal_wait(terminal *m, const char *text);
/* Until any of the bytes behind what was waited for is no blank. */
bool terminal_wait_any(terminal *m);
/* Until the program is gone. Its status, 128 + the signal that ended it. */
int terminal_status(terminal *m);
/* The settings are those from before the program. */
bool terminal_as_before(const terminal *m);
/* Ends the program if it still runs. */
void terminal_end(terminal *m);

#endif
