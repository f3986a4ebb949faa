/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - where values lie and where lanes meet.
 *
 *     ops       0   1   2 | 3   4 | 5        | barrier: op 3 reads what op 1 wrote
 *     phase     0   0   0   1   1   2
 *     value a   w ............. r            phases [0, 1]
 *     value b           w ......... r        phases [0, 2]: may not share with a
 *     value c                       w        phases [2, 2]: may take a's bytes
 *
 * Invariants:
 *  1 Ops of one phase touch disjoint memory, except that several may read the same. So a barrier is
 *    due before an op exactly when it reads a value made in the present phase, or meets a cache or the
 *    token registers that the phase has touched and one of the two writes.
 *  2 Two values share bytes only if their phases are disjoint, or if one op replaces the other in
 *    place, unit by unit, and every other reader is in an earlier phase.
 *  3 Exported values share with nobody.
 *
 * Taking each barrier as late as possible gives the fewest for this order of ops. */
#include "base/alloc.h"
#include "graph/plan_int.h"

#include <stdlib.h>

enum { ALIGN = 64 };

static bool round_up(size_t *n, size_t to)
{
    if (!qn_add_size(n, *n, to - 1)) return false;
    *n = *n / to * to;
    return true;
}

/* Strides and bytes of a value at full capacity; false on overflow. */
static bool measure(qn_place *pl, const qn_value *v, size_t rows)
{
    switch (v->kind) {
    case QN_VAL_F32:
        pl->ld = v->cols; /* rows begin on cache lines: no tile shares one with another row's */
        return round_up(&pl->ld, ALIGN / 4) && qn_mul_size(&pl->bytes, pl->ld * 4, rows) &&
               round_up(&pl->bytes, ALIGN);
    case QN_VAL_ROWS_INT:
        pl->ld = qn_q_row_bytes(v->cols, v->rows);
        return round_up(&pl->ld, ALIGN) && qn_mul_size(&pl->bytes, pl->ld, rows);
    case QN_VAL_DRAWN:
    default:
        pl->ld = 1;
        return qn_mul_size(&pl->bytes, sizeof(qn_drawn), rows) && round_up(&pl->bytes, ALIGN);
    }
}

/* True if op i must not start before op j of the same phase is done everywhere. */
static bool must_wait(const qn_plan *p, const qn_node *j, const qn_node *i)
{
    for (int o = 0; o < QN_NODE_OUTS; o++)
        for (int k = 0; k < QN_NODE_INS; k++)
            if (j->out[o] && j->out[o] == i->in[k]) return true;
    if (j->kern == QN_K_kv_write || i->kern == QN_K_kv_write) {
        const uint8_t *kv = qn_node_kv(j, &p->opt);
        if (kv && kv == qn_node_kv(i, &p->opt)) return true;
    }
    const bool draws = j->kern == QN_K_draw || i->kern == QN_K_draw;
    const bool both = (j->kern == QN_K_draw || j->kern == QN_K_embed) &&
                      (i->kern == QN_K_draw || i->kern == QN_K_embed);
    return draws && both && p->opt.registers;
}

/* Cuts the list into phases and notes in which of them each value is written and last read. */
static void find_phases(qn_plan *p, uint32_t *phase)
{
    uint32_t now = 0, begin = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const qn_node *n = &p->nodes[i];
        const bool border = i > 0 && n->segment != p->nodes[i - 1].segment;
        bool wait = false;
        for (uint32_t j = begin; j < i && !border && !wait; j++)
            wait = must_wait(p, &p->nodes[j], n);
        if (border || wait) {
            now++;
            begin = i;
        }
        p->ops[i].barrier = wait;
        p->n_barriers += wait;
        phase[i] = now;
        for (int k = 0; k < QN_NODE_OUTS; k++) {
            if (!n->out[k]) continue;
            p->places[n->out[k]].used = true;
            p->places[n->out[k]].first = p->places[n->out[k]].last = now;
        }
        for (int k = 0; k < QN_NODE_INS; k++)
            if (n->in[k]) p->places[n->in[k]].last = now;
    }
}

/* True if op i may write its result over input slot k: its last reader, alone in its phase. */
static bool may_replace(const qn_plan *p, const uint32_t *phase, uint32_t i, int k)
{
    const qn_node *n = &p->nodes[i];
    const qn_op_info *info = qn_op_get(n->kern);
    const uint32_t v = n->in[k], y = n->out[info->in_place_out];
    if (!v || !(info->in_place >> k & 1)) return false;
    const qn_place *pv = &p->places[v], *py = &p->places[y];
    if (pv->exported || py->exported || pv->bytes != py->bytes || pv->ld != py->ld) return false;
    if (p->values[v].kind != p->values[y].kind || pv->last != phase[i]) return false;
    for (int s = 0; s < QN_NODE_INS; s++) /* e.g. linear: `add` may be y, x may not */
        if (n->in[s] == v && !(info->in_place >> s & 1)) return false;
    for (uint32_t j = i; j-- > 0 && phase[j] == phase[i];)
        for (int s = 0; s < QN_NODE_INS; s++)
            if (p->nodes[j].in[s] == v) return false;
    for (uint32_t j = i + 1; j < p->n_ops && phase[j] == phase[i]; j++)
        for (int s = 0; s < QN_NODE_INS; s++)
            if (p->nodes[j].in[s] == v) return false;
    return true;
}

static void choose_in_place(qn_plan *p, const uint32_t *phase)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const qn_node *n = &p->nodes[i];
        if (n->kern == QN_K_kv_write) continue;
        qn_place *y = &p->places[n->out[qn_op_get(n->kern)->in_place_out]];
        for (int k = 0; k < QN_NODE_INS; k++) {
            if (!may_replace(p, phase, i, k)) continue;
            y->root = p->places[n->in[k]].root;
            if (p->places[y->root].last < y->last) p->places[y->root].last = y->last;
            break;
        }
    }
}

typedef struct slot { /* a buffer to place, and the list of those placed, by offset */
    size_t offset, bytes;
    uint32_t value, first, last;
} slot;

static int by_size(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* First fit, largest first: the lowest gap among those alive at the same time. */
static qn_code fit(qn_plan *p, slot *todo, slot *placed, uint32_t n, qn_err *err)
{
    qsort(todo, n, sizeof *todo, by_size);
    for (uint32_t i = 0; i < n; i++) {
        slot s = todo[i];
        for (uint32_t j = 0; j < i; j++) {
            const slot *o = &placed[j];
            if (o->last < s.first || s.last < o->first) continue;
            if (o->offset + o->bytes <= s.offset) continue;
            if (s.offset + s.bytes <= o->offset) break;
            s.offset = o->offset + o->bytes;
        }
        size_t end = 0;
        if (!qn_add_size(&end, s.offset, s.bytes) || end > PTRDIFF_MAX)
            return qn_fail(err, QN_E_LIMIT, "plan: memory of %u values overflows", n);
        if (end > p->slab_bytes) p->slab_bytes = end;
        uint32_t at = i;
        for (; at > 0 && placed[at - 1].offset > s.offset; at--) placed[at] = placed[at - 1];
        placed[at] = s;
        p->places[s.value].offset = s.offset;
    }
    return QN_OK;
}

/* A value that shares with nobody gets the next free bytes of the slab. */
static qn_code append(qn_plan *p, qn_place *pl, qn_err *err)
{
    pl->offset = p->slab_bytes;
    if (!qn_add_size(&p->slab_bytes, p->slab_bytes, pl->bytes) || p->slab_bytes > PTRDIFF_MAX)
        return qn_fail(err, QN_E_LIMIT, "plan: memory of values overflows");
    return QN_OK;
}

static qn_code assign_offsets(qn_plan *p, qn_err *err)
{
    const bool share = !(p->key.features & QN_PLAN_NO_SHARE);
    slot *todo = QN_ARENA_NEW(&p->mem, slot, p->n_values + 1),
         *placed = QN_ARENA_NEW(&p->mem, slot, p->n_values + 1);
    if (!todo || !placed) return qn_fail(err, QN_E_NOMEM, "plan: %u values", p->n_values);
    uint32_t n = 0;
    for (uint32_t v = 1; v < p->n_values; v++) {
        const qn_place *pl = &p->places[v];
        if (pl->used && !pl->exported && pl->root == v && share)
            todo[n++] = (slot){0, pl->bytes, v, pl->first, pl->last};
    }
    QN_TRY(fit(p, todo, placed, n, err));
    for (uint32_t v = 1; v < p->n_values; v++) {
        qn_place *pl = &p->places[v];
        if (!pl->used) continue;
        if (pl->root != v)
            pl->offset = p->places[pl->root].offset;
        else if (pl->exported || !share)
            QN_TRY(append(p, pl, err));
    }
    return QN_OK;
}

qn_code qn_plan_place(qn_plan *p, qn_err *err)
{
    uint32_t *phase = QN_ARENA_NEW(&p->mem, uint32_t, (size_t)p->n_ops + 1);
    if (!phase) return qn_fail(err, QN_E_NOMEM, "plan: %u ops", p->n_ops);
    find_phases(p, phase);
    for (uint32_t v = 1; v < p->n_values; v++) {
        qn_place *pl = &p->places[v];
        pl->root = v;
        if (!pl->used) continue;
        if (!measure(pl, &p->values[v], qn_plan_rows(p, &p->values[v])) ||
            !qn_add_size(&p->unshared_bytes, p->unshared_bytes, pl->bytes))
            return qn_fail(err, QN_E_LIMIT, "plan: a value of %u x %u overflows",
                           qn_plan_rows(p, &p->values[v]), p->values[v].cols);
    }
    if (!(p->key.features & QN_PLAN_NO_SHARE)) choose_in_place(p, phase);
    return assign_offsets(p, err);
}
