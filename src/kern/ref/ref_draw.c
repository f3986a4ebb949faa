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

/* How many of the sorted tokens survive. */
static size_t keep(const qn_sampler *s, const uint32_t *order, size_t n, const float *x,
                   double total)
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
    if (s->top_k > 0 && kept > s->top_k) kept = s->top_k;
    while (kept > 0 && value(x, order[kept - 1]) == -HUGE_VAL) kept--;
    return kept ? kept : 1;
}

static qn_drawn pick(const qn_sampler *s, const float *x, uint32_t vocab, uint32_t *order)
{
    qn_drawn d = {0, x[0], -INFINITY, 1};
    double total = 0, best = -HUGE_VAL;
    sort(order, vocab, x);
    const double top = value(x, order[0]);
    if (top == -HUGE_VAL) return d;
    d.token = order[0];
    for (size_t i = 0; i < vocab && top < HUGE_VAL; i++) total += exp(value(x, order[i]) - top);
    if (s->temperature > 0 && top < HUGE_VAL) {
        d.n_kept = (uint32_t)keep(s, order, vocab, x, total);
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
        a->out[i] = pick(&a->sampler[i], a->logits + i * a->ld_logits, a->vocab, scratch);
        if (a->registers && a->slot[i] != 0x7FFFFFFFu) a->registers[a->slot[i]] = a->out[i].token;
    }
}
