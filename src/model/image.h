/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - weights packed in a layout of our own, in a checksummed cache file that is mapped.
 *
 *     [ header 128 B | table: one entry a matrix | pad | rows of matrix 0 | rows of matrix 1 | ... ]
 *
 * Layout 1, "rows64": the same format, every row (and every row of scales and of biases) starting at
 * a multiple of 64 bytes. Kernels read it as they read the file, through other strides.
 *
 * Invariants:
 *  1 A file is published by rename after fsync; a reader sees all of it or none.
 *  2 An image is used only if header, table and data match their checksums and the source's digest;
 *    anything else is a miss: it is told in one log line and built anew.
 *  3 A directory that cannot be written costs the image, not the model: weights then stay mapped.
 *
 * Owner:  the model. Thread: immutable once open.
 */
#ifndef QN_MODEL_IMAGE_H
#define QN_MODEL_IMAGE_H
#include "base/log.h"
#include "model/weights.h"

typedef struct qn_image qn_image;

/* Finds or builds the image of `w` in `dir` and points the matrices of w at it. *out is NULL with
 * QN_OK where the directory refuses (logged). Errors: NOMEM. */
qn_code qn_image_open(qn_image **out, qn_weights *w, const char *dir, qn_digest128 source,
                      qn_logger *log, qn_err *err);
void qn_image_close(qn_image *img);           /* NULL is fine */
const char *qn_image_path(const qn_image *i); /* borrowed */
bool qn_image_was_built(const qn_image *i);   /* by this open, not found */

#endif
