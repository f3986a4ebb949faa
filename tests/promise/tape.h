/* SPDX-License-Identifier: Apache-2.0 */
/* tape.h - what an engine computed: digests of logit rows and of hidden states by request and position,
 * and who shared its steps. Equal bytes have equal digests.
 *
 * Thread: written on the engine's thread; read when every request that was submitted has ended.
 */
#ifndef TAPE_H
#define TAPE_H
#include "engine/engine.h"

enum { TAPE_POSITIONS = 1400 };

typedef struct tape_row {
    uint64_t request, logits, tap; /* digests; 0: none */
    uint32_t pos, step;
    bool shared; /* the step had a row of another request */
} tape_row;

typedef struct tape {
    tape_row *row;
    size_t n, cap;
    uint32_t vocab, step;
} tape;

typedef struct tape_view { /* of one request */
    uint64_t logits[TAPE_POSITIONS], tap[TAPE_POSITIONS];
    uint32_t steps, shared; /* steps it had rows in; of these, with others */
    uint32_t widest;        /* most rows it had in one step */
    uint32_t rows;          /* in all */
} tape_view;

/* Before any submit. with_tap: hidden states of the first layer too. */
void tape_follow(tape *tp, qn_engine *e, uint32_t vocab, bool with_tap);
void tape_look(tape_view *out, const tape *tp, uint64_t request);
void tape_fini(tape *tp);

#endif
