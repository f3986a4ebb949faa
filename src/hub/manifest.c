/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the list of a repository's files: read strictly, narrowed by tables of patterns.
 *
 * A file in Git LFS has two digests: that of its bytes (lfs.sha256, in older answers lfs.oid), and blobId,
 * which is that of a pointer and says nothing about the bytes. Where lfs is given, blobId is not used.
 */
#include "hub/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dep/json.h"

enum { MAX_PATH = 1024, MAX_PART = 255, TEXTS = 64 << 20 };

static const char *const wanted[] = {
    "config*.json",      "*_config.json",
    "tokenizer*",        "*.jinja",
    "chat_template.*",   "vocab.*",
    "merges.txt",        "*.tiktoken",
    "spiece.model",      "sentencepiece*",
    "added_tokens.json", "special_tokens_map.json",
    "*.safetensors",     "*.safetensors.index.json",
};
static const char *const wanted_on_top[] = {"README.md", "LICENSE*", "NOTICE*"};
/* the same weights once more, for other programs */
static const char *const other_folders[] = {"original/*", "onnx/*", "openvino/*", "coreml/*"};
static const char *const not_weights[] = {"mmproj*", "*imatrix*"};

/* -- reading ----------------------------------------------------------------------------------- */

static bool is_hex(const char *text, size_t n, size_t digits)
{
    for (size_t i = 0; i < n; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return n == digits;
}

/* The text of v if it is that many hex digits; NULL: it is not. */
static const char *hex_text(const qn_json *v, size_t digits)
{
    size_t n = 0;
    const char *text = qn_json_str(v, &n);
    return text && is_hex(text, n, digits) ? text : NULL;
}

/* Below the folder on any system, and on one line of any terminal. */
static bool is_safe(qn_str path)
{
    qn_str rest = path, part = {0};
    if (path.n == 0 || path.n > MAX_PATH) return false;
    for (size_t i = 0; i < path.n; i++) {
        const unsigned char c = (unsigned char)path.p[i];
        if (c < 0x20 || c == 0x7f || c == '\\') return false;
    }
    while (qn_str_split(&part, &rest, '/'))
        if (part.n == 0 || part.n > MAX_PART || qn_str_eq(part, QN_STR(".")) ||
            qn_str_eq(part, QN_STR("..")))
            return false;
    return true;
}

static uint64_t read_size(const qn_json *v)
{
    if (qn_json_type_of(v) != QN_JSON_INT) return UINT64_MAX;
    const int64_t bytes = qn_json_int(v, -1);
    return bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
}

static void read_digest(qn_hub_file *f, const qn_json *sibling)
{
    const qn_json *lfs = qn_json_get(sibling, "lfs");
    const qn_json *digest = qn_json_get(sibling, "blobId");
    f->sha256 = qn_json_type_of(lfs) != QN_JSON_NULL;
    f->bytes = read_size(qn_json_get(sibling, "size"));
    if (f->sha256) {
        digest = qn_json_get(lfs, "sha256");
        if (!digest) digest = qn_json_get(lfs, "oid");
        if (qn_json_get(lfs, "size")) f->bytes = read_size(qn_json_get(lfs, "size"));
    }
    const char *hex = hex_text(digest, f->sha256 ? 64 : 40);
    if (hex) (void)snprintf(f->digest, sizeof f->digest, "%s", hex);
}

static qn_code read_sibling(qn_hub_manifest *m, const qn_json *sibling, qn_err *err)
{
    size_t n = 0;
    const char *path = qn_json_str(qn_json_get(sibling, "rfilename"), &n);
    qn_hub_file *f = &m->file[m->n];
    if (!path) return qn_fail(err, QN_E_FORMAT, "file %zu of the hub's list has no name", m->n);
    if (!is_safe(qn_str_make(path, n)))
        return qn_fail(err, QN_E_FORMAT, "the hub lists \"%.*s\", which is no name below a folder",
                       (int)(n < 80 ? n : 80), path);
    *f = (qn_hub_file){.path = qn_arena_push_bytes(&m->texts, path, n)};
    if (!f->path) return qn_fail(err, QN_E_NOMEM, "the hub's list");
    read_digest(f, sibling);
    m->n++;
    return QN_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const qn_hub_file *)a)->path, ((const qn_hub_file *)b)->path);
}

static qn_code read_root(qn_hub_manifest *m, const qn_json *root, qn_err *err)
{
    const qn_json *siblings = qn_json_get(root, "siblings");
    const char *sha = hex_text(qn_json_get(root, "sha"), 40);
    const size_t n = qn_json_len(siblings);
    if (!sha) return qn_fail(err, QN_E_FORMAT, "the hub's list has no \"sha\" of 40 hex digits");
    (void)snprintf(m->commit, sizeof m->commit, "%s", sha);
    if (qn_json_type_of(siblings) != QN_JSON_ARRAY)
        return qn_fail(err, QN_E_FORMAT, "the hub's list has no \"siblings\"");
    if (n > QN_HUB_MAX_LISTED)
        return qn_fail(err, QN_E_LIMIT, "the hub lists %zu files, at most %d are read", n,
                       QN_HUB_MAX_LISTED);
    m->file = qn_arena_push(&m->texts, n * sizeof *m->file + 1, sizeof(uint64_t));
    if (!m->file) return qn_fail(err, QN_E_NOMEM, "list of %zu files", n);
    for (size_t i = 0; i < n; i++) QN_TRY(read_sibling(m, qn_json_at(siblings, i), err));
    qsort(m->file, m->n, sizeof *m->file, by_path);
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(m->file[i - 1].path, m->file[i].path) == 0)
            return qn_fail(err, QN_E_FORMAT, "the hub lists %s twice", m->file[i].path);
    return QN_OK;
}

qn_code qn_hub_manifest_read(qn_hub_manifest *m, const char *text, size_t n, qn_err *err)
{
    qn_json *root = NULL;
    *m = (qn_hub_manifest){.n = 0};
    qn_arena_init(&m->texts, TEXTS);
    qn_code rc = qn_json_parse(&root, text, n, QN_HUB_MAX_MANIFEST, err);
    if (rc == QN_OK)
        rc = read_root(m, root, err);
    else
        rc = qn_wrap(err, rc, "the hub's list");
    qn_json_free(root);
    if (rc != QN_OK) qn_hub_manifest_close(m);
    return rc;
}

void qn_hub_manifest_close(qn_hub_manifest *m)
{
    qn_arena_fini(&m->texts);
    *m = (qn_hub_manifest){.n = 0};
}

/* -- choosing ---------------------------------------------------------------------------------- */

bool qn_hub_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL; /* the last '*', and what it would take next */
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

static bool matches_one(const char *const *patterns, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (qn_hub_matches(patterns[i], text)) return true;
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Hidden files are the repository's own business. */
static bool is_hidden(const char *path) { return path[0] == '.' || strstr(path, "/.") != NULL; }

static bool is_gguf(const char *path)
{
    return qn_hub_matches("*.gguf", path) &&
           !matches_one(not_weights, QN_LEN(not_weights), base_name(path));
}

/* "-00002-of-00003.gguf" belongs to the file that ends in -00001; the length of that end. */
enum { PART_END = sizeof "-00001-of-00003.gguf" - 1 };

/* in two pieces: "??-" is a trigraph */
static bool is_part(const char *path)
{
    return qn_hub_matches("*-?????"
                          "-of-?????.gguf",
                          path);
}

static bool is_later_part(const char *path)
{
    return is_part(path) && !qn_hub_matches("*-00001-of-?????.gguf", path);
}

static bool is_safetensors(const char *path) { return qn_hub_matches("*.safetensors", path); }

static bool is_other(const char *path)
{
    return is_hidden(path) || matches_one(other_folders, QN_LEN(other_folders), path);
}

/* All weights in one file or a few beside the same weights in many: a second copy. */
static bool is_consolidated(const char *path)
{
    return qn_hub_matches("consolidated*", base_name(path)) && is_safetensors(path);
}

static bool is_needed(const char *path, bool gguf, bool consolidated)
{
    const char *name = base_name(path);
    if (is_other(path) || (is_consolidated(path) && !consolidated)) return false;
    if (gguf && is_gguf(path)) return true;
    return matches_one(wanted, QN_LEN(wanted), name) ||
           (name == path && matches_one(wanted_on_top, QN_LEN(wanted_on_top), name));
}

/* A GGUF model of its own, by its file or by its first one. */
static bool is_gguf_model(const char *path)
{
    return is_gguf(path) && !is_later_part(path) && !is_other(path);
}

/* Of all parts, if it has some; 0: not known. */
static uint64_t model_bytes(const qn_hub_manifest *m, const qn_hub_file *f)
{
    uint64_t all = 0;
    if (!is_part(f->path)) return f->bytes == UINT64_MAX ? 0 : f->bytes;
    const size_t stem = strlen(f->path) - PART_END;
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->file[i].path;
        if (!is_part(path) || strlen(path) != stem + PART_END || strncmp(path, f->path, stem) != 0)
            continue;
        if (__builtin_add_overflow(all, m->file[i].bytes, &all)) return 0;
    }
    return all;
}

/* Where all the files' names begin alike, up to a border that a reader sees as one. */
static size_t common_prefix(const qn_hub_manifest *m)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!is_gguf_model(m->file[i].path)) continue;
        size_t k = 0;
        if (!first) {
            first = m->file[i].path;
            n = strlen(first);
        }
        while (k < n && m->file[i].path[k] == first[k]) k++;
        n = k;
    }
    while (n > 0 && !strchr("-._/", first[n - 1])) n--;
    return n;
}

/* As many GGUF files as a message holds, as patterns with sizes. */
static qn_code tell_choice(const qn_hub_manifest *m, const char *why, qn_err *err)
{
    char list[150] = "";
    size_t len = 0, told = 0, n = 0;
    const size_t skip = common_prefix(m);
    for (size_t i = 0; i < m->n; i++) {
        char item[MAX_PATH + 32];
        const qn_hub_file *f = &m->file[i];
        if (!is_gguf_model(f->path)) continue;
        n++;
        const char *name = f->path + skip;
        const bool parts = is_part(name);
        const size_t n_name = strlen(name) - (parts ? PART_END : 0);
        const int k =
            snprintf(item, sizeof item, "%s%s%.*s%s %.2f GiB", told ? ", " : "", skip ? "*" : "",
                     (int)n_name, name, parts ? "-*" : "", (double)model_bytes(m, f) / (1u << 30));
        if (told + 1 != n || k < 0 || (size_t)k >= sizeof list - len) continue;
        memcpy(list + len, item, (size_t)k + 1);
        len += (size_t)k;
        told++;
    }
    if (n == 0) return qn_fail(err, QN_E_INVAL, "%s", why);
    if (told == n) return qn_fail(err, QN_E_INVAL, "%s: %s", why, list);
    return qn_fail(err, QN_E_INVAL, "%s: %s and %zu more", why, list, n - told);
}

static qn_code keep_included(qn_hub_manifest *m, const char *include, qn_err *err)
{
    char why[100];
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->file[i].path;
        if (!is_hidden(path) &&
            (qn_hub_matches(include, path) || qn_hub_matches(include, base_name(path))))
            n++;
    }
    (void)snprintf(why, sizeof why, "none of its %zu files matches \"%.40s\"", m->n, include);
    if (n == 0) return tell_choice(m, why, err);
    n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->file[i].path;
        if (!is_hidden(path) &&
            (qn_hub_matches(include, path) || qn_hub_matches(include, base_name(path))))
            m->file[n++] = m->file[i];
    }
    m->n = n;
    return QN_OK;
}

static qn_code keep_needed(qn_hub_manifest *m, qn_err *err)
{
    size_t st = 0, consolidated = 0, gguf = 0, n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->file[i].path;
        if (is_other(path)) continue;
        st += is_safetensors(path);
        consolidated += is_consolidated(path);
        gguf += is_gguf_model(path);
    }
    if (st == 0 && gguf == 0)
        return qn_fail(err, QN_E_UNSUPPORTED,
                       "none of its %zu files is of safetensors or gguf, which are what is run",
                       m->n);
    if (st == 0 && gguf > 1)
        return tell_choice(m, "it has several models; --include takes one", err);
    for (size_t i = 0; i < m->n; i++)
        if (is_needed(m->file[i].path, st == 0, st == consolidated)) m->file[n++] = m->file[i];
    m->n = n;
    return QN_OK;
}

uint64_t qn_hub_manifest_bytes(const qn_hub_manifest *m)
{
    uint64_t all = 0;
    for (size_t i = 0; i < m->n; i++)
        if (__builtin_add_overflow(all, m->file[i].bytes, &all)) return UINT64_MAX;
    return all;
}

qn_code qn_hub_manifest_choose(qn_hub_manifest *m, const char *include, qn_err *err)
{
    QN_TRY(include ? keep_included(m, include, err) : keep_needed(m, err));
    if (m->n > QN_HUB_MAX_FILES)
        return qn_fail(err, QN_E_LIMIT, "%zu files are too many, at most %d", m->n,
                       QN_HUB_MAX_FILES);
    for (size_t i = 0; i < m->n; i++) {
        const qn_hub_file *f = &m->file[i];
        if (f->bytes == UINT64_MAX)
            return qn_fail(err, QN_E_FORMAT, "the hub does not say how large %s is", f->path);
        if (!f->digest[0])
            return qn_fail(err, QN_E_FORMAT, "the hub names no digest of %s, expected %s", f->path,
                           f->sha256 ? "a sha-256 of 64 hex digits" : "a blobId of 40 hex digits");
    }
    if (qn_hub_manifest_bytes(m) == UINT64_MAX)
        return qn_fail(err, QN_E_LIMIT, "the sizes of its files have no sum");
    return QN_OK;
}
