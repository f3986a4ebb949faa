/* SPDX-License-Identifier: Apache-2.0 */
/* cases_draw.c - cases of the token draw. */
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct row_kind {
    uint32_t vocab;
    float spread;
    const char *name;
} row_kind;

static void fill_rows(float *x, size_t ld, uint32_t n, const row_kind *k)
{
    for (uint32_t r = 0; r < n; r++) {
        float *row = x + r * ld;
        for (uint32_t t = 0; t < k->vocab; t++) row[t] *= k->spread;
        if (strcmp(k->name, "ties") == 0)
            for (uint32_t t = 0; t < k->vocab; t++) row[t] = rintf(row[t]);
        if (strcmp(k->name, "holes") == 0) {
            for (uint32_t t = 0; t < k->vocab; t += 3) row[t] = t % 2 ? NAN : -INFINITY;
            if (r % 4 == 3)
                for (uint32_t t = 0; t < k->vocab; t++) row[t] = t % 2 ? -INFINITY : NAN;
            if (r % 4 == 2) row[k->vocab / 2] = INFINITY;
        }
        if (strcmp(k->name, "flat") == 0)
            for (uint32_t t = 0; t < k->vocab; t++) row[t] = 1.5f;
    }
}

/* Tokens exactly, numbers nearly. A prefix may end a token or two earlier or later, since the
 * reference sums probabilities in double. */
static void compare_draw(qt *t, const op_case *c, const void *got, const void *want)
{
    const qn_draw_args *a = c->args;
    const qn_drawn *p = got, *q = want;
    for (uint32_t i = 0; i < *a->n; i++) {
        const double near = fmax(1.0, 1e-3 * (double)q[i].n_kept);
        const bool ok = p[i].token == q[i].token &&
                        (isnan(p[i].logit) || memcmp(&p[i].logit, &q[i].logit, 4) == 0) &&
                        (p[i].logprob == q[i].logprob ||
                         fabs((double)p[i].logprob - (double)q[i].logprob) < 2e-5) &&
                        fabs((double)p[i].n_kept - (double)q[i].n_kept) <= near;
        QT_OKF(t, ok, "draw %s row %u: token %u logprob %.9g kept %u, expected %u %.9g %u", c->what,
               i, p[i].token, (double)p[i].logprob, p[i].n_kept, q[i].token, (double)q[i].logprob,
               q[i].n_kept);
    }
    const uint8_t *pr = got, *qr = want;
    const size_t from = *a->n * sizeof *p;
    QT_OKF(t, memcmp(pr + from, qr + from, c->out_bytes - from) == 0, "registers of %s", c->what);
}

void op_each_draw(op_visit *visit, void *ctx)
{
    static const row_kind kinds[] = {{1, 1, "one"},      {2, 1, "two"},       {15, 3, "normal"},
                                     {16, 3, "normal"},  {17, 3, "ties"},     {63, 3, "normal"},
                                     {64, 2, "holes"},   {65, 3, "ties"},     {127, 2, "flat"},
                                     {129, 4, "holes"},  {1000, 3, "normal"}, {1023, 2, "ties"},
                                     {1025, 4, "holes"}, {5000, 3, "normal"}, {49152, 3, "normal"}};
    static const qn_sampler how[] = {
        {.temperature = 0},
        {.temperature = 1},
        {.temperature = 0.7f, .top_p = 0.9f},
        {.temperature = 1.3f, .min_p = 0.05f},
        {.temperature = 1, .top_k = 5},
        {.temperature = 0.8f, .top_p = 0.95f, .min_p = 0.02f, .top_k = 40},
        {.temperature = 1, .top_p = 0.3f, .top_k = 1},
        {.temperature = 2, .top_p = 1e-9f},
        {.temperature = 1, .top_p = 1, .min_p = 1},
        {.temperature = 1, .top_k = 1000000},
        {.temperature = 1, .xtc_probability = 1, .xtc_threshold = 0.03f},
        {.temperature = 0.9f, .top_p = 0.9f, .xtc_probability = 1, .xtc_threshold = 0.1f},
        {.temperature = 1, .top_k = 2, .xtc_probability = 1, .xtc_threshold = 0.013f},
        {.temperature = 1, .min_p = 0.02f, .top_k = 9, .xtc_probability = 0.5f},
    };
    static const uint32_t spared[] = {0, 3, 16, 900};
    for (size_t k = 0; k < QT_LEN(kinds); k++) {
        enum { N = QT_LEN(how) };
        const uint32_t n = N;
        const size_t ld = kinds[k].vocab + k % 3;
        float *x = op_rand(n * ld);
        uint8_t *out =
            memset(op_bytes(n * sizeof(qn_drawn) + 4 * n), 0, n * sizeof(qn_drawn) + 4 * n);
        qn_sampler s[N];
        uint32_t slot[N];
        fill_rows(x, ld, n, &kinds[k]);
        for (uint32_t i = 0; i < n; i++) {
            s[i] = how[i];
            s[i].seed = 0x123456789ABCDEFu * (k + 1);
            s[i].choice = i % 2;
            s[i].index = i * 7;
            slot[i] = i % 4 == 1 ? 0x7FFFFFFFu : (i * 3) % n;
        }
        const qn_draw_args args = {(qn_drawn *)(void *)out,
                                   (uint32_t *)(void *)(out + n * sizeof(qn_drawn)),
                                   slot,
                                   x,
                                   ld,
                                   s,
                                   &n,
                                   kinds[k].vocab,
                                   QT_LEN(spared),
                                   spared};
        op_case c = {.id = QN_K_draw,
                     .args = &args,
                     .out = out,
                     .out_bytes = n * sizeof(qn_drawn) + 4 * n,
                     .compare = compare_draw};
        snprintf(c.what, sizeof c.what, "%s vocab %u", kinds[k].name, kinds[k].vocab);
        visit(ctx, &c);
    }
}

/* Rows with every kind of edit: signs, infinities, no number, a token beyond the row. */
void op_each_adjust(op_visit *visit, void *ctx)
{
    static const uint32_t cols[] = {1, 2, 15, 64, 1000};
    for (uint32_t k = 0; k < 2 * QT_LEN(cols); k++) {
        enum { N = 4, EDITS = 12 };
        const uint32_t n = N, width = cols[k / 2];
        const size_t ld = width + k % 3;
        float *y = op_rand(N * ld), *x = k % 2 ? y : op_rand(N * ld);
        qn_edit edit[EDITS];
        qn_adjust row[N];
        uint32_t at = 0;
        for (uint32_t c = 0; c < width; c += 5) x[c] = c % 2 ? -INFINITY : NAN;
        if (!(k % 2))
            for (size_t i = 0; i < N * ld; i++) y[i] = OP_PAD;
        for (uint32_t r = 0; r < N; r++) {
            row[r] = (qn_adjust){at, r == 2 ? 0 : 3 + r / 3, 1.0f + 0.3f * (float)r, 0.7f, -0.9f};
            for (uint32_t i = 0; i < row[r].n; i++, at++)
                edit[at] = (qn_edit){(i * 7 + r) % (width + 1),
                                     i == 1 ? -INFINITY : 0.1f * (float)i, i * 3, (i + r) % 4};
            for (uint32_t i = 1; i < row[r].n; i++) /* each token once */
                if (edit[row[r].at + i].token <= edit[row[r].at + i - 1].token)
                    edit[row[r].at + i].token = edit[row[r].at + i - 1].token + 1;
        }
        const qn_adjust_args args = {y, ld, x, ld, row, edit, &n, width};
        op_case c = {.id = QN_K_adjust, .args = &args, .out = y, .out_bytes = N * ld * 4};
        snprintf(c.what, sizeof c.what, "cols %u%s", width, k % 2 ? " in place" : "");
        visit(ctx, &c);
    }
}
