/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - logits of a token sequence straight from a model's plan: no engine, no scheduler. */
#ifndef TESTS_GOLDEN_FORWARD_H
#define TESTS_GOLDEN_FORWARD_H
#include "model/model.h"
#include "qt.h"

typedef struct forward_how {
    unsigned lanes;    /* 0: 1 */
    uint32_t isa;      /* CPU features allowed; 0: what QUERN_ISA says */
    uint32_t chunk;    /* rows a step; 0: all at once */
    uint32_t features; /* QN_PLAN_ */
    bool
        last_only; /* as a prompt is run: a logit row for the last position, none in other chunks */
    uint32_t n_last; /* not 0: logit rows for the last so many positions only */
    qn_kv_fmt kv;
} forward_how;

/* Logits [n][vocab] at every position (last_only: rows that were not computed hold -1e30; n_last: [n_last][vocab]), owned (qt_release); NULL after a failed check. */
float *forward_logits(qt *t, const qn_model *m, const uint32_t *tokens, uint32_t n,
                      forward_how how);

#endif
