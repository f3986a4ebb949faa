/* SPDX-License-Identifier: Apache-2.0 */
/* verb_serve.c - `quern serve`: a model behind the OpenAI-compatible interface, and the chat page. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/open.h"
#include "cli/sampling.h"
#include "server/server.h"

enum { MAX_TEMPLATE = 4 << 20 };

typedef struct serve_opts {
    qn_run_opts run;
    const char *host, *api_key, *name, *template_file;
    int thinking;
    uint32_t port, parallel, queue, drain, max_body_mib;
    bool no_web;
    qn_sampling sampling; /* of requests that do not say */
} serve_opts;

static const serve_opts defaults = {.host = "127.0.0.1",
                                    .port = 8080,
                                    .parallel = 8,
                                    .queue = 256,
                                    .drain = 30,
                                    .max_body_mib = 32};

#define AT(member) offsetof(serve_opts, member)
static const qn_opt options[] = {
    QN_RUN_OPTIONS(serve_opts),
    {"host", QN_OPT_TEXT, AT(host), "ADDRESS", "address or name to listen on; 0.0.0.0 or :: all", 0,
     0, 0},
    {"port", QN_OPT_U32, AT(port), "N", "port to listen on; 0: a free one", 0, 65535, 0},
    {"api-key", QN_OPT_TEXT, AT(api_key), "KEY", "ask for this key; /health and the page stay open",
     0, 0, 0},
    {"name", QN_OPT_TEXT, AT(name), "ID", "the model's id for clients (from its file)", 0, 0, 0},
    {"template", QN_OPT_TEXT, AT(template_file), "FILE", "chat template (the model's own)", 0, 0,
     0},
    {"thinking", QN_OPT_CHOICE, AT(thinking), "model|off|on",
     "enable_thinking of chats that do not say", 0, 0, 0},
    {"parallel", QN_OPT_U32, AT(parallel), "N", "requests stepped together", 1, 1024, 0},
    {"batch", QN_OPT_U32, AT(parallel), "N", NULL, 1, 1024, 0},
    {"queue", QN_OPT_U32, AT(queue), "N", "waiting requests before status 429", 1, 1 << 16, 0},
    {"max-body-mib", QN_OPT_U32, AT(max_body_mib), "N", "largest body of a request", 1, 1024, 0},
    {"drain", QN_OPT_U32, AT(drain), "SECONDS", "time that running requests get at the end", 0,
     3600, 0},
    QN_SAMPLING_OPTIONS(serve_opts, "the model's, else ", "0.7", "what the context holds"),
    {"no-web", QN_OPT_FLAG, AT(no_web), NULL, "do not serve the chat page", 0, 0, 0},
    QN_OPT_END,
};

static void set_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGUSR1); /* ours: the watcher's own end */
}

/* A thread that waits for signals, so that none interrupts anything. */
static void *watch(void *server)
{
    sigset_t set;
    int got = 0;
    set_signals(&set);
    while (sigwait(&set, &got) == 0 && got != SIGUSR1) qn_server_stop(server);
    return NULL;
}

/* What a person may paste: an address to ask at, in brackets if it has colons. */
static void url_host(char *out, size_t cap, const char *host)
{
    const bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    const bool v6 = !any && strchr(host, ':') != NULL;
    snprintf(out, cap, "%s%s%s", v6 ? "[" : "", any ? "127.0.0.1" : host, v6 ? "]" : "");
}

static qn_code greet(const qn_server *s, const serve_opts *o, const qn_server_model *m, qn_io *io,
                     qn_err *err)
{
    quern_model_info info = {.size = sizeof info};
    const unsigned port = qn_server_port(s);
    char host[272];
    url_host(host, sizeof host, o->host);
    QN_TRY(quern_model_get_info(m->model, &info, err));
    const char *body =
        m->template_text || info.chat_template
            ? "chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": "
              "\"What is the capital of France?\"}], \"temperature\": 0}'"
            : "completions -d '{\"prompt\": \"The capital of France is\", \"max_tokens\": 8, "
              "\"temperature\": 0}'";
    qn_io_print(io, "quern: ready, serving %s\n", m->id);
    if (!o->no_web) qn_io_print(io, "  chat page   http://%s:%u/\n", host, port);
    qn_io_print(io, "  API base    http://%s:%u/v1\n", host, port);
    qn_io_print(io,
                "  try         curl -s -H 'Content-Type: application/json'%s http://%s:%u/v1/%s\n",
                o->api_key ? " -H 'Authorization: Bearer KEY'" : "", host, port, body);
    if (!o->api_key && strcmp(host, o->host) != 0)
        fprintf(io->err,
                "quern: whoever reaches this machine may use it; --api-key asks for a key\n");
    return qn_io_flush(io, err);
}

static qn_code answer(qn_server *s, const qn_server_model *m, qn_err *err)
{
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, s) != 0)
        return qn_fail(err, QN_E_NOMEM, "no thread that waits for signals");
    const qn_code rc = qn_server_serve(s, m, err);
    pthread_kill(watcher, SIGUSR1);
    pthread_join(watcher, NULL);
    return rc;
}

static qn_server_options listening(const serve_opts *o)
{
    qn_server_options so = {0};
    so.host = o->host;
    so.port = (uint16_t)o->port;
    so.api_key = o->api_key;
    so.drain_s = o->drain;
    so.max_body = (size_t)o->max_body_mib << 20;
    so.no_web = o->no_web;
    return so;
}

static qn_server_model serving(const serve_opts *o)
{
    static const qn_api_tristate thinking[] = {QN_API_UNSAID, QN_API_OFF, QN_API_ON};
    qn_server_model m = {0};
    qn_sampling_flags(&m.flags, &o->sampling);
    if (o->sampling.has_max_tokens) m.flags.set |= QN_SET_MAX_TOKENS;
    m.max_tokens = o->sampling.max_tokens;
    m.context = o->run.context;
    m.thinking = thinking[o->thinking];
    return m;
}

/* Clients send it in a header or a path: control characters and white space around it do not arrive. */
static qn_code check_word(const char *option, const char *said, qn_err *err)
{
    const size_t n = said ? strlen(said) : 0;
    if (said && n == 0) return qn_fail(err, QN_E_INVAL, "--%s is empty", option);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)said[i] < ' ' || said[i] == 0x7f ||
            (said[i] == ' ' && (i == 0 || i == n - 1)))
            return qn_fail(err, QN_E_INVAL, "--%s cannot be sent: byte %zu is 0x%02x", option, i,
                           (unsigned)(unsigned char)said[i]);
    return QN_OK;
}

/* The port is taken and the template read before the model is opened, which may take long. */
static qn_code serve(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const serve_opts *o = opts;
    qn_running run = {0};
    qn_server *s = NULL;
    char id[256];
    sigset_t set;
    uint8_t *text = NULL;
    const qn_server_options so = listening(o);
    qn_server_model m = serving(o);
    (void)args;
    QN_TRY(check_word("api-key", o->api_key, err));
    QN_TRY(check_word("name", o->name, err));
    QN_TRY_OUT(qn_server_open(&s, &so, err));
    if (o->template_file)
        QN_TRY_OUT(qn_file_read(&text, &m.template_n, o->template_file, MAX_TEMPLATE, err));
    set_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* the threads inherit it */
    QN_TRY_OUT(qn_run_open_queue(&run, &o->run, o->parallel, o->queue, io, err));
    qn_cli_model_name(id, sizeof id, run.path);
    m.template_text = (const char *)text;
    m.model = run.model;
    m.engine = run.engine;
    m.id = o->name ? o->name : id;
    QN_TRY_OUT(greet(s, o, &m, io, err));
    QN_TRY_OUT(answer(s, &m, err));
out:
    qn_server_close(s);
    qn_run_close(&run);
    qn_free(text);
    return rc;
}

const qn_verb qn_verb_serve = {
    "serve",
    "",
    "serve a model over HTTP: OpenAI's interface and a chat page",
    "\n  quern serve\n"
    "  quern serve --model ORG/NAME --port 0 --api-key secret --parallel 16\n\n"
    "Listens on 127.0.0.1:8080 and prints the address of the page and the base address for\n"
    "clients (docs/api.md). Options of sampling count for requests that leave the field out. "
    "Requests\n"
    "from pages of other origins are refused. SIGINT or SIGTERM ends it once running requests are\n"
    "answered; a second one ends it at once.",
    options,
    &defaults,
    sizeof(serve_opts),
    0,
    0,
    serve};
