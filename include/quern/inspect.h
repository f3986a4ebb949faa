/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - what a model file says about itself, without opening it as a model.
 *
 * Works on whatever parses: unsupported families, broken descriptors, missing tensors; what is wrong
 * becomes part of the report.
 *
 * Thread: any.
 */
#ifndef QUERN_INSPECT_H
#define QUERN_INSPECT_H
#include "quern/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_report quern_report;

enum {                              /* quern_inspect_options.flags */
       QUERN_INSPECT_TENSORS = 1u,  /* list every tensor, not only the census by format */
       QUERN_INSPECT_TOKENIZER = 2u /* whole arrays of metadata, vocabulary and merges included */
};
typedef struct quern_inspect_options {
    size_t size; /* sizeof(quern_inspect_options) */
    uint32_t flags;
} quern_inspect_options;
#define QUERN_INSPECT_OPTIONS_INIT       \
    {                                    \
        sizeof(quern_inspect_options), 0 \
    }

/* Reads headers only. *out is owned (quern_report_free). Errors: NOTFOUND, IO, FORMAT (the header
 * itself cannot be read: file, field, found, expected), LIMIT, NOMEM. */
QUERN_API quern_code quern_inspect(quern_report **out, const char *path,
                                   const quern_inspect_options *opt, quern_error *err);
/* One JSON object: {"path","source","version" (of GGUF),"type","files","bytes","tensor_count",
 * "metadata":{...},"census":[{"format","tensors","elements","bytes"}],"tensors":[...] (when asked
 * for),"model":{...} or "problem":"..."}. NUL-terminated; *n (may be NULL) its length; borrowed until
 * free. */
QUERN_API const char *quern_report_json(const quern_report *r, size_t *n);
QUERN_API void quern_report_free(quern_report *r); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
