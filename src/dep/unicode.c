/* SPDX-License-Identifier: Apache-2.0 */
/* unicode.c - utf8proc's tables, completed and corrected by unicode_new.inc.
 *
 * Normalising is ours above the level of one code point: utf8proc orders combining marks with a sort
 * that takes quadratic time on a long run of them, which a stranger's text may contain. Here a run is
 * sorted by counting, and the work goes in chunks that end where nothing can compose:
 *
 *     text -> decompose each code point -> order marks -> compose -> UTF-8
 *             a chunk ends before a code point below U+0300 or an ideograph: neither is a mark nor
 *             composes with what stands before it
 */
#include "dep/unicode.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

struct point_range {
    uint32_t first, last;
};
struct point_pair {
    uint32_t from, to;
};
#include "dep/unicode_new.inc"

enum { CHUNK = 4096, LONGEST = 32 /* code points of one decomposition; U+FDFA has 18 */ };

const qn_category_range *qn_unicode_new_categories(size_t *n)
{
    *n = QN_LEN(new_category);
    return new_category;
}

const qn_script_range *qn_unicode_new_scripts(size_t *n)
{
    *n = QN_LEN(new_script);
    return new_script;
}

static bool in_ranges(const struct point_range *r, size_t n, uint32_t c)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (c > r[mid].last)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && c >= r[lo].first;
}

qn_ucat qn_unicode_category(uint32_t c)
{
    static const uint8_t from_utf8proc[] = {
        [UTF8PROC_CATEGORY_CN] = QN_UCAT_CN, [UTF8PROC_CATEGORY_LU] = QN_UCAT_LU,
        [UTF8PROC_CATEGORY_LL] = QN_UCAT_LL, [UTF8PROC_CATEGORY_LT] = QN_UCAT_LT,
        [UTF8PROC_CATEGORY_LM] = QN_UCAT_LM, [UTF8PROC_CATEGORY_LO] = QN_UCAT_LO,
        [UTF8PROC_CATEGORY_MN] = QN_UCAT_MN, [UTF8PROC_CATEGORY_MC] = QN_UCAT_MC,
        [UTF8PROC_CATEGORY_ME] = QN_UCAT_ME, [UTF8PROC_CATEGORY_ND] = QN_UCAT_ND,
        [UTF8PROC_CATEGORY_NL] = QN_UCAT_NL, [UTF8PROC_CATEGORY_NO] = QN_UCAT_NO,
        [UTF8PROC_CATEGORY_PC] = QN_UCAT_PC, [UTF8PROC_CATEGORY_PD] = QN_UCAT_PD,
        [UTF8PROC_CATEGORY_PS] = QN_UCAT_PS, [UTF8PROC_CATEGORY_PE] = QN_UCAT_PE,
        [UTF8PROC_CATEGORY_PI] = QN_UCAT_PI, [UTF8PROC_CATEGORY_PF] = QN_UCAT_PF,
        [UTF8PROC_CATEGORY_PO] = QN_UCAT_PO, [UTF8PROC_CATEGORY_SM] = QN_UCAT_SM,
        [UTF8PROC_CATEGORY_SC] = QN_UCAT_SC, [UTF8PROC_CATEGORY_SK] = QN_UCAT_SK,
        [UTF8PROC_CATEGORY_SO] = QN_UCAT_SO, [UTF8PROC_CATEGORY_ZS] = QN_UCAT_ZS,
        [UTF8PROC_CATEGORY_ZL] = QN_UCAT_ZL, [UTF8PROC_CATEGORY_ZP] = QN_UCAT_ZP,
        [UTF8PROC_CATEGORY_CC] = QN_UCAT_CC, [UTF8PROC_CATEGORY_CF] = QN_UCAT_CF,
        [UTF8PROC_CATEGORY_CS] = QN_UCAT_CS, [UTF8PROC_CATEGORY_CO] = QN_UCAT_CO,
    };
    if (c > 0x10FFFF) return QN_UCAT_CN;
    size_t lo = 0, hi = c < new_category[0].first ? 0 : QN_LEN(new_category);
    const size_t n = hi;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (c > new_category[mid].last)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < n && c >= new_category[lo].first) return new_category[lo].category;
    return (qn_ucat)from_utf8proc[utf8proc_category((utf8proc_int32_t)c)];
}

bool qn_unicode_is_number(uint32_t c)
{
    if (c < 0x80) return c >= '0' && c <= '9';
    const qn_ucat k = qn_unicode_category(c);
    return (k >= QN_UCAT_ND && k <= QN_UCAT_NO) != in_ranges(digit_flip, QN_LEN(digit_flip), c);
}

bool qn_unicode_is_punct(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    const qn_ucat k = qn_unicode_category(c);
    return (k >= QN_UCAT_PC && k <= QN_UCAT_PO) != in_ranges(punct_flip, QN_LEN(punct_flip), c);
}

bool qn_unicode_is_mark(uint32_t c)
{
    const qn_ucat k = qn_unicode_category(c);
    return k >= QN_UCAT_MN && k <= QN_UCAT_ME;
}

bool qn_unicode_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool qn_unicode_is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
               (c >= 'a' && c <= 'z');
    const qn_ucat k = qn_unicode_category(c);
    return (k >= QN_UCAT_LU && k <= QN_UCAT_NL) || k == QN_UCAT_PC || c == 0x200C || c == 0x200D ||
           (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

size_t qn_unicode_lower(uint32_t lower[3], uint32_t c)
{
    lower[0] = c;
    if (c > 0x10FFFF) return 1;
    if (c == 0x130) { /* the one full mapping in SpecialCasing that is unconditional */
        lower[0] = 'i';
        lower[1] = 0x307;
        return 2;
    }
    for (size_t i = 0; c >= new_lower[0].from && i < QN_LEN(new_lower); i++)
        if (new_lower[i].from == c) {
            lower[0] = new_lower[i].to;
            return 1;
        }
    lower[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

typedef struct points {        /* one chunk being normalised */
    utf8proc_int32_t *p, *tmp; /* [cap] each */
    size_t n, cap;
} points;

static uint8_t mark_class(utf8proc_int32_t c)
{
    return c < 0x300 ? 0 : (uint8_t)utf8proc_get_property(c)->combining_class;
}

static qn_code points_reserve(points *s, size_t more, qn_err *err)
{
    if (s->cap - s->n >= more) return QN_OK;
    const size_t cap = s->cap * 2 + more;
    utf8proc_int32_t *p = qn_realloc(s->p, cap * sizeof *p);
    if (p) s->p = p;
    utf8proc_int32_t *tmp = p ? qn_realloc(s->tmp, cap * sizeof *tmp) : NULL;
    if (!tmp) return qn_fail(err, QN_E_NOMEM, "normalising: %zu code points", cap);
    s->tmp = tmp;
    s->cap = cap;
    return QN_OK;
}

/* Stable order by combining class of a run without starters; counting, so linear in its length. */
static void order_run(points *s, size_t begin, size_t end)
{
    size_t at[257] = {0};
    for (size_t i = begin; i < end; i++) at[mark_class(s->p[i]) + 1]++;
    for (size_t k = 1; k < QN_LEN(at); k++) at[k] += at[k - 1];
    for (size_t i = begin; i < end; i++) s->tmp[at[mark_class(s->p[i])]++] = s->p[i];
    memcpy(s->p + begin, s->tmp, (end - begin) * sizeof *s->p);
}

static void order_marks(points *s)
{
    for (size_t i = 0; i < s->n;) {
        if (mark_class(s->p[i]) == 0) {
            i++;
            continue;
        }
        size_t end = i + 1;
        bool sorted = true;
        for (; end < s->n && mark_class(s->p[end]) != 0; end++)
            sorted = sorted && mark_class(s->p[end - 1]) <= mark_class(s->p[end]);
        if (!sorted) order_run(s, i, end);
        i = end;
    }
}

/* Order, compose where the form asks for it, append to the text, empty the chunk. */
static qn_code flush(points *s, bool compose, qn_buf *text, qn_err *err)
{
    if (s->n == 0) return QN_OK;
    order_marks(s);
    size_t n = s->n;
    if (compose) {
        const utf8proc_ssize_t left = utf8proc_normalize_utf32(
            s->p, (utf8proc_ssize_t)n, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        QN_ASSERT(left >= 0);
        n = (size_t)left;
    }
    QN_TRY(qn_buf_reserve(text, n * 4, err));
    for (size_t i = 0; i < n; i++)
        text->len += qn_utf8_encode((char *)text->data + text->len, (uint32_t)s->p[i]);
    qn_buf_truncate(text, text->len); /* sets the NUL again */
    s->n = 0;
    return QN_OK;
}

static qn_code decompose(points *s, uint32_t c, bool compat, qn_err *err)
{
    QN_TRY(points_reserve(s, LONGEST, err));
    const utf8proc_option_t how =
        (utf8proc_option_t)(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0));
    int boundary = 0;
    const utf8proc_ssize_t k =
        utf8proc_decompose_char((utf8proc_int32_t)c, s->p + s->n, LONGEST, how, &boundary);
    QN_ASSERT(k >= 0 && k <= LONGEST);
    s->n += (size_t)k;
    return QN_OK;
}

static qn_code normalize(qn_buf *out, points *s, const char *text, size_t n, qn_unorm form,
                         qn_err *err)
{
    const bool compose = form == QN_UNORM_NFC || form == QN_UNORM_NFKC;
    const bool compat = form == QN_UNORM_NFKC || form == QN_UNORM_NFKD;
    for (size_t i = 0; i < n;) {
        size_t run = i; /* ASCII changes in no form; its last character may take a mark, though */
        while (run < n && (unsigned char)text[run] < 0x80) run++;
        if (run < n && run > i) run--;
        if (run > i) {
            QN_TRY(flush(s, compose, out, err));
            QN_TRY(qn_buf_append(out, text + i, run - i, err));
            i = run;
            continue;
        }
        uint32_t c = 0;
        const size_t len = qn_utf8_step(text + i, n - i, &c);
        if (c == QN_UTF8_BAD)
            return qn_fail(err, QN_E_FORMAT, "normalising: byte %zu is no UTF-8", i);
        if (s->n > CHUNK && (c < 0x300 || (c >= 0x3400 && c < 0xA000)))
            QN_TRY(flush(s, compose, out, err));
        if (c >= norm_inert[0].first && in_ranges(norm_inert, QN_LEN(norm_inert), c)) {
            QN_TRY(flush(s, compose, out, err));
            QN_TRY(qn_buf_append(out, text + i, len, err));
        } else {
            QN_TRY(decompose(s, c, compat, err));
        }
        i += len;
    }
    return flush(s, compose, out, err);
}

qn_code qn_unicode_normalize(char **out, size_t *n_out, const char *text, size_t n, qn_unorm form,
                             qn_err *err)
{
    qn_code rc = QN_OK;
    qn_buf buf;
    points s = {0};
    *out = NULL;
    *n_out = 0;
    qn_buf_init(&buf, SIZE_MAX / 2);
    QN_TRY_OUT(qn_buf_reserve(&buf, n + 1, err));
    QN_TRY_OUT(normalize(&buf, &s, text, n, form, err));
    *out = (char *)qn_buf_take(&buf, n_out);
out:
    qn_buf_fini(&buf);
    qn_free(s.p);
    qn_free(s.tmp);
    return rc;
}
