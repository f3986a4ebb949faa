/* SPDX-License-Identifier: Apache-2.0 */
/* half.c - IEEE binary16 and bfloat16 against f32, by integer arithmetic: the same on every ISA. */
#include <string.h>

#include "tensor/format.h"

static float from_bits(uint32_t bits)
{
    float f = 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t to_bits(float f)
{
    uint32_t bits = 0;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

float qn_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 0x3ff;
    if (exp == 31) return from_bits(sign | 0x7f800000u | man << 13);
    if (exp != 0) return from_bits(sign | (exp + 112) << 23 | man << 13);
    const float tiny = (float)man * 0x1p-24f; /* subnormals are whole multiples of 2^-24 */
    return from_bits(sign | to_bits(tiny));
}

uint16_t qn_f32_to_f16(float f)
{
    const uint32_t bits = to_bits(f), abs = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    uint32_t h = 0;
    if (abs > 0x7f800000) /* NaN: quiet, with the top of its payload */
        h = 0x7e00 | (abs >> 13 & 0x3ff);
    else if (abs >= 0x47800000) /* 65536 and above */
        h = 0x7c00;
    else if (abs < 0x38800000) /* below 2^-14: adding 1/2 rounds to multiples of 2^-24 */
        h = to_bits(from_bits(abs) + 0.5f) - to_bits(0.5f);
    else /* re-bias the exponent by -112; half an ulp less one, plus one where odd */
        h = (abs - (112u << 23) + 0xfff + (abs >> 13 & 1)) >> 13;
    return (uint16_t)(sign | h);
}

float qn_bf16_to_f32(uint16_t h) { return from_bits((uint32_t)h << 16); }

uint16_t qn_f32_to_bf16(float f)
{
    const uint32_t bits = to_bits(f);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40); /* quiet */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
