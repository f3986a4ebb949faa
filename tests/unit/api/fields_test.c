/* SPDX-License-Identifier: Apache-2.0 */
/* fields_test.c - each row of fields.def does what it says, at each endpoint that it names. */
#include "api/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fields_page.h"
#include "kit.h"

static const qn_api_endpoint endpoints[] = {QN_API_CHAT, QN_API_TEXT, QN_API_TOKENIZE,
                                            QN_API_DETOKENIZE};

/* A body that is right without any other field, unless `field` is the one it would hold. */
static void make_body(char out[512], qn_api_endpoint endpoint, const char *field, const char *value)
{
    static const char *const needed[][2] = {
        {"messages", "[{\"role\":\"assistant\",\"content\":\"a\"}]"},
        {"prompt", "\"p\""},
        {"content", "\"c\""},
        {"tokens", "[1]"},
    };
    const char *name = endpoint == QN_API_CHAT       ? "messages"
                       : endpoint == QN_API_TEXT     ? "prompt"
                       : endpoint == QN_API_TOKENIZE ? "content"
                                                     : "tokens";
    const char *base = "[1]";
    if (endpoint == QN_API_TOKENIZE && strcmp(field, "add_special") != 0 &&
        strcmp(field, "parse_special") != 0 && strcmp(field, "content") != 0)
        name = "messages";
    for (size_t i = 0; i < QT_LEN(needed); i++)
        if (strcmp(needed[i][0], name) == 0) base = needed[i][1];
    if (strcmp(field, name) == 0)
        snprintf(out, 512, "{\"%s\":%s}", field, value);
    else
        snprintf(out, 512, "{\"%s\":%s,\"%s\":%s}", name, base, field, value);
}

static void check(qt *t, const qn_api_field *f, qn_api_endpoint endpoint, const char *value,
                  qn_api_kind kind)
{
    char body[512];
    make_body(body, endpoint, f->name, value);
    refused(t, endpoint, body, kind, f->name, f->name);
}

static void accepted(qt *t, const qn_api_field *f, qn_api_endpoint endpoint, const char *value,
                     size_t n_warnings)
{
    char body[512];
    bodied b;
    make_body(body, endpoint, f->name, value);
    read_body(&b, endpoint, body, NULL);
    QT_OKF(t, b.rc == QN_OK, "%s: %s", body, b.error.message);
    QT_OKF(t, b.warnings->n == n_warnings, "%s: %zu warnings, not %zu", body, b.warnings->n,
           n_warnings);
    if (n_warnings && b.warnings->n)
        QT_OKF(t, strstr(b.warnings->text[0], f->name) != NULL, "%s: %s", body,
               b.warnings->text[0]);
    drop_body(&b);
}

#define FOR_EACH_FIELD(f, e)                                                               \
    for (const qn_api_field *f = qn_api_fields; f < qn_api_fields + qn_api_n_fields; f++)  \
        for (const qn_api_endpoint *e = endpoints; e < endpoints + QT_LEN(endpoints); e++) \
            if (f->endpoints & (uint32_t)*e)

static void a_field_is_once_in_the_table_for_an_endpoint(qt *t)
{
    FOR_EACH_FIELD(f, e)
    {
        QT_OKF(t, qn_api_field_find(f->name, *e) == f, "%s", f->name);
        QT_OK(t, f->note[0] != '\0');
        QT_OK(t, f->treatment == QN_API_HONOURED ? !f->pass[0] : f->type == QN_API_ANY);
    }
    QT_OK(t, !qn_api_field_find("nonsense", QN_API_CHAT));
    QT_OK(t, !qn_api_field_find("prompt", QN_API_CHAT));
}

static void honoured_fields_refuse_other_types(qt *t)
{
    static const char *const wrong[][3] = {
        [QN_API_BOOL] = {"1", "\"true\"", "[]"},   [QN_API_INT] = {"1.5", "\"5\"", "true"},
        [QN_API_NUMBER] = {"\"1\"", "true", "[]"}, [QN_API_STRING] = {"1", "[\"a\"]", "false"},
        [QN_API_ARRAY] = {"\"a\"", "{}", "1"},     [QN_API_OBJECT] = {"\"a\"", "[]", "1"},
        [QN_API_ANY] = {"{\"a\":1}", "1", "true"},
    };
    FOR_EACH_FIELD(f, e)
    for (size_t i = 0; f->treatment == QN_API_HONOURED && i < 3; i++) {
        char body[512];
        bodied b;
        make_body(body, *e, f->name, wrong[f->type][i]);
        read_body(&b, *e, body, NULL);
        QT_OKF(t, b.rc == QN_E_INVAL && b.error.kind == QN_API_BAD_TYPE, "%s: %s", body,
               b.error.message);
        QT_STR(t, b.error.param, f->name);
        drop_body(&b);
    }
}

static void numbers_keep_to_their_range(qt *t)
{
    char value[64];
    FOR_EACH_FIELD(f, e)
    {
        const double step = f->type == QN_API_INT ? 1 : 0.25;
        const char *format = f->type == QN_API_INT ? "%.0f" : "%.17g";
        if (f->type != QN_API_INT && f->type != QN_API_NUMBER) continue;
        if (isfinite(f->lo)) {
            snprintf(value, sizeof value, format, f->lo - step);
            check(t, f, *e, value, QN_API_BAD_VALUE);
            snprintf(value, sizeof value, format, f->lo);
            accepted(t, f, *e, value, 0);
        }
        if (isfinite(f->hi)) {
            snprintf(value, sizeof value, format, f->hi + step);
            check(t, f, *e, value, QN_API_BAD_VALUE);
            snprintf(value, sizeof value, format, f->hi);
            if (strcmp(f->name, "best_of") != 0) accepted(t, f, *e, value, 0);
        }
    }
}

static void null_is_as_good_as_absent(qt *t)
{
    FOR_EACH_FIELD(f, e)
    {
        const bool needed = strcmp(f->name, "messages") == 0 || strcmp(f->name, "prompt") == 0 ||
                            strcmp(f->name, "content") == 0 || strcmp(f->name, "tokens") == 0;
        if (needed && *e == QN_API_TOKENIZE) continue; /* one of two: read_test.c */
        if (needed)
            check(t, f, *e, "null", QN_API_MISSING);
        else
            accepted(t, f, *e, "null", 0);
    }
}

/* A right value for each honoured field that has an effect, and the bytes of the struct differ. */
static void honoured_fields_change_what_is_read(qt *t)
{
    static const struct {
        const char *name, *value;
    } values[] = {
        {"model", "\"m\""},
        {"stream", "true"},
        {"stream_options", NULL}, /* needs stream: read_test.c */
        {"max_completion_tokens", "7"},
        {"max_tokens", "7"},
        {"min_tokens", "7"},
        {"n", "2"},
        {"best_of", NULL}, /* only what happens anyway: read_test.c */
        {"temperature", "0.5"},
        {"top_p", "0.5"},
        {"top_k", "5"},
        {"min_p", "0.5"},
        {"xtc_probability", "0.5"},
        {"xtc_threshold", "0.25"},
        {"repetition_penalty", "1.5"},
        {"presence_penalty", "-0.5"},
        {"frequency_penalty", "0.5"},
        {"repetition_context_size", "5"},
        {"presence_context_size", "5"},
        {"frequency_context_size", "5"},
        {"logit_bias", "{\"3\":1}"},
        {"seed", "0"},
        {"stop", "\"a\""},
        {"stop_token_ids", "[3]"},
        {"ignore_eos", "true"},
        {"logprobs", NULL}, /* one name, two types: read_test.c */
        {"top_logprobs", "2"},
        {"echo", "true"},
        {"cache_prompt", "false"},
        {"chat_template_kwargs", "{\"enable_thinking\":true}"},
        {"reasoning_effort", "\"low\""},
        {"add_generation_prompt", "false"},
        {"continue_final_message", "true"},
        {"add_special", "true"},
        {"parse_special", "false"},
        {"with_pieces", "true"},
        {"messages", NULL}, /* messages_test.c, read_test.c */
        {"prompt", NULL},
        {"content", NULL},
        {"tokens", NULL},
    };
    FOR_EACH_FIELD(f, e)
    {
        size_t i = 0;
        bodied plain, set;
        char body[512];
        if (f->treatment != QN_API_HONOURED) continue;
        while (i < QT_LEN(values) && strcmp(values[i].name, f->name) != 0) i++;
        if (!QT_OKF(t, i < QT_LEN(values), "%s has no line here", f->name) || !values[i].value)
            continue;
        make_body(body, *e, f->name, "null");
        read_body(&plain, *e, body, NULL);
        accepted(t, f, *e, values[i].value, 0);
        make_body(body, *e, f->name, values[i].value);
        read_body(&set, *e, body, NULL);
        /* Pointers differ in any case, so only values that follow no pointer count. */
        const qn_api_params *p = *e == QN_API_CHAT ? &plain.chat.params : &plain.text.params;
        const qn_api_params *s = *e == QN_API_CHAT ? &set.chat.params : &set.text.params;
        const qn_api_prompt *pp = *e == QN_API_CHAT ? &plain.chat.prompt : &plain.tokenize.prompt;
        const qn_api_prompt *sp = *e == QN_API_CHAT ? &set.chat.prompt : &set.tokenize.prompt;
        const bool differs =
            memcmp(&p->sampling, &s->sampling, sizeof p->sampling) != 0 ||
            p->model.n != s->model.n || p->stream != s->stream || p->n != s->n ||
            p->max_tokens != s->max_tokens || p->min_tokens != s->min_tokens ||
            p->logprobs != s->logprobs || p->ignore_eos != s->ignore_eos ||
            p->no_cache != s->no_cache || p->n_biases != s->n_biases || p->n_stops != s->n_stops ||
            p->n_stop_ids != s->n_stop_ids || pp->thinking != sp->thinking ||
            pp->effort != sp->effort || pp->add_generation_prompt != sp->add_generation_prompt ||
            pp->continue_final != sp->continue_final || plain.text.echo != set.text.echo ||
            plain.tokenize.add_special != set.tokenize.add_special ||
            plain.tokenize.parse_special != set.tokenize.parse_special ||
            plain.tokenize.with_pieces != set.tokenize.with_pieces ||
            plain.tokenize.model.n != set.tokenize.model.n ||
            plain.detokenize.model.n != set.detokenize.model.n;
        QT_OKF(t, differs, "%s", body);
        drop_body(&plain);
        drop_body(&set);
    }
}

static void other_fields_are_listed_or_refused(qt *t)
{
    FOR_EACH_FIELD(f, e)
    {
        qn_str rest = qn_str_z(f->pass), piece;
        if (f->treatment == QN_API_HONOURED) continue;
        while (f->pass[0] && qn_str_split(&piece, &rest, ' ')) {
            char value[128];
            snprintf(value, sizeof value, "%.*s", QN_STR_ARG(piece));
            accepted(t, f, *e, value, 0);
        }
        if (f->treatment == QN_API_LISTED)
            accepted(t, f, *e, "{\"a\":[1]}", 1);
        else
            check(t, f, *e, "{\"a\":[1]}", QN_API_UNSUPPORTED);
    }
}

static void unknown_fields_are_listed_up_to_a_ceiling(qt *t)
{
    char body[4096] = "{\"prompt\":\"a\"";
    bodied b;
    size_t n = strlen(body);
    read_body(&b, QN_API_TEXT, "{\"prompt\":\"a\",\"nonsense\":[1,2],\"absent\":null}", NULL);
    QT_EQ(t, b.rc, QN_OK);
    QT_EQ(t, b.warnings->n, 1);
    QT_STR(t, b.warnings->text[0], "'nonsense' is not a known field: ignored");
    drop_body(&b);
    for (int i = 0; i < 40; i++) n += (size_t)snprintf(body + n, 32, ",\"unknown%d\":1", i);
    snprintf(body + n, 4, "}");
    read_body(&b, QN_API_TEXT, body, NULL);
    QT_EQ(t, b.warnings->n, QN_API_MAX_WARNINGS);
    QT_EQ(t, b.warnings->more, 8);
    drop_body(&b);
}

static char *read_page(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1u << 20);
    if (f && text) text[fread(text, 1, (1u << 20) - 1, f)] = '\0';
    if (f) fclose(f);
    return text;
}

static void the_pages_agree_with_the_table(qt *t)
{
    qn_buf page;
    char *fields = read_page("docs/api-fields.md"), *api = read_page("docs/api.md");
    qn_buf_init(&page, 1u << 20);
    QT_EQ(t, api_fields_page(&page, NULL), QN_OK);
    QT_OKF(t, strcmp(qn_buf_text(&page), fields) == 0,
           "docs/api-fields.md is not what api_fields_page prints");
    QT_OKF(t, strstr(api, "(api-fields.md)") != NULL, "docs/api.md does not lead to the table");
    qn_buf_fini(&page);
    free(fields);
    free(api);
}

QT_MAIN(QT(a_field_is_once_in_the_table_for_an_endpoint), QT(honoured_fields_refuse_other_types),
        QT(numbers_keep_to_their_range), QT(null_is_as_good_as_absent),
        QT(honoured_fields_change_what_is_read), QT(other_fields_are_listed_or_refused),
        QT(unknown_fields_are_listed_up_to_a_ceiling), QT(the_pages_agree_with_the_table))
