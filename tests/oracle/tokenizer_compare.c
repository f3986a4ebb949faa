/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_compare.c - our ids and decodings against a file that tokenizer_ids.py wrote.
 *
 *     tokenizer_compare VOCAB CASES      VOCAB: tokenizer.json, or the .parts file of a GGUF
 *
 * Prints the first differences, then "N of N texts equal", and how long opening and encoding took.
 */
#include "base/alloc.h"
#include "text/detok.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct reader {
    const char *p, *end;
} reader;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) return NULL;
    const long size = ftell(f);
    char *p = size >= 0 ? malloc((size_t)size + 1) : NULL;
    rewind(f);
    if (p && fread(p, 1, (size_t)size, f) != (size_t)size) {
        free(p);
        p = NULL;
    }
    fclose(f);
    *n = (size_t)size;
    return p;
}

static uint32_t u32(reader *r)
{
    uint32_t v = 0;
    if (r->end - r->p < 4) {
        fprintf(stderr, "the case file is too short\n");
        exit(2);
    }
    memcpy(&v, r->p, 4);
    r->p += 4;
    return v;
}

static qn_str bytes(reader *r)
{
    const uint32_t n = u32(r);
    const qn_str s = {r->p, n};
    if ((size_t)(r->end - r->p) < n) exit(2);
    r->p += n;
    return s;
}

static qn_str ids_of(reader *r)
{
    const uint32_t n = u32(r);
    const qn_str s = {r->p, (size_t)n * 4};
    if ((size_t)(r->end - r->p) < s.n) exit(2);
    r->p += s.n;
    return s;
}

static qn_code open_parts(qn_tokenizer **out, reader r, qn_err *err)
{
    qn_tokenizer_parts p = QN_TOKENIZER_PARTS_INIT;
    uint32_t *ids[] = {&p.bos, &p.eos, &p.unk, &p.pad, &p.eot, &p.eom};
    r.p += 8;
    p.model = bytes(&r);
    p.pre = bytes(&r);
    p.n_tokens = u32(&r);
    qn_str *tokens = calloc(p.n_tokens + 1, sizeof *tokens);
    for (size_t k = 0; k < p.n_tokens; k++) tokens[k] = bytes(&r);
    int32_t *types = calloc(p.n_tokens + 1, sizeof *types);
    for (size_t k = 0; k < p.n_tokens; k++) types[k] = (int32_t)u32(&r);
    const uint32_t n_scores = u32(&r);
    float *scores = calloc((size_t)n_scores + 1, sizeof *scores);
    for (size_t k = 0; k < n_scores; k++) {
        const uint32_t v = u32(&r);
        memcpy(&scores[k], &v, 4);
    }
    p.n_merges = u32(&r);
    qn_str *merges = calloc(p.n_merges + 1, sizeof *merges);
    for (size_t k = 0; k < p.n_merges; k++) merges[k] = bytes(&r);
    for (size_t k = 0; k < QN_LEN(ids); k++) *ids[k] = u32(&r);
    p.add_bos = (qn_tri)(int32_t)u32(&r);
    p.add_eos = (qn_tri)(int32_t)u32(&r);
    p.add_space_prefix = (qn_tri)(int32_t)u32(&r);
    p.tokens = tokens;
    p.types = types;
    p.merges = merges;
    p.scores = n_scores ? scores : NULL;
    const double begin = now();
    const qn_code rc = qn_tokenizer_from_parts(out, &p, err);
    printf("opened in %.1f ms\n", (now() - begin) * 1e3);
    free(tokens);
    free(types);
    free(scores);
    free(merges);
    return rc;
}

static size_t told;

static void tell(const char *what, qn_str text, qn_str want, const void *got, size_t n, bool as_ids)
{
    if (told++ >= 10) return;
    printf("%s differs for \"%.*s\"\n  want", what, QN_STR_ARG(text));
    for (size_t k = 0; as_ids && k < want.n / 4; k++) {
        uint32_t v = 0;
        memcpy(&v, want.p + 4 * k, 4);
        printf(" %u", v);
    }
    if (!as_ids) printf(" \"%.*s\"", QN_STR_ARG(want));
    printf("\n  got ");
    for (size_t k = 0; as_ids && k < n / 4; k++) printf(" %u", ((const uint32_t *)got)[k]);
    if (!as_ids) printf(" \"%.*s\"", (int)n, (const char *)got);
    printf("\n");
}

static bool check_ids(const qn_tokenizer *t, qn_str text, qn_str want, bool special, bool parse,
                      const char *what)
{
    qn_ids ids = {0};
    qn_err err = {0};
    const qn_code rc = qn_tokenizer_encode(
        t, &ids, text.p, text.n,
        (qn_encode_options){.add_special = special, .parse_special = parse}, &err);
    const bool same =
        rc == QN_OK && ids.n * 4 == want.n && (want.n == 0 || memcmp(ids.id, want.p, want.n) == 0);
    if (rc != QN_OK) printf("%s: %s\n", what, err.msg);
    if (!same) tell(what, text, want, ids.id, ids.n * 4, true);
    qn_ids_fini(&ids);
    return same;
}

/* Decoded at once, and token by token; the stream may differ only in how an ill-formed byte run
 * becomes U+FFFD, which `strict` rules out. */
static bool check_text(const qn_tokenizer *t, qn_str ids, qn_str want, bool skip, const char *what)
{
    const size_t n = ids.n / 4;
    uint32_t *id = malloc(ids.n + 4);
    memcpy(id, ids.p, ids.n);
    char *text = NULL;
    size_t n_text = 0, n_stream = 0;
    bool same = qn_tokenizer_decode(t, &text, &n_text, id, n, skip, NULL) == QN_OK &&
                n_text == want.n && memcmp(text, want.p, want.n) == 0;
    if (!same) tell(what, (qn_str){"", 0}, want, text, n_text, false);
    qn_detok *d = NULL;
    if (qn_detok_open(&d, t, (qn_detok_options){.skip_special = skip}, NULL) != QN_OK) exit(2);
    char *stream = malloc(n_text * 3 + 64);
    bool bad = false;
    for (size_t k = 0; k <= n; k++) {
        const qn_str s = k < n ? qn_detok_push(d, id[k]) : qn_detok_flush(d, false);
        bad = bad || !qn_utf8_valid(s.p, s.n, NULL);
        if (n_stream + s.n <= n_text * 3 + 64) memcpy(stream + n_stream, s.p, s.n);
        n_stream += s.n;
    }
    const bool ragged = qn_str_find(want, QN_STR("\xEF\xBF\xBD"), 0) != SIZE_MAX &&
                        qn_tokenizer_kind(t) != QN_VOCAB_BYTE_BPE;
    if (bad || (!ragged && (n_stream != want.n || memcmp(stream, want.p, want.n) != 0))) {
        tell(bad ? "stream with half a character" : "stream", (qn_str){"", 0}, want, stream,
             n_stream < n_text * 3 + 64 ? n_stream : n_text * 3 + 64, false);
        same = false;
    }
    free(stream);
    qn_detok_free(d);
    qn_free(text);
    free(id);
    return same;
}

static qn_code open_vocab(qn_tokenizer **t, const char *text, size_t n, qn_err *err)
{
    if (n > 8 && memcmp(text, "QNPARTS1", 8) == 0)
        return open_parts(t, (reader){text, text + n}, err);
    const double begin = now();
    const qn_code rc = qn_tokenizer_from_json(t, text, n, NULL, 0, err);
    printf("opened in %.1f ms, %zu bytes live, %zu at the peak\n", (now() - begin) * 1e3,
           qn_alloc_live_bytes(), qn_alloc_peak_bytes());
    return rc;
}

/* Texts with the ids of another program, nothing added, special spellings taken as text. */
static int compare_ids(const qn_tokenizer *t, reader r)
{
    size_t equal = 0;
    const uint32_t n = u32(&r);
    for (uint32_t k = 0; k < n; k++) {
        const qn_str text = bytes(&r);
        equal += check_ids(t, text, ids_of(&r), false, false, "ids");
    }
    printf("%zu of %u texts equal\n", equal, n);
    return equal != n;
}

int main(int argc, char **argv)
{
    size_t n_vocab = 0, n_cases = 0, equal = 0, decoded = 0, lists = 0, total = 0;
    qn_tokenizer *t = NULL;
    qn_err err = {0};
    if (argc != 3) {
        fprintf(stderr, "tokenizer_compare VOCAB CASES\n");
        return 2;
    }
    char *vocab = slurp(argv[1], &n_vocab), *cases = slurp(argv[2], &n_cases);
    if (!vocab || !cases || n_cases < 12) return 2;
    if (open_vocab(&t, vocab, n_vocab, &err) != QN_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    reader r = {cases + 8, cases + n_cases};
    if (memcmp(cases, "QNIDS1\0", 8) == 0) return compare_ids(t, r);
    if (memcmp(cases, "QNTOK1\0", 8) != 0) return 2;
    const uint32_t n = u32(&r), n_lists = u32(&r);
    const double begin = now();
    for (uint32_t k = 0; k < n; k++) {
        const qn_str text = bytes(&r);
        const qn_str plain = ids_of(&r), full = ids_of(&r), inert = ids_of(&r);
        bool same = check_ids(t, text, plain, false, true, "ids");
        same &= check_ids(t, text, full, true, true, "ids with special tokens");
        same &= check_ids(t, text, inert, false, false, "ids of special spellings as text");
        bool same_text = check_text(t, full, bytes(&r), false, "decoding");
        same_text &= check_text(t, full, bytes(&r), true, "decoding without special tokens");
        equal += same;
        decoded += same_text;
        total += text.n;
    }
    for (uint32_t k = 0; k < n_lists; k++) {
        const qn_str ids = ids_of(&r);
        bool same = check_text(t, ids, bytes(&r), false, "decoding of random ids");
        same &=
            check_text(t, ids, bytes(&r), true, "decoding of random ids without special tokens");
        lists += same;
    }
    printf("%zu of %u texts equal, %zu of %u decodings, %zu of %u random id lists; %.1f MB, all in "
           "%.1f s\n",
           equal, n, decoded, n, lists, n_lists, (double)total * 1e-6, now() - begin);
    qn_tokenizer_free(t);
    free(vocab);
    free(cases);
    return equal == n && decoded == n && lists == n_lists ? 0 : 1;
}
