/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the loop: what came back from the worker, what the engine told, who left, and the end. */
#include "server/server.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/server_int.h"

enum { MAX_HEADER = 16 << 10 };

static void unlink_job(struct qn_server *s, qn_task *j)
{
    if (j->prev)
        j->prev->next = j->next;
    else
        s->jobs = j->next;
    if (j->next) j->next->prev = j->prev;
    s->n_jobs--;
}

static void take_ready(struct qn_server *s)
{
    pthread_mutex_lock(&s->lock);
    qn_task *j = s->ready;
    s->ready = NULL;
    pthread_mutex_unlock(&s->lock);
    while (j) {
        qn_task *next = j->queued;
        qn_task_prepared(j);
        j = next;
    }
}

static void sweep(struct qn_server *s)
{
    for (qn_task *j = s->jobs, *next; j; j = next) {
        next = j->next;
        qn_task_pump(j);
        if (!qn_task_finished(j)) continue;
        unlink_job(s, j);
        atomic_store(&j->retire, true);
        qn_task_queue(j);
    }
}

static void on_woken(void *ctx)
{
    take_ready(ctx);
    sweep(ctx);
}

static void on_tick(void *ctx)
{
    struct qn_server *s = ctx;
    const uint64_t now = qn_clock_ns();
    for (qn_task *j = s->jobs; j; j = j->next) qn_task_keep_alive(j, now);
    on_woken(s); /* what an answer that ended by itself left behind */
}

static void on_closed(void *ctx, qn_http_call *call)
{
    struct qn_server *s = ctx;
    qn_task *j = qn_http_user(call);
    if (!j) return;
    s->requests[2]++;
    qn_task_leave(j);
    qn_http_wake(s->http);
}

qn_code qn_server_open(qn_server **out, const qn_server_options *o, qn_err *err)
{
    *out = NULL;
    qn_server *s = qn_zalloc(sizeof *s);
    if (!s) return qn_fail(err, QN_E_NOMEM, "no memory for a server");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    s->o = *o;
    if (!s->o.host) s->o.host = "127.0.0.1";
    if (!s->o.keep_alive_ms) s->o.keep_alive_ms = 15000;
    s->limits = qn_api_default_limits;
    if (o->max_body) s->limits.body_bytes = o->max_body;
    s->access.host = s->o.host;
    s->access.key = o->api_key;
    s->access.any_host = strcmp(s->o.host, "0.0.0.0") == 0 || strcmp(s->o.host, "::") == 0;
    s->created = (int64_t)(qn_clock_wall_ns() / 1000000000u);
    const qn_http_options ho = {s->o.host,
                                o->port,
                                o->max_connections ? o->max_connections : 2048,
                                s->limits.body_bytes,
                                MAX_HEADER,
                                o->timeout_ms ? o->timeout_ms : 60000,
                                s->o.keep_alive_ms < 1000 ? s->o.keep_alive_ms : 1000};
    const qn_code rc = qn_http_open(&s->http, &ho, err);
    if (rc != QN_OK)
        qn_server_close(s);
    else
        *out = s;
    return rc;
}

static void loop(qn_server *s)
{
    for (bool going = true; going;) {
        going = qn_http_run(s->http);
        const unsigned stops = atomic_load(&s->stops);
        if (!stops) continue;
        if (!s->draining) s->drain_end_ns = qn_clock_ns() + s->o.drain_s * UINT64_C(1000000000);
        s->draining = true;
        qn_http_drain(s->http);
        if (!s->n_jobs || stops > 1 || qn_clock_ns() >= s->drain_end_ns) going = false;
    }
}

/* All that is left: told why, cancelled, freed. */
static void end_jobs(qn_server *s)
{
    qn_api_error closing = {0};
    (void)qn_api_fail(&closing, QN_API_CLOSING, NULL, "the server is shutting down");
    for (qn_task *j = s->jobs; j; j = j->next) {
        qn_task_fail(j, &closing);
        qn_task_leave(j);
    }
    for (int i = 0; i < 3; i++) qn_http_wake(s->http), qn_http_run(s->http);
    qn_worker_stop(s);
    take_ready(s);
    for (qn_task *j = s->jobs, *next; j; j = next) {
        next = j->next;
        unlink_job(s, j);
        qn_task_leave(j);
        qn_task_free(j);
    }
}

static qn_request_sampling recipe_of(const quern_sampling_defaults *d)
{
    qn_request_sampling r = {0};
    r.set = (d->set & QUERN_DEFAULT_TEMPERATURE ? QN_SET_TEMPERATURE : 0u) |
            (d->set & QUERN_DEFAULT_TOP_P ? QN_SET_TOP_P : 0u) |
            (d->set & QUERN_DEFAULT_TOP_K ? QN_SET_TOP_K : 0u) |
            (d->set & QUERN_DEFAULT_MIN_P ? QN_SET_MIN_P : 0u) |
            (d->set & QUERN_DEFAULT_REPETITION_PENALTY ? QN_SET_REPETITION : 0u);
    r.temperature = d->temperature;
    r.top_p = d->top_p;
    r.top_k = d->top_k;
    r.min_p = d->min_p;
    r.repetition_penalty = d->repetition_penalty;
    return r;
}

static qn_code make_fingerprint(struct qn_server *s, qn_err *err)
{
    quern_engine_stats stats = {.size = sizeof stats};
    QN_TRY(quern_engine_get_stats(s->m.engine, &stats, err));
    snprintf(s->fingerprint, sizeof s->fingerprint, "%s-%016llx", quern_version(),
             (unsigned long long)(stats.numerics[0] ^ stats.numerics[1]));
    return QN_OK;
}

qn_code qn_server_serve(qn_server *s, const qn_server_model *m, qn_err *err)
{
    qn_code rc = QN_OK;
    const qn_http_handler handler = {s,         qn_route_headers, qn_route_request, qn_route_bad,
                                     on_closed, on_woken,         on_tick};
    s->m = *m;
    s->info.size = sizeof s->info;
    QN_TRY(quern_model_get_info(m->model, &s->info, err));
    QN_TRY(make_fingerprint(s, err));
    s->recipe = recipe_of(s->info.defaults);
    s->context = m->context && m->context < s->info.context ? m->context : s->info.context;
    QN_TRY_OUT(qn_chat_open(s, err));
    QN_TRY_OUT(qn_worker_start(s, err));
    qn_http_set_handler(s->http, &handler);
    loop(s);
    end_jobs(s);
out:
    qn_chat_close(s);
    return rc;
}

void qn_server_stop(qn_server *s)
{
    atomic_fetch_add(&s->stops, 1);
    qn_http_wake(s->http);
}

uint16_t qn_server_port(const qn_server *s) { return qn_http_port(s->http); }

void qn_server_close(qn_server *s)
{
    if (!s) return;
    qn_http_close(s->http);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    qn_free(s);
}
