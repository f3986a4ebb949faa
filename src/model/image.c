/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - finding, checking and building packed weight images. */
#include "model/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map_file.h"

enum {
    MAGIC = 0x494D4E51, /* "QNMI" */
    VERSION = 1,
    LAYOUT_ROWS64 = 1,
    ROW_ALIGN = 64,
    DATA_ALIGN = 4096,
    PLANES = 3, /* main, scales, biases */
    BUFFER_BYTES = 1 << 20
};

typedef struct file_header { /* 128 bytes, in the machine's byte order: the magic tells another */
    uint32_t magic, version, layout, n_entries;
    uint64_t file_bytes, source[2];
    uint64_t table_hash, header_hash; /* header_hash: of this struct with itself 0 */
    uint64_t reserved[9];
} file_header;
_Static_assert(sizeof(file_header) == 128, "the header is 128 bytes");

typedef struct file_plane {
    uint64_t at, ld, bytes, hash; /* offset in the file; bytes a row; of all rows; of these bytes */
} file_plane;

typedef struct file_entry { /* one matrix; planes that it lacks are zero */
    uint32_t fmt, scale_fmt, rows, cols;
    file_plane plane[PLANES];
} file_entry;

struct qn_image {
    qn_mapping map;
    char path[1024];
    bool built;
};

/* -- layout ------------------------------------------------------------------------------------ */

typedef struct source_plane { /* where a plane's rows lie in the source */
    const uint8_t *data;
    size_t row_bytes, ld_bytes;
} source_plane;

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static size_t split(source_plane out[PLANES], const qn_matrix *m)
{
    size_t row = 0;
    QN_ASSERT(qn_format_row_bytes(&row, m->fmt, m->cols));
    out[0] = (source_plane){m->data, row, m->ld_bytes};
    if (qn_format_get(m->fmt)->planes < PLANES) return 1;
    const size_t value = m->scale_fmt == QN_FMT_F32 ? 4 : 2;
    const size_t scales = m->cols / qn_format_get(m->fmt)->block * value;
    out[1] = (source_plane){m->scales, scales, m->ld_scale * value};
    out[2] = (source_plane){m->biases, scales, m->ld_scale * value};
    return PLANES;
}

static size_t count(qn_weights *w)
{
    size_t n = 0;
    for (size_t it = 0; qn_weights_next(w, &it);) n++;
    return n;
}

/* Everything of the table but the hashes; returns the size of the file. */
static uint64_t lay_out(file_entry *table, size_t n, qn_weights *w)
{
    uint64_t at = round_up(sizeof(file_header) + n * sizeof *table, DATA_ALIGN);
    size_t i = 0;
    qn_matrix *m = NULL;
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL; i++) {
        source_plane planes[PLANES];
        const size_t n_planes = split(planes, m);
        table[i] = (file_entry){.fmt = (uint32_t)m->fmt,
                                .scale_fmt = n_planes > 1 ? (uint32_t)m->scale_fmt : 0,
                                .rows = m->rows,
                                .cols = m->cols};
        for (size_t p = 0; p < n_planes; p++) {
            file_plane *f = &table[i].plane[p];
            f->at = at;
            f->ld = round_up(planes[p].row_bytes, ROW_ALIGN);
            f->bytes = f->ld * m->rows;
            at = round_up(at + f->bytes, ROW_ALIGN);
        }
    }
    return at;
}

static uint64_t hash_header(const file_header *h)
{
    file_header copy = *h;
    copy.header_hash = 0;
    return qn_hash64(&copy, sizeof copy, 0);
}

/* -- writing ----------------------------------------------------------------------------------- */

typedef struct writer {
    int fd;
    uint8_t *buf;
    size_t n; /* bytes waiting in buf */
    uint64_t at;
} writer;

static qn_code flush(writer *w, qn_err *err)
{
    size_t done = 0;
    while (done < w->n) {
        const ssize_t n = write(w->fd, w->buf + done, w->n - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return qn_fail_sys(err, QN_E_IO, errno, "writing");
        done += (size_t)n;
    }
    w->n = 0;
    return QN_OK;
}

/* bytes NULL: zeros. */
static qn_code put(writer *w, const void *bytes, uint64_t n, qn_err *err)
{
    const uint8_t *p = bytes;
    while (n) {
        const size_t room = BUFFER_BYTES - w->n, take = n < room ? (size_t)n : room;
        if (p)
            memcpy(w->buf + w->n, p, take);
        else
            memset(w->buf + w->n, 0, take);
        if (p) p += take;
        w->n += take;
        w->at += take;
        n -= take;
        if (w->n == BUFFER_BYTES) QN_TRY(flush(w, err));
    }
    return QN_OK;
}

static qn_code put_plane(writer *w, file_plane *f, const source_plane *s, uint32_t rows,
                         qn_hasher *h, qn_err *err)
{
    static const uint8_t zeros[ROW_ALIGN] = {0};
    const size_t pad = (size_t)(f->ld - s->row_bytes);
    QN_TRY(put(w, NULL, f->at - w->at, err));
    qn_hasher_reset(h, 0);
    for (uint32_t r = 0; r < rows; r++) {
        const uint8_t *row = s->data + (size_t)r * s->ld_bytes;
        qn_hasher_update(h, row, s->row_bytes);
        qn_hasher_update(h, zeros, pad);
        QN_TRY(put(w, row, s->row_bytes, err));
        QN_TRY(put(w, NULL, pad, err));
    }
    f->hash = qn_hasher_get64(h);
    return QN_OK;
}

/* Header and table go last, over the hole that was left for them. */
static qn_code write_all(writer *w, file_header *h, file_entry *table, qn_weights *weights,
                         qn_hasher *hasher, qn_err *err)
{
    const size_t table_bytes = h->n_entries * sizeof *table;
    size_t i = 0;
    qn_matrix *m = NULL;
    for (size_t it = 0; (m = qn_weights_next(weights, &it)) != NULL; i++) {
        source_plane planes[PLANES];
        const size_t n = split(planes, m);
        for (size_t p = 0; p < n; p++)
            QN_TRY(put_plane(w, &table[i].plane[p], &planes[p], m->rows, hasher, err));
    }
    QN_TRY(put(w, NULL, h->file_bytes - w->at, err));
    QN_TRY(flush(w, err));
    h->table_hash = qn_hash64(table, table_bytes, 0);
    h->header_hash = hash_header(h);
    if (lseek(w->fd, 0, SEEK_SET) != 0) return qn_fail_sys(err, QN_E_IO, errno, "seeking");
    QN_TRY(put(w, h, sizeof *h, err));
    QN_TRY(put(w, table, table_bytes, err));
    QN_TRY(flush(w, err));
    if (fsync(w->fd) != 0) return qn_fail_sys(err, QN_E_IO, errno, "fsync");
    return QN_OK;
}

static qn_code sync_dir(const char *dir, qn_err *err)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return qn_fail_sys(err, QN_E_IO, errno, "%s", dir);
    const int bad = fsync(fd) != 0 ? errno : 0;
    close(fd);
    return bad ? qn_fail_sys(err, QN_E_IO, bad, "fsync of %s", dir) : QN_OK;
}

/* A temporary file beside `path`, renamed over it when all of it is on the disk. */
static qn_code build(const char *path, const char *dir, file_header *h, file_entry *table,
                     qn_weights *weights, qn_err *err)
{
    qn_code rc = QN_OK;
    char temp[1100];
    writer w = {.fd = -1};
    qn_hasher *hasher = NULL;
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    w.buf = qn_alloc(BUFFER_BYTES);
    if (!w.buf) return qn_fail(err, QN_E_NOMEM, "a buffer of %d bytes", BUFFER_BYTES);
    QN_TRY_OUT(qn_hasher_new(&hasher, 0, err));
    w.fd = mkostemp(temp, O_CLOEXEC);
    if (w.fd < 0) {
        rc = qn_fail_sys(err, QN_E_IO, errno, "%s", temp);
        goto out;
    }
    rc = write_all(&w, h, table, weights, hasher, err);
    if (close(w.fd) != 0 && rc == QN_OK) rc = qn_fail_sys(err, QN_E_IO, errno, "closing");
    if (rc == QN_OK && rename(temp, path) != 0)
        rc = qn_fail_sys(err, QN_E_IO, errno, "renaming to %s", path);
    if (rc != QN_OK) {
        unlink(temp);
        rc = qn_wrap(err, rc, "%s", temp);
        goto out;
    }
    QN_TRY_OUT(sync_dir(dir, err));
out:
    qn_hasher_free(hasher);
    qn_free(w.buf);
    return rc;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Does the mapped file hold exactly what `want` (hashes aside) describes, undamaged? Every byte is
 * read once: about 0.1 s a gigabyte from the page cache, and a torn file is never computed with. */
static qn_code check(const qn_mapping *map, const file_header *want, const file_entry *table,
                     qn_err *err)
{
    file_header h;
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
    const uint8_t *entries = map->data + sizeof h;
    if (qn_hash64(entries, h.n_entries * sizeof(file_entry), 0) != h.table_hash)
        return qn_fail(err, QN_E_FORMAT, "table checksum");
    for (uint32_t i = 0; i < h.n_entries; i++) {
        file_entry e, expected = table[i];
        memcpy(&e, entries + i * sizeof e, sizeof e);
        for (size_t p = 0; p < PLANES; p++) expected.plane[p].hash = e.plane[p].hash;
        if (memcmp(&e, &expected, sizeof e) != 0)
            return qn_fail(err, QN_E_FORMAT, "entry %u is laid out otherwise", i);
        for (size_t p = 0; p < PLANES; p++)
            if (e.plane[p].bytes && qn_hash64(map->data + e.plane[p].at, (size_t)e.plane[p].bytes,
                                              0) != e.plane[p].hash)
                return qn_fail(err, QN_E_FORMAT, "checksum of matrix %u", i);
    }
    return QN_OK;
}

/* The pages of the original that nobody will read again. */
static void drop_pages(const void *data, size_t bytes)
{
    const uintptr_t page = DATA_ALIGN, begin = ((uintptr_t)data + page - 1) / page * page;
    const uintptr_t end = (uintptr_t)data + bytes;
    if (begin >= end) return;
    const qn_mapping view = {(const uint8_t *)data + (begin - (uintptr_t)data), end - begin};
    qn_map_advise(&view, 0, view.len, QN_MAP_DONTNEED);
}

static void point_at(qn_weights *w, const qn_mapping *map, const file_entry *table)
{
    size_t i = 0;
    qn_matrix *m = NULL;
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL; i++) {
        const file_plane *p = table[i].plane;
        drop_pages(m->data, m->ld_bytes * m->rows);
        m->data = map->data + p[0].at;
        m->ld_bytes = (size_t)p[0].ld;
        if (!p[1].bytes) continue;
        m->scales = map->data + p[1].at;
        m->biases = map->data + p[2].at;
        m->ld_scale = (size_t)p[1].ld / (m->scale_fmt == QN_FMT_F32 ? 4 : 2);
    }
}

static qn_code map_checked(qn_image *img, const file_header *h, const file_entry *table,
                           qn_err *err)
{
    QN_TRY(qn_map_open(&img->map, img->path, err));
    const qn_code rc = check(&img->map, h, table, err);
    if (rc != QN_OK) qn_map_close(&img->map);
    return rc;
}

/* Found and sound, or built and then found; NOMEM and faults of the disk come back as codes. */
static qn_code find_or_build(qn_image *img, const char *dir, file_header *h, file_entry *table,
                             qn_weights *w, qn_logger *log, qn_err *err)
{
    qn_err why = {0};
    qn_code rc = map_checked(img, h, table, &why);
    if (rc == QN_OK) return QN_OK;
    if (rc == QN_E_NOMEM) return qn_fail(err, rc, "%s", why.msg);
    if (rc == QN_E_NOTFOUND)
        qn_log(log, QN_LOG_INFO, "image", "build=%s bytes=%llu", img->path,
               (unsigned long long)h->file_bytes);
    else
        qn_log(log, QN_LOG_WARN, "image", "rebuild=%s why=\"%s\"", img->path, why.msg);
    QN_TRY(build(img->path, dir, h, table, w, err));
    img->built = true;
    return map_checked(img, h, table, err);
}

qn_code qn_image_open(qn_image **out, qn_weights *w, const char *dir, qn_digest128 source,
                      qn_logger *log, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_err why = {0};
    const size_t n = count(w);
    *out = NULL;
    file_entry *table = qn_calloc(n ? n : 1, sizeof *table);
    qn_image *img = qn_zalloc(sizeof *img);
    if (!table || !img) {
        rc = qn_fail(&why, QN_E_NOMEM, "an image of %zu matrices", n);
        goto out;
    }
    file_header h = {.magic = MAGIC,
                     .version = VERSION,
                     .layout = LAYOUT_ROWS64,
                     .n_entries = (uint32_t)n,
                     .source = {source.lo, source.hi}};
    h.file_bytes = lay_out(table, n, w);
    const int used = snprintf(img->path, sizeof img->path, "%s/%016llx%016llx.rows64", dir,
                              (unsigned long long)source.hi, (unsigned long long)source.lo);
    if (used < 0 || (size_t)used >= sizeof img->path) {
        rc = qn_fail(&why, QN_E_LIMIT, "the directory's name is too long");
        goto out;
    }
    QN_TRY_OUT(find_or_build(img, dir, &h, table, w, log, &why));
    point_at(w, &img->map, table);
    *out = img;
    img = NULL;
out:
    qn_free(table);
    qn_image_close(img);
    if (rc == QN_E_NOMEM) return qn_fail(err, rc, "%s", why.msg);
    if (rc != QN_OK) qn_log(log, QN_LOG_WARN, "image", "unused=%s why=\"%s\"", dir, why.msg);
    return QN_OK;
}

void qn_image_close(qn_image *img)
{
    if (!img) return;
    qn_map_close(&img->map);
    qn_free(img);
}

const char *qn_image_path(const qn_image *i) { return i->path; }
bool qn_image_was_built(const qn_image *i) { return i->built; }
