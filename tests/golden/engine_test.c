/* SPDX-License-Identifier: Apache-2.0 */
/* engine_test.c - tiny models through the engine, prompt in chunks on two lanes, against their oracle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "golden.h"
#include "isa.h"
#include "wire/codec.h"

#define TOLERANCE 1e-4

typedef struct seen { /* what the probe has gathered */
    float *logits;    /* [n][vocab] */
    uint32_t n, vocab, n_seen;
    atomic_bool done;
    atomic_int failed;
} seen;

static void on_step(void *ctx, const qn_step *step, const uint64_t *row_request,
                    const float *logits, size_t ld)
{
    seen *s = ctx;
    (void)row_request;
    for (uint32_t i = 0; logits && i < step->n_logits; i++) {
        const uint32_t pos = qn_step_kv_pos(step)[qn_step_logit_row(step)[i]];
        if (pos >= s->n) continue;
        memcpy(s->logits + (size_t)pos * s->vocab, logits + i * ld, s->vocab * sizeof(float));
        s->n_seen++;
    }
}

static void on_event(void *ctx, const qn_event_head *e)
{
    seen *s = ctx;
    if (e->head.kind == QN_EVENT_ERROR) atomic_store(&s->failed, 1);
    if (e->head.kind != QN_EVENT_TOKEN) atomic_store(&s->done, true);
}

/* The request asks for logprobs of its prompt, so every position has a logit row. */
static qn_code run_engine(seen *s, qn_model *m, const golden *g, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_engine *e = NULL;
    qn_buf block;
    uint64_t id = 0;
    qn_request_in in;
    const qn_engine_options opt = {
        .lanes = 2, .isa_mask = isa_allowed(), .max_rows = 32, .max_seqs = 2, .kv_fmt = QN_KV_F32};
    qn_request_in_init(&in);
    qn_buf_init(&block, 1 << 20);
    in.tokens = g->tokens;
    in.n_tokens = g->n_tokens;
    in.max_tokens = 1;
    in.logprobs = 0;
    in.flags = QN_REQUEST_ECHO | QN_REQUEST_PROMPT_LOGPROBS | QN_REQUEST_IGNORE_EOS;
    in.sampling.set = QN_SET_TEMPERATURE | QN_SET_MAX_TOKENS;
    QN_TRY_OUT(qn_request_build(&block, &in, err));
    QN_TRY_OUT(qn_engine_open(&e, m, &opt, err));
    qn_engine_set_probe(e, on_step, s);
    QN_TRY_OUT(qn_engine_submit(&id, e, block.data, block.len, on_event, s, err));
    while (!atomic_load(&s->done)) usleep(1000);
    if (atomic_load(&s->failed)) rc = qn_fail(err, QN_E_INTERNAL, "an error event");
out:
    qn_engine_close(e);
    qn_buf_fini(&block);
    return rc;
}

static void check_engine(qt *t, const char *name)
{
    golden g;
    qn_model *m = NULL;
    qn_err err = {0};
    if (golden_open(t, &g, name) && QT_OK(t, qn_model_open(&m, g.model, NULL, &err) == QN_OK)) {
        const size_t n = (size_t)g.n_tokens * g.vocab;
        seen s = {.logits = qt_fill_f32(n, 1e30f), .n = g.n_tokens, .vocab = g.vocab};
        const qn_code rc = run_engine(&s, m, &g, &err);
        if (QT_OKF(t, rc == QN_OK, "%s: %s", name, err.msg) &&
            QT_OKF(t, s.n_seen >= g.n_tokens, "%s: %u logit rows, expected %u", name, s.n_seen,
                   g.n_tokens)) {
            const double off = golden_distance(s.logits, g.logits, n);
            QT_OKF(t, off <= TOLERANCE, "%s: off by %.3g through the engine", name, off);
        }
        qt_release(1, s.logits);
    }
    qn_model_unref(m);
    golden_close(&g);
}

static void gguf_q4_1_engine_equals_the_oracle(qt *t) { check_engine(t, "gguf-q4_1"); }
static void gguf_q6_k_engine_equals_the_oracle(qt *t) { check_engine(t, "gguf-q6_k"); }
static void gguf_f16_llama3_rope_engine_equals_the_oracle(qt *t)
{
    check_engine(t, "gguf-f16-llama3-rope");
}
static void st_bf16_sharded_engine_equals_the_oracle(qt *t) { check_engine(t, "st-bf16-sharded"); }
static void mlx_mixed_engine_equals_the_oracle(qt *t) { check_engine(t, "mlx-mixed"); }
static void gemma3_pattern_engine_equals_the_oracle(qt *t) { check_engine(t, "gemma3/gguf-bf16"); }
static void gemma3_inside_engine_equals_the_oracle(qt *t)
{
    check_engine(t, "gemma3/st-f16-inside");
}

QT_MAIN(QT(gguf_q4_1_engine_equals_the_oracle), QT(gguf_q6_k_engine_equals_the_oracle),
        QT(gguf_f16_llama3_rope_engine_equals_the_oracle),
        QT(st_bf16_sharded_engine_equals_the_oracle), QT(mlx_mixed_engine_equals_the_oracle),
        QT(gemma3_pattern_engine_equals_the_oracle), QT(gemma3_inside_engine_equals_the_oracle))
