/* SPDX-License-Identifier: Apache-2.0 */
/* find_test.c - which path a name means, in every layout that a store may have. */
#include "tree.h"

#define STARTER "SmolLM2-135M-Instruct.Q4_1.gguf"

/* The path of a name is ROOT/rel. */
static void means(qt *t, const tree *x, const char *name, const char *rel)
{
    char want[1024], *path = NULL;
    qn_err err = {0};
    snprintf(want, sizeof want, "%s/%s", x->root, rel);
    const qn_code rc = qn_hub_find(&path, &x->hub, name, &err);
    QT_OKF(t, rc == QN_OK, "%s: %s", name ? name : "(none)", err.msg);
    if (path) QT_STR(t, path, want);
    qn_free(path);
}

/* The name fails with this code, and the message holds both texts. */
static void fails(qt *t, const tree *x, const char *name, qn_code code, const char *a,
                  const char *b)
{
    char *path = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_hub_find(&path, &x->hub, name, &err), code);
    QT_OKF(t, strstr(err.msg, a) && strstr(err.msg, b), "%s: %s", name ? name : "(none)", err.msg);
    QT_OK(t, path == NULL);
}

static void an_empty_store_tells_how_to_begin(qt *t)
{
    tree *x = tree_new("empty");
    fails(t, x, NULL, QN_E_NOTFOUND, "no model in ", "\"quern get starter\"");
    fails(t, x, NULL, QN_E_NOTFOUND, x->home, "/models");
    fails(t, x, "starter", QN_E_NOTFOUND, "\"starter\" is not here", "\"quern get starter\"");
    fails(t, x, "startre", QN_E_NOTFOUND, "startre", "the nearest is \"starter\"");
    fails(t, x, "org/name", QN_E_NOTFOUND, "org/name", "\"quern get org/name\"");
    fails(t, x, "dir/file.gguf", QN_E_NOTFOUND, "no file and no model \"dir/file.gguf\"",
          "starter");
    fails(t, x, "what is this", QN_E_NOTFOUND, "what is this", "\"quern get starter\"");
    free(x);
}

static void files_of_the_store_have_their_names(qt *t)
{
    tree *x = tree_new("files");
    tree_text(x, "home/models/Alpha-Q4.gguf", "");
    means(t, x, NULL, "home/models/Alpha-Q4.gguf"); /* the only one */
    tree_text(x, "home/models/beta.gguf", "");
    tree_text(x, "home/models/ORG/gamma.gguf", "");
    means(t, x, "Alpha-Q4", "home/models/Alpha-Q4.gguf");
    means(t, x, "Alpha-Q4.gguf", "home/models/Alpha-Q4.gguf");
    means(t, x, "alpha-q4.GGUF", "home/models/Alpha-Q4.gguf");
    means(t, x, "lph", "home/models/Alpha-Q4.gguf");
    means(t, x, "ORG/gamma", "home/models/ORG/gamma.gguf");
    means(t, x, "ORG/gamma.gguf", "home/models/ORG/gamma.gguf");
    means(t, x, "GAMMA", "home/models/ORG/gamma.gguf");
    fails(t, x, NULL, QN_E_INVAL, "3 models", "Alpha-Q4, ORG/gamma, beta");
    fails(t, x, "a", QN_E_INVAL, "\"a\" fits 3 models", "beta");
    fails(t, x, "bata", QN_E_NOTFOUND, "bata", "the nearest is \"beta\"");
    fails(t, x, "entirely else", QN_E_NOTFOUND, "entirely else", "\"quern ls\"");
    free(x);
}

static void an_exact_name_wins_over_those_that_hold_it(qt *t)
{
    tree *x = tree_new("exact");
    tree_text(x, "home/models/smol.gguf", "");
    tree_text(x, "home/models/smol-instruct.gguf", "");
    tree_text(x, "home/models/Smol.gguf", "");
    means(t, x, "smol", "home/models/smol.gguf");
    means(t, x, "Smol", "home/models/Smol.gguf");
    fails(t, x, "SMOL", QN_E_INVAL, "fits 2 models", "Smol, smol");
    fails(t, x, "sm", QN_E_INVAL, "fits 3 models", "smol-instruct");
    free(x);
}

static void the_starter_has_two_names_and_is_the_default(qt *t)
{
    tree *x = tree_new("starter");
    tree_text(x, "home/models/" STARTER, "");
    tree_text(x, "home/models/other.gguf", "");
    means(t, x, "starter", "home/models/" STARTER);
    means(t, x, "Starter", "home/models/" STARTER);
    means(t, x, "SmolLM2-135M-Instruct.Q4_1", "home/models/" STARTER);
    means(t, x, STARTER, "home/models/" STARTER);
    means(t, x, "smollm2", "home/models/" STARTER);
    means(t, x, NULL, "home/models/" STARTER);
    free(x);
}

static void folders_of_the_store_are_models_at_one_and_two_levels(qt *t)
{
    tree *x = tree_new("folders");
    tree_copy(x, "home/models/mine/config.json", TREE_MLX "config.json");
    tree_copy(x, "home/models/mine/model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "home/models/ORG/sharded/config.json", "{}");
    tree_text(x, "home/models/ORG/sharded/model.safetensors.index.json", "{}");
    tree_text(x, "home/models/ORG/one-file/some-q8_0.gguf", "");
    tree_text(x, "home/models/ORG/empty/config.json", "{}");
    means(t, x, "mine", "home/models/mine");
    means(t, x, "ORG/sharded", "home/models/ORG/sharded");
    means(t, x, "ORG/one-file", "home/models/ORG/one-file/some-q8_0.gguf");
    means(t, x, "ORG/one-file:q8_0", "home/models/ORG/one-file/some-q8_0.gguf");
    fails(t, x, "ORG/empty", QN_E_NOTFOUND, "ORG/empty", "");
    free(x);
}

static void of_several_files_in_a_repository_one_is_named(qt *t)
{
    const char *const repo = "Org--Model-GGUF", *const c = "0123456789";
    tree *x = tree_new("quants");
    tree_snapshot(x, repo, c, "Model-Q4_K_M.gguf", TREE_GGUF);
    tree_snapshot(x, repo, c, "Model-Q8_0.gguf", TREE_GGUF);
    tree_snapshot(x, repo, c, "mmproj-Model-f16.gguf", TREE_GGUF);
    tree_text(x, "cache/models--Org--Model-GGUF/snapshots/0123456789/UD/Model-Q2.gguf", "");
#define AT "cache/models--Org--Model-GGUF/snapshots/0123456789/"
    fails(t, x, "Org/Model-GGUF", QN_E_INVAL, "fits 3 models",
          "Org/Model-GGUF:Model-Q4_K_M, Org/Model-GGUF:Model-Q8_0");
    means(t, x, "Org/Model-GGUF:Model-Q4_K_M", AT "Model-Q4_K_M.gguf");
    means(t, x, "Org/Model-GGUF:Model-Q4_K_M.gguf", AT "Model-Q4_K_M.gguf");
    means(t, x, "Org/Model-GGUF:Q4_K_M", AT "Model-Q4_K_M.gguf");
    means(t, x, "org/model-gguf:q8_0", AT "Model-Q8_0.gguf");
    means(t, x, "Org/Model-GGUF:UD/Model-Q2", AT "UD/Model-Q2.gguf");
    means(t, x, "Org/Model-GGUF:UD", AT "UD/Model-Q2.gguf");
    means(t, x, "Org/Model-GGUF:Q2", AT "UD/Model-Q2.gguf");
    means(t, x, "Q8_0", AT "Model-Q8_0.gguf");
    fails(t, x, "Org/Model-GGUF:", QN_E_INVAL, "fits 3 models", "Org/Model-GGUF");
    fails(t, x, "Org/Model-GGUF:Q5_0", QN_E_NOTFOUND, "Q5_0", "");
    fails(t, x, "Org/Model-GGUF:K_X", QN_E_NOTFOUND, "K_X", "");
#undef AT
    free(x);
}

static void a_snapshot_that_refs_main_names_is_the_one(qt *t)
{
    tree *x = tree_new("snapshots");
    tree_snapshot(x, "Org--M", "bbbb", "config.json", TREE_MLX "config.json");
    tree_snapshot(x, "Org--M", "bbbb", "model.safetensors", TREE_MLX "model.safetensors");
    tree_snapshot(x, "Org--M", "aaaa", "config.json", TREE_MLX "config.json");
    tree_snapshot(x, "Org--M", "aaaa", "model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "cache/models--Org--M/snapshots/cccc/config.json", "{}"); /* no weights */
    const struct timespec old[2] = {{1000, 0}, {1000, 0}}, young[2] = {{2000, 0}, {2000, 0}};
    QT_EQ(t, utimensat(0, tree_at(x, "cache/models--Org--M/snapshots/aaaa"), young, 0), 0);
    QT_EQ(t, utimensat(0, tree_at(x, "cache/models--Org--M/snapshots/bbbb"), old, 0), 0);
    means(t, x, "Org/M", "cache/models--Org--M/snapshots/aaaa"); /* the newest */
    tree_main(x, "Org--M", "bbbb\n");
    means(t, x, "Org/M", "cache/models--Org--M/snapshots/bbbb");
    means(t, x, "org/m", "cache/models--Org--M/snapshots/bbbb");
    tree_main(x, "Org--M", "cccc"); /* begun, not finished */
    means(t, x, "Org/M", "cache/models--Org--M/snapshots/aaaa");
    tree_main(x, "Org--M", "../../../../etc");
    means(t, x, "Org/M", "cache/models--Org--M/snapshots/aaaa");
    QT_EQ(t, utimensat(0, tree_at(x, "cache/models--Org--M/snapshots/aaaa"), old, 0), 0);
    means(t, x, "Org/M", "cache/models--Org--M/snapshots/bbbb"); /* as old: the later name */
    free(x);
}

static void our_own_come_before_the_caches(qt *t)
{
    tree *x = tree_new("precedence");
    tree_snapshot(x, "Org--M", "aaaa", "m.gguf", TREE_GGUF);
    means(t, x, "Org/M", "cache/models--Org--M/snapshots/aaaa/m.gguf");
    tree_text(x, "home/hub/models--Org--M/snapshots/bbbb/m.gguf", "");
    means(t, x, "Org/M", "home/hub/models--Org--M/snapshots/bbbb/m.gguf");
    tree_text(x, "home/models/Org/M/m.gguf", "");
    means(t, x, "Org/M", "home/models/Org/M/m.gguf");
    means(t, x, NULL, "home/models/Org/M/m.gguf"); /* one name, so one model */
    x->hub.cache = NULL;
    means(t, x, "m", "home/models/Org/M/m.gguf");
    free(x);
}

static void a_split_model_is_one(qt *t)
{
    tree *x = tree_new("split");
    tree_text(x, "home/models/big-00001-of-00003.gguf", "");
    tree_text(x, "home/models/big-00002-of-00003.gguf", "");
    tree_text(x, "home/models/big-00003-of-00003.gguf", "");
    means(t, x, NULL, "home/models/big-00001-of-00003.gguf");
    means(t, x, "big", "home/models/big-00001-of-00003.gguf");
    free(x);
}

static void what_is_on_its_way_is_no_model(qt *t)
{
    static const char *const rels[] = {
        "home/models/.hidden.gguf",
        "home/models/x.gguf.incomplete",
        "home/models/x.gguf.lock",
        "home/models/x.gguf.tmp-0123456789ab",
        "home/models/x.gguf.sha256",
        "home/models/mmproj-x.gguf",
        "home/models/notes.txt",
        "home/models/.gguf",
        "home/models/a\\b.gguf",
        "home/models/esc\x1b[2J.gguf",
        "home/models/latin\xe9.gguf",
        "home/models/x-00002-of-00002.gguf",
        "cache/models--Org--M/snapshots/a/m.gguf.incomplete",
        "cache/datasets--Org--M/snapshots/a/m.gguf",
        "cache/models--Org--M/blobs/m.gguf",
        "cache/models--..--M/snapshots/a/m.gguf",
    };
    tree *x = tree_new("not-models");
    for (size_t i = 0; i < QT_LEN(rels); i++) tree_text(x, rels[i], "");
    QT_EQ(t, mkdir(tree_at(x, "home/models/folder.gguf"), 0777), 0);
    fails(t, x, NULL, QN_E_NOTFOUND, "no model in ", "");
    free(x);
}

static void links_that_lead_nowhere_or_round_are_passed_by(qt *t)
{
    tree *x = tree_new("links");
    tree_link(x, "home/models/nowhere.gguf", "not-there");
    tree_link(x, "home/models/self.gguf", "self.gguf");
    tree_link(x, "home/models/round", ".");
    tree_link(x, "cache/models--Org--M/snapshots/a/up", "..");
    tree_link(x, "cache/models--Org--M/snapshots/a/m.gguf", "../../blobs/gone");
    tree_link(x, "cache/models--Org--N", "models--Org--N");
    fails(t, x, NULL, QN_E_NOTFOUND, "no model in ", "");
    tree_text(x, "home/models/real.gguf", "");
    means(t, x, "real", "home/models/real.gguf");
    free(x);
}

static void hostile_names_find_nothing(qt *t)
{
    static const char *const names[] = {
        "../../secret",          "..\\secret", "models/../../secret",
        "home/../secret",        "\n",         "%s%s%n",
        "Org/M:../../../secret", "~/secret",   "x/../../secret.gguf",
        "file:///etc/passwd",
    };
    char name[5000];
    tree *x = tree_new("hostile");
    tree_text(x, "secret", "x");
    tree_text(x, "home/models/x.gguf", "");
    for (size_t i = 0; i < QT_LEN(names); i++) fails(t, x, names[i], QN_E_NOTFOUND, "no file", "");
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    fails(t, x, name, QN_E_NOTFOUND, "no file and no model \"aaaa", "");
    free(x);
}

static void a_path_that_exists_is_itself(qt *t)
{
    tree *x = tree_new("paths");
    char *path = NULL, cwd[512];
    tree_text(x, "work/here.gguf", "");
    tree_text(x, "work/both.gguf", "");
    tree_text(x, "work/folder/x", "");
    tree_text(x, "work/taken/x", "");
    tree_text(x, "home/models/both.gguf", "");
    tree_text(x, "home/models/taken.gguf", "");
    tree_text(x, "home/models/a-folder.gguf", "");
    means(t, x, tree_at(x, "work/here.gguf"), "work/here.gguf");
    means(t, x, tree_at(x, "work/folder"), "work/folder");
    if (!QT_OK(t, getcwd(cwd, sizeof cwd) != NULL && chdir(tree_at(x, "work")) == 0)) return;
    static const char *const as_they_are[] = {"here.gguf", "./here.gguf", "both.gguf", "folder",
                                              "."};
    for (size_t i = 0; i < QT_LEN(as_they_are); i++) {
        QT_EQ(t, qn_hub_find(&path, &x->hub, as_they_are[i], NULL), QN_OK);
        QT_STR(t, path, as_they_are[i]);
        qn_free(path);
    }
    means(t, x, "taken", "home/models/taken.gguf"); /* a folder here gives way to a model's name */
    means(t, x, "both", "home/models/both.gguf");
    QT_EQ(t, chdir(cwd), 0);
    free(x);
}

static void many_names_are_cut_short(qt *t)
{
    tree *x = tree_new("many");
    char rel[100];
    for (int i = 0; i < 100; i++) {
        snprintf(rel, sizeof rel, "home/models/some-name-%02d.gguf", i);
        tree_text(x, rel, "");
    }
    fails(t, x, NULL, QN_E_INVAL, "100 models are here", "some-name-00, some-name-01");
    fails(t, x, "some", QN_E_INVAL, "\"some\" fits 100 models", " ...");
    means(t, x, "some-name-42", "home/models/some-name-42.gguf");
    free(x);
}

static void a_store_that_cannot_be_read_says_so(qt *t)
{
    tree *x = tree_new("unreadable");
    tree_link(x, "home/models", "models"); /* a loop: opening it fails whoever asks */
    fails(t, x, NULL, QN_E_IO, "/models", "");
    x->hub.home = x->cache;
    tree_text(x, "cache/models", "a file");
    fails(t, x, NULL, QN_E_NOTFOUND, "no model in ", "");
    free(x);
}

static void find_survives_every_failed_allocation(qt *t)
{
    tree *x = tree_new("sweep");
    char rel[100];
    for (int i = 0; i < 40; i++) { /* more than one block of the arena, and names that grow */
        snprintf(rel, sizeof rel, "home/models/ORG/name-%02d.gguf", i);
        tree_text(x, rel, "");
    }
    tree_snapshot(x, "Org--M", "aaaa", "m.gguf", TREE_GGUF);
    tree_main(x, "Org--M", "aaaa");
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 1000; n++) {
        char *path = NULL;
        qn_alloc_fail_after(n);
        rc = qn_hub_find(&path, &x->hub, "Org/M", NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && path == NULL));
        qn_free(path);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_EQ(t, rc, QN_OK);
    free(x);
}

QT_MAIN(QT(an_empty_store_tells_how_to_begin), QT(files_of_the_store_have_their_names),
        QT(an_exact_name_wins_over_those_that_hold_it),
        QT(the_starter_has_two_names_and_is_the_default),
        QT(folders_of_the_store_are_models_at_one_and_two_levels),
        QT(of_several_files_in_a_repository_one_is_named),
        QT(a_snapshot_that_refs_main_names_is_the_one), QT(our_own_come_before_the_caches),
        QT(a_split_model_is_one), QT(what_is_on_its_way_is_no_model),
        QT(links_that_lead_nowhere_or_round_are_passed_by), QT(hostile_names_find_nothing),
        QT(a_path_that_exists_is_itself), QT(many_names_are_cut_short),
        QT(a_store_that_cannot_be_read_says_so), QT(find_survives_every_failed_allocation))
