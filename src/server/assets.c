/* SPDX-License-Identifier: Apache-2.0 */
/* assets.c - lookup in the generated table. A handful of files: a walk is all it takes.
 *
 * Thread: any.
 */
#include "server/assets.h"

const qn_asset *qn_asset_find(qn_str path)
{
    for (const qn_asset *a = qn_assets; a->path; a++)
        if (qn_str_eq_z(path, a->path)) return a;
    return NULL;
}

bool qn_asset_matches(const qn_asset *a, qn_str if_none_match)
{
    qn_str tag;
    while (qn_str_split(&tag, &if_none_match, ',')) {
        tag = qn_str_trim(tag);
        if (qn_str_has_prefix(tag, QN_STR("W/"))) tag = qn_str_slice(tag, 2, tag.n);
        if (qn_str_eq_z(tag, "*") || qn_str_eq_z(tag, a->etag)) return true;
    }
    return false;
}
