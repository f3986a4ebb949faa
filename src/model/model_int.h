/* SPDX-License-Identifier: Apache-2.0 */
/* model_int.h - the opened model as its own files see it. */
#ifndef QN_MODEL_MODEL_INT_H
#define QN_MODEL_MODEL_INT_H
#include <stdatomic.h>

#include "model/family.h"
#include "model/model.h"
#include "model/panels.h"

struct qn_model {
    atomic_uint refs;
    const qn_family *family;
    qn_act_mode activations;
    qn_model_desc desc;
    qn_source source;
    qn_weights weights;
    qn_panels panels; /* empty where activations are f32 */
    qn_tokenizer *tokenizer;
    uint32_t *ends; /* [n_ends] */
    uint32_t n_ends;
    qn_recipe recipe;
    char *chat_template;
    qn_rope rope[2]; /* of all layers; of the sliding ones where they have their own */
    bool has_local_rope;
    float inv_freq[2][QN_ROPE_MAX_PAIRS];
    qn_digest128 digest;
    char (*tap_names)[16]; /* [n_layers]: "layer.0" ... */
};

/* A model without tokenizer, digest and image: settings and tensors read and audited. For inspect. */
qn_code qn_model_open_bare(qn_model **out, const char *path, qn_err *err);

#endif
