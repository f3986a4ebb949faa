/* SPDX-License-Identifier: Apache-2.0 */
/* verb_ls.c - `quern ls`: the models on this machine, as a table or as JSON.
 *
 * On a terminal the table is as wide as it: columns are left out, the least telling first, and at the
 * end names are cut. Elsewhere nothing is left out. */
#include <string.h>
#include <sys/ioctl.h>

#include "base/buf.h"
#include "cli/open.h"

typedef struct ls_opts {
    bool json, all_revisions;
} ls_opts;

static const qn_opt options[] = {
    {"json", QN_OPT_FLAG, offsetof(ls_opts, json), NULL, "one line, an array of objects", 0, 0, 0},
    {"all-revisions", QN_OPT_FLAG, offsetof(ls_opts, all_revisions), NULL,
     "every revision of a model; * marks the one that its name means", 0, 0, 0},
    QN_OPT_END,
};

/* -- cells ------------------------------------------------------------------------------------- */

enum { NAME, REVISION, SIZE, PARAMS, QUANT, CONTEXT, LICENCE, NOTES, N_COLUMNS };
static const char *const heads[N_COLUMNS] = {"NAME",  "REVISION", "SIZE",    "PARAMS",
                                             "QUANT", "CONTEXT",  "LICENCE", "NOTES"};
/* Which go first where there is no room; NAME and SIZE stay. */
static const int least_telling[] = {LICENCE, CONTEXT, PARAMS, NOTES, QUANT, REVISION};

enum { CELL = 1200, GAP = 2, LEAST_NAME = 8 };

static void put_count(char *out, size_t cap, uint64_t n)
{
    static const char units[] = "kMBT";
    double v = (double)n / 1000;
    size_t i = 0;
    for (; v >= 999.5 && units[i + 1]; i++) v /= 1000;
    if (n < 1000)
        snprintf(out, cap, "%u", (unsigned)n);
    else
        snprintf(out, cap, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[i]);
}

/* The text of a cell; returns its characters. */
static size_t put_cell(char out[CELL], int column, const quern_store_model *m)
{
    char text[300] = "";
    switch (column) {
    case NAME:
        return qn_text_cell(out, CELL, m->name);
    case REVISION:
        snprintf(text, sizeof text, "%.8s%s", m->revision ? m->revision : "",
                 m->revision && m->canonical ? "*" : "");
        break;
    case SIZE:
        qn_bytes_text(text, m->bytes);
        break;
    case PARAMS:
        if (m->parameters) put_count(text, sizeof text, m->parameters);
        break;
    case QUANT:
        return qn_text_cell(out, CELL, m->quant);
    case CONTEXT:
        if (m->context) snprintf(text, sizeof text, "%u", m->context);
        break;
    case LICENCE:
        return qn_text_cell(out, CELL, m->license ? m->license : "");
    default:
        if (!m->supported)
            snprintf(text, sizeof text, "not supported: %.250s", m->family);
        else if (m->has_template)
            snprintf(text, sizeof text, "chat template");
    }
    return qn_text_cell(out, CELL, text);
}

/* -- table ------------------------------------------------------------------------------------- */

typedef struct table {
    size_t width[N_COLUMNS]; /* 0: left out */
} table;

static size_t total_of(const table *t)
{
    size_t sum = 0;
    for (int c = 0; c < N_COLUMNS; c++)
        if (t->width[c]) sum += t->width[c] + (sum ? GAP : 0);
    return sum;
}

/* columns: of the terminal, SIZE_MAX elsewhere. */
static void fit(table *t, size_t columns)
{
    for (size_t i = 0; i < QN_LEN(least_telling) && total_of(t) > columns; i++)
        t->width[least_telling[i]] = 0;
    const size_t total = total_of(t);
    if (total <= columns) return;
    const size_t over = total - columns, name = t->width[NAME];
    t->width[NAME] = name > over + LEAST_NAME ? name - over : LEAST_NAME;
}

static void print_cell(qn_io *io, const char *text, size_t characters, size_t width, bool right,
                       bool last)
{
    const size_t pad = characters < width ? width - characters : 0;
    if (characters >
        width) { /* a name that is too long: its beginning, and a sign that it goes on */
        size_t at = 0, kept = 0;
        uint32_t c = 0;
        for (; kept + 3 < width; kept++) at += qn_utf8_step(text + at, strlen(text + at), &c);
        qn_io_print(io, "%.*s...", (int)at, text);
    } else {
        qn_io_print(io, "%*s%s", right ? (int)pad : 0, "", text);
    }
    if (!last) qn_io_print(io, "%*s", (int)(right ? GAP : pad + GAP), "");
}

static void print_row(qn_io *io, const table *t, const quern_store_model *m)
{
    char cell[CELL];
    int last = 0;
    for (int c = 0; c < N_COLUMNS; c++)
        if (t->width[c]) last = c;
    for (int c = 0; c <= last; c++) {
        if (!t->width[c]) continue;
        const size_t n = m ? put_cell(cell, c, m) : qn_text_cell(cell, sizeof cell, heads[c]);
        print_cell(io, cell, n, t->width[c], c == SIZE || c == PARAMS || c == CONTEXT, c == last);
    }
    qn_io_print(io, "\n");
}

static size_t columns_of(const qn_io *io)
{
    struct winsize w = {0};
    if (!io->out_is_terminal) return SIZE_MAX;
    if (ioctl(fileno(io->out), TIOCGWINSZ, &w) != 0 || w.ws_col == 0) return 80;
    return w.ws_col;
}

static bool is_listed(const quern_store_model *m, const ls_opts *o)
{
    return o->all_revisions || m->canonical;
}

static void print_table(qn_io *io, const quern_store_list *list, const ls_opts *o)
{
    table t = {{0}};
    char cell[CELL];
    for (size_t i = 0; i < quern_store_list_count(list); i++) {
        const quern_store_model *m = quern_store_list_at(list, i);
        for (int c = 0; c < N_COLUMNS && is_listed(m, o); c++) {
            const size_t n = put_cell(cell, c, m);
            if (n > t.width[c]) t.width[c] = n;
        }
    }
    if (!o->all_revisions) t.width[REVISION] = 0;
    for (int c = 0; c < N_COLUMNS; c++) /* a column of nothing is not shown */
        if (t.width[c] && t.width[c] < strlen(heads[c])) t.width[c] = strlen(heads[c]);
    fit(&t, columns_of(io));
    print_row(io, &t, NULL);
    for (size_t i = 0; i < quern_store_list_count(list); i++) {
        const quern_store_model *m = quern_store_list_at(list, i);
        if (is_listed(m, o)) print_row(io, &t, m);
    }
}

/* -- JSON -------------------------------------------------------------------------------------- */

/* A name that is no UTF-8 has no JSON; null says so. */
static qn_json *text_or_null(const char *text)
{
    const bool fine = text && qn_utf8_valid(text, strlen(text), NULL);
    return fine ? qn_json_new_str(text, strlen(text)) : qn_json_new_null();
}

static qn_json *number_or_null(uint64_t n)
{
    return n && n <= INT64_MAX ? qn_json_new_int((int64_t)n) : qn_json_new_null();
}

static bool push_model(qn_json *array, const quern_store_model *m)
{
    qn_json *o = qn_json_new_object();
    bool ok = o != NULL;
    ok = ok && qn_json_set(o, "name", text_or_null(m->name));
    ok = ok && qn_json_set(o, "path", text_or_null(m->path));
    ok = ok && qn_json_set(o, "revision", text_or_null(m->revision));
    ok = ok && qn_json_set(o, "canonical", qn_json_new_bool(m->canonical != 0));
    ok = ok && qn_json_set(o, "format", text_or_null(m->format));
    ok = ok && qn_json_set(o, "family", text_or_null(m->family));
    ok = ok && qn_json_set(o, "supported", qn_json_new_bool(m->supported != 0));
    ok = ok && qn_json_set(o, "quant", text_or_null(m->quant));
    ok = ok && qn_json_set(o, "license", text_or_null(m->license));
    ok = ok && qn_json_set(o, "bytes", qn_json_new_int((int64_t)m->bytes));
    ok = ok && qn_json_set(o, "parameters", number_or_null(m->parameters));
    ok = ok && qn_json_set(o, "context", number_or_null(m->context));
    ok = ok && qn_json_set(o, "chat_template", qn_json_new_bool(m->has_template != 0));
    if (ok) return qn_json_push(array, o);
    qn_json_free(o);
    return false;
}

static qn_code print_json(qn_io *io, const quern_store_list *list, const ls_opts *o, qn_err *err)
{
    qn_json *array = qn_json_new_array();
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < quern_store_list_count(list); i++) {
        const quern_store_model *m = quern_store_list_at(list, i);
        if (is_listed(m, o)) ok = push_model(array, m);
    }
    if (ok) return qn_io_json(io, array, err);
    qn_json_free(array);
    return qn_fail(err, QN_E_NOMEM, "a list of %zu models", quern_store_list_count(list));
}

/* -- verb -------------------------------------------------------------------------------------- */

static qn_code ls(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const ls_opts *o = opts;
    quern_store *store = NULL;
    quern_store_list *list = NULL;
    const char *query = args.n ? args.v[0] : NULL;
    QN_TRY_OUT(qn_cli_store(&store, NULL, io, err));
    QN_TRY_OUT(quern_store_list_open(&list, store, query, err));
    const size_t n = quern_store_list_count(list);
    if (!n && query) {
        fprintf(io->err, "quern: no model here has \"");
        qn_text_shown(io->err, query, strlen(query));
        fprintf(io->err, "\" in its name; \"quern ls\" lists all\n");
    } else if (!n) {
        fprintf(io->err, "quern: there is no model here; \"quern get starter\" brings one\n");
    }
    if (o->json) {
        rc = print_json(io, list, o, err);
    } else {
        if (n) print_table(io, list, o);
        rc = qn_io_flush(io, err);
    }
out:
    quern_store_list_close(list);
    quern_store_close(store);
    return rc;
}

const qn_verb qn_verb_ls = {
    "ls",
    "[QUERY]",
    "list the models on this machine",
    "With QUERY those whose name holds it. Listed are QUERN_HOME/models and the cache that\n"
    "Hugging Face tools share. --model takes a name, or a part of it that only one model has.\n\n"
    "  quern ls\n"
    "  quern ls --json | python3 -m json.tool",
    options,
    NULL,
    sizeof(ls_opts),
    0,
    1,
    ls};
