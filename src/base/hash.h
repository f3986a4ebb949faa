/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the seeded 64-bit hash of our maps: fast, not cryptographic, not for disk or wire.
 *
 * Folded 64x64->128 multiplication over 8-byte words. A secret seed per table keeps outsiders from
 * choosing keys that collide. Values may change between versions: dep/hash.h is for stored keys.
 *
 * Thread: values only.
 */
#ifndef QN_BASE_HASH_H
#define QN_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t qn_maphash(const void *bytes, size_t n, uint64_t seed);

/* Multiply to 128 bits and fold the halves; every output bit depends on every input bit. */
static inline uint64_t qn_maphash_fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 u128;
    const u128 m = (u128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t qn_maphash_u64(uint64_t key, uint64_t seed)
{
    const uint64_t h = qn_maphash_fold(key ^ 0x9E3779B97F4A7C15u, seed ^ 0xD1B54A32D192ED03u);
    return qn_maphash_fold(h ^ key, 0x8CB92BA72F3D8DD7u);
}

#endif
