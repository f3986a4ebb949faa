/* SPDX-License-Identifier: Apache-2.0 */
/* lib_int.h - the public objects as their own files see them: each wraps one object of the layer that
 * does the work, and holds a reference to what that needs.
 *
 *     request ─► engine ─► model ─► runtime
 */
#ifndef QN_LIB_LIB_INT_H
#define QN_LIB_LIB_INT_H
#include <stdatomic.h>

#include "base/log.h"
#include "engine/engine.h"
#include "model/fit.h"
#include "quern/quern.h"

struct quern_runtime {
    atomic_uint refs;
    qn_logger *log; /* NULL: silence */
    quern_log_fn *log_fn;
    void *log_ctx;
    char *image_dir; /* NULL: none */
    uint32_t threads, isa_mask;
    uint64_t memory_ceiling; /* bytes; 0: none */
    char describe[96];
};
quern_runtime *qn_runtime_ref(quern_runtime *rt);
/* Puts ceiling and live bytes in front of a NOMEM, so that it tells what was asked of what; returns rc
 * unchanged. */
qn_code qn_runtime_tell_memory(const quern_runtime *rt, qn_code rc, qn_err *err);

struct quern_model {
    atomic_uint refs;
    quern_runtime *rt;
    qn_model *model;
    quern_sampling_defaults defaults;
};

struct quern_engine {
    atomic_uint refs;
    quern_model *model;
    _Atomic(qn_engine *)
        engine; /* NULL after close; the shell lives until the last request is freed */
    uint32_t context;
};
/* What the options of an engine take of memory; kv by its format's number. Errors: as
 * quern_engine_open. */
qn_code qn_lib_fit_ask(qn_fit_ask *out, const quern_engine_options *o, qn_err *err);
void qn_lib_engine_unref(quern_engine *e);

/* Copies an option struct that begins with its size into *dst, `full` bytes; NULL gives all zeros.
 * Errors: INVAL when it is smaller than the first version had, UNSUPPORTED when it is larger and says
 * something in fields that this library does not know. */
qn_code qn_lib_options(void *dst, size_t full, size_t first, const void *src, const char *name,
                       qn_err *err);
/* INVAL "NAME is missing" when p is NULL. */
qn_code qn_lib_given(const void *p, const char *name, qn_err *err);
/* INVAL when path is NULL or empty. */
qn_code qn_lib_path(const char *path, qn_err *err);

#endif
