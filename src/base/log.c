/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - a line is made on the stack, escaped, and handed to the sink under a lock. Switches are
 * fixed at the start, so asking whether a topic is on takes no lock. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum { MAX_TOPICS = 32, MAX_TOPIC_NAME = 24 };

typedef struct topic_switch {
    char name[MAX_TOPIC_NAME];
    qn_log_level level;
} topic_switch;

struct qn_logger {
    qn_log_sink *sink;
    void *ctx;
    qn_log_level others; /* topics without a switch */
    size_t n_topics;
    topic_switch topics[MAX_TOPICS];
    pthread_mutex_t lock; /* one line at a time */
};

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};

static bool parse_level(qn_log_level *out, qn_str name)
{
    for (unsigned i = 0; i < QN_LEN(level_names); i++)
        if (qn_str_eq_z(name, level_names[i])) {
            *out = (qn_log_level)i;
            return true;
        }
    return false;
}

/* "level" or "topic=level". */
static qn_code add_switch(qn_logger *log, qn_str part, qn_err *err)
{
    const size_t eq = qn_str_find(part, QN_STR("="), 0);
    const qn_str name = eq == SIZE_MAX ? QN_STR("") : qn_str_slice(part, 0, eq);
    const qn_str level = eq == SIZE_MAX ? part : qn_str_slice(part, eq + 1, part.n);
    qn_log_level l = QN_LOG_OFF;
    if (!parse_level(&l, level))
        return qn_fail(err, QN_E_INVAL,
                       "log level \"%.*s\", expected off, error, warn, info, debug or trace",
                       QN_STR_ARG(level));
    if (eq == SIZE_MAX) {
        log->others = l;
        return QN_OK;
    }
    if (name.n == 0 || name.n >= MAX_TOPIC_NAME)
        return qn_fail(err, QN_E_INVAL, "log topic \"%.*s\", expected 1 to %d bytes",
                       QN_STR_ARG(name), MAX_TOPIC_NAME - 1);
    if (log->n_topics == MAX_TOPICS)
        return qn_fail(err, QN_E_INVAL, "more than %d log topics", MAX_TOPICS);
    topic_switch *t = &log->topics[log->n_topics++];
    memcpy(t->name, name.p, name.n); /* the rest is zero */
    t->level = l;
    return QN_OK;
}

qn_code qn_logger_new(qn_logger **out, const char *levels, qn_log_sink *sink, void *ctx,
                      qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    if (!sink) return qn_fail(err, QN_E_INVAL, "log sink is missing");
    qn_logger *log = qn_zalloc(sizeof *log);
    if (!log) return qn_fail(err, QN_E_NOMEM, "logger");
    pthread_mutex_init(&log->lock,
                       NULL); /* with default attributes it cannot fail on our systems */
    log->sink = sink;
    log->ctx = ctx;
    log->others = QN_LOG_WARN;
    qn_str rest = qn_str_z(levels), part;
    while (rest.n && qn_str_split(&part, &rest, ',')) QN_TRY_OUT(add_switch(log, part, err));
    *out = log;
    log = NULL;
out:
    qn_logger_free(log);
    return rc;
}

void qn_logger_free(qn_logger *log)
{
    if (!log) return;
    pthread_mutex_destroy(&log->lock);
    qn_free(log);
}

bool qn_log_on(const qn_logger *log, qn_log_level level, const char *topic)
{
    if (!log || level == QN_LOG_OFF) return false;
    for (size_t i = log->n_topics; i > 0; i--) /* the last word on a topic wins */
        if (strcmp(log->topics[i - 1].name, topic) == 0) return level <= log->topics[i - 1].level;
    return level <= log->others;
}

/* Appends text to line[*n, cap) with control bytes and malformed UTF-8 escaped; false when cut. */
static bool escape(char *line, size_t *n, size_t cap, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        char piece[8];
        size_t used = qn_utf8_step(text + i, len - i, &cp), m = used;
        if (cp == '\n') {
            m = (size_t)snprintf(piece, sizeof piece, "\\n");
        } else if (cp == QN_UTF8_BAD || cp < 0x20 || (cp >= 0x7F && cp < 0xA0)) {
            used = 1; /* a C1 character leaves its second byte, which is then malformed itself */
            m = (size_t)snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)text[i]);
        } else {
            memcpy(piece, text + i, used);
        }
        if (*n + m > cap) return false;
        memcpy(line + *n, piece, m);
        *n += m;
        i += used;
    }
    return true;
}

static size_t put_head(char *line, size_t cap, qn_log_level level, const char *topic)
{
    const uint64_t ns = qn_clock_wall_ns();
    const time_t sec = (time_t)(ns / 1000000000u);
    struct tm tm;
    char date[32] = "?";
    if (gmtime_r(&sec, &tm)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    const int n =
        snprintf(line, cap, "time=%s.%03uZ level=%s topic=%.*s ", date,
                 (unsigned)(ns / 1000000u % 1000u), level_names[level], MAX_TOPIC_NAME - 1, topic);
    return n > 0 ? (size_t)n : 0; /* at most 24 + 31 + 40 bytes: always fits */
}

void qn_log(qn_logger *log, qn_log_level level, const char *topic, const char *fmt, ...)
{
    static const char cut[] = " [cut]";
    if (level > QN_LOG_TRACE || !qn_log_on(log, level, topic)) return;
    char text[QN_LOG_LINE], line[QN_LOG_LINE + 1];
    va_list ap;
    va_start(ap, fmt);
    const int len = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (len < 0) return;
    const size_t given = strlen(text), cap = QN_LOG_LINE - sizeof cut; /* room for mark and '\n' */
    size_t n = put_head(line, sizeof line, level, topic);
    if (!escape(line, &n, cap, text, given - qn_utf8_partial_tail(text, given)) ||
        (size_t)len > given) {
        memcpy(line + n, cut, sizeof cut - 1);
        n += sizeof cut - 1;
    }
    line[n++] = '\n';
    line[n] = '\0';
    pthread_mutex_lock(&log->lock);
    log->sink(log->ctx, level, line, n);
    pthread_mutex_unlock(&log->lock);
}
