/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - building and checking events; as in request.c the builder ends by reading. */
#include "wire/event.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/wire_int.h"

enum { MAX_STATE = 1 << 16, MAX_MSG = 4096 };

static qn_code check_usage(const qn_walk *w, const qn_usage *u)
{
    if (u->reserved) return qn_wire_bad(w, "usage.reserved", u->reserved, 0);
    return qn_wire_range(w, "usage.cached", u->cached, 0, u->prompt);
}

static qn_code check_token(qn_walk *w, const qn_event_token *e)
{
    const bool has = (e->flags & QN_EVENT_HAS_LOGPROB) != 0;
    w->pos = sizeof *e;
    QN_TRY(qn_wire_range(w, "flags", e->flags, 0, QN_EVENT_FLAGS));
    QN_TRY(qn_wire_number(w, "logprob", e->logprob, has ? -INFINITY : 0, has ? FLT_MAX : 0));
    QN_TRY(qn_wire_take(w, "top", e->top, sizeof(qn_event_top), has ? QN_REQUEST_MAX_LOGPROBS : 0));
    for (uint32_t i = 0; i < e->top.n; i++)
        QN_TRY(qn_wire_number(w, "top logprob", qn_event_tops(e)[i].logprob, -INFINITY,
                              i ? qn_event_tops(e)[i - 1].logprob : FLT_MAX));
    return qn_wire_take(w, "state", e->state, 1, MAX_STATE);
}

static qn_code check_done(qn_walk *w, const qn_event_done *e)
{
    w->pos = sizeof *e;
    QN_TRY(qn_wire_range(w, "finish", e->finish, QN_FINISH_STOP, QN_FINISH_CANCELLED));
    if (e->stop_text != UINT32_MAX)
        QN_TRY(qn_wire_range(w, "stop_text", e->stop_text, 0, QN_REQUEST_MAX_STOPS - 1));
    return check_usage(w, &e->usage);
}

static qn_code check_error(qn_walk *w, const qn_event_error *e)
{
    w->pos = sizeof *e;
    QN_TRY(qn_wire_range(w, "code", e->code, 1, QUERN_CODE_COUNT - 1));
    if (e->reserved) return qn_wire_bad(w, "reserved", e->reserved, 0);
    QN_TRY(check_usage(w, &e->usage));
    return qn_wire_take_text(w, "msg", e->msg, MAX_MSG);
}

static size_t fixed_bytes(uint32_t kind)
{
    switch (kind) {
    case QN_EVENT_TOKEN:
        return sizeof(qn_event_token);
    case QN_EVENT_DONE:
        return sizeof(qn_event_done);
    case QN_EVENT_ERROR:
        return sizeof(qn_event_error);
    default:
        return 0;
    }
}

qn_code qn_event_read(const qn_event_head **out, const void *bytes, size_t n, qn_err *err)
{
    qn_walk w = {.what = "event", .err = err};
    *out = NULL;
    QN_TRY(qn_wire_open(&w, bytes, n, QN_EVENT_MAGIC, QN_EVENT_VERSION, QN_EVENT_MAX_BYTES));
    const uint32_t kind = ((const qn_wire_head *)bytes)->kind;
    const size_t fixed = fixed_bytes(kind);
    if (fixed == 0) return qn_wire_range(&w, "kind", kind, QN_EVENT_TOKEN, QN_EVENT_ERROR);
    if (n < fixed) return qn_wire_bad(&w, "bytes", n, fixed);
    const qn_event_head *e = bytes;
    QN_TRY(qn_wire_range(&w, "choice", e->choice, 0, QN_REQUEST_MAX_CHOICES - 1));
    if (kind == QN_EVENT_TOKEN)
        QN_TRY(check_token(&w, bytes));
    else if (kind == QN_EVENT_DONE)
        QN_TRY(check_done(&w, bytes));
    else
        QN_TRY(check_error(&w, bytes));
    QN_TRY(qn_wire_done(&w));
    *out = e;
    return QN_OK;
}

static void set_head(qn_wire_head *h, qn_event_kind kind)
{
    *h = (qn_wire_head){.magic = QN_EVENT_MAGIC, .version = QN_EVENT_VERSION, .kind = kind};
}

/* Puts the fixed part in its final form, sets the length and has the reader look at it all. */
static qn_code finish(qn_buf *out, size_t start, const void *fixed, size_t n, qn_err *err)
{
    const qn_event_head *checked = NULL;
    memcpy(out->data + start, fixed, n);
    QN_TRY(qn_wire_seal(out, start, QN_EVENT_MAX_BYTES, err));
    return qn_event_read(&checked, out->data + start, out->len - start, err);
}

qn_code qn_event_build_token(qn_buf *out, const qn_event_token *e, const qn_event_top *top,
                             size_t n_top, const void *state, size_t state_bytes, qn_err *err)
{
    qn_code rc = QN_OK;
    const size_t start = out->len;
    qn_event_token t = *e;
    set_head(&t.head.head, QN_EVENT_TOKEN);
    QN_TRY_OUT(qn_wire_start(out, &t, sizeof t, err));
    QN_TRY_OUT(qn_wire_put(out, start, &t.top, top, n_top, sizeof *top, err));
    QN_TRY_OUT(qn_wire_put(out, start, &t.state, state, state_bytes, 1, err));
    QN_TRY_OUT(finish(out, start, &t, sizeof t, err));
out:
    return qn_wire_verdict(out, start, rc, err);
}

qn_code qn_event_build_done(qn_buf *out, const qn_event_done *e, qn_err *err)
{
    qn_code rc = QN_OK;
    const size_t start = out->len;
    qn_event_done d = *e;
    set_head(&d.head.head, QN_EVENT_DONE);
    QN_TRY_OUT(qn_wire_start(out, &d, sizeof d, err));
    QN_TRY_OUT(finish(out, start, &d, sizeof d, err));
out:
    return qn_wire_verdict(out, start, rc, err);
}

qn_code qn_event_build_error(qn_buf *out, const qn_event_error *e, qn_str msg, qn_err *err)
{
    qn_code rc = QN_OK;
    const size_t start = out->len;
    qn_event_error x = *e;
    set_head(&x.head.head, QN_EVENT_ERROR);
    QN_TRY_OUT(qn_wire_start(out, &x, sizeof x, err));
    QN_TRY_OUT(qn_wire_put(out, start, &x.msg, msg.p, msg.n, 1, err));
    QN_TRY_OUT(finish(out, start, &x, sizeof x, err));
out:
    return qn_wire_verdict(out, start, rc, err);
}
