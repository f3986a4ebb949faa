/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - what the engine answers, one flat block an event: a token, the end, or a failure.
 *
 *     token* (done | error)      per request and choice; the index of a token counts from 0
 *
 * A stream that is resumed continues with the next index, so a receiver drops what it already has.
 * qn_event_build_* and qn_event_read are in wire/codec.h.
 *
 * Owner:  whoever holds the bytes. Thread: values only.
 */
#ifndef QN_WIRE_EVENT_H
#define QN_WIRE_EVENT_H
#include "wire/request.h"

enum { QN_EVENT_MAGIC = 0x54564551 /* "QEVT" */, QN_EVENT_VERSION = 1 };
enum { QN_EVENT_MAX_BYTES = 1 << 20 };
#define QN_EVENT_NO_OFFSET UINT64_MAX

typedef enum qn_event_kind {
    QN_EVENT_TOKEN = 1,
    QN_EVENT_DONE = 2,
    QN_EVENT_ERROR = 3
} qn_event_kind;

typedef enum qn_finish {
    QN_FINISH_STOP = 1,     /* an end-of-text id, a stop id, a stop string or a finished grammar */
    QN_FINISH_LENGTH = 2,   /* max_tokens or the end of the context */
    QN_FINISH_CANCELLED = 3 /* the caller went away */
} qn_finish;

typedef struct qn_event_head { /* the start of every event */
    qn_wire_head head;         /* kind says which struct this is */
    uint64_t request;          /* qn_request.id */
    uint32_t choice;
    uint32_t index; /* of the token within the completion; of the next one in done and error */
} qn_event_head;

typedef struct qn_event_top {
    uint32_t token;
    float logprob;
} qn_event_top;

enum { /* qn_event_token.flags */
       QN_EVENT_HAS_LOGPROB = 1u << 0,
       QN_EVENT_OF_PROMPT = 1u << 1, /* an echoed prompt token; index counts in the prompt */
       QN_EVENT_IS_STOP = 1u << 2,   /* a token that ended the completion: counted, not shown */
       QN_EVENT_FLAGS = (1u << 3) - 1
};

typedef struct qn_event_token {
    qn_event_head head;
    uint32_t token;
    uint32_t flags;
    float logprob; /* natural log, before any filter; meaningful with HAS_LOGPROB */
    /* At the end of the text up to and with this token, so many bytes are not output: a stop string
     * begins there. Tokens wholly inside one are IS_STOP. */
    uint32_t cut_bytes;
    uint64_t text_offset; /* bytes of output text before this token, or QN_EVENT_NO_OFFSET */
    qn_wire_ref top;      /* qn_event_top, most likely first */
    qn_wire_ref state;    /* bytes: sampler state that history and seed do not give (rule R6) */
} qn_event_token;

typedef struct qn_usage { /* tokens */
    uint32_t prompt;      /* media placeholders included */
    uint32_t cached;      /* of prompt, taken from a stored prefix */
    uint32_t completion;  /* the ending token included */
    uint32_t reserved;
} qn_usage;

typedef struct qn_event_done {
    qn_event_head head;
    uint32_t finish;    /* qn_finish */
    uint32_t stop_text; /* index of the stop string that matched, or UINT32_MAX */
    uint64_t seed;      /* what the draws were keyed with */
    uint64_t numerics;  /* numerics id of the arithmetic that made this */
    qn_usage usage;
} qn_event_done;

typedef struct qn_event_error {
    qn_event_head head;
    uint32_t code; /* quern_code, not OK */
    uint32_t reserved;
    qn_usage usage;  /* as far as it got */
    qn_wire_ref msg; /* UTF-8 bytes */
} qn_event_error;

/* Of checked blocks; borrowed. */
static inline const qn_event_top *qn_event_tops(const qn_event_token *e)
{
    return qn_wire_at(e, e->top);
}
static inline const void *qn_event_state(const qn_event_token *e)
{
    return qn_wire_at(e, e->state);
}
static inline qn_str qn_event_msg(const qn_event_error *e)
{
    return (qn_str){e->msg.n ? qn_wire_at(e, e->msg) : NULL, e->msg.n};
}

#endif
