/* SPDX-License-Identifier: Apache-2.0 */
/* map_file.c - open, check, map, close the descriptor: the mapping keeps the file alive. */
#include "base/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1]; /* what an empty file points at: mmap refuses length 0 */

static qn_code map_fd(qn_mapping *m, int fd, const char *path, qn_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return qn_fail_sys(err, QN_E_IO, errno, "%s", path);
    if (S_ISDIR(st.st_mode))
        return qn_fail(err, QN_E_INVAL, "%s: a directory, expected a file", path);
    if (!S_ISREG(st.st_mode))
        return qn_fail(err, QN_E_INVAL, "%s: not a regular file, cannot be mapped", path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return qn_fail(err, QN_E_LIMIT, "%s: %llu bytes, more than can be mapped", path,
                       (unsigned long long)st.st_size);
    if (st.st_size == 0) {
        *m = (qn_mapping){nothing, 0};
        return QN_OK;
    }
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return qn_fail_sys(err, errno == ENOMEM ? QN_E_NOMEM : QN_E_IO, errno,
                           "%s: no place in memory for a map of its %.1f MiB", path,
                           (double)st.st_size / 1048576.0);
    *m = (qn_mapping){p, (size_t)st.st_size};
    return QN_OK;
}

qn_code qn_map_open(qn_mapping *m, const char *path, qn_err *err)
{
    *m = (qn_mapping){NULL, 0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    if (fd < 0)
        return qn_fail_sys(err, errno == ENOENT || errno == ENOTDIR ? QN_E_NOTFOUND : QN_E_IO,
                           errno, "%s", path);
    const qn_code rc = map_fd(m, fd, path, err);
    (void)close(fd);
    return rc;
}

void qn_map_close(qn_mapping *m)
{
    if (m->data && m->len) (void)munmap((void *)(uintptr_t)m->data, m->len);
    *m = (qn_mapping){NULL, 0};
}

void qn_map_advise(const qn_mapping *m, size_t offset, size_t len, qn_map_advice advice)
{
    if (offset >= m->len || len == 0) return;
    if (len > m->len - offset) len = m->len - offset;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t begin = offset / page * page, end = offset + len;
    if (advice == QN_MAP_DONTNEED) {
        begin = (offset + page - 1) / page * page;
        if (end != m->len) end = end / page * page; /* the file's last page counts as whole */
    }
    if (begin >= end) return;
    const int how = advice == QN_MAP_DONTNEED ? MADV_DONTNEED : MADV_WILLNEED;
    (void)madvise((void *)((uintptr_t)m->data + begin), end - begin, how);
}
