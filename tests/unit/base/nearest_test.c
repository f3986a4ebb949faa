/* SPDX-License-Identifier: Apache-2.0 */
/* nearest_test.c - edit distances. */
#include "base/nearest.h"

#include "qt.h"

static size_t d(const char *a, const char *b)
{
    const size_t there = qn_str_distance(qn_str_z(a), qn_str_z(b));
    return there == qn_str_distance(qn_str_z(b), qn_str_z(a)) ? there : SIZE_MAX - 1;
}

static void each_edit_counts_one(qt *t)
{
    QT_EQ(t, d("llama", "llama"), 0);
    QT_EQ(t, d("lama", "llama"), 1);
    QT_EQ(t, d("llama", "llana"), 1);
    QT_EQ(t, d("lalma", "llama"), 1); /* neighbours swapped */
    QT_EQ(t, d("", "abc"), 3);
    QT_EQ(t, d("kitten", "sitting"), 3);
    QT_EQ(t, d("ca", "abc"), 3); /* the restricted form edits no swapped pair again */
}

static void long_names_are_far_from_everything(qt *t)
{
    char name[66] = {0};
    for (int i = 0; i < 65; i++) name[i] = 'a';
    QT_OK(t, qn_str_distance(qn_str_z(name), qn_str_z("a")) == SIZE_MAX);
    name[64] = '\0';
    QT_EQ(t, d(name, "a"), 63);
}

static void only_near_names_are_suggested(qt *t)
{
    QT_OK(t, qn_str_is_near(1, 1) && qn_str_is_near(2, 4) && !qn_str_is_near(2, 3));
    QT_OK(t, !qn_str_is_near(SIZE_MAX, 64));
}

QT_MAIN(QT(each_edit_counts_one), QT(long_names_are_far_from_everything),
        QT(only_near_names_are_suggested))
