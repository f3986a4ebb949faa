/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_int.h"
#include "qt.h"

/* Writes root/path with its directories. */
static void draw(const char *root, const char *path, const char *text)
{
    char cmd[1200], full[1000];
    snprintf(full, sizeof full, "%s/%s", root, path);
    char *slash = strrchr(full, '/');
    *slash = '\0';
    snprintf(cmd, sizeof cmd, "mkdir -p '%s'", full);
    *slash = '/';
    FILE *f = system(cmd) == 0 ? fopen(full, "w") : NULL;
    if (!f) return;
    fputs(text, f);
    fclose(f);
}

static void found(qt *t, const char *root, uint64_t total, uint64_t available, const char *limit)
{
    const qn_memory_room r = qn_memory_look_in(root);
    QT_OKF(t, r.total == total && r.available == available && strcmp(r.limit, limit) == 0,
           "%llu of %llu by %s, expected %llu of %llu by %s", (unsigned long long)r.available,
           (unsigned long long)r.total, r.limit, (unsigned long long)available,
           (unsigned long long)total, limit);
}

static void the_tightest_limit_counts(qt *t)
{
    char root[600];
    snprintf(root, sizeof root, "%s/two", qt_tmp());
    found(t, root, UINT64_MAX, UINT64_MAX, "memory");
    draw(root, "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  600 kB\n");
    found(t, root, 1000 << 10, 600 << 10, "memory");
    draw(root, "proc/self/cgroup", "0::/a/b\n");
    draw(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
    draw(root, "sys/fs/cgroup/a/b/memory.current", "5\n");
    found(t, root, 1000 << 10, 600 << 10, "memory");
    draw(root, "sys/fs/cgroup/a/memory.max", "500000\n");
    draw(root, "sys/fs/cgroup/a/memory.current", "300000\n");
    found(t, root, 500000, 200000, "cgroup");
    draw(root, "sys/fs/cgroup/a/memory.stat",
         "anon 1\ninactive_file 60000\nactive_file 40000\nfile 9\n");
    found(t, root, 500000, 300000, "cgroup");
    draw(root, "sys/fs/cgroup/a/memory.current", "700000\n");
    draw(root, "sys/fs/cgroup/a/memory.stat", "anon 1\n");
    found(t, root, 500000, 0, "cgroup");
}

static void the_first_version_of_cgroups_counts_too(qt *t)
{
    char root[600];
    snprintf(root, sizeof root, "%s/one", qt_tmp());
    draw(root, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n");
    draw(root, "proc/self/cgroup", "5:cpu:/m\n4:memory:/box\n1:name=systemd:/\n");
    draw(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    draw(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
    found(t, root, 1000 << 10, 600 << 10, "memory");
    draw(root, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", "100000\n");
    draw(root, "sys/fs/cgroup/memory/box/memory.usage_in_bytes", "90000\n");
    draw(root, "sys/fs/cgroup/memory/box/memory.stat",
         "cache 1\ntotal_inactive_file 50000\ntotal_active_file 1000\n");
    found(t, root, 100000, 61000, "cgroup");
}

static void this_machine_has_some_memory(qt *t)
{
    const qn_memory_room r = qn_memory_look();
    QT_OK(t, r.available > 0 && r.available <= r.total && r.limit);
}

QT_MAIN(QT(the_tightest_limit_counts), QT(the_first_version_of_cgroups_counts_too),
        QT(this_machine_has_some_memory))
