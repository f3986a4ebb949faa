/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - what a hub says is in a repository, and which of it a model needs.
 *
 * The text comes from outside: names must stay below the folder, and a file that is to be fetched must
 * have a size and a digest.
 *
 * Thread: any, one manifest at a time.
 */
#ifndef QN_HUB_MANIFEST_H
#define QN_HUB_MANIFEST_H
#include "base/arena.h"
#include "base/str.h"

enum { QN_HUB_MAX_MANIFEST = 16 << 20, QN_HUB_MAX_LISTED = 100000, QN_HUB_MAX_FILES = 4096 };

typedef struct qn_hub_file {
    const char *path; /* below the repository, '/' between its parts; the manifest's */
    char digest[65];  /* hex; "": the hub names none */
    bool sha256;      /* of the bytes; else git's name of them */
    uint64_t bytes;   /* UINT64_MAX: not said */
} qn_hub_file;

typedef struct qn_hub_manifest {
    qn_arena texts;
    char commit[41];
    qn_hub_file *file; /* by path */
    size_t n;
} qn_hub_manifest;

/* Reads the answer to GET /api/models/ORG/NAME/revision/REV?blobs=true. Errors: FORMAT, LIMIT, NOMEM;
 * then the manifest is empty. Release with close. */
qn_code qn_hub_manifest_read(qn_hub_manifest *m, const char *text, size_t n, qn_err *err);
void qn_hub_manifest_close(qn_hub_manifest *m); /* zeroed is fine */

/* Keeps the files that match the pattern; without one, those that a model needs: safetensors, or the only
 * GGUF file where there are none, and what describes them. Errors: INVAL (several GGUF files, or
 * nothing matches: what there is is named with sizes), UNSUPPORTED (weights of other formats only),
 * FORMAT (a kept file without size or digest), LIMIT. */
qn_code qn_hub_manifest_choose(qn_hub_manifest *m, const char *include, qn_err *err);
/* Of the files; saturates. */
uint64_t qn_hub_manifest_bytes(const qn_hub_manifest *m);

/* '*' is any text, '/' included, '?' any one byte. */
bool qn_hub_matches(const char *pattern, const char *text);

#endif
