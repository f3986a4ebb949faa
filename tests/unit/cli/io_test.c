/* SPDX-License-Identifier: Apache-2.0 */
/* io_test.c - what reaches a terminal of text that others wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "qt.h"

static char *written(const char *bytes, size_t n, bool terminal)
{
    char *text = NULL;
    size_t len = 0;
    qn_io io = {.out = open_memstream(&text, &len), .out_is_terminal = terminal};
    qn_io_text(&io, bytes, n);
    fclose(io.out);
    return text;
}

static void a_terminal_is_shown_control_characters_and_obeys_none(qt *t)
{
    static const struct {
        const char *bytes, *shown;
    } rows[] = {
        {"plain\ntext\twith \xC3\xB6 and \xF0\x9F\x98\x80", NULL}, /* as it is */
        {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
        {"a\x1b[2J", "a\\x1b[2J"},
        {"\rover\x08\x7f", "\\x0dover\\x08\\x7f"},
        {"\xC2\x9b 31m", "\\x9b 31m"},       /* C1's CSI */
        {"\xE2\x80\xAE txt", "\\u202e txt"}, /* right-to-left override */
        {"\xE2\x81\xA6 x \xFF", "\\u2066 x \xEF\xBF\xBD"},
        {"", ""},
    };
    for (size_t i = 0; i < QT_LEN(rows); i++) {
        char *shown = written(rows[i].bytes, strlen(rows[i].bytes), true);
        char *raw = written(rows[i].bytes, strlen(rows[i].bytes), false);
        QT_STR(t, shown, rows[i].shown ? rows[i].shown : rows[i].bytes);
        QT_STR(t, raw, rows[i].bytes); /* a file gets every byte */
        free(shown);
        free(raw);
    }
}

QT_MAIN(QT(a_terminal_is_shown_control_characters_and_obeys_none))
