/* SPDX-License-Identifier: Apache-2.0 */
/* panels.h - a model's matrices in the layout of tensor/panel.h, in memory of its own.
 *
 * Made when a model is opened whose activations are integers: products then stream weights in the order in
 * which they use them. The pages of the file that only products read are given back; the embedding table
 * stays, since rows of it are looked up.
 *
 * Owner: the model. Thread: immutable once open.
 */
#ifndef QN_MODEL_PANELS_H
#define QN_MODEL_PANELS_H
#include "model/weights.h"

typedef struct qn_panels {
    uint8_t *data; /* pages; NULL: none */
    size_t bytes;
} qn_panels;

/* Lays out every matrix of w that has panels. The embedding table only where it is the head too. Errors:
 * NOMEM. */
qn_code qn_panels_make(qn_panels *p, qn_weights *w, bool tied, qn_err *err);
void qn_panels_fini(qn_panels *p);

#endif
