/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/sample.h"

#include <math.h>
#include <string.h>

#include "qt.h"

static void the_built_in_passes_its_own_check(qt *t)
{
    const qn_sampler s = qn_sample_default();
    QT_EQ(t, qn_sample_check(&s, NULL), QN_OK);
    QT_OK(t, s.temperature == 0.7f && s.top_p == 0.0f && s.min_p == 0.0f && s.top_k == 0);
}

static void refusals_name_field_and_value(qt *t)
{
    static const struct {
        qn_sampler s;
        const char *word;
    } bad[] = {
        {{.temperature = -0.5f}, "temperature is -0.5"},
        {{.temperature = NAN}, "temperature"},
        {{.temperature = INFINITY}, "temperature"},
        {{.top_p = 1.5f}, "top_p is 1.5"},
        {{.top_p = NAN}, "top_p"},
        {{.min_p = -1.0f}, "min_p is -1"},
    };
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        qn_err err = {0};
        QT_EQ(t, qn_sample_check(&bad[i].s, &err), QN_E_INVAL);
        QT_OKF(t, strstr(err.msg, bad[i].word) != NULL, "%s", err.msg);
    }
    const qn_sampler edge = {
        .temperature = 0.0f, .top_p = 1.0f, .min_p = 1.0f, .top_k = UINT32_MAX};
    QT_EQ(t, qn_sample_check(&edge, NULL), QN_OK);
}

static void top_orders_by_value_then_id(qt *t)
{
    const float x[] = {1.0f, NAN, 3.0f, -INFINITY, 3.0f, 2.0f, 5.0f};
    const qn_drawn d = {.token = 6, .logit = 5.0f, .logprob = -0.25f};
    static const uint32_t want[] = {6, 2, 4, 5, 0};
    qn_top top[8];
    for (uint32_t k = 0; k <= 8; k++) {
        const uint32_t n = qn_sample_top(top, k, x, 7, &d);
        QT_EQ(t, n, k < 5 ? k : 5);
        for (uint32_t i = 0; i < n; i++) QT_EQ(t, top[i].token, want[i]);
    }
    QT_OK(t, top[0].logprob == -0.25f && top[1].logprob == -2.25f);
}

static void top_agrees_with_a_sort(qt *t)
{
    enum { N = 500 };
    float *x = qt_rand_f32(N);
    qn_top top[64];
    const qn_drawn d = {.logit = 0.0f, .logprob = 0.0f};
    QT_EQ(t, qn_sample_top(top, 64, x, N, &d), 64);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t above = 0;
        for (uint32_t id = 0; id < N; id++) above += x[id] > x[top[i].token];
        QT_EQ(t, above, i);
    }
    qt_release(1, x);
}

QT_MAIN(QT(the_built_in_passes_its_own_check), QT(refusals_name_field_and_value),
        QT(top_orders_by_value_then_id), QT(top_agrees_with_a_sort))
