/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a file written piece by piece that appears whole or not at all.
 *
 *     open: PATH.tmp-XXXXXXXXXXXX    put ...    commit: fsync, rename to PATH, fsync the folder
 *
 * base/file.h does this for bytes that are in memory; a model is not.
 *
 * Owner:  the caller embeds the struct. Thread: one at a time.
 */
#ifndef QN_FORMAT_STREAM_H
#define QN_FORMAT_STREAM_H
#include "base/status.h"

typedef struct qn_stream { /* private but for total */
    char *path, *tmp;
    uint8_t *buffer;
    size_t used;
    uint64_t total; /* bytes put so far */
    int fd;         /* -1 when closed */
} qn_stream;

/* Errors: IO, NOMEM; *s is empty on failure. */
qn_code qn_stream_open(qn_stream *s, const char *path, qn_err *err);
qn_code qn_stream_put(qn_stream *s, const void *bytes, size_t n, qn_err *err);
/* Zeros up to a multiple of `alignment`. */
qn_code qn_stream_pad(qn_stream *s, uint64_t alignment, qn_err *err);
/* The file is under its name, or the error says why not; then only drop is left to call. */
qn_code qn_stream_commit(qn_stream *s, qn_err *err);
/* Removes what was not committed and frees; fine after a failed open and twice. */
void qn_stream_drop(qn_stream *s);

#endif
