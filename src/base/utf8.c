/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - table 3-7 of the Unicode standard as code: the first byte fixes the length and the range of
 * the second byte; all later ones are 80..BF. */
#include "base/utf8.h"

typedef struct lead {
    unsigned len, lo, hi; /* bytes of the character (0: no lead byte); range of its second byte */
} lead;

static lead lead_of(unsigned b)
{
    if (b < 0x80) return (lead){1, 0, 0};
    if (b < 0xC2) return (lead){0, 0, 0}; /* continuation, or an overlong two-byte form */
    if (b < 0xE0) return (lead){2, 0x80, 0xBF};
    if (b < 0xF0) return (lead){3, b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF};
    if (b < 0xF5) return (lead){4, b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF};
    return (lead){0, 0, 0};
}

size_t qn_utf8_step(const char *p, size_t n, uint32_t *cp)
{
    QN_ASSERT(n > 0);
    const unsigned first = (unsigned char)p[0];
    const lead l = lead_of(first);
    if (l.len == 1) {
        *cp = first;
        return 1;
    }
    *cp = QN_UTF8_BAD;
    if (l.len == 0) return 1;
    uint32_t v = first & (0x7Fu >> l.len);
    for (unsigned k = 1; k < l.len; k++) {
        if (k >= n) return k;
        const unsigned b = (unsigned char)p[k];
        if (b < (k == 1 ? l.lo : 0x80) || b > (k == 1 ? l.hi : 0xBF)) return k;
        v = v << 6 | (b & 0x3F);
    }
    *cp = v;
    return l.len;
}

size_t qn_utf8_encode(char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) return 0;
    const unsigned len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (unsigned k = len - 1; k > 0; k--) {
        out[k] = (char)(0x80 | (cp & 0x3F));
        cp >>= 6;
    }
    out[0] = (char)((0xF00u >> len & 0xFF) | cp);
    return len;
}

bool qn_utf8_valid(const char *p, size_t n, size_t *bad)
{
    uint32_t cp = 0;
    for (size_t i = 0; i < n;) {
        const size_t len = qn_utf8_step(p + i, n - i, &cp);
        if (cp == QN_UTF8_BAD) {
            if (bad) *bad = i;
            return false;
        }
        i += len;
    }
    return true;
}

size_t qn_utf8_partial_tail(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned b = (unsigned char)p[n - back];
        if ((b & 0xC0) == 0x80) continue;
        uint32_t cp = 0;
        if (lead_of(b).len <= back) return 0;
        return qn_utf8_step(p + n - back, back, &cp) == back ? back : 0;
    }
    return 0;
}
