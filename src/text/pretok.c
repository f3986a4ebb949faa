/* SPDX-License-Identifier: Apache-2.0 */
/* pretok.c - cuts a text into the spans that BPE may not cross.
 *
 * Spans always cover the current text in order. A step replaces each span by its parts; the two steps
 * that change the text itself (metaspace, leading space) write it anew and their spans with it.
 */
#include "base/alloc.h"
#include "text/tokenizer_int.h"

qn_code qn_pre_add(qn_tokenizer *t, qn_pretok_op **op, qn_pretok_kind kind, qn_err *err)
{
    if (t->n_pre == QN_TOK_OPS_MAX)
        return qn_fail(err, QN_E_UNSUPPORTED, "more than %d pre-tokenizers", QN_TOK_OPS_MAX);
    *op = &t->pre[t->n_pre++];
    (*op)->kind = kind;
    qn_buf_init(&(*op)->pattern, QN_TOK_TOKEN_MAX);
    return QN_OK;
}

qn_code qn_pre_add_regex(qn_tokenizer *t, qn_str pattern, qn_split behaviour, bool invert,
                         qn_err *err)
{
    qn_pretok_op *op = NULL;
    QN_TRY(qn_pre_add(t, &op, QN_PRE_SPLIT, err));
    op->behaviour = behaviour;
    op->invert = invert;
    return qn_regex_new(&op->re, pattern.p, pattern.n, QN_REGEX_ONIG, err);
}

bool qn_spans_push(qn_spans *s, size_t begin, size_t end)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap * 2 + 64;
        qn_tok_span *at = qn_realloc(s->at, cap * sizeof *at);
        if (!at) return false;
        s->at = at;
        s->cap = cap;
    }
    s->at[s->n++] = (qn_tok_span){begin, end};
    return true;
}

/* Builds the parts of one span from its matches as they come, by the rules of the behaviours. */
typedef struct cutter {
    qn_tok_work *w;
    qn_split behaviour;
    bool invert;
    size_t floor;  /* parts of this span start here in w->next */
    bool previous; /* was the piece before a match */
    bool held;     /* WITH_NEXT: a match waits for what follows */
    size_t held_begin, held_end;
} cutter;

static qn_code part(cutter *c, size_t begin, size_t end)
{
    if (!qn_spans_push(&c->w->next, begin, end))
        return qn_fail(c->w->err, QN_E_NOMEM, "pre-tokenizer");
    return QN_OK;
}

/* The reference folds from the right: a match joins the piece after it unless that is a match too;
 * so of two matches in a row only the later joins. Empty pieces take part and are dropped at the end. */
static qn_code piece_with_next(cutter *c, size_t begin, size_t end, bool match)
{
    if (c->held) {
        c->held = false;
        if (!match) return part(c, c->held_begin, end);
        QN_TRY(part(c, c->held_begin, c->held_end));
    }
    if (!match) return part(c, begin, end);
    c->held = true;
    c->held_begin = begin;
    c->held_end = end;
    return QN_OK;
}

static qn_code piece(cutter *c, size_t begin, size_t end, bool match)
{
    qn_spans *s = &c->w->next;
    const bool before = c->previous;
    match ^= c->invert;
    c->previous = match;
    switch (c->behaviour) {
    case QN_SPLIT_ISOLATED:
        return part(c, begin, end);
    case QN_SPLIT_REMOVED:
        return match ? QN_OK : part(c, begin, end);
    case QN_SPLIT_WITH_NEXT:
        return piece_with_next(c, begin, end, match);
    case QN_SPLIT_WITH_PREVIOUS:
        if (!match || before || s->n == c->floor) return part(c, begin, end);
        break;
    case QN_SPLIT_CONTIGUOUS:
        if (match != before || s->n == c->floor) return part(c, begin, end);
        break;
    }
    s->at[s->n - 1].end = end;
    return QN_OK;
}

static qn_code close_span(cutter *c)
{
    qn_spans *s = &c->w->next;
    if (c->held) QN_TRY(part(c, c->held_begin, c->held_end));
    size_t keep = c->floor;
    for (size_t i = c->floor; i < s->n; i++)
        if (s->at[i].begin != s->at[i].end) s->at[keep++] = s->at[i];
    s->n = keep;
    return QN_OK;
}

static qn_code cut_pattern(cutter *c, const qn_pretok_op *op, const char *text, qn_tok_span span)
{
    const qn_str in = {text + span.begin, span.end - span.begin};
    const qn_str needle = {qn_buf_text(&op->pattern), op->pattern.len};
    size_t done = 0, at = 0, last = SIZE_MAX;
    for (;;) {
        qn_regex_match m = {0, 0};
        bool found = false;
        if (op->re) {
            QN_TRY(qn_next_match(&found, &m, c->w, op->re, in, &at, &last));
        } else {
            m.begin = qn_str_find(in, needle, done);
            found = m.begin != SIZE_MAX;
            m.end = found ? m.begin + needle.n : 0;
        }
        if (!found) break;
        if (m.begin != done) QN_TRY(piece(c, span.begin + done, span.begin + m.begin, false));
        QN_TRY(piece(c, span.begin + m.begin, span.begin + m.end, true));
        done = m.end;
    }
    return done == in.n ? QN_OK : piece(c, span.begin + done, span.end, false);
}

/* Each code point of the class is a match of its own. */
static qn_code cut_class(cutter *c, bool (*is)(uint32_t), const char *text, qn_tok_span span)
{
    size_t done = span.begin;
    for (size_t i = span.begin; i < span.end;) {
        uint32_t cp = 0;
        const size_t len = qn_utf8_step(text + i, span.end - i, &cp);
        if (is(cp)) {
            if (done < i) QN_TRY(piece(c, done, i, false));
            QN_TRY(piece(c, i, i + len, true));
            done = i + len;
        }
        i += len;
    }
    return done == span.end ? QN_OK : piece(c, done, span.end, false);
}

/* Runs of word characters and runs of what is neither word nor space; spaces go. */
static qn_code cut_words(cutter *c, const char *text, qn_tok_span span)
{
    int run = 0; /* 0 space, 1 word, 2 other */
    size_t begin = span.begin;
    for (size_t i = span.begin; i < span.end;) {
        uint32_t cp = 0;
        const size_t len = qn_utf8_step(text + i, span.end - i, &cp);
        const int now = qn_unicode_is_word(cp) ? 1 : qn_unicode_is_space(cp) ? 0 : 2;
        if (now != run) {
            if (run != 0) QN_TRY(part(c, begin, i));
            begin = i;
            run = now;
        }
        i += len;
    }
    return run == 0 ? QN_OK : part(c, begin, span.end);
}

/* One span of the metaspace step: spaces become the mark, one may come in front. */
static qn_code metaspace(cutter *c, const qn_pretok_op *op, const char *text, qn_tok_span span,
                         bool first)
{
    qn_buf *out = &c->w->swap;
    const qn_str mark = {qn_buf_text(&op->pattern), op->pattern.len};
    const qn_str in = {text + span.begin, span.end - span.begin};
    const size_t begin = out->len;
    const bool has = qn_str_has_prefix(in, mark) || in.p[0] == ' ';
    if (!has && (op->prepend == QN_PREPEND_ALWAYS || (op->prepend == QN_PREPEND_FIRST && first)))
        QN_TRY(qn_buf_append(out, mark.p, mark.n, c->w->err));
    for (size_t i = 0; i < in.n;) {
        const char *space = memchr(in.p + i, ' ', in.n - i);
        const size_t end = space ? (size_t)(space - in.p) : in.n;
        QN_TRY(qn_buf_append(out, in.p + i, end - i, c->w->err));
        if (space) QN_TRY(qn_buf_append(out, mark.p, mark.n, c->w->err));
        i = end + (space != NULL);
    }
    const qn_tok_span whole = {begin, out->len};
    if (!op->split) return part(c, whole.begin, whole.end);
    c->behaviour = QN_SPLIT_WITH_NEXT;
    return cut_pattern(c, op, qn_buf_text(out), whole);
}

static qn_code prefix_space(cutter *c, const char *text, qn_tok_span span)
{
    qn_buf *out = &c->w->swap;
    const size_t begin = out->len;
    if (text[span.begin] != ' ') QN_TRY(qn_buf_append_byte(out, ' ', c->w->err));
    QN_TRY(qn_buf_append(out, text + span.begin, span.end - span.begin, c->w->err));
    return part(c, begin, out->len);
}

static qn_code cut_span(cutter *c, const qn_pretok_op *op, const char *text, qn_tok_span span,
                        bool first)
{
    switch (op->kind) {
    case QN_PRE_SPLIT:
        QN_TRY(cut_pattern(c, op, text, span));
        break;
    case QN_PRE_DIGITS:
        QN_TRY(cut_class(c, qn_unicode_is_number, text, span));
        break;
    case QN_PRE_PUNCT:
        QN_TRY(cut_class(c, qn_unicode_is_punct, text, span));
        break;
    case QN_PRE_SPACES:
        QN_TRY(cut_class(c, qn_unicode_is_space, text, span));
        break;
    case QN_PRE_WORDS:
        QN_TRY(cut_words(c, text, span));
        break;
    case QN_PRE_METASPACE:
        QN_TRY(metaspace(c, op, text, span, first));
        break;
    case QN_PRE_PREFIX_SPACE:
        QN_TRY(prefix_space(c, text, span));
        break;
    }
    return close_span(c);
}

qn_code qn_pretokenize(qn_tok_work *w, qn_str *text, bool first)
{
    w->spans.n = 0;
    if (!qn_spans_push(&w->spans, 0, text->n)) return qn_fail(w->err, QN_E_NOMEM, "pre-tokenizer");
    for (size_t k = 0; k < w->t->n_pre; k++) {
        const qn_pretok_op *op = &w->t->pre[k];
        const bool rewrites = op->kind == QN_PRE_METASPACE || op->kind == QN_PRE_PREFIX_SPACE;
        w->next.n = 0;
        qn_buf_truncate(&w->swap, 0);
        for (size_t i = 0; i < w->spans.n; i++) {
            cutter c = {
                .w = w, .behaviour = op->behaviour, .invert = op->invert, .floor = w->next.n};
            QN_TRY(cut_span(&c, op, text->p, w->spans.at[i], first && w->spans.at[i].begin == 0));
        }
        const qn_spans done = w->next;
        w->next = w->spans;
        w->spans = done;
        if (!rewrites) continue;
        const qn_buf written = w->swap;
        w->swap = w->text[1];
        w->text[1] = written;
        *text = (qn_str){qn_buf_text(&w->text[1]), w->text[1].len};
    }
    return QN_OK;
}
