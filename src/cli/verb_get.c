/* SPDX-License-Identifier: Apache-2.0 */
/* verb_get.c - `quern get NAME`: brings a model into the store and prints its path. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/open.h"
#include "cli/progress.h"

enum { MAX_TOKEN = 4096, MAX_NAME = 512 };

typedef struct get_opts {
    const char *from, *revision, *include;
    bool quiet;
} get_opts;

#define AT(member) offsetof(get_opts, member)
static const qn_opt options[] = {
    {"from", QN_OPT_TEXT, AT(from), "FILE", "take this file, once its digest is found right", 0, 0,
     0},
    {"revision", QN_OPT_TEXT, AT(revision), "REV", "branch, tag or commit of the hub (main)", 0, 0,
     0},
    {"include", QN_OPT_TEXT, AT(include), "PATTERN",
     "of a repository only the files that match (\"*Q4_K_M*\")", 0, 0, 0},
    {"quiet", QN_OPT_FLAG, AT(quiet), NULL, "no progress on stderr", 0, 0, 0},
    QN_OPT_END,
};

/* -- the token --------------------------------------------------------------------------------- */

/* It becomes part of a header: what could begin another one is refused, and never shown. */
static qn_code check_token(qn_str token, const char *source, qn_err *err)
{
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] <= ' ' || token.p[i] >= 0x7f)
            return qn_fail(err, QN_E_INVAL,
                           "%s: byte %zu of the token is no printable ASCII character", source, i);
    return QN_OK;
}

/* *token is owned (qn_free), NULL where there is none. A file that cannot be read is told, no more: most
 * models need no account. */
static qn_code find_token(char **token, qn_io *io, qn_err *err)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    qn_code rc = QN_OK;
    qn_err why = {0};
    const char *source = io->hub_token ? "HF_TOKEN" : io->hub_token_file;
    *token = NULL;
    if (!source) return QN_OK;
    if (!io->hub_token) {
        rc = qn_file_read(&bytes, &n, source, MAX_TOKEN, &why);
        if (rc == QN_E_NOTFOUND) return QN_OK;
        if (rc != QN_OK) {
            fprintf(io->err, "quern: going on without a token: %s\n", why.msg);
            return QN_OK;
        }
    }
    const qn_str text =
        qn_str_trim(io->hub_token ? qn_str_z(io->hub_token) : qn_str_make((const char *)bytes, n));
    rc = check_token(text, source, err);
    if (rc == QN_OK && text.n) {
        *token = qn_zalloc(text.n + 1);
        if (*token)
            memcpy(*token, text.p, text.n);
        else
            rc = qn_fail(err, QN_E_NOMEM, "a token of %zu bytes", text.n);
    }
    qn_free(bytes);
    return rc;
}

/* -- verb -------------------------------------------------------------------------------------- */

static int on_progress(void *ctx, const quern_get_progress *now)
{
    qn_progress_tell(ctx, now, qn_clock_ns());
    return qn_interrupt_pending();
}

/* ORG/NAME:FILE names one file of a repository, as `ls` writes it; ORG/NAME:Q4_K_M those that have this in
 * their names. out gets what is before the colon, [pattern] what --include would say. */
static qn_code split_name(char out[MAX_NAME], char pattern[MAX_NAME], const char **include,
                          const char *arg, const get_opts *o, qn_err *err)
{
    const char *colon = strchr(arg, '/') ? strchr(arg, ':') : NULL;
    const qn_str name = qn_str_slice(qn_str_z(arg), 0, colon ? (size_t)(colon - arg) : SIZE_MAX);
    const qn_str file = qn_str_z(colon ? colon + 1 : "");
    *include = o->include;
    if (name.n >= MAX_NAME || file.n + 3 > MAX_NAME)
        return qn_fail(err, QN_E_INVAL, "the name has %zu bytes, expected fewer than %d",
                       strlen(arg), MAX_NAME);
    snprintf(out, MAX_NAME, "%.*s", QN_STR_ARG(name));
    if (!colon) return QN_OK;
    if (o->include)
        return qn_fail(err, QN_E_INVAL, "the file is given twice: \"%s\" and --include %s", file.p,
                       o->include);
    if (!file.n) return qn_fail(err, QN_E_INVAL, "\"%s\" names no file behind the colon", arg);
    const bool whole =
        qn_str_has_suffix(file, QN_STR(".gguf")) || qn_str_has_suffix(file, QN_STR(".safetensors"));
    snprintf(pattern, MAX_NAME, whole ? "%s" : "*%s*", file.p);
    *include = pattern;
    return QN_OK;
}

static qn_code get(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const get_opts *o = opts;
    quern_get_options go = QUERN_GET_OPTIONS_INIT;
    quern_store *store = NULL;
    qn_progress progress;
    char name[MAX_NAME], pattern[MAX_NAME], *token = NULL, *path = NULL;
    QN_TRY(split_name(name, pattern, &go.include, args.v[0], o, err));
    qn_progress_init(&progress, io->err, io->err_is_terminal, o->quiet);
    go.from = o->from;
    go.revision = o->revision;
    go.progress = on_progress;
    go.ctx = &progress;
    qn_interrupt_block();
    QN_TRY_OUT(find_token(&token, io, err));
    QN_TRY_OUT(qn_cli_store(&store, token, io, err));
    rc = quern_store_get(&path, store, name, &go, err);
    qn_progress_end(&progress, rc == QN_OK);
    if (rc == QN_E_CANCELLED)
        qn_fail(err, rc, "cancelled; %srun the same command again to go on",
                progress.part_kept ? "what has come is kept: " : "");
    if (rc != QN_OK) goto out;
    qn_io_write(io, path, strlen(path));
    qn_io_print(io, "\n");
    rc = qn_io_flush(io, err);
out:
    quern_text_free(path);
    quern_store_close(store);
    qn_free(token);
    return rc;
}

const qn_verb qn_verb_get = {
    "get",
    "NAME",
    "bring a model here and print its path",
    "NAME is \"starter\", a small model to begin with, or ORG/NAME of the hub; ORG/NAME:FILE for\n"
    "one file of it. What is here already is checked, not fetched again; what was cut off goes\n"
    "on where it ended. A file gets its name once its digest was found right.\n\n"
    "  quern get starter\n"
    "  quern get ORG/NAME\n"
    "  quern get ORG/NAME --include \"*Q4_K_M*\" --revision main\n"
    "  quern get my-model --from FILE.gguf          # a file of yours, under this name\n\n"
    "Ctrl-C stops it and keeps what has come. Progress goes to stderr, the path to stdout.",
    options,
    NULL,
    sizeof(get_opts),
    1,
    1,
    get};
