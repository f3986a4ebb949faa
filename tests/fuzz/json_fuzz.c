/* SPDX-License-Identifier: Apache-2.0 */
/* json_fuzz.c - any bytes as JSON. What is refused names a reason; what is taken can be walked, and
 * printed, read and printed again it is the same text. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "dep/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

static size_t walk(const qn_json *v)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *member = NULL;
    size_t values = 1, members = 0, len = 0;
    switch (qn_json_type_of(v)) {
    case QN_JSON_OBJECT:
        for (; qn_json_next(v, &it, &key, &member); members++) {
            want(qn_json_get(v, key) == member);
            values += walk(member);
        }
        want(members == qn_json_len(v));
        break;
    case QN_JSON_ARRAY:
        for (size_t i = 0; i < qn_json_len(v); i++) values += walk(qn_json_at(v, i));
        break;
    case QN_JSON_STRING:
        want(qn_json_str(v, &len) != NULL);
        break;
    case QN_JSON_INT:
        want(qn_json_int(v, 1) == qn_json_int(v, 2));
        break;
    case QN_JSON_REAL:
        want(qn_json_num(v, 1) == qn_json_num(v, 2));
        break;
    case QN_JSON_BOOL:
        want(qn_json_bool(v, true) == qn_json_bool(v, false));
        break;
    case QN_JSON_NULL:
        break;
    }
    return values;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_json *v = NULL, *again = NULL;
    char *first = NULL, *second = NULL;
    size_t n_first = 0, n_second = 0;
    qn_err err = {.code = QN_OK};
    const size_t live = qn_alloc_live();
    const qn_code rc = qn_json_parse(&v, (const char *)data, n, 1 << 20, &err);
    if (rc == QN_OK) {
        want(qn_json_dump(&first, &n_first, v, NULL) == QN_OK);
        want(qn_json_parse(&again, first, n_first, SIZE_MAX, NULL) == QN_OK);
        want(walk(v) == walk(again));
        want(qn_json_dump(&second, &n_second, again, NULL) == QN_OK);
        want(n_first == n_second && memcmp(first, second, n_first) == 0);
    } else {
        want(!v && rc == err.code && err.msg[0]);
    }
    qn_json_free(v);
    qn_json_free(again);
    qn_free(first);
    qn_free(second);
    want(qn_alloc_live() == live);
    return 0;
}
