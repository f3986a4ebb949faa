/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - what a model will take of memory, from its headers alone.
 *
 *     weights     the tensors in use, mapped: they must be resident to be fast, so they count in full
 *     tokenizer   tables over the vocabulary
 *     plans       activations of the largest batch, twice: the plans of smaller batches together take
 *                 as much as the largest
 *     keys and values   what is touched: a sliding layer holds no more than its window
 *
 * Estimates err on the large side by some tenths; they decide about gigabytes.
 *
 * Thread: values only.
 */
#ifndef QN_MODEL_FIT_H
#define QN_MODEL_FIT_H
#include "base/memory.h"
#include "model/model.h"

typedef struct qn_fit_ask {
    uint32_t context, max_rows, max_seqs, max_logits; /* none of them 0 */
    qn_kv_fmt kv_fmt;
} qn_fit_ask;

typedef struct qn_fit { /* bytes */
    uint64_t weights, tokenizer, plans;
    uint64_t kv;     /* of one sequence of the context */
    uint64_t needed; /* all of these */
} qn_fit;

uint64_t qn_fit_kv(const qn_model *m, qn_kv_fmt fmt, uint32_t positions);
void qn_fit_estimate(qn_fit *out, const qn_model *m, const qn_fit_ask *ask);
/* The largest context, in whole blocks and at most the model's, with which all fits in `available`;
 * 0: none. */
uint32_t qn_fit_context(const qn_model *m, const qn_fit_ask *ask, uint64_t available);

/* The same of a file whose headers alone are read. A context of 0 is the model's; it comes back in ask.
 * Errors: as qn_model_open. */
qn_code qn_fit_read(qn_fit *out, uint32_t *context_fits, uint32_t *n_layers, qn_fit_ask *ask,
                    uint64_t available, const char *path, qn_err *err);

/* What one decoded token behind `depth` positions reads: every matrix once (the embedding table only
 * where it is the head), and the keys and values that a layer sees; and the multiply-adds of one prompt
 * row in the layers' matrices. */
typedef struct qn_traffic {
    uint64_t weight_bytes, kv_bytes, multiply_adds;
} qn_traffic;
void qn_fit_traffic(qn_traffic *out, const qn_model *m, qn_kv_fmt fmt, uint32_t depth);

/* What the system leaves, or `ceiling` minus what is alive where that is less (0: no ceiling); limit is
 * then "ceiling". */
qn_memory_room qn_fit_room(uint64_t ceiling);
/* NOMEM with the numbers when `needed` is more than `available`; `what` says of what, with its size:
 * "weights of 93 MiB". context_fits: UINT32_MAX leaves it out. */
qn_code qn_fit_check(uint64_t needed, const qn_memory_room *room, const char *what,
                     uint32_t context_fits, qn_err *err);

#endif
