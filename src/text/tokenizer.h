/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h - text to token ids and back, as the model was trained with.
 *
 * Two sources give the same object: a `tokenizer.json`, or the parts that a GGUF file carries. All
 * that a source asks for is done or refused by name when it is opened; nothing is ignored. The
 * vocabulary sits in a few flat tables (text blob, offsets, open hash), so opening costs a pass over
 * the bytes and encoding touches no small heap blocks.
 *
 * Input that is no valid UTF-8 is read as if each maximal ill-formed subpart were U+FFFD (Unicode
 * 3.9, practice of the WHATWG and of Python's errors="replace"); it never fails an encode.
 *
 * Owner:  the caller owns the tokenizer; everything borrowed from it lives until qn_tokenizer_free.
 * Thread: immutable after open; any number of threads may use one tokenizer at once.
 */
#ifndef QN_TEXT_TOKENIZER_H
#define QN_TEXT_TOKENIZER_H
#include "base/str.h"

typedef struct qn_tokenizer qn_tokenizer;

#define QN_TOKEN_NONE UINT32_MAX /* "no such token" wherever an id is optional */

enum {
    QN_TOKENIZER_TEXT_MAX = 256u << 20 /* bytes of one encode, and of a tokenizer.json */
};

typedef enum qn_vocab_kind {
    QN_VOCAB_BYTE_BPE, /* byte-level BPE: every byte string has ids (GPT-2, Llama 3, Qwen, ...) */
    QN_VOCAB_CHAR_BPE, /* BPE over characters, merges by rank, mostly with byte fallback */
    QN_VOCAB_SPM_BPE   /* SentencePiece BPE: merges by score (GGUF "llama") */
} qn_vocab_kind;

typedef enum qn_token_kind { /* the numbers are GGUF's tokenizer.ggml.token_type */
                             QN_TOKEN_NORMAL = 1,
                             QN_TOKEN_UNKNOWN = 2,
                             QN_TOKEN_CONTROL = 3, /* "special": skipped when decoding for people */
                             QN_TOKEN_USER_DEFINED =
                                 4,               /* matched in the text as a whole, but visible */
                             QN_TOKEN_UNUSED = 5, /* a hole in the numbering or a reserved place */
                             QN_TOKEN_BYTE = 6    /* "<0x41>" */
} qn_token_kind;

typedef enum qn_tri {
    QN_UNSET = -1,
    QN_NO = 0,
    QN_YES = 1
} qn_tri; /* UNSET: the model's default */

/* What a GGUF file says, as it says it; arrays and texts are borrowed during the call only. Start
 * from QN_TOKENIZER_PARTS_INIT, so that an absent key means "absent". */
typedef struct qn_tokenizer_parts {
    qn_str model;         /* tokenizer.ggml.model: "gpt2" or "llama" */
    qn_str pre;           /* tokenizer.ggml.pre; empty means "default" */
    const qn_str *tokens; /* [n_tokens] */
    size_t n_tokens;
    const int32_t *types; /* [n_tokens] qn_token_kind, or NULL: all normal */
    const float *scores;  /* [n_tokens], needed by "llama" */
    const qn_str *merges; /* [n_merges] "left right", needed by "gpt2" */
    size_t n_merges;
    uint32_t bos, eos, unk, pad, eot, eom; /* QN_TOKEN_NONE where absent */
    qn_tri add_bos, add_eos, add_space_prefix;
} qn_tokenizer_parts;
#define QN_TOKENIZER_PARTS_INIT                                                                 \
    {                                                                                           \
        .bos = QN_TOKEN_NONE, .eos = QN_TOKEN_NONE, .unk = QN_TOKEN_NONE, .pad = QN_TOKEN_NONE, \
        .eot = QN_TOKEN_NONE, .eom = QN_TOKEN_NONE, .add_bos = QN_UNSET, .add_eos = QN_UNSET,   \
        .add_space_prefix = QN_UNSET                                                            \
    }

/* Both: *out is owned (free with qn_tokenizer_free). Errors: FORMAT (the bytes are not what they
 * claim), UNSUPPORTED (named: the model, normalizer, pre-tokenizer, decoder ... that is not done
 * here), LIMIT, NOMEM. config is the text of tokenizer_config.json or NULL: it names the special
 * tokens and, for the Llama and Gemma classes, decides whether BOS and EOS are added. */
qn_code qn_tokenizer_from_json(qn_tokenizer **out, const char *text, size_t n, const char *config,
                               size_t n_config, qn_err *err);
qn_code qn_tokenizer_from_parts(qn_tokenizer **out, const qn_tokenizer_parts *parts, qn_err *err);
void qn_tokenizer_free(qn_tokenizer *t); /* NULL is fine */

typedef struct qn_ids { /* a growable array; start from {0}; owned (qn_ids_fini) */
    uint32_t *id;
    size_t n, cap;
} qn_ids;
void qn_ids_fini(qn_ids *ids);
QN_NODISCARD bool qn_ids_push(qn_ids *ids, uint32_t id); /* false: no memory */

typedef struct qn_encode_options {
    bool add_special;   /* put BOS, EOS and the like where the model expects them */
    bool parse_special; /* "<|im_end|>" in the text means the token; off for text of strangers */
} qn_encode_options;

/* Append the ids of text[0, n) to *ids. On an error *ids keeps what it held before the call.
 * O(n log n) in time, O(n) in memory. Errors: LIMIT (text above QN_TOKENIZER_TEXT_MAX, or a pattern
 * of the model that gives up on this text), NOMEM. */
qn_code qn_tokenizer_encode(const qn_tokenizer *t, qn_ids *ids, const char *text, size_t n,
                            qn_encode_options opt, qn_err *err);

/* The text of ids[0, n) as the reference decoder gives it (no clean-up of spaces); always valid
 * UTF-8. *out is owned (qn_free) and NUL-terminated, *n_out excludes the NUL. Ids outside the
 * vocabulary give nothing. For a stream of tokens see detok.h. */
qn_code qn_tokenizer_decode(const qn_tokenizer *t, char **out, size_t *n_out, const uint32_t *ids,
                            size_t n, bool skip_special, qn_err *err);

/* Ids are below this; holes are possible. */
uint32_t qn_tokenizer_size(const qn_tokenizer *t);
qn_vocab_kind qn_tokenizer_kind(const qn_tokenizer *t);
/* The token as the vocabulary spells it ("Ġthe", "▁the", "<0x0A>"); {NULL, 0} for holes and beyond.
 * Borrowed. */
qn_str qn_token_text(const qn_tokenizer *t, uint32_t id);
qn_token_kind qn_token_kind_of(const qn_tokenizer *t, uint32_t id); /* holes: UNUSED */
/* The id with exactly this spelling, or QN_TOKEN_NONE. */
uint32_t qn_token_id(const qn_tokenizer *t, const char *text, size_t n);
/* The bytes that the token stands for, before any rule about its neighbours (a leading space stays).
 * At most cap bytes are written; the full length is returned. Grammars build their tries from it. */
size_t qn_token_bytes(const qn_tokenizer *t, uint32_t id, char *bytes, size_t cap);
size_t qn_token_bytes_max(const qn_tokenizer *t); /* no token is longer */

uint32_t qn_tokenizer_bos(const qn_tokenizer *t); /* each QN_TOKEN_NONE where there is none */
uint32_t qn_tokenizer_eos(const qn_tokenizer *t);
uint32_t qn_tokenizer_unk(const qn_tokenizer *t);
uint32_t qn_tokenizer_pad(const qn_tokenizer *t);
/* Ids after which a model has said all: eos, eot and the special tokens that the known chat formats
 * end a turn with ("<|im_end|>", "<|eot_id|>", "<end_of_turn>" ...). Ascending, borrowed. */
const uint32_t *qn_tokenizer_ends(const qn_tokenizer *t, size_t *n);
bool qn_tokenizer_adds_bos(const qn_tokenizer *t);

/* 64 bits over everything the tokenizer was made from; equal digests give equal ids. The same
 * vocabulary from two kinds of source has two digests. */
uint64_t qn_tokenizer_digest(const qn_tokenizer *t);

#endif
