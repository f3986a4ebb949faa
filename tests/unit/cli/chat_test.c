/* SPDX-License-Identifier: Apache-2.0 */
/* chat_test.c - `quern chat` at a terminal: what a person types, sees and gets back. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "qt.h"
#include "terminal.h"

#define MODEL "tests/golden/llama/gguf-f32/model.gguf"
#define OPEN "\033[?2004h" /* the terminal marks pasted text: a line is being read */
#define SHUT "\033[?2004l" /* the line has been read */
#define UP "\033[A"

/* -- what is talked with ------------------------------------------------------------------------ */

static const char *template_path(void)
{
    static char path[600];
    static const char text[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                               "<assistant>";
    if (!path[0]) snprintf(path, sizeof path, "%s", qt_file("chat.jinja", text, sizeof text - 1));
    return path;
}

/* A copy of MODEL that was "made for" so many positions, never ends its text by itself, and whose token
 * for a space stands for ESC. */
static const char *changed_model(qt *t)
{
    static char path[600];
    static uint8_t bytes[1 << 20];
    const uint32_t context = 131072, eos = 0;
    FILE *f = fopen(MODEL, "rb");
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f) fclose(f);
    static const char key[] = "llama.context_length", end[] = "tokenizer.ggml.eos_token_id";
    uint8_t *at = memmem(bytes, n, key, sizeof key - 1);
    uint8_t *id = memmem(bytes, n, end, sizeof end - 1);
    if (!QT_OK(t, n && n < sizeof bytes && at && id)) abort();
    memcpy(at + sizeof key - 1 + 4, &context, 4);
    memcpy(id + sizeof end - 1 + 4, &eos, 4);
    for (uint8_t *p = bytes; (p = memmem(p, n - (size_t)(p - bytes), "\xc4\xa0", 2)) != NULL;)
        p[1] = 0x9b; /* how byte-level vocabularies spell 0x1b */
    snprintf(path, sizeof path, "%s", qt_file("endless.gguf", bytes, n));
    return path;
}

static terminal *talk_with(qt *t, const char *model, const char *context)
{
    const char *const args[] = {QUERN_PROGRAM, "chat",          "--model",       model,
                                "--template",  template_path(), "--temperature", "0",
                                "--context",   context,         "--threads",     "1",
                                NULL};
    char home[600];
    program_run("version"); /* it leaves the user's home */
    snprintf(home, sizeof home, "%s/home", qt_tmp());
    mkdir(home, 0700);
    terminal *m = terminal_start(t, args);
    terminal_wait(m, "/help lists commands");
    terminal_wait(m, OPEN);
    terminal_wait(m, "> ");
    return m;
}

static terminal *talk(qt *t) { return talk_with(t, MODEL, "256"); }

/* Types a line, waits for what it says and for the next prompt. */
static bool says(terminal *m, const char *line, const char *word)
{
    terminal_type(m, line);
    terminal_type(m, "\r");
    return terminal_wait(m, SHUT) && (!word || terminal_wait(m, word)) && terminal_wait(m, OPEN) &&
           terminal_wait(m, "> ");
}

/* Ctrl-D: the end, and a terminal as it was. */
static void leaves(terminal *m)
{
    terminal_type(m, "\004");
    QT_EQ(m->t, terminal_status(m), 0);
    QT_OKF(m->t, terminal_as_before(m), "the terminal's settings have changed");
    terminal_end(m);
}

static const char *saved(terminal *m)
{
    static char text[1 << 18];
    char path[600], line[700];
    snprintf(path, sizeof path, "%s/saved.json", qt_tmp());
    snprintf(line, sizeof line, "/save %s", path);
    says(m, line, "turns in ");
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
    return text;
}

/* -- a conversation ----------------------------------------------------------------------------- */

static void an_answer_is_the_one_that_is_given_without_a_terminal(qt *t)
{
    char args[2000], want[4096];
    snprintf(args, sizeof args,
             "chat --model " MODEL " --template '%s' --temperature 0 --context 256 abc",
             template_path());
    const program_result *r = program_run(args);
    QT_OKF(t, r->status == 0 && strlen(r->out) > 8, "%d: %s%s", r->status, r->out, r->err);
    snprintf(want, sizeof want, "%.*s\r\n", (int)strcspn(r->out, "\n"), r->out);
    terminal *m = talk(t);
    QT_OK(t, says(m, "abc", want));
    leaves(m);
}

static void a_message_goes_on_behind_a_backslash_and_between_fences(qt *t)
{
    terminal *m = talk(t);
    terminal_type(m, "/set max-tokens 3\r");
    QT_OK(t, terminal_wait(m, "max-tokens") && terminal_wait(m, OPEN));
    terminal_type(m, "one\\\r");
    QT_OK(t, terminal_wait(m, ". "));
    QT_OK(t, says(m, "two", NULL));
    terminal_type(m, "\"\"\"a\r");
    QT_OK(t, terminal_wait(m, ". "));
    terminal_type(m, "b\r");
    QT_OK(t, terminal_wait(m, OPEN) && terminal_wait(m, ". "));
    QT_OK(t, says(m, "c\"\"\"", NULL));
    const char *text = saved(m);
    QT_OKF(t, strstr(text, "\"one\\ntwo\"") && strstr(text, "\"a\\nb\\nc\""), "%s", text);
    leaves(m);
}

static void the_next_turn_sees_the_ones_before(qt *t)
{
    terminal *m = talk(t);
    says(m, "/set max-tokens 4", "4");
    says(m, "abc", NULL);
    says(m, "def", NULL);
    const char *text = saved(m);
    const char *first = strstr(text, "\"abc\""), *second = strstr(text, "\"def\"");
    QT_OKF(t, first && second && first < second && strstr(first, "\"assistant\"") < second, "%s",
           text);
    leaves(m);
}

/* -- commands ----------------------------------------------------------------------------------- */

static void help_names_every_command(qt *t)
{
    static const char *const names[] = {"/help", "/reset", "/system",     "/save", "/load",
                                        "/set",  "/undo",  "/regenerate", "/quit"};
    terminal *m = talk(t);
    terminal_type(m, "/help\r");
    for (size_t i = 0; i < QT_LEN(names); i++) QT_OK(t, terminal_wait(m, names[i]));
    QT_OK(t, terminal_wait(m, "Ctrl-C") && terminal_wait(m, OPEN));
    leaves(m);
}

static void a_conversation_is_saved_forgotten_loaded_and_taken_back(qt *t)
{
    char line[700];
    terminal *m = talk(t);
    says(m, "/set max-tokens 4", "4");
    QT_OK(t, says(m, "/system be brief", "[system text set]"));
    says(m, "abc", NULL);
    char before[2000];
    snprintf(before, sizeof before, "%.1999s", saved(m));
    QT_OKF(t, strstr(before, "be brief") && strstr(before, "abc"), "%s", before);
    QT_OK(t, says(m, "/reset", "[a new conversation"));
    QT_OK(t, strstr(saved(m), "abc") == NULL);
    QT_OK(t, says(m, "/undo", "the conversation is empty"));
    QT_OK(t, says(m, "/regenerate", "there is nothing to answer"));
    const char *kept = qt_file("kept.json", before, strlen(before));
    snprintf(line, sizeof line, "/load %s", kept);
    QT_OK(t, says(m, line, "[2 turns from "));
    QT_OK(t, says(m, "/regenerate", NULL));
    QT_STR(t, saved(m), before); /* greedy: the same answer */
    QT_OK(t, says(m, "/undo", "[0 turns left]"));
    QT_OK(t, says(m, "/system", "[no system text]"));
    leaves(m);
}

static void files_that_are_missing_broken_or_out_of_reach_are_named(qt *t)
{
    char line[700];
    terminal *m = talk(t);
    QT_OK(t, says(m, "/load /no/such/chat.json", "/no/such/chat.json"));
    snprintf(line, sizeof line, "/load %s", qt_file("broken.json", "{\"quern_chat\": 1", 16));
    QT_OK(t, says(m, line, "broken.json: "));
    snprintf(line, sizeof line, "/load %s", qt_file("other.json", "{\"a\": 1}", 8));
    QT_OK(t, says(m, line, "other.json: no saved chat"));
    snprintf(line, sizeof line, "/save %s", qt_file("mine.c", "int x;", 6));
    QT_OK(t, says(m, line, "mine.c is there and is no saved chat"));
    QT_OK(t, says(m, "/save /dev/null/chat.json", "/dev/null/chat.json"));
    QT_OK(t, says(m, "/save", "/save needs FILE"));
    QT_OK(t, says(m, "/load", "/load needs FILE"));
    leaves(m);
}

static void settings_are_listed_with_their_values_and_changed(qt *t)
{
    terminal *m = talk(t);
    terminal_type(m, "/set\r");
    QT_OK(t, terminal_wait(m, "temperature          * 0 "));
    QT_OK(t, terminal_wait(m, "repetition-context     20 "));
    QT_OK(t, terminal_wait(m, "xtc-threshold          0.1 "));
    QT_OK(t, terminal_wait(m, "seed                   random "));
    QT_OK(t, terminal_wait(m, "takes it back") && terminal_wait(m, OPEN));
    QT_OK(t, says(m, "/set temperature 0.5", "temperature          * 0.5"));
    QT_OK(t, says(m, "/set temp", "temperature          * 0.5"));
    QT_OK(t, says(m, "/set top_k 7", "top-k                * 7"));
    QT_OK(t, says(m, "/set temperature default", "temperature            0.7"));
    QT_OK(t, says(m, "/set temprature 1", "did you mean temperature?"));
    QT_OK(t, says(m, "/set top-p 3", "/set top-p is \"3\", expected a number from 0 to 1"));
    QT_OK(t, says(m, "/set colour red", "/set knows no \"colour\""));
    leaves(m);
}

static void an_unknown_command_names_the_nearest(qt *t)
{
    terminal *m = talk(t);
    QT_OK(t, says(m, "/lod x", "did you mean /load?"));
    QT_OK(t, says(m, "/xyzzyplugh", "/help lists them"));
    QT_OK(t, says(m, "/", "/help lists them"));
    QT_OK(t, says(m, "//set max-tokens", NULL)); /* a message */
    QT_OK(t, strstr(saved(m), "\"/set max-tokens\"") != NULL);
    terminal_type(m, "/quit\r");
    QT_EQ(t, terminal_status(m), 0);
    terminal_end(m);
}

/* -- keys --------------------------------------------------------------------------------------- */

/* The answer has more text than a pseudo terminal holds, so it is running for as long as nobody reads
 * on: no clock decides whether Ctrl-C comes in time. */
static void ctrl_c_stops_the_answer_and_keeps_what_came(qt *t)
{
    terminal *m = talk_with(t, changed_model(t), "131072");
    terminal_type(m, "abc\r");
    QT_OK(t, terminal_wait(m, SHUT) && terminal_wait_any(m));
    terminal_type(m, "\003");
    QT_OK(t, terminal_wait(m, "[stopped]") && terminal_wait(m, OPEN));
    const char *text = saved(m), *answer = strstr(text, "\"assistant\",\"content\":\"");
    QT_OKF(t, answer && answer[23] != '"', "%.200s", text);
    says(m, "/set max-tokens 3", "3");
    QT_OK(t, says(m, "more", "[ended after 3 tokens"));
    leaves(m);
}

static void ctrl_c_clears_a_line_and_twice_on_an_empty_one_quits(qt *t)
{
    terminal *m = talk(t);
    terminal_type(m, "not this");
    QT_OK(t, terminal_wait(m, "not this"));
    terminal_type(m, "\003");
    QT_OK(t, terminal_wait(m, "^C") && terminal_wait(m, OPEN));
    terminal_type(m, "\003");
    QT_OK(t, terminal_wait(m, "[Ctrl-C again or Ctrl-D quits]") && terminal_wait(m, OPEN));
    QT_OK(t, says(m, "/undo", "the conversation is empty")); /* and a line in between begins anew */
    terminal_type(m, "\003");
    QT_OK(t, terminal_wait(m, "[Ctrl-C again or Ctrl-D quits]") && terminal_wait(m, OPEN));
    terminal_type(m, "\003");
    QT_EQ(t, terminal_status(m), 0);
    QT_OK(t, terminal_as_before(m));
    terminal_end(m);
}

static void arrow_up_finds_lines_of_this_session_and_of_earlier_ones(qt *t)
{
    terminal *m = talk(t);
    QT_OK(t, says(m, "/undo first", "empty"));
    QT_OK(t, says(m, "/undo second", "empty"));
    terminal_type(m, UP);
    QT_OK(t, terminal_wait(m, "second"));
    terminal_type(m, UP);
    QT_OK(t, terminal_wait(m, "first"));
    terminal_type(m, "\003");
    QT_OK(t, terminal_wait(m, OPEN));
    leaves(m);
    m = talk(t);
    terminal_type(m, UP);
    QT_OK(t, terminal_wait(m, "/undo second"));
    terminal_type(m, "\003");
    QT_OK(t, terminal_wait(m, OPEN));
    leaves(m);
}

/* -- what a terminal may throw at it ------------------------------------------------------------- */

static void a_hundred_kilobytes_in_a_line_are_told_not_cut(qt *t)
{
    enum { LONG = 100000 };
    static char text[LONG];
    memset(text, 'x', sizeof text);
    terminal *m = talk(t);
    terminal_type(m, "\033[200~");
    terminal_send(m, text, sizeof text);
    terminal_type(m, "\033[201~");
    QT_OK(t, says(m, "", "leaves no room in a context of 256; nothing was cut"));
    terminal_send(m, text, sizeof text); /* typed, very fast */
    QT_OK(t, says(m, "", "leaves no room in a context of 256; nothing was cut"));
    QT_OK(t, says(m, "/undo", "the conversation is empty"));
    leaves(m);
}

static void pasted_line_ends_are_text_and_control_characters_are_not(qt *t)
{
    terminal *m = talk(t);
    says(m, "/set max-tokens 3", "3");
    terminal_type(m, "\033[200~one\rtwo\n\033[31mthree\a\033[201~");
    QT_OK(t, says(m, "", NULL));
    const char *text = saved(m);
    QT_OKF(t, strstr(text, "\"one\\ntwo\\n[31mthree\"") != NULL, "%s", text);
    leaves(m);
}

static void bytes_that_are_no_utf8_do_no_harm(qt *t)
{
    terminal *m = talk(t);
    says(m, "/set max-tokens 3", "3");
    QT_OK(t, says(m, "a\xff\xfe\xc3(z", NULL));
    QT_OK(t, says(m, "\033[200~b\xff\xed\xa0\x80\xf5(y\033[201~", NULL));
    QT_OK(t, says(m, "gr\xc3\xbc\xc3\x9f", NULL));
    const char *text = saved(m);
    QT_OKF(t, strstr(text, "(z\"") && strstr(text, "(y\"") && strstr(text, "gr\xc3\xbc\xc3\x9f"),
           "%s", text);
    leaves(m);
}

static void control_characters_of_the_model_are_shown_not_obeyed(qt *t)
{
    char line[100];
    terminal *m = talk_with(t, changed_model(t), "2000");
    says(m, "/set max-tokens 40", "40");
    says(m, "/set temperature 1000", "1000"); /* any token, ESC too */
    for (int seed = 1; seed <= 4; seed++) {
        const size_t from = m->from;
        snprintf(line, sizeof line, "/set seed %d", seed);
        says(m, line, "seed");
        QT_OK(t, says(m, "abc", NULL));
        const char *answer = strstr(m->seen + from, "abc");
        for (const char *p = answer; p && (p = strchr(p, '\033')) != NULL; p++)
            QT_OKF(t, strncmp(p, OPEN, 7) == 0 || p[1] == '[', "ESC %02x came through", p[1]);
    }
    QT_OK(t, strstr(m->seen, "\\x1b") != NULL);
    leaves(m);
}

static void another_size_of_the_window_leaves_the_line_as_it_is(qt *t)
{
    const struct winsize small = {.ws_row = 10, .ws_col = 30};
    terminal *m = talk(t);
    terminal_type(m, "/undo abc");
    QT_OK(t, terminal_wait(m, "/undo abc"));
    QT_OK(t, ioctl(m->line, TIOCSWINSZ, &small) == 0); /* the kernel sends SIGWINCH */
    QT_OK(t, says(m, "", "the conversation is empty"));
    leaves(m);
}

static void a_full_context_is_told_and_the_conversation_can_go_on(qt *t)
{
    terminal *m = talk_with(t, changed_model(t), "128");
    QT_OK(t, says(m, "abc", "[the context of 128 tokens is full: "));
    QT_OK(t, says(m, "abc", "leaves no room in a context of 128; nothing was cut."));
    QT_OK(t, says(m, "/undo", "[0 turns left]"));
    QT_OK(t, says(m, "abc", "[the context of 128 tokens is full: "));
    leaves(m);
}

/* -- the terminal is given back ------------------------------------------------------------------ */

static void killed_while_a_line_is_typed_it_gives_the_terminal_back(qt *t)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < QT_LEN(signals); i++) {
        terminal *m = talk(t);
        terminal_type(m, "half a li");
        QT_OK(t, terminal_wait(m, "half a li"));
        QT_OKF(t, !terminal_as_before(m), "a line is edited, but the terminal is as before");
        kill(m->pid, signals[i]);
        QT_EQ(t, terminal_status(m), 128 + signals[i]);
        QT_OKF(t, terminal_as_before(m), "after signal %d the settings have changed", signals[i]);
        QT_OKF(t, strstr(m->seen + m->from, SHUT) != NULL, "pasted text still comes in marks");
        terminal_end(m);
    }
}

static void killed_while_it_answers_it_leaves_the_terminal_as_it_was(qt *t)
{
    terminal *m = talk_with(t, changed_model(t), "131072");
    terminal_type(m, "abc\r");
    QT_OK(t, terminal_wait(m, SHUT) && terminal_wait_any(m));
    kill(m->pid, SIGTERM);
    QT_EQ(t, terminal_status(m), 128 + SIGTERM);
    QT_OK(t, terminal_as_before(m));
    terminal_end(m);
}

QT_MAIN(QT(an_answer_is_the_one_that_is_given_without_a_terminal),
        QT(a_message_goes_on_behind_a_backslash_and_between_fences),
        QT(the_next_turn_sees_the_ones_before), QT(help_names_every_command),
        QT(a_conversation_is_saved_forgotten_loaded_and_taken_back),
        QT(files_that_are_missing_broken_or_out_of_reach_are_named),
        QT(settings_are_listed_with_their_values_and_changed),
        QT(an_unknown_command_names_the_nearest), QT(ctrl_c_stops_the_answer_and_keeps_what_came),
        QT(ctrl_c_clears_a_line_and_twice_on_an_empty_one_quits),
        QT(arrow_up_finds_lines_of_this_session_and_of_earlier_ones),
        QT(a_hundred_kilobytes_in_a_line_are_told_not_cut),
        QT(pasted_line_ends_are_text_and_control_characters_are_not),
        QT(bytes_that_are_no_utf8_do_no_harm),
        QT(control_characters_of_the_model_are_shown_not_obeyed),
        QT(another_size_of_the_window_leaves_the_line_as_it_is),
        QT(a_full_context_is_told_and_the_conversation_can_go_on),
        QT(killed_while_a_line_is_typed_it_gives_the_terminal_back),
        QT(killed_while_it_answers_it_leaves_the_terminal_as_it_was))
