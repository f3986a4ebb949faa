/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - net.h on libcurl: one easy handle a client, one hop a transfer.
 *
 * libcurl's own redirects, authentication, cookies, .netrc and decoding stay off: what goes over the wire
 * is what this file says. Its memory is not counted: its allocator is one for the process, and a host
 * program may use the library too.
 */
#include "net/net.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    PIECE = 256 << 10,     /* bytes of a piece, at most */
    MAX_HEADS = 256 << 10, /* bytes of an answer's headers */
    MAX_WASTE = 64 << 10,  /* bytes thrown away of a body that nobody wants */
    MAX_TOKEN = 4096
};

struct qn_net {
    CURL *curl;
    char *agent;
    uint32_t connect_ms, stall_ms;
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *ctx;
};

typedef struct origin { /* borrowed from libcurl: end with origin_fini */
    CURLU *url;
    char *scheme, *host, *port;
} origin;

typedef struct hop { /* one transfer */
    qn_net *net;
    const qn_net_request *req;
    qn_net_answer *a;
    qn_err *err;
    qn_code rc; /* why we ended it */
    bool head_told, refused, stalled, enough;
    size_t heads, waste; /* bytes */
    curl_off_t seen;     /* bytes at the last change */
    uint64_t moved_ns;   /* when that was */
} hop;

/* -- URLs -------------------------------------------------------------------------------------- */

static void origin_fini(origin *o)
{
    curl_free(o->scheme);
    curl_free(o->host);
    curl_free(o->port);
    curl_url_cleanup(o->url);
    *o = (origin){0};
}

static qn_code read_origin(origin *o, const char *url, qn_err *err)
{
    *o = (origin){.url = curl_url()};
    CURLUcode bad = o->url ? CURLUE_OK : CURLUE_OUT_OF_MEMORY;
    if (!bad) bad = curl_url_set(o->url, CURLUPART_URL, url, CURLU_DISALLOW_USER);
    if (!bad) bad = curl_url_get(o->url, CURLUPART_SCHEME, &o->scheme, 0);
    if (!bad) bad = curl_url_get(o->url, CURLUPART_HOST, &o->host, 0);
    if (!bad) bad = curl_url_get(o->url, CURLUPART_PORT, &o->port, CURLU_DEFAULT_PORT);
    if (!bad) return QN_OK;
    origin_fini(o);
    if (bad == CURLUE_OUT_OF_MEMORY) return qn_fail(err, QN_E_NOMEM, "url");
    return qn_fail(err, QN_E_INVAL, "not a url that can be asked: %s", curl_url_strerror(bad));
}

static bool is_https(const origin *o) { return strcmp(o->scheme, "https") == 0; }

static bool same_origin(const origin *a, const origin *b)
{
    return strcmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 &&
           strcmp(a->port, b->port) == 0;
}

/* libcurl answers "localhost" by itself, with loopback addresses. */
static bool is_here(const origin *o)
{
    const char *h = o->host;
    if (strcasecmp(h, "localhost") == 0 || strcmp(h, "[::1]") == 0) return true;
    size_t dots = 0;
    for (const char *p = h; *p; p++) {
        if (*p != '.' && (*p < '0' || *p > '9')) return false; /* "127.evil.example" is a name */
        dots += *p == '.';
    }
    return dots == 3 && strncmp(h, "127.", 4) == 0;
}

static qn_code check_scheme(const origin *o, qn_err *err)
{
    if (is_https(o)) return QN_OK;
    if (strcmp(o->scheme, "http") != 0)
        return qn_fail(err, QN_E_INVAL, "%s is asked by %s, expected https", o->host, o->scheme);
    if (is_here(o)) return QN_OK;
    return qn_fail(err, QN_E_INVAL, "%s is asked by plain http, which is for this machine only",
                   o->host);
}

qn_code qn_net_check_endpoint(const char *url, qn_err *err)
{
    origin o;
    char *query = NULL, *fragment = NULL;
    QN_TRY(read_origin(&o, url, err));
    qn_code rc = check_scheme(&o, err);
    if (curl_url_get(o.url, CURLUPART_QUERY, &query, 0) == CURLUE_OK ||
        curl_url_get(o.url, CURLUPART_FRAGMENT, &fragment, 0) == CURLUE_OK)
        rc = qn_fail(err, QN_E_INVAL, "the endpoint at %s has a query or a fragment", o.host);
    curl_free(query);
    curl_free(fragment);
    origin_fini(&o);
    return rc;
}

/* -- what libcurl tells ------------------------------------------------------------------------ */

static bool header_is(qn_str line, const char *name, qn_str *value)
{
    const size_t n = strlen(name);
    if (line.n <= n || line.p[n] != ':' || strncasecmp(line.p, name, n) != 0) return false;
    *value = qn_str_trim(qn_str_slice(line, n + 1, line.n));
    return true;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    hop *h = ctx;
    qn_str value = {0};
    const qn_str line = {p, size * n};
    uint64_t number = 0;
    h->heads += line.n;
    if (h->heads > MAX_HEADS) return 0;             /* a write error: told as too large */
    if (qn_str_has_prefix(line, QN_STR("HTTP/"))) { /* 100 Continue and the like came before */
        h->a->range = (qn_net_range){0};
        h->a->retry_after_s = 0;
        h->a->bytes = UINT64_MAX;
    } else if (header_is(line, "content-range", &value)) {
        (void)qn_net_parse_range(&h->a->range, value);
    } else if (header_is(line, "content-length", &value)) {
        if (qn_str_parse_u64(&number, value)) h->a->bytes = number;
    } else if (header_is(line, "retry-after", &value)) { /* a date is left alone */
        if (qn_str_parse_u64(&number, value))
            h->a->retry_after_s = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    }
    return line.n;
}

static bool is_good(const hop *h) { return h->a->status >= 200 && h->a->status < 300; }

static qn_code tell_head(hop *h)
{
    long status = 0;
    if (h->head_told) return QN_OK;
    h->head_told = true;
    (void)curl_easy_getinfo(h->net->curl, CURLINFO_RESPONSE_CODE, &status);
    h->a->status = (int)status;
    return is_good(h) ? h->req->head(h->req->ctx, h->a, h->err) : QN_OK;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    hop *h = ctx;
    const size_t bytes = size * n;
    h->rc = tell_head(h);
    if (h->rc == QN_OK && is_good(h)) {
        h->rc = h->req->body(h->req->ctx, p, bytes, h->err);
    } else if (h->rc == QN_OK) {
        h->waste += bytes;
        h->enough = h->waste > MAX_WASTE;
    }
    h->moved_ns = qn_clock_ns(); /* our own work is no stall */
    return h->rc == QN_OK && !h->enough ? bytes : 0;
}

static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                       curl_off_t up)
{
    hop *h = ctx;
    (void)down_all, (void)up_all, (void)up;
    if (down != h->seen) {
        h->seen = down;
        h->moved_ns = qn_clock_ns();
    }
    curl_off_t connected_us = 0;
    (void)curl_easy_getinfo(h->net->curl, CURLINFO_CONNECT_TIME_T, &connected_us);
    const uint64_t still_ms = (qn_clock_ns() - h->moved_ns) / 1000000;
    h->stalled = still_ms > h->net->stall_ms && (connected_us > 0 || still_ms > h->net->connect_ms);
    if (h->rc == QN_OK && h->req->tick) h->rc = h->req->tick(h->req->ctx, h->err);
    return h->stalled || h->rc != QN_OK;
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    hop *h = ctx;
    (void)purpose;
    if (h->net->may_connect && !h->net->may_connect(h->net->ctx, &address->addr)) {
        h->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* -- one hop ----------------------------------------------------------------------------------- */

static bool add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl_slist_append(*list, line);
    if (more) *list = more;
    return more != NULL;
}

static qn_code make_headers(struct curl_slist **list, const qn_net_request *r, bool home,
                            qn_err *err)
{
    char line[MAX_TOKEN + 32];
    bool ok = true;
    if (r->bearer && home) {
        if (strlen(r->bearer) > MAX_TOKEN || strpbrk(r->bearer, "\r\n"))
            return qn_fail(err, QN_E_INVAL, "the token is no line of at most %d bytes", MAX_TOKEN);
        (void)snprintf(line, sizeof line, "Authorization: Bearer %s", r->bearer);
        ok = add_header(list, line);
    }
    if (ok && r->from) {
        (void)snprintf(line, sizeof line, "Range: bytes=%llu-", (unsigned long long)r->from);
        ok = add_header(list, line);
    }
    return ok ? QN_OK : qn_fail(err, QN_E_NOMEM, "headers");
}

static CURLcode set_up(hop *h, const origin *o, struct curl_slist *headers)
{
    CURL *c = h->net->curl;
    CURLcode rc = CURLE_OK;
    curl_easy_reset(c); /* connections stay */
#define SET(option, value) \
    if (rc == CURLE_OK) rc = curl_easy_setopt(c, option, value)
    SET(CURLOPT_CURLU, o->url);
    SET(CURLOPT_PROTOCOLS_STR, o->scheme);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_USERAGENT, h->net->agent);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)h->net->connect_ms);
    SET(CURLOPT_BUFFERSIZE, (long)PIECE);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, h);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, h);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, h);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_OPENSOCKETDATA, h);
    if (is_here(o) || h->net->may_connect) SET(CURLOPT_PROXY, "");
#undef SET
    return rc;
}

/* What libcurl's code means to us; host and port are all of the URL that is told. */
static qn_code judge(hop *h, CURLcode code, const origin *o)
{
    qn_err *err = h->err;
    const char *host = o->host;
    long sys = 0;
    if (h->rc != QN_OK) return h->rc;
    if (h->enough) return QN_OK; /* an answer, and we have seen its status */
    if (h->stalled)
        return qn_fail(err, QN_E_IO, "%s sent no byte for %u s", host,
                       (h->net->stall_ms + 999) / 1000);
    if (h->refused) return qn_fail(err, QN_E_INVAL, "%s: this address may not be asked", host);
    switch (code) {
    case CURLE_OK:
        return QN_OK;
    case CURLE_OUT_OF_MEMORY:
        return qn_fail(err, QN_E_NOMEM, "http");
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        h->a->passing = true;
        return qn_fail(err, QN_E_IO, "the connection to %s was lost", host);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return qn_fail(err, QN_E_IO, "no address is known of %s; is there a network?", host);
    case CURLE_COULDNT_CONNECT:
        (void)curl_easy_getinfo(h->net->curl, CURLINFO_OS_ERRNO, &sys);
        return qn_fail_sys(err, QN_E_IO, sys ? (int)sys : ECONNREFUSED, "no connection to %s:%s",
                           host, o->port);
    case CURLE_OPERATION_TIMEDOUT:
        return qn_fail(err, QN_E_IO, "%s did not take the connection within %u s", host,
                       h->net->connect_ms / 1000);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return qn_fail(err, QN_E_IO, "the certificate of %s cannot be trusted: %s", host,
                       curl_easy_strerror(code));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return qn_fail(err, QN_E_FORMAT, "%s does not speak http", host);
    case CURLE_WRITE_ERROR: /* not ours, so on_header's */
        return qn_fail(err, QN_E_FORMAT, "%s sends more than %d bytes of headers", host, MAX_HEADS);
    default:
        return qn_fail(err, QN_E_IO, "%s: %s", host, curl_easy_strerror(code));
    }
}

static qn_code ask(hop *h, const origin *o, bool home)
{
    struct curl_slist *headers = NULL;
    qn_code rc = QN_OK;
    h->moved_ns = qn_clock_ns();
    h->a->bytes = UINT64_MAX;
    QN_TRY_OUT(make_headers(&headers, h->req, home, h->err));
    CURLcode code = set_up(h, o, headers);
    if (code == CURLE_OK) code = curl_easy_perform(h->net->curl);
    if (code == CURLE_OK) h->rc = tell_head(h); /* an empty body */
    QN_TRY_OUT(judge(h, code, o));
out:
    curl_slist_free_all(headers);
    return rc;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* The origin that the answer sends us to. */
static qn_code next_origin(origin *next, const origin *o, qn_net *net, qn_err *err)
{
    char *to = NULL;
    if (curl_easy_getinfo(net->curl, CURLINFO_REDIRECT_URL, &to) != CURLE_OK || !to)
        return qn_fail(err, QN_E_FORMAT, "%s redirects to nowhere", o->host);
    if (read_origin(next, to, err) != QN_OK)
        return qn_fail(err, QN_E_FORMAT, "%s redirects to what is no url", o->host);
    if ((is_https(o) && !is_https(next)) || check_scheme(next, NULL) != QN_OK)
        return qn_fail(err, QN_E_FORMAT, "%s redirects to %s by %s, expected https", o->host,
                       next->host, next->scheme);
    return QN_OK;
}

qn_code qn_net_get(qn_net *net, const qn_net_request *r, qn_net_answer *a, qn_err *err)
{
    qn_code rc = QN_OK;
    origin first = {0}, at = {0}, next = {0};
    *a = (qn_net_answer){.bytes = UINT64_MAX};
    QN_TRY_OUT(read_origin(&first, r->url, err));
    QN_TRY_OUT(check_scheme(&first, err));
    QN_TRY_OUT(read_origin(&at, r->url, err));
    for (int hops = 0;; hops++) {
        hop h = {.net = net, .req = r, .a = a, .err = err};
        *a = (qn_net_answer){.bytes = UINT64_MAX};
        QN_TRY_OUT(ask(&h, &at, same_origin(&first, &at)));
        if (!is_redirect(a->status)) break;
        if (hops == QN_NET_MAX_HOPS) {
            rc = qn_fail(err, QN_E_FORMAT, "%s redirects more than %d times", first.host, hops);
            break;
        }
        QN_TRY_OUT(next_origin(&next, &at, net, err));
        origin_fini(&at);
        at = next;
        next = (origin){0};
    }
out:
    origin_fini(&first);
    origin_fini(&at);
    origin_fini(&next);
    return rc;
}

/* -- the client -------------------------------------------------------------------------------- */

qn_code qn_net_open(qn_net **out, const qn_net_options *opt, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    /* counted and locked by the library: each client has its own share */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return qn_fail(err, QN_E_INTERNAL, "libcurl refused to start");
    const size_t n = strlen(opt->agent) + 1;
    qn_net *net = qn_zalloc(sizeof *net);
    if (net) net->agent = qn_alloc(n);
    if (!net || !net->agent) {
        rc = qn_fail(err, QN_E_NOMEM, "http client");
        goto out;
    }
    memcpy(net->agent, opt->agent, n);
    net->connect_ms = opt->connect_ms ? opt->connect_ms : QN_NET_CONNECT_MS;
    net->stall_ms = opt->stall_ms ? opt->stall_ms : QN_NET_STALL_MS;
    net->may_connect = opt->may_connect;
    net->ctx = opt->ctx;
    net->curl = curl_easy_init();
    if (!net->curl) {
        rc = qn_fail(err, QN_E_NOMEM, "http handle");
        goto out;
    }
    *out = net;
    net = NULL;
out:
    if (rc != QN_OK && !net) curl_global_cleanup();
    qn_net_close(net);
    return rc;
}

void qn_net_close(qn_net *net)
{
    if (!net) return;
    curl_easy_cleanup(net->curl);
    qn_free(net->agent);
    qn_free(net);
    curl_global_cleanup();
}
