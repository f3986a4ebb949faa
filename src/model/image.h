/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - weights laid out anew, kept in a cache file that is mapped: a second start reads nothing.
 *
 *     [ header 128 B | table: one entry a matrix | pad | panels of matrix 0 | panels of matrix 1 | ... ]
 *
 * The panels are those of tensor/panel.h. Whose they are says the file's name: the source's digest and the
 * version of the layout; header and table say it again.
 *
 * Invariants:
 *  1 A file is published by rename after fsync; a reader sees all of it or none.
 *  2 An image is used only if header and table match their checksums, the source's digest and what would
 *    be written today; anything else is a miss: it is told in one log line and built anew. The panels
 *    themselves are not read for that: like the model's own file they are trusted once they are whole,
 *    and no value in them can lead a kernel out of its bounds.
 *  3 A directory that cannot be written, or a disk without room, costs the image, not the model.
 *
 * Owner:  qn_panels. Thread: immutable once open.
 */
#ifndef QN_MODEL_IMAGE_H
#define QN_MODEL_IMAGE_H
#include "base/log.h"
#include "base/map_file.h"
#include "dep/hash.h"
#include "tensor/format.h"

typedef struct qn_image qn_image;

typedef struct qn_image_entry { /* one matrix */
    uint32_t fmt, scale_fmt, rows, cols;
    uint64_t at, bytes; /* of its panels in the file; `at` a multiple of 64 */
} qn_image_entry;

/* Fills `panels`, bytes [0, total) of the file's panel part; entries[i].at counts from the file's start. */
typedef void qn_image_fill(void *ctx, uint8_t *file);

typedef struct qn_image_plan {
    const char *dir;
    qn_digest128 source;
    qn_image_entry *entries; /* fmt to cols and bytes given; qn_image_open lays out `at` */
    size_t n;
    qn_image_fill *fill;
    void *ctx;
    qn_logger *log;
} qn_image_plan;

/* Finds the image or builds it. *out is NULL with QN_OK where the directory or the disk refuses (logged).
 * Errors: NOMEM. */
qn_code qn_image_open(qn_image **out, const qn_image_plan *plan, qn_err *err);
void qn_image_close(qn_image *img);              /* NULL is fine */
const uint8_t *qn_image_data(const qn_image *i); /* the file from its start */
const char *qn_image_path(const qn_image *i);    /* borrowed */
bool qn_image_was_built(const qn_image *i);      /* by this open, not found */

#endif
