/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_fuzz.c - any bytes as a template: it is refused or renders within small ceilings, and leaves
 * no memory. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char values[] =
        "{\"a\":[3,1,2],\"m\":{\"k\":\"v\",\"n\":null,\"b\":true},\"s\":\"Hello wOrld\","
        "\"f\":1.5,\"msgs\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    const size_t live = qn_alloc_live();
    qn_json *v = NULL;
    qn_jinja *t = NULL;
    qn_buf text;
    if (qn_json_parse(&v, values, strlen(values), SIZE_MAX, NULL) != QN_OK) abort();
    const qn_json *all[] = {v};
    const qn_jinja_input in = {.variables = all,
                               .n_variables = 1,
                               .now_s = 1700000000,
                               .limits = {100000, 1 << 24, 1 << 16, 20}};
    qn_buf_init(&text, 1 << 17);
    if (qn_jinja_new(&t, (const char *)data, n, NULL) == QN_OK &&
        qn_jinja_render(&text, t, &in, NULL) != QN_OK && text.len)
        abort();
    qn_jinja_free(t);
    qn_json_free(v);
    qn_buf_fini(&text);
    if (qn_alloc_live() != live) abort();
    return 0;
}
