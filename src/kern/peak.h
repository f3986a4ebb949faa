/* SPDX-License-Identifier: Apache-2.0 */
/* peak.h - what bounds every kernel on a machine: loops that do nothing but arithmetic in registers, and
 * loops that do nothing but read.
 *
 * An arithmetic loop has enough independent chains to hide the latency of its instruction and touches no
 * memory, so its rate is the issue rate of the execution units. An operation is one multiplication or one
 * addition of a product sum: a fused multiply-add of 16 lanes counts 32.
 *
 * Thread: any; several may run the same loop.
 */
#ifndef QN_KERN_PEAK_H
#define QN_KERN_PEAK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum qn_peak_kind { /* of the factors; sums are f32, or int32 for int8 */
                            QN_PEAK_F32,
                            QN_PEAK_F16,
                            QN_PEAK_BF16,
                            QN_PEAK_INT8,
                            QN_PEAK_KINDS
} qn_peak_kind;

typedef struct qn_peak {
    const char *how; /* the instruction and its width; NULL ends a list */
    qn_peak_kind kind;
    uint32_t needs; /* CPU feature bits (base/cpu.h) */
    double ops;     /* of one round */
    void (*run)(uint64_t rounds);
} qn_peak;

/* The i-th loop of this build, or NULL past the last; several may be of one kind, then the fastest that
 * the machine can run counts. */
const qn_peak *qn_peak_at(size_t i);

enum { QN_PEAK_READ_STEP = 1024 };
/* Reads p[0, n) once, n a multiple of QN_PEAK_READ_STEP, p 64-aligned, with the widest loads that `features` allows. The
 * result depends on all bytes. */
uint64_t qn_peak_read(const void *p, size_t n, uint32_t features);

#endif
