/* SPDX-License-Identifier: Apache-2.0 */
/* place_test.c - names, folders, room and stamps; the catalogue. */
#include <fcntl.h>

#include "tree.h"

static void only_names_of_the_hubs_form_are_repositories(qt *t)
{
    static const char *const good[] = {"org/name", "a/b", "Org-1/Name.v2_x", "QuantFactory/S-GGUF"};
    static const char *const bad[] = {
        "",     "name",   "/name",  "org/",  "a/b/c",  "../b",  "a/..", "a/.b",        "-a/b",
        "a-/b", "a/b--c", "a/b..c", "a b/c", "a\\b/c", "a/b\n", "./b",  "https://x/y", "\xc3\xa9/b",
    };
    char long_name[200];
    for (size_t i = 0; i < QT_LEN(good); i++) QT_OKF(t, qn_hub_is_repo(good[i]), "%s", good[i]);
    for (size_t i = 0; i < QT_LEN(bad); i++) QT_OKF(t, !qn_hub_is_repo(bad[i]), "%s", bad[i]);
    memset(long_name, 'a', sizeof long_name);
    memcpy(long_name, "a/", 2);
    long_name[2 + 96] = '\0';
    QT_OK(t, qn_hub_is_repo(long_name));
    long_name[2 + 96] = 'a';
    long_name[2 + 97] = '\0';
    QT_OK(t, !qn_hub_is_repo(long_name));
}

static void no_name_leads_out_of_its_folder(qt *t)
{
    static const char *const bad[] = {"",        "/",    "/etc/passwd", "..",    "../x",
                                      "a/../b",  "a//b", "a/",          "./a",   "a/.",
                                      ".hidden", "a\\b", "a\nb",        "a/\x7f"};
    char long_name[300];
    qn_hub h = {.home = (char[]){"/h"}};
    QT_OK(t, qn_hub_is_inside("a"));
    QT_OK(t, qn_hub_is_inside("ORG/NAME/a b.gguf"));
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        char *path = (char *)&h;
        qn_err err = {0};
        QT_OKF(t, !qn_hub_is_inside(bad[i]), "\"%s\"", bad[i]);
        QT_EQ(t, qn_hub_model_path(&path, &h, bad[i], &err), QN_E_INVAL);
        QT_OK(t, path == NULL && strstr(err.msg, "/h/models") != NULL);
    }
    memset(long_name, 'a', sizeof long_name);
    long_name[256] = '\0';
    QT_OK(t, !qn_hub_is_inside(long_name));
    long_name[255] = '\0';
    QT_OK(t, qn_hub_is_inside(long_name));
}

static void a_models_path_lies_below_models(qt *t)
{
    qn_hub h = {.home = (char[]){"/h"}};
    char *path = NULL;
    QT_EQ(t, qn_hub_model_path(&path, &h, "x.gguf", NULL), QN_OK);
    QT_STR(t, path, "/h/models/x.gguf");
    qn_free(path);
    for (size_t n = 0; n < 2; n++) {
        const size_t before = qn_alloc_live();
        qn_alloc_fail_after(n);
        QT_EQ(t, qn_hub_model_path(&path, &h, "x.gguf", NULL), QN_E_NOMEM);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, path == NULL && qn_alloc_live() == before);
    }
}

static void folders_are_made_or_the_error_says_which_not(qt *t)
{
    tree *x = tree_new("folders");
    qn_err err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/a/b/c", x->root);
    QT_EQ(t, qn_hub_make_folders(path, &err), QN_OK);
    QT_EQ(t, qn_hub_make_folders(path, &err), QN_OK);
    QT_EQ(t, tree_count(path), 0);
    tree_text(x, "file", "x");
    snprintf(path, sizeof path, "%s/file/models", x->root);
    QT_EQ(t, qn_hub_make_folders(path, &err), QN_E_IO);
    QT_OKF(t, strstr(err.msg, "/file") && strstr(err.msg, "QUERN_HOME"), "%s", err.msg);
    QT_EQ(t, qn_hub_make_folders("/proc/quern/models", &err), QN_E_IO);
    QT_OKF(t, strstr(err.msg, "/proc/quern") && strstr(err.msg, "QUERN_HOME"), "%s", err.msg);
    qn_alloc_fail_after(0);
    QT_EQ(t, qn_hub_make_folders(path, NULL), QN_E_NOMEM);
    qn_alloc_fail_after(SIZE_MAX);
    free(x);
}

static void too_little_room_is_told_with_all_numbers(qt *t)
{
    qn_err err = {0};
    qn_hub h = {.reserve = 1};
    QT_EQ(t, qn_hub_check_room(&h, qt_tmp(), 1, &err), QN_OK);
    QT_EQ(t, qn_hub_check_room(&h, "not/there/at/all", 1, &err), QN_OK);
    h.reserve = (uint64_t)1 << 62;
    QT_EQ(t, qn_hub_check_room(&h, "not-there", 3 << 20, &err), QN_E_LIMIT);
    QT_OKF(t, strstr(err.msg, "expected 3.0 MiB") && strstr(err.msg, "4294967296.00 GiB"), "%s",
           err.msg);
    h.reserve = UINT64_MAX; /* the sum passes 2^64 */
    QT_EQ(t, qn_hub_check_room(&h, qt_tmp(), 2, &err), QN_E_LIMIT);
    QT_EQ(t, qn_hub_check_room(&h, "/not/there", 2, &err), QN_E_LIMIT);
    qn_alloc_fail_after(0);
    QT_EQ(t, qn_hub_check_room(&h, "x", 2, NULL), QN_E_NOMEM);
    qn_alloc_fail_after(SIZE_MAX);
}

typedef struct listener {
    uint32_t n, stop_at; /* calls; the one that cancels, 0: none */
} listener;

static int listen(void *ctx, const quern_get_progress *p)
{
    listener *c = ctx;
    c->n += p->done <= p->total;
    return c->stop_at != 0 && c->n >= c->stop_at;
}

static void a_stamp_saves_reading_until_the_file_changes(qt *t)
{
    tree *x = tree_new("stamps");
    listener told = {0};
    const qn_hub_report report = {listen, &told};
    quern_get_progress p = {.size = sizeof p, .file = "f"};
    char sha[65];
    const char *path = tree_at(x, "f");
    tree_text(x, "f", "abc");
    QT_EQ(t, qn_hub_digest(sha, path, &report, &p, NULL), QN_OK);
    QT_STR(t, sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    QT_OK(t, told.n > 0 && p.done == 3 && p.total == 3);
    told.n = 0;
    QT_EQ(t, qn_hub_digest(sha, path, &report, &p, NULL), QN_OK);
    QT_STR(t, sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    QT_EQ(t, told.n, 0);
    /* the same second, another nanosecond */
    struct stat st;
    QT_EQ(t, stat(path, &st), 0);
    const long other = st.st_mtim.tv_nsec == 0 ? 1 : st.st_mtim.tv_nsec - 1;
    const struct timespec times[2] = {{0, UTIME_OMIT}, {st.st_mtim.tv_sec, other}};
    tree_text(x, "f", "abd");
    QT_EQ(t, utimensat(AT_FDCWD, path, times, 0), 0);
    QT_EQ(t, qn_hub_digest(sha, path, &report, &p, NULL), QN_OK);
    QT_OK(t, told.n > 0 && sha[0] == 'a' && sha[1] == '5');
    free(x);
}

static void a_broken_stamp_is_no_stamp(qt *t)
{
    static const char *const stamps[] = {
        "", "x", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3 0.000000000\n"};
    tree *x = tree_new("broken-stamps");
    char sha[65];
    tree_text(x, "f", "abc");
    for (size_t i = 0; i < QT_LEN(stamps); i++) {
        listener told = {0};
        const qn_hub_report report = {listen, &told};
        quern_get_progress p = {.file = "f"};
        tree_text(x, "f.sha256", stamps[i]);
        QT_EQ(t, qn_hub_digest(sha, tree_at(x, "f"), &report, &p, NULL), QN_OK);
        QT_OK(t, told.n > 0 && sha[0] == 'b');
    }
    free(x);
}

static void a_digest_needs_a_file_memory_and_patience(qt *t)
{
    tree *x = tree_new("digest-errors");
    listener told = {.stop_at = 1};
    const qn_hub_report report = {listen, &told};
    quern_get_progress p = {.file = "f"};
    qn_err err = {0};
    char sha[65];
    tree_text(x, "f", "abc");
    QT_EQ(t, qn_hub_digest(sha, tree_at(x, "f"), &report, &p, &err), QN_E_CANCELLED);
    QT_EQ(t, qn_hub_digest(sha, tree_at(x, "none"), NULL, &p, &err), QN_E_NOTFOUND);
    QT_EQ(t, qn_hub_digest(sha, x->root, NULL, &p, &err), QN_E_INVAL);
    QT_OK(t, strstr(err.msg, "a folder") != NULL);
    QT_EQ(t, mkfifo(tree_at(x, "pipe"), 0600), 0);
    QT_EQ(t, qn_hub_digest(sha, tree_at(x, "pipe"), NULL, &p, &err), QN_E_INVAL);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_alloc_fail_after(n);
        rc = qn_hub_digest(sha, tree_at(x, "f"), NULL, &p, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || rc == QN_E_NOMEM);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_EQ(t, rc, QN_OK);
    free(x);
}

static void the_catalogue_is_sound(qt *t)
{
    size_t n = 0;
    const qn_hub_entry *all = qn_hub_catalogue(&n);
    QT_OK(t, n > 0);
    for (size_t i = 0; i < n; i++) {
        QT_OK(t, qn_hub_find_entry(all[i].name) == &all[i]);
        QT_OK(t, qn_hub_is_repo(all[i].repo) && qn_hub_is_inside(all[i].file));
        QT_EQ(t, strspn(all[i].revision, "0123456789abcdef"), 40);
        QT_EQ(t, strspn(all[i].sha256, "0123456789abcdef"), 64);
        QT_EQ(t, strlen(all[i].revision) + strlen(all[i].sha256), 104);
        QT_OK(t, all[i].bytes > 0 && all[i].license[0]);
    }
    QT_OK(t, qn_hub_find_entry("STARTER") == qn_hub_find_entry("starter"));
    QT_OK(t, qn_hub_find_entry("start") == NULL);
}

QT_MAIN(QT(only_names_of_the_hubs_form_are_repositories), QT(no_name_leads_out_of_its_folder),
        QT(a_models_path_lies_below_models), QT(folders_are_made_or_the_error_says_which_not),
        QT(too_little_room_is_told_with_all_numbers),
        QT(a_stamp_saves_reading_until_the_file_changes), QT(a_broken_stamp_is_no_stamp),
        QT(a_digest_needs_a_file_memory_and_patience), QT(the_catalogue_is_sound))
