/* SPDX-License-Identifier: Apache-2.0 */
/* panels.c - lays matrices out anew, on all lanes, into an image or into memory. */
#include "model/panels.h"

#include "base/alloc.h"
#include "base/lanes.h"
#include "tensor/panel.h"

enum { PAGE = 4096, GRAIN = 8, THREADS_FROM = 4 << 20 /* bytes that are worth starting threads */ };

typedef struct item {
    qn_matrix *m;
    qn_panel_layout layout;
    uint32_t first; /* its first panel among all of the model's */
} item;

typedef struct packing {
    item *items;
    qn_image_entry *entries; /* where each item's panels go, from `to` on */
    size_t n;
    uint32_t panels; /* of all items */
    uint64_t bytes;
    uint8_t *to;
    unsigned lanes;
    atomic_uint next;
} packing;

/* -- which matrices ---------------------------------------------------------------------------- */

static bool wanted(qn_panel_layout *l, const qn_weights *w, const qn_matrix *m, bool tied)
{
    return (m != &w->top.embed || tied) && qn_panel_layout_of(l, m);
}

static qn_code list(packing *k, qn_weights *w, bool tied, qn_err *err)
{
    qn_panel_layout l;
    qn_matrix *m = NULL;
    size_t n = 0;
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL;) n += wanted(&l, w, m, tied);
    k->items = qn_calloc(n + 1, sizeof *k->items);
    k->entries = qn_calloc(n + 1, sizeof *k->entries);
    if (!k->items || !k->entries) return qn_fail(err, QN_E_NOMEM, "a list of %zu matrices", n);
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL;) {
        if (!wanted(&l, w, m, tied)) continue;
        const uint64_t bytes = (uint64_t)l.bytes * l.panels; /* about the file's own: no overflow */
        k->items[k->n] = (item){m, l, k->panels};
        k->entries[k->n++] = (qn_image_entry){.fmt = (uint32_t)m->fmt,
                                              .scale_fmt = (uint32_t)m->scale_fmt,
                                              .rows = m->rows,
                                              .cols = m->cols,
                                              .at = k->bytes,
                                              .bytes = bytes};
        k->panels += l.panels;
        k->bytes += bytes; /* l.bytes is a multiple of 64 */
    }
    return QN_OK;
}

/* -- laying out -------------------------------------------------------------------------------- */

static const item *item_of(const packing *k, uint32_t panel)
{
    size_t lo = 0, hi = k->n;
    while (hi - lo > 1) {
        const size_t mid = (lo + hi) / 2;
        if (k->items[mid].first <= panel)
            lo = mid;
        else
            hi = mid;
    }
    return &k->items[lo];
}

static void pack_span(const packing *k, qn_span s)
{
    while (s.begin < s.end) {
        const item *it = item_of(k, s.begin);
        const uint32_t from = s.begin - it->first, left = it->layout.panels - from;
        const uint32_t n = s.end - s.begin < left ? s.end - s.begin : left;
        qn_panel_pack(k->to + k->entries[it - k->items].at, &it->layout, it->m, from, from + n);
        s.begin += n;
    }
}

static void pack_lane(void *ctx, qn_lane *lane)
{
    packing *k = ctx;
    qn_span s;
    while (qn_lane_claim(lane, &k->next, k->panels, GRAIN, &s)) pack_span(k, s);
}

static void pack_all(void *ctx, uint8_t *to)
{
    packing *k = ctx;
    qn_pool *pool = NULL;
    k->to = to;
    if (k->lanes > 1 && k->bytes >= THREADS_FROM) (void)qn_pool_open(&pool, k->lanes, NULL);
    if (!pool) { /* one lane, or no thread could start */
        pack_span(k, (qn_span){0, k->panels});
        return;
    }
    atomic_init(&k->next, 0);
    qn_pool_run(pool, pack_lane, k);
    qn_pool_close(pool);
}

/* -- a model's --------------------------------------------------------------------------------- */

/* Whole pages inside a plane; its edges may be shared with tensors that are still read. */
static void drop(const void *data, size_t bytes)
{
    const uintptr_t begin = ((uintptr_t)data + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = ((uintptr_t)data + bytes) / PAGE * PAGE;
    if (begin >= end) return;
    const qn_mapping view = {(const uint8_t *)data + (begin - (uintptr_t)data), end - begin};
    qn_map_advise(&view, 0, view.len, QN_MAP_DONTNEED);
}

static void point_at(const packing *k, const qn_weights *w, const uint8_t *base)
{
    for (size_t i = 0; i < k->n; i++) {
        qn_matrix *m = k->items[i].m;
        m->panels = base + k->entries[i].at;
        if (m != &w->top.embed && !w->copies) drop(m->data, m->ld_bytes * m->rows);
    }
}

static qn_code make(qn_panels *p, packing *k, const qn_weights *w, const qn_panels_options *opt,
                    qn_err *err)
{
    const qn_image_plan plan = {.dir = opt->image_dir,
                                .source = opt->source,
                                .entries = k->entries,
                                .n = k->n,
                                .fill = pack_all,
                                .ctx = k,
                                .log = opt->log};
    if (k->n == 0) return QN_OK;
    if (opt->image_dir) {
        const uint64_t bytes = k->bytes;
        QN_TRY(qn_image_open(&p->image, &plan, err));
        if (p->image) {
            p->bytes = (size_t)bytes;
            point_at(k, w, qn_image_data(p->image));
            return QN_OK;
        }
        for (size_t i = 0, at = 0; i < k->n; at += (size_t)k->entries[i++].bytes)
            k->entries[i].at = at;
    }
    p->data = qn_pages_alloc((size_t)k->bytes);
    if (!p->data)
        return qn_fail(err, QN_E_NOMEM, "%llu bytes of weights laid out anew",
                       (unsigned long long)k->bytes);
    p->bytes = (size_t)k->bytes;
    pack_all(k, p->data);
    point_at(k, w, p->data);
    return QN_OK;
}

qn_code qn_panels_open(qn_panels *p, qn_weights *w, const qn_panels_options *opt, qn_err *err)
{
    packing k = {.lanes = opt->lanes};
    *p = (qn_panels){0};
    qn_code rc = list(&k, w, opt->tied, err);
    if (rc == QN_OK) rc = make(p, &k, w, opt, err);
    qn_free(k.items);
    qn_free(k.entries);
    return rc;
}

void qn_panels_fini(qn_panels *p)
{
    qn_image_close(p->image);
    if (p->data) qn_pages_free(p->data, p->bytes);
    *p = (qn_panels){0};
}
