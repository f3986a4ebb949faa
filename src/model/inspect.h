/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - what a model file says about itself, as one JSON object, without opening it as a model.
 *
 * Works on all that parses: an unsupported family, a broken descriptor or a missing tensor becomes
 * the member "problem", not a failure.
 *
 * Thread: any.
 */
#ifndef QN_MODEL_INSPECT_H
#define QN_MODEL_INSPECT_H
#include "base/status.h"

typedef struct qn_inspect_options {
    bool tensors; /* list them all */
    bool arrays;  /* long arrays of metadata in full, not their length only */
} qn_inspect_options;

/* *out is owned text (qn_free), NUL-terminated. Errors: as qn_source_open's; LIMIT; NOMEM. */
qn_code qn_model_inspect(char **out, size_t *n, const char *path, const qn_inspect_options *opt,
                         qn_err *err);

#endif
