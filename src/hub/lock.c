/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - who fetches a file: "PID START ISO-TIME" in a file of its own, so that others can say who.
 *
 * The start time of the process tells a living holder from another process that was given its number.
 * Taking over is not atomic; two that do it at once meet again at the flock of the part (blob.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "hub/pull_int.h"

enum { MAX_LOCK = 128, MAX_STAT = 4096, TRIES = 4, TOUCH_S = 30, START_FIELD = 22 };

/* When the process began, in the kernel's ticks since boot; 0: not known here. */
static uint64_t start_of(uint64_t pid)
{
    char path[64];
    uint8_t *text = NULL;
    size_t n = 0;
    uint64_t start = 0;
    (void)snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    if (qn_file_read(&text, &n, path, MAX_STAT, NULL) != QN_OK) return 0;
    /* the second field is a name in brackets and may hold anything */
    const char *after = memrchr(text, ')', n);
    qn_str rest = after ? qn_str_slice(qn_str_make((const char *)text, n),
                                       (size_t)(after - (const char *)text) + 2, n)
                        : (qn_str){0};
    qn_str field = {0};
    for (int i = 3; i <= START_FIELD; i++)
        if (!qn_str_split(&field, &rest, ' ')) field = (qn_str){0};
    (void)qn_str_parse_u64(&start, field);
    qn_free(text);
    return start;
}

typedef enum holder { NOBODY, SOMEBODY, UNKNOWN } holder;

/* Who holds it, by what the file says; an unreadable one is being written, or damaged. */
static holder read_holder(const char *path, uint64_t *pid)
{
    uint8_t *text = NULL;
    size_t n = 0;
    uint64_t start = 0;
    struct stat st;
    qn_str piece = {0};
    if (stat(path, &st) != 0) return NOBODY;
    if (time(NULL) - st.st_mtime > QN_HUB_LOCK_AGE_S) return NOBODY;
    if (qn_file_read(&text, &n, path, MAX_LOCK, NULL) != QN_OK) return UNKNOWN;
    qn_str rest = qn_str_make((const char *)text, n);
    const bool good = qn_str_split(&piece, &rest, ' ') && qn_str_parse_u64(pid, piece) &&
                      *pid > 0 && *pid <= INT32_MAX && qn_str_split(&piece, &rest, ' ') &&
                      qn_str_parse_u64(&start, piece);
    qn_free(text);
    if (!good) return UNKNOWN;
    if (kill((pid_t)*pid, 0) != 0 && errno == ESRCH) return NOBODY;
    const uint64_t now = start_of(*pid);
    return now && start && now != start ? NOBODY : SOMEBODY;
}

/* 1: ours now; 0: there is one already; -1: errno. */
static int create(const char *path)
{
    char line[MAX_LOCK], iso[32] = "";
    struct tm tm;
    const time_t now = time(NULL);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return errno == EEXIST ? 0 : -1;
    if (gmtime_r(&now, &tm)) (void)strftime(iso, sizeof iso, "%Y-%m-%dT%H:%M:%SZ", &tm);
    const int n = snprintf(line, sizeof line, "%lld %llu %s\n", (long long)getpid(),
                           (unsigned long long)start_of((uint64_t)getpid()), iso);
    const bool ok = write(fd, line, (size_t)n) == n;
    const int sys = errno;
    (void)close(fd);
    if (ok) return 1;
    (void)unlink(path);
    errno = sys;
    return -1;
}

qn_code qn_hub_lock_take(qn_hub_lock *l, const char *path, qn_err *err)
{
    const size_t room = strlen(path) + sizeof ".lock";
    uint64_t pid = 0;
    *l = (qn_hub_lock){.path = NULL};
    char *lock = qn_alloc(room);
    if (!lock) return qn_fail(err, QN_E_NOMEM, "lock of %s", path);
    (void)snprintf(lock, room, "%s.lock", path);
    for (int i = 0; i < TRIES; i++) {
        const int made = create(lock);
        if (made > 0) {
            *l = (qn_hub_lock){.path = lock, .touched_ns = qn_clock_ns()};
            return QN_OK;
        }
        if (made < 0) {
            const qn_code rc = qn_fail_sys(err, QN_E_IO, errno, "create %s", lock);
            qn_free(lock);
            return rc;
        }
        const holder who = read_holder(lock, &pid);
        if (who == SOMEBODY) break;
        if (who == NOBODY) (void)unlink(lock);
        if (who == UNKNOWN) (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    const qn_code rc =
        pid ? qn_fail(err, QN_E_AGAIN, "process %llu fetches it; its lock is %s",
                      (unsigned long long)pid, lock)
            : qn_fail(err, QN_E_AGAIN, "somebody fetches it; if nobody does, remove %s", lock);
    qn_free(lock);
    return rc;
}

void qn_hub_lock_touch(qn_hub_lock *l)
{
    const uint64_t now = qn_clock_ns();
    if (!l->path || now - l->touched_ns < TOUCH_S * 1000000000ull) return;
    l->touched_ns = now;
    (void)utimensat(AT_FDCWD, l->path, NULL, 0);
}

void qn_hub_lock_drop(qn_hub_lock *l)
{
    if (l->path) (void)unlink(l->path);
    qn_free(l->path);
    *l = (qn_hub_lock){.path = NULL};
}
