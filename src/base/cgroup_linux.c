/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_linux.c - /proc/self/cgroup and the way from there up to the mounts. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/cgroup_int.h"
#include "base/file.h"

enum { PATH_BYTES = 4608, MAX_FILE = 1 << 16 };

/* Inside a container `group` may name a directory that is not visible; its parents still are. */
static void climb(const char *mount, qn_str group, bool v2, qn_cgroup_fn *fn, void *ctx)
{
    for (;;) {
        char dir[PATH_BYTES];
        while (group.n && group.p[group.n - 1] == '/') group.n--;
        if ((size_t)snprintf(dir, sizeof dir, "%s%.*s", mount, QN_STR_ARG(group)) < sizeof dir)
            fn(ctx, dir, v2);
        if (group.n == 0) return;
        while (group.n && group.p[group.n - 1] != '/') group.n--;
    }
}

static bool lists(qn_str controllers, const char *controller)
{
    qn_str name;
    while (qn_str_split(&name, &controllers, ','))
        if (qn_str_eq_z(name, controller)) return true;
    return false;
}

void qn_cgroup_walk(const char *root, const char *controller, qn_cgroup_fn *fn, void *ctx)
{
    char path[PATH_BYTES];
    uint8_t *text = NULL;
    size_t n = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= sizeof path ||
        qn_file_read(&text, &n, path, MAX_FILE, NULL) != QN_OK)
        return;
    qn_str rest = {(const char *)text, n}, line, id, names;
    while (qn_str_split(&line, &rest, '\n')) { /* id:controllers:path */
        if (!qn_str_split(&id, &line, ':') || !qn_str_split(&names, &line, ':')) continue;
        const bool v2 = names.n == 0;
        if (!v2 && !lists(names, controller)) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s", root, v2 ? "" : "/",
                             v2 ? "" : controller) < sizeof path)
            climb(path, line, v2, fn, ctx);
    }
    qn_free(text);
}
