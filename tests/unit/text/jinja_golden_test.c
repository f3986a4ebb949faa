/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_golden_test.c - templates recorded with what jinja2 gives for them (tests/oracle/jinja_golden.py):
 * the same text, or a refusal of the same kind on the same line and with the template's own words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qt.h"
#include "text/jinja.h"

#define FOLDER "tests/golden/jinja/"

static void read_file(qt *t, qn_buf *b, const char *path)
{
    char part[65536];
    qn_buf_init(b, 16 << 20);
    FILE *f = fopen(path, "rb");
    QT_OKF(t, f != NULL, "%s", path);
    if (!f) return;
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        QT_EQ(t, qn_buf_append(b, part, n, NULL), QN_OK);
    fclose(f);
}

/* What stands behind "line N: ", and N. */
static const char *told(const qn_err *err, long *line)
{
    char *end = NULL;
    *line = strncmp(err->msg, "line ", 5) ? 0 : strtol(err->msg + 5, &end, 10);
    return end && !strncmp(end, ": ", 2) ? end + 2 : err->msg;
}

static void refuses(qt *t, const char *source, const qn_json *c, bool compiled, const qn_err *err)
{
    size_t n = 0;
    long line = 0;
    const char *kind = qn_json_str(qn_json_get(c, "refused"), &n), *words = told(err, &line);
    const int64_t want = qn_json_int(qn_json_get(c, "line"), 0);
    QT_OKF(t, compiled == (strcmp(kind, "syntax") != 0), "%s: %s", source, err->msg);
    if (!strncmp(kind, "raised:", 7))
        QT_OKF(t, !strcmp(words, kind + 7), "%s: %s", source, err->msg);
    if (!strcmp(kind, "undefined"))
        QT_OKF(t, strstr(words, "undefined") != NULL, "%s: %s", source, err->msg);
    if (want) QT_OKF(t, line == want, "%s: line %ld, want %ld", source, line, (long)want);
}

static void one(qt *t, const qn_json *c, const qn_json *values)
{
    size_t n = 0, n_want = 0;
    qn_err err = {0};
    qn_jinja *j = NULL;
    qn_buf text;
    const char *source = qn_json_str(qn_json_get(c, "template"), &n);
    const char *want = qn_json_str(qn_json_get(c, "text"), &n_want);
    const qn_json *all[] = {values};
    const qn_jinja_input in = {.variables = all, .n_variables = 1, .now_s = 1700000000};
    qn_buf_init(&text, 1 << 20);
    qn_code rc = qn_jinja_new(&j, source, n, &err);
    const bool compiled = rc == QN_OK;
    if (compiled) rc = qn_jinja_render(&text, j, &in, &err);
    if (want)
        QT_OKF(t, rc == QN_OK && text.len == n_want && !memcmp(qn_buf_text(&text), want, n_want),
               "%s: want \"%s\", found \"%s\" %s", source, want, qn_buf_text(&text),
               rc ? err.msg : "");
    else if (QT_OKF(t, rc != QN_OK, "%s: rendered \"%s\"", source, qn_buf_text(&text)))
        refuses(t, source, c, compiled, &err);
    qn_jinja_free(j);
    qn_buf_fini(&text);
}

static void gives_what_jinja2_gives(qt *t)
{
    qn_buf context, cases;
    qn_json *values = NULL;
    size_t n_cases = 0;
    read_file(t, &context, FOLDER "context.json");
    read_file(t, &cases, FOLDER "cases.jsonl");
    QT_EQ(t, qn_json_parse(&values, qn_buf_text(&context), context.len, 1 << 20, NULL), QN_OK);
    for (size_t i = 0; i < cases.len; n_cases++) {
        const char *s = (const char *)cases.data + i, *end = memchr(s, '\n', cases.len - i);
        const size_t n = end ? (size_t)(end - s) : cases.len - i;
        qn_json *c = NULL;
        QT_EQ(t, qn_json_parse(&c, s, n, 1 << 20, NULL), QN_OK);
        if (c) one(t, c, values);
        qn_json_free(c);
        i += n + 1;
    }
    QT_OKF(t, n_cases > 1000, "%zu cases", n_cases);
    qn_json_free(values);
    qn_buf_fini(&context);
    qn_buf_fini(&cases);
}

QT_MAIN(QT(gives_what_jinja2_gives))
