/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - http.h on libwebsockets (docs/decisions/0010-http-library.md). The library parses requests,
 * holds connections and their timeouts, and polls; answers are framed here, since of an event stream it
 * would only pass the bytes on.
 *
 * Owner:  qn_http owns the context; a call is made when headers are there, and dies with its answer or
 *         its connection.
 * Thread: the loop's; qn_http_wake from any.
 */
#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"

enum {
    PIECE = 1 << 16,       /* bytes given to the library at once */
    MAX_UNREAD = 16 << 20, /* a client that leaves more than this unread is let go */
    FIELDS = 8,            /* headers kept of a request */
    FIELD_BYTES = 8 << 10, /* all of them together */
};

struct qn_http_call {
    qn_http *http;
    struct lws *wsi;
    void *user;
    qn_http_request req;
    qn_buf in, out; /* out: LWS_PRE bytes of headroom, then what is to send */
    size_t sent, n_fields;
    bool begun, answered, ended, broken, chunked, head_only;
    char path[2048], fields[FIELD_BYTES];
};

typedef struct conn { /* the library's memory, one a connection */
    qn_http_call *call;
} conn;

struct qn_http {
    struct lws_context *context;
    struct lws_vhost *vhost;
    qn_http_handler handler;
    struct lws_protocols protocols[2];
    lws_sorted_usec_list_t timer;
    atomic_bool woken;
    uint16_t port;
    size_t max_body;
    bool ticked;
};

/* -- answers ----------------------------------------------------------------------------------- */

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
               {415, "Unsupported Media Type"},
               {429, "Too Many Requests"},
               {431, "Request Header Fields Too Large"},
               {500, "Internal Server Error"},
               {501, "Not Implemented"},
               {503, "Service Unavailable"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].status == status) return all[i].text;
    return status < 500 ? "Error" : "Server Error";
}

static void add(qn_http_call *c, const void *bytes, size_t n)
{
    if (c->broken) return;
    if (c->sent > PIECE && c->sent == c->out.len) {
        qn_buf_truncate(&c->out, LWS_PRE);
        c->sent = LWS_PRE;
    }
    if (qn_buf_append(&c->out, bytes, n, NULL) != QN_OK) c->broken = true;
    lws_callback_on_writable(c->wsi);
}

/* One answer a connection: the library (4.1.6) can loop for ever over requests that were sent ahead. */
static void add_head(qn_http_call *c, int status, const char *mime, const char *extra,
                     const char *framing)
{
    char head[2048];
    const int n = snprintf(head, sizeof head,
                           "HTTP/1.1 %d %s\r\n%s%s%s%s%s"
                           "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                           status, reason(status), mime ? "Content-Type: " : "", mime ? mime : "",
                           mime ? "\r\n" : "", framing, extra);
    c->answered = true;
    if (n < 0 || (size_t)n >= sizeof head)
        c->broken = true;
    else
        add(c, head, (size_t)n);
}

void qn_http_reply(qn_http_call *c, int status, const char *mime, const char *extra, qn_str body)
{
    char length[48] = "";
    if (c->answered) return;
    if (status != 304) snprintf(length, sizeof length, "Content-Length: %zu\r\n", body.n);
    add_head(c, status, mime, extra, length);
    if (!c->head_only && status != 304) add(c, body.p, body.n);
    c->ended = true;
}

void qn_http_begin(qn_http_call *c, int status, const char *mime, const char *extra)
{
    if (c->answered) return;
    add_head(c, status, mime, extra, c->chunked ? "Transfer-Encoding: chunked\r\n" : "");
}

void qn_http_send(qn_http_call *c, qn_str piece)
{
    char size[24];
    if (!piece.n || c->ended || c->head_only) return;
    if (c->out.len - c->sent > MAX_UNREAD) c->broken = true;
    const int n = snprintf(size, sizeof size, "%zx\r\n", piece.n);
    if (c->chunked) add(c, size, (size_t)n);
    add(c, piece.p, piece.n);
    if (c->chunked) add(c, "\r\n", 2);
}

void qn_http_end(qn_http_call *c)
{
    if (c->ended) return;
    if (c->chunked && !c->head_only) add(c, "0\r\n\r\n", 5);
    c->ended = true;
    lws_callback_on_writable(c->wsi);
}

void qn_http_set_user(qn_http_call *c, void *user) { c->user = user; }
void *qn_http_user(const qn_http_call *c) { return c->user; }

/* -- calls ------------------------------------------------------------------------------------- */

static void drop(conn *k)
{
    qn_http_call *c = k ? k->call : NULL;
    if (!c) return;
    k->call = NULL;
    c->http->handler.closed(c->http->handler.ctx, c);
    qn_buf_fini(&c->in);
    qn_buf_fini(&c->out);
    qn_free(c);
}

/* The value of a header in c->fields. Longer than what is left: empty, and the call is marked. */
static qn_str keep(qn_http_call *c, int n, int got)
{
    const qn_str value = qn_str_make(c->fields + c->n_fields, got > 0 ? (size_t)got : 0);
    if (n > 0 && got <= 0) c->broken = true;
    if (got > 0) c->n_fields += (size_t)got + 1;
    return value;
}

static qn_str field(qn_http_call *c, enum lws_token_indexes token)
{
    const int n = lws_hdr_total_length(c->wsi, token);
    if (n <= 0) return (qn_str){0};
    const int room = (int)(sizeof c->fields - c->n_fields);
    return keep(c, n, lws_hdr_copy(c->wsi, c->fields + c->n_fields, room, token));
}

static qn_str custom(qn_http_call *c, const char *name)
{
    const int size = (int)strlen(name), n = lws_hdr_custom_length(c->wsi, name, size);
    if (n <= 0) return (qn_str){0};
    const int room = (int)(sizeof c->fields - c->n_fields);
    return keep(c, n, lws_hdr_custom_copy(c->wsi, c->fields + c->n_fields, room, name, size));
}

static void read_method(qn_http_call *c)
{
    static const struct {
        enum lws_token_indexes token;
        const char *name;
    } all[] = {{WSI_TOKEN_GET_URI, "GET"},         {WSI_TOKEN_POST_URI, "POST"},
               {WSI_TOKEN_OPTIONS_URI, "OPTIONS"}, {WSI_TOKEN_PUT_URI, "PUT"},
               {WSI_TOKEN_PATCH_URI, "PATCH"},     {WSI_TOKEN_DELETE_URI, "DELETE"},
               {WSI_TOKEN_HEAD_URI, "HEAD"}};
    c->req.method = QN_STR("?");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (lws_hdr_total_length(c->wsi, all[i].token) > 0) c->req.method = qn_str_z(all[i].name);
}

static void read_head(qn_http_call *c, const char *path, size_t n)
{
    char version[16] = "";
    if (n >= sizeof c->path) {
        n = sizeof c->path - 1;
        c->broken = true;
    }
    memcpy(c->path, path, n);
    c->req.path = qn_str_make(c->path, n);
    read_method(c);
    c->head_only = qn_str_eq_z(c->req.method, "HEAD");
    lws_hdr_copy(c->wsi, version, sizeof version, WSI_TOKEN_HTTP);
    c->chunked = strcmp(version, "HTTP/1.0") != 0;
    c->req.host = field(c, WSI_TOKEN_HOST);
    c->req.origin = field(c, WSI_TOKEN_ORIGIN);
    c->req.authorization = field(c, WSI_TOKEN_HTTP_AUTHORIZATION);
    c->req.if_none_match = field(c, WSI_TOKEN_HTTP_IF_NONE_MATCH);
    c->req.content_type = field(c, WSI_TOKEN_HTTP_CONTENT_TYPE);
    c->req.fetch_site = custom(c, "sec-fetch-site:");
    c->req.fetch_mode = custom(c, "sec-fetch-mode:");
    c->req.api_key = custom(c, "x-api-key:");
    const qn_str length = field(c, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    c->req.has_length = length.n > 0;
    if (length.n && !qn_str_parse_u64(&c->req.length, length)) c->broken = true;
    c->req.chunked = lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0;
    c->req.has_body = c->req.length > 0 || c->req.chunked;
}

static void hand_over(qn_http_call *c)
{
    if (c->begun || c->answered) return;
    c->begun = true;
    lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
    c->req.body = qn_str_make(qn_buf_text(&c->in), c->in.len);
    c->http->handler.request(c->http->handler.ctx, c, &c->req);
}

static int on_headers(qn_http *h, conn *k, struct lws *wsi, const char *path, size_t n)
{
    drop(k);
    qn_http_call *c = qn_zalloc(sizeof *c);
    if (!c) return -1;
    c->http = h;
    c->wsi = wsi;
    qn_buf_init(&c->in, h->max_body);
    qn_buf_init(&c->out, SIZE_MAX / 2);
    k->call = c;
    if (qn_buf_append_zero(&c->out, LWS_PRE, NULL, NULL) != QN_OK) return -1;
    c->sent = LWS_PRE;
    read_head(c, path, n);
    if (c->broken) return -1;
    h->handler.headers(h->handler.ctx, c, &c->req);
    if (c->answered) return 0;
    if (!c->req.has_body) {
        hand_over(c);
    } else if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_EXPECT) > 0) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        add(c, go_on, sizeof go_on - 1);
    }
    return 0;
}

static int on_writable(conn *k, struct lws *wsi)
{
    qn_http_call *c = k ? k->call : NULL;
    if (!c) return 0;
    if (c->broken) return -1;
    const size_t left = c->out.len - c->sent, n = left < PIECE ? left : PIECE;
    if (n) {
        if (lws_write(wsi, c->out.data + c->sent, n, LWS_WRITE_HTTP) < 0) return -1;
        c->sent += n;
        if (c->sent < c->out.len || c->ended) lws_callback_on_writable(wsi);
        return 0;
    }
    if (!c->ended) return 0;
    drop(k);
    return -1;
}

static int on_body(conn *k, const void *bytes, size_t n)
{
    qn_http_call *c = k ? k->call : NULL;
    if (!c) return -1;
    if (c->answered) return 0; /* the connection closes behind the answer */
    if (c->in.len == 0 && qn_buf_reserve(&c->in, (size_t)c->req.length, NULL) != QN_OK) return -1;
    return qn_buf_append(&c->in, bytes, n, NULL) == QN_OK ? 0 : -1;
}

static int on_library(struct lws *wsi, enum lws_callback_reasons why, void *user, void *in,
                      size_t n)
{
    qn_http *h = lws_context_user(lws_get_context(wsi));
    switch (why) {
    case LWS_CALLBACK_HTTP:
        return on_headers(h, user, wsi, in, n);
    case LWS_CALLBACK_HTTP_BODY:
        return on_body(user, in, n);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        if (user && ((conn *)user)->call) hand_over(((conn *)user)->call);
        return 0;
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return on_writable(user, wsi);
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        drop(user);
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        if (atomic_exchange(&h->woken, false) && h->handler.woken) h->handler.woken(h->handler.ctx);
        return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return -1; /* there is no WebSocket here */
    default:
        return 0;
    }
}

/* -- the loop ---------------------------------------------------------------------------------- */

static void on_timer(lws_sorted_usec_list_t *timer)
{
    qn_http *h = lws_container_of(timer, qn_http, timer);
    if (h->handler.tick) h->handler.tick(h->handler.ctx);
    lws_sul_schedule(h->context, 0, &h->timer, on_timer, LWS_US_PER_SEC);
}

/* The library tells that it cannot listen, not why; a person wants to read that the port is in use. */
static qn_code try_port(const qn_http_options *o, qn_err *err)
{
    qn_code rc = QN_OK;
    const int on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(o->port)};
    if (inet_pton(AF_INET, o->host, &a.sin_addr) != 1)
        return qn_fail(err, QN_E_INVAL, "host \"%s\", expected an IPv4 address", o->host);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return qn_fail_sys(err, QN_E_IO, errno, "a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 1) != 0)
        rc = errno == EADDRINUSE
                 ? qn_fail(err, QN_E_IO,
                           "port %u of %s is in use; --port N takes another, --port 0 a free one",
                           (unsigned)o->port, o->host)
                 : qn_fail_sys(err, QN_E_IO, errno, "listening on %s:%u", o->host,
                               (unsigned)o->port);
    close(fd);
    return rc;
}

static qn_code open_library(qn_http *h, const qn_http_options *o, qn_err *err)
{
    struct lws_context_creation_info info = {0};
    h->protocols[0] = (struct lws_protocols){
        .name = "http", .callback = on_library, .per_session_data_size = sizeof(conn)};
    lws_set_log_level(0, NULL);
    info.port = o->port;
    info.iface = o->host;
    info.protocols = h->protocols;
    info.user = h;
    info.gid = -1;
    info.uid = -1;
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DISABLE_IPV6 |
                   LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
    info.timeout_secs = o->timeout_s;
    info.max_http_header_data = (unsigned short)o->max_header;
    info.max_http_header_pool = (unsigned short)o->max_connections;
    info.fd_limit_per_thread = o->max_connections + 8;
    info.pt_serv_buf_size = PIECE;
    h->context = lws_create_context(&info);
    if (!h->context) return qn_fail(err, QN_E_NOMEM, "no memory for the HTTP library");
    h->vhost = lws_create_vhost(h->context, &info);
    if (!h->vhost)
        return qn_fail(err, QN_E_IO, "cannot listen on %s:%u", o->host, (unsigned)o->port);
    h->port = (uint16_t)lws_get_vhost_listen_port(h->vhost);
    lws_sul_schedule(h->context, 0, &h->timer, on_timer, LWS_US_PER_SEC);
    return QN_OK;
}

static void ignore_call(void *ctx, qn_http_call *c) { (void)ctx, (void)c; }

qn_code qn_http_open(qn_http **out, const qn_http_options *o, qn_err *err)
{
    *out = NULL;
    QN_TRY(try_port(o, err));
    qn_http *h = qn_zalloc(sizeof *h);
    if (!h) return qn_fail(err, QN_E_NOMEM, "no memory for a server");
    h->max_body = o->max_body;
    h->handler.closed = ignore_call;
    const qn_code rc = open_library(h, o, err);
    if (rc != QN_OK)
        qn_http_close(h);
    else
        *out = h;
    return rc;
}

void qn_http_close(qn_http *h)
{
    if (!h) return;
    if (h->context) lws_context_destroy(h->context);
    qn_free(h);
}

uint16_t qn_http_port(const qn_http *h) { return h->port; }
void qn_http_set_handler(qn_http *h, const qn_http_handler *handler) { h->handler = *handler; }
bool qn_http_run(qn_http *h) { return lws_service(h->context, 0) >= 0; }

void qn_http_wake(qn_http *h)
{
    if (!atomic_exchange(&h->woken, true)) lws_cancel_service(h->context);
}
