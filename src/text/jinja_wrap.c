/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_wrap.c - wordwrap: lines broken between words as Python's textwrap breaks them. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

typedef struct wrap {
    qn_jrun *r;
    qn_jv text; /* one line */
    uint32_t *cp;
    size_t *at; /* [n + 1]: where each character begins */
    size_t n;
    int64_t width;
    bool long_words, hyphens;
    qn_jv lines;
} wrap;

static bool is_ws(uint32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_word(uint32_t c)
{
    return c == '_' ||
           (qn_jinja_char(c) & (QN_JC_ALPHA | QN_JC_DECIMAL | QN_JC_DIGIT | QN_JC_NUMERIC));
}
static bool is_letter(uint32_t c) { return is_word(c) && !(qn_jinja_char(c) & QN_JC_DECIMAL); }
static bool is_punct(uint32_t c)
{
    return is_word(c) || (c && c < 128 && strchr("!\"'&.,?", (int)c));
}

/* Two dashes or more at i, then a word: where they end, or 0. */
static size_t dashes(const wrap *w, size_t i)
{
    size_t e = i;
    while (e < w->n && w->cp[e] == '-') e++;
    return e >= i + 2 && e < w->n && is_word(w->cp[e]) ? e : 0;
}

static bool hyphen_ends(const wrap *w, size_t i, size_t j)
{
    const uint32_t *c = w->cp;
    if (c[j] != '-' || j + 2 >= w->n + 0 || !is_letter(c[j + 1])) return false;
    const bool after =
        is_letter(c[j + 2]) || (c[j + 2] == '-' && j + 3 < w->n && is_letter(c[j + 3]));
    const bool two = j >= 2 && is_letter(c[j - 1]) && is_letter(c[j - 2]);
    const bool far = j >= 3 && is_punct(c[j - 1]) && c[j - 2] == '-' && is_letter(c[j - 3]);
    (void)i;
    return after && (two || far);
}

/* Where the piece that begins at i ends. */
static size_t piece(const wrap *w, size_t i)
{
    size_t j = i;
    if (is_ws(w->cp[i])) {
        while (j < w->n && is_ws(w->cp[j])) j++;
        return j;
    }
    if (w->hyphens && i && is_punct(w->cp[i - 1]) && dashes(w, i)) return dashes(w, i);
    for (j = i + 1; j < w->n; j++) {
        if (is_ws(w->cp[j])) return j;
        if (!w->hyphens) continue;
        if (hyphen_ends(w, i, j)) return j + 1;
        if (w->cp[j] == '-' && is_punct(w->cp[j - 1]) && dashes(w, j)) return j;
    }
    return w->n;
}

static bool blank(const wrap *w, size_t b, size_t e)
{
    for (; b < e; b++)
        if (!(qn_jinja_char(w->cp[b]) & QN_JC_SPACE)) return false;
    return true;
}

/* Where a word that is longer than a line is cut: at a hyphen if there is one. */
static size_t cut(const wrap *w, size_t b, size_t e, int64_t room)
{
    size_t end = b + (size_t)room;
    if (!w->hyphens || (int64_t)(e - b) <= room) return end < e ? end : e;
    for (size_t h = end; h-- > b + 1;) {
        if (w->cp[h] != '-') continue;
        for (size_t k = b; k < h; k++)
            if (w->cp[k] != '-') return h + 1;
        break;
    }
    return end;
}

static void wrap_line(wrap *w)
{
    size_t i = 0;
    bool first = true;
    while (i < w->n && qn_jinja_step(w->r, 1)) {
        size_t begin = i, end = i, last = i; /* the line so far; where its last piece begins */
        size_t e = piece(w, i);
        if (!first && blank(w, i, e)) {
            begin = end = last = i = e;
            if (i >= w->n) break;
            e = piece(w, i);
        }
        while ((int64_t)(e - begin) <= w->width && qn_jinja_step(w->r, 1)) {
            last = i;
            end = i = e;
            if (i >= w->n) break;
            e = piece(w, i);
        }
        if (i < w->n && (int64_t)(e - i) > w->width) {
            if (w->long_words) {
                last = i;
                end = i = cut(w, i, e, w->width - (int64_t)(i - begin));
            } else if (end == begin) {
                last = i;
                end = i = e;
            }
        }
        if (end > begin && blank(w, last, end)) end = last;
        if (end > begin) {
            qn_jv_push(
                w->r, w->lines,
                qn_jv_marked(qn_jv_str(w->r, w->text.u.s + w->at[begin], w->at[end] - w->at[begin]),
                             false));
            first = false;
        }
        if (w->r->rc != QN_OK) break;
    }
}

static bool read_line(wrap *w, qn_jv line)
{
    w->text = line;
    w->n = 0;
    w->cp = QN_JNEW(w->r, uint32_t, line.n + 4);
    w->at = w->cp ? QN_JNEW(w->r, size_t, line.n + 1) : NULL;
    if (!w->at) return false;
    for (size_t i = 0; i < line.n; w->n++) {
        w->at[w->n] = i;
        i += qn_utf8_step(line.u.s + i, line.n - i, &w->cp[w->n]);
    }
    w->at[w->n] = line.n;
    return qn_jinja_step(w->r, line.n / 16);
}

/* x: width, break_long_words, wrapstring, break_on_hyphens. */
qn_jv qn_jinja_wordwrap(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    wrap w = {.r = r,
              .width = qn_jinja_int_of(r, x[0], 79),
              .long_words = qn_jinja_true_of(x[1], true),
              .hyphens = qn_jinja_true_of(x[3], true)};
    const qn_jv by = qn_jv_is_given(x[2]) && x[2].type != QN_JV_NONE ? x[2] : qn_jv_z("\n");
    (void)a;
    if (v.type != QN_JV_STR || by.type != QN_JV_STR)
        return v.type == QN_JV_UNDEF
                   ? qn_jinja_undefined(r, v)
                   : qn_jinja_fail(r, QN_E_FORMAT, "wordwrap takes text, found %s", qn_jv_type(v));
    const qn_jv lines = qn_jinja_lines(r, v, false), out = qn_jv_list(r, QN_JV_LIST, 0);
    for (size_t i = 0; r->rc == QN_OK && i < lines.u.list->n; i++) {
        if (w.width <= 0)
            return qn_jinja_fail(r, QN_E_FORMAT, "invalid width %lld", (long long)w.width);
        w.lines = qn_jv_list(r, QN_JV_LIST, 0);
        if (!read_line(&w, lines.u.list->v[i])) break;
        wrap_line(&w);
        if (r->rc == QN_OK) qn_jv_push(r, out, qn_jinja_join(r, by, w.lines, 'm'));
    }
    return r->rc == QN_OK ? qn_jinja_join(r, by, out, 'm') : v;
}

qn_jv qn_jinja_urlize(qn_jrun *r, qn_jv v, const qn_jv *x, const qn_jargs *a)
{
    (void)v;
    (void)x;
    (void)a;
    return qn_jinja_fail(r, QN_E_UNSUPPORTED, "urlize is for web pages, not for chats");
}
