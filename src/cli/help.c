/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - what `quern help` says, from the tables of verbs and options. */
#include <stdio.h>

#include "cli/cli.h"

const qn_named qn_environment[] = {
    {"QUERN_ISA", "the most that kernels may use: auto, generic, avx2, avx2_vnni, avx512_base, "
                  "avx512, neon, neon_dot, neon_i8mm"},
    {"QUERN_THREADS", "lanes, where --threads is not given"},
    {"QUERN_HOME", "where models and other files are kept (~/.quern)"},
    {"HF_HUB_CACHE", "the cache of Hugging Face tools, looked at and added to (HF_HOME/hub)"},
    {"HF_HOME", "where those tools keep their files (~/.cache/huggingface)"},
    {"HF_ENDPOINT", "the hub that \"quern get\" asks (https://huggingface.co)"},
    {"HF_TOKEN", "the token of your account there (else the file HF_HOME/token)"},
    {NULL, NULL},
};

void qn_opt_default(char text[64], const qn_verb *verb, const qn_opt *o)
{
    static const int zero = 0;
    const char *at = verb->defaults ? (const char *)verb->defaults + o->at : NULL;
    text[0] = '\0';
    if (o->given) return; /* what counts otherwise is told in its help */
    if (!at && o->kind == QN_OPT_CHOICE) at = (const char *)&zero; /* its first word */
    if (!at) return;
    if (o->kind == QN_OPT_U32 && *(const uint32_t *)(const void *)at)
        snprintf(text, 64, " (%u)", *(const uint32_t *)(const void *)at);
    if (o->kind == QN_OPT_F32)
        snprintf(text, 64, " (%g)", (double)*(const float *)(const void *)at);
    if (o->kind != QN_OPT_CHOICE) return;
    qn_str rest = qn_str_z(o->arg), word = {0};
    for (int i = *(const int *)(const void *)at; i >= 0; i--) (void)qn_str_split(&word, &rest, '|');
    snprintf(text, 64, " (%.*s)", QN_STR_ARG(word));
}

void qn_help_verb(qn_io *io, const qn_verb *verb)
{
    qn_io_print(io, "quern %s%s%s%s\n\n%s\n", verb->name, verb->options->name ? " [options]" : "",
                verb->args[0] ? " " : "", verb->args, verb->summary);
    if (verb->notes) qn_io_print(io, "%s\n", verb->notes);
    if (verb->options->name) qn_io_print(io, "\n");
    for (const qn_opt *o = verb->options; o->name; o++) {
        char left[64], standard[64];
        if (!o->help) continue;
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        qn_opt_default(standard, verb, o);
        qn_io_print(io, "  %-24s %s%s\n", left, o->help, standard);
    }
}

/* By status, then as errors.def has them. */
static int exit_rank(quern_code code)
{
    return code == QUERN_OK ? 0 : quern_code_exit(code) * QUERN_CODE_COUNT + (int)code;
}

quern_code qn_exit_next(quern_code code)
{
    quern_code best = QUERN_OK;
    for (int i = QUERN_OK + 1; i < QUERN_CODE_COUNT; i++) {
        const quern_code c = (quern_code)i;
        if (exit_rank(c) > exit_rank(code) && (best == QUERN_OK || exit_rank(c) < exit_rank(best)))
            best = c;
    }
    return best;
}

void qn_help_all(qn_io *io)
{
    qn_io_print(io, "quern VERB [options]: run language models on this machine\n\n");
    for (const qn_verb *const *v = qn_verbs; *v; v++)
        qn_io_print(io, "  %-10s %s\n", (*v)->name, (*v)->summary);
    qn_io_print(io, "\n\"quern help VERB\" tells its options. Results go to stdout, all else to "
                    "stderr.\n\nEnvironment\n");
    for (const qn_named *e = qn_environment; e->name; e++)
        qn_io_print(io, "  %-14s %s\n", e->name, e->text);
    qn_io_print(io, "\nExit status: 0, or\n");
    for (quern_code c = qn_exit_next(QUERN_OK); c != QUERN_OK; c = qn_exit_next(c))
        qn_io_print(io, "  %-3d  %s\n", quern_code_exit(c), quern_code_text(c));
}
