/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_gguf.c - opens the vocabulary that a GGUF file carries.
 *
 * "gpt2" is byte-level BPE with ranked merges; "llama" is SentencePiece BPE, whose merges follow the
 * tokens' scores. Both are rebuilt as the model's own tokenizer file has them.
 */
#include "base/alloc.h"
#include "dep/hash.h"
#include "text/tokenizer_int.h"

#include <math.h>

#define SPACE_MARK "\xE2\x96\x81" /* U+2581, what SentencePiece writes for a space */

static qn_code put_token(qn_tokenizer *t, const qn_tokenizer_parts *p, uint32_t id, qn_err *err)
{
    const qn_str s = p->tokens[id];
    const int32_t kind = p->types ? p->types[id] : QN_TOKEN_NORMAL;
    if (kind < QN_TOKEN_NORMAL || kind > QN_TOKEN_BYTE)
        return qn_fail(err, QN_E_FORMAT, "token %u has type %d, expected 1 to 6", id, kind);
    if (!qn_utf8_valid(s.p, s.n, NULL))
        return qn_fail(err, QN_E_FORMAT, "token %u is no UTF-8", id);
    QN_TRY(qn_vocab_put(&t->vocab, id, s, (qn_token_kind)kind, true, err));
    /* a stranger's text must not spell a control token, whatever the merges say */
    if (kind == QN_TOKEN_CONTROL) t->vocab.kind[id] |= QN_TOK_OUTSIDE;
    return QN_OK;
}

static qn_code put_added(qn_tokenizer *t, qn_err *err)
{
    for (uint32_t id = 0; id < t->vocab.n_ids; id++) {
        const qn_token_kind kind = qn_token_kind_of(t, id);
        const qn_str s = qn_vocab_text(&t->vocab, id);
        const bool special = kind == QN_TOKEN_CONTROL || kind == QN_TOKEN_UNKNOWN;
        if (s.n == 0 || (!special && kind != QN_TOKEN_USER_DEFINED)) continue;
        if (qn_vocab_find(&t->vocab, s.p, s.n) != id) continue; /* a later id has this spelling */
        QN_TRY(qn_added_put(&t->raw, s, (qn_added){.id = id, .special = special}, err));
    }
    return QN_OK;
}

static qn_code put_tokens(qn_tokenizer *t, const qn_tokenizer_parts *p, qn_err *err)
{
    size_t bytes = 0;
    for (size_t k = 0; k < p->n_tokens; k++)
        if (!qn_add_size(&bytes, bytes, p->tokens[k].n))
            return qn_fail(err, QN_E_LIMIT, "tokens of more bytes than memory has");
    QN_TRY(qn_vocab_reserve(&t->vocab, p->n_tokens, bytes, err));
    for (uint32_t id = 0; id < p->n_tokens; id++) QN_TRY(put_token(t, p, id, err));
    t->vocab.n_ids = (uint32_t)p->n_tokens;
    return put_added(t, err);
}

static qn_code put_merges(qn_tokenizer *t, const qn_tokenizer_parts *p, qn_err *err)
{
    qn_buf scratch;
    qn_code rc = QN_OK;
    qn_buf_init(&scratch, 2 * QN_TOK_TOKEN_MAX);
    QN_TRY_OUT(qn_merges_reserve(&t->merges, p->n_merges, err));
    for (size_t k = 0; k < p->n_merges; k++) {
        const qn_str m = p->merges[k];
        /* the left part may itself begin with a space in old files: the search starts behind it */
        const char *space = m.n > 1 ? memchr(m.p + 1, ' ', m.n - 1) : NULL;
        if (!space) {
            rc = qn_fail(err, QN_E_FORMAT, "merge %zu: \"%.*s\" is no pair", k, QN_STR_ARG(m));
            goto out;
        }
        const size_t left = (size_t)(space - m.p);
        QN_TRY_OUT(qn_merge_texts(t, qn_str_slice(m, 0, left), qn_str_slice(m, left + 1, m.n),
                                  &scratch, err));
    }
out:
    qn_buf_fini(&scratch);
    return rc;
}

static qn_code check_id(const qn_tokenizer *t, const char *key, uint32_t id, qn_err *err)
{
    if (id == QN_TOKEN_NONE || id < t->vocab.n_ids) return QN_OK;
    return qn_fail(err, QN_E_FORMAT, "tokenizer.ggml.%s_token_id is %u, the vocabulary has %u", key,
                   id, t->vocab.n_ids);
}

static qn_code put_specials(qn_tokenizer *t, const qn_tokenizer_parts *p, bool add_bos, qn_err *err)
{
    QN_TRY(check_id(t, "bos", p->bos, err));
    QN_TRY(check_id(t, "eos", p->eos, err));
    QN_TRY(check_id(t, "unknown", p->unk, err));
    QN_TRY(check_id(t, "padding", p->pad, err));
    QN_TRY(check_id(t, "eot", p->eot, err));
    QN_TRY(check_id(t, "eom", p->eom, err));
    t->bos = p->bos;
    t->eos = p->eos;
    t->unk = p->unk;
    t->pad = p->pad;
    qn_tokenizer_add_end(t, p->eot);
    qn_tokenizer_add_end(t, p->eom);
    if (p->add_bos == QN_YES && p->bos == QN_TOKEN_NONE)
        return qn_fail(err, QN_E_FORMAT, "add_bos_token without a bos_token_id");
    if (p->add_eos == QN_YES && p->eos == QN_TOKEN_NONE)
        return qn_fail(err, QN_E_FORMAT, "add_eos_token without an eos_token_id");
    if (p->bos != QN_TOKEN_NONE && (p->add_bos == QN_UNSET ? add_bos : p->add_bos == QN_YES))
        t->prefix[t->n_prefix++] = p->bos;
    if (p->add_eos == QN_YES) t->suffix[t->n_suffix++] = p->eos;
    return QN_OK;
}

static qn_code open_gpt2(qn_tokenizer *t, const qn_tokenizer_parts *p, qn_err *err)
{
    bool add_bos = false;
    qn_pretok_op *op = NULL;
    if (p->n_merges == 0) return qn_fail(err, QN_E_FORMAT, "tokenizer.ggml.merges is missing");
    t->kind = QN_VOCAB_BYTE_BPE;
    t->decoder.byte_level = true;
    if (p->add_space_prefix == QN_YES) QN_TRY(qn_pre_add(t, &op, QN_PRE_PREFIX_SPACE, err));
    QN_TRY(qn_gguf_pretok(t, p->pre, &add_bos, err));
    QN_TRY(put_tokens(t, p, err));
    QN_TRY(put_merges(t, p, err));
    return put_specials(t, p, add_bos, err);
}

static qn_code copy_scores(qn_tokenizer *t, const qn_tokenizer_parts *p, qn_err *err)
{
    if (!p->scores) return qn_fail(err, QN_E_FORMAT, "tokenizer.ggml.scores is missing");
    t->scores = qn_calloc(p->n_tokens, sizeof *t->scores);
    if (!t->scores) return qn_fail(err, QN_E_NOMEM, "%zu scores", p->n_tokens);
    for (size_t k = 0; k < p->n_tokens; k++) {
        if (isnan(p->scores[k]))
            return qn_fail(err, QN_E_FORMAT, "score of token %zu is no number", k);
        t->scores[k] = p->scores[k];
    }
    return QN_OK;
}

static qn_code open_spm(qn_tokenizer *t, const qn_tokenizer_parts *p, qn_err *err)
{
    qn_norm_op *op = NULL;
    if (p->pre.n && !qn_str_eq_z(p->pre, "default"))
        return qn_fail(err, QN_E_UNSUPPORTED, "tokenizer.ggml.pre \"%.*s\" with model \"llama\"",
                       QN_STR_ARG(p->pre));
    t->kind = QN_VOCAB_SPM_BPE;
    t->byte_fallback = true;
    t->decoder.byte_fallback = true;
    QN_TRY(qn_decoder_add_replace(&t->decoder, QN_STR(SPACE_MARK), QN_STR(" "), err));
    if (p->add_space_prefix != QN_NO) {
        QN_TRY(qn_norm_add(t, &op, QN_NORM_PREPEND, err));
        QN_TRY(qn_buf_append_z(&op->content, SPACE_MARK, err));
        t->decoder.strip[0] = ' ';
        t->decoder.strip_len = t->decoder.strip_n = 1;
    }
    QN_TRY(qn_norm_add(t, &op, QN_NORM_REPLACE, err));
    QN_TRY(qn_buf_append_z(&op->pattern, " ", err));
    QN_TRY(qn_buf_append_z(&op->content, SPACE_MARK, err));
    QN_TRY(put_tokens(t, p, err));
    QN_TRY(copy_scores(t, p, err));
    QN_TRY(put_specials(t, p, true, err));
    t->model_unk = t->unk;
    return QN_OK;
}

static uint64_t digest(const qn_tokenizer_parts *p)
{
    const uint32_t fixed[] = {p->bos,
                              p->eos,
                              p->unk,
                              p->pad,
                              p->eot,
                              p->eom,
                              (uint32_t)p->add_bos,
                              (uint32_t)p->add_eos,
                              (uint32_t)p->add_space_prefix};
    uint64_t h = qn_hash64(fixed, sizeof fixed, 2);
    h = qn_hash64(p->model.p, p->model.n, h);
    h = qn_hash64(p->pre.p, p->pre.n, h);
    for (size_t k = 0; k < p->n_tokens; k++) h = qn_hash64(p->tokens[k].p, p->tokens[k].n, h);
    for (size_t k = 0; k < p->n_merges; k++) h = qn_hash64(p->merges[k].p, p->merges[k].n, h);
    if (p->types) h = qn_hash64(p->types, p->n_tokens * sizeof *p->types, h);
    if (p->scores) h = qn_hash64(p->scores, p->n_tokens * sizeof *p->scores, h);
    return h;
}

qn_code qn_tokenizer_from_parts(qn_tokenizer **out, const qn_tokenizer_parts *p, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    if (p->n_tokens == 0) return qn_fail(err, QN_E_FORMAT, "tokenizer.ggml.tokens is missing");
    qn_tokenizer *t = qn_tokenizer_new_empty();
    if (!t) return qn_fail(err, QN_E_NOMEM, "tokenizer");
    if (qn_str_eq_z(p->model, "gpt2"))
        QN_TRY_OUT(open_gpt2(t, p, err));
    else if (qn_str_eq_z(p->model, "llama"))
        QN_TRY_OUT(open_spm(t, p, err));
    else {
        rc = qn_fail(err, QN_E_UNSUPPORTED, "tokenizer.ggml.model \"%.*s\"", QN_STR_ARG(p->model));
        goto out;
    }
    QN_TRY_OUT(qn_tokenizer_finish(t, err));
    t->digest = digest(p);
    *out = t;
    t = NULL;
out:
    qn_tokenizer_free(t);
    return rc;
}
