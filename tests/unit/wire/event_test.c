/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/event.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "qt.h"
#include "wire/codec.h"

static const qn_event_top tops[] = {{7, -0.5f}, {9, -1.25f}, {3, -INFINITY}};

static qn_event_token token(void)
{
    qn_event_token e = {.token = 7, .flags = QN_EVENT_HAS_LOGPROB, .logprob = -0.5f};
    e.head.request = 0x1122334455667788;
    e.head.choice = 2;
    e.head.index = 31;
    e.cut_bytes = 4;
    e.text_offset = 120;
    return e;
}

static qn_event_done done(void)
{
    qn_event_done e = {.finish = QN_FINISH_LENGTH,
                       .stop_text = UINT32_MAX,
                       .seed = 42,
                       .numerics = 77,
                       .usage = {.prompt = 10, .cached = 9, .completion = 5}};
    e.head.request = 5;
    return e;
}

static qn_buf buffer(void)
{
    qn_buf b;
    qn_buf_init(&b, 1 << 16);
    return b;
}

static void token_events_round_trip(qt *t)
{
    qn_buf b = buffer();
    const qn_event_token in = token();
    const qn_event_head *h = NULL;
    QT_EQ(t, qn_event_build_token(&b, &in, tops, 3, "rest", 4, NULL), QN_OK);
    QT_EQ(t, qn_event_read(&h, b.data, b.len, NULL), QN_OK);
    if (!QT_OK(t, h && h->head.kind == QN_EVENT_TOKEN)) return;
    const qn_event_token *e = (const qn_event_token *)(const void *)h;
    QT_OK(t, h->request == in.head.request && h->choice == 2 && h->index == 31);
    QT_OK(t, e->token == 7 && e->logprob == -0.5f && e->text_offset == 120 && e->cut_bytes == 4);
    QT_OK(t, e->top.n == 3 && memcmp(qn_event_tops(e), tops, sizeof tops) == 0);
    QT_OK(t, e->state.n == 4 && memcmp(qn_event_state(e), "rest", 4) == 0);
    qn_buf_fini(&b);
}

static void done_events_round_trip(qt *t)
{
    qn_buf b = buffer();
    const qn_event_done in = done();
    const qn_event_head *h = NULL;
    QT_EQ(t, qn_event_build_done(&b, &in, NULL), QN_OK);
    QT_EQ(t, qn_event_read(&h, b.data, b.len, NULL), QN_OK);
    if (!QT_OK(t, h && h->head.kind == QN_EVENT_DONE)) return;
    const qn_event_done *e = (const qn_event_done *)(const void *)h;
    QT_OK(t, e->finish == QN_FINISH_LENGTH && e->stop_text == UINT32_MAX && e->seed == 42);
    QT_OK(t, e->numerics == 77 && memcmp(&e->usage, &in.usage, sizeof in.usage) == 0);
    qn_buf_fini(&b);
}

static void error_events_round_trip(qt *t)
{
    qn_buf b = buffer();
    const qn_event_error in = {.code = QUERN_E_LIMIT, .usage = {.prompt = 3}};
    const qn_event_head *h = NULL;
    QT_EQ(t, qn_event_build_error(&b, &in, QN_STR("context is full: caf\xC3\xA9"), NULL), QN_OK);
    QT_EQ(t, qn_event_build_error(&b, &in, QN_STR(""), NULL), QN_OK);
    size_t first = 0;
    QT_EQ(t, qn_wire_block_bytes(&first, b.data, b.len, NULL), QN_OK);
    QT_EQ(t, qn_event_read(&h, b.data, first, NULL), QN_OK);
    if (!QT_OK(t, h && h->head.kind == QN_EVENT_ERROR)) return;
    const qn_event_error *e = (const qn_event_error *)(const void *)h;
    QT_OK(t, e->code == QUERN_E_LIMIT && e->usage.prompt == 3);
    QT_OK(t, qn_str_eq_z(qn_event_msg(e), "context is full: caf\xC3\xA9"));
    QT_EQ(t, qn_event_read(&h, b.data + first, b.len - first, NULL), QN_OK);
    QT_OK(t, h && qn_event_msg((const qn_event_error *)(const void *)h).n == 0);
    qn_buf_fini(&b);
}

static void faulty_token_events_are_refused(qt *t)
{
    const size_t n = 11;
    for (size_t i = 0; i < n; i++) {
        qn_buf b = buffer();
        qn_err err = {0};
        qn_event_token e = token();
        qn_event_top top[3];
        size_t n_top = 3, n_state = 4;
        static const char state[70000];
        memcpy(top, tops, sizeof top);
        switch (i) {
        case 0:
            e.flags |= 1u << 20;
            break;
        case 1:
            e.logprob = NAN;
            break;
        case 2:
            e.logprob = INFINITY;
            break;
        case 3:
            e.flags = 0;
            break; /* logprobs without the flag */
        case 4:
            top[1].logprob = -0.25f;
            break;
        case 5:
            top[2].logprob = NAN;
            break;
        case 6:
            e.head.choice = 128;
            break;
        case 7:
            n_state = sizeof state;
            break;
        case 8:
            e.flags = 0;
            e.logprob = 0; /* the list alone */
            break;
        case 9:
            top[0].logprob = INFINITY;
            break;
        default:
            n_top = SIZE_MAX / 4;
            break;
        }
        const qn_code rc = qn_event_build_token(&b, &e, top, n_top, state, n_state, &err);
        QT_OKF(t, (rc == QN_E_INVAL || rc == QN_E_LIMIT) && b.len == 0 && err.msg[0],
               "case %zu: %s", i, quern_code_name(rc));
        qn_buf_fini(&b);
    }
}

static void faulty_done_and_error_events_are_refused(qt *t)
{
    qn_buf b = buffer();
    qn_event_done d = done();
    d.finish = 0;
    QT_EQ(t, qn_event_build_done(&b, &d, NULL), QN_E_INVAL);
    d.finish = 4;
    QT_EQ(t, qn_event_build_done(&b, &d, NULL), QN_E_INVAL);
    d = done();
    d.usage.cached = 11;
    QT_EQ(t, qn_event_build_done(&b, &d, NULL), QN_E_INVAL);
    d = done();
    d.stop_text = 1024;
    QT_EQ(t, qn_event_build_done(&b, &d, NULL), QN_E_INVAL);
    qn_event_error e = {.code = QUERN_OK};
    QT_EQ(t, qn_event_build_error(&b, &e, QN_STR("x"), NULL), QN_E_INVAL);
    e.code = QUERN_CODE_COUNT;
    QT_EQ(t, qn_event_build_error(&b, &e, QN_STR("x"), NULL), QN_E_INVAL);
    e.code = QUERN_E_IO;
    e.usage.reserved = 1;
    QT_EQ(t, qn_event_build_error(&b, &e, QN_STR("x"), NULL), QN_E_INVAL);
    e.usage.reserved = 0;
    QT_EQ(t, qn_event_build_error(&b, &e, QN_STR("\xFF"), NULL), QN_E_INVAL);
    e.reserved = 1;
    QT_EQ(t, qn_event_build_error(&b, &e, QN_STR("x"), NULL), QN_E_INVAL);
    QT_EQ(t, b.len, 0);
    qn_buf_fini(&b);
}

static void heads_from_elsewhere_are_refused(qt *t)
{
    static const struct {
        size_t at;
        uint32_t value;
        qn_code code;
        const char *word;
    } cases[] = {{0, QN_REQUEST_MAGIC, QN_E_FORMAT, "magic"},
                 {0, 0x51455654, QN_E_FORMAT, "magic"}, /* the other byte order */
                 {4, 2, QN_E_UNSUPPORTED, "version is 2, expected 1"},
                 {4, 0, QN_E_UNSUPPORTED, "version"},
                 {8, 0, QN_E_FORMAT, "bytes"},
                 {8, 8, QN_E_FORMAT, "bytes"},
                 {8, 0x7FFFFFF8, QN_E_LIMIT, "limit"},
                 {12, 0, QN_E_FORMAT, "kind"},
                 {12, 4, QN_E_FORMAT, "kind"},
                 {12, QN_EVENT_TOKEN, QN_E_FORMAT, ""}};
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        qn_buf b = buffer();
        const qn_event_done d = done();
        const qn_event_head *h = NULL;
        qn_err err = {0};
        QT_EQ(t, qn_event_build_done(&b, &d, NULL), QN_OK);
        memcpy(b.data + cases[i].at, &cases[i].value, 4);
        const qn_code rc = qn_event_read(&h, b.data, b.len, &err);
        QT_OKF(t, rc == cases[i].code && !h && strstr(err.msg, cases[i].word), "case %zu: %s", i,
               err.msg);
        qn_buf_fini(&b);
    }
}

static void every_shorter_event_is_refused(qt *t)
{
    qn_buf b = buffer();
    const qn_event_token e = token();
    size_t taken = 0;
    QT_EQ(t, qn_event_build_token(&b, &e, tops, 3, "rest", 4, NULL), QN_OK);
    for (size_t n = 0; n < b.len; n++) {
        const qn_event_head *h = NULL;
        uint8_t *copy = qn_alloc(n);
        memcpy(copy, b.data, n);
        if (n >= 16) memcpy(copy + 8, &(uint32_t){(uint32_t)n}, 4);
        taken += qn_event_read(&h, copy, n, NULL) == QN_OK;
        qn_free(copy);
    }
    QT_EQ(t, taken, 0);
    qn_buf_fini(&b);
}

static void build_survives_every_failed_allocation(qt *t)
{
    const qn_event_token e = token();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_buf b = buffer();
        qn_alloc_fail_after(n);
        rc = qn_event_build_token(&b, &e, tops, 3, "rest", 4, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && b.len == 0));
        qn_buf_fini(&b);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(token_events_round_trip), QT(done_events_round_trip), QT(error_events_round_trip),
        QT(faulty_token_events_are_refused), QT(faulty_done_and_error_events_are_refused),
        QT(heads_from_elsewhere_are_refused), QT(every_shorter_event_is_refused),
        QT(build_survives_every_failed_allocation))
