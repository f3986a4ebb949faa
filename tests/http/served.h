/* SPDX-License-Identifier: Apache-2.0 */
/* served.h - a server of a tiny model inside the test, and a client of plain sockets. */
#ifndef SERVED_H
#define SERVED_H
#include <pthread.h>

#include "qt.h"
#include "quern/quern.h"
#include "server/server.h"

typedef struct served_setup { /* what a test may change */
    qn_server_options server;
    uint32_t max_seqs;
    quern_kv kv;
    const char *model; /* borrowed until the server runs */
} served_setup;

typedef struct served {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
    qn_server *server;
    pthread_t thread;
    uint16_t port;
    qn_code rc;
} served;

/* False after a failed check. `change` may be NULL; it may change the options. */
bool served_start(served *s, qt *t, void (*change)(served_setup *o));
void served_join(served *s, qt *t); /* after a stop: waits for the end, frees all but the server */
void served_stop(served *s, qt *t); /* stop and join */

int served_connect(const served *s);                  /* -1: refused */
bool served_send(int fd, const char *text, size_t n); /* all of it */
size_t served_read(int fd, char *to, size_t cap); /* until the other side closes; NUL-terminated */
size_t served_read_until(int fd, char *to, size_t cap, const char *mark);
/* One request on a connection of its own; head: extra header lines. Returns the status, 0: none. */
int served_ask(const served *s, const char *method, const char *path, const char *head,
               const char *body, char *answer, size_t cap);
/* A number of /metrics. */
double served_metric(const served *s, const char *name);
bool served_idle(const served *s); /* nothing runs or waits any more, within some seconds */

#endif
