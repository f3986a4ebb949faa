/* SPDX-License-Identifier: Apache-2.0 */
/* assets_test.c - the page in the program: whole, typed, tagged, and needing nothing from elsewhere. */
#include <string.h>

#include "qt.h"
#include "server/assets.h"

static const bool built = sizeof(QUERN_WEB_BUILT) == sizeof("build");

static qn_str text_of(const qn_asset *a)
{
    return qn_str_make((const char *)a->bytes, qn_asset_bytes(a));
}

static bool holds(const qn_asset *a, const char *needle)
{
    return qn_str_find(text_of(a), qn_str_z(needle), 0) != SIZE_MAX;
}

static void the_page_and_what_it_names_are_there(qt *t)
{
    static const struct {
        const char *path, *mime;
    } want[] = {
        {"/", "text/html; charset=utf-8"},
        {"/assets/app.js", "text/javascript; charset=utf-8"},
        {"/assets/app.css", "text/css; charset=utf-8"},
        {"/assets/icon.svg", "image/svg+xml"},
    };
    for (size_t i = 0; i < QT_LEN(want); i++) {
        const qn_asset *a = qn_asset_find(qn_str_z(want[i].path));
        QT_OK(t, (a != NULL) == built);
        if (!a) continue;
        QT_STR(t, a->mime, want[i].mime);
        QT_OK(t, qn_asset_bytes(a) > 50);
        QT_OK(t, a->etag[0] == '"' && strlen(a->etag) == 34 && a->etag[33] == '"');
        if (i > 0) QT_OK(t, holds(qn_asset_find(QN_STR("/")), want[i].path));
    }
}

static void other_paths_are_not(qt *t)
{
    static const char *const paths[] = {"", "/assets", "/assets/", "/assets/app.js?",
                                        "/index.html"};
    for (size_t i = 0; i < QT_LEN(paths); i++) QT_OK(t, !qn_asset_find(qn_str_z(paths[i])));
}

static void no_file_names_another_origin(qt *t)
{
    size_t seen = 0;
    for (const qn_asset *a = qn_assets; a->path; a++, seen++) {
        qn_str s = text_of(a);
        for (size_t at = 0; (at = qn_str_find(s, QN_STR("://"), at)) != SIZE_MAX; at++) {
            const qn_str next = qn_str_slice(s, at + 3, at + 13);
            /* the name of SVG's vocabulary is no address, and a scheme test has no host behind it */
            QT_OKF(t, qn_str_eq_z(next, "www.w3.org") || next.n == 0 || next.p[0] < '0',
                   "%s: ://%.*s", a->path, QN_STR_ARG(next));
        }
    }
    QT_EQ(t, seen, built ? 4 : 0);
}

static void tags_are_matched_as_a_list(qt *t)
{
    static const unsigned char bytes[] = "x";
    const qn_asset a = {"/x", "text/plain", "\"abc\"", bytes, bytes + 1};
    QT_OK(t, qn_asset_matches(&a, QN_STR("\"abc\"")));
    QT_OK(t, qn_asset_matches(&a, QN_STR("\"zzz\" , W/\"abc\"")));
    QT_OK(t, qn_asset_matches(&a, QN_STR("*")));
    QT_OK(t, !qn_asset_matches(&a, QN_STR("")));
    QT_OK(t, !qn_asset_matches(&a, QN_STR("abc")));
    QT_OK(t, !qn_asset_matches(&a, QN_STR("\"abcd\",W/")));
}

QT_MAIN(QT(the_page_and_what_it_names_are_there), QT(other_paths_are_not),
        QT(no_file_names_another_origin), QT(tags_are_matched_as_a_list))
