/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - a file that is on this machine becomes a model of the store.
 *
 * It is read once: digest and copy are one pass, into a temporary file beside the final name, which
 * gets it only after the digest is right and the bytes are on the disk. Two that import the same file
 * at once both succeed: each has its own temporary file, and the second rename changes nothing.
 */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hub/hub_int.h"

static qn_code check_size(const qn_hub_entry *e, const char *from, uint64_t bytes, qn_err *err)
{
    if (e->bytes == 0 || bytes == e->bytes) return QN_OK;
    return qn_fail(err, QN_E_FORMAT, "%s has %llu bytes, expected %llu of %s", from,
                   (unsigned long long)bytes, (unsigned long long)e->bytes, e->file);
}

static qn_code check_digest(const qn_hub_entry *e, const char *from, const char *found, qn_err *err)
{
    if (!e->sha256 || strcmp(found, e->sha256) == 0) return QN_OK;
    return qn_fail(err, QN_E_FORMAT, "%s has sha256 %s, expected %s", from, found, e->sha256);
}

/* Of a file that is not the store's: nothing is written beside it. */
static qn_code digest_of(char sha256[65], const char *from, const qn_hub_report *report,
                         quern_get_progress *p, qn_err *err)
{
    struct stat st;
    int fd = -1;
    QN_TRY(qn_hub_open_file(&fd, &st, from, err));
    p->done = 0;
    p->total = (uint64_t)st.st_size;
    const qn_code rc = qn_hub_read_through(sha256, fd, from, NULL, report, p, err);
    (void)close(fd);
    return rc;
}

/* Is the model there already, with the bytes that it should have? */
static qn_code is_there(bool *yes, const qn_hub_entry *e, const char *path, const char *from,
                        const qn_hub_report *report, quern_get_progress *p, qn_err *err)
{
    char there[65], given[65];
    *yes = false;
    if (!qn_file_exists(path)) return QN_OK;
    p->step = "verifying";
    const qn_code rc = qn_hub_digest(there, path, report, p, err);
    if (rc == QN_E_NOTFOUND) return QN_OK; /* a link that leads nowhere */
    QN_TRY(rc);
    if (e->sha256) { /* what is not what was published is not kept */
        *yes = strcmp(there, e->sha256) == 0;
        if (!*yes) return QN_OK;
        QN_TRY(digest_of(given, from, report, p, err)); /* a file that is named is looked at */
        return check_digest(e, from, given, err);
    }
    QN_TRY(digest_of(given, from, report, p, err));
    *yes = strcmp(there, given) == 0;
    if (*yes) return QN_OK;
    return qn_fail(err, QN_E_INVAL, "%s is there with other bytes: remove it, or take another name",
                   path);
}

/* The folder is what a person can do something about, not the temporary file. */
static qn_code open_target(qn_stream *to, const char *path, const qn_hub *h, qn_err *err)
{
    qn_err why = {0};
    const qn_code rc = qn_stream_open(to, path, &why);
    if (rc != QN_E_IO) return rc == QN_OK ? rc : qn_fail(err, rc, "%s", why.msg);
    return qn_fail_sys(err, rc, why.sys,
                       "cannot write in %s/models (QUERN_HOME names another place)", h->home);
}

static qn_code copy(const char *path, const qn_hub *h, const qn_hub_entry *e, const char *from,
                    const qn_hub_report *report, quern_get_progress *p, qn_err *err)
{
    qn_code rc = QN_OK;
    struct stat st;
    char sha256[65];
    qn_stream to = {.fd = -1};
    int fd = -1;
    QN_TRY(qn_hub_open_file(&fd, &st, from, err));
    p->step = "copying";
    p->done = 0;
    p->total = (uint64_t)st.st_size;
    QN_TRY_OUT(check_size(e, from, p->total, err));
    QN_TRY_OUT(qn_hub_check_room(h, path, p->total, err));
    QN_TRY_OUT(open_target(&to, path, h, err));
    QN_TRY_OUT(qn_hub_read_through(sha256, fd, from, &to, report, p, err));
    QN_TRY_OUT(check_digest(e, from, sha256, err));
    QN_TRY_OUT(qn_stream_commit(&to, err));
    qn_hub_write_stamp(path, sha256);
out:
    qn_stream_drop(&to);
    (void)close(fd);
    return rc;
}

qn_code qn_hub_import(char **path, const qn_hub *h, const qn_hub_entry *e, const char *from,
                      const qn_hub_report *report, qn_err *err)
{
    qn_code rc = QN_OK;
    bool there = false;
    char *to = NULL, *models = NULL;
    quern_get_progress p = {.size = sizeof p, .file = e->file, .step = "copying", .count = 1};
    *path = NULL;
    QN_TRY(qn_hub_model_path(&to, h, e->file, err));
    QN_TRY_OUT(is_there(&there, e, to, from, report, &p, err));
    if (!there) {
        models = qn_hub_join(h->home, "models");
        rc = models ? qn_hub_make_folders(models, err) : qn_fail(err, QN_E_NOMEM, "path of %s", to);
        if (rc != QN_OK) goto out;
        QN_TRY_OUT(copy(to, h, e, from, report, &p, err));
    }
    *path = to;
    to = NULL;
out:
    qn_free(models);
    qn_free(to);
    return rc;
}
