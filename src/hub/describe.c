/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - what a model says about itself: headers and settings, never weights. Texts of files may
 * hold anything, so what is kept of them is short and printable.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "dep/json.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "hub/hub_int.h"

enum { MAX_JSON = 16 << 20, MAX_README = 16 << 10, MAX_SHOWN = 96 };

typedef struct describer {
    qn_arena *texts; /* of the list */
    qn_hub_has_family *has_family;
} describer;

/* -- texts ------------------------------------------------------------------------------------- */

/* Text of a file as it may stand in a terminal: the list's, at most MAX_SHOWN bytes of printable UTF-8;
 * NULL in *out when there is none. */
static qn_code keep(const char **out, describer *w, qn_str text, qn_err *err)
{
    *out = NULL;
    if (text.n > MAX_SHOWN) text.n = MAX_SHOWN - qn_utf8_partial_tail(text.p, MAX_SHOWN);
    if (text.n == 0) return QN_OK;
    char *copy = qn_arena_push_bytes(w->texts, text.p, text.n);
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
static qn_code keep_all(const char **out, describer *w, const char *text, qn_err *err)
{
    *out = NULL;
    if (!text) return QN_OK;
    *out = qn_arena_push_bytes(w->texts, text, strlen(text));
    return *out ? QN_OK : qn_fail(err, QN_E_NOMEM, "list of models");
}

static qn_code read_license(const char **out, describer *w, const char *dir, qn_err *err)
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
    return n > 0 ? keep(out, w, qn_hub_card_license(qn_str_make(text, (size_t)n)), err) : QN_OK;
}

/* -- GGUF -------------------------------------------------------------------------------------- */

static qn_str gguf_text(const qn_gguf *g, const char *key)
{
    qn_str text = {0};
    return qn_gguf_get_str(&text, g, key, NULL) == QN_OK ? text : (qn_str){0};
}

/* The usual name of a mixture of formats, by general.file_type; "" where there is none, or where the
 * tensors themselves tell better (every file holds some F32). */
static const char *mixture_name(uint32_t type)
{
    static const char *const names[] = {
        "",       "",       "Q4_0",  "Q4_1",    "",       "",       "",       "Q8_0",
        "Q5_0",   "Q5_1",   "Q2_K",  "Q3_K_S",  "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
        "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS",
        "IQ1_S",  "IQ4_NL", "IQ3_S", "IQ3_M",   "IQ2_S",  "IQ2_M",  "IQ4_XS", "IQ1_M",
    };
    return type < QN_LEN(names) ? names[type] : "";
}

/* What the file calls its mixture if it holds weights of that kind; else the type of most bytes. */
static void gguf_weights(quern_store_model *m, const qn_gguf *g)
{
    qn_gguf_census c;
    uint64_t most = 0;
    uint32_t file_type = UINT32_MAX;
    if (qn_gguf_get_u32(&file_type, g, "general.file_type", NULL) != QN_OK) file_type = UINT32_MAX;
    const char *mixture = mixture_name(file_type);
    for (size_t it = 0; qn_gguf_census_next(g, &it, &c);) {
        const bool named = strncmp(mixture, c.type_name, strlen(c.type_name)) == 0;
        m->parameters += c.elements;
        if (c.bytes <= most && !named) continue;
        most = named ? UINT64_MAX : c.bytes;
        m->quant = named ? mixture : c.type_name;
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

static qn_code describe_gguf(bool *is_model, quern_store_model *m, describer *w, const qn_gguf *g,
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

static qn_code read_gguf(bool *is_model, quern_store_model *m, describer *w, const char *path,
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
static qn_code st_quant(quern_store_model *m, describer *w, const qn_json *config, const qn_st *st,
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

/* A text, or a list of several. */
static bool names_template(const qn_json *config)
{
    const qn_json *t = qn_json_get(config, "chat_template");
    return text_of(t).n > 0 || qn_json_len(t) > 0;
}

static qn_code st_template(quern_store_model *m, const char *dir, qn_err *err)
{
    static const char *const files[] = {"chat_template.json", "tokenizer_config.json"};
    char *path = qn_hub_join(dir, "chat_template.jinja");
    if (!path) return qn_fail(err, QN_E_NOMEM, "path of chat_template.jinja");
    m->has_template = qn_file_exists(path);
    qn_free(path);
    for (size_t i = 0; i < QN_LEN(files) && !m->has_template; i++) {
        qn_json *config = NULL;
        const qn_code rc = read_json(&config, dir, files[i], err);
        m->has_template = names_template(config);
        qn_json_free(config);
        if (rc == QN_E_NOMEM) return rc;
    }
    return QN_OK;
}

static qn_code describe_st(quern_store_model *m, describer *w, const char *dir,
                           const qn_json *config, const qn_st *st, qn_err *err)
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

static qn_code read_st(quern_store_model *m, describer *w, const char *dir, qn_err *err)
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

/* -- all of it --------------------------------------------------------------------------------- */

qn_code qn_hub_describe(bool *is_model, quern_store_model *m, qn_arena *texts,
                        qn_hub_has_family *has_family, const qn_hub_found *f, qn_err *err)
{
    describer all = {texts, has_family}, *w = &all;
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
