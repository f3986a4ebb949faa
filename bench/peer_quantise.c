/* SPDX-License-Identifier: Apache-2.0 */
/* peer_quantise.c - a model file in another format, by llama.cpp's own quantiser, for bench/performance.
 *
 * The peer's quantiser, so that nobody can say the files were made to suit us: which tensors keep more
 * bits is its choice, and the census beside each figure tells it.
 *
 * Usage:  peer_quantise IN OUT FORMAT    PEER_BACKENDS names the folder of the library's CPU variants.
 * Not part of libquern: built by bench/performance, at bench time, with headers that are not in this tree.
 */
#include "llama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum llama_ftype type;
} formats[] = {
    {"Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},     {"Q4_1", LLAMA_FTYPE_MOSTLY_Q4_1},
    {"Q5_0", LLAMA_FTYPE_MOSTLY_Q5_0},     {"Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
    {"BF16", LLAMA_FTYPE_MOSTLY_BF16},     {"Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M},
    {"Q5_K_M", LLAMA_FTYPE_MOSTLY_Q5_K_M}, {"Q6_K", LLAMA_FTYPE_MOSTLY_Q6_K},
    {"Q3_K_M", LLAMA_FTYPE_MOSTLY_Q3_K_M}, {"IQ4_NL", LLAMA_FTYPE_MOSTLY_IQ4_NL},
};

static void only_errors(enum ggml_log_level level, const char *text, void *unused)
{
    (void)unused;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

int main(int argc, char **argv)
{
    const char *backends = getenv("PEER_BACKENDS");
    const size_t n = sizeof formats / sizeof *formats;
    size_t i = 0;
    if (argc != 4 || !backends) {
        fputs("usage: PEER_BACKENDS=DIR peer_quantise IN OUT FORMAT\n", stderr);
        return 1;
    }
    while (i < n && strcmp(argv[3], formats[i].name) != 0) i++;
    if (i == n) {
        fprintf(stderr, "peer_quantise: format %s is not known\n", argv[3]);
        return 1;
    }
    llama_log_set(only_errors, NULL);
    ggml_backend_load_all_from_path(backends);
    llama_backend_init();
    struct llama_model_quantize_params p = llama_model_quantize_default_params();
    p.ftype = formats[i].type;
    p.allow_requantize = true;
    const unsigned failed = llama_model_quantize(argv[1], argv[2], &p);
    llama_backend_free();
    return failed ? 1 : 0;
}
