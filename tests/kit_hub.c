/* SPDX-License-Identifier: Apache-2.0 */
/* kit_hub.c - the stand-in hub: one thread accepts, one thread a connection answers. */
#include "kit_hub.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dep/hash.h"

enum { MAX_REQUEST = 16 << 10, PIECE = 64 << 10, TALKS = 64 };

typedef struct file {
    char *path;
    uint8_t *bytes;
    size_t n;
    bool lfs;
    char digest[65], git[41];
} file;

typedef struct entry { /* what was asked */
    char path[512];
    char *text;
    bool token;
} entry;

struct kit_hub {
    char repo[256], endpoint[64], token[256], *list;
    file files[KIT_HUB_FILES];
    size_t n_files;
    kit_hub_faults faults;
    uint32_t met; /* faults so far */
    entry log[KIT_HUB_LOG];
    size_t n_log;
    atomic_uint_least64_t sent;
    pthread_mutex_t lock;
    pthread_t acceptor, talker[TALKS];
    int talk[TALKS]; /* sockets; -1: free */
    bool used[TALKS];
    int listener;
    atomic_bool ends;
};

typedef struct talk {
    kit_hub *h;
    size_t slot;
    int fd;
} talk;

/* -- sending ----------------------------------------------------------------------------------- */

static bool put(talk *k, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        const ssize_t w = send(k->fd, p, n, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return false;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

static void nap(kit_hub *h, uint32_t ms)
{
    for (uint32_t i = 0; i < ms && !atomic_load(&h->ends); i += 5)
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static bool put_text(talk *k, int status, const char *type, const char *more, const char *text)
{
    char head[1024];
    snprintf(head, sizeof head,
             "HTTP/1.1 %d Thus\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", status, type,
             strlen(text), more);
    return put(k, head, strlen(head)) && put(k, text, strlen(text));
}

typedef struct body {
    const uint8_t *bytes;
    size_t n, from;
    int status;
} body;

static bool put_head(talk *k, const kit_hub_faults *f, const body *b)
{
    char head[2048], length[64] = "", range[128] = "";
    const long long last = (long long)b->n - 1;
    if (f->endless || f->chunked)
        snprintf(length, sizeof length, "%s", f->endless ? "" : "Transfer-Encoding: chunked\r\n");
    else
        snprintf(length, sizeof length, "Content-Length: %lld\r\n",
                 (long long)(b->n - b->from) + (long long)f->length_off);
    if (b->status == 206)
        snprintf(range, sizeof range, "Content-Range: bytes %lld-%lld/%lld\r\n",
                 (long long)b->from + (f->wrong_range ? 1 : 0), last,
                 (long long)b->n + (f->wrong_total ? 7 : 0));
    snprintf(head, sizeof head,
             "HTTP/1.1 %d Thus\r\nContent-Type: application/octet-stream\r\n%s%s%s", b->status,
             length, range, f->endless ? "Connection: close\r\n" : "");
    if (!put(k, head, strlen(head))) return false;
    for (size_t i = 0; i < f->head_bytes; i += 64)
        if (!put(k, "X-More: 1234567890123456789012345678901234567890123456789012345\r\n", 65))
            return false;
    return put(k, "\r\n", 2);
}

static bool put_piece(talk *k, const kit_hub_faults *f, const void *bytes, size_t n)
{
    char size[32];
    if (!f->chunked) return put(k, bytes, n);
    snprintf(size, sizeof size, "%zx\r\n", n);
    return put(k, size, strlen(size)) && put(k, bytes, n) && put(k, "\r\n", 2);
}

/* False ends the connection. */
static bool put_body(talk *k, const kit_hub_faults *f, const body *b)
{
    kit_hub *h = k->h;
    uint8_t piece[PIECE];
    size_t all = b->n - b->from, done = 0;
    if (!put_head(k, f, b)) return false;
    while (done < all || f->endless) {
        size_t n = done < all ? all - done : PIECE;
        if (n > PIECE) n = PIECE;
        if (f->cut_after && n > f->cut_after - done) n = f->cut_after - done;
        if (f->stall && done >= all / 2) {
            while (!atomic_load(&h->ends)) nap(h, 1000);
            return false;
        }
        if (done < all)
            memcpy(piece, b->bytes + b->from + done, n);
        else
            memset(piece, 'x', n);
        if (f->wrong_byte && done == 0) piece[0] ^= 1;
        if (!put_piece(k, f, piece, n)) return false;
        done += n;
        atomic_fetch_add(&h->sent, n);
        if (f->slow_ms) nap(h, f->slow_ms);
        if (f->cut_after && done >= f->cut_after) return false;
        if (atomic_load(&h->ends)) return false;
    }
    if (f->chunked && !put(k, "0\r\n\r\n", 5)) return false;
    return f->length_off == 0;
}

/* -- answering --------------------------------------------------------------------------------- */

static const file *find(const kit_hub *h, const char *path)
{
    for (size_t i = 0; i < h->n_files; i++)
        if (strcmp(h->files[i].path, path) == 0) return &h->files[i];
    return NULL;
}

static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (*text == '%' && text[1] && text[2]) {
            const char hex[3] = {text[1], text[2], 0};
            *to++ = (char)strtol(hex, NULL, 16);
            text += 2;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

static bool answer_list(talk *k)
{
    kit_hub *h = k->h;
    size_t room = 4096 + (h->list ? strlen(h->list) : 0);
    for (size_t i = 0; i < h->n_files; i++) room += strlen(h->files[i].path) + 512;
    char *text = malloc(room);
    size_t n = 0;
    if (h->list) {
        snprintf(text, room, "%s", h->list);
    } else {
        n += (size_t)snprintf(text + n, room - n,
                              "{\"id\": \"%s\", \"sha\": \"%s\", \"siblings\": [", h->repo,
                              KIT_HUB_COMMIT);
        for (size_t i = 0; i < h->n_files; i++) {
            const file *f = &h->files[i];
            n += (size_t)snprintf(text + n, room - n,
                                  "%s{\"rfilename\": \"%s\", \"size\": %zu, \"blobId\": \"%s\"",
                                  i ? ", " : "", f->path, f->n, f->git);
            if (f->lfs)
                n += (size_t)snprintf(text + n, room - n,
                                      ", \"lfs\": {\"sha256\": \"%s\", \"size\": %zu, "
                                      "\"pointerSize\": 130}",
                                      f->digest, f->n);
            n += (size_t)snprintf(text + n, room - n, "}");
        }
        snprintf(text + n, room - n, "]}");
    }
    const bool on = put_text(k, 200, "application/json", "", text);
    free(text);
    return on;
}

static bool answer_file(talk *k, const kit_hub_faults *f, const char *path, const char *request)
{
    const file *found = find(k->h, path);
    const char *range = strcasestr(request, "\r\nrange: bytes=");
    if (!found) return put_text(k, 404, "text/plain", "", "Entry not found");
    body b = {.bytes = found->bytes, .n = found->n, .status = 200};
    if (range && !f->no_range) {
        b.from = (size_t)strtoull(range + 15, NULL, 10);
        b.status = 206;
        if (b.from >= b.n) return put_text(k, 416, "text/plain", "", "no such range");
    }
    if (f->unasked_range) b.status = 206;
    return put_body(k, f, &b);
}

/* The faults that this request meets. */
static kit_hub_faults faults_of(kit_hub *h, const char *path)
{
    kit_hub_faults f = {.where = ""};
    pthread_mutex_lock(&h->lock);
    if (strstr(path, h->faults.where ? h->faults.where : "") &&
        (!h->faults.times || h->met < h->faults.times)) {
        f = h->faults;
        h->met++;
    }
    pthread_mutex_unlock(&h->lock);
    return f;
}

static bool redirect(talk *k, const char *to)
{
    char more[1024];
    snprintf(more, sizeof more, "Location: %.900s\r\n", to);
    return put_text(k, 302, "text/plain", more, "see there");
}

static bool has_token(const kit_hub *h, const char *request)
{
    char want[300];
    snprintf(want, sizeof want, "\r\nauthorization: bearer %s\r\n", h->token);
    return !h->token[0] || strcasestr(request, want) != NULL;
}

static bool answer(talk *k, const char *path, const char *request)
{
    kit_hub *h = k->h;
    char to[1024], list[600], file_path[512];
    const char *hop = strstr(path, "?hop=");
    const uint32_t hops = hop ? (uint32_t)strtoul(hop + 5, NULL, 10) : 0;
    const kit_hub_faults f = faults_of(h, path);
    const size_t n_repo = strlen(h->repo);
    snprintf(to, sizeof to, "%.*s?hop=%u", hop ? (int)(hop - path) : 500, path, hops + 1);
    if (hops < f.redirects || f.redirects == 99) return redirect(k, to);
    if (f.away && !strstr(path, "away")) {
        snprintf(to, sizeof to, "%s%.*s?away", f.away, hop ? (int)(hop - path) : 500, path);
        return redirect(k, to);
    }
    if (f.plain_words) return put(k, "220 mail.example ESMTP\r\n", 24) && false;
    if (f.status) {
        char more[64] = "";
        if (f.retry_after_s) snprintf(more, sizeof more, "Retry-After: %u\r\n", f.retry_after_s);
        return put_text(k, f.status, "text/plain", more, "so it is");
    }
    if (!strstr(path, "away") && !has_token(h, request))
        return put_text(k, 401, "text/plain", "", "who are you?");
    snprintf(list, sizeof list, "/api/models/%s/revision/", h->repo);
    if (strncmp(path, list, strlen(list)) == 0) return answer_list(k);
    snprintf(list, sizeof list, "/%s/resolve/", h->repo);
    if (strncmp(path, list, n_repo + 10) == 0 && strchr(path + n_repo + 10, '/')) {
        snprintf(file_path, sizeof file_path, "%s", strchr(path + n_repo + 10, '/') + 1);
        file_path[strcspn(file_path, "?")] = '\0';
        unescape(file_path);
        return answer_file(k, &f, file_path, request);
    }
    return put_text(k, 404, "text/plain", "", "Repository not found");
}

static void note(kit_hub *h, const char *path, const char *request)
{
    pthread_mutex_lock(&h->lock);
    if (h->n_log < KIT_HUB_LOG) {
        entry *e = &h->log[h->n_log++];
        snprintf(e->path, sizeof e->path, "%s", path);
        e->text = strdup(request);
        e->token = strcasestr(request, "\r\nauthorization:") != NULL;
    }
    pthread_mutex_unlock(&h->lock);
}

/* -- threads ----------------------------------------------------------------------------------- */

static void *converse(void *ctx)
{
    talk *k = ctx;
    kit_hub *h = k->h;
    char request[MAX_REQUEST + 1], path[512];
    for (bool on = true; on && !atomic_load(&h->ends);) {
        size_t n = 0;
        request[0] = '\0';
        while (!strstr(request, "\r\n\r\n") && n < MAX_REQUEST) {
            const ssize_t got = recv(k->fd, request + n, MAX_REQUEST - n, 0);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            n += (size_t)got;
            request[n] = '\0';
        }
        if (!strstr(request, "\r\n\r\n") || strncmp(request, "GET ", 4) != 0) break;
        snprintf(path, sizeof path, "%.*s", (int)strcspn(request + 4, " "), request + 4);
        note(h, path, request);
        on = answer(k, path, request);
    }
    pthread_mutex_lock(&h->lock);
    h->talk[k->slot] = -1;
    pthread_mutex_unlock(&h->lock);
    (void)shutdown(k->fd, SHUT_WR);
    (void)close(k->fd);
    free(k);
    return NULL;
}

static void begin_talk(kit_hub *h, int fd)
{
    talk *k = malloc(sizeof *k);
    pthread_mutex_lock(&h->lock);
    size_t i = 0;
    while (i < TALKS && h->talk[i] >= 0) i++;
    if (i < TALKS) h->talk[i] = fd;
    pthread_mutex_unlock(&h->lock);
    if (i == TALKS) {
        (void)close(fd);
        free(k);
        return;
    }
    if (h->used[i]) (void)pthread_join(h->talker[i], NULL); /* it has ended, or does so now */
    *k = (talk){.h = h, .slot = i, .fd = fd};
    h->used[i] = pthread_create(&h->talker[i], NULL, converse, k) == 0;
}

static void *accept_all(void *ctx)
{
    kit_hub *h = ctx;
    while (!atomic_load(&h->ends)) {
        struct pollfd p = {.fd = h->listener, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0) continue;
        const int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) begin_talk(h, fd);
    }
    return NULL;
}

static bool listen_at(kit_hub *h, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t n = sizeof a;
    const int yes = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->listener < 0) return false;
    (void)setsockopt(h->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(h->listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(h->listener, 64) != 0 ||
        getsockname(h->listener, (struct sockaddr *)&a, &n) != 0)
        return false;
    snprintf(h->endpoint, sizeof h->endpoint, "http://127.0.0.1:%u", ntohs(a.sin_port));
    return true;
}

kit_hub *kit_hub_start(const char *repo, uint16_t port)
{
    kit_hub *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    pthread_mutex_init(&h->lock, NULL);
    for (size_t i = 0; i < TALKS; i++) h->talk[i] = -1;
    snprintf(h->repo, sizeof h->repo, "%s", repo);
    if (listen_at(h, port) && pthread_create(&h->acceptor, NULL, accept_all, h) == 0) return h;
    if (h->listener >= 0) (void)close(h->listener);
    free(h);
    return NULL;
}

static void forget(kit_hub *h)
{
    for (size_t i = 0; i < h->n_log; i++) free(h->log[i].text);
    h->n_log = 0;
    h->met = 0;
}

void kit_hub_stop(kit_hub *h)
{
    if (!h) return;
    atomic_store(&h->ends, true);
    (void)pthread_join(h->acceptor, NULL);
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < TALKS; i++)
        if (h->talk[i] >= 0) (void)shutdown(h->talk[i], SHUT_RDWR);
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < TALKS; i++)
        if (h->used[i]) (void)pthread_join(h->talker[i], NULL);
    (void)close(h->listener);
    forget(h);
    for (size_t i = 0; i < h->n_files; i++) {
        free(h->files[i].path);
        free(h->files[i].bytes);
    }
    free(h->list);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

const char *kit_hub_endpoint(const kit_hub *h) { return h->endpoint; }

/* -- what it has ------------------------------------------------------------------------------- */

void kit_hub_file(kit_hub *h, const char *path, const void *bytes, size_t n, bool lfs)
{
    qn_sha256_digest d;
    qn_git_blob_stream *git = NULL;
    file *f = &h->files[0];
    pthread_mutex_lock(&h->lock);
    while (f < h->files + h->n_files && strcmp(f->path, path) != 0) f++;
    if (f == h->files + KIT_HUB_FILES) {
        pthread_mutex_unlock(&h->lock);
        return;
    }
    if (f == h->files + h->n_files) {
        h->n_files++;
        f->path = strdup(path);
    }
    free(f->bytes);
    f->bytes = malloc(n ? n : 1);
    if (n) memcpy(f->bytes, bytes, n);
    f->n = n;
    f->lfs = lfs;
    if (qn_sha256(&d, f->bytes, n, NULL) == QN_OK) qn_sha256_hex(f->digest, &d);
    if (qn_git_blob_new(&git, n, NULL) == QN_OK &&
        qn_git_blob_update(git, f->bytes, n, NULL) == QN_OK)
        (void)qn_git_blob_finish(git, f->git, NULL);
    qn_git_blob_free(git);
    pthread_mutex_unlock(&h->lock);
}

void kit_hub_noise(kit_hub *h, const char *path, size_t n, uint64_t seed)
{
    uint8_t *bytes = malloc(n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        bytes[i] = (uint8_t)(seed >> 56);
    }
    kit_hub_file(h, path, bytes, n, true);
    free(bytes);
}

static bool read_file(kit_hub *h, const char *path, const char *name)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    uint8_t *bytes = ok ? malloc((size_t)st.st_size + 1) : NULL;
    size_t n = 0;
    while (bytes && n < (size_t)st.st_size) {
        const ssize_t got = read(fd, bytes + n, (size_t)st.st_size - n);
        if (got <= 0) break;
        n += (size_t)got;
    }
    ok = bytes && n == (size_t)st.st_size;
    if (ok) kit_hub_file(h, name, bytes, n, n > 10000);
    free(bytes);
    if (fd >= 0) (void)close(fd);
    return ok;
}

static bool read_folder(kit_hub *h, const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    bool ok = dir != NULL;
    for (struct dirent *e; ok && (e = readdir(dir));) {
        char path[4096], name[1024];
        struct stat st;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(name, sizeof name, "%s%s", prefix, e->d_name);
        if (stat(path, &st) != 0) {
            ok = false;
        } else if (S_ISDIR(st.st_mode)) {
            snprintf(name, sizeof name, "%s%s/", prefix, e->d_name);
            ok = read_folder(h, path, name);
        } else {
            ok = read_file(h, path, name);
        }
    }
    if (dir) closedir(dir);
    return ok;
}

bool kit_hub_folder(kit_hub *h, const char *folder) { return read_folder(h, folder, ""); }

const void *kit_hub_bytes(const kit_hub *h, const char *path, size_t *n)
{
    const file *f = find(h, path);
    *n = f ? f->n : 0;
    return f ? f->bytes : NULL;
}

const char *kit_hub_digest(const kit_hub *h, const char *path)
{
    const file *f = find(h, path);
    return !f ? "" : f->lfs ? f->digest : f->git;
}

void kit_hub_list(kit_hub *h, const char *json)
{
    pthread_mutex_lock(&h->lock);
    free(h->list);
    h->list = json ? strdup(json) : NULL;
    pthread_mutex_unlock(&h->lock);
}

void kit_hub_token(kit_hub *h, const char *token)
{
    pthread_mutex_lock(&h->lock);
    snprintf(h->token, sizeof h->token, "%s", token ? token : "");
    pthread_mutex_unlock(&h->lock);
}

void kit_hub_fault(kit_hub *h, kit_hub_faults f)
{
    pthread_mutex_lock(&h->lock);
    h->faults = f;
    forget(h);
    atomic_store(&h->sent, 0);
    pthread_mutex_unlock(&h->lock);
}

/* -- what it saw ------------------------------------------------------------------------------- */

uint32_t kit_hub_asked(kit_hub *h, const char *what)
{
    uint32_t n = 0;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_log; i++) n += strstr(h->log[i].path, what) != NULL;
    pthread_mutex_unlock(&h->lock);
    return n;
}

uint32_t kit_hub_tokens_seen(kit_hub *h)
{
    uint32_t n = 0;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_log; i++) n += h->log[i].token;
    pthread_mutex_unlock(&h->lock);
    return n;
}

uint64_t kit_hub_sent(kit_hub *h) { return atomic_load(&h->sent); }

const char *kit_hub_last(kit_hub *h, const char *what)
{
    const char *text = "";
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_log; i++)
        if (strstr(h->log[i].path, what)) text = h->log[i].text;
    pthread_mutex_unlock(&h->lock);
    return text;
}
