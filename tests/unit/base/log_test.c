/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "qt.h"

typedef struct heard {
    char text[8 * QN_LOG_LINE];
    size_t n, lines;
    qn_log_level last;
} heard;

static void hear(void *ctx, qn_log_level level, const char *line, size_t n)
{
    heard *h = ctx;
    h->lines++;
    h->last = level;
    if (h->n + n < sizeof h->text) {
        memcpy(h->text + h->n, line, n + 1);
        h->n += n;
    }
}

static void levels_switch_per_topic(qt *t)
{
    qn_logger *log = NULL;
    heard h = {.n = 0};
    QT_EQ(t, qn_logger_new(&log, "info,kv=debug,net=off,kv=trace", hear, &h, NULL), QN_OK);
    QT_OK(t, qn_log_on(log, QN_LOG_INFO, "http") && !qn_log_on(log, QN_LOG_DEBUG, "http"));
    QT_OK(t, qn_log_on(log, QN_LOG_TRACE, "kv") && !qn_log_on(log, QN_LOG_ERROR, "net"));
    QT_OK(t, !qn_log_on(NULL, QN_LOG_ERROR, "kv") && !qn_log_on(log, QN_LOG_OFF, "kv"));
    qn_log(log, QN_LOG_DEBUG, "http", "unheard=1");
    QT_EQ(t, h.lines, 0);
    qn_log(log, QN_LOG_WARN, "kv", "evicted=%d free=%s", 12, "few");
    QT_EQ(t, h.lines, 1);
    QT_EQ(t, h.last, QN_LOG_WARN);
    QT_OK(t, strstr(h.text, "Z level=warn topic=kv evicted=12 free=few\n") != NULL);
    QT_OK(t, strncmp(h.text, "time=20", 7) == 0 && h.text[28] == 'Z');
    qn_logger_free(log);
}

static void no_string_means_warnings(qt *t)
{
    static const char *const empty[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        qn_logger *log = NULL;
        heard h = {.n = 0};
        QT_EQ(t, qn_logger_new(&log, empty[i], hear, &h, NULL), QN_OK);
        QT_OK(t, qn_log_on(log, QN_LOG_WARN, "x") && !qn_log_on(log, QN_LOG_INFO, "x"));
        qn_logger_free(log);
    }
    qn_log(NULL, QN_LOG_ERROR, "x", "nobody=1");
}

static void faulty_switches_are_named(qt *t)
{
    static const char *const bad[] = {
        "loud", "kv=", "=info", "kv=loud", "info,,warn", ",", "averyveryverylongtopicname=info"};
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        qn_logger *log = NULL;
        heard h = {.n = 0};
        qn_err err = {0};
        QT_OKF(t, qn_logger_new(&log, bad[i], hear, &h, &err) == QN_E_INVAL && !log && err.msg[0],
               "\"%s\" was taken", bad[i]);
    }
    qn_logger *log = NULL;
    QT_EQ(t, qn_logger_new(&log, NULL, NULL, NULL, NULL), QN_E_INVAL);
}

static void one_event_is_one_line(qt *t)
{
    qn_logger *log = NULL;
    heard h = {.n = 0};
    QT_EQ(t, qn_logger_new(&log, "info", hear, &h, NULL), QN_OK);
    qn_log(log, QN_LOG_INFO, "x", "a=%s", "1\nlevel=error \x1b[2J \x7f \xC2\x85 \xFF caf\xC3\xA9");
    QT_OK(t, strstr(h.text, "a=1\\nlevel=error \\x1b[2J \\x7f \\xc2\\x85 \\xff caf\xC3\xA9\n") !=
                 NULL);
    QT_OK(t, strchr(h.text, '\n') == h.text + h.n - 1);
    qn_logger_free(log);
}

static void long_lines_are_cut_and_marked(qt *t)
{
    static char text[3000];
    qn_logger *log = NULL;
    QT_EQ(t, qn_logger_new(&log, "info", hear, &(heard){.n = 0}, NULL), QN_OK);
    qn_logger_free(log);
    for (size_t n = 900; n < 1100; n++) {
        heard h = {.n = 0};
        memset(text, n % 2 ? '\n' : 'y', n); /* escaped text is twice as long */
        text[n] = '\0';
        QT_EQ(t, qn_logger_new(&log, "info", hear, &h, NULL), QN_OK);
        qn_log(log, QN_LOG_INFO, "x", "%s", text);
        /* 49 bytes stand before the text, 7 are kept for the mark and the newline */
        QT_OK(t, h.lines == 1 && h.n <= QN_LOG_LINE && h.text[h.n - 1] == '\n');
        QT_EQ(t, strstr(h.text, " [cut]\n") != NULL, n % 2 || n > QN_LOG_LINE - 7 - 49);
        qn_logger_free(log);
    }
}

static void *talk(void *arg)
{
    for (int i = 0; i < 200; i++) qn_log(arg, QN_LOG_INFO, "x", "i=%d", i);
    return NULL;
}

static void count(void *ctx, qn_log_level level, const char *line, size_t n)
{
    (void)level;
    *(size_t *)ctx += line[n - 1] == '\n'; /* a plain counter: the logger's lock guards it */
}

static void many_threads_write_whole_lines(qt *t)
{
    qn_logger *log = NULL;
    size_t lines = 0;
    pthread_t th[4];
    QT_EQ(t, qn_logger_new(&log, "info", count, &lines, NULL), QN_OK);
    for (size_t i = 0; i < 4; i++) QT_EQ(t, pthread_create(&th[i], NULL, talk, log), 0);
    for (size_t i = 0; i < 4; i++) pthread_join(th[i], NULL);
    QT_EQ(t, lines, 800);
    qn_logger_free(log);
}

static void new_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_logger *log = NULL;
        qn_alloc_fail_after(n);
        rc = qn_logger_new(&log, "info,a=warn", hear, NULL, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && log == NULL));
        qn_logger_free(log);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
}

QT_MAIN(QT(levels_switch_per_topic), QT(no_string_means_warnings), QT(faulty_switches_are_named),
        QT(one_event_is_one_line), QT(long_lines_are_cut_and_marked),
        QT(many_threads_write_whole_lines), QT(new_survives_every_failed_allocation))
