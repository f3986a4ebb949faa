/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - accounting allocator over malloc and mmap. A 64-byte header keeps the size and keeps
 * the block aligned to a cache line:   [ size | pad ... ][ user bytes ] */
#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 64, HUGE_FROM = 2u << 20 };

static atomic_size_t live_blocks, live_bytes, peak_bytes;
static atomic_size_t ceiling = SIZE_MAX;
static _Thread_local size_t fail_after = SIZE_MAX;
static _Thread_local size_t refused;
#ifndef NDEBUG
static _Thread_local unsigned forbidden;
#endif

bool qn_mul_size(size_t *out, size_t a, size_t b)
{
    size_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool qn_add_size(size_t *out, size_t a, size_t b)
{
    size_t r = 0;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* Books `bytes` against the ceiling; false when refused. */
static bool reserve(size_t bytes)
{
#ifndef NDEBUG
    QN_ASSERT(forbidden == 0);
#endif
    if (fail_after != SIZE_MAX) {
        if (fail_after == 0) return false;
        fail_after--;
    }
    size_t now = atomic_load_explicit(&live_bytes, memory_order_relaxed), next = 0;
    do {
        if (!qn_add_size(&next, now, bytes) ||
            next > atomic_load_explicit(&ceiling, memory_order_relaxed))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&live_bytes, &now, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    size_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (peak < next &&
           !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, next, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return true;
}

static void release(size_t bytes)
{
    atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
}

static void *refuse(void)
{
    refused++;
    return NULL;
}

static void *block(size_t bytes, bool zero)
{
    size_t total = 0;
    if (!qn_add_size(&total, bytes, HEADER + 63)) return refuse();
    total &= ~(size_t)63;
    if (!reserve(bytes)) return refuse();
    unsigned char *p = aligned_alloc(64, total);
    if (!p) {
        release(bytes);
        return refuse();
    }
    if (zero) memset(p, 0, total);
    memcpy(p, &bytes, sizeof bytes);
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return p + HEADER;
}

void *qn_alloc(size_t bytes) { return block(bytes, false); }
void *qn_zalloc(size_t bytes) { return block(bytes, true); }

void *qn_calloc(size_t n, size_t size)
{
    size_t bytes = 0;
    return qn_mul_size(&bytes, n, size) ? block(bytes, true) : NULL;
}

static size_t size_of(const void *p)
{
    size_t bytes = 0;
    memcpy(&bytes, (const unsigned char *)p - HEADER, sizeof bytes);
    return bytes;
}

void *qn_realloc(void *p, size_t bytes)
{
    void *q = block(bytes, false);
    if (!q || !p) return q;
    const size_t old = size_of(p);
    memcpy(q, p, old < bytes ? old : bytes);
    qn_free(p);
    return q;
}

void qn_free(void *p)
{
    if (!p) return;
    release(size_of(p));
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    free((unsigned char *)p - HEADER);
}

void *qn_plain_alloc(size_t bytes)
{
    if (!reserve(bytes)) return refuse();
    void *p = malloc(bytes ? bytes : 1);
    release(bytes);
    if (!p) return refuse();
    atomic_fetch_add_explicit(&live_bytes, malloc_usable_size(p), memory_order_relaxed);
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return p;
}

void qn_plain_free(void *p)
{
    if (!p) return;
    release(malloc_usable_size(p));
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    free(p);
}

void *qn_pages_alloc(size_t bytes)
{
    if (bytes == 0) bytes = 1;
    if (!reserve(bytes)) return refuse();
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        release(bytes);
        return refuse();
    }
    if (bytes >= HUGE_FROM) (void)madvise(p, bytes, MADV_HUGEPAGE); /* advice: may be refused */
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return p;
}

void qn_pages_free(void *p, size_t bytes)
{
    if (!p) return;
    if (bytes == 0) bytes = 1;
    (void)munmap(p, bytes);
    release(bytes);
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
}

size_t qn_alloc_live(void) { return atomic_load_explicit(&live_blocks, memory_order_relaxed); }
size_t qn_alloc_live_bytes(void) { return atomic_load_explicit(&live_bytes, memory_order_relaxed); }
size_t qn_alloc_refused(void) { return refused; }
size_t qn_alloc_peak_bytes(void) { return atomic_load_explicit(&peak_bytes, memory_order_relaxed); }

void qn_alloc_set_ceiling(size_t bytes)
{
    atomic_store_explicit(&ceiling, bytes, memory_order_relaxed);
}

void qn_alloc_fail_after(size_t n) { fail_after = n; }

void qn_alloc_forbid(bool on)
{
#ifndef NDEBUG
    if (on)
        forbidden++;
    else
        forbidden--;
#else
    (void)on;
#endif
}
