/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <errno.h>
#include <string.h>

#include "qt.h"

static void every_code_has_name_text_and_statuses(qt *t)
{
    for (int c = 0; c < QUERN_CODE_COUNT; c++) {
        const quern_code code = (quern_code)c;
        QT_OK(t, quern_code_name(code)[0] && quern_code_text(code)[0]);
        QT_OK(t, quern_code_http(code) >= 200 && quern_code_http(code) < 600);
        QT_OK(t, (quern_code_exit(code) == 0) == (c == 0) && quern_code_exit(code) < 256);
        for (int k = 0; k < c; k++)
            QT_OK(t, strcmp(quern_code_name(code), quern_code_name((quern_code)k)) != 0);
    }
    QT_STR(t, quern_code_name((quern_code)999), "?");
    QT_STR(t, quern_code_text((quern_code)-1), "?");
    QT_OK(t, quern_code_exit((quern_code)999) != 0 && !quern_code_retryable((quern_code)999));
    QT_OK(t, quern_code_retryable(QUERN_E_AGAIN) && !quern_code_retryable(QUERN_E_INVAL));
}

static void messages_are_told_once_and_prefixed(qt *t)
{
    qn_err err = {0};
    QT_EQ(t, qn_fail(&err, QN_E_FORMAT, "field %s is %d", "x", 3), QN_E_FORMAT);
    QT_STR(t, err.msg, "field x is 3");
    QT_EQ(t, qn_wrap(&err, QN_E_FORMAT, "file %s", "m"), QN_E_FORMAT);
    QT_STR(t, err.msg, "file m: field x is 3");
    QT_EQ(t, qn_fail_sys(&err, QN_E_IO, ENOENT, "open y"), QN_E_IO);
    QT_OK(t, err.sys == ENOENT && strncmp(err.msg, "open y: ", 8) == 0 && err.msg[8]);
    QT_EQ(t, qn_fail(NULL, QN_E_IO, "unheard"), QN_E_IO);
    QT_EQ(t, qn_wrap(NULL, QN_E_IO, "unheard"), QN_E_IO);
}

static void long_messages_are_cut_not_overrun(qt *t)
{
    char text[600];
    qn_err err = {0};
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    qn_fail(&err, QN_E_FORMAT, "%s", text);
    QT_EQ(t, strlen(err.msg), sizeof err.msg - 1);
    qn_wrap(&err, QN_E_FORMAT, "file");
    QT_OK(t, strlen(err.msg) < sizeof err.msg && strncmp(err.msg, "file: aaa", 9) == 0);
    qn_wrap(&err, QN_E_FORMAT, "%s", text);
    QT_EQ(t, strlen(err.msg), sizeof err.msg - 1);
    qn_fail_sys(&err, QN_E_IO, ENOENT, "%s", text);
    QT_EQ(t, strlen(err.msg), sizeof err.msg - 1);
    qn_fail(&err, QN_E_NOMEM, "%s", "");
    QT_OK(t, err.msg[0] != '\0'); /* never empty */
}

static void a_long_prefix_leaves_the_reason(qt *t)
{
    char text[600];
    qn_err err = {0};
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    qn_fail(&err, QN_E_FORMAT, "field x is 3");
    qn_wrap(&err, QN_E_FORMAT, "%s", text);
    QT_OKF(t, strstr(err.msg, "aaa: field x is 3") != NULL, "%s", err.msg);
    QT_EQ(t, strlen(err.msg), sizeof err.msg - 1);
    qn_fail_sys(&err, QN_E_IO, ENOENT, "%s", text);
    QT_OKF(t, strstr(err.msg, ": No such file") != NULL, "%s", err.msg);
}

/* Names out of a file must not reach a terminal as commands, nor a log as lines of their own. */
static void messages_hold_printable_utf8_only(qt *t)
{
    char text[300];
    qn_err err = {0};
    qn_fail(&err, QN_E_FORMAT, "%s", "a\033[2J\nb\x7f \xc2\x9b \xff\xc3[ \xc3\xa9");
    QT_STR(t, err.msg, "a?[2J?b? ?? ??[ \xc3\xa9");
    qn_wrap(&err, QN_E_FORMAT, "%s", "f\r");
    QT_STR(t, err.msg, "f?: a?[2J?b? ?? ??[ \xc3\xa9");
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof err.msg - 2, "\xc3\xa9", 3); /* cut in its middle */
    qn_fail(&err, QN_E_FORMAT, "%s", text);
    QT_EQ(t, strlen(err.msg), sizeof err.msg - 2);
    QT_EQ(t, err.msg[sizeof err.msg - 3], 'a');
}

QT_MAIN(QT(every_code_has_name_text_and_statuses), QT(messages_are_told_once_and_prefixed),
        QT(long_messages_are_cut_not_overrun), QT(a_long_prefix_leaves_the_reason),
        QT(messages_hold_printable_utf8_only))
