/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the store of models, for the public. */
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "format/gguf.h"
#include "hub/hub.h"
#include "lib/lib_int.h"
#include "model/family.h"
#include "quern/store.h"

#define ENDPOINT "https://huggingface.co"
#define RESERVE ((uint64_t)1 << 30)

struct quern_store {
    qn_hub hub;
};

/* -- opening ----------------------------------------------------------------------------------- */

/* A copy without slashes at its end ("/" stays); NULL stays NULL. Errors: INVAL for "", NOMEM. */
static qn_code copy_text(char **out, const char *text, const char *name, qn_err *err)
{
    if (!text) return QN_OK;
    size_t n = strlen(text);
    if (n == 0) return qn_fail(err, QN_E_INVAL, "%s is empty", name);
    while (n > 1 && text[n - 1] == '/') n--;
    *out = qn_alloc(n + 1);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "%s", name);
    memcpy(*out, text, n);
    (*out)[n] = '\0';
    return QN_OK;
}

static qn_code fill(qn_hub *h, const quern_store_options *o, qn_err *err)
{
    QN_TRY(copy_text(&h->home, o->home, "home", err));
    QN_TRY(copy_text(&h->cache, o->hub_cache, "hub_cache", err));
    QN_TRY(copy_text(&h->endpoint, o->endpoint ? o->endpoint : ENDPOINT, "endpoint", err));
    h->reserve = o->reserve ? o->reserve : RESERVE;
    return copy_text(&h->token, o->token, "token", err);
}

quern_code quern_store_open(quern_store **out, const quern_store_options *opt, quern_error *err)
{
    quern_store_options o;
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "store", err));
    QN_TRY(qn_lib_given(o.home, "home", err));
    quern_store *s = qn_zalloc(sizeof *s);
    if (!s) return qn_fail(err, QN_E_NOMEM, "store handle");
    const qn_code rc = fill(&s->hub, &o, err);
    if (rc == QN_OK)
        *out = s;
    else
        quern_store_close(s);
    return rc;
}

void quern_store_close(quern_store *s)
{
    if (!s) return;
    qn_free(s->hub.home);
    qn_free(s->hub.cache);
    qn_free(s->hub.endpoint);
    qn_free(s->hub.token);
    qn_free(s);
}

/* -- what is there ----------------------------------------------------------------------------- */

static bool has_family(qn_str type)
{
    const qn_family *family = NULL;
    return qn_family_find(&family, type, NULL) == QN_OK;
}

quern_code quern_store_list_open(quern_store_list **out, const quern_store *s, const char *query,
                                 quern_error *err)
{
    QN_TRY(qn_lib_given(out, "out", err));
    *out = NULL;
    QN_TRY(qn_lib_given(s, "store", err));
    return qn_hub_list(out, &s->hub, query, has_family, err);
}

size_t quern_store_list_count(const quern_store_list *l) { return l ? l->n : 0; }

const quern_store_model *quern_store_list_at(const quern_store_list *l, size_t i)
{
    return l && i < l->n ? &l->model[i] : NULL;
}

void quern_store_list_close(quern_store_list *l) { qn_hub_list_free(l); }

quern_code quern_store_find(char **path, const quern_store *s, const char *name, quern_error *err)
{
    QN_TRY(qn_lib_given(path, "path", err));
    *path = NULL;
    QN_TRY(qn_lib_given(s, "store", err));
    if (name && !name[0]) return qn_fail(err, QN_E_INVAL, "name is empty");
    return qn_hub_find(path, &s->hub, name, err);
}

/* -- getting ----------------------------------------------------------------------------------- */

/* The file is one whole GGUF model: what the name will stand for must be able to open. */
static qn_code check_gguf(const char *from, qn_err *err)
{
    qn_gguf *g = NULL;
    QN_TRY(qn_gguf_open(&g, from, err));
    const size_t n = qn_gguf_n_parts(g);
    qn_gguf_close(g);
    if (n == 1) return QN_OK;
    return qn_fail(err, QN_E_UNSUPPORTED,
                   "%s is one of %zu parts: put all of them into a folder of the store", from, n);
}

/* Any other file under a name of the user's choice. */
static qn_code import_as(char **path, const quern_store *s, const char *name, const char *from,
                         const qn_hub_report *report, qn_err *err)
{
    char file[256];
    const qn_str suffix = QN_STR(".gguf");
    qn_str stem = qn_str_z(name);
    if (qn_str_has_suffix(stem, suffix)) stem.n -= suffix.n;
    if (stem.n == 0 || stem.n > 200 || strchr(name, '/') || !qn_hub_is_inside(name))
        return qn_fail(err, QN_E_INVAL,
                       "\"%.64s\" is no name for a file: expected 1 to 200 bytes without '/', '\\' "
                       "and a dot in front",
                       name);
    memcpy(file, stem.p, stem.n);
    memcpy(file + stem.n, suffix.p, suffix.n + 1);
    QN_TRY(check_gguf(from, err));
    const qn_hub_entry e = {.name = name, .file = file};
    return qn_hub_import(path, &s->hub, &e, from, report, err);
}

static qn_code no_such_name(const char *name, qn_err *err)
{
    size_t n = 0, least = SIZE_MAX;
    const qn_hub_entry *all = qn_hub_catalogue(&n), *best = all;
    for (size_t i = 0; i < n; i++) {
        const size_t distance = qn_str_distance(qn_str_z(name), qn_str_z(all[i].name));
        if (distance >= least) continue;
        least = distance;
        best = &all[i];
    }
    return qn_fail(
        err, QN_E_NOTFOUND,
        "\"%.80s\" is no name that can be fetched: the nearest is \"%s\"; models of a hub "
        "are named ORG/NAME",
        name, best->name);
}

static qn_code get(char **path, const quern_store *s, const char *name, const quern_get_options *o,
                   qn_err *err)
{
    const qn_hub_report report = {o->progress, o->ctx};
    const qn_hub_entry *e = qn_hub_find_entry(name);
    if (o->from && !o->from[0]) return qn_fail(err, QN_E_INVAL, "from is empty");
    if ((e || o->from) && (o->revision || o->include))
        return qn_fail(err, QN_E_INVAL, "%s: %s is for repositories of a hub, not for %s", name,
                       o->revision ? "revision" : "include", o->from ? "a file" : "a known model");
    if (e && o->from) return qn_hub_import(path, &s->hub, e, o->from, &report, err);
    if (o->from) return import_as(path, s, name, o->from, &report, err);
    if (e) return qn_hub_pull_entry(path, &s->hub, e, &report, err);
    if (!qn_hub_is_repo(name)) return no_such_name(name, err);
    return qn_hub_pull_repo(path, &s->hub, name, o->revision, o->include, &report, err);
}

quern_code quern_store_get(char **path, const quern_store *s, const char *name,
                           const quern_get_options *opt, quern_error *err)
{
    quern_get_options o;
    QN_TRY(qn_lib_given(path, "path", err));
    *path = NULL;
    QN_TRY(qn_lib_given(s, "store", err));
    QN_TRY(qn_lib_given(name, "name", err));
    QN_TRY(qn_lib_options(&o, sizeof o, sizeof o, opt, "get", err));
    return get(path, s, name, &o, err);
}
