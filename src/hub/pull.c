/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - models out of a hub: one file of the catalogue into HOME/models, or a repository into the cache
 * as Hugging Face tools lay it out, so that both find what the other fetched:
 *
 *     models--ORG--NAME/blobs/DIGEST                 the bytes
 *     models--ORG--NAME/snapshots/COMMIT/PATH   ──►  ../../blobs/DIGEST, one ".." more a folder
 *     models--ORG--NAME/refs/REVISION                COMMIT, written when all the files are there
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "hub/manifest.h"
#include "hub/pull_int.h"

enum { MAX_TEXT = 16 << 10, MAX_REVISION = 200, COMMIT = 40 };

typedef struct pull { /* of a repository */
    qn_hub_talk talk;
    const qn_hub *hub;
    const char *repo, *revision;
    qn_hub_manifest list;
    char *root; /* CACHE/models--ORG--NAME */
} pull;

/* Formatted text, owned (qn_free). */
QN_PRINTF(3, 4)
static qn_code make_text(char **out, qn_err *err, const char *fmt, ...)
{
    char text[MAX_TEXT];
    va_list ap;
    *out = NULL;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        return qn_fail(err, QN_E_LIMIT, "a name of more than %d bytes", MAX_TEXT);
    *out = qn_alloc((size_t)n + 1);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "name");
    memcpy(*out, text, (size_t)n + 1);
    return QN_OK;
}

/* Makes the folders that `path`, a file, lies in. */
static qn_code make_parents(char *path, qn_err *err)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return QN_OK;
    *slash = '\0';
    const qn_code rc = qn_hub_make_folders(path, err);
    *slash = '/';
    return rc;
}

/* -- the list of files ------------------------------------------------------------------------- */

typedef struct list_call {
    qn_buf text;
    qn_hub_talk *talk;
} list_call;

static qn_code list_head(void *ctx, const qn_net_answer *a, qn_err *err)
{
    qn_buf *b = &((list_call *)ctx)->text;
    qn_buf_truncate(b, 0); /* of an earlier try */
    if (a->bytes != UINT64_MAX && a->bytes > b->max)
        return qn_fail(err, QN_E_LIMIT, "the hub's list has %llu bytes, at most %zu are read",
                       (unsigned long long)a->bytes, b->max);
    return QN_OK;
}

static qn_code list_body(void *ctx, const void *bytes, size_t n, qn_err *err)
{
    const qn_code rc = qn_buf_append(&((list_call *)ctx)->text, bytes, n, err);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "the hub's list");
}

static qn_code list_tick(void *ctx, qn_err *err)
{
    return qn_hub_talk_tick(((list_call *)ctx)->talk, err);
}

/* A revision is one part of the URL, whatever is in it; owned. */
static char *escape_slashes(const char *revision)
{
    size_t n = 0;
    char *out = qn_alloc(3 * strlen(revision) + 1);
    for (; out && *revision; revision++) {
        if (*revision == '/') {
            memcpy(out + n, "%2F", 3);
            n += 3;
        } else {
            out[n++] = *revision;
        }
    }
    if (out) out[n] = '\0';
    return out;
}

static qn_code get_list(pull *p, qn_err *err)
{
    qn_code rc = QN_OK;
    char *url = NULL, *revision = escape_slashes(p->revision);
    qn_hub_try try = {.n = 0};
    list_call call = {.talk = &p->talk};
    qn_buf_init(&call.text, QN_HUB_MAX_MANIFEST);
    if (!revision) {
        rc = qn_fail(err, QN_E_NOMEM, "revision");
        goto out;
    }
    QN_TRY_OUT(make_text(&url, err, "%s/api/models/%s/revision/%s?blobs=true", p->hub->endpoint,
                         p->repo, revision));
    qn_net_request r = {
        .url = url, .head = list_head, .body = list_body, .tick = list_tick, .ctx = &call};
    for (;;) {
        rc = qn_hub_ask(&p->talk, &r, &try, err);
        if (rc == QN_OK) break;
        QN_TRY_OUT(qn_hub_again(&p->talk, &try, rc, err));
    }
    QN_TRY_OUT(qn_hub_manifest_read(&p->list, qn_buf_text(&call.text), call.text.len, err));
out:
    qn_buf_fini(&call.text);
    qn_free(url);
    qn_free(revision);
    return rc;
}

static bool is_revision(const char *text)
{
    qn_str rest = qn_str_z(text), part = {0};
    const size_t n = rest.n;
    for (const char *c = text; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              strchr("-._/", *c)))
            return false;
    while (qn_str_split(&part, &rest, '/'))
        if (part.n == 0 || part.p[0] == '.') return false;
    return n > 0 && n <= MAX_REVISION;
}

static bool is_commit(const char *text)
{
    return strlen(text) == COMMIT && strspn(text, "0123456789abcdef") == COMMIT;
}

/* -- files ------------------------------------------------------------------------------------- */

typedef struct place { /* where a file of the list is to be */
    char *path, *url;
    qn_hub_blob blob;
} place;

static void place_fini(place *at)
{
    qn_free(at->path);
    qn_free(at->url);
}

static qn_code place_init(place *at, const pull *p, const qn_hub_file *f, qn_err *err)
{
    *at = (place){.path = NULL};
    char *escaped = qn_net_escape_path(f->path);
    qn_code rc = escaped ? QN_OK : qn_fail(err, QN_E_NOMEM, "url of %s", f->path);
    if (rc == QN_OK) rc = make_text(&at->path, err, "%s/blobs/%s", p->root, f->digest);
    if (rc == QN_OK)
        rc = make_text(&at->url, err, "%s/%s/resolve/%s/%s", p->hub->endpoint, p->repo,
                       p->list.commit, escaped);
    at->blob = (qn_hub_blob){.path = at->path,
                             .name = f->path,
                             .url = at->url,
                             .digest = f->digest,
                             .sha256 = f->sha256,
                             .bytes = f->bytes};
    qn_free(escaped);
    return rc;
}

static bool came_before(const qn_hub_manifest *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(m->file[k].digest, m->file[i].digest) == 0) return true;
    return false;
}

/* Room for all that the files [begin, end) still lack, before any of it comes. */
static qn_code check_room(const pull *p, size_t begin, size_t end, qn_err *err)
{
    uint64_t need = 0;
    for (size_t i = begin; i < end; i++) {
        place at;
        const qn_code rc = place_init(&at, p, &p->list.file[i], err);
        if (rc == QN_OK && !came_before(&p->list, i)) need += qn_hub_blob_missing(&at.blob);
        place_fini(&at);
        QN_TRY(rc);
    }
    return need ? qn_hub_check_room(p->hub, p->root, need, err) : QN_OK;
}

/* snapshots/COMMIT/PATH leads to the bytes. */
static qn_code put_link(const pull *p, const qn_hub_file *f, qn_err *err)
{
    qn_code rc = QN_OK;
    char *link = NULL, *to = NULL, up[3 * 512 + 1] = "", found[MAX_TEXT];
    size_t n = 0;
    for (const char *c = f->path; *c && n < 512; c++)
        if (*c == '/') memcpy(up + 3 * n++, "../", 4);
    QN_TRY_OUT(make_text(&link, err, "%s/snapshots/%s/%s", p->root, p->list.commit, f->path));
    QN_TRY_OUT(make_text(&to, err, "%s../../blobs/%s", up, f->digest));
    QN_TRY_OUT(make_parents(link, err));
    const ssize_t len = readlink(link, found, sizeof found);
    if (len == (ssize_t)strlen(to) && memcmp(found, to, (size_t)len) == 0) goto out;
    if (len >= 0) (void)unlink(link); /* to something else: a link of ours, or of another tool */
    if (symlink(to, link) != 0) rc = qn_fail_sys(err, QN_E_IO, errno, "link %s", link);
out:
    qn_free(link);
    qn_free(to);
    return rc;
}

static qn_code get_file(pull *p, size_t i, qn_err *err)
{
    place at;
    const qn_hub_file *f = &p->list.file[i];
    qn_code rc = place_init(&at, p, f, err);
    p->talk.at.file = f->path;
    p->talk.at.index = (uint32_t)i;
    if (rc == QN_OK) rc = make_parents(at.path, err);
    if (rc == QN_OK) rc = check_room(p, i, i + 1, err);
    if (rc == QN_OK) rc = qn_hub_talk_tell(&p->talk, err);
    if (rc == QN_OK) rc = qn_hub_blob_fetch(&p->talk, &at.blob, err);
    if (rc == QN_OK) rc = put_link(p, f, err);
    place_fini(&at);
    return rc;
}

static qn_code put_ref(const pull *p, qn_err *err)
{
    char *ref = NULL;
    if (strcmp(p->revision, p->list.commit) == 0) return QN_OK; /* a commit names itself */
    qn_code rc = make_text(&ref, err, "%s/refs/%s", p->root, p->revision);
    if (rc == QN_OK) rc = make_parents(ref, err);
    if (rc == QN_OK) rc = qn_file_write(ref, p->list.commit, COMMIT, err);
    qn_free(ref);
    return rc;
}

/* The snapshot's folder, or the GGUF file in it if the files have just one. */
static qn_code tell_path(char **path, const pull *p, qn_err *err)
{
    const char *gguf = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->list.n; i++)
        if (qn_hub_matches("*.gguf", p->list.file[i].path)) {
            gguf = p->list.file[i].path;
            n++;
        }
    return make_text(path, err, "%s/snapshots/%s%s%s", p->root, p->list.commit, n == 1 ? "/" : "",
                     n == 1 ? gguf : "");
}

static qn_code make_root(pull *p, qn_err *err)
{
    const char *slash = strchr(p->repo, '/');
    const char *base = p->hub->cache ? p->hub->cache : p->hub->home;
    return make_text(&p->root, err, "%s%s/models--%.*s--%s", base, p->hub->cache ? "" : "/hub",
                     (int)(slash - p->repo), p->repo, slash + 1);
}

static qn_code pull_all(char **path, pull *p, const char *include, qn_err *err)
{
    QN_TRY(get_list(p, err));
    if (is_commit(p->revision) && strcmp(p->revision, p->list.commit) != 0)
        return qn_fail(err, QN_E_FORMAT, "the hub answers with commit %s, expected %s",
                       p->list.commit, p->revision);
    QN_TRY(qn_hub_manifest_choose(&p->list, include, err));
    QN_TRY(make_root(p, err));
    QN_TRY(check_room(p, 0, p->list.n, err));
    p->talk.at.total = qn_hub_manifest_bytes(&p->list);
    p->talk.at.count = (uint32_t)p->list.n;
    for (size_t i = 0; i < p->list.n; i++) QN_TRY(get_file(p, i, err));
    QN_TRY(tell_path(path, p, err));
    const qn_code rc = put_ref(p, err); /* last: what it names is whole */
    if (rc == QN_OK) return rc;
    qn_free(*path);
    *path = NULL;
    return rc;
}

qn_code qn_hub_pull_repo(char **path, const qn_hub *h, const char *repo, const char *revision,
                         const char *include, const qn_hub_report *report, qn_err *err)
{
    qn_code rc = QN_OK;
    pull p = {.hub = h, .repo = repo, .revision = revision ? revision : "main"};
    *path = NULL;
    if (!qn_hub_is_repo(repo))
        return qn_fail(err, QN_E_INVAL, "\"%.80s\" is no repository, expected ORG/NAME", repo);
    if (!is_revision(p.revision))
        return qn_fail(err, QN_E_INVAL,
                       "\"%.80s\" is no revision, expected a branch, tag or commit", p.revision);
    QN_TRY_OUT(qn_hub_talk_open(&p.talk, h, repo, report, err));
    QN_TRY_OUT(pull_all(path, &p, include, err));
out:
    qn_hub_talk_close(&p.talk);
    qn_hub_manifest_close(&p.list);
    qn_free(p.root);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", repo);
}

/* -- one file of the catalogue ----------------------------------------------------------------- */

qn_code qn_hub_pull_entry(char **path, const qn_hub *h, const qn_hub_entry *e,
                          const qn_hub_report *report, qn_err *err)
{
    qn_code rc = QN_OK;
    char *to = NULL, *url = NULL;
    qn_hub_talk talk = {.net = NULL};
    *path = NULL;
    if (!e->sha256 || !e->bytes || !e->repo || !e->revision)
        return qn_fail(err, QN_E_INVAL, "%s: the catalogue does not say where it is", e->name);
    QN_TRY_OUT(qn_hub_model_path(&to, h, e->file, err));
    QN_TRY_OUT(
        make_text(&url, err, "%s/%s/resolve/%s/%s", h->endpoint, e->repo, e->revision, e->file));
    QN_TRY_OUT(make_parents(to, err));
    const qn_hub_blob b = {.path = to,
                           .name = e->file,
                           .url = url,
                           .digest = e->sha256,
                           .sha256 = true,
                           .stamped = true,
                           .bytes = e->bytes};
    QN_TRY_OUT(qn_hub_talk_open(&talk, h, e->repo, report, err));
    talk.at.file = e->file;
    talk.at.total = e->bytes;
    talk.at.count = 1;
    QN_TRY_OUT(qn_hub_talk_tell(&talk, err));
    const uint64_t need = qn_hub_blob_missing(&b);
    if (need) QN_TRY_OUT(qn_hub_check_room(h, to, need, err));
    QN_TRY_OUT(qn_hub_blob_fetch(&talk, &b, err));
    *path = to;
    to = NULL;
out:
    qn_hub_talk_close(&talk);
    qn_free(to);
    qn_free(url);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", e->name);
}
