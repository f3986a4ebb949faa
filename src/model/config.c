/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - fields into the descriptor, then the relations between them. */
#include "model/config.h"

#include <math.h>
#include <string.h>

/* Has the family set a default? */
static bool is_set(const qn_model_desc *d, const qn_field *f)
{
    const char *at = (const char *)d + f->at;
    return f->kind == QN_FIELD_U32   ? *(const uint32_t *)(const void *)at != 0
           : f->kind == QN_FIELD_F32 ? *(const float *)(const void *)at != 0.0f
                                     : true;
}

static qn_code read_bool(qn_model_desc *d, const qn_field *f, const qn_source *s, bool *found,
                         qn_err *err)
{
    bool v = false;
    QN_TRY(qn_source_bool(found, &v, s, f->gguf, f->hf, err));
    if (*found) *(bool *)(void *)((char *)d + f->at) = v;
    return QN_OK;
}

static qn_code read_number(qn_model_desc *d, const qn_field *f, const qn_source *s, bool *found,
                           qn_err *err)
{
    double v = 0;
    char key[96];
    QN_TRY(qn_source_num(found, &v, s, f->gguf, f->hf, err));
    if (!*found) return QN_OK;
    qn_source_key(key, s, f->gguf, f->hf);
    if (f->kind == QN_FIELD_U32 && v != floor(v))
        return qn_fail(err, QN_E_FORMAT, "%s is %g, expected a whole number", key, v);
    if (!(v >= f->lo && v <= f->hi)) /* NaN fails too */
        return qn_fail(err, QN_E_LIMIT, "%s is %.17g, expected %g to %g", key, v, f->lo, f->hi);
    if (f->kind == QN_FIELD_U32)
        *(uint32_t *)(void *)((char *)d + f->at) = (uint32_t)v;
    else
        *(float *)(void *)((char *)d + f->at) = (float)v;
    return QN_OK;
}

qn_code qn_desc_read(qn_model_desc *d, const qn_field *fields, size_t n, const qn_source *s,
                     qn_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const qn_field *f = &fields[i];
        bool found = false;
        char key[96];
        if (!(s->gguf ? f->gguf : f->hf)) continue;
        QN_TRY(f->kind == QN_FIELD_BOOL ? read_bool(d, f, s, &found, err)
                                        : read_number(d, f, s, &found, err));
        if (!found && (f->need & (s->gguf ? QN_FIELD_IN_GGUF : QN_FIELD_IN_HF)) && !is_set(d, f))
            return qn_fail(err, QN_E_FORMAT, "%s is missing",
                           qn_source_key(key, s, f->gguf, f->hf));
    }
    return QN_OK;
}

qn_code qn_desc_read_act(qn_model_desc *d, const qn_source *s, const char *hf, qn_err *err)
{
    static const struct {
        const char *name;
        qn_act act;
    } acts[] = {
        {"silu", QN_ACT_SILU},          {"swish", QN_ACT_SILU},
        {"gelu", QN_ACT_GELU_ERF},      {"gelu_pytorch_tanh", QN_ACT_GELU_TANH},
        {"gelu_new", QN_ACT_GELU_TANH},
    };
    bool found = false;
    qn_str name = {0};
    QN_TRY(qn_source_str(&found, &name, s, NULL, hf, err));
    if (!found) return QN_OK;
    for (size_t i = 0; i < QN_LEN(acts); i++)
        if (qn_str_eq_z(name, acts[i].name)) {
            d->act = acts[i].act;
            return QN_OK;
        }
    return qn_fail(err, QN_E_UNSUPPORTED,
                   "config.json: %s \"%.*s\" is not supported; known: silu, gelu, "
                   "gelu_pytorch_tanh",
                   hf, (int)(name.n < 48 ? name.n : 48), name.n ? name.p : "");
}

static qn_code read_layer_types(qn_model_desc *d, const qn_json *list, qn_err *err)
{
    if (qn_json_len(list) != d->n_layers)
        return qn_fail(err, QN_E_FORMAT, "config.json: layer_types has %zu names, expected %u",
                       qn_json_len(list), d->n_layers);
    for (uint32_t l = 0; l < d->n_layers; l++) {
        size_t n = 0;
        const char *p = qn_json_str(qn_json_at(list, l), &n);
        const qn_str name = {p, p ? n : 0};
        if (qn_str_eq_z(name, "sliding_attention"))
            d->sliding[l / 8] = (uint8_t)(d->sliding[l / 8] | 1u << (l % 8));
        else if (!qn_str_eq_z(name, "full_attention"))
            return qn_fail(err, QN_E_UNSUPPORTED,
                           "config.json: layer_types[%u] is \"%.*s\", expected full_attention or "
                           "sliding_attention",
                           l, (int)(name.n < 48 ? name.n : 48), name.n ? name.p : "");
    }
    return QN_OK;
}

qn_code qn_desc_read_windows(qn_model_desc *d, const qn_source *s, uint32_t period, qn_err *err)
{
    const qn_json *list = qn_source_json(s, "layer_types");
    bool any = false;
    if (qn_json_type_of(list) == QN_JSON_ARRAY)
        QN_TRY(read_layer_types(d, list, err));
    else if (d->window || !s->gguf)
        for (uint32_t l = 0; l < d->n_layers; l++)
            if (period == 0 ? d->window != 0 : (l + 1) % period != 0)
                d->sliding[l / 8] = (uint8_t)(d->sliding[l / 8] | 1u << (l % 8));
    for (uint32_t l = 0; l < d->n_layers; l++) any = any || qn_layer_bit(d->sliding, l);
    if (any && d->window == 0)
        return qn_fail(err, QN_E_FORMAT,
                       "config.json: layers use sliding attention, sliding_window is missing");
    if (!any) d->window = 0;
    return QN_OK;
}

static qn_code product(const char *what, uint64_t a, uint64_t b, qn_err *err)
{
    if (a * b > 1u << 30)
        return qn_fail(err, QN_E_LIMIT, "%s is %llu, expected at most %u", what,
                       (unsigned long long)(a * b), 1u << 30);
    return QN_OK;
}

qn_code qn_desc_check(const qn_model_desc *d, qn_err *err)
{
    if (d->n_layers == 0 || d->n_layers > QN_MAX_LAYERS)
        return qn_fail(err, QN_E_LIMIT, "the model has %u layers, expected 1 to %d", d->n_layers,
                       QN_MAX_LAYERS);
    if (d->width == 0 || d->ffn == 0 || d->vocab == 0 || d->n_heads == 0 || d->n_kv_heads == 0 ||
        d->head_dim == 0 || d->context == 0)
        return qn_fail(
            err, QN_E_FORMAT,
            "a size is zero: width %u, feed-forward %u, vocabulary %u, heads %u, kv heads "
            "%u, head size %u, context %u",
            d->width, d->ffn, d->vocab, d->n_heads, d->n_kv_heads, d->head_dim, d->context);
    if (d->n_heads % d->n_kv_heads != 0)
        return qn_fail(err, QN_E_FORMAT, "%u heads share %u kv heads, expected a multiple",
                       d->n_heads, d->n_kv_heads);
    if (d->rope_dims == 0 || d->rope_dims % 2 != 0 || d->rope_dims > d->head_dim)
        return qn_fail(err, QN_E_FORMAT,
                       "rope rotates %u values of a head of %u, expected an even number within it",
                       d->rope_dims, d->head_dim);
    if (!(d->norm_eps > 0 && d->norm_eps < 1))
        return qn_fail(err, QN_E_LIMIT, "the norm's epsilon is %g, expected above 0 and below 1",
                       (double)d->norm_eps);
    QN_TRY(product("heads times head size", d->n_heads, d->head_dim, err));
    QN_TRY(product("heads times head size times layers", (uint64_t)d->n_heads * d->head_dim,
                   d->n_layers, err));
    return product("the feed-forward width times layers", d->ffn, d->n_layers, err);
}
