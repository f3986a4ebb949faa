/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_fuzz.c - any bytes as templates, parted by NUL: each is refused or renders within small ceilings, and
 * leaves no memory. The variables are those of tests/golden/jinja. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void one(const char *source, size_t n, const qn_json *values)
{
    qn_jinja *t = NULL;
    qn_buf text;
    const qn_json *all[] = {values};
    const qn_jinja_input in = {.variables = all,
                               .n_variables = 1,
                               .now_s = 1700000000,
                               .limits = {100000, 1 << 24, 1 << 16, 20}};
    qn_buf_init(&text, 1 << 17);
    if (qn_jinja_new(&t, source, n, NULL) == QN_OK &&
        qn_jinja_render(&text, t, &in, NULL) != QN_OK && text.len)
        abort();
    qn_jinja_free(t);
    qn_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char values[] =
        "{\"a\": [3, 1, 2], \"msgs\": [{\"role\": \"user\", \"content\": \"hi\"}], \"n\": 7, "
        "\"z\": 0, \"neg\": -3, \"f\": 2.5, \"g\": -0.125, \"big\": 1234567, \"t\": true, \"n"
        "o\": false, \"nil\": null, \"e\": \"\", \"s\": \"Hello wOrld\", \"w\": \"  two\\twor"
        "ds \\n\", \"h\": \"<a href='x'>T&C</a> \\\"q\\\"\", \"u\": \"Stra\\u00dfe \\ufb01n \\u"
        "00c9LAN \\u03a3\\u0391\\u03a3 \\u01c6 \\ud83d\\ude00\", \"d\": \"42\", \"r\": \"3.75"
        "\", \"p\": \"a-b_c.d\", \"m\": {\"k\": \"v\", \"n\": null, \"b\": true, \"i\": 3}, \""
        "l\": [3, 1, 2], \"ls\": [\"b\", \"A\", \"c\", \"a\"], \"mix\": [1, \"1\", 1.0, null,"
        " true], \"nest\": [[1, 2], [3], []], \"rows\": [{\"a\": 2, \"b\": \"x\"}, {\"a\": 1,"
        " \"b\": \"Y\"}, {\"a\": 2, \"b\": \"X\"}, {\"b\": \"z\"}], \"deep\": {\"x\": {\"y\":"
        " [{\"z\": 1}, {\"z\": \"two\"}]}}, \"long\": \"The quick brown-fox jumps over -- the"
        " lazy dog; antidisestablishmentarianism twice.\\nAnd on.\", \"el\": [], \"em\": {}, "
        "\"esc\": \"a\\\\b'c\\\"d\\n\\u0001\\u007f\\u00a0\\u00e9\", \"ns\": {\"items\": 1, \""
        "get\": 2}, \"html\": \"<!-- c --><p>1 &lt; 2 &amp;&#39; x</p> <b\"}";
    const size_t live = qn_alloc_live();
    qn_json *v = NULL;
    if (qn_json_parse(&v, values, strlen(values), SIZE_MAX, NULL) != QN_OK) abort();
    for (size_t i = 0; i <= n;) {
        const char *s = n ? (const char *)data + i : "", *end = i < n ? memchr(s, 0, n - i) : NULL;
        const size_t len = end ? (size_t)(end - s) : n - i;
        one(s, len, v);
        i += len + 1;
    }
    qn_json_free(v);
    if (qn_alloc_live() != live) abort();
    return 0;
}
