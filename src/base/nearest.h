/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - how far apart two short names are, for "did you mean".
 *
 * Thread: values only.
 */
#ifndef QN_BASE_NEAREST_H
#define QN_BASE_NEAREST_H
#include "base/str.h"

/* Edits (insert, delete, replace a byte, swap two neighbours) between a and b; SIZE_MAX when either
 * is longer than 64 bytes. Source: Damerau 1964, the restricted form. */
size_t qn_str_distance(qn_str a, qn_str b);
/* True when `distance` is near enough for a name of n bytes to be suggested. */
static inline bool qn_str_is_near(size_t distance, size_t n) { return distance <= 1 + n / 4; }

#endif
