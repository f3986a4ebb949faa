/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - one line an event, key=value, into a sink that the owner chose.
 *
 *     time=2026-01-31T10:00:00.123Z level=warn topic=kv evicted=12 free_blocks=3
 *
 * Levels are switched per topic by one string: "info,kv=debug,net=off" (a bare level is for all
 * topics that are not named). Control bytes in a message are escaped, so one event is one line. A
 * line longer than QN_LOG_LINE is cut and marked. Logging never allocates and never fails.
 *
 * Owner:  whoever opened the logger; it must outlive its users. A NULL logger is silent.
 * Thread: any; the sink is called under the logger's lock, one line at a time, and must not log.
 */
#ifndef QN_BASE_LOG_H
#define QN_BASE_LOG_H
#include "base/status.h"

typedef enum qn_log_level {
    QN_LOG_OFF, /* for the switch string only */
    QN_LOG_ERROR,
    QN_LOG_WARN,
    QN_LOG_INFO,
    QN_LOG_DEBUG,
    QN_LOG_TRACE
} qn_log_level;

enum { QN_LOG_LINE = 1024 }; /* bytes, the newline included */

/* line[0, n) ends with '\n', is also NUL-terminated, and is borrowed for the call. */
typedef void qn_log_sink(void *ctx, qn_log_level level, const char *line, size_t n);

typedef struct qn_logger qn_logger;

/* levels: the switch string; NULL or "" means "warn". Errors: INVAL names the faulty part; NOMEM. */
qn_code qn_logger_new(qn_logger **out, const char *levels, qn_log_sink *sink, void *ctx,
                      qn_err *err);
void qn_logger_free(qn_logger *log); /* NULL is fine */
/* True if such a line would be written: guards costly arguments. */
bool qn_log_on(const qn_logger *log, qn_log_level level, const char *topic);
/* topic: a short word without spaces. The text is "key=value key=value ...". */
void qn_log(qn_logger *log, qn_log_level level, const char *topic, const char *fmt, ...)
    QN_PRINTF(4, 5);

#endif
