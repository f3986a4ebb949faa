/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - whole files: read with a ceiling, written so that a reader sees the old or the new one.
 *
 * Thread: any.
 */
#ifndef QN_BASE_FILE_H
#define QN_BASE_FILE_H
#include "base/status.h"

/* The bytes of a regular file, owned (free with qn_free), with a NUL behind them; *n without it.
 * Errors: NOTFOUND, IO, INVAL (not a regular file), LIMIT past max_bytes, NOMEM; each names the file.
 * *out is NULL on failure. */
qn_code qn_file_read(uint8_t **out, size_t *n, const char *path, size_t max_bytes, qn_err *err);
/* Writes a temporary file beside path, fsyncs it, renames it over path and fsyncs the directory.
 * Mode 0666 less umask. On failure the temporary is gone and path is as it
 * was, but for one case: the directory could not be synced, then the new file is in place and may not
 * survive a power cut. Errors: NOTFOUND (no such directory), IO, NOMEM; each names the file. */
qn_code qn_file_write(const char *path, const void *bytes, size_t n, qn_err *err);
/* The same with mode 0600: what only its owner should read. */
qn_code qn_file_write_private(const char *path, const void *bytes, size_t n, qn_err *err);
/* Something has this name, and be it a link that leads nowhere: then opening it tells what is wrong. */
bool qn_file_exists(const char *path);

#endif
