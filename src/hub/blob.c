/* SPDX-License-Identifier: Apache-2.0 */
/* blob.c - one file of a hub: its bytes come into PATH.incomplete, and PATH is there when they are right.
 *
 *     part on disk ─► digested again ("verifying") ─► GET from its size ─► digest, size ─► fsync, rename
 *
 * A part is kept whenever going on may help (a lost connection, a full disk, a stop) and removed when its
 * bytes are known to be wrong. While it is written it is locked twice: by PATH.lock, which can say who
 * it is, and by flock, which cannot be wrong about who still lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "hub/pull_int.h"

enum { PIECE = 8 << 20, GOOD_TRY = 16 << 20 /* bytes, after which tries count from one again */ };

typedef struct sum { /* one of the two */
    qn_sha256_stream *sha256;
    qn_git_blob_stream *git;
} sum;

typedef struct part { /* the file on its way */
    const qn_hub_blob *b;
    qn_hub_talk *k;
    qn_hub_lock lock;
    char *path;
    int fd;
    uint64_t base; /* progress before this file */
    uint64_t have; /* bytes in the part, all of them in the digest */
    uint64_t from; /* what this request asks for */
    bool wrong;    /* these bytes are not the file's: remove them */
    bool plain;    /* ranges have failed here */
    sum digest;
} part;

/* -- digests ----------------------------------------------------------------------------------- */

static void sum_free(sum *s)
{
    qn_sha256_free(s->sha256);
    qn_git_blob_free(s->git);
    *s = (sum){NULL, NULL};
}

static qn_code sum_start(sum *s, const qn_hub_blob *b, qn_err *err)
{
    sum_free(s);
    return b->sha256 ? qn_sha256_new(&s->sha256, err) : qn_git_blob_new(&s->git, b->bytes, err);
}

static qn_code sum_update(sum *s, const void *bytes, size_t n, qn_err *err)
{
    return s->sha256 ? qn_sha256_update(s->sha256, bytes, n, err)
                     : qn_git_blob_update(s->git, bytes, n, err);
}

static qn_code sum_finish(sum *s, char hex[65], qn_err *err)
{
    qn_sha256_digest d;
    if (s->git) return qn_git_blob_finish(s->git, hex, err);
    QN_TRY(qn_sha256_finish(s->sha256, &d, err));
    qn_sha256_hex(hex, &d);
    return QN_OK;
}

/* All of fd from its start into the digest; *n is how much there was. */
static qn_code sum_file(sum *s, qn_hub_talk *k, int fd, const qn_hub_blob *b, uint64_t *n,
                        qn_err *err)
{
    qn_code rc = QN_OK;
    const uint64_t base = k->at.done;
    uint8_t *piece = qn_alloc(PIECE);
    if (!piece) return qn_fail(err, QN_E_NOMEM, "%d bytes to read %s", PIECE, b->name);
    k->at.step = "verifying";
    for (*n = 0;;) {
        const ssize_t got = pread(fd, piece, PIECE, (off_t)*n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            rc = qn_fail_sys(err, QN_E_IO, errno, "read %s", b->path);
            goto out;
        }
        if (got == 0) break;
        QN_TRY_OUT(sum_update(s, piece, (size_t)got, err));
        *n += (uint64_t)got;
        k->at.done = base + *n;
        QN_TRY_OUT(qn_hub_talk_tell(k, err));
    }
out:
    qn_free(piece);
    return rc;
}

/* -- what is there already --------------------------------------------------------------------- */

uint64_t qn_hub_blob_missing(const qn_hub_blob *b)
{
    struct stat st;
    char name[4096];
    const int n = snprintf(name, sizeof name, "%s.incomplete", b->path);
    if (stat(b->path, &st) == 0 && (uint64_t)st.st_size == b->bytes) return 0;
    if (n < 0 || (size_t)n >= sizeof name || stat(name, &st) != 0) return b->bytes;
    return (uint64_t)st.st_size > b->bytes ? b->bytes : b->bytes - (uint64_t)st.st_size;
}

static qn_code check_bytes(bool *good, qn_hub_talk *k, const qn_hub_blob *b, int fd, qn_err *err)
{
    qn_code rc = QN_OK;
    char hex[65] = "";
    uint64_t n = 0;
    sum s = {NULL, NULL};
    QN_TRY_OUT(sum_start(&s, b, err));
    QN_TRY_OUT(sum_file(&s, k, fd, b, &n, err));
    if (n == b->bytes) QN_TRY_OUT(sum_finish(&s, hex, err));
    *good = strcmp(hex, b->digest) == 0;
out:
    sum_free(&s);
    return rc;
}

/* Is PATH there, with the right bytes? Others are no error: they will be replaced. */
static qn_code is_there(bool *good, qn_hub_talk *k, const qn_hub_blob *b, qn_err *err)
{
    struct stat st;
    char hex[65];
    const uint64_t base = k->at.done;
    int fd = -1;
    *good = false;
    if (stat(b->path, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != b->bytes)
        return QN_OK;
    if (b->stamped) {
        quern_get_progress p = k->at;
        p.step = "verifying";
        QN_TRY(qn_hub_digest(hex, b->path, k->report, &p, err));
        *good = strcmp(hex, b->digest) == 0;
    } else {
        QN_TRY(qn_hub_open_file(&fd, &st, b->path, err));
        const qn_code rc = check_bytes(good, k, b, fd, err);
        (void)close(fd);
        QN_TRY(rc);
    }
    k->at.done = *good ? base + b->bytes : base;
    return QN_OK;
}

/* -- the part ---------------------------------------------------------------------------------- */

static qn_code part_open(part *p, qn_err *err)
{
    struct stat here, there;
    const size_t room = strlen(p->b->path) + sizeof ".incomplete";
    p->path = qn_alloc(room);
    if (!p->path) return qn_fail(err, QN_E_NOMEM, "part of %s", p->b->name);
    (void)snprintf(p->path, room, "%s.incomplete", p->b->path);
    QN_TRY(qn_hub_lock_take(&p->lock, p->b->path, err));
    p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p->fd < 0) return qn_fail_sys(err, QN_E_IO, errno, "create %s", p->path);
    /* whoever was renamed away between open and flock is not the part any more */
    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0 || fstat(p->fd, &here) != 0 ||
        stat(p->path, &there) != 0 || here.st_ino != there.st_ino)
        return qn_fail(err, QN_E_AGAIN, "another process writes %s", p->path);
    if (!S_ISREG(here.st_mode))
        return qn_fail(err, QN_E_IO, "%s is in the way: not a file", p->path);
    return QN_OK;
}

static void part_close(part *p)
{
    if (p->fd >= 0 && p->wrong) (void)unlink(p->path);
    if (p->fd >= 0) (void)close(p->fd);
    qn_hub_lock_drop(&p->lock);
    sum_free(&p->digest);
    qn_free(p->path);
}

static qn_code part_restart(part *p, qn_err *err)
{
    p->have = 0;
    p->k->at.done = p->base;
    if (ftruncate(p->fd, 0) != 0) return qn_fail_sys(err, QN_E_IO, errno, "cut %s", p->path);
    return sum_start(&p->digest, p->b, err);
}

/* What is in the part goes through the digest, as if it came now. */
static qn_code part_resume(part *p, qn_err *err)
{
    struct stat st;
    QN_TRY(sum_start(&p->digest, p->b, err));
    if (fstat(p->fd, &st) != 0) return qn_fail_sys(err, QN_E_IO, errno, "%s", p->path);
    if ((uint64_t)st.st_size > p->b->bytes) return part_restart(p, err);
    QN_TRY(sum_file(&p->digest, p->k, p->fd, p->b, &p->have, err));
    p->k->at.done = p->base + p->have;
    return QN_OK;
}

/* -- the answer -------------------------------------------------------------------------------- */

static qn_code wrong_size(const part *p, uint64_t found, qn_err *err)
{
    return qn_fail(err, QN_E_FORMAT, "%s: the hub sends %llu bytes, expected %llu as it lists",
                   p->b->name, (unsigned long long)found, (unsigned long long)p->b->bytes);
}

static qn_code on_head(void *ctx, const qn_net_answer *a, qn_err *err)
{
    part *p = ctx;
    p->k->at.step = "downloading";
    if (a->status == 206 && p->from > 0) {
        const qn_net_range *r = &a->range;
        if (r->good && r->first == p->from && r->last == p->b->bytes - 1 &&
            (r->total == p->b->bytes || r->total == UINT64_MAX))
            return QN_OK;
        p->plain = true; /* not the piece that we asked for: once more, for the whole */
        return qn_fail(err, QN_E_FORMAT, "%s: the hub sends bytes %llu-%llu, expected %llu-%llu",
                       p->b->name, (unsigned long long)r->first, (unsigned long long)r->last,
                       (unsigned long long)p->from, (unsigned long long)p->b->bytes - 1);
    }
    if (a->status != 200)
        return qn_fail(err, QN_E_FORMAT, "%s: the hub answers %d, expected 200", p->b->name,
                       a->status);
    /* what is no file of ours is refused before it costs us the part */
    if (a->bytes != UINT64_MAX && a->bytes != p->b->bytes) return wrong_size(p, a->bytes, err);
    return p->have > 0 ? part_restart(p, err) : QN_OK;
}

static qn_code on_body(void *ctx, const void *bytes, size_t n, qn_err *err)
{
    part *p = ctx;
    const uint8_t *from = bytes;
    if (n > p->b->bytes - p->have) {
        p->wrong = true;
        return qn_fail(err, QN_E_FORMAT, "%s: the hub sends more than the %llu bytes that it lists",
                       p->b->name, (unsigned long long)p->b->bytes);
    }
    QN_TRY(sum_update(&p->digest, bytes, n, err));
    for (size_t put = 0; put < n;) {
        const ssize_t w = pwrite(p->fd, from + put, n - put, (off_t)(p->have + put));
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return qn_fail_sys(err, QN_E_IO, errno, "write %s", p->path);
        put += (size_t)w;
    }
    p->have += n;
    p->k->at.done = p->base + p->have;
    qn_hub_lock_touch(&p->lock);
    return qn_hub_talk_tell(p->k, err);
}

static qn_code on_tick(void *ctx, qn_err *err)
{
    part *p = ctx;
    qn_hub_lock_touch(&p->lock);
    return qn_hub_talk_tick(p->k, err);
}

/* One request for what is missing. */
static qn_code part_ask(part *p, qn_hub_try *try, qn_err *err)
{
    p->from = p->plain ? 0 : p->have;
    qn_net_request r = {.url = p->b->url,
                        .from = p->from,
                        .head = on_head,
                        .body = on_body,
                        .tick = on_tick,
                        .ctx = p};
    const uint64_t before = p->have;
    const bool plain = p->plain;
    qn_code rc = qn_hub_ask(p->k, &r, try, err);
    if (p->have >= before + GOOD_TRY) try->n = 1;
    if (rc == QN_OK && try->status == 416) {
        p->plain = true; /* it thinks that the file is shorter than our part */
        rc = qn_fail(err, QN_E_FORMAT, "%s: the hub has no bytes from %llu on, expected %llu",
                     p->b->name, (unsigned long long)p->from, (unsigned long long)p->b->bytes);
    } else if (rc == QN_OK && p->have < p->b->bytes) {
        try->passing = true;
        rc = qn_fail(err, QN_E_IO, "the hub ended the answer early");
    }
    if (rc == QN_OK) return rc;
    if (p->plain && !plain) return QN_OK; /* goes round again, without a range */
    const bool on = rc == QN_E_IO && p->have > 0;
    rc = qn_hub_again(p->k, try, rc, err);
    if (rc == QN_OK || !on || rc == QN_E_CANCELLED) return rc;
    return qn_wrap(
        err, rc,
        "%s ended at %llu of %llu bytes; run the same command again: it goes on where it ended",
        p->b->name, (unsigned long long)p->have, (unsigned long long)p->b->bytes);
}

static qn_code part_check(part *p, qn_err *err)
{
    char hex[65] = "";
    QN_TRY(sum_finish(&p->digest, hex, err));
    if (strcmp(hex, p->b->digest) == 0) return QN_OK;
    p->wrong = true;
    return qn_fail(err, QN_E_FORMAT, "%s has %s %s, expected %s", p->b->name,
                   p->b->sha256 ? "sha-256" : "git sha-1", hex, p->b->digest);
}

/* Durable under its last name. */
static qn_code part_publish(part *p, qn_err *err)
{
    if (fsync(p->fd) != 0) return qn_fail_sys(err, QN_E_IO, errno, "fsync %s", p->path);
    if (rename(p->path, p->b->path) != 0)
        return qn_fail_sys(err, QN_E_IO, errno, "rename to %s", p->b->path);
    char *slash = strrchr(p->path, '/');
    if (slash) {
        *slash = '\0';
        const int dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0)
            (void)fsync(dir); /* some file systems cannot; the file is whole in any case */
        if (dir >= 0) (void)close(dir);
    }
    if (p->b->stamped) qn_hub_write_stamp(p->b->path, p->b->digest);
    return QN_OK;
}

qn_code qn_hub_blob_fetch(qn_hub_talk *k, const qn_hub_blob *b, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_hub_try try = {.n = 0};
    bool good = false;
    part p = {.b = b, .k = k, .fd = -1, .base = k->at.done};
    k->at.step = "verifying";
    QN_TRY(qn_hub_talk_tell(k, err));
    QN_TRY(is_there(&good, k, b, err));
    if (good) return QN_OK;
    QN_TRY_OUT(part_open(&p, err));
    QN_TRY_OUT(is_there(&good, k, b, err)); /* somebody may have been faster */
    if (good) {
        p.wrong = true; /* the part is of no use any more */
        goto out;
    }
    QN_TRY_OUT(part_resume(&p, err));
    k->at.step = "downloading";
    while (p.have < b->bytes) QN_TRY_OUT(part_ask(&p, &try, err));
    QN_TRY_OUT(part_check(&p, err));
    QN_TRY_OUT(part_publish(&p, err));
    QN_TRY_OUT(qn_hub_talk_tell(k, err));
out:
    part_close(&p);
    return rc;
}
