/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - models and their tokenizers, for the public. */
#include <string.h>

#include "base/alloc.h"
#include "lib/lib_int.h"
#include "model/fit.h"
#include "model/inspect.h"

/* The two enums and structs are the same by name and number, field by field. */
static quern_sampling_defaults defaults_of(const qn_recipe *r)
{
    return (quern_sampling_defaults){.set = r->set,
                                     .temperature = r->temperature,
                                     .top_p = r->top_p,
                                     .min_p = r->min_p,
                                     .repetition_penalty = r->repetition_penalty,
                                     .top_k = r->top_k};
}

quern_code quern_model_open(quern_model **out, quern_runtime *rt, const char *path,
                            const quern_model_options *opt, quern_error *err)
{
    quern_model_options o;
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_given(rt, "runtime", err));
    QN_TRY(qn_lib_path(path, err));
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "model", err));
    static const qn_act_mode modes[] = {QN_ACTIVATIONS_I16, QN_ACTIVATIONS_F32, QN_ACTIVATIONS_I8,
                                        QN_ACTIVATIONS_I16};
    if ((unsigned)o.activations >= QN_LEN(modes))
        return qn_fail(err, QN_E_INVAL, "activations is %d, expected 0 to %d", (int)o.activations,
                       QUERN_ACTIVATIONS_I16);
    const qn_memory_room room = qn_fit_room(rt->memory_ceiling);
    const qn_model_options inner = {.activations = modes[o.activations],
                                    .image_dir = rt->image_dir,
                                    .lanes = rt->threads,
                                    .log = rt->log,
                                    .room = &room};
    quern_model *m = qn_zalloc(sizeof *m);
    if (!m) return qn_fail(err, QN_E_NOMEM, "model handle");
    const qn_code rc = qn_model_open(&m->model, path, &inner, err);
    if (rc != QN_OK) {
        qn_free(m);
        return qn_runtime_tell_memory(rt, rc, err);
    }
    atomic_init(&m->refs, 1);
    m->rt = qn_runtime_ref(rt);
    m->defaults = defaults_of(qn_model_recipe(m->model));
    *out = m;
    return QN_OK;
}

quern_model *quern_model_ref(quern_model *m)
{
    if (m) atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void quern_model_unref(quern_model *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    qn_model_unref(m->model);
    quern_runtime_close(m->rt);
    qn_free(m);
}

quern_code quern_model_get_info(const quern_model *m, quern_model_info *info, quern_error *err)
{
    QN_TRY(qn_lib_given(m, "model", err));
    QN_TRY(qn_lib_given(info, "info", err));
    const qn_model_desc *d = qn_model_get_desc(m->model);
    const qn_tokenizer *t = qn_model_tokenizer(m->model);
    uint32_t n_ends = 0;
    const uint32_t *ends = qn_model_ends(m->model, &n_ends);
    const quern_model_info all = {
        .size = info->size,
        .path = qn_model_path(m->model),
        .family = d->family,
        .chat_template = qn_model_chat_template(m->model),
        .n_layers = d->n_layers,
        .width = d->width,
        .n_heads = d->n_heads,
        .n_kv_heads = d->n_kv_heads,
        .head_dim = d->head_dim,
        .ffn = d->ffn,
        .vocab = d->vocab,
        .context = d->context,
        .weight_bytes = qn_model_weight_bytes(m->model),
        .has_tokenizer = t != NULL,
        .bos_id = t ? qn_tokenizer_bos(t) : QUERN_NO_TOKEN,
        .eos_id = t ? qn_tokenizer_eos(t) : QUERN_NO_TOKEN,
        .eos_ids = ends,
        .n_eos_ids = n_ends,
        .adds_bos = t != NULL && qn_tokenizer_adds_bos(t),
        .defaults = &m->defaults,
    };
    if (info->size < sizeof info->size || info->size > 1 << 16)
        return qn_fail(err, QN_E_INVAL, "info: size is %zu, expected %zu", info->size, sizeof all);
    const size_t size = info->size, known = size < sizeof all ? size : sizeof all;
    memset(info, 0, size);
    memcpy(info, &all, known);
    return QN_OK;
}

static qn_code tokenizer_of(const qn_tokenizer **out, const quern_model *m, qn_err *err)
{
    QN_TRY(qn_lib_given(m, "model", err));
    *out = qn_model_tokenizer(m->model);
    if (*out) return QN_OK;
    return qn_fail(err, QN_E_UNSUPPORTED, "%s holds no tokenizer", qn_model_path(m->model));
}

quern_code quern_tokenize(size_t *n_ids, const quern_model *m, const char *text, size_t n,
                          uint32_t flags, uint32_t *ids, size_t cap, quern_error *err)
{
    const qn_tokenizer *t = NULL;
    qn_ids all = {0};
    QN_TRY(qn_lib_given(n_ids, "n_ids", err));
    *n_ids = 0;
    QN_TRY(tokenizer_of(&t, m, err));
    if (n) QN_TRY(qn_lib_given(text, "text", err));
    if (cap) QN_TRY(qn_lib_given(ids, "ids", err));
    const uint32_t known = QUERN_TOKENIZE_SPECIAL | QUERN_TOKENIZE_MARKERS;
    if (flags & ~known) return qn_fail(err, QN_E_INVAL, "flags are %#x, known: %#x", flags, known);
    const qn_encode_options opt = {.add_special = (flags & QUERN_TOKENIZE_SPECIAL) != 0,
                                   .parse_special = (flags & QUERN_TOKENIZE_MARKERS) != 0};
    const qn_code rc = qn_tokenizer_encode(t, &all, n ? text : "", n, opt, err);
    if (rc == QN_OK) {
        *n_ids = all.n;
        if (cap && all.n) memcpy(ids, all.id, (all.n < cap ? all.n : cap) * sizeof *ids);
    }
    qn_ids_fini(&all);
    return rc;
}

quern_code quern_detokenize(size_t *n, const quern_model *m, const uint32_t *ids, size_t n_ids,
                            char *text, size_t cap, quern_error *err)
{
    const qn_tokenizer *t = NULL;
    char *all = NULL;
    QN_TRY(qn_lib_given(n, "n", err));
    *n = 0;
    QN_TRY(tokenizer_of(&t, m, err));
    if (n_ids) QN_TRY(qn_lib_given(ids, "ids", err));
    if (cap) QN_TRY(qn_lib_given(text, "text", err));
    QN_TRY(qn_tokenizer_decode(t, &all, n, ids, n_ids, true, err));
    if (cap && *n) memcpy(text, all, *n < cap ? *n : cap);
    qn_free(all);
    return QN_OK;
}

quern_code quern_token_bytes(size_t *n, const quern_model *m, uint32_t id, char *bytes, size_t cap,
                             quern_error *err)
{
    const qn_tokenizer *t = NULL;
    QN_TRY(qn_lib_given(n, "n", err));
    *n = 0;
    QN_TRY(tokenizer_of(&t, m, err));
    if (cap) QN_TRY(qn_lib_given(bytes, "bytes", err));
    const uint32_t vocab = qn_model_get_desc(m->model)->vocab;
    if (id >= vocab) return qn_fail(err, QN_E_INVAL, "token is %u, expected below %u", id, vocab);
    *n = qn_token_bytes(t, id, bytes, cap);
    return QN_OK;
}

const char *quern_token_text(size_t *n, const quern_model *m, uint32_t id)
{
    const qn_tokenizer *t = m ? qn_model_tokenizer(m->model) : NULL;
    const qn_str s = t ? qn_token_text(t, id) : (qn_str){NULL, 0};
    if (n) *n = s.n;
    return s.n ? s.p : "";
}

/* -- reports ----------------------------------------------------------------------------------- */

struct quern_report {
    char *json;
    size_t n;
};

quern_code quern_inspect(quern_report **out, const char *path, const quern_inspect_options *opt,
                         quern_error *err)
{
    quern_inspect_options o;
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_path(path, err));
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "inspect", err));
    const uint32_t known = QUERN_INSPECT_TENSORS | QUERN_INSPECT_TOKENIZER;
    if (o.flags & ~known)
        return qn_fail(err, QN_E_INVAL, "flags are %#x, known: %#x", o.flags, known);
    const qn_inspect_options inner = {.tensors = (o.flags & QUERN_INSPECT_TENSORS) != 0,
                                      .arrays = (o.flags & QUERN_INSPECT_TOKENIZER) != 0};
    quern_report *r = qn_zalloc(sizeof *r);
    if (!r) return qn_fail(err, QN_E_NOMEM, "report handle");
    const qn_code rc = qn_model_inspect(&r->json, &r->n, path, &inner, err);
    if (rc == QN_OK)
        *out = r;
    else
        quern_report_free(r);
    return rc;
}

const char *quern_report_json(const quern_report *r, size_t *n)
{
    if (n) *n = r ? r->n : 0;
    return r ? r->json : "";
}

void quern_report_free(quern_report *r)
{
    if (!r) return;
    qn_free(r->json);
    qn_free(r);
}
