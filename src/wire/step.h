/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - one forward as one flat block: no pointers, a version, every array at a byte offset.
 *
 * The engine fills a step; the plan binds it; nothing else tells kernels what to compute. The same
 * block can be replayed after a crash, sent to a tensor-parallel rank, or copied beside a captured
 * CUDA graph. A plan owns one step block at a fixed address, laid out for its capacities, and
 * kernels read row counts through it, so nothing is rebound between steps.
 *
 *     row       one token (or embedding) that goes through the model
 *     sequence  one token timeline; its block tables say where its keys and values lie
 *     logit row a row whose logits are wanted
 *
 * Owner:  whoever holds the bytes. Thread: one at a time.
 */
#ifndef QN_WIRE_STEP_H
#define QN_WIRE_STEP_H
#include "base/status.h"
#include "tensor/sampler.h"

enum { QN_STEP_MAGIC = 0x50545351, /* "QSTP" */ QN_STEP_VERSION = 2 };
enum { QN_STEP_NONE = 0xFFFFFFFFu >> 1 };

typedef enum qn_row_source { /* where a row's input comes from; `value` says which */
                             QN_ROW_TOKEN = 0, /* value: a token id known to the host */
                             QN_ROW_REGISTER =
                                 1, /* value: a token register, written on the device by an earlier draw */
                             QN_ROW_EMBED =
                                 2, /* value: a row of the step's embedding input (media, adapters' prompts) */
} qn_row_source;

typedef struct qn_keys { /* cache positions a row may attend: [lo0, hi0) and [lo1, hi1) */
    uint32_t lo0, hi0, lo1,
        hi1; /* an empty interval has lo == hi; hi0 <= lo1 when both are there */
} qn_keys;

typedef struct qn_step_caps { /* what a step block has room for */
    uint32_t rows, logits, seqs, groups;
    uint32_t table; /* block ids of all sequences together, per layer group */
    uint32_t edits; /* of all logit rows together; may be 0 */
} qn_step_caps;

typedef struct qn_step {
    uint32_t magic, version;
    uint32_t bytes; /* of the whole block */
    qn_step_caps caps;
    uint32_t n_rows, n_logits, n_seqs;
    uint32_t flags; /* none yet: 0 */
    /* byte offsets from the start of this struct, each 64-byte aligned */
    uint32_t at_source;    /* uint32_t [rows]: qn_row_source */
    uint32_t at_value;     /* uint32_t [rows] */
    uint32_t at_pos;       /* int32_t [3][caps.rows]: position streams (temporal, height, width) */
    uint32_t at_kv_pos;    /* uint32_t [rows]: position in the sequence's cache */
    uint32_t at_seq;       /* uint32_t [rows]: sequence index within the step */
    uint32_t at_keys;      /* qn_keys [rows] */
    uint32_t at_parent;    /* uint32_t [rows]: row before it in a draft tree, or QN_STEP_NONE */
    uint32_t at_adapter;   /* uint32_t [rows]: adapter slot, or QN_STEP_NONE */
    uint32_t at_logit_row; /* uint32_t [logits]: which row */
    uint32_t at_sampler;   /* qn_sampler [logits] */
    uint32_t
        at_register; /* uint32_t [logits]: token register that gets the draw, or QN_STEP_NONE */
    uint32_t at_table_off; /* uint32_t [groups][caps.seqs] */
    uint32_t at_table;     /* uint32_t [groups][caps.table]: block ids */
    uint32_t at_adjust;    /* qn_adjust [logits] */
    uint32_t at_edit;      /* qn_edit [edits] */
    uint32_t n_edits;
    uint32_t reserved[6]; /* 0: slots of experts, state snapshots, media */
} qn_step;

/* Bytes of a block with these capacities; 0 when they overflow 32 bits or any is 0. */
size_t qn_step_bytes(const qn_step_caps *caps);
/* Lays out a block at `mem` (qn_step_bytes, 64-byte aligned), all counts 0, and returns it. */
qn_step *qn_step_init(void *mem, const qn_step_caps *caps);
/* Checks a block from outside: magic, version, bytes, offsets, counts within capacities, sources,
 * rows' sequences, tables. FORMAT names the field, what was found and what was expected. */
qn_code qn_step_check(const void *bytes, size_t n, qn_err *err);

#define QN_STEP_ARRAY(type, name)                        \
    static inline type *qn_step_##name(const qn_step *s) \
    {                                                    \
        return (type *)((uintptr_t)s + s->at_##name);    \
    }
QN_STEP_ARRAY(uint32_t, source)
QN_STEP_ARRAY(uint32_t, value)
QN_STEP_ARRAY(int32_t, pos) /* stream i begins at element i * caps.rows */
QN_STEP_ARRAY(uint32_t, kv_pos)
QN_STEP_ARRAY(uint32_t, seq)
QN_STEP_ARRAY(qn_keys, keys)
QN_STEP_ARRAY(uint32_t, parent)
QN_STEP_ARRAY(uint32_t, adapter)
QN_STEP_ARRAY(uint32_t, logit_row)
QN_STEP_ARRAY(qn_sampler, sampler)
QN_STEP_ARRAY(uint32_t, register)
QN_STEP_ARRAY(uint32_t, table_off) /* group g begins at element g * caps.seqs */
QN_STEP_ARRAY(uint32_t, table)     /* group g begins at element g * caps.table */
QN_STEP_ARRAY(qn_adjust, adjust)
QN_STEP_ARRAY(qn_edit, edit)
#undef QN_STEP_ARRAY

#endif
