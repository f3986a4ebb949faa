/* SPDX-License-Identifier: Apache-2.0 */
/* kern.h - the kernel table, its variants and their selection.
 *
 * kern.def lists the kernels; each variant (ref, generic, avx2, avx512 ...) fills the entries for
 * which it has something better. Selection is an overlay made once, masked by the features that are
 * there and by what the caller allows. `ref` is the double-precision definition, for tests only;
 * `generic` is the portable one that runs anywhere and has the same bits as every faster one.
 *
 * Thread: constant after start.
 */
#ifndef QN_KERN_KERN_H
#define QN_KERN_KERN_H
#include "base/span.h"
#include "kern/args.h"

typedef enum qn_kern_id {
#define X(name, tol, unit) QN_K_##name,
#include "kern/kern.def"
#undef X
    QN_K_COUNT
} qn_kern_id;

typedef struct qn_kern_table { /* NULL: this variant has nothing better than the one below */
#define X(name, tol, unit) void (*name)(const qn_##name##_args *args, qn_span units, void *scratch);
#include "kern/kern.def"
#undef X
} qn_kern_table;

typedef struct qn_kern_variant {
    const char *name; /* "ref", "generic", "avx2" and so on (select.c): what QUERN_ISA takes */
    uint32_t needs;   /* CPU feature bits (base/cpu.h) its files were built for */
    const qn_kern_table *table; /* ref and generic have every entry */
} qn_kern_variant;

extern const qn_kern_variant qn_kern_variants[]; /* 0 is ref, 1 is generic, better ones follow */
extern const size_t qn_kern_n_variants;

/* generic overlaid by every variant whose needs lie in `allowed` (detected features AND the mask). */
qn_kern_table qn_kern_select(uint32_t allowed);
/* Name of the best variant that `allowed` admits. */
const char *qn_kern_best(uint32_t allowed);

/* Units of a kernel for args as they stand, and the scratch bytes one lane needs at most. */
uint32_t qn_kern_units(qn_kern_id id, const void *args);
size_t qn_kern_scratch(qn_kern_id id, const void *args);
/* Calls table entry `id` on args of its type. */
void qn_kern_call(const qn_kern_table *t, qn_kern_id id, const void *args, qn_span units,
                  void *scratch);
const char *qn_kern_name(qn_kern_id id);

/* Version of the order of sums: part of the numerics id. Any change of bits raises it. */
enum { QN_KERN_ORDER = 3 };

#endif
