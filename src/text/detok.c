/* SPDX-License-Identifier: Apache-2.0 */
/* detok.c - one machine for the stream and for decoding at once.
 *
 *     token ─► its bytes ─► byte run / UTF-8 assembler ─► leading-space rule ─► text
 *
 * The assembler holds at most three bytes. Only decoding at once (`run` in use) keeps a whole run of
 * byte-fallback tokens, because the reference judges the run as one.
 */
#include "text/detok.h"

#include "base/alloc.h"
#include "text/tokenizer_int.h"

struct qn_detok {
    const qn_tokenizer *t;
    qn_detok_options opt;
    qn_buf out;
    char held[4]; /* bytes of an incomplete character */
    size_t n_held;
    size_t strip_left; /* leading characters that may still go */
    bool any;          /* a token was taken */
    bool lone;         /* a space is withheld */
    qn_buf *run;       /* decoding at once: bytes of the present byte-fallback run */
};

static const char REPLACEMENT[] = "\xEF\xBF\xBD";

static bool trims_bytes(const qn_detok *d)
{
    return d->opt.lead == QN_LEAD_TRIM && d->t->decoder.byte_level;
}

static void restart(qn_detok *d)
{
    d->n_held = 0;
    d->any = d->lone = false;
    d->strip_left = d->opt.lead == QN_LEAD_KEEP ? 0 : trims_bytes(d) ? 1 : d->t->decoder.strip_n;
}

/* Room was made before: nothing here can fail. */
static void put(qn_buf *b, const char *bytes, size_t n)
{
    QN_ASSERT(b->cap - b->len > n);
    if (n) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
}

static void emit(qn_detok *d, const char *text, size_t n)
{
    const qn_decoder *dec = &d->t->decoder;
    const char *strip = trims_bytes(d) ? " " : dec->strip;
    const size_t len = trims_bytes(d) ? 1 : dec->strip_len;
    while (d->strip_left > 0 && n > 0) {
        if (n < len || memcmp(text, strip, len) != 0) {
            d->strip_left = 0;
            break;
        }
        text += len;
        n -= len;
        d->strip_left--;
    }
    put(&d->out, text, n);
}

static void emit_bad(qn_detok *d, size_t n)
{
    for (size_t k = 0; k < n; k++) emit(d, REPLACEMENT, 3);
}

/* Byte-level text gets one U+FFFD for an ill-formed part, a byte-fallback run one for each byte. */
static size_t bad_marks(const qn_detok *d, size_t bytes)
{
    return d->t->decoder.byte_level ? 1 : bytes;
}

static void feed_byte(qn_detok *d, char byte)
{
    d->held[d->n_held++] = byte;
    while (d->n_held > 0) {
        uint32_t c = 0;
        const size_t len = qn_utf8_step(d->held, d->n_held, &c);
        if (c != QN_UTF8_BAD)
            emit(d, d->held, len);
        else if (qn_utf8_partial_tail(d->held, d->n_held) == d->n_held)
            return;
        else
            emit_bad(d, bad_marks(d, len));
        d->n_held -= len;
        memmove(d->held, d->held + len, d->n_held);
    }
}

static void feed(qn_detok *d, const char *bytes, size_t n)
{
    if (d->n_held == 0 && qn_utf8_valid(bytes, n, NULL)) {
        emit(d, bytes, n);
        return;
    }
    for (size_t k = 0; k < n; k++) feed_byte(d, bytes[k]);
}

static void end_run(qn_detok *d)
{
    if (d->n_held) emit_bad(d, bad_marks(d, d->n_held));
    d->n_held = 0;
    if (!d->run || d->run->len == 0) return;
    if (qn_utf8_valid(qn_buf_text(d->run), d->run->len, NULL))
        emit(d, qn_buf_text(d->run), d->run->len);
    else
        emit_bad(d, d->run->len);
    qn_buf_truncate(d->run, 0);
}

/* Metaspace: the very first token loses its marks instead of showing them as spaces. */
static void emit_bare(qn_detok *d, qn_str s)
{
    const qn_buf *mark = &d->t->decoder.from[0];
    const qn_str needle = {qn_buf_text(mark), mark->len};
    size_t done = 0;
    for (size_t at = 0; (at = qn_str_find(s, needle, done)) != SIZE_MAX; done = at + needle.n)
        emit(d, s.p + done, at - done);
    emit(d, s.p + done, s.n - done);
}

static bool is_skipped(const qn_detok *d, uint32_t id)
{
    if (id >= d->t->vocab.n_ids || d->t->vocab.len[id] == 0) return true;
    const qn_token_kind kind = qn_token_kind_of(d->t, id);
    return d->opt.skip_special && (kind == QN_TOKEN_CONTROL || kind == QN_TOKEN_UNKNOWN);
}

static void take(qn_detok *d, uint32_t id)
{
    const qn_tokenizer *t = d->t;
    const char *bytes = (const char *)t->plain.bytes.data + t->plain.begin[id];
    const size_t n = t->plain.begin[id + 1] - t->plain.begin[id];
    const bool first = !d->any;
    d->any = true;
    if (t->decoder.spaced && !first) emit(d, " ", 1);
    if (t->decoder.byte_level) {
        feed(d, bytes, n);
    } else if (t->vocab.kind[id] & QN_TOK_IS_BYTE) {
        if (d->run)
            put(d->run, bytes, 1);
        else
            feed_byte(d, *bytes);
    } else {
        end_run(d);
        if (first && t->decoder.first_bare && d->opt.lead != QN_LEAD_KEEP)
            emit_bare(d, qn_vocab_text(&t->vocab, id));
        else
            emit(d, bytes, n);
    }
}

/* The most that one token can give: its bytes, all replaced, behind what was held. */
static size_t room(const qn_tokenizer *t)
{
    const size_t longest =
        t->plain.longest > t->vocab.longest ? t->plain.longest : t->vocab.longest;
    return 3 * (longest + 4) + 8;
}

qn_code qn_detok_open(qn_detok **out, const qn_tokenizer *t, qn_detok_options opt, qn_err *err)
{
    *out = NULL;
    qn_detok *d = qn_zalloc(sizeof *d);
    if (!d) return qn_fail(err, QN_E_NOMEM, "detokeniser");
    d->t = t;
    d->opt = opt;
    qn_buf_init(&d->out, room(t));
    const qn_code rc = qn_buf_reserve(&d->out, room(t), err);
    if (rc != QN_OK) {
        qn_detok_free(d);
        return rc;
    }
    restart(d);
    *out = d;
    return QN_OK;
}

void qn_detok_free(qn_detok *d)
{
    if (!d) return;
    qn_buf_fini(&d->out);
    qn_free(d);
}

qn_str qn_detok_push(qn_detok *d, uint32_t id)
{
    qn_buf_truncate(&d->out, 0);
    if (is_skipped(d, id)) return (qn_str){"", 0};
    if (d->lone) emit(d, " ", 1);
    d->lone = false;
    const size_t before = d->out.len;
    take(d, id);
    if (trims_bytes(d) && d->out.len == before + 1 && d->out.data[before] == ' ') {
        d->lone = true;
        qn_buf_truncate(&d->out, before);
    }
    return (qn_str){qn_buf_text(&d->out), d->out.len};
}

qn_str qn_detok_flush(qn_detok *d, bool stopped)
{
    qn_buf_truncate(&d->out, 0);
    if (d->lone && !stopped) emit(d, " ", 1);
    end_run(d);
    restart(d);
    return (qn_str){qn_buf_text(&d->out), d->out.len};
}

size_t qn_detok_held(const qn_detok *d) { return d->n_held + d->lone; }
void qn_detok_set_skip_special(qn_detok *d, bool skip) { d->opt.skip_special = skip; }

qn_code qn_tokenizer_decode(const qn_tokenizer *t, char **out, size_t *n_out, const uint32_t *ids,
                            size_t n, bool skip_special, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_buf run;
    qn_detok d = {.t = t, .opt = {skip_special, QN_LEAD_DECODE}, .run = &run};
    *out = NULL;
    *n_out = 0;
    qn_buf_init(&d.out, SIZE_MAX / 4);
    qn_buf_init(&run, SIZE_MAX / 4);
    restart(&d);
    for (size_t i = 0; i < n; i++) {
        if (is_skipped(&d, ids[i])) continue;
        QN_TRY_OUT(qn_buf_reserve(&run, 1, err));
        QN_TRY_OUT(qn_buf_reserve(&d.out, room(t) + 3 * run.len, err));
        take(&d, ids[i]);
    }
    QN_TRY_OUT(qn_buf_reserve(&d.out, room(t) + 3 * run.len, err));
    end_run(&d);
    *out = (char *)qn_buf_take(&d.out, n_out);
out:
    qn_buf_fini(&d.out);
    qn_buf_fini(&run);
    return rc;
}
