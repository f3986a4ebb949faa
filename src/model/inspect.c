/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c - the report on a model file. */
#include "model/inspect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "model/model_int.h"

enum { SHOWN_ITEMS = 8, MAX_TEXT = 4 << 20 };

typedef struct report {
    const qn_source *s;
    const qn_inspect_options *opt;
    bool failed; /* no memory somewhere: told once, at the end */
} report;

static void set(report *r, qn_json *object, const char *key, qn_json *value)
{
    if (!qn_json_set(object, key, value)) r->failed = true;
}

static void push(report *r, qn_json *array, qn_json *value)
{
    if (!qn_json_push(array, value)) r->failed = true;
}

/* Bytes of a file as text that JSON can hold: what is no UTF-8 becomes U+FFFD. */
static qn_json *text_of(report *r, qn_str s)
{
    qn_buf b;
    qn_json *v = NULL;
    qn_buf_init(&b, 3 * (size_t)MAX_TEXT + 1);
    if (s.n > MAX_TEXT) s.n = MAX_TEXT;
    for (size_t i = 0; i < s.n;) {
        uint32_t c = 0;
        const size_t n = qn_utf8_step(s.p + i, s.n - i, &c);
        const bool bad = c == QN_UTF8_BAD || c == 0;
        if (qn_buf_append(&b, bad ? "\xEF\xBF\xBD" : s.p + i, bad ? 3 : n, NULL) != QN_OK) {
            r->failed = true;
            break;
        }
        i += n;
    }
    if (!r->failed) v = qn_json_new_str(qn_buf_text(&b), b.len);
    qn_buf_fini(&b);
    return v;
}

static qn_json *text_z(report *r, const char *text) { return text_of(r, qn_str_z(text)); }

/* JSON has no numbers beyond the finite ones: those become texts. */
static qn_json *number_of(report *r, double v)
{
    char text[32];
    if (isfinite(v)) return qn_json_new_num(v);
    snprintf(text, sizeof text, "%g", v);
    return text_z(r, text);
}

static qn_json *value_of(report *r, const qn_gguf_value *v)
{
    int64_t whole = 0;
    double real = 0;
    bool yes = false;
    if (v->type == QN_GGUF_ARRAY) {
        qn_json *list = qn_json_new_array();
        qn_gguf_iter it = qn_gguf_items(v);
        qn_gguf_value item;
        for (size_t i = 0; (r->opt->arrays || i < SHOWN_ITEMS) && qn_gguf_next(&it, &item); i++)
            push(r, list, value_of(r, &item));
        return list;
    }
    if (v->type == QN_GGUF_STRING) {
        qn_gguf_iter it = qn_gguf_items(v);
        qn_str text = {0};
        (void)qn_gguf_next_str(&it, &text);
        return text_of(r, text);
    }
    if (v->type == QN_GGUF_BOOL && qn_gguf_item_bool(&yes, v, 0)) return qn_json_new_bool(yes);
    if (v->type != QN_GGUF_F32 && v->type != QN_GGUF_F64 && qn_gguf_item_i64(&whole, v, 0))
        return qn_json_new_int(whole);
    if (qn_gguf_item_f64(&real, v, 0)) return number_of(r, real);
    return qn_json_new_null();
}

/* {"type","n","first":[...]} for a long array, the value itself for all else. */
static qn_json *metadata_value(report *r, const qn_gguf_value *v)
{
    if (v->type != QN_GGUF_ARRAY || r->opt->arrays || v->n <= SHOWN_ITEMS) return value_of(r, v);
    char type[48];
    qn_json *o = qn_json_new_object();
    snprintf(type, sizeof type, "array of %s", qn_gguf_type_name(v->item));
    set(r, o, "type", text_z(r, type));
    set(r, o, "n", qn_json_new_int((int64_t)v->n));
    set(r, o, "first", value_of(r, v));
    return o;
}

static qn_json *gguf_metadata(report *r)
{
    qn_json *o = qn_json_new_object();
    for (size_t i = 0; i < qn_gguf_n_keys(r->s->gguf) && !r->failed; i++) {
        qn_gguf_value v;
        char key[256];
        const qn_str name = qn_gguf_key(r->s->gguf, i, &v);
        snprintf(key, sizeof key, "%.*s", QN_STR_ARG(name));
        if (!qn_utf8_valid(key, strlen(key), NULL)) snprintf(key, sizeof key, "key %zu", i);
        set(r, o, key, metadata_value(r, &v));
    }
    return o;
}

/* config.json as it stands. */
static qn_code hf_metadata(qn_json **out, const qn_source *s, qn_err *err)
{
    char *text = NULL;
    size_t n = 0;
    QN_TRY(qn_json_dump(&text, &n, s->config, err));
    const qn_code rc = qn_json_parse(out, text, n, SIZE_MAX, err);
    qn_free(text);
    return rc;
}

static uint64_t elements_of(const qn_source_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->n_dims; d++)
        n *= t->dims[d]; /* the reader has checked the product */
    return n;
}

typedef struct census_row {
    const char *name;
    uint64_t tensors, elements, bytes;
} census_row;

static qn_json *census(report *r)
{
    census_row rows[64] = {{0}};
    size_t n = 0;
    qn_json *list = qn_json_new_array();
    for (size_t i = 0; i < qn_source_n_tensors(r->s); i++) {
        qn_source_tensor t;
        size_t k = 0;
        qn_source_tensor_at(r->s, i, &t);
        while (k < n && strcmp(rows[k].name, t.type_name) != 0) k++;
        if (k == QN_LEN(rows)) continue; /* fewer types than that exist */
        if (k == n) rows[n++].name = t.type_name;
        rows[k].tensors++;
        rows[k].elements += elements_of(&t);
        rows[k].bytes += t.bytes;
    }
    for (size_t k = 0; k < n; k++) {
        qn_json *o = qn_json_new_object();
        set(r, o, "format", text_z(r, rows[k].name));
        set(r, o, "tensors", qn_json_new_int((int64_t)rows[k].tensors));
        set(r, o, "elements", qn_json_new_int((int64_t)rows[k].elements));
        set(r, o, "bytes", qn_json_new_int((int64_t)rows[k].bytes));
        push(r, list, o);
    }
    return list;
}

static qn_json *tensors(report *r)
{
    qn_json *list = qn_json_new_array();
    for (size_t i = 0; i < qn_source_n_tensors(r->s) && !r->failed; i++) {
        qn_source_tensor t;
        qn_json *o = qn_json_new_object(), *shape = qn_json_new_array();
        qn_source_tensor_at(r->s, i, &t);
        for (uint32_t d = 0; d < t.n_dims; d++) push(r, shape, qn_json_new_int((int64_t)t.dims[d]));
        set(r, o, "name", text_of(r, t.name));
        set(r, o, "format", text_z(r, t.type_name));
        set(r, o, "shape", shape);
        set(r, o, "bytes", qn_json_new_int((int64_t)t.bytes));
        push(r, list, o);
    }
    return list;
}

static qn_json *model_of(report *r, const qn_model *m)
{
    const qn_model_desc *d = qn_model_get_desc(m);
    qn_json *o = qn_json_new_object();
    const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {
        {"layers", d->n_layers},     {"width", d->width},       {"heads", d->n_heads},
        {"kv_heads", d->n_kv_heads}, {"head_dim", d->head_dim}, {"ffn", d->ffn},
        {"vocab", d->vocab},         {"context", d->context},   {"rope_dims", d->rope_dims},
        {"window", d->window},
    };
    set(r, o, "family", text_z(r, d->family));
    for (size_t i = 0; i < QN_LEN(sizes); i++)
        set(r, o, sizes[i].name, qn_json_new_int(sizes[i].value));
    set(r, o, "norm_eps", qn_json_new_num((double)d->norm_eps));
    set(r, o, "rope_theta", qn_json_new_num((double)d->rope_theta));
    if (d->rope_theta_local > 0)
        set(r, o, "rope_theta_local", qn_json_new_num((double)d->rope_theta_local));
    set(r, o, "rope_interleaved", qn_json_new_bool(d->rope_interleaved));
    set(r, o, "tied", qn_json_new_bool(d->tied));
    set(r, o, "tensors_left_out", qn_json_new_int((int64_t)m->weights.n_dropped));
    set(r, o, "weight_bytes", qn_json_new_int((int64_t)qn_model_weight_bytes(m)));
    return o;
}

/* Either the descriptor of a model whose tensors are all there, or what stands against it. */
static qn_code judge(report *r, qn_json *root, const char *path, qn_err *err)
{
    qn_model *m = NULL;
    qn_err why = {0};
    const qn_code rc = qn_model_open_bare(&m, path, &why);
    if (rc == QN_E_NOMEM) return qn_fail(err, rc, "%s", why.msg);
    if (rc == QN_OK)
        set(r, root, "model", model_of(r, m));
    else
        set(r, root, "problem", text_z(r, why.msg));
    qn_model_unref(m);
    return QN_OK;
}

static qn_code fill(report *r, qn_json *root, const char *path, qn_err *err)
{
    const qn_source *s = r->s;
    qn_json *metadata = NULL;
    set(r, root, "path", text_z(r, path));
    set(r, root, "source", text_z(r, s->gguf ? "gguf" : "safetensors"));
    if (s->gguf) set(r, root, "version", qn_json_new_int(qn_gguf_version(s->gguf)));
    set(r, root, "type", text_of(r, s->type));
    set(r, root, "files",
        qn_json_new_int((int64_t)(s->gguf ? qn_gguf_n_parts(s->gguf) : qn_st_n_shards(s->st))));
    set(r, root, "bytes", qn_json_new_int((int64_t)qn_source_file_bytes(s)));
    set(r, root, "tensor_count", qn_json_new_int((int64_t)qn_source_n_tensors(s)));
    if (s->gguf)
        metadata = gguf_metadata(r);
    else
        QN_TRY(hf_metadata(&metadata, s, err));
    set(r, root, "metadata", metadata);
    set(r, root, "census", census(r));
    if (r->opt->tensors) set(r, root, "tensors", tensors(r));
    return judge(r, root, path, err);
}

qn_code qn_model_inspect(char **out, size_t *n, const char *path, const qn_inspect_options *opt,
                         qn_err *err)
{
    qn_code rc = QN_OK;
    qn_source s = {0};
    report r = {.s = &s, .opt = opt};
    qn_json *root = NULL;
    *out = NULL;
    QN_TRY(qn_source_open(&s, path, err));
    root = qn_json_new_object();
    if (!root) {
        rc = qn_fail(err, QN_E_NOMEM, "the report");
        goto out;
    }
    QN_TRY_OUT(fill(&r, root, path, err));
    if (r.failed)
        rc = qn_fail(err, QN_E_NOMEM, "the report");
    else
        rc = qn_json_dump(out, n, root, err);
out:
    qn_json_free(root);
    qn_source_close(&s);
    return rc;
}
