/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - layout and check of step blocks. One table of arrays serves both. */
#include "wire/step.h"

#include <string.h>

typedef struct array {
    const char *name;
    size_t offset_of; /* of its at_ field in qn_step */
    size_t size;      /* bytes of one element */
    uint32_t count;   /* elements at full capacity */
} array;

enum { N_ARRAYS = 15, ALIGN = 64 };

/* Fills the array list for `caps`; false when a count overflows. */
static bool list(array out[N_ARRAYS], const qn_step_caps *c)
{
    uint32_t pos = 0, off = 0, table = 0;
    if (__builtin_mul_overflow(c->rows, 3u, &pos) ||
        __builtin_mul_overflow(c->groups, c->seqs, &off) ||
        __builtin_mul_overflow(c->groups, c->table, &table))
        return false;
    const array a[N_ARRAYS] = {
        {"source", offsetof(qn_step, at_source), 4, c->rows},
        {"value", offsetof(qn_step, at_value), 4, c->rows},
        {"pos", offsetof(qn_step, at_pos), 4, pos},
        {"kv_pos", offsetof(qn_step, at_kv_pos), 4, c->rows},
        {"seq", offsetof(qn_step, at_seq), 4, c->rows},
        {"keys", offsetof(qn_step, at_keys), sizeof(qn_keys), c->rows},
        {"parent", offsetof(qn_step, at_parent), 4, c->rows},
        {"adapter", offsetof(qn_step, at_adapter), 4, c->rows},
        {"logit_row", offsetof(qn_step, at_logit_row), 4, c->logits},
        {"sampler", offsetof(qn_step, at_sampler), sizeof(qn_sampler), c->logits},
        {"register", offsetof(qn_step, at_register), 4, c->logits},
        {"table_off", offsetof(qn_step, at_table_off), 4, off},
        {"table", offsetof(qn_step, at_table), 4, table},
        {"adjust", offsetof(qn_step, at_adjust), sizeof(qn_adjust), c->logits},
        {"edit", offsetof(qn_step, at_edit), sizeof(qn_edit), c->edits}, /* last: see init */
    };
    memcpy(out, a, sizeof a);
    return true;
}

/* Offset of array i and, with i == N_ARRAYS, the bytes of the whole; 0 on overflow. */
static size_t place(const array a[N_ARRAYS], size_t i)
{
    size_t at = (sizeof(qn_step) + ALIGN - 1) / ALIGN * ALIGN;
    for (size_t k = 0; k < i; k++) {
        const size_t bytes = a[k].size * a[k].count; /* at most 64 * 2^32: no overflow in 64 bits */
        at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
        if (at > UINT32_MAX) return 0;
    }
    return at;
}

size_t qn_step_bytes(const qn_step_caps *caps)
{
    array a[N_ARRAYS];
    if (!caps->rows || !caps->logits || !caps->seqs || !caps->groups || !caps->table) return 0;
    return list(a, caps) ? place(a, N_ARRAYS) : 0;
}

static void set_at(qn_step *s, const array *a, uint32_t at)
{
    memcpy((unsigned char *)s + a->offset_of, &at, sizeof at);
}

qn_step *qn_step_init(void *mem, const qn_step_caps *caps)
{
    array a[N_ARRAYS];
    const size_t bytes = qn_step_bytes(caps);
    QN_ASSERT(bytes != 0 && list(a, caps));
    memset(mem, 0, place(a, N_ARRAYS - 1)); /* edits are many, written before they are counted */
    qn_step *s = mem;
    s->magic = QN_STEP_MAGIC;
    s->version = QN_STEP_VERSION;
    s->bytes = (uint32_t)bytes;
    s->caps = *caps;
    for (size_t i = 0; i < N_ARRAYS; i++) set_at(s, &a[i], (uint32_t)place(a, i));
    return s;
}

static qn_code bad(qn_err *err, const char *field, uint64_t found, uint64_t expected)
{
    return qn_fail(err, QN_E_FORMAT, "step: %s is %llu, expected %llu", field,
                   (unsigned long long)found, (unsigned long long)expected);
}

static qn_code above(qn_err *err, const char *field, uint64_t found, uint64_t limit)
{
    return qn_fail(err, QN_E_FORMAT, "step: %s is %llu, expected at most %llu", field,
                   (unsigned long long)found, (unsigned long long)limit);
}

static qn_code check_layout(const qn_step *s, size_t n, qn_err *err)
{
    array a[N_ARRAYS];
    if (s->magic != QN_STEP_MAGIC) return bad(err, "magic", s->magic, QN_STEP_MAGIC);
    if (s->version != QN_STEP_VERSION) return bad(err, "version", s->version, QN_STEP_VERSION);
    const size_t bytes = qn_step_bytes(&s->caps);
    if (bytes == 0 || s->bytes != bytes) return bad(err, "bytes", s->bytes, bytes);
    if (n != bytes) return bad(err, "length", n, bytes);
    if (!list(a, &s->caps)) return bad(err, "capacities", 0, 1);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        uint32_t at = 0;
        memcpy(&at, (const unsigned char *)s + a[i].offset_of, sizeof at);
        if (at != place(a, i)) return bad(err, a[i].name, at, place(a, i));
    }
    if (s->n_rows > s->caps.rows) return above(err, "n_rows", s->n_rows, s->caps.rows);
    if (s->n_logits > s->caps.logits) return above(err, "n_logits", s->n_logits, s->caps.logits);
    if (s->n_edits > s->caps.edits) return above(err, "n_edits", s->n_edits, s->caps.edits);
    if (s->n_seqs > s->caps.seqs) return above(err, "n_seqs", s->n_seqs, s->caps.seqs);
    return QN_OK;
}

qn_code qn_step_check(const void *bytes, size_t n, qn_err *err)
{
    if (n < sizeof(qn_step)) return bad(err, "length", n, sizeof(qn_step));
    if ((uintptr_t)bytes % ALIGN != 0) return bad(err, "alignment", (uintptr_t)bytes % ALIGN, 0);
    const qn_step *s = bytes;
    QN_TRY(check_layout(s, n, err));
    for (uint32_t r = 0; r < s->n_rows; r++) {
        const qn_keys *k = &qn_step_keys(s)[r];
        if (qn_step_source(s)[r] > QN_ROW_EMBED)
            return above(err, "source", qn_step_source(s)[r], QN_ROW_EMBED);
        if (qn_step_seq(s)[r] >= s->n_seqs)
            return above(err, "seq", qn_step_seq(s)[r], (uint64_t)s->n_seqs - 1);
        if (k->lo0 > k->hi0 || k->lo1 > k->hi1)
            return qn_fail(err, QN_E_FORMAT, "step: keys of row %u run backwards", r);
        const uint64_t top = k->hi1 > k->hi0 ? k->hi1 : k->hi0;
        const uint64_t last =
            qn_step_kv_pos(s)[r] >= top ? (uint64_t)qn_step_kv_pos(s)[r] + 1 : top;
        for (uint32_t g = 0; g < s->caps.groups; g++) {
            const uint64_t off = qn_step_table_off(s)[(size_t)g * s->caps.seqs + qn_step_seq(s)[r]];
            const uint64_t need = off + (last + 63) / 64; /* QN_KV_BLOCK positions a block */
            if (need > s->caps.table) return above(err, "table", need, s->caps.table);
        }
    }
    for (uint32_t i = 0; i < s->n_logits; i++) {
        const qn_adjust *a = &qn_step_adjust(s)[i];
        if (qn_step_logit_row(s)[i] >= s->n_rows)
            return above(err, "logit_row", qn_step_logit_row(s)[i], (uint64_t)s->n_rows - 1);
        if ((uint64_t)a->at + a->n > s->n_edits)
            return above(err, "edits", (uint64_t)a->at + a->n, s->n_edits);
    }
    return QN_OK;
}
