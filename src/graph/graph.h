/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - the recorder: a family says once, in primitive ops, what its model computes.
 *
 * Family code calls one function an op. It knows neither device, batch, nor whether this is prefill,
 * decode, verification or training: rows are rows. A value is [rows, cols] f32, where rows are the
 * step's rows or its logit rows. What a graph needs from outside (row counts, tokens, positions,
 * tables) is read through the plan's step.
 *
 * Errors stick: after the first one every call is a no-op, and qn_plan_build reports it, so family
 * code has no error paths.
 *
 * Owner:  the caller; the plan takes what it needs, the graph may be freed after qn_plan_build.
 * Thread: one at a time.
 */
#ifndef QN_GRAPH_GRAPH_H
#define QN_GRAPH_GRAPH_H
#include "kern/args.h"
#include "wire/step.h"

typedef struct qn_graph qn_graph;

typedef struct qn_val { /* a value of the graph; 0 is none */
    uint32_t id;
} qn_val;

typedef enum qn_act_mode { /* activations of products; a constant of the model (rule R4) */
                           QN_ACTIVATIONS_F32,
                           QN_ACTIVATIONS_I8, /* int8 per row and block where the weight's format has an integer order */
                           QN_ACTIVATIONS_I16 /* 16 bits per row and block where the weights lie in panels */
} qn_act_mode;

typedef struct qn_graph_options { /* what is the same for every plan of a model and its engine */
    qn_step_caps caps;            /* of the step the plan will own */
    const qn_kv_layer *kv;        /* [n_layers], borrowed while plans live */
    uint32_t n_layers;
    uint32_t *registers;     /* token registers, borrowed while plans live; may be NULL */
    const float *embed_rows; /* rows for QN_ROW_EMBED [*, width], or NULL */
    size_t ld_embed_rows;
    qn_act_mode activations;
    const uint32_t
        *spared; /* [n_spared] ids that XTC leaves, ascending, borrowed while plans live */
    uint32_t n_spared;
} qn_graph_options;

qn_code qn_graph_new(qn_graph **out, const qn_graph_options *opt, qn_err *err);
void qn_graph_free(qn_graph *g); /* NULL is fine */

/* Rope parameters of a model, borrowed while plans live. Tables are computed once a step and shared
 * by all layers that use the same struct. */
typedef struct qn_rope {
    const float *inv_freq; /* [half] */
    const uint8_t *stream; /* [half] which position stream, or NULL */
    uint32_t half;         /* rotated pairs */
    float mscale;
    bool interleaved;
} qn_rope;

/* Each appends one op and returns its result. Shapes as in kern/args.h. Matrices, gains and biases
 * are borrowed while plans live; they may be NULL where the contract of the kernel says so. */
qn_val qn_g_embed(qn_graph *g, const qn_matrix *table, float scale);
qn_val qn_g_rmsnorm(qn_graph *g, qn_val x, const float *gain, uint32_t sub, float eps);
qn_val qn_g_linear(qn_graph *g, qn_val x, const qn_matrix *w, const float *bias);
qn_val qn_g_add(qn_graph *g, qn_val a, qn_val b);
qn_val qn_g_rope(qn_graph *g, qn_val x, const qn_rope *rope, uint32_t heads, uint32_t dim);
void qn_g_kv_write(qn_graph *g, uint32_t layer, qn_val k, qn_val v);
typedef struct qn_attention_spec {
    uint32_t layer, n_heads; /* kv heads, head dim and window come from the layer's kv record */
    float scale, softcap;
    const float *sinks;
} qn_attention_spec;
/* Reads what qn_g_kv_write of the same layer wrote before in this graph. */
qn_val qn_g_attention(qn_graph *g, qn_val q, const qn_attention_spec *spec);
qn_val qn_g_act_mul(qn_graph *g, qn_val gate, qn_val up, qn_act act);
qn_val qn_g_scale(qn_graph *g, qn_val x, float s);
qn_val qn_g_softcap(qn_graph *g, qn_val x, float cap);
/* From here on logit rows only: picks rows logit_row[i] of x. */
qn_val qn_g_logit_rows(qn_graph *g, qn_val x);
/* The step's edits put on logits (biases, penalties, tokens that cannot be); without room for edits in
 * the step the value itself. Before qn_g_logits and qn_g_draw. */
qn_val qn_g_adjust(qn_graph *g, qn_val logits);
/* Ends a forward with logits: keeps them readable after the step (qn_plan_logits). */
void qn_g_logits(qn_graph *g, qn_val logits);
/* Draws a token per logit row (qn_plan_drawn); also into token registers. */
void qn_g_draw(qn_graph *g, qn_val logits);

/* Keeps `x` readable after the step under this name when the plan's key asks for that tap
 * (qn_plan_tap): hidden states for embeddings, speculation, quantiser statistics, tests. `name` is
 * borrowed while plans live; taps are numbered in order, at most 64 are selectable. */
void qn_g_tap(qn_graph *g, qn_val x, const char *name);
/* A border between segments. With every lane parked the host runs `hook` (NULL: none) before the
 * next op starts: experts arriving from disk, collectives, offload. */
typedef qn_code qn_hook_fn(void *ctx, const qn_step *step, qn_err *err);
void qn_g_segment(qn_graph *g, qn_hook_fn *hook, void *ctx);

uint32_t qn_g_cols(const qn_graph *g, qn_val x); /* width of a value */
/* The sticky error so far, QN_OK if none. */
qn_code qn_g_error(const qn_graph *g);

#endif
