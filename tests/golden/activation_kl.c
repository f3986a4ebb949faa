/* SPDX-License-Identifier: Apache-2.0 */
/* activation_kl.c - what integer activations change on real text: KL(f32 || them) of the next token's
 * distribution, mean and largest over positions, how often the likeliest token stays, and the perplexity
 * of both. One line of JSON a mode; bench/performance makes a table of them.
 *
 *     activation_kl MODES MODEL TEXT [TOKENS [FIRST]]
 *
 * MODES: "i8", "i16" or "i8,i16". Windows of 256 tokens, begun as the model expects a text to begin,
 * from byte FIRST of TEXT on; keys and values in f32, so that nothing but the mode differs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "forward.h"
#include "text/tokenizer.h"

enum { WINDOW = 256, MAX_MODES = 2, BYTES_A_TOKEN = 8 };

typedef struct mode {
    const char *name;
    qn_act_mode act;
    qn_model *model;
    double kl, most, nll;
    size_t same;
} mode;

static const char *modes_asked, *model_path, *text_path;
static size_t n_tokens = 4096, first_byte;

/* A row of logits as logarithms of probabilities, in place; the likeliest id. */
static uint32_t to_logs(float *x, uint32_t n)
{
    double sum = 0;
    uint32_t top = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[top]) top = i;
    const float most = x[top];
    for (uint32_t i = 0; i < n; i++) sum += exp((double)(x[i] - most));
    /* Two steps: what is taken off first is exact for the likely ids, so that little is lost to f32. */
    const float rest = (float)log(sum);
    for (uint32_t i = 0; i < n; i++) x[i] = (x[i] - most) - rest;
    return top;
}

/* KL of two rows of logarithms. Both were rounded, so each is taken with its own total: without that the
 * rounding of the totals, not the modes, would be the smallest figure that can be told. */
static double divergence(const float *p, const float *q, uint32_t n)
{
    double sp = 0, sq = 0, kl = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double a = exp((double)p[i]), by = (double)q[i] - (double)p[i];
        sp += a;
        sq += a * exp(by);
        kl -= a * by;
    }
    return kl / sp - log(sp) + log(sq);
}

static void add(mode *m, const float *p, float *q, uint32_t vocab, uint32_t top, uint32_t next)
{
    m->same += to_logs(q, vocab) == top;
    const double kl = divergence(p, q, vocab);
    m->kl += kl;
    if (kl > m->most) m->most = kl;
    m->nll -= (double)q[next];
}

static qn_model *open_as(qt *t, qn_act_mode act)
{
    qn_err err = {0};
    qn_model *m = NULL;
    const qn_model_options o = {.activations = act};
    QT_OKF(t, qn_model_open(&m, model_path, &o, &err) == QN_OK, "%s", err.msg);
    return m;
}

/* One window through all modes; false: a check failed. */
static bool window(qt *t, mode *modes, size_t n, const qn_model *plain, double *nll,
                   const uint32_t *tokens, const uint32_t *next)
{
    const forward_how how = {.lanes = 2, .kv = QN_KV_F32};
    const uint32_t vocab = qn_model_get_desc(plain)->vocab;
    uint32_t top[WINDOW];
    float *p = forward_logits(t, plain, tokens, WINDOW, how);
    if (!p) return false;
    for (size_t i = 0; i < WINDOW; i++) {
        top[i] = to_logs(p + i * vocab, vocab);
        *nll -= (double)p[i * vocab + next[i]];
    }
    for (size_t k = 0; k < n; k++) {
        float *q = forward_logits(t, modes[k].model, tokens, WINDOW, how);
        for (size_t i = 0; q && i < WINDOW; i++)
            add(&modes[k], p + i * vocab, q + i * vocab, vocab, top[i], next[i]);
        qt_release(1, q);
        if (!q) return false;
    }
    qt_release(1, p);
    return true;
}

static void tell(const mode *m, size_t positions, double nll)
{
    const double n = (double)positions;
    printf("{\"mode\":\"%s\",\"positions\":%zu,\"kl\":%.4e,\"largest\":%.4e,\"kept\":%.6f,"
           "\"perplexity_f32\":%.5f,\"perplexity\":%.5f}\n",
           m->name, positions, m->kl / n, m->most, (double)m->same / n, exp(nll / n),
           exp(m->nll / n));
}

static size_t open_modes(mode modes[MAX_MODES], qt *t)
{
    static const mode known[MAX_MODES] = {{.name = "i8", .act = QN_ACTIVATIONS_I8},
                                          {.name = "i16", .act = QN_ACTIVATIONS_I16}};
    size_t n = 0;
    qn_str rest = qn_str_z(modes_asked), word;
    while (qn_str_split(&word, &rest, ',')) {
        size_t k = 0;
        while (k < MAX_MODES && !qn_str_eq_z(word, known[k].name)) k++;
        if (!QT_OKF(t, k < MAX_MODES && n < MAX_MODES, "modes \"%s\"", modes_asked)) return 0;
        modes[n] = known[k];
        modes[n].model = open_as(t, known[k].act);
        if (!modes[n++].model) return 0;
    }
    return n;
}

static void measure(qt *t)
{
    uint8_t *text = NULL;
    size_t n_text = 0, positions = 0;
    double nll = 0;
    uint32_t tokens[WINDOW];
    qn_ids ids = {0};
    mode modes[MAX_MODES] = {{0}};
    qn_model *plain = open_as(t, QN_ACTIVATIONS_F32);
    const size_t n = open_modes(modes, t);
    if (!plain || !n) return;
    if (!QT_EQ(t, qn_file_read(&text, &n_text, text_path, 64 << 20, NULL), QN_OK)) return;
    if (first_byte >= n_text) first_byte = 0;
    size_t take = n_text - first_byte;
    if (take / BYTES_A_TOKEN > n_tokens) take = n_tokens * BYTES_A_TOKEN;
    const qn_tokenizer *tok = qn_model_tokenizer(plain);
    QT_EQ(t,
          qn_tokenizer_encode(tok, &ids, (const char *)text + first_byte, take,
                              (qn_encode_options){0}, NULL),
          QN_OK);
    const bool bos = qn_tokenizer_adds_bos(tok);
    const size_t step = bos ? WINDOW - 1 : WINDOW;
    for (size_t at = 0; positions + WINDOW <= n_tokens && at + step < ids.n; at += step) {
        tokens[0] = bos ? qn_tokenizer_bos(tok) : ids.id[at];
        memcpy(tokens + 1, ids.id + at + !bos, (WINDOW - 1) * sizeof *tokens);
        /* What follows each: the ids themselves, one behind. */
        if (!window(t, modes, n, plain, &nll, tokens, ids.id + at + !bos)) return;
        positions += WINDOW;
    }
    for (size_t k = 0; k < n && positions; k++) {
        tell(&modes[k], positions, nll);
        qn_model_unref(modes[k].model);
    }
    QT_OKF(t, positions > 0, "%s has no %d tokens behind byte %zu", text_path, WINDOW, first_byte);
    qn_ids_fini(&ids);
    qn_free(text);
    qn_model_unref(plain);
}

int main(int argc, char **argv)
{
    static const qt_case cases[] = {QT(measure)};
    if (argc < 4) {
        fprintf(stderr, "usage: activation_kl MODES MODEL TEXT [TOKENS [FIRST]]\n");
        return 64;
    }
    modes_asked = argv[1];
    model_path = argv[2];
    text_path = argv[3];
    if (argc > 4) n_tokens = strtoul(argv[4], NULL, 10);
    if (argc > 5) first_byte = strtoul(argv[5], NULL, 10);
    return qt_run(cases, 1, 1, argv);
}
