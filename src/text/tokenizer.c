/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c - encode from end to end, and what can be asked of a vocabulary. */
#include "text/tokenizer.h"

#include "base/alloc.h"
#include "text/tokenizer_int.h"

#include <stdlib.h>

void qn_ids_fini(qn_ids *ids)
{
    qn_free(ids->id);
    *ids = (qn_ids){0};
}

bool qn_ids_push(qn_ids *ids, uint32_t id)
{
    if (ids->n == ids->cap) {
        const size_t cap = ids->cap * 2 + 64;
        uint32_t *p = qn_realloc(ids->id, cap * sizeof *p);
        if (!p) return false;
        ids->id = p;
        ids->cap = cap;
    }
    ids->id[ids->n++] = id;
    return true;
}

size_t qn_byte_letter(char out[2], uint8_t b)
{
    uint32_t c = b; /* printable Latin-1 stands for itself, the rest counts on from U+0100 */
    if (b <= 0x20)
        c = 0x100u + b;
    else if (b >= 0x7F && b <= 0xA0)
        c = 0x121u + b - 0x7Fu;
    else if (b == 0xAD)
        c = 0x143;
    return qn_utf8_encode(out, c);
}

int qn_letter_byte(uint32_t c)
{
    if ((c > 0x20 && c < 0x7F) || (c > 0xA0 && c < 0x100 && c != 0xAD)) return (int)c;
    if (c >= 0x100 && c <= 0x120) return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

qn_tokenizer *qn_tokenizer_new_empty(void)
{
    qn_tokenizer *t = qn_zalloc(sizeof *t);
    if (!t) return NULL;
    t->bos = t->eos = t->unk = t->pad = t->model_unk = QN_TOKEN_NONE;
    return t;
}

void qn_tokenizer_free(qn_tokenizer *t)
{
    if (!t) return;
    qn_vocab_fini(&t->vocab);
    qn_merges_fini(&t->merges);
    qn_free(t->scores);
    qn_added_fini(&t->raw);
    qn_added_fini(&t->normalized);
    qn_added_fini(&t->respelled);
    qn_rules_fini(t);
    qn_plain_fini(&t->plain);
    qn_free(t);
}

void qn_rules_fini(qn_tokenizer *t)
{
    for (size_t k = 0; k < t->n_norm; k++) {
        qn_buf_fini(&t->norm[k].pattern);
        qn_buf_fini(&t->norm[k].content);
        qn_regex_free(t->norm[k].re);
    }
    for (size_t k = 0; k < t->n_pre; k++) {
        qn_buf_fini(&t->pre[k].pattern);
        qn_regex_free(t->pre[k].re);
    }
    for (size_t k = 0; k < t->decoder.n_replace; k++) {
        qn_buf_fini(&t->decoder.from[k]);
        qn_buf_fini(&t->decoder.to[k]);
    }
}

void qn_tokenizer_add_end(qn_tokenizer *t, uint32_t id)
{
    size_t at = t->n_ends;
    if (id == QN_TOKEN_NONE || t->n_ends == QN_TOK_ENDS_MAX) return;
    for (size_t k = 0; k < t->n_ends; k++)
        if (t->ends[k] == id) return;
    for (; at > 0 && t->ends[at - 1] > id; at--) t->ends[at] = t->ends[at - 1];
    t->ends[at] = id;
    t->n_ends++;
}

/* Special tokens by which the chat formats in use end a turn or a text. */
static void find_ends(qn_tokenizer *t)
{
    static const char names[][32] = {
        "<|eot_id|>",    "<|eom_id|>",
        "<|im_end|>",    "<|end|>",
        "<|return|>",    "<|call|>",
        "<end_of_turn>", "<turn|>",
        "<|eot|>",       "<|end_of_text|>",
        "<|endoftext|>", "<|end_of_turn|>",
        "<|endofturn|>", "<|END_OF_TURN_TOKEN|>",
        "<EOT>",         "[EOT]",
    };
    qn_tokenizer_add_end(t, t->eos);
    for (size_t k = 0; k < QN_LEN(names); k++) {
        const uint32_t id = qn_vocab_find(&t->vocab, names[k], strlen(names[k]));
        if (id != QN_TOKEN_NONE && qn_token_kind_of(t, id) == QN_TOKEN_CONTROL)
            qn_tokenizer_add_end(t, id);
    }
}

static uint32_t byte_token(const qn_tokenizer *t, uint8_t b)
{
    static const char hex[] = "0123456789ABCDEF";
    char letter[2];
    if (t->kind == QN_VOCAB_BYTE_BPE)
        return qn_model_find(&t->vocab, letter, qn_byte_letter(letter, b));
    const char name[] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
    return qn_model_find(&t->vocab, name, sizeof name);
}

static int by_id(const void *a, const void *b)
{
    const qn_added *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

qn_code qn_tokenizer_finish(qn_tokenizer *t, qn_err *err)
{
    size_t known = 0;
    if (t->vocab.n_ids == 0) return qn_fail(err, QN_E_FORMAT, "the vocabulary is empty");
    for (unsigned b = 0; b < 256; b++) {
        t->byte_id[b] = byte_token(t, (uint8_t)b);
        known += t->byte_id[b] != QN_TOKEN_NONE;
        const char c = (char)b;
        if (b < 128) t->ascii_id[b] = qn_model_find(&t->vocab, &c, 1);
    }
    if (t->kind == QN_VOCAB_BYTE_BPE && t->byte_fallback)
        return qn_fail(err, QN_E_UNSUPPORTED, "byte_fallback in a byte-level vocabulary");
    if (t->kind == QN_VOCAB_SPM_BPE && known != 256 && t->model_unk == QN_TOKEN_NONE)
        return qn_fail(err, QN_E_FORMAT,
                       "%zu of 256 byte tokens and no unknown token: some texts would have no ids",
                       known);
    QN_TRY(qn_added_seal(&t->raw, err));
    QN_TRY(qn_added_seal(&t->normalized, err));
    if (t->respelled.n) qsort(t->respelled.item, t->respelled.n, sizeof *t->respelled.item, by_id);
    find_ends(t);
    return qn_plain_build(t, err);
}

void qn_tok_work_fini(qn_tok_work *w)
{
    qn_regex_scan_free(w->scan);
    qn_buf_fini(&w->text[0]);
    qn_buf_fini(&w->text[1]);
    qn_buf_fini(&w->swap);
    qn_free(w->spans.at);
    qn_free(w->next.at);
    qn_free(w->symbols);
    qn_free(w->heap);
}

static qn_code encode_plain(qn_tok_work *w, qn_str text, bool first)
{
    if (text.n == 0) return QN_OK;
    QN_TRY(qn_pretokenize(w, &text, first));
    for (size_t k = 0; k < w->spans.n; k++)
        QN_TRY(qn_bpe(w, text.p + w->spans.at[k].begin, w->spans.at[k].end - w->spans.at[k].begin));
    return QN_OK;
}

static qn_code emit(qn_tok_work *w, uint32_t id)
{
    return qn_ids_push(w->ids, id) ? QN_OK : qn_fail(w->err, QN_E_NOMEM, "token ids");
}

/* The text between two tokens that were matched as written. */
static qn_code encode_fragment(qn_tok_work *w, qn_str text, bool first)
{
    qn_added_match m;
    size_t at = 0, done = 0;
    QN_TRY(qn_normalize(w, &text));
    while (qn_added_next(&w->t->normalized, text.p, text.n, &at, done, w->parse_special, &m)) {
        if (done < m.begin)
            QN_TRY(encode_plain(w, qn_str_slice(text, done, m.begin), first && done == 0));
        QN_TRY(emit(w, m.id));
        done = m.end;
    }
    return encode_plain(w, qn_str_slice(text, done, text.n), first && done == 0);
}

static qn_code encode(qn_tok_work *w, qn_str text)
{
    qn_added_match m;
    size_t at = 0, done = 0;
    while (qn_added_next(&w->t->raw, text.p, text.n, &at, done, w->parse_special, &m)) {
        if (done < m.begin)
            QN_TRY(encode_fragment(w, qn_str_slice(text, done, m.begin), done == 0));
        QN_TRY(emit(w, m.id));
        done = m.end;
    }
    return done < text.n ? encode_fragment(w, qn_str_slice(text, done, text.n), done == 0) : QN_OK;
}

/* A copy with U+FFFD for each ill-formed maximal subpart. */
static qn_code mend_utf8(qn_buf *out, qn_str text, qn_err *err)
{
    QN_TRY(qn_buf_reserve(out, text.n, err));
    for (size_t i = 0; i < text.n;) {
        size_t bad = 0;
        const bool rest_ok = qn_utf8_valid(text.p + i, text.n - i, &bad);
        const size_t good = rest_ok ? text.n - i : bad;
        QN_TRY(qn_buf_append(out, text.p + i, good, err));
        i += good;
        if (rest_ok) break;
        uint32_t c = 0;
        i += qn_utf8_step(text.p + i, text.n - i, &c);
        QN_TRY(qn_buf_append(out, "\xEF\xBF\xBD", 3, err));
    }
    return QN_OK;
}

qn_code qn_tokenizer_encode(const qn_tokenizer *t, qn_ids *ids, const char *text, size_t n,
                            qn_encode_options opt, qn_err *err)
{
    qn_code rc = QN_OK;
    const size_t before = ids->n;
    qn_str in = {n ? text : "", n};
    qn_buf mended;
    qn_tok_work w = {.t = t, .ids = ids, .err = err, .parse_special = opt.parse_special};
    const size_t most = (size_t)QN_TOKENIZER_TEXT_MAX * 4; /* a rewriting rule may quadruple */
    qn_buf_init(&mended, most);
    qn_buf_init(&w.text[0], most);
    qn_buf_init(&w.text[1], most);
    qn_buf_init(&w.swap, most);
    if (n > QN_TOKENIZER_TEXT_MAX)
        return qn_fail(err, QN_E_LIMIT, "text of %zu bytes, at most %d", n, QN_TOKENIZER_TEXT_MAX);
    if (!qn_utf8_valid(in.p, in.n, NULL)) {
        QN_TRY_OUT(mend_utf8(&mended, in, err));
        in = (qn_str){qn_buf_text(&mended), mended.len};
    }
    for (size_t k = 0; opt.add_special && k < t->n_prefix; k++) QN_TRY_OUT(emit(&w, t->prefix[k]));
    QN_TRY_OUT(encode(&w, in));
    for (size_t k = 0; opt.add_special && k < t->n_suffix; k++) QN_TRY_OUT(emit(&w, t->suffix[k]));
out:
    qn_tok_work_fini(&w);
    qn_buf_fini(&mended);
    if (rc != QN_OK) ids->n = before;
    return rc;
}

uint32_t qn_tokenizer_size(const qn_tokenizer *t) { return t->vocab.n_ids; }
qn_vocab_kind qn_tokenizer_kind(const qn_tokenizer *t) { return t->kind; }
qn_str qn_token_text(const qn_tokenizer *t, uint32_t id) { return qn_vocab_text(&t->vocab, id); }

qn_token_kind qn_token_kind_of(const qn_tokenizer *t, uint32_t id)
{
    if (id >= t->vocab.n_ids) return QN_TOKEN_UNUSED;
    return (qn_token_kind)(t->vocab.kind[id] & ~(QN_TOK_OUTSIDE | QN_TOK_IS_BYTE));
}

uint32_t qn_token_id(const qn_tokenizer *t, const char *text, size_t n)
{
    return qn_vocab_find(&t->vocab, text, n);
}

uint32_t qn_tokenizer_bos(const qn_tokenizer *t) { return t->bos; }
uint32_t qn_tokenizer_eos(const qn_tokenizer *t) { return t->eos; }
uint32_t qn_tokenizer_unk(const qn_tokenizer *t) { return t->unk; }
uint32_t qn_tokenizer_pad(const qn_tokenizer *t) { return t->pad; }

const uint32_t *qn_tokenizer_ends(const qn_tokenizer *t, size_t *n)
{
    *n = t->n_ends;
    return t->ends;
}

bool qn_tokenizer_adds_bos(const qn_tokenizer *t)
{
    return t->n_prefix > 0 && t->bos != QN_TOKEN_NONE && t->prefix[0] == t->bos;
}

uint64_t qn_tokenizer_digest(const qn_tokenizer *t) { return t->digest; }
