/* SPDX-License-Identifier: Apache-2.0 */
/* peak_int.h - the register-only loop as a macro, for files that are built for an instruction set. */
#ifndef QN_KERN_PEAK_INT_H
#define QN_KERN_PEAK_INT_H
#include "kern/peak.h"

#if defined(__x86_64__)
#define QN_PEAK_REG "+v"
#elif defined(__aarch64__)
#define QN_PEAK_REG "+w"
#else
#define QN_PEAK_REG "+m"
#endif

/* An empty statement that the compiler must believe to change a and b: it can neither join rounds nor
 * keep the sums anywhere but in registers. */
#define QN_PEAK_TOUCH(a, b) __asm__ volatile("" : QN_PEAK_REG(a), QN_PEAK_REG(b))

#define QN_PEAK_ZERO(p, zero) \
    p##0 = zero, p##1 = zero, p##2 = zero, p##3 = zero, p##4 = zero, p##5 = zero
#define QN_PEAK_STEP(p, step, x, y)                                            \
    p##0 = step(p##0, x, y), p##1 = step(p##1, x, y), p##2 = step(p##2, x, y); \
    p##3 = step(p##3, x, y), p##4 = step(p##4, x, y), p##5 = step(p##5, x, y)
#define QN_PEAK_TOUCH6(p)      \
    QN_PEAK_TOUCH(p##0, p##1); \
    QN_PEAK_TOUCH(p##2, p##3); \
    QN_PEAK_TOUCH(p##4, p##5)

/* static void name(uint64_t rounds): in each, every chain does acc = step(acc, x, y). 12 chains fit
 * where there are 16 registers; 24, where there are 32, hide more: a unit that is missed once is not
 * made up for. */
#define QN_PEAK_LOOP12(name, type, zero, one, step)                          \
    static void name(uint64_t rounds)                                        \
    {                                                                        \
        type x = one, y = one, QN_PEAK_ZERO(a, zero), QN_PEAK_ZERO(b, zero); \
        QN_PEAK_TOUCH(x, y);                                                 \
        for (uint64_t r = 0; r < rounds; r++) {                              \
            QN_PEAK_STEP(a, step, x, y);                                     \
            QN_PEAK_STEP(b, step, x, y);                                     \
            QN_PEAK_TOUCH6(a);                                               \
            QN_PEAK_TOUCH6(b);                                               \
        }                                                                    \
    }
#define QN_PEAK_LOOP24(name, type, zero, one, step)                          \
    static void name(uint64_t rounds)                                        \
    {                                                                        \
        type x = one, y = one, QN_PEAK_ZERO(a, zero), QN_PEAK_ZERO(b, zero); \
        type QN_PEAK_ZERO(c, zero), QN_PEAK_ZERO(d, zero);                   \
        QN_PEAK_TOUCH(x, y);                                                 \
        for (uint64_t r = 0; r < rounds; r++) {                              \
            QN_PEAK_STEP(a, step, x, y);                                     \
            QN_PEAK_STEP(b, step, x, y);                                     \
            QN_PEAK_STEP(c, step, x, y);                                     \
            QN_PEAK_STEP(d, step, x, y);                                     \
            QN_PEAK_TOUCH6(a);                                               \
            QN_PEAK_TOUCH6(b);                                               \
            QN_PEAK_TOUCH6(c);                                               \
            QN_PEAK_TOUCH6(d);                                               \
        }                                                                    \
    }

#define QN_PEAK_OPS(chains, lanes) (2.0 * (chains) * (lanes)) /* of a round */

extern const qn_peak qn_peaks_avx2[], qn_peaks_avx512[], qn_peaks_neon[];
uint64_t qn_peak_read_avx2(const void *p, size_t n);
uint64_t qn_peak_read_avx512(const void *p, size_t n);

#endif
