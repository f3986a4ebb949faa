/* SPDX-License-Identifier: Apache-2.0 */
/* golden_test.c - ids and decodings of tests/golden/tokenizer, which the oracle wrote. */
#include "base/alloc.h"
#include "tok_fixture.h"

#include <stdlib.h>
#include <string.h>

typedef struct golden {
    qn_tokenizer *tok;
    char *json, *cases;
    const char *p, *end;
    bool byte_level;
} golden;

static uint16_t u16(golden *g)
{
    uint16_t v = 0;
    if (g->end - g->p < 2) abort();
    memcpy(&v, g->p, 2);
    g->p += 2;
    return v;
}

static uint32_t u32(golden *g)
{
    const uint32_t low = u16(g);
    return low | (uint32_t)u16(g) << 16;
}

static qn_str take(golden *g, size_t n)
{
    const qn_str s = {g->p, n};
    if ((size_t)(g->end - g->p) < n) abort();
    g->p += n;
    return s;
}

static golden open_golden(qt *t, const char *json, const char *cases)
{
    golden g = {0};
    size_t n_json = 0, n = 0;
    qn_err err = {0};
    g.json = tok_slurp(json, &n_json);
    g.cases = tok_slurp(cases, &n);
    g.p = g.cases + 8;
    g.end = g.cases + n;
    QT_OKF(t, qn_tokenizer_from_json(&g.tok, g.json, n_json, NULL, 0, &err) == QN_OK, "%s",
           err.msg);
    g.byte_level = g.tok && qn_tokenizer_kind(g.tok) == QN_VOCAB_BYTE_BPE;
    return g;
}

static void close_golden(golden *g)
{
    qn_tokenizer_free(g->tok);
    free(g->json);
    free(g->cases);
}

static bool same_ids(const qn_ids *ids, const char *want, size_t n)
{
    if (ids->n != n) return false;
    for (size_t k = 0; k < n; k++) {
        uint16_t v = 0;
        memcpy(&v, want + 2 * k, 2);
        if (ids->id[k] != v) return false;
    }
    return true;
}

static bool encodes(golden *g, qn_str text, bool special, bool parse, qn_str want)
{
    qn_ids ids = {0};
    const qn_encode_options opt = {.add_special = special, .parse_special = parse};
    const bool ok = qn_tokenizer_encode(g->tok, &ids, text.p, text.n, opt, NULL) == QN_OK &&
                    same_ids(&ids, want.p, want.n / 2);
    qn_ids_fini(&ids);
    return ok;
}

/* At once, and as a stream; a stream marks ill-formed byte runs in its own way. */
static bool decodes(golden *g, qn_str list, bool skip, qn_str want)
{
    uint32_t ids[1024];
    char *text = NULL;
    size_t n = 0, at = 0;
    qn_detok *d = NULL;
    for (size_t k = 0; k < list.n / 2; k++) {
        uint16_t v = 0;
        memcpy(&v, list.p + 2 * k, 2);
        ids[k] = v;
    }
    bool ok = qn_tokenizer_decode(g->tok, &text, &n, ids, list.n / 2, skip, NULL) == QN_OK &&
              n == want.n && memcmp(text, want.p, n) == 0;
    qn_free(text);
    const bool ragged = !g->byte_level && qn_str_find(want, QN_STR("\xEF\xBF\xBD"), 0) != SIZE_MAX;
    if (qn_detok_open(&d, g->tok, (qn_detok_options){.skip_special = skip}, NULL) != QN_OK)
        return false;
    for (size_t k = 0; k <= list.n / 2; k++) {
        const qn_str s = k < list.n / 2 ? qn_detok_push(d, ids[k]) : qn_detok_flush(d, false);
        ok = ok && qn_utf8_valid(s.p, s.n, NULL);
        if (!ragged) ok = ok && want.n - at >= s.n && memcmp(want.p + at, s.p, s.n) == 0;
        if (!ragged) at += s.n;
    }
    qn_detok_free(d);
    return ok && (ragged || at == want.n);
}

static void check_cases(qt *t, const char *json, const char *cases)
{
    golden g = open_golden(t, json, cases);
    const uint32_t n = g.tok ? u32(&g) : 0;
    const size_t added = json[strlen(json) - 6] == 'm' ? 2 : 1; /* spm: <s> ... </s> */
    for (uint32_t k = 0; k < n; k++) {
        const qn_str text = take(&g, u16(&g));
        const qn_str full = take(&g, u16(&g) * 2u);
        const uint16_t n_inert = u16(&g);
        const qn_str plain = {full.p + 2, full.n - 2 * added};
        const qn_str inert = n_inert == 0xFFFF ? plain : take(&g, n_inert * 2u);
        const qn_str back = take(&g, u16(&g));
        QT_OKF(t, encodes(&g, text, true, true, full), "text %u with special tokens", k);
        QT_OKF(t, encodes(&g, text, false, true, plain), "text %u", k);
        QT_OKF(t, encodes(&g, text, false, false, inert), "text %u with inert spellings", k);
        QT_OKF(t, decodes(&g, full, true, back), "text %u decoded", k);
    }
    const uint32_t lists = g.tok ? u32(&g) : 0;
    for (uint32_t k = 0; k < lists; k++) {
        const qn_str list = take(&g, u16(&g) * 2u);
        const qn_str back = take(&g, u16(&g));
        QT_OKF(t, decodes(&g, list, false, back), "random ids %u decoded", k);
    }
    QT_OK(t, n == 500 && lists == 100 && g.p == g.end);
    close_golden(&g);
}

static void byte_level_ids_and_texts_equal_the_oracle(qt *t)
{
    check_cases(t, "tests/golden/tokenizer/byte_level.json",
                "tests/golden/tokenizer/byte_level.cases");
}

static void byte_fallback_ids_and_texts_equal_the_oracle(qt *t)
{
    check_cases(t, "tests/golden/tokenizer/spm.json", "tests/golden/tokenizer/spm.cases");
}

static void every_failed_allocation_of_an_open_is_told(qt *t)
{
    size_t n_json = 0;
    char *json = tok_slurp("tests/fuzz/corpus/tokenizer_json/byte_level.json", &n_json);
    const char *config = "{\"eos_token\":\"<|e|>\",\"bos_token\":{\"content\":\"<|e|>\"}}";
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t n = 0;
    for (; rc != QN_OK && n < 4000; n++) {
        qn_tokenizer *tok = NULL;
        qn_alloc_fail_after(n);
        rc = qn_tokenizer_from_json(&tok, json, n_json, config, strlen(config), NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !tok));
        qn_tokenizer_free(tok);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK && n > 20);
    free(json);
}

static void every_failed_allocation_of_an_encode_is_told(qt *t)
{
    size_t n_json = 0;
    char *json = tok_slurp("tests/fuzz/corpus/tokenizer_json/byte_level.json", &n_json);
    qn_tokenizer *tok = NULL;
    QT_OK(t, qn_tokenizer_from_json(&tok, json, n_json, NULL, 0, NULL) == QN_OK);
    const char *text = "A\xCC\x81 abc ab\xFF 123 it's yes<|e|> abcabc";
    qn_ids ids = {0};
    QT_OK(t, qn_ids_push(&ids, 7));
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 4000; n++) {
        const size_t before = qn_alloc_live();
        qn_alloc_fail_after(n);
        rc = qn_tokenizer_encode(tok, &ids, text, strlen(text),
                                 (qn_encode_options){.add_special = true}, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && ids.n == 1 && ids.id[0] == 7));
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK && ids.n > 5);
    qn_ids_fini(&ids);
    qn_tokenizer_free(tok);
    free(json);
}

static void every_failed_allocation_of_a_decode_is_told(qt *t)
{
    golden g =
        open_golden(t, "tests/golden/tokenizer/spm.json", "tests/golden/tokenizer/spm.cases");
    const uint32_t ids[] = {1, 300, 400, 3 + 0xE2, 3 + 0x82, 500};
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 100; n++) {
        const size_t before = qn_alloc_live();
        char *text = NULL;
        size_t len = 0;
        qn_alloc_fail_after(n);
        rc = qn_tokenizer_decode(g.tok, &text, &len, ids, QT_LEN(ids), false, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !text));
        qn_free(text);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
    close_golden(&g);
}

QT_MAIN(QT(byte_level_ids_and_texts_equal_the_oracle),
        QT(byte_fallback_ids_and_texts_equal_the_oracle),
        QT(every_failed_allocation_of_an_open_is_told),
        QT(every_failed_allocation_of_an_encode_is_told),
        QT(every_failed_allocation_of_a_decode_is_told))
