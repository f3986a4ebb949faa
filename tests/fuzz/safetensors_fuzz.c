/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_fuzz.c - any bytes as a safetensors file. Opening takes at most their size and 1 MiB of
 * memory; what is refused names the file and a reason; what is taken can be read through, its header
 * is JSON to the JSON library too, and its modules can be asked for. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "dep/json.h"
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

/* The library is the oracle of the scanner: same names, same number of members. */
static void check_header(const qn_st *s, const uint8_t *data)
{
    uint64_t n = 0;
    qn_json *doc = NULL;
    memcpy(&n, data, 8);
    want(qn_json_parse(&doc, (const char *)data + 8, (size_t)n, (size_t)n, NULL) == QN_OK);
    const qn_json *meta = qn_json_get(doc, "__metadata__");
    want(qn_json_len(doc) == qn_st_n_tensors(s) + (meta != NULL));
    want(qn_json_len(meta) == qn_st_n_meta(s));
    for (size_t i = 0; i < qn_st_n_meta(s); i++) {
        qn_str key, value;
        size_t len = 0;
        char name[300];
        qn_st_meta_at(s, i, &key, &value);
        if (key.n >= sizeof name) continue;
        if (key.n) memcpy(name, key.p, key.n);
        name[key.n] = '\0';
        const char *text = qn_json_str(qn_json_get(meta, name), &len);
        want(text && qn_str_eq(qn_str_make(text, len), value));
    }
    qn_json_free(doc);
}

static void unpack_ends(const qn_matrix *m)
{
    float out[256];
    const qn_format *f = qn_format_get(m->fmt);
    f->unpack(out, m, 0, 0, f->block);
    f->unpack(out, m, m->rows - 1, m->cols - f->block, f->block);
}

static void read_tensor(const qn_st *s, size_t i, const uint8_t *data, size_t n)
{
    char name[300];
    qn_st_tensor t, same;
    qn_matrix m;
    qn_err err;
    qn_st_tensor_at(s, i, &t);
    want(t.data >= data && t.bytes <= n && t.data + t.bytes <= data + n);
    if (t.name.n >= sizeof name) return;
    if (t.name.n) memcpy(name, t.name.p, t.name.n);
    name[t.name.n] = '\0';
    want(qn_st_find(s, name, &same) && same.data == t.data && same.dtype == t.dtype);
    if (qn_st_matrix(&m, s, name, &err) == QN_OK)
        unpack_ends(&m);
    else
        want(err.msg[0] != '\0');
    char *dot = strrchr(name, '.');
    if (!dot) return;
    *dot = '\0'; /* the module this may be a plane of */
    for (uint32_t group = 0; group <= 128; group = group ? 2 * group : 32) {
        if (qn_st_module(&m, s, name, 0, group, 0, &err) == QN_OK)
            unpack_ends(&m);
        else
            want(err.msg[0] != '\0');
    }
    (void)qn_st_module(&m, s, name, 4, 0, 0, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_st *s = NULL;
    qn_err err = {.code = QN_OK};
    uint8_t *copy = qn_alloc(n); /* aligned, and exactly n bytes */
    want(copy != NULL);
    if (n) memcpy(copy, data, n);
    const size_t live = qn_alloc_live();
    qn_alloc_set_ceiling(qn_alloc_live_bytes() + n + (1 << 20));
    const qn_code rc = qn_st_open_bytes(&s, "fuzz.safetensors", copy, n, &err);
    qn_alloc_set_ceiling(SIZE_MAX);
    if (rc == QN_OK) {
        check_header(s, copy);
        for (size_t i = 0; i < qn_st_n_tensors(s); i++) read_tensor(s, i, copy, n);
    } else {
        want(!s && rc == err.code && rc != QN_E_NOMEM && strstr(err.msg, "fuzz.safetensors"));
    }
    qn_st_close(s);
    want(qn_alloc_live() == live);
    qn_free(copy);
    return 0;
}
