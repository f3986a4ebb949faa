/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - 16 bytes a round: two words, each mixed with the state, folded together. The tail is read
 * as two words that may overlap what came before, or byte by byte below 8; the length goes in last, so
 * texts that differ in trailing zero bytes differ. */
#include "base/hash.h"

#include <string.h>

static const uint64_t k1 = 0xA24BAED4963EE407u, k2 = 0x9FB21C651E98DF25u;

static uint64_t word(const unsigned char *p)
{
    uint64_t v = 0;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t short_word(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint64_t qn_maphash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = seed ^ k1, a = 0, b = 0;
    size_t left = n;
    for (; left > 16; left -= 16, p += 16)
        h = qn_maphash_fold(word(p) ^ h, word(p + 8) ^ k2) + (h << 7 | h >> 57);
    if (left >= 8) {
        a = word(p);
        b = word(p + left - 8);
    } else if (left > 0) {
        a = short_word(p, left);
    }
    h = qn_maphash_fold(a ^ h, b ^ k2) + h;
    return qn_maphash_fold(h ^ n, k1);
}
