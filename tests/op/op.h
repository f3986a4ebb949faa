/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - one harness for all kernels and variants.
 *
 * A kernel's file lists its cases; each case is arguments plus one block of memory that holds all that
 * the kernel writes, with its starting contents. The harness runs a case on the reference, on the
 * portable variant and on every faster one and checks what each contract promises; a kernel file
 * knows nothing of variants.
 */
#ifndef QN_TESTS_OP_H
#define QN_TESTS_OP_H
#include "kern/kern.h"
#include "qt.h"

/* M(variant, arg) for each variant that this build may have beside the portable one. */
#if defined(__x86_64__)
#define OP_EACH_FASTER(M, arg) M(avx2, arg) M(avx2_vnni, arg) M(avx512_base, arg) M(avx512, arg)
#elif defined(__aarch64__)
#define OP_EACH_FASTER(M, arg) M(neon, arg) M(neon_dot, arg) M(neon_i8mm, arg)
#else
#define OP_EACH_FASTER(M, arg)
#endif

#define OP_PAD 777.0f /* starts where outputs go, and must stay where they do not */

typedef struct op_case {
    qn_kern_id id;
    const void *args;
    void *out;        /* everything that the kernel writes lies in these bytes */
    size_t out_bytes; /* a multiple of 4 */
    double tol;       /* SUM: times the largest; ELEM: ulps; EXACT: 0 */
    char what[160];   /* shape and so on, for messages */
    /* How `got` may differ from the reference; NULL: by tol, as f32. */
    void (*compare)(qt *t, const struct op_case *c, const void *got, const void *want);
} op_case;

typedef void op_visit(void *ctx, op_case *c);
typedef void op_list(op_visit *visit, void *ctx); /* visits every case of a kernel */

/* Indexed by the enum: a kernel without cases is a NULL, and a NULL is a failed test. */
extern op_list *const op_lists[QN_K_COUNT];
#define X(name, tol, unit) op_list op_each_##name;
#include "kern/kern.def"
#undef X

/* What holds for every case; k is the variant under test. */
void op_matches_ref(qt *t, const qn_kern_table *k, qn_kern_id id);
void op_has_generic_bits(qt *t, const qn_kern_table *k, qn_kern_id id);
void op_split_changes_nothing(qt *t, const qn_kern_table *k, qn_kern_id id);

/* The best variant of this machine whose name is given, or false after qt_skip. */
bool op_variant(qt *t, qn_kern_table *out, const char *name);
/* Calls `k` on all units of a case with guarded scratch. */
void op_run(const qn_kern_table *k, qn_kern_id id, const void *args, qn_span units);
qn_span op_all(qn_kern_id id, const void *args);

/* -- memory of one case: everything is freed by op_end ------------------------------------------- */
void *op_keep(size_t n);  /* uninitialised, 64-byte aligned */
void *op_bytes(size_t n); /* random bytes */
float *op_rand(size_t n); /* roughly normal */
float *op_fill(size_t n, float v);
uint32_t *op_u32(size_t n, uint32_t below); /* random numbers */
void op_end(void);

/* A random matrix of format fmt: valid blocks, scales of order 1 / sqrt(cols). */
qn_matrix op_matrix(qn_fmt fmt, uint32_t rows, uint32_t cols);
/* Lays w out in panels; false where its format has none. */
bool op_panels(qn_matrix *w);
/* n rows of w->cols values as the integer rows that products with w take. */
uint8_t *op_q_rows(const qn_matrix *w, qn_q_kind kind, const float *x, uint32_t n);

/* Lengths around the edges: +-1 around vectors, blocks and powers of two up to `most`. */
size_t op_edges(uint32_t *out, size_t room, uint32_t most);

#endif
