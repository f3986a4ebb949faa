/* SPDX-License-Identifier: Apache-2.0 */
/* http_read.c - http_read.h on http-parser, whose only user this file is. The library knows the grammar of
 * a message; what is asked of a request beside it (ceilings, versions, fields that may come once) is
 * here, and so is what its build in Debian (HTTP_PARSER_STRICT 0) lets pass: other bytes where CR LF ends a
 * line, folded headers, spaces in names, controls in values.
 *
 * Owner, thread: as the header says.
 */
#include "server/http_read.h"

#include <http_parser.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"

enum { NAME = 20, KEPT = 8, BODY_STEP = 1 << 16 };

typedef struct kept_field { /* name of a header, and where its value goes */
    const char *name;
    size_t at; /* offset in qn_http_request */
} kept_field;

static const kept_field kept[KEPT] = {
    {"host", offsetof(qn_http_request, host)},
    {"origin", offsetof(qn_http_request, origin)},
    {"sec-fetch-site", offsetof(qn_http_request, fetch_site)},
    {"sec-fetch-mode", offsetof(qn_http_request, fetch_mode)},
    {"authorization", offsetof(qn_http_request, authorization)},
    {"x-api-key", offsetof(qn_http_request, api_key)},
    {"if-none-match", offsetof(qn_http_request, if_none_match)},
    {"content-type", offsetof(qn_http_request, content_type)},
};

struct qn_http_reader {
    http_parser parser;
    qn_http_request req;
    qn_buf text, body; /* text: the target, then the kept values */
    size_t max_header, max_body, head_bytes, target_n, value_at;
    size_t from[KEPT], to[KEPT]; /* values in text; `to` 0: not there */
    uint32_t lines, seen;
    int status, field; /* field: which one the value belongs to; -1: none */
    uint8_t name_n;
    uint8_t before; /* the byte before those of this feed */
    bool in_value, in_body, done, expects, keep, old;
    char name[NAME];
};

/* -- what the library calls -------------------------------------------------------------------- */

static int refuse(qn_http_reader *r, int status)
{
    r->status = status;
    return 1;
}

static int on_target(http_parser *p, const char *at, size_t n)
{
    qn_http_reader *r = p->data;
    if (r->text.len + n > QN_HTTP_MAX_TARGET) return refuse(r, 414);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)at[i] <= 0x20 || at[i] == 0x7f) return refuse(r, 400);
    if (qn_buf_append(&r->text, at, n, NULL) != QN_OK) return refuse(r, 503);
    r->target_n = r->text.len;
    return 0;
}

/* Behind a value. A field that decides who may ask is not to come twice. */
static int end_value(qn_http_reader *r)
{
    if (!r->in_value) return 0;
    r->in_value = false;
    r->name_n = 0;
    if (r->field < 0) return 0;
    const uint32_t bit = 1u << r->field;
    if (r->seen & bit) return refuse(r, 400);
    r->seen |= bit;
    r->from[r->field] = r->value_at;
    r->to[r->field] = r->text.len;
    return 0;
}

static bool is_token(const char *at, size_t n)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        const char c = at[i], low = (char)(c | 0x20);
        const bool plain = (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9');
        if (!plain && !(c && strchr(others, c))) return false;
    }
    return true;
}

static int on_field(http_parser *p, const char *at, size_t n)
{
    qn_http_reader *r = p->data;
    if (!is_token(at, n)) return refuse(r, 400);
    if (r->in_body) return 0; /* a trailer */
    if (end_value(r) != 0) return 1;
    if (r->name_n == 0 && ++r->lines > QN_HTTP_MAX_LINES) return refuse(r, 431);
    const size_t room = NAME - (size_t)r->name_n, take = n < room ? n : room;
    memcpy(r->name + r->name_n, at, take);
    r->name_n = (uint8_t)(r->name_n + take);
    return 0;
}

static bool is_name(const qn_http_reader *r, const char *name)
{
    return r->name_n == strlen(name) && strncasecmp(r->name, name, r->name_n) == 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
    qn_http_reader *r = p->data;
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)at[i] < 0x20 && at[i] != '\t') || at[i] == 0x7f) return refuse(r, 400);
    if (r->in_body) return 0;
    if (!r->in_value) {
        r->in_value = true;
        r->value_at = r->text.len;
        r->expects = r->expects || is_name(r, "expect");
        r->field = -1;
        for (int i = 0; i < KEPT; i++)
            if (is_name(r, kept[i].name)) r->field = i;
    }
    if (r->field < 0) return 0;
    return qn_buf_append(&r->text, at, n, NULL) == QN_OK ? 0 : refuse(r, 503);
}

static int on_head(http_parser *p)
{
    qn_http_reader *r = p->data;
    (void)end_value(r); /* to return 1 here would mean something else; the status tells */
    p->upgrade = 0;     /* none is offered: the request is answered as what it is */
    http_parser_pause(p, 1);
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    qn_http_reader *r = p->data;
    const qn_code rc = qn_buf_append(&r->body, at, n, NULL);
    return rc == QN_OK ? 0 : refuse(r, rc == QN_E_LIMIT ? 413 : 503);
}

/* The library tells a chunk's size before its bytes come. */
static int on_chunk(http_parser *p)
{
    qn_http_reader *r = p->data;
    if (p->content_length > r->max_body - r->body.len) return refuse(r, 413);
    http_parser_pause(p, 1);
    return 0;
}

static int on_chunk_end(http_parser *p)
{
    if (!(p->flags & F_TRAILING)) http_parser_pause(p, 1); /* else it is the message's own end */
    return 0;
}

static int on_done(http_parser *p)
{
    ((qn_http_reader *)p->data)->done = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings callbacks = {.on_url = on_target,
                                               .on_header_field = on_field,
                                               .on_header_value = on_value,
                                               .on_headers_complete = on_head,
                                               .on_body = on_body,
                                               .on_message_complete = on_done,
                                               .on_chunk_header = on_chunk,
                                               .on_chunk_complete = on_chunk_end};

/* -- the head ---------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. %00 and broken escapes: no path. */
static bool decode(char *text, size_t *n)
{
    size_t to = 0;
    for (size_t i = 0; i < *n; i++) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= *n || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) return false;
            c = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        }
        if (c == '\0') return false;
        text[to++] = c;
    }
    *n = to;
    return true;
}

/* "/path?query", "http://host/path" or "*". */
static bool read_target(qn_http_reader *r)
{
    struct http_parser_url u;
    char *text = (char *)r->text.data;
    size_t n = r->target_n;
    if (r->parser.method == HTTP_CONNECT || !n) return false;
    if (text[0] != '/' && text[0] != '*') {
        http_parser_url_init(&u);
        if (http_parser_parse_url(text, n, 0, &u) != 0) return false;
        if (!(u.field_set & (1 << UF_PATH))) {
            r->req.path = QN_STR("/");
            return true;
        }
        text += u.field_data[UF_PATH].off;
        n = u.field_data[UF_PATH].len;
    }
    const char *end = memchr(text, '?', n);
    if (!end) end = memchr(text, '#', n);
    if (end) n = (size_t)(end - text);
    if (!decode(text, &n)) return false;
    r->req.path = qn_str_make(text, n);
    return true;
}

static qn_http_step bad(qn_http_reader *r, int status)
{
    r->status = status;
    return QN_HTTP_BAD;
}

static qn_http_step read_head(qn_http_reader *r)
{
    const http_parser *p = &r->parser;
    const bool has_length = (p->flags & F_CONTENTLENGTH) != 0;
    r->old = p->http_major == 1 && p->http_minor == 0;
    r->keep = http_should_keep_alive(p) != 0;
    if (p->http_major != 1) return bad(r, 505);
    if (p->uses_transfer_encoding && (r->old || has_length || !(p->flags & F_CHUNKED)))
        return bad(r, 400); /* two ideas of where the request ends */
    if (!read_target(r)) return bad(r, 400);
    r->req.method = qn_str_z(http_method_str((enum http_method)p->method));
    for (size_t i = 0; i < KEPT; i++) {
        qn_str *to = (qn_str *)(void *)((char *)&r->req + kept[i].at);
        if (r->to[i])
            *to = qn_str_trim(
                qn_str_make((const char *)r->text.data + r->from[i], r->to[i] - r->from[i]));
    }
    r->req.chunked = p->uses_transfer_encoding;
    r->req.has_length = has_length;
    r->req.length = has_length ? p->content_length : 0;
    r->req.has_body = r->req.chunked || r->req.length > 0;
    r->expects = r->expects && !r->old && r->req.has_body;
    r->in_body = true;
    return QN_HTTP_HEAD;
}

/* -- bytes ------------------------------------------------------------------------------------- */

/* Whether bytes[at] is the second byte of CR LF; at may be 0. */
static bool is_line_end(const qn_http_reader *r, const uint8_t *bytes, size_t at)
{
    return bytes[at] == '\n' && (at ? bytes[at - 1] : r->before) == '\r';
}

/* What the library said when it stopped before the end of what it was given. */
static qn_http_step stopped(qn_http_reader *r, const uint8_t *bytes, size_t used)
{
    const enum http_errno e = HTTP_PARSER_ERRNO(&r->parser);
    if (r->status) return QN_HTTP_BAD;
    if (e != HPE_PAUSED) return bad(r, e == HPE_HEADER_OVERFLOW ? 431 : 400);
    http_parser_pause(&r->parser, 0);
    if (r->done) {
        r->req.body = qn_str_make(qn_buf_text(&r->body), r->body.len);
        return !r->req.chunked || is_line_end(r, bytes, used - 1) ? QN_HTTP_DONE : bad(r, 400);
    }
    if (r->in_body) /* a chunk's size, or its end */
        return is_line_end(r, bytes, used - 1) ? QN_HTTP_MORE : bad(r, 400);
    return is_line_end(r, bytes, used) ? read_head(r) : bad(r, 400); /* it is yet to be taken */
}

/* CR LF ends each line of a head, and no header goes on in the next line: where parsers take these in
 * different ways, two of them in a row see different requests. */
static bool is_loose(const qn_http_reader *r, const uint8_t *bytes, size_t n)
{
    uint8_t before = r->before;
    for (size_t i = 0; i < n; before = bytes[i++]) {
        if ((before == '\r') != (bytes[i] == '\n')) return true;
        if (before == '\n' && (bytes[i] == ' ' || bytes[i] == '\t')) return true;
    }
    return false;
}

/* No more than the ceiling is shown to the library before the headers are whole, so that what is refused
 * does not depend on how the bytes were cut. */
qn_http_step qn_http_reader_feed(qn_http_reader *r, size_t *used, const void *bytes, size_t n)
{
    const size_t room = r->max_header - r->head_bytes;
    const bool cut = !r->in_body && n > room;
    const size_t give = cut ? room : n;
    qn_http_step step = cut ? QN_HTTP_BAD : QN_HTTP_MORE;
    *used = 0;
    if (give) { /* to the library, no bytes mean the end */
        *used = http_parser_execute(&r->parser, &callbacks, bytes, give);
        if (!r->in_body) r->head_bytes += *used;
        if (!r->in_body && is_loose(r, bytes, *used)) r->status = 400;
        if (r->status || HTTP_PARSER_ERRNO(&r->parser) != HPE_OK) step = stopped(r, bytes, *used);
        if (*used) r->before = ((const uint8_t *)bytes)[*used - 1];
    }
    if (step == QN_HTTP_BAD && !r->status) r->status = 431;
    return step;
}

const qn_http_request *qn_http_reader_request(const qn_http_reader *r) { return &r->req; }
int qn_http_reader_status(const qn_http_reader *r) { return r->status; }
bool qn_http_reader_keep(const qn_http_reader *r) { return r->keep; }
bool qn_http_reader_old(const qn_http_reader *r) { return r->old; }
bool qn_http_reader_expects(const qn_http_reader *r) { return r->expects; }

qn_code qn_http_reader_new(qn_http_reader **out, size_t max_header, size_t max_body, qn_err *err)
{
    *out = NULL;
    qn_http_reader *r = qn_zalloc(sizeof *r);
    if (!r) return qn_fail(err, QN_E_NOMEM, "no memory for a request");
    http_parser_init(&r->parser, HTTP_REQUEST);
    r->parser.data = r;
    r->max_header = max_header;
    r->max_body = max_body;
    qn_buf_init(&r->text, max_header);
    qn_buf_init(&r->body, max_body);
    *out = r;
    return QN_OK;
}

void qn_http_reader_free(qn_http_reader *r)
{
    if (!r) return;
    qn_buf_fini(&r->text);
    qn_buf_fini(&r->body);
    qn_free(r);
}
