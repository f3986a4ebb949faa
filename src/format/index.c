/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - names, ranges and messages, for all readers. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"
#include "format/format_int.h"

/* -- names ------------------------------------------------------------------------------------- */

qn_code qn_names_init(qn_names *t, size_t n, qn_err *err)
{
    size_t slots = 4;
    while (slots - slots / 4 < n) slots *= 2;
    QN_TRY(qn_rng_fresh_seed(&t->seed, err)); /* outsiders choose the names */
    t->slots = qn_calloc(slots, sizeof *t->slots);
    if (!t->slots) return qn_fail(err, QN_E_NOMEM, "table of %zu names", n);
    t->mask = slots - 1;
    return QN_OK;
}

void qn_names_fini(qn_names *t)
{
    qn_free(t->slots);
    t->slots = NULL;
}

/* The slot that holds the key, or the empty one where it belongs. */
static size_t slot_of(const qn_names *t, qn_str key, const void *ctx, qn_name_fn *name)
{
    size_t s = qn_maphash(key.p, key.n, t->seed) & t->mask;
    while (t->slots[s] != 0 && !qn_str_eq(name(ctx, t->slots[s] - 1), key)) s = (s + 1) & t->mask;
    return s;
}

size_t qn_names_put(qn_names *t, size_t i, const void *ctx, qn_name_fn *name)
{
    const size_t s = slot_of(t, name(ctx, i), ctx, name);
    if (t->slots[s] != 0) return t->slots[s] - 1;
    t->slots[s] = (uint32_t)(i + 1);
    return SIZE_MAX;
}

size_t qn_names_find(const qn_names *t, qn_str key, const void *ctx, qn_name_fn *name)
{
    if (!t->slots) return SIZE_MAX;
    const size_t s = slot_of(t, key, ctx, name);
    return t->slots[s] != 0 ? t->slots[s] - 1 : SIZE_MAX;
}

/* -- ranges ------------------------------------------------------------------------------------ */

static bool before(uint32_t a, uint32_t b, const void *ctx, qn_range_fn *range)
{
    const qn_range x = range(ctx, a), y = range(ctx, b);
    return x.begin != y.begin ? x.begin < y.begin : x.bytes < y.bytes;
}

/* Lets the element at `root` of a max-heap of n sink to its place. */
static void sink(uint32_t *heap, size_t root, size_t n, const void *ctx, qn_range_fn *range)
{
    const uint32_t v = heap[root];
    for (size_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && before(heap[child], heap[child + 1], ctx, range)) child++;
        if (!before(v, heap[child], ctx, range)) break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = v;
}

void qn_ranges_sort(uint32_t *order, size_t n, const void *ctx, qn_range_fn *range)
{
    bool sorted = true; /* as nearly every file is */
    for (size_t i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
        if (i > 0 && before(order[i], order[i - 1], ctx, range)) sorted = false;
    }
    if (sorted) return;
    for (size_t i = n / 2; i-- > 0;) sink(order, i, n, ctx, range);
    for (size_t end = n; end-- > 1;) {
        const uint32_t top = order[0];
        order[0] = order[end];
        order[end] = top;
        sink(order, 0, end, ctx, range);
    }
}

/* -- messages ---------------------------------------------------------------------------------- */

qn_shown qn_show(qn_str name)
{
    qn_shown out = {""};
    size_t n = 0;
    for (size_t at = 0; at < name.n && n < 60;) {
        uint32_t cp = 0;
        const size_t len = qn_utf8_step(name.p + at, name.n - at, &cp);
        const bool plain = cp != QN_UTF8_BAD && cp >= 0x20 && cp != 0x7f;
        if (plain)
            memcpy(out.text + n, name.p + at, len);
        else
            out.text[n] = '?';
        n += plain ? len : 1;
        at += len;
        if (n >= 60 && at < name.n) memcpy(out.text + n, "...", 3);
    }
    return out;
}

const char *qn_show_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strlen(path) > 100 && slash ? slash + 1 : path;
}

/* -- matrices ---------------------------------------------------------------------------------- */

qn_code qn_plain_matrix(qn_matrix *out, qn_fmt fmt, uint64_t rows, uint64_t cols, const void *data,
                        qn_err *err)
{
    qn_matrix m = {.fmt = fmt, .data = data};
    if (rows == 0 || cols == 0) return qn_fail(err, QN_E_FORMAT, "the tensor is empty");
    if (rows > UINT32_MAX || cols > UINT32_MAX)
        return qn_fail(err, QN_E_LIMIT, "%llu x %llu, at most 2^32 - 1 each",
                       (unsigned long long)rows, (unsigned long long)cols);
    m.rows = (uint32_t)rows;
    m.cols = (uint32_t)cols;
    if (!qn_format_row_bytes(&m.ld_bytes, fmt, cols))
        return qn_fail(err, QN_E_FORMAT, "%llu columns, expected a multiple of %u",
                       (unsigned long long)cols, (unsigned)qn_format_get(fmt)->block);
    *out = m;
    return QN_OK;
}
