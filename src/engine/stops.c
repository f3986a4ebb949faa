/* SPDX-License-Identifier: Apache-2.0 */
/* stops.c - Knuth-Morris-Pratt over all stop strings at once; O(strings) a byte, whatever their length.
 *
 * Source: Knuth, Morris and Pratt 1977, "Fast pattern matching in strings". Thread: see stops.h.
 */
#include "engine/stops.h"

#include <string.h>

#include "base/alloc.h"

typedef struct pattern {
    const char *text;
    uint32_t *fail; /* [n + 1]: longest proper border of the first i bytes */
    uint32_t n;
} pattern;

struct qn_stops {
    uint32_t n, longest;
    uint32_t *fails; /* of all patterns */
    char *bytes;
    pattern p[];
};

static void build(pattern *p)
{
    uint32_t k = 0;
    p->fail[0] = p->fail[1] = 0;
    for (uint32_t i = 1; i < p->n; i++) {
        while (k > 0 && p->text[i] != p->text[k]) k = p->fail[k];
        if (p->text[i] == p->text[k]) k++;
        p->fail[i + 1] = k;
    }
}

qn_code qn_stops_new(qn_stops **out, const qn_str *text, uint32_t n, qn_err *err)
{
    size_t total = 0;
    *out = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (text[i].n == 0) return qn_fail(err, QN_E_INVAL, "stop: string %u is empty", i);
        if (text[i].n > QN_STOPS_MAX_BYTES || (total += text[i].n) > QN_STOPS_MAX_BYTES)
            return qn_fail(err, QN_E_LIMIT, "stop: more than %d bytes in all", QN_STOPS_MAX_BYTES);
    }
    qn_stops *s = qn_zalloc(sizeof *s + n * sizeof *s->p);
    if (!s) return qn_fail(err, QN_E_NOMEM, "stop: %u strings", n);
    s->fails = qn_calloc(total + n, sizeof *s->fails);
    s->bytes = qn_alloc(total);
    if (!s->fails || !s->bytes) {
        qn_stops_free(s);
        return qn_fail(err, QN_E_NOMEM, "stop: %zu bytes", total);
    }
    s->n = n;
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(s->bytes + at, text[i].p, text[i].n);
        s->p[i] = (pattern){s->bytes + at, s->fails + at + i, (uint32_t)text[i].n};
        build(&s->p[i]);
        if (s->p[i].n > s->longest) s->longest = s->p[i].n;
        at += text[i].n;
    }
    *out = s;
    return QN_OK;
}

void qn_stops_free(qn_stops *s)
{
    if (!s) return;
    qn_free(s->fails);
    qn_free(s->bytes);
    qn_free(s);
}

uint32_t qn_stops_count(const qn_stops *s) { return s->n; }
uint32_t qn_stops_longest(const qn_stops *s) { return s->longest; }

/* State after `byte`; equals p->n when the string just ended. */
static uint32_t advance(const pattern *p, uint32_t k, char byte)
{
    if (k == p->n) k = p->fail[k];
    while (k > 0 && p->text[k] != byte) k = p->fail[k];
    return p->text[k] == byte ? k + 1 : 0;
}

qn_stop_hit qn_stops_push(const qn_stops *s, uint32_t *state, const char *text, size_t n,
                          bool armed)
{
    qn_stop_hit hit = {QN_NO_STOP, 0, 0};
    for (size_t i = 0; i < n && hit.stop == QN_NO_STOP; i++) {
        for (uint32_t k = 0; k < s->n; k++) {
            state[k] = advance(&s->p[k], state[k], text[i]);
            if (armed && state[k] == s->p[k].n && state[k] > hit.len)
                hit = (qn_stop_hit){k, (uint32_t)i + 1, state[k]};
        }
    }
    return hit;
}

uint32_t qn_stops_held(const qn_stops *s, const uint32_t *state)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        /* A whole string that did not count (not armed) is text; what it may begin is its border. */
        const uint32_t held = state[k] == s->p[k].n ? s->p[k].fail[state[k]] : state[k];
        if (held > most) most = held;
    }
    return most;
}
