/* SPDX-License-Identifier: Apache-2.0 */
/* progress_test.c - the line of a download at every width, its rate, and what is written where nobody
 * watches. */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "qt.h"

#define SECOND 1000000000ull

static quern_get_progress at(const char *file, uint64_t done, uint64_t total, uint32_t index,
                             uint32_t count)
{
    return (quern_get_progress){.size = sizeof(quern_get_progress),
                                .file = file,
                                .step = "downloading",
                                .done = done,
                                .total = total,
                                .index = index,
                                .count = count};
}

static void a_wide_line_tells_all(qt *t)
{
    char line[256];
    const quern_get_progress now = at("model.gguf", 45000000, 100000000, 1, 8);
    qn_progress_line(line, sizeof line, &now, 5e6, 110);
    QT_STR(t, line,
           "downloading 2/8 model.gguf  [#############-----------------]  45%   45.0 MB of "
           "100.0 MB  5.0 MB/s  0:11 left");
    const quern_get_progress one = at("m", 1, 0, 0, 1);
    qn_progress_line(line, sizeof line, &one, 0, 80);
    QT_STR(t, line, "downloading m  1 B");
    const quern_get_progress slow = at("m", 0, 100000000000, 0, 1);
    qn_progress_line(line, sizeof line, &slow, 4e6, 70);
    QT_STR(t, line, "m  [--------------]   0%       0 B of 100.0 GB  4.0 MB/s  6:56:40 left");
    qn_progress_line(line, sizeof line, &slow, 1, 64); /* for ever is no time */
    QT_OKF(t, strstr(line, "1 B/s") && !strstr(line, "left"), "%s", line);
}

static void no_width_is_overrun(qt *t)
{
    char line[256];
    const quern_get_progress now = at("a-very-long-name-of-a-file.safetensors", 7, 9000, 3, 12);
    for (size_t columns = 0; columns < 250; columns++) {
        memset(line, 'x', sizeof line);
        qn_progress_line(line, sizeof line, &now, 1e6, columns);
        QT_OKF(t, strlen(line) <= columns, "%zu: \"%s\"", columns, line);
        if (columns >= 45)
            QT_OKF(t, strstr(line, "0%     7 B of 9.0 kB"), "%zu: %s", columns, line);
        if (columns >= 60 && columns < 80)
            QT_OKF(t, strstr(line, "...  ") != NULL, "%zu: \"%s\"", columns, line);
    }
    qn_progress_line(line, 20, &now, 1e6, 240);
    QT_EQ(t, strlen(line), 19);
}

static void names_cannot_move_the_cursor(qt *t)
{
    char line[256];
    const quern_get_progress now = at("a\x1b[2J\xC3\xA9\n\x9b", 7, 9000, 0, 1);
    qn_progress_line(line, sizeof line, &now, 0, 70);
    QT_OKF(t, strncmp(line, "a?[2J?\?  ", 9) == 0, "%s", line);
}

/* Everything that is written, as text. */
typedef struct written {
    char *text;
    size_t n;
    FILE *f;
    qn_progress p;
} written;

static void begin(written *w, bool terminal, bool quiet)
{
    w->f = open_memstream(&w->text, &w->n);
    qn_progress_init(&w->p, w->f, terminal, quiet);
}

static void end(written *w)
{
    fclose(w->f);
    free(w->text);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++) n++;
    return n;
}

static void a_terminal_is_drawn_on_five_times_a_second(qt *t)
{
    written w;
    begin(&w, true, false);
    for (uint64_t ms = 0; ms < 2000; ms += 10) {
        const quern_get_progress now = at("m", ms * 1000, 10000000, 0, 1);
        qn_progress_tell(&w.p, &now, 7 * SECOND + ms * 1000000);
    }
    QT_EQ(t, count(w.text, "\r"), 10);
    QT_EQ(t, count(w.text, "\n"), 0);
    QT_OKF(t, strstr(w.text, "1.0 MB/s  0:08 left\x1b[K") != NULL, "%s", w.text);
    qn_progress_end(&w.p, true);
    QT_STR(t, w.text + w.n - 4, "\r\x1b[K");
    QT_OK(t, w.p.part_kept);
    end(&w);
}

/* 20 seconds of 1 MB/s, then 6 of 3 MB/s, told every second: the slow part is forgotten. */
static void the_rate_is_of_the_last_five_seconds(qt *t)
{
    written w;
    uint64_t done = 0;
    begin(&w, true, false);
    for (uint64_t second = 0; second < 27; second++) {
        const quern_get_progress now = at("m", done, 1000000000, 0, 1);
        qn_progress_tell(&w.p, &now, second * SECOND);
        done += second < 20 ? 1000000 : 3000000;
    }
    const char *last = strrchr(w.text, '\r');
    QT_OKF(t, strstr(last, "3.0 MB/s") != NULL, "%s", last);
    end(&w);
}

/* The same five times a second, as many samples as are kept. */
static void the_rate_of_a_lively_download(qt *t)
{
    written w;
    uint64_t done = 0;
    begin(&w, true, false);
    for (uint64_t tick = 0; tick < 76; tick++) {
        const quern_get_progress now = at("m", done, 1000000000, 0, 1);
        qn_progress_tell(&w.p, &now, tick * SECOND / 5);
        done += tick < 50 ? 200000 : 600000;
    }
    const char *last = strrchr(w.text, '\r');
    QT_OKF(t, strstr(last, "3.0 MB/s") != NULL, "%s", last);
    const quern_get_progress again = at("m", 5, 1000000000, 0, 1); /* another measure begins */
    qn_progress_tell(&w.p, &again, 20 * SECOND);
    last = strrchr(w.text, '\r');
    QT_OKF(t, strstr(last, "/s") == NULL, "%s", last);
    end(&w);
}

static void elsewhere_a_file_has_two_lines(qt *t)
{
    written w;
    begin(&w, false, false);
    for (uint32_t i = 0; i < 40; i++) {
        const quern_get_progress now =
            at(i < 20 ? "config.json" : "a\nb", i * 100, 4000, i / 20, 2);
        qn_progress_tell(&w.p, &now, i * SECOND);
    }
    qn_progress_end(&w.p, true);
    QT_STR(t, w.text,
           "quern: downloading config.json (file 1 of 2, all 4.0 kB)\n"
           "quern: config.json is complete (1.9 kB)\n"
           "quern: downloading a\\x0ab (file 2 of 2, all 4.0 kB)\n"
           "quern: a\\x0ab is complete (1.9 kB)\n");
    end(&w);
    begin(&w, false, false);
    quern_get_progress now =
        at("org/name", 0, 0, 0, 0); /* which files there are is not known yet */
    qn_progress_tell(&w.p, &now, 0);
    now = at("m", 0, 0, 0, 1);
    qn_progress_tell(&w.p, &now, 0);
    QT_OK(t, !w.p.part_kept);
    qn_progress_end(&w.p, false); /* it failed: no file is complete */
    QT_STR(t, w.text, "quern: downloading m (file 1 of 1)\n");
    end(&w);
}

static void quiet_is_quiet(qt *t)
{
    written w;
    begin(&w, true, true);
    const quern_get_progress now = at("m", 1, 0, 0, 1);
    qn_progress_tell(&w.p, &now, 0);
    qn_progress_end(&w.p, true);
    QT_STR(t, w.text, "");
    QT_OK(t, w.p.part_kept);
    end(&w);
}

static void sizes_are_decimal(qt *t)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},         {999, "999 B"},        {1000, "1.0 kB"},       {999949, "999.9 kB"},
        {999950, "1.0 MB"}, {98362432, "98.4 MB"}, {UINT64_MAX, "18.4 EB"}};
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char text[16];
        qn_bytes_text(text, cases[i].bytes);
        QT_STR(t, text, cases[i].text);
    }
}

static void cells_are_one_line(qt *t)
{
    char cell[32];
    QT_EQ(t, qn_text_cell(cell, sizeof cell, "a\xC3\xA9\xE2\x80\xAE"), 8);
    QT_STR(t, cell, "a\xC3\xA9\\u202e");
    QT_EQ(t, qn_text_cell(cell, sizeof cell, "\t\xFF\n"), 9);
    QT_STR(t, cell, "\\x09\xEF\xBF\xBD\\x0a");
    QT_EQ(t, qn_text_cell(cell, 4, "abcd"), 3);
    QT_EQ(t, qn_text_cell(cell, 4, "ab\xC3\xA9"), 2); /* no half character */
    QT_STR(t, cell, "ab");
}

QT_MAIN(QT(a_wide_line_tells_all), QT(no_width_is_overrun), QT(names_cannot_move_the_cursor),
        QT(a_terminal_is_drawn_on_five_times_a_second), QT(the_rate_is_of_the_last_five_seconds),
        QT(the_rate_of_a_lively_download), QT(elsewhere_a_file_has_two_lines), QT(quiet_is_quiet),
        QT(sizes_are_decimal), QT(cells_are_one_line))
