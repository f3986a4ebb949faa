/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - which path is what, and the answers that need no model's work. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/assets.h"
#include "server/server_int.h"

enum { MAX_ANSWER = 1 << 20 };

typedef enum route {
    ROUTE_NONE,
    ROUTE_JOB, /* of `endpoint` */
    ROUTE_HEALTH,
    ROUTE_INDEX,
    ROUTE_MODELS,
    ROUTE_METRICS
} route;

static const struct {
    const char *path;
    bool post;
    route is;
    qn_api_endpoint endpoint;
} routes[] = {
    {"/v1/chat/completions", true, ROUTE_JOB, QN_API_CHAT},
    {"/chat/completions", true, ROUTE_JOB, QN_API_CHAT},
    {"/v1/completions", true, ROUTE_JOB, QN_API_TEXT},
    {"/tokenize", true, ROUTE_JOB, QN_API_TOKENIZE},
    {"/detokenize", true, ROUTE_JOB, QN_API_DETOKENIZE},
    {"/health", false, ROUTE_HEALTH, 0},
    {"/v1", false, ROUTE_INDEX, 0},
    {"/v1/models", false, ROUTE_MODELS, 0},
    {"/metrics", false, ROUTE_METRICS, 0},
};

static const char *const endpoints[] = {"GET /",
                                        "GET /health",
                                        "GET /v1",
                                        "GET /v1/models",
                                        "POST /v1/chat/completions",
                                        "POST /v1/completions",
                                        "POST /tokenize",
                                        "POST /detokenize",
                                        "GET /metrics"};

static int find(qn_str path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (qn_str_eq_z(path, routes[i].path)) return (int)i;
    return -1;
}

void qn_reply_json(qn_http_call *call, int status, const qn_buf *b)
{
    qn_http_reply(call, status, "application/json", "", qn_str_make(qn_buf_text(b), b->len));
}

void qn_reply_error(qn_http_call *call, const qn_api_error *error)
{
    qn_buf b;
    const char *extra = error->kind == QN_API_BAD_KEY ? "WWW-Authenticate: Bearer\r\n"
                        : error->status == 429 || error->status == 503 ? "Retry-After: 1\r\n"
                                                                       : "";
    qn_buf_init(&b, MAX_ANSWER);
    if (qn_openai_write_error(&b, error, NULL) == QN_OK)
        qn_http_reply(call, error->status, "application/json", extra,
                      qn_str_make(qn_buf_text(&b), b.len));
    else
        qn_http_reply(call, 503, NULL, "", (qn_str){0});
    qn_buf_fini(&b);
}

static const qn_asset *asset_of(const struct qn_server *s, qn_str path)
{
    return s->o.no_web ? NULL : qn_asset_find(path);
}

static bool is_model(const struct qn_server *s, qn_str path)
{
    const qn_str prefix = QN_STR("/v1/models/");
    return qn_str_has_prefix(path, prefix) && path.n > prefix.n && s->m.id;
}

/* Errors: NOT_FOUND, METHOD, or what is wrong with the announced body. */
static qn_code judge(const struct qn_server *s, const qn_http_request *r, qn_api_error *error)
{
    const int at = find(r->path);
    const bool known = at >= 0 || is_model(s, r->path) || asset_of(s, r->path);
    const bool post = at >= 0 && routes[at].post;
    const bool reads = qn_str_eq_z(r->method, "GET") || qn_str_eq_z(r->method, "HEAD");
    QN_TRY(qn_access_check(&s->access, r, error));
    if (!known)
        return qn_api_fail(error, QN_API_NOT_FOUND, NULL, "there is no %.*s here",
                           QN_STR_ARG(r->path));
    if (post ? !qn_str_eq_z(r->method, "POST") : !reads)
        return qn_api_fail(error, QN_API_METHOD, NULL, "method %.*s on %.*s, expected %s",
                           QN_STR_ARG(r->method), QN_STR_ARG(r->path), post ? "POST" : "GET");
    if (s->draining && post)
        return qn_api_fail(error, QN_API_CLOSING, NULL, "the server is shutting down");
    if (r->length > s->limits.body_bytes)
        return qn_api_fail(error, QN_API_TOO_LARGE, NULL, "the body has %llu bytes, at most %zu",
                           (unsigned long long)r->length, s->limits.body_bytes);
    return QN_OK;
}

void qn_route_headers(void *ctx, qn_http_call *call, const qn_http_request *r)
{
    struct qn_server *s = ctx;
    qn_api_error error = {0};
    if (judge(s, r, &error) == QN_OK) return;
    s->requests[1]++;
    qn_reply_error(call, &error);
}

/* No request: nothing is known of it but what is wrong. */
void qn_route_bad(void *ctx, qn_http_call *call, int status)
{
    struct qn_server *s = ctx;
    static const struct {
        int status;
        qn_api_kind kind;
        const char *text;
    } all[] = {
        {400, QN_API_BAD_REQUEST, "this is no HTTP/1.1 request"},
        {408, QN_API_TIMEOUT, "the request took too long to arrive"},
        {413, QN_API_TOO_LARGE, "the body is larger than this server takes"},
        {414, QN_API_TARGET, "the path is longer than this server takes"},
        {431, QN_API_HEADERS, "the headers are more than this server takes"},
        {503, QN_API_NOMEM, "no memory for another request"},
        {505, QN_API_VERSION, "HTTP/1.1 is spoken here"},
    };
    qn_api_error error = {0};
    size_t i = 0;
    while (i + 1 < sizeof all / sizeof all[0] && all[i].status != status) i++;
    (void)qn_api_fail(&error, all[i].kind, NULL, "%s", all[i].text);
    s->requests[1]++;
    qn_reply_error(call, &error);
}

static qn_openai_model describe(const struct qn_server *s)
{
    qn_request_sampling both;
    qn_openai_model m = {0};
    qn_api_resolve(&both, NULL, &s->m.flags, &s->recipe, QN_API_UNSAID);
    m.id = qn_str_z(s->m.id);
    m.owned_by = QN_STR("quern");
    m.created = s->created;
    m.context_window = s->context;
    m.has_template = qn_chat_available(s);
    m.resident = m.current = true;
    m.set = (s->recipe.set | s->m.flags.set) & (QN_SET_TEMPERATURE | QN_SET_TOP_P | QN_SET_TOP_K);
    m.temperature = both.temperature;
    m.top_p = both.top_p;
    m.top_k = both.top_k;
    return m;
}

static qn_code write_metrics(qn_buf *b, struct qn_server *s, qn_err *err)
{
    quern_engine_stats e = {.size = sizeof e};
    QN_TRY(quern_engine_get_stats(s->m.engine, &e, err));
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"quern_requests_running", "gauge", "requests in the engine's steps", e.running},
        {"quern_requests_waiting", "gauge", "requests waiting for a place", e.waiting},
        {"quern_calls_open", "gauge", "calls not answered to the end", (double)s->n_jobs},
        {"quern_steps_total", "counter", "steps of the engine", (double)e.steps},
        {"quern_prompt_tokens_total", "counter", "tokens of prompts", (double)e.prompt_tokens},
        {"quern_cached_tokens_total", "counter", "of those, tokens from prefixes",
         (double)e.cached_tokens},
        {"quern_completion_tokens_total", "counter", "generated tokens",
         (double)e.completion_tokens},
        {"quern_busy_seconds_total", "counter", "seconds spent in steps", e.busy_s},
        {"quern_kv_bytes", "gauge", "most bytes of keys and values", (double)e.kv_bytes},
        {"quern_kv_used_bytes", "gauge", "bytes of keys and values in use",
         (double)e.kv_used_bytes},
        {"quern_live_bytes", "gauge", "bytes held by the process",
         (double)quern_memory_now().live_bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        QN_TRY(qn_buf_printf(b, err, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", rows[i].name,
                             rows[i].help, rows[i].name, rows[i].type, rows[i].name,
                             rows[i].value));
    return qn_buf_printf(b, err,
                         "# HELP quern_requests_total calls by how they ended\n"
                         "# TYPE quern_requests_total counter\n"
                         "quern_requests_total{outcome=\"answered\"} %llu\n"
                         "quern_requests_total{outcome=\"refused\"} %llu\n"
                         "quern_requests_total{outcome=\"left\"} %llu\n",
                         (unsigned long long)s->requests[0], (unsigned long long)s->requests[1],
                         (unsigned long long)s->requests[2]);
}

static void reply_asset(qn_http_call *call, const qn_asset *a, qn_str if_none_match)
{
    char extra[768];
    const bool same = qn_asset_matches(a, if_none_match);
    snprintf(extra, sizeof extra,
             "ETag: %s\r\nCache-Control: %s\r\nContent-Security-Policy: %s\r\n"
             "Referrer-Policy: no-referrer\r\n",
             a->etag, QN_ASSET_CACHE, QN_ASSET_CSP);
    qn_http_reply(call, same ? 304 : 200, a->mime, extra,
                  qn_str_make((const char *)a->bytes, qn_asset_bytes(a)));
}

static qn_code write_answer(qn_buf *b, struct qn_server *s, qn_str path, route is,
                            qn_api_error *error)
{
    qn_err err = {0};
    qn_code rc = QN_OK;
    const qn_openai_model m = describe(s);
    const size_t n = sizeof endpoints / sizeof endpoints[0];
    if (is == ROUTE_HEALTH)
        rc = qn_openai_write_health(b, &err);
    else if (is == ROUTE_INDEX)
        rc = qn_openai_write_index(b, quern_version(), m.id, endpoints, n, &err);
    else if (is == ROUTE_MODELS)
        rc = qn_openai_write_models(b, &m, 1, &err);
    else if (is == ROUTE_METRICS)
        rc = write_metrics(b, s, &err);
    else if (qn_str_eq_z(qn_str_slice(path, 11, path.n), s->m.id))
        rc = qn_openai_write_model(b, &m, &err);
    else
        return qn_api_fail(error, QN_API_NO_MODEL, NULL, "there is no model \"%.*s\"; %s is served",
                           QN_STR_ARG(qn_str_slice(path, 11, path.n)), s->m.id);
    return rc == QN_OK ? QN_OK : qn_api_fail_lib(error, &err);
}

void qn_route_request(void *ctx, qn_http_call *call, const qn_http_request *r)
{
    struct qn_server *s = ctx;
    const int at = find(r->path);
    const route is = at >= 0 ? routes[at].is : ROUTE_NONE;
    const qn_asset *a = at < 0 ? asset_of(s, r->path) : NULL;
    qn_api_error error = {0};
    qn_buf b;
    if (is == ROUTE_JOB) {
        qn_task_start(s, call, routes[at].endpoint, r->body);
        return;
    }
    if (a) {
        reply_asset(call, a, r->if_none_match);
        return;
    }
    qn_buf_init(&b, MAX_ANSWER);
    if (write_answer(&b, s, r->path, is, &error) != QN_OK)
        qn_reply_error(call, &error);
    else
        qn_http_reply(call, 200,
                      is == ROUTE_METRICS ? "text/plain; version=0.0.4; charset=utf-8"
                                          : "application/json",
                      "", qn_str_make(qn_buf_text(&b), b.len));
    qn_buf_fini(&b);
}
