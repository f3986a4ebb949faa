/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - runtime, model and engine from a verb's options. */
#include "cli/open.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

static void to_stderr(void *ctx, int level, const char *line, size_t n)
{
    (void)level;
    fwrite(line, 1, n, ctx);
}

/* QUERN_HOME/images, made where it is missing. Where it cannot be made a model opens without an image. */
static bool image_dir(char *path, size_t cap, const char *home)
{
    const int n = snprintf(path, cap, "%s/images", home);
    if (n < 0 || (size_t)n >= cap) return false;
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0') continue;
        const char end = *p;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
        *p = end;
        if (!end) return true;
    }
}

qn_code qn_cli_store(quern_store **out, const char *token, const qn_io *io, qn_err *err)
{
    quern_store_options so = QUERN_STORE_OPTIONS_INIT;
    *out = NULL;
    if (!io->home)
        return qn_fail(err, QN_E_INVAL,
                       "neither QUERN_HOME nor HOME is set: models have no place to be kept");
    so.home = io->home;
    so.hub_cache = io->hub_cache;
    so.endpoint = io->hub_endpoint;
    so.token = token;
    return quern_store_open(out, &so, err);
}

static qn_code copy_text(char **out, const char *text, qn_err *err)
{
    const size_t n = strlen(text) + 1;
    *out = qn_alloc(n);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "a name of %zu bytes", n);
    memcpy(*out, text, n);
    return QN_OK;
}

qn_code qn_cli_model(char **path, const char *name, qn_io *io, qn_err *err)
{
    quern_store *store = NULL;
    *path = NULL;
    if (!io->home && name)
        return copy_text(path, name, err); /* no store, but a file may be meant */
    QN_TRY(qn_cli_store(&store, NULL, io, err));
    const qn_code rc = quern_store_find(path, store, name, err);
    quern_store_close(store);
    if (rc != QN_OK || name) return rc;
    char taken[256];
    qn_cli_model_name(taken, sizeof taken, *path);
    fprintf(io->err, "quern: no --model; taking ");
    qn_text_shown(io->err, taken, strlen(taken));
    fprintf(io->err, "\n");
    return QN_OK;
}

void qn_cli_model_name(char *out, size_t cap, const char *path)
{
    static const qn_str endings[] = {{".gguf", 5}, {".safetensors", 12}}, mark = {"models--", 8};
    qn_str rest = qn_str_z(path), piece, part[3] = {{0}};
    while (qn_str_split(&piece, &rest, '/')) {
        if (!piece.n) continue;
        part[0] = part[1];
        part[1] = part[2];
        part[2] = piece;
    }
    if (qn_str_eq_z(part[1], "snapshots") && qn_str_has_prefix(part[0], mark)) {
        const qn_str repo = qn_str_slice(part[0], mark.n, part[0].n);
        const size_t cut = qn_str_find(repo, QN_STR("--"), 0);
        const qn_str org = qn_str_slice(repo, 0, cut), name = qn_str_slice(repo, cut, repo.n);
        snprintf(out, cap, "%.*s%s%.*s", QN_STR_ARG(org), name.n ? "/" : "",
                 QN_STR_ARG(qn_str_slice(name, 2, name.n)));
        return;
    }
    for (size_t i = 0; i < QN_LEN(endings); i++)
        if (qn_str_has_suffix(part[2], endings[i])) part[2].n -= endings[i].n;
    snprintf(out, cap, "%.*s", QN_STR_ARG(part[2]));
}

static qn_code open_all(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, uint32_t queue,
                        qn_io *io, qn_err *err)
{
    static const quern_kv kv[] = {QUERN_KV_F16, QUERN_KV_F32, QUERN_KV_BF16};
    static const quern_activations activations[] = {QUERN_ACTIVATIONS_I16, QUERN_ACTIVATIONS_F32,
                                                    QUERN_ACTIVATIONS_I8};
    char images[1100];
    quern_runtime_options ro = QUERN_RUNTIME_OPTIONS_INIT;
    quern_model_options mo = QUERN_MODEL_OPTIONS_INIT;
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    QN_TRY(qn_cli_model(&r->path, o->model, io, err));
    if (!o->no_image && io->home && image_dir(images, sizeof images, io->home))
        ro.image_dir = images;
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
    QN_TRY(quern_model_open(&r->model, r->rt, r->path, &mo, err));
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
    quern_text_free(r->path);
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
