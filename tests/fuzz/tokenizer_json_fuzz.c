/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_json_fuzz.c - any bytes as a tokenizer.json: an error with a message, or a tokenizer that
 * encodes and decodes the same bytes as text. Ids stay inside the vocabulary, decoded text is UTF-8, and
 * a byte-level stream equals decoding at once. */
#include "base/alloc.h"
#include "text/detok.h"
#include "text/tokenizer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 512 };

static void check_stream(const qn_tokenizer *t, const qn_ids *ids, qn_str want)
{
    qn_detok *d = NULL;
    size_t at = 0;
    if (qn_detok_open(&d, t, (qn_detok_options){.skip_special = false}, NULL) != QN_OK) return;
    for (size_t k = 0; k <= ids->n; k++) {
        const qn_str s = k < ids->n ? qn_detok_push(d, ids->id[k]) : qn_detok_flush(d, false);
        QN_ASSERT(qn_utf8_valid(s.p, s.n, NULL));
        if (qn_tokenizer_kind(t) != QN_VOCAB_BYTE_BPE) continue;
        QN_ASSERT(want.n - at >= s.n && memcmp(want.p + at, s.p, s.n) == 0);
        at += s.n;
    }
    qn_detok_free(d);
}

static void check_text(const qn_tokenizer *t, const char *text, size_t n, bool special)
{
    qn_ids ids = {0};
    char *back = NULL;
    size_t n_back = 0;
    qn_err err = {0};
    const qn_encode_options opt = {.add_special = special, .parse_special = special};
    const qn_code rc = qn_tokenizer_encode(t, &ids, text, n, opt, &err);
    QN_ASSERT(rc == QN_OK || (err.msg[0] != '\0' && ids.n == 0));
    for (size_t k = 0; k < ids.n; k++) QN_ASSERT(qn_token_text(t, ids.id[k]).n > 0);
    if (qn_tokenizer_decode(t, &back, &n_back, ids.id, ids.n, false, NULL) == QN_OK) {
        QN_ASSERT(qn_utf8_valid(back, n_back, NULL));
        check_stream(t, &ids, (qn_str){back, n_back});
    }
    qn_free(back);
    qn_ids_fini(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t live = qn_alloc_live();
    const char *text = size ? (const char *)data : "";
    qn_tokenizer *t = NULL;
    qn_err err = {0};
    const qn_code rc = qn_tokenizer_from_json(&t, text, size, NULL, 0, &err);
    QN_ASSERT((rc == QN_OK) == (t != NULL) && (rc == QN_OK || err.msg[0] != '\0'));
    if (t) {
        const size_t n = size < TEXT_MAX ? size : TEXT_MAX;
        check_text(t, text, n, true);
        check_text(t, text + size - n, n, false);
        qn_tokenizer_free(t);
    }
    QN_ASSERT(qn_alloc_live() == live);
    return 0;
}
