/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the args struct and contract of every kernel: the specification that each variant obeys,
 * shared by CPU code, CUDA code and tests.
 *
 * Rules common to all:
 * - A kernel computes the units of its span and writes nothing else, not even padding. Units are
 *   independent: any split over lanes gives the same bits, and a row's result does not depend on the
 *   other rows (rule R4). `qn_<name>_units` says how many there are now.
 * - Row counts are read through a pointer (`n`), which points into the plan's step: the same args
 *   serve every step. Strides `ld_*` are in ELEMENTS. All activations are f32.
 * - Sums over columns: 16 virtual lanes, column mod 16, ascending fused multiply-add, then the tree
 *   of vf_sum: (i, i+8), (i, i+4), (i, i+2), (i, i+1) (rule R1). The same bits on every ISA.
 * - No errors: the op layer has checked shapes. `scratch` is the lane's own memory, 64-byte aligned,
 *   qn_<name>_scratch bytes where such a function exists, else unused.
 * - No two pointers overlap unless the contract says so.
 */
#ifndef QN_KERN_ARGS_H
#define QN_KERN_ARGS_H
#include "tensor/format.h"
#include "tensor/kv.h"
#include "tensor/sampler.h"

enum { QN_CHUNK = 256 }; /* columns an elementwise unit covers */

/* Units of elementwise kernels: rows times chunks of QN_CHUNK columns, row-major. */
static inline uint32_t qn_chunk_units(uint32_t rows, uint32_t cols)
{
    return rows * ((cols + QN_CHUNK - 1) / QN_CHUNK);
}

/* embed: y[r,:] = scale * row of `table` (widened to f32), by source:
 *   0 token: table row value[r];  1 register: table row registers[value[r]];
 *   2 embedding: rows[value[r], :] as it is, unscaled.
 * Shapes: y [n, cols] f32; table [V, cols]; rows [*, cols] f32 (NULL when source 2 never occurs).
 * Ids are below V: the engine has checked. Unit: a row. */
typedef struct qn_embed_args {
    float *y;
    size_t ld_y;
    const qn_matrix *table;
    const uint32_t *n, *source, *value, *registers;
    const float *rows;
    size_t ld_rows;
    float scale;
} qn_embed_args;

/* rmsnorm: y[r,s,c] = x[r,s,c] * g[c] / sqrt(mean over c of x[r,s,c]^2 + eps); r row, s sub-row.
 * Shapes: x, y [n, sub, cols] f32, rows ld apart, sub-rows cols apart; g [cols] f32 or NULL (all 1).
 * Alias:  y == x with equal strides. Unit: a sub-row. Formula on vectors: k = 1 / sqrtf(sum / cols +
 * eps), then (x * k) * g. Source: Zhang and Sennrich 2019, arXiv 1910.07467. */
typedef struct qn_rmsnorm_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const float *g;
    const uint32_t *n;
    uint32_t sub, cols;
    float eps;
} qn_rmsnorm_args;

/* add: y = a + b. Shapes [n, cols]. Alias: y may be a or b. Unit: a chunk. */
typedef struct qn_add_args {
    float *y;
    size_t ld_y;
    const float *a;
    size_t ld_a;
    const float *b;
    size_t ld_b;
    const uint32_t *n;
    uint32_t cols;
} qn_add_args;

/* add_rmsnorm: h = a + b; y = rmsnorm(h), one sub-row; bit-equal to add then rmsnorm.
 * Alias: h may be a or b. Unit: a row. */
typedef struct qn_add_rmsnorm_args {
    float *y, *h;
    size_t ld_y, ld_h;
    const float *a;
    size_t ld_a;
    const float *b;
    size_t ld_b;
    const float *g;
    const uint32_t *n;
    uint32_t cols;
    float eps;
} qn_add_rmsnorm_args;

/* linear: y[r,o] = sum over k of x[r,k] * W[o,k] (+ bias[o]) (+ add[r,o]), weights widened to f32 as
 * tensor/format.h defines, sums as rule R1 (WIDEN) says for every format: this is the f32 activation
 * mode. The bias, then `add`, are added last, each rounded once.
 * Shapes: x [n, w->cols], y and add [n, w->rows]. bias, add may be NULL. Alias: add == y.
 * Unit: an output o; all rows of the span's outputs are computed. Columns past the last multiple of
 * 16 count as zeros. */
typedef struct qn_linear_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const qn_matrix *w;
    const float *bias;
    const float *add;
    size_t ld_add;
    const uint32_t *n;
} qn_linear_args;

/* A row of integer activations is a sequence of blocks of 32 columns, each with all that a product asks of
 * it in one place, so that a tile of rows needs one address a row. */
typedef struct qn_q32 {
    int8_t q[32];
    float d, sum, half[2]; /* sum: of the values q, exact; half: of the first and the last 16 */
} qn_q32;
typedef struct qn_w32 { /* 16 bits a value, 256 high + low */
    int8_t high[32], low[32];
    float d, sum, half[2]; /* as above: below 2^24, so still exact */
} qn_w32;
typedef enum qn_q_kind { QN_Q32, QN_W32, QN_Q_KINDS } qn_q_kind;
enum { QN_Q_BLOCK = 32 };
static inline size_t qn_q_row_bytes(uint32_t cols, qn_q_kind kind)
{
    return cols / QN_Q_BLOCK * (kind == QN_Q32 ? sizeof(qn_q32) : sizeof(qn_w32));
}

/* quant_rows: integer activations, local to the row (rule R4). Per block of 32 columns: d = max|x| / most; q = round-to-nearest-even(x / d), cut to +-most (0 when d is 0); most is 127, or of
 * wide ones 127 * 256, whose high part is (q + 128) >> 8.
 * Shapes: q [n, cols / block] of the kind's struct, rows ld_q bytes apart, a multiple of 4. Unit: a row. */
typedef struct qn_quant_rows_args {
    void *q;
    size_t ld_q;
    const float *x;
    size_t ld_x;
    const uint32_t *n;
    uint32_t cols;
    qn_q_kind kind;
} qn_quant_rows_args;

/* linear_i8: linear over rows that quant_rows made (QN_Q32), for weights that have panels (tensor/panel.h): the
 * integer sums of a block are exact, each block adds one f32 fused multiply-add, ascending from 0 (rule
 * R1). Blocks are 32 columns, or 16 where weights have a scale of their own for 16 columns (Q2_K, Q3_K,
 * Q6_K). d is the scale of the block and m its offset as tensor/format.h defines them, rounded to f32 where
 * they are products (K formats); codes are unsigned, and where the format's are signed m is -(d * what they
 * were raised by), exact. dx is the row's scale of the 32 columns, xs the sum of q over the block:
 *   S = sum (code) q;  t = fmaf(m, xs, d * S);  y = fmaf(dx, t, y)
 * then bias and add as in linear. Alias: add == y. Unit: an output. */
typedef struct qn_linear_i8_args {
    float *y;
    size_t ld_y;
    const void *q; /* rows that quant_rows made, ld_q bytes apart */
    size_t ld_q;
    const qn_matrix *w;
    const float *bias;
    const float *add;
    size_t ld_add;
    const uint32_t *n;
} qn_linear_i8_args;

/* linear_i16: the same over rows of qn_w32; S = 256 * sum (code) high + sum (code) low, exact in 32 bits, then
 * rounded to f32 once. */
typedef qn_linear_i8_args qn_linear_i16_args;

/* rope_table: cs[r, i] = cos(a), cs[r, half + i] = sin(a), a = (float)pos[r] * inv_freq[i] rounded to
 * f32, times mscale after the function. pos[r] is taken from stream[i] (0 temporal, 1, 2).
 * Shapes: cs [n, 2 * half]; pos int32 [3][ld_pos]; inv_freq f32 [half]; stream uint8 [half] or NULL
 * (all 0). Accuracy: within 1 ulp of the exact function of the f32 angle for |a| < 2^20. Unit: row. */
typedef struct qn_rope_table_args {
    float *cs;
    size_t ld_cs;
    const int32_t *pos;
    size_t ld_pos;
    const float *inv_freq;
    const uint8_t *stream;
    const uint32_t *n;
    uint32_t half;
    float mscale;
} qn_rope_table_args;

/* rope: rotates the first 2 * half of each head: (a, b) -> (a c - b s, a s + b c), each as
 * fmaf(a, c, -(b * s)) and fmaf(a, s, b * c). Pairs: (i, i + half), or (2i, 2i + 1) if interleaved.
 * The other dims are copied. Shapes: x, y [n, heads, dim]. Alias: y == x. Unit: a row. */
typedef struct qn_rope_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const float *cs;
    size_t ld_cs;
    const uint32_t *n;
    uint32_t heads, dim, half;
    bool interleaved;
} qn_rope_args;

/* kv_write: encodes row r of k and v into the cache of sequence seq[r] at position kv_pos[r], once
 * (rule R3). Shapes: k, v [n, kv heads, dim] f32. F16 saturates. Unit: a row. */
typedef struct qn_kv_write_args {
    qn_kv_view kv;
    const float *k;
    size_t ld_k;
    const float *v;
    size_t ld_v;
    const uint32_t *n, *seq, *kv_pos;
} qn_kv_write_args;

/* attention: out[r,h,:] = softmax over visible keys j of (scale * q[r,h,:] . K[j, h / (H / K), :]) V.
 * Visible: j in [lo0, hi0) or [lo1, hi1) of keys[r] and, with a window w > 0, j + w > kv_pos[r].
 * `keys` is uint32 [n][4]: lo0 hi0 lo1 hi1. softcap c > 0: s <- c * tanh(s / c). sinks f32 [H] or
 * NULL: exp(sink) joins the denominator only.
 * Order (rule R2): spans of QN_KV_SPAN keys from position 0. Inside a span: s by the sums rule over
 * the head dim; m = max; p = exp(s - m), exactly 0 when masked; l = sum of p (lanes by key mod 16);
 * acc[d] = ascending fmaf(p, v, acc). Spans without a visible key are skipped. Spans fold left from
 * the first: m' = max(m, ms); a = exp(m - m'), b = exp(ms - m'); l = fmaf(l, a, ls * b);
 * acc = fmaf(acc, a, accs * b). A sink folds in last, as a span of m = sink, l = 1, acc = 0. Then
 * out = acc / l; a row that sees no key gives zeros. Masked keys take no part: neither they nor keys
 * outside the intervals, whose blocks may be gone, are read into a result.
 * Shapes: q, out [n, H, dim]. Unit: a group of QN_ATTN_ROWS consecutive rows x one kv head; index =
 * group * n_kv_heads + kv head. The result of a row does not depend on its group (rule R4). */
enum { QN_ATTN_ROWS = 8 };
typedef struct qn_attention_args {
    qn_kv_view kv;
    float *out;
    size_t ld_out;
    const float *q;
    size_t ld_q;
    const uint32_t *n, *seq, *kv_pos, *keys;
    const float *sinks;
    uint32_t n_heads, window;
    float scale, softcap;
} qn_attention_args;

/* act_mul: y = act(gate) * up, or act(gate) when up is NULL. Shapes [n, cols]. Alias: y may be gate
 * or up. silu(x) = x / (1 + exp(-x)). gelu_tanh and gelu_erf as their papers. Unit: a chunk. */
typedef enum qn_act { QN_ACT_SILU, QN_ACT_GELU_TANH, QN_ACT_GELU_ERF } qn_act;
typedef struct qn_act_mul_args {
    float *y;
    size_t ld_y;
    const float *gate;
    size_t ld_gate;
    const float *up;
    size_t ld_up;
    const uint32_t *n;
    uint32_t cols;
    qn_act act;
} qn_act_mul_args;

/* scale: y = x * s. Alias: y == x. Unit: a chunk. */
typedef struct qn_scale_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const uint32_t *n;
    uint32_t cols;
    float s;
} qn_scale_args;

/* softcap: y = cap * tanh(x / cap). Alias: y == x. Unit: a chunk. */
typedef struct qn_softcap_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const uint32_t *n;
    uint32_t cols;
    float cap;
} qn_softcap_args;

/* gather: y[i,:] = x[index[i],:]. Shapes: y [n, cols]. Unit: a row of y. */
typedef struct qn_gather_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const uint32_t *index, *n;
    uint32_t cols;
} qn_gather_args;

/* adjust: y = x, but for the edited tokens of logit row i, in f32, each step rounded: v = x + bias; when
 * REPEATED v = v < 0 ? v * repetition : v / repetition; when PRESENT v = v - presence; when seen
 * v = v - frequency * seen. Edits of tokens outside the row are passed over. Shapes: x, y [n, cols].
 * Alias: y == x. Unit: a logit row. */
typedef struct qn_adjust_args {
    float *y;
    size_t ld_y;
    const float *x;
    size_t ld_x;
    const qn_adjust *adjust;
    const qn_edit *edit;
    const uint32_t *n;
    uint32_t cols;
} qn_adjust_args;

/* draw: out[i] = the token of logit row i under sampler[i] (tensor/sampler.h); the token also goes to
 * registers[slot[i]] unless slot[i] is 0x7FFFFFFF. NaN logits count as -inf; a row of -inf gives token
 * 0 with logprob -inf; a logit of +inf is certainty. Gumbel value of token t: -log(-log1p(-u)), u from
 * the counter generator of base/rng.h keyed (seed, choice, index, purpose 0, t); the score is
 * logprob / temperature + g, ties go to the lower id. Every filter keeps a prefix of the order (larger
 * logit, lower id), so they keep the shortest. top-p: tokens whose better ones weigh less than p, with
 * weights round(2^30 exp(logit - max)), integers; min-p: logit >= max + log(min_p). XTC drops from
 * the top: with the same weights, what is above the lowest logit whose weight is more than the threshold
 * times the weight of the prefix. spared: ids that XTC leaves, ascending. Shapes: logits [n, vocab].
 * Unit: a logit row. */
typedef struct qn_draw_args {
    qn_drawn *out;
    uint32_t *registers;
    const uint32_t *slot;
    const float *logits;
    size_t ld_logits;
    const qn_sampler *sampler;
    const uint32_t *n;
    uint32_t vocab;
    uint32_t n_spared;
    const uint32_t *spared;
} qn_draw_args;

#endif
