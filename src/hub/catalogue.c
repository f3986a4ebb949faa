/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c - the models that have a short name. */
#include <strings.h>

#include "hub/hub.h"

static const qn_hub_entry entries[] = {
#define X(name, repo, revision, file, bytes, sha256, license) \
    {name, repo, revision, file, sha256, license, bytes},
#include "hub/catalogue.def"
#undef X
};

const qn_hub_entry *qn_hub_catalogue(size_t *n)
{
    *n = QN_LEN(entries);
    return entries;
}

const qn_hub_entry *qn_hub_find_entry(const char *name)
{
    for (size_t i = 0; i < QN_LEN(entries); i++)
        if (strcasecmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}
