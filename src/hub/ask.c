/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - one question to a hub: what its status means, and whether to ask once more. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "hub/pull_int.h"

enum { TELL_MS = 100, FIRST_WAIT_MS = 500, SLICE_MS = 50 };

qn_code qn_hub_talk_open(qn_hub_talk *k, const qn_hub *h, const char *repo,
                         const qn_hub_report *report, qn_err *err)
{
    const qn_net_options opt = {.agent = "quern/" QUERN_VERSION, .stall_ms = h->stall_ms};
    *k = (qn_hub_talk){.hub = h, .repo = repo, .report = report, .told_ns = qn_clock_ns()};
    k->at = (quern_get_progress){.size = sizeof k->at, .file = repo, .step = "asking", .count = 1};
    const qn_code rc = qn_net_check_endpoint(h->endpoint, err);
    if (rc != QN_OK) return qn_wrap(err, rc, "endpoint");
    return qn_net_open(&k->net, &opt, err);
}

void qn_hub_talk_close(qn_hub_talk *k)
{
    qn_net_close(k->net);
    k->net = NULL;
}

qn_code qn_hub_talk_tell(qn_hub_talk *k, qn_err *err)
{
    k->told_ns = qn_clock_ns();
    return qn_hub_tell(k->report, &k->at, err);
}

qn_code qn_hub_talk_tick(qn_hub_talk *k, qn_err *err)
{
    if (qn_clock_ns() - k->told_ns < TELL_MS * 1000000ull) return QN_OK;
    return qn_hub_talk_tell(k, err);
}

static qn_code denied(const qn_hub_talk *k, int status, qn_err *err)
{
    const qn_hub *h = k->hub;
    if (h->token)
        return qn_fail(err, QN_E_DENIED,
                       "the token's owner may not read it (%d): if it is gated, its terms are at "
                       "%s/%s; HF_TOKEN holds the token",
                       status, h->endpoint, k->repo);
    return qn_fail(
        err, QN_E_DENIED,
        "private, gated or not there (%d): see %s/%s, accept its terms if it has any, and "
        "give a token of yours in HF_TOKEN",
        status, h->endpoint, k->repo);
}

static qn_code judge(const qn_hub_talk *k, qn_hub_try *try, const qn_net_answer *a, bool range,
                     qn_err *err)
{
    const int status = a->status;
    if ((status >= 200 && status < 300) || (status == 416 && range)) return QN_OK;
    if (status == 401 || status == 403) return denied(k, status, err);
    if (status == 404)
        return qn_fail(err, QN_E_NOTFOUND, "not at %s/%s%s", k->hub->endpoint, k->repo,
                       k->hub->token ? "" : "; if it is private, give a token in HF_TOKEN");
    try->passing = status == 429 || status >= 500;
    try->wait_s = a->retry_after_s;
    if (status == 429)
        return qn_fail(err, QN_E_AGAIN, "the hub has too many requests of yours (429)%s",
                       a->retry_after_s > QN_HUB_MAX_WAIT_S ? ", try again in a while" : "");
    return qn_fail(err, QN_E_IO, "the hub answers %d", status);
}

qn_code qn_hub_ask(qn_hub_talk *k, qn_net_request *r, qn_hub_try *try, qn_err *err)
{
    qn_net_answer a;
    r->bearer = k->hub->token;
    try->n++;
    try->passing = false;
    try->wait_s = 0;
    qn_code rc = qn_net_get(k->net, r, &a, err);
    try->status = a.status;
    if (rc != QN_OK) {
        try->passing = a.passing;
        return rc;
    }
    return judge(k, try, &a, r->from > 0, err);
}

qn_code qn_hub_again(qn_hub_talk *k, qn_hub_try *try, qn_code rc, qn_err *err)
{
    const uint64_t unit_ms = k->hub->retry_ms ? k->hub->retry_ms : FIRST_WAIT_MS;
    if (!try->passing || try->n >= QN_HUB_TRIES || try->wait_s > QN_HUB_MAX_WAIT_S) return rc;
    /* what the hub says is in seconds, two of our first waits */
    uint64_t wait_ms = try->wait_s ? 2 * unit_ms * try->wait_s : unit_ms << (try->n - 1);
    while (wait_ms > 0) {
        const uint64_t ms = wait_ms < SLICE_MS ? wait_ms : SLICE_MS;
        const struct timespec slice = {.tv_nsec = (long)(ms * 1000000)};
        (void)nanosleep(&slice, NULL);
        QN_TRY(qn_hub_talk_tick(k, err));
        wait_ms -= ms;
    }
    return QN_OK;
}
