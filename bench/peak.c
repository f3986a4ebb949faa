/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c - arithmetic peak of one thread, written in assembly with registers named, so that no compiler
 * has a say: what `quern bench roofline` is checked against (bench/roofline).
 *
 *     cc -O2 bench/peak.c -o peak && ./peak      one line a kind: NAME OPERATIONS_PER_SECOND
 *
 * 24 chains in zmm0 to zmm23, factors in zmm24 and zmm25; best of 20 slices. x86-64 only; a kind that the
 * processor lacks is left out. */
#include <cpuid.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define CHAIN(insn, i) insn " %%zmm24, %%zmm25, %%zmm" #i "\n\t"
#define SIX(insn, a, b, c, d, e, f) \
    CHAIN(insn, a) CHAIN(insn, b) CHAIN(insn, c) CHAIN(insn, d) CHAIN(insn, e) CHAIN(insn, f)
/* clang-format off */
#define CHAINS(insn)                                                       \
    SIX(insn, 0, 1, 2, 3, 4, 5) SIX(insn, 6, 7, 8, 9, 10, 11)              \
    SIX(insn, 12, 13, 14, 15, 16, 17) SIX(insn, 18, 19, 20, 21, 22, 23)
/* clang-format on */
#define LOOP(name, insn)                                                                          \
    static void name(uint64_t rounds)                                                             \
    {                                                                                             \
        __asm__ volatile("vpxord %%zmm24, %%zmm24, %%zmm24\n\tvpxord %%zmm25, %%zmm25, %%zmm25\n" \
                         "1:\n\t" CHAINS(insn) "dec %0\n\tjnz 1b\n\tvzeroupper"                   \
                         : "+r"(rounds)::"cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",    \
                           "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",    \
                           "xmm14", "xmm15");                                                     \
    }
LOOP(f32, "vfmadd231ps")
LOOP(bf16, "vdpbf16ps")
LOOP(int8, "vpdpbusd")

static void measure(const char *name, void (*run)(uint64_t), double ops)
{
    enum { ROUNDS = 400000, SLICES = 20 };
    double most = 0;
    run(ROUNDS);
    for (int i = 0; i < SLICES; i++) {
        const double begin = now();
        run(ROUNDS);
        const double rate = ROUNDS * ops / (now() - begin);
        if (rate > most) most = rate;
    }
    printf("%s %.6g\n", name, most);
}

int main(void)
{
    unsigned a, b = 0, c = 0, d, b1, c1, d1, a1 = 0;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1);
    if (b >> 16 & 1) measure("f32", f32, 24 * 16 * 2);
    if (a1 >> 5 & 1) measure("bf16", bf16, 24 * 32 * 2);
    if (c >> 11 & 1) measure("int8", int8, 24 * 64 * 2);
    return 0;
}
