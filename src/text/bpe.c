/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.c - byte-pair merging of one span: best pair first, leftmost among equals.
 *
 * Symbols form a linked list over an array; a binary heap holds every mergeable neighbour pair by
 * (rank, position). A popped pair may be stale (one side was merged meanwhile); it is known by looking
 * the pair up again. Each merge pushes at most two pairs, so a span of n characters takes O(n log n)
 * whatever it looks like.
 *
 * Two ways to value a pair: by the rank of the merge (id, id), or, for SentencePiece vocabularies, by
 * the score of the token that the two spell together.
 *
 * Source: Sennrich, Haddow and Birch 2016, arXiv 1508.07909; Kudo and Richardson 2018, 1808.06226.
 */
#include "base/alloc.h"
#include "text/tokenizer_int.h"

typedef struct qn_symbol {
    uint32_t id;         /* QN_TOKEN_NONE: a character without a token (scores only) */
    uint32_t prev, next; /* QN_TOKEN_NONE at the ends */
    uint32_t begin, len; /* bytes of the span; len 0: merged into its left neighbour */
} symbol;

typedef struct qn_heap_item {
    uint64_t key; /* rank above position: the smallest goes first */
    uint32_t to;
} item;

typedef struct word {
    qn_tok_work *w;
    const qn_tokenizer *t;
    const char *text;
    size_t n_symbols, n_heap;
    uint32_t unk_len; /* bytes of an unknown token not yet added, 0 if none */
} word;

static qn_code add(word *x, uint32_t id, size_t begin, size_t len)
{
    qn_tok_work *w = x->w;
    if (x->n_symbols == w->cap_symbols) {
        const size_t cap = w->cap_symbols * 2 + 256;
        symbol *s = qn_realloc(w->symbols, cap * sizeof *s);
        if (!s) return qn_fail(w->err, QN_E_NOMEM, "encoding: %zu symbols", cap);
        w->symbols = s;
        w->cap_symbols = cap;
    }
    const uint32_t at = (uint32_t)x->n_symbols++;
    w->symbols[at] =
        (symbol){id, at ? at - 1 : QN_TOKEN_NONE, QN_TOKEN_NONE, (uint32_t)begin, (uint32_t)len};
    if (at) w->symbols[at - 1].next = at;
    return QN_OK;
}

static qn_code push(word *x, uint32_t rank, uint32_t pos, uint32_t to)
{
    qn_tok_work *w = x->w;
    if (x->n_heap == w->cap_heap) {
        const size_t cap = w->cap_heap * 2 + 256;
        item *h = qn_realloc(w->heap, cap * sizeof *h);
        if (!h) return qn_fail(w->err, QN_E_NOMEM, "encoding: %zu pairs", cap);
        w->heap = h;
        w->cap_heap = cap;
    }
    const item new = {(uint64_t)rank << 32 | pos, to};
    size_t i = x->n_heap++;
    while (i > 0 && new.key < w->heap[(i - 1) / 2].key) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = new;
    return QN_OK;
}

static item pop(word *x)
{
    item *h = x->w->heap;
    const item top = h[0], last = h[--x->n_heap];
    size_t i = 0;
    for (size_t child = 1; child < x->n_heap; child = 2 * i + 1) {
        if (child + 1 < x->n_heap && h[child + 1].key < h[child].key) child++;
        if (last.key <= h[child].key) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = last;
    return top;
}

/* A float's order as an unsigned's, highest score first; -0 and 0 are one score. */
static uint32_t score_rank(float score)
{
    uint32_t bits = 0;
    score = -(score + 0.0f);
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* What the symbols at `left` and its successor would become; false when they do not merge. */
static bool value(const word *x, const symbol *left, uint32_t *rank, uint32_t *to)
{
    const symbol *right = &x->w->symbols[left->next];
    if (x->t->scores) {
        *to = qn_model_find(&x->t->vocab, x->text + left->begin, (size_t)left->len + right->len);
        if (*to == QN_TOKEN_NONE) return false;
        *rank = score_rank(x->t->scores[*to]);
        return true;
    }
    const qn_merge *m = qn_merges_find(&x->t->merges, left->id, right->id);
    if (!m) return false;
    *rank = m->rank;
    *to = m->to;
    return true;
}

static qn_code push_pair(word *x, uint32_t pos)
{
    const symbol *left = &x->w->symbols[pos];
    uint32_t rank = 0, to = 0;
    if (left->next == QN_TOKEN_NONE || !value(x, left, &rank, &to)) return QN_OK;
    return push(x, rank, pos, to);
}

static qn_code merge_all(word *x)
{
    symbol *s = x->w->symbols;
    x->n_heap = 0;
    for (uint32_t i = 0; i + 1 < x->n_symbols; i++) QN_TRY(push_pair(x, i));
    while (x->n_heap > 0) {
        const item top = pop(x);
        const uint32_t pos = (uint32_t)top.key;
        symbol *left = &s[pos];
        uint32_t rank = 0, to = 0;
        if (left->len == 0 || left->next == QN_TOKEN_NONE) continue;
        if (!value(x, left, &rank, &to) || to != top.to) continue; /* stale */
        symbol *right = &s[left->next];
        left->id = to;
        left->len += right->len;
        left->next = right->next;
        right->len = 0;
        if (left->next != QN_TOKEN_NONE) s[left->next].prev = pos;
        if (left->prev != QN_TOKEN_NONE) QN_TRY(push_pair(x, left->prev));
        QN_TRY(push_pair(x, pos));
    }
    return QN_OK;
}

/* A character that is no token: its bytes' tokens, else the unknown token, fused or not, else nothing
 * (as the reference). */
static qn_code add_unknown(word *x, const char *c, size_t n, size_t begin)
{
    const qn_tokenizer *t = x->t;
    bool bytes = t->byte_fallback;
    for (size_t k = 0; k < n && bytes; k++)
        bytes = t->byte_id[(unsigned char)c[k]] != QN_TOKEN_NONE;
    if (bytes) {
        for (size_t k = 0; k < n; k++)
            QN_TRY(add(x, t->byte_id[(unsigned char)c[k]], begin + k, 1));
        return QN_OK;
    }
    if (t->model_unk == QN_TOKEN_NONE) return QN_OK;
    if (x->unk_len && !t->fuse_unk) {
        QN_TRY(add(x, t->model_unk, 0, x->unk_len));
        x->unk_len = 0;
    }
    x->unk_len += (uint32_t)n;
    return QN_OK;
}

static qn_code add_known(word *x, uint32_t id, size_t begin, size_t len)
{
    if (x->unk_len) {
        QN_TRY(add(x, x->t->model_unk, 0, x->unk_len));
        x->unk_len = 0;
    }
    return add(x, id, begin, len);
}

static qn_code split_bytes(word *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)x->text[i];
        if (x->t->byte_id[b] != QN_TOKEN_NONE) {
            QN_TRY(add_known(x, x->t->byte_id[b], i, 1));
        } else {
            char letter[2];
            QN_TRY(add_unknown(x, letter, qn_byte_letter(letter, b), i));
        }
    }
    return QN_OK;
}

static qn_code split_chars(word *x, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        const size_t len = qn_utf8_step(x->text + i, n - i, &c);
        const uint32_t id =
            c < 128 ? x->t->ascii_id[c] : qn_model_find(&x->t->vocab, x->text + i, len);
        if (x->t->scores) /* an unknown character may still be part of a longer token */
            QN_TRY(add(x, id, i, len));
        else
            QN_TRY(id != QN_TOKEN_NONE ? add_known(x, id, i, len)
                                       : add_unknown(x, x->text + i, len, i));
        i += len;
    }
    return QN_OK;
}

static qn_code emit(word *x, uint32_t id)
{
    return qn_ids_push(x->w->ids, id) ? QN_OK : qn_fail(x->w->err, QN_E_NOMEM, "token ids");
}

static qn_code emit_bytes(word *x, const symbol *s)
{
    for (uint32_t k = 0; k < s->len; k++) {
        const uint32_t id = x->t->byte_id[(unsigned char)x->text[s->begin + k]];
        if (id == QN_TOKEN_NONE)
            return x->t->model_unk == QN_TOKEN_NONE ? QN_OK : emit(x, x->t->model_unk);
        QN_TRY(emit(x, id));
    }
    return QN_OK;
}

/* The token that is the whole span, if the model asks for that before any merging. */
static uint32_t whole(const word *x, size_t n)
{
    char letters[512];
    if (x->t->kind != QN_VOCAB_BYTE_BPE) return qn_model_find(&x->t->vocab, x->text, n);
    if (n > x->t->vocab.longest || n > sizeof letters / 2) return QN_TOKEN_NONE;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) len += qn_byte_letter(letters + len, (uint8_t)x->text[i]);
    return qn_model_find(&x->t->vocab, letters, len);
}

qn_code qn_bpe(qn_tok_work *w, const char *text, size_t n)
{
    word x = {.w = w, .t = w->t, .text = text};
    if (w->t->ignore_merges) {
        const uint32_t id = whole(&x, n);
        if (id != QN_TOKEN_NONE) return emit(&x, id);
    }
    QN_TRY(w->t->kind == QN_VOCAB_BYTE_BPE ? split_bytes(&x, n) : split_chars(&x, n));
    if (x.unk_len) QN_TRY(add(&x, w->t->model_unk, 0, x.unk_len));
    QN_TRY(merge_all(&x));
    for (uint32_t i = 0; i < x.n_symbols; i++) {
        const symbol *s = &w->symbols[i];
        if (s->len == 0) continue;
        QN_TRY(s->id != QN_TOKEN_NONE ? emit(&x, s->id) : emit_bytes(&x, s));
    }
    return QN_OK;
}
