/* SPDX-License-Identifier: Apache-2.0 */
/* source_tensors.c - the tensor directory of either kind of source, and its digest. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/source.h"
#include "model/weights.h"

enum { WHOLE_BYTES = 64 << 10, WINDOW_BYTES = 4 << 10, WINDOWS = 8 };

size_t qn_source_n_tensors(const qn_source *s)
{
    return s->gguf ? qn_gguf_n_tensors(s->gguf) : qn_st_n_tensors(s->st);
}

void qn_source_tensor_at(const qn_source *s, size_t i, qn_source_tensor *out)
{
    memset(out, 0, sizeof *out);
    if (s->gguf) {
        qn_gguf_tensor t;
        qn_gguf_tensor_at(s->gguf, i, &t);
        *out = (qn_source_tensor){.name = t.name,
                                  .type_name = t.type_name,
                                  .n_dims = t.n_dims,
                                  .bytes = t.bytes,
                                  .data = t.data};
        for (uint32_t d = 0; d < t.n_dims; d++) out->dims[d] = t.dims[t.n_dims - 1 - d];
    } else {
        qn_st_tensor t;
        qn_st_tensor_at(s->st, i, &t);
        *out = (qn_source_tensor){.name = t.name,
                                  .type_name = qn_st_dtype_name(t.dtype),
                                  .n_dims = t.n_dims,
                                  .bytes = t.bytes,
                                  .data = t.data};
        memcpy(out->dims, t.dims, sizeof out->dims);
    }
}

uint64_t qn_source_file_bytes(const qn_source *s)
{
    return s->gguf ? qn_gguf_file_bytes(s->gguf) : qn_st_file_bytes(s->st);
}

bool qn_source_has(const qn_source *s, const char *gguf, const char *hf)
{
    char name[160];
    qn_gguf_tensor g;
    qn_st_tensor t;
    if (s->gguf) return gguf && qn_gguf_find_tensor(s->gguf, gguf, &g);
    if (!hf) return false;
    snprintf(name, sizeof name, "%s.weight", hf);
    if (qn_st_find(s->st, name, &t)) return true;
    snprintf(name, sizeof name, "language_model.%s.weight", hf);
    return qn_st_find(s->st, name, &t);
}

static void add_data(qn_hasher *h, const uint8_t *data, uint64_t bytes)
{
    if (bytes <= WHOLE_BYTES) {
        qn_hasher_update(h, data, (size_t)bytes);
        return;
    }
    const uint64_t last = bytes - WINDOW_BYTES;
    for (uint64_t i = 0; i < WINDOWS; i++)
        qn_hasher_update(h, data + last / (WINDOWS - 1) * i, WINDOW_BYTES);
    qn_hasher_update(h, data + last, WINDOW_BYTES);
}

qn_code qn_source_digest(qn_digest128 *out, const qn_source *s, qn_err *err)
{
    qn_hasher *h = NULL;
    QN_TRY(qn_hasher_new(&h, 0, err));
    const uint64_t total = qn_source_file_bytes(s);
    qn_hasher_update(h, &total, sizeof total);
    for (size_t i = 0; i < qn_source_n_tensors(s); i++) {
        qn_source_tensor t;
        qn_source_tensor_at(s, i, &t);
        qn_hasher_update(h, t.name.p, t.name.n);
        qn_hasher_update(h, t.type_name, strlen(t.type_name) + 1);
        qn_hasher_update(h, t.dims, sizeof t.dims);
        qn_hasher_update(h, &t.bytes, sizeof t.bytes);
        add_data(h, t.data, t.bytes);
    }
    *out = qn_hasher_get128(h);
    qn_hasher_free(h);
    return QN_OK;
}
