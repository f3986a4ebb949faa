/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - opening a model, stage by stage, and what it tells afterwards. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/fit.h"
#include "model/model_int.h"
#include "model/recipe.h"

/* What a family does not set: nothing is scaled, nothing is capped. */
static void set_defaults(qn_model_desc *d, const qn_family *f)
{
    memset(d, 0, sizeof *d);
    snprintf(d->family, sizeof d->family, "%s", f->name);
    d->embed_scale = d->residual_scale = d->logit_scale = 1.0f;
}

static qn_code read_desc(qn_model *m, qn_rope_spec rope[2], qn_err *err)
{
    qn_model_desc *d = &m->desc;
    qn_gguf_value tokens;
    set_defaults(d, m->family);
    if (m->source.gguf && qn_gguf_find(m->source.gguf, "tokenizer.ggml.tokens", &tokens) &&
        tokens.n <= UINT32_MAX)
        d->vocab = (uint32_t)tokens.n; /* where vocab_size is silent */
    QN_TRY(m->family->read(d, rope, &m->source, err));
    if (d->attention_scale == 0) d->attention_scale = (float)(1.0 / sqrt((double)d->head_dim));
    return qn_desc_check(d, err);
}

static qn_code make_rope(qn_model *m, qn_rope_spec rope[2], qn_err *err)
{
    const uint32_t half = m->desc.rope_dims / 2;
    float mscale[2] = {1, 1};
    if (m->weights.top.rope_factors) {
        rope[0].n_factors = half;
        for (uint32_t i = 0; i < half; i++) {
            const float f = m->weights.top.rope_factors[i];
            if (!(f > 1e-6f && f < 1e9f))
                return qn_fail(err, QN_E_FORMAT, "rope_freqs.weight[%u] is %g", i, (double)f);
            rope[0].factors[i] = f;
        }
    }
    m->has_local_rope = rope[1].dims != 0;
    for (int i = 0; i < 1 + m->has_local_rope; i++) {
        QN_TRY(qn_rope_frequencies(m->inv_freq[i], &mscale[i], &rope[i], err));
        m->rope[i] = (qn_rope){.inv_freq = m->inv_freq[i],
                               .half = half,
                               .mscale = mscale[i],
                               .interleaved = m->desc.rope_interleaved};
    }
    m->desc.rope_mscale = mscale[0];
    m->desc.rope_theta = rope[0].theta;
    m->desc.rope_theta_local = rope[1].theta;
    return QN_OK;
}

static void add_end(qn_model *m, uint32_t id)
{
    for (uint32_t i = 0; i < m->n_ends; i++)
        if (m->ends[i] == id) return;
    m->ends[m->n_ends++] = id;
}

static qn_code join_ends(qn_model *m, qn_err *err)
{
    const qn_model_desc *d = &m->desc;
    size_t n = 0;
    const uint32_t *ids = m->tokenizer ? qn_tokenizer_ends(m->tokenizer, &n) : NULL;
    m->ends = qn_calloc(d->n_eos + n + 1, sizeof *m->ends);
    if (!m->ends) return qn_fail(err, QN_E_NOMEM, "ids that end a text");
    for (uint32_t i = 0; i < d->n_eos; i++) add_end(m, d->eos[i]);
    for (size_t i = 0; i < n; i++) add_end(m, ids[i]);
    return QN_OK;
}

static qn_code read_text(qn_model *m, qn_err *err)
{
    qn_model_desc *d = &m->desc;
    QN_TRY(qn_source_tokenizer(&m->tokenizer, &m->source, err));
    if (m->tokenizer && qn_tokenizer_size(m->tokenizer) > d->vocab + m->family->ids_beyond)
        return qn_fail(err, QN_E_FORMAT, "the tokenizer has %u ids, the embedding table %u rows",
                       qn_tokenizer_size(m->tokenizer), d->vocab);
    QN_TRY(qn_source_template(&m->chat_template, &m->source, err));
    QN_TRY(qn_source_recipe(&m->recipe, &m->source, err));
    QN_TRY(
        qn_source_eos(d->eos, QN_LEN(d->eos), &d->n_eos, &m->source, m->tokenizer, d->vocab, err));
    return join_ends(m, err);
}

static qn_code name_taps(qn_model *m, qn_err *err)
{
    m->tap_names = qn_calloc(m->desc.n_layers, sizeof *m->tap_names);
    if (!m->tap_names) return qn_fail(err, QN_E_NOMEM, "%u names", m->desc.n_layers);
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        snprintf(m->tap_names[l], sizeof m->tap_names[l], "layer.%u", l % QN_MAX_LAYERS);
    return QN_OK;
}

/* Before a weight is read. What the tokenizer and the rest take is small beside it. */
static qn_code check_room(const qn_model *m, const qn_model_options *opt, qn_err *err)
{
    const uint64_t bytes = qn_source_file_bytes(&m->source);
    if (!opt || !opt->room) return QN_OK;
    return qn_fit_check(bytes, opt->room, "weights", UINT32_MAX, err);
}

static qn_code load_bare(qn_model *m, const char *path, const qn_model_options *opt, qn_err *err)
{
    qn_rope_spec rope[2] = {{0}};
    QN_TRY(qn_source_open(&m->source, path, err));
    QN_TRY(qn_family_find(&m->family, m->source.type, err));
    QN_TRY(read_desc(m, rope, err));
    QN_TRY(check_room(m, opt, err));
    QN_TRY(qn_weights_load(&m->weights, &m->source, &m->family->map, &m->desc, err));
    QN_TRY(make_rope(m, rope, err));
    return name_taps(m, err);
}

static qn_code load_rest(qn_model *m, const qn_model_options *opt, qn_err *err)
{
    QN_TRY(qn_source_digest(&m->digest, &m->source, err));
    QN_TRY(read_text(m, err));
    if (opt && m->weights.n_dropped)
        qn_log(opt->log, QN_LOG_INFO, "model", "left_out=%u path=%s", m->weights.n_dropped,
               m->source.path);
    if (m->activations == QN_ACTIVATIONS_F32) return QN_OK;
    const qn_panels_options how = {.tied = m->desc.tied,
                                   .lanes = opt->lanes, /* no options: f32 */
                                   .image_dir = opt->image_dir,
                                   .source = m->digest,
                                   .log = opt->log};
    return qn_panels_open(&m->panels, &m->weights, &how, err);
}

/* The readers name the file already; it is said once. */
static bool names_file(const char *msg, const char *path)
{
    const size_t n = strlen(path);
    return n && strncmp(msg, path, n) == 0 && (msg[n] == ':' || msg[n] == '/' || msg[n - 1] == '/');
}

static qn_code open_as(qn_model **out, const char *path, const qn_model_options *opt, bool bare,
                       qn_err *err)
{
    *out = NULL;
    qn_model *m = qn_zalloc(sizeof *m);
    if (!m) return qn_fail(err, QN_E_NOMEM, "model handle");
    atomic_init(&m->refs, 1);
    m->activations = opt ? opt->activations : QN_ACTIVATIONS_F32;
    qn_code rc = load_bare(m, path, opt, err);
    if (rc == QN_OK && !bare) rc = load_rest(m, opt, err);
    if (rc != QN_OK) {
        qn_model_unref(m);
        return err && names_file(err->msg, path) ? rc : qn_wrap(err, rc, "%s", path);
    }
    *out = m;
    return QN_OK;
}

qn_code qn_model_open(qn_model **out, const char *path, const qn_model_options *opt, qn_err *err)
{
    return open_as(out, path, opt, false, err);
}

qn_code qn_model_open_bare(qn_model **out, const char *path, qn_err *err)
{
    return open_as(out, path, NULL, true, err);
}

qn_model *qn_model_ref(qn_model *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void qn_model_unref(qn_model *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    qn_panels_fini(&m->panels);
    qn_weights_fini(&m->weights);
    qn_source_close(&m->source);
    qn_tokenizer_free(m->tokenizer);
    qn_free(m->chat_template);
    qn_free(m->tap_names);
    qn_free(m->ends);
    qn_free(m);
}

const qn_model_desc *qn_model_get_desc(const qn_model *m) { return &m->desc; }
const qn_tokenizer *qn_model_tokenizer(const qn_model *m) { return m->tokenizer; }
const char *qn_model_chat_template(const qn_model *m) { return m->chat_template; }
const qn_recipe *qn_model_recipe(const qn_model *m) { return &m->recipe; }
const char *qn_model_path(const qn_model *m) { return m->source.path; }
qn_record_fn *qn_model_record(const qn_model *m) { return m->family->record; }
qn_act_mode qn_model_activations(const qn_model *m) { return m->activations; }
size_t qn_model_weight_bytes(const qn_model *m) { return m->weights.bytes; }

const uint32_t *qn_model_ends(const qn_model *m, uint32_t *n)
{
    *n = m->n_ends;
    return m->ends;
}

uint32_t qn_model_groups(const qn_model *m, qn_kv_fmt fmt, qn_group_desc out[QN_MAX_GROUPS],
                         uint32_t *layer_group)
{
    const qn_model_desc *d = &m->desc;
    uint32_t n = 0, of[2] = {QN_MAX_GROUPS, QN_MAX_GROUPS}; /* group of full and sliding layers */
    for (uint32_t l = 0; l < d->n_layers; l++) {
        const bool sliding = qn_layer_bit(d->sliding, l);
        if (of[sliding] == QN_MAX_GROUPS) {
            of[sliding] = n;
            out[n++] = (qn_group_desc){.kind = sliding ? QN_GROUP_WINDOW : QN_GROUP_FULL,
                                       .fmt = fmt,
                                       .n_kv_heads = d->n_kv_heads,
                                       .head_dim = d->head_dim,
                                       .window = sliding ? d->window : 0};
        }
        out[of[sliding]].n_layers++;
        layer_group[l] = of[sliding];
    }
    return n;
}

void qn_model_numerics(const qn_model *m, qn_kv_fmt fmt, uint64_t out[2])
{
    struct {
        uint64_t order, device, weights[2], activations, kv, desc, rope;
    } id = {QN_KERN_ORDER,
            QN_DEVICE_CPU,
            {m->digest.lo, m->digest.hi},
            m->activations,
            fmt,
            qn_hash64(&m->desc, sizeof m->desc, 0),
            qn_hash64(m->inv_freq, sizeof m->inv_freq, 0)};
    const qn_digest128 d = qn_hash128(&id, sizeof id, 0);
    out[0] = d.lo;
    out[1] = d.hi;
}
