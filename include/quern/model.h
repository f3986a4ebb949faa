/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - an opened model: weights, tokenizer, what it is.
 *
 * Immutable after open and shared by count.
 *
 * Owner:  whoever holds a reference.
 * Thread: any.
 */
#ifndef QUERN_MODEL_H
#define QUERN_MODEL_H
#include "quern/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_model quern_model;

/* What products multiply weights with. I8 and I16: integers per row and block of 32 (K formats: 256, I8
 * only), where the weights' format has such an order of sums; f32 elsewhere. I16 is as good as f32 (KL 1e-7
 * on real text), I8 is not (3e-3 and more); both lay weights out anew, in memory or in a file
 * (quern_runtime_options.image_dir). */
typedef enum quern_activations {
    QUERN_ACTIVATIONS_DEFAULT = 0, /* i16 */
    QUERN_ACTIVATIONS_F32 = 1,
    QUERN_ACTIVATIONS_I8 = 2,
    QUERN_ACTIVATIONS_I16 = 3
} quern_activations;

typedef struct quern_model_options {
    size_t size;                   /* sizeof(quern_model_options) */
    quern_activations activations; /* a constant of the model: part of its numerics id */
} quern_model_options;
#define QUERN_MODEL_OPTIONS_INIT                               \
    {                                                          \
        sizeof(quern_model_options), QUERN_ACTIVATIONS_DEFAULT \
    }

/* Opens a GGUF file (any part of a split one), a .safetensors file with its config.json beside it,
 * or a directory of safetensors and config.json. *out is shared (quern_model_unref). Errors:
 * NOTFOUND, IO; FORMAT and LIMIT name file, tensor or field, what was found and what was expected;
 * UNSUPPORTED names the model type and the nearest supported ones; NOMEM, before a weight is read and
 * with the numbers, when the weights are larger than what is available (quern_fit). */
QUERN_API quern_code quern_model_open(quern_model **out, quern_runtime *rt, const char *path,
                                      const quern_model_options *opt, quern_error *err);
QUERN_API quern_model *quern_model_ref(quern_model *m); /* returns m */
QUERN_API void quern_model_unref(quern_model *m);       /* NULL is fine */

enum { /* quern_sampling_defaults.set */
       QUERN_DEFAULT_TEMPERATURE = 1u,
       QUERN_DEFAULT_TOP_P = 2u,
       QUERN_DEFAULT_TOP_K = 4u,
       QUERN_DEFAULT_MIN_P = 8u,
       QUERN_DEFAULT_REPETITION_PENALTY = 16u
};
/* How the model's makers sample it: generation_config.json, or general.sampling.* of a GGUF file. */
typedef struct quern_sampling_defaults {
    uint32_t set;      /* QUERN_DEFAULT_: which of these the files name; the others are 0 */
    float temperature; /* 0 where the files say do_sample: false */
    float top_p, min_p, repetition_penalty;
    uint32_t top_k;
} quern_sampling_defaults;

#define QUERN_NO_TOKEN UINT32_MAX

typedef struct quern_model_info { /* texts are borrowed from the model */
    size_t size;                  /* sizeof(quern_model_info), set by the caller */
    const char *path, *family;
    const char *chat_template; /* NULL: none */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn;
    uint32_t vocab;          /* ids are below this */
    uint32_t context;        /* positions the model was made for */
    uint64_t weight_bytes;   /* of all tensors in use */
    uint32_t has_tokenizer;  /* 1 or 0 */
    uint32_t bos_id, eos_id; /* of the tokenizer, or QUERN_NO_TOKEN */
    const uint32_t *eos_ids; /* [n_eos_ids] all that end a text, unless a request ignores them */
    uint32_t n_eos_ids;
    uint32_t adds_bos; /* 1: QUERN_TOKENIZE_SPECIAL puts bos_id first */
    const quern_sampling_defaults *defaults;
} quern_model_info;
/* Errors: INVAL. */
QUERN_API quern_code quern_model_get_info(const quern_model *m, quern_model_info *info,
                                          quern_error *err);

enum {                              /* flags of quern_tokenize */
       QUERN_TOKENIZE_SPECIAL = 1u, /* put BOS, EOS and the like where the model expects them */
       QUERN_TOKENIZE_MARKERS = 2u  /* "<|im_end|>" in the text means that token */
};
/* Ids of text[0, n). At most `cap` are written to ids (may be NULL when cap is 0); *n_ids is how many
 * there are. Errors: INVAL, UNSUPPORTED (the model has no tokenizer), LIMIT, NOMEM. */
QUERN_API quern_code quern_tokenize(size_t *n_ids, const quern_model *m, const char *text, size_t n,
                                    uint32_t flags, uint32_t *ids, size_t cap, quern_error *err);
/* The text of ids[0, n_ids), special tokens left out: at most `cap` bytes are written to text, no
 * NUL; *n is how many there are. Always whole UTF-8 when cap suffices. Errors as quern_tokenize. */
QUERN_API quern_code quern_detokenize(size_t *n, const quern_model *m, const uint32_t *ids,
                                      size_t n_ids, char *text, size_t cap, quern_error *err);

/* What the token stands for, before any rule about its neighbours: at most `cap` bytes are written to
 * bytes, no NUL; *n is how many there are. It may be part of a character. A special token gives its
 * spelling. Errors: INVAL (no such id), UNSUPPORTED. */
QUERN_API quern_code quern_token_bytes(size_t *n, const quern_model *m, uint32_t id, char *bytes,
                                       size_t cap, quern_error *err);
/* The token as the vocabulary spells it ("\xC4\xA0the" for " the" in many), UTF-8; *n is its length,
 * no NUL follows. Borrowed from the model; "" for ids without a spelling and for models without a
 * tokenizer. */
QUERN_API const char *quern_token_text(size_t *n, const quern_model *m, uint32_t id);

#ifdef __cplusplus
}
#endif
#endif
