/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c - every token's own bytes, worked out once when a tokenizer is opened, so that decoding a
 * token is a copy. Rules that look at neighbours (leading space, byte runs) belong to detok.c. */
#include "base/alloc.h"
#include "text/tokenizer_int.h"

/* Byte-level letters back to bytes; false when a character is none of them. */
static bool unletter(qn_buf *out, qn_str s)
{
    const size_t begin = out->len;
    for (size_t i = 0; i < s.n;) {
        uint32_t c = (unsigned char)s.p[i];
        i += c < 0x80 ? 1 : qn_utf8_step(s.p + i, s.n - i, &c);
        const int b = qn_letter_byte(c);
        if (b < 0) {
            qn_buf_truncate(out, begin);
            return false;
        }
        out->data[out->len++] = (uint8_t)b; /* reserved: letters are never shorter than bytes */
    }
    out->data[out->len] = 0;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of "<0xHH>", or -1. */
static int byte_value(qn_str s)
{
    if (s.n != 6 || memcmp(s.p, "<0x", 3) != 0 || s.p[5] != '>') return -1;
    const int high = hex_digit(s.p[3]), low = hex_digit(s.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static qn_code replace(qn_buf *out, qn_str s, const qn_buf *from, const qn_buf *to, qn_err *err)
{
    const qn_str needle = {qn_buf_text(from), from->len};
    size_t done = 0;
    for (;;) {
        const size_t at = qn_str_find(s, needle, done);
        if (at == SIZE_MAX) break;
        QN_TRY(qn_buf_append(out, s.p + done, at - done, err));
        QN_TRY(qn_buf_append(out, to->data, to->len, err));
        done = at + needle.n;
    }
    return qn_buf_append(out, s.p + done, s.n - done, err);
}

/* The spelling that the decoder starts from. */
static qn_str spelling(const qn_tokenizer *t, uint32_t id)
{
    size_t lo = 0, hi = t->respelled.n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (t->respelled.item[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < t->respelled.n && t->respelled.item[lo].id == id)
        return (qn_str){(const char *)t->respelled.blob.data + t->respelled.item[lo].begin,
                        t->respelled.item[lo].len};
    return qn_vocab_text(&t->vocab, id);
}

static qn_code append_token(qn_tokenizer *t, uint32_t id, qn_buf tmp[2], qn_err *err)
{
    const qn_decoder *d = &t->decoder;
    qn_buf *out = &t->plain.bytes;
    qn_str s = spelling(t, id);
    QN_TRY(qn_buf_reserve(out, s.n + 1, err));
    if (d->byte_level && unletter(out, s)) return QN_OK;
    for (size_t k = 0; k < d->n_replace; k++) {
        qn_buf *b = &tmp[k % 2];
        qn_buf_truncate(b, 0);
        QN_TRY(replace(b, s, &d->from[k], &d->to[k], err));
        s = (qn_str){qn_buf_text(b), b->len};
    }
    const int byte = d->byte_fallback ? byte_value(s) : -1;
    if (byte < 0) return qn_buf_append(out, s.p, s.n, err);
    t->vocab.kind[id] |= QN_TOK_IS_BYTE;
    return qn_buf_append_byte(out, (uint8_t)byte, err);
}

qn_code qn_plain_build(qn_tokenizer *t, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_plain *p = &t->plain;
    qn_buf tmp[2];
    qn_buf_init(&tmp[0], 64u << 20);
    qn_buf_init(&tmp[1], 64u << 20);
    qn_buf_init(&p->bytes, UINT32_MAX);
    p->begin = qn_calloc((size_t)t->vocab.n_ids + 1, sizeof *p->begin);
    if (!p->begin) return qn_fail(err, QN_E_NOMEM, "vocabulary of %u", t->vocab.n_ids);
    for (uint32_t id = 0; id < t->vocab.n_ids; id++) {
        const size_t begin = p->bytes.len;
        p->begin[id] = (uint32_t)begin;
        if (t->vocab.len[id] != 0) QN_TRY_OUT(append_token(t, id, tmp, err));
        if (p->bytes.len - begin > p->longest) p->longest = p->bytes.len - begin;
    }
    p->begin[t->vocab.n_ids] = (uint32_t)p->bytes.len;
out:
    qn_buf_fini(&tmp[0]);
    qn_buf_fini(&tmp[1]);
    return rc;
}

void qn_plain_fini(qn_plain *p)
{
    qn_buf_fini(&p->bytes);
    qn_free(p->begin);
}

size_t qn_token_bytes(const qn_tokenizer *t, uint32_t id, char *bytes, size_t cap)
{
    if (id >= t->vocab.n_ids) return 0;
    const size_t n = t->plain.begin[id + 1] - t->plain.begin[id];
    if (n && cap) memcpy(bytes, t->plain.bytes.data + t->plain.begin[id], n < cap ? n : cap);
    return n;
}

size_t qn_token_bytes_max(const qn_tokenizer *t) { return t->plain.longest; }
