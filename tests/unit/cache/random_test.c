/* SPDX-License-Identifier: Apache-2.0 */
/* random_test.c - long random lives of many sequences in small stores. After every operation each
 * sequence must read as a timeline of its own would, and the counts must add up. A second, naive model
 * gives a lower bound of what a hit may be: none longer than the longest prefix ever committed. */
#include <stdlib.h>
#include <string.h>

#include "cache_world.h"

enum { LIVE = 6, PAST = 4096 };

typedef struct world {
    qn_cache *c;
    timeline *l;         /* [LIVE], a seq of NULL is none */
    uint64_t past[PAST]; /* prefix hashes that some public sequence held */
    uint32_t n_past;
    uint32_t max_len;
} world;

static uint32_t below(uint32_t n) { return (uint32_t)(qt_rand() % n); }

static bool was_there(const world *w, uint64_t at)
{
    for (uint32_t i = 0; i < w->n_past; i++)
        if (w->past[i] == at) return true;
    return false;
}

static void remember(world *w, const timeline *l)
{
    for (uint32_t i = 1; i <= l->len; i++)
        if (w->n_past < PAST && !was_there(w, l->at[i])) w->past[w->n_past++] = l->at[i];
}

/* Two ids and long runs, so that prefixes meet and part at any place. */
static void draw_tokens(uint32_t *ids, uint32_t n)
{
    uint32_t id = below(2);
    for (uint32_t i = 0; i < n; i++) {
        if (below(90) == 0) id = below(3);
        ids[i] = id;
    }
}

static void born(qt *t, world *w, timeline *l)
{
    uint32_t ids[WORLD_MAX];
    const uint32_t n = 1 + below(w->max_len);
    *l = (timeline){.n_extra = below(3) == 0};
    l->extra[0] = (qn_key_extra){below(2) * 70, below(2) ? UINT32_MAX : 130, {7 + below(2), 0}};
    QT_EQ(t, qn_seq_open(&l->seq, w->c, NULL), QN_OK);
    draw_tokens(ids, n);
    timeline_tokens(l, ids, n);
    const uint32_t hit = qn_seq_match(l->seq, ids, n, l->extra, l->n_extra);
    QT_OK(t, hit < n && (hit == 0 || w->n_past == PAST || was_there(w, l->at[hit])));
    l->len = hit;
}

static void grow(qt *t, world *w, timeline *l)
{
    uint32_t ids[WORLD_MAX];
    const uint32_t n = 1 + below(below(3) ? 3 : 100);
    if (l->len + n > w->max_len) return;
    draw_tokens(ids, n);
    timeline_tokens(l, ids, n);
    const bool fits = qn_seq_fits(l->seq, n);
    const qn_code rc = timeline_step(w->c, l, n, below(4) ? n : below(n + 1), NULL);
    QT_OK(t, rc == (fits ? QN_OK : QN_E_AGAIN));
    remember(w, l);
}

static void cut_back(qt *t, timeline *l)
{
    const uint32_t to = below(l->len + 1), left = qn_seq_trim(l->seq, to);
    QT_OK(t, left == to || left == 0);
    l->len = left;
}

static void act(qt *t, world *w)
{
    timeline *l = &w->l[below(LIVE)], *other = &w->l[below(LIVE)];
    const uint32_t what = below(20);
    if (!l->seq) {
        born(t, w, l);
    } else if (what < 13) {
        grow(t, w, l);
    } else if (what < 15) {
        cut_back(t, l);
    } else if (what < 18 || other->seq) {
        qn_seq_close(l->seq);
        l->seq = NULL;
    } else {
        *other = *l;
        QT_EQ(t, qn_seq_fork(&other->seq, l->seq, NULL), QN_OK);
    }
}

static bool counts_add_up(const world *w)
{
    qn_cache_stats s;
    qn_cache_get_stats(w->c, &s);
    bool seen[QN_MAX_GROUPS][256] = {{0}};
    uint32_t held = 0;
    for (uint32_t i = 0; i < LIVE; i++) {
        for (uint32_t g = 0; w->l[i].seq && g < qn_cache_groups(w->c); g++) {
            uint32_t n = 0;
            const uint32_t *table = qn_seq_table(w->l[i].seq, g, &n);
            for (uint32_t k = 0; k < n; k++) {
                if (table[k] == QN_NO_BLOCK) continue;
                held += !seen[g][table[k]];
                seen[g][table[k]] = true;
            }
        }
    }
    return s.in_use == held && s.free + s.evictable + s.in_use == s.blocks;
}

static void live_and_let_live(qt *t, const char *groups, uint32_t blocks, uint32_t window,
                              uint32_t bits)
{
    world w = {.max_len = blocks * QN_KV_BLOCK / 2};
    if (w.max_len > WORLD_MAX / 2) w.max_len = WORLD_MAX / 2;
    w.l = calloc(LIVE, sizeof *w.l);
    QT_EQ(t, world_open(&w.c, groups, blocks, window, bits, NULL), QN_OK);
    for (int step = 0; w.c && step < 1500; step++) {
        act(t, &w);
        bool all = counts_add_up(&w);
        for (uint32_t i = 0; i < LIVE; i++)
            if (w.l[i].seq && !timeline_holds(w.c, &w.l[i])) all = false;
        if (!QT_OKF(t, all, "groups %s, step %d", groups, step)) break;
    }
    for (uint32_t i = 0; i < LIVE; i++) qn_seq_close(w.l[i].seq);
    qn_cache_stats s;
    qn_cache_get_stats(w.c, &s);
    QT_EQ(t, s.in_use, 0);
    QT_OK(t, s.hits > 0 && (blocks > 20 || s.evictions > 0));
    qn_cache_close(w.c);
    free(w.l);
}

static void full_group(qt *t) { live_and_let_live(t, "f", 12, 0, 0); }
static void full_group_with_room(qt *t) { live_and_let_live(t, "f", 100, 0, 0); }
static void full_group_where_keys_collide(qt *t) { live_and_let_live(t, "f", 12, 0, 2); }
static void full_and_window(qt *t) { live_and_let_live(t, "fw", 12, 100, 0); }
static void narrow_window(qt *t) { live_and_let_live(t, "fw", 10, 1, 0); }
static void window_of_a_block(qt *t) { live_and_let_live(t, "fw", 10, 64, 0); }
static void window_only(qt *t) { live_and_let_live(t, "w", 8, 65, 0); }
static void two_full_groups(qt *t) { live_and_let_live(t, "ff", 12, 0, 0); }
static void four_groups(qt *t) { live_and_let_live(t, "fwfw", 12, 130, 3); }

QT_MAIN(QT(full_group), QT(full_group_with_room), QT(full_group_where_keys_collide),
        QT(full_and_window), QT(narrow_window), QT(window_of_a_block), QT(window_only),
        QT(two_full_groups), QT(four_groups))
