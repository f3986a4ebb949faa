/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_linux.c - how many processors this process may keep busy: affinity, topology, cgroup quota. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base_int.h"
#include "base/cgroup_int.h"
#include "base/cpu.h"
#include "base/file.h"

enum { MAX_CPUS = 8192, PATH_BYTES = 4608, MAX_FILE = 1 << 16 };

static bool read_text(uint8_t **out, size_t *n, const char *path)
{
    return qn_file_read(out, n, path, MAX_FILE, NULL) == QN_OK;
}

/* The lowest usable cpu of a list like "0-1,64-65". */
static unsigned lowest(qn_str list, const uint8_t *usable, unsigned n)
{
    qn_str rest = qn_str_trim(list), part;
    unsigned best = UINT32_MAX;
    while (qn_str_split(&part, &rest, ',')) {
        const size_t dash = qn_str_find(part, QN_STR("-"), 0);
        uint64_t a = 0, b = 0;
        if (!qn_str_parse_u64(&a, qn_str_slice(part, 0, dash))) continue;
        b = a;
        if (dash != SIZE_MAX && !qn_str_parse_u64(&b, qn_str_slice(part, dash + 1, part.n)))
            continue;
        for (uint64_t c = a; c <= b && c < n; c++)
            if (usable[c] && c < best) best = (unsigned)c;
    }
    return best;
}

unsigned qn_cpu_cores_in(const char *root, const uint8_t *usable, unsigned n)
{
    unsigned cores = 0;
    for (unsigned c = 0; c < n; c++) {
        char path[PATH_BYTES];
        uint8_t *text = NULL;
        size_t len = 0;
        if (!usable[c]) continue;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
                 root, c);
        const bool told = read_text(&text, &len, path);
        const unsigned low = told ? lowest((qn_str){(const char *)text, len}, usable, n) : c;
        if (low == c || low == UINT32_MAX) cores++;
        qn_free(text);
    }
    return cores ? cores : 1;
}

/* Processors of quota / period rounded up; UINT32_MAX when the numbers set no limit. */
static unsigned whole(qn_str quota, qn_str period)
{
    uint64_t q = 0, p = 0;
    if (!qn_str_parse_u64(&q, quota) || !qn_str_parse_u64(&p, period)) return UINT32_MAX;
    if (q == 0 || p == 0 || q / p >= UINT32_MAX - 1)
        return UINT32_MAX; /* "max" and -1 do not parse */
    return (unsigned)(q / p + (q % p != 0));
}

static unsigned quota_v2(const char *dir)
{
    char path[PATH_BYTES];
    uint8_t *text = NULL;
    size_t n = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/cpu.max", dir) >= sizeof path) return UINT32_MAX;
    if (!read_text(&text, &n, path)) return UINT32_MAX;
    qn_str period = qn_str_trim((qn_str){(const char *)text, n}), quota = period;
    (void)qn_str_split(&quota, &period, ' ');
    const unsigned cpus = whole(quota, period);
    qn_free(text);
    return cpus;
}

static unsigned quota_v1(const char *dir)
{
    char path[PATH_BYTES];
    uint8_t *quota = NULL, *period = NULL;
    size_t nq = 0, np = 0;
    unsigned cpus = UINT32_MAX;
    if ((size_t)snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir) < sizeof path &&
        read_text(&quota, &nq, path) &&
        (size_t)snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir) < sizeof path &&
        read_text(&period, &np, path))
        cpus = whole(qn_str_trim((qn_str){(const char *)quota, nq}),
                     qn_str_trim((qn_str){(const char *)period, np}));
    qn_free(quota);
    qn_free(period);
    return cpus;
}

static void take_quota(void *best, const char *dir, bool v2)
{
    unsigned *least = best;
    const unsigned cpus = v2 ? quota_v2(dir) : quota_v1(dir);
    if (cpus < *least) *least = cpus;
}

unsigned qn_cpu_quota_in(const char *root)
{
    unsigned best = UINT32_MAX;
    qn_cgroup_walk(root, "cpu", take_quota, &best);
    return best;
}

/* The affinity mask as bytes; MAX_CPUS is what Debian's kernels are built for. */
static bool affinity(uint8_t usable[MAX_CPUS])
{
    cpu_set_t set[MAX_CPUS / CPU_SETSIZE]; /* the S forms below treat them as one */
    CPU_ZERO_S(sizeof set, set);
    const bool ok = sched_getaffinity(0, sizeof set, set) == 0;
    for (size_t c = 0; c < MAX_CPUS; c++) usable[c] = ok && CPU_ISSET_S(c, sizeof set, set);
    return ok;
}

unsigned qn_cpu_cores(void)
{
    uint8_t usable[MAX_CPUS];
    if (!affinity(usable)) return 1;
    const unsigned cores = qn_cpu_cores_in("", usable, MAX_CPUS), quota = qn_cpu_quota_in("");
    return quota < cores ? quota : cores;
}

unsigned qn_cpu_threads(void)
{
    uint8_t usable[MAX_CPUS];
    unsigned n = 0;
    if (!affinity(usable)) return 1;
    for (size_t c = 0; c < MAX_CPUS; c++) n += usable[c];
    return n ? n : 1;
}
