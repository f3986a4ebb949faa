/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - runtime, model and engine from a verb's options. */
#include "cli/open.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

static void to_stderr(void *ctx, int level, const char *line, size_t n)
{
    (void)level;
    fwrite(line, 1, n, ctx);
}

/* QUERN_HOME/images, made where it is missing. */
static qn_code image_dir(char *path, size_t cap, const char *home, qn_err *err)
{
    if (!home) return qn_fail(err, QN_E_INVAL, "--pack needs QUERN_HOME or HOME");
    const int n = snprintf(path, cap, "%s/images", home);
    if (n < 0 || (size_t)n >= cap) return qn_fail(err, QN_E_LIMIT, "QUERN_HOME is too long");
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0') continue;
        const char end = *p;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return qn_fail_sys(err, QN_E_IO, errno, "%s", path);
        *p = end;
        if (!end) return QN_OK;
    }
}

static qn_code open_all(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, uint32_t queue,
                        qn_io *io, qn_err *err)
{
    static const quern_kv kv[] = {QUERN_KV_F16, QUERN_KV_F32, QUERN_KV_BF16};
    static const quern_activations activations[] = {QUERN_ACTIVATIONS_F32, QUERN_ACTIVATIONS_I8};
    char images[1100];
    quern_runtime_options ro = QUERN_RUNTIME_OPTIONS_INIT;
    quern_model_options mo = QUERN_MODEL_OPTIONS_INIT;
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    if (!o->model) return qn_fail(err, QN_E_INVAL, "--model FILE is missing");
    if (o->pack) QN_TRY(image_dir(images, sizeof images, io->home, err));
    ro.image_dir = o->pack ? images : NULL;
    ro.isa = io->isa;
    ro.threads = o->threads ? o->threads : io->threads;
    ro.memory_ceiling = (uint64_t)o->memory_mib << 20;
    ro.log_levels = o->log;
    ro.log = to_stderr;
    ro.log_ctx = io->err;
    mo.activations = activations[o->activations];
    eo.kv = kv[o->kv];
    eo.max_rows = o->chunk;
    eo.max_seqs = max_seqs;
    eo.queue = queue;
    eo.context = o->context;
    const uint64_t begin = qn_clock_ns();
    QN_TRY(quern_runtime_open(&r->rt, &ro, err));
    QN_TRY(quern_model_open(&r->model, r->rt, o->model, &mo, err));
    QN_TRY(quern_engine_open(&r->engine, r->model, &eo, err));
    r->load_ms = (double)(qn_clock_ns() - begin) / 1e6;
    return QN_OK;
}

qn_code qn_run_open_queue(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, uint32_t queue,
                          qn_io *io, qn_err *err)
{
    memset(r, 0, sizeof *r);
    const qn_code rc = open_all(r, o, max_seqs, queue, io, err);
    if (rc != QN_OK) qn_run_close(r);
    return rc;
}

qn_code qn_run_open(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, qn_io *io, qn_err *err)
{
    return qn_run_open_queue(r, o, max_seqs, 0, io, err);
}

void qn_run_close(qn_running *r)
{
    quern_engine_close(r->engine);
    quern_model_unref(r->model);
    quern_runtime_close(r->rt);
    memset(r, 0, sizeof *r);
}

void qn_interrupt_block(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

bool qn_interrupt_pending(void)
{
    sigset_t set;
    return sigpending(&set) == 0 && sigismember(&set, SIGINT) == 1;
}

bool qn_interrupt_take(void)
{
    const struct timespec now = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return sigtimedwait(&set, NULL, &now) == SIGINT;
}
