/* SPDX-License-Identifier: Apache-2.0 */
/* added.c - finds added tokens: leftmost first, longest among those.
 *
 * The spellings are sorted; at each place of the text the range of those that agree so far is
 * narrowed byte by byte. A table over the first byte lets most places of a text cost one look.
 */
#include "base/alloc.h"
#include "text/tokenizer_int.h"

#include <stdlib.h>

qn_code qn_added_put(qn_added_set *s, qn_str text, qn_added token, qn_err *err)
{
    if (s->blob.max == 0) qn_buf_init(&s->blob, UINT32_MAX);
    if (s->n == s->cap) {
        const size_t cap = s->cap * 2 + 16;
        qn_added *item = qn_realloc(s->item, cap * sizeof *item);
        if (!item) return qn_fail(err, QN_E_NOMEM, "%zu added tokens", cap);
        s->item = item;
        s->cap = cap;
    }
    token.begin = (uint32_t)s->blob.len;
    token.len = (uint32_t)text.n;
    QN_TRY(qn_buf_append(&s->blob, text.p, text.n, err));
    s->item[s->n++] = token;
    return QN_OK;
}

static qn_str spelling(const qn_added_set *s, const qn_added *a)
{
    return (qn_str){(const char *)s->blob.data + a->begin, a->len};
}

static int by_spelling(const void *a, const void *b, void *set)
{
    return qn_str_cmp(spelling(set, a), spelling(set, b));
}

qn_code qn_added_seal(qn_added_set *s, qn_err *err)
{
    if (s->n == 0) return QN_OK;
    qsort_r(s->item, s->n, sizeof *s->item, by_spelling, s);
    for (size_t i = 1; i < s->n; i++)
        if (qn_str_eq(spelling(s, &s->item[i - 1]), spelling(s, &s->item[i])))
            return qn_fail(err, QN_E_FORMAT, "added token \"%.*s\" is given twice",
                           QN_STR_ARG(spelling(s, &s->item[i])));
    size_t i = 0;
    for (unsigned b = 0; b < 256; b++) {
        s->first[b] = (uint32_t)i;
        while (i < s->n && s->blob.data[s->item[i].begin] == b) i++;
    }
    s->first[256] = (uint32_t)s->n;
    return QN_OK;
}

void qn_added_fini(qn_added_set *s)
{
    qn_buf_fini(&s->blob);
    qn_free(s->item);
    *s = (qn_added_set){0};
}

/* First item of [lo, hi) whose byte k is >= b (they agree before k and are sorted). */
static size_t lower_bound(const qn_added_set *s, size_t lo, size_t hi, size_t k, unsigned b)
{
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        const qn_added *a = &s->item[mid];
        const unsigned c = k < a->len ? s->blob.data[a->begin + k] + 1u : 0; /* shorter is less */
        if (c < b + 1)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static const qn_added *longest_at(const qn_added_set *s, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    const qn_added *best = NULL;
    size_t lo = s->first[p[0]], hi = s->first[p[0] + 1u];
    for (size_t k = 1; lo < hi; k++) {
        if (s->item[lo].len == k) best = &s->item[lo++];
        if (k >= n) break;
        lo = lower_bound(s, lo, hi, k, p[k]);
        hi = lower_bound(s, lo, hi, k, p[k] + 1u);
    }
    return best;
}

/* The character that ends at text[n), n > 0. */
static uint32_t last_char(const char *text, size_t n)
{
    size_t i = n - 1;
    while (i > 0 && n - i < 4 && ((unsigned char)text[i] & 0xC0) == 0x80) i--;
    uint32_t c = 0;
    (void)qn_utf8_step(text + i, n - i, &c);
    return c;
}

static bool stands_alone(const char *text, size_t n, size_t begin, size_t end)
{
    uint32_t c = 0;
    if (begin > 0 && qn_unicode_is_word(last_char(text, begin))) return false;
    if (end == n) return true;
    (void)qn_utf8_step(text + end, n - end, &c);
    return !qn_unicode_is_word(c);
}

static size_t spaces_before(const char *text, size_t begin, size_t floor)
{
    while (begin > floor) {
        const uint32_t c = last_char(text, begin);
        if (!qn_unicode_is_space(c)) break;
        char bytes[4];
        begin -= qn_utf8_encode(bytes, c);
    }
    return begin;
}

static size_t spaces_after(const char *text, size_t n, size_t end)
{
    while (end < n) {
        uint32_t c = 0;
        const size_t len = qn_utf8_step(text + end, n - end, &c);
        if (!qn_unicode_is_space(c)) break;
        end += len;
    }
    return end;
}

bool qn_added_next(const qn_added_set *s, const char *text, size_t n, size_t *at, size_t done,
                   bool parse_special, qn_added_match *m)
{
    if (s->n == 0) return false;
    while (*at < n) {
        const unsigned char b = (unsigned char)text[*at];
        const qn_added *a =
            s->first[b] == s->first[b + 1u] ? NULL : longest_at(s, text + *at, n - *at);
        if (!a) {
            (*at)++;
            continue;
        }
        const size_t begin = *at, end = begin + a->len;
        *at = end; /* a match that is turned down is still behind us */
        if (a->special && !parse_special) continue;
        if (a->single_word && !stands_alone(text, n, begin, end)) continue;
        m->id = a->id;
        m->begin = a->lstrip ? spaces_before(text, begin, done) : begin;
        m->end = a->rstrip ? spaces_after(text, n, end) : end;
        return true;
    }
    return false;
}
