/* SPDX-License-Identifier: Apache-2.0 */
/* same_bits_test.c - promise 1: the bytes of a row's logits are those of the request alone, cold, in one
 * chunk, on one lane, fused, on the best instruction set, whatever of these is changed.
 *
 * Lengths: +-1 around every block (64), span (128), row group (8) up to 64 and power of two to 1,024. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kit.h"
#include "promise/tape.h"

enum { VOCAB = 101, CONTEXT = 1280, NEW = 6, CROWD = 6, NO_ISA = 1 << 30, ALL = 2048 };

typedef struct way { /* to compute the same thing */
    const char *name;
    uint32_t max_rows, lanes, isa;
    bool crowd, hit, no_fuse;
} way;

enum { AVX2 = QN_CPU_AVX2 | QN_CPU_FMA | QN_CPU_F16C };

static const way plain = {"plain", ALL, 1, 0, false, false, false};
static const way ways[] = {
    {"chunks of 1", 1, 1, 0, false, false, false},
    {"chunks of 7", 7, 1, 0, false, false, false},
    {"chunks of 64", 64, 1, 0, false, false, false},
    {"two lanes", ALL, 2, 0, false, false, false},
    {"two lanes, chunks of 7", 7, 2, 0, false, false, false},
    {"three lanes, chunks of 64", 64, 3, 0, false, false, false},
    {"a batch of 7", ALL, 1, 0, true, false, false},
    {"a batch of 7, small chunks, two lanes", 24, 2, 0, true, false, false},
    {"behind a hit", ALL, 1, 0, false, true, false},
    {"behind a hit, a batch of 7", 64, 2, 0, true, true, false},
    {"not fused", ALL, 1, 0, false, false, true},
    {"not fused, a batch of 7, chunks", 24, 2, 0, true, false, true},
    {"portable code", ALL, 1, NO_ISA, false, false, false},
    {"AVX2", ALL, 1, AVX2, false, false, false},
    {"AVX2, a batch of 7, chunks, two lanes", 24, 2, AVX2, true, false, false},
};

typedef struct subject {
    const char *model;
    qn_act_mode act;
    qn_kv_fmt kv;
    uint32_t window;
} subject;

typedef struct rig {
    qn_engine *engine;
    tape tape;
    tape_view seen;
} rig;

static void open_rig(qt *t, rig *r, qn_model *m, const subject *s, const way *w)
{
    qn_err err = {0};
    const qn_engine_options o = {
        .lanes = w->lanes,
        .isa_mask = w->isa,
        .max_rows = w->max_rows,
        .max_seqs = w->crowd || w->hit ? CROWD + 1 : 1, /* room for what was left behind */
        .context = CONTEXT,
        .kv_fmt = s->kv,
        .no_fuse = w->no_fuse};
    QT_OKF(t, qn_engine_open(&r->engine, m, &o, &err) == QN_OK, "%s", err.msg);
    if (r->engine) tape_follow(&r->tape, r->engine, VOCAB, false);
}

static void close_rig(rig *r)
{
    qn_engine_close(r->engine);
    tape_fini(&r->tape);
    memset(r, 0, sizeof *r);
}

/* The prompt of every length is the start of one text, so a longer one leaves a prefix for it. */
static qn_request_in ask(uint32_t ids[CONTEXT], uint32_t n, bool cold)
{
    kit_prompt(ids, CONTEXT, VOCAB, 2024);
    qn_request_in in = kit_ask(ids, n, NEW);
    in.flags |= QN_REQUEST_IGNORE_EOS | (cold ? QN_REQUEST_NO_CACHE : 0u);
    return in;
}

/* Neighbours of many lengths, some of them still in their prompts when the subject comes. */
static void invite(qt *t, qn_engine *e, kit_call *crowd[CROWD])
{
    for (uint32_t i = 0; i < CROWD; i++) {
        uint32_t ids[400];
        const uint32_t n = 3 + i * 37;
        kit_prompt(ids, n, VOCAB, 7 + i);
        qn_request_in in = kit_ask(ids, n, 30);
        kit_heat(&in, 0.8f, i);
        crowd[i] = kit_call_new();
        QT_EQ(t, kit_submit(crowd[i], e, &in, NULL), QN_OK);
    }
}

/* Runs the prompt of n ids in this engine; r->seen and *out are what came of it. */
static void compute(qt *t, rig *r, const way *w, uint32_t n, kit_call **out)
{
    kit_call *crowd[CROWD] = {0};
    uint32_t ids[CONTEXT];
    qn_request_in in = ask(ids, n, !w->hit);
    *out = kit_call_new();
    if (w->crowd) invite(t, r->engine, crowd);
    kit_run(t, *out, r->engine, &in);
    for (int i = 0; i < CROWD; i++) {
        if (!crowd[i]) continue;
        kit_wait(crowd[i]);
        kit_call_free(crowd[i]);
    }
    tape_look(&r->seen, &r->tape, (*out)->id);
    r->tape.n = 0;
}

/* Leaves the whole text in the store. */
static void warm(qt *t, rig *r)
{
    uint32_t ids[CONTEXT];
    qn_request_in in = ask(ids, CONTEXT - NEW, false);
    kit_call *c = kit_call_new();
    in.max_tokens = 1;
    kit_run(t, c, r->engine, &in);
    kit_call_free(c);
}

static bool same(qt *t, const rig *want, const rig *got, uint32_t n, const char *what)
{
    uint32_t rows = 0;
    for (uint32_t i = n - 1; i < n - 1 + NEW; i++) {
        rows += want->seen.logits[i] != 0;
        if (!QT_OKF(t, want->seen.logits[i] == got->seen.logits[i],
                    "%s: %u ids, logits at %u differ", what, n, i))
            return false;
    }
    return QT_EQ(t, rows, NEW);
}

static void check_way(qt *t, qn_model *m, const subject *s, const rig *want, const way *w,
                      uint32_t n)
{
    char what[160];
    static rig got; /* large; closed between uses */
    kit_call *c = NULL;
    if (w->isa == AVX2 && (qn_cpu_features() & AVX2) != AVX2) return; /* counted where it can run */
    snprintf(what, sizeof what, "%s, window %u, %s", s->model, s->window, w->name);
    open_rig(t, &got, m, s, w);
    if (!got.engine) return;
    if (w->hit) warm(t, &got);
    compute(t, &got, w, n, &c);
    same(t, want, &got, n, what);
    if (w->hit) QT_EQ(t, c->choice[0].end.usage.cached, n - 1);
    if (w->crowd) QT_OK(t, got.seen.shared > 0);
    if (w->max_rows < ALL && !w->crowd) QT_OK(t, got.seen.widest <= w->max_rows);
    kit_call_free(c);
    close_rig(&got);
}

static void every_way(qt *t, subject s, uint32_t n)
{
    static rig want;
    kit_call *c = NULL;
    const kit_change change = {.context = CONTEXT, .window = s.window};
    qn_model *m = kit_model(t, s.model, change, s.act);
    if (!m) return;
    open_rig(t, &want, m, &s, &plain);
    compute(t, &want, &plain, n, &c);
    for (size_t i = 0; i < QT_LEN(ways); i++) check_way(t, m, &s, &want, &ways[i], n);
    kit_call_free(c);
    close_rig(&want);
    qn_model_unref(m);
}

#define F32 QN_ACTIVATIONS_F32
#define I8 QN_ACTIVATIONS_I8
#define I16 QN_ACTIVATIONS_I16
static void wide_f32(qt *t) { every_way(t, (subject){"gguf-f32", F32, QN_KV_F32, 0}, 200); }
static void wide_f16(qt *t) { every_way(t, (subject){"gguf-f16", F32, QN_KV_F16, 0}, 131); }
static void wide_bf16(qt *t) { every_way(t, (subject){"gguf-bf16", F32, QN_KV_BF16, 0}, 129); }
static void odd_widths(qt *t) { every_way(t, (subject){"gguf-f32-odd", F32, QN_KV_F16, 0}, 77); }
static void block_q4_0(qt *t) { every_way(t, (subject){"gguf-q4_0", F32, QN_KV_F16, 0}, 191); }
static void block_q4_1_int8(qt *t) { every_way(t, (subject){"gguf-q4_1", I8, QN_KV_F16, 0}, 191); }
static void block_q8_0_int8(qt *t) { every_way(t, (subject){"gguf-q8_0", I8, QN_KV_F32, 0}, 140); }
static void block_q4_0_int16(qt *t)
{
    every_way(t, (subject){"gguf-q4_0", I16, QN_KV_F16, 0}, 191);
}
static void affine_4_bit_int16(qt *t)
{
    every_way(t, (subject){"mlx-b4-g64", I16, QN_KV_F16, 0}, 150);
}
static void k_q4_k(qt *t) { every_way(t, (subject){"gguf-q4_k", F32, QN_KV_F16, 0}, 130); }
static void k_q6_k_int8(qt *t) { every_way(t, (subject){"gguf-q6_k", I8, QN_KV_F16, 0}, 130); }
static void affine_4_bit(qt *t) { every_way(t, (subject){"mlx-b4-g32", F32, QN_KV_F16, 0}, 150); }
static void affine_3_bit_int8(qt *t)
{
    every_way(t, (subject){"mlx-b3-g64", I8, QN_KV_BF16, 0}, 150);
}
static void mixed_formats(qt *t) { every_way(t, (subject){"gguf-mixed", I8, QN_KV_F16, 0}, 150); }
static void sliding_window(qt *t)
{
    every_way(t, (subject){"gguf-q4_0", F32, QN_KV_F16, 100}, 300);
}
static void window_of_one_block(qt *t)
{
    every_way(t, (subject){"gguf-f16", I8, QN_KV_F32, 64}, 257);
}

/* Sliding layers and full ones in one model. */
static void mixed_layers(qt *t)
{
    every_way(t, (subject){"gemma3/gguf-bf16", F32, QN_KV_F16, 24}, 300);
}
static void mixed_layers_int8(qt *t)
{
    every_way(t, (subject){"gemma3/gguf-q4_0", I8, QN_KV_F32, 100}, 257);
}

/* --- lengths ---------------------------------------------------------------------------------- */

static bool is_edge(uint32_t n)
{
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t x = n + d - 1; /* n is one below, on, or one above x */
        if (n + d == 0) continue;
        if (x % QN_KV_BLOCK == 0 || x % QN_KV_SPAN == 0 || (x & (x - 1)) == 0 ||
            (x < 64 && x % 8 == 0))
            return true;
    }
    return false;
}

static void edges(qt *t, subject s)
{
    static const way small = {"chunks of 7, two lanes", 7, 2, 0, false, false, false};
    static const way hit = {"behind a hit", ALL, 1, 0, false, true, false};
    static rig want, got, behind;
    const kit_change change = {.context = CONTEXT, .window = s.window};
    qn_model *m = kit_model(t, s.model, change, s.act);
    uint32_t n_edges = 0;
    if (!m) return;
    open_rig(t, &want, m, &s, &plain);
    open_rig(t, &got, m, &s, &small);
    open_rig(t, &behind, m, &s, &hit);
    warm(t, &behind);
    for (uint32_t n = 1; n <= 1025; n++) {
        kit_call *a = NULL, *b = NULL, *c = NULL;
        if (!is_edge(n)) continue;
        n_edges++;
        compute(t, &want, &plain, n, &a);
        compute(t, &got, &small, n, &b);
        compute(t, &behind, &hit, n, &c);
        bool ok = same(t, &want, &got, n, small.name) && same(t, &want, &behind, n, hit.name);
        ok = ok && (n == 1 || s.window || QT_EQ(t, c->choice[0].end.usage.cached, n - 1));
        kit_call_free(a);
        kit_call_free(b);
        kit_call_free(c);
        if (!ok) break;
    }
    QT_OKF(t, n_edges > 60, "%u lengths", n_edges);
    close_rig(&want);
    close_rig(&got);
    close_rig(&behind);
    qn_model_unref(m);
}

static void every_edge(qt *t) { edges(t, (subject){"gguf-f16", F32, QN_KV_F16, 0}); }
static void every_edge_int8(qt *t) { edges(t, (subject){"gguf-q4_0", I8, QN_KV_F16, 0}); }
static void every_edge_int16(qt *t) { edges(t, (subject){"gguf-q5_1", I16, QN_KV_F16, 0}); }
static void every_edge_in_a_window(qt *t) { edges(t, (subject){"gguf-f16", F32, QN_KV_F16, 128}); }
static void every_edge_of_mixed_layers(qt *t)
{
    edges(t, (subject){"gemma3/gguf-q8_0", I8, QN_KV_F16, 70});
}

QT_MAIN(QT(wide_f32), QT(wide_f16), QT(wide_bf16), QT(odd_widths), QT(block_q4_0),
        QT(block_q4_1_int8), QT(block_q8_0_int8), QT(block_q4_0_int16), QT(affine_4_bit_int16),
        QT(k_q4_k), QT(k_q6_k_int8), QT(affine_4_bit), QT(affine_3_bit_int8), QT(mixed_formats),
        QT(sliding_window), QT(window_of_one_block), QT(every_edge), QT(every_edge_int8),
        QT(every_edge_int16), QT(every_edge_in_a_window), QT(mixed_layers), QT(mixed_layers_int8),
        QT(every_edge_of_mixed_layers))
