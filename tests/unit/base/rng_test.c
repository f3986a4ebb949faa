/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "qt.h"

/* The three vectors of Random123's kat_vectors for philox4x32-10: counter, key, result. */
static void philox_gives_the_published_answers(qt *t)
{
    static const uint32_t kat[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (size_t i = 0; i < 3; i++) {
        uint32_t c[4] = {kat[i][0], kat[i][1], kat[i][2], kat[i][3]};
        qn_philox(c, kat[i][4], kat[i][5]);
        for (size_t k = 0; k < 4; k++) QT_EQ(t, c[k], kat[i][6 + k]);
    }
}

static void names_map_to_counter_and_key(qt *t)
{
    uint32_t c[4] = {25, 7, 3, QN_RNG_XTC}; /* id 102 is word 2 of block 25 */
    qn_philox(c, 0x55667788, 0x11223344);
    QT_EQ(t, qn_rng_u32(0x1122334455667788, 3, 7, QN_RNG_XTC, 102), c[2]);
    uint32_t quad[4];
    qn_rng_quad(quad, 0x1122334455667788, 3, 7, QN_RNG_XTC, 25);
    for (uint32_t i = 0; i < 4; i++)
        QT_EQ(t, qn_rng_u32(0x1122334455667788, 3, 7, QN_RNG_XTC, 100 + i), quad[i]);
}

static void every_part_of_the_name_matters(qt *t)
{
    const uint32_t bits[] = {qn_rng_u32(1, 0, 0, 0, 0),          qn_rng_u32(0, 1, 0, 0, 0),
                             qn_rng_u32(0, 0, 1, 0, 0),          qn_rng_u32(0, 0, 0, 1, 0),
                             qn_rng_u32(0, 0, 0, 0, 1),          qn_rng_u32(0, 0, 0, 0, 4),
                             qn_rng_u32(1ull << 32, 0, 0, 0, 0), qn_rng_u32(0, 0, 0, 0, 0)};
    for (size_t i = 0; i < QT_LEN(bits); i++)
        for (size_t k = 0; k < i; k++) QT_OK(t, bits[i] != bits[k]);
}

static void unit_floats_stay_inside_the_open_interval(qt *t)
{
    static const uint32_t edge[] = {0,          1,          0x7fffffff, 0x80000000,
                                    0xffffff7f, 0xffffff80, 0xffffffff};
    for (size_t i = 0; i < QT_LEN(edge); i++) {
        const float u = qn_rng_unit(edge[i]);
        QT_OKF(t, u > 0.0f && u < 1.0f && isfinite(logf(-log1pf(-u))), "%#x gives %.9g", edge[i],
               (double)u);
    }
    QT_OK(t, qn_rng_unit(0) == 0x1p-33f);
    QT_OK(t, qn_rng_unit(0xffffffff) == 0x1.fffffep-1f);
    float last = 0;
    size_t bad = 0;
    for (uint64_t b = 0; b <= UINT32_MAX; b += 65521) {
        const float u = qn_rng_unit((uint32_t)b);
        bad += u < last;
        last = u;
    }
    QT_EQ(t, bad, 0);
}

/* Chi-square over 256 cells, 255 degrees of freedom: mean 255, deviation 22.6. Fixed inputs, so the
 * outcome is fixed. */
static void bits_are_spread_evenly(qt *t)
{
    for (unsigned shift = 0; shift < 32; shift += 8) {
        double chi = 0;
        uint32_t count[256] = {0};
        for (uint32_t id = 0; id < 262144; id++)
            count[qn_rng_u32(99, 0, 5, QN_RNG_DRAW, id) >> shift & 255]++;
        for (size_t i = 0; i < 256; i++) chi += pow(count[i] - 1024.0, 2) / 1024.0;
        QT_OKF(t, chi > 150 && chi < 360, "shift %u: chi-square %.1f", shift, chi);
    }
}

static void fresh_seeds_differ(qt *t)
{
    uint64_t a = 0, b = 0;
    QT_EQ(t, qn_rng_fresh_seed(&a, NULL), QN_OK);
    QT_EQ(t, qn_rng_fresh_seed(&b, NULL), QN_OK);
    QT_OK(t, a != b);
}

static void clocks_run_forward(qt *t)
{
    uint64_t last = qn_clock_ns();
    size_t bad = 0;
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = qn_clock_ns();
        bad += now < last;
        last = now;
    }
    QT_EQ(t, bad, 0);
    QT_OK(t, qn_clock_wall_ns() > UINT64_C(1600000000) * 1000000000u); /* after 2020 */
}

QT_MAIN(QT(philox_gives_the_published_answers), QT(names_map_to_counter_and_key),
        QT(every_part_of_the_name_matters), QT(unit_floats_stay_inside_the_open_interval),
        QT(bits_are_spread_evenly), QT(fresh_seeds_differ), QT(clocks_run_forward))
