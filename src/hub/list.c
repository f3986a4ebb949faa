/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - the models of the store, one row each.
 *
 * A file that cannot be read as a model is left out, and so is one that says it is something else (an
 * adapter, a projector); only memory running out ends the list.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hub/hub_int.h"

enum { MAX_TEXTS = 64 << 20 };

static int by_name(const void *a, const void *b)
{
    const quern_store_model *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    if (names != 0) return names;
    if (x->canonical != y->canonical) return x->canonical ? -1 : 1;
    return strcmp(x->path, y->path);
}

static qn_code fill(quern_store_list *l, const qn_hub_scan *s, const char *query,
                    qn_hub_has_family *has_family, qn_err *err)
{
    l->model = qn_calloc(s->n ? s->n : 1, sizeof *l->model);
    if (!l->model) return qn_fail(err, QN_E_NOMEM, "list of %zu models", s->n);
    for (const qn_hub_found *f = s->first; f; f = f->next) {
        bool is_model = true;
        if (query && !qn_hub_holds(f, query)) continue;
        const qn_code rc =
            qn_hub_describe(&is_model, &l->model[l->n], &l->texts, has_family, f, err);
        if (rc == QN_E_NOMEM) return rc;
        l->n += rc == QN_OK && is_model;
    }
    if (l->n > 1) qsort(l->model, l->n, sizeof *l->model, by_name);
    return QN_OK;
}

qn_code qn_hub_list(quern_store_list **out, const qn_hub *h, const char *query,
                    qn_hub_has_family *has_family, qn_err *err)
{
    qn_hub_scan s;
    *out = NULL;
    quern_store_list *l = qn_zalloc(sizeof *l);
    if (!l) return qn_fail(err, QN_E_NOMEM, "list of models");
    qn_arena_init(&l->texts, MAX_TEXTS);
    qn_code rc = qn_hub_scan_open(&s, h, err);
    if (rc == QN_OK) rc = fill(l, &s, query, has_family, err);
    qn_hub_scan_close(&s);
    if (rc == QN_OK)
        *out = l;
    else
        qn_hub_list_free(l);
    return rc;
}

void qn_hub_list_free(quern_store_list *l)
{
    if (!l) return;
    qn_free(l->model);
    qn_arena_fini(&l->texts);
    qn_free(l);
}
