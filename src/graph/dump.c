/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c - a plan as text, one line an op, for `inspect`, tuning and a look at a wrong plan:
 *
 *     -- segment 0
 *     3 | linear       v5[64 x 1536]@0 <- v4[64 x 576]@393216, W[1536 x 576] Q4_1
 *
 * A bar before the name: lanes meet before this op. @: offset in the slab. */
#include "base/buf.h"
#include "graph/plan_int.h"

enum { MAX_BYTES = 64 << 20 };

static qn_code put_value(qn_buf *b, const qn_plan *p, uint32_t v)
{
    static const char *const kinds[] = {"", " i8", " drawn"};
    const qn_value *val = &p->values[v];
    const qn_place *pl = &p->places[v];
    return qn_buf_printf(b, NULL, "v%u[%u x %u%s]@%zu%s%s", v, qn_plan_rows(p, val), val->cols,
                         kinds[val->kind], pl->offset, pl->root != v ? " in place" : "",
                         pl->exported ? " kept" : "");
}

static qn_code put_matrix(qn_buf *b, const qn_matrix *w)
{
    return qn_buf_printf(b, NULL, ", W[%u x %u] %s", w->rows, w->cols, qn_format_get(w->fmt)->name);
}

static qn_code put_op(qn_buf *b, const qn_plan *p, uint32_t i)
{
    const qn_node *n = &p->nodes[i];
    QN_TRY(qn_buf_printf(b, NULL, "%5u %c %-11s ", i, p->ops[i].barrier ? '|' : ' ',
                         qn_kern_name(n->kern)));
    for (int k = 0; k < QN_NODE_OUTS && n->out[k]; k++) {
        if (k) QN_TRY(qn_buf_append_z(b, ", ", NULL));
        QN_TRY(put_value(b, p, n->out[k]));
    }
    for (int k = 0; k < QN_NODE_INS && n->in[k]; k++) {
        QN_TRY(qn_buf_append_z(b, k ? ", " : " <- ", NULL));
        QN_TRY(put_value(b, p, n->in[k]));
    }
    if (qn_graph_is_product(n->kern)) QN_TRY(put_matrix(b, n->u.linear.w));
    if (n->kern == QN_K_embed) QN_TRY(put_matrix(b, n->u.embed.table));
    if (n->kern == QN_K_kv_write) QN_TRY(qn_buf_printf(b, NULL, ", layer %u", n->u.layer));
    if (n->kern == QN_K_attention)
        QN_TRY(qn_buf_printf(b, NULL, ", layer %u", n->u.attention.layer));
    return qn_buf_append_z(b, "\n", NULL);
}

static qn_code put_plan(qn_buf *b, const qn_plan *p)
{
    QN_TRY(qn_buf_printf(b, NULL, "%u ops, %u fused, %u barriers, %zu bytes (%zu unshared)\n",
                         p->n_ops, p->n_fused, p->n_barriers, p->slab_bytes, p->unshared_bytes));
    for (uint32_t s = 0; s < p->n_segments; s++) {
        const qn_plan_segment *seg = &p->segments[s];
        QN_TRY(
            qn_buf_printf(b, NULL, "-- segment %u%s\n", s, seg->before.hook ? " after hook" : ""));
        for (uint32_t i = seg->begin; i < seg->end; i++) QN_TRY(put_op(b, p, i));
    }
    return QN_OK;
}

char *qn_plan_dump(const qn_plan *p)
{
    qn_buf b;
    char *text = NULL;
    qn_buf_init(&b, MAX_BYTES);
    if (put_plan(&b, p) == QN_OK) text = (char *)qn_buf_take(&b, NULL);
    qn_buf_fini(&b);
    return text;
}
