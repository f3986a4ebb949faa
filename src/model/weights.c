/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - filling the slots of a map and auditing what the files hold. */
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/rng.h"

enum { MAX_OWN_BYTES = 1 << 30, MAX_NAME = 192, MAX_LISTED = 6 };

typedef struct loader {
    qn_weights *w;
    const qn_source *s;
    const qn_weight_map *map;
    const qn_model_desc *d;
    const char *prefix;          /* of safetensors names: "" or "language_model." */
    const char *stem;            /* what stands for "model.": that, or "model.language_model." */
    const qn_json *quantization; /* the object of config.json, or NULL */
    qn_strmap used;              /* names consumed */
    char missing[400];
    uint32_t n_missing;
} loader;

uint32_t qn_model_dim(const qn_model_desc *d, qn_dim dim)
{
    switch (dim) {
    case QN_DIM_ONE:
        return 1;
    case QN_DIM_WIDTH:
        return d->width;
    case QN_DIM_FFN:
        return d->ffn;
    case QN_DIM_VOCAB:
        return d->vocab;
    case QN_DIM_Q:
        return d->n_heads * d->head_dim;
    case QN_DIM_KV:
        return d->n_kv_heads * d->head_dim;
    case QN_DIM_HEAD:
        return d->head_dim;
    case QN_DIM_PAIRS:
        return d->rope_dims / 2;
    }
    return 0;
}

static bool is_needed(const qn_model_desc *d, qn_need need)
{
    return need == QN_NEED_ALWAYS || (need == QN_NEED_UNTIED && !d->tied) ||
           (need == QN_NEED_QK_NORM && d->qk_norm);
}

/* '#' becomes the layer number. */
static void spell(char out[MAX_NAME], const char *prefix, const char *pattern, uint32_t layer)
{
    const char *hash = strchr(pattern, '#');
    if (!hash)
        snprintf(out, MAX_NAME, "%s%s", prefix, pattern);
    else
        snprintf(out, MAX_NAME, "%s%.*s%u%s", prefix, (int)(hash - pattern), pattern, layer,
                 hash + 1);
}

static void list_name(char *list, size_t cap, uint32_t *n, qn_str name)
{
    const size_t used = strlen(list);
    if (*n < MAX_LISTED && used + 4 < cap)
        snprintf(list + used, cap - used, "%s%.*s", *n ? ", " : "", QN_STR_ARG(name));
    ++*n;
}

static qn_code use(loader *l, const char *name, qn_err *err)
{
    return qn_strmap_put(&l->used, qn_str_z(name), 1, err);
}

static qn_code use_module(loader *l, const char *module, qn_err *err)
{
    static const char *const planes[] = {"weight", "scales", "biases"};
    for (size_t i = 0; i < QN_LEN(planes); i++) {
        char name[MAX_NAME + 16];
        qn_st_tensor t;
        snprintf(name, sizeof name, "%s.%s", module, planes[i]);
        if (!qn_st_find(l->s->st, name, &t)) continue;
        QN_TRY(use(l, name, err));
        l->w->bytes += (size_t)t.bytes;
    }
    return QN_OK;
}

/* Bits and group of a module: its own entry in `quantization`, else the global ones; 0 where plain.
 * Paths stand there with or without the wrapper's prefix. */
static qn_code quantization_of(uint32_t *bits, uint32_t *group, const loader *l, const char *module,
                               qn_err *err)
{
    const qn_json *q = l->quantization, *own = NULL;
    char other[MAX_NAME + 16];
    size_t n = 0;
    *bits = *group = 0;
    if (qn_json_type_of(q) != QN_JSON_OBJECT) return QN_OK;
    own = qn_json_get(q, module);
    if (!own && l->prefix[0]) own = qn_json_get(q, module + strlen(l->prefix));
    if (!own && !l->prefix[0]) {
        snprintf(other, sizeof other, "language_model.%s", module);
        own = qn_json_get(q, other);
    }
    if (qn_json_type_of(own) == QN_JSON_BOOL && !qn_json_bool(own, true)) return QN_OK;
    const qn_json *mode = qn_json_get(own, "mode");
    const char *name = qn_json_str(mode ? mode : qn_json_get(q, "mode"), &n);
    if (name && !qn_str_eq_z(qn_str_make(name, n), "affine"))
        return qn_fail(err, QN_E_UNSUPPORTED, "%s: quantization mode \"%.*s\", known: affine",
                       module, (int)(n < 32 ? n : 32), name);
    const bool object = qn_json_type_of(own) == QN_JSON_OBJECT;
    const int64_t b = qn_json_int(qn_json_get(object ? own : q, "bits"), 0);
    const int64_t g = qn_json_int(qn_json_get(object ? own : q, "group_size"), 0);
    if (b < 0 || b > 16 || g < 0 || g > 1 << 16)
        return qn_fail(err, QN_E_UNSUPPORTED, "%s: %lld bits in groups of %lld", module,
                       (long long)b, (long long)g);
    *bits = (uint32_t)b;
    *group = (uint32_t)g;
    return QN_OK;
}

/* The slot's matrix; *found false where there is none. Vectors come as one row. */
static qn_code find_gguf(bool *found, qn_matrix *m, char name[MAX_NAME], loader *l,
                         const qn_slot *slot, uint32_t layer, qn_err *err)
{
    qn_gguf_tensor t;
    spell(name, "", slot->gguf, layer);
    *found = qn_gguf_find_tensor(l->s->gguf, name, &t);
    if (!*found) return QN_OK;
    QN_TRY(use(l, name, err));
    l->w->bytes += (size_t)t.bytes;
    return qn_gguf_tensor_matrix(m, &t, err);
}

static qn_code find_hf(bool *found, qn_matrix *m, char name[MAX_NAME], loader *l,
                       const qn_slot *slot, uint32_t layer, qn_err *err)
{
    char weight[MAX_NAME + 16];
    qn_st_tensor t;
    uint32_t bits = 0, group = 0;
    const bool inner = strncmp(slot->hf, "model.", 6) == 0;
    char front[48];
    snprintf(front, sizeof front, "%s%s", l->prefix, inner ? l->stem : "");
    spell(name, front, slot->hf + (inner ? 6 : 0), layer);
    snprintf(weight, sizeof weight, slot->vector ? "%s" : "%s.weight", name);
    *found = qn_st_find(l->s->st, weight, &t);
    if (!*found) return QN_OK;
    if (slot->vector) {
        QN_TRY(use(l, name, err));
        l->w->bytes += (size_t)t.bytes;
        return qn_st_matrix_anywhere(m, l->s->st, name, err);
    }
    QN_TRY(use_module(l, name, err));
    QN_TRY(quantization_of(&bits, &group, l, name, err));
    return qn_st_module_anywhere(m, l->s->st, name, bits, group, qn_model_dim(l->d, slot->cols),
                                 err);
}

/* A float32 view, or a widened copy of ours; plus: added to each value. */
static qn_code as_vector(const float **out, loader *l, const qn_matrix *m, const char *name,
                         float plus, qn_err *err)
{
    if (plus == 0 && m->fmt == QN_FMT_F32 && (uintptr_t)m->data % sizeof(float) == 0) {
        *out = m->data;
        return QN_OK;
    }
    float *own = qn_arena_push(&l->w->own, (size_t)m->cols * sizeof *own, 64);
    if (!own) return qn_fail(err, QN_E_NOMEM, "%s: %u values", name, m->cols);
    if (m->fmt == QN_FMT_F32) {
        memcpy(own, m->data, (size_t)m->cols * sizeof *own);
    } else {
        qn_matrix aligned = *m; /* F16, BF16 and the like: at most as large as what they become */
        size_t bytes = 0;
        if (!qn_format_row_bytes(&bytes, m->fmt, m->cols))
            return qn_fail(err, QN_E_FORMAT, "%s: %u values", name, m->cols);
        void *copy = qn_alloc(bytes);
        if (!copy) return qn_fail(err, QN_E_NOMEM, "%s: %zu bytes", name, bytes);
        memcpy(copy, m->data, bytes);
        aligned.data = copy;
        qn_format_get(m->fmt)->unpack(own, &aligned, 0, 0, m->cols);
        qn_free(copy);
    }
    for (uint32_t i = 0; i < m->cols; i++) own[i] += plus;
    *out = own;
    return QN_OK;
}

static qn_code check_shape(const qn_matrix *m, const qn_slot *slot, const char *name,
                           const qn_model_desc *d, qn_err *err)
{
    const uint32_t rows = qn_model_dim(d, slot->rows), cols = qn_model_dim(d, slot->cols);
    if (m->rows != rows || m->cols != cols)
        return qn_fail(err, QN_E_FORMAT, "%s is [%u, %u], expected [%u, %u]", name, m->rows,
                       m->cols, rows, cols);
    return QN_OK;
}

static qn_code fill(loader *l, const qn_slot *slot, uint32_t layer, qn_err *err)
{
    const bool gguf = l->s->gguf != NULL;
    char name[MAX_NAME] = "";
    qn_matrix m = {0};
    bool found = false;
    if (slot->need == QN_NEED_UNTIED && l->d->tied) return QN_OK;
    if (!(gguf ? slot->gguf : slot->hf)) return QN_OK;
    qn_code rc = gguf ? find_gguf(&found, &m, name, l, slot, layer, err)
                      : find_hf(&found, &m, name, l, slot, layer, err);
    if (rc != QN_OK) return rc;
    if (!found) {
        if (is_needed(l->d, slot->need))
            list_name(l->missing, sizeof l->missing, &l->n_missing, qn_str_z(name));
        return QN_OK;
    }
    QN_TRY(check_shape(&m, slot, name, l->d, err));
    char *base = slot->layer ? (char *)&l->w->layers[layer] : (char *)&l->w->top;
    const float plus = slot->less_one && !gguf ? 1.0f : 0.0f;
    if (slot->vector)
        return as_vector((const float **)(void *)(base + slot->at), l, &m, name, plus, err);
    *(qn_matrix *)(void *)(base + slot->at) = m;
    return QN_OK;
}

/* '*' at the beginning or the end stands for anything. */
static bool matches(qn_str name, const char *pattern)
{
    const qn_str p = qn_str_z(pattern);
    if (p.n && p.p[0] == '*') return qn_str_has_suffix(name, qn_str_slice(p, 1, p.n));
    if (p.n && p.p[p.n - 1] == '*') return qn_str_has_prefix(name, qn_str_slice(p, 0, p.n - 1));
    return qn_str_eq(name, p);
}

static bool is_dropped(const loader *l, qn_str name)
{
    for (const char *const *p = l->map->drop; p && *p; p++)
        if (matches(name, *p)) return true;
    for (const char *const *p = l->d->tied ? l->map->tied_drop : NULL; p && *p; p++)
        if (matches(name, *p)) return true;
    return false;
}

/* Nothing missing and nothing left over. */
static qn_code audit(loader *l, qn_err *err)
{
    char extra[400] = "";
    uint32_t n_extra = 0;
    for (size_t i = 0; i < qn_source_n_tensors(l->s); i++) {
        qn_source_tensor t;
        qn_source_tensor_at(l->s, i, &t);
        if (qn_strmap_get(&l->used, t.name, NULL)) continue;
        if (is_dropped(l, t.name)) {
            l->w->n_dropped++;
            continue;
        }
        list_name(extra, sizeof extra, &n_extra, t.name);
    }
    if (l->n_missing == 0 && n_extra == 0) return QN_OK;
    if (n_extra == 0)
        return qn_fail(err, QN_E_FORMAT, "tensors missing (%u): %s", l->n_missing, l->missing);
    if (l->n_missing == 0)
        return qn_fail(err, QN_E_FORMAT, "tensors unexpected (%u): %s", n_extra, extra);
    return qn_fail(err, QN_E_FORMAT, "tensors missing (%u): %.100s; unexpected (%u): %s",
                   l->n_missing, l->missing, n_extra, extra);
}

/* Whether names carry a wrapper's prefix, and whether the files are quantised in a way of others. */
static qn_code read_layout(loader *l, qn_err *err)
{
    qn_st_tensor t;
    size_t n = 0;
    if (qn_st_find(l->s->st, "language_model.model.embed_tokens.weight", &t))
        l->prefix = "language_model.";
    else if (qn_st_find(l->s->st, "model.language_model.embed_tokens.weight", &t))
        l->stem = "model.language_model.";
    l->quantization = qn_json_get(l->s->config, "quantization");
    const qn_json *config = qn_json_get(l->s->config, "quantization_config");
    const char *method = qn_json_str(qn_json_get(config, "quant_method"), &n);
    if (!l->quantization && method)
        return qn_fail(err, QN_E_UNSUPPORTED,
                       "config.json: quantization method \"%.*s\" is not supported",
                       (int)(n < 48 ? n : 48), method);
    if (!l->quantization) l->quantization = config;
    return QN_OK;
}

/* -- misaligned planes ------------------------------------------------------------------------- */

typedef struct plane {
    const void **data;
    size_t bytes, element;
} plane;

static size_t planes_of(plane out[3], qn_matrix *m)
{
    const qn_format *f = qn_format_get(m->fmt);
    out[0] =
        (plane){&m->data, m->ld_bytes * m->rows, m->fmt == QN_FMT_F32 || f->planes > 1 ? 4 : 2};
    if (f->planes < 3) return 1;
    const size_t value = m->scale_fmt == QN_FMT_F32 ? 4 : 2, bytes = m->ld_scale * m->rows * value;
    out[1] = (plane){&m->scales, bytes, value};
    out[2] = (plane){&m->biases, bytes, value};
    return 3;
}

/* Walks the misaligned planes: adds up their size, or with memory at hand moves them there. */
static size_t move_misaligned(qn_weights *w, uint8_t *to)
{
    enum { ALIGN = 64 };
    size_t total = 0;
    qn_matrix *m = NULL;
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL;) {
        plane p[3];
        const size_t n = planes_of(p, m);
        for (size_t i = 0; i < n; i++) {
            if ((uintptr_t)*p[i].data % p[i].element == 0) continue;
            if (to) *p[i].data = memcpy(to + total, *p[i].data, p[i].bytes);
            total += (p[i].bytes + ALIGN - 1) / ALIGN * ALIGN;
        }
    }
    return total;
}

static qn_code align(qn_weights *w, qn_err *err)
{
    const size_t bytes = move_misaligned(w, NULL); /* each plane lies in a file: no overflow */
    if (bytes == 0) return QN_OK;
    w->copies = qn_pages_alloc(bytes);
    if (!w->copies)
        return qn_fail(err, QN_E_NOMEM, "%zu bytes for weights that lie misaligned in their file",
                       bytes);
    w->n_copies = bytes;
    move_misaligned(w, w->copies);
    return QN_OK;
}

void qn_weights_drop_copies(qn_weights *w)
{
    if (w->copies) qn_pages_free(w->copies, w->n_copies);
    w->copies = NULL;
    w->n_copies = 0;
}

qn_code qn_weights_load(qn_weights *w, const qn_source *s, const qn_weight_map *map,
                        const qn_model_desc *d, qn_err *err)
{
    qn_code rc = QN_OK;
    loader l = {.w = w, .s = s, .map = map, .d = d, .prefix = "", .stem = "model."};
    uint64_t seed = 0;
    memset(w, 0, sizeof *w);
    QN_TRY(qn_rng_fresh_seed(&seed, err));
    qn_arena_init(&w->own, MAX_OWN_BYTES);
    qn_strmap_init(&l.used, seed);
    if (s->st) QN_TRY_OUT(read_layout(&l, err));
    w->n_layers = d->n_layers;
    w->layers = qn_calloc(d->n_layers, sizeof *w->layers);
    if (!w->layers) {
        rc = qn_fail(err, QN_E_NOMEM, "%u layers", d->n_layers);
        goto out;
    }
    for (size_t i = 0; i < map->n_slots; i++)
        for (uint32_t n = 0; n < (map->slots[i].layer ? d->n_layers : 1); n++)
            QN_TRY_OUT(fill(&l, &map->slots[i], n, err));
    QN_TRY_OUT(audit(&l, err));
    QN_TRY_OUT(align(w, err));
out:
    qn_strmap_fini(&l.used);
    if (rc != QN_OK) qn_weights_fini(w);
    return rc;
}

void qn_weights_fini(qn_weights *w)
{
    qn_weights_drop_copies(w);
    qn_free(w->layers);
    qn_arena_fini(&w->own);
    memset(w, 0, sizeof *w);
}

qn_matrix *qn_weights_next(qn_weights *w, size_t *it)
{
    enum { TOP = 2, LAYER = 7 };
    while (*it < TOP + (size_t)w->n_layers * LAYER) {
        const size_t i = (*it)++;
        qn_matrix *m = i == 0 ? &w->top.embed : &w->top.head;
        if (i >= TOP) {
            qn_layer_weights *l = &w->layers[(i - TOP) / LAYER];
            qn_matrix *const all[LAYER] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
            m = all[(i - TOP) % LAYER];
        }
        if (m->data) return m;
    }
    return NULL;
}
