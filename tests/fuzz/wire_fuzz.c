/* SPDX-License-Identifier: Apache-2.0 */
/* wire_fuzz.c - any bytes as a request, as an event and as the start of a stream. What is refused names
 * a reason; what is taken can be read through to its last byte, and built anew it is the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

static void same(const qn_buf *b, const void *block, size_t n)
{
    want(b->len == n && memcmp(b->data, block, n) == 0);
}

static void rebuild_request(const qn_request *r, size_t n)
{
    qn_str stops[QN_REQUEST_MAX_STOPS], names[QN_REQUEST_MAX_ADAPTERS];
    float scales[QN_REQUEST_MAX_ADAPTERS];
    qn_request_in in;
    qn_buf b;
    qn_request_in_init(&in);
    for (uint32_t i = 0; i < r->stop_text.n; i++) stops[i] = qn_request_stop_text(r, i);
    for (uint32_t i = 0; i < r->adapters.n; i++) {
        names[i] = qn_request_adapter_name(r, i);
        scales[i] = qn_request_adapter_scale(r, i);
    }
    in = (qn_request_in){.id = r->id,
                         .cache_space = r->cache_space,
                         .flags = r->flags,
                         .priority = r->priority,
                         .credits = r->credits,
                         .n_choices = r->n_choices,
                         .max_tokens = r->max_tokens,
                         .min_tokens = r->min_tokens,
                         .logprobs = r->logprobs,
                         .n_prompt = r->n_prompt,
                         .tokens = qn_request_tokens(r),
                         .n_tokens = r->tokens.n,
                         .biases = qn_request_biases(r),
                         .n_biases = r->biases.n,
                         .stop_ids = qn_request_stop_ids(r),
                         .n_stop_ids = r->stop_ids.n,
                         .stop_text = stops,
                         .n_stop_text = r->stop_text.n,
                         .adapters = names,
                         .adapter_scales = scales,
                         .n_adapters = r->adapters.n,
                         .media = qn_request_medias(r),
                         .n_media = r->media.n,
                         .state = qn_request_state(r),
                         .state_bytes = r->state.n,
                         .sampling = r->sampling};
    qn_buf_init(&b, 1 << 28);
    want(qn_request_build(&b, &in, NULL) == QN_OK);
    same(&b, r, n);
    qn_buf_fini(&b);
}

static void rebuild_event(const qn_event_head *h, size_t n)
{
    qn_buf b;
    qn_code rc = QN_E_INTERNAL;
    qn_buf_init(&b, 1 << 28);
    if (h->head.kind == QN_EVENT_TOKEN) {
        const qn_event_token *e = (const void *)h;
        rc = qn_event_build_token(&b, e, qn_event_tops(e), e->top.n, qn_event_state(e), e->state.n,
                                  NULL);
    } else if (h->head.kind == QN_EVENT_DONE) {
        rc = qn_event_build_done(&b, (const void *)h, NULL);
    } else {
        const qn_event_error *e = (const void *)h;
        rc = qn_event_build_error(&b, e, qn_event_msg(e), NULL);
    }
    want(rc == QN_OK);
    same(&b, h, n);
    qn_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const qn_request *r = NULL;
    const qn_event_head *h = NULL;
    size_t block = 0;
    qn_err err = {0};
    uint8_t *copy = qn_alloc(n); /* aligned, and exactly n bytes */
    want(copy != NULL);
    if (n) memcpy(copy, data, n);
    if (qn_request_read(&r, copy, n, &err) == QN_OK)
        rebuild_request(r, n);
    else
        want(!r && err.msg[0]);
    err.msg[0] = '\0';
    if (qn_event_read(&h, copy, n, &err) == QN_OK)
        rebuild_event(h, n);
    else
        want(!h && err.msg[0]);
    const qn_code rc = qn_wire_block_bytes(&block, copy, n, &err);
    want(rc != QN_OK || (n < sizeof(qn_wire_head)) == (block == 0));
    want((r == NULL && h == NULL) || (rc == QN_OK && block == n));
    qn_free(copy);
    return 0;
}
