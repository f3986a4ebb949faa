/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - XXH3 by libxxhash. The state's size is taken from its static section, so that it lies in
 * counted memory. */
#define XXH_STATIC_LINKING_ONLY
#include "dep/hash.h"

#include <xxhash.h>

#include "base/alloc.h"

struct qn_hasher {
    XXH3_state_t state; /* wants 64-byte alignment, which qn_alloc gives */
};

/* The library takes NULL for nothing only in newer versions. */
static const void *some(const void *bytes) { return bytes ? bytes : ""; }

static qn_digest128 digest(XXH128_hash_t h) { return (qn_digest128){h.low64, h.high64}; }

uint64_t qn_hash64(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(some(bytes), n, seed);
}

qn_digest128 qn_hash128(const void *bytes, size_t n, uint64_t seed)
{
    return digest(XXH3_128bits_withSeed(some(bytes), n, seed));
}

qn_code qn_hasher_new(qn_hasher **out, uint64_t seed, qn_err *err)
{
    *out = NULL;
    qn_hasher *h = qn_alloc(sizeof *h);
    if (!h) return qn_fail(err, QN_E_NOMEM, "hasher");
    XXH3_INITSTATE(&h->state);
    qn_hasher_reset(h, seed);
    *out = h;
    return QN_OK;
}

void qn_hasher_free(qn_hasher *h) { qn_free(h); }

/* One state serves both widths: the library's two resets and updates do the same. */
void qn_hasher_reset(qn_hasher *h, uint64_t seed)
{
    const XXH_errorcode ok = XXH3_128bits_reset_withSeed(&h->state, seed);
    QN_ASSERT(ok == XXH_OK);
}

void qn_hasher_update(qn_hasher *h, const void *bytes, size_t n)
{
    const XXH_errorcode ok = XXH3_128bits_update(&h->state, some(bytes), n);
    QN_ASSERT(ok == XXH_OK);
}

uint64_t qn_hasher_get64(const qn_hasher *h) { return XXH3_64bits_digest(&h->state); }
qn_digest128 qn_hasher_get128(const qn_hasher *h) { return digest(XXH3_128bits_digest(&h->state)); }
