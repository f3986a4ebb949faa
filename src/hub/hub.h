/* SPDX-License-Identifier: Apache-2.0 */
/* hub.h - the local store: where models lie, what is there, and how one gets there.
 *
 *     name ─► catalogue or ORG/NAME ─► manifest (files, sizes, digests) ─► blobs ─► published by rename
 *
 * local.c finds and lists, import.c takes a file that is here, pull.c fetches what a hub has.
 *
 * Thread: any; nothing is kept between calls.
 */
#ifndef QN_HUB_HUB_H
#define QN_HUB_HUB_H
#include "base/str.h"
#include "dep/hash.h"
#include "quern/store.h"

typedef struct qn_hub { /* what a store was opened with; texts are its owner's */
    char *home;         /* HOME/models is ours */
    char *cache;        /* of Hugging Face tools; NULL: none */
    char *endpoint;     /* without a slash at its end */
    char *token;        /* NULL: none */
    uint64_t reserve;   /* bytes that stay free */
} qn_hub;

typedef struct qn_hub_entry { /* a model that has a short name: one file of one repository */
    const char *name, *repo, *revision, *file, *sha256, *license;
    uint64_t bytes;
} qn_hub_entry;
const qn_hub_entry *qn_hub_catalogue(size_t *n); /* catalogue.def */
const qn_hub_entry *qn_hub_find_entry(const char *name); /* NULL: none; ASCII case does not matter */

typedef struct qn_hub_report { /* to whom progress is told, and who may stop it */
    int (*tell)(void *ctx, const quern_get_progress *p);
    void *ctx;
} qn_hub_report;

/* "NAME is not below the path": HOME/models/NAME, owned (qn_free). Errors: NOMEM. */
qn_code qn_hub_model_path(char **path, const qn_hub *h, const char *file, qn_err *err);
/* mkdir -p, mode 0777 less umask. Errors: IO naming the folder. */
qn_code qn_hub_make_folders(const char *path, qn_err *err);
/* LIMIT with both numbers when fewer than need + reserve bytes are free where path lies (its nearest
 * existing parent). */
qn_code qn_hub_check_room(const qn_hub *h, const char *path, uint64_t need, qn_err *err);

/* import.c: the file `from` becomes HOME/models/entry->file. Read once, digest and copy in one pass, fsync, rename.
 * An existing file of the right digest is left. */
qn_code qn_hub_import(char **path, const qn_hub *h, const qn_hub_entry *e, const char *from,
                      const qn_hub_report *report, qn_err *err);

/* pull.c: one file of the catalogue into HOME/models, resumed, verified. */
qn_code qn_hub_pull_entry(char **path, const qn_hub *h, const qn_hub_entry *e,
                          const qn_hub_report *report, qn_err *err);
/* pull.c: a repository into the cache (into HOME/hub, laid out the same, if cache is NULL); *path is the snapshot's folder,
 * or its only GGUF file. */
qn_code qn_hub_pull_repo(char **path, const qn_hub *h, const char *repo, const char *revision,
                         const char *include, const qn_hub_report *report, qn_err *err);

/* local.c. */
qn_code qn_hub_find(char **path, const qn_hub *h, const char *name, qn_err *err);
struct quern_store_list;
qn_code qn_hub_list(struct quern_store_list **out, const qn_hub *h, const char *query, qn_err *err);

#endif
