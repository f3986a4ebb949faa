/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - models out of a hub. This build has no network. */
#include "hub/hub.h"

qn_code qn_hub_pull_entry(char **path, const qn_hub *h, const qn_hub_entry *e,
                          const qn_hub_report *report, qn_err *err)
{
    (void)h, (void)report;
    *path = NULL;
    return qn_fail(err, QN_E_UNSUPPORTED, "%s: this build cannot download", e->name);
}

qn_code qn_hub_pull_repo(char **path, const qn_hub *h, const char *repo, const char *revision,
                         const char *include, const qn_hub_report *report, qn_err *err)
{
    (void)h, (void)revision, (void)include, (void)report;
    *path = NULL;
    return qn_fail(err, QN_E_UNSUPPORTED, "%s: this build cannot download", repo);
}
