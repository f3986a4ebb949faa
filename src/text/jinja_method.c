/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_method.c - methods of strings and dicts, and the filters of text ("|name"). */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 28 && c <= 31);
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_alpha(char c) { return is_upper(c) || is_lower(c) || (unsigned char)c >= 0x80; }

static bool is_one_of(const char *name, const char *names)
{
    const size_t n = strlen(name);
    for (const char *s = names; n && (s = strstr(s, name)) != NULL; s += n)
        if ((s == names || s[-1] == ' ') && (s[n] == ' ' || !s[n])) return true;
    return false;
}

bool qn_jinja_has_method(qn_jv v, const char *name)
{
    switch (v.type) {
    case QN_JV_STR:
        return is_one_of(name,
                         "split rsplit strip lstrip rstrip startswith endswith replace upper lower "
                         "title capitalize find rfind index count join splitlines isdigit isalpha "
                         "isalnum isspace isupper islower removeprefix removesuffix format zfill "
                         "partition rpartition");
    case QN_JV_DICT:
        return is_one_of(name, "items keys values get copy pop update clear setdefault popitem");
    case QN_JV_LIST:
        return is_one_of(name,
                         "append extend insert pop remove clear sort reverse index count copy");
    case QN_JV_TUPLE:
        return is_one_of(name, "index count");
    case QN_JV_LOOP:
        return is_one_of(name, "cycle changed");
    case QN_JV_CYCLER:
        return is_one_of(name, "next reset");
    default:
        return false;
    }
}

qn_jv qn_jinja_case(qn_jrun *r, qn_jv s, char how)
{
    const qn_jv out = qn_jv_str(r, s.u.s, s.n);
    bool begin = true;
    if (r->rc != QN_OK || !qn_jinja_step(r, s.n / 64)) return out;
    char *p = (char *)(uintptr_t)out.u.s; /* a copy of our own */
    for (size_t i = 0; i < s.n; i++) {
        const bool up = how == 'u' || (how != 'l' && begin);
        if (up && is_lower(p[i]))
            p[i] = (char)(p[i] - 32);
        else if (!up && is_upper(p[i]))
            p[i] = (char)(p[i] + 32);
        begin = how == 't'   ? !is_alpha(s.u.s[i])
                : how == 'w' ? is_space(s.u.s[i]) || strchr("-([{<", s.u.s[i]) != NULL
                             : false;
    }
    return out;
}

qn_jv qn_jinja_strip(qn_jrun *r, qn_jv s, qn_jv chars, int sides)
{
    size_t b = 0, e = s.n;
    const bool given = chars.type == QN_JV_STR;
    const qn_jlist *set = given ? qn_jv_iter(r, chars) : NULL;
    for (int side = 1; side <= 2 && r->rc == QN_OK; side++) {
        while (b < e && (sides & side)) {
            size_t n = 1;
            bool gone = false;
            if (side == 2)
                while (n < e - b && n < 4 && ((unsigned char)s.u.s[e - n] & 0xC0) == 0x80) n++;
            else
                while (n < e - b && n < 4 && ((unsigned char)s.u.s[b + n] & 0xC0) == 0x80) n++;
            const char *c = side == 1 ? s.u.s + b : s.u.s + e - n;
            uint32_t cp = 0;
            qn_utf8_step(c, n, &cp);
            for (size_t i = 0; set && i < set->n; i++)
                gone |= set->v[i].n == n && !memcmp(set->v[i].u.s, c, n);
            if (!given)
                gone = cp < 128 ? is_space(*c)
                                : cp == 0x85 || cp == 0xA0 || cp == 0x1680 || cp == 0x3000 ||
                                      (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
                                      cp == 0x2029 || cp == 0x202F || cp == 0x205F;
            if (!gone || !qn_jinja_step(r, 1)) break;
            if (side == 1)
                b += n;
            else
                e -= n;
        }
    }
    return qn_jv_str(r, s.u.s + b, e - b);
}

qn_jv qn_jinja_replace(qn_jrun *r, qn_jv s, qn_jv old, qn_jv by, int64_t most)
{
    qn_buf b;
    size_t i = 0;
    qn_buf_init(&b, r->max_output);
    while (i <= s.n && most != 0 && qn_jinja_step(r, 1)) {
        const char *at = old.n ? memmem(s.u.s + i, s.n - i, old.u.s, old.n) : s.u.s + i;
        if (!at) break;
        qn_jinja_bytes(r, &b, s.u.s + i, (size_t)(at - s.u.s) - i);
        qn_jinja_bytes(r, &b, by.u.s, by.n);
        i = (size_t)(at - s.u.s) + old.n;
        most -= most > 0;
        if (old.n) continue;
        if (i == s.n) return qn_jv_take(r, &b);
        uint32_t cp = 0;
        const size_t n = qn_utf8_step(s.u.s + i, s.n - i, &cp);
        qn_jinja_bytes(r, &b, s.u.s + i, n);
        i += n;
    }
    if (i < s.n) qn_jinja_bytes(r, &b, s.u.s + i, s.n - i);
    return qn_jv_take(r, &b);
}

static qn_jv part(qn_jrun *r, qn_jv s, size_t b, size_t e)
{
    return qn_jv_str(r, s.u.s + b, e - b);
}

static qn_jv split_space(qn_jrun *r, qn_jv s, int64_t most)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; r->rc == QN_OK;) {
        while (i < s.n && is_space(s.u.s[i])) i++;
        if (i >= s.n) break;
        size_t e = i;
        if (most == 0) {
            for (e = s.n; is_space(s.u.s[e - 1]);) e--;
        } else {
            while (e < s.n && !is_space(s.u.s[e])) e++;
        }
        qn_jv_push(r, out, part(r, s, i, e));
        i = most == 0 ? s.n : e;
        most -= most > 0;
    }
    return out;
}

static const char *rfind(qn_jv s, size_t end, qn_jv what)
{
    if (what.n > end) return NULL;
    for (size_t i = end - what.n + 1; i-- > 0;)
        if (!memcmp(s.u.s + i, what.u.s, what.n)) return s.u.s + i;
    return NULL;
}

static qn_jv split(qn_jrun *r, qn_jv s, const qn_jargs *a, bool right)
{
    const qn_jv sep = qn_jinja_arg(a, 0, "sep", qn_jv_none());
    int64_t most = qn_jinja_int_arg(r, a, 1, "maxsplit", -1);
    if (sep.type == QN_JV_NONE) return split_space(r, s, most);
    if (sep.type != QN_JV_STR || !sep.n) return qn_jinja_fail(r, QN_E_FORMAT, "empty separator");
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    size_t i = 0, end = s.n;
    while (most != 0 && qn_jinja_step(r, 1)) {
        const char *at = right ? rfind(s, end, sep) : memmem(s.u.s + i, s.n - i, sep.u.s, sep.n);
        if (!at) break;
        const size_t p = (size_t)(at - s.u.s);
        qn_jv_push(r, out, right ? part(r, s, p + sep.n, end) : part(r, s, i, p));
        if (right)
            end = p;
        else
            i = p + sep.n;
        most -= most > 0;
    }
    qn_jv_push(r, out, part(r, s, i, end));
    const qn_jargs none = {0};
    return right && r->rc == QN_OK ? qn_jinja_filter(r, "reverse", out, &none) : out;
}

static qn_jv splitlines(qn_jrun *r, qn_jv s, bool keep)
{
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; i < s.n && r->rc == QN_OK;) {
        size_t e = i;
        while (e < s.n && s.u.s[e] != '\n' && s.u.s[e] != '\r') e++;
        size_t next = e < s.n ? e + 1 : e;
        if (e + 1 < s.n && s.u.s[e] == '\r' && s.u.s[e + 1] == '\n') next++;
        qn_jv_push(r, out, part(r, s, i, keep ? next : e));
        i = next;
    }
    return out;
}

static bool affix(qn_jrun *r, qn_jv s, qn_jv what, bool end)
{
    if (what.type == QN_JV_TUPLE) {
        for (size_t i = 0; i < what.u.list->n; i++)
            if (what.u.list->v[i].type == QN_JV_STR && affix(r, s, what.u.list->v[i], end))
                return true;
        return false;
    }
    if (what.type != QN_JV_STR) {
        qn_jinja_fail(r, QN_E_FORMAT, "a string begins or ends with strings, found %s",
                      qn_jv_type(what));
        return false;
    }
    return what.n <= s.n && !memcmp(s.u.s + (end ? s.n - what.n : 0), what.u.s, what.n);
}

static bool all_are(qn_jv s, const char *name)
{
    bool cased = false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.u.s[i];
        cased |= is_upper(c) || is_lower(c);
        if (!strcmp(name, "isdigit")   ? !is_digit(c)
            : !strcmp(name, "isalpha") ? !is_alpha(c)
            : !strcmp(name, "isalnum") ? !is_alpha(c) && !is_digit(c)
            : !strcmp(name, "isspace") ? !is_space(c)
            : !strcmp(name, "isupper") ? is_lower(c)
                                       : is_upper(c))
            return false;
    }
    return s.n && (cased || (strcmp(name, "isupper") && strcmp(name, "islower")));
}

/* "{}", "{0}", "{name}" without a format. */
static qn_jv brace_format(qn_jrun *r, qn_jv s, const qn_jargs *a)
{
    qn_buf b;
    size_t next = 0;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; i < s.n && r->rc == QN_OK; i++) {
        const char c = s.u.s[i];
        if ((c != '{' && c != '}') || (i + 1 < s.n && s.u.s[i + 1] == c)) {
            i += c == '{' || c == '}';
            qn_jinja_bytes(r, &b, &c, 1);
            continue;
        }
        const char *end = c == '{' ? memchr(s.u.s + i, '}', s.n - i) : NULL;
        if (!end || memchr(s.u.s + i, ':', (size_t)(end - s.u.s) - i)) {
            qn_jinja_fail(r, QN_E_FORMAT, "format takes {}, {0} or {name}");
            break;
        }
        const qn_jv name = part(r, s, i + 1, (size_t)(end - s.u.s));
        const bool number = name.n < 6 && strspn(name.u.s, "0123456789") == name.n;
        const size_t at = !name.n ? next++ : number ? (size_t)strtol(name.u.s, NULL, 10) : SIZE_MAX;
        const qn_jv v = qn_jinja_arg(a, at, name.u.s, qn_jv_undef(NULL));
        if (v.type == QN_JV_UNDEF) qn_jinja_fail(r, QN_E_FORMAT, "too few values for format");
        if (r->rc == QN_OK) qn_jv_write(r, &b, v, false);
        i = (size_t)(end - s.u.s);
    }
    return qn_jv_take(r, &b);
}

static qn_jv partition(qn_jrun *r, qn_jv s, qn_jv sep, bool right)
{
    const qn_jv out = qn_jv_list(r, QN_JV_TUPLE, 3);
    if (sep.type != QN_JV_STR || !sep.n) return qn_jinja_fail(r, QN_E_FORMAT, "empty separator");
    const char *at = right ? rfind(s, s.n, sep) : memmem(s.u.s, s.n, sep.u.s, sep.n);
    const size_t p = at ? (size_t)(at - s.u.s) : right ? 0 : s.n, q = at ? p + sep.n : p;
    qn_jv_push(r, out, part(r, s, 0, p));
    qn_jv_push(r, out, part(r, s, p, q));
    qn_jv_push(r, out, part(r, s, q, s.n));
    return out;
}

static qn_jv search(qn_jrun *r, qn_jv s, const char *name, qn_jv what)
{
    if (what.type != QN_JV_STR) return qn_jinja_fail(r, QN_E_FORMAT, "%s takes a string", name);
    if (!strcmp(name, "count")) {
        int64_t n = 0;
        if (!what.n) return qn_jv_int((int64_t)qn_jv_chars(s) + 1);
        for (const char *p = s.u.s; (p = memmem(p, s.n - (size_t)(p - s.u.s), what.u.s, what.n));
             n++)
            p += what.n;
        return qn_jv_int(n);
    }
    const char *at = *name == 'r' ? rfind(s, s.n, what) : memmem(s.u.s, s.n, what.u.s, what.n);
    if (!at && strstr(name, "index")) return qn_jinja_fail(r, QN_E_FORMAT, "substring not found");
    return qn_jv_int(at ? (int64_t)qn_jv_chars(qn_jv_borrow(s.u.s, (size_t)(at - s.u.s))) : -1);
}

static qn_jv pad(qn_jrun *r, qn_jv s, int64_t width, bool zeros)
{
    const int64_t more = width - (int64_t)qn_jv_chars(s);
    const int64_t left = zeros ? more : more / 2;
    const size_t sign = zeros && s.n && (*s.u.s == '-' || *s.u.s == '+') ? 1 : 0;
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    qn_jinja_bytes(r, &b, s.u.s, sign);
    for (int64_t i = 0; i < left && r->rc == QN_OK; i++)
        qn_jinja_bytes(r, &b, zeros ? "0" : " ", 1);
    qn_jinja_bytes(r, &b, s.u.s + sign, s.n - sign);
    for (int64_t i = left; i < more && r->rc == QN_OK; i++) qn_jinja_bytes(r, &b, " ", 1);
    return qn_jv_take(r, &b);
}

static qn_jv indent(qn_jrun *r, qn_jv s, const qn_jargs *a)
{
    const qn_jv width = qn_jinja_arg(a, 0, "width", qn_jv_int(4));
    const bool first = qn_jv_true(qn_jinja_arg(a, 1, "first", qn_jv_bool(false)));
    const bool blank = qn_jv_true(qn_jinja_arg(a, 2, "blank", qn_jv_bool(false)));
    const qn_jv by = width.type == QN_JV_STR ? width : qn_jinja_binary(r, '*', qn_jv_z(" "), width);
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0, e = 0; i <= s.n && qn_jinja_step(r, 1); i = e + 1) {
        const char *nl = i < s.n ? memchr(s.u.s + i, '\n', s.n - i) : NULL;
        e = nl ? (size_t)(nl - s.u.s) : s.n;
        if (i ? blank || e > i : first) qn_jinja_bytes(r, &b, by.u.s, by.n);
        qn_jinja_bytes(r, &b, s.u.s + i, e - i + (nl != NULL));
        if (!nl) break;
    }
    return qn_jv_take(r, &b);
}

static qn_jv escaped(qn_jrun *r, qn_jv s, bool url)
{
    static const char hex[] = "0123456789ABCDEF";
    qn_buf b;
    qn_buf_init(&b, r->max_output);
    for (size_t i = 0; i < s.n && r->rc == QN_OK; i++) {
        const char c = s.u.s[i];
        const char *as = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : NULL;
        const bool plain =
            (is_alpha(c) && (unsigned char)c < 0x80) || is_digit(c) || (c && strchr("_.-~/", c));
        const char code[3] = {'%', hex[(unsigned char)c >> 4], hex[c & 15]};
        if (url && !plain)
            qn_jinja_bytes(r, &b, code, 3);
        else if (as && !url)
            qn_jinja_bytes(r, &b, as, strlen(as));
        else
            qn_jinja_bytes(r, &b, &c, 1);
    }
    return qn_jv_take(r, &b);
}

static qn_jv truncate(qn_jrun *r, qn_jv s, const qn_jargs *a)
{
    const int64_t n = qn_jinja_int_arg(r, a, 0, "length", 255);
    const bool kill = qn_jv_true(qn_jinja_arg(a, 1, "killwords", qn_jv_bool(false)));
    const qn_jv end = qn_jv_text(r, qn_jinja_arg(a, 2, "end", qn_jv_z("...")));
    const int64_t leeway = qn_jinja_int_arg(r, a, 3, "leeway", 5);
    const int64_t chars = (int64_t)qn_jv_chars(s), keep = n - (int64_t)qn_jv_chars(end);
    if (r->rc != QN_OK || chars <= n + leeway) return s;
    const qn_jv at[3] = {qn_jv_none(), qn_jv_int(keep), qn_jv_none()};
    qn_jv head = qn_jv_slice(r, s, at);
    const char *space = kill || r->rc != QN_OK ? NULL : rfind(head, head.n, qn_jv_z(" "));
    if (space) head = part(r, head, 0, (size_t)(space - head.u.s));
    return qn_jinja_binary(r, '+', head, end);
}

static qn_jv text_filter(qn_jrun *r, qn_jv s, const char *name, const qn_jargs *a)
{
    const qn_jargs none = {0};
    if (!strcmp(name, "trim"))
        return qn_jinja_strip(r, s, qn_jinja_arg(a, 0, "chars", qn_jv_none()), 3);
    if (!strcmp(name, "title")) return qn_jinja_case(r, s, 'w');
    if (!strcmp(name, "indent")) return indent(r, s, a);
    if (!strcmp(name, "escape") || !strcmp(name, "e")) return escaped(r, s, false);
    if (!strcmp(name, "urlencode")) return escaped(r, s, true);
    if (!strcmp(name, "safe")) return s;
    if (!strcmp(name, "truncate")) return truncate(r, s, a);
    if (!strcmp(name, "center")) return pad(r, s, qn_jinja_int_arg(r, a, 0, "width", 80), false);
    if (!strcmp(name, "wordcount"))
        return qn_jinja_filter(r, "length", split_space(r, s, -1), &none);
    return qn_jinja_method(r, s, name, a);
}

static qn_jv str_method(qn_jrun *r, qn_jv s, const char *name, const qn_jargs *a)
{
    const qn_jv x = qn_jinja_arg(a, 0, "chars", qn_jv_none());
    if (*name == '|') return text_filter(r, s, name + 1, a);
    if (!strcmp(name, "split") || !strcmp(name, "rsplit")) return split(r, s, a, *name == 'r');
    if (!strcmp(name, "strip")) return qn_jinja_strip(r, s, x, 3);
    if (!strcmp(name, "lstrip")) return qn_jinja_strip(r, s, x, 1);
    if (!strcmp(name, "rstrip")) return qn_jinja_strip(r, s, x, 2);
    if (!strcmp(name, "startswith")) return qn_jv_bool(affix(r, s, x, false));
    if (!strcmp(name, "endswith")) return qn_jv_bool(affix(r, s, x, true));
    if (!strcmp(name, "upper") || !strcmp(name, "lower") || !strcmp(name, "title") ||
        !strcmp(name, "capitalize"))
        return qn_jinja_case(r, s, *name);
    if (!strncmp(name, "is", 2)) return qn_jv_bool(all_are(s, name));
    if (!strcmp(name, "splitlines")) return splitlines(r, s, qn_jv_true(x));
    if (!strcmp(name, "format")) return brace_format(r, s, a);
    if (!strcmp(name, "zfill")) return pad(r, s, qn_jinja_int_arg(r, a, 0, "width", 0), true);
    if (strstr(name, "partition")) return partition(r, s, x, *name == 'r');
    if (!strcmp(name, "join")) {
        const qn_jargs sep = {.v = &s, .n = 1};
        return qn_jinja_filter(r, "join", x, &sep);
    }
    if (!strcmp(name, "replace")) {
        const qn_jv old = qn_jinja_arg(a, 0, "old", qn_jv_none()),
                    by = qn_jinja_arg(a, 1, "new", old);
        if (old.type != QN_JV_STR || by.type != QN_JV_STR)
            return qn_jinja_fail(r, QN_E_FORMAT, "replace takes strings");
        return qn_jinja_replace(r, s, old, by, qn_jinja_int_arg(r, a, 2, "count", -1));
    }
    if (!strncmp(name, "remove", 6)) {
        const bool end = !strcmp(name, "removesuffix"),
                   has = affix(r, s, x, end) && x.type == QN_JV_STR;
        return has ? part(r, s, end ? 0 : x.n, end ? s.n - x.n : s.n) : s;
    }
    return search(r, s, name, x);
}

qn_jv qn_jinja_method(qn_jrun *r, qn_jv v, const char *name, const qn_jargs *a)
{
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_STR) return str_method(r, v, name, a);
    if (v.type == QN_JV_DICT && is_one_of(name, "items keys values get copy")) {
        const qn_jargs none = {0};
        if (!strcmp(name, "copy")) return v;
        if (!strcmp(name, "items")) return qn_jinja_filter(r, "items", v, &none);
        if (!strcmp(name, "get")) {
            const qn_jv *x = a->n ? qn_jv_find(r, v, a->v[0]) : NULL;
            return x ? *x : qn_jinja_arg(a, 1, "default", qn_jv_none());
        }
        const qn_jv out = qn_jv_list(r, QN_JV_LIST, 0);
        for (size_t i = 0; i < v.u.dict->n && r->rc == QN_OK; i++)
            qn_jv_push(r, out, v.u.dict->kv[2 * i + (*name == 'v')]);
        return out;
    }
    if (qn_jv_is_seq(v) && (!strcmp(name, "index") || !strcmp(name, "count")) && a->n) {
        int64_t n = 0;
        for (size_t i = 0; i < v.u.list->n; i++) {
            const bool same = qn_jv_equal(r, v.u.list->v[i], a->v[0]);
            if (same && *name == 'i') return qn_jv_int((int64_t)i);
            n += same;
        }
        return *name == 'c' ? qn_jv_int(n)
                            : qn_jinja_fail(r, QN_E_FORMAT, "the list has no such value");
    }
    if (!strcmp(name, "copy")) return v;
    return qn_jinja_fail(r, QN_E_FORMAT, "templates may not change values: %s.%s", qn_jv_type(v),
                         name);
}
