/* SPDX-License-Identifier: Apache-2.0 */
/* cache_world.h - what the tests of the cache share: a device of host memory, caches of a few shapes,
 * and a model of what must stand in a block.
 *
 * The model knows nothing of blocks or trees: the value at a position is a hash of the token ids up to
 * it, and of the extras there. Whatever a sequence matched, forked or trimmed, reading it through its
 * table must give these values at every position that a row may see.
 */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H
#include "cache/cache.h"
#include "qt.h"

enum { WORLD_MAX = 1200 }; /* positions */

qn_device *world_device(void); /* borrowed, for ever */
/* groups: "f" one full group, "fw" full and window, "w" window only, "ff" two full ones. n blocks each. */
qn_code world_open(qn_cache **out, const char *groups, uint32_t n, uint32_t window,
                   uint32_t key_bits, qn_err *err);
size_t world_block_bytes(const char *groups); /* of one block of each group */

typedef struct timeline { /* a sequence and what it should hold */
    qn_seq *seq;
    uint32_t len, token[WORLD_MAX];
    uint64_t at[WORLD_MAX + 1]; /* hash of the first i tokens */
    qn_key_extra extra[4];
    uint32_t n_extra;
} timeline;

void timeline_tokens(timeline *l, const uint32_t *tokens,
                     uint32_t n); /* sets what len grows into */
/* Reserve, write `n` positions, commit `kept` of them. */
qn_code timeline_step(const qn_cache *c, timeline *l, uint32_t n, uint32_t kept, qn_err *err);
/* Every position that a row at len may see reads as the model says. */
bool timeline_holds(const qn_cache *c, const timeline *l);
/* Behind len the open block, the sequence's own, is zeros (rule R2). */
bool timeline_clean_behind(const qn_cache *c, const timeline *l);

#endif
