/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - runs the program in a shell and keeps what it said. */
#ifndef PROGRAM_H
#define PROGRAM_H

typedef struct program_result {
    char out[1 << 17], err[1 << 12];
    int status; /* 128 + the signal that ended it */
} program_result;

/* `quern ARGS`; borrowed until the next call. */
const program_result *program_run(const char *args);
/* Any command of bash, "$QUERN" being the program. */
const program_result *program_shell(const char *command);
/* The program with args[] (NULL-terminated, the first is its own name) and a SIGINT that waits for it: mask
 * and pending signals pass through exec, so it is there whenever the verb looks, and no clock decides. */
const program_result *program_interrupted(const char *const *args);

#endif
