/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h - a small model's parts for the graph tests: weights, caches, rope, steps, and a maker of
 * random graphs.
 *
 * Widths: main 64 = 4 heads of 16, kv 32 = 2 heads of 16, inner 96, vocabulary 37.
 */
#ifndef LAB_H
#define LAB_H
#include "graph/plan_int.h"
#include "qt.h"

enum {
    LAB_MAIN = 64,
    LAB_KV = 32,
    LAB_INNER = 96,
    LAB_VOCAB = 37,
    LAB_HEADS = 4,
    LAB_DIM = 16,
    LAB_LAYERS = 2,
    LAB_SEQS = 2,
    LAB_BLOCKS = 8, /* of the pool; four a sequence */
    LAB_ROWS = 24,
    LAB_MATRICES = 12
};

typedef struct lab {
    qn_kv_layer kv[LAB_LAYERS];
    uint8_t *pool;
    size_t pool_bytes;
    uint32_t registers[8];
    float *plain[LAB_MATRICES], *gain, *bias, *inv_freq, *embed_rows;
    void *packed[LAB_MATRICES];
    uint8_t *panels[LAB_MATRICES]; /* of those that have them, in the 16-bit mode */
    qn_matrix w[LAB_MATRICES];     /* 0 table, 1 head, then pairs of shapes in two formats */
    qn_rope rope, rope2;
    qn_graph_options opt;
} lab;

enum {
    LAB_TABLE,
    LAB_HEAD,
    LAB_MM,
    LAB_MM_Q,
    LAB_MI,
    LAB_MI_Q,
    LAB_IM,
    LAB_IM_Q,
    LAB_MK,
    LAB_MK_Q
};

/* Owned (lab_close); the data are the same each time. */
lab *lab_open(qn_act_mode mode);
void lab_close(lab *l);
/* Cache, registers: as after open. */
void lab_reset(lab *l);

/* A step of n rows: two sequences, rows alternate, positions follow `past` cached ones; logit rows are
 * the last rows. Row 1 reads token register 2, row 2 an embedding row. */
void lab_fill(qn_step *s, uint32_t n_rows, uint32_t n_logits, uint32_t past);

qn_device *lab_device(qt *t, unsigned lanes);

/* Records a random graph; the same one for equal seeds. */
typedef struct lab_random {
    lab *l;
    uint64_t seed;
    uint32_t n_ops;
    qn_hook_fn *hook;
    void *ctx;
} lab_random;
void lab_record(const void *random, qn_graph *g, const qn_plan_key *key);

/* Plan of a recorder; NULL with a failed check. Owned. */
qn_plan *lab_plan(qt *t, lab *l, qn_device *d, qn_record_fn *record, const void *model,
                  const qn_plan_key *key);

/* Memory that one op touches, from its args alone: slab, a layer's cache (its first byte stands for
 * it), registers. Fills out[] and returns how many. */
typedef struct lab_access {
    uintptr_t begin, end;
    bool write;
} lab_access;
enum { LAB_ACCESSES = 16 };
uint32_t lab_accesses(lab_access out[LAB_ACCESSES], const qn_plan *p, uint32_t op);
/* True if two ops must not run at once. */
bool lab_conflict(const qn_plan *p, uint32_t a, uint32_t b);

#endif
