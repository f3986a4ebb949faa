/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.c - see json_scan.h; RFC 8259 for what it reads. */
#include "text/json_scan.h"

#include <string.h>

void qn_jscan_init(qn_jscan *s, qn_str text, qn_err *err)
{
    *s = (qn_jscan){.start = text.p, .p = text.p, .end = text.p + text.n, .err = err};
    qn_buf_init(&s->scratch[0], text.n);
    qn_buf_init(&s->scratch[1], text.n);
}

void qn_jscan_fini(qn_jscan *s)
{
    qn_buf_fini(&s->scratch[0]);
    qn_buf_fini(&s->scratch[1]);
}

char qn_jscan_peek(qn_jscan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
    return s->p < s->end ? *s->p : '\0';
}

static qn_code bad(const qn_jscan *s, const char *expected)
{
    const size_t at = (size_t)(s->p - s->start);
    if (s->p >= s->end)
        return qn_fail(s->err, QN_E_FORMAT, "json ends at byte %zu, expected %s", at, expected);
    return qn_fail(s->err, QN_E_FORMAT, "json byte %zu: found 0x%02x, expected %s", at,
                   (unsigned)(unsigned char)*s->p, expected);
}

qn_code qn_jscan_expect(qn_jscan *s, char c)
{
    const char what[] = {'\'', c, '\'', '\0'};
    if (qn_jscan_peek(s) != c || s->p >= s->end) return bad(s, what);
    s->p++;
    return QN_OK;
}

static bool hex4(const qn_jscan *s, uint32_t *out)
{
    uint32_t v = 0;
    if (s->end - s->p < 4) return false;
    for (int k = 0; k < 4; k++) {
        const char c = s->p[k], low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            v = v * 16 + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v * 16 + (uint32_t)(low - 'a') + 10;
        else
            return false;
    }
    *out = v;
    return true;
}

/* \uXXXX, its two letters taken already; a surrogate needs its partner. */
static qn_code unicode_escape(qn_jscan *s, qn_buf *out)
{
    uint32_t c = 0, low = 0;
    char bytes[4];
    if (!hex4(s, &c)) return bad(s, "four hex digits");
    s->p += 4;
    if (c >= 0xD800 && c < 0xDC00) {
        if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
            return bad(s, "a low surrogate");
        s->p += 2;
        if (!hex4(s, &low) || low < 0xDC00 || low > 0xDFFF) return bad(s, "a low surrogate");
        s->p += 4;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    const size_t n = qn_utf8_encode(bytes, c);
    if (n == 0) return bad(s, "a character, not half a surrogate pair");
    return qn_buf_append(out, bytes, n, s->err);
}

static qn_code escape(qn_jscan *s, qn_buf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    s->p++;
    if (s->p >= s->end) return bad(s, "an escape");
    if (*s->p == 'u') {
        s->p++;
        return unicode_escape(s, out);
    }
    const char *k = *s->p ? strchr(from, *s->p) : NULL;
    if (!k) return bad(s, "an escape");
    s->p++;
    return qn_buf_append_byte(out, (uint8_t)to[k - from], s->err);
}

qn_code qn_jscan_string(qn_jscan *s, qn_str *out)
{
    QN_TRY(qn_jscan_expect(s, '"'));
    const char *begin = s->p;
    qn_buf *decoded = NULL;
    for (;;) {
        while (s->p < s->end && *s->p != '"' && *s->p != '\\' && (unsigned char)*s->p >= 0x20)
            s->p++;
        if (s->p >= s->end || (unsigned char)*s->p < 0x20) return bad(s, "the end of a string");
        if (*s->p == '"' && !decoded) {
            *out = (qn_str){begin, (size_t)(s->p - begin)};
            break;
        }
        if (!decoded) {
            decoded = &s->scratch[s->turn++ % 2];
            qn_buf_truncate(decoded, 0);
        }
        QN_TRY(qn_buf_append(decoded, begin, (size_t)(s->p - begin), s->err));
        if (*s->p == '"') {
            *out = (qn_str){qn_buf_text(decoded), decoded->len};
            break;
        }
        QN_TRY(escape(s, decoded));
        begin = s->p;
    }
    s->p++;
    return QN_OK;
}

qn_code qn_jscan_u32(qn_jscan *s, uint32_t *out)
{
    const char *begin = (qn_jscan_peek(s), s->p);
    uint64_t v = 0;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9' && v <= UINT32_MAX)
        v = v * 10 + (uint64_t)(*s->p++ - '0');
    if (s->p == begin || v > UINT32_MAX || (*begin == '0' && s->p - begin > 1))
        return bad(s, "a whole number below 2^32");
    if (s->p < s->end && (*s->p == '.' || *s->p == 'e' || *s->p == 'E'))
        return bad(s, "a whole number");
    *out = (uint32_t)v;
    return QN_OK;
}

static qn_code skip_string(qn_jscan *s)
{
    for (s->p++; s->p < s->end; s->p++) {
        if (*s->p == '"') {
            s->p++;
            return QN_OK;
        }
        if (*s->p == '\\') s->p++;
    }
    s->p = s->end;
    return bad(s, "the end of a string");
}

qn_code qn_jscan_skip(qn_jscan *s)
{
    size_t depth = 0;
    const char *begin = (qn_jscan_peek(s), s->p);
    for (;;) {
        const char c = depth || s->p == begin ? qn_jscan_peek(s) : s->p < s->end ? *s->p : '\0';
        if (s->p >= s->end) return depth ? bad(s, "the end of a value") : QN_OK;
        if (depth == 0 && s->p != begin && strchr(",:]} \n\r\t", c)) return QN_OK;
        if (c == '"') {
            QN_TRY(skip_string(s));
        } else {
            if (c == '{' || c == '[') depth++;
            if (c == '}' || c == ']') {
                if (depth == 0) return bad(s, "a value");
                depth--;
            }
            s->p++;
            if (depth != 0 || (c != '}' && c != ']')) continue;
        }
        if (depth == 0) return QN_OK;
    }
}

qn_code qn_jscan_more(qn_jscan *s, char close, bool *more)
{
    const char c = qn_jscan_peek(s);
    *more = c == ',';
    if (s->p >= s->end || (c != ',' && c != close)) return bad(s, "',' or the end of the list");
    s->p++;
    return QN_OK;
}
