/* SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/rng.h"
#include "format/gguf.h"
#include "format/gguf_write.h"
#include "text/detok.h"
#include "wire/codec.h"

/* --- models ----------------------------------------------------------------------------------- */

static qn_code put_keys(qn_gguf_writer *w, const qn_gguf *g, kit_change c, qn_err *err)
{
    qn_str arch = {0};
    char context[64], window[64];
    QN_TRY(qn_gguf_opt_str(&arch, g, "general.architecture", QN_STR("llama"), err));
    snprintf(context, sizeof context, "%.*s.context_length", QN_STR_ARG(arch));
    snprintf(window, sizeof window, "%.*s.attention.sliding_window", QN_STR_ARG(arch));
    for (size_t i = 0; i < qn_gguf_n_keys(g); i++) {
        qn_gguf_value v;
        const qn_str key = qn_gguf_key(g, i, &v);
        if (c.context && qn_str_eq_z(key, context)) continue;
        if (c.window && qn_str_eq_z(key, window)) continue;
        if (qn_str_has_prefix(key, QN_STR("GGUF."))) continue;
        QN_TRY(qn_gguf_put_value(w, key, &v, err));
    }
    if (c.context) QN_TRY(qn_gguf_put_u32(w, context, c.context, err));
    if (c.window) QN_TRY(qn_gguf_put_u32(w, window, c.window, err));
    return QN_OK;
}

static qn_code put_tensor(qn_gguf_writer *w, const qn_gguf_tensor *x, kit_change c, qn_err *err)
{
    const bool embed = qn_str_eq_z(x->name, "token_embd.weight");
    if (!c.poison || !embed) return qn_gguf_write(w, x->data, x->bytes, err);
    uint8_t *copy = malloc(x->bytes);
    const size_t row = x->dims[0] * sizeof(float);
    memcpy(copy, x->data, x->bytes);
    for (size_t i = 0; i < x->dims[0]; i++) {
        const float nan = NAN;
        memcpy(copy + c.poison * row + i * sizeof nan, &nan, sizeof nan);
    }
    const qn_code rc = qn_gguf_write(w, copy, x->bytes, err);
    free(copy);
    return rc;
}

static qn_code copy_gguf(const char *to, const char *from, kit_change c, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_gguf *g = NULL;
    qn_gguf_writer *w = NULL;
    qn_gguf_tensor x;
    QN_TRY_OUT(qn_gguf_open(&g, from, err));
    QN_TRY_OUT(qn_gguf_writer_open(&w, to, err));
    QN_TRY_OUT(put_keys(w, g, c, err));
    for (size_t i = 0; i < qn_gguf_n_tensors(g); i++) {
        char name[128];
        qn_gguf_tensor_at(g, i, &x);
        snprintf(name, sizeof name, "%.*s", QN_STR_ARG(x.name));
        QN_TRY_OUT(qn_gguf_add_tensor(w, name, x.fmt, x.dims, x.n_dims, err));
    }
    for (size_t i = 0; i < qn_gguf_n_tensors(g); i++) {
        qn_gguf_tensor_at(g, i, &x);
        QN_TRY_OUT(put_tensor(w, &x, c, err));
    }
    QN_TRY_OUT(qn_gguf_writer_finish(w, err));
out:
    qn_gguf_writer_close(w);
    qn_gguf_close(g);
    return rc;
}

/* The whole file as text, NUL behind; free() it. */
static char *slurp(const char *dir, const char *name, size_t *n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *text = calloc(1, 1 << 22);
    *n = fread(text, 1, (1 << 22) - 1, f);
    fclose(f);
    return text;
}

static void spill(const char *dir, const char *name, const char *text, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(text, 1, n, f);
    fclose(f);
}

static bool says(const char *line, const char *next, const char *key)
{
    const char *at = strstr(line, key);
    return at && at < next;
}

/* The goldens' config.json have one field a line: drop the lines we say anew. */
static void copy_config(const char *to, const char *from, kit_change c)
{
    size_t n = 0;
    char *text = slurp(from, "config.json", &n), *out = calloc(1, n + 512);
    const bool llama = strstr(text, "\"llama\"") != NULL; /* slides under another name only */
    size_t at = (size_t)sprintf(out, "{\n");
    if (c.context) at += (size_t)sprintf(out + at, "\"max_position_embeddings\": %u,\n", c.context);
    if (c.window) at += (size_t)sprintf(out + at, "\"sliding_window\": %u,\n", c.window);
    if (c.window && llama) at += (size_t)sprintf(out + at, "\"model_type\": \"mistral\",\n");
    for (char *line = strchr(text, '\n') + 1, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if ((c.context && says(line, next, "\"max_position_embeddings\"")) ||
            (c.window && says(line, next, "\"sliding_window\"")) ||
            (c.window && llama && says(line, next, "\"model_type\"")))
            continue;
        memcpy(out + at, line, (size_t)(next - line));
        at += (size_t)(next - line);
    }
    spill(to, "config.json", out, at);
    free(text);
    free(out);
}

static void copy_directory(const char *to, const char *from, kit_change c)
{
    static const char *const files[] = {"model.safetensors", "tokenizer.json"};
    mkdir(to, 0700);
    for (size_t i = 0; i < QT_LEN(files); i++) {
        size_t n = 0;
        char *text = slurp(from, files[i], &n);
        if (text) spill(to, files[i], text, n);
        free(text);
    }
    copy_config(to, from, c);
}

qn_model *kit_model(qt *t, const char *name, kit_change change, qn_act_mode activations)
{
    char from[256], to[512];
    qn_model *m = NULL;
    qn_err err = {0};
    qn_code rc = QN_OK;
    const char *slash = strchr(name, '/'), *folder = slash ? slash + 1 : name;
    const bool gguf = strncmp(folder, "gguf", 4) == 0;
    snprintf(from, sizeof from, "tests/golden/%s%s%s", slash ? "" : "llama/", name,
             gguf ? "/model.gguf" : "");
    snprintf(to, sizeof to, "%s/%s%s-%u-%u-%u%s", qt_tmp(), slash ? "other-" : "", folder,
             change.context, change.window, change.poison, gguf ? ".gguf" : "");
    if (gguf)
        rc = copy_gguf(to, from, change, &err);
    else
        copy_directory(to, from, change);
    const qn_model_options opt = {.activations = activations};
    if (rc == QN_OK) rc = qn_model_open(&m, to, &opt, &err);
    QT_OKF(t, rc == QN_OK, "model %s: %s", name, err.msg);
    return m;
}

/* --- calls ------------------------------------------------------------------------------------ */

kit_call *kit_call_new(void)
{
    kit_call *c = calloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    return c;
}

void kit_call_free(kit_call *c)
{
    if (!c) return;
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
}

static kit_token token_of(const qn_event_token *e)
{
    kit_token k = {.id = e->token,
                   .flags = e->flags,
                   .cut_bytes = e->cut_bytes,
                   .n_top = e->top.n,
                   .text_offset = e->text_offset,
                   .logprob = e->logprob};
    for (uint32_t i = 0; i < e->top.n && i < KIT_TOP; i++) k.top[i] = qn_event_tops(e)[i];
    return k;
}

static void on_token(kit_call *c, const qn_event_token *e)
{
    kit_choice *k = &c->choice[e->head.choice];
    if (e->flags & QN_EVENT_OF_PROMPT) {
        if (e->head.choice == 0 && c->n_prompt < KIT_PROMPT) {
            c->order_faults += e->head.index != c->n_prompt;
            c->prompt[c->n_prompt++] = token_of(e);
        }
        return;
    }
    if (k->n == 0) k->end.head.index = e->head.index; /* a resumed one starts later */
    c->order_faults += k->done || e->head.index != k->end.head.index + k->n;
    if (k->n < KIT_NEW) k->token[k->n++] = token_of(e);
    if (c->cancel_after && k->n == c->cancel_after) qn_engine_cancel(c->engine, c->id);
}

static void on_done(kit_call *c, const qn_event_done *e)
{
    kit_choice *k = &c->choice[e->head.choice];
    c->order_faults += k->done;
    k->done = true;
    k->end = *e;
    c->n_open--;
}

static void on_event(void *ctx, const qn_event_head *e)
{
    kit_call *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->n_events++;
    c->order_faults += c->failed || c->n_open == 0 || e->choice >= KIT_CHOICES;
    if (e->head.kind == QN_EVENT_TOKEN) {
        on_token(c, (const qn_event_token *)e);
    } else if (e->head.kind == QN_EVENT_DONE) {
        on_done(c, (const qn_event_done *)e);
    } else {
        c->failed = true;
        c->error = *(const qn_event_error *)e;
        const qn_str msg = qn_event_msg((const qn_event_error *)e);
        snprintf(c->message, sizeof c->message, "%.*s", QN_STR_ARG(msg));
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

qn_code kit_submit(kit_call *c, qn_engine *e, const qn_request_in *in, qn_err *err)
{
    qn_buf block;
    qn_buf_init(&block, QN_REQUEST_MAX_BYTES);
    qn_code rc = qn_request_build(&block, in, err);
    pthread_mutex_lock(&c->lock); /* no event is handled before the id is known */
    c->engine = e;
    c->n_open = in->n_choices;
    if (rc == QN_OK) rc = qn_engine_submit(&c->id, e, block.data, block.len, on_event, c, err);
    if (rc != QN_OK) c->n_open = 0;
    pthread_mutex_unlock(&c->lock);
    qn_buf_fini(&block);
    return rc;
}

void kit_wait(kit_call *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->n_open > 0 && !c->failed) pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void kit_wait_tokens(kit_call *c, uint32_t n)
{
    pthread_mutex_lock(&c->lock);
    while (c->n_open > 0 && !c->failed && c->choice[0].n < n)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void kit_run(qt *t, kit_call *c, qn_engine *e, const qn_request_in *in)
{
    qn_err err = {0};
    QT_OKF(t, kit_submit(c, e, in, &err) == QN_OK, "%s", err.msg);
    kit_wait(c);
    QT_EQ(t, c->order_faults, 0);
}

/* --- requests --------------------------------------------------------------------------------- */

qn_request_in kit_ask(const uint32_t *tokens, uint32_t n, uint32_t max_tokens)
{
    qn_request_in in;
    qn_request_in_init(&in);
    in.tokens = tokens;
    in.n_tokens = n;
    in.max_tokens = max_tokens;
    in.sampling.set |= QN_SET_MAX_TOKENS | QN_SET_TEMPERATURE;
    in.sampling.temperature = 0.0f;
    return in;
}

void kit_heat(qn_request_in *in, float temperature, uint64_t seed)
{
    in->sampling.temperature = temperature;
    in->sampling.seed = seed;
    in->sampling.has_seed = 1;
}

void kit_prompt(uint32_t *ids, uint32_t n, uint32_t vocab, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = 2 + qn_rng_u32(seed, 0, 0, QN_RNG_DATA, i) % (vocab - 2);
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool same_token(const kit_token *a, const kit_token *b)
{
    return a->id == b->id && a->flags == b->flags && a->cut_bytes == b->cut_bytes &&
           a->n_top == b->n_top && memcmp(&a->logprob, &b->logprob, sizeof a->logprob) == 0 &&
           memcmp(a->top, b->top, sizeof a->top) == 0;
}

static bool same_choice(qt *t, const kit_choice *a, const kit_choice *b, const char *what,
                        uint32_t choice)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++)
        if (!QT_OKF(t, same_token(&a->token[i], &b->token[i]),
                    "%s: choice %u, token %u: %u (%a) and %u (%a)", what, choice, i, a->token[i].id,
                    (double)a->token[i].logprob, b->token[i].id, (double)b->token[i].logprob))
            return false;
    return QT_OKF(t,
                  a->n == b->n && a->done == b->done && a->end.finish == b->end.finish &&
                      a->end.stop_text == b->end.stop_text,
                  "%s: choice %u ends after %u (finish %u) and %u (finish %u)", what, choice, a->n,
                  a->end.finish, b->n, b->end.finish);
}

bool kit_same(qt *t, const kit_call *a, const kit_call *b, const char *what)
{
    if (!QT_OKF(t, !a->failed && !b->failed, "%s: %s%s", what, a->message, b->message))
        return false;
    if (!QT_OKF(t, a->n_prompt == b->n_prompt, "%s: echo", what)) return false;
    for (uint32_t i = 0; i < a->n_prompt; i++)
        if (!QT_OKF(t, same_token(&a->prompt[i], &b->prompt[i]), "%s: prompt token %u", what, i))
            return false;
    for (uint32_t i = 0; i < KIT_CHOICES; i++)
        if (!same_choice(t, &a->choice[i], &b->choice[i], what, i)) return false;
    return true;
}

char *kit_text(const kit_call *c, uint32_t i, const qn_tokenizer *t)
{
    const kit_choice *k = &c->choice[i];
    qn_detok *d = NULL;
    qn_buf out;
    qn_buf_init(&out, 1 << 20);
    (void)qn_buf_append(&out, "", 0, NULL);
    (void)qn_buf_reserve(&out, 1, NULL);
    if (qn_detok_open(&d, t, (qn_detok_options){.skip_special = true}, NULL) != QN_OK) return NULL;
    for (uint32_t n = 0; n < k->n; n++) {
        if (k->token[n].flags & QN_EVENT_IS_STOP) continue;
        const qn_str p = qn_detok_push(d, k->token[n].id);
        (void)qn_buf_append(&out, p.p, p.n, NULL);
        qn_buf_truncate(&out, out.len - k->token[n].cut_bytes);
    }
    qn_detok_free(d);
    return (char *)qn_buf_take(&out, NULL);
}
