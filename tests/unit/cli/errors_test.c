/* SPDX-License-Identifier: Apache-2.0 */
/* errors_test.c - every row of errors.def is provoked, and ends with the row's exit status and a message
 * that names the cause. A new row needs a function here, or this file does not link. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit_hub.h"
#include "program.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"
#define FOLDER "tests/golden/llama/st-f32"

#define X(name, http, exit, retry, text) static void provoke_##name(qt *t, quern_code code);
#include "quern/errors.def"
#undef X

static const struct {
    void (*provoke)(qt *t, quern_code code);
    const char *name, *text;
    int http, status;
    bool retry;
} rows[QUERN_CODE_COUNT] = {
#define X(name, http, exit, retry, text) \
    [QUERN_E_##name] = {provoke_##name, #name, text, http, exit, retry},
#include "quern/errors.def"
#undef X
};

/* The command ends with the code's status, says `word` on stderr once, and nothing on stdout. */
static void ends(qt *t, const char *command, quern_code code, const char *word)
{
    const program_result *r = program_shell(command);
    QT_OKF(t, r->status == quern_code_exit(code), "%s: status %d, expected %d (%s)", command,
           r->status, quern_code_exit(code), r->err);
    QT_OKF(t, strncmp(r->err, "quern: ", 7) == 0 && strstr(r->err, word) != NULL,
           "%s: \"%s\" does not say \"%s\"", command, r->err, word);
    QT_OKF(t, r->out[0] == '\0', "%s: stdout has \"%s\"", command, r->out);
    const char *end = strchr(r->err, '\n');
    QT_OKF(t, end && end[1] == '\0', "%s: more than a line: %s", command, r->err);
}

/* Before any weight is read: what is needed and what is allowed. */
static void provoke_NOMEM(qt *t, quern_code code)
{
    ends(t, "\"$QUERN\" generate --model " MODEL " --memory-mib 1 --context 128 a", code, "");
}

static void provoke_INVAL(qt *t, quern_code code)
{
    ends(t, "\"$QUERN\" generate --modle x a", code,
         "unknown option --modle of generate; did you "
         "mean --model?");
    ends(t, "\"$QUERN\" docter", code, "did you mean doctor?");
    ends(t, "\"$QUERN\" bench --model " MODEL " --gen 0", code,
         "expected a whole number from 1 to");
    ends(t, "timeout 9 \"$QUERN\" serve --model " MODEL " --port 0 --name ''", code,
         "--name is empty");
    ends(t, "timeout 9 \"$QUERN\" serve --model " MODEL " --port 0 --api-key 'a\tb'", code,
         "--api-key cannot be sent: byte 1 is 0x09");
}

/* A copy of FOLDER to change, and where the numbers begin in its weights. */
#define COPY                                                                                   \
    "d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; cp " FOLDER "/* \"$d\"; cd \"$d\" || exit 1\n" \
    "head=$((8 + $(od -An -t u8 -N 8 model.safetensors)))\n"

/* Weights that are no numbers: the fault is the file's, and the tensor is named. */
static void provoke_FORMAT(qt *t, quern_code code)
{
    ends(t,
         COPY "all=$(stat -c %s model.safetensors)\n"
              "{ head -c $head model.safetensors\n"
              "  head -c $((all - head)) /dev/zero | tr '\\0' '\\377'; } >nan\n"
              "mv nan model.safetensors; exec \"$QUERN\" generate --model . a",
         code, "norm.weight holds values that are not finite");
    ends(t,
         "d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; head -c 5000 " MODEL
         " >\"$d/cut.gguf\"; \"$QUERN\" generate --model \"$d/cut.gguf\" a",
         code, "cut.gguf");
}

static void provoke_NOTFOUND(qt *t, quern_code code)
{
    ends(t, "\"$QUERN\" generate --model /no/such/model.gguf a", code, "/no/such/model.gguf");
    ends(t, "\"$QUERN\" inspect /no/such/model.gguf", code, "/no/such/model.gguf");
}

/* A queue of one behind an engine of one: of four that have much to do one must wait outside. */
static void provoke_AGAIN(qt *t, quern_code code)
{
    quern_runtime *rt = NULL;
    quern_model *m = NULL;
    quern_engine *e = NULL;
    quern_request *r[4] = {NULL};
    quern_error err = {0};
    quern_engine_options eo = QUERN_ENGINE_OPTIONS_INIT;
    quern_request_options ro = QUERN_REQUEST_OPTIONS_INIT;
    quern_code rc = QUERN_OK;
    eo.max_seqs = 1;
    eo.queue = 1;
    ro.text = "abc";
    ro.text_n = 3;
    ro.flags = QUERN_REQUEST_IGNORE_EOS;
    if (!QT_EQ(t, quern_runtime_open(&rt, NULL, &err), QUERN_OK) ||
        !QT_EQ(t, quern_model_open(&m, rt, MODEL, NULL, &err), QUERN_OK) ||
        !QT_EQ(t, quern_engine_open(&e, m, &eo, &err), QUERN_OK))
        return;
    for (size_t i = 0; i < QT_LEN(r) && rc == QUERN_OK; i++)
        rc = quern_request_open(&r[i], e, &ro, &err);
    QT_OKF(t, rc == code && strstr(err.msg, "1"), "%d: %s", rc, err.msg);
    for (size_t i = 0; i < QT_LEN(r); i++) quern_request_free(r[i]);
    quern_engine_close(e);
    quern_model_unref(m);
    quern_runtime_close(rt);
}

static void provoke_IO(qt *t, quern_code code)
{
    ends(t, "\"$QUERN\" help >/dev/full", code, "writing the result: No space left");
    ends(t, "\"$QUERN\" generate --model " MODEL " --max-tokens 3 a >/dev/full", code, "writing");
}

static void provoke_UNSUPPORTED(qt *t, quern_code code)
{
    ends(t,
         "d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; cp " FOLDER "/model.safetensors \"$d\"\n"
         "echo '{\"model_type\": \"qwen9\"}' >\"$d/config.json\"\n"
         "\"$QUERN\" generate --model \"$d\" a",
         code, "model type \"qwen9\"");
}

static void provoke_LIMIT(qt *t, quern_code code)
{
    ends(t, "\"$QUERN\" generate --model " MODEL " --context 4 abcdefghijklmnop", code, "4");
}

static void provoke_CANCELLED(qt *t, quern_code code)
{
    static const char *const args[] = {"quern", "generate",     "--model", MODEL, "--max-tokens",
                                       "400",   "--ignore-eos", "a",       NULL};
    const program_result *r = program_interrupted(args);
    QT_EQ(t, r->status, quern_code_exit(code));
    QT_STR(t, r->err, "quern: cancelled\n");
}

/* Every weight is a number, but those of the last norm are so large that no logit is. */
static void provoke_INTERNAL(qt *t, quern_code code)
{
    ends(t,
         COPY
         "norm=$(grep -ao '\"model.norm.weight\":[^}]*offsets\":\\[[0-9]*' model.safetensors)\n"
         "{ head -c $((head + ${norm##*[})) model.safetensors\n"
         "  head -c 256 /dev/zero | tr '\\0' '\\177'; } >large\n"
         "tail -c +$(($(stat -c %s large) + 1)) model.safetensors >>large\n"
         "mv large model.safetensors; exec \"$QUERN\" generate --model . a",
         code, "no finite logit");
}

/* A hub that wants a token, and says so only when none is given. */
static void provoke_DENIED(qt *t, quern_code code)
{
    char command[600];
    kit_hub *hub = kit_hub_start("org/gated", 0);
    if (!QT_OK(t, hub != NULL)) return;
    kit_hub_token(hub, "hf_key");
    snprintf(command, sizeof command,
             "export HOME=%s HF_ENDPOINT=%s; unset HF_TOKEN; \"$QUERN\" get org/gated", qt_tmp(),
             kit_hub_endpoint(hub));
    ends(t, command, code, "HF_TOKEN");
    kit_hub_stop(hub);
}

static void every_row_is_provoked(qt *t)
{
    for (int code = QUERN_OK + 1; code < QUERN_CODE_COUNT; code++)
        if (QT_OKF(t, rows[code].provoke != NULL, "code %d", code))
            rows[code].provoke(t, (quern_code)code);
}

static void every_row_is_told_as_it_stands(qt *t)
{
    for (int i = QUERN_OK + 1; i < QUERN_CODE_COUNT; i++) {
        const quern_code code = (quern_code)i;
        QT_STR(t, quern_code_name(code), rows[i].name);
        QT_STR(t, quern_code_text(code), rows[i].text);
        QT_EQ(t, quern_code_http(code), rows[i].http);
        QT_EQ(t, quern_code_exit(code), rows[i].status);
        QT_EQ(t, quern_code_retryable(code), rows[i].retry);
        for (int k = QUERN_OK + 1; k < i; k++) QT_OK(t, rows[k].status != rows[i].status);
    }
}

QT_MAIN(QT(every_row_is_provoked), QT(every_row_is_told_as_it_stands))
