/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_test.c - the options that draw tokens are the same in every verb, and say what the fields of
 * requests say. */
#include "cli/sampling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/fields.h"
#include "qt.h"

static const qn_verb *const verbs[] = {&qn_verb_generate, &qn_verb_chat, &qn_verb_serve};

static const qn_opt *find(const qn_verb *verb, const char *name)
{
    for (const qn_opt *o = verb->options; o->name; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

/* "top-p" is top_p, "repetition-context" is repetition_context_size. */
static const char *option_of(char out[64], const char *field)
{
    snprintf(out, 64, "%s", field);
    char *size = strstr(out, "_size");
    if (size) *size = '\0';
    for (char *p = out; *p; p++)
        if (*p == '_') *p = '-';
    return out;
}

static const char *const fields[] = {
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "repetition_context_size",
    "presence_penalty",
    "presence_context_size",
    "frequency_penalty",
    "frequency_context_size",
    "xtc_probability",
    "xtc_threshold",
    "max_tokens",
    "min_tokens",
};

static void bounds_are_those_of_the_request_fields(qt *t)
{
    for (size_t v = 0; v < QT_LEN(verbs); v++)
        for (size_t i = 0; i < QT_LEN(fields); i++) {
            char name[64];
            const qn_opt *o = find(verbs[v], option_of(name, fields[i]));
            const qn_api_field *f = qn_api_field_find(fields[i], QN_API_CHAT);
            if (!o && verbs[v] == &qn_verb_serve && strcmp(name, "min-tokens") == 0) continue;
            if (!QT_OKF(t, o && f, "%s has no --%s", verbs[v]->name, name)) continue;
            const double most = f->type == QN_API_INT && f->hi == HUGE_VAL ? UINT32_MAX : f->hi;
            QT_OKF(t, o->lo == f->lo && o->hi == most, "%s --%s: %g to %g, the field %g to %g",
                   verbs[v]->name, name, o->lo, o->hi, f->lo, most);
            QT_EQ(t, o->kind, f->type == QN_API_INT ? QN_OPT_U32 : QN_OPT_F32);
        }
}

static void no_number_that_draws_is_left_out(qt *t)
{
    for (size_t i = 0; i < qn_api_n_fields; i++) {
        const qn_api_field *f = &qn_api_fields[i];
        const bool numeric = f->type == QN_API_INT || f->type == QN_API_NUMBER;
        bool known = false;
        static const char *const others[] = {"n",        "best_of",      "seed",
                                             "logprobs", "top_logprobs", "max_completion_tokens"};
        if (!numeric || f->treatment != QN_API_HONOURED) continue;
        for (size_t k = 0; k < QT_LEN(fields); k++) known |= strcmp(fields[k], f->name) == 0;
        for (size_t k = 0; k < QT_LEN(others); k++) known |= strcmp(others[k], f->name) == 0;
        QT_OKF(t, known, "%s is an option of no verb", f->name);
    }
}

static void every_verb_takes_the_same_rows(qt *t)
{
    for (const qn_opt *o = qn_verb_generate.options; o->name; o++) {
        const qn_opt *chat = find(&qn_verb_chat, o->name), *serve = find(&qn_verb_serve, o->name);
        if (!o->given) continue; /* only rows of the table tell whether they were given */
        if (!QT_OKF(t, chat != NULL, "chat has no --%s", o->name)) continue;
        QT_OK(t, chat->lo == o->lo && chat->hi == o->hi && chat->kind == o->kind && chat->given);
        if (!serve) {
            QT_STR(t, o->name, "min-tokens");
            continue;
        }
        QT_OK(t, serve->lo == o->lo && serve->hi == o->hi && serve->kind == o->kind);
    }
}

/* Sets --name on a serve- or chat-like struct of one member. */
typedef struct holder {
    int first;
    qn_sampling sampling;
} holder;
static const qn_opt rows[] = {QN_SAMPLING_OPTIONS(holder, "", "0", "all"),
                              QN_SAMPLING_MIN_TOKENS(holder), QN_OPT_END};
static const qn_verb alone = {"alone", "", "", NULL, rows, NULL, sizeof(holder), 0, 0, NULL};

static void what_is_given_reaches_the_request_and_nothing_else_does(qt *t)
{
    for (const qn_opt *o = rows; o->name; o++) {
        holder h = {0};
        qn_err err = {0};
        quern_request_options ro = QUERN_REQUEST_OPTIONS_INIT, before = ro;
        qn_request_sampling flags = {0};
        const char *value = o->hi < 1 ? "0.25" : o->hi == 1 ? "0.5" : "3";
        qn_sampling_apply(&ro, &h.sampling);
        QT_OKF(t, memcmp(&ro, &before, sizeof ro) == 0, "without --%s something was set", o->name);
        qn_sampling_flags(&flags, &h.sampling);
        QT_OK(t, flags.set == 0 && !flags.has_seed);
        QT_EQ(t, qn_opts_set(&h, &alone, qn_str_z(o->name), value, &err), QN_OK);
        qn_sampling_apply(&ro, &h.sampling);
        QT_OKF(t, memcmp(&ro, &before, sizeof ro) != 0, "--%s did not arrive", o->name);
        qn_sampling_flags(&flags, &h.sampling);
        const bool counts =
            strcmp(o->name, "max-tokens") == 0 || strcmp(o->name, "min-tokens") == 0;
        QT_OKF(t, counts || flags.set || flags.has_seed, "--%s is no flag of a server", o->name);
    }
}

static void zero_new_tokens_are_none_not_all(qt *t)
{
    holder h = {0};
    qn_err err = {0};
    quern_request_options ro = QUERN_REQUEST_OPTIONS_INIT;
    ro.max_tokens = 256;
    QT_EQ(t, qn_opts_set(&h, &alone, QN_STR("max-tokens"), "0", &err), QN_OK);
    qn_sampling_apply(&ro, &h.sampling);
    QT_OK(t, ro.max_tokens == 0 && (ro.flags & QUERN_REQUEST_NO_TOKENS));
}

static void the_threshold_of_xtc_keeps_its_default_as_a_flag(qt *t)
{
    holder h = {0};
    qn_err err = {0};
    qn_request_sampling flags = {0};
    QT_EQ(t, qn_opts_set(&h, &alone, QN_STR("xtc-probability"), "0.5", &err), QN_OK);
    qn_sampling_flags(&flags, &h.sampling);
    QT_OK(t, flags.set == QN_SET_XTC && flags.xtc_probability == 0.5f);
    QT_OK(t, flags.xtc_threshold == 0.1f);
}

QT_MAIN(QT(bounds_are_those_of_the_request_fields), QT(no_number_that_draws_is_left_out),
        QT(every_verb_takes_the_same_rows),
        QT(what_is_given_reaches_the_request_and_nothing_else_does),
        QT(zero_new_tokens_are_none_not_all), QT(the_threshold_of_xtc_keeps_its_default_as_a_flag))
