/* SPDX-License-Identifier: Apache-2.0 */
/* fit_test.c - what a model would take, and refusals for lack of memory before anything is read. */
#include <string.h>

#include "base/alloc.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-f32/model.gguf"

static quern_runtime *runtime_with(qt *t, uint64_t ceiling)
{
    quern_runtime *rt = NULL;
    quern_runtime_options o = QUERN_RUNTIME_OPTIONS_INIT;
    o.memory_ceiling = ceiling;
    QT_EQ(t, quern_runtime_open(&rt, &o, NULL), QUERN_OK);
    return rt;
}

static quern_fit_report look(qt *t, quern_runtime *rt, const quern_engine_options *eo)
{
    quern_fit_report r = {.size = sizeof r};
    quern_error err = {0};
    QT_OKF(t, quern_fit(&r, rt, MODEL, NULL, eo, &err) == QUERN_OK, "%s", err.msg);
    return r;
}

static void the_sums_of_a_report_agree(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0);
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    const quern_fit_report r = look(t, rt, NULL);
    QT_OK(t, r.fits == 1 && r.context > 0 && r.context_fits == r.context && r.layers > 0);
    QT_OK(t, r.weight_bytes > 0 && r.plan_bytes > 0 && r.kv_bytes > 0 && r.tokenizer_bytes > 0);
    QT_EQ(t, r.needed_bytes, r.weight_bytes + r.plan_bytes + r.kv_bytes + r.tokenizer_bytes);
    QT_EQ(t, r.kv_all_bytes, 8 * r.kv_bytes);
    eo.kv = QUERN_KV_F32;
    eo.context = 64;
    eo.max_seqs = 2;
    const quern_fit_report small = look(t, rt, &eo);
    QT_EQ(t, small.kv_bytes * (r.context / 64), 2 * r.kv_bytes); /* f32 is twice f16 */
    QT_EQ(t, small.kv_all_bytes, 2 * small.kv_bytes);
    eo.context = r.context + 1;
    quern_fit_report none = {.size = sizeof none};
    QT_EQ(t, quern_fit(&none, rt, MODEL, NULL, &eo, NULL), QUERN_E_LIMIT);
    none.size = 4;
    QT_EQ(t, quern_fit(&none, rt, MODEL, NULL, NULL, NULL), QUERN_E_INVAL);
    quern_runtime_close(rt);
}

static void weights_beyond_the_ceiling_are_refused_unread(qt *t)
{
    quern_runtime *rt = runtime_with(t, qn_alloc_live_bytes() + (64 << 10));
    quern_model *m = NULL;
    quern_error err = {0};
    const quern_fit_report r = look(t, rt, NULL);
    QT_OK(t, r.fits == 0 && r.context_fits == 0 && strcmp(r.limit, "ceiling") == 0);
    QT_OK(t, r.available_bytes <= 64 << 10);
    QT_EQ(t, quern_model_open(&m, rt, MODEL, NULL, &err), QUERN_E_NOMEM);
    QT_OKF(t, !m && strstr(err.msg, "MiB needed") && strstr(err.msg, "available (ceiling)"), "%s",
           err.msg);
    quern_runtime_close(rt);
    qn_alloc_set_ceiling(SIZE_MAX);
}

static void a_context_beyond_the_ceiling_is_refused_with_one_that_fits(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0);
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    quern_model *m = NULL;
    quern_engine *e = NULL;
    quern_error err = {0};
    eo.max_rows = 16;
    eo.max_seqs = 1;
    const quern_fit_report all = look(t, rt, &eo);
    quern_runtime_close(rt);
    /* enough for half of the largest context */
    rt = runtime_with(t, qn_alloc_live_bytes() + all.needed_bytes - all.kv_bytes / 2);
    const quern_fit_report half = look(t, rt, &eo);
    QT_OK(t, !half.fits && half.context_fits > 0 && half.context_fits < all.context);
    QT_OKF(t, quern_model_open(&m, rt, MODEL, NULL, &err) == QUERN_OK, "%s", err.msg);
    eo.context = all.context;
    QT_EQ(t, quern_engine_open(&e, m, &eo, &err), QUERN_E_NOMEM);
    QT_OKF(t, !e && strstr(err.msg, "the largest context that would fit is "), "%s", err.msg);
    eo.context = 1u << 30; /* more than the model was made for: no question of memory */
    QT_EQ(t, quern_engine_open(&e, m, &eo, &err), QUERN_E_LIMIT);
    QT_OKF(t, !e && strstr(err.msg, "the model was made for "), "%s", err.msg);
    eo.context = 0; /* then what fits is taken */
    QT_OKF(t, quern_engine_open(&e, m, &eo, &err) == QUERN_OK, "%s", err.msg);
    quern_engine_close(e);
    quern_model_unref(m);
    quern_runtime_close(rt);
    qn_alloc_set_ceiling(SIZE_MAX);
}

static void a_report_survives_every_failed_allocation(qt *t)
{
    quern_runtime *rt = runtime_with(t, 0);
    const size_t before = qn_alloc_live();
    quern_code rc = QUERN_E_NOMEM;
    size_t n = 0;
    for (; rc != QUERN_OK && n < 4096; n++) {
        quern_fit_report r = {.size = sizeof r};
        qn_alloc_fail_after(n);
        rc = quern_fit(&r, rt, MODEL, NULL, NULL, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QUERN_OK || rc == QUERN_E_NOMEM);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, rc == QUERN_OK && n > 1);
    quern_runtime_close(rt);
}

QT_MAIN(QT(the_sums_of_a_report_agree), QT(weights_beyond_the_ceiling_are_refused_unread),
        QT(a_context_beyond_the_ceiling_is_refused_with_one_that_fits),
        QT(a_report_survives_every_failed_allocation))
