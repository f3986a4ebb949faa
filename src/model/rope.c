/* SPDX-License-Identifier: Apache-2.0 */
/* rope.c - reading rope settings and computing the frequencies. */
#include "model/rope.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

typedef struct named_kind {
    const char *name;
    qn_rope_kind kind;
} named_kind;

static const named_kind kinds[] = {
    {"default", QN_ROPE_DEFAULT}, {"none", QN_ROPE_DEFAULT},  {"mrope", QN_ROPE_DEFAULT},
    {"linear", QN_ROPE_LINEAR},   {"llama3", QN_ROPE_LLAMA3}, {"yarn", QN_ROPE_YARN},
    {"longrope", QN_ROPE_LONG},   {"su", QN_ROPE_LONG},
};

static qn_code find_kind(qn_rope_kind *out, qn_str name, qn_err *err)
{
    for (size_t i = 0; i < QN_LEN(kinds); i++)
        if (qn_str_eq_z(name, kinds[i].name)) {
            *out = kinds[i].kind;
            return QN_OK;
        }
    return qn_fail(err, QN_E_UNSUPPORTED,
                   "rope scaling \"%.*s\" is not supported; known: default, linear, llama3, yarn, "
                   "longrope",
                   (int)(name.n < 48 ? name.n : 48), name.n ? name.p : "");
}

/* A value that must be a finite number in [lo, hi] where it is there. */
static qn_code take(float *out, double v, const char *name, double lo, double hi, qn_err *err)
{
    if (!(v >= lo && v <= hi))
        return qn_fail(err, QN_E_LIMIT, "rope %s is %g, expected %g to %g", name, v, lo, hi);
    *out = (float)v;
    return QN_OK;
}

static qn_code take_number(float *out, const qn_json *v, const char *name, double lo, double hi,
                           qn_err *err)
{
    const qn_json_type type = qn_json_type_of(v);
    if (type == QN_JSON_NULL) return QN_OK;
    if (type != QN_JSON_INT && type != QN_JSON_REAL)
        return qn_fail(err, QN_E_FORMAT, "rope %s is no number", name);
    return take(out, qn_json_num(v, 0), name, lo, hi, err);
}

static qn_code json_take(float *out, const qn_json *o, const char *name, double lo, double hi,
                         qn_err *err)
{
    return take_number(out, qn_json_get(o, name), name, lo, hi, err);
}

/* config.json: rope_scaling, or in newer files rope_parameters, which carries theta too and may be one
 * object a kind of layers. Without that, sliding layers are not scaled. */
static const qn_json *find_object(const qn_rope_spec *r, const qn_source *s)
{
    const qn_json *o = qn_source_json(s, "rope_parameters");
    const qn_json *full = qn_json_get(o, "full_attention"),
                  *local = qn_json_get(o, "sliding_attention");
    if (r->layers == QN_ROPE_OF_SLIDING) return local;
    if (r->layers == QN_ROPE_OF_FULL && (full || local)) return full;
    return qn_json_type_of(o) == QN_JSON_OBJECT ? o : qn_source_json(s, "rope_scaling");
}

static qn_code read_hf(qn_rope_spec *r, const qn_source *s, qn_err *err)
{
    const bool local = r->layers == QN_ROPE_OF_SLIDING;
    const qn_json *o = find_object(r, s);
    const qn_json *kind = NULL;
    float original = 0;
    size_t n = 0;
    QN_TRY(take_number(&r->theta, qn_source_json(s, local ? "rope_local_base_freq" : "rope_theta"),
                       local ? "rope_local_base_freq" : "rope_theta", 1, 1e12, err));
    if (qn_json_type_of(o) == QN_JSON_NULL) return QN_OK;
    if (qn_json_type_of(o) != QN_JSON_OBJECT)
        return qn_fail(err, QN_E_FORMAT,
                       "config.json: rope_scaling or rope_parameters is no object");
    kind = qn_json_get(o, "rope_type");
    if (!kind) kind = qn_json_get(o, "type");
    const char *name = qn_json_str(kind, &n);
    const void *it = NULL;
    const qn_json *member = NULL;
    while (!name && qn_json_next(o, &it, NULL, &member))
        if (qn_json_type_of(member) == QN_JSON_OBJECT)
            return qn_fail(err, QN_E_UNSUPPORTED,
                           "config.json: rope_parameters per layer type are not supported");
    if (!name && qn_json_type_of(qn_json_get(o, "factor")) != QN_JSON_NULL)
        return qn_fail(err, QN_E_FORMAT, "config.json: rope has a factor, rope_type is missing");
    if (name) QN_TRY(find_kind(&r->kind, qn_str_make(name, n), err));
    QN_TRY(json_take(&r->theta, o, "rope_theta", 1, 1e12, err));
    QN_TRY(json_take(&r->factor, o, "factor", 1e-3, 1e6, err));
    QN_TRY(json_take(&r->low, o, "low_freq_factor", 1e-6, 1e6, err));
    QN_TRY(json_take(&r->high, o, "high_freq_factor", 1e-6, 1e6, err));
    QN_TRY(json_take(&r->beta_fast, o, "beta_fast", 1e-6, 1e6, err));
    QN_TRY(json_take(&r->beta_slow, o, "beta_slow", 1e-6, 1e6, err));
    QN_TRY(json_take(&r->magnitude, o, "attention_factor", 0, 1e3, err));
    QN_TRY(json_take(&r->magnitude, o, "long_mscale", 0, 1e3, err));
    QN_TRY(json_take(&r->mscale, o, "mscale", 0, 1e3, err));
    QN_TRY(json_take(&r->mscale_all, o, "mscale_all_dim", 0, 1e3, err));
    QN_TRY(take_number(&original, qn_source_json(s, "original_max_position_embeddings"),
                       "original_max_position_embeddings", 1, 1 << 30, err));
    QN_TRY(json_take(&original, o, "original_max_position_embeddings", 1, 1 << 30, err));
    if (original > 0) r->original = (uint32_t)original;
    if (r->kind != QN_ROPE_LONG) return QN_OK;
    const qn_json *list = qn_json_get(o, "long_factor");
    if (qn_json_len(list) != r->dims / 2)
        return qn_fail(err, QN_E_FORMAT, "rope long_factor has %zu numbers, expected %u",
                       qn_json_len(list), r->dims / 2);
    r->n_factors = r->dims / 2;
    for (uint32_t i = 0; i < r->n_factors; i++)
        QN_TRY(take(&r->factors[i], qn_json_num(qn_json_at(list, i), (double)NAN), "long_factor",
                    1e-6, 1e9, err));
    return QN_OK;
}

static qn_code read_gguf(qn_rope_spec *r, const qn_source *s, qn_err *err)
{
    bool found = false;
    qn_str name = {0};
    double v = 0;
    const bool local = r->layers == QN_ROPE_OF_SLIDING;
    QN_TRY(
        qn_source_num(&found, &v, s, local ? "rope.freq_base_swa" : "rope.freq_base", NULL, err));
    if (found) QN_TRY(take(&r->theta, v, "freq_base", 1, 1e12, err));
    if (local) return QN_OK; /* never scaled */
    QN_TRY(qn_source_str(&found, &name, s, "rope.scaling.type", NULL, err));
    if (found) QN_TRY(find_kind(&r->kind, name, err));
    QN_TRY(qn_source_num(&found, &v, s, "rope.scaling.factor", NULL, err));
    if (!found) { /* the older key means linear */
        QN_TRY(qn_source_num(&found, &v, s, "rope.scale_linear", NULL, err));
        if (found && v != 1) r->kind = QN_ROPE_LINEAR;
    }
    if (found && v != 0) QN_TRY(take(&r->factor, v, "scaling.factor", 1e-3, 1e6, err));
    QN_TRY(qn_source_num(&found, &v, s, "rope.scaling.original_context_length", NULL, err));
    if (found && !(v >= 1 && v <= 1 << 30))
        return qn_fail(err, QN_E_LIMIT, "rope scaling.original_context_length is %g", v);
    if (found) r->original = (uint32_t)v;
    QN_TRY(qn_source_num(&found, &v, s, "rope.scaling.attn_factor", NULL, err));
    if (found && v != 0) QN_TRY(take(&r->magnify, v, "scaling.attn_factor", 1e-3, 1e3, err));
    QN_TRY(qn_source_num(&found, &v, s, "rope.scaling.yarn_beta_fast", NULL, err));
    if (found) QN_TRY(take(&r->beta_fast, v, "scaling.yarn_beta_fast", 1e-6, 1e6, err));
    QN_TRY(qn_source_num(&found, &v, s, "rope.scaling.yarn_beta_slow", NULL, err));
    if (found) QN_TRY(take(&r->beta_slow, v, "scaling.yarn_beta_slow", 1e-6, 1e6, err));
    if (r->kind == QN_ROPE_LLAMA3 || r->kind == QN_ROPE_LONG)
        return qn_fail(err, QN_E_UNSUPPORTED, "rope scaling \"%.*s\" in a GGUF file",
                       QN_STR_ARG(name));
    return QN_OK;
}

qn_code qn_rope_read(qn_rope_spec *r, const qn_source *s, qn_err *err)
{
    if (r->theta == 0) r->theta = 10000.0f;
    r->factor = 1.0f;
    r->low = 1.0f;
    r->high = 4.0f;
    r->beta_fast = 32.0f;
    r->beta_slow = 1.0f;
    r->mscale = 1.0f;
    r->magnify = 1.0f;
    if (r->dims == 0 || r->dims % 2 != 0 || r->dims / 2 > QN_ROPE_MAX_PAIRS)
        return qn_fail(err, QN_E_LIMIT,
                       "rope rotates %u values a head, expected an even number up to %d", r->dims,
                       2 * QN_ROPE_MAX_PAIRS);
    QN_TRY(s->gguf ? read_gguf(r, s, err) : read_hf(r, s, err));
    if (r->original == 0)
        r->original = r->kind == QN_ROPE_LLAMA3 ? 8192
                      : r->kind == QN_ROPE_YARN ? 4096
                                                : r->context;
    if (r->kind == QN_ROPE_LLAMA3 && !(r->high > r->low))
        return qn_fail(err, QN_E_FORMAT, "rope high_freq_factor is %g, expected more than %g",
                       (double)r->high, (double)r->low);
    return QN_OK;
}

/* Waves longer than original / low are stretched by factor, shorter than original / high are left,
 * between them a blend. All in float32. */
static float llama3(float f, const qn_rope_spec *r)
{
    const float original = (float)r->original, wave = (float)(2 * pi) / f;
    if (wave > original / r->low) return f / r->factor;
    if (wave < original / r->high) return f;
    const float smooth = (original / wave - r->low) / (r->high - r->low);
    return (1.0f - smooth) * f / r->factor + smooth * f;
}

/* Where the ramp begins and ends: the pair that turns n times within the original context. */
static double turns(const qn_rope_spec *r, double n)
{
    return r->dims * log(r->original / (n * 2 * pi)) / (2 * log((double)r->theta));
}

static float yarn(float f, uint32_t i, const qn_rope_spec *r)
{
    const double low = fmax(floor(turns(r, (double)r->beta_fast)), 0);
    double high = fmin(ceil(turns(r, (double)r->beta_slow)), (double)r->dims - 1);
    if (high == low) high += 0.001;
    const float ramp = (float)fmin(fmax(((double)i - low) / (high - low), 0), 1);
    return f / r->factor * ramp + f * (1.0f - ramp);
}

static double gain(double stretch, double m)
{
    return stretch <= 1 ? 1 : 0.1 * m * log(stretch) + 1;
}

static float magnitude(const qn_rope_spec *r)
{
    if (r->kind != QN_ROPE_YARN && r->kind != QN_ROPE_LONG) return 1.0f;
    if (r->magnitude > 0) return r->magnitude;
    if (r->kind == QN_ROPE_YARN) {
        const double stretch = (double)r->factor;
        const double m = gain(stretch, (double)r->mscale) / gain(stretch, (double)r->mscale_all);
        return (float)(m * (double)r->magnify);
    }
    const double stretch = (double)r->context / r->original;
    return stretch <= 1 ? 1.0f : (float)sqrt(1 + log(stretch) / log((double)r->original));
}

qn_code qn_rope_frequencies(float *inv_freq, float *mscale, const qn_rope_spec *r, qn_err *err)
{
    for (uint32_t i = 0; i < r->dims / 2; i++) {
        const float exponent = (float)(2 * i) / (float)r->dims;
        float f = 1.0f / (float)pow((double)r->theta, (double)exponent);
        if (r->kind == QN_ROPE_LINEAR) f /= r->factor;
        if (r->kind == QN_ROPE_LLAMA3) f = llama3(f, r);
        if (r->kind == QN_ROPE_YARN) f = yarn(f, i, r);
        if (r->n_factors) f /= r->factors[i];
        if (!isfinite(f))
            return qn_fail(err, QN_E_FORMAT, "rope frequency %u comes out as %g", i, (double)f);
        inv_freq[i] = f;
    }
    *mscale = magnitude(r);
    return QN_OK;
}
