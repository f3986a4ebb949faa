/* SPDX-License-Identifier: Apache-2.0 */
/* chat_log.c - turns in memory and in a file. */
#include "cli/chat_log.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "dep/json.h"

static const char *const role_names[] = {"user", "assistant"};

void qn_chat_log_init(qn_chat_log *log) { memset(log, 0, sizeof *log); }

void qn_chat_log_fini(qn_chat_log *log)
{
    qn_chat_log_cut(log, 0);
    qn_free(log->system);
    qn_free(log->turns);
    memset(log, 0, sizeof *log);
}

/* A copy that fits beside what is there. */
static qn_code copy_text(char **out, const qn_chat_log *log, qn_str text, qn_err *err)
{
    size_t bad = 0;
    *out = NULL;
    if (!qn_utf8_valid(text.p, text.n, &bad))
        return qn_fail(err, QN_E_FORMAT, "the text is no UTF-8 at byte %zu", bad);
    if (text.n > QN_CHAT_BYTES - log->bytes)
        return qn_fail(err, QN_E_LIMIT, "the conversation grows past %d MiB", QN_CHAT_BYTES >> 20);
    *out = qn_alloc(text.n + 1);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "%zu bytes of text", text.n);
    if (text.n) memcpy(*out, text.p, text.n);
    (*out)[text.n] = '\0';
    return QN_OK;
}

qn_code qn_chat_log_add(qn_chat_log *log, qn_chat_role role, qn_str text, qn_err *err)
{
    char *copy = NULL;
    if (log->n_turns == QN_CHAT_TURNS)
        return qn_fail(err, QN_E_LIMIT, "the conversation has %d turns already", QN_CHAT_TURNS);
    if (log->n_turns == log->cap) {
        const size_t cap = log->cap ? 2 * log->cap : 16;
        qn_chat_turn *turns = qn_realloc(log->turns, cap * sizeof *turns);
        if (!turns) return qn_fail(err, QN_E_NOMEM, "%zu turns", cap);
        log->turns = turns;
        log->cap = cap;
    }
    QN_TRY(copy_text(&copy, log, text, err));
    log->turns[log->n_turns++] = (qn_chat_turn){role, copy, text.n};
    log->bytes += text.n;
    return QN_OK;
}

qn_code qn_chat_log_set_system(qn_chat_log *log, qn_str text, qn_err *err)
{
    char *copy = NULL;
    if (text.n) QN_TRY(copy_text(&copy, log, text, err));
    qn_free(log->system);
    log->bytes += text.n - log->system_n;
    log->system = copy;
    log->system_n = text.n;
    return QN_OK;
}

void qn_chat_log_cut(qn_chat_log *log, size_t n_turns)
{
    while (log->n_turns > n_turns) {
        const qn_chat_turn *t = &log->turns[--log->n_turns];
        log->bytes -= t->n;
        qn_free(t->text);
    }
}

/* -- writing ----------------------------------------------------------------------------------- */

static qn_json *message(const char *role, const char *text, size_t n)
{
    qn_json *v = qn_json_new_object();
    if (v && qn_json_set(v, "role", qn_json_new_str(role, strlen(role))) &&
        qn_json_set(v, "content", qn_json_new_str(text, n)))
        return v;
    qn_json_free(v);
    return NULL;
}

static qn_json *messages(const qn_chat_log *log, bool with_system)
{
    qn_json *list = qn_json_new_array();
    bool ok = list != NULL;
    if (ok && with_system && log->system)
        ok = qn_json_push(list, message("system", log->system, log->system_n));
    for (size_t i = 0; ok && i < log->n_turns; i++) {
        const qn_chat_turn *t = &log->turns[i];
        ok = qn_json_push(list, message(role_names[t->role], t->text, t->n));
    }
    if (ok) return list;
    qn_json_free(list);
    return NULL;
}

/* Takes v, which may be NULL (no memory). */
static qn_code dump(char **text, size_t *n, qn_json *v, qn_err *err)
{
    *text = NULL;
    const qn_code rc =
        v ? qn_json_dump(text, n, v, err) : qn_fail(err, QN_E_NOMEM, "the conversation as JSON");
    qn_json_free(v);
    return rc;
}

qn_code qn_chat_log_messages(qn_buf *out, const qn_chat_log *log, qn_err *err)
{
    char *text = NULL;
    size_t n = 0;
    QN_TRY(dump(&text, &n, messages(log, true), err));
    const qn_code rc = qn_buf_append(out, text, n, err);
    qn_free(text);
    return rc;
}

static qn_json *document(const qn_chat_log *log, const char *model)
{
    qn_json *v = qn_json_new_object();
    const bool named = model && qn_utf8_valid(model, strlen(model), NULL);
    if (v && qn_json_set(v, "quern_chat", qn_json_new_int(QN_CHAT_VERSION)) &&
        qn_json_set(v, "model",
                    named ? qn_json_new_str(model, strlen(model)) : qn_json_new_null()) &&
        qn_json_set(v, "system",
                    log->system ? qn_json_new_str(log->system, log->system_n)
                                : qn_json_new_null()) &&
        qn_json_set(v, "messages", messages(log, false)))
        return v;
    qn_json_free(v);
    return NULL;
}

/* Only a saved chat is written over. */
static qn_code may_replace(const char *path, qn_err *err)
{
    qn_chat_log other;
    qn_err why = {0};
    if (!qn_file_exists(path)) return QN_OK;
    qn_chat_log_init(&other);
    const qn_code rc = qn_chat_log_load(&other, path, &why);
    qn_chat_log_fini(&other);
    if (rc == QN_OK || rc == QN_E_NOTFOUND) return QN_OK;
    return rc == QN_E_FORMAT ? qn_fail(err, QN_E_INVAL, "%s is there and is no saved chat", path)
                             : qn_fail(err, rc, "%s", why.msg);
}

qn_code qn_chat_log_save(const qn_chat_log *log, const char *path, const char *model, qn_err *err)
{
    char *text = NULL;
    size_t n = 0;
    QN_TRY(may_replace(path, err));
    QN_TRY(dump(&text, &n, document(log, model), err));
    const qn_code rc = qn_file_write_private(path, text, n, err);
    qn_free(text);
    return rc;
}

/* -- reading ----------------------------------------------------------------------------------- */

static qn_code bad(qn_err *err, const char *what)
{
    return qn_fail(err, QN_E_FORMAT, "no saved chat: %s", what);
}

static qn_code read_turn(qn_chat_log *log, const qn_json *v, size_t i, qn_err *err)
{
    size_t n_role = 0, n = 0;
    const char *role = qn_json_str(qn_json_get(v, "role"), &n_role);
    const char *text = qn_json_str(qn_json_get(v, "content"), &n);
    if (!role || !text || qn_json_len(v) != 2)
        return qn_fail(err, QN_E_FORMAT,
                       "message %zu: expected \"role\" and \"content\", two texts", i);
    for (size_t r = 0; r < QN_LEN(role_names); r++)
        if (qn_str_eq_z(qn_str_make(role, n_role), role_names[r]))
            return qn_chat_log_add(log, (qn_chat_role)r, qn_str_make(text, n), err);
    return qn_fail(err, QN_E_FORMAT, "message %zu: role \"%.*s\", expected user or assistant", i,
                   QN_STR_ARG(qn_str_slice(qn_str_make(role, n_role), 0, 40)));
}

static qn_code read_document(qn_chat_log *log, const qn_json *root, qn_err *err)
{
    static const char *const keys[] = {"quern_chat", "model", "system", "messages"};
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL, *system = qn_json_get(root, "system");
    const qn_json *list = qn_json_get(root, "messages");
    const qn_json *version = qn_json_get(root, "quern_chat");
    size_t n = 0;
    if (qn_json_type_of(root) != QN_JSON_OBJECT) return bad(err, "expected an object");
    if (qn_json_type_of(version) != QN_JSON_INT) return bad(err, "\"quern_chat\" is missing");
    if (qn_json_int(version, 0) != QN_CHAT_VERSION)
        return qn_fail(err, QN_E_UNSUPPORTED, "saved chat of version %lld, this program knows %d",
                       (long long)qn_json_int(version, 0), QN_CHAT_VERSION);
    while (qn_json_next(root, &it, &key, &value)) {
        bool known = false;
        for (size_t i = 0; i < QN_LEN(keys); i++) known = known || strcmp(key, keys[i]) == 0;
        if (!known) return qn_fail(err, QN_E_FORMAT, "no saved chat: key \"%.40s\"", key);
    }
    const char *text = qn_json_str(system, &n);
    if (!text && qn_json_type_of(system) != QN_JSON_NULL) return bad(err, "\"system\" is no text");
    if (text) QN_TRY(qn_chat_log_set_system(log, qn_str_make(text, n), err));
    if (qn_json_type_of(list) != QN_JSON_ARRAY) return bad(err, "\"messages\" is no list");
    if (qn_json_len(list) > QN_CHAT_TURNS)
        return qn_fail(err, QN_E_LIMIT, "%zu messages, at most %d", qn_json_len(list),
                       QN_CHAT_TURNS);
    for (size_t i = 0; i < qn_json_len(list); i++)
        QN_TRY(read_turn(log, qn_json_at(list, i), i, err));
    return QN_OK;
}

qn_code qn_chat_log_parse(qn_chat_log *log, const char *text, size_t n, qn_err *err)
{
    qn_json *root = NULL;
    qn_chat_log fresh;
    qn_chat_log_init(&fresh);
    QN_TRY(qn_json_parse(&root, text, n, QN_CHAT_FILE_BYTES, err));
    const qn_code rc = read_document(&fresh, root, err);
    qn_json_free(root);
    if (rc != QN_OK) {
        qn_chat_log_fini(&fresh);
        return rc;
    }
    qn_chat_log_fini(log);
    *log = fresh;
    return QN_OK;
}

qn_code qn_chat_log_load(qn_chat_log *log, const char *path, qn_err *err)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    QN_TRY(qn_file_read(&bytes, &n, path, QN_CHAT_FILE_BYTES, err));
    const qn_code rc = qn_chat_log_parse(log, (const char *)bytes, n, err);
    qn_free(bytes);
    return rc == QN_OK ? rc : qn_wrap(err, rc, "%s", path);
}
