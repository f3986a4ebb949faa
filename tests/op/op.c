/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - the properties that every kernel has. */
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/kern_int.h"

/* Distance in units of the last place. */
static double ulps(float a, float b)
{
    if (a == b || (isnan(a) && isnan(b))) return 0;
    if (!isfinite(a) || !isfinite(b)) return HUGE_VAL;
    if (fabsf(b) < 0x1p-122f && fabsf(a) < 0x1p-122f) return 0; /* x / inf underflows early */
    int e = 0;
    (void)frexpf(b, &e);
    const double ulp = ldexp(1.0, (e < -125 ? -125 : e) - 24);
    return fabs((double)a - (double)b) / ulp;
}

/* Where the reference left OP_PAD, nobody may write; no data has that value. */
static bool is_pad(float v)
{
    const float pad = OP_PAD;
    return memcmp(&v, &pad, sizeof pad) == 0;
}

static void compare_f32(qt *t, const op_case *c, const float *got, const float *want)
{
    const size_t n = c->out_bytes / sizeof *got;
    static const char sum[] = "SUM_F32";
    static const char *const kinds[] = {
#define X(name, tol, unit) #tol,
#include "kern/kern.def"
#undef X
    };
    const bool is_sum = strncmp(kinds[c->id], sum, 4) == 0; /* SUM_F32 or SUM_Q */
    double top = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_pad(want[i]) && isfinite(want[i])) top = fmax(top, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++) {
        bool ok = memcmp(&got[i], &want[i], 4) == 0;
        if (!ok && !is_pad(want[i]))
            ok = is_sum ? fabs((double)got[i] - (double)want[i]) <= c->tol * top
                        : ulps(got[i], want[i]) <= c->tol;
        if (!ok) {
            QT_OKF(t, false,
                   "%s %s: element %zu of %zu: %.9g, expected %.9g (%.3g of the top, %g ulp)",
                   qn_kern_name(c->id), c->what, i, n, (double)got[i], (double)want[i],
                   fabs((double)got[i] - (double)want[i]) / top, ulps(got[i], want[i]));
            return;
        }
    }
    QT_OK(t, true);
}

typedef struct job {
    qt *t;
    const qn_kern_table *k;
} job;

/* Runs from the starting contents; the result is a block of the case. */
static void *result(const qn_kern_table *k, op_case *c, const void *start, qn_span units)
{
    void *r = op_keep(c->out_bytes);
    memcpy(c->out, start, c->out_bytes);
    op_run(k, c->id, c->args, units);
    memcpy(r, c->out, c->out_bytes);
    memcpy(c->out, start, c->out_bytes);
    return r;
}

static void *copy_of(const void *p, size_t n)
{
    void *r = op_keep(n);
    memcpy(r, p, n);
    return r;
}

static void same(qt *t, const op_case *c, const void *got, const void *want, const char *how)
{
    const uint8_t *a = got, *b = want;
    for (size_t i = 0; i < c->out_bytes; i++)
        if (a[i] != b[i]) {
            float x, y;
            memcpy(&x, a + i / 4 * 4, 4);
            memcpy(&y, b + i / 4 * 4, 4);
            QT_OKF(t, false, "%s %s: %s: byte %zu of %zu, as f32 %.9g and %.9g",
                   qn_kern_name(c->id), c->what, how, i, c->out_bytes, (double)x, (double)y);
            return;
        }
    QT_OK(t, true);
}

static void visit_ref(void *ctx, op_case *c)
{
    const job *j = ctx;
    const void *start = copy_of(c->out, c->out_bytes);
    const qn_span all = op_all(c->id, c->args);
    const void *want = result(&qn_kern_ref, c, start, all), *got = result(j->k, c, start, all);
    if (c->compare)
        c->compare(j->t, c, got, want);
    else if (c->tol > 0)
        compare_f32(j->t, c, got, want);
    else
        same(j->t, c, got, want, "not as the reference");
}

static void visit_generic(void *ctx, op_case *c)
{
    const job *j = ctx;
    const void *start = copy_of(c->out, c->out_bytes);
    const qn_span all = op_all(c->id, c->args);
    const void *want = result(&qn_kern_generic, c, start, all);
    same(j->t, c, result(j->k, c, start, all), want, "not the bits of generic");
}

/* In two, and in many uneven pieces; a piece leaves the rest alone. */
static void visit_split(void *ctx, op_case *c)
{
    const job *j = ctx;
    const uint8_t *start = copy_of(c->out, c->out_bytes);
    const qn_span all = op_all(c->id, c->args);
    const uint8_t *want = result(j->k, c, start, all);
    const uint32_t cut = all.end / 2;
    const uint8_t *low = result(j->k, c, start, (qn_span){0, cut});
    const uint8_t *high = result(j->k, c, start, (qn_span){cut, all.end});
    uint8_t *both = op_keep(c->out_bytes);
    for (size_t i = 0; i < c->out_bytes; i++) /* what one half wrote, the other left */
        both[i] = low[i] != start[i] ? low[i] : high[i];
    same(j->t, c, both, want, "two halves");
    for (uint32_t u = 0, step = 1; u < all.end; u += step, step = step % 7 + 2) {
        const uint32_t end = u + step < all.end ? u + step : all.end;
        op_run(j->k, c->id, c->args, (qn_span){u, end});
    }
    same(j->t, c, c->out, want, "uneven pieces");
    memcpy(c->out, start, c->out_bytes);
}

typedef struct frame {
    job j;
    op_visit *visit;
} frame;

/* Each case ends by giving its memory back. */
static void visit_and_end(void *ctx, op_case *c)
{
    frame *f = ctx;
    f->visit(&f->j, c);
    op_end();
}

static void over_cases(qt *t, const qn_kern_table *k, qn_kern_id id, op_visit *visit)
{
    frame f = {{t, k}, visit};
    if (QT_OKF(t, op_lists[id] != NULL, "%s has no cases", qn_kern_name(id)))
        op_lists[id](visit_and_end, &f);
}

void op_matches_ref(qt *t, const qn_kern_table *k, qn_kern_id id)
{
    over_cases(t, k, id, visit_ref);
}
void op_has_generic_bits(qt *t, const qn_kern_table *k, qn_kern_id id)
{
    over_cases(t, k, id, visit_generic);
}
void op_split_changes_nothing(qt *t, const qn_kern_table *k, qn_kern_id id)
{
    over_cases(t, k, id, visit_split);
}
