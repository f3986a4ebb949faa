/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - text views and strict numbers. */
#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 1024 }; /* bytes of a decimal that parse_f64 accepts, the NUL included */

qn_str qn_str_z(const char *text) { return (qn_str){text, text ? strlen(text) : 0}; }

bool qn_str_eq(qn_str a, qn_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool qn_str_eq_z(qn_str a, const char *b) { return qn_str_eq(a, qn_str_z(b)); }

int qn_str_cmp(qn_str a, qn_str b)
{
    const size_t n = a.n < b.n ? a.n : b.n;
    const int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

bool qn_str_has_prefix(qn_str s, qn_str prefix)
{
    return s.n >= prefix.n && qn_str_eq(qn_str_slice(s, 0, prefix.n), prefix);
}

bool qn_str_has_suffix(qn_str s, qn_str suffix)
{
    return s.n >= suffix.n && qn_str_eq(qn_str_slice(s, s.n - suffix.n, s.n), suffix);
}

size_t qn_str_find(qn_str s, qn_str needle, size_t from)
{
    if (from > s.n) return SIZE_MAX;
    if (needle.n == 0) return from;
    if (s.n - from < needle.n) return SIZE_MAX;
    const char *hit = memmem(s.p + from, s.n - from, needle.p, needle.n);
    return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

qn_str qn_str_slice(qn_str s, size_t begin, size_t end)
{
    if (end > s.n) end = s.n;
    if (begin > end) begin = end;
    return (qn_str){s.p ? s.p + begin : NULL, end - begin};
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

qn_str qn_str_trim(qn_str s)
{
    while (s.n && is_space(s.p[s.n - 1])) s.n--;
    while (s.n && is_space(*s.p)) {
        s.p++;
        s.n--;
    }
    return s;
}

bool qn_str_split(qn_str *piece, qn_str *rest, char separator)
{
    if (!rest->p && rest->n == 0) return false;
    const char *hit = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    if (!hit) {
        *piece = *rest;
        *rest = (qn_str){NULL, 0};
        return true;
    }
    const size_t n = (size_t)(hit - rest->p);
    *piece = (qn_str){rest->p, n};
    *rest = (qn_str){hit + 1, rest->n - n - 1};
    return true;
}

bool qn_str_parse_u64(uint64_t *out, qn_str s)
{
    uint64_t v = 0;
    if (s.n == 0) return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool qn_str_parse_i64(int64_t *out, qn_str s)
{
    const bool minus = s.n && s.p[0] == '-';
    uint64_t v = 0;
    if (!qn_str_parse_u64(&v, minus ? qn_str_slice(s, 1, s.n) : s)) return false;
    if (v > (uint64_t)INT64_MAX + (minus ? 1 : 0)) return false;
    *out = minus ? (int64_t)(~v + 1) : (int64_t)v; /* two's complement: -2^63 included */
    return true;
}

static const char *digits(const char *p)
{
    while (*p >= '0' && *p <= '9') p++;
    return p;
}

/* RFC 8259, section 6: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? and then the end. */
static bool is_json_number(const char *p)
{
    if (*p == '-') p++;
    const char *end = digits(p);
    if (end == p || (*p == '0' && end != p + 1)) return false;
    p = end;
    if (*p == '.') {
        end = digits(++p);
        if (end == p) return false;
        p = end;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-') p++;
        end = digits(p);
        if (end == p) return false;
        p = end;
    }
    return *p == '\0';
}

/* A host program may have set a locale with a decimal comma, so the C locale is named; glibc hands
 * out its built-in one without an allocation. */
bool qn_str_parse_f64(double *out, qn_str s)
{
    char text[NUMBER_MAX];
    if (s.n == 0 || s.n >= sizeof text || memchr(s.p, '\0', s.n)) return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (!is_json_number(text)) return false;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return false;
    const double v = strtod_l(text, NULL, c);
    freelocale(c);
    if (!isfinite(v)) return false;
    *out = v;
    return true;
}
