/* SPDX-License-Identifier: Apache-2.0 */
/* roofline_test.c - the machine's limits and a model's traffic: that figures are there and agree with
 * each other. How large they are is no test's business. */
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "kern/peak.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-f32/model.gguf"

static quern_runtime *runtime_with(qt *t, uint64_t ceiling, uint32_t threads, const char *isa)
{
    quern_runtime *rt = NULL;
    quern_runtime_options o = QUERN_RUNTIME_OPTIONS_INIT;
    o.memory_ceiling = ceiling;
    o.threads = threads;
    o.isa = isa;
    QT_EQ(t, quern_runtime_open(&rt, &o, NULL), QUERN_OK);
    return rt;
}

static void every_rate_is_told_with_what_it_is_of(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0, 2, NULL);
    quern_error err = {0};
    quern_roofline_report r = {.size = sizeof r};
    if (!QT_OKF(t, quern_roofline(&r, rt, 1, &err) == QUERN_OK, "%s", err.msg)) return;
    const quern_rate *const always[] = {&r.l2, &r.memory, &r.f32};
    for (size_t i = 0; i < QT_LEN(always); i++)
        QT_OKF(t, always[i]->one > 0 && always[i]->all > 0 && always[i]->how, "%zu", i);
    QT_OK(t, r.l2.bytes > 0 && r.memory.bytes > r.l2.bytes && r.f32.bytes == 0);
    QT_OK(t, r.threads == 2 && r.others >= 0);
    const bool dots = (qn_cpu_features() & (QN_CPU_AVX2 | QN_CPU_AVX512VNNI | QN_CPU_NEON)) != 0;
    QT_EQ(t, r.int8.one > 0, dots);
    quern_runtime_close(rt);
}

static void what_is_masked_is_not_measured(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0, 1, "generic");
    quern_roofline_report r = {.size = sizeof r};
    QT_EQ(t, quern_roofline(&r, rt, 1, NULL), QUERN_OK);
    QT_OK(t, r.int8.one == 0 && r.bf16.one == 0 && r.f16.one == 0 && r.f32.one > 0);
    QT_OK(t, r.f32.all == r.f32.one);
    quern_runtime_close(rt);
}

static void refusals_name_what_is_wrong(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0, 1, NULL);
    quern_error err = {0};
    quern_roofline_report r = {.size = 4};
    QT_EQ(t, quern_roofline(NULL, rt, 1, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_roofline(&r, rt, 1, &err), QUERN_E_INVAL);
    r.size = sizeof r;
    QT_EQ(t, quern_roofline(&r, NULL, 1, &err), QUERN_E_INVAL);
    QT_EQ(t, quern_roofline(&r, rt, 10001, &err), QUERN_E_INVAL);
    QT_OKF(t, strstr(err.msg, "slice_ms is 10001") != NULL, "%s", err.msg);
    quern_runtime_close(rt);
    rt = runtime_with(t, qn_alloc_live_bytes() + (32 << 20), 1, NULL);
    QT_EQ(t, quern_roofline(&r, rt, 1, &err), QUERN_E_NOMEM);
    QT_OKF(t, strstr(err.msg, "256 MiB") != NULL, "%s", err.msg);
    quern_runtime_close(rt);
    qn_alloc_set_ceiling(SIZE_MAX);
}

/* All widths read the same words, so they agree about their exclusive or. */
static void readers_see_every_byte(qt *t)
{
    enum { N = 4 * QN_PEAK_READ_STEP };
    uint8_t *p = qn_pages_alloc(N);
    const uint32_t all = qn_cpu_features(), levels[] = {0, all & QN_CPU_AVX2, all};
    uint64_t words = 0;
    for (size_t i = 0; i < N; i++) p[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t i = 0; i < N; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        words ^= w;
    }
    for (size_t i = 0; i < QT_LEN(levels); i++) QT_EQ(t, qn_peak_read(p, N, levels[i]), words);
    for (size_t i = 0; i < N; i += 97) {
        p[i] ^= 1;
        QT_OK(t, qn_peak_read(p, N, all) != words);
        p[i] ^= 1;
    }
    qn_pages_free(p, N);
}

static void traffic_counts_weights_once_and_what_is_seen_of_the_cache(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0, 1, NULL);
    quern_model *m = NULL;
    quern_model_info info = {.size = sizeof info};
    quern_traffic a = {.size = sizeof a}, b = {.size = sizeof b};
    QT_EQ(t, quern_model_open(&m, rt, MODEL, NULL, NULL), QUERN_OK);
    QT_EQ(t, quern_model_get_info(m, &info, NULL), QUERN_OK);
    QT_EQ(t, quern_model_traffic(&a, m, QUERN_KV_F16, 10, NULL), QUERN_OK);
    QT_EQ(t, quern_model_traffic(&b, m, QUERN_KV_F32, 100, NULL), QUERN_OK);
    QT_OK(t, a.weight_bytes > 0 && a.weight_bytes <= info.weight_bytes && a.row_ops > 0);
    QT_EQ(t, a.kv_bytes, 2ull * 10 * info.n_layers * info.n_kv_heads * info.head_dim * 2);
    QT_EQ(t, b.kv_bytes, 20 * a.kv_bytes);
    a.size = 1;
    QT_EQ(t, quern_model_traffic(&a, m, QUERN_KV_F16, 10, NULL), QUERN_E_INVAL);
    QT_EQ(t, quern_model_traffic(NULL, m, QUERN_KV_F16, 10, NULL), QUERN_E_INVAL);
    QT_EQ(t, quern_model_traffic(&b, NULL, QUERN_KV_F16, 10, NULL), QUERN_E_INVAL);
    QT_EQ(t, quern_model_traffic(&b, m, (quern_kv)99, 10, NULL), QUERN_E_INVAL);
    quern_model_unref(m);
    quern_runtime_close(rt);
}

QT_MAIN(QT(every_rate_is_told_with_what_it_is_of), QT(what_is_masked_is_not_measured),
        QT(refusals_name_what_is_wrong), QT(readers_see_every_byte),
        QT(traffic_counts_weights_once_and_what_is_seen_of_the_cache))
