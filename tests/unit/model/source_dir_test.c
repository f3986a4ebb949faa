/* SPDX-License-Identifier: Apache-2.0 */
/* source_dir_test.c - a directory stands for the one GGUF model in it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"
#include "model/source.h"
#include "tiny.h"

static const char *make_dir(const char *name)
{
    static char dir[512];
    snprintf(dir, sizeof dir, "%s/%s", qt_tmp(), name);
    (void)mkdir(dir, 0777);
    return dir;
}

static void put(const char *dir, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (f) fclose(f);
}

static bool find(char path[512], const char *dir, qn_code *rc, qn_err *err)
{
    bool found = false;
    path[0] = '\0';
    *rc = qn_source_find_gguf(&found, path, 512, dir, err);
    return found;
}

static void a_single_file_opens_by_its_directory(qt *t)
{
    char to[700];
    qn_model *m = NULL;
    qn_err err = {0};
    const char *dir = make_dir("single"), *file = tiny_gguf(t, &(tiny){0});
    snprintf(to, sizeof to, "%s/model.gguf", dir);
    QT_EQ(t, rename(file, to), 0);
    put(dir, "README.md");
    QT_OKF(t, qn_model_open(&m, dir, NULL, &err) == QN_OK, "%s", err.msg);
    QT_OK(t, m && strcmp(qn_model_path(m), dir) == 0);
    qn_model_unref(m);
}

static void the_parts_of_one_model_count_as_one(qt *t)
{
    qn_model *m = NULL;
    qn_err err = {0};
    QT_OKF(t, qn_model_open(&m, "tests/golden/llama/gguf-f16-split", NULL, &err) == QN_OK, "%s",
           err.msg);
    QT_OK(t, m && qn_model_get_desc(m)->n_layers == 2);
    qn_model_unref(m);
}

static void names_decide_what_counts(qt *t)
{
    char path[512];
    qn_code rc = QN_OK;
    qn_err err = {0};
    const char *dir = make_dir("names");
    QT_OK(t, !find(path, dir, &rc, &err) && rc == QN_OK);
    put(dir, "mmproj-model.gguf"); /* a projector, a hidden file, later parts, another ending */
    put(dir, ".part.gguf");
    put(dir, "m-00002-of-00003.gguf");
    put(dir, "m-00003-of-00003.gguf");
    put(dir, "m.gguf.sha256");
    QT_OK(t, !find(path, dir, &rc, &err) && rc == QN_OK);
    put(dir, "m-00001-of-00003.gguf");
    QT_OK(t, find(path, dir, &rc, &err) && strstr(path, "/names/m-00001-of-00003.gguf"));
    put(dir, "a-0002-of-00003.gguf"); /* no part by its shape */
    QT_OK(t, !find(path, dir, &rc, &err) && rc == QN_E_INVAL);
}

static void several_models_are_refused_by_name(qt *t)
{
    char path[512];
    qn_code rc = QN_OK;
    qn_err err = {0};
    const char *dir = make_dir("several");
    put(dir, "c.gguf");
    put(dir, "a.gguf");
    put(dir, "b.gguf");
    QT_OK(t, !find(path, dir, &rc, &err));
    QT_EQ(t, rc, QN_E_INVAL);
    QT_OKF(t, strstr(err.msg, "3 GGUF models") && strstr(err.msg, "a.gguf, b.gguf ..."), "%s",
           err.msg);
}

static void a_path_that_does_not_fit_or_is_no_directory_is_refused(qt *t)
{
    bool found = true;
    char small[16];
    qn_err err = {0};
    const char *dir = make_dir("small");
    put(dir, "a-name-longer-than-that.gguf");
    QT_EQ(t, qn_source_find_gguf(&found, small, sizeof small, dir, &err), QN_E_LIMIT);
    QT_OK(t, !found);
    QT_EQ(t, qn_source_find_gguf(&found, small, sizeof small, "/nowhere/at/all", &err), QN_E_IO);
}

QT_MAIN(QT(a_single_file_opens_by_its_directory), QT(the_parts_of_one_model_count_as_one),
        QT(names_decide_what_counts), QT(several_models_are_refused_by_name),
        QT(a_path_that_does_not_fit_or_is_no_directory_is_refused))
