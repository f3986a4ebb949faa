/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_json.c - opens a Hugging Face tokenizer.json.
 *
 * Two passes. The first finds where model.vocab and model.merges lie; the file without them is small
 * and goes through the JSON library, strictly. The two large members are then read in place
 * (json_scan.h) into the tables. "truncation" and "padding" are settings of a caller, not of a
 * vocabulary, and the reference library's own users reset them; they are the only members not read.
 */
#include "base/alloc.h"
#include "dep/hash.h"
#include "text/json_scan.h"
#include "text/rules_json.h"

typedef struct file {
    qn_str text;
    qn_str vocab, merges; /* the members' text; p is NULL when absent */
    qn_json *rest;        /* the file with null in their places */
    qn_json *config;
    qn_err *err;
} file;

/* --- the two large members -------------------------------------------------------------------- */

static qn_code note_member(file *f, qn_jscan *s, qn_str key)
{
    qn_str *into = qn_str_eq_z(key, "vocab")    ? &f->vocab
                   : qn_str_eq_z(key, "merges") ? &f->merges
                                                : NULL;
    (void)qn_jscan_peek(s);
    const char *begin = s->p;
    QN_TRY(qn_jscan_skip(s));
    if (!into) return QN_OK;
    if (into->p) return qn_fail(f->err, QN_E_FORMAT, "model.%.*s is given twice", QN_STR_ARG(key));
    *into = (qn_str){begin, (size_t)(s->p - begin)};
    return QN_OK;
}

static qn_code find_members(file *f, qn_jscan *s, bool in_model)
{
    bool more = true;
    qn_str key;
    QN_TRY(qn_jscan_expect(s, '{'));
    if (qn_jscan_peek(s) == '}') return qn_jscan_expect(s, '}');
    while (more) {
        QN_TRY(qn_jscan_string(s, &key));
        const bool model = !in_model && qn_str_eq_z(key, "model");
        QN_TRY(qn_jscan_expect(s, ':'));
        if (model && qn_jscan_peek(s) == '{')
            QN_TRY(find_members(f, s, true));
        else
            QN_TRY(in_model ? note_member(f, s, key) : qn_jscan_skip(s));
        QN_TRY(qn_jscan_more(s, '}', &more));
    }
    return QN_OK;
}

/* Parse everything else: the text with null where the large members were. */
static qn_code parse_rest(file *f)
{
    qn_buf small;
    qn_code rc = QN_OK;
    const qn_str *first =
        f->vocab.p && (!f->merges.p || f->vocab.p < f->merges.p) ? &f->vocab : &f->merges;
    const qn_str *cut[2] = {first, first == &f->vocab ? &f->merges : &f->vocab};
    const char *from = f->text.p;
    qn_buf_init(&small, f->text.n + 16);
    for (size_t k = 0; k < 2; k++) {
        if (!cut[k]->p) continue;
        QN_TRY_OUT(qn_buf_append(&small, from, (size_t)(cut[k]->p - from), f->err));
        QN_TRY_OUT(qn_buf_append_z(&small, "null", f->err));
        from = cut[k]->p + cut[k]->n;
    }
    QN_TRY_OUT(qn_buf_append(&small, from, (size_t)(f->text.p + f->text.n - from), f->err));
    QN_TRY_OUT(
        qn_json_parse(&f->rest, qn_buf_text(&small), small.len, QN_TOKENIZER_TEXT_MAX, f->err));
out:
    qn_buf_fini(&small);
    return rc;
}

static qn_code read_vocab(qn_tokenizer *t, qn_str text, qn_err *err)
{
    qn_jscan s;
    qn_code rc = QN_OK;
    bool more = true;
    qn_jscan_init(&s, text, err);
    /* an entry takes at least ten bytes of JSON in real files: a fair first guess */
    QN_TRY_OUT(qn_vocab_reserve(&t->vocab, text.n / 16, text.n / 2, err));
    QN_TRY_OUT(qn_jscan_expect(&s, '{'));
    if (qn_jscan_peek(&s) == '}') goto out;
    while (more) {
        qn_str token;
        uint32_t id = 0;
        QN_TRY_OUT(qn_jscan_string(&s, &token));
        QN_TRY_OUT(qn_jscan_expect(&s, ':'));
        QN_TRY_OUT(qn_jscan_u32(&s, &id));
        QN_TRY_OUT(qn_vocab_put(&t->vocab, id, token, QN_TOKEN_NORMAL, false, err));
        QN_TRY_OUT(qn_jscan_more(&s, '}', &more));
    }
out:
    qn_jscan_fini(&s);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "model.vocab");
}

/* One merge: ["left", "right"] or "left right". */
static qn_code read_merge(qn_tokenizer *t, qn_jscan *s, qn_buf *scratch)
{
    qn_str left, right;
    if (qn_jscan_peek(s) == '[') {
        QN_TRY(qn_jscan_expect(s, '['));
        QN_TRY(qn_jscan_string(s, &left));
        QN_TRY(qn_jscan_expect(s, ','));
        QN_TRY(qn_jscan_string(s, &right));
        QN_TRY(qn_jscan_expect(s, ']'));
    } else {
        qn_str both;
        QN_TRY(qn_jscan_string(s, &both));
        const char *space = both.n ? memchr(both.p, ' ', both.n) : NULL;
        if (!space || memchr(space + 1, ' ', (size_t)(both.p + both.n - space - 1)))
            return qn_fail(s->err, QN_E_FORMAT, "merge %u: \"%.*s\" is no pair", t->merges.n,
                           QN_STR_ARG(both));
        left = (qn_str){both.p, (size_t)(space - both.p)};
        right = (qn_str){space + 1, both.n - left.n - 1};
    }
    return qn_merge_texts(t, left, right, scratch, s->err);
}

static qn_code read_merges(qn_tokenizer *t, qn_str text, qn_err *err)
{
    qn_jscan s;
    qn_buf scratch;
    qn_code rc = QN_OK;
    bool more = true;
    qn_jscan_init(&s, text, err);
    qn_buf_init(&scratch, 2 * QN_TOK_TOKEN_MAX);
    QN_TRY_OUT(qn_merges_reserve(&t->merges, text.n / 32, err));
    QN_TRY_OUT(qn_jscan_expect(&s, '['));
    if (qn_jscan_peek(&s) == ']') goto out;
    while (more) {
        QN_TRY_OUT(read_merge(t, &s, &scratch));
        QN_TRY_OUT(qn_jscan_more(&s, ']', &more));
    }
out:
    qn_jscan_fini(&s);
    qn_buf_fini(&scratch);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "model.merges");
}

/* --- the model -------------------------------------------------------------------------------- */

static qn_code empty_string(const qn_json *model, const char *key, qn_err *err)
{
    size_t n = 0;
    const qn_json *v = qn_json_get(model, key);
    const char *s = qn_json_str(v, &n);
    if (qn_json_type_of(v) == QN_JSON_NULL || (s && n == 0)) return QN_OK;
    return qn_fail(err, QN_E_UNSUPPORTED, "BPE with %s", key);
}

static qn_code read_model(qn_tokenizer *t, file *f)
{
    const qn_json *m = qn_json_get(f->rest, "model");
    size_t n = 0;
    const char *type = qn_json_str(qn_json_get(m, "type"), &n);
    if (type && strcmp(type, "BPE") != 0)
        return qn_fail(f->err, QN_E_UNSUPPORTED, "tokenizer model \"%s\"", type);
    QN_TRY(qn_json_only_keys(m, "model",
                             "type dropout unk_token continuing_subword_prefix end_of_word_suffix "
                             "fuse_unk byte_fallback ignore_merges vocab merges",
                             f->err));
    if (!f->vocab.p || !f->merges.p)
        return qn_fail(f->err, QN_E_FORMAT, "model has no %s", f->vocab.p ? "merges" : "vocab");
    if (qn_json_num(qn_json_get(m, "dropout"), 0.0) != 0.0)
        return qn_fail(f->err, QN_E_UNSUPPORTED, "BPE with dropout");
    QN_TRY(empty_string(m, "continuing_subword_prefix", f->err));
    QN_TRY(empty_string(m, "end_of_word_suffix", f->err));
    t->ignore_merges = qn_json_bool(qn_json_get(m, "ignore_merges"), false);
    t->byte_fallback = qn_json_bool(qn_json_get(m, "byte_fallback"), false);
    t->fuse_unk = qn_json_bool(qn_json_get(m, "fuse_unk"), false);
    QN_TRY(read_vocab(t, f->vocab, f->err));
    QN_TRY(read_merges(t, f->merges, f->err));
    const char *unk = qn_json_str(qn_json_get(m, "unk_token"), &n);
    if (!unk) return QN_OK;
    t->model_unk = t->unk = qn_vocab_find(&t->vocab, unk, n);
    return t->unk != QN_TOKEN_NONE
               ? QN_OK
               : qn_fail(f->err, QN_E_FORMAT, "unk_token \"%s\" is not in the vocabulary", unk);
}

/* --- added tokens ----------------------------------------------------------------------------- */

/* The id of an added token's text: the vocabulary's own where it has one (as the reference), else the
 * declared one, which must be free. */
static qn_code place_added(qn_tokenizer *t, qn_str text, int64_t declared, bool special,
                           uint32_t *id, qn_err *err)
{
    const qn_token_kind kind = special ? QN_TOKEN_CONTROL : QN_TOKEN_USER_DEFINED;
    *id = qn_vocab_find(&t->vocab, text.p, text.n);
    if (*id != QN_TOKEN_NONE) {
        t->vocab.kind[*id] = (uint8_t)(kind | (t->vocab.kind[*id] & QN_TOK_OUTSIDE));
        return QN_OK;
    }
    if (declared < 0 || declared >= UINT32_MAX)
        return qn_fail(err, QN_E_FORMAT, "added token \"%.*s\" has no id", QN_STR_ARG(text));
    *id = (uint32_t)declared;
    QN_TRY(qn_vocab_put(&t->vocab, *id, text, kind, false, err));
    t->vocab.kind[*id] |= QN_TOK_OUTSIDE;
    return QN_OK;
}

static qn_code add_normalized(qn_tokenizer *t, qn_str text, qn_added a, qn_err *err)
{
    qn_buf form;
    qn_code rc = QN_OK;
    qn_buf_init(&form, QN_TOK_TOKEN_MAX * 8);
    QN_TRY_OUT(qn_normalize_token(t, &form, text, err));
    const qn_str s = {qn_buf_text(&form), form.len};
    if (s.n == 0) {
        rc = qn_fail(err, QN_E_UNSUPPORTED, "added token \"%.*s\" normalizes to nothing",
                     QN_STR_ARG(text));
        goto out;
    }
    QN_TRY_OUT(qn_added_put(&t->normalized, s, a, err));
    if (!qn_str_eq(s, text)) QN_TRY_OUT(qn_added_put(&t->respelled, s, a, err));
out:
    qn_buf_fini(&form);
    return rc;
}

static qn_code read_added(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_str text;
    qn_added a = {0};
    QN_TRY(qn_json_only_keys(v, "added token",
                             "id content single_word lstrip rstrip normalized special", err));
    QN_TRY(qn_json_need_str(&text, v, "added token", "content", err));
    if (text.n == 0) return QN_OK; /* the reference passes over it too */
    a.special = qn_json_bool(qn_json_get(v, "special"), false);
    a.single_word = qn_json_bool(qn_json_get(v, "single_word"), false);
    a.lstrip = qn_json_bool(qn_json_get(v, "lstrip"), false);
    a.rstrip = qn_json_bool(qn_json_get(v, "rstrip"), false);
    QN_TRY(place_added(t, text, qn_json_int(qn_json_get(v, "id"), -1), a.special, &a.id, err));
    if (qn_json_bool(qn_json_get(v, "normalized"), true)) return add_normalized(t, text, a, err);
    return qn_added_put(&t->raw, text, a, err);
}

/* --- tokenizer_config.json -------------------------------------------------------------------- */

/* "bos_token": "<s>" or {"content": "<s>", ...}. */
static uint32_t named_token(const qn_tokenizer *t, const qn_json *config, const char *key)
{
    size_t n = 0;
    const qn_json *v = qn_json_get(config, key);
    if (qn_json_type_of(v) == QN_JSON_OBJECT) v = qn_json_get(v, "content");
    const char *s = qn_json_str(v, &n);
    return s ? qn_vocab_find(&t->vocab, s, n) : QN_TOKEN_NONE;
}

/* Puts `id` at one end of the fixed ids, or takes it away. */
static void set_fix(uint32_t *ids, size_t *n, bool front, uint32_t id, bool want)
{
    const size_t at = front ? 0 : *n - 1;
    const bool has = *n > 0 && ids[at] == id;
    if (id == QN_TOKEN_NONE || has == want || *n == QN_TOK_FIX_MAX) return;
    if (want) {
        if (front) memmove(ids + 1, ids, *n * sizeof *ids);
        ids[front ? 0 : *n] = id;
        ++*n;
    } else {
        --*n;
        if (front) memmove(ids, ids + 1, *n * sizeof *ids);
    }
}

static void read_config(qn_tokenizer *t, const qn_json *config)
{
    t->bos = named_token(t, config, "bos_token");
    t->eos = named_token(t, config, "eos_token");
    t->pad = named_token(t, config, "pad_token");
    const uint32_t unk = named_token(t, config, "unk_token");
    if (unk != QN_TOKEN_NONE) t->unk = unk;
    /* Only these classes of the reference rebuild their template from the two flags. */
    size_t n = 0;
    const char *class = qn_json_str(qn_json_get(config, "tokenizer_class"), &n);
    if (!class || (!strstr(class, "Llama") && !strstr(class, "Gemma"))) return;
    const qn_json *bos = qn_json_get(config, "add_bos_token");
    const qn_json *eos = qn_json_get(config, "add_eos_token");
    if (qn_json_type_of(bos) == QN_JSON_BOOL)
        set_fix(t->prefix, &t->n_prefix, true, t->bos, qn_json_bool(bos, false));
    if (qn_json_type_of(eos) == QN_JSON_BOOL)
        set_fix(t->suffix, &t->n_suffix, false, t->eos, qn_json_bool(eos, false));
}

/* Without a config: BOS is what the template puts in front; names tell the rest. */
static void guess_specials(qn_tokenizer *t)
{
    static const char ends[][20] = {"</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>"};
    if (t->n_prefix) t->bos = t->prefix[0];
    for (size_t k = 0; k < QN_LEN(ends) && t->eos == QN_TOKEN_NONE; k++)
        t->eos = qn_vocab_find(&t->vocab, ends[k], strlen(ends[k]));
    t->pad = qn_vocab_find(&t->vocab, "<pad>", 5);
}

static qn_code check_fixed(const qn_tokenizer *t, qn_err *err)
{
    for (size_t k = 0; k < t->n_prefix + t->n_suffix; k++) {
        const uint32_t id = k < t->n_prefix ? t->prefix[k] : t->suffix[k - t->n_prefix];
        if (qn_vocab_text(&t->vocab, id).n == 0)
            return qn_fail(err, QN_E_FORMAT, "post_processor adds id %u, which is no token", id);
    }
    return QN_OK;
}

static qn_code load(qn_tokenizer *t, file *f)
{
    qn_jscan s;
    qn_code rc = QN_OK;
    qn_jscan_init(&s, f->text, f->err);
    QN_TRY_OUT(find_members(f, &s, false));
    QN_TRY_OUT(parse_rest(f));
    QN_TRY_OUT(qn_json_only_keys(f->rest, "top level",
                                 "version truncation padding added_tokens normalizer pre_tokenizer "
                                 "post_processor decoder model",
                                 f->err));
    t->kind = QN_VOCAB_CHAR_BPE;
    QN_TRY_OUT(read_model(t, f));
    QN_TRY_OUT(qn_json_normalizer(t, qn_json_get(f->rest, "normalizer"), f->err));
    QN_TRY_OUT(qn_json_pre_tokenizer(t, qn_json_get(f->rest, "pre_tokenizer"), f->err));
    QN_TRY_OUT(qn_json_post_processor(t, qn_json_get(f->rest, "post_processor"), f->err));
    QN_TRY_OUT(qn_json_decoder(t, qn_json_get(f->rest, "decoder"), f->err));
    const qn_json *added = qn_json_get(f->rest, "added_tokens");
    for (size_t i = 0; i < qn_json_len(added); i++)
        QN_TRY_OUT(read_added(t, qn_json_at(added, i), f->err));
    QN_TRY_OUT(check_fixed(t, f->err));
    if (f->config)
        read_config(t, f->config);
    else
        guess_specials(t);
    QN_TRY_OUT(qn_tokenizer_finish(t, f->err));
out:
    qn_jscan_fini(&s);
    return rc;
}

qn_code qn_tokenizer_from_json(qn_tokenizer **out, const char *text, size_t n, const char *config,
                               size_t n_config, qn_err *err)
{
    qn_code rc = QN_OK;
    file f = {.text = {text, n}, .err = err};
    size_t bad = 0;
    *out = NULL;
    if (n > QN_TOKENIZER_TEXT_MAX)
        return qn_fail(err, QN_E_LIMIT, "tokenizer.json of %zu bytes, at most %d", n,
                       QN_TOKENIZER_TEXT_MAX);
    if (!qn_utf8_valid(text, n, &bad))
        return qn_fail(err, QN_E_FORMAT, "tokenizer.json: byte %zu is no UTF-8", bad);
    qn_tokenizer *t = qn_tokenizer_new_empty();
    if (!t) return qn_fail(err, QN_E_NOMEM, "tokenizer");
    if (config) {
        rc = qn_json_parse(&f.config, config, n_config, QN_TOKENIZER_TEXT_MAX, err);
        if (rc != QN_OK) {
            (void)qn_wrap(err, rc, "tokenizer_config.json");
            goto out;
        }
    }
    rc = load(t, &f);
    if (rc != QN_OK) {
        (void)qn_wrap(err, rc, "tokenizer.json");
        goto out;
    }
    t->digest = qn_hash64(text, n, qn_hash64(config, config ? n_config : 0, 1));
    *out = t;
    t = NULL;
out:
    qn_json_free(f.rest);
    qn_json_free(f.config);
    qn_tokenizer_free(t);
    return rc;
}
