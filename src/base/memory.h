/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - how much memory this process may still take, from what the system says.
 *
 * Pages of files in the cache count as available, whoever put them there: the kernel gives them up
 * first. Mapped weights are such pages, so a model that is read already is not counted against itself.
 *
 * Thread: any.
 */
#ifndef QN_BASE_MEMORY_H
#define QN_BASE_MEMORY_H
#include "base/status.h"

typedef struct qn_memory_room {
    uint64_t total;     /* bytes of the machine, or of the tightest cgroup; UINT64_MAX: unknown */
    uint64_t available; /* bytes that can still be had; UINT64_MAX: unknown */
    const char *limit;  /* what sets it: "memory" or "cgroup"; for ever */
} qn_memory_room;

/* The least of MemAvailable and of what the cgroups of this process leave (version 1 and 2, all the way
 * up). Never fails: what cannot be read sets no limit. */
qn_memory_room qn_memory_look(void);

#endif
