/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - one core for both maps: it sees entries as bytes of a given stride whose first field is the
 * hash. A live hash is never 0; a hole has hash 0 and stays in place until the entries move to a larger
 * block, so indices in the slot table stay right. */
#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { FIRST_ENTRIES = 12, MAX_ENTRIES = 1 << 30 };

typedef struct str_entry {
    uint64_t hash;
    qn_str key;
    uint64_t value;
} str_entry;

typedef struct u_entry {
    uint64_t hash, key, value;
} u_entry;

/* A key in the form that both maps can compare. */
typedef struct probe {
    uint64_t hash;
    qn_str text; /* text maps */
    uint64_t id; /* u64 maps */
    size_t stride;
} probe;

static uint64_t live_hash(uint64_t h) { return h ? h : 1; }

static probe probe_text(const qn_strmap *m, qn_str key)
{
    return (probe){live_hash(qn_maphash(key.p, key.n, m->core.seed)), key, 0, sizeof(str_entry)};
}

static probe probe_id(const qn_umap *m, uint64_t key)
{
    return (probe){live_hash(qn_maphash_u64(key, m->core.seed)), {NULL, 0}, key, sizeof(u_entry)};
}

static void *entry_at(const qn_map_core *c, size_t stride, uint32_t i)
{
    return (unsigned char *)c->entries + stride * i;
}

static uint64_t hash_at(const qn_map_core *c, size_t stride, uint32_t i)
{
    uint64_t h = 0;
    memcpy(&h, entry_at(c, stride, i), sizeof h);
    return h;
}

static bool same_key(const qn_map_core *c, const probe *p, uint32_t i)
{
    if (hash_at(c, p->stride, i) != p->hash) return false;
    if (p->stride == sizeof(u_entry)) return ((u_entry *)c->entries)[i].key == p->id;
    return qn_str_eq(((str_entry *)c->entries)[i].key, p->text);
}

/* The slot that holds the key, or the empty one where it would go. n_slots > n_live. */
static uint32_t find_slot(const qn_map_core *c, const probe *p, bool *found)
{
    const uint32_t mask = c->n_slots - 1;
    uint32_t s = (uint32_t)p->hash & mask;
    while (c->slots[s] && !same_key(c, p, c->slots[s] - 1)) s = (s + 1) & mask;
    *found = c->slots[s] != 0;
    return s;
}

static void *find(const qn_map_core *c, const probe *p)
{
    bool found = false;
    if (c->n_live == 0) return NULL;
    const uint32_t s = find_slot(c, p, &found);
    return found ? entry_at(c, p->stride, c->slots[s] - 1) : NULL;
}

/* Moves the live entries to a block of cap entries and indexes them anew: holes go. */
static qn_code rebuild(qn_map_core *c, size_t stride, uint32_t cap, qn_err *err)
{
    uint32_t n_slots = 16, n = 0;
    while (n_slots / 4 * 3 < cap) n_slots *= 2;
    void *entries = qn_calloc(cap, stride);
    uint32_t *slots = qn_calloc(n_slots, sizeof *slots);
    if (!entries || !slots) {
        qn_free(entries);
        qn_free(slots);
        return qn_fail(err, QN_E_NOMEM, "map of %u entries", cap);
    }
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const uint64_t h = hash_at(c, stride, i);
        if (h == 0) continue;
        memcpy((unsigned char *)entries + stride * n, entry_at(c, stride, i), stride);
        uint32_t s = (uint32_t)h & (n_slots - 1);
        while (slots[s]) s = (s + 1) & (n_slots - 1);
        slots[s] = ++n;
    }
    qn_free(c->entries);
    qn_free(c->slots);
    c->entries = entries;
    c->slots = slots;
    c->n_slots = n_slots;
    c->n_entries = n;
    c->cap_entries = cap;
    return QN_OK;
}

/* Room for one more entry. */
static qn_code make_room(qn_map_core *c, size_t stride, qn_err *err)
{
    if (c->n_entries < c->cap_entries) return QN_OK;
    if (c->n_live >= MAX_ENTRIES)
        return qn_fail(err, QN_E_LIMIT, "map holds %u entries, limit %u", c->n_live, MAX_ENTRIES);
    uint32_t cap = c->cap_entries;
    if (cap == 0)
        cap = FIRST_ENTRIES;
    else if (c->n_live > cap / 2) /* else mostly holes: the same size will do */
        cap = cap > MAX_ENTRIES / 2 ? MAX_ENTRIES : cap * 2;
    return rebuild(c, stride, cap, err);
}

/* The entry of a key that is absent: hash set, the rest to fill. Room has been made. */
static void *insert(qn_map_core *c, const probe *p)
{
    bool found = false;
    const uint32_t s = find_slot(c, p, &found);
    void *e = entry_at(c, p->stride, c->n_entries);
    memcpy(e, &p->hash, sizeof p->hash);
    c->slots[s] = ++c->n_entries;
    c->n_live++;
    return e;
}

/* Backward-shift deletion: each later entry of the run moves into the gap unless its home slot lies
 * behind the gap (Knuth, TAOCP 3, 6.4, algorithm R). */
static void close_gap(qn_map_core *c, size_t stride, uint32_t gap)
{
    const uint32_t mask = c->n_slots - 1;
    for (uint32_t s = (gap + 1) & mask; c->slots[s]; s = (s + 1) & mask) {
        const uint32_t home = (uint32_t)hash_at(c, stride, c->slots[s] - 1) & mask;
        if (((s - home) & mask) < ((s - gap) & mask)) continue;
        c->slots[gap] = c->slots[s];
        gap = s;
    }
    c->slots[gap] = 0;
}

static bool erase(qn_map_core *c, const probe *p)
{
    bool found = false;
    if (c->n_live == 0) return false;
    const uint32_t s = find_slot(c, p, &found);
    if (!found) return false;
    const uint32_t i = c->slots[s] - 1;
    close_gap(c, p->stride, s); /* reads hashes, so the entry is emptied after it */
    memset(entry_at(c, p->stride, i), 0, p->stride);
    c->n_live--;
    return true;
}

static qn_code reserve(qn_map_core *c, size_t stride, size_t n, qn_err *err)
{
    if (n > MAX_ENTRIES)
        return qn_fail(err, QN_E_LIMIT, "map of %zu entries, limit %u", n, MAX_ENTRIES);
    if (n <= c->cap_entries - (c->n_entries - c->n_live)) return QN_OK;
    return rebuild(c, stride, (uint32_t)n, err);
}

static void *next(const qn_map_core *c, size_t stride, size_t *it)
{
    while (*it < c->n_entries) {
        const uint32_t i = (uint32_t)(*it)++;
        if (hash_at(c, stride, i) != 0) return entry_at(c, stride, i);
    }
    return NULL;
}

static void fini(qn_map_core *c)
{
    qn_free(c->entries);
    qn_free(c->slots);
    *c = (qn_map_core){.seed = c->seed};
}

void qn_strmap_init(qn_strmap *m, uint64_t seed)
{
    *m = (qn_strmap){.core = {.seed = seed}};
    qn_arena_init(&m->keys, SIZE_MAX);
}

void qn_strmap_fini(qn_strmap *m)
{
    fini(&m->core);
    qn_arena_fini(&m->keys);
}

/* Growth is the moment to let go of the keys of removed entries: the live ones are copied over. */
static qn_code make_room_text(qn_strmap *m, qn_err *err)
{
    const bool will_move = m->core.n_entries == m->core.cap_entries;
    const bool holes = m->core.n_live < m->core.n_entries;
    if (!will_move || !holes) return make_room(&m->core, sizeof(str_entry), err);
    qn_arena keys;
    qn_arena_init(&keys, SIZE_MAX);
    size_t bytes = 0, it = 0;
    for (str_entry *e; (e = next(&m->core, sizeof *e, &it));) bytes += e->key.n + 1;
    if (!qn_arena_push(&keys, bytes, 1))
        return qn_fail(err, QN_E_NOMEM, "%zu bytes of keys", bytes);
    const qn_code rc = make_room(&m->core, sizeof(str_entry), err);
    if (rc != QN_OK) {
        qn_arena_fini(&keys);
        return rc;
    }
    qn_arena_rewind(&keys,
                    (qn_arena_mark){keys.head, 0, 0}); /* the block stays: copies cannot fail */
    it = 0;
    for (str_entry *e; (e = next(&m->core, sizeof *e, &it));) {
        e->key.p = qn_arena_push_bytes(&keys, e->key.p, e->key.n);
        QN_ASSERT(e->key.p != NULL);
    }
    qn_arena_fini(&m->keys);
    m->keys = keys;
    return QN_OK;
}

qn_code qn_strmap_reserve(qn_strmap *m, size_t n, qn_err *err)
{
    return reserve(&m->core, sizeof(str_entry), n, err);
}

qn_code qn_strmap_put(qn_strmap *m, qn_str key, uint64_t value, qn_err *err)
{
    const probe p = probe_text(m, key);
    str_entry *e = find(&m->core, &p);
    if (e) {
        e->value = value;
        return QN_OK;
    }
    QN_TRY(make_room_text(m, err));
    const char *copy = qn_arena_push_bytes(&m->keys, key.p, key.n);
    if (!copy) return qn_fail(err, QN_E_NOMEM, "map key of %zu bytes", key.n);
    e = insert(&m->core, &p);
    e->key = (qn_str){copy, key.n};
    e->value = value;
    return QN_OK;
}

qn_code qn_strmap_put_ptr(qn_strmap *m, qn_str key, void *value, qn_err *err)
{
    return qn_strmap_put(m, key, (uint64_t)(uintptr_t)value, err);
}

bool qn_strmap_get(const qn_strmap *m, qn_str key, uint64_t *value)
{
    const probe p = probe_text(m, key);
    const str_entry *e = find(&m->core, &p);
    if (e && value) *value = e->value;
    return e != NULL;
}

void *qn_strmap_get_ptr(const qn_strmap *m, qn_str key)
{
    uint64_t v = 0;
    return qn_strmap_get(m, key, &v) ? (void *)(uintptr_t)v : NULL;
}

bool qn_strmap_remove(qn_strmap *m, qn_str key)
{
    const probe p = probe_text(m, key);
    return erase(&m->core, &p);
}

size_t qn_strmap_len(const qn_strmap *m) { return m->core.n_live; }

bool qn_strmap_next(const qn_strmap *m, size_t *it, qn_str *key, uint64_t *value)
{
    const str_entry *e = next(&m->core, sizeof *e, it);
    if (!e) return false;
    if (key) *key = e->key;
    if (value) *value = e->value;
    return true;
}

void qn_umap_init(qn_umap *m, uint64_t seed) { *m = (qn_umap){.core = {.seed = seed}}; }
void qn_umap_fini(qn_umap *m) { fini(&m->core); }

qn_code qn_umap_reserve(qn_umap *m, size_t n, qn_err *err)
{
    return reserve(&m->core, sizeof(u_entry), n, err);
}

qn_code qn_umap_put(qn_umap *m, uint64_t key, uint64_t value, qn_err *err)
{
    const probe p = probe_id(m, key);
    u_entry *e = find(&m->core, &p);
    if (!e) {
        QN_TRY(make_room(&m->core, sizeof *e, err));
        e = insert(&m->core, &p);
        e->key = key;
    }
    e->value = value;
    return QN_OK;
}

bool qn_umap_get(const qn_umap *m, uint64_t key, uint64_t *value)
{
    const probe p = probe_id(m, key);
    const u_entry *e = find(&m->core, &p);
    if (e && value) *value = e->value;
    return e != NULL;
}

bool qn_umap_remove(qn_umap *m, uint64_t key)
{
    const probe p = probe_id(m, key);
    return erase(&m->core, &p);
}

size_t qn_umap_len(const qn_umap *m) { return m->core.n_live; }

bool qn_umap_next(const qn_umap *m, size_t *it, uint64_t *key, uint64_t *value)
{
    const u_entry *e = next(&m->core, sizeof *e, it);
    if (!e) return false;
    if (key) *key = e->key;
    if (value) *value = e->value;
    return true;
}
