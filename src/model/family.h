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
    /* rope[1] is that of sliding layers where they have their own, else it stays empty (dims 0). */
    qn_code (*read)(qn_model_desc *d, qn_rope_spec rope[2], const qn_source *s, qn_err *err);
    qn_weight_map map;
    qn_record_fn *record; /* model is the qn_model */
    /* Ids that a tokenizer may have beyond the embedding table: markers of media that a text model has
     * no rows for. A request that holds one is refused. */
    uint32_t ids_beyond;
} qn_family;

extern const qn_family qn_family_llama;
extern const qn_family qn_family_gemma3;

/* The family of a model type. Errors: UNSUPPORTED naming the type and the nearest supported ones. */
qn_code qn_family_find(const qn_family **out, qn_str type, qn_err *err);

#endif
