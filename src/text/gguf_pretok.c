/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_pretok.c - the splitting rules behind each `tokenizer.ggml.pre`.
 *
 * A GGUF file names the rules of its vocabulary instead of carrying them. The patterns are those of
 * the models' own tokenizer files; a name stands in this table only if its rules are known.
 */
#include "text/tokenizer_int.h"

/* A pattern is easier to compare when it is not realigned. */
/* clang-format off */
#define LLAMA3 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+" \
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+" \
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN35 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|" \
    " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* words whose case changes inside: upper then lower, each with the caseless letters */
#define CASED(tail) \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]" \
    "+" tail "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}" \
    "\\p{M}]*" tail
#define AFTER_WORDS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define O200K CASED("(?i:'s|'t|'re|'ve|'m|'ll|'d)?") "|\\p{N}{1,3}" AFTER_WORDS
#define TEKKEN CASED("") "|\\p{N}" AFTER_WORDS
#define DEEPSEEK_V3 \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?" \
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define BAILING \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++" \
    "[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define SEED_CODER \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" \
    " ?[^\\s\\p{L}\\p{N}\\r\\n]+" \
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define BLOOM " ?[^(\\s|.,!?…。，、।۔،)]+"
/* the cased letters of Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee ... */
#define CASED_LETTERS \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}" \
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}" \
    "\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}" \
    "\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}" \
    "\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}" \
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}" \
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}" \
    "\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}" \
    "\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}" \
    "\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}" \
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}" \
    "\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}" \
    "\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}" \
    "\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}" \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}" \
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}" \
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}" \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define EAST_ASIAN "[一-龥ࠀ-一가-퟿]+"
/* clang-format on */

enum { STEPS_MAX = 6 };
#define DIGITS "" /* as a step: each digit alone, by the digit test instead of a pattern */

typedef struct family {
    const char *names; /* parted by spaces */
    bool whole_first;  /* a span that is a token is taken whole before any merge */
    bool add_bos;      /* where the file does not say */
    bool nfc;          /* its tokenizer.json normalizes, which the file cannot say */
    const char *step[STEPS_MAX];
} family;

static const family families[] = {
    {"gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat mellum a.x-4.0",
     false,
     false,
     false,
     {QN_GPT2_PATTERN}},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b",
     false,
     false,
     false,
     {DIGITS, QN_GPT2_PATTERN}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2",
     true,
     true,
     false,
     {LLAMA3}},
    {"dbrx smaug-bpe glm4 chatglm-bpe", false, false, false, {LLAMA3}},
    {"qwen2 megrez", false, false, true, {QWEN2}},
    {"stablelm2 deepseek-r1-qwen hunyuan solar-open grok-2 kormo", false, false, false, {QWEN2}},
    {"qwen35", false, false, false, {QWEN35}},
    {"gpt-4o llama4 kanana2", true, false, false, {O200K}},
    {"minimax-m2", false, false, false, {O200K}},
    {"tekken", true, true, false, {TEKKEN}},
    {"deepseek-v3 hunyuan-dense joyai-llm",
     false,
     false,
     false,
     {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3}},
    {"deepseek-llm",
     false,
     false,
     false,
     {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
      EAST_ASIAN, "\\p{N}+"}},
    {"deepseek-coder",
     false,
     false,
     false,
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", EAST_ASIAN, "\\p{N}"}},
    {"falcon", false, false, false, {"[\\p{P}$+<=>^~|`]+", QN_GPT2_PATTERN, "[0-9][0-9][0-9]"}},
    {"default",
     false,
     false,
     false,
     {"[\\p{P}$+<=>^~|]+", QN_GPT2_PATTERN, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {"bailingmoe bailingmoe2 llada-moe", false, false, false, {BAILING}},
    {"seed-coder", false, false, false, {SEED_CODER}},
    {"bloom poro-chat gpt3-finnish", false, false, false, {BLOOM}},
    {"viking", false, false, false, {BLOOM, "\\p{N}"}},
};

static const family *find(qn_str pre)
{
    for (size_t k = 0; k < QN_LEN(families); k++) {
        qn_str name, rest = qn_str_z(families[k].names);
        while (qn_str_split(&name, &rest, ' '))
            if (qn_str_eq(name, pre)) return &families[k];
    }
    return NULL;
}

qn_code qn_gguf_pretok(qn_tokenizer *t, qn_str pre, bool *add_bos, qn_err *err)
{
    const family *f = find(pre.n ? pre : QN_STR("default"));
    if (!f)
        return qn_fail(err, QN_E_UNSUPPORTED, "tokenizer.ggml.pre \"%.*s\" is not known",
                       QN_STR_ARG(pre));
    t->ignore_merges = f->whole_first;
    *add_bos = f->add_bos;
    if (f->nfc) {
        qn_norm_op *op = NULL;
        QN_TRY(qn_norm_add(t, &op, QN_NORM_FORM, err));
        op->form = QN_UNORM_NFC;
    }
    for (size_t k = 0; k < STEPS_MAX && f->step[k]; k++) {
        qn_pretok_op *op = NULL;
        if (f->step[k][0] != '\0') {
            QN_TRY(qn_pre_add_regex(t, qn_str_z(f->step[k]), QN_SPLIT_ISOLATED, false, err));
            continue;
        }
        QN_TRY(qn_pre_add(t, &op, QN_PRE_DIGITS, err));
        op->behaviour = QN_SPLIT_ISOLATED;
    }
    return QN_OK;
}
