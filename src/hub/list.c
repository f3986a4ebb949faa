/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - what each model of the store says about itself: headers and settings, never weights.
 *
 * A file that cannot be read as a model is left out, and so is one that says it is something else (an
 * adapter, a projector); only memory running out ends the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "dep/json.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "hub/hub_int.h"

enum { MAX_TEXTS = 64 << 20, MAX_JSON = 16 << 20, MAX_README = 16 << 10, MAX_SHOWN = 96 };

typedef struct writer { /* of one list */
    quern_store_list *list;
    qn_hub_has_family *has_family;
} writer;

/* -- texts ------------------------------------------------------------------------------------- */

/* Text of a file as it may stand in a terminal: the list's, at most MAX_SHOWN bytes of printable UTF-8;
 * NULL in *out when there is none. */
static qn_code keep(const char **out, writer *w, qn_str text, qn_err *err)
{
    *out = NULL;
    if (text.n > MAX_SHOWN) text.n = MAX_SHOWN - qn_utf8_partial_tail(text.p, MAX_SHOWN);
    if (text.n == 0) return QN_OK;
    char *copy = qn_arena_push_bytes(&w->list->texts, text.p, text.n);
    if (!copy) return qn_fail(err, QN_E_NOMEM, "list of models");
    for (size_t i = 0, step = 0; i < text.n; i += step) {
        uint32_t c = 0;
        step = qn_utf8_step(copy + i, text.n - i, &c);
        if (c == QN_UTF8_BAD || c < 0x20 || (c >= 0x7f && c < 0xa0)) memset(copy + i, '?', step);
    }
    *out = copy;
    return QN_OK;
}

/* A path, or a name: all of it. */
static qn_code keep_all(const char **out, writer *w, const char *text, qn_err *err)
{
    *out = NULL;
    if (!text) return QN_OK;
    *out = qn_arena_push_bytes(&w->list->texts, text, strlen(text));
    return *out ? QN_OK : qn_fail(err, QN_E_NOMEM, "list of models");
}

/* The value of a line "license: VALUE" between the lines "---" that a README begins with; empty: none. */
static qn_str front_matter_license(qn_str text)
{
    qn_str line = {0}, key = QN_STR("license:");
    bool wanted = false; /* the value is a list: its first element is on the next line */
    if (!qn_str_split(&line, &text, '\n') || !qn_str_eq_z(qn_str_trim(line), "---"))
        return (qn_str){0};
    while (qn_str_split(&line, &text, '\n') &&
           text.p) { /* a last line that was cut does not count */
        qn_str value = qn_str_trim(line);
        if (qn_str_eq_z(value, "---")) break;
        if (!wanted && !qn_str_has_prefix(line, key)) continue;
        value = wanted ? value : qn_str_trim(qn_str_slice(line, key.n, line.n));
        if (wanted && value.n && value.p[0] == '-')
            value = qn_str_trim(qn_str_slice(value, 1, value.n));
        if (value.n > 1 && (value.p[0] == '"' || value.p[0] == '\'') &&
            value.p[value.n - 1] == value.p[0])
            value = qn_str_slice(value, 1, value.n - 1);
        if (value.n || wanted) return value;
        wanted = true;
    }
    return (qn_str){0};
}

static qn_code read_license(const char **out, writer *w, const char *dir, qn_err *err)
{
    char text[MAX_README];
    struct stat st;
    int fd = -1;
    *out = NULL;
    char *path = dir ? qn_hub_join(dir, "README.md") : NULL;
    if (!path) return dir ? qn_fail(err, QN_E_NOMEM, "path of README.md") : QN_OK;
    const qn_code rc = qn_hub_open_file(&fd, &st, path, NULL);
    qn_free(path);
    if (rc != QN_OK) return QN_OK;
    const ssize_t n = read(fd, text, sizeof text);
    (void)close(fd);
    return n > 0 ? keep(out, w, front_matter_license(qn_str_make(text, (size_t)n)), err) : QN_OK;
}

/* -- GGUF -------------------------------------------------------------------------------------- */

static qn_str gguf_text(const qn_gguf *g, const char *key)
{
    qn_str text = {0};
    return qn_gguf_get_str(&text, g, key, NULL) == QN_OK ? text : (qn_str){0};
}

static void gguf_weights(quern_store_model *m, const qn_gguf *g)
{
    qn_gguf_census c;
    uint64_t most = 0;
    for (size_t it = 0; qn_gguf_census_next(g, &it, &c);) {
        m->parameters += c.elements;
        if (c.bytes <= most) continue;
        most = c.bytes;
        m->quant = c.type_name;
    }
}

static uint32_t gguf_context(const qn_gguf *g, qn_str type)
{
    char key[128];
    uint32_t context = 0;
    (void)snprintf(key, sizeof key, "%.*s.context_length", (int)(type.n < 96 ? type.n : 96),
                   type.n ? type.p : "");
    return qn_gguf_get_u32(&context, g, key, NULL) == QN_OK ? context : 0;
}

static qn_code describe_gguf(bool *is_model, quern_store_model *m, writer *w, const qn_gguf *g,
                             qn_err *err)
{
    const qn_str kind = gguf_text(g, "general.type"), type = gguf_text(g, "general.architecture");
    *is_model = (kind.n == 0 || qn_str_eq_z(kind, "model")) && !qn_str_eq_z(type, "clip");
    if (!*is_model) return QN_OK;
    m->format = "gguf";
    m->bytes = qn_gguf_file_bytes(g);
    m->context = gguf_context(g, type);
    m->supported = w->has_family && w->has_family(type);
    m->has_template = gguf_text(g, "tokenizer.chat_template").n > 0;
    gguf_weights(m, g);
    QN_TRY(keep(&m->family, w, type, err));
    return keep(&m->license, w, gguf_text(g, "general.license"), err);
}

static qn_code read_gguf(bool *is_model, quern_store_model *m, writer *w, const char *path,
                         qn_err *err)
{
    qn_gguf *g = NULL;
    QN_TRY(qn_gguf_open(&g, path, err));
    const qn_code rc = describe_gguf(is_model, m, w, g, err);
    qn_gguf_close(g);
    return rc;
}

/* -- safetensors ------------------------------------------------------------------------------- */

static qn_code read_json(qn_json **out, const char *dir, const char *name, qn_err *err)
{
    uint8_t *text = NULL;
    size_t n = 0;
    *out = NULL;
    char *path = qn_hub_join(dir, name);
    if (!path) return qn_fail(err, QN_E_NOMEM, "path of %s", name);
    qn_code rc = qn_file_read(&text, &n, path, MAX_JSON, err);
    qn_free(path);
    if (rc == QN_OK) rc = qn_json_parse(out, (const char *)text, n, MAX_JSON, err);
    qn_free(text);
    return rc;
}

static qn_str text_of(const qn_json *v)
{
    size_t n = 0;
    const char *p = qn_json_str(v, &n);
    return qn_str_make(p, p ? n : 0);
}

/* What the text part of a multimodal model says comes first. */
static const qn_json *setting(const qn_json *config, const char *key)
{
    const qn_json *v = qn_json_get(qn_json_get(config, "text_config"), key);
    return v ? v : qn_json_get(config, key);
}

static const qn_json *quantization(const qn_json *config)
{
    const qn_json *q = qn_json_get(config, "quantization");
    return q ? q : qn_json_get(config, "quantization_config");
}

/* "4-bit affine", "4-bit gptq", "fp8"; else the type that most bytes have. */
static qn_code st_quant(quern_store_model *m, writer *w, const qn_json *config, const qn_st *st,
                        qn_err *err)
{
    uint64_t bytes[QN_ST_DTYPE_COUNT] = {0}, most = 0;
    char text[MAX_SHOWN];
    const qn_json *q = quantization(config);
    const int64_t bits = qn_json_int(qn_json_get(q, "bits"), 0);
    qn_str mode = text_of(qn_json_get(q, "mode"));
    if (mode.n == 0) mode = text_of(qn_json_get(q, "quant_method"));
    if (mode.n == 0 && bits > 0) mode = QN_STR("affine");
    if (mode.n > 0) {
        if (bits > 0 && bits < 64)
            (void)snprintf(text, sizeof text, "%d-bit %.*s", (int)bits, QN_STR_ARG(mode));
        else
            (void)snprintf(text, sizeof text, "%.*s", QN_STR_ARG(mode));
        return keep(&m->quant, w, qn_str_z(text), err);
    }
    for (size_t i = 0; i < qn_st_n_tensors(st); i++) {
        qn_st_tensor t;
        qn_st_tensor_at(st, i, &t);
        bytes[t.dtype] += t.bytes;
        if (bytes[t.dtype] <= most) continue;
        most = bytes[t.dtype];
        m->quant = qn_st_dtype_name(t.dtype);
    }
    return QN_OK;
}

/* Values that one scale of this module covers. */
static uint64_t group_of(const qn_json *q, qn_str scales)
{
    char module[256];
    const int64_t all = qn_json_int(qn_json_get(q, "group_size"), 64);
    if (scales.n - 7 >= sizeof module) return (uint64_t)all;
    memcpy(module, scales.p, scales.n - 7);
    module[scales.n - 7] = '\0';
    const int64_t own = qn_json_int(qn_json_get(qn_json_get(q, module), "group_size"), all);
    return own > 0 ? (uint64_t)own : 0;
}

/* Of an affine matrix only the scales tell how many values it has: each stands for a group. */
static uint64_t st_parameters(const qn_json *config, const qn_st *st)
{
    const qn_json *q = quantization(config);
    uint64_t n = 0;
    for (size_t i = 0; i < qn_st_n_tensors(st); i++) {
        qn_st_tensor t;
        uint64_t more = 0;
        qn_st_tensor_at(st, i, &t);
        const bool scales = q && qn_str_has_suffix(t.name, QN_STR(".scales"));
        if (q && (t.dtype == QN_ST_U32 || qn_str_has_suffix(t.name, QN_STR(".biases")))) continue;
        if (__builtin_mul_overflow(t.elements, scales ? group_of(q, t.name) : 1, &more) ||
            __builtin_add_overflow(n, more, &n))
            return 0;
    }
    return n;
}

static qn_code st_template(quern_store_model *m, const char *dir, qn_err *err)
{
    qn_json *config = NULL;
    char *path = qn_hub_join(dir, "chat_template.jinja");
    if (!path) return qn_fail(err, QN_E_NOMEM, "path of chat_template.jinja");
    m->has_template = qn_file_exists(path);
    qn_free(path);
    if (m->has_template) return QN_OK;
    const qn_code rc = read_json(&config, dir, "tokenizer_config.json", err);
    const qn_json *t = qn_json_get(config, "chat_template");
    m->has_template = text_of(t).n > 0 || qn_json_len(t) > 0;
    qn_json_free(config);
    return rc == QN_E_NOMEM ? rc : QN_OK;
}

static qn_code describe_st(quern_store_model *m, writer *w, const char *dir, const qn_json *config,
                           const qn_st *st, qn_err *err)
{
    const qn_str type = text_of(qn_json_get(config, "model_type"));
    const int64_t context = qn_json_int(setting(config, "max_position_embeddings"), 0);
    m->format = "safetensors";
    m->bytes = qn_st_file_bytes(st);
    m->parameters = st_parameters(config, st);
    m->context = context > 0 && context <= UINT32_MAX ? (uint32_t)context : 0;
    m->supported = w->has_family && w->has_family(type);
    QN_TRY(keep(&m->family, w, type, err));
    QN_TRY(st_quant(m, w, config, st, err));
    return st_template(m, dir, err);
}

static qn_code read_st(quern_store_model *m, writer *w, const char *dir, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_st *st = NULL;
    qn_json *config = NULL;
    QN_TRY_OUT(qn_st_open(&st, dir, err));
    QN_TRY_OUT(read_json(&config, dir, "config.json", err));
    QN_TRY_OUT(describe_st(m, w, dir, config, st, err));
out:
    qn_json_free(config);
    qn_st_close(st);
    return rc;
}

/* -- rows -------------------------------------------------------------------------------------- */

static qn_code describe(bool *is_model, quern_store_model *m, writer *w, const qn_hub_found *f,
                        qn_err *err)
{
    *m = (quern_store_model){.size = sizeof *m, .quant = "?", .canonical = f->canonical};
    *is_model = true;
    QN_TRY(f->file[0] ? read_gguf(is_model, m, w, f->path, err) : read_st(m, w, f->path, err));
    if (!m->family) m->family = "?";
    if (!m->license) QN_TRY(read_license(&m->license, w, f->dir, err));
    if (!m->license && f->entry) m->license = f->entry->license;
    QN_TRY(keep_all(&m->name, w, f->name, err));
    QN_TRY(keep_all(&m->path, w, f->path, err));
    return keep_all(&m->revision, w, f->revision, err);
}

static int by_name(const void *a, const void *b)
{
    const quern_store_model *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    if (names != 0) return names;
    if (x->canonical != y->canonical) return x->canonical ? -1 : 1;
    return strcmp(x->path, y->path);
}

static qn_code fill(writer *w, const qn_hub_scan *s, const char *query, qn_err *err)
{
    quern_store_list *l = w->list;
    l->model = qn_calloc(s->n ? s->n : 1, sizeof *l->model);
    if (!l->model) return qn_fail(err, QN_E_NOMEM, "list of %zu models", s->n);
    for (const qn_hub_found *f = s->first; f; f = f->next) {
        bool is_model = true;
        if (query && !qn_hub_holds(f, query)) continue;
        const qn_code rc = describe(&is_model, &l->model[l->n], w, f, err);
        if (rc == QN_E_NOMEM) return rc;
        l->n += rc == QN_OK && is_model;
    }
    if (l->n > 1) qsort(l->model, l->n, sizeof *l->model, by_name);
    return QN_OK;
}

qn_code qn_hub_list(quern_store_list **out, const qn_hub *h, const char *query,
                    qn_hub_has_family *has_family, qn_err *err)
{
    qn_hub_scan s;
    *out = NULL;
    quern_store_list *l = qn_zalloc(sizeof *l);
    if (!l) return qn_fail(err, QN_E_NOMEM, "list of models");
    writer w = {l, has_family};
    qn_arena_init(&l->texts, MAX_TEXTS);
    qn_code rc = qn_hub_scan_open(&s, h, err);
    if (rc == QN_OK) rc = fill(&w, &s, query, err);
    qn_hub_scan_close(&s);
    if (rc == QN_OK)
        *out = l;
    else
        qn_hub_list_free(l);
    return rc;
}

void qn_hub_list_free(quern_store_list *l)
{
    if (!l) return;
    qn_free(l->model);
    qn_arena_fini(&l->texts);
    qn_free(l);
}
