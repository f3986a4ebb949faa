/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what models and engines of one user of the library share: how many lanes, which
 * instruction sets, where packed weights may be kept, where log lines go.
 *
 * There is no process-wide state behind it but the count of live bytes; several can live side by side.
 *
 * Owner:  the caller; models and engines opened from it hold a reference, so it may be closed first.
 * Thread: any.
 */
#ifndef QUERN_RUNTIME_H
#define QUERN_RUNTIME_H
#include <stddef.h>
#include <stdint.h>

#include "quern/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_runtime quern_runtime;

/* line[0, n) ends with a newline and is borrowed for the call. level: 1 error, 2 warning, 3 info,
 * 4 debug, 5 trace. Called from any thread, one line at a time; must not call the library. */
typedef void quern_log_fn(void *ctx, int level, const char *line, size_t n);

typedef struct quern_runtime_options {
    size_t size; /* sizeof(quern_runtime_options) */
    uint64_t
        memory_ceiling; /* bytes this process may hold live; 0: no ceiling. Opening counts mapped
                                weights too. It counts the whole
                                process: of several runtimes the last one opened decides */
    const char *isa;    /* "auto", "generic", "avx2", "avx512", "neon"; NULL: auto. Copied */
    uint32_t threads;   /* lanes of an engine; 0: one per physical core */
    const char *log_levels; /* "info,kv=debug,net=off"; NULL: "warn". Copied */
    quern_log_fn *log;      /* NULL: silence */
    void *log_ctx;
    const char
        *image_dir; /* weights laid out for integer products may be kept here, a file a model,
                              which is mapped; NULL: they are laid out in memory at each opening. Copied */
} quern_runtime_options;
#define QUERN_RUNTIME_OPTIONS_INIT                         \
    {                                                      \
        sizeof(quern_runtime_options), 0, 0, 0, 0, 0, 0, 0 \
    }

/* *out is owned (quern_runtime_close). Errors: INVAL (an option, named), NOMEM. */
QUERN_API quern_code quern_runtime_open(quern_runtime **out, const quern_runtime_options *opt,
                                        quern_error *err);
/* NULL is fine. */
QUERN_API void quern_runtime_close(quern_runtime *rt);

/* "0.1.0"; borrowed for ever. */
QUERN_API const char *quern_version(void);
/* One line about the machine as this runtime will use it: "cpu avx512, 2 lanes"; borrowed until
 * close. */
QUERN_API const char *quern_runtime_describe(const quern_runtime *rt);

typedef struct quern_memory { /* of the whole process, through the library's allocator */
    uint64_t live_bytes, peak_bytes;
} quern_memory;
QUERN_API quern_memory quern_memory_now(void);

#ifdef __cplusplus
}
#endif
#endif
