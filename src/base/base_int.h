/* SPDX-License-Identifier: Apache-2.0 */
/* base_int.h - what the files of base share among themselves and with their tests. */
#ifndef QN_BASE_INT_H
#define QN_BASE_INT_H
#include "base/memory.h"
#include "base/str.h"

/* Counts from a tree of /proc and /sys under `root` ("" for the real one), so that a test can draw
 * its own machine. */

/* Among cpus 0..n-1 with usable[i] != 0: those that are the lowest usable of their core, by
 * sys/devices/system/cpu/cpuN/topology/thread_siblings_list; a cpu without that file counts. */
unsigned qn_cpu_cores_in(const char *root, const uint8_t *usable, unsigned n);
/* Whole processors that the cgroups of this process allow, rounded up, along proc/self/cgroup to the
 * top (version 2: cpu.max, version 1: cpu.cfs_quota_us); UINT32_MAX when none limits. */
unsigned qn_cpu_quota_in(const char *root);
/* As qn_memory_look. */
qn_memory_room qn_memory_look_in(const char *root);

#endif
