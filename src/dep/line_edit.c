/* SPDX-License-Identifier: Apache-2.0 */
/* line_edit.c - dep/line_edit.h on libedit.
 *
 * libedit reads characters as the thread's locale says; a C.UTF-8 locale is put there for the time of
 * a call, so that nothing of the process changes. The terminal makes no signals of keys while a line
 * is edited; Ctrl-C and Ctrl-Z are bound to functions here. Pasted text comes between two marks
 * (bracketed paste): line ends in it are text. */
#include "dep/line_edit.h"

#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "dep/json.h"

enum { KEPT = 1000, MAX_HISTORY = 4 << 20, MAX_ENTRY = 1 << 16, MAX_PASTE = 1 << 20 };

struct qn_line_edit {
    EditLine *el;
    History *history;
    FILE *screen;
    locale_t utf8;
    const char *prompt;
    char *path; /* of the history, or NULL */
    qn_line_kind ended;
};

static qn_line_edit *self(EditLine *el)
{
    void *data = NULL;
    el_get(el, EL_CLIENTDATA, &data);
    return data;
}

static char *prompt_of(EditLine *el)
{
    const qn_line_edit *e = self(el);
    return (char *)(uintptr_t)e->prompt; /* libedit only reads it */
}

/* Whether the terminal puts marks around what is pasted. */
static void brackets(const qn_line_edit *e, bool on)
{
    fputs(on ? "\033[?2004h" : "\033[?2004l", e->screen);
    fflush(e->screen);
}

static unsigned char interrupt_key(EditLine *el, int key)
{
    qn_line_edit *e = self(el);
    const LineInfo *line = el_line(el);
    (void)key;
    e->ended = line->lastchar > line->buffer ? QN_LINE_CLEARED : QN_LINE_CANCEL;
    fputs("^C\n", e->screen);
    return CC_EOF;
}

/* libedit's handler gives the terminal back before the program stops, and takes it again after. */
static unsigned char suspend_key(EditLine *el, int key)
{
    const qn_line_edit *e = self(el);
    (void)key;
    brackets(e, false);
    (void)raise(SIGTSTP);
    brackets(e, true);
    return CC_REFRESH;
}

typedef struct pasted { /* on its way into the line */
    EditLine *el;
    wchar_t text[512];
    size_t n, total;
} pasted;

static void put_pasted(pasted *p, wchar_t c)
{
    if (c == L'\r') c = L'\n';
    if ((c < 0x20 && c != L'\n' && c != L'\t') || (c >= 0x7f && c < 0xa0)) return;
    if (++p->total > MAX_PASTE) return;
    p->text[p->n++] = c == L'\t' ? L' ' : c;
    if (p->n + 1 < QN_LEN(p->text)) return;
    p->text[p->n] = L'\0';
    (void)el_winsertstr(p->el, p->text);
    p->n = 0;
}

/* Everything up to "ESC [ 2 0 1 ~". Control characters but line ends and tabs are left out. */
static unsigned char paste_key(EditLine *el, int key)
{
    static const wchar_t end[] = L"\033[201~";
    pasted p = {.el = el};
    wchar_t c = 0;
    size_t matched = 0;
    (void)key;
    while (end[matched] && el_wgetc(el, &c) == 1) {
        if (c == end[matched]) {
            matched++;
            continue;
        }
        for (size_t i = 0; i < matched; i++) put_pasted(&p, end[i]); /* it was text after all */
        matched = c == end[0];
        if (!matched) put_pasted(&p, c);
    }
    p.text[p.n] = L'\0';
    if (p.n) (void)el_winsertstr(el, p.text);
    return CC_REFRESH;
}

/* -- history ----------------------------------------------------------------------------------- */

static void enter(qn_line_edit *e, const char *text)
{
    HistEvent event;
    if (e->history) (void)history(e->history, &event, H_ENTER, text);
}

/* A line of the file; what is no JSON text is skipped. */
static void enter_json(qn_line_edit *e, qn_str line)
{
    qn_json *v = NULL;
    size_t n = 0;
    if (qn_json_parse(&v, line.p, line.n, 8 * MAX_ENTRY, NULL) != QN_OK) return;
    const char *text = qn_json_str(qn_json_at(v, 0), &n);
    if (text && n && n <= MAX_ENTRY && !memchr(text, '\0', n)) enter(e, text);
    qn_json_free(v);
}

/* Of a file beyond its ceiling the newer half is kept. */
static void load_history(qn_line_edit *e)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    if (qn_file_read(&bytes, &n, e->path, 2 * MAX_HISTORY, NULL) != QN_OK) return;
    qn_str rest = {(const char *)bytes, n}, line;
    if (n > MAX_HISTORY) {
        const size_t at = qn_str_find(rest, QN_STR("\n"), n - MAX_HISTORY / 2);
        rest = at == SIZE_MAX ? (qn_str){0} : qn_str_slice(rest, at + 1, n);
        (void)qn_file_write_private(e->path, rest.p, rest.n, NULL);
    }
    while (rest.n && qn_str_split(&line, &rest, '\n'))
        if (line.n) enter_json(e, line);
    qn_free(bytes);
}

void qn_line_edit_remember(qn_line_edit *e, const char *text, size_t n)
{
    char *line = NULL;
    size_t len = 0;
    qn_json *list = qn_json_new_array();
    if (n && n <= MAX_ENTRY && text[n] == '\0' && strlen(text) == n) enter(e, text);
    if (list && e->path && e->path[0] && n && n <= MAX_ENTRY &&
        qn_json_push(list, qn_json_new_str(text, n)) &&
        qn_json_dump(&line, &len, list, NULL) == QN_OK) {
        const int fd = open(e->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        line[len] = '\n'; /* in place of the NUL: one write, whole or not at all in practice */
        if (fd >= 0 && write(fd, line, len + 1) < 0) e->path[0] = '\0'; /* a full disk: no more */
        if (fd >= 0) (void)close(fd);
    }
    qn_free(line);
    qn_json_free(list);
}

/* -- life -------------------------------------------------------------------------------------- */

static qn_code set_up(qn_line_edit *e, FILE *in, const char *path, qn_err *err)
{
    HistEvent event;
    e->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    const locale_t before = e->utf8 ? uselocale(e->utf8) : (locale_t)0;
    e->el = el_init("quern", in, e->screen, e->screen);
    e->history = history_init();
    if (e->el) {
        el_set(e->el, EL_CLIENTDATA, e);
        el_set(e->el, EL_PROMPT, prompt_of);
        el_set(e->el, EL_EDITOR, "emacs");
        el_set(e->el, EL_SIGNAL, 1);
        if (e->history) el_set(e->el, EL_HIST, history, e->history);
        el_set(e->el, EL_ADDFN, "qn-interrupt", "leave the line", interrupt_key);
        el_set(e->el, EL_ADDFN, "qn-paste", "take pasted text as it is", paste_key);
        el_set(e->el, EL_BIND, "^C", "qn-interrupt", NULL);
        el_set(e->el, EL_ADDFN, "qn-suspend", "stop the program", suspend_key);
        el_set(e->el, EL_BIND, "^Z", "qn-suspend", NULL);
        el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
        el_set(e->el, EL_BIND, "\033[200~", "qn-paste", NULL);
        el_set(e->el, EL_SETTY, "-d", "-isig", NULL);
    }
    if (e->utf8) (void)uselocale(before);
    if (!e->el || !e->history) return qn_fail(err, QN_E_NOMEM, "the line editor");
    (void)history(e->history, &event, H_SETSIZE, KEPT);
    (void)history(e->history, &event, H_SETUNIQUE, 1);
    if (!path) return QN_OK;
    e->path = qn_alloc(strlen(path) + 1);
    if (!e->path) return qn_fail(err, QN_E_NOMEM, "the history's name");
    memcpy(e->path, path, strlen(path) + 1);
    load_history(e);
    return QN_OK;
}

qn_code qn_line_edit_open(qn_line_edit **out, FILE *in, FILE *screen, const char *history_path,
                          qn_err *err)
{
    *out = NULL;
    qn_line_edit *e = qn_zalloc(sizeof *e);
    if (!e) return qn_fail(err, QN_E_NOMEM, "the line editor");
    e->screen = screen;
    e->prompt = "";
    const qn_code rc = set_up(e, in, history_path, err);
    if (rc == QN_OK)
        *out = e;
    else
        qn_line_edit_close(e);
    return rc;
}

void qn_line_edit_close(qn_line_edit *e)
{
    if (!e) return;
    if (e->el) el_end(e->el);
    if (e->history) history_end(e->history);
    if (e->utf8) freelocale(e->utf8);
    qn_free(e->path);
    qn_free(e);
}

/* libedit's handler has given the terminal back and sends the signal again, to this one: the marks
 * around pasted text end too. stderr is where they were asked for, and a handler can know no more. */
static void on_end(int signal)
{
    static const char off[] = "\033[?2004l\n";
    const ssize_t n = write(STDERR_FILENO, off, sizeof off - 1);
    (void)n;
    (void)raise(signal); /* as it was before: SA_RESETHAND */
}

static const int ends[] = {SIGTERM, SIGHUP, SIGQUIT};

static void watch_ends(struct sigaction before[QN_LEN(ends)])
{
    struct sigaction act = {.sa_handler = on_end, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < QN_LEN(ends); i++) {
        (void)sigaction(ends[i], NULL, &before[i]);
        if (before[i].sa_handler == SIG_DFL) (void)sigaction(ends[i], &act, NULL);
    }
}

qn_code qn_line_edit_read(qn_line_kind *kind, qn_buf *line, qn_line_edit *e, const char *prompt,
                          qn_err *err)
{
    int n = 0;
    struct sigaction before[QN_LEN(ends)];
    const locale_t locale = e->utf8 ? uselocale(e->utf8) : (locale_t)0;
    e->prompt = prompt;
    e->ended = QN_LINE_END;
    watch_ends(before);
    el_set(e->el, EL_PREP_TERM, 1); /* before anybody sees that keys are expected: none is lost */
    brackets(e, true);
    const char *text = el_gets(e->el, &n);
    brackets(e, false);
    for (size_t i = 0; i < QN_LEN(ends); i++) (void)sigaction(ends[i], &before[i], NULL);
    if (e->utf8) (void)uselocale(locale);
    *kind = e->ended;
    if (!text || n <= 0) return QN_OK;
    size_t len = (size_t)n;
    if (text[len - 1] == '\n') len--;
    *kind = QN_LINE_TEXT;
    return qn_buf_append(line, text, len, err);
}
