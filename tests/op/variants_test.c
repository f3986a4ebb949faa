/* SPDX-License-Identifier: Apache-2.0 */
/* variants_test.c - every kernel of kern.def on every variant: near the reference, the bits of the
 * portable variant, and any split of the units. One named test a kernel, variant and property. */
#include "op.h"

op_list *const op_lists[QN_K_COUNT] = {
#define X(name, tol, unit) [QN_K_##name] = op_each_##name,
#include "kern/kern.def"
#undef X
};

#define TEST(kernel, variant, property, check)                        \
    static void kernel##_##property##_on_##variant(qt *t)             \
    {                                                                 \
        qn_kern_table k;                                              \
        if (op_variant(t, &k, #variant)) check(t, &k, QN_K_##kernel); \
    }

#define FASTER(variant, name)                                         \
    TEST(name, variant, is_near_the_reference, op_matches_ref)        \
    TEST(name, variant, has_the_bits_of_generic, op_has_generic_bits) \
    TEST(name, variant, ignores_how_units_are_split, op_split_changes_nothing)
#define X(name, tol, unit)                                                     \
    TEST(name, generic, is_near_the_reference, op_matches_ref)                 \
    TEST(name, ref, ignores_how_units_are_split, op_split_changes_nothing)     \
    TEST(name, generic, ignores_how_units_are_split, op_split_changes_nothing) \
    OP_EACH_FASTER(FASTER, name)
#include "kern/kern.def"
#undef X

static void every_kernel_has_cases(qt *t)
{
    for (int id = 0; id < QN_K_COUNT; id++)
        QT_OKF(t, op_lists[id] != NULL, "%s", qn_kern_name((qn_kern_id)id));
}

static const qt_case cases[] = {
    QT(every_kernel_has_cases),
#define CASES(variant, name)                             \
    QT(name##_is_near_the_reference_on_##variant),       \
        QT(name##_has_the_bits_of_generic_on_##variant), \
        QT(name##_ignores_how_units_are_split_on_##variant),
#define X(name, tol, unit)                                                                      \
    QT(name##_is_near_the_reference_on_generic), QT(name##_ignores_how_units_are_split_on_ref), \
        QT(name##_ignores_how_units_are_split_on_generic), OP_EACH_FASTER(CASES, name)
#include "kern/kern.def"
#undef X
};

int main(int argc, char **argv) { return qt_run(cases, QT_LEN(cases), argc, argv); }
