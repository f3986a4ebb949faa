/* SPDX-License-Identifier: Apache-2.0 */
/* jinja.h - Jinja chat templates: compiled once, rendered often.
 *
 * The language is jinja2's in the setting that chat templates are written for: sandboxed and
 * immutable, trim_blocks, lstrip_blocks, no escaping of HTML, break and continue, `generation`
 * blocks, and the globals raise_exception and strftime_now. A template reaches nothing but the
 * variables it is given. What differs is in docs/templates.md.
 *
 * Owner:  the program owns a copy of its source; a rendering's memory dies with the rendering.
 * Thread: a program is immutable; many threads may render it.
 */
#ifndef QN_TEXT_JINJA_H
#define QN_TEXT_JINJA_H
#include <stdbool.h>

#include "base/buf.h"
#include "dep/json.h"

typedef struct qn_jinja qn_jinja;

typedef struct qn_jinja_limits { /* each 0: the default */
    uint64_t steps;              /* nodes evaluated, and elements that filters and loops visit */
    size_t memory_bytes;         /* of a rendering's values */
    size_t output_bytes;
    uint32_t depth; /* calls and recursive loops inside each other */
} qn_jinja_limits;

typedef struct qn_jinja_input {
    const qn_json *const *variables; /* [n_variables] objects; later ones cover earlier ones */
    size_t n_variables;
    int64_t now_s; /* what strftime_now sees, in local time; 0: the clock */
    qn_jinja_limits limits;
} qn_jinja_input;

/* Compiles source[0, n). *out is owned (qn_jinja_free). Errors: FORMAT and LIMIT with the line;
 * NOMEM. */
qn_code qn_jinja_new(qn_jinja **out, const char *source, size_t n, qn_err *err);
void qn_jinja_free(qn_jinja *t); /* NULL is fine */

/* Appends the text to `text`; after a failure its length is as before. Errors: FORMAT with the line
 * when the template refuses (what raise_exception was given is in the message unchanged) or its
 * types do not fit; LIMIT names the ceiling and the line;
 * UNSUPPORTED where it reaches an include, import or extends; NOMEM. */
qn_code qn_jinja_render(qn_buf *text, const qn_jinja *t, const qn_jinja_input *in, qn_err *err);

/* Whether the template reads a variable of this name that it does not itself define first. */
bool qn_jinja_mentions(const qn_jinja *t, const char *name);

#endif
