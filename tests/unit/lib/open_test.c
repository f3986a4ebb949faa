/* SPDX-License-Identifier: Apache-2.0 */
/* open_test.c - the public constructors with each allocation refused in turn: a code, NULL, and
 * nothing left behind. */
#include <string.h>

#include "base/alloc.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"

typedef struct world {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
    quern_request *request;
} world;

static void no_log(void *ctx, int level, const char *line, size_t n)
{
    (void)ctx, (void)level, (void)line, (void)n;
}

static quern_code open_runtime(world *w)
{
    quern_runtime_options o = QUERN_RUNTIME_OPTIONS_INIT;
    o.log = no_log;
    o.log_levels = "info";
    o.image_dir = "somewhere";
    o.threads = 2;
    return quern_runtime_open(&w->rt, &o, NULL);
}

static quern_code open_model(world *w)
{
    return quern_model_open(&w->model, w->rt, MODEL, NULL, NULL);
}

static quern_code open_engine(world *w)
{
    quern_engine_options o = QUERN_ENGINE_OPTIONS_INIT;
    o.context = 128;
    o.max_rows = 16;
    o.max_seqs = 2;
    return quern_engine_open(&w->engine, w->model, &o, NULL);
}

static quern_code open_request(world *w)
{
    static const char *const stops[] = {"never", "ever"};
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    o.text = "abc";
    o.text_n = 3;
    o.max_tokens = 4;
    o.n_choices = 2;
    o.stop_texts = stops;
    o.n_stop_texts = 2;
    return quern_request_open(&w->request, w->engine, &o, NULL);
}

static void close_request(world *w)
{
    quern_request_free(w->request);
    w->request = NULL;
}
static void close_engine(world *w)
{
    quern_engine_close(w->engine);
    w->engine = NULL;
}
static void close_model(world *w)
{
    quern_model_unref(w->model);
    w->model = NULL;
}
static void close_runtime(world *w)
{
    quern_runtime_close(w->rt);
    w->rt = NULL;
}

/* exact: nothing but this call allocates meanwhile, so the count of live blocks tells. */
static void sweep(qt *t, world *w, quern_code (*open)(world *), void (*close)(world *),
                  void **object, bool exact)
{
    const size_t before = qn_alloc_live();
    quern_code rc = QUERN_E_NOMEM;
    size_t n = 0;
    for (; rc != QUERN_OK && n < 4096; n++) {
        qn_alloc_fail_after(n);
        rc = open(w);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QUERN_OK || (rc == QUERN_E_NOMEM && *object == NULL), "allocation %zu: %s",
               n, quern_code_name(rc));
        close(w);
        if (exact)
            QT_OKF(t, qn_alloc_live() == before, "allocation %zu: %zu blocks left", n,
                   qn_alloc_live() - before);
    }
    QT_OK(t, rc == QUERN_OK && n > 1);
}

static void a_runtime_survives_every_failed_allocation(qt *t)
{
    world w = {0};
    sweep(t, &w, open_runtime, close_runtime, (void **)&w.rt, true);
}

static void a_model_survives_every_failed_allocation(qt *t)
{
    world w = {0};
    QT_EQ(t, quern_runtime_open(&w.rt, NULL, NULL), QUERN_OK);
    sweep(t, &w, open_model, close_model, (void **)&w.model, true);
    close_runtime(&w);
}

static void an_engine_survives_every_failed_allocation(qt *t)
{
    world w = {0};
    QT_EQ(t, quern_runtime_open(&w.rt, NULL, NULL), QUERN_OK);
    QT_EQ(t, open_model(&w), QUERN_OK);
    sweep(t, &w, open_engine, close_engine, (void **)&w.engine, true);
    close_model(&w);
    close_runtime(&w);
}

/* The engine builds plans meanwhile, on its own thread: live blocks are compared at the end. */
static void a_request_survives_every_failed_allocation(qt *t)
{
    world w = {0};
    const size_t before = qn_alloc_live();
    QT_EQ(t, quern_runtime_open(&w.rt, NULL, NULL), QUERN_OK);
    QT_EQ(t, open_model(&w), QUERN_OK);
    QT_EQ(t, open_engine(&w), QUERN_OK);
    sweep(t, &w, open_request, close_request, (void **)&w.request, false);
    close_engine(&w);
    close_model(&w);
    close_runtime(&w);
    QT_EQ(t, qn_alloc_live(), before);
}

static void a_report_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    quern_code rc = QUERN_E_NOMEM;
    for (size_t n = 0; rc != QUERN_OK && n < 20000; n++) {
        quern_report *r = NULL;
        qn_alloc_fail_after(n);
        rc = quern_inspect(&r, MODEL, NULL, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QUERN_OK || (rc == QUERN_E_NOMEM && r == NULL));
        quern_report_free(r);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QUERN_OK);
}

static void an_engine_beyond_the_ceiling_says_what_was_asked_of_what(qt *t)
{
    world w = {0};
    quern_error err = {0};
    quern_runtime_options o = QUERN_RUNTIME_OPTIONS_INIT;
    o.memory_ceiling = qn_alloc_live_bytes() + (300 << 10);
    QT_EQ(t, quern_runtime_open(&w.rt, &o, NULL), QUERN_OK);
    QT_OKF(t, open_model(&w) == QUERN_OK, "%zu bytes live", qn_alloc_live_bytes());
    QT_EQ(t, quern_engine_open(&w.engine, w.model, NULL, &err), QUERN_E_NOMEM);
    QT_OK(t, !w.engine);
    QT_OKF(t, strncmp(err.msg, "memory ceiling of ", 18) == 0 && strstr(err.msg, " in use: "), "%s",
           err.msg);
    close_model(&w);
    close_runtime(&w);
    qn_alloc_set_ceiling(SIZE_MAX);
}

static void unknown_flags_are_refused(qt *t)
{
    world w = {0};
    quern_error err = {0};
    quern_report *report = NULL;
    quern_inspect_options io = QUERN_INSPECT_OPTIONS_INIT;
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    io.flags = 4;
    QT_EQ(t, quern_inspect(&report, MODEL, &io, &err), QUERN_E_INVAL);
    QT_STR(t, err.msg, "flags are 0x4, known: 0x3");
    QT_OK(t, !report);
    QT_EQ(t, quern_runtime_open(&w.rt, NULL, NULL), QUERN_OK);
    QT_EQ(t, open_model(&w), QUERN_OK);
    QT_EQ(t, open_engine(&w), QUERN_OK);
    o.text = "abc";
    o.text_n = 3;
    o.text_flags = 4;
    QT_EQ(t, quern_request_open(&w.request, w.engine, &o, &err), QUERN_E_INVAL);
    QT_STR(t, err.msg, "text_flags are 0x4, known: 0x3");
    QT_OK(t, !w.request);
    close_engine(&w);
    close_model(&w);
    close_runtime(&w);
}

/* A reader that never takes an event costs memory only: the ring grows, nothing is lost. */
static void events_wait_for_a_slow_reader(qt *t)
{
    world w = {0};
    quern_request_options o = QUERN_REQUEST_OPTIONS_INIT;
    const quern_event *e = NULL;
    uint32_t next = 0;
    QT_EQ(t, quern_runtime_open(&w.rt, NULL, NULL), QUERN_OK);
    QT_EQ(t, open_model(&w), QUERN_OK);
    QT_EQ(t, quern_engine_open(&w.engine, w.model, NULL, NULL), QUERN_OK);
    o.text = "abc";
    o.text_n = 3;
    o.flags = QUERN_REQUEST_IGNORE_EOS; /* no max_tokens: to the end of the context */
    QT_EQ(t, quern_request_open(&w.request, w.engine, &o, NULL), QUERN_OK);
    QT_EQ(t, quern_request_wait(w.request, -1, NULL), QUERN_OK);
    while (quern_request_next(&e, w.request, 0, NULL) == QUERN_OK)
        if (e->kind == QUERN_EVENT_TOKEN) QT_EQ(t, e->index, next++);
    QT_OKF(t, next > 400, "%u tokens", next);
    QT_OK(t, e == NULL);
    close_request(&w);
    close_engine(&w);
    close_model(&w);
    close_runtime(&w);
}

QT_MAIN(QT(a_runtime_survives_every_failed_allocation),
        QT(a_model_survives_every_failed_allocation),
        QT(an_engine_survives_every_failed_allocation),
        QT(a_request_survives_every_failed_allocation),
        QT(a_report_survives_every_failed_allocation),
        QT(an_engine_beyond_the_ceiling_says_what_was_asked_of_what), QT(unknown_flags_are_refused),
        QT(events_wait_for_a_slow_reader))
