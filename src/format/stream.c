/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - a buffered temporary file beside its final name. */
#include "format/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"

enum { BUFFER = 1 << 18, TRIES = 16 };

/* Creates PATH.tmp-XXXXXXXXXXXX under a name that nobody has. */
static qn_code create(qn_stream *s, qn_err *err)
{
    qn_code rc = QN_OK;
    const size_t n = strlen(s->path) + 32;
    s->tmp = qn_alloc(n);
    if (!s->tmp) return qn_fail(err, QN_E_NOMEM, "%s", s->path);
    for (int i = 0; i < TRIES; i++) {
        uint64_t seed = 0;
        rc = qn_rng_fresh_seed(&seed, err);
        if (rc != QN_OK) break;
        (void)snprintf(s->tmp, n, "%s.tmp-%012llx", s->path,
                       (unsigned long long)(seed & 0xffffffffffff));
        s->fd = open(s->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->fd >= 0) return QN_OK;
        if (errno != EEXIST) break;
    }
    if (rc == QN_OK) rc = qn_fail_sys(err, QN_E_IO, errno, "cannot create %s", s->tmp);
    qn_free(s->tmp); /* drop must not unlink what is not ours */
    s->tmp = NULL;
    return rc;
}

qn_code qn_stream_open(qn_stream *s, const char *path, qn_err *err)
{
    qn_code rc = QN_OK;
    *s = (qn_stream){.fd = -1};
    const size_t n = strlen(path) + 1;
    s->path = qn_alloc(n);
    s->buffer = qn_alloc(BUFFER);
    if (!s->path || !s->buffer) {
        rc = qn_fail(err, QN_E_NOMEM, "writer of %s", path);
        goto out;
    }
    memcpy(s->path, path, n);
    rc = create(s, err);
out:
    if (rc != QN_OK) qn_stream_drop(s);
    return rc;
}

static qn_code write_all(const qn_stream *s, const uint8_t *bytes, size_t n, qn_err *err)
{
    while (n > 0) {
        const ssize_t done = write(s->fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return qn_fail_sys(err, QN_E_IO, errno, "cannot write %s", s->tmp);
        bytes += done;
        n -= (size_t)done;
    }
    return QN_OK;
}

static qn_code flush(qn_stream *s, qn_err *err)
{
    const size_t n = s->used;
    s->used = 0;
    return write_all(s, s->buffer, n, err);
}

qn_code qn_stream_put(qn_stream *s, const void *bytes, size_t n, qn_err *err)
{
    s->total += n;
    if (n > BUFFER - s->used) QN_TRY(flush(s, err));
    if (n >= BUFFER) return write_all(s, bytes, n, err);
    if (n > 0) memcpy(s->buffer + s->used, bytes, n);
    s->used += n;
    return QN_OK;
}

qn_code qn_stream_pad(qn_stream *s, uint64_t alignment, qn_err *err)
{
    static const uint8_t zeros[64] = {0};
    uint64_t left = (alignment - s->total % alignment) % alignment;
    while (left > 0) {
        const size_t n = left < sizeof zeros ? (size_t)left : sizeof zeros;
        QN_TRY(qn_stream_put(s, zeros, n, err));
        left -= n;
    }
    return QN_OK;
}

/* The rename is durable once the folder is. */
static qn_code sync_folder(const qn_stream *s, qn_err *err)
{
    const char *slash = strrchr(s->path, '/');
    const size_t n = slash ? (size_t)(slash - s->path) + 1 : 2;
    char *folder = qn_alloc(n + 1);
    if (!folder) return qn_fail(err, QN_E_NOMEM, "%s", s->path);
    memcpy(folder, slash ? s->path : "./", n);
    folder[n] = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int sys = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) (void)close(fd);
    qn_free(folder);
    /* some file systems cannot sync a folder; then there is nothing more to do */
    if (sys == 0 || sys == EINVAL) return QN_OK;
    return qn_fail_sys(err, QN_E_IO, sys, "cannot sync the folder of %s", s->path);
}

qn_code qn_stream_commit(qn_stream *s, qn_err *err)
{
    QN_TRY(flush(s, err));
    if (fsync(s->fd) != 0) return qn_fail_sys(err, QN_E_IO, errno, "cannot sync %s", s->tmp);
    const int fd = s->fd;
    s->fd = -1;
    if (close(fd) != 0) return qn_fail_sys(err, QN_E_IO, errno, "cannot close %s", s->tmp);
    if (rename(s->tmp, s->path) != 0)
        return qn_fail_sys(err, QN_E_IO, errno, "cannot rename %s to %s", s->tmp, s->path);
    qn_free(s->tmp);
    s->tmp = NULL;
    return sync_folder(s, err);
}

void qn_stream_drop(qn_stream *s)
{
    if (s->fd >= 0) (void)close(s->fd);
    if (s->tmp) (void)unlink(s->tmp);
    qn_free(s->tmp);
    qn_free(s->path);
    qn_free(s->buffer);
    *s = (qn_stream){.fd = -1};
}
