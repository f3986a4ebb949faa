/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - a half-open range of rows or tiles. Thread: values only. */
#ifndef QN_BASE_SPAN_H
#define QN_BASE_SPAN_H
#include <stdint.h>

typedef struct qn_span {
    uint32_t begin, end; /* [begin, end) */
} qn_span;

static inline uint32_t qn_span_len(qn_span s) { return s.end - s.begin; }

#endif
