/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_render.c - TEMPLATE VARIABLES.json: prints what the template gives for these variables.
 * --batch FILE: each line is {"template": text, "variables": object}; for each a line
 * {"text": text, "us": microseconds} or {"error": text, "compiled": whether it compiled}. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "text/jinja.h"

enum { FILE_MAX = 1 << 30, NOW = 1700000000 };

static qn_code render(qn_buf *text, bool *compiled, const char *source, size_t n, const qn_json *v,
                      qn_err *err)
{
    qn_jinja *t = NULL;
    const qn_json *all[] = {v};
    const qn_jinja_input in = {.variables = all, .n_variables = 1, .now_s = NOW};
    qn_code rc = qn_jinja_new(&t, source, n, err);
    *compiled = rc == QN_OK;
    if (rc == QN_OK) rc = qn_jinja_render(text, t, &in, err);
    qn_jinja_free(t);
    return rc;
}

static bool answer(const char *line, size_t n)
{
    qn_err err = {0};
    qn_json *all = NULL, *out = qn_json_new_object();
    qn_buf text;
    size_t n_source = 0, n_dump = 0;
    char *dump = NULL;
    bool compiled = false, good = false;
    qn_buf_init(&text, FILE_MAX);
    if (qn_json_parse(&all, line, n, FILE_MAX, &err) != QN_OK) {
        fprintf(stderr, "%s\n", err.msg);
        goto out;
    }
    const char *source = qn_json_str(qn_json_get(all, "template"), &n_source);
    const uint64_t begin = qn_clock_ns();
    const qn_code rc = render(&text, &compiled, source ? source : "", n_source,
                              qn_json_get(all, "variables"), &err);
    const int64_t us = (int64_t)((qn_clock_ns() - begin) / 1000);
    good = rc == QN_OK ? qn_json_set(out, "text", qn_json_new_str(qn_buf_text(&text), text.len)) &&
                             qn_json_set(out, "us", qn_json_new_int(us))
                       : qn_json_set(out, "error", qn_json_new_str(err.msg, strlen(err.msg))) &&
                             qn_json_set(out, "us", qn_json_new_int(us)) &&
                             qn_json_set(out, "code", qn_json_new_int(rc)) &&
                             qn_json_set(out, "compiled", qn_json_new_bool(compiled));
    if (!good) good = qn_json_set(out, "error", qn_json_new_str("the text is no UTF-8", 20));
    if (qn_json_dump(&dump, &n_dump, out, &err) == QN_OK) puts(dump);
out:
    qn_free(dump);
    qn_json_free(all);
    qn_json_free(out);
    qn_buf_fini(&text);
    return good;
}

static bool read_file(qn_buf *b, const char *path)
{
    char part[65536];
    qn_buf_init(b, FILE_MAX);
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        if (qn_buf_append(b, part, n, NULL) != QN_OK) break;
    fclose(f);
    return true;
}

static int batch(const char *path)
{
    qn_buf file;
    bool good = read_file(&file, path);
    for (size_t i = 0; good && i < file.len;) {
        const char *s = (const char *)file.data + i, *end = memchr(s, '\n', file.len - i);
        const size_t n = end ? (size_t)(end - s) : file.len - i;
        good = answer(s, n);
        i += n + 1;
    }
    qn_buf_fini(&file);
    return good ? 0 : 2;
}

int main(int argc, char **argv)
{
    qn_err err = {0};
    qn_buf source, values, text;
    qn_json *v = NULL;
    bool compiled = false;
    if (argc == 3 && !strcmp(argv[1], "--batch")) return batch(argv[2]);
    if (argc != 3 || !read_file(&source, argv[1]) || !read_file(&values, argv[2])) return 2;
    qn_buf_init(&text, FILE_MAX);
    qn_code rc = qn_json_parse(&v, qn_buf_text(&values), values.len, FILE_MAX, &err);
    if (rc == QN_OK) rc = render(&text, &compiled, qn_buf_text(&source), source.len, v, &err);
    if (rc == QN_OK)
        fwrite(text.data, 1, text.len, stdout);
    else
        fprintf(stderr, "%s\n", err.msg);
    qn_json_free(v);
    qn_buf_fini(&source);
    qn_buf_fini(&values);
    qn_buf_fini(&text);
    return rc == QN_OK ? 0 : 1;
}
