/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - the table of every request field that is known: what it may hold and what becomes of it.
 *
 * fields.def is read by the parser (body.c) and printed as tables of docs/api.md, so that the page cannot
 * say something else. A field that is in no row is listed in `warnings`.
 *
 * Thread: constants.
 */
#ifndef QN_API_FIELDS_H
#define QN_API_FIELDS_H
#include "api/api.h"

typedef enum qn_api_type {
    QN_API_BOOL,
    QN_API_INT,
    QN_API_NUMBER,
    QN_API_STRING,
    QN_API_ARRAY,
    QN_API_OBJECT,
    QN_API_ANY /* several; the note says which, the reader of the field checks */
} qn_api_type;

typedef enum qn_api_treatment {
    QN_API_HONOURED,
    QN_API_LISTED, /* accepted, without effect, told in `warnings` */
    QN_API_REFUSED /* 400 with the name in `param` */
} qn_api_treatment;

typedef struct qn_api_field {
    const char *name;
    uint32_t endpoints; /* QN_API_CHAT | ... */
    qn_api_type type;
    double lo, hi; /* of numbers; -HUGE_VAL and HUGE_VAL: no bound */
    qn_api_treatment treatment;
    const char *pass; /* LISTED, REFUSED: JSON texts, a space between two, that ask for what happens
                         anyway and pass without a word */
    const char *note; /* for people: what it means or what to use instead */
} qn_api_field;

extern const qn_api_field qn_api_fields[];
extern const size_t qn_api_n_fields;

/* The row of a field at an endpoint, or NULL. */
const qn_api_field *qn_api_field_find(const char *name, qn_api_endpoint endpoint);

#endif
