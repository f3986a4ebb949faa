/* SPDX-License-Identifier: Apache-2.0 */
/* unicode.h - what a code point is and how texts normalise; the library behind it is named in
 * unicode.c only.
 *
 * Categories are those of Unicode 16.0: the library's own tables plus the code points assigned since
 * (unicode_new.inc), because the tokenizers we must equal classify by 16.0. They normalise by an older
 * Unicode; what came later is left alone here as there.
 *
 * Thread: any; no state.
 */
#ifndef QN_DEP_UNICODE_H
#define QN_DEP_UNICODE_H
#include "base/status.h"

typedef enum qn_ucat { /* general categories; the letters are Unicode's */
                       QN_UCAT_CN,
                       QN_UCAT_LU,
                       QN_UCAT_LL,
                       QN_UCAT_LT,
                       QN_UCAT_LM,
                       QN_UCAT_LO,
                       QN_UCAT_MN,
                       QN_UCAT_MC,
                       QN_UCAT_ME,
                       QN_UCAT_ND,
                       QN_UCAT_NL,
                       QN_UCAT_NO,
                       QN_UCAT_PC,
                       QN_UCAT_PD,
                       QN_UCAT_PS,
                       QN_UCAT_PE,
                       QN_UCAT_PI,
                       QN_UCAT_PF,
                       QN_UCAT_PO,
                       QN_UCAT_SM,
                       QN_UCAT_SC,
                       QN_UCAT_SK,
                       QN_UCAT_SO,
                       QN_UCAT_ZS,
                       QN_UCAT_ZL,
                       QN_UCAT_ZP,
                       QN_UCAT_CC,
                       QN_UCAT_CF,
                       QN_UCAT_CS,
                       QN_UCAT_CO
} qn_ucat;

typedef struct qn_category_range { /* first..last, both included */
    uint32_t first, last;
    qn_ucat category;
} qn_category_range;

typedef struct qn_script_range {
    uint32_t first, last;
    const char *script; /* Unicode's long name */
} qn_script_range;

/* What was assigned after Unicode 14.0, ascending: pattern libraries of that age need it spelled out.
 * Borrowed for ever. */
const qn_category_range *qn_unicode_new_categories(size_t *n);
const qn_script_range *qn_unicode_new_scripts(size_t *n);

/* Any value; beyond U+10FFFF is CN. */
qn_ucat qn_unicode_category(uint32_t c);
bool qn_unicode_is_number(uint32_t c); /* Nd, Nl, No, and the few digits of 17.0 */
bool qn_unicode_is_punct(uint32_t c);  /* ASCII's and P*, of the age that tokenizers test by */
bool qn_unicode_is_mark(uint32_t c);   /* M* */
bool qn_unicode_is_space(uint32_t c);  /* White_Space */
bool qn_unicode_is_word(
    uint32_t c); /* letters, marks, digits, connectors, joiners, circled letters */

typedef enum qn_unorm { QN_UNORM_NFC, QN_UNORM_NFD, QN_UNORM_NFKC, QN_UNORM_NFKD } qn_unorm;

/* The normal form of text[0, n), which must be valid UTF-8. *out is owned (qn_free), without a NUL.
 * Errors: FORMAT (no UTF-8), NOMEM. */
qn_code qn_unicode_normalize(char **out, size_t *n_out, const char *text, size_t n, qn_unorm form,
                             qn_err *err);
/* Full lower case of one code point: 1 to 3 code points into lower[3]; returns how many. */
size_t qn_unicode_lower(uint32_t lower[3], uint32_t c);

#endif
