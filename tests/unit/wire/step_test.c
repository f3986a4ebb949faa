/* SPDX-License-Identifier: Apache-2.0 */
#include "qt.h"
#include "wire/step.h"

#include <stdlib.h>
#include <string.h>

static const qn_step_caps caps = {
    .rows = 9, .logits = 3, .seqs = 2, .groups = 2, .table = 6, .edits = 5};

/* A valid step: two sequences, nine rows, the second sequence at positions 60..68. */
static qn_step *sample(size_t *n)
{
    *n = qn_step_bytes(&caps);
    qn_step *s = qn_step_init(aligned_alloc(64, *n), &caps);
    s->n_rows = 9;
    s->n_logits = 2;
    s->n_seqs = 2;
    for (uint32_t r = 0; r < 9; r++) {
        qn_step_seq(s)[r] = r >= 4;
        qn_step_kv_pos(s)[r] = r < 4 ? r : 56 + r;
        qn_step_keys(s)[r] = (qn_keys){0, qn_step_kv_pos(s)[r] + 1, 0, 0};
        qn_step_parent(s)[r] = qn_step_adapter(s)[r] = QN_STEP_NONE;
    }
    for (uint32_t g = 0; g < 2; g++) qn_step_table_off(s)[g * 2 + 1] = 1;
    qn_step_logit_row(s)[0] = 3;
    qn_step_logit_row(s)[1] = 8;
    s->n_edits = 3;
    qn_step_adjust(s)[1] = (qn_adjust){1, 2, 1.0f, 0.0f, 0.0f};
    return s;
}

static void refused(qt *t, qn_step *s, size_t n, const char *field)
{
    qn_err err = {0};
    QT_EQ(t, qn_step_check(s, n, &err), QN_E_FORMAT);
    QT_OKF(t, strstr(err.msg, field) != NULL, "\"%s\" names %s", err.msg, field);
}

static void arrays_do_not_overlap(qt *t)
{
    size_t n = 0;
    qn_step *s = sample(&n);
    const uint32_t at[] = {s->at_source,    s->at_value,   s->at_pos,      s->at_kv_pos,
                           s->at_seq,       s->at_keys,    s->at_parent,   s->at_adapter,
                           s->at_logit_row, s->at_sampler, s->at_register, s->at_table_off,
                           s->at_table,     s->at_adjust,  s->at_edit,     s->bytes};
    const size_t need[] = {36,
                           36,
                           108,
                           36,
                           36,
                           144,
                           36,
                           36,
                           12,
                           3 * sizeof(qn_sampler),
                           12,
                           16,
                           48,
                           3 * sizeof(qn_adjust),
                           5 * sizeof(qn_edit)};
    QT_OK(t, at[0] >= sizeof(qn_step));
    for (size_t i = 0; i + 1 < QT_LEN(at); i++) {
        QT_EQ(t, at[i] % 64, 0);
        QT_OKF(t, at[i] + need[i] <= at[i + 1], "array %zu", i);
    }
    free(s);
}

static void accepts_what_init_and_filling_make(qt *t)
{
    size_t n = 0;
    qn_step *s = sample(&n);
    qn_err err = {0};
    QT_OKF(t, qn_step_check(s, n, &err) == QN_OK, "%s", err.msg);
    free(s);
}

static void survives_a_copy_to_another_address(qt *t)
{
    size_t n = 0;
    qn_step *s = sample(&n);
    unsigned char *other = aligned_alloc(64, n);
    memcpy(other, s, n);
    memset(s, 0xEE, n);
    free(s);
    const qn_step *c = (const qn_step *)(const void *)other;
    QT_EQ(t, qn_step_check(c, n, NULL), QN_OK);
    QT_EQ(t, qn_step_kv_pos(c)[8], 64);
    QT_EQ(t, qn_step_logit_row(c)[1], 8);
    free(other);
}

static void refuses_capacities_that_overflow(qt *t)
{
    qn_step_caps c = caps;
    c.rows = 0;
    QT_EQ(t, qn_step_bytes(&c), 0);
    c.rows = UINT32_MAX;
    QT_EQ(t, qn_step_bytes(&c), 0);
    c = caps;
    c.groups = 1u << 17;
    c.seqs = 1u << 17;
    QT_EQ(t, qn_step_bytes(&c), 0);
    c = caps;
    c.table = UINT32_MAX / 2 + 1;
    QT_EQ(t, qn_step_bytes(&c), 0);
}

static void refuses_a_foreign_header(qt *t)
{
    size_t n = 0;
    qn_step *s = sample(&n);
    refused(t, s, sizeof *s - 1, "length");
    refused(t, s, n - 64, "length");
    s->magic ^= 1;
    refused(t, s, n, "magic");
    s->magic ^= 1;
    s->version = QN_STEP_VERSION + 1;
    refused(t, s, n, "version");
    s->version = QN_STEP_VERSION;
    s->bytes -= 64;
    refused(t, s, n, "bytes");
    free(s);
}

static void refuses_moved_arrays_and_large_counts(qt *t)
{
    size_t n = 0;
    qn_step *s = sample(&n);
    s->at_table += 64;
    refused(t, s, n, "table");
    s->at_table -= 64;
    s->n_rows = 10;
    refused(t, s, n, "n_rows");
    s->n_rows = 9;
    s->n_logits = 4;
    refused(t, s, n, "n_logits");
    s->n_logits = 2;
    s->n_seqs = 3;
    refused(t, s, n, "n_seqs");
    free(s);
}

static void refuses_rows_that_point_outside(qt *t)
{
    size_t n = 0;
    qn_step *s = sample(&n);
    qn_step_source(s)[2] = 3;
    refused(t, s, n, "source");
    qn_step_source(s)[2] = QN_ROW_EMBED;
    qn_step_seq(s)[2] = 2;
    refused(t, s, n, "seq");
    qn_step_seq(s)[2] = 0;
    qn_step_keys(s)[5] = (qn_keys){3, 2, 0, 0};
    refused(t, s, n, "keys");
    qn_step_keys(s)[5] = (qn_keys){0, 1, 0, 0};
    qn_step_logit_row(s)[0] = 9;
    refused(t, s, n, "logit_row");
    qn_step_logit_row(s)[0] = 0;
    qn_step_kv_pos(s)[8] = 5 * 64; /* its sequence begins at table entry 1: blocks 1..5 hold 320 */
    refused(t, s, n, "table");
    qn_step_kv_pos(s)[8] = 5 * 64 - 1;
    QT_EQ(t, qn_step_check(s, n, NULL), QN_OK);
    free(s);
}

QT_MAIN(QT(arrays_do_not_overlap), QT(accepts_what_init_and_filling_make),
        QT(survives_a_copy_to_another_address), QT(refuses_capacities_that_overflow),
        QT(refuses_a_foreign_header), QT(refuses_moved_arrays_and_large_counts),
        QT(refuses_rows_that_point_outside))
