/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - a call with a body from its arrival to its end, and the thread that does its slow parts. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/server_int.h"

enum { MAX_EVENTS = 64 << 20, MAX_FRAMES = 64 << 20, MAX_ANSWERS = 512 << 20 };

/* -- the worker -------------------------------------------------------------------------------- */

void qn_task_queue(qn_task *j)
{
    struct qn_server *s = j->server;
    j->queued = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->todo_last)
        s->todo_last->queued = j;
    else
        s->todo = j;
    s->todo_last = j;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}

static qn_task *next_job(struct qn_server *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->todo && !s->closing) pthread_cond_wait(&s->work, &s->lock);
    qn_task *j = s->todo;
    if (j) s->todo = j->queued;
    if (!s->todo) s->todo_last = NULL;
    pthread_mutex_unlock(&s->lock);
    return j;
}

static void give_back(qn_task *j)
{
    struct qn_server *s = j->server;
    pthread_mutex_lock(&s->lock);
    j->queued = s->ready;
    s->ready = j;
    pthread_mutex_unlock(&s->lock);
    qn_http_wake(s->http);
}

static void *work(void *ctx)
{
    struct qn_server *s = ctx;
    for (qn_task *j = next_job(s); j; j = next_job(s)) {
        if (atomic_load(&j->retire)) {
            qn_task_free(j);
            continue;
        }
        if (!atomic_load(&j->gone)) (void)qn_task_prepare(j);
        give_back(j);
    }
    return NULL;
}

qn_code qn_worker_start(struct qn_server *s, qn_err *err)
{
    s->closing = false;
    if (pthread_create(&s->worker, NULL, work, s) != 0)
        return qn_fail(err, QN_E_NOMEM, "no thread for the server's worker");
    return QN_OK;
}

void qn_worker_stop(struct qn_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->worker, NULL);
}

/* -- jobs -------------------------------------------------------------------------------------- */

void qn_task_free(qn_task *j)
{
    for (uint32_t i = 0; i < j->n_parts; i++) quern_request_free(j->parts[i].request);
    for (uint32_t i = 0; j->choices && i < j->n_choices; i++) {
        qn_buf_fini(&j->choices[i].text);
        qn_buf_fini(&j->choices[i].tokens);
    }
    qn_free(j->parts);
    qn_free(j->choices);
    qn_arena_fini(&j->arena);
    qn_arena_fini(&j->answers);
    qn_buf_fini(&j->body);
    qn_buf_fini(&j->reply);
    qn_buf_fini(&j->frames);
    qn_buf_fini(&j->events);
    qn_buf_fini(&j->taken);
    pthread_mutex_destroy(&j->lock);
    qn_free(j);
}

static qn_task *make(struct qn_server *s, qn_http_call *call, qn_api_endpoint endpoint, qn_str body)
{
    qn_task *j = qn_zalloc(sizeof *j);
    if (!j) return NULL;
    j->server = s;
    j->endpoint = endpoint;
    j->created = (int64_t)(qn_clock_wall_ns() / 1000000000u);
    j->spoke_ns = qn_clock_ns();
    pthread_mutex_init(&j->lock, NULL);
    qn_buf_init(&j->body, s->limits.body_bytes);
    qn_buf_init(&j->reply, MAX_ANSWERS);
    qn_buf_init(&j->frames, MAX_FRAMES);
    qn_buf_init(&j->events, MAX_EVENTS);
    qn_buf_init(&j->taken, MAX_EVENTS);
    qn_arena_init(&j->arena, body.n * 8 + ((size_t)64 << 20));
    qn_arena_init(&j->answers, MAX_ANSWERS);
    if (qn_buf_append(&j->body, body.p, body.n, NULL) != QN_OK) {
        qn_task_free(j);
        return NULL;
    }
    j->call = call;
    return j;
}

void qn_task_start(struct qn_server *s, qn_http_call *call, qn_api_endpoint endpoint, qn_str body)
{
    qn_task *j = make(s, call, endpoint, body);
    if (!j) {
        qn_api_error error = {0};
        (void)qn_api_fail(&error, QN_API_NOMEM, NULL, "no memory for another request");
        s->requests[1]++;
        qn_reply_error(call, &error);
        return;
    }
    j->next = s->jobs;
    if (s->jobs) s->jobs->prev = j;
    s->jobs = j;
    s->n_jobs++;
    qn_http_set_user(call, j);
    qn_task_queue(j);
}
