/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_write.c - the header is gathered as a JSON document; the first byte of data writes it.
 *
 * A failed call is kept in `failed` and answers all later ones.
 */
#include "format/safetensors_write.h"

#include <string.h>

#include "base/alloc.h"
#include "dep/json.h"
#include "format/st_int.h"
#include "format/stream.h"

typedef unsigned long long ull;

struct qn_st_writer {
    qn_stream to;
    qn_json *header; /* tensors, and "__metadata__" once there is any */
    uint64_t data_bytes, done;
    bool begun, finished;
    qn_err failed; /* code is QN_OK while all went well */
};

static const char meta_key[] = "__metadata__";

qn_code qn_st_writer_open(qn_st_writer **out, const char *path, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    qn_st_writer *w = qn_zalloc(sizeof *w);
    if (!w) return qn_fail(err, QN_E_NOMEM, "safetensors writer");
    w->header = qn_json_new_object();
    if (!w->header)
        rc = qn_fail(err, QN_E_NOMEM, "safetensors header");
    else
        rc = qn_stream_open(&w->to, path, err);
    if (rc == QN_OK) {
        *out = w;
        return QN_OK;
    }
    qn_json_free(w->header);
    qn_free(w);
    return rc;
}

void qn_st_writer_close(qn_st_writer *w)
{
    if (!w) return;
    qn_stream_drop(&w->to);
    qn_json_free(w->header);
    qn_free(w);
}

static qn_code ended(qn_st_writer *w, qn_code rc, qn_err *err)
{
    if (w->failed.code == QN_OK && rc == QN_OK) return QN_OK;
    if (w->failed.code == QN_OK) w->failed.code = rc;
    if (err) *err = w->failed;
    return w->failed.code;
}

/* A name that is new in `object` and can be JSON. */
static qn_code claim(const qn_st_writer *w, const qn_json *object, const char *name, qn_err *err)
{
    if (w->begun) return qn_fail(err, QN_E_INVAL, "'%s' comes after data", name);
    if (!qn_utf8_valid(name, strlen(name), NULL))
        return qn_fail(err, QN_E_INVAL, "name '%s' is not UTF-8", qn_show(qn_str_z(name)).text);
    if (qn_json_get(object, name)) return qn_fail(err, QN_E_INVAL, "'%s' is given twice", name);
    return QN_OK;
}

/* The library hands out members read-only; this one is ours to change. */
static qn_json *own_member(qn_json *object, const char *key)
{
    return (qn_json *)(uintptr_t)qn_json_get(object, key);
}

static qn_code add_meta(qn_st_writer *w, const char *key, qn_str value, qn_err *err)
{
    if (!qn_json_get(w->header, meta_key) &&
        !qn_json_set(w->header, meta_key, qn_json_new_object()))
        return qn_fail(err, QN_E_NOMEM, "metadata");
    qn_json *meta = own_member(w->header, meta_key);
    QN_TRY(claim(w, meta, key, err));
    if (!qn_utf8_valid(value.p, value.n, NULL))
        return qn_fail(err, QN_E_INVAL, "metadata '%s' is not UTF-8", key);
    if (!qn_json_set(meta, key, qn_json_new_str(value.p, value.n)))
        return qn_fail(err, QN_E_NOMEM, "metadata '%s'", key);
    return QN_OK;
}

/* Sets object[key] to a list of integers. */
static bool set_list(qn_json *object, const char *key, const uint64_t *items, uint32_t n)
{
    if (!qn_json_set(object, key, qn_json_new_array())) return false;
    qn_json *list = own_member(object, key);
    for (uint32_t i = 0; i < n; i++)
        if (!qn_json_push(list, qn_json_new_int((int64_t)items[i]))) return false;
    return true;
}

static qn_code add_tensor(qn_st_writer *w, const char *name, qn_st_dtype dtype,
                          const uint64_t *dims, uint32_t n_dims, qn_err *err)
{
    uint64_t elements = 0, bytes = 0;
    if ((unsigned)dtype >= QN_ST_DTYPE_COUNT || n_dims > QN_ST_MAX_DIMS)
        return qn_fail(err, QN_E_INVAL, "tensor '%s': dtype %d, %u dims", name, (int)dtype, n_dims);
    if (!st_extent(&elements, &bytes, dtype, dims, n_dims) || bytes > INT64_MAX - w->data_bytes)
        return qn_fail(err, QN_E_INVAL, "tensor '%s': no whole number of bytes below 2^63", name);
    for (uint32_t d = 0; d < n_dims; d++)
        if (dims[d] > INT64_MAX)
            return qn_fail(err, QN_E_INVAL, "tensor '%s': dim %llu", name, (ull)dims[d]);
    QN_TRY(claim(w, w->header, name, err));
    if (strcmp(name, meta_key) == 0)
        return qn_fail(err, QN_E_INVAL, "a tensor may not be called %s", meta_key);
    const uint64_t offsets[2] = {w->data_bytes, w->data_bytes + bytes};
    const char *type = qn_st_dtype_name(dtype);
    if (!qn_json_set(w->header, name, qn_json_new_object()))
        return qn_fail(err, QN_E_NOMEM, "tensor '%s'", name);
    qn_json *t = own_member(w->header, name);
    if (!qn_json_set(t, "dtype", qn_json_new_str(type, strlen(type))) ||
        !set_list(t, "shape", dims, n_dims) || !set_list(t, "data_offsets", offsets, 2))
        return qn_fail(err, QN_E_NOMEM, "tensor '%s'", name);
    w->data_bytes = offsets[1];
    return QN_OK;
}

static qn_code begin(qn_st_writer *w, qn_err *err)
{
    char *text = NULL;
    size_t n = 0;
    if (w->begun) return QN_OK;
    w->begun = true;
    QN_TRY(qn_json_dump(&text, &n, w->header, err));
    const size_t padded = (n + 7) & ~(size_t)7;
    uint8_t length[8];
    qn_code rc = QN_OK;
    if (padded > QN_ST_MAX_HEADER) {
        rc = qn_fail(err, QN_E_LIMIT, "header has %zu bytes, at most %d allowed", padded,
                     QN_ST_MAX_HEADER);
        goto out;
    }
    for (size_t i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)padded >> (8 * i));
    QN_TRY_OUT(qn_stream_put(&w->to, length, sizeof length, err));
    QN_TRY_OUT(qn_stream_put(&w->to, text, n, err));
    rc = qn_stream_put(&w->to, "        ", padded - n, err);
out:
    qn_free(text);
    return rc;
}

static qn_code write_data(qn_st_writer *w, const void *bytes, size_t n, qn_err *err)
{
    QN_TRY(begin(w, err));
    if (n > w->data_bytes - w->done)
        return qn_fail(err, QN_E_INVAL, "%zu bytes where %llu are left", n,
                       (ull)(w->data_bytes - w->done));
    w->done += n;
    return qn_stream_put(&w->to, bytes, n, err);
}

static qn_code finish(qn_st_writer *w, qn_err *err)
{
    if (w->finished) return qn_fail(err, QN_E_INVAL, "the file is finished already");
    QN_TRY(begin(w, err));
    if (w->done != w->data_bytes)
        return qn_fail(err, QN_E_INVAL, "%llu of %llu bytes of data", (ull)w->done,
                       (ull)w->data_bytes);
    w->finished = true;
    return qn_stream_commit(&w->to, err);
}

qn_code qn_st_put_meta(qn_st_writer *w, const char *key, qn_str value, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, add_meta(w, key, value, &w->failed), err);
}

qn_code qn_st_add_tensor(qn_st_writer *w, const char *name, qn_st_dtype dtype, const uint64_t *dims,
                         uint32_t n_dims, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, add_tensor(w, name, dtype, dims, n_dims, &w->failed), err);
}

qn_code qn_st_write(qn_st_writer *w, const void *bytes, size_t n, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, write_data(w, bytes, n, &w->failed), err);
}

qn_code qn_st_writer_finish(qn_st_writer *w, qn_err *err)
{
    if (w->failed.code != QN_OK) return ended(w, QN_OK, err);
    return ended(w, finish(w, &w->failed), err);
}
