/* SPDX-License-Identifier: Apache-2.0 */
/* openai_info.c - the small bodies: errors, token ids, models, the index, health.
 *
 * Thread: any, on separate buffers.
 */
#include <string.h>

#include "api/api_int.h"
#include "base/utf8.h"

qn_code qn_openai_write_error(qn_buf *out, const qn_api_error *error, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    qn_out_error(&o, error);
    return qn_out_end(&o);
}

/* A token's text, or its bytes where they are no text. */
static void put_piece(qn_out *o, qn_str text)
{
    if (qn_utf8_valid(text.p, text.n, NULL)) {
        qn_out_str(o, text);
        return;
    }
    QN_OUT(o, "[");
    for (size_t i = 0; i < text.n; i++) {
        if (i) QN_OUT(o, ",");
        qn_out_u64(o, (unsigned char)text.p[i]);
    }
    QN_OUT(o, "]");
}

qn_code qn_openai_write_tokens(qn_buf *out, const uint32_t *tokens, size_t n,
                               const qn_openai_piece *pieces, const qn_api_warnings *warnings,
                               qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    QN_OUT(&o, "{\"tokens\":[");
    for (size_t i = 0; i < n; i++) {
        if (i) QN_OUT(&o, ",");
        if (pieces) QN_OUT(&o, "{\"id\":");
        qn_out_u64(&o, tokens[i]);
        if (!pieces) continue;
        QN_OUT(&o, ",\"piece\":");
        put_piece(&o, pieces[i].text);
        QN_OUT(&o, "}");
    }
    QN_OUT(&o, "],");
    qn_out_warnings(&o, warnings);
    QN_OUT(&o, "\"count\":");
    qn_out_u64(&o, n);
    QN_OUT(&o, "}");
    return qn_out_end(&o);
}

qn_code qn_openai_write_content(qn_buf *out, qn_str content, const qn_api_warnings *warnings,
                                qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    QN_OUT(&o, "{");
    qn_out_warnings(&o, warnings);
    QN_OUT(&o, "\"content\":");
    qn_out_str(&o, content);
    QN_OUT(&o, "}");
    return qn_out_end(&o);
}

/* -- models ------------------------------------------------------------------------------------ */

static void put_member(qn_out *o, const char *name, bool value)
{
    QN_OUT(o, ",\"");
    qn_out_bytes(o, name, strlen(name));
    QN_OUT(o, "\":");
    qn_out_bool(o, value);
}

static void put_defaults(qn_out *o, const qn_openai_model *m)
{
    QN_OUT(o, ",\"gen_defaults\":{\"temperature\":");
    if (m->set & QN_SET_TEMPERATURE)
        qn_out_f32(o, m->temperature);
    else
        QN_OUT(o, "null");
    QN_OUT(o, ",\"top_p\":");
    if (m->set & QN_SET_TOP_P)
        qn_out_f32(o, m->top_p);
    else
        QN_OUT(o, "null");
    QN_OUT(o, ",\"top_k\":");
    if (m->set & QN_SET_TOP_K)
        qn_out_u64(o, m->top_k);
    else
        QN_OUT(o, "null");
    QN_OUT(o, "}");
}

static void put_model(qn_out *o, const qn_openai_model *m)
{
    static const char *const can[] = {"text_completions", "streaming", "logprobs", NULL};
    static const char *const cannot[] = {
        "anthropic_messages", "responses",     "tools", "structured_output",
        "embeddings",         "vision",        "audio", "adapters",
        "training",           "transcription", NULL};
    QN_OUT(o, "{\"id\":");
    qn_out_str(o, m->id);
    QN_OUT(o, ",\"object\":\"model\",\"created\":");
    qn_out_i64(o, m->created);
    QN_OUT(o, ",\"owned_by\":");
    qn_out_str(o, m->owned_by);
    QN_OUT(o, ",\"context_window\":");
    qn_out_u64(o, m->context_window);
    QN_OUT(o, ",\"capabilities\":{\"chat_completions\":");
    qn_out_bool(o, m->has_template);
    for (size_t i = 0; can[i]; i++) put_member(o, can[i], true);
    for (size_t i = 0; cannot[i]; i++) put_member(o, cannot[i], false);
    QN_OUT(o, "}");
    put_defaults(o, m);
    put_member(o, "resident", m->resident);
    put_member(o, "current", m->current);
    QN_OUT(o, "}");
}

qn_code qn_openai_write_models(qn_buf *out, const qn_openai_model *models, size_t n, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    QN_OUT(&o, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n; i++) {
        if (i) QN_OUT(&o, ",");
        put_model(&o, &models[i]);
    }
    QN_OUT(&o, "]}");
    return qn_out_end(&o);
}

qn_code qn_openai_write_model(qn_buf *out, const qn_openai_model *model, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    put_model(&o, model);
    return qn_out_end(&o);
}

/* -- index and health -------------------------------------------------------------------------- */

qn_code qn_openai_write_index(qn_buf *out, const char *version, qn_str model,
                              const char *const *endpoints, size_t n, qn_err *err)
{
    qn_out o = qn_out_begin(out, err);
    QN_OUT(&o, "{\"name\":\"quern\",\"version\":");
    qn_out_str_z(&o, version);
    QN_OUT(&o, ",\"model\":");
    if (model.n)
        qn_out_str(&o, model);
    else
        QN_OUT(&o, "null");
    QN_OUT(&o, ",\"endpoints\":[");
    for (size_t i = 0; i < n; i++) {
        if (i) QN_OUT(&o, ",");
        qn_out_str_z(&o, endpoints[i]);
    }
    QN_OUT(&o, "]}");
    return qn_out_end(&o);
}

qn_code qn_openai_write_health(qn_buf *out, qn_err *err)
{
    return qn_buf_append_z(out, "{\"status\": \"ok\"}", err);
}
