/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2_test.c - the starter model and its MLX copies against their oracles. */
#include <stdio.h>
#include <sys/stat.h>

#include "golden.h"
#include "greedy.h"
#include "mlx_copy.h"

static void a_thousand_greedy_steps_equal_the_oracle(qt *t)
{
    greedy_check_steps(t, QUERN_STARTER, "tests/golden/smollm2/greedy.json", 10);
}

/* A copy made here, told by its digest to be the one that mlx-lm ran. */
static void check_mlx_copy(qt *t, uint32_t bits, const char *answers)
{
    char dir[512], digest[65] = "";
    qn_err err = {0};
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s/mlx%u", qt_tmp(), bits);
    QT_EQ(t, mkdir(dir, 0777), 0);
    if (!QT_OKF(t, mlx_copy(QUERN_STARTER, bits, dir, digest, &err) == QN_OK, "%s", err.msg))
        return;
    qn_json *root = golden_json(t, answers);
    const char *want = qn_json_str(qn_json_get(root, "tensors_sha256"), &n);
    QT_STR(t, digest, want);
    qn_json_free(root);
    greedy_check_steps(t, dir, answers, 10);
}

static void an_mlx_copy_of_4_bits_equals_mlx_lm(qt *t)
{
    check_mlx_copy(t, 4, "tests/golden/smollm2/greedy-mlx4.json");
}

static void an_mlx_copy_of_8_bits_equals_mlx_lm(qt *t)
{
    check_mlx_copy(t, 8, "tests/golden/smollm2/greedy-mlx8.json");
}

static void the_engine_runs_all_prompts_together_as_the_oracle_did(qt *t)
{
    greedy_check_engine(t, QUERN_STARTER, "tests/golden/smollm2/greedy.json", 1024);
}

QT_MAIN(QT(a_thousand_greedy_steps_equal_the_oracle), QT(an_mlx_copy_of_4_bits_equals_mlx_lm),
        QT(an_mlx_copy_of_8_bits_equals_mlx_lm),
        QT(the_engine_runs_all_prompts_together_as_the_oracle_did))
