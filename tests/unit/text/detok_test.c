/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "tok_fixture.h"

#include <string.h>

#define MARK "\xE2\x96\x81"
/* letters of a byte-level vocabulary: Ġ is a space, ðŁĺĢ are the four bytes of U+1F600 */
static const char byte_level[] =
    "{\"added_tokens\":[{\"id\":9,\"content\":\"<|e|>\",\"special\":true,\"normalized\":false}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
    "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"vocab\":{\"\xC4\xA0\":0,\"\xC4\xA0"
    "a\":1,\"a\":2,"
    "\"\xC3\xB0\":3,\"\xC5\x81\":4,\"\xC4\xBA\":5,\"\xC4\xA2\":6,\"\xC3\xB0\xC5\x81\xC4\xBA\":7,"
    "\"b\":8},"
    "\"merges\":[[\"\xC4\xA0\",\"a\"]]}}";
static const char spm[] =
    "{\"added_tokens\":[{\"id\":9,\"content\":\"</s>\",\"special\":true,\"normalized\":false}],"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
    "\"String\":\"" MARK "\"},\"content\":\" "
    "\"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":"
    "\" \",\"start\":1,\"stop\":0}]},\"model\":{\"byte_fallback\":true,\"vocab\":{\"" MARK
    "a\":0,\"b\":1,\"" MARK
    "\":2,\"<0xE2>\":3,\"<0x82>\":4,\"<0xAC>\":5,\"<0x41>\":6,\"<0xFF>\":7,\"" MARK MARK
    "\":8},\"merges\":[]}}";

static void gives(qt *t, qn_str s, const char *want)
{
    QT_OKF(t, qn_str_eq_z(s, want), "\"%.*s\", expected \"%s\"", QN_STR_ARG(s), want);
}

static qn_detok *detok(qt *t, const qn_tokenizer *tok, bool skip, qn_detok_lead lead)
{
    qn_detok *d = NULL;
    QT_OK(t, qn_detok_open(&d, tok, (qn_detok_options){skip, lead}, NULL) == QN_OK);
    return d;
}

static void half_a_character_is_held_back(qt *t)
{
    qn_tokenizer *tok = tok_open(t, byte_level);
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 7), "");
    QT_EQ(t, qn_detok_held(d), 3);
    gives(t, qn_detok_push(d, 6), "\xF0\x9F\x98\x80");
    QT_EQ(t, qn_detok_held(d), 0);
    gives(t, qn_detok_push(d, 3), "");
    gives(t, qn_detok_push(d, 4), "");
    gives(t, qn_detok_push(d, 2),
          "\xEF\xBF\xBD"
          "a"); /* one mark for the ill-formed part */
    gives(t, qn_detok_push(d, 7), "");
    gives(t, qn_detok_flush(d, true), "\xEF\xBF\xBD");
    gives(t, qn_detok_flush(d, true), "");
    gives(t, qn_detok_push(d, 6), "\xEF\xBF\xBD");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void special_tokens_show_only_when_asked(qt *t)
{
    qn_tokenizer *tok = tok_open(t, byte_level);
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 9), "");
    qn_detok_set_skip_special(d, false);
    gives(t, qn_detok_push(d, 9), "<|e|>");
    gives(t, qn_detok_push(d, 4000000000u), "");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void a_skipped_token_does_not_break_a_character(qt *t)
{
    qn_tokenizer *tok = tok_open(t, byte_level);
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 7), "");
    gives(t, qn_detok_push(d, 9), "");
    gives(t, qn_detok_push(d, 6), "\xF0\x9F\x98\x80");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void byte_level_keeps_its_first_space_unless_trimmed(qt *t)
{
    qn_tokenizer *tok = tok_open(t, byte_level);
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 1), " a");
    qn_detok_free(d);
    d = detok(t, tok, true, QN_LEAD_TRIM);
    gives(t, qn_detok_push(d, 1), "a");
    gives(t, qn_detok_push(d, 1), " a");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void a_lone_space_waits_for_its_successor_when_trimmed(qt *t)
{
    qn_tokenizer *tok = tok_open(t, byte_level);
    qn_detok *d = detok(t, tok, true, QN_LEAD_TRIM);
    gives(t, qn_detok_push(d, 2), "a");
    gives(t, qn_detok_push(d, 0), "");
    QT_EQ(t, qn_detok_held(d), 1);
    gives(t, qn_detok_push(d, 0), " ");
    gives(t, qn_detok_push(d, 8), " b");
    gives(t, qn_detok_push(d, 0), "");
    gives(t, qn_detok_flush(d, true), ""); /* the model stopped: the space led to nothing */
    gives(t, qn_detok_push(d, 2), "a");
    gives(t, qn_detok_push(d, 0), "");
    gives(t, qn_detok_flush(d, false), " ");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void sentencepiece_drops_one_space_of_the_whole(qt *t)
{
    qn_tokenizer *tok = tok_open(t, spm);
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 8), " ");
    gives(t, qn_detok_push(d, 0), " a");
    gives(t, qn_detok_flush(d, true), "");
    gives(t, qn_detok_push(d, 2), "");
    gives(t, qn_detok_push(d, 0), " a");
    qn_detok_free(d);
    d = detok(t, tok, true, QN_LEAD_KEEP);
    gives(t, qn_detok_push(d, 0), " a");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void byte_tokens_join_to_characters(qt *t)
{
    qn_tokenizer *tok = tok_open(t, spm);
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 3), "");
    gives(t, qn_detok_push(d, 4), "");
    gives(t, qn_detok_push(d, 5), "\xE2\x82\xAC");
    gives(t, qn_detok_push(d, 6), "A");
    gives(t, qn_detok_push(d, 7), "\xEF\xBF\xBD");
    gives(t, qn_detok_push(d, 3), "");
    gives(t, qn_detok_push(d, 4), "");
    gives(t, qn_detok_push(d, 1),
          "\xEF\xBF\xBD\xEF\xBF\xBD"
          "b"); /* one mark a byte */
    gives(t, qn_detok_push(d, 3), "");
    gives(t, qn_detok_flush(d, false), "\xEF\xBF\xBD");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void a_byte_run_is_judged_as_one_when_decoded_at_once(qt *t)
{
    qn_tokenizer *tok = tok_open(t, spm);
    const uint32_t ids[] = {6, 3, 4, 5, 7, 1};
    char *text = NULL;
    size_t n = 0;
    QT_OK(t, tok && qn_tokenizer_decode(tok, &text, &n, ids, QT_LEN(ids), true, NULL) == QN_OK);
    QT_STR(t, text,
           "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
           "b");
    qn_free(text);
    QT_OK(t, tok && qn_tokenizer_decode(tok, &text, &n, ids, 0, true, NULL) == QN_OK && n == 0);
    qn_free(text);
    qn_tokenizer_free(tok);
}

static void metaspace_bares_the_first_token(qt *t)
{
    qn_tokenizer *tok =
        tok_open(t, "{\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"" MARK
                    "\"},\"model\":{\"vocab\":{\"" MARK "a" MARK "\":0,\"b\":1},\"merges\":[]}}");
    qn_detok *d = detok(t, tok, true, QN_LEAD_DECODE);
    gives(t, qn_detok_push(d, 0), "a");
    gives(t, qn_detok_push(d, 0), " a ");
    qn_detok_free(d);
    d = detok(t, tok, true, QN_LEAD_KEEP);
    gives(t, qn_detok_push(d, 0), " a ");
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void without_a_decoder_spaces_part_the_tokens(qt *t)
{
    qn_tokenizer *tok = tok_open(t, "{\"model\":{\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}");
    const uint32_t ids[] = {0, 1, 0};
    char *text = NULL;
    size_t n = 0;
    QT_OK(t, tok && qn_tokenizer_decode(tok, &text, &n, ids, 3, true, NULL) == QN_OK);
    QT_STR(t, text, "a b a");
    qn_free(text);
    qn_tokenizer_free(tok);
}

static void pushing_allocates_nothing(qt *t)
{
    qn_tokenizer *tok = tok_open(t, spm);
    qn_detok *d = detok(t, tok, false, QN_LEAD_DECODE);
    qn_alloc_fail_after(0); /* would turn any allocation into a lost text */
    for (uint32_t k = 0; k < 1000; k++) QT_OK(t, qn_detok_push(d, k % 10).p != NULL);
    gives(t, qn_detok_flush(d, false), "");
    qn_alloc_fail_after(SIZE_MAX);
    qn_detok_free(d);
    qn_tokenizer_free(tok);
}

static void opening_survives_every_failed_allocation(qt *t)
{
    qn_tokenizer *tok = tok_open(t, spm);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_detok *d = NULL;
        qn_alloc_fail_after(n);
        rc = qn_detok_open(&d, tok, (qn_detok_options){true, QN_LEAD_DECODE}, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !d));
        qn_detok_free(d);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
    qn_tokenizer_free(tok);
}

QT_MAIN(QT(half_a_character_is_held_back), QT(special_tokens_show_only_when_asked),
        QT(a_skipped_token_does_not_break_a_character),
        QT(byte_level_keeps_its_first_space_unless_trimmed),
        QT(a_lone_space_waits_for_its_successor_when_trimmed),
        QT(sentencepiece_drops_one_space_of_the_whole), QT(byte_tokens_join_to_characters),
        QT(a_byte_run_is_judged_as_one_when_decoded_at_once), QT(metaspace_bares_the_first_token),
        QT(without_a_decoder_spaces_part_the_tokens), QT(pushing_allocates_nothing),
        QT(opening_survives_every_failed_allocation))
