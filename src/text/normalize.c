/* SPDX-License-Identifier: Apache-2.0 */
/* normalize.c - the normalizer of a tokenizer file: a short list of rewriting steps. */
#include "base/alloc.h"
#include "text/tokenizer_int.h"

qn_code qn_norm_add(qn_tokenizer *t, qn_norm_op **op, qn_norm_kind kind, qn_err *err)
{
    if (t->n_norm == QN_TOK_OPS_MAX)
        return qn_fail(err, QN_E_UNSUPPORTED, "more than %d normalizers", QN_TOK_OPS_MAX);
    *op = &t->norm[t->n_norm++];
    (*op)->kind = kind;
    qn_buf_init(&(*op)->pattern, QN_TOK_TOKEN_MAX);
    qn_buf_init(&(*op)->content, QN_TOK_TOKEN_MAX);
    return QN_OK;
}

qn_code qn_tok_scan(qn_tok_work *w)
{
    return w->scan ? QN_OK : qn_regex_scan_new(&w->scan, w->err);
}

qn_code qn_next_match(bool *found, qn_regex_match *m, qn_tok_work *w, const qn_regex *re,
                      qn_str text, size_t *at, size_t *last)
{
    QN_TRY(qn_tok_scan(w));
    for (*found = false; *at <= text.n;) {
        QN_TRY(qn_regex_find(found, m, w->scan, re, text.p, text.n, *at, w->err));
        if (!*found) break;
        if (m->begin != m->end || m->end != *last) {
            *at = *last = m->end;
            return QN_OK;
        }
        *found = false;
        if (*at == text.n) break;
        uint32_t c = 0;
        *at += qn_utf8_step(text.p + *at, text.n - *at, &c);
    }
    *at = text.n + 1;
    return QN_OK;
}

static qn_code replace(qn_tok_work *w, const qn_norm_op *op, qn_str in, qn_buf *out)
{
    const qn_str from = {qn_buf_text(&op->pattern), op->pattern.len};
    size_t done = 0, at = 0, last = SIZE_MAX;
    for (;;) {
        qn_regex_match m = {0, 0};
        bool found = false;
        if (op->re) {
            QN_TRY(qn_next_match(&found, &m, w, op->re, in, &at, &last));
        } else {
            m.begin = qn_str_find(in, from, done);
            found = m.begin != SIZE_MAX;
            m.end = found ? m.begin + from.n : 0;
        }
        if (!found) break;
        QN_TRY(qn_buf_append(out, in.p + done, m.begin - done, w->err));
        QN_TRY(qn_buf_append(out, op->content.data, op->content.len, w->err));
        done = m.end;
    }
    return qn_buf_append(out, in.p + done, in.n - done, w->err);
}

/* Lower case, or without combining marks: both go code point by code point. */
static qn_code by_point(qn_norm_kind kind, qn_str in, qn_buf *out, qn_err *err)
{
    for (size_t i = 0; i < in.n;) {
        uint32_t c = 0, lower[3];
        i += qn_utf8_step(in.p + i, in.n - i, &c);
        if (kind == QN_NORM_STRIP_ACCENTS && qn_unicode_is_mark(c)) continue;
        size_t n = 1;
        lower[0] = c;
        if (kind == QN_NORM_LOWER) n = qn_unicode_lower(lower, c);
        for (size_t k = 0; k < n; k++) {
            char bytes[4];
            QN_TRY(qn_buf_append(out, bytes, qn_utf8_encode(bytes, lower[k]), err));
        }
    }
    return QN_OK;
}

static qn_str strip(const qn_norm_op *op, qn_str s)
{
    uint32_t c = 0;
    while (op->left && s.n > 0) {
        const size_t len = qn_utf8_step(s.p, s.n, &c);
        if (!qn_unicode_is_space(c)) break;
        s = qn_str_slice(s, len, s.n);
    }
    while (op->right && s.n > 0) {
        size_t i = s.n - 1;
        while (i > 0 && ((unsigned char)s.p[i] & 0xC0) == 0x80) i--;
        (void)qn_utf8_step(s.p + i, s.n - i, &c);
        if (!qn_unicode_is_space(c)) break;
        s.n = i;
    }
    return s;
}

static qn_code apply(qn_tok_work *w, const qn_norm_op *op, qn_str in, qn_buf *out)
{
    char *text = NULL;
    size_t n = 0;
    switch (op->kind) {
    case QN_NORM_FORM:
        QN_TRY(qn_unicode_normalize(&text, &n, in.p, in.n, op->form, w->err));
        const qn_code rc = qn_buf_append(out, text, n, w->err);
        qn_free(text);
        return rc;
    case QN_NORM_REPLACE:
        return replace(w, op, in, out);
    case QN_NORM_PREPEND:
        if (in.n > 0) QN_TRY(qn_buf_append(out, op->content.data, op->content.len, w->err));
        return qn_buf_append(out, in.p, in.n, w->err);
    case QN_NORM_LOWER:
    case QN_NORM_STRIP_ACCENTS:
        return by_point(op->kind, in, out, w->err);
    case QN_NORM_STRIP:
        in = strip(op, in);
        return qn_buf_append(out, in.p, in.n, w->err);
    }
    return QN_OK;
}

qn_code qn_normalize(qn_tok_work *w, qn_str *text)
{
    for (size_t k = 0; k < w->t->n_norm; k++) {
        qn_buf_truncate(&w->swap, 0);
        QN_TRY(apply(w, &w->t->norm[k], *text, &w->swap));
        const qn_buf done = w->swap;
        w->swap = w->text[0];
        w->text[0] = done;
        *text = (qn_str){qn_buf_text(&w->text[0]), w->text[0].len};
    }
    return QN_OK;
}

qn_code qn_normalize_token(const qn_tokenizer *t, qn_buf *out, qn_str text, qn_err *err)
{
    qn_tok_work w = {.t = t, .err = err};
    qn_buf_init(&w.text[0], QN_TOK_TOKEN_MAX * 8);
    qn_buf_init(&w.swap, QN_TOK_TOKEN_MAX * 8);
    qn_code rc = qn_normalize(&w, &text);
    if (rc == QN_OK) rc = qn_buf_append(out, text.p, text.n, err);
    qn_tok_work_fini(&w);
    return rc;
}
