/* SPDX-License-Identifier: Apache-2.0 */
/* draw_test.c - what the token draw promises beyond its formula: the right distribution, nothing from
 * beside it, rows that are odd, and filters that keep just what they say. */
#include <math.h>
#include <string.h>

#include "isa.h"
#include "op.h"

static qn_drawn draw_one(const qn_kern_table *k, const float *x, uint32_t vocab, qn_sampler s)
{
    const uint32_t n = 1, slot = 0x7FFFFFFFu;
    qn_drawn d = {0};
    const qn_draw_args a = {&d, NULL, &slot, x, vocab, &s, &n, vocab, 0, NULL};
    op_run(k, QN_K_draw, &a, (qn_span){0, 1});
    return d;
}

/* All variants have the same bits (variants_test.c), so one stands for all: the fastest. */
static qn_kern_table best(void) { return qn_kern_select(qn_cpu_features() & isa_allowed()); }

/* 20,000 draws over 10 tokens against their probabilities: chi-square with 9 degrees of freedom is
 * above 27.9 once in a thousand; the seeds are fixed. */
static void chi_square(qt *t, const qn_kern_table *k, float temperature, uint64_t seed)
{
    enum { V = 10, DRAWS = 20000 };
    static const float x[V] = {2, 1.5f, 1, 0.5f, 0, -0.5f, 1.2f, 0.3f, -1, 0.9f};
    double p[V], total = 0, chi = 0;
    uint32_t count[V] = {0};
    for (int i = 0; i < V; i++) total += p[i] = exp((double)x[i] / (double)temperature);
    for (uint32_t i = 0; i < DRAWS; i++) {
        const qn_drawn d =
            draw_one(k, x, V, (qn_sampler){.seed = seed, .index = i, .temperature = temperature});
        if (d.token < V) count[d.token]++;
    }
    for (int i = 0; i < V; i++) {
        const double want = p[i] / total * DRAWS;
        chi += ((double)count[i] - want) * ((double)count[i] - want) / want;
    }
    QT_OKF(t, chi < 27.9, "chi-square %.2f at temperature %g", chi, (double)temperature);
}

static void draws_follow_the_softmax(qt *t)
{
    const qn_kern_table k = best();
    chi_square(t, &k, 1.0f, 1);
    chi_square(t, &k, 1.0f, 0xFFFFFFFF00000001u);
}
static void draws_follow_the_temperature(qt *t)
{
    const qn_kern_table k = best();
    chi_square(t, &k, 0.5f, 2);
    chi_square(t, &k, 1.7f, 3);
}

/* The index, the choice and the seed each lead to other draws; the same name leads to the same. */
static void a_draw_depends_on_its_name_only(qt *t)
{
    const qn_kern_table k = best();
    const float *x = op_fill(1000, 0.0f);
    const qn_sampler s = {.seed = 7, .choice = 1, .index = 3, .temperature = 1};
    qn_sampler other[3] = {s, s, s};
    other[0].seed++;
    other[1].choice++;
    other[2].index++;
    const uint32_t token = draw_one(&k, x, 1000, s).token;
    QT_EQ(t, draw_one(&k, x, 1000, s).token, token);
    for (int i = 0; i < 3; i++) QT_OK(t, draw_one(&k, x, 1000, other[i]).token != token);
    op_end();
}

/* A token that the filter drops takes no part: the draw is the one over the kept alone. */
static void filters_keep_the_noise_of_each_token(qt *t)
{
    const qn_kern_table k = best();
    float *x = op_rand(300), *cut = op_fill(300, -INFINITY);
    for (uint32_t i = 0; i < 300; i++) x[i] *= 2;
    float top[300];
    memcpy(top, x, sizeof top);
    for (int r = 0; r < 8; r++) { /* the eight best, by hand */
        uint32_t at = 0;
        for (uint32_t i = 0; i < 300; i++)
            if (top[i] > top[at]) at = i;
        cut[at] = x[at];
        top[at] = -INFINITY;
    }
    for (uint32_t i = 0; i < 200; i++) {
        const qn_sampler s = {.seed = 9, .index = i, .temperature = 1.5f};
        qn_sampler with = s;
        with.top_k = 8;
        const qn_drawn a = draw_one(&k, x, 300, with), b = draw_one(&k, cut, 300, s);
        QT_EQ(t, a.token, b.token);
        QT_EQ(t, a.n_kept, 8);
    }
    op_end();
}

static void top_p_keeps_the_smallest_set_that_reaches_p(qt *t)
{
    const qn_kern_table k = best();
    /* probabilities 0.5, 0.25, 0.125, 0.0625, 0.0625 */
    const float x[5] = {logf(8), logf(4), logf(2), 0, 0};
    static const struct {
        float p;
        uint32_t kept;
    } want[] = {{0.1f, 1},  {0.49f, 1}, {0.51f, 2}, {0.74f, 2},
                {0.76f, 3}, {0.9f, 4},  {0.95f, 5}, {0.99f, 5}};
    for (size_t i = 0; i < QT_LEN(want); i++) {
        const qn_sampler s = {.temperature = 1, .top_p = want[i].p};
        QT_EQ(t, draw_one(&k, x, 5, s).n_kept, want[i].kept);
    }
}

static void min_p_keeps_what_is_near_the_top(qt *t)
{
    const qn_kern_table k = best();
    const float x[4] = {0, logf(0.5f), logf(0.25f), logf(0.1f)};
    QT_EQ(t, draw_one(&k, x, 4, (qn_sampler){.temperature = 1, .min_p = 0.2f}).n_kept, 3);
    QT_EQ(t, draw_one(&k, x, 4, (qn_sampler){.temperature = 1, .min_p = 0.3f}).n_kept, 2);
    QT_EQ(t, draw_one(&k, x, 4, (qn_sampler){.temperature = 1, .min_p = 1}).n_kept, 1);
}

static void top_k_breaks_ties_by_the_lower_id(qt *t)
{
    const qn_kern_table k = best();
    const float *x = op_fill(100, 2.0f);
    for (uint32_t i = 0; i < 300; i++) {
        const qn_drawn d =
            draw_one(&k, x, 100, (qn_sampler){.index = i, .temperature = 1, .top_k = 3});
        QT_OK(t, d.token < 3 && d.n_kept == 3);
    }
    op_end();
}

static void greedy_takes_the_first_of_equals(qt *t)
{
    const qn_kern_table k = best();
    float *x = op_fill(70, -1.0f);
    x[33] = x[34] = x[69] = 5;
    const qn_drawn d = draw_one(&k, x, 70, (qn_sampler){.temperature = 0});
    QT_EQ(t, d.token, 33);
    QT_EQ(t, d.n_kept, 1);
    QT_OK(t, d.logit > 4.9f && fabs((double)d.logprob + log(3 + 67 * exp(-6))) < 1e-6);
    x[0] = -0.0f, x[1] = 0.0f; /* equal */
    for (int i = 2; i < 70; i++) x[i] = -1;
    QT_EQ(t, draw_one(&k, x, 70, (qn_sampler){.temperature = 0}).token, 0);
    op_end();
}

static void rows_without_a_number_give_token_0(qt *t)
{
    const qn_kern_table k = best();
    float *x = op_fill(40, -INFINITY);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 40 && round; i++) x[i] = NAN;
        for (int temp = 0; temp < 2; temp++) {
            const qn_drawn d =
                draw_one(&k, x, 40, (qn_sampler){.temperature = (float)temp, .top_p = 0.5f});
            QT_OK(t, d.token == 0 && isinf(d.logprob) && d.logprob < 0);
        }
    }
    op_end();
}

/* Probabilities 0.4 0.25 0.2 0.1 0.05 in mixed order; worked out by hand. */
static void xtc_leaves_the_least_likely_above_its_threshold(qt *t)
{
    static const float p[5] = {0.1f, 0.4f, 0.05f, 0.25f, 0.2f};
    static const struct {
        float threshold, top_p;
        uint32_t top_k, spared, kept, best; /* best: the likeliest that stays */
    } cases[] = {
        {0.15f, 0, 0, 9, 3, 4},    /* 0.4 and 0.25 go */
        {0.15f, 0, 0, 1, 4, 1},    /* 0.4 is spared */
        {0.15f, 0, 2, 9, 2, 4},    /* top-k counts what is left: 0.2 and 0.1 */
        {0.3f, 0, 0, 9, 5, 1},     /* one above: nothing goes */
        {0.5f, 0, 0, 9, 5, 1},     /* none above */
        {0.22f, 0.8f, 0, 9, 1, 4}, /* left are 0.4 0.25 0.2 of 0.85: 0.2 is 0.235 of it */
        {0.24f, 0.8f, 0, 9, 2, 3}, /* now 0.2 is below */
        {0, 0, 0, 9, 1, 2},        /* all but the last */
    };
    const qn_kern_table k = best();
    float x[5];
    for (int i = 0; i < 5; i++) x[i] = logf(p[i]);
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        const uint32_t slot = 0x7FFFFFFF, n = 1;
        qn_sampler s = {.temperature = 1e-3f,
                        .top_p = cases[i].top_p,
                        .top_k = cases[i].top_k,
                        .xtc_probability = 1,
                        .xtc_threshold = cases[i].threshold};
        qn_drawn d = {0};
        const qn_draw_args a = {&d, NULL, &slot, x, 5, &s, &n, 5, 1, &cases[i].spared};
        op_run(&k, QN_K_draw, &a, (qn_span){0, 1});
        QT_OKF(t, d.n_kept == cases[i].kept && d.token == cases[i].best,
               "case %zu: kept %u and drew %u, expected %u and %u", i, d.n_kept, d.token,
               cases[i].kept, cases[i].best);
    }
}

static void xtc_acts_as_often_as_its_probability_says(qt *t)
{
    const qn_kern_table k = best();
    const float x[2] = {logf(0.6f), logf(0.4f)};
    uint32_t acted = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        const qn_sampler s = {
            .index = i, .temperature = 1, .xtc_probability = 0.25f, .xtc_threshold = 0.1f};
        acted += draw_one(&k, x, 2, s).n_kept == 1;
    }
    QT_OKF(t, acted > 900 && acted < 1100, "%u of 4000", acted); /* 3.6 deviations */
}

static void not_a_number_is_never_drawn(qt *t)
{
    const qn_kern_table k = best();
    float *x = op_fill(64, NAN);
    x[17] = -3, x[50] = -2;
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t token =
            draw_one(&k, x, 64, (qn_sampler){.index = i, .temperature = 1}).token;
        QT_OK(t, token == 17 || token == 50);
    }
    x[40] = INFINITY;
    QT_EQ(t, draw_one(&k, x, 64, (qn_sampler){.temperature = 1, .top_k = 5}).token, 40);
    op_end();
}

QT_MAIN(QT(draws_follow_the_softmax), QT(draws_follow_the_temperature),
        QT(a_draw_depends_on_its_name_only), QT(filters_keep_the_noise_of_each_token),
        QT(top_p_keeps_the_smallest_set_that_reaches_p), QT(min_p_keeps_what_is_near_the_top),
        QT(top_k_breaks_ties_by_the_lower_id), QT(greedy_takes_the_first_of_equals),
        QT(rows_without_a_number_give_token_0), QT(xtc_leaves_the_least_likely_above_its_threshold),
        QT(xtc_acts_as_often_as_its_probability_says), QT(not_a_number_is_never_drawn))
