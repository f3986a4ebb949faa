/* SPDX-License-Identifier: Apache-2.0 */
/* hub_int.h - what the files of this layer share: reading a file once, and what a scan finds. */
#ifndef QN_HUB_HUB_INT_H
#define QN_HUB_HUB_INT_H
#include <sys/stat.h>

#include "format/stream.h"
#include "hub/hub.h"

/* dir/name, owned (qn_free); NULL without memory. */
char *qn_hub_join(const char *dir, const char *name);
/* A regular file for reading. Errors: NOTFOUND, INVAL (another kind of thing), IO. */
qn_code qn_hub_open_file(int *fd, struct stat *st, const char *path, qn_err *err);
/* All bytes of fd, named `path` in messages: into the digest and, if there is one, into `to`. p->done
 * goes up by each piece and is told. Errors: IO, NOMEM, CANCELLED. */
qn_code qn_hub_read_through(char sha256[65], int fd, const char *path, qn_stream *to,
                            const qn_hub_report *report, quern_get_progress *p, qn_err *err);

/* -- scan.c ------------------------------------------------------------------------------------ */

typedef struct qn_hub_found {  /* texts are the scan's */
    const char *name;          /* "starter", "FILE", "ORG/NAME", "ORG/NAME:FILE" */
    const char *file;          /* the file's name without ".gguf", or "" for a folder */
    const char *repo;          /* "ORG/NAME" of a file in a folder, or NULL */
    const char *path;          /* file or folder, as quern_model_open takes it */
    const char *dir;           /* the folder that describes it (README.md) */
    const char *revision;      /* of a snapshot, or NULL */
    const qn_hub_entry *entry; /* of the catalogue, or NULL */
    bool canonical;            /* the one that its name means */
    struct qn_hub_found *next;
} qn_hub_found;

typedef struct qn_hub_scan {
    qn_arena texts;
    qn_hub_found *first, **last;
    size_t n;
} qn_hub_scan;

/* All that looks like a model, in the order of precedence: HOME/models, HOME/hub, the cache. Folders
 * that are missing or may not be read are empty. Errors: IO (HOME/models), NOMEM (also for
 * absurdly many). */
qn_code qn_hub_scan_open(qn_hub_scan *s, const qn_hub *h, qn_err *err);
void qn_hub_scan_close(qn_hub_scan *s); /* zeroed is fine */

/* The model's name, or its file's, holds the query; ASCII case is ignored. */
bool qn_hub_holds(const qn_hub_found *f, const char *query);

/* -- describe.c -------------------------------------------------------------------------------- */

/* Fills *m, its texts in `texts`; *is_model false for what says that it is something else. Errors: the
 * readers', NOMEM. */
qn_code qn_hub_describe(bool *is_model, quern_store_model *m, qn_arena *texts,
                        qn_hub_has_family *has_family, const qn_hub_found *f, qn_err *err);

#endif
