/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - fields.def as a table.
 *
 * Thread: constants.
 */
#include "api/fields.h"

#include <math.h>
#include <string.h>

enum { CHAT = QN_API_CHAT, TEXT = QN_API_TEXT, TOKENIZE = QN_API_TOKENIZE };
enum { DETOKENIZE = QN_API_DETOKENIZE };

const qn_api_field qn_api_fields[] = {
#define X(name, endpoints, type, least, most, treatment, pass, note) \
    {#name, endpoints, QN_API_##type, least, most, QN_API_##treatment, pass, note},
#include "api/fields.def"
#undef X
};
const size_t qn_api_n_fields = QN_LEN(qn_api_fields);

const qn_api_field *qn_api_field_find(const char *name, qn_api_endpoint endpoint)
{
    for (size_t i = 0; i < qn_api_n_fields; i++) {
        const qn_api_field *f = &qn_api_fields[i];
        if ((f->endpoints & (uint32_t)endpoint) && strcmp(f->name, name) == 0) return f;
    }
    return NULL;
}
