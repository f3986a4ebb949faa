/* SPDX-License-Identifier: Apache-2.0 */
/* transcript_test.c - the comparison by which docs/api.md is held to the truth finds differences. */
#include <stdio.h>

#include "qt.h"
#include "transcript.h"

static bool same(const char *want, const char *got)
{
    char why[512];
    return transcript_matches(qn_str_z(want), qn_str_z(got), why, sizeof why);
}

static void commands_and_outputs_are_found(qt *t)
{
    transcript s;
    transcript_init(
        &s, QN_STR("text\n$ no\n```console\n$ a\nout\nmore\n$ b \\\n  c\n$ d -d '{\n}'\nx\n```\n"
                   "```sh\n$ no\n```\n```console\n$ e\n```\n"));
    static const struct {
        const char *command, *want;
    } all[] = {{"a", "out\nmore"}, {"b \\\n  c", ""}, {"d -d '{\n}'", "x"}, {"e", ""}};
    for (size_t i = 0; i < QT_LEN(all); i++) {
        QT_OK(t, transcript_next(&s));
        QT_OKF(t, qn_str_eq_z(s.command, all[i].command), "%.*s", QN_STR_ARG(s.command));
        QT_OKF(t, qn_str_eq_z(s.want, all[i].want), "%.*s", QN_STR_ARG(s.want));
    }
    QT_OK(t, !transcript_next(&s));
}

static void equal_outputs_match(qt *t)
{
    QT_OK(t, same("a\nb", "a\r\nb\n\n"));
    QT_OK(t, same("a\n…\nz", "a\nb\nc\nz") && same("a\n…", "a"));
    QT_OK(t, same("x …ms, … y", "x 12ms, a y"));
    QT_OK(t, same("{\"a\": 1,\n \"b\": [true, null]}\nend",
                  "{\"b\":[true,null],\"a\":1.0e0}\nend") == false);
    QT_OK(t, same("{\"a\": 1,\n \"b\": [true, null]}\nend", "{\"b\":[true,null],\"a\":1}\nend"));
    QT_OK(t, same("{\"a\": \"…\", \"id\": \"c-…\"}", "{\"a\":{\"x\":1},\"id\":\"c-12\"}"));
    QT_OK(t, same("{\"a\": [1, \"…\"], \"…\": \"…\"}", "{\"a\":[1,2,3],\"z\":0}"));
    QT_OK(t, same("data: {\"a\":\n 1}\n\n…\n\ndata: [DONE]",
                  "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n"));
}

static void differences_are_found(qt *t)
{
    QT_OK(t, !same("a", "a\nb") && !same("a\nb", "a") && !same("a …c", "a b"));
    QT_OK(t, !same("a\n…\nz", "a\nb"));
    QT_OK(t, !same("{\"a\": 1}", "{\"a\":2}") && !same("{\"a\": 1}", "{\"a\":1,\"b\":2}"));
    QT_OK(t, !same("{\"a\": 1, \"b\": \"…\"}", "{\"a\":1}") &&
                 !same("{\"a\": \"x\"}", "{\"a\":\"y\"}"));
    QT_OK(t,
          !same("{\"a\": [1]}", "{\"a\":[1,2]}") && !same("{\"a\": [1, 2, \"…\"]}", "{\"a\":[1]}"));
    QT_OK(t, !same("{\"a\": true}", "{\"a\":false}") && !same("{\"a\": null}", "{\"a\":0}"));
    QT_OK(t, !same("data: {\"a\": 1}", "{\"a\": 1}") && !same("{\"a\": 1}", "{\"a\": 1"));
    QT_OK(t, !same("data: [DONE]", ""));
}

/* What a page shows matches itself: its JSON parses, its blocks are closed. */
static void the_page_of_the_interface_is_well_formed(qt *t)
{
    static char page[1 << 18];
    transcript all;
    size_t n = 0;
    FILE *f = fopen("docs/api.md", "rb");
    const size_t bytes = f ? fread(page, 1, sizeof page, f) : 0;
    if (f) fclose(f);
    transcript_init(&all, qn_str_make(page, bytes));
    for (; transcript_next(&all); n++) {
        char why[512] = "";
        QT_OKF(t, transcript_matches(all.want, all.want, why, sizeof why), "docs/api.md:%zu: %s",
               all.line, why);
        QT_OK(t, qn_str_has_prefix(all.command, QN_STR("curl -s")) && all.want.n > 0);
    }
    QT_OK(t, n >= 14);
}

QT_MAIN(QT(commands_and_outputs_are_found), QT(equal_outputs_match), QT(differences_are_found),
        QT(the_page_of_the_interface_is_well_formed))
