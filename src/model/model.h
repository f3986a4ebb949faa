/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - an opened model: descriptor, weights, tokenizer and the family that records its forward.
 *
 *     file or directory ─► config (raw) ─► family reads a descriptor ─► weight map (names ─► slots)
 *       ─► load audit (nothing missing, nothing left over) ─► images ─► qn_model
 *
 * Immutable after open and shared by count. Weights are mapped, not copied; an image may be a packed
 * layout in a checksummed cache file.
 *
 * Thread: any, once opened.
 */
#ifndef QN_MODEL_MODEL_H
#define QN_MODEL_MODEL_H
#include "base/log.h"
#include "base/memory.h"
#include "cache/cache.h"
#include "graph/plan.h"
#include "tensor/format.h"
#include "text/tokenizer.h"

enum { QN_MAX_LAYERS = 512 };

/* The generic dense descriptor: what differs between Llama-shaped families, as data. */
typedef struct qn_model_desc {
    char family[32]; /* registry name: "llama" */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn, vocab;
    uint32_t context; /* positions the model was made for */
    float norm_eps;
    float rope_theta, rope_mscale;
    float rope_theta_local; /* of sliding layers where they have their own, else 0 */
    uint32_t rope_dims;
    bool rope_interleaved;
    bool tied; /* the head is the embedding table */
    float embed_scale, residual_scale, attention_scale, logit_scale;
    float attention_softcap, logit_softcap; /* 0: none */
    qn_act act;
    bool qk_norm;                       /* per head */
    uint32_t window;                    /* of sliding layers; 0: none */
    uint8_t sliding[QN_MAX_LAYERS / 8]; /* bit set of sliding layers */
    uint8_t no_rope[QN_MAX_LAYERS / 8];
    uint32_t eos[16], n_eos; /* union of config and generation config */
} qn_model_desc;

enum { /* qn_recipe.set; the numbers of QUERN_DEFAULT_ */
       QN_RECIPE_TEMPERATURE = 1u,
       QN_RECIPE_TOP_P = 2u,
       QN_RECIPE_TOP_K = 4u,
       QN_RECIPE_MIN_P = 8u,
       QN_RECIPE_REPETITION = 16u
};
typedef struct qn_recipe { /* how its makers sample the model; unset fields are 0 */
    uint32_t set;
    float temperature; /* 0: greedy */
    float top_p, min_p, repetition_penalty;
    uint32_t top_k;
} qn_recipe;

typedef struct qn_model qn_model;

typedef struct qn_model_options {
    qn_act_mode activations;
    const char *image_dir;      /* where panels may be kept (model/image.h); NULL: in memory */
    unsigned lanes;             /* threads that lay out panels; 0: one */
    qn_logger *log;             /* NULL: silence */
    const qn_memory_room *room; /* weights beyond it are refused unread; NULL: not asked */
} qn_model_options;

/* Opens a GGUF file, a safetensors file with its config beside it, or such a directory. Errors name
 * file, tensor or field, what was found and what was expected. Shared (qn_model_unref). */
qn_code qn_model_open(qn_model **out, const char *path, const qn_model_options *opt, qn_err *err);
qn_model *qn_model_ref(qn_model *m);
void qn_model_unref(qn_model *m); /* NULL is fine */

const qn_model_desc *qn_model_get_desc(const qn_model *m);
const qn_tokenizer *qn_model_tokenizer(const qn_model *m); /* NULL: the files hold none */
const char *qn_model_chat_template(const qn_model *m);     /* NULL: none */
/* All ids that end a text: of the configs and of the tokenizer. Borrowed. */
const uint32_t *qn_model_ends(const qn_model *m, uint32_t *n);
const qn_recipe *qn_model_recipe(const qn_model *m);
const char *qn_model_path(const qn_model *m);
/* What the family's forward is recorded with; pass the model itself. */
qn_record_fn *qn_model_record(const qn_model *m);
qn_act_mode qn_model_activations(const qn_model *m);
/* Layer groups for this model's cache with KV in `fmt`; layer_group has room for n_layers. */
uint32_t qn_model_groups(const qn_model *m, qn_kv_fmt fmt, qn_group_desc out[QN_MAX_GROUPS],
                         uint32_t *layer_group);
/* Numerics id: kernel order version, device class, weights digest, activation mode, KV format. */
void qn_model_numerics(const qn_model *m, qn_kv_fmt fmt, uint64_t out[2]);
size_t qn_model_weight_bytes(const qn_model *m);
/* The first tensor that holds a value that is not finite, by its name in the files; false where none is
 * found among vectors and the first max_values values of matrices. Slow: for explaining a failure. */
bool qn_model_find_nan(char *out, size_t cap, const qn_model *m, uint64_t max_values);

#endif
