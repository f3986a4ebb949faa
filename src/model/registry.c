/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - model types to families. */
#include "base/nearest.h"
#include "model/family.h"

#include <stdio.h>

static const qn_family *const families[] = {
    &qn_family_llama,
    &qn_family_gemma3,
};

/* The supported type that is spelled most like this one, and its family. */
static const char *nearest(qn_str type)
{
    const char *best = families[0]->types[0];
    size_t best_distance = SIZE_MAX;
    for (size_t f = 0; f < QN_LEN(families); f++)
        for (const char *const *t = families[f]->types; *t; t++) {
            const size_t distance = qn_str_distance(type, qn_str_z(*t));
            if (distance < best_distance) {
                best_distance = distance;
                best = *t;
            }
        }
    return best;
}

qn_code qn_family_find(const qn_family **out, qn_str type, qn_err *err)
{
    *out = NULL;
    if (type.n == 0)
        return qn_fail(err, QN_E_FORMAT,
                       "no model type: general.architecture or model_type is "
                       "missing");
    for (size_t f = 0; f < QN_LEN(families); f++)
        for (const char *const *t = families[f]->types; *t; t++)
            if (qn_str_eq_z(type, *t)) {
                *out = families[f];
                return QN_OK;
            }
    char all[160] = "";
    size_t n = 0;
    for (size_t f = 0; f < QN_LEN(families); f++)
        for (const char *const *t = families[f]->types; *t && n < sizeof all; t++)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", *t);
    return qn_fail(err, QN_E_UNSUPPORTED,
                   "model type \"%.*s\" is not supported; the nearest that is: %s (all: %s)",
                   (int)(type.n < 48 ? type.n : 48), type.n ? type.p : "", nearest(type), all);
}
