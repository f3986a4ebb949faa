/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - the path that a person means by a name.
 *
 * Names are compared with what a scan found, so a name that came from nowhere good can at most be
 * unknown. A path is taken as the person's own: who hands over names of strangers checks first that
 * they are none (qn_hub_is_inside).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "hub/hub_int.h"

/* How well a name fits; of what fits best there may be one only. */
typedef enum fit { FIT_NONE, FIT_HOLDS, FIT_CASE, FIT_EXACT } fit;

static bool equal(qn_str a, const char *b)
{
    return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static qn_str without_suffix(qn_str s)
{
    if (s.n > 5 && strncasecmp(s.p + s.n - 5, ".gguf", 5) == 0) s.n -= 5;
    return s;
}

/* "Q4_K_M" for "Model-Q4_K_M", "model.q4_k_m" and "Q4_K_M/Model-UD". */
static bool is_tag_of(qn_str tag, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    const size_t n = strlen(base);
    if (tag.n == 0) return false;
    if (equal(tag, file) || equal(tag, base)) return true;
    if (slash && (size_t)(slash - file) == tag.n && strncasecmp(tag.p, file, tag.n) == 0)
        return true;
    return n > tag.n && strchr("-._", base[n - tag.n - 1]) != NULL &&
           strncasecmp(tag.p, base + n - tag.n, tag.n) == 0;
}

/* "ORG/NAME" or "ORG/NAME:FILE" of a file in a folder. */
static bool is_in_repo(const qn_hub_found *f, qn_str name)
{
    if (!f->repo) return false;
    const size_t n = strlen(f->repo);
    if (name.n < n || strncasecmp(name.p, f->repo, n) != 0) return false;
    return name.n == n ||
           (name.p[n] == ':' && is_tag_of(qn_str_slice(name, n + 1, name.n), f->file));
}

static bool text_holds(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

bool qn_hub_holds(const qn_hub_found *f, const char *query)
{
    return text_holds(f->name, query) || text_holds(f->file, query);
}

static fit fit_of(const qn_hub_found *f, const char *name)
{
    const qn_str whole = qn_str_z(name), stem = without_suffix(whole);
    const bool top = !f->repo && f->file[0] != '\0'; /* a file that its own name finds */
    if (qn_str_eq_z(whole, f->name) || qn_str_eq_z(stem, f->name)) return FIT_EXACT;
    if (top && qn_str_eq_z(stem, f->file)) return FIT_EXACT;
    if (equal(whole, f->name) || equal(stem, f->name)) return FIT_CASE;
    if ((top && equal(stem, f->file)) || is_in_repo(f, stem)) return FIT_CASE;
    return qn_hub_holds(f, name) ? FIT_HOLDS : FIT_NONE;
}

/* -- answers ----------------------------------------------------------------------------------- */

typedef struct hits {
    fit best;
    const qn_hub_found *one; /* the first of the best */
    size_t n;
    char text[160]; /* names of the best, as many as fit */
    size_t used;
    bool more;
} hits;

static void count(hits *h, const qn_hub_found *f, fit how)
{
    if (how > h->best) *h = (hits){.best = how, .one = f};
    const size_t left = sizeof h->text - h->used;
    const int n = snprintf(h->text + h->used, left, "%s%s", h->n ? ", " : "", f->name);
    h->more = h->more || n < 0 || (size_t)n >= left;
    if (!h->more) h->used += (size_t)n;
    h->text[h->used] = '\0';
    h->n++;
}

static hits look(const qn_hub_scan *s, const char *name)
{
    hits h = {.best = FIT_NONE};
    for (const qn_hub_found *f = s->first; f; f = f->next) {
        const fit how = !f->canonical ? FIT_NONE : name ? fit_of(f, name) : FIT_HOLDS;
        if (how != FIT_NONE && how >= h.best) count(&h, f, how);
    }
    return h;
}

static qn_code several(const hits *h, const char *name, qn_err *err)
{
    const char *rest = h->more ? " ..." : "";
    if (!name)
        return qn_fail(err, QN_E_INVAL, "%zu models are here, name one: %s%s", h->n, h->text, rest);
    return qn_fail(err, QN_E_INVAL, "\"%.40s\" fits %zu models: %s%s", name, h->n, h->text, rest);
}

static const char *nearest(const qn_hub_scan *s, const char *name)
{
    const qn_str wanted = qn_str_z(name);
    const char *best = NULL;
    size_t n = 0, least = SIZE_MAX;
    const qn_hub_entry *all = qn_hub_catalogue(&n);
    for (const qn_hub_found *f = s->first; f; f = f->next) {
        const size_t distance =
            f->canonical ? qn_str_distance(wanted, qn_str_z(f->name)) : SIZE_MAX;
        if (distance >= least) continue;
        least = distance;
        best = f->name;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t distance = qn_str_distance(wanted, qn_str_z(all[i].name));
        if (distance >= least) continue;
        least = distance;
        best = all[i].name;
    }
    return best && qn_str_is_near(least, wanted.n) ? best : NULL;
}

static qn_code unknown(const qn_hub *h, const qn_hub_scan *s, const char *name, qn_err *err)
{
    if (!name)
        return qn_fail(err, QN_E_NOTFOUND,
                       "no model in %s/models; \"quern get starter\" brings a small one", h->home);
    if (qn_hub_find_entry(name))
        return qn_fail(err, QN_E_NOTFOUND, "\"%s\" is not here; \"quern get %s\" brings it", name,
                       name);
    const char *near = nearest(s, name);
    if (near)
        return qn_fail(err, QN_E_NOTFOUND, "no file and no model \"%.80s\"; the nearest is \"%s\"",
                       name, near);
    if (qn_hub_is_repo(name) && !qn_str_has_suffix(qn_str_z(name), QN_STR(".gguf")))
        return qn_fail(err, QN_E_NOTFOUND,
                       "no file and no model \"%s\"; \"quern get %s\" brings it from the hub", name,
                       name);
    if (!s->first)
        return qn_fail(err, QN_E_NOTFOUND,
                       "no file and no model \"%.80s\"; \"quern get starter\" brings a small one",
                       name);
    return qn_fail(err, QN_E_NOTFOUND, "no file and no model \"%.80s\"; \"quern ls\" lists them",
                   name);
}

static qn_code give(char **path, const char *found, qn_err *err)
{
    const size_t n = strlen(found);
    *path = qn_alloc(n + 1);
    if (!*path) return qn_fail(err, QN_E_NOMEM, "path %s", found);
    memcpy(*path, found, n + 1);
    return QN_OK;
}

qn_code qn_hub_find(char **path, const qn_hub *h, const char *name, qn_err *err)
{
    qn_hub_scan s;
    struct stat st;
    *path = NULL;
    const bool there = name && stat(name, &st) == 0;
    if (there && (strchr(name, '/') || !S_ISDIR(st.st_mode))) return give(path, name, err);
    QN_TRY(qn_hub_scan_open(&s, h, err));
    hits found = look(&s, name);
    if (!name && found.n > 1) { /* the starter is for whoever names nothing */
        const hits starter = look(&s, "starter");
        if (starter.best == FIT_EXACT) found = starter;
    }
    qn_code rc = QN_OK;
    if (found.best == FIT_EXACT || (found.n == 1 && found.best == FIT_CASE))
        rc = give(path, found.one->path, err);
    else if (there)
        rc = give(path, name, err);
    else if (found.n == 1)
        rc = give(path, found.one->path, err);
    else
        rc = found.n ? several(&found, name, err) : unknown(h, &s, name, err);
    qn_hub_scan_close(&s);
    return rc;
}
