/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - the weight map: which tensor goes to which slot, and the audit that nothing is missing
 * and nothing left over.
 *
 * Matrices are views of the mapped file, unless they lie there misaligned (safetensors promise
 * nothing, MLX writes such files): those are copied. Vectors (gains, biases) are views too where they
 * are float32 already, else widened into memory of ours.
 *
 * Owner:  the model. Thread: immutable once loaded.
 */
#ifndef QN_MODEL_WEIGHTS_H
#define QN_MODEL_WEIGHTS_H
#include "base/arena.h"
#include "model/model.h"
#include "model/source.h"

typedef struct qn_layer_weights { /* optional ones are NULL or have data == NULL */
    qn_matrix q, k, v, o, gate, up, down;
    const float *attn_norm, *ffn_norm, *q_norm, *k_norm;
    const float *post_attn_norm, *post_ffn_norm; /* on what a sublayer gives, before it is added */
    const float *q_bias, *k_bias, *v_bias, *o_bias, *gate_bias, *up_bias, *down_bias;
} qn_layer_weights;

typedef struct qn_top_weights {
    qn_matrix embed, head; /* head.data is NULL when tied */
    const float *norm;
    const float *rope_factors; /* [rope_dims / 2] or NULL */
} qn_top_weights;

typedef struct qn_weights {
    qn_top_weights top;
    qn_layer_weights *layers; /* [n_layers] */
    uint32_t n_layers;
    uint32_t n_dropped; /* tensors of no use to this model, left out by the map */
    size_t bytes;       /* of all tensors in use, as stored */
    qn_arena own;       /* widened vectors */
    uint8_t *copies;    /* misaligned planes, n_copies bytes of pages; NULL: none */
    size_t n_copies;
} qn_weights;

typedef enum qn_dim { /* sizes a slot's shape is made of */
                      QN_DIM_ONE,
                      QN_DIM_WIDTH,
                      QN_DIM_FFN,
                      QN_DIM_VOCAB,
                      QN_DIM_Q,  /* heads x head dim */
                      QN_DIM_KV, /* kv heads x head dim */
                      QN_DIM_HEAD,
                      QN_DIM_PAIRS /* rope_dims / 2 */
} qn_dim;

uint32_t qn_model_dim(const qn_model_desc *d, qn_dim dim);

typedef enum qn_need {
    QN_NEED_ALWAYS,
    QN_NEED_UNTIED, /* unless the head is the embedding table */
    QN_NEED_QK_NORM,
    QN_NEED_NEVER /* taken where it is there */
} qn_need;

typedef struct qn_slot {
    bool layer, vector; /* one a layer; a vector of `cols`, not a matrix */
    qn_need need;
    qn_dim rows, cols;
    size_t at; /* in qn_layer_weights or qn_top_weights */
    const char *gguf,
        *hf;       /* '#' is the layer number. hf names the module of a matrix (".weight" and
                              the planes follow), the tensor of a vector. NULL: not in that source */
    bool less_one; /* a gain that safetensors hold as its difference from one */
} qn_slot;

typedef struct qn_weight_map {
    const qn_slot *slots;
    size_t n_slots;
    /* Tensors of no use: '*' at one end matches anything. tied_drop counts only when tied. */
    const char *const *drop, *const *tied_drop; /* NULL-terminated, may be NULL */
} qn_weight_map;

/* Fills *w for a checked descriptor. Errors: FORMAT naming up to six missing and unexpected tensors,
 * or one whose shape is wrong; UNSUPPORTED for a format we cannot compute with; NOMEM. *w is empty on
 * failure. */
qn_code qn_weights_load(qn_weights *w, const qn_source *s, const qn_weight_map *map,
                        const qn_model_desc *d, qn_err *err);
void qn_weights_fini(qn_weights *w);
/* Lets go of the copies: nothing points into them any more (an image holds them). */
void qn_weights_drop_copies(qn_weights *w);

/* Every matrix in use, for images: *it starts at 0; NULL at the end. Order never changes. */
qn_matrix *qn_weights_next(qn_weights *w, size_t *it);
/* Does the source hold this tensor (a module's ".weight" for safetensors)? For settings that files
 * leave to presence, such as a tied head. */
bool qn_source_has(const qn_source *s, const char *gguf, const char *hf);

#endif
