/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reading until the end of file, whatever stat says (files of /proc have size 0); writing by
 * temporary file, fsync, rename, fsync of the directory. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/rng.h"

enum { CHUNK = 4096, NAME_TRIES = 16 };

static qn_code fail_path(qn_err *err, const char *what, const char *path)
{
    const int sys = errno;
    return qn_fail_sys(err, sys == ENOENT || sys == ENOTDIR ? QN_E_NOTFOUND : QN_E_IO, sys, "%s%s",
                       what, path);
}

static qn_code read_all(qn_buf *b, int fd, const char *path, qn_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return fail_path(err, "", path);
    if (!S_ISREG(st.st_mode))
        return qn_fail(err, QN_E_INVAL, "%s: %s, expected a file", path,
                       S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    if ((uint64_t)st.st_size > b->max)
        return qn_fail(err, QN_E_LIMIT, "%s: %llu bytes, limit %zu", path,
                       (unsigned long long)st.st_size, b->max);
    QN_TRY(qn_buf_reserve(b, (size_t)st.st_size, err));
    for (;;) {
        uint8_t probe[CHUNK]; /* past the expected size: the file may have grown */
        const size_t room = b->cap - 1 - b->len;
        const ssize_t n = room ? read(fd, b->data + b->len, room) : read(fd, probe, sizeof probe);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_path(err, "read ", path);
        if (n == 0) break;
        if (room) {
            b->len += (size_t)n;
        } else {
            const qn_code rc = qn_buf_append(b, probe, (size_t)n, NULL);
            if (rc != QN_OK) return qn_fail(err, rc, "%s: longer than %zu bytes", path, b->len);
        }
    }
    b->data[b->len] = 0;
    return QN_OK;
}

qn_code qn_file_read(uint8_t **out, size_t *n, const char *path, size_t max_bytes, qn_err *err)
{
    qn_buf b;
    *out = NULL;
    *n = 0;
    qn_buf_init(&b, max_bytes);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    if (fd < 0) return fail_path(err, "", path);
    const qn_code rc = read_all(&b, fd, path, err);
    (void)close(fd);
    if (rc == QN_OK) *out = qn_buf_take(&b, n);
    qn_buf_fini(&b);
    return rc;
}

static qn_code write_all(int fd, const uint8_t *p, size_t n, const char *path, qn_err *err)
{
    while (n > 0) {
        const ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return fail_path(err, "write ", path);
        p += w;
        n -= (size_t)w;
    }
    return fsync(fd) == 0 ? QN_OK : fail_path(err, "fsync ", path);
}

/* Creates "<path>.<random>.tmp" for writing; its name is in `name`. */
static qn_code create_temp(int *fd, qn_buf *name, const char *path, mode_t mode, qn_err *err)
{
    *fd = -1;
    for (int i = 0; i < NAME_TRIES && *fd < 0; i++) {
        uint64_t tag = 0;
        qn_buf_truncate(name, 0);
        QN_TRY(qn_rng_fresh_seed(&tag, err));
        QN_TRY(qn_buf_printf(name, err, "%s.%016llx.tmp", path, (unsigned long long)tag));
        *fd = open(qn_buf_text(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*fd < 0 && errno != EEXIST) break;
    }
    /* the path that was asked for: nobody knows the other name */
    return *fd >= 0 ? QN_OK : fail_path(err, "create ", path);
}

/* Makes the rename durable. Some file systems cannot sync a directory: that is not our failure. */
static qn_code sync_directory(const char *path, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_buf dir;
    const char *slash = strrchr(path, '/');
    qn_buf_init(&dir, SIZE_MAX / 2);
    if (!slash)
        QN_TRY_OUT(qn_buf_append_z(&dir, ".", err));
    else
        QN_TRY_OUT(qn_buf_append(&dir, path, slash == path ? 1 : (size_t)(slash - path), err));
    const int fd = open(qn_buf_text(&dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        rc = fail_path(err, "open ", qn_buf_text(&dir));
        goto out;
    }
    if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        rc = fail_path(err, "fsync ", qn_buf_text(&dir));
    (void)close(fd);
out:
    qn_buf_fini(&dir);
    return rc;
}

static qn_code write_file(const char *path, const void *bytes, size_t n, mode_t mode, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_buf name;
    int fd = -1;
    bool there = false; /* the temporary exists under its own name */
    qn_buf_init(&name, SIZE_MAX / 2);
    QN_TRY_OUT(create_temp(&fd, &name, path, mode, err));
    there = true;
    QN_TRY_OUT(write_all(fd, bytes, n, path, err));
    const int closed = close(fd);
    fd = -1;
    if (closed != 0 || rename(qn_buf_text(&name), path) != 0) {
        rc = fail_path(err, "replace ", path);
        goto out;
    }
    there = false;
    QN_TRY_OUT(sync_directory(path, err));
out:
    if (fd >= 0) (void)close(fd);
    if (there) (void)unlink(qn_buf_text(&name));
    qn_buf_fini(&name);
    return rc;
}

qn_code qn_file_write(const char *path, const void *bytes, size_t n, qn_err *err)
{
    return write_file(path, bytes, n, 0666, err);
}

qn_code qn_file_write_private(const char *path, const void *bytes, size_t n, qn_err *err)
{
    return write_file(path, bytes, n, 0600, err);
}

bool qn_file_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}
