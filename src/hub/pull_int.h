/* SPDX-License-Identifier: Apache-2.0 */
/* pull_int.h - what the files of a download share: asking, waiting, locks, blobs. */
#ifndef QN_HUB_PULL_INT_H
#define QN_HUB_PULL_INT_H
#include "hub/hub_int.h"
#include "net/net.h"

/* -- ask.c ------------------------------------------------------------------------------------- */

enum { QN_HUB_TRIES = 4, QN_HUB_MAX_WAIT_S = 30 };

typedef struct qn_hub_talk { /* one download: what all its requests share; close when done */
    const qn_hub *hub;
    qn_net *net;
    const char *repo; /* ORG/NAME, for messages */
    const qn_hub_report *report;
    quern_get_progress at;
    uint64_t told_ns; /* when progress was last told */
} qn_hub_talk;
/* Errors: INVAL (the endpoint), NOMEM. */
qn_code qn_hub_talk_open(qn_hub_talk *k, const qn_hub *h, const char *repo,
                         const qn_hub_report *report, qn_err *err);
void qn_hub_talk_close(qn_hub_talk *k);
/* Tells k->at now / unless it was told just now. Errors: CANCELLED. */
qn_code qn_hub_talk_tell(qn_hub_talk *k, qn_err *err);
qn_code qn_hub_talk_tick(qn_hub_talk *k, qn_err *err);

typedef struct qn_hub_try {
    int status;
    bool passing; /* it failed, and asking again may help */
    uint32_t wait_s;
    uint32_t n; /* tries so far; start with 0 */
} qn_hub_try;
/* One GET; r->bearer is filled in. OK: 2xx, or 416 where a range was asked for. Errors: DENIED, NOTFOUND,
 * AGAIN (429), IO, FORMAT, and the callbacks'. */
qn_code qn_hub_ask(qn_hub_talk *k, qn_net_request *r, qn_hub_try *try, qn_err *err);
/* After the failure rc of a try: waits and gives OK if another is due, else gives rc back (or
 * CANCELLED). */
qn_code qn_hub_again(qn_hub_talk *k, qn_hub_try *try, qn_code rc, qn_err *err);

/* -- lock.c ------------------------------------------------------------------------------------ */

enum { QN_HUB_LOCK_AGE_S = 3600 };

typedef struct qn_hub_lock {
    char *path; /* NULL: not held */
    uint64_t touched_ns;
} qn_hub_lock;
/* Creates the file PATH.lock; one whose process is gone, or that nobody touched for an hour, is taken over.
 * Errors: AGAIN naming the process, IO, NOMEM. */
qn_code qn_hub_lock_take(qn_hub_lock *l, const char *path, qn_err *err);
void qn_hub_lock_touch(qn_hub_lock *l); /* now and then while at work */
void qn_hub_lock_drop(qn_hub_lock *l);  /* zeroed is fine */

/* -- blob.c ------------------------------------------------------------------------------------ */

typedef struct qn_hub_blob {
    const char *path; /* where it will be; PATH.incomplete and PATH.lock until then */
    const char *name; /* as the repository calls it */
    const char *url;
    const char *digest; /* as in a manifest */
    bool sha256;
    bool stamped; /* PATH.sha256 is kept, so that nobody reads the bytes again */
    uint64_t bytes;
} qn_hub_blob;
/* Bytes that are still to come, as sizes tell. */
uint64_t qn_hub_blob_missing(const qn_hub_blob *b);
/* Makes it be there, with the right bytes. k->at.done grows by its size. Errors: as quern_store_get. */
qn_code qn_hub_blob_fetch(qn_hub_talk *k, const qn_hub_blob *b, qn_err *err);

#endif
