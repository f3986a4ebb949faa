/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_int.h - the tables of a tokenizer and the stages that its files share.
 *
 *     text ─► added tokens ─► normalizer ─► added tokens ─► pre-tokenizer ─► BPE ─► ids
 *             (as written)                  (normalized)     spans            per span
 *
 * The builder calls fill a zeroed qn_tokenizer; afterwards it is read only. Work memory of an encode
 * lives in qn_tok_work, one per call.
 */
#ifndef QN_TEXT_TOKENIZER_INT_H
#define QN_TEXT_TOKENIZER_INT_H
#include "base/buf.h"
#include "base/str.h"
#include "dep/regex.h"
#include "dep/unicode.h"
#include "text/tokenizer.h"

#include <string.h>

enum {
    QN_TOK_OPS_MAX = 32,      /* steps of a normalizer or a pre-tokenizer */
    QN_TOK_FIX_MAX = 32,      /* ids that a template puts at one end */
    QN_TOK_ENDS_MAX = 64,     /* ids that end a turn */
    QN_TOK_REPLACE_MAX = 8,   /* replacements of a decoder */
    QN_TOK_TOKEN_MAX = 65536, /* bytes of one token's spelling */
    QN_TOK_OUTSIDE = 0x80, /* beside a kind: BPE never makes this token, it is only found whole */
    QN_TOK_IS_BYTE = 0x40  /* beside a kind: decodes as one byte of a byte-fallback run */
};

/* --- vocab.c: spellings, ids and merges ------------------------------------------------------- */

typedef struct qn_vocab {
    qn_buf blob;          /* all spellings, back to back */
    uint32_t *begin;      /* [cap] into blob */
    uint32_t *len;        /* [cap] bytes; 0 for a hole */
    uint8_t *kind;        /* [cap] qn_token_kind, with QN_TOK_OUTSIDE, QN_TOK_IS_BYTE */
    uint32_t n_ids, cap;  /* ids are below n_ids */
    uint32_t *slots;      /* open hash of id + 1; 0 is empty */
    uint32_t mask, n_set; /* slots - 1; spellings in the hash */
    uint32_t longest;     /* bytes */
} qn_vocab;

typedef struct qn_merge {
    uint32_t left, right, rank, to; /* to == QN_TOKEN_NONE: an empty slot */
} qn_merge;

typedef struct qn_merges {
    qn_merge *slots;
    uint32_t mask, n;
} qn_merges;

/* Room for `n` spellings of `bytes` in all. */
qn_code qn_vocab_reserve(qn_vocab *v, size_t n, size_t bytes, qn_err *err);
/* Give `id` a spelling. An id that has one, or an id far beyond the spellings so far, is FORMAT; an
 * empty spelling leaves a hole. replace: a spelling that exists leads to the newer id, else FORMAT. */
qn_code qn_vocab_put(qn_vocab *v, uint32_t id, qn_str text, qn_token_kind kind, bool replace,
                     qn_err *err);
uint32_t qn_vocab_find(const qn_vocab *v, const char *text, size_t n);
/* The same among the tokens that BPE may make. */
static inline uint32_t qn_model_find(const qn_vocab *v, const char *text, size_t n)
{
    const uint32_t id = qn_vocab_find(v, text, n);
    return id != QN_TOKEN_NONE && (v->kind[id] & QN_TOK_OUTSIDE) ? QN_TOKEN_NONE : id;
}
static inline qn_str qn_vocab_text(const qn_vocab *v, uint32_t id)
{
    if (id >= v->n_ids || v->len[id] == 0) return (qn_str){NULL, 0};
    return (qn_str){(const char *)v->blob.data + v->begin[id], v->len[id]};
}
void qn_vocab_fini(qn_vocab *v);

qn_code qn_merges_reserve(qn_merges *m, size_t n, qn_err *err);
/* left + right becomes `to`, at the next rank; a pair given twice takes the later rank. */
qn_code qn_merges_put(qn_merges *m, uint32_t left, uint32_t right, uint32_t to, qn_err *err);
const qn_merge *qn_merges_find(const qn_merges *m, uint32_t left, uint32_t right);
void qn_merges_fini(qn_merges *m);
/* The merge of two spellings, which must be in the vocabulary, as must their concatenation. */
qn_code qn_merge_texts(qn_tokenizer *t, qn_str left, qn_str right, qn_buf *scratch, qn_err *err);

/* --- added.c: tokens that are found in the text as a whole ------------------------------------ */

typedef struct qn_added {
    uint32_t id, begin, len; /* spelling to search for, in qn_added_set.blob */
    bool single_word, lstrip, rstrip, special;
} qn_added;

typedef struct qn_added_set { /* one for the raw text, one for the normalized */
    qn_buf blob;
    qn_added *item; /* sorted by spelling after qn_added_seal */
    size_t n, cap;
    uint32_t first[257]; /* item[first[b], first[b + 1]) begin with byte b */
} qn_added_set;

qn_code qn_added_put(qn_added_set *s, qn_str text, qn_added token, qn_err *err);
/* Sort. FORMAT when a spelling occurs twice. */
qn_code qn_added_seal(qn_added_set *s, qn_err *err);
void qn_added_fini(qn_added_set *s);

typedef struct qn_added_match {
    size_t begin, end; /* with the spaces that lstrip and rstrip take */
    uint32_t id;
} qn_added_match;
/* The next token in text[*at, n), *at moving on; `done` is where the last match ended. */
bool qn_added_next(const qn_added_set *s, const char *text, size_t n, size_t *at, size_t done,
                   bool parse_special, qn_added_match *m);

/* --- normalize.c, pretok.c: rules as data ----------------------------------------------------- */

typedef enum qn_norm_kind {
    QN_NORM_FORM,    /* form */
    QN_NORM_REPLACE, /* pattern, or re, by content */
    QN_NORM_PREPEND, /* content */
    QN_NORM_LOWER,
    QN_NORM_STRIP, /* left, right */
    QN_NORM_STRIP_ACCENTS
} qn_norm_kind;

typedef struct qn_norm_op {
    qn_norm_kind kind;
    qn_unorm form;
    qn_buf pattern, content;
    qn_regex *re;
    bool left, right;
} qn_norm_op;

typedef enum qn_pretok_kind {
    QN_PRE_SPLIT,       /* pattern, or re, with behaviour and invert */
    QN_PRE_DIGITS,      /* behaviour: isolated or contiguous */
    QN_PRE_PUNCT,       /* behaviour */
    QN_PRE_WORDS,       /* \w+|[^\w\s]+ */
    QN_PRE_SPACES,      /* split at white space, which goes */
    QN_PRE_METASPACE,   /* pattern is the replacement; prepend, split */
    QN_PRE_PREFIX_SPACE /* byte level with add_prefix_space */
} qn_pretok_kind;

typedef enum qn_split { /* what becomes of a match */
                        QN_SPLIT_ISOLATED,
                        QN_SPLIT_REMOVED,
                        QN_SPLIT_WITH_PREVIOUS,
                        QN_SPLIT_WITH_NEXT,
                        QN_SPLIT_CONTIGUOUS
} qn_split;

typedef enum qn_prepend { QN_PREPEND_ALWAYS, QN_PREPEND_FIRST, QN_PREPEND_NEVER } qn_prepend;

typedef struct qn_pretok_op {
    qn_pretok_kind kind;
    qn_split behaviour;
    qn_prepend prepend;
    bool invert, split;
    qn_buf pattern;
    qn_regex *re;
} qn_pretok_op;

/* GPT-2's splitter, which the byte-level pre-tokenizer applies unless told otherwise. */
#define QN_GPT2_PATTERN \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef struct qn_tok_span {
    size_t begin, end;
} qn_tok_span;

typedef struct qn_spans {
    qn_tok_span *at;
    size_t n, cap;
} qn_spans;
QN_NODISCARD bool qn_spans_push(qn_spans *s, size_t begin, size_t end);

/* --- the tokenizer ---------------------------------------------------------------------------- */

typedef struct qn_decoder {
    bool byte_level, byte_fallback;
    bool spaced;     /* no decoder: tokens are joined by spaces */
    bool first_bare; /* metaspace: the first token loses its replacements instead */
    qn_buf from[QN_TOK_REPLACE_MAX], to[QN_TOK_REPLACE_MAX];
    size_t n_replace;
    char strip[4]; /* character taken from the front of the whole text, up to strip_n times */
    size_t strip_len, strip_n;
} qn_decoder;

typedef struct qn_plain { /* what each token decodes to before any rule about its neighbours */
    qn_buf bytes;
    uint32_t *begin; /* [n_ids + 1] */
    size_t longest;
} qn_plain;

struct qn_tokenizer {
    qn_vocab_kind kind;
    qn_vocab vocab;
    qn_merges merges;
    float *scores;          /* [vocab.n_ids], SPM only */
    uint32_t byte_id[256];  /* the token of a byte: its byte-level letter, or "<0xHH>" */
    uint32_t ascii_id[128]; /* the token spelled with this one character */
    bool ignore_merges, byte_fallback, fuse_unk;

    qn_added_set raw, normalized;
    qn_added_set respelled; /* by id: what decodes as its normalized form; not for searching */
    qn_norm_op norm[QN_TOK_OPS_MAX];
    qn_pretok_op pre[QN_TOK_OPS_MAX];
    size_t n_norm, n_pre;
    qn_decoder decoder;
    qn_plain plain;

    uint32_t prefix[QN_TOK_FIX_MAX], suffix[QN_TOK_FIX_MAX];
    size_t n_prefix, n_suffix;
    uint32_t bos, eos, unk, pad;
    uint32_t model_unk; /* what BPE gives for a character it does not know */
    uint32_t ends[QN_TOK_ENDS_MAX];
    size_t n_ends;
    uint64_t digest;
};

typedef struct qn_tok_work { /* one encode call */
    const qn_tokenizer *t;
    qn_ids *ids;
    qn_err *err;
    bool parse_special;
    qn_regex_scan *scan; /* made when first needed */
    qn_buf text[2];      /* normalizer and pre-tokenizer write to one, read from the other */
    qn_buf swap;
    qn_spans spans, next; /* of the pre-tokenizer */
    struct qn_symbol *symbols;
    struct qn_heap_item *heap;
    size_t cap_symbols, cap_heap;
} qn_tok_work;
void qn_tok_work_fini(qn_tok_work *w);

/* *text is the input and becomes the output, which lives in w->text[0] or is the input itself. */
qn_code qn_normalize(qn_tok_work *w, qn_str *text);
/* The same rules on one spelling, while building; *out starts initialised. */
qn_code qn_normalize_token(const qn_tokenizer *t, qn_buf *out, qn_str text, qn_err *err);
/* Cut *text, which is not empty, into w->spans; *text may be rewritten into w->text[1]. first: it
 * stands at the very beginning of what the user gave. */
qn_code qn_pretokenize(qn_tok_work *w, qn_str *text, bool first);
/* The ids of one span. */
qn_code qn_bpe(qn_tok_work *w, const char *text, size_t n);

/* Leftmost match at or after *at the way Oniguruma's iterator walks: an empty match right behind the
 * last one is skipped. `last` is where that ended, SIZE_MAX before the first. */
qn_code qn_next_match(bool *found, qn_regex_match *m, qn_tok_work *w, const qn_regex *re,
                      qn_str text, size_t *at, size_t *last);
qn_code qn_tok_scan(qn_tok_work *w); /* make w->scan if there is none */

/* --- building --------------------------------------------------------------------------------- */

qn_tokenizer *qn_tokenizer_new_empty(void); /* NULL: no memory */
/* Rules, appended; pattern of a regular expression is in Oniguruma's dialect. */
qn_code qn_pre_add_regex(qn_tokenizer *t, qn_str pattern, qn_split behaviour, bool invert,
                         qn_err *err);
qn_code qn_pre_add(qn_tokenizer *t, qn_pretok_op **op, qn_pretok_kind kind, qn_err *err);
qn_code qn_norm_add(qn_tokenizer *t, qn_norm_op **op, qn_norm_kind kind, qn_err *err);
qn_code qn_decoder_add_replace(qn_decoder *d, qn_str from, qn_str to, qn_err *err);
void qn_rules_fini(qn_tokenizer *t);
/* Fills byte_id and ascii_id, finds the ends of a turn, checks what must hold between the parts. */
qn_code qn_tokenizer_finish(qn_tokenizer *t, qn_err *err);
/* Add `id` to the ends of a turn; NONE and repeats are fine. */
void qn_tokenizer_add_end(qn_tokenizer *t, uint32_t id);

/* The letter that byte-level vocabularies write for a byte: 1 or 2 bytes of UTF-8; its length. */
size_t qn_byte_letter(char out[2], uint8_t byte);
/* The byte that a letter stands for, or -1. */
int qn_letter_byte(uint32_t c);

/* Fills t->plain and the IS_BYTE marks, from spellings and decoder. */
qn_code qn_plain_build(qn_tokenizer *t, qn_err *err);
void qn_plain_fini(qn_plain *p);

/* The splitting rules of a GGUF `tokenizer.ggml.pre`, and whether its models want BOS where the file
 * does not say. UNSUPPORTED naming it when unknown. */
qn_code qn_gguf_pretok(qn_tokenizer *t, qn_str pre, bool *add_bos, qn_err *err);

#endif
