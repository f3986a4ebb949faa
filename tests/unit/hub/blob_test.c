/* SPDX-License-Identifier: Apache-2.0 */
/* blob_test.c - one file of a hub: whatever happens on the way, in the end its bytes are right or it is not
 * there. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hub/pull_int.h"
#include "kit_hub.h"
#include "qt.h"

#define REPO "org/blob"

enum { BYTES = 1000000 };
#define ANY (UINT64_MAX - 1) /* as much as had come when time was up */

typedef struct world {
    kit_hub *kit;
    qn_hub hub;
    char url[256], path[512], part[544], lock[544];
    qn_hub_blob blob;
    qn_err err;
    uint64_t stop_at;           /* done bytes at which the callback says no; 0: never */
    atomic_uint told, verified; /* several threads may fetch into one world */
} world;

static int tell(void *ctx, const quern_get_progress *p)
{
    world *w = ctx;
    w->told++;
    w->verified += strcmp(p->step, "verifying") == 0;
    return w->stop_at && p->done >= w->stop_at;
}

static bool open_world(qt *t, world *w, bool lfs)
{
    size_t n = 0;
    *w = (world){.kit = kit_hub_start(REPO, 0)};
    if (!QT_OK(t, w->kit != NULL)) return false;
    kit_hub_noise(w->kit, "a.bin", BYTES, 5);
    if (!lfs) {
        const void *bytes = kit_hub_bytes(w->kit, "a.bin", &n);
        void *copy = malloc(n);
        memcpy(copy, bytes, n);
        kit_hub_file(w->kit, "a.bin", copy, n, false);
        free(copy);
    }
    snprintf(w->url, sizeof w->url, "%s/" REPO "/resolve/x/a.bin", kit_hub_endpoint(w->kit));
    snprintf(w->path, sizeof w->path, "%s/%s.blob", qt_tmp(), t->name);
    snprintf(w->part, sizeof w->part, "%s.incomplete", w->path);
    snprintf(w->lock, sizeof w->lock, "%s.lock", w->path);
    (void)unlink(w->path);
    w->hub = (qn_hub){.endpoint = (char *)(uintptr_t)kit_hub_endpoint(w->kit), .retry_ms = 1};
    w->blob = (qn_hub_blob){.path = w->path,
                            .name = "a.bin",
                            .url = w->url,
                            .digest = kit_hub_digest(w->kit, "a.bin"),
                            .sha256 = lfs,
                            .bytes = BYTES};
    return true;
}

static qn_code fetch_as(world *w, qn_err *err)
{
    const qn_hub_report report = {.tell = tell, .ctx = w};
    qn_hub_talk k;
    QN_TRY(qn_hub_talk_open(&k, &w->hub, REPO, &report, err));
    const qn_code rc = qn_hub_blob_fetch(&k, &w->blob, err);
    qn_hub_talk_close(&k);
    return rc;
}

static qn_code fetch(world *w)
{
    w->err = (qn_err){.code = QN_OK};
    w->told = w->verified = 0;
    return fetch_as(w, &w->err);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

static bool is_right(const char *path, kit_hub *kit)
{
    uint8_t *bytes = NULL;
    size_t n = 0, want = 0;
    const void *right = kit_hub_bytes(kit, "a.bin", &want);
    const bool ok = qn_file_read(&bytes, &n, path, 1 << 24, NULL) == QN_OK && n == want &&
                    memcmp(bytes, right, n) == 0;
    qn_free(bytes);
    return ok;
}

static void write_part(world *w, size_t n, bool right)
{
    size_t all = 0;
    const uint8_t *bytes = kit_hub_bytes(w->kit, "a.bin", &all);
    uint8_t *more = malloc(n);
    for (size_t i = 0; i < n; i++) more[i] = (uint8_t)(i < all ? bytes[i] ^ (right ? 0 : 1) : 0);
    (void)qn_file_write(w->part, more, n, NULL);
    free(more);
}

static bool is_clean(const world *w)
{
    return size_of(w->part) == UINT64_MAX && size_of(w->lock) == UINT64_MAX;
}

static void end_world(world *w)
{
    (void)unlink(w->part);
    (void)unlink(w->path);
    kit_hub_stop(w->kit);
}

static void a_file_comes_with_either_digest(qt *t)
{
    for (int lfs = 0; lfs < 2; lfs++) {
        world w;
        if (!open_world(t, &w, lfs)) return;
        QT_EQ(t, qn_hub_blob_missing(&w.blob), BYTES);
        QT_OKF(t, fetch(&w) == QN_OK, "%s", w.err.msg);
        QT_OK(t, is_right(w.path, w.kit) && is_clean(&w) && w.told > 0);
        QT_EQ(t, qn_hub_blob_missing(&w.blob), 0);
        QT_EQ(t, fetch(&w), QN_OK); /* there already: read, not fetched */
        QT_OK(t, kit_hub_asked(w.kit, "a.bin") == 1 && w.verified > 0);
        end_world(&w);
    }
}

static void wrong_bytes_under_the_right_name_are_replaced(qt *t)
{
    world w;
    uint8_t *zeros = calloc(1, BYTES);
    if (!open_world(t, &w, true)) return;
    QT_EQ(t, qn_file_write(w.path, zeros, BYTES, NULL), QN_OK);
    QT_EQ(t, fetch(&w), QN_OK);
    QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
    QT_EQ(t, qn_file_write(w.path, zeros, 7, NULL), QN_OK);
    QT_EQ(t, fetch(&w), QN_OK);
    QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
    free(zeros);
    end_world(&w);
}

static void what_is_there_is_not_asked_for_again(qt *t)
{
    static const size_t sizes[] = {1, 65536, 999999, BYTES};
    for (size_t i = 0; i < QT_LEN(sizes); i++) {
        world w;
        if (!open_world(t, &w, i % 2)) return;
        write_part(&w, sizes[i], true);
        QT_EQ(t, qn_hub_blob_missing(&w.blob), BYTES - sizes[i]);
        kit_hub_fault(w.kit, (kit_hub_faults){.where = ""});
        QT_OKF(t, fetch(&w) == QN_OK, "%s", w.err.msg);
        QT_OK(t, is_right(w.path, w.kit) && is_clean(&w) && w.verified > 0);
        QT_EQ(t, kit_hub_sent(w.kit), BYTES - sizes[i]);
        end_world(&w);
    }
}

static void a_part_with_wrong_bytes_is_removed_at_the_end(qt *t)
{
    world w;
    if (!open_world(t, &w, true)) return;
    write_part(&w, 5000, false);
    QT_EQ(t, fetch(&w), QN_E_FORMAT);
    QT_OKF(t, strstr(w.err.msg, "a.bin has sha-256 ") && strstr(w.err.msg, w.blob.digest), "%s",
           w.err.msg);
    QT_OK(t, is_clean(&w) && size_of(w.path) == UINT64_MAX);
    QT_EQ(t, fetch(&w), QN_OK);
    QT_OK(t, is_right(w.path, w.kit));
    end_world(&w);
}

static void a_part_that_is_too_long_starts_anew(qt *t)
{
    world w;
    if (!open_world(t, &w, true)) return;
    write_part(&w, BYTES + 1, true);
    QT_EQ(t, qn_hub_blob_missing(&w.blob), BYTES);
    QT_EQ(t, fetch(&w), QN_OK);
    QT_OK(t, is_right(w.path, w.kit) && kit_hub_sent(w.kit) == BYTES);
    end_world(&w);
}

static void a_hub_that_knows_no_ranges_sends_all_again(qt *t)
{
    static const kit_hub_faults faults[] = {{.no_range = true},
                                            {.no_range = true, .chunked = true},
                                            {.wrong_range = true, .times = 1},
                                            {.wrong_total = true, .times = 1},
                                            {.status = 416, .times = 1}};
    for (size_t i = 0; i < QT_LEN(faults); i++) {
        world w;
        if (!open_world(t, &w, true)) return;
        write_part(&w, 400000, true);
        kit_hub_fault(w.kit, faults[i]);
        QT_OKF(t, fetch(&w) == QN_OK, "%zu: %s", i, w.err.msg);
        QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
        QT_EQ(t, kit_hub_asked(w.kit, "a.bin"), faults[i].no_range ? 1 : 2);
        end_world(&w);
    }
}

static void faults_end_in_their_code_and_keep_or_drop_the_part(qt *t)
{
    static const struct {
        kit_hub_faults fault;
        qn_code code;
        const char *word;
        uint64_t part; /* bytes of it after; UINT64_MAX: none */
        uint32_t asked;
    } cases[] = {
        {{.wrong_byte = true}, QN_E_FORMAT, "expected", UINT64_MAX, 1},
        {{.cut_after = 100000}, QN_E_IO, "goes on where it ended", 400000, 4},
        {{.status = 401}, QN_E_DENIED, "HF_TOKEN", 0, 1},
        {{.status = 403}, QN_E_DENIED, "/org/blob", 0, 1},
        {{.status = 404}, QN_E_NOTFOUND, "private", 0, 1},
        {{.status = 418}, QN_E_IO, "418", 0, 1},
        {{.status = 503}, QN_E_IO, "503", 0, 4},
        {{.status = 429, .retry_after_s = 2}, QN_E_AGAIN, "429", 0, 4},
        {{.status = 429, .retry_after_s = 31}, QN_E_AGAIN, "try again", 0, 1},
        {{.stall = true}, QN_E_IO, "sent no byte for 1 s", ANY, 1},
        {{.endless = true}, QN_E_FORMAT, "more than the 1000000 bytes", UINT64_MAX, 1},
        {{.length_off = 5}, QN_E_FORMAT, "sends 1000005 bytes, expected 1000000", 0, 1},
        {{.length_off = -5}, QN_E_FORMAT, "sends 999995 bytes, expected 1000000", 0, 1},
        {{.unasked_range = true}, QN_E_FORMAT, "206", 0, 1},
        {{.redirects = 99}, QN_E_FORMAT, "more than 5", 0, 6},
        {{.plain_words = true}, QN_E_FORMAT, "http", 0, 1},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        world w;
        if (!open_world(t, &w, i % 2)) return;
        kit_hub_fault(w.kit, cases[i].fault);
        w.hub.stall_ms = cases[i].fault.stall ? 1000 : 0;
        const qn_code rc = fetch(&w);
        QT_OKF(t, rc == cases[i].code, "%zu: %d, expected %d: %s", i, rc, cases[i].code, w.err.msg);
        QT_OKF(t, strstr(w.err.msg, cases[i].word) != NULL, "%zu: %s", i, w.err.msg);
        const uint64_t left = size_of(w.part);
        QT_OKF(t, left == cases[i].part || cases[i].part == ANY, "%zu: part of %lld", i,
               (long long)left);
        QT_OKF(t, kit_hub_asked(w.kit, "a.bin") == cases[i].asked, "%zu: asked %u times", i,
               kit_hub_asked(w.kit, "a.bin"));
        QT_OK(t, size_of(w.path) == UINT64_MAX && size_of(w.lock) == UINT64_MAX);
        w.hub.stall_ms = 0;
        kit_hub_fault(w.kit, (kit_hub_faults){.where = ""}); /* the same command again */
        QT_OKF(t, fetch(&w) == QN_OK, "%zu: %s", i, w.err.msg);
        QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
        end_world(&w);
    }
}

static void what_passes_is_asked_again(qt *t)
{
    static const kit_hub_faults faults[] = {{.status = 500, .times = 3},
                                            {.status = 502, .times = 1},
                                            {.status = 429, .retry_after_s = 1, .times = 3},
                                            {.cut_after = 7777, .times = 3},
                                            {.cut_after = 7777, .chunked = true, .times = 2}};
    for (size_t i = 0; i < QT_LEN(faults); i++) {
        world w;
        if (!open_world(t, &w, true)) return;
        kit_hub_fault(w.kit, faults[i]);
        QT_OKF(t, fetch(&w) == QN_OK, "%zu: %s", i, w.err.msg);
        QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
        QT_EQ(t, kit_hub_asked(w.kit, "a.bin"), faults[i].times + 1);
        end_world(&w);
    }
}

static void the_token_is_not_in_any_message(qt *t)
{
    static const int statuses[] = {401, 403, 404, 500};
    for (size_t i = 0; i < QT_LEN(statuses); i++) {
        world w;
        if (!open_world(t, &w, true)) return;
        w.hub.token = (char *)(uintptr_t) "hf_secret";
        kit_hub_fault(w.kit, (kit_hub_faults){.status = statuses[i]});
        QT_OK(t, fetch(&w) != QN_OK && !strstr(w.err.msg, "hf_secret"));
        QT_OK(t, kit_hub_tokens_seen(w.kit) > 0);
        end_world(&w);
    }
}

static void a_stop_keeps_the_part(qt *t)
{
    world w;
    if (!open_world(t, &w, true)) return;
    w.stop_at = 300000;
    QT_EQ(t, fetch(&w), QN_E_CANCELLED);
    const uint64_t left = size_of(w.part);
    QT_OKF(t, left >= 300000 && left < BYTES, "%llu", (unsigned long long)left);
    QT_EQ(t, size_of(w.lock), UINT64_MAX);
    w.stop_at = 100000; /* while the part is read again */
    QT_EQ(t, fetch(&w), QN_E_CANCELLED);
    QT_EQ(t, size_of(w.part), left);
    w.stop_at = 0;
    kit_hub_fault(w.kit, (kit_hub_faults){.where = ""});
    QT_EQ(t, fetch(&w), QN_OK);
    QT_OK(t, is_right(w.path, w.kit) && kit_hub_sent(w.kit) == BYTES - left);
    end_world(&w);
}

static void locks_of_the_living_hold_and_others_do_not(qt *t)
{
    const char *const dead[] = {"999999999 1 2020-01-01T00:00:00Z\n", "1 1 2020-01-01T00:00:00Z\n"};
    char mine[64];
    world w;
    if (!open_world(t, &w, true)) return;
    snprintf(mine, sizeof mine, "%lld 0 2020-01-01T00:00:00Z\n", (long long)getpid());
    QT_EQ(t, qn_file_write(w.lock, mine, strlen(mine), NULL), QN_OK);
    QT_EQ(t, fetch(&w), QN_E_AGAIN);
    snprintf(mine, sizeof mine, "process %lld fetches it", (long long)getpid());
    QT_OKF(t, strstr(w.err.msg, mine) != NULL, "%s", w.err.msg);
    QT_OK(t, size_of(w.lock) != UINT64_MAX);
    QT_EQ(t, qn_file_write(w.lock, "?", 1, NULL), QN_OK); /* nobody knows */
    QT_EQ(t, fetch(&w), QN_E_AGAIN);
    QT_OKF(t, strstr(w.err.msg, "remove ") != NULL, "%s", w.err.msg);
    for (size_t i = 0; i < QT_LEN(dead); i++) { /* gone; another process with its number */
        QT_EQ(t, qn_file_write(w.lock, dead[i], strlen(dead[i]), NULL), QN_OK);
        QT_OKF(t, fetch(&w) == QN_OK, "%s", w.err.msg);
        QT_OK(t, is_clean(&w));
        (void)unlink(w.path);
    }
    snprintf(mine, sizeof mine, "%lld 0 x\n", (long long)getpid());
    QT_EQ(t, qn_file_write(w.lock, mine, strlen(mine), NULL), QN_OK);
    const struct timespec old[2] = {{.tv_sec = time(NULL) - QN_HUB_LOCK_AGE_S - 60},
                                    {.tv_sec = time(NULL) - QN_HUB_LOCK_AGE_S - 60}};
    QT_EQ(t, utimensat(AT_FDCWD, w.lock, old, 0), 0);
    QT_EQ(t, fetch(&w), QN_OK);
    QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
    end_world(&w);
}

typedef struct racer {
    world *w;
    qn_code rc;
    qn_err err;
    pthread_t thread;
} racer;

static void *race(void *ctx)
{
    racer *r = ctx;
    r->rc = fetch_as(r->w, &r->err);
    return NULL;
}

static void of_many_at_once_one_fetches(qt *t)
{
    racer r[6] = {{.rc = QN_OK}};
    uint32_t done = 0;
    world w;
    if (!open_world(t, &w, true)) return;
    w.hub.retry_ms = 1;
    kit_hub_fault(w.kit, (kit_hub_faults){.slow_ms = 5});
    for (size_t i = 0; i < QT_LEN(r); i++) {
        r[i].w = &w;
        QT_EQ(t, pthread_create(&r[i].thread, NULL, race, &r[i]), 0);
    }
    for (size_t i = 0; i < QT_LEN(r); i++) {
        QT_EQ(t, pthread_join(r[i].thread, NULL), 0);
        QT_OKF(t, r[i].rc == QN_OK || r[i].rc == QN_E_AGAIN, "%d %s", r[i].rc, r[i].err.msg);
        done += r[i].rc == QN_OK;
    }
    QT_OK(t, done >= 1 && is_right(w.path, w.kit) && is_clean(&w));
    end_world(&w);
}

/* Killed at points that depend on the draw, again and again: what is left always becomes the file. */
static void a_killed_process_goes_on_where_it_ended(qt *t)
{
    world w;
    uint32_t killed = 0;
    if (!open_world(t, &w, true)) return;
    for (int round = 0; round < 12; round++) {
        w.stop_at = 1 + qt_rand() % BYTES;
        const pid_t pid = fork();
        if (pid == 0) {
            const qn_hub_report report = {.tell = tell, .ctx = &w};
            qn_hub_talk k;
            if (qn_hub_talk_open(&k, &w.hub, REPO, &report, NULL) != QN_OK) _exit(1);
            _exit(qn_hub_blob_fetch(&k, &w.blob, NULL) == QN_E_CANCELLED ? (raise(SIGKILL), 2) : 3);
        }
        int status = 0;
        QT_EQ(t, waitpid(pid, &status, 0), pid);
        killed += WIFSIGNALED(status);
    }
    QT_OK(t, killed > 0);
    w.stop_at = 0;
    QT_OKF(t, fetch(&w) == QN_OK, "%s", w.err.msg);
    QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
    end_world(&w);
}

/* Cut off by the hub at random points, every time, with and without a range that is honoured. */
static void any_cuts_end_in_the_same_bytes(qt *t)
{
    for (int round = 0; round < 8; round++) {
        world w;
        qn_code rc = QN_E_IO;
        if (!open_world(t, &w, round % 2)) return;
        for (int n = 0; rc != QN_OK && n < 60; n++) {
            kit_hub_fault(w.kit, (kit_hub_faults){.cut_after = 1 + qt_rand() % 300000,
                                                  .times = 1 + (uint32_t)(qt_rand() % 6),
                                                  .chunked = qt_rand() % 2});
            rc = fetch(&w);
            QT_OKF(t, rc == QN_OK || rc == QN_E_IO, "%d %s", rc, w.err.msg);
        }
        QT_EQ(t, rc, QN_OK);
        QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
        end_world(&w);
    }
}

static void places_that_cannot_be_written_are_named(qt *t)
{
    world w;
    if (!open_world(t, &w, true)) return;
    w.blob.path = "/dev/null/blob";
    QT_EQ(t, fetch(&w), QN_E_IO);
    QT_OKF(t, strstr(w.err.msg, "/dev/null/blob.lock"), "%s", w.err.msg);
    w.blob.path = w.path;
    QT_EQ(t, symlink("/dev/full", w.part), 0); /* nobody's link is followed */
    QT_EQ(t, fetch(&w), QN_E_IO);
    QT_OK(t, size_of(w.lock) == UINT64_MAX);
    end_world(&w);
}

static void fetch_survives_every_failed_allocation(qt *t)
{
    qn_code rc = QN_E_NOMEM;
    world w;
    if (!open_world(t, &w, true)) return;
    const size_t live = qn_alloc_live();
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        if (n % 2) write_part(&w, 1000, true);
        qn_alloc_fail_after(n);
        rc = fetch(&w);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QN_OK || rc == QN_E_NOMEM, "%zu: %d %s", n, rc, w.err.msg);
        QT_OK(t, size_of(w.lock) == UINT64_MAX);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
    QT_OK(t, is_right(w.path, w.kit) && is_clean(&w));
    end_world(&w);
}

QT_MAIN(QT(a_file_comes_with_either_digest), QT(wrong_bytes_under_the_right_name_are_replaced),
        QT(what_is_there_is_not_asked_for_again), QT(a_part_with_wrong_bytes_is_removed_at_the_end),
        QT(a_part_that_is_too_long_starts_anew), QT(a_hub_that_knows_no_ranges_sends_all_again),
        QT(faults_end_in_their_code_and_keep_or_drop_the_part), QT(what_passes_is_asked_again),
        QT(the_token_is_not_in_any_message), QT(a_stop_keeps_the_part),
        QT(locks_of_the_living_hold_and_others_do_not), QT(of_many_at_once_one_fetches),
        QT(a_killed_process_goes_on_where_it_ended), QT(any_cuts_end_in_the_same_bytes),
        QT(places_that_cannot_be_written_are_named), QT(fetch_survives_every_failed_allocation))
