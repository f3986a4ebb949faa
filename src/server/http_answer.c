/* SPDX-License-Identifier: Apache-2.0 */
/* http_answer.c - answers to bytes: the head, lengths, chunks. Nothing is sent here; what a turn of the
 * loop put together goes out at its end. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/http_int.h"

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } all[] = {{200, "OK"},
               {302, "Found"},
               {304, "Not Modified"},
               {400, "Bad Request"},
               {401, "Unauthorized"},
               {403, "Forbidden"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {408, "Request Timeout"},
               {413, "Content Too Large"},
               {414, "URI Too Long"},
               {415, "Unsupported Media Type"},
               {429, "Too Many Requests"},
               {431, "Request Header Fields Too Large"},
               {500, "Internal Server Error"},
               {501, "Not Implemented"},
               {502, "Bad Gateway"},
               {503, "Service Unavailable"},
               {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].status == status) return all[i].text;
    return status < 500 ? "Error" : "Server Error";
}

void qn_http_put(qn_http_conn *k, const void *bytes, size_t n)
{
    if (qn_buf_append(&k->out, bytes, n, NULL) != QN_OK) k->broken = true;
    qn_http_touch(k);
}

static const char *date(qn_http *h)
{
    struct tm tm;
    const time_t now = time(NULL);
    if (now != h->date_s && gmtime_r(&now, &tm)) {
        h->date_s = now;
        strftime(h->date, sizeof h->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    }
    return h->date;
}

/* A body that was not read to its end would be taken for the next request, and so would one of an
 * answer that ends with the connection. */
static bool must_close(const qn_http_call *c, bool framed)
{
    return c->conn->http->draining || c->conn->state != QN_HTTP_ANSWERING || !framed ||
           !qn_http_reader_keep(c->reader);
}

static void put_head(qn_http_call *c, int status, const char *mime, const char *extra,
                     const char *framing, bool framed)
{
    char head[2048];
    qn_http_conn *k = c->conn;
    c->answered = true;
    k->close = k->close || must_close(c, framed);
    const int n = snprintf(head, sizeof head,
                           "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%s%s%s"
                           "X-Content-Type-Options: nosniff\r\nConnection: %s\r\n\r\n",
                           status, reason(status), date(k->http), mime ? "Content-Type: " : "",
                           mime ? mime : "", mime ? "\r\n" : "", framing, extra,
                           k->close ? "close" : "keep-alive");
    if (n < 0 || (size_t)n >= sizeof head)
        k->broken = true;
    else
        qn_http_put(k, head, (size_t)n);
}

void qn_http_reply(qn_http_call *c, int status, const char *mime, const char *extra, qn_str body)
{
    char length[48] = "";
    if (c->answered) return;
    if (status != 304) snprintf(length, sizeof length, "Content-Length: %zu\r\n", body.n);
    put_head(c, status, mime, extra, length, true);
    if (!c->head_only && status != 304) qn_http_put(c->conn, body.p, body.n);
    c->ended = true;
}

void qn_http_begin(qn_http_call *c, int status, const char *mime, const char *extra)
{
    if (c->answered) return;
    c->chunked = !qn_http_reader_old(c->reader);
    put_head(c, status, mime, extra, c->chunked ? "Transfer-Encoding: chunked\r\n" : "",
             c->chunked);
}

/* "fa\r\n": a chunk's size; printf takes longer than all else that a piece needs. */
static void put_size(qn_http_conn *k, size_t n)
{
    char line[2 * sizeof n + 2];
    size_t at = sizeof line;
    line[--at] = '\n';
    line[--at] = '\r';
    for (; n; n >>= 4) line[--at] = "0123456789abcdef"[n & 15];
    qn_http_put(k, line + at, sizeof line - at);
}

void qn_http_send(qn_http_call *c, qn_str piece)
{
    qn_http_conn *k = c->conn;
    if (!piece.n || !c->answered || c->ended || c->head_only) return;
    if (k->out.len - k->sent > QN_HTTP_MAX_UNREAD) k->broken = true;
    if (k->broken) {
        qn_http_touch(k);
        return;
    }
    if (c->chunked) put_size(k, piece.n);
    qn_http_put(k, piece.p, piece.n);
    if (c->chunked) qn_http_put(k, "\r\n", 2);
}

void qn_http_end(qn_http_call *c)
{
    if (!c->answered || c->ended) return;
    c->ended = true;
    if (c->chunked && !c->head_only) qn_http_put(c->conn, "0\r\n\r\n", 5);
    qn_http_touch(c->conn);
}

void qn_http_set_user(qn_http_call *c, void *user) { c->user = user; }
void *qn_http_user(const qn_http_call *c) { return c->user; }
