/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_int.h - the handle and the cursor that gguf.c and gguf_meta.c share. */
#ifndef QN_FORMAT_GGUF_INT_H
#define QN_FORMAT_GGUF_INT_H
#include "base/map_file.h"
#include "format/format_int.h"
#include "format/gguf.h"

typedef struct gguf_part { /* one file */
    qn_mapping map;        /* empty where the bytes are the caller's */
    char *path;            /* owned */
    const uint8_t *data;
    size_t len;
    size_t data_at; /* where tensor data begins */
    uint64_t n_keys, n_tensors;
    uint32_t version;
    uint64_t alignment;                            /* general.alignment, 32 where absent */
    uint64_t split_no, split_count, split_tensors; /* 0, 0, UINT64_MAX where absent */
} gguf_part;

struct qn_gguf {
    gguf_part *parts;
    size_t n_parts;
    size_t n_keys, n_tensors;
    uint64_t *key_at;    /* [n_keys + 1] offsets in the first part; the last is the end */
    uint64_t *tensor_at; /* [n_tensors] part << 48 | offset of the directory entry */
    qn_names keys, tensors;
};

typedef struct gguf_cursor {
    const uint8_t *p, *end;
} gguf_cursor;

static inline size_t gguf_left(const gguf_cursor *c) { return (size_t)(c->end - c->p); }

/* Little-endian reads; false when too few bytes are left, the cursor unmoved. */
bool gguf_u32(gguf_cursor *c, uint32_t *out);
bool gguf_u64(gguf_cursor *c, uint64_t *out);
/* u64 length, then that many bytes. */
bool gguf_text(gguf_cursor *c, qn_str *out);

/* The next key and its value, everything checked down to the last element. */
qn_code gguf_next_key(gguf_cursor *c, qn_str *key, qn_gguf_value *value, qn_err *err);

#endif
