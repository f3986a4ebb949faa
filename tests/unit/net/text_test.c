/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "net/net.h"
#include "qt.h"

static void a_content_range_is_read_strictly(qt *t)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t first, last, total;
    } cases[] = {
        {"bytes 5-9/10", true, 5, 9, 10},
        {" bytes 0-0/1 ", true, 0, 0, 1},
        {"bytes 5-9/*", true, 5, 9, UINT64_MAX},
        {"bytes 5-9/9", false, 0, 0, 0},
        {"bytes 9-5/10", false, 0, 0, 0},
        {"bytes */10", false, 0, 0, 0},
        {"bytes 5-9", false, 0, 0, 0},
        {"bytes 5/9-10", false, 0, 0, 0},
        {"items 5-9/10", false, 0, 0, 0},
        {"bytes -5-9/10", false, 0, 0, 0},
        {"bytes 5-18446744073709551616/*", false, 0, 0, 0},
        {"bytes 5-9/10, 11-12/13", false, 0, 0, 0},
        {"", false, 0, 0, 0},
    };
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        qn_net_range r;
        QT_OKF(t, qn_net_parse_range(&r, qn_str_z(cases[i].text)) == cases[i].good, "%s",
               cases[i].text);
        QT_OK(t, r.given && r.good == cases[i].good);
        if (!r.good) continue;
        QT_OKF(t, r.first == cases[i].first && r.last == cases[i].last && r.total == cases[i].total,
               "%s", cases[i].text);
    }
}

static void paths_are_escaped_but_for_their_slashes(qt *t)
{
    static const struct {
        const char *text, *want;
    } cases[] = {{"a/b-c_d.e~f", "a/b-c_d.e~f"},
                 {"a b?c#d%e", "a%20b%3Fc%23d%25e"},
                 {"\xc3\xa9+&", "%C3%A9%2B%26"},
                 {"", ""}};
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char *out = qn_net_escape_path(cases[i].text);
        if (QT_OK(t, out != NULL)) QT_STR(t, out, cases[i].want);
        qn_free(out);
    }
    qn_alloc_fail_after(0);
    QT_OK(t, qn_net_escape_path("a") == NULL);
    qn_alloc_fail_after(SIZE_MAX);
}

static void endpoints_are_https_or_this_machine(qt *t)
{
    static const char *const good[] = {"https://hub.example",   "https://hub.example:8443/mirror",
                                       "http://127.0.0.1:5000", "http://localhost",
                                       "http://[::1]:80",       "http://127.8.9.1"};
    static const char *const bad[] = {"http://hub.example",
                                      "http://127.evil.example",
                                      "http://10.0.0.1",
                                      "ftp://127.0.0.1",
                                      "file:///etc/passwd",
                                      "https://me:secret@hub.example",
                                      "https://hub.example/?a",
                                      "https://hub.example/#b",
                                      "hub.example",
                                      "",
                                      "http://127.0.0.1.a",
                                      "http://127.0.0.0.1"};
    for (size_t i = 0; i < QT_LEN(good); i++)
        QT_OKF(t, qn_net_check_endpoint(good[i], NULL) == QN_OK, "%s", good[i]);
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        qn_err err = {.code = QN_OK};
        QT_OKF(t, qn_net_check_endpoint(bad[i], &err) == QN_E_INVAL, "%s", bad[i]);
        QT_OKF(t, err.msg[0] && !strstr(err.msg, "secret"), "%s: %s", bad[i], err.msg);
    }
}

QT_MAIN(QT(a_content_range_is_read_strictly), QT(paths_are_escaped_but_for_their_slashes),
        QT(endpoints_are_https_or_this_machine))
