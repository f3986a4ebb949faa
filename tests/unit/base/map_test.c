/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "qt.h"

enum { KEYS = 512 };

/* Random puts and removes against an array that is plainly right. */
static void agrees_with_an_array_over_random_operations(qt *t)
{
    bool there[KEYS] = {false};
    uint64_t want[KEYS] = {0};
    size_t live = 0, bad = 0;
    qn_umap m;
    qn_umap_init(&m, 1);
    for (int step = 0; step < 200000; step++) {
        const uint64_t r = qt_rand(), key = r % KEYS * 0x100000001u;
        const size_t k = r % KEYS;
        if ((r >> 40) % 5 < 2) {
            if (qn_umap_put(&m, key, r, NULL) != QN_OK) bad++;
            live += !there[k];
            there[k] = true;
            want[k] = r;
        } else if ((r >> 40) % 5 < 4) {
            if (qn_umap_remove(&m, key) != there[k]) bad++;
            live -= there[k];
            there[k] = false;
        } else {
            uint64_t v = 0;
            if (qn_umap_get(&m, key, &v) != there[k] || (there[k] && v != want[k])) bad++;
        }
        if (qn_umap_len(&m) != live) bad++;
    }
    QT_EQ(t, bad, 0);
    QT_OK(t, m.core.cap_entries <= 2 * KEYS); /* holes are reused, not grown around */
    qn_umap_fini(&m);
}

static void text_map_agrees_with_an_array(qt *t)
{
    bool there[KEYS] = {false};
    uint64_t want[KEYS] = {0};
    size_t bad = 0;
    qn_strmap m;
    qn_strmap_init(&m, 2);
    for (int step = 0; step < 100000; step++) {
        const uint64_t r = qt_rand();
        const size_t k = r % KEYS;
        char key[32];
        const int n = snprintf(key, sizeof key, "key-%zu", k);
        const qn_str s = {key, (size_t)n};
        if (r >> 63) {
            if (qn_strmap_put(&m, s, r, NULL) != QN_OK) bad++;
            there[k] = true;
            want[k] = r;
        } else {
            if (qn_strmap_remove(&m, s) != there[k]) bad++;
            there[k] = false;
        }
        memset(key, 'x', sizeof key); /* the map owns its keys */
    }
    for (size_t k = 0; k < KEYS; k++) {
        char key[32];
        uint64_t v = 0;
        const int n = snprintf(key, sizeof key, "key-%zu", k);
        const bool got = qn_strmap_get(&m, (qn_str){key, (size_t)n}, &v);
        if (got != there[k] || (got && v != want[k])) bad++;
    }
    QT_EQ(t, bad, 0);
    QT_OK(t, m.keys.used < 64 * KEYS); /* keys of removed entries do not pile up */
    qn_strmap_fini(&m);
}

static void walks_in_insertion_order(qt *t)
{
    qn_strmap m;
    qn_strmap_init(&m, 3);
    static const char *const names[] = {"pear", "apple", "fig", "kiwi", "plum"};
    for (size_t i = 0; i < 5; i++) QT_EQ(t, qn_strmap_put(&m, qn_str_z(names[i]), i, NULL), QN_OK);
    QT_EQ(t, qn_strmap_put(&m, QN_STR("apple"), 11, NULL), QN_OK);
    QT_OK(t, qn_strmap_remove(&m, QN_STR("fig")));
    QT_EQ(t, qn_strmap_reserve(&m, 1000, NULL), QN_OK);
    static const struct {
        const char *key;
        uint64_t value;
    } want[] = {{"pear", 0}, {"apple", 11}, {"kiwi", 3}, {"plum", 4}};
    size_t it = 0, n = 0;
    qn_str key;
    uint64_t value = 0;
    while (qn_strmap_next(&m, &it, &key, &value) && n < 4) {
        QT_OK(t, qn_str_eq_z(key, want[n].key) && value == want[n].value);
        n++;
    }
    QT_EQ(t, n, 4);
    qn_strmap_fini(&m);
}

static void entries_may_be_removed_during_a_walk(qt *t)
{
    qn_umap m;
    size_t it = 0, seen = 0;
    uint64_t key = 0;
    qn_umap_init(&m, 4);
    for (uint64_t i = 0; i < 100; i++) QT_EQ(t, qn_umap_put(&m, i, i, NULL), QN_OK);
    while (qn_umap_next(&m, &it, &key, NULL)) {
        seen++;
        if (key % 2) QT_OK(t, qn_umap_remove(&m, key));
    }
    QT_EQ(t, seen, 100);
    QT_EQ(t, qn_umap_len(&m), 50);
    qn_umap_fini(&m);
}

static void odd_keys_are_keys_too(qt *t)
{
    qn_strmap m;
    uint64_t v = 0;
    int x = 0;
    qn_strmap_init(&m, 5);
    QT_OK(t, !qn_strmap_get(&m, QN_STR(""), &v) && !qn_strmap_remove(&m, QN_STR("")));
    QT_EQ(t, qn_strmap_put(&m, (qn_str){NULL, 0}, 1, NULL), QN_OK);
    QT_EQ(t, qn_strmap_put(&m, qn_str_make("\0", 1), 2, NULL), QN_OK);
    QT_EQ(t, qn_strmap_put(&m, qn_str_make("\0\0", 2), 3, NULL), QN_OK);
    QT_OK(t, qn_strmap_get(&m, QN_STR(""), &v) && v == 1);
    QT_OK(t, qn_strmap_get(&m, qn_str_make("\0", 1), &v) && v == 2);
    QT_OK(t, qn_strmap_get(&m, qn_str_make("\0\0", 2), NULL));
    QT_EQ(t, qn_strmap_put_ptr(&m, QN_STR("p"), &x, NULL), QN_OK);
    QT_OK(t, qn_strmap_get_ptr(&m, QN_STR("p")) == &x && !qn_strmap_get_ptr(&m, QN_STR("q")));
    QT_EQ(t, qn_strmap_len(&m), 4);
    qn_strmap_fini(&m);
    qn_strmap_fini(&m);
}

static void extreme_numbers_are_keys_too(qt *t)
{
    static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 32};
    qn_umap m;
    qn_umap_init(&m, 0);
    for (size_t i = 0; i < QT_LEN(keys); i++) QT_EQ(t, qn_umap_put(&m, keys[i], i, NULL), QN_OK);
    for (size_t i = 0; i < QT_LEN(keys); i++) {
        uint64_t v = 99;
        QT_OK(t, qn_umap_get(&m, keys[i], &v) && v == i);
    }
    qn_umap_fini(&m);
}

static void put_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    for (size_t n = 0; n < 200; n++) {
        qn_strmap m;
        char key[16];
        size_t put = 0;
        qn_strmap_init(&m, 6);
        qn_alloc_fail_after(n);
        for (size_t i = 0; i < 300; i++) { /* with removals, so that keys move to a new arena */
            const int len = snprintf(key, sizeof key, "%zu", i);
            if (qn_strmap_put(&m, (qn_str){key, (size_t)len}, i, NULL) != QN_OK) break;
            put++;
            if (i % 3 == 0 && qn_strmap_remove(&m, (qn_str){key, (size_t)len})) put--;
        }
        qn_alloc_fail_after(SIZE_MAX);
        QT_EQ(t, qn_strmap_len(&m), put);
        QT_EQ(t, qn_strmap_put(&m, QN_STR("x"), 1, NULL), QN_OK);
        QT_OK(t, put < 2 || qn_strmap_get(&m, QN_STR("1"), NULL));
        qn_strmap_fini(&m);
        QT_EQ(t, qn_alloc_live(), before);
        if (put == 200) break;
    }
}

static void reserve_makes_later_puts_free_of_allocation(qt *t)
{
    qn_umap m;
    qn_err err = {0};
    qn_umap_init(&m, 7);
    QT_EQ(t, qn_umap_reserve(&m, SIZE_MAX, &err), QN_E_LIMIT);
    QT_EQ(t, qn_umap_reserve(&m, 1000, NULL), QN_OK);
    qn_alloc_fail_after(0);
    for (uint64_t i = 0; i < 1000; i++) QT_EQ(t, qn_umap_put(&m, i, i, NULL), QN_OK);
    QT_EQ(t, qn_umap_put(&m, 1000, 0, NULL), QN_E_NOMEM);
    qn_alloc_fail_after(SIZE_MAX);
    QT_EQ(t, qn_umap_len(&m), 1000);
    qn_umap_fini(&m);
}

/* Each input bit flips about half of the output bits, for every length to 40. */
static void hash_spreads_every_input_bit(qt *t)
{
    for (size_t n = 1; n <= 40; n++) {
        unsigned char p[40] = {0};
        for (size_t bit = 0; bit < 8 * n; bit++) {
            int flipped = 0;
            for (int round = 0; round < 16; round++) {
                for (size_t i = 0; i < n; i++) p[i] = (unsigned char)qt_rand();
                const uint64_t a = qn_maphash(p, n, 9);
                p[bit / 8] ^= (unsigned char)(1u << bit % 8);
                flipped += __builtin_popcountll(a ^ qn_maphash(p, n, 9));
            }
            QT_OKF(t, flipped > 16 * 20 && flipped < 16 * 44, "length %zu bit %zu: %d of 1024", n,
                   bit, flipped);
        }
    }
    QT_OK(t, qn_maphash(NULL, 0, 1) != qn_maphash(NULL, 0, 2));
    QT_OK(t, qn_maphash("ab", 2, 1) != qn_maphash("ab", 2, 2));
}

QT_MAIN(QT(agrees_with_an_array_over_random_operations), QT(text_map_agrees_with_an_array),
        QT(walks_in_insertion_order), QT(entries_may_be_removed_during_a_walk),
        QT(odd_keys_are_keys_too), QT(extreme_numbers_are_keys_too),
        QT(put_survives_every_failed_allocation), QT(reserve_makes_later_puts_free_of_allocation),
        QT(hash_spreads_every_input_bit))
