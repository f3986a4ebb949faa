/* SPDX-License-Identifier: Apache-2.0 */
/* import_test.c - a file becomes a model of the store, whole or not at all. */
#include <pthread.h>

#include "tree.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static const qn_hub_entry abc = {.name = "abc", .file = "abc.gguf", .sha256 = ABC, .bytes = 3};
static const qn_hub_entry any = {.name = "any", .file = "any.gguf"};

typedef struct listener {
    uint32_t copying, verifying, stop_at;
    uint64_t done, total;
} listener;

static int listen(void *ctx, const quern_get_progress *p)
{
    listener *c = ctx;
    c->copying += strcmp(p->step, "copying") == 0;
    c->verifying += strcmp(p->step, "verifying") == 0;
    c->done = p->done;
    c->total = p->total;
    return c->stop_at != 0 && c->copying >= c->stop_at;
}

static qn_code import(const tree *x, const qn_hub_entry *e, const char *from, listener *told,
                      qn_err *err)
{
    char *path = NULL;
    const qn_hub_report report = {listen, told};
    const qn_code rc = qn_hub_import(&path, &x->hub, e, from, told ? &report : NULL, err);
    qn_free(path);
    return rc;
}

static bool holds(const char *path, const char *text)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    if (qn_file_read(&bytes, &n, path, 1 << 24, NULL) != QN_OK) return false;
    const bool same = n == strlen(text) && memcmp(bytes, text, n) == 0;
    qn_free(bytes);
    return same;
}

static int in_models(const tree *x)
{
    char path[400];
    snprintf(path, sizeof path, "%s/models", x->home);
    return tree_count(path);
}

static void a_file_is_copied_once_and_known_afterwards(qt *t)
{
    tree *x = tree_new("once");
    listener told = {0};
    char *path = NULL;
    struct stat st, again;
    const qn_hub_report report = {listen, &told};
    tree_text(x, "from", "abc");
    QT_EQ(t, qn_hub_import(&path, &x->hub, &abc, tree_at(x, "from"), &report, NULL), QN_OK);
    QT_STR(t, path, tree_at(x, "home/models/abc.gguf"));
    QT_OK(t, holds(path, "abc"));
    QT_OK(t, told.copying > 1 && told.verifying == 0 && told.done == 3 && told.total == 3);
    QT_EQ(t, in_models(x), 2); /* the file and its stamp */
    QT_EQ(t, stat(path, &st), 0);
    qn_free(path);
    memset(&told, 0, sizeof told);
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), &told, NULL), QN_OK);
    QT_OK(t, told.copying == 0);
    QT_EQ(t, stat(tree_at(x, "home/models/abc.gguf"), &again), 0);
    QT_EQ(t, st.st_ino, again.st_ino);
    (void)unlink(tree_at(x, "home/models/abc.gguf.sha256"));
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), &told, NULL), QN_OK); /* read again, and stamped */
    QT_OK(t, told.copying == 0 && told.verifying > 0);
    QT_EQ(t, in_models(x), 2);
    tree_text(x, "other",
              "abd"); /* a file that is named is looked at, also when it is not needed */
    QT_EQ(t, import(x, &abc, tree_at(x, "other"), &told, NULL), QN_E_FORMAT);
    QT_EQ(t, import(x, &abc, "/not/there", &told, NULL), QN_E_NOTFOUND);
    QT_OK(t, holds(tree_at(x, "home/models/abc.gguf"), "abc"));
    free(x);
}

static void another_digest_is_refused_and_leaves_nothing(qt *t)
{
    tree *x = tree_new("digest");
    qn_err err = {0};
    tree_text(x, "from", "abd");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, &err), QN_E_FORMAT);
    QT_OKF(t, strstr(err.msg, "/from") && strstr(err.msg, "a52d159f") && strstr(err.msg, ABC), "%s",
           err.msg);
    QT_EQ(t, in_models(x), 0);
    tree_text(x, "from", "ab");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, &err), QN_E_FORMAT);
    QT_OKF(t, strstr(err.msg, "2 bytes, expected 3"), "%s", err.msg);
    QT_EQ(t, in_models(x), 0);
    free(x);
}

static void a_damaged_model_is_replaced(qt *t)
{
    tree *x = tree_new("damaged");
    tree_text(x, "from", "abc");
    tree_text(x, "home/models/abc.gguf", "abX");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, NULL), QN_OK);
    QT_OK(t, holds(tree_at(x, "home/models/abc.gguf"), "abc"));
    (void)unlink(tree_at(x, "home/models/abc.gguf"));
    tree_link(x, "home/models/abc.gguf", "nowhere");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, NULL), QN_OK);
    QT_OK(t, holds(tree_at(x, "home/models/abc.gguf"), "abc"));
    free(x);
}

static void a_damaged_model_stays_when_the_source_is_no_better(qt *t)
{
    tree *x = tree_new("no-better");
    tree_text(x, "from", "abd");
    tree_text(x, "home/models/abc.gguf", "abX");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, NULL), QN_E_FORMAT);
    QT_OK(t, holds(tree_at(x, "home/models/abc.gguf"), "abX"));
    QT_EQ(t, import(x, &abc, tree_at(x, "home/models/abc.gguf"), NULL, NULL), QN_E_FORMAT);
    QT_OK(t, holds(tree_at(x, "home/models/abc.gguf"), "abX"));
    free(x);
}

static void a_name_of_ones_own_never_loses_what_it_has(qt *t)
{
    tree *x = tree_new("own");
    qn_err err = {0};
    listener told = {0};
    tree_text(x, "from", "anything");
    QT_EQ(t, import(x, &any, tree_at(x, "from"), NULL, &err), QN_OK);
    QT_EQ(t, import(x, &any, tree_at(x, "from"), &told, &err), QN_OK);
    QT_EQ(t, told.copying, 0);
    QT_EQ(t, tree_count(x->root), 2); /* home and from: nothing is written beside a source */
    tree_text(x, "from", "something");
    QT_EQ(t, import(x, &any, tree_at(x, "from"), NULL, &err), QN_E_INVAL);
    QT_OKF(t, strstr(err.msg, "any.gguf") && strstr(err.msg, "other bytes"), "%s", err.msg);
    QT_OK(t, holds(tree_at(x, "home/models/any.gguf"), "anything"));
    free(x);
}

static void a_cancelled_copy_leaves_nothing(qt *t)
{
    tree *x = tree_new("cancel");
    qn_err err = {0};
    for (uint32_t at = 1; at <= 2; at++) { /* before the first byte, and behind the last */
        listener told = {.stop_at = at};
        tree_text(x, "from", "abc");
        QT_EQ(t, import(x, &abc, tree_at(x, "from"), &told, &err), QN_E_CANCELLED);
        QT_EQ(t, in_models(x), 0);
    }
    QT_OK(t, strstr(err.msg, "abc.gguf") != NULL);
    free(x);
}

static void a_full_disk_is_told_before_the_first_byte(qt *t)
{
    tree *x = tree_new("full");
    qn_err err = {0};
    listener told = {0};
    x->hub.reserve = (uint64_t)1 << 62;
    tree_text(x, "from", "abc");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), &told, &err), QN_E_LIMIT);
    QT_OKF(t, strstr(err.msg, "iB free"), "%s", err.msg);
    QT_EQ(t, told.copying, 0);
    QT_EQ(t, in_models(x), 0);
    free(x);
}

static void a_place_that_cannot_be_written_is_named(qt *t)
{
    tree *x = tree_new("place");
    qn_err err = {0};
    qn_hub h = x->hub;
    char *path = NULL;
    char file[300], proc[] = "/proc/quern";
    tree_text(x, "from", "abc");
    snprintf(file, sizeof file, "%s/from", x->root);
    h.home = file;
    QT_EQ(t, qn_hub_import(&path, &h, &abc, tree_at(x, "from"), NULL, &err), QN_E_IO);
    QT_OKF(t, strstr(err.msg, file) && strstr(err.msg, "QUERN_HOME"), "%s", err.msg);
    h.home = proc;
    QT_EQ(t, qn_hub_import(&path, &h, &abc, tree_at(x, "from"), NULL, &err), QN_E_IO);
    QT_OKF(t, strstr(err.msg, proc) && strstr(err.msg, "QUERN_HOME"), "%s", err.msg);
    tree_link(x, "home/models", "/proc"); /* a folder, but nothing can be made in it */
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, &err), QN_E_IO);
    QT_OKF(t, strstr(err.msg, "/models") && strstr(err.msg, "QUERN_HOME"), "%s", err.msg);
    QT_OK(t, path == NULL);
    free(x);
}

static void only_a_file_can_be_imported(qt *t)
{
    tree *x = tree_new("kinds");
    qn_err err = {0};
    QT_EQ(t, import(x, &abc, tree_at(x, "none"), NULL, &err), QN_E_NOTFOUND);
    QT_OK(t, strstr(err.msg, "/none") != NULL);
    QT_EQ(t, import(x, &abc, x->root, NULL, &err), QN_E_INVAL);
    QT_EQ(t, mkfifo(tree_at(x, "pipe"), 0600), 0);
    QT_EQ(t, import(x, &abc, tree_at(x, "pipe"), NULL, &err), QN_E_INVAL);
    QT_EQ(t, mkdir(tree_at(x, "home/models/abc.gguf"), 0777), 0);
    tree_text(x, "from", "abc");
    QT_EQ(t, import(x, &abc, tree_at(x, "from"), NULL, &err), QN_E_INVAL);
    QT_EQ(t,
          import(x, &(qn_hub_entry){.name = "x", .file = "../x"}, tree_at(x, "from"), NULL, &err),
          QN_E_INVAL);
    free(x);
}

typedef struct job {
    const tree *x;
    const qn_hub_entry *e;
    const char *from;
    qn_code rc;
} job;

static void *run_job(void *ctx)
{
    job *j = ctx;
    j->rc = import(j->x, j->e, j->from, NULL, NULL);
    return NULL;
}

static void two_that_import_one_file_both_succeed(qt *t)
{
    enum { N = 4, BYTES = 3 << 20 };
    tree *x = tree_new("two");
    pthread_t threads[N];
    job jobs[N];
    char from[300], sha[65], there[65];
    quern_get_progress p = {.file = "from"};
    uint8_t *bytes = malloc(BYTES);
    for (size_t i = 0; bytes && i < BYTES; i++) bytes[i] = (uint8_t)(i * i >> 7);
    snprintf(from, sizeof from, "%s/from", x->root);
    tree_put(x, "from", bytes, BYTES);
    free(bytes);
    QT_EQ(t, qn_hub_digest(sha, from, NULL, &p, NULL), QN_OK);
    const qn_hub_entry e = {.name = "big", .file = "big.gguf", .sha256 = sha, .bytes = BYTES};
    for (size_t i = 0; i < N; i++) {
        jobs[i] = (job){x, &e, from, QN_E_INTERNAL};
        QT_EQ(t, pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (size_t i = 0; i < N; i++) {
        QT_EQ(t, pthread_join(threads[i], NULL), 0);
        QT_EQ(t, jobs[i].rc, QN_OK);
    }
    (void)unlink(tree_at(x, "home/models/big.gguf.sha256"));
    QT_EQ(t, qn_hub_digest(there, tree_at(x, "home/models/big.gguf"), NULL, &p, NULL), QN_OK);
    QT_STR(t, there, sha);
    QT_EQ(t, in_models(x), 2);
    free(x);
}

static void import_survives_every_failed_allocation(qt *t)
{
    tree *x = tree_new("sweep");
    char from[300], to[300], stamp[320];
    tree_text(x, "from", "abc");
    snprintf(from, sizeof from, "%s/from", x->root);
    snprintf(to, sizeof to, "%s/home/models/any.gguf", x->root);
    snprintf(stamp, sizeof stamp, "%s.sha256", to);
    for (int again = 0; again < 2; again++) { /* the copy, and finding it there */
        const size_t before = qn_alloc_live();
        qn_code rc = QN_E_NOMEM;
        for (size_t n = 0; rc != QN_OK && n < 64; n++) {
            char *path = NULL;
            qn_alloc_fail_after(n);
            rc = qn_hub_import(&path, &x->hub, &any, from, NULL, NULL);
            qn_alloc_fail_after(SIZE_MAX);
            QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && path == NULL));
            if (rc != QN_OK &&
                !again) /* nothing, or all of it when only syncing the folder failed */
                QT_OK(t, in_models(x) <= 0 || (in_models(x) == 1 && holds(to, "abc")));
            qn_free(path);
            QT_OK(t, qn_alloc_live() == before);
        }
        QT_EQ(t, rc, QN_OK);
        (void)unlink(stamp);
    }
    QT_OK(t, holds(to, "abc"));
    free(x);
}

QT_MAIN(QT(a_file_is_copied_once_and_known_afterwards),
        QT(another_digest_is_refused_and_leaves_nothing), QT(a_damaged_model_is_replaced),
        QT(a_damaged_model_stays_when_the_source_is_no_better),
        QT(a_name_of_ones_own_never_loses_what_it_has), QT(a_cancelled_copy_leaves_nothing),
        QT(a_full_disk_is_told_before_the_first_byte), QT(a_place_that_cannot_be_written_is_named),
        QT(only_a_file_can_be_imported), QT(two_that_import_one_file_both_succeed),
        QT(import_survives_every_failed_allocation))
