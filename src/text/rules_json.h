/* SPDX-License-Identifier: Apache-2.0 */
/* rules_json.h - the rule objects of a tokenizer.json, each turned into our own data or refused. */
#ifndef QN_TEXT_RULES_JSON_H
#define QN_TEXT_RULES_JSON_H
#include "dep/json.h"
#include "text/tokenizer_int.h"

/* Each takes the member's value (NULL and null mean "no such rule"). Errors: UNSUPPORTED naming the
 * type or key, FORMAT, NOMEM. */
qn_code qn_json_normalizer(qn_tokenizer *t, const qn_json *v, qn_err *err);
qn_code qn_json_pre_tokenizer(qn_tokenizer *t, const qn_json *v, qn_err *err);
qn_code qn_json_post_processor(qn_tokenizer *t, const qn_json *v, qn_err *err);
qn_code qn_json_decoder(qn_tokenizer *t, const qn_json *v, qn_err *err);

/* UNSUPPORTED naming the first key of object v that is not in `known` (names parted by spaces). */
qn_code qn_json_only_keys(const qn_json *v, const char *where, const char *known, qn_err *err);
/* A member that must be a string. */
qn_code qn_json_need_str(qn_str *out, const qn_json *v, const char *where, const char *key,
                         qn_err *err);

#endif
