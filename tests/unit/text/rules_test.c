/* SPDX-License-Identifier: Apache-2.0 */
/* rules_test.c - each rule of a tokenizer.json on a vocabulary small enough to work out by hand, and
 * each thing that is refused. */
#include "base/alloc.h"
#include "tok_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\xE2\x96\x81"
#define ADDED(content, flags)                             \
    "\"added_tokens\":[{\"id\":20,\"content\":\"" content \
    "\",\"special\":true,\"normalized\":false" flags "}],"

static void one(qt *t, const char *json, const char *text, const char *want)
{
    qn_tokenizer *tok = tok_open(t, json);
    tok_plain(t, tok, text, want);
    qn_tokenizer_free(tok);
}

static void merges_by_rank_and_from_the_left(qt *t)
{
    qn_tokenizer *tok = tok_open(t, TINY("", ""));
    tok_plain(t, tok, "abc", "5");
    tok_plain(t, tok, "ababc", "4 5");
    tok_plain(t, tok, "bca", "1 2 0");
    tok_plain(t, tok, "aab", "0 4");
    tok_plain(t, tok, "", "");
    qn_tokenizer_free(tok);
}

static void of_two_neighbouring_ranks_the_lower_goes_first(qt *t)
{
    const char *vocab = "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4},"
                        "\"merges\":[\"%s\",\"%s\"]}}";
    char json[256];
    snprintf(json, sizeof json, vocab, "a b", "b c");
    one(t, json, "abc", "3 2");
    snprintf(json, sizeof json, vocab, "b c", "a b"); /* not only from the left */
    one(t, json, "abc", "0 4");
}

static void merges_may_be_pairs(qt *t)
{
    one(t, "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]]}}", "abb",
        "2 1");
}

static void characters_without_a_token_vanish_without_an_unknown_token(qt *t)
{
    one(t, TINY("", ""), "azb", "4"); /* as the reference: nothing stands between a and b */
}

static void unknown_characters_fuse_only_when_asked(qt *t)
{
    one(t, TINY("", ",\"unk_token\":\"u\""), "azzb", "0 7 7 1");
    one(t, TINY("", ",\"unk_token\":\"u\",\"fuse_unk\":true"), "azzb", "0 7 1");
    one(t, TINY("", ",\"unk_token\":\"u\""), "zz", "7 7");
}

static void a_whole_span_wins_over_merges_when_asked(qt *t)
{
    const char *vocab = "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abb\":3},"
                        "\"merges\":[\"a b\"],\"ignore_merges\":%s}}";
    char json[256];
    snprintf(json, sizeof json, vocab, "true");
    one(t, json, "abb", "3");
    snprintf(json, sizeof json, vocab, "false");
    one(t, json, "abb", "2 1");
}

static void prepends_and_replaces(qt *t)
{
    const char *json =
        TINY("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
             "\"Prepend\",\"prepend\":\"" MARK "\"},{\"type\":\"Replace\",\"pattern\":"
             "{\"String\":\" \"},\"content\":\"" MARK "\"}]},",
             "");
    one(t, json, "a a", "6 6");
    one(t, json, " a", "3 6");
    one(t, json, "", "");
}

static void normalizers_lower_strip_and_decompose(qt *t)
{
    one(t, TINY("\"normalizer\":{\"type\":\"Lowercase\"},", ""), "ABC", "5");
    one(t,
        TINY("\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false},", ""),
        " \xE3\x80\x80 a ", "0 8");
    one(t,
        TINY("\"normalizer\":{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true},", ""),
        " a \xC2\xA0", "8 0");
    one(t,
        TINY("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":"
             "\"StripAccents\"}]},",
             ""),
        "\xC3\xA1"
        "b",
        "4");
    one(t, TINY("\"normalizer\":{\"type\":\"NFKC\"},", ""), "\xEF\xBD\x81\xEF\xBD\x82", "4");
    one(t,
        TINY("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x+\"},\"content\":"
             "\"b\"},",
             ""),
        "axxxc", "5");
}

static void splits_by_every_behaviour(qt *t)
{
    static const struct {
        const char *behaviour, *invert, *want;
    } cases[] = {
        /* of "ab-ab--ab", with "-" unknown and "ab" a merge that a border forbids or not */
        {"Isolated", "false", "4 7 4 7 7 4"},
        {"Removed", "false", "4 4 4"},
        {"Removed", "true", "7 7 7"},
        {"MergedWithPrevious", "false", "4 7 4 7 7 4"},
        {"MergedWithNext", "false", "4 7 4 7 7 4"},
        {"Contiguous", "false", "4 7 4 7 7 4"},
    };
    for (size_t k = 0; k < QT_LEN(cases); k++) {
        char json[1024];
        snprintf(json, sizeof json,
                 TINY("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"-\"},"
                      "\"behavior\":\"%s\",\"invert\":%s},",
                      ",\"unk_token\":\"u\""),
                 cases[k].behaviour, cases[k].invert);
        one(t, json, "ab-ab--ab", cases[k].want);
    }
}

/* With fused unknowns the borders show: one unknown a span. */
static void behaviours_put_the_border_where_they_say(qt *t)
{
    static const struct {
        const char *behaviour, *want;
    } cases[] = {
        /* of "x-x--x", all unknown */
        {"Isolated", "7 7 7 7 7 7"},       /* x - x - - x */
        {"MergedWithPrevious", "7 7 7 7"}, /* x- x- - x */
        {"MergedWithNext", "7 7 7 7"},     /* x -x - -x */
        {"Contiguous", "7 7 7 7 7"},       /* x - x -- x */
    };
    for (size_t k = 0; k < QT_LEN(cases); k++) {
        char json[1024];
        snprintf(json, sizeof json,
                 TINY("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"-\"},"
                      "\"behavior\":\"%s\",\"invert\":false},",
                      ",\"unk_token\":\"u\",\"fuse_unk\":true"),
                 cases[k].behaviour);
        one(t, json, "x-x--x", cases[k].want);
    }
}

static void splits_digits_punctuation_words_and_spaces(qt *t)
{
#define UNK ",\"unk_token\":\"u\",\"fuse_unk\":true"
    one(t, TINY("\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true},", UNK),
        "x12\xD9\xA3y", "7 7 7 7 7");
    one(t, TINY("\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":false},", UNK),
        "x12\xD9\xA3y", "7 7 7");
    one(t, TINY("\"pre_tokenizer\":{\"type\":\"Punctuation\"},", UNK), "x!?y", "7 7 7 7");
    one(t, TINY("\"pre_tokenizer\":{\"type\":\"Whitespace\"},", UNK), " x_1 +-\xC2\xA0y ", "7 7 7");
    one(t, TINY("\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},", UNK), " x+ \ny ", "7 7");
}

static void metaspace_prepends_by_its_scheme(qt *t)
{
#define META(scheme, split)                                                             \
    TINY("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" MARK            \
         "\",\"prepend_scheme\":\"" scheme "\",\"split\":" split "}," ADDED("<s>", ""), \
         "")
    one(t, META("always", "true"), "a a<s>a", "6 6 20 6");
    one(t, META("first", "true"), "a a<s>a", "6 6 20 0");
    one(t, META("never", "false"), "a a<s>a", "0 6 20 0");
    one(t, META("always", "true"), " a", "6");
}

static void added_tokens_take_spaces_and_stand_alone_as_told(qt *t)
{
    one(t, TINY(ADDED("<s>", ""), ""), "a <s> a", "0 8 20 8 0");
    one(t, TINY(ADDED("<s>", ",\"lstrip\":true"), ""), "a <s> a", "0 20 8 0");
    one(t, TINY(ADDED("<s>", ",\"rstrip\":true"), ""), "a <s> a", "0 8 20 0");
    one(t, TINY(ADDED("<s>", ",\"rstrip\":true,\"lstrip\":true"), ""), "a <s>  <s> a", "0 20 20 0");
    one(t, TINY(ADDED("bc", ",\"single_word\":true"), ""), "abc bc bcb", "5 8 20 8 1 2 1");
}

static void the_longest_added_token_wins(qt *t)
{
    const char *json = TINY("\"added_tokens\":[{\"id\":20,\"content\":\"<s\",\"normalized\":false},"
                            "{\"id\":21,\"content\":\"<s>\",\"normalized\":false},"
                            "{\"id\":22,\"content\":\"<\",\"normalized\":false}],",
                            "");
    one(t, json, "<s><sa<<s>", "21 20 0 22 21");
}

static void a_normalized_added_token_is_found_after_normalizing(qt *t)
{
    const char *json = TINY("\"normalizer\":{\"type\":\"Lowercase\"},\"added_tokens\":[{\"id\":20,"
                            "\"content\":\"XY\",\"normalized\":true}],",
                            "");
    qn_tokenizer *tok = tok_open(t, json);
    tok_plain(t, tok, "axYb", "0 20 1");
    const uint32_t id = 20;
    char *text = NULL;
    size_t n = 0;
    QT_OK(t, tok && qn_tokenizer_decode(tok, &text, &n, &id, 1, false, NULL) == QN_OK);
    QT_STR(t, text, "xy"); /* the reference decodes the normalized spelling */
    qn_free(text);
    qn_tokenizer_free(tok);
}

static void special_spellings_are_text_unless_parsed(qt *t)
{
    qn_tokenizer *tok = tok_open(t, TINY(ADDED("ab", ""), ""));
    tok_ids(t, tok, "abc", 3, (qn_encode_options){.parse_special = true}, "4 2");
    tok_ids(t, tok, "abc", 3, (qn_encode_options){.parse_special = false}, "5");
    qn_tokenizer_free(tok);
}

/* A token that only the added list has must never come out of BPE. */
static void strangers_cannot_spell_a_special_token(qt *t)
{
    qn_tokenizer *tok = tok_open(t, TINY(ADDED("ba", ""), ",\"ignore_merges\":true"));
    tok_ids(t, tok, "ba", 2, (qn_encode_options){.parse_special = true}, "20");
    tok_ids(t, tok, "ba", 2, (qn_encode_options){.parse_special = false}, "1 0");
    qn_tokenizer_free(tok);
}

static void templates_put_tokens_at_both_ends(qt *t)
{
    const char *json = TINY(
        ADDED(
            "<s>",
            "") "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{"
                "\"SpecialToken\":{\"id\":\"S\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_"
                "id\":0}},"
                "{\"SpecialToken\":{\"id\":\"E\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{"
                "\"S\":{"
                "\"id\":\"S\",\"ids\":[20],\"tokens\":[\"<s>\"]},\"E\":{\"id\":\"E\",\"ids\":[0,1],"
                "\"tokens\":[\"a\",\"b\"]}}},",
        "");
    qn_tokenizer *tok = tok_open(t, json);
    tok_ids(t, tok, "c", 1, (qn_encode_options){.add_special = true}, "20 2 0 1");
    tok_ids(t, tok, "", 0, (qn_encode_options){.add_special = true}, "20 0 1");
    tok_ids(t, tok, "c", 1, (qn_encode_options){.add_special = false}, "2");
    QT_OK(t, tok && qn_tokenizer_adds_bos(tok) && qn_tokenizer_bos(tok) == 20);
    qn_tokenizer_free(tok);
}

static void ill_formed_input_reads_as_replacement_characters(qt *t)
{
    const char *json = "{\"model\":{\"vocab\":{\"a\":0,\"\xEF\xBF\xBD\":1,\"b\":2},\"merges\":[]}}";
    qn_tokenizer *tok = tok_open(t, json);
    static const struct {
        const char *text;
        size_t n;
        const char *want;
    } cases[] = {
        {"a\xFF"
         "b",
         3, "0 1 2"},
        {"a\xE2\x82"
         "b",
         4, "0 1 2"}, /* one maximal subpart */
        {"a\xE2\x28\xA1"
         "b",
         5, "0 1 1 2"},               /* "(" has no token */
        {"\xED\xA0\x80", 3, "1 1 1"}, /* a surrogate is three faults */
        {"\xC0\xAF", 2, "1 1"},
        {"\xF0\x9F\x98", 3, "1"},
        {"\xF5"
         "a",
         2, "1 0"},
    };
    for (size_t k = 0; k < QT_LEN(cases); k++)
        tok_ids(t, tok, cases[k].text, cases[k].n, (qn_encode_options){0}, cases[k].want);
    qn_tokenizer_free(tok);
}

/* A megabyte without a border is one span; a quadratic loop would not come back. */
static void a_megabyte_without_spaces_is_encoded(qt *t)
{
    const size_t n = 3 << 18;
    char *text = malloc(n);
    qn_ids ids = {0};
    qn_tokenizer *tok = tok_open(t, TINY("", ""));
    for (size_t k = 0; k < n; k++) text[k] = "abc"[k % 3];
    QT_OK(t, tok && qn_tokenizer_encode(tok, &ids, text, n, (qn_encode_options){0}, NULL) == QN_OK);
    QT_EQ(t, ids.n, n / 3);
    for (size_t k = 0; k < ids.n; k++)
        if (ids.id[k] != 5) QT_OK(t, false);
    qn_ids_fini(&ids);
    qn_tokenizer_free(tok);
    free(text);
}

static void a_config_names_special_tokens_and_may_add_them(qt *t)
{
    static const char json[] = TINY(ADDED("<s>", ""), "");
    static const char config[] =
        "{\"bos_token\":{\"content\":\"<s>\"},\"eos_token\":\"c\",\"pad_token\":"
        "\"b\",\"unk_token\":\"u\",\"tokenizer_class\":\"LlamaTokenizerFast\","
        "\"add_bos_token\":true,\"add_eos_token\":true}";
    qn_tokenizer *tok = NULL;
    size_t n = 0;
    QT_OK(t,
          qn_tokenizer_from_json(&tok, json, strlen(json), config, strlen(config), NULL) == QN_OK);
    if (!tok) return;
    tok_ids(t, tok, "a", 1, (qn_encode_options){.add_special = true}, "20 0 2");
    QT_EQ(t, qn_tokenizer_bos(tok), 20);
    QT_EQ(t, qn_tokenizer_eos(tok), 2);
    QT_EQ(t, qn_tokenizer_pad(tok), 1);
    QT_EQ(t, qn_tokenizer_unk(tok), 7);
    const uint32_t *ends = qn_tokenizer_ends(tok, &n);
    QT_OK(t, n == 1 && ends[0] == 2);
    qn_tokenizer *plain = tok_open(t, json);
    QT_OK(t, qn_tokenizer_digest(tok) != qn_tokenizer_digest(plain));
    qn_tokenizer_free(plain);
    qn_tokenizer_free(tok);
    QT_EQ(t, qn_tokenizer_from_json(&tok, json, strlen(json), "{", 1, NULL), QN_E_FORMAT);
}

static void tells_what_a_token_is(qt *t)
{
    qn_tokenizer *tok = tok_open(t, TINY(ADDED("<|im_end|>", ""), ""));
    char bytes[2];
    size_t n = 0;
    if (!tok) return;
    QT_EQ(t, qn_tokenizer_size(tok), 21);
    QT_EQ(t, qn_token_id(tok, "abc", 3), 5);
    QT_EQ(t, qn_token_id(tok, "abd", 3), QN_TOKEN_NONE);
    QT_OK(t, qn_str_eq_z(qn_token_text(tok, 5), "abc"));
    QT_OK(t, qn_token_text(tok, 15).p == NULL && qn_token_text(tok, 99).n == 0);
    QT_EQ(t, qn_token_kind_of(tok, 5), QN_TOKEN_NORMAL);
    QT_EQ(t, qn_token_kind_of(tok, 15), QN_TOKEN_UNUSED);
    QT_EQ(t, qn_token_kind_of(tok, 20), QN_TOKEN_CONTROL);
    QT_EQ(t, qn_token_bytes(tok, 5, bytes, 2), 3);
    QT_OK(t, memcmp(bytes, "ab", 2) == 0);
    QT_EQ(t, qn_token_bytes(tok, 99, bytes, 2), 0);
    QT_EQ(t, qn_token_bytes_max(tok), 10);
    const uint32_t *ends = qn_tokenizer_ends(tok, &n);
    QT_OK(t, n == 1 && ends[0] == 20);
    qn_tokenizer_free(tok);
}

static void unknown_rules_are_refused_by_name(qt *t)
{
    const qn_code no = QN_E_UNSUPPORTED;
    tok_refused(t, "{\"model\":{\"type\":\"WordPiece\"}}", no, "WordPiece");
    tok_refused(t, TINY("\"normalizer\":{\"type\":\"Precompiled\"},", ""), no, "Precompiled");
    tok_refused(t, TINY("\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"},", ""), no,
                "UnicodeScripts");
    tok_refused(t, TINY("\"post_processor\":{\"type\":\"Foo\"},", ""), no, "Foo");
    tok_refused(t, TINY("\"decoder\":{\"type\":\"CTC\"},", ""), no, "CTC");
    tok_refused(t, TINY("", ",\"dropout\":0.1"), no, "dropout");
    tok_refused(t, TINY("", ",\"end_of_word_suffix\":\"</w>\""), no, "end_of_word_suffix");
    tok_refused(t, TINY("", ",\"continuing_subword_prefix\":\"##\""), no,
                "continuing_subword_prefix");
    tok_refused(t, TINY("", ",\"future\":1"), no, "future");
    tok_refused(t, TINY("\"future\":1,", ""), no, "future");
    tok_refused(t, TINY("\"normalizer\":{\"type\":\"NFC\",\"x\":1},", ""), no, "\"x\"");
    tok_refused(t, TINY("\"added_tokens\":[{\"id\":9,\"content\":\"x\",\"y\":1}],", ""), no,
                "\"y\"");
    tok_refused(t,
                TINY("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
                     "\"behavior\":\"Odd\"},",
                     ""),
                no, "Odd");
    tok_refused(t,
                TINY("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},"
                     "\"behavior\":\"Isolated\"},",
                     ""),
                no, "intersection");
    tok_refused(t,
                TINY("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\"},"
                     "\"behavior\":\"Isolated\"},",
                     ""),
                no, "empty");
    tok_refused(t,
                TINY("\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                     "\"ByteLevel\"},{\"type\":\"Whitespace\"}]},",
                     ""),
                no, "behind ByteLevel");
    tok_refused(t,
                TINY("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\","
                     "\"prepend_scheme\":\"odd\"},",
                     ""),
                no, "odd");
    tok_refused(
        t, TINY("\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0},", ""),
        no, "Strip");
    tok_refused(
        t,
        TINY("\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":"
             "\"Strip\",\"content\":\" \",\"start\":0,\"stop\":1}]},",
             ""),
        no, "end of a text");
    tok_refused(
        t,
        TINY("\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":"
             "\"ByteFallback\"}]},",
             ""),
        no, "ByteFallback");
    tok_refused(
        t,
        TINY("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{"
             "\"id\":\"B\"}}],\"special_tokens\":{}},",
             ""),
        no, "single");
    tok_refused(t, TINY("\"pre_tokenizer\":{\"type\":\"ByteLevel\"},", ",\"byte_fallback\":true"),
                no, "byte_fallback");
}

static void wrong_files_are_refused_with_place_and_thing(qt *t)
{
    const qn_code bad = QN_E_FORMAT;
    tok_refused(t, "", bad, "ends at byte 0");
    tok_refused(t, "[]", bad, "'{'");
    tok_refused(t, "{}", bad, "model");
    tok_refused(t, "{\"model\":7}", bad, "model");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0}}}", bad, "merges");
    tok_refused(t, "{\"model\":{\"vocab\":{},\"merges\":[]}}", bad, "empty");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}}", bad,
                "\"a\" is given twice");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", bad,
                "id 0 is given twice");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", bad, "whole number");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":1.5},\"merges\":[]}}", bad, "whole number");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":01},\"merges\":[]}}", bad, "whole number");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":99999999999},\"merges\":[]}}", bad, "2^32");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":4000000000},\"merges\":[]}}", QN_E_LIMIT,
                "4000000000");
    tok_refused(t, "{\"model\":{\"vocab\":{\"\\ud800\":1},\"merges\":[]}}", bad, "surrogate");
    tok_refused(t, "{\"model\":{\"vocab\":{\"\\q\":1},\"merges\":[]}}", bad, "escape");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", bad, "no pair");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", bad,
                "the whole is no token");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"b a\"]}}", bad, "the left part");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0},\"vocab\":{},\"merges\":[]}}", bad, "twice");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"z\"}}", bad,
                "\"z\"");
    tok_refused(t, "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}", bad, "ends at byte");
    tok_refused(t, "{\"model\":{\"vocab\":{\"\xFF\":0},\"merges\":[]}}", bad, "UTF-8");
    tok_refused(t, TINY("\"added_tokens\":[{\"id\":0,\"content\":\"x\"}],", ""), bad,
                "id 0 is given twice");
    tok_refused(t, TINY("\"added_tokens\":[{\"content\":\"x\"}],", ""), bad, "no id");
    tok_refused(t, TINY("\"normalizer\":{\"type\":\"Prepend\"},", ""), bad, "prepend");
    tok_refused(t, TINY("\"normalizer\":{\"type\":\"Strip\",\"strip_left\":1},", ""), bad,
                "strip_left");
    tok_refused(
        t,
        TINY("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":"
             "\"Isolated\"},",
             ""),
        bad, "not closed");
    tok_refused(
        t,
        TINY("\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"x\",77],\"sep\":[\"a\","
             "0]},",
             ""),
        bad, "77");
}

QT_MAIN(QT(merges_by_rank_and_from_the_left), QT(of_two_neighbouring_ranks_the_lower_goes_first),
        QT(merges_may_be_pairs), QT(characters_without_a_token_vanish_without_an_unknown_token),
        QT(unknown_characters_fuse_only_when_asked), QT(a_whole_span_wins_over_merges_when_asked),
        QT(prepends_and_replaces), QT(normalizers_lower_strip_and_decompose),
        QT(splits_by_every_behaviour), QT(behaviours_put_the_border_where_they_say),
        QT(splits_digits_punctuation_words_and_spaces), QT(metaspace_prepends_by_its_scheme),
        QT(added_tokens_take_spaces_and_stand_alone_as_told), QT(the_longest_added_token_wins),
        QT(a_normalized_added_token_is_found_after_normalizing),
        QT(special_spellings_are_text_unless_parsed), QT(strangers_cannot_spell_a_special_token),
        QT(templates_put_tokens_at_both_ends), QT(ill_formed_input_reads_as_replacement_characters),
        QT(a_megabyte_without_spaces_is_encoded),
        QT(a_config_names_special_tokens_and_may_add_them), QT(tells_what_a_token_is),
        QT(unknown_rules_are_refused_by_name), QT(wrong_files_are_refused_with_place_and_thing))
