/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - chat templates for the public: options are read as JSON, the tokenizer's markers
 * become variables. */
#include <string.h>

#include "base/alloc.h"
#include "lib/lib_int.h"
#include "quern/template.h"
#include "text/jinja.h"

enum { JSON_MAX = 64 << 20 }; /* bytes of one option */

struct quern_template {
    quern_model *model;
    qn_jinja *program;
};

quern_code quern_template_open(quern_template **out, const quern_model *m, const char *source,
                               size_t n, quern_error *err)
{
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_given(m, "model", err));
    if (!source) {
        source = qn_model_chat_template(m->model);
        if (!source)
            return qn_fail(err, QN_E_NOTFOUND, "%s holds no chat template",
                           qn_model_path(m->model));
        n = strlen(source);
    }
    quern_template *t = qn_zalloc(sizeof *t);
    if (!t) return qn_fail(err, QN_E_NOMEM, "template");
    const qn_code rc = qn_jinja_new(&t->program, source, n, err);
    if (rc != QN_OK) {
        qn_free(t);
        return rc;
    }
    t->model = quern_model_ref((quern_model *)(uintptr_t)m); /* only its count changes */
    *out = t;
    return QN_OK;
}

void quern_template_free(quern_template *t)
{
    if (!t) return;
    qn_jinja_free(t->program);
    quern_model_unref(t->model);
    qn_free(t);
}

void quern_text_free(char *text) { qn_free(text); }

uint32_t quern_template_mentions(const quern_template *t, const char *name)
{
    return t && name && qn_jinja_mentions(t->program, name);
}

static qn_code put(qn_json *o, const char *key, qn_json *v, qn_err *err)
{
    if (v && qn_json_set(o, key, v)) return QN_OK;
    return qn_fail(err, QN_E_NOMEM, "variable %s of a template", key);
}

static qn_code put_token(qn_json *o, const char *key, const qn_tokenizer *t, uint32_t id,
                         qn_err *err)
{
    if (id == QN_TOKEN_NONE) return QN_OK;
    const qn_str s = qn_token_text(t, id);
    return put(o, key, qn_json_new_str(s.n ? s.p : "", s.n), err);
}

static qn_code parse(qn_json **out, const char *text, size_t n, qn_json_type type, const char *name,
                     qn_err *err)
{
    QN_TRY(qn_lib_given(text, name, err));
    const qn_code rc = qn_json_parse(out, text, n, JSON_MAX, err);
    if (rc != QN_OK) return qn_wrap(err, rc, "%s", name);
    if (qn_json_type_of(*out) == type) return QN_OK;
    return qn_fail(err, QN_E_INVAL, "%s is no JSON %s", name,
                   type == QN_JSON_ARRAY ? "array" : "object");
}

static qn_code base_variables(qn_json *o, const quern_template *t,
                              const quern_template_options *opt, qn_err *err)
{
    const qn_tokenizer *tok = qn_model_tokenizer(t->model->model);
    qn_json *v = NULL;
    qn_code rc = parse(&v, opt->messages, opt->messages_n, QN_JSON_ARRAY, "messages", err);
    if (rc != QN_OK) {
        qn_json_free(v);
        return rc;
    }
    QN_TRY(put(o, "messages", v, err));
    v = NULL;
    if (opt->tools) {
        rc = parse(&v, opt->tools, opt->tools_n, QN_JSON_ARRAY, "tools", err);
        if (rc != QN_OK) {
            qn_json_free(v);
            return rc;
        }
    } else {
        v = qn_json_new_null();
    }
    QN_TRY(put(o, "tools", v, err));
    QN_TRY(put(o, "documents", qn_json_new_null(), err));
    const bool prompt = (opt->flags & QUERN_TEMPLATE_ADD_GENERATION_PROMPT) != 0;
    QN_TRY(put(o, "add_generation_prompt", qn_json_new_bool(prompt), err));
    if (!tok) return QN_OK;
    QN_TRY(put_token(o, "bos_token", tok, qn_tokenizer_bos(tok), err));
    QN_TRY(put_token(o, "eos_token", tok, qn_tokenizer_eos(tok), err));
    QN_TRY(put_token(o, "unk_token", tok, qn_tokenizer_unk(tok), err));
    return put_token(o, "pad_token", tok, qn_tokenizer_pad(tok), err);
}

/* Cuts the text behind the last message's words, so that the model goes on with them. */
static qn_code cut_final(qn_buf *text, const qn_json *variables, qn_err *err)
{
    const qn_json *messages = qn_json_get(variables, "messages");
    size_t n = 0;
    const char *s =
        qn_json_len(messages)
            ? qn_json_str(qn_json_get(qn_json_at(messages, qn_json_len(messages) - 1), "content"),
                          &n)
            : NULL;
    if (!s) return qn_fail(err, QN_E_INVAL, "messages: the last one holds no text to go on with");
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    while (n && strchr(" \t\r\n", *s)) s++, n--;
    for (size_t i = text->len >= n ? text->len - n + 1 : 0; n && i-- > 0;)
        if (!memcmp(text->data + i, s, n)) {
            qn_buf_truncate(text, i + n);
            return QN_OK;
        }
    return qn_fail(err, QN_E_INVAL, "messages: the template does not show the last one's words");
}

quern_code quern_template_render(char **text, size_t *n, const quern_template *t,
                                 const quern_template_options *opt, quern_error *err)
{
    quern_template_options o;
    qn_json *more = NULL, *base = NULL;
    qn_buf b;
    qn_code rc = QN_OK;
    QN_TRY(qn_lib_given(text, "text", err));
    *text = NULL;
    QN_TRY(qn_lib_given(n, "n", err));
    *n = 0;
    QN_TRY(qn_lib_given(t, "template", err));
    QN_TRY(qn_lib_given(opt, "options", err));
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "template", err));
    const uint32_t both = QUERN_TEMPLATE_ADD_GENERATION_PROMPT | QUERN_TEMPLATE_CONTINUE_FINAL;
    if ((o.flags & ~both) || o.flags == both)
        return qn_fail(err, QN_E_INVAL, "flags are %#x, expected one of %#x", o.flags, both);
    qn_buf_init(&b, JSON_MAX);
    base = qn_json_new_object();
    if (!base) return qn_fail(err, QN_E_NOMEM, "variables of a template");
    QN_TRY_OUT(base_variables(base, t, &o, err));
    if (o.variables)
        QN_TRY_OUT(parse(&more, o.variables, o.variables_n, QN_JSON_OBJECT, "variables", err));
    const qn_json *all[] = {base, more};
    const qn_jinja_input in = {.variables = all, .n_variables = more ? 2 : 1, .now_s = o.now_s};
    QN_TRY_OUT(qn_jinja_render(&b, t->program, &in, err));
    if (o.flags & QUERN_TEMPLATE_CONTINUE_FINAL) QN_TRY_OUT(cut_final(&b, base, err));
    QN_TRY_OUT(qn_buf_reserve(&b, 1, err));
    *text = (char *)qn_buf_take(&b, n);
    if (!*text) rc = qn_fail(err, QN_E_NOMEM, "rendered text");
out:
    qn_json_free(base);
    qn_json_free(more);
    qn_buf_fini(&b);
    return rc;
}

uint32_t quern_template_tokenize_flags(const quern_template *t, const char *text, size_t n)
{
    const qn_tokenizer *tok = t ? qn_model_tokenizer(t->model->model) : NULL;
    const uint32_t id = tok ? qn_tokenizer_bos(tok) : QN_TOKEN_NONE;
    if (id != QN_TOKEN_NONE && text) {
        const qn_str bos = qn_token_text(tok, id);
        if (bos.n && bos.n <= n && !memcmp(text, bos.p, bos.n)) return QUERN_TOKENIZE_MARKERS;
    }
    return QUERN_TOKENIZE_MARKERS | QUERN_TOKENIZE_SPECIAL;
}
