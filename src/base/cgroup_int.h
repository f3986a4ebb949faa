/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_int.h - the control groups that this process is in, of either version.
 *
 * Thread: any.
 */
#ifndef QN_BASE_CGROUP_INT_H
#define QN_BASE_CGROUP_INT_H
#include "base/str.h"

/* dir: a directory of the controller's hierarchy; may not be there. v2: of the unified hierarchy. */
typedef void qn_cgroup_fn(void *ctx, const char *dir, bool v2);

/* Calls fn for each directory from this process's group up to the mount, in each hierarchy that has
 * `controller` ("cpu", "memory"). root stands before "/proc" and "/sys": "" or a test's tree. */
void qn_cgroup_walk(const char *root, const char *controller, qn_cgroup_fn *fn, void *ctx);

#endif
