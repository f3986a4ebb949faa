/* SPDX-License-Identifier: Apache-2.0 */
/* rope_test.c - frequencies of each variant against their formulas, in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model_int.h"
#include "tiny.h"

enum { PAIRS = TINY_DIM / 2 };

/* inv_freq of a tiny model whose config has these members. */
static bool frequencies(qt *t, float out[PAIRS], float *mscale, const char *extra)
{
    qn_model *m = NULL;
    qn_err err = {0};
    char members[512];
    snprintf(members, sizeof members, "\"model_type\": \"llama\", %s,", extra);
    const char *dir = tiny_hf(t, "rope", tiny_config(members), "", true);
    if (!QT_OKF(t, qn_model_open(&m, dir, NULL, &err) == QN_OK, "%s", err.msg)) return false;
    memcpy(out, m->inv_freq[0], PAIRS * sizeof *out);
    *mscale = m->rope[0].mscale;
    QT_EQ(t, m->rope[0].half, PAIRS);
    qn_model_unref(m);
    return true;
}

static double plain(int i, double theta) { return pow(theta, -2.0 * i / TINY_DIM); }

static void close_to(qt *t, float a, double b)
{
    QT_OKF(t, fabs((double)a - b) <= 3e-7 * b, "%.9g, expected %.9g", (double)a, b);
}

static void without_scaling_they_are_powers_of_theta(qt *t)
{
    float f[PAIRS], m = 0;
    if (!frequencies(t, f, &m, "\"rope_theta\": 500000")) return;
    for (int i = 0; i < PAIRS; i++) close_to(t, f[i], plain(i, 500000));
    QT_OK(t, m == 1.0f);
}

static void theta_may_stand_in_rope_parameters(qt *t)
{
    float f[PAIRS], m = 0;
    if (!frequencies(t, f, &m,
                     "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 2000}"))
        return;
    for (int i = 0; i < PAIRS; i++) close_to(t, f[i], plain(i, 2000));
}

static void linear_divides_all_of_them(qt *t)
{
    float f[PAIRS], m = 0;
    if (!frequencies(t, f, &m, "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}")) return;
    for (int i = 0; i < PAIRS; i++) close_to(t, f[i], plain(i, 10000) / 4);
}

static void llama3_stretches_long_waves_and_blends(qt *t)
{
    float f[PAIRS], m = 0;
    int kinds = 0;
    if (!frequencies(t, f, &m,
                     "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, "
                     "\"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                     "\"original_max_position_embeddings\": 100}"))
        return;
    for (int i = 0; i < PAIRS; i++) {
        const double plain_f = plain(i, 10000), wave = 2 * acos(-1.0) / plain_f;
        double want = plain_f;
        if (wave > 100) {
            want = plain_f / 8;
            kinds |= 1;
        } else if (wave >= 25) {
            const double s = (100 / wave - 1) / 3;
            want = (1 - s) * plain_f / 8 + s * plain_f;
            kinds |= 2;
        } else {
            kinds |= 4;
        }
        close_to(t, f[i], want);
    }
    QT_EQ(t, kinds, 7);
}

static void yarn_ramps_between_the_two(qt *t)
{
    float f[PAIRS], m = 0;
    if (!frequencies(t, f, &m,
                     "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 16, "
                     "\"original_max_position_embeddings\": 1000}"))
        return;
    const double pi = acos(-1.0), base = 2 * log(10000.0);
    const double low = fmax(floor(TINY_DIM * log(1000 / (32 * 2 * pi)) / base), 0);
    const double high = fmin(ceil(TINY_DIM * log(1000 / (2 * pi)) / base), TINY_DIM - 1);
    for (int i = 0; i < PAIRS; i++) {
        const double ramp = fmin(fmax((i - low) / (high - low), 0), 1);
        close_to(t, f[i], plain(i, 10000) * ((1 - ramp) + ramp / 16));
    }
    close_to(t, m, 0.1 * log(16.0) + 1);
}

static void yarn_takes_a_named_magnitude(qt *t)
{
    float f[PAIRS], m = 0;
    if (frequencies(t, f, &m,
                    "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 16, "
                    "\"attention_factor\": 1.25}"))
        QT_OK(t, m == 1.25f);
    if (frequencies(t, f, &m,
                    "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 16, \"mscale\": 1, "
                    "\"mscale_all_dim\": 1}"))
        QT_OK(t, m == 1.0f);
}

static void longrope_divides_by_its_list(qt *t)
{
    float f[PAIRS], m = 0;
    if (!frequencies(
            t, f, &m,
            "\"original_max_position_embeddings\": 32, \"rope_scaling\": {\"type\": "
            "\"longrope\", \"long_factor\": [1, 2, 3, 4], \"short_factor\": [9, 9, 9, 9]}"))
        return;
    for (int i = 0; i < PAIRS; i++) close_to(t, f[i], plain(i, 10000) / (i + 1));
    close_to(t, m, sqrt(1 + log(4.0) / log(32.0)));
}

static void longrope_of_another_length_is_refused(qt *t)
{
    qn_model *m = NULL;
    qn_err err = {0};
    const char *config = tiny_config("\"model_type\": \"llama\", \"rope_scaling\": {\"type\": "
                                     "\"longrope\", \"long_factor\": [1, 2]},");
    QT_EQ(t, qn_model_open(&m, tiny_hf(t, "rope", config, "", true), NULL, &err), QN_E_FORMAT);
    QT_OKF(t, strstr(err.msg, "long_factor has 2 numbers, expected 4") != NULL, "%s", err.msg);
}

static void a_gguf_divides_by_its_factor_tensor(qt *t)
{
    qn_model *m = NULL;
    qn_err err = {0};
    const char *path = tiny_gguf(t, &(tiny){.rope_factor = 2.5f});
    if (!QT_OKF(t, qn_model_open(&m, path, NULL, &err) == QN_OK, "%s", err.msg)) return;
    for (int i = 0; i < PAIRS; i++) close_to(t, m->inv_freq[0][i], plain(i, 10000) / 2.5);
    qn_model_unref(m);
}

static void the_older_key_of_a_gguf_means_linear(qt *t)
{
    qn_model *m = NULL;
    qn_err err = {0};
    const char *path =
        tiny_gguf(t, &(tiny){.key = "rope.scale_linear", .value = 2, .as_float = true});
    if (!QT_OKF(t, qn_model_open(&m, path, NULL, &err) == QN_OK, "%s", err.msg)) return;
    close_to(t, m->inv_freq[0][1], plain(1, 10000) / 2);
    qn_model_unref(m);
}

QT_MAIN(QT(without_scaling_they_are_powers_of_theta), QT(theta_may_stand_in_rope_parameters),
        QT(linear_divides_all_of_them), QT(llama3_stretches_long_waves_and_blends),
        QT(yarn_ramps_between_the_two), QT(yarn_takes_a_named_magnitude),
        QT(longrope_divides_by_its_list), QT(longrope_of_another_length_is_refused),
        QT(a_gguf_divides_by_its_factor_tensor), QT(the_older_key_of_a_gguf_means_linear))
