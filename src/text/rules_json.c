/* SPDX-License-Identifier: Apache-2.0 */
/* rules_json.c - normalizers, pre-tokenizers, post-processors and decoders of a tokenizer.json.
 *
 * One table a family names what is known; each entry lists its keys, so a rule or a key that came up
 * after this was written is refused, never dropped. Sequences nest; depth is bounded by the JSON
 * reader.
 */
#include "text/rules_json.h"

#include "base/alloc.h"

typedef struct rule {
    const char *type, *keys;
    qn_code (*build)(qn_tokenizer *t, const qn_json *v, qn_err *err);
} rule;

enum { NEST_MAX = 16 };

static qn_str str_of(const qn_json *v)
{
    qn_str s = {NULL, 0};
    s.p = qn_json_str(v, &s.n);
    if (!s.p) s.n = 0;
    return s;
}

static bool is_null(const qn_json *v) { return qn_json_type_of(v) == QN_JSON_NULL; }

static bool listed(const char *key, const char *known)
{
    qn_str piece, rest = qn_str_z(known);
    while (qn_str_split(&piece, &rest, ' '))
        if (qn_str_eq_z(piece, key)) return true;
    return false;
}

qn_code qn_json_only_keys(const qn_json *v, const char *where, const char *known, qn_err *err)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    if (qn_json_type_of(v) != QN_JSON_OBJECT)
        return qn_fail(err, QN_E_FORMAT, "%s is no object", where);
    while (qn_json_next(v, &it, &key, &value))
        if (!listed(key, known))
            return qn_fail(err, QN_E_UNSUPPORTED, "%s: key \"%s\" is not known", where, key);
    return QN_OK;
}

qn_code qn_json_need_str(qn_str *out, const qn_json *v, const char *where, const char *key,
                         qn_err *err)
{
    *out = str_of(qn_json_get(v, key));
    return out->p ? QN_OK
                  : qn_fail(err, QN_E_FORMAT, "%s: \"%s\" is missing or no string", where, key);
}

/* A flag that may be absent; anything but a bool is FORMAT. */
static qn_code flag(bool *out, const qn_json *v, const char *where, const char *key, bool fallback,
                    qn_err *err)
{
    const qn_json *f = qn_json_get(v, key);
    if (f && !is_null(f) && qn_json_type_of(f) != QN_JSON_BOOL)
        return qn_fail(err, QN_E_FORMAT, "%s: \"%s\" is no bool", where, key);
    *out = qn_json_bool(f, fallback);
    return QN_OK;
}

static qn_code build(qn_tokenizer *t, const qn_json *v, const char *where, const rule *rules,
                     size_t n, qn_err *err)
{
    qn_str type;
    QN_TRY(qn_json_need_str(&type, v, where, "type", err));
    for (size_t k = 0; k < n; k++) {
        if (!qn_str_eq_z(type, rules[k].type)) continue;
        QN_TRY(qn_json_only_keys(v, rules[k].type, rules[k].keys, err));
        return rules[k].build(t, v, err);
    }
    return qn_fail(err, QN_E_UNSUPPORTED, "%s \"%.*s\"", where, QN_STR_ARG(type));
}

static qn_code each(qn_tokenizer *t, const qn_json *v, const char *key,
                    qn_code (*one)(qn_tokenizer *, const qn_json *, qn_err *), qn_err *err)
{
    const qn_json *list = qn_json_get(v, key);
    if (qn_json_type_of(list) != QN_JSON_ARRAY)
        return qn_fail(err, QN_E_FORMAT, "Sequence: \"%s\" is no array", key);
    for (size_t i = 0; i < qn_json_len(list); i++) QN_TRY(one(t, qn_json_at(list, i), err));
    return QN_OK;
}

/* {"String": s} into `text`, or {"Regex": s} into *re. */
static qn_code pattern(qn_buf *text, qn_regex **re, const qn_json *v, const char *where,
                       qn_err *err)
{
    const qn_json *p = qn_json_get(v, "pattern");
    const qn_str plain = str_of(qn_json_get(p, "String")), regex = str_of(qn_json_get(p, "Regex"));
    if (regex.p && !plain.p) return qn_regex_new(re, regex.p, regex.n, QN_REGEX_ONIG, err);
    if (!plain.p || regex.p)
        return qn_fail(err, QN_E_FORMAT, "%s: pattern is neither a String nor a Regex", where);
    if (plain.n == 0) return qn_fail(err, QN_E_UNSUPPORTED, "%s: empty pattern", where);
    return qn_buf_append(text, plain.p, plain.n, err);
}

/* --- normalizers ------------------------------------------------------------------------------ */

static qn_code norm_sequence(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    return each(t, v, "normalizers", qn_json_normalizer, err);
}

static qn_code norm_form(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    static const char names[][5] = {"NFC", "NFD", "NFKC", "NFKD"}; /* as qn_unorm */
    qn_norm_op *op = NULL;
    QN_TRY(qn_norm_add(t, &op, QN_NORM_FORM, err));
    for (size_t k = 0; k < QN_LEN(names); k++)
        if (qn_str_eq_z(str_of(qn_json_get(v, "type")), names[k])) op->form = (qn_unorm)k;
    return QN_OK;
}

static qn_code norm_replace(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_norm_op *op = NULL;
    qn_str content;
    QN_TRY(qn_norm_add(t, &op, QN_NORM_REPLACE, err));
    QN_TRY(qn_json_need_str(&content, v, "Replace", "content", err));
    QN_TRY(qn_buf_append(&op->content, content.p, content.n, err));
    return pattern(&op->pattern, &op->re, v, "Replace", err);
}

static qn_code norm_prepend(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_norm_op *op = NULL;
    qn_str content;
    QN_TRY(qn_norm_add(t, &op, QN_NORM_PREPEND, err));
    QN_TRY(qn_json_need_str(&content, v, "Prepend", "prepend", err));
    return qn_buf_append(&op->content, content.p, content.n, err);
}

static qn_code norm_lower(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_norm_op *op = NULL;
    (void)v;
    return qn_norm_add(t, &op, QN_NORM_LOWER, err);
}

static qn_code norm_accents(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_norm_op *op = NULL;
    (void)v;
    return qn_norm_add(t, &op, QN_NORM_STRIP_ACCENTS, err);
}

static qn_code norm_strip(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_norm_op *op = NULL;
    QN_TRY(qn_norm_add(t, &op, QN_NORM_STRIP, err));
    QN_TRY(flag(&op->left, v, "Strip", "strip_left", false, err));
    return flag(&op->right, v, "Strip", "strip_right", false, err);
}

qn_code qn_json_normalizer(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    static const rule rules[] = {
        {"Sequence", "type normalizers", norm_sequence},
        {"NFC", "type", norm_form},
        {"NFD", "type", norm_form},
        {"NFKC", "type", norm_form},
        {"NFKD", "type", norm_form},
        {"Replace", "type pattern content", norm_replace},
        {"Prepend", "type prepend", norm_prepend},
        {"Lowercase", "type", norm_lower},
        {"Strip", "type strip_left strip_right", norm_strip},
        {"StripAccents", "type", norm_accents},
    };
    return is_null(v) ? QN_OK : build(t, v, "normalizer", rules, QN_LEN(rules), err);
}

/* --- pre-tokenizers --------------------------------------------------------------------------- */

static qn_code pre_sequence(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    return each(t, v, "pretokenizers", qn_json_pre_tokenizer, err);
}

static qn_code behaviour(qn_split *out, const qn_json *v, const char *where, const char *fallback,
                         qn_err *err)
{
    static const char names[][19] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                     "Contiguous"}; /* as qn_split */
    qn_str name = str_of(qn_json_get(v, "behavior"));
    if (!name.p && fallback) name = qn_str_z(fallback);
    for (size_t k = 0; k < QN_LEN(names); k++)
        if (qn_str_eq_z(name, names[k])) {
            *out = (qn_split)k;
            return QN_OK;
        }
    return qn_fail(err, QN_E_UNSUPPORTED, "%s: behavior \"%.*s\"", where, QN_STR_ARG(name));
}

static qn_code pre_split(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_pretok_op *op = NULL;
    QN_TRY(qn_pre_add(t, &op, QN_PRE_SPLIT, err));
    QN_TRY(behaviour(&op->behaviour, v, "Split", NULL, err));
    QN_TRY(flag(&op->invert, v, "Split", "invert", false, err));
    return pattern(&op->pattern, &op->re, v, "Split", err);
}

static qn_code pre_byte_level(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_pretok_op *op = NULL;
    bool space = false, regex = false;
    QN_TRY(flag(&space, v, "ByteLevel", "add_prefix_space", true, err));
    QN_TRY(flag(&regex, v, "ByteLevel", "use_regex", true, err));
    if (space) QN_TRY(qn_pre_add(t, &op, QN_PRE_PREFIX_SPACE, err));
    if (regex) QN_TRY(qn_pre_add_regex(t, QN_STR(QN_GPT2_PATTERN), QN_SPLIT_ISOLATED, false, err));
    t->kind = QN_VOCAB_BYTE_BPE;
    return QN_OK;
}

static qn_code pre_metaspace(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    static const char schemes[][7] = {"always", "first", "never"}; /* as qn_prepend */
    qn_pretok_op *op = NULL;
    qn_str mark, scheme = str_of(qn_json_get(v, "prepend_scheme"));
    bool prefix = false;
    size_t k = 0;
    QN_TRY(qn_pre_add(t, &op, QN_PRE_METASPACE, err));
    QN_TRY(qn_json_need_str(&mark, v, "Metaspace", "replacement", err));
    QN_TRY(flag(&op->split, v, "Metaspace", "split", true, err));
    QN_TRY(flag(&prefix, v, "Metaspace", "add_prefix_space", true, err));
    if (mark.n == 0 || mark.n > 4)
        return qn_fail(err, QN_E_FORMAT, "Metaspace: replacement is no single character");
    if (scheme.p)
        while (k < QN_LEN(schemes) && !qn_str_eq_z(scheme, schemes[k])) k++;
    if (k == QN_LEN(schemes) || (!prefix && scheme.p && k != QN_PREPEND_NEVER))
        return qn_fail(err, QN_E_UNSUPPORTED, "Metaspace: prepend_scheme \"%.*s\"%s",
                       QN_STR_ARG(scheme), k == QN_LEN(schemes) ? "" : " against add_prefix_space");
    op->prepend = prefix ? (qn_prepend)k : QN_PREPEND_NEVER;
    return qn_buf_append(&op->pattern, mark.p, mark.n, err);
}

static qn_code pre_digits(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_pretok_op *op = NULL;
    bool each_one = false;
    QN_TRY(qn_pre_add(t, &op, QN_PRE_DIGITS, err));
    QN_TRY(flag(&each_one, v, "Digits", "individual_digits", false, err));
    op->behaviour = each_one ? QN_SPLIT_ISOLATED : QN_SPLIT_CONTIGUOUS;
    return QN_OK;
}

static qn_code pre_punctuation(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_pretok_op *op = NULL;
    QN_TRY(qn_pre_add(t, &op, QN_PRE_PUNCT, err));
    return behaviour(&op->behaviour, v, "Punctuation", "Isolated", err);
}

static qn_code pre_whitespace(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_pretok_op *op = NULL;
    (void)v;
    return qn_pre_add(t, &op, QN_PRE_WORDS, err);
}

static qn_code pre_whitespace_split(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    qn_pretok_op *op = NULL;
    (void)v;
    QN_TRY(qn_pre_add(t, &op, QN_PRE_SPACES, err));
    op->behaviour = QN_SPLIT_REMOVED;
    return QN_OK;
}

qn_code qn_json_pre_tokenizer(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    static const rule rules[] = {
        {"Sequence", "type pretokenizers", pre_sequence},
        {"Split", "type pattern behavior invert", pre_split},
        {"ByteLevel", "type add_prefix_space trim_offsets use_regex", pre_byte_level},
        {"Metaspace", "type replacement str_rep add_prefix_space prepend_scheme split",
         pre_metaspace},
        {"Digits", "type individual_digits", pre_digits},
        {"Punctuation", "type behavior", pre_punctuation},
        {"Whitespace", "type", pre_whitespace},
        {"WhitespaceSplit", "type", pre_whitespace_split},
    };
    if (is_null(v)) return QN_OK;
    if (t->kind == QN_VOCAB_BYTE_BPE) /* its letters would have to be split, not the text */
        return qn_fail(err, QN_E_UNSUPPORTED, "a pre-tokenizer behind ByteLevel");
    return build(t, v, "pre_tokenizer", rules, QN_LEN(rules), err);
}

/* --- post-processors -------------------------------------------------------------------------- */

static qn_code fix(uint32_t *ids, size_t *n, const qn_json *id, qn_err *err)
{
    const int64_t v = qn_json_int(id, -1);
    if (v < 0 || v >= UINT32_MAX)
        return qn_fail(err, QN_E_FORMAT, "post_processor: an id is no token id");
    if (*n == QN_TOK_FIX_MAX)
        return qn_fail(err, QN_E_UNSUPPORTED, "post_processor with more than %d tokens",
                       QN_TOK_FIX_MAX);
    ids[(*n)++] = (uint32_t)v;
    return QN_OK;
}

static qn_code post_nothing(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    (void)t; /* ByteLevel moves offsets, which we do not report */
    (void)v;
    (void)err;
    return QN_OK;
}

static qn_code post_sequence(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    return each(t, v, "processors", qn_json_post_processor, err);
}

/* [text, id] pairs around the text. */
static qn_code post_pair(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    if (t->n_prefix + t->n_suffix)
        return qn_fail(err, QN_E_UNSUPPORTED, "two post_processors that add tokens");
    QN_TRY(fix(t->prefix, &t->n_prefix, qn_json_at(qn_json_get(v, "cls"), 1), err));
    return fix(t->suffix, &t->n_suffix, qn_json_at(qn_json_get(v, "sep"), 1), err);
}

static qn_code template_item(qn_tokenizer *t, const qn_json *item, const qn_json *tokens,
                             bool *seen, qn_err *err)
{
    const qn_json *special = qn_json_get(item, "SpecialToken"),
                  *seq = qn_json_get(item, "Sequence");
    if (seq && !special) {
        if (*seen || !qn_str_eq_z(str_of(qn_json_get(seq, "id")), "A"))
            return qn_fail(err, QN_E_UNSUPPORTED,
                           "TemplateProcessing: single is more than one text");
        *seen = true;
        return QN_OK;
    }
    size_t n = 0;
    const char *name = qn_json_str(qn_json_get(special, "id"), &n);
    const qn_json *ids = name ? qn_json_get(qn_json_get(tokens, name), "ids") : NULL;
    if (qn_json_type_of(ids) != QN_JSON_ARRAY)
        return qn_fail(err, QN_E_FORMAT, "TemplateProcessing: \"%s\" has no ids",
                       name ? name : "?");
    for (size_t i = 0; i < qn_json_len(ids); i++)
        QN_TRY(*seen ? fix(t->suffix, &t->n_suffix, qn_json_at(ids, i), err)
                     : fix(t->prefix, &t->n_prefix, qn_json_at(ids, i), err));
    return QN_OK;
}

static qn_code post_template(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    const qn_json *single = qn_json_get(v, "single"), *tokens = qn_json_get(v, "special_tokens");
    bool seen = false;
    if (t->n_prefix + t->n_suffix)
        return qn_fail(err, QN_E_UNSUPPORTED, "two post_processors that add tokens");
    if (qn_json_type_of(single) != QN_JSON_ARRAY)
        return qn_fail(err, QN_E_FORMAT, "TemplateProcessing: \"single\" is no array");
    for (size_t i = 0; i < qn_json_len(single); i++)
        QN_TRY(template_item(t, qn_json_at(single, i), tokens, &seen, err));
    return seen ? QN_OK : qn_fail(err, QN_E_UNSUPPORTED, "TemplateProcessing: single has no text");
}

qn_code qn_json_post_processor(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    static const rule rules[] = {
        {"Sequence", "type processors", post_sequence},
        {"ByteLevel", "type add_prefix_space trim_offsets use_regex", post_nothing},
        {"TemplateProcessing", "type single pair special_tokens", post_template},
        {"BertProcessing", "type sep cls", post_pair},
        {"RobertaProcessing", "type sep cls trim_offsets add_prefix_space", post_pair},
    };
    return is_null(v) ? QN_OK : build(t, v, "post_processor", rules, QN_LEN(rules), err);
}

/* --- decoders --------------------------------------------------------------------------------- */

qn_code qn_decoder_add_replace(qn_decoder *d, qn_str from, qn_str to, qn_err *err)
{
    if (d->n_replace == QN_TOK_REPLACE_MAX)
        return qn_fail(err, QN_E_UNSUPPORTED, "more than %d replacements in a decoder",
                       QN_TOK_REPLACE_MAX);
    const size_t k = d->n_replace++;
    qn_buf_init(&d->from[k], QN_TOK_TOKEN_MAX);
    qn_buf_init(&d->to[k], QN_TOK_TOKEN_MAX);
    QN_TRY(qn_buf_append(&d->from[k], from.p, from.n, err));
    return qn_buf_append(&d->to[k], to.p, to.n, err);
}

/* The steps may only come in this order; each value is the step last seen. */
typedef enum stage { STAGE_REPLACE, STAGE_BYTES, STAGE_FUSED, STAGE_DONE } stage;

static qn_code misplaced(qn_err *err, const char *what)
{
    return qn_fail(err, QN_E_UNSUPPORTED, "decoder %s at this place of the sequence", what);
}

static qn_code decoder_strip(qn_decoder *d, const qn_json *v, qn_err *err)
{
    qn_str content;
    QN_TRY(qn_json_only_keys(v, "Strip", "type content start stop", err));
    QN_TRY(qn_json_need_str(&content, v, "Strip", "content", err));
    const int64_t start = qn_json_int(qn_json_get(v, "start"), -1);
    if (content.n == 0 || content.n > sizeof d->strip || start < 0)
        return qn_fail(err, QN_E_FORMAT, "Strip: content or start");
    if (qn_json_int(qn_json_get(v, "stop"), -1) != 0)
        return qn_fail(err, QN_E_UNSUPPORTED, "Strip at the end of a text");
    memcpy(d->strip, content.p, content.n);
    d->strip_len = content.n;
    d->strip_n = (size_t)start;
    return QN_OK;
}

static qn_code decoder_replace(qn_decoder *d, const qn_json *v, qn_err *err)
{
    qn_str from, to;
    QN_TRY(qn_json_only_keys(v, "Replace", "type pattern content", err));
    from = str_of(qn_json_get(qn_json_get(v, "pattern"), "String"));
    QN_TRY(qn_json_need_str(&to, v, "Replace", "content", err));
    if (from.n == 0)
        return qn_fail(err, QN_E_UNSUPPORTED, "decoder Replace without a String to replace");
    return qn_decoder_add_replace(d, from, to, err);
}

static qn_code decoder_metaspace(qn_decoder *d, const qn_json *v, qn_err *err)
{
    qn_str mark;
    QN_TRY(qn_json_only_keys(
        v, "Metaspace", "type replacement str_rep add_prefix_space prepend_scheme split", err));
    QN_TRY(qn_json_need_str(&mark, v, "Metaspace", "replacement", err));
    if (mark.n == 0) return qn_fail(err, QN_E_FORMAT, "Metaspace: replacement is empty");
    d->first_bare = qn_json_bool(qn_json_get(v, "add_prefix_space"), true) &&
                    !qn_str_eq_z(str_of(qn_json_get(v, "prepend_scheme")), "never");
    return qn_decoder_add_replace(d, mark, QN_STR(" "), err);
}

static qn_code decoder_step(qn_tokenizer *t, const qn_json *v, stage *at, unsigned depth,
                            qn_err *err)
{
    qn_str type;
    qn_decoder *d = &t->decoder;
    QN_TRY(qn_json_need_str(&type, v, "decoder", "type", err));
    if (qn_str_eq_z(type, "Sequence") && depth < NEST_MAX) {
        const qn_json *list = qn_json_get(v, "decoders");
        QN_TRY(qn_json_only_keys(v, "Sequence", "type decoders", err));
        for (size_t i = 0; i < qn_json_len(list); i++)
            QN_TRY(decoder_step(t, qn_json_at(list, i), at, depth + 1, err));
        return QN_OK;
    }
    if (qn_str_eq_z(type, "Replace")) {
        if (*at != STAGE_REPLACE) return misplaced(err, "Replace");
        return decoder_replace(d, v, err);
    }
    if (qn_str_eq_z(type, "ByteFallback")) {
        if (*at != STAGE_REPLACE) return misplaced(err, "ByteFallback");
        *at = STAGE_BYTES;
        d->byte_fallback = true;
        return QN_OK;
    }
    if (qn_str_eq_z(type, "Fuse")) {
        if (*at > STAGE_FUSED) return misplaced(err, "Fuse");
        *at = STAGE_FUSED;
        return QN_OK;
    }
    if (qn_str_eq_z(type, "Strip")) {
        if (*at != STAGE_FUSED) return misplaced(err, "Strip");
        *at = STAGE_DONE;
        return decoder_strip(d, v, err);
    }
    if (*at != STAGE_REPLACE || d->n_replace) return misplaced(err, "behind others");
    *at = STAGE_FUSED;
    if (qn_str_eq_z(type, "Metaspace")) return decoder_metaspace(d, v, err);
    if (!qn_str_eq_z(type, "ByteLevel"))
        return qn_fail(err, QN_E_UNSUPPORTED, "decoder \"%.*s\"", QN_STR_ARG(type));
    d->byte_level = true;
    return QN_OK;
}

qn_code qn_json_decoder(qn_tokenizer *t, const qn_json *v, qn_err *err)
{
    stage at = STAGE_REPLACE;
    t->decoder.spaced = is_null(v);
    return is_null(v) ? QN_OK : decoder_step(t, v, &at, 0, err);
}
