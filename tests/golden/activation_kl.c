/* SPDX-License-Identifier: Apache-2.0 */
/* activation_kl.c - what integer activations change on real text: KL(f32 || them) of the next token's
 * distribution, mean and largest over positions, how often the likeliest token stays, and the perplexity
 * of both.
 *
 *     activation_kl i8|i16 MODEL TEXT [WINDOWS [FIRST]]    windows of 256 tokens from byte FIRST of TEXT on
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "forward.h"
#include "text/tokenizer.h"

enum { WINDOW = 256 };

static const char *model_path, *text_path;
static uint32_t n_windows = 16;
static qn_act_mode mode_asked;
static size_t first_byte;

typedef struct sums {
    double kl, most, nll[2];
    size_t n, same;
} sums;

/* log of the sum of exponentials, above the largest. */
static double log_total(const float *x, uint32_t n, uint32_t *top)
{
    double sum = 0;
    *top = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[*top]) *top = i;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)x[i] - (double)x[*top]);
    return (double)x[*top] + log(sum);
}

static void add(sums *s, const float *p, const float *q, uint32_t vocab, uint32_t next)
{
    uint32_t top_p, top_q;
    double kl = 0;
    const double lp = log_total(p, vocab, &top_p), lq = log_total(q, vocab, &top_q);
    for (uint32_t i = 0; i < vocab; i++) {
        const double a = (double)p[i] - lp, b = (double)q[i] - lq;
        kl += exp(a) * (a - b);
    }
    s->kl += kl;
    if (kl > s->most) s->most = kl;
    s->same += top_p == top_q;
    s->nll[0] += lp - (double)p[next];
    s->nll[1] += lq - (double)q[next];
    s->n++;
}

static qn_model *open_as(qt *t, qn_act_mode mode)
{
    qn_err err = {0};
    qn_model *m = NULL;
    const qn_model_options o = {.activations = mode};
    QT_OKF(t, qn_model_open(&m, model_path, &o, &err) == QN_OK, "%s", err.msg);
    return m;
}

static void measure(qt *t)
{
    sums s = {0};
    uint8_t *text = NULL;
    size_t n_text = 0;
    qn_ids ids = {0};
    qn_model *m[2] = {open_as(t, QN_ACTIVATIONS_F32), open_as(t, mode_asked)};
    if (!m[0] || !m[1]) return;
    QT_EQ(t, qn_file_read(&text, &n_text, text_path, 64 << 20, NULL), QN_OK);
    if (first_byte >= n_text) first_byte = 0;
    size_t take = n_text - first_byte;
    if (take > (size_t)n_windows * WINDOW * 8) take = (size_t)n_windows * WINDOW * 8;
    QT_EQ(t,
          qn_tokenizer_encode(qn_model_tokenizer(m[0]), &ids, (const char *)text + first_byte, take,
                              (qn_encode_options){0}, NULL),
          QN_OK);
    const uint32_t vocab = qn_model_get_desc(m[0])->vocab;
    for (uint32_t w = 0; w < n_windows && (size_t)(w + 1) * WINDOW < ids.n; w++) {
        const uint32_t *at = ids.id + (size_t)w * WINDOW;
        const forward_how how = {.lanes = 2, .kv = QN_KV_F32};
        float *p = forward_logits(t, m[0], at, WINDOW, how);
        float *q = forward_logits(t, m[1], at, WINDOW, how);
        if (!p || !q) return;
        for (size_t i = 0; i < WINDOW; i++) add(&s, p + i * vocab, q + i * vocab, vocab, at[i + 1]);
        qt_release(2, p, q);
    }
    const double k = (double)s.n;
    printf("%s: positions %zu, mean KL %.3e, largest %.3e, likeliest kept %.2f %%, perplexity %.4f "
           "f32, %.4f int8\n",
           model_path, s.n, s.kl / k, s.most, 100 * (double)s.same / k, exp(s.nll[0] / k),
           exp(s.nll[1] / k));
    QT_OK(t, s.n > 0);
    qn_ids_fini(&ids);
    qn_free(text);
    qn_model_unref(m[0]);
    qn_model_unref(m[1]);
}

int main(int argc, char **argv)
{
    static const qt_case cases[] = {QT(measure)};
    if (argc < 4 || (strcmp(argv[1], "i8") != 0 && strcmp(argv[1], "i16") != 0)) {
        fprintf(stderr, "usage: activation_kl i8|i16 MODEL TEXT [WINDOWS [FIRST]]\n");
        return 64;
    }
    mode_asked = strcmp(argv[1], "i8") == 0 ? QN_ACTIVATIONS_I8 : QN_ACTIVATIONS_I16;
    model_path = argv[2];
    text_path = argv[3];
    if (argc > 4) n_windows = (uint32_t)strtoul(argv[4], NULL, 10);
    if (argc > 5) first_byte = strtoul(argv[5], NULL, 10);
    return qt_run(cases, 1, 1, argv);
}
