/* SPDX-License-Identifier: Apache-2.0 */
/* panels.h - a model's matrices in the layout of tensor/panel.h, in an image (model/image.h) or in memory.
 *
 * Made when a model is opened whose activations are integers: products then stream weights in the order in
 * which they use them. The pages of the model's file that only products read are given back; the embedding
 * table stays, since rows of it are looked up.
 *
 * Owner: the model. Thread: immutable once open.
 */
#ifndef QN_MODEL_PANELS_H
#define QN_MODEL_PANELS_H
#include "model/image.h"
#include "model/weights.h"

typedef struct qn_panels {
    qn_image *image; /* NULL: in memory, or none */
    uint8_t *data;   /* pages; NULL: none */
    size_t bytes;
} qn_panels;

typedef struct qn_panels_options {
    bool tied;             /* the embedding table is the head too */
    unsigned lanes;        /* threads that lay out; 0: one */
    const char *image_dir; /* NULL: no image */
    qn_digest128 source;   /* whose weights they are: part of the image's name */
    qn_logger *log;        /* NULL: silence */
} qn_panels_options;

/* Lays out every matrix of w that has panels. The embedding table only where it is the head too. Errors:
 * NOMEM. */
qn_code qn_panels_open(qn_panels *p, qn_weights *w, const qn_panels_options *opt, qn_err *err);
void qn_panels_fini(qn_panels *p);

#endif
