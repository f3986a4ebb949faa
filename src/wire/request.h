/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - what one caller wants generated, as one flat block: no pointers, a version, every array
 * a byte offset and a count. All dialects, the library and the command line end here; the engine
 * reads nothing else.
 *
 *     [ qn_request | token ids | logit bias | stop ids | stop strings | adapters | media | ... ]
 *
 * A field that the caller left out is not in `set`: the engine then takes the server's flag, the
 * model's recipe or the built-in. qn_request_build (wire/codec.h) makes a block from qn_request_in,
 * qn_request_read checks one from outside; only a checked block may be used with the accessors.
 *
 * Owner:  whoever holds the bytes. Thread: values only.
 */
#ifndef QN_WIRE_REQUEST_H
#define QN_WIRE_REQUEST_H
#include "base/str.h"

enum { QN_REQUEST_MAGIC = 0x51455251 /* "QREQ" */, QN_REQUEST_VERSION = 1 };

/* Ceilings; a block beyond one is refused with LIMIT. */
enum {
    QN_REQUEST_MAX_BYTES = 256 << 20,
    QN_REQUEST_MAX_TOKENS = 1 << 24,
    QN_REQUEST_MAX_CHOICES = 128,
    QN_REQUEST_MAX_LOGPROBS = 64,
    QN_REQUEST_MAX_BIASES = 1 << 16,
    QN_REQUEST_MAX_STOPS = 1024, /* of each kind */
    QN_REQUEST_MAX_ADAPTERS = 64,
    QN_REQUEST_MAX_MEDIA = 4096,
    QN_REQUEST_MAX_PRIORITY = 1000 /* and not below its negative */
};

/* The start of every block on the wire. */
typedef struct qn_wire_head {
    uint32_t magic, version;
    uint32_t bytes; /* of the whole block, a multiple of 8 */
    uint32_t kind;  /* qn_event_kind in events; 0 in requests */
} qn_wire_head;

typedef struct qn_wire_ref { /* n elements `at` bytes from the start of the block, 8-byte aligned */
    uint32_t at, n;          /* at is 0 when n is 0 */
} qn_wire_ref;

enum { /* bits of qn_request_sampling.set: the caller said so */
       QN_SET_TEMPERATURE = 1u << 0,
       QN_SET_TOP_P = 1u << 1,
       QN_SET_TOP_K = 1u << 2,
       QN_SET_MIN_P = 1u << 3,
       QN_SET_REPETITION = 1u << 4,
       QN_SET_PRESENCE = 1u << 5,
       QN_SET_FREQUENCY = 1u << 6,
       QN_SET_REPETITION_CONTEXT = 1u << 7,
       QN_SET_PRESENCE_CONTEXT = 1u << 8,
       QN_SET_FREQUENCY_CONTEXT = 1u << 9,
       QN_SET_XTC = 1u << 10, /* probability and threshold together */
       QN_SET_MAX_TOKENS = 1u << 11,
       QN_SET_ALL = (1u << 12) - 1
};

typedef struct qn_request_sampling {
    uint64_t seed; /* meaningful when has_seed is 1; else the engine draws one and tells it */
    uint32_t has_seed;
    uint32_t set;             /* QN_SET_ bits */
    float temperature;        /* >= 0; 0 is greedy */
    float top_p, min_p;       /* [0, 1] */
    uint32_t top_k;           /* 0: off */
    float repetition_penalty; /* >= 0; 0 and 1: off */
    float presence_penalty, frequency_penalty;
    uint32_t repetition_context, presence_context, frequency_context; /* tokens; 0: all */
    float xtc_probability, xtc_threshold;                             /* [0, 1] */
} qn_request_sampling;

enum {                                       /* qn_request.flags */
       QN_REQUEST_ECHO = 1u << 0,            /* the prompt comes back as events first */
       QN_REQUEST_PROMPT_LOGPROBS = 1u << 1, /* with logprobs of the prompt's tokens */
       QN_REQUEST_IGNORE_EOS = 1u << 2,      /* end-of-text ids do not stop */
       QN_REQUEST_NO_CACHE = 1u << 3,        /* neither use nor leave a prefix */
       QN_REQUEST_FLAGS = (1u << 4) - 1
};

typedef struct qn_request_bias {
    uint32_t token;
    float bias; /* finite; added to the logit */
} qn_request_bias;

typedef struct qn_request_adapter {
    qn_wire_ref name; /* UTF-8 bytes, at least one */
    float scale;      /* finite */
    uint32_t reserved;
} qn_request_adapter;

typedef struct qn_request_media { /* what stands at tokens [begin, end) of the prompt */
    uint8_t digest[32];           /* SHA-256 of the decoded media and of how it was prepared */
    uint32_t begin, end;          /* spans ascend and do not overlap */
} qn_request_media;

typedef struct qn_request {
    qn_wire_head head;
    uint64_t id;          /* the sender's; every event carries it back */
    uint64_t cache_space; /* prefixes are shared only between requests of equal space */
    uint32_t flags;
    int32_t priority;      /* larger goes first; 0 is usual */
    uint32_t credits;      /* events the receiver may send before it is granted more; 0: no limit */
    uint32_t n_choices;    /* >= 1 */
    uint32_t max_tokens;   /* a ceiling on each completion; meaningful when set */
    uint32_t min_tokens;   /* no stop before; 0: none */
    int32_t logprobs;      /* -1: none; k >= 0: the chosen token's and the k best */
    uint32_t n_prompt;     /* of tokens; the rest was generated before: resume behind it */
    qn_wire_ref tokens;    /* uint32_t, at least one */
    qn_wire_ref biases;    /* qn_request_bias, each token once */
    qn_wire_ref stop_ids;  /* uint32_t */
    qn_wire_ref stop_text; /* qn_wire_ref, each to UTF-8 bytes, at least one */
    qn_wire_ref adapters;  /* qn_request_adapter, applied in this order */
    qn_wire_ref media;     /* qn_request_media */
    qn_wire_ref state;     /* bytes: sampler state from the last token event, for resume */
    qn_request_sampling sampling;
} qn_request;

/* What a block is built from: the same fields as pointers, all borrowed for the call. Start from
 * qn_request_in_init, which leaves everything unset: 1 choice, no logprobs. */
typedef struct qn_request_in {
    uint64_t id, cache_space;
    uint32_t flags;
    int32_t priority;
    uint32_t credits, n_choices, max_tokens, min_tokens;
    int32_t logprobs;
    uint32_t n_prompt; /* 0: all of tokens */
    const uint32_t *tokens;
    size_t n_tokens;
    const qn_request_bias *biases;
    size_t n_biases;
    const uint32_t *stop_ids;
    size_t n_stop_ids;
    const qn_str *stop_text;
    size_t n_stop_text;
    const qn_str *adapters;
    const float *adapter_scales; /* NULL: all 1 */
    size_t n_adapters;
    const qn_request_media *media;
    size_t n_media;
    const void *state;
    size_t state_bytes;
    qn_request_sampling sampling;
} qn_request_in;

void qn_request_in_init(qn_request_in *in);

/* Of a checked block; borrowed from it. Arrays are empty (never read) when their n is 0. */
static inline const void *qn_wire_at(const void *block, qn_wire_ref ref)
{
    return (const uint8_t *)block + ref.at;
}
static inline const uint32_t *qn_request_tokens(const qn_request *r)
{
    return qn_wire_at(r, r->tokens);
}
static inline const qn_request_bias *qn_request_biases(const qn_request *r)
{
    return qn_wire_at(r, r->biases);
}
static inline const uint32_t *qn_request_stop_ids(const qn_request *r)
{
    return qn_wire_at(r, r->stop_ids);
}
static inline const qn_request_media *qn_request_medias(const qn_request *r)
{
    return qn_wire_at(r, r->media);
}
static inline const void *qn_request_state(const qn_request *r) { return qn_wire_at(r, r->state); }
/* i below the count of stop strings / adapters. */
qn_str qn_request_stop_text(const qn_request *r, uint32_t i);
qn_str qn_request_adapter_name(const qn_request *r, uint32_t i);
float qn_request_adapter_scale(const qn_request *r, uint32_t i);
static inline bool qn_request_is_set(const qn_request *r, uint32_t bit)
{
    return (r->sampling.set & bit) != 0;
}

#endif
