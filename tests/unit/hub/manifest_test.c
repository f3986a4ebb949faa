/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_test.c - what a hub lists: read strictly, and narrowed to what a model needs. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "hub/manifest.h"
#include "qt.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"
#define D64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEAD "{\"sha\": \"" SHA "\", \"siblings\": ["
#define LFS(name, bytes)                                                    \
    "{\"rfilename\": \"" name "\", \"size\": " bytes ", \"blobId\": \"" SHA \
    "\", \"lfs\": {\"sha256\": \"" D64 "\", \"size\": " bytes ", \"pointerSize\": 130}}"
#define GIT(name) "{\"rfilename\": \"" name "\", \"size\": 12, \"blobId\": \"" SHA "\"}"

static qn_code read_text(qn_hub_manifest *m, const char *text, qn_err *err)
{
    return qn_hub_manifest_read(m, text, strlen(text), err);
}

static void both_digests_and_both_spellings_are_read(qt *t)
{
    qn_hub_manifest m;
    qn_err err = {.code = QN_OK};
    QT_EQ(t,
          read_text(&m,
                    HEAD LFS("model.safetensors", "98362432") "," GIT(
                        "config.json") ","
                                       "{\"rfilename\": \"old.safetensors\", \"size\": 5, \"lfs\": "
                                       "{\"oid\": \"" D64 "\"}},"
                                       "{\"rfilename\": \"null.json\", \"size\": 6, \"lfs\": null, "
                                       "\"blobId\": \"" SHA "\"}]}",
                    &err),
          QN_OK);
    QT_STR(t, m.commit, SHA);
    if (!QT_EQ(t, m.n, 4)) return;
    QT_STR(t, m.file[0].path, "config.json");
    QT_OK(t, !m.file[0].sha256 && m.file[0].bytes == 12 && strcmp(m.file[0].digest, SHA) == 0);
    QT_OK(t, m.file[1].sha256 && m.file[1].bytes == 98362432);
    QT_STR(t, m.file[1].digest, D64);
    QT_OK(t, !m.file[2].sha256 && m.file[2].bytes == 6);
    QT_STR(t, m.file[3].path, "old.safetensors");
    QT_OK(t, m.file[3].sha256 && m.file[3].bytes == 5 && strcmp(m.file[3].digest, D64) == 0);
    QT_EQ(t, qn_hub_manifest_bytes(&m), 98362432 + 12 + 5 + 6);
    qn_hub_manifest_close(&m);
    qn_hub_manifest_close(&m);
}

static void names_that_leave_the_folder_are_refused(qt *t)
{
    static const char *const bad[] = {"",          "/etc/passwd", "../a",     "a/../b", "a//b",
                                      "a/",        ".",           "a/./b",    "a\\\\b", "..",
                                      "a\\u0000b", "a\\u001bb",   "a\\u007f", "a\\nb"};
    char text[2048], longer[300];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i <= QT_LEN(bad); i++) {
        qn_hub_manifest m;
        qn_err err = {.code = QN_OK};
        const char *name = i < QT_LEN(bad) ? bad[i] : longer;
        snprintf(text, sizeof text, HEAD "{\"rfilename\": \"%s\", \"size\": 1}]}", name);
        QT_OKF(t, read_text(&m, text, &err) == QN_E_FORMAT, "%s: %s", name, err.msg);
        QT_OKF(t, m.n == 0 && strstr(err.msg, "the hub lists \""), "%s: %s", name, err.msg);
    }
    qn_hub_manifest m;
    QT_EQ(t, read_text(&m, HEAD GIT("a/b..c/.d/...e") "]}", NULL), QN_OK);
    qn_hub_manifest_close(&m);
}

static void what_is_no_list_is_refused(qt *t)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "list"},
        {"<html>", "list"},
        {"[]", "\"sha\""},
        {"{\"siblings\": []}", "\"sha\""},
        {"{\"sha\": \"0123\", \"siblings\": []}", "\"sha\""},
        {"{\"sha\": 7, \"siblings\": []}", "\"sha\""},
        {"{\"sha\": \"" SHA "\"}", "siblings"},
        {"{\"sha\": \"" SHA "\", \"siblings\": {\"a\": 1}}", "siblings"},
        {HEAD "7]}", "file 0"},
        {HEAD GIT("a") ", {\"rfilename\": 7}]}", "file 1"},
        {HEAD GIT("a") "," GIT("b") "," GIT("a") "]}", "a twice"},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        qn_hub_manifest m;
        qn_err err = {.code = QN_OK};
        QT_OKF(t, read_text(&m, cases[i].text, &err) == QN_E_FORMAT, "%s", cases[i].text);
        QT_OKF(t, strstr(err.msg, cases[i].word) != NULL, "%s: %s", cases[i].text, err.msg);
        QT_OK(t, m.n == 0 && m.file == NULL);
    }
}

static void too_many_files_are_refused(qt *t)
{
    qn_buf b;
    qn_hub_manifest m;
    qn_err err = {.code = QN_OK};
    qn_buf_init(&b, QN_HUB_MAX_MANIFEST);
    QT_EQ(t, qn_buf_append_z(&b, HEAD "0", NULL), QN_OK);
    for (int i = 0; i < QN_HUB_MAX_LISTED; i++) (void)qn_buf_append_z(&b, ",0", NULL);
    QT_EQ(t, qn_buf_append_z(&b, "]}", NULL), QN_OK);
    QT_EQ(t, qn_hub_manifest_read(&m, qn_buf_text(&b), b.len, &err), QN_E_LIMIT);
    QT_OKF(t, strstr(err.msg, "100001 files"), "%s", err.msg);
    qn_buf_fini(&b);
    qn_buf_init(&b, QN_HUB_MAX_MANIFEST);
    QT_EQ(t, qn_buf_append_z(&b, HEAD, NULL), QN_OK);
    for (int i = 0; i <= QN_HUB_MAX_FILES; i++)
        QT_EQ(t,
              qn_buf_printf(&b, NULL,
                            "%s{\"rfilename\": \"%d.safetensors\", \"size\": 1, \"blobId\": \"" SHA
                            "\"}",
                            i ? "," : "", i),
              QN_OK);
    QT_EQ(t, qn_buf_append_z(&b, "]}", NULL), QN_OK);
    QT_EQ(t, qn_hub_manifest_read(&m, qn_buf_text(&b), b.len, &err), QN_OK);
    QT_EQ(t, qn_hub_manifest_choose(&m, NULL, &err), QN_E_LIMIT);
    qn_hub_manifest_close(&m);
    qn_buf_fini(&b);
}

/* The paths that were kept, with a space behind each. */
static const char *kept(qt *t, const char *text, const char *include, qn_code want, qn_err *err)
{
    static char out[1024];
    qn_hub_manifest m;
    out[0] = '\0';
    *err = (qn_err){.code = QN_OK};
    if (!QT_OKF(t, read_text(&m, text, err) == QN_OK, "%s", err->msg)) return out;
    const qn_code rc = qn_hub_manifest_choose(&m, include, err);
    QT_OKF(t, rc == want, "%d, expected %d: %s", rc, want, err->msg);
    for (size_t i = 0, n = 0; rc == QN_OK && i < m.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s ", m.file[i].path);
    qn_hub_manifest_close(&m);
    return out;
}

static void a_model_is_its_weights_and_what_describes_them(qt *t)
{
    qn_err err;
    QT_STR(t,
           kept(t,
                HEAD LFS("model-00001-of-00002.safetensors", "7") "," LFS(
                    "model-00002-of-00002.safetensors", "7") "," GIT("model.safetensors.index.json") "," GIT("config.json") "," GIT("generation_config.json") "," GIT("tokenizer.json") "," GIT("tokenizer_config.json") "," LFS("tokenizer.model",
                                                                                                                                                                                                                                 "9") "," GIT("vocab.json") "," GIT("merges.txt") "," GIT("chat_template.jinja") "," GIT("README.md") "," GIT("LICENSE") "," GIT(".gitattributes") "," LFS("pytorch_model.bin", "7") "," LFS("consolidated.safetensors",
                                                                                                                                                                                                                                                                                                                                                                                                                             "7") "," LFS("original/consolidated.00.pth",
                                                                                                                                                                                                                                                                                                                                                                                                                                          "7") "," LFS("original/params.safetensors", "7") "," LFS("onnx/model.onnx",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "7") "," GIT("onnx/config.json") "," LFS("x.gguf", "7") "," GIT("assets/README.md") "," GIT("train.py") "," LFS("flax_model.msgpack",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "7") "," GIT(".eval/config.json") "]}",
                NULL, QN_OK, &err),
           "LICENSE README.md chat_template.jinja config.json generation_config.json merges.txt "
           "model-00001-of-00002.safetensors model-00002-of-00002.safetensors "
           "model.safetensors.index.json tokenizer.json tokenizer.model tokenizer_config.json "
           "vocab.json ");
    QT_STR(t,
           kept(t, HEAD LFS("consolidated.safetensors", "7") "," GIT("params.json") "]}", NULL,
                QN_OK, &err),
           "consolidated.safetensors ");
}

#define QUANTS                                                               \
    HEAD LFS("SmolLM2-135M.Q2_K.gguf", "300000000") "," LFS(                 \
        "SmolLM2-135M.Q4_1.gguf",                                            \
        "1610612736") "," LFS("SmolLM2-135M.Q8_0.gguf",                      \
                              "2147483648") "," LFS("mmproj-model-f16.gguf", \
                                                    "9") "," GIT("README.md") "]}"

static void of_several_gguf_files_one_must_be_named(qt *t)
{
    qn_err err;
    (void)kept(t, QUANTS, NULL, QN_E_INVAL, &err);
    QT_OKF(t,
           strstr(err.msg, "*Q2_K.gguf 0.28 GiB, *Q4_1.gguf 1.50 GiB, *Q8_0.gguf 2.00 GiB") != NULL,
           "%s", err.msg);
    QT_STR(t, kept(t, QUANTS, "*Q4_1*", QN_OK, &err), "SmolLM2-135M.Q4_1.gguf ");
    QT_STR(t, kept(t, QUANTS, "*.gguf", QN_OK, &err),
           "SmolLM2-135M.Q2_K.gguf SmolLM2-135M.Q4_1.gguf SmolLM2-135M.Q8_0.gguf "
           "mmproj-model-f16.gguf ");
    (void)kept(t, QUANTS, "*Q5*", QN_E_INVAL, &err);
    QT_OKF(t, strstr(err.msg, "\"*Q5*\"") && strstr(err.msg, "*Q8_0.gguf"), "%s", err.msg);
    QT_STR(t,
           kept(t, HEAD LFS("a.gguf", "1") "," GIT("README.md") "," LFS("mmproj-a.gguf", "2") "]}",
                NULL, QN_OK, &err),
           "README.md a.gguf ");
    QT_STR(t,
           kept(t, HEAD LFS("q4/a.gguf", "1") "," LFS("q8/a.gguf", "2") "]}", "q8/*", QN_OK, &err),
           "q8/a.gguf ");
    (void)kept(t, HEAD GIT("notes.txt") "]}", "*.gguf", QN_E_INVAL, &err);
}

static void the_parts_of_a_model_are_one(qt *t)
{
    qn_err err;
    QT_STR(t,
           kept(t,
                HEAD LFS("m-00001-of-00002.gguf", "1") "," LFS("m-00002-of-00002.gguf", "2") "]}",
                NULL, QN_OK, &err),
           "m-00001-of-00002.gguf m-00002-of-00002.gguf ");
    (void)kept(t,
               HEAD LFS("m-Q4-00001-of-00002.gguf", "1073741824") "," LFS(
                   "m-Q4-00002-of-00002.gguf", "1073741824") "," LFS("m-Q8-00001-of-00001.gguf",
                                                                     "536870912") "]}",
               NULL, QN_E_INVAL, &err);
    QT_OKF(t, strstr(err.msg, "*Q4-* 2.00 GiB, *Q8-* 0.50 GiB") != NULL, "%s", err.msg);
}

static void a_long_choice_is_cut_at_a_name(qt *t)
{
    char text[8192];
    qn_err err;
    size_t n = (size_t)snprintf(text, sizeof text, HEAD);
    for (int i = 0; i < 24; i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            "%s{\"rfilename\": \"m-Q%02d_K_L.gguf\", \"size\": 5, \"blobId\": \"" SHA "\"}",
            i ? "," : "", i);
    snprintf(text + n, sizeof text - n, "]}");
    (void)kept(t, text, NULL, QN_E_INVAL, &err);
    QT_OKF(t, strstr(err.msg, " more") && strstr(err.msg, "Q00_K_L.gguf"), "%s", err.msg);
}

static void what_cannot_be_verified_is_refused_by_name(qt *t)
{
    static const struct {
        const char *text, *word;
        qn_code code;
    } cases[] = {
        {HEAD "{\"rfilename\": \"m.safetensors\", \"size\": 1}]}", "no digest of m.safetensors",
         QN_E_FORMAT},
        {HEAD "{\"rfilename\": \"m.safetensors\", \"size\": 1, \"blobId\": \"" SHA
              "\", \"lfs\": {\"sha256\": \"" SHA "\"}}]}",
         "64 hex", QN_E_FORMAT},
        {HEAD "{\"rfilename\": \"m.safetensors\", \"size\": 1, \"blobId\": "
              "\"0123456789ABCDEF0123456789abcdef01234567\"}]}",
         "40 hex", QN_E_FORMAT},
        {HEAD "{\"rfilename\": \"m.safetensors\", \"blobId\": \"" SHA "\"}]}",
         "how large m.safetensors", QN_E_FORMAT},
        {HEAD "{\"rfilename\": \"m.safetensors\", \"size\": -1, \"blobId\": \"" SHA "\"}]}",
         "how large", QN_E_FORMAT},
        {HEAD "{\"rfilename\": \"m.safetensors\", \"size\": 1.5, \"blobId\": \"" SHA "\"}]}",
         "how large", QN_E_FORMAT},
        {HEAD LFS("a.safetensors", "9223372036854775807") "," LFS(
             "b.safetensors", "9223372036854775807") "," LFS("c.safetensors",
                                                             "9223372036854775807") "]}",
         "sum", QN_E_LIMIT},
        {HEAD LFS("pytorch_model.bin", "7") "]}", "safetensors or gguf", QN_E_UNSUPPORTED},
        {HEAD "]}", "safetensors or gguf", QN_E_UNSUPPORTED},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        qn_err err;
        (void)kept(t, cases[i].text, NULL, cases[i].code, &err);
        QT_OKF(t, strstr(err.msg, cases[i].word) != NULL, "%s: %s", cases[i].text, err.msg);
    }
}

static void patterns_have_two_wildcards(qt *t)
{
    static const struct {
        const char *pattern, *text;
        bool yes;
    } cases[] = {{"*", "", true},        {"", "", true},
                 {"", "a", false},       {"a*c", "abbc", true},
                 {"a*c", "abbd", false}, {"*Q4_?.gguf", "x/m.Q4_1.gguf", true},
                 {"?", "", false},       {"a?c", "abc", true},
                 {"**a", "bba", true},   {"*a*b*c", "xaybzc", true},
                 {"*ab", "aab", true},   {"a", "ab", false}};
    for (size_t i = 0; i < QT_LEN(cases); i++)
        QT_OKF(t, qn_hub_matches(cases[i].pattern, cases[i].text) == cases[i].yes, "%s %s",
               cases[i].pattern, cases[i].text);
}

static void read_survives_every_failed_allocation(qt *t)
{
    qn_code rc = QN_E_NOMEM;
    const size_t live = qn_alloc_live();
    for (size_t n = 0; rc != QN_OK && n < 200; n++) {
        qn_hub_manifest m;
        qn_alloc_fail_after(n);
        rc = read_text(&m, QUANTS, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && m.n == 0));
        qn_hub_manifest_close(&m);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(both_digests_and_both_spellings_are_read), QT(names_that_leave_the_folder_are_refused),
        QT(what_is_no_list_is_refused), QT(too_many_files_are_refused),
        QT(a_model_is_its_weights_and_what_describes_them),
        QT(of_several_gguf_files_one_must_be_named), QT(the_parts_of_a_model_are_one),
        QT(a_long_choice_is_cut_at_a_name), QT(what_cannot_be_verified_is_refused_by_name),
        QT(patterns_have_two_wildcards), QT(read_survives_every_failed_allocation))
