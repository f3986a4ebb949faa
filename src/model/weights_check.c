/* SPDX-License-Identifier: Apache-2.0 */
/* weights_check.c - which weight is to blame when a model gives no finite logit.
 *
 * Looked for only then: reading every value on open would cost what mapping saves.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model_int.h"

enum { PIECE = 1024 }; /* a multiple of every block */

typedef struct search {
    const qn_model *m;
    uint64_t left; /* values that may still be read */
} search;

static bool is_bad(const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return true;
    return false;
}

static bool matrix_is_bad(search *s, const qn_matrix *w)
{
    float piece[PIECE];
    for (uint32_t r = 0; r < w->rows && s->left >= w->cols; r++) {
        s->left -= w->cols;
        for (uint32_t c = 0; c < w->cols; c += PIECE) {
            const uint32_t n = w->cols - c < PIECE ? w->cols - c : PIECE;
            qn_format_get(w->fmt)->unpack(piece, w, r, c, n);
            if (is_bad(piece, n)) return true;
        }
    }
    return false;
}

static bool slot_is_bad(search *s, const qn_slot *slot, uint32_t layer)
{
    const qn_weights *w = &s->m->weights;
    const char *base = slot->layer ? (const char *)&w->layers[layer] : (const char *)&w->top;
    if (slot->vector) {
        const float *x = *(const float *const *)(const void *)(base + slot->at);
        return x && is_bad(x, qn_model_dim(&s->m->desc, slot->cols));
    }
    const qn_matrix *x = (const void *)(base + slot->at);
    return x->data && matrix_is_bad(s, x);
}

/* Vectors first: they are few, and a matrix may use up what may be read. */
static bool look(char *out, size_t cap, search *s, bool vectors)
{
    const qn_weight_map *map = &s->m->family->map;
    for (size_t i = 0; i < map->n_slots; i++) {
        const qn_slot *slot = &map->slots[i];
        const char *name = s->m->source.gguf ? slot->gguf : slot->hf;
        if (slot->vector != vectors || !name) continue;
        for (uint32_t l = 0; l < (slot->layer ? s->m->desc.n_layers : 1); l++) {
            if (!slot_is_bad(s, slot, l)) continue;
            const char *hash = strchr(name, '#');
            if (hash)
                snprintf(out, cap, "%.*s%u%s", (int)(hash - name), name, l, hash + 1);
            else
                snprintf(out, cap, "%s", name);
            return true;
        }
    }
    return false;
}

bool qn_model_find_nan(char *out, size_t cap, const qn_model *m, uint64_t max_values)
{
    search s = {m, max_values};
    return look(out, cap, &s, true) || look(out, cap, &s, false);
}
