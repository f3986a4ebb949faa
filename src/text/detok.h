/* SPDX-License-Identifier: Apache-2.0 */
/* detok.h - tokens to text, one at a time, never half a character.
 *
 * A token may end inside a UTF-8 sequence (byte-level BPE, byte fallback); its last bytes are held
 * back until the sequence completes or proves ill-formed, and then become U+FFFD. What push gave is
 * final: nothing is ever taken back. The pieces joined equal qn_tokenizer_decode of the same ids,
 * with one exception that a stream cannot avoid: the reference turns a whole run of byte-fallback
 * tokens into U+FFFDs when any of it is ill-formed, a stream only its ill-formed characters.
 *
 * All memory is taken by open, in O(longest token); push and flush allocate nothing and take O(bytes
 * of the token).
 *
 * Owner:  the caller; the tokenizer must outlive the detokeniser.
 * Thread: one thread at a time.
 */
#ifndef QN_TEXT_DETOK_H
#define QN_TEXT_DETOK_H
#include "text/tokenizer.h"

typedef struct qn_detok qn_detok;

typedef enum qn_detok_lead {
    QN_LEAD_DECODE, /* as decode: SentencePiece vocabularies drop the space that encode put there */
    QN_LEAD_KEEP,   /* the text continues other text: drop nothing */
    QN_LEAD_TRIM    /* as mlx-lm streams: one leading space goes, byte-level vocabularies included,
                       and a token that is one lone space waits for its successor */
} qn_detok_lead;

typedef struct qn_detok_options {
    bool skip_special; /* control tokens give no text */
    qn_detok_lead lead;
} qn_detok_options;

/* *out is owned (free with qn_detok_free). Errors: NOMEM. */
qn_code qn_detok_open(qn_detok **out, const qn_tokenizer *t, qn_detok_options opt, qn_err *err);
void qn_detok_free(qn_detok *d); /* NULL is fine */

/* The text that `id` completes: valid UTF-8, maybe empty, borrowed until the next call on d. Ids
 * outside the vocabulary give nothing. */
qn_str qn_detok_push(qn_detok *d, uint32_t id);
/* The rest at the end of the stream: an incomplete sequence becomes U+FFFD; a withheld lone space is
 * given unless `stopped` (the model ended by itself, so the space belonged to what never came). The
 * detokeniser is then as new. */
qn_str qn_detok_flush(qn_detok *d, bool stopped);
/* Bytes now held back, 0 when all was given. */
size_t qn_detok_held(const qn_detok *d);

/* May skip_special change while tokens flow (a tool parser wants to see the markers)? Yes, here. */
void qn_detok_set_skip_special(qn_detok *d, bool skip);

#endif
