/* SPDX-License-Identifier: Apache-2.0 */
/* st_int.h - the header scanner of safetensors, and the handle that its files share. */
#ifndef QN_FORMAT_ST_INT_H
#define QN_FORMAT_ST_INT_H
#include "base/arena.h"
#include "base/map_file.h"
#include "format/format_int.h"
#include "format/safetensors.h"

enum { QN_ST_MAX_META = 1 << 14 };

typedef struct st_cursor {
    const char *p, *end, *start;
} st_cursor;

typedef struct st_info { /* one member of the header, as it stands there */
    qn_str name;         /* raw: between the quotes, escapes not resolved */
    bool is_meta;
    qn_str value;      /* metadata only, raw */
    qn_st_dtype dtype; /* all below: tensors only */
    uint32_t n_dims;
    const char *shape;   /* at its '[' */
    uint64_t begin, end; /* data_offsets */
} st_info;

typedef qn_code st_visit_fn(void *ctx, const st_info *info, qn_err *err);

/* Reads the whole header, strictly: a member is told once its own bytes are valid. Errors: FORMAT with
 * the byte and what was expected there; LIMIT; and whatever visit returns. */
qn_code st_scan(const char *text, size_t n, st_visit_fn *visit, void *ctx, qn_err *err);

/* The dims of a shape that st_scan has passed; at most QN_ST_MAX_DIMS, the others 1. */
void st_read_shape(uint64_t dims[QN_ST_MAX_DIMS], const char *shape);

/* A raw string with its escapes resolved: itself, or a copy in the arena. Errors: NOMEM. */
qn_code st_unescape(qn_str *out, qn_str raw, qn_arena *arena, qn_err *err);

/* Bits of one element. */
unsigned st_dtype_bits(qn_st_dtype dtype);
/* Product of the dims, and the bytes they take; false on overflow or a broken byte. */
bool st_extent(uint64_t *elements, uint64_t *bytes, qn_st_dtype dtype, const uint64_t *dims,
               uint32_t n_dims);

typedef struct st_shard { /* one file */
    qn_mapping map;       /* empty where the bytes are the caller's */
    char *path;           /* owned */
    const uint8_t *data;  /* the file */
    size_t len, data_at;
} st_shard;

typedef struct st_entry { /* one tensor; small, for it is all that a tensor costs */
    const char *name;
    uint64_t begin, bytes;       /* in the data section */
    uint32_t name_len, shape_at; /* shape_at: offset in the file */
    uint16_t shard;
    uint8_t dtype, n_dims;
} st_entry;

typedef struct st_meta {
    qn_str key, value;
} st_meta;

struct qn_st {
    st_shard *shards;
    st_entry *entries;
    st_meta *meta;
    size_t n_shards, n_entries, n_meta;
    size_t cap_entries, cap_meta; /* while opening */
    qn_arena texts;               /* strings that had escapes */
    qn_names names;
};

#endif
