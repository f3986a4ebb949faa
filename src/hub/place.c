/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - names that stay inside their place, folders, room on the disk, and stamps beside files.
 *
 * A stamp is believed only while size and time (to the nanosecond) are those of the file, so a file
 * that somebody wrote anew is read again. It is no proof against who can write both: such a person
 * could replace the program, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hub/hub_int.h"

enum {
    MAX_PART = 255,     /* bytes of one part of a path, as file systems have it */
    MAX_REPO_PART = 96, /* the hub's own limit for a name */
    MAX_STAMP = 160,
    PIECE = 1 << 20
};

/* -- names ------------------------------------------------------------------------------------- */

static bool is_repo_part(qn_str s)
{
    if (s.n == 0 || s.n > MAX_REPO_PART) return false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        const bool mark = c == '-' || c == '.';
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!mark && !plain) return false;
        if (mark && (i == 0 || i + 1 == s.n || s.p[i - 1] == c)) return false;
    }
    return true;
}

bool qn_hub_is_repo(const char *name)
{
    qn_str rest = qn_str_z(name), part = {0};
    size_t n = 0;
    for (; qn_str_split(&part, &rest, '/'); n++)
        if (!is_repo_part(part)) return false;
    return n == 2;
}

bool qn_hub_is_inside(const char *path)
{
    qn_str rest = qn_str_z(path), part = {0};
    while (qn_str_split(&part, &rest, '/')) {
        if (part.n == 0 || part.n > MAX_PART || part.p[0] == '.') return false;
        for (size_t i = 0; i < part.n; i++)
            if ((unsigned char)part.p[i] < ' ' || part.p[i] == '\\' || part.p[i] == 0x7f)
                return false;
    }
    return true;
}

char *qn_hub_join(const char *dir, const char *name)
{
    size_t n = strlen(dir), n_name = strlen(name), all = 0;
    if (!qn_add_size(&all, n, n_name) || !qn_add_size(&all, all, 2)) return NULL;
    char *path = qn_alloc(all);
    if (path) (void)snprintf(path, all, "%s/%s", dir, name);
    return path;
}

qn_code qn_hub_model_path(char **path, const qn_hub *h, const char *file, qn_err *err)
{
    *path = NULL;
    if (!qn_hub_is_inside(file))
        return qn_fail(err, QN_E_INVAL, "\"%s\" is no name of a file below %s/models", file,
                       h->home);
    char *models = qn_hub_join(h->home, "models");
    if (models) *path = qn_hub_join(models, file);
    qn_free(models);
    return *path ? QN_OK : qn_fail(err, QN_E_NOMEM, "path of %s", file);
}

/* -- folders and room -------------------------------------------------------------------------- */

static qn_code make_folder(const char *path, qn_err *err)
{
    struct stat st;
    if (mkdir(path, 0777) == 0) return QN_OK;
    const int sys = errno;
    if (stat(path, &st) == 0) { /* it is there, whatever mkdir thought of it */
        if (S_ISDIR(st.st_mode)) return QN_OK;
        return qn_fail(err, QN_E_IO, "%s is no folder; QUERN_HOME names another place", path);
    }
    return qn_fail_sys(err, QN_E_IO, sys,
                       "cannot make the folder %s (QUERN_HOME names another place)", path);
}

qn_code qn_hub_make_folders(const char *path, qn_err *err)
{
    qn_code rc = QN_OK;
    const size_t n = strlen(path);
    char *part = qn_alloc(n + 1);
    if (!part) return qn_fail(err, QN_E_NOMEM, "path %s", path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n && rc == QN_OK; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        part[i] = '\0';
        rc = make_folder(part, err);
        part[i] = path[i];
    }
    qn_free(part);
    return rc;
}

/* The nearest existing folder on the way to path. */
static bool free_bytes(uint64_t *out, char *path)
{
    struct statvfs fs;
    while (statvfs(path, &fs) != 0) {
        char *slash = strrchr(path, '/');
        if ((errno != ENOENT && errno != ENOTDIR) || strcmp(path, "/") == 0 ||
            strcmp(path, ".") == 0)
            return false;
        if (!slash)
            (void)snprintf(path, 2, ".");
        else
            slash[slash == path] = '\0';
    }
    if (fs.f_blocks == 0) return false; /* one that counts no blocks, such as /proc */
    if (__builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, out))
        *out = UINT64_MAX;
    return true;
}

typedef struct room_text {
    char text[40];
} room_text;

static room_text room(uint64_t bytes)
{
    room_text t;
    const bool large = bytes >= 1u << 30;
    (void)snprintf(t.text, sizeof t.text, large ? "%.2f GiB" : "%.1f MiB",
                   (double)bytes / (large ? 1 << 30 : 1 << 20));
    return t;
}

qn_code qn_hub_check_room(const qn_hub *h, const char *path, uint64_t need, qn_err *err)
{
    uint64_t there = 0, wanted = 0;
    const size_t n = strlen(path);
    char *at = qn_alloc(n + 2); /* "." fits, whatever path is */
    if (!at) return qn_fail(err, QN_E_NOMEM, "path %s", path);
    memcpy(at, path, n + 1);
    const bool known = free_bytes(&there, at);
    qn_free(at);
    if (!known) return QN_OK; /* writing will tell */
    if (!__builtin_add_overflow(need, h->reserve, &wanted) && wanted <= there) return QN_OK;
    return qn_fail(err, QN_E_LIMIT, "%s free where %s lies, expected %s and %s that stay free",
                   room(there).text, path, room(need).text, room(h->reserve).text);
}

/* -- stamps ------------------------------------------------------------------------------------ */

/* The line that a file of these facts has in its stamp. */
static void stamp_line(char line[MAX_STAMP], const char *sha256, const struct stat *st)
{
    (void)snprintf(line, MAX_STAMP, "%.64s %lld %lld.%09ld\n", sha256, (long long)st->st_size,
                   (long long)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec);
}

static char *stamp_path(const char *path)
{
    const size_t n = strlen(path) + sizeof ".sha256";
    char *stamp = qn_alloc(n);
    if (stamp) (void)snprintf(stamp, n, "%s.sha256", path);
    return stamp;
}

static bool is_digest(const char *p, size_t n)
{
    for (size_t i = 0; i < n && i < 64; i++)
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f'))) return false;
    return n >= 64;
}

/* True when the stamp's facts are the file's; sha256 is what it says. */
static qn_code read_stamp(bool *yes, char sha256[65], const char *path, const struct stat *st,
                          qn_err *err)
{
    char line[MAX_STAMP];
    uint8_t *text = NULL;
    size_t n = 0;
    *yes = false;
    char *stamp = stamp_path(path);
    if (!stamp) return qn_fail(err, QN_E_NOMEM, "stamp of %s", path);
    const qn_code rc = qn_file_read(&text, &n, stamp, MAX_STAMP, err);
    qn_free(stamp);
    if (rc == QN_OK && is_digest((const char *)text, n)) {
        stamp_line(line, (const char *)text, st);
        *yes = n == strlen(line) && memcmp(line, text, n) == 0;
        (void)snprintf(sha256, 65, "%.64s", (const char *)text);
    }
    qn_free(text);
    return rc == QN_E_NOMEM ? rc : QN_OK; /* no stamp, or none that can be read: no answer */
}

static void write_stamp(const char *path, const char *sha256, const struct stat *st)
{
    char line[MAX_STAMP];
    char *stamp = stamp_path(path);
    stamp_line(line, sha256, st);
    if (stamp) (void)qn_file_write(stamp, line, strlen(line), NULL);
    qn_free(stamp);
}

void qn_hub_write_stamp(const char *path, const char *sha256)
{
    struct stat st;
    if (stat(path, &st) == 0) write_stamp(path, sha256, &st);
}

/* -- digests ----------------------------------------------------------------------------------- */

qn_code qn_hub_open_file(int *fd, struct stat *st, const char *path, qn_err *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    if (*fd < 0 || fstat(*fd, st) != 0) {
        const int sys = errno;
        if (*fd >= 0) (void)close(*fd);
        *fd = -1;
        return qn_fail_sys(err, sys == ENOENT || sys == ENOTDIR ? QN_E_NOTFOUND : QN_E_IO, sys,
                           "%s", path);
    }
    if (S_ISREG(st->st_mode)) return QN_OK;
    (void)close(*fd);
    *fd = -1;
    return qn_fail(err, QN_E_INVAL, "%s: %s, expected a file", path,
                   S_ISDIR(st->st_mode) ? "a folder" : "not a regular file");
}

qn_code qn_hub_read_through(char sha256[65], int fd, const char *path, qn_stream *to,
                            const qn_hub_report *report, quern_get_progress *p, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_sha256_digest digest;
    qn_sha256_stream *sum = NULL;
    uint8_t *piece = qn_alloc(PIECE);
    if (!piece) return qn_fail(err, QN_E_NOMEM, "%s: %d bytes to read into", path, PIECE);
    QN_TRY_OUT(qn_sha256_new(&sum, err));
    for (;;) {
        QN_TRY_OUT(qn_hub_tell(report, p, err));
        const ssize_t n = read(fd, piece, PIECE);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            rc = qn_fail_sys(err, QN_E_IO, errno, "read %s", path);
            goto out;
        }
        if (n == 0) break;
        QN_TRY_OUT(qn_sha256_update(sum, piece, (size_t)n, err));
        if (to) QN_TRY_OUT(qn_stream_put(to, piece, (size_t)n, err));
        p->done += (uint64_t)n;
        if (p->total < p->done) p->total = p->done; /* it grew under our hands */
    }
    QN_TRY_OUT(qn_sha256_finish(sum, &digest, err));
    qn_sha256_hex(sha256, &digest);
out:
    qn_sha256_free(sum);
    qn_free(piece);
    return rc;
}

qn_code qn_hub_digest(char sha256[65], const char *path, const qn_hub_report *report,
                      quern_get_progress *p, qn_err *err)
{
    qn_code rc = QN_OK;
    struct stat st, after;
    bool known = false;
    int fd = -1;
    sha256[0] = '\0';
    QN_TRY(qn_hub_open_file(&fd, &st, path, err));
    QN_TRY_OUT(read_stamp(&known, sha256, path, &st, err));
    p->done = 0;
    p->total = (uint64_t)st.st_size;
    if (known) goto out;
    QN_TRY_OUT(qn_hub_read_through(sha256, fd, path, NULL, report, p, err));
    /* what was written while it was read gets no stamp */
    if (fstat(fd, &after) == 0 && after.st_size == st.st_size &&
        after.st_mtim.tv_sec == st.st_mtim.tv_sec && after.st_mtim.tv_nsec == st.st_mtim.tv_nsec)
        write_stamp(path, sha256, &st);
out:
    (void)close(fd);
    return rc;
}

qn_code qn_hub_tell(const qn_hub_report *report, const quern_get_progress *p, qn_err *err)
{
    if (!report || !report->tell || report->tell(report->ctx, p) == 0) return QN_OK;
    return qn_fail(err, QN_E_CANCELLED, "%s: cancelled", p->file);
}
