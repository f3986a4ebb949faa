/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - finding, checking and building images of weights. */
#include "model/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tensor/panel.h"

enum {
    MAGIC = 0x494D4E51, /* "QNMI" */
    VERSION = 2,
    PART_ALIGN = 64,
    DATA_ALIGN = 4096,
    STALE_SECONDS = 3600 /* a temporary file this old belongs to no builder */
};
/* Left free on the disk beside an image. */
static const uint64_t spare_bytes = (uint64_t)1 << 28;

typedef struct file_header { /* 128 bytes, in the machine's byte order: the magic tells another */
    uint32_t magic, version, layout, n_entries;
    uint64_t file_bytes, source[2];
    uint64_t table_hash, header_hash; /* header_hash: of this struct with itself 0 */
    uint64_t reserved[9];
} file_header;
_Static_assert(sizeof(file_header) == 128, "the header is 128 bytes");
_Static_assert(sizeof(qn_image_entry) == 32, "entries lie in the file as they are");

struct qn_image {
    qn_mapping map;
    char path[1024];
    bool built;
};

/* -- layout ------------------------------------------------------------------------------------ */

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static uint64_t hash_header(const file_header *h)
{
    file_header copy = *h;
    copy.header_hash = 0;
    return qn_hash64(&copy, sizeof copy, 0);
}

static file_header lay_out(const qn_image_plan *p)
{
    uint64_t at = round_up(sizeof(file_header) + p->n * sizeof *p->entries, DATA_ALIGN);
    for (size_t i = 0; i < p->n; i++) {
        p->entries[i].at = at;
        at = round_up(at + p->entries[i].bytes, PART_ALIGN);
    }
    file_header h = {.magic = MAGIC,
                     .version = VERSION,
                     .layout = QN_PANEL_VERSION,
                     .n_entries = (uint32_t)p->n,
                     .file_bytes = at,
                     .source = {p->source.lo, p->source.hi}};
    h.table_hash = qn_hash64(p->entries, p->n * sizeof *p->entries, 0);
    h.header_hash = hash_header(&h);
    return h;
}

/* -- building ---------------------------------------------------------------------------------- */

static qn_code sync_dir(const char *dir, qn_err *err)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return qn_fail_sys(err, QN_E_IO, errno, "%s", dir);
    const int bad = fsync(fd) != 0 ? errno : 0;
    close(fd);
    return bad ? qn_fail_sys(err, QN_E_IO, bad, "fsync of %s", dir) : QN_OK;
}

static qn_code check_space(const char *dir, uint64_t bytes, qn_err *err)
{
    struct statvfs fs;
    if (statvfs(dir, &fs) != 0) return qn_fail_sys(err, QN_E_IO, errno, "%s", dir);
    const uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (room >= bytes && room - bytes >= spare_bytes) return QN_OK;
    return qn_fail(err, QN_E_IO, "%s: %llu MiB free, expected %llu and %llu to spare", dir,
                   (unsigned long long)(room >> 20), (unsigned long long)(bytes >> 20),
                   (unsigned long long)(spare_bytes >> 20));
}

/* Is `name` what a killed builder of image `of` left, or the same weights in the layout of another version? */
static bool is_stale(const char *name, const char *of, const struct stat *st)
{
    const size_t digest = strcspn(of, "."), n = strlen(of);
    if (strncmp(name, of, n) == 0 && name[n] == '.')
        return time(NULL) - st->st_mtime > STALE_SECONDS;
    return strncmp(name, of, digest) == 0 && strncmp(name + digest, ".panels", 7) == 0 &&
           strcmp(name, of) != 0 && !strchr(name + digest + 1, '.');
}

static void remove_stale(const char *path, const char *dir)
{
    const char *name = strrchr(path, '/') + 1;
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char full[1100];
        struct stat st;
        const int used = snprintf(full, sizeof full, "%s/%s", dir, e->d_name);
        if (used < 0 || (size_t)used >= sizeof full || stat(full, &st) != 0) continue;
        if (is_stale(e->d_name, name, &st)) (void)unlink(full);
    }
    closedir(d);
}

/* The file's space is taken beforehand: a mapped page that finds no room would kill the process. */
static qn_code fill_file(int fd, const file_header *h, const qn_image_plan *p, qn_err *err)
{
    const int full = posix_fallocate(fd, 0, (off_t)h->file_bytes);
    if (full)
        return qn_fail_sys(err, QN_E_IO, full, "%llu bytes", (unsigned long long)h->file_bytes);
    uint8_t *to = mmap(NULL, (size_t)h->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (to == MAP_FAILED) return qn_fail_sys(err, QN_E_IO, errno, "mapping");
    memcpy(to, h, sizeof *h);
    memcpy(to + sizeof *h, p->entries, p->n * sizeof *p->entries);
    p->fill(p->ctx, to);
    const int bad = msync(to, (size_t)h->file_bytes, MS_SYNC) != 0 ? errno : 0;
    (void)munmap(to, (size_t)h->file_bytes);
    if (bad) return qn_fail_sys(err, QN_E_IO, bad, "writing");
    return fsync(fd) == 0 ? QN_OK : qn_fail_sys(err, QN_E_IO, errno, "fsync");
}

/* A temporary file beside `path`, renamed over it when all of it is on the disk. */
static qn_code build(const char *path, const file_header *h, const qn_image_plan *p, qn_err *err)
{
    char temp[1100];
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    QN_TRY(check_space(p->dir, h->file_bytes, err));
    remove_stale(path, p->dir);
    const int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0) return qn_fail_sys(err, QN_E_IO, errno, "%s", temp);
    qn_code rc = fill_file(fd, h, p, err);
    if (close(fd) != 0 && rc == QN_OK) rc = qn_fail_sys(err, QN_E_IO, errno, "closing");
    if (rc == QN_OK && rename(temp, path) != 0)
        rc = qn_fail_sys(err, QN_E_IO, errno, "renaming to %s", path);
    if (rc != QN_OK) {
        unlink(temp);
        return qn_wrap(err, rc, "%s", temp);
    }
    return sync_dir(p->dir, err);
}

/* -- finding ----------------------------------------------------------------------------------- */

/* Does the mapped file begin with what would be written today? */
static qn_code check(const qn_mapping *map, const file_header *want, const qn_image_plan *p,
                     qn_err *err)
{
    file_header h;
    const size_t table = p->n * sizeof *p->entries;
    if (map->len < sizeof h) return qn_fail(err, QN_E_FORMAT, "%zu bytes, no header", map->len);
    memcpy(&h, map->data, sizeof h);
    if (h.magic != MAGIC || h.version != VERSION)
        return qn_fail(err, QN_E_FORMAT, "magic %08x version %u, expected %08x and %d", h.magic,
                       h.version, (unsigned)MAGIC, VERSION);
    if (h.header_hash != hash_header(&h)) return qn_fail(err, QN_E_FORMAT, "header checksum");
    if (h.layout != want->layout || h.source[0] != want->source[0] ||
        h.source[1] != want->source[1] || h.n_entries != want->n_entries)
        return qn_fail(err, QN_E_FORMAT, "made from other weights");
    if (h.file_bytes != want->file_bytes || map->len != want->file_bytes)
        return qn_fail(err, QN_E_FORMAT, "%zu bytes, expected %llu", map->len,
                       (unsigned long long)want->file_bytes);
    if (qn_hash64(map->data + sizeof h, table, 0) != h.table_hash)
        return qn_fail(err, QN_E_FORMAT, "table checksum");
    if (memcmp(map->data + sizeof h, p->entries, table) != 0)
        return qn_fail(err, QN_E_FORMAT, "the matrices are laid out otherwise");
    return QN_OK;
}

static qn_code map_checked(qn_image *img, const file_header *h, const qn_image_plan *p, qn_err *err)
{
    QN_TRY(qn_map_open(&img->map, img->path, err));
    const qn_code rc = check(&img->map, h, p, err);
    if (rc != QN_OK) qn_map_close(&img->map);
    return rc;
}

/* Found and sound, or built and then found; NOMEM and faults of the disk come back as codes. */
static qn_code find_or_build(qn_image *img, const qn_image_plan *p, qn_err *err)
{
    qn_err why = {0};
    const file_header h = lay_out(p);
    qn_code rc = map_checked(img, &h, p, &why);
    if (rc == QN_OK) return QN_OK;
    if (rc == QN_E_NOMEM) return qn_fail(err, rc, "%s", why.msg);
    if (rc == QN_E_NOTFOUND)
        qn_log(p->log, QN_LOG_INFO, "image", "build=%s bytes=%llu", img->path,
               (unsigned long long)h.file_bytes);
    else
        qn_log(p->log, QN_LOG_WARN, "image", "rebuild=%s why=\"%s\"", img->path, why.msg);
    QN_TRY(build(img->path, &h, p, err));
    img->built = true;
    return map_checked(img, &h, p, err);
}

qn_code qn_image_open(qn_image **out, const qn_image_plan *p, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_err why = {0};
    *out = NULL;
    qn_image *img = qn_zalloc(sizeof *img);
    if (!img) return qn_fail(err, QN_E_NOMEM, "an image of %zu matrices", p->n);
    const int used = snprintf(img->path, sizeof img->path, "%s/%016llx%016llx.panels%d", p->dir,
                              (unsigned long long)p->source.hi, (unsigned long long)p->source.lo,
                              QN_PANEL_VERSION);
    if (used < 0 || (size_t)used >= sizeof img->path) {
        rc = qn_fail(&why, QN_E_LIMIT, "the directory's name is too long");
        goto out;
    }
    QN_TRY_OUT(find_or_build(img, p, &why));
    *out = img;
    img = NULL;
out:
    qn_image_close(img);
    if (rc == QN_E_NOMEM) return qn_fail(err, rc, "%s", why.msg);
    if (rc != QN_OK) qn_log(p->log, QN_LOG_WARN, "image", "unused=%s why=\"%s\"", p->dir, why.msg);
    return QN_OK;
}

void qn_image_close(qn_image *img)
{
    if (!img) return;
    qn_map_close(&img->map);
    qn_free(img);
}

const uint8_t *qn_image_data(const qn_image *i) { return i->map.data; }
const char *qn_image_path(const qn_image *i) { return i->path; }
bool qn_image_was_built(const qn_image *i) { return i->built; }
