/* SPDX-License-Identifier: Apache-2.0 */
/* ref_attention.c - attention and the cache write, as their formulas read. */
#include "kern/ref/ref_int.h"

#include <math.h>
#include <string.h>

static void encode(void *dst, float v, qn_kv_fmt fmt)
{
    uint16_t h;
    if (fmt == QN_KV_F32) {
        memcpy(dst, &v, sizeof v);
        return;
    }
    if (fmt == QN_KV_F16)
        h = qn_f32_to_f16(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v);
    else
        h = qn_f32_to_bf16(v);
    memcpy(dst, &h, sizeof h);
}

static double decode(const void *src, qn_kv_fmt fmt)
{
    uint16_t h;
    float v;
    if (fmt == QN_KV_F32) {
        memcpy(&v, src, sizeof v);
        return (double)v;
    }
    memcpy(&h, src, sizeof h);
    return (double)(fmt == QN_KV_F16 ? qn_f16_to_f32(h) : qn_bf16_to_f32(h));
}

void qn_ref_kv_write(const qn_kv_write_args *a, qn_span units, void *scratch)
{
    const qn_kv_view *kv = &a->kv;
    const size_t bytes = qn_kv_value_bytes(kv->fmt);
    (void)scratch;
    for (size_t r = units.begin; r < units.end; r++)
        for (uint32_t h = 0; h < kv->n_kv_heads; h++) {
            uint8_t *k = qn_kv_at(kv, a->seq[r], a->kv_pos[r], h, false);
            uint8_t *v = qn_kv_at(kv, a->seq[r], a->kv_pos[r], h, true);
            for (size_t d = 0; d < kv->head_dim; d++) {
                encode(k + d * bytes, a->k[r * a->ld_k + h * kv->head_dim + d], kv->fmt);
                encode(v + d * bytes, a->v[r * a->ld_v + h * kv->head_dim + d], kv->fmt);
            }
        }
}

static bool visible(const qn_attention_args *a, size_t r, uint32_t j)
{
    const uint32_t *k = a->keys + r * 4;
    if (a->window && (uint64_t)j + a->window <= a->kv_pos[r]) return false;
    return (j >= k[0] && j < k[1]) || (j >= k[2] && j < k[3]);
}

static double score(const qn_attention_args *a, size_t r, uint32_t head, uint32_t j)
{
    const qn_kv_view *kv = &a->kv;
    const uint32_t kv_head = head / (a->n_heads / kv->n_kv_heads);
    const uint8_t *k = qn_kv_at(kv, a->seq[r], j, kv_head, false);
    const float *q = a->q + r * a->ld_q + (size_t)head * kv->head_dim;
    double s = 0;
    for (size_t d = 0; d < kv->head_dim; d++)
        s += (double)q[d] * decode(k + d * qn_kv_value_bytes(kv->fmt), kv->fmt);
    s *= (double)a->scale;
    return a->softcap > 0 ? (double)a->softcap * tanh(s / (double)a->softcap) : s;
}

/* One row and head: the plain two-pass softmax over all keys; acc [head_dim] in double. */
static void attend(const qn_attention_args *a, size_t r, uint32_t head, double *acc)
{
    const qn_kv_view *kv = &a->kv;
    const uint32_t *keys = a->keys + r * 4, end = keys[1] > keys[3] ? keys[1] : keys[3];
    const uint32_t kv_head = head / (a->n_heads / kv->n_kv_heads);
    const size_t dim = kv->head_dim, bytes = qn_kv_value_bytes(kv->fmt);
    float *out = a->out + r * a->ld_out + (size_t)head * dim;
    double m = a->sinks ? (double)a->sinks[head] : -HUGE_VAL, l = 0;
    for (uint32_t j = 0; j < end; j++)
        if (visible(a, r, j)) m = fmax(m, score(a, r, head, j));
    if (a->sinks) l = exp((double)a->sinks[head] - m);
    memset(acc, 0, dim * sizeof *acc);
    for (uint32_t j = 0; j < end; j++) {
        if (!visible(a, r, j)) continue;
        const double p = exp(score(a, r, head, j) - m);
        const uint8_t *v = qn_kv_at(kv, a->seq[r], j, kv_head, true);
        for (size_t d = 0; d < dim; d++) acc[d] += p * decode(v + d * bytes, kv->fmt);
        l += p;
    }
    for (size_t d = 0; d < dim; d++) out[d] = l > 0 ? (float)(acc[d] / l) : 0.0f;
}

void qn_ref_attention(const qn_attention_args *a, qn_span units, void *scratch)
{
    const uint32_t per = a->n_heads / a->kv.n_kv_heads;
    for (uint32_t u = units.begin; u < units.end; u++) {
        const uint32_t row = u / a->kv.n_kv_heads * QN_ATTN_ROWS, kv_head = u % a->kv.n_kv_heads;
        for (uint32_t r = row; r < row + QN_ATTN_ROWS && r < *a->n; r++)
            for (uint32_t h = 0; h < per; h++) attend(a, r, kv_head * per + h, scratch);
    }
}
