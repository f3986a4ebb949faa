/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h - a golden of tests/golden/<family>: a tiny model, tokens, and the oracle's logits. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H
#include "dep/json.h"
#include "model/model.h"
#include "qt.h"

#define GOLDEN_ROOT "tests/golden"

typedef struct golden {
    char model[256]; /* path */
    uint32_t *tokens, n_tokens, vocab;
    float *logits; /* [n_tokens][vocab] */
    double noise;  /* how far float32 is from float64 there */
} golden;

/* name: "family/folder"; a folder alone is one of llama. False after a failed check; close in any case. */
bool golden_open(qt *t, golden *g, const char *name);
void golden_close(golden *g);
/* A whole file as JSON; NULL after a failed check. Owned (qn_json_free). */
qn_json *golden_json(qt *t, const char *path);
/* max|a - b| / max|b| over n values; 1e30 when a value of a is not finite. */
double golden_distance(const float *a, const float *b, size_t n);

#endif
