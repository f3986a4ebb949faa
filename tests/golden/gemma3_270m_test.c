/* SPDX-License-Identifier: Apache-2.0 */
/* gemma3_270m_test.c - Gemma-3-270M against its oracle, on both sides of the window of 512.
 *
 * The eleventh prompt has 3,000 tokens, in chunks of 64 and of what the engine takes: its answer hangs on
 * both kinds of layers, on borders of chunks in the middle of windows, and on blocks that fell out. */
#include "greedy.h"
#include "model/model.h"

#define ANSWERS "tests/golden/gemma3-270m/greedy.json"

static void eleven_hundred_greedy_steps_equal_the_oracle(qt *t)
{
    greedy_check_steps(t, QUERN_GEMMA, ANSWERS, 11);
}

static void the_engine_runs_all_prompts_together_as_the_oracle_did(qt *t)
{
    greedy_check_engine(t, QUERN_GEMMA, ANSWERS, 4096);
}

static void its_turns_end_at_two_ids(qt *t)
{
    qn_model *m = NULL;
    qn_err err = {0};
    if (!QT_OKF(t, qn_model_open(&m, QUERN_GEMMA, NULL, &err) == QN_OK, "%s", err.msg)) return;
    const qn_model_desc *d = qn_model_get_desc(m);
    QT_EQ(t, d->n_eos, 2);
    QT_EQ(t, d->eos[0], 1);   /* <eos> */
    QT_EQ(t, d->eos[1], 106); /* <end_of_turn> */
    QT_EQ(t, d->window, 512);
    QT_OK(t, qn_model_chat_template(m) == NULL);
    qn_model_unref(m);
}

QT_MAIN(QT(eleven_hundred_greedy_steps_equal_the_oracle),
        QT(the_engine_runs_all_prompts_together_as_the_oracle_did), QT(its_turns_end_at_two_ids))
