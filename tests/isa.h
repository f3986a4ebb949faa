/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h - the level that QUERN_ISA forces on a test, by the names that the program takes. A level that
 * the machine lacks ends the run: it would pass without having been tested. */
#ifndef QN_TESTS_ISA_H
#define QN_TESTS_ISA_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kern/kern.h"

static inline uint32_t isa_allowed(void)
{
    const char *name = getenv("QUERN_ISA");
    uint32_t mask = 0;
    qn_err err = {0};
    if (qn_cpu_parse_isa(&mask, name, &err) != QN_OK) {
        fprintf(stderr, "QUERN_ISA: %s\n", err.msg);
        exit(2);
    }
    const char *best = qn_kern_best(mask & qn_cpu_features());
    if (name && *name && strcmp(name, "auto") != 0 && strcmp(name, best) != 0) {
        fprintf(stderr, "QUERN_ISA: this machine has %s, not %s\n", best, name);
        exit(2);
    }
    return mask;
}

#endif
