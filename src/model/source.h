/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - the files a model comes from, seen as one thing: settings, tensors, tokenizer.
 *
 *     GGUF                      keys "<architecture>.<name>" in the file; tensors in the same file or parts
 *     Hugging Face, MLX         config.json, generation_config.json, tokenizer.json beside safetensors
 *
 * Settings are read through fields that carry both spellings, so a family is written once.
 *
 * Owner:  the model embeds it; everything read from it is borrowed until qn_source_close.
 * Thread: immutable once open.
 */
#ifndef QN_MODEL_SOURCE_H
#define QN_MODEL_SOURCE_H
#include "dep/hash.h"
#include "dep/json.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "text/tokenizer.h"

typedef struct qn_source {
    qn_gguf *gguf;      /* one of gguf and st is there */
    qn_st *st;          /* and with it: */
    qn_json *config;    /* config.json, an object */
    qn_json *generate;  /* generation_config.json, or NULL */
    qn_json *tokenizer; /* tokenizer_config.json, or NULL */

    char *path, *dir; /* as opened; where the files beside it lie */
    qn_str type;      /* general.architecture or model_type; empty where the files name none */
} qn_source;

/* path: a GGUF file (any part), a .safetensors file or index with config.json beside it, or a
 * directory of such files or of one GGUF model (one file, or the parts of one). *s is empty after a failure. Errors: as the readers'; each names the file. */
qn_code qn_source_open(qn_source *s, const char *path, qn_err *err);
/* The only GGUF model in a directory, as a path; *found false where there is none. Errors: INVAL naming two
 * of several, IO, LIMIT. */
qn_code qn_source_find_gguf(bool *found, char *out, size_t cap, const char *dir, qn_err *err);
void qn_source_close(qn_source *s); /* zeroed or closed is fine */

typedef struct qn_source_tensor { /* values; name and data are views */
    qn_str name;
    const char *type_name;
    uint32_t n_dims;
    uint64_t dims[QN_ST_MAX_DIMS]; /* outermost first, in either source */
    uint64_t bytes;
    const uint8_t *data;
} qn_source_tensor;

size_t qn_source_n_tensors(const qn_source *s);
void qn_source_tensor_at(const qn_source *s, size_t i, qn_source_tensor *out);
uint64_t qn_source_file_bytes(const qn_source *s);

/* -- settings ---------------------------------------------------------------------------------- */

/* A number by its GGUF suffix ("block_count", behind "<architecture>.") or its key in config.json;
 * either may be NULL: not in that source. *found tells; null counts as absent. Errors: FORMAT (no
 * number), naming the key. */
qn_code qn_source_num(bool *found, double *out, const qn_source *s, const char *gguf,
                      const char *hf, qn_err *err);
qn_code qn_source_bool(bool *found, bool *out, const qn_source *s, const char *gguf, const char *hf,
                       qn_err *err);
qn_code qn_source_str(bool *found, qn_str *out, const qn_source *s, const char *gguf,
                      const char *hf, qn_err *err);
/* A member of config.json, "a" or "a.b", or NULL; what text_config of a multimodal model says comes
 * first. Always NULL for GGUF. */
const qn_json *qn_source_json(const qn_source *s, const char *path);
/* The key as the user knows it, for messages: "llama.block_count" or "config.json: hidden_size". */
const char *qn_source_key(char buf[96], const qn_source *s, const char *gguf, const char *hf);

/* -- what is not a setting of the family ------------------------------------------------------- */

/* *out is owned, or NULL when the files hold no tokenizer. */
qn_code qn_source_tokenizer(qn_tokenizer **out, const qn_source *s, qn_err *err);
/* Owned NUL-terminated text (qn_free) or NULL: none. Errors: NOMEM. */
qn_code qn_source_template(char **out, const qn_source *s, qn_err *err);
/* Ids that end a text, from all places that name some, each once, at most cap. Errors: FORMAT for an
 * id that is no id below `vocab`. */
qn_code qn_source_eos(uint32_t *ids, uint32_t cap, uint32_t *n, const qn_source *s,
                      const qn_tokenizer *tok, uint32_t vocab, qn_err *err);
/* Identity of the weights, cheap on open: total file bytes, the whole tensor directory (names, types,
 * shapes, in name-independent file order), and of each tensor's data all of it up to 64 KiB, else
 * eight windows of 4 KiB spread evenly with the first and the last bytes among them. Two trainings of
 * one model differ in nearly every value, so this tells them apart; it does not prove that nobody
 * altered a byte between the windows, and is not meant to. Errors: NOMEM. */
qn_code qn_source_digest(qn_digest128 *out, const qn_source *s, qn_err *err);

#endif
