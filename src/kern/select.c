/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - the variants of this build, their overlay, and how much work and scratch a call has. */
#include "base/cpu.h"
#include "kern/kern_int.h"

enum {
    NEEDS_AVX2 = QN_CPU_AVX2 | QN_CPU_FMA | QN_CPU_F16C,
    NEEDS_AVX512 = QN_CPU_FMA | QN_CPU_F16C | QN_CPU_AVX512F | QN_CPU_AVX512BW | QN_CPU_AVX512VL |
                   QN_CPU_AVX512DQ
};

const qn_kern_variant qn_kern_variants[] = {
    {"ref", 0, &qn_kern_ref},
    {"generic", 0, &qn_kern_generic},
#if defined(__x86_64__)
    {"avx2", NEEDS_AVX2, &qn_kern_avx2},
    {"avx2_vnni", NEEDS_AVX2 | QN_CPU_AVX_VNNI, &qn_kern_avx2_vnni},
    {"avx512_base", NEEDS_AVX512, &qn_kern_avx512_base},
    {"avx512", NEEDS_AVX512 | QN_CPU_AVX512VNNI, &qn_kern_avx512},
#elif defined(__aarch64__)
    {"neon", QN_CPU_NEON, &qn_kern_neon},
    {"neon_dot", QN_CPU_NEON | QN_CPU_DOTPROD, &qn_kern_neon_dot},
    {"neon_i8mm", QN_CPU_NEON | QN_CPU_DOTPROD | QN_CPU_I8MM, &qn_kern_neon_i8mm},
#endif
};
const size_t qn_kern_n_variants = QN_LEN(qn_kern_variants);

qn_kern_table qn_kern_select(uint32_t allowed)
{
    qn_kern_table best = qn_kern_generic;
    for (size_t i = 2; i < qn_kern_n_variants; i++) {
        const qn_kern_variant *v = &qn_kern_variants[i];
        if ((v->needs & allowed) != v->needs) continue;
#define X(name, tol, unit) best.name = v->table->name ? v->table->name : best.name;
#include "kern/kern.def"
#undef X
    }
    return best;
}

const char *qn_kern_best(uint32_t allowed)
{
    const char *best = qn_kern_variants[1].name;
    for (size_t i = 2; i < qn_kern_n_variants; i++)
        if ((qn_kern_variants[i].needs & allowed) == qn_kern_variants[i].needs)
            best = qn_kern_variants[i].name;
    return best;
}

const char *qn_kern_name(qn_kern_id id)
{
    static const char *const names[] = {
#define X(name, tol, unit) #name,
#include "kern/kern.def"
#undef X
    };
    return id < QN_K_COUNT ? names[id] : "?";
}

/* -- units: one function a kernel, so that a new line in kern.def does not link without one ------- */

static uint32_t units_embed(const qn_embed_args *a) { return *a->n; }
static uint32_t units_rmsnorm(const qn_rmsnorm_args *a) { return *a->n * a->sub; }
static uint32_t units_add(const qn_add_args *a) { return qn_chunk_units(*a->n, a->cols); }
static uint32_t units_add_rmsnorm(const qn_add_rmsnorm_args *a) { return *a->n; }
static uint32_t units_linear(const qn_linear_args *a) { return *a->n ? a->w->rows : 0; }
static uint32_t units_quant_rows(const qn_quant_rows_args *a) { return *a->n; }
static uint32_t units_linear_i8(const qn_linear_i8_args *a) { return *a->n ? a->w->rows : 0; }
static uint32_t units_linear_i16(const qn_linear_i16_args *a) { return *a->n ? a->w->rows : 0; }
static uint32_t units_rope_table(const qn_rope_table_args *a) { return *a->n; }
static uint32_t units_rope(const qn_rope_args *a) { return *a->n; }
static uint32_t units_kv_write(const qn_kv_write_args *a) { return *a->n; }
static uint32_t units_attention(const qn_attention_args *a)
{
    return (*a->n + QN_ATTN_ROWS - 1) / QN_ATTN_ROWS * a->kv.n_kv_heads;
}
static uint32_t units_act_mul(const qn_act_mul_args *a) { return qn_chunk_units(*a->n, a->cols); }
static uint32_t units_scale(const qn_scale_args *a) { return qn_chunk_units(*a->n, a->cols); }
static uint32_t units_softcap(const qn_softcap_args *a) { return qn_chunk_units(*a->n, a->cols); }
static uint32_t units_gather(const qn_gather_args *a) { return *a->n; }
static uint32_t units_adjust(const qn_adjust_args *a) { return *a->n; }
static uint32_t units_draw(const qn_draw_args *a) { return *a->n; }

uint32_t qn_kern_units(qn_kern_id id, const void *args)
{
    switch (id) {
#define X(name, tol, unit) \
    case QN_K_##name:      \
        return units_##name(args);
#include "kern/kern.def"
#undef X
    default:
        return 0;
    }
}

/* -- scratch: the most that any variant takes for these args --------------------------------------- */

static size_t scratch_linear(const qn_linear_args *a)
{
    const size_t padded = ((size_t)a->w->cols + 15) / 16 * 16;
    return qn_linear_panel(a->w->cols) * padded * sizeof(float);
}

/* See tmpl/attention.inc; the reference needs a head's width of double. */
static size_t scratch_attention(const qn_attention_args *a)
{
    const size_t pad = ((size_t)a->kv.head_dim + 15) / 16 * 16;
    const size_t pairs = (size_t)QN_ATTN_ROWS * (a->n_heads / a->kv.n_kv_heads);
    return (2 * QN_KV_SPAN * pad + 6 * (QN_KV_SPAN + 2 * pad) + pairs * (pad + 2)) * sizeof(float);
}

/* Bins, then a key and a weight a token; the reference sorts ids. */
static size_t scratch_draw(const qn_draw_args *a)
{
    return 2048 * 16 + ((size_t)a->vocab + 15) / 16 * 16 * 2 * sizeof(uint32_t);
}

size_t qn_kern_scratch(qn_kern_id id, const void *args)
{
    switch (id) {
    case QN_K_linear:
        return scratch_linear(args);
    case QN_K_attention:
        return scratch_attention(args);
    case QN_K_draw:
        return scratch_draw(args);
    default:
        return 0;
    }
}

void qn_kern_call(const qn_kern_table *t, qn_kern_id id, const void *args, qn_span units,
                  void *scratch)
{
    switch (id) {
#define X(name, tol, unit)             \
    case QN_K_##name:                  \
        t->name(args, units, scratch); \
        return;
#include "kern/kern.def"
#undef X
    default:
        return;
    }
}
