/* SPDX-License-Identifier: Apache-2.0 */
/* verb_generate.c - `quern generate`: continues a text, streamed to stdout as it comes. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/open.h"
#include "cli/sampling.h"

enum { MAX_PROMPT_BYTES = 64 << 20, LOOK_MS = 50 };

typedef struct generate_opts {
    qn_run_opts run;
    qn_sampling sampling;
    bool raw, ignore_eos, stats;
    qn_texts stop, biases;
    const char *prompt;
} generate_opts;

/* Greedy unless told otherwise: the model's recipe is for chats. */
#define MAX_TOKENS 256
#define SPELLED(number) #number
#define TEXT_OF(macro) SPELLED(macro)

#define AT(member) offsetof(generate_opts, member)
static const qn_opt options[] = {
    QN_RUN_OPTIONS(generate_opts),
    QN_SAMPLING_OPTIONS(generate_opts, "", "0", TEXT_OF(MAX_TOKENS)),
    QN_SAMPLING_MIN_TOKENS(generate_opts),
    {"logit-bias", QN_OPT_TEXTS, AT(biases), "ID=VALUE",
     "add VALUE to the logit of token ID; may be repeated", 0, 0, 0},
    {"stop", QN_OPT_TEXTS, AT(stop), "TEXT", "end before this text; may be repeated", 0, 0, 0},
    {"prompt", QN_OPT_TEXT, AT(prompt), "TEXT", "the prompt, where it is no argument", 0, 0, 0},
    {"raw", QN_OPT_FLAG, AT(raw), NULL, "no chat template: the prompt as it stands (the default)",
     0, 0, 0},
    {"ignore-eos", QN_OPT_FLAG, AT(ignore_eos), NULL, "go on where the model ends its text", 0, 0,
     0},
    {"stats", QN_OPT_FLAG, AT(stats), NULL, "tell counts, speed and the seed on stderr", 0, 0, 0},
    QN_OPT_END,
};

static qn_code read_all(qn_buf *b, FILE *f, qn_err *err)
{
    char piece[1 << 14];
    size_t n = 0;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) {
        const qn_code rc = qn_buf_append(b, piece, n, err);
        if (rc != QN_OK) return qn_wrap(err, rc, "reading the prompt");
    }
    return ferror(f) ? qn_fail(err, QN_E_IO, "reading the prompt") : QN_OK;
}

static qn_code find_prompt(qn_str *out, qn_buf *b, const generate_opts *o, qn_args args, qn_io *io,
                           qn_err *err)
{
    if (o->prompt && args.n)
        return qn_fail(err, QN_E_INVAL, "the prompt is given twice: --prompt and \"%s\"",
                       args.v[0]);
    const char *text = o->prompt ? o->prompt : args.n ? args.v[0] : NULL;
    if (!text) return qn_fail(err, QN_E_INVAL, "the prompt is missing (\"-\" reads it from stdin)");
    *out = qn_str_z(text);
    if (strcmp(text, "-") == 0) {
        QN_TRY(read_all(b, io->in, err));
        *out = qn_str_make(qn_buf_text(b), b->len);
    }
    return QN_OK;
}

/* "ID=VALUE" each; the list is [QN_MAX_TEXTS]. */
static qn_code read_biases(quern_bias *out, const qn_texts *texts, qn_err *err)
{
    for (size_t i = 0; i < texts->n; i++) {
        qn_str value = qn_str_z(texts->v[i]), id;
        uint64_t token = 0;
        double bias = 0;
        if (!qn_str_split(&id, &value, '=') || !qn_str_parse_u64(&token, id) ||
            token > UINT32_MAX || !qn_str_parse_f64(&bias, value) ||
            !(bias >= -1e30 && bias <= 1e30))
            return qn_fail(err, QN_E_INVAL, "--logit-bias is \"%s\", expected ID=VALUE",
                           texts->v[i]);
        out[i] = (quern_bias){(uint32_t)token, (float)bias};
    }
    return QN_OK;
}

static void describe(quern_request_options *ro, const generate_opts *o)
{
    ro->text_flags = QUERN_TOKENIZE_SPECIAL | QUERN_TOKENIZE_MARKERS;
    ro->flags = o->ignore_eos ? QUERN_REQUEST_IGNORE_EOS : 0u;
    ro->max_tokens = MAX_TOKENS;
    qn_sampling_apply(ro, &o->sampling);
    ro->stop_texts = o->stop.v;
    ro->n_stop_texts = o->stop.n;
}

typedef struct timing {
    uint64_t begin_ns, first_ns, last_ns;
} timing;

static double per_second(uint32_t n, uint64_t ns) { return ns ? n / ((double)ns / 1e9) : 0; }

static void tell(qn_io *io, const qn_running *run, const quern_event *done, const timing *t)
{
    const uint32_t fresh = done->prompt_tokens - done->cached_tokens;
    const uint32_t steps = done->completion_tokens ? done->completion_tokens - 1 : 0;
    fprintf(io->err,
            "%s\nload %.0f ms, prompt %u tokens (%u cached) at %.1f/s, completion %u tokens at "
            "%.1f/s, seed %llu\n",
            quern_runtime_describe(run->rt), run->load_ms, done->prompt_tokens, done->cached_tokens,
            per_second(fresh, t->first_ns - t->begin_ns), done->completion_tokens,
            per_second(steps, t->last_ns - t->first_ns), (unsigned long long)done->seed);
}

/* Events to stdout until the last one; SIGINT cancels and the stream still ends properly. */
static qn_code stream(quern_request *r, const qn_running *run, const generate_opts *o, timing *t,
                      qn_io *io, qn_err *err)
{
    bool cancelled = false;
    for (;;) {
        const quern_event *e = NULL;
        const qn_code rc = quern_request_next(&e, r, LOOK_MS, err);
        if (!cancelled && qn_interrupt_pending()) {
            quern_request_cancel(r);
            cancelled = true;
        }
        if (rc == QN_E_AGAIN) continue;
        if (rc != QN_OK) return rc;
        if (e->kind == QUERN_EVENT_ERROR) return qn_fail(err, e->code, "%s", e->msg);
        if (!t->first_ns) t->first_ns = e->time_ns;
        if (e->kind == QUERN_EVENT_TOKEN) t->last_ns = e->time_ns;
        qn_io_text(io, e->text, e->text_n);
        if (e->kind == QUERN_EVENT_DONE) {
            qn_io_print(io, "\n");
            QN_TRY(qn_io_flush(io, err));
            if (o->stats) tell(io, run, e, t);
            if (cancelled || e->finish == QUERN_FINISH_CANCELLED)
                return qn_fail(err, QN_E_CANCELLED, "cancelled");
            return QN_OK;
        }
        if (e->text_n) QN_TRY(qn_io_flush(io, err));
    }
}

static qn_code generate(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const generate_opts *o = opts;
    qn_running run = {0};
    quern_request *r = NULL;
    quern_bias biases[QN_MAX_TEXTS];
    qn_str prompt = {0};
    timing t = {0};
    qn_buf b;
    qn_buf_init(&b, MAX_PROMPT_BYTES);
    QN_TRY_OUT(read_biases(biases, &o->biases, err));
    QN_TRY_OUT(find_prompt(&prompt, &b, o, args, io, err));
    qn_interrupt_block();
    QN_TRY_OUT(qn_run_open(&run, &o->run, 1, io, err));
    quern_request_options ro = QUERN_REQUEST_OPTIONS_INIT;
    ro.text = prompt.p;
    ro.text_n = prompt.n;
    describe(&ro, o);
    ro.biases = biases;
    ro.n_biases = o->biases.n;
    t.begin_ns = qn_clock_ns();
    QN_TRY_OUT(quern_request_open(&r, run.engine, &ro, err));
    QN_TRY_OUT(stream(r, &run, o, &t, io, err));
out:
    quern_request_free(r);
    qn_run_close(&run);
    qn_buf_fini(&b);
    return rc;
}

const qn_verb qn_verb_generate = {
    "generate",
    "[PROMPT | -]",
    "continue a text with a model, streamed to stdout",
    "\n  quern generate --max-tokens 24 \"The capital of France is\"\n"
    "  quern generate --model model.gguf --temp 0.8 --top-p 0.95 --seed 7 - < prompt.txt\n\n"
    "\"-\" reads the prompt from stdin, line ends included. It is completed as it stands: chat\n"
    "templates are not applied, but special tokens may be spelled in it (\"<|im_end|>\"). The "
    "same\n"
    "prompt, options and seed give the same text, on any number of threads.",
    options,
    NULL,
    sizeof(generate_opts),
    0,
    1,
    generate};
