/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.c - spellings in one blob, ids in an open hash, merges in another.
 *
 * base/map would keep each key twice and 24 bytes beside it; with 250,000 spellings and 500,000
 * merges to insert at every start, flat arrays of 4 and 16 bytes a slot load several times faster.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "text/tokenizer_int.h"

enum { FAR = 65536, ENTRIES_MAX = 1 << 24 };

/* Keys come from a file that also says what they mean: a seed would hide nothing. */
static uint32_t text_hash(const char *text, size_t n)
{
    return (uint32_t)(qn_maphash(text, n, 0x51A7) >> 32);
}

static uint32_t pow2_above(size_t n)
{
    uint32_t p = 16;
    while (p < n) p *= 2;
    return p;
}

static qn_code grow_hash(qn_vocab *v, size_t n, qn_err *err)
{
    if (v->slots && n + n / 2 < v->mask) return QN_OK;
    const uint32_t want = pow2_above(n + n / 2 + 2);
    uint32_t *slots = qn_calloc(want, sizeof *slots);
    if (!slots) return qn_fail(err, QN_E_NOMEM, "vocabulary of %zu", n);
    for (uint32_t k = 0; v->slots && k <= v->mask; k++) {
        if (v->slots[k] == 0) continue;
        const qn_str s = qn_vocab_text(v, v->slots[k] - 1);
        uint32_t at = text_hash(s.p, s.n) & (want - 1);
        while (slots[at] != 0) at = (at + 1) & (want - 1);
        slots[at] = v->slots[k];
    }
    qn_free(v->slots);
    v->slots = slots;
    v->mask = want - 1;
    return QN_OK;
}

static qn_code grow_ids(qn_vocab *v, size_t n, qn_err *err)
{
    if (n <= v->cap) return QN_OK;
    const size_t cap = n + n / 2;
    uint32_t *begin = qn_realloc(v->begin, cap * sizeof *begin);
    if (begin) v->begin = begin;
    uint32_t *len = begin ? qn_realloc(v->len, cap * sizeof *len) : NULL;
    if (len) v->len = len;
    uint8_t *kind = len ? qn_realloc(v->kind, cap) : NULL;
    if (!kind) return qn_fail(err, QN_E_NOMEM, "vocabulary of %zu", n);
    v->kind = kind;
    memset(v->len + v->cap, 0, (cap - v->cap) * sizeof *len);
    memset(v->kind + v->cap, QN_TOKEN_UNUSED, cap - v->cap);
    v->cap = (uint32_t)cap;
    return QN_OK;
}

qn_code qn_vocab_reserve(qn_vocab *v, size_t n, size_t bytes, qn_err *err)
{
    if (v->blob.max == 0) qn_buf_init(&v->blob, UINT32_MAX);
    if (n > ENTRIES_MAX)
        return qn_fail(err, QN_E_LIMIT, "vocabulary of %zu tokens, at most %d", n, ENTRIES_MAX);
    QN_TRY(grow_ids(v, n, err));
    QN_TRY(grow_hash(v, n, err));
    return qn_buf_reserve(&v->blob, bytes + 1, err);
}

uint32_t qn_vocab_find(const qn_vocab *v, const char *text, size_t n)
{
    if (!v->slots || n == 0 || n > v->longest) return QN_TOKEN_NONE;
    for (uint32_t at = text_hash(text, n) & v->mask; v->slots[at] != 0; at = (at + 1) & v->mask) {
        const uint32_t id = v->slots[at] - 1;
        if (v->len[id] == n && memcmp(v->blob.data + v->begin[id], text, n) == 0) return id;
    }
    return QN_TOKEN_NONE;
}

/* Room for one more, and the claims that a file may get wrong. */
static qn_code admit(qn_vocab *v, uint32_t id, qn_str text, qn_err *err)
{
    if (v->blob.max == 0) qn_buf_init(&v->blob, UINT32_MAX);
    if (id >= ENTRIES_MAX || (size_t)id > (size_t)v->n_set * 4 + v->cap + FAR)
        return qn_fail(err, QN_E_LIMIT, "token id %u: too far above a vocabulary of %u", id,
                       v->n_set);
    if (text.n > QN_TOK_TOKEN_MAX)
        return qn_fail(err, QN_E_LIMIT, "token %u has %zu bytes, at most %d", id, text.n,
                       QN_TOK_TOKEN_MAX);
    if (id < v->n_ids && v->len[id] != 0)
        return qn_fail(err, QN_E_FORMAT, "token id %u is given twice, to \"%.*s\" and \"%.*s\"", id,
                       QN_STR_ARG(qn_vocab_text(v, id)), QN_STR_ARG(text));
    QN_TRY(grow_ids(v, (size_t)id + 1, err));
    return grow_hash(v, (size_t)v->n_set + 1, err);
}

qn_code qn_vocab_put(qn_vocab *v, uint32_t id, qn_str text, qn_token_kind kind, bool replace,
                     qn_err *err)
{
    QN_TRY(admit(v, id, text, err));
    uint32_t at = 0;
    if (text.n != 0) {
        at = text_hash(text.p, text.n) & v->mask;
        for (; v->slots[at] != 0; at = (at + 1) & v->mask) {
            const qn_str s = qn_vocab_text(v, v->slots[at] - 1);
            if (!qn_str_eq(s, text)) continue;
            if (!replace)
                return qn_fail(err, QN_E_FORMAT, "token \"%.*s\" is given twice, as %u and %u",
                               QN_STR_ARG(text), v->slots[at] - 1, id);
            break;
        }
    }
    const size_t begin = v->blob.len;
    QN_TRY(qn_buf_append(&v->blob, text.p, text.n, err));
    if (text.n != 0) {
        v->n_set += v->slots[at] == 0;
        v->slots[at] = id + 1;
    }
    v->begin[id] = (uint32_t)begin;
    v->len[id] = (uint32_t)text.n;
    v->kind[id] = (uint8_t)kind;
    if (id >= v->n_ids) v->n_ids = id + 1;
    if (text.n > v->longest) v->longest = (uint32_t)text.n;
    return QN_OK;
}

void qn_vocab_fini(qn_vocab *v)
{
    qn_buf_fini(&v->blob);
    qn_free(v->begin);
    qn_free(v->len);
    qn_free(v->kind);
    qn_free(v->slots);
    *v = (qn_vocab){0};
}

static uint32_t pair_hash(uint32_t left, uint32_t right)
{
    return (uint32_t)(qn_maphash_u64((uint64_t)left << 32 | right, 0) >> 32);
}

qn_code qn_merges_reserve(qn_merges *m, size_t n, qn_err *err)
{
    if (n > ENTRIES_MAX) return qn_fail(err, QN_E_LIMIT, "%zu merges, at most %d", n, ENTRIES_MAX);
    if (m->slots && n + n / 2 < m->mask) return QN_OK;
    const uint32_t want = pow2_above(n + n / 2 + 2);
    qn_merge *slots = qn_alloc(want * sizeof *slots);
    if (!slots) return qn_fail(err, QN_E_NOMEM, "%zu merges", n);
    memset(slots, 0xFF, want * sizeof *slots); /* every `to` is QN_TOKEN_NONE */
    for (uint32_t k = 0; m->slots && k <= m->mask; k++) {
        if (m->slots[k].to == QN_TOKEN_NONE) continue;
        uint32_t at = pair_hash(m->slots[k].left, m->slots[k].right) & (want - 1);
        while (slots[at].to != QN_TOKEN_NONE) at = (at + 1) & (want - 1);
        slots[at] = m->slots[k];
    }
    qn_free(m->slots);
    m->slots = slots;
    m->mask = want - 1;
    return QN_OK;
}

qn_code qn_merges_put(qn_merges *m, uint32_t left, uint32_t right, uint32_t to, qn_err *err)
{
    QN_TRY(qn_merges_reserve(m, (size_t)m->n + 1, err));
    uint32_t at = pair_hash(left, right) & m->mask;
    while (m->slots[at].to != QN_TOKEN_NONE &&
           (m->slots[at].left != left || m->slots[at].right != right))
        at = (at + 1) & m->mask;
    m->slots[at] = (qn_merge){left, right, m->n++, to};
    return QN_OK;
}

const qn_merge *qn_merges_find(const qn_merges *m, uint32_t left, uint32_t right)
{
    if (!m->slots) return NULL;
    for (uint32_t at = pair_hash(left, right) & m->mask; m->slots[at].to != QN_TOKEN_NONE;
         at = (at + 1) & m->mask)
        if (m->slots[at].left == left && m->slots[at].right == right) return &m->slots[at];
    return NULL;
}

void qn_merges_fini(qn_merges *m)
{
    qn_free(m->slots);
    *m = (qn_merges){0};
}

qn_code qn_merge_texts(qn_tokenizer *t, qn_str left, qn_str right, qn_buf *scratch, qn_err *err)
{
    const uint32_t a = qn_vocab_find(&t->vocab, left.p, left.n);
    const uint32_t b = qn_vocab_find(&t->vocab, right.p, right.n);
    qn_buf_truncate(scratch, 0);
    QN_TRY(qn_buf_append(scratch, left.p, left.n, err));
    QN_TRY(qn_buf_append(scratch, right.p, right.n, err));
    const uint32_t to = qn_vocab_find(&t->vocab, qn_buf_text(scratch), scratch->len);
    if (a == QN_TOKEN_NONE || b == QN_TOKEN_NONE || to == QN_TOKEN_NONE)
        return qn_fail(err, QN_E_FORMAT, "merge %u: \"%.*s\" + \"%.*s\": %s is no token",
                       t->merges.n, QN_STR_ARG(left), QN_STR_ARG(right),
                       a == QN_TOKEN_NONE   ? "the left part"
                       : b == QN_TOKEN_NONE ? "the right part"
                                            : "the whole");
    return qn_merges_put(&t->merges, a, b, to, err);
}
