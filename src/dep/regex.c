/* SPDX-License-Identifier: Apache-2.0 */
/* regex.c - PCRE2 behind regex.h, its heap counted by our allocator.
 *
 * Searches run as machine code where the system allows it (JIT), with a stack of their own that has a
 * ceiling; else in PCRE2's interpreter, whose heap has one. Texts are known to be UTF-8, so the
 * check that would make every search linear in the whole text is off.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "dep/regex.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "dep/regex_int.h"

#include <pcre2.h>

enum {
    PATTERN_MAX = 64 << 10, /* bytes, before and (times 4) after rewriting */
    NEST_MAX = 100,
    JIT_STACK_MIN = 32 << 10,
    JIT_STACK_MAX = 4 << 20,
    HEAP_MAX_KIB = 64 << 10
};

struct qn_regex {
    pcre2_general_context *memory;
    pcre2_code *code;
};

struct qn_regex_scan {
    pcre2_general_context *memory;
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
};

static void *take(PCRE2_SIZE n, void *ctx)
{
    (void)ctx;
    return qn_alloc(n);
}

static void give(void *p, void *ctx)
{
    (void)ctx;
    qn_free(p);
}

static qn_code compile(qn_regex *re, const char *pattern, size_t n, qn_err *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *how = pcre2_compile_context_create(re->memory);
    if (!how) return qn_fail(err, QN_E_NOMEM, "regular expression");
    pcre2_set_newline(how, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(how, NEST_MAX);
    re->code = pcre2_compile((PCRE2_SPTR)pattern, n,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &code, &at, how);
    pcre2_compile_context_free(how);
    if (!re->code) {
        char text[128] = "";
        if (code == PCRE2_ERROR_HEAP_FAILED) return qn_fail(err, QN_E_NOMEM, "regular expression");
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
        return qn_fail(err, QN_E_FORMAT, "regular expression, byte %zu: %s", at, text);
    }
    /* Refused by some hardened systems; the interpreter then serves. */
    (void)pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);
    return QN_OK;
}

qn_code qn_regex_new(qn_regex **out, const char *pattern, size_t n, qn_regex_dialect dialect,
                     qn_err *err)
{
    qn_code rc = QN_OK;
    qn_buf text;
    *out = NULL;
    qn_buf_init(&text, (size_t)PATTERN_MAX * 4);
    if (n > PATTERN_MAX)
        return qn_fail(err, QN_E_LIMIT, "regular expression of %zu bytes, at most %d", n,
                       PATTERN_MAX);
    qn_regex *re = qn_zalloc(sizeof *re);
    if (!re) return qn_fail(err, QN_E_NOMEM, "regular expression");
    re->memory = pcre2_general_context_create(take, give, NULL);
    if (!re->memory) {
        rc = qn_fail(err, QN_E_NOMEM, "regular expression");
        goto out;
    }
    if (dialect == QN_REGEX_ONIG)
        QN_TRY_OUT(qn_regex_from_onig(&text, pattern, n, err));
    else
        QN_TRY_OUT(qn_buf_append(&text, pattern, n, err));
    QN_TRY_OUT(compile(re, qn_buf_text(&text), text.len, err));
    *out = re;
    re = NULL;
out:
    qn_buf_fini(&text);
    qn_regex_free(re);
    return rc;
}

void qn_regex_free(qn_regex *re)
{
    if (!re) return;
    pcre2_code_free(re->code);
    pcre2_general_context_free(re->memory);
    qn_free(re);
}

qn_code qn_regex_scan_new(qn_regex_scan **out, qn_err *err)
{
    *out = NULL;
    qn_regex_scan *s = qn_zalloc(sizeof *s);
    if (!s) return qn_fail(err, QN_E_NOMEM, "regular expression scan");
    s->memory = pcre2_general_context_create(take, give, NULL);
    if (s->memory) {
        s->context = pcre2_match_context_create(s->memory);
        s->data = pcre2_match_data_create(1, s->memory);
        s->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, s->memory);
    }
    int has_jit = 0;
    (void)pcre2_config(PCRE2_CONFIG_JIT, &has_jit);
    if (!s->context || !s->data || (has_jit == 1 && !s->stack)) {
        qn_regex_scan_free(s);
        return qn_fail(err, QN_E_NOMEM, "regular expression scan");
    }
    if (s->stack) pcre2_jit_stack_assign(s->context, NULL, s->stack);
    pcre2_set_heap_limit(s->context, HEAP_MAX_KIB);
    *out = s;
    return QN_OK;
}

void qn_regex_scan_free(qn_regex_scan *s)
{
    if (!s) return;
    pcre2_jit_stack_free(s->stack);
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->context);
    pcre2_general_context_free(s->memory);
    qn_free(s);
}

qn_code qn_regex_find(bool *found, qn_regex_match *m, qn_regex_scan *s, const qn_regex *re,
                      const char *text, size_t n, size_t from, qn_err *err)
{
    /* A sane pattern takes a few steps a byte; ten million cover the short texts. */
    const size_t steps = n < (1u << 25) ? n * 64 + 10000000 : UINT32_MAX;
    pcre2_set_match_limit(s->context, (uint32_t)steps);
    *found = false;
    const int got =
        pcre2_match(re->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK, s->data, s->context);
    if (got == PCRE2_ERROR_NOMATCH) return QN_OK;
    if (got == PCRE2_ERROR_NOMEMORY) return qn_fail(err, QN_E_NOMEM, "regular expression search");
    if (got < 0) {
        char why[128] = "";
        (void)pcre2_get_error_message(got, (PCRE2_UCHAR *)why, sizeof why);
        return qn_fail(err, QN_E_LIMIT, "regular expression gave up in %zu bytes from %zu: %s", n,
                       from, why);
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(s->data);
    m->begin = at[0];
    m->end = at[1] < at[0] ? at[0] : at[1]; /* \K inside a lookahead may turn them round */
    *found = true;
    return QN_OK;
}
