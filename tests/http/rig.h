/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h - an HTTP layer whose loop the test itself turns, with handlers that answer by path, and clients on
 * sockets in the same thread, so that the order of things is the test's.
 *
 *     /hold...    is answered by the test (rig.held)        /stream...  three pieces
 *     /early...   is answered at its headers, with 403      others      200, "METHOD PATH BODY"
 */
#ifndef RIG_H
#define RIG_H
#include "qt.h"
#include "server/http.h"

enum { RIG_HELD = 64 };

typedef struct rig {
    qn_http *http;
    qn_http_call *held[RIG_HELD];
    size_t n_held, requests, bad, closed, woken, ticks, runs;
    int status;    /* of the last bad one */
    bool wordless; /* bad ones are left unanswered */
} rig;

extern const qn_http_options
    rig_options; /* 127.0.0.1, 32 connections, bodies of 1000 bytes, 60 s */
bool rig_open(rig *r, qt *t, const qn_http_options *o); /* NULL: rig_options */
void rig_close(rig *r);
void rig_turn(rig *r);          /* one turn that does not wait */
int rig_connect(const rig *r);  /* over TCP */
int rig_pair(rig *r, int type); /* a client on a socketpair of that type */
void rig_say(qt *t, int fd, const char *text);
/* Turns the loop until `enough` is in what fd got, or it is closed, or too long has passed; what came, as
 * text. mark NULL: until it is closed. */
const char *rig_hear(rig *r, int fd, const char *mark);
const char *rig_ask(rig *r, qt *t, int fd, const char *text, const char *mark);
/* Turns until *count is at least n. */
bool rig_wait(rig *r, const size_t *count, size_t n);
size_t rig_count(const char *text, const char *what);

#endif
