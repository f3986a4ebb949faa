/* SPDX-License-Identifier: Apache-2.0 */
/* json_out.c - JSON straight into a buffer, without a tree: a token of a stream costs an append for
 * each run of plain bytes and nothing more.
 *
 * Thread: one buffer, one thread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_int.h"
#include "base/utf8.h"

qn_out qn_out_begin(qn_buf *buf, qn_err *err)
{
    return (qn_out){.buf = buf, .start = buf->len, .rc = QN_OK, .err = err};
}

qn_code qn_out_end(qn_out *o)
{
    if (o->rc != QN_OK) qn_buf_truncate(o->buf, o->start);
    return o->rc;
}

void qn_out_bytes(qn_out *o, const void *bytes, size_t n)
{
    if (o->rc == QN_OK) o->rc = qn_buf_append(o->buf, bytes, n, o->err);
}

/* How many bytes of text[i, n) may stand as they are: no quote, no backslash, no control, ASCII. */
static size_t plain_run(const char *text, size_t i, size_t n)
{
    const size_t first = i;
    while (i < n) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') break;
        i++;
    }
    return i - first;
}

static void put_ascii(qn_out *o, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    const char *const names = "\bb\tt\nn\ff\rr\"\"\\\\";
    for (const char *p = names; *p; p += 2) {
        if ((unsigned char)p[0] != c) continue;
        const char two[2] = {'\\', p[1]};
        qn_out_bytes(o, two, 2);
        return;
    }
    const char six[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    qn_out_bytes(o, six, 6);
}

void qn_out_escaped(qn_out *o, qn_str text)
{
    size_t i = 0;
    while (i < text.n && o->rc == QN_OK) {
        const size_t run = plain_run(text.p, i, text.n);
        if (run) qn_out_bytes(o, text.p + i, run);
        i += run;
        if (i == text.n) break;
        if ((unsigned char)text.p[i] < 0x80) {
            put_ascii(o, (unsigned char)text.p[i++]);
            continue;
        }
        uint32_t cp = 0;
        const size_t len = qn_utf8_step(text.p + i, text.n - i, &cp);
        if (cp == QN_UTF8_BAD)
            QN_OUT(o, "\xef\xbf\xbd");
        else if (cp == 0x2028)
            QN_OUT(o, "\\u2028"); /* ends a line in older JavaScript */
        else if (cp == 0x2029)
            QN_OUT(o, "\\u2029");
        else
            qn_out_bytes(o, text.p + i, len);
        i += len;
    }
}

void qn_out_str(qn_out *o, qn_str text)
{
    QN_OUT(o, "\"");
    qn_out_escaped(o, text);
    QN_OUT(o, "\"");
}

void qn_out_str_z(qn_out *o, const char *text) { qn_out_str(o, qn_str_z(text)); }

void qn_out_u64(qn_out *o, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    qn_out_bytes(o, digits + at, sizeof digits - at);
}

void qn_out_i64(qn_out *o, int64_t v)
{
    if (v < 0) QN_OUT(o, "-");
    qn_out_u64(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* A locale may write the point in its own way, in several bytes even. Returns the length. */
static size_t fix_point(char *text)
{
    size_t n = 0;
    bool pointed = false;
    for (const char *p = text; *p; p++) {
        const bool ours = strchr("0123456789eE+-", *p) != NULL;
        if (!ours && pointed) continue;
        pointed = pointed || !ours;
        text[n++] = ours ? *p : '.';
    }
    text[n] = '\0';
    return n;
}

void qn_out_f32(qn_out *o, float v)
{
    char text[64];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v) break;
    }
    qn_out_bytes(o, text, fix_point(text));
}

void qn_out_f64(qn_out *o, double v)
{
    char text[64];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    qn_out_bytes(o, text, fix_point(text));
    if (!strpbrk(text, ".eE")) QN_OUT(o, ".0");
}

void qn_out_bool(qn_out *o, bool v)
{
    if (v)
        QN_OUT(o, "true");
    else
        QN_OUT(o, "false");
}

void qn_out_json(qn_out *o, const qn_json *v)
{
    const void *it = NULL;
    const char *key = NULL, *text = NULL;
    const qn_json *member = NULL;
    size_t n = 0;
    switch (qn_json_type_of(v)) {
    case QN_JSON_NULL:
        QN_OUT(o, "null");
        break;
    case QN_JSON_BOOL:
        qn_out_bool(o, qn_json_bool(v, false));
        break;
    case QN_JSON_INT:
        qn_out_i64(o, qn_json_int(v, 0));
        break;
    case QN_JSON_REAL:
        qn_out_f64(o, qn_json_num(v, 0));
        break;
    case QN_JSON_STRING:
        text = qn_json_str(v, &n);
        qn_out_str(o, qn_str_make(text, n));
        break;
    case QN_JSON_ARRAY:
        QN_OUT(o, "[");
        for (size_t i = 0; i < qn_json_len(v); i++) {
            if (i) QN_OUT(o, ",");
            qn_out_json(o, qn_json_at(v, i));
        }
        QN_OUT(o, "]");
        break;
    case QN_JSON_OBJECT:
        QN_OUT(o, "{");
        for (bool more = false; qn_json_next(v, &it, &key, &member); more = true) {
            if (more) QN_OUT(o, ",");
            qn_out_str_z(o, key);
            QN_OUT(o, ":");
            qn_out_json(o, member);
        }
        QN_OUT(o, "}");
        break;
    }
}

void qn_out_warnings(qn_out *o, const qn_api_warnings *w)
{
    if (!w || !w->n) return;
    QN_OUT(o, "\"warnings\":[");
    for (size_t i = 0; i < w->n; i++) {
        if (i) QN_OUT(o, ",");
        qn_out_str_z(o, w->text[i]);
    }
    if (w->more) {
        QN_OUT(o, ",\"and ");
        qn_out_u64(o, w->more);
        QN_OUT(o, " more\"");
    }
    QN_OUT(o, "],");
}

void qn_out_error(qn_out *o, const qn_api_error *error)
{
    QN_OUT(o, "{\"error\":{\"message\":");
    qn_out_str_z(o, error->message);
    QN_OUT(o, ",\"type\":");
    qn_out_str_z(o, error->type ? error->type : "server_error");
    QN_OUT(o, ",\"param\":");
    if (error->param[0])
        qn_out_str_z(o, error->param);
    else
        QN_OUT(o, "null");
    QN_OUT(o, ",\"code\":");
    if (error->code)
        qn_out_str_z(o, error->code);
    else
        QN_OUT(o, "null");
    if (error->detail[0]) {
        QN_OUT(o, ",\"detail\":");
        qn_out_str_z(o, error->detail);
    }
    if (error->kind == QN_API_CONTEXT) {
        QN_OUT(o, ",\"prompt_tokens\":");
        qn_out_u64(o, error->limit[0]);
        QN_OUT(o, ",\"context_window\":");
        qn_out_u64(o, error->limit[1]);
    }
    QN_OUT(o, "}}");
}
