/* SPDX-License-Identifier: Apache-2.0 */
/* kit_hub.h - a stand-in hub on this machine: a made-up repository, or a folder, behind the paths and answers of
 * a Hugging Face hub, with faults to order.
 *
 * Thread: the hub has its own threads; change it between questions, not during one.
 */
#ifndef KIT_HUB_H
#define KIT_HUB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIT_HUB_FILES = 24, KIT_HUB_LOG = 256 };
#define KIT_HUB_COMMIT "0123456789abcdef0123456789abcdef01234567"

typedef struct kit_hub kit_hub;

typedef struct kit_hub_faults {
    /* "": all; else only of requests whose path holds this */
    const char *where;
    /* how many requests meet it; 0: all */
    uint32_t times;
    int status;             /* answer with this and no file */
    uint32_t retry_after_s; /* in that answer */
    uint64_t cut_after;     /* end the connection after so many bytes of the body; 0: no */
    bool wrong_byte;        /* one byte of the body is another */
    bool no_range;          /* 200 and the whole, whatever was asked */
    bool wrong_range;       /* Content-Range of another start */
    bool wrong_total;       /* and of another total */
    bool unasked_range;     /* 206 where nothing was asked */
    uint32_t redirects;     /* as many hops to itself first; 99: for ever */
    const char *away;       /* then one to this URL's host, path kept ("http://127.0.0.1:9") */
    bool stall;             /* half of the body, then nothing */
    bool endless;           /* the body, and then more of it, without a length */
    int64_t length_off;     /* Content-Length is this much off, bytes as many as there are */
    bool chunked;           /* no length */
    uint32_t slow_ms;       /* between pieces of 64 KiB */
    bool plain_words;       /* what comes is no HTTP */
    size_t head_bytes;      /* of headers more */
} kit_hub_faults;

/* Serves 127.0.0.1 at a port of its own, or at `port`; NULL: no memory, no port. */
kit_hub *kit_hub_start(const char *repo, uint16_t port);
void kit_hub_stop(kit_hub *h);                  /* NULL is fine */
const char *kit_hub_endpoint(const kit_hub *h); /* "http://127.0.0.1:PORT" */

/* A file of the repository; bytes are copied. lfs: listed by SHA-256, else by git's name. */
void kit_hub_file(kit_hub *h, const char *path, const void *bytes, size_t n, bool lfs);
/* All files of a folder and of those in it; false: it cannot be read. */
bool kit_hub_folder(kit_hub *h, const char *folder);
/* n bytes that depend on `seed` only; as a file of the hub. */
void kit_hub_noise(kit_hub *h, const char *path, size_t n, uint64_t seed);
const void *kit_hub_bytes(const kit_hub *h, const char *path, size_t *n);
const char *kit_hub_digest(const kit_hub *h, const char *path);
/* Another answer in place of the list; copied. */
void kit_hub_list(kit_hub *h, const char *json);
/* Only who has this token may read; NULL: everybody. */
void kit_hub_token(kit_hub *h, const char *token);
void kit_hub_fault(kit_hub *h, kit_hub_faults f); /* and forget what was asked so far */

/* How often was a path that holds `what` asked, and how often with an Authorization line; bytes of bodies
 * sent in all. */
uint32_t kit_hub_asked(kit_hub *h, const char *what);
uint32_t kit_hub_tokens_seen(kit_hub *h);
uint64_t kit_hub_sent(kit_hub *h);
/* The last request for a path that holds `what`, whole; borrowed until the next. */
const char *kit_hub_last(kit_hub *h, const char *what);

#endif
