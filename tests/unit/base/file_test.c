/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map_file.h"
#include "qt.h"

static const char *in_tmp(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", qt_tmp(), name);
    return path;
}

/* How many entries a fresh directory of the test has. */
static int entries_of(const char *dir)
{
    char cmd[600];
    int n = -1;
    snprintf(cmd, sizeof cmd, "ls -A '%s' | wc -l", dir);
    FILE *f = popen(cmd, "r");
    if (f) {
        if (fscanf(f, "%d", &n) != 1) n = -1;
        pclose(f);
    }
    return n;
}

static void written_bytes_come_back(qt *t)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    static uint8_t data[100000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)qt_rand();
    for (size_t i = 0; i < QT_LEN(sizes); i++) {
        uint8_t *back = NULL;
        size_t n = 99;
        const char *path = in_tmp("round");
        QT_EQ(t, qn_file_write(path, data, sizes[i], NULL), QN_OK);
        QT_EQ(t, qn_file_read(&back, &n, path, sizes[i], NULL), QN_OK);
        QT_OK(t, back && n == sizes[i] && memcmp(back, data, n) == 0 && back[n] == 0);
        qn_free(back);
    }
}

static void read_refuses_past_the_ceiling(qt *t)
{
    uint8_t *back = NULL;
    size_t n = 0;
    qn_err err = {0};
    const char *path = qt_file("big", "123456", 6);
    QT_EQ(t, qn_file_read(&back, &n, path, 5, &err), QN_E_LIMIT);
    QT_OK(t, !back && strstr(err.msg, path) && strstr(err.msg, "6 bytes, limit 5"));
}

/* Files of /proc say that they are empty; the ceiling holds for them as well. */
static void reads_files_that_lie_about_their_size(qt *t)
{
    uint8_t *back = NULL;
    size_t n = 0;
    QT_EQ(t, qn_file_read(&back, &n, "/proc/self/status", 1 << 20, NULL), QN_OK);
    QT_OK(t, back && n > 100 && strncmp((const char *)back, "Name:", 5) == 0);
    qn_free(back);
    QT_EQ(t, qn_file_read(&back, &n, "/proc/self/status", 100, NULL), QN_E_LIMIT);
    QT_OK(t, !back);
}

static void read_and_map_name_what_they_cannot_open(qt *t)
{
    static const struct {
        const char *name;
        qn_code code;
    } cases[] = {{"absent", QN_E_NOTFOUND}, {"dir", QN_E_INVAL}, {"fifo", QN_E_INVAL}};
    QT_EQ(t, mkdir(in_tmp("dir"), 0777), 0);
    QT_EQ(t, mkfifo(in_tmp("fifo"), 0666), 0);
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        uint8_t *back = NULL;
        size_t n = 0;
        qn_mapping m = {NULL, 7};
        qn_err err = {0};
        const char *path = in_tmp(cases[i].name);
        QT_EQ(t, qn_file_read(&back, &n, path, 100, &err), cases[i].code);
        QT_OK(t, !back && strstr(err.msg, path));
        err.msg[0] = '\0';
        QT_EQ(t, qn_map_open(&m, path, &err), cases[i].code);
        QT_OK(t, !m.data && m.len == 0 && strstr(err.msg, path));
        qn_map_close(&m);
    }
}

static void write_replaces_whole_files_and_leaves_no_temporary(qt *t)
{
    char path[600];
    const char *dir = in_tmp("w");
    QT_EQ(t, mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/f", dir);
    QT_EQ(t, qn_file_write(path, "old text", 8, NULL), QN_OK);
    qn_mapping before = {NULL, 0};
    QT_EQ(t, qn_map_open(&before, path, NULL), QN_OK);
    QT_EQ(t, qn_file_write(path, "new", 3, NULL), QN_OK);
    QT_OK(t, before.len == 8 && memcmp(before.data, "old text", 8) == 0); /* still the old file */
    qn_map_close(&before);
    QT_EQ(t, qn_map_open(&before, path, NULL), QN_OK);
    QT_OK(t, before.len == 3 && memcmp(before.data, "new", 3) == 0);
    qn_map_close(&before);
    QT_EQ(t, entries_of(dir), 1);
}

static void a_failed_write_leaves_nothing(qt *t)
{
    char path[600];
    qn_err err = {0};
    const char *dir = in_tmp("f");
    QT_EQ(t, qn_file_write("/nowhere/at/all", "x", 1, &err), QN_E_NOTFOUND);
    QT_OKF(t, strstr(err.msg, "/nowhere/at/all") && !strstr(err.msg, ".tmp"), "%s", err.msg);
    QT_EQ(t, mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/sub", dir);
    QT_EQ(t, mkdir(path, 0777), 0);
    QT_EQ(t, qn_file_write(path, "x", 1, &err), QN_E_IO); /* a directory cannot be replaced */
    QT_EQ(t, entries_of(dir), 1);
    const size_t live = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    snprintf(path, sizeof path, "%s/file", dir);
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_alloc_fail_after(n);
        rc = qn_file_write(path, "x", 1, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || rc == QN_E_NOMEM);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
    QT_EQ(t, entries_of(dir), 2);
}

static void read_survives_every_failed_allocation(qt *t)
{
    static const char text[10000] = "x";
    const char *path = qt_file("alloc", text, sizeof text);
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        uint8_t *back = NULL;
        size_t len = 0;
        qn_alloc_fail_after(n);
        rc = qn_file_read(&back, &len, path, 1 << 20, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && back == NULL));
        qn_free(back);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
}

static void maps_files_of_every_size(qt *t)
{
    qn_mapping m = {NULL, 0};
    QT_EQ(t, qn_map_open(&m, qt_file("empty", "", 0), NULL), QN_OK);
    QT_OK(t, m.data && m.len == 0);
    qn_map_advise(&m, 0, 10, QN_MAP_WILLNEED);
    qn_map_close(&m);
    qn_map_close(&m);
    static uint8_t data[20000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
    QT_EQ(t, qn_map_open(&m, qt_file("pages", data, sizeof data), NULL), QN_OK);
    QT_OK(t, m.len == sizeof data && (uintptr_t)m.data % 4096 == 0);
    static const size_t at[] = {0, 1, 4095, 4096, 8191, 19999, 20000, 30000};
    for (size_t i = 0; i < QT_LEN(at); i++) /* whatever was dropped reads the same again */
        for (size_t k = 0; k < QT_LEN(at); k++) {
            qn_map_advise(&m, at[i], at[k], QN_MAP_DONTNEED);
            qn_map_advise(&m, at[i], SIZE_MAX, QN_MAP_WILLNEED);
            QT_OK(t, memcmp(m.data, data, sizeof data) == 0);
        }
    qn_map_close(&m);
}

/* What a process may not map for want of addresses is a lack of memory, no fault of the disk. */
static void a_map_without_place_is_a_lack_of_memory(qt *t)
{
    static const uint8_t data[5000];
    struct rlimit was;
    qn_err err = {0};
    qn_mapping m = {NULL, 0};
    const char *path = qt_file("placeless", data, sizeof data);
    if (!QT_EQ(t, getrlimit(RLIMIT_AS, &was), 0)) return;
    const struct rlimit none = {4096, was.rlim_max};
    if (!QT_EQ(t, setrlimit(RLIMIT_AS, &none), 0)) return;
    const qn_code rc = qn_map_open(&m, path, &err);
    QT_EQ(t, setrlimit(RLIMIT_AS, &was), 0);
    QT_EQ(t, rc, QN_E_NOMEM);
    QT_OKF(t, !m.data && strstr(err.msg, path) && strstr(err.msg, "0.0 MiB"), "%s", err.msg);
}

QT_MAIN(QT(a_map_without_place_is_a_lack_of_memory), QT(written_bytes_come_back),
        QT(read_refuses_past_the_ceiling), QT(reads_files_that_lie_about_their_size),
        QT(read_and_map_name_what_they_cannot_open),
        QT(write_replaces_whole_files_and_leaves_no_temporary), QT(a_failed_write_leaves_nothing),
        QT(read_survives_every_failed_allocation), QT(maps_files_of_every_size))
