/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "cache_world.h"

static qn_cache *open_world(qt *t, const char *groups, uint32_t n, uint32_t window)
{
    qn_cache *c = NULL;
    qn_err err = {0};
    QT_OKF(t, world_open(&c, groups, n, window, 0, &err) == QN_OK, "%s", err.msg);
    return c;
}

/* ids `first`, first + 1, ... */
static void count_from(timeline *l, uint32_t first, uint32_t n)
{
    uint32_t ids[WORLD_MAX];
    for (uint32_t i = 0; i < n; i++) ids[i] = first + i;
    timeline_tokens(l, ids, n);
}

static void start(qt *t, qn_cache *c, timeline *l, uint32_t first, uint32_t n)
{
    *l = (timeline){.n_extra = 0};
    QT_EQ(t, qn_seq_open(&l->seq, c, NULL), QN_OK);
    count_from(l, first, n);
}

/* As start, then takes what the cache has. */
static void start_match(qt *t, qn_cache *c, timeline *l, uint32_t first, uint32_t n)
{
    start(t, c, l, first, n);
    l->len = qn_seq_match(l->seq, l->token, n, NULL, 0);
}

static void finish(qt *t, qn_cache *c)
{
    qn_cache_stats s;
    qn_cache_get_stats(c, &s);
    QT_EQ(t, s.in_use, 0);
    QT_EQ(t, s.free + s.evictable, s.blocks);
    qn_cache_close(c);
}

static void holds_what_was_committed_around_every_block_edge(qt *t)
{
    qn_cache *c = open_world(t, "f", 8, 0);
    for (uint32_t n = 62; n <= 130; n++) {
        timeline l;
        start(t, c, &l, n * 1000, n);
        QT_EQ(t, timeline_step(c, &l, n, n, NULL), QN_OK);
        QT_OKF(t, timeline_holds(c, &l), "%u positions", n);
        qn_seq_close(l.seq);
    }
    finish(t, c);
}

static void a_block_taken_again_is_zeros_behind_what_is_written(qt *t)
{
    qn_cache *c = open_world(t, "ff", 3, 0);
    for (uint32_t n = 130; n > 60; n -= 3) { /* shorter each time: the rest was somebody else's */
        timeline l;
        start(t, c, &l, n * 1000, n);
        QT_EQ(t, timeline_step(c, &l, n, n, NULL), QN_OK);
        QT_OKF(t, timeline_holds(c, &l) && timeline_clean_behind(c, &l), "%u positions", n);
        qn_seq_close(l.seq);
    }
    finish(t, c);
}

static void a_hit_is_exact_to_the_token(qt *t)
{
    qn_cache *c = open_world(t, "f", 16, 0);
    timeline a, b;
    start(t, c, &a, 1, 300);
    QT_EQ(t, timeline_step(c, &a, 300, 300, NULL), QN_OK);
    qn_seq_close(a.seq);
    for (uint32_t n = 1; n <= 300; n++) { /* a prompt that is the first n ids */
        start_match(t, c, &b, 1, n);
        const uint32_t want = n - 1 < 256 ? n - 1 : 256; /* 44 ids stood in an open block */
        QT_OKF(t, b.len == want, "%u ids: hit %u, expected %u", n, b.len, want);
        QT_EQ(t, timeline_step(c, &b, n - b.len, n - b.len, NULL), QN_OK);
        QT_OKF(t, timeline_holds(c, &b), "%u ids", n);
        qn_seq_close(b.seq);
    }
    finish(t, c);
}

static void a_prompt_that_leaves_midway_gets_the_common_part(qt *t)
{
    qn_cache *c = open_world(t, "f", 16, 0);
    timeline a, b;
    start(t, c, &a, 1, 192);
    QT_EQ(t, timeline_step(c, &a, 192, 192, NULL), QN_OK);
    for (uint32_t same = 1; same < 192; same += 7) {
        start(t, c, &b, 1, same);
        b.len = same;
        count_from(&b, 5000 + same, 64);
        b.len = qn_seq_match(b.seq, b.token, same + 64, NULL, 0);
        QT_OKF(t, b.len == same, "hit %u, expected %u", b.len, same);
        QT_EQ(t, timeline_step(c, &b, same + 64 - b.len, same + 64 - b.len, NULL), QN_OK);
        QT_OK(t, timeline_holds(c, &b) && timeline_holds(c, &a));
        qn_seq_close(b.seq);
    }
    qn_seq_close(a.seq);
    finish(t, c);
}

static void keys_that_collide_give_no_wrong_hit(qt *t)
{
    qn_cache *c = NULL;
    QT_EQ(t, world_open(&c, "f", 64, 0, 1, NULL), QN_OK); /* two keys in all */
    timeline l[8];
    for (uint32_t i = 0; i < 8; i++) {
        start_match(t, c, &l[i], i * 10000, 200);
        QT_EQ(t, l[i].len, 0);
        QT_EQ(t, timeline_step(c, &l[i], 200, 200, NULL), QN_OK);
    }
    for (uint32_t i = 0; i < 8; i++) {
        timeline again;
        start_match(t, c, &again, i * 10000, 200);
        QT_EQ(t, again.len, 192);
        QT_OK(t, timeline_holds(c, &again));
        qn_seq_close(again.seq);
        qn_seq_close(l[i].seq);
    }
    finish(t, c);
}

static void two_that_compute_the_same_share_it_afterwards(qt *t)
{
    qn_cache *c = open_world(t, "f", 8, 0);
    timeline a, b;
    qn_cache_stats s;
    start(t, c, &a, 1, 128);
    start(t, c, &b, 1, 128);
    QT_EQ(t, timeline_step(c, &a, 128, 128, NULL), QN_OK);
    QT_EQ(t, timeline_step(c, &b, 128, 128, NULL), QN_OK);
    qn_cache_get_stats(c, &s);
    QT_EQ(t, s.in_use, 2);
    QT_OK(t, timeline_holds(c, &a) && timeline_holds(c, &b));
    qn_seq_close(a.seq);
    qn_seq_close(b.seq);
    finish(t, c);
}

static void an_abandoned_step_leaves_zeros_and_no_blocks(qt *t)
{
    qn_cache *c = open_world(t, "f", 8, 0);
    timeline l;
    qn_cache_stats s;
    start(t, c, &l, 1, 400);
    QT_EQ(t, timeline_step(c, &l, 30, 30, NULL), QN_OK);
    QT_EQ(t, timeline_step(c, &l, 300, 5, NULL), QN_OK);
    QT_EQ(t, qn_seq_reserve(l.seq, 20, NULL), QN_OK);
    qn_cache_get_stats(c, &s);
    QT_EQ(t, s.in_use, 1);
    const qn_kv_layer *k = qn_cache_layers(c);
    uint32_t n = 0;
    const uint32_t *table = qn_seq_table(l.seq, 0, &n);
    const float *block = (const float *)(k->pool + table[0] * k->block_bytes);
    QT_OK(t, timeline_holds(c, &l));
    QT_OK(t, qt_all(t, block + 35 * 4, 29 * 4, 0.0f)); /* K of head 0, positions 35 to 63 */
    QT_EQ(t, qn_seq_trim(l.seq, 35), 35);
    for (uint32_t i = 1; i <= 4; i++) { /* all but one, and none of one */
        QT_EQ(t, timeline_step(c, &l, i, i - 1, NULL), QN_OK);
        QT_OKF(t, timeline_clean_behind(c, &l), "%u of %u kept", i - 1, i);
    }
    qn_seq_close(l.seq);
    finish(t, c);
}

static void a_fork_goes_its_own_way(qt *t)
{
    for (uint32_t n = 60; n <= 70; n++) {
        qn_cache *c = open_world(t, "fw", 8, 40);
        timeline a, b;
        start(t, c, &a, 1, n);
        QT_EQ(t, timeline_step(c, &a, n, n, NULL), QN_OK);
        b = a;
        QT_EQ(t, qn_seq_fork(&b.seq, a.seq, NULL), QN_OK);
        count_from(&a, 1000, 20);
        count_from(&b, 2000, 20);
        for (int i = 0; i < 20; i++) {
            QT_EQ(t, timeline_step(c, &a, 1, 1, NULL), QN_OK);
            QT_EQ(t, timeline_step(c, &b, 1, 1, NULL), QN_OK);
        }
        QT_OKF(t, timeline_holds(c, &a) && timeline_holds(c, &b), "forked at %u", n);
        QT_EQ(t, qn_seq_reserve(a.seq, 1, NULL), QN_OK);
        timeline x = {0};
        QT_EQ(t, qn_seq_fork(&x.seq, a.seq, NULL), QN_E_INVAL);
        QT_OK(t, x.seq == NULL);
        qn_seq_close(a.seq);
        qn_seq_close(b.seq);
        finish(t, c);
    }
}

static void a_trimmed_sequence_grows_anew(qt *t)
{
    for (uint32_t to = 0; to <= 200; to += 8) {
        qn_cache *c = open_world(t, "f", 16, 0);
        timeline l, again;
        start(t, c, &l, 1, 200);
        QT_EQ(t, timeline_step(c, &l, 200, 200, NULL), QN_OK);
        QT_EQ(t, qn_seq_trim(l.seq, to), to);
        l.len = to;
        QT_OK(t, timeline_holds(c, &l));
        count_from(&l, 9000, 100);
        QT_EQ(t, timeline_step(c, &l, 100, 100, NULL), QN_OK);
        QT_OKF(t, timeline_holds(c, &l), "trimmed to %u", to);
        start_match(t, c, &again, 1, 200); /* the first life is still there */
        QT_EQ(t, again.len, to < 192 ? 192 : to < 199 ? to : 199);
        QT_OK(t, timeline_holds(c, &again));
        qn_seq_close(l.seq);
        qn_seq_close(again.seq);
        finish(t, c);
    }
}

static void a_trim_below_a_window_starts_over(qt *t)
{
    qn_cache *c = open_world(t, "fw", 16, 64);
    timeline l;
    start(t, c, &l, 1, 400);
    QT_EQ(t, timeline_step(c, &l, 400, 400, NULL), QN_OK);
    QT_EQ(t, qn_seq_trim(l.seq, 399), 399);
    QT_EQ(t, qn_seq_trim(l.seq, 300), 0);
    QT_EQ(t, qn_seq_len(l.seq), 0);
    qn_seq_close(l.seq);
    finish(t, c);
}

static void window_blocks_fall_out_and_serve_hits(qt *t)
{
    qn_cache *c = open_world(t, "fw", 24, 64);
    timeline a, b;
    uint32_t n = 0;
    start(t, c, &a, 1, 640);
    for (int i = 0; i < 10; i++) QT_EQ(t, timeline_step(c, &a, 64, 64, NULL), QN_OK);
    const uint32_t *table = qn_seq_table(a.seq, 1, &n);
    QT_EQ(t, n, 10);
    QT_OK(t, table[8] == QN_NO_BLOCK && table[9] != QN_NO_BLOCK);
    QT_OK(t, timeline_holds(c, &a));
    start_match(t, c, &b, 1, 257); /* early blocks of the window are evictable, not gone */
    QT_EQ(t, b.len, 256);
    QT_OK(t, timeline_holds(c, &b));
    qn_seq_close(a.seq);
    qn_seq_close(b.seq);
    finish(t, c);
}

static void a_hit_ends_where_the_window_lost_a_block(qt *t)
{
    qn_cache *c = open_world(t, "fw", 12, 64);
    timeline a, b, other;
    start(t, c, &a, 1, 512);
    for (int i = 0; i < 8; i++) QT_EQ(t, timeline_step(c, &a, 64, 64, NULL), QN_OK);
    /* 4 free blocks a group; the window group then evicts a's oldest ones, the full group cannot. */
    start(t, c, &other, 5000, 256);
    QT_EQ(t, timeline_step(c, &other, 256, 256, NULL), QN_OK);
    qn_cache_stats s;
    qn_cache_get_stats(c, &s);
    QT_EQ(t, s.evictions, 0);
    qn_seq_close(other.seq);
    qn_seq_close(a.seq);
    start(t, c, &other, 9000, 6 * 64); /* the full group evicts the 4 of `other` and 2 of a's end */
    QT_EQ(t, timeline_step(c, &other, 6 * 64, 6 * 64, NULL), QN_OK);
    start_match(t, c, &b, 1, 512);
    QT_OK(t, b.len < 512 && timeline_holds(c, &b));
    qn_seq_close(b.seq);
    qn_seq_close(other.seq);
    finish(t, c);
}

static void a_full_store_says_again_and_changes_nothing(qt *t)
{
    qn_cache *c = open_world(t, "f", 4, 0);
    timeline a, b;
    qn_cache_stats before, after;
    start(t, c, &a, 1, 192);
    start(t, c, &b, 1000, 192);
    QT_EQ(t, timeline_step(c, &a, 192, 192, NULL), QN_OK);
    qn_cache_get_stats(c, &before);
    QT_OK(t, qn_seq_fits(b.seq, 64) && !qn_seq_fits(b.seq, 65));
    QT_EQ(t, qn_seq_reserve(b.seq, 65, NULL), QN_E_AGAIN);
    qn_cache_get_stats(c, &after);
    QT_OK(t, memcmp(&before, &after, sizeof before) == 0);
    QT_EQ(t, qn_seq_reserve(b.seq, WORLD_MAX + 1, NULL), QN_E_LIMIT);
    QT_EQ(t, qn_seq_commit(b.seq, b.token, 1, NULL, 0, NULL), QN_E_INVAL);
    qn_seq_close(a.seq);
    QT_EQ(t, timeline_step(c, &b, 192, 192, NULL), QN_OK);
    QT_OK(t, timeline_holds(c, &b));
    qn_seq_close(b.seq);
    finish(t, c);
}

static void the_oldest_unused_prefix_goes_first_from_its_end(qt *t)
{
    qn_cache *c = open_world(t, "f", 6, 0);
    timeline l;
    for (uint32_t i = 0; i < 2; i++) { /* two prefixes of three blocks */
        start(t, c, &l, i * 1000, 192);
        QT_EQ(t, timeline_step(c, &l, 192, 192, NULL), QN_OK);
        qn_seq_close(l.seq);
    }
    start_match(t, c, &l, 0, 193); /* use the first again: now the second is older */
    QT_EQ(t, l.len, 192);
    qn_seq_close(l.seq);
    start(t, c, &l, 5000, 64);
    QT_EQ(t, timeline_step(c, &l, 64, 64, NULL), QN_OK);
    qn_seq_close(l.seq);
    start_match(t, c, &l, 0, 193);
    QT_EQ(t, l.len, 192);
    qn_seq_close(l.seq);
    start_match(t, c, &l, 1000, 193);
    QT_EQ(t, l.len, 128);
    qn_seq_close(l.seq);
    finish(t, c);
}

static void a_lone_sequence_reaches_the_whole_store_behind_a_hit(qt *t)
{
    qn_cache *c = open_world(t, "f", 4, 0);
    timeline a, b;
    QT_EQ(t, qn_cache_capacity(c), 256);
    start(t, c, &a, 1, 256);
    QT_EQ(t, timeline_step(c, &a, 256, 256, NULL), QN_OK);
    qn_seq_close(a.seq);
    start_match(t, c, &b, 1, 250); /* ends inside the last block: no room for a copy of it */
    QT_EQ(t, b.len, 249);
    QT_OK(t, qn_seq_fits(b.seq, 7));
    count_from(&b, 7000, 7);
    QT_EQ(t, timeline_step(c, &b, 7, 7, NULL), QN_OK);
    QT_OK(t, timeline_holds(c, &b));
    qn_seq_close(b.seq);
    finish(t, c);
}

static void private_sequences_neither_use_nor_leave_a_prefix(qt *t)
{
    qn_cache *c = open_world(t, "f", 8, 0);
    timeline a;
    for (int round = 0; round < 2; round++) {
        start(t, c, &a, 1, 192);
        qn_seq_set_private(a.seq);
        QT_EQ(t, qn_seq_match(a.seq, a.token, 192, NULL, 0), 0);
        QT_EQ(t, timeline_step(c, &a, 192, 192, NULL), QN_OK);
        QT_OK(t, timeline_holds(c, &a));
        qn_seq_close(a.seq);
    }
    qn_cache_stats s;
    qn_cache_get_stats(c, &s);
    QT_EQ(t, s.free, 8);
    finish(t, c);
}

static void with_extra(qt *t, qn_cache *c, timeline *l, qn_key_extra x, uint32_t n)
{
    *l = (timeline){.n_extra = 1, .extra = {x}};
    QT_EQ(t, qn_seq_open(&l->seq, c, NULL), QN_OK);
    count_from(l, 1, n);
    l->len = qn_seq_match(l->seq, l->token, n, l->extra, 1);
    const uint32_t hit = l->len;
    QT_EQ(t, timeline_step(c, l, n - l->len, n - l->len, NULL), QN_OK);
    QT_OK(t, timeline_holds(c, l));
    qn_seq_close(l->seq);
    l->len = hit;
}

static void extras_keep_equal_tokens_apart(qt *t)
{
    qn_cache *c = open_world(t, "f", 32, 0);
    timeline l;
    const qn_key_extra one = {0, UINT32_MAX, {1, 1}}, two = {0, UINT32_MAX, {2, 1}};
    with_extra(t, c, &l, one, 200);
    QT_EQ(t, l.len, 0);
    with_extra(t, c, &l, two, 200);
    QT_EQ(t, l.len, 0);
    with_extra(t, c, &l, one, 200);
    QT_EQ(t, l.len, 192);
    with_extra(t, c, &l, one, 100); /* ends inside a block */
    QT_EQ(t, l.len, 99);
    const qn_key_extra medium = {70, 130, {3, 3}};
    with_extra(t, c, &l, medium, 200);
    QT_EQ(t, l.len, 0);
    with_extra(t, c, &l, medium, 200);
    QT_EQ(t, l.len, 192);
    with_extra(t, c, &l, medium, 129); /* a medium is taken whole or not at all */
    QT_EQ(t, l.len, 70);
    finish(t, c);
}

static void one_span_is_not_two(qt *t)
{
    qn_cache *c = open_world(t, "f", 32, 0);
    timeline a = {.n_extra = 1, .extra = {{0, 128, {5, 5}}}};
    timeline b = {.n_extra = 2, .extra = {{0, 64, {5, 5}}, {64, 128, {5, 5}}}};
    timeline *both[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        QT_EQ(t, qn_seq_open(&both[i]->seq, c, NULL), QN_OK);
        count_from(both[i], 1, 192);
        QT_EQ(t, qn_seq_match(both[i]->seq, both[i]->token, 192, both[i]->extra, both[i]->n_extra),
              0);
        QT_EQ(t, timeline_step(c, both[i], 192, 192, NULL), QN_OK);
        qn_seq_close(both[i]->seq);
    }
    finish(t, c);
}

static void refuses_shapes_it_cannot_hold(qt *t)
{
    qn_cache *c = NULL;
    qn_err err = {0};
    QT_EQ(t, world_open(&c, "f", 0, 0, 0, &err), QN_E_LIMIT);
    QT_OK(t, c == NULL && strstr(err.msg, "budget"));
    QT_EQ(t, world_open(&c, "w", 4, 0, 0, &err), QN_E_INVAL);
    QT_OK(t, c == NULL && strstr(err.msg, "window"));
    const uint32_t map[1] = {0};
    qn_group_desc d = {QN_GROUP_STATE, QN_KV_F32, 1, 4, 0, 1};
    qn_cache_options o = {
        .groups = &d, .n_groups = 1, .n_layers = 1, .layer_group = map, .budget_bytes = 1 << 20};
    QT_EQ(t, qn_cache_open(&c, world_device(), &o, &err), QN_E_UNSUPPORTED);
    d.kind = QN_GROUP_FULL;
    d.n_layers = 2;
    QT_EQ(t, qn_cache_open(&c, world_device(), &o, &err), QN_E_INVAL);
    d.n_layers = 1;
    d.head_dim = 0;
    QT_EQ(t, qn_cache_open(&c, world_device(), &o, &err), QN_E_INVAL);
    d.head_dim = UINT32_MAX;
    d.n_kv_heads = UINT32_MAX;
    QT_OK(t, qn_cache_open(&c, world_device(), &o, &err) != QN_OK && c == NULL);
    qn_device other = *world_device();
    other.kind = QN_DEVICE_CUDA;
    QT_EQ(t, qn_cache_open(&c, &other, &o, &err), QN_E_UNSUPPORTED);
}

static qn_code life(qn_cache **c, timeline *a, timeline *b)
{
    QN_TRY(world_open(c, "fw", 8, 64, 0, NULL));
    QN_TRY(qn_seq_open(&a->seq, *c, NULL));
    QN_TRY(timeline_step(*c, a, 70, 70, NULL));
    return qn_seq_fork(&b->seq, a->seq, NULL);
}

static void open_and_fork_survive_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_cache *c = NULL;
        timeline a = {0}, b = {0};
        count_from(&a, 1, 70);
        qn_alloc_fail_after(n);
        rc = life(&c, &a, &b);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && !b.seq));
        qn_seq_close(a.seq);
        qn_seq_close(b.seq);
        qn_cache_close(c);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
}

static void a_step_allocates_nothing(qt *t)
{
    qn_cache *c = open_world(t, "fw", 16, 64);
    timeline l;
    start(t, c, &l, 1, 500);
    qn_alloc_fail_after(0);
    for (uint32_t i = 0; i < 500; i++) QT_EQ(t, timeline_step(c, &l, 1, 1, NULL), QN_OK);
    qn_alloc_fail_after(SIZE_MAX);
    QT_OK(t, timeline_holds(c, &l));
    qn_seq_close(l.seq);
    finish(t, c);
}

QT_MAIN(QT(holds_what_was_committed_around_every_block_edge),
        QT(a_block_taken_again_is_zeros_behind_what_is_written), QT(a_hit_is_exact_to_the_token),
        QT(a_prompt_that_leaves_midway_gets_the_common_part),
        QT(keys_that_collide_give_no_wrong_hit), QT(two_that_compute_the_same_share_it_afterwards),
        QT(an_abandoned_step_leaves_zeros_and_no_blocks), QT(a_fork_goes_its_own_way),
        QT(a_trimmed_sequence_grows_anew), QT(a_trim_below_a_window_starts_over),
        QT(window_blocks_fall_out_and_serve_hits), QT(a_hit_ends_where_the_window_lost_a_block),
        QT(a_full_store_says_again_and_changes_nothing),
        QT(the_oldest_unused_prefix_goes_first_from_its_end),
        QT(a_lone_sequence_reaches_the_whole_store_behind_a_hit),
        QT(private_sequences_neither_use_nor_leave_a_prefix), QT(extras_keep_equal_tokens_apart),
        QT(one_span_is_not_two), QT(refuses_shapes_it_cannot_hold),
        QT(open_and_fork_survive_every_failed_allocation), QT(a_step_allocates_nothing))
