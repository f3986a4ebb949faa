/* SPDX-License-Identifier: Apache-2.0 */
/* line_edit_test.c - the line editor and its history file; keys are tried in chat_test.c. */
#include "dep/line_edit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "qt.h"

typedef struct pair { /* two ends of a pseudo terminal */
    int ours;
    FILE *line;
} pair;

static pair open_pair(qt *t)
{
    pair p = {posix_openpt(O_RDWR | O_NOCTTY), NULL};
    if (!QT_OK(t, p.ours >= 0 && grantpt(p.ours) == 0 && unlockpt(p.ours) == 0)) abort();
    p.line = fopen(ptsname(p.ours), "r+");
    if (!QT_OK(t, p.line != NULL)) abort();
    setenv("TERM", "xterm", 1);
    return p;
}

static void close_pair(pair *p)
{
    fclose(p->line);
    close(p->ours);
}

/* What a person would have typed is there before it is asked for: nothing waits. */
static void reads(qt *t, qn_line_edit *e, int ours, const char *keys, qn_line_kind kind,
                  const char *text)
{
    qn_buf b;
    qn_line_kind got = QN_LINE_END;
    qn_err err = {0};
    qn_buf_init(&b, 1 << 20);
    QT_EQ(t, write(ours, keys, strlen(keys)), (ssize_t)strlen(keys));
    QT_EQ(t, qn_line_edit_read(&got, &b, e, "> ", &err), QN_OK);
    QT_EQ(t, got, kind);
    if (kind == QN_LINE_TEXT) QT_STR(t, qn_buf_text(&b), text);
    qn_buf_fini(&b);
}

static void a_line_is_text_without_its_end(qt *t)
{
    pair p = open_pair(t);
    qn_line_edit *e = NULL;
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, NULL, NULL), QN_OK);
    reads(t, e, p.ours, "one two\n", QN_LINE_TEXT, "one two");
    reads(t, e, p.ours, "gr\xc3\xbc\xc3\x9f\n", QN_LINE_TEXT, "gr\xc3\xbc\xc3\x9f");
    reads(t, e, p.ours, "\n", QN_LINE_TEXT, "");
    qn_line_edit_close(e);
    close_pair(&p);
}

static void a_line_past_the_buffers_ceiling_is_refused(qt *t)
{
    pair p = open_pair(t);
    qn_line_edit *e = NULL;
    qn_line_kind kind = QN_LINE_END;
    qn_buf b;
    qn_buf_init(&b, 4);
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, NULL, NULL), QN_OK);
    QT_EQ(t, write(p.ours, "too long\n", 9), 9);
    QT_EQ(t, qn_line_edit_read(&kind, &b, e, "> ", NULL), QN_E_LIMIT);
    qn_buf_fini(&b);
    qn_line_edit_close(e);
    close_pair(&p);
}

static size_t read_file(char *to, size_t cap, const char *path)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, cap - 1, f) : 0;
    to[n] = '\0';
    if (f) fclose(f);
    return n;
}

static void history_is_private_and_outlives_the_editor(qt *t)
{
    char path[600], text[400];
    struct stat st;
    pair p = open_pair(t);
    qn_line_edit *e = NULL;
    snprintf(path, sizeof path, "%s/history", qt_tmp());
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, path, NULL), QN_OK);
    qn_line_edit_remember(e, "a\nb", 3);
    qn_line_edit_remember(e, "", 0); /* nothing */
    qn_line_edit_close(e);
    read_file(text, sizeof text, path);
    QT_STR(t, text, "[\"a\\nb\"]\n");
    QT_OK(t, stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, path, NULL), QN_OK);
    reads(t, e, p.ours, "\020\n", QN_LINE_TEXT, "a\nb"); /* Ctrl-P: the line before */
    qn_line_edit_close(e);
    close_pair(&p);
}

static void a_history_that_is_damaged_or_out_of_reach_is_done_without(qt *t)
{
    static const char damaged[] = "no json\n[\"kept\"]\n[3]\n[]\n\xff\xfe\n[\"a\\u0000b\"]\n[";
    pair p = open_pair(t);
    qn_line_edit *e = NULL;
    const char *path = qt_file("damaged", damaged, sizeof damaged - 1);
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, path, NULL), QN_OK);
    reads(t, e, p.ours, "\020\n", QN_LINE_TEXT, "kept");
    qn_line_edit_close(e);
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, "/dev/null/history", NULL), QN_OK);
    qn_line_edit_remember(e, "abc", 3);
    reads(t, e, p.ours, "\020\n", QN_LINE_TEXT, "abc");
    qn_line_edit_close(e);
    close_pair(&p);
}

static void of_a_history_that_has_grown_too_long_the_newer_half_is_kept(qt *t)
{
    enum { ROWS = 120000, ROW = 40 };
    char path[600];
    struct stat st;
    pair p = open_pair(t);
    qn_line_edit *e = NULL;
    snprintf(path, sizeof path, "%s/grown", qt_tmp());
    FILE *f = fopen(path, "wb");
    for (int i = 0; f && i < ROWS; i++) fprintf(f, "[\"%0*d\"]\n", ROW - 5, i);
    if (f) fclose(f);
    QT_EQ(t, qn_line_edit_open(&e, p.line, p.line, path, NULL), QN_OK);
    QT_OK(t, stat(path, &st) == 0 && st.st_size <= 2 << 20 && st.st_size > 1 << 20);
    reads(t, e, p.ours, "\020\n", QN_LINE_TEXT, "00000000000000000000000000000119999");
    qn_line_edit_close(e);
    close_pair(&p);
}

static void open_survives_every_failed_allocation(qt *t)
{
    static const char text[] = "[\"one\"]\n[\"two\"]\n";
    char path[600];
    pair p = open_pair(t);
    snprintf(path, sizeof path, "%s", qt_file("swept", text, sizeof text - 1));
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t n = 0;
    bool whole =
        false; /* a history that finds no memory is done without, so OK alone says little */
    for (; !whole && n < 200; n++) {
        qn_line_edit *e = NULL;
        qn_alloc_fail_after(n);
        rc = qn_line_edit_open(&e, p.line, p.line, path, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK ? e != NULL : rc == QN_E_NOMEM && e == NULL);
        if (e) {
            qn_alloc_fail_after(n);
            qn_line_edit_remember(e, "three", 5);
            qn_alloc_fail_after(SIZE_MAX);
            struct stat st;
            whole = stat(path, &st) == 0 && st.st_size > (off_t)sizeof text;
        }
        qn_line_edit_close(e);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_OK(t, rc == QN_OK && whole && n > 2);
    close_pair(&p);
}

QT_MAIN(QT(a_line_is_text_without_its_end), QT(a_line_past_the_buffers_ceiling_is_refused),
        QT(history_is_private_and_outlives_the_editor),
        QT(a_history_that_is_damaged_or_out_of_reach_is_done_without),
        QT(of_a_history_that_has_grown_too_long_the_newer_half_is_kept),
        QT(open_survives_every_failed_allocation))
