/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - hash maps: text to 64-bit value, and 64-bit key to 64-bit value.
 *
 * Entries lie dense in insertion order, so a walk is a linear read and its order never depends on the
 * hash. A separate open-addressing table (linear probing, backward-shift deletion, load <= 3/4)
 * holds their indices:
 *
 *     slots   [ . | 2 | . | 1 | 3 | . ]        entry index + 1, 0 is empty
 *     entries [ a ][ b ][ c ]                  a removed entry stays as a hole until the next growth
 *
 * Owner:  the caller embeds the struct; a text map owns copies of its keys.
 * Thread: one writer or many readers.
 */
#ifndef QN_BASE_MAP_H
#define QN_BASE_MAP_H
#include "base/arena.h"
#include "base/str.h"

typedef struct qn_map_core { /* private */
    void *entries;           /* each begins with its uint64_t hash; 0 is a hole */
    uint32_t *slots;
    uint32_t n_slots, n_entries, cap_entries, n_live; /* n_slots is 0 or a power of two */
    uint64_t seed;
} qn_map_core;

typedef struct qn_strmap {
    qn_map_core core;
    qn_arena keys;
} qn_strmap;

typedef struct qn_umap {
    qn_map_core core;
} qn_umap;

/* Allocates nothing. seed: any value for trusted keys; a random one (qn_rng_fresh_seed) where
 * outsiders choose the keys. */
void qn_strmap_init(qn_strmap *m, uint64_t seed);
void qn_strmap_fini(qn_strmap *m); /* zeroed or finished is fine */
/* Room for n entries without another allocation of the table (keys still allocate). */
qn_code qn_strmap_reserve(qn_strmap *m, size_t n, qn_err *err);
/* Insert or replace; a replaced entry keeps its place in the order. The key is copied. Errors: NOMEM,
 * LIMIT at 2^30 entries; the map is then as it was. */
qn_code qn_strmap_put(qn_strmap *m, qn_str key, uint64_t value, qn_err *err);
qn_code qn_strmap_put_ptr(qn_strmap *m, qn_str key, void *value, qn_err *err);
/* False when absent, *value untouched. value may be NULL. */
bool qn_strmap_get(const qn_strmap *m, qn_str key, uint64_t *value);
void *qn_strmap_get_ptr(const qn_strmap *m, qn_str key); /* NULL when absent */
bool qn_strmap_remove(qn_strmap *m, qn_str key);         /* false when absent */
size_t qn_strmap_len(const qn_strmap *m);
/* Walk in insertion order: *it starts at 0; false at the end. key is borrowed until the next put or
 * remove; key and value may be NULL. Removing the entry just given is allowed during a walk. */
bool qn_strmap_next(const qn_strmap *m, size_t *it, qn_str *key, uint64_t *value);

void qn_umap_init(qn_umap *m, uint64_t seed);
void qn_umap_fini(qn_umap *m);
qn_code qn_umap_reserve(qn_umap *m, size_t n, qn_err *err);
qn_code qn_umap_put(qn_umap *m, uint64_t key, uint64_t value, qn_err *err);
bool qn_umap_get(const qn_umap *m, uint64_t key, uint64_t *value);
bool qn_umap_remove(qn_umap *m, uint64_t key);
size_t qn_umap_len(const qn_umap *m);
bool qn_umap_next(const qn_umap *m, size_t *it, uint64_t *key, uint64_t *value);

#endif
