/* SPDX-License-Identifier: Apache-2.0 */
/* fields_page.c - docs/api-fields.md from the table that the parser reads. */
#include "fields_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/fields.h"

static const char *const front =
    "# Request fields\n"
    "\n"
    "Every field that a request may have, made from the table that the parser reads. `null` counts "
    "as absent. Columns: **C** `POST\n"
    "/v1/chat/completions`, **T** `POST /v1/completions`, **K** `POST /tokenize`, **D** `POST "
    "/detokenize`.\n"
    "\n"
    "A field that is in no table here has no effect and is listed in `warnings`: an array of texts "
    "beside `choices` of a whole answer,\n"
    "and of the first event of a stream. Members of a message that are not described in "
    "[api.md](api.md) are handed to the model's template as\n"
    "they are.\n";

static const struct {
    qn_api_treatment treatment;
    const char *title, *head;
} parts[] = {
    {QN_API_HONOURED, "Honoured",
     "A value behind the last semicolon of a note is what holds when nobody says anything.\n"
     "\n"
     "| field | where | type | range | |\n|---|---|---|---|---|\n"},
    {QN_API_LISTED, "Accepted without effect",
     "Told in `warnings`, except for the values of the third column, which ask for what happens "
     "anyway.\n"
     "\n"
     "| field | where | no warning | |\n|---|---|---|---|\n"},
    {QN_API_REFUSED, "Refused",
     "Status 400, the field's name in `param`, code `unsupported_parameter`; except for the values "
     "of the third column.\n"
     "\n"
     "| field | where | accepted | |\n|---|---|---|---|\n"},
};

static const char *type_name(qn_api_type type)
{
    static const char *const names[] = {
        [QN_API_BOOL] = "true or false", [QN_API_INT] = "whole number", [QN_API_NUMBER] = "number",
        [QN_API_STRING] = "text",        [QN_API_ARRAY] = "array",      [QN_API_OBJECT] = "object",
        [QN_API_ANY] = "see note",
    };
    return names[type];
}

static void range(char out[64], const qn_api_field *f)
{
    if (isfinite(f->lo) && isfinite(f->hi))
        snprintf(out, 64, "%.15g to %.15g", f->lo, f->hi);
    else if (isfinite(f->lo))
        snprintf(out, 64, "%.15g or more", f->lo);
    else
        out[0] = '\0';
}

/* Alternatives as code, with a comma between. */
static qn_code put_passes(qn_buf *out, const qn_api_field *f, qn_err *err)
{
    qn_str rest = qn_str_z(f->pass), piece;
    if (!f->pass[0]) return QN_OK;
    for (bool more = false; qn_str_split(&piece, &rest, ' '); more = true)
        QN_TRY(qn_buf_printf(out, err, "%s`%.*s`", more ? ", " : "", QN_STR_ARG(piece)));
    return QN_OK;
}

static qn_code put_row(qn_buf *out, const qn_api_field *f, qn_err *err)
{
    char where[8] = "", text[64];
    const char letters[] = "CTKD";
    for (size_t i = 0, n = 0; i < 4; i++)
        if (f->endpoints & (1u << i)) where[n++] = letters[i];
    QN_TRY(qn_buf_printf(out, err, "| `%s` | %s | ", f->name, where));
    if (f->treatment == QN_API_HONOURED) {
        range(text, f);
        QN_TRY(qn_buf_printf(out, err, "%s | %s", type_name(f->type), text));
    } else {
        QN_TRY(put_passes(out, f, err));
    }
    /* A bar would end the column. */
    QN_TRY(qn_buf_append_z(out, " | ", err));
    for (const char *p = f->note; *p; p++) {
        if (*p == '|') QN_TRY(qn_buf_append_byte(out, '\\', err));
        QN_TRY(qn_buf_append_byte(out, (uint8_t)*p, err));
    }
    return qn_buf_append_z(out, " |\n", err);
}

qn_code api_fields_page(qn_buf *out, qn_err *err)
{
    QN_TRY(qn_buf_append_z(out, front, err));
    for (size_t i = 0; i < QN_LEN(parts); i++) {
        QN_TRY(qn_buf_printf(out, err, "\n## %s\n\n%s", parts[i].title, parts[i].head));
        for (size_t k = 0; k < qn_api_n_fields; k++)
            if (qn_api_fields[k].treatment == parts[i].treatment)
                QN_TRY(put_row(out, &qn_api_fields[k], err));
    }
    return QN_OK;
}
