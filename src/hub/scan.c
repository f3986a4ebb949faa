/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - what lies in the store, by walking it: no index that could be out of date.
 *
 *     HOME/models   FILE.gguf -> "FILE"    ORG/FILE.gguf -> "ORG/FILE"    NAME/, ORG/NAME/ -> as a snapshot
 *     HOME/hub and the cache   models--ORG--NAME/snapshots/COMMIT/ -> "ORG/NAME"
 *
 * A folder with config.json and weights is a model; of GGUF files in a folder the only one has the
 * folder's name, and each of several is "ORG/NAME:FILE". Later parts of a split model, projectors,
 * names that begin with a dot and all that does not end in ".gguf" (what is on its way, locks) are no
 * models. Names are made from what lies there, never paths from names, so no name leads elsewhere.
 * Links inside the cache are its normal form; the depth is fixed, so loops of links end.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "format/gguf.h"
#include "hub/hub_int.h"

enum { MAX_TEXTS = 64 << 20, MAX_REF = 256, MAX_PLAIN = 1 << 16 };

typedef struct names { /* of a folder, in order */
    char **at;
    size_t n;
} names;

typedef struct place { /* a folder that may be a model, or hold some */
    const char *label; /* its name as a model */
    const char *dir;
    const char *revision; /* or NULL */
} place;

/* -- texts of the scan ------------------------------------------------------------------------- */

static qn_code no_memory(qn_err *err) { return qn_fail(err, QN_E_NOMEM, "list of models"); }

/* a, the separator (or '\0': none) and b[0, n) in one text. */
static char *text3(qn_hub_scan *s, const char *a, char separator, const char *b, size_t n)
{
    const size_t n_a = strlen(a), gap = separator != '\0';
    char *text = qn_arena_push(&s->texts, n_a + gap + n + 1, 1);
    if (!text) return NULL;
    memcpy(text, a, n_a);
    if (gap) text[n_a] = separator;
    memcpy(text + n_a + gap, b, n);
    text[n_a + gap + n] = '\0';
    return text;
}

static char *join(qn_hub_scan *s, const char *dir, const char *name)
{
    return text3(s, dir, '/', name, strlen(name));
}

/* -- folders ----------------------------------------------------------------------------------- */

static mode_t kind_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(const char *name)
{
    return qn_hub_is_inside(name) && qn_utf8_valid(name, strlen(name), NULL);
}

static qn_code read_names(names *out, qn_hub_scan *s, DIR *d, qn_err *err)
{
    size_t cap = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!is_listed(e->d_name)) continue;
        if (out->n == cap) { /* the old array stays in the arena: twice the pointers at most */
            char **more = QN_ARENA_NEW(&s->texts, char *, cap ? 2 * cap : 16);
            if (!more) return no_memory(err);
            if (cap) memcpy(more, out->at, cap * sizeof *more);
            out->at = more;
            cap = cap ? 2 * cap : 16;
        }
        out->at[out->n] = qn_arena_push_bytes(&s->texts, e->d_name, strlen(e->d_name));
        if (!out->at[out->n]) return no_memory(err);
        out->n++;
    }
    if (out->n > 1) qsort(out->at, out->n, sizeof *out->at, by_text);
    return QN_OK;
}

/* What has a name in a folder; nothing when it is not there or may not be read (`needed`: then IO). */
static qn_code names_of(names *out, qn_hub_scan *s, const char *dir, bool needed, qn_err *err)
{
    *out = (names){NULL, 0};
    DIR *d = opendir(dir);
    if (!d && needed && errno != ENOENT && errno != ENOTDIR)
        return qn_fail_sys(err, QN_E_IO, errno, "%s", dir);
    if (!d) return QN_OK;
    const qn_code rc = read_names(out, s, d, err);
    (void)closedir(d);
    return rc;
}

static bool holds(const names *list, const char *name)
{
    return list->n > 0 && bsearch(&name, list->at, list->n, sizeof *list->at, by_text) != NULL;
}

/* -- models ------------------------------------------------------------------------------------ */

static qn_code add(qn_hub_scan *s, qn_hub_found model, qn_err *err)
{
    qn_hub_found *f = QN_ARENA_NEW(&s->texts, qn_hub_found, 1);
    if (!f || !model.name || !model.file || !model.path) return no_memory(err);
    *f = model;
    f->next = NULL;
    *s->last = f;
    s->last = &f->next;
    s->n++;
    return QN_OK;
}

/* The bytes of a model's name in front of ".gguf" and of the part's number; 0: no model. */
static size_t stem_of(const char *name)
{
    const qn_str all = qn_str_z(name);
    uint32_t no = 1;
    size_t stem = 0;
    if (!qn_str_has_suffix(all, QN_STR(".gguf")) || strstr(name, "mmproj")) return 0;
    if (qn_gguf_part_name(&stem, &no, all)) return no == 1 ? stem : 0;
    return all.n - 5;
}

static const qn_hub_entry *entry_of(const char *file)
{
    size_t n = 0;
    const qn_hub_entry *all = qn_hub_catalogue(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].file, file) == 0) return &all[i];
    return NULL;
}

/* A file of HOME/models, or of a folder there. */
static qn_code add_file(qn_hub_scan *s, const char *dir, const char *folder, const char *name,
                        qn_err *err)
{
    const size_t stem = stem_of(name);
    const char *path = join(s, dir, name);
    if (!path) return no_memory(err);
    if (stem == 0 || kind_of(path) != S_IFREG) return QN_OK;
    const qn_hub_entry *e = folder ? NULL : entry_of(name);
    const char *file = folder ? text3(s, folder, '/', name, stem) : text3(s, "", '\0', name, stem);
    return add(
        s,
        (qn_hub_found){
            .name = e ? e->name : file, .file = file, .path = path, .entry = e, .canonical = true},
        err);
}

/* The GGUF models of a folder and of the folders in it; names are "ORG/NAME:FILE". */
static qn_code add_gguf(qn_hub_scan *s, const place *p, const char *below, bool deeper, qn_err *err)
{
    names list;
    const char *dir = below ? join(s, p->dir, below) : p->dir;
    if (!dir) return no_memory(err);
    QN_TRY(names_of(&list, s, dir, false, err));
    for (size_t i = 0; i < list.n; i++) {
        const char *name = list.at[i], *path = join(s, dir, name);
        if (!path) return no_memory(err);
        const mode_t kind = kind_of(path);
        if (kind == S_IFDIR && deeper) QN_TRY(add_gguf(s, p, name, false, err));
        const size_t stem = stem_of(name);
        if (kind != S_IFREG || stem == 0) continue;
        const char *file =
            below ? text3(s, below, '/', name, stem) : text3(s, "", '\0', name, stem);
        if (!file) return no_memory(err);
        QN_TRY(add(s,
                   (qn_hub_found){.name = text3(s, p->label, ':', file, strlen(file)),
                                  .file = file,
                                  .repo = p->label,
                                  .path = path,
                                  .dir = p->dir,
                                  .revision = p->revision},
                   err));
    }
    return QN_OK;
}

/* A folder laid out as a repository is: itself a model, or with GGUF files in it, or both. */
static qn_code add_repo(qn_hub_scan *s, const place *p, qn_err *err)
{
    names list;
    qn_hub_found **first = s->last;
    QN_TRY(names_of(&list, s, p->dir, false, err));
    const bool whole =
        holds(&list, "config.json") &&
        (holds(&list, "model.safetensors") || holds(&list, "model.safetensors.index.json"));
    if (whole)
        QN_TRY(add(s,
                   (qn_hub_found){.name = p->label,
                                  .file = "",
                                  .path = p->dir,
                                  .dir = p->dir,
                                  .revision = p->revision},
                   err));
    QN_TRY(add_gguf(s, p, NULL, true, err));
    if (*first && !(*first)->next) (*first)->name = p->label; /* the only one */
    return QN_OK;
}

static void choose(qn_hub_found *f, size_t n)
{
    for (; f && n > 0; f = f->next, n--) f->canonical = true;
}

/* -- HOME/models ------------------------------------------------------------------------------- */

static qn_code scan_org(qn_hub_scan *s, const char *dir, const char *org, qn_err *err)
{
    names list;
    QN_TRY(names_of(&list, s, dir, false, err));
    if (holds(&list, "config.json")) return add_repo(s, &(place){org, dir, NULL}, err);
    for (size_t i = 0; i < list.n; i++) {
        const char *path = join(s, dir, list.at[i]);
        if (!path) return no_memory(err);
        if (kind_of(path) != S_IFDIR) {
            QN_TRY(add_file(s, dir, org, list.at[i], err));
            continue;
        }
        const char *label = text3(s, org, '/', list.at[i], strlen(list.at[i]));
        if (!label) return no_memory(err);
        QN_TRY(add_repo(s, &(place){label, path, NULL}, err));
    }
    return QN_OK;
}

static qn_code scan_models(qn_hub_scan *s, const char *dir, qn_err *err)
{
    names list;
    QN_TRY(names_of(&list, s, dir, true, err));
    for (size_t i = 0; i < list.n; i++) {
        const char *path = join(s, dir, list.at[i]);
        if (!path) return no_memory(err);
        if (kind_of(path) == S_IFDIR) {
            qn_hub_found **first = s->last;
            QN_TRY(scan_org(s, path, list.at[i], err));
            choose(*first, SIZE_MAX);
        } else {
            QN_TRY(add_file(s, dir, NULL, list.at[i], err));
        }
    }
    return QN_OK;
}

/* -- the cache --------------------------------------------------------------------------------- */

/* The commit that refs/main names; "" where it names none. */
static qn_code read_main(char commit[MAX_REF], qn_hub_scan *s, const char *repo, qn_err *err)
{
    uint8_t *text = NULL;
    size_t n = 0;
    commit[0] = '\0';
    const char *path = join(s, repo, "refs/main");
    if (!path) return no_memory(err);
    const qn_code rc = qn_file_read(&text, &n, path, MAX_REF - 1, err);
    if (rc == QN_OK) {
        const qn_str name = qn_str_trim(qn_str_make((const char *)text, n));
        (void)snprintf(commit, MAX_REF, "%.*s", QN_STR_ARG(name));
    }
    qn_free(text);
    return rc == QN_E_NOMEM ? rc : QN_OK;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec) return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
    return a->st_mtim.tv_nsec >= b->st_mtim.tv_nsec; /* the same: the later name */
}

/* All snapshots of a repository. The one that counts is refs/main's if it holds a model, else the
 * newest that does. */
static qn_code scan_snapshots(qn_hub_scan *s, const char *repo, const char *label, qn_err *err)
{
    names list;
    char commit[MAX_REF];
    struct stat st, newest = {0};
    qn_hub_found *best = NULL;
    size_t n_best = 0;
    const char *dir = join(s, repo, "snapshots");
    if (!dir) return no_memory(err);
    QN_TRY(read_main(commit, s, repo, err));
    QN_TRY(names_of(&list, s, dir, false, err));
    for (size_t i = 0; i < list.n; i++) {
        qn_hub_found **first = s->last;
        const size_t before = s->n;
        const char *path = join(s, dir, list.at[i]);
        if (!path) return no_memory(err);
        if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) continue;
        QN_TRY(add_repo(s, &(place){label, path, list.at[i]}, err));
        const bool is_main = strcmp(list.at[i], commit) == 0;
        if (s->n == before || (best && !is_main && !is_newer(&st, &newest))) continue;
        best = *first;
        n_best = s->n - before;
        newest = st;
        if (is_main) newest.st_mtim.tv_sec = LONG_MAX; /* nothing is newer */
    }
    choose(best, n_best);
    return QN_OK;
}

/* "models--ORG--NAME" as "ORG/NAME"; NULL in *label for what is no model's folder. */
static qn_code label_of(char **label, qn_hub_scan *s, const char *folder, qn_err *err)
{
    const qn_str prefix = QN_STR("models--");
    *label = NULL;
    if (!qn_str_has_prefix(qn_str_z(folder), prefix)) return QN_OK;
    char *to = qn_arena_push_bytes(&s->texts, folder + prefix.n, strlen(folder + prefix.n));
    if (!to) return no_memory(err);
    *label = to;
    for (const char *from = folder + prefix.n; *from; from++) {
        const bool border = from[0] == '-' && from[1] == '-';
        *to++ = border ? '/' : *from;
        from += border;
    }
    *to = '\0';
    if (!qn_hub_is_inside(*label)) *label = NULL;
    return QN_OK;
}

static qn_code scan_cache(qn_hub_scan *s, const char *dir, qn_err *err)
{
    names list;
    QN_TRY(names_of(&list, s, dir, false, err));
    for (size_t i = 0; i < list.n; i++) {
        char *label = NULL;
        QN_TRY(label_of(&label, s, list.at[i], err));
        if (!label) continue;
        const char *repo = join(s, dir, list.at[i]);
        if (!repo) return no_memory(err);
        QN_TRY(scan_snapshots(s, repo, label, err));
    }
    return QN_OK;
}

/* Of two with one name the first counts. */
static void settle(const qn_hub_scan *s)
{
    for (qn_hub_found *f = s->first; f && s->n < MAX_PLAIN; f = f->next)
        for (const qn_hub_found *e = s->first; f->canonical && e != f; e = e->next)
            if (e->canonical && strcmp(e->name, f->name) == 0) f->canonical = false;
}

static qn_code scan_all(qn_hub_scan *s, const qn_hub *h, qn_err *err)
{
    const char *models = join(s, h->home, "models"), *hub = join(s, h->home, "hub");
    if (!models || !hub) return no_memory(err);
    QN_TRY(scan_models(s, models, err));
    QN_TRY(scan_cache(s, hub, err));
    if (h->cache && strcmp(h->cache, hub) != 0) QN_TRY(scan_cache(s, h->cache, err));
    settle(s);
    return QN_OK;
}

qn_code qn_hub_scan_open(qn_hub_scan *s, const qn_hub *h, qn_err *err)
{
    *s = (qn_hub_scan){.n = 0};
    qn_arena_init(&s->texts, MAX_TEXTS);
    s->last = &s->first;
    const qn_code rc = scan_all(s, h, err);
    if (rc != QN_OK) qn_hub_scan_close(s);
    return rc;
}

void qn_hub_scan_close(qn_hub_scan *s)
{
    qn_arena_fini(&s->texts);
    *s = (qn_hub_scan){.n = 0};
}
