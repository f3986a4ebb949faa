/* SPDX-License-Identifier: Apache-2.0 */
/* greedy.h - a real model's greedy continuations against the float32 oracle's.
 *
 * The oracle's own tokens are fed, so that one difference does not spoil the rest: at each step the
 * most likely token must be the oracle's. A difference counts unless the oracle's two best logits are
 * closer than 1e-3 there; five in 1,000 steps may count. The engine's free run must agree too, up to a
 * step that is excused. */
#ifndef TESTS_GOLDEN_GREEDY_H
#define TESTS_GOLDEN_GREEDY_H
#include "qt.h"

enum { GREEDY_STEPS = 100 };

/* All prompts of a golden, n of them, with the model at `path`: fed with the oracle's tokens. */
void greedy_check_steps(qt *t, const char *path, const char *answers, size_t n);
/* All at once from their texts through the public interface: the tokenizer, batching and the draw are
 * in it. */
void greedy_check_engine(qt *t, const char *path, const char *answers, uint32_t context);

#endif
