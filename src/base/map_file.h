/* SPDX-License-Identifier: Apache-2.0 */
/* map_file.h - a file as read-only memory.
 *
 * Pages are shared with the page cache: opening a 40 GB model costs address space only. A file that
 * somebody truncates later raises SIGBUS on access: publish files by rename (base/file.h).
 *
 * Owner:  the caller embeds the struct; data is borrowed from it until close.
 * Thread: open and close by one thread; the bytes by any.
 */
#ifndef QN_BASE_MAP_FILE_H
#define QN_BASE_MAP_FILE_H
#include "base/status.h"

typedef struct qn_mapping {
    const uint8_t *data; /* page-aligned; of an empty file: not NULL, nothing to read */
    size_t len;          /* bytes */
} qn_mapping;

typedef enum qn_map_advice {
    QN_MAP_WILLNEED, /* start reading these pages */
    QN_MAP_DONTNEED  /* drop them from this process; a later access reads them again */
} qn_map_advice;

/* Errors: NOTFOUND, IO (system), INVAL (directory or other irregular file), LIMIT (larger than the
 * address space); each names the file. *m is empty on failure. */
qn_code qn_map_open(qn_mapping *m, const char *path, qn_err *err);
void qn_map_close(qn_mapping *m); /* zeroed or closed is fine */
/* Advice only: never fails, may do nothing. The range is clamped to the file. WILLNEED covers every
 * page it touches, DONTNEED whole pages inside it only. */
void qn_map_advise(const qn_mapping *m, size_t offset, size_t len, qn_map_advice advice);

#endif
