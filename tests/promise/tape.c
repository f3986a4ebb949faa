/* SPDX-License-Identifier: Apache-2.0 */
#include "promise/tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static uint64_t digest(const float *x, uint32_t n)
{
    const uint64_t h = qn_maphash(x, n * sizeof *x, 1);
    return h ? h : 1;
}

static void on_step(void *ctx, const qn_step *step, const uint64_t *row_request,
                    const float *logits, size_t ld)
{
    tape *tp = ctx;
    if (tp->n + step->n_rows > tp->cap) {
        tp->cap = 2 * tp->cap + step->n_rows;
        tp->row = realloc(tp->row, tp->cap * sizeof *tp->row);
    }
    tape_row *row = tp->row + tp->n;
    bool shared = false;
    for (uint32_t r = 0; r < step->n_rows; r++) shared |= row_request[r] != row_request[0];
    for (uint32_t r = 0; r < step->n_rows; r++)
        row[r] = (tape_row){row_request[r], 0, 0, qn_step_kv_pos(step)[r], tp->step, shared};
    for (uint32_t i = 0; i < step->n_logits && logits; i++)
        row[qn_step_logit_row(step)[i]].logits = digest(logits + i * ld, tp->vocab);
    tp->n += step->n_rows;
    tp->step++;
}

/* Comes right behind on_step. */
static void on_tap(void *ctx, const qn_step *step, const uint64_t *row_request, const float *x,
                   uint32_t cols, size_t ld)
{
    tape *tp = ctx;
    (void)row_request;
    for (uint32_t r = 0; x && r < step->n_rows; r++)
        tp->row[tp->n - step->n_rows + r].tap = digest(x + r * ld, cols);
}

void tape_follow(tape *tp, qn_engine *e, uint32_t vocab, bool with_tap)
{
    *tp = (tape){.vocab = vocab};
    qn_engine_set_probe(e, on_step, tp);
    if (with_tap) qn_engine_set_tap(e, "layer.0", on_tap, tp);
}

void tape_look(tape_view *out, const tape *tp, uint64_t request)
{
    uint32_t last = UINT32_MAX, in_step = 0;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < tp->n; i++) {
        const tape_row *r = &tp->row[i];
        if (r->request != request || r->pos >= TAPE_POSITIONS) continue;
        if (r->logits) out->logits[r->pos] = r->logits;
        if (r->tap) out->tap[r->pos] = r->tap;
        in_step = r->step == last ? in_step + 1 : 1;
        if (r->step != last) {
            out->steps++;
            out->shared += r->shared;
        }
        last = r->step;
        out->rows++;
        if (in_step > out->widest) out->widest = in_step;
    }
}

void tape_fini(tape *tp)
{
    free(tp->row);
    *tp = (tape){0};
}
