/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - what models and engines share. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "kern/kern.h"
#include "lib/lib_int.h"

static void to_user(void *ctx, qn_log_level level, const char *line, size_t n)
{
    const quern_runtime *rt = ctx;
    rt->log_fn(rt->log_ctx, (int)level, line, n);
}

static qn_code copy_text(char **out, const char *text, qn_err *err)
{
    if (!text) return QN_OK;
    const size_t n = strlen(text) + 1;
    *out = qn_alloc(n);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "%zu bytes of text", n);
    memcpy(*out, text, n);
    return QN_OK;
}

/* A level of other processors would silently mean the portable kernels. */
static qn_code check_isa(const char *isa, qn_err *err)
{
    char names[96];
    size_t n = 0;
    if (!isa || !isa[0] || strcmp(isa, "auto") == 0) return QN_OK;
    for (size_t i = 0; i < qn_kern_n_variants; i++) {
        if (strcmp(isa, qn_kern_variants[i].name) == 0) return QN_OK;
        if (i == 0) continue; /* the reference is for tests */
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 1 ? ", " : "",
                              qn_kern_variants[i].name);
        if (n >= sizeof names) break;
    }
    return qn_fail(err, QN_E_INVAL,
                   "instruction set \"%s\" is not in this build, which has auto, %s", isa, names);
}

static qn_code fill(quern_runtime *rt, const quern_runtime_options *o, qn_err *err)
{
    if (o->threads > QN_LANES_MAX)
        return qn_fail(err, QN_E_INVAL, "threads is %u, expected at most %d", o->threads,
                       QN_LANES_MAX);
    QN_TRY(qn_cpu_parse_isa(&rt->isa_mask, o->isa, err));
    QN_TRY(check_isa(o->isa, err));
    QN_TRY(copy_text(&rt->image_dir, o->image_dir, err));
    rt->threads = o->threads ? o->threads : qn_cpu_cores();
    rt->memory_ceiling = o->memory_ceiling;
    rt->log_fn = o->log;
    rt->log_ctx = o->log_ctx;
    if (o->log) QN_TRY(qn_logger_new(&rt->log, o->log_levels, to_user, rt, err));
    snprintf(rt->describe, sizeof rt->describe, "cpu %s, %u lane%s",
             qn_kern_best(qn_cpu_features() & rt->isa_mask), rt->threads,
             rt->threads == 1 ? "" : "s");
    return QN_OK;
}

quern_code quern_runtime_open(quern_runtime **out, const quern_runtime_options *opt,
                              quern_error *err)
{
    quern_runtime_options o;
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "runtime", err));
    if (o.memory_ceiling)
        qn_alloc_set_ceiling(o.memory_ceiling < SIZE_MAX ? (size_t)o.memory_ceiling : SIZE_MAX);
    quern_runtime *rt = qn_zalloc(sizeof *rt);
    if (!rt) return qn_fail(err, QN_E_NOMEM, "runtime handle");
    atomic_init(&rt->refs, 1);
    const qn_code rc = fill(rt, &o, err);
    if (rc == QN_OK)
        *out = rt;
    else
        quern_runtime_close(rt);
    return rc;
}

quern_runtime *qn_runtime_ref(quern_runtime *rt)
{
    atomic_fetch_add_explicit(&rt->refs, 1, memory_order_relaxed);
    return rt;
}

qn_code qn_runtime_tell_memory(const quern_runtime *rt, qn_code rc, qn_err *err)
{
    if (rc != QN_E_NOMEM || !rt->memory_ceiling) return rc;
    return qn_wrap(err, rc, "memory ceiling of %.1f MiB, %.1f in use",
                   (double)rt->memory_ceiling / 1048576.0,
                   (double)qn_alloc_live_bytes() / 1048576.0);
}

void quern_runtime_close(quern_runtime *rt)
{
    if (!rt || atomic_fetch_sub_explicit(&rt->refs, 1, memory_order_acq_rel) != 1) return;
    qn_logger_free(rt->log);
    qn_free(rt->image_dir);
    qn_free(rt);
}

const char *quern_version(void) { return QUERN_VERSION; }
const char *quern_runtime_describe(const quern_runtime *rt) { return rt ? rt->describe : ""; }

quern_memory quern_memory_now(void)
{
    return (quern_memory){qn_alloc_live_bytes(), qn_alloc_peak_bytes()};
}
