/* SPDX-License-Identifier: Apache-2.0 */
/* cases_attention.c - cases of attention and of the cache write, over a pool of blocks in shuffled
 * order. Blocks that no row may read hold NaN, so a read too far shows. */
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct setup {
    qn_kv_fmt fmt;
    uint32_t heads, kv_heads, dim, n, depth, window;
    uint32_t kind; /* 0 causal; 1 two intervals; 2 rows of two sequences; 3 random intervals */
    bool softcap, sinks;
} setup;

enum { SEQ_BLOCKS = 20 };

static uint32_t value_bits(qn_kv_fmt fmt, float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return fmt == QN_KV_F32 ? u : fmt == QN_KV_F16 ? qn_f32_to_f16(v) : qn_f32_to_bf16(v);
}

/* A pool of 2 sequences; `blocks` of each are there, the rest of the pool is NaN. */
static qn_kv_view pool(const setup *s, uint32_t blocks, float bad)
{
    const size_t bytes = qn_kv_value_bytes(s->fmt);
    const size_t half = (size_t)s->kv_heads * QN_KV_BLOCK * s->dim * bytes;
    qn_kv_view kv = {.block_bytes = 2 * half + 64,
                     .k_bytes = 64,
                     .v_bytes = 64 + half,
                     .fmt = s->fmt,
                     .n_kv_heads = s->kv_heads,
                     .head_dim = s->dim};
    uint32_t *table = op_u32(2 * SEQ_BLOCKS, 1), *off = op_u32(2, 1);
    kv.pool = op_bytes(kv.block_bytes * (2 * SEQ_BLOCKS + 1));
    for (uint32_t i = 0; i < 2 * SEQ_BLOCKS; i++) table[i] = i + 1;
    for (uint32_t i = 2 * SEQ_BLOCKS - 1; i > 0; i--) {
        const uint32_t k = (uint32_t)(qt_rand() % (i + 1)), t = table[i];
        table[i] = table[k];
        table[k] = t;
    }
    off[1] = SEQ_BLOCKS;
    kv.table = table;
    kv.table_off = off;
    const float *x = op_rand(4096);
    for (uint32_t i = 0; i < 2 * SEQ_BLOCKS; i++) {
        uint8_t *b = kv.pool + kv.block_bytes * table[i];
        for (size_t k = 0; k < kv.block_bytes / bytes; k++) {
            const uint32_t u =
                value_bits(s->fmt, i % SEQ_BLOCKS < blocks ? x[(qt_rand() ^ k) & 4095] : bad);
            memcpy(b + k * bytes, &u, bytes);
        }
    }
    for (uint32_t i = 0; i < 2 * SEQ_BLOCKS; i++) /* ids of blocks that are not there */
        if (i % SEQ_BLOCKS >= blocks) table[i] = 0;
    for (size_t k = 0; k < kv.block_bytes / bytes; k++) {
        const uint32_t u = value_bits(s->fmt, bad);
        memcpy(kv.pool + k * bytes, &u, bytes);
    }
    return kv;
}

static void fill_keys(uint32_t *keys, const setup *s, uint32_t r, uint32_t pos)
{
    uint32_t *k = keys + r * 4;
    memset(k, 0, 4 * sizeof *k);
    k[1] = pos + 1;
    if (s->kind == 1) { /* a prefix, a gap, then up to itself */
        k[1] = pos / 3;
        k[2] = pos / 2;
        k[3] = pos + 1;
    } else if (s->kind == 3) {
        for (int i = 0; i < 4; i++) k[i] = (uint32_t)(qt_rand() % (pos + 2));
        for (int i = 0; i < 4; i++)
            for (int j = i + 1; j < 4; j++)
                if (k[j] < k[i]) {
                    const uint32_t t = k[i];
                    k[i] = k[j];
                    k[j] = t;
                }
        if (r % 5 == 4) memset(k, 0, 4 * sizeof *k); /* sees nothing */
    }
}

static void visit_attention(op_visit *visit, void *ctx, setup s)
{
    const size_t width = s.heads * (size_t)s.dim, ld = width + s.n % 3;
    uint32_t *seq = op_u32(s.n, 1), *pos = op_u32(s.n, 1), *keys = op_u32(s.n * (size_t)4, 1);
    float *out = op_fill(s.n * ld, OP_PAD);
    for (uint32_t r = 0; r < s.n; r++) { /* the last of n consecutive rows stands at depth - 1 */
        const uint32_t back = s.n - 1 - r;
        pos[r] = s.depth > back ? s.depth - 1 - back : 0;
        seq[r] = s.kind == 2 ? r / 3 % 2 : 0;
        fill_keys(keys, &s, r, pos[r]);
    }
    const qn_kv_view kv = pool(&s, (s.depth + QN_KV_BLOCK - 1) / QN_KV_BLOCK, NAN);
    const qn_attention_args args = {.kv = kv,
                                    .out = out,
                                    .ld_out = ld,
                                    .q = op_rand(s.n * ld),
                                    .ld_q = ld,
                                    .n = &s.n,
                                    .seq = seq,
                                    .kv_pos = pos,
                                    .keys = keys,
                                    .sinks = s.sinks ? op_rand(s.heads) : NULL,
                                    .n_heads = s.heads,
                                    .window = s.window,
                                    .scale = 1.0f / sqrtf((float)s.dim),
                                    .softcap = s.softcap ? 5.0f : 0.0f};
    op_case c = {
        .id = QN_K_attention, .args = &args, .out = out, .out_bytes = s.n * ld * 4, .tol = 4e-6};
    snprintf(c.what, sizeof c.what,
             "fmt %d heads %u/%u dim %u rows %u depth %u window %u kind %u%s%s", (int)s.fmt,
             s.heads, s.kv_heads, s.dim, s.n, s.depth, s.window, s.kind,
             s.softcap ? " softcap" : "", s.sinks ? " sinks" : "");
    visit(ctx, &c);
}

void op_each_attention(op_visit *visit, void *ctx)
{
    static const uint32_t dims[] = {16, 64, 80, 128, 20}, per[] = {1, 3, 4};
    static const uint32_t depths[] = {1,   2,   15,  16,  17,  63,  64,  65,  127, 128, 129, 191,
                                      192, 193, 255, 256, 257, 319, 320, 321, 383, 384, 385, 513};
    uint32_t i = 0;
    for (size_t d = 0; d < QT_LEN(dims); d++)
        for (size_t g = 0; g < QT_LEN(per); g++)
            for (int f = 0; f < QN_KV_FMT_COUNT; f++, i++)
                visit_attention(visit, ctx,
                                (setup){(qn_kv_fmt)f, 2 * per[g], 2, dims[d], 1 + i % 19,
                                        70 + 31 * i % 200, i % 4 == 3 ? 33 : 0, i % 4, i % 5 == 1,
                                        i % 3 == 1});
    for (size_t k = 0; k < QT_LEN(depths); k++, i++) {
        visit_attention(visit, ctx, (setup){QN_KV_F16, 3, 1, 64, 1, depths[k], 0, 0, false, false});
        visit_attention(visit, ctx,
                        (setup){(qn_kv_fmt)(k % 3), 4, 2, 64, 9, depths[k],
                                k % 2 ? (uint32_t)(depths[k] / 2 + 1) : 0, i % 4, i % 7 == 0,
                                i % 5 == 0});
    }
    static const uint32_t windows[] = {1, 2, 63, 64, 65, 127, 128, 129};
    for (size_t k = 0; k < QT_LEN(windows); k++)
        visit_attention(visit, ctx,
                        (setup){QN_KV_BF16, 4, 4, 32, 12, 300, windows[k], 0, false, k & 1});
}

void op_each_kv_write(op_visit *visit, void *ctx)
{
    static const uint32_t dims[] = {16, 64, 80, 7};
    for (int f = 0; f < QN_KV_FMT_COUNT; f++)
        for (size_t i = 0; i < QT_LEN(dims); i++) {
            const setup s = {.fmt = (qn_kv_fmt)f, .kv_heads = 1 + (uint32_t)i, .dim = dims[i]};
            const qn_kv_view kv = pool(&s, SEQ_BLOCKS, 0);
            const uint32_t n = 11;
            const size_t width = s.kv_heads * (size_t)s.dim;
            float *k = op_rand(n * (width + 1)), *v = op_rand(n * width);
            uint32_t *seq = op_u32(n, 2), *pos = op_u32(n, 1);
            for (uint32_t r = 0; r < n; r++) pos[r] = r * 97 % (SEQ_BLOCKS * QN_KV_BLOCK);
            k[3] = 1e6f, k[4] = -INFINITY, k[5] = 65519.0f, k[6] = 1e-7f, v[2] = -7e-8f,
            v[1] = 65520.0f;
            const qn_kv_write_args args = {kv, k, width + 1, v, width, &n, seq, pos};
            op_case c = {.id = QN_K_kv_write,
                         .args = &args,
                         .out = kv.pool,
                         .out_bytes = kv.block_bytes * (2 * SEQ_BLOCKS + 1) / 4 * 4};
            snprintf(c.what, sizeof c.what, "fmt %d heads %u dim %u", f, s.kv_heads, s.dim);
            visit(ctx, &c);
        }
}
