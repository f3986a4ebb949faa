/* SPDX-License-Identifier: Apache-2.0 */
/* store_test.c - the store as others use it: arguments, names, importing, and what a model found there
 * opens as. */
#include "../hub/tree.h"
#include "quern/quern.h"

static quern_store *open_store(qt *t, const tree *x)
{
    quern_store_options o = QUERN_STORE_OPTIONS_INIT;
    quern_store *s = NULL;
    quern_error err = {0};
    o.home = x->home;
    o.hub_cache = x->cache;
    o.reserve = 1;
    QT_OKF(t, quern_store_open(&s, &o, &err) == QUERN_OK, "%s", err.msg);
    return s;
}

static void a_store_needs_a_home_and_touches_nothing(qt *t)
{
    tree *x = tree_new("open");
    quern_store_options o = QUERN_STORE_OPTIONS_INIT;
    quern_store *s = (quern_store *)x;
    quern_error err = {0};
    QT_EQ(t, quern_store_open(NULL, &o, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_open(&s, NULL, &err), QUERN_E_INVAL);
    QT_OK(t, s == NULL);
    QT_EQ(t, quern_store_open(&s, &o, &err), QUERN_E_INVAL);
    QT_OK(t, strstr(err.msg, "home is missing") != NULL);
    o.home = "";
    QT_EQ(t, quern_store_open(&s, &o, &err), QUERN_E_INVAL);
    QT_OK(t, strstr(err.msg, "home is empty") != NULL);
    o.home = x->home;
    o.hub_cache = "";
    QT_EQ(t, quern_store_open(&s, &o, &err), QUERN_E_INVAL);
    o.hub_cache = NULL;
    o.size = 8;
    QT_EQ(t, quern_store_open(&s, &o, &err), QUERN_E_INVAL);
    o.size = sizeof o;
    QT_EQ(t, quern_store_open(&s, &o, &err), QUERN_OK);
    QT_EQ(t, tree_count(x->root), 0);
    quern_store_close(s);
    quern_store_close(NULL);
    free(x);
}

static void open_survives_every_failed_allocation(qt *t)
{
    quern_store_options o = QUERN_STORE_OPTIONS_INIT;
    const size_t before = qn_alloc_live();
    quern_code rc = QUERN_E_NOMEM;
    o.home = "/home/x///";
    o.hub_cache = "/";
    o.token = "secret";
    for (size_t n = 0; rc != QUERN_OK && n < 64; n++) {
        quern_store *s = NULL;
        qn_alloc_fail_after(n);
        rc = quern_store_open(&s, &o, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QUERN_OK || (rc == QUERN_E_NOMEM && s == NULL));
        quern_store_close(s);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_EQ(t, rc, QUERN_OK);
}

static void arguments_are_checked(qt *t)
{
    tree *x = tree_new("arguments");
    quern_store *s = open_store(t, x);
    quern_store_list *l = NULL;
    char *path = NULL;
    quern_error err = {0};
    QT_EQ(t, quern_store_find(NULL, s, "x", &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_find(&path, NULL, "x", &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_find(&path, s, "", &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_get(NULL, s, "x", NULL, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_get(&path, NULL, "x", NULL, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_get(&path, s, NULL, NULL, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_list_open(NULL, s, NULL, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_list_open(&l, NULL, NULL, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_store_list_count(NULL), 0);
    QT_OK(t, quern_store_list_at(NULL, 0) == NULL);
    quern_store_list_close(NULL);
    quern_store_close(s);
    free(x);
}

static void an_unknown_name_cannot_be_fetched(qt *t)
{
    static const char *const names[] = {"startr", "", "../x", "a/b/c", "a b", "~/x"};
    tree *x = tree_new("unknown");
    quern_store *s = open_store(t, x);
    for (size_t i = 0; i < QT_LEN(names); i++) {
        char *path = (char *)x;
        quern_error err = {0};
        QT_EQ(t, quern_store_get(&path, s, names[i], NULL, &err), QUERN_E_NOTFOUND);
        QT_OKF(t, path == NULL && strstr(err.msg, "\"starter\"") && strstr(err.msg, "ORG/NAME"),
               "%s", err.msg);
    }
    quern_store_close(s);
    free(x);
}

static void options_that_do_not_fit_are_refused(qt *t)
{
    tree *x = tree_new("options");
    quern_store *s = open_store(t, x);
    quern_get_options o = QUERN_GET_OPTIONS_INIT;
    char *path = NULL;
    quern_error err = {0};
    o.revision = "main";
    QT_EQ(t, quern_store_get(&path, s, "starter", &o, &err), QUERN_E_INVAL);
    QT_OKF(t, strstr(err.msg, "revision") != NULL, "%s", err.msg);
    o.revision = NULL;
    o.include = "*";
    o.from = TREE_GGUF;
    QT_EQ(t, quern_store_get(&path, s, "mine", &o, &err), QUERN_E_INVAL);
    QT_OKF(t, strstr(err.msg, "include") != NULL, "%s", err.msg);
    o.include = NULL;
    o.from = "";
    QT_EQ(t, quern_store_get(&path, s, "mine", &o, &err), QUERN_E_INVAL);
    QT_OK(t, path == NULL);
    quern_store_close(s);
    free(x);
}

static void another_file_is_not_the_starter(qt *t)
{
    tree *x = tree_new("not-starter");
    quern_store *s = open_store(t, x);
    quern_get_options o = QUERN_GET_OPTIONS_INIT;
    char *path = NULL;
    quern_error err = {0};
    o.from = TREE_GGUF;
    QT_EQ(t, quern_store_get(&path, s, "starter", &o, &err), QUERN_E_FORMAT);
    QT_OKF(t, strstr(err.msg, "99840 bytes, expected 98362432") != NULL, "%s", err.msg);
    o.from = "/not/there";
    QT_EQ(t, quern_store_get(&path, s, "starter", &o, &err), QUERN_E_NOTFOUND);
    QT_EQ(t, tree_count(tree_at(x, "home/models/")), 0);
    quern_store_close(s);
    free(x);
}

static int count_calls(void *ctx, const quern_get_progress *p)
{
    uint32_t *n = ctx;
    *n += p->size == sizeof *p && p->count == 1 && p->index == 0;
    return 0;
}

static void any_model_gets_the_name_it_is_given(qt *t)
{
    tree *x = tree_new("own-name");
    quern_store *s = open_store(t, x);
    quern_get_options o = QUERN_GET_OPTIONS_INIT;
    quern_runtime *rt = NULL;
    quern_model *m = NULL;
    uint32_t n = 0;
    char *path = NULL, *found = NULL;
    o.from = TREE_GGUF;
    o.progress = count_calls;
    o.ctx = &n;
    QT_EQ(t, quern_store_get(&path, s, "mine", &o, NULL), QUERN_OK);
    QT_STR(t, path, tree_at(x, "home/models/mine.gguf"));
    QT_OK(t, n > 0);
    quern_text_free(path);
    QT_EQ(t, quern_store_get(&path, s, "mine.gguf", &o, NULL), QUERN_OK); /* the same name */
    QT_EQ(t, quern_store_find(&found, s, NULL, NULL), QUERN_OK);
    QT_STR(t, found, path);
    QT_EQ(t, quern_runtime_open(&rt, NULL, NULL), QUERN_OK);
    QT_EQ(t, quern_model_open(&m, rt, found, NULL, NULL), QUERN_OK);
    quern_model_unref(m);
    quern_runtime_close(rt);
    quern_text_free(path);
    quern_text_free(found);
    quern_store_list *l = NULL;
    QT_EQ(t, quern_store_list_open(&l, s, NULL, NULL), QUERN_OK);
    QT_EQ(t, quern_store_list_count(l), 1);
    const quern_store_model *row = quern_store_list_at(l, 0);
    QT_OK(t, row && row->supported == 1 && strcmp(row->name, "mine") == 0);
    QT_OK(t, quern_store_list_at(l, 1) == NULL);
    quern_store_list_close(l);
    quern_store_close(s);
    free(x);
}

static void only_models_get_a_name(qt *t)
{
    static const char *const names[] = {"", ".gguf", ".x", "a/b", "../x", "a\\b", "a\nb"};
    tree *x = tree_new("bad-names");
    quern_store *s = open_store(t, x);
    quern_get_options o = QUERN_GET_OPTIONS_INIT;
    char *path = NULL, name[300];
    quern_error err = {0};
    o.from = TREE_GGUF;
    for (size_t i = 0; i < QT_LEN(names); i++) {
        QT_EQ(t, quern_store_get(&path, s, names[i], &o, &err), QUERN_E_INVAL);
        QT_OKF(t, strstr(err.msg, "no name for a file") != NULL, "%s", err.msg);
    }
    memset(name, 'a', sizeof name);
    name[201] = '\0';
    QT_EQ(t, quern_store_get(&path, s, name, &o, &err), QUERN_E_INVAL);
    name[200] = '\0';
    QT_EQ(t, quern_store_get(&path, s, name, &o, &err), QUERN_OK);
    quern_text_free(path);
    tree_text(x, "text", "this is no model");
    o.from = tree_at(x, "text");
    QT_EQ(t, quern_store_get(&path, s, "mine", &o, &err), QUERN_E_FORMAT);
    o.from = "tests/golden/llama/gguf-f16-split/model-00001-of-00003.gguf";
    QT_EQ(t, quern_store_get(&path, s, "mine", &o, &err), QUERN_E_UNSUPPORTED);
    QT_OKF(t, strstr(err.msg, "one of 3 parts") != NULL, "%s", err.msg);
    QT_OK(t, path == NULL);
    QT_EQ(t, tree_count(tree_at(x, "home/models/")), 2);
    quern_store_close(s);
    free(x);
}

QT_MAIN(QT(a_store_needs_a_home_and_touches_nothing), QT(open_survives_every_failed_allocation),
        QT(arguments_are_checked), QT(an_unknown_name_cannot_be_fetched),
        QT(options_that_do_not_fit_are_refused), QT(another_file_is_not_the_starter),
        QT(any_model_gets_the_name_it_is_given), QT(only_models_get_a_name))
