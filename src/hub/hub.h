/* SPDX-License-Identifier: Apache-2.0 */
/* hub.h - the local store: where models lie, what is there, and how one gets there.
 *
 *     name ─► catalogue or ORG/NAME ─► manifest (files, sizes, digests) ─► blobs ─► published by rename
 *
 * scan.c knows what lies where, find.c and list.c (with describe.c) answer from that; import.c takes a file that is
 * here, pull.c fetches what a hub has.
 *
 * Thread: any; nothing is kept between calls.
 */
#ifndef QN_HUB_HUB_H
#define QN_HUB_HUB_H
#include "base/arena.h"
#include "base/str.h"
#include "dep/hash.h"
#include "quern/store.h"

typedef struct qn_hub { /* what a store was opened with; texts are its owner's */
    char *home;         /* HOME/models is ours, and HOME/hub where there is no cache */
    char *cache;        /* of Hugging Face tools; NULL: none */
    char *endpoint;     /* without a slash at its end */
    char *token;        /* NULL: none */
    uint64_t reserve;   /* bytes that stay free */
    uint32_t retry_ms;  /* first wait before asking again; 0: half a second */
    uint32_t stall_ms;  /* without a byte until a download gives up; 0: a minute */
} qn_hub;

typedef struct qn_hub_entry { /* a model that has a short name: one file of one repository */
    const char *name, *repo, *revision, *file;
    const char *sha256;  /* 64 lower-case hex digits; NULL: whatever the file has (import only) */
    const char *license; /* NULL: not known */
    uint64_t bytes;      /* 0: not known */
} qn_hub_entry;
const qn_hub_entry *qn_hub_catalogue(size_t *n);         /* catalogue.def */
const qn_hub_entry *qn_hub_find_entry(const char *name); /* NULL: none; ASCII case is ignored */

typedef struct qn_hub_report { /* to whom progress is told, and who may stop it */
    int (*tell)(void *ctx, const quern_get_progress *p);
    void *ctx;
} qn_hub_report;
/* Tells *p; CANCELLED when that says so. report and its function may be NULL. */
qn_code qn_hub_tell(const qn_hub_report *report, const quern_get_progress *p, qn_err *err);

/* -- place.c: names, folders, room, and what is known of a file -------------------------------- */

/* "ORG/NAME": two parts of letters, digits, '-', '_' and '.', neither of them "." or "..", nor with
 * "--" or ".." inside, at most 96 bytes each. */
bool qn_hub_is_repo(const char *name);
/* A relative path that stays below where it begins: no empty part, no "." or "..", no backslash, no
 * control character, no part that begins with '.' or is longer than 255 bytes. */
bool qn_hub_is_inside(const char *path);
/* HOME/models/FILE, owned (qn_free). Errors: INVAL (the file is not below it), NOMEM. */
qn_code qn_hub_model_path(char **path, const qn_hub *h, const char *file, qn_err *err);
/* mkdir -p, mode 0777 less umask. Errors: IO naming the folder and what to do. */
qn_code qn_hub_make_folders(const char *path, qn_err *err);
/* LIMIT with all numbers when fewer than need + reserve bytes are free where path lies (its nearest
 * existing parent). */
qn_code qn_hub_check_room(const qn_hub *h, const char *path, uint64_t need, qn_err *err);

/* FILE.sha256 holds "DIGEST SIZE MTIME" of a file whose bytes were digested: as long as size and time
 * are those, nobody reads the bytes again. */
void qn_hub_write_stamp(const char *path, const char *sha256); /* best effort: it saves time only */
/* The digest of the file: from the stamp, else of the bytes (and stamped then); p carries the names
 * for progress, its done and total are set. Errors: NOTFOUND, INVAL (no regular file), IO, NOMEM,
 * CANCELLED. */
qn_code qn_hub_digest(char sha256[65], const char *path, const qn_hub_report *report,
                      quern_get_progress *p, qn_err *err);

/* -- import.c ---------------------------------------------------------------------------------- */

/* The file `from` becomes HOME/models/entry->file: read once, digest and copy in one pass, fsync,
 * rename. An existing file of the right digest is left; one of another digest is replaced if the
 * entry names a digest, else it is in the way (INVAL). Errors: as quern_store_get. */
qn_code qn_hub_import(char **path, const qn_hub *h, const qn_hub_entry *e, const char *from,
                      const qn_hub_report *report, qn_err *err);

/* -- pull.c ------------------------------------------------------------------------------------ */

/* One file of the catalogue into HOME/models, resumed, verified. */
qn_code qn_hub_pull_entry(char **path, const qn_hub *h, const qn_hub_entry *e,
                          const qn_hub_report *report, qn_err *err);
/* A repository into the cache (into HOME/hub, laid out the same, if cache is NULL); *path is the
 * snapshot's folder, or its only GGUF file. */
qn_code qn_hub_pull_repo(char **path, const qn_hub *h, const char *repo, const char *revision,
                         const char *include, const qn_hub_report *report, qn_err *err);

/* -- card.c ------------------------------------------------------------------------------------ */

/* The value of a line "license: VALUE" between the lines "---" that a README begins with, a view of
 * text; empty: none. */
qn_str qn_hub_card_license(qn_str text);

/* -- find.c, list.c ---------------------------------------------------------------------------- */

qn_code qn_hub_find(char **path, const qn_hub *h, const char *name, qn_err *err);

struct quern_store_list {
    qn_arena texts;
    quern_store_model *model;
    size_t n;
};
/* Does this build have the family of this model type? */
typedef bool qn_hub_has_family(qn_str type);
/* has_family NULL: none. */
qn_code qn_hub_list(quern_store_list **out, const qn_hub *h, const char *query,
                    qn_hub_has_family *has_family, qn_err *err);
void qn_hub_list_free(quern_store_list *l); /* NULL is fine */

#endif
