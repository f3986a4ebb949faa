/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - models on this machine's disk by name, and getting them there.
 *
 * Two places are looked at: HOME/models, which is ours (files, and folders with a config.json), and the
 * cache that Hugging Face tools share (models--ORG--NAME/snapshots/COMMIT), so that nothing is kept twice.
 * A file appears under its name only after its digest was found right; what is on its way has another name.
 *
 * Thread: any; a store holds no lock and no cache, each call looks at the disk.
 */
#ifndef QUERN_STORE_H
#define QUERN_STORE_H
#include <stddef.h>
#include <stdint.h>

#include "quern/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_store quern_store;

typedef struct quern_store_options { /* texts are copied */
    size_t size;                     /* sizeof(quern_store_options) */
    const char *home;                /* needed; made when something is put there */
    const char *hub_cache;           /* "~/.cache/huggingface/hub" with ~ resolved; NULL: none */
    const char *endpoint;            /* NULL: https://huggingface.co */
    const char *token;               /* of the hub's account, for gated models; NULL: none */
    uint64_t reserve;                /* bytes that a download leaves free; 0: 1 GiB */
} quern_store_options;
#define QUERN_STORE_OPTIONS_INIT                               \
    {                                                          \
        sizeof(quern_store_options), NULL, NULL, NULL, NULL, 0 \
    }
/* Touches no disk. Errors: INVAL, NOMEM. */
QUERN_API quern_code quern_store_open(quern_store **out, const quern_store_options *opt,
                                      quern_error *err);
QUERN_API void quern_store_close(quern_store *s); /* NULL is fine */

typedef struct quern_store_model { /* texts are the list's */
    size_t size;                   /* sizeof(quern_store_model): what this library knows */
    const char *name;              /* what --model takes: "starter", "ORG/NAME", a file's name */
    const char *path;              /* what quern_model_open takes */
    const char *revision;          /* commit of a snapshot, or NULL */
    const char *format;            /* "gguf", "safetensors" */
    const char *family;            /* model type as the files name it, or "?" */
    const char *quant;             /* "Q4_1", "4-bit affine", "BF16", or "?" */
    const char *license;           /* as the files name it, or NULL */
    uint64_t bytes;                /* of the weights' files; what snapshots share counts in each */
    uint64_t parameters;           /* 0: not known */
    uint32_t context;              /* positions, 0: not known */
    uint32_t canonical;            /* 1: the snapshot that its name means */
    uint32_t supported;            /* 1: this build has the family */
    uint32_t has_template;         /* 1: chat works without --template */
} quern_store_model;

typedef struct quern_store_list quern_store_list;
/* All models, by name; with query those whose name holds it (ASCII case does not matter). Files that
 * cannot be read as a model are left out. Errors: IO, NOMEM. */
QUERN_API quern_code quern_store_list_open(quern_store_list **out, const quern_store *s,
                                           const char *query, quern_error *err);
QUERN_API size_t quern_store_list_count(const quern_store_list *l);
QUERN_API const quern_store_model *quern_store_list_at(const quern_store_list *l, size_t i);
QUERN_API void quern_store_list_close(quern_store_list *l); /* NULL is fine */

/* The path that a person means by `name`:
 * - an existing file or folder: a name with a '/' that exists, or a file in the working folder;
 * - else the model of that exact name, with or without ".gguf";
 * - else a folder in the working folder;
 * - else the only model whose name holds it (ASCII case does not matter).
 * One of several files of a repository is "ORG/NAME:FILE", or short "ORG/NAME:Q4_K_M". name NULL: the
 * only model there, else "starter" if it is there. A path is believed to be the caller's own: a name
 * that came over a network is not for this call. *path is freed with quern_text_free. Errors:
 * NOTFOUND (naming the nearest, or `quern get`), INVAL (several: they are named), IO, NOMEM. */
QUERN_API quern_code quern_store_find(char **path, const quern_store *s, const char *name,
                                      quern_error *err);

typedef struct quern_get_progress {
    size_t size;           /* sizeof(quern_get_progress): what this library knows */
    const char *file;      /* the one at work */
    const char *step;      /* "asking", "copying", "downloading", "verifying": for ever */
    uint64_t done, total;  /* bytes of all files; total 0: not known yet */
    uint32_t index, count; /* of files, from 0; count 0: not known yet, file names the repository */
} quern_get_progress;

typedef struct quern_get_options {
    size_t size;          /* sizeof(quern_get_options) */
    const char *from;     /* this file, instead of a hub; verified all the same */
    const char *revision; /* branch, tag or commit; NULL: "main" */
    const char *include;  /* only files that match this pattern (* ?); NULL: what a model needs */
    int (*progress)(void *ctx, const quern_get_progress *p); /* NULL: none; not 0: CANCELLED */
    void *ctx;
} quern_get_options;
#define QUERN_GET_OPTIONS_INIT                                  \
    {                                                           \
        sizeof(quern_get_options), NULL, NULL, NULL, NULL, NULL \
    }
/* Brings a model here: "starter" or another name of the catalogue, "ORG/NAME" of the hub, or with
 * `from` any name, which the file then has. What is here already is checked, not fetched again; what
 * was cut off goes on where it ended. *path as quern_store_find. Errors: NOTFOUND (no such name: the
 * nearest is named; no such repository or file), INVAL, IO (network, disk; a place that cannot be
 * written), FORMAT (a digest or a size that is not the expected one; the hub's answer), LIMIT (too
 * little room on the disk, with the numbers, before the first byte), AGAIN (another process fetches
 * this), DENIED (the hub wants a token, or the token's owner may not read this), CANCELLED. */
QUERN_API quern_code quern_store_get(char **path, const quern_store *s, const char *name,
                                     const quern_get_options *opt, quern_error *err);

#ifdef __cplusplus
}
#endif
#endif
