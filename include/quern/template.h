/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - a conversation as the text that a model was trained to see.
 *
 * A chat template is a Jinja program that comes with the model. It is compiled once and rendered
 * for every request; it reaches nothing but the values named here: no files, no environment. Steps,
 * depth, memory and output of a rendering have ceilings.
 *
 * Owner:  whoever opened it; it holds a reference on its model.
 * Thread: immutable: many threads may render at the same time.
 */
#ifndef QUERN_TEMPLATE_H
#define QUERN_TEMPLATE_H
#include "quern/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_template quern_template;

/* Compiles source[0, n), or the model's own template where source is NULL. *out is owned
 * (quern_template_free). Errors: NOTFOUND (source is NULL and the model has none); FORMAT and LIMIT
 * name the line; INVAL; NOMEM. */
QUERN_API quern_code quern_template_open(quern_template **out, const quern_model *m,
                                         const char *source, size_t n, quern_error *err);
QUERN_API void quern_template_free(quern_template *t); /* NULL is fine */

enum {                                            /* quern_template_options.flags */
       QUERN_TEMPLATE_ADD_GENERATION_PROMPT = 1u, /* end where the model's answer begins */
       QUERN_TEMPLATE_CONTINUE_FINAL = 2u /* end inside the last message, to go on with it */
};

typedef struct quern_template_options {
    size_t size;          /* sizeof(quern_template_options) */
    const char *messages; /* [messages_n] JSON array of objects */
    size_t messages_n;
    const char *tools; /* [tools_n] JSON array; NULL: the template sees none */
    size_t tools_n;
    const char *variables; /* [variables_n] JSON object laid over the other values; NULL: none */
    size_t variables_n;
    uint32_t flags; /* QUERN_TEMPLATE_; both together are refused */
    int64_t now_s;  /* unix seconds that strftime_now sees, in local time; 0: the clock */
} quern_template_options;
#define QUERN_TEMPLATE_OPTIONS_INIT                                     \
    {                                                                   \
        sizeof(quern_template_options), NULL, 0, NULL, 0, NULL, 0, 0, 0 \
    }

/* *text is owned (quern_text_free), [*n] bytes of UTF-8 and a NUL. bos_token, eos_token and the like
 * are the spellings in the model's tokenizer. Errors: INVAL names the option; FORMAT: the JSON is
 * broken, or the template refuses these values (line and the template's own words); LIMIT names
 * the ceiling and the line; UNSUPPORTED where the template reaches an include, import or extends;
 * NOMEM. */
QUERN_API quern_code quern_template_render(char **text, size_t *n, const quern_template *t,
                                           const quern_template_options *o, quern_error *err);
QUERN_API void quern_text_free(char *text); /* NULL is fine */

/* 1: the template reads a variable of this name somewhere; 0: it does not. */
QUERN_API uint32_t quern_template_mentions(const quern_template *t, const char *name);

/* The flags with which quern_tokenize takes a rendered text: always QUERN_TOKENIZE_MARKERS, and
 * QUERN_TOKENIZE_SPECIAL too unless the text begins with the BOS that the tokenizer would put there
 * a second time. */
QUERN_API uint32_t quern_template_tokenize_flags(const quern_template *t, const char *text,
                                                 size_t n);

#ifdef __cplusplus
}
#endif
#endif
