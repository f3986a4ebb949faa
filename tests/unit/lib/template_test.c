/* SPDX-License-Identifier: Apache-2.0 */
/* template_test.c - chat templates of the public interface: what they see, how they end, what they refuse,
 * with each allocation refused in turn. */
#include <string.h>

#include "base/alloc.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"
#define CHAT                                                                    \
    "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}|{% endfor %}" \
    "{% if add_generation_prompt %}[assistant] {% endif %}{{ style }}"
#define TALK \
    "[{\"role\":\"user\",\"content\":\" Hi \"},{\"role\":\"assistant\",\"content\":\"We \"}]"

typedef struct world {
    quern_runtime *rt;
    quern_model *model;
} world;

static world begin(qt *t)
{
    world w = {0};
    QT_OK(t, quern_runtime_open(&w.rt, NULL, NULL) == QUERN_OK);
    QT_OK(t, quern_model_open(&w.model, w.rt, MODEL, NULL, NULL) == QUERN_OK);
    return w;
}

static void end(world *w)
{
    quern_model_unref(w->model);
    quern_runtime_close(w->rt);
}

static quern_code render(char **text, const quern_model *m, const char *source, const char *talk,
                         const char *variables, uint32_t flags, quern_error *err)
{
    quern_template *t = NULL;
    quern_template_options o = QUERN_TEMPLATE_OPTIONS_INIT;
    size_t n = 0;
    *text = NULL;
    quern_code rc = quern_template_open(&t, m, source, strlen(source), err);
    if (rc != QUERN_OK) return rc;
    o.messages = talk;
    o.messages_n = strlen(talk);
    o.variables = variables;
    o.variables_n = variables ? strlen(variables) : 0;
    o.flags = flags;
    rc = quern_template_render(text, &n, t, &o, err);
    if (rc == QUERN_OK && strlen(*text) != n) rc = QUERN_E_INTERNAL;
    quern_template_free(t);
    return rc;
}

static void gives(qt *t, const quern_model *m, const char *variables, uint32_t flags,
                  const char *want)
{
    char *text = NULL;
    quern_error err = {0};
    const quern_code rc = render(&text, m, CHAT, TALK, variables, flags, &err);
    QT_OKF(t, rc == QUERN_OK && strcmp(text, want) == 0, "%s: \"%s\"", err.msg, text ? text : "");
    quern_text_free(text);
}

static void a_conversation_becomes_the_text_of_its_template(qt *t)
{
    world w = begin(t);
    gives(t, w.model, NULL, 0, "[user] Hi|[assistant] We|");
    gives(t, w.model, NULL, QUERN_TEMPLATE_ADD_GENERATION_PROMPT,
          "[user] Hi|[assistant] We|[assistant] ");
    gives(t, w.model, NULL, QUERN_TEMPLATE_CONTINUE_FINAL, "[user] Hi|[assistant] We");
    gives(t, w.model, "{\"style\": \"brief\"}", 0, "[user] Hi|[assistant] We|brief");
    end(&w);
}

static void what_a_template_or_its_values_refuse_is_told(qt *t)
{
    static const struct {
        const char *source, *talk;
        quern_code code;
        const char *says;
    } cases[] = {
        {"{{ raise_exception('no pets') }}", TALK, QUERN_E_FORMAT, "no pets"},
        {"{% if %}", TALK, QUERN_E_FORMAT, "line 1"},
        {"{% include 'x' %}", TALK, QUERN_E_UNSUPPORTED, "include"},
        {"a", "{}", QUERN_E_INVAL, "array"},
        {"a", "[", QUERN_E_FORMAT, "messages"},
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", TALK,
         QUERN_E_LIMIT, "line 1"},
    };
    world w = begin(t);
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char *text = NULL;
        quern_error err = {0};
        const quern_code rc = render(&text, w.model, cases[i].source, cases[i].talk, NULL, 0, &err);
        QT_OKF(t, rc == cases[i].code && strstr(err.msg, cases[i].says) && !text, "%s: %d \"%s\"",
               cases[i].source, (int)rc, err.msg);
        quern_text_free(text);
    }
    quern_template *none = NULL;
    QT_OK(t, quern_template_open(&none, w.model, NULL, 0, NULL) == QUERN_E_NOTFOUND && !none);
    end(&w);
}

static void every_refused_allocation_ends_cleanly(qt *t)
{
    world w = begin(t);
    const size_t live = qn_alloc_live();
    quern_code rc = QUERN_E_NOMEM;
    for (size_t n = 0; n < 5000 && rc != QUERN_OK; n++) {
        char *text = NULL;
        quern_error err = {0};
        qn_alloc_fail_after(n);
        rc = render(&text, w.model, CHAT, TALK, "{\"style\": 1}",
                    QUERN_TEMPLATE_ADD_GENERATION_PROMPT, &err);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QUERN_OK || (rc == QUERN_E_NOMEM && err.msg[0] && !text),
               "allocation %zu: %d", n, (int)rc);
        quern_text_free(text);
        QT_OKF(t, qn_alloc_live() == live, "allocation %zu leaves %zu blocks", n,
               qn_alloc_live() - live);
    }
    QT_OK(t, rc == QUERN_OK);
    end(&w);
}

QT_MAIN(QT(a_conversation_becomes_the_text_of_its_template),
        QT(what_a_template_or_its_values_refuse_is_told), QT(every_refused_allocation_ends_cleanly))
