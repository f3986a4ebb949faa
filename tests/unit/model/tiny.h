/* SPDX-License-Identifier: Apache-2.0 */
/* tiny.h - tiny models written on the spot, whole or broken in one way. */
#ifndef TESTS_UNIT_MODEL_TINY_H
#define TESTS_UNIT_MODEL_TINY_H
#include "base/str.h"
#include "model/model.h"
#include "qt.h"
#include "tensor/format.h"

enum { /* shape of every tiny model: 2 layers */
       TINY_WIDTH = 32,
       TINY_HEADS = 4,
       TINY_KV = 2,
       TINY_DIM = 8,
       TINY_FFN = 64,
       TINY_VOCAB = 40
};

typedef struct tiny { /* what is different from a sound model; zeros: nothing */
    const char *arch;
    const char *key; /* this key (without "llama.") gets `value`, as f32 or u32, or is left out */
    const char *general; /* or a key of its whole name gets it, as f32 */
    double value;
    bool as_float, without;
    const char *no_tensor, *extra_tensor, *bad_tensor; /* left out; added; one column too wide */
    bool half_gains;                                   /* norms in f16 */
    bool tokenizer; /* a byte-level vocabulary of TINY_VOCAB + extra_ids ids */
    uint32_t extra_ids;
    float rope_factor; /* > 0: a rope_freqs.weight tensor of this value */
} tiny;

/* Path of a GGUF file in qt_tmp(); borrowed until the next call. */
const char *tiny_gguf(qt *t, const tiny *how);
/* A directory with config.json (the text given) and model.safetensors in f32; names_prefix before
 * each name; head: with lm_head. Borrowed until the next call. */
const char *tiny_hf(qt *t, const char *folder, const char *config, const char *names_prefix,
                    bool head);
/* A sound config.json; extra is put in front of its members: "\"a\": 1,". */
const char *tiny_config(const char *extra);

/* The model, which must open; NULL after a failed check. Release with qn_model_unref. */
qn_model *tiny_opened(qt *t, const char *path);
/* It must not: with this code, a word in the message, and nothing left allocated. */
void tiny_refused(qt *t, const char *path, qn_code code, const char *word);

#endif
