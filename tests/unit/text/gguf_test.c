/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_test.c - vocabularies from the parts that a GGUF file carries. */
#include "base/alloc.h"
#include "tok_fixture.h"

#include <math.h>
#include <string.h>

#define MARK "\xE2\x96\x81"
#define G "\xC4\xA0" /* the byte-level letter of a space */

/* Views over a table of literals. */
static const qn_str *views(qn_str *into, const char *const *text, size_t n)
{
    for (size_t k = 0; k < n; k++) into[k] = qn_str_z(text[k]);
    return into;
}

static const char *const gpt2_tokens[] = {"<|im_end|>", "a",  "b", "ab", G,    G "a",   "1",
                                          "2",          "12", "'", "s",  "'s", "<tool>"};
static const int32_t gpt2_types[] = {3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4};
static const char *const gpt2_merges[] = {"a b", G " a", "1 2", "' s"};
static const char *const spm_tokens[] = {"<unk>",  "<s>",     "</s>", "<0x0A>", "<0xC3>",
                                         "<0xA9>", MARK,      "a",    "b",      MARK "a",
                                         "ab",     MARK "ab", "bb"};
static const int32_t spm_types[] = {2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1};
static const float spm_scores[] = {0, 0, 0, 0, 0, 0, -9, -8, -7, -3, -2, -4, -2};

typedef struct fixture {
    qn_str tokens[16], merges[16];
    qn_tokenizer_parts p;
} fixture;

static void gpt2(fixture *f, const char *pre)
{
    f->p = (qn_tokenizer_parts)QN_TOKENIZER_PARTS_INIT;
    f->p.model = qn_str_z("gpt2");
    f->p.pre = qn_str_z(pre);
    f->p.n_tokens = QT_LEN(gpt2_tokens);
    f->p.tokens = views(f->tokens, gpt2_tokens, f->p.n_tokens);
    f->p.types = gpt2_types;
    f->p.n_merges = QT_LEN(gpt2_merges);
    f->p.merges = views(f->merges, gpt2_merges, f->p.n_merges);
    f->p.eos = 0;
}

static void spm(fixture *f)
{
    f->p = (qn_tokenizer_parts)QN_TOKENIZER_PARTS_INIT;
    f->p.model = qn_str_z("llama");
    f->p.n_tokens = QT_LEN(spm_tokens);
    f->p.tokens = views(f->tokens, spm_tokens, f->p.n_tokens);
    f->p.types = spm_types;
    f->p.scores = spm_scores;
    f->p.unk = 0;
    f->p.bos = 1;
    f->p.eos = 2;
}

static qn_tokenizer *open_parts(qt *t, const fixture *f)
{
    qn_tokenizer *tok = NULL;
    qn_err err = {0};
    QT_OKF(t, qn_tokenizer_from_parts(&tok, &f->p, &err) == QN_OK, "%s", err.msg);
    return tok;
}

static void refused(qt *t, const fixture *f, qn_code code, const char *word)
{
    qn_tokenizer *tok = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_tokenizer_from_parts(&tok, &f->p, &err), code);
    QT_OKF(t, !tok && strstr(err.msg, word), "\"%s\" does not name \"%s\"", err.msg, word);
}

static void decodes(qt *t, const qn_tokenizer *tok, const uint32_t *ids, size_t n, const char *want)
{
    char *text = NULL;
    size_t len = 0;
    QT_OK(t, tok && qn_tokenizer_decode(tok, &text, &len, ids, n, true, NULL) == QN_OK);
    QT_STR(t, text, want);
    qn_free(text);
}

static void gpt2_splits_by_the_named_rules(qt *t)
{
    fixture f;
    gpt2(&f, "gpt-2");
    qn_tokenizer *tok = open_parts(t, &f);
    tok_plain(t, tok, "ab a12's", "3 5 8 11");
    qn_tokenizer_free(tok);
    gpt2(&f, "smollm"); /* each digit alone */
    tok = open_parts(t, &f);
    tok_plain(t, tok, "ab a12's", "3 5 6 7 11");
    QT_OK(t, tok && !qn_tokenizer_adds_bos(tok));
    qn_tokenizer_free(tok);
}

static void every_known_name_opens(qt *t)
{
    static const char *const names[] = {"",
                                        "default",
                                        "gpt-2",
                                        "smollm",
                                        "llama-bpe",
                                        "dbrx",
                                        "qwen2",
                                        "stablelm2",
                                        "qwen35",
                                        "gpt-4o",
                                        "minimax-m2",
                                        "tekken",
                                        "deepseek-v3",
                                        "deepseek-llm",
                                        "deepseek-coder",
                                        "falcon",
                                        "bailingmoe",
                                        "seed-coder",
                                        "bloom",
                                        "viking",
                                        "starcoder",
                                        "command-r",
                                        "deepseek-r1-qwen",
                                        "mpt",
                                        "refact"};
    for (size_t k = 0; k < QT_LEN(names); k++) {
        fixture f;
        gpt2(&f, names[k]);
        qn_tokenizer *tok = open_parts(t, &f);
        qn_ids ids = {0};
        QT_OK(t, tok && qn_tokenizer_encode(tok, &ids, "ab a", 4, (qn_encode_options){0}, NULL) ==
                            QN_OK);
        QT_OKF(t, ids.n == 2 && ids.id[0] == 3 && ids.id[1] == 5, "pre \"%s\"", names[k]);
        qn_ids_fini(&ids);
        qn_tokenizer_free(tok);
    }
}

static void control_tokens_are_found_whole_or_not_at_all(qt *t)
{
    fixture f;
    gpt2(&f, "gpt-2");
    qn_tokenizer *tok = open_parts(t, &f);
    const uint32_t ids[] = {1, 0, 12};
    size_t n = 0;
    tok_ids(t, tok, "a<|im_end|><tool>", 17, (qn_encode_options){.parse_special = true}, "1 0 12");
    tok_ids(t, tok, "a<tool>a", 8, (qn_encode_options){.parse_special = false}, "1 12 1");
    decodes(t, tok, ids, 3, "a<tool>");
    const uint32_t *ends = tok ? qn_tokenizer_ends(tok, &n) : NULL;
    QT_OK(t, n == 1 && ends[0] == 0);
    qn_tokenizer_free(tok);
}

static void scores_decide_and_the_left_wins_a_tie(qt *t)
{
    fixture f;
    spm(&f);
    qn_tokenizer *tok = open_parts(t, &f);
    QT_OK(t, tok && qn_tokenizer_kind(tok) == QN_VOCAB_SPM_BPE && qn_tokenizer_adds_bos(tok));
    tok_plain(t, tok, "ab", "11"); /* ab (-2) before _a (-3), then _ab */
    tok_plain(t, tok, "aa", "9 7");
    tok_plain(t, tok, "abb", "11 8"); /* ab and bb tie: leftmost */
    tok_plain(t, tok, "bbb", "6 12 8");
    tok_ids(t, tok, "a a", 3, (qn_encode_options){.add_special = true}, "1 9 9");
    qn_tokenizer_free(tok);
}

static void characters_without_a_token_fall_back_to_bytes(qt *t)
{
    fixture f;
    spm(&f);
    qn_tokenizer *tok = open_parts(t, &f);
    const uint32_t ids[] = {9, 4, 5, 3, 7};
    tok_plain(t, tok, "a\xC3\xA9\na", "9 4 5 3 7");
    tok_plain(t, tok, "\xE2\x82\xAC", "6 0"); /* no token for its bytes: unknown */
    decodes(t, tok, ids, 5, "a\xC3\xA9\na");
    qn_tokenizer_free(tok);
}

static void the_leading_space_follows_the_flag(qt *t)
{
    fixture f;
    spm(&f);
    f.p.add_space_prefix = QN_NO;
    f.p.add_bos = QN_NO;
    f.p.add_eos = QN_YES;
    qn_tokenizer *tok = open_parts(t, &f);
    const uint32_t ids[] = {9};
    tok_ids(t, tok, "a a", 3, (qn_encode_options){.add_special = true}, "7 9 2");
    decodes(t, tok, ids, 1, " a");
    qn_tokenizer_free(tok);
    spm(&f);
    tok = open_parts(t, &f);
    tok_plain(t, tok, "a</s>a",
              "9 2 9"); /* again after a special token, as the trainer's own tool */
    decodes(t, tok, ids, 1, "a");
    qn_tokenizer_free(tok);
}

static void digests_tell_vocabularies_apart(qt *t)
{
    fixture f;
    spm(&f);
    qn_tokenizer *a = open_parts(t, &f), *b = open_parts(t, &f);
    f.p.add_space_prefix = QN_NO;
    qn_tokenizer *c = open_parts(t, &f);
    if (a && b && c) {
        QT_OK(t, qn_tokenizer_digest(a) == qn_tokenizer_digest(b));
        QT_OK(t, qn_tokenizer_digest(a) != qn_tokenizer_digest(c));
    }
    qn_tokenizer_free(a);
    qn_tokenizer_free(b);
    qn_tokenizer_free(c);
}

static void wrong_parts_are_refused_by_name(qt *t)
{
    fixture f;
    float scores[QT_LEN(spm_scores)];
    int32_t types[QT_LEN(spm_types)];
    gpt2(&f, "no-such-rules");
    refused(t, &f, QN_E_UNSUPPORTED, "no-such-rules");
    gpt2(&f, "gpt-2");
    f.p.model = qn_str_z("rwkv");
    refused(t, &f, QN_E_UNSUPPORTED, "rwkv");
    gpt2(&f, "gpt-2");
    f.p.n_merges = 0;
    refused(t, &f, QN_E_FORMAT, "merges");
    gpt2(&f, "gpt-2");
    f.merges[1] = qn_str_z("zz");
    refused(t, &f, QN_E_FORMAT, "\"zz\" is no pair");
    gpt2(&f, "gpt-2");
    f.tokens[3] = qn_str_z("\xFF");
    refused(t, &f, QN_E_FORMAT, "token 3 is no UTF-8");
    gpt2(&f, "gpt-2");
    f.p.eos = 99;
    refused(t, &f, QN_E_FORMAT, "eos_token_id is 99");
    gpt2(&f, "gpt-2");
    f.p.add_bos = QN_YES;
    refused(t, &f, QN_E_FORMAT, "bos_token_id");
    gpt2(&f, "gpt-2");
    f.p.n_tokens = 0;
    refused(t, &f, QN_E_FORMAT, "tokens is missing");
    spm(&f);
    f.p.scores = NULL;
    refused(t, &f, QN_E_FORMAT, "scores");
    spm(&f);
    memcpy(scores, spm_scores, sizeof scores);
    scores[5] = NAN;
    f.p.scores = scores;
    refused(t, &f, QN_E_FORMAT, "score of token 5");
    spm(&f);
    memcpy(types, spm_types, sizeof types);
    types[2] = 7;
    f.p.types = types;
    refused(t, &f, QN_E_FORMAT, "type 7");
    spm(&f);
    f.p.unk = QN_TOKEN_NONE;
    refused(t, &f, QN_E_FORMAT, "3 of 256 byte tokens");
    spm(&f);
    f.p.pre = qn_str_z("qwen2");
    refused(t, &f, QN_E_UNSUPPORTED, "qwen2");
}

static void opening_survives_every_failed_allocation(qt *t)
{
    for (int which = 0; which < 2; which++) {
        fixture f;
        const size_t before = qn_alloc_live();
        qn_code rc = QN_E_NOMEM;
        which ? spm(&f) : gpt2(&f, "qwen2");
        for (size_t n = 0; rc != QN_OK && n < 1000; n++) {
            qn_tokenizer *tok = NULL;
            qn_alloc_fail_after(n);
            rc = qn_tokenizer_from_parts(&tok, &f.p, NULL);
            qn_alloc_fail_after(SIZE_MAX);
            QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !tok));
            qn_tokenizer_free(tok);
            QT_OK(t, qn_alloc_live() == before);
        }
        QT_OK(t, rc == QN_OK);
    }
}

QT_MAIN(QT(gpt2_splits_by_the_named_rules), QT(every_known_name_opens),
        QT(control_tokens_are_found_whole_or_not_at_all), QT(scores_decide_and_the_left_wins_a_tie),
        QT(characters_without_a_token_fall_back_to_bytes), QT(the_leading_space_follows_the_flag),
        QT(digests_tell_vocabularies_apart), QT(wrong_parts_are_refused_by_name),
        QT(opening_survives_every_failed_allocation))
