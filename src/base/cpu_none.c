/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_none.c - a processor without vector variants of ours. */
#include "base/cpu.h"

uint32_t qn_cpu_features(void) { return 0; }
