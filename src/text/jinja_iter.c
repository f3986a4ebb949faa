/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_iter.c - walking over values: elements, lazy filters, loops, places and slices.
 *
 * Lazy filters give each element once and do their work when asked, as Python's generators do: a second
 * loop over one finds nothing, and a fault in it shows only where it is read. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_int.h"

bool qn_jit_can(qn_jv v)
{
    return v.type == QN_JV_UNDEF || v.type == QN_JV_STR || qn_jv_is_seq(v) ||
           (v.type >= QN_JV_DICT && v.type <= QN_JV_GEN && v.type != QN_JV_SPACE) ||
           v.type == QN_JV_LOOP;
}

bool qn_jit_begin(qn_jrun *r, qn_jit *it, qn_jv v)
{
    *it = (qn_jit){.over = v};
    if (r->rc != QN_OK) return false;
    if (qn_jit_can(v)) return true;
    qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be iterated", qn_jv_type(v));
    return false;
}

static bool begin_gen(qn_jrun *r, qn_jgen *g)
{
    const size_t skip = g->attr ? 1 : 0;
    g->begun = true;
    if (strchr("ms", g->kind) && !qn_jv_true(g->value)) {
        g->done = true;
        return false;
    }
    if (g->kind == 'm') {
        g->path = qn_jv_given();
        g->fill = qn_jv_none();
        for (size_t i = 0; i < g->args.n_named && !g->args.n; i++) {
            if (!strcmp(g->args.name[i], "attribute"))
                g->path = g->args.named[i];
            else if (!strcmp(g->args.name[i], "default"))
                g->fill = g->args.named[i];
        }
        if (!g->args.n && !qn_jv_is_given(g->path))
            qn_jinja_fail(r, QN_E_FORMAT, "map requires a filter argument");
        for (size_t i = 0; i < g->args.n_named && !g->args.n; i++)
            if (strcmp(g->args.name[i], "attribute") && strcmp(g->args.name[i], "default"))
                qn_jinja_fail(r, QN_E_FORMAT, "map takes no %s", g->args.name[i]);
    }
    if (g->kind == 's' && g->args.n < skip)
        qn_jinja_fail(r, QN_E_FORMAT, "missing parameter for attribute name");
    if (g->kind == 'u') g->seen = qn_jv_dict(r, QN_JV_DICT);
    if (g->kind == 'r') {
        g->at = qn_jv_len(r, g->value);
        return r->rc == QN_OK;
    }
    if (g->kind == 'l') {
        qn_jlist *all = qn_jv_all(r, g->value);
        if (!all) return false;
        g->value = (qn_jv){.type = QN_JV_LIST, .u.list = all};
        g->count = qn_jinja_int_of(r, g->path, 1);
        if (!g->count) qn_jinja_fail(r, QN_E_FORMAT, "division by zero");
        return r->rc == QN_OK;
    }
    if (g->kind == 'i' && g->value.type != QN_JV_DICT)
        qn_jinja_fail(r, QN_E_FORMAT, "only mappings have items, found a %s", qn_jv_type(g->value));
    qn_jv over = g->value;
    if (g->kind == 'i') {
        over.type = QN_JV_VIEW;
        over.flag = 'i';
    }
    return qn_jit_begin(r, &g->it, over);
}

static qn_jv mapped(qn_jrun *r, const qn_jgen *g, qn_jv x)
{
    if (!g->args.n) return qn_jinja_path(r, x, g->path, g->fill);
    if (g->args.v[0].type != QN_JV_STR)
        return qn_jinja_fail(r, QN_E_FORMAT, "map takes the name of a filter");
    qn_jargs rest = g->args;
    rest.v++;
    rest.n--;
    return qn_jinja_filter(r, qn_jv_c(r, g->args.v[0]), x, &rest);
}

static bool selected(qn_jrun *r, const qn_jgen *g, qn_jv x)
{
    const size_t skip = g->attr ? 1 : 0;
    if (g->attr) x = qn_jinja_path(r, x, g->args.v[0], qn_jv_none());
    if (r->rc != QN_OK) return false;
    if (g->args.n <= skip) return qn_jv_true(x) == g->want;
    if (g->args.v[skip].type != QN_JV_STR) {
        qn_jinja_fail(r, QN_E_FORMAT, "select takes the name of a test");
        return false;
    }
    qn_jargs rest = g->args;
    rest.v += skip + 1;
    rest.n -= skip + 1;
    return qn_jinja_test(r, qn_jv_c(r, g->args.v[skip]), x, &rest) == g->want;
}

static bool is_new(qn_jrun *r, qn_jgen *g, qn_jv x)
{
    qn_jv key = qn_jinja_path(r, x, g->path, qn_jv_none());
    if (key.type == QN_JV_STR && !g->sensitive) key = qn_jinja_case(r, key, 'l');
    if (r->rc != QN_OK || qn_jv_find(r, g->seen, key)) return false;
    qn_jv_put(r, g->seen, key, qn_jv_none());
    return r->rc == QN_OK;
}

static bool batch(qn_jrun *r, qn_jgen *g, qn_jv *v)
{
    const qn_jv row = qn_jv_list(r, QN_JV_LIST, 0);
    qn_jv x;
    if (r->rc != QN_OK) return false;
    if (qn_jv_is_given(g->seen)) { /* a row was full: what did not fit begins the next */
        qn_jv_push(r, row, g->seen);
        g->seen = qn_jv_given();
    }
    while (r->rc == QN_OK && qn_jit_next(r, &g->it, &x)) {
        if ((int64_t)row.u.list->n == g->count) {
            g->seen = x;
            *v = row;
            return true;
        }
        qn_jv_push(r, row, x);
    }
    g->done = true;
    if (row.u.list->n && g->fill.type != QN_JV_NONE && !g->want) {
        if (g->path.type == QN_JV_UNDEF)
            qn_jinja_undefined(r, g->path);
        else if (!g->attr || (int64_t)row.u.list->n < g->count)
            qn_jinja_fail(r, QN_E_FORMAT, "batch takes the length of a row as an integer");
    }
    while (r->rc == QN_OK && row.u.list->n && g->fill.type != QN_JV_NONE &&
           (int64_t)row.u.list->n < g->count)
        qn_jv_push(r, row, g->fill);
    *v = row;
    return r->rc == QN_OK && row.u.list->n;
}

static bool slice_of(qn_jrun *r, qn_jgen *g, qn_jv *v)
{
    const qn_jlist *l = g->value.u.list;
    const int64_t n = (int64_t)l->n, each = n / g->count, more = n % g->count;
    if (g->at >= g->count) return false;
    const int64_t begin = g->at * each + (g->at < more ? g->at : more);
    const int64_t end = begin + each + (g->at < more);
    const qn_jv row = qn_jv_list(r, QN_JV_LIST, 0);
    for (int64_t i = begin; i < end && r->rc == QN_OK; i++) qn_jv_push(r, row, l->v[i]);
    if (r->rc == QN_OK && g->fill.type != QN_JV_NONE && g->at >= more) qn_jv_push(r, row, g->fill);
    g->at++;
    *v = row;
    return qn_jinja_step(r, 1);
}

static bool passes(qn_jrun *r, qn_jgen *g, qn_jv x)
{
    qn_jscope *scope = r->scope;
    const uint32_t line = r->line;
    r->line = g->node->c->line;
    r->scope = qn_jinja_scope(r, g->scope, NULL);
    qn_jinja_assign(r, g->node->a, x);
    const bool is = qn_jv_true(qn_jinja_eval(r, g->node->c));
    r->scope = scope;
    if (r->rc == QN_OK) r->line = line;
    return is && r->rc == QN_OK;
}

static bool next_of_gen(qn_jrun *r, qn_jgen *g, qn_jv *v)
{
    bool found = false;
    if (g->kind == 'b') return batch(r, g, v);
    if (g->kind == 'l') return slice_of(r, g, v);
    if (g->kind == 'r') {
        if (g->at <= 0) return false;
        *v = g->value.type == QN_JV_VIEW ? (qn_jv){0} : qn_jv_element(r, g->value, --g->at, &found);
        if (g->value.type != QN_JV_VIEW) return found && qn_jinja_step(r, 1);
        qn_jit it = {.over = g->value, .at = (size_t)--g->at};
        return qn_jit_next(r, &it, v);
    }
    while (qn_jit_next(r, &g->it, v)) {
        if (g->kind == 'i') return true;
        if (g->kind == 'm') {
            *v = mapped(r, g, *v);
            return r->rc == QN_OK;
        }
        if (g->kind == 's'   ? selected(r, g, *v)
            : g->kind == 'u' ? is_new(r, g, *v)
                             : passes(r, g, *v))
            return r->rc == QN_OK;
    }
    return false;
}

static bool gen_next(qn_jrun *r, qn_jgen *g, qn_jv *v)
{
    if (g->done || !qn_jinja_enter(r)) return false;
    if (g->busy) qn_jinja_fail(r, QN_E_FORMAT, "generator already executing");
    bool more = r->rc == QN_OK;
    if (more) {
        g->busy = true; /* while it works it is closed to itself */
        more = (g->begun || begin_gen(r, g)) && next_of_gen(r, g, v);
        g->busy = false;
    }
    if (!more) g->done = true;
    qn_jinja_leave(r);
    return more;
}

bool qn_jit_next(qn_jrun *r, qn_jit *it, qn_jv *v)
{
    uint32_t cp = 0;
    const qn_jv o = it->over;
    if (!qn_jinja_step(r, 1)) return false;
    switch (o.type) {
    case QN_JV_STR:
        if (it->at >= o.n) return false;
        {
            const size_t n = qn_utf8_step(o.u.s + it->at, o.n - it->at, &cp);
            *v = qn_jv_borrow(o.u.s + it->at, n); /* plain text, also of markup */
            it->at += n;
        }
        return r->rc == QN_OK;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
        if (it->at >= o.u.list->n) return false;
        *v = o.u.list->v[it->at++];
        return true;
    case QN_JV_DICT:
    case QN_JV_VIEW: {
        if (it->at >= o.u.dict->n) return false;
        const qn_jv *kv = o.u.dict->kv + 2 * it->at++;
        *v = o.type == QN_JV_DICT || o.flag == 'k' ? kv[0]
             : o.flag == 'v'                       ? kv[1]
                                                   : qn_jv_pair(r, kv[0], kv[1]);
        return r->rc == QN_OK;
    }
    case QN_JV_RANGE:
        if ((int64_t)it->at >= o.u.range->n) return false;
        *v = qn_jv_int(o.u.range->start + (int64_t)it->at++ * o.u.range->step);
        return true;
    case QN_JV_GEN:
        return gen_next(r, o.u.gen, v);
    case QN_JV_LOOP: { /* (element, loop), and it moves on */
        qn_jv x;
        if (!qn_jloop_next(r, o.u.loop, &x)) return false;
        *v = qn_jv_pair(r, x, o);
        return r->rc == QN_OK;
    }
    default:
        return false;
    }
}

qn_jlist *qn_jv_all(qn_jrun *r, qn_jv v)
{
    qn_jit it;
    qn_jv x;
    const qn_jv out = qn_jv_list(r, QN_JV_LIST, qn_jv_is_seq(v) ? v.u.list->n : 0);
    if (!qn_jit_begin(r, &it, v)) return NULL;
    while (qn_jit_next(r, &it, &x)) qn_jv_push(r, out, x);
    return r->rc == QN_OK ? out.u.list : NULL;
}

qn_jgen *qn_jv_gen(qn_jrun *r, qn_jv *out, char kind, qn_jv value)
{
    qn_jgen *g = QN_JNEW(r, qn_jgen, 1);
    *out = qn_jv_undef(NULL);
    if (!g) return NULL;
    *g = (qn_jgen){.kind = kind,
                   .value = value,
                   .path = qn_jv_none(),
                   .fill = qn_jv_none(),
                   .seen = qn_jv_given()};
    *out = (qn_jv){.type = QN_JV_GEN, .u.gen = g};
    return g;
}

size_t qn_jv_chars(qn_jv v)
{
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) n += ((unsigned char)v.u.s[i] & 0xC0) != 0x80;
    return n;
}

bool qn_jv_has_len(qn_jv v) { return qn_jit_can(v) && v.type != QN_JV_GEN; }

static int64_t loop_length(qn_jrun *r, qn_jloop *l)
{
    if (l->length >= 0) return l->length;
    if (qn_jv_has_len(l->over)) return l->length = qn_jv_len(r, l->over);
    qn_jlist *rest = qn_jv_all(r, l->it.over);
    if (!rest) return 0;
    l->it = (qn_jit){.over = {.type = QN_JV_LIST, .u.list = rest}};
    l->ended = false;
    return l->length = (int64_t)rest->n + l->at + 1 + (l->has_after ? 1 : 0);
}

int64_t qn_jv_len(qn_jrun *r, qn_jv v)
{
    switch (v.type) {
    case QN_JV_UNDEF:
        return 0;
    case QN_JV_STR:
        return qn_jinja_step(r, v.n / 64) ? (int64_t)qn_jv_chars(v) : 0;
    case QN_JV_LIST:
    case QN_JV_TUPLE:
        return (int64_t)v.u.list->n;
    case QN_JV_DICT:
    case QN_JV_VIEW:
        return (int64_t)v.u.dict->n;
    case QN_JV_RANGE:
        return v.u.range->n;
    case QN_JV_LOOP:
        return loop_length(r, v.u.loop);
    default:
        qn_jinja_fail(r, QN_E_FORMAT, "a %s has no length", qn_jv_type(v));
        return 0;
    }
}

size_t qn_jv_byte_of(qn_jv s, int64_t ch)
{
    size_t i = 0;
    for (; i < s.n; i++)
        if (((unsigned char)s.u.s[i] & 0xC0) != 0x80 && ch-- <= 0) return i;
    return s.n;
}

qn_jv qn_jv_part(qn_jrun *r, qn_jv s, int64_t from, int64_t to)
{
    const size_t b = qn_jv_byte_of(s, from), e = to > from ? qn_jv_byte_of(s, to) : b;
    return qn_jinja_step(r, s.n / 64) ? qn_jv_marked(qn_jv_str(r, s.u.s + b, e - b), s.flag)
                                      : qn_jv_undef(NULL);
}

qn_jv qn_jv_element(qn_jrun *r, qn_jv v, int64_t i, bool *found)
{
    *found = false;
    if (v.type != QN_JV_STR && !qn_jv_is_seq(v) && v.type != QN_JV_RANGE) return qn_jv_undef(NULL);
    const int64_t n = qn_jv_len(r, v);
    if (i < 0) i += n;
    if (r->rc != QN_OK || i < 0 || i >= n) return qn_jv_undef(NULL);
    *found = true;
    if (v.type == QN_JV_STR) return qn_jv_part(r, v, i, i + 1);
    return v.type == QN_JV_RANGE ? qn_jv_int(v.u.range->start + i * v.u.range->step)
                                 : v.u.list->v[i];
}

static int64_t bound(qn_jrun *r, qn_jv v, int64_t other, int64_t n, bool back)
{
    if (v.type == QN_JV_NONE) return other;
    if (!qn_jv_is_int(v)) {
        qn_jinja_fail(r, QN_E_FORMAT, "slice indices must be integers or None, found %s",
                      qn_jv_type(v));
        return 0;
    }
    if (v.u.i < -n) return back ? -1 : 0;
    const int64_t i = v.u.i < 0 ? v.u.i + n : v.u.i;
    return i >= n ? (back ? n - 1 : n) : i;
}

static qn_jv range_slice(qn_jrun *r, const qn_jrange *g, int64_t begin, int64_t end, int64_t step,
                         int64_t n)
{
    qn_jrange *out = QN_JNEW(r, qn_jrange, 1);
    if (!out) return qn_jv_undef(NULL);
    *out = (qn_jrange){g->start + begin * g->step, g->start + end * g->step, g->step * step, n};
    return (qn_jv){.type = QN_JV_RANGE, .u.range = out};
}

static qn_jv str_slice(qn_jrun *r, qn_jv v, int64_t begin, int64_t step, int64_t n)
{
    qn_jv c;
    qn_buf b;
    qn_jlist *l = qn_jv_all(r, qn_jv_marked(v, false));
    qn_buf_init(&b, r->max_output);
    for (int64_t i = 0; l && i < n && r->rc == QN_OK; i++) {
        c = l->v[begin + i * step];
        qn_jinja_bytes(r, &b, c.u.s, c.n);
    }
    return qn_jv_marked(qn_jv_take(r, &b), v.flag);
}

qn_jv qn_jv_slice(qn_jrun *r, qn_jv v, const qn_jv at[3])
{
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_UNDEF) return qn_jinja_undefined(r, v);
    if (v.type != QN_JV_STR && !qn_jv_is_seq(v) && v.type != QN_JV_RANGE)
        return qn_jinja_fail(r, QN_E_FORMAT, "a %s cannot be sliced", qn_jv_type(v));
    const int64_t n = qn_jv_len(r, v);
    int64_t step = at[2].type == QN_JV_NONE ? 1 : at[2].u.i;
    if (at[2].type != QN_JV_NONE && !qn_jv_is_int(at[2]))
        return qn_jinja_fail(r, QN_E_FORMAT, "slice indices must be integers or None");
    if (!step) return qn_jinja_fail(r, QN_E_FORMAT, "slice step cannot be zero");
    if (v.type != QN_JV_RANGE) step = step > n + 1 ? n + 1 : step < -n - 1 ? -n - 1 : step;
    const bool back = step < 0;
    const int64_t begin = bound(r, at[0], back ? n - 1 : 0, n, back);
    const int64_t end = bound(r, at[1], back ? -1 : n, n, back);
    const int64_t span = back ? begin - end : end - begin, by = back ? -(step + 1) : step - 1;
    const int64_t count = span > 0 ? (span + by) / (by + 1) : 0;
    if (r->rc != QN_OK) return v;
    if (v.type == QN_JV_RANGE) {
        if (step > 100000 || step < -100000)
            return qn_jinja_fail(r, QN_E_LIMIT, "the step of a range is too large");
        return range_slice(r, v.u.range, begin, end, step, count);
    }
    if (v.type == QN_JV_STR)
        return step == 1 ? qn_jv_part(r, v, begin, end) : str_slice(r, v, begin, step, count);
    const qn_jv out = qn_jv_list(r, (qn_jtype)v.type, 0);
    for (int64_t i = 0; i < count && r->rc == QN_OK; i++)
        qn_jv_push(r, out, v.u.list->v[begin + i * step]);
    return out;
}

static bool peek(qn_jrun *r, qn_jloop *l)
{
    if (!l->has_after && !l->ended) l->has_after = qn_jit_next(r, &l->it, &l->after);
    if (!l->has_after) l->ended = true;
    return l->has_after;
}

bool qn_jloop_next(qn_jrun *r, qn_jloop *l, qn_jv *v)
{
    if (l->has_after) {
        *v = l->after;
        l->has_after = false;
    } else if (l->ended || !qn_jit_next(r, &l->it, v)) {
        l->ended = true;
        return false;
    }
    l->at++;
    l->before = l->now;
    l->now = *v;
    return r->rc == QN_OK;
}

qn_jv qn_jloop_attr(qn_jrun *r, qn_jloop *l, const char *name, bool *found)
{
    *found = true;
    if (!strcmp(name, "index")) return qn_jv_int(l->at + 1);
    if (!strcmp(name, "index0")) return qn_jv_int(l->at);
    if (!strcmp(name, "revindex")) return qn_jv_int(loop_length(r, l) - l->at);
    if (!strcmp(name, "revindex0")) return qn_jv_int(loop_length(r, l) - l->at - 1);
    if (!strcmp(name, "first")) return qn_jv_bool(l->at == 0);
    if (!strcmp(name, "last")) return qn_jv_bool(!peek(r, l));
    if (!strcmp(name, "length")) return qn_jv_int(loop_length(r, l));
    if (!strcmp(name, "depth")) return qn_jv_int(l->depth);
    if (!strcmp(name, "depth0")) return qn_jv_int((int64_t)l->depth - 1);
    if (!strcmp(name, "previtem"))
        return l->at > 0 ? l->before : qn_jv_hint("there is no previous item");
    if (!strcmp(name, "nextitem"))
        return peek(r, l) ? l->after : qn_jv_hint("there is no next item");
    *found = false;
    return qn_jv_undef(name);
}
