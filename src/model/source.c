/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - opening either kind of source, and its settings. */
#include "model/source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map_file.h"

enum { MAX_CONFIG_BYTES = 16 << 20, MAX_PATH_BYTES = 4096 };

/* dir/name, or LIMIT. */
static qn_code join(char out[MAX_PATH_BYTES], const char *dir, const char *name, qn_err *err)
{
    const int n = snprintf(out, MAX_PATH_BYTES, "%s/%s", dir, name);
    if (n < 0 || n >= MAX_PATH_BYTES)
        return qn_fail(err, QN_E_LIMIT, "path of %s is longer than %d bytes", name, MAX_PATH_BYTES);
    return QN_OK;
}

static qn_code copy_text(char **out, const char *p, size_t n, qn_err *err)
{
    *out = qn_alloc(n + 1);
    if (!*out) return qn_fail(err, QN_E_NOMEM, "%zu bytes of text", n + 1);
    if (n) memcpy(*out, p, n);
    (*out)[n] = '\0';
    return QN_OK;
}

/* The object in dir/name; *out stays NULL where there is no such file and it is not needed. */
static qn_code read_json(qn_json **out, const char *dir, const char *name, bool needed, qn_err *err)
{
    qn_code rc = QN_OK;
    char path[MAX_PATH_BYTES];
    uint8_t *bytes = NULL;
    size_t n = 0;
    QN_TRY(join(path, dir, name, err));
    if (!needed && !qn_file_exists(path)) return QN_OK;
    QN_TRY(qn_file_read(&bytes, &n, path, MAX_CONFIG_BYTES, err));
    rc = qn_json_parse(out, (const char *)bytes, n, MAX_CONFIG_BYTES, err);
    qn_free(bytes);
    if (rc != QN_OK) return qn_wrap(err, rc, "%s", path);
    if (qn_json_type_of(*out) != QN_JSON_OBJECT) {
        qn_json_free(*out);
        *out = NULL;
        return qn_fail(err, QN_E_FORMAT, "%s: expected an object", path);
    }
    return QN_OK;
}

static qn_code open_gguf(qn_source *s, const char *path, qn_err *err)
{
    QN_TRY(qn_gguf_open(&s->gguf, path, err));
    return qn_gguf_opt_str(&s->type, s->gguf, "general.architecture", QN_STR(""), err);
}

/* `path` is what the safetensors reader gets: a directory, a file or an index. */
static qn_code open_hf(qn_source *s, const char *path, qn_err *err)
{
    size_t n = 0;
    QN_TRY(read_json(&s->config, s->dir, "config.json", true, err));
    QN_TRY(read_json(&s->generate, s->dir, "generation_config.json", false, err));
    QN_TRY(read_json(&s->tokenizer, s->dir, "tokenizer_config.json", false, err));
    const char *type = qn_json_str(qn_json_get(s->config, "model_type"), &n);
    s->type = qn_str_make(type ? type : "", n);
    return qn_st_open(&s->st, path, err);
}

/* Files of the config kind, or else the one GGUF model that lies there. */
static qn_code open_dir(qn_source *s, const char *dir, qn_err *err)
{
    char path[MAX_PATH_BYTES];
    bool found = false;
    QN_TRY(join(path, dir, "config.json", err));
    if (!qn_file_exists(path)) QN_TRY(qn_source_find_gguf(&found, path, sizeof path, dir, err));
    return found ? open_gguf(s, path, err) : open_hf(s, dir, err);
}

/* A shard stands for all of them where the index lies beside it. */
static qn_code open_file(qn_source *s, const char *path, qn_err *err)
{
    qn_mapping map = {0};
    char index[MAX_PATH_BYTES];
    QN_TRY(qn_map_open(&map, path, err));
    const bool gguf = map.len >= 4 && memcmp(map.data, "GGUF", 4) == 0;
    const bool backward = map.len >= 4 && memcmp(map.data, "FUGG", 4) == 0;
    qn_map_close(&map);
    if (gguf || backward) return open_gguf(s, path, err);
    const qn_str name = qn_str_z(path);
    if (qn_str_has_suffix(name, QN_STR(".index.json"))) return open_hf(s, path, err);
    if (!qn_str_has_suffix(name, QN_STR(".safetensors")))
        return qn_fail(err, QN_E_FORMAT, "%s: neither a GGUF file nor a .safetensors file", path);
    QN_TRY(join(index, s->dir, "model.safetensors.index.json", err));
    const bool shard = qn_str_find(name, QN_STR("-of-"), 0) != SIZE_MAX && qn_file_exists(index);
    return open_hf(s, shard ? index : path, err);
}

qn_code qn_source_open(qn_source *s, const char *path, qn_err *err)
{
    qn_code rc = QN_OK;
    struct stat st;
    memset(s, 0, sizeof *s);
    const bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    const char *slash = strrchr(path, '/');
    QN_TRY_OUT(copy_text(&s->path, path, strlen(path), err));
    if (dir)
        QN_TRY_OUT(copy_text(&s->dir, path, strlen(path), err));
    else if (!slash)
        QN_TRY_OUT(copy_text(&s->dir, ".", 1, err));
    else
        QN_TRY_OUT(copy_text(&s->dir, path, slash == path ? 1 : (size_t)(slash - path), err));
    QN_TRY_OUT(dir ? open_dir(s, path, err) : open_file(s, path, err));
out:
    if (rc != QN_OK) qn_source_close(s);
    return rc;
}

void qn_source_close(qn_source *s)
{
    qn_gguf_close(s->gguf);
    qn_st_close(s->st);
    qn_json_free(s->config);
    qn_json_free(s->generate);
    qn_json_free(s->tokenizer);
    qn_free(s->path);
    qn_free(s->dir);
    memset(s, 0, sizeof *s);
}

/* -- settings ---------------------------------------------------------------------------------- */

const char *qn_source_key(char buf[96], const qn_source *s, const char *gguf, const char *hf)
{
    if (s->gguf)
        snprintf(buf, 96, "%.*s.%s", (int)(s->type.n < 32 ? s->type.n : 32), s->type.p,
                 gguf ? gguf : "?");
    else
        snprintf(buf, 96, "config.json: %s", hf ? hf : "?");
    return buf;
}

static bool find_gguf(qn_gguf_value *v, const qn_source *s, const char *suffix)
{
    char key[160];
    const int n = snprintf(key, sizeof key, "%.*s.%s", (int)(s->type.n < 96 ? s->type.n : 96),
                           s->type.p, suffix);
    return n > 0 && (size_t)n < sizeof key && qn_gguf_find(s->gguf, key, v);
}

static const qn_json *find_json(const qn_json *root, const char *path)
{
    char first[64];
    const char *dot = strchr(path, '.');
    if (!dot) return qn_json_get(root, path);
    snprintf(first, sizeof first, "%.*s", (int)(dot - path), path);
    return qn_json_get(qn_json_get(root, first), dot + 1);
}

const qn_json *qn_source_json(const qn_source *s, const char *path)
{
    if (!s->config) return NULL;
    const qn_json *v = find_json(qn_json_get(s->config, "text_config"), path);
    return v ? v : find_json(s->config, path);
}

qn_code qn_source_num(bool *found, double *out, const qn_source *s, const char *gguf,
                      const char *hf, qn_err *err)
{
    char key[96];
    *found = false;
    if (s->gguf) {
        qn_gguf_value v;
        if (!gguf || !find_gguf(&v, s, gguf)) return QN_OK;
        if (v.type == QN_GGUF_ARRAY || !qn_gguf_item_f64(out, &v, 0))
            return qn_fail(err, QN_E_FORMAT, "%s is of type %s, expected a number",
                           qn_source_key(key, s, gguf, hf), qn_gguf_type_name(v.type));
    } else {
        const qn_json *v = hf ? qn_source_json(s, hf) : NULL;
        const qn_json_type type = qn_json_type_of(v);
        if (type == QN_JSON_NULL) return QN_OK;
        if (type != QN_JSON_INT && type != QN_JSON_REAL)
            return qn_fail(err, QN_E_FORMAT, "%s is no number", qn_source_key(key, s, gguf, hf));
        *out = qn_json_num(v, 0);
    }
    *found = true;
    return QN_OK;
}

qn_code qn_source_bool(bool *found, bool *out, const qn_source *s, const char *gguf, const char *hf,
                       qn_err *err)
{
    char key[96];
    *found = false;
    if (s->gguf) {
        qn_gguf_value v;
        if (!gguf || !find_gguf(&v, s, gguf)) return QN_OK;
        if (v.type != QN_GGUF_BOOL || !qn_gguf_item_bool(out, &v, 0))
            return qn_fail(err, QN_E_FORMAT, "%s is of type %s, expected a truth value",
                           qn_source_key(key, s, gguf, hf), qn_gguf_type_name(v.type));
    } else {
        const qn_json *v = hf ? qn_source_json(s, hf) : NULL;
        const qn_json_type type = qn_json_type_of(v);
        if (type == QN_JSON_NULL) return QN_OK;
        if (type != QN_JSON_BOOL)
            return qn_fail(err, QN_E_FORMAT, "%s is no truth value",
                           qn_source_key(key, s, gguf, hf));
        *out = qn_json_bool(v, false);
    }
    *found = true;
    return QN_OK;
}

qn_code qn_source_str(bool *found, qn_str *out, const qn_source *s, const char *gguf,
                      const char *hf, qn_err *err)
{
    char key[96];
    *found = false;
    if (s->gguf) {
        qn_gguf_value v;
        if (!gguf || !find_gguf(&v, s, gguf)) return QN_OK;
        if (v.type != QN_GGUF_STRING)
            return qn_fail(err, QN_E_FORMAT, "%s is of type %s, expected a text",
                           qn_source_key(key, s, gguf, hf), qn_gguf_type_name(v.type));
        qn_gguf_iter it = qn_gguf_items(&v);
        if (!qn_gguf_next_str(&it, out))
            return qn_fail(err, QN_E_FORMAT, "%s holds no text", qn_source_key(key, s, gguf, hf));
    } else {
        const qn_json *v = hf ? qn_source_json(s, hf) : NULL;
        size_t n = 0;
        if (qn_json_type_of(v) == QN_JSON_NULL) return QN_OK;
        const char *p = qn_json_str(v, &n);
        if (!p) return qn_fail(err, QN_E_FORMAT, "%s is no text", qn_source_key(key, s, gguf, hf));
        *out = qn_str_make(p, n);
    }
    *found = true;
    return QN_OK;
}
