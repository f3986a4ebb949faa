/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2_test.c - the starter model's greedy continuations against the float32 oracle's.
 *
 * The oracle's own tokens are fed, so that one difference does not spoil the rest: at each of 1,000
 * steps the most likely token must be the oracle's. A difference counts unless the oracle's two best
 * logits are closer than 1e-3 there; five may count. The engine's free run must agree too, up to a
 * step that is excused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "forward.h"
#include "golden.h"
#include "mlx_copy.h"
#include "quern/quern.h"

enum { STEPS = 100, MAX_COUNTED = 5 };

typedef struct prompt {
    const char *text;
    uint32_t ids[1024], n; /* prompt and continuation */
    uint32_t n_prompt;
    double gap[STEPS];
} prompt;

static void read_prompt(prompt *p, const qn_json *j)
{
    const qn_json *start = qn_json_get(j, "prompt"), *greedy = qn_json_get(j, "greedy");
    size_t n = 0;
    memset(p, 0, sizeof *p);
    p->text = qn_json_str(qn_json_get(j, "text"), &n);
    p->n_prompt = (uint32_t)qn_json_len(start);
    for (uint32_t i = 0; i < p->n_prompt && i + STEPS < QT_LEN(p->ids); i++)
        p->ids[p->n++] = (uint32_t)qn_json_int(qn_json_at(start, i), 0);
    for (uint32_t i = 0; i < STEPS; i++) {
        p->ids[p->n++] = (uint32_t)qn_json_int(qn_json_at(greedy, i), 0);
        p->gap[i] = qn_json_num(qn_json_at(qn_json_get(j, "gap"), i), 0);
    }
}

static uint32_t best_of(const float *row, uint32_t vocab)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < vocab; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* How many steps differ and are not excused. */
static uint32_t count_differences(qt *t, const qn_model *m, const prompt *p)
{
    const uint32_t vocab = qn_model_get_desc(m)->vocab;
    uint32_t counted = 0;
    float *logits = forward_logits(t, m, p->ids, p->n, (forward_how){.kv = QN_KV_F32, .lanes = 2});
    for (uint32_t i = 0; logits && i < STEPS; i++) {
        const uint32_t at = p->n_prompt + i;
        const uint32_t ours = best_of(logits + (size_t)(at - 1) * vocab, vocab);
        if (ours == p->ids[at]) continue;
        fprintf(stderr, "step %u of \"%.30s\": %u, the oracle says %u (gap %.5f)\n", i, p->text,
                ours, p->ids[at], p->gap[i]);
        if (p->gap[i] >= 1e-3) counted++;
    }
    qt_release(1, logits);
    return counted;
}

/* All ten prompts of a golden with the model at `path`. */
static void check_thousand_steps(qt *t, const char *path, const char *answers)
{
    static prompt p;
    qn_model *m = NULL;
    qn_err err = {0};
    uint32_t counted = 0;
    qn_json *root = golden_json(t, answers);
    const qn_json *prompts = qn_json_get(root, "prompts");
    QT_EQ(t, qn_json_len(prompts), 10);
    if (QT_OKF(t, qn_model_open(&m, path, NULL, &err) == QN_OK, "%s", err.msg))
        for (size_t i = 0; i < qn_json_len(prompts); i++) {
            read_prompt(&p, qn_json_at(prompts, i));
            counted += count_differences(t, m, &p);
        }
    QT_OKF(t, counted <= MAX_COUNTED, "%u of 1000 steps differ, expected at most %d", counted,
           MAX_COUNTED);
    qn_model_unref(m);
    qn_json_free(root);
}

static void a_thousand_greedy_steps_equal_the_oracle(qt *t)
{
    check_thousand_steps(t, QUERN_STARTER, "tests/golden/smollm2/greedy.json");
}

/* A copy made here, told by its digest to be the one that mlx-lm ran. */
static void check_mlx_copy(qt *t, uint32_t bits, const char *answers)
{
    char dir[512], digest[65] = "";
    qn_err err = {0};
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s/mlx%u", qt_tmp(), bits);
    QT_EQ(t, mkdir(dir, 0777), 0);
    if (!QT_OKF(t, mlx_copy(QUERN_STARTER, bits, dir, digest, &err) == QN_OK, "%s", err.msg))
        return;
    qn_json *root = golden_json(t, answers);
    const char *want = qn_json_str(qn_json_get(root, "tensors_sha256"), &n);
    QT_STR(t, digest, want);
    qn_json_free(root);
    check_thousand_steps(t, dir, answers);
}

static void an_mlx_copy_of_4_bits_equals_mlx_lm(qt *t)
{
    check_mlx_copy(t, 4, "tests/golden/smollm2/greedy-mlx4.json");
}

static void an_mlx_copy_of_8_bits_equals_mlx_lm(qt *t)
{
    check_mlx_copy(t, 8, "tests/golden/smollm2/greedy-mlx8.json");
}

/* -- the same through the public interface ----------------------------------------------------- */

typedef struct library {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
} library;

static quern_code open_library(library *l, quern_error *err)
{
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    memset(l, 0, sizeof *l);
    eo.kv = QUERN_KV_F32;
    eo.context = 1024;
    QN_TRY(quern_runtime_open(&l->rt, NULL, err));
    QN_TRY(quern_model_open(&l->model, l->rt, QUERN_STARTER, NULL, err));
    return quern_engine_open(&l->engine, l->model, &eo, err);
}

static void close_library(library *l)
{
    quern_engine_close(l->engine);
    quern_model_unref(l->model);
    quern_runtime_close(l->rt);
}

/* All ten at once, from their texts: the tokenizer, batching and the draw are in it. */
static void the_engine_runs_all_prompts_together_as_the_oracle_did(qt *t)
{
    static prompt p[10];
    quern_request *r[10] = {NULL};
    library l;
    quern_error err = {0};
    qn_json *root = golden_json(t, "tests/golden/smollm2/greedy.json");
    const bool ok = QT_OKF(t, open_library(&l, &err) == QUERN_OK, "%s", err.msg);
    for (size_t i = 0; ok && i < QT_LEN(p); i++) {
        quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
        read_prompt(&p[i], qn_json_at(qn_json_get(root, "prompts"), i));
        o.text = p[i].text;
        o.text_n = strlen(p[i].text);
        o.text_flags = QUERN_TOKENIZE_SPECIAL | QUERN_TOKENIZE_MARKERS;
        o.max_tokens = STEPS;
        o.flags = QUERN_REQUEST_IGNORE_EOS;
        QT_OKF(t, quern_request_open(&r[i], l.engine, &o, &err) == QUERN_OK, "%s", err.msg);
    }
    for (size_t i = 0; ok && i < QT_LEN(p); i++) {
        const quern_event *e = NULL;
        bool differs = false;
        while (r[i] && quern_request_next(&e, r[i], -1, &err) == QUERN_OK) {
            if (e->kind == QUERN_EVENT_DONE) QT_EQ(t, e->prompt_tokens, p[i].n_prompt);
            if (e->kind == QUERN_EVENT_ERROR) QT_OKF(t, false, "%s", e->msg);
            if (e->kind != QUERN_EVENT_TOKEN || differs) continue;
            differs = e->token != p[i].ids[p[i].n_prompt + e->index];
            if (differs)
                QT_OKF(t, p[i].gap[e->index] < 1e-3,
                       "step %u of prompt %zu: %u, the oracle says %u", e->index, i, e->token,
                       p[i].ids[p[i].n_prompt + e->index]);
        }
        quern_request_free(r[i]);
    }
    close_library(&l);
    qn_json_free(root);
}

QT_MAIN(QT(a_thousand_greedy_steps_equal_the_oracle), QT(an_mlx_copy_of_4_bits_equals_mlx_lm),
        QT(an_mlx_copy_of_8_bits_equals_mlx_lm),
        QT(the_engine_runs_all_prompts_together_as_the_oracle_did))
