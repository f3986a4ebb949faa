/* SPDX-License-Identifier: Apache-2.0 */
/* ref_draw.c - one token of a row by sorting everything, in double. */
#include "base/rng.h"
#include "kern/ref/ref_int.h"

#include <math.h>

static double value(const float *x, uint32_t t) { return isnan(x[t]) ? -HUGE_VAL : (double)x[t]; }

/* Whether token a comes before b: larger logit first, then the lower id. */
static bool before(const float *x, uint32_t a, uint32_t b)
{
    const double u = value(x, a), v = value(x, b);
    return u != v ? u > v : a < b;
}

/* Heap sort, in place: order[0] becomes the first. */
static void sift(uint32_t *order, size_t at, size_t n, const float *x)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(x, order[child], order[child + 1])) child++;
        if (!before(x, order[at], order[child])) return;
        const uint32_t t = order[at];
        order[at] = order[child];
        order[child] = t;
    }
}

static void sort(uint32_t *order, size_t n, const float *x)
{
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;) sift(order, i, n, x);
    for (size_t i = n; i-- > 1;) {
        const uint32_t t = order[0];
        order[0] = order[i];
        order[i] = t;
        sift(order, 0, i, x);
    }
}

static bool is_spared(const qn_draw_args *a, uint32_t token)
{
    for (uint32_t i = 0; i < a->n_spared; i++)
        if (a->spared[i] == token) return true;
    return false;
}

/* XTC over the first n of the sorted tokens, closing the gaps; how many survive. */
static size_t exclude(const qn_draw_args *a, const qn_sampler *s, uint32_t *order, size_t n,
                      const float *x)
{
    const double top = value(x, order[0]);
    double sum = 0;
    size_t above = 0, left = 0;
    if (!(s->xtc_probability > 0) ||
        !(qn_rng_unit(qn_rng_u32(s->seed, s->choice, s->index, QN_RNG_XTC, 0)) <=
          s->xtc_probability))
        return n;
    for (size_t i = 0; i < n; i++) sum += exp(value(x, order[i]) - top);
    while (above < n && exp(value(x, order[above]) - top) > (double)s->xtc_threshold * sum) above++;
    const double least = above ? value(x, order[above - 1]) : HUGE_VAL;
    for (size_t i = 0; i < n; i++)
        if (!(value(x, order[i]) > least) || is_spared(a, order[i])) order[left++] = order[i];
    return left;
}

/* How many of the sorted tokens survive; they come to stand first. */
static size_t keep(const qn_draw_args *a, const qn_sampler *s, uint32_t *order, size_t n,
                   const float *x, double total)
{
    const double top = value(x, order[0]);
    size_t kept = n;
    if (s->top_p > 0 && s->top_p < 1) {
        double ahead = 0;
        for (kept = 0; kept < n; kept++) { /* ascending cumulative probability > 1 - p */
            if (!(total - ahead > (1.0 - (double)s->top_p) * total)) break;
            ahead += exp(value(x, order[kept]) - top);
        }
    }
    if (s->min_p > 0 && s->min_p <= 1)
        while (kept > 0 && value(x, order[kept - 1]) < top + log((double)s->min_p)) kept--;
    while (kept > 0 && value(x, order[kept - 1]) == -HUGE_VAL) kept--;
    kept = exclude(a, s, order, kept ? kept : 1, x);
    if (s->top_k > 0 && kept > s->top_k) kept = s->top_k;
    return kept;
}

static qn_drawn pick(const qn_draw_args *a, const qn_sampler *s, const float *x, uint32_t *order)
{
    const uint32_t vocab = a->vocab;
    qn_drawn d = {0, x[0], -INFINITY, 1};
    double total = 0, best = -HUGE_VAL;
    sort(order, vocab, x);
    const double top = value(x, order[0]);
    if (top == -HUGE_VAL) return d;
    d.token = order[0];
    for (size_t i = 0; i < vocab && top < HUGE_VAL; i++) total += exp(value(x, order[i]) - top);
    if (s->temperature > 0 && top < HUGE_VAL) {
        d.n_kept = (uint32_t)keep(a, s, order, vocab, x, total);
        for (size_t i = 0; i < d.n_kept; i++) {
            const uint32_t t = order[i];
            const uint32_t bits = qn_rng_u32(s->seed, s->choice, s->index, QN_RNG_DRAW, t);
            const double g = -log(-log1p(-(double)qn_rng_unit(bits)));
            const double score = (value(x, t) - top - log(total)) / (double)s->temperature + g;
            if (score > best || (score == best && t < d.token)) {
                best = score;
                d.token = t;
            }
        }
    }
    d.logit = x[d.token];
    d.logprob = top < HUGE_VAL ? (float)((double)x[d.token] - top - log(total)) : 0.0f;
    return d;
}

void qn_ref_draw(const qn_draw_args *a, qn_span units, void *scratch)
{
    for (size_t i = units.begin; i < units.end; i++) {
        a->out[i] = pick(a, &a->sampler[i], a->logits + i * a->ld_logits, scratch);
        if (a->registers && a->slot[i] != 0x7FFFFFFFu) a->registers[a->slot[i]] = a->out[i].token;
    }
}
