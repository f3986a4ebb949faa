/* SPDX-License-Identifier: Apache-2.0 */
/* http_read.h - from bytes to a request, in whatever pieces they come; no sockets here.
 *
 *     feed ─► MORE (all used) | HEAD (the headers are whole) ─► feed ─► MORE | DONE | BAD
 *
 * HEAD, DONE and BAD stop at once: what is behind stays with the caller. After DONE or BAD the reader is
 * spent.
 *
 * Owner:  the caller; the request's texts live in the reader.
 * Thread: one at a time.
 */
#ifndef QN_SERVER_HTTP_READ_H
#define QN_SERVER_HTTP_READ_H
#include "server/http.h"

typedef struct qn_http_reader qn_http_reader;

typedef enum qn_http_step { QN_HTTP_MORE, QN_HTTP_HEAD, QN_HTTP_DONE, QN_HTTP_BAD } qn_http_step;

enum { QN_HTTP_MAX_LINES = 100, QN_HTTP_MAX_TARGET = 8 << 10 };

/* *out is owned. Errors: NOMEM. */
qn_code qn_http_reader_new(qn_http_reader **out, size_t max_header, size_t max_body, qn_err *err);
void qn_http_reader_free(qn_http_reader *r); /* NULL is fine */
/* *used of bytes[0, n) are behind. */
qn_http_step qn_http_reader_feed(qn_http_reader *r, size_t *used, const void *bytes, size_t n);
const qn_http_request *qn_http_reader_request(const qn_http_reader *r); /* from HEAD on */
int qn_http_reader_status(const qn_http_reader *r);                     /* after BAD */
bool qn_http_reader_keep(const qn_http_reader *r);    /* the client wants the connection kept */
bool qn_http_reader_old(const qn_http_reader *r);     /* HTTP/1.0 */
bool qn_http_reader_expects(const qn_http_reader *r); /* it waits for "100 Continue" */

#endif
