/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - a store's folders, built file by file for one test.
 *
 *     ROOT/home/models/...    ROOT/home/hub/...    ROOT/cache/models--ORG--NAME/...
 */
#ifndef QN_TESTS_TREE_H
#define QN_TESTS_TREE_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hub/hub.h"
#include "qt.h"

#define TREE_GGUF "tests/golden/llama/gguf-q4_1/model.gguf"
#define TREE_GGUF_PLAIN "tests/golden/llama/gguf-f16/model.gguf"
#define TREE_MLX "tests/golden/llama/mlx-b4-g64/"

typedef struct tree {
    char root[256], home[300], cache[300];
    qn_hub hub; /* borrows home and cache */
} tree;

static inline tree *tree_new(const char *name) /* free() it */
{
    tree *t = calloc(1, sizeof *t);
    if (!t) abort();
    snprintf(t->root, sizeof t->root, "%s/%s", qt_tmp(), name);
    snprintf(t->home, sizeof t->home, "%s/home", t->root);
    snprintf(t->cache, sizeof t->cache, "%s/cache", t->root);
    if (mkdir(t->root, 0777) != 0) abort();
    t->hub = (qn_hub){.home = t->home, .cache = t->cache, .reserve = 1};
    return t;
}

/* ROOT/rel, its folders made; borrowed until the next but three. */
static inline const char *tree_at(const tree *t, const char *rel)
{
    static char path[4][1024];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", t->root, rel);
    for (char *s = p + strlen(t->root) + 1; (s = strchr(s, '/')) != NULL; s++) {
        *s = '\0';
        (void)mkdir(p, 0777);
        *s = '/';
    }
    return p;
}

static inline void tree_put(const tree *t, const char *rel, const void *data, size_t n)
{
    FILE *f = fopen(tree_at(t, rel), "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) abort();
}

static inline void tree_text(const tree *t, const char *rel, const char *text)
{
    tree_put(t, rel, text, strlen(text));
}

static inline void tree_copy(const tree *t, const char *rel, const char *from)
{
    uint8_t *data = NULL;
    size_t n = 0;
    if (qn_file_read(&data, &n, from, 1 << 24, NULL) != QN_OK) abort();
    tree_put(t, rel, data, n);
    qn_free(data);
}

static inline void tree_link(const tree *t, const char *rel, const char *target)
{
    if (symlink(target, tree_at(t, rel)) != 0) abort();
}

/* As Hugging Face tools lay it out: the bytes in blobs, a link in the snapshot. */
static inline void tree_snapshot(const tree *t, const char *repo, const char *commit,
                                 const char *file, const char *from)
{
    char rel[512], target[512];
    snprintf(rel, sizeof rel, "cache/models--%s/blobs/%s-%s", repo, commit, file);
    tree_copy(t, rel, from);
    snprintf(target, sizeof target, "../../blobs/%s-%s", commit, file);
    snprintf(rel, sizeof rel, "cache/models--%s/snapshots/%s/%s", repo, commit, file);
    tree_link(t, rel, target);
}

static inline void tree_main(const tree *t, const char *repo, const char *commit)
{
    char rel[512];
    snprintf(rel, sizeof rel, "cache/models--%s/refs/main", repo);
    tree_text(t, rel, commit);
}

/* Names in a folder but for "." and ".."; -1: there is no such folder. */
static inline int tree_count(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    if (!d) return -1;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

#endif
