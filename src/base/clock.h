/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - two clocks in nanoseconds. Thread: any. */
#ifndef QN_BASE_CLOCK_H
#define QN_BASE_CLOCK_H
#include <stdint.h>

uint64_t qn_clock_ns(void);      /* monotonic, from an arbitrary start: for durations */
uint64_t qn_clock_wall_ns(void); /* since 1970-01-01 UTC; may jump: for people and files */

#endif
