/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.h - the one place that owns the heap: counted, with a ceiling, with faults on demand.
 *
 * Every block carries its size, so live bytes and live blocks are exact. A ceiling turns too much
 * into NULL before the system does. Tests fail the n-th allocation (the allocation sweep); debug
 * builds forbid allocation around a decode step.
 *
 * Thread: any; counters are atomic. The fault counter and the guard are per thread.
 */
#ifndef QN_BASE_ALLOC_H
#define QN_BASE_ALLOC_H
#include "base/status.h"

/* bytes of uninitialised / zeroed memory aligned to 64, owned (free with qn_free). NULL: ceiling,
 * heap or an injected fault. 0 bytes gives a valid unique block. */
QN_NODISCARD void *qn_alloc(size_t bytes);
QN_NODISCARD void *qn_zalloc(size_t bytes);
/* n * size with an overflow check, zeroed. */
QN_NODISCARD void *qn_calloc(size_t n, size_t size);
/* As realloc: on NULL the old block stays as it was. p may be NULL. */
QN_NODISCARD void *qn_realloc(void *p, size_t bytes);
/* NULL is fine. */
void qn_free(void *p);

/* For libraries that take an allocator for the whole process: counted, refused and failed like the
 * rest, yet plain malloc blocks, small and without a header, so that a block of theirs may also be
 * freed by free() and one of malloc's by this (the count is then off by it, nothing else). */
QN_NODISCARD void *qn_plain_alloc(size_t bytes);
void qn_plain_free(void *p);

/* Page-aligned zeroed memory straight from the system (huge pages advised from 2 MiB on), counted
 * like the rest; free with the same size. For KV pools, plan slabs, weight images. */
QN_NODISCARD void *qn_pages_alloc(size_t bytes);
void qn_pages_free(void *p, size_t bytes);

size_t qn_alloc_live(void);       /* blocks now alive, whole process */
size_t qn_alloc_live_bytes(void); /* bytes now alive, whole process */
size_t qn_alloc_peak_bytes(void); /* the most ever alive */
/* Allocations this thread was refused so far (ceiling, heap, injected). It tells whether code that
 * swallows NULL, such as a library given our allocator, met one. */
size_t qn_alloc_refused(void);
/* Refuse to pass `bytes` live in the whole process; SIZE_MAX (the start) means no ceiling. */
void qn_alloc_set_ceiling(size_t bytes);

/* This thread's n-th allocation from now fails (0: the very next) and so does every later one,
 * until called with SIZE_MAX. For tests. */
void qn_alloc_fail_after(size_t n);
/* Between forbid(true) and forbid(false) an allocation on this thread trips QN_ASSERT. Debug builds
 * only; a no-op where NDEBUG is defined. Nests. */
void qn_alloc_forbid(bool on);

/* *out = a * b / a + b; false on overflow, *out untouched. Sizes from input go through these. */
QN_NODISCARD bool qn_mul_size(size_t *out, size_t a, size_t b);
QN_NODISCARD bool qn_add_size(size_t *out, size_t a, size_t b);

#endif
