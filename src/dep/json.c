/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - dep/json.h on Jansson.
 *
 * Jansson is told once, before main, to take its memory from base/alloc, so parsed documents are
 * counted and bounded like everything else. Its allocator is one for the process: a host program
 * that uses Jansson too may meet it, so these are malloc blocks that either side can free.
 *
 * Jansson's lexer drops bytes silently when a buffer cannot grow. A document is therefore accepted
 * only when no allocation was refused while it was read or printed.
 *
 * Integers beyond 64 bits are legal JSON and do occur in model configurations; Jansson refuses
 * them. Such a text is read a second time with "e0" put behind these numbers: they become reals.
 */
#include "dep/json.h"

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"

__attribute__((constructor)) static void use_counted_memory(void)
{
    json_set_alloc_funcs(qn_plain_alloc, qn_plain_free);
}

/* Jansson takes plain pointers even where it only reads. */
static json_t *raw(const qn_json *v) { return (json_t *)(uintptr_t)v; }
static qn_json *wrap(json_t *v) { return (qn_json *)v; }

/* -- integers that do not fit ------------------------------------------------------------------ */

typedef struct feed { /* the text, handed to Jansson in pieces */
    const char *text;
    size_t n, pos;
    size_t number_end; /* past the number that pos is in or behind */
    size_t suffix_at;  /* where "e0" goes, SIZE_MAX: nowhere */
    unsigned suffix;   /* bytes of it already sent */
    bool in_string, escaped;
} feed;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Looks at the number that starts at pos: where it ends and whether it is an integer too large. */
static void meet_number(feed *f)
{
    size_t i = f->pos + (f->text[f->pos] == '-');
    const size_t first = i;
    while (i < f->n && is_digit(f->text[i])) i++;
    const size_t digits = i - first;
    const bool real = i < f->n && (f->text[i] == '.' || f->text[i] == 'e' || f->text[i] == 'E');
    const char *most = first > f->pos ? "9223372036854775808" : "9223372036854775807";
    if (!real && (digits > 19 || (digits == 19 && memcmp(f->text + first, most, 19) > 0)))
        f->suffix_at = i;
    while (i < f->n && (is_digit(f->text[i]) || memchr("+-.eE", f->text[i], 5))) i++;
    f->number_end = i;
}

static size_t next_bytes(void *buffer, size_t room, void *data)
{
    feed *f = data;
    char *to = buffer;
    size_t n = 0;
    while (n < room) {
        if (f->pos == f->suffix_at) {
            to[n++] = "e0"[f->suffix++];
            if (f->suffix == 2) {
                f->suffix_at = SIZE_MAX;
                f->suffix = 0;
            }
            continue;
        }
        if (f->pos == f->n) break;
        const char c = f->text[f->pos];
        if (f->in_string) {
            if (c == '"' && !f->escaped) f->in_string = false;
            f->escaped = c == '\\' && !f->escaped;
        } else if (c == '"') {
            f->in_string = true;
        } else if ((is_digit(c) || c == '-') && f->pos >= f->number_end) {
            meet_number(f);
        }
        to[n++] = c;
        f->pos++;
    }
    return n;
}

/* -- reading ----------------------------------------------------------------------------------- */

static qn_code parse_failed(const json_error_t *e, qn_err *err)
{
    const bool deep = json_error_code(e) == json_error_stack_overflow;
    return qn_fail(err, deep ? QN_E_LIMIT : QN_E_FORMAT, "json: line %d, column %d: %s", e->line,
                   e->column, e->text[0] ? e->text : "invalid");
}

qn_code qn_json_parse(qn_json **out, const char *text, size_t n, size_t max_bytes, qn_err *err)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_error_t e = {.line = 0};
    *out = NULL;
    if (n > max_bytes)
        return qn_fail(err, QN_E_LIMIT, "json: %zu bytes, at most %zu allowed", n, max_bytes);
    if (!text) n = 0;
    const char *nul = n ? memchr(text, '\0', n) : NULL; /* Jansson skips some of them */
    if (nul)
        return qn_fail(err, QN_E_FORMAT, "json: a NUL at byte %zu of %zu", (size_t)(nul - text), n);
    const size_t refused = qn_alloc_refused();
    json_t *root = json_loadb(text ? text : "", n, flags, &e);
    if (!root && qn_alloc_refused() == refused &&
        json_error_code(&e) == json_error_numeric_overflow) {
        feed f = {.text = text, .n = n, .suffix_at = SIZE_MAX};
        root = json_load_callback(next_bytes, &f, flags, &e);
    }
    if (qn_alloc_refused() != refused) {
        json_decref(root); /* it may lack bytes */
        return qn_fail(err, QN_E_NOMEM, "json: document of %zu bytes", n);
    }
    if (!root) return parse_failed(&e, err);
    *out = wrap(root);
    return QN_OK;
}

void qn_json_free(qn_json *root) { json_decref(raw(root)); }

qn_json_type qn_json_type_of(const qn_json *v)
{
    if (!v) return QN_JSON_NULL;
    switch (json_typeof(raw(v))) {
    case JSON_OBJECT:
        return QN_JSON_OBJECT;
    case JSON_ARRAY:
        return QN_JSON_ARRAY;
    case JSON_STRING:
        return QN_JSON_STRING;
    case JSON_INTEGER:
        return QN_JSON_INT;
    case JSON_REAL:
        return QN_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return QN_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return QN_JSON_NULL;
}

const qn_json *qn_json_get(const qn_json *v, const char *key)
{
    return wrap(json_object_get(raw(v), key));
}

const qn_json *qn_json_at(const qn_json *v, size_t i) { return wrap(json_array_get(raw(v), i)); }

size_t qn_json_len(const qn_json *v)
{
    return json_is_array(raw(v)) ? json_array_size(raw(v)) : json_object_size(raw(v));
}

bool qn_json_next(const qn_json *object, const void **it, const char **key, const qn_json **value)
{
    void *at = (void *)(uintptr_t)*it;
    at = at ? json_object_iter_next(raw(object), at) : json_object_iter(raw(object));
    *it = at;
    if (!at) return false;
    if (key) *key = json_object_iter_key(at);
    if (value) *value = wrap(json_object_iter_value(at));
    return true;
}

const char *qn_json_str(const qn_json *v, size_t *n)
{
    *n = json_string_length(raw(v));
    return json_string_value(raw(v));
}

int64_t qn_json_int(const qn_json *v, int64_t fallback)
{
    return json_is_integer(raw(v)) ? (int64_t)json_integer_value(raw(v)) : fallback;
}

double qn_json_num(const qn_json *v, double fallback)
{
    return json_is_number(raw(v)) ? json_number_value(raw(v)) : fallback;
}

bool qn_json_bool(const qn_json *v, bool fallback)
{
    return json_is_boolean(raw(v)) ? json_is_true(raw(v)) : fallback;
}

/* -- writing ----------------------------------------------------------------------------------- */

qn_code qn_json_dump(char **out, size_t *n, const qn_json *v, qn_err *err)
{
    *out = NULL;
    *n = 0;
    const size_t refused = qn_alloc_refused();
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    const size_t len = json_dumpb(raw(v), NULL, 0, flags);
    char *text = len && len < SIZE_MAX ? qn_alloc(len + 1) : NULL;
    const bool ok = text && json_dumpb(raw(v), text, len, flags) == len;
    if (!ok) qn_free(text);
    if (qn_alloc_refused() != refused) return qn_fail(err, QN_E_NOMEM, "json text");
    if (!ok) return qn_fail(err, QN_E_INVAL, "json: no value, or one that holds itself");
    text[len] = '\0';
    *out = text;
    *n = len;
    return QN_OK;
}

qn_json *qn_json_new_object(void) { return wrap(json_object()); }
qn_json *qn_json_new_array(void) { return wrap(json_array()); }
qn_json *qn_json_new_str(const char *s, size_t n) { return wrap(json_stringn(s ? s : "", n)); }
qn_json *qn_json_new_int(int64_t v) { return wrap(json_integer(v)); }
qn_json *qn_json_new_num(double v) { return wrap(json_real(v)); }
qn_json *qn_json_new_bool(bool v) { return wrap(json_boolean(v)); }
qn_json *qn_json_new_null(void) { return wrap(json_null()); }

bool qn_json_set(qn_json *object, const char *key, qn_json *value)
{
    return json_object_set_new(raw(object), key, raw(value)) == 0;
}

bool qn_json_push(qn_json *array, qn_json *value)
{
    return json_array_append_new(raw(array), raw(value)) == 0;
}
