/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - times one run of llama.cpp's prebuilt library, for bench/peer.
 *
 * A C program on the library itself, because the Node wrapper around it loses a fifth to two
 * fifths of the decode speed to its own scheduling, and beating a wrapper proves nothing. The
 * library picks its CPU variant, repacks weights at load and keeps its defaults; flash attention
 * and the KV type are set here and told in the result, so that the reader knows what was measured.
 *
 * Prompt ids come from the formula that `quern bench` uses: the first id is 1, then
 * id(i) = 3 + (i - 1) * 7919 mod min(200, V - 8). Decoding is greedy from there.
 *
 * With BATCH, so many sequences of that prompt decode together, a token of each in every call, and
 * rates are of all of them. WARM is the prompt of the pass that is not measured.
 *
 * Usage:  peer MODEL PROMPT GEN THREADS auto|on|off [BATCH [WARM]]
 *         PEER_BACKENDS names the folder of the library's CPU variants.
 * Output: one line of JSON on stdout; errors on stderr with status 1.
 * Not part of libquern: built by bench/peer, at bench time, with headers that are not in this tree.
 */
#include "llama.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_COUNT = 1 << 20, MAX_BATCH = 64, N_FIRST = 8, SPARE_CELLS = 64 };

typedef struct plan {
    const char *path, *backends;
    int prompt, gen, threads, batch; /* tokens, tokens, threads, sequences */
    int warm;                        /* prompt tokens of the pass that is not measured */
    enum llama_flash_attn_type flash;
} plan;

typedef struct result {
    double load_ms, prefill_s, decode_s;
    llama_token first[N_FIRST]; /* the first greedy ids, to compare with Quern's */
    int n_first;
} result;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void only_errors(enum ggml_log_level level, const char *text, void *unused)
{
    (void)unused;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

/* A count from the command line, in [1, MAX_COUNT]; 0 when it is none. */
static int read_count(const char *text)
{
    char *end = NULL;
    errno = 0;
    const long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 1 || v > MAX_COUNT) return 0;
    return (int)v;
}

static bool read_plan(plan *p, int argc, char **argv)
{
    if (argc < 6 || argc > 8) return false;
    p->path = argv[1];
    p->prompt = read_count(argv[2]);
    p->gen = read_count(argv[3]);
    p->threads = read_count(argv[4]);
    p->batch = argc > 6 ? read_count(argv[6]) : 1;
    p->warm = argc > 7 ? read_count(argv[7]) : p->prompt;
    p->backends = getenv("PEER_BACKENDS");
    p->flash = LLAMA_FLASH_ATTN_TYPE_AUTO;
    if (strcmp(argv[5], "on") == 0) p->flash = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    if (strcmp(argv[5], "off") == 0) p->flash = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    return p->prompt && p->gen && p->threads && p->backends && p->batch > 0 &&
           p->batch <= MAX_BATCH && p->warm > 0 && p->warm <= p->prompt;
}

static void fill_prompt(llama_token *ids, int n, int vocab)
{
    const int range = vocab - 8 < 200 ? vocab - 8 : 200;
    ids[0] = 1;
    for (int i = 1; i < n; i++) ids[i] = 3 + (llama_token)((int64_t)(i - 1) * 7919 % range);
}

static llama_token best_token(struct llama_context *ctx, int row, int vocab)
{
    const float *logits = llama_get_logits_ith(ctx, row);
    int best = 0;
    for (int i = 1; i < vocab; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void put(struct llama_batch *b, llama_token id, int pos, int seq, bool logits)
{
    const int i = b->n_tokens++;
    b->token[i] = id;
    b->pos[i] = pos;
    b->n_seq_id[i] = 1;
    b->seq_id[i][0] = seq;
    b->logits[i] = logits;
}

/* One pass from an empty cache: each prompt in one call, then gen greedy steps of a token each. false: the
 * library refused a batch. */
static bool pass(result *r, struct llama_context *ctx, const plan *p, struct llama_batch *b,
                 const llama_token *ids, int vocab)
{
    llama_token next[MAX_BATCH];
    llama_memory_clear(llama_get_memory(ctx), true);
    const double start = now_s();
    for (int s = 0; s < p->batch; s++) {
        b->n_tokens = 0;
        for (int i = 0; i < p->prompt; i++) put(b, ids[i], i, s, i + 1 == p->prompt);
        if (llama_decode(ctx, *b) != 0) return false;
        next[s] = best_token(ctx, -1, vocab); /* the first token belongs to the prefill */
    }
    const double filled = now_s();
    r->n_first = 0;
    for (int g = 0; g < p->gen; g++) {
        if (r->n_first < N_FIRST) r->first[r->n_first++] = next[0];
        b->n_tokens = 0;
        for (int s = 0; s < p->batch; s++) put(b, next[s], p->prompt + g, s, true);
        if (llama_decode(ctx, *b) != 0) return false;
        for (int s = 0; s < p->batch; s++) next[s] = best_token(ctx, s, vocab);
    }
    r->prefill_s = filled - start;
    r->decode_s = now_s() - filled;
    return true;
}

static void print_result(const result *r, const plan *p)
{
    printf("{\"prefill_tps\":%.3f,\"decode_tps\":%.3f,\"load_ms\":%.1f,\"kv\":\"f16\","
           "\"flash_attention\":\"%s\",\"threads\":%d,\"ids\":[",
           p->batch * p->prompt / r->prefill_s, p->batch * p->gen / r->decode_s, r->load_ms,
           llama_flash_attn_type_name(p->flash), p->threads);
    for (int i = 0; i < r->n_first; i++) printf("%s%d", i ? "," : "", r->first[i]);
    printf("],\"features\":\"%s\"}\n", llama_print_system_info());
}

static int run(const plan *p)
{
    int status = 1;
    result r = {0};
    llama_token *ids = NULL;
    struct llama_context *ctx = NULL;
    struct llama_batch batch = {0};
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    const double start = now_s();
    struct llama_model *model = llama_model_load_from_file(p->path, mp);
    r.load_ms = 1e3 * (now_s() - start);
    if (!model) {
        fprintf(stderr, "peer: %s: the library cannot load it\n", p->path);
        return 1;
    }
    const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t)((p->prompt + p->gen + SPARE_CELLS) * p->batch);
    cp.n_seq_max = (uint32_t)p->batch; /* with a cache of its own each, which is faster */
    cp.n_batch = (uint32_t)(p->prompt > p->batch ? p->prompt : p->batch);
    cp.n_ubatch = 512; /* its default; larger was not faster on one thread */
    cp.n_threads = cp.n_threads_batch = p->threads;
    cp.flash_attn_type = p->flash;
    cp.type_k = cp.type_v = GGML_TYPE_F16;
    cp.no_perf = true;
    ctx = llama_init_from_model(model, cp);
    ids = calloc((size_t)p->prompt, sizeof *ids);
    if (!ctx || !ids || vocab <= 16) {
        fprintf(stderr, "peer: %s: no context of %u tokens\n", p->path, cp.n_ctx);
        goto out;
    }
    batch = llama_batch_init((int32_t)cp.n_batch, 0, 1);
    fill_prompt(ids, p->prompt, vocab);
    plan warm = *p; /* warms pages and caches and is not told */
    warm.prompt = p->warm;
    for (int i = 0; i < 2; i++) {
        if (!pass(&r, ctx, i == 0 ? &warm : p, &batch, ids, vocab)) {
            fprintf(stderr, "peer: %s: a batch was refused\n", p->path);
            goto out;
        }
    }
    print_result(&r, p);
    status = 0;
out:
    if (batch.token) llama_batch_free(batch);
    free(ids);
    if (ctx) llama_free(ctx);
    llama_model_free(model);
    return status;
}

int main(int argc, char **argv)
{
    plan p = {0};
    if (!read_plan(&p, argc, argv)) {
        fputs("usage: PEER_BACKENDS=DIR peer MODEL PROMPT GEN THREADS auto|on|off [BATCH [WARM]]\n",
              stderr);
        return 1;
    }
    llama_log_set(only_errors, NULL);
    ggml_backend_load_all_from_path(p.backends);
    llama_backend_init();
    const int status = run(&p);
    llama_backend_free();
    return status;
}
