/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - settings of a model file turned into a descriptor that can be trusted.
 *
 * A family lists its settings as fields; reading checks type and range of each, and qn_desc_check the
 * relations between them. Nothing later asks again.
 *
 * Thread: values only.
 */
#ifndef QN_MODEL_CONFIG_H
#define QN_MODEL_CONFIG_H
#include "model/model.h"
#include "model/rope.h"
#include "model/source.h"

typedef enum qn_field_kind { QN_FIELD_U32, QN_FIELD_F32, QN_FIELD_BOOL } qn_field_kind;

enum { /* presence */
       QN_FIELD_OPTIONAL = 0,
       QN_FIELD_IN_GGUF = 1, /* must be in this kind of source */
       QN_FIELD_IN_HF = 2,
       QN_FIELD_IN_BOTH = 3
};

typedef struct qn_field {
    size_t at; /* in qn_model_desc */
    qn_field_kind kind;
    unsigned need; /* a setting that is needed may still be left out where the member is not 0 */
    const char *gguf, *hf; /* NULL: not in that source */
    double lo, hi;         /* inclusive; of BOOL unused */
} qn_field;

/* Reads each field that is there into *d and leaves the others as they are. Errors: FORMAT (missing,
 * another type, no whole number), LIMIT (out of range); each names key, found and expected. */
qn_code qn_desc_read(qn_model_desc *d, const qn_field *fields, size_t n, const qn_source *s,
                     qn_err *err);
/* "silu", "gelu_pytorch_tanh" ... under this key: UNSUPPORTED for others. Absent: stays as it is. */
qn_code qn_desc_read_act(qn_model_desc *d, const qn_source *s, const char *hf, qn_err *err);
/* Which layers see a window only: layer_types says it; without, all but every `period`th layer do where
 * there is a window (1: none, 0: all). */
qn_code qn_desc_read_windows(qn_model_desc *d, const qn_source *s, uint32_t period, qn_err *err);
/* Relations between fields, and products that must fit. Errors: FORMAT, LIMIT. */
qn_code qn_desc_check(const qn_model_desc *d, qn_err *err);

static inline bool qn_layer_bit(const uint8_t *set, uint32_t layer)
{
    return (set[layer / 8] >> (layer % 8) & 1) != 0;
}

#endif
