/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - building model files byte by byte, so that tests can break any field of them. */
#ifndef QN_TESTS_BYTES_H
#define QN_TESTS_BYTES_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    _Alignas(16) uint8_t p[1 << 16];
    size_t n;
} bytes;

static inline void put(bytes *b, const void *p, size_t n)
{
    if (n > sizeof b->p - b->n) abort();
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void put_u(bytes *b, uint64_t v, unsigned n)
{
    uint8_t le[8];
    for (unsigned i = 0; i < 8; i++) le[i] = (uint8_t)(v >> (8 * i));
    put(b, le, n);
}

static inline void put_u32(bytes *b, uint32_t v) { put_u(b, v, 4); }
static inline void put_u64(bytes *b, uint64_t v) { put_u(b, v, 8); }

static inline void set_u(bytes *b, size_t at, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++) b->p[at + i] = (uint8_t)(v >> (8 * i));
}

static inline void put_text(bytes *b, const char *text) /* as GGUF has it */
{
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static inline void put_zero(bytes *b, size_t n)
{
    while (n-- > 0) put_u(b, 0, 1);
}

static inline void pad_to(bytes *b, size_t alignment)
{
    while (b->n % alignment != 0) put_u(b, 0, 1);
}

/* A GGUF key that holds a u32, and one that holds a string. */
static inline void put_key_u32(bytes *b, const char *key, uint32_t v)
{
    put_text(b, key);
    put_u32(b, 4);
    put_u32(b, v);
}

static inline void put_key_text(bytes *b, const char *key, const char *v)
{
    put_text(b, key);
    put_u32(b, 8);
    put_text(b, v);
}

static inline void put_tensor(bytes *b, const char *name, uint32_t type, uint64_t cols,
                              uint64_t rows, uint64_t offset)
{
    put_text(b, name);
    put_u32(b, 2);
    put_u64(b, cols);
    put_u64(b, rows);
    put_u32(b, type);
    put_u64(b, offset);
}

static inline void put_gguf_header(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    b->n = 0;
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_keys);
}

#endif
