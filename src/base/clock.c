/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - clock_gettime in one number; 64 bits of nanoseconds last 584 years. */
#include "base/clock.h"

#include <time.h>

static uint64_t now(clockid_t id)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(id, &t); /* cannot fail for these two clocks */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t qn_clock_ns(void) { return now(CLOCK_MONOTONIC); }
uint64_t qn_clock_wall_ns(void) { return now(CLOCK_REALTIME); }
