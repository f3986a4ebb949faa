/* SPDX-License-Identifier: Apache-2.0 */
/* greedy.c - the oracle's tokens, fed and run freely. */
#include "greedy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forward.h"
#include "golden.h"
#include "quern/quern.h"

enum { STEPS = GREEDY_STEPS, MAX_COUNTED = 5, MAX_IDS = 4096, MAX_PROMPTS = 16 };

typedef struct prompt {
    const char *text;
    uint32_t ids[MAX_IDS], n; /* prompt and continuation */
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
    const forward_how how = {.kv = QN_KV_F32, .lanes = 2, .chunk = 64, .n_last = STEPS + 1};
    float *logits = forward_logits(t, m, p->ids, p->n, how);
    for (uint32_t i = 0; logits && i < STEPS; i++) {
        const uint32_t at = p->n_prompt + i;
        const uint32_t ours = best_of(logits + (size_t)i * vocab, vocab);
        if (ours == p->ids[at]) continue;
        fprintf(stderr, "step %u of \"%.30s\": %u, the oracle says %u (gap %.5f)\n", i, p->text,
                ours, p->ids[at], p->gap[i]);
        if (p->gap[i] >= 1e-3) counted++;
    }
    qt_release(1, logits);
    return counted;
}

void greedy_check_steps(qt *t, const char *path, const char *answers, size_t n)
{
    static prompt p;
    qn_model *m = NULL;
    qn_err err = {0};
    uint32_t counted = 0;
    qn_json *root = golden_json(t, answers);
    const qn_json *prompts = qn_json_get(root, "prompts");
    QT_EQ(t, qn_json_len(prompts), n);
    if (QT_OKF(t, qn_model_open(&m, path, NULL, &err) == QN_OK, "%s", err.msg))
        for (size_t i = 0; i < qn_json_len(prompts); i++) {
            read_prompt(&p, qn_json_at(prompts, i));
            counted += count_differences(t, m, &p);
        }
    QT_OKF(t, counted <= MAX_COUNTED, "%u of %zu steps differ, expected at most %d", counted,
           n * STEPS, MAX_COUNTED);
    qn_model_unref(m);
    qn_json_free(root);
}

/* -- the same through the public interface ----------------------------------------------------- */

typedef struct library {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
} library;

static quern_code open_library(library *l, const char *path, uint32_t context, quern_error *err)
{
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    memset(l, 0, sizeof *l);
    eo.kv = QUERN_KV_F32;
    eo.context = context;
    QN_TRY(quern_runtime_open(&l->rt, NULL, err));
    QN_TRY(quern_model_open(&l->model, l->rt, path, NULL, err));
    return quern_engine_open(&l->engine, l->model, &eo, err);
}

static void close_library(library *l)
{
    quern_engine_close(l->engine);
    quern_model_unref(l->model);
    quern_runtime_close(l->rt);
}

void greedy_check_engine(qt *t, const char *path, const char *answers, uint32_t context)
{
    static prompt p[MAX_PROMPTS];
    quern_request *r[MAX_PROMPTS] = {NULL};
    library l;
    quern_error err = {0};
    qn_json *root = golden_json(t, answers);
    const bool ok = QT_OKF(t, open_library(&l, path, context, &err) == QUERN_OK, "%s", err.msg);
    const size_t n = qn_json_len(qn_json_get(root, "prompts"));
    QT_OK(t, n > 0 && n <= MAX_PROMPTS);
    for (size_t i = 0; ok && i < n && i < MAX_PROMPTS; i++) {
        quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
        read_prompt(&p[i], qn_json_at(qn_json_get(root, "prompts"), i));
        o.text = p[i].text;
        o.text_n = strlen(p[i].text);
        o.text_flags = QUERN_TOKENIZE_SPECIAL | QUERN_TOKENIZE_MARKERS;
        o.max_tokens = STEPS;
        o.flags = QUERN_REQUEST_IGNORE_EOS;
        QT_OKF(t, quern_request_open(&r[i], l.engine, &o, &err) == QUERN_OK, "%s", err.msg);
    }
    for (size_t i = 0; ok && i < n && i < MAX_PROMPTS; i++) {
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
