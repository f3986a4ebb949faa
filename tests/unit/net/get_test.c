/* SPDX-License-Identifier: Apache-2.0 */
/* get_test.c - one GET against a stand-in: whole, cut, redirected, refused. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "kit_hub.h"
#include "net/net.h"
#include "qt.h"

#define REPO "org/net"
#define TOKEN "hf_tellnobody"

typedef struct world {
    kit_hub *hub;
    qn_net *net;
    qn_buf body;
    qn_net_answer answer, head;
    qn_err err;
    uint32_t heads, ticks, stop_at; /* stop_at: the piece that ends it; 0: none */
    uint32_t pieces;
} world;

static qn_code on_head(void *ctx, const qn_net_answer *a, qn_err *err)
{
    world *w = ctx;
    (void)err;
    w->heads++;
    w->head = *a;
    return QN_OK;
}

static qn_code on_body(void *ctx, const void *bytes, size_t n, qn_err *err)
{
    world *w = ctx;
    if (++w->pieces == w->stop_at) return qn_fail(err, QN_E_CANCELLED, "stopped");
    return qn_buf_append(&w->body, bytes, n, err);
}

static qn_code on_tick(void *ctx, qn_err *err)
{
    (void)err;
    ((world *)ctx)->ticks++;
    return QN_OK;
}

static bool open_world(qt *t, world *w, qn_net_options opt)
{
    *w = (world){.hub = kit_hub_start(REPO, 0)};
    opt.agent = "quern/test";
    qn_buf_init(&w->body, 64 << 20);
    if (!QT_OK(t, w->hub != NULL) || !QT_EQ(t, qn_net_open(&w->net, &opt, &w->err), QN_OK))
        return false;
    kit_hub_noise(w->hub, "a.bin", 300000, 1);
    return true;
}

static void close_world(world *w)
{
    qn_net_close(w->net);
    kit_hub_stop(w->hub);
    qn_buf_fini(&w->body);
}

static qn_code get(world *w, uint64_t from, const char *token)
{
    char url[256];
    snprintf(url, sizeof url, "%s/" REPO "/resolve/x/a.bin", kit_hub_endpoint(w->hub));
    const qn_net_request r = {.url = url,
                              .bearer = token,
                              .from = from,
                              .head = on_head,
                              .body = on_body,
                              .tick = on_tick,
                              .ctx = w};
    qn_buf_truncate(&w->body, 0);
    w->heads = w->pieces = w->ticks = 0;
    w->err = (qn_err){.code = QN_OK};
    return qn_net_get(w->net, &r, &w->answer, &w->err);
}

static bool has_rest(const world *w, size_t from)
{
    size_t n = 0;
    const uint8_t *want = kit_hub_bytes(w->hub, "a.bin", &n);
    return w->body.len == n - from && memcmp(w->body.data, want + from, n - from) == 0;
}

static void bytes_come_whole_and_from_the_middle(qt *t)
{
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    QT_EQ(t, get(&w, 0, NULL), QN_OK);
    QT_OK(t, has_rest(&w, 0) && w.heads == 1 && w.head.status == 200 && w.head.bytes == 300000);
    QT_OK(t, strstr(kit_hub_last(w.hub, "a.bin"), "\r\nUser-Agent: quern/test\r\n"));
    QT_OK(t, !strstr(kit_hub_last(w.hub, "a.bin"), "Range:") && !kit_hub_tokens_seen(w.hub));
    QT_EQ(t, get(&w, 1234, TOKEN), QN_OK);
    QT_OK(t, has_rest(&w, 1234) && w.head.status == 206 && w.head.range.good);
    QT_OK(t, w.head.range.first == 1234 && w.head.range.total == 300000);
    QT_OK(t, strstr(kit_hub_last(w.hub, "a.bin"), "\r\nRange: bytes=1234-\r\n"));
    QT_OK(t, strstr(kit_hub_last(w.hub, "a.bin"), "\r\nAuthorization: Bearer " TOKEN "\r\n"));
    kit_hub_fault(w.hub, (kit_hub_faults){.chunked = true});
    QT_EQ(t, get(&w, 0, NULL), QN_OK);
    QT_OK(t, has_rest(&w, 0) && w.head.bytes == UINT64_MAX);
    QT_OK(t, w.ticks > 0);
    close_world(&w);
}

static void other_statuses_are_answers_without_a_body(qt *t)
{
    static const int statuses[] = {400, 401, 403, 404, 416, 429, 500, 503};
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    for (size_t i = 0; i < QT_LEN(statuses); i++) {
        kit_hub_fault(w.hub, (kit_hub_faults){.status = statuses[i], .retry_after_s = 7});
        QT_EQ(t, get(&w, 0, NULL), QN_OK);
        QT_OK(t, w.answer.status == statuses[i] && w.heads == 0 && w.pieces == 0);
        QT_EQ(t, w.answer.retry_after_s, 7);
    }
    close_world(&w);
}

static void a_lost_connection_may_pass(qt *t)
{
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    kit_hub_fault(w.hub, (kit_hub_faults){.cut_after = 1000});
    QT_EQ(t, get(&w, 0, NULL), QN_E_IO);
    QT_OKF(t, w.answer.passing && strstr(w.err.msg, "lost"), "%s", w.err.msg);
    QT_OK(t, w.body.len <= 1000);
    kit_hub_fault(w.hub, (kit_hub_faults){.chunked = true, .cut_after = 1000});
    QT_EQ(t, get(&w, 0, NULL), QN_E_IO);
    QT_OK(t, w.answer.passing);
    kit_hub_fault(w.hub, (kit_hub_faults){.length_off = 5000});
    QT_EQ(t, get(&w, 0, NULL), QN_E_IO);
    QT_OK(t, w.answer.passing);
    close_world(&w);
}

static void what_is_no_http_is_refused(qt *t)
{
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    kit_hub_fault(w.hub, (kit_hub_faults){.plain_words = true});
    QT_EQ(t, get(&w, 0, NULL), QN_E_FORMAT);
    QT_OKF(t, strstr(w.err.msg, "127.0.0.1"), "%s", w.err.msg);
    kit_hub_fault(w.hub, (kit_hub_faults){.head_bytes = 290 << 10});
    QT_OK(t, get(&w, 0, NULL) != QN_OK && w.heads == 0);
    close_world(&w);
}

static void a_server_that_falls_silent_is_left(qt *t)
{
    world w;
    if (!open_world(t, &w, (qn_net_options){.stall_ms = 1000})) return;
    kit_hub_fault(w.hub, (kit_hub_faults){.stall = true});
    QT_EQ(t, get(&w, 0, NULL), QN_E_IO);
    QT_OKF(t, strstr(w.err.msg, "no byte for 1 s"), "%s", w.err.msg);
    QT_OK(t, !w.answer.passing && w.body.len < 300000);
    close_world(&w);
}

static void a_callback_ends_the_call_with_its_code(qt *t)
{
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    kit_hub_fault(w.hub, (kit_hub_faults){.slow_ms = 5});
    w.stop_at = 2;
    QT_EQ(t, get(&w, 0, NULL), QN_E_CANCELLED);
    QT_STR(t, w.err.msg, "stopped");
    QT_EQ(t, w.pieces, 2);
    close_world(&w);
}

static void redirects_keep_the_range_and_count_to_five(qt *t)
{
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    for (uint32_t hops = 1; hops <= 6; hops++) {
        kit_hub_fault(w.hub, (kit_hub_faults){.redirects = hops});
        const qn_code rc = get(&w, 77, TOKEN);
        QT_EQ(t, rc, hops <= 5 ? QN_OK : QN_E_FORMAT);
        QT_EQ(t, kit_hub_asked(w.hub, "a.bin"), hops <= 5 ? hops + 1 : 6);
        QT_EQ(t, kit_hub_tokens_seen(w.hub), hops <= 5 ? hops + 1 : 6); /* the same origin */
        if (rc == QN_OK) QT_OK(t, has_rest(&w, 77));
    }
    QT_OKF(t, strstr(w.err.msg, "more than 5"), "%s", w.err.msg);
    close_world(&w);
}

static void the_token_does_not_follow_to_another_port(qt *t)
{
    world w;
    kit_hub *other = kit_hub_start(REPO, 0);
    if (!open_world(t, &w, (qn_net_options){0}) || !QT_OK(t, other != NULL)) return;
    kit_hub_noise(other, "a.bin", 300000, 1);
    kit_hub_fault(w.hub, (kit_hub_faults){.away = kit_hub_endpoint(other)});
    QT_EQ(t, get(&w, 99, TOKEN), QN_OK);
    QT_OK(t, has_rest(&w, 99));
    QT_OK(t, kit_hub_tokens_seen(w.hub) == 1 && kit_hub_asked(other, "a.bin") == 1);
    QT_EQ(t, kit_hub_tokens_seen(other), 0);
    QT_OK(t, strstr(kit_hub_last(other, "a.bin"), "\r\nRange: bytes=99-\r\n"));
    QT_OK(t, !strstr(kit_hub_last(other, "a.bin"), TOKEN));
    kit_hub_stop(other);
    close_world(&w);
}

static void redirects_to_bad_places_are_refused(qt *t)
{
    static const char *const places[] = {"http://hub.example", "ftp://127.0.0.1",
                                         "file:///etc/hosts?", "http://u:p@127.0.0.1:1",
                                         "gopher://127.0.0.1"};
    world w;
    if (!open_world(t, &w, (qn_net_options){0})) return;
    for (size_t i = 0; i < QT_LEN(places); i++) {
        kit_hub_fault(w.hub, (kit_hub_faults){.away = places[i]});
        QT_OKF(t, get(&w, 0, TOKEN) == QN_E_FORMAT, "%s: %d %s", places[i], w.err.code, w.err.msg);
        QT_OK(t, w.heads == 0 && !strstr(w.err.msg, TOKEN));
    }
    close_world(&w);
}

static bool nobody(void *ctx, const struct sockaddr *a)
{
    uint32_t *asked = ctx;
    ++*asked;
    return a->sa_family != AF_INET ||
           ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr != htonl(INADDR_LOOPBACK);
}

static void an_address_rule_sees_what_is_connected_to(qt *t)
{
    world w;
    uint32_t asked = 0;
    if (!open_world(t, &w, (qn_net_options){.may_connect = nobody, .ctx = &asked})) return;
    QT_EQ(t, get(&w, 0, NULL), QN_E_INVAL);
    QT_OKF(t, strstr(w.err.msg, "may not be asked") && asked == 1, "%s", w.err.msg);
    QT_EQ(t, kit_hub_asked(w.hub, ""), 0);
    close_world(&w);
}

static void what_cannot_be_asked_is_told_at_once(qt *t)
{
    world w;
    char url[128];
    char token[5000];
    qn_net_request r = {.url = url, .head = on_head, .body = on_body, .ctx = &w};
    if (!open_world(t, &w, (qn_net_options){0})) return;
    snprintf(url, sizeof url, "http://hub.example/a");
    QT_EQ(t, qn_net_get(w.net, &r, &w.answer, &w.err), QN_E_INVAL);
    QT_OKF(t, strstr(w.err.msg, "plain http"), "%s", w.err.msg);
    snprintf(url, sizeof url, "no url");
    QT_EQ(t, qn_net_get(w.net, &r, &w.answer, &w.err), QN_E_INVAL);
    memset(token, 'x', sizeof token - 1);
    token[sizeof token - 1] = '\0';
    QT_EQ(t, get(&w, 0, token), QN_E_INVAL);
    QT_EQ(t, get(&w, 0, "two\r\nlines"), QN_E_INVAL);
    QT_OK(t, !strstr(w.err.msg, "lines"));
    snprintf(url, sizeof url, "%s/a", kit_hub_endpoint(w.hub));
    kit_hub_stop(w.hub); /* nobody listens there now */
    w.hub = NULL;
    QT_EQ(t, qn_net_get(w.net, &r, &w.answer, &w.err), QN_E_IO);
    QT_OK(t, w.answer.status == 0 && !w.answer.passing);
    close_world(&w);
}

/* Our own allocations; libcurl's are not ours to fail. */
static void open_survives_every_failed_allocation(qt *t)
{
    qn_code rc = QN_E_NOMEM;
    const size_t live = qn_alloc_live();
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_net *net = NULL;
        qn_alloc_fail_after(n);
        rc = qn_net_open(&net, &(qn_net_options){.agent = "quern/test"}, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK ? net != NULL : rc == QN_E_NOMEM && !net);
        qn_net_close(net);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(bytes_come_whole_and_from_the_middle), QT(other_statuses_are_answers_without_a_body),
        QT(a_lost_connection_may_pass), QT(what_is_no_http_is_refused),
        QT(a_server_that_falls_silent_is_left), QT(a_callback_ends_the_call_with_its_code),
        QT(redirects_keep_the_range_and_count_to_five),
        QT(the_token_does_not_follow_to_another_port), QT(redirects_to_bad_places_are_refused),
        QT(an_address_rule_sees_what_is_connected_to), QT(what_cannot_be_asked_is_told_at_once),
        QT(open_survives_every_failed_allocation))
