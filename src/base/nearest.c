/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - edit distance over three rows of the usual table. */
#include "base/nearest.h"

enum { MAX_BYTES = 64 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t qn_str_distance(qn_str a, qn_str b)
{
    size_t row[3][MAX_BYTES + 1] = {{0}};
    if (a.n > MAX_BYTES || b.n > MAX_BYTES) return SIZE_MAX;
    for (size_t j = 0; j <= b.n; j++) row[0][j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *now = row[i % 3];
        const size_t *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            const size_t replace = last[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            now[j] = least(replace, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[a.n % 3][b.n];
}
