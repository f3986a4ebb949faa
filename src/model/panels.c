/* SPDX-License-Identifier: Apache-2.0 */
/* panels.c - lays matrices out anew. */
#include "model/panels.h"

#include "base/alloc.h"
#include "base/map_file.h"
#include "tensor/panel.h"

enum { PAGE = 4096 };

static bool wanted(qn_panel_layout *l, const qn_weights *w, const qn_matrix *m, bool tied)
{
    return (m != &w->top.embed || tied) && qn_panel_layout_of(l, m);
}

/* Whole pages inside a plane; its edges may be shared with tensors that are still read. */
static void drop(const void *data, size_t bytes)
{
    const uintptr_t begin = ((uintptr_t)data + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = ((uintptr_t)data + bytes) / PAGE * PAGE;
    if (begin >= end) return;
    const qn_mapping view = {(const uint8_t *)data + (begin - (uintptr_t)data), end - begin};
    qn_map_advise(&view, 0, view.len, QN_MAP_DONTNEED);
}

qn_code qn_panels_make(qn_panels *p, qn_weights *w, bool tied, qn_err *err)
{
    qn_panel_layout l;
    qn_matrix *m = NULL;
    size_t bytes = 0;
    *p = (qn_panels){0};
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL;)
        if (wanted(&l, w, m, tied)) bytes += l.bytes * l.panels; /* not above the file's size */
    if (bytes == 0) return QN_OK;
    p->data = qn_pages_alloc(bytes);
    if (!p->data) return qn_fail(err, QN_E_NOMEM, "%zu bytes of weights laid out anew", bytes);
    p->bytes = bytes;
    uint8_t *to = p->data;
    for (size_t it = 0; (m = qn_weights_next(w, &it)) != NULL;) {
        if (!wanted(&l, w, m, tied)) continue;
        qn_panel_pack(to, &l, m, 0, l.panels);
        m->panels = to;
        to += l.bytes * l.panels;
        if (m != &w->top.embed && !w->copies) drop(m->data, m->ld_bytes * m->rows);
    }
    return QN_OK;
}

void qn_panels_fini(qn_panels *p)
{
    if (p->data) qn_pages_free(p->data, p->bytes);
    *p = (qn_panels){0};
}
