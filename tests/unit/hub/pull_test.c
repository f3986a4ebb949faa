/* SPDX-License-Identifier: Apache-2.0 */
/* pull_test.c - a repository, or one file of the catalogue, out of a stand-in hub into a store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hub/hub.h"
#include "kit_hub.h"
#include "qt.h"

#define REPO "org/pull"

typedef struct world {
    kit_hub *kit;
    qn_hub hub;
    char home[300], cache[320], root[400];
    char *path;
    qn_err err;
    uint64_t done, total;
    uint32_t index, count, told;
    bool back; /* progress went back */
    const char *stop_file;
} world;

static int tell(void *ctx, const quern_get_progress *p)
{
    world *w = ctx;
    w->told++;
    w->back = w->back || p->done < w->done || p->index < w->index;
    w->done = p->done;
    w->total = p->total;
    w->index = p->index;
    w->count = p->count;
    return w->stop_file && strcmp(w->stop_file, p->file) == 0;
}

static bool open_world(qt *t, world *w)
{
    static const char config[] = "{\"model_type\": \"llama\"}";
    static int n;
    *w = (world){.kit = kit_hub_start(REPO, 0)};
    if (!QT_OK(t, w->kit != NULL)) return false;
    kit_hub_file(w->kit, "config.json", config, strlen(config), false);
    kit_hub_file(w->kit, "README.md", "words", 5, false);
    kit_hub_noise(w->kit, "model.safetensors", 200000, 1);
    kit_hub_noise(w->kit, "sub/more.safetensors", 100000, 2);
    kit_hub_noise(w->kit, "pytorch_model.bin", 50, 3);
    snprintf(w->home, sizeof w->home, "%s/home%d", qt_tmp(), n);
    snprintf(w->cache, sizeof w->cache, "%s/cache%d", qt_tmp(), n++);
    snprintf(w->root, sizeof w->root, "%s/models--org--pull", w->cache);
    w->hub = (qn_hub){.home = w->home,
                      .cache = w->cache,
                      .endpoint = (char *)(uintptr_t)kit_hub_endpoint(w->kit),
                      .retry_ms = 1};
    return true;
}

static qn_code pull(world *w, const char *revision, const char *include)
{
    const qn_hub_report report = {.tell = tell, .ctx = w};
    qn_free(w->path);
    w->err = (qn_err){.code = QN_OK};
    w->done = w->index = w->told = 0;
    w->back = false;
    return qn_hub_pull_repo(&w->path, &w->hub, REPO, revision, include, &report, &w->err);
}

static void close_world(world *w)
{
    qn_free(w->path);
    kit_hub_stop(w->kit);
}

static bool holds(const world *w, const char *below, const char *file)
{
    char path[700];
    uint8_t *bytes = NULL;
    size_t n = 0, want = 0;
    const void *right = kit_hub_bytes(w->kit, file, &want);
    snprintf(path, sizeof path, "%s/%s", w->root, below);
    const bool ok = qn_file_read(&bytes, &n, path, 1 << 24, NULL) == QN_OK && n == want &&
                    memcmp(bytes, right, n) == 0;
    qn_free(bytes);
    return ok;
}

static bool exists(const world *w, const char *below)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", w->root, below);
    return qn_file_exists(path);
}

static void text_is(qt *t, const world *w, const char *below, const char *want)
{
    char path[700], found[300] = "";
    uint8_t *text = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", w->root, below);
    const ssize_t len = readlink(path, found, sizeof found - 1);
    if (len < 0 && qn_file_read(&text, &n, path, 299, NULL) == QN_OK) memcpy(found, text, n);
    QT_STR(t, found, want);
    qn_free(text);
}

#define SNAPSHOT "snapshots/" KIT_HUB_COMMIT

static void a_repository_is_laid_out_as_other_tools_do(qt *t)
{
    world w;
    char want[800];
    if (!open_world(t, &w)) return;
    if (!QT_OKF(t, pull(&w, NULL, NULL) == QN_OK, "%s", w.err.msg)) return;
    snprintf(want, sizeof want, "%s/" SNAPSHOT, w.root);
    QT_STR(t, w.path, want);
    QT_OK(t, holds(&w, SNAPSHOT "/config.json", "config.json"));
    QT_OK(t, holds(&w, SNAPSHOT "/model.safetensors", "model.safetensors"));
    QT_OK(t, holds(&w, SNAPSHOT "/sub/more.safetensors", "sub/more.safetensors"));
    QT_OK(t, !exists(&w, SNAPSHOT "/pytorch_model.bin") && !kit_hub_asked(w.kit, "pytorch"));
    snprintf(want, sizeof want, "../../blobs/%s", kit_hub_digest(w.kit, "config.json"));
    text_is(t, &w, SNAPSHOT "/config.json", want);
    snprintf(want, sizeof want, "../../../blobs/%s", kit_hub_digest(w.kit, "sub/more.safetensors"));
    text_is(t, &w, SNAPSHOT "/sub/more.safetensors", want);
    text_is(t, &w, "refs/main", KIT_HUB_COMMIT);
    QT_OK(t, strstr(kit_hub_last(w.kit, "config.json"),
                    "/org/pull/resolve/" KIT_HUB_COMMIT "/config.json"));
    QT_OK(t, strstr(kit_hub_last(w.kit, "/api/"),
                    "GET /api/models/org/pull/revision/main?blobs=true "));
    QT_OK(t, !w.back && w.done == w.total && w.count == 4 && w.index == 3);
    QT_EQ(t, w.total, 300000 + 5 + strlen("{\"model_type\": \"llama\"}"));
    kit_hub_fault(w.kit,
                  (kit_hub_faults){.where = ""}); /* once more: nothing comes over the wire */
    QT_EQ(t, pull(&w, NULL, NULL), QN_OK);
    QT_OK(t, kit_hub_sent(w.kit) == 0 && kit_hub_asked(w.kit, "") == 1 && w.done == w.total);
    close_world(&w);
}

static void a_revision_has_its_own_ref(qt *t)
{
    world w;
    if (!open_world(t, &w)) return;
    QT_OKF(t, pull(&w, "refs/pr/1", NULL) == QN_OK, "%s", w.err.msg);
    QT_OK(t, strstr(kit_hub_last(w.kit, "/api/"), "/revision/refs%2Fpr%2F1?blobs=true "));
    text_is(t, &w, "refs/refs/pr/1", KIT_HUB_COMMIT);
    QT_OK(t, !exists(&w, "refs/main"));
    QT_EQ(t, pull(&w, KIT_HUB_COMMIT, NULL), QN_OK);
    QT_OK(t, !exists(&w, "refs/" KIT_HUB_COMMIT));
    QT_EQ(t, pull(&w, "ffffffffffffffffffffffffffffffffffffffff", NULL), QN_E_FORMAT);
    QT_OKF(t, strstr(w.err.msg, "expected ffff"), "%s", w.err.msg);
    close_world(&w);
}

static void one_gguf_file_is_the_path(qt *t)
{
    world w;
    char want[800];
    if (!open_world(t, &w)) return;
    kit_hub_noise(w.kit, "q 4/m.Q4_1.gguf", 777, 9);
    QT_OKF(t, pull(&w, NULL, "*Q4*") == QN_OK, "%s", w.err.msg);
    snprintf(want, sizeof want, "%s/" SNAPSHOT "/q 4/m.Q4_1.gguf", w.root);
    QT_STR(t, w.path, want);
    QT_OK(t, strstr(kit_hub_last(w.kit, "m.Q4"), "/q%204/m.Q4_1.gguf HTTP"));
    QT_OK(t, holds(&w, SNAPSHOT "/q 4/m.Q4_1.gguf", "q 4/m.Q4_1.gguf") &&
                 !exists(&w, SNAPSHOT "/config.json"));
    QT_EQ(t, pull(&w, NULL, "*.onnx"), QN_E_INVAL);
    QT_OKF(t, strstr(w.err.msg, "org/pull: none of its 6 files matches") && !w.path, "%s",
           w.err.msg);
    close_world(&w);
}

static void without_a_cache_it_lies_at_home(qt *t)
{
    world w;
    if (!open_world(t, &w)) return;
    w.hub.cache = NULL;
    QT_OKF(t, pull(&w, NULL, NULL) == QN_OK, "%s", w.err.msg);
    snprintf(w.root, sizeof w.root, "%s/hub/models--org--pull", w.home);
    QT_OK(t, holds(&w, SNAPSHOT "/model.safetensors", "model.safetensors"));
    QT_OK(t, w.path && strncmp(w.path, w.root, strlen(w.root)) == 0);
    close_world(&w);
}

static void a_stop_between_files_leaves_no_ref(qt *t)
{
    world w;
    if (!open_world(t, &w)) return;
    w.stop_file = "sub/more.safetensors";
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_CANCELLED);
    QT_OK(t, !w.path && !exists(&w, "refs/main"));
    QT_OK(t, holds(&w, SNAPSHOT "/model.safetensors", "model.safetensors"));
    w.stop_file = NULL;
    kit_hub_fault(w.kit, (kit_hub_faults){.where = ""});
    QT_EQ(t, pull(&w, NULL, NULL), QN_OK);
    QT_OK(t, kit_hub_asked(w.kit, "/model.safetensors") == 0 && exists(&w, "refs/main"));
    close_world(&w);
}

static void a_full_disk_is_told_before_the_first_byte(qt *t)
{
    world w;
    if (!open_world(t, &w)) return;
    w.hub.reserve = UINT64_MAX / 4;
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_LIMIT);
    QT_OKF(t, strstr(w.err.msg, "org/pull") && strstr(w.err.msg, "free"), "%s", w.err.msg);
    QT_OK(t, kit_hub_sent(w.kit) == 0 && !exists(&w, "blobs"));
    w.hub.reserve = 0;
    QT_EQ(t, pull(&w, NULL, NULL), QN_OK);
    w.hub.reserve = UINT64_MAX / 4; /* nothing is missing, so nothing is needed */
    QT_EQ(t, pull(&w, NULL, NULL), QN_OK);
    close_world(&w);
}

static void refusals_name_the_repository_and_what_to_do(qt *t)
{
    world w;
    char page[128];
    if (!open_world(t, &w)) return;
    snprintf(page, sizeof page, "%s/" REPO, kit_hub_endpoint(w.kit));
    kit_hub_token(w.kit, "hf_key");
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_DENIED);
    QT_OKF(t,
           strstr(w.err.msg, page) && strstr(w.err.msg, "HF_TOKEN") && strstr(w.err.msg, "gated"),
           "%s", w.err.msg);
    w.hub.token = (char *)(uintptr_t) "hf_other";
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_DENIED);
    QT_OKF(t, strstr(w.err.msg, page) && !strstr(w.err.msg, "hf_other"), "%s", w.err.msg);
    w.hub.token = (char *)(uintptr_t) "hf_key";
    QT_OKF(t, pull(&w, NULL, NULL) == QN_OK, "%s", w.err.msg);
    kit_hub_fault(w.kit, (kit_hub_faults){.status = 404});
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_NOTFOUND);
    QT_OKF(t, strstr(w.err.msg, page) && !strstr(w.err.msg, "private"), "%s", w.err.msg);
    close_world(&w);
}

static void the_list_is_asked_for_again_and_has_a_ceiling(qt *t)
{
    world w;
    if (!open_world(t, &w)) return;
    kit_hub_fault(w.kit, (kit_hub_faults){.status = 503, .times = 3});
    QT_OKF(t, pull(&w, NULL, NULL) == QN_OK, "%s", w.err.msg);
    kit_hub_list(w.kit, "{\"sha\": 1}");
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_FORMAT);
    char *big = malloc((17 << 20) + 1);
    memset(big, ' ', 17 << 20);
    big[17 << 20] = '\0';
    kit_hub_list(w.kit, big);
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_LIMIT);
    QT_OKF(t, strstr(w.err.msg, "list"), "%s", w.err.msg);
    free(big);
    close_world(&w);
}

static void names_that_are_none_are_refused_without_a_word_to_the_hub(qt *t)
{
    static const char *const repos[] = {"",      "a",     "a/b/c", "../b", "a/..",
                                        "a b/c", "a/b?x", "/a/b",  "a/b\n"};
    static const char *const revisions[] = {"",   "a b", "../x", "a//b",
                                            "/a", "a?b", ".git", "x/../y"};
    world w;
    if (!open_world(t, &w)) return;
    for (size_t i = 0; i < QT_LEN(repos); i++) {
        char *path = NULL;
        QT_OKF(t,
               qn_hub_pull_repo(&path, &w.hub, repos[i], NULL, NULL, NULL, &w.err) == QN_E_INVAL &&
                   !path,
               "%s", repos[i]);
    }
    for (size_t i = 0; i < QT_LEN(revisions); i++)
        QT_OKF(t, pull(&w, revisions[i], NULL) == QN_E_INVAL, "%s", revisions[i]);
    w.hub.endpoint = (char *)(uintptr_t) "http://hub.example";
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_INVAL);
    QT_OKF(t, strstr(w.err.msg, "endpoint"), "%s", w.err.msg);
    QT_EQ(t, kit_hub_asked(w.kit, ""), 0);
    close_world(&w);
}

static void a_link_that_is_there_is_renewed_and_a_file_is_not_lost(qt *t)
{
    world w;
    char path[700];
    if (!open_world(t, &w)) return;
    QT_EQ(t, pull(&w, NULL, NULL), QN_OK);
    snprintf(path, sizeof path, "%s/" SNAPSHOT "/config.json", w.root);
    QT_OK(t, unlink(path) == 0 && symlink("../../blobs/elsewhere", path) == 0);
    QT_EQ(t, pull(&w, NULL, NULL), QN_OK);
    QT_OK(t, holds(&w, SNAPSHOT "/config.json", "config.json"));
    QT_OK(t, unlink(path) == 0 && qn_file_write(path, "mine", 4, NULL) == QN_OK);
    QT_EQ(t, pull(&w, NULL, NULL), QN_E_IO);
    text_is(t, &w, SNAPSHOT "/config.json", "mine");
    close_world(&w);
}

static qn_hub_entry entry(const world *w)
{
    size_t n = 0;
    (void)kit_hub_bytes(w->kit, "model.safetensors", &n);
    return (qn_hub_entry){.name = "small",
                          .repo = REPO,
                          .revision = KIT_HUB_COMMIT,
                          .file = "model.safetensors",
                          .sha256 = kit_hub_digest(w->kit, "model.safetensors"),
                          .bytes = n};
}

static void a_catalogue_file_comes_to_the_store(qt *t)
{
    world w;
    if (!open_world(t, &w)) return;
    const qn_hub_report report = {.tell = tell, .ctx = &w};
    qn_hub_entry e = entry(&w);
    kit_hub_fault(w.kit, (kit_hub_faults){.cut_after = 70000, .times = 2});
    QT_OKF(t, qn_hub_pull_entry(&w.path, &w.hub, &e, &report, &w.err) == QN_OK, "%s", w.err.msg);
    snprintf(w.root, sizeof w.root, "%s/models", w.home);
    QT_OK(t, holds(&w, "model.safetensors", "model.safetensors") &&
                 exists(&w, "model.safetensors.sha256"));
    QT_OK(t, w.path && !exists(&w, "model.safetensors.incomplete") && w.done == e.bytes);
    QT_EQ(t, kit_hub_asked(w.kit, "/org/pull/resolve/" KIT_HUB_COMMIT "/model.safetensors"), 3);
    kit_hub_fault(w.kit, (kit_hub_faults){.where = ""});
    qn_free(w.path);
    QT_EQ(t, qn_hub_pull_entry(&w.path, &w.hub, &e, NULL, &w.err), QN_OK);
    QT_EQ(t, kit_hub_asked(w.kit, ""), 0);
    qn_free(w.path);
    e.sha256 = NULL;
    QT_EQ(t, qn_hub_pull_entry(&w.path, &w.hub, &e, NULL, &w.err), QN_E_INVAL);
    e = entry(&w);
    e.file = "../x";
    QT_EQ(t, qn_hub_pull_entry(&w.path, &w.hub, &e, NULL, &w.err), QN_E_INVAL);
    e = entry(&w);
    e.file = "other.gguf";
    QT_EQ(t, qn_hub_pull_entry(&w.path, &w.hub, &e, NULL, &w.err), QN_E_NOTFOUND);
    w.hub.reserve = UINT64_MAX / 4;
    QT_EQ(t, qn_hub_pull_entry(&w.path, &w.hub, &e, NULL, &w.err), QN_E_LIMIT);
    QT_OK(t, w.path == NULL);
    close_world(&w);
}

static void pulls_survive_every_failed_allocation(qt *t)
{
    for (int one = 0; one < 2; one++) {
        qn_code rc = QN_E_NOMEM;
        world w;
        if (!open_world(t, &w)) return;
        const qn_hub_entry e = entry(&w);
        const size_t live = qn_alloc_live();
        for (size_t n = 0; rc != QN_OK && n < 400; n++) {
            qn_alloc_fail_after(n);
            rc = one ? qn_hub_pull_entry(&w.path, &w.hub, &e, NULL, NULL) : pull(&w, NULL, NULL);
            qn_alloc_fail_after(SIZE_MAX);
            QT_OKF(t, rc == QN_OK ? w.path != NULL : rc == QN_E_NOMEM && !w.path, "%zu: %d %s", n,
                   rc, w.err.msg);
            QT_EQ(t, qn_alloc_live(), live + (rc == QN_OK));
        }
        QT_EQ(t, rc, QN_OK);
        close_world(&w);
    }
}

QT_MAIN(QT(a_repository_is_laid_out_as_other_tools_do), QT(a_revision_has_its_own_ref),
        QT(one_gguf_file_is_the_path), QT(without_a_cache_it_lies_at_home),
        QT(a_stop_between_files_leaves_no_ref), QT(a_full_disk_is_told_before_the_first_byte),
        QT(refusals_name_the_repository_and_what_to_do),
        QT(the_list_is_asked_for_again_and_has_a_ceiling),
        QT(names_that_are_none_are_refused_without_a_word_to_the_hub),
        QT(a_link_that_is_there_is_renewed_and_a_file_is_not_lost),
        QT(a_catalogue_file_comes_to_the_store), QT(pulls_survive_every_failed_allocation))
