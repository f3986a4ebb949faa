/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_fuzz.c - any bytes as a GGUF file. Opening takes at most their size and 1 MiB of memory; what is
 * refused names the file and a reason; what is taken can be read through: every key is found by its
 * name, every tensor lies inside the file, every supported one can be unpacked. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

/* A name as C text; NULL where it holds a NUL or is too long for the buffer. */
static const char *text_of(char buffer[300], qn_str s)
{
    if (s.n >= 300 || (s.n && memchr(s.p, 0, s.n))) return NULL;
    if (s.n) memcpy(buffer, s.p, s.n);
    buffer[s.n] = '\0';
    return buffer;
}

static void read_items(const qn_gguf_value *v, unsigned depth)
{
    uint64_t n = 0, u64 = 0;
    int64_t i64 = 0;
    double f64 = 0;
    bool flag = false;
    qn_gguf_value item;
    qn_gguf_iter it = qn_gguf_items(v);
    want(depth <= QN_GGUF_MAX_NEST);
    for (; qn_gguf_next(&it, &item); n++)
        if (item.type == QN_GGUF_ARRAY) read_items(&item, depth + 1);
    want(n == v->n);
    for (uint64_t i = 0; i < v->n && i < 8; i++) {
        const bool number = qn_gguf_item_f64(&f64, v, i);
        want(number || !qn_gguf_item_i64(&i64, v, i));
        want(number || !qn_gguf_item_u64(&u64, v, i));
        (void)qn_gguf_item_bool(&flag, v, i);
    }
    want(!qn_gguf_item_f64(&f64, v, v->n));
}

static void read_key(const qn_gguf *g, size_t i)
{
    char buffer[300];
    qn_gguf_value v, same;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    int64_t i64 = 0;
    float f32 = 0;
    double f64 = 0;
    bool flag = false;
    qn_str s = {NULL, 0};
    qn_err err;
    const char *key = text_of(buffer, qn_gguf_key(g, i, &v));
    read_items(&v, 0);
    if (!key) return;
    want(qn_gguf_find(g, key, &same) && same.data == v.data && same.bytes == v.bytes);
    want(qn_gguf_get_u32(&u32, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_u64(&u64, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_i64(&i64, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_f32(&f32, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_f64(&f64, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_bool(&flag, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_str(&s, g, key, &err) == QN_OK || err.msg[0]);
    want(qn_gguf_get_array(&same, g, key, QN_GGUF_STRING, &err) == QN_OK || err.msg[0]);
}

static void read_tensor(const qn_gguf *g, size_t i, const uint8_t *data, size_t n)
{
    char buffer[300];
    float out[256];
    qn_gguf_tensor t, same;
    qn_matrix m;
    qn_err err;
    qn_gguf_tensor_at(g, i, &t);
    want(t.offset <= n || t.bytes == 0);
    want(t.bytes == 0 || (t.data >= data && t.bytes <= n && t.data + t.bytes <= data + n));
    const char *name = text_of(buffer, t.name);
    if (name) want(qn_gguf_find_tensor(g, name, &same) && same.data == t.data);
    if (qn_gguf_tensor_matrix(&m, &t, &err) != QN_OK) {
        want(err.msg[0] != '\0');
        return;
    }
    const qn_format *f = qn_format_get(m.fmt);
    f->unpack(out, &m, 0, 0, f->block);
    f->unpack(out, &m, m.rows - 1, m.cols - f->block, f->block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_gguf *g = NULL;
    qn_err err = {.code = QN_OK};
    uint8_t *copy = qn_alloc(n); /* aligned, and exactly n bytes */
    want(copy != NULL);
    if (n) memcpy(copy, data, n);
    const size_t live = qn_alloc_live();
    qn_alloc_set_ceiling(qn_alloc_live_bytes() + n + (1 << 20));
    const qn_code rc = qn_gguf_open_bytes(&g, "fuzz.gguf", copy, n, &err);
    qn_alloc_set_ceiling(SIZE_MAX);
    if (rc == QN_OK) {
        qn_gguf_census row;
        uint64_t tensors = 0;
        for (size_t i = 0; i < qn_gguf_n_keys(g); i++) read_key(g, i);
        for (size_t i = 0; i < qn_gguf_n_tensors(g); i++) read_tensor(g, i, copy, n);
        for (size_t it = 0; qn_gguf_census_next(g, &it, &row);) tensors += row.tensors;
        want(tensors == qn_gguf_n_tensors(g));
    } else {
        want(!g && rc == err.code && rc != QN_E_NOMEM && strstr(err.msg, "fuzz.gguf"));
    }
    qn_gguf_close(g);
    want(qn_alloc_live() == live);
    qn_free(copy);
    return 0;
}
