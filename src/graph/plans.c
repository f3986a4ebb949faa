/* SPDX-License-Identifier: Apache-2.0 */
/* plans.c - the cache of plans by key. Row counts round up to powers of two, so that a model has some
 * dozens of plans at most and none is built twice; nothing is ever evicted, for a plan is needed again
 * as soon as the same batch size is. */
#include "base/alloc.h"
#include "graph/plan_int.h"

enum { HEADS = 64 };

typedef struct entry {
    qn_plan_key key; /* rounded */
    qn_plan *plan;   /* owned */
    struct entry *next;
} entry;

struct qn_plans {
    qn_plans_options opt;
    entry *heads[HEADS];
    size_t bytes;
};

qn_code qn_plans_open(qn_plans **out, const qn_plans_options *opt, qn_err *err)
{
    *out = NULL;
    if (!opt->dev || !opt->record)
        return qn_fail(err, QN_E_INVAL, "plans: no %s", opt->dev ? "recorder" : "device");
    if (qn_step_bytes(&opt->graph.caps) == 0)
        return qn_fail(err, QN_E_INVAL,
                       "plans: capacities of %u rows, %u logits make no step block",
                       opt->graph.caps.rows, opt->graph.caps.logits);
    qn_plans *c = qn_zalloc(sizeof *c);
    if (!c) return qn_fail(err, QN_E_NOMEM, "plan cache");
    c->opt = *opt;
    *out = c;
    return QN_OK;
}

void qn_plans_close(qn_plans *c)
{
    if (!c) return;
    for (int h = 0; h < HEADS; h++) {
        entry *next = NULL;
        for (entry *e = c->heads[h]; e; e = next) {
            next = e->next;
            qn_plan_free(e->plan);
            qn_free(e);
        }
    }
    qn_free(c);
}

static uint32_t bucket(uint32_t n, uint32_t limit)
{
    uint32_t b = 1;
    while (b < n && b < limit) b = b > limit / 2 ? limit : b * 2;
    return n ? b : 0;
}

static uint64_t hash(const qn_plan_key *k)
{
    uint64_t h = (uint64_t)k->rows << 32 | k->logits;
    h = (h ^ k->taps) * 0x9E3779B97F4A7C15u; /* golden ratio: spreads the buckets' single bits */
    h = (h ^ h >> 29 ^ k->features) * 0x9E3779B97F4A7C15u;
    return h >> 32;
}

static bool same(const qn_plan_key *a, const qn_plan_key *b)
{
    return a->rows == b->rows && a->logits == b->logits && a->features == b->features &&
           a->taps == b->taps;
}

/* What a plan holds besides its handle: activations, step block, lists. */
static size_t bytes_of(const qn_plan *p)
{
    return sizeof *p + p->slab_bytes + p->step_bytes + p->mem.used;
}

static qn_code build(entry *e, const qn_plans *c, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_graph *g = NULL;
    qn_graph_options opt = c->opt.graph;
    opt.caps.rows = e->key.rows;
    opt.caps.logits = e->key.logits ? e->key.logits : 1; /* a step block has room for one */
    if (!(e->key.features & QN_PLAN_ADJUST)) opt.caps.edits = 0;
    QN_TRY_OUT(qn_graph_new(&g, &opt, err));
    c->opt.record(c->opt.model, g, &e->key);
    QN_TRY_OUT(qn_plan_build(&e->plan, c->opt.dev, g, &e->key, err));
out:
    qn_graph_free(g);
    return rc;
}

qn_code qn_plans_get(qn_plan **out, qn_plans *c, const qn_plan_key *key, qn_err *err)
{
    qn_code rc = QN_OK;
    const qn_step_caps *caps = &c->opt.graph.caps;
    *out = NULL;
    if (key->rows == 0 || key->rows > caps->rows)
        return qn_fail(err, QN_E_INVAL, "plan: %u rows, expected 1 to %u", key->rows, caps->rows);
    if (key->logits > caps->logits)
        return qn_fail(err, QN_E_INVAL, "plan: %u logit rows, expected at most %u", key->logits,
                       caps->logits);
    const qn_plan_key round = {bucket(key->rows, caps->rows), bucket(key->logits, caps->logits),
                               key->features, key->taps};
    entry **head = &c->heads[hash(&round) % HEADS];
    for (entry *e = *head; e; e = e->next) {
        if (!same(&e->key, &round)) continue;
        *out = e->plan;
        return QN_OK;
    }
    entry *e = qn_zalloc(sizeof *e);
    if (!e) return qn_fail(err, QN_E_NOMEM, "plan cache entry");
    e->key = round;
    QN_TRY_OUT(build(e, c, err));
    c->bytes += sizeof *e + bytes_of(e->plan);
    e->next = *head;
    *head = e;
    *out = e->plan;
    e = NULL;
out:
    qn_free(e);
    return rc;
}

size_t qn_plans_bytes(const qn_plans *c) { return sizeof *c + c->bytes; }
