/* SPDX-License-Identifier: Apache-2.0 */
/* chat_set.c - /set: how tokens are drawn, told and changed. What is told is what counts in the next
 * answer, whoever said so: the person, the model's makers or the program.
 *
 * Thread: main.
 */
#include <string.h>

#include "base/nearest.h"
#include "cli/chat.h"

typedef struct place { /* where a request keeps what an option says */
    const char *name;
    size_t at;
} place;

#define AT(member) offsetof(quern_request_options, member)
static const place places[] = {
    {"temperature", AT(temperature)},
    {"top-p", AT(top_p)},
    {"top-k", AT(top_k)},
    {"min-p", AT(min_p)},
    {"repetition-penalty", AT(repetition_penalty)},
    {"repetition-context", AT(repetition_context)},
    {"presence-penalty", AT(presence_penalty)},
    {"presence-context", AT(presence_context)},
    {"frequency-penalty", AT(frequency_penalty)},
    {"frequency-context", AT(frequency_context)},
    {"xtc-probability", AT(xtc_probability)},
    {"xtc-threshold", AT(xtc_threshold)},
    {"seed", AT(seed)},
    {"max-tokens", AT(max_tokens)},
    {"min-tokens", AT(min_tokens)},
};

static bool is_setting(const qn_opt *o)
{
    return o->given && o->at >= offsetof(qn_chat_opts, sampling) &&
           o->at < offsetof(qn_chat_opts, sampling) + sizeof(qn_sampling);
}

/* The row of that name or of another spelling; "_" is "-". */
static const qn_opt *find(char name[64], qn_str said)
{
    snprintf(name, 64, "%.*s", QN_STR_ARG(said));
    for (char *p = name; *p; p++)
        if (*p == '_') *p = '-';
    for (const qn_opt *o = qn_verb_chat.options; o->name; o++)
        if (is_setting(o) && strcmp(o->name, name) == 0) return o;
    return NULL;
}

/* The spelling that is listed: the first row of the same member. */
static const qn_opt *listed(const qn_opt *o)
{
    for (const qn_opt *k = qn_verb_chat.options; k->name; k++)
        if (is_setting(k) && k->at == o->at) return k;
    return o;
}

static qn_code unknown(const char *name, qn_err *err)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (const qn_opt *o = qn_verb_chat.options; o->name; o++) {
        const size_t distance =
            is_setting(o) ? qn_str_distance(qn_str_z(name), qn_str_z(o->name)) : SIZE_MAX;
        if (distance < least) {
            least = distance;
            best = o->name;
        }
    }
    if (best && qn_str_is_near(least, strlen(name)))
        return qn_fail(err, QN_E_INVAL, "/set knows no \"%s\"; did you mean %s?", name, best);
    return qn_fail(err, QN_E_INVAL, "/set knows no \"%s\"; /set lists what it knows", name);
}

static bool given(const qn_chat *c, const qn_opt *o)
{
    return *(const bool *)(const void *)((const char *)&c->opts + o->given);
}

/* What the next request has there. */
static void value_text(char out[40], const quern_request_options *ro, const qn_opt *o,
                       bool is_given)
{
    snprintf(out, 40, "-");
    for (size_t i = 0; i < QN_LEN(places); i++) {
        const char *at = (const char *)ro + places[i].at;
        if (strcmp(places[i].name, o->name) != 0) continue;
        if (o->kind == QN_OPT_F32)
            snprintf(out, 40, "%g", (double)*(const float *)(const void *)at);
        if (o->kind == QN_OPT_U32) snprintf(out, 40, "%u", *(const uint32_t *)(const void *)at);
        if (o->kind == QN_OPT_U64)
            snprintf(out, 40, "%llu", (unsigned long long)*(const uint64_t *)(const void *)at);
        /* Two have no number until somebody says one. */
        if (!is_given && places[i].at == AT(seed)) snprintf(out, 40, "random");
        if (!is_given && places[i].at == AT(max_tokens)) snprintf(out, 40, "no limit");
    }
}

static void tell(const qn_chat *c, const quern_request_options *ro, const qn_opt *o)
{
    char value[40];
    qn_str help = qn_str_z(o->help);
    const size_t bracket = qn_str_find(help, QN_STR(" ("), 0); /* there: what counts if not said */
    help = qn_str_slice(help, 0, bracket);
    value_text(value, ro, o, given(c, o));
    fprintf(c->io->err, "  %-20s %c %-10s %.*s\n", o->name, given(c, o) ? '*' : ' ', value,
            QN_STR_ARG(help));
}

/* One row, or with NULL all. */
static qn_code tell_all(const qn_chat *c, const qn_opt *only, qn_err *err)
{
    quern_request_options ro = QUERN_REQUEST_OPTIONS_INIT;
    QN_TRY(quern_request_recipe(&ro, c->run.model, err));
    qn_sampling_apply(&ro, &c->opts.sampling);
    for (const qn_opt *o = qn_verb_chat.options; o->name; o++)
        if (is_setting(o) && o->help && (!only || o == only)) tell(c, &ro, o);
    if (!only)
        fprintf(c->io->err,
                "  * is yours; /set NAME VALUE changes, /set NAME default takes it back\n");
    return QN_OK;
}

qn_code qn_chat_set(qn_chat *c, qn_str arg, qn_err *err)
{
    char name[64], value[64], said[256];
    qn_str word = {0}, rest = arg;
    if (!arg.n) return tell_all(c, NULL, err);
    (void)qn_str_split(&word, &rest, ' ');
    rest = qn_str_trim(rest);
    const qn_opt *o = find(name, word);
    if (!o) return unknown(name, err);
    o = listed(o);
    if (!rest.n) return tell_all(c, o, err);
    if (qn_str_eq_z(rest, "default")) {
        *(bool *)(void *)((char *)&c->opts + o->given) = false;
        return tell_all(c, o, err);
    }
    snprintf(value, sizeof value, "%.*s", QN_STR_ARG(rest));
    const qn_code rc = qn_opts_set(&c->opts, &qn_verb_chat, qn_str_z(o->name), value, err);
    if (rc == QN_OK) return tell_all(c, o, err);
    snprintf(said, sizeof said, "%s", err->msg);
    return qn_fail(err, rc, "/set %s", strncmp(said, "--", 2) == 0 ? said + 2 : said);
}
