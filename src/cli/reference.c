/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - the tables of verbs and options as a man page, man(7), and as Markdown.
 *
 * A verb's notes are text with examples between: a line that begins with two spaces is an example and
 * is kept as it stands, an empty line ends a paragraph. Texts are ASCII (a test looks). */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define WHAT "run language models on this machine"
static const char *const intro[] = {
    "Results go to stdout, everything said to people goes to stderr. \"--name value\" and "
    "\"--name=value\" are the same; \"--\" ends the options. What is unknown or out of range is "
    "refused and named.",
    NULL,
};

typedef struct form { /* how one of the two is written */
    void (*text)(qn_io *io, qn_str text);
    void (*example)(qn_io *io, qn_str line);
    const char *example_begin, *example_end, *paragraph;
} form;

/* -- notes ------------------------------------------------------------------------------------- */

static void write_notes(qn_io *io, const form *f, const char *notes)
{
    qn_str rest = qn_str_z(notes), line;
    bool example = false, begun = false; /* inside an example, inside a paragraph */
    while (qn_str_split(&line, &rest, '\n')) {
        const bool is_example = qn_str_has_prefix(line, QN_STR("  "));
        if (is_example != example) qn_io_print(io, "%s", example ? f->example_end : "");
        if (is_example && !example) qn_io_print(io, "%s", f->example_begin);
        example = is_example;
        if (line.n == 0 || is_example) begun = false;
        if (line.n == 0) continue;
        if (!is_example && !begun) qn_io_print(io, "%s", f->paragraph);
        if (!is_example) begun = true;
        if (is_example)
            f->example(io, qn_str_slice(line, 2, line.n));
        else
            f->text(io, line);
        qn_io_print(io, "\n");
    }
    if (example) qn_io_print(io, "%s", f->example_end);
}

/* -- man ----------------------------------------------------------------------------------------*/

/* Everything roff reads as its own is spelled out. */
static void roff_line(qn_io *io, qn_str s)
{
    static const char *const names[128] = {
        ['\\'] = "\\e",  ['-'] = "\\-",   ['\''] = "\\(aq", ['`'] = "\\(ga",
        ['^'] = "\\(ha", ['~'] = "\\(ti", ['"'] = "\\(dq"};
    if (s.n && s.p[0] == '.') qn_io_print(io, "\\&");
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c < 128 && names[c])
            qn_io_print(io, "%s", names[c]);
        else
            qn_io_write(io, s.p + i, 1);
    }
}

/* Filled text: words on short lines, as roff's readers like it. */
static void roff_text(qn_io *io, qn_str s)
{
    qn_str rest = s, word;
    for (size_t column = 0; qn_str_split(&word, &rest, ' ');) {
        if (word.n == 0) continue;
        if (column) qn_io_print(io, column + word.n > 50 ? "\n" : " ");
        if (column + word.n > 50) column = 0;
        roff_line(io, word);
        column += word.n + 1;
    }
}

static const form roff = {roff_text, roff_line, ".PP\n.nf\n.RS 4\n", ".RE\n.fi\n", ".PP\n"};

static void man_verb(qn_io *io, const qn_verb *verb)
{
    qn_io_print(io, ".SS \"quern %s%s%s", verb->name, verb->options->name ? " [options]" : "",
                verb->args[0] ? " " : "");
    roff_line(io, qn_str_z(verb->args));
    qn_io_print(io, "\"\n");
    roff_text(io, qn_str_z(verb->summary));
    qn_io_print(io, ".\n");
    if (verb->notes) write_notes(io, &roff, verb->notes);
    for (const qn_opt *o = verb->options; o->name; o++) {
        char standard[64];
        if (!o->help) continue;
        qn_io_print(io, ".TP\n\\fB\\-\\-");
        roff_line(io, qn_str_z(o->name));
        qn_io_print(io, "\\fR");
        if (o->arg) {
            qn_io_print(io, " \\fI");
            roff_line(io, qn_str_z(o->arg));
            qn_io_print(io, "\\fR");
        }
        qn_io_print(io, "\n");
        roff_text(io, qn_str_z(o->help));
        qn_opt_default(standard, verb, o);
        qn_io_print(io, "\n");
        if (standard[0]) roff_text(io, qn_str_z(standard + 1));
        if (standard[0]) qn_io_print(io, "\n");
    }
}

void qn_help_man(qn_io *io)
{
    qn_io_print(io,
                ".\\\" SPDX-License-Identifier: Apache-2.0\n"
                ".\\\" Written by \"quern help --man\".\n"
                ".TH QUERN 1 2026-12-01 \"quern %s\" \"User Commands\"\n"
                ".SH NAME\nquern \\- " WHAT "\n"
                ".SH SYNOPSIS\n\\fBquern\\fR \\fIVERB\\fR [\\fIoptions\\fR] "
                "[\\fIarguments\\fR]\n"
                ".SH DESCRIPTION\n",
                quern_version());
    for (size_t i = 0; intro[i]; i++) {
        if (i) qn_io_print(io, ".PP\n");
        roff_text(io, qn_str_z(intro[i]));
        qn_io_print(io, "\n");
    }
    qn_io_print(io, ".SH VERBS\n");
    for (const qn_verb *const *v = qn_verbs; *v; v++) man_verb(io, *v);
    qn_io_print(io, ".SH ENVIRONMENT\n");
    for (const qn_named *e = qn_environment; e->name; e++) {
        qn_io_print(io, ".TP\n\\fB%s\\fR\n", e->name);
        roff_text(io, qn_str_z(e->text));
        qn_io_print(io, "\n");
    }
    qn_io_print(io, ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\nall went well\n");
    for (quern_code c = qn_exit_next(QUERN_OK); c != QUERN_OK; c = qn_exit_next(c)) {
        qn_io_print(io, ".TP\n\\fB%d\\fR\n", quern_code_exit(c));
        roff_text(io, qn_str_z(quern_code_text(c)));
        qn_io_print(io, "\n");
    }
}

/* -- Markdown ---------------------------------------------------------------------------------- */

static void markdown_text(qn_io *io, qn_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (strchr("\\`*_<>[]|#", s.p[i])) qn_io_print(io, "\\");
        qn_io_write(io, s.p + i, 1);
    }
}

/* In a cell even `code` ends at a bar. */
static void markdown_cell_code(qn_io *io, const char *text)
{
    for (; *text; text++) qn_io_print(io, *text == '|' ? "\\|" : "%c", *text);
}

static void markdown_line(qn_io *io, qn_str s) { qn_io_write(io, s.p, s.n); }

static const form markdown = {markdown_text, markdown_line, "\n```sh\n", "```\n", "\n"};

static void markdown_verb(qn_io *io, const qn_verb *verb)
{
    bool any = false;
    qn_io_print(io, "\n## quern %s\n\n`quern %s%s%s%s`\n\n", verb->name, verb->name,
                verb->options->name ? " [options]" : "", verb->args[0] ? " " : "", verb->args);
    markdown_text(io, qn_str_z(verb->summary));
    qn_io_print(io, ".\n");
    if (verb->notes) write_notes(io, &markdown, verb->notes);
    for (const qn_opt *o = verb->options; o->name; o++) {
        char standard[64];
        if (!o->help) continue;
        if (!any) qn_io_print(io, "\n| option | meaning |\n| --- | --- |\n");
        any = true;
        qn_io_print(io, "| `--%s%s", o->name, o->arg ? " " : "");
        markdown_cell_code(io, o->arg ? o->arg : "");
        qn_io_print(io, "` | ");
        qn_opt_default(standard, verb, o);
        markdown_text(io, qn_str_z(o->help));
        markdown_text(io, qn_str_z(standard));
        qn_io_print(io, " |\n");
    }
}

void qn_help_markdown(qn_io *io)
{
    qn_io_print(io,
                "# The command line\n\n"
                "<!-- Written by `quern help --markdown > docs/cli.md`; a test compares. -->\n\n"
                "`quern VERB [options] [arguments]`: " WHAT ".\n");
    for (size_t i = 0; intro[i]; i++) {
        qn_io_print(io, "\n");
        markdown_text(io, qn_str_z(intro[i]));
        qn_io_print(io, "\n");
    }
    for (const qn_verb *const *v = qn_verbs; *v; v++) markdown_verb(io, *v);
    qn_io_print(io, "\n## Environment\n\n| variable | meaning |\n| --- | --- |\n");
    for (const qn_named *e = qn_environment; e->name; e++) {
        qn_io_print(io, "| `%s` | ", e->name);
        markdown_text(io, qn_str_z(e->text));
        qn_io_print(io, " |\n");
    }
    qn_io_print(io,
                "\n## Exit status\n\n| status | meaning |\n| --- | --- |\n| 0 | all went well |\n");
    for (quern_code c = qn_exit_next(QUERN_OK); c != QUERN_OK; c = qn_exit_next(c))
        qn_io_print(io, "| %d | %s |\n", quern_code_exit(c), quern_code_text(c));
}
