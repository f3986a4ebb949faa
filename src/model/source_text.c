/* SPDX-License-Identifier: Apache-2.0 */
/* source_text.c - what a source says about text: tokenizer, chat template, ending ids. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map_file.h"
#include "model/source.h"

enum { MAX_TEMPLATE_BYTES = 1 << 20 };

/* -- tokenizer of a GGUF ----------------------------------------------------------------------- */

static qn_code read_texts(qn_str **out, size_t *n_out, const qn_gguf *g, const char *key,
                          qn_err *err)
{
    qn_gguf_value v;
    *out = NULL;
    *n_out = 0;
    if (!qn_gguf_find(g, key, &v)) return QN_OK;
    if (v.type != QN_GGUF_ARRAY || v.item != QN_GGUF_STRING)
        return qn_fail(err, QN_E_FORMAT, "%s is of type %s, expected an array of texts", key,
                       qn_gguf_type_name(v.type));
    if (v.n >= UINT32_MAX)
        return qn_fail(err, QN_E_LIMIT, "%s has %llu texts", key, (unsigned long long)v.n);
    qn_str *p = qn_calloc((size_t)v.n ? (size_t)v.n : 1, sizeof *p);
    if (!p) return qn_fail(err, QN_E_NOMEM, "%s: %llu texts", key, (unsigned long long)v.n);
    qn_gguf_iter it = qn_gguf_items(&v);
    size_t n = 0;
    while (n < v.n && qn_gguf_next_str(&it, &p[n])) n++;
    *out = p;
    *n_out = n;
    return QN_OK;
}

/* n numbers of any scalar type; NULL where the key is absent. Exactly one of ints and floats. */
static qn_code read_numbers(int32_t **ints, float **floats, const qn_gguf *g, const char *key,
                            size_t n, qn_err *err)
{
    qn_gguf_value v;
    if (!qn_gguf_find(g, key, &v)) return QN_OK;
    if (v.type != QN_GGUF_ARRAY || v.n != n)
        return qn_fail(err, QN_E_FORMAT, "%s has %llu elements, expected an array of %zu", key,
                       (unsigned long long)v.n, n);
    void *p = qn_calloc(n ? n : 1, 4);
    if (!p) return qn_fail(err, QN_E_NOMEM, "%s: %zu numbers", key, n);
    if (ints) *ints = p;
    if (floats) *floats = p;
    for (size_t i = 0; i < n; i++) {
        int64_t whole = 0;
        double real = 0;
        const bool ok =
            ints ? qn_gguf_item_i64(&whole, &v, i) && whole >= INT32_MIN && whole <= INT32_MAX
                 : qn_gguf_item_f64(&real, &v, i) && !isnan(real);
        if (!ok) return qn_fail(err, QN_E_FORMAT, "%s[%zu] is no number that fits", key, i);
        if (ints)
            (*ints)[i] = (int32_t)whole;
        else
            (*floats)[i] = (float)real;
    }
    return QN_OK;
}

static qn_code read_id(uint32_t *out, const qn_gguf *g, const char *key, qn_err *err)
{
    return qn_gguf_opt_u32(out, g, key, QN_TOKEN_NONE, err);
}

static qn_code read_tri(qn_tri *out, const qn_gguf *g, const char *key, qn_err *err)
{
    qn_gguf_value v;
    bool yes = false;
    if (!qn_gguf_find(g, key, &v)) return QN_OK;
    QN_TRY(qn_gguf_get_bool(&yes, g, key, err));
    *out = yes ? QN_YES : QN_NO;
    return QN_OK;
}

static qn_code read_ids(qn_tokenizer_parts *p, const qn_gguf *g, qn_err *err)
{
    QN_TRY(read_id(&p->bos, g, "tokenizer.ggml.bos_token_id", err));
    QN_TRY(read_id(&p->eos, g, "tokenizer.ggml.eos_token_id", err));
    QN_TRY(read_id(&p->unk, g, "tokenizer.ggml.unknown_token_id", err));
    QN_TRY(read_id(&p->pad, g, "tokenizer.ggml.padding_token_id", err));
    QN_TRY(read_id(&p->eot, g, "tokenizer.ggml.eot_token_id", err));
    QN_TRY(read_id(&p->eom, g, "tokenizer.ggml.eom_token_id", err));
    QN_TRY(read_tri(&p->add_bos, g, "tokenizer.ggml.add_bos_token", err));
    QN_TRY(read_tri(&p->add_eos, g, "tokenizer.ggml.add_eos_token", err));
    return read_tri(&p->add_space_prefix, g, "tokenizer.ggml.add_space_prefix", err);
}

static qn_code gguf_tokenizer(qn_tokenizer **out, const qn_gguf *g, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_tokenizer_parts p = QN_TOKENIZER_PARTS_INIT;
    qn_str *tokens = NULL, *merges = NULL;
    int32_t *types = NULL;
    float *scores = NULL;
    qn_str model = {0}, pre = {0};
    const qn_str empty = {0};
    QN_TRY(qn_gguf_opt_str(&model, g, "tokenizer.ggml.model", empty, err));
    if (model.n == 0 || qn_str_eq_z(model, "none") || qn_str_eq_z(model, "no_vocab")) return QN_OK;
    QN_TRY(qn_gguf_opt_str(&pre, g, "tokenizer.ggml.pre", empty, err));
    QN_TRY_OUT(read_texts(&tokens, &p.n_tokens, g, "tokenizer.ggml.tokens", err));
    QN_TRY_OUT(read_texts(&merges, &p.n_merges, g, "tokenizer.ggml.merges", err));
    QN_TRY_OUT(read_numbers(&types, NULL, g, "tokenizer.ggml.token_type", p.n_tokens, err));
    QN_TRY_OUT(read_numbers(NULL, &scores, g, "tokenizer.ggml.scores", p.n_tokens, err));
    QN_TRY_OUT(read_ids(&p, g, err));
    p.model = model;
    p.pre = pre;
    p.tokens = tokens;
    p.types = types;
    p.scores = scores;
    p.merges = merges;
    QN_TRY_OUT(qn_tokenizer_from_parts(out, &p, err));
out:
    qn_free(tokens);
    qn_free(merges);
    qn_free(types);
    qn_free(scores);
    return rc;
}

/* -- tokenizer.json ---------------------------------------------------------------------------- */

static bool beside(char path[4096], const qn_source *s, const char *name)
{
    const int n = snprintf(path, 4096, "%s/%s", s->dir, name);
    return n > 0 && n < 4096 && qn_file_exists(path);
}

static qn_code hf_tokenizer(qn_tokenizer **out, const qn_source *s, qn_err *err)
{
    qn_code rc = QN_OK;
    char path[4096];
    qn_mapping map = {0};
    char *config = NULL;
    size_t n_config = 0;
    if (!beside(path, s, "tokenizer.json")) return QN_OK;
    QN_TRY(qn_map_open(&map, path, err));
    if (s->tokenizer) QN_TRY_OUT(qn_json_dump(&config, &n_config, s->tokenizer, err));
    rc = qn_tokenizer_from_json(out, (const char *)map.data, map.len, config, n_config, err);
    if (rc != QN_OK) (void)qn_wrap(err, rc, "%s", s->dir); /* the file is named already */
out:
    qn_free(config);
    qn_map_close(&map);
    return rc;
}

qn_code qn_source_tokenizer(qn_tokenizer **out, const qn_source *s, qn_err *err)
{
    *out = NULL;
    return s->gguf ? gguf_tokenizer(out, s->gguf, err) : hf_tokenizer(out, s, err);
}

/* -- chat template ----------------------------------------------------------------------------- */

/* tokenizer_config.json: a text, or a list of {name, template} whose "default" counts. */
static qn_str json_template(const qn_json *config)
{
    const qn_json *v = qn_json_get(config, "chat_template");
    size_t n = 0;
    const char *p = qn_json_str(v, &n);
    for (size_t i = 0; !p && i < qn_json_len(v); i++) {
        size_t n_name = 0;
        const char *name = qn_json_str(qn_json_get(qn_json_at(v, i), "name"), &n_name);
        if (name && qn_str_eq_z(qn_str_make(name, n_name), "default"))
            p = qn_json_str(qn_json_get(qn_json_at(v, i), "template"), &n);
    }
    return qn_str_make(p, p ? n : 0);
}

static qn_code copy_template(char **out, qn_str text, qn_err *err)
{
    if (text.n == 0) return QN_OK;
    if (text.n > MAX_TEMPLATE_BYTES)
        return qn_fail(err, QN_E_LIMIT, "the chat template has %zu bytes, expected at most %d",
                       text.n, MAX_TEMPLATE_BYTES);
    *out = qn_alloc(text.n + 1);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "chat template of %zu bytes", text.n);
    memcpy(*out, text.p, text.n);
    (*out)[text.n] = '\0';
    return QN_OK;
}

/* chat_template.json: the member of tokenizer_config.json in a file of its own. */
static qn_code template_file(char **out, const char *path, qn_err *err)
{
    enum { MAX_BYTES = 4 * MAX_TEMPLATE_BYTES }; /* escapes take room */
    qn_json *config = NULL;
    uint8_t *bytes = NULL;
    size_t n = 0;
    QN_TRY(qn_file_read(&bytes, &n, path, MAX_BYTES, err));
    qn_code rc = qn_json_parse(&config, (const char *)bytes, n, MAX_BYTES, err);
    if (rc == QN_OK) rc = copy_template(out, json_template(config), err);
    qn_json_free(config);
    qn_free(bytes);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", path);
}

qn_code qn_source_template(char **out, const qn_source *s, qn_err *err)
{
    char path[4096];
    *out = NULL;
    if (s->gguf) {
        qn_str text = {0};
        const qn_str none = {0};
        QN_TRY(qn_gguf_opt_str(&text, s->gguf, "tokenizer.chat_template", none, err));
        return copy_template(out, text, err);
    }
    if (beside(path, s, "chat_template.jinja")) {
        uint8_t *bytes = NULL;
        size_t n = 0;
        QN_TRY(qn_file_read(&bytes, &n, path, MAX_TEMPLATE_BYTES, err));
        *out = (char *)bytes;
        return QN_OK;
    }
    if (beside(path, s, "chat_template.json")) return template_file(out, path, err);
    return copy_template(out, json_template(s->tokenizer), err);
}

/* -- ending ids -------------------------------------------------------------------------------- */

typedef struct id_set {
    uint32_t *ids, cap, n, vocab;
} id_set;

static qn_code add_id(id_set *set, int64_t id, const char *where, qn_err *err)
{
    if (id < 0 || id >= set->vocab)
        return qn_fail(err, QN_E_FORMAT, "%s: eos_token_id %lld, expected an id below %u", where,
                       (long long)id, set->vocab);
    for (uint32_t i = 0; i < set->n; i++)
        if (set->ids[i] == (uint32_t)id) return QN_OK;
    if (set->n < set->cap) set->ids[set->n++] = (uint32_t)id;
    return QN_OK;
}

/* A number or a list of numbers. */
static qn_code add_json(id_set *set, const qn_json *config, const char *where, qn_err *err)
{
    const qn_json *v = qn_json_get(config, "eos_token_id");
    const qn_json_type type = qn_json_type_of(v);
    if (type == QN_JSON_NULL) return QN_OK;
    if (type == QN_JSON_INT) return add_id(set, qn_json_int(v, -1), where, err);
    if (type != QN_JSON_ARRAY)
        return qn_fail(err, QN_E_FORMAT, "%s: eos_token_id is neither a number nor a list", where);
    for (size_t i = 0; i < qn_json_len(v); i++)
        QN_TRY(add_id(set, qn_json_int(qn_json_at(v, i), -1), where, err));
    return QN_OK;
}

/* A GGUF names one or two ids and leaves the rest to the vocabulary; config and generation config are
 * a complete list, so the vocabulary is asked only where both are silent. */
qn_code qn_source_eos(uint32_t *ids, uint32_t cap, uint32_t *n, const qn_source *s,
                      const qn_tokenizer *tok, uint32_t vocab, qn_err *err)
{
    id_set set = {ids, cap, 0, vocab};
    *n = 0;
    if (s->st) {
        QN_TRY(add_json(&set, s->config, "config.json", err));
        QN_TRY(add_json(&set, qn_json_get(s->config, "text_config"), "config.json", err));
        QN_TRY(add_json(&set, s->generate, "generation_config.json", err));
    }
    if (tok && set.n == 0) {
        size_t n_ends = 0;
        const uint32_t *ends = qn_tokenizer_ends(tok, &n_ends);
        for (size_t i = 0; i < n_ends; i++) QN_TRY(add_id(&set, ends[i], "the tokenizer", err));
    }
    *n = set.n;
    return QN_OK;
}
