/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <string.h>

#include "base/alloc.h"
#include "qt.h"

static void appends_and_keeps_a_nul_behind(qt *t)
{
    qn_buf b;
    qn_buf_init(&b, 1 << 20);
    QT_STR(t, qn_buf_text(&b), "");
    for (int i = 0; i < 1000; i++) {
        QT_EQ(t, qn_buf_append(&b, "ab", 2, NULL), QN_OK);
        QT_EQ(t, qn_buf_append_byte(&b, 'c', NULL), QN_OK);
        if (b.data[b.len] != 0) QT_OKF(t, false, "no NUL at %zu", b.len);
    }
    QT_EQ(t, b.len, 3000);
    QT_OK(t, memcmp(b.data, "abcabc", 6) == 0 && strlen(qn_buf_text(&b)) == 3000);
    qn_buf_truncate(&b, 2);
    QT_STR(t, qn_buf_text(&b), "ab");
    qn_buf_fini(&b);
    qn_buf_fini(&b);
}

static void refuses_past_its_maximum_and_keeps_contents(qt *t)
{
    qn_buf b;
    qn_err err = {0};
    qn_buf_init(&b, 10);
    QT_EQ(t, qn_buf_append_z(&b, "12345678", NULL), QN_OK);
    QT_EQ(t, qn_buf_append_z(&b, "123", &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "limit 10") != NULL);
    QT_EQ(t, qn_buf_append(&b, "x", SIZE_MAX, NULL), QN_E_LIMIT);
    QT_STR(t, qn_buf_text(&b), "12345678");
    QT_EQ(t, qn_buf_append_z(&b, "90", NULL), QN_OK);
    QT_OK(t, b.cap <= 11 + 53); /* never much past max */
    QT_EQ(t, qn_buf_append_byte(&b, 'x', NULL), QN_E_LIMIT);
    qn_buf_fini(&b);
}

static void prints_formatted_text(qt *t)
{
    qn_buf b;
    qn_buf_init(&b, 100);
    QT_EQ(t, qn_buf_printf(&b, NULL, "%s=%d", "x", 42), QN_OK);
    QT_EQ(t, qn_buf_printf(&b, NULL, ";%05.1f", 2.25), QN_OK);
    QT_STR(t, qn_buf_text(&b), "x=42;002.2");
    QT_EQ(t, qn_buf_printf(&b, NULL, "%0200d", 1), QN_E_LIMIT);
    QT_STR(t, qn_buf_text(&b), "x=42;002.2");
    qn_buf_fini(&b);
}

static void takes_the_bytes_away(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_buf b;
    size_t n = 0, at = 0;
    qn_buf_init(&b, 100);
    QT_OK(t, !qn_buf_take(&b, &n) && n == 0);
    QT_EQ(t, qn_buf_append_z(&b, "abc", NULL), QN_OK);
    QT_EQ(t, qn_buf_append_zero(&b, 3, &at, NULL), QN_OK);
    uint8_t *p = qn_buf_take(&b, &n);
    QT_OK(t, p && n == 6 && at == 3 && memcmp(p, "abc\0\0\0", 7) == 0 && b.len == 0 && !b.data);
    QT_EQ(t, qn_buf_append_z(&b, "again", NULL), QN_OK);
    qn_free(p);
    qn_buf_fini(&b);
    QT_EQ(t, qn_alloc_live(), before);
}

static void a_failed_allocation_leaves_the_contents(qt *t)
{
    qn_buf b;
    qn_buf_init(&b, 1 << 20);
    QT_EQ(t, qn_buf_append_z(&b, "abc", NULL), QN_OK);
    qn_alloc_fail_after(0);
    QT_EQ(t, qn_buf_append_zero(&b, 1000, NULL, NULL), QN_E_NOMEM);
    qn_alloc_fail_after(SIZE_MAX);
    QT_STR(t, qn_buf_text(&b), "abc");
    qn_buf_fini(&b);
}

QT_MAIN(QT(appends_and_keeps_a_nul_behind), QT(refuses_past_its_maximum_and_keeps_contents),
        QT(prints_formatted_text), QT(takes_the_bytes_away),
        QT(a_failed_allocation_leaves_the_contents))
