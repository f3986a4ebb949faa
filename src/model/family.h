/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - what a model family is: names it answers to, a reader of its settings, its weight map
 * and the record of its forward. One file in families/ each.
 *
 * Thread: constant.
 */
#ifndef QN_MODEL_FAMILY_H
#define QN_MODEL_FAMILY_H
#include "model/config.h"
#include "model/weights.h"

typedef struct qn_family {
    const char *name;
    const char *const *types; /* model_type and general.architecture, NULL-terminated */
    /* Settings to descriptor; everything in the descriptor is checked afterwards. */
    qn_code (*read)(qn_model_desc *d, qn_rope_spec *rope, const qn_source *s, qn_err *err);
    qn_weight_map map;
    qn_record_fn *record; /* model is the qn_model */
} qn_family;

extern const qn_family qn_family_llama;

/* The family of a model type. Errors: UNSUPPORTED naming the type and the nearest supported ones. */
qn_code qn_family_find(const qn_family **out, qn_str type, qn_err *err);

#endif
