/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - the five numbers of a recipe as a table, for both kinds of source. */
#include "model/recipe.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

typedef struct entry {
    uint32_t bit;
    const char *gguf, *hf;
    double lo, hi;
    size_t at; /* in qn_recipe; a float, but for top_k */
} entry;

static const entry entries[] = {
    {QN_RECIPE_TEMPERATURE, "general.sampling.temp", "temperature", 0, (double)FLT_MAX,
     offsetof(qn_recipe, temperature)},
    {QN_RECIPE_TOP_P, "general.sampling.top_p", "top_p", 0, 1, offsetof(qn_recipe, top_p)},
    {QN_RECIPE_TOP_K, "general.sampling.top_k", "top_k", 0, UINT32_MAX, offsetof(qn_recipe, top_k)},
    {QN_RECIPE_MIN_P, "general.sampling.min_p", "min_p", 0, 1, offsetof(qn_recipe, min_p)},
    {QN_RECIPE_REPETITION, "general.sampling.penalty_repeat", "repetition_penalty", 0,
     (double)FLT_MAX, offsetof(qn_recipe, repetition_penalty)},
};

static qn_code no_number(const char *where, const char *key, qn_err *err)
{
    return qn_fail(err, QN_E_FORMAT, "%s%s is no number", where, key);
}

static qn_code find(bool *found, double *v, const qn_source *s, const entry *e, qn_err *err)
{
    *found = false;
    if (s->gguf) {
        qn_gguf_value g;
        if (!qn_gguf_find(s->gguf, e->gguf, &g)) return QN_OK;
        if (g.type == QN_GGUF_ARRAY || !qn_gguf_item_f64(v, &g, 0))
            return no_number("", e->gguf, err);
    } else {
        const qn_json *j = s->generate ? qn_json_get(s->generate, e->hf) : NULL;
        const qn_json_type type = qn_json_type_of(j);
        if (type == QN_JSON_NULL) return QN_OK;
        if (type != QN_JSON_INT && type != QN_JSON_REAL)
            return no_number("generation_config.json: ", e->hf, err);
        *v = qn_json_num(j, 0);
    }
    *found = true;
    return QN_OK;
}

static qn_code take(qn_recipe *out, const qn_source *s, const entry *e, qn_err *err)
{
    bool found = false;
    double v = 0;
    QN_TRY(find(&found, &v, s, e, err));
    if (!found) return QN_OK;
    if (!(v >= e->lo && v <= e->hi)) /* NaN fails too */
        return qn_fail(err, QN_E_LIMIT, "%s%s is %g, expected %g to %g",
                       s->gguf ? "" : "generation_config.json: ", s->gguf ? e->gguf : e->hf, v,
                       e->lo, e->hi);
    if (e->bit == QN_RECIPE_TOP_K && v != floor(v))
        return qn_fail(err, QN_E_FORMAT, "%s%s is %g, expected a whole number",
                       s->gguf ? "" : "generation_config.json: ", s->gguf ? e->gguf : e->hf, v);
    if (e->bit == QN_RECIPE_TOP_K)
        out->top_k = (uint32_t)v;
    else
        *(float *)(void *)((char *)out + e->at) = (float)v;
    out->set |= e->bit;
    return QN_OK;
}

qn_code qn_source_recipe(qn_recipe *out, const qn_source *s, qn_err *err)
{
    *out = (qn_recipe){0};
    for (size_t i = 0; i < QN_LEN(entries); i++) QN_TRY(take(out, s, &entries[i], err));
    const qn_json *sample = s->generate ? qn_json_get(s->generate, "do_sample") : NULL;
    if (qn_json_type_of(sample) == QN_JSON_BOOL && !qn_json_bool(sample, true)) {
        out->set |= QN_RECIPE_TEMPERATURE;
        out->temperature = 0;
    }
    return QN_OK;
}
