/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the list behind the recorder: storage, the sticky error, exports and borders. The lists
 * double inside the arena: what a graph leaves behind is at most what it holds. */
#include "base/alloc.h"
#include "graph/graph_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_LIMIT = 1 << 30, FIRST = 64 };

static qn_code check_kv(const qn_graph_options *opt, qn_err *err)
{
    if (opt->n_layers && !opt->kv)
        return qn_fail(err, QN_E_INVAL, "graph: %u layers without kv records", opt->n_layers);
    for (uint32_t i = 0; i < opt->n_layers; i++) {
        const qn_kv_layer *l = &opt->kv[i];
        if (l->fmt >= QN_KV_FMT_COUNT)
            return qn_fail(err, QN_E_INVAL, "graph: kv format of layer %u is %u, expected below %u",
                           i, (unsigned)l->fmt, (unsigned)QN_KV_FMT_COUNT);
        if (!l->n_kv_heads || !l->head_dim)
            return qn_fail(err, QN_E_INVAL, "graph: layer %u has %u kv heads of %u, expected > 0",
                           i, l->n_kv_heads, l->head_dim);
        if (l->group >= opt->caps.groups)
            return qn_fail(err, QN_E_INVAL, "graph: layer %u is in group %u, expected below %u", i,
                           l->group, opt->caps.groups);
    }
    return QN_OK;
}

qn_code qn_graph_new(qn_graph **out, const qn_graph_options *opt, qn_err *err)
{
    *out = NULL;
    if (qn_step_bytes(&opt->caps) == 0)
        return qn_fail(err, QN_E_INVAL,
                       "graph: capacities of %u rows, %u logits, %u seqs, %u groups, table %u "
                       "make no step block",
                       opt->caps.rows, opt->caps.logits, opt->caps.seqs, opt->caps.groups,
                       opt->caps.table);
    if (opt->activations > QN_ACTIVATIONS_I16)
        return qn_fail(err, QN_E_INVAL, "graph: activation mode is %u, expected 0 to 2",
                       (unsigned)opt->activations);
    QN_TRY(check_kv(opt, err));
    qn_graph *g = qn_zalloc(sizeof *g);
    if (!g) return qn_fail(err, QN_E_NOMEM, "graph");
    qn_arena_init(&g->arena, ARENA_LIMIT);
    g->opt = *opt;
    *out = g;
    return QN_OK;
}

void qn_graph_free(qn_graph *g)
{
    if (!g) return;
    qn_arena_fini(&g->arena);
    qn_free(g);
}

qn_val qn_graph_fail(qn_graph *g, qn_code code, const char *fmt, ...)
{
    if (g->err.code != QN_OK) return (qn_val){0}; /* the first one tells the cause */
    char msg[sizeof g->err.msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    (void)qn_fail(&g->err, code, "op %u, %s", g->n_nodes, msg);
    return (qn_val){0};
}

qn_code qn_g_error(const qn_graph *g) { return g->err.code; }

/* Room for one more of `size` bytes in list; false with the error recorded. */
static bool grow(qn_graph *g, void **list, uint32_t n, uint32_t *cap, size_t size)
{
    if (g->err.code != QN_OK) return false;
    if (n < *cap) return true;
    if (n >= QN_GRAPH_NODES_MAX) {
        (void)qn_graph_fail(g, QN_E_LIMIT, "graph: more than %d entries", QN_GRAPH_NODES_MAX);
        return false;
    }
    const uint32_t next = *cap ? *cap * 2 : FIRST;
    void *p = qn_arena_push_zero(&g->arena, next, size, 64);
    if (!p) {
        (void)qn_graph_fail(g, QN_E_NOMEM, "graph: no memory for %u entries", next);
        return false;
    }
    if (*list) memcpy(p, *list, n * size);
    *list = p;
    *cap = next;
    return true;
}

qn_val qn_graph_value(qn_graph *g, qn_val_kind kind, qn_space space, uint32_t cols, qn_q_kind rows)
{
    void *list = g->values;
    const uint32_t id = g->n_values ? g->n_values : 1;
    if (!grow(g, &list, id, &g->cap_values, sizeof *g->values)) return (qn_val){0};
    g->values = list;
    g->values[id] = (qn_value){.kind = kind, .space = space, .cols = cols, .rows = rows};
    g->n_values = id + 1;
    return (qn_val){id};
}

qn_node *qn_graph_node(qn_graph *g, qn_kern_id kern)
{
    void *list = g->nodes;
    if (!grow(g, &list, g->n_nodes, &g->cap_nodes, sizeof *g->nodes)) return NULL;
    g->nodes = list;
    qn_node *n = &g->nodes[g->n_nodes++];
    *n = (qn_node){.kern = kern, .segment = g->n_borders};
    return n;
}

const qn_value *qn_graph_use(qn_graph *g, const char *op, const char *name, qn_val x)
{
    if (g->err.code != QN_OK) return NULL;
    if (x.id == 0 || x.id >= g->n_values) {
        (void)qn_graph_fail(g, QN_E_INVAL, "%s: %s is value %u, expected one of this graph's %u",
                            op, name, x.id, g->n_values ? g->n_values - 1 : 0);
        return NULL;
    }
    return &g->values[x.id];
}

uint32_t qn_g_cols(const qn_graph *g, qn_val x)
{
    return x.id && x.id < g->n_values ? g->values[x.id].cols : 0;
}

void qn_g_logits(qn_graph *g, qn_val logits)
{
    const qn_value *v = qn_graph_use(g, "logits", "x", logits);
    if (!v) return;
    if (v->space != QN_SPACE_LOGIT)
        (void)qn_graph_fail(g, QN_E_INVAL, "logits: x has step rows, expected logit rows");
    else if (g->logits)
        (void)qn_graph_fail(g, QN_E_INVAL, "logits: recorded twice, expected once");
    else
        g->logits = logits.id;
}

void qn_g_tap(qn_graph *g, qn_val x, const char *name)
{
    if (!qn_graph_use(g, "tap", "x", x)) return;
    if (!name || !*name) {
        (void)qn_graph_fail(g, QN_E_INVAL, "tap: no name");
        return;
    }
    for (uint32_t i = 0; i < g->n_taps; i++) {
        if (strcmp(g->taps[i].name, name) != 0) continue;
        (void)qn_graph_fail(g, QN_E_INVAL, "tap: %s is recorded twice, expected once", name);
        return;
    }
    void *list = g->taps;
    if (g->n_taps >= QN_TAPS_MAX) {
        (void)qn_graph_fail(g, QN_E_LIMIT, "tap: more than %d taps", QN_TAPS_MAX);
        return;
    }
    if (!grow(g, &list, g->n_taps, &g->cap_taps, sizeof *g->taps)) return;
    g->taps = list;
    g->taps[g->n_taps++] = (qn_tap){name, x.id};
}

void qn_g_segment(qn_graph *g, qn_hook_fn *hook, void *ctx)
{
    void *list = g->borders;
    if (!grow(g, &list, g->n_borders, &g->cap_borders, sizeof *g->borders)) return;
    g->borders = list;
    g->borders[g->n_borders++] = (qn_border){hook, ctx};
}

const uint8_t *qn_node_kv(const qn_node *n, const qn_graph_options *opt)
{
    uint32_t layer = 0;
    if (n->kern == QN_K_kv_write)
        layer = n->u.layer;
    else if (n->kern == QN_K_attention)
        layer = n->u.attention.layer;
    else
        return NULL;
    const qn_kv_layer *l = &opt->kv[layer];
    return l->pool ? l->pool + l->k_bytes
                   : (const uint8_t *)l; /* no pool: a plan that never runs */
}
