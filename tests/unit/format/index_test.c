/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/format_int.h"
#include "qt.h"

static qn_str name_of(const void *ctx, size_t i)
{
    return qn_str_z((const char *)ctx + 8 * i); /* of char[n][8] */
}

static void names_are_found_and_repeats_told(qt *t)
{
    static char names[300][8];
    qn_names table = {NULL, 0, 0};
    for (size_t i = 0; i < 300; i++) snprintf(names[i], sizeof names[i], "n%zu", i % 299);
    QT_EQ(t, qn_names_find(&table, QN_STR("n1"), names, name_of), -1);
    QT_EQ(t, qn_names_init(&table, 300, NULL), QN_OK);
    for (size_t i = 0; i < 299; i++) QT_EQ(t, qn_names_put(&table, i, names, name_of), -1);
    QT_EQ(t, qn_names_put(&table, 299, names, name_of), 0);
    for (size_t i = 0; i < 299; i++)
        QT_EQ(t, qn_names_find(&table, qn_str_z(names[i]), names, name_of), (long long)i);
    QT_EQ(t, qn_names_find(&table, QN_STR("n299"), names, name_of), -1);
    QT_EQ(t, qn_names_find(&table, QN_STR(""), names, name_of), -1);
    qn_names_fini(&table);
    qn_names_fini(&table);
}

static void a_table_of_none_finds_none(qt *t)
{
    qn_names table = {NULL, 0, 0};
    QT_EQ(t, qn_names_init(&table, 0, NULL), QN_OK);
    QT_EQ(t, qn_names_find(&table, QN_STR("x"), NULL, name_of), -1);
    qn_names_fini(&table);
    qn_alloc_fail_after(0);
    QT_EQ(t, qn_names_init(&table, 5, NULL), QN_E_NOMEM);
    qn_alloc_fail_after(SIZE_MAX);
}

static qn_range range_of(const void *ctx, size_t i) { return ((const qn_range *)ctx)[i]; }

static void ranges_sort_by_begin_then_length(qt *t)
{
    qn_range ranges[200];
    uint32_t order[200];
    for (size_t n = 0; n <= 200; n = n < 10 ? n + 1 : n + 19) {
        for (size_t kind = 0; kind < 3; kind++) { /* random, rising, falling */
            for (size_t i = 0; i < n; i++)
                ranges[i] = (qn_range){kind == 0   ? qt_rand() % 50
                                       : kind == 1 ? i
                                                   : n - i,
                                       qt_rand() % 3};
            qn_ranges_sort(order, n, ranges, range_of);
            bool sorted = true, seen[200] = {false};
            for (size_t i = 0; i < n; i++) {
                sorted = sorted && !seen[order[i]];
                seen[order[i]] = true;
                if (i == 0) continue;
                const qn_range a = ranges[order[i - 1]], b = ranges[order[i]];
                sorted =
                    sorted && (a.begin < b.begin || (a.begin == b.begin && a.bytes <= b.bytes));
            }
            QT_OKF(t, sorted, "n %zu kind %zu", n, kind);
        }
    }
}

static void shown_names_are_short_and_printable(qt *t)
{
    QT_STR(t, qn_show(QN_STR("blk.0")).text, "blk.0");
    QT_STR(t, qn_show(QN_STR("")).text, "");
    QT_STR(t, qn_show((qn_str){NULL, 0}).text, "");
    QT_STR(t, qn_show(QN_STR("a\n\x7f\xffz\xc3\xa9")).text, "a???z\xc3\xa9");
    QT_STR(t, qn_show(qn_str_make("a\0b", 3)).text, "a?b");
    char text[100];
    memset(text, 'x', sizeof text);
    QT_EQ(t, strlen(qn_show(qn_str_make(text, 60)).text), 60);
    QT_EQ(t, strlen(qn_show(qn_str_make(text, 61)).text), 63);
    for (size_t i = 0; i + 1 < sizeof text; i += 2) memcpy(text + i, "\xc3\xa9", 2);
    text[0] = 'x';
    text[1] = 'x';
    text[2] = 'x';
    const qn_shown s = qn_show(qn_str_make(text, 100)); /* the cut falls inside a character */
    QT_OK(t, strlen(s.text) <= 66 && qn_utf8_valid(s.text, strlen(s.text), NULL));
}

static void long_paths_are_shown_by_their_end(qt *t)
{
    char path[160];
    memset(path, 'd', sizeof path);
    path[0] = '/';
    memcpy(path + 140, "/m.gguf", 8);
    QT_STR(t, qn_show_path(path), "m.gguf");
    QT_STR(t, qn_show_path("/a/b.gguf"), "/a/b.gguf");
}

static void matrices_are_checked(qt *t)
{
    qn_matrix m;
    const int data = 0;
    QT_EQ(t, qn_plain_matrix(&m, QN_FMT_F32, 2, 3, &data, NULL), QN_OK);
    QT_OK(t, m.rows == 2 && m.cols == 3 && m.ld_bytes == 12 && m.data == &data);
    QT_EQ(t, qn_plain_matrix(&m, QN_FMT_F32, 0, 3, &data, NULL), QN_E_FORMAT);
    QT_EQ(t, qn_plain_matrix(&m, QN_FMT_F32, 3, 0, &data, NULL), QN_E_FORMAT);
    QT_EQ(t, qn_plain_matrix(&m, QN_FMT_F32, (uint64_t)1 << 32, 1, &data, NULL), QN_E_LIMIT);
    QT_EQ(t, qn_plain_matrix(&m, QN_FMT_F32, 1, (uint64_t)1 << 32, &data, NULL), QN_E_LIMIT);
    QT_EQ(t, qn_plain_matrix(&m, QN_FMT_Q4_0, 1, 33, &data, NULL), QN_E_FORMAT);
}

QT_MAIN(QT(names_are_found_and_repeats_told), QT(a_table_of_none_finds_none),
        QT(ranges_sort_by_begin_then_length), QT(shown_names_are_short_and_printable),
        QT(long_paths_are_shown_by_their_end), QT(matrices_are_checked))
